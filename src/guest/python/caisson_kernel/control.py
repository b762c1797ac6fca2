# SPDX-License-Identifier: Apache-2.0
"""control - The channel: two pipes, one line of JSON per message.

Theory of operation. The descriptors are moved to high numbers and closed on exec, so that subprocesses neither inherit
nor find them. Writing: one lock, one whole line at a time, under a shield (interrupts.py), blocking. Reading: each
function reads when it needs a message, and puts every message that it reads into the place where its owner looks:

    execute          executes, a queue for the idle kernel
    ack              a counter. Displays are numbered, and number n waits for n acks; so an interrupted wait leaves
                     nothing behind that the next display could take for its own
    input_response   by id, as install_response; rpc_part, rpc_response: the call of the id (codemode/rpc.py)
    packages         applied at once: the paths for imports (packages.py)

No thread holds a lock while it waits for the descriptor. With several threads, a thread that loses the race finds its
answer in its place, at most _TICK_MS later; a thread that reads an `execute` wakes the idle loop.

The other end is the host. When the host closes the pipe, the kernel ends at once. A process that user code forks has no
channel: the descriptors are closed there, nothing is sent, and every question is answered with EOF.
"""
import _thread
import collections
import fcntl
import os
import select
import threading

from . import interrupts, wire

_HIGH_FD = 200
_TICK_MS = 20

# Bound here, so that the kernel keeps the originals if user code replaces them (a mock that was never undone).
_close, _exit, _getpid, _read, _write = os.close, os._exit, os.getpid, os.read, os.write

channel = None  # the Channel of this process, once it is open


def _move_up(fd):
    try:
        high = fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, _HIGH_FD)
    except OSError:  # RLIMIT_NOFILE is lower
        high = fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 5)
    _close(fd)
    return high


class Channel:
    """Not open yet: it may be made before a fork."""

    def __init__(self):
        self.pid = 0
        self.executes = collections.deque()
        self.wake = None  # called by the thread that reads an `execute`
        self.in_fd = self._out_fd = -1
        self._write_lock = threading.Lock()
        self._read_lock = threading.Lock()
        self._buffer = bytearray()
        self._displays = 0
        self._acks = 0
        self._requests = 0
        self._questions = set()
        self._answers = {}
        self.calls = {}  # by number: the calls that wait for an rpc_response

    def open(self, control_in, control_out):
        """Become the channel of this process."""
        global channel
        self.pid = _getpid()
        self.in_fd = _move_up(control_in)
        self._out_fd = _move_up(control_out)
        channel = self

    def close(self):
        for fd in (self.in_fd, self._out_fd):
            try:
                _close(fd)
            except OSError:
                pass

    @property
    def mine(self):
        """False in a process that user code forked."""
        return _getpid() == self.pid

    # Writing.

    def send(self, *messages):
        self.send_lines(b"".join(map(wire.encode, messages)))

    def send_lines(self, lines):
        if not self.mine:
            return
        with interrupts.shield, self._write_lock:
            view = memoryview(lines)
            try:
                while view:
                    view = view[_write(self._out_fd, view):]
            except OSError:
                _exit(0)

    # Reading.

    def _readable(self, timeout_ms):
        poll = select.poll()  # threads must not share it
        poll.register(self.in_fd, select.POLLIN)
        return poll.poll(timeout_ms)

    def pump(self):
        """Read once if there is input, and sort it. Does not block."""
        with interrupts.shield, self._read_lock:
            if not self._readable(0):
                return
            try:
                data = _read(self.in_fd, 1 << 16)
            except OSError:
                data = b""
            if not data:
                if self.mine:
                    _exit(0)
                return
            buffer = self._buffer
            buffer += data
            if b"\n" not in data:
                if len(buffer) > wire.LINE_MAX_BYTES:
                    _exit(1)  # the protocol is broken; there is no way to find the next message
                return
            *lines, rest = bytes(buffer).split(b"\n")
            self._buffer = bytearray(rest)
            for line in lines:
                message = wire.decode(line)
                if message is not None:
                    self._sort(message)

    def peek(self):
        """pump(), unless a thread is reading, or the process is a fork. Returns whether it was done."""
        if not self.mine or self._read_lock.locked():
            return False
        self.pump()
        return True

    def _sort(self, message):
        kind = message.get("type")
        if kind == "execute":
            self.executes.append(message)
            if self.wake is not None:
                self.wake()
        elif kind == "ack":
            self._acks = min(self._acks + 1, self._displays)  # an ack that no display waits for is no credit
        elif kind == "input_response":
            if str(message.get("id")) in self._questions:
                self._answers[str(message["id"])] = message
        elif kind == "install_response":
            if str(message.get("id")) in self._questions:
                self._answers[str(message["id"])] = message
        elif kind == "packages":
            from . import packages
            packages.use(message)
        elif kind == "rpc_part" or kind == "rpc_response":
            call = self.calls.get(message.get("id"))
            if call is not None:
                call.take(kind, message)

    def wait_for(self, arrived):
        """Read until arrived() is true. KeyboardInterrupt may come here, between two reads."""
        while not arrived():
            self._readable(_TICK_MS if _thread._count() else None)
            self.pump()

    # Conversations.

    def display(self, message):
        """Send a message with a MIME bundle; return when the host has it, so that text printed later cannot overtake it."""
        if not self.mine:
            return
        line = wire.bounded(message)
        with interrupts.shield:
            self._displays += 1
            number = self._displays
            self.send_lines(line)
        self.wait_for(lambda: self._acks >= number)

    def clear_output(self, wait=False):
        self.send({"type": "clear_output", "wait": bool(wait)})

    def ask(self, prompt, password=False):
        """The host's answer to an input_request; in a forked process, EOF."""
        if not self.mine:
            return {"eof": True}
        with interrupts.shield:
            self._requests += 1
            number = self._requests
            key = str(number)
            self._questions.add(key)
            self.send({"type": "input_request", "id": number, "prompt": wire.cut(prompt, 65536), "password": password})
        try:
            self.wait_for(lambda: key in self._answers)
            return self._answers[key]
        finally:  # an answer after an interrupt has no reader
            self._questions.discard(key)
            self._answers.pop(key, None)

    def install(self, packages, upgrade=False):
        """The host's answer to an install_request; installed packages can be imported by then."""
        if not self.mine:
            return {"error": "a forked process has no channel to the host"}
        with interrupts.shield:
            self._requests += 1
            number = self._requests
            key = str(number)
            self._questions.add(key)
            self.send({"type": "install_request", "id": number, "packages": packages, "upgrade": upgrade})
        try:
            self.wait_for(lambda: key in self._answers)
            return self._answers[key]
        finally:
            self._questions.discard(key)
            self._answers.pop(key, None)


def _forked():
    if channel is not None:
        channel.close()


os.register_at_fork(after_in_child=_forked)
