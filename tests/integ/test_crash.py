# SPDX-License-Identifier: Apache-2.0
"""test_crash.py - kill -9 of anything at any step: the next start leaves nothing.

Two ways to choose the moment. strace counts system calls and kills its tracee on entering the
n-th: so a program dies after each single step that it makes, and no step is missed. Random
moments find what is between programs. After each death caisson is started once more, and then no
process, cgroup (in any hierarchy), mount or record may be there.

On v2 the parent directory "caisson" goes with the last cell, and the leaf "caisson.self" stays as
long as its parent does: there the caller's own processes live.
"""
import collections
import contextlib
import fcntl
import os
import random
import re
import signal
import struct
import subprocess
import time

import pytest

from integ_lib import (Place, clean_env, copy_tree, end_process, family, leftovers, needs_program, needs_root,
                       records, run, settled, start, wait_running)
from process import BIN, HANG, SANITIZED, name_of, wait_until

pytestmark = needs_root

LOOPS = int(os.environ.get("CAISSON_CRASH_LOOPS", "60"))
SEED = int(os.environ.get("CAISSON_CRASH_SEED", "0")) or random.SystemRandom().randrange(1, 1 << 32)
RECORD_MAGIC = 0x43524331

# After these something exists, or is gone, that did not or was before.
CHANGING = {"mkdir", "mkdirat", "openat", "flock", "write", "pwrite64", "rename", "renameat", "renameat2", "ftruncate", "fsync",
            "clone", "clone3", "vfork", "fork", "sendmsg", "recvmsg", "sendto", "recvfrom", "pidfd_send_signal", "kill", "wait4",
            "waitid", "poll", "unlink", "unlinkat", "rmdir", "open_tree", "mount_setattr", "socketpair", "eventfd2",
            "epoll_ctl", "exit_group"}
# Calls of the child between clone and exec, and of init, that no other process of caisson makes.
CHILD = {"mount", "setresuid", "setresgid", "setgroups", "unshare", "fsopen", "fsconfig", "fsmount", "move_mount", "symlinkat",
         "fchownat", "pivot_root", "umount2", "sethostname", "setsid", "dup2", "close_range", "execveat", "landlock_create_ruleset",
         "landlock_restrict_self", "seccomp", "signalfd4", "statfs", "chdir"}


def next_start_leaves_nothing(state, what):
    # The Linux kernel releases a dying warden's lock a moment after its client has noticed the death.
    wait_until(lambda: not any(name_of(p) in ("caisson", "caisson-warden", "strace") for p in Place.processes()))
    r = run("exec", "--state", state, "--", "true")
    assert (r.code, r.err) == (0, b""), "after %s: %r" % (what, r)
    left = settled(state)
    assert not left, "after %s, and one more start: %s" % (what, left)
    assert not (state / "quarantine").exists(), "a sound record was taken for a damaged one after %s" % what


# ---- at every step ---------------------------------------------------------------------------------------


class Traced:
    """A copy of the programs in which one of them runs under strace."""

    def __init__(self, where, state, data, target):
        self.where, self.state, self.target = where, state, target
        caisson = copy_tree(where)
        self.argv = ["exec", "--state", str(state), "--mount", "%s:/data:rw" % data, "--", "true"]
        self.options, self.log = where / "options", where / "log"
        (where / "real").mkdir()
        for name in ("caisson-warden", "caisson-init"):
            os.rename(where / name, where / "real" / name)
        follow = "-f " if target == "child" else ""
        tracer = "exec strace -D -qq %s$(cat %s) " % (follow, self.options)
        if target == "caisson":
            os.rename(where / "real" / "caisson-warden", where / "caisson-warden")
            os.rename(where / "real" / "caisson-init", where / "caisson-init")
            self.binary, script, real = where / "start", where / "start", caisson
        else:
            self.binary, script, real = caisson, where / "caisson-warden", where / "real" / "caisson-warden"
        # LeakSanitizer traces its own process, which strace already does.
        script.write_text('#!/bin/sh\nset -f\nPATH=/usr/bin:/bin\nexport ASAN_OPTIONS=detect_leaks=0\n%s%s "$@"\n'
                          % (tracer, real))
        script.chmod(0o755)

    def go(self, options):
        self.options.write_text(options)
        return run(*self.argv, binary=self.binary, timeout=10)

    def points(self, wanted, until=None):
        """[(system call, n)]: every call of interest that an undisturbed run makes, up to the first of one kind."""
        r = self.go("-o %s" % self.log)
        assert r.code == 0, r
        wait_until(lambda: not any(name_of(p) == "strace" for p in Place.processes()))  # it writes to the end
        counts = collections.Counter()
        for line in self.log.read_text().splitlines():
            m = re.match(r"(?:(\d+) +)?(\w+)\(", line)
            if m and m.group(2) == until:
                break
            if m and m.group(2) in wanted:
                counts[m.group(1), m.group(2)] += 1
        # strace counts for each process on its own.
        most = collections.Counter()
        for (_, name), n in counts.items():
            most[name] = max(most[name], n)
        return [(name, i) for name in sorted(most) for i in range(1, most[name] + 1)]

    def kill_at(self, name, n):
        try:
            return self.go("-o /dev/null -e trace=%s -e inject=%s:signal=KILL:when=%d" % (name, name, n))
        except subprocess.TimeoutExpired:
            raise AssertionError("caisson hangs after kill -9 of %s at %s #%d; there are: %s" % (
                self.target, name, n, leftovers(self.state))) from None


def some(points):
    """All of them; a sanitized build is slower and loads libraries, so a selection is enough there."""
    return points[::len(points) // 30 + 1] if SANITIZED else points


@needs_program("strace")
@pytest.mark.parametrize("target,wanted,least", [("warden", CHANGING, 60), ("child", CHILD, 40), ("caisson", CHANGING, 15)])
def test_killed_at_every_step(tmp_path, state, target, wanted, least):
    data = tmp_path / "data"
    data.mkdir()
    t = Traced(tmp_path / "tree", state, data, target)
    points = t.points(wanted)
    assert len(points) >= least, points
    left_something = 0
    for name, n in some(points):
        r = t.kill_at(name, n)
        assert r.code in (0, 125, 137, -signal.SIGKILL), (name, n, r)
        left_something += bool(leftovers(state))
        next_start_leaves_nothing(state, "kill -9 of %s at %s #%d" % (target, name, n))
    assert list(data.iterdir()) == []
    if target == "warden":
        assert left_something > 5, "no kill left anything to sweep: the test does not reach the steps"


@needs_program("strace")
def test_killed_at_every_step_of_the_sweep(tmp_path, state):
    """The process that cleans up may die, too: the next one does the rest."""
    t = Traced(tmp_path / "tree", state, tmp_path, "warden")
    leave_a_dead_cell(state)
    sweep = t.points({"openat", "unlinkat", "flock", "write", "pread64", "rmdir", "kill", "pidfd_send_signal"}, until="recvmsg")
    assert len(sweep) >= 15, sweep
    for name, n in some(sweep):
        leave_a_dead_cell(state)
        t.kill_at(name, n)
        next_start_leaves_nothing(state, "kill -9 of the sweeping warden at %s #%d" % (name, n))


def leave_a_dead_cell(state):
    """The leftovers of a warden that was killed while its cell ran: a record and cgroups."""
    p = start("exec", "--state", state, "--", "sleep", "60")
    try:
        warden, _ = wait_running(p)
        os.kill(warden, signal.SIGKILL)
        p.wait(HANG)
    finally:
        end_process(p)
    assert records(state)


# ---- at any moment ------------------------------------------------------------------------------------------


def test_killed_at_random_moments(tmp_path, state):
    """CAISSON_CRASH_LOOPS times; CAISSON_CRASH_SEED repeats a run."""
    rng = random.Random(SEED)
    began = time.monotonic()
    for _ in range(3):
        run("exec", "--state", state, "--mount", "%s:/data:rw" % tmp_path, "--", "sleep", "0.01")
    whole = (time.monotonic() - began) / 3 * 1.2
    killed = collections.Counter()
    for i in range(LOOPS):
        victim = rng.choice(["caisson", "warden", "init"])
        p = start("exec", "--state", state, "--mount", "%s:/data:rw" % tmp_path, "--", "sleep", "0.01")
        try:
            time.sleep(rng.random() * whole)
            warden, init = family(p.pid)
            pid = {"caisson": p.pid, "warden": warden, "init": init}[victim] or warden or p.pid
            try:
                os.kill(pid, signal.SIGKILL)
                killed[victim] += 1
            except ProcessLookupError:
                pass
            code = p.wait(HANG)
        finally:
            end_process(p)
        assert code in (0, 125, 137, -signal.SIGKILL), (SEED, i, victim, code)
        next_start_leaves_nothing(state, "kill -9 of %s (seed %d, round %d)" % (victim, SEED, i))
    assert len(killed) == 3, killed


def test_everything_killed_at_once(state):
    p = start("exec", "--state", state, "--", "sh", "-c", "sleep 60 & sleep 61")
    try:
        warden, init = wait_running(p)
        for pid in (p.pid, warden, init):
            os.kill(pid, signal.SIGKILL)
        p.wait(HANG)
    finally:
        end_process(p)
    next_start_leaves_nothing(state, "kill -9 of caisson, warden and init together")


def test_killed_caisson_needs_no_next_start(state):
    """The warden sees its client go, and cleans up by itself."""
    p = start("exec", "--state", state, "--", "sleep", "60")
    try:
        wait_running(p)
        p.kill()
        p.wait()
    finally:
        end_process(p)
    assert settled(state) == []


def test_many_dead_cells_are_swept_in_one_start(state):
    ps = [start("exec", "--state", state, "--", "sleep", "60") for _ in range(6)]
    try:
        wardens = [wait_running(p)[0] for p in ps]
        for w in wardens:
            os.kill(w, signal.SIGKILL)
        for p in ps:
            assert p.wait(HANG) == 125
    finally:
        for p in ps:
            end_process(p)
    assert len(records(state)) == 6
    next_start_leaves_nothing(state, "six killed wardens")


# ---- records ------------------------------------------------------------------------------------------------


def test_record_is_there_while_the_cell_is_and_names_its_cgroups(state, started):
    p = started("exec", "--state", state, "--", "sleep", "60")
    wait_running(p)
    names = records(state)
    assert len(names) == 1 and re.fullmatch(r"[0-9]{4}", names[0])
    body = (state / "cells" / names[0]).read_bytes()
    for c in Place.cgroups():
        assert str(c).encode() + b"\0" in body
    assert (state / "cells" / names[0]).stat().st_mode & 0o7777 == 0o600


def test_a_living_cell_is_never_swept(state, started):
    p = started("run", "--state", state, "import sys\nprint('up', flush=True)\nprint(input())")
    assert p.stdout.readline() == b"up\n"
    mine, cgroups = records(state), Place.cgroups()
    for _ in range(5):
        assert run("exec", "--state", state, "--", "true").code == 0
    assert records(state) == mine and Place.cgroups() == cgroups
    out, _ = p.communicate(b"alive\n", timeout=HANG)
    assert (p.returncode, out) == (0, b"alive\n")


def write_record(state, name, body):
    cells = state / "cells"
    cells.mkdir(parents=True, exist_ok=True)
    state.chmod(0o700)
    (cells / name).write_bytes(body)
    return cells / name


def make_record(*paths):
    """A record as src/cell/journal.c writes it."""
    n_paths, path_size = 6, 384
    text = b"".join(str(p).encode().ljust(path_size, b"\0") for p in paths).ljust(n_paths * path_size, b"\0")
    h = 2166136261 ^ len(paths)
    for b in text:
        h = (h ^ b) * 16777619 & 0xffffffff
    return struct.pack("IIII", RECORD_MAGIC, 16 + len(text), len(paths), h) + text


def test_a_locked_record_is_never_swept_whatever_it_holds(state):
    """The lock is the only sign of life: no pid is compared, so none can be mistaken."""
    victim = next(iter(Place.dirs.values()), None)
    body = make_record(victim / "caisson-c0001-0123456789abcdef") if victim else b"x" * 100
    path = write_record(state, "0001", body)
    if victim:
        (victim / "caisson-c0001-0123456789abcdef").mkdir()
    try:
        with open(path) as f:
            fcntl.flock(f, fcntl.LOCK_EX)
            assert run("exec", "--state", state, "--", "true").code == 0
            assert path.read_bytes() == body
            assert not victim or (victim / "caisson-c0001-0123456789abcdef").exists()
        next_start_leaves_nothing(state, "the owner of a record unlocked it")
    finally:
        if victim and (victim / "caisson-c0001-0123456789abcdef").exists():
            (victim / "caisson-c0001-0123456789abcdef").rmdir()


def test_a_short_record_was_never_committed(state):
    write_record(state, "0001", b"")
    write_record(state, "0002", make_record("/sys/fs/cgroup/pids/caisson-c0002-0123456789abcdef")[:1000])
    next_start_leaves_nothing(state, "two uncommitted records")


@pytest.mark.parametrize("damage", ["noise", "one bit", "magic", "count"])
def test_a_damaged_record_is_quarantined(state, damage):
    body = bytearray(make_record("/sys/fs/cgroup/pids/caisson-c0042-0123456789abcdef"))
    if damage == "noise":
        body = bytearray(random.Random(1).randbytes(len(body)))
    elif damage == "one bit":
        body[1000] ^= 1
    elif damage == "magic":
        body[0] ^= 1
    else:
        body[8:12] = struct.pack("I", 7)
    write_record(state, "0042", bytes(body))
    r = run("exec", "--state", state, "--", "true")
    assert r.code == 0 and records(state) == []
    kept = list((state / "quarantine").iterdir())
    assert len(kept) == 1 and kept[0].name.startswith("0042") and kept[0].read_bytes() == bytes(body)


@pytest.mark.parametrize("where", ["plain directory", "cgroup of somebody else", "dots"])
def test_a_record_removes_only_cells(state, tmp_path, where):
    """A record that checks out, but names something that no cell ever made."""
    if where == "plain directory":
        target = tmp_path / "caisson-c0001-0123456789abcdef"
    elif where == "dots":
        target = tmp_path / "x" / ".." / "caisson-c0001-0123456789abcdef"
        (tmp_path / "x").mkdir()
    else:
        if not Place.dirs:
            pytest.skip("no cgroup of our own on this machine")
        target = next(iter(Place.dirs.values())) / "precious"
    target.mkdir()
    try:
        path = write_record(state, "0001", make_record(target))
        assert run("exec", "--state", state, "--", "true").code == 0
        assert target.is_dir()
        path.unlink(missing_ok=True)
    finally:
        target.rmdir()


def test_odd_things_in_the_journal_do_no_harm(state):
    cells = state / "cells"
    cells.mkdir(parents=True)
    state.chmod(0o700)
    os.mkfifo(cells / "0003")
    (cells / "0004").mkdir()
    (cells / "0005").symlink_to("/etc/passwd")
    r = run("exec", "--state", state, "--", "true")
    assert r.code == 0 and r.seconds < HANG, r
    assert os.path.exists("/etc/passwd")


def test_slot_that_is_taken_is_not_used(state):
    """4096 slots, all but a few locked by others: the cell finds a free one, and reports when all are taken."""
    cells = state / "cells"
    cells.mkdir(parents=True)
    state.chmod(0o700)
    lockers = []
    for i in range(4096):
        (cells / ("%04d" % i)).touch()
    script = ("import fcntl, os, sys\n"
              "os.chdir(sys.argv[1])\n"
              "import resource; resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)\n"
              "fds = [os.open('%04d' % i, os.O_RDONLY) for i in range(4096)]\n"
              "for fd in fds: fcntl.flock(fd, fcntl.LOCK_EX)\n"
              "print('locked', flush=True); sys.stdin.read()\n")
    p = subprocess.Popen(["/usr/bin/python3", "-c", script, str(cells)], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    lockers.append(p)
    try:
        if p.stdout.readline() != b"locked\n":
            pytest.skip("not allowed to open 4096 files")
        r = run("exec", "--state", state, "--", "true")
        assert r.code == 125 and "4096 cells exist already" in r.lines()[0], r
        for i in range(1234, 1254):  # others on this machine may have the ids of a few
            (cells / str(i)).unlink()
        assert run("exec", "--state", state, "--", "true").code == 0
    finally:
        end_process(p)
    next_start_leaves_nothing(state, "4076 dead slots")


@needs_root
def test_two_state_directories_never_share_host_ids(tmp_path):
    """A slot of the journal chooses a cell's host ids, and journals know nothing of each other. Of both, the same few slots are
    free: the second cell gets another range than the first, for as long as that one lives."""
    free = range(2000, 2020)
    lock = tmp_path / "lock"
    lock.touch()
    states = [tmp_path / "a", tmp_path / "b"]
    with open(lock, "rb") as held, contextlib.ExitStack() as runs:
        fcntl.flock(held, fcntl.LOCK_EX)
        maps = []
        for state in states:
            (state / "cells").mkdir(parents=True)
            state.chmod(0o700)
            for i in set(range(4096)) - set(free):  # one inode with many names: one lock for all of them
                os.link(lock, state / "cells" / ("%04d" % i))
            p = subprocess.Popen([str(BIN), "exec", "--state", str(state), "--", "sh", "-c", "cat /proc/self/uid_map; read x"],
                                 stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=clean_env())
            runs.callback(end_process, p)
            maps.append(int(p.stdout.readline().split()[1]))
        first, second = ((m - 0x70000000) // 65536 for m in maps)
        assert first in free and second in free, (first, second)
        assert first != second, "two cells have the same host ids"

