# SPDX-License-Identifier: Apache-2.0
"""execution - One execution, from its code to its `execution_done`.

Theory of operation. The namespace is the dictionary of a real module, `__main__`, in sys.modules: classes pickle, and
`if __name__ == "__main__"` holds. Everything that is user code (running it, the repr of its result, the figures it left,
the text of its exception) runs inside interrupts.call(), and no exception leaves run(): not SystemExit, not
KeyboardInterrupt, nothing. The outcome is sent in one piece when all text is out.

    returned                     ok, 0          sys.exit(n)             ok when n is 0 or None, else error; n
    KeyboardInterrupt            interrupted, 130      any other exception     error, 1

A process that the code forked comes out of the same call. It is not the kernel: it ends there, as a script would.
"""
import asyncio
import contextvars
import os
import sys
import types

from . import display, interactive, interrupts, past, source, stdin_, streams, traceback_, wire, workspace

_OK, _ERROR, _INTERRUPTED = "ok", "error", "interrupted"
ANSWER = "application/vnd.caisson.answer+json"  # the bundle of an answer to a query
_RECURSION_MIN = 300  # what the kernel itself needs, and some room
_TASKS_TAKE_CONTEXT = sys.version_info >= (3, 11)


def new_namespace():
    """The dictionary of a fresh `__main__`."""
    module = types.ModuleType("__main__")
    module.__dict__["__builtins__"] = __import__("builtins")
    sys.modules["__main__"] = module
    return module.__dict__


def _set_environment(variables):
    """Set the environment of the sandbox, with the first execution: a warm interpreter started before it was known."""
    if isinstance(variables, dict):
        for name, value in variables.items():  # update() asks abstract classes, at the cost of twenty pages in a fresh fork
            os.environ[str(name)] = str(value)


class Executor:
    def __init__(self, channel, loop):
        self._channel = channel
        self._loop = loop
        self._namespace = new_namespace()
        self._context = contextvars.copy_context()
        self._past = past.Past(self._namespace)
        self._mcp = None

    # User code. These run inside interrupts.call().

    def _run(self, code, name):
        if self._mcp is not None:
            from . import codemode
            codemode.enter(self._mcp, self._namespace, name)
        interactive.begin(code)
        cell = source.compile_cell(code, name, interactive.interactivity())
        if cell.is_async:
            value = self._run_async(cell)
        else:
            value = self._context.run(self._run_sync, cell)
        return value if cell.has_value else None

    def _run_sync(self, cell):
        value = None
        for number, code in enumerate(cell.codes):
            value = eval(code, self._namespace)
            if number in cell.shown and value is not None:
                display.display(value)
        return value

    def _run_async(self, cell):
        context = self._context if _TASKS_TAKE_CONTEXT else None
        value, exc = self._loop.run(self._awaited(cell), context)
        if exc is not None:
            raise exc
        return value

    async def _awaited(self, cell):
        """Never raises: a SystemExit or KeyboardInterrupt that leaves a task would break the loop."""
        value = None
        try:
            for number, code in enumerate(cell.codes):
                value = eval(code, self._namespace)
                if code.co_flags & source.CO_COROUTINE:
                    value = await value
                if number in cell.shown and value is not None:
                    display.display(value)
        except BaseException as exc:
            if self._loop.interrupted and isinstance(exc, asyncio.CancelledError):
                exc = KeyboardInterrupt().with_traceback(exc.__traceback__)
            return None, exc
        return value, None

    def _result(self, value):
        data, metadata, short = display.measured(value)
        self._past.result(value)
        message = {"type": "result", "data": data, "metadata": metadata, **({"truncated": True} if short else {})}
        return wire.bounded(message) if data else b""

    # The kernel's part.

    def _attempt(self, function, *args):
        """(value, None) or (None, exception) of user code. A fork of it returns only here."""
        try:
            value, exc = interrupts.call(function, *args), None
        except BaseException as caught:
            value, exc = None, caught
        if sys.getrecursionlimit() < _RECURSION_MIN:
            sys.setrecursionlimit(_RECURSION_MIN)
        if not self._channel.mine:
            _leave_fork(exc)
        return value, exc

    def run(self, executes):
        """Run the first execution of the queue and answer it, with exactly one execution_done. It is removed from the queue when no
        handler of the user's code can run in between and lose it."""
        interrupts.begin()
        message = executes.popleft()
        done = {"type": "execution_done", "id": message.get("id")}
        before = workspace.snapshot() if message.get("files") else ()
        try:
            self._loop.reset()
            streams.restore()
            stdin_.restore()
            _set_environment(message.get("env"))
            if isinstance(message.get("query"), dict):
                lines, status, exit_code = self._answer(message["query"])
            else:
                self._mcp = message.get("mcp")
                self._past.begin(message.get("count"), str(message.get("code") or ""))
                lines, status, exit_code = self._outcome(
                    str(message.get("code") or ""), str(message.get("name") or "<sandbox>"))
        except BaseException as exc:  # the kernel itself failed: out of memory, most likely
            lines, status, exit_code = _kernel_failure(exc), _ERROR, 1
        done.update(status=status, exit_code=exit_code)
        if message.get("files"):
            done["files"] = workspace.changed(before)
        self._channel.send_lines(lines + wire.encode(done))
        interrupts.end()

    def _outcome(self, code, name):
        lines = b""
        value, exc = self._attempt(self._run, code, name)
        self._loop.settle()
        interactive.remember(code, value, exc)
        if exc is None and value is not None:
            lines, exc = self._attempt(self._result, value)
            value = None
        for finish in (display.flush_figures, interactive.end):
            _, late = self._attempt(finish)
            exc = exc or late
        status, exit_code = _OK, 0
        if exc is not None:
            lines, status, exit_code = self._failure(exc)
        self._attempt(streams.flush)
        return lines, status, exit_code

    def _answer(self, question):
        from . import query  # only notebooks send queries
        value, exc = self._attempt(query.answer, question, self._namespace)
        if exc is not None:
            return self._failure(exc)
        return wire.encode({"type": "result", "data": {ANSWER: value}, "metadata": {}}), _OK, 0

    def _failure(self, exc):
        """(lines, status, exit code) of an execution that an exception ended."""
        if isinstance(exc, SystemExit):
            exit_code, failed = self._attempt(_exit_code, exc)
            if exit_code == 0:
                return b"", _OK, 0
            exit_code = 1 if failed else exit_code
            return _error("SystemExit", str(exit_code), []), _ERROR, exit_code
        described, failed = self._attempt(traceback_.describe, exc)
        line = _error(*(described if failed is None else traceback_.bare(exc)))
        if isinstance(exc, KeyboardInterrupt):
            return line, _INTERRUPTED, 130
        return line, _ERROR, 1


def _error(name, value, lines):
    return wire.encode({"type": "error", "name": name, "value": value, "traceback": lines})


def _kernel_failure(exc):
    name = type(exc).__name__
    return _error(name, "in the kernel itself", [name])


def _exit_code(exc):
    """The exit code that the process would have had; like Python, prints an argument that is not a number to stderr."""
    code = exc.code
    if code is None:
        return 0
    if isinstance(code, int):
        return int(code) & 0xff
    print(code, file=sys.stderr)
    return 1


def _leave_fork(exc):
    """End a process that user code forked, as Python ends a script."""
    code = 0
    try:
        if isinstance(exc, SystemExit):
            code = _exit_code(exc)
        elif exc is not None:
            code = 1
            print("\n".join(traceback_.describe(exc)[2]), file=sys.stderr)
        streams.flush()
    finally:
        os._exit(code)
