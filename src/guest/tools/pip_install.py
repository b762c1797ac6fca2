# SPDX-License-Identifier: Apache-2.0
"""`pip install` in a cell: request the packages of the daemon, which fetches, checks and keeps them.

Theory of operation. A cell has no network. The front listens on a port of the cell's own (docs/protocol/tools.md), takes names
and versions, and answers with the directories of the installed packages. The next kernels and commands find these by their
environment. Processes that run already, such as the shell or the make that called pip, find them in the places that every python
looks at: a .pth file in the directory of the user's packages, and ~/.local/bin, which is in PATH.

command() returns None for everything that the image's own pip can do: commands without network, local files, and all commands
of a sandbox that may reach the index.
"""
import json
import os
import site
import socket
import sys
import sysconfig
import time
from urllib.parse import urlsplit

from pip_words import Local, Refused, requirements, upgrades

ADDRESS = ("198.18.0.1", 61052)
REACHED_SECONDS = 1
TOOLS = "/packages/tools/"
PTH = "caisson-packages.pth"
INDEX = {"-i", "--index-url", "--extra-index-url"}


def named_index(args):
    """The index of a command line; None: it names none."""
    for i, word in enumerate(args):
        option, mark, value = word.partition("=")
        if option in INDEX:
            return value if mark else "".join(args[i + 1:i + 2])
    return None


def index_of(args):
    """The index that pip would use."""
    return named_index(args) or os.environ.get("PIP_INDEX_URL") or "https://pypi.org"


def request(packages, index):
    """The daemon's answer; raises Local if the sandbox may reach the index. The port is there a moment after the sandbox's first
    program."""
    until = time.monotonic() + REACHED_SECONDS
    while True:
        try:
            connection = socket.create_connection(ADDRESS, timeout=REACHED_SECONDS)
            break
        except OSError:
            if time.monotonic() > until:
                raise Refused("the daemon does not answer; in python code use %pip install NAME, from outside POST /v1/sandboxes/NAME/packages")
            time.sleep(0.02)
    with connection:
        connection.settimeout(None)
        message = {"language": "python", "packages": packages, "index": urlsplit(index).hostname or "",
                   "upgrade": upgrades(sys.argv)}
        connection.sendall(json.dumps(message).encode() + b"\n")
        with connection.makefile("rb") as answers:
            line = answers.readline()
    answer = json.loads(line or "{}")
    if answer.get("direct"):
        raise Local
    return answer


def link(source, directory):
    """Every program of `source` in `directory`, unless it has one of that name that is not ours."""
    if not os.path.isdir(source):
        return
    os.makedirs(directory, exist_ok=True)
    for name in os.listdir(source):
        path = os.path.join(directory, name)
        if os.path.islink(path) and os.readlink(path).startswith("/packages/"):
            os.unlink(path)
        if not os.path.lexists(path):
            os.symlink(os.path.join(source, name), path)


def show(answer):
    """Let processes that run already find the packages."""
    places = [(site.getusersitepackages(), os.path.join(site.getuserbase(), "bin"))]
    if sys.prefix != sys.base_prefix:
        places.append((sysconfig.get_path("purelib"), sysconfig.get_path("scripts")))
    for modules, programs in places:
        try:
            os.makedirs(modules, exist_ok=True)
            fresh = os.path.join(modules, PTH + ".%d" % os.getpid())
            with open(fresh, "w", encoding="utf-8") as f:
                f.write("".join(path + "\n" for path in answer["paths"]))
            os.replace(fresh, os.path.join(modules, PTH))
            link(os.path.join(answer["tree"], "bin"), programs)
        except OSError:
            pass  # later kernels and commands have them by their environment


def install(args):
    try:
        wanted, quiet = requirements(args)
    except Refused:
        request([], index_of(args))  # no refusal where the sandbox reaches that index: the image's pip has every option
        if named_index(args):
            raise Refused("egress of this sandbox does not allow %s; without an index the daemon installs, from the operator's"
                          % (urlsplit(named_index(args)).hostname or named_index(args)))
        raise
    if wanted:
        answer = request(wanted, index_of(args))
        if "tree" not in answer:
            hint = " (%s)" % answer["hint"] if answer.get("hint") else ""
            raise Refused("%s%s (%s)" % (answer.get("error", "the daemon gave no answer"), hint, answer.get("code", "failed")))
        show(answer)
        if not quiet and not answer["packages"]:
            print("Requirement already satisfied: " + " ".join(wanted))
        elif not quiet:
            print("Successfully installed " + " ".join("-".join(p) for p in answer["packages"]))


def command(args):
    """The exit status of a command line of pip; None: it is the image's pip that has to run it."""
    verb = next((i for i, word in enumerate(args) if not word.startswith("-")), None)
    if verb is None or args[verb] not in ("install", "download", "wheel", "index", "search"):
        return None
    try:
        if args[verb] == "install":
            install([*args[:verb], *args[verb + 1:]])
        else:
            request([], index_of(args))
            raise Refused("needs a network, and this sandbox has none; the daemon installs packages: pip install NAME")
    except Local:
        return None
    except (Refused, OSError, ValueError) as exc:
        print("ERROR: pip %s: %s" % (args[verb], exc), file=sys.stderr)
        return 1
    return 0


def run_image_pip(args):
    for directory in os.get_exec_path():
        program = os.path.join(directory, "pip3")
        if not directory.startswith(TOOLS) and os.access(program, os.X_OK) and os.path.isfile(program):
            os.execv(program, [program, *args])
    os.execv(sys.executable, [sys.executable, "-m", "pip", *args])


if __name__ == "__main__":
    code = command(sys.argv[1:])
    if code is None:
        run_image_pip(sys.argv[1:])
    sys.exit(code)
