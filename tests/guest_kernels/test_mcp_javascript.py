# SPDX-License-Identifier: Apache-2.0
"""test_mcp_javascript.py - MCP servers as code in a javascript kernel sees them, against a host that the test plays."""
import base64
import json
import os
import signal

import pytest

from kernel_lib import GUEST, Kernel, interpreter
from mcp_lib import MCP, Host, Refusal, text

NODE = interpreter("node", "/usr/bin/node")
DRIVER = GUEST / "javascript" / "driver.js"
pytestmark = pytest.mark.skipif(not NODE, reason="no node on this machine")


@pytest.fixture(scope="module")
def host(tmp_path_factory):
    kernel = Kernel([NODE, DRIVER], cwd=tmp_path_factory.mktemp("js"))
    yield Host(kernel)
    assert kernel.alive() and kernel.close() == 0


@pytest.fixture(autouse=True)
def fresh(host):
    host.__init__(host.kernel)


def ok(result):
    assert (result.status, result.error) == ("ok", None), result
    return result


@pytest.mark.parametrize("call", [
    "await mcp.weather.get_weather({city: 'Rome'})", "await mcp.servers['weather'].get_weather({city: 'Rome'})",
    "await mcp.runtime.call_tool('weather', 'get_weather', {city: 'Rome'})",
    "async function f() { return mcp.weather.get_weather({city: 'Rome'}) }\nawait f()",
])
def test_every_way_to_call(host, call):
    assert ok(host.run(call)).text == "{ temp: 21.5 }"
    assert host.calls == [("weather", "get_weather", {"city": "Rome"})]


def test_nothing_is_there_without_servers(tmp_path):
    kernel = Kernel([NODE, DRIVER], cwd=tmp_path)
    assert kernel.run("typeof mcp").text == "'undefined'"
    kernel.close()


def test_ten_calls_wait_at_once(host):
    held = []

    def hold(m):
        held.append(m)
        if len(held) == 10:
            for one in reversed(held):
                host.answer(one)
        return True

    host.answers["slow"] = lambda a: text(str(a["n"]))
    r = host.run("(await Promise.all([...Array(10).keys()].map((n) => mcp.weather.slow({n})))).join()", hold)
    assert ok(r).text == "'0,1,2,3,4,5,6,7,8,9'"


def test_an_interrupt_ends_the_wait_and_tells_the_host(host):
    held = []

    def hold(m):
        held.append(m["id"])
        os.killpg(host.kernel.process.pid, signal.SIGINT)
        return True

    r = host.run("await mcp.weather.slow({})", hold)
    assert (r.status, r.exit_code) == ("interrupted", 130) and host.cancelled == held and len(held) == 1
    host.kernel.send({"type": "rpc_response", "id": held[0], "ok": True, "result": text("late")})
    assert ok(host.run("(await mcp.weather.get_weather({city: 'x'})).temp")).text == "21.5"


@pytest.mark.parametrize("given, said", [
    ("", "argument 'city' is required: string (Name of the city)"), ("{city: 3}", "argument 'city' must be string, not integer: 3"),
    ("{city: ''}", "must have at least 1 characters, not 0"), ("{city: 'x', units: 'metrik'}", 'did you mean "metric"?'),
    ("{city: 'x', days: 11}", "argument 'days' must be at most 10, not 11"),
    ("{city: 'x', dais: 1}", "argument 'dais' is unknown; did you mean 'days'?"),
    ("{city: 'x', at: {}}", "argument 'at'.lat is required: number"),
    ("{city: 'x', tags: ['ok', 'No']}", "argument 'tags'[1] must match the pattern ^[a-z]+$"),
    ("{city: NaN}", "cannot be written as JSON"), ("{city: 1n}", "cannot be written as JSON"), ("'Rome'", "arguments must be an object"),
])
def test_wrong_arguments_fail_in_the_cell(host, given, said):
    r = host.run("await mcp.weather.get_weather(%s)" % given)
    assert r.status == "error" and said in r.error["value"], r.error["value"]
    assert host.calls == []


def test_arguments_that_are_too_large_fail_in_the_cell(host):
    assert "at most 12582912 are allowed" in host.run("await mcp.weather.slow({a: '\\\\'.repeat(4000000)})").error["value"]
    assert host.calls == [] and ok(host.run("1")).text == "1"


PNG = b"\x89PNG\r\n\x1a\n" + bytes(10)


@pytest.mark.parametrize("result, shown", [
    (text("[1, 2]"), "[ 1, 2 ]"), (text("hello"), "'hello'"), ({"content": []}, "null"),
    ({"content": [{"type": "text", "text": "no"}], "structuredContent": {"a": 1}}, "{ a: 1 }"),
    ({"content": [{"type": "text", "text": "a"}, {"type": "text", "text": "1"}]}, "[ 'a', 1 ]"),
    ({"content": [{"type": "image", "mimeType": "image/png", "data": base64.b64encode(PNG).decode()}]}, "<image/png, 18 bytes>"),
])
def test_results_are_objects(host, result, shown):
    host.answers["slow"] = result
    r = ok(host.run("await mcp.weather.slow()"))
    assert r.text == shown
    if "image" in shown:
        assert r.result["data"]["image/png"] == base64.b64encode(PNG).decode()


def test_errors(host):
    host.answers["slow"] = dict(text("it broke"), isError=True)
    r = host.run("try { await mcp.weather.slow() } catch (e) { console.log(e instanceof MCPError, e.code, e.message) }")
    assert ok(r).stdout == "true tool weather.slow: it broke\n"

    def refuse(_):
        raise Refusal("refused", "a rule forbids it", hint="ask the operator")

    host.answers["slow"] = refuse
    r = host.run("await mcp.weather.slow()")
    assert r.error["name"] == "MCPError" and r.error["value"] == "weather.slow: a rule forbids it (ask the operator)"
    assert "did you mean 'get_weather'?" in host.run("await mcp.weather.get_wether({})").error["value"]
    assert "it has: weather, file-system" in host.run("mcp.wether").error["value"]


def test_a_large_result_comes_in_parts(host):
    host.answers["slow"] = text("x" * (5 << 20))
    assert ok(host.run("(await mcp.weather.slow()).length")).text == str(5 << 20)


def test_discovery_and_memory(host):
    r = ok(host.run("""
        const rt = mcp.runtime;
        console.log(JSON.stringify([await rt.discovered_servers(), (await rt.list_tools('weather')).map((t) => t.alias),
            (await rt.query_tool_docs('weather', 'get_forecast')).description, (await rt.query_tool_docs('weather', {detail: 'full'})).length,
            (await rt.search_tool_docs('rain', {limit: 99, detail: 'full'}))[0].inputSchema, (await rt.describe_server('file_system')).name,
            rt.capability_summary().includes('mcp.weather: Weather of cities')]));
        console.log(JSON.stringify([await rt.save_memory('a b', {x: 1}, {metadata: {t: 1}}), await rt.load_memory('a_b'), await rt.load_memory('no', {default: 7}),
            await rt.memory_exists('a b'), await rt.update_memory('n', (n) => (n || 0) + 1), await rt.update_memory('n', (n) => n + 1),
            (await rt.list_memories()).map((m) => m.key), await rt.delete_memory('n'), await rt.delete_memory('n')]));
    """))
    one, two = map(json.loads, r.stdout.splitlines())
    assert one == [["weather", "file-system", "other"], ["get_weather", "get_forecast", "slow"], "The days to come.", 3, {"type": "object"},
                   "file-system", True]
    assert two == ["Memory 'a b' saved.", {"x": 1}, 7, True, 1, 2, ["a b", "n"], "Memory 'n' deleted.", "Memory 'n' not found."]


def test_names(host):
    r = ok(host.run("console.log(JSON.stringify([Object.keys(mcp), typeof MCPError, await mcp.runtime.list_servers(), 'x' in mcp]))\nconsole.log(mcp.weather)"))
    assert json.loads(r.stdout.splitlines()[0]) == [["runtime", "MCPError", "weather", "file_system"], "function", ["weather", "file-system"], False]


def lines(result):
    return [json.loads(one) for one in ok(result).stdout.splitlines()]


def test_a_proxy_shows_its_tools(host):
    """Also before a call of one of them: code that shows a server starts when its tools are known."""
    assert lines(host.run("console.log(JSON.stringify(Object.keys(mcp.weather)))")) == [["get_weather", "get_forecast", "slow"]]
    assert host.asked.count("mcp.tools") <= 1
    shown = ok(host.run("mcp.weather")).text
    assert ok(host.run("console.log(require('util').inspect(mcp.weather))")).stdout == shown + "\n"
    assert shown.splitlines()[0] == "MCP server weather: Weather of cities"
    assert "  get_weather({ city, units?, days?, at?, tags? }): The weather of a city, now." in shown.splitlines()
    help = ok(host.run("console.log(mcp.weather.get_weather.help)")).stdout
    assert "    city (string, minLength 1): Name of the city" in help and "According to the server, it changes nothing." in help
    assert ok(host.run("console.log(`${mcp.weather.get_weather}`)")).stdout == help
    assert ok(host.run("console.log('slow' in mcp.weather, 'no' in mcp.weather, mcp.weather.get_weather.name)")).stdout == "true false get_weather\n"


def test_a_list_without_the_refused_tools_says_so(host):
    note = "1 of the 4 tools of weather may not be called: drop (rule: mcpServers.weather.caisson.default read-only)"
    weather = {"tools": [t for t in host.op_mcp_tools({"server": "weather"})["tools"]], "refused": ["drop"], "note": note}
    host.op_mcp_tools = lambda m: weather
    host.mcp = {"servers": [], "saved_tools": 0}
    ok(host.run("1"))  # forgets the tools of earlier tests
    host.mcp = MCP
    r = ok(host.run("(await mcp.runtime.list_tools('weather')).length"))
    assert (r.text, r.stderr) == ("3", note + "\n")
    assert ok(host.run("(await mcp.weather.list_tools()).length")).stderr == "", "it is said once"
    assert note in ok(host.run("mcp.weather")).text and note in host.run("await mcp.weather.nothing()").error["value"]
    host.mcp = {"servers": [], "saved_tools": 0}
    ok(host.run("1"))


def test_what_a_server_that_is_down_shows(tmp_path):
    kernel = Kernel([NODE, DRIVER], cwd=tmp_path)
    host = Host(kernel)

    def down(m):
        raise Refusal("unavailable", "weather: it did not start")

    host.op_mcp_tools = down
    assert "weather: it did not start" in ok(host.run("mcp.weather")).text
    assert ok(host.run("Object.keys(mcp.weather).length")).text == "0"
    del host.op_mcp_tools
    assert ok(host.run("Object.keys(mcp.weather).length")).text == "3", "it is asked again"
    assert kernel.close() == 0


def test_an_interrupt_while_tools_are_looked_up(tmp_path):
    kernel = Kernel([NODE, DRIVER], cwd=tmp_path)
    host = Host(kernel)
    answer, host.answer = host.answer, lambda m: os.killpg(kernel.process.pid, signal.SIGINT)
    r = host.run("Object.keys(mcp.weather); ran = 1")
    assert (r.status, r.exit_code, len(host.cancelled)) == ("interrupted", 130, 1)
    host.answer = answer
    assert ok(host.run("[typeof ran, Object.keys(mcp.weather).length].join()")).text == "'undefined,3'"
    assert kernel.close() == 0


def test_what_is_no_file(host):
    for bad in ("save_file('../x', '')", "save_file('/x', '')", "save_file('x', '', {subdir: '..'})", "save_image('x', 7)", "save_file('x', 7)"):
        assert host.run("await mcp.runtime.%s" % bad).error["name"] == "TypeError", bad
    assert "matplotlib" in host.run("await mcp.runtime.render_chart([], 'bar', 'x', 'y')").error["value"]


@pytest.mark.parametrize("given, zone, said", [
    ("'2026-07-01T12:00:00'", "Europe/Rome", "2026-07-01T14:00:00.000+02:00"), ("'2026-01-01 12:00:00+01:00'", "UTC", "2026-01-01T11:00:00.000+00:00"),
    ("new Date(0)", "America/St_Johns", "1969-12-31T20:30:00.000-03:30"), ("1500", "Asia/Kolkata", "1970-01-01T05:30:01.500+05:30"),
    ("'2026-01-01'", "UTC", "2026-01-01T00:00:00.000+00:00"),
])
def test_time(host, given, zone, said):
    assert lines(host.run("const t = mcp.runtime.convert_time(%s, '%s'); console.log(JSON.stringify([t, t instanceof Date, t.timezone]))" % (
        given, zone))) == [[said, True, zone]]


def test_time_that_is_none(host):
    assert "unknown time zone" in host.run("mcp.runtime.now('Mars/Here')").error["value"]
    for bad in ("'soon'", "null", "{}", "new Date('x')"):
        assert "convert_time takes" in host.run("mcp.runtime.convert_time(%s, 'UTC')" % bad).error["value"]
    assert ok(host.run("const z = mcp.runtime.list_timezones('Europe'); [z.includes('Europe/Rome'), z.every((n) => n.startsWith('Europe'))]")).text == "[ true, true ]"
    assert ok(host.run("Math.abs(mcp.runtime.now('Europe/Rome') - Date.now()) < 60000")).text == "true"


def test_names_of_the_servers(host):
    assert ok(host.run("LOADED_MCP_SERVERS.push('x'); LOADED_MCP_SERVERS.length")).text == "2"
    assert ok(host.run("[LOADED_MCP_SERVERS, mcp.runtime.LOADED_MCP_SERVERS].join(';')")).text == "'weather,file-system;weather,file-system'"


def test_saved_functions(host, tmp_path):
    saved = ok(host.run("""
        async function twice(n) { return n * 2 }
        const thrice = (n) => n * 3;
        await mcp.runtime.save_tool(twice);
        await mcp.runtime.save_tool(thrice)
    """)).text
    assert "Tool 'thrice' saved." in saved
    ok(host.run("await (async () => { const inner = (n) => n + 1; await mcp.runtime.save_tool(inner) })()"))
    assert ok(host.run("inner(41)")).text == "42"
    ok(host.run("await mcp.runtime.delete_tool('inner')"))
    for bad in ("() => 1", "7", "Math.max", "({m() { return 1 }}).m"):
        assert "save_tool" in host.run("await mcp.runtime.save_tool(%s)" % bad).error["value"]
    host.tools["bad"] = {"name": "bad", "source": "// javascript\nfunction (", "created_at": 1, "updated_at": 1}
    host.tools["theirs"] = {"name": "theirs", "source": "def theirs(): pass\n", "created_at": 1, "updated_at": 1}
    other = Host(Kernel([NODE, DRIVER], cwd=tmp_path), dict(MCP, saved_tools=4))
    other.tools = host.tools
    r = ok(other.run("[await twice(21), thrice(2), typeof theirs].join()"))
    assert r.text == "'42,6,undefined'" and "saved tool 'bad' was not loaded" in r.stderr and "theirs" not in r.stderr
    assert lines(other.run("console.log(JSON.stringify((await mcp.runtime.list_saved_tools()).map((t) => [t.name, t.language])))")) == [
        [["twice", "javascript"], ["thrice", "javascript"], ["bad", "javascript"], ["theirs", "python"]]]
    assert ok(other.run("await mcp.runtime.delete_tool('bad')")).text == '"Tool \'bad\' deleted."'
    assert other.kernel.close() == 0
