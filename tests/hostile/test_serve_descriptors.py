# SPDX-License-Identifier: Apache-2.0
"""test_serve_descriptors.py - Pid 1 of a cell is taken over, and hands the front descriptors of its own choosing.

The front serves everybody in one thread: a single call that waits is the end of the service. Pid 1 (a puppet, see puppet.py)
takes the front's request from its channel and answers in its own way: descriptors that it keeps a copy of, whose O_NONBLOCK
it clears, whose other end it holds still; descriptors of another kind; sockets that linger. Somebody else's sandbox is
asked all the while.
"""
import contextlib
import os
import select
import signal
import socket
import struct

import daemon_lib
import pytest
from daemon_lib import at_most
from process import Later, call_yourself, unique
from lib import landed
from cell_lib import until
from puppet import Out, Puppet, inet

daemon, hostile_test, whole_module = daemon_lib.daemon, daemon_lib.hostile_test, daemon_lib.whole_module
quick = pytest.mark.quick
CHANNEL = 3                                            # src/wire/init.h
STARTED, CONNECTED, LISTEN = 7, 13, 14
LISTEN_TOOLS = 4
F_GETFL, F_SETFL = 3, 4
TIOCSPTLCK, TIOCGPTN = 0x40045431, 0x80045430
LATE = 5                                               # seconds in which a neighbour is served; a front that waits never does


class Pid1:
    """A sandbox whose pid 1 the test controls."""

    def __init__(self, d):
        self.d, self.name = d, unique("puppet")
        assert d.request("POST", "/v1/sandboxes", {"name": self.name}).status == 201
        mark = unique("k")[:14]
        d.execute(call_yourself(mark), session_id=self.name)
        kernel = until(lambda: d.named(mark), 10, "the kernel").pop()
        self.pid = d.cell_of(kernel)
        self.p = Puppet(self.pid)

    def ask(self, method, path, body=None):
        """Requests that make the front send messages to pid 1, without waiting for the answer."""
        def call():
            with contextlib.suppress(OSError):
                self.d.request(method, f"/v1/sandboxes/{self.name}{path}", body, timeout=20)
        return Later(call)

    def take(self):
        """The front's next request: (id, its whole message)."""
        def some():
            r = self.p.call("recvfrom", CHANNEL, Out(512), 512, socket.MSG_DONTWAIT, 0, 0)
            asked_by_timer = r.ok and struct.unpack_from("I4xI", r.out[0]) == (LISTEN, LISTEN_TOOLS)
            return r.out[0][:r.ret] if r.ok and not asked_by_timer else None
        message = until(some, 10, "a request to pid 1")
        return struct.unpack("II", message[:8])[1], message

    def answer(self, kind, fds):
        number, message = self.take()
        r = self.p.sendmsg(CHANNEL, struct.pack("IIi", kind, number, 77) + bytes(len(message) - 12), fds)
        assert r.ok, r

    def pipe(self):
        return struct.unpack("ii", self.p.call("pipe2", Out(8), 0).out[0])

    def terminal(self):
        master = self.p.open("/dev/ptmx", os.O_RDWR | os.O_NOCTTY).ret
        self.p.call("ioctl", master, TIOCSPTLCK, struct.pack("i", 0))
        n = struct.unpack("i", self.p.call("ioctl", master, TIOCGPTN, Out(4)).out[0])[0]
        slave = self.p.open(f"/dev/pts/{n}", os.O_RDWR | os.O_NOCTTY)
        assert slave.ok, slave
        return master, slave.ret

    def connection(self):
        """Both ends of a TCP connection in the cell."""
        listening = self.p.call("socket", socket.AF_INET, socket.SOCK_STREAM, 0).ret
        assert self.p.call("bind", listening, inet(4711), 16).ok and self.p.call("listen", listening, 1).ok
        ours = self.p.call("socket", socket.AF_INET, socket.SOCK_STREAM, 0).ret
        assert self.p.call("connect", ours, inet(4711), 16).ok
        theirs = self.p.call("accept4", listening, 0, 0, 0)
        assert theirs.ok, theirs
        self.p.call("close", listening)
        return ours, theirs.ret

    def flags(self, fd):
        return self.p.call("fcntl", fd, F_GETFL, 0).ret

    def make_blocking(self, fd):
        """As soon as the front has made it non-blocking, which is the last thing that it does."""
        until(lambda: self.flags(fd) & os.O_NONBLOCK, 10, "a front that took the descriptor")
        assert self.p.call("fcntl", fd, F_SETFL, 0).ok

    def write(self, fd, data):
        r = self.p.call("write", fd, data, len(data))
        assert r.ret == len(data), r

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        if kind:  # a front that waits for us would keep the next tests waiting, too
            self.p.p.kill()
            self.p.over = True
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)
        self.p.close()
        self.d.end_session(self.name)


def is_served(d):
    """Somebody else, in a sandbox of his own."""
    r = d.execute("6 * 7", timeout_outer=LATE)
    assert r.status == "ok" and r["result"] == {"text/plain": "42"}, r


def command(c, body=None):
    c.ask("POST", "/processes", {"cmd": "true", **(body or {})})
    ends = [c.pipe() for _ in range(3)]
    c.answer(STARTED, [ends[0][1], ends[1][0], ends[2][0]])
    return ends


def read_of_a_command(c):
    ends = command(c)
    c.make_blocking(ends[1][0])
    c.write(ends[1][1], b"x")
    return ends[1][0]


def write_to_a_command(c):
    ends = command(c, {"stdin": True})
    got = until(lambda: c.d.request("GET", f"/v1/sandboxes/{c.name}/processes").json["processes"], 10, "the process")
    c.make_blocking(ends[0][1])
    c.ask("POST", f"/processes/{got[0]['process_id']}/stdin", {"data": "x" * 300000})
    return ends[0][1]


def read_of_a_terminal(c):
    c.ask("POST", "/processes", {"cmd": "true", "pty": True})
    master, slave = c.terminal()
    c.answer(STARTED, [master])
    c.make_blocking(master)
    c.write(slave, b"x")
    return master


def read_of_a_file(c):
    c.ask("GET", "/files?path=x")
    ends = [c.pipe(), c.pipe()]
    c.answer(STARTED, [ends[0][1], ends[1][0]])
    c.make_blocking(ends[1][0])
    c.write(ends[1][1], b"x")
    return ends[1][0]


def read_of_a_kernel(c):
    def call():
        with contextlib.suppress(OSError, AssertionError):
            c.d.execute("true", session_id=c.name, language="bash", timeout_outer=20)
    Later(call)
    ends = [c.pipe() for _ in range(4)]
    c.answer(STARTED, [ends[0][1], *(r for r, _ in ends[1:])])
    c.make_blocking(ends[2][0])
    c.write(ends[2][1], b"x")
    return ends[2][0]


def read_of_a_port(c):
    assert c.d.request("POST", f"/v1/sandboxes/{c.name}/ports/8000").status == 201
    c.ask("GET", "/ports/8000/")
    ours, theirs = c.connection()
    c.answer(CONNECTED, [ours])
    until(lambda: c.p.call("recvfrom", theirs, Out(4), 4, socket.MSG_DONTWAIT | socket.MSG_PEEK, 0, 0).ok, 10, "the request")
    assert c.p.call("fcntl", ours, F_SETFL, 0).ok
    c.write(theirs, b"H")
    return ours


HOLDS = {f.__name__: f for f in (read_of_a_command, write_to_a_command, read_of_a_terminal, read_of_a_file, read_of_a_kernel, read_of_a_port)}


@quick
@pytest.mark.parametrize("way", HOLDS)
def test_a_descriptor_that_pid1_holds_too(daemon, stopped_by, way):
    """It clears O_NONBLOCK, which is the open file's; the front's next read or write would wait."""
    with Pid1(daemon) as c:
        fd = HOLDS[way](c)
        for _ in range(3):
            is_served(daemon)
        landed(not c.flags(fd) & os.O_NONBLOCK, "the descriptor blocks")
    stopped_by("RWF_NOWAIT, MSG_DONTWAIT, or a timer")


def odd(c, what):
    """A descriptor of pid 1 that is not a pipe."""
    if what == "device":
        return c.p.open("/dev/zero").ret
    if what == "file":
        return c.p.open("/tmp/odd", os.O_RDWR | os.O_CREAT, 0o600).ret
    if what == "directory":
        return c.p.open("/").ret
    if what == "socket":
        return struct.unpack("ii", c.p.call("socketpair", socket.AF_UNIX, socket.SOCK_STREAM, 0, Out(8)).out[0])[0]
    if what == "epoll":
        return c.p.call("epoll_create1", 0).ret
    assert what == "channel"
    return CHANNEL


@quick
@pytest.mark.parametrize("what", ("device", "file", "directory", "socket", "epoll", "channel"))
def test_a_descriptor_of_another_kind(daemon, stopped_by, what):
    """The cell is ended, and the log has the reason; other sandboxes are not affected."""
    before = len(daemon.log("cell_refused"))
    with Pid1(daemon) as c:
        c.ask("POST", "/processes", {"cmd": "true"})
        fd = odd(c, what)
        assert fd >= 0
        good = [c.pipe(), c.pipe()]
        c.answer(STARTED, [good[0][1], good[1][0], fd])
        until(lambda: len(daemon.log("cell_refused")) > before, at_most(2), "a cell that is refused")
        is_served(daemon)
        c.p.over = True
    until(lambda: c.pid not in daemon.cells(), 10, "the end of the cell")
    stopped_by("descriptors are checked when they arrive")


@quick
def test_a_socket_that_lingers(daemon, stopped_by):
    """The last close of a socket waits for its peer to read, as long as SO_LINGER requires."""
    with Pid1(daemon) as c:
        assert daemon.request("POST", f"/v1/sandboxes/{c.name}/ports/8000").status == 201
        s = daemon.connect()
        s.sendall((f"POST /v1/sandboxes/{c.name}/ports/8000/ HTTP/1.1\r\nHost: localhost\r\nContent-Length: {64 << 20}\r\n\r\n").encode())
        ours, theirs = c.connection()
        assert c.p.call("setsockopt", ours, socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 60), 8).ok
        c.answer(CONNECTED, [ours])
        s.settimeout(1)
        with contextlib.suppress(TimeoutError):
            for _ in range(64):
                s.sendall(bytes(1 << 20))
        landed(not select.select([], [s], [], 0.2)[1], "the connection is full")
        assert c.p.call("close", ours).ok
        s.close()
        for _ in range(3):
            is_served(daemon)
        c.p.call("close", theirs)
    stopped_by("foreign_close()")


@quick
def test_a_listening_socket_that_pid1_holds_too(daemon, stopped_by):
    """The gate accepts for all sandboxes in one thread; accept(2) waits where the socket blocks."""
    other = unique("other")
    assert daemon.request("POST", "/v1/sandboxes", {"name": other, "egress": ["a.test:4000"]}).status == 201
    try:
        with Pid1(daemon) as c:
            c.ask("PUT", "/egress", {"egress": ["a.test:4000"]})
            for kind in (socket.SOCK_DGRAM, socket.SOCK_STREAM, socket.SOCK_STREAM):  # names twice, and the port
                fd = c.p.call("socket", socket.AF_INET, kind, 0).ret
                port = 5000 + fd
                assert c.p.call("bind", fd, inet(port), 16).ok
                if kind == socket.SOCK_STREAM:
                    assert c.p.call("listen", fd, 5).ok
                c.answer(CONNECTED, [fd])
            until(lambda: daemon.request("GET", f"/v1/sandboxes/{c.name}/net", timeout=LATE).status == 200, 10, "the gate has it")
            assert c.p.call("fcntl", fd, F_SETFL, 0).ok
            s = c.p.call("socket", socket.AF_INET, socket.SOCK_STREAM, 0).ret
            assert c.p.call("connect", s, inet(port), 16).ok
            for _ in range(3):
                assert daemon.request("GET", f"/v1/sandboxes/{other}/net", timeout=LATE).status == 200
            landed(not c.flags(fd) & os.O_NONBLOCK, "the socket blocks")
    finally:
        daemon.end_session(other)
    stopped_by("a timer")
