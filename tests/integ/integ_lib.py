# SPDX-License-Identifier: Apache-2.0
"""integ_lib.py - Shared by the integration tests: the binary, a bounded place to run it, and eyes.

The tests drive the real binary as a person would and judge it from outside. Everything they start
lives in one cgroup per hierarchy, made for this session below our own (Place): it bounds the resources of
a test that goes wrong, and "nothing is left" can be checked exactly, whatever else runs on the machine.
"""
import ctypes
import fcntl
import json
import os
import re
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest
from process import BIN, IS_ROOT, SLOW, children, name_of, no_report, wait_until

USER = 12345  # an ordinary user; needs no entry in /etc/passwd
CELL_CGROUP = re.compile(r"(caisson-)?c[0-9]{4}-[0-9a-f]{16}$")


needs_root = pytest.mark.skipif(not IS_ROOT, reason="only root can arrange this")


def needs_program(name, package=None):
    reason = "no %s here (apt-get install %s)" % (name, package or name)
    return pytest.mark.skipif(not shutil.which(name), reason=reason)


# ---- running caisson -------------------------------------------------------------------------


class Result:
    """How one run of caisson ended. out and err are bytes; lines() is err in lines of text."""

    def __init__(self, argv, code, out, err, seconds):
        self.argv, self.code, self.out, self.err, self.seconds = argv, code, out, err, seconds

    def lines(self):
        return self.err.decode(errors="replace").splitlines()

    @property
    def json(self):
        return json.loads(self.out)

    def __repr__(self):
        return "<%s -> %s in %.2f s, out %r, err %r>" % (
            " ".join(str(a)[:60] for a in self.argv[1:]), self.code, self.seconds,
            (self.out or b"")[:400], (self.err or b"")[:800])


def clean_env(**extra):
    """The environment without variables that change the behaviour of caisson."""
    env = {k: v for k, v in os.environ.items() if not k.startswith("CAISSON_")}
    env.setdefault("ASAN_OPTIONS", "detect_leaks=0")
    env["CAISSON_STATE"] = str(Place.state)
    env.update(extra)
    return {k: v for k, v in env.items() if v is not None}


def run(*args, input=b"", env=None, binary=None, timeout=120, prefix=(), **popen):
    """Run caisson to its end. stdin is `input`, unless the caller passes stdin=."""
    argv = [*prefix, str(binary or BIN), *map(str_or_bytes, args)]
    begin = time.monotonic()
    if "stdin" not in popen:
        popen["input"] = input
    p = subprocess.run(argv, env=clean_env(**(env or {})), timeout=timeout * SLOW,
                       **{"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **popen})
    no_report(p.stderr or b"")
    return Result(argv, p.returncode, p.stdout, p.stderr, time.monotonic() - begin)


def str_or_bytes(a):
    return a if isinstance(a, bytes) else str(a)


def start(*args, env=None, binary=None, prefix=(), **popen):
    """Start caisson and return at once."""
    kw = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **popen}
    return subprocess.Popen([*prefix, str(binary or BIN), *map(str_or_bytes, args)],
                            env=clean_env(**(env or {})), **kw)


def run_json(*args, **kw):
    """Run with --json (args[0] is the verb) and return the object; the exit code must agree."""
    r = run(args[0], "--json", *args[1:], **kw)
    d = r.json
    assert r.err == b"", r
    assert d["exit_code"] in (None, r.code), r
    return d


def as_user(uid=USER):
    return ["setpriv", "--reuid", str(uid), "--regid", str(uid), "--clear-groups", "--"]


def family(pid):
    """(warden, init) of a caisson, None for a process that does not exist (yet)."""
    warden = next((p for p in children(pid) if name_of(p) == "caisson-warden"), None)
    init = next((p for p in children(warden) if name_of(p) == "caisson-init"), None) if warden else None
    return warden, init


def wait_running(p, seconds=60):
    """Wait until a command runs in the cell of the Popen p. Returns (warden, init)."""
    def ready():
        warden, init = family(p.pid)
        return (warden, init) if init and children(init) else None
    got = wait_until(ready, seconds)
    assert got, "no command runs below caisson %d after %d s" % (p.pid, seconds)
    return got


def end_process(p):
    """Whatever happened in a test, this Popen is over after it."""
    if p.poll() is None:
        p.kill()
    p.wait()
    for f in (p.stdin, p.stdout, p.stderr):
        if f:
            try:
                f.close()
            except BrokenPipeError:
                pass


# ---- the place everything runs in --------------------------------------------------------------


def mounts():
    return sorted(Path("/proc/self/mountinfo").read_text().splitlines())


def hierarchies():
    """{controllers: our own directory} for every cgroup hierarchy that is mounted; v2 is ""."""
    own = {}
    for line in Path("/proc/self/cgroup").read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        own[controllers] = path
    found = {}
    for line in mounts():
        left, right = line.split(" - ", 1)
        root, point = left.split()[3:5]
        kind, _, options = right.split()[:3]
        for controllers, path in own.items():
            is_v2 = controllers == ""
            names = set(controllers.split(","))
            if kind == ("cgroup2" if is_v2 else "cgroup") and (is_v2 or names <= set(options.split(","))):
                inside = path[len(root):] if root != "/" and path.startswith(root) else path
                found.setdefault(controllers, Path(point + inside.rstrip("/")))
    return found


class Place:
    """Our own cgroups and mount namespace, and their content."""
    state = Path("/nonexistent")  # of the session; a test may use another
    dirs = {}                     # controllers -> directory made for this session
    mounts = []

    @classmethod
    def enter(cls, state):
        cls.state = state
        if not IS_ROOT:
            return
        cls.own_mounts()
        there = hierarchies()
        v2 = there.get("")
        if v2 and {"memory", "pids"} & set((v2 / "cgroup.controllers").read_text().split()):
            return  # limits are on v2: a cgroup with processes cannot hand out limits, so none is made
        wanted = {c: d for c, d in there.items()
                  if set(c.split(",")) & {"memory", "pids", "cpu", "cpuacct", ""}}
        try:
            for controllers, d in wanted.items():
                mine = d / ("caisson-integ-%d" % os.getpid())
                mine.mkdir()
                cls.dirs[controllers] = mine
                if "memory" in controllers.split(","):
                    (mine / "memory.limit_in_bytes").write_text(str(4 << 30))
                if "pids" in controllers.split(","):
                    (mine / "pids.max").write_text("800")
                (mine / "cgroup.procs").write_text(str(os.getpid()))
        except OSError:
            cls.leave()

    @classmethod
    def own_mounts(cls):
        """A mount namespace of our own: mounts of others do not change the lists that we compare."""
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.unshare(0x00020000) == 0:  # CLONE_NEWNS
            libc.mount(None, b"/", None, 0x4000 | (1 << 18), None)  # MS_REC | MS_PRIVATE
        cls.mounts = mounts()

    @classmethod
    def purge(cls):
        """End the leftovers of a failed test, so that the next one is not blamed for them."""
        for pid in cls.processes():
            try:
                os.kill(pid, signal.SIGKILL)  # it is in our own cgroup: a test started it
            except ProcessLookupError:
                pass
        wait_until(lambda: not cls.processes())
        for d in cls.dirs.values():
            for sub in sorted((p for p in d.rglob("*") if p.is_dir()), reverse=True):
                try:
                    sub.rmdir()
                except OSError:
                    pass
        for name in records():
            try:
                (cls.state / "cells" / name).unlink()
            except OSError:
                pass

    @classmethod
    def leave(cls):
        cls.purge()
        for d in cls.dirs.values():
            try:
                (d.parent / "cgroup.procs").write_text(str(os.getpid()))
                d.rmdir()
            except OSError:
                pass
        cls.dirs = {}

    @classmethod
    def processes(cls):
        """Everything that a test started and that still runs."""
        for d in cls.dirs.values():
            pids = set()
            for procs in [d / "cgroup.procs", *d.glob("*/cgroup.procs")]:
                try:
                    pids |= {int(p) for p in procs.read_text().split()}
                except OSError:
                    pass
            return sorted(p for p in pids if p != os.getpid() and p != 0)
        return []

    @classmethod
    def cgroups(cls):
        """Cgroups that are there and should not be."""
        found = []
        for d in cls.dirs.values():
            found += [p for p in d.iterdir() if p.is_dir()]
        for controllers, d in hierarchies().items():
            if controllers in cls.dirs:
                continue
            for base in [d, *d.parents]:
                if not (base / "cgroup.procs").exists():
                    break
                found += [p for p in base.glob("caisson*") if CELL_CGROUP.match(p.name)]
                found += [p for p in base.glob("caisson/*") if CELL_CGROUP.match(p.name)]
        return found


def records(state=None):
    try:
        return sorted(p.name for p in (Path(state or Place.state) / "cells").iterdir())
    except OSError:
        return []


def leftovers(state=None):
    """One line for each leftover of a finished caisson."""
    left = ["process %d (%s)" % (p, name_of(p)) for p in Place.processes()]
    left += ["cgroup %s" % c for c in Place.cgroups()]
    left += ["record %s" % r for r in records(state)]
    if Place.mounts:
        left += ["mount %s" % m for m in set(mounts()) ^ set(Place.mounts)]
    return left


def settled(state=None, seconds=20):
    """The leftovers after a short while in which the Linux kernel may finish. Empty is good."""
    wait_until(lambda: not leftovers(state), seconds)
    return leftovers(state)


# A command in a user namespace of its own in which all ids are what they are outside, with files
# written first: argv is FILE=TEXT... -- COMMAND...
IN_USERNS = """
import ctypes, os, sys
up, down = os.pipe(), os.pipe()
pid = os.fork()
if pid:
    os.close(up[1])
    os.read(up[0], 1)
    for name in ("gid_map", "uid_map"):
        with open("/proc/%d/%s" % (pid, name), "w") as f:
            f.write("0 0 4294967295")
    os.write(down[1], b"x")
    sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
if ctypes.CDLL(None).unshare(0x10000000):
    sys.exit("no user namespace")
os.write(up[1], b"x")
os.read(down[0], 1)
cut = sys.argv.index("--")
for arg in sys.argv[1:cut]:
    name, _, text = arg.partition("=")
    with open(name, "w") as f:
        f.write(text)
os.execvp(sys.argv[cut + 1], sys.argv[cut + 1:])
"""


# ---- things to put into a cell ---------------------------------------------------------------------


def copy_programs(root, *programs):
    """A root directory that holds programs of this machine, with the libraries they need."""
    for sub in ("bin", "etc", "tmp"):
        (root / sub).mkdir(parents=True, exist_ok=True)
    (root / "tmp").chmod(0o1777)
    todo = [(shutil.which(p), root / "bin" / p) for p in programs]
    # A sanitized init is not static: its libraries have to be there, too.
    todo.append((str(BIN.parent / "caisson-init"), None))
    for source, target in todo:
        if target:
            shutil.copy(os.path.realpath(source), target)
        listed = subprocess.run(["ldd", source], capture_output=True, text=True).stdout
        for lib in re.findall(r"(/\S+) \(0x", listed):
            place = root / lib.lstrip("/")
            place.parent.mkdir(parents=True, exist_ok=True)
            if not place.exists():
                shutil.copy(os.path.realpath(lib), place)
    return root


def copy_tree(where, without=(), also=()):
    """The three programs in another directory, perhaps not all of them, and others that they become. Returns caisson's path."""
    where.mkdir(parents=True, exist_ok=True)
    for name in ("caisson", "caisson-warden", "caisson-init", *also):
        if name not in without:
            shutil.copy(BIN.parent / name, where / name)
    return where / "caisson"


def is_nonblocking(fd):
    return bool(fcntl.fcntl(fd, fcntl.F_GETFL) & os.O_NONBLOCK)
