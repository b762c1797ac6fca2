# SPDX-License-Identifier: Apache-2.0
"""test_egress.py - Hosts that a sandbox may reach, by name: permission, refusal and its speed, and the reports."""
import fcntl
import hashlib
import json
import os
import signal
import socket
import ssl
import textwrap
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from box_lib import Box
from cli_lib import Cli
from egress_lib import Resolver, Server, Web, certificate, echo, gate_of, supervisor_of
from process import unique, wait_until
from serve_lib import Daemon


def ledger(d):
    return [json.loads(line) for line in (d.state / "ledger" / "ledger.jsonl").read_text().splitlines()]


def kill_front(d):
    old = d.pid
    os.kill(old, signal.SIGKILL)
    assert wait_until(lambda: d.find_front() not in (None, old))
    d.wait_ready()


class Outside:
    """A resolver, a web server, an echo server, and the daemon that may reach them."""

    def __init__(self, where):
        self.dns = Resolver()
        self.web, self.echo = Web(), Server(echo)
        self.tls = Web(tls=certificate(where, "web.test", "other.test"))
        self.daemon = Daemon(where, "--pool", "2", "--egress-private", "127.0.0.0/8,::1",
                             "--egress-dns", self.dns.address)
        self.dns.zone.update({"web.test": ["127.0.0.1"], "other.test": ["127.0.0.1"], "a.wild.test": ["127.0.0.1"],
                              "b.a.wild.test": ["127.0.0.1"], "meta.test": ["169.254.169.254"],
                              "private.test": ["10.1.2.3"], "xn--bcher-kva.test": ["127.0.0.1"]})

    def close(self):
        self.daemon.stop()
        for s in (self.dns, self.web, self.echo, self.tls):
            s.close()

    def host(self, name="web.test", server=None):
        return "%s:%d" % (name, (server or self.echo).port)


@pytest.fixture(scope="module")
def outside(tmp_path_factory):
    o = Outside(tmp_path_factory.mktemp("egress"))
    yield o
    o.close()


def box(outside, *egress, **spec):
    return Box(outside.daemon, egress=list(egress), **spec)


def run(b, code, **fields):
    r = b.post("/execute", {"code": textwrap.dedent(code), **fields})
    assert r.status == 200, r
    return r.json


def says(b, code, **fields):
    r = run(b, code, **fields)
    assert r["status"] == "ok", r
    return r["stdout"]


TRY = """
import socket, time
def attempt(host, port, say=b"hi"):
    t, slow = time.monotonic(), ""
    try:
        with socket.create_connection((host, port), timeout=30) as s:
            s.sendall(say)
            got = s.recv(200)
        what = "got %r" % got if got else "closed"
    except OSError as e:
        what = type(e).__name__ + " " + str(e)
        slow = "SLOW" if time.monotonic() - t > 4.5 else ""  # a name that nobody answers for costs five seconds
    print(what, slow)
"""


def attempt(b, host, port, say=b"hi"):
    return says(b, TRY + "attempt(%r, %d, %r)" % (host, port, say)).strip()


# ---- allowed connections ----------------------------------------------------------------------------------------


def test_the_receipt_matches_the_gate(outside):
    def rules(b):
        return b.about()["receipt"]["rules"]

    with box(outside, outside.host()) as b:
        b.shell("true")
        assert rules(b) == {"egress": [outside.host()], "gate": "open", "secrets": [], "policy": None}
        assert outside.daemon.request("PUT", b.url + "/egress", {"egress": []}).status == 200
        assert rules(b)["egress"] == []
    with box(outside) as b:
        b.shell("true")
        assert rules(b) == {"egress": [], "gate": "closed", "secrets": [], "policy": None}


def test_an_allowed_name_is_reached(outside):
    with box(outside, outside.host()) as b:
        assert attempt(b, "web.test", outside.echo.port) == "got b'hi'"
        assert attempt(b, "WEB.Test.", outside.echo.port) == "got b'hi'"
        assert says(b, "print(socket.getaddrinfo('web.test', 1, socket.AF_INET6)[0][4][0])").startswith("2001:2:")
        assert b.about()["spec"]["egress"] == [outside.host()]


def test_without_egress_there_is_nothing(outside):
    before = len(outside.dns.asked)
    with box(outside) as b:
        assert "gaierror" in attempt(b, "web.test", outside.echo.port)
        assert "refused" in attempt(b, "127.0.0.1", outside.echo.port)
        assert "unreachable" in attempt(b, "192.0.2.1", 80)
        assert "refused" in attempt(b, "198.18.1.0", 443)
    assert len(outside.dns.asked) == before


def test_ipv6_and_wildcards(outside):
    with box(outside, outside.host("*.wild.test")) as b:
        assert attempt(b, "a.wild.test", outside.echo.port) == "got b'hi'"
        assert attempt(b, "b.a.wild.test", outside.echo.port) == "got b'hi'"
        for name in ("wild.test", "xwild.test", "wild.test.evil.test", "a.wild.test.evil", "a-wild.test"):
            assert "gaierror" in attempt(b, name, outside.echo.port), name
        six = says(b, "import socket; print(socket.getaddrinfo('a.wild.test', 1, socket.AF_INET6)[0][4][0])").strip()
        assert attempt(b, six, outside.echo.port) == "got b'hi'"


def test_half_close_and_much_data(outside):
    """The directions are independent: a client that has finished sending still receives everything."""
    with box(outside, outside.host()) as b:
        assert says(b, """
            import hashlib, os, socket, threading
            s = socket.create_connection(("web.test", %d))
            data = os.urandom(1 << 20) * 24
            def push():
                s.sendall(data)
                s.shutdown(socket.SHUT_WR)
            threading.Thread(target=push).start()
            h, n = hashlib.sha256(), 0
            while chunk := s.recv(1 << 16):
                h.update(chunk); n += len(chunk)
            print(n == len(data), h.digest() == hashlib.sha256(data).digest())
            """ % outside.echo.port) == "True True\n"
        net = b.get("/net").json
        assert net["bytes_out"] >= 24 << 20 and net["bytes_in"] >= 24 << 20 and net["opened"] == 1, net


def pipe_sizes(pid):
    """The sizes of the pipes of a process, one for each end that it has, as the Linux kernel reports them."""
    sizes = []
    for fd in os.listdir(f"/proc/{pid}/fd"):
        path = f"/proc/{pid}/fd/{fd}"
        try:
            if os.readlink(path).startswith("pipe:"):
                mine = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
                sizes.append(fcntl.fcntl(mine, 1032))  # F_GETPIPE_SZ
                os.close(mine)
        except FileNotFoundError:
            pass  # it ended in the meantime
    return sizes


@pytest.mark.slow
@pytest.mark.skipif(os.geteuid() != 0, reason="only root sees what descriptors the gate has")
def test_a_fast_stream_has_a_large_pipe(outside):
    """The bytes that passed through it are those that were sent."""
    large, stop, block = 1 << 20, threading.Event(), os.urandom(1 << 20)
    sent = hashlib.sha256()

    def pour(c):
        while not stop.is_set():
            c.sendall(block)
            sent.update(block)
    tap = Server(pour)
    try:
        with box(outside, outside.host(server=tap)) as b, ThreadPoolExecutor(1) as pool:
            got = pool.submit(says, b, """
                import hashlib, socket
                h = hashlib.sha256(); s = socket.create_connection(("web.test", %d))
                while chunk := s.recv(1 << 20): h.update(chunk)
                print(h.hexdigest())
                """ % tap.port, timeout=120)
            gate = gate_of(outside.daemon.pid)
            assert wait_until(lambda: large in pipe_sizes(gate)), pipe_sizes(gate)
            stop.set()
            assert got.result().strip() == sent.hexdigest()
            assert pipe_sizes(gate).count(large) <= 2 * 16  # both ends of each
    finally:
        stop.set()
        tap.close()


def test_inside_nothing_is_paced(outside):
    """Between a program of the cell and the gate is one loopback device, whatever the host chose for networks."""
    with box(outside, outside.host()) as b:
        low, paced = says(b, """
            import socket
            try: low = bool(socket.create_server(("127.0.0.1", 99)))
            except PermissionError: low = False
            s = socket.create_connection(("web.test", %d))
            print(low, s.getsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, 16).rstrip(b"\\0").decode())
            """ % outside.echo.port).split()
        if low == "False":
            pytest.skip("/proc is read-only here: settings of a cell's network cannot be changed")
        assert paced == "reno"


# ---- refusals ------------------------------------------------------------------------------------------------------


def test_other_names_ports_and_addresses_fail_at_once(outside):
    before = len(outside.dns.asked)
    with box(outside, outside.host(), "other.test") as b:
        for name in ("evil.test", "web.test.evil.test", "evilweb.test", "pypi.org", "localhost.evil"):
            what = attempt(b, name, outside.echo.port)
            assert "gaierror" in what and "SLOW" not in what, (name, what)
        for host, port in (("web.test", 22), ("web.test", 443), ("other.test", outside.echo.port)):
            what = attempt(b, host, port)
            assert "Refused" in what or "Reset" in what, (host, port, what)
            assert "SLOW" not in what
        for address in ("1.1.1.1", "10.0.0.1", "169.254.169.254", "2606:4700::1111", "fe80::1%lo", "224.0.0.1"):
            what = attempt(b, address, 443)
            assert "unreachable" in what or "OSError" in what, (address, what)
        # unused addresses of the gate's own range
        for address in ("198.18.200.1", "2001:2::9999", "127.0.0.1", "::1"):
            what = attempt(b, address, outside.echo.port)
            assert "Reset" in what or "closed" in what, (address, what)
    assert not set(outside.dns.asked[before:]) & {"evil.test", "pypi.org"}, "the resolver was asked for a name that is not allowed"


def test_addresses_are_judged_after_the_name(outside):
    """An allowed name may resolve to any address of its owner's choice, but never to the metadata service of a cloud, whatever the operator allows."""
    with box(outside, "meta.test:80", "private.test:80", "private.test:443") as b:
        for name in ("meta.test", "private.test"):
            what = attempt(b, name, 80, b"GET / HTTP/1.1\r\nHost: %s\r\n\r\n" % name.encode())
            assert "403 Forbidden" in what and "SLOW" not in what, what
        assert "Reset" in attempt(b, "private.test", 443, b"\x00\x01raw")
        assert b.get("/net").json["refused"] == 3
        lines = [e for e in ledger(outside.daemon) if e["sandbox"] == b.name and e["event"] == "egress.refuse"]
        assert [(e["host"], e["why"]) for e in lines] == [
            ("meta.test", "the name leads to a link-local address"), ("private.test", "the name leads to a private address"),
            ("private.test", "the name leads to a private address")]


def test_an_answer_that_changes_changes_nothing(outside):
    """Rebinding: whatever a name resolves to later, the gate connects to the address that it judged."""
    turns = iter(["127.0.0.1", "10.9.9.9", "127.0.0.1", "169.254.169.254"] * 3)
    outside.dns.zone["turn.test"] = lambda: [next(turns)]
    with box(outside, outside.host("turn.test")) as b:
        got = [attempt(b, "turn.test", outside.echo.port) for _ in range(4)]
    assert all("got b'hi'" in g or "Reset" in g for g in got), got
    # a name with a good and a bad address: only the good one is used
    outside.dns.zone["mixed.test"] = ["10.9.9.9", "127.0.0.1", "fd00:ec2::254"]
    with box(outside, outside.host("mixed.test")) as b:
        assert attempt(b, "mixed.test", outside.echo.port) == "got b'hi'"


def hello_for(name):
    """A ClientHello with this server name, as OpenSSL writes it."""
    context = ssl.create_default_context()
    context.check_hostname = False
    into, out = ssl.MemoryBIO(), ssl.MemoryBIO()
    o = context.wrap_bio(into, out, server_hostname=name)
    try:
        o.do_handshake()
    except ssl.SSLWantReadError:
        pass
    return out.read()


def test_first_words_that_contradict_the_name(outside):
    with box(outside, outside.host(), outside.host(server=outside.web), outside.host(server=outside.tls)) as b:
        port = outside.web.port
        good = b"GET / HTTP/1.1\r\nHost: web.test:%d\r\nConnection: close\r\n\r\n" % port
        assert "200 OK" in attempt(b, "web.test", port, good)
        for bad in (b"GET / HTTP/1.1\r\nHost: other.test\r\n\r\n", b"GET / HTTP/1.1\r\nHost: web.test:1\r\n\r\n",
                    b"GET http://other.test/ HTTP/1.1\r\nHost: web.test\r\n\r\n", b"CONNECT other.test:443 HTTP/1.1\r\n\r\n",
                    b"GET / HTTP/1.1\r\nHost: web.test\r\nHost: other.test\r\n\r\n", b"GET / HTTP/1.1\r\nHost : x\r\n\r\n",
                    b"GET / HTTP/1.1\r\nHost: user@web.test\r\n\r\n", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
                    b"GET / HTTP/1.1\r\nX: a\r\n Host: other.test\r\n\r\n"):
            assert "403 Forbidden" in attempt(b, "web.test", port, bad), bad
        assert not [h for p, h in outside.web.heads if "other.test" in str(h)]
        # TLS: the alert is access denied (49)
        assert r"\x15\x03\x01\x00\x02\x021" in attempt(b, "web.test", outside.tls.port, hello_for("other.test"))
        assert r"\x16\x03" in attempt(b, "web.test", outside.tls.port, hello_for("web.test"))
        # the same, cut into single bytes
        assert says(b, """
            import socket, time
            s = socket.create_connection(("web.test", %d))
            for byte in %r:
                s.sendall(bytes([byte])); time.sleep(0.001)
            print(s.recv(100)[:12])
            """ % (port, b"GET / HTTP/1.1\r\nHost: other.test\r\n\r\n")) == "b'HTTP/1.1 403'\n"
        # another protocol passes unchanged, also when the server sends first
        assert attempt(b, "web.test", outside.echo.port, b"\x00\xffGE") == r"got b'\x00\xffGE'"


def test_server_sends_first(outside):
    greet = Server(lambda c: (c.sendall(b"220 hello\r\n"), echo(c)))
    with box(outside, outside.host(server=greet)) as b:
        assert says(b, """
            import socket
            s = socket.create_connection(("web.test", %d))
            print(s.recv(100)); s.sendall(b"HELO\\r\\n"); print(s.recv(100))
            """ % greet.port) == "b'220 hello\\r\\n'\nb'HELO\\r\\n'\n"
    greet.close()


# ---- entries ----------------------------------------------------------------------------------------------------


def test_entries(outside):
    """Each entry has one form, and ambiguous entries are refused; tests/unit/front/test_egress_entry.c has every spelling."""
    with box(outside, "API.Example.COM.", "b\u00fccher.test:8443", "*.Example.org", "api.example.com") as b:
        assert b.about()["spec"]["egress"] == ["*.example.org", "api.example.com", "xn--bcher-kva.test:8443"]
    for entry in ("*", "*.com", "10.0.0.1", "127.1", "http://example.com", "user@example.com", "example.com\x00.evil", "example.com:53", "localhost", "a.localhost:80"):
        r = outside.daemon.post("/v1/sandboxes", {"name": unique(), "egress": ["web.test", entry]})
        assert r.status == 422 and r.error["code"] == "invalid_value" and r.error["field"].startswith("egress"), (entry, r)
    assert "is the sandbox itself" in r.error["message"], r


# ---- changes -----------------------------------------------------------------------------------------------------


def test_rules_change_while_it_runs(outside):
    held = Server(echo)
    with box(outside) as b:
        assert "gaierror" in attempt(b, "web.test", held.port)
        r = outside.daemon.request("PUT", b.url + "/egress", {"egress": [outside.host(server=held)]})
        assert r.status == 200 and r.json == {"egress": [outside.host(server=held)]}, r
        assert says(b, """
            import socket
            s = socket.create_connection(("web.test", %d)); s.sendall(b"1"); print(s.recv(1))
            """ % held.port) == "b'1'\n"
        assert [(c["host"], c["state"]) for c in b.get("/net").json["connections"]] == [("web.test", "open")]
        # further entries leave it open
        assert outside.daemon.request("PUT", b.url + "/egress",
                                      {"egress": [outside.host(server=held), outside.host()]}).status == 200
        assert says(b, "s.sendall(b'2'); print(s.recv(1))") == "b'2'\n"
        assert attempt(b, "web.test", outside.echo.port) == "got b'hi'"
        # a shorter list cuts it
        assert outside.daemon.request("PUT", b.url + "/egress", {"egress": []}).status == 200
        assert "Error" in says(b, """
            try:
                s.sendall(b"3"); print(s.recv(1))
            except OSError as e:
                print(type(e).__name__)
            """)
        assert wait_until(lambda: b.get("/net").json["live"] == 0)
        assert "gaierror" in attempt(b, "web.test", held.port)
        assert b.get("/egress").json == {"egress": []} and b.about()["spec"]["egress"] == []
    held.close()


def test_a_port_that_a_service_has(outside):
    with box(outside) as b:
        says(b, "import socket; l = socket.create_server(('127.0.0.1', 8080))")
        r = outside.daemon.request("PUT", b.url + "/egress", {"egress": ["web.test:8080"]})
        assert r.status == 409 and r.error["code"] == "port_in_use", r
        assert b.get("/egress").json == {"egress": []}


def test_a_front_that_is_killed(outside):
    """The next front starts another gate, and the sandbox has its egress again; open connections are cut."""
    d = outside.daemon
    with box(outside, outside.host()) as b:
        assert says(b, "import socket; s = socket.create_connection(('web.test', %d)); s.sendall(b'1'); print(s.recv(1))"
                    % outside.echo.port) == "b'1'\n"
        kill_front(d)
        assert attempt(b, "web.test", outside.echo.port) == "got b'hi'"
        assert "b''" in says(b, "try: print(s.recv(1))\nexcept OSError: print(b'')")


def test_a_gate_that_is_killed(outside):
    """Another gate replaces it and the front continues: variables are kept, open connections are cut, and this is reported."""
    d = outside.daemon
    front, old, before = d.pid, gate_of(d.pid), d.metrics()["caisson_gate_restarts_total"]
    with box(outside, outside.host()) as b, box(outside) as none:
        assert says(b, "x = 41; import socket; s = socket.create_connection(('web.test', %d)); s.sendall(b'1'); print(s.recv(1))"
                    % outside.echo.port) == "b'1'\n"
        os.kill(old, signal.SIGKILL)
        assert wait_until(lambda: d.metrics()["caisson_gate_restarts_total"] == before + 1)
        assert d.find_front() == front == d.pid and gate_of(front) != old and wait_until(lambda: d.log("gate_again"))
        assert says(b, "print(x + 1)") == "42\n"
        assert "b''" in says(b, "try: print(s.recv(1))\nexcept OSError: print(b'')")
        assert attempt(b, "web.test", outside.echo.port) == "got b'hi'"
        assert "gaierror" in attempt(b, "other.test", outside.echo.port), "other hosts are allowed too"
        assert ["*", "the gate was replaced; open connections were cut"] in [
            [e["host"], e["why"]] for e in ledger(d) if e["sandbox"] == b.name and e["event"] == "egress.close"]
        # a sandbox without egress can still get some
        r = d.request("PUT", none.url + "/egress", {"egress": [outside.host()]})
        assert r.status == 200 and attempt(none, "web.test", outside.echo.port) == "got b'hi'"


def test_code_that_runs_while_the_gate_is_killed(outside):
    """An execution that loses its connection continues and connects again, and its owner gets the reason."""
    d = outside.daemon
    with box(outside, outside.host()) as b:
        with ThreadPoolExecutor() as pool:
            running = pool.submit(run, b, """
                import socket, time
                s = socket.create_connection(("web.test", %d)); s.sendall(b"1"); s.recv(1)
                open("connected", "w").close()
                try: gone = s.recv(1)
                except OSError: gone = b""
                end = time.monotonic() + 30
                got = b""
                while not got:
                    assert time.monotonic() < end
                    try:
                        s = socket.create_connection(("web.test", %d)); s.sendall(b"2"); got = s.recv(1)
                    except OSError:
                        time.sleep(0.05)
                print(gone, got)
                raise SystemExit(3)
                """ % (outside.echo.port, outside.echo.port))
            assert wait_until(lambda: b.get("/files?path=connected").status == 200)
            os.kill(gate_of(d.pid), signal.SIGKILL)
            r = running.result(60)
        assert r["stdout"] == "b'' b'2'\n" and r["exit_code"] == 3, r
        assert r["hint"] == "the gate was replaced; open connections were cut; try again", r


def test_a_supervisor_that_is_killed(outside):
    """The front cannot start a supervisor from its jail: the next front does, and continues with the sandboxes."""
    d = outside.daemon
    with box(outside, outside.host()) as b:
        says(b, "x = 41")
        old = d.pid
        os.kill(supervisor_of(old), signal.SIGKILL)
        assert wait_until(lambda: d.find_front() not in (None, old)) and d.log("gate_gone")
        d.wait_ready()
        assert says(b, "print(x + 1)") == "42\n"
        assert attempt(b, "web.test", outside.echo.port) == "got b'hi'"


def test_requests_of_one_connection(outside):
    """Over plain HTTP every request must be for the host of the connection, not only the first."""
    web = Server(vhosts)
    web.seen = vhosts.seen = []
    ask = "GET /%s HTTP/1.1\r\nHost: %s:%d\r\n\r\n"
    with box(outside, outside.host(server=web)) as b:
        say(b, web.port)
        asked = [ask % (path, host, web.port) for path, host in (("1", "web.test"), ("2", "WEB.test."), ("3", "other.test"), ("4", "web.test"))]
        got = json.loads(says(b, "print(json.dumps([ask(x) for x in %r]))" % asked))
        assert [x.split()[1] for x in got[:3]] == ["200", "200", "421"], got
        assert "web.test" in got[0] and "not the one that was connected to" in got[2], got
        assert not any("other.test" in head for head in web.seen), web.seen
        # a request in the body of another, and one with two lengths
        for evil in ("POST / HTTP/1.1\r\nHost: web.test\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
                     "GET / HTTP/1.1\r\nHost: web.test\r\nContent-Length: 3\r\nContent-Length: 0\r\n\r\n"):
            say(b, web.port)
            says(b, "print(ask(%r))" % (evil + ask % ("x", "other.test", web.port)))
        assert not any("other.test" in head for head in web.seen), web.seen
        # headers that Connection names as hop-by-hop, and a header for a proxy
        say(b, web.port)
        says(b, "print(ask(%r))" % ("GET /hop HTTP/1.1\r\nHost: web.test:%d\r\nConnection: host, content-length, x-mine\r\nContent-Length: 0\r\nX-Mine: 1\r\n"
                                    "Proxy-Authorization: Basic eA==\r\nX-Other: 2\r\n\r\n" % web.port))
        assert web.seen[-1].lower().split("\r\n")[1:] == [f"host: web.test:{web.port}", "content-length: 0", "x-other: 2"], web.seen[-1]
        refused = [e for e in ledger(outside.daemon) if e["sandbox"] == b.name and e["event"] == "egress.refuse"]
        assert "the HTTP host is not the one that was connected to" in [e["why"] for e in refused]
        # HTTP/1.0 without a Host gets the host of the connection
        say(b, web.port)
        assert "200" in says(b, "print(ask('GET /old HTTP/1.0\\r\\n\\r\\n'))") and "host: web.test" in web.seen[-1].lower()
    # the control: a server serves each request for the host that it names
    with socket.create_connection(("127.0.0.1", web.port)) as s:
        for host in ("web.test", "other.test"):
            s.sendall((ask % ("c", host, web.port)).encode())
            assert b"200" in s.recv(1000)
    assert "other.test" in web.seen[-1]
    web.close()


def say(b, port):
    says(b, """
        import json, re, socket
        s = socket.create_connection(("web.test", %d)); s.settimeout(10)
        def ask(text):
            try:
                s.sendall(text.encode())
                got = b""
                while b"\\r\\n\\r\\n" not in got or len(got.split(b"\\r\\n\\r\\n", 1)[1]) < int(re.search(rb"(?i)length: (\\d+)", got)[1]):
                    more = s.recv(2000)
                    if not more:
                        break
                    got += more
                return got.decode()
            except OSError as e:
                return repr(e)
        """ % port)


def vhosts(c):
    """A server of many names on one connection."""
    text = b""
    while True:
        while b"\r\n\r\n" not in text:
            got = c.recv(4096)
            if not got:
                return
            text += got
        head, text = text.split(b"\r\n\r\n", 1)
        vhosts.seen.append(head.decode())
        host = next((x for x in head.decode().split("\r\n") if x.lower().startswith("host:")), "none").encode()
        c.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(host), host))


def test_http_where_a_server_may_send_first(outside):
    """On ports other than 80 the connection is open before the client sends; HTTP from the client is still detected."""
    web = Server(vhosts)
    web.seen = vhosts.seen = []
    with box(outside, outside.host(server=web)) as b:
        say(b, web.port)
        assert wait_until(lambda: [c["state"] for c in b.get("/net").json["connections"]] == ["open"])
        assert " 200 " in says(b, "print(ask('GET / HTTP/1.1\\r\\nHost: web.test\\r\\n\\r\\n'))")
        assert " 421 " in says(b, "print(ask('GET / HTTP/1.1\\r\\nHost: other.test\\r\\n\\r\\n'))")
    assert len(web.seen) == 1
    web.close()


def test_the_proxy_of_the_host(outside, tmp_path):
    """With HTTPS_PROXY every connection uses CONNECT with the name, except those in NO_PROXY."""
    asked = []

    def proxy(c):
        head = b""
        while b"\r\n\r\n" not in head:
            head += c.recv(1)
        asked.append(head.decode().split("\r\n"))
        if "forbidden" in asked[-1][0]:
            c.sendall(b"HTTP/1.1 403 No\r\n\r\n")
            return
        c.sendall(b"HTTP/1.1 200 OK\r\nX: y\r\n\r\n")
        echo(c)

    p = Server(proxy)
    with Daemon(tmp_path, "--pool", "1", "--egress-private", "127.0.0.0/8", "--egress-dns", outside.dns.address,
                env={"HTTPS_PROXY": "http://u:p@127.0.0.1:%d" % p.port, "NO_PROXY": "web.test"}) as d, \
            Box(d, egress=["far.test:5000", "forbidden.test:5000", outside.host()]) as b:
        before = len(outside.dns.asked)
        assert attempt(b, "far.test", 5000) == "got b'hi'"
        assert asked[0][0] == "CONNECT far.test:5000 HTTP/1.1" and "Proxy-Authorization: Basic dTpw" in asked[0], asked
        assert "Reset" in attempt(b, "forbidden.test", 5000)
        assert attempt(b, "web.test", outside.echo.port) == "got b'hi'"
        # for a refused name the client may try both addresses
        assert {a[0].split()[1] for a in asked} == {"far.test:5000", "forbidden.test:5000"} and set(outside.dns.asked[before:]) == {"web.test"}
    p.close()


def test_a_proxy_that_is_not_there(outside, tmp_path):
    """The proxy's name is looked up for each connection: the proxy may start after the daemon, stop, and move."""
    def proxy(c):
        while b"\r\n\r\n" not in c.recv(4096):
            pass
        c.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
        echo(c)

    p = Server(proxy)
    q = Server(proxy, address="127.0.0.2", port=p.port)
    with Daemon(tmp_path, "--pool", "1", "--egress-dns", outside.dns.address,
                env={"HTTPS_PROXY": "http://proxy.test:%d" % p.port}) as d, Box(d, egress=["far.test:5000"]) as b:
        before = d.metrics()["caisson_egress_failed_total"]
        assert "Reset" in attempt(b, "far.test", 5000)
        assert b.get("/net").json["refusals"][0]["why"] == "the proxy proxy.test does not exist"
        assert d.metrics()["caisson_egress_failed_total"] > before
        r = run(b, "import socket; socket.create_connection(('far.test', 5000)).recv(1)")
        assert r["hint"] == "egress to far.test:5000 failed: the proxy proxy.test does not exist", r
        outside.dns.zone["proxy.test"] = ["127.0.0.1"]
        assert attempt(b, "far.test", 5000) == "got b'hi'" and len(p.peers) == 1
        outside.dns.zone["proxy.test"] = ["127.0.0.2"]
        assert attempt(b, "far.test", 5000) == "got b'hi'" and len(q.peers) == 1 and len(p.peers) == 1
        q.close()
        outside.dns.zone["proxy.test"] = ["127.0.0.3", "127.0.0.1"]
        assert attempt(b, "far.test", 5000) == "got b'hi'", "the next address"
        outside.dns.zone["proxy.test"] = ["127.0.0.3"]
        assert "Reset" in attempt(b, "far.test", 5000)
        assert b.get("/net").json["refusals"][0]["why"] == "the proxy proxy.test could not be reached"
    del outside.dns.zone["proxy.test"]
    p.close()


def test_for_one_execution(outside):
    code = TRY + "attempt('web.test', %d)" % outside.echo.port
    assert outside.daemon.post("/v1/run_python", {"code": code, "egress": [outside.host()]}).json["stdout"].strip() == "got b'hi'"
    assert "gaierror" in outside.daemon.post("/v1/run_python", {"code": code}).json["stdout"]
    r = outside.daemon.post("/v1/run_shell", {"script": "curl -sS http://evil.test/", "egress": [outside.host()]}).json
    assert r["exit_code"] == 6 and r["hint"] == "egress to evil.test is not allowed; add it to egress", r


def test_a_cell_that_is_replaced_has_it_again(outside):
    with box(outside, outside.host(), memory_mib=64, oom="sandbox") as b:
        assert attempt(b, "web.test", outside.echo.port) == "got b'hi'"
        r = run(b, "x = bytearray(200 << 20)")
        assert (r["cause"], r["files"]) == ("memory", "lost"), r
        assert attempt(b, "web.test", outside.echo.port) == "got b'hi'"


# ---- reports ------------------------------------------------------------------------------------------------------


def test_refusals_are_reported(outside):
    before = outside.daemon.metrics()
    with box(outside, outside.host()) as b:
        attempt(b, "web.test", outside.echo.port)
        # the far end closes at its own time
        assert wait_until(lambda: b.get("/net").json["closed"] == 1)
        r = run(b, "import urllib.request; urllib.request.urlopen('https://pypi.org/')")
        assert r["hint"] == "egress to pypi.org is not allowed; add it to egress", r
        net = b.get("/net").json
        assert net["names_refused"] >= 1 and net["opened"] == 1 and net["bytes_out"] == 2 and net["bytes_in"] == 2, net
        says(b, "import socket; s = socket.create_connection(('web.test', %d))" % outside.echo.port)
        # a connection of the cell may not be connected outside yet
        assert wait_until(lambda: [c["state"] for c in b.get("/net").json["connections"]] == ["open"])
    # also connections that the sandbox's end has cut
    assert wait_until(lambda: [e["why"] for e in ledger(outside.daemon) if e["sandbox"] == b.name and e["event"] == "egress.close"]
                      == ["", "the sandbox is over"])
    lines = [e for e in ledger(outside.daemon) if e["sandbox"] == b.name and e["event"].startswith("egress.")]
    kinds = [e["event"] for e in lines]
    assert kinds[:2] == ["egress.open", "egress.close"] and "egress.name" in kinds, kinds
    assert lines[0]["host"] == "web.test" and lines[0]["address"] == "127.0.0.1" and lines[1]["bytes_out"] == 2
    after = outside.daemon.metrics()
    assert after["caisson_egress_connections_total"] == before["caisson_egress_connections_total"] + 2
    assert after["caisson_egress_refused_total"] > before["caisson_egress_refused_total"]


def test_the_ledger_has_the_whole_list(outside):
    names = ["host-%02d.example.test:443" % i for i in range(40)]
    with box(outside) as b:
        assert outside.daemon.request("PUT", b.url + "/egress", {"egress": names}).status == 200
        lines = [e for e in ledger(outside.daemon) if e["sandbox"] == b.name and e["event"] == "egress.change"]
        assert [json.loads(e["egress"]) for e in lines] == [names]


def test_a_flood_is_counted_not_written(outside):
    with box(outside, outside.host()) as b:
        says(b, """
            import socket
            s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.settimeout(0.2)
            for i in range(400):
                name = b"x%d" % i
                s.sendto(b"ab\\1\\0\\0\\1\\0\\0\\0\\0\\0\\0" + bytes([len(name)]) + name + b"\\4evil\\0\\0\\1\\0\\1", ("198.18.0.1", 53))
                try: s.recv(512)
                except OSError: pass
            """)
        wait_until(lambda: any(e["event"] == "egress.flood" for e in ledger(outside.daemon) if e["sandbox"] == b.name))

    def lines():
        return [e for e in ledger(outside.daemon) if e["sandbox"] == b.name and e["event"] in ("egress.name", "egress.flood")]
    assert wait_until(lambda: sum(e["count"] for e in lines()) == 400), lines()[-3:]
    assert sum(e["event"] == "egress.name" for e in lines()) < 300


def test_resolver_answers_only_known_names(outside):
    """Types, classes and garbage, as bytes: never a crash, never another name's address."""
    with box(outside, outside.host()) as b:
        out = says(b, """
            import socket, struct
            def ask(name, kind, cls=1, tcp=False, raw=None):
                q = raw if raw is not None else b"ab\\1\\0\\0\\1\\0\\0\\0\\0\\0\\0" + b"".join(
                    bytes([len(l)]) + l for l in name.split(b".")) + b"\\0" + struct.pack(">HH", kind, cls)
                if tcp:
                    s = socket.create_connection(("198.18.0.1", 53), timeout=5)
                    s.sendall(struct.pack(">H", len(q)) + q)
                    r = s.recv(2000)[2:]
                else:
                    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.settimeout(30)
                    s.sendto(q, ("198.18.0.1", 53))
                    if raw is not None:  # what is answered next is this, or the one before was answered
                        s.sendto(b"zz\\1\\0\\0\\1\\0\\0\\0\\0\\0\\0\\4evil\\4test\\0\\0\\1\\0\\1", ("198.18.0.1", 53))
                    r = s.recv(2000)
                    if r[:2] == b"zz": return "nothing"
                return r[3] & 15, struct.unpack(">H", r[6:8])[0]
            for kind in (1, 28, 16, 65, 64, 255): print(ask(b"web.test", kind), ask(b"evil.test", kind), end=" ")
            print(ask(b"web.test", 1, tcp=True), ask(b"evil.test", 16, tcp=True), ask(b"web.test", 1, 3), ask(b"web test", 1))
            for raw in (b"", b"a", b"ab" + b"\\0" * 10, b"ab\\1\\0\\0\\1" + b"\\0" * 6 + b"\\xc0\\x0c\\0\\1\\0\\1", b"\\xff" * 500,
                        b"ab\\1\\0\\0\\1" + b"\\0" * 6 + b"\\x3f" + b"x" * 20):
                print(ask(None, 0, raw=raw), end=" ")
            """).splitlines()
    assert out[0] == "(0, 1) (3, 0) (0, 1) (3, 0) (0, 0) (3, 0) (0, 0) (3, 0) (0, 0) (3, 0) (0, 0) (3, 0) (0, 1) (3, 0) (4, 0) (3, 0)", out
    assert out[1].strip() == "nothing nothing (1, 0) (1, 0) nothing (1, 0)", out


def test_the_command(outside):
    cli = Cli(CAISSON_URL="http://127.0.0.1:%d" % outside.daemon.port)
    name = unique()
    assert cli.ok("create", name, "--egress", outside.host(), "--egress", "API.example.com").out.decode().strip() == name
    b = Box.__new__(Box)
    b.daemon, b.name, b.url = outside.daemon, name, "/v1/sandboxes/" + name
    says(b, "import socket; s = socket.create_connection(('web.test', %d)); s.sendall(b'123'); s.recv(3)" % outside.echo.port)
    attempt(b, "evil.test", 80)
    out = cli.ok("net", name).out.decode()
    assert "web.test" in out and "127.0.0.1" in out and "evil.test" in out and "1 connections opened" in out, out
    net = json.loads(cli.ok("net", name, "--json").out)
    assert [(n["host"], n["allowed"]) for n in net["names"]] == [("evil.test", False), ("web.test", True)], net
    assert sum(n["count"] for n in net["names"]) == net["names_asked"] and "ASKED FOR" in out, (net, out)
    assert net["live"] == 1 and net["refusals"][0]["host"] == "evil.test" and net["connections"][0]["bytes_in"] == 3, net
    assert cli.ok("net", name, "--egress", "web.test").out.split() == [b"web.test"]
    assert cli.ok("net", name, "--egress", "none").out == b""
    assert wait_until(lambda: json.loads(cli.ok("net", name, "--json").out)["live"] == 0)
    cli.ok("rm", name)
