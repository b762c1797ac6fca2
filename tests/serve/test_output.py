# SPDX-License-Identifier: Apache-2.0
"""test_output.py - Output beyond the answer, streams that can be resumed, and the records of executions."""
import base64
import contextlib
import json
import random
from urllib.parse import quote

import pytest

from daemon import Stream
from process import unique, wait_until

MIB = 1 << 20
WAIT = "import os, time\nwhile not os.path.exists('/workspace/go'): time.sleep(0.01)\n"


class Events(Stream):
    """Any request whose answer is events: iterate over (id, type, data), as they arrive. SSE or NDJSON, by its content type."""

    def __init__(self, daemon, method, path, body=None, headers=None, **kw):
        self.method, self.path = method, path
        super().__init__(daemon, body, headers, **kw)

    def __iter__(self):
        if not self.f:
            self.open()
        assert self.status == 200, self.f.read(600)
        ndjson = self.headers["content-type"] == "application/x-ndjson"
        rest, end = b"", b"\n" if ndjson else b"\n\n"
        for chunk in self.chunks():
            *blocks, rest = (rest + chunk).split(end)
            for block in blocks:
                if ndjson:
                    d = json.loads(block)
                    yield d.pop("id"), d.pop("type"), d
                elif not block.startswith(b":"):
                    f = dict(line.split(b": ", 1) for line in block.split(b"\n"))
                    yield int(f[b"id"]), f[b"event"].decode(), json.loads(f[b"data"])
        assert not rest, "the stream ends in the middle of an event: %r" % rest[-200:]


class Sandbox:
    def __init__(self, daemon, name):
        self.daemon, self.name, self.path = daemon, name, "/v1/sandboxes/" + name

    def execute(self, code, **fields):
        r = self.daemon.post(self.path + "/execute", {"code": code, **fields})
        assert r.status == 200, r
        return r.json

    def stream(self, code, headers=None, receive_buffer=None, **fields):
        return Events(self.daemon, "POST", self.path + "/execute", {"code": code, "stream": True, **fields}, headers,
                      receive_buffer=receive_buffer)

    def events(self, execution, cursor=None, headers=None, **kw):
        return Events(self.daemon, "GET", "%s/executions/%s/events%s" % (
            self.path, execution, "" if cursor is None else "?cursor=%d" % cursor), None, headers, **kw)

    def get(self, execution, what="", **query):
        return self.daemon.get("%s/executions/%s%s%s" % (self.path, execution, what, "?" + "&".join(
            "%s=%s" % (k, quote(str(v))) for k, v in query.items()) if query else ""))

    def list(self):
        r = self.daemon.get(self.path + "/executions")
        assert r.status == 200, r
        return r.json["executions"]

    def interrupt(self):
        r = self.daemon.post(self.path + "/interrupt", {})
        assert r.status == 202, r

    def go(self):
        """The file that WAIT waits for."""
        r = self.daemon.post(self.path + "/exec", {"cmd": "touch", "args": ["/workspace/go"]})
        assert r.status == 200 and r.json["ok"], r

    def state(self, execution):
        return self.get(execution).json["state"]


@pytest.fixture
def box(daemon):
    s = Sandbox(daemon, unique("out"))
    r = daemon.post("/v1/sandboxes", {"name": s.name})
    assert r.status == 201, r
    yield s
    daemon.request("DELETE", s.path)


def said(events, kind="stdout"):
    return "".join(d["data"] for _, t, d in events if t == kind)


def in_order(events, after=0):
    assert [i for i, _, _ in events] == list(range(after + 1, after + 1 + len(events))), [i for i, _, _ in events]
    return events


# ---- output by offset ----------------------------------------------------------------------------------------------


def test_all_of_a_large_output_can_be_read(box):
    done = box.execute("for i in range(200000): print(i)\nimport sys\nprint('problem', file=sys.stderr)")
    whole = "".join("%d\n" % i for i in range(200000)).encode()
    assert done["truncated"] and len(done["stdout"]) == 10000 and done["usage"]["stdout_bytes"] == len(whole)
    got, answers = b"", 0
    while True:
        r = box.get(done["execution_id"], "/output", offset=len(got), limit=300000)
        assert r.status == 200 and r.headers["content-type"] == "application/octet-stream", r
        assert r.headers["x-output-offset"] == str(len(got)) and r.headers["x-output-bytes"] == str(len(whole))
        assert r.headers["x-output-complete"] == "true" and "x-output-lost" not in r.headers
        if not r.body:
            break
        got, answers = got + r.body, answers + 1
    assert got == whole and answers == -(-len(whole) // 300000)
    assert box.get(done["execution_id"], "/output", stream="stderr").body == b"problem\n"
    assert box.get(done["execution_id"], "/output", offset=10 ** 15).body == b""


def test_output_is_bytes(box):
    done = box.execute("import os\nos.write(1, bytes(range(256)))\nNone")
    assert box.get(done["execution_id"], "/output").body == bytes(range(256))


def test_output_can_be_read_while_it_is_written(box):
    with box.stream("import time\nprint('so far', flush=True)\ntime.sleep(100)", timeout=110) as s:
        it = iter(s)
        execution = next(it)[2]["execution_id"]
        assert wait_until(lambda: box.get(execution, "/output").body == b"so far\n")
        r = box.get(execution, "/output")
        assert r.headers["x-output-complete"] == "false" and box.state(execution) == "running"
        assert box.get(execution).json["result"] is None
        box.interrupt()
        assert list(it)[-1][1] == "done"
    assert box.get(execution, "/output").headers["x-output-complete"] == "true"


def test_output_over_the_cap_is_counted_and_marked(box):
    code = "import os\nb = b'y' * 65535 + b'\\n'\nfor i in range(1100): os.write(1, b)\nos.write(1, b'last')\nNone"
    done = box.execute(code, timeout=60)
    r = box.get(done["execution_id"], "/output", offset=64 * MIB - 10)
    assert r.body == b"y" * 9 + b"\n" and r.headers["x-output-lost"] == "stream_limit"
    assert r.headers["x-output-kept"] == str(64 * MIB) and r.headers["x-output-bytes"] == str(1100 * 65536 + 4)
    about = box.get(done["execution_id"]).json
    assert about["stdout_kept"] == 64 * MIB and about["stdout_bytes"] == 1100 * 65536 + 4
    # All of it is searched, in pieces; text that is not kept is not found.
    found = box.get(done["execution_id"], "/search", pattern="last").json
    assert found == {"matches": [], "truncated": True, "bytes": 1100 * 65536 + 4, "kept_bytes": 64 * MIB}


# ---- search --------------------------------------------------------------------------------------------------------


def test_search(box):
    code = "import sys\nfor i in range(100000): print('line', i, 'needle' if i % 20000 == 7 else '')\nprint('needle', file=sys.stderr)"
    done = box.execute(code)
    r = box.get(done["execution_id"], "/search", pattern="needle").json
    assert [m["line"] for m in r["matches"]] == [8, 20008, 40008, 60008, 80008] and not r["truncated"]
    assert r["matches"][1]["text"] == "line 20007 needle"
    at = r["matches"][1]["offset"]
    assert box.get(done["execution_id"], "/output", offset=at, limit=6).body == b"needle"
    r = box.get(done["execution_id"], "/search", pattern="needle", limit=2).json
    assert len(r["matches"]) == 2 and r["truncated"]
    r = box.get(done["execution_id"], "/search", pattern="needle", stream="stderr").json
    assert [m["line"] for m in r["matches"]] == [1]
    assert box.get(done["execution_id"], "/search", pattern="line .*").json["matches"] == [], "a text, not an expression"


def test_search_goes_on_where_it_ended(box):
    """Page by page the same lines, with their own numbers, each once."""
    done = box.execute("for i in range(30): print('needle', i, 'needle')\nprint('needle' * 30000)\nprint('last needle')")
    pages, at = [], 0
    while at is not None:
        r = box.get(done["execution_id"], "/search", pattern="needle", limit=4, offset=at).json
        assert r["truncated"] == ("next_offset" in r)
        pages, at = pages + r["matches"], r.get("next_offset")
    assert [m["line"] for m in pages] == list(range(1, 33)) and pages[-1]["text"] == "last needle"


def test_search_by_glob(box):
    done = box.execute("print('GET /a 200')\nprint('POST /b 500')\nprint('GET /c 503')\nprint('a*b')\nprint('x' * 300000 + 'GET  50')")
    search = lambda p, **q: [m["line"] for m in box.get(done["execution_id"], "/search", pattern=p, glob="true", **q).json["matches"]]  # noqa: E731
    assert search("GET*50") == [3, 5] and search("* 5??") == [2, 3] and search("?*500") == [2] and search("a\\*b") == [4] and search("GET?/") == [1, 3]
    assert search("GET*50", limit=1) == [3] and search("500*GET") == []
    r = box.get(done["execution_id"], "/search", pattern="**", glob="true")
    assert r.status == 422 and (r.error["code"], r.error["field"]) == ("invalid_value", "pattern"), r


def test_search_for_any_text(box):
    done = box.execute("print('100% of π & more')")
    for pattern in ("100%", "π & m", "f π"):
        assert len(box.get(done["execution_id"], "/search", pattern=pattern).json["matches"]) == 1, pattern


# ---- streams that can be resumed -----------------------------------------------------------------------------------


def test_events_are_numbered(box):
    with box.stream("print('a')\n1 / 0") as s:
        s.open()
        assert s.headers["content-type"].startswith("text/event-stream")
        events = in_order(list(s))
    assert events[0][1] == "started" and events[-1][1] == "done"
    execution = events[0][2]["execution_id"]
    assert events[-1][2]["execution_id"] == execution == s.headers["x-execution-id"]
    assert said(events) == "a\n" and [t for _, t, _ in events].count("error") == 1
    assert not events[-1][2]["ok"] and events[-1][2]["output"].startswith("a\nTraceback")
    assert box.get(execution).json["result"] == events[-1][2], "the record differs from the answer"


def test_lines_of_json(box):
    with box.stream("print('a')\n'r'", headers={"Accept": "application/x-ndjson"}) as s:
        events = in_order(list(s))
    assert [t for _, t, _ in events if t != "stdout"] == ["started", "result", "done"] and said(events) == "a\n"
    assert events[-2][2] == {"text/plain": "'r'"}
    with box.events(events[0][2]["execution_id"], 2, headers={"Accept": "application/x-ndjson"}) as again:
        assert list(again) == events[2:]


def test_accept_alone_asks_for_events(box):
    for accept in ("text/event-stream", "application/x-ndjson"):
        with Events(box.daemon, "POST", box.path + "/execute", {"code": "1"}, {"Accept": accept}) as s:
            assert list(s)[-1][1] == "done"


def test_a_client_that_goes_away_may_come_back(box):
    """The code waits until no client is connected; it continues, and none of its output is lost."""
    with box.stream("print('first', flush=True)\n" + WAIT + "print('second')\n'result'", timeout=110) as s:
        it = iter(s)
        execution = next(it)[2]["execution_id"]
        assert next(it)[1] == "stdout"
    assert box.state(execution) == "running"
    with box.events(execution, 2) as s:
        it = iter(s)
        box.go()
        events = in_order(list(it), 2)
    assert said(events).strip() == "second" and [t for _, t, _ in events][-2:] == ["result", "done"]
    assert box.execute("1 + 1")["state"] == "kept"


def test_resume_with_random_cuts(box):
    """With cuts at any place: every event once, in order."""
    rng = random.Random(4)
    code = "import time\nfor i in range(400):\n    print(i, flush=True)\n    time.sleep(0.002)"
    seen = []
    with box.stream(code) as s:
        for event in s:
            seen.append(event)
            if len(seen) == 3:
                break
    execution, cuts = seen[0][2]["execution_id"], 0
    while seen[-1][1] != "done":
        stop = len(seen) + rng.randrange(1, 60 if cuts > 8 else 3)
        by_header = rng.random() < 0.5
        with box.events(execution, None if by_header else len(seen),
                        {"Last-Event-ID": str(len(seen))} if by_header else None) as s:
            for event in s:
                seen.append(event)
                if len(seen) >= stop:
                    break
        cuts += 1
    in_order(seen)
    assert said(seen).split() == [str(i) for i in range(400)] and cuts > 3
    with box.events(execution, 0) as s:
        assert list(s) == seen, "and again from the beginning"


def test_several_readers_see_the_same(box):
    with box.stream("import time\nfor i in range(50):\n    print(i, flush=True)\n    time.sleep(0.01)") as s:
        it = iter(s)
        first = next(it)
        with box.events(first[2]["execution_id"], 0) as other:
            assert list(other) == [first, *it]


def test_an_execution_has_few_readers(box):
    """Each event costs the front time for each reader: the 65th is refused, until one of the others has gone."""
    with contextlib.ExitStack() as readers:
        first = readers.enter_context(box.stream(WAIT, timeout=110))
        execution = first.open().headers["x-execution-id"]
        others = [readers.enter_context(box.events(execution, 0)) for _ in range(63)]
        assert all(o.open().status == 200 for o in others)
        r = box.get(execution, "/events", cursor=0)
        assert (r.status, r.error["code"]) == (429, "too_many_readers"), r
        others.pop().close()
        assert wait_until(lambda: box.daemon.request("HEAD", "%s/executions/%s/events" % (box.path, execution)).status == 200)
        box.go()
        assert all([t for _, t, _ in o][-1] == "done" for o in [first, *others])


def test_a_slow_reader_gets_everything(box):
    """More output than the log keeps: the code waits for its reader."""
    code = "import os\nfor i in range(12 * 16): os.write(1, b'%07d ' % i * 8192)\nNone"
    with box.stream(code, receive_buffer=4096, timeout=100) as s:
        execution = s.open().headers["x-execution-id"]
        assert wait_until(lambda: box.get(execution).json["stdout_bytes"] > MIB // 4)
        events = in_order(list(s))
    assert said(events) == "".join("%07d " % i * 8192 for i in range(192)) and events[-1][1] == "done"


def test_events_that_are_too_old(box):
    """The code waits until no client is connected, and then writes more than is kept as events."""
    code = "import os\nos.write(1, b'a')\n" + WAIT + "for i in range(128): os.write(1, b'z' * 65536)"
    with box.stream(code, timeout=110) as s:
        it = iter(s)
        execution = next(it)[2]["execution_id"]
        assert next(it)[1] == "stdout"
    box.go()
    assert wait_until(lambda: box.state(execution) == "done")
    r = box.get(execution, "/events", cursor=1)
    assert r.status == 410 and r.error["code"] == "cursor_gone" and r.error["field"] == "cursor", r
    last = box.get(execution).json["last_event_id"]
    with box.events(execution, last - 1) as s:
        assert [(i, t) for i, t, _ in s] == [(last, "done")]
    with box.events(execution, last) as s:
        assert list(s) == []
    assert box.get(execution, "/output", limit=8 * MIB).body == b"a" + b"z" * (8 * MIB - 1), "the output is lost"


def test_cursors_that_are_none(box):
    with box.stream("1") as s:
        execution = next(iter(s))[2]["execution_id"]
    for cursor, code in (("999", "out_of_range"), ("-1", "out_of_range"), ("x", "wrong_type"), ("1.5", "wrong_type"),
                         ("99999999999999999999", "wrong_type")):
        r = box.get(execution, "/events", cursor=cursor)
        assert r.status == 422 and r.error["code"] == code and r.error["field"] == "cursor", (cursor, r)
    r = box.daemon.request("HEAD", "%s/executions/%s/events" % (box.path, execution))
    assert r.status == 200 and r.body == b"", r


def test_what_was_not_streamed_has_no_events(box):
    r = box.get(box.execute("1")["execution_id"], "/events")
    assert r.status == 409 and r.error["code"] == "not_streamed", r


def test_removing_the_sandbox_ends_its_streams(box):
    with box.stream("import time\ntime.sleep(100)", timeout=110) as s:
        it = iter(s)
        execution = next(it)[2]["execution_id"]
        with box.events(execution, 0) as other:
            other.open()
            assert box.daemon.request("DELETE", box.path).status == 204
            end = list(it)[-1]
            assert end[1] == "refused" and end[2]["error"]["code"], end
            assert list(other)[-1] == end
    assert box.get(execution).status == 404


def test_a_stream_without_a_name_ends_with_its_client(daemon):
    """No client could come back for it."""
    with Events(daemon, "POST", "/v1/run_python", {"code": "import time\nprint(1, flush=True)\ntime.sleep(100)",
                                                   "timeout": 110, "stream": True}) as s:
        it = iter(s)
        assert [next(it)[1] for _ in range(2)] == ["started", "stdout"]
        assert daemon.health()["sandboxes"]["busy"] == 1
    assert wait_until(lambda: daemon.health()["sandboxes"]["busy"] == 0)


# ---- records -------------------------------------------------------------------------------------------------------


def test_list_and_result(box):
    assert box.list() == []
    one = box.execute("print(1)")
    two = box.execute("1 / 0")
    listed = box.list()
    assert [e["execution_id"] for e in listed] == [one["execution_id"], two["execution_id"]]
    assert [(e["kind"], e["state"], e["status"]) for e in listed] == [("python", "done", "ok"), ("python", "done", "error")]
    assert listed[0]["stdout_bytes"] == 2 and "result" not in listed[0] and listed[0]["started_at"] <= listed[0]["ended_at"]
    assert box.get(two["execution_id"]).json["result"] == two


def test_the_last_32_are_kept(box):
    ids = [box.execute("%d" % i)["execution_id"] for i in range(34)]
    assert [e["execution_id"] for e in box.list()] == ids[2:]
    r = box.get(ids[1])
    assert r.status == 404 and r.error["code"] == "no_such_execution"


def test_a_queued_one_is_interrupted_by_its_id(box):
    """It ends at once, and the execution before it continues."""
    with contextlib.ExitStack() as stack:
        first = stack.enter_context(box.stream("import time\ntime.sleep(100)", timeout=110))
        assert next(iter(first))[1] == "started"
        second = stack.enter_context(box.stream("print('never')"))
        execution = second.open().headers["x-execution-id"]
        assert box.daemon.post("/v1/sandboxes/%s/executions/%s/interrupt" % (box.name, execution), {}).status == 202
        events = list(second)
        assert said(events) == "" and events[-1][2]["exit_code"] == 130, events
        assert [e["state"] for e in box.list()] == ["running", "done"]
        box.interrupt()


def test_a_queued_one_is_listed(box):
    with contextlib.ExitStack() as stack:
        first = stack.enter_context(box.stream("import time\ntime.sleep(100)", timeout=110))
        assert next(iter(first))[1] == "started"
        second = stack.enter_context(box.stream("print('mine')"))
        execution = second.open().headers["x-execution-id"]
        assert [e["state"] for e in box.list()] == ["running", "queued"]
        assert box.daemon.get("/v1/sandboxes/" + box.name).json["queued"] == 1, "the running execution waited"
        box.interrupt()
        events = in_order(list(second))
        assert events[0][2]["execution_id"] == execution and said(events) == "mine\n"


def test_what_is_not_there(box):
    missing = "0" * 32
    for what in ("", "/events", "/output", "/search?pattern=x"):
        r = box.get(missing, what)
        assert r.status == 404 and r.error["code"] == "no_such_execution", r
        r = box.daemon.get("/v1/sandboxes/%s/executions/%s%s" % (unique(), missing, what))
        assert r.status == 404 and r.error["code"] == "no_such_sandbox", r
    assert box.daemon.get("/v1/sandboxes/%s/executions" % unique()).error["code"] == "no_such_sandbox"


@pytest.mark.parametrize("what, status, code, field", [
    ("/output?offset=-1", 422, "out_of_range", "offset"),
    ("/output?offset=1e3", 422, "wrong_type", "offset"),
    ("/output?offset=x", 422, "wrong_type", "offset"),
    ("/output?limit=0", 422, "out_of_range", "limit"),
    ("/output?limit=99999999", 422, "out_of_range", "limit"),
    ("/output?stream=stdin", 422, "invalid_value", "stream"),
    ("/output?offset=1&offset=2", 400, "invalid_query", "offset"),
    ("/output?offset=%zz", 400, "invalid_query", None),
    ("/output?ofset=1", 400, "unknown_parameter", "ofset"),
    ("/search", 422, "missing_field", "pattern"),
    ("/search?pattern=", 422, "out_of_range", "pattern"),
    ("/search?pattern=a%0Ab", 422, "invalid_value", "pattern"),
    ("/search?pattern=" + "x" * 257, 422, "out_of_range", "pattern"),
    ("/search?pattern=" + "%CF%80" * 200, 422, "invalid_value", "pattern"),
    ("/search?pattern=x&limit=1001", 422, "out_of_range", "limit"),
])
def test_queries_are_checked(daemon, what, status, code, field):
    r = daemon.get("/v1/sandboxes/any/executions/%s%s" % ("0" * 32, what))
    assert r.status == status and r.error["code"] == code and r.error.get("field") == field, r


# ---- what is one event ---------------------------------------------------------------------------------------------


def test_a_line_that_is_printed_is_one_event(box):
    """print() writes text and newline separately; 10,000 lines may be at most 10,000 events."""
    code = ("import time\nslow = 0\nfor i in range(50):\n    t = time.monotonic()\n    print('line', i)\n"
            "    slow += time.monotonic() - t > 0.0005\n    time.sleep(0.005)\nslow")
    with box.stream(code) as s:
        events = list(s)
    texts = [d["data"] for _, t, d in events if t == "stdout"]
    assert "".join(texts) == "".join("line %d\n" % i for i in range(50))
    # Two writes are one event if the second comes within a millisecond: on a busy machine, sometimes it does not.
    slow = int(next(d["text/plain"] for _, t, d in events if t == "result"))
    assert len(texts) <= 50 + slow, (slow, texts)


def test_text_without_a_newline_is_not_kept_waiting(box):
    with box.stream("print('who? ', end='')\n" + WAIT + "print('you')") as s:
        it = iter(s)
        assert [next(it)[1], next(it)[2]] == ["started", {"data": "who? "}]
        box.go()
        assert said(list(it)) == "you\n"


def test_bytes_of_a_kernel_survive_in_events(box):
    code = "import os, time\nos.write(1, bytes(range(256)))\nos.write(1, b'\\xc3')\ntime.sleep(0.05)\nos.write(1, b'\\xa4\\xff\\n\\xc3')"
    with box.stream(code) as s:
        events = list(s)
    data = b"".join(base64.b64decode(d["data_base64"]) if "data_base64" in d else d["data"].encode() for _, t, d in events if t == "stdout")
    assert data == bytes(range(256)) + b"\xc3\xa4\xff\n\xc3"
