#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""soak.py - A hundred thousand executions with every kind of end, then a storm of kill -9; nothing may be left or grow.

First part (--count): clients send a shuffled mixture (soak_load.py) and check every answer. After a warm-up and at the end, with the
daemon at rest: descriptors, threads, zombies, cgroups, mounts and namespaces must be the same, memory within 5 %, and the 99th
percentile of the plain executions of the last tenth at most 1.2 times that of the first tenth. Each tenth is the same list of requests,
and the time and the processor time of the daemon's programs per execution are reported for each tenth, which shows growth. On a machine
that others use too, the percentiles follow the neighbours; so the same threads also time work that has nothing to do with the daemon, and
the rise of the one is judged against the rise of the other. Both are reported.

Second part (--storm): under the same load, processes of the daemon are killed at random: kernels, pid 1 of cells, zygotes, the
front, warden, the daemon itself (--victims), for a time or a number of kills (--kills). Meanwhile the only permitted failure is an answer to retry (soak_storm.py).

Everything runs in cgroups of its own with a limit on processes and memory, so that a failure cannot take the machine.
"""
import argparse
import itertools
import json
import os
import random
import sys
import tempfile
import time
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parents[1] / d) for d in ("soak", "lib", "serve", "integ")]

import serve_lib  # noqa: E402
import soak_storm  # noqa: E402
from integ_lib import Place  # noqa: E402
from process import memory_kb, wait_until  # noqa: E402
from soak_load import Client, Load  # noqa: E402

OUTER_PIDS, OUTER_MEMORY = 4000, 6 << 30
# Limits that the hostile kinds reach soon: the test is about their end, and the next execution.
POOL = 8
FLAGS = ("--log-level", "error", "--pool", str(POOL), "--timeout", "200ms", "--memory", "64M", "--pids", "32")
RISE = 1.2           # of the 99th percentile, from the first tenth to the last
SAMPLES_MIN = 500    # plain executions in a tenth; the 99th percentile of fewer is one number out of five
GROWTH = 1.05


def log(text):
    print("soak: " + text, flush=True)


# ---- what is there -------------------------------------------------------------------------------------------------------


def snapshot(d):
    """The daemon at rest, as the Linux kernel shows it."""
    keeper, front, warden = d.keeper, d.pid, d.warden()
    fds = {p: len(os.listdir("/proc/%d/fd" % p)) for p in (keeper, front, warden)}
    family = d.processes()
    namespaces = set()
    zombies = threads = 0
    for p in family:
        try:
            threads += len(os.listdir("/proc/%d/task" % p))
            zombies += Path("/proc/%d/stat" % p).read_text().rsplit(")", 1)[1].split()[0] == "Z"
            for ns in ("mnt", "net", "pid", "user"):
                namespaces.add(os.readlink("/proc/%d/ns/%s" % (p, ns)))
        except OSError:
            pass
    memory = sum(memory_kb(p) for p in (keeper, front, warden))  # not Pss: that falls when others use the same libraries
    return {"keeper fds": fds[keeper], "front fds": fds[front], "warden fds": fds[warden], "processes": len(family), "threads": threads, "zombies": zombies,
            "cgroups": len(d.cgroups()), "mounts": len(Path("/proc/%d/mountinfo" % warden).read_text().splitlines()),
            "namespaces": len(namespaces), "memory KiB": memory}


def at_rest(d):
    c = Client(d.port)
    for name in [s["session_id"] for s in c.ask("GET", "/sessions")[1]["sessions"]]:
        c.ask("DELETE", "/sessions/" + name)
    c.c.close()

    def still():
        h = d.health()
        # The target of the pool follows recent demand: at rest it is the configured number, and surplus kernels were ended.
        return h["sandboxes"]["live"] == 0 and h["pool"]["making"] == 0 and h["pool"]["kernels_ready"] == h["pool"]["target"] == POOL
    assert wait_until(still, 60), d.health()
    time.sleep(2)  # the Linux kernel removes namespaces in its own time


# ---- times ---------------------------------------------------------------------------------------------------------------


def processor_seconds():
    """Processor seconds of everything here: daemon, cells and clients. 0 if the Linux kernel does not count it."""
    for controllers, d in Place.dirs.items():
        if "cpuacct" in controllers.split(","):
            return int((d / "cpuacct.usage").read_text()) / 1e9
    return 0.0


def ticks(pid):
    """Processor seconds of one process."""
    return sum(map(int, Path("/proc/%d/stat" % pid).read_text().rsplit(")", 1)[1].split()[11:13])) / os.sysconf("SC_CLK_TCK")


class Tenths:
    """The cost of each tenth of a run: seconds, processor time of the daemon's programs and of everything, memory of the front."""

    def __init__(self, d, load):
        self.pids = {"front": d.pid, "warden": d.warden(), "keeper": d.keeper}
        self.load, self.marks = load, []

    def mark(self):
        self.marks.append({"at": time.monotonic(), "all": processor_seconds(), "plain": len(self.load.times), "front KiB": memory_kb(self.pids["front"]),
                           **{k: ticks(p) for k, p in self.pids.items()}})

    def rows(self):
        rows = []
        for a, b in itertools.pairwise(self.marks):
            times = self.load.times[a["plain"]:b["plain"]] or [0.0]
            rows.append({"seconds": b["at"] - a["at"], "p50_ms": percentile(times, 0.5) * 1e3, "p99_ms": percentile(times, 0.99) * 1e3, "front_KiB": b["front KiB"],
                         **{k + "_us": (b[k] - a[k]) / self.load.tenth * 1e6 for k in ("all", *self.pids)}})
        return rows

    def say(self):
        for i, r in enumerate(self.rows()):
            log("tenth %d: %.0f s, p50 %.1f ms, p99 %.1f ms; processor time for each: %.1f ms, of it front %.2f, warden %.2f, keeper %.2f; front %d KiB" % (
                i + 1, r["seconds"], r["p50_ms"], r["p99_ms"], r["all_us"] / 1e3, r["front_us"] / 1e3, r["warden_us"] / 1e3, r["keeper_us"] / 1e3, r["front_KiB"]))


def percentile(times, p):
    return sorted(times)[min(len(times) - 1, int(len(times) * p))]


def tenths(times):
    """The 99th percentile of the first and of the last tenth, in milliseconds."""
    n = max(1, len(times) // 10)
    return percentile(times[:n], 0.99) * 1e3, percentile(times[-n:], 0.99) * 1e3


def judge_times(times, controls):
    """(report, problems)"""
    first, last = tenths(times)
    c_first, c_last = tenths(controls)
    raw, machine = last / first, c_last / c_first
    report = {"p50_ms": percentile(times, 0.5) * 1e3, "p99_first_ms": first, "p99_last_ms": last, "control_p99_first_ms": c_first,
              "control_p99_last_ms": c_last, "rise": raw, "rise_of_control": machine, "rise_normalised": raw / machine,
              "samples": len(times), "controls": len(controls)}
    log("p99 of the plain ones: first tenth %.1f ms, last %.1f ms: %.2f times; of the control %.1f and %.1f ms: %.2f times; "
        "so the daemon's own rise is %.2f (at most %.1f)" % (first, last, raw, c_first, c_last, machine, raw / machine, RISE))
    if len(times) // 10 < SAMPLES_MIN:
        log("a tenth has %d plain executions: too few to judge a 99th percentile (%d)" % (len(times) // 10, SAMPLES_MIN))
        return report, []
    # A machine that became quieter must not make a steady daemon look slow: either number may pass.
    slow = min(raw, raw / machine) > RISE
    return report, ["p99 rose %.2f times, %.2f of them not the machine's" % (raw, raw / machine)] if slow else []


def mixture(d, args, result):
    log("warm-up")
    Load(d.port, args.clients, args.seed, True).run(max(200, args.count // 100))
    at_rest(d)
    before = snapshot(d)
    log("after warm-up: %s" % before)
    begin, busy = time.monotonic(), processor_seconds()

    def say(done):
        seconds = time.monotonic() - begin
        log("%d of %d, %.0f per second, %d s to go" % (done, args.count, done / seconds, (args.count - done) * seconds / max(1, done)))
    load = Load(d.port, args.clients, args.seed + 1000, True)
    parts = Tenths(d, load)
    load.run(args.count, say, parts.mark)
    seconds, busy = time.monotonic() - begin, processor_seconds() - busy
    at_rest(d)
    after = snapshot(d)
    log("after %d: %s" % (args.count, after))
    n = sum(load.counts.values())
    log("%d executions in %.0f s (%.1f per second), refused %s: %s" % (n, seconds, n / seconds, load.refused or "none", load.counts))
    log("%.1f ms of processor time for each, clients included: on %d processors without neighbours %d of them take %.0f s" % (
        busy / n * 1e3, os.cpu_count(), args.count, busy / n * args.count / os.cpu_count()))
    problems = ["wrong answer: %r" % (w,) for w in load.wrong[:5]]
    problems += ["%s: %s, was %s" % (k, after[k], before[k]) for k in before if k != "memory KiB" and after[k] != before[k]]
    if after["memory KiB"] > before["memory KiB"] * GROWTH:
        problems.append("memory: %d KiB, was %d" % (after["memory KiB"], before["memory KiB"]))
    parts.say()
    times, late = judge_times(load.times, load.controls)
    result["mixture"] = {"executions": n, "seconds": seconds, "per_second": n / seconds, "processor_seconds": busy, "counts": load.counts, "refused": load.refused,
                         "wrong": len(load.wrong), "before": before, "after": after, "times": times, "tenths": parts.rows()}
    return problems + late


# ---- all of it -------------------------------------------------------------------------------------------------------------


def raise_limits():
    """The tests' own limits are for one cell at a time."""
    for controllers, d in Place.dirs.items():
        if "pids" in controllers.split(","):
            (d / "pids.max").write_text(str(OUTER_PIDS))
        if "memory" in controllers.split(","):
            (d / "memory.limit_in_bytes").write_text(str(OUTER_MEMORY))


def arguments():
    p = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    p.add_argument("--count", type=int, default=100000, help="executions of the mixture")
    p.add_argument("--clients", type=int, default=8, help="at once")
    p.add_argument("--visitors", type=int, default=2, help="clients in the storm that make sandboxes, upload, stream, read and remove")
    p.add_argument("--storm", type=int, default=120, help="seconds of kill -9")
    p.add_argument("--pause", default="0.05:0.4", metavar="LOW:HIGH", help="seconds between two kills")
    p.add_argument("--kills", type=int, default=0, metavar="N", help="end the storm when each kind was killed so often; --storm is then the most it may take")
    p.add_argument("--victims", default="init,kernel,zygote,front,warden,daemon", help="what is killed")
    p.add_argument("--rate", type=float, help="requests per second in the storm (as many as can be)")
    p.add_argument("--seed", type=int, default=int(time.time()))
    p.add_argument("--json", metavar="FILE", help="write the result there too; - for standard output")
    return p.parse_args()


def main():
    args = arguments()
    random.seed(args.seed)
    Place.enter(Path("/nonexistent"))  # cgroups of our own, with a limit on memory and processes
    raise_limits()
    problems, result = [], {"seed": args.seed, "clients": args.clients, "processors": os.cpu_count()}
    log("seed %d" % args.seed)
    with tempfile.TemporaryDirectory(prefix="caisson-soak-") as where:
        d = serve_lib.Daemon(where, *FLAGS)
        try:
            if args.count:
                problems += mixture(d, args, result)
            if args.storm:
                problems += soak_storm.Storm(d, args, result, log).run()
        finally:
            d.kill()
            Place.leave()
    for problem in problems:
        log("PROBLEM: " + problem[:600])
    log("%d problems" % len(problems) if problems else "all well")
    result["problems"] = problems
    if args.json:
        text = json.dumps(result, indent=1, sort_keys=True) + "\n"
        if args.json == "-":
            print(text, end="")
        else:
            Path(args.json).write_text(text)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
