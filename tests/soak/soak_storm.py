# SPDX-License-Identifier: Apache-2.0
"""soak_storm.py - kill -9 of every process of a daemon, under load (executions, and whole lives of sandboxes: soak_visits.py).

Meanwhile the only permitted failures are 429 or 503 with Retry-After, and a cut connection; a killed execution is reported as killed.
Named sandboxes are watched throughout: whenever the daemon is back, each of them exists, with its variables if its epoch is the same,
or is `lost`, which its users are told. A forgotten name is a failure. A refused or cut connection is tried again, as a client would, and
counted: the front of a killed daemon answers for a moment longer, and then no daemon answers until the next one
is ready.

A daemon that ended is started again at once, on the same state, beside the leftovers of the one before; at the end, after
SIGTERM, nothing of any of them may be left.
"""
import os
import random
import signal
import threading
import time

from process import name_of, wait_until
from soak_load import Client, Load
from soak_visits import Visits

NAMES = ["storm-%d" % i for i in range(4)]
READY_SECONDS = 60
KNOWN = ("running", "idle", "busy", "stopped", "lost", "creating")


class Named:
    """Named sandboxes, and their variables."""

    def __init__(self, port):
        self.client = Client(port)
        self.has = {}       # name: x, while its epoch is 0
        self.seen = {}      # state: how often, when the daemon had come back
        self.n = 0
        self.again = 0      # requests that had to be sent again

    def ask(self, *request):
        """A request of a client that does not give up at once; requests here can be repeated."""
        until = time.monotonic() + READY_SECONDS
        status, answer = self.client.ask(*request)
        while not status and time.monotonic() < until:
            self.again += 1
            time.sleep(0.05)
            status, answer = self.client.ask(*request)
        return status, answer

    def fill(self):
        """Set x in each of them; those that cannot be used now have none."""
        for name in NAMES:
            if name in self.has:
                continue
            self.ask("DELETE", "/v1/sandboxes/" + name)
            status, _ = self.ask("POST", "/v1/sandboxes", {"name": name})
            if status in (200, 201):
                self.n += 1
                status, r = self.ask("POST", "/v1/sandboxes/%s/execute" % name, {"code": "x = %d" % self.n, "timeout": 30})
                epoch = self.epoch(name)
                if status == 200 and r["status"] == "ok" and epoch == 0:
                    self.has[name] = self.n

    def epoch(self, name):
        status, box = self.ask("GET", "/v1/sandboxes/" + name)
        return box["epoch"] if status == 200 else None

    def check(self):
        """After a restart: a list of errors."""
        wrong = []
        for name, x in list(self.has.items()):
            status, box = self.ask("GET", "/v1/sandboxes/" + name)
            if status != 200 or box["state"] not in KNOWN:
                wrong.append("%s is unknown after a restart: %s %r" % (name, status, box))
                del self.has[name]
                continue
            self.seen[box["state"]] = self.seen.get(box["state"], 0) + 1
            status, r = self.ask("POST", "/v1/sandboxes/%s/execute" % name, {"code": "x", "timeout": 30})
            if box["state"] in ("lost", "stopped"):
                if status != 409:
                    wrong.append("%s is %s, and takes work: %s %r" % (name, box["state"], status, r))
                del self.has[name]
            elif status != 200:
                wrong.append("%s is %s, and takes no work: %s %r" % (name, box["state"], status, r))
                del self.has[name]
            elif self.epoch(name) != 0:
                del self.has[name]  # it reports that its variables are lost
            elif r["status"] != "ok" or r["result"]["text/plain"] != str(x):
                wrong.append("%s has another x in the same epoch: %r" % (name, r))
        return wrong


class Storm:
    def __init__(self, d, args, result, log):
        self.d, self.args, self.result, self.log = d, args, result, log
        self.low, self.high = map(float, args.pause.split(":"))
        self.kinds = set(args.victims.split(","))
        self.killed, self.restarts, self.slowest, self.slowest_front = {}, 0, 0.0, 0.0
        self.named = Named(d.port)

    def zygotes(self):
        """The ready zygote: after each one that dies while it loads, the next one takes longer."""
        status, h = self.named.client.ask("GET", "/health")
        return [z for z in [self.d.zygote()] if z and status == 200 and h["pool"]["zygote"]]

    def victims(self):
        """One of each kind that lives; processes whose death ends the daemon are rare, unless only these are requested."""
        d = self.d
        found = {"init": d.inits, "kernel": lambda: list(d.kernels()), "zygote": self.zygotes,
                 "front": lambda: [d.pid], "warden": lambda: [d.warden()], "daemon": lambda: [d.keeper]}
        last = {"warden", "daemon"}
        use = [k for k in found if k in self.kinds and (k not in last or self.kinds <= last or random.random() < 0.1)]
        return [(kind, random.choice(pids)) for kind in use if (pids := found[kind]())]

    def kill_one(self):
        """The kind of the killed process, or None."""
        try:
            kind, pid = random.choice(self.victims())
            if pid not in self.d.processes() and pid not in (self.d.pid, self.d.keeper):
                return None
            os.kill(pid, signal.SIGKILL)
        except (OSError, StopIteration, IndexError):
            return None
        self.killed[kind] = self.killed.get(kind, 0) + 1
        return kind

    def healthy(self):
        return self.d.running() and self.named.client.ask("GET", "/health")[0] == 200

    def enough(self):
        """Whether each kind was killed often enough."""
        return self.args.kills and all(self.killed.get(k, 0) >= self.args.kills for k in self.kinds)

    def takeover(self):
        """Another front, with the sandboxes of the one before."""
        begin = time.monotonic()
        if not wait_until(self.healthy, READY_SECONDS):
            return ["no front %d s after a kill: %s" % (READY_SECONDS, self.d.log_text()[-500:])]
        self.slowest_front = max(self.slowest_front, time.monotonic() - begin)
        return self.named.check()

    def restart(self):
        """Another daemon on the same state, at once. The leftovers of the one before stay visible."""
        d, old = self.d, self.d.dirs
        begin = time.monotonic()
        d.p.wait(60)
        d.start()
        d.dirs = [x for x in old if x.exists()] + d.dirs
        if not wait_until(self.healthy, READY_SECONDS):
            return ["no daemon %d s after a kill: %s" % (READY_SECONDS, d.log_text()[-500:])]
        self.restarts += 1
        self.slowest = max(self.slowest, time.monotonic() - begin)
        return self.named.check()

    def run(self):
        problems, d = [], self.d
        load = Load(d.port, self.args.clients, self.args.seed + 5000, False, self.args.rate)
        worker = threading.Thread(target=load.run, args=(10 ** 9,), daemon=True)
        worker.start()
        visits = Visits(d.port, self.args.visitors, self.args.seed + 7000)
        visits.start()
        begin = said = time.monotonic()
        while time.monotonic() < begin + self.args.storm and not self.enough():
            self.named.fill()
            time.sleep(random.uniform(self.low, self.high))
            killed = self.kill_one()
            if killed in ("warden", "daemon"):
                problems += self.restart()
            elif killed == "front":
                problems += self.takeover()
            if time.monotonic() > said + 5:
                said = time.monotonic()
                self.log("storm: %d of %d s, killed %s, %d restarts, %d answers" % (
                    said - begin, self.args.storm, self.killed, self.restarts, load.done))
        load.stop()
        counts, wrong = visits.stop()
        problems += wrong[:5]
        worker.join(200)
        if self.args.kills and not self.enough():
            problems.append("fewer than %d of each were killed in %d s: %s" % (self.args.kills, self.args.storm, self.killed))
        self.log("storm of %d s: killed %s, answers %s, refused %s; %d restarts, the slowest %.1f s (of a front %.1f s), after which named sandboxes were %s; "
                 "%d requests for them were sent again" % (time.monotonic() - begin, self.killed, load.counts, load.refused, self.restarts, self.slowest, self.slowest_front,
                                                          self.named.seen, self.named.again))
        self.log("whole lives of sandboxes meanwhile: %s" % counts)
        self.result["storm"] = {"seconds": self.args.storm, "killed": self.killed, "answers": load.counts, "refused": load.refused,
                                "restarts": self.restarts, "slowest_restart_seconds": self.slowest, "slowest_front_seconds": self.slowest_front, "named": self.named.seen,
                                "sent_again": self.named.again, "visits": counts}
        problems += ["wrong answer in the storm: %r" % (w,) for w in load.wrong[:5]]
        return problems + self.after()

    def after(self):
        """Check that it works, and that it leaves nothing."""
        d, problems = self.d, []
        d.wait_ready()
        status, answer = Client(d.port).ask("POST", "/execute", {"code": "print('well')", "timeout": 30})
        if status != 200 or answer["stdout"] != "well\n":
            problems.append("not well after the storm: %s %r" % (status, answer))
        for name in NAMES:
            self.named.ask("DELETE", "/v1/sandboxes/" + name)
        d.p.send_signal(signal.SIGTERM)
        if d.end() != 0:
            problems.append("ended with %d: %s" % (d.code, d.log_text()[-1000:]))
        wait_until(lambda: not d.left(), 30)
        return problems + ["left at the end: %s" % x for x in d.left()] + [
            "left at the end: process %d (%s)" % (p, name_of(p)) for p in d.processes()]
