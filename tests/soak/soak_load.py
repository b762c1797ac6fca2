# SPDX-License-Identifier: Apache-2.0
"""soak_load.py - Clients that send a shuffled mixture of executions and check every answer, and the control beside them.

The kinds are those of a hostile day: most end well, the others in every possible way. A run has ten parts, and in each of them a client
sends the same list of requests: so the first tenth and the last have the same fork bombs beside the same requests. Times of the plain
ones are kept in the order of their ends. The control is work that has nothing to do with the daemon (start /bin/true and wait for it),
done by the same threads between their executions: a neighbour on the machine, or the load itself, slows both.
"""
import http.client
import json
import os
import random
import threading
import time

BOMB = "import os\nwhile True:\n    try: os.fork()\n    except OSError: pass"
HOG = "x = bytearray(1 << 30)\nfor i in range(0, len(x), 4096): x[i] = 1"
# The answers that a client may get while processes are killed: retry. 0 is a connection that was refused or cut.
RETRYABLE = (0, 429, 502, 503, 504)
CONTROL_EVERY = 4
LONG = 30  # seconds; the daemon's own default is short, for the kinds that have to run into it


class Client:
    """One keep-alive connection."""

    def __init__(self, port):
        self.c = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
        self.headers = {}

    def ask(self, method, path, body=None):
        """(status, object or bytes); status 0 when there was no answer, with the reason."""
        try:
            self.c.request(method, path, json.dumps(body) if body is not None else None,
                           {"Content-Type": "application/json"} if body is not None else {})
            r = self.c.getresponse()
            data = r.read()
            self.headers = {k.lower(): v for k, v in r.getheaders()}
            return r.status, json.loads(data) if data and self.headers.get("content-type", "").startswith("application/json") else data
        except (OSError, http.client.HTTPException) as e:
            self.c.close()
            return 0, repr(e)


def kinds(rng):
    """(weight, name, request, check) of each kind of execution. A fork bomb costs as much as a hundred plain ones."""
    n = rng.randrange(1 << 30)
    session = "soak-%d" % rng.randrange(8)
    return (
        (620, "ok", {"code": "print(%d + 1)" % n, "timeout": LONG}, lambda r: r["success"] and r["stdout"] == "%d\n" % (n + 1)),
        (150, "session", {"code": "x = %d\nx" % n, "session_id": session, "timeout": LONG},
         lambda r: r["result"]["text/plain"] == str(n)),
        (100, "error", {"code": "1 / 0", "timeout": LONG}, lambda r: r["error"]["name"] == "ZeroDivisionError" and r["exit_code"] == 1),
        (40, "bash", {"code": "echo %d; exit 3" % n, "language": "bash", "timeout": LONG},
         lambda r: r["stdout"] == "%d\n" % n and r["exit_code"] == 3),
        (40, "flood", {"code": "print('x' * (4 << 20))", "timeout": LONG}, lambda r: r["truncated"] and r["stdout_bytes"] == (4 << 20) + 1),
        (27, "memory", {"code": HOG, "timeout": LONG}, lambda r: r["status"] == "limit" and r["cause"]["kind"] == "memory"),
        (20, "timeout", {"code": "import time\nwhile True: time.sleep(0.001)"}, lambda r: r["status"] == "timeout"),
        (3, "fork bomb", {"code": BOMB}, lambda r: r["status"] in ("timeout", "limit", "signal")),
    )


def choose(rng):
    rows = kinds(rng)
    at = rng.randrange(sum(w for w, *_ in rows))
    for weight, name, request, check in rows:
        at -= weight
        if at < 0:
            return name, request, check
    raise AssertionError


def control():
    """Seconds that a fixed piece of work takes now."""
    begin = time.monotonic()
    os.waitpid(os.posix_spawn("/bin/true", ["true"], {}), 0)
    return time.monotonic() - begin


class Load:
    """Clients that send requests until stop(). Unexpected answers are kept.

    @strict: every answer must be right. Otherwise processes are being killed: killed executions may be reported as killed, and a
    request may be refused with an answer to retry.
    @rate: requests per second of all clients together; None for as many as there can be.
    """

    def __init__(self, port, clients, seed, strict, rate=None):
        self.port, self.strict, self.pause = port, strict, clients / rate if rate else 0
        self.lock = threading.Lock()
        self.counts, self.wrong, self.times, self.controls, self.refused = {}, [], [], [], {}
        self.left, self.done, self.tenth, self.mark = 0, 0, 0, None
        self.threads = [threading.Thread(target=self.work, args=(seed + i,), daemon=True) for i in range(clients)]

    def run(self, count, say=None, mark=None):
        """@say(done): called every few seconds. @mark(): after each tenth, and before the first."""
        self.left, self.tenth, self.mark = count, max(1, count // 10), mark
        if mark:
            mark()
        for t in self.threads:
            t.start()
        for t in self.threads:
            while t.is_alive():
                t.join(5)
                if say and t.is_alive():
                    say(self.done)

    def stop(self):
        self.left = 0

    def take(self):
        with self.lock:
            self.left -= 1
            return self.left >= 0

    def work(self, seed):
        client, rng, mine = Client(self.port), random.Random(seed), 0
        n = rng.randrange(CONTROL_EVERY)
        while self.take():
            if mine % max(1, self.tenth // len(self.threads)) == 0:
                rng = random.Random(seed)
            mine += 1
            name, request, check = choose(rng)
            begin = time.monotonic()
            status, answer = client.ask("POST", "/execute", request)
            took = time.monotonic() - begin
            with self.lock:
                self.done += 1
                self.judge(client, name, check, status, answer)
                if status == 200 and name == "ok":
                    self.times.append(took)
                if self.mark and self.done % self.tenth == 0:
                    self.mark()
            if name == "ok":
                n += 1
                if n % CONTROL_EVERY == 0:
                    took = control()
                    with self.lock:
                        self.controls.append(took)
            if status != 200:
                time.sleep(0.2 if status == 0 else 0.05)
            elif self.pause:
                time.sleep(rng.uniform(0, 2 * self.pause))

    def judge(self, client, name, check, status, answer):
        if status == 200:
            self.counts[name] = self.counts.get(name, 0) + 1
            try:
                good = check(answer)
            except (KeyError, TypeError):
                good = False
            # In a storm a killed execution is reported as killed, never as another end.
            if not good and (self.strict or answer["success"]):
                self.wrong.append((name, answer))
            return
        code = answer["error"]["code"] if isinstance(answer, dict) else ""
        if status == 429 or not self.strict and (status in RETRYABLE or status == 409 and name == "session"):
            if status in (429, 503) and "retry-after" not in client.headers:
                self.wrong.append((name, status, "without Retry-After", answer))
            key = "%d %s" % (status, code) if status else "cut"
            self.refused[key] = self.refused.get(key, 0) + 1
        else:
            self.wrong.append((name, status, answer))
