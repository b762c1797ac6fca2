# SPDX-License-Identifier: Apache-2.0
"""daemon.py - For all suites: `caisson serve` as a process; requests to it, and its answers, streams and WebSockets.

A BareDaemon is the program on a free port with a state directory of its own, and no more. Each suite derives its own: in cgroups of
the session (tests/serve/serve_lib.py), below the guard of the hostile suite (tests/hostile/daemon_lib.py), or bare, for benchmarks.
"""
import base64
import http.client
import itertools
import json
import re
import secrets
import socket
import struct
import subprocess
from pathlib import Path

from process import BIN, SLOW, children, free_port, name_of, wait_until

START_SECONDS = 90
ERROR_MEMBERS = {"code", "message", "field", "hint"}
ERROR_LOSS = {"cause", "state", "files", "epoch"}  # all of them, or none
ERROR_ROOM = {"needed", "free", "limit"}


# ---- answers ------------------------------------------------------------------------------------------


class Response:
    """An answer as it was received. headers has lower-case names; a repeated name is a failure."""

    def __init__(self, status, headers, body):
        self.status, self.body = status, body
        self.headers = {}
        for name, value in headers.items() if isinstance(headers, dict) else headers:
            assert name.lower() not in self.headers, "%s was sent twice" % name
            self.headers[name.lower()] = value

    @property
    def json(self):
        return json.loads(self.body.decode("utf-8"))

    @property
    def error(self):
        """The error of an answer that must be one, in the common form of errors."""
        check_error(self)
        return self.json["error"]

    @property
    def code(self):
        return self.error["code"]

    def __repr__(self):
        return "<%d %r %r>" % (self.status, self.headers, self.body[:600])


def check_error(r):
    assert r.status >= 400, r
    assert r.headers["content-type"].split(";")[0] == "application/json", r
    d = r.json
    assert list(d) == ["error"], r
    e = d["error"]
    assert {"code", "message"} <= set(e) <= ERROR_MEMBERS | ERROR_LOSS | ERROR_ROOM, r
    assert set(e) & ERROR_LOSS in (set(), ERROR_LOSS) and (r.status == 507 or not set(e) & ERROR_ROOM), r
    numbers = ERROR_ROOM | {"epoch"}
    assert all(isinstance(v, int) if k in numbers else isinstance(v, str) and v for k, v in e.items()), r
    assert re.fullmatch("[a-z][a-z0-9_]*", e["code"]), r
    if r.status in (429, 503):
        assert int(r.headers["retry-after"]) >= 1, r


def read_head(f):
    """(status, pairs of headers) from a file of a socket; None at its end."""
    line = f.readline()
    if not line:
        return None
    status, headers = int(line.split()[1]), []
    while line := f.readline().rstrip(b"\r\n"):
        name, _, value = line.decode("latin-1").partition(":")
        headers.append((name, value.strip()))
    return status, headers


def read_chunks(f):
    """The chunks of a chunked body, as they arrive."""
    while True:
        line = f.readline()
        if not line:
            raise ConnectionError("the stream was cut")
        n = int(line, 16)
        data = f.read(n + 2)[:-2]
        if n == 0:
            return
        yield data


def read_response(f):
    """One answer from a file of a socket, as the bytes on the wire. None at its end."""
    head = read_head(f)
    if head is None:
        return None
    status, headers = head
    h = {n.lower(): v for n, v in headers}
    if "content-length" in h:
        body = f.read(int(h["content-length"]))
    elif h.get("transfer-encoding") == "chunked":
        body = b"".join(read_chunks(f))
    elif status in (101, 204, 304):
        body = b""
    else:
        body = f.read()
    return Response(status, headers, body)


def parse_metrics(text):
    """{name{labels}: value} of Prometheus' text form."""
    found = {}
    for line in text.splitlines():
        if line and not line.startswith("#"):
            name, _, value = line.rpartition(" ")
            assert name not in found, "twice: %s" % name
            found[name] = float(value)
    return found


# ---- the daemon ---------------------------------------------------------------------------------------


class BareDaemon:
    """The program with these flags, not started yet. launch() starts it, also again after an end, with the same flags, state and port."""

    numbers = itertools.count(1)

    def __init__(self, where, *flags, env=None, state=None, listen="127.0.0.1", socket="none", any_port=False, binary=None,
                 log_format="json", wrapper=(), token=None, **popen):
        self.where = Path(where) / ("daemon-%d" % next(self.numbers))
        self.where.mkdir()
        self.state = Path(state or self.where / "state")
        self.log_path, self.out_path = self.where / "log", self.where / "out"
        self.port = free_port() if listen != "none" else None
        self.token, self.env, self.popen = token, env, popen
        self.argv = [*map(str, wrapper), str(binary or BIN), "serve", "--state", str(self.state), "--socket", str(socket),
                     "--listen", "%s:%d" % (listen, 0 if any_port else self.port) if self.port else "none"]
        if log_format:
            self.argv += ["--log-format", log_format]
        self.argv += map(str, flags)
        self.p = None

    def launch(self, *before):
        """@before: a command that becomes the daemon."""
        with open(self.out_path, "wb") as out, open(self.log_path, "ab") as log:
            self.p = subprocess.Popen([*before, *self.argv], **{"stdin": subprocess.DEVNULL, "stdout": out, "stderr": log,
                                                                "env": self.environment(), "cwd": self.where, **self.popen})

    def environment(self):
        return self.env

    @property
    def keeper(self):
        """The process that was started; it starts the front, and restarts it."""
        return self.p.pid

    @property
    def pid(self):
        """The pid of the front. It exists a moment after the start, and differs after a kill."""
        return wait_until(self.find_front)

    def find_front(self):
        return next((p for p in children(self.keeper) if name_of(p) == "caisson-front"), None)

    def find_warden(self):
        """A child of the front that started it; a child of the keeper when that front was killed."""
        return next((p for parent in (self.pid, self.keeper) for p in children(parent) if name_of(p) == "caisson-warden"), 0)

    def running(self):
        return self.p.poll() is None

    def ready(self):
        assert self.running(), "the daemon ended with %d: %s" % (self.p.returncode, self.log_text()[-2000:])
        try:
            h = self.health()
        except OSError:
            return None
        return h if h["status"] == "healthy" and not h["pool"]["making"] and self.filled(h) else None

    @staticmethod
    def filled(h):
        return h["pool"]["kernels_ready"] >= min(h["pool"]["target"], 1) or "python" not in h["languages"]

    def wait_ready(self, seconds=START_SECONDS):
        assert self.port, "the daemon has no address"
        h = wait_until(self.ready, seconds)
        assert h, "not ready after %d s: %s" % (seconds, self.log_text()[-2000:])
        return h

    # -- asking --

    def connect(self, timeout=60, source=None, receive_buffer=None):
        s = socket.socket()
        if receive_buffer:
            s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        s.settimeout(timeout * SLOW)
        if source:
            s.bind((source, 0))
        s.connect(("127.0.0.1", self.port))
        s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return s

    def request(self, method, path, body=None, headers=None, timeout=60, token=None, source=None):
        """One request on a connection of its own. @body: bytes or text, or an object for JSON."""
        h = dict(headers or {})
        if token or self.token:
            h.setdefault("Authorization", "Bearer " + (token or self.token))
        if body is not None and not isinstance(body, (bytes, str)):
            body = json.dumps(body)
            h.setdefault("Content-Type", "application/json")
        c = http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout * SLOW, source_address=(source, 0) if source else None)
        try:
            c.request(method, path, body.encode() if isinstance(body, str) else body, {k: v for k, v in h.items() if v is not None})
            r = c.getresponse()
            return Response(r.status, r.getheaders(), r.read())
        finally:
            c.close()

    def health(self):
        return self.request("GET", "/health", timeout=30).json

    def metrics(self):
        r = self.request("GET", "/metrics")
        assert r.status == 200, r
        return parse_metrics(r.body.decode())

    def sessions(self, token=None):
        return {s["session_id"]: s for s in self.request("GET", "/sessions", token=token).json["sessions"]}

    def end_session(self, name, token=None):
        return self.request("DELETE", "/sessions/" + name, token=token)

    # -- the log --

    def log_text(self):
        try:
            return self.log_path.read_text(errors="surrogateescape")
        except OSError:
            return ""

    def log(self, event=None):
        lines = [json.loads(line) for line in self.log_path.read_bytes().splitlines()]
        return [e for e in lines if event in (None, e["event"])]


# ---- live streams ----------------------------------------------------------------------------------------


class Stream:
    """POST /execute with Server-Sent Events: iterate over (event, data), as they arrive."""

    method, path = "POST", "/execute"

    def __init__(self, daemon, body, headers=None, receive_buffer=None, timeout=60):
        self.s = daemon.connect(timeout, receive_buffer=receive_buffer)
        text = b"" if body is None else json.dumps(body).encode()
        head = {"Host": "127.0.0.1:%d" % daemon.port}
        if daemon.token:
            head["Authorization"] = "Bearer " + daemon.token
        if body is not None:
            head.update({"Content-Type": "application/json", "Content-Length": str(len(text))})
        head.update(headers or {})
        self.s.sendall(b"%s %s HTTP/1.1\r\n" % (self.method.encode(), self.path.encode()) + b"".join(
            b"%s: %s\r\n" % (k.encode(), v.encode()) for k, v in head.items()) + b"\r\n" + text)
        self.f, self.bytes = None, 0

    def open(self):
        """Read the head of the answer."""
        self.f = self.s.makefile("rb")
        self.status, headers = read_head(self.f)
        self.headers = {k.lower(): v for k, v in headers}
        return self

    def chunks(self):
        assert self.headers.get("transfer-encoding") == "chunked", self.headers
        for data in read_chunks(self.f):
            self.bytes += len(data)
            yield data

    def blocks(self):
        """(event, bytes of its data)"""
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
                yield event, b"\n".join(data)
        assert not text, "the stream ends in the middle of an event: %r" % text[-200:]

    def __iter__(self):
        for event, data in self.blocks():
            if data.strip():  # an empty event only sets the client's position in the stream
                yield event, json.loads(data)

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


def make_frame(opcode, data=b"", fin=1, rsv=0, mask=True, length=None, wide=None):
    """A frame of RFC 6455 as bytes. @length: a length other than the true one; @wide: 16 or 64 bits, whatever the length is."""
    n = len(data) if length is None else length
    bit = 0x80 if mask else 0
    if wide == 64 or (wide is None and n > 65535):
        size = bytes([bit | 127]) + struct.pack(">Q", n)
    elif wide == 16 or (wide is None and n > 125):
        size = bytes([bit | 126]) + struct.pack(">H", n)
    else:
        size = bytes([bit | n])
    key = secrets.token_bytes(4) if mask else b""
    if mask and data:
        pad = (key * (len(data) // 4 + 1))[:len(data)]
        data = (int.from_bytes(data, "big") ^ int.from_bytes(pad, "big")).to_bytes(len(data), "big")
    return bytes([fin << 7 | rsv << 4 | opcode]) + size + key + data


class Socket:
    """A WebSocket after its handshake; .answer is the daemon's answer, or None. Yields frames as they arrive."""

    def __init__(self, daemon, path="/execute/ws", headers=None, timeout=60, early=b"", **how):
        self.s = daemon.connect(timeout, **how)
        head = {"Host": "127.0.0.1:%d" % daemon.port, "Upgrade": "websocket", "Connection": "Upgrade", "Sec-WebSocket-Version": "13",
                "Sec-WebSocket-Key": base64.b64encode(secrets.token_bytes(16)).decode()}
        if daemon.token:
            head["Authorization"] = "Bearer " + daemon.token
        head.update(headers or {})
        self.s.sendall(("GET %s HTTP/1.1\r\n" % path + "".join("%s: %s\r\n" % kv for kv in head.items() if kv[1] is not None) +
                        "\r\n").encode("latin-1") + early)
        self.f = self.s.makefile("rb")
        self.answer = read_response(self.f)

    def read(self):
        """(opcode, payload) of the next frame; (None, b"") at the end."""
        head = self.f.read(2)
        if len(head) < 2:
            return None, b""
        assert not head[1] & 0x80, "a server does not mask"
        n = head[1] & 0x7f
        if n > 125:
            n = int.from_bytes(self.f.read(2 if n == 126 else 8), "big")
        return head[0] & 0x0f, self.f.read(n)

    def send(self, message):
        self.s.sendall(make_frame(1, (message if isinstance(message, str) else json.dumps(message)).encode()))

    def hang_up(self):
        self.f.close()
        self.s.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.hang_up()
