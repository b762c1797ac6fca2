# SPDX-License-Identifier: Apache-2.0
"""process.py - For all suites: the binary under test, free ports, and processes as /proc shows them.

The binary is $CAISSON_BIN, or $CAISSON_BUILD/caisson, or build/caisson of this tree.
"""
import contextlib
import fcntl
import os
import random
import re
import secrets
import signal
import socket
import tempfile
import threading
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def find_binary():
    if os.environ.get("CAISSON_BIN"):
        return Path(os.environ["CAISSON_BIN"]).resolve()
    build = os.environ.get("CAISSON_BUILD")
    return (Path(build) if build else ROOT / "build").resolve() / "caisson"


BIN = find_binary()
SANITIZED = BIN.exists() and b"__asan_init" in BIN.read_bytes()
REPORT = re.compile(rb"ERROR: \w+Sanitizer|runtime error: |Sanitizer:DEADLYSIGNAL")
SLOW = 4 if SANITIZED else 1  # deadlines of the tests, not of the product, are stretched by this
HANG = 60 * SLOW              # seconds after which something will never happen: a busy machine is slow, not dead
IS_ROOT = os.geteuid() == 0

# In the background (`&`, nohup) these signals are ignored, which programs inherit, and tests send them. A handler does not
# go with exec.
for sig, handler in ((signal.SIGHUP, lambda *_: None), (signal.SIGQUIT, lambda *_: None), (signal.SIGINT, signal.default_int_handler)):
    if signal.getsignal(sig) == signal.SIG_IGN:
        signal.signal(sig, handler)


def no_report(said):
    """Search for reports of a sanitizer: a program that a sanitizer ended may have been restarted unnoticed."""
    found = REPORT.search(said) if SANITIZED else None
    if found:
        report = "a sanitizer reports: %s" % said[max(found.start() - 200, 0):][:6000].decode(errors="replace")
        print(report)  # pytest shows only the first of several failures at the end of a test
        raise AssertionError(report)


def wait_until(what, seconds=60.0):
    """Poll until what() is true; return the last value either way."""
    end = time.monotonic() + seconds * SLOW
    pause = 0.001
    while True:
        v = what()
        if v or time.monotonic() >= end:
            return v
        time.sleep(pause)
        pause = min(pause * 2, 0.05)


# ---- ports ---------------------------------------------------------------------------------------


class Ports:
    """Ports that were given out, in this suite and in those that run beside it: each locks a byte of one file, until its process ends."""
    file = os.open(os.path.join(tempfile.gettempdir(), "caisson-test-ports-%d" % os.geteuid()), os.O_RDWR | os.O_CREAT, 0o600)
    mine = set()

    @classmethod
    def take(cls, port):
        try:
            fcntl.lockf(cls.file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, port)
            with socket.socket() as s:
                s.bind(("0.0.0.0", port))
        except OSError:
            return False
        cls.mine.add(port)
        return True


def free_port():
    """A port that is in use on no address, and not about to be, below those that the Linux kernel gives to outgoing connections: a client
    that connects to such a port before a server listens there may get it for its own end, and is then connected to itself."""
    while True:
        port = random.randrange(20000, 32000)
        if port not in Ports.mine and Ports.take(port):
            return port


# ---- processes -----------------------------------------------------------------------------------


def children(pid):
    """Direct children, of all threads."""
    found = []
    with contextlib.suppress(OSError):
        for tid in os.listdir("/proc/%d/task" % pid):
            found += [int(p) for p in Path("/proc/%d/task/%s/children" % (pid, tid)).read_text().split()]
    return found


def below(pid):
    """All descendants."""
    found = []
    for child in children(pid):
        found += [child, *below(child)]
    return found


COMM_MAX = 15  # the Linux kernel keeps this number of characters of a process's name


def name_of(pid):
    """The name of a process; the whole name of a program of ours with a longer name, from its first argument."""
    try:
        name = Path("/proc/%d/comm" % pid).read_text().strip()
        program = Path("/proc/%d/cmdline" % pid).read_bytes().split(b"\0")[0].decode(errors="replace").rsplit("/", 1)[-1]
    except OSError:
        return ""
    return program if len(name) == COMM_MAX and program.startswith(name) else name


def alive(pid):
    """Not ended, and not a zombie that waits for its parent."""
    try:
        return Path("/proc/%d/stat" % pid).read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def status_of(pid, tid=None):
    """/proc/PID/status as a dictionary."""
    path = "/proc/%s/task/%s/status" % (pid, tid) if tid else "/proc/%s/status" % pid
    lines = Path(path).read_text(errors="surrogateescape").splitlines()
    return {k: v.strip() for k, _, v in (line.partition(":") for line in lines)}


def space_of(pid):
    """Its pid namespace; None for a process that has ended: processes other than the test's own may have."""
    try:
        return os.readlink("/proc/%d/ns/pid" % pid)
    except OSError:
        return None


def memory_kb(pid, key="VmRSS"):
    return int(status_of(pid)[key].split()[0])


# ---- for tests -----------------------------------------------------------------------------------


def unique(prefix="t"):
    return "%s-%s" % (prefix, secrets.token_hex(4))


def call_yourself(name):
    """Python code that names its process, so that it can be found from outside (/proc is read-only in a cell)."""
    assert len(name) <= COMM_MAX
    return "assert __import__('ctypes').CDLL(None).prctl(15, %r, 0, 0, 0) == 0\n" % name.encode()


@contextlib.contextmanager
def deadline(test, seconds):
    """Interrupt a test that hangs."""
    def late(*_):
        import pytest
        pytest.fail("%s took more than %d s" % (test, seconds))  # not an OSError, which tests expect in many places

    assert threading.current_thread() is threading.main_thread()
    old = signal.signal(signal.SIGALRM, late)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, old)


class Later:
    """A call in a thread. result() waits for it and raises its exception."""

    def __init__(self, call):
        self.value = self.problem = None
        self.call = call
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def run(self):
        try:
            self.value = self.call()
        except BaseException as e:
            self.problem = e

    def done(self):
        return not self.thread.is_alive()

    def result(self, seconds=150):
        self.thread.join(seconds * SLOW)
        assert self.done(), "no answer after %d s" % seconds
        if self.problem:
            raise self.problem
        return self.value
