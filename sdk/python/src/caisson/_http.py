# SPDX-License-Identifier: Apache-2.0
"""_http.py - Requests to a daemon, over sockets. The same over asyncio is in _http_async.py; what both have in common in _request.py.

Theory of operation. A transport has a place and a pool of idle connections. request() sends one request and returns the
whole answer; open() returns when the head of the answer is there, with a body that is read piece by piece. An answer that
is an error is raised (errors.py). Whoever gives up on an answer, by an exception, by a cancelled task or by close(), closes
its connection: that is how the daemon learns that nobody wants the answer any more, and it ends what it was doing for it.

A connection is used again when its answer was read to the end. One that the daemon may be about to close (IDLE_SECONDS) or
has closed is not. That leaves a moment in which a request meets a connection that is being closed; it is then sent again
if that can do no harm: its method is idempotent, or it has an Idempotency-Key. So is one whose answer got lost. A refusal
with Retry-After (429, 503) says that nothing was done, and is tried again for every method, after the time it names.

A timeout is about silence: so long may pass without a byte. None waits for as long as it takes; a machine that vanished is
then noticed by TCP's keep-alive.
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
        """Whether it was silent for too long, or the daemon has said something unasked: its end."""
        if time.monotonic() - self.since > IDLE_SECONDS:
            return True
        poll = select.poll()
        poll.register(self.socket, select.POLLIN | select.POLLERR | select.POLLHUP)
        return bool(poll.poll(0))

    def send(self, request: Request) -> None:
        """A refusal may come before all of it is sent: then nobody reads the rest, and that is no error yet."""
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
        """What has come; empty at the end."""
        try:
            return self.socket.recv(READ_SIZE)
        except socket.timeout as e:
            raise silent(self.place, timeout) from e
        except OSError as e:
            raise lost(self.place, e) from e

    def write(self, data: bytes) -> None:
        """For a connection that does not carry HTTP any more."""
        try:
            self.socket.sendall(data)
        except OSError as e:
            raise lost(self.place, e) from e

    def receive(self, parser: ResponseParser, timeout: Optional[float]) -> None:
        """Some more of the answer."""
        data = self.read(timeout)
        if data:
            parser.feed(data)
        elif parser.head is None:
            raise lost(self.place, ConnectionResetError("closed"))
        else:
            parser.eof()


class Body:
    """An answer whose body comes piece by piece. Iterate over it, or read() all; close() is for who has had enough."""

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
        """Its end is read, or nobody wants it: the connection is kept, or closed."""
        if self._parser.done:
            self._finish()
        self.close()

    def __enter__(self) -> Body:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()


class Transport:
    """Any number of threads may use one."""

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
        """Send it and read the answer. Raises what errors.py has; refusals of the daemon too."""
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
        """As request(), but the body is still to be read, by the caller, who also closes it."""
        request = Request(self.place, method, path, query, json, content, length, headers, timeout)
        return self._persist(request, self._begin)

    def switch(
        self, path: str, *, query: Optional[Mapping[str, Any]] = None, headers: Optional[Mapping[str, str]] = None
    ) -> Tuple[Connection, Head, bytes]:
        """Ask for another protocol on a connection, which is the caller's then, with what has come of it already."""
        request = Request(self.place, "GET", path, query, headers=headers, timeout=CONNECT_SECONDS)
        connection, parser = self._exchange(request)
        if parser.head is not None and parser.head.status == 101:
            return connection, parser.head, parser.rest
        with Body(self, connection, parser, request.timeout) as body:
            raise refusal(Head(body.status, body.headers), body.read())

    def close(self) -> None:
        """Idle connections are closed; those in use when their answers are there."""
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
        """Until the head of the answer is there."""
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
                if self._pid != os.getpid():  # after a fork they are the parent's
                    self._idle, self._pid = [], os.getpid()
                connection = self._idle.pop() if self._idle else None
            if connection is None:
                return Connection(self.place, self.place.connect(CONNECT_SECONDS))
            if not connection.stale():
                return connection
            connection.close()

    def give_back(self, connection: Connection, parser: ResponseParser) -> None:
        """Its answer is read: for the next request, if there can be one."""
        if parser.done and parser.reusable:
            connection.since = time.monotonic()
            with self._lock:
                if not self._closed and len(self._idle) < IDLE_MAX:
                    self._idle.append(connection)
                    return
        connection.close()
