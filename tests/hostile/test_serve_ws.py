# SPDX-License-Identifier: Apache-2.0
"""test_serve_ws.py - Frames that no client sends, floods of them, sockets that are never closed; and messages of guests."""
import contextlib
import json
import socket
import struct
import time

import daemon_lib
import pytest
from daemon_controls import Bare, bare
from daemon_lib import CHANNEL, MIB, Watch, WebSocket
from process import call_yourself, unique
from lib import at_most, landed
from cell_lib import until

daemon, hostile_test, whole_module = daemon_lib.daemon, daemon_lib.hostile_test, daemon_lib.whole_module
quick = pytest.mark.quick
slow = pytest.mark.slow
frame = WebSocket.frame
GOOD = json.dumps({"type": "execute", "code": "6 * 7"}).encode()


def gullible(data):
    """Messages as one takes them from frames in an afternoon: whatever has a length is one."""
    found = []
    while len(data) >= 2:
        n, at = data[1] & 0x7f, 2
        if n == 126:
            n, at = int.from_bytes(data[2:4], "big"), 4
        elif n == 127:
            n, at = int.from_bytes(data[2:10], "big"), 10
        key = data[at:at + 4] if data[1] & 0x80 else b"\0\0\0\0"
        at += 4 if data[1] & 0x80 else 0
        body = data[at:at + n]
        found.append(bytes(c ^ key[i % 4] for i, c in enumerate(body[:4096])))
        data = data[at + n:]
    return found


def close(code, reason=b""):
    return frame(8, struct.pack(">H", code) + reason)


# {what: (bytes, close codes)}. A connection may be cut only after a close frame that says why.
BAD = {
    "unmasked": (frame(1, GOOD, mask=False), {1002}),
    "unmasked ping": (frame(9, b"x", mask=False), {1002}),
    "reserved bit 1": (frame(1, GOOD, rsv=4), {1002}),
    "reserved bit 2": (frame(1, GOOD, rsv=2), {1002}),
    "reserved bit 3": (frame(1, GOOD, rsv=1), {1002}),
    "reserved bits of a ping": (frame(9, b"", rsv=7), {1002}),
    **{f"opcode {n}": (frame(n, GOOD), {1002}) for n in (3, 4, 5, 6, 7)},
    **{f"opcode {n}": (frame(n, b""), {1002}) for n in (11, 12, 13, 14, 15)},
    "ping in fragments": (frame(9, b"a", fin=0) + frame(0, b"b"), {1002}),
    "close in fragments": (frame(8, b"\x03\xe8", fin=0) + frame(0, b"b"), {1002}),
    "ping of 126 bytes": (frame(9, b"a" * 126), {1002}),
    "close of 126 bytes": (close(1000, b"a" * 124), {1002}),
    "ping with a 64-bit length": (frame(9, b"", length=2**40, wide=64), {1002}),
    "continuation of nothing": (frame(0, GOOD), {1002}),
    "text within a text": (frame(1, b"{", fin=0) + frame(1, GOOD), {1002}),
    "binary within a text": (frame(1, b"{", fin=0) + frame(2, GOOD), {1002}),
    "length of 2^63": (frame(1, b"a", length=2**63, wide=64), {1002, 1009}),
    "length of 2^64 - 1": (frame(1, b"a", length=2**64 - 1, wide=64), {1002, 1009}),
    "length of 2^63 - 1": (frame(1, b"a", length=2**63 - 1, wide=64), {1009}),
    "length of 1 GB": (frame(1, b"a", length=1 << 30, wide=64), {1009}),
    "fragments of more than a message": (frame(1, b"a" * 5000000, fin=0) + frame(0, b"a" * 5000000), {1009}),
    "16 bits for a short length": (frame(1, GOOD, wide=16), {1002}),
    "64 bits for a short length": (frame(1, GOOD, wide=64), {1002}),
    "not UTF-8": (frame(1, b'{"type":"\xff\xfe"}'), {1007}),
    "surrogate": (frame(1, b'{"a":"\xed\xa0\x80"}'), {1007}),
    "overlong": (frame(1, b"\xc0\xaf"), {1007}),
    "beyond Unicode": (frame(1, b"\xf4\x90\x80\x80"), {1007}),
    "half a character at the end": (frame(1, b"\xf0\x9f\x98"), {1007}),
    "half a character over fragments": (frame(1, b"\xf0\x9f", fin=0) + frame(0, b"\x28\x28"), {1007}),
    "close of one byte": (frame(8, b"\x03"), {1002}),
    "close with 999": (close(999), {1002}),
    "close with 1004": (close(1004), {1002}),
    "close with 1005": (close(1005), {1002}),
    "close with 1006": (close(1006), {1002}),
    "close with 1015": (close(1015), {1002}),
    "close with 5000": (close(5000), {1002}),
    "close with 65535": (close(65535), {1002}),
    "close with a bad reason": (close(1000, b"\xff\xfe"), {1002, 1007}),
    "HTTP": (b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", {1002}),
    "noise": (bytes(range(0x83, 0x100)) * 10, {1002}),
    "NULs": (b"\0" * 10000, {1002}),
}


@quick
def test_bad_websocket_frames(daemon, stopped_by):
    """Each gets the close code of RFC 6455 for it, and the connection ends; a message beside it was not executed."""
    taken = sum(GOOD in gullible(data) for data, _ in BAD.values())
    landed(taken >= 12, f"{taken} are good messages for somebody")
    wrong = []
    with Watch(daemon, neighbour=True) as w:
        for what, (data, want) in BAD.items():
            for pieces in ([data], [data[i:i + 1] for i in range(min(len(data), 300))] + [data[300:]]):
                with WebSocket(daemon) as s:
                    s.s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                    with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                        for p in pieces:
                            s.put(p)
                    frames, code = 0, None
                    with contextlib.suppress(TimeoutError, ConnectionResetError):
                        while True:
                            opcode, body = s.read()
                            if opcode is None:
                                break
                            frames += opcode in (1, 2)
                            code = int.from_bytes(body[:2], "big") if opcode == 8 else code
                    # In single bytes a reset may overtake the close frame: the rest was not read.
                    if frames or (code not in want and not (len(pieces) > 1 and code is None)):
                        wrong.append((what, len(pieces), code, frames))
    assert not wrong, "\n".join(map(str, wrong))
    w.check(ceiling=64 * MIB, seconds=2)
    stopped_by("wslay, and checks of our own before it")


@quick
def test_unusual_websocket_frames(daemon, stopped_by):
    """Unusual but permitted frames work: fragments, a ping between them, an empty one, early frames, odd sizes."""
    early = frame(1, GOOD)
    with WebSocket(daemon, early=early) as w:
        landed(w.status == 101, w.headers)
        assert json.loads(list(w.messages())[-1])["result"]["status"] == "ok"
        w.put(frame(1, GOOD[:5], fin=0), frame(9, b"ping"), frame(0, b"", fin=0), frame(10, b"unasked"), frame(0, GOOD[5:]))
        assert w.read() == (10, b"ping")
        assert json.loads(list(w.messages())[-1])["result"]["result"] == {"text/plain": "42"}
        w.put(frame(2, GOOD))
        assert json.loads(next(w.messages()))["error"]["code"] == "not_text"
        w.put(frame(1, b""))
        assert json.loads(next(w.messages()))["type"] == "refused"
        w.put(close(1000, b"bye"))
        assert w.close_code() == 1000
    stopped_by("nothing to stop")


@quick
@pytest.mark.parametrize("what", ["pings", "pongs", "empty fragments", "single bytes", "messages", "empty messages"])
def test_websocket_floods(daemon, what, stopped_by):
    """Frames without end: the connection is ended with 1008, or served within bounds; other clients do not wait."""
    one = {"pings": frame(9, b"p" * 125), "pongs": frame(10, b"p" * 125), "empty fragments": frame(0, b"", fin=0),
           "single bytes": frame(0, b"a", fin=0), "messages": frame(1, b'{"type":"x"}'), "empty messages": frame(1, b"")}[what]
    landed(len(gullible(one * 1000)) == 1000, "frames")
    count = 0
    with Watch(daemon, neighbour=True) as w, WebSocket(daemon) as s:
        if what in ("empty fragments", "single bytes"):
            s.put(frame(1, b"", fin=0))
        end = time.monotonic() + 2
        block = one * 500
        s.s.settimeout(0.5)
        with contextlib.suppress(OSError):
            while time.monotonic() < end and count < 1000000:
                s.put(block)
                count += 500
        s.s.settimeout(30)
        code = None
        with contextlib.suppress(OSError):
            code = s.close_code()
    assert code in (1008, None), f"after {count} frames: {code}"
    w.check(ceiling=64 * MIB, seconds=2)
    stopped_by("a budget of frames")


@quick
def test_websockets_never_closed(daemon, stopped_by):
    """Two hundred sockets that send nothing, half a frame, or a close without reading: others are served, and everything ends with them."""
    before = daemon.descriptors()
    held = []
    try:
        for i in range(200):
            s = WebSocket(daemon)
            landed(s.status == 101, s.headers)
            if i % 4 == 1:
                s.put(frame(1, GOOD)[:3])
            elif i % 4 == 2:
                s.put(frame(1, GOOD, length=1000000, wide=64))
            elif i % 4 == 3:
                s.put(close(1000))
            held.append(s)
        for _ in range(5):
            assert daemon.good() < at_most(2)
        assert daemon.rss() < 64 * MIB, daemon.rss() >> 20
    finally:
        for s in held:
            s.close()
    until(lambda: daemon.descriptors() <= before + 20, 10, "closed sockets")
    stopped_by("bounded buffers")


@slow
def test_websocket_without_pongs_is_ended(daemon, stopped_by):
    """A socket whose peer is silent: pinged after 30 s, ended after 30 more; one that answers stays, with its sandbox."""
    with WebSocket(daemon, timeout=80) as silent, WebSocket(daemon, timeout=80) as alive:
        t = time.monotonic()
        assert alive.read()[0] == 9
        alive.put(frame(10, b""))
        while silent.read()[0] is not None:
            pass
        took = time.monotonic() - t
        assert 50 < took < 75, f"ended after {took:.0f} s"
        landed(alive.run("6 * 7")[-1]["result"]["status"] == "ok", "the other one lives")
    stopped_by("ping and a deadline")


HANDSHAKES = {
    "no key": {"Sec-WebSocket-Key": None},
    "short key": {"Sec-WebSocket-Key": "dGhl"},
    "key that is no base64": {"Sec-WebSocket-Key": "*" * 24},
    "version 8": {"Sec-WebSocket-Version": "8"},
    "two versions": {"Sec-WebSocket-Version": "13, 8"},
    "no version": {"Sec-WebSocket-Version": None},
    "no upgrade": {"Upgrade": None},
    "other upgrade": {"Upgrade": "h2c"},
    "no connection": {"Connection": "keep-alive"},
    "body": {"Content-Length": "5"},
    "chunked": {"Transfer-Encoding": "chunked"},
}


@quick
def test_bad_websocket_handshakes(daemon, stopped_by):
    """An incomplete handshake is a 4xx, never a 101."""
    with WebSocket(daemon) as w:
        landed(w.status == 101, w.headers)
    wrong = []
    for what, headers in HANDSHAKES.items():
        with WebSocket(daemon, headers) as w:
            if not 400 <= w.status < 500:
                wrong.append((what, w.status, w.headers))
    for line in (b"POST /execute/ws HTTP/1.1", b"GET /execute/ws HTTP/1.0", b"GET /execute HTTP/1.1", b"GET /health HTTP/1.1"):
        got, _ = daemon.raw(line + b"\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
                            b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n", 0.2)
        if got.startswith(b"HTTP/1.1 101") or not got:
            wrong.append((line, got[:100]))
    assert not wrong, "\n".join(map(str, wrong))
    stopped_by("the handshake is checked whole")


@quick
def test_websocket_messages_out_of_place(daemon, stopped_by):
    """Messages of the protocol at the wrong time, with wrong types, without a recipient: refused or ignored, and the socket continues."""
    words = [{}, [], 1, "x", None, {"type": None}, {"type": 1}, {"type": "x" * 100000}, {"type": "done"}, {"type": "execute"},
             {"type": "execute", "code": 1}, {"type": "execute", "code": "1", "type2": 1}, {"type": "input_response"},
             {"type": "input_response", "id": {}, "value": []}, {"type": "input_response", "id": 2**62, "value": "x"}, {"type": "interrupt"},
             {"type": "interrupt", "signal": 9, "pid": 1}, {"type": "execute", "code": "1", "session_id": "../x"}]
    landed(len(words) > 15, words)
    with WebSocket(daemon) as w:
        for word in words:
            w.send(word)
        refused = 0
        w.send({"type": "execute", "code": "import time; time.sleep(0.5); print('whole')", "timeout": 10})
        for _ in range(50):
            w.send({"type": "execute", "code": "print('second')"})
            w.send({"type": "input_response", "id": 1, "value": "early"})
        while True:
            m = json.loads(next(w.messages()))
            refused += m["type"] == "refused"
            if m["type"] == "done":
                break
        assert m["result"]["stdout"] == "whole\n" and refused >= 50, (m, refused)
        assert w.run("6 * 7")[-1]["type"] in ("done", "refused")
    stopped_by("the same checks as over HTTP")


# ---- what a guest sends through a socket ---------------------------------------------------------------------------------------

MESSAGES = {
    "display": b'{"type":"display"}', "empty display": b'{"type":"display","data":{},"metadata":null}', "error": b'{"type":"error"}',
    "wrong error": b'{"type":"error","name":1,"value":[],"traceback":[1,null,"x"]}', "clear": b'{"type":"clear_output"}',
    "input": b'{"type":"input_request"}', "strange input": b'{"type":"input_request","id":"x","prompt":{"a":[1]},"done":1}',
    "number": b'{"type":"result","data":5}', "null": b'{"type":"result","data":null}', "no data": b'{"type":"result"}',
}


@quick
@pytest.mark.parametrize("name", MESSAGES)
def test_forged_messages_reach_the_client_as_json(daemon, name, stopped_by):
    """Whatever a kernel sends, every message and every event that a client gets is valid JSON with its type."""
    landed(MESSAGES[name] in bare(CHANNEL + "".join(f"put({m!r} + b'\\n')\n" for m in MESSAGES.values())).lines, name)
    code = CHANNEL + f"put({MESSAGES[name]!r} + b'\\n')\ntime.sleep(0.05)\nprint(2)"
    with WebSocket(daemon) as w:
        w.send({"type": "execute", "code": code, "timeout": 10})
        got = list(w.messages())
    for text in got:
        m = json.loads(text)
        assert m["type"] in ("started", "stdout", "stderr", "display", "result", "error", "clear_output", "input_request", "done"), m
    assert json.loads(got[-1])["result"]["stdout"] == "2\n", got[-1]
    with daemon_lib.Events(daemon, code) as e:
        for event, text, _ in e:
            json.loads(text)
    stopped_by("nothing to stop: messages are data")


@slow
@pytest.mark.parametrize("flood", ["input_request", "display", "clear_output"])
def test_floods_for_a_client_that_does_not_read(daemon, flood, stopped_by):
    """Messages of a kernel that no limit of the result counts, to a socket that is not read: the queue ends, or the socket does."""
    mark = unique("w")[:14]
    line = json.dumps({"type": flood, "id": 1, "prompt": "p" * 2000, "data": {"text/plain": "x" * 2000}}).encode() + b"\n"
    code = CHANNEL + call_yourself(mark) + f"block = {line!r} * 20\nend = time.monotonic() + %s\nwhile time.monotonic() < end: put(block)"
    landed(Bare(code % 0.1).bytes > MIB, "bytes on the channel")
    with Watch(daemon, neighbour=True) as w, WebSocket(daemon, receive_buffer=2048) as s:
        s.send({"type": "execute", "code": code % 1, "timeout": 10})
        until(lambda: daemon.named(mark), 10, "the code")
        until(lambda: not daemon.named(mark), 15, "its end")
    w.check(ceiling=260 * MIB)
    stopped_by("a maximum for the queue of a connection")
