# SPDX-License-Identifier: Apache-2.0
"""modules - `mcp`, `mcp.runtime`, `mcp.servers` and `mcp.servers.<alias>` for import.

A package named mcp may also be installed in the cell, or be the user's own: then `import mcp` imports that package, with `runtime` and
`servers` added to it; the package itself has neither. So `from mcp.client import ...` still works. The name `mcp` that is in the
namespace from the start is ours alone, and loads the other package only for an attribute that ours lacks.
"""
import importlib
import importlib.abc
import importlib.machinery
import sys
import types

from . import artifacts, discovery, memory, proxy, servers


class _Package(types.ModuleType):
    """`mcp` as code finds it without an import."""

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        for server in servers.loaded.values():  # mcp.weather: as in javascript
            if server.alias == name:
                return proxy.Proxy(server)
        other = importlib.import_module("mcp")
        if other is self:
            raise AttributeError("mcp has no %r: runtime, servers and %s" % (name, ", ".join(
                s.alias for s in servers.loaded.values()) or "no server"))
        return getattr(other, name)

    def __dir__(self):
        return ["runtime", "servers"] + [s.alias for s in servers.loaded.values()]


class _Servers(types.ModuleType):
    def __getattr__(self, name):
        if name == "__all__":
            return dir(self)
        if name.startswith("_") or not any(s.alias == name for s in servers.loaded.values()):
            raise AttributeError("no server %r; there are: %s" % (name, ", ".join(dir(self)) or "none"))
        return importlib.import_module("mcp.servers." + name)

    def __dir__(self):
        return [s.alias for s in servers.loaded.values()]


def _make_runtime():
    module = types.ModuleType("mcp.runtime", "The sandbox's MCP servers, memory and files. capability_summary() has the details.")
    for part in (discovery, memory, artifacts):
        for name in part.NAMES:
            setattr(module, name, getattr(part, name))
    module.__all__ = [name for part in (discovery, memory, artifacts) for name in part.NAMES]
    return module


package = _Package("mcp", "The sandbox's MCP servers: mcp.runtime, mcp.servers.")
package.__path__ = []
runtime = package.runtime = _make_runtime()
package.servers = _Servers("mcp.servers", "The sandbox's MCP servers, as modules.")
package.servers.__path__ = []


class _Ready(importlib.abc.Loader):
    """The loader of a module that exists already."""

    def __init__(self, module):
        self.module = module

    def create_module(self, spec):
        return self.module

    def exec_module(self, module):
        pass


class _Other(importlib.abc.Loader):
    """The loader of another package mcp, with our modules added."""

    def __init__(self, loader):
        self.loader = loader

    def create_module(self, spec):
        return self.loader.create_module(spec)

    def exec_module(self, module):
        self.loader.exec_module(module)
        if not hasattr(module, "__path__"):
            module.__path__ = []
        module.runtime, module.servers = runtime, package.servers

    def __getattr__(self, name):
        return getattr(self.loader, name)


class Finder(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name == "mcp":
            other = importlib.machinery.PathFinder.find_spec("mcp")
            if other is not None and other.loader is not None:
                other.loader = _Other(other.loader)
                return other
            return self._spec(name, package)
        if name == "mcp.runtime":
            return self._spec(name, runtime)
        if name == "mcp.servers":
            return self._spec(name, package.servers)
        if name.startswith("mcp.servers."):
            found = name[len("mcp.servers."):]
            for server in servers.loaded.values():
                if server.alias == found:
                    return self._spec(name, proxy.ServerModule(server))
        return None

    def _spec(self, name, module):
        return importlib.machinery.ModuleSpec(name, _Ready(module), is_package=name in ("mcp", "mcp.servers"))


_finder = Finder()


def install():
    """Make the modules importable. Modules of servers that are gone are removed."""
    if _finder not in sys.meta_path:
        sys.meta_path.insert(0, _finder)
    for name in [n for n in sys.modules if n.startswith("mcp.servers.")]:
        del sys.modules[name]
