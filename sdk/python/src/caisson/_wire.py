# SPDX-License-Identifier: Apache-2.0
"""_wire.py - HTTP/1.1, Server-Sent Events and JSON lines as bytes, without any input or output.

Both transports, the one with sockets and the one with asyncio, send the bytes of request_head() and the chunk functions, and feed
their input to a ResponseParser. A head is bounded; a body is handed on piece by piece, so that memory does not grow with it. The
parser is strict where leniency is dangerous: two lengths, a length beside a transfer coding, or an unknown coding end the
connection.
"""

from __future__ import annotations

from typing import Any, Iterable, List, Mapping, NamedTuple, Optional
from urllib.parse import quote, urlencode

from .errors import ConnectionLost, ProtocolError

HEAD_MAX = 64 << 10
CHUNK_LINE_MAX = 4 << 10
EVENT_MAX = 64 << 20
LAST_CHUNK = b"0\r\n\r\n"

# ---- requests ------------------------------------------------------------------------------------------------------------


def target(path: str, query: Mapping[str, Any] | None = None) -> str:
    """A path and its query. Values of the query that are None are left out; true and false are written as in JSON."""
    if not query:
        return path
    pairs: list[tuple[str, str]] = []
    for key, value in query.items():
        for one in value if isinstance(value, (list, tuple)) else (value,):
            if one is not None:
                pairs.append((key, ("true" if one else "false") if isinstance(one, bool) else str(one)))
    return path + "?" + urlencode(pairs, quote_via=quote) if pairs else path


def segment(name: str) -> str:
    """A name as one part of a path, with every other character escaped."""
    return quote(name, safe="")


def request_head(method: str, where: str, headers: Iterable[tuple[str, str]]) -> bytes:
    """The head of a request. Raises ValueError for a line break, which would begin another header."""
    lines = [f"{method} {where} HTTP/1.1"]
    lines += [f"{name}: {value}" for name, value in headers]
    text = "\r\n".join(lines)
    if text.count("\n") != len(lines) - 1 or text.count("\r") != len(lines) - 1 or "\0" in text:
        raise ValueError("a header or the path of a request contains a line break")
    return (text + "\r\n\r\n").encode("latin-1")


def chunk(piece: bytes) -> bytes:
    """One chunk of a body without a length. An empty piece gives nothing, because an empty chunk ends the body."""
    return b"%x\r\n%b\r\n" % (len(piece), piece) if piece else b""


# ---- responses -----------------------------------------------------------------------------------------------------------


class Head(NamedTuple):
    status: int
    headers: Mapping[str, str]  # names in lower case; the values of a repeated name are joined with a comma


_HEAD, _LENGTH, _SIZE, _DATA, _CRLF, _TRAILER, _TO_END, _DONE = range(8)


class ResponseParser:
    """One response. feed() input, and call eof() at its end; then look at head, take() and done.

    reusable: whether the connection may carry another request once done.
    rest:     bytes after the response, of a connection that was switched to another protocol (101).
    """

    def __init__(self, method: str = "GET") -> None:
        self.head: Optional[Head] = None
        self.reusable = True
        self._method = method
        self._state = _HEAD
        self._buffer = bytearray()
        self._pieces: List[bytes] = []
        self._left = 0

    @property
    def done(self) -> bool:
        return self._state == _DONE

    @property
    def rest(self) -> bytes:
        return bytes(self._buffer)

    def take(self) -> bytes:
        """The part of the body that has arrived since the last call; may be empty."""
        if not self._pieces:
            return b""
        data = self._pieces[0] if len(self._pieces) == 1 else b"".join(self._pieces)
        self._pieces.clear()
        return data

    def feed(self, data: bytes) -> None:
        if self._state == _LENGTH and not self._buffer and len(data) <= self._left:
            self._hold(data)
            return
        self._buffer += data
        while self._state != _DONE and self._step():
            pass
        if self._state == _DONE and self._buffer and (self.head is None or self.head.status != 101):
            self.reusable = False  # bytes without a request

    def eof(self) -> None:
        """The other side has closed. Raises ConnectionLost if something is missing."""
        self.reusable = False
        if self._state == _TO_END:
            self._state = _DONE
        elif self._state != _DONE:
            raise ConnectionLost("the connection was closed in the middle of an answer")

    # -- one step per kind of state; false: more bytes are needed --

    def _step(self) -> bool:
        if self._state == _HEAD:
            return self._read_head()
        if self._state == _SIZE:
            return self._read_size()
        if self._state == _CRLF:
            return self._read_crlf()
        if self._state == _TRAILER:
            return self._read_trailer()
        if not self._buffer:
            return False
        if self._state == _TO_END:
            self._pieces.append(bytes(self._buffer))
            self._buffer.clear()
            return False
        data = bytes(self._buffer[: self._left])  # of _LENGTH or _DATA
        del self._buffer[: self._left]
        self._hold(data)
        return True

    def _hold(self, data: bytes) -> None:
        self._pieces.append(data)
        self._left -= len(data)
        if self._left == 0:
            self._state = _DONE if self._state == _LENGTH else _CRLF

    def _read_head(self) -> bool:
        end = self._buffer.find(b"\r\n\r\n")
        if end < 0:
            if len(self._buffer) > HEAD_MAX:
                raise ProtocolError(f"the head of an answer is longer than {HEAD_MAX} bytes")
            return False
        head = parse_head(bytes(self._buffer[:end]))
        del self._buffer[: end + 4]
        if 100 <= head.status < 200 and head.status != 101:
            return True  # an interim answer; the final one follows
        self.head = head
        self._begin_body(head)
        return True

    def _begin_body(self, head: Head) -> None:
        if "close" in head.headers.get("connection", "").lower():
            self.reusable = False
        coding, length = head.headers.get("transfer-encoding"), head.headers.get("content-length")
        if self._method == "HEAD" or head.status in (101, 204, 304):
            self._state = _DONE
        elif coding is not None:
            if coding.lower() != "chunked" or length is not None:
                raise ProtocolError(f"an answer with transfer coding {coding!r} and length {length!r}")
            self._state = _SIZE
        elif length is not None:
            if not (length.isascii() and length.isdigit()):
                raise ProtocolError(f"an answer of length {length!r}")
            self._left = int(length)
            self._state = _LENGTH if self._left else _DONE
        else:
            self.reusable = False
            self._state = _TO_END

    def _line(self) -> Optional[bytes]:
        end = self._buffer.find(b"\r\n")
        if end < 0:
            if len(self._buffer) > CHUNK_LINE_MAX:
                raise ProtocolError("a line between chunks is too long")
            return None
        line = bytes(self._buffer[:end])
        del self._buffer[: end + 2]
        return line

    def _read_size(self) -> bool:
        line = self._line()
        if line is None:
            return False
        digits = line.split(b";", 1)[0].strip()
        if not digits or len(digits) > 15 or digits.strip(b"0123456789abcdefABCDEF"):
            raise ProtocolError(f"a chunk of size {line[:40]!r}")
        self._left = int(digits, 16)
        self._state = _DATA if self._left else _TRAILER
        return True

    def _read_crlf(self) -> bool:
        if len(self._buffer) < 2:
            return False
        if self._buffer[:2] != b"\r\n":
            raise ProtocolError("a chunk is longer than its size")
        del self._buffer[:2]
        self._state = _SIZE
        return True

    def _read_trailer(self) -> bool:
        line = self._line()
        if line is None:
            return False
        if not line:
            self._state = _DONE
        return True


def parse_head(data: bytes) -> Head:
    """Status line and headers, without the empty line at the end."""
    lines = data.decode("latin-1").split("\r\n")
    version, _, rest = lines[0].partition(" ")
    status = rest[:3]
    if not version.startswith("HTTP/1.") or not (status.isascii() and status.isdigit() and len(status) == 3):
        raise ProtocolError(f"not an answer of a daemon: {lines[0][:80]!r}")
    headers: dict[str, str] = {}
    for line in lines[1:]:
        name, colon, value = line.partition(":")
        if not colon or not name or name[-1].isspace() or name[0].isspace():
            raise ProtocolError(f"no header: {line[:80]!r}")
        name, value = name.lower(), value.strip()
        if name in headers and name == "content-length":
            raise ProtocolError("an answer with two lengths")
        headers[name] = headers[name] + ", " + value if name in headers else value
    if version == "HTTP/1.0":
        headers.setdefault("connection", "close")
    return Head(int(status), headers)


# ---- bodies of events ----------------------------------------------------------------------------------------------------


class Lines:
    """Bytes to lines. feed() returns complete lines, without their ends."""

    def __init__(self, limit: int = EVENT_MAX) -> None:
        self._pieces: List[bytes] = []
        self._size = 0
        self._limit = limit

    def feed(self, data: bytes) -> List[bytes]:
        first, *rest = data.split(b"\n")
        self._size += len(first)
        if self._size > self._limit:
            raise ProtocolError(f"a line of a stream is longer than {self._limit} bytes")
        self._pieces.append(first)
        if not rest:
            return []
        lines = [b"".join(self._pieces), *rest]
        last = lines.pop()
        self._pieces, self._size = [last], len(last)
        return [line[:-1] if line.endswith(b"\r") else line for line in lines]

    def end(self) -> List[bytes]:
        """A last line without an end, if there is one."""
        last = b"".join(self._pieces)
        self._pieces, self._size = [], 0
        return [last] if last else []


class ServerEvent(NamedTuple):
    id: Optional[str]
    event: str
    data: str


class EventDecoder:
    """Server-Sent Events. An incomplete event at the end of the stream is dropped, as the standard requires."""

    def __init__(self) -> None:
        self._lines = Lines()
        self._id: Optional[str] = None
        self._event = ""
        self._data: List[str] = []

    def feed(self, data: bytes) -> List[ServerEvent]:
        events: List[ServerEvent] = []
        for line in self._lines.feed(data):
            if not line:
                if self._data:
                    events.append(ServerEvent(self._id, self._event or "message", "\n".join(self._data)))
                self._event, self._data = "", []
                continue
            name, _, value = line.partition(b":")
            text = (value[1:] if value[:1] == b" " else value).decode("utf-8", "replace")
            if name == b"data":
                self._data.append(text)
            elif name == b"event":
                self._event = text
            elif name == b"id":
                self._id = text
        return events
