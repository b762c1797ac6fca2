# SPDX-License-Identifier: Apache-2.0
"""rpc - Requests to the host for something outside of the cell: blocking, or in a coroutine.

Theory of operation. A call has a number and is in the channel's table until its answer arrives, or the caller gives up. The thread
that reads the channel (control.py) hands the answer to the call; the caller parses it. There are two ways to wait:

    ask()       blocks: reads the channel itself. From any thread, also from within a running loop, which then stands still.
    request()   a coroutine, so that many can wait at once. The loop reads the channel. The kernel's own loop always does;
                another one (asyncio.run(), a loop in a thread) does so while something waits in it.

Giving up early (an interrupt, a cancellation, a timeout around the call) notifies the host, which cancels the call.
"""
import asyncio
import itertools
import json
import threading
import time

from .. import aio, control, interrupts, wire

RESULT_MAX = 64 << 20
TEXT_MAX = 8 << 20
_SIGNAL_SECONDS = 1
_LINE_MAX = 12 << 20  # quoted once more; the host accepts 16, and ends a kernel that sends more

_numbers = itertools.count(1)
_loads = json.JSONDecoder().decode
_readers = {}  # id of a loop that is not the kernel's: [the loop, number of waiting calls]
_readers_lock = threading.Lock()


class MCPError(Exception):
    """A call that failed. `code` is the kind of error: "refused", "budget", "timeout", "tool" (the tool ran and reported an error) and
    so on; `hint`, `server`, `tool` and `content` (the tool's content with its error) have the details, if there are any."""

    def __init__(self, message, *, code="error", hint=None, server=None, tool=None, content=None):
        super().__init__(message)
        self.code = code
        self.hint = hint
        self.server = server
        self.tool = tool
        self.content = content

    def __str__(self):
        text = super().__str__()
        return "%s (%s)" % (text, self.hint) if self.hint else text


MCPError.__module__ = "mcp.runtime"


class _Call:
    __slots__ = ("number", "future", "parts", "size", "answer")

    def __init__(self, future=None):
        self.number = next(_numbers)
        self.future = future
        self.parts = []
        self.size = 0
        self.answer = None

    def take(self, kind, message):
        """Called by the thread that reads the channel, under a shield."""
        if kind == "rpc_part":
            text = str(message.get("text"))
            self.size += len(text)
            if self.size <= RESULT_MAX:
                self.parts.append(text)
                return
            message = {"ok": False, "error": {"code": "too_large", "message":
                       "the result has more than %d MiB" % (RESULT_MAX >> 20)}}
            control.channel.send({"type": "rpc_cancel", "id": self.number})
        control.channel.calls.pop(self.number, None)
        self.answer = message
        if self.future is None:
            return
        loop = self.future.get_loop()
        if asyncio._get_running_loop() is loop:  # this thread runs the loop: it need not be woken
            _wake(self.future)
            return
        try:
            loop.call_soon_threadsafe(_wake, self.future)
        except RuntimeError:  # its loop is closed
            pass

    def arrived(self):
        return self.answer is not None

    def interrupted(self):
        """The host has cancelled the call because it is about to interrupt the execution: the signal will arrive."""
        error = None if self.answer.get("ok") else self.answer.get("error")
        return (isinstance(error, dict) and error.get("code") == "cancelled"
                and threading.current_thread() is threading.main_thread())

    def value(self):
        answer = self.answer
        if not answer.get("ok"):
            error = answer.get("error")
            if not isinstance(error, dict):
                error = {}
            raise MCPError(str(error.get("message") or "the host refused the call"), code=str(error.get("code") or "error"),
                           hint=error.get("hint"))
        if not self.parts:
            return answer.get("result")
        try:
            return _loads("".join(self.parts))
        except (ValueError, RecursionError):
            raise MCPError("the result is not JSON", code="internal") from None


def _wake(future):
    if not future.done():
        future.set_result(None)


def _begin(call, op, fields):
    channel = control.channel
    if channel is None or not channel.mine:
        raise MCPError("a forked process cannot call tools: only the process that runs the code can", code="forked")
    fields.update(type="rpc_request", id=call.number, op=op)
    line = wire.encode(fields)
    if len(line) > _LINE_MAX:
        raise MCPError("%s: a request of %d bytes, at most %d are allowed" % (op, len(line), _LINE_MAX), code="too_large")
    with interrupts.shield:
        channel.calls[call.number] = call
        channel.send_lines(line)


def _end(call):
    """Remove the call. May be repeated; if there is no answer yet, the host is notified."""
    channel = control.channel
    with interrupts.shield:
        if channel is not None and channel.calls.pop(call.number, None) is not None:
            channel.send({"type": "rpc_cancel", "id": call.number})


def ask(op, **fields):
    """The result, or MCPError."""
    call = _Call()
    try:
        _begin(call, op, fields)
        control.channel.wait_for(call.arrived)
    finally:
        _end(call)
    if call.interrupted():
        time.sleep(_SIGNAL_SECONDS)
    return call.value()


def _read_in(loop, step):
    """Let this loop read the channel while something waits in it."""
    if aio.is_kernels(loop):
        return
    with _readers_lock:
        entry = _readers.setdefault(id(loop), [loop, 0])
        entry[1] += step
        if step > 0 and entry[1] == 1:
            loop.add_reader(control.channel.in_fd, control.channel.pump)
        elif entry[1] == 0:
            del _readers[id(loop)]
            if not loop.is_closed():
                loop.remove_reader(control.channel.in_fd)


async def request(op, **fields):
    """The result, or MCPError."""
    loop = asyncio.get_running_loop()
    call = _Call(loop.create_future())
    try:
        _begin(call, op, fields)  # inside: an interrupt that came meanwhile is raised when it is sent
        _read_in(loop, 1)
        try:
            await call.future
        finally:
            _read_in(loop, -1)
    finally:
        _end(call)
    if call.interrupted():
        await asyncio.sleep(_SIGNAL_SECONDS)
    return call.value()


def text(value, what):
    """A value as JSON text, for a field of a request. A value that JSON cannot represent is refused, not replaced."""
    try:
        line = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"), default=_plain)
    except RecursionError:
        raise TypeError("%s: the value is nested too deeply, or contains itself" % what) from None
    except (TypeError, ValueError) as exc:
        raise TypeError("%s: the value cannot be written as JSON: %s" % (what, exc)) from None
    if len(line) > TEXT_MAX:
        raise MCPError("%s: %d characters of JSON, at most %d are allowed" % (what, len(line), TEXT_MAX), code="too_large")
    return line


def _plain(value):
    for method in ("tolist", "isoformat"):  # numpy's arrays and scalars; dates and times
        if hasattr(value, method):
            return getattr(value, method)()
    if isinstance(value, (set, frozenset)):
        return list(value)
    if hasattr(value, "__fspath__"):
        return value.__fspath__()
    raise TypeError("a %s" % type(value).__name__)
