# SPDX-License-Identifier: Apache-2.0
"""_http.py - Requests to a daemon, over sockets. _http_async.py does the same over asyncio; _request.py has the parts that both share.

Theory of operation. A transport has a place and a pool of idle connections. request() sends one request and returns the whole
answer; open() returns when the head of the answer has arrived, with a body that is read piece by piece. An answer that is an
error is raised (errors.py). A caller that gives up on an answer, by an exception, by a cancelled task or by close(), closes the
connection: from this the daemon learns that no client waits for the answer any more, and it ends the work for it.

A connection is used again when its answer was read to the end. A connection that the daemon has closed, or may be about to
close (IDLE_SECONDS), is not. A request can still meet a connection that is being closed at that moment; it is then sent again
if that is harmless: its method is idempotent, or it has an Idempotency-Key. The same holds for a request whose answer was
lost. A refusal with Retry-After (429, 503) means that nothing was done, and is tried again for every method, after that time.

A timeout limits silence: the time that may pass without a byte. None waits without limit; TCP's keep-alive then detects a
machine that has vanished.
"""

from __future__ import annotations

import os
import select
import socket
import threading
import time
from typing import Any, AsyncIterable, Callable, Iterator, List, Mapping, Optional, Tuple

from ._place import Place
from ._request import (
    CONNECT_SECONDS,
    ERROR_MAX,
    IDLE_MAX,
    IDLE_SECONDS,
    READ_SIZE,
    Answer,
    Attempts,
    Content,
    Request,
    Response,
    lost,
    refusal,
    silent,
)
from ._wire import LAST_CHUNK, Head, ResponseParser, chunk
from .errors import CaissonError, ClientClosed, ConnectionLost, ProtocolError

__all__ = ["Body", "Connection", "Content", "Response", "Transport"]


class Connection:
    """One connection of a Transport, with at most one request on its way."""

    def __init__(self, place: Place, s: socket.socket) -> None:
        self.place = place
        self.socket = s
        self.since = time.monotonic()

    def close(self) -> None:
        self.socket.close()

    def stale(self) -> bool:
        """Whether it was idle for too long, or the daemon has sent something without a request: its end."""
        if time.monotonic() - self.since > IDLE_SECONDS:
            return True
        poll = select.poll()
        poll.register(self.socket, select.POLLIN | select.POLLERR | select.POLLHUP)
        return bool(poll.poll(0))

    def send(self, request: Request) -> None:
        """Send the request. The daemon may refuse it before all is sent, and then does not read the rest: this is not an error yet."""
        self.socket.settimeout(request.timeout)
        try:
            self.socket.sendall(request.first())
            if isinstance(request.content, (bytes, type(None))):
                return
            assert not isinstance(request.content, AsyncIterable)
            for piece in request.content:
                self.socket.sendall(chunk(piece) if request.chunked else piece)
            if request.chunked:
                self.socket.sendall(LAST_CHUNK)
        except (BrokenPipeError, ConnectionResetError):
            pass

    def read(self, timeout: Optional[float]) -> bytes:
        """The bytes that have arrived; empty at the end."""
        try:
            return self.socket.recv(READ_SIZE)
        except socket.timeout as e:
            raise silent(self.place, timeout) from e
        except OSError as e:
            raise lost(self.place, e) from e

    def write(self, data: bytes) -> None:
        """Write to a connection that does not carry HTTP any more."""
        try:
            self.socket.sendall(data)
        except OSError as e:
            raise lost(self.place, e) from e

    def receive(self, parser: ResponseParser, timeout: Optional[float]) -> None:
        """Read some more of the answer."""
        data = self.read(timeout)
        if data:
            parser.feed(data)
        elif parser.head is None:
            raise lost(self.place, ConnectionResetError("closed"))
        else:
            parser.eof()


class Body:
    """An answer whose body arrives piece by piece. Iterate over it, or read() all; close() abandons the rest."""

    def __init__(self, transport: Transport, connection: Connection, parser: ResponseParser, timeout: Optional[float]) -> None:
        assert parser.head is not None
        self.status = parser.head.status
        self.headers = parser.head.headers
        self._transport, self._connection, self._parser = transport, connection, parser
        self._timeout = timeout
        self._open = True

    def __iter__(self) -> Iterator[bytes]:
        return self

    def __next__(self) -> bytes:
        while True:
            data = self._parser.take()
            if data:
                return data
            if self._parser.done or not self._open:
                self._finish()
                raise StopIteration
            try:
                self._connection.receive(self._parser, self._timeout)
            except BaseException:
                self.close()
                raise

    def read(self) -> bytes:
        return b"".join(self)

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

    def __enter__(self) -> Body:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()


class Transport:
    """Several threads may share one transport."""

    def __init__(self, place: Place, *, retries: int = 3, patience: float = 30.0) -> None:
        self.place = place
        self.retries, self.patience = retries, patience
        self._lock = threading.Lock()
        self._idle: List[Connection] = []
        self._pid = os.getpid()
        self._closed = False

    def request(
        self,
        method: str,
        path: str,
        *,
        query: Optional[Mapping[str, Any]] = None,
        json: Any = None,
        content: Optional[Content] = None,
        length: Optional[int] = None,
        headers: Optional[Mapping[str, str]] = None,
        timeout: Optional[float] = 60.0,
    ) -> Response:
        """Send the request and read the answer. Raises the exceptions of errors.py, also for refusals of the daemon."""
        request = Request(self.place, method, path, query, json, content, length, headers, timeout)
        return self._persist(request, self._whole)

    def open(
        self,
        method: str,
        path: str,
        *,
        query: Optional[Mapping[str, Any]] = None,
        json: Any = None,
        content: Optional[Content] = None,
        length: Optional[int] = None,
        headers: Optional[Mapping[str, str]] = None,
        timeout: Optional[float] = 60.0,
    ) -> Body:
        """As request(), but the caller reads the body, and closes it."""
        request = Request(self.place, method, path, query, json, content, length, headers, timeout)
        return self._persist(request, self._begin)

    def switch(
        self, path: str, *, query: Optional[Mapping[str, Any]] = None, headers: Optional[Mapping[str, str]] = None
    ) -> Tuple[Connection, Head, bytes]:
        """Ask for another protocol on a connection. The caller then owns the connection, and the bytes that have arrived on it."""
        request = Request(self.place, "GET", path, query, headers=headers, timeout=CONNECT_SECONDS)
        connection, parser = self._exchange(request)
        if parser.head is not None and parser.head.status == 101:
            return connection, parser.head, parser.rest
        with Body(self, connection, parser, request.timeout) as body:
            raise refusal(Head(body.status, body.headers), body.read())

    def close(self) -> None:
        """Close idle connections now, and those in use when their answers are complete."""
        with self._lock:
            self._closed = True
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

    # -- one attempt --

    def _persist(self, request: Request, attempt: Callable[[Request], Answer]) -> Answer:
        attempts = Attempts(request, self.retries, self.patience)
        while True:
            try:
                return attempt(request)
            except (ConnectionLost, ProtocolError):
                wait = attempts.after_loss()
                if wait is None:
                    raise
            except CaissonError as e:
                wait = attempts.after_refusal(e)
                if wait is None:
                    raise
            time.sleep(wait)

    def _whole(self, request: Request) -> Response:
        connection, parser = self._exchange(request)
        try:
            while not parser.done:
                connection.receive(parser, request.timeout)
        except BaseException:
            connection.close()
            raise
        self.give_back(connection, parser)
        assert parser.head is not None
        body = parser.take()
        if parser.head.status >= 400:
            raise refusal(parser.head, body)
        return Response(parser.head, body)

    def _begin(self, request: Request) -> Body:
        connection, parser = self._exchange(request)
        body = Body(self, connection, parser, request.timeout)
        if body.status >= 400:
            with body:
                data = b""
                for piece in body:
                    data += piece
                    if len(data) > ERROR_MAX:
                        break
            assert parser.head is not None
            raise refusal(parser.head, data)
        return body

    def _exchange(self, request: Request) -> Tuple[Connection, ResponseParser]:
        """Send the request and read until the head of the answer is complete."""
        connection = self._take()
        parser = ResponseParser(request.method)
        try:
            try:
                connection.send(request)
            except socket.timeout as e:
                raise silent(self.place, request.timeout) from e
            except OSError as e:
                raise lost(self.place, e) from e
            while parser.head is None:
                connection.receive(parser, request.timeout)
        except BaseException:
            connection.close()
            raise
        return connection, parser

    # -- the pool --

    def _take(self) -> Connection:
        while True:
            with self._lock:
                if self._closed:
                    raise ClientClosed("this client is closed")
                if self._pid != os.getpid():  # after a fork they belong to the parent
                    self._idle, self._pid = [], os.getpid()
                connection = self._idle.pop() if self._idle else None
            if connection is None:
                return Connection(self.place, self.place.connect(CONNECT_SECONDS))
            if not connection.stale():
                return connection
            connection.close()

    def give_back(self, connection: Connection, parser: ResponseParser) -> None:
        """The answer was read: keep the connection for the next request, if it can be used again."""
        if parser.done and parser.reusable:
            connection.since = time.monotonic()
            with self._lock:
                if not self._closed and len(self._idle) < IDLE_MAX:
                    self._idle.append(connection)
                    return
        connection.close()
