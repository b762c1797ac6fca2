# SPDX-License-Identifier: Apache-2.0
"""test_secrets_bound.py - Bound secrets: a placeholder in the sandbox, the value only at its host."""
import base64
import http.server
import json
import os
import re
import shutil
import signal
import socket
import ssl
import subprocess
import textwrap
import threading

import pytest

from box_lib import Box
from egress_lib import Resolver, Web, certificate, gate_of, supervisor_of
from process import unique, wait_until
from serve_lib import Daemon
from test_secrets import canary, files_below, found, in_cell, private, processes_of

PLACEHOLDER = re.compile("caisson-secret-[0-9a-f]{32}")


class Api:
    """An HTTPS server that keeps its requests, and can return them."""

    def __init__(self, tls, directory):
        asked, self.open = [], []
        self.asked, api = asked, self
        self.user = self.password = None

        class Handler(http.server.SimpleHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def __init__(self, *args, **kwargs):
                super().__init__(*args, directory=directory, **kwargs)

            def note(self, body=b""):
                asked.append((self.command, self.path, dict(self.headers), body, self.client_address[1]))

            def do_GET(self):
                self.note()
                if self.path.startswith("/repo.git"):
                    want = "Basic " + base64.b64encode(("git:%s" % api.password).encode()).decode()
                    if self.headers.get("Authorization") != want:
                        self.send_response(401)
                        self.send_header("WWW-Authenticate", "Basic realm=x")
                        self.send_header("Content-Length", "0")
                        self.end_headers()
                        return
                    super().do_GET()
                elif self.path == "/chunks":
                    self.send_response(200)
                    self.send_header("Transfer-Encoding", "chunked")
                    self.end_headers()
                    for _ in range(50):
                        self.wfile.write(b"3e8\r\n" + b"x" * 1000 + b"\r\n")
                    self.wfile.write(b"0\r\n\r\n")
                elif self.path == "/mirror":
                    self.reply(b"see the header", ("X-Mirror", self.headers.get("Authorization", "")))
                elif self.path == "/say-back":
                    self.reply(self.headers.get("Authorization", "").encode())
                elif self.path == "/agent":
                    self.reply(self.headers.get("User-Agent", "").encode())
                elif self.path.endswith("/live"):  # until the connection ends
                    self.send_response(101)
                    self.send_header("Upgrade", "websocket")
                    self.send_header("Connection", "Upgrade")
                    self.end_headers()
                    self.stay(self.path)
                elif self.path.endswith("/events"):
                    self.send_response(200)
                    self.send_header("Content-Type", "text/event-stream")
                    self.end_headers()
                    self.stay(self.path)
                elif self.path == "/socket":
                    self.send_response(101)
                    self.send_header("Upgrade", "websocket")
                    self.send_header("Connection", "Upgrade")
                    self.end_headers()
                    self.wfile.write(b"welcome ")
                    self.wfile.write(self.connection.recv(100))
                    self.close_connection = True
                else:
                    self.reply(b"hello")

            do_DELETE = do_HEAD = do_GET

            def stay(self, what):
                """The server accepts, sends something, and sends it again to each client that answers."""
                api.open.append(what)
                try:
                    self.wfile.write(b"tick\n")
                    while self.connection.recv(100):
                        self.wfile.write(b"tick\n")
                except OSError:
                    pass
                finally:
                    api.open.remove(what)
                    self.close_connection = True

            def do_POST(self):
                if self.headers.get("Transfer-Encoding") == "chunked":
                    body = b""
                    while True:
                        n = int(self.rfile.readline(), 16)
                        body += self.rfile.read(n + 2)[:-2]
                        if n == 0:
                            break
                else:
                    body = self.rfile.read(int(self.headers["Content-Length"]))
                self.note(body)
                self.reply(b"%d" % len(body))

            def reply(self, body, *headers):
                self.send_response(200)
                self.send_header("Content-Length", str(len(body)))
                for h in headers:
                    self.send_header(*h)
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(body)

            def log_message(self, *args):
                pass

        class Quiet(http.server.ThreadingHTTPServer):
            daemon_threads = True

            def finish_request(self, request, address):
                with context.wrap_socket(request, server_side=True) as s:
                    super().finish_request(s, address)
                    try:
                        s.unwrap()
                    except (OSError, ValueError):
                        pass

            def handle_error(self, request, address):
                pass

        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*tls)
        self.httpd = Quiet(("127.0.0.1", 0), Handler)
        self.port = self.httpd.server_address[1]
        threading.Thread(target=self.httpd.serve_forever, daemon=True).start()

    def last(self):
        return self.asked[-1]

    def close(self):
        self.httpd.shutdown()
        self.httpd.server_close()


class World:
    def __init__(self, where):
        self.key, self.tied, self.password, self.custom = canary("key"), canary("tied"), canary("password"), canary("custom")
        (where / "good").mkdir()
        (where / "bad").mkdir()
        (where / "www").mkdir()
        good = certificate(where / "good", "api.test", "git.test", "other.test")
        bad = certificate(where / "bad", "api.test", "bad.test")
        self.api, self.bad, self.plain = Api(good, where / "www"), Api(bad, where / "www"), Web()
        self.api.password = self.password
        self.dns = Resolver({n: ["127.0.0.1"] for n in ("api.test", "git.test", "other.test", "bad.test")})
        file = private(where / "secrets", "API_KEY=%s\nTIED_KEY@api.test=%s\nGIT_PASSWORD@git.test=%s\nCUSTOM_KEY@api.test[X-Custom,Cookie]=%s\n"
                       % (self.key, self.tied, self.password, self.custom))
        self.where, self.good = where, good
        self.daemon = Daemon(where, "--pool", "2", "--egress-private", "127.0.0.0/8", "--egress-dns", self.dns.address,
                             "--egress-ca", good[0], "--secrets-file", file)

    @property
    def values(self):
        return [self.key, self.tied, self.password, self.custom]

    def url(self, host="api.test", path="/", server=None):
        return "https://%s:%d%s" % (host, (server or self.api).port, path)

    def at(self, host="api.test", server=None):
        return "%s:%d" % (host, (server or self.api).port)

    def box(self, *names, egress=None, **spec):
        return Box(self.daemon, secrets=list(names), egress=egress if egress is not None else [self.at()], **spec)

    def ledger(self):
        lines = []
        for path in sorted((self.daemon.state / "ledger").iterdir()):
            lines += [json.loads(line) for line in path.read_text().splitlines() if line.startswith("{")]
        return lines

    def close(self):
        self.daemon.stop()
        for s in (self.api, self.bad, self.plain, self.dns):
            s.close()


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    where = tmp_path_factory.mktemp("bound")
    where.chmod(0o755)
    w = World(where)
    yield w
    w.close()


def python(box, code):
    r = box.post("/execute", {"code": textwrap.dedent(code)})
    assert r.status == 200 and r.json["status"] == "ok", r
    return r.json["stdout"]


def shell(box, script):
    r = box.shell(script)
    assert r["exit_code"] == 0, r
    return r["stdout"]


# ---- the value at its host, and only there -------------------------------------------------------------------------


def test_the_value_reaches_the_host_and_never_the_sandbox(world):
    with world.box("API_KEY@api.test", "TIED_KEY@API.test.") as box:
        assert box.about()["spec"]["secrets"] == ["API_KEY@api.test", "TIED_KEY@api.test"]
        placeholders = shell(box, "echo $API_KEY $TIED_KEY").split()
        assert all(PLACEHOLDER.fullmatch(p) for p in placeholders) and len(set(placeholders)) == 2
        out = python(box, """
            import os, urllib.request
            q = urllib.request.Request(%r, headers={"Authorization": "Bearer " + os.environ["API_KEY"], "X-Auth-Token": os.environ["TIED_KEY"] + ";1"})
            print(urllib.request.urlopen(q).read().decode())
        """ % world.url(path="/v1/models?key=" + placeholders[0]))
        assert out == "hello\n"
        _, path, headers, _, _ = world.api.last()
        assert headers["authorization"] == "Bearer " + world.key and headers["x-auth-token"] == world.tied + ";1"
        assert path == "/v1/models?key=" + placeholders[0], "not in the URL"
        # Not in a body either.
        shell(box, "curl -sS --fail -d token=$API_KEY %s" % world.url())
        assert world.api.last()[3] == ("token=" + placeholders[0]).encode()
    assert wait_until(lambda: "secret.use" in json.dumps(world.ledger())), "a use is not in the ledger"


def test_two_sandboxes_have_nothing_of_each_other(world):
    with world.box("API_KEY@api.test") as one, world.box("API_KEY@api.test") as two:
        mine, yours = (shell(b, "echo $API_KEY").strip() for b in (one, two))
        assert mine != yours
        shell(two, "curl -sS --fail -H 'X-Api-Key: %s' %s" % (mine, world.url()))
        assert world.api.last()[2]["x-api-key"] == mine, "two sandboxes have the same placeholder"
        cas = [shell(b, "tail -n 12 $SSL_CERT_FILE") for b in (one, two)]
        assert cas[0] != cas[1], "two sandboxes have the same authority"


def test_a_placeholder_sent_elsewhere_stays_one(world):
    entries = [world.at(), world.at("other.test"), world.at("git.test")]
    with world.box("API_KEY@api.test", "GIT_PASSWORD@git.test", egress=entries) as box:
        key, password = shell(box, "echo $API_KEY $GIT_PASSWORD").split()
        # The gate does not end TLS to other.test: it has its own certificate.
        box_ca = "/tmp/ca.pem"
        box.shell("cat > %s <<'E'\n%s\nE" % (box_ca, world.good[0].read_text()))
        shell(box, "curl -sS --fail --cacert %s -H 'X-Api-Key: %s' %s" % (box_ca, key, world.url("other.test")))
        assert world.api.last()[2]["X-Api-Key"] == key
        r = box.shell("curl -sS --cacert $SSL_CERT_FILE %s" % world.url("other.test"))
        assert r["exit_code"] == 60, "the gate ended TLS to a host without secrets: %r" % r
        # It does for git.test, which has another secret.
        shell(box, "curl -sS --fail -H 'X-Api-Key: %s' %s" % (key, world.url("git.test")))
        assert world.api.last()[2]["x-api-key"] == key
    assert wait_until(lambda: "secret.stray" in json.dumps(world.ledger()))


def test_a_secret_in_a_response_header_becomes_the_placeholder_again(world):
    with world.box("API_KEY@api.test") as box:
        out = shell(box, "curl -sS -i -H \"Authorization: Bearer $API_KEY\" %s; echo; echo $API_KEY" % world.url(path="/mirror"))
        placeholder = out.split()[-1]
        assert "Bearer " + placeholder in out and world.key not in out
        r = box.shell("curl -sS -o /dev/null -w '%%{http_code}' -X TRACE -H \"X-Api-Key: $API_KEY\" %s" % world.url())
        assert r["stdout"] == "403", r


def test_a_value_is_put_into_headers_for_credentials_alone(world):
    """Servers log other headers and send them back: there the gate refuses the request, with the reason."""
    with world.box("TIED_KEY@api.test", "CUSTOM_KEY@api.test") as box:
        n = len(world.api.asked)
        for header in ("User-Agent: $TIED_KEY", "Referer: https://x/$TIED_KEY", "X-Request-Id: $TIED_KEY", "Cookie: a=$TIED_KEY", "Authorization: $CUSTOM_KEY",
                       "Accept-Language: Basic $(printf x:$TIED_KEY | base64 -w0)"):
            out = shell(box, "curl -sS -D - -H \"%s\" %s" % (header, world.url(path="/agent")))
            assert " 403 " in out and world.tied not in out and world.custom not in out, out
            name, key = header.split(":")[0].lower(), "CUSTOM_KEY" if "CUSTOM" in header else "TIED_KEY"
            assert "the secret %s is not for the header %s" % (key, name) in out, out
        assert len(world.api.asked) == n, "the request reached the host"
        shell(box, "curl -sS --fail -H \"Authorization: Bearer $TIED_KEY\" -H \"x-custom: $CUSTOM_KEY\" -b \"a=$CUSTOM_KEY\" -A plain %s" % world.url())
        got = world.api.last()[2]
        assert got["authorization"] == "Bearer " + world.tied and got["x-custom"] == world.custom and got["cookie"] == "a=" + world.custom
    refused = [e["why"] for e in world.ledger() if e["event"] == "egress.refuse" and e["sandbox"] == box.name]
    assert "the secret TIED_KEY is not for the header user-agent" in refused[0], refused


# ---- clients --------------------------------------------------------------------------------------------------------


def test_git_over_https_with_basic_credentials(world):
    repo = world.where / "www" / "repo.git"
    if not repo.exists():
        work = world.where / "work"
        env = {**os.environ, "HOME": str(world.where), "GIT_CONFIG_NOSYSTEM": "1", "GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@b.test",
               "GIT_COMMITTER_NAME": "a", "GIT_COMMITTER_EMAIL": "a@b.test"}
        for args in (["init", "-q", "-b", "main", str(work)], ["-C", str(work), "commit", "-q", "--allow-empty", "-m", "one commit"],
                     ["clone", "-q", "--bare", str(work), str(repo)], ["-C", str(repo), "update-server-info"]):
            subprocess.run(["git", *args], check=True, env=env, timeout=60)
    with world.box("GIT_PASSWORD@git.test", egress=[world.at("git.test")]) as box:
        out = shell(box, "git clone -q https://git:$GIT_PASSWORD@git.test:%d/repo.git r && git -C r log --format=%%s" % world.api.port)
        assert out == "one commit\n"
        r = box.shell("git clone -q https://git:wrong@git.test:%d/repo.git q" % world.api.port)
        assert r["exit_code"] != 0, "void: the host answers without the password"


def test_node(world):
    if not shutil.which("node"):
        pytest.skip("no node here")
    with world.box("API_KEY@api.test") as box:
        script = "fetch('%s', {headers: {'x-api-key': process.env.API_KEY}}).then(r => r.text()).then(console.log)" % world.url()
        r = box.exec("node", "-e", script)
        assert r["exit_code"] == 0 and r["stdout"] == "hello\n", r
        assert world.api.last()[2]["x-api-key"] == world.key
        r = box.post("/execute", {"language": "javascript", "code": "await (await fetch('%s')).text()" % world.url()})
        assert r.json["status"] == "ok", r


def test_bodies_and_connections(world):
    with world.box("API_KEY@api.test") as box:
        assert shell(box, "head -c 5000000 /dev/zero > big; curl -sS --fail --data-binary @big %s" % world.url()) == "5000000"
        assert shell(box, "curl -sS --fail -H 'Transfer-Encoding: chunked' --data-binary @big %s" % world.url()) == "5000000"
        assert shell(box, "curl -sS --fail %s | wc -c" % world.url(path="/chunks")).strip() == "50000"
        before = len(world.api.asked)
        shell(box, "curl -sS --fail -H \"X-Api-Key: $API_KEY\" %s %s %s" % ((world.url(),) * 3))
        ports = {a[4] for a in world.api.asked[before:]}
        assert len(world.api.asked) == before + 3 and len(ports) == 1, "one connection, three requests: %r" % ports
        assert shell(box, "curl -sS -I -o /dev/null -w '%%{http_code} %%{http_version}' %s" % world.url()) == "200 1.1"


def test_a_websocket_passes(world):
    with world.box("API_KEY@api.test") as box:
        out = python(box, """
            import os, socket, ssl
            s = ssl.create_default_context().wrap_socket(socket.create_connection(("api.test", %d)), server_hostname="api.test")
            s.sendall(b"GET /socket HTTP/1.1\\r\\nHost: api.test:%d\\r\\nUpgrade: websocket\\r\\nConnection: Upgrade\\r\\n"
                      b"Authorization: Bearer " + os.environ["API_KEY"].encode() + b"\\r\\nSec-WebSocket-Key: x\\r\\nSec-WebSocket-Version: 13\\r\\n\\r\\n")
            got = b""
            while b"welcome " not in got:
                got += s.recv(1000)
            s.sendall(os.environ["API_KEY"].encode())
            while True:
                more = s.recv(1000)
                if not more:
                    break
                got += more
            print(got.split(b"\\r\\n")[0].decode(), got.endswith(os.environ["API_KEY"].encode()))
        """ % (world.api.port, world.api.port))
        assert out == "HTTP/1.1 101 Switching Protocols True\n", out
        assert world.api.last()[2]["authorization"] == "Bearer " + world.key


# ---- what is refused ------------------------------------------------------------------------------------------------


def test_a_server_that_is_not_the_host_gets_nothing(world):
    with world.box("API_KEY@bad.test", egress=[world.at("bad.test", world.bad)]) as box:
        before = len(world.bad.asked)
        out = shell(box, "curl -sS -H \"X-Api-Key: $API_KEY\" %s" % world.url("bad.test", server=world.bad))
        e = json.loads(out)["error"]
        assert e["code"] == "egress_failed" and "certificate" in e["message"], e
        assert len(world.bad.asked) == before


def test_the_host_must_be_reachable_at_all(world):
    r = world.daemon.post("/v1/sandboxes", {"name": unique("box"), "secrets": ["API_KEY@api.test"], "egress": ["other.test"]})
    assert r.status == 422 and r.error["field"] == "secrets" and "egress" in r.error["hint"], r


def test_another_host_in_the_head_is_refused(world):
    with world.box("API_KEY@api.test") as box:
        out = shell(box, "curl -sS -H 'Host: other.test' -H \"X-Api-Key: $API_KEY\" %s" % world.url())
        assert json.loads(out)["error"]["code"] == "egress_refused", out


@pytest.mark.parametrize("method, path, allowed", [
    ("GET", "/v1/models", True), ("GET", "/v1/a/b?x=..", True), ("POST", "/v1/models", False), ("GET", "/v2/models", False),
    ("GET", "/v1", False), ("DELETE", "/v1/x", False), ("GET", "/v1/../v2/x", False), ("GET", "/v1/%2e%2e/v2/x", False),
    ("GET", "/v1//x", False), ("GET", "/v1/%2fx", False), ("POST", "/v1/chat/7/send", True), ("POST", "/v1/chat/7/8/send", False),
    ("GET", "/%761/models", True), ("GET", "/v1/..;/admin", False), ("GET", "/v1/.;x/admin", False), ("GET", "/v1/%252e%252e/admin", False),
    ("GET", "/v1/..%255cadmin", False), ("GET", "/v1/x%5c..", False), ("GET", "/v1/%c0%ae%c0%ae/x", False), ("GET", "/v1/x%00", False),
    ("GET", "/v1/%ef%bc%8e%ef%bc%8e/admin", False), ("GET", "/v1/..%20/admin", False), ("POST", "/v1/chat/7%3f/send", False),
    ("GET", "/v1/a%20b;c=d/100%25", True), ("GET", "/v1/my%2520file", True),
])
def test_rules_for_requests(world, method, path, allowed, ruled):
    before = len(world.api.asked)
    body = " -d x" if method == "POST" else ""
    out = shell(ruled, "curl -sS --path-as-is -X %s%s -w '\\n%%{http_code}' '%s'" % (method, body, world.url(path=path)))
    text, _, code = out.rpartition("\n")
    if allowed:
        assert code == "200" and world.api.last()[:2] == (method, path), out
    else:
        assert code == "403" and len(world.api.asked) == before, out
        e = json.loads(text)["error"]
        assert e["code"] == "egress_refused" and ("api.test" in e["message"] or "two ways" in e["message"]), e


@pytest.fixture(scope="module")
def ruled(world):
    with world.box(egress=["get %s/v1/*" % world.at(), "POST %s/v1/chat/*/send" % world.at()]) as box:
        assert box.about()["spec"]["egress"] == ["GET %s/v1/*" % world.at(), "POST %s/v1/chat/*/send" % world.at()]
        yield box


def test_headers_that_define_a_request(world, ruled):
    """A server may take a method or a path from a header: the gate judges the method like the request's own, and refuses the path."""
    def ask(header, method="POST", path="/v1/chat/7/send"):
        return shell(ruled, "curl -sS -X %s -d x -H '%s' -w '\\n%%{http_code}' '%s'" % (method, header, world.url(path=path))).rpartition("\n")
    before = len(world.api.asked)
    for header in ("X-HTTP-Method-Override: DELETE", "X-Method-Override: put", "X-HTTP-Method: PATCH", "X-Original-URL: /admin", "X-Rewrite-URL: /admin"):
        text, _, code = ask(header)
        assert code == "403" and json.loads(text)["error"]["code"] == "egress_refused", (header, text)
    assert len(world.api.asked) == before
    assert ask("X-HTTP-Method-Override: get")[2] == "200" and ask("X-Other: DELETE")[2] == "200"


@pytest.mark.parametrize("headers", [
    ("X-HTTP-Method-Override: GET", "X-HTTP-Method: DELETE"), ("X-HTTP-Method-Override: GET", "X-Method-Override: DELETE"),
    ("X-HTTP-Method-Override: GET", "X-HTTP-Method-Override: DELETE"), ("X_HTTP_Method_Override: DELETE",), ("X.HTTP.Method: DELETE",),
    ("X-HTTP-Method: " + "GET," * 40,), ("X_Original_URL: /admin",), ("X-Original-URI: /admin",), ("X-Forwarded-Uri: /admin",), ("X-Forwarded-Path: /admin",),
    ("X-Forwarded-Method: DELETE",), ("X_Forwarded_Uri: /admin",)], ids="; ".join)
def test_every_header_that_defines_a_request(world, ruled, headers):
    """A server may use any of several headers, and other spellings of their names."""
    def ask(*lines):
        return shell(ruled, "curl -sS -w '\\n%%{http_code}' %s '%s'" % (" ".join("-H '%s'" % line for line in lines), world.url(path="/v1/x"))).rpartition("\n")
    assert ask("X-HTTP-Method-Override: GET", "X-HTTP-Method: get", "X_Other: DELETE")[2] == "200"
    before = len(world.api.asked)
    text, _, code = ask(*headers)
    assert code == "403" and json.loads(text)["error"]["code"] == "egress_refused", text
    assert len(world.api.asked) == before


TALK = """
import os, socket, ssl
s = socket.create_connection(("api.test", %(port)d), timeout=5)
if %(tls)d:
    s = ssl.create_default_context(cafile=os.environ["SSL_CERT_FILE"]).wrap_socket(s, server_hostname="api.test")
s.sendall(%(data)r)
got = b""
try:
    while True:
        more = s.recv(4096)
        if not more:
            break
        got += more
except OSError:
    pass
print(got.decode("latin-1"))
"""


def talk(box, port, data, tls=True):
    """All bytes that come back for these bytes, until the connection ends."""
    r = box.post("/execute", {"code": TALK % {"port": port, "data": data, "tls": tls}, "timeout": 20}).json
    assert r["exit_code"] == 0, r
    return r["stdout"]


def with_body(method, path, host, body):
    return ("%s %s HTTP/1.1\r\nHost: %s\r\nContent-Length: %d\r\n\r\n" % (method, path, host, len(body))).encode() + body


def bare(method, path, host, *more):
    return "".join(line + "\r\n" for line in ("%s %s HTTP/1.1" % (method, path), "Host: " + host) + more).encode() + b"\r\n"


@pytest.mark.parametrize("method", ["DELETE", "GET"])
def test_a_body_is_no_second_request(world, method):
    """A server that does not read a body would take it for a request that no rule has judged."""
    hidden = bare("DELETE", "/admin", "internal.test")
    with world.box(egress=["GET,DELETE %s/v1/*" % world.at()]) as box:
        port, host, before = world.api.port, world.at(), len(world.api.asked)
        # Control: several requests without bodies are answered over one connection, and the hidden one is refused when it is sent openly.
        got = talk(box, port, bare("GET", "/v1/a", host) + bare(method, "/v1/b", host) + bare("DELETE", "/admin", host, "Connection: close"))
        assert [got.count("HTTP/1.1 %d" % s) for s in (200, 403)] == [2, 1], got
        got = talk(box, port, with_body(method, "/v1/c", host, hidden) + bare("GET", "/v1/d", host, "Connection: close"))
        seen = [(a[0], a[1]) for a in world.api.asked[before:]]
        assert ("DELETE", "/admin") not in seen and seen[:2] == [("GET", "/v1/a"), (method, "/v1/b")], seen
        if method == "GET":
            assert got.startswith("HTTP/1.1 403") and "with a body" in got and len(seen) == 2, got
        else:
            assert got.startswith("HTTP/1.1 200") and "connection: close" in got.lower() and got.count("HTTP/1.1") == 1 and seen[2:] == [("DELETE", "/v1/c")], got


def test_a_body_is_no_request_to_another_host(world):
    """Over plain HTTP, without rules: the host of each request is checked, but a body has no host."""
    port, host = world.plain.port, world.at(server=world.plain)
    with world.box(egress=[host]) as box:
        before = len(world.plain.heads)
        got = talk(box, port, with_body("GET", "/a", host, bare("GET", "/hidden", "internal.test")) + bare("GET", "/b", host, "Connection: close"), tls=False)
        assert got.startswith("HTTP/1.1 200") and "internal.test" not in got, got
        assert [path for path, _ in world.plain.heads[before:]] == ["/a"]


def test_a_second_answer_stays_outside(world):
    """A server that ignores `Connection: close`: bytes after its first answer do not reach the sandbox."""
    answer = "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\n%s"
    heard = []

    def serve():
        c = server.accept()[0]
        with c:
            heard.append(c.recv(65536))
            while not heard[0].endswith(b"body"):
                heard[0] += c.recv(65536)
            c.sendall((answer % "first.").encode())
            try:
                c.settimeout(1)
                heard.append(c.recv(65536))
                c.sendall((answer % "second").encode())
            except OSError:
                pass

    with socket.create_server(("127.0.0.1", 0)) as server:
        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        port = server.getsockname()[1]
        host = "api.test:%d" % port
        with world.box(egress=[host]) as box:
            got = talk(box, port, with_body("POST", "/a", host, b"body") + bare("GET", "/b", host, "Connection: close"), tls=False)
        thread.join(5)
    assert "first." in got and "second" not in got and got.count("HTTP/1.1") == 1, got
    assert b"connection: close" in heard[0].lower() and heard[1:] in ([], [b""]), heard


def test_a_ruled_host_takes_nothing_but_http(world, ruled):
    r = ruled.shell("echo hello | timeout 10 curl -sS telnet://%s" % world.at())
    assert r["exit_code"] not in (0, 124), r


def test_rules_hold_in_plain_too(world):
    with world.box("API_KEY@api.test", egress=["GET %s/v1/*" % world.at(server=world.plain), world.at()]) as box:
        url = "http://%s" % world.at(server=world.plain)
        assert shell(box, "curl -sS -H \"X-Api-Key: $API_KEY\" %s/v1/x" % url).startswith("hello from api.test")
        path, headers = world.plain.heads[-1]
        assert PLACEHOLDER.fullmatch(headers["x-api-key"]), "no value without TLS"
        assert "egress_refused" in shell(box, "curl -sS %s/v2/x" % url)


@pytest.mark.parametrize("entry", ["GET  api.test", "G3T api.test", "GET api.test/a?b", "GET api.test/a/../b", "api.test//a", "GET,,POST api.test", "/v1"])
def test_rules_that_could_be_read_in_two_ways(world, entry):
    r = world.daemon.post("/v1/sandboxes", {"name": unique("box"), "egress": [entry]})
    assert r.status == 422 and r.error["field"].startswith("egress"), r


def test_rules_that_come_later_hold_at_once(world):
    with world.box(egress=[world.at()]) as box:
        box.shell("cat > ca.pem <<'E'\n%s\nE" % world.good[0].read_text())
        # An open connection that does not end in the gate yet.
        python(box, """
            import socket, ssl
            s = ssl.create_default_context(cafile="ca.pem").wrap_socket(socket.create_connection(("api.test", %d)), server_hostname="api.test")
        """ % world.api.port)
        r = box.daemon.request("PUT", box.url + "/egress", {"egress": ["GET %s/v1/*" % world.at()]})
        assert r.status == 200, r
        assert python(box, """
            try:
                s.sendall(b"GET /v2/x HTTP/1.1\\r\\nHost: api.test\\r\\n\\r\\n")
                print(s.recv(100))
            except OSError as e:
                print("cut")
        """) in ("cut\n", "b''\n")
        assert shell(box, "curl -sS --fail %s" % world.url(path="/v1/x")) == "hello"
        assert "egress_refused" in shell(box, "curl -sS %s" % world.url(path="/v2/x"))


LIVE = """
import os, socket, ssl
def live(path, key="API_KEY"):
    s = ssl.create_default_context().wrap_socket(socket.create_connection(("api.test", %d)), server_hostname="api.test")
    s.settimeout(10)
    s.sendall(("GET %%s HTTP/1.1\\r\\nHost: api.test\\r\\nUpgrade: websocket\\r\\nConnection: Upgrade\\r\\nSec-WebSocket-Key: x\\r\\n"
               "Authorization: Bearer %%s\\r\\n\\r\\n" %% (path, os.environ[key])).encode())
    got = b""
    while b"tick" not in got: got += s.recv(1000)
    return s
def ticks(s):
    try:
        s.sendall(b"x")
        return s.recv(100)
    except OSError as e:
        return type(e).__name__
"""


def put_rules(world, box, *rules):
    r = box.daemon.request("PUT", box.url + "/egress", {"egress": [r % world.at() for r in rules]})
    assert r.status == 200, r


def test_a_rule_that_is_withdrawn_takes_its_connections(world):
    """A WebSocket and a long answer are judged again by method and path, and the server sees their end at once."""
    with world.box("API_KEY@api.test", egress=["GET %s/v1/*" % world.at(), "GET %s/v2/*" % world.at()]) as box:
        python(box, LIVE % world.api.port + "ws, events, kept = live('/v1/live'), live('/v1/events'), live('/v2/live')")
        assert sorted(world.api.open) == ["/v1/events", "/v1/live", "/v2/live"]
        put_rules(world, box, "GET %s/v1/*", "GET,POST %s/v2/*")  # the control: other rules that allow the same keep them
        assert python(box, "print(ticks(ws), ticks(kept))") == "b'tick\\n' b'tick\\n'\n" and len(world.api.open) == 3
        put_rules(world, box, "POST %s/v1/*", "GET %s/v2/*")
        assert wait_until(lambda: world.api.open == ["/v2/live"]), world.api.open
        assert "tick" not in python(box, "print(ticks(ws), ticks(events))") and python(box, "print(ticks(kept))") == "b'tick\\n'\n"
        net = box.get("/net").json
        assert [c["host"] for c in net["connections"]] == ["api.test"], net
        why = "the rules do not allow its request any more"
        assert [r["why"] for r in net["refusals"]] == [why] * 2, net
        put_rules(world, box, "GET %s/v3")
        assert wait_until(lambda: not world.api.open)
    closed = [e["why"] for e in world.ledger() if e["event"] == "egress.close" and e["sandbox"] == box.name]
    assert closed.count(why) == 3, closed


# ---- nowhere else ---------------------------------------------------------------------------------------------------


def test_bound_values_are_in_no_cell_and_no_file(world):
    with world.box("API_KEY@api.test", "TIED_KEY@api.test") as box:
        sleeper = box.start("sleep", "1000")
        shell(box, "curl -sS --fail -H \"X-Api-Key: $API_KEY\" -H \"X-Auth-Token: $TIED_KEY\" %s" % world.url())
        assert world.api.last()[2]["x-auth-token"] == world.tied
        pids = processes_of(world.daemon.keeper)
        names = ("environ", "cmdline", "maps", "status", "comm")
        assert found(world.values, ["/proc/%d/%s" % (p, n) for p in pids for n in names]) == []
        assert found([shell(box, "echo $API_KEY").strip()], ["/proc/%d/environ" % p for p in pids if in_cell(p)]), "void: the search finds no value"
        assert set(found(world.values, files_below(world.where))) == {str(world.where / "secrets")}
        assert memory_of(world.daemon.pid, world.tied) == 0, "a secret that is tied to a host is not in the front"
        gate = gate_of(world.daemon.pid)
        assert memory_of(gate, world.tied) > 0, "void: the search does not find the value in the gate"
        assert memory_of(supervisor_of(world.daemon.pid), world.tied) == 0, "the gate supervisor has the value in its memory"
        assert sleeper.about()


def test_host_that_echoes_the_secret(world):
    """The one way in which a bound value gets into a sandbox, which docs/secrets.md names; and rules for paths, which prevent it."""
    ask = "curl -sS -D /dev/stderr -H \"Authorization: Bearer $TIED_KEY\" %s 2>&1; env"
    with world.box("TIED_KEY@api.test") as box:
        assert world.tied in shell(box, ask % world.url(path="/say-back")), "void: the host did not repeat the value in a body"
        assert world.tied not in shell(box, ask % world.url(path="/mirror")), "the value came back in a header"
    with world.box("TIED_KEY@api.test", egress=["GET %s/v1/*" % world.at(), "GET %s/mirror" % world.at()]) as box:
        n = len(world.api.asked)
        for path in ("/say-back", "/v1/../say-back", "/v1/%2e%2e/say-back", "//say-back", "/v1/..%2fsay-back", "/mirror/../say-back"):
            out = shell(box, ask.replace("curl", "curl --path-as-is") % world.url(path=path))
            assert " 403 " in out and world.tied not in out, (path, out)
        assert len(world.api.asked) == n, "the request reached the host"
        assert world.tied not in shell(box, ask % world.url(path="/mirror"))
        assert shell(box, ask % world.url(path="/v1/x")).count(" 200 ") == 1 and world.api.last()[2]["authorization"] == "Bearer " + world.tied
        pids = [p for p in processes_of(world.daemon.keeper) if in_cell(p)]
        assert found([world.tied], ["/proc/%d/%s" % (p, n) for p in pids for n in ("environ", "cmdline")]) == []


def memory_of(pid, text):
    """How often the value is in the memory of a process."""
    hits = 0
    with open("/proc/%d/maps" % pid) as maps, open("/proc/%d/mem" % pid, "rb") as mem:
        for line in maps:
            area, mode = line.split()[:2]
            if "r" not in mode or "[v" in line:
                continue
            begin, end = (int(x, 16) for x in area.split("-"))
            if end - begin > 1 << 30:  # memory that a sanitizer has reserved
                continue
            try:
                mem.seek(begin)
                hits += mem.read(end - begin).count(text.encode())
            except (OSError, OverflowError, ValueError):
                continue
    return hits


def test_a_front_that_is_killed_costs_no_placeholder(world):
    with world.box("API_KEY@api.test") as box:
        code = """
            import os, urllib.request
            print(urllib.request.urlopen(urllib.request.Request(%r, headers={"X-Api-Key": os.environ["API_KEY"]})).read().decode())
        """ % world.url()
        assert python(box, code) == "hello\n"
        front = world.daemon.pid
        os.kill(front, signal.SIGKILL)
        wait_until(lambda: world.daemon.find_front() not in (None, front))
        world.daemon.wait_ready()
        assert python(box, "import os\nprint('API_KEY' in os.environ)") == "True\n"
        assert python(box, code) == "hello\n"
        assert world.api.last()[2]["x-api-key"] == world.key


# ---- read again -----------------------------------------------------------------------------------------------------


def rewrite(world, text):
    """Write another file under the same name, send SIGHUP, and wait until it was read."""
    d, names = world.daemon, ("caisson_secrets_reloads_total", "caisson_secrets_rejected_total")
    before = sum(d.metrics()[n] for n in names)
    private(world.where / "secrets.new", text).rename(world.where / "secrets")
    os.kill(d.keeper, signal.SIGHUP)
    assert wait_until(lambda: sum(d.metrics()[n] for n in names) == before + 1)


def test_secrets_are_read_again(world):
    """SIGHUP: a bound secret has its new value from the next request on, a plain one in new sandboxes; an invalid file changes nothing."""
    file = world.where / "secrets"
    old = file.read_text()
    fresh, third = canary("fresh"), canary("third")
    ask = "curl -sS --fail -H \"X-Api-Key: $API_KEY\" -H \"X-Auth-Token: $TIED_KEY\" %s" % world.url()
    try:
        with world.box("API_KEY@api.test", "TIED_KEY@api.test") as box, Box(world.daemon, secrets=["API_KEY"]) as plain:
            shell(box, ask)
            assert world.api.last()[2]["x-api-key"] == world.key and world.api.last()[2]["x-auth-token"] == world.tied
            rewrite(world, old.replace(world.key, fresh) + "THIRD_KEY@api.test=%s\n" % third)
            shell(box, ask)
            assert world.api.last()[2]["x-api-key"] == fresh and world.api.last()[2]["x-auth-token"] == world.tied
            assert shell(plain, "echo $API_KEY") == world.key + "\n", "a plain secret changed in an existing sandbox"
            with Box(world.daemon, secrets=["API_KEY"]) as later, world.box("THIRD_KEY@api.test") as bound:
                assert shell(later, "echo $API_KEY") == fresh + "\n"
                shell(bound, "curl -sS --fail -H \"X-Api-Key: $THIRD_KEY\" %s" % world.url())
                assert world.api.last()[2]["x-api-key"] == third
            # invalid: its message, and the previous values
            rewrite(world, "API_KEY=%s\nnonsense\n" % canary("broken"))
            why = world.daemon.log("secrets_refused")[-1]["why"]
            assert "--secrets-file" in why and "line 2" in why, why
            shell(box, ask)
            assert world.api.last()[2]["x-api-key"] == fresh
            assert world.daemon.post("/v1/sandboxes", {"name": unique(), "secrets": ["NEVER_KEY"]}).status == 422
            # a gate that replaces a killed one has the new values too
            n = world.daemon.metrics()["caisson_gate_restarts_total"]
            os.kill(gate_of(world.daemon.pid), signal.SIGKILL)
            assert wait_until(lambda: world.daemon.metrics()["caisson_gate_restarts_total"] == n + 1)
            shell(box, ask)
            assert world.api.last()[2]["x-api-key"] == fresh and world.api.last()[2]["x-auth-token"] == world.tied
            # a removed secret has no value any more, and its placeholder is reported as stray
            rewrite(world, old.replace("TIED_KEY@api.test", "TIED_KEY@other.test"))
            shell(box, ask)
            assert world.api.last()[2]["x-api-key"] == world.key and PLACEHOLDER.fullmatch(world.api.last()[2]["x-auth-token"])
            assert "secret.stray" in [e["event"] for e in world.ledger() if e["sandbox"] == box.name]
        events = [e for e in world.ledger() if e["event"].startswith("secrets.")]
        assert {e["event"] for e in events} == {"secrets.load", "secrets.reject"}
        assert found([fresh, third], files_below(world.where)) == [], "the value is still somewhere"
    finally:
        rewrite(world, old)


def test_a_secret_that_is_withdrawn_takes_its_connections(world):
    """A tunnel that was opened with the secret ends; one with another secret, or with the same one and a new value, stays."""
    old = (world.where / "secrets").read_text()
    try:
        with world.box("API_KEY@api.test", "TIED_KEY@api.test") as box:
            python(box, LIVE % world.api.port + "tied, plain = live('/tied/live', 'TIED_KEY'), live('/plain/live')")
            rewrite(world, old.replace(world.tied, canary("fresh")))
            assert python(box, "print(ticks(tied), ticks(plain))") == "b'tick\\n' b'tick\\n'\n"
            rewrite(world, old.replace("TIED_KEY@api.test", "TIED_KEY@other.test"))
            assert wait_until(lambda: world.api.open == ["/plain/live"]), world.api.open
            assert python(box, "print(ticks(plain))") == "b'tick\\n'\n"
            assert box.get("/net").json["refusals"][0]["why"] == "a secret that the request was made with was withdrawn"
    finally:
        rewrite(world, old)
