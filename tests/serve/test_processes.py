# SPDX-License-Identifier: Apache-2.0
"""test_processes.py - Processes in the background: start, state, input, signals, waiting, removal."""
import base64

import pytest

from box_lib import Box
from process import Later, unique, wait_until
from serve_lib import check_schema

MIB = 1 << 20


@pytest.fixture
def box(daemon):
    with Box(daemon) as b:
        yield b


def test_life(daemon, box):
    document = daemon.get("/openapi.json").json
    r = box.post("/processes", {"cmd": "cat", "args": ["-", "x y"], "stdin": True})
    assert r.status == 201
    p = r.json
    assert not check_schema(p, {"$ref": "#/components/schemas/Process"}, document)
    assert (p["cmd"], p["args"], p["cwd"], p["pty"], p["state"]) == ("cat", ["-", "x y"], "/workspace", False, "running")
    assert p["pid"] > 1 and "exit_code" not in p and "ended_at" not in p
    assert box.processes() == {p["process_id"]: p} and box.get("/processes/" + p["process_id"]).json == p
    assert box.post("/processes/%s/stdin" % p["process_id"], {"close": True}).status == 200
    q = box.post("/processes/%s/wait" % p["process_id"], {}).json
    assert not check_schema(q, {"$ref": "#/components/schemas/Process"}, document)
    assert (q["state"], q["exit_code"], q["status"]) == ("exited", 1, "error") and q["ended_at"] >= q["started_at"]
    assert not check_schema(box.get("/processes").json, {"$ref": "#/components/schemas/ProcessList"}, document)


def test_output_by_offset(box):
    p = box.start("sh", "-c", "printf 'a\\000\\377b'; printf err >&2")
    assert p.wait()["exit_code"] == 0
    assert p.output() == b"a\0\xffb" and p.output("stderr") == b"err"
    assert p.output(offset=1, limit=2) == b"\0\xff" and p.output(offset=4) == b"" and p.output(offset=100) == b""
    about = p.about()
    assert (about["stdout_bytes"], about["stderr_bytes"], about["truncated"]) == (4, 3, False)


def test_output_while_it_runs(box):
    p = box.start("sh", "-c", "echo one; read x; echo two", stdin=True)
    p.until(b"one\n")
    assert p.about()["state"] == "running"
    p.post("/stdin", {"data": "\n"})
    assert p.wait()["exit_code"] == 0 and p.output(offset=4) == b"two\n"


def test_stdin(box):
    p = box.start("cat", stdin=True)
    assert p.post("/stdin", {"data": "ä\0"}).status == 200
    assert p.post("/stdin", {"data_base64": base64.b64encode(bytes(range(256))).decode()}).status == 200
    assert p.post("/stdin", {"data": "end", "close": True}).status == 200
    assert p.wait()["exit_code"] == 0
    assert p.output() == "ä\0".encode() + bytes(range(256)) + b"end"


def test_stdin_of_one_that_does_not_read(box):
    p = box.start("sleep", "1000", stdin=True)
    sent = 0
    while True:
        r = p.post("/stdin", {"data": "x" * 300000})
        if r.status != 200:
            break
        sent += 300000
        assert sent < 4 * MIB
    assert r.status == 429 and r.error["code"] == "stdin_full" and sent >= 900000
    assert p.post("/signal", {"signal": "KILL"}).status == 200


def test_large_stdin_goes_through(box):
    p = box.start("wc", "-c", stdin=True)
    for _ in range(10):
        assert wait_until(lambda: p.post("/stdin", {"data": "x" * 500000}).status == 200)
    p.post("/stdin", {"close": True})
    assert p.wait()["exit_code"] == 0 and p.output() == b"5000000\n"


def test_stdin_errors(box):
    p = box.start("sleep", "1000")
    r = p.post("/stdin", {"data": "x"})
    assert r.status == 409 and r.error["code"] == "stdin_closed"
    q = box.start("sleep", "1000", stdin=True)
    for bad, code, field in [({"data": "a", "data_base64": "YQ=="}, "invalid_value", "data_base64"), ({"data_base64": "YQ"}, "invalid_value", "data_base64"),
                             ({"data_base64": "Y Q="}, "invalid_value", "data_base64"), ({"data": 1}, "wrong_type", "data"),
                             ({"close": 1}, "wrong_type", "close"), ({"x": 1}, "unknown_field", "x")]:
        r = q.post("/stdin", bad)
        assert r.status == 422 and (r.error["code"], r.error["field"]) == (code, field), r
    q.post("/signal", {"signal": "9"})
    q.wait()
    r = q.post("/stdin", {"data": "x"})
    assert r.status == 409 and r.error["code"] == "not_running"


def test_signals(box):
    p = box.start("sh", "-c", "trap 'echo usr1' USR1; echo ready; while :; do sleep 0.01; done")
    p.until(b"ready\n")
    assert p.post("/signal", {"signal": "USR1"}).status == 200
    p.until(b"usr1\n")
    assert p.post("/signal", {"signal": "SIGUSR1"}).status == 200
    p.until(b"usr1\nusr1\n")
    assert p.post("/signal").status == 200
    q = p.wait()
    assert (q["state"], q["signal"], q["exit_code"], q["status"]) == ("exited", "TERM", 143, "signal")
    r = p.post("/signal", {"signal": "TERM"})
    assert r.status == 409 and r.error["code"] == "not_running"


def test_bad_signals(box):
    p = box.start("sleep", "1000")
    for name in ("NOPE", "0", "65", "-9", "9 9", "SIG"):
        r = p.post("/signal", {"signal": name})
        assert r.status == 422 and r.error["field"] == "signal", r
    assert p.post("/signal", {"signal": 9}).error["code"] == "wrong_type"
    assert p.about()["state"] == "running"


def test_signal_reaches_the_group(box):
    p = box.start("sh", "-c", "sleep 1000 & wait")
    assert wait_until(lambda: b"sleep" in children_of(box, p))
    p.post("/signal", {"signal": "KILL"})
    p.wait()
    assert wait_until(lambda: b"sleep" not in children_of(box, p))


def children_of(box, p):
    return box.shell("cat /proc/[0-9]*/comm 2>/dev/null")["stdout"].encode()


def test_wait(box):
    p = box.start("cat", stdin=True)
    assert p.post("/wait", {"timeout": 0}).json["state"] == "running"
    assert p.post("/wait", {"timeout": 1}).json["state"] == "running", "the wait was not answered after its time"
    waiting = [Later(lambda: p.wait(60)) for _ in range(3)]
    p.post("/stdin", {"close": True})
    assert [w.result()["exit_code"] for w in waiting] == [0, 0, 0]
    assert p.wait(0)["state"] == "exited"
    for bad in ({"timeout": -1}, {"timeout": 601}, {"timeout": "1"}):
        assert p.post("/wait", bad).status == 422


def test_waiter_that_goes_away(daemon, box):
    p = box.start("sleep", "1000")
    with daemon.connect() as s:
        s.sendall(b"POST %s/wait HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nContent-Length: 2\r\n\r\n{}" % (p.url.encode(), daemon.port))
    assert p.about()["state"] == "running"
    p.post("/signal", {"signal": "KILL"})
    assert p.wait()["exit_code"] == 137


def test_remove(box):
    p = box.start("sh", "-c", "sleep 1000 & wait")
    waiting = Later(lambda: p.post("/wait", {"timeout": 60}))
    assert box.daemon.request("DELETE", p.url).status == 204
    r = waiting.result()
    assert r.status == 404 and r.error["code"] == "no_such_process"
    assert box.processes() == {}
    assert wait_until(lambda: b"sleep" not in children_of(box, p)), "processes of its group are left"
    r = box.daemon.request("DELETE", p.url)
    assert r.status == 404 and r.error["code"] == "no_such_process"


def test_timeout(box):
    p = box.start("sleep", "1000", timeout=1)
    q = p.wait()
    assert (q["status"], q["cause"], q["exit_code"], q["limit"]) == ("timeout", "wall", 124, 1000)


def test_no_timeout_of_its_own(box):
    """A test cannot wait longer than an execution may take by default: check that the process has no timeout at all."""
    p = box.start("sleep", "1000")
    assert p.about()["state"] == "running" and "limit" not in p.about()


def test_what_it_leaves_behind_lives(box):
    p = box.start("sh", "-c", "sleep 1000 & echo gone")
    assert p.wait()["exit_code"] == 0 and p.output() == b"gone\n"
    assert wait_until(lambda: b"sleep" in children_of(box, p)), "the process did not start"


def test_it_keeps_its_sandbox_alive(daemon):
    with Box(daemon, idle_seconds=3) as box:
        p = box.start("cat", stdin=True)
        assert p.post("/wait", {"timeout": 5}).json["state"] == "running"
        p.post("/stdin", {"close": True})
        assert wait_until(lambda: box.get().status == 404)


def test_it_ends_with_its_sandbox(daemon):
    box = Box(daemon)
    p = box.start("sleep", "1000")
    waiting = Later(lambda: p.post("/wait", {"timeout": 60}))
    assert wait_until(lambda: p.about()["state"] == "running")
    assert daemon.request("DELETE", box.url).status == 204
    r = waiting.result()
    assert r.status == 200 and (r.json["state"], r.json["cause"]) == ("exited", "interrupt") or r.status == 404, r
    assert box.get("/processes").status == 404


def test_stop_tells_them_and_they_are_remembered(box):
    p = box.start("sh", "-c", "trap 'echo term; exit 7' TERM; echo ready; while :; do sleep 0.01; done")
    p.until(b"ready\n")
    assert box.post("/stop", {"grace_seconds": 10}).status == 200
    q = p.about()
    assert (q["state"], q["exit_code"]) == ("exited", 7) and p.output() == b"ready\nterm\n"


def test_out_of_memory_ends_all(daemon):
    """In a sandbox that is one. Otherwise only the greedy process ends."""
    for oom in ("process", "sandbox"):
        with Box(daemon, memory_mib=64, oom=oom) as box:
            p = box.start("sleep", "1000")
            q = box.start("python", "-c", "x = bytearray(200 << 20)")
            end = q.wait(60)
            assert (end["status"], end["cause"], end["limit"]) == ("limit", "memory", 64 * MIB)
            if oom == "process":
                assert end["files"] == "kept" and p.about()["state"] == "running"
            else:
                other = p.wait(60)
                assert (other["cause"], other["files"], end["files"], end["epoch"]) == ("memory", "lost", "lost", 1), (end, other)


def test_python_is_found(box):
    p = box.start("python", "-c", "print(6 * 7)")
    assert p.wait()["exit_code"] == 0 and p.output() == b"42\n"


def test_environment_and_directory(daemon):
    with Box(daemon, env={"A": "1"}) as box:
        p = box.start("sh", "-c", "echo $A $B $PWD", env={"B": "2"}, cwd="/tmp")
        p.wait()
        assert p.output() == b"1 2 /tmp\n" and p.about()["cwd"] == "/tmp"


def test_more_than_is_kept(box):
    n = 70 * MIB
    p = box.start("head", "-c", str(n), "/dev/zero")
    assert p.wait(60)["exit_code"] == 0
    about = p.about()
    assert about["stdout_bytes"] == n and about["truncated"]
    assert p.output(offset=1 * MIB, limit=10) == b"\0" * 10 and p.output(offset=n - 1) == b""


# ---- terminals -------------------------------------------------------------------------------------------------------


def test_terminal(box):
    p = box.start("sh", "-c", "stty size; tty; echo $TERM; test -t 0 && test -t 1 && test -t 2 && echo all", pty=True, rows=40, cols=100)
    assert p.wait()["exit_code"] == 0 and p.about()["pty"]
    lines = p.output().decode().split("\r\n")
    assert lines[0] == "40 100" and lines[1].startswith("/dev/pts/") and lines[2] == "xterm-256color" and lines[3] == "all"


def test_terminal_input(box):
    p = box.start("cat", pty=True)
    p.post("/stdin", {"data": "hello\n"})
    p.until(b"hello\r\nhello\r\n")
    p.post("/stdin", {"close": True})
    assert p.wait()["exit_code"] == 0
    p = box.start("sleep", "1000", pty=True)
    p.post("/stdin", {"data": "\x03"})
    assert p.wait()["signal"] == "INT", "Ctrl-C"


def test_a_terminal_that_its_program_let_go(box):
    """For a while no process has the terminal open: this is not a hang-up, and later output still arrives."""
    p = box.start("sh", "-c", "echo one; exec 0<&- 1>&- 2>&-; sleep 0.5; echo two > /dev/tty; sleep 0.5; exit 7", pty=True)
    end = p.wait()
    assert end["exit_code"] == 7, end
    assert p.output() == b"one\r\ntwo\r\n"


# ---- limits and errors -----------------------------------------------------------------------------------------------


def test_at_most_64_run(daemon):
    with Box(daemon, pids=200) as box:
        all_of_them = [box.start("sleep", "1000") for _ in range(64)]
        r = box.post("/processes", {"cmd": "true"})
        assert r.status == 429 and r.error["code"] == "too_many_processes"
        assert box.exec("true")["ok"], "a command is in the list of processes"
        all_of_them[0].post("/signal", {"signal": "KILL"})
        all_of_them[0].wait()
        assert box.start("true").wait()["exit_code"] == 0


def test_at_most_256_are_remembered(box):
    first = box.start("true")
    first.wait()
    alive = box.start("sleep", "1000")
    for _ in range(256):
        box.start("true").wait()
    assert len(box.processes()) == 256 and first.id not in box.processes() and alive.about()["state"] == "running"


def test_not_started(box):
    for body, code, field in [
            ({"cmd": "nowhere"}, "cannot_start", "cmd"), ({"cmd": "/etc/passwd"}, "cannot_start", "cmd"), ({"cmd": "true", "cwd": "/nowhere"}, "invalid_cwd", "cwd"),
            ({}, "missing_field", "cmd"), ({"cmd": ""}, "out_of_range", "cmd"), ({"cmd": "true", "args": "x"}, "wrong_type", "args"),
            ({"cmd": "true", "env": {"=": ""}}, "invalid_value", "env"), ({"cmd": "true", "pty": 1}, "wrong_type", "pty"),
            ({"cmd": "true", "rows": 0}, "out_of_range", "rows"), ({"cmd": "true", "cols": 5000}, "out_of_range", "cols"),
            ({"cmd": "true", "stdin": "text"}, "wrong_type", "stdin"), ({"cmd": "true", "timeout": 0}, "out_of_range", "timeout")]:
        r = box.post("/processes", body)
        assert r.status == 422 and (r.error["code"], r.error["field"]) == (code, field), (body, r)
    assert box.processes() == {}


def test_missing_names(daemon, box):
    other = "/v1/sandboxes/" + unique()
    p = box.start("true")
    for base, code in ((other + "/processes/" + p.id, "no_such_sandbox"), (box.url + "/processes/nowhere", "no_such_process")):
        for method, path, body in (("GET", "", None), ("DELETE", "", None), ("POST", "/signal", {}), ("POST", "/stdin", {}), ("POST", "/wait", {}),
                                   ("GET", "/output", None), ("GET", "/attach", None)):
            r = daemon.request(method, base + path, body)
            assert r.status == 404 and r.error["code"] == code, (method, path, r)
    for method, body in (("GET", None), ("POST", {"cmd": "true"})):
        assert daemon.request(method, other + "/processes", body).error["code"] == "no_such_sandbox"


def test_output_errors(box):
    p = box.start("true")
    for query in ("stream=x", "offset=-1", "offset=x", "limit=0", "limit=99999999", "x=1", "offset=1&offset=2"):
        r = box.get("%s/output?%s" % (p.path, query))
        assert r.status in (400, 422) and r.error, (query, r)


def test_stopped(box):
    box.post("/stop")
    r = box.post("/processes", {"cmd": "true"})
    assert r.status == 409 and r.error["code"] == "sandbox_stopped"
