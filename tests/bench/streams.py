#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""streams.py - A gigabyte of output: through pipes, and through the daemon as events.

The source is the same program everywhere, and so is the reader, which only counts. All ways are taken once per round, in
an order shuffled per round. The goal is half the rate of `cat` between source and reader; a bare pipe, without a process
in between, is shown too. The tool samples the daemon's memory during each stream. Writes its part of docs/benchmarks.md.
"""
import argparse
import json
import os
import platform
import random
import re
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import chart
from serve import ROOT, Daemon, log, pss

LINE = "The quick brown fox jumps over the lazy dog, and on through the night: 0123456789.\n"
SOURCE = "import os\nb = (%r * 65536).encode()[:65536]\nn = %d\nwhile n > 0:\n n -= os.write(1, b[:n] if n < 65536 else b)\n"
BOX = "bench"
BUFFER = bytearray(256 << 10)


def source(total):
    return ["/usr/bin/python3", "-c", SOURCE % (LINE, total)]


def read_pipe(pipe):
    got = 0
    while n := os.readv(pipe.fileno(), [BUFFER]):
        got += n
    return got


def through_pipe(total, *middle):
    """The source, the process in between, and this reader."""
    begin = time.perf_counter()
    running = [subprocess.Popen(source(total), stdout=subprocess.PIPE)]
    for command in middle:
        running.append(subprocess.Popen(command, stdin=running[-1].stdout, stdout=subprocess.PIPE))
        running[-2].stdout.close()
    got = read_pipe(running[-1].stdout)
    for p in running:
        p.wait()
    took = time.perf_counter() - begin
    if got != total:
        raise RuntimeError(f"{got} bytes of {total}")
    return took


def through_cli(build, port, total):
    begin = time.perf_counter()
    with subprocess.Popen([build / "caisson", "exec", "--url", f"http://127.0.0.1:{port}", "--name", BOX, "--timeout", "120", "--",
                           *source(total)], stdout=subprocess.PIPE) as p:
        got = read_pipe(p.stdout)
    took = time.perf_counter() - begin
    if got != total or p.returncode:
        raise RuntimeError(f"caisson exec: {got} bytes of {total}, exit code {p.returncode}")
    return took


def through_http(daemon, total, accept):
    cmd, *args = source(total)
    body = json.dumps({"cmd": cmd, "args": args, "timeout": 120, "stream": True}).encode()
    head = (f"POST /v1/sandboxes/{BOX}/exec HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nAccept: {accept}\r\n"
            f"Connection: close\r\nContent-Length: {len(body)}\r\n\r\n").encode()
    last = b""
    begin = time.perf_counter()
    with socket.create_connection(("127.0.0.1", daemon.port), 120) as s:
        s.sendall(head + body)
        while n := s.recv_into(BUFFER):
            last = last[-2048:] + bytes(memoryview(BUFFER)[max(0, n - 2048):n])
    took = time.perf_counter() - begin
    said = re.findall(rb'"stdout_bytes":(\d+)', last)
    if not said or int(said[-1]) != total:
        raise RuntimeError(f"caisson: {last[-500:]}")
    return took


class Memory:
    """The peak memory (PSS, KiB) of a process during this block."""

    def __init__(self, pid):
        self.pid, self.before, self.most, self.over = pid, pss(pid), 0, threading.Event()
        self.thread = threading.Thread(target=self.look)

    def look(self):
        while not self.over.wait(0.05):
            self.most = max(self.most, pss(self.pid))

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        self.thread.join()


LINES = (
    ("pipe", "a bare pipe: source, reader"),
    ("cat", "`cat` through a pipe: source, `cat`, reader"),
    ("sse", "**exec, Server-Sent Events**"),
    ("ndjson", "**exec, JSON lines**"),
    ("cli", "**`caisson exec`**, bytes again"),
)
GOAL = 0.5  # of the rate of `cat`


def measure(args, daemon):
    total = args.mib << 20
    kinds = {
        "pipe": lambda: through_pipe(total),
        "cat": lambda: through_pipe(total, ["cat"]),
        "sse": lambda: through_http(daemon, total, "text/event-stream"),
        "ndjson": lambda: through_http(daemon, total, "application/x-ndjson"),
        "cli": lambda: through_cli(args.build, daemon.port, total),
    }
    samples, grown = {k: [] for k in kinds}, []
    rng = random.Random(args.seed)
    for i in range(args.rounds):
        for kind in rng.sample(list(kinds), len(kinds)):
            with Memory(daemon.pid) as m:
                samples[kind].append(kinds[kind]())
            if kind not in ("pipe", "cat"):
                grown.append(m.most - m.before)
            log(f"round {i + 1}: {kind} {args.mib / samples[kind][-1]:.0f} MiB/s, daemon {m.before} KiB and at most {m.most}")
    return samples, grown


def write_document(args, samples, grown):
    rate = {k: args.mib / statistics.median(s) for k, s in samples.items()}
    out = [f"{os.cpu_count()} processors, Linux {platform.release()}, {time.strftime('%Y-%m-%d')}; {args.rounds} rounds of {args.mib} MiB, interleaved.",
           "", "| output of one program | MiB/s, median | × `cat` | × a bare pipe |", "|---|---:|---:|---:|"]
    for kind, text in LINES:
        out.append(f"| {text} | {rate[kind]:.0f} | {rate[kind] / rate['cat']:.2f} | {rate[kind] / rate['pipe']:.2f} |")
    good = all(rate[k] >= GOAL * rate["cat"] for k in ("sse", "ndjson", "cli"))
    out += ["", f"Goal: each way of Caisson reaches at least {GOAL} of the rate of `cat`: {chart.met(good)}.",
            "", f"The daemon's memory (PSS) rose by at most {max(grown) / 1024:.1f} MiB during a stream. 4 MiB of that are the events that the daemon keeps of "
            "each stream for a client that resumes it; it keeps at most 64 MiB for all streams. Command: `tests/bench/streams.py`."]
    chart.publish(args.output, "streams", out)


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    p.add_argument("--build", type=Path, default=ROOT / "build")
    p.add_argument("--rounds", type=int, default=5)
    p.add_argument("--mib", type=int, default=1024)
    p.add_argument("--output", type=Path)
    p.add_argument("--seed", type=int, default=int(time.time()))
    args = p.parse_args()
    args.build = args.build.resolve()
    with tempfile.TemporaryDirectory(prefix="caisson-bench-") as directory:
        daemon = Daemon(args.build, directory)
        try:
            daemon.connection.request("POST", "/v1/sandboxes", json.dumps({"name": BOX}), {"Content-Type": "application/json"})
            r = daemon.connection.getresponse()
            if r.status != 201:
                raise RuntimeError(r.read())
            r.read()
            result = measure(args, daemon)
        finally:
            daemon.stop()
    write_document(args, *result)
    return 0


if __name__ == "__main__":
    sys.exit(main())
