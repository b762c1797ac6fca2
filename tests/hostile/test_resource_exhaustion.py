# SPDX-License-Identifier: Apache-2.0
"""test_resource_exhaustion.py - Using up the machine. Processes, memory, disk, descriptors.

Time and oddities are in test_processor_time.py.
"""
import contextlib
import ctypes
import fcntl
import os
import re
import time
from pathlib import Path

import pytest
from lib import (PAYLOAD_DIR, Neighbour, at_most, cell, check_limit, check_wall, control, free_disk, landed, mem_available,
                 payload, session, start)

MIB = 1 << 20
quick = pytest.mark.quick
slow = pytest.mark.slow


def nothing_left():
    """At the very moment caisson returns, before any settling: no process but the tests' own."""
    left = session().guard.members() - {os.getpid()}
    assert not left, f"processes survived the end of their cell: {left}"


# ---- processes --------------------------------------------------------------------------

FORK_PYTHON = """
import os
while True:
    try:
        os.fork()
    except OSError:
        pass
"""
FORK_BASH = "b() { b | b & }; b; while :; do b; sleep 0.01; done"

BOMBS = {
    "c": ({"payload": "fork_bomb", "args": ["fork"]}, None),
    "python": ({"code": FORK_PYTHON}, ["/usr/bin/python3", "-c", FORK_PYTHON]),
    "bash": ({"code": FORK_BASH, "lang": "bash"}, ["/bin/bash", "-c", FORK_BASH]),
}


def watch_pids(running, limit):
    """The most processes and threads that the cell's cgroup had, read from outside while it ran.

    Not pids.current, which counts a fork that the kernel is about to refuse as well."""
    most = 0
    while not running.wait(0.01):
        g = running.cgroup("pids") or running.cgroup("unified")
        if g:
            with contextlib.suppress(OSError, ValueError):
                most = max(most, int((g / "pids.peak").read_text()))
    assert limit / 2 < most <= limit + 1, f"{most} processes were seen, the limit is {limit} and init"
    return most


def beyond(limit):
    """A control run's watch: it has landed as soon as it is clearly above @limit."""
    return lambda p, group: group.pids_now() > limit * 2


@quick
@pytest.mark.parametrize("language", list(BOMBS))
def test_fork_bomb(language, stopped_by):
    how, on_host = BOMBS[language]
    c = control(on_host or [payload("fork_bomb"), "fork"], watch=beyond(64), memory=600 * MIB)
    landed(c.pids_peak > 128, c)

    run = start(**how, pids=64, timeout="1s")
    watch_pids(run, 64)
    r = run.finish()
    nothing_left()
    assert r.usage["pids_peak"] == 65, r     # 64 and init, never more
    assert "pids" in r["limits_hit"], r
    check_wall(r, 1.0, load=1.0)
    stopped_by("pids cgroup, then wall clock", second="RLIMIT_NPROC")


@quick
def test_fork_bomb_beside_neighbours(stopped_by):
    landed(control([payload("fork_bomb"), "fork"], watch=beyond(64)).pids_peak > 128, "fork")
    n = Neighbour()
    run = start(["fork"], payload="fork_bomb", pids=64, timeout=30, cpus=1)
    run.until_running(count=40)
    r = n.beside(run)
    assert r.exit == 128 + 15 and r.usage["pids_peak"] == 65 and "pids" in r["limits_hit"], r
    stopped_by("pids and cpu cgroup")


@quick
@pytest.mark.parametrize("mode", ["fork", "thread", "clone"])
def test_refused_fork_is_reported(mode, stopped_by):
    """A program that gives up at the refusal: the result names the limit, not just exit code 11."""
    landed(control([payload("fork_bomb"), mode, "once"], timeout=3).pids_denied > 0, mode)
    r = cell([mode, "once"], payload="fork_bomb", pids=32, timeout=5)
    hint = check_limit(r, "limit", "pids", 11, limit=32, peak=(32, 32))
    assert "--pids" in hint, r
    assert r.usage["pids_peak"] == 33, r
    nothing_left()
    stopped_by("pids cgroup", second="RLIMIT_NPROC")


@quick
@pytest.mark.parametrize("mode", ["thread", "clone", "vfork"])
def test_thread_bomb(mode, stopped_by):
    c = control([payload("fork_bomb"), mode], watch=beyond(64))
    landed(c.pids_peak > 128, c)
    run = start([mode], payload="fork_bomb", pids=64, timeout="700ms")
    watch_pids(run, 64)
    r = run.finish()
    nothing_left()
    assert r.usage["pids_peak"] == 65 and "pids" in r["limits_hit"], r
    check_wall(r, 0.7, load=1.0)
    stopped_by("pids cgroup: threads count", second="RLIMIT_NPROC")


@pytest.mark.parametrize("mode", [pytest.param("fork", marks=quick), pytest.param("thread", marks=slow)])
def test_fork_bomb_without_cgroup(mode, stopped_by):
    """The second layer by itself: RLIMIT_NPROC holds the number when there is no pids cgroup."""
    c = control([payload("fork_bomb"), mode], watch=beyond(48))
    landed(c.pids_peak > 96, c)
    guard = session().guard
    base, most = guard.pids_now(), 0
    run = start([mode], payload="fork_bomb", pids=48, timeout="700ms", without="cgroup")
    while not run.wait(0.01):
        most = max(most, guard.pids_now() - base)
    r = run.finish()
    assert r.status == "timeout", r
    # 48 of the guest's; caisson, warden, init, and the thread that reads caisson's output
    assert 24 < most <= 48 + 4, f"{most} processes with RLIMIT_NPROC 48"
    nothing_left()
    stopped_by("RLIMIT_NPROC (cgroup given up)")


# ---- memory -----------------------------------------------------------------------------

@quick
@pytest.mark.parametrize("mode", ["touch", "populate", "children"])
def test_memory_bomb(mode, stopped_by):
    """The whole cell dies at the limit, and the result reports it."""
    c = control([payload("fill_memory"), mode, "160"], memory=300 * MIB)
    landed(c.exit == 0 and c.memory_peak > 150 * MIB, c)

    run = start([mode, "160", "20"], payload="fill_memory", memory="64M", oom="sandbox", timeout=15)
    most = 0
    while not run.wait(0.005):
        g = run.cgroup("memory")
        if g:
            with contextlib.suppress(OSError, ValueError):
                most = max(most, int((g / "memory.usage_in_bytes").read_text()))
    r = run.finish()
    nothing_left()
    hint = check_limit(r, "limit", "memory", 137, limit=64 * MIB, peak=(60 * MIB, 64 * MIB))
    assert "--memory" in hint and "64 MiB" in hint, r
    assert most <= 64 * MIB, f"{most} bytes were charged"
    assert b"MiB" not in r.stdout, f"the program survived its memory: {r}"
    assert r.usage["wall_ns"] < 1e9 * at_most(5), f"the cell lived on after the kill: {r}"
    stopped_by("memory cgroup; the warden kills the rest of the cell")


@quick
def test_memory_bomb_is_reported_while_streaming(stopped_by):
    """Without --json: exit code 137 and one line on stderr."""
    landed(control([payload("fill_memory"), "touch", "160"]).exit == 0, "touch")
    r = cell(["touch", "160"], payload="fill_memory", memory="64M", json_result=False)
    assert r.exit == 137, r
    assert re.fullmatch(rb"caisson: out of memory: [^\n]*--memory[^\n]*\n", r.stderr), r
    stopped_by("memory cgroup")


# Pipes: the kernel gives an ordinary user 64 MiB of large ones, so stay below that.
FILLED = {"memfd": (160, 64), "sysv": (160, 64), "pipe": (60, 48), "socket": (160, 64)}


@quick
@pytest.mark.parametrize("mode", list(FILLED))
def test_memory_by_other_names(mode, stopped_by):
    """Everything a guest can fill is charged to its cell, and free again with it."""
    want, limit = FILLED[mode]
    c = control([payload("fill_memory"), mode, str(want)])
    landed(c.exit == 0 and c.memory_peak > want * MIB * 0.95, c)

    before = mem_available()
    r = cell([mode, str(want), "20"], payload="fill_memory", memory=f"{limit}M", disk="1G", oom="sandbox", timeout=15)
    nothing_left()
    check_limit(r, "limit", "memory", 137, limit=limit * MIB, peak=((limit - 4) * MIB, limit * MIB))
    assert r.usage["wall_ns"] < 1e9 * at_most(5), r
    end = time.monotonic() + at_most(2)
    while mem_available() < before - 300 * MIB and time.monotonic() < end:
        time.sleep(0.05)
    assert mem_available() >= before - 300 * MIB, "memory did not come back"
    stopped_by("memory cgroup")


@pytest.mark.parametrize("mode", [pytest.param("tmp", marks=quick), pytest.param("shm", marks=slow)])
def test_files_leave_memory_for_pid_1(mode, stopped_by):
    """Files are in memory, and the end of a process gives none of it back: they get all but an eighth."""
    landed(control([payload("fill_memory"), mode, "160"]).exit == 0, mode)
    r = cell([mode, "160", "0"], payload="fill_memory", memory="64M", disk="1G", timeout=15)
    assert (r.exit, r["limits_hit"]) == (3, []) and 50 <= int(r.stdout.split()[0]) < 56, r  # refused, and nobody was killed
    nothing_left()
    stopped_by("size of the tmpfs", second="memory cgroup")


@quick
@pytest.mark.parametrize("mode", ["touch", "children"])
def test_memory_bomb_ends_by_process(mode, stopped_by):
    """The default: the Linux kernel ends processes until the rest fits. Pid 1 is never one of them, and files stay."""
    c = control([payload("fill_memory"), mode, "160"], memory=300 * MIB)
    landed(c.exit == 0 and c.memory_peak > 150 * MIB, c)
    script = 'echo kept > f; for i in 1 2 3; do "$0" "$1" 160 1; echo "ended $?"; done; cat f'
    r = cell(["-c", script, f"{PAYLOAD_DIR}/fill_memory", mode], argv=["/bin/sh"], mount=f"{session().payloads}:{PAYLOAD_DIR}",
             memory="64M", timeout=30)
    assert r.status == "ok" and "memory" in r["limits_hit"] and r.stdout.endswith(b"kept\n"), r
    if mode != "children":
        assert r.stdout.count(b"ended 137") == 3, r
    nothing_left()
    stopped_by("memory cgroup; oom_score_adj of pid 1")


def socket_memory(protocol):
    """Memory of all sockets of that protocol on this machine, as the kernel counts it."""
    m = re.search(rf"^{protocol.upper()}:.* mem (\d+)", Path("/proc/net/sockstat").read_text(), re.M)
    return int(m[1]) * os.sysconf("SC_PAGESIZE")


@quick
@pytest.mark.parametrize("mode", ["udp", "tcp"])
def test_socket_buffers(mode, stopped_by):
    """Unread data in network sockets is bounded by the cell's memory limit as well."""
    seen = []
    for _ in range(3):  # the count is the whole machine's: others can only add to it, so one is enough
        c = control([payload("fill_memory"), mode, "160"])
        landed(c.exit == 0, c)
        time.sleep(0.1)
        base, most = socket_memory(mode), 0
        run = start([mode, "160", "1"], payload="fill_memory", memory="64M", timeout=6)
        while not run.wait(0.01):
            most = max(most, socket_memory(mode) - base)
        r = run.finish()
        nothing_left()
        seen.append(most)
        # The limit holds for sockets and for everything else each.
        if 8 * MIB < most <= 2 * 64 * MIB:
            break
    else:
        raise AssertionError(f"{[x >> 20 for x in seen]} MiB in {mode} sockets of a cell with 64 MiB: {r}")
    stopped_by("memory cgroup (socket accounting)")


# ---- disk -------------------------------------------------------------------------------

HOST_DISKS = ("/", "/tmp", "/dev/shm")


@quick
@pytest.mark.parametrize("mode", ["fallocate", "write", "small", "sparse"])
def test_disk_fill(mode, stopped_by):
    size = 32 if mode == "sparse" else 64  # a file longer than the layer is another test
    c = control([payload("fill_disk"), mode, str(size)])
    landed(c.exit == 0 and c.stdout.startswith(b"%d all" % size), c)

    before = {p: free_disk(p) for p in HOST_DISKS}
    run = start([mode, str(size)], payload="fill_disk", disk="32M", memory="256M", timeout=20)
    lowest = dict(before)
    while not run.wait(0.02):
        lowest = {p: min(lowest[p], free_disk(p)) for p in HOST_DISKS}
    r = run.finish()
    hint = check_limit(r, "limit", "disk", 28, limit=32 * MIB, peak=(31 * MIB, 32 * MIB))
    assert "--disk" in hint and "32 MiB" in hint, r
    assert r.usage["disk_used"] <= 32 * MIB, r
    for p in HOST_DISKS:
        assert lowest[p] > before[p] - 200 * MIB, f"{p} lost space while the cell wrote"
    stopped_by("tmpfs size", second="memory cgroup")


@quick
def test_file_longer_than_the_layer(stopped_by):
    """RLIMIT_FSIZE: one sparse file cannot even claim to be larger than the quota."""
    code = "import os\nfd = os.open('x', os.O_CREAT | os.O_RDWR)\nos.ftruncate(fd, 64 << 20)"
    landed(control(["/usr/bin/python3", "-c", code]).exit == 0, code)
    r = cell(code="import signal; signal.signal(signal.SIGXFSZ, signal.SIG_DFL)\n" + code, disk="32M")
    check_limit(r, "limit", "disk", 128 + 25, limit=32 * MIB)
    assert r["signal"] == "XFSZ", r
    stopped_by("RLIMIT_FSIZE")


@quick
def test_one_quota_for_all_places(stopped_by):
    """/workspace, /tmp, /var/tmp, /home/agent and /dev/shm are one layer with one limit."""
    code = """
import os, sys
for d in sys.argv[1:]:
    try:
        with open(d + '/fill', 'wb', 0) as f:
            for _ in range(64):
                f.write(b'x' * 262144)
    except OSError as e:
        print(d, e.errno)
for d in ('/', '/etc', '/usr', '/var', '/run', '/dev', '/sys', '/proc', '/home', '/mnt', '/opt'):
    try:
        open(d + '/fill', 'wb').write(b'x')
        print('WROTE', d)
    except OSError:
        pass
sys.exit(1)
"""
    places = ["/workspace", "/tmp", "/var/tmp", "/home/agent", "/dev/shm"]
    c = control(["/usr/bin/python3", "-c", code, "/tmp"])
    landed(b"/tmp" not in c.stdout, c)
    Path("/tmp/fill").unlink(missing_ok=True)
    r = cell(places, code=code, disk="32M", memory="256M")
    check_limit(r, "limit", "disk", 1, limit=32 * MIB)
    assert b"WROTE" not in r.stdout, r
    # 16 MiB fit in each of the first; together they hold one layer's worth and no more.
    assert r.usage["disk_used"] <= 32 * MIB and r.usage["memory_peak"] < 64 * MIB, r
    stopped_by("one tmpfs for all writable places", second="memory cgroup")


@quick
def test_inode_exhaustion(stopped_by):
    c = control([payload("fill_disk"), "inodes", "3000"])
    landed(c.exit == 0, c)
    inodes = os.statvfs("/").f_ffree
    r = cell(["inodes", "3000"], payload="fill_disk", inodes=1000)
    hint = check_limit(r, "limit", "inodes", 28, limit=1000, peak=(990, 1000))
    assert "--inodes" in hint and "1000" in hint, r
    assert os.statvfs("/").f_ffree > inodes - 100000
    stopped_by("tmpfs nr_inodes", second="memory cgroup")


@quick
@pytest.mark.parametrize("mode,count", [("deep", 10000), ("names", 5000)])
def test_deep_trees_and_long_names(mode, count, stopped_by):
    """The end of the cell costs little whatever the tree looks like: nothing walks it."""
    c = control([payload("fill_disk"), mode, str(count)])
    landed(c.exit == 0, c)
    r = cell([mode, str(count)], payload="fill_disk", memory="256M", timeout=20)
    assert r.status == "ok" and r.stdout == b"%d all\n" % count, r
    assert r.seconds - r.usage["wall_ns"] / 1e9 < at_most(5), f"teardown took long: {r}"
    stopped_by("nothing to stop: teardown drops the mount, no walk")


@slow
def test_million_files(stopped_by):
    landed(control([payload("fill_disk"), "inodes", "3000"]).exit == 0, "inodes")
    r = cell(["inodes", "1000000"], payload="fill_disk", memory="1G", timeout=60, outer_timeout=90)
    check_limit(r, "limit", "inodes", 28, limit=262144, peak=(262000, 262144))
    assert r.seconds - r.usage["wall_ns"] / 1e9 < at_most(5), f"teardown took long: {r}"
    stopped_by("tmpfs nr_inodes", second="memory cgroup")


# ---- descriptors ----------------------------------------------------------------------------

def file_nr():
    return int(Path("/proc/sys/fs/file-nr").read_text().split()[0])


@quick
@pytest.mark.parametrize("mode,errno_name", [("open", "EMFILE"), ("epoll", "EMFILE"),
                                             ("scm", "ETOOMANYREFS")])
def test_descriptor_exhaustion(mode, errno_name, stopped_by):
    """The limit is the process's and the user's own; the host and other cells still have theirs."""
    ask = "8000"
    c = control(["/bin/bash", "-c", 'ulimit -n 15000; exec "$@"', "x", str(payload("fill_files")), mode, ask])
    landed(c.exit == 0, c)

    before = file_nr()
    run = start([mode, ask, "1"], payload="fill_files", files=512, timeout=10, memory="256M")
    run.until_running()
    while not run.out_bytes and not run.wait(0.01):
        pass
    held = file_nr() - before
    other = cell([mode, ask], payload="fill_files", files=512, memory="256M")   # a neighbour, meanwhile
    Path("/proc/self/status").read_text()                            # the host opens files as ever
    r = run.finish()
    got, why = r.text.split()
    assert why == errno_name and int(got) <= 700, r
    assert held < 2500, f"{held} files open on the host"
    assert other.text.split()[1] == errno_name and abs(int(other.text.split()[0]) - int(got)) <= 64, \
        f"cells share a count: {other} beside {r}"
    stopped_by("RLIMIT_NOFILE" if mode != "scm" else "in-flight limit of the cell's own user")


INSTANCES = """
import ctypes, os, sys, time
libc = ctypes.CDLL(None, use_errno=True)
n = 0
while n < int(sys.argv[1]) and libc.inotify_init1(0) >= 0:
    n += 1
print(n, flush=True)
time.sleep(float(sys.argv[2]))
"""


@quick
def test_inotify_instances(stopped_by):
    """fs.inotify.max_user_instances is per user; a cell's user is its own."""
    most = int(Path("/proc/sys/fs/inotify/max_user_instances").read_text())
    c = control(["/usr/bin/python3", "-c", INSTANCES, str(most - 8), "0"])
    landed(c.exit == 0 and int(c.stdout) == most - 8, c)
    run = start([str(most + 100), "1"], code=INSTANCES, timeout=10)
    while not run.out_bytes:
        if run.wait(0.05):
            break
    other = cell([str(most + 100), "0"], code=INSTANCES)
    mine = ctypes.CDLL(None).inotify_init1(0)
    assert mine >= 0, "the host itself has no inotify instance left"
    os.close(mine)
    r = run.finish()
    assert int(r.stdout) <= most and int(other.stdout) == int(r.stdout), (r, other)
    stopped_by("fs.inotify.max_user_instances, counted for the cell's own user")


@quick
def test_inotify_watches(stopped_by):
    c = control([payload("fill_files"), "inotify", "3000"])
    landed(c.exit == 0, c)
    r = cell(["inotify", "3000"], payload="fill_files", inodes=1000, timeout=10)
    check_limit(r, "limit", "inodes", 3, limit=1000)
    stopped_by("tmpfs nr_inodes", second="memory cgroup")


@quick
def test_pipe_exhaustion(stopped_by):
    """Large pipes are counted per user; after a cell took all of its own, the host has its own."""
    c = control([payload("fill_files"), "pipes", "300"])
    landed(c.exit == 0, c)
    run = start(["pipes", "400", "1"], payload="fill_files", timeout=10, memory="256M")
    while not run.out_bytes:
        if run.wait(0.05):
            break
    a, b = os.pipe()
    try:
        assert fcntl.fcntl(b, 1031, MIB) == MIB, "the host cannot enlarge a pipe"  # F_SETPIPE_SZ
    finally:
        os.close(a)
        os.close(b)
    code = "import os, fcntl; a, b = os.pipe(); print(fcntl.fcntl(b, 1031, 1 << 20))"
    other = cell(code=code)
    assert other.stdout == b"1048576\n", f"the neighbour cannot enlarge a pipe: {other}"
    assert run.finish().stdout == b"400 all\n"
    stopped_by("fs.pipe-user-pages-soft, counted for the cell's own user", second="memory cgroup")
