# SPDX-License-Identifier: Apache-2.0
"""test_mcp_stdio.py - `caisson mcp`: standard input and output, with a running daemon and with a private one."""
import json
import os
import signal
import tempfile

import pytest

from integ_lib import run
from process import BIN, HANG, unique, wait_until
from serve_lib import Held
from wire_lib import Pipes, code, idle, modern, note, request, started_with

FOREVER = "import time\nwhile True: time.sleep(.05)"


def of(d):
    return "--url", "http://127.0.0.1:%d" % d.port


@pytest.fixture
def alone(short_dir):
    """An environment without a daemon, and with a temporary directory of its own."""
    return {"CAISSON_STATE": str(short_dir / "state"), "XDG_RUNTIME_DIR": str(short_dir)}


def left(short_dir):
    return [p.name for p in short_dir.iterdir()] + started_with(str(short_dir) + "/caisson-mcp")


# ---- with a daemon that runs --------------------------------------------------------------------------------


def test_both_eras_on_one_pipe(daemon):
    name = unique()
    with Pipes(*of(daemon)) as p:
        assert p.call(modern("server/discover", id="d"))["result"]["supportedVersions"] == ["2026-07-28"]
        assert p.hello("2025-06-18")["protocolVersion"] == "2025-06-18"
        assert p.call(code("x = 41", name))["result"]["isError"] is False
        m = modern("tools/call", {"name": "execute_code", "arguments": {"session_id": name, "language": "python", "code": "x + 1"}}, "m")
        assert p.call(m)["result"]["structuredContent"]["result"] == "42"
        # the sandbox belongs to the daemon: other clients see it
        assert daemon.execute("x", session_id=name)["result"]["text/plain"] == "41"
        assert p.end() == 0
        assert p.said == b""


def test_answers_come_when_they_are_ready_and_all_before_the_end(daemon):
    with Pipes(*of(daemon)) as p:
        p.hello()
        held = Held(daemon, "'slow'")
        p.send(code(held.code, unique(), "slow"))
        assert p.call(request("ping", id="fast"))["id"] == "fast"
        p.send(code("'second'", unique(), "second"))
        p.p.stdin.close()
        held.let_go()
        rest = {m["id"]: m["result"]["structuredContent"]["result"] for m in iter(p.receive, None)}
        assert rest == {"slow": "'slow'", "second": "'second'"}
        assert p.p.wait(HANG) == 0


def test_progress(daemon):
    with Pipes(*of(daemon)) as p:
        p.hello()
        held = Held(daemon)
        p.send(code(held.code.replace("while not go: ", "while not go:\n  print('line', flush=True); "), unique(), 5, meta={"progressToken": 7}))
        got = [p.receive() for _ in range(3)]
        held.let_go()
        while "id" not in got[-1]:
            got.append(p.receive())
        assert got[-1]["id"] == 5 and len(got) > 3
        steps = [m["params"]["progress"] for m in got[:-1]]
        assert steps == sorted(set(steps))


def test_lines_that_are_no_messages(daemon):
    with Pipes(*of(daemon)) as p:
        for bad in (b"garbage", b"{", b'{"a":1,"a":2}', b'"\xff\xfe"', b"\x00", b"[" * 9000):
            p.write(bad + b"\n")
            r = p.receive()
            assert r["error"]["code"] == -32700 and r["id"] is None, (bad, r)
        for bad in (b"1", b"null", b'{"jsonrpc":"2.0","id":1}', b'{"jsonrpc":"2.0","id":1.5,"method":"ping"}'):
            p.write(bad + b"\n")
            assert p.receive()["error"]["code"] == -32600, bad
        # empty lines are ignored, other line ends work, and a message may arrive in pieces
        p.write(b"\n\r\n" + json.dumps(request("ping", id="crlf")).encode() + b"\r\n")
        assert p.receive()["id"] == "crlf"
        half = json.dumps(request("ping", id="half")).encode() + b"\n"
        p.write(half[:9])
        assert p.call(json.dumps(request("ping", id="half"))[9:])["id"] == "half"
        # the end of input ends a line too
        p.write(json.dumps(request("ping", id="last")).encode())
        p.p.stdin.close()
        assert p.receive()["id"] == "last"
        assert p.line() is None and p.p.wait(HANG) == 0


def test_a_line_that_is_too_long_is_skipped(daemon):
    with Pipes(*of(daemon)) as p:
        p.hello()
        for _ in range(2):
            p.write(b'{"jsonrpc":"2.0","id":1,"method":"' + b"x" * (17 << 20) + b'"}\n')
            r = p.receive()
            assert r["error"]["code"] == -32700 and "16 MiB" in r["error"]["message"]
        assert p.call(request("ping", id=2))["id"] == 2
        # a line that is just short enough is accepted: its reader reports what is wrong with it
        p.write(json.dumps(request("x" * (15 << 20), id=3)).encode() + b"\n")
        assert p.receive()["error"]["code"] == -32601


def test_the_same_id_twice(daemon):
    with Pipes(*of(daemon)) as p:
        p.hello()
        held = Held(daemon, "'first'")
        p.send(code(held.code, unique(), 5))
        p.send(request("ping", id=5))
        assert p.receive()["error"]["code"] == -32600
        held.let_go()
        assert p.receive()["result"]["structuredContent"]["result"] == "'first'"
        assert p.call(request("ping", id=5))["result"] == {}


def test_batch(daemon):
    with Pipes(*of(daemon)) as p:
        p.hello("2025-03-26")
        p.send([code("import time; time.sleep(.3)", unique(), 1), request("ping", id=2)])
        p.p.stdin.close()
        assert {a["id"] for a in p.receive()} == {1, 2}
        assert p.line() is None and p.p.wait(HANG) == 0
    with Pipes(*of(daemon)) as p:
        p.hello("2025-11-25")
        assert p.call([request("ping")])["error"]["code"] == -32600


@pytest.mark.parametrize("era", ["legacy", "modern"])
def test_cancelled(daemon, era):
    args = {"name": "execute_python", "arguments": {"code": FOREVER, "timeout": 100}}
    with Pipes(*of(daemon)) as p:
        if era == "legacy":
            p.hello()
        p.send(request("tools/call", args, "c") if era == "legacy" else modern("tools/call", args, "c"))
        assert wait_until(lambda: daemon.health()["sandboxes"]["busy"] == 1)
        cancelled = note("notifications/cancelled", {"requestId": "c"})
        if era == "modern":
            cancelled["params"]["_meta"] = {"io.modelcontextprotocol/protocolVersion": "2026-07-28"}
        p.send(cancelled)
        assert idle(daemon)
        p.p.stdin.close()
        assert p.line() is None and p.p.wait(HANG) == 0  # and no answer


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_the_end_of_the_host_ends_executions(daemon, how):
    with Pipes(*of(daemon)) as p:
        p.hello()
        p.send(code(FOREVER, unique(), timeout=100))
        assert wait_until(lambda: daemon.health()["sandboxes"]["busy"] == 1)
        p.p.send_signal(how)
        assert p.p.wait(HANG) == (-9 if how == signal.SIGKILL else 128 + 15)
        assert idle(daemon)


def test_a_daemon_that_ends(serve, short_dir):
    d = serve(socket=short_dir / "s")
    with Pipes("--socket", short_dir / "s") as p:
        p.hello()
        d.stop()
        assert p.line() is None
        assert p.p.wait(HANG) == 3
        assert wait_until(lambda: b"the daemon ended the connection" in p.said)


def test_a_host_that_does_not_read_can_still_write(serve, short_dir):
    d = serve("--max-output", "1500000", socket=short_dir / "s")
    with Pipes("--socket", short_dir / "s") as p:
        p.hello()
        # more than a pipe holds, several times, without a reader
        for n in range(6):
            p.send(code("print('x' * 1499999)", "s", n))
        assert idle(d)
        for n in range(300):
            p.send(request("ping", id="p%d" % n))
        got = [p.receive()["id"] for _ in range(306)]
        assert sorted(map(str, got)) == sorted([str(n) for n in range(6)] + ["p%d" % n for n in range(300)])
        assert p.end() == 0


def test_a_daemon_that_is_not_there(short_dir):
    r = run("mcp", "--socket", short_dir / "none")
    assert r.code == 3 and "no daemon answers" in r.lines()[0] and r.out == b"", r


# ---- with one of its own --------------------------------------------------------------------------------------


def test_alone(alone, short_dir):
    with Pipes(env=alone) as p:
        p.hello()
        name = unique()
        assert p.call(code("x = 6", name, 1))["result"]["isError"] is False
        assert p.call(code("x * 7", name, 2))["result"]["structuredContent"]["result"] == "42"
        assert started_with(str(short_dir) + "/caisson-mcp")
        assert oct(next(short_dir.glob("caisson-mcp*")).stat().st_mode)[-3:] == "700"
        assert p.end() == 0
    assert wait_until(lambda: left(short_dir) == []), left(short_dir)


@pytest.mark.parametrize("variable", ["LOG_LEVEL", "CAISSON_LOG_LEVEL"])
def test_alone_with_a_log(alone, short_dir, variable):
    """The host shows it: stderr of its server."""
    with Pipes("--", "--pool", "0", env={**alone, variable: "DEBUG"}) as p:
        p.hello()
        assert p.call(code("1", unique(), 1))["result"]["isError"] is False
        assert wait_until(lambda: b"execution_begin" in p.said and b"mcp_tool" in p.said), p.said
        assert p.end() == 0
    assert wait_until(lambda: left(short_dir) == []), left(short_dir)


def test_alone_with_options(alone, short_dir):
    with Pipes("--tools", "execute_python", "--", "--memory", "64M", "--pool", "0", env=alone) as p:
        p.hello()
        assert [t["name"] for t in p.call(request("tools/list"))["result"]["tools"]] == ["execute_python"]
        r = p.call(request("tools/call", {"name": "execute_python", "arguments": {"code": "x = bytearray(200 << 20)"}}))
        assert r["result"]["isError"] is True, r
        assert p.end() == 0
    assert wait_until(lambda: left(short_dir) == []), left(short_dir)


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_alone_and_killed(alone, short_dir, how):
    with Pipes("--", "--pool", "1", env=alone) as p:
        p.hello()
        p.send(code(FOREVER, unique(), timeout=100))
        p.p.send_signal(how)
        assert p.p.wait(HANG) == (-9 if how == signal.SIGKILL else 128 + how)
        assert wait_until(lambda: left(short_dir) == []), left(short_dir)


def test_alone_with_its_whole_group_killed(alone, short_dir):
    with Pipes(env=alone, start_new_session=True) as p:
        p.hello()
        os.killpg(p.p.pid, signal.SIGKILL)
        assert wait_until(lambda: left(short_dir) == []), left(short_dir)


def test_alone_with_options_that_are_wrong(alone, short_dir):
    for args, said in ((["--", "--memory", "lots"], "--memory"), (["--tools", "no_such_tool"], "no_such_tool"), (["x"], "after --")):
        r = run("mcp", *args, env=alone)
        assert r.code in (3, 125) and r.out == b"" and any(said in line for line in r.lines()), r
    assert wait_until(lambda: left(short_dir) == []), left(short_dir)
    r = run("mcp", "--socket", "/x", "--tools", "all")
    assert r.code == 125 and "--tools is for a daemon of our own" in r.lines()[0], r


# ---- what hosts are told ----------------------------------------------------------------------------------------


def test_config_of_each_host():
    me = {"command": str(BIN.resolve()), "args": ["mcp"]}
    for host, want in (("claude", {"mcpServers": {"caisson": me}}), ("cursor", {"mcpServers": {"caisson": me}}),
                       ("mcpo", {"mcpServers": {"caisson": me}}), ("vscode", {"servers": {"caisson": {"type": "stdio", **me}}})):
        assert json.loads(run("mcp", "--print-config", host, env={"CAISSON_STATE": None}).out) == want
    r = run("mcp", "--print-config", "emacs")
    assert r.code == 125 and "must be claude" in r.lines()[0]


def test_config_with_an_address_has_no_token_in_it():
    secret = "s3cr3t" * 6
    for host, where in (("claude", ("mcpServers", "${CAISSON_TOKEN}")), ("cursor", ("mcpServers", "${env:CAISSON_TOKEN}")),
                        ("vscode", ("servers", "${input:caisson_token}"))):
        r = run("mcp", "--print-config", host, "--url", "https://box.example:8001/", env={"CAISSON_TOKEN": secret})
        server = json.loads(r.out)[where[0]]["caisson"]
        assert server["url"] == "https://box.example:8001/mcp"
        assert server["headers"] == {"Authorization": "Bearer " + where[1]}
        assert secret.encode() not in r.out
    r = run("mcp", "--print-config", "openwebui", "--url", "https://box.example:8001", env={"CAISSON_TOKEN": secret})
    one, = json.loads(r.out)
    assert (one["type"], one["url"], one["auth_type"], one["key"]) == ("mcp", "https://box.example:8001/mcp", "bearer", "")
    one, = json.loads(run("mcp", "--print-config", "openwebui").out)
    assert one["url"] == "http://127.0.0.1:8001/mcp" and one["auth_type"] == "none"


def test_the_printed_configuration_works(serve, short_dir):
    serve(socket=short_dir / "s")
    with tempfile.TemporaryDirectory() as elsewhere:
        relative = os.path.relpath(short_dir / "s")
        server = json.loads(run("mcp", "--print-config", "claude", "--socket", relative).out)["mcpServers"]["caisson"]
        assert server["command"] == str(BIN.resolve()) and server["args"][0] == "mcp"
        with Pipes(*server["args"][1:], cwd=elsewhere) as p:
            assert p.hello()["serverInfo"]["name"] == "caisson"
            assert p.end() == 0
