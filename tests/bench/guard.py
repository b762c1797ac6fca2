#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""guard.py - Fail when a fresh sandbox or a warm execution costs more system calls or page faults than before.

Each kind of process has a budget in guard.json. The guard starts a daemon, traces its processes (tracer.py), and counts what
each kind needs for `print(1)`: in a fresh sandbox, from the request until the pool has another, and in a session. It takes the
median of some rounds. A count of more than a tenth above its budget is a failure. Counts differ from machine to machine: the
budget names the machine for which it holds, and on another the guard prints that, and does not judge.

The counts do not depend on the load of the machine, nor on the time that something takes.
"""
import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tracer import Tracer

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/lib"))
from daemon import BareDaemon, read_response  # noqa: E402
from process import SANITIZED, below, children, name_of, wait_until  # noqa: E402

BUDGET = Path(__file__).with_suffix(".json")
ABOVE, FEW = 1.10, 3  # a count may exceed its budget by a tenth, and by this many
ROUNDS, SKIPPED = 11, 3  # the first ones end sandboxes that began before they were traced
REST, LONG_REST = 0.03, 0.1  # seconds without a system call, after which a round is over; the front does something every 250 ms
CHILDREN = {"warden": "cell", "zygote": "fork", "fork": "kernel", "init": "command"}
PROGRAMS = {"cell": "init"}
KINDS = {"kernel": "python kernel", "fork": "the zygote's child", "zygote": "zygote", "cell": "cell's child before init", "init": "init",
         "warden": "warden", "front": "front", "command": "commands of init"}
COUNTS = ("system calls", "page faults")


def machine():
    """Everything outside of this tree that the counts depend on."""
    version = subprocess.run(["/usr/bin/python3", "-c", "import sys; print('%d.%d.%d' % sys.version_info[:3])"],
                             stdout=subprocess.PIPE, text=True, check=True).stdout.strip()
    groups = "v2" if Path("/sys/fs/cgroup/cgroup.controllers").exists() else "v1"
    return {"python": version, "libc": "%s %s" % platform.libc_ver(), "linux": ".".join(platform.release().split(".")[:2]),
            "architecture": platform.machine(), "cgroups": groups, "root": os.geteuid() == 0}


class Client:
    """One connection, without a library whose behaviour could change."""

    def __init__(self, daemon):
        self.socket = daemon.connect()
        self.file = self.socket.makefile("rb")

    def execute(self, **fields):
        body = json.dumps({"code": "print(1)", **fields}).encode()
        self.socket.sendall(b"POST /execute HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s" %
                            (len(body), body))
        answer = read_response(self.file)
        assert answer.status == 200 and answer.json["stdout"] == "1\n", answer


def kinds_of(daemon):
    """{pid: kind} of the daemon's processes that take part."""
    kinds = {daemon.pid: "front", daemon.find_warden(): "warden"}
    own = os.readlink("/proc/self/ns/pid")
    for pid in below(daemon.find_warden()):
        in_cell = os.readlink("/proc/%d/ns/pid" % pid) != own
        if name_of(pid) == "caisson-init":
            kinds[pid] = "init"
        elif b"zygote" in Path("/proc/%d/cmdline" % pid).read_bytes().split(b"\0"):
            kinds[pid] = "zygote" if pid in children(daemon.find_warden()) and not in_cell else "kernel"
    return kinds


def rounds(tracer, once):
    """The median of what a call costs: {kind: [system calls, page faults]}."""
    samples = []
    for _ in range(SKIPPED):
        once()
        wait_until(lambda: tracer.rests(LONG_REST))
    cells = tracer.alive("init"), tracer.alive("kernel")
    before = tracer.totals()
    for _ in range(ROUNDS):
        once()
        assert wait_until(lambda: tracer.rests(REST) and (tracer.alive("init"), tracer.alive("kernel")) == cells), "the pool did not fill"
        after = tracer.totals()
        samples.append({k: [a - b for a, b in zip(after[k], before.get(k, (0, 0)))] for k in after})
        before = after
    found = {}
    for kind in KINDS:
        counts = [int(statistics.median_low(s.get(kind, (0, 0))[i] for s in samples)) for i in range(len(COUNTS))]
        if any(counts):
            found[kind] = counts
    return found


def measure(build):
    """{"fresh": {kind: [system calls, page faults]}, "warm": ...}. Raises OSError where tracing is not permitted."""
    with tempfile.TemporaryDirectory(prefix="caisson-guard-") as directory:
        daemon = BareDaemon(directory, "--pool", "1", binary=build / "caisson")
        daemon.launch()
        try:
            daemon.wait_ready()
            client = Client(daemon)
            client.execute(session_id="warm")
            daemon.wait_ready()
            tracer = Tracer(kinds_of(daemon), CHILDREN, PROGRAMS)
            tracer.begin()
            return {"fresh": rounds(tracer, client.execute),
                    "warm": rounds(tracer, lambda: client.execute(session_id="warm"))}
        finally:
            daemon.p.terminate()
            daemon.p.wait(60)


def judge(found, budget):
    """Print the counts beside their budget. Returns the failures, as lines."""
    failures = []
    print("%-8s %-26s %22s %22s" % ("print(1)", "of", *("%s (budget)" % c for c in COUNTS)))
    for way, kinds in found.items():
        for kind, counts in kinds.items():
            allowed = budget.get(way, {}).get(kind, (0, 0))
            print("%-8s %-26s %22s %22s" % (way, KINDS[kind], *("%d (%d)" % pair for pair in zip(counts, allowed))))
            for what, count, most in zip(COUNTS, counts, allowed):
                if count > most * ABOVE and count > most + FEW:
                    failures.append("%s, %s: %d %s, the budget is %d" % (way, KINDS[kind], count, what, most))
    return failures


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    p.add_argument("--build", type=Path, default=ROOT / "build")
    p.add_argument("--record", action="store_true", help="write the counts of this machine as the budget")
    args = p.parse_args()
    here = machine()
    budget = json.loads(BUDGET.read_text()) if BUDGET.exists() else {"machine": None}
    if not args.record and budget["machine"] != here:
        print("bench-guard: skipped: the budget is for %s, and this is %s" % (budget["machine"], here))
        return 0
    if SANITIZED:
        print("bench-guard: skipped: a sanitizer has page faults of its own")
        return 0
    begin = time.monotonic()
    try:
        found = measure(args.build.resolve())
    except PermissionError as e:
        print("bench-guard: skipped: this machine does not permit tracing: %s" % e)
        return 0
    failures = judge(found, budget)
    print("bench-guard: %.1f s" % (time.monotonic() - begin))
    if args.record:
        BUDGET.write_text(json.dumps({"machine": here, **found}, indent=1) + "\n")
        return 0
    for line in failures:
        print("bench-guard: FAILED: %s. Find the change that costs this; make bench-guard RECORD=yes accepts it." % line)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
