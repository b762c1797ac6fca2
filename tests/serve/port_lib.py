# SPDX-License-Identifier: Apache-2.0
"""port_lib.py - Services in sandboxes for the tests of ports: one that reports the requests that it received, and others that misbehave."""
import base64
import json

from process import free_port

# A request as the service received it; and a few behaviours of services.
HONEST = r'''
import base64, hashlib, json, os, socket, struct, sys, threading, time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def log_message(self, *a): pass
    def body(self):
        if self.headers.get("transfer-encoding") == "chunked":
            while True:
                n = int(self.rfile.readline(), 16)
                data = self.rfile.read(n)
                self.rfile.readline()
                if n == 0: return
                yield data
        left = int(self.headers.get("content-length", 0))
        while left:
            data = self.rfile.read(min(left, 65536))
            if not data: return
            left -= len(data)
            yield data
    def answer(self, status, headers, body):
        self.send_response(status)
        for k, v in headers: self.send_header(k, v)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD": self.wfile.write(body)
    def any(self):
        path = self.path.split("?")[0]
        if path == "/ws": return self.websocket()
        if path == "/sse": return self.sse()
        if path == "/big": return self.big(int(self.path.split("?")[1]))
        if path == "/slow": time.sleep(float(self.path.split("?")[1]))
        if path == "/answer": # what is asked for in a header of the request, as [status, headers]
            status, headers = json.loads(base64.b64decode(self.headers["x-answer"]))
            return self.answer(status, headers, b"answer")
        if path == "/deaf": # answers before it has read, and closes
            self.answer(413, [], b"too much")
            self.close_connection = True
            return
        digest, n = hashlib.sha256(), 0
        for data in self.body():
            digest.update(data); n += len(data)
        seen = {"method": self.command, "target": self.path, "headers": self.headers.items(), "bytes": n, "sha256": digest.hexdigest()}
        self.answer(200, [("Content-Type", "application/json"), ("X-Own", "yes")], json.dumps(seen).encode())
    do_GET = do_HEAD = do_POST = do_PUT = do_DELETE = do_PATCH = do_OPTIONS = do_PROPFIND = any
    def sse(self):
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        self.close_connection = True
        for i in range(3):
            self.wfile.write(b"data: %d\n\n" % i)
            self.wfile.flush()
            while not os.path.exists("/workspace/go-%d" % i): time.sleep(0.01)
    def big(self, n):
        self.send_response(200)
        self.send_header("Content-Length", str(n))
        self.end_headers()
        block = bytes(range(256)) * 256
        sent = 0
        while n:
            sent += self.wfile.write(block[:n]); n -= min(n, len(block))
            self.server.sent = sent
    def websocket(self):
        accept = base64.b64encode(hashlib.sha1((self.headers["sec-websocket-key"] + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11").encode()).digest()).decode()
        self.send_response(101)
        for k, v in (("Upgrade", "websocket"), ("Connection", "Upgrade"), ("Sec-WebSocket-Accept", accept), ("X-Saw-Origin", self.headers.get("origin", "none"))):
            self.send_header(k, v)
        self.end_headers()
        while True: # echo frames, unmasked
            head = self.rfile.read(2)
            if len(head) < 2: return
            n = head[1] & 0x7f
            if n == 126: n, = struct.unpack(">H", self.rfile.read(2))
            elif n == 127: n, = struct.unpack(">Q", self.rfile.read(8))
            mask = self.rfile.read(4)
            data = self.rfile.read(n)
            data = (int.from_bytes(data, "big") ^ int.from_bytes((mask * (n // 4 + 1))[:n], "big")).to_bytes(n, "big")
            size = bytes([n]) if n < 126 else b"\x7e" + struct.pack(">H", n) if n < 65536 else b"\x7f" + struct.pack(">Q", n)
            self.wfile.write(head[:1] + size + data)
            if head[0] & 15 == 8:
                self.close_connection = True
                return

class Server(ThreadingHTTPServer):
    address_family = socket.AF_INET6 if len(sys.argv) > 2 else socket.AF_INET
    request_queue_size = 128
server = Server(("::1" if len(sys.argv) > 2 else "127.0.0.1", int(sys.argv[1])), Handler)
print("ready", flush=True)
server.serve_forever()
'''

# Sends bytes to each client, with or without reading first, once or repeatedly.
RAW = r'''
import base64, json, socket, sys, threading
o = json.loads(base64.b64decode(sys.argv[1]))
s = socket.create_server(("127.0.0.1", o["port"]))
print("ready", flush=True)
def serve(c):
    try:
        head = b""
        while o["read"] and b"\r\n\r\n" not in head:
            data = c.recv(4096)
            if not data: return
            head += data
        c.sendall(base64.b64decode(o["data"]))
        for _ in range(o["times"]): c.sendall(base64.b64decode(o["more"]) * 1024)
        if o["hold"]:
            while c.recv(4096): pass
        if o["reset"]: c.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
    except OSError: pass
    c.close()
    print("over", flush=True)
while True:
    threading.Thread(target=serve, args=(s.accept()[0],), daemon=True).start()
'''


class Service:
    """A service that listens in a box, and an open port to it. path: the path that reaches it, with the token."""

    def __init__(self, box, script, *args, port=None):
        self.box, self.port = box, port
        self.process = box.start("python3", "-u", "-c", script, *args)
        self.process.until(b"ready\n")
        r = box.post("/ports/%d" % port)
        assert r.status in (200, 201), r
        self.token, self.url = r.json["token"], r.json["url"]
        self.path = self.url[self.url.index("/v1/"):]
        self.own = "%s/ports/%d/" % (box.url, port)
        assert self.path == self.own[:-1] + "~" + self.token + "/"

    def request(self, method, path="", **kw):
        return self.box.daemon.request(method, self.path + path, **kw)

    def get(self, path="", **kw):
        return self.request("GET", path, **kw)

    def end(self):
        self.process.post("/signal", {"signal": "KILL"})
        assert self.box.daemon.request("DELETE", self.own[:-1]).status == 204


def honest(box, *args):
    port = free_port()
    return Service(box, HONEST, str(port), *args, port=port)


def raw(box, data, read=True, more=b"", times=0, hold=False, reset=False):
    """Send data, then 1024 bytes this number of times; then hold the connection, or end it."""
    port = free_port()
    o = {"port": port, "read": read, "data": base64.b64encode(data).decode(), "more": base64.b64encode(more).decode(), "times": times,
         "hold": hold, "reset": reset}
    return Service(box, RAW, base64.b64encode(json.dumps(o).encode()).decode(), port=port)


def answer_with(status, *headers):
    """The prepared answer of the service to a request for /answer."""
    return {"X-Answer": base64.b64encode(json.dumps([status, headers]).encode()).decode()}
