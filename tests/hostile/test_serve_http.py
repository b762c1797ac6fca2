# SPDX-License-Identifier: Apache-2.0
"""test_serve_http.py - HTTP: slow, giant, ambiguous and malformed requests, and clients that vanish."""
import contextlib
import http.client
import io
import json
import os
import resource
import socket
import struct
import threading
import time

import daemon_lib
import lib
import pytest
from daemon_controls import OneThread, gullible, would_execute
from daemon import Response
from daemon_lib import MIB, Crowd, Daemon, Events, Watch, WebSocket, parse_responses
from process import Later, call_yourself, children, unique
from lib import at_most, landed
from cell_lib import read, until

daemon, hostile_test, whole_module = daemon_lib.daemon, daemon_lib.hostile_test, daemon_lib.whole_module
quick = pytest.mark.quick
slow = pytest.mark.slow
SERVED = 2.0  # seconds within which another client has its answer, whatever happens


def post(body, *headers, path="/execute", version="HTTP/1.1"):
    """A whole request as bytes."""
    lines = [f"POST {path} {version}", "Host: localhost", "Content-Type: application/json", *headers]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def code_body(name):
    """The side effect: a session of that name."""
    return json.dumps({"code": "1", "session_id": name}).encode()


# ---- slow ----------------------------------------------------------------------------------------------------------

@quick
def test_slow_clients_hold_nobody_up(daemon, stopped_by):
    """Slow heads, slow bodies, slow readers and idle connections, some hundred of them: another client waits for none."""
    with OneThread() as g, socket.create_connection(("127.0.0.1", g.port)) as hold, \
            socket.create_connection(("127.0.0.1", g.port), 0.3) as other:
        hold.sendall(b"GET / HT")
        other.sendall(b"GET /x HTTP/1.1\r\n\r\n")
        try:
            landed(not other.recv(10), "one slow head holds up a server of one thread")
        except TimeoutError:
            pass
    before = daemon.rss()
    with Crowd(daemon) as crowd:
        for _ in range(120):
            crowd.add(b"POST /execute HTTP/1.1\r\nHost: localhost\r\nX-a")
        for _ in range(120):
            crowd.add(post(b'{"code"', "Content-Length: 1000000"))
        for _ in range(60):
            crowd.add(post(b"", "Transfer-Encoding: chunked") + b"5\r\n{\"a")
        for _ in range(40):
            crowd.add(b"GET /openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n" * 50, receive_buffer=2048)
        for _ in range(120):
            crowd.add()
        for i in range(8):
            for s in crowd.all[:240:8]:
                s.sendall(b"a")
            took = daemon.good()
            assert took < at_most(SERVED), f"another client waited {took:.2f} s"
        grown = daemon.rss() - before
        assert grown < 48 * MIB, f"{len(crowd.all)} slow connections cost {grown >> 20} MiB"
    until(lambda: daemon.descriptors() < 200, 10, "closed connections")
    stopped_by("one event loop; bounded buffers")


@slow
def test_slow_clients_are_ended(daemon, stopped_by):
    """A head has 10 s, a body 5 s and then a minimum rate: after that 408, and the end. A byte now and then buys no time."""
    with Crowd(daemon) as crowd:
        landed(crowd.add(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n").recv(12) == b"HTTP/1.1 200", "a fast one is served")
        kinds = {"head": crowd.add(b"GET /health HTTP/1.1\r\nHost: localhost\r\nX-a: "),
                 "body": crowd.add(post(b"{", "Content-Length: 100000")),
                 "chunks": crowd.add(post(b"", "Transfer-Encoding: chunked") + b"ffff\r\n{"),
                 "first byte": crowd.add(b"G")}
        begun, ended = time.monotonic(), {}
        while len(ended) < len(kinds) and time.monotonic() - begun < 40:
            for name, s in kinds.items():
                if name in ended:
                    continue
                s.settimeout(0.05)
                with contextlib.suppress(TimeoutError):
                    with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                        if name != "first byte":
                            s.sendall(b"a")
                    data = s.recv(65536)
                    ended[name] = time.monotonic() - begun, data[:12]
            time.sleep(0.2)
    assert set(ended) == set(kinds), f"never ended: {set(kinds) - set(ended)}"
    for name, (seconds, answer) in ended.items():
        assert answer == b"HTTP/1.1 408" and seconds < (14 if name in ("head", "first byte") else 10), (name, seconds, answer)
    stopped_by("deadlines for head and body")


@slow
def test_client_that_does_not_read_is_ended(daemon, stopped_by):
    """An answer that the client does not read: the connection ends, with the execution for it, and memory is released."""
    code = "for _ in range(6): display({'text/html': 'x' * 5_000_000}, raw=True)"
    body = json.dumps({"code": code}).encode()
    request = post(body, f"Content-Length: {len(body)}")
    landed(len(daemon.request("POST", "/execute", {"code": code}).body) > 25 * MIB, "a large answer")
    daemon.quiet()
    with Crowd(daemon) as crowd:
        for s in [crowd.add(request, receive_buffer=2048) for _ in range(3)]:
            s.settimeout(60)
            s.recv(1)          # the answer has begun
        ports = {s.getsockname()[1] for s in crowd.all}
        landed(held(daemon, ports) == ports, "three connections")
        t = time.monotonic()
        while held(daemon, ports) and time.monotonic() - t < 75:
            assert daemon.rss() < 250 * MIB and daemon.good() < at_most(SERVED)
            time.sleep(0.5)
        took = time.monotonic() - t
        assert not held(daemon, ports), f"after {took:.0f} s the daemon still holds {held(daemon, ports)}"
        until(lambda: daemon.rss() < 96 * MIB, 10, f"less than {daemon.rss() >> 20} MiB")
    stopped_by("a deadline for progress in writing")


def held(d, ports):
    """Those of the peers' ports to which the front itself has an open connection; orphans of the Linux kernel do not count."""
    mine = set()
    for fd in os.listdir(f"/proc/{d.pid}/fd"):
        with contextlib.suppress(OSError):
            mine.add(os.readlink(f"/proc/{d.pid}/fd/{fd}"))
    rows = [x.split() for x in read(f"/proc/{d.pid}/net/tcp").splitlines()[1:]]
    return {int(w[2].split(":")[1], 16) for w in rows if f"socket:[{w[9]}]" in mine} & ports


@slow
def test_more_connections_than_descriptors(stopped_by):
    """With the usual soft limit of 1024 descriptors: a thousand idle connections of one client leave room for everybody else."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 4096), hard))
    try:
        with Daemon(wrapper=["prlimit", "--nofile=1024:"]) as d, Crowd(d) as crowd:
            for _ in range(1100):
                crowd.add()
            landed(len(crowd.all) == 1100, "connections")
            time.sleep(0.5)
            r = Later(lambda: d.request("POST", "/execute", {"code": "print(1)"}, timeout=8))
            with contextlib.suppress(OSError):
                assert r.result(60).json["stdout"] == "1\n"
                return
            raise AssertionError("nobody else is served")
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        stopped_by("a connection cap below the descriptors")


@quick
def test_silent_connections_of_one_address(stopped_by):
    """More silent connections of one address than there are places in all: clients from another address, and from the same one, are served."""
    with Daemon("--pool", 1, wrapper=["prlimit", "--nofile=1024:1024"]) as d, Crowd(d) as crowd:
        for _ in range(300):
            crowd.add()
        landed(len(crowd.all) == 300, "connections")
        time.sleep(0.3)
        held_now = len(held(d, {s.getsockname()[1] for s in crowd.all}))
        assert 0 < held_now <= 64, f"one address holds {held_now} of 256 silent connections"
        for source in ("127.0.0.9", "127.0.0.1"):
            r = d.request("POST", "/execute", {"code": "print(1)"}, timeout=20, source=source)
            assert r.status == 200 and r.json["stdout"] == "1\n", (source, r)
    stopped_by("a cap per address on those who have not said who they are; the oldest goes")


@quick
def test_silent_connections_of_many_addresses(stopped_by):
    """Silent connections of more addresses than it takes to fill all places: others are served, and admitted connections stay."""
    with Daemon("--pool", 1, wrapper=["prlimit", "--nofile=1024:1024"]) as d, Crowd(d) as crowd:
        request = b"GET /sessions HTTP/1.1\r\nHost: localhost\r\n\r\n"
        admitted = crowd.add(request)
        landed(admitted.recv(65536).startswith(b"HTTP/1.1 200"), "a connection whose peer is known")
        for i in range(320):
            crowd.add(source=f"127.0.1.{1 + i // 20}")
        time.sleep(0.3)
        held_now = len(held(d, {s.getsockname()[1] for s in crowd.all}))
        landed(200 < held_now <= 256, f"{held_now} of 256 places are taken")
        for source in ("127.0.0.1", "127.0.0.9", "127.0.1.1"):
            r = d.request("POST", "/execute", {"code": "print(1)"}, timeout=20, source=source)
            assert r.status == 200 and r.json["stdout"] == "1\n", (source, r)
        admitted.sendall(request)
        assert admitted.recv(65536).startswith(b"HTTP/1.1 200"), "an admitted connection had to go"
    stopped_by("the oldest connection of all that has not said who it is makes room")


@quick
def test_pipelined_requests_take_turns(daemon, stopped_by):
    """A client that pipelines requests for the largest open document, and reads it all: others and deadlines do not wait for it."""
    request = b"GET /openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n" * 300
    stop, taken = threading.Event(), [0, 0]

    def write(s):
        with contextlib.suppress(OSError):
            while not stop.is_set():
                s.sendall(request)

    def read_all(s, i):
        data = bytearray(1 << 20)
        with contextlib.suppress(OSError):
            while not stop.is_set() and (n := s.recv_into(data)):
                taken[i] += n

    with Crowd(daemon) as crowd:
        ends = [crowd.add(receive_buffer=4 * MIB) for _ in taken]
        threads = [threading.Thread(target=write, args=(s,)) for s in ends]
        threads += [threading.Thread(target=read_all, args=(s, i)) for i, s in enumerate(ends)]
        for t in threads:
            t.start()
        try:
            until(lambda: min(taken) > MIB, 10, "both clients are answered")
            waits = []
            for _ in range(10):
                t = time.monotonic()
                assert daemon.request("GET", "/health", timeout=20).status == 200
                waits.append(time.monotonic() - t)
        finally:
            stop.set()
            for s in ends:
                with contextlib.suppress(OSError):
                    s.shutdown(socket.SHUT_RDWR)
            for t in threads:
                t.join()
    print("waits:", *(f"{w:.3f}" for w in waits), "MiB taken:", sum(taken) >> 20)
    assert max(waits) < at_most(0.3), f"another client waited {max(waits):.2f} s"
    stopped_by("one request of a connection per turn of the loop")


@quick
def test_unread_answers_cost_little(stopped_by):
    """Connections that pipeline requests for the largest open document and read nothing: the front keeps no document for each."""
    with Daemon("--pool", 1) as d, Crowd(d) as crowd:
        size = len(d.request("GET", "/openapi.json").body)
        before = d.rss()
        for i in range(400):
            crowd.add(b"GET /openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n" * 20, receive_buffer=2048, source=f"127.0.2.{1 + i // 100}")
        time.sleep(0.3)
        assert d.good() < at_most(SERVED)
        n = len(held(d, {s.getsockname()[1] for s in crowd.all}))
        landed(n > 200 and size > 100_000, f"{n} answers wait to be read")
        each = (d.rss() - before) // n
        print("bytes for each:", each, "of", n)
        assert each < 48 << 10, f"each unread answer costs {each >> 10} KiB"
    stopped_by("a piece of an answer at a time; one document for all")


# ---- giant -----------------------------------------------------------------------------------------------------------

GIANT = {
    "header of 64 KB": (b"GET /health HTTP/1.1\r\nHost: localhost\r\nX-a: " + b"a" * 65536 + b"\r\n\r\n", {431}),
    "header of 8 MB": (b"GET /health HTTP/1.1\r\nHost: localhost\r\nX-a: " + b"a" * 8000000 + b"\r\n\r\n", {431}),
    "header name of 1 MB": (b"GET /health HTTP/1.1\r\nHost: localhost\r\n" + b"a" * 1000000 + b": 1\r\n\r\n", {431}),
    "target of 10 KB": (b"GET /" + b"a" * 10000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n", {414}),
    "target of 8 MB": (b"GET /" + b"a" * 8000000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n", {414}),
    "query of 1 MB": (b"GET /health?" + b"a=1&" * 250000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n", {414}),
    "method of 1 MB": (b"A" * 1000000 + b" / HTTP/1.1\r\nHost: localhost\r\n\r\n", {400, 501}),
    "10,000 headers": (b"GET /health HTTP/1.1\r\nHost: localhost\r\n" + b"a: b\r\n" * 10000 + b"\r\n", {431}),
    "101 headers": (b"GET /health HTTP/1.1\r\nHost: localhost\r\n" + b"a: b\r\n" * 101 + b"\r\n", {431}),
    "10,000 cookies": (b"GET /health HTTP/1.1\r\nHost: localhost\r\nCookie: " + b"a=b; " * 10000 + b"\r\n\r\n", {431}),
    "no line end": (b"A" * 70000, {400, 414, 431}),
    "no line end in a header": (b"GET / HTTP/1.1\r\nHost: localhost\r\n" + b"A" * 70000, {431}),
    "empty lines": (b"\r\n" * 100000, {400, 431}),
    "announced body": (post(b"", "Content-Length: 1000000000"), {413}),
    "announced body of 2^63": (post(b"", "Content-Length: 9223372036854775808"), {400, 413}),
    "body of 9 MB": (post(b" " * 9000000, "Content-Length: 9000000"), {413}),
    "chunked body without an end": (post(b"", "Transfer-Encoding: chunked") + (b"10000\r\n" + b" " * 65536 + b"\r\n") * 160, {413}),
    "chunk of 2^63": (post(b"", "Transfer-Encoding: chunked") + b"8000000000000000\r\n", {400, 413}),
    "chunk size of 1 MB": (post(b"", "Transfer-Encoding: chunked") + b"0" * 1000000 + b"1\r\n", {400}),
    "chunk extension of 1 MB": (post(b"", "Transfer-Encoding: chunked") + b"1;" + b"a" * 1000000 + b"\r\n", {400}),
    "trailers of 1 MB": (post(b"", "Transfer-Encoding: chunked") + b"0\r\nA: " + b"a" * 1000000 + b"\r\n\r\n", {400, 431}),
    "100,000 trailers": (post(b"", "Transfer-Encoding: chunked") + b"0\r\n" + b"a: b\r\n" * 100000 + b"\r\n", {400, 431}),
    "NUL in the target": (b"GET /\0health HTTP/1.1\r\nHost: localhost\r\n\r\n", {400}),
    "encoded NUL": (b"GET /health%00 HTTP/1.1\r\nHost: localhost\r\n\r\n", {400}),
    "NUL in a header": (b"GET /health HTTP/1.1\r\nHost: localhost\r\nX-a: b\0c\r\n\r\n", {400}),
    "NUL in a header's name": (b"GET /health HTTP/1.1\r\nHost: localhost\r\nX\0a: b\r\n\r\n", {400}),
    "NUL in the method": (b"G\0T /health HTTP/1.1\r\nHost: localhost\r\n\r\n", {400}),
    "NUL in the version": (b"GET /health HTTP/1.1\0\r\nHost: localhost\r\n\r\n", {400}),
    "NULs": (b"\0" * 100000, {400}),
    "noise": (bytes(range(256)) * 400, {400}),
    "TLS": (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"r" * 500, {400}),
    "HTTP/2": (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\0" * 100, {400, 505}),
    "HTTP/0.9": (b"GET /health\r\n", {400}),
    "HTTP/1.2": (b"GET /health HTTP/1.2\r\nHost: localhost\r\n\r\n", {505}),
    "dots": (b"GET /../../etc/passwd HTTP/1.1\r\nHost: localhost\r\n\r\n", {400, 404}),
    "encoded dots": (b"GET /docs/%2e%2e/%2e%2e/etc/passwd HTTP/1.1\r\nHost: localhost\r\n\r\n", {400, 404}),
    "not UTF-8": (b"GET /%ff%fe HTTP/1.1\r\nHost: localhost\r\n\r\n", {400}),
    "half an escape": (b"GET /%2 HTTP/1.1\r\nHost: localhost\r\n\r\n", {400}),
    "absolute, other host": (b"GET http://evil.example/health HTTP/1.1\r\nHost: localhost\r\n\r\n", {400, 421}),
    "CONNECT": (b"CONNECT 127.0.0.1:22 HTTP/1.1\r\nHost: 127.0.0.1:22\r\n\r\n", {400, 404, 405, 501}),
    "TRACE": (b"TRACE / HTTP/1.1\r\nHost: localhost\r\nX-Secret: a\r\n\r\n", {404, 405, 501}),
    "two Hosts": (b"GET /health HTTP/1.1\r\nHost: localhost\r\nHost: localhost\r\n\r\n", {400}),
    "no Host": (b"GET /health HTTP/1.1\r\n\r\n", {400}),
    "empty Host": (b"GET /health HTTP/1.1\r\nHost: \r\n\r\n", {400, 421}),
}


@quick
def test_giant_requests(daemon, stopped_by):
    """Too much of anything: the right 4xx, the end of the connection, and memory that is bounded."""
    for name in ("header of 8 MB", "10,000 headers", "NUL in the target", "method of 1 MB"):
        landed(len(list(gullible(io.BytesIO(GIANT[name][0])))) == 1, f"{name} is a request for somebody")
    wrong = []
    with Watch(daemon, neighbour=True) as w:
        for name, (data, want) in GIANT.items():
            got, closed = daemon.raw(data, 0.8, half_close=name == "HTTP/0.9")
            try:
                answers = parse_responses(got)
            except ValueError as e:
                answers = [str(e)]
            if len(answers) != 1 or not isinstance(answers[0], Response) or answers[0].status not in want:
                wrong.append((name, answers[:2] or got[:200]))
            elif answers[0].status >= 400 and answers[0].status not in (404, 405):
                answers[0].code            # has the one shape
                if not closed or answers[0].headers.get("connection") != "close":
                    if answers[0].status not in (421,):
                        wrong.append((name, "the connection stays open", answers[0]))
    assert not wrong, "\n".join(map(str, wrong))
    w.check(ceiling=64 * MIB, seconds=SERVED)
    stopped_by("prescan; limits of head, target and body")


@quick
def test_refused_before_it_is_read(daemon, stopped_by):
    """A body that will be refused is not waited for, and `100 Continue` is not sent."""
    head = post(b"", "Content-Length: 1000000000", "Expect: 100-continue")
    got, closed = daemon.raw(head, 3)
    assert got.startswith(b"HTTP/1.1 413") and closed, got[:200]
    with daemon.connect(at_most(5)) as s:
        s.sendall(post(b"", "Content-Length: 10", "Expect: 100-continue"))
        landed(s.recv(100).startswith(b"HTTP/1.1 100"), "a small one is asked for")
    for expect in ("200-ok", "100-continue, 100-continue", "x" * 1000):
        got, _ = daemon.raw(post(b"", "Content-Length: 10", f"Expect: {expect}"), 2)
        assert got.startswith((b"HTTP/1.1 417", b"HTTP/1.1 400")), (expect, got[:100])
    stopped_by("judged by its head")


# ---- smuggling -----------------------------------------------------------------------------------------------------------

def smuggled(name):
    body = code_body(name)
    return post(body, f"Content-Length: {len(body)}")


def smuggling(name):
    """{name: bytes}, in each of which some reader sees a second request with the body of code_body(name)."""
    s = smuggled(name)
    e = b'{"code":"1"}'
    length = f"Content-Length: {len(e)}"
    chunked = b"%x\r\n%s\r\n0\r\n\r\n" % (len(e), e)
    return {
        "length and chunked": post(b"0\r\n\r\n" + s, f"Content-Length: {len(s) + 5}", "Transfer-Encoding: chunked"),
        "chunked and length": post(b"0\r\n\r\n" + s, "Transfer-Encoding: chunked", f"Content-Length: {len(s) + 5}"),
        "length 0 and chunked": post(chunked + s, "Content-Length: 0", "Transfer-Encoding: chunked"),
        "two lengths": post(e + s, length, f"Content-Length: {len(e) + len(s)}"),
        "two lengths, reversed": post(e + s, f"Content-Length: {len(e) + len(s)}", length),
        "two equal lengths": post(e + s, length, length),
        "length list": post(e + s, f"Content-Length: {len(e)}, {len(e) + len(s)}"),
        "negative length": post(s, "Content-Length: -1"),
        "negative zero": post(s, "Content-Length: -0"),
        "plus": post(e + s, f"Content-Length: +{len(e)}"),
        "hexadecimal": post(e + s, f"Content-Length: 0x{len(e):x}"),
        "overflow": post(s, "Content-Length: 18446744073709551616"),
        "overflow to a length": post(e + s, f"Content-Length: {2**64 + len(e)}"),
        "length with a space": post(e + s, f"Content-Length: {len(e)} 0"),
        "length underscore": post(e + s, f"Content-Length: 1_{len(e)}"),
        "empty length": post(s, "Content-Length:"),
        "length with a comma": post(e + s, f"Content-Length: {len(e)},"),
        "coding with a space": post(chunked + s, "Transfer-Encoding : chunked"),
        "coding with a tab": post(chunked + s, "Transfer-Encoding:\tchunked\x0b"),
        "xchunked": post(chunked + s, "Transfer-Encoding: xchunked"),
        "chunked twice": post(chunked + s, "Transfer-Encoding: chunked, chunked"),
        "two codings": post(chunked + s, "Transfer-Encoding: chunked", "Transfer-Encoding: identity"),
        "identity": post(chunked + s, "Transfer-Encoding: identity", length),
        "gzip, chunked": post(chunked + s, "Transfer-Encoding: gzip, chunked"),
        "quoted": post(chunked + s, 'Transfer-Encoding: "chunked"'),
        "folded coding": post(chunked + s, "Transfer-Encoding:\r\n chunked"),
        "folded length": post(e + s, "X: y\r\n Content-Length: 0", length),
        "NUL in the name": post(chunked + s, "Transfer-Encoding\0: chunked", "Content-Length: 0"),
        "vertical tab": post(chunked + s, "\x0bTransfer-Encoding: chunked", "Content-Length: 0"),
        "bare CR": post(e + s, f"X: y\rContent-Length: {len(e) + len(s)}", length),
        "bare LF": post(e + s, f"X: y\nContent-Length: {len(e) + len(s)}", length),
        "LF only": post(e, length).replace(b"\r\n", b"\n") + s,
        "LF before the body": post(e, length).replace(b"\r\n\r\n", b"\n\n") + s,
        "chunk extension with LF": post(b"", "Transfer-Encoding: chunked") + b"1;\n{\r\n0\r\n\r\n" + s,
        "chunk size with LF": post(b"", "Transfer-Encoding: chunked") + b"%x\n%s\r\n0\r\n\r\n" % (len(e), e) + s,
        "chunk with a space": post(b"", "Transfer-Encoding: chunked") + b"%x \r\n%s\r\n0\r\n\r\n" % (len(e), e) + s,
        "chunk with 0x": post(b"", "Transfer-Encoding: chunked") + b"0x%x\r\n%s\r\n0\r\n\r\n" % (len(e), e) + s,
        "negative chunk": post(b"", "Transfer-Encoding: chunked") + b"-1\r\n\r\n0\r\n\r\n" + s,
        "chunk overflow": post(b"", "Transfer-Encoding: chunked") + b"1%016x\r\n%s\r\n0\r\n\r\n" % (len(e), e) + s,
        "chunk too long for its size": post(b"", "Transfer-Encoding: chunked") + b"1\r\n%s\r\n0\r\n\r\n" % e + s,
        "last chunk with LF": post(b"", "Transfer-Encoding: chunked") + b"%x\r\n%s\r\n0\n\n" % (len(e), e) + s,
        "coding in a trailer": post(b"", "Transfer-Encoding: chunked") + b"%x\r\n%s\r\n0\r\nTransfer-Encoding: chunked\r\n\r\n" % (len(e), e) + s,
        "bare LF in a trailer": post(b"", "Transfer-Encoding: chunked") + b"%x\r\n%s\r\n0\r\nX: y\n\r\n" % (len(e), e) + s,
        "folded trailer": post(b"", "Transfer-Encoding: chunked") + b"%x\r\n%s\r\n0\r\nX: y\r\n z\r\n\r\n" % (len(e), e) + s,
        "length in a trailer": post(b"", "Transfer-Encoding: chunked") + b"%x\r\n%s\r\n0\r\nContent-Length: 9\r\n\r\n" % (len(e), e) + s,
        "chunked in HTTP/1.0": post(chunked + s, "Transfer-Encoding: chunked", version="HTTP/1.0"),
        "body of a GET": b"GET /health HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n" % len(s) + s,
        "space before the colon": post(e + s, f"Content-Length : {len(e) + len(s)}", length),
        "header without a colon": post(e + s, "Content-Length", length),
        "space before the first header": b"POST /execute HTTP/1.1\r\n Host: x\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n" + s,
        "line in the target": b"GET /health%0d%0aHost:x HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\nX: \rY\r\n\r\n" + s,
        "two requests in a method": b"GET /health HTTP/1.1 POST /execute HTTP/1.1\r\nHost: localhost\r\n\r\n" + s,
        "upgrade to h2c": b"GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\n"
                          b"HTTP2-Settings: AAMAAABkAAQAAP__\r\nContent-Length: %d\r\n\r\n" % len(s) + s,
    }


@quick
def test_smuggling(daemon, stopped_by):
    """Every ambiguous end of a message: one answer, an error, and the end of the connection; and the hidden request was not executed:
    there is no session of its name."""
    lands = [what for what, data in smuggling("control").items() if would_execute(data, b"control")]
    landed(len(lands) >= 35, f"{len(lands)} of {len(smuggling('control'))} land on a gullible server")
    wrong = []
    for i, (what, data) in enumerate(smuggling("?").items()):
        name = f"smuggled-{i}"
        data = smuggling(name)[what]
        got, closed = daemon.raw(data, 3)
        try:
            answers = parse_responses(got)
        except ValueError as e:
            answers = [str(e)]
        if len(answers) != 1 or not isinstance(answers[0], Response) or not 400 <= answers[0].status <= 505 or not closed:
            wrong.append((what, closed, answers[:3] or got[:200]))
        if name in daemon.sessions():
            wrong.append((what, "the second request was executed"))
    assert not wrong, "\n".join(map(str, wrong))
    # The side effect is a good one: the same request by itself has it.
    daemon.raw(smuggled("smuggled-itself"), 0.3)
    landed("smuggled-itself" in daemon.sessions(), daemon.sessions())
    stopped_by("prescan, behind it llhttp in strict mode")


@quick
def test_smuggling_in_single_bytes(daemon, stopped_by):
    """The same bytes in single pieces give the same: no ambiguity comes from where a packet ends."""
    cases = smuggling("in-pieces")
    landed(len(cases) > 40, len(cases))
    for what in ("length and chunked", "two lengths", "bare LF", "chunk overflow", "folded coding", "LF only"):
        data = cases[what]
        whole = parse_responses(daemon.raw(data, 2)[0])
        with daemon.connect(at_most(3)) as s:
            s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            with contextlib.suppress(OSError):
                for i in range(len(data)):
                    s.sendall(data[i:i + 1])
            got = b""
            with contextlib.suppress(OSError):
                while (more := s.recv(65536)):
                    got += more
        pieces = parse_responses(got) if got else whole    # a reset may overtake the answer
        assert [x.status for x in pieces] == [x.status for x in whole], (what, pieces, whole)
    assert "in-pieces" not in daemon.sessions()
    stopped_by("a parser of single bytes")


@quick
def test_pipelining(daemon, stopped_by):
    """Pipelined requests are answered in order, one after another; behind an error nothing is looked at."""
    names = [unique() for _ in range(20)]
    data = b"".join(post(b, f"Content-Length: {len(b)}") for b in (
        json.dumps({"code": f"'{n}'", "session_id": names[0]}).encode() for n in names))
    answers = parse_responses(daemon.raw(data + b"GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", 20)[0])
    assert [a.status for a in answers] == [200] * 21, answers
    assert [a.json["result"]["text/plain"].strip("'") for a in answers[:-1]] == names, "out of order"
    landed(names[0] in daemon.sessions(), "the side effect")
    tail = unique()
    bad = b"GET /health HTTP/1.1\r\nHost: localhost\r\nX : y\r\n\r\n"
    answers = parse_responses(daemon.raw(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n" + bad + smuggled(tail), 5)[0])
    assert [a.status for a in answers] == [200, 400] and tail not in daemon.sessions(), answers
    with Watch(daemon, neighbour=True) as w:
        got, _ = daemon.raw(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n" * 4000 + b"GET / HTTP/1.0\r\n\r\n", 10)
    assert got.count(b"HTTP/1.1 200 OK\r\n") == 4000
    w.check(ceiling=64 * MIB, seconds=SERVED)
    stopped_by("one request at a time; reading is paused")


# ---- JSON --------------------------------------------------------------------------------------------------------------------

def bodies():
    """{name: (body, statuses)} for POST /execute."""
    d, m = 1000000, b'{"code":"1","stdin":'
    return {
        "depth of a million": (b"[" * d + b"]" * d, {400}),
        "depth of a million, objects": (b'{"a":' * d + b"1" + b"}" * d, {400}),
        "depth without an end": (b"[" * 2000000, {400}),
        "deep in a field": (b'{"code":"1","x":' + b"[" * 100000 + b"]" * 100000 + b"}", {400}),
        "million values": (b"[" + b"0," * 1000000 + b"0]", {400}),
        "million objects": (b"[" + b"{}," * 1000000 + b"0]", {400}),
        "million keys": (b"{" + b",".join(b'"%d":0' % i for i in range(500000)) + b"}", {400, 422}),
        "same hash": (b"{" + b",".join(b'"a%d":0' % (i * 65536) for i in range(90000)) + b"}", {400, 422}),
        "duplicate keys": (b'{"code":"1","code":"2"}', {400}),
        "duplicate by escape": (b'{"code":"1","\\u0063ode":"2"}', {400}),
        "duplicate inside": (b'{"code":"1","x":{"a":1,"a":2}}', {400}),
        "bad UTF-8": (b'{"code":"\xff\xfe"}', {400}),
        "surrogate in UTF-8": (b'{"code":"\xed\xa0\x80"}', {400}),
        "overlong": (b'{"code":"\xc0\xaf"}', {400}),
        "lone escape": (b'{"code":"\\ud800"}', {400}),
        "half a pair": (b'{"code":"\\ud800\\u0041"}', {400}),
        "NUL": (b'{"code":"a\\u0000b"}', {400, 422}),
        "raw NUL": (b'{"code":"a\0b"}', {400}),
        "NUL in a key": (b'{"code\\u0000":"1"}', {400, 422}),
        "control byte": (b'{"code":"a\nb"}', {400}),
        "huge integer": (b'{"code":"1","timeout":' + b"9" * 1000 + b"}", {400, 422}),
        "million digits": (b'{"code":"1","timeout":' + b"9" * 1000000 + b"}", {400, 422}),
        "2^63": (b'{"code":"1","timeout":9223372036854775808}', {400, 422}),
        "2^64 + 1": (b'{"code":"1","timeout":18446744073709551617}', {400, 422}),
        "negative": (b'{"code":"1","timeout":-1}', {422}),
        "zero": (b'{"code":"1","timeout":0}', {422}),
        "fraction too small": (b'{"code":"1","timeout":0.0001}', {422}),
        "fraction too large": (b'{"code":"1","timeout":86400.5}', {422}),
        "exponent": (b'{"code":"1","timeout":1e9}', {422}),
        "infinite exponent": (b'{"code":"1","timeout":1e999999999}', {400, 422}),
        "small exponent": (b'{"code":"1","timeout":1e-999999999}', {400, 422}),
        "NaN": (b'{"code":"1","timeout":NaN}', {400}),
        "Infinity": (b'{"code":"1","timeout":Infinity}', {400}),
        "hexadecimal": (b'{"code":"1","timeout":0x10}', {400}),
        "leading zero": (b'{"code":"1","timeout":010}', {400}),
        "plus": (b'{"code":"1","timeout":+1}', {400}),
        "comment": (b'{"code":"1"/* x */}', {400}),
        "line comment": (b'// x\n{"code":"1"}', {400}),
        "trailing comma": (b'{"code":"1",}', {400}),
        "trailing bytes": (b'{"code":"1"} x', {400}),
        "second document": (b'{"code":"1"}{"code":"2"}', {400}),
        "trailing NUL": (b'{"code":"1"}\0', {400}),
        "NUL after a number": (b'{"code":"1","timeout":5\0}', {400}),
        "NUL after a word": (b'{"code":"1","stream":false\0}', {400}),
        "BOM": (b'\xef\xbb\xbf{"code":"1"}', {400}),
        "UTF-16": ('{"code":"1"}'.encode("utf-16"), {400}),
        "single quotes": (b"{'code':'1'}", {400}),
        "array": (b'["code"]', {422}),
        "string": (b'"code"', {400, 422}),
        "null": (b"null", {400, 422}),
        "nothing": (b"", {400, 422}),
        "spaces": (b" " * 1000000, {400, 422}),
        "half": (b'{"code":"1', {400}),
        "wrong type": (b'{"code":1}', {422}),
        "string for a number": (b'{"code":"1","timeout":"1"}', {422}),
        "number for a boolean": (b'{"code":"1","stream":1}', {422}),
        "unknown field": (b'{"code":"1","__proto__":{}}', {422}),
        "empty code": (b'{"code":""}', {422}),
        "code of 2 MB": (b'{"code":"' + b"#" * 2000000 + b'"}', {422}),
        "session with a path": (b'{"code":"1","session_id":"../../x"}', {422}),
        "long session": (b'{"code":"1","session_id":"' + b"a" * 65 + b'"}', {422}),
        "escapes": (m + b'"' + b"\\u0041" * 1000000 + b'"}', {200}),
        "large and good": (m + b'"' + b"a" * 7000000 + b'"}', {200}),
    }


@quick
def test_malformed_json(daemon, stopped_by):
    """Anything but the expected JSON: a precise 4xx in the one shape; bounded memory, and no wait for others."""
    table = bodies()
    believed = 0
    for what in ("duplicate keys", "NaN", "BOM", "lone escape"):
        with contextlib.suppress(ValueError):
            json.loads(table[what][0].decode("utf-8-sig"))
            believed += 1
    landed(believed == 4, "another parser takes what must be refused")
    wrong, slowest = [], (0.0, "")
    with Watch(daemon, neighbour=True) as w:
        for what, (body, want) in table.items():
            t = time.monotonic()
            r = daemon.request("POST", "/execute", body)
            slowest = max(slowest, (time.monotonic() - t, what))
            if r.status not in want:
                wrong.append((what, r))
            elif r.status >= 400:
                r.code
                if len(r.body) > 2000:
                    wrong.append((what, "a long answer", len(r.body)))
    assert not wrong, "\n".join(map(str, wrong))
    assert slowest[0] < at_most(3), slowest
    w.check(ceiling=128 * MIB, seconds=SERVED)
    assert not daemon.sessions(), "something was executed"
    stopped_by("depth and number of values are counted before the parser")


@quick
def test_malformed_json_over_the_websocket(daemon, stopped_by):
    """The same bodies as messages: refused one by one, and the socket lives on."""
    table = bodies()
    with WebSocket(daemon) as w:
        landed(w.status == 101, w.headers)
        for what, (body, want) in table.items():
            try:
                body.decode("utf-8")
            except UnicodeDecodeError:
                continue               # 1007, see test_serve_ws.py
            if 200 in want or not body:
                continue
            typed = body.replace(b'{"code"', b'{"type":"execute","code"', 1) if body.startswith(b'{"code"') else body
            w.put(w.frame(1, typed))
            m = json.loads(next(w.messages()))
            assert m["type"] == "refused" and m["error"]["code"] and m["error"]["message"], (what, m)
        assert w.run("6 * 7")[-1]["result"]["result"] == {"text/plain": "42"}
    stopped_by("the same checks")


# ---- clients that vanish -------------------------------------------------------------------------------------------------------

def vanish(s, how):
    """End a connection rudely."""
    if how == "reset":
        s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    elif how == "silent":
        s.setsockopt(socket.IPPROTO_TCP, 19, 1)   # TCP_REPAIR: the socket is closed without a packet
    elif how == "half":
        s.shutdown(socket.SHUT_WR)
        return
    s.close()


@quick
@pytest.mark.parametrize("kind", ["answer", "stream", "websocket"])
@pytest.mark.parametrize("how", ["close", "reset", "half"])
def test_client_leaves_mid_run(daemon, kind, how, stopped_by):
    """The client of a fresh sandbox leaves: its code ends at once, and its cell is gone."""
    mark = unique("v")[:14]
    code = call_yourself(mark) + "import signal, time\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\nwhile True: time.sleep(1)"
    body = json.dumps({"code": code, "timeout": 60, **({"stream": True} if kind == "stream" else {})}).encode()
    if kind == "websocket":
        w = WebSocket(daemon)
        w.send({"type": "execute", "code": code, "timeout": 60})
        s = w.s
    else:
        s = daemon.connect()
        s.sendall(post(body, f"Content-Length: {len(body)}"))
    landed(until(lambda: daemon.named(mark), 10, "the code"), "it runs")
    t = time.monotonic()
    vanish(s, how)
    if kind == "websocket" and how != "half":
        w.close()
    until(lambda: not daemon.named(mark), 5, "the end of what nobody waits for")
    took = time.monotonic() - t
    s.close()
    if kind == "websocket":
        w.close()
    until(lambda: daemon.health()["sandboxes"]["live"] == 0, 5, "no sandbox")
    daemon.quiet()
    assert took < at_most(3), f"it ran on for {took:.1f} s"
    stopped_by("the end of the connection is the end of the sandbox")


@quick
def test_client_becomes_silent(daemon, stopped_by):
    """A client whose machine is gone sends nothing, so the deadline ends its code."""
    mark = unique("v")[:14]
    body = json.dumps({"code": call_yourself(mark) + "import time; time.sleep(60)", "timeout": 1}).encode()
    s = daemon.connect()
    s.sendall(post(body, f"Content-Length: {len(body)}"))
    until(lambda: daemon.named(mark), 10, "the code")
    port = s.getsockname()[1]
    vanish(s, "silent")
    landed(f"{port:04X}" not in "".join(x.split()[1] for x in open("/proc/net/tcp").read().splitlines()[1:] if x.split()[3] == "01"),
           "the client's end is gone")
    until(lambda: not daemon.named(mark), 8, "the end by the deadline")
    stopped_by("deadline")


@quick
def test_client_of_a_session_leaves(daemon, stopped_by):
    """The client of a session goes away: its code is interrupted, the session and its variables stay."""
    name, mark = unique(), unique("v")[:14]
    daemon.execute("x = 5", session_id=name)
    body = json.dumps({"code": call_yourself(mark) + "import time; time.sleep(60)", "timeout": 60, "session_id": name}).encode()
    s = daemon.connect()
    s.sendall(post(body, f"Content-Length: {len(body)}"))
    until(lambda: daemon.named(mark), 10, "the code")
    waiting = daemon.connect()
    waiting.sendall(post(code_body(name), f"Content-Length: {len(code_body(name))}"))
    landed(until(lambda: daemon.request("GET", "/sessions").json["sessions"][0]["queued"] == 2, 5, "a queue"), "one runs, one waits")
    waiting.close()
    s.close()
    t = time.monotonic()
    r = daemon.execute("x", session_id=name)
    assert r["result"] == {"text/plain": "5"} and time.monotonic() - t < at_most(5), r
    assert daemon.request("GET", "/sessions").json["sessions"][0]["queued"] == 0
    stopped_by("interrupt")


@quick
def test_client_leaves_mid_upload(daemon, stopped_by):
    """Half a head, half a body, half a chunk, and gone: nothing was executed, nothing is kept."""
    before = daemon.descriptors()
    name = unique()
    body = code_body(name)
    whole = post(body, f"Content-Length: {len(body)}")
    chunked = post(b"", "Transfer-Encoding: chunked") + b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body)
    with Watch(daemon, neighbour=True) as w:
        for how in ("close", "reset", "half"):
            for data in (whole, chunked):
                for cut in (1, 30, len(data) // 2, len(data) - 3, len(data) - 1):
                    s = daemon.connect(2)
                    s.sendall(data[:cut])
                    vanish(s, how)
                    with contextlib.suppress(OSError):
                        s.close()
        for _ in range(20):
            s = daemon.connect(2)
            s.sendall(post(b" " * 3000000, "Content-Length: 8000000"))
            vanish(s, "reset")
    w.check(ceiling=96 * MIB, seconds=SERVED)
    assert name not in daemon.sessions()
    landed(daemon.raw(whole, 0.3)[0].startswith(b"HTTP/1.1 200") and name in daemon.sessions(), "the whole of it is executed")
    until(lambda: daemon.descriptors() <= before + 40, 10, "closed connections")
    stopped_by("executed when complete")


@quick
def test_many_clients_leave_at_once(daemon, stopped_by):
    """Forty clients start forty sandboxes and are gone in the same moment: every cell is, too."""
    code = "import time; time.sleep(60)"
    body = json.dumps({"code": code, "timeout": 60}).encode()
    for how in ("close", "reset"):
        all_ = []
        for _ in range(20):
            s = daemon.connect()
            s.sendall(post(body, f"Content-Length: {len(body)}"))
            all_.append(s)
        until(lambda: daemon.health()["sandboxes"]["busy"] >= 10, 20, "ten that run")
        for s in all_:
            vanish(s, how)
        until(lambda: daemon.health()["sandboxes"]["live"] == 0, 10, "no sandbox")
    landed(daemon.execute("1", session_id=unique())["state"] == "kept", "others live on")
    stopped_by("the end of the connection is the end of the sandbox")


@quick
def test_slow_reader_vanishes(daemon, stopped_by):
    """A stream that is full, and its reader goes: the writer in the cell does not wait for ever."""
    mark = unique("v")[:14]
    with Events(daemon, call_yourself(mark) + "while True: print('x' * 1000)", timeout=60, receive_buffer=2048):
        until(lambda: daemon.named(mark), 10, "the code")
        time.sleep(0.5)
        landed(daemon.named(mark), "it waits")
    until(lambda: not daemon.named(mark), 5, "its end")
    stopped_by("the end of the connection is the end of the sandbox")


# ---- all of it beside a neighbour ----------------------------------------------------------------------------------------------------

@slow
def test_all_malformed_requests_at_once(daemon, stopped_by):
    """Everything above from eight threads for ten seconds: another client is served, the daemon is as large afterwards as before."""
    over = time.monotonic() + 10
    everything = [d for d, _ in GIANT.values()] + list(smuggling("at-once").values()) + \
        [post(b, f"Content-Length: {len(b)}") for b, w in bodies().values() if 200 not in w]
    count, services = [0] * 8, sorted(children(daemon.pid))

    def rude(k):
        i = k
        while time.monotonic() < over:
            with contextlib.suppress(OSError):
                daemon.raw(everything[i % len(everything)], 1, answered=False)
            i += 7
            count[k] += 1
    with Watch(daemon, neighbour=True) as w:
        threads = [threading.Thread(target=rude, args=(k,)) for k in range(8)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
    landed(sum(count) > (200 if lib.EXACT else 100), count)
    w.check(ceiling=200 * MIB, seconds=5)
    assert "at-once" not in daemon.sessions() and sorted(children(daemon.pid)) == services
    until(lambda: daemon.descriptors() < 200, 10, "closed connections")
    stopped_by("bounded buffers; deadlines")


@quick
def test_keep_alive_is_not_shared(daemon, stopped_by):
    """An error on one request leaves nothing for the next one of the connection, where it may live on."""
    c = http.client.HTTPConnection("127.0.0.1", daemon.port, timeout=20)
    try:
        for path, want in (("/nothing", 404), ("/health?x=1", 400), ("/health", 200), ("/sessions/none", 405), ("/health", 200)):
            c.request("GET", path)
            r = c.getresponse()
            body = r.read()
            landed(r.status == want, (path, r.status, body[:200]))
            assert os.path.basename(str(daemon.state)) not in body.decode() or path == "/health", body
    finally:
        c.close()
    stopped_by("nothing to stop")
