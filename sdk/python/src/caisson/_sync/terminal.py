# SPDX-License-Identifier: Apache-2.0
# Made from ../_async/terminal.py by tools/unasync.py. Change it there.
"""terminal.py - A process at the other end of a WebSocket: its live output, and its input.

Binary messages are bytes, in both directions; text messages are JSON about the process. Several clients may be attached to one process.
Leaving does not affect the process, unless it was started for this terminal alone.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import json
import os
from typing import TYPE_CHECKING, Iterator, Mapping, Optional, Tuple, Union

from .._glue import as_bytes, given
from .._http import Connection, Transport
from .._websocket import BINARY, CLOSE, PING, PONG, TEXT, Decoder, WebSocketError, frame
from ..errors import CaissonError, ProtocolError, error_from
from ..records import ProcessInfo

if TYPE_CHECKING:
    from .processes import Process

GUID = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
MESSAGE_MAX = 16 << 20


class Terminal:
    """Iterate over it for the output of the process; then ``info`` describes how the process ended. It is a context manager.

    process: the process that it is attached to
    gap:     the number of bytes of output that are no longer kept and were left out
    """

    def __init__(self, transport: Transport, process: Process, own: bool) -> None:
        self._transport = transport
        self._connection: Optional[Connection] = None
        self._decoder = Decoder(MESSAGE_MAX)
        self._own = own
        self.process = process
        self.info: Optional[ProcessInfo] = None
        self.gap = 0

    def open(self, path: str, query: Mapping[str, object]) -> Terminal:
        """The handshake."""
        key = base64.b64encode(os.urandom(16))
        headers = {"Upgrade": "websocket", "Connection": "Upgrade", "Sec-WebSocket-Version": "13", "Sec-WebSocket-Key": key.decode()}
        self._connection, head, rest = self._transport.switch(path, query=query, headers=headers)
        if head.headers.get("sec-websocket-accept") != base64.b64encode(hashlib.sha1(key + GUID).digest()).decode():
            self.close()
            raise ProtocolError("the daemon did not answer as a WebSocket does")
        self._decoder.feed(rest)
        return self

    # -- output --

    def __iter__(self) -> Iterator[bytes]:
        return self

    def __next__(self) -> bytes:
        data = self.read()
        if not data:
            raise StopIteration
        return data

    def read(self) -> bytes:
        """The next output, as soon as there is some; empty when the process has ended."""
        while self._connection is not None:
            try:
                opcode, payload = self._message()
            except BaseException:
                self._hang_up()
                raise
            if opcode == BINARY and payload:
                return payload
            if opcode == TEXT:
                self._update(json.loads(payload))
            elif opcode == PING:
                self._send(PONG, payload)
            elif opcode == CLOSE:
                self._hang_up()
        return b""

    def _message(self) -> Tuple[int, bytes]:
        """The next message; the end of the connection counts as CLOSE."""
        assert self._connection is not None
        while True:
            try:
                event = self._decoder.next()
            except WebSocketError as e:
                raise ProtocolError(str(e)) from e
            if event is not None:
                return event
            data = self._connection.read(None)
            if not data:
                return CLOSE, b""
            self._decoder.feed(data)

    def _update(self, about: Mapping[str, object]) -> None:
        if about.get("type") == "exit":
            self.info = self.process.info = ProcessInfo.from_json({**self.process.info.raw, **about})
        elif about.get("type") == "gap":
            self.gap += int(str(about.get("bytes", 0)))
        elif about.get("type") == "error":
            raise error_from(about)

    # -- input --

    def write(self, data: Union[str, bytes]) -> None:
        """Write to stdin: on a terminal, like typed text."""
        self._send(BINARY, as_bytes(data))

    def resize(self, rows: int, cols: int) -> None:
        self._send(TEXT, json.dumps({"type": "resize", "rows": rows, "cols": cols}).encode())

    def eof(self) -> None:
        """Close stdin; on a terminal, send Ctrl-D."""
        self._send(TEXT, b'{"type": "eof"}')

    def _send(self, opcode: int, payload: bytes) -> None:
        if self._connection is not None:
            self._connection.write(frame(opcode, payload, os.urandom(4)))

    # -- end --

    def _hang_up(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def close(self) -> None:
        """Leave. A process that was started for this terminal ends with it."""
        self._hang_up()
        if self._own:
            self._own = False
            with contextlib.suppress(CaissonError):
                self.process.remove()

    def __enter__(self) -> Terminal:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def attach(
    transport: Transport, process: Process, path: str, offset: Optional[int], stream: Optional[str], own: bool
) -> Terminal:
    return Terminal(transport, process, own).open(path, given(offset=offset, stream=stream))
