# SPDX-License-Identifier: Apache-2.0
"""test_syscall_faults.py - Every system call that can fail does: no crash, no leak, and the next try is well.

strace refuses the N-th call of a kind, for N = 1, 2, ...: of the warden, of the child that becomes a cell and its init (`caisson exec`
behind a wrapper), and of the daemon from its first instruction to the end of one execution. Allocations of
the front fail in test_failed_allocations.py; the programs behind it are static, and in those mmap fails instead.

`make test` tries a few of each; `make hostile` the number in SWEEP, spread over all; `make soak` (CAISSON_SWEEP=all) all of them.
"""
import collections
import os
import re
import shutil
import signal
import subprocess

import pytest
from daemon import Response
from daemon_lib import Daemon
from process import SANITIZED
from lib import CAISSON, EXACT, TRACED, host_env, landed, session
from cell_lib import until
from scarce_lib import spread, up_or_over
from snapshot import stat_of

ASKED = os.environ.get("CAISSON_SWEEP", "8" if EXACT else "2")  # points of each call; "all"
SWEEP = 10**9 if ASKED == "all" else int(ASKED)
ALL_SECONDS = 3 * 3600  # for a part of all of them, instead of conftest's bound
CRASH = re.compile(r"(killed by SIG(?!KILL|TERM|INT|PIPE)\w+|--- SIG(SEGV|ABRT|BUS|FPE|ILL|SYS) )")
quick = pytest.mark.quick

# The calls that may fail, and how. Not those that the Linux kernel never refuses (close, getpid), nor those that end a process by design;
# and not brk, which fails by returning the old value: the C library takes an error number for an address.
OF_CELLS = {
    "openat": "EMFILE", "mkdir": "ENOSPC", "mkdirat": "ENOSPC", "mmap": "ENOMEM", "clone": "EAGAIN", "clone3": "EAGAIN",
    "socketpair": "EMFILE", "pipe2": "EMFILE", "sendmsg": "ENOBUFS", "recvmsg": "ENOMEM", "write": "ENOSPC", "pwrite64": "ENOSPC", "read": "EIO",
    "pread64": "EIO", "fstat": "ENOMEM", "newfstatat": "ENOMEM", "flock": "ENOLCK", "fsync": "EIO", "fdatasync": "EIO", "ftruncate": "EIO",
    "renameat2": "ENOSPC", "epoll_create1": "EMFILE", "epoll_ctl": "ENOMEM", "timerfd_create": "EMFILE", "eventfd2": "EMFILE",
    "signalfd4": "EMFILE", "memfd_create": "ENFILE", "fcntl": "EMFILE", "prctl": "EINVAL", "unshare": "ENOSPC", "mount": "ENOMEM",
    "fsopen": "ENOMEM", "fsconfig": "ENOMEM", "fsmount": "EMFILE", "move_mount": "ENOMEM", "open_tree": "EMFILE", "mount_setattr": "EPERM",
    "pivot_root": "EINVAL", "sethostname": "EPERM", "setresuid": "EAGAIN", "setresgid": "EPERM", "setgroups": "ENOMEM", "seccomp": "ENOMEM",
    "landlock_create_ruleset": "EMFILE", "landlock_restrict_self": "E2BIG", "capset": "EPERM", "execveat": "ENOMEM", "pidfd_open": "EMFILE",
    "pidfd_send_signal": "EPERM", "setrlimit": "EPERM", "prlimit64": "EPERM", "symlinkat": "ENOSPC", "fchmodat": "EROFS", "fchownat": "EROFS",
    "umount2": "EBUSY", "mknodat": "EPERM", "socket": "EMFILE", "ioctl": "ENODEV", "keyctl": "EDQUOT", "statfs": "EIO",
}
OF_THE_DAEMON = {
    "openat": "EMFILE", "mmap": "ENOMEM", "socket": "EMFILE", "bind": "EACCES", "listen": "EADDRINUSE", "accept4": "EMFILE",
    "epoll_create1": "EMFILE", "epoll_ctl": "ENOMEM", "signalfd4": "EMFILE", "pipe2": "EMFILE", "memfd_create": "ENFILE", "sendmsg": "ENOBUFS",
    "recvmsg": "ENOMEM", "write": "ENOSPC", "pwrite64": "ENOSPC", "read": "EIO", "pread64": "EIO", "fdatasync": "EIO", "fstat": "ENOMEM",
    "newfstatat": "ENOMEM", "flock": "ENOLCK", "fcntl": "EMFILE", "mkdirat": "ENOSPC", "renameat2": "ENOSPC", "ftruncate": "EIO", "fchown": "EPERM",
    "fchmod": "EROFS", "prctl": "EINVAL", "seccomp": "ENOMEM", "landlock_restrict_self": "E2BIG", "setresuid": "EAGAIN", "capset": "EPERM",
    "clone": "EAGAIN", "clone3": "EAGAIN", "vfork": "EAGAIN", "recvfrom": "ENOMEM", "sendto": "ENOBUFS", "writev": "ENOBUFS",
    "setsockopt": "ENOMEM", "getsockname": "ENOBUFS", "socketpair": "EMFILE", "epoll_wait": "EINTR", "poll": "EINTR",
}


# The calls of a sanitizer itself, which ends when they are refused; and of its loader, in cells whose programs are otherwise static.
RUNTIME = {"mmap"} if SANITIZED else set()
LOADER = RUNTIME | {"read", "pread64", "openat", "fstat", "newfstatat"} if SANITIZED else set()


@pytest.fixture(scope="module", autouse=True)
def strace():
    if not shutil.which("strace"):
        pytest.skip("no strace here (apt-get install strace)")
    p = subprocess.run(["strace", "-qq", "-o", "/dev/null", "true"], capture_output=True)
    if p.returncode:
        pytest.skip(f"nothing may be traced here: {p.stderr.decode().strip()}")


def counted(log):
    """{system call: the most that one process made}. strace counts for each process on its own."""
    counts = collections.Counter()
    for line in log.splitlines():
        m = re.match(r"(?:(\d+) +)?(\w+)\(", line)
        if m:
            counts[m[1], m[2]] += 1
    most = collections.Counter()
    for (_, name), n in counts.items():
        most[name] = max(most[name], n)
    return most


# ---- warden, cell and init ---------------------------------------------------------------------------------------------------

class Cell:
    """`caisson exec` from a copy of the programs, whose warden, with all its children, is traced."""

    def __init__(self):
        self.dir = session().dir / "traced"
        self.options, self.log = self.dir / "options", self.dir / "log"
        if not self.dir.exists():
            (self.dir / "real").mkdir(parents=True)
            for name in ("caisson", "caisson-warden", "caisson-init"):
                shutil.copy(CAISSON.parent / name, self.dir / ("real" if name != "caisson" else ".") / name)
            script = self.dir / "caisson-warden"
            script.write_text(f"#!/bin/sh\nset -f\nPATH=/usr/bin:/bin\nexport ASAN_OPTIONS={TRACED}\nexec strace -D -f -qq $(cat {self.options}) {self.dir}/real/caisson-warden \"$@\"\n")
            script.chmod(0o755)

    def run(self, options):
        self.options.write_text(f"-o {self.log} {options}")
        self.log.write_text("")
        p = subprocess.run([str(self.dir / "caisson"), "exec", "--", "/bin/echo", "whole"], env=host_env(), capture_output=True, timeout=40,
                           stdin=subprocess.DEVNULL)
        until(lambda: not any((s := stat_of(t)) and s[0] == "strace" for t in tracers()), 20, "the end of strace")
        return p, self.log.read_text(errors="replace")

    def points(self):
        p, log = self.run("")
        assert (p.returncode, p.stdout) == (0, b"whole\n"), p
        return counted(log)


def tracers():
    return session().guard.members()


def take_time():
    if SWEEP > 100:
        signal.alarm(ALL_SECONDS)


def check_cell(cell, name, error, n):
    p, log = cell.run(f"-e trace={name} -e inject={name}:error={error}:when={n}")
    what = f"{name} #{n} failed with {error}"
    assert not CRASH.search(log), f"{what}: {CRASH.search(log)[0]}"
    assert p.returncode in (0, 1, 125, 126, 127), f"{what}: {p}"
    if p.returncode == 0:
        assert p.stdout in (b"whole\n", b""), f"{what}: {p}"  # echo itself may have been told that it cannot write
    if p.returncode == 125:
        assert 1 <= len(p.stderr.decode().splitlines()) <= 3 and p.stderr.startswith(b"caisson"), f"{what}: {p}"
    again = subprocess.run([str(CAISSON), "exec", "--", "/bin/echo", "again"], env=host_env(), capture_output=True, timeout=40, stdin=subprocess.DEVNULL)
    assert (again.returncode, again.stdout, again.stderr) == (0, b"again\n", b""), f"after {what}: {again}"
    until(lambda: not list((session().state / "cells").iterdir()), 10, f"a journal without records after {what}")
    return p.returncode


def sweep_cells(names, most):
    cell, codes, tried = Cell(), collections.Counter(), 0
    counts = cell.points()
    for name in set(names) - LOADER:
        for n in spread(range(1, counts[name] + 1), most):
            codes[check_cell(cell, name, OF_CELLS[name], n)] += 1
            tried += 1
    print(f"{tried} faults of {sum(counts[x] for x in names)}: exit codes {dict(codes)}")
    return codes


@quick
def test_faults_in_a_cell_few():
    """One of each of a few."""
    codes = sweep_cells(("openat", "mount", "clone3", "write", "sendmsg"), 1)
    landed(codes[125] >= 2, f"the faults do not hit: {codes}")


@pytest.mark.parametrize("part", range(6))
def test_faults_in_a_cell(part):
    """All of them, in parts, so that none takes too long."""
    take_time()
    sweep_cells(sorted(OF_CELLS)[part::6], SWEEP)


# ---- the keeper, and the front ------------------------------------------------------------------------------------------------

class Traced:
    """A daemon with one traced process: the keeper, by its parent; the front, by a script in its place."""

    def __init__(self, who):
        self.who, self.log, self.caisson = who, session().dir / f"{who}-trace", CAISSON
        if who == "front":
            self.dir = session().dir / "traced-front"
            self.options, self.caisson = self.dir / "options", self.dir / "caisson"
            if not self.dir.exists():
                (self.dir / "real").mkdir(parents=True)
                (self.dir / "real" / "guest").symlink_to(CAISSON.parent / "guest")
                for f in CAISSON.parent.glob("caisson*"):
                    if f.is_file():
                        shutil.copy(f, self.dir / ("." if f.name in ("caisson", "caisson-keeper") else "real"))
                script = self.dir / "caisson-front"
                script.write_text(f"#!/bin/sh\nset -f\nexport ASAN_OPTIONS={TRACED}\nexec /usr/bin/strace $(/bin/cat {self.options}) {self.dir}/real/caisson-front \"$@\"\n")
                script.chmod(0o755)

    def daemon(self, *inject, **more):
        """The N-th call of every front fails, of those after the first too."""
        trace = ["-D", "-qq", "-A", "-o", str(self.log), *inject]
        self.log.write_text("")
        if self.who == "front":
            self.options.write_text(" ".join(trace))
        return Daemon("--pool", "1", caisson=self.caisson, wrapper=["strace", *trace] if self.who == "keeper" else (), env={"ASAN_OPTIONS": TRACED}, **more)

    def points(self, state):
        """Its calls, from its start to its end with an execution in between; and those of the dynamic loader."""
        with self.daemon(state=state) as d:
            assert ask(d).status == 200
        text = self.log.read_text(errors="replace")
        start = text.rindex("\nexecve(") if "\nexecve(" in text else 0
        # The loader's calls before main() are its own: it ends by itself, one way or the other.
        begin = re.search(r"prlimit64\(0, RLIMIT_STACK.*\n.*\n", text[start:])
        return counted(text), counted(text[:start + begin.end()])


def ask(d, code="print(6 * 7)"):
    """One execution; status 0 when the connection was cut."""
    try:
        return d.request("POST", "/execute", {"code": code}, timeout=60)
    except (OSError, ValueError):
        return Response(0, {}, b"")
    except Exception as e:  # http.client's own
        return Response(0, {}, repr(e).encode())


def check_answer(r, what):
    if r.status == 200:
        assert r.json["stdout"] == "42\n" or not r.json["success"], f"{what}: {r}"
    elif r.status:
        assert r.code and r.status in (429, 500, 503), f"{what}: {r}"


def alive_or_over(d, what):
    """True while it serves; False when it ended properly, with a message."""
    code = d.p.poll()
    if code is None:
        return True
    assert code == 125, f"{what}: ended with {code}: {d.log_text()[-800:]}"
    assert "caisson serve: " in d.log_text() or '"level":"error"' in d.log_text(), f"{what}: no message: {d.log_text()[-800:]}"
    return False


# The Linux kernel changes and removes what epoll watches without any memory: these calls fail only for a descriptor that is not watched.
IMPOSSIBLE = re.compile(r"EPOLL_CTL_(DEL|MOD).*\(INJECTED\)")


def check_daemon(traced, state, name, error, n):
    """A daemon whose N-th call fails, from its start to the end of an execution, and its end. Returns the outcome as a word."""
    try:
        return judge_daemon(traced, state, name, error, n)
    except AssertionError:
        if IMPOSSIBLE.search(traced.log.read_text(errors="replace")):
            return "impossible"
        raise


def judge_daemon(traced, state, name, error, n):
    what = f"{name} #{n} of the {traced.who} failed with {error}"
    d = traced.daemon("-e", f"trace={name}", "-e", f"inject={name}:error={error}:when={n}", state=state, wait=False)
    try:
        if not up_or_over(d):
            return "refused" if not alive_or_over(d, what) else ""
        check_answer(ask(d), what)
        if alive_or_over(d, what):
            until(lambda: ask(d).status == 200 or not alive_or_over(d, what), 30, f"an execution that is well after {what}")
        if not alive_or_over(d, what):
            return "ended"
        d.p.terminate()
        assert d.p.wait(40) in (0, 125), f"{what}: ended with {d.p.returncode}: {d.log_text()[-800:]}"
        return "served"
    finally:
        text = traced.log.read_text(errors="replace")
        d.kill()
        assert not CRASH.search(text), f"{what}: {CRASH.search(text)[0]}"


def sweep_daemon(who, names, most):
    traced, state, went = Traced(who), session().dir / "fault-state", collections.Counter()
    counts, loader = traced.points(state)
    for name in set(names) - RUNTIME:
        for n in spread(range(loader[name] + 1, counts[name] + 1), most):
            went[check_daemon(traced, state, name, OF_THE_DAEMON[name], n)] += 1
    with Daemon("--pool", "1", state=state) as d:
        d.good()
        assert d.log("store_quarantined") == []
    print(f"faults of {sum(counts[x] for x in names)}: {dict(went)}")
    shutil.rmtree(state)
    return went


@quick
@pytest.mark.parametrize("who", ["keeper", "front"])
def test_faults_in_the_daemon_few(who):
    went = sweep_daemon(who, ("openat", "signalfd4"), 1)
    landed(went["refused"] + went["ended"] >= 1, f"the faults do not hit: {went}")


@pytest.mark.parametrize("who", ["keeper", "front"])
@pytest.mark.parametrize("part", range(8))
def test_faults_in_the_daemon(who, part):
    take_time()
    sweep_daemon(who, sorted(OF_THE_DAEMON)[part::8], SWEEP)
