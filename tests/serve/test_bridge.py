# SPDX-License-Identifier: Apache-2.0
"""test_bridge.py - caisson-bridge: configuration, calls, servers that misbehave, and leftovers after its end.

Servers are fake_mcp.py, whose behaviour the test chooses; tests/mcp/test_bridge_servers.py has real ones.
"""
import json
import os
import signal
import time
from pathlib import Path

import pytest

from bridge_lib import Bridge, CallError, Refused
from process import alive, wait_until
from serve_lib import Daemon

FULL = pytest.mark.skipif(not os.environ.get("CAISSON_BRIDGE_FULL"), reason="takes its time: make bridge-full")
FAKE = str(Path(__file__).with_name("fake_mcp.py"))
PYTHON = "/usr/bin/python3"


def fake(kind="legacy", **more):
    return {"command": PYTHON, "args": [FAKE, kind], **more}


def write(path, servers, key="mcpServers"):
    path.write_text(json.dumps({key: servers}))
    return path


def said(result):
    return result["content"][0]["text"]


def error(call, *args, **more):
    with pytest.raises(CallError) as e:
        call(*args, **more)
    return e.value


@pytest.fixture(scope="module")
def bridge(tmp_path_factory):
    where = tmp_path_factory.mktemp("bridge")
    config = write(where / "mcp.json", {
        "good": fake(env={"SECRET_TOKEN": "${env:BRIDGE_SECRET}", "OTHER": "${MISSING:-standard}"}, cwd=str(where), description="does things"),
        "modern": fake("modern"), "other one": fake(), "mute": fake("mute"), "mute at once": dict(fake("mute"), startup_timeout_sec=0.2), "dies": fake("dies"), "nonsense": fake("nonsense"),
        "closes": fake("closes"), "gone": {"command": "/no/such/program"}, "off": fake(disabled=True),
        "self": {"command": "/usr/bin/caisson", "args": ["mcp"]}, "self2": {"url": "http://localhost:8001/mcp"}})
    with open(where / "log", "wb") as log:
        with Bridge(config, args=["--listen", "127.0.0.1:8001"], stderr=log, env=dict(os.environ, BRIDGE_SECRET="s3cret", LEAK="no")) as b:
            b.log = lambda: (where / "log").read_text()
            b.where = where
            yield b


# ---- configuration ---------------------------------------------------------------------------------------------------


def test_hello_has_names_and_aliases_and_no_secrets(bridge):
    by_name = {s["name"]: s for s in bridge.servers}
    assert by_name["good"] == {"name": "good", "alias": "good", "description": "does things", "transport": "stdio", "state": "idle"}
    assert by_name["other one"]["alias"] == "other_one"
    assert "off" not in by_name and "self" not in by_name and "self2" not in by_name
    assert "mcpServers.self: left out: it is caisson itself" in bridge.log() and "mcpServers.self2: left out" in bridge.log()
    assert "s3cret" not in json.dumps(bridge.servers) and "fake_mcp" not in json.dumps(bridge.servers)


@pytest.mark.parametrize("servers,words", [
    ({"github": {"command": "npx", "args": ["a", "b", 7]}}, "mcpServers.github.args[2]: must be a string"),
    ({"github": {"command": "npx", "startup_timeout_sec": 0}}, "mcpServers.github.startup_timeout_sec: must be a number above 0, of at most 600 s"),
    ({"github": {"command": "npx", "startup_timeout_ms": "soon"}}, "mcpServers.github.startup_timeout_ms: must be a number above 0"),
    ({"x": {"args": []}}, "mcpServers.x: needs a command"),
    ({"x": {"command": "a", "url": "http://b"}}, "mcpServers.x: has both a command and a url"),
    ({"x": {"url": "ftp://b"}}, "mcpServers.x.url: must begin with http://"),
    ({"x": {"url": "http://b", "headers": {"A": "b\r\nC: d"}}}, "mcpServers.x.headers.A: must be one line"),
    ({"x": {"command": "a", "env": {"A": "${NOT_THERE_AT_ALL}"}}}, "mcpServers.x.env.A: the variable NOT_THERE_AT_ALL"),
    ({"x": {"command": "a", "caisson": {"allowed": []}}}, "mcpServers.x.caisson"),
    ({"x": {"url": "http://b", "type": "smoke"}}, "mcpServers.x.type: 'smoke' is unknown"),
    ([], "must be an object with a member mcpServers"),
])
def test_wrong_configuration_is_refused_by_file_and_key(tmp_path, servers, words):
    path = write(tmp_path / "bad.json", servers)
    with pytest.raises(Refused) as e:
        Bridge(path)
    assert str(path) in str(e.value) and words in str(e.value)


def test_a_key_that_is_nearly_one_is_noted(tmp_path):
    path = write(tmp_path / "mcp.json", {"x": dict(fake(), evn={"A": "b"}, Description="d", autoApprove=[], timeout=5)})
    with open(tmp_path / "log", "wb") as log, Bridge(path, stderr=log) as b:
        assert said(b.call("x", "echo", {"text": "well"})) == "well"
    log = (tmp_path / "log").read_text()
    assert str(path) in log and "mcpServers.x: 'evn' is not known, and passed over: is 'env' meant?" in log and "is 'description' meant?" in log
    assert "autoApprove" not in log and "'timeout'" not in log


def test_configuration_that_is_no_json_names_the_line(tmp_path):
    (tmp_path / "bad.json").write_text('{"mcpServers": {\n  oops\n}}')
    with pytest.raises(Refused) as e:
        Bridge(tmp_path / "bad.json")
    assert "bad.json:2:" in str(e.value)


def test_tool_rules_are_passed_on(tmp_path):
    rules = {"allow": ["get_*"], "deny": ["get_secret"]}
    with Bridge(write(tmp_path / "a.json", {"x": fake(caisson=rules)}, key="servers")) as b:
        assert b.servers[0]["rules"] == rules


def test_discovery_reads_hosts_configurations_only_on_request(tmp_path):
    project = tmp_path / "project"
    for name in (".cursor", ".vscode"):
        (project / name).mkdir(parents=True)
    write(project / ".vscode/mcp.json", {"from_code": fake(), "both": fake("mute"), "bad": {"command": 7}}, key="servers")
    write(project / ".cursor/mcp.json", {"from_cursor": fake(), "both": fake()})
    (project / ".mcp.json").write_text("{ // no JSON\n}")
    write(tmp_path / "own.json", {"own": fake()})
    with Bridge(tmp_path / "own.json", cwd=project) as b:
        assert [s["name"] for s in b.servers] == ["own"]
    with open(tmp_path / "log", "wb") as log, Bridge(tmp_path / "own.json", args=["--discover"], cwd=project, stderr=log) as b:
        names = [s["name"] for s in b.servers]
        assert names[:4] == ["own", "from_code", "both", "from_cursor"] and len(set(names)) == len(names)
    log = (tmp_path / "log").read_text()
    assert "servers.bad.command: must be a string" in log and ".mcp.json:1:" in log


@pytest.mark.skipif(os.getuid() != 0, reason="only root can become another user")
def test_root_does_not_run_servers_as_root_unasked(tmp_path, pytestconfig):
    path = write(tmp_path / "mcp.json", {"x": fake()})
    with pytest.raises(Refused) as e:
        Bridge(path, user="")
    assert "--mcp-user NAME" in str(e.value) and str(path) in str(e.value)


@pytest.mark.skipif(os.getuid() != 0, reason="only root can become another user")
def test_root_becomes_the_owner_of_the_file(pytestconfig):
    import pwd
    import shutil
    nobody = pwd.getpwnam("nobody")
    where = pytestconfig.serve_dir / "owned"
    where.mkdir(exist_ok=True)
    path = write(where / "mcp.json", {"x": {"command": PYTHON, "args": [shutil.copy(FAKE, where)]}})
    os.chown(path, nobody.pw_uid, nobody.pw_gid)
    path.chmod(0o600)
    with Bridge(path, user="") as b:
        assert b.call("x", "env")["structuredContent"]["uid"] == nobody.pw_uid


# ---- calls -----------------------------------------------------------------------------------------------------------


def test_calls_in_both_eras(bridge):
    for name in ("good", "modern"):
        tools = [t["name"] for t in bridge.tools(name)]
        assert len(tools) == len(set(tools)) >= 17 and tools[0] == "echo"
        assert bridge.call(name, "echo", {"text": "ä\u2028\U0001f600"}) == \
            {"content": [{"type": "text", "text": "ä\u2028\U0001f600"}], "structuredContent": {"got": {"text": "ä\u2028\U0001f600"}}}
    assert bridge.states("good")[:2] == ["starting", "ready"]


def test_environment_has_only_configured_variables(bridge):
    r = bridge.call("good", "env")
    env = json.loads(said(r))
    assert env["SECRET_TOKEN"] == "s3cret" and env["OTHER"] == "standard" and "LEAK" not in env and "BRIDGE_SECRET" not in env
    assert set(env) - {"SECRET_TOKEN", "OTHER", "LC_CTYPE"} <= {"PATH", "HOME", "LANG"}
    assert r["structuredContent"]["cwd"] == str(bridge.where)


def test_calls_run_side_by_side(bridge):
    futures = [bridge.begin("good", "meet", {"count": 10}) for _ in range(10)]  # no answer comes before all requests have arrived
    assert [said(json.loads(f.result(60))) for f in futures] == ["met"] * 10


def test_failures_of_tools_and_of_the_protocol_differ(bridge):
    f = bridge.begin("good", "fail")
    assert said(json.loads(f.result(60))) == "it went wrong" and f.is_error
    assert error(bridge.call, "good", "no_such").code == "unknown_tool"
    assert error(bridge.call, "nobody", "echo").code == "unknown_server"
    e = error(bridge.call, "good", "error")
    assert e.code == "upstream" and "-32601" in e.message
    for bad in (b"[1]", b"{", b"{}\n", b"null", b'{"a":\xff}'):
        assert error(bridge.begin("good", "echo", bad).result, 20).code == "bad_request"


def test_progress_goes_to_calls_that_asked_for_it(bridge):
    f = bridge.begin("good", "progress", progress=True)
    f.result(60)
    assert [p["progress"] for p in bridge.progress[f.id]] == [1, 2, 3] and bridge.progress[f.id][0]["message"] == "step 0"
    f = bridge.begin("good", "progress")
    f.result(60)
    assert f.id not in bridge.progress


def test_timeout_and_cancellation_reach_the_server(bridge):
    e = error(bridge.call, "good", "sleep", {"seconds": 30}, timeout_ms=200)
    assert e.code == "timeout" and "0.200 s" in e.message
    f = bridge.begin("good", "sleep", {"seconds": 30})
    bridge.call("good", "echo")
    bridge.cancel(f)
    wait_until(lambda: len(json.loads(said(bridge.call("good", "cancelled")))) >= 2)
    assert not f.done()


def test_server_that_asks_is_answered(bridge):
    """Every request of a server is answered at once: no person or model is there to answer. Also one of a server that may not ask."""
    for server in ("good", "modern"):
        answers = json.loads(said(bridge.call(server, "ask")))
        assert answers == {"q0": {}, "q1": -32601, "q2": -32601, "q3": -32601}, server


def test_list_is_kept_until_it_changes(bridge):
    before = [t["name"] for t in bridge.tools("other one")]
    bridge.call("other one", "change")
    bridge.wait_event(event="changed", server="other one")
    after = [t["name"] for t in bridge.tools("other one")]
    assert set(after) - set(before) and set(before) < set(after)


def test_state_is_repeated_and_input_is_refused(bridge):
    assert said(bridge.call("modern", "state")) == "with state"
    assert "asks for input" in error(bridge.call, "modern", "input").message


# ---- large things ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [5 << 20, pytest.param(50 << 20, marks=FULL)])
def test_large_result_and_arguments(bridge, size):
    assert len(said(bridge.call("good", "big", {"bytes": size}, timeout_ms=60000))) == size
    long = "y" * (3 << 20)
    assert said(bridge.call("good", "echo", {"text": long})) == long


@FULL
def test_result_that_is_too_large_is_one_callers_problem(bridge):
    f = bridge.begin("good", "large", {"bytes": 65 << 20}, timeout_ms=60000)
    assert said(bridge.call("good", "echo", {"text": "meanwhile"})) == "meanwhile"
    assert error(f.result, 60).code == "too_large"
    assert said(bridge.call("good", "echo", {"text": "after"})) == "after"


# ---- servers that misbehave --------------------------------------------------------------------------------------------


def test_server_killed_in_mid_call(bridge):
    others = bridge.begin("good", "sleep", {"seconds": 1})
    f = bridge.begin("other one", "sleep", {"seconds": 30})
    pid = bridge.call("other one", "env")["structuredContent"]["pid"]
    os.kill(pid, signal.SIGKILL)
    e = error(f.result, 20)
    assert e.code == "unavailable" and "SIGKILL" in e.message and "not known" in e.hint
    wait_until(lambda: not alive(pid))
    assert said(json.loads(others.result(60))) == "slept"
    deadline = time.monotonic() + 60
    while True:  # after the back-off the server runs again
        try:
            assert said(bridge.call("other one", "echo", {"text": "again"})) == "again"
            break
        except CallError as e:
            assert e.code == "unavailable" and time.monotonic() < deadline
            time.sleep(0.2)


def test_nonsense_between_messages_is_passed_over(bridge):
    assert said(bridge.call("good", "nonsense")) == "after nonsense"


@FULL
def test_server_that_shouts_is_logged_in_part(bridge):
    assert said(bridge.call("good", "shout", {"lines": 5000})) == "shouted"
    assert "line 0 of many" in bridge.log() and "line 4999 of many" not in bridge.log()


def test_unusable_servers_are_reported_with_the_reason(bridge):
    e = error(bridge.call, "gone", "x")
    assert e.code == "unavailable" and "No such file" in e.message and "/no/such" not in e.message
    assert "in a row" in error(bridge.call, "gone", "x").message  # at once: the back-off applies
    assert "failed" in bridge.states("gone")
    assert "nonsense" in error(bridge.call, "nonsense", "x").message
    e = error(bridge.call, "mute", "x", timeout_ms=300)
    assert e.code == "timeout" and e.message.startswith("mute: ") and "still starting" in e.message
    e = error(lambda: bridge.ask({"op": "tools", "server": "mute", "timeout_ms": 300}).result(60))
    assert e.code == "timeout" and e.message.startswith("mute: ")
    e = error(bridge.call, "mute at once", "x")
    assert e.code == "unavailable" and "mute at once: the MCP server does not answer: it was given 0.200 s to start" in e.message
    assert "closed its output" in error(bridge.call, "closes", "x").message
    assert said(bridge.call("dies", "echo", {"text": "legacy then"})) == "legacy then"
    assert said(bridge.call("good", "echo", {"text": "well"})) == "well"


@FULL
def test_too_many_calls_of_one_server(bridge):
    futures = [bridge.begin("good", "sleep", {"seconds": 2}) for _ in range(270)]
    codes = [f.exception(30).code for f in futures if f.exception(30)]
    assert set(codes) == {"busy"} and len(codes) < 30
    assert said(bridge.call("good", "echo", {"text": "well"})) == "well"


# ---- ends ------------------------------------------------------------------------------------------------------------


def children_of(pid):
    return [int(p) for p in Path("/proc/%d/task/%d/children" % (pid, pid)).read_text().split()]


def test_worker_that_is_killed_is_replaced(tmp_path):
    with Bridge(write(tmp_path / "a.json", {"x": fake()})) as b:
        f = b.begin("x", "sleep", {"seconds": 60})
        server = b.call("x", "env")["structuredContent"]["pid"]
        worker = children_of(b.proc.pid)[0]
        os.kill(worker, signal.SIGKILL)
        b.wait_event(event="hello", life=2)
        wait_until(lambda: not alive(server))
        assert error(f.result, 20).code == "internal"
        assert said(b.call("x", "echo", {"text": "again"})) == "again"


def test_nothing_is_left_when_the_front_goes(tmp_path):
    b = Bridge(write(tmp_path / "a.json", {"x": fake(), "y": fake()}))
    pids = [b.call(n, "env")["structuredContent"]["pid"] for n in "xy"] + [int(said(b.call("x", "leave")))] + children_of(b.proc.pid)
    assert all(map(alive, pids))
    assert b.stop() == 0
    assert not [p for p in pids if alive(p)]


@FULL
def test_bridge_that_is_killed_takes_its_servers_along(tmp_path):
    b = Bridge(write(tmp_path / "a.json", {"x": fake()}))
    pids = [b.call("x", "env")["structuredContent"]["pid"]] + children_of(b.proc.pid)
    b.proc.kill()
    b.wait_event(event="end")
    wait_until(lambda: not any(map(alive, pids)))
    b.stop()


# ---- with a daemon ---------------------------------------------------------------------------------------------------


def test_daemon_starts_the_bridge_and_ends_it(pytestconfig, tmp_path):
    config = write(tmp_path / "mcp.json", {"x": fake()})
    user = ["--mcp-user", "root"] if os.getuid() == 0 else []
    d = Daemon(pytestconfig.serve_dir, "--mcp-config", str(config), *user)
    try:
        def bridges():
            return [int(p) for p in os.listdir("/proc") if p.isdigit() and b"caisson-bridge" in read(p) and str(config).encode() in read(p)]
        assert wait_until(lambda: len(bridges()) == 2)
        first = bridges()
        os.kill(d.pid, signal.SIGKILL)  # kill the front: the next one starts a bridge of its own

        def others():
            now = bridges()
            return len(now) == 2 and not set(first) & set(now)

        assert wait_until(others)
        d.stop()
        assert bridges() == []
    finally:
        d.kill()


def read(pid):
    try:
        return Path("/proc/%s/cmdline" % pid).read_bytes()
    except OSError:
        return b""


def test_daemon_refuses_a_wrong_configuration(pytestconfig, tmp_path):
    config = write(tmp_path / "mcp.json", {"x": {"command": 7}})
    user = ["--mcp-user", "root"] if os.getuid() == 0 else []
    with pytest.raises(Exception) as e:
        Daemon(pytestconfig.serve_dir, "--mcp-config", str(config), *user)
    assert "mcpServers.x.command: must be a string" in str(e.value)



def test_another_daemon_as_a_server(pytestconfig, tmp_path):
    """A modern server over HTTP, with a token and a subscription to changes: caisson's own MCP server needs no installation."""
    tokens = tmp_path / "tokens"
    tokens.write_text("me:%s\n" % ("t0ken" * 8))
    tokens.chmod(0o600)
    d = Daemon(pytestconfig.serve_dir, "--token-file", str(tokens), "--pool", "1")
    try:
        url = "http://127.0.0.1:%d/mcp" % d.port
        config = write(tmp_path / "mcp.json", {"far": {"url": url, "headers": {"Authorization": "Bearer ${FAR_TOKEN}"}}, "no": {"url": url}})
        with Bridge(config, env=dict(os.environ, FAR_TOKEN="t0ken" * 8)) as b:
            assert "execute_python" in {t["name"] for t in b.tools("far")}
            assert "42" in json.dumps(b.call("far", "execute_python", {"code": "print(6 * 7)"}))
            f = b.begin("far", "execute_python", {"code": "import time; time.sleep(60)"}, timeout_ms=1000)
            assert error(f.result, 30).code == "timeout"
            e = error(b.call, "no", "execute_python")
            assert e.code == "unavailable" and "401" in e.message
        d.stop()
    finally:
        d.kill()
