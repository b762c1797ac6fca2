# SPDX-License-Identifier: Apache-2.0
"""magic_code.py - The magics that run the user's own code: %time, %timeit, %%capture.

Theory of operation. Their text is Python and belongs to the user as written (verbatim). It runs in the scope that called
the magic, under the name and the line numbers of the cell, so tracebacks show the user's lines. %time and %%capture are
coroutines: magics.py drives them, or awaits them if that code awaits.

Timings use a clock that cannot jump. %timeit chooses its loops as timeit does. Without -r, it stops repeating when that
would take more than TIMEIT_SECONDS, because an execution has a deadline. Garbage collection is off while it measures.

%%capture redirects the descriptors 1 and 2 and the streams above them into one file each, so that the output of
subprocesses and extensions is captured as well, in order. Displays are captured at display.sender. Everything is
restored, and the name is bound, even if the code fails.
"""
import ast
import contextlib
import gc
import io
import os
import resource
import sys
import tempfile
import time
import types

from . import display, magics
from .magics import UsageError, cell_magic, line_magic

TIMEIT_SECONDS = 8.0


def _options(args, flags, name):
    """({flag: value or True}, rest) of leading options; flags is like getopt's "n:q"."""
    found, rest = {}, args
    while rest.startswith("-") and rest[1:2].strip():
        flag = rest[1]
        place = flags.find(flag)
        if place < 0 or flag == ":":
            raise UsageError("%%%s has no option -%s" % (name, flag))
        if flags[place + 1:place + 2] == ":":
            value, _, rest = rest[2:].lstrip().partition(" ")
            found[flag] = value
        else:
            word, _, rest = rest.partition(" ")
            found[flag] = True
            rest = "-" + word[2:] + " " + rest if word[2:] else rest
        rest = rest.lstrip()
    return found, rest


def _number(options, flag, default):
    try:
        value = int(options.get(flag, default))
    except ValueError:
        value = 0
    if value < 1:
        raise UsageError("-%s takes a number of at least 1" % flag)
    return value


def _span(seconds):
    for unit, factor in (("s", 1.0), ("ms", 1e3), ("\u00b5s", 1e6)):
        if seconds * factor >= 1:
            return "%.3g %s" % (seconds * factor, unit)
    return "%.3g ns" % (seconds * 1e9)


# Time


@contextlib.contextmanager
def _timed():
    cpu, wall = resource.getrusage(resource.RUSAGE_SELF), time.perf_counter()
    try:
        yield
    finally:
        wall, now = time.perf_counter() - wall, resource.getrusage(resource.RUSAGE_SELF)
        user, system = now.ru_utime - cpu.ru_utime, now.ru_stime - cpu.ru_stime
        print("CPU times: user %s, sys: %s, total: %s\nWall time: %s" % (
            _span(user), _span(system), _span(user + system), _span(wall)))


@line_magic("time", verbatim=True)
async def line_time(scope, args):
    """%time STATEMENT: run it once and print how long that took; the value of an expression is the result."""
    with _timed():
        return await scope.run(args)


@cell_magic("time", verbatim=True)
async def cell_time(scope, args, body):
    """%%time: run the cell and print how long that took."""
    with _timed():
        return await scope.run(body)


def _loop(scope, setup, body):
    """A function (count) -> seconds around the user's statements."""
    def parse(source, first):
        try:
            return ast.parse("\n" * first + source, scope.filename).body
        except SyntaxError:
            return ast.parse("\n" * first + magics.transform(source), scope.filename).body
    tree = ast.parse("def loop(_count, _clock):\n pass\n _start = _clock()\n for _ in _count:\n  pass\n"
                     " return _clock() - _start")
    function = tree.body[0]
    function.body[2].body = parse(body, scope.first) or function.body[2].body
    function.body[0:1] = parse(setup or "pass", max(0, scope.first - 1))
    found = {}
    exec(compile(tree, scope.filename, "exec", 0, True), scope.names() if scope.locals else scope.globals, found)
    return lambda count: found["loop"](iter(range(count)), time.perf_counter)


def _timeit(scope, args, body=None):
    options, code = _options(args, "n:r:qotcp:", "timeit")
    if not (code if body is None else body).strip():
        raise UsageError("%timeit needs a statement")
    run = _loop(scope, None, code) if body is None else _loop(scope, code, body)
    was_enabled, count = gc.isenabled(), _number(options, "n", 1)
    gc.disable()
    try:
        taken = run(count)
        scales = iter(base * 10 ** power for power in range(9) for base in (1, 2, 5))
        while "n" not in options and taken < 0.2:
            count = next(scales)
            taken = run(count)
        fitting = max(1, min(7, int(TIMEIT_SECONDS / taken) if taken else 7))
        runs = [run(count) / count for _ in range(_number(options, "r", fitting))]
    finally:
        if was_enabled:
            gc.enable()
    mean = sum(runs) / len(runs)
    deviation = (sum((r - mean) ** 2 for r in runs) / len(runs)) ** 0.5
    text = "%s \u00b1 %s per loop (mean \u00b1 std. dev. of %d run%s, %s loop%s each)" % (
        _span(mean), _span(deviation), len(runs), "s" * (len(runs) > 1), format(count, ","), "s" * (count > 1))
    if "q" not in options:
        print(text)
    if "o" in options:
        return types.SimpleNamespace(average=mean, stdev=deviation, best=min(runs), worst=max(runs), timings=runs,
                                     loops=count, repeat=len(runs))
    return None


@line_magic("timeit", verbatim=True)
def line_timeit(scope, args):
    """%timeit [-n LOOPS] [-r REPEATS] [-q] [-o] STATEMENT: run it many times and print the mean."""
    return _timeit(scope, args)


@cell_magic("timeit", verbatim=True)
def cell_timeit(scope, args, body):
    """%%timeit [-n LOOPS] [-r REPEATS] [-q] [-o] [SETUP]: run the cell many times and print the mean."""
    return _timeit(scope, args, body)


# Output


class Output:
    """One captured display."""

    def __init__(self, data, metadata):
        self.data, self.metadata = data, metadata

    def _repr_mimebundle_(self, include=None, exclude=None):
        return self.data, self.metadata

    def display(self):
        display.publish(self.data, self.metadata)


class Captured:
    """The result of %%capture: .stdout, .stderr, .outputs (each with .data and .display()), .show()."""

    def __init__(self):
        self.stdout, self.stderr, self.outputs = "", "", []

    def __str__(self):
        return self.stdout

    def show(self):
        sys.stdout.write(self.stdout)
        sys.stderr.write(self.stderr)
        for output in self.outputs:
            output.display()

    __call__ = show

    def receive(self, message, ack):
        """Replaces the kernel's sender."""
        if message["type"] == "display":
            self.outputs.append(Output(message["data"], message["metadata"]))
        elif message["type"] == "clear_output":
            self.outputs.clear()


@contextlib.contextmanager
def _caught(descriptor, name, captured):
    """Redirect a descriptor and the stream of the same name into captured."""
    stream = getattr(sys, name)
    stream.flush()
    saved = os.dup(descriptor)
    with tempfile.TemporaryFile() as file:
        writer = io.TextIOWrapper(io.FileIO(os.dup(file.fileno()), "a"), "utf-8", "backslashreplace",
                                  write_through=True)
        os.dup2(file.fileno(), descriptor)
        setattr(sys, name, writer)
        try:
            yield
        finally:
            with contextlib.suppress(ValueError):
                writer.flush()
            setattr(sys, name, stream)
            os.dup2(saved, descriptor)
            os.close(saved)
            file.seek(0)
            setattr(captured, name, file.read().decode("utf-8", "replace"))


@contextlib.contextmanager
def _capturing(captured, stdout=True, stderr=True, displays=True):
    sender = display.sender
    with contextlib.ExitStack() as stack:
        for descriptor, name, wanted in ((1, "stdout", stdout), (2, "stderr", stderr)):
            if wanted:
                stack.enter_context(_caught(descriptor, name, captured))
        if displays:
            stack.callback(setattr, display, "sender", sender)
            stack.callback(display.flush_figures)
            display.sender = captured.receive
        yield


@contextlib.contextmanager
def capture_output(stdout=True, stderr=True, display=True):
    """`with capture_output() as captured:`, of IPython.utils.capture; captured has the output after the block."""
    captured = Captured()
    with _capturing(captured, stdout, stderr, display):
        yield captured


@cell_magic("capture")
async def cell_capture(scope, args, body):
    """%%capture [--no-stdout] [--no-stderr] [--no-display] [NAME]: run the cell, keep its output in NAME."""
    words = args.split()
    names = [w for w in words if not w.startswith("--")]
    if len(names) > 1 or set(words) - set(names) - {"--no-stdout", "--no-stderr", "--no-display"}:
        raise UsageError(cell_capture.__doc__)
    captured = Captured()
    with contextlib.ExitStack() as stack:
        if names:
            stack.callback(scope.globals.__setitem__, names[0], captured)
        stack.enter_context(_capturing(captured, *("--no-" + what not in words for what in ("stdout", "stderr", "display"))))
        await scope.run(body)
