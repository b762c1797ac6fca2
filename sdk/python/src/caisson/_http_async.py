# SPDX-License-Identifier: Apache-2.0
"""_http_async.py - Requests to a daemon, over asyncio. _http.py explains how it works; nothing here blocks or starts a thread."""

from __future__ import annotations

import asyncio
import time
from typing import Any, AsyncIterable, AsyncIterator, Awaitable, Callable, List, Mapping, Optional, Tuple

from ._place import Place
from ._request import (
    CONNECT_SECONDS,
    ERROR_MAX,
    IDLE_MAX,
    IDLE_SECONDS,
    READ_SIZE,
    Answer,
    AsyncContent,
    Attempts,
    Request,
    Response,
    lost,
    refusal,
    silent,
)
from ._wire import LAST_CHUNK, Head, ResponseParser, chunk
from .errors import CaissonError, ClientClosed, ConnectionLost, ProtocolError

__all__ = ["AsyncBody", "AsyncConnection", "AsyncContent", "AsyncTransport", "Response"]


class AsyncConnection:
    """As Connection. A timer aborts a silent connection: no task per read."""

    def __init__(self, place: Place, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.place = place
        self.reader, self.writer = reader, writer
        self.loop = asyncio.get_running_loop()
        self.since = time.monotonic()
        self.late = False

    def close(self) -> None:
        self.writer.transport.abort()

    def stale(self) -> bool:
        return time.monotonic() - self.since > IDLE_SECONDS or self.reader.at_eof() or self.writer.transport.is_closing()

    def _expire(self) -> None:
        self.late = True
        self.writer.transport.abort()

    async def send(self, request: Request) -> None:
        timer = self.loop.call_later(request.timeout, self._expire) if request.timeout is not None else None
        try:
            self.writer.write(request.first())
            content = request.content
            if isinstance(content, AsyncIterable):
                async for piece in content:
                    await self._piece(piece, request.chunked)
            elif content is not None and not isinstance(content, bytes):
                for piece in content:
                    await self._piece(piece, request.chunked)
            if request.chunked:
                self.writer.write(LAST_CHUNK)
            await self.writer.drain()
        except (BrokenPipeError, ConnectionResetError):
            if self.late:
                raise silent(self.place, request.timeout) from None
        finally:
            if timer is not None:
                timer.cancel()

    async def _piece(self, piece: bytes, chunked: bool) -> None:
        self.writer.write(chunk(piece) if chunked else piece)
        await self.writer.drain()

    async def read(self, timeout: Optional[float]) -> bytes:
        timer = self.loop.call_later(timeout, self._expire) if timeout is not None else None
        try:
            data = await self.reader.read(READ_SIZE)
        except OSError as e:
            raise silent(self.place, timeout) if self.late else lost(self.place, e) from e
        finally:
            if timer is not None:
                timer.cancel()
        if not data and self.late:
            raise silent(self.place, timeout)
        return data

    async def write(self, data: bytes) -> None:
        try:
            self.writer.write(data)
            await self.writer.drain()
        except OSError as e:
            raise lost(self.place, e) from e

    async def receive(self, parser: ResponseParser, timeout: Optional[float]) -> None:
        data = await self.read(timeout)
        if data:
            parser.feed(data)
        elif parser.head is None:
            raise lost(self.place, ConnectionResetError("closed"))
        else:
            parser.eof()


class AsyncBody:
    """As Body."""

    def __init__(
        self, transport: AsyncTransport, connection: AsyncConnection, parser: ResponseParser, timeout: Optional[float]
    ) -> None:
        assert parser.head is not None
        self.status = parser.head.status
        self.headers = parser.head.headers
        self._transport, self._connection, self._parser = transport, connection, parser
        self._timeout = timeout
        self._open = True

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        while True:
            data = self._parser.take()
            if data:
                return data
            if self._parser.done or not self._open:
                self._finish()
                raise StopAsyncIteration
            try:
                await self._connection.receive(self._parser, self._timeout)
            except BaseException:
                self.close()
                raise

    async def read(self) -> bytes:
        return b"".join([piece async for piece in self])

    def close(self) -> None:
        if self._open:
            self._open = False
            self._connection.close()

    def _finish(self) -> None:
        if self._open:
            self._open = False
            self._transport.give_back(self._connection, self._parser)

    def release(self) -> None:
        """The body was read to its end, or abandoned: the connection is kept, or closed."""
        if self._parser.done:
            self._finish()
        self.close()

    async def __aenter__(self) -> AsyncBody:
        return self

    async def __aexit__(self, *_: object) -> None:
        self.release()


class AsyncTransport:
    """For the tasks of one event loop."""

    def __init__(self, place: Place, *, retries: int = 3, patience: float = 30.0) -> None:
        self.place = place
        self.retries, self.patience = retries, patience
        self._idle: List[AsyncConnection] = []
        self._loop: Optional[asyncio.AbstractEventLoop] = None
        self._closed = False

    async def request(
        self,
        method: str,
        path: str,
        *,
        query: Optional[Mapping[str, Any]] = None,
        json: Any = None,
        content: Optional[AsyncContent] = None,
        length: Optional[int] = None,
        headers: Optional[Mapping[str, str]] = None,
        timeout: Optional[float] = 60.0,
    ) -> Response:
        """Send the request and read the answer. Raises the exceptions of errors.py, also for refusals of the daemon."""
        request = Request(self.place, method, path, query, json, content, length, headers, timeout)
        return await self._persist(request, self._whole)

    async def open(
        self,
        method: str,
        path: str,
        *,
        query: Optional[Mapping[str, Any]] = None,
        json: Any = None,
        content: Optional[AsyncContent] = None,
        length: Optional[int] = None,
        headers: Optional[Mapping[str, str]] = None,
        timeout: Optional[float] = 60.0,
    ) -> AsyncBody:
        """As request(), but the caller reads the body, and closes it."""
        request = Request(self.place, method, path, query, json, content, length, headers, timeout)
        return await self._persist(request, self._begin)

    async def switch(
        self,
        path: str,
        *,
        query: Optional[Mapping[str, Any]] = None,
        headers: Optional[Mapping[str, str]] = None,
        method: str = "GET",
        json: Any = None,
        timeout: float = CONNECT_SECONDS,
    ) -> Tuple[AsyncConnection, Head, bytes]:
        """Ask for another protocol on a connection. The caller then owns the connection, and the bytes that have arrived on it."""
        request = Request(self.place, method, path, query, json, headers=headers, timeout=timeout)
        connection, parser = await self._exchange(request)
        if parser.head is not None and parser.head.status == 101:
            return connection, parser.head, parser.rest
        async with AsyncBody(self, connection, parser, request.timeout) as body:
            raise refusal(Head(body.status, body.headers), await body.read())

    async def close(self) -> None:
        """Close idle connections now, and those in use when their answers are complete."""
        self._closed = True
        idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()
        if idle:
            await asyncio.sleep(0)  # the loop closes their sockets now

    # -- one attempt --

    async def _persist(self, request: Request, attempt: Callable[[Request], Awaitable[Answer]]) -> Answer:
        attempts = Attempts(request, self.retries, self.patience)
        while True:
            try:
                return await attempt(request)
            except (ConnectionLost, ProtocolError):
                wait = attempts.after_loss()
                if wait is None:
                    raise
            except CaissonError as e:
                wait = attempts.after_refusal(e)
                if wait is None:
                    raise
            await asyncio.sleep(wait)

    async def _whole(self, request: Request) -> Response:
        connection, parser = await self._exchange(request)
        try:
            while not parser.done:
                await connection.receive(parser, request.timeout)
        except BaseException:
            connection.close()
            raise
        self.give_back(connection, parser)
        assert parser.head is not None
        body = parser.take()
        if parser.head.status >= 400:
            raise refusal(parser.head, body)
        return Response(parser.head, body)

    async def _begin(self, request: Request) -> AsyncBody:
        connection, parser = await self._exchange(request)
        body = AsyncBody(self, connection, parser, request.timeout)
        if body.status >= 400:
            async with body:
                data = b""
                async for piece in body:
                    data += piece
                    if len(data) > ERROR_MAX:
                        break
            assert parser.head is not None
            raise refusal(parser.head, data)
        return body

    async def _exchange(self, request: Request) -> Tuple[AsyncConnection, ResponseParser]:
        """Send the request and read until the head of the answer is complete."""
        connection = await self._take()
        parser = ResponseParser(request.method)
        try:
            try:
                await connection.send(request)
            except OSError as e:
                raise lost(self.place, e) from e
            while parser.head is None:
                await connection.receive(parser, request.timeout)
        except BaseException:
            connection.close()
            raise
        return connection, parser

    # -- the pool --

    async def _take(self) -> AsyncConnection:
        if self._closed:
            raise ClientClosed("this client is closed")
        loop = asyncio.get_running_loop()
        if self._loop is not loop:
            if self._loop is not None and self._idle and not self._loop.is_closed():
                raise ClientClosed("this client belongs to another event loop: make one for each")
            self._loop, self._idle = loop, []
        while self._idle:
            connection = self._idle.pop()
            if not connection.stale():
                return connection
            connection.close()
        reader, writer = await self.place.connect_async(CONNECT_SECONDS)
        return AsyncConnection(self.place, reader, writer)

    def give_back(self, connection: AsyncConnection, parser: ResponseParser) -> None:
        """The answer was read: keep the connection for the next request, if it can be used again."""
        if parser.done and parser.reusable and not self._closed and len(self._idle) < IDLE_MAX:
            connection.since = time.monotonic()
            self._idle.append(connection)
        else:
            connection.close()
