# SPDX-License-Identifier: Apache-2.0
"""test_streams.py - Events during the run, connections that break, and clients that leave."""
import os
import signal
import socket
import threading
import time

import pytest
from process import call_yourself, unique, wait_until

import caisson
from caisson._http import Transport

FOREVER = "import time\nprint('up\\n', end='', flush=True)\nwhile True: time.sleep(1)"


def text(events, kind="stdout"):
    return "".join(e.text for e in events if e.type == kind)


class Cutter:
    """A relay to the daemon that passes a number of bytes of an answer and then cuts the connection; the next one gets as many."""

    def __init__(self, port, limit):
        self.port, self.limit, self.count = port, limit, 0
        self.server = socket.create_server(("127.0.0.1", 0))
        self.url = "http://127.0.0.1:%d" % self.server.getsockname()[1]
        self.threads = [threading.Thread(target=self.accept, daemon=True)]
        self.threads[0].start()

    def accept(self):
        while True:
            try:
                near, _ = self.server.accept()
            except OSError:
                return
            far = socket.create_connection(("127.0.0.1", self.port))
            self.count += 1
            for a, b, limit in ((near, far, None), (far, near, self.limit)):
                t = threading.Thread(target=self.pump, args=(a, b, limit), daemon=True)
                t.start()
                self.threads.append(t)

    @staticmethod
    def pump(a, b, limit):
        passed = 0
        try:
            while limit is None or passed < limit:
                data = a.recv(4096 if limit is None else min(4096, limit - passed))
                if not data:
                    break
                passed += len(data)
                b.sendall(data)
        except OSError:
            pass
        for s in (a, b):
            try:
                s.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
        a.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.server.shutdown(socket.SHUT_RDWR)
        self.server.close()
        for t in self.threads:
            t.join(20)


def test_events_arrive_while_it_runs(box):
    """The script continues only when this test has seen its first line and answered it."""
    with box.stream_shell("mkfifo f; echo first; read x <f; echo $x; echo bad >&2; exit 2", timeout=60) as s:
        seen = []
        for e in s:
            seen.append(e)
            if e.text == "first\n":
                box.shell("echo second >f")
        r = s.result()
    assert [e.type for e in seen][0] == "started" and seen[-1].type == "done" and text(seen) == "first\nsecond\n" and text(seen, "stderr") == "bad\n"
    assert r.exit_code == 2 and r.stdout == "first\nsecond\n" and r.execution_id == s.execution_id
    assert [e.id for e in seen] == list(range(1, len(seen) + 1))


def test_code_streams(client, box):
    kinds = [e.type for e in box.stream("display({'text/plain': 'd'}, raw=True)\nprint('1\\n', end='')\n2")]
    assert [k for k in kinds if k != "started"] == ["display", "stdout", "result", "done"]
    assert client.stream("print(6 * 7)").result().stdout == "42\n"
    s = box.stream_exec("printf", ["a\\377"])
    assert b"".join(e.bytes for e in s) == b"a\xff"


def test_refusals(box):
    with pytest.raises(caisson.InvalidRequest) as e:
        list(box.stream_shell("true", cwd="/nowhere"))
    assert e.value.code == "invalid_cwd"
    with pytest.raises(caisson.LanguageUnavailable):
        list(box.stream("1", language="cobol"))


def test_streams_are_taken_up_again(daemon, client, box):
    """The connection breaks every few kilobytes, in the middle of events: no event is lost or repeated."""
    with Cutter(daemon.port, 150000) as way, caisson.Caisson(way.url) as c:
        sb = c.get(box.name)
        got = list(sb.stream_shell("seq 200000", timeout=60))
    assert text(got) == "".join("%d\n" % i for i in range(1, 200001))
    assert [e.id for e in got] == list(range(1, len(got) + 1)) and got[-1].type == "done" and way.count > 3


def test_stream_that_nobody_can_find_again(daemon):
    with Cutter(daemon.port, 2000) as way, caisson.Caisson(way.url) as c, pytest.raises(caisson.ConnectionLost):
        c.stream("for i in range(5000): print('line', i)").result()


def test_attach(client, box):
    s = box.stream_shell("mkfifo f; echo one; read x <f; echo $x", timeout=60)
    for e in s:
        if e.text:
            break
    other = box.executions.attach(s.execution_id)
    assert next(other).type == "started"
    box.shell("echo two >f")
    assert text(list(other)) == "one\ntwo\n" and other.result().ok
    assert text(list(box.executions.attach(s.execution_id, cursor=s.cursor))) == "two\n"
    assert s.result().ok


@pytest.mark.parametrize("how", ["close", "exception", "session", "nameless"])
def test_who_leaves_interrupts(daemon, client, box, how):
    mark = unique("m")[:15]
    code = call_yourself(mark) + FOREVER
    s = {"session": lambda: client.stream(code, session_id=box.name, timeout=100),
         "nameless": lambda: client.stream(code, timeout=100)}.get(how, lambda: box.stream(code, timeout=100))()
    try:
        with s:
            for e in s:
                if e.type == "stdout":
                    break
            assert daemon.named(mark)
            if how == "exception":
                raise KeyError
    except KeyError:
        pass
    if how == "nameless":
        assert wait_until(lambda: not daemon.named(mark))
    else:
        assert wait_until(lambda: not box.info().busy)
        assert box.execute("1").epoch == 0, "its variables are kept"
    s.close()


def test_interrupt_keeps_the_stream(box):
    with box.stream(FOREVER, timeout=100) as s:
        for e in s:
            if e.type == "stdout":
                s.interrupt()
        assert s.result().error.name == "KeyboardInterrupt"


def test_abandoned_stream_is_a_warning(box):
    s = box.stream(FOREVER, timeout=100)
    next(s)
    with pytest.warns(ResourceWarning, match="neither read to its end nor closed"):
        s.__del__()
    s.close()


# ---- retries ---------------------------------------------------------------------------------------------------------------------


class Script:
    """A server that gives prepared answers to connections, one after the other. None: it closes without an answer."""

    def __init__(self, *answers):
        self.answers, self.requests = list(answers), []
        self.server = socket.create_server(("127.0.0.1", 0))
        self.url = "http://127.0.0.1:%d" % self.server.getsockname()[1]
        self.thread = threading.Thread(target=self.run)
        self.thread.start()

    def run(self):
        for answer in self.answers:
            s, _ = self.server.accept()
            with s:
                head = b""
                while b"\r\n\r\n" not in head:
                    head += s.recv(65536)
                self.requests.append(head)
                if answer is not None:
                    s.sendall(answer)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.thread.join(20)
        self.server.close()


def answer(status, body=b"{}", *headers):
    lines = ["HTTP/1.1 %d X" % status, "Content-Length: %d" % len(body), "Connection: close", *headers]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def refusal(status, code, *headers):
    return answer(status, b'{"error": {"code": "%s", "message": "m"}}' % code.encode(), *headers)


def test_idempotent_requests_are_sent_again():
    half = answer(200, b'{"owner": 1}')[:-4]
    with Script(None, half, answer(200, b'{"owner": "x"}')) as s, caisson.Caisson(s.url) as c:
        assert c.policy() == {"owner": "x"}
    assert len(s.requests) == 3


def test_others_are_not():
    with Script(None) as s, caisson.Caisson(s.url) as c, pytest.raises(caisson.ConnectionLost, match="unknown"):
        c.execute("1")
    assert len(s.requests) == 1


def test_with_a_key_they_are():
    with Script(None, answer(201)) as s, caisson.Caisson(s.url) as c:
        c.create("x")
    keys = [line for r in s.requests for line in r.split(b"\r\n") if line.startswith(b"Idempotency-Key")]
    assert len(keys) == 2 and keys[0] == keys[1]


def test_refusals_that_say_when():
    later = "Retry-After: 0"
    with Script(refusal(429, "busy", later), refusal(503, "draining", later), answer(200, b'{"stdout": "ok"}')) as s, caisson.Caisson(s.url) as c:
        assert c.execute("1").stdout == "ok"
    with Script(refusal(429, "busy", "Retry-After: 100")) as s, caisson.Caisson(s.url) as c, pytest.raises(caisson.Busy) as e:
        c.execute("1")
    assert e.value.retry_after == 100
    with Script(refusal(503, "file_call_ended", later)) as s, caisson.Caisson(s.url) as c, pytest.raises(caisson.ServerFault):
        caisson.Sandbox(c.transport, "x").files.move("a", "b")
    with Script(*[refusal(429, "busy", later)] * 2) as s, caisson.Caisson(s.url, retries=1) as c, pytest.raises(caisson.Busy):
        c.list()


def test_silence_has_an_end():
    with socket.create_server(("127.0.0.1", 0)) as server:
        with caisson.Caisson("http://127.0.0.1:%d" % server.getsockname()[1], timeout=0.2) as c:
            before = time.monotonic()
            with pytest.raises(caisson.AnswerTimeout):
                c.list()
            assert time.monotonic() - before < 20


def test_what_is_no_daemon():
    with Script(b"SSH-2.0-x\r\n\r\n") as s, caisson.Caisson(s.url, retries=0) as c, pytest.raises(caisson.ProtocolError):
        c.list()


def test_connections_are_used_again(daemon, url):
    """Connections are reused, also after errors, streams and downloads; one that the daemon has closed is not."""
    opened = []
    with caisson.Caisson(url) as c:
        place = c.transport.place
        connect = type(place).connect

        def counted(self, timeout):
            opened.append(1)
            return connect(self, timeout)

        type(place).connect = counted
        try:
            with c.create() as box:
                for _ in range(5):
                    box.exec("true")
                    with pytest.raises(caisson.NoSuchFile):
                        box.files.read("none")
                    box.files.write("f", b"x" * 100000)
                    with box.files.open("f") as body:
                        assert len(body.read()) == 100000
            assert len(opened) == 1
            c.transport._idle[0].socket.shutdown(socket.SHUT_RDWR)
            assert c.list() == [] and len(opened) == 2
        finally:
            type(place).connect = connect
    assert isinstance(c.transport, Transport) and not c.transport._idle


@pytest.mark.slow
def test_front_that_is_killed(serve):
    """The sandbox continues, and so does the client, over new connections; running code was interrupted, and its clients get an error."""
    d = serve()
    with caisson.Caisson("http://127.0.0.1:%d" % d.port) as c:
        box = c.create("survivor")
        box.execute("x = 41")
        with box.stream(FOREVER, timeout=100) as s:
            while next(s).type != "stdout":
                pass
            front = d.pid
            os.kill(front, signal.SIGKILL)
            with pytest.raises(caisson.SandboxUnavailable):
                list(s)
        assert wait_until(lambda: d.find_front() not in (None, front))
        assert c.list() == ["survivor"] and box.execute("x + 1").text == "42"
        box.remove()
