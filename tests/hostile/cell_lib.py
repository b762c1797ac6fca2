# SPDX-License-Identifier: Apache-2.0
"""cell_lib.py - More of the harness, for cells: control runs as root, cells of an ordinary user, processes found by nonce, the output of
payloads.
"""
import contextlib
import json
import os
import re
import secrets
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

import lib
from guard import own_paths
from lib import CAISSON, HERE, Process, Running, command, host_env, session
from process import below, children
from snapshot import pids

USER = 12345              # an ordinary user of the host, without an account
CELL_UID = 1000
# The parts of the real /etc that a cell of the host image sees, as far as the machine has them.
ETC = [f"/etc/{name}" for name in (
    "ld.so.cache", "alternatives", "ssl/certs", "ssl/openssl.cnf", "services", "protocols", "mime.types", "R", "fonts", "matplotlibrc",
    *(f"java-{n}-openjdk" for n in (8, 11, 17, 21, 25)), "maven/m2.conf", "maven/logging", "libreoffice", "ImageMagick-6", "ImageMagick-7")]


# ---- payloads -----------------------------------------------------------------------------------

def build(name, *flags):
    """Build payloads/NAME.c with flags of its own (not static), beside the others."""
    out = session().payloads / name
    if not out.exists():
        tmp = session().dir / f"{name}.tmp"
        subprocess.run(["gcc", "-std=gnu17", "-D_GNU_SOURCE", "-O1", "-Wall", "-Wextra", "-Werror",
                        *flags, str(HERE / "payloads" / f"{name}.c"), "-o", str(tmp)],
                       check=True, timeout=60)
        tmp.chmod(0o755)
        tmp.rename(out)
    return out


def said(text):
    """{name: (result, errno name)} of a payload's lines "name result errno NAME"."""
    found = {}
    if isinstance(text, bytes):
        text = text.decode(errors="replace")
    for line in text.splitlines():
        m = re.fullmatch(r"(\S+) (-?\d+) (\d+) (\S+)", line)
        if m:
            found[m[1]] = (int(m[2]), m[4])
    return found


def succeeded(text):
    """Names of the attempts that the Linux kernel permitted."""
    return {name for name, (result, _) in said(text).items() if result >= 0}


@contextlib.contextmanager
def scratch(mode=0o755, owner=0, where=None):
    """A directory on the host, removed afterwards."""
    d = Path(tempfile.mkdtemp(prefix="scratch-", dir=where or session().dir))
    d.chmod(mode)
    os.chown(d, owner, owner)
    try:
        yield d
    finally:
        shutil.rmtree(d, ignore_errors=True)


# ---- control runs as root, or as somebody, with or without namespaces -----------------------------

def host(argv, *, uid=0, unshare=("--mount", "--pid", "--fork", "--kill-child=SIGKILL"), stdin=b"",
         timeout=10, cwd=None, env=None, pids_max=200, memory=400 << 20, limits=None, says=None):
    """Run a program on the host without our layers, in a tight cgroup. Its time begins when it has written @says. A lib.Control."""
    s = session()
    s.n_control += 1
    group = s.guard.sub(f"control-{s.n_control}", pids_max, memory)
    line = [*(["unshare", *unshare, "--"] if unshare else []),
            *(["prlimit", *limits, "--"] if limits else []),
            *(["setpriv", f"--reuid={uid}", f"--regid={uid}", "--clear-groups", "--"] if uid else []),
            *[str(a) for a in argv]]
    p = None
    try:
        p = Process(line, stdin=stdin, enter=group, cwd=cwd or s.dir, start_new_session=True,
                    env={**host_env(), **(env or {})})
        if says:
            until(lambda: says in p.out or p.wait(0), timeout, f"{says}: {p.out!r}")
        late = not p.wait(timeout)
        if late:
            group.kill()
            p.wait(5)
        return lib.Control(p, group, late)
    finally:
        group.kill()
        if p:
            p.wait(5)
        group.remove()


# ---- looking at processes from outside ------------------------------------------------------------

# Files that pid 1 of a cell has open. test_posture.py declares each with its number.
INIT_FILES = re.compile(r"/dev/null|/(meminfo|stat|loadavg|cpuinfo|uptime) \(deleted\)|/proc/cpuinfo|(/proc)?/\d+/oom_score_adj|/sys/fs/cgroup/.*/caisson[-/]c\d+-\w+/[\w.]+")


def read(path):
    return Path(path).read_text(errors="surrogateescape")


def root_of(path):
    """The root of a bind of @path, as mountinfo shows it: it differs from @path if / is a subvolume or a bind."""
    of = {line.split()[4]: line.split()[3] for line in read("/proc/self/mountinfo").splitlines()}
    at = path
    while at not in of:
        at = os.path.dirname(at)
    return os.path.normpath(os.path.join(of[at], os.path.relpath(path, at)))


def cover_of(path):
    """The directory of the host whose read-only overlay stands for @path in a cell of the host image; None: @path is a plain bind.
    The Linux kernel refuses overlays of directories with mounts below."""
    at = [line.split()[4] for line in read("/proc/self/mountinfo").splitlines()]
    tops = ["/etc", path] if path.startswith("/etc/") else [path]
    return next((t for t in tops if os.path.isdir(t) and not any(m.startswith(t + "/") for m in at)), None)


def processes_with(text):
    """Host pids with @text in their arguments, except the caisson that passes it to the cell."""
    found = set()
    want = text.encode()
    for pid in pids():
        with contextlib.suppress(OSError):
            cmd = Path(f"/proc/{pid}/cmdline").read_bytes()
            if want in cmd and b"caisson" not in cmd.split(b"\0")[0]:
                found.add(pid)
    return found


def gone(text, deadline):
    """Seconds until no process has @text in its arguments; fails after @deadline."""
    t, deadline = time.monotonic(), lib.at_most(deadline)
    while True:
        left = processes_with(text)
        if not left:
            return time.monotonic() - t
        assert time.monotonic() - t < deadline, f"survivors: {[(p, cmdline(p)) for p in left]}"
        time.sleep(0.01)


def cmdline(pid):
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except OSError:
        return "gone"


def until(condition, deadline=10.0, what="condition"):
    deadline = lib.at_most(deadline)
    end = time.monotonic() + deadline
    while time.monotonic() < end:
        value = condition()
        if value:
            return value
        time.sleep(0.005)
    raise AssertionError(f"not within {deadline} s: {what}")


# ---- a cell that waits to be looked at ------------------------------------------------------------

class Held:
    """with Held(...) as h: the command runs and waits on stdin; h.pid, h.init, h.warden, h.caisson.

    Options as for lib.start(). @ready: bytes on stdout after which the test may look; with --json, or without @ready, the test waits
    until the command sleeps.
    as_user: run caisson as an ordinary user. delegate: give that user cgroups of its own.
    """

    def __init__(self, args=(), *, ready=b"ready", as_user=False, delegate=False, caller=(),
                 outer_timeout=40, popen=None, env=None, **how):
        self.args, self.ready, self.how = args, ready, how
        self.as_user, self.delegate, self.caller = as_user, delegate, list(caller)
        self.outer_timeout, self.popen, self.env = outer_timeout, popen or {}, env or {}
        self.group = self.run = self.result = None

    def __enter__(self):
        how = dict(self.how)
        payload = how.pop("payload", None)
        if payload:
            how["argv"] = [f"{lib.PAYLOAD_DIR}/{payload}"]
        json_result = how.pop("json_result", False)
        line = command(self.args, payload_name=payload, json_result=json_result, **how)
        env = {**host_env(), **self.env}
        popen = dict(self.popen)
        if self.as_user:
            user_state()
            env["CAISSON_STATE"] = str(user_state())
            env["HOME"] = "/nonexistent"
            if self.delegate:
                self.group = delegated_group()
                popen["enter"] = self.group
            self.caller += ["setpriv", f"--reuid={USER}", f"--regid={USER}", "--clear-groups", "--"]
        self.run = RunningAs([*self.caller, *line], json_result, env=env, stdin_open=True, **popen)
        try:
            if self.ready and not json_result:
                until(lambda: self.ready in bytes(self.run.out) or self.run.popen.poll() is not None,
                      15, f"{self.ready} on stdout")
            else:
                until(lambda: self.run.popen.poll() is not None or self._waits(), 15, "a waiting command")
            assert self.run.popen.poll() is None, self.run.result_or_bytes()
            self.caisson = self.run.pid
            self.warden = children(self.caisson)[0]
            self.init = children(self.warden)[0]
            self.pid = self._main()
        except BaseException:
            self._end()
            raise
        return self

    def _main(self):
        """Host pid of the cell's first command (usually pid 2 in the cell)."""
        c = children(self.run.pid)
        c = children(c[0]) if c else []
        c = children(c[0]) if c else []
        with contextlib.suppress(OSError):
            c = [p for p in c if "caisson-init" not in read(f"/proc/{p}/comm")]
        return min(c) if c else 0

    def _waits(self):
        """The command runs, under its own name, and sleeps at two looks in a row."""
        for _ in range(2):
            pid = self._main()
            if not pid or read(f"/proc/{pid}/stat").rsplit(")", 1)[1].split()[0] != "S":
                return False
            time.sleep(0.03)
        return True

    def guests(self):
        return below(self.init)

    def say(self, data=b"\n"):
        self.run.popen.stdin.write(data)
        self.run.popen.stdin.flush()

    def finish(self):
        """Let the command end by itself; the lib.Result."""
        if self.result is None:
            with contextlib.suppress(OSError, ValueError):
                self.run.popen.stdin.close()
            self.result = self.run.finish(self.outer_timeout)
        return self.result

    @property
    def text(self):
        return bytes(self.run.out).decode(errors="replace")

    def _end(self):
        if self.run.popen.poll() is None:
            self.run.signal(15)
            if not self.run.wait(10):
                self.run.signal(9)
                self.run.wait(5)
        if self.group:
            self.group.kill()
            self.group.remove()

    def __exit__(self, *exc):
        with contextlib.suppress(OSError, ValueError):
            self.run.popen.stdin.close()
        if not exc[0]:
            self.run.wait(self.outer_timeout)
        self._end()


class RunningAs(Running):
    """lib.Running with an environment and a caller of our choice."""

    def __init__(self, line, is_json, *, env, **more):
        self.is_json = is_json
        self._paths = {}
        Process.__init__(self, line, env=env, **more)


def user_state():
    """The ordinary user's state directory."""
    d = session().dir / "user-state"
    if not d.exists():
        d.mkdir(mode=0o700)
        os.chown(d, USER, USER)
    return d


def delegated_group(pids_max=300, memory=1 << 30):
    """cgroups in every hierarchy that matters, owned by USER, as an administrator would delegate them."""
    s = session()
    s.n_control += 1
    group = s.guard.sub(f"user-{s.n_control}", pids_max, memory)
    for d in set(group.dirs.values()):
        os.chown(d, USER, USER)
        for name in ("cgroup.procs", "tasks", "cgroup.subtree_control", "cgroup.threads"):
            if (d / name).exists():
                os.chown(d / name, USER, USER)
    return group


def user_cell(args=(), *, delegate=False, timeout_outer=40, **how):
    """As lib.cell(), but an ordinary user runs caisson. Without @delegate there is no cgroup."""
    how.setdefault("json_result", True)
    is_json = how["json_result"]
    payload = how.pop("payload", None)
    stdin = how.pop("stdin", b"")
    if payload:
        how["argv"] = [f"{lib.PAYLOAD_DIR}/{payload}"]
    if not delegate:
        how.setdefault("without", "cgroup")
    line = command(args, payload_name=payload, **how)
    group = delegated_group() if delegate else None
    env = {**host_env(), "CAISSON_STATE": str(user_state()), "HOME": "/nonexistent"}
    try:
        r = RunningAs(["setpriv", f"--reuid={USER}", f"--regid={USER}", "--clear-groups", "--", *line],
                      is_json, env=env, stdin=stdin, enter=group)
        return r.finish(timeout_outer)
    finally:
        if group:
            group.kill()
            group.remove()


def cell_dirs(pid):
    """{controller: host directory} of the cgroups that a process is in."""
    from guard import mounts
    there = mounts()
    return {c: Path(there[c] + p) for c, p in own_paths(pid).items() if c in there}


def nonce():
    return secrets.token_hex(16)


def masked(text):
    """As the payload walk needs it: encoded, so that the search does not find its own argument."""
    return "".join(chr(ord(c) ^ 1) for c in text)


def binary_hashes():
    import hashlib
    return {n: hashlib.sha256((CAISSON.parent / n).read_bytes()).hexdigest()
            for n in ("caisson", "caisson-warden", "caisson-init")}


def receipt_of(r):
    """The receipt of a --json --receipt result."""
    return r["receipt"] if not isinstance(r["receipt"], str) else json.loads(r["receipt"])
