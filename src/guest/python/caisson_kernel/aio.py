# SPDX-License-Identifier: Apache-2.0
"""aio - The asyncio loop of the kernel: it outlives executions, and asyncio.run() still works.

Theory of operation. The loop is made when something first asks for it; a kernel that never sees asyncio has none. From
then on it runs while the kernel is idle (it is what waits for the next message) and while an execution with top-level
`await` runs; so background tasks go on in both. Code without top-level `await` is run between two runs of the loop, with
no loop running: there asyncio.run(), loop.run_until_complete() and libraries that start a loop of their own work as in a
script. Three functions of asyncio are extended for the habits of notebooks and models:

    get_event_loop()   in the main thread, when user code has set no loop of its own: the kernel's (by a policy)
    create_task()      with no loop running, in the main thread: the task goes to the kernel's loop and runs when the
                       execution is over, or when a later one awaits
    run()              inside the kernel's running loop (top-level await, a background task): leaves that loop for the time
                       of the call. The outer loop stands still meanwhile, as in any blocking call.
                       An interrupt cancels the main task, in every version of Python

User code may stop, break or close the loop (many scripts end with `loop.close()`): the kernel then makes a new one.
"""
import _thread
import asyncio
import functools
import threading

from . import interrupts

_asyncio_run = asyncio.run
_asyncio_create_task = asyncio.create_task
_owner = None


class Policy(asyncio.DefaultEventLoopPolicy):
    """Tracks whether the main thread has set a loop, and otherwise gives it the kernel's."""
    is_set = False

    def set_event_loop(self, loop):
        super().set_event_loop(loop)
        if _owner is not None and threading.get_ident() == _owner.main:
            self.is_set = loop is not None

    def get_event_loop(self):
        if not self.is_set and _owner is not None and threading.get_ident() == _owner.main:
            return _owner.current()
        return super().get_event_loop()


_policy = Policy()


class Loop:
    """The present loop of this kernel, if there is one."""

    def __init__(self, channel):
        global _owner
        self.main = threading.get_ident()
        self.loop = None
        self._channel = channel
        self._idle = False
        self._task = None
        self._watch = None
        channel.wake = self._wake
        _owner = self

    def current(self):
        """The loop, alive and set as the current one."""
        loop = self.loop
        if loop is None or loop.is_closed():
            with interrupts.shield:  # a loop that does not read the host's messages would wait for ever
                loop = asyncio.new_event_loop()
                loop.add_reader(self._channel.in_fd, self._channel.pump)
                self.loop = loop
        asyncio.set_event_loop(loop)
        return loop

    def reset(self):
        """Between executions: make the kernel's loop the current one, with no loop running, even if an interrupt in the
        middle of asyncio has left another state behind."""
        asyncio._set_running_loop(None)
        loop = self.loop
        if loop is not None and (loop.is_closed() or loop.is_running()):
            loop = self.loop = None
        if loop is not None or asyncio.get_event_loop_policy() is not _policy:
            self.current()
        elif _policy.is_set:
            asyncio.set_event_loop(None)

    def mend(self):
        """After an exception left the loop: give the loop up if it no longer works (its epoll was closed)."""
        loop = self.loop
        if loop is None:
            return
        try:
            loop.call_soon(loop.stop)
            loop.run_forever()
        except Exception:
            self.loop = None
            try:
                loop.close()
            except Exception:
                pass

    def _wake(self):
        """A thread has read a message to execute."""
        if not self._idle:
            return
        try:
            if threading.get_ident() == self.main:
                self.loop.stop()
            else:
                self.loop.call_soon_threadsafe(self.loop.stop)
        except RuntimeError:  # closed
            pass

    def wait(self):
        """Wait until there is something to execute. Without a loop, and without threads that may have to wake each
        other, waiting on the pipe is enough."""
        self.reset()
        if self.loop is None and not _thread._count():
            self._channel.wait_for(self._channel.executes.__len__)
            return
        loop = self.current()
        self._idle = True
        try:
            while not self._channel.executes:
                loop.run_forever()
        finally:
            self._idle = False

    def run(self, coroutine, context=None):
        """Run a coroutine of user code to its end. If the loop ends first (by a signal, sys.exit() in another task or
        loop.stop()), cancel the coroutine and raise the reason."""
        loop = self.current()
        options = {} if context is None else {"context": context}  # Python 3.11 and later
        with interrupts.shield:  # settle() must know about a task from its beginning
            task = self._task = loop.create_task(coroutine, **options)
            watch = self._watch = interrupts.Watch(loop, task)
            interrupts.watch(watch)
        try:
            return loop.run_until_complete(task)
        except asyncio.CancelledError:
            if watch.cancelled:  # before the task had begun
                raise KeyboardInterrupt from None
            raise
        finally:
            interrupts.watch(None)
            if not task.done() and not loop.is_closed():
                task.cancel()
                loop.run_until_complete(asyncio.wait({task}, timeout=1))

    @property
    def interrupted(self):
        """Whether a signal cancelled the coroutine of run()."""
        return self._watch.cancelled

    def settle(self):
        """After run(), out of reach of signals: cancel tasks that a second interrupt left running."""
        task, self._task = self._task, None
        if task is not None and not task.done():
            try:
                task.cancel()
            except RuntimeError:  # the loop is closed
                pass


async def _watched(coroutine, watches):
    """The main coroutine of asyncio.run(); a signal that finds the loop waiting cancels it."""
    watch = interrupts.Watch(asyncio.get_running_loop(), asyncio.current_task())
    watches.append(watch)
    interrupts.watch(watch)
    return await coroutine


def _run_watched(main, *args, **kwargs):
    """asyncio.run() as in Python 3.11 and later, in every version: Ctrl-C cancels the main task."""
    if not asyncio.iscoroutine(main) or threading.get_ident() != _owner.main:
        return _asyncio_run(main, *args, **kwargs)
    watches = []
    coroutine = _watched(main, watches)
    old = interrupts.watch(None)
    try:
        return _asyncio_run(coroutine, *args, **kwargs)
    except asyncio.CancelledError:
        if watches and watches[0].cancelled:
            raise KeyboardInterrupt from None
        raise
    finally:
        interrupts.watch(old)
        main.close()  # if it never began


@functools.wraps(_asyncio_run)
def run(main, *args, **kwargs):
    outer = asyncio._get_running_loop()
    if _owner is None or (outer is not None and outer is not _owner.loop):
        return _asyncio_run(main, *args, **kwargs)
    if outer is None:
        return _run_watched(main, *args, **kwargs)
    with interrupts.shield:
        current = asyncio.current_task(outer)
        if current is not None:
            asyncio.tasks._leave_task(outer, current)
        asyncio._set_running_loop(None)
    try:
        return _run_watched(main, *args, **kwargs)
    finally:
        with interrupts.shield:
            asyncio._set_running_loop(outer)
            asyncio.set_event_loop(outer)
            if current is not None:
                asyncio.tasks._enter_task(outer, current)


@functools.wraps(_asyncio_create_task)
def create_task(coro, **kwargs):
    if _owner is not None and asyncio._get_running_loop() is None and threading.get_ident() == _owner.main:
        return _owner.current().create_task(coro, **kwargs)
    return _asyncio_create_task(coro, **kwargs)


def is_kernels(loop):
    """Whether this is the loop that reads the channel anyway."""
    return _owner is not None and loop is _owner.loop


def disown():
    """The rehearsal is over: there is no kernel any more."""
    global _owner
    _owner = None


def install():
    asyncio.set_event_loop_policy(_policy)
    asyncio.run = asyncio.runners.run = run
    asyncio.create_task = asyncio.tasks.create_task = create_task
