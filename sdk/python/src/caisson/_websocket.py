# SPDX-License-Identifier: Apache-2.0
"""_websocket.py - A client of WebSockets (RFC 6455): one connection, messages in both directions.

Theory of operation. Decoder parses frames and has no socket: bytes go in, events come out, and a violation of the RFC raises an
exception. So it is tested byte by byte, without a server. WebSocket adds the socket: the handshake, masks, automatic answers to pings,
and a deadline for every wait. A wait that times out loses nothing: bytes that had arrived stay in the decoder.

Input is bounded: a message of more than `most` bytes ends the connection.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import os
import socket
import ssl
import struct
import threading
import time
from typing import List, Mapping, Optional, Tuple, Union

CONTINUATION, TEXT, BINARY, CLOSE, PING, PONG = 0, 1, 2, 8, 9, 10
HEAD_MAX = 64 << 10
_GUID = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"

Event = Tuple[int, bytes]  # opcode and payload; of messages in several pieces, the first one's opcode


class WebSocketError(ConnectionError):
    """The other end violated the protocol."""

    def __init__(self, message: str, code: int = 1002) -> None:
        super().__init__(message)
        self.code = code


class HandshakeRefused(ConnectionError):
    """The server answered with something other than a WebSocket."""

    def __init__(self, status: int, headers: Mapping[str, str], body: bytes) -> None:
        super().__init__("the server answered %d instead of opening a WebSocket" % status)
        self.status, self.headers, self.body = status, headers, body


class Closed(ConnectionError):
    """The connection is over. code: the reason that the other end gave, 1006 if it gave none."""

    def __init__(self, code: int = 1006, reason: str = "") -> None:
        super().__init__("the WebSocket was closed (%d%s)" % (code, ": " + reason if reason else ""))
        self.code, self.reason = code, reason


def mask(data: bytes, key: bytes) -> bytes:
    """Mask data as one large number: a loop over bytes would take a second for ten megabytes."""
    whole = (key * (len(data) // 4 + 1))[: len(data)]
    return (int.from_bytes(data, "little") ^ int.from_bytes(whole, "little")).to_bytes(len(data), "little")


def frame(opcode: int, payload: bytes, key: bytes) -> bytes:
    """One whole frame of a client, which must be masked."""
    n = len(payload)
    if n < 126:
        head = struct.pack(">BB", 0x80 | opcode, 0x80 | n)
    elif n < 1 << 16:
        head = struct.pack(">BBH", 0x80 | opcode, 0x80 | 126, n)
    else:
        head = struct.pack(">BBQ", 0x80 | opcode, 0x80 | 127, n)
    return head + key + mask(payload, key)


class Decoder:
    """Frames of a server, as messages and control frames."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._data = bytearray()
        self._parts: List[bytes] = []
        self._size = 0
        self._opcode = 0

    def feed(self, data: bytes) -> None:
        self._data += data

    def next(self) -> Optional[Event]:
        """The next whole message or control frame; None: more bytes are needed."""
        while True:
            got = self._frame()
            if got is None:
                return None
            final, opcode, payload = got
            if opcode >= CLOSE:
                return opcode, payload
            done = self._piece(final, opcode, payload)
            if done is not None:
                return done

    def _piece(self, final: bool, opcode: int, payload: bytes) -> Optional[Event]:
        if (opcode == CONTINUATION) != bool(self._opcode):
            raise WebSocketError("a continuation without a message, or a new message inside of another one")
        self._opcode = self._opcode or opcode
        self._parts.append(payload)
        self._size += len(payload)
        if not final:
            return None
        event = self._opcode, b"".join(self._parts)
        self._parts, self._size, self._opcode = [], 0, 0
        return event

    def _frame(self) -> Optional[Tuple[bool, int, bytes]]:
        data = self._data
        if len(data) < 2:
            return None
        opcode, n, at = data[0] & 0x0F, data[1], 2
        if data[0] & 0x70:
            raise WebSocketError("a frame uses an extension that was not negotiated")
        if opcode not in (CONTINUATION, TEXT, BINARY, CLOSE, PING, PONG):
            raise WebSocketError("a frame of an unknown kind (%d)" % opcode)
        if n & 0x80:
            raise WebSocketError("a server's frame is masked")
        if opcode >= CLOSE and (n > 125 or not data[0] & 0x80):
            raise WebSocketError("a control frame is too long or in pieces")
        if n >= 126:
            size = 2 if n == 126 else 8
            if len(data) < at + size:
                return None
            n, at = int.from_bytes(data[at : at + size], "big"), at + size
        if opcode < CLOSE and self._size + n > self._most:
            raise WebSocketError("a message is larger than %d bytes" % self._most, 1009)
        if len(data) < at + n:
            return None
        payload, final = bytes(data[at : at + n]), bool(data[0] & 0x80)
        del data[: at + n]
        return final, opcode, payload


class WebSocket:
    """One connection. Only one thread at a time may call receive(); any thread may call send()."""

    def __init__(
        self, sock: socket.socket, *, host: str, path: str, headers: Mapping[str, str], timeout: float = 30, most: int = 64 << 20
    ) -> None:
        """Takes the socket, connected, and with TLS if there is to be any; closes it if the handshake fails."""
        self._sock = sock
        self._decoder = Decoder(most)
        self._sending = threading.Lock()
        self._over: Optional[Closed] = None
        try:
            self._handshake(host, path, headers, timeout)
        except BaseException:
            sock.close()
            raise

    # -- the handshake --

    def _handshake(self, host: str, path: str, headers: Mapping[str, str], timeout: float) -> None:
        key = base64.b64encode(os.urandom(16))
        lines = [
            "GET %s HTTP/1.1" % path,
            "Host: " + host,
            "Upgrade: websocket",
            "Connection: Upgrade",
            "Sec-WebSocket-Key: " + key.decode(),
            "Sec-WebSocket-Version: 13",
        ]
        lines += ["%s: %s" % pair for pair in headers.items()]
        if any("\r" in line or "\n" in line for line in lines):
            raise ValueError("a line break in the address or a header of a WebSocket")
        self._sock.settimeout(timeout)
        self._sock.sendall("\r\n".join([*lines, "", ""]).encode("latin-1"))
        head, rest = self._read_head(time.monotonic() + timeout)
        status, fields = _parse_head(head)
        if status != 101:
            raise HandshakeRefused(status, fields, self._read_body(fields, rest))
        expected = base64.b64encode(hashlib.sha1(key + _GUID).digest()).decode()
        if fields.get("sec-websocket-accept") != expected or fields.get("upgrade", "").lower() != "websocket":
            raise WebSocketError("the server's answer is not a WebSocket handshake")
        self._decoder.feed(rest)

    def _read_head(self, deadline: float) -> Tuple[bytes, bytes]:
        data = b""
        while b"\r\n\r\n" not in data:
            if len(data) > HEAD_MAX:
                raise WebSocketError("the answer to the handshake is too long")
            self._sock.settimeout(max(0.001, deadline - time.monotonic()))
            more = self._sock.recv(65536)
            if not more:
                raise Closed()
            data += more
        head, _, rest = data.partition(b"\r\n\r\n")
        return head, rest

    def _read_body(self, fields: Mapping[str, str], rest: bytes) -> bytes:
        length = fields.get("content-length", "")
        n = min(int(length), HEAD_MAX) if length.isdigit() else 0
        while len(rest) < n:
            more = self._sock.recv(n - len(rest))
            if not more:
                break
            rest += more
        return rest[:n]

    # -- messages --

    def send(self, message: Union[str, bytes], timeout: Optional[float] = 30) -> None:
        if isinstance(message, str):
            self._send(TEXT, message.encode(), timeout)
        else:
            self._send(BINARY, message, timeout)

    def _send(self, opcode: int, payload: bytes, timeout: Optional[float]) -> None:
        with self._sending:
            if self._over:
                raise self._over
            self._sock.settimeout(timeout)
            self._sock.sendall(frame(opcode, payload, os.urandom(4)))

    def receive(self, timeout: Optional[float] = None) -> Union[str, bytes]:
        """The next message. Raises TimeoutError if none came in time, Closed at the end, WebSocketError for a violation of the protocol."""
        deadline = None if timeout is None else time.monotonic() + timeout
        while True:
            if self._over:
                raise self._over
            try:
                event = self._decoder.next()
                if event is None:
                    self._fill(deadline)
                    continue
                message = self._take(*event)
            except WebSocketError as exc:
                self._give_up(exc.code)
                raise
            if message is not None:
                return message

    def _fill(self, deadline: Optional[float]) -> None:
        """Read some more bytes; without time left, those that have arrived."""
        self._sock.settimeout(None if deadline is None else max(0.0, deadline - time.monotonic()))
        try:
            data = self._sock.recv(1 << 18)
        except (socket.timeout, BlockingIOError, ssl.SSLWantReadError):
            raise TimeoutError("nothing came over the WebSocket in time") from None
        except OSError:
            self._end(Closed())
            return
        if not data:
            self._end(Closed())
            return
        self._decoder.feed(data)

    def _take(self, opcode: int, payload: bytes) -> Optional[Union[str, bytes]]:
        if opcode == PING:
            self._send(PONG, payload, 30)
        elif opcode == CLOSE:
            code = struct.unpack(">H", payload[:2])[0] if len(payload) >= 2 else 1005
            with contextlib.suppress(OSError):  # it may be gone already, and it sent CLOSE
                self._send(CLOSE, payload[:2], 5)
            self._end(Closed(code, payload[2:].decode("utf-8", "replace")))
        elif opcode == TEXT:
            try:
                return payload.decode()
            except UnicodeDecodeError:
                raise WebSocketError("a text is not UTF-8", 1007) from None
        elif opcode == BINARY:
            return payload
        return None

    # -- the end --

    @property
    def closed(self) -> bool:
        return self._over is not None

    def _end(self, why: Closed) -> None:
        self._over = self._over or why
        self._sock.close()

    def _give_up(self, code: int) -> None:
        with contextlib.suppress(OSError):
            self._send(CLOSE, struct.pack(">H", code), 5)
        self._end(Closed(code))

    def close(self) -> None:
        """Send CLOSE and close the socket. Never raises for a connection that is gone."""
        if not self._over:
            self._give_up(1000)


def _parse_head(head: bytes) -> Tuple[int, Mapping[str, str]]:
    first, *rest = head.decode("latin-1").split("\r\n")
    words = first.split(" ", 2)
    if len(words) < 2 or not words[0].startswith("HTTP/1.") or not words[1].isdigit():
        raise WebSocketError("the answer is not HTTP")
    fields = {}
    for line in rest:
        name, colon, value = line.partition(":")
        if colon:
            fields[name.strip().lower()] = value.strip()
    return int(words[1]), fields
