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
import re
import site
import socket
import sys
import sysconfig
import time
from urllib.parse import urlsplit

ADDRESS = ("198.18.0.1", 61052)
REACHED_SECONDS = 1
TOOLS = "/packages/tools/"
PTH = "caisson-packages.pth"

# Options without effect here: there is one place, and it has the newest requested versions.
IDLE = {"-q", "-qq", "--quiet", "-U", "--upgrade", "--user", "--no-cache-dir", "--disable-pip-version-check", "--no-input",
        "--prefer-binary", "--break-system-packages", "-v", "--verbose", "--system", "--no-warn-script-location",
        "--force-reinstall", "-I", "--ignore-installed", "--no-color"}
IDLE_WITH_VALUE = {"--timeout", "--retries", "--cache-dir", "--progress-bar", "--root-user-action", "--log"}
LOCAL = {"-e", "--editable", "--no-index", "-f", "--find-links", "-h", "--help"}
INDEX = {"-i", "--index-url", "--extra-index-url"}


class Refused(Exception):
    pass


class Local(Exception):
    """The image's own pip has to do it."""


def applies(marker, line):
    """Whether `; marker` of a line is true here."""
    try:
        from pip._vendor.packaging.markers import Marker
    except ImportError:
        raise Refused("'%s': the marker after ';' cannot be evaluated; write the line without it" % line)
    return Marker(marker).evaluate()


def lines(path, depth=0):
    """The requirements of a file."""
    with open(path, encoding="utf-8") as f:
        text = f.read().replace("\\\n", " ")
    for line in text.splitlines():
        line = re.sub(r"(^|\s)#.*", "", line).strip()
        nested = re.fullmatch(r"(?:-r|--requirement)[ =]*(\S+)", line)
        if nested and depth < 10:
            yield from lines(os.path.join(os.path.dirname(path), nested.group(1)), depth + 1)
        elif line.startswith("-") or " --" in line:
            raise Refused("%s: '%s': options in a file are not supported here; the daemon installs, from the operator's index" % (path, line))
        elif line:
            yield line


def requirement(text):
    """A requirement that the daemon understands, or None if its marker is false."""
    if "://" in text or " @ " in text or text.startswith((".", "/", "~")) or re.search(r"\.(whl|zip|tar\.\w+|tgz)$", text):
        raise Local
    name, mark, marker = text.partition(";")
    return None if mark and not applies(marker.strip(), text) else name.strip()


def requirements(args):
    """(requirements, quiet) of the words after `install`."""
    found, words, quiet = [], iter(args), False
    for word in words:
        option, mark, value = word.partition("=") if word.startswith("--") else (word, "", "")
        if option in LOCAL:
            raise Local
        if option in IDLE:
            quiet = quiet or option in ("-q", "-qq", "--quiet")
        elif option in IDLE_WITH_VALUE:
            mark or next(words, None)
        elif option in INDEX:
            request([], value or next(words, ""))
            raise Refused("%s is not supported here; the daemon installs, from the operator's index" % option)
        elif option in ("-r", "--requirement"):
            found.extend(map(requirement, lines(value or next(words, ""))))
        elif word.startswith("-r") and not word.startswith("--"):
            found.extend(map(requirement, lines(word[2:])))
        elif word.startswith("-"):
            raise Refused("%s is not supported here; the daemon installs, from the operator's index" % option)
        else:
            found.append(requirement(word))
    if not args or not found:
        raise Local
    return [r for r in found if r], quiet


def request(packages, index=os.environ.get("PIP_INDEX_URL") or "https://pypi.org"):
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
                   "upgrade": bool({"-U", "--upgrade"} & set(sys.argv))}
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
    wanted, quiet = requirements(args)
    if wanted:
        answer = request(wanted)
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
            request([])
            raise Refused("this sandbox has no network, and the daemon does only: pip install NAME")
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
