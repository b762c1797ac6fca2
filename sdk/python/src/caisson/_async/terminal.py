# SPDX-License-Identifier: Apache-2.0
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
from typing import TYPE_CHECKING, AsyncIterator, Mapping, Optional, Tuple, Union

from .._glue import as_bytes, given
from .._http_async import AsyncConnection, AsyncTransport
from .._websocket import BINARY, CLOSE, PING, PONG, TEXT, Decoder, WebSocketError, frame
from ..errors import CaissonError, ProtocolError, error_from
from ..records import ProcessInfo

if TYPE_CHECKING:
    from .processes import AsyncProcess

GUID = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
MESSAGE_MAX = 16 << 20


class AsyncTerminal:
    """Iterate over it for the output of the process; then ``info`` describes how the process ended. It is a context manager.

    process: the process that it is attached to
    gap:     the number of bytes of output that are no longer kept and were left out
    """

    def __init__(self, transport: AsyncTransport, process: AsyncProcess, own: bool) -> None:
        self._transport = transport
        self._connection: Optional[AsyncConnection] = None
        self._decoder = Decoder(MESSAGE_MAX)
        self._own = own
        self.process = process
        self.info: Optional[ProcessInfo] = None
        self.gap = 0

    async def open(self, path: str, query: Mapping[str, object]) -> AsyncTerminal:
        """The handshake."""
        key = base64.b64encode(os.urandom(16))
        headers = {"Upgrade": "websocket", "Connection": "Upgrade", "Sec-WebSocket-Version": "13", "Sec-WebSocket-Key": key.decode()}
        self._connection, head, rest = await self._transport.switch(path, query=query, headers=headers)
        if head.headers.get("sec-websocket-accept") != base64.b64encode(hashlib.sha1(key + GUID).digest()).decode():
            await self.aclose()
            raise ProtocolError("the daemon did not answer as a WebSocket does")
        self._decoder.feed(rest)
        return self

    # -- output --

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        data = await self.read()
        if not data:
            raise StopAsyncIteration
        return data

    async def read(self) -> bytes:
        """The next output, as soon as there is some; empty when the process has ended."""
        while self._connection is not None:
            try:
                opcode, payload = await self._message()
            except BaseException:
                self._hang_up()
                raise
            if opcode == BINARY and payload:
                return payload
            if opcode == TEXT:
                self._update(json.loads(payload))
            elif opcode == PING:
                await self._send(PONG, payload)
            elif opcode == CLOSE:
                self._hang_up()
        return b""

    async def _message(self) -> Tuple[int, bytes]:
        """The next message; the end of the connection counts as CLOSE."""
        assert self._connection is not None
        while True:
            try:
                event = self._decoder.next()
            except WebSocketError as e:
                raise ProtocolError(str(e)) from e
            if event is not None:
                return event
            data = await self._connection.read(None)
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

    async def write(self, data: Union[str, bytes]) -> None:
        """Write to stdin: on a terminal, like typed text."""
        await self._send(BINARY, as_bytes(data))

    async def resize(self, rows: int, cols: int) -> None:
        await self._send(TEXT, json.dumps({"type": "resize", "rows": rows, "cols": cols}).encode())

    async def eof(self) -> None:
        """Close stdin; on a terminal, send Ctrl-D."""
        await self._send(TEXT, b'{"type": "eof"}')

    async def _send(self, opcode: int, payload: bytes) -> None:
        if self._connection is not None:
            await self._connection.write(frame(opcode, payload, os.urandom(4)))

    # -- end --

    def _hang_up(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    async def aclose(self) -> None:
        """Leave. A process that was started for this terminal ends with it."""
        self._hang_up()
        if self._own:
            self._own = False
            with contextlib.suppress(CaissonError):
                await self.process.remove()

    async def __aenter__(self) -> AsyncTerminal:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()


async def attach(
    transport: AsyncTransport, process: AsyncProcess, path: str, offset: Optional[int], stream: Optional[str], own: bool
) -> AsyncTerminal:
    return await AsyncTerminal(transport, process, own).open(path, given(offset=offset, stream=stream))
