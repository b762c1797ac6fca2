# SPDX-License-Identifier: Apache-2.0
"""guard.py - The outer limit: cgroups around the suite itself, on v1, v2 and hybrid machines.

Cells are made below the cgroup of the process that starts caisson. At the start of the session the test
process moves into cgroups of its own, with limits; so everything that a test starts, in a cell or
beside it, stays bounded even if the layer under test fails. Nothing hostile is run before the
guard is proved to hold a cell.
"""
import contextlib
import os
import time
from pathlib import Path

PIDS = 2000
MEMORY = 3 << 30
V2_LEAF = "caisson.self"  # caisson makes cells beside a leaf of that name, below its parent
V1_NEED = ("pids", "memory", "cpu")


class GuardError(Exception):
    """No outer limit could be set up; hostile programs must not be run."""


def mounts():
    """{controller or 'unified': mount point} of every cgroup hierarchy."""
    found = {}
    for line in Path("/proc/mounts").read_text().splitlines():
        _, where, kind, options = line.split()[:4]
        if kind == "cgroup2":
            found.setdefault("unified", where)
        elif kind == "cgroup":
            for option in options.split(","):
                if option in ("pids", "memory", "cpu", "cpuacct", "freezer"):
                    found.setdefault(option, where)
    return found


def own_paths(pid="self"):
    """{controller or 'unified': path} as in /proc/PID/cgroup; {} if the process is gone."""
    found = {}
    try:
        text = Path(f"/proc/{pid}/cgroup").read_text()
    except OSError:
        return found
    for line in text.splitlines():
        _, controllers, path = line.split(":", 2)
        for c in controllers.split(",") if controllers else ["unified"]:
            found[c.removeprefix("name=")] = path
    return found


class Group:
    """One cgroup directory in each hierarchy that matters, with limits; holds processes."""

    def __init__(self, name, parents, pids, memory):
        self.dirs = {}
        self.unified_only = set(parents) == {"unified"}
        made = set()
        for controller, parent in parents.items():
            path = Path(parent) / name
            if path not in made:
                path.mkdir()
                made.add(path)
            self.dirs[controller] = path
        if self.unified_only:
            self._put("unified", "pids.max", pids)
            self._put("unified", "memory.max", memory)
            self._try("unified", "memory.swap.max", 0)
        else:
            self._put("pids", "pids.max", pids)
            self._put("memory", "memory.limit_in_bytes", memory)
            self._try("memory", "memory.memsw.limit_in_bytes", memory)

    def _put(self, controller, file, value):
        (self.dirs[controller] / file).write_text(f"{value}\n")

    def _try(self, controller, file, value):
        try:
            self._put(controller, file, value)
        except OSError:
            pass

    def procs_files(self):
        return sorted({str(d / "cgroup.procs") for d in self.dirs.values()})

    def enter(self, pid=0):
        for f in self.procs_files():
            fd = os.open(f, os.O_WRONLY)
            try:
                os.write(fd, b"%d" % pid)
            finally:
                os.close(fd)

    def number(self, names):
        """The first of [(controller, file, key or None)] that exists, as a number; else 0."""
        for controller, file, key in names:
            path = self.dirs.get(controller)
            try:
                text = (path / file).read_text() if path else ""
            except OSError:
                continue
            if key is None and text.strip().isdigit():
                return int(text)
            for line in text.splitlines():
                word = line.split()
                if key and len(word) == 2 and word[0] == key:
                    return int(word[1])
        return 0

    def pids_now(self):
        return self.number([("pids", "pids.current", None), ("unified", "pids.current", None)])

    def pids_denied(self):
        return self.number([("pids", "pids.events", "max"), ("unified", "pids.events", "max")])

    def pids_peak(self):
        return self.number([("pids", "pids.peak", None), ("unified", "pids.peak", None)])

    def oom_kills(self):
        return self.number([("memory", "memory.oom_control", "oom_kill"),
                            ("unified", "memory.events", "oom_kill")])

    def memory_now(self):
        return self.number([("memory", "memory.usage_in_bytes", None),
                            ("unified", "memory.current", None)])

    def memory_cache(self):
        return sum(self.number([("memory", "memory.stat", "total_" + k),
                                ("unified", "memory.stat", k)])
                   for k in ("inactive_file", "active_file"))

    def memory_held(self):
        """The bytes that are charged to the group, without its page cache."""
        return self.memory_now() - self.memory_cache()

    def reclaim(self):
        """Have the Linux kernel free the caches of the group, such as the names of a tree that was walked."""
        for controller, file, text in (("memory", "memory.force_empty", "0"), ("unified", "memory.reclaim", "1G")):
            if controller in self.dirs:
                with contextlib.suppress(OSError):  # it freed less than it was asked for
                    (self.dirs[controller] / file).write_text(text)

    def memory_peak(self):
        return self.number([("memory", "memory.max_usage_in_bytes", None),
                            ("unified", "memory.peak", None)])

    def cpu_ns(self):
        return 1000 * self.number([("unified", "cpu.stat", "usage_usec")])

    def members(self):
        """Pids in it and in everything below it, in any hierarchy."""
        found = set()
        for d in set(self.dirs.values()):
            for top, _, _ in os.walk(d):
                try:
                    with open(os.path.join(top, "cgroup.procs"), encoding="ascii") as f:
                        found.update(int(x) for x in f.read().split())
                except OSError:
                    pass
        return found

    def children(self):
        """Names of all cgroups below it, in every hierarchy: 'controller:relative path'."""
        found = set()
        for controller, d in self.dirs.items():
            for top, _, _ in os.walk(d):
                if top != str(d) and not top.endswith("/" + V2_LEAF):
                    found.add(f"{controller}:{os.path.relpath(top, d)}")
        return found

    def kill(self, deadline=5.0):
        """SIGKILL to every member except this process, until none is left."""
        end = time.monotonic() + deadline
        while True:
            left = self.members() - {os.getpid()}
            if not left:
                return
            if "unified" in self.dirs and os.getpid() not in self.members():
                self._try("unified", "cgroup.kill", 1)
            for pid in left:
                try:
                    os.kill(pid, 9)
                except ProcessLookupError:
                    pass
            if time.monotonic() > end:
                raise GuardError(f"processes survive SIGKILL: {sorted(left)}")
            time.sleep(0.01)

    def remove(self, deadline=5.0):
        end = time.monotonic() + deadline
        for d in set(self.dirs.values()):
            while True:
                try:
                    d.rmdir()
                    break
                except FileNotFoundError:
                    break
                except OSError:
                    if time.monotonic() > end:
                        raise
                    time.sleep(0.01)


def _v2_parent(mount, own):
    """The nearest cgroup at or above ours that delegates memory and pids (or can: the root)."""
    path = Path(mount + own)
    while True:
        want = {"memory", "pids", "cpu"}
        control = path / "cgroup.subtree_control"
        if path == Path(mount):
            control.write_text("+memory +pids +cpu\n")
        if control.exists() and want <= set(control.read_text().split()):
            return path
        if path == Path(mount):
            raise GuardError(f"cgroup v2 at {mount} hands out no memory, pids and cpu controllers")
        path = path.parent


class Guard(Group):
    """The session's own group. The test process lives in it from start to stop."""

    def __init__(self):
        self.name = f"hostile-guard-{os.getpid()}"
        there, own = mounts(), own_paths()
        self.home = {}
        if os.geteuid() != 0:
            raise GuardError("the outer guard needs root, to make cgroups around the suite")
        try:
            if all(c in there for c in V1_NEED):
                use = [c for c in (*V1_NEED, "cpuacct", "unified") if c in there]
                parents = {c: there[c] + own[c] for c in use}
                self.home = {c: Path(p) for c, p in parents.items()}
                super().__init__(self.name, parents, PIDS, MEMORY)
                self.enter()
            elif "unified" in there:
                self._start_v2(there["unified"], own["unified"])
            else:
                raise GuardError("no cgroup hierarchy with pids and memory is mounted")
        except OSError as e:
            raise GuardError(f"cannot make the outer guard: {e}") from e

    def _start_v2(self, mount, own):
        self.home = {"unified": Path(mount + own)}
        super().__init__(self.name, {"unified": _v2_parent(mount, own)}, PIDS, MEMORY)
        top = self.dirs["unified"]
        (top / "cgroup.subtree_control").write_text("+memory +pids +cpu\n")
        (top / V2_LEAF).mkdir()
        (top / V2_LEAF / "cgroup.procs").write_text(str(os.getpid()))

    def holds(self, pid):
        """Is the process inside, in every hierarchy that the guard limits?"""
        paths = own_paths(pid)
        need = ["unified"] if self.unified_only else V1_NEED
        return bool(paths) and all(f"/{self.name}" in paths.get(c, "") for c in need)

    def sub(self, name, pids, memory):
        """A tighter group inside, for control runs."""
        return Group(name, {c: str(d) for c, d in self.dirs.items()}, pids, memory)

    def stop(self):
        me = os.getpid()
        for pid in self.members() - {me}:
            try:
                os.kill(pid, 9)
            except ProcessLookupError:
                pass
        for d in self.home.values():
            try:
                (d / "cgroup.procs").write_text(str(me))
            except OSError:
                pass
        try:
            (self.dirs["unified"] / V2_LEAF).rmdir()
        except (OSError, KeyError):
            pass
        self.remove()
