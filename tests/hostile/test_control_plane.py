# SPDX-License-Identifier: Apache-2.0
"""test_control_plane.py - The API, beyond test_serve_*.py: races, abusive values, access to the API, and information in answers."""
import contextlib
import http.client
import json
import os
import random
import secrets
import signal
import socket
import subprocess
import threading
import time
from urllib.parse import quote

import daemon_lib
import pytest
from daemon_lib import CEILING, PYTHON, Daemon, Watch
from process import Later, unique
from lib import CAISSON, EXACT, ROOT, Canary, host_env, landed, session
from cell_lib import USER, host, nonce, processes_with, read, until
from named import V1, Box, ours, routes, starts
from snapshot import OWN_PREFIX, listening, stat_of

daemon, hostile_test, whole_module = daemon_lib.two_owners, daemon_lib.hostile_test, daemon_lib.whole_module
quick = pytest.mark.quick
slow = pytest.mark.slow
ALICE, BOB = daemon_lib.ALICE, daemon_lib.BOB


def leaks(d, r):
    """Facts about the host, or of another owner, in an answer."""
    words = [str(session().dir), str(d.state), str(CAISSON.parent), str(ROOT), ALICE, BOB, session().nonce, "src/front", ".c:"]
    text = r.body.decode("utf-8", "replace") + str(r.headers)
    return [w for w in words if w in text]


def verify(d):
    """The ledger is whole; its events."""
    v = subprocess.run([str(CAISSON), "audit", "verify", "--state", str(d.state)], capture_output=True, timeout=60, env=host_env(), check=False)
    assert v.returncode == 0, v
    lines = [json.loads(x) for f in sorted((d.state / "ledger").glob("*.jsonl")) for x in f.read_text().splitlines()]
    return sorted(lines, key=lambda x: x["seq"])


# ---- guessing from everywhere ------------------------------------------------------------------------------------------

@pytest.mark.parametrize("addresses", [pytest.param(300, marks=quick), pytest.param(10000, marks=slow)])
def test_guesses_from_many_addresses(daemon, addresses, stopped_by):
    """More addresses than the limiter has room for, on every kind of route: memory is bounded, no guess succeeds, and the owner is served."""
    routes_tried = [("GET", V1), ("POST", "/execute"), ("GET", f"{V1}/x"), ("DELETE", f"{V1}/x"), ("GET", "/metrics"), ("PUT", f"{V1}/x/files?path=a")]
    before, count = daemon.rss(), daemon.executions()
    answers = {}
    for i in range(addresses):
        method, path = routes_tried[i % len(routes_tried)]
        r = daemon.request(method, path, {"code": "1"} if method == "POST" else None, {"Authorization": "Bearer " + secrets.token_hex(32)}, token=False,
                           source=f"127.{1 + i // 60000}.{1 + i // 240 % 240}.{1 + i % 240}")
        answers[r.status] = answers.get(r.status, 0) + 1
    landed(answers.get(401, 0) >= addresses * 9 // 10, answers)
    assert set(answers) <= {401, 429}, answers
    assert daemon.rss() - before < 8 << 20, f"{(daemon.rss() - before) >> 10} KiB more"
    assert daemon.executions() == count and daemon.good() < 20
    stopped_by("a table of fixed size; 256-bit tokens")


# ---- clients that leave, in named sandboxes ------------------------------------------------------------------------------

def open_descriptors(d):
    """How many the front has when nothing comes or goes."""
    until(d.ready, 30, "a full pool")        # ready kernels have descriptors too
    seen = []
    until(lambda: seen.append(d.descriptors()) or len(seen) > 20 and len(set(seen[-20:])) == 1, 10, "a front at rest")
    return seen[-1]


# A stream may be taken up again for a minute, so long is its command left alone.
@pytest.mark.parametrize("what", daemon_lib.some_quick(("exec", "stream", "upload", "download", "wait", "watch"), "exec", "upload", "download", "wait", "watch"))
def test_client_of_a_named_sandbox_leaves(daemon, what, stopped_by):
    """In the middle of a command, a stream, a transfer, a wait: the command ends, nothing is kept for the client, the sandbox is as before."""
    n = nonce()
    script = f"exec python3 -c 'import time; time.sleep(100)' {n}"
    with Box(daemon) as box:
        box.execute("x = 5")
        box.put("big", bytes(6 << 20))
        p = box.start("sleep", "1000")
        fds = open_descriptors(daemon)
        body = json.dumps({"script": script, **({"stream": True} if what == "stream" else {})}).encode()
        head = {"exec": ("POST", "/shell", body, len(body)), "stream": ("POST", "/shell", body, len(body)),
                "upload": ("PUT", "/files?path=up", b"x" * 100000, 6 << 20), "download": ("GET", "/files?path=big", b"", 0),
                "wait": ("POST", f"/processes/{p}/wait", b'{"timeout": 60}', 15), "watch": ("GET", "/files/watch?path=.", b"", 0)}[what]
        for how in ("close", "reset"):
            with daemon.connect() as s:
                s.sendall(f"{head[0]} {box.url}{head[1]} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {ALICE}\r\n"
                          f"Content-Type: application/json\r\nContent-Length: {head[3]}\r\n\r\n".encode() + head[2])
                if what in ("exec", "stream"):
                    landed(until(lambda: processes_with(n), 10, "the command"), "it runs")
                elif what == "download":
                    assert s.recv(100)
                else:
                    until(lambda: daemon.descriptors() > fds, 5, "the connection")
                if how == "reset":
                    s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
            if what in ("exec", "stream"):
                until(lambda: not processes_with(n), 90 if what == "stream" else 10, "the end of the command")
        until(lambda: daemon.descriptors() <= fds, 10, "no descriptor more than before")
        assert box.execute("x")["result"]["text/plain"] == "5" and box.about()["epoch"] == 0
        names = [e["name"] for e in box.request("GET", "/files/list?path=.").json["entries"]]
        assert "up" not in names and not [x for x in names if "caisson" in x], names
    stopped_by("a hang-up is noticed")


# ---- races -----------------------------------------------------------------------------------------------------------------

def together(calls):
    """All at once; their results, in order."""
    gate = threading.Barrier(len(calls))

    def one(call):
        gate.wait(30)
        return call()

    return [t.result() for t in [Later(lambda c=c: one(c)) for c in calls]]


@quick
def test_done_exactly_once(daemon, stopped_by):
    """A key at once from many: done once, and answered alike; a create of one name: made once; a removal: one of them did it."""
    with Box(daemon) as box:
        together([lambda: box.shell("echo x >> /workspace/count")] * 4)
        landed(box.shell("wc -l < /workspace/count")["stdout"] == "4\n", "without a key it is done each time")
        for road, body in (("/shell", {"script": "echo y >> /workspace/once; sleep 0.05; head -c8 /dev/urandom | od -An -tx1"}),
                           ("/exec", {"cmd": "sh", "args": ["-c", "echo y >> /workspace/once; sleep 0.05; head -c8 /dev/urandom | od -An -tx1"]})):
            key = {"Idempotency-Key": secrets.token_hex(8)}
            box.shell("rm -f /workspace/once")
            answers = together([lambda road=road, body=body, key=key: box.request("POST", road, body, headers=key)] * 12)
            answers.append(box.request("POST", road, body, headers=key))
            assert {r.status for r in answers} <= {200, 409}, answers
            done = {r.body for r in answers if r.status == 200}
            assert len(done) == 1 and box.shell("wc -l < /workspace/once")["stdout"] == "1\n", (road, done)
            other = daemon.request("POST", f"{box.url}{road}", {**body, "timeout": 7}, key)
            assert other.status in (409, 422) and other.code, other
    for i in range(8):
        name, key = unique("race"), {"Idempotency-Key": secrets.token_hex(8)}
        spec = {"name": name, **({"memory_mib": 100 + i} if i % 2 else {})}      # limits of its own: all of them wait for one cell
        made = together([lambda spec=spec: daemon.request("POST", V1, spec)] * 8)
        assert sorted(r.status for r in made) == [200] * 7 + [201], made
        assert len({r.json["created_at"] for r in made}) == 1
        gone = together([lambda name=name: daemon.request("DELETE", f"{V1}/{name}")] * 8)
        assert sorted(r.status for r in gone)[0] == 204 and {r.status for r in gone} <= {204, 404, 409}, gone
        assert daemon.request("GET", f"{V1}/{name}").status == 404
        made = together([lambda name=name, key=key: daemon.request("POST", V1, {"name": name}, key)] * 6)
        assert {r.status for r in made} <= {200, 201, 409} and len({r.body for r in made if r.status == 201}) == 1, made
        daemon.request("DELETE", f"{V1}/{name}")
    stopped_by("one thread; keys are noted before the work")


@quick
def test_sandbox_ended_before_it_is_made(daemon, stopped_by):
    """Killed, stopped or removed while its first cell is being made: both requests get an error, nothing is left, and the daemon lives."""
    seen = set()
    for i in range(200 if EXACT else 40):
        name = unique("early")
        end = [("POST", "/kill"), ("POST", "/stop"), ("DELETE", "")][i % 3]

        def early(name=name, end=end):
            # Wait for the name; its cell does not exist yet.
            return until(lambda: (r := daemon.request(end[0], f"{V1}/{name}{end[1]}", {"grace_seconds": 0} if end[1] == "/stop" else {} if end[1] else None)).status != 404 and r, 10, "a name")

        made, ended = together([lambda name=name: daemon.request("POST", V1, {"name": name, "memory_mib": 100 + i % 50}), early])
        assert made.status in (201, 409) and ended.status in (200, 202, 204, 409), (made, ended)
        seen.add((made.status, end[1]))
        state = daemon.request("GET", f"{V1}/{name}")
        assert state.status == 404 or state.json["state"] == "stopped", state
        assert daemon.request("DELETE", f"{V1}/{name}").status in (204, 404)
    landed(409 in {s for s, _ in seen}, f"some were early enough: {seen}")
    stopped_by("who gives a name up, gives it up once")


ACTIONS = {
    "create": lambda d, u, r: d.request("POST", V1, {"name": u.rpartition("/")[2], **({"memory_mib": 128} if r.random() < 0.2 else {})}),
    "delete": lambda d, u, r: d.request("DELETE", u),
    "get": lambda d, u, r: d.request("GET", u),
    "list": lambda d, u, r: d.request("GET", V1),
    "exec": lambda d, u, r: d.request("POST", u + "/exec", {"cmd": "echo", "args": ["x"]}),
    "execute": lambda d, u, r: d.request("POST", u + "/execute", {"code": "import time; time.sleep(0.02); 1"}),
    "session": lambda d, u, r: d.request("POST", "/execute", {"code": "1", "session_id": u.rpartition("/")[2]}),
    "sleep": lambda d, u, r: d.request("POST", u + "/shell", {"script": "sleep 0.3"}),
    "process": lambda d, u, r: d.request("POST", u + "/processes", {"cmd": "sleep", "args": ["100"]}),
    "stop": lambda d, u, r: d.request("POST", u + "/stop", {"grace_seconds": 0}),
    "kill": lambda d, u, r: d.request("POST", u + "/kill", {}),
    "interrupt": lambda d, u, r: d.request("POST", u + "/interrupt", {}),
    "extend": lambda d, u, r: d.request("POST", u + "/extend", {"seconds": r.randrange(1, 1000)}),
    "put": lambda d, u, r: d.request("PUT", u + "/files?path=f", os.urandom(1000)),
    "read": lambda d, u, r: d.request("GET", u + "/files?path=f"),
    "files": lambda d, u, r: d.request("GET", u + "/files/list"),
    "logs": lambda d, u, r: d.request("GET", u + "/logs"),
    "leave": lambda d, u, r: d.raw(f"POST {u}/shell HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {ALICE}\r\nContent-Type: application/json\r\n"
                                   "Content-Length: 25\r\n\r\n{\"script\":  \"sleep 0.2\"  }".encode(), 0.01, answered=False),
}


def storm(d, threads, seconds, seed):
    """Anything at any time, on three names. {(action, status): count}."""
    urls = [f"{V1}/{unique('storm')}" for _ in range(18)]
    end, counts, lock = time.monotonic() + seconds, {}, threading.Lock()

    def one(i):
        rnd = random.Random(f"{seed}-{i}")
        while time.monotonic() < end:
            action = rnd.choice(list(ACTIONS))
            r = ACTIONS[action](d, rnd.choice(urls), rnd)
            with lock:
                key = action, getattr(r, "status", 0)
                counts[key] = counts.get(key, 0) + 1
                if key[1] >= 400 and r.status != 0:
                    assert r.code, r

    for t in [Later(lambda i=i: one(i)) for i in range(threads)]:
        t.result(seconds + 60)
    for u in urls:
        d.request("DELETE", u)
    return counts


@pytest.mark.parametrize("seconds", [pytest.param(3, marks=quick), pytest.param(100, marks=slow)])
def test_every_operation_at_once(daemon, seconds, stopped_by):
    """Create, use, stop, kill and remove the same names from twelve sides: a clean answer each time, nothing is left, the ledger agrees."""
    seed = secrets.token_hex(4)
    print("seed", seed)
    begin = verify(daemon)[-1]["seq"]
    with Watch(daemon) as w:
        counts = storm(daemon, 12, seconds, seed)
    w.check(CEILING)
    landed(len({a for a, _ in counts}) == len(ACTIONS) and sum(counts.values()) > 100, counts)
    # 503 with Retry-After is for a file call whose process was killed.
    bad = {k: v for k, v in counts.items() if k[1] not in (0, 200, 201, 202, 204, 404, 409, 429) and k not in [(a, 503) for a in ("put", "read", "files")]}
    assert not bad, f"seed {seed}: {bad}"
    landed({200, 404, 409} <= {s for _, s in counts}, "they met")
    daemon.quiet()
    events = [e for e in verify(daemon) if e["seq"] > begin]
    began = {e["id"] for e in events if e["event"].endswith(".begin")}
    ended = [e["id"] for e in events if e["event"].endswith(".end")]
    assert set(ended) == began and len(ended) == len(set(ended)), f"{len(began)} begun, {len(ended)} ended"
    stopped_by("one thread; every step is written down first")


# ---- fields that abuse ------------------------------------------------------------------------------------------------------

def kinds(schema):
    t = schema.get("type", "string")
    return t if isinstance(t, list) else [t]


def wrong_values(schema):
    """Values that this field cannot have."""
    t = kinds(schema)
    out = []
    if "string" in t:
        out += [7, True, [], {}, ["x"], 1.5]
        out += ["x" * (schema["maxLength"] + 1)] if schema.get("maxLength", 1 << 30) < 100000 else []
        out += [""] if schema.get("minLength") else []
        out += ["\n", "a b", "-x", "../x", "x/y", "\u202ex", "x\x00"] if "pattern" in schema else []
    if "integer" in t:
        out += ["1", "", True, 1.5, [], {}, -1, -(1 << 63), (1 << 63), (1 << 64) + 1, 10 ** 400, 1e308]
        out += [schema["maximum"] + 1] if "maximum" in schema else []
        out += [schema["minimum"] - 1] if "minimum" in schema else []
    if "number" in t:
        out += ["1", "", True, [], {}, -1, 1e308, 10 ** 400]
        out += [0, -0.0] if schema.get("minimum", 1) > 0 else []
    if "boolean" in t:
        out += ["true", 1, 0, "", [], {}]
    if "array" in t:
        out += ["x", 7, {}, [7], [None], [["x"]], ["\x00"], True]
    if "object" in t:
        out += ["x", 7, [], {"A": 7}, {"A": None}, {"A": {}}, {"A\x00": "x"}, {"A": "\x00"}, True]
    return out


GOOD = {"cmd": "true", "script": "true", "code": "1", "seconds": 60, "data": "x", "from": "a", "to": "b", "path": "a", "name": "abused-new",
        "package": "x", "packages": ["x"], "decision": "approve"}


def filled(path, box, **ids):
    for key, value in {"name": box.name, "session_id": box.name, "execution_id": "0" * 32, "process_id": "0" * 32, "asset": "x", **ids}.items():
        path = path.replace("{%s}" % key, value)
    return path


def plain_posts(d):
    """Routes that take JSON, and what they take."""
    return [(m, p, f) for m, p, f, _ in routes(d) if f and m == "POST" and "mcp" not in p]


@quick
def test_invalid_values_of_every_field(daemon, stopped_by):
    """Every field of every body with values that it cannot have, and fields that do not exist: refused by name, and nothing happens."""
    tried, wrong = 0, []
    with Box(daemon) as box:
        p = box.start("sleep", "1000")
        before, epoch = daemon.executions(), box.about()
        for method, path, fields in plain_posts(daemon):
            base = {k: GOOD[k] for k in fields if k in GOOD}
            url = filled(path, box, process_id=p)
            cases = [(k, v) for k, schema in fields.items() for v in wrong_values(schema)]
            cases += [("env", v) for v in ({"": "x"}, {"A=B": "x"}, {"=": "x"}) if "env" in fields]
            cases += [("labels", {"k": "v" * 70000}), ("labels", {"\x01" * 200: "\x02" * 12000})] if "labels" in fields else []
            cases += [(k, v) for k in ("user", "uid", "owner", "privileged", "without", "mounts", "__proto__", "Code", "code ") for v in ("0", "root")]
            for key, value in cases:
                r = daemon.request(method, url, {**base, key: value})
                tried += 1
                # A path may be any text; a number beyond int or float may be refused as invalid JSON.
                if not 400 <= r.status < 500 or not r.code or leaks(daemon, r):
                    wrong.append((path, key, str(value)[:50], r.status, r.body[:150], leaks(daemon, r)))
                elif r.status == 422 and key in fields and r.json["error"].get("field", "").split(".")[0].split("[")[0] not in (key, ""):
                    wrong.append((path, key, str(value)[:50], r.body[:200]))
        assert not wrong, f"{len(wrong)} of {tried}:\n" + "\n".join(map(str, wrong[:20]))
        landed(tried > 600, tried)
        assert daemon.executions() == before, "something was run"
        assert box.about()["epoch"] == epoch["epoch"] and box.about()["executions"] == epoch["executions"]
        assert box.request("GET", f"/processes/{p}").json["state"] == "running"
        assert daemon.request("GET", f"{V1}/abused-new").status == 404, "a sandbox was made"
    stopped_by("strict schemas")


@quick
def test_limits_and_environment_beyond_bounds(daemon, stopped_by):
    """More than the machine has, raw NaN, numbers of a thousand digits, an environment or a directory that would mean something to a host."""
    pages = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") >> 20
    for field, value in (("memory_mib", pages + 1), ("cpus", os.cpu_count() + 1), ("pids", 32769), ("memory_mib", 1 << 53), ("disk_mib", 1 << 21)):
        r = daemon.request("POST", V1, {"name": "abused-new", field: value})
        assert r.status == 422 and r.json["error"]["field"] == field, r
    for raw in (b"NaN", b"Infinity", b"-Infinity", b"1e999", b"9" * 1000, b"0x10", b"01", b"1_000", b"+1", b".5", b"1."):
        r = daemon.request("POST", V1, b'{"name": "abused-new", "cpus": ' + raw + b"}")
        assert r.status in (400, 422) and r.code, (raw, r)
    with Canary() as canary, Box(daemon) as box:
        marks = {"LD_PRELOAD": "/workspace/evil.so", "LD_LIBRARY_PATH": "/workspace", "PYTHONPATH": "/workspace", "BASH_ENV": "/workspace/e.sh",
                 "PATH": "/workspace", "GCONV_PATH": "/workspace", "MALLOC_PERTURB_": "1", "PYTHONSTARTUP": "/workspace/p.py"}
        inside, _ = box.find()
        init, same = box.init(inside), starts([*ours(daemon)])
        box.put("evil.so", b"\x7fELF not really")
        box.put("e.sh", b"echo planted")
        r = box.exec("/usr/bin/env", env=marks)
        assert r["status"] in ("ok", "nonzero") or r["exit_code"] == 127, r
        for env in ({"A=B": "x"}, {"A": "x\0y"}, {"": "x"}):
            r = box.request("POST", "/exec", {"cmd": "true", "env": env})
            assert r.status == 422 and r.code, r
        for pid in (init, *ours(daemon)):
            assert "/workspace/evil.so" not in read(f"/proc/{pid}/environ"), "a command has the environment of another"
        file = next(iter(canary.files))
        out = []
        for cwd in ("/proc/self/fd/3", "/proc/self/fd/7", "/proc/1/root", "/proc/1/cwd", "../../../../../..", "/proc/self/root/..", "/dev/fd/9", "//",
                    os.path.dirname(file), str(session().dir)):
            r = box.request("POST", "/exec", {"cmd": "sh", "args": ["-c", f"cat .{file} ./{os.path.basename(file)} ..{file}; pwd"], "cwd": cwd})
            assert r.status in (200, 404, 409, 422), r
            assert not leaks(daemon, r) or cwd == str(session().dir), r
            out.append(r.body)
        canary.check(*out)
        assert starts(same) == same
    stopped_by("strict schemas", "commands live in the cell")


# ---- shell metacharacters -------------------------------------------------------------------------------------------------

@quick
def test_no_shell_on_the_host(daemon, stopped_by):
    """$(touch ...) and its like in every string of every route, in names, paths, queries and headers: nothing on the host runs it."""
    mark = f"/tmp/{OWN_PREFIX}touched-{secrets.token_hex(6)}"
    evil = f"x;touch {mark};`touch {mark}`$(touch {mark})|touch {mark}&&touch {mark}\n touch {mark}\n'\";touch {mark};#"
    c = host(["/bin/sh", "-c", "eval \"echo $1\"", "sh", evil])
    landed(os.path.exists(mark), c)
    os.unlink(mark)
    with Box(daemon) as box:
        landed(box.exec("echo", evil)["stdout"] == evil + "\n", "an argument is what it is")
        tried = 0
        for method, path, fields, query in routes(daemon):
            if "mcp" in path or path.endswith(("/stop", "/kill")) or (method == "DELETE" and path.endswith("{name}")):
                continue
            base = {k: GOOD[k] for k in fields if k in GOOD}
            urls = [(filled(path, box), {**base, k: [evil] if "array" in kinds(s) else {evil.replace("=", ""): evil} if "object" in kinds(s) else evil})
                    for k, s in fields.items() if {"string", "array", "object"} & set(kinds(s))]
            urls += [(filled(path, box) + f"?{k}={quote(evil)}", base or None) for k in query]
            urls += [(path.replace("{%s}" % k, quote(evil, safe="")), base or None) for k in ("name", "session_id", "execution_id", "process_id", "asset")
                     if "{%s}" % k in path]
            for url, body in urls:
                if "watch" in url or "attach" in url:
                    continue
                body = b"x" if method == "PUT" else body if method == "POST" else None
                r = daemon.request(method, filled(url, box), body, {"Idempotency-Key": quote(evil), "User-Agent": quote(evil)})
                assert r.status != 500 and not leaks(daemon, r), r
                tried += 1
        for name in list(daemon.sessions()):
            if name != box.name:
                daemon.end_session(name)
    landed(tried > 80, tried)
    assert not os.path.exists(mark), "ESCAPE: a shell on the host read a client's text"
    stopped_by("arguments are passed, never a host's shell")


# ---- a crowd ---------------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("count", [pytest.param(60, marks=quick), pytest.param(1000, marks=slow)])
def test_crowd_of_clients(count, stopped_by):
    """Many clients create, read, run and remove at once, beyond the limits: each is served or gets a time to retry; no deadlock, nothing left."""
    signal.alarm(600)
    with Daemon("--max-sandboxes", 40, "--pool", 4) as d:
        same = starts(ours(d))
        statuses, lock = {}, threading.Lock()
        names = iter([unique("crowd") for _ in range(count)])

        def worker():
            while True:
                with lock:
                    name = next(names, None)
                if name is None:
                    return
                url, seen = f"{V1}/{name}", []
                r = d.request("POST", V1, {"name": name})
                seen.append(("create", r.status))
                if r.status == 429:
                    assert int(r.headers["retry-after"]) >= 1 and r.code, r
                for what, call in (("get", lambda: d.request("GET", url)), ("exec", lambda: d.request("POST", url + "/exec", {"cmd": "echo", "args": [name]})),
                                   ("list", lambda: d.request("GET", V1)), ("delete", lambda: d.request("DELETE", url))):
                    r = call()
                    seen.append((what, r.status))
                    if what == "exec" and r.status == 200:
                        assert r.json["stdout"] == name + "\n", "the answer of another request"
                with lock:
                    for s in seen:
                        statuses[s] = statuses.get(s, 0) + 1

        with Watch(d) as w:
            for t in [Later(worker) for _ in range(60)]:
                t.result(500)
        w.check(CEILING + (64 << 20))
        landed(statuses.get(("create", 201), 0) >= min(count // 4, 40), statuses)
        assert {s for _, s in statuses} <= {200, 201, 204, 404, 409, 429, 503}, statuses
        assert statuses.get(("create", 201)) == statuses.get(("delete", 204)), statuses
        assert starts(same) == same
        d.quiet(30)
    stopped_by("admission: 429 and Retry-After")


# ---- one owner takes everything ---------------------------------------------------------------------------------------------

class Mcp:
    """A legacy client of the protocol on one connection."""

    def __init__(self, d, token):
        self.daemon, self.token, self.session = d, token, None
        self.connection = http.client.HTTPConnection("127.0.0.1", d.port, timeout=60)

    def send(self, http_method, body=None, accept="application/json, text/event-stream"):
        head = {"Authorization": "Bearer " + self.token, "Content-Type": "application/json", "Accept": accept}
        if self.session:
            head |= {"Mcp-Session-Id": self.session, "MCP-Protocol-Version": "2025-11-25"}
        self.connection.request(http_method, "/mcp", body and json.dumps(body), head)
        return self.connection.getresponse()

    def call(self, method, **params):
        """The status and the message."""
        r = self.send("POST", {"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
        return r.status, json.loads(r.read())

    def initialize(self):
        """The status; then the client has this session."""
        self.session = None
        r = self.send("POST", {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
            "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}})
        r.read()
        self.session = r.headers.get("Mcp-Session-Id")
        return r.status

    def end(self):
        self.send("DELETE").read()
        self.connection.close()


MCP_SESSIONS, MCP_SESSIONS_OWNER = 1024, 256  # src/front/mcp/mcp.h
NOTEBOOKS, NOTEBOOKS_OWNER = 4096, 512        # src/front/jupyter/handle_notebooks.c
WATCHES, WATCHES_OWNER = 256, 32              # src/front/mcp/watch.c


@quick
def test_mcp_sessions_of_one_owner(daemon, stopped_by):
    """An owner who begins more sessions than the daemon has leaves room for others, and keeps the sessions in use."""
    listens, first, many, bob = (Mcp(daemon, t) for t in (ALICE, ALICE, ALICE, BOB))
    assert listens.initialize() == first.initialize() == 200
    stream = Mcp(daemon, ALICE)
    stream.session = listens.session
    assert stream.send("GET", accept="text/event-stream").status == 200
    landed(first.call("ping")[0] == 200, "a session that nobody took")
    made = []
    for _ in range(MCP_SESSIONS):
        status = many.initialize()
        made.append(many.session)
        if status != 200:
            break
    assert bob.initialize() == 200, "the other owner has no room"
    assert status == 200 and len(made) == MCP_SESSIONS, "an idle session of one's own makes room"
    landed(first.call("ping")[0] == 404, "the session that was idle for longest has ended")
    assert listens.call("ping")[0] == 200, "a session with a stream stays"
    alive = []
    for many.session in made[-MCP_SESSIONS_OWNER:]:
        alive.append(many.call("ping")[0])
        many.send("DELETE").read()
    assert alive == [404] + [200] * (MCP_SESSIONS_OWNER - 1), "the newest, beside the one with a stream"
    stream.connection.close()
    for c in (listens, first, many, bob):
        c.end()
    stopped_by("a bound per owner; the owner's session that is idle for longest makes room")


@quick
def test_mcp_sessions_in_use_of_one_owner(daemon, stopped_by):
    """Sessions with a stream make no room: the owner is refused, with the bound, and others are not."""
    streams = []
    while len(streams) <= MCP_SESSIONS_OWNER:
        c = http.client.HTTPConnection("127.0.0.1", daemon.port, timeout=60)
        streams.append(c)
        c.request("GET", "/mcp/sse", headers={"Authorization": "Bearer " + ALICE, "Accept": "text/event-stream"})
        r = c.getresponse()
        if r.status != 200:
            break
    assert r.status == 503 and f"at most {MCP_SESSIONS_OWNER}" in r.read().decode() and len(streams) == MCP_SESSIONS_OWNER + 1
    alice, bob = Mcp(daemon, ALICE), Mcp(daemon, BOB)
    assert alice.initialize() == 503 and bob.initialize() == 200
    for c in streams:
        c.close()
    landed(until(lambda: alice.initialize() == 200), "there is room when streams end")
    alice.end()
    bob.end()
    stopped_by("a bound per owner")


@quick
def test_notebooks_of_one_owner(daemon, stopped_by):
    """An owner who makes more Jupyter sessions than the daemon has, on one kernel, leaves room for others."""
    c = http.client.HTTPConnection("127.0.0.1", daemon.port, timeout=60)

    def post(token, **body):
        c.request("POST", "/api/sessions", json.dumps(body), {"Authorization": "token " + token, "Content-Type": "application/json"})
        r = c.getresponse()
        return r.status, json.loads(r.read())

    kernels = {t: daemon.request("POST", "/api/kernels", token=t).json["id"] for t in (ALICE, BOB)}
    n = 0
    while n < NOTEBOOKS:
        status, said = post(ALICE, kernel={"id": kernels[ALICE]})
        if status != 201:
            break
        n += 1
    try:
        assert post(BOB, kernel={"id": kernels[BOB]})[0] == 201, "the other owner has no room"
        landed(n == NOTEBOOKS_OWNER, n)
        assert status == 429 and said["error"]["code"] == "too_many_sessions" and str(NOTEBOOKS_OWNER) in said["error"]["message"], said
    finally:
        for t, kernel in kernels.items():
            assert daemon.request("DELETE", "/api/kernels/" + kernel, token=t).status == 204
    c.close()
    stopped_by("a bound per owner")


@quick
def test_watches_of_one_owner(daemon, stopped_by):
    """An owner who watches more files than the daemon can leaves room for others."""
    with contextlib.ExitStack() as stack:
        boxes = [stack.enter_context(Box(daemon)) for _ in range(18)]
        other = stack.enter_context(Box(daemon, token=BOB))
        alice, bob = Mcp(daemon, ALICE), Mcp(daemon, BOB)
        assert alice.initialize() == bob.initialize() == 200
        n = 0
        while n < WATCHES:
            _, said = alice.call("resources/subscribe", uri=f"sandbox://{boxes[n % len(boxes)].name}/files/{n}")
            if "error" in said:
                break
            n += 1
        assert bob.call("resources/subscribe", uri=f"sandbox://{other.name}/files/x")[1].get("result") == {}, "the other owner has no room"
        landed(n == WATCHES_OWNER, n)
        assert f"may watch {WATCHES_OWNER}" in said["error"]["message"], said
        assert alice.call("resources/unsubscribe", uri=f"sandbox://{boxes[0].name}/files/0")[1]["result"] == {}
        assert alice.call("resources/subscribe", uri=f"sandbox://{boxes[0].name}/files/0")[1].get("result") == {}
        alice.end()
        bob.end()
    stopped_by("a bound per owner")


# ---- the API from inside -----------------------------------------------------------------------------------------------------

SCAN = """
import socket, sys
reached = []
def attempt(family, kind, address, name):
    s = socket.socket(family, kind)
    s.settimeout(0.3)
    try:
        s.connect(address)
        if kind == socket.SOCK_STREAM and s.getsockname() == s.getpeername() != '': return     # TCP met itself
        try: s.send(b'GET /health HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n')
        except BrokenPipeError: pass
        reached.append((name, s.recv(200)))
    except OSError:
        pass
    finally:
        s.close()
for port in TCP:
    for address in ADDRESSES:
        f = socket.AF_INET6 if ':' in address else socket.AF_INET
        attempt(f, socket.SOCK_STREAM, (address, port), 'tcp')
for port in UDP:
    for address in ADDRESSES:
        attempt(socket.AF_INET6 if ':' in address else socket.AF_INET, socket.SOCK_DGRAM, (address, port), 'udp')
for path in UNIX:
    for kind in (socket.SOCK_STREAM, socket.SOCK_SEQPACKET, socket.SOCK_DGRAM):
        attempt(socket.AF_UNIX, kind, path, 'unix')
print(reached)
"""


def host_addresses():
    out = subprocess.run(["hostname", "-I"], capture_output=True, check=False, timeout=5).stdout.decode().split()
    return ["127.0.0.1", "127.0.0.2", "0.0.0.0", "::1", "169.254.169.254", "10.0.2.2", "172.17.0.1", *out[:4]]


def targets(d, canary):
    """All that listens on this machine: [tcp], [udp], [unix names]."""
    tcp, udp, unix = {d.port, canary.tcp_port}, {canary.udp_port}, {str(d.unix), canary.unix_path, "\0" + canary.abstract_name}
    for what in listening().values():
        kind, _, name = what.partition(" ")
        if kind.startswith("tcp"):
            tcp.add(int(name.rpartition(":")[2], 16))
        elif kind.startswith("udp"):
            udp.add(int(name.rpartition(":")[2], 16))
        elif name != "unnamed":
            unix.add("\0" + name[1:] if name.startswith("@") else name)
    return sorted(tcp), sorted(udp), sorted(unix)


@quick
@pytest.mark.parametrize("road", ["exec", "execute"])
def test_scan_of_host_listeners_from_a_cell(daemon, road, stopped_by):
    """Every listener of the machine, on every address, by path and by abstract name, from a command and from a kernel: none is reached."""
    with Canary() as canary, Box(daemon) as box:
        tcp, udp, unix = targets(daemon, canary)
        landed(len(tcp) >= 2 and "\0" + canary.abstract_name in unix, (tcp, unix))
        few = f"TCP, UDP, UNIX = {[canary.tcp_port, daemon.port]}, {[canary.udp_port]}, {[canary.unix_path, chr(0) + canary.abstract_name]!r}\n" \
            "ADDRESSES = ['127.0.0.1']\n"
        c = host([PYTHON, "-c", few + SCAN.replace("settimeout(0.3)", "settimeout(10)")], uid=USER, unshare=(), timeout=60)
        landed({x[0] for x in eval(c.stdout)} == {"tcp", "udp", "unix"} and canary.nonce in c.stdout.decode(), c)
    with Canary() as canary, Box(daemon) as box:
        tcp, udp, unix = targets(daemon, canary)
        code = f"TCP, UDP, UNIX, ADDRESSES = {tcp!r}, {udp!r}, {unix!r}, {host_addresses()!r}\n" + SCAN
        if EXACT and road == "execute":
            code = "import itertools\n" + code.replace("for port in TCP:\n    for address in ADDRESSES:", "for port, address in itertools.chain(itertools.product("
                                                      "TCP, ADDRESSES), itertools.product(range(1, 65536), ['127.0.0.1', '::1'])):\n    if True:")
        box.put("scan.py", code.encode())
        before = len(daemon.log("request"))
        r = box.exec("python3", "/workspace/scan.py", timeout=100) if road == "exec" else box.execute(code, timeout=110)
        assert r["stdout"] == "[]\n", f"ESCAPE: {r}"
        canary.check(json.dumps(r))
        paths = [x for x in daemon.log("request")[before:] if x.get("path") == "/health"]
        assert not paths, "ESCAPE: the daemon was asked from inside"
    stopped_by("network namespace, mount namespace", "Landlock scope for abstract sockets")


# ---- what answers say --------------------------------------------------------------------------------------------------

@quick
def test_open_routes_tell_nothing(daemon, stopped_by):
    """Health, documentation and metrics contain no code, name, label or owner; metrics need a token."""
    n = [secrets.token_hex(12) for _ in range(6)]
    with Box(daemon, "box-" + n[0], env={"E": n[1]}, labels={"l": n[2]}) as box:
        box.execute(f"x = '{n[3]}'; print(x)")
        box.exec("echo", n[4], stdin=n[5])
        landed(n[0] in box.request("GET", "").body.decode() and n[2] in box.request("GET", "").body.decode(), "its owner sees it")
        for path in ("/health", "/docs", "/openapi.json", "/docs/docs.js", "/", "/metrics", "/debug", "/debug/pprof", "/status", "/version", "/.env",
                     "/server-status", "/actuator/env", "/robots.txt"):
            for token in (False, BOB):
                r = daemon.request("GET", path, token=token)
                text = r.body.decode("utf-8", "replace") + str(r.headers)
                assert not [x for x in (*n, "alice", ALICE, BOB) if x in text] and not leaks(daemon, r), (path, r)
                if not token and path not in ("/health", "/docs", "/openapi.json", "/docs/docs.js", "/"):
                    assert r.status == 401, (path, r)
    stopped_by("nothing of clients is in them")


@quick
def test_errors_tell_nothing_of_others(daemon, stopped_by):
    """Errors of every kind, about one's own and others' objects: no path of the host, no token, no name or id of another owner."""
    secret = secrets.token_hex(12)
    with Box(daemon, "box-" + secret, labels={"k": secret}) as other, Box(daemon, token=BOB) as box:
        e = other.exec("echo", secret)["execution_id"]
        p = other.start("sleep", "1000")
        mine = [secret, e, p, "alice"]
        wrong = []

        def check(r):
            text = r.body.decode("utf-8", "replace") + str(r.headers)
            found = [x for x in mine if x in text] + leaks(daemon, r)
            if found or r.status == 500:
                wrong.append((r.status, found, r.body[:300]))
            return r

        ask = box.request
        for cmd in ("/nonexistent", "/", "/etc/passwd", "/proc/1/exe", "/workspace", "x" * 4000, "./no", "\u00ff\ufffd"):
            check(ask("POST", "/exec", {"cmd": cmd}))
        for path in ("/nonexistent/x", "/proc/1/mem", "/proc/kcore", "/dev/zero", "/etc/shadow", "a/" * 2000, "/usr/x"):
            for method, route in (("GET", "/files"), ("PUT", "/files"), ("DELETE", "/files"), ("GET", "/files/list"), ("GET", "/files/tar"), ("PUT", "/files/tar"),
                                  ("GET", "/files/stat")):
                check(ask(method, f"{route}?path={quote(path)}", b"x" if method == "PUT" else None))
        for code in ("1/0", "import x", "open('/nonexistent')", "raise SystemExit(3)", "import os; os.abort()", "x = bytearray(1 << 40)", "(" * 500, "\x00"):
            check(ask("POST", "/execute", {"code": code}))
        for language in ("cobol", "../python", "", "python\x00"):
            check(ask("POST", "/execute", {"code": "1", "language": language}))
        for method, path, fields, _ in routes(daemon):
            if "{name}" in path and "mcp" not in path:
                url = filled(path, other, execution_id=e, process_id=p)
                own = filled(path, box, execution_id=e, process_id=p) if not path.endswith(("/stop", "/kill", "{name}")) else url
                for target in {url, own}:
                    r = daemon.request(method, target, {k: GOOD[k] for k in fields if k in GOOD} if method == "POST" else None, token=BOB, timeout=20) \
                        if "watch" not in target and "attach" not in target else None
                    if r is not None and r.status >= 400:
                        # An error may repeat the requested name, and nothing else.
                        r.body = r.body.replace(other.name.encode(), b"NAME")
                        r.body = r.body.replace(e.encode(), b"ID").replace(p.encode(), b"ID")
                        check(r)
        for raw in (b"GARBAGE\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n", b"GET /%zz HTTP/1.1\r\nHost: x\r\n\r\n", b"POST /execute HTTP/1.1\r\nHost: x\r\nContent-Length: x\r\n\r\n"):
            for r in daemon_lib.parse_responses(daemon.raw(raw, 2)[0]):
                check(r)
        assert not wrong, "\n".join(map(str, wrong[:10]))
        landed(leaks(daemon, daemon_lib.Response(500, {}, str(daemon.state).encode())), "the judge sees it when it is there")
        assert stat_of(daemon.pid) and other.request("GET", f"/processes/{p}").json["state"] == "running"
    stopped_by("messages name the field and the fix, nothing of the host")


@quick
def test_command_line_errors_tell_nothing_of_others(daemon, stopped_by):
    """Error messages of `caisson` contain no token, and nothing of a sandbox of another owner."""
    secret = "box-" + secrets.token_hex(12)
    with Box(daemon, secret):
        env = host_env(CAISSON_TOKEN=BOB, CAISSON_URL=f"http://127.0.0.1:{daemon.port}")
        said = b""
        for args in (["ps"], ["ps", "-a"], ["exec", "--name", "nobody", "--", "true"], ["logs", "nobody"], ["rm", "nobody"], ["cp", "nobody:x", "-"], ["top"]):
            with contextlib.suppress(subprocess.TimeoutExpired):
                r = subprocess.run([str(CAISSON), *args], capture_output=True, env=env, timeout=60, stdin=subprocess.DEVNULL, check=False)
                said += r.stdout + r.stderr
        landed(said.count(b"no such sandbox") >= 4, said[:500])
        assert BOB.encode() not in said and secret.encode() not in said, said[:1000]
    stopped_by("names belong to owners")
