# SPDX-License-Identifier: Apache-2.0
"""box_lib.py - A named sandbox as a client holds it, its streams, and its processes over a WebSocket."""
import json
import socket

from process import SLOW, unique, wait_until
from serve_lib import WebSocket


class Box:
    """A sandbox. Use as a context: it is removed afterwards."""

    def __init__(self, daemon, name=None, **spec):
        self.daemon, self.name = daemon, name or unique("box")
        self.url = "/v1/sandboxes/" + self.name
        r = daemon.post("/v1/sandboxes", {"name": self.name, **spec})
        assert r.status == 201, r

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.daemon.running():
            self.daemon.request("DELETE", self.url)

    def get(self, path="", **kw):
        return self.daemon.get(self.url + path, **kw)

    def post(self, path, body=None, **kw):
        return self.daemon.post(self.url + path, {} if body is None else body, timeout=150, **kw)

    def about(self):
        return self.get().json

    def exec(self, cmd, *args, **fields):
        """Run a program; the answer must be a result. Returns the object."""
        r = self.post("/exec", {"cmd": cmd, "args": list(args), **fields})
        assert r.status == 200, r
        return r.json

    def shell(self, script, **fields):
        r = self.post("/shell", {"script": script, **fields})
        assert r.status == 200, r
        return r.json

    def stream(self, script, **fields):
        return Events(self.daemon, "POST", self.url + "/shell", {"script": script, "stream": True, **fields})

    def resume(self, execution_id, cursor):
        return Events(self.daemon, "GET", "%s/executions/%s/events?cursor=%d" % (self.url, execution_id, cursor))

    def start(self, cmd, *args, **fields):
        """A process; the answer must be one. Returns a Process."""
        r = self.post("/processes", {"cmd": cmd, "args": list(args), **fields})
        assert r.status == 201, r
        return Process(self, r.json["process_id"])

    def processes(self):
        return {p["process_id"]: p for p in self.get("/processes").json["processes"]}


class Process:
    def __init__(self, box, process_id):
        self.box, self.id = box, process_id
        self.path = "/processes/" + process_id
        self.url = box.url + self.path

    def about(self):
        r = self.box.get(self.path)
        assert r.status == 200, r
        return r.json

    def post(self, what, body=None):
        return self.box.post(self.path + what, body)

    def output(self, stream="stdout", offset=0, limit=None):
        r = self.box.get("%s/output?stream=%s&offset=%d%s" % (self.path, stream, offset, "" if limit is None else "&limit=%d" % limit))
        assert r.status == 200, r
        return r.body

    def until(self, text, stream="stdout"):
        """Wait until it has written this text."""
        assert wait_until(lambda: text in self.output(stream)), self.output(stream)

    def wait(self, seconds=30):
        r = self.post("/wait", {"timeout": seconds})
        assert r.status == 200, r
        return r.json

    def attach(self, query="", **kw):
        return Attached(self.box.daemon, self.url + "/attach" + query, **kw)


class Attached(WebSocket):
    """Bytes of a process. Text messages are kept in self.notes."""

    def __init__(self, daemon, path, receive_buffer=None):
        super().__init__(daemon, path)
        self.data, self.notes = bytearray(), []
        if receive_buffer:
            self.s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)

    def write(self, data):
        self.frame(self.BINARY, data)

    def more(self):
        """Read one message. False when the connection is closed."""
        while True:
            opcode, data = self.read()
            if opcode == self.PING:
                self.frame(self.PONG, data)
            elif opcode in (None, self.CLOSE):
                self.closed = int.from_bytes(data[:2], "big") if len(data) >= 2 else 1006
                return False
            elif opcode == self.BINARY:
                self.data += data
                return True
            elif opcode == self.TEXT:
                self.notes.append(json.loads(data))
                return True

    def until(self, text):
        while text not in self.data:
            assert self.more(), "closed (%s) before %r: %r" % (self.closed, text, self.data[-500:])
        return self.data

    def note(self, kind):
        while not any(n["type"] == kind for n in self.notes):
            assert self.more(), (self.closed, self.notes)
        return next(n for n in self.notes if n["type"] == kind)

    def to_end(self):
        while self.more():
            pass
        return self.data


class Events:
    """Server-Sent Events as they arrive: (id, type, data)."""

    def __init__(self, daemon, method, path, body=None, headers=None, receive_buffer=None):
        self.s = socket.socket()
        if receive_buffer:
            self.s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        self.s.settimeout(60 * SLOW)
        self.s.connect(("127.0.0.1", daemon.port))
        text = json.dumps(body).encode() if body is not None else b""
        head = {"Host": "127.0.0.1:%d" % daemon.port, **(headers or {})}
        if body is not None:
            head.update({"Content-Type": "application/json", "Content-Length": str(len(text))})
        self.s.sendall(b"%s %s HTTP/1.1\r\n" % (method.encode(), path.encode()) + b"".join(
            b"%s: %s\r\n" % (k.encode(), v.encode()) for k, v in head.items()) + b"\r\n" + text)
        self.f = self.s.makefile("rb")
        self.status = int(self.f.readline().split()[1])
        self.headers = {}
        while True:
            line = self.f.readline().rstrip(b"\r\n").decode("latin-1")
            if not line:
                break
            name, _, value = line.partition(":")
            self.headers[name.lower()] = value.strip()

    def chunks(self):
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
        text = b""
        for chunk in self.chunks():
            text += chunk
            while b"\n\n" in text:
                block, _, text = text.partition(b"\n\n")
                lines = dict(line.split(b": ", 1) for line in block.split(b"\n") if b": " in line)
                if b"data" in lines:
                    yield int(lines[b"id"]), lines[b"event"].decode(), json.loads(lines[b"data"])

    def all(self):
        with self:
            return list(self)

    def close(self):
        self.f.close()
        self.s.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
