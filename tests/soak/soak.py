#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""soak.py - A hundred thousand executions of every kind of end, then a storm of kill -9; and nothing may be left or grow.

First part: clients send a shuffled mixture (ok, error, timeout, memory, fork bomb, flood; fresh sandboxes, sessions, named
sandboxes with commands and files) and check every answer. After a warm-up and at the end, with the daemon at rest: descriptors,
threads, zombies, cgroups, mounts and namespaces must be the same, memory within 5 %, and the 99th percentile of the plain
executions of the last tenth at most 1.2 times that of the first tenth.

Second part: under the same load, processes of the daemon are killed at random: kernels, pid 1 of cells, zygotes, the warden, the
daemon itself. Whoever is asked meanwhile may refuse, but must not lie; whenever the daemon ended it is started again on the same
state, and must work and leave nothing behind.

Everything runs in cgroups of its own with a limit on processes and memory, so that a failure can not take the machine.
"""
import argparse
import http.client
import json
import os
import random
import signal
import sys
import tempfile
import threading
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "serve"))

import serve_lib  # noqa: E402
from integ_lib import Place, wait_until  # noqa: E402

BOMB = "import os\nwhile True:\n    try: os.fork()\n    except OSError: pass"
OUTER_PIDS, OUTER_MEMORY = 4000, 6 << 30


def log(text):
    print("soak: " + text, flush=True)


class Client:
    """One keep-alive connection."""

    def __init__(self, port):
        self.c = http.client.HTTPConnection("127.0.0.1", port, timeout=120)

    def ask(self, method, path, body=None):
        try:
            self.c.request(method, path, json.dumps(body) if body is not None else None,
                           {"Content-Type": "application/json"} if body is not None else {})
            r = self.c.getresponse()
            data = r.read()
            return r.status, json.loads(data) if data and r.getheader("Content-Type", "").startswith("application/json") else data
        except (OSError, http.client.HTTPException) as e:
            self.c.close()
            return 0, str(e)


# ---- what is asked, and what must come back ----------------------------------------------------------------------------


def kinds(rng):
    """(weight, name, request, check) of each kind of execution."""
    n = rng.randrange(1 << 30)
    session = "soak-%d" % rng.randrange(8)
    return (
        (60, "ok", {"code": "print(%d + 1)" % n}, lambda r: r["success"] and r["stdout"] == "%d\n" % (n + 1)),
        (15, "session", {"code": "x = %d\nx" % n, "session_id": session}, lambda r: r["result"]["text/plain"] == str(n)),
        (10, "error", {"code": "1 / 0"}, lambda r: r["error"]["name"] == "ZeroDivisionError" and r["exit_code"] == 1),
        (4, "bash", {"code": "echo %d; exit 3" % n, "language": "bash"}, lambda r: r["stdout"] == "%d\n" % n and r["exit_code"] == 3),
        (4, "flood", {"code": "print('x' * (4 << 20))"}, lambda r: r["truncated"] and r["stdout_bytes"] == (4 << 20) + 1),
        (3, "memory", {"code": "x = bytearray(2 << 30)\nfor i in range(0, len(x), 4096): x[i] = 1"}, lambda r: not r["success"]),
        (2, "timeout", {"code": "while True: pass", "timeout": 1}, lambda r: r["status"] == "timeout"),
        (2, "fork bomb", {"code": BOMB, "timeout": 1}, lambda r: r["status"] in ("timeout", "limit", "signal")),
    )


def choose(rng):
    rows = kinds(rng)
    at = rng.randrange(sum(w for w, *_ in rows))
    for weight, name, request, check in rows:
        at -= weight
        if at < 0:
            return name, request, check
    raise AssertionError


class Load:
    """Clients that ask until they are told to stop. Answers other than expected are kept."""

    def __init__(self, port, clients, seed, strict):
        self.port, self.strict = port, strict
        self.lock = threading.Lock()
        self.counts, self.wrong, self.times, self.refused = {}, [], [], 0
        self.left = 0
        self.threads = [threading.Thread(target=self.work, args=(random.Random(seed + i),), daemon=True) for i in range(clients)]

    def run(self, count):
        self.left = count
        for t in self.threads:
            t.start()
        for t in self.threads:
            t.join()

    def take(self):
        with self.lock:
            self.left -= 1
            return self.left >= 0

    def work(self, rng):
        client = Client(self.port)
        while self.take():
            name, request, check = choose(rng)
            begin = time.monotonic()
            status, answer = client.ask("POST", "/execute", request)
            took = time.monotonic() - begin
            with self.lock:
                if status == 200:
                    self.counts[name] = self.counts.get(name, 0) + 1
                    if name == "ok":
                        self.times.append(took)
                    try:
                        good = check(answer)
                    except (KeyError, TypeError):
                        good = False
                    # In a storm what was killed is reported as killed: never as something that it is not.
                    if not good and (self.strict or (answer["success"] and name not in ("ok", "session"))):
                        self.wrong.append((name, answer))
                elif status in (0, 429, 503, 409, 500) and not self.strict or status == 429:
                    self.refused += 1
                    time.sleep(0.05)
                else:
                    self.wrong.append((name, status, answer))
            if status == 0:
                time.sleep(0.2)


# ---- what is there -------------------------------------------------------------------------------------------------------


def snapshot(d):
    """The daemon at rest, as the kernel sees it."""
    front, warden = d.pid, d.warden()
    fds = {p: len(os.listdir("/proc/%d/fd" % p)) for p in (front, warden)}
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
    memory = sum(int(line.split()[1]) for p in (front, warden) for line in Path("/proc/%d/smaps_rollup" % p).read_text().splitlines()
                 if line.startswith("Pss:"))
    return {"front fds": fds[front], "warden fds": fds[warden], "processes": len(family), "threads": threads, "zombies": zombies,
            "cgroups": len(d.cgroups()), "mounts": len(Path("/proc/%d/mountinfo" % warden).read_text().splitlines()),
            "namespaces": len(namespaces), "memory KiB": memory}


def at_rest(d):
    c = Client(d.port)
    for name in [s["session_id"] for s in c.ask("GET", "/sessions")[1]["sessions"]]:
        c.ask("DELETE", "/sessions/" + name)
    c.c.close()

    def still():
        h = d.health()
        return h["sandboxes"]["live"] == 0 and h["pool"]["making"] == 0 and h["pool"]["kernels_ready"] == h["pool"]["target"]
    assert wait_until(still, 60), d.health()
    time.sleep(2)  # the kernel takes namespaces down in its own time


def percentile(times, p):
    return sorted(times)[min(len(times) - 1, int(len(times) * p))]


def mixture(d, args):
    log("warm-up")
    Load(d.port, args.clients, args.seed, True).run(max(200, args.count // 100))
    at_rest(d)
    before = snapshot(d)
    log("after warm-up: %s" % before)
    begin = time.monotonic()
    load = Load(d.port, args.clients, args.seed + 1000, True)
    load.run(args.count)
    seconds = time.monotonic() - begin
    at_rest(d)
    after = snapshot(d)
    log("after %d: %s" % (args.count, after))
    log("%d executions in %.0f s (%.0f per second), refused %d: %s" % (sum(load.counts.values()), seconds,
                                                                        sum(load.counts.values()) / seconds, load.refused, load.counts))
    problems = ["wrong answer: %r" % (w,) for w in load.wrong[:5]]
    problems += ["%s: %s, was %s" % (k, after[k], before[k]) for k in before if k != "memory KiB" and after[k] != before[k]]
    if after["memory KiB"] > before["memory KiB"] * 1.05:
        problems.append("memory: %d KiB, was %d" % (after["memory KiB"], before["memory KiB"]))
    tenth = max(1, len(load.times) // 10)
    first, last = percentile(load.times[:tenth], 0.99), percentile(load.times[-tenth:], 0.99)
    log("p99 of the plain ones: first tenth %.1f ms, last %.1f ms" % (first * 1e3, last * 1e3))
    if last > first * 1.2:
        problems.append("p99 rose from %.1f to %.1f ms" % (first * 1e3, last * 1e3))
    return problems


# ---- the storm -------------------------------------------------------------------------------------------------------------


def victims(d):
    """One of each kind that lives, the daemon itself seldom."""
    found = {"init": d.inits(), "kernel": list(d.kernels()), "zygote": [z for z in [d.zygote()] if z]}
    if random.random() < 0.1:
        found["warden"] = [d.warden()]
    if random.random() < 0.1:
        found["daemon"] = [d.pid]
    return [(kind, random.choice(pids)) for kind, pids in found.items() if pids]


def storm(d, args):
    problems, killed = [], {}
    load = Load(d.port, args.clients, args.seed + 5000, False)
    worker = threading.Thread(target=load.run, args=(10 ** 9,), daemon=True)
    worker.start()
    end = time.monotonic() + args.storm
    while time.monotonic() < end:
        time.sleep(random.uniform(0.05, 0.4))
        kind = None
        try:
            kind, pid = random.choice(victims(d))
            if pid in d.processes() or pid == d.pid:
                os.kill(pid, signal.SIGKILL)
                killed[kind] = killed.get(kind, 0) + 1
        except (OSError, StopIteration, IndexError):
            pass
        if kind in ("warden", "daemon"):
            d.p.wait(60)
            if not wait_until(lambda: not d.processes(), 60):
                problems.append("left after the end of the %s: %s" % (kind, d.processes()))
            d.kill()
            d.start()
            d.wait_ready()
    load.left = 0
    worker.join(200)
    log("storm of %d s: killed %s, answers %s, refused %d" % (args.storm, killed, load.counts, load.refused))
    problems += ["wrong answer in the storm: %r" % (w,) for w in load.wrong[:5]]
    d.wait_ready()
    at_rest(d)
    status, answer = Client(d.port).ask("POST", "/execute", {"code": "print('well')"})
    if status != 200 or answer["stdout"] != "well\n":
        problems.append("not well after the storm: %s %r" % (status, answer))
    d.stop()
    return problems + ["left at the end: %s" % x for x in d.left()]


def raise_limits():
    """The tests' own limits are for one cell at a time."""
    for controllers, d in Place.dirs.items():
        if "pids" in controllers.split(","):
            (d / "pids.max").write_text(str(OUTER_PIDS))
        if "memory" in controllers.split(","):
            (d / "memory.limit_in_bytes").write_text(str(OUTER_MEMORY))


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    p.add_argument("--count", type=int, default=100000, help="executions of the mixture")
    p.add_argument("--storm", type=int, default=120, help="seconds of kill -9")
    p.add_argument("--clients", type=int, default=8)
    p.add_argument("--seed", type=int, default=int(time.time()))
    args = p.parse_args()
    random.seed(args.seed)
    Place.enter(Path("/nonexistent"))  # cgroups of our own, with a limit on memory and processes
    raise_limits()
    problems = []
    log("seed %d" % args.seed)
    with tempfile.TemporaryDirectory(prefix="caisson-soak-") as where:
        d = serve_lib.Daemon(where, "--log-level", "error", "--pool", "8")
        try:
            if args.count:
                problems += mixture(d, args)
            if args.storm:
                problems += storm(d, args)
        finally:
            d.kill()
            Place.leave()
    for problem in problems:
        log("PROBLEM: " + problem[:600])
    log("%d problems" % len(problems) if problems else "all well")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
