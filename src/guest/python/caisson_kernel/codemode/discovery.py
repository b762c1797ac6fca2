# SPDX-License-Identifier: Apache-2.0
"""discovery - mcp.runtime: the servers and tools, their documentation, and a call by name."""
from . import rpc, servers
from .rpc import MCPError

_LIMIT_MAX = 20


def _known():
    """Every server that the sandbox's owner could ask for, as the host lists them."""
    found = (rpc.ask("mcp.servers") or {}).get("servers")
    return [entry for entry in found or () if isinstance(entry, dict)]


def discovered_servers(detailed=False):
    """Names of all servers that your sandboxes may have; with detailed=True also their descriptions. LOADED_MCP_SERVERS has those of
    this sandbox."""
    known = _known()
    if detailed:
        return tuple({"name": e.get("name"), "description": e.get("description") or ""} for e in known)
    return tuple(e.get("name") for e in known)


def list_servers_sync():
    """Names of this sandbox's servers."""
    return tuple(servers.loaded)


async def list_servers():
    """Names of this sandbox's servers."""
    return list_servers_sync()


async def list_tools(server):
    """The tools of a server: dictionaries with name, alias, description and input_schema."""
    found = servers.find(server)
    await found.tools_async()
    return found.listed()


def list_tools_sync(server=None):
    """The same without await."""
    if server is None:
        raise MCPError("list_tools_sync(server) needs a server's name; there are: %s" % (", ".join(servers.loaded) or "none"),
                       code="arguments")
    found = servers.find(server)
    found.tools()
    return tuple(found.listed())


def describe_server(name):
    """A server of this sandbox: name, alias, description and tools."""
    server = servers.find(name)
    return {"name": server.name, "alias": server.alias, "description": server.description, "tools": list(list_tools_sync(name))}


def list_loaded_server_metadata():
    """describe_server() of each server of this sandbox."""
    return tuple(describe_server(name) for name in servers.loaded)


def _detail(value):
    if value not in (None, "summary", "full"):
        raise ValueError("detail must be 'summary' or 'full', not %r" % (value,))
    return value or "summary"


def _document(server, tool, detail):
    doc = {"server": server.name, "serverAlias": server.alias, "tool": tool["name"], "toolAlias": tool["alias"]}
    if tool.get("description"):
        doc["description"] = tool["description"]
    if detail == "full":
        for key in ("inputSchema", "outputSchema", "annotations"):
            if tool.get(key) is not None:
                doc[key] = tool[key]
    return doc


async def query_tool_docs(server, tool=None, detail="summary"):
    """Documentation of all tools of a server, a list; or of one, a dictionary. detail="full" has the schemas."""
    detail, found = _detail(detail), servers.find(server)
    if tool is not None:
        return _document(found, await found.tool_async(tool), detail)
    return [_document(found, one, detail) for one in (await found.tools_async()).values()]


def query_tool_docs_sync(server, tool=None, detail="summary"):
    """The same without await."""
    detail, found = _detail(detail), servers.find(server)
    if tool is not None:
        return _document(found, found.tool(tool), detail)
    return [_document(found, one, detail) for one in found.tools().values()]


def _search(query, limit, detail):
    try:
        limit = max(1, min(_LIMIT_MAX, int(limit)))
    except (TypeError, ValueError):
        raise ValueError("limit must be a number from 1 to %d, not %r" % (_LIMIT_MAX, limit)) from None
    return {"query": str(query), "limit": limit, "detail": _detail(detail)}


def _results(answer, detail):
    docs = []
    for entry in (answer or {}).get("results") or ():
        if isinstance(entry, dict):
            doc = {"server": entry.get("server"), "serverAlias": entry.get("alias"), "tool": entry.get("tool"),
                   "toolAlias": servers.alias_of(str(entry.get("tool"))), "description": entry.get("description") or "",
                   "score": entry.get("score")}
            if detail == "full":
                doc.update((key, entry[key]) for key in ("inputSchema", "outputSchema") if entry.get(key) is not None)
            docs.append(doc)
    return docs


async def search_tool_docs(query, *, limit=5, detail="summary"):
    """The tools of this sandbox's servers that match some words, best first; limit from 1 to 20."""
    return _results(await rpc.request("mcp.search", **_search(query, limit, detail)), detail)


def search_tool_docs_sync(query, *, limit=5, detail="summary"):
    """The same without await."""
    return _results(rpc.ask("mcp.search", **_search(query, limit, detail)), detail)


async def call_tool(server, tool, arguments=None, *, timeout=None, raw=False):
    """Call a tool by name. timeout in seconds; raw=True returns the server's result unchanged, also a reported error."""
    found = servers.find(server)
    return await servers.call(found, await found.tool_async(tool), arguments or {}, timeout, raw)


def call_tool_sync(server, tool, arguments=None, *, timeout=None, raw=False):
    """The same without await."""
    found = servers.find(server)
    return servers.call_sync(found, found.tool(tool), arguments or {}, timeout, raw)


def capability_summary():
    """A summary of a few lines for a model."""
    lines = ["Servers of this sandbox:"]
    lines += ["  mcp_%s%s" % (s.alias, ": " + " ".join(s.description.split())[:120] if s.description else "")
              for s in servers.loaded.values()] or ["  none"]
    lines += [
        "Call: await mcp_<alias>.<tool>(name=value), several at once with asyncio.gather(); without await: .<tool>.sync(...)",
        "Find: dir(mcp_<alias>), help(mcp_<alias>.<tool>), await mcp.runtime.search_tool_docs('words'),",
        "  mcp.runtime.query_tool_docs_sync(server, tool, detail='full'), mcp.runtime.discovered_servers()",
        "Keep: save_memory(key, value), load_memory(key), list_memories(), save_tool(function)",
        "Files: save_file(name, content), save_image(name, figure), render_chart(data, 'bar', x, y)",
        "Only printed text, displayed values and the last expression leave the sandbox. Failures raise mcp.runtime.MCPError.",
    ]
    return "\n".join(lines)


NAMES = ("MCPError", "call_tool", "call_tool_sync", "list_tools", "list_tools_sync", "list_servers", "list_servers_sync",
         "discovered_servers", "describe_server", "list_loaded_server_metadata", "query_tool_docs", "query_tool_docs_sync",
         "search_tool_docs", "search_tool_docs_sync", "capability_summary")
