# SPDX-License-Identifier: Apache-2.0
"""kernel - Start, report it, then wait for executions and run them, without end.

prepare() does the part that is the same for every kernel and takes time: imports, the objects that a fork may share, and a
rehearsal. A fork pays for every page that it writes first, so prepare() writes these pages, and moves all objects out of the
garbage collector's sight. The warm process calls it once. main() does the rest, quickly; it makes the objects that a fork
must not share: the channel, the namespace, and later the loop.

The kernel ends when the host closes the channel, or when user code ends the process itself. Nothing else ends it:
exceptions between executions (of a background task, of a signal handler of the user's) are dropped, and a loop that no
longer works is replaced.
"""
import collections
import faulthandler
import gc
import importlib
import os
import signal
import sys

from . import (aio, control, display, execution, interrupts, magics, memory, packages, reseed, source, standins, stdin_,
               streams)

_REHEARSAL = ("1 + 1", "print(end='')", "def f(): return 1 / 0\nf()", "def (")

_prepared = False


def _import(name):
    """None, or the reason why the module could not be imported."""
    try:
        importlib.import_module(name)
    except BaseException as exc:  # a preloaded module may even call sys.exit()
        return "%s: %s" % (type(exc).__name__, exc)
    return None


def _rehearse():
    """Run some executions whose answers are not sent; then restore everything that they set."""
    main = sys.modules.get("__main__")
    handler = signal.getsignal(signal.SIGINT)
    to_kernel, from_kernel = os.pipe(), os.pipe()
    channel = control.open_channel(to_kernel[0], from_kernel[1])
    try:
        executor = execution.Executor(channel, aio.Loop(channel))
        for number, code in enumerate(_REHEARSAL):
            executor.run(collections.deque([{"id": "", "code": code, "name": "<rehearsal-%d>" % number}]))
    finally:
        control.channel = None
        channel.close()
        os.close(to_kernel[1])
        os.close(from_kernel[0])
        aio.disown()
        source.forget()
        signal.signal(signal.SIGINT, signal.SIG_DFL if handler is None else handler)
        if main is not None:
            sys.modules["__main__"] = main


def prepare(preload=()):
    """Import everything that kernels need, and the modules of `preload`. Returns [(module, error text)] of the failed ones.
    Leaves no descriptor open and starts no thread, so the process may fork."""
    global _prepared
    failed = []
    reseed.warm_pid = os.getpid()
    memory.keep()
    standins.install()  # before the modules that it patches are loaded
    streams.install()  # and before modules that keep print()
    for name in preload:
        error = _import(name)
        if error is not None:
            failed.append((name, error))
    if not _prepared:
        _prepared = True
        magics.load()
        streams.unbuffer_c()
        aio.install()
        _rehearse()
    gc.collect()
    gc.freeze()
    return failed


def _settle():
    """Set the interpreter up as user code expects it."""
    here = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    sys.path[:] = [""] + [p for p in sys.path if p not in ("", here)] + [here]
    sys.argv[:] = [""]
    interrupts.install()
    packages.watch()
    streams.restore()
    stdin_.restore()
    try:
        faulthandler.enable(file=2)
    except (OSError, ValueError):
        pass


def _send_display(message, ack):
    """The sender of display.py."""
    channel = control.channel
    if ack:
        channel.display(message)
    else:
        channel.send(message)


def main(control_in=3, control_out=4):
    """Run a kernel on two descriptors. Never returns."""
    if not _prepared:
        prepare()
    channel = control.open_channel(control_in, control_out)
    _settle()
    display.sender = _send_display
    loop = aio.Loop(channel)
    executor = execution.Executor(channel, loop)
    channel.send({"type": "ready", "language": "python", "version": "%d.%d.%d" % sys.version_info[:3],
                  "pid": channel.pid})
    _for_ever(lambda: _serve(channel, loop, executor), channel)


def _for_ever(step, channel, depth=3):
    """A signal handler of the user's code may raise between any two instructions, also where a loop begins anew, outside of its
    try: then the same loop around this one continues."""
    while True:
        try:
            if depth:
                _for_ever(step, channel, depth - 1)
            else:
                step()
        except BaseException:
            if not channel.mine:
                os._exit(1)


def _serve(channel, loop, executor):
    try:
        if not channel.executes:
            loop.wait()
    except BaseException:
        if not channel.executes:
            loop.mend()
    while channel.executes:
        executor.run(channel.executes)
