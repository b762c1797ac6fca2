# SPDX-License-Identifier: Apache-2.0
"""test_egress_packets.py - Egress, observed where it arrives: packets on the wire, questions at the gate, connections in the host's table.

The world is that of world_lib.py. The tests cover the packets that a sandbox can write, the rate of its questions, and the leftovers
of its floods in the Linux kernel outside of it.
"""
import contextlib
import shutil
import socket
import struct
import threading
import time

import daemon_lib
import pytest
import world_lib
from cell_lib import until
from named import Box
from world_lib import US, WORLD, attempts, inside, reached

whole_module, hostile_test = daemon_lib.whole_module, daemon_lib.hostile_test
world, daemon = world_lib.world, world_lib.daemon
quick = pytest.mark.quick
IPV4 = 0x0800


class Wire:
    """Packets of IPv4 that came over the wire, as its far end got them."""

    def __init__(self, world):
        self.s = inside(world.them, socket.socket, socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(IPV4))
        self.s.bind((world.far, IPV4))
        self.s.settimeout(0.2)
        self.packets, self.over = [], threading.Event()
        self.thread = threading.Thread(target=self.listen)
        self.thread.start()

    def listen(self):
        while not self.over.is_set():
            with contextlib.suppress(TimeoutError):
                data, where = self.s.recvfrom(1 << 16)
                if where[2] != socket.PACKET_OUTGOING:
                    self.packets.append(data)

    def close(self):
        self.over.set()
        self.thread.join()
        self.s.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def odd(self):
        """Those with options, and parts of larger ones."""
        return [p for p in self.packets if p[0] != 0x45 or struct.unpack(">H", p[6:8])[0] & 0x3fff]

    def kinds(self):
        """Of protocols."""
        return {p[9] for p in self.packets}

    def tcp_to(self, port):
        return any(p[9] == socket.IPPROTO_TCP and struct.unpack(">H", p[22:24])[0] == port for p in self.packets if p[0] == 0x45)


RECORD_ROUTE = bytes([7, 7, 4, 0, 0, 0, 0, 0])


def odd_from_outside(address):
    """The same attempts without a gate: a route to be recorded, a datagram in pieces."""
    with socket.socket() as s:
        s.setsockopt(socket.IPPROTO_IP, socket.IP_OPTIONS, RECORD_ROUTE)
        s.connect((address, 7007))
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.sendto(bytes(4000), (address, 9))


@quick
def test_packet_contents(world, daemon, stopped_by):
    """Options, fragments, sockets below TCP and UDP: refused, or gone at the gate, which makes packets of its own."""
    with Wire(world) as wire:
        inside(world.us, odd_from_outside, WORLD)
        until(lambda: {p[0] == 0x45 for p in wire.odd()} == {True, False}, 10, "the control: options and fragments on the wire")
    with Wire(world) as wire, Box(daemon, egress=["echo.test:7007"]) as box:
        got = attempts(box, f"""
six = socket.AF_INET6
def made(*what): return socket.socket(*what) and "MADE"
def put(level, name, value, family=socket.AF_INET): return socket.socket(family).setsockopt(level, name, value) or "SET"
attempt("raw icmp", lambda: made(socket.AF_INET, socket.SOCK_RAW, 1)); attempt("raw any", lambda: made(socket.AF_INET, socket.SOCK_RAW, 255))
attempt("raw six", lambda: made(six, socket.SOCK_RAW, 58)); attempt("packet", lambda: made(17, socket.SOCK_RAW, 3))
attempt("packet dgram", lambda: made(17, socket.SOCK_DGRAM, 8)); attempt("ping", lambda: made(socket.AF_INET, socket.SOCK_DGRAM, 1))
attempt("ping six", lambda: made(six, socket.SOCK_DGRAM, 58)); attempt("mark", lambda: put(1, 36, 1))
attempt("transparent", lambda: put(0, 19, 1)); attempt("transparent six", lambda: put(41, 75, 1, six))
attempt("source route", lambda: put(0, 4, bytes([131, 7, 4, 11, 0, 0, 2, 0]))); attempt("hop options", lambda: put(41, 54, bytes([0, 0, 1, 4, 0, 0, 0, 0]), six))
def recorded(host):
    with socket.socket() as s:
        s.settimeout(10)
        with_options = not s.setsockopt(0, 4, {RECORD_ROUTE!r})
        s.connect((host, 7007)); s.sendall(b"hi")
        return "GOT %r" % s.recv(10)
attempt("record route", lambda: recorded("echo.test")); attempt("record route by address", lambda: recorded({WORLD!r}))
attempt("pieces", lambda: udp({WORLD!r}, 9, bytes(4000))); attempt("pieces to the gate", lambda: udp("198.18.1.0", 9, bytes(40000)))
def from_elsewhere():
    with socket.socket() as s:
        s.settimeout(10); s.setsockopt(0, 15, 1); s.bind(({US!r}, 0)); s.connect(({WORLD!r}, 7007)); return "GOT in"
attempt("from elsewhere", from_elsewhere)
attempt("plain", lambda: tcp("echo.test", 7007))
""")
        assert set(reached(got)) <= {"record route", "plain"} and "plain" in reached(got), reached(got)
        assert not {w: o for w, (o, _) in got.items() if o in ("MADE", "SET")}, got
        until(lambda: wire.tcp_to(7007), 10, "the control: what is allowed is on the wire")
    assert not wire.odd(), wire.odd()
    assert wire.kinds() <= {socket.IPPROTO_TCP, socket.IPPROTO_UDP}, wire.kinds()
    assert {p[12:16] for p in wire.packets} == {socket.inet_aton(US)}
    udp_ports = {struct.unpack(">H", p[22:24])[0] for p in wire.packets if p[9] == socket.IPPROTO_UDP}
    assert udp_ports <= {world.dns.port}, udp_ports
    stopped_by("no capability over the network", "gate: packets of its own")


@quick
def test_dns_questions_per_second(world, daemon, stopped_by):
    """More DNS questions than any program needs: a limited number per second is answered, and the rest is not kept. However long it takes."""
    sent = 20000
    with Box(daemon, egress=["echo.test:7007"]) as box, Box(daemon, egress=["echo.test:7007"]) as other:
        begin = time.monotonic()
        r = box.execute(f"""
import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.connect(("198.18.0.1", 53))
for i in range({sent}):
    try: s.send(b"ab\\1\\0\\0\\1\\0\\0\\0\\0\\0\\0" + b"\\x0a%010d\\4evil\\4test\\0\\0\\x10\\0\\1" % i)
    except OSError: pass
""")
        assert r["status"] == "ok", r
        heard = box.request("GET", "/net").json
        took = time.monotonic() - begin
        assert 0 < heard["names_asked"] <= 400 + 200 * took + 1, (heard, took)
        if took < 60:
            assert heard["names_asked"] < sent, "void: no question was dropped"
        assert len(heard["names"]) <= 64
        # questions of another sandbox are answered meanwhile
        assert reached(attempts(other, "attempt('x', lambda: tcp('echo.test', 7007))"))
    assert not [n for n in world.dns.asked if n.endswith("evil.test")]
    stopped_by("gate: questions per second")


TRACKED = "/proc/sys/net/netfilter/nf_conntrack_count"


def test_connection_table_of_the_host(world, daemon, stopped_by):
    """A sandbox that connects and sends as fast as it can is in the host's table with as many entries as it may have connections."""
    if not shutil.which("iptables"):
        pytest.skip("there is no iptables here to make the kernel track connections")
    rule = ["OUTPUT", "-m", "conntrack", "--ctstate", "INVALID", "-j", "ACCEPT"]
    try:
        world.us.run("iptables", "-A", *rule)
    except Exception as e:  # noqa: BLE001 - whichever way it says so
        pytest.skip(f"this kernel does not track connections: {e}")

    def tracked():
        return int(world.us.run("cat", TRACKED))

    def talk():
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
            for port in range(1000, 1050):
                s.sendto(b"x", (WORLD, port))
    try:
        before = tracked()
        inside(world.us, talk)
        assert tracked() >= before + 50, "void: packets from here are not in the table"
        before = tracked()
        with Box(daemon, egress=["echo.test:7007"]) as box:
            r = box.execute("""
import socket
socket.getaddrinfo("echo.test", 7007)
kept, s = [], socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for i in range(10000):
    for to in (("198.18.1.0", 7007 + i % 50), ("11.0.0.2", 1 + i)):
        try: s.sendto(b"x", to)
        except OSError: pass
    try:
        c = socket.socket(); c.setblocking(False); c.connect_ex(("198.18.1.0", 7007)); kept.append(c)
    except OSError: kept = kept[100:]
print(len(kept))
""", timeout=120)
            assert r["status"] == "ok", r
            until(lambda: box.request("GET", "/net").json["opened"] > 0, 10, "the control: some are let out")
            # One for each connection that was let out, and for their questions; counted first, because it changes.
            entries = tracked() - before
            numbers = box.request("GET", "/net").json
            assert entries <= 2 * (numbers["opened"] + numbers["failed"] + numbers["live"]) + 100, (entries, numbers)
            assert numbers["live"] <= 256, numbers
    finally:
        world.us.run("iptables", "-D", *rule)
    stopped_by("gate: connections at once and per second", "network namespace")
