# SPDX-License-Identifier: Apache-2.0
"""_jupyter.py - One kernel of a daemon over Jupyter's protocol: sends code, and collects its output and its result.

Theory of operation. A Link has a WebSocket to one kernel, under a session id of its own. execute() sends one execute_request and reads
until both its reply and its `idle` have arrived; no message about a request follows after these. Other clients may use the same kernel,
so messages about other requests are skipped, except those for all clients: that the interpreter was restarted, or that the kernel has
ended. The reply to a request reports whether its own interpreter survived: the status for all clients may come later.

While the connection is broken, the daemon keeps the messages of the kernel, and sends them when the same session id connects again. So
a wait continues over a new connection. It would never end if the request itself was lost with the old connection. The kernel answers
requests one after another, so a question that is sent over the new connection (`kernel_info`) is answered after our request. If that
answer arrives and ours has not, our request is lost.

When the time is over, the kernel is interrupted, as by a person who presses the button. If the code continues, its interpreter is
replaced. Input is bounded: text beyond `most` is not kept, and the Outcome reports this.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import time
import uuid
from typing import Any, Callable, Dict, List, Mapping, Optional

from ._http import Transport
from ._websocket import Closed, HandshakeRefused, WebSocket, WebSocketError
from ._wire import segment
from .errors import Busy, CaissonError, ConnectionLost, NotFound, SandboxNotFound, SandboxUnavailable, error_from
from .types import CodeError, Display

MESSAGE_MAX = 64 << 20
OUTPUT_MAX = 16 << 20
DISPLAYS_MAX = 1000
RECONNECT_SECONDS = 15.0
GRACE_SECONDS = 5.0
ABORTED_MAX = 5
GONE = 1001  # the close code of a kernel that has ended

OnOutput = Callable[[str, str], None]


@dataclasses.dataclass
class Outcome:
    """The messages about one request."""

    stdout: str = ""
    stderr: str = ""
    displays: List[Display] = dataclasses.field(default_factory=list)
    result: Optional[Dict[str, Any]] = None
    error: Optional[CodeError] = None
    expressions: Dict[str, Any] = dataclasses.field(default_factory=dict)
    truncated: bool = False
    timed_out: bool = False
    restarted: bool = False


class _Collector:
    """Collects the messages about one request into its Outcome."""

    def __init__(self, request: str, most: int, on_output: Optional[OnOutput]) -> None:
        self.request, self.left, self.on_output = request, most, on_output
        self.outcome = Outcome()
        self.replied = self.idle = False
        self.state = ""  # of the interpreter afterwards, as the reply reports it: kept or reset
        self.aborted = False  # it was not run: other code failed before it, and the kernel aborted all waiting requests
        self._text: Dict[str, List[str]] = {"stdout": [], "stderr": []}
        self._clearing = False  # the next output removes all displays

    @property
    def done(self) -> bool:
        return self.replied and self.idle

    def finish(self) -> Outcome:
        self.outcome.stdout, self.outcome.stderr = ("".join(self._text[n]) for n in ("stdout", "stderr"))
        return self.outcome

    def take(self, kind: str, content: Mapping[str, Any]) -> None:
        if kind in ("stream", "display_data") and self._clearing:
            self._clear(False)
        if kind == "stream":
            self._stream(content)
        elif kind == "clear_output":
            self._clear(bool(content.get("wait")))
        elif kind in ("display_data", "execute_result", "update_display_data"):
            self._bundle(kind, content)
        elif kind == "error":
            self.outcome.error = _error(content)
        elif kind == "execute_reply":
            self.replied = True
            self.aborted = content.get("status") == "aborted"
            self.state = str(content.get("state") or "")
            if content.get("status") != "ok":
                self.outcome.error = self.outcome.error or _error(content)
            expressions = content.get("user_expressions")
            self.outcome.expressions = expressions if isinstance(expressions, dict) else {}
        elif kind == "status" and content.get("execution_state") == "idle":
            self.idle = True

    def _stream(self, content: Mapping[str, Any]) -> None:
        name, text = content.get("name"), content.get("text")
        if name not in self._text or not isinstance(text, str):
            return
        kept = text[: self.left]
        self.left -= len(kept)
        self.outcome.truncated |= len(kept) < len(text)
        self._text[str(name)].append(kept)
        if self.on_output and kept:
            self.on_output(str(name), kept)

    def _clear(self, wait: bool) -> None:
        self._clearing = wait
        if not wait:
            self.left += sum(_size(d) for d in self.outcome.displays)
            self.outcome.displays.clear()

    def _bundle(self, kind: str, content: Mapping[str, Any]) -> None:
        data, metadata = content.get("data"), _part(content, "metadata")
        if not isinstance(data, dict):
            return
        cut = _part(metadata, "caisson").get("truncated") is True
        self.outcome.truncated |= cut
        if kind == "execute_result":
            self.outcome.result = data
            return
        name = _part(content, "transient").get("display_id")
        shown, displays = Display(data, metadata, str(name) if name else None, cut), self.outcome.displays
        if kind == "display_data" and len(displays) < DISPLAYS_MAX and _size(shown) <= self.left:
            self.left -= _size(shown)
            displays.append(shown)
        elif kind == "display_data":
            self.outcome.truncated = True
        else:
            self._replace(shown)

    def _replace(self, shown: Display) -> None:
        """An update. Of a display that an earlier request made, nothing is here."""
        for i, old in enumerate(self.outcome.displays):
            if old.display_id is None or old.display_id != shown.display_id:
                continue
            if _size(shown) <= self.left + _size(old):
                self.left += _size(old) - _size(shown)
                self.outcome.displays[i] = shown
            else:
                self.outcome.truncated = True


def _size(display: Display) -> int:
    return sum(len(v) for v in display.data.values() if isinstance(v, str))


def _error(content: Mapping[str, Any]) -> CodeError:
    lines = content.get("traceback")
    return CodeError(
        str(content.get("ename") or "error"),
        str(content.get("evalue") or ""),
        tuple(str(line) for line in lines) if isinstance(lines, list) else (),
    )


def _message(text: Any) -> Dict[str, Any]:
    """Parse a message; an invalid one becomes an empty one. The sandbox wrote the content, which may be deep or large on purpose."""
    try:
        message = json.loads(text, parse_int=lambda digits: int(digits) if len(digits) < 20 else 0)
    except (ValueError, RecursionError):
        return {}
    return message if isinstance(message, dict) else {}


def _part(message: Mapping[str, Any], key: str) -> Dict[str, Any]:
    value = message.get(key)
    return value if isinstance(value, dict) else {}


class Link:
    """A connection to a kernel. For one thread at a time; interrupt() for all."""

    def __init__(self, transport: Transport, kernel_id: str, *, most: int = OUTPUT_MAX) -> None:
        self.kernel_id = kernel_id
        self.epoch = 0  # rises with each new interpreter
        self._known = False  # a reply reported the end of the interpreter: the status about it, which may follow, is no news
        self._transport, self._most = transport, most
        self._session = uuid.uuid4().hex
        self._ws: Optional[WebSocket] = None
        self._connect()

    @property
    def path(self) -> str:
        return "/api/kernels/" + segment(self.kernel_id)

    # -- the connection --

    def _connect(self) -> WebSocket:
        place = self._transport.place
        headers = {name: value for name, value in place.headers() if name != "Host"}
        path = "%s%s/channels?session_id=%s" % (place.prefix, self.path, self._session)
        try:
            sock = place.connect(10)
            self._ws = WebSocket(sock, host=place.authority, path=path, headers=headers, most=MESSAGE_MAX)
        except HandshakeRefused as exc:
            raise error_from(_message(exc.body), exc.status, exc.headers) from None
        except OSError as exc:
            raise place.unavailable(exc) from exc
        return self._ws

    def _reconnect(self, deadline: float) -> WebSocket:
        """Retry until the daemon answers: a front that died is replaced within about a second."""
        pause = 0.05
        self.close()
        while True:
            try:
                return self._connect()
            except NotFound:
                raise self._gone() from None
            except SandboxUnavailable:
                if time.monotonic() + pause > deadline:
                    raise
            time.sleep(pause)
            pause = min(pause * 2, 1.0)

    def _gone(self) -> SandboxNotFound:
        return SandboxNotFound(
            "the kernel %s is gone" % self.kernel_id, code="no_such_sandbox", hint="its sandbox was removed, or its time was over"
        )

    def close(self) -> None:
        if self._ws:
            self._ws.close()

    def refresh(self) -> WebSocket:
        """A connection that works, as far as this side knows; messages that arrived in the meantime are read."""
        ws = self._ws
        try:
            while ws is not None and not ws.closed:
                self._everybody(_message(ws.receive(0)))
        except TimeoutError:
            assert ws is not None
            return ws
        except Closed as exc:
            if exc.code == GONE:
                raise self._gone() from None
        except WebSocketError:
            pass
        return self._reconnect(time.monotonic() + RECONNECT_SECONDS)

    def _everybody(self, message: Mapping[str, Any]) -> None:
        """Handle a message for all clients of this kernel."""
        if message.get("msg_type") == "status":
            state = _part(message, "content").get("execution_state")
            if state in ("restarting", "starting"):
                self.epoch += not self._known
                self._known = False
            elif state == "dead":
                self.close()
                raise self._gone()

    # -- requests --

    def _send(self, ws: WebSocket, kind: str, content: Mapping[str, Any]) -> str:
        header = {
            "msg_id": uuid.uuid4().hex,
            "msg_type": kind,
            "username": "caisson",
            "session": self._session,
            "date": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
            "version": "5.3",
        }
        ws.send(json.dumps({"channel": "shell", "header": header, "parent_header": {}, "metadata": {}, "content": content, "buffers": []}))
        return header["msg_id"]

    def execute(
        self,
        code: str,
        *,
        expressions: Optional[Mapping[str, str]] = None,
        silent: bool = False,
        timeout: Optional[float] = None,
        on_output: Optional[OnOutput] = None,
    ) -> Outcome:
        """Run code and wait for its end. The Outcome has errors of the code; errors of the daemon are raised."""
        content = {
            "code": code,
            "silent": silent,
            "store_history": not silent,
            "user_expressions": dict(expressions or {}),
            "allow_stdin": False,
            "stop_on_error": False,
        }
        epoch = self.epoch
        for _ in range(ABORTED_MAX):
            collector = self._attempt(content, timeout, on_output)
            if collector.state == "reset" and self.epoch == epoch:
                self.epoch += 1
                self._known = True
            if not collector.aborted:
                outcome = collector.finish()
                outcome.restarted = self.epoch != epoch
                return outcome
        raise Busy("the code was not run: other code of this kernel failed before it, several times", code="aborted")

    def _attempt(self, content: Mapping[str, Any], timeout: Optional[float], on_output: Optional[OnOutput]) -> _Collector:
        ws = self.refresh()
        try:
            request = self._send(ws, "execute_request", content)
        except OSError as exc:
            raise self._lost(exc) from exc
        collector = _Collector(request, self._most, on_output)
        try:
            _Wait(self, collector, timeout).run(ws)
        except CaissonError:
            raise
        except BaseException:  # Ctrl-C, or on_output: the caller gives up
            self.interrupt(quiet=True)
            raise
        return collector

    def _lost(self, why: object) -> ConnectionLost:
        return ConnectionLost(
            "the connection to the kernel was lost, and the answer with it: %s" % (why,),
            hint="it is not known whether the code ran to its end",
        )

    def interrupt(self, quiet: bool = False) -> None:
        """Interrupt the running code. quiet: ignore errors."""
        try:
            self._transport.request("POST", self.path + "/interrupt", timeout=10)
        except Exception:
            if not quiet:
                raise

    def restart(self) -> None:
        """Start a new interpreter: files stay, variables do not."""
        self._transport.request("POST", self.path + "/restart", timeout=60)
        self.epoch += 1


class _Wait:
    """Waits for the end of one request: handles deadlines, and connections that break meanwhile."""

    def __init__(self, link: Link, collector: _Collector, timeout: Optional[float]) -> None:
        self.link, self.collector = link, collector
        self.deadline = None if timeout is None else time.monotonic() + timeout
        self.measures = [self._interrupt, self._restart]  # against code that does not end, one after another
        self.probe: Optional[str] = None

    def run(self, ws: WebSocket) -> None:
        while not self.collector.done:
            try:
                left = None if self.deadline is None else max(0.0, self.deadline - time.monotonic())
                self._take(_message(ws.receive(left)))
            except TimeoutError:
                self._late()
            except Closed as exc:
                if exc.code == GONE:
                    raise self.link._gone() from None
                ws = self._again()
            except (WebSocketError, OSError):
                ws = self._again()

    def _take(self, message: Mapping[str, Any]) -> None:
        parent, kind = _part(message, "parent_header").get("msg_id"), str(message.get("msg_type"))
        if parent == self.collector.request:
            self.collector.take(kind, _part(message, "content"))
        elif parent and parent == self.probe:
            if kind == "kernel_info_reply":
                raise self.link._lost("the kernel answered a later request first")
        else:
            self.link._everybody(message)

    def _again(self) -> WebSocket:
        ws = self.link._reconnect(time.monotonic() + RECONNECT_SECONDS)
        with contextlib.suppress(OSError):  # it broke again: the next receive() reports it
            self.probe = self.link._send(ws, "kernel_info_request", {})
        return ws

    def _late(self) -> None:
        if not self.measures:
            raise self.link._lost("the kernel cannot be stopped")
        self.collector.outcome.timed_out = True
        self.measures.pop(0)()
        self.deadline = time.monotonic() + GRACE_SECONDS

    def _interrupt(self) -> None:
        self.link.interrupt(quiet=True)

    def _restart(self) -> None:
        self.link.restart()
