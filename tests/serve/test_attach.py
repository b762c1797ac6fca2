# SPDX-License-Identifier: Apache-2.0
"""test_attach.py - A process over a WebSocket: bytes both ways, terminals, several clients, and slow ones."""
import json
import os

import pytest

from box_lib import Box
from process import SLOW, memory_kb, wait_until

MIB = 1 << 20


@pytest.fixture
def box(daemon):
    with Box(daemon) as b:
        yield b


def test_bytes_both_ways(box):
    p = box.start("cat", stdin=True)
    with p.attach() as a:
        data = os.urandom(100000)
        a.write(data)
        while len(a.data) < len(data):
            assert a.more()
        assert a.data == data
        a.send({"type": "eof"})
        end = a.note("exit")
        assert (end["state"], end["exit_code"], end["process_id"]) == ("exited", 0, p.id)
        a.to_end()
        assert a.closed == 1000


def test_terminal_echoes_and_resizes(box):
    p = box.start("sh", pty=True, rows=24, cols=80, env={"PS1": "$ "})
    with p.attach("?offset=0") as a:
        a.until(b"$ ")
        a.write(b"stty size\n")
        a.until(b"stty size\r\n24 80\r\n")
        a.send({"type": "resize", "rows": 50, "cols": 132})
        a.write(b"stty size\n")
        a.until(b"50 132\r\n")
        a.write(b"exit 3\n")
        assert a.note("exit")["exit_code"] == 3


def test_resize_is_a_signal(box):
    p = box.start("bash", "-c", "trap 'stty size; exit' WINCH; echo ready; while :; do sleep 0.01; done", pty=True)
    with p.attach("?offset=0") as a:
        a.until(b"ready")
        a.send({"type": "resize", "rows": 7, "cols": 9})
        a.until(b"7 9\r\n")


def test_interactive_job_control(box):
    """A shell stops and continues its job: it leads its session, on a terminal of its own."""
    p = box.start("bash", "--norc", "-i", pty=True, env={"PS1": "$ ", "TERM": "dumb"})
    with p.attach("?offset=0") as a:
        a.until(b"$ ")
        a.write(b"echo re''ady; cat\n")
        a.until(b"ready\r\n")   # the shell has restored the usual settings of the terminal
        a.write(b"hello\n")
        a.until(b"hello\r\nhello\r\n")
        a.write(b"\x1a")
        a.until(b"Stopped")
        a.write(b"fg\n")
        a.until(b"fg\r\ncat\r\n")
        a.write(b"again\n")
        a.until(b"again\r\nagain\r\n")   # the job has the terminal: the shell prints this before it hands the terminal over
        a.write(b"\x03")
        a.until(b"^C\r\n$ ")
        a.write(b"echo still $((6*7))\n")
        a.until(b"still 42\r\n")
        a.write(b"exit\n")
        a.note("exit")


def test_replay(box):
    p = box.start("sh", "-c", "echo one; echo err >&2; read x; echo two", stdin=True)
    p.until(b"one\n")
    p.until(b"err\n", "stderr")
    with p.attach() as a, p.attach("?offset=2") as b, p.attach("?stream=stderr") as e, p.attach("?offset=1000") as late:
        a.until(b"one\n")
        b.until(b"e\n")
        a.write(b"\n")
        assert a.to_end() == b"one\ntwo\n" and b.to_end() == b"e\ntwo\n" and e.to_end() == b"err\n" and late.to_end() == b"two\n"
        assert all(x.closed == 1000 and x.notes[-1]["type"] == "exit" for x in (a, b, e, late))
    with p.attach("?offset=4") as again:
        assert again.to_end() == b"two\n" and again.notes[-1]["exit_code"] == 0, "also after its end"


def test_terminal_begins_now(box):
    p = box.start("cat", pty=True)
    p.post("/stdin", {"data": "before\n"})
    p.until(b"before\r\nbefore\r\n")
    with p.attach() as a:
        a.write(b"after\n")
        a.until(b"after\r\nafter\r\n")
        assert b"before" not in a.data


def test_leaving_does_nothing_to_it(box):
    p = box.start("cat", stdin=True)
    with p.attach() as a:
        a.write(b"x\n")
        a.until(b"x\n")
        a.close()
    with p.attach("?offset=2") as a:
        a.write(b"y\n")
        a.until(b"y\n")
        a.hang_up()
    assert p.about()["state"] == "running" and p.output() == b"x\ny\n"


def test_several_see_the_same(box):
    p = box.start("cat", stdin=True)
    with p.attach() as a, p.attach() as b:
        a.write(b"from a\n")
        b.until(b"from a\n")
        a.until(b"from a\n")
        b.write(b"from b\n")
        a.until(b"from a\nfrom b\n")
        b.until(b"from a\nfrom b\n")


def read_all(p, a):
    """Read everything; continue at the same offset after each disconnection for being slow. Returns the number of bytes."""
    got = 0
    while True:
        while a.more():
            got += len(a.data)
            a.data.clear()
        a.hang_up()
        if a.closed != 1013:
            assert a.closed == 1000, a.closed
            return got
        a = p.attach("?offset=%d" % got)


def test_slow_one_is_sent_away_and_the_others_are_not_kept_waiting(box):
    """One client never reads; the process writes far more than a client may lag behind, and the other client gets all of it."""
    n = 30 * MIB
    p = box.start("sh", "-c", "echo begin; read x; head -c %d /dev/zero | tr '\\0' x; echo end" % n, stdin=True)
    with p.attach(receive_buffer=65536) as slow, p.attach() as fast:
        slow.until(b"begin\n")
        fast.until(b"begin\n")
        fast.write(b"\n")
        assert read_all(p, fast) == n + 10
        slow.to_end()
        assert slow.closed == 1013
        with p.attach("?offset=%d" % len(slow.data)) as again:
            assert len(slow.data) + len(again.to_end()) == n + 10 and again.closed == 1000, "the slow client cannot continue"


def test_terminal_waits_for_its_reader(daemon, box):
    """A terminal waits for its reader: no client is disconnected, nothing is lost, and memory does not grow."""
    n = 20 * MIB
    p = box.start("sh", "-c", "stty -echo; echo begin; read x; head -c %d /dev/zero | tr '\\0' x; echo end" % n, pty=True)
    with p.attach("?offset=0", receive_buffer=65536) as a:
        a.until(b"begin\r\n")
        a.write(b"\n")
        seen = [0]
        def still():
            seen.append(p.about()["stdout_bytes"])
            return len(seen) > 10 and seen[-1] == seen[-10] > 100
        assert wait_until(still) and seen[-1] < n, "it waits"
        assert a.to_end().count(b"x") == n and a.data.endswith(b"end\r\n") and a.closed == 1000


def test_input_to_one_that_does_not_read(daemon, box):
    """The daemon stops reading the socket: the client that writes must wait."""
    p = box.start("sleep", "1000", stdin=True)
    with p.attach() as a:
        a.s.settimeout(2)
        sent = 0
        with pytest.raises(TimeoutError):
            while sent < 64 * MIB:
                a.write(b"x" * 65536)
                sent += 65536
        assert MIB // 8 <= sent < 64 * MIB, "the daemon takes input without limit"
    assert p.about()["state"] == "running"


def test_all_of_the_input_arrives(box):
    p = box.start("wc", "-c", stdin=True)
    with p.attach() as a:
        for _ in range(160):
            a.write(b"x" * 65536)
        a.send({"type": "eof"})
        assert a.to_end() == b"%d\n" % (160 * 65536)


def test_bad_messages(box):
    p = box.start("sleep", "1000", stdin=True)
    with p.attach() as a:
        for text, code in (("{", "malformed_json"), ("{}", "unknown_type"), ('{"type":"x"}', "unknown_type"), ("[]", "unknown_type"),
                           ('{"type":"resize","rows":1,"cols":1}', "no_terminal")):
            a.notes.clear()
            a.send(text)
            assert a.note("error")["error"]["code"] == code, text
    q = box.start("cat", pty=True)
    with q.attach() as a:
        for m in ({"rows": 0, "cols": 1}, {"rows": 1, "cols": 100000}, {"rows": "1", "cols": 1}, {"rows": -1, "cols": 5}, {}):
            a.notes.clear()
            a.send({"type": "resize", **m})
            assert a.note("error")["error"]["code"] == "out_of_range", m
    r = box.start("sleep", "1000")
    with r.attach() as a:
        a.write(b"x")
        assert a.note("error")["error"]["code"] == "stdin_closed"


def test_removed_meanwhile(box):
    p = box.start("sleep", "1000")
    with p.attach() as a:
        assert wait_until(lambda: p.about()["state"] == "running")
        assert box.daemon.request("DELETE", p.url).status == 204
        a.to_end()
        assert a.closed == 1001


def test_sandbox_removed_meanwhile(daemon):
    box = Box(daemon)
    p = box.start("sh", "-c", "echo begun; sleep 1000")
    with p.attach() as a:
        a.until(b"begun\n")
        assert daemon.request("DELETE", box.url).status == 204
        a.to_end()
        assert a.notes[-1]["type"] == "exit" and a.notes[-1]["cause"] == "interrupt" and a.closed == 1000


def test_errors(daemon, box):
    p = box.start("sleep", "1000")
    r = box.get(p.path + "/attach")
    assert r.status == 426 and r.error["code"] == "upgrade_required" and r.headers["upgrade"] == "websocket"
    for query in ("?offset=-1", "?offset=x", "?stream=all", "?x=1"):
        with p.attach(query) as a:
            assert a.answer.status in (400, 422), query
            assert json.loads(a.answer.body)["error"]["code"]
    with p.attach() as a:
        assert a.answer.status == 101


def test_message_that_is_too_large(box):
    p = box.start("cat", stdin=True)
    with p.attach() as a:
        a.write(b"x" * (MIB))
        a.to_end()
        assert a.closed == 1009
    assert p.about()["state"] == "running"


def test_many_come_and_go(daemon, box):
    p = box.start("cat", stdin=True)
    p.post("/stdin", {"data": "x" * 100000})
    front = daemon.pid
    def open_files():
        return len(os.listdir("/proc/%d/fd" % front))
    for _ in range(10):
        with p.attach() as a:
            a.until(b"x")
    assert wait_until(lambda: daemon.ready() and daemon.health()["pool"]["kernels_ready"] >= daemon.health()["pool"]["target"])
    before, memory = open_files(), memory_kb(front)
    for _ in range(100):
        with p.attach() as a:
            a.until(b"x")
    assert wait_until(lambda: open_files() <= before)
    assert SLOW > 1 or memory_kb(front) < memory + 8192, "memory grew"
