# SPDX-License-Identifier: Apache-2.0
"""test_failed_allocations.py - One allocation of the front after another fails, while each kind of request is served.

payloads/fail_malloc.c is preloaded and refuses the chosen allocation. The client gets an error that is not its own mistake, or a
cut connection; the front is the same process as before, data of others is still there, and the next request succeeds. On sanitized
programs (make asan) the sanitizers check the paths that are otherwise never taken, and find leaks when the daemon ends.
"""
import collections
import io
import itertools
import json
import mmap
import re
import struct
import subprocess
import tarfile

import pytest
from daemon import Response
from daemon_lib import Daemon, WebSocket
from lib import CAISSON, EXACT, HERE, host_env, landed, session
from cell_lib import build, until
from scarce_lib import spread, up_or_over

quick = pytest.mark.quick
MOST = 400 if EXACT else 12  # allocations of each request that fail
MODERN = "2026-07-28"
S = "/v1/sandboxes"
M = S + "/malloc"


class Malloc:
    """The numbers that payloads/fail_malloc.c keeps."""

    numbers = itertools.count(1)

    def __init__(self):
        self.path = session().dir / f"malloc-{next(self.numbers)}"
        self.path.write_bytes(bytes(32))
        self.path.chmod(0o666)
        with open(self.path, "r+b") as f:
            self.map = mmap.mmap(f.fileno(), 32)
        self.env = {"LD_PRELOAD": str(build("fail_malloc", "-shared", "-fPIC", "-fno-omit-frame-pointer")), "L_MALLOC": str(self.path),
                    "ASAN_OPTIONS": "verify_asan_link_order=0",  # ours comes first, and asks the sanitizer's
                    "LSAN_OPTIONS": f"suppressions={HERE / 'payloads/lsan.supp'}:print_suppressions=0"}

    def __getitem__(self, i):
        return struct.unpack_from("Q", self.map, 8 * i)[0]

    count, failed = property(lambda self: self[0]), property(lambda self: self[3])

    def fail(self, at, n=1):
        """The @at-th from now on, and @n - 1 after it."""
        struct.pack_into("QQ", self.map, 8, 0, n)
        struct.pack_into("Q", self.map, 8, self.count + at if at else 0)

    def restart(self, at):
        """For a program that starts: the @at-th of it."""
        struct.pack_into("QQQQ", self.map, 0, 0, at, 1, 0)

    def close(self):
        self.map.close()


@pytest.fixture
def malloc():
    m = Malloc()
    yield m
    m.close()


# ---- what is asked ---------------------------------------------------------------------------------------------------------------

def named(d, request):
    method, path, body = request
    if "{p}" in path:
        all = d.request("GET", M + "/processes").json.get("processes")
        path = path.format(p=all[-1]["process_id"] if all else "none")
    return method, path, body


def prepare(d, requests):
    for r in requests:
        d.request(*named(d, r), headers=BINARY if isinstance(r[2], bytes) else None)


class Ask:
    """A request. @first, @then: requests before and after each attempt, with memory. {p} is the newest process."""

    def __init__(self, method, path, body=None, *, first=(), then=(), headers=None):
        self.request, self.headers, self.first, self.then = (method, path, body), headers, first, then

    def __repr__(self):
        return " ".join(map(str, self.request))[:100]

    def ready(self, d):
        """The function to call for an attempt."""
        prepare(d, self.first)
        request = named(d, self.request)
        return lambda: d.request(*request, headers=self.headers, timeout=20)


class Talk(Ask):
    """A WebSocket that sends messages and reads until it has the answer, or is cut."""

    def __init__(self, path, *messages, end, **more):
        super().__init__("GET", path, **more)
        self.messages, self.end = messages, end

    def ready(self, d):
        prepare(d, self.first)
        path = named(d, self.request)[1]
        return lambda: self.talk(d, path)

    def talk(self, d, path):
        ws = WebSocket(d, path=path, timeout=20)
        try:
            if ws.status != 101:
                return Response(ws.status, ws.headers, b"")
            for m in self.messages:
                ws.s.sendall(WebSocket.frame(1, json.dumps(m).encode()))
            seen = b""
            while not re.search(self.end, seen):
                more = ws.f.read1(65536)
                if not more:
                    return Response(0, {}, seen)
                seen += more
            return Response(200, ws.headers, seen)
        finally:
            ws.s.close()


def packed():
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as t:
        for name in ("t/a", "t/b"):
            info = tarfile.TarInfo(name)
            info.size = 1000
            t.addfile(info, io.BytesIO(b"x" * 1000))
    return out.getvalue()


def call(method, **params):
    """Of the Model Context Protocol, in the form that needs no session."""
    meta = {"io.modelcontextprotocol/protocolVersion": MODERN, "io.modelcontextprotocol/clientCapabilities": {}}
    headers = {"Accept": "application/json, text/event-stream", "MCP-Protocol-Version": MODERN, "Mcp-Method": method}
    if "name" in params:
        headers["Mcp-Name"] = params["name"]
    return Ask("POST", "/mcp", {"jsonrpc": "2.0", "id": 1, "method": method, "params": {**params, "_meta": meta}}, headers=headers)


def tool(name, **arguments):
    return call("tools/call", name=name, arguments=arguments)


BINARY = {"Content-Type": "application/octet-stream"}
REMOVE = ("DELETE", M, None)
MAKE = ("POST", S, {"name": "malloc"})
PROCESS = ("POST", M + "/processes", {"cmd": "cat"})
EVENT = {"Accept": "text/event-stream"}
LOUD = "import sys\nprint('x' * 300000)\nprint('seen', file=sys.stderr)\n1 / 0"
SPEC = {"name": "other", "labels": {"a": "b", "c": "d"}, "env": {"A": "1", "B": "2"}, "egress": ["example.com", "*.example.org:443"],
        "memory_mib": 128, "timeout_seconds": 100}
OTHER = ("DELETE", S + "/other", None)

SURFACE = {
    "execute": [Ask("POST", "/execute", {"code": "print(6 * 7)"}), Ask("POST", "/execute", {"code": LOUD}),
                Ask("POST", "/execute", {"code": "x = 1", "session_id": "s"}), Ask("POST", "/execute", {"code": LOUD, "stream": True}),
                Ask("POST", "/execute", {"code": "echo a", "language": "bash"}), Ask("POST", "/execute", {"code": "input()", "stdin": "a\n"}),
                Ask("GET", "/sessions"), Ask("POST", "/sessions/s/interrupt"), Ask("DELETE", "/sessions/s"),
                Ask("POST", "/v1/run_python", {"code": "print(1)"}), Ask("POST", "/v1/run_shell", {"script": "echo a"})],
    "about": [Ask("GET", "/health"), Ask("GET", "/openapi.json"), Ask("GET", "/metrics"), Ask("GET", "/docs"), Ask("GET", "/v1/policy"),
              Ask("GET", "/v1/approvals"), Ask("GET", "/nothing"), Ask("GET", S), Ask("GET", S + "?label=a%3Db&limit=1")],
    "life": [Ask("POST", S, {"name": "other"}, then=[OTHER]), Ask("POST", S, SPEC, then=[OTHER]), Ask("POST", S, {"name": "malloc"}),
             Ask("POST", S, {}, headers={"Idempotency-Key": "malloc"}), Ask("GET", M), Ask("POST", M + "/extend", {"seconds": 3000}),
             Ask("POST", M + "/interrupt"), Ask("DELETE", M, first=[MAKE]), Ask("POST", M + "/stop", first=[MAKE], then=[REMOVE]),
             Ask("POST", M + "/kill", first=[MAKE], then=[REMOVE])],
    "running": [Ask("POST", M + "/execute", {"code": "x = 1"}), Ask("POST", M + "/execute", {"code": LOUD}),
                Ask("POST", M + "/execute", {"code": LOUD, "stream": True}), Ask("POST", M + "/exec", {"cmd": "echo", "args": ["a"]}),
                Ask("POST", M + "/exec", {"cmd": "cat", "stdin": "y" * 70000, "env": {"A": "b"}, "cwd": "/tmp"}),
                Ask("POST", M + "/shell", {"script": "echo a; echo b >&2"}), Ask("POST", M + "/exec", {"cmd": "echo", "args": ["a"]}, headers=EVENT),
                Ask("POST", M + "/execute", {"code": "2"}, headers={"Idempotency-Key": "twice"}),
                Ask("POST", M + "/execute", {"code": "open('/workspace/made.txt', 'w').write('z')"}),
                Ask("GET", M + "/logs"), Ask("GET", M + "/logs?tail=2"), Ask("GET", M + "/executions"), Ask("GET", M + "/artifacts")],
    "processes": [Ask(*PROCESS, first=[("DELETE", M + "/processes/{p}", None)]), Ask("GET", M + "/processes"), Ask("GET", M + "/processes/{p}"),
                  Ask("POST", M + "/processes/{p}/stdin", {"data": "abc"}, first=[PROCESS]), Ask("GET", M + "/processes/{p}/output?offset=0"),
                  Ask("POST", M + "/processes/{p}/signal", {"signal": "TERM"}, first=[PROCESS]), Ask("POST", M + "/processes/{p}/wait", {"timeout": 1}),
                  Ask("DELETE", M + "/processes/{p}", first=[PROCESS])],
    "files": [Ask("PUT", M + "/files?path=f", b"y" * 100000, headers=BINARY), Ask("GET", M + "/files?path=f"),
              Ask("GET", M + "/files?path=f", headers={"Range": "bytes=10-20"}), Ask("GET", M + "/files/list?path=."), Ask("GET", M + "/files/stat?path=f"),
              Ask("POST", M + "/files/mkdir", {"path": "d/e", "parents": True}), Ask("POST", M + "/files/move", {"from": "f", "to": "g"}, first=[("PUT", M + "/files?path=f", b"1")]),
              Ask("PUT", M + "/files/tar?path=.", packed(), headers={"Content-Type": "application/x-tar"}), Ask("GET", M + "/files/tar?path=."),
              Ask("DELETE", M + "/files?path=g", first=[("PUT", M + "/files?path=g", b"1")])],
    "ports": [Ask("POST", M + "/ports/8000", then=[("DELETE", M + "/ports/8000", None)]), Ask("GET", M + "/ports"),
              Ask("GET", M + "/ports/8000", first=[("POST", M + "/ports/8000", None)]), Ask("GET", M + "/ports/8000/x", first=[("POST", M + "/ports/8000", None)]),
              Ask("DELETE", M + "/ports/8000", first=[("POST", M + "/ports/8000", None)])],
    "egress": [Ask("GET", M + "/egress"), Ask("PUT", M + "/egress", {"egress": ["example.com", "example.org"]}), Ask("GET", M + "/net"),
               Ask("PUT", M + "/egress", {"egress": []})],
    "workspaces": [Ask("POST", "/v1/workspaces", {"name": "w"}, then=[("DELETE", "/v1/workspaces/w", None)]), Ask("GET", "/v1/workspaces"),
                   Ask("POST", S, {"name": "other", "workspace": {"name": "w"}}, first=[("POST", "/v1/workspaces", {"name": "w"})], then=[OTHER]),
                   Ask("GET", "/v1/workspaces/w"), Ask("DELETE", "/v1/workspaces/w", first=[("POST", "/v1/workspaces", {"name": "w"})])],
    "packages": [Ask("GET", M + "/packages"), Ask("POST", M + "/packages", {"packages": ["six"]})],
    "mcp": [call("tools/list"), tool("execute_code", session_id="m", language="python", code="1 + 1"), tool("execute_code", session_id="m", language="python", code=LOUD)],
    "jupyter": [Ask("GET", "/api/kernelspecs"), Ask("GET", "/api/kernels"), Ask("GET", "/api/sessions"), Ask("POST", "/api/kernels", {"name": "python3"}),
                Ask("POST", "/api/sessions", {"path": "n.ipynb", "type": "notebook", "name": "n", "kernel": {"name": "python3"}})],
    "websocket": [Talk("/execute/ws", {"type": "execute", "code": "print(1)"}, end=b'"type":"(done|refused)"'),
                  Talk(M + "/processes/{p}/attach", end=b'"type":"exit"', first=[("DELETE", M + "/processes/{p}", None),
                                                                     ("POST", M + "/processes", {"cmd": "echo", "args": ["a"]})])],
}


# ---- the sweep -------------------------------------------------------------------------------------------------------------------

def attempt(call):
    try:
        return call()
    except Exception as e:  # cut, at any place
        return Response(0, {}, repr(e).encode())


def works(d):
    return attempt(Ask("POST", "/execute", {"code": "print(6 * 7)"}).ready(d)).status == 200


def sweep(d, malloc, ask, together):
    """Fail its allocations one after the other. Returns how it was answered."""
    seen = collections.Counter()
    call = ask.ready(d)
    before = malloc.count
    plain = attempt(call)
    need = malloc.count - before
    landed(plain.status, f"{ask}: no answer with memory: {plain}")
    print(f"{ask}: {plain.status}, {need} allocations" + (f": {plain}" if plain.status >= 400 else ""))
    prepare(d, ask.then)
    for at in spread(range(1, need + 1), MOST):
        call = ask.ready(d)
        malloc.fail(at, together)
        r = attempt(call)
        malloc.fail(0)
        what = f"{ask}: allocation {at} of {need}"
        assert d.p.poll() is None, f"{what}: the daemon ended with {d.p.returncode}: {d.log_text()[-1000:]}"
        if r.status != plain.status:
            assert r.status not in (400, 413, 414, 422, 431), f"{what}: the daemon's lack of memory was reported as the client's mistake: {r}"
            assert r.status < 500 or not r.body or "error" in r.json or ask.request[1] == "/health", f"{what}: {r}"
        elif r.status < 400 and "json" in r.headers.get("content-type", ""):
            assert isinstance(r.json, (dict, list)), f"{what}: {r}"  # whole, or no answer
        assert b"timed out" not in r.body, f"{what}: neither an answer nor an end"
        seen[r.status] += 1
        prepare(d, ask.then)
    return seen


@pytest.mark.parametrize("together", [pytest.param(1, marks=quick), 3])
@pytest.mark.parametrize("part", [pytest.param(p, marks=quick) if p in ("execute", "life", "files") else p for p in SURFACE])
def test_allocation_fails_in_a_request(malloc, part, together):
    """An error or a cut connection, never the end of the front; then everything works, and the state of another sandbox is still there."""
    with Daemon("--pool", "1", env=malloc.env) as d:
        landed(malloc.count > 100, "the shim is not in the daemon")
        d.good()
        d.execute("kept = 'kept'", session_id="bystander")
        front, seen = d.pid, collections.Counter()
        asks = SURFACE[part] if EXACT else SURFACE[part][::2]
        prepare(d, [MAKE])
        for ask in asks:
            seen += sweep(d, malloc, ask, together)
            assert d.pid == front, f"{ask}: the front ended: {d.log_text()[-2000:]}"
        print(f"{malloc.failed} allocations failed: answers {dict(seen)}")
        landed(malloc.failed > 5 * len(asks), f"only {malloc.failed} allocations failed")
        for r in (REMOVE, OTHER, ("DELETE", "/v1/workspaces/w", None)):
            d.request(*r)
        until(lambda: works(d), 60, "an execution that is well")
        assert d.execute("kept", session_id="bystander")["result"] == {"text/plain": "'kept'"}
        for listed in (S, "/api/kernels"):
            for box in d.request("GET", listed).json if listed != S else d.request("GET", S).json["sandboxes"]:
                d.request("DELETE", f"{listed}/{box['id'] if listed != S else box['name']}")
        for name in d.sessions():
            d.request("DELETE", "/sessions/" + name)
        d.quiet(60)


@quick
def test_answer_without_memory_is_503(malloc):
    """Every allocation of a request that only reads fails once: the answer is the usual one, 503 `out_of_memory`, or a cut connection.
    It is never a 500, which would mean a fault of the daemon."""
    with Daemon("--pool", "1", env=malloc.env) as d:
        prepare(d, [MAKE])
        seen = collections.Counter()
        for path in ("/sessions", S, "/api/kernels", "/api/sessions", "/v1/workspaces", M + "/executions", M + "/processes"):
            before = malloc.count
            landed(d.request("GET", path).status == 200, path)
            for at in range(1, malloc.count - before + 1):
                malloc.fail(at)
                r = attempt(lambda path=path: d.request("GET", path, timeout=20))
                malloc.fail(0)
                assert r.status in (0, 200, 503), f"{path}, allocation {at}: {r}"
                assert r.status != 503 or not r.body or r.json["error"]["code"] == "out_of_memory", f"{path}, allocation {at}: {r}"
                seen[r.status] += 1
        print(f"{malloc.failed} allocations failed: answers {dict(seen)}")
        landed(seen[503] > 5, f"hardly any answer lacked memory: {dict(seen)}")
        d.request(*REMOVE)


@quick
@pytest.mark.parametrize("together", [1, 3])
def test_allocation_failure_admits_nobody(malloc, together):
    """Without memory for the check of a token, a client without one is refused, and no owner is taken for another."""
    tokens = session().dir / f"tokens-{together}"
    tokens.write_text("".join(f"{owner}:{word * 32}\n" for owner, word in (("alice", "a"), ("bob", "b"))))
    tokens.chmod(0o600)
    with Daemon("--pool", "1", "--token-file", tokens, env=malloc.env, token="a" * 32) as d:
        d.request("POST", S, {"name": "hers"})
        seen = collections.Counter()
        for word, well in (("a", {200}), ("b", {404}), ("c", {401, 429})):
            for at in range(1, 60):
                malloc.fail(at, together)
                r = attempt(lambda: d.request("GET", S + "/hers", token=word * 32, source=f"127.0.0.{at + 2}", timeout=20))
                malloc.fail(0)
                assert r.status in well | {0, 500, 503}, f"token {word}, allocation {at}: {r}"
                seen[r.status] += 1
        print(f"{malloc.failed} allocations failed: answers {dict(seen)}")
        landed(malloc.failed > 60 and seen[200] and seen[404] and seen[401] and seen[503], f"{malloc.failed}, {seen}")


@quick
def test_allocation_fails_in_the_client(malloc):
    """A request that cannot be built whole is not sent: no sandbox lacks one of its variables, and the client prints an error."""
    with Daemon("--pool", "1") as d:
        def create(at):
            malloc.restart(at)
            p = subprocess.run([str(CAISSON), "create", "malloc", "--url", f"http://127.0.0.1:{d.port}", "--env", "A=1", "--env", "B=2", "--label", "l=m"],
                               env=host_env(**malloc.env), capture_output=True, timeout=60, stdin=subprocess.DEVNULL)
            spec = d.request("GET", M).json.get("spec")
            d.request(*REMOVE)
            return p, spec and (sorted(spec["env"]), spec["labels"])
        whole = (["A", "B"], {"l": "m"})
        p, made = create(0)
        total, went = malloc.count, collections.Counter()
        landed(p.returncode == 0 and made == whole and total > 20, f"{total}: {p}, {made}")
        # Libraries come first, by the thousand; the request is built and sent at the end.
        for at in (*spread(range(1, total - 300), MOST), *spread(range(total - 300, total + 1), 10**9 if EXACT else 30)):
            p, made = create(at)
            assert made in (None, whole), f"allocation {at} of {total}: {made}"
            assert p.returncode != 0 or made == whole, f"allocation {at} of {total}: {p}"
            assert p.returncode == 0 or p.returncode > 0 and p.stderr, f"allocation {at} of {total}: {p}"
            went[p.returncode] += 1
        print(f"{total} allocations: {dict(went)}")
        landed(went[0] < went.total(), f"nothing failed: {went}")


def test_allocation_fails_at_the_start(malloc):
    """An allocation fails during the start: the daemon refuses with a message, or serves."""
    with Daemon("--pool", "1", env=malloc.env) as d:
        total, state = malloc.count, d.state
    went = collections.Counter()
    for at in spread(range(1, total), 60 if EXACT else 10):
        malloc.restart(at)
        d = Daemon("--pool", "1", env=malloc.env, state=state, wait=False)
        try:
            if up_or_over(d):
                until(lambda: works(d), 30, f"an execution after allocation {at} failed")
                d.p.terminate()
                d.p.wait(40)
            went[d.p.poll()] += 1
            # The dynamic loader and the libraries end by themselves with 127 or 1 when they cannot begin.
            assert d.p.poll() in (0, 125, 127, 1), f"allocation {at} of {total}: ended with {d.p.poll()}: {d.log_text()[-1000:]}"
        finally:
            d.kill()
    print(f"{sum(went.values())} starts: {dict(went)}")
