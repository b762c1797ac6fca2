# SPDX-License-Identifier: Apache-2.0
"""serve_lib.py - What the tests of `caisson serve` share: a daemon, clients for it, and eyes.

A Daemon is the real program on a free port with a state directory of its own. It runs in cgroups of
its own, below those that the whole session has (Place, tests/integ/integ_lib.py): so everything it
ever started is found there, whoever its parent is by then, and "nothing is left" has an exact
answer. What happened in a cell is judged from outside wherever that is possible.
"""
import base64
import http.client
import json
import os
import re
import secrets
import shutil
import signal
import socket
import struct
import subprocess
import sys
import threading
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "integ"))

from integ_lib import BIN, HANG, SLOW, USER, Place, alive, as_user, children, clean_env, free_port, name_of, no_report, records, wait_until  # noqa: E402

GUEST = BIN.parent / "guest"
START_SECONDS = 90
# Variables that would change what a daemon does.
ELDER = ("MAX_EXECUTION_TIME", "MAX_MEMORY_MB", "BLOCKED_PACKAGES", "LOG_LEVEL")
IN_CGROUPS = 'while [ "$1" != -- ]; do echo $$ >"$1/cgroup.procs"; shift; done; shift; exec "$@"'


def unique(prefix="t"):
    return "%s-%s" % (prefix, secrets.token_hex(4))


# ---- answers ------------------------------------------------------------------------------------------


class Response:
    """An answer as it came. headers has lower-case names; a name that came twice is a failure."""

    def __init__(self, status, headers, body):
        self.status, self.body = status, body
        self.headers = {}
        for name, value in headers:
            assert name.lower() not in self.headers, "%s was sent twice" % name
            self.headers[name.lower()] = value

    @property
    def json(self):
        return json.loads(self.body)

    @property
    def error(self):
        """The error of an answer that must be one, in the one shape that there is."""
        check_error(self)
        return self.json["error"]

    def __repr__(self):
        return "<%d %r %r>" % (self.status, self.headers, self.body[:600])


def check_error(r):
    assert r.status >= 400, r
    assert r.headers["content-type"].split(";")[0] == "application/json", r
    d = r.json
    assert list(d) == ["error"], r
    e = d["error"]
    assert {"code", "message"} <= set(e) <= {"code", "message", "field", "hint"}, r
    assert all(isinstance(v, str) and v for v in e.values()), r
    assert re.fullmatch("[a-z][a-z0-9_]*", e["code"]), r
    if r.status in (429, 503):
        assert int(r.headers["retry-after"]) >= 1, r


def read_response(f):
    """One answer from a file of a socket, as bytes on the wire say. None at its end."""
    line = f.readline()
    if not line:
        return None
    status = int(line.split()[1])
    headers = []
    while True:
        line = f.readline().rstrip(b"\r\n")
        if not line:
            break
        name, _, value = line.decode("latin-1").partition(":")
        headers.append((name, value.strip()))
    h = {n.lower(): v for n, v in headers}
    if "content-length" in h:
        body = f.read(int(h["content-length"]))
    elif h.get("transfer-encoding") == "chunked":
        body = b""
        while True:
            n = int(f.readline(), 16)
            chunk = f.read(n + 2)[:-2]
            if n == 0:
                break
            body += chunk
    elif status in (101, 204, 304):
        body = b""
    else:
        body = f.read()
    return Response(status, headers, body)


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


class Daemon:
    """`caisson serve` with the flags given, and without the indexes of packages that this machine uses: tests ask their own. Use
    as a context, or call stop() yourself."""

    numbers = iter(range(1, 1 << 30))

    def __init__(self, where, *flags, state=None, env=None, listen="127.0.0.1", socket="none", wait=True, binary=None,
                 log_format="json", scheme="http", any_port=False, **popen):
        self.where = Path(where) / ("daemon-%d" % next(self.numbers))
        self.where.mkdir()
        self.state = Path(state or self.where / "state")
        self.scheme, self.token = scheme, None
        self.port = free_port() if listen != "none" else None
        self.log_path, self.out_path = self.where / "log", self.where / "out"
        self.argv = [str(binary or BIN), "serve", "--state", str(self.state), "--socket", str(socket),
                     "--listen", "%s:%d" % (listen, 0 if any_port else self.port) if self.port else "none"]
        if log_format:
            self.argv += ["--log-format", log_format]
        self.argv += map(str, flags)
        self.env = {**{k: None for k in ELDER}, "CAISSON_STATE": None, "CAISSON_PIP_INDEX": "none", "CAISSON_NPM_REGISTRY": "none", **(env or {})}
        self.popen = popen
        self.dirs = self.p = None
        self.code = None
        self.start()
        if wait:
            try:
                self.wait_ready()
            except BaseException:
                self.kill()
                raise

    # -- life --

    def start(self):
        """Also again, after an end: same flags, same state, same port."""
        self.dirs = []
        for d in Place.dirs.values():
            mine = d / ("serve-%d" % next(self.numbers))
            mine.mkdir()
            self.dirs.append(mine)
        with open(self.out_path, "wb") as out, open(self.log_path, "ab") as log:
            self.p = subprocess.Popen(["/bin/sh", "-c", IN_CGROUPS, "sh", *map(str, self.dirs), "--", *self.argv],
                                      **{"stdin": subprocess.DEVNULL, "stdout": out, "stderr": log,
                                         "env": clean_env(**self.env), "cwd": self.where, **self.popen})
        self.code = None

    @property
    def keeper(self):
        """What was started: it starts the front, and starts it again."""
        return self.p.pid

    @property
    def pid(self):
        """The front's. It is there a moment after the start, and another one after a kill."""
        return wait_until(self.find_front)

    def find_front(self):
        return next((p for p in children(self.keeper) if name_of(p) == "caisson-front"), None)

    def ready(self):
        if self.p.poll() is not None:
            raise AssertionError("the daemon ended with %d: %s" % (self.p.returncode, self.log_text()[-2000:]))
        try:
            h = self.health()
        except OSError:
            return None
        return h if h["status"] == "healthy" and h["pool"]["making"] == 0 and self.filled(h) else None

    @staticmethod
    def filled(h):
        return h["pool"]["kernels_ready"] >= min(h["pool"]["target"], 1) or "python" not in h["languages"]

    def wait_ready(self, seconds=START_SECONDS):
        assert self.port, "nowhere to ask"
        h = wait_until(self.ready, seconds)
        assert h, "not ready after %d s: %s" % (seconds, self.log_text()[-2000:])
        return h

    def running(self):
        return self.p.poll() is None

    def end(self, seconds=HANG // SLOW):
        """Wait for the end of a daemon that was told to end. Returns its exit code."""
        self.code = self.p.wait(seconds * SLOW)
        return self.code

    def stop(self, sig=signal.SIGTERM, seconds=HANG // SLOW, code=0):
        """Tell it to end; it has to, with the code that is expected, and leave nothing."""
        if self.running():
            self.p.send_signal(sig)
        assert self.end(seconds) == code, "ended with %d: %s" % (self.code, self.log_text()[-2000:])
        left = self.settled()
        self.kill()
        assert not left, left

    def kill(self):
        """Whatever happened, nothing of it runs after this."""
        if self.p.poll() is None:
            self.p.send_signal(signal.SIGSTOP)  # or it would start another front, or the front say something
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
        no_report(self.log_text().encode())

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

    # -- what is there --

    def processes(self):
        """Everything that it started and that runs."""
        pids = set()
        for d in self.dirs:
            for where, _, _ in os.walk(d):
                try:
                    pids |= {int(p) for p in Path(where, "cgroup.procs").read_text().split()}
                except OSError:
                    pass  # it went while we looked
        pids = {p for p in pids if p and alive(p)}
        if not self.dirs:
            pids = set(self.family())
        return sorted(pids)

    def family(self, pid=None):
        found = []
        for c in children(pid or self.keeper):
            found += [c, *self.family(c)]
        return found

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
        """A child of the front that started it; of the keeper, when that one was killed."""
        return next(p for parent in (self.pid, self.keeper) for p in children(parent) if name_of(p) == "caisson-warden")

    def inits(self):
        return [p for p in children(self.warden()) if name_of(p) == "caisson-init"]

    def init_of(self, pid):
        """Pid 1 of the cell where this one is."""
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

    # -- asking --

    def connect(self, timeout=60):
        s = socket.create_connection(("127.0.0.1", self.port), timeout * SLOW)
        s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return s

    def request(self, method, path, body=None, headers=None, timeout=60, token=None):
        h = dict(headers or {})
        if token or self.token:
            h.setdefault("Authorization", "Bearer " + (token or self.token))
        if body is not None and not isinstance(body, (bytes, str)):
            body = json.dumps(body)
            h.setdefault("Content-Type", "application/json")
        c = http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout * SLOW)
        try:
            c.request(method, path, body.encode() if isinstance(body, str) else body,
                      {k: v for k, v in h.items() if v is not None})
            r = c.getresponse()
            return Response(r.status, r.getheaders(), r.read())
        finally:
            c.close()

    def get(self, path, **kw):
        return self.request("GET", path, **kw)

    def post(self, path, body, **kw):
        return self.request("POST", path, body, **kw)

    def raw(self, data, n=None, timeout=30):
        """Bytes as they are. Returns n answers, or all until the daemon closes."""
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
        """Run code in a thread of our own; the returned object's result() waits for it."""
        return Later(lambda: self.try_execute(code, **fields))

    def health(self):
        return self.get("/health", timeout=30).json

    def metrics(self):
        r = self.get("/metrics")
        assert r.status == 200, r
        return parse_metrics(r.body.decode())

    def sessions(self, token=None):
        return {s["session_id"]: s for s in self.get("/sessions", token=token).json["sessions"]}

    def end_session(self, name, token=None):
        return self.request("DELETE", "/sessions/" + name, token=token)

    def stream(self, code, **fields):
        return Stream(self, {"code": code, "stream": True, **fields})

    def websocket(self, **kw):
        return WebSocket(self, **kw)

    # -- the log --

    def log_text(self):
        try:
            return self.log_path.read_text(errors="replace")
        except OSError:
            return ""

    def log(self, event=None):
        lines = [json.loads(line) for line in self.log_path.read_bytes().splitlines()]
        return [e for e in lines if event in (None, e["event"])]


class UsersDaemon(Daemon):
    """As an ordinary user, in cgroups that were given to that one: it waits until they are."""

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
    """With $CAISSON_COVERAGE: keep what this daemon answered, by its own log, for tools/api-coverage.py."""
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


class Later:
    """A call in a thread."""

    def __init__(self, call):
        self.value = self.problem = None
        self.call = call
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def run(self):
        try:
            self.value = self.call()
        except BaseException as e:
            self.problem = e

    def done(self):
        return not self.thread.is_alive()

    def result(self, seconds=150):
        self.thread.join(seconds * SLOW)
        assert self.done(), "no answer after %d s" % seconds
        if self.problem:
            raise self.problem
        return self.value


# ---- live streams ----------------------------------------------------------------------------------------


class Stream:
    """POST /execute with Server-Sent Events: iterate over (event, data), as they come."""

    method, path = "POST", "/execute"

    def __init__(self, daemon, body, headers=None, receive_buffer=None, timeout=60):
        self.s = socket.socket()
        if receive_buffer:
            self.s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        self.s.settimeout(timeout * SLOW)
        self.s.connect(("127.0.0.1", daemon.port))
        text = b"" if body is None else json.dumps(body).encode()
        head = {"Host": "127.0.0.1:%d" % daemon.port, **(headers or {})}
        if body is not None:
            head = {"Content-Type": "application/json", "Content-Length": str(len(text)), **head}
        self.s.sendall(b"%s %s HTTP/1.1\r\n" % (self.method.encode(), self.path.encode()) + b"".join(
            b"%s: %s\r\n" % (k.encode(), v.encode()) for k, v in head.items()) + b"\r\n" + text)
        self.f = None

    def open(self):
        """Read the head of the answer."""
        self.f = self.s.makefile("rb")
        line = self.f.readline()
        self.status = int(line.split()[1])
        self.headers = {}
        while True:
            line = self.f.readline().rstrip(b"\r\n").decode("latin-1")
            if not line:
                return self
            name, _, value = line.partition(":")
            self.headers[name.lower()] = value.strip()

    def chunks(self):
        assert self.headers.get("transfer-encoding") == "chunked", self.headers
        while True:
            line = self.f.readline()
            if not line:
                raise ConnectionError("the stream was cut")
            n = int(line, 16)
            data = self.f.read(n + 2)[:-2]
            if n == 0:
                return
            yield data

    def __iter__(self):
        if not self.f:
            self.open()
        text = b""
        for chunk in self.chunks():
            text += chunk
            while b"\n\n" in text:
                block, _, text = text.partition(b"\n\n")
                event, data = "message", []
                for line in block.split(b"\n"):
                    key, _, value = line.partition(b":")
                    if key == b"event":
                        event = value.strip().decode()
                    elif key == b"data":
                        data.append(value[1:] if value.startswith(b" ") else value)
                if any(data):  # an empty one is for the client's place in the stream alone
                    yield event, json.loads(b"\n".join(data))
        assert not text, "the stream ends in the middle of an event: %r" % text[-200:]

    def all(self):
        return list(self)

    def close(self):
        if self.f:
            self.f.close()
        self.s.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


class WebSocket:
    """As much of RFC 6455 as a client needs here."""

    TEXT, BINARY, CLOSE, PING, PONG = 1, 2, 8, 9, 10

    def __init__(self, daemon, path="/execute/ws", headers=None, timeout=60):
        self.s = daemon.connect(timeout)
        key = base64.b64encode(secrets.token_bytes(16)).decode()
        head = {"Host": "127.0.0.1:%d" % daemon.port, "Upgrade": "websocket", "Connection": "Upgrade",
                "Sec-WebSocket-Key": key, "Sec-WebSocket-Version": "13", **(headers or {})}
        if daemon.token:
            head.setdefault("Authorization", "Bearer " + daemon.token)
        self.s.sendall(b"GET %s HTTP/1.1\r\n" % path.encode() + b"".join(
            b"%s: %s\r\n" % (k.encode(), v.encode()) for k, v in head.items()) + b"\r\n")
        self.f = self.s.makefile("rb")
        self.answer = read_response(self.f)
        self.closed = None  # the code with which the daemon closed

    def frame(self, opcode, data, fin=True):
        mask = secrets.token_bytes(4)
        n = len(data)
        head = bytes([opcode | (0x80 if fin else 0)])
        head += bytes([0x80 | n]) if n < 126 else \
            bytes([0x80 | 126]) + struct.pack(">H", n) if n < 65536 else bytes([0x80 | 127]) + struct.pack(">Q", n)
        body = (int.from_bytes(data, "big") ^ int.from_bytes((mask * (n // 4 + 1))[:n], "big")).to_bytes(n, "big")
        self.s.sendall(head + mask + body)

    def send(self, message):
        self.frame(self.TEXT, (message if isinstance(message, str) else json.dumps(message)).encode())

    def execute(self, code, **fields):
        self.send({"type": "execute", "code": code, **fields})

    def read_frame(self):
        head = self.f.read(2)
        if len(head) < 2:
            return None, b""
        assert not head[1] & 0x80, "a server does not mask"
        n = head[1] & 0x7f
        if n == 126:
            n, = struct.unpack(">H", self.f.read(2))
        elif n == 127:
            n, = struct.unpack(">Q", self.f.read(8))
        return head[0] & 0x0f, self.f.read(n)

    def receive(self):
        """The next message, or None when it is closed."""
        while True:
            opcode, data = self.read_frame()
            if opcode == self.PING:
                self.frame(self.PONG, data)
            elif opcode in (None, self.CLOSE):
                self.closed = struct.unpack(">H", data[:2])[0] if len(data) >= 2 else 1006 if opcode is None else 1005
                return None
            elif opcode == self.TEXT:
                return json.loads(data.decode())

    def until(self, *types):
        """All messages up to the first of one of these types."""
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

    def hang_up(self):
        self.f.close()
        self.s.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.hang_up()


# ---- reading what it says ----------------------------------------------------------------------------------


def parse_metrics(text):
    """{name{labels}: value} of Prometheus' text form."""
    found = {}
    for line in text.splitlines():
        if line and not line.startswith("#"):
            name, _, value = line.rpartition(" ")
            assert name not in found, "twice: %s" % name
            found[name] = float(value)
    return found


def total(metrics, name, **labels):
    """The sum over all label sets that have these labels."""
    want = ['%s="%s"' % kv for kv in labels.items()]
    return sum(v for k, v in metrics.items() if k.partition("{")[0] == name and all(w in k for w in want))


def check_schema(value, schema, document, path="$"):
    """The part of JSON Schema that the OpenAPI document uses. Returns what is wrong."""
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


def status_of(pid):
    """/proc/PID/status as a dictionary."""
    return dict(line.split(":\t", 1) for line in Path("/proc/%d/status" % pid).read_text().splitlines() if ":\t" in line)


def space_of(pid):
    """Its pid namespace; None of one that has ended, as any that is not the test's own may have by now."""
    try:
        return os.readlink("/proc/%d/ns/pid" % pid)
    except OSError:
        return None


def memory_kb(pid, key="VmRSS"):
    return int(status_of(pid)[key].split()[0])


def call_yourself(name):
    """Python code that gives its process a name by which it is found from outside."""
    assert len(name) <= 15
    return "import ctypes\nassert ctypes.CDLL(None).prctl(15, %r, 0, 0, 0) == 0\n" % name.encode()


class Held:
    """Code that waits in its sandbox until the test lets it go on: then it ends, and not a moment sooner."""

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
    """All of them at once; their results in order."""
    begun = [Later(c) for c in calls]
    return [b.result() for b in begun]
