# SPDX-License-Identifier: Apache-2.0
"""packages.py - The import paths of packages that were installed for this sandbox.

The host sends a `packages` message with all directories each time. The directories come before those of the machine's own
packages and after the standard library, so that an installed numpy is the one that is imported, and no package replaces a
module of Python. Processes that the code starts find them by PYTHONPATH.

`%pip install` asks the host, which answers when the packages are installed: the sandbox itself has no network, and no right
to write to the directories of packages. A pip in a subprocess asks the host by itself; the message about its packages waits
in the channel while code runs, so the last finder of imports looks there.
"""
import importlib
import importlib.machinery
import os
import sys
import types

from . import pip_words, standins

_told = []  # the directories of the last message


def _place():
    """The index in sys.path where the machine's packages begin."""
    for i, path in enumerate(sys.path):
        if os.path.basename(path) in ("site-packages", "dist-packages"):
            return i
    return len(sys.path)


def _extend_namespaces(paths):
    """Some distributions make packages of several parts when python starts (mpl_toolkits of Debian's matplotlib, by a .pth
    file), with their own part alone. The parts of installed packages come first, as for other packages."""
    for name, module in list(sys.modules.items()):
        parts = vars(module).get("__path__") if type(module) is types.ModuleType else None
        if isinstance(parts, list) and all(key.startswith("__") for key in vars(module)):  # its code did not run
            found = [p + "/" + name.replace(".", "/") for p in paths]
            parts[:] = [p for p in found if os.path.isdir(p)] + [p for p in parts if not p.startswith(tuple(_told))]


def use(message):
    paths = [p for p in message.get("paths") or [] if isinstance(p, str)]
    _extend_namespaces(paths)
    sys.path[:] = [p for p in sys.path if p not in _told]
    place = _place()
    sys.path[place:place] = paths
    _told[:] = paths
    for name, value in (message.get("env") or {}).items():
        os.environ[name] = value
    importlib.invalidate_caches()
    standins.refresh()


class _Finder:
    """A module that no other finder knows: its package may have been installed since the code began."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        from . import control
        before = list(_told)
        if path is not None or control.channel is None or not control.channel.peek() or _told == before:
            return None
        return importlib.machinery.PathFinder.find_spec(name)

    @staticmethod
    def invalidate_caches():
        pass


def watch():
    if _Finder not in sys.meta_path:
        sys.meta_path.append(_Finder)


def _imported_before(package):
    """The module of this package, if the interpreter has another one than the installed."""
    name = package.split()[0].replace("-", "_")
    path = getattr(sys.modules.get(name), "__file__", None)
    return name if path and _told and not path.startswith(_told[0] + "/") else None


def install(args):
    from . import control
    try:
        wanted, _ = pip_words.requirements(args)
    except (pip_words.Refused, pip_words.Local) as exc:
        raise ValueError("pip install: %s" % exc) from None
    if not wanted:
        return  # their markers are false
    answer = control.channel.install(wanted, pip_words.upgrades(args))
    if answer.get("error"):
        raise RuntimeError("pip install: " + str(answer["error"]))
    installed = [str(p) for p in answer.get("packages") or ()]
    for text, packages in (("Installed", installed), ("Already in the image:", answer.get("image"))):
        if packages:
            print(text, ", ".join(str(p) for p in packages))
    for name in map(_imported_before, installed):
        if name:
            print("%s was imported before: a new kernel imports the installed one" % name)
