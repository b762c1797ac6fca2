# SPDX-License-Identifier: Apache-2.0
"""test_auth.py - Permitted callers and addresses, and the separation of callers."""
import os
import resource
import secrets
import socket
import subprocess
import time
from pathlib import Path

import pytest

from daemon import read_response
from process import BIN, HANG, SLOW, free_port, unique, wait_until
from serve_lib import Daemon, WebSocket, clean_env

ALICE, BOB, THIRD = (secrets.token_hex(32) for _ in range(3))


@pytest.fixture(scope="module")
def tokens(tmp_path_factory):
    return token_file(tmp_path_factory.mktemp("tokens") / "tokens",
                      "# who may call\n\nalice:%s\nbob:%s\n%s\n" % (ALICE, BOB, THIRD))


def token_file(path, text, mode=0o600):
    path.write_text(text)
    path.chmod(mode)
    return path


def fails(*flags, env=None):
    """A start that must fail: one line on stderr, 125, at once. Returns the line."""
    p = subprocess.run([str(BIN), "serve", *map(str, flags)], env=clean_env(**(env or {})), capture_output=True, timeout=HANG)
    lines = p.stderr.decode().splitlines()
    assert p.returncode == 125 and len(lines) == 1 and lines[0].startswith("caisson serve: "), p
    assert p.stdout == b"", p
    return lines[0]


# ---- the token file ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("text,mode,says", [
    ("me:%s\n" % ALICE, 0o644, "chmod 600"), ("me:%s\n" % ALICE, 0o660, "chmod 600"), ("me:%s\n" % ALICE, 0o604, "chmod 600"),
    ("me:tooBrief99\n", 0o600, "32"), ("me:%s\n" % ("x" * 513), 0o600, "512"), ("", 0o600, "no token"), ("# only a comment\n", 0o600, "no token"),
    ("me:%s!\n" % ALICE, 0o600, "letters"), ("a b:%s\n" % ALICE, 0o600, "name"), ("local:%s\n" % ALICE, 0o600, "taken")],
    ids=["world-readable", "group-writable", "readable", "too short", "too long", "empty", "comment", "characters", "name", "taken name"])
def test_bad_token_files(tmp_path, text, mode, says):
    f = token_file(tmp_path / "tokens", text, mode)
    line = fails("--state", tmp_path / "s", "--listen", "127.0.0.1:%d" % free_port(), "--token-file", f)
    assert says in line and "--token-file" in line and ALICE not in line and "tooBrief99" not in line, line


def test_missing_token_file(tmp_path):
    line = fails("--state", tmp_path / "s", "--listen", "127.0.0.1:%d" % free_port(), "--token-file", tmp_path / "nothing")
    assert str(tmp_path / "nothing") in line and "No such file" in line


@pytest.mark.parametrize("kind", ["directory", "fifo", "device"])
def test_odd_token_files(tmp_path, kind):
    f = tmp_path / "odd"
    if kind == "directory":
        f.mkdir(mode=0o700)
    elif kind == "fifo":
        os.mkfifo(f, 0o600)
    else:
        f = Path("/dev/null")
    assert "--token-file" in fails("--state", tmp_path / "s", "--listen", "127.0.0.1:%d" % free_port(), "--token-file", f)


@pytest.mark.parametrize("address", ["0.0.0.0", "[::]", "own"])
def test_beyond_loopback_needs_a_token(tmp_path, address):
    if address == "own":
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
            try:
                s.connect(("192.0.2.1", 9))
                address = s.getsockname()[0]
            except OSError:
                pytest.skip("no address but loopback here")
    line = fails("--state", tmp_path / "s", "--listen", "%s:%d" % (address, free_port()))
    assert "token" in line and "--token-file" in line and "127.0.0.1" in line and "umask 077" in line, "no remedy in the message: " + line


def test_beyond_loopback_with_a_token(serve, tokens):
    d = serve("--token-file", tokens, listen="0.0.0.0", wait=False)
    d.token = ALICE
    d.wait_ready()
    assert d.execute("1")["success"]
    assert d.get("/sessions", headers={"Authorization": None}, token="x" * 40).status == 401


# ---- tokens -------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def guarded(pytestconfig, tokens):
    """One daemon for the tests that send few wrong tokens: together fewer than ten, after which an address is blocked."""
    with Daemon(pytestconfig.serve_dir, "--token-file", tokens, "--log-level", "debug", "--pool", "1") as d:
        yield d


@pytest.fixture
def guessed(serve, tokens):
    """A daemon of the test's own, for guesses."""
    return serve("--token-file", tokens, "--log-level", "debug")


def test_without_a_token(guarded):
    for method, path, body in [("POST", "/execute", {"code": "1"}), ("GET", "/sessions", None), ("GET", "/metrics", None),
                               ("DELETE", "/sessions/x", None), ("POST", "/pip_install", {"package": "x"}), ("GET", "/nothing", None),
                               ("PUT", "/execute", None), ("OPTIONS", "/execute", None)]:
        r = guarded.request(method, path, body)
        assert r.status == 401 and r.error["code"] == "unauthorized", (method, path, r)
        assert r.headers["www-authenticate"].startswith("Bearer"), r
    for path in ("/health", "/docs", "/openapi.json"):
        assert guarded.get(path).status == 200


def test_with_a_token(guarded):
    for headers in ({"Authorization": "Bearer " + ALICE}, {"authorization": "bearer   " + ALICE}, {"X-API-Key": ALICE}):
        r = guarded.post("/execute", {"code": "print(1)"}, headers=headers)
        assert r.status == 200 and r.json["stdout"] == "1\n", r


WRONG = ["Bearer " + "0" * 64, "Bearer", "Bearer ", "Basic " + ALICE, ALICE, "Bearer " + ALICE[:-1], "Bearer " + ALICE + "0",
         "Bearer " + ALICE + " " + ALICE, "Bearer alice:" + ALICE, "Bearer " + ALICE.upper()]


def test_with_a_wrong_token(guessed):
    """Ten wrong tokens: an eleventh would be blocked for a while."""
    for value in WRONG:
        r = guessed.post("/execute", {"code": "1"}, headers={"Authorization": value})
        assert r.status == 401 and r.error["code"] == "unauthorized" and ALICE not in r.body.decode(), (value, r)


def test_wrong_authorization_is_not_saved_by_the_other_header(guarded):
    r = guarded.get("/sessions", headers={"Authorization": "Bearer " + "0" * 64, "X-API-Key": ALICE})
    assert r.status == 401, r


def test_body_of_a_stranger_is_not_read(guarded):
    """The answer follows the head; the daemon does not wait for the eight megabytes."""
    with guarded.connect(20) as s:
        s.sendall(b"POST /execute HTTP/1.1\r\nHost: localhost\r\nContent-Length: 8000000\r\n\r\n")
        assert s.recv(100).startswith(b"HTTP/1.1 401 ")


def test_token_in_the_url(guarded):
    for name in ("token", "access_token", "api_key", "apikey", "X-API-Key", "Authorization", "TOKEN", "tok%65n"):
        r = guarded.get("/sessions?%s=%s" % (name, ALICE))
        assert r.status == 400 and r.error["code"] == "token_in_url" and ALICE not in r.body.decode(), r
    assert ALICE not in guarded.log_text()


def test_body_of_a_stranger_is_not_a_request(guarded):
    """A request inside the body of a refused request is never parsed."""
    inner = b"GET /sessions HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\n\r\n" % ALICE.encode()
    for head in (b"Content-Length: %d" % len(inner), b"Transfer-Encoding: chunked"):
        body = inner if b"Length" in head else b"%x\r\n%s\r\n0\r\n\r\n" % (len(inner), inner)
        with guarded.connect(10) as s, s.makefile("rb") as f:
            s.sendall(b"POST /execute HTTP/1.1\r\nHost: localhost\r\n" + head + b"\r\n\r\n" + body)
            assert read_response(f).status == 401
            s.settimeout(1)
            try:
                assert read_response(f) is None
            except TimeoutError:
                pass


@pytest.mark.parametrize("name", ["Authorization", "X-API-Key"])
def test_two_tokens_in_one_request(guarded, name):
    """A request with two tokens is refused, because two parsers could choose different ones."""
    good, bad = ("Bearer " + ALICE, "Bearer " + "0" * 64) if name == "Authorization" else (ALICE, "0" * 64)
    for first, second in ((good, bad), (bad, good)):
        a, = guarded.raw(b"GET /sessions HTTP/1.1\r\nHost: localhost\r\n%s: %s\r\n%s: %s\r\nConnection: close\r\n\r\n" % (
            name.encode(), first.encode(), name.encode(), second.encode()), 1)
        assert a.status in (400, 401), a


def test_owners_do_not_see_each_other(guarded):
    name = unique("shared")
    a = guarded.execute("secret = 'of alice'", session_id=name, token=ALICE)
    b = guarded.execute("'secret' in globals()", session_id=name, token=BOB)
    assert a["session_id"] == b["session_id"] == name and b["result"]["text/plain"] == "False", "one name, two sandboxes"
    only = unique("only")
    guarded.execute("1", session_id=only, token=ALICE)
    assert set(guarded.sessions(token=ALICE)) == {name, only} and set(guarded.sessions(token=BOB)) == {name}
    assert guarded.sessions(token=THIRD) == {}
    foreign = guarded.request("DELETE", "/sessions/" + only, token=BOB)
    nothing = guarded.request("DELETE", "/sessions/" + unique(), token=BOB)
    assert foreign.status == nothing.status == 404
    assert foreign.json == nothing.json, "the answer reveals that the session exists"
    assert guarded.request("POST", "/sessions/%s/interrupt" % only, token=BOB).status == 404
    assert guarded.end_session(name, token=BOB).status == 204
    assert guarded.execute("secret", session_id=name, token=ALICE)["result"]["text/plain"] == "'of alice'"
    with WebSocket(guarded, headers={"Authorization": "Bearer " + BOB}) as w:
        assert w.run("'secret' in globals()", session_id=name)["result"]["text/plain"] == "False"


def test_websocket_needs_a_token(guarded):
    with WebSocket(guarded) as w:
        assert w.answer.status == 401, w.answer


def test_the_readme_lines_for_other_machines(serve, tmp_path):
    """As printed, but for the port: the host that they name is served, and the answer to another name says what is missing."""
    lines = (Path(__file__).resolve().parents[2] / "README.md").read_text().splitlines()
    at = next(i for i, line in enumerate(lines) if line.startswith("openssl rand"))
    subprocess.run(["sh", "-ec", lines[at]], cwd=tmp_path, check=True, timeout=HANG)
    words = lines[at + 1].split()
    assert words[:3] == ["build/caisson", "serve", "--listen"] and words[3] == "0.0.0.0:8001", words
    d = serve(*[tmp_path / w if w == "tokens" else w for w in words[4:]], listen="0.0.0.0", token=(tmp_path / "tokens").read_text().strip().split(":")[1])
    assert d.get("/sessions", headers={"Host": "box.example:8001"}).status == 200
    r = d.get("/sessions", headers={"Host": "other.example:8001"})
    assert (r.status, r.code) == (421, "forbidden_host") and "--allow-host NAME" in r.error["hint"], r


def test_a_daemon_without_tokens_refuses_every_token(daemon, short_dir, serve):
    """Its sender means another daemon, or believes to be somebody else than the user who is served."""
    for headers in ({"Authorization": "Bearer " + ALICE}, {"Authorization": "token x"}, {"X-API-Key": "x"}):
        r = daemon.get("/sessions", headers=headers)
        assert (r.status, r.code) == (401, "unauthorized") and "this daemon has no tokens" in r.error["message"], (headers, r)
        assert daemon.get("/health", headers=headers).status == 200, "nobody needs a token for it"
    with WebSocket(daemon, headers={"X-API-Key": "x"}) as w:
        assert w.answer.status == 401, w.answer
    for headers in ({"Authorization": "token "}, {"Authorization": "Bearer"}, {"X-API-Key": ""}, {"Authorization": "Basic eDp5"}):
        assert daemon.get("/sessions", headers=headers).status == 200, headers  # of clients that have no token
    serve(socket=short_dir / "s")
    r = subprocess.run([BIN, "ps"], env=clean_env(CAISSON_SOCKET=str(short_dir / "s"), CAISSON_TOKEN=ALICE), capture_output=True, text=True, timeout=HANG)
    assert r.returncode == 4 and "has no tokens (leave out --token-file, and unset" in r.stderr, r


def test_brute_force_gets_429(guessed):
    answers = []
    while len(answers) < 12 or len(answers) < 100 and answers[-1].status != 429:  # a slow client has regained some of its attempts
        answers.append(guessed.get("/sessions", token=secrets.token_hex(32)))
    statuses = [r.status for r in answers]
    assert statuses[:10] == [401] * 10 and set(statuses[10:]) <= {401, 429} and 429 in statuses, statuses
    blocked = next(r for r in answers if r.status == 429)
    assert blocked.error["code"] == "rate_limited" and 1 <= int(blocked.headers["retry-after"]) <= 60
    assert guessed.get("/health").status == 200, "routes without a token are blocked"
    assert len([e for e in guessed.log("auth_blocked")]) == 1, "the block was not logged once"


def guess(d, n=60):
    """Send wrong tokens until the address is blocked."""
    assert any(d.get("/sessions", token=secrets.token_hex(32)).status == 429 for _ in range(n))


def test_a_right_token_passes_whatever_else_the_address_sends(guessed):
    """Behind a proxy all clients have one address: a stranger's guesses lock no other client out."""
    guess(guessed)
    for _ in range(5):
        begin = time.monotonic()
        assert guessed.execute("print(1)", token=ALICE)["stdout"] == "1\n"
        assert guessed.get("/sessions", token=BOB).status == 200
        assert time.monotonic() - begin < 0.9 * SLOW, "a valid token had to wait"
    assert guessed.get("/sessions").status == 401, "a request without a token was not answered with 401"
    with WebSocket(guessed, headers={"Authorization": "Bearer " + ALICE}) as w:
        assert w.run("1 + 1")["result"]["text/plain"] == "2"


def test_guesses_are_slow(guessed):
    """After guesses, a connection of that address gets one answer per second, and the daemon reads nothing more of it."""
    guess(guessed)
    request = b"POST /execute HTTP/1.1\r\nHost: localhost\r\nContent-Length: 4000000\r\nAuthorization: Bearer %s\r\n\r\n"
    begin = time.monotonic()
    with guessed.connect(20) as s, s.makefile("rb") as f:
        s.sendall(request % secrets.token_hex(32).encode() + b"x" * 100000)
        r = read_response(f)
        assert r.status in (401, 429) and (r.status == 401 or time.monotonic() - begin > 0.9), r
    with guessed.connect(20) as s, s.makefile("rb") as f:
        one = b"GET /sessions HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\n\r\n"
        begin = time.monotonic()
        s.sendall(b"".join(one % secrets.token_hex(32).encode() for _ in range(3)))
        answers = [read_response(f).status for _ in range(3)]
        assert set(answers) <= {401, 429} and time.monotonic() - begin > 0.9 * answers.count(429), answers
    # Clients that leave before their answer leave nothing behind.
    for _ in range(50):
        with guessed.connect(20) as s:
            s.sendall(request % secrets.token_hex(32).encode())
    assert guessed.execute("print(1)", token=ALICE)["stdout"] == "1\n"


# ---- before authentication --------------------------------------------------------------------------------------------------


def from_address(d, address):
    s = socket.socket()
    s.bind((address, 0))
    s.settimeout(20 * SLOW)
    s.connect(("127.0.0.1", d.port))
    return s


def is_closed(s):
    s.setblocking(False)
    try:
        return s.recv(1) == b""
    except BlockingIOError:
        return False
    except ConnectionError:
        return True


def few_files():
    resource.setrlimit(resource.RLIMIT_NOFILE, (1024, 1024))


@pytest.fixture
def small(serve, tokens):
    """256 connections at most, and 32 of them strangers of one address."""
    return serve("--token-file", tokens, "--pool", "0", preexec_fn=few_files)


GET = b"GET /sessions HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\n\r\n"


def test_silent_connections_of_one_address_do_not_block_others(small):
    """They take at most an eighth of the places, the oldest is closed for a new one, and a client with a token stays."""
    with from_address(small, "127.0.0.1") as known, known.makefile("rb") as f:
        known.sendall(GET % ALICE.encode())
        assert read_response(f).status == 200
        many = [from_address(small, "127.0.0.1") for _ in range(300)]
        try:
            assert wait_until(lambda: sum(map(is_closed, many)) >= 300 - 32), "the oldest are closed"
            closed = [is_closed(s) for s in many]
            assert all(closed[:268]) and not any(closed[270:]), closed.index(False)
            for address in ("127.0.0.1", "127.0.0.77"):  # the same address, and another
                with from_address(small, address) as s, s.makefile("rb") as g:
                    s.sendall(GET % BOB.encode())
                    assert read_response(g).status == 200, address
            known.sendall(GET % ALICE.encode())
            assert read_response(f).status == 200, "an authenticated connection was closed"
        finally:
            for s in many:
                s.close()


def test_a_refused_request_creates_no_owner(small):
    """Neither a wrong token, nor a missing one, nor an open route adds an owner."""
    asked = {"none": b"GET /sessions HTTP/1.1\r\nHost: localhost\r\n\r\n", "open": b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n",
             "wrong": GET % (b"0" * 64)}
    for i, (what, data) in enumerate(asked.items()):
        address = "127.0.1.%d" % (i + 1)
        many = []
        try:
            for n in range(40):
                s = from_address(small, address)
                many.append(s)
                s.sendall(data if n < 8 or what != "wrong" else asked["none"])  # more of them would be delayed
                assert s.recv(65536), what
            assert wait_until(lambda: sum(map(is_closed, many)) == 8), what
        finally:
            for s in many:
                s.close()


def test_no_token_anywhere(guessed, tokens):
    """Not in the log at its most detailed level, not in a listing, an error, a process title or the environment."""
    wrong = secrets.token_hex(32)
    guessed.execute("1", token=ALICE)
    guessed.get("/sessions", token=wrong)
    guessed.get("/sessions?token=" + BOB)
    guessed.post("/execute", {"code": "1", BOB: 1}, token=ALICE)
    d = guessed.execute("import os, subprocess\nprint(dict(os.environ), subprocess.getoutput('cat /proc/*/cmdline /proc/*/environ'))", token=ALICE)
    texts = [guessed.log_text(), guessed.out_path.read_text(), d["stdout"]]
    for p in guessed.processes():
        for name in ("cmdline", "environ", "comm"):
            try:
                texts.append(Path("/proc/%d/%s" % (p, name)).read_bytes().decode(errors="replace"))
            except OSError:
                pass
    for t in (ALICE, BOB, THIRD, wrong):
        assert not any(t in text for text in texts), [text for text in texts if t in text][0][-300:]
    assert any("alice" == e.get("owner") for e in guessed.log("request")), "the owner is not in the log"


def test_token_file_may_not_be_needed_again(guessed, tokens):
    """Only hashes are kept: the daemon's memory does not contain the text of a token."""
    if os.geteuid() or SLOW > 1:
        pytest.skip("only root can look, and not into a sanitized build")
    found = []
    with open("/proc/%d/maps" % guessed.pid) as maps, open("/proc/%d/mem" % guessed.pid, "rb", 0) as mem:
        for line in maps:
            span, perms = line.split()[:2]
            if "rw" not in perms:
                continue
            low, high = (int(x, 16) for x in span.split("-"))
            try:
                mem.seek(low)
                if BOB.encode() in mem.read(high - low):
                    found.append(line)
            except (OSError, ValueError):
                pass
    assert found == []


# ---- browsers ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("host,ok", [
    ("localhost", True), ("localhost:1234", True), ("LOCALHOST", True), ("127.0.0.1", True), ("127.0.0.1:99", True), ("[::1]", True), ("[::1]:80", True),
    ("evil.example", False), ("localhost.evil.example", False), ("127.0.0.1.evil.example", False), ("evil.example:80", False), ("", False),
    ("0.0.0.0", False), ("127.0.0.1@evil.example", False), ("localhost/", False), ("2130706433", False), ("0x7f.1", False), ("[::ffff:1.2.3.4]", False),
    ("192.168.1.5", False), ("localhost, evil.example", False), ("local host", False)])
def test_host(daemon, host, ok):
    for method, path, body in (("GET", b"/health", b""), ("POST", b"/execute", b'{"code": "1"}')):
        a = daemon.raw(b"%s %s HTTP/1.1\r\nHost: %s\r\nContent-Length: %d\r\nConnection: close\r\n\r\n" % (
            method.encode(), path, host.encode(), len(body)) + body if body else
            b"GET %s HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n" % (path, host.encode()))[0]
        if ok:
            assert a.status == 200, a
        else:
            assert a.status in (421, 400) and a.error["code"] in ("forbidden_host", "bad_request"), a


ORIGINS = [
    # Origin, Sec-Fetch-Site, allowed
    (None, None, True), ("http://127.0.0.1:{port}", None, True), ("http://127.0.0.1:{port}", "same-origin", True), (None, "none", True),
    (None, "same-origin", True), ("http://evil.example", None, False), ("http://evil.example", "same-origin", False), ("null", None, False),
    ("http://127.0.0.1:1", None, False), ("http://127.0.0.1", None, False), (None, "cross-site", False),
    ("http://127.0.0.1:{port}", "cross-site", False), ("http://127.0.0.1:{port}.evil.example", None, False), ("file://", None, False),
    ("chrome-extension://abc", None, False), ("", None, False), ("http://localhost:{port}", None, False)]


@pytest.mark.parametrize("origin,site,ok", ORIGINS)
def test_origin(daemon, origin, site, ok):
    h = {"Host": "127.0.0.1:%d" % daemon.port, "Content-Type": "application/json"}
    if origin is not None:
        h["Origin"] = origin.format(port=daemon.port)
    if site:
        h["Sec-Fetch-Site"] = site
    before = daemon.metrics().get('sandbox_executions_total{language="python",status="ok"}', 0)
    r = daemon.post("/execute", b'{"code": "1"}', headers=h)
    if ok:
        assert r.status == 200, r
    else:
        assert r.status == 403 and r.error["code"] == "forbidden_origin", r
        assert daemon.metrics().get('sandbox_executions_total{language="python",status="ok"}', 0) == before, "code was run"
    assert not any(k.startswith("access-control-") for k in r.headers)


@pytest.mark.parametrize("origin,status", [("http://evil.example", 403), ("null", 403), ("http://127.0.0.1:{port}", 101), (None, 101)])
def test_origin_of_websockets(daemon, origin, status):
    """A browser opens a WebSocket without asking first: only the Origin distinguishes pages."""
    with WebSocket(daemon, headers={"Origin": origin.format(port=daemon.port)} if origin else {}) as w:
        assert w.answer.status == status, w.answer


@pytest.mark.parametrize("lines", [b"Origin: http://localhost\r\nOrigin: http://evil.example", b"Origin: http://evil.example\r\nOrigin: http://localhost",
                                   b"Sec-Fetch-Site: none\r\nSec-Fetch-Site: cross-site", b"Sec-Fetch-Site: cross-site\r\nSec-Fetch-Site: none"])
def test_two_origins_in_one_request(daemon, lines):
    a, = daemon.raw(b"GET /sessions HTTP/1.1\r\nHost: localhost\r\n" + lines + b"\r\nConnection: close\r\n\r\n", 1)
    assert a.status in (400, 403), a


@pytest.mark.parametrize("target,host", [(b"http://evil.example/health", b"localhost"), (b"http://localhost/health", b"evil.example")])
def test_host_in_the_target(daemon, target, host):
    a, = daemon.raw(b"GET %s HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n" % (target, host), 1)
    assert a.status in (400, 421), a


def test_preflight_gets_no_permission(daemon):
    r = daemon.request("OPTIONS", "/execute", headers={"Origin": "http://evil.example", "Access-Control-Request-Method": "POST",
                                                       "Access-Control-Request-Headers": "content-type"})
    assert r.status == 403 and not any(k.startswith("access-control-") for k in r.headers), r


def test_a_link_to_the_documentation_may_be_followed(daemon):
    h = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}
    assert daemon.get("/docs", headers=h).status == 200
    assert daemon.get("/sessions", headers=h).status == 403
    assert daemon.get("/docs", headers={**h, "Sec-Fetch-Dest": "iframe"}).status == 403


def test_allowed_hosts_and_origins(serve):
    d = serve("--allow-host", "box.example", "--allow-origin", "https://app.example", "--allow-origin", "http://other.example:8080")
    assert d.get("/health", headers={"Host": "box.example:443"}).status == 200
    assert d.get("/health", headers={"Host": "www.box.example"}).status == 421
    for origin, status in [("https://app.example", 200), ("http://app.example", 403), ("https://app.example:8443", 403),
                           ("http://other.example:8080", 200), ("https://sub.app.example", 403)]:
        r = d.post("/execute", {"code": "1"}, headers={"Origin": origin, "Sec-Fetch-Site": "cross-site"})
        assert r.status == status, (origin, r)


def test_tokens_do_not_excuse_a_foreign_origin(guarded):
    r = guarded.post("/execute", {"code": "1"}, headers={"Origin": "http://evil.example"}, token=ALICE)
    assert r.status == 403


def test_failures_are_counted_once(guarded):
    before = guarded.get("/metrics", token=ALICE).body.decode()
    guarded.get("/sessions")
    guarded.get("/sessions", token="0" * 64)
    after = guarded.get("/metrics", token=ALICE).body.decode()

    def count(text):
        return float(next(line for line in text.splitlines() if line.startswith("caisson_auth_failures_total ")).split()[1])
    assert count(after) - count(before) == 2
