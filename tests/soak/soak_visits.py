# SPDX-License-Identifier: Apache-2.0
"""soak_visits.py - Whole lives of sandboxes, while processes of the daemon are killed: made, uploaded to, streamed from, read, removed.

Each visitor makes a sandbox, puts a file, reads it, takes an archive, follows a stream, and removes it; it repeats a request when the
answer asks for it. It checks the daemon against its earlier answers: a sandbox whose creation was answered exists, running or not, until
its removal is requested, and then it does not; a file is whole, as after the last answered upload or an interrupted one, or an error; a
stream with `done` is complete. The outcomes of each step are counted.
"""
import http.client
import io
import json
import random
import tarfile
import threading
import time

AGAIN = (0, 429, 502, 503, 504)
GONE = 409          # lost or stopped, and reported as such
PATIENCE = 120      # seconds for one step; a daemon is back in two
FILE = "dir/file"
LINES = 5000


class Visitor:
    def __init__(self, port, number, seed):
        self.port, self.number, self.rng = port, number, random.Random(seed)
        self.c = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        self.counts, self.wrong, self.over = {}, [], False
        self.name, self.maybe = "", set()   # the permitted contents of the file; None: it may be missing
        self.thread = threading.Thread(target=self.work, daemon=True)

    def once(self, method, path, body=None, headers=None):
        """(status, bytes); status 0 for a connection that was refused or cut."""
        try:
            self.c.request(method, path, body, headers or {})
            r = self.c.getresponse()
            return r.status, r.read()
        except (OSError, http.client.HTTPException):
            self.c.close()
            return 0, b""

    def ask(self, step, method, path, body=None, headers=None, known=()):
        """Repeat until there is an answer. None: the sandbox is over, as far as the answers show."""
        until = time.monotonic() + PATIENCE
        while True:
            status, data = self.once(method, path, body, headers)
            self.counts["%s %s" % (step, status or "cut")] = self.counts.get("%s %s" % (step, status or "cut"), 0) + 1
            if status not in AGAIN or self.over:
                break
            if time.monotonic() > until:
                self.wrong.append("%s: no answer to %s for %d s, the last was %s %r" % (self.name, step, PATIENCE, status, data[:300]))
                return None
            time.sleep(0.1)
        if status == GONE or self.over:
            return None
        if status == 404 and step in ("download", "archive") and self.replaced():
            return None  # its files went with its cell
        if not 200 <= status < 300 and status not in known:
            self.wrong.append("%s: %s was answered with %d %r" % (self.name, step, status, data[:300]))
            return None
        return status, data

    def replaced(self):
        """Whether the sandbox reports another cell than it began with: its init was killed."""
        status, data = self.once("GET", self.url)
        self.counts["replaced"] = self.counts.get("replaced", 0) + 1
        return status == 200 and json.loads(data)["epoch"] > 0

    @property
    def url(self):
        return "/v1/sandboxes/" + self.name

    def upload(self):
        new = self.rng.randbytes(self.rng.choice([1, 4096, 1 << 20]))
        self.maybe.add(new)  # it may exist from now on, also if the answer never arrives
        done = self.ask("upload", "PUT", self.url + "/files?parents=true&path=" + FILE, new, {"Content-Type": "application/octet-stream"})
        if done:
            self.maybe = {new}
        return done

    def is_known(self, data, where):
        if data not in self.maybe:
            self.wrong.append("%s: %s has %d bytes that nobody put there" % (self.name, where, len(data)))

    def download(self):
        r = self.ask("download", "GET", self.url + "/files?path=" + FILE)
        if r:
            self.is_known(r[1], "the file")
        return r

    def archive(self):
        r = self.ask("archive", "GET", self.url + "/files/tar?path=dir")
        if r:
            with tarfile.open(fileobj=io.BytesIO(r[1])) as t:
                self.is_known(next(t.extractfile(m).read() for m in t.getmembers() if m.name.endswith("file")), "the archive")
        return r

    def stream(self):
        r = self.ask("stream", "POST", self.url + "/exec", json.dumps({"cmd": "seq", "args": [str(LINES)], "timeout": 60}),
                     {"Content-Type": "application/json", "Accept": "application/x-ndjson"})
        if not r:
            return None
        events = [json.loads(line) for line in r[1].splitlines()]
        out = "".join(e["data"] for e in events if e["type"] == "stdout")
        if events[-1]["type"] == "done" and events[-1]["ok"] and out != "".join("%d\n" % i for i in range(1, LINES + 1)):
            self.wrong.append("%s: a stream that was done had %d bytes" % (self.name, len(out)))
        return r

    def visit(self, n):
        self.name, self.maybe = "visit-%d-%d" % (self.number, n), set()
        if self.ask("create", "POST", "/v1/sandboxes", json.dumps({"name": self.name}), {"Content-Type": "application/json"}):
            steps = [self.upload, self.download, self.archive, self.upload, self.stream, self.download]
            while steps and steps[0]() and not self.over:
                steps.pop(0)
            r = self.ask("look", "GET", self.url)
            if r and json.loads(r[1])["state"] not in ("running", "idle", "busy", "stopped", "lost", "creating"):
                self.wrong.append("%s: %r" % (self.name, r[1]))
        # 404: it was cut off after it was done.
        if self.ask("remove", "DELETE", self.url, known=(404,)):
            r = self.ask("look after", "GET", self.url, known=(404,))
            if r and r[0] != 404:
                self.wrong.append("%s is there after its removal: %r" % (self.name, r[1]))

    def work(self):
        n = 0
        while not self.over:
            self.visit(n)
            n += 1
            time.sleep(self.rng.uniform(0, 0.2))


class Visits:
    def __init__(self, port, many, seed):
        self.all = [Visitor(port, i, seed + i) for i in range(many)]

    def start(self):
        for v in self.all:
            v.thread.start()

    def stop(self):
        """(counts, errors). Removes the sandboxes."""
        counts, wrong = {}, []
        for v in self.all:
            v.over = True
        for v in self.all:
            v.thread.join(PATIENCE)
            v.once("DELETE", v.url)
            wrong += v.wrong + (["a visitor hangs"] if v.thread.is_alive() else [])
            for k, n in v.counts.items():
                counts[k] = counts.get(k, 0) + n
        return dict(sorted(counts.items())), wrong
