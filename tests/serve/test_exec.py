# SPDX-License-Identifier: Apache-2.0
"""test_exec.py - Programs and shell scripts in a named sandbox: their input, output and end."""
import base64
import json
import os
import time

import pytest

from box_lib import Box, Events
from process import unique, wait_until
from serve_lib import check_schema

MIB = 1 << 20


@pytest.fixture
def box(daemon):
    with Box(daemon) as b:
        yield b


def text(events, kind="stdout"):
    return "".join(d["data"] for _, t, d in events if t == kind)


# ---- the answer ------------------------------------------------------------------------------------------------------


def test_answer_matches_the_document(daemon, box):
    document = daemon.get("/openapi.json").json
    for r in (box.exec("true"), box.exec("false"), box.exec("nowhere"), box.shell("kill -9 $$"), box.exec("sleep", "60", timeout=1)):
        assert not check_schema(r, {"$ref": "#/components/schemas/ExecResult"}, document)
        assert r["ok"] == (r["exit_code"] == 0) and r["output"] == r["stdout"] + r["stderr"]
        assert len(r["execution_id"]) == 32


def test_streams_and_exit_code(box):
    r = box.exec("sh", "-c", "echo out; echo err >&2; exit 3")
    assert (r["stdout"], r["stderr"], r["output"]) == ("out\n", "err\n", "out\nerr\n")
    assert (r["exit_code"], r["ok"], r["status"], r["truncated"]) == (3, False, "error", False)
    assert "cause" not in r and "signal" not in r
    assert r["usage"]["cpu_ns"] > 0 and r["usage"]["memory_peak"] > 0 and r["usage"]["stdout_bytes"] == 4


def test_no_shell_reads_the_words(box):
    words = ["$HOME", "a b", "", "*", "`id`", "$(touch /workspace/canary)", ";", "ä"]
    r = box.exec("printf", "%s\\n", *words)
    assert r["stdout"] == "".join(w + "\n" for w in words)
    assert box.exec("ls", "/workspace")["stdout"] == ""


def test_shell_is_bash(box):
    assert box.shell("a=(1 2); echo ${a[1]} | tr 2 x; exit 5")["stdout"] == "x\n"
    assert box.shell("exit 5")["exit_code"] == 5


def test_python_is_found_whatever_it_is_called(box):
    for name in ("python", "python3"):
        assert box.exec(name, "-c", "print(6 * 7)")["stdout"] == "42\n"


def test_bytes_come_back(box):
    r = box.exec("printf", "a\\000\\377b")
    assert base64.b64decode(r["stdout_base64"]) == b"a\0\xffb"
    assert r["stdout"] == "a\0\ufffdb"
    r = box.exec("printf", "\\303\\244")
    assert r["stdout"] == "ä" and "stdout_base64" not in r


def test_stdin(box):
    assert box.exec("cat", stdin="ä\0\n" * 1000)["stdout"] == "ä\0\n" * 1000
    assert box.exec("cat")["stdout"] == ""
    assert box.exec("wc", "-c", stdin="x" * (3 * MIB))["stdout"] == "%d\n" % (3 * MIB)
    assert box.exec("true", stdin="x" * MIB)["ok"], "a program that does not read its stdin failed"


def test_environment(daemon):
    with Box(daemon, env={"A": "sandbox", "B": "sandbox"}) as box:
        r = box.exec("env", env={"B": "request", "C": "with = and ä"})
        env = dict(line.split("=", 1) for line in r["stdout"].splitlines())
        assert env["A"] == "sandbox" and env["B"] == "request" and env["C"] == "with = and ä"
        assert env["PATH"] and env["HOME"] == "/home/agent" and env["USER"] == "agent"
        assert not [k for k in env if k.startswith("CAISSON")]
        assert box.exec("sh", "-c", "echo $A", env={"A": ""})["stdout"] == "\n"


def test_directory(box):
    assert box.exec("pwd")["stdout"] == "/workspace\n"
    assert box.exec("pwd", cwd="/tmp")["stdout"] == "/tmp\n"
    box.exec("mkdir", "-p", "a/b")
    assert box.exec("pwd", cwd="a/b")["stdout"] == "/workspace/a/b\n"


def test_streams_can_be_opened_by_name(box):
    assert box.shell("echo a >/dev/stdout; echo b >/dev/stderr; cat /dev/stdin", stdin="c")["output"] == "a\ncb\n"


def test_commands_are_side_by_side(box):
    """The second command ends the first: it could not if it had to wait."""
    first = box.start("sh", "-c", "mkfifo /workspace/f; read x </workspace/f; echo got $x")
    assert wait_until(lambda: box.exec("test", "-p", "/workspace/f")["ok"])
    box.shell("echo it >/workspace/f")
    assert first.wait()["exit_code"] == 0 and first.output() == b"got it\n"


def test_more_output_than_is_returned(box):
    r = box.exec("sh", "-c", "head -c 300000 /dev/zero | tr '\\0' x; echo e >&2")
    assert r["truncated"] and len(r["stdout"]) == 10000 and r["stderr"] == "e\n"
    assert r["usage"]["stdout_bytes"] == 300000
    kept = box.get("/executions/%s/output?offset=299990" % r["execution_id"])
    assert kept.status == 200 and kept.body == b"x" * 10


def test_flood_does_not_grow_the_daemon(box):
    r = box.shell("head -c 200000000 /dev/zero", timeout=60)
    assert r["ok"] and r["truncated"] and r["usage"]["stdout_bytes"] == 200000000


# ---- how they end ----------------------------------------------------------------------------------------------------


def test_program_that_is_not_there(box):
    r = box.exec("no-such-program")
    assert (r["exit_code"], r["status"]) == (127, "error") and "no-such-program" in r["hint"] and "no-such-program" in r["stderr"]
    box.shell("echo text >/workspace/file")
    r = box.exec("/workspace/file")
    assert r["exit_code"] == 126 and "cannot be executed" in r["hint"]


def test_timeout_is_an_interrupt_first(box):
    r = box.shell("trap 'echo interrupted; exit 0' INT; echo begun; while :; do sleep 0.01; done", timeout=3)
    assert (r["status"], r["cause"], r["exit_code"], r["limit"]) == ("timeout", "wall", 124, 3000)
    assert r["stdout"] == "begun\ninterrupted\n" and r["peak"] >= 3000 and r["hint"]


def test_numbers_of_a_command(box):
    """A program cannot use more processor time than has passed, and is at least one process."""
    for r in [box.exec("true") for _ in range(5)] + [box.exec("python3", "-c", "import json")]:
        assert r["ok"] and r["execution_time"] >= r["usage"]["cpu_ns"] / 1e9 > 0 and r["usage"]["pids_peak"] >= 1, r


def test_timeout_to_the_millisecond(daemon, box):
    """On every route, 0.3 is 300 ms, and 10.0 is 10."""
    script, endless = "while :; do sleep 0.01; done", "while True: pass"
    for r in (box.post("/shell", {"script": script, "timeout": 0.3}), box.post("/exec", {"cmd": "sleep", "args": ["60"], "timeout": 0.3}),
              box.post("/execute", {"code": endless, "timeout": 0.3}), daemon.post("/v1/run_python", {"code": endless, "timeout": 0.3}),
              daemon.post("/v1/run_shell", {"script": script, "timeout": 0.3})):
        assert r.status == 200 and (r.json["status"], r.json["limit"]) == ("timeout", 300), r
    r = daemon.execute(endless, timeout=0.3)
    assert (r["status"], r["cause"]["limit"]) == ("timeout", 300), r
    assert box.exec("true", timeout=10.0)["ok"]
    p = box.start("sleep", "60", timeout=86400.5)
    assert p.post("/wait", {"timeout": 0.01}).json["state"] == "running"
    assert p.post("/signal", {"signal": "KILL"}).status == 200 and p.post("/wait", {"timeout": 60.0}).json["state"] == "exited"


def test_timeout_kills_processes_that_ignore_the_interrupt(daemon, box):
    name = unique("n")
    r = box.shell("trap '' INT TERM; exec -a %s sleep 1000 & while :; do sleep 0.01; done" % name, timeout=1)
    assert (r["status"], r["exit_code"]) == ("timeout", 124)
    assert wait_until(lambda: not runs(daemon, name)), "processes of its group are left"


def test_signal(box):
    r = box.exec("sh", "-c", "kill -SEGV $$")
    assert (r["status"], r["cause"], r["signal"], r["exit_code"]) == ("signal", "signal", "SEGV", 139)


def test_answer_does_not_wait_for_orphans(box):
    """A process in the group is killed; one that left the group lives, holds the pipes, and is not waited for."""
    r = box.shell("sleep 1000 & setsid sh -c 'echo >up; exec sleep 1001' & until test -e up; do sleep 0.01; done; echo done")
    assert r["stdout"] == "done\n" and r["ok"]
    def sleepers():
        return box.shell("cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' ' '")["stdout"]
    assert wait_until(lambda: "sleep 1000" not in sleepers())
    assert "sleep 1001" in sleepers()


def test_orphan_that_floods(box):
    r = box.shell("setsid sh -c 'while :; do echo flood; done' & echo first")
    assert r["ok"] and "first" in r["stdout"]
    box.shell("kill -9 -1")


HOG = "print('begun', flush=True)\nx = bytearray(200 << 20)"


def left(r):
    return r["state"], r["files"], r["epoch"]


def test_out_of_memory(daemon):
    """The process over the limit ends; files, variables and other processes stay, and the answer says so."""
    with Box(daemon, memory_mib=64) as box:
        p = box.start("sleep", "1000")
        assert box.post("/execute", {"code": "v = 5; open('f', 'w').write('kept')"}).json["ok"]
        for _ in range(2):
            r = box.exec("python", "-c", HOG, timeout=60)
            assert (r["status"], r["cause"], r["exit_code"]) == ("limit", "memory", 137), r
            assert r["limit"] == 64 * MIB and "memory" in r["hint"] and r["stdout"] == "begun\n"
            assert left(r) == ("kept", "kept", 0), r
        r = box.shell("cat f; python3 -c 'x = bytearray(200 << 20)'; echo after; exit 3")
        assert r["stdout"] == "keptafter\n" and (r["cause"], r["exit_code"]) == ("memory", 3), r
        r = box.shell("exit 4")
        assert "cause" not in r and left(r) == ("kept", "kept", 0), "an earlier kill is not the cause of a later failure"
        r = box.post("/execute", {"code": "print(v)"}).json
        assert r["stdout"] == "5\n" and left(r) == ("kept", "kept", 0), r
        assert p.about()["state"] == "running" and box.about()["epoch"] == 0


def test_out_of_memory_of_the_interpreter(daemon):
    """The largest process ends, also if another one asked for more: the answer to that one says what was lost."""
    with Box(daemon, memory_mib=96) as box:
        assert box.post("/execute", {"code": "open('f', 'w').write('kept'); big = b'x' * (60 << 20)"}).json["ok"]
        r = box.exec("python", "-c", "x = b'x' * (40 << 20); print(len(x))", timeout=60)
        assert r["stdout"] == "41943040\n" and left(r) == ("reset", "kept", 1), r
        r = box.post("/execute", {"code": "print(open('f').read(), 'big' in globals())"}).json
        assert r["stdout"] == "kept False\n" and left(r) == ("kept", "kept", 1), r


def test_out_of_memory_of_the_sandbox(daemon):
    with Box(daemon, memory_mib=64, oom="sandbox") as box:
        box.shell("echo gone > f")
        r = box.exec("python", "-c", HOG, timeout=60)
        assert (r["status"], r["cause"], r["exit_code"]) == ("limit", "memory", 137), r
        assert left(r) == ("reset", "lost", 1), r
        r = box.shell("ls; echo again")
        assert r["stdout"] == "again\n" and left(r) == ("kept", "kept", 1), r
    r = daemon.post("/v1/sandboxes", {"name": "x", "oom": "nobody"})
    assert (r.status, r.error["code"], r.error["field"]) == (422, "invalid_value", "oom"), r


def test_too_many_processes(daemon):
    with Box(daemon, pids=16) as box:
        r = box.exec("python", "-c", "import os, time\nfor i in range(100):\n    if os.fork() == 0:\n        time.sleep(60)\n")
        assert (r["status"], r["cause"], r["limit"]) == ("limit", "pids", 16), r
        assert box.exec("true")["ok"]


def test_disk_full(daemon):
    with Box(daemon, disk_mib=16) as box:
        r = box.shell("dd if=/dev/zero of=/workspace/big bs=1M count=64 2>&1")
        assert (r["status"], r["cause"]) == ("limit", "disk"), r


def test_removed_meanwhile(daemon):
    box = Box(daemon)
    with box.stream("echo begun; sleep 100", timeout=110) as s:
        events = iter(s)
        while next(events)[1] != "stdout":
            pass
        assert daemon.request("DELETE", box.url).status == 204
        last = list(events)[-1]
    assert last[1] == "done" and last[2]["cause"] == "interrupt" and last[2]["stdout"] == "begun\n"


# ---- clients that go away --------------------------------------------------------------------------------------------


def test_client_that_goes_away_cancels(daemon, box):
    name = unique("n")
    body = json.dumps({"script": "exec -a %s sleep 1000" % name, "timeout": 100}).encode()
    with daemon.connect() as s:
        s.sendall(b"POST %s/shell HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
                  % (box.url.encode(), daemon.port, len(body)) + body)
        assert wait_until(lambda: runs(daemon, name))
    assert wait_until(lambda: not runs(daemon, name))


def runs(daemon, name):
    for p in daemon.processes():
        try:
            with open("/proc/%d/cmdline" % p, "rb") as f:
                if f.read().startswith(name.encode()):
                    return True
        except OSError:
            pass
    return False


def test_with_a_key_it_goes_on(daemon, box):
    body = json.dumps({"script": "mkfifo f; read x <f; echo $x >result", "timeout": 60}).encode()
    with daemon.connect() as s:
        s.sendall(b"POST %s/shell HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nContent-Type: application/json\r\nIdempotency-Key: %s\r\n"
                  b"Content-Length: %d\r\n\r\n" % (box.url.encode(), daemon.port, unique().encode(), len(body)) + body)
        assert wait_until(lambda: box.exec("test", "-p", "f")["ok"])
    box.shell("echo on >f")
    assert wait_until(lambda: box.exec("cat", "result")["stdout"] == "on\n")


# ---- streams ---------------------------------------------------------------------------------------------------------


def check_ids(events, first=1):
    assert [i for i, _, _ in events] == list(range(first, first + len(events)))


def test_events(box):
    events = box.stream("echo a; echo b >&2; exit 2").all()
    check_ids(events)
    assert events[0][1] == "started" and events[-1][1] == "done"
    assert text(events) == "a\n" and text(events, "stderr") == "b\n"
    done = events[-1][2]
    assert done["exit_code"] == 2 and done["execution_id"] == events[0][2]["execution_id"]
    assert set(done) == set(box.shell("echo a; echo b >&2; exit 2"))


def test_events_arrive_while_it_runs(box):
    with box.stream("mkfifo f; echo first; read x <f; echo $x", timeout=60) as s:
        events = iter(s)
        assert next(events)[1] == "started"
        assert next(events)[2]["data"] == "first\n"
        box.shell("echo second >f")
        assert text(list(events)) == "second\n"


def test_ndjson(box):
    r = box.post("/exec", {"cmd": "echo", "args": ["a"]}, headers={"Accept": "application/x-ndjson"})
    assert r.headers["content-type"] == "application/x-ndjson"
    lines = [json.loads(line) for line in r.body.splitlines()]
    assert [(e["id"], e["type"]) for e in lines] == [(1, "started"), (2, "stdout"), (3, "done")]
    assert lines[1]["data"] == "a\n" and lines[2]["ok"]


def test_accept_asks_for_events(box):
    r = box.post("/exec", {"cmd": "true"}, headers={"Accept": "text/event-stream"})
    assert r.headers["content-type"].startswith("text/event-stream") and b"event: done" in r.body


def test_bytes_in_events(box):
    events = box.stream("printf 'a\\303'; sleep 0.05; printf '\\244\\377'").all()
    data = b"".join(base64.b64decode(d["data_base64"]) if "data_base64" in d else d["data"].encode()
                    for _, t, d in events if t == "stdout")
    assert data == b"a\xc3\xa4\xff"


def test_program_that_is_not_there_streams_too(box):
    events = Events(box.daemon, "POST", box.url + "/exec", {"cmd": "nowhere", "stream": True}).all()
    assert [t for _, t, _ in events] == ["started", "stderr", "done"] and events[-1][2]["exit_code"] == 127


def test_refusal_in_a_stream(box):
    events = box.stream("true", cwd="/nowhere").all()
    assert [t for _, t, _ in events] == ["refused"] and events[0][2]["error"]["code"] == "invalid_cwd"


def test_resume_without_loss_or_repeat(box):
    """The connection is cut at any event, and others bring the rest."""
    script = "for i in $(seq 2000); do echo line $i; done; read x <&0; echo end"
    with box.stream("mkfifo f; " + script.replace("<&0", "<f"), timeout=60) as s:
        got = []
        for e in s:
            got.append(e)
            if "line 2000\n" in text(got[-2:]):
                break
    execution = got[0][2]["execution_id"]
    for cut in (1, len(got) // 2, len(got)):
        with box.resume(execution, cut) as s:
            again = []
            for e in s:
                again.append(e)
                if e[0] >= len(got):
                    break
        assert [e for e in again if e[0] <= len(got)] == got[cut:cut + len(again)]
        check_ids(again, cut + 1) if again else None
        if cut == len(got) // 2:
            box.shell("echo >f")
    rest = box.resume(execution, len(got)).all()
    check_ids(rest, len(got) + 1)
    assert rest[-1][1] == "done"
    assert text(got + rest) == "".join("line %d\n" % i for i in range(1, 2001)) + "end\n"
    whole = box.resume(execution, 0).all()
    assert whole == got + rest, "the second answer differs"


def test_resume_by_header(box):
    events = box.stream("echo a; echo b >&2").all()
    execution = events[0][2]["execution_id"]
    e = Events(box.daemon, "GET", "%s/executions/%s/events" % (box.url, execution), headers={"Last-Event-ID": "2"}).all()
    assert e == events[2:]


def test_nothing_is_lost_without_a_reader(box):
    """A client stops reading, and later its connection ends. The command has waited with more output than the log keeps, so the
    client can come back for everything that it has not read."""
    n = 8 * MIB
    with box.stream("echo begin; head -c %d /dev/zero | tr '\\0' x; echo; echo end" % n, timeout=100) as s:
        it = iter(s)
        got = [next(it), next(it)]
        execution = got[0][2]["execution_id"]
        sizes = [-1, 0]
        while sizes[-1] != sizes[-2]:
            time.sleep(0.3)
            sizes.append(box.get("/executions/" + execution).json["stdout_bytes"])
        assert 0 < sizes[-1] < n
    rest = box.resume(execution, 2)
    assert rest.status == 200
    rest = rest.all()
    check_ids(rest, 3)
    data = text(got + rest)
    assert len(data) == n + len("begin\n\nend\n") and data.endswith("x\nend\n") and rest[-1][2]["ok"]


def test_slow_reader_makes_it_wait(box):
    n = 40 * MIB
    with Events(box.daemon, "POST", box.url + "/shell", {"script": "head -c %d /dev/zero | tr '\\0' x; echo >over" % n, "stream": True,
                                                         "timeout": 100}, receive_buffer=65536) as s:
        it = iter(s)
        assert next(it)[1] == "started"
        assert not box.exec("test", "-e", "over")["ok"]
        rest = list(it)
    assert len(text(rest)) == n and rest[-1][1] == "done"


# ---- errors ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("route", ["/exec", "/shell"])
def test_bad_requests(box, route):
    good = {"cmd": "true"} if route == "/exec" else {"script": "true"}
    for bad, code, field in [
            ({}, "missing_field", list(good)[0]), ({**good, "x": 1}, "unknown_field", "x"),
            ({**good, "env": {"A": 1}}, "wrong_type", "env"), ({**good, "env": {"A=B": "1"}}, "invalid_value", "env"),
            ({**good, "env": {"": "1"}}, "invalid_value", "env"), ({**good, "env": {"A": "a\0b"}}, "invalid_value", "env"),
            ({**good, "cwd": ""}, "out_of_range", "cwd"), ({**good, "cwd": "/a\0b"}, "invalid_value", "cwd"),
            ({**good, "cwd": "/nowhere"}, "invalid_cwd", "cwd"), ({**good, "cwd": "/etc/passwd"}, "invalid_cwd", "cwd"),
            ({**good, "timeout": 0}, "out_of_range", "timeout"), ({**good, "timeout": 1 << 62}, "out_of_range", "timeout"),
            ({**good, "timeout": -0.1}, "out_of_range", "timeout"), ({**good, "timeout": "1"}, "wrong_type", "timeout"),
            ({**good, "stdin": 1}, "wrong_type", "stdin"), ({**good, "stream": "yes"}, "wrong_type", "stream"),
            ({list(good)[0]: ""}, "out_of_range", list(good)[0]), ({list(good)[0]: "a\0b"}, "invalid_value", list(good)[0])]:
        r = box.post(route, bad)
        assert r.status == 422 and (r.error["code"], r.error["field"]) == (code, field), (bad, r)
    assert box.daemon.request("POST", box.url + route, b"{").status == 400


def test_bad_words(box):
    for args, code in [("x", "wrong_type"), ([1], "wrong_type"), ([None], "wrong_type"), (["a\0b"], "invalid_value"), (["x"] * 5000, "out_of_range")]:
        r = box.post("/exec", {"cmd": "true", "args": args})
        assert r.status == 422 and (r.error["code"], r.error["field"]) == (code, "args"), r
    r = box.post("/exec", {"cmd": "true", "args": ["x" * (5 * MIB)]})
    assert r.status in (413, 422), r
    r = box.exec("true", *["x" * 100000] * 30)
    assert r["ok"] or r["exit_code"] in (125, 126), r


def test_foreign_and_missing_names(daemon):
    for route, body in (("exec", {"cmd": "true"}), ("shell", {"script": "true"})):
        r = daemon.post("/v1/sandboxes/nowhere/" + route, body)
        assert r.status == 404 and r.error["code"] == "no_such_sandbox"


def test_stopped(box):
    assert box.post("/stop").status == 200
    r = box.post("/exec", {"cmd": "true"})
    assert r.status == 409 and r.error["code"] == "sandbox_stopped"
    assert [t for _, t, _ in box.stream("true").all()] == ["refused"]


def test_nothing_of_the_host_is_shown(box):
    r = box.shell("env; id -u; cat /proc/self/status; ls -l /proc/self/fd")
    assert str(os.getpid()) not in r["stdout"].split() and "1000" in r["stdout"]
