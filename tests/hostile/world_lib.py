# SPDX-License-Identifier: Apache-2.0
"""world_lib.py - A world of two network namespaces for the tests of egress, and a daemon in one of them.

The daemon lives in one namespace, everything that it could reach in the other, and one wire is between them: packets are
counted at the far end of the wire, by the Linux kernel. The addresses are as on the internet: public, private, a
cloud's metadata.
"""
import ctypes
import json
import os
import subprocess
import threading

import pytest
from daemon_lib import Daemon
from cell_lib import until

from egress_lib import Resolver, Server, Web, echo  # noqa: E402

LIBC = ctypes.CDLL(None, use_errno=True)

US, WORLD = "11.0.0.1", "11.0.0.2"  # public, as far as programs can tell
US6, WORLD6 = "2a0f::1", "2a0f::2"
PRIVATE = ["10.7.0.1", "172.16.3.4", "192.168.9.9", "100.64.1.1", "fd12::9", "198.18.9.9"]
METADATA = ["169.254.169.254", "100.100.100.200", "168.63.129.16", "fd00:ec2::254"]


class Namespace:
    """A network namespace that lives as long as a process that sleeps in it."""

    def __init__(self):
        self.p = subprocess.Popen(["unshare", "--net", "sleep", "infinity"])
        self.path = f"/proc/{self.p.pid}/ns/net"
        until(lambda: os.readlink(self.path) != os.readlink("/proc/self/ns/net"), 10, "a network namespace")
        self.ip("link", "set", "lo", "up")
        # The Linux kernel's own packets on a new interface, seconds later, would be counted as ours.
        self.run("sh", "-c", "cd /proc/sys/net/ipv6/conf/default; echo 0 >router_solicitations; echo 1 >mldv1_unsolicited_report_interval; "
                             "echo 1 >mldv2_unsolicited_report_interval")

    def run(self, *args):
        return subprocess.run(["nsenter", f"--net={self.path}", *args], check=True, capture_output=True, timeout=20).stdout.decode()

    def ip(self, *args):
        return self.run("ip", *args)

    def close(self):
        self.p.kill()
        self.p.wait()


def inside(ns, fn, *args, **kw):
    """Run fn in a thread that lives in that namespace; its sockets stay there."""
    out = []

    def run():
        fd = os.open(ns.path, os.O_RDONLY)
        try:
            if LIBC.setns(fd, 0x40000000):
                raise OSError(ctypes.get_errno(), "setns")
            out.append((True, fn(*args, **kw)))
        except BaseException as e:  # noqa: BLE001 - handed to the caller
            out.append((False, e))
        finally:
            os.close(fd)

    t = threading.Thread(target=run)
    t.start()
    t.join()
    good, value = out[0]
    if not good:
        raise value
    return value


class World:
    """Two namespaces and the wire; a resolver and servers at its far end."""

    def __init__(self):
        n = os.urandom(3).hex()
        self.us, self.them, self.wire, self.far = Namespace(), Namespace(), f"u{n}", f"w{n}"
        self.us.ip("link", "add", self.wire, "type", "veth", "peer", "name", self.far, "netns", str(self.them.p.pid))
        for ns, dev, four, six in ((self.us, self.wire, US, US6), (self.them, self.far, WORLD, WORLD6)):
            ns.ip("link", "set", dev, "addrgenmode", "none")  # no chatter of the kernel's own on the wire
            ns.ip("addr", "add", four + "/24", "dev", dev)
            ns.ip("-6", "addr", "add", six + "/64", "dev", dev, "nodad")
            ns.ip("link", "set", dev, "up")
        self.us.ip("route", "add", "default", "via", WORLD)
        self.us.ip("-6", "route", "add", "default", "via", WORLD6)
        for a in PRIVATE + METADATA + ["8.8.8.8"]:
            self.them.ip(*(["-6"] if ":" in a else []), "addr", "add", a + ("/128" if ":" in a else "/32"), "dev", "lo",
                         *(["nodad"] if ":" in a else []))
        self.dns = inside(self.them, Resolver, address=WORLD)
        self.echo = inside(self.them, Server, echo, address="::", port=7007)
        self.web = inside(self.them, Web, address=WORLD, port=80)
        self.dns.zone.update({"web.test": [WORLD], "six.test": [WORLD6], "echo.test": [WORLD], "us.test": [US], "us6.test": [US6]})

    def packets(self):
        """That came over the wire, as its far end counts them."""
        return json.loads(self.them.ip("-j", "-s", "link", "show", self.far))[0]["stats64"]["rx"]["packets"]

    def close(self):
        for s in (self.dns, self.echo, self.web):
            s.close()
        for ns in (self.us, self.them):
            ns.close()


class NetDaemon(Daemon):
    """A daemon in a namespace, asked from inside it."""

    def __init__(self, world, *flags):
        self.world = world
        super().__init__("--egress-dns", world.dns.address, *flags, wrapper=("nsenter", f"--net={world.us.path}"))

    def request(self, *args, **kw):
        return inside(self.world.us, super().request, *args, **kw)

    def ledger(self, name):
        lines = [json.loads(x) for x in (self.state / "ledger" / "ledger.jsonl").read_text().splitlines()]
        return [e for e in lines if e["sandbox"] == name and e["event"].startswith("egress.")]


@pytest.fixture(scope="module")
def world(whole_module):
    if os.geteuid() != 0:
        pytest.skip("network namespaces of our own need root")
    w = World()
    yield w
    w.close()


@pytest.fixture(scope="module")
def daemon(world):
    with NetDaemon(world, "--pool", "2") as d:
        yield d


TRY = """
import errno, socket, struct, time
def attempt(what, fn):
    t = time.monotonic()
    try: r = fn()
    except OSError as e: r = e.strerror or str(e)
    except Exception as e: r = repr(e)
    print("%s|%s|%.0f" % (what, r, 1000 * (time.monotonic() - t)))
def tcp(host, port, say=b"hi", n=100):
    with socket.create_connection((host, port), 5) as s:
        s.sendall(say)
        return "GOT %r" % s.recv(n)
def udp(host, port, data=b"hi"):
    s = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_DGRAM)
    s.settimeout(0.3)
    s.connect((host, port)); s.send(data)
    return "GOT %r" % s.recv(100)
"""


def attempts(box, code):
    """{name: (outcome, milliseconds)} of a program that uses attempt()."""
    r = box.execute(TRY + code)
    assert r["status"] == "ok", r
    return {w: (o, float(ms)) for w, o, ms in (line.split("|") for line in r["stdout"].splitlines())}


def reached(outcomes):
    return {w: o for w, (o, _) in outcomes.items() if o.startswith("GOT")}


EVERYWHERE = ["8.8.8.8", WORLD, US, WORLD6, US6, *PRIVATE, *METADATA, "255.255.255.255", "224.0.0.251", "ff02::1%lo", "fe80::1%lo",
              "1.1.1.1", "2606:4700:4700::1111"]
