# SPDX-License-Identifier: Apache-2.0
"""test_counters.py - Counts that the kernel keeps per user or for the whole machine: no cell takes another's part, nor the host's.

One program (payloads/drain.c) takes as many as there are of one thing, in one cell or in several, and keeps them. That it was
stopped by a limit, and at which, shows that it took its part; that a neighbour's cell and the host still get theirs is the verdict.
The rows are those of the table in docs/threat-model.md ("Counters").
"""
import contextlib
import os
import re
import socket
import threading
import time
from pathlib import Path

import pytest

from guard import mounts
from lib import cell, landed, payload
from cell_lib import USER, Held, host, own_paths, read, said, user_cell

quick = pytest.mark.quick
MIB = 1 << 20
V1 = "memory" in mounts()
PTYS = 32          # of one cell: src/cell/plan.h
QUEUES = 2         # message queues of the default size in RLIMIT_MSGQUEUE: src/cell/rlimit.c
SOCKETS = 64 * MIB  # buffers of one cell's sockets, cgroup v1: src/cell/cgroup_v1.c
LEAST = 100 << 10  # the Linux kernel gives each connection this in any case: one segment in flight


def limit(name):
    return int(read(f"/proc/sys/{name}").split()[-1])


def taken(text, what):
    """How many of them the program got, and the error of the next one."""
    return said(text)[what]


@contextlib.contextmanager
def drained(what, most, cells=1, **opts):
    """Cells that hold all they get of it, up to @most each. Returns the number that each has got."""
    with contextlib.ExitStack() as stack:
        held = [stack.enter_context(Held([what, str(most)], payload="drain", **opts)) for _ in range(cells)]
        yield [taken(h.text, what) for h in held]


def neighbour(what, count, **opts):
    """The number that another cell gets meanwhile, of as many as it asks for."""
    r = cell([what, str(count)], payload="drain", json_result=False, **opts)
    return taken(r.stdout, what)[0]


def on_host(what, count, uid=0):
    """The number that a process outside of all cells gets."""
    return taken(host([payload("drain"), what, str(count)], uid=uid, unshare=()).stdout, what)[0]


# ---- charged to the maker of the user namespace ------------------------------------------------------------------------

@quick
def test_inotify_instances(stopped_by):
    """Nine cells take all they get, which is more than one user may have; root, a user and a tenth cell still have theirs."""
    whole = limit("user/max_inotify_instances")
    cap, cells = whole // 8, 9
    landed(on_host("inotify", whole + 1, uid=USER) == whole, "an account has an end")
    with drained("inotify", whole + 1, cells) as got:
        assert got == [(cap, "EMFILE")] * cells and cap * cells > whole, got
        assert neighbour("inotify", cap) == cap
        assert on_host("inotify", whole - 20) == whole - 20, "root is left without inotify"
        assert on_host("inotify", whole, uid=USER) == whole
    stopped_by("user.max_inotify_instances of the cell", "a maker of its own for each cell")


@quick
def test_inotify_watches(stopped_by):
    cap = limit("user/max_inotify_watches") // 8
    with drained("watches", 2 * cap) as got:
        assert got == [(cap, "ENOSPC")], got
        assert neighbour("watches", 2000) == 2000
    stopped_by("user.max_inotify_watches of the cell")


@quick
def test_message_queues(stopped_by):
    """The limit of bytes in POSIX message queues is per user: five cells would have taken root's whole account."""
    cells = 5
    landed(on_host("mqueue", 64, uid=USER) >= QUEUES, "queues can be made")
    before = on_host("mqueue", 64)
    with drained("mqueue", 64, cells) as got:
        assert got == [(QUEUES, "EMFILE")] * cells, got
        assert neighbour("mqueue", QUEUES) == QUEUES
        assert on_host("mqueue", 64) == before, "root's account is charged for cells"
    stopped_by("RLIMIT_MSGQUEUE", "a maker of its own for each cell")


def queued():
    """Signals queued on root's account, as the kernel shows it to each process of root."""
    return int(re.search(r"^SigQ:\s*(\d+)/", read("/proc/self/status"), re.M)[1])


@quick
@pytest.mark.parametrize("what", ["signals", "timers"])
def test_queued_signals(what, stopped_by):
    """Each timer has a signal in stock, so both are one count."""
    before = queued()
    with drained(what, 100000, 2) as got:
        assert got == [(1024, "EAGAIN")] * 2, got
        assert neighbour(what, 1024) == 1024
        assert queued() < before + 512, f"root's account is charged for cells: {before} became {queued()}"
    stopped_by("RLIMIT_SIGPENDING", "a maker of its own for each cell")


@quick
def test_locked_memory(stopped_by):
    with drained("memlock", 10000) as got:
        assert got == [(16, "ENOMEM")], got
        assert neighbour("memlock", 16) == 16
    stopped_by("RLIMIT_MEMLOCK")


# ---- of the whole machine ----------------------------------------------------------------------------------------------

@quick
def test_ptys(stopped_by):
    """One cell took all terminals for cells; the next got none."""
    with drained("pty", 3500, files=4000) as got:
        assert got == [(PTYS, "ENOSPC")], got
        assert neighbour("pty", PTYS) == PTYS
        assert on_host("pty", 100) == 100
    stopped_by("max= of each cell's devpts")


@pytest.mark.slow
def test_ptys_of_many_cells(stopped_by):
    """All terminals that cells can have together, without the Linux kernel's reserve: the host keeps the reserve, later cells get none."""
    cells = (limit("kernel/pty/max") - limit("kernel/pty/reserve")) // PTYS + 1
    with drained("pty", 100, cells) as got:
        assert got[0] == (PTYS, "ENOSPC") and sum(n for n, _ in got) > (cells - 2) * PTYS, got
        assert neighbour("pty", 1) == 0, "documented: kernel.pty.max is one for all cells"
        assert on_host("pty", 200) == 200, "the host has lost its reserve"
    stopped_by("kernel.pty.reserve")


def file_count():
    return int(read("/proc/sys/fs/file-nr").split()[0])


@quick
def test_open_files(stopped_by):
    """fs.file-max is the machine's; a cell has at most --pids times --files of them, and pays for each in memory."""
    before = file_count()
    with drained("files", 1000, pids=16, files=512) as got:
        assert 10 <= got[0][0] <= 16 and got[0][1] == "EAGAIN", got
        rise = file_count() - before
        landed(rise > 4000, f"files were opened: {rise}")
        assert rise < 17 * 512 + 4000, f"{rise} files are open more than before"
        assert neighbour("files", 3) == 3 and on_host("files", 3) == 3
    r = cell(["files", "1000"], payload="drain", pids=512, files=100000, memory="32M")
    assert r.status == "limit" and r.kind == "memory", r
    stopped_by("pids cgroup and RLIMIT_NOFILE", "memory cgroup")


def sockets():
    """Pages of TCP buffers, and orphaned connections: both are counted for the whole machine."""
    orphans, pages = re.search(r"^TCP:.* orphan (\d+) .* mem (\d+)", read("/proc/net/sockstat"), re.M).groups()
    return int(orphans), int(pages) * os.sysconf("SC_PAGESIZE")


def exchange(size):
    """A connection of the host carries @size bytes while the cell holds its own."""
    with socket.create_server(("127.0.0.1", 0)) as s:
        def serve():
            c, _ = s.accept()
            with c:
                c.sendall(b"x" * size)
        threading.Thread(target=serve, daemon=True).start()
        with socket.create_connection(s.getsockname(), timeout=10) as c:
            got = 0
            while more := c.recv(1 << 16):
                got += len(more)
    return got


@quick
def test_tcp_buffers_and_orphans(stopped_by):
    """tcp_mem and tcp_max_orphans are the machine's. Closed connections that are still full are both."""
    orphans, memory = sockets()
    with Held(["orphans", "2000"], payload="drain", memory="256M", files=8000, timeout=30) as h:
        got = taken(h.text, "orphans")[0]
        time.sleep(0.1)
        more, used = (now - then for now, then in zip(sockets(), (orphans, memory)))
        if V1:  # the amount that is charged to the cell; the machine's count includes the neighbours' buffers
            group = Path(mounts()["memory"] + own_paths(h.init)["memory"])
            used = int(read(group / "memory.kmem.tcp.usage_in_bytes"))
        landed(got > 500 and more > 100 and used > 10 * MIB, (got, more, used))
        bound = (SOCKETS if V1 else 256 * MIB) + got * LEAST
        assert used < bound, f"{used / MIB:.0f} MiB of TCP buffers in one cell"
        assert more < limit("net/ipv4/tcp_max_orphans") / 8, f"{more} orphans of one cell"
        assert exchange(4 * MIB) == 4 * MIB
    stopped_by("memory cgroup: socket buffers")


# ---- per user, and a cell's users are its own ----------------------------------------------------------------------------

@quick
@pytest.mark.parametrize("what, most, has, error", [("pipes", 400, 64, "EPERM"), ("inflight", 5000, 1025, "ETOOMANYREFS"), ("epoll", 5000, 5000, "-")])
def test_per_user(what, most, has, error, stopped_by):
    """Pages of pipes, descriptors on their way, epoll watches: of a host user that no other cell has."""
    with drained(what, most) as got:
        assert got == [(has, error)], got
        assert neighbour(what, has) == has
        assert on_host(what, has) == has
    stopped_by("host users of its own")


# ---- per namespace, or charged as memory -----------------------------------------------------------------------------------

@quick
@pytest.mark.parametrize("what, most, has, error", [("segments", 10000, "shmmni", "ENOSPC"), ("semaphores", 50000, "sem", "ENOSPC")])
def test_per_ipc_namespace(what, most, has, error, stopped_by):
    has = limit(f"kernel/{has}")
    with drained(what, most) as got:
        assert got == [(has, error)], got
        assert neighbour(what, 1000) == 1000
    stopped_by("ipc namespace")


@quick
def test_file_locks(stopped_by):
    """They have no counter; each takes memory of the cell, and none is on a file of another cell."""
    with drained("locks", 2000) as got:
        assert got == [(2000, "-")], got
        assert neighbour("locks", 2000) == 2000 and on_host("locks", 2000) == 2000
    stopped_by("memory cgroup", "inodes of its own")


@quick
def test_names_that_are_not_there(stopped_by):
    """The kernel remembers names that were asked for in vain (negative dentries): memory of the cell that asked."""
    code = "import os\nfor i in range(300000): os.path.lexists('/usr/share/%d' % i + 'x' * 200)\nprint('asked')"
    before = int(re.search(r"^Slab:\s*(\d+)", read("/proc/meminfo"), re.M)[1]) * 1024
    r = cell(code=code, memory="64M", timeout=30)
    after = int(re.search(r"^Slab:\s*(\d+)", read("/proc/meminfo"), re.M)[1]) * 1024
    # The kernel gives the memory back in time, or the cell meets its own limit: either way it is the cell's.
    assert r.status == "ok" and r.text == "asked\n" or (r.status, r.kind) == ("limit", "memory"), r
    landed(r.usage["memory_peak"] > 40 * MIB, r)
    assert after - before < 2 * 64 * MIB, f"{(after - before) / MIB:.0f} MiB of kernel memory more than before"
    stopped_by("memory cgroup: kernel memory")


# ---- as an ordinary user ---------------------------------------------------------------------------------------------------

@quick
def test_as_an_ordinary_user(stopped_by):
    """The account is the caller's own; a cell has its part of it, and the caller the rest."""
    whole = limit("user/max_inotify_instances")
    with drained("inotify", whole + 1, as_user=True, without="cgroup") as got:
        assert got == [(whole // 8, "EMFILE")], got
        assert on_host("inotify", whole, uid=USER) == whole - whole // 8
    r = user_cell(["pty", "100"], payload="drain", json_result=False)
    assert taken(r.stdout, "pty") == (PTYS, "ENOSPC"), r
    stopped_by("user.max_inotify_instances of the cell; max= of devpts")
