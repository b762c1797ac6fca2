# SPDX-License-Identifier: Apache-2.0
"""codemode - The agent's tools for code in a cell, in sandboxes that were created with servers.

    rpc         requests to the host            schema      arguments against a tool's JSON schema
    servers     the servers and calls to them   result      results of tools, as objects
    proxy       functions, proxies, modules     modules     `mcp`, `mcp.runtime`, `mcp.servers.x` for import
    discovery, memory, artifacts                the functions of mcp.runtime

Without servers, none of this exists: no name in the namespace, no module, nothing loaded. With servers, the first execution brings the
names; the kernel asks the host at their first use.
"""
from . import artifacts, discovery, memory, modules, proxy, servers
from .rpc import MCPError

_entered = None
_tools_loaded = False

# Global names, as well as in mcp.runtime; `now` and others could hide names of the user.
_GLOBALS = tuple(name for name in memory.NAMES + artifacts.NAMES if name not in ("now", "convert_time", "list_timezones"))


def _put(namespace, names, old):
    """Add new names, except those that the user has assigned."""
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
    """Before each execution: apply `mcp` as the host sent it. The first time, run the owner's saved functions."""
    global _entered, _names, _tools_loaded
    if not isinstance(mcp, dict):
        return
    artifacts.begin(name)
    memory.namespace = namespace
    if mcp.get("servers") != _entered or not _names:
        servers.load(mcp.get("servers"))
        modules.install()
        old, _names = _names, _names_of()
        _put(namespace, _names, old)
        modules.runtime.LOADED_MCP_SERVERS = _names["LOADED_MCP_SERVERS"]
        _entered = mcp.get("servers")
    if mcp.get("saved_tools") and not _tools_loaded:
        memory.load_tools()
    _tools_loaded = True


__all__ = ("enter", "discovery", "artifacts")
