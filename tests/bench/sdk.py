#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""sdk.py - The cost of the Python library: a warm execution with it, blocking and asyncio, and with only http.client and json.

One sandbox, one kept connection each, calls take turns in an order shuffled per round; every call parses its answer. Then a hundred sandboxes
from one event loop, each executing at once. Run it with the python of build/sdk/venv, or it takes the library from the source. Writes its part of
docs/benchmarks.md.
"""
import argparse
import asyncio
import http.client
import json
import os
import platform
import random
import statistics
import sys
import tempfile
import time
from pathlib import Path

import chart
from serve import ROOT, Daemon, log

sys.path.append(str(ROOT / "sdk/python/src"))
from caisson import AsyncCaisson, Caisson  # noqa: E402

CODE = "1 + 1"
NAMES = {"raw": "`http.client` and `json`", "sync": "**`Caisson`**", "async": "**`AsyncCaisson`**"}


class Raw:
    """A client without a library."""

    def __init__(self, port, name):
        self.connection = http.client.HTTPConnection("127.0.0.1", port)
        self.path = f"/v1/sandboxes/{name}/execute"

    def execute(self):
        self.connection.request("POST", self.path, json.dumps({"code": CODE}), {"Content-Type": "application/json"})
        answer = json.loads(self.connection.getresponse().read())
        return answer["result"]["text/plain"]


async def warm(args, port):
    """Seconds of each call, by kind."""
    url, rng = f"http://127.0.0.1:{port}", random.Random(args.seed)
    took = {kind: [] for kind in NAMES}
    with Caisson(url) as c:
        box = c.create("bench")
        raw = Raw(port, "bench")
        async with AsyncCaisson(url) as a:
            abox = await a.get("bench")
            for i in range(args.rounds + 50):
                for kind in rng.sample(list(NAMES), len(NAMES)):
                    begin = time.perf_counter()
                    if kind == "raw":
                        text = raw.execute()
                    elif kind == "sync":
                        text = box.execute(CODE).text
                    else:
                        text = (await abox.execute(CODE)).text
                    if i >= 50:
                        took[kind].append(time.perf_counter() - begin)
                    if text != "2":
                        raise RuntimeError(f"{kind}: {text!r}")
        raw.connection.close()
        box.remove()
    return took


async def many(args, port):
    """A hundred sandboxes from one loop: seconds to make them, and executions per second in all of them together."""
    async with AsyncCaisson(f"http://127.0.0.1:{port}") as c:
        begin = time.perf_counter()
        boxes = await asyncio.gather(*(c.create(f"many-{i}", memory_mib=64) for i in range(args.many)))
        made = time.perf_counter() - begin
        await asyncio.gather(*(b.execute("x = 0") for b in boxes))
        begin = time.perf_counter()

        async def work(box):
            for _ in range(args.each):
                if not (await box.execute("x += 1")).ok:
                    raise RuntimeError("an execution failed")

        await asyncio.gather(*(work(b) for b in boxes))
        rate = args.many * args.each / (time.perf_counter() - begin)
        await asyncio.gather(*(b.remove() for b in boxes))
    return made, rate


GOAL = 1.3  # times the median of http.client


def write_document(args, took, made, rate):
    base = statistics.median(took["raw"])
    out = [f"{os.cpu_count()} processors, Linux {platform.release()}, {time.strftime('%Y-%m-%d')}, Python {platform.python_version()}; "
           f"{args.rounds} executions of each, interleaved.", "",
           "| warm execute | median, µs | p95, µs | × `http.client` |", "|---|---:|---:|---:|"]
    for kind, text in NAMES.items():
        middle = statistics.median(took[kind])
        out.append(f"| {text} | {middle * 1e6:.0f} | {statistics.quantiles(took[kind], n=20)[18] * 1e6:.0f} | {middle / base:.2f} |")
    good = all(statistics.median(took[k]) <= GOAL * base for k in took)
    out += ["", f"Goal: both clients of the library take at most {GOAL} times as long as `http.client`: {chart.met(good)}.", "",
            f"{args.many} sandboxes from one event loop: made in {made:.2f} s, then {rate:.0f} executions per second in all of them together. Command: `tests/bench/sdk.py`."]
    chart.publish(args.output, "sdk", out)


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    p.add_argument("--build", type=Path, default=ROOT / "build")
    p.add_argument("--rounds", type=int, default=1000)
    p.add_argument("--many", type=int, default=100)
    p.add_argument("--each", type=int, default=10)
    p.add_argument("--output", type=Path)
    p.add_argument("--seed", type=int, default=int(time.time()))
    args = p.parse_args()
    with tempfile.TemporaryDirectory(prefix="caisson-bench-") as directory:
        daemon = Daemon(args.build.resolve(), directory)
        try:
            took = asyncio.run(warm(args, daemon.port))
            log("a hundred at once")
            made, rate = asyncio.run(many(args, daemon.port))
        finally:
            daemon.stop()
    write_document(args, took, made, rate)
    return 0


if __name__ == "__main__":
    sys.exit(main())
