# SPDX-License-Identifier: Apache-2.0
"""test_egress_http.py - Requests that one server or another reads as HTTP, and that a gate could take for something else.

The servers are those of Python and of node, at the far end of the wire of world_lib.py. Each form has a control: sent to the server
itself it is answered for the other host.
"""
import contextlib
import http.server
import shutil
import socket
import subprocess
import threading
import time

import daemon_lib
import pytest
import world_lib
from lib import landed
from cell_lib import until
from named import Box
from world_lib import WORLD6, attempts, inside, reached

from test_egress import hello_for  # noqa: E402

whole_module, hostile_test = daemon_lib.whole_module, daemon_lib.hostile_test
world, daemon = world_lib.world, world_lib.daemon
quick = pytest.mark.quick

HEAD = b"Host: other.test\r\nConnection: close\r\n\r\n"
FORMS = {
    "empty line": b"\r\nGET / HTTP/1.1\r\n", "empty lines": b"\r\n\r\n\r\nPOST / HTTP/1.1\r\n", "PROPFIND": b"PROPFIND / HTTP/1.1\r\n",
    "M-SEARCH": b"M-SEARCH / HTTP/1.1\r\n", "no version": b"GET /\r\n", "RTSP": b"DESCRIBE / RTSP/1.0\r\n",
    "method of nobody": b"FOO / HTTP/1.1\r\n", "lower case": b"get / HTTP/1.1\r\n", "line feed": b"\nGET / HTTP/1.1\r\n", "space": b" GET / HTTP/1.1\r\n",
    "tab": b"\tGET / HTTP/1.1\r\n", "NUL": b"\0GET / HTTP/1.1\r\n", "next line": b"\x85GET / HTTP/1.1\r\n", "tabs": b"FOO\t/\tHTTP/1.1\r\n",
    "no break": b"FOO\xa0/\xa0HTTP/1.1\r\n", "return": b"FOO\r/ HTTP/1.1\r\n", "NUL in the target": b"FOO /\0 HTTP/1.1\r\n",
    "no token": b"F(O / HTTP/1.1\r\n", "space behind": b"FOO / HTTP/1.1 \r\n", "1.0": b"FOO / HTTP/1.0\r\n", "bare ends": b"FOO / HTTP/1.1\n",
    "no version, PROPFIND": b"PROPFIND /\r\n", "absolute": b"FOO http://other.test/ HTTP/1.1\r\n", "long": b"F" * 3000 + b" / HTTP/1.1\r\n",
}

class Lenient(http.server.ThreadingHTTPServer):
    """Python's own, with every method there is."""
    address_family, daemon_threads = socket.AF_INET6, True

    def __init__(self, port):
        hosts = self.hosts = []

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def __getattr__(self, name):
                if name.startswith("do_"):
                    return self.reply
                raise AttributeError(name)

            def reply(self):
                host = self.headers.get("Host", "")
                hosts.append(host)
                self.send_response(200)
                self.send_header("Content-Length", str(len(host)))
                self.end_headers()
                self.wfile.write(host.encode())

            def log_message(self, *args):
                pass
        super().__init__((WORLD6, port), Handler)
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def handle_error(self, *args):
        pass


@pytest.fixture(scope="module")
def lenient(world):
    servers = [inside(world.them, Lenient, port) for port in (80, 8080)]
    yield servers
    for s in servers:
        s.shutdown()
        s.server_close()


@pytest.fixture(scope="module")
def node(world):
    """The hosts that a server of node was asked for, one in a line."""
    program = shutil.which("node")
    if not program:
        yield None
        return
    code = f"require('http').createServer((q, r) => {{ console.log(q.headers.host); r.end(q.headers.host) }}).listen(8081, '{WORLD6}', () => console.log('ready'))"
    p = subprocess.Popen(["nsenter", f"--net={world.them.path}", program, "-e", code], stdout=subprocess.PIPE, text=True)
    lines = []
    threading.Thread(target=lambda: lines.extend(iter(p.stdout.readline, "")), daemon=True).start()
    seen = type("Seen", (), {"hosts": lines})
    until(lambda: lines, 20, "a server of node")
    yield seen
    p.kill()
    p.wait()


def reads(world, port, data):
    """Whether a server takes these bytes for a request to the other host, without a gate in between."""
    got = b""
    with inside(world.them, socket.create_connection, (WORLD6, port), 5) as s, contextlib.suppress(OSError):
        s.sendall(data)
        while more := s.recv(1000):
            got += more
    return got.startswith(b"HTTP/1.1 200 ") and b"other.test" in got


def others(server):
    return sum("other.test" in (h or "") for h in server.hosts)


SEND = """
def send(port, data, gap=0):
    with socket.create_connection(("six.test", port), 5) as s:
        for piece in ([data] if not gap else [data[i:i + 1] for i in range(len(data))]):
            s.sendall(piece); time.sleep(gap)
        return "GOT %r" % s.recv(60)
"""


@quick
def test_request_forms(world, daemon, lenient, node, stopped_by):
    """Whatever a server reads as a request is judged as one: by port 80, and by any port that is let through."""
    servers = {80: lenient[0], 8080: lenient[1], **({8081: node} if node else {})}
    missing = [n for n, line in FORMS.items() if not any(reads(world, p, line + HEAD) for p in servers)]
    landed(set(missing) <= ({"empty line", "empty lines", "line feed", "RTSP", "no version, PROPFIND"} if not node else set()), f"nobody reads {missing} as a request")
    before = {p: others(s) for p, s in servers.items()}
    with Box(daemon, egress=["six.test", "six.test:8080", "six.test:8081"]) as box:
        got = attempts(box, SEND + f"for port in {list(before)!r}:\n    for name, line in {FORMS!r}.items(): attempt('%d %s' % (port, name), lambda: send(port, line + {HEAD!r}))")
        assert len(got) == len(before) * len(FORMS)
        passed = {w: o for w, o in reached(got).items() if " 403 " not in o and " 400 " not in o}
        assert not passed, passed
        good = attempts(box, SEND + f"for port in {list(before)!r}:\n"
                        "    for m in ('PROPFIND', '\\r\\nGET', 'POST'): attempt('%d %r' % (port, m), lambda: send(port, ('%s / HTTP/1.1\\r\\nHost: six.test:%d\\r\\n\\r\\n' % (m, port)).encode()))")
        assert len(good) == 3 * len(before) and all(" 200 " in o for o, _ in good.values()), good
        refused = {e["why"] for e in daemon.ledger(box.name) if e["event"] == "egress.refuse"}
        assert "the HTTP host names another host: other.test" in refused, refused
    until(lambda: all("six.test" in str(s.hosts) for s in servers.values()), 5, "the good ones")
    assert before == {p: others(s) for p, s in servers.items()}, "one has arrived"
    stopped_by("gate: whatever a server takes for a request")


@quick
def test_requests_in_pieces(world, daemon, lenient, stopped_by):
    """A first line that arrives byte by byte, or after a word of another protocol."""
    before = [others(s) for s in lenient]
    with Box(daemon, egress=["six.test", "six.test:8080", "echo.test:7007"]) as box:
        got = attempts(box, SEND + f"""
def halves(port, one, two):
    with socket.create_connection(("six.test", port), 5) as s:
        s.sendall(one); time.sleep(0.02); s.sendall(two)
        return "GOT %r" % s.recv(60)
for port in (80, 8080):
    for name in ("PROPFIND", "method of nobody", "empty line", "tabs", "NUL"):
        line = {FORMS!r}[name]
        attempt("%d %s" % (port, name), lambda: send(port, line + {HEAD!r}, 0.001))
        for at in (1, 4, len(line) - 1, len(line)): attempt("%d %s %d" % (port, name, at), lambda: halves(port, line[:at], line[at:] + {HEAD!r}))
attempt("word", lambda: tcp("echo.test", 7007, b"FOO")); attempt("GEX", lambda: tcp("echo.test", 7007, b"GEX"))
def more():
    with socket.create_connection(("echo.test", 7007), 5) as s:
        out = b""
        for word in (b"hello", b" HTTP", b" is", b"\\n", b"GET / HTTP/1.1\\nHost: other.test\\n\\n"):
            s.sendall(word); out += s.recv(100)
        return "GOT %r" % out
attempt("talk", more)
""")
        passed = {w: o for w, o in reached(got).items() if " 403 " not in o and " 400 " not in o}
        assert passed == {"word": "GOT b'FOO'", "GEX": "GOT b'GEX'", "talk": "GOT " + repr(b"hello HTTP is\nGET / HTTP/1.1\nHost: other.test\n\n")}, passed
    assert before == [others(s) for s in lenient]
    stopped_by("gate: what went before is judged with what comes")


@quick
def test_port_80_is_for_http(world, daemon, lenient, stopped_by):
    """Other protocols, TLS and HTTP/2 on port 80: refused at once, and the ledger has the reason; a silent connection is not refused."""
    words = {"ssh": b"SSH-2.0-OpenSSH_9.2\r\n", "postgres": b"\0\0\0\x08\x04\xd2\x16\x2f", "redis": b"*1\r\n$4\r\nPING\r\n", "tls": hello_for("six.test"),
             "h2": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"}
    with Box(daemon, egress=["six.test", "echo.test:7007"]) as box:
        got = attempts(box, f"for n, w in {words!r}.items():\n    attempt(n, lambda: tcp('six.test', 80, w)); attempt('echo ' + n, lambda: tcp('echo.test', 7007, w))")
        assert all(got[n][0].startswith("Connection reset") for n in ("ssh", "postgres", "redis")), got
        assert r"\x15\x03\x01\x00\x02\x021" in got["tls"][0] and " 403 " in got["h2"][0], got
        assert all(got["echo " + n][0] == f"GOT {words[n]!r}" for n in ("ssh", "postgres", "redis")), "the control: elsewhere they pass"
        assert not {n: v for n, v in got.items() if v[1] > 2000}, got
        why = [e["why"] for e in daemon.ledger(box.name) if e["event"] == "egress.refuse" and e["port"] == 80]
        assert why.count("port 80 is for plain HTTP, and this is another protocol") == 4, why
        box.execute("import socket; socket.create_connection(('six.test', 80)).close()")
        time.sleep(0.1)
        assert len([e for e in daemon.ledger(box.name) if e["event"] == "egress.refuse" and e["port"] == 80]) == len(why)
    stopped_by("gate: one protocol on port 80")


def test_half_a_request_head(world, daemon, lenient, stopped_by):
    """A head that stops for longer than the gate waits is not let through as something else."""
    before = others(lenient[1])
    with Box(daemon, egress=["six.test:8080"]) as box:
        r = box.execute("import socket\ns = socket.create_connection(('six.test', 8080), 10); s.sendall(b'GET / HTTP/1.1\\r\\nHo')")
        assert r["status"] == "ok", r
        time.sleep(31)  # longer than the gate waits
        got = attempts(box, f"def rest():\n    s.sendall({HEAD!r}[2:]); return 'GOT %r' % s.recv(60)\nattempt('slow', rest)")
        assert not [o for o in reached(got).values() if " 403 " not in o], got
    assert others(lenient[1]) == before, got
    stopped_by("gate: half a head is refused")
