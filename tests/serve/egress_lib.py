# SPDX-License-Identifier: Apache-2.0
"""egress_lib.py - A small outside world for tests of egress: a resolver and a few servers on loopback.

All of it is on addresses of this machine's loopback, so a daemon under test needs `--egress-private 127.0.0.0/8`
and `--egress-dns` with the resolver here. The resolver keeps its questions: a name that was not asked for did not leave
the sandbox.
"""
import http.server
import socket
import ssl
import struct
import subprocess
import threading
from pathlib import Path


class Resolver:
    """DNS over UDP and TCP. zone: name -> list of addresses, or a function that returns one; asked: all names."""

    def __init__(self, zone=None, ttl=0, address="127.0.0.1"):
        self.zone, self.ttl, self.asked = dict(zone or {}), ttl, []
        self.udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.udp.bind((address, 0))
        self.port = self.udp.getsockname()[1]
        self.address = "%s:%d" % (address, self.port)
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            try:
                data, peer = self.udp.recvfrom(4096)
            except OSError:
                return
            try:
                self.udp.sendto(self.answer(data), peer)
            except (OSError, IndexError, struct.error):
                pass

    def answer(self, q):
        at, labels = 12, []
        while q[at]:
            labels.append(q[at + 1:at + 1 + q[at]].decode("latin-1"))
            at += 1 + q[at]
        kind, end = struct.unpack(">H", q[at + 1:at + 3])[0], at + 5
        name = ".".join(labels).lower()
        self.asked.append(name)
        found = self.zone.get(name)
        if callable(found):
            found = found()
        head = q[:2] + struct.pack(">HHHHH", 0x8180 if found is not None else 0x8183, 1, 0, 0, 0)
        records = []
        for a in found or ():
            if a.startswith("="):  # an address of another name, through a CNAME
                target = b"".join(bytes([len(x)]) + x.encode() for x in a[1:].split(".")) + b"\0"
                records.append(struct.pack(">HHHIH", 0xc00c, 5, 1, self.ttl, len(target)) + target)
                for b in self.zone.get(a[1:], ()):
                    if kind == 1 and ":" not in b:
                        records.append(target + struct.pack(">HHIH", 1, 1, self.ttl, 4) + socket.inet_aton(b))
                continue
            family = socket.AF_INET6 if ":" in a else socket.AF_INET
            if kind == (28 if family == socket.AF_INET6 else 1):
                raw = socket.inet_pton(family, a)
                records.append(struct.pack(">HHHIH", 0xc00c, kind, 1, self.ttl, len(raw)) + raw)
        return head[:6] + struct.pack(">HHH", len(records), 0, 0) + q[12:end] + b"".join(records)

    def close(self):
        self.udp.close()


class Server:
    """Answers each connection with a function of its own, in a thread of its own."""

    def __init__(self, handle, address="127.0.0.1", port=0):
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        self.s = socket.socket(family)
        self.s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.s.bind((address, port))
        self.s.listen(256)
        self.port, self.handle, self.peers = self.s.getsockname()[1], handle, []
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            try:
                c, peer = self.s.accept()
            except OSError:
                return
            self.peers.append(peer)
            threading.Thread(target=self.one, args=(c,), daemon=True).start()

    def one(self, c):
        try:
            self.handle(c)
        except OSError:
            pass
        finally:
            c.close()

    def close(self):
        self.s.close()


def echo(c):
    while True:
        data = c.recv(65536)
        if not data:
            return
        c.sendall(data)


class Web:
    """A small web server: GET / answers hello, POST returns the body of the request. tls: (certificate, key). before: called with
    the path of a GET before it is answered. auth: accepted values of Authorization, without which the answer is 401; writes: the
    requests that were not GET."""

    def __init__(self, address="127.0.0.1", port=0, tls=None, directory=None, before=None, auth=None):
        heads = self.heads = []
        writes = self.writes = []

        class Handler(http.server.SimpleHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def __init__(self, *args, **kwargs):
                super().__init__(*args, directory=directory, **kwargs)

            def do_GET(self):
                heads.append((self.path, dict(self.headers)))
                if before:
                    before(self.path)
                if auth and self.headers.get("Authorization") not in auth:
                    self.reply(b"who are you?", 401, {"WWW-Authenticate": "Basic realm=index"})
                    return
                if directory:
                    super().do_GET()
                    return
                self.reply(b"hello from " + self.headers.get("Host", "").encode())

            def do_POST(self):
                writes.append((self.command, self.path, dict(self.headers)))
                self.reply(self.rfile.read(int(self.headers["Content-Length"])))

            do_PUT = do_POST

            def reply(self, body, status=200, more=()):
                self.send_response(status)
                for name, value in dict(more).items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *args):
                pass

        self.httpd = http.server.ThreadingHTTPServer((address, port), Handler)
        self.httpd.daemon_threads = True
        if tls:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(*tls)
            self.httpd.socket = context.wrap_socket(self.httpd.socket, server_side=True)
        self.port = self.httpd.server_address[1]
        threading.Thread(target=self.httpd.serve_forever, daemon=True).start()

    def close(self):
        self.httpd.shutdown()
        self.httpd.server_close()


def certificate(where, *names, by=None):
    """(certificate, key) for these names or addresses, signed by itself or by another (certificate, key). rustls refuses a server
    that shows an authority's own certificate, as one that is signed by itself is."""
    cert, key = where / "cert.pem", where / "key.pem"
    signer = ["-CA", by[0], "-CAkey", by[1], "-addext", "basicConstraints=critical,CA:FALSE"] if by else []
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
                    "-keyout", key, "-out", cert, "-days", "2", "-subj", "/CN=" + names[0], *signer,
                    "-addext", "subjectAltName=" + ",".join(("IP:" if n[0].isdigit() else "DNS:") + n for n in names)],
                   check=True, capture_output=True, timeout=30)
    return cert, key


def below(pid, name):
    """The children of a process that have this name."""
    try:
        pids = Path("/proc/%d/task/%d/children" % (pid, pid)).read_text().split()
        return [int(p) for p in pids if Path("/proc/%s/comm" % p).read_text().strip() == name]
    except OSError:
        return []


def supervisor_of(front):
    return next(iter(below(front, "gate-supervisor")), None)


def gate_of(front):
    """The gate of a front: the supervisor's child. None while another one is being started."""
    supervisor = supervisor_of(front)
    return next(iter(below(supervisor, "caisson-gate")), None) if supervisor else None
