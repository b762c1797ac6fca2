# SPDX-License-Identifier: Apache-2.0
"""servers - The sandbox's MCP servers: their tools, and calls to them.

Theory of operation. `execute` brings names and aliases; the tools of a server are requested at their first use (the host may have to
start the server for that) and kept. An unknown tool is requested once more, since servers change their lists. Every call goes through
prepare(), which checks the arguments against the schema, so no malformed call leaves the cell; and through result.unwrap().
"""
import difflib
import keyword
import re
import sys

from . import result, rpc, schema
from .rpc import MCPError


class UnknownTool(MCPError, AttributeError):
    """An AttributeError too, so that hasattr() works on a proxy."""
    __module__ = "mcp.runtime"


class Tool(dict):
    """A tool as its server lists it, with an alias and everything that each call needs."""
    __slots__ = ("parameters", "names", "optional", "simple", "refused")

    def __init__(self, entry, taken=None, refused=False):
        super().__init__(entry, alias=alias_of(entry["name"], taken))
        self.refused = refused
        self.parameters = schema.parameters(self.get("inputSchema"))
        self.names = {python: name for python, name, _, _ in self.parameters}
        self.optional = {name: part for _, name, part, required in self.parameters if not required}
        self.simple = schema.simple(self.get("inputSchema"))


class Server:
    def __init__(self, entry):
        self.name = str(entry.get("name"))
        self.alias = str(entry.get("alias") or alias_of(self.name))
        self.description = str(entry.get("description") or "")
        self._tools = None  # by name
        self._refused = ()  # names that this sandbox may not call
        self.note = ""  # about these, in the host's words
        self._noted = None

    def forget(self):
        self._tools = None

    def _keep(self, answer):
        tools, taken = {}, set()
        for tool in (answer or {}).get("tools") or ():
            if isinstance(tool, dict) and isinstance(tool.get("name"), str):
                tools[tool["name"]] = Tool(tool, taken)
        self._tools = tools
        refused = (answer or {}).get("refused")
        self._refused = refused if isinstance(refused, list) else ()
        self.note = str((answer or {}).get("note") or "")
        return tools

    def listed(self):
        """The known tools as they are shown in lists. That the rules leave some out is printed on stderr, once."""
        if self.note and self.note != self._noted:
            self._noted = self.note
            print(self.note, file=sys.stderr)
        return [listed(tool) for tool in self._tools.values()]

    def tools(self):
        if self._tools is not None:
            return self._tools
        return self._keep(rpc.ask("mcp.tools", server=self.name))

    async def tools_async(self):
        if self._tools is not None:
            return self._tools
        return self._keep(await rpc.request("mcp.tools", server=self.name))

    def _among(self, name):
        tools = self._tools
        if name in tools:
            return tools[name]
        found = next((tool for tool in tools.values() if tool["alias"] == name), None)
        if found is None and name in self._refused:
            # The host's refusal names the rule, and the host records the attempt.
            found = Tool({"name": name, "inputSchema": {}}, refused=True)
        return found

    def _unknown(self, name):
        tools = self._tools
        near = difflib.get_close_matches(name, [n for t in tools.values() for n in (t["alias"], t["name"])], 1)
        shown = ", ".join(sorted(t["alias"] for t in tools.values())[:40]) or "none"
        return UnknownTool("%s has no tool %r%s; it has: %s%s" % (
            self.name, name, ", did you mean %r?" % near[0] if near else "", shown, "; " + self.note if self.note else ""),
            code="unknown_tool", server=self.name, tool=name)

    def tool(self, name):
        """A tool by name or alias; raises UnknownTool with the most similar one."""
        self.tools()
        found = self._among(name)
        if found is None:
            self.forget()
            self.tools()
            found = self._among(name)
        if found is None:
            raise self._unknown(name)
        return found

    async def tool_async(self, name):
        await self.tools_async()
        found = self._among(name)
        if found is None:
            self.forget()
            await self.tools_async()
            found = self._among(name)
        if found is None:
            raise self._unknown(name)
        return found


def alias_of(name, taken=None):
    """An identifier for a name; `taken`, if given, has the used ones."""
    alias = re.sub(r"\W", "_", name) or "_"
    alias = "_" + alias if alias[0].isdigit() else alias
    alias = alias + "_" if keyword.iskeyword(alias) else alias
    if taken is not None:
        base, number = alias, 2
        while alias in taken:
            alias, number = "%s_%d" % (base, number), number + 1
        taken.add(alias)
    return alias


def listed(tool):
    """A tool as it is shown in lists."""
    shown = {"name": tool["name"], "alias": tool["alias"], "description": tool.get("description") or "",
             "input_schema": tool.get("inputSchema")}
    for theirs, ours in (("title", "title"), ("outputSchema", "output_schema"), ("annotations", "annotations")):
        if tool.get(theirs) is not None:
            shown[ours] = tool[theirs]
    return shown


# ---- the servers of this sandbox

loaded = {}  # by name


def load(entries):
    """Load the servers of an `execute`. Known tools of a server that stays are kept."""
    fresh = {}
    for entry in entries if isinstance(entries, list) else ():
        if isinstance(entry, dict) and entry.get("name"):
            server = Server(entry)
            fresh[server.name] = loaded.get(server.name, server)
    loaded.clear()
    loaded.update(fresh)


def find(name):
    """By name or alias."""
    if isinstance(name, Server):
        return name
    server = loaded.get(name) or next((s for s in loaded.values() if s.alias == name), None)
    if server is None:
        raise MCPError("this sandbox has no server %r; it has: %s" % (name, ", ".join(sorted(loaded)) or "none"),
                       code="unknown_server", server=name, hint="name it in `servers` when the sandbox is created")
    return server


# ---- calls

def arguments_of(server, tool, args, kwargs):
    """The arguments of a tool's function, under the names of its schema."""
    own = tool.parameters
    if tool.refused:
        return kwargs  # the arguments of a refused tool are unknown here, and do not matter
    if len(args) == 1 and not kwargs and isinstance(args[0], dict) and not (
            own and isinstance(own[0][2], dict) and own[0][2].get("type") == "object"):
        return dict(args[0])  # a dictionary of arguments, as other clients take it
    if len(args) > len(own):
        raise TypeError("%s.%s takes %d arguments, not %d: %s" % (
            server.name, tool["name"], len(own), len(args), ", ".join(p[0] for p in own) or "none"))
    given = {}
    for (_, name, _, _), value in zip(own, args):
        given[name] = value
    for key, value in kwargs.items():
        name = tool.names.get(key, key)
        if name in given:
            raise TypeError("%s.%s got argument %r twice" % (server.name, tool["name"], key))
        given[name] = value
    return given


def _prepare(server, tool, given):
    """The text of the arguments if they fit. An optional argument that is None, where null is not allowed, is left out."""
    form = tool.get("inputSchema")
    if not isinstance(given, dict):
        raise TypeError("%s.%s: arguments must be a dictionary, not %s" % (server.name, tool["name"], type(given).__name__))
    simple = tool.simple
    if simple is not None and schema.fits_simple(given, simple):
        return rpc.text(given, "%s.%s: arguments" % (server.name, tool["name"]))
    given = {str(name): value for name, value in given.items()
             if not (value is None and name in tool.optional and schema.problems(None, tool.optional[name]))}
    text = rpc.text(given, "%s.%s: arguments" % (server.name, tool["name"]))
    plain = given if all(isinstance(v, (str, int, float, bool, type(None))) for v in given.values()) else result._loads(text)
    wrong = schema.problems(plain, form)
    if wrong:
        raise MCPError("%s.%s: %s" % (server.name, tool["name"], "; ".join(wrong)), code="arguments", server=server.name,
                       tool=tool["name"], hint="help(mcp_%s.%s) shows what it takes" % (server.alias, tool["alias"]))
    return text


def _fields(server, tool, given, timeout):
    fields = {"server": server.name, "tool": tool["name"], "arguments": _prepare(server, tool, given)}
    if timeout is not None:
        fields["timeout_ms"] = max(1, int(timeout * 1000))
    return fields


def _named(exc, server, tool):
    """The host's refusal of a call names the rule."""
    if exc.server is None:
        exc.server, exc.tool = server.name, tool["name"]
        exc.args = ("%s.%s: %s" % (server.name, tool["name"], exc.args[0]),)
    return exc


async def call(server, tool, given, timeout=None, raw=False):
    try:
        answer = await rpc.request("mcp.call", **_fields(server, tool, given, timeout))
    except MCPError as exc:
        raise _named(exc, server, tool)
    return answer if raw else result.unwrap(answer, server.name, tool)


def call_sync(server, tool, given, timeout=None, raw=False):
    try:
        answer = rpc.ask("mcp.call", **_fields(server, tool, given, timeout))
    except MCPError as exc:
        raise _named(exc, server, tool)
    return answer if raw else result.unwrap(answer, server.name, tool)
