# SPDX-License-Identifier: Apache-2.0
"""test_mcp_python.py - MCP servers as code in a python kernel sees them, against a host that the test plays."""
import base64
import json
import os
import signal
import time

import pytest

from mcp_lib import FILES, Host, MCP, Refusal, TOOLS, WEATHER, text
from python_lib import code, ok, trace


@pytest.fixture(scope="module")
def host(shared_kernel):
    return Host(shared_kernel)


@pytest.fixture(autouse=True)
def fresh(host):
    host.__init__(host.kernel)


# --- names and calls

@pytest.mark.parametrize("call", [
    "await mcp_weather.get_weather(city='Rome')", "await mcp_servers['weather'].get_weather(city='Rome')",
    "from mcp.servers.weather import get_weather\nawait get_weather(city='Rome')",
    "from mcp.servers.weather import *\nawait get_weather(city='Rome')",
    "from mcp.servers import weather\nawait weather.get_weather('Rome')",
    "import mcp.runtime as runtime\nawait runtime.call_tool('weather', 'get_weather', {'city': 'Rome'})",
    "mcp.runtime.call_tool_sync('weather', 'get_weather', {'city': 'Rome'})",
    "mcp_weather.get_weather.sync(city='Rome')", "await mcp_weather.get_weather({'city': 'Rome'})",
    "await mcp.weather.get_weather(city='Rome')", "await mcp_weather['get_weather'](city='Rome', units=None)",
    "import asyncio\nasyncio.run(mcp_weather.get_weather(city='Rome'))",
    "async def f(): return await mcp_weather.get_weather(city='Rome')\nasyncio.run(f())",
])
def test_every_way_to_call(host, call):
    assert ok(host.run(call)).text == "{'temp': 21.5}"
    assert host.calls == [("weather", "get_weather", {"city": "Rome"})]


def test_names(host):
    r = ok(host.run("LOADED_MCP_SERVERS, sorted(mcp_servers), mcp_file_system, dir(mcp_weather)"))
    assert r.text == ("(('weather', 'file-system'), ['file-system', 'weather'], <MCP server file-system: Files>, "
                      "['get_forecast', 'get_weather', 'list_tools', 'list_tools_sync', 'slow'])")


def test_nothing_is_there_without_servers(start_python):
    kernel = start_python()
    r = ok(kernel.run("import sys\n[n for n in globals() if 'mcp' in n.lower() or 'memory' in n], "
                      "[m for m in sys.modules if 'codemode' in m]"))
    assert r.text == "([], [])"
    r = kernel.run("import mcp.runtime")
    assert r.error["name"] == "ModuleNotFoundError"


def test_tools_are_asked_for_once_and_only_when_needed(start_python):
    host = Host(start_python())
    ok(host.run("x = 1"))
    assert host.asked == []
    ok(host.run("await mcp_weather.get_weather(city='a'), await mcp_weather.get_weather(city='b')"))
    assert host.asked == ["mcp.tools", "mcp.call", "mcp.call"]


def test_ten_calls_wait_at_once_and_are_answered_in_any_order(host):
    held = []

    def hold(m):
        held.append(m)
        if len(held) == 10:
            for one in reversed(held):
                host.answer(one)
        return True

    host.answers["slow"] = lambda a: text(str(a["n"]))
    r = host.run("import asyncio\nawait asyncio.gather(*(mcp_weather.slow(n=n) for n in range(10)))", hold)
    assert ok(r).text == str(list(range(10)))


def test_threads_may_call(host):
    host.answers["slow"] = lambda a: text(str(a["n"]))
    r = host.run(code("""
        import concurrent.futures
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            got = list(pool.map(lambda n: mcp_weather.slow.sync(n=n), range(20)))
        got
    """))
    assert ok(r).text == str(list(range(20)))


def test_a_loop_in_a_thread_may_call(host):
    r = host.run(code("""
        import threading, asyncio
        got = []
        t = threading.Thread(target=lambda: got.append(asyncio.run(mcp_weather.get_weather(city='Rome'))))
        t.start(); t.join(); got
    """))
    assert ok(r).text == "[{'temp': 21.5}]"


@pytest.mark.parametrize("call", ["await mcp_weather.slow()", "mcp_weather.slow.sync()",
                                  "import asyncio\nasyncio.run(mcp_weather.slow())"])
def test_an_interrupt_ends_the_wait_and_tells_the_host(host, call):
    held = []

    def hold(m):
        held.append(m["id"])
        os.killpg(host.kernel.process.pid, signal.SIGINT)
        return True

    r = host.run(call, hold)
    assert (r.status, r.exit_code, r.error["name"]) == ("interrupted", 130, "KeyboardInterrupt")
    assert host.cancelled == held and len(held) == 1
    host.kernel.send({"type": "rpc_response", "id": held[0], "ok": True, "result": text("late")})
    assert ok(host.run("await mcp_weather.get_weather(city='x')")).text == "{'temp': 21.5}"


@pytest.mark.parametrize("call", ["await mcp_weather.slow()", "mcp_weather.slow.sync()", "asyncio.run(mcp_weather.slow())"])
def test_an_interrupt_while_it_is_sent_tells_the_host(host, call):
    """The signal is there before the call waits for anything."""
    held = []
    assert ok(host.run(code("""
        import asyncio, os, signal
        from caisson_kernel import control
        def send_lines(lines):
            if b'"mcp.call"' in lines:
                del control.channel.send_lines
                os.kill(os.getpid(), signal.SIGINT)
            type(control.channel).send_lines(control.channel, lines)
        control.channel.send_lines = send_lines
    """)))
    r = host.run(call, lambda m: held.append(m["id"]) or True)
    assert (r.status, r.error["name"]) == ("interrupted", "KeyboardInterrupt")
    assert host.cancelled == held and len(held) == 1


@pytest.mark.parametrize("call", ["await mcp_weather.slow()", "mcp_weather.slow.sync()"])
def test_an_interrupt_whose_cancellation_is_faster_is_an_interrupt(host, call):
    def hold(m):
        host.kernel.send({"type": "rpc_response", "id": m["id"], "ok": False, "error": {"code": "cancelled", "message": "interrupted"}})
        time.sleep(0.1)
        os.killpg(host.kernel.process.pid, signal.SIGINT)
        return True

    r = host.run(call, hold)
    assert (r.status, r.error["name"]) == ("interrupted", "KeyboardInterrupt")


def test_a_timeout_of_the_code_tells_the_host(host):
    r = host.run("import asyncio\ntry:\n    await asyncio.wait_for(mcp_weather.slow(), 0.05)\nexcept asyncio.TimeoutError: print('late')",
                 lambda m: True)
    assert ok(r).stdout == "late\n" and len(host.cancelled) == 1


# --- arguments

@pytest.mark.parametrize("given, said", [
    ("", "argument 'city' is required: string (Name of the city)"),
    ("city=3", "argument 'city' must be string, not integer: 3"),
    ("city=''", "argument 'city' must have at least 1 characters, not 0"),
    ("city='x', units='metrik'", "did you mean 'metric'?"),
    ("city='x', days=0", "argument 'days' must be at least 1, not 0"),
    ("city='x', days=11", "argument 'days' must be at most 10, not 11"),
    ("city='x', days=True", "argument 'days' must be integer, not boolean: True"),
    ("city='x', dais=1", "argument 'dais' is unknown; did you mean 'days'?"),
    ("city='x', at={}", "argument 'at'.lat is required: number"),
    ("city='x', at={'lat': 'n'}", "argument 'at'.lat must be number, not string: 'n'"),
    ("city='x', tags=['ok', 'No']", "argument 'tags'[1] must match the pattern ^[a-z]+$, not 'No'"),
    ("city={1, 2}", "argument 'city' must be string, not array"),
    ("city=object()", "cannot be written as JSON"),
    ("city=float('nan')", "cannot be written as JSON"),
])
def test_wrong_arguments_fail_in_the_cell_in_the_schemas_words(host, given, said):
    r = host.run("await mcp_weather.get_weather(%s)" % given)
    assert r.status == "error" and said in r.error["value"], r.error["value"]
    assert host.calls == [] and "caisson" not in trace(r)


def test_the_short_check_agrees_with_the_long_one(host):
    """For the schemas that it accepts, it agrees with the whole check for every value; it accepts no richer schema."""
    r = ok(host.run("""
from caisson_kernel.codemode import schema
values = ["x", "", 1, 1.0, 1.5, True, None, [], {}, -3]
kinds = ["string", "boolean", "integer", "number"]
wrong, taken = [], 0
for a in kinds:
    for required in ([], ["a"], ["a", "b"]):
        for more in ({}, {"additionalProperties": False}, {"title": "t", "description": "d"}):
            form = {"type": "object", "properties": {"a": {"type": a, "description": "x"}, "b": {"type": "string"}}, "required": required, **more}
            short = schema.simple(form)
            taken += short is not None
            for x in values:
                for given in ({"a": x}, {"b": x}, {"a": x, "b": "y"}, {"c": x}, {}):
                    if schema.fits_simple(given, short) == bool(schema.problems(given, form)):
                        wrong.append((form, given))
others = [{"type": "object", "properties": {"a": part}} for part in ({}, True, {"type": ["string"]}, {"type": "string", "minLength": 1}, {"type": "array"},
          {"enum": [1]}, {"$ref": "#"}, {"type": {}}, None)] + [{}, True, None, [], {"type": "string"}, {"type": "object", "minProperties": 1},
          {"type": "object", "additionalProperties": True}, {"type": "object", "properties": []}, {"type": "object", "required": [[]]}, {"anyOf": []}]
print(wrong[:3], taken, [o for o in others if schema.simple(o) is not None])
"""))
    assert r.stdout == "[] 36 []\n", r.stdout


@pytest.mark.parametrize("text, said", [("'x' * (9 << 20)", "characters of JSON, at most 8388608"), ("'\\\\' * 4000000", "at most 12582912 are allowed")])
def test_arguments_that_are_too_large_fail_in_the_cell(host, text, said):
    assert said in host.run("await mcp_weather.slow(a=%s)" % text).error["value"]
    assert host.calls == [] and ok(host.run("1")).text == "1"


def test_the_lists_of_a_proxy(host):
    r = ok(host.run("a, b = await mcp_weather.list_tools(), mcp_weather.list_tools_sync()\na == b == list(mcp.runtime.list_tools_sync('weather')), sorted(a[0])"))
    assert r.text == "(True, ['alias', 'annotations', 'description', 'input_schema', 'name'])"


def test_names_that_python_does_not_have(host):
    host.answers["get-forecast"] = text("ok")
    assert ok(host.run("await mcp_weather.get_forecast(from_='now', user_id=3)")).text == "'ok'"
    assert host.calls == [("weather", "get-forecast", {"from": "now", "user-id": 3})]


@pytest.mark.parametrize("expression, said", [
    ("mcp_weather.get_wether", "weather has no tool 'get_wether', did you mean 'get_weather'?"),
    ("mcp_servers['wether']", "this sandbox has no server 'wether'; it has: file-system, weather"),
    ("mcp.runtime.list_tools_sync('x')", "this sandbox has no server 'x'"),
])
def test_unknown_names(host, expression, said):
    assert said in host.run(expression).error["value"]


def test_hasattr(host):
    assert ok(host.run("hasattr(mcp_weather, 'nope'), hasattr(mcp_weather, 'slow'), hasattr(mcp_weather, '_repr_html_')")).text == \
        "(False, True, False)"


# --- results

PNG = b"\x89PNG\r\n\x1a\n" + bytes(10)


@pytest.mark.parametrize("result, shown", [
    (text("[1, 2]"), "[1, 2]"), (text("hello"), "'hello'"), (text("NaN"), "'NaN'"), ({"content": []}, "None"),
    ({"content": [{"type": "text", "text": "no"}], "structuredContent": {"a": 1}}, "{'a': 1}"),
    ({"content": [{"type": "text", "text": "a"}, {"type": "text", "text": "1"}]}, "['a', 1]"),
    ({"content": [{"type": "image", "mimeType": "image/png", "data": base64.b64encode(PNG).decode()}]}, "<image/png, 18 bytes>"),
    ({"content": [{"type": "resource", "resource": {"uri": "f:///x", "text": "t"}}]}, "'t'"),
    ({"content": [{"type": "resource_link", "uri": "u"}]}, "{'type': 'resource_link', 'uri': 'u'}"),
])
def test_results_are_objects(host, result, shown):
    host.answers["slow"] = result
    r = ok(host.run("x = await mcp_weather.slow()\nx"))
    assert (r.text or "None") == shown
    if "image" in shown:
        assert r.result["data"]["image/png"] == base64.b64encode(PNG).decode()
        assert ok(host.run("x.mime_type, bytes(x[:4])")).text == "('image/png', b'\\x89PNG')"


def test_an_error_of_the_tool(host):
    host.answers["slow"] = dict(text("it broke"), isError=True)
    r = host.run("try:\n    await mcp_weather.slow()\nexcept MCPError as e:\n    print(e, e.server, e.tool, e.code, e.content)")
    assert ok(r).stdout == "weather.slow: it broke weather slow tool [{'type': 'text', 'text': 'it broke'}]\n"
    r = host.run("await mcp_weather.slow()")
    assert r.error["name"] == "MCPError" and "mcp.runtime.MCPError: weather.slow: it broke" in trace(r)


def test_a_refusal(host):
    def refuse(_):
        raise Refusal("refused", "the rule deny slow forbids it", hint="ask the operator")

    host.answers["slow"] = refuse
    r = host.run("await mcp_weather.slow()")
    assert r.error["value"] == "weather.slow: the rule deny slow forbids it (ask the operator)"
    assert ok(host.run("try: await mcp_weather.slow()\nexcept MCPError as e: print(e.code)")).stdout == "refused\n"


def test_a_large_result_comes_in_parts(host):
    host.answers["slow"] = text("x" * (5 << 20))
    assert ok(host.run("r = await mcp_weather.slow()\nlen(r), r.count('x')")).text == str((5 << 20, 5 << 20))


def test_a_result_that_is_too_large_is_an_error_and_nothing_else(host):
    def hold(m):
        for _ in range(4):
            host.kernel.send({"type": "rpc_part", "id": m["id"], "text": "x" * (1 << 20)})
        return True

    ok(host.run("from caisson_kernel.codemode import rpc\nrpc.RESULT_MAX = 3 << 20"))
    r = host.run("try:\n    await mcp_weather.slow()\nfinally:\n    rpc.RESULT_MAX = 64 << 20", hold)
    assert "more than 3 MiB" in r.error["value"] and len(host.cancelled) == 1
    assert ok(host.run("await mcp_weather.get_weather(city='x')")).text == "{'temp': 21.5}"


def test_unrequested_answers_change_nothing(host):
    for m in ({"type": "rpc_response", "id": 10**6, "ok": True, "result": 1}, {"type": "rpc_response"},
              {"type": "rpc_part", "id": [1], "text": 3}, {"type": "rpc_part", "id": "1"}):
        host.kernel.send(m if not isinstance(m.get("id"), list) else {"type": "rpc_part", "id": None, "text": "x"})
    assert ok(host.run("1 + 1")).text == "2"


def test_a_forked_process_can_not_call(host):
    r = host.run(code("""
        import os
        mcp_weather.slow
        if os.fork() == 0:
            try:
                mcp_weather.slow.sync()
            except MCPError as e:
                os.write(1, str(e.code).encode())
            os._exit(0)
        os.wait()[1]
    """))
    assert (ok(r).text, r.stdout) == ("0", "forked") and host.calls == []


# --- documentation

def test_help_and_signature(host):
    r = ok(host.run("import inspect\nprint(inspect.signature(mcp_weather.get_weather))\nhelp(mcp_weather.get_weather)"))
    assert "(city: str, units: str = 'metric', days: int = None, at: dict = None, tags: list = None)" in r.stdout
    for words in ("The weather of a city, now.", "city (string, minLength 1): Name of the city", "one of 'metric', 'imperial'",
                  "changes nothing"):
        assert words in r.stdout


def test_help_of_a_server(host):
    shown = ok(host.run("help(mcp_weather)")).stdout
    assert "Weather of cities" in shown and "get_weather(city, units=..., days=..., at=..., tags=...): The weather of a city, now." in shown
    assert "get_forecast(from_=..., user_id=...): The days to come." in shown and "__init__" not in shown and "Methods" not in shown


def test_help_of_a_server_that_is_down(start_python):
    host = Host(start_python())

    def down(m):
        raise Refusal("unavailable", "weather: it did not start")

    host.op_mcp_tools = down
    shown = ok(host.run("help(mcp_weather)")).stdout
    assert "Weather of cities" in shown and "The list of its tools is not available: weather: it did not start" in shown


def test_discovery(host):
    r = ok(host.run(code("""
        import json, mcp.runtime as rt
        print(json.dumps([rt.discovered_servers(), rt.discovered_servers(detailed=True)[2], rt.list_servers_sync(),
            await rt.list_servers(), [t["alias"] for t in await rt.list_tools("weather")],
            rt.list_tools_sync("file_system")[0]["input_schema"]["required"], rt.describe_server("weather")["description"],
            [s["name"] for s in rt.list_loaded_server_metadata()], await rt.query_tool_docs("weather", "get_forecast"),
            rt.query_tool_docs_sync("weather", "slow", detail="full")["inputSchema"], len(rt.query_tool_docs_sync("weather")),
            rt.search_tool_docs_sync("rain", limit=99), (await rt.search_tool_docs("rain", detail="full"))[0]["inputSchema"],
            "mcp_weather: Weather of cities" in rt.capability_summary()]))
    """)))
    got = json.loads(r.stdout)
    doc = {"server": "weather", "serverAlias": "weather", "tool": "get-forecast", "toolAlias": "get_forecast"}
    assert got == [
        ["weather", "file-system", "other"], {"name": "other", "description": "Not here"}, ["weather", "file-system"],
        ["weather", "file-system"], ["get_weather", "get_forecast", "slow"], ["path"], "Weather of cities",
        ["weather", "file-system"], dict(doc, description="The days to come."), {"type": "object"}, 3,
        [dict(doc, description="d", score=9)], {"type": "object"}, True]


# --- memory and saved functions

def test_memory(host):
    r = ok(host.run(code("""
        print(save_memory("my plan", {"a": [1]}, metadata={"tags": ["x"]}))
        first = get_memory_info("my plan")
        save_memory("my plan", {"a": [2]})
        print(load_memory("my_plan"), load_memory("nope", default=7), memory_exists("my plan"), memory_exists("nope"))
        print(get_memory_info("my plan")["created_at"] == first["created_at"], get_memory_info("nope"))
        print(update_memory("tasks", lambda t: (t or []) + ["one"]), update_memory("tasks", lambda t: t + ["two"]))
        print([m["key"] for m in list_memories()], delete_memory("tasks"), delete_memory("tasks"))
    """)))
    assert r.stdout.splitlines() == [
        "Memory 'my plan' saved.", "{'a': [2]} 7 True False", "True None", "['one'] ['one', 'two']",
        "['my plan', 'tasks'] Memory 'tasks' deleted. Memory 'tasks' not found."]


def test_a_key_is_shown_as_it_was_written(host):
    r = ok(host.run(code("""
        save_memory("my plan!", 1, metadata={"a": 1})
        update_memory("my plan!", lambda n: n + 1)
        save_memory("plain", 1, metadata={".key": "other"})
        print([(m["key"], m["metadata"]) for m in list_memories()], get_memory_info("my_plan_")["key"])
        save_memory("my_plan_", 3)
        print([m["key"] for m in list_memories()])
    """)))
    assert r.stdout.splitlines() == ["[('my plan!', {'a': 1}), ('plain', {'.key': 'other'})] my plan!", "['my_plan_', 'plain']"]


@pytest.mark.parametrize("call, said", [
    ("save_memory(' ', 1)", "a memory key cannot be empty"), ("save_memory('k', object())", "cannot be written as JSON"),
    ("save_memory('k', 1, metadata=[])", "metadata must be a dictionary"),
    ("save_tool(lambda: 1)", "a function that was defined with def"), ("save_tool(3)", "a function that was defined with def")])
def test_what_can_not_be_kept(host, call, said):
    assert said in host.run(call).error["value"]
    assert not host.memory and not host.tools


def test_an_update_that_another_sandbox_overtakes_is_made_again(host):
    r = host.run(code("""
        save_memory("n", 1)
        seen = []
        def up(n):
            seen.append(n)
            if len(seen) == 1:
                save_memory("n", 10)
            return n + 1
        update_memory("n", up), seen, load_memory("n")
    """))
    assert ok(r).text == "(11, [1, 10], 11)"


def test_saved_functions_are_there_in_the_sandbox_that_saved_them(host):
    said = "Tool 'twice' saved. It is available in this sandbox and in future ones.\n"
    assert ok(host.run("@save_tool\ndef twice(n):\n    return 2 * n")).stdout == said
    assert ok(host.run("twice(21)")).text == "42" and "save_tool" not in host.tools["twice"]["source"]
    ok(host.run("def make():\n    def inner(n):\n        return n + 1\n    return save_tool(inner)\nmake()"))
    assert ok(host.run("inner(41), [t['name'] for t in list_saved_tools()]")).text == "(42, ['twice', 'inner'])"


def test_a_list_without_the_refused_tools_says_so(host):
    note = "1 of the 4 tools of weather may not be called: drop (rule: mcpServers.weather.caisson.default read-only)"
    host.op_mcp_tools = lambda m: {"tools": TOOLS[m["server"]], "refused": ["drop"], "note": note}
    host.mcp = {"servers": [], "saved_tools": 0}
    ok(host.run("1"))  # forgets the tools of earlier tests
    host.mcp = MCP
    r = ok(host.run("len(await mcp.runtime.list_tools('weather'))"))
    assert (r.text, r.stderr) == ("3", note + "\n")
    assert ok(host.run("mcp_weather.list_tools_sync(); None")).stderr == "", "it is said once"
    assert note in ok(host.run("help(mcp_weather)")).stdout
    assert note in host.run("mcp_weather.nothing").error["value"]
    host.mcp = {"servers": [], "saved_tools": 0}
    ok(host.run("1"))


def test_saved_functions_are_there_in_the_next_sandbox_and_a_broken_one_is_reported(host, start_python):
    r = ok(host.run(code("""
        import math as m
        rate = 2
        def area(r):
            "Of a circle."
            return m.pi * r * r * rate
        print(save_tool(area))
    """)))
    assert "Tool 'area' saved." in r.stdout and "It uses rate from outside" in r.stdout
    host.tools["broken"] = {"name": "broken", "source": "def broken(:\n"}
    host.tools["late"] = {"name": "late", "source": "def late(): return 1 / 0\n"}
    after = Host(start_python(), dict(MCP, saved_tools=3))
    after.tools = host.tools
    r = ok(after.run("rate = 1\nround(area(1), 2)"))
    assert r.text == "3.14" and "saved tool 'broken' was not loaded: SyntaxError" in r.stderr
    r = after.run("late()")
    assert r.error["name"] == "ZeroDivisionError" and "def late(): return 1 / 0" in trace(r)
    assert after.asked.count("tool.list") == 1


# --- other things

def test_a_name_of_the_users_own_stays(start_python):
    host = Host(start_python())
    ok(host.run("save_memory = 3; mcp_weather = 4"))
    assert ok(host.run("save_memory, mcp_weather")).text == "(3, 4)"
    host.mcp = {"servers": [FILES], "saved_tools": 0}
    assert ok(host.run("save_memory, mcp_weather, LOADED_MCP_SERVERS")).text == "(3, 4, ('file-system',))"
    host.mcp = {"servers": [WEATHER], "saved_tools": 0}
    r = host.run("mcp_file_system")
    assert r.error["name"] == "NameError"


def test_an_mcp_package_of_the_users_own_goes_on_to_work(start_python, tmp_path):
    (tmp_path / "mcp").mkdir()
    (tmp_path / "mcp" / "__init__.py").write_text("VERSION = 7\n")
    (tmp_path / "mcp" / "client.py").write_text("class Client: pass\n")
    host = Host(start_python())
    r = ok(host.run("mcp.runtime.list_servers_sync(), mcp.VERSION"))
    assert r.text == "(('weather', 'file-system'), 7)"
    r = ok(host.run("import mcp, mcp.runtime\nfrom mcp.client import Client\nfrom mcp.servers.weather import get_weather\n"
                    "mcp.VERSION, mcp.runtime.list_servers_sync(), Client.__name__"))
    assert r.text == "(7, ('weather', 'file-system'), 'Client')"


def test_files_and_time(host, tmp_path):
    r = ok(host.run(code("""
        import caisson_kernel.codemode.artifacts as a
        a._BASE = %r
        print(save_file("a.csv", "x,y"), save_image("p.png", b"png"))
        print(list_execution_files(), execution_folder().name == "%%03d" %% a.number)
        import mcp.runtime as rt, datetime
        noon = datetime.datetime(2026, 1, 1, 12)
        assert rt.convert_time("2026-01-01T12:00:00Z", "Asia/Tokyo") == rt.convert_time("2026-01-01 12:00", "UTC") == rt.convert_time(noon, "UTC")
        print(rt.convert_time(noon, "Asia/Tokyo").hour, rt.now().tzinfo, len(rt.list_timezones("Europe")) > 10)
    """ % str(tmp_path))))
    lines = r.stdout.splitlines()
    assert lines[0].split() == [str(next(tmp_path.glob("*/data/a.csv"))), str(next(tmp_path.glob("*/images/p.png")))]
    assert lines[1:] == ["{'images': ['p.png'], 'data': ['a.csv'], 'other': []} True", "21 UTC True"]


@pytest.mark.parametrize("call, said", [("save_file('../x', 'y')", "without .."), ("save_file('x', 3)", "str or bytes"),
                                        ("mcp.runtime.now('Mars/Base')", "unknown time zone"),
                                        ("mcp.runtime.convert_time('soon', 'UTC')", "'soon' is not a time"),
                                        ("mcp.runtime.convert_time(7, 'UTC')", "takes a datetime or ISO text first, not int"),
                                        ("render_chart({'x': 1}, 'bar', 'x', 'y')", "a dictionary of lists or a DataFrame, not {'x': 1}"),
                                        ("render_chart([1], 'bar', 'x', 'y')", "data must be a list of dictionaries"),
                                        ("render_chart({'x': [1, 2], 'y': [1]}, 'bar', 'x', 'y')", "of one length: 'x' has 2, 'y' has 1"),
                                        ("render_chart({'x': [1], 'y': [1]}, 'bar', 'x', 'z')", "no row has 'z'; there are: 'x', 'y'"),
                                        ("render_chart([], 'pie', 'x', 'y')", "chart_type must be one of bar, line, scatter")])
def test_wrong_files_and_times(host, call, said):
    assert said in host.run(call).error["value"]
