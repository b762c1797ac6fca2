#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""serve.py - The daemon: a fresh sandbox over HTTP against the other ways to run a line of Python.

Every kind of sample is taken once per round, in an order shuffled per round: on a noisy machine
only the ratios of one interleaved run mean anything. Peers that are missing or do not start are
left out, with the reason. Writes its part of docs/benchmarks.md and the chart docs/benchmarks.svg.
"""
import argparse
import http.client
import json
import os
import platform
import random
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import chart
from serve_peers import Bubblewrap, Docker, Ipykernel, PlainPython

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/lib"))
from daemon import BareDaemon  # noqa: E402
from process import below  # noqa: E402


def log(text):
    print(f"bench: {text}", flush=True)


class Daemon(BareDaemon):
    """A caisson daemon of our own, and one connection to it."""

    def __init__(self, build, directory, *options):
        super().__init__(directory, "--log-level", "error", "--max-sandboxes", "1100", *options, binary=Path(build).resolve() / "caisson",
                         log_format=None, stderr=None)
        self.launch()
        self.socket = None
        self.connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=120)
        self.wait_ready()

    @staticmethod
    def filled(h):
        return h["pool"]["kernels_ready"] and h["pool"]["zygote"]

    def get(self, path):
        self.connection.request("GET", path)
        r = self.connection.getresponse()
        return r.status, json.loads(r.read())

    def execute(self, code, expect=None, **fields):
        begin = time.perf_counter()
        self.connection.request("POST", "/execute", json.dumps({"code": code, **fields}), {"Content-Type": "application/json"})
        r = self.connection.getresponse()
        body = r.read()
        took = time.perf_counter() - begin
        result = json.loads(body)
        if r.status != 200 or not result["success"] or (expect is not None and result["stdout"] != expect):
            raise RuntimeError(f"caisson: {body[:300]}")
        return took

    def execute_bare(self, code, expect, **fields):
        """The same over a socket of our own: the daemon's time, without that of a client library."""
        body = json.dumps({"code": code, **fields}).encode()
        request = (b"POST /execute HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body)) + body
        if not self.socket:
            self.socket = socket.create_connection(("127.0.0.1", self.port), 60)
            self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        begin = time.perf_counter()
        self.socket.sendall(request)
        answer = self.socket.recv(65536)
        took = time.perf_counter() - begin
        if json.loads(answer.split(b"\r\n\r\n", 1)[1])["stdout"] != expect:
            raise RuntimeError(f"caisson: {answer[:300]}")
        return took

    def stop(self):
        self.p.terminate()
        self.p.wait(60)


class Mcp:
    """A client of the Model Context Protocol over HTTP, with the library that the plain calls use."""

    def __init__(self, daemon):
        self.connection = http.client.HTTPConnection("127.0.0.1", daemon.port, timeout=60)
        self.headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
        self.call("initialize", {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}})

    def call(self, method, params):
        self.connection.request("POST", "/mcp", json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}), self.headers)
        r = self.connection.getresponse()
        if r.getheader("Mcp-Session-Id"):
            self.headers["Mcp-Session-Id"] = r.getheader("Mcp-Session-Id")
        return r.read()

    def execute(self, code, expect, **fields):
        begin = time.perf_counter()
        body = self.call("tools/call", {"name": "execute_code", "arguments": {"code": code, "language": "python", **fields}})
        took = time.perf_counter() - begin
        if json.loads(body)["result"]["structuredContent"]["stdout"] != expect:
            raise RuntimeError(f"mcp: {body[:300]}")
        return took


class Stdio:
    """A host of models: `caisson mcp` on two pipes, attached to a daemon."""

    def __init__(self, build, daemon):
        self.process = subprocess.Popen([build / "caisson", "mcp", "--url", f"http://127.0.0.1:{daemon.port}"],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.call("initialize", {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}})

    def call(self, method, params):
        self.process.stdin.write(json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode() + b"\n")
        self.process.stdin.flush()
        return self.process.stdout.readline()

    def execute(self, code, expect, **fields):
        begin = time.perf_counter()
        line = self.call("tools/call", {"name": "execute_code", "arguments": {"code": code, "language": "python", **fields}})
        took = time.perf_counter() - begin
        if json.loads(line)["result"]["structuredContent"]["stdout"] != expect:
            raise RuntimeError(f"caisson mcp: {line[:300]}")
        return took

    def stop(self):
        self.process.stdin.close()
        self.process.wait(60)


# ---- latency -------------------------------------------------------------------------------------


def settle(daemons):
    """Let the pools fill, so that each sample is measured by itself, not beside the making of sandboxes for earlier ones."""
    for daemon in daemons:
        for _ in range(400):
            pool = daemon.get("/health")[1]["pool"]
            if not pool["making"] and pool["kernels_ready"] >= pool["target"]:
                break
            time.sleep(0.005)
    time.sleep(0.02)


def latency_kinds(plain, numpy, stdio, peers):
    warm = {"session_id": "warm"}
    plain.execute("x = 1", **warm)
    mcp = Mcp(plain)

    def fresh(daemon, code):
        return lambda: daemon.execute(code, "1\n")

    kinds = {
        "caisson": (fresh(plain, "print(1)"), 1),
        "caisson_warm": (lambda: plain.execute("print(1)", "1\n", **warm), 1),
        "caisson_warm_bare": (lambda: plain.execute_bare("print(1)", "1\n", **warm), 1),
        "caisson_mcp": (lambda: mcp.execute("print(1)", "1\n", **warm), 1),
        "caisson_stdio": (lambda: stdio.execute("print(1)", "1\n", **warm), 1),
        "caisson_numpy": (fresh(numpy, "import numpy; print(1)"), 1),
    }
    for peer in peers:
        for name, (sample, every) in peer.samples().items():
            kinds[name] = (sample, every)
    return kinds


def measure_latency(kinds, daemons, rounds, seed):
    rng = random.Random(seed)
    samples = {name: [] for name in kinds}
    for i in range(-2, rounds):  # the first two warm caches and are not counted
        order = [n for n, (_, every) in kinds.items() if i < 0 or i % every == 0]
        rng.shuffle(order)
        for name in order:
            settle(daemons)
            took = kinds[name][0]()
            if i >= 0:
                samples[name].append(took * 1e3)
    return {n: {"median": statistics.median(s), "p95": sorted(s)[int(len(s) * 0.95)], "n": len(s)} for n, s in samples.items()}


# ---- throughput ----------------------------------------------------------------------------------


def wrk(daemon, clients, seconds, script=None, path="/health"):
    command = ["wrk", "-t2" if clients > 1 else "-t1", f"-c{clients}", f"-d{seconds}s", "--timeout", "60s"]
    if script:
        command += ["-s", str(script)]
    out = subprocess.run([*command, f"http://127.0.0.1:{daemon.port}{path}"], stdout=subprocess.PIPE, text=True, check=True).stdout
    rate = next(float(line.split()[1]) for line in out.splitlines() if line.startswith("Requests/sec"))
    bad = [line.strip() for line in out.splitlines() if "Non-2xx" in line or "Socket errors" in line]
    return rate, bad


def python_rate(seconds, workers=2):
    counts = [0] * workers
    end = time.monotonic() + seconds

    def work(i):
        while time.monotonic() < end:
            subprocess.run(["/usr/bin/python3", "-c", "print(1)"], stdout=subprocess.DEVNULL, check=True)
            counts[i] += 1
    threads = [threading.Thread(target=work, args=(i,)) for i in range(workers)]
    begin = time.monotonic()
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    return sum(counts) / (time.monotonic() - begin)


def measure_rates(daemon, args, directory):
    script = Path(directory, "post.lua")
    script.write_text('wrk.method = "POST"\nwrk.body = \'{"code": "print(1)"}\'\nwrk.headers["Content-Type"] = "application/json"\n')
    rates, bad = {}, []
    before = python_rate(args.seconds)
    for clients in (1, 2, 8, 64):
        rates[clients], problems = wrk(daemon, clients, args.seconds, script, "/execute")
        bad += problems
    sustained, problems = wrk(daemon, 8, args.sustain, script, "/execute")
    after = python_rate(args.seconds)
    layer, _ = wrk(daemon, 8, args.seconds)
    return {"clients": rates, "sustained": sustained, "python": (before + after) / 2, "http": layer, "bad": bad + problems}


# ---- memory and many -----------------------------------------------------------------------------


def pss(pid):
    try:
        text = Path(f"/proc/{pid}/smaps_rollup").read_text()
    except OSError:
        return 0
    return sum(int(line.split()[1]) for line in text.splitlines() if line.startswith("Pss:"))


def cell_processes(daemon):
    """Inits and kernels: everything below the warden that has a pid namespace of its own."""
    own = os.readlink("/proc/self/ns/pid")
    found = []
    for pid in below(daemon.keeper):
        try:
            if os.readlink(f"/proc/{pid}/ns/pid") != own:
                found.append(pid)
        except OSError:
            pass
    return found


def measure_many(daemon, count):
    daemon.connection.close()  # idle for longer than the daemon keeps it; the next request opens another
    before = sum(map(pss, cell_processes(daemon)))
    already = len(cell_processes(daemon))
    begin = time.monotonic()
    for i in range(count):
        daemon.execute("x = 1", session_id=f"many-{i}")
    made = time.monotonic() - begin
    cells = cell_processes(daemon)
    memory = (sum(map(pss, cells)) - before) / count
    warm = statistics.median(daemon.execute("x", session_id=f"many-{i % count}") for i in range(100)) * 1e3
    begin = time.monotonic()
    for i in range(count):
        daemon.connection.request("DELETE", f"/sessions/many-{i}")
        daemon.connection.getresponse().read()
    while len(cell_processes(daemon)) > already + 20 and time.monotonic() - begin < 60:
        time.sleep(0.02)
    return {"count": count, "seconds": made, "pss_kib": memory, "processes": (len(cells) - already) / count, "warm": warm,
            "removed": time.monotonic() - begin}


# ---- the document --------------------------------------------------------------------------------

LINES = (
    ("caisson", "**fresh sandbox over HTTP**, `print(1)`"),
    ("python", "plain `python3 -c 'print(1)'`, no isolation"),
    ("bubblewrap", "bubblewrap, all namespaces"),
    ("docker_exec", "docker exec in a running container"),
    ("docker_run", "docker run"),
    ("ipykernel_start", "ipykernel, start and first execute, no isolation"),
    ("caisson_warm", "**warm execute in a session**"),
    ("caisson_warm_bare", "the same, client without a library"),
    ("caisson_mcp", "the same as a call of a tool (`POST /mcp`)"),
    ("caisson_stdio", "the same over standard input and output (`caisson mcp`)"),
    ("ipykernel_warm", "ipykernel, warm execute"),
    ("caisson_numpy", "**fresh sandbox, `import numpy` (preloaded)**"),
    ("python_numpy", "plain `python3 -c 'import numpy'`"),
)

# Text, numerator, denominator, at most.
GOALS = (
    ("fresh sandbox / python3", "caisson", "python", 0.15),
    ("fresh sandbox / docker run", "caisson", "docker_run", 0.01),
    ("fresh with numpy / python3 with numpy", "caisson_numpy", "python_numpy", 0.02),
    ("warm call of a tool (MCP) / warm execute over HTTP", "caisson_mcp", "caisson_warm", 1.5),
    ("warm call over stdio (MCP) / warm execute over HTTP", "caisson_stdio", "caisson_warm", 1.2),
    ("warm execute / ipykernel's", "caisson_warm", "ipykernel_warm", 0.1),
)
GOAL_RATE = 3  # times the rate of plain python3
GOAL_PSS_MIB = 4  # of one sandbox


def latency_lines(latency):
    base = latency["python"]["median"]
    out = ["| over HTTP, and others | median | p95 | × python3 | samples |", "|---|---:|---:|---:|---:|"]
    for name, text in LINES:
        if name in latency:
            m = latency[name]
            out.append(f"| {text} | {m['median']:.2f} ms | {m['p95']:.2f} ms | {m['median'] / base:.3f} | {m['n']} |")
    out += ["", "| ratio of medians | measured | goal |", "|---|---:|---:|"]
    for text, a, b, most in GOALS:
        if a in latency and b in latency:
            ratio = latency[a]["median"] / latency[b]["median"]
            out.append(f"| {text} | {ratio:.3f} | at most {most}: {chart.met(ratio <= most)} |")
    return out


def rate_lines(args, rates):
    out = ["| fresh sandboxes per second (made, used, destroyed) | |", "|---|---:|"]
    for clients, rate in rates["clients"].items():
        out.append(f"| {clients} client{'s' if clients > 1 else ''} | {rate:.0f} |")
    ratio = rates["sustained"] / rates["python"]
    out += [f"| 8 clients, for {args.sustain} s | {rates['sustained']:.0f} |",
            f"| plain python3, 2 at a time | {rates['python']:.0f} |", f"| ratio of the last two | {ratio:.2f} |",
            f"| the HTTP layer alone: GET /health, 8 clients | {rates['http']:.0f} |"]
    if rates["bad"]:
        out.append(f"| answers other than 200 | {'; '.join(rates['bad'])} |")
    return [*out, "", f"Goal: a ratio of at least {GOAL_RATE}: {chart.met(ratio >= GOAL_RATE)}. [performance.md](performance.md) explains what limits it."]


def many_lines(many):
    mib = many["pss_kib"] / 1024
    return [f"{many['count']} live sandboxes: the benchmark made them one after the other in {many['seconds']:.1f} s. Each has {many['processes']:.1f} processes and "
            f"{mib:.2f} MiB of memory (PSS; goal: at most {GOAL_PSS_MIB} MiB: {chart.met(mib <= GOAL_PSS_MIB)}). With all of them alive a warm execute took "
            f"{many['warm']:.2f} ms. Their removal took {many['removed']:.1f} s."]


def write_document(args, latency, rates, many, reasons):
    machine = f"{os.cpu_count()} processors, Linux {platform.release()}, {time.strftime('%Y-%m-%d')}; {args.rounds} rounds, interleaved."
    out = [machine, "", "![median times](benchmarks.svg)", "", *latency_lines(latency), "", *rate_lines(args, rates), "", *many_lines(many), "",
           "The time of a fresh sandbox runs from the request to the end of the answer. The daemon destroys the cell after that; the sandboxes per second "
           "include this work. Commands: `caisson serve` and `caisson serve --preload numpy`, each with one keep-alive connection (python's http.client); wrk "
           "for the rates; `tests/bench/serve_peers.py` has the commands of the others, and starts a docker daemon of its own."]
    for name, reason in reasons:
        out += ["", f"Not measured: {name}: {reason}"]
    bars = [(LABELS[n], latency[n]["median"], n.startswith("caisson")) for n in LABELS if n in latency]
    args.output.with_suffix(".svg").write_text(chart.bars("Running print(1): median milliseconds, log scale", bars), encoding="utf-8")
    chart.publish(args.output, "serve", out)


LABELS = {
    "caisson_warm": "caisson, warm session", "caisson": "caisson, fresh sandbox", "ipykernel_warm": "ipykernel, warm",
    "python": "python3, no isolation", "bubblewrap": "bubblewrap", "docker_exec": "docker exec", "docker_run": "docker run",
    "ipykernel_start": "ipykernel, start",
}


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    p.add_argument("--build", type=Path, default=ROOT / "build")
    p.add_argument("--rounds", type=int, default=60)
    p.add_argument("--seconds", type=int, default=8, help="of throughput per number of clients")
    p.add_argument("--sustain", type=int, default=60)
    p.add_argument("--many", type=int, default=1000)
    p.add_argument("--output", type=Path, default=ROOT / "docs" / "benchmarks.md")
    p.add_argument("--seed", type=int, default=int(time.time()))
    args = p.parse_args()
    args.build = args.build.resolve()
    if not shutil.which("wrk"):
        log("wrk is missing: tools/deps.sh bench")
        return 1
    reasons, peers = [], []
    with tempfile.TemporaryDirectory(prefix="caisson-bench-") as directory:
        for kind in (PlainPython, Bubblewrap, Docker, Ipykernel):
            try:
                log(f"starting {kind.__name__}")
                peers.append(kind(directory))
            except Exception as e:  # a peer that is not available is a line in the document
                reasons.append((kind.__name__.lower(), str(e).strip().splitlines()[-1] if str(e).strip() else type(e).__name__))
                log(f"without {reasons[-1][0]}: {reasons[-1][1]}")
        daemons = []
        try:
            daemons = [Daemon(args.build, directory), Daemon(args.build, directory, "--preload", "numpy")]
            log(f"latency, {args.rounds} rounds")
            stdio = Stdio(args.build, daemons[0])
            latency = measure_latency(latency_kinds(*daemons, stdio, peers), daemons, args.rounds, args.seed)
            stdio.stop()
            for peer in peers:
                peer.stop()
            peers = []
            daemons[1].stop()
            daemons.pop()
            log("throughput")
            rates = measure_rates(daemons[0], args, directory)
            log(f"{args.many} live sandboxes")
            many = measure_many(daemons[0], args.many)
        finally:
            for x in peers + daemons:
                x.stop()
    write_document(args, latency, rates, many, reasons)
    return 0


if __name__ == "__main__":
    sys.exit(main())
