# SPDX-License-Identifier: Apache-2.0
"""wire_lib.py - Clients of the Model Context Protocol on each transport: messages, an SSE pair, pipes."""
import itertools
import json
import os
import select
import subprocess
import threading
import time

from daemon import Stream
from integ_lib import clean_env
from process import BIN, SLOW, wait_until

MODERN = "2026-07-28"
META = "io.modelcontextprotocol/"
ENVELOPE = {META + "protocolVersion": MODERN, META + "clientCapabilities": {}}
BOTH = "application/json, text/event-stream"


def request(method, params=None, id=1, **more):
    m = {"jsonrpc": "2.0", "id": id, "method": method, **more}
    if params is not None:
        m["params"] = params
    return m


def note(method, params=None):
    return {"jsonrpc": "2.0", "method": method, **({"params": params} if params is not None else {})}


def initialize(version="2025-11-25", id=0):
    return request("initialize", {"protocolVersion": version, "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}, id)


def modern(method, params=None, id=1, meta=None):
    return request(method, {**(params or {}), "_meta": {**ENVELOPE, **(meta or {})}}, id)


def code(text, session="s", id=1, language="python", meta=None, **more):
    params = {"name": "execute_code", "arguments": {"session_id": session, "language": language, "code": text, **more}}
    if meta:
        params["_meta"] = meta
    return request("tools/call", params, id)


def modern_headers(message):
    name = {"tools/call": "name"}.get(message["method"])
    h = {"MCP-Protocol-Version": MODERN, "Mcp-Method": message["method"]}
    if name:
        h["Mcp-Name"] = message["params"][name]
    return h


def post(daemon, message, headers=None, path="/mcp", **kw):
    body = message if isinstance(message, (bytes, str)) else json.dumps(message)
    h = {"Content-Type": "application/json", "Accept": BOTH, **(headers or {})}
    return daemon.request("POST", path, body, headers=h, **kw)


class Http:
    """A legacy session over Streamable HTTP."""

    def __init__(self, daemon, version="2025-11-25", **kw):
        self.daemon, self.kw = daemon, kw
        r = post(daemon, initialize(version), **kw)
        assert r.status == 200, r
        self.hello = r.json["result"]
        self.id = r.headers["mcp-session-id"]
        assert self.post(note("notifications/initialized")).status == 202

    def headers(self):
        return {"Mcp-Session-Id": self.id, "MCP-Protocol-Version": self.hello["protocolVersion"]}

    def post(self, message, headers=None):
        return post(self.daemon, message, {**self.headers(), **(headers or {})}, **self.kw)

    def end(self):
        return self.daemon.request("DELETE", "/mcp", headers={"Mcp-Session-Id": self.id}, **self.kw)


class Posted(Stream):
    """A POST to /mcp whose answer is read as it arrives, or abandoned."""
    path = "/mcp"

    def __init__(self, daemon, message, headers=None, **kw):
        super().__init__(daemon, message, {"Accept": BOTH, **(headers or {})}, **kw)

    def messages(self):
        return [m for _, m in self]


class Pair(Stream):
    """The old transport: a stream, and the address to post to."""
    method, path = "GET", "/mcp/sse"

    def __init__(self, daemon, headers=None, **kw):
        super().__init__(daemon, None, {"Accept": "text/event-stream", **(headers or {})}, **kw)
        self.daemon = daemon
        self.open()
        assert self.status == 200, self.status
        self.text = b""
        event, self.endpoint = self.next_event()
        assert event == "endpoint", event

    def next_event(self):
        """The next event with data, undecoded."""
        while True:
            while b"\n\n" in self.text:
                block, _, self.text = self.text.partition(b"\n\n")
                fields = dict(line.split(b": ", 1) for line in block.split(b"\n") if not line.startswith(b":") and b": " in line)
                if b"data" in fields:
                    return fields.get(b"event", b"message").decode(), fields[b"data"].decode()
            self.text += next(self.chunk_source())

    def chunk_source(self):
        if not hasattr(self, "source"):
            self.source = self.chunks()
        return self.source

    def receive(self):
        while True:
            event, data = self.next_event()
            assert event == "message", event
            m = json.loads(data)
            if not is_aside(m):
                return m

    def post(self, message, **kw):
        return post(self.daemon, message, path=self.endpoint, **kw)

    def call(self, message):
        assert self.post(message).status == 202
        return self.receive()


def is_aside(message):
    """Sessions begin and end, and each transport of their owner is notified at some time."""
    return isinstance(message, dict) and message.get("method") == "notifications/resources/list_changed"


class Pipes:
    """`caisson mcp` as a host starts it."""

    def __init__(self, *args, env=None, before=(), **popen):
        """@before: a command that becomes it."""
        self.p = subprocess.Popen([*map(str, before), str(BIN), "mcp", *map(str, args)], env=clean_env(**(env or {})),
                                  **{"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **popen})
        self.ids = itertools.count(100)
        self.text = b""
        self.said = b""
        threading.Thread(target=self.listen, daemon=True).start()

    def listen(self):
        for line in self.p.stderr:
            self.said += line

    def write(self, data):
        self.p.stdin.write(data)
        self.p.stdin.flush()

    def send(self, message):
        self.write((message if isinstance(message, str) else json.dumps(message)).encode() + b"\n")

    def line(self, seconds=90):
        """The next line, or None at the end."""
        end = time.monotonic() + seconds * SLOW
        while b"\n" not in self.text:
            assert select.select([self.p.stdout], [], [], max(0, end - time.monotonic()))[0], "nothing came: %r" % self.said
            data = os.read(self.p.stdout.fileno(), 1 << 20)
            if not data:
                assert not self.text, "half a line: %r" % self.text[-200:]
                return None
            self.text += data
        line, _, self.text = self.text.partition(b"\n")
        return line

    def receive(self, seconds=90):
        while (line := self.line(seconds)) is not None:
            m = json.loads(line)
            if not is_aside(m):
                return m
        return None

    def call(self, message):
        self.send(message)
        return self.receive()

    def hello(self, version="2025-11-25"):
        r = self.call(initialize(version))
        self.send(note("notifications/initialized"))
        return r["result"]

    def end(self, seconds=60):
        """Close the input and return the exit code."""
        self.p.stdin.close()
        return self.p.wait(seconds * SLOW)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.p.poll() is None:
            self.p.kill()
        self.p.wait()
        self.p.stdout.close()
        if not self.p.stdin.closed:
            try:
                self.p.stdin.close()
            except OSError:
                pass


def started_with(text):
    """Processes of this machine with this text in their command line."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open("/proc/%s/cmdline" % pid, "rb") as f:
                if text.encode() in f.read() and int(pid) != os.getpid():
                    found.append(int(pid))
        except OSError:
            pass
    return found


def idle(daemon):
    """Nothing runs, and nothing waits to run."""
    def nothing():
        h = daemon.health()["sandboxes"]
        return h["busy"] == h["queued"] == 0
    return wait_until(nothing)
