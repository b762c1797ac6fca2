# SPDX-License-Identifier: Apache-2.0
"""jupyter_lib.py - A small client of Jupyter's WebSocket, in both framings."""
import json
import struct
import uuid

from serve_lib import WebSocket

V1 = "v1.kernel.websocket.jupyter.org"


def pack_v1(channel, header, parent, metadata, content, buffers=()):
    parts = [channel.encode(), *(json.dumps(p).encode() for p in (header, parent, metadata, content)), *buffers]
    at = [8 * (len(parts) + 2)]
    for p in parts:
        at.append(at[-1] + len(p))
    return struct.pack("<Q", len(at)) + struct.pack("<%dQ" % len(at), *at) + b"".join(parts)


def unpack_v1(data):
    n, = struct.unpack_from("<Q", data)
    at = struct.unpack_from("<%dQ" % n, data, 8)
    assert at[-1] == len(data), "the last offset is the end"
    parts = [data[a:b] for a, b in zip(at, at[1:])]
    channel, *texts = parts[:5]
    header, parent, metadata, content = map(json.loads, texts)
    return {"channel": channel.decode(), "header": header, "parent_header": parent, "metadata": metadata, "content": content,
            "msg_id": header["msg_id"], "msg_type": header["msg_type"]}


class Kernel:
    """One connection to one kernel."""

    def __init__(self, daemon, id=None, v1=False, session=None, query="", **kw):
        self.daemon = daemon
        self.id = id or start(daemon, **kw)["id"]
        self.session = session or uuid.uuid4().hex
        self.v1 = v1
        self.ws = WebSocket(daemon, "/api/kernels/%s/channels?session_id=%s%s" % (self.id, self.session, query),
                            {"Sec-WebSocket-Protocol": V1} if v1 else None)
        assert self.ws.answer.status == 101, self.ws.answer
        assert self.ws.answer.headers.get("sec-websocket-protocol") == (V1 if v1 else None)

    def send(self, type, content=None, channel="shell", parent=None):
        header = {"msg_id": uuid.uuid4().hex, "msg_type": type, "username": "t", "session": self.session, "date": "2026-01-01T00:00:00Z",
                  "version": "5.3"}
        if self.v1:
            self.ws.frame(WebSocket.BINARY, pack_v1(channel, header, parent or {}, {}, content or {}))
        else:
            self.ws.send({"channel": channel, "header": header, "parent_header": parent or {}, "metadata": {}, "content": content or {},
                          "buffers": []})
        return header["msg_id"]

    def receive(self):
        """The next message, or None when the connection is closed."""
        if not self.v1:
            return self.ws.receive()
        while True:
            opcode, data = self.ws.read()
            if opcode == WebSocket.PING:
                self.ws.frame(WebSocket.PONG, data)
            elif opcode in (None, WebSocket.CLOSE):
                self.ws.closed = struct.unpack(">H", data[:2])[0] if len(data) >= 2 else 1006
                return None
            elif opcode == WebSocket.BINARY:
                return unpack_v1(data)

    def until_idle(self, id):
        """All messages about a request, its `idle` last."""
        got = []
        while True:
            m = self.receive()
            assert m is not None, "closed (%s) after %r" % (self.ws.closed, got[-3:])
            if m["parent_header"].get("msg_id") != id:
                continue
            got.append(m)
            if m["msg_type"] == "status" and m["content"]["execution_state"] == "idle":
                return got

    def ask(self, type, content=None, channel="shell"):
        """The reply to a request."""
        got = self.until_idle(self.send(type, content, channel))
        assert [m["content"]["execution_state"] for m in got if m["msg_type"] == "status"] == ["busy", "idle"]
        reply, = [m for m in got if m["channel"] == channel]
        assert reply["msg_type"] == type.replace("_request", "_reply"), reply
        return reply["content"]

    def run(self, code, **fields):
        return Run(self.until_idle(self.send("execute_request", {"code": code, "silent": False, "store_history": True,
                                                                 "user_expressions": {}, "allow_stdin": False, "stop_on_error": True, **fields})))

    def close(self):
        self.ws.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.ws.hang_up()
        self.daemon.request("DELETE", "/api/kernels/" + self.id)


class Run:
    """The messages about one execute_request."""

    def __init__(self, messages):
        self.messages = messages
        self.types = [m["msg_type"] for m in messages]
        reply = [m["content"] for m in messages if m["msg_type"] == "execute_reply"]
        self.reply = reply[0] if reply else None

    def of(self, type):
        return [m["content"] for m in self.messages if m["msg_type"] == type]

    def text(self, name="stdout"):
        return "".join(c["text"] for c in self.of("stream") if c["name"] == name)

    @property
    def result(self):
        return self.of("execute_result")[0]["data"]


def start(daemon, name=None, env=None, **kw):
    body = {k: v for k, v in (("name", name), ("env", env)) if v is not None}
    r = daemon.request("POST", "/api/kernels", body or None, **kw)
    assert r.status == 201, r
    assert r.headers["location"] == "/api/kernels/" + r.json["id"]
    return r.json
