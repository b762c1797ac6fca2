#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""gate.py - The cost of the way out of a sandbox, against plain loopback in the same run.

One client program, run here and in a sandbox; one server, on loopback, in a process of its own. Each round measures both ways, in a
shuffled order. The goals: 0.7 of the throughput, at most 1 ms more for a new connection (made, a byte there and back), a thousand
connections from fifty sandboxes without a stall, and a gate whose memory does not grow when a client does not read. Writes its part of
docs/benchmarks.md.
"""
import argparse
import http.client
import json
import os
import platform
import random
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import chart
from serve import ROOT, Daemon, log, pss

sys.path[:0] = [str(ROOT / "tests/lib"), str(ROOT / "tests/serve"), str(ROOT / "tests/integ")]
from egress_lib import Resolver  # noqa: E402
from process import children  # noqa: E402

NAME = "bench.test"
PYTHON = "/usr/bin/python3"

# 8 digits: send this number of KiB. The line "receive" (a line, so that the gate does not wait for the rest of a request): read
# everything, then answer one byte. Anything else: echo it until its end.
SERVER = """
import os, signal, socket, sys
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
s = socket.socket(); s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1); s.bind(("127.0.0.1", 0)); s.listen(2048)
print(s.getsockname()[1], flush=True)
block = bytes(1 << 18)
while True:
    c, _ = s.accept()
    if os.fork():
        c.close(); continue
    s.close()
    try:
        word = c.recv(8)
        if word == b"receive\\n":
            b = bytearray(1 << 18)
            while c.recv_into(b): pass
            c.sendall(b"x")
        elif len(word) == 8:
            left = int(word) << 10
            while left > 0:
                left -= c.send(block[:left])
        while word and len(word) < 8:
            c.sendall(word); word = c.recv(8)
    except OSError:
        pass
    os._exit(0)
"""

FLOW = """
import socket, sys, time
host, port, kib = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
b = bytearray(1 << 18); got = 0
s = socket.create_connection((host, port)); begin = time.perf_counter(); s.sendall(b"%08d" % kib)
while n := s.recv_into(b): got += n
assert got == kib << 10, got
print(time.perf_counter() - begin)
"""

FLOW_OUT = """
import socket, sys, time
host, port, kib = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
b = bytes(1 << 18); left = kib << 10
s = socket.create_connection((host, port)); begin = time.perf_counter(); s.sendall(b"receive\\n")
while left > 0: left -= s.send(b[:left])
s.shutdown(socket.SHUT_WR); assert s.recv(1) == b"x"
print(time.perf_counter() - begin)
"""

CONNECT = """
import socket, sys, time
host, port, n = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
at = socket.getaddrinfo(host, port, socket.AF_INET, socket.SOCK_STREAM)[0][4]
for i in range(n):
    begin = time.perf_counter()
    with socket.create_connection(at) as s:
        s.sendall(b"x"); assert s.recv(1) == b"x"
        print(time.perf_counter() - begin)
"""

MANY = """
import socket, sys, time
host, port, n = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
at = socket.getaddrinfo(host, port, socket.AF_INET, socket.SOCK_STREAM)[0][4]
all = [socket.create_connection(at, 60) for _ in range(n)]
worst = 0
for _ in range(5):
    for s in all:
        begin = time.perf_counter(); s.sendall(b"y"); assert s.recv(1) == b"y"
        worst = max(worst, time.perf_counter() - begin)
print(len(all), worst)
"""

SLOW = """
import socket, sys, time
host, port, n, seconds = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4])
all = [socket.create_connection((host, port)) for _ in range(n)]
for s in all: s.sendall(b"00262144")
end = time.time() + seconds
while time.time() < end:
    time.sleep(0.1)
    for s in all: s.recv(1)
print("ok")
"""


class Boxes:
    """Sandboxes of one daemon that may reach the server, and programs in them."""

    def __init__(self, daemon, port):
        self.daemon, self.port = daemon, port

    def request(self, method, path, body=None):
        c = http.client.HTTPConnection("127.0.0.1", self.daemon.port, timeout=120)
        c.request(method, path, json.dumps(body) if body else None, {"Content-Type": "application/json"} if body else {})
        r = c.getresponse()
        data = r.read()
        c.close()
        if r.status >= 300:
            raise RuntimeError(data)
        return json.loads(data) if data else None

    def make(self, name):
        self.request("POST", "/v1/sandboxes", {"name": name, "egress": [f"{NAME}:{self.port}"]})

    def run(self, name, code, *args):
        r = self.request("POST", f"/v1/sandboxes/{name}/exec",
                         {"cmd": PYTHON, "args": ["-c", code, NAME, str(self.port), *map(str, args)], "timeout": 100})
        if r["exit_code"]:
            raise RuntimeError(r["stderr"])
        return r["stdout"].split()


def plain(code, port, *args):
    r = subprocess.run([PYTHON, "-c", code, "127.0.0.1", str(port), *map(str, args)], check=True, capture_output=True, text=True, timeout=120)
    return r.stdout.split()


def gate_of(daemon):
    """The gate's process: a child of its supervisor, which is a child of the front, which is a child of the keeper."""
    for pid in (p for front in children(daemon.keeper) for supervisor in children(front) for p in children(supervisor)):
        try:
            if Path(f"/proc/{pid}/comm").read_text().strip() == "caisson-gate":
                return pid
        except OSError:
            pass  # it ended in the meantime
    raise RuntimeError("there is no gate")


def measure(args, boxes):
    ways = {"plain": lambda code, *a: plain(code, boxes.port, *a), "gate": lambda code, *a: boxes.run("bench", code, *a)}
    flows, outs, connects = ({k: [] for k in ways} for _ in range(3))
    rng = random.Random(args.seed)
    for i in range(args.rounds):
        for way in rng.sample(list(ways), len(ways)):
            flows[way].append(args.mib / float(ways[way](FLOW, args.mib << 10)[0]))
            outs[way].append(args.mib / float(ways[way](FLOW_OUT, args.mib << 10)[0]))
            connects[way] += [float(t) * 1000 for t in ways[way](CONNECT, args.connects)]
            log(f"round {i + 1}: {way} {flows[way][-1]:.0f} MiB/s in, {outs[way][-1]:.0f} out, {statistics.median(connects[way][-args.connects:]):.2f} ms")
    return flows, outs, connects


def many(boxes, cells, each):
    names = [f"many-{i}" for i in range(cells)]
    with ThreadPoolExecutor(16) as pool:
        list(pool.map(boxes.make, names))
    with ThreadPoolExecutor(cells) as pool:
        begin = time.perf_counter()
        said = list(pool.map(lambda n: boxes.run(n, MANY, each), names))
        took = time.perf_counter() - begin
    for name in names:
        boxes.request("DELETE", f"/v1/sandboxes/{name}")
    return sum(int(n) for n, _ in said), max(float(w) for _, w in said), took


def slow_readers(boxes, pid, n, seconds):
    """The growth of the gate while n servers send and no client reads."""
    before, most, over = pss(pid), 0, threading.Event()

    def look():
        nonlocal most
        while not over.wait(0.05):
            most = max(most, pss(pid))

    t = threading.Thread(target=look)
    t.start()
    try:
        boxes.run("bench", SLOW, n, seconds)
    finally:
        over.set()
        t.join()
    return before, most


GOAL_RATE = 0.7  # of plain loopback
GOAL_CONNECT_MS = 1


def write_document(args, flows, outs, connects, thousand, grown):
    rate = {k: statistics.median(v) for k, v in flows.items()}
    out_rate = {k: statistics.median(v) for k, v in outs.items()}
    new = {k: statistics.median(v) for k, v in connects.items()}
    load, wanted = os.getloadavg()[0], args.cells * args.each
    ratio, more = rate["gate"] / rate["plain"], new["gate"] - new["plain"]
    out = [f"{os.cpu_count()} processors, Linux {platform.release()}, {time.strftime('%Y-%m-%d')}; {args.rounds} rounds of {args.mib} MiB and "
           f"{args.connects} connections, interleaved; load {load:.0f} when it ended.",
           "", "| out of a sandbox | plain loopback | through the gate | ratio or difference | goal |", "|---|---:|---:|---:|---:|",
           f"| one stream in, MiB/s | {rate['plain']:.0f} | {rate['gate']:.0f} | {ratio:.2f} | at least {GOAL_RATE}: {chart.met(ratio >= GOAL_RATE)} |",
           f"| one stream out, MiB/s | {out_rate['plain']:.0f} | {out_rate['gate']:.0f} | {out_rate['gate'] / out_rate['plain']:.2f} | |",
           f"| a new connection, a byte there and back, ms | {new['plain']:.2f} | {new['gate']:.2f} | {more:.2f} ms | at most {GOAL_CONNECT_MS} ms more: {chart.met(more <= GOAL_CONNECT_MS)} |",
           f"| {wanted} connections from {args.cells} sandboxes | | {thousand[0]} open at once | slowest byte {thousand[1] * 1000:.0f} ms, {thousand[2]:.1f} s in all | all open at once: {chart.met(thousand[0] == wanted)} |",
           f"| memory of the gate (PSS), {args.slow} connections whose client does not read | {grown[0] / 1024:.1f} MiB before | {grown[1] / 1024:.1f} MiB at most | {(grown[1] - grown[0]) / 1024:+.1f} MiB | no growth |",
           "", "Command: `tests/bench/gate.py`."]
    chart.publish(args.output, "gate", out)


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    p.add_argument("--build", type=Path, default=ROOT / "build")
    p.add_argument("--rounds", type=int, default=5)
    p.add_argument("--mib", type=int, default=512)
    p.add_argument("--connects", type=int, default=100)
    p.add_argument("--cells", type=int, default=50)
    p.add_argument("--each", type=int, default=20)
    p.add_argument("--slow", type=int, default=50)
    p.add_argument("--output", type=Path)
    p.add_argument("--seed", type=int, default=int(time.time()))
    args = p.parse_args()
    args.build = args.build.resolve()
    server = subprocess.Popen([PYTHON, "-c", SERVER], stdout=subprocess.PIPE, text=True)
    dns = Resolver({NAME: ["127.0.0.1"]}, ttl=3600)
    with tempfile.TemporaryDirectory(prefix="caisson-bench-") as directory:
        daemon = Daemon(args.build, directory, "--egress-private", "127.0.0.0/8", "--egress-dns", dns.address, "--egress-rate", "100000")
        try:
            boxes = Boxes(daemon, int(server.stdout.readline()))
            boxes.make("bench")
            result = measure(args, boxes)
            thousand = many(boxes, args.cells, args.each)
            grown = slow_readers(boxes, gate_of(daemon), args.slow, 5)
        finally:
            daemon.stop()
            server.kill()
            dns.close()
    write_document(args, *result, thousand, grown)
    return 0


if __name__ == "__main__":
    sys.exit(main())
