# SPDX-License-Identifier: Apache-2.0
"""test_websocket.py - The WebSocket client against a server that is written here, byte by byte, and may break the rules."""

from __future__ import annotations

import base64
import contextlib
import hashlib
import random
import socket
import struct
import threading

import pytest

from caisson._websocket import (
    BINARY,
    CLOSE,
    CONTINUATION,
    PING,
    PONG,
    TEXT,
    Closed,
    Decoder,
    HandshakeRefused,
    WebSocket,
    WebSocketError,
    frame,
    mask,
)

GUID = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"


def server_frame(opcode, payload=b"", final=True, masked=0, rsv=0):
    n = len(payload)
    size = (
        struct.pack(">B", masked | n)
        if n < 126
        else struct.pack(">BH", masked | 126, n)
        if n < 65536
        else struct.pack(">BQ", masked | 127, n)
    )
    return bytes([(0x80 if final else 0) | rsv | opcode]) + size + payload


def unmasked(data):
    """(opcode, payload, rest) of a client's frame."""
    n, at = data[1] & 0x7F, 2
    assert data[1] & 0x80, "a client masks"
    if n == 126:
        n, at = struct.unpack(">H", data[2:4])[0], 4
    elif n == 127:
        n, at = struct.unpack(">Q", data[2:10])[0], 10
    key, payload = data[at : at + 4], data[at + 4 : at + 4 + n]
    return data[0] & 0x0F, bytes(b ^ key[i % 4] for i, b in enumerate(payload)), data[at + 4 + n :]


class Server:
    """The other end of one connection: answers the handshake, then sends prepared bytes."""

    def __init__(self, answer=None):
        self.mine, self.theirs = socket.socketpair()
        self.request = b""
        self.thread = threading.Thread(target=self.greet, args=(answer,))
        self.thread.start()

    def greet(self, answer):
        while b"\r\n\r\n" not in self.request:
            self.request += self.mine.recv(4096)
        key = next(line.split(b": ")[1] for line in self.request.split(b"\r\n") if line.startswith(b"Sec-WebSocket-Key"))
        accept = base64.b64encode(hashlib.sha1(key + GUID).digest())
        head = (
            b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: "
            + accept
            + b"\r\n\r\n"
        )
        with contextlib.suppress(OSError):  # a client that had enough
            self.mine.sendall(answer or head)

    def client(self, **kw):
        try:
            return WebSocket(self.theirs, host="h", path="/p?q=1", headers={"Authorization": "Bearer t"}, timeout=10, **kw)
        finally:
            self.thread.join()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.mine.close()
        self.theirs.close()


def test_messages_both_ways():
    with Server() as s:
        ws = s.client()
        assert s.request.startswith(b"GET /p?q=1 HTTP/1.1\r\nHost: h\r\n") and b"Authorization: Bearer t\r\n" in s.request
        s.mine.sendall(
            server_frame(TEXT, "grüße".encode())
            + server_frame(BINARY, b"x" * 70000)
            + server_frame(TEXT, b"a", False)
            + server_frame(PING, b"p")
            + server_frame(CONTINUATION, b"b", False)
            + server_frame(CONTINUATION, b"c")
        )
        assert [ws.receive(5), ws.receive(5), ws.receive(5)] == ["grüße", b"x" * 70000, "abc"]
        ws.send("hello")
        ws.send(b"\0" * 300)
        data = s.mine.recv(4096)
        opcode, payload, data = unmasked(data)
        assert (opcode, payload) == (PONG, b"p")
        opcode, payload, data = unmasked(data)
        assert (opcode, payload) == (TEXT, b"hello")
        assert unmasked(data)[:2] == (BINARY, b"\0" * 300)
        ws.close()
        assert ws.closed and unmasked(s.mine.recv(4096))[:2] == (CLOSE, struct.pack(">H", 1000))
        with pytest.raises(Closed):
            ws.receive(1)
        with pytest.raises(Closed):
            ws.send("x")


def test_a_wait_that_runs_out_loses_nothing():
    with Server() as s:
        ws = s.client()
        data = server_frame(TEXT, b"x" * 1000)
        for i in range(0, len(data), 300):
            with pytest.raises(TimeoutError):
                ws.receive(0)
            s.mine.sendall(data[i : i + 300])
        assert ws.receive(0) == "x" * 1000
        ws.close()


def test_the_other_end_leaves():
    with Server() as s:
        ws = s.client()
        s.mine.sendall(server_frame(TEXT, b"last") + server_frame(CLOSE, struct.pack(">H", 1001) + b"going"))
        assert ws.receive(5) == "last"
        with pytest.raises(Closed) as e:
            ws.receive(5)
        assert (e.value.code, e.value.reason) == (1001, "going")
    with Server() as s:
        ws = s.client()
        s.mine.close()
        with pytest.raises(Closed) as e:
            ws.receive(5)
        assert e.value.code == 1006


@pytest.mark.parametrize(
    "bad",
    [
        server_frame(TEXT, b"\xff\xfe"),
        server_frame(TEXT, b"x", masked=0x80),
        server_frame(TEXT, b"x", rsv=0x40),
        server_frame(3),
        server_frame(CONTINUATION, b"x"),
        server_frame(TEXT, b"a", False) + server_frame(TEXT, b"b"),
        server_frame(PING, b"x" * 126),
        server_frame(PING, b"x", False),
        server_frame(BINARY, b"x" * 2000),
        server_frame(BINARY, b"x" * 600, False) + server_frame(CONTINUATION, b"x" * 600),
        struct.pack(">BBQ", 0x82, 127, 1 << 62),
    ],
    ids=[
        "no utf-8",
        "masked",
        "extension",
        "unknown",
        "no beginning",
        "two beginnings",
        "long ping",
        "ping in pieces",
        "too large",
        "too large in pieces",
        "4 EiB",
    ],
)
def test_broken_rules(bad):
    with Server() as s:
        ws = s.client(most=1000)
        s.mine.sendall(bad)
        with pytest.raises(WebSocketError):
            ws.receive(5)
        assert ws.closed


@pytest.mark.parametrize(
    "answer",
    [b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: wrong\r\n\r\n", b"nonsense\r\n\r\n", b"x" * 200000],
    ids=["wrong key", "no http", "endless"],
)
def test_no_handshake(answer):
    with Server(answer) as s, pytest.raises(WebSocketError):
        s.client()


def test_refused():
    with Server(b"HTTP/1.1 401 Unauthorized\r\nContent-Length: 2\r\nX-Y: z\r\n\r\n{}") as s:
        with pytest.raises(HandshakeRefused) as e:
            s.client()
        assert (e.value.status, e.value.body, e.value.headers["x-y"]) == (401, b"{}", "z")


def test_no_header_is_smuggled():
    a, b = socket.socketpair()
    with b, pytest.raises(ValueError, match="line break"):
        WebSocket(a, host="h", path="/", headers={"A": "b\r\nC: d"})
    assert a.fileno() == -1, "closed"


def test_masks_and_pieces():
    r = random.Random(7)
    for n in (0, 1, 125, 126, 65535, 65536, 100001):
        payload, key = r.randbytes(n), r.randbytes(4)
        assert mask(mask(payload, key), key) == payload
        assert unmasked(frame(BINARY, payload, key))[:2] == (BINARY, payload)
        decoder, data, got = Decoder(1 << 20), server_frame(BINARY, payload), None
        while data:
            size = r.randrange(1, 5000)
            decoder.feed(data[:size])
            data = data[size:]
            got = decoder.next()
        assert got == (BINARY, payload)


def test_random_bytes_end():
    for seed in range(2000):
        r = random.Random(seed)
        decoder = Decoder(5000)
        try:
            for _ in range(20):
                decoder.feed(r.randbytes(r.randrange(1, 50)))
                while decoder.next():
                    pass
        except WebSocketError:
            pass
