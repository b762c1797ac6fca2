# SPDX-License-Identifier: Apache-2.0
"""_request.py - What both transports have in common: requests, answers, when a request is sent again, and what its failures are called."""

from __future__ import annotations

import json as json_module
import random
from typing import Any, AsyncIterable, Iterable, Mapping, Optional, TypeVar, Union

from ._place import Place
from ._wire import Head, request_head, target
from .errors import AnswerTimeout, CaissonError, ConnectionLost, ProtocolError, error_from

Content = Union[bytes, Iterable[bytes]]
AsyncContent = Union[bytes, Iterable[bytes], AsyncIterable[bytes]]
Answer = TypeVar("Answer")

IDLE_SECONDS = 50  # the daemon closes a silent connection after 75
IDLE_MAX = 128
READ_SIZE = 1 << 16
CONNECT_SECONDS = 10.0
ERROR_MAX = 1 << 20  # of an error's body
IDEMPOTENT = frozenset(("GET", "HEAD", "PUT", "DELETE", "OPTIONS"))
UNDONE = frozenset(("draining", "not_recorded", "process_limit"))  # codes of 503 that say that nothing happened


class Response:
    """A whole answer. headers has names in lower case."""

    __slots__ = ("status", "headers", "body")

    def __init__(self, head: Head, body: bytes) -> None:
        self.status = head.status
        self.headers = head.headers
        self.body = body

    def json(self) -> Any:
        try:
            return json_module.loads(self.body)
        except ValueError as e:
            raise ProtocolError(f"the answer is no JSON: {self.body[:80]!r}") from e


class Request:
    """What goes out: its head as bytes, and its content."""

    __slots__ = ("method", "where", "head", "content", "chunked", "timeout", "safe", "replayable")

    def __init__(
        self,
        place: Place,
        method: str,
        path: str,
        query: Optional[Mapping[str, Any]] = None,
        json: Any = None,
        content: Optional[AsyncContent] = None,
        length: Optional[int] = None,
        headers: Optional[Mapping[str, str]] = None,
        timeout: Optional[float] = None,
    ) -> None:
        lines = place.headers()
        names = {name.lower() for name in headers} if headers else set()
        if json is not None:
            content = json_module.dumps(json).encode()
            lines.append(("Content-Type", "application/json"))
        elif content is not None and "content-type" not in names:
            lines.append(("Content-Type", "application/octet-stream"))
        self.chunked = content is not None and not isinstance(content, bytes) and length is None
        if isinstance(content, bytes):
            length = len(content)
        if self.chunked:
            lines.append(("Transfer-Encoding", "chunked"))
        elif length is not None or method in ("POST", "PUT"):
            lines.append(("Content-Length", str(length or 0)))
        if headers:
            lines += headers.items()
        self.method = method
        self.where = target(place.prefix + path, query)
        self.head = request_head(method, self.where, lines)
        self.content = content
        self.timeout = timeout
        self.replayable = content is None or isinstance(content, bytes)
        self.safe = self.replayable and (method in IDEMPOTENT or "idempotency-key" in names)

    def first(self) -> bytes:
        """Head and content in one piece, where the content is in one."""
        return self.head + self.content if isinstance(self.content, bytes) else self.head


class Attempts:
    """How often, and when, a request is sent again. Its methods return the seconds to wait, or None: give up."""

    def __init__(self, request: Request, retries: int, patience: float) -> None:
        self.request = request
        self.left = retries
        self.patience = patience  # the longest Retry-After that is waited for
        self.pause = 0.05

    def after_loss(self) -> Optional[float]:
        """Nobody knows what became of it."""
        return self._spend(self._backoff()) if self.request.safe else None

    def after_refusal(self, error: CaissonError) -> Optional[float]:
        """The daemon said not now, and when."""
        if error.retry_after is None or error.retry_after > self.patience or not self.request.replayable:
            return None
        undone = error.status == 429 or (error.status == 503 and (self.request.safe or error.code in UNDONE))
        return self._spend(max(error.retry_after, self._backoff())) if undone else None

    def _spend(self, seconds: float) -> Optional[float]:
        if self.left <= 0:
            return None
        self.left -= 1
        return seconds

    def _backoff(self) -> float:
        self.pause *= 2
        return self.pause * random.uniform(0.5, 1)


def refusal(head: Head, body: bytes) -> CaissonError:
    """The exception of an answer with a status from 400 on."""
    try:
        about = json_module.loads(body)
    except ValueError:
        about = None
    return error_from(about, head.status, head.headers)


def lost(place: Place, error: BaseException) -> ConnectionLost:
    why = getattr(error, "strerror", None) or str(error) or type(error).__name__
    return ConnectionLost(
        f"the connection to {place} was lost before the answer: {why}",
        hint="it is not known whether the request was done",
    )


def silent(place: Place, seconds: Optional[float]) -> AnswerTimeout:
    return AnswerTimeout(
        f"{place} said nothing for {seconds:g} s" if seconds else f"{place} said nothing",
        hint="give the call or the client a longer timeout",
    )
