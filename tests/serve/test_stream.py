# SPDX-License-Identifier: Apache-2.0
"""test_stream.py - Live output: Server-Sent Events and WebSockets, also for clients that do not read."""
import json
import os
import time

import pytest

from daemon import Stream
from process import HANG, SLOW, call_yourself, unique, wait_until
from jupyter_lib import Kernel
from serve_lib import Peak, WebSocket

MIB = 1 << 20


def text(events, kind="stdout"):
    return "".join(d["data"] for e, d in events if e == kind)


# ---- Server-Sent Events ----------------------------------------------------------------------------------------------


def test_events_arrive_while_the_code_runs(daemon):
    """The code continues only after this test has seen its first line and interrupted it."""
    name = unique()
    code = "import time\ntry:\n    print('first', flush=True)\n    time.sleep(100)\nexcept KeyboardInterrupt:\n    print('second')"
    with daemon.stream(code, session_id=name, timeout=110) as s:
        it = iter(s)
        event, data = next(it)
        assert event == "started" and data == {"execution_id": s.headers["x-execution-id"]}
        event, data = next(it)
        assert event == "stdout" and data["data"].startswith("first")
        assert s.headers["content-type"].startswith("text/event-stream") and s.headers["cache-control"] == "no-store"
        assert daemon.request("POST", "/sessions/%s/interrupt" % name).status == 202
        rest = list(it)
    assert "second" in text(rest) and rest[-1][0] == "done" and rest[-1][1]["state"] == "kept", rest


def test_order_of_events(daemon):
    code = ("import sys\nprint('a')\nprint('b', file=sys.stderr)\ndisplay({'text/plain': 'c'}, raw=True)\nprint('d')\n"
            "display({'text/plain': 'e'}, raw=True)\n'f'")
    with daemon.stream(code) as s:
        events = s.all()
    kinds = [e for e, _ in events]
    assert kinds.index("display") > kinds.index("stdout") and kinds[-2:] == ["result", "done"], kinds
    flat = "".join(d["data"] if e == "stdout" else d["data"]["text/plain"] if e == "display" else "" for e, d in events[:-2])
    assert flat.split("\n") == ["a", "cd", "e"], events
    assert events[-2][1] == {"text/plain": "'f'"}
    done = events[-1][1]
    assert done["stdout"] == "a\nd\n" and done["stderr"] == "b\n" and len(done["displays"]) == 2 and done["success"]


def test_last_event_is_the_result_object(daemon):
    with daemon.stream("1 / 0") as s:
        events = s.all()
    plain = daemon.execute("1 / 0")
    assert events[-1][0] == "done" and set(events[-1][1]) == set(plain)
    error = next(d for e, d in events if e == "error")
    assert error == events[-1][1]["error"] and error["name"] == "ZeroDivisionError"
    doc = daemon.get("/openapi.json").json
    about = doc["components"]["schemas"] if "ExecuteRequest" in doc["components"]["schemas"] else doc["paths"]["/execute"]
    assert "`done`" in json.dumps(about), "the document names the last event"


def test_accept_header_asks_for_events(daemon):
    with Stream(daemon, {"code": "print(1)"}, headers={"Accept": "text/event-stream"}) as s:
        assert s.all()[-1][0] == "done"


def test_refusals_before_a_stream_are_plain_errors(daemon):
    for body, code in [({"code": 1, "stream": True}, "wrong_type"), ({"code": "1", "language": "cobol", "stream": True}, "unknown_language")]:
        r = daemon.post("/execute", body)
        assert r.status == 422 and r.error["code"] == code


def test_refusal_in_a_stream(daemon):
    """The stream has begun already: the last event has the error, in the common form."""
    name = unique()
    busy = daemon.begin("import time; time.sleep(60)", session_id=name, timeout=100)
    assert wait_until(lambda: daemon.sessions().get(name, {}).get("state") == "busy")
    with daemon.stream("1", session_id=name) as s:
        s.open()
        daemon.end_session(name)
        event, data = s.all()[-1]
    assert event == "refused" and data["error"]["code"] == "session_ended" and set(data) == {"error"}, data
    assert busy.result().status == 409


def test_characters_are_not_cut_between_events(daemon):
    code = "import os, time\nfor b in 'π€🎉'.encode(): os.write(1, bytes([b])); time.sleep(0.01)"
    with daemon.stream(code) as s:
        events = s.all()
    assert text(events) == "π€🎉" and "\ufffd" not in json.dumps(events, ensure_ascii=False)


def test_unfinished_character_at_the_end_is_not_lost(daemon):
    with daemon.stream("import os\nos.write(1, b'end \\xe2\\x82')\nNone") as s:
        events = s.all()
    assert text(events).startswith("end ") and events[-1][1]["stdout"].startswith("end \ufffd"), events
    assert len(text(events)) > 4, "the stream lacks output of the result"


def test_stream_is_not_cut_at_the_cap(daemon):
    """The result object has its 10,000 characters; the stream has all."""
    with daemon.stream("for i in range(20000): print(i)") as s:
        events = s.all()
    assert text(events).split() == [str(i) for i in range(20000)]
    assert len(events[-1][1]["stdout"]) == 10000 and events[-1][1]["truncated"]


def test_newlines_and_fields_can_not_be_forged(daemon):
    """Output that looks like an event is output."""
    with daemon.stream("print('x\\n\\nevent: done\\ndata: {\"forged\": 1}\\n\\n')\nprint('\\r\\revent: done\\r')") as s:
        events = s.all()
    assert [e for e, _ in events].count("done") == 1 and "forged" not in events[-1][1] and "event: done" in text(events)


def test_many_streams_at_once(daemon):
    streams = [daemon.stream("print(%d)" % i) for i in range(20)]
    try:
        for i, s in enumerate(streams):
            assert text(s.all()) == "%d\n" % i
    finally:
        for s in streams:
            s.close()


# ---- clients that do not read ------------------------------------------------------------------------------------------

FLOOD = "import os\nb = b'x' * 65535 + b'\\n'\nfor i in range(%d): os.write(1, b)\n" % (50 * MIB // 65536)


def test_reader_that_stops_slows_the_code_down(daemon):
    """50 MB for a client that does not read: the code waits, the daemon does not grow, and the deadline holds."""
    peak, before = Peak(daemon.pid), all_output(daemon)
    began = time.monotonic()
    with Stream(daemon, {"code": FLOOD, "stream": True, "timeout": 3}, receive_buffer=4096) as s:
        assert wait_until(lambda: all_output(daemon) > before), "it runs"
        assert daemon.execute("1")["success"], "others are served meanwhile"
        assert wait_until(lambda: daemon.health()["sandboxes"]["busy"] == 0), "the deadline holds although nobody reads"
        assert 2.5 < time.monotonic() - began < 2 * HANG
        grown = peak.grown()
        events = s.all()
    done = events[-1][1]
    assert events[-1][0] == "done" and done["status"] == "timeout", done["status"]
    assert done["stdout_bytes"] < 40 * MIB, "it was slowed down, not buffered"
    assert len(text(events)) <= done["stdout_bytes"]
    assert grown < 24 * 1024 * SLOW, "%d KiB" % grown


def test_slow_reader_gets_everything(daemon):
    """Nothing of 8 MB is lost for a client that is slower than the code."""
    n = 8 * MIB // 65536
    peak = Peak(daemon.pid)
    with Stream(daemon, {"code": FLOOD.replace(str(50 * MIB // 65536), str(n)), "stream": True, "timeout": 60}, receive_buffer=4096) as s:
        got = 0
        for i, (event, data) in enumerate(s):
            if event == "stdout":
                got += len(data["data"])
                if i % 20 == 0:
                    time.sleep(0.01)
    assert event == "done" and data["success"] and got == data["stdout_bytes"] == n * 65536
    assert peak.grown() < 24 * 1024 * SLOW


def all_output(daemon):
    """The number of bytes that all cells have written."""
    return daemon.metrics()["caisson_output_bytes_total"]


def held_up(daemon, before):
    """No cell writes any more: the output fills the pipes towards a client that does not read."""
    seen = [-1]

    def still():
        seen.append(all_output(daemon))
        return seen[-1] > before + MIB // 8 and len(set(seen[-10:])) == 1
    return wait_until(still)


MIXED = ("import os\nfor i in range(%d):\n    os.write(1, b'%%d,' %% i * 40000)\n    display({'text/plain': str(i)}, raw=True)\n"
         "    os.write(2, b'%%d;' %% i)\n    clear_output() if i %% 7 == 0 else None")


def test_order_of_events_for_a_reader_that_stops(daemon):
    """Displays wait in the pipe like text: whenever they are read, the order is kept. Displays that were cleared leave room for others."""
    n, before = 120, all_output(daemon)
    with Stream(daemon, {"code": "from IPython.display import clear_output\n" + MIXED % n, "stream": True, "timeout": 60}, receive_buffer=4096) as s:
        assert held_up(daemon, before)
        events = s.all()
    done = events[-1][1]
    assert events[-1][0] == "done" and done["success"] and "displays_dropped" not in done, done
    assert len(done["displays"]) == (n - 1) % 7, "after the last clear_output()"
    got, at = "", 0
    for event, data in events[:-1]:
        if event == "stdout":
            got += data["data"]
        elif event == "display":
            assert data["data"]["text/plain"] == str(at) and got.endswith("%d," % at), (at, got[-50:])
            assert got.count(",") == 40000 * (at + 1), at
            at += 1
    assert at == n and got == "".join("%d," % i * 40000 for i in range(n)) and text(events, "stderr") == "".join("%d;" % i for i in range(n))


@pytest.mark.parametrize("how", ["interrupt", "timeout"])
def test_end_of_code_that_waits_for_a_reader(daemon, how):
    """Between text and displays, blocked by back-pressure: the code ends on interrupt, and its variables stay."""
    name, before = unique(), all_output(daemon)
    with daemon.websocket() as w:
        w.run("x = 41", session_id=name)
        w.execute("while True:\n    print('y' * 50000)\n    display({'text/plain': 'z'}, raw=True)", session_id=name, timeout=5 if how == "timeout" else 60)
        assert held_up(daemon, before)
        if how == "interrupt":
            w.send({"type": "interrupt"})
        assert wait_until(lambda: daemon.sessions()[name]["state"] == "idle"), "it ends although nobody reads"
        r = w.until("done")[-1]["result"]
        assert r["cause"]["kind"] == {"interrupt": "interrupt", "timeout": "wall"}[how] and r["state"] == "kept", r
        assert w.run("x + 1", session_id=name)["result"]["text/plain"] == "42"


def test_death_of_code_that_waits_for_a_reader(daemon):
    """Neither its output nor the manner of its end is lost."""
    code = "import os\nfor i in range(200):\n    os.write(1, b'x' * 60000)\n    display({'text/plain': 'z'}, raw=True) if i == 199 else 0\nos._exit(9)"
    before = all_output(daemon)
    with Stream(daemon, {"code": code, "stream": True, "timeout": 60}, receive_buffer=4096) as s:
        assert held_up(daemon, before)
        events = s.all()
    assert len(text(events)) == 200 * 60000 and events[-1][1]["exit_code"] == 9 and len(events[-1][1]["displays"]) == 1, events[-1]


def test_background_task_that_displays(daemon):
    """Between executions its display is not shown, but the task does not hang, and the session continues."""
    name = unique()
    code = ("import threading\ndone = threading.Event()\ndef later():\n    display({'image/png': 'A' * 500000}, raw=True)\n    done.set()\n"
            "threading.Timer(0.3, later).start()")
    daemon.execute(code, session_id=name)
    r = daemon.execute("done.wait(20)", session_id=name)
    assert r["result"]["text/plain"] == "True" and r["epoch"] == 0, r
    daemon.execute(code.replace("0.3", "0.01").replace("done.set()", "done.set(); open('/workspace/shown', 'w').close()"), session_id=name)
    assert wait_until(lambda: daemon.get("/v1/sandboxes/%s/files?path=shown" % name).status == 200)
    r = daemon.execute("done.is_set()", session_id=name)
    assert r["result"]["text/plain"] == "True" and r["epoch"] == 0, r


def test_client_that_leaves_a_stream_cancels_it(daemon):
    mark = "left-%d" % (os.getpid() % 100000)
    with daemon.stream(call_yourself(mark) + "import time\nprint('up', flush=True)\nwhile True: time.sleep(1)", timeout=100) as s:
        it = iter(s)
        assert next(it)[0] == "started" and next(it)[0] == "stdout"
        assert daemon.named(mark)
    assert wait_until(lambda: not daemon.named(mark)), "its sandbox is gone"


def test_client_that_leaves_a_flood_cancels_it(daemon):
    mark = "flood-%d" % (os.getpid() % 100000)
    with daemon.stream(call_yourself(mark) + "import os\nwhile True: os.write(1, b'x' * 65536)", timeout=100) as s:
        next(iter(s))
    assert wait_until(lambda: not daemon.named(mark))


def test_client_that_leaves_a_stream_of_a_session_can_come_back(daemon):
    """The code continues, and its events are kept."""
    name = unique()
    code = "import time, os\nprint(1, flush=True)\nwhile not os.path.exists('/workspace/go'): time.sleep(0.01)\nprint(2)\nx = 'kept'"
    with daemon.stream(code, session_id=name, timeout=110) as s:
        s.open()
        it = iter(s)
        assert [next(it)[0], next(it)[0]] == ["started", "stdout"]
    execution = s.headers["x-execution-id"]
    assert daemon.sessions()[name]["state"] == "busy"
    daemon.request("PUT", "/v1/sandboxes/%s/files?path=go" % name, b"")
    rest = daemon.get("/v1/sandboxes/%s/executions/%s/events?cursor=2" % (name, execution), headers={"Accept": "application/x-ndjson"})
    rest = [json.loads(line) for line in rest.body.splitlines()]
    assert [(e["id"], e["type"]) for e in rest] == [(3, "stdout"), (4, "done")] and rest[0]["data"] == "2\n"
    assert rest[1]["session_id"] == name and rest[1]["success"], "the form of the request that began it"
    assert daemon.execute("x", session_id=name)["result"]["text/plain"] == "'kept'"


def test_sessions_have_records(daemon):
    """An execution in a session is recorded like one in a sandbox: output, events, result; the answer has its id."""
    name = unique()
    r = daemon.post("/execute", {"code": "print('x' * 20000)", "session_id": name})
    box, answer = "/v1/sandboxes/" + name, r.json
    assert r.headers["x-execution-id"] == answer["execution_id"] and len(answer["execution_id"]) == 32
    about = daemon.get("%s/executions/%s" % (box, answer["execution_id"])).json
    assert about["state"] == "done" and about["result"]["stdout"] == answer["stdout"] and about["result"]["execution_id"] == answer["execution_id"]
    assert daemon.get("%s/executions/%s/output" % (box, answer["execution_id"])).body == b"x" * 20000 + b"\n", "the output that did not fit into the answer is lost"
    with Stream(daemon, {"code": "for i in range(5): print('line', i)\n1/0", "session_id": name, "stream": True}) as s:
        events = s.all()
        execution = s.headers["x-execution-id"]
    assert events[-1][1]["execution_id"] == execution
    kept = daemon.get("%s/executions/%s/events" % (box, execution), headers={"Accept": "application/x-ndjson"})
    kept = [json.loads(line) for line in kept.body.splitlines()]
    assert [e["type"] for e in kept] == [kind for kind, _ in events] and [e["id"] for e in kept] == list(range(1, len(kept) + 1))
    assert "".join(e["data"] for e in kept if e["type"] == "stdout") == text(events)
    rest = daemon.get("%s/executions/%s/events?cursor=%d" % (box, execution, len(kept) - 1), headers={"Accept": "application/x-ndjson"})
    assert json.loads(rest.body)["type"] == "done"
    # Without a session no client can come back, but the answer has its id in the audit log.
    r = daemon.post("/execute", {"code": "1"})
    assert r.headers["x-execution-id"] == r.json["execution_id"]


# ---- WebSockets ---------------------------------------------------------------------------------------------------------


def test_websocket_execute(daemon):
    with daemon.websocket() as w:
        assert w.answer.status == 101
        w.execute("print('out')\ndisplay({'text/plain': 'd'}, raw=True)\n6 * 7")
        got = w.until("done")
        printed = [m for m in got if m["type"] == "stdout"]
        assert "".join(m["data"] for m in printed) == "out\n", got
        started, display, result, done = [m for m in got if m["type"] != "stdout"]
        assert [m["type"] for m in (started, display, result, done)] == ["started", "display", "result", "done"], got
        assert started["execution_id"] == done["result"]["execution_id"]
        assert display["data"] == {"text/plain": "d"} and result["data"] == {"text/plain": "42"}
        assert done["result"]["success"] and done["result"]["state"] == "discarded"
        assert set(done["result"]) == set(daemon.execute("1")), "the one result object"
        assert w.run("'again'")["result"]["text/plain"] == "'again'", "another on the same socket"


def test_websocket_session_is_the_same_session(daemon):
    name = unique()
    with daemon.websocket() as w:
        w.run("x = 5", session_id=name)
    assert daemon.execute("x", session_id=name)["result"]["text/plain"] == "5"


def test_websocket_input(daemon):
    with daemon.websocket() as w:
        w.execute("import getpass\nname = input('who? ')\nsecret = getpass.getpass('pass? ')\nprint(name, secret)")
        ask = w.until("input_request")[-1]
        assert ask["prompt"] == "who? " and ask["password"] is False, ask
        w.send({"type": "input_response", "id": ask["id"], "value": "Wörld"})
        ask = w.until("input_request")[-1]
        assert ask["prompt"] == "pass? " and ask["password"] is True, ask
        w.send({"type": "input_response", "id": ask["id"], "value": "hidden"})
        assert "Wörld hidden" in w.until("done")[-1]["result"]["stdout"]


def test_websocket_input_refused(daemon):
    with daemon.websocket() as w:
        w.execute("input('who? ')")
        ask = w.until("input_request")[-1]
        w.send({"type": "input_response", "id": ask["id"], "error": "nobody is there"})
        r = w.until("done")[-1]["result"]
        assert not r["success"] and "nobody is there" in r["stderr"], r


def test_websocket_input_with_the_request(daemon):
    with daemon.websocket() as w:
        assert w.run("input()", stdin="given\n")["result"]["text/plain"] == "'given'"


def test_websocket_input_waits_no_longer_than_the_timeout(daemon):
    with daemon.websocket() as w:
        w.execute("input('who? ')", timeout=1)
        got = w.until("done")
        assert got[-1]["result"]["status"] == "timeout", got


@pytest.mark.parametrize("answer", [
    {"type": "input_response"}, {"type": "input_response", "id": 999999, "value": "x"}, {"type": "input_response", "id": "1", "value": "x"},
    {"type": "input_response", "id": 1, "value": 5}, {"type": "input_response", "id": 1, "value": "a\nb"}])
def test_websocket_odd_answers_do_no_harm(daemon, answer):
    name = unique()
    with daemon.websocket() as w:
        w.execute("input('who? ')", session_id=name, timeout=20)
        ask = w.until("input_request")[-1]
        w.send(answer)
        w.send({"type": "input_response", "id": ask["id"], "value": "right"})
        r = w.until("done")[-1]["result"]
        assert r["state"] == "kept", r
        assert w.run("'fine'", session_id=name)["success"]


def test_websocket_interrupt(daemon):
    name = unique()
    with daemon.websocket() as w:
        w.run("x = 1", session_id=name)
        w.execute("import time\nprint('up', flush=True)\ntime.sleep(100)", session_id=name, timeout=110)
        w.until("stdout")
        w.send({"type": "interrupt"})
        r = w.until("done")[-1]["result"]
        assert r["exit_code"] == 130 and r["state"] == "kept", r
        assert w.run("x", session_id=name)["result"]["text/plain"] == "1"


def test_websocket_interrupt_while_nothing_runs(daemon):
    name = unique()
    with daemon.websocket() as w:
        w.run("x = 1", session_id=name)
        for _ in range(5):
            w.send({"type": "interrupt"})
        assert w.run("import time; time.sleep(0.1); x", session_id=name)["result"]["text/plain"] == "1"


def test_websocket_second_execution_meanwhile_is_refused(daemon):
    with daemon.websocket() as w:
        w.execute("import time\nprint('up', flush=True)\ntime.sleep(100)", timeout=110)
        w.until("stdout")
        w.execute("1")
        assert w.until("refused")[-1]["error"]["code"] == "busy"
        w.send({"type": "interrupt"})
        assert w.until("done")[-1]["result"]["exit_code"] == 130


@pytest.mark.parametrize("message,code,field", [
    ("not json", "malformed_json", None), ("[]", None, None), ("5", None, None), ("{}", "missing_field", "type"), ({"type": 5}, None, None),
    ({"type": "dance"}, "unknown_type", "type"), ({"type": "execute"}, "missing_field", "code"), ({"type": "execute", "code": 5}, "wrong_type", "code"),
    ({"type": "execute", "code": "1", "x": 1}, "unknown_field", "x"), ({"type": "execute", "code": "1", "language": "cobol"}, "unknown_language", "language"),
    ({"type": "execute", "code": "1", "session_id": "../x"}, "invalid_value", "session_id"), ("[" * 1000, "too_deep", None)])
def test_websocket_bad_messages(daemon, message, code, field):
    """An error in the common form, and the socket stays open."""
    with daemon.websocket() as w:
        w.send(message)
        m = w.receive()
        assert m["type"] == "refused" and {"code", "message"} <= set(m["error"]) <= {"code", "message", "field", "hint"}, m
        if code:
            assert (m["error"]["code"], m["error"].get("field")) == (code, field), m
        assert w.run("1")["success"]


def test_websocket_binary_is_refused(daemon):
    with daemon.websocket() as w:
        w.frame(w.BINARY, b'{"type": "execute", "code": "1"}')
        assert w.receive()["error"]["code"] == "not_text"
        assert w.run("1")["success"]


def test_websocket_ping_and_fragments(daemon):
    with daemon.websocket() as w:
        w.frame(w.PING, b"are you there")
        opcode, data = w.read()
        assert (opcode, data) == (w.PONG, b"are you there")
        whole = json.dumps({"type": "execute", "code": "print('in pieces')"}).encode()
        w.frame(w.TEXT, whole[:10], fin=False)
        w.frame(0, whole[10:20], fin=False)
        w.frame(w.PING, b"")
        w.frame(0, whole[20:])
        assert w.until("done")[-1]["result"]["stdout"] == "in pieces\n"


@pytest.mark.parametrize("data,code", [
    (b"\x81\x05hello", 1002),                       # not masked
    (b"\xc1\x80\0\0\0\0", 1002),                    # a reserved bit
    (b"\x83\x80\0\0\0\0", 1002),                    # a reserved opcode
    (b"\x09\x80\0\0\0\0", 1002),                    # a ping in pieces
    (b"\x80\x80\0\0\0\0", 1002),                    # a continuation without a message
    (b"\x81\x82\0\0\0\0\xff\xfe", 1007),            # not UTF-8
    (b"\x81\xff\x7f\xff\xff\xff\xff\xff\xff\xff\0\0\0\0x", 1009),  # longer than allowed
    (b"\x81\xff\xff\xff\xff\xff\xff\xff\xff\xff\0\0\0\0x", 1002)],
    ids=["unmasked", "reserved bit", "reserved opcode", "ping in pieces", "rest of nothing", "not UTF-8", "too long", "negative"])
def test_websocket_breaches_are_closed(daemon, data, code):
    with daemon.websocket(timeout=20) as w:
        w.s.sendall(data)
        while w.receive() is not None:
            pass
        assert w.closed == code


def test_websocket_message_that_is_too_large(serve):
    d = serve("--max-body", "64K")
    with d.websocket(timeout=20) as w:
        try:
            w.send({"type": "execute", "code": "#" * 70000})
            while w.receive() is not None:
                pass
        except (BrokenPipeError, ConnectionResetError):
            w.closed = w.closed or 1009
        assert w.closed == 1009
    assert d.execute("1")["success"]


def test_websocket_that_closes(daemon):
    """Like a client that leaves a stream: without a session the code ends, in a session it continues. Its questions get no answer."""
    mark, name = "ws-%d" % (os.getpid() % 100000), unique()
    w = daemon.websocket()
    w.execute(call_yourself(mark) + "import time\nprint('up', flush=True)\ntime.sleep(100)", timeout=110)
    w.until("stdout")
    w.hang_up()
    assert wait_until(lambda: not daemon.named(mark))
    w = daemon.websocket()
    w.run("x = 1", session_id=name)
    w.execute("x = 2\ninput('name? ')", session_id=name, timeout=110)
    execution = next(m["execution_id"] for m in w.until("input_request") if m["type"] == "started")
    w.close()
    about = "/v1/sandboxes/%s/executions/%s" % (name, execution)
    assert wait_until(lambda: daemon.get(about).json["state"] == "done")
    assert "nobody to ask" in daemon.get(about).json["result"]["error"]["value"]
    assert daemon.execute("x", session_id=name)["result"]["text/plain"] == "2"


def test_websocket_reader_that_stops(daemon):
    """As for streams: the code waits, the daemon does not grow, the deadline holds."""
    peak, before = Peak(daemon.pid), all_output(daemon)
    with daemon.websocket() as w:
        w.execute(FLOOD, timeout=3)
        assert wait_until(lambda: all_output(daemon) > before), "it runs"
        assert wait_until(lambda: daemon.health()["sandboxes"]["busy"] == 0), "the deadline holds although nobody reads"
        grown = peak.grown()
        r = w.until("done")[-1]["result"]
        assert r["status"] == "timeout" and r["stdout_bytes"] < 40 * MIB, r["stdout_bytes"]
        assert grown < 24 * 1024 * SLOW, "%d KiB" % grown


def test_websocket_many(daemon):
    sockets = [daemon.websocket() for _ in range(30)]
    try:
        for i, w in enumerate(sockets):
            w.execute("print(%d)" % i)
        for i, w in enumerate(sockets):
            assert w.until("done")[-1]["result"]["stdout"] == "%d\n" % i
    finally:
        for w in sockets:
            w.close()


def test_websocket_of_another_version(daemon):
    with WebSocket(daemon, headers={"Sec-WebSocket-Version": "8"}) as w:
        assert w.answer.status in (400, 426), w.answer


def test_a_print_is_one_message(daemon):
    """Also if one of its values takes its time to become text."""
    code = "import time\nclass Slow:\n    def __str__(self): return time.sleep(0.2) or 'slow'\nprint('a', Slow(), 3)"
    with Kernel(daemon) as k:
        assert k.run(code).of("stream") == [{"name": "stdout", "text": "a slow 3\n"}]
    with Stream(daemon, {"code": code, "stream": True}) as stream:
        assert [data for event, data in stream if event == "stdout"] == [{"data": "a slow 3\n"}]
