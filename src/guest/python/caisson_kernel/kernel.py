# SPDX-License-Identifier: Apache-2.0
"""kernel - Start, report it, then wait for executions and run them, without end.

prepare() does the part that is the same for every kernel and takes time: imports, and the settings that user code expects.
The warm process calls it once, with a rehearsal: Python specializes code that runs often (PEP 659) and fills its caches. A
fork pays for every page that it writes first, so prepare() leaves as little as possible to do, and moves all objects out of
the garbage collector's sight. main() does the rest, quickly: it opens the channel and reports.

The kernel ends when the host closes the channel, or when user code ends the process itself. Nothing else ends it:
exceptions between executions (of a background task, of a signal handler of the user's) are dropped, and a loop that no
longer works is replaced.
"""
import faulthandler
import gc
import importlib
import os
import signal
import sys

from . import (aio, control, display, execution, interrupts, magics, memory, packages, reseed, source, standins, stdin_,
               streams, wire)

_REHEARSAL = ("1 + 1", "print(1)", "def f(): return 1 / 0\nf()", "def (")
_ROUNDS = 10  # Python specializes a function at its eighth call

_prepared = None  # the objects of the kernel, once prepare() has made them


def _import(name):
    """None, or the reason why the module could not be imported."""
    try:
        importlib.import_module(name)
    except BaseException as exc:  # a preloaded module may even call sys.exit()
        return "%s: %s" % (type(exc).__name__, exc)
    return None


def _make():
    channel = control.Channel()
    loop = aio.Loop(channel)
    return channel, loop, execution.Executor(channel, loop)


def _rehearse():
    """Run some executions, whose output and answers go to a pipe of our own; then restore everything that they set."""
    main = sys.modules.get("__main__")
    handler = signal.getsignal(signal.SIGINT)
    to_kernel, from_kernel, stdout = os.pipe(), os.pipe(), os.dup(1)
    channel, loop, executor = _make()
    try:
        channel.open(to_kernel[0], os.dup(from_kernel[1]))
        os.dup2(from_kernel[1], 1)
        for number, code in enumerate(_REHEARSAL * _ROUNDS):
            os.write(to_kernel[1], wire.encode({"type": "execute", "id": "", "code": code, "name": "<rehearsal-%d>" % number}))
            _serve(channel, loop, executor)
            os.read(from_kernel[0], 1 << 16)
    finally:
        control.channel = None
        channel.close()
        os.dup2(stdout, 1)
        for fd in (to_kernel[1], stdout, *from_kernel):
            os.close(fd)
        aio.disown()
        source.forget()
        signal.signal(signal.SIGINT, signal.SIG_DFL if handler is None else handler)
        if main is not None:
            sys.modules["__main__"] = main


def _settle():
    """Set the interpreter up as user code expects it."""
    here = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    sys.path[:] = [""] + [p for p in sys.path if p not in ("", here)] + [here]
    sys.argv[:] = [""]
    display.sender = _send_display
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


def prepare(preload=(), warm=False):
    """Import everything that kernels need, and the modules of `preload`. Returns [(module, error text)] of the failed ones.
    Leaves no descriptor open and starts no thread, so the process may fork. warm: it will."""
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
    if _prepared is None:
        magics.load()
        streams.unbuffer_c()
        aio.install()
        if warm:
            _rehearse()
        _settle()
        _prepared = _make()
    gc.collect()
    gc.freeze()
    return failed


def main(control_in=3, control_out=4):
    """Run a kernel on two descriptors. Never returns."""
    if _prepared is None:
        prepare()
    channel, loop, executor = _prepared
    channel.open(control_in, control_out)
    interrupts.install()
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
