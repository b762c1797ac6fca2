# SPDX-License-Identifier: Apache-2.0
"""scarce_lib.py - For the tests of reliability: daemons with few resources, small disks, bystanders, a fixture.

The tests of these files have a daemon of their own each, and conftest's snapshot of the host around them.
"""
import contextlib
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from daemon_lib import Daemon
from lib import session
from cell_lib import until
from snapshot import stat_of

ENTER = 'while [ "$1" != -- ]; do echo $$ >"$1"; shift; done; shift; exec "$@"'


def spread(points, most):
    """At most @n of them, from the first to the last."""
    return points if len(points) <= most else [points[i * (len(points) - 1) // max(1, most - 1)] for i in range(most)]


def in_group(group, *argv):
    """A command line that enters the cgroups of @group before anything else. @argv: a further wrapper."""
    return ["/bin/sh", "-c", ENTER, "sh", *group.procs_files(), "--", *argv]


@contextlib.contextmanager
def group(name, pids=600, memory=1 << 30):
    """A cgroup of the guard's, for a daemon and its cells. Removed at the end, with whatever a failure left in it."""
    g = session().guard.sub(name, pids, memory)
    try:
        yield g
    finally:
        g.kill()
        for where in sorted({w for d in set(g.dirs.values()) for w, _, _ in os.walk(d)}, reverse=True):
            with contextlib.suppress(OSError):
                os.rmdir(where)
        g.remove()


@contextlib.contextmanager
def disk(where, options="size=1m"):
    """A small disk of its own at @where."""
    where.mkdir(parents=True, exist_ok=True)
    p = subprocess.run(["mount", "-t", "tmpfs", "-o", options + ",mode=700", "none", str(where)], capture_output=True)
    if p.returncode:
        pytest.skip(f"no tmpfs can be mounted here: {p.stderr.decode().strip()}")
    try:
        yield where
    finally:
        subprocess.run(["umount", "-l", str(where)], check=True)


def fill(where):
    """Use all of its bytes."""
    with open(where / "ballast", "wb", buffering=0) as f, contextlib.suppress(OSError):
        while True:
            f.write(bytes(4096))


def fill_inodes(where):
    """Use all of its inodes."""
    (where / "ballast").mkdir()
    with contextlib.suppress(OSError):
        for i in range(1 << 20):
            (where / "ballast" / str(i)).touch()


def free(where):
    subprocess.run(["rm", "-rf", str(where / "ballast")], check=True)


@contextlib.contextmanager
def state_dir():
    """The path of a state directory, with room for mounts in it."""
    with tempfile.TemporaryDirectory(prefix="l-", dir=session().dir) as top:
        yield Path(top) / "state"


def try_run(d, code="print(1)", **fields):
    """(status, object) of one execution with any result. An error must have the common form, and the time to retry."""
    r = d.request("POST", "/execute", {"code": code, **fields})
    if r.status != 200:
        assert r.code and r.status in (429, 503), r
        assert int(r.headers["retry-after"]) >= 1, r
    return r.status, r.json


def recovers(d, seconds=60):
    """The same process serves again."""
    until(lambda: d.request("POST", "/execute", {"code": "print(2)"}).status == 200, seconds, "a daemon that serves again")
    d.good(60)


def settled(d):
    """The daemon ends properly, and is started again on the same state: nothing was taken for damage."""
    d.stop()
    d.start()
    d.good()
    assert d.log("store_quarantined") == [], d.log("store_quarantined")


# fork() with a chosen process number (clone3, set_tid), which then waits for its end.
WITH_PID = """
import ctypes, os, sys
pid = ctypes.c_int(int(sys.argv[1]))
args = (ctypes.c_uint64 * 11)(0, 0, 0, 0, 17, 0, 0, 0, ctypes.addressof(pid), 1, 0)
got = ctypes.CDLL(None, use_errno=True).syscall(435, ctypes.byref(args), 88)
if got == 0:
    os.execv("/bin/sleep", ["bystander", "600"])
if got < 0:
    sys.exit(os.strerror(ctypes.get_errno()))
print(got, flush=True)
os.waitpid(got, 0)
"""


@contextlib.contextmanager
def bystanders(pids):
    """Processes of ours that have exactly these pids, which others had before. Yields a function: those that live."""
    parents = []
    try:
        for pid in pids:
            p = subprocess.Popen([sys.executable, "-c", WITH_PID, str(pid)], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            parents.append((pid, p))
            if p.stdout.readline().strip() != str(pid).encode():
                pytest.skip(f"a process number cannot be chosen here: {p.stderr.read().decode().strip()}")
        yield lambda: {pid for pid, _ in parents if (s := stat_of(pid)) and s[1] != "Z"}
    finally:
        for pid, p in parents:
            if p.poll() is None and (s := stat_of(pid)) and s[2] == p.pid:
                os.kill(pid, 9)
            p.wait(5)
            p.stdout.close()
            p.stderr.close()


def up_or_over(d, seconds=60):
    """Whether it listens; otherwise it has ended. The test connects only then: the Linux kernel may connect a client to itself if no server listens."""
    def decided():
        # The first of the two lines may be the one that could not be written.
        return d.p.poll() is not None or '"event":"listening"' in (log := d.log_text()) or '"event":"zygote_ready"' in log
    until(decided, seconds, "a daemon that listens or has ended")
    return d.p.poll() is None


def refuses_to_start(state, *flags, wrapper=()):
    """A start that fails: the one line with the reason."""
    d = Daemon("--pool", "1", *flags, state=state, wrapper=wrapper, wait=False)
    try:
        assert not up_or_over(d), "it started"
        assert d.p.poll() == 125, (d.p.poll(), d.log_text()[-1000:])
        line = [x for x in d.log_text().splitlines() if x.startswith("caisson serve: ")]
        assert len(line) == 1, d.log_text()[-1000:]
        return line[0]
    finally:
        d.kill()
