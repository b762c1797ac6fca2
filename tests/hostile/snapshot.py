# SPDX-License-Identifier: Apache-2.0
"""snapshot.py - The state of the host before and after an attack; each difference is a leak.

Other users may use the machine meanwhile. A process, and through it a namespace, a socket or a
cgroup, counts as ours when it is inside the guard's cgroups, descends from us, carries our nonce in
its environment, or has an id of the cells' range without a warden or a cell's cgroup. Objects
without an owner (System V ipc, /dev/shm, links) must be equal as a whole; mounts are
judged in the suite's own mount namespace, which is shared so that nothing can hide in a cell's.
"""
import os
import re
import time

from guard import own_paths

NONCE_ENV = "CAISSON_HOSTILE_NONCE"
OWN_PREFIX = f"caisson-hostile-{os.getpid()}-"  # of every file we make in a place shared by all
CELL_IDS = range(0x70000000, 0x80000000)
NAMESPACES = ("cgroup", "ipc", "mnt", "net", "pid", "time", "user", "uts")

MEMORY_SLACK = 1 << 30     # MemAvailable: others compile while we test
GUARD_SLACK = 96 << 20     # charged to the guard and not a cache: ours alone
DISK_SLACK = 1 << 30
CGROUPS_SLACK = 100        # /proc/cgroups counts those of everybody
SETTLE = 20.0
KERNEL_THREAD = 0x00200000
EXITING = 0x00000004


def _read(path):
    try:
        with open(path, errors="replace") as f:
            return f.read()
    except OSError:
        return ""


def pids():
    return [int(d) for d in os.listdir("/proc") if d.isdigit()]


def stat_of(pid):
    """(comm, state, parent, start time, flags) or None."""
    m = re.match(r"\d+ \((.*)\) (\S) (\d+) (.*)", _read(f"/proc/{pid}/stat"), re.S)
    if not m:
        return None
    words = m[4].split()
    return m[1], m[2], int(m[3]), int(words[17]), int(words[4])


def uid_of(pid):
    m = re.search(r"^Uid:\t(\d+)", _read(f"/proc/{pid}/status"), re.M)
    return int(m[1]) if m else -1


def is_ours(pid, guard, known=None, again=False):
    """@known: the results of stat_of() for many processes a moment ago, so that not every parent is read once per child.
    @again: this is the second look."""
    paths = own_paths(pid)
    if any(f"/{guard.name}" in p for p in paths.values()):
        return True
    nonces = [v for v in _read(f"/proc/{pid}/environ").split("\0") if v.startswith(NONCE_ENV + "=")]
    if nonces:  # another one than ours is that of the other half of the suite
        return f"{NONCE_ENV}={os.environ[NONCE_ENV]}" in nonces
    seen, wardens = pid, 0
    while seen > 1:
        if seen == os.getpid():
            return True
        s = (known or {}).get(seen) or stat_of(seen)
        wardens += bool(s) and s[0] == "caisson-warden"
        seen = s[2] if s else 0
    # A guest that left its cgroups, and whose warden is gone; or a process of a neighbour's cell.
    if uid_of(pid) not in CELL_IDS or wardens or any("caisson" in p for p in paths.values()):
        return False
    # A process that exits has no cgroup in /proc any more (v1): in an ending cell of a neighbour, all processes are like this.
    s = stat_of(pid)
    if not s or s[4] & EXITING:
        return False
    # Between two reads a neighbour's process may have been moved, or lost its parent. One that got out does not change.
    if again:
        return True
    time.sleep(0.2)
    later = stat_of(pid)
    return bool(later) and later[3] == s[3] and is_ours(pid, guard, again=True)


def our_processes(guard):
    """{(pid, start time): 'comm state'} of everything ours."""
    found = {}
    known = {pid: s for pid in pids() if (s := stat_of(pid))}
    for pid, s in known.items():
        if not s[4] & KERNEL_THREAD and is_ours(pid, guard, known):
            found[(pid, s[3])] = f"{s[0]} ({s[1]}) child of {s[2]}, uid {uid_of(pid)}"
    return found


def namespaces_of(process_ids):
    found = set()
    for pid in process_ids:
        for ns in NAMESPACES:
            try:
                found.add(os.readlink(f"/proc/{pid}/ns/{ns}"))
            except OSError:
                pass
    return found


def listening():
    """{socket inode: description} of everything that listens in the host's network namespace."""
    found = {}
    for proto, state in (("tcp", "0A"), ("tcp6", "0A"), ("udp", "07"), ("udp6", "07")):
        for line in _read(f"/proc/net/{proto}").splitlines()[1:]:
            w = line.split()
            if w[3] == state:
                found[w[9]] = f"{proto} {w[1]}"
    for line in _read("/proc/net/unix").splitlines()[1:]:
        w = line.split()
        if w[3] == "00010000":
            found[w[6]] = "unix " + (w[7] if len(w) > 7 else "unnamed")
    return found


def _owner(inode):
    for pid in pids():
        try:
            for fd in os.listdir(f"/proc/{pid}/fd"):
                if os.readlink(f"/proc/{pid}/fd/{fd}") == f"socket:[{inode}]":
                    return pid
        except OSError:
            pass
    return 0


def _of_another_suite(name):
    """Bait that tests lay out themselves; each removes its own."""
    return name.startswith(("caisson-hostile-", "caisson-unit-", "canary-")) and not name.startswith(OWN_PREFIX)


def _shm():
    return {f for f in _entries("/dev/shm") if not _of_another_suite(os.path.basename(f))}


def _ipc():
    found = set()
    for kind in ("msg", "sem", "shm"):
        for line in _read(f"/proc/sysvipc/{kind}").splitlines()[1:]:
            found.add(kind + " " + " ".join(line.split()[:3]))
    return found


def _entries(*dirs):
    found = set()
    for d in dirs:
        try:
            found.update(f"{d}/{name}" for name in os.listdir(d))
        except OSError:
            pass
    return found


def mem_available():
    return int(re.search(r"^MemAvailable:\s+(\d+)", _read("/proc/meminfo"), re.M)[1]) * 1024


def free_disk(path):
    s = os.statvfs(path)
    return s.f_bavail * s.f_frsize


class Snapshot:
    def __init__(self, guard, state, places):
        self.guard = guard
        self.processes = our_processes(guard)
        self.namespaces = namespaces_of(p for p, _ in self.processes)
        # Ours is a namespace of our own; of the machine's, only what can be from here.
        self.mounts = sorted(_read("/proc/mounts").splitlines() +
                             [m for m in _read("/proc/1/mounts").splitlines() if OWN_PREFIX in m])
        self.cgroups = guard.children()
        self.cgroup_counts = {w[0]: int(w[2]) for w in (
            line.split() for line in _read("/proc/cgroups").splitlines()[1:])}
        self.records = _entries(f"{state}/cells", f"{state}/quarantine")
        self.ipc = _ipc()
        self.shm = _shm()
        self.links = set(os.listdir("/sys/class/net"))
        self.disks = set(os.listdir("/sys/block"))
        self.listening = listening()
        self.descriptors = sorted(os.listdir("/proc/self/fd"))
        self.tainted = _read("/proc/sys/kernel/tainted").strip()
        self.memory = mem_available()
        self.charged = guard.memory_held()
        self.disk = {p: free_disk(p) for p in places}
        self.files = _entries(*places)

    def differences(self, after):
        """Unexpected differences of @after, as a list of sentences."""
        out = []
        for what in ("processes", "namespaces", "cgroups", "records", "ipc", "shm", "links", "disks"):
            a, b = set(getattr(self, what)), set(getattr(after, what))
            for x in sorted(b - a, key=str):
                detail = after.processes.get(x, "") if what == "processes" else ""
                out.append(f"{what}: left behind: {x} {detail}")
            out += [f"{what}: gone: {x} {self.processes.get(x, '')}" for x in sorted(a - b, key=str)]
        if self.mounts != after.mounts:
            out.append("mounts: " + ", ".join(
                [f"+{m}" for m in after.mounts if m not in self.mounts] +
                [f"-{m}" for m in self.mounts if m not in after.mounts]))
        for inode in set(after.listening) - set(self.listening):
            pid = _owner(inode)
            if pid and is_ours(pid, self.guard):
                out.append(f"listening: {after.listening[inode]} of process {pid}")
        if len(self.descriptors) != len(after.descriptors):
            out.append(f"descriptors of the test process: {self.descriptors} became {after.descriptors}")
        if self.tainted != after.tainted:
            out.append(f"the kernel complained: tainted {self.tainted} became {after.tainted}")
        out += [f"/proc/cgroups: {c} grew from {n} to {after.cgroup_counts.get(c)}"
                for c, n in self.cgroup_counts.items()
                if c != "memory" and after.cgroup_counts.get(c, 0) > n + CGROUPS_SLACK]
        out += [f"zombie: {p} {d}" for p, d in after.processes.items() if "(Z)" in d]
        if after.memory < self.memory - MEMORY_SLACK:
            out.append(f"MemAvailable fell from {self.memory >> 20} to {after.memory >> 20} MiB")
        if after.charged > self.charged + GUARD_SLACK:
            self.guard.reclaim()
            after.charged = self.guard.memory_held()
        if after.charged > self.charged + GUARD_SLACK:
            out.append(f"memory held by the suite's cgroup rose from {self.charged >> 20} "
                       f"to {after.charged >> 20} MiB")
        out += [f"free space at {p} fell from {n >> 20} to {after.disk[p] >> 20} MiB"
                for p, n in self.disk.items() if after.disk[p] < n - DISK_SLACK]
        out += [f"files: left behind: {f}" for f in after.files - self.files
                if re.match(r"core(\.\d+)?$|caisson$|caisson-(\d+$|init|warden|script|c\d{4})|" + OWN_PREFIX,
                            os.path.basename(f))]
        return out


def settle(before, take, deadline=SETTLE):
    """Compare until equal or the deadline; returns the remaining differences."""
    end = time.monotonic() + deadline
    while True:
        left = before.differences(take())
        if not left or time.monotonic() > end:
            return left
        if os.environ.get("CAISSON_HOSTILE_DEBUG"):
            print("not settled yet:", left)
        time.sleep(0.05)
