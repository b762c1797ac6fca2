# SPDX-License-Identifier: Apache-2.0
"""memory - The package's own modules, kept in memory once the kernel runs.

The archive from which the kernel started may not be there later: a kernel that was forked into a cell does not see the
zygote's files, and in a cell the archive is in /tmp, where the code may remove or replace it. So all sources are read at
the start, and a module that is imported later (because only some code needs it) is compiled from there.
"""
import importlib.machinery
import sys
import zipimport


class Finder:
    """First on sys.meta_path for the modules of this package."""

    def __init__(self, package, sources, origin):
        self.prefix = package + "."
        self.sources = sources
        self.origin = origin

    def find_spec(self, name, path=None, target=None):
        del path, target
        if name not in self.sources:
            return None
        return importlib.machinery.ModuleSpec(name, self, origin=self.origin + "/" + name.replace(".", "/") + ".py")

    def create_module(self, spec):
        del spec
        return None  # the usual one

    def exec_module(self, module):
        source = self.sources[module.__name__]
        exec(compile(source, module.__spec__.origin, "exec", dont_inherit=True), module.__dict__)

    def get_source(self, name):
        return self.sources.get(name)


def keep():
    """Read all modules of the archive that has this package, once, if it is an archive."""
    package = sys.modules[__package__]
    loader = package.__spec__.loader
    if not isinstance(loader, zipimport.zipimporter) or any(isinstance(f, Finder) for f in sys.meta_path):
        return
    sources = {}
    for path in zipimport._zip_directory_cache[loader.archive]:
        head, _, tail = path.replace("\\", "/").partition("/")
        if head == __package__ and tail.endswith(".py") and tail != "__init__.py":
            name = __package__ + "." + tail[:-3].replace("/", ".")
            sources[name] = loader.get_data(loader.archive + "/" + path)
    sys.meta_path.insert(0, Finder(__package__, sources, loader.archive))
