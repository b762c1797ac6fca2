# SPDX-License-Identifier: Apache-2.0
"""test_proc.py - The part of /proc that a cell can read: files that docs/threat-model.md lists, and no count of others' activity in /proc/sys.

A file of a newer kernel is in no list: the test fails, and a person decides.
"""
import contextlib
import os
import pty
import re
import tempfile
from pathlib import Path

import pytest

from lib import ROOT, cell, landed
from cell_lib import Held, host, read, user_cell

quick = pytest.mark.quick
BOTH = pytest.mark.parametrize("as_user", [False, True], ids=["root", "user"])

# Programs need it: about the cell (cpuinfo, loadavg, meminfo, stat, uptime), or about the machine, and then it never changes.
VISIBLE = set("""consoles cpuinfo devices dma execdomains fb filesystems loadavg meminfo misc mtrr stat uptime version""".split())
# Of the cell's own ipc namespace.
OWN = {"sysvipc/msg", "sysvipc/sem", "sysvipc/shm"}

# In /proc/sys: values that change by themselves. Random by design; the cell's own last pid.
CHANGES = {"kernel/random/uuid", "kernel/random/entropy_avail", "kernel/ns_last_pid"}


def run(as_user, **how):
    return user_cell(**how) if as_user else cell(**how)


@quick
def test_documents_name_them():
    """Each that is visible is in the threat model's list."""
    text = (ROOT / "docs/threat-model.md").read_text()
    assert VISIBLE <= set(re.findall(r"`([a-z-]+)`", text)), VISIBLE - set(re.findall(r"`([a-z-]+)`", text))


@quick
@BOTH
def test_files_at_the_top(as_user, stopped_by):
    """The readable files of /proc with content are the listed ones; on the host there are more."""
    def tops(text):
        found = {x.split("/proc/", 1)[1] for x in text.splitlines() if x.startswith("OPEN /proc/")}
        return {x for x in found if not re.match(r"(\d+|self|thread-self|sys|net)/", x)}

    r = run(as_user, args=["r", "/proc"], payload="open_all", capture=400000)
    seen = tops(r.text)
    assert r.status == "ok" and {"meminfo", "stat", "version"} <= seen, r
    assert seen <= VISIBLE | OWN, f"not in the declared list: {sorted(seen - VISIBLE - OWN)}"
    landed("locks" in os.listdir("/proc") and len(seen) < len([x for x in os.listdir("/proc") if not x.isdigit()]), "the host shows more")
    stopped_by("masked /proc")


@quick
@BOTH
def test_locks_of_others(as_user, stopped_by):
    """A lock of an open file has no process, so the kernel shows it in every pid namespace: used as a channel between cells."""
    look = "print(open('/proc/locks').read(), end='')"
    lock = "import fcntl, struct; fcntl.fcntl(f, 37, struct.pack('hhqqi4x', fcntl.F_WRLCK, 0, 0, 0, 0))"  # F_OFD_SETLK
    hold = f"import os, sys\nf = open('/tmp/x', 'w'); {lock}; print(os.fstat(f.fileno()).st_ino, 'ready', flush=True); sys.stdin.read()"
    with tempfile.TemporaryFile() as f, Held(code=hold) as h:
        exec(lock)  # the host has one as well
        inodes = [str(os.fstat(f.fileno()).st_ino), h.text.split()[0]]
        shown = host(["/usr/bin/python3", "-c", look]).stdout.decode()  # in a pid namespace of its own
        landed(all(f":{i} " in shown for i in inodes), shown)
        r = run(as_user, code=look)
        assert r.status == "ok" and r.stdout == b"", f"locks of others: {r}"
    stopped_by("masked /proc")


READ_ALL = """
import os, sys
def all_of_it():
    found = {}
    for d, _, files in os.walk('/proc/sys'):
        for f in files:
            try: found[os.path.join(d, f)[10:]] = os.read(os.open(os.path.join(d, f), os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), 4096)
            except OSError: pass
            os.closerange(3, 1000)
    return found
before = all_of_it()
print('ready', flush=True); sys.stdin.readline()
after = all_of_it()
print('read', len(before))
for name in sorted(before | after):
    if before.get(name) != after.get(name): print('changed', name)
print('over', flush=True)
"""


@contextlib.contextmanager
def busy_host():
    """Something of everything that is counted."""
    with contextlib.ExitStack() as stack:
        for fd in [x for _ in range(20) for x in pty.openpty()] + [x for _ in range(300) for x in os.pipe()]:
            stack.callback(os.close, fd)
        d = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        for i in range(500):
            (d / f"f{i}").write_text("x")
        os.sync()
        yield


@quick
@BOTH
def test_no_count_of_others_in_sys(as_user, stopped_by):
    """Acts of the host meanwhile (it opens files and terminals, and makes inodes) change nothing that a cell reads in /proc/sys."""
    files, ptys = read("/proc/sys/fs/file-nr"), read("/proc/sys/kernel/pty/nr")
    with Held(code=READ_ALL, as_user=as_user, without="cgroup" if as_user else None) as h, busy_host():
        landed(read("/proc/sys/fs/file-nr") != files and read("/proc/sys/kernel/pty/nr") != ptys, "the host's counts have changed")
        h.say()
        text = h.finish().stdout.decode()
    assert int(re.search(r"^read (\d+)", text, re.M)[1]) > 300 and "over" in text, text
    assert set(re.findall(r"^changed (.*)", text, re.M)) <= CHANGES, text
    stopped_by("masked /proc/sys")


LOOK = """
import sys
def look():
    text = {n: open('/proc/' + n).read().split() for n in ('meminfo', 'stat', 'loadavg')}
    return (*(int(text['meminfo'][text['meminfo'].index(k) + 1]) for k in ('MemTotal:', 'MemFree:')), sum(map(int, text['stat'][1:4])), float(text['loadavg'][0]))
before = look()
print('ready', flush=True); sys.stdin.readline()
print('seen', *before, *look(), flush=True)
"""


def host_use():
    memory = dict(re.findall(r"^(\w+):\s+(\d+)", read("/proc/meminfo"), re.M))
    return int(memory["MemTotal"]), sum(map(int, read("/proc/stat").split()[1:4]))


@quick
@BOTH
def test_nothing_of_the_machine_changes(as_user, stopped_by):
    """The host allocates and computes: memory, times and load that a cell reads are its own."""
    total, ticks = host_use()
    with Held(code=LOOK, as_user=as_user, without="cgroup" if as_user else None) as h:
        block, end = bytearray(400 << 20), os.times().user + 0.5
        while os.times().user < end:
            pass
        now_ticks = host_use()[1]
        landed(total != 512 << 10 and now_ticks - ticks > 30, f"{total} {ticks} {now_ticks}")
        h.say()
        words = re.search(r"^seen (.*)", h.finish().stdout.decode(), re.M)[1].split()
    del block
    total, free, busy, _, total_then, free_then, busy_then, load = map(float, words)
    assert total == total_then == 512 << 10 and abs(free - free_then) < 50 << 10, words
    assert 0 <= busy_then - busy < 30 and load < 1, words
    stopped_by("files of the cell over /proc")
