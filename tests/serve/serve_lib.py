# SPDX-License-Identifier: Apache-2.0
"""serve_lib.py - Shared by the tests of `caisson serve`: a daemon, clients for it, and functions that inspect it.

A Daemon runs in cgroups of its own, below those of the whole session (Place, tests/integ/integ_lib.py): so all its
processes are found there, under any parent, and "nothing is left" can be checked exactly. The tests judge a cell from
outside wherever that is possible.
"""
import json
import os
import re
import shutil
import signal
import struct
import subprocess
import sys
import threading
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parents[1] / d) for d in ("lib", "integ")]

from daemon import BareDaemon, Socket, Stream, make_frame, read_response  # noqa: E402
from integ_lib import USER, Place, as_user, clean_env, records  # noqa: E402
from process import (BIN, HANG, SLOW, Later, alive, below, call_yourself, children, memory_kb, name_of, no_report, space_of,  # noqa: E402
                     status_of, unique, wait_until)

GUEST = BIN.parent / "guest"
# Variables that would change what a daemon does.
ELDER = ("MAX_EXECUTION_TIME", "MAX_MEMORY_MB", "BLOCKED_PACKAGES", "LOG_LEVEL")
IN_CGROUPS = 'while [ "$1" != -- ]; do echo $$ >"$1/cgroup.procs"; shift; done; shift; exec "$@"'


# ---- the daemon ---------------------------------------------------------------------------------------


def with_fixtures(where):
    """A `caisson` whose front offers the fixtures of the MCP conformance suite. Programs find each other beside their own
    executable, so this makes a directory with all of them; links would lead back to the shipped front."""
    programs = Path(where) / "with-fixtures"
    if not programs.exists():
        programs.mkdir()
        for program in BIN.parent.glob("caisson*"):
            if program.is_file():
                shutil.copy2(program, programs)
        shutil.copy2(BIN.parent / "tests/caisson-front-conformance", programs / "caisson-front")
        (programs / "guest").symlink_to(BIN.parent / "guest")
    return programs / "caisson"


class Daemon(BareDaemon):
    """`caisson serve` with these flags, without the package indexes of this machine and without pulls of images: tests use their
    own. Use it as a context manager, or call stop()."""

    def __init__(self, where, *flags, env=None, wait=True, scheme="http", **how):
        env = {**{k: None for k in ELDER}, "CAISSON_STATE": None, "CAISSON_PIP_INDEX": "none", "CAISSON_NPM_REGISTRY": "none", "CAISSON_IMAGE_PULL": "never",
               **(env or {})}
        super().__init__(where, *flags, env=env, **how)
        self.scheme, self.dirs, self.code = scheme, None, None
        self.start()
        if wait:
            try:
                self.wait_ready()
            except BaseException:
                self.kill()
                raise

    # -- life --

    def environment(self):
        return clean_env(**self.env)

    def start(self):
        """Start it; also again after an end, with the same flags, state and port."""
        self.dirs = []
        for d in Place.dirs.values():
            mine = d / ("serve-%d" % next(self.numbers))
            mine.mkdir()
            self.dirs.append(mine)
        self.launch("/bin/sh", "-c", IN_CGROUPS, "sh", *map(str, self.dirs), "--")
        self.code = None

    def end(self, seconds=HANG // SLOW):
        """Wait for the end of a daemon that is ending. Returns its exit code."""
        self.code = self.p.wait(seconds * SLOW)
        return self.code

    def stop(self, sig=signal.SIGTERM, seconds=HANG // SLOW, code=0):
        """End the daemon; it must exit with the expected code, and leave nothing."""
        if self.running():
            self.p.send_signal(sig)
        assert self.end(seconds) == code, "ended with %d: %s" % (self.code, self.log_text()[-2000:])
        left = self.settled()
        self.kill()
        assert not left, left

    def kill(self):
        """End everything of it, in any case."""
        if self.p.poll() is None:
            self.p.send_signal(signal.SIGSTOP)  # otherwise it would start another front, or the front would report this
            front = self.find_front()
            if front:
                os.kill(front, signal.SIGKILL)
            self.p.kill()
        self.p.wait()
        for pid in self.processes():
            try:
                os.kill(pid, signal.SIGKILL)  # in our own cgroup: this daemon started it
            except ProcessLookupError:
                pass
        wait_until(lambda: not self.processes())
        self.remove_cgroups()
        note_answers(self)
        no_report(self.log_path.read_bytes())

    def remove_cgroups(self):
        def gone():
            for d in self.dirs:
                for sub in sorted((where for where, _, _ in os.walk(d)), reverse=True):
                    try:
                        os.rmdir(sub)
                    except OSError:
                        pass
            return not any(d.exists() for d in self.dirs)
        wait_until(gone, 2)

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        if self.dirs and any(d.exists() for d in self.dirs) or self.running():
            if kind:
                self.kill()
            else:
                self.stop()

    # -- processes --

    def processes(self):
        """All running processes that it started."""
        pids = set()
        for d in self.dirs:
            for where, _, _ in os.walk(d):
                try:
                    pids |= {int(p) for p in Path(where, "cgroup.procs").read_text().split()}
                except OSError:
                    pass  # it ended in the meantime
        pids = {p for p in pids if p and alive(p)}
        if not self.dirs:
            pids = set(below(self.keeper))
        return sorted(pids)

    def cgroups(self):
        return [Path(where) for d in self.dirs for where, _, _ in os.walk(d) if where != str(d)]

    def left(self):
        left = ["process %d (%s)" % (p, name_of(p)) for p in self.processes()]
        left += ["cgroup %s" % c for c in self.cgroups()]
        left += ["record %s" % r for r in records(self.state)]
        if (self.state / "quarantine").exists():
            left += ["quarantine %s" % p for p in (self.state / "quarantine").iterdir()]
        return left

    def settled(self, seconds=30):
        wait_until(lambda: not self.left(), seconds)
        return self.left()

    def warden(self):
        pid = self.find_warden()
        assert pid, "no warden"
        return pid

    def inits(self):
        return [p for p in children(self.warden()) if name_of(p) == "caisson-init"]

    def init_of(self, pid):
        """Pid 1 of the cell of this process."""
        return next(p for p in self.inits() if space_of(p) == space_of(pid))

    def zygote(self):
        """The warm interpreter: a child of the warden that is in no cell's pid namespace."""
        for p in children(self.warden()):
            try:
                if b"zygote" in Path("/proc/%d/cmdline" % p).read_bytes() and len(status_of(p)["NSpid"].split()) == 1:
                    return p
            except OSError:
                pass
        return None

    def kernels(self):
        """Processes in cells that are not init: {host pid: pid namespace}."""
        found = {}
        for p in self.processes():
            try:
                if len(status_of(p)["NSpid"].split()) > 1 and name_of(p) != "caisson-init":
                    found[p] = os.readlink("/proc/%d/ns/pid" % p)
            except (OSError, KeyError):
                pass
        return found

    def named(self, comm):
        """Processes with this name: that of a program, or one that a process gave itself (at most 15 characters)."""
        return [p for p in self.processes() if name_of(p) == comm]

    # -- requests --

    def get(self, path, **kw):
        return self.request("GET", path, **kw)

    def post(self, path, body, **kw):
        return self.request("POST", path, body, **kw)

    def raw(self, data, n=None, timeout=30):
        """Send bytes unchanged. Returns n answers, or all until the daemon closes."""
        with self.connect(timeout) as s, s.makefile("rb") as f:
            s.sendall(data)
            answers = []
            while n is None or len(answers) < n:
                r = read_response(f)
                if r is None:
                    return answers
                answers.append(r)
            return answers

    def execute(self, code, timeout=None, token=None, **fields):
        """Run code; the answer must be a result. Returns the object."""
        r = self.try_execute(code, timeout=timeout, token=token, **fields)
        assert r.status == 200, r
        return r.json

    def try_execute(self, code, timeout=None, token=None, **fields):
        body = {"code": code, **fields}
        if timeout is not None:
            body["timeout"] = timeout
        return self.post("/execute", body, token=token, timeout=max(60, (timeout or 0) + 30))

    def begin(self, code, **fields):
        """Run code in a thread; result() of the returned object waits for it."""
        return Later(lambda: self.try_execute(code, **fields))

    def stream(self, code, **fields):
        return Stream(self, {"code": code, "stream": True, **fields})

    def websocket(self, **kw):
        return WebSocket(self, **kw)


class UsersDaemon(Daemon):
    """A daemon of an ordinary user, in cgroups that were delegated to that user: waits until they are."""

    def __init__(self, where, *flags, **kw):
        super().__init__(where, *flags, binary="/bin/sh", stdin=subprocess.PIPE, wait=False, **kw)
        self.wait_ready()

    def start(self):
        if self.argv[0] == "/bin/sh":
            self.argv = ["/bin/sh", "-c", 'read go; exec "$@" </dev/null', "sh", *as_user(), str(BIN), *self.argv[1:]]
        super().start()
        for d in self.dirs:
            for at, _, files in os.walk(d):
                for name in (".", *files):
                    os.chown(os.path.join(at, name), USER, USER)
        self.p.stdin.write(b"go\n")
        self.p.stdin.close()


def note_answers(d):
    """With $CAISSON_COVERAGE: keep the answers of this daemon, from its log, for tools/api-coverage.py."""
    where = os.environ.get("CAISSON_COVERAGE")
    if not where:
        return
    seen = set()
    for line in d.log_text().splitlines():
        if '"event":"request"' in line:
            try:
                e = json.loads(line)
            except ValueError:
                continue  # cut by a kill
            seen.add((e["method"], e["path"], e["status"], e["code"]))
    with open(Path(where) / ("%d.jsonl" % os.getpid()), "a") as f:
        f.writelines(json.dumps(s) + "\n" for s in sorted(seen))


# ---- live streams ----------------------------------------------------------------------------------------


class WebSocket(Socket):
    """The part of RFC 6455 that a client needs here."""

    TEXT, BINARY, CLOSE, PING, PONG = 1, 2, 8, 9, 10
    closed = None  # the code with which the daemon closed

    def frame(self, opcode, data, fin=True):
        self.s.sendall(make_frame(opcode, data, fin))

    def execute(self, code, **fields):
        self.send({"type": "execute", "code": code, **fields})

    def receive(self):
        """The next message, or None when the connection is closed."""
        while True:
            opcode, data = self.read()
            if opcode == self.PING:
                self.frame(self.PONG, data)
            elif opcode in (None, self.CLOSE):
                self.closed = struct.unpack(">H", data[:2])[0] if len(data) >= 2 else 1006 if opcode is None else 1005
                return None
            elif opcode == self.TEXT:
                return json.loads(data.decode())

    def until(self, *types):
        """All messages up to the first one of these types."""
        got = []
        while True:
            m = self.receive()
            assert m is not None, "closed (%s) after %r" % (self.closed, got[-3:])
            got.append(m)
            if m["type"] in types:
                return got

    def run(self, code, **fields):
        """Execute to the end; the result object."""
        self.execute(code, **fields)
        last = self.until("done", "refused")[-1]
        assert last["type"] == "done", last
        return last["result"]

    def close(self, code=1000):
        try:
            self.frame(self.CLOSE, struct.pack(">H", code))
        except OSError:
            pass
        self.hang_up()


# ---- checks of answers -------------------------------------------------------------------------------------


def total(metrics, name, **labels):
    """The sum over all label sets that have these labels."""
    want = ['%s="%s"' % kv for kv in labels.items()]
    return sum(v for k, v in metrics.items() if k.partition("{")[0] == name and all(w in k for w in want))


def check_schema(value, schema, document, path="$"):
    """Check the part of JSON Schema that the OpenAPI document uses. Returns the violations."""
    while "$ref" in schema:
        where = document
        for part in schema["$ref"].lstrip("#/").split("/"):
            where = where[part]
        schema = where
    if "oneOf" in schema:
        fits = [s for s in schema["oneOf"] if not check_schema(value, s, document, path)]
        return [] if len(fits) == 1 else ["%s fits %d of oneOf: %r" % (path, len(fits), value)]
    wrong = []
    kinds = schema.get("type")
    if kinds:
        of = {"object": dict, "array": list, "string": str, "boolean": bool, "null": type(None),
              "integer": int, "number": (int, float)}
        kinds = kinds if isinstance(kinds, list) else [kinds]
        if not any(isinstance(value, of[k]) and not (isinstance(value, bool) and k in ("integer", "number")) for k in kinds):
            return ["%s is no %s: %r" % (path, "/".join(kinds), value)]
    if "enum" in schema and value not in schema["enum"]:
        wrong.append("%s is none of %r: %r" % (path, schema["enum"], value))
    if "minimum" in schema and value < schema["minimum"]:
        wrong.append("%s is below %r: %r" % (path, schema["minimum"], value))
    if "pattern" in schema and isinstance(value, str) and not re.search(schema["pattern"], value):
        wrong.append("%s does not match %s: %r" % (path, schema["pattern"], value))
    if isinstance(value, dict):
        properties = schema.get("properties", {})
        wrong += ["%s.%s is missing" % (path, k) for k in schema.get("required", []) if k not in value]
        for k, v in value.items():
            if k in properties:
                wrong += check_schema(v, properties[k], document, "%s.%s" % (path, k))
            elif schema.get("additionalProperties") is False:
                wrong.append("%s.%s is not declared" % (path, k))
    if isinstance(value, list) and "items" in schema:
        for i, v in enumerate(value):
            wrong += check_schema(v, schema["items"], document, "%s[%d]" % (path, i))
    return wrong


class Peak(threading.Thread):
    """The peak memory of the daemon during this block."""

    def __init__(self, pid):
        super().__init__(daemon=True)
        self.pid, self.peak, self.over = pid, 0, threading.Event()
        self.first = memory_kb(pid)
        self.start()

    def run(self):
        while not self.over.wait(0.02):
            self.peak = max(self.peak, memory_kb(self.pid))

    def grown(self):
        self.over.set()
        self.join()
        return self.peak - self.first


class Held:
    """Code that waits in its sandbox until the test lets it continue; it then ends, and not before."""

    def __init__(self, daemon, then=""):
        self.daemon, self.mark = daemon, unique("held")[:15]
        self.code = ("import signal, time\ngo = []\nsignal.signal(signal.SIGUSR1, lambda *_: go.append(1))\n" + call_yourself(self.mark) +
                     "while not go: time.sleep(0.01)\n" + then)

    def there(self):
        return wait_until(lambda: self.daemon.named(self.mark))

    def let_go(self):
        pid, = self.there()
        os.kill(pid, signal.SIGUSR1)  # of the test's own daemon


def parallel(calls):
    """Run all of them at once; their results in order."""
    begun = [Later(c) for c in calls]
    return [b.result() for b in begun]
