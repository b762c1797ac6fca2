# SPDX-License-Identifier: Apache-2.0
"""packages.py - What was installed for this sandbox: where to import it from.

The host says it with a `packages` message, all of it each time. The directories come before those of the machine's own
packages and after the standard library, so that an installed numpy is the one that is imported, and no package stands
in for a module of Python. Processes that the code starts find them by PYTHONPATH.

`%pip install` asks the host, which answers when the packages are there: the sandbox itself has no network, and no right
to write where packages are.
"""
import importlib
import os
import re
import sys

_told = []  # the directories of the last message


def _place():
    """Where packages of the machine begin."""
    for i, path in enumerate(sys.path):
        if os.path.basename(path) in ("site-packages", "dist-packages"):
            return i
    return len(sys.path)


def use(message):
    paths = [p for p in message.get("paths") or [] if isinstance(p, str)]
    sys.path[:] = [p for p in sys.path if p not in _told]
    place = _place()
    sys.path[place:place] = paths
    _told[:] = paths
    for name, value in (message.get("env") or {}).items():
        os.environ[name] = value
    importlib.invalidate_caches()


# Options of pip that mean nothing here: there is one place, and what is there is the newest that was asked for.
_IDLE = {"-q", "-qq", "--quiet", "-U", "--upgrade", "--user", "--no-cache-dir", "--disable-pip-version-check", "--no-input",
         "--prefer-binary", "--break-system-packages", "-v", "--verbose"}


def _lines(path):
    with open(path, encoding="utf-8") as f:
        for line in f:
            line = re.sub(r"(^|\s)#.*", "", line).strip()
            if line:
                yield line


def _requirements(args):
    """What the words behind `pip install` ask for."""
    requirements, words = [], iter(args)
    for word in words:
        if word in ("-r", "--requirement"):
            requirements.extend(_lines(next(words, "")))
        elif word.startswith("-"):
            if word not in _IDLE:
                raise ValueError("pip install: %s is not supported here; the host installs, from the operator's index" % word)
        else:
            requirements.append(word)
    if not requirements:
        raise ValueError("pip install: name at least one package")
    return requirements


def install(args):
    from . import control
    requirements = _requirements(args)
    answer = control.channel.install(requirements)
    if answer.get("error"):
        raise RuntimeError("pip install: " + str(answer["error"]))
    print("Installed " + ", ".join(str(p) for p in answer.get("packages") or requirements))
