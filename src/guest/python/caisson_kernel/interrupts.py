# SPDX-License-Identifier: Apache-2.0
"""interrupts - Where a SIGINT may become a KeyboardInterrupt, and where it may not.

Theory of operation. Python runs signal handlers in the main thread between any two bytecodes, so a handler that raises can
tear a protocol line, lose a message that was already read, or hit the next execution. Two layers keep that away.

First, signals are blocked while the kernel works: from begin() to end(), except inside call(), where user code runs; and
under a shield, where the kernel works for user code in the middle of it. This holds for the user's own handlers too
(SIGALRM and others). A signal that came in the meantime arrives at the next unblocked moment.

Second, a process with several threads gets its signals in another thread, and Python still runs the handlers in the main
one. So the handler itself distinguishes the same moments:

    idle                 begin() was not called        the signal is dropped
    executing            between two call()s           remembered; the next call() of the same execution raises it
    call(f)              user code is on the stack     KeyboardInterrupt, at once
    call(f) + shield     the kernel works for it       remembered; raised when the outermost shield is left
    call(f) + Watch      an event loop is on top       its task is cancelled, so `finally` and `async with` see it;
                                                       a second signal raises at once

Only the frame of call() is both unblocked and the kernel's own; the handler recognizes it by its code object and only
remembers the signal. `_inside` is a frame of its own for the same reason: a remembered signal is raised there, with
nothing in between that could lose it. begin() drops remembered signals, so none reaches a later execution.

The handler stays installed. SIG_IGN would be inherited by subprocesses.
"""
import _signal  # signal.pthread_sigmask makes an enum of every member of the set it returns
import signal
import threading

_BLOCKED = tuple(int(s) for s in (signal.SIGINT, signal.SIGALRM, signal.SIGVTALRM, signal.SIGPROF, signal.SIGUSR1,
                                  signal.SIGUSR2, signal.SIGTERM, signal.SIGHUP, signal.SIGCHLD, signal.SIGIO,
                                  signal.SIGWINCH))
# On top of the stack when the loop waits or steps, and never user code.
_LOOP_MODULES = frozenset(("selectors", "asyncio.base_events", "asyncio.events", "asyncio.selector_events",
                           "asyncio.unix_events"))

_executing = False
_armed = False
_pending = False
_shields = 0
_mask = ()  # of user code, while the kernel's is in force
_watched = None
_main = 0


class Watch:
    """A task that user code waits for. `cancelled`: a signal cancelled it, not the code itself."""
    __slots__ = ("loop", "task", "cancelled")

    def __init__(self, loop, task):
        self.loop = loop
        self.task = task
        self.cancelled = False


def _on_sigint(signum, frame):
    global _pending
    if not _armed or _shields or frame is None or frame.f_code is _CALL_CODE:
        _pending = _executing
        return
    watch = _watched
    if (watch is not None and not watch.cancelled and not watch.task.done()
            and frame.f_globals.get("__name__") in _LOOP_MODULES):
        watch.cancelled = True
        watch.loop.call_soon_threadsafe(watch.task.cancel)
        return
    raise KeyboardInterrupt


def install():
    """Install the SIGINT handler (again: user code may have replaced it). Main thread only."""
    global _main
    _main = threading.get_ident()
    if _signal.getsignal(signal.SIGINT) is not _on_sigint:
        _signal.signal(signal.SIGINT, _on_sigint)


def _close():
    """Block signals: the kernel runs."""
    global _shields, _mask
    _shields = 1
    while True:
        try:
            _mask = _signal.pthread_sigmask(_signal.SIG_BLOCK, _BLOCKED)
            return
        except BaseException:
            pass  # from a handler of the user's, whose moment is over


def _open():
    """Unblock signals: user code runs, or nothing. Raises the exceptions of the user's handlers for signals that came meanwhile."""
    global _shields
    _shields = 0
    _signal.pthread_sigmask(_signal.SIG_SETMASK, _mask)


def begin():
    """An execution begins; the kernel runs."""
    global _executing, _pending, _watched
    _close()
    install()
    _pending = False
    _watched = None
    _executing = True


def end():
    """The execution is over, and the host has its result."""
    global _executing
    _executing = False
    install()
    _open()


def check():
    """Raise a remembered signal."""
    global _pending
    if _pending and _armed:
        _pending = False
        raise KeyboardInterrupt


def _inside(function, args):
    _open()
    check()
    return function(*args)


def call(function, *args):
    """Call user code: only in it a SIGINT raises."""
    global _armed
    _armed = True
    try:
        return _inside(function, args)
    finally:
        _armed = False
        _close()


_CALL_CODE = call.__code__


def watch(new):
    """From now on user code waits for this Watch, or for None. Returns the previous one, to restore it."""
    global _watched
    old, _watched = _watched, new
    return old


class _Shield:
    """`with shield:` the kernel does something for user code that must not stay incomplete. No effect in other threads."""

    def __enter__(self):
        global _shields
        if threading.get_ident() == _main:
            if _shields:
                _shields += 1
            else:
                _close()

    def __exit__(self, *exc):
        global _shields
        if threading.get_ident() == _main:
            if _shields > 1:
                _shields -= 1
            else:
                _open()
                check()


shield = _Shield()
