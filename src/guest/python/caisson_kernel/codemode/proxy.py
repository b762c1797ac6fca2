# SPDX-License-Identifier: Apache-2.0
"""proxy - Servers and their tools as objects, functions and modules of Python.

    await mcp_weather.get_weather(city="Paris")          await mcp_servers["weather"].get_weather(city="Paris")
    from mcp.servers.weather import get_weather          mcp_weather.get_weather.sync(city="Paris")

A tool is a real function with a signature and a docstring from its schema, so help(), completion and inspect show it. That needs the
server's list of tools: the first access to a proxy's attribute requests it. Names that begin with "_" never cause a request.
"""
import types

from . import schema, servers
from .rpc import MCPError


def _document(server, tool):
    lines = [str(tool.get("description") or tool.get("title") or "A tool of %s." % server.name).strip()]
    if tool.parameters:
        lines += ["", "Arguments:"] + [schema.describe(python, part, required) for python, _, part, required in tool.parameters]
    notes = tool.get("annotations")
    if isinstance(notes, dict):
        said = [text for key, text in (("readOnlyHint", "changes nothing"), ("destructiveHint", "may destroy something"),
                                       ("idempotentHint", "may be repeated"), ("openWorldHint", "reaches beyond the server"))
                if notes.get(key) is True]
        if said:
            lines += ["", "According to the server, it %s." % ", ".join(said)]
    lines += ["", "A tool of the MCP server %r: await it, or call .sync() instead." % server.name]
    return "\n".join(lines)


def function(server, tool):
    """The function of a tool."""
    async def call(*args, **kwargs):
        return await servers.call(server, tool, servers.arguments_of(server, tool, args, kwargs))

    def sync(*args, **kwargs):
        return servers.call_sync(server, tool, servers.arguments_of(server, tool, args, kwargs))

    for made, name in ((call, tool["alias"]), (sync, "sync")):
        made.__name__ = name
        made.__qualname__ = "mcp_%s.%s" % (server.alias, tool["alias"] + (".sync" if made is sync else ""))
        made.__module__ = "mcp.servers." + server.alias
        made.__doc__ = _document(server, tool)
        made.__signature__ = schema.signature(tool.get("inputSchema"))
    call.sync = sync
    call.tool = tool
    return call


class _Functions:
    """The functions of one server, made at their first use."""

    def __init__(self, server):
        self.server = server
        self._made = {}

    def get(self, name):
        tool = self.server.tool(name)
        made = self._made.get(tool["name"])
        if made is None or made.tool is not tool:
            made = self._made[tool["name"]] = function(self.server, tool)
        return made

    def names(self):
        return sorted(tool["alias"] for tool in self.server.tools().values())


_LINE_MAX = 120


def _overview(server, functions):
    """The text of help() for a server: its description, and its tools, one line each."""
    lines = [" ".join(server.description.split()) or "An MCP server.", ""]
    try:
        tools = [functions.get(name) for name in functions.names()]
    except MCPError as exc:  # looking at an object must not fail
        return "\n".join(lines + ["The list of its tools is not available: %s" % exc])
    for one in tools:
        names = [name + ("" if part.default is part.empty else "=...") for name, part in one.__signature__.parameters.items()]
        note = " ".join(str(one.tool.get("description") or one.tool.get("title") or "").split())
        lines.append("%s(%s)%s" % (one.__name__, ", ".join(names), ": " + note[:_LINE_MAX] if note else ""))
    if server.note:
        lines += ["", server.note]
    lines += ["", "Await them: await mcp_%s.tool(name=value); help(mcp_%s.tool) explains one." % (server.alias, server.alias)]
    return "\n".join(lines)


class Proxy:
    # An MCP server. Its tools are functions: await proxy.tool(name=value), or proxy["tool-name"]. dir() lists them. Its documentation is
    # that of the server, not of this class, so that help() shows the server's text.
    __doc__ = property(lambda self: _overview(self._server, self._functions))

    def __init__(self, server):
        self._server = server
        self._functions = _Functions(server)

    async def list_tools(self):
        """The tools of the server: a list of dictionaries."""
        await self._server.tools_async()
        return self._server.listed()

    def list_tools_sync(self):
        self._server.tools()
        return self._server.listed()

    def __getattr__(self, name):
        if name.startswith("_"):
            raise AttributeError(name)
        return self._functions.get(name)

    def __getitem__(self, name):
        return self._functions.get(name)

    def __dir__(self):
        return ["list_tools", "list_tools_sync"] + self._functions.names()

    def __repr__(self):
        note = " ".join(self._server.description.split())
        return "<MCP server %s%s>" % (self._server.name, ": " + note[:200] if note else "")


class ServerModule(types.ModuleType):
    """mcp.servers.<alias>"""

    def __init__(self, server):
        super().__init__("mcp.servers." + server.alias, server.description or None)
        self.__dict__["_functions"] = _Functions(server)

    def __getattr__(self, name):
        if name == "__all__":
            return self._functions.names()
        if name.startswith("_"):
            raise AttributeError(name)
        return self._functions.get(name)

    def __dir__(self):
        return self._functions.names()


class Servers(dict):
    """mcp_servers: proxies by name or alias."""

    def __missing__(self, name):
        return self[servers.find(name).name]
