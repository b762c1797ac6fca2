#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""tools.py - A tool call of code in a cell, to an MCP server on stdin and stdout and back, beside the same call by native clients.

The server is the same program (tests/serve/upstream.py), started once for each way. Calls are made one after another, in batches that
take turns, in an order shuffled per round. The caller measures the time. Then ten calls of one second each at once.
Writes its part of docs/benchmarks.md.
"""
import argparse
import json
import os
import platform
import random
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import chart
from serve import ROOT, Daemon, log

UPSTREAM = ROOT / "tests" / "serve" / "upstream.py"
BOX = "bench"
IN_CELL = """
import time
async def batch(n):
    took = []
    for _ in range(n):
        begin = time.perf_counter()
        await mcp_bench.echo(text='x')
        took.append(time.perf_counter() - begin)
    return took
print(await batch(%d))
"""
AT_ONCE = """
import asyncio, time
begin = time.perf_counter()
await asyncio.gather(*(mcp_bench.slow(seconds=1) for _ in range(10)))
print([time.perf_counter() - begin])
"""


class Raw:
    """A client of thirty lines: the cost of the protocol itself."""

    def __init__(self, log_path):
        self.p = subprocess.Popen([sys.executable, UPSTREAM, log_path], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.n = 0
        self.ask("initialize", {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}})

    def ask(self, method, params):
        self.n += 1
        self.p.stdin.write(json.dumps({"jsonrpc": "2.0", "id": self.n, "method": method, "params": params}).encode() + b"\n")
        self.p.stdin.flush()
        return json.loads(self.p.stdout.readline())

    def batch(self, n):
        took = []
        for _ in range(n):
            begin = time.perf_counter()
            json.loads(self.ask("tools/call", {"name": "echo", "arguments": {"text": "x"}})["result"]["content"][0]["text"])
            took.append(time.perf_counter() - begin)
        return took

    def stop(self):
        self.p.stdin.close()
        self.p.wait(10)


class Sdk:
    """The protocol's own Python client, in a process that keeps its session."""

    CODE = """
import asyncio, json, sys, time
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client
async def main():
    async with stdio_client(StdioServerParameters(command=sys.argv[1], args=sys.argv[2:])) as (r, w), ClientSession(r, w) as s:
        await s.initialize()
        await s.list_tools()
        print('ready', flush=True)
        loop = asyncio.get_running_loop()
        while line := await loop.run_in_executor(None, sys.stdin.readline):
            took = []
            for _ in range(int(line)):
                begin = time.perf_counter()
                json.loads((await s.call_tool('echo', {'text': 'x'})).content[0].text)
                took.append(time.perf_counter() - begin)
            print(json.dumps(took), flush=True)
asyncio.run(main())
"""

    def __init__(self, python, log_path):
        self.p = subprocess.Popen([python, "-c", self.CODE, sys.executable, UPSTREAM, log_path], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                  stderr=subprocess.DEVNULL, text=True)
        if self.p.stdout.readline() != "ready\n":
            raise RuntimeError("the SDK's client does not start")

    def batch(self, n):
        self.p.stdin.write("%d\n" % n)
        self.p.stdin.flush()
        return json.loads(self.p.stdout.readline())

    def stop(self):
        self.p.stdin.close()
        self.p.wait(10)


class Cell:
    def __init__(self, build, directory, log_path):
        config = Path(directory, "mcp.json")
        config.write_text(json.dumps({"mcpServers": {"bench": {"command": sys.executable, "args": [str(UPSTREAM), str(log_path)]}}}))
        self.daemon = Daemon(build, directory, "--mcp-config", config, *(("--mcp-user", "root") if os.geteuid() == 0 else ()))
        self.post("/v1/sandboxes", {"name": BOX, "servers": ["bench"]})

    def post(self, path, body):
        c = self.daemon.connection
        c.request("POST", path, json.dumps(body), {"Content-Type": "application/json"})
        r = c.getresponse()
        answer = json.loads(r.read())
        if r.status >= 300:
            raise RuntimeError(answer)
        return answer

    def run(self, code):
        r = self.post(f"/v1/sandboxes/{BOX}/execute", {"code": code, "timeout": 60})
        if r["status"] != "ok":
            raise RuntimeError(r["stderr"])
        return json.loads(r["stdout"])

    def batch(self, n):
        return self.run(IN_CELL % n)

    def stop(self):
        self.daemon.stop()


def sdk_python(build):
    """A python that has the SDK: the one that `make mcp-fetch` made, or ours."""
    for python in (build / "mcp-clients" / "python1" / "env" / "bin" / "python", Path(sys.executable)):
        if python.exists() and subprocess.run([python, "-c", "import mcp.client.stdio"], check=False, capture_output=True).returncode == 0:
            return python
    return None


def measure(args, ways):
    samples = {k: [] for k in ways}
    rng = random.Random(args.seed)
    for way in ways.values():
        way.batch(20)
    for i in range(args.rounds):
        for kind in rng.sample(list(ways), len(ways)):
            took = ways[kind].batch(args.calls)
            samples[kind] += took
            log(f"round {i + 1}: {kind} {statistics.median(took) * 1e6:.0f} us")
    at_once = [ways["cell"].run(AT_ONCE)[0] for _ in range(3)]
    return samples, at_once


LINES = (("raw", "a client of thirty lines of Python"), ("sdk", "the protocol's Python SDK"), ("cell", "**code in a cell**"))
GOAL_SDK = 2  # times the median of the SDK
GOAL_AT_ONCE = 1.3  # times one call of one second


def write_document(args, samples, at_once):
    middle = {k: statistics.median(s) for k, s in samples.items()}
    out = [f"{os.cpu_count()} processors, Linux {platform.release()}, {time.strftime('%Y-%m-%d')}; {args.rounds} rounds of {args.calls} calls, interleaved.",
           "", "| one tool call, stdio server | median, µs | p95, µs | × the SDK | × thirty lines |", "|---|---:|---:|---:|---:|"]
    for kind, text in LINES:
        if kind in samples:
            sdk = f"{middle[kind] / middle['sdk']:.2f}" if "sdk" in middle else "not here"
            p95 = statistics.quantiles(samples[kind], n=20)[-1]
            out.append(f"| {text} | {middle[kind] * 1e6:.0f} | {p95 * 1e6:.0f} | {sdk} | {middle[kind] / middle['raw']:.2f} |")
    ten = statistics.median(at_once)
    out.append("")
    if "sdk" in middle:
        out += [f"Goal: code in a cell takes at most {GOAL_SDK} times as long as the SDK: {chart.met(middle['cell'] <= GOAL_SDK * middle['sdk'])}.", ""]
    out += [f"Ten calls of one second each, made at once, take {ten:.2f} s. Goal: at most {GOAL_AT_ONCE} times the slowest call: {chart.met(ten <= GOAL_AT_ONCE)}.",
            "", "The ledger has two lines with hashes for each call. Command: `tests/bench/tools.py`."]
    chart.publish(args.output, "tools", out)


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    p.add_argument("--build", type=Path, default=ROOT / "build")
    p.add_argument("--rounds", type=int, default=8)
    p.add_argument("--calls", type=int, default=200)
    p.add_argument("--output", type=Path)
    p.add_argument("--seed", type=int, default=int(time.time()))
    args = p.parse_args()
    args.build = args.build.resolve()
    with tempfile.TemporaryDirectory(prefix="caisson-bench-") as directory:
        ways, python = {}, sdk_python(args.build)
        try:
            ways["raw"] = Raw(Path(directory, "raw.log"))
            if python:
                ways["sdk"] = Sdk(python, Path(directory, "sdk.log"))
            else:
                log("no python here has the SDK: make mcp-fetch brings it")
            ways["cell"] = Cell(args.build, directory, Path(directory, "cell.log"))
            result = measure(args, ways)
        finally:
            for way in ways.values():
                way.stop()
    write_document(args, *result)
    return 0


if __name__ == "__main__":
    sys.exit(main())
