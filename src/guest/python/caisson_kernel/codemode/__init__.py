# SPDX-License-Identifier: Apache-2.0
"""codemode - What code in a cell sees of the agent's tools, in sandboxes that were created with servers.

    rpc         requests to the host            schema      arguments against a tool's JSON schema
    servers     the servers and calls to them   result      what a tool sent, as objects
    proxy       functions, proxies, modules     modules     `mcp`, `mcp.runtime`, `mcp.servers.x` for import
    discovery, memory, artifacts                the functions of mcp.runtime

Nothing of it is there without servers: no name in the namespace, no module, nothing loaded. With them, the first execution brings the
names; the host is asked when something is first used.
"""
from .. import source
from . import artifacts, discovery, memory, modules, proxy, servers
from .rpc import MCPError

_entered = None
_tools_loaded = False

# In the namespace by name, as well as in mcp.runtime; `now` and such would be in the way of a user's own.
_GLOBALS = tuple(name for name in memory.NAMES + artifacts.NAMES if name not in ("now", "convert_time", "list_timezones"))


def _put(namespace, names, old):
    """New names, unless the user has one of that name himself."""
    for name, value in names.items():
        if name not in namespace or namespace[name] is old.get(name):
            namespace[name] = value
    for name, value in old.items():
        if name not in names and namespace.get(name) is value:
            del namespace[name]


_names = {}


def _names_of():
    proxies = proxy.Servers((server.name, proxy.Proxy(server)) for server in servers.loaded.values())
    names = {"mcp_" + servers.loaded[name].alias: one for name, one in proxies.items()}
    names.update(mcp=modules.package, mcp_servers=proxies, LOADED_MCP_SERVERS=tuple(servers.loaded), MCPError=MCPError)
    for name in _GLOBALS:
        names[name] = getattr(modules.runtime, name)
    return names


def enter(mcp, namespace, name):
    """Before each execution: `mcp` as the host sent it. Runs the owner's saved functions, the first time."""
    global _entered, _names, _tools_loaded
    if not isinstance(mcp, dict):
        return
    artifacts.begin(name)
    if mcp.get("servers") != _entered or not _names:
        servers.load(mcp.get("servers"))
        modules.install()
        old, _names = _names, _names_of()
        _put(namespace, _names, old)
        modules.runtime.LOADED_MCP_SERVERS = _names["LOADED_MCP_SERVERS"]
        _entered = mcp.get("servers")
    if mcp.get("saved_tools") and not _tools_loaded:
        memory.load_tools(namespace, source.remember)
    _tools_loaded = True


__all__ = ("enter", "discovery", "artifacts")
