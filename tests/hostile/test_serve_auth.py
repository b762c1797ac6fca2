# SPDX-License-Identifier: Apache-2.0
"""test_serve_auth.py - Callers without a token, with another owner's, or with guesses; and pages in a browser."""
import contextlib
import json
import os
import random
import re
import secrets
import socket
import statistics
import subprocess
import time

import daemon_lib
import pytest
from daemon_controls import would_execute
from daemon_lib import Daemon, WebSocket, parse_responses, scan_memory
from process import Later, free_port, unique
from lib import CAISSON, host_env, landed, session
from cell_lib import read

whole_module, hostile_test = daemon_lib.whole_module, daemon_lib.hostile_test
quick = pytest.mark.quick
slow = pytest.mark.slow
ALICE, BOB = secrets.token_hex(32), secrets.token_urlsafe(48)


def token_file(text, mode=0o600):
    path = session().dir / unique("tokens")
    path.write_text(text)
    path.chmod(mode)
    return path


@pytest.fixture(scope="module")
def daemon(whole_module):
    """With two owners, and a unix socket."""
    path = token_file(f"# who may\nalice:{ALICE}\nbob:{BOB}\n")
    with Daemon("--token-file", path, token=ALICE, unix=True) as d:
        path.unlink()       # read once, before the jail
        yield d


@pytest.fixture(scope="module")
def local(whole_module):
    """Without tokens, on loopback: the routes that a browser on this machine can reach."""
    with Daemon("--pool", 2) as d:
        yield d
        d.quiet()


STRANGERS = (f"127.0.{i}.{j}" for i in range(1, 250) for j in range(1, 250))


def stranger():
    """An address that has not guessed yet: the limiter, which counts by address, has tests of its own."""
    return next(STRANGERS)


# ---- tokens --------------------------------------------------------------------------------------------------------------

ROUTES = [("POST", "/execute"), ("GET", "/sessions"), ("DELETE", "/sessions/x"), ("POST", "/sessions/x/interrupt"), ("GET", "/metrics"),
          ("POST", "/pip_install"), ("GET", "/execute/ws"), ("GET", "/nothing"), ("PUT", "/execute"), ("OPTIONS", "/execute")]


@quick
def test_no_token(daemon, stopped_by):
    """Every route except the open ones: 401, the same for existing and missing objects, and nothing happens."""
    body = {"code": "1", "session_id": "intruder"}
    landed(daemon.request("POST", "/execute", body).status == 200 and "intruder" in daemon.sessions(), "with the token it is executed")
    daemon.end_session("intruder")
    count = daemon.executions()
    wrong = []
    for method, path in ROUTES:
        r = daemon.request(method, path, body if method == "POST" else None, token=False)
        if r.status != 401 or r.code != "unauthorized" or "bearer" not in r.headers.get("www-authenticate", "").lower():
            wrong.append((method, path, r))
    assert not wrong, wrong
    bodies = {daemon.request(m, p, token=False).body for m, p in (("GET", "/sessions"), ("GET", "/nothing"), ("GET", "/metrics"))}
    assert len(bodies) == 1, f"the answer reveals existing objects: {bodies}"
    assert not daemon.sessions() and daemon.executions() == count, "a request without a token had an effect"
    for path in ("/health", "/docs", "/openapi.json"):
        assert daemon.request("GET", path, token=False).status == 200, path
    stopped_by("token")


@quick
def test_wrong_tokens(daemon, stopped_by):
    """Cut, longer, of another case, of another scheme, in other places: 401 or 400, and nothing happens."""
    bearer = "Bearer " + ALICE
    ways = [{"Authorization": "Bearer " + ALICE[:-1]}, {"Authorization": bearer + "0"}, {"Authorization": bearer.upper()},
            {"Authorization": "Basic " + ALICE}, {"Authorization": ALICE}, {"Authorization": "Bearer"}, {"Authorization": "Bearer "},
            {"Authorization": bearer + ", Bearer x"}, {"X-API-Key": ""}, {"X-API-Key": ALICE[:32]}, {"Cookie": "token=" + ALICE},
            {"X-Auth-Token": ALICE}, {"Proxy-Authorization": bearer},
            {"X-Owner": "alice", "X-Forwarded-User": "alice", "X-Forwarded-For": "127.0.0.1"},
            {"Authorization": "Bearer " + "a" * 20000}, {"Authorization": "Bearer \xff\xfe"},
            {"Authorization": "Bearer wrong", "X-API-Key": ALICE}]
    for good in ({"Authorization": bearer}, {"X-API-Key": ALICE}, {"authorization": "bearer  " + ALICE}):
        landed(daemon.request("GET", "/sessions", headers=good, token=False).status == 200, good)
    wrong = []
    count = daemon.executions()
    for headers in ways:
        r = daemon.request("POST", "/execute", {"code": "1"}, headers, token=False, source=stranger())
        if r.status not in (401, 431):
            wrong.append((headers, r))
    for query in (f"token={ALICE}", f"access_token={ALICE}", f"api_key={ALICE}", f"%74oken={ALICE}", f"a=b&TOKEN={ALICE}"):
        r = daemon.request("GET", "/sessions?" + query, token=False)
        if r.status != 400 or r.code != "token_in_url" or ALICE.encode() in r.body:
            wrong.append((query[:10], r))
    assert not wrong, "\n".join(map(str, wrong))
    assert daemon.executions() == count and not daemon.sessions(), "a request with a wrong token had an effect"
    stopped_by("token")


@quick
def test_sessions_of_other_owners(daemon, stopped_by):
    """A session of alice's does not exist for bob: not in the list, not to be ended or interrupted; the same name is another sandbox."""
    name = unique()
    daemon.execute("secret = 'of alice'", session_id=name)
    landed(daemon.execute("secret", session_id=name)["result"] == {"text/plain": "'of alice'"}, "alice has it")
    assert daemon.request("GET", "/sessions", token=BOB).json == {"sessions": []}
    missing = daemon.request("DELETE", "/sessions/" + unique(), token=BOB)
    for method, path in (("DELETE", f"/sessions/{name}"), ("POST", f"/sessions/{name}/interrupt")):
        r = daemon.request(method, path, token=BOB)
        assert r.status == 404 and r.code == "no_such_session" and r.body == missing.body, r
    r = daemon.execute("print('secret' in globals())", session_id=name, token=BOB)
    assert r.stdout == b"False\n" and r["epoch"] == 0, r
    running = Later(lambda: daemon.execute("import time; time.sleep(1); 'whole'", session_id=name))
    time.sleep(0.3)
    assert daemon.request("POST", f"/sessions/{name}/interrupt", token=BOB).status == 404
    assert daemon.request("DELETE", f"/sessions/{name}", token=BOB).status == 204     # his own
    assert running.result()["result"] == {"text/plain": "'whole'"}
    for extra in ({"owner": "alice"}, {"token": ALICE}):
        assert daemon.request("POST", "/execute", {"code": "1", "session_id": name, **extra}, token=BOB).status == 422
    r = daemon.request("GET", "/sessions", headers={"X-Owner": "alice", "X-Forwarded-User": "alice"}, token=BOB)
    assert r.json == {"sessions": []}, r
    with WebSocket(daemon, {"Authorization": "Bearer " + BOB}) as w:
        assert w.run("'secret' in globals()", session_id=name)[-1]["result"]["result"] == {"text/plain": "False"}
    assert daemon.request("DELETE", f"/sessions/{name}", token=BOB).status == 204
    metrics = daemon.request("GET", "/metrics", token=BOB).body.decode()
    assert name not in metrics and "alice" not in metrics
    stopped_by("names belong to owners")


def test_time_does_not_tell_tokens(daemon, stopped_by):
    """A wrong token takes as long whether it shares 0, 16 or 63 characters with the right one, and whether it is short or long.
    Over the unix socket, where wrong ones are not slowed down. A machine's noise comes and goes; what the code tells, it tells in
    every round."""
    kinds = {"nothing": secrets.token_hex(32), "half": ALICE[:32] + secrets.token_hex(16),
             "all but one": ALICE[:-1] + ("0" if ALICE[-1] != "0" else "1"),
             "short": secrets.token_hex(16), "long": secrets.token_hex(200)}
    rounds = []
    with socket.socket(socket.AF_UNIX) as s:
        s.settimeout(10)
        s.connect(str(daemon.unix))
        while len(rounds) < 10:
            times = {k: [] for k in kinds}
            for i in range(400):
                for k, token in random.sample(sorted(kinds.items()), len(kinds)):
                    data = f"GET /sessions HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\n\r\n".encode()
                    t = time.perf_counter_ns()
                    s.sendall(data)
                    got = s.recv(65536)
                    times[k].append(time.perf_counter_ns() - t)
                    assert got.startswith(b"HTTP/1.1 401"), got[:200]
            low = {k: statistics.median(sorted(v)[:200]) / 1000 for k, v in times.items()}
            rounds.append(low)
            # Comparing 63 characters one by one costs less than a microsecond; a lookup that fails early would show in the length alone.
            if max(low.values()) - min(low.values()) < max(12, 0.25 * min(low.values())):
                break
    print("microseconds:", *({k: round(v, 1) for k, v in low.items()} for low in rounds), sep="\n")
    landed(all(len(v) == 400 for v in times.values()), "measured")
    assert len(rounds) < 10, rounds
    stopped_by("hashes, compared in constant time")


@quick
def test_tokens_are_nowhere(daemon, stopped_by):
    """Neither in the log nor in an answer, an argument, the environment or a title; and the front keeps hashes alone."""
    wrong = secrets.token_hex(32)
    for path in ("/sessions", f"/sessions?token={wrong}", f"/nothing?api_key={wrong}"):
        daemon.request("GET", path, headers={"Authorization": "Bearer " + wrong}, token=False, source=stranger())
    daemon.execute("1")
    log = daemon.log_text()
    landed('"path":"/sessions"' in log and '"owner":"alice"' in log, "requests are logged")
    for t in (ALICE, BOB):
        assert t not in log and t[:20] not in log, "a token is in the log"
    assert wrong not in log and "Bearer" not in log, "a token that was presented is in the log"
    for pid in (daemon.pid, daemon.warden, daemon.zygote, *daemon.guests()):
        with contextlib.suppress(OSError):
            for f in ("cmdline", "environ", "comm"):
                assert ALICE not in read(f"/proc/{pid}/{f}")
    for path in ("/health", "/metrics", "/openapi.json", "/docs"):
        assert ALICE.encode() not in daemon.request("GET", path).body
    r = daemon.execute("import os; print(os.environ, open('/proc/self/environ').read())")
    assert ALICE.encode() not in r.stdout and b"alice" not in r.stdout
    secret = secrets.token_hex(32)
    path = token_file(f"carol:{secret}\n")
    with Daemon("--token-file", path, "--pool", 1) as d:
        assert not scan_memory(d.pid, secret.encode()), "the front keeps the text of a token"
        assert not scan_memory(d.warden, secret.encode()), "the warden has the text of a token"
        assert d.request("GET", "/sessions", headers={"X-API-Key": secret}, token=False).status == 200
        landed(scan_memory(os.getpid(), secret.encode()), "the scan finds what is there")
    stopped_by("wiped; hashed")


@quick
def test_token_configuration_fails_closed(daemon, stopped_by):
    """No token on an address other than loopback; a token file that others can read, that is empty, short or missing: the daemon does not start, and names the reason."""
    good = token_file(f"a:{ALICE}\n")
    listen = f"0.0.0.0:{free_port()}"
    cases = {
        "no token": (["--listen", listen], "token"),
        "no token, IPv6": (["--listen", f"[::]:{free_port()}"], "token"),
        "readable by all": (["--listen", listen, "--token-file", token_file(f"a:{ALICE}\n", 0o644)], "token"),
        "readable by the group": (["--listen", listen, "--token-file", token_file(f"a:{ALICE}\n", 0o640)], "token"),
        "empty": (["--listen", listen, "--token-file", token_file("# nobody\n")], "token"),
        "short": (["--listen", listen, "--token-file", token_file("a:hunter2\n")], "32"),
        "missing": (["--listen", listen, "--token-file", "/nonexistent"], "nonexistent"),
        "directory": (["--listen", listen, "--token-file", session().dir], "token"),
    }
    for what, (flags, word) in cases.items():
        p = subprocess.run([str(CAISSON), "serve", "--state", str(session().dir / unique("state")), "--socket", "none", *map(str, flags)],
                           stdin=subprocess.DEVNULL, capture_output=True, env=host_env(), timeout=20, check=False)
        assert p.returncode != 0 and word in p.stderr.decode() and p.stderr.count(b"\n") == 1, (what, p)
        assert b"hunter2" not in p.stderr and ALICE.encode() not in p.stderr, (what, p)
    with Daemon("--token-file", good, "--pool", 1, token=ALICE) as d:
        landed(d.good() < 20, "with a good file it starts")
    stopped_by("refused at the start")


NOBODY = 65534
STEAL = """
import http.client, json, os, sys
c = http.client.HTTPConnection("127.0.0.1", int(sys.argv[1]), timeout=20)
c.request("POST", "/execute", json.dumps({"code": "secret", "session_id": sys.argv[2]}), {"Content-Type": "application/json"})
r = c.getresponse()
print(os.getuid(), r.status, r.read().decode())
"""


@quick
def test_other_users_on_loopback(local, stopped_by):
    """Another user of this machine, on the loopback of a daemon that root started without tokens, reaches for a session of root's."""
    name, secret = unique(), secrets.token_hex(16)
    local.execute(f"secret = {secret!r}", session_id=name)

    def steal(uid):
        p = subprocess.run(["setpriv", "--reuid", str(uid), "--regid", str(uid), "--clear-groups", "/usr/bin/python3", "-c", STEAL, str(local.port), name],
                           capture_output=True, timeout=30, check=True)
        return p.stdout.decode().split(maxsplit=2)

    own = steal(0)
    landed(own[:2] == ["0", "200"] and secret in own[2], own)
    uid, status, body = steal(NOBODY)
    assert (uid, status) == (str(NOBODY), "401") and secret not in body and "--token-file" in body, body
    local.end_session(name)
    stopped_by("the kernel says who calls")


# ---- guessing ------------------------------------------------------------------------------------------------------------

def guess(d, source, n=40):
    """Send wrong tokens until the address gets 429. Returns the statuses and that answer."""
    statuses = []
    while len(statuses) < n:
        r = d.request("GET", "/sessions", headers={"X-API-Key": secrets.token_hex(32)}, token=False, source=source)
        statuses.append(r.status)
        if r.status == 429:
            return statuses, r
    return statuses, None


@quick
def test_token_brute_force(daemon, stopped_by):
    """Ten guesses, then 429 with a time to wait, a second later; the log has a line for the burst and not for each."""
    guesser = stranger()
    before = len(daemon.log("auth_blocked"))
    t = time.monotonic()
    statuses, last = guess(daemon, guesser)
    landed(statuses.count(401) >= 5 and set(statuses) <= {401, 429}, statuses)
    assert statuses.count(401) <= 12 and last, statuses
    assert last.code == "rate_limited" and int(last.headers["retry-after"]) >= 1, last
    assert time.monotonic() - t > 0.9, "the answer came at once"
    assert daemon.request("GET", "/health", token=False, source=guesser).status == 200       # open routes stay open
    assert len(daemon.log("auth_blocked")) - before == 1, daemon.log("auth_blocked")
    stopped_by("a limiter per address; answers that wait")


@quick
def test_guesses_keep_no_owner_out(daemon, stopped_by):
    """A stranger guesses from the address that all clients have behind a proxy: clients with a token are not affected."""
    shared = stranger()
    landed(guess(daemon, shared)[1], "the address is told to wait")
    for token in (ALICE, BOB):
        t = time.monotonic()
        r = daemon.request("GET", "/sessions", token=token, source=shared)
        assert r.status == 200 and time.monotonic() - t < 0.9, r
    stopped_by("the token is looked at first")


@slow
def test_penalty_for_guesses_grows(daemon, stopped_by):
    """A client that goes on guessing after each block waits longer each time; and not for ever."""
    waits = []
    guesser = stranger()
    for _ in range(4):
        for _ in range(40):
            r = daemon.request("GET", "/sessions", headers={"X-API-Key": secrets.token_hex(32)}, token=False, source=guesser)
            if r.status == 429:
                waits.append(int(r.headers["retry-after"]))
                break
        time.sleep(waits[-1] + 0.1)
    landed(len(waits) == 4, waits)
    assert waits == sorted(waits) and waits[-1] >= 4 and max(waits) <= 60, waits
    assert daemon.request("GET", "/sessions", source=guesser).status == 200
    stopped_by("a limiter per address")


@quick
def test_log_of_refused_requests_is_bounded(daemon, stopped_by):
    """A flood of refused requests: one line each, short, whatever was in it."""
    size = daemon.log_path.stat().st_size
    for _ in range(50):
        daemon.request("GET", "/" + "a" * 4000, headers={"User-Agent": "u" * 8000, "X-Request-Id": "i" * 5000}, token=False)
    grown = daemon.log_path.stat().st_size - size
    landed(grown > 50 * 100, grown)
    assert grown < 50 * 1500, f"{grown // 50} bytes for each"
    stopped_by("values are cut")


# ---- browsers ------------------------------------------------------------------------------------------------------------

def browser_matrix(port):
    """{name: (headers, statuses, body type)}: requests that a page, or a name that points here, can make a browser send."""
    own = f"127.0.0.1:{port}"
    json_type = "application/json"
    return {
        "origin of a stranger": ({"Host": own, "Origin": "https://evil.example"}, {403}, json_type),
        "origin null": ({"Host": own, "Origin": "null"}, {403}, json_type),
        "origin with our host's name in it": ({"Host": own, "Origin": "http://127.0.0.1.evil.example"}, {403}, json_type),
        "origin localhost.evil": ({"Host": own, "Origin": "http://localhost.evil.example"}, {403}, json_type),
        "origin of another port": ({"Host": own, "Origin": f"http://127.0.0.1:{port + 1}"}, {403}, json_type),
        "origin with a user": ({"Host": own, "Origin": f"http://{own}@evil.example"}, {403}, json_type),
        "origin file": ({"Host": own, "Origin": "file://"}, {403}, json_type),
        "origin extension": ({"Host": own, "Origin": "chrome-extension://abcdefgh"}, {403}, json_type),
        "origin empty": ({"Host": own, "Origin": ""}, {403}, json_type),
        "origin twice": ({"Host": own, "Origin": f"http://{own}, https://evil.example"}, {403}, json_type),
        "origin any": ({"Host": own, "Origin": f"http://0.0.0.0:{port}"}, {403}, json_type),
        "rebinding": ({"Host": f"evil.example:{port}"}, {421}, json_type),
        "rebinding with its origin": ({"Host": f"evil.example:{port}", "Origin": f"http://evil.example:{port}"}, {421, 403}, json_type),
        "rebinding by a suffix": ({"Host": f"127.0.0.1.nip.io:{port}"}, {421}, json_type),
        "localhost.": ({"Host": f"localhost.evil.example:{port}"}, {421}, json_type),
        "any address": ({"Host": f"0.0.0.0:{port}"}, {421}, json_type),
        "any address and its origin": ({"Host": f"0.0.0.0:{port}", "Origin": f"http://0.0.0.0:{port}"}, {421, 403}, json_type),
        "decimal": ({"Host": f"2130706433:{port}"}, {400, 421}, json_type),
        "octal": ({"Host": f"0177.0.0.1:{port}"}, {400, 421}, json_type),
        "short": ({"Host": f"127.1:{port}"}, {400, 421}, json_type),
        "mapped": ({"Host": f"[::ffff:127.0.0.1]:{port}"}, {400, 421}, json_type),
        "zone": ({"Host": f"[::1%25lo]:{port}"}, {400, 421}, json_type),
        "user": ({"Host": f"localhost@evil.example:{port}"}, {400, 421}, json_type),
        "path": ({"Host": "localhost/evil"}, {400, 421}, json_type),
        "two in one": ({"Host": "localhost, evil.example"}, {400, 421}, json_type),
        "not an address of ours": ({"Host": f"10.0.0.1:{port}"}, {421}, json_type),
        "simple post, text": ({"Host": own, "Origin": "https://evil.example"}, {403}, "text/plain"),
        "simple post without an origin": ({"Host": own}, {415}, "text/plain"),
        "simple post with charset": ({"Host": own}, {415}, "text/plain; charset=application/json"),
        "form": ({"Host": own, "Origin": "https://evil.example"}, {403}, "application/x-www-form-urlencoded"),
        "form from a browser": ({"Host": own, "Sec-Fetch-Site": "none"}, {415}, "application/x-www-form-urlencoded"),
        "multipart": ({"Host": own}, {415}, "multipart/form-data; boundary=x"),
        "cross-site": ({"Host": own, "Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors"}, {403}, json_type),
        "cross-site navigation": ({"Host": own, "Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate",
                                   "Sec-Fetch-Dest": "document"}, {403}, json_type),
        "unknown site": ({"Host": own, "Sec-Fetch-Site": "elsewhere"}, {403}, json_type),
    }


def send(d, headers, body, kind, method="POST", path="/execute"):
    lines = "".join(f"{k}: {v}\r\n" for k, v in headers.items())
    data = (f"{method} {path} HTTP/1.1\r\n{lines}Content-Type: {kind}\r\nContent-Length: {len(body)}\r\n"
            "Connection: close\r\n\r\n").encode() + body
    got, _ = d.raw(data, 5)
    return data, parse_responses(got)[0]


@quick
def test_pages_of_other_sites(local, stopped_by):
    """A page of another site, or one whose name was bound to this machine: refused before any work, and without headers that would let it read."""
    wrong, lands = [], 0
    for i, (what, (headers, want, kind)) in enumerate(browser_matrix(local.port).items()):
        name = f"browser-{i}"
        body = json.dumps({"code": "1", "session_id": name}).encode()
        data, r = send(local, headers, body, kind)
        lands += would_execute(data, name.encode())
        if r.status not in want:
            wrong.append((what, r))
        if any(k.startswith("access-control") for k in r.headers):
            wrong.append((what, "CORS headers", r.headers))
        if name in local.sessions():
            wrong.append((what, "was executed"))
    landed(lands == len(browser_matrix(1)), f"{lands} land on a server that does not look")
    assert not wrong, "\n".join(map(str, wrong))
    stopped_by("Host, Origin, Sec-Fetch-Site, media type")


@quick
def test_same_origin_works(local, stopped_by):
    """The daemon's own pages, curl and programs on this machine are served."""
    own = f"127.0.0.1:{local.port}"
    for headers in ({"Host": own}, {"Host": f"localhost:{local.port}"}, {"Host": f"LocalHost.:{local.port}"},
                    {"Host": f"[::1]:{local.port}"}, {"Host": "127.0.0.1"},
                    {"Host": own, "Origin": f"http://{own}"}, {"Host": own, "Origin": f"http://{own}", "Sec-Fetch-Site": "same-origin"},
                    {"Host": own, "Sec-Fetch-Site": "none"}):
        _, r = send(local, headers, b'{"code":"6 * 7"}', "application/json")
        assert r.status == 200 and r.json["result"] == {"text/plain": "42"}, (headers, r)
        assert not any(k.startswith("access-control") for k in r.headers), r.headers
    _, r = send(local, {"Host": own}, b'{"code":"6 * 7"}', "application/x-www-form-urlencoded")      # curl -d
    assert r.status == 200, r
    stopped_by("nothing to stop")


@quick
def test_preflight_gets_no_permission(local, stopped_by):
    """A preflight gets no permission, on any path; a page may not even learn that the daemon is here."""
    own = f"127.0.0.1:{local.port}"
    ask = {"Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "content-type,authorization",
           "Access-Control-Request-Private-Network": "true"}
    for path in ("/execute", "/sessions", "/sessions/x", "/health", "/docs", "/metrics", "/nothing", "*"):
        for origin, want in (("https://evil.example", {403}), ("null", {403}), (f"http://{own}", {204, 404})):
            _, r = send(local, {"Host": own, "Origin": origin, **ask}, b"", "text/plain", "OPTIONS", path)
            assert r.status in want and not any(k.startswith("access-control") for k in r.headers), (path, origin, r)
    _, r = send(local, {"Host": own}, b"", "text/plain", "OPTIONS", "/execute")
    landed(r.status == 204 and "POST" in r.headers["allow"], r)
    stopped_by("no CORS at all")


@quick
def test_pages_cannot_read_or_frame(local, stopped_by):
    """Requests that a page can make without asking (script, image, frame) are refused, too, or give nothing to be read or framed."""
    own = f"127.0.0.1:{local.port}"
    for path in ("/health", "/sessions", "/metrics", "/openapi.json"):
        for dest, mode in (("script", "no-cors"), ("image", "no-cors"), ("iframe", "navigate"), ("empty", "cors")):
            _, r = send(local, {"Host": own, "Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": mode, "Sec-Fetch-Dest": dest},
                        b"", "text/plain", "GET", path)
            assert r.status in (403, 400), (path, dest, r)
        r = local.request("GET", path)
        landed(r.status == 200, r)
        assert r.headers["x-content-type-options"] == "nosniff", r.headers
        assert "<script" not in r.body.decode() or r.headers["content-type"].startswith("application/json"), path
    page = local.request("GET", "/docs")
    policy = page.headers.get("content-security-policy", "")
    assert "default-src" in policy and re.search(r"frame-ancestors '(none|self)'", policy), page.headers
    stopped_by("Sec-Fetch-Site; nosniff; Content-Security-Policy")


@quick
def test_websocket_of_other_sites(local, daemon, stopped_by):
    """WebSockets have no preflight: a page of another site gets 403 in the handshake; with tokens, 401 without one."""
    own = f"127.0.0.1:{local.port}"
    with WebSocket(local, {"Origin": f"http://{own}"}) as w:
        landed(w.status == 101, w.headers)
    evil = f"evil.example:{local.port}"
    for headers, want in (({"Origin": "https://evil.example"}, {403}), ({"Origin": "null"}, {403}),
                          ({"Origin": f"http://127.0.0.1:{local.port + 1}"}, {403}), ({"Host": evil}, {421}),
                          ({"Host": evil, "Origin": "http://" + evil}, {421}), ({"Sec-Fetch-Site": "cross-site"}, {403}),
                          ({"Host": f"0.0.0.0:{local.port}"}, {421})):
        with WebSocket(local, headers) as w:
            assert w.status in want, (headers, w.status)
    for headers, want in (({"Authorization": None}, {401}), ({"Authorization": "Bearer x"}, {401}),
                          ({"Authorization": None, "Sec-WebSocket-Protocol": "bearer, " + ALICE}, {401})):
        with WebSocket(daemon, headers, source=stranger()) as w:
            assert w.status in want, (headers, w.status)
    stopped_by("Origin is checked in the handshake")


@quick
def test_unix_socket_mode(daemon, stopped_by):
    """The unix socket is a file: of the mode that it was given, and not for everybody."""
    mode = os.stat(daemon.unix).st_mode & 0o777
    landed(os.path.exists(daemon.unix), daemon.unix)
    assert mode & 0o007 == 0, f"everybody may connect: {mode:o}"
    stopped_by("file mode")
