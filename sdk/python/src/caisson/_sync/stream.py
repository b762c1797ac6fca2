# SPDX-License-Identifier: Apache-2.0
# Made from ../_async/stream.py by tools/unasync.py. Change it there.
"""stream.py - Executions whose events are read while they run.

A stream begins with its first event, or when it is entered as a context manager. After a broken connection it resumes after the
last event that was read, so that no event is lost or repeated; this requires a named execution, which all are except code in a
sandbox without a name. Leaving a stream before its end, by close(), by an exception or by a cancelled task, interrupts the
execution.
"""

from __future__ import annotations

import contextlib
import json
import warnings
from typing import Any, Iterator, List, Mapping, Optional, TypeVar

from .._glue import sleep, to_event
from .._http import Body, Transport
from .._wire import EventDecoder, segment
from ..errors import CaissonError, ConnectionLost, NotFound, ProtocolError, SandboxUnavailable, StreamGone
from ..types import Event, ExecResult

SILENCE = 45.0  # the daemon sends something every 15 seconds
RESUMES = 8

Stream = TypeVar("Stream", bound="EventStream")


class EventStream:
    """Events of one request, until `done`. Iterate over it; then last is the data of the last event."""

    def __init__(self, transport: Transport, path: str, body: Mapping[str, Any]) -> None:
        self._transport, self._path = transport, path
        self._request = dict(body)
        self._body: Optional[Body] = None
        self._decoder = EventDecoder()
        self._ready: List[Event] = []
        self._over = False
        self.cursor = 0
        self.last: Optional[Mapping[str, Any]] = None

    def __enter__(self: Stream) -> Stream:
        self._begin()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __iter__(self) -> Iterator[Event]:
        return self

    def __next__(self) -> Event:
        try:
            self._begin()
            while not self._ready:
                if self._over:
                    raise StopIteration
                self._more()
        except StopIteration:
            raise
        except BaseException:
            self.close()
            raise
        return self._note(self._ready.pop(0))

    def close(self) -> None:
        """Close the stream. If it is not at its end, the execution is interrupted."""
        body, self._body = self._body, None
        begun, self._over = body is not None and not self._over, True
        if body is not None:
            body.close()
        if begun and self.last is None:
            self._cancel()

    def __del__(self) -> None:
        if self._body is not None and not self._over:
            warnings.warn("a stream was neither read to its end nor closed", ResourceWarning, source=self, stacklevel=1)
            self._body.close()

    # -- reading --

    def _begin(self) -> None:
        if self._body is None and not self._over:
            self._body = self._open()

    def _open(self) -> Body:
        return self._transport.open(
            "POST",
            self._path,
            json={**self._request, "stream": True},
            headers={"Accept": "text/event-stream"},
            timeout=SILENCE,
        )

    def _more(self) -> None:
        assert self._body is not None
        try:
            data = self._body.__next__()
        except StopIteration:
            self._again(ConnectionLost("the stream ended before its last event"))
            return
        except SandboxUnavailable as e:
            self._again(e)
            return
        for one in self._decoder.feed(data):
            try:
                about = json.loads(one.data)
            except ValueError as e:
                raise ProtocolError(f"an event is no JSON: {one.data[:80]!r}") from e
            self._ready.append(to_event(one.event, about, one.id))

    def _again(self, why: CaissonError) -> None:
        """There is nothing to resume here."""
        raise why

    def _cancel(self) -> None:
        """Closing the connection cancels the request."""

    def _note(self, event: Event) -> Event:
        if event.id is not None:
            self.cursor = event.id
        if event.type in ("done", "refused"):
            self.last = event.data
            self._over = True
            body, self._body = self._body, None
            if body is not None:
                body.release()
            refused = event.refusal
            if refused is not None:
                raise refused
        return event


class Execution(EventStream):
    """Code or a command that runs. sandbox is the name under which it can be found again, or None."""

    def __init__(
        self,
        transport: Transport,
        path: str,
        body: Mapping[str, Any],
        sandbox: Optional[str],
        execution_id: Optional[str] = None,
        cursor: int = 0,
    ) -> None:
        super().__init__(transport, path, body)
        self._sandbox = sandbox
        self._resumed = 0
        self.execution_id = execution_id
        self._attached = execution_id is not None
        self.cursor = cursor

    def result(self) -> ExecResult:
        """Read to the end and return the result."""
        for _ in self:
            pass
        if self.last is None:
            raise ConnectionLost("the stream was closed before its end")
        return ExecResult.from_json(self.last)

    def interrupt(self) -> None:
        """Interrupt the execution, as Ctrl-C does. The stream continues to the result."""
        if self._sandbox is None or self.execution_id is None:
            self.close()
            return
        with contextlib.suppress(NotFound):  # it has ended in the meantime
            self._transport.request("POST", self._where("interrupt"), json={}, timeout=10.0)

    def _where(self, what: str) -> str:
        assert self._sandbox is not None and self.execution_id is not None
        return f"/v1/sandboxes/{segment(self._sandbox)}/executions/{segment(self.execution_id)}/{what}"

    def _open(self) -> Body:
        if self._attached:
            return self._rest()
        body = super()._open()
        self.execution_id = body.headers.get("x-execution-id")
        return body

    def _rest(self) -> Body:
        return self._transport.open(
            "GET",
            self._where("events"),
            query={"cursor": self.cursor},
            headers={"Accept": "text/event-stream"},
            timeout=SILENCE,
        )

    def _again(self, why: CaissonError) -> None:
        """Continue after the last event. An event that was read in part is read again."""
        if self._body is not None:
            self._body.close()
        self._decoder = EventDecoder()
        if self._sandbox is None or self.execution_id is None:
            raise why
        while self._resumed < RESUMES:
            self._resumed += 1
            try:
                self._body = self._rest()
                return
            except (NotFound, StreamGone) as e:
                raise ConnectionLost(f"the stream was cut and cannot be resumed: {e.message}") from why
            except SandboxUnavailable as e:
                why = e
                sleep(0.1 * self._resumed)
        raise why

    def _note(self, event: Event) -> Event:
        self._resumed = 0
        if event.type == "started" and self.execution_id is None:
            self.execution_id = event.data.get("execution_id")
        return super()._note(event)

    def _cancel(self) -> None:
        if self._sandbox is not None and self.execution_id is not None:
            with contextlib.suppress(CaissonError):
                self.interrupt()


class Installation(EventStream):
    """An installation of packages: events of type progress, then done."""
