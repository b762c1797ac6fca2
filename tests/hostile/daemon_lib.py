# SPDX-License-Identifier: Apache-2.0
"""daemon_lib.py - The hostile suite against `caisson serve`: a daemon, misbehaving clients, and inspection from outside.

    daemon, hostile_test, whole_module = daemon_lib.daemon, daemon_lib.hostile_test, daemon_lib.whole_module

    def test_output_flood(daemon, stopped_by):
        with Watch(daemon) as w:
            r = daemon.execute("while True: print('y')", timeout=1)
        assert r.status == "timeout" and w.rss < CEILING

One daemon serves all tests of a module: the first thing that is tested is that it survives all of them, with the same processes.
Around every test hostile_test() removes the sessions that the test left, runs a known-good program, and counts the cells, from
outside; around the module whole_module() compares the host before the daemon with the host after it. A test that needs other flags
has a daemon of its own.
Everything runs below the guard's cgroups (guard.py).
"""
import base64
import contextlib
import json
import os
import random
import resource
import secrets
import socket
import subprocess
import threading
import time

import lib
import pytest
from cell_lib import read, until
from daemon import BareDaemon, Response, Socket, Stream, make_frame
from lib import CAISSON, at_most, host_env, session
from process import SANITIZED, children, deadline, no_report, status_of, unique
from snapshot import stat_of

MIB = 1 << 20
ALICE, BOB = secrets.token_hex(32), secrets.token_hex(32)
GUEST = CAISSON.parent / "guest"
PYTHON = "/usr/bin/python3"
TEST_SECONDS = 180
CEILING = 96 * MIB       # resident memory of front and warden, whatever one guest or client does
NEIGHBOUR_SECONDS = 3.0  # the small program of a neighbour beside an attack, on a busy machine


# ---- answers ------------------------------------------------------------------------------------

class Result:
    """The result object of an execution, as in lib.Result."""

    def __init__(self, response):
        assert response.status == 200, response
        self.json = response.json

    def __getitem__(self, key):
        return self.json[key]

    @property
    def status(self):
        return self.json["status"]

    @property
    def kind(self):
        return (self.json["cause"] or {}).get("kind")

    @property
    def stdout(self):
        return self._stream("stdout")

    @property
    def stderr(self):
        return self._stream("stderr")

    def _stream(self, name):
        if name + "_base64" in self.json:
            return base64.b64decode(self.json[name + "_base64"], validate=True)
        return self.json[name].encode()

    def __repr__(self):
        return f"<{ {k: v if len(str(v)) < 400 else str(v)[:400] + '...' for k, v in self.json.items()} }>"


def parse_responses(data):
    """All responses in the bytes of one connection; raises ValueError when they are not whole ones."""
    found = []
    while data:
        head, sep, rest = data.partition(b"\r\n\r\n")
        if not sep:
            raise ValueError(f"half a head: {data[:200]!r}")
        first, *lines = head.decode("latin-1").split("\r\n")
        version, code = first.split()[:2]
        if version not in ("HTTP/1.1", "HTTP/1.0"):
            raise ValueError(f"no response: {first!r}")
        headers = {k.strip().lower(): v.strip() for k, v in (x.split(":", 1) for x in lines)}
        if int(code) < 200:
            data = rest
            continue
        body = b""
        if headers.get("transfer-encoding") == "chunked":
            while True:
                line, _, rest = rest.partition(b"\r\n")
                n = int(line, 16)
                body, rest = body + rest[:n], rest[n + 2:]
                if n == 0:
                    break
        else:
            n = int(headers.get("content-length", 0))
            if len(rest) < n:
                raise ValueError(f"{len(rest)} bytes of {n}")
            body, rest = rest[:n], rest[n:]
        found.append(Response(int(code), headers, body))
        data = rest
    return found


# ---- the daemon -----------------------------------------------------------------------------------

class Daemon(BareDaemon):
    """`caisson serve`. Use as a context. .pid is the front's, .keeper its parent, .warden and .zygote are found from outside."""

    def __init__(self, *flags, env=None, unix=False, wait=True, caisson=CAISSON, **how):
        super().__init__(session().dir, *flags, env=host_env(**{"CAISSON_IMAGE_PULL": "never", **(env or {})}), binary=caisson, stdout=subprocess.DEVNULL, **how)
        self.where.chmod(0o711)
        self.unix = self.where / "sock" if unix else None
        if unix:
            self.argv[self.argv.index("--socket") + 1] = str(self.unix)
        self.start(wait)

    def start(self, wait=True):
        """Start it; also again after an end, with the same flags, state and port."""
        self.launch()
        self.warden = 0
        if wait:
            try:
                until(self.ready, 30, "a daemon that is ready")
            except BaseException:
                print(self.log_text()[-2000:])
                self.kill()
                raise
            self.warden = self.find_warden()

    @staticmethod
    def filled(h):
        return h["pool"]["zygote"] and h["pool"]["kernels_ready"] >= h["pool"]["target"]

    def stop(self, seconds=30):
        """End the daemon; it must exit with 0, and leave nothing."""
        inits = self.cells()
        self.p.terminate()
        try:
            code = self.p.wait(seconds)
        except subprocess.TimeoutExpired:
            self.kill()
            raise AssertionError(f"the daemon does not end: {self.log_text()[-1000:]}") from None
        assert code == 0, f"the daemon ended with {code}: {self.log_text()[-1500:]}"
        until(lambda: not any(map(stat_of, (self.warden, *inits))), 10, "the end of the warden and the cells")

    def kill(self):
        """End the front in any case, and with it the warden and everything that it made."""
        warden = self.warden
        if self.p.poll() is None:
            warden = warden or self.find_warden()
            self.p.kill()
        self.p.wait()
        with contextlib.suppress(AssertionError):
            until(lambda: not stat_of(warden), 10)

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        if kind or self.p.poll() is not None:
            self.kill()
        else:
            self.stop()
        no_report(self.log_path.read_bytes())

    # -- requests --

    def request(self, method, path, body=None, headers=None, *, timeout=150, source=None, token=True):
        """@body: bytes, or an object; both are sent as JSON. @token: another one than the daemon's, or False for none."""
        data = body if isinstance(body, (bytes, type(None))) else json.dumps(body).encode()
        head = {"Content-Type": "application/json"} if data is not None else {}
        token = self.token if token in (True, None) else token
        head["Authorization"] = "Bearer " + token if token else None
        return super().request(method, path, data, {**head, **(headers or {})}, timeout, source=source)

    def execute(self, code, **fields):
        how = {k: fields.pop(k) for k in ("timeout_outer", "token", "source") if k in fields}
        return Result(self.request("POST", "/execute", {"code": code, **fields},
                                   timeout=how.pop("timeout_outer", 150), **how))

    def good(self, seconds=20):
        """Run a known-good program; return how long it took."""
        a, b = random.randrange(10**6), random.randrange(10**6)
        t = time.monotonic()
        r = self.execute(f"print({a} * {b})\n{a} + {b}")
        took = time.monotonic() - t
        assert r.status == "ok" and r.stdout == f"{a * b}\n".encode() and r["result"] == {"text/plain": str(a + b)}, \
            f"a known-good program failed: {r}"
        assert took < at_most(seconds), f"a known-good program took {took:.1f} s"
        return took

    def health(self):
        return self.request("GET", "/health", timeout=20, token=False).json

    def executions(self):
        """The number of executions, as the daemon counts them."""
        return sum(float(x.split()[-1]) for x in self.request("GET", "/metrics").body.decode().splitlines()
                   if x.startswith("sandbox_executions_total"))

    def raw(self, data, seconds=5.0, *, pieces=None, half_close=False, answered=True):
        """Send bytes, and read until the daemon ends the connection, or until nothing came for @seconds after the beginning of an
        answer. answered=False: no answer is expected.

        Returns (bytes, whether it was closed)."""
        with self.connect(at_most(seconds) if answered else seconds) as s:
            got = b""
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                for piece in pieces or [data]:
                    s.sendall(piece)
                if half_close:
                    s.shutdown(socket.SHUT_WR)
            try:
                while True:
                    more = s.recv(65536)
                    if not more:
                        return got, True
                    got += more
                    s.settimeout(seconds if lib.EXACT else max(seconds, 2))
            except TimeoutError:
                return got, False
            except ConnectionResetError:
                return got, True

    # -- from outside --

    def cells(self):
        """Host pids of the pid 1 of every cell, without zombies."""
        return {p for p in children(self.warden) if (s := stat_of(p)) and s[0] == "caisson-init" and s[1] != "Z"}

    def cell_of(self, pid):
        """The pid 1 of the cell that a process is in. Other cells may end meanwhile."""
        space = os.readlink(f"/proc/{pid}/ns/pid")
        for p in self.cells():
            with contextlib.suppress(FileNotFoundError):
                if os.readlink(f"/proc/{p}/ns/pid") == space:
                    return p
        raise AssertionError(f"{pid} is in no cell of this daemon")

    def zombies(self):
        return {p for p in children(self.warden) if (s := stat_of(p)) and s[1] == "Z"}

    def zygotes(self):
        """Interpreters below the warden that are in no cell's pid namespace."""
        found = []
        for p in children(self.warden):
            with contextlib.suppress(OSError):
                s = stat_of(p)
                if s and s[0].startswith("python") and s[1] != "Z" and len(status_of(p)["NStgid"].split()) == 1:
                    found.append(p)
        return found

    @property
    def zygote(self):
        return until(lambda: next(iter(self.zygotes()), 0), 20, "a zygote")

    def guests(self):
        """Host pids of everything in cells except their pid 1."""
        found, spaces = set(), set()
        for p in self.cells():
            with contextlib.suppress(OSError):
                spaces.add(os.readlink(f"/proc/{p}/ns/pid"))
        for d in os.listdir("/proc"):
            if d.isdigit():
                with contextlib.suppress(OSError):
                    if os.readlink(f"/proc/{d}/ns/pid") in spaces and (stat_of(d) or ("caisson-init",))[0] != "caisson-init":
                        found.add(int(d))
        return found

    def named(self, comm):
        """The guest that gave itself this name (call_yourself())."""
        return {p for p in self.guests() if (s := stat_of(p)) and s[0] == comm and s[1] != "Z"}

    def rss(self):
        """Resident bytes of front and warden; 0 for sanitized ones, which keep freed memory."""
        if SANITIZED:
            return 0
        total = 0
        for pid in (self.pid, self.warden):
            with contextlib.suppress(OSError, ValueError, IndexError):
                total += int(read(f"/proc/{pid}/statm").split()[1])
        return total * resource.getpagesize()

    def cpu(self):
        """Seconds of processor time of the front."""
        words = read(f"/proc/{self.pid}/stat").rsplit(")", 1)[1].split()
        return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")

    def descriptors(self):
        return len(os.listdir(f"/proc/{self.pid}/fd"))

    def quiet(self, seconds=10.0):
        """Nothing is left of a test: the cells are those of the pool, and there is no zombie."""
        def settled():
            h = self.health()
            pool = h["pool"]["kernels_ready"] + h["pool"]["cells_ready"] + h["pool"]["making"]
            return not h["sandboxes"]["live"] and len(self.cells()) == pool and not self.zombies()
        try:
            until(settled, seconds)
        except AssertionError:
            h = self.health()
            raise AssertionError(f"something is left: {len(self.cells())} cells and {len(self.zombies())} zombies, while "
                                 f"the daemon knows of {h['pool']} and {h['sandboxes']}") from None


# ---- what goes on meanwhile -----------------------------------------------------------------------

class Watch:
    """with Watch(daemon) as w: ... ; then w.rss is the most that front and warden had together, and
    w.late the longest that a neighbour's small program took (when neighbour=True)."""

    def __init__(self, d, neighbour=False, step=0.01):
        self.daemon, self.neighbour, self.step = d, neighbour, step
        self.rss, self.late, self.failed, self.count = 0, 0.0, [], 0
        self.over = threading.Event()
        self.threads = []

    def _memory(self):
        while not self.over.is_set():
            self.rss = max(self.rss, self.daemon.rss())
            self.over.wait(self.step)

    def _beside(self):
        while not self.over.is_set():
            try:
                self.late = max(self.late, self.daemon.good(60))
            except Exception as e:  # reported to the test
                self.failed.append(repr(e)[:500])
            self.count += 1
            self.over.wait(0.02)

    def __enter__(self):
        self.before = self.daemon.rss()
        for f in (self._memory, *([self._beside] if self.neighbour else [])):
            self.threads.append(threading.Thread(target=f, daemon=True))
            self.threads[-1].start()
        return self

    def __exit__(self, *_):
        self.over.set()
        for t in self.threads:
            t.join(90)

    def check(self, ceiling=CEILING, seconds=NEIGHBOUR_SECONDS):
        """Bounded memory, and neighbours that were served in time."""
        assert self.rss < ceiling, f"the daemon grew from {self.before >> 20} to {self.rss >> 20} MiB"
        if self.neighbour:
            assert not self.failed, f"a neighbour's program failed: {self.failed[:2]}"
            assert self.count and self.late < at_most(seconds), f"a neighbour waited {self.late:.2f} s"


def scan_memory(pid, *needles):
    """Whether any of these bytes are anywhere in the memory of a process, read from outside. Mappings of terabytes are the shadow of
    a sanitizer, which contains no text."""
    keep = max(map(len, needles))
    with open(f"/proc/{pid}/maps", encoding="utf-8") as maps, open(f"/proc/{pid}/mem", "rb", 0) as mem:
        for line in maps:
            if not line.split()[1].startswith("r") or "[v" in line:
                continue
            start, end = (int(x, 16) for x in line.split()[0].split("-"))
            if end - start > 1 << 40:
                continue
            tail = b""
            while start < end:
                try:
                    mem.seek(start)
                    data = mem.read(min(end - start, 4 * MIB))
                except (OSError, ValueError, OverflowError):
                    break
                if not data:
                    break
                if any(n in tail + data for n in needles):
                    return True
                tail = data[-keep:]
                start += len(data)
    return False


# ---- streams ----------------------------------------------------------------------------------------

class Events(Stream):
    """POST /execute as Server-Sent Events; nothing is read before the test asks."""

    def __init__(self, d, code, timeout_outer=60, receive_buffer=None, **fields):
        super().__init__(d, {"code": code, "stream": True, **fields}, receive_buffer=receive_buffer, timeout=timeout_outer)

    def __iter__(self):
        """(event, text of its data, time of arrival)"""
        assert self.open().status == 200, (self.status, self.f.read(2000))
        for event, data in self.blocks():
            yield event, data.decode("utf-8"), time.monotonic()


class WebSocket(Socket):
    """A client that can violate the protocol."""

    frame = staticmethod(make_frame)

    def __init__(self, d, headers=None, timeout=30, **how):
        super().__init__(d, headers=headers, timeout=timeout, **how)
        self.status, self.headers = (self.answer.status, self.answer.headers) if self.answer else (0, {})

    def put(self, *frames):
        self.s.sendall(b"".join(frames))

    def read(self):
        try:
            return super().read()
        except ConnectionResetError:
            return None, b""

    def close_code(self, answer_pings=False):
        """Read to the end. The code of the daemon's close frame, 1005 if it has none, None without a frame."""
        code = None
        while True:
            opcode, data = self.read()
            if opcode is None:
                return code
            if opcode == 8:
                code = int.from_bytes(data[:2], "big") if len(data) >= 2 else 1005
            elif opcode == 9 and answer_pings:
                self.put(self.frame(10, data))

    def messages(self):
        """Messages, as text, up to the one that ends an execution; pings are answered."""
        while True:
            opcode, data = self.read()
            if opcode == 9:
                self.put(self.frame(10, data))
                continue
            assert opcode == 1, f"no text message: {opcode} {data[:100]!r}"
            yield data.decode("utf-8")
            if data.startswith((b'{"type":"done"', b'{"type":"refused"')):
                return

    def run(self, code, **fields):
        """Execute to the end: the list of messages, parsed."""
        self.send({"type": "execute", "code": code, **fields})
        return [json.loads(m) for m in self.messages()]

    close = Socket.hang_up


# ---- code for guests ------------------------------------------------------------------------------

# put(bytes) writes on the kernel's own channel to the host; execution_id() is known only to the kernel.
CHANNEL = """
import json, os, sys, time

def put(data):
    from caisson_kernel import control
    view = memoryview(data)
    while view:
        view = view[os.write(control.channel._out_fd, view):]

def execution_id():
    f = sys._getframe()
    while f:
        m = f.f_locals.get('message')
        if isinstance(m, dict) and 'id' in m:
            return m['id']
        f = f.f_back
    raise RuntimeError('not found')

def done(i, code=0, status='ok'):
    return json.dumps({'type': 'execution_done', 'id': i, 'status': status, 'exit_code': code}).encode() + b'\\n'
"""


# ---- for tests ---------------------------------------------------------------------------------------

def some_quick(table, *names):
    """Parameters of a table, of which @names are quick and the others slow."""
    return [pytest.param(n, marks=pytest.mark.quick if n in names else pytest.mark.slow) for n in table]


def check_another(d, name):
    """The session has another kernel. Code that was sent to the old one while it died reports that it was lost."""
    for _ in range(3):
        r = d.execute("'x' in globals()", session_id=name)
        assert r["epoch"] >= 1, r
        if r.status == "ok":
            assert r["result"] == {"text/plain": "False"}, r
            return
        assert r["state"] == "reset", r
    raise AssertionError(f"the session has no kernel: {r}")


def gone(d, comm, seconds=5.0):
    until(lambda: not d.named(comm), seconds, f"the end of {comm}")


# ---- fixtures ---------------------------------------------------------------------------------------

@pytest.fixture(scope="module")
def whole_module():
    """The host after the module's daemon is the host before it."""
    before = lib.snapshot()
    yield
    lib.good_after()
    lib.assert_same(before)


@pytest.fixture(scope="module")
def daemon(whole_module):
    with Daemon() as d:
        yield d


@pytest.fixture(scope="module")
def two_owners(whole_module):
    """A daemon with tokens of two owners; its own is alice's."""
    path = session().dir / unique("tokens")
    path.write_text(f"alice:{ALICE}\nbob:{BOB}\n")
    path.chmod(0o600)
    with Daemon("--token-file", path, token=ALICE, unix=True) as d:
        path.unlink()
        yield d


@pytest.fixture(autouse=True)
def hostile_test(request, daemon):
    """Replaces conftest's: alarm, test, known-good program; the same processes, no cell and no session left."""
    with deadline(request.node.name, TEST_SECONDS):
        before = daemon.pid, daemon.warden
        yield
        assert daemon.running(), f"the daemon ended with {daemon.p.returncode}: {daemon.log_text()[-2000:]}"
        for name in daemon.sessions():
            assert daemon.end_session(name).status == 204
        daemon.good()
        daemon.quiet()
        assert (daemon.pid, daemon.find_warden()) == before, "the warden is another one"


def deadline_alone(seconds):
    """A hostile_test that replaces conftest's, for tests with daemons of their own, whose pools have cells too."""
    @pytest.fixture(autouse=True)
    def hostile_test(request):
        with deadline(request.node.name, seconds):
            yield
    return hostile_test


def refresh(d):
    """Fill the pool of ready kernels again, after a test that used or broke it."""
    until(d.ready, 30, "a full pool")


class Crowd:
    """Open connections; closed at the end."""

    def __init__(self, d):
        self.daemon, self.all = d, []

    def add(self, data=b"", receive_buffer=None, source=None):
        s = self.daemon.connect(10, source, receive_buffer)
        if data:
            s.sendall(data)
        self.all.append(s)
        return s

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for s in self.all:
            s.close()
