# SPDX-License-Identifier: Apache-2.0
"""named.py - A named sandbox of `caisson serve`, for its owner, and from outside."""
import contextlib
import json
import os
from urllib.parse import quote

from process import status_of, unique
from lib import payload
from cell_lib import nonce, processes_with, until
from snapshot import stat_of

V1 = "/v1/sandboxes"
BIN = "/workspace/bin"


class Box:
    """Use as a context: it is removed afterwards, unless the test did so."""

    def __init__(self, d, name=None, token=True, **spec):
        self.daemon, self.name, self.token = d, name or unique("box"), token
        self.url = f"{V1}/{self.name}"
        r = d.request("POST", V1, {"name": self.name, **spec}, token=token)
        assert r.status == 201, r

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.daemon.p.poll() is None:
            self.remove()

    def remove(self):
        return self.daemon.request("DELETE", self.url, token=self.token).status

    def request(self, method, path, body=None, **how):
        return self.daemon.request(method, self.url + path, body, token=self.token, **how)

    def _run(self, what, body):
        r = self.request("POST", what, body)
        assert r.status == 200, r
        return r.json

    def exec(self, cmd, *args, **fields):
        return self._run("/exec", {"cmd": cmd, "args": [str(a) for a in args], **fields})

    def shell(self, script, **fields):
        return self._run("/shell", {"script": script, **fields})

    def execute(self, code, **fields):
        return self._run("/execute", {"code": code, **fields})

    def start(self, cmd, *args, **fields):
        """Start a process in the background; returns its id."""
        r = self.request("POST", "/processes", {"cmd": cmd, "args": [str(a) for a in args], **fields})
        assert r.status == 201, r
        return r.json["process_id"]

    def about(self):
        return self.request("GET", "").json

    def put(self, path, data, **query):
        more = "".join(f"&{k}={v}" for k, v in query.items())
        r = self.request("PUT", f"/files?path={quote(path)}&parents=true{more}", data)
        assert r.status in (200, 201), r

    def payload(self, name):
        """Upload a payload; its path in the sandbox."""
        self.put(f"{BIN}/{name}", payload(name).read_bytes(), mode="755")
        return f"{BIN}/{name}"

    # -- from outside --

    def find(self):
        """A process that sleeps in it: (host pid, nonce in its arguments)."""
        n = nonce()
        self.start("python3", "-c", "import time; time.sleep(1000)", n)
        return until(lambda: processes_with(n), 20, "a process in the sandbox").pop(), n

    def init(self, pid=None):
        """Host pid of its pid 1, by the pid namespace of one of its processes."""
        pid = pid or self.find()[0]
        space = os.readlink(f"/proc/{pid}/ns/pid")
        for p in self.daemon.cells():
            with contextlib.suppress(OSError):
                if os.readlink(f"/proc/{p}/ns/pid") == space:
                    return p
        raise AssertionError(f"no cell for process {pid}")

    def uid(self, pid):
        return int(status_of(pid)["Uid"].split()[0])

    def guests(self, space):
        """Host pids of everything in the pid namespace @space that is alive."""
        found = set()
        for d in os.listdir("/proc"):
            if d.isdigit():
                with contextlib.suppress(OSError):
                    if os.readlink(f"/proc/{d}/ns/pid") == space and (s := stat_of(d)) and s[1] != "Z":
                        found.add(int(d))
        return found


def starts(pids):
    """{pid: start time}: equal later if they are the same processes, and alive."""
    return {p: s[3] for p in pids if (s := stat_of(p)) and s[1] != "Z"}


def ours(d):
    """Host pids of the serving processes: front, warden, zygote."""
    return [d.pid, d.warden, d.zygote]


def routes(d):
    """[(method, path, [body fields], [query fields])] of the whole API, from its own description."""
    document = json.loads(d.request("GET", "/openapi.json").body)
    found = []
    for path, item in document["paths"].items():
        for method, op in item.items():
            if method in ("get", "put", "post", "delete"):
                schema = op.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema", {})
                schema = document["components"]["schemas"].get(schema.get("$ref", "").rpartition("/")[2], schema)
                query = {p["name"]: p["schema"] for p in op.get("parameters", []) if p["in"] == "query"}
                found.append((method.upper(), path, schema.get("properties", {}), query))
    return found
