# SPDX-License-Identifier: Apache-2.0
"""lib.py - The hostile suite's harness: cells, payloads, control runs, neighbours, snapshots.

How a test is written (the rules are those of docs/threat-model.md, turned into code):

    @pytest.mark.quick
    def test_fork_bomb(stopped_by):
        c = control(payload("a_forkbomb"))           # lands with the layer off, or the test is void
        landed(c.pids_denied > 0 or c.pids_peak > 100, c)
        r = cell(payload="a_forkbomb", pids=64, timeout=3)
        assert r.status == ... and r.cause["kind"] == ...   # from the Linux kernel, not from the guest
        stopped_by("pids cgroup", second="RLIMIT_NPROC")

Around every test conftest.py takes a host snapshot, runs a known-good program afterwards and
compares. Everything runs below the guard's cgroups (guard.py).
"""
import base64
import contextlib
import ctypes
import json
import os
import random
import resource
import secrets
import selectors
import shutil
import signal
import statistics
import subprocess
import tempfile
import threading
import time
from pathlib import Path

from canary import Canary
from guard import Guard, GuardError, mounts, own_paths
from snapshot import (NONCE_ENV, OWN_PREFIX, Snapshot, free_disk, mem_available, settle,
                      stat_of)

from process import BIN, SANITIZED, children, no_report

__all__ = ["Canary", "free_disk", "mem_available"]  # for tests that import from here

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
PAYLOAD_DIR = "/payload"          # where payloads appear in a cell
CONTROL_UID = 65534
CONTROL_PIDS = 200
CONTROL_MEMORY = 300 << 20
SLACK = 0.150                     # a timeout may be late by this, plus the cost of load
EXACT = os.environ.get("CAISSON_HOSTILE_EXACT") == "1"
TRACED = "detect_leaks=0"         # for ASAN_OPTIONS: LeakSanitizer traces its own process, as strace does, and opens files
CAISSON = BIN
KEEP = 1 << 20                    # bytes kept of a stream that is not parsed


def at_most(seconds):
    """The bound for something that should take less than @seconds.

    `make hostile` (CAISSON_HOSTILE_EXACT=1) has a quiet machine and enforces the bound. `make test` runs on any machine, and there
    only a hang exceeds the bound.
    """
    return seconds if EXACT else max(10 * seconds, 30)


# ---- the session --------------------------------------------------------------------------------

def own_mounts():
    """A mount namespace for the suite, so that mounts of others are not taken for leaks.

    Inside it everything is shared: a cell that did not make its own mounts private is detected at once.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    new_ns, rec, private, shared = 0x20000, 0x4000, 1 << 18, 1 << 20
    for ok in (libc.unshare(new_ns) == 0, libc.mount(None, b"/", None, rec | private, None) == 0,
               libc.mount(None, b"/", None, rec | shared, None) == 0):
        if not ok:
            raise GuardError(f"no mount namespace of our own: {os.strerror(ctypes.get_errno())}")


class Session:
    """Objects of the whole test process: guard, work directory, built payloads."""

    def __init__(self):
        self.nonce = secrets.token_hex(12)
        os.environ[NONCE_ENV] = self.nonce
        own_mounts()
        self.guard = Guard()
        self.dir = Path(tempfile.mkdtemp(prefix=OWN_PREFIX, dir="/tmp"))
        self.dir.chmod(0o755)
        self.payloads = self.dir / "payload"
        self.payloads.mkdir(mode=0o755)
        self.state = self.dir / "state"
        self.state.mkdir(mode=0o700)
        self.n_control = 0
        self.layers = []          # (test, first layer, second layer), for the report
        self.void = []

    def stop(self):
        self.guard.stop()
        shutil.rmtree(self.dir, ignore_errors=True)


SESSION = None


def session():
    global SESSION
    if SESSION is None:
        SESSION = Session()
    return SESSION


def snapshot():
    s = session()
    return Snapshot(s.guard, s.state, ("/", "/tmp", "/var/tmp", "/root", "/run"))


def assert_same(before, after=None):
    """@after, or the host from now on for a few seconds, equals @before."""
    left = before.differences(after) if after else settle(before, snapshot)
    assert not left, "the host is not as before:\n  " + "\n  ".join(left)


def host_env(**more):
    """The environment of caisson itself: clean, but with a secret that must stay outside."""
    s = session()
    return {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": "/root", "CAISSON_STATE": str(s.state),
            NONCE_ENV: s.nonce, **more}


# ---- payloads -----------------------------------------------------------------------------------

def payload(name):
    """Build payloads/NAME.c statically, once; returns its path on the host (in a cell: /payload/NAME)."""
    out = session().payloads / name
    if not out.exists():
        tmp = session().dir / f"{name}.tmp"
        subprocess.run(["gcc", "-std=gnu17", "-D_GNU_SOURCE", "-O1", "-Wall", "-Wextra", "-Werror",
                        "-static", "-pthread", str(HERE / "payloads" / f"{name}.c"), "-o", str(tmp)],
                       check=True, timeout=60)
        tmp.chmod(0o755)
        tmp.rename(out)
    return out


# ---- running anything with bounds ---------------------------------------------------------------

class Process:
    """A child with three pipes, read and fed by one thread; the bytes are counted, and some are kept."""

    def __init__(self, argv, stdin=b"", keep=KEEP, env=None, enter=None, stdin_open=False,
                 on_output=None, **popen):
        self.started = time.monotonic()
        self.keep, self.on_output = keep, on_output
        self.out, self.err = bytearray(), bytearray()
        self.out_bytes = self.err_bytes = 0
        self.first_output = None
        self.ended = None
        files = enter.procs_files() if enter else []

        def join():
            for f in files:
                fd = os.open(f, os.O_WRONLY)
                os.write(fd, b"0")
                os.close(fd)

        self.popen = subprocess.Popen(
            [str(a) for a in argv], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, env=env, preexec_fn=join if files else None, **popen)
        self.stdin = bytearray(stdin)
        self.stdin_open = stdin_open
        self.thread = threading.Thread(target=self._pump, daemon=True)
        self.thread.start()

    @property
    def pid(self):
        return self.popen.pid

    def _pump(self):
        p = self.popen
        sel = selectors.DefaultSelector()
        sel.register(p.stdout, selectors.EVENT_READ)
        sel.register(p.stderr, selectors.EVENT_READ)
        if self.stdin:
            os.set_blocking(p.stdin.fileno(), False)
            sel.register(p.stdin, selectors.EVENT_WRITE)
        elif not self.stdin_open:
            p.stdin.close()
        while sel.get_map():
            for key, _ in sel.select(1.0):
                if key.fileobj is p.stdin:
                    self._feed(sel)
                    continue
                data = os.read(key.fd, 1 << 16)
                if not data:
                    sel.unregister(key.fileobj)
                    key.fileobj.close()
                elif key.fileobj is p.stdout:
                    self._take(data)
                else:
                    self.err_bytes += len(data)
                    self.err += data[:max(0, self.keep - len(self.err))]
        p.wait()
        self.ended = time.monotonic()
        sel.close()
        if not p.stdin.closed:
            with contextlib.suppress(OSError):
                p.stdin.close()

    def _take(self, data):
        if self.first_output is None:
            self.first_output = time.monotonic()
        self.out_bytes += len(data)
        self.out += data[:max(0, self.keep - len(self.out))]
        if self.on_output:
            self.on_output(data)

    def _feed(self, sel):
        p = self.popen
        try:
            n = os.write(p.stdin.fileno(), self.stdin[:1 << 16])
            del self.stdin[:n]
        except BlockingIOError:
            return
        except OSError:
            self.stdin.clear()
        if not self.stdin:
            sel.unregister(p.stdin)
            if not self.stdin_open:
                p.stdin.close()

    def wait(self, timeout):
        """True when it ended by itself within @timeout seconds from now."""
        self.thread.join(timeout)
        return not self.thread.is_alive()

    def signal(self, signo):
        if self.popen.poll() is None:
            self.popen.send_signal(signo)

    @property
    def seconds(self):
        return (self.ended or time.monotonic()) - self.started


# ---- cells --------------------------------------------------------------------------------------

class Result:
    """One run of caisson. With --json, r["usage"] etc. come from the result object."""

    def __init__(self, process, is_json):
        self.exit = process.popen.returncode
        self.raw_out, self.raw_err = bytes(process.out), bytes(process.err)
        self.out_bytes, self.err_bytes = process.out_bytes, process.err_bytes
        self.seconds = process.seconds
        no_report(self.raw_err)
        self.json = None
        if is_json:
            try:
                self.json = json.loads(self.raw_out.decode("utf-8"))
            except ValueError as e:
                raise AssertionError(f"no valid result object: {e}: {self.raw_out[:300]!r} "
                                     f"{self.raw_err[:300]!r}") from e

    def __getitem__(self, key):
        return self.json[key]

    def get(self, key, default=None):
        return self.json.get(key, default)

    @property
    def status(self):
        return self.json["status"]

    @property
    def kind(self):
        """The cause's kind, or None."""
        return (self.json.get("cause") or {}).get("kind")

    @property
    def cause(self):
        return self.json.get("cause") or {}

    @property
    def usage(self):
        return self.json["usage"]

    @property
    def stdout(self):
        """The exact bytes, as far as they were captured; without --json, all that arrived."""
        return self._stream("stdout", self.raw_out)

    @property
    def stderr(self):
        return self._stream("stderr", self.raw_err)

    def _stream(self, name, raw):
        if self.json is None:
            return raw
        if name + "_base64" in self.json:
            return base64.b64decode(self.json[name + "_base64"], validate=True)
        return self.json.get(name, "").encode()

    @property
    def text(self):
        return self.stdout.decode(errors="replace")

    def __repr__(self):
        shown = self.json if self.json is not None else {"out": self.raw_out[:400]}
        return f"<exit {self.exit} in {self.seconds:.2f} s: {shown} stderr {self.raw_err[:400]!r}>"


def command(args=(), *, code=None, lang=None, argv=None, payload_name=None, json_result=True,
            **opts):
    """The command line of one run; see cell()."""
    line = [CAISSON, "exec" if argv else "run"]
    if json_result:
        line.append("--json")
    if payload_name:
        payload(payload_name)
        line += ["--mount", f"{session().payloads}:{PAYLOAD_DIR}"]
    if lang:
        line += ["--lang", lang]
    for key, value in opts.items():
        flag = "--" + key.replace("_", "-")
        if value is True:
            line.append(flag)
        elif isinstance(value, dict):
            line += [x for k, v in value.items() for x in (flag, f"{k}={v}")]
        elif isinstance(value, (list, tuple)):
            line += [x for v in value for x in (flag, v)]
        elif value is not None:
            line += [flag, value]
    if argv:
        return [*line, "--", *argv, *args]
    return [*line, "--code", code, "--", *args]


class Running(Process):
    """A running cell: its processes and cgroups can be inspected from outside."""

    def __init__(self, line, is_json, **more):
        self.is_json = is_json
        self._paths = {}
        super().__init__(line, env=host_env(), **more)

    @property
    def warden_pid(self):
        return next(iter(children(self.pid)), 0)

    @property
    def init_pid(self):
        """Host pid of the cell's pid 1; 0 before and after."""
        w = self.warden_pid
        return next(iter(children(w)), 0) if w else 0

    def cgroup(self, controller):
        """The cell's own directory in that hierarchy, or None."""
        if controller not in self._paths:
            path = own_paths(self.init_pid or "none").get(controller, "")
            if "caisson-c" not in path and "/caisson/" not in path:
                return None
            self._paths[controller] = Path(mounts()[controller] + path)
        return self._paths[controller]

    def guests(self):
        """Host pids of the processes in the cell, without init."""
        g = self.cgroup("pids") or self.cgroup("unified")
        try:
            all_of_them = {int(x) for x in (g / "cgroup.procs").read_text().split()}
        except (OSError, TypeError):
            return set()
        return all_of_them - {self.init_pid}

    def until_running(self, count=1, deadline=30.0):
        """Wait until at least @count guest processes run an image of their own."""
        end = time.monotonic() + deadline
        while time.monotonic() < end and self.popen.poll() is None:
            guests = [p for p in self.guests() if (stat_of(p) or ("caisson-init",))[0] != "caisson-init"]
            if len(guests) >= count:
                return guests
            time.sleep(0.005)
        raise AssertionError(f"the cell did not come up: {self.result_or_bytes()}")

    def result_or_bytes(self):
        return bytes(self.out[:500]), bytes(self.err[:500])

    def rss(self):
        """Resident bytes of caisson and its warden, from outside; 0 for sanitized ones, which keep freed memory."""
        if SANITIZED:
            return 0
        total = 0
        for pid in (self.pid, self.warden_pid):
            with contextlib.suppress(OSError, ValueError, IndexError):
                total += int(Path(f"/proc/{pid}/statm").read_text().split()[1])
        return total * resource.getpagesize()

    def finish(self, timeout=60):
        if not self.wait(timeout):
            self.signal(signal.SIGKILL)
            self.wait(5)
            raise AssertionError(f"caisson hung for {timeout} s: {self.result_or_bytes()}")
        return Result(self, self.is_json)


def start(args=(), *, code=None, argv=None, lang=None, payload=None, json_result=True,
          stdin=b"", stdin_open=False, keep=64 << 20, on_output=None, popen=None, **opts):
    """Start a cell and return it running. Options as for cell()."""
    if payload:
        argv = [f"{PAYLOAD_DIR}/{payload}"]
    line = command(args, code=code, lang=lang, argv=argv, payload_name=payload,
                   json_result=json_result, **opts)
    return Running(line, json_result, stdin=stdin, stdin_open=stdin_open, keep=keep,
                   on_output=on_output, **(popen or {}))


def cell(args=(), *, outer_timeout=60, **how):
    """Run one cell to its end.

    args            arguments of the program
    code=, lang=    code for `caisson run`; or argv=[...] for `caisson exec`; or payload="a_name"
    json_result     False: streams pass through, .stdout and .stderr are what arrived
    stdin=          bytes for the program
    anything else   an option of caisson: memory="64M", pids=16, without="seccomp", env={"K": "V"},
                    mount=["/src:/dst"], receipt=True
    """
    return start(args, **how).finish(outer_timeout)


def good_after():
    """Run a known-good program, which must pass at once. Damage by an attack shows here."""
    a, b = random.randrange(10**6), random.randrange(10**6)
    r = cell(code=f"import os\nprint({a} * {b}, os.getuid())", outer_timeout=30)
    assert r.status == "ok" and r.stdout == f"{a * b} 1000\n".encode(), f"known-good program failed: {r}"
    assert r["limits_hit"] == [] and r.cause == {}, f"known-good program hit a limit: {r}"


# ---- control runs -------------------------------------------------------------------------------

class Control:
    """The result of a payload on the host, with no layer of ours around it except the bounds."""

    def __init__(self, process, group, timed_out):
        self.exit = process.popen.returncode
        self.timed_out = timed_out
        self.stdout, self.stderr = bytes(process.out), bytes(process.err)
        self.out_bytes = process.out_bytes
        self.seconds = process.seconds
        self.pids_denied, self.pids_peak = group.pids_denied(), group.pids_peak()
        self.oom_kills, self.memory_peak = group.oom_kills(), group.memory_peak()
        self.cpu_ns = group.cpu_ns()

    def __repr__(self):
        return f"<control {self.__dict__}>"


def control(argv, *, timeout=5.0, pids=CONTROL_PIDS, memory=CONTROL_MEMORY, uid=CONTROL_UID,
            stdin=b"", keep=KEEP, env=None, cwd=None, watch=None, begun=None):
    """Run a program on the host: unprivileged user, own pid, ipc and mount namespace, tight cgroup.

    .exit is a shell's: 128 + n for a signal; -9 when the run was ended from here.
    @watch(process, group) is called every 20 ms while it runs; a true value ends the run early.
    @begun(process, group): its time begins when that is true. A busy machine may delay it for a while.
    Nothing of it is left when this returns.
    """
    s = session()
    argv = [str(a) for a in (argv if isinstance(argv, (list, tuple)) else [argv])]
    s.n_control += 1
    group = s.guard.sub(f"control-{s.n_control}", pids, memory)
    line = ["unshare", "--pid", "--fork", "--kill-child=SIGKILL", "--ipc", "--mount-proc",
            "setpriv", f"--reuid={uid}", f"--regid={uid}", "--clear-groups", "--no-new-privs", "--",
            # Pid 1 is a shell, because signals do not reach a pid 1 as they reach other programs.
            "/bin/sh", "-c", '"$@"; exit $?', "sh", *argv]
    scratch = Path(tempfile.mkdtemp(prefix=OWN_PREFIX, dir="/dev/shm"))  # as in a cell: memory
    os.chown(scratch, uid, uid)
    p, timed_out = None, False
    try:
        p = Process(line, stdin=stdin, keep=keep, enter=group, cwd=cwd or scratch,
                    env={**host_env(), **(env or {})}, start_new_session=True)
        end = time.monotonic() + (max(at_most(timeout), 10) if begun else timeout)
        while not p.wait(0.02):
            if watch and watch(p, group):
                break
            if begun and begun(p, group):
                begun, end = None, time.monotonic() + timeout
            if time.monotonic() > end:
                timed_out = True
                break
        if not p.wait(0):
            # Its pid 1, and with it the rest; unshare then reaps, and no zombie is left.
            with contextlib.suppress(OSError):  # it may end by itself just now
                for child in Path(f"/proc/{p.pid}/task/{p.pid}/children").read_text().split():
                    os.kill(int(child), signal.SIGKILL)
            if not p.wait(2):
                group.kill()
                p.wait(5)
        return Control(p, group, timed_out)
    finally:
        group.kill()
        if p:
            p.wait(5)
        group.remove()
        subprocess.run(["rm", "-rf", str(scratch)], check=False)  # deeper than Python can follow


class VoidTest(AssertionError):
    """The control run did not succeed, so the test proves nothing."""


def landed(condition, what):
    """With the layer off the attack must succeed; otherwise the test is void, and fails."""
    if not condition:
        raise VoidTest(f"void: the control run did not land: {what}")


# ---- neighbours ---------------------------------------------------------------------------------

class Neighbour:
    """The cells of others beside an attack: latency of a small program, before, during and after."""

    CODE = "print(1)"

    def __init__(self, runs=10):
        self.runs = runs if EXACT else 3
        self.before = self.sample()

    def once(self):
        t = time.monotonic()
        r = cell(code=self.CODE, outer_timeout=30)
        assert r.status == "ok" and r.stdout == b"1\n", f"neighbour failed: {r}"
        return time.monotonic() - t

    def sample(self):
        return [self.once() for _ in range(self.runs)]

    def beside(self, attack, factor=2.0, slack=0.1):
        """Measure during @attack (Running), end it, and measure again. Returns its result.

        The median during the attack may be @factor times the quiet one, plus @slack seconds. Others may begin or stop to work
        meanwhile, so the quiet one is the slower of before and after.
        """
        during = self.sample()
        assert attack.popen.poll() is None, f"the attack was over too soon: {attack.result_or_bytes()}"
        attack.signal(signal.SIGTERM)
        result = attack.finish()
        after = self.sample()
        quiet = max(statistics.median(self.before), statistics.median(after))
        loud = statistics.median(during)
        print(f"neighbour's median: quiet {quiet * 1000:.0f} ms, beside the attack {loud * 1000:.0f} ms")
        assert loud <= at_most(quiet * factor + slack), \
            f"neighbours suffer: median {quiet * 1000:.0f} ms became {loud * 1000:.0f} ms"
        assert max(during) < at_most(5), f"a neighbour waited {max(during):.1f} s"
        return result


# ---- words about limits -------------------------------------------------------------------------

def check_limit(r, status, kind, exit_code, limit=None, peak=None):
    """The result is consistent: status, cause, limit, peak, hint, exit code."""
    assert r.status == status, r
    assert r.kind == kind, r
    assert r["exit_code"] == exit_code == r.exit, r
    assert kind in r["limits_hit"], r
    if limit is not None:
        assert r.cause["limit"] == limit, r
    if peak is not None:
        low, high = peak
        assert low <= r.cause["peak"] <= high, r
    hint = r.cause["hint"]
    assert hint and "\n" not in hint and len(hint) < 250, r
    return hint


def check_wall(r, seconds, slack=SLACK, load=0.35):
    """Ended by the wall clock, on time: @slack is ours, @load is the cost of a busy machine."""
    hint = check_limit(r, "timeout", "wall", 124, limit=int(seconds * 1000))
    wall = r.usage["wall_ns"] / 1e9
    assert seconds <= wall <= seconds + at_most(slack), f"wall {wall:.3f} s for a limit of {seconds} s: {r}"
    assert r.cause["peak"] == r.usage["wall_ns"] // 1000000, r
    assert r.seconds <= seconds + at_most(slack + load + 0.5), f"teardown took {r.seconds - wall:.2f} s: {r}"
    assert "--timeout" in hint, r
