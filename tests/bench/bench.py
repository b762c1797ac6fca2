#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""bench.py - A fresh `print(1)`: caisson against plain python3 and the other ways to isolate it.

All candidates run interleaved in one session, in an order shuffled per round, started by the small
C program bench-spawn: on a noisy machine only the ratios of such a run mean anything. A candidate
that does not print "1" here is left out, with the reason.

Writes its part of docs/benchmarks.md, and BUILD/bench.json (everything).
"""
import argparse
import ctypes
import json
import os
import platform
import random
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import textwrap
import time
from pathlib import Path

import chart
import peers

ROOT = Path(__file__).resolve().parents[2]
BUDGET = 1.25  # the goal: caisson's median over bubblewrap's
PR_SET_CHILD_SUBREAPER = 36


def parse_args():
    p = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    p.add_argument("--build", type=Path, default=ROOT / "build")
    p.add_argument("--rounds", type=int, default=100, help="samples per candidate (default 100)")
    p.add_argument("--seconds", type=int, default=3, help="of throughput per candidate and number of workers (default 3)")
    p.add_argument("--cells", type=int, default=4, help="sleeping cells for the memory measurement")
    p.add_argument("--only", default="", help="comma-separated names of candidates")
    p.add_argument("--seed", type=int, default=int(time.time()))
    p.add_argument("--output", type=Path, default=ROOT / "docs" / "benchmarks.md")
    p.add_argument("--check", action="store_true", help=f"fail above {BUDGET} times bubblewrap")
    return p.parse_args()


def log(text):
    print(f"bench: {text}", flush=True)


# --- timing and throughput, by bench-spawn ---


def spawner(args, mode, *numbers, commands):
    with tempfile.NamedTemporaryFile("w", prefix="caisson-bench-", suffix=".cmd") as f:
        for name, argv in commands:
            f.write("\t".join([name, *argv]) + "\n")
        f.flush()
        r = subprocess.run([args.build / "tests/bench/bench-spawn", mode, *map(str, numbers), f.name],
                           stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=True)
    return r.stdout.splitlines()


def measure_times(args, candidates):
    commands = [(c.name, c.argv(peers.PRINT)) for c in candidates]
    spawner(args, "time", 3, args.seed, commands=commands)  # warm caches, not counted
    samples = {c.name: [] for c in candidates}
    failed = {c.name: 0 for c in candidates}
    for line in spawner(args, "time", args.rounds, args.seed, commands=commands):
        name, ns = line.split()
        if ns == "fail":
            failed[name] += 1
        else:
            samples[name].append(int(ns) / 1e6)
    return samples, failed


def measure_rates(args, candidates, workers):
    """Runs per second. Interleaved as well: slices of one second, in an order shuffled per round."""
    total = {c.name: [0, 0, 0] for c in candidates}  # good, failed, nanoseconds
    order = list(candidates)
    rng = random.Random(args.seed)
    for _ in range(args.seconds):
        rng.shuffle(order)
        for c in order:
            line = spawner(args, "rate", workers, 1, commands=[(c.name, c.argv(peers.PRINT))])[0]
            total[c.name] = [a + b for a, b in zip(total[c.name], map(int, line.split()))]
    return {n: {"per_second": good / (ns / 1e9), "failed": bad} for n, (good, bad, ns) in total.items()}


# --- memory of sleeping cells ---


def process_table(zombies=False):
    """pid -> (parent pid, command line) of every process that lives, or that only waits for wait()."""
    table = {}
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        try:
            stat = Path("/proc", entry, "stat").read_text(encoding="utf-8", errors="replace")
            cmdline = Path("/proc", entry, "cmdline").read_bytes().decode("utf-8", "replace")
        except OSError:
            continue
        state, parent = stat.rsplit(")", 1)[1].split()[:2]
        if (state == "Z") == zombies:
            table[int(entry)] = (int(parent), cmdline)
    return table


def family(marker, before):
    """The processes that were started since @before: all descendants of this process (it is a subreaper, so orphans
    are among them), and every process with the marker on its command line, with its descendants."""
    procs = process_table()
    mine = {pid for pid, (_, cmdline) in procs.items() if marker in cmdline}
    mine.add(os.getpid())
    grew = True
    while grew:
        more = {pid for pid, (parent, _) in procs.items() if parent in mine and pid not in before} - mine
        mine |= more
        grew = bool(more)
    return mine - {os.getpid()}


def pss_bytes(pid):
    try:
        text = Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii")
    except OSError:
        return None
    return sum(int(line.split()[1]) for line in text.splitlines() if line.startswith("Pss:")) * 1024


def measure_memory(args, c):
    """PSS per sleeping cell, summed over its processes and its helpers."""
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    marker = f"caissonbench{os.getpid()}"
    code = f"import time; '{marker}'; print(1, flush=True); time.sleep(60)"
    before = set(process_table())
    started = []
    try:
        for i in range(args.cells):
            argv = [a if a != "{id}" else f"{marker}-{c.name}-{i}" for a in peers.plain_argv(c.argv(code))]
            started.append(subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                            stderr=subprocess.DEVNULL))
        for p in started:
            p.stdout.readline()
        time.sleep(0.3)
        pids = family(marker, before)
        sizes = {pid: pss_bytes(pid) for pid in pids}
        read = [v for v in sizes.values() if v is not None]
        return {"pss_per_cell": sum(read) / args.cells, "processes": len(sizes) / args.cells,
                "unreadable": len(sizes) - len(read)}
    finally:
        c.cleanup(marker)
        for p in started:
            p.send_signal(signal.SIGTERM)
        for p in started:
            try:
                p.wait(2)
            except subprocess.TimeoutExpired:
                p.kill()
                p.wait()
        reap(marker, before)


def reap(marker, before):
    """Wait until everything is gone; kill the rest after a while."""
    deadline = time.monotonic() + 10
    while left := family(marker, before):
        for pid in left:
            if time.monotonic() > deadline:
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.05)
        reap_zombies()
    reap_zombies()


def reap_zombies():
    """Orphans that ended are ours to wait for; a child that Popen knows is not touched."""
    for pid, (parent, _) in process_table(zombies=True).items():
        if parent == os.getpid():
            os.waitpid(pid, os.WNOHANG)


# --- report ---


def quantile(values, q):
    values = sorted(values)
    return values[min(len(values) - 1, int(q * len(values)))]


def machine():
    cpu = "unknown processor"
    for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
        if line.startswith("model name"):
            cpu = line.split(":", 1)[1].strip()
            break
    return {"cpu": cpu, "cores": os.cpu_count(), "kernel": platform.release(),
            "user": "root" if os.geteuid() == 0 else "an ordinary user"}


def table(result):
    rows = result["candidates"]
    plain, bwrap = rows.get("python3"), rows.get("bubblewrap")

    def ratio(row, other):
        return f"{row['median_ms'] / other['median_ms']:.2f}" if other else "-"

    workers = result["workers"]
    lines = [
        "| fresh `print(1)`, cell made and ended | median | p95 | × python3 | × bubblewrap | "
        + " | ".join(f"per second, {w} worker{'s' if w > 1 else ''}" for w in workers)
        + " | memory per sleeping cell (PSS) | processes |",
        "|---|" + "---:|" * (6 + len(workers)),
    ]
    for name, r in sorted(rows.items(), key=lambda kv: kv[1]["median_ms"]):
        bold = "**" if name == "caisson" else ""
        rates = " | ".join(f"{r['rates'][str(w)]['per_second']:.0f}" for w in workers)
        lines.append(f"| {bold}{r['title']}{bold} | {r['median_ms']:.1f} ms | {r['p95_ms']:.1f} ms | "
                     f"{ratio(r, plain)} | {ratio(r, bwrap)} | {rates} | "
                     f"{r['memory']['pss_per_cell'] / 1e6:.1f} MB | {r['memory']['processes']:.0f} |")
    return lines


def command_lines(command):
    """A shell command, continued over as many lines as it needs."""
    width = chart.COLUMNS - 2
    return textwrap.wrap(command, width, break_long_words=False, break_on_hyphens=False, initial_indent="    ", subsequent_indent="        ")


def report(result):
    m = result["machine"]
    lines = [
        f"{m['cores']} × {m['cpu']}, Linux {m['kernel']}, as {m['user']}, {result['date']}. {result['rounds']} rounds in an "
        f"order shuffled per round; throughput over {result['seconds']} slices of 1 s; memory over "
        f"{result['cells']} cells that sleep in python.", "", *table(result), "",
    ]
    ratio = over_bubblewrap(result)
    if ratio is not None:
        lines += [f"Goal: `caisson run` takes at most {BUDGET} times as long as bubblewrap: {chart.met(ratio <= BUDGET)}.", ""]
    lines += ["### What each line isolates", "", "| | namespaces | system call filter | limits | capabilities |", "|---|---|---|---|---|"]
    lines += [f"| {r['title']} | {r['namespaces']} | {r['filter']} | {r['limits']} | {r['caps']} |"
              for r in result["candidates"].values()]
    lines += ["", "### Commands"]
    for r in result["candidates"].values():
        lines += ["", f"{r['title']} ({r['version']}):", "", " \\\n".join(command_lines(r["command"]))]
    if result["left_out"]:
        lines += ["", "### Not measured in this table", ""]
        lines += [f"- {name}: {why}" for name, why in result["left_out"].items()]
    failed = {n: r["failed"] for n, r in result["candidates"].items() if r["failed"]}
    if failed:
        lines += ["", "### Runs that failed", "", *[f"- {n}: {k} of {result['rounds']}" for n, k in failed.items()]]
    return lines


def main():
    args = parse_args()
    args.build = args.build.resolve()
    work = Path(tempfile.mkdtemp(prefix="caisson-bench-"))
    try:
        return run(args, work)
    finally:
        shutil.rmtree(work, ignore_errors=True)


def choose(args, work):
    """Which candidates run here, and why the others do not."""
    only = set(filter(None, args.only.split(",")))
    chosen, left_out = [], {}
    for c in peers.all_candidates(args.build, work):
        if only and c.name not in only:
            continue
        why = c.prepare()
        if why:
            left_out[c.name] = why
            log(f"{c.name} left out: {why}")
        else:
            chosen.append(c)
    return chosen, left_out


def run(args, work):
    chosen, left_out = choose(args, work)
    try:
        result = measure(args, chosen, left_out)
    finally:
        for c in chosen:
            c.close()
    (args.build / "bench.json").write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    chart.publish(args.output, "command", report(result))
    for name, why in left_out.items():
        log(f"not measured: {name}: {why}")
    return verdict(args, result)


def measure(args, chosen, left_out):
    log(f"{args.rounds} rounds of {', '.join(c.name for c in chosen)}")
    samples, failed = measure_times(args, chosen)
    workers = (1, 2, 8)
    rates = {}
    for w in workers:
        log(f"throughput with {w} worker{'s' if w > 1 else ''}")
        rates[w] = measure_rates(args, chosen, w)
    log(f"memory of {args.cells} sleeping cells each")
    result = {"date": time.strftime("%Y-%m-%d"), "machine": machine(), "rounds": args.rounds,
              "seconds": args.seconds, "cells": args.cells, "seed": args.seed, "workers": workers,
              "left_out": left_out, "candidates": {}}
    for c in chosen:
        ms = samples[c.name]
        if not ms:
            left_out[c.name] = "no run of it succeeded"
            continue
        result["candidates"][c.name] = {
            **c.describe(), "median_ms": statistics.median(ms), "p95_ms": quantile(ms, 0.95),
            "min_ms": min(ms), "samples_ms": ms, "failed": failed[c.name],
            "rates": {str(w): rates[w][c.name] for w in workers}, "memory": measure_memory(args, c)}
    return result


def over_bubblewrap(result):
    """caisson's median over bubblewrap's, or None when one of them was not measured."""
    rows = result["candidates"]
    if "caisson" not in rows or "bubblewrap" not in rows:
        return None
    return rows["caisson"]["median_ms"] / rows["bubblewrap"]["median_ms"]


def verdict(args, result):
    ratio = over_bubblewrap(result)
    if ratio is None:
        log("no verdict: caisson or bubblewrap was not measured")
        return 1 if args.check else 0
    good = ratio <= BUDGET
    log(f"caisson / bubblewrap = {ratio:.2f}, goal at most {BUDGET}: {chart.met(good)}")
    return 0 if good or not args.check else 1


if __name__ == "__main__":
    sys.exit(main())
