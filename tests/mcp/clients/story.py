# SPDX-License-Identifier: Apache-2.0
"""story.py - The same steps as in story.mjs, by the Python SDK of either version: http URL | sse URL | stdio COMMAND ARG..."""
import asyncio
import contextlib
import json
import secrets
import sys


@contextlib.asynccontextmanager
async def session_of_first(kind, at, args):
    from mcp import ClientSession, StdioServerParameters
    from mcp.client.sse import sse_client
    from mcp.client.stdio import stdio_client
    from mcp.client.streamable_http import streamablehttp_client
    wire = {"http": lambda: streamablehttp_client(at), "sse": lambda: sse_client(at),
            "stdio": lambda: stdio_client(StdioServerParameters(command=at, args=args))}[kind]()
    async with wire as streams:
        async with ClientSession(streams[0], streams[1]) as session:
            await session.initialize()
            yield session


@contextlib.asynccontextmanager
async def session_of_second(kind, at, args):
    from mcp import Client, StdioServerParameters
    from mcp.client.stdio import stdio_client
    target = at if kind == "http" else stdio_client(StdioServerParameters(command=at, args=args))
    async with Client(target) as client:
        yield client


async def story(session):
    tools = await session.list_tools()
    name = "story-" + secrets.token_hex(4)

    async def run(code, language="python"):
        return await session.call_tool("execute_code", {"session_id": name, "language": language, "code": code})

    first = await run("x = 20; open('a.csv', 'w').write('1,2')")
    second = await run("print('from', 'a cell'); x * 2 + 2")
    link = next(b for b in first.content if b.type == "resource_link")
    read = await session.read_resource(link.uri)
    raised = await run("1 / 0")
    wrong = await run("1", "cobol")
    get = lambda o, *names: next(getattr(o, n) for n in names if hasattr(o, n))  # noqa: E731
    print(json.dumps({"tools": [t.name for t in tools.tools], "text": second.content[0].text,
                      "structured": get(second, "structured_content", "structuredContent"), "file": read.contents[0].text,
                      "raised": [get(raised, "is_error", "isError"), raised.content[0].text],
                      "wrong": get(wrong, "is_error", "isError")}))


async def main(version, kind, at, *args):
    opener = session_of_first if version == "1" else session_of_second
    async with opener(kind, at, list(args)) as session:
        await story(session)


asyncio.run(main(*sys.argv[1:]))
