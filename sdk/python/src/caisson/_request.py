# SPDX-License-Identifier: Apache-2.0
"""_request.py - The parts that both transports share: requests, answers, repetitions and errors."""

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

IDLE_SECONDS = 50  # the daemon closes an idle connection after 75
IDLE_MAX = 128
READ_SIZE = 1 << 16
CONNECT_SECONDS = 10.0
ERROR_MAX = 1 << 20  # largest body of an error
IDEMPOTENT = frozenset(("GET", "HEAD", "PUT", "DELETE", "OPTIONS"))
UNDONE = frozenset(("draining", "not_recorded", "process_limit"))  # codes of 503 that mean that nothing was done


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
            raise ProtocolError(f"the answer is not JSON: {self.body[:80]!r}") from e


class Request:
    """A request: its head as bytes, and its content."""

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
        """Head and content as one piece, if the content is one piece."""
        return self.head + self.content if isinstance(self.content, bytes) else self.head


class Attempts:
    """How often, and when, a request is sent again. Its methods return the seconds to wait, or None to give up."""

    def __init__(self, request: Request, retries: int, patience: float) -> None:
        self.request = request
        self.left = retries
        self.patience = patience  # the longest Retry-After to obey
        self.pause = 0.05

    def after_loss(self) -> Optional[float]:
        """After a lost answer: it is unknown whether the daemon processed the request."""
        return self._spend(self._backoff()) if self.request.safe else None

    def after_refusal(self, error: CaissonError) -> Optional[float]:
        """After a refusal with Retry-After."""
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
    """The exception for an answer with a status of 400 or more."""
    try:
        about = json_module.loads(body)
    except ValueError:
        about = None
    return error_from(about, head.status, head.headers)


def lost(place: Place, error: BaseException) -> ConnectionLost:
    why = getattr(error, "strerror", None) or str(error) or type(error).__name__
    return ConnectionLost(
        f"the connection to {place} was lost before the answer: {why}",
        hint="it is unknown whether the daemon processed the request",
    )


def silent(place: Place, seconds: Optional[float]) -> AnswerTimeout:
    return AnswerTimeout(
        f"{place} said nothing for {seconds:g} s" if seconds else f"{place} said nothing",
        hint="give the call or the client a longer timeout",
    )
