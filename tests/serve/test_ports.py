# SPDX-License-Identifier: Apache-2.0
"""test_ports.py - Services in sandboxes, reached through the daemon: requests, callers, and data that must not pass."""
import base64
import hashlib
import http.client
import http.cookiejar
import json
import os
import socket
import subprocess
import urllib.request

import pytest

from box_lib import Box, Events
from cli_lib import Cli
from port_lib import Service, answer_with, honest, raw
from daemon import read_response
from process import SLOW, Later, free_port, memory_kb, name_of, unique, wait_until
from serve_lib import WebSocket, parallel

MIB = 1 << 20
ALICE, BOB = "alice-" + "a" * 40, "bob-" + "b" * 40


@pytest.fixture
def box(daemon):
    with Box(daemon) as b:
        yield b


@pytest.fixture
def service(box):
    return honest(box)


def seen(r):
    assert r.status == 200, r
    s = r.json
    s["headers"] = {k.lower(): v for k, v in s["headers"]}
    return s


# ---- opening and closing -----------------------------------------------------------------------------------


def test_open_list_close(box, daemon):
    r = box.post("/ports/8000")
    assert r.status == 201 and r.json["port"] == 8000 and len(r.json["token"]) == 64, r
    assert r.json["url"] == "http://127.0.0.1:%d%s/ports/8000~%s/" % (daemon.port, box.url, r.json["token"])
    again = box.post("/ports/8000")
    assert again.status == 200 and again.json["token"] == r.json["token"]
    other = box.post("/ports/8001").json
    assert other["token"] != r.json["token"]
    assert {p["port"] for p in box.get("/ports").json["ports"]} == {8000, 8001}
    assert box.get("/ports/8000").json["token"] == r.json["token"]
    assert daemon.request("DELETE", box.url + "/ports/8000").status == 204
    assert box.get("/ports/8000").error["code"] == "no_such_port"
    assert daemon.request("DELETE", box.url + "/ports/8000").error["code"] == "no_such_port"
    assert box.post("/ports/8000").json["token"] != r.json["token"], "a token is never used again"
    for bad in ("0", "65536", "08000", "x", "-1"):
        assert (box.post("/ports/" + bad).status, box.post("/ports/" + bad).error["field"]) == (422, "port")


def test_open_ports_are_bounded(box):
    for i in range(32):
        assert box.post("/ports/%d" % (9000 + i)).status == 201
    assert box.post("/ports/9999").error["code"] == "too_many_ports"
    assert box.post("/ports/9000").status == 200


def test_a_cell_comes_when_it_is_needed(box):
    """A sandbox that has not run anything has no cell; the request makes one, in which nothing listens."""
    url = box.post("/ports/8000").json["url"]
    r = box.daemon.get(url[url.index("/v1/"):])
    assert r.status == 502 and r.error["code"] == "port_closed" and "8000" in r.error["message"]


def test_ledger_and_metrics_tell(box, daemon):
    before = daemon.metrics()
    s = honest(box)
    s.get("hello")
    daemon.request("DELETE", box.url + "/ports/%d" % s.port)
    after = daemon.metrics()
    assert after["caisson_port_requests_total"] == before["caisson_port_requests_total"] + 1
    assert after["caisson_port_bytes_total"] > before["caisson_port_bytes_total"]
    assert after["caisson_port_connections"] == 0
    lines = [json.loads(line) for line in (daemon.state / "ledger/ledger.jsonl").read_text().splitlines()]
    mine = [line for line in lines if line["sandbox"] == box.name and line["event"].startswith("port.")]
    assert [(line["event"], line["port"], line["owner"]) for line in mine] == \
        [("port.open", s.port, "local"), ("port.close", s.port, "local")]
    assert s.token not in json.dumps(lines) and s.token not in daemon.log_text(), "a token is in a log"


def test_no_token_in_the_log(serve):
    """Whatever the sandbox is called, and however the path is written. The path without its token is in the log each time."""
    d = serve("--log-level", "debug")
    with Box(d, "ports") as box:
        s = honest(box)
        assert s.get("control").status == 200
        assert wait_until(lambda: "control" in d.log_text()), "requests are logged"
        assert s.token not in d.log_text() and s.own + "control" in d.log_text()
        port = "/%d~%s" % (s.port, s.token)
        other = ["/v1//sandboxes/ports/ports", "//v1/sandboxes/ports/ports", "/v1/sandboxes/ports/ports/", "/V1/sandboxes/ports/ports", "/x"]
        for path in [p + port + "/x" for p in other] + ["/v1/sandboxes/ports/ports" + p for p in (
                port, port.replace("~", "%7e") + "/x", port.replace("~", "%257E") + "/x", port[:-3] + "/x", port + "0/x", port.upper() + "/x")]:
            assert d.get(path).status in (200, 404, 405, 422), path
        assert s.get("see" + s.path + "end").status == 200
        assert wait_until(lambda: s.own + "see" + s.own + "end" in d.log_text())
        assert s.token[:16] not in d.log_text().lower()
        assert s.token not in (d.state / "ledger/ledger.jsonl").read_text() and s.token not in str(d.metrics())


# ---- what passes -------------------------------------------------------------------------------------------


def test_every_method_path_and_query(service):
    for method in ("GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "PROPFIND"):
        s = seen(service.request(method, "a//b%20c/?token=1&x=%2F+y&x="))
        assert (s["method"], s["target"]) == (method, "/a//b%20c/?token=1&x=%2F+y&x=")
    assert seen(service.get("objects/a%2Fb%2f..%2Fc/d"))["target"] == "/objects/a%2Fb%2f..%2Fc/d", "as it was sent"
    assert seen(service.get(""))["target"] == "/"
    assert seen(service.get("?q"))["target"] == "/?q"
    head = service.request("HEAD")
    assert head.status == 200 and head.body == b"" and int(head.headers["content-length"]) > 0


def test_an_encoded_slash_in_our_part_of_the_path_is_refused(daemon):
    for bad in ("/v1/sandboxes/a%2Fb/ports/8000/x", "/v1/sandboxes/a/ports/8000%2Fx", "/v1/sandboxes/a/files%2Flist", "/v1/sandboxes/a/ports/8000/../x"):
        r = daemon.get(bad)
        assert r.status == 400 and r.error["code"] == "bad_request", (bad, r)


def test_ipv6_service(box):
    assert seen(honest(box, "v6").get("x"))["target"] == "/x"


def test_pythons_http_server_and_curl(box, tmp_path):
    """Real programs on both ends: HTTP/1.0 answers until the end of the connection."""
    box.shell("mkdir site; echo hello >site/a.txt; head -c 3000000 /dev/urandom >site/b; sha256sum <site/b >site/sum")
    port = free_port()
    p = box.start("python3", "-u", "-m", "http.server", str(port), "--directory", "site", "--bind", "127.0.0.1")
    p.until(b"Serving")
    url = box.post("/ports/%d" % port).json["url"]
    out = tmp_path / "b"
    done = subprocess.run(["curl", "-sS", "--fail", url + "a.txt", "-o", "-", url + "b", "-o", out, url + "sum", "-o", "-"],
                          capture_output=True, timeout=60 * SLOW)
    assert done.returncode == 0, done
    hello, digest = done.stdout.decode().split("\n")[:2]
    assert hello == "hello" and digest.split()[0] == hashlib.sha256(out.read_bytes()).hexdigest()
    assert subprocess.run(["curl", "-s", "-o", os.devnull, "-w", "%{http_code}", url + "none"], capture_output=True,
                          timeout=60).stdout == b"404"


def test_keep_alive_of_the_client(service):
    c = http.client.HTTPConnection("127.0.0.1", service.box.daemon.port, timeout=60)
    c.connect()
    sock = c.sock
    for i in range(5):
        c.request("GET", service.path + "n%d" % i)
        r = c.getresponse()
        assert json.loads(r.read())["target"] == "/n%d" % i
        assert c.sock is sock, "the connection is kept"
    c.close()


@pytest.mark.parametrize("chunked", [False, True])
def test_upload(service, chunked):
    data = os.urandom(5 * MIB + 17)
    pieces = (data[i:i + 100000] for i in range(0, len(data), 100000))
    c = http.client.HTTPConnection("127.0.0.1", service.box.daemon.port, timeout=60 * SLOW)
    c.request("PUT", service.path + "up", pieces if chunked else data, encode_chunked=chunked,
              headers={"Transfer-Encoding": "chunked"} if chunked else {})
    s = json.loads(c.getresponse().read())
    c.close()
    assert (s["bytes"], s["sha256"]) == (len(data), hashlib.sha256(data).hexdigest())


def test_expect_continue(service, tmp_path):
    f = tmp_path / "f"
    f.write_bytes(b"x" * 2 * MIB)
    r = subprocess.run(["curl", "-sS", "-H", "Expect: 100-continue", "-T", f, service.url + "f"], capture_output=True, timeout=60 * SLOW)
    s = json.loads(r.stdout)
    assert s["bytes"] == 2 * MIB and "expect" not in {k.lower() for k, _ in s["headers"]}


def test_large_download_in_bounded_memory(box, daemon):
    s = honest(box)
    before = memory_kb(daemon.pid)
    with daemon.connect() as c, c.makefile("rb") as f:
        c.sendall(b"GET %sbig?%d HTTP/1.1\r\nHost: localhost\r\n\r\n" % (s.path.encode(), 100 * MIB))
        head = b""
        while not head.endswith(b"\r\n\r\n"):
            head += f.readline()
        assert b"content-length: %d" % (100 * MIB) in head.lower()
        left, digest, whole = 100 * MIB, hashlib.sha256(), hashlib.sha256()
        while left:
            data = f.read(min(left, MIB))
            assert data
            digest.update(data)
            left -= len(data)
    for _ in range(100):
        whole.update(bytes(range(256)) * 4096)
    assert digest.digest() == whole.digest()
    if SLOW == 1:
        assert memory_kb(daemon.pid) < before + 16 * 1024


def test_client_that_does_not_read(box, daemon):
    """The service waits; the daemon keeps only a queue."""
    s = honest(box)
    before = memory_kb(daemon.pid)
    with socket.socket() as c:
        c.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8192)
        c.settimeout(60)
        c.connect(("127.0.0.1", daemon.port))
        c.sendall(b"GET %sbig?%d HTTP/1.1\r\nHost: localhost\r\n\r\n" % (s.path.encode(), 200 * MIB))
        assert c.recv(100)
        assert seen(s.get("others"))["target"] == "/others", "others are served meanwhile"
        assert wait_until(lambda: box.get("/ports/%d" % s.port).json["connections"] == 1)
        if SLOW == 1:
            assert memory_kb(daemon.pid) < before + 16 * 1024
    assert wait_until(lambda: box.get("/ports/%d" % s.port).json["connections"] == 0)


def test_service_that_does_not_read(box, daemon):
    """A client that sends more than the service reads must wait."""
    s = Service(box, "import socket, sys, time\nl = socket.create_server(('127.0.0.1', int(sys.argv[1])))\nprint('ready')\nc = l.accept()\n"
                "time.sleep(1000)", str(port := free_port()), port=port)
    before = memory_kb(daemon.pid)
    with daemon.connect(1) as c:
        c.sendall(b"PUT %sx HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n" % (s.path.encode(), 1 << 30))
        with pytest.raises(OSError):
            for _ in range(200):
                c.sendall(b"x" * MIB)
        if SLOW == 1:
            assert memory_kb(daemon.pid) < before + 16 * 1024


def test_events_come_one_by_one(service):
    box = service.box
    with Events(box.daemon, "GET", service.path + "sse") as e:
        assert e.status == 200 and e.headers["content-type"] == "text/event-stream"
        for i, chunk in enumerate(e.chunks()):
            assert chunk == b"data: %d\n\n" % i
            box.shell("touch go-%d" % i)
    assert i == 2


def test_websocket(service):
    with WebSocket(service.box.daemon, service.path + "ws", {"Origin": "null"}) as w:
        assert w.answer.status == 101 and w.answer.headers["upgrade"] == "websocket", w.answer
        assert w.answer.headers["x-saw-origin"] == "http://localhost:%d" % service.port
        for data in (b"hello", os.urandom(70000), os.urandom(3 * MIB)):
            w.frame(w.BINARY, data)
            assert w.read() == (w.BINARY, data)
        assert service.box.get("/ports/%d" % service.port).json["connections"] == 1
        w.frame(w.CLOSE, b"\x03\xe8")
        assert w.read() == (w.CLOSE, b"\x03\xe8")
        assert w.read() == (None, b"")
    assert wait_until(lambda: service.box.get("/ports/%d" % service.port).json["connections"] == 0)


def test_end_of_the_clients_stream_passes(box, daemon):
    """After a switch of protocols the service receives the end of the stream, and can still answer."""
    s = Service(box, "import socket, sys\nl = socket.create_server(('127.0.0.1', int(sys.argv[1])))\nprint('ready')\nc = l.accept()[0]\n"
                "while b'\\r\\n\\r\\n' not in c.recv(65536): pass\n"
                "c.sendall(b'HTTP/1.1 101 Go\\r\\nUpgrade: Echo\\r\\nConnection: upgrade\\r\\n\\r\\nearly ')\n"
                "d = b''\nwhile True:\n x = c.recv(65536)\n if not x: break\n d += x\n"
                "c.sendall(b'%d bytes' % len(d))\n", str(port := free_port()), port=port)
    with daemon.connect() as c, c.makefile("rb") as f:
        c.sendall(b"GET %s HTTP/1.1\r\nHost: localhost\r\nConnection: upgrade\r\nUpgrade: echo\r\n\r\n" % s.path.encode())
        assert read_response(f).status == 101
        c.sendall(b"x" * 300000)
        c.shutdown(socket.SHUT_WR)
        assert f.read() == b"early 300000 bytes"


# ---- what never passes -------------------------------------------------------------------------------------


def test_headers_of_the_daemon_stay_outside(service):
    s = seen(service.get("h", headers={
        "X-Caisson-Port-Token": service.token, "X-Caisson-Anything": "1", "X-Forwarded-For": "6.6.6.6", "X-Forwarded-Host": "evil",
        "Forwarded": "for=6.6.6.6", "X-Real-IP": "6.6.6.6", "Cookie": "session=secret; caisson-port-mine=1; other=2",
        "Referer": service.url, "Proxy-Authorization": "Basic x", "Connection": "close, x-hop", "X-Hop": "1", "TE": "trailers",
        "X-Mine": "passes", "Authorization": "Basic eDp5", "X-API-Key": "the service's", "User-Agent": "test", "Accept": "*/*"}))
    h = s["headers"]
    assert service.token not in json.dumps(s)
    for name in ("x-caisson-port-token", "x-caisson-anything", "forwarded", "x-real-ip", "referer", "proxy-authorization", "x-hop", "te"):
        assert name not in h, name
    assert h["host"] == "localhost:%d" % service.port and h["connection"] == "close"
    assert h["cookie"] == "mine=1"
    assert (h["x-forwarded-for"], h["x-forwarded-proto"]) == ("127.0.0.1", "http")
    assert h["x-forwarded-host"] == "127.0.0.1:%d" % service.box.daemon.port
    assert h["x-forwarded-prefix"] == service.own[:-1]
    # Without a token file none of these is a token of the daemon.
    assert (h["x-mine"], h["authorization"], h["x-api-key"]) == ("passes", "Basic eDp5", "the service's")


def test_headers_for_the_whole_origin_are_dropped(service):
    r = service.get("answer", headers=answer_with(
        200, ("Clear-Site-Data", '"*"'), ("Strict-Transport-Security", "max-age=1"), ("Alt-Svc", 'h2=":1"'), ("Service-Worker-Allowed", "/"),
        ("NEL", "{}"), ("Connection", "x-hop"), ("X-Hop", "1"), ("X-Own", "passes")))
    assert r.status == 200 and r.headers["x-own"] == "passes"
    for name in ("clear-site-data", "strict-transport-security", "alt-svc", "service-worker-allowed", "nel", "x-hop"):
        assert name not in r.headers, name


def test_pages_have_no_origin(service):
    """The service's own policy is kept beside ours: a browser enforces both."""
    c = http.client.HTTPConnection("127.0.0.1", service.box.daemon.port, timeout=60)
    c.request("GET", service.path + "answer", headers=answer_with(200, ("Content-Security-Policy", "script-src *")))
    r = c.getresponse()
    r.read()
    c.close()
    own, ours = r.headers.get_all("content-security-policy")
    assert own == "script-src *"
    assert ours.split()[0] == "sandbox" and "allow-scripts" in ours and "allow-same-origin" not in ours


def test_the_token_does_not_reach_other_sites(service):
    """The token is in the address of the page. A browser does not send this address to other sites, whatever the service sets; and
    the service does not get it either."""
    for wish in ((), ("Referrer-Policy", "unsafe-url"), ("Referrer-Policy", "no-referrer-when-downgrade")):
        c = http.client.HTTPConnection("127.0.0.1", service.box.daemon.port, timeout=60)
        c.request("GET", service.path + "answer", headers=answer_with(200, *([wish] if wish else [])))
        r = c.getresponse()
        r.read()
        c.close()
        assert r.headers.get_all("referrer-policy") == ["no-referrer"], wish
    seen = {k.lower(): v for k, v in service.get("x", headers={"Referer": service.url}).json["headers"]}
    assert "referer" not in seen


def test_pages_without_origin_may_call_their_service(service):
    r = service.get("answer", headers={"Origin": "null", **answer_with(200, ("Access-Control-Allow-Origin", "http://other"))})
    assert r.headers["access-control-allow-origin"] == "*"
    r = service.request("OPTIONS", "x", headers={"Origin": "null", "Access-Control-Request-Method": "PUT"})
    assert r.status == 204 and r.headers["access-control-allow-methods"] == "*"
    r = service.get("answer", headers={"Origin": "http://other", **answer_with(200, ("Access-Control-Allow-Origin", "http://other"))})
    assert r.headers["access-control-allow-origin"] == "http://other", "another header of the service was removed"
    assert service.get("sw.js", headers={"Service-Worker": "script"}).error["code"] == "service_worker"


def test_cookies_are_confined(service):
    """With a cookie jar as in a browser: cookies of the service come back to it, below its own path, and to no other service."""
    r = service.get("answer", headers=answer_with(200, ("Set-Cookie", "sid=1; Path=/app; Domain=127.0.0.1; HttpOnly")))
    assert r.headers["set-cookie"] == "caisson-port-sid=1; HttpOnly; Path=%sapp" % service.path
    jar = http.cookiejar.CookieJar()
    browser = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(jar))
    browser.open(urllib.request.Request(service.url + "answer", headers=answer_with(200, ("Set-Cookie", "sid=7")))).read()
    assert [c.path for c in jar] == [service.path]
    s = json.loads(browser.open(service.url + "next").read())
    assert dict(s["headers"])["cookie"] == "sid=7"
    other = honest(service.box)
    assert "cookie" not in dict(json.loads(browser.open(other.url).read())["headers"])


def test_redirects_stay_below(service):
    def fill(text):
        return text.format(path=service.path, own=service.own, port=service.port)
    for location, expected in (
            ("/a?b", "{path}a?b"), ("b/c", "b/c"), ("http://localhost:{port}/x", "{path}x"), ("https://127.0.0.1:{port}", "{path}"),
            ("//localhost:{port}/x", "{path}x"), ("http://example.com/x", "http://example.com/x"),
            ("http://localhost:1{port}/x", "http://localhost:1{port}/x"), ("//example.com/", "//example.com/"), ("{own}x", "{path}x")):
        r = service.get("answer", headers=answer_with(302, ("Location", fill(location))))
        assert (r.status, r.headers["location"]) == (302, fill(expected))


# ---- who passes --------------------------------------------------------------------------------------------


def test_tokens_of_ports(box, daemon):
    a, b = honest(box), honest(box)
    assert seen(daemon.get(a.own + "x", headers={"X-Caisson-Port-Token": a.token}))["target"] == "/x"
    r = daemon.get(a.own + "x", headers={"X-Caisson-Port-Token": b.token})
    assert r.status == 401 and r.error["code"] == "unauthorized"
    for wrong in (b.token, a.token[:-1] + ("0" if a.token[-1] != "0" else "1"), "x", a.token.upper()):
        r = daemon.get(a.own[:-1] + "~" + wrong + "/x")
        assert r.status == 404 and r.error["code"] == "no_such_port", r
    assert daemon.get(a.path + "x", headers={"Host": "evil.example"}).status == 421
    # No browser sends the token by itself: pages of other sites may use it if they were given it.
    assert a.get("x", headers={"Origin": "http://evil.example", "Sec-Fetch-Site": "cross-site"}).status == 200
    # The owner's own address is guarded like all other routes of the daemon.
    for h in ({"Origin": "http://evil.example"}, {"Origin": "null"}, {"Sec-Fetch-Site": "cross-site"}):
        assert daemon.get(a.own + "x", headers=h).error["code"] == "forbidden_origin"
        assert daemon.post(a.own[:-1], {}, headers=h).error["code"] == "forbidden_origin"


def test_a_person_is_sent_to_the_address_with_the_token(service):
    r = service.box.daemon.get(service.own + "a?b", headers={"Sec-Fetch-Site": "none", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"})
    assert (r.status, r.headers["location"]) == (307, service.path + "a?b")


def test_owners(serve, tmp_path):
    f = tmp_path / "tokens"
    f.write_text("alice:%s\nbob:%s\n" % (ALICE, BOB))
    f.chmod(0o600)
    d = serve("--token-file", f)
    name = unique("box")
    d.token = ALICE
    with Box(d, name) as box:
        s = honest(box)
        d.token = None
        assert d.get(s.own + "x").status == 401
        assert d.get(s.own + "x", token=BOB).error["code"] == "no_such_sandbox"
        for r in (d.post(s.own[:-1], {}, token=BOB), d.get(box.url + "/ports", token=BOB), d.request("DELETE", s.own[:-1], token=BOB)):
            assert r.status == 404
        h = seen(d.get(s.own + "x", token=ALICE))["headers"]
        assert "authorization" not in h
        # The port's token opens only the port.
        assert d.get(box.url, token=s.token).status == 401
        assert seen(d.get(s.path + "x"))["target"] == "/x"
        # The daemon's tokens do not pass, for any owner and on any way in; other tokens do.
        for given in ({"Authorization": "Bearer " + ALICE}, {"Authorization": "Bearer " + BOB}, {"X-API-Key": BOB}):
            h = seen(d.get(s.path + "x", headers=given))["headers"]
            assert "authorization" not in h and "x-api-key" not in h and BOB not in json.dumps(h)
        h = seen(d.get(s.path + "x", headers={"Authorization": "Bearer of-the-service"}))["headers"]
        assert h["authorization"] == "Bearer of-the-service"
        # Two owners may have sandboxes of one name: the token determines which one.
        d.token = BOB
        with Box(d, name) as other:
            d.token = None
            assert d.post(other.url + "/ports/%d" % s.port, {}, token=BOB).json["token"] != s.token
            assert seen(d.get(s.path + "x"))["target"] == "/x"
            assert d.get(s.own + "x", token=BOB).error["code"] == "port_closed"
            d.token = BOB
        d.token = ALICE


OTHER = "other-" + "a" * 40
LEAKS = [
    ("Authorization", "Basic eA==", "Authorization", "Bearer {}"), ("X-API-Key", "x", "X-API-Key", "{}"), ("X_API_Key", "{}"), ("X-Auth-Token", "{}"),
    ("Sec-WebSocket-Protocol", "chat, {}"), ("Sec-WebSocket-Protocol", "bearer.{}"), ("Authorization", "Basic {base64}"), ("X-Mine", "{percent}"),
    ("Cookie", "caisson-port-sid={}"), ("Origin", "http://{}")]


def test_tokens_of_the_daemon_reach_no_service(serve, tmp_path):
    """In no header, cookie or part of the URL. A value of the same form that is no token of the daemon does reach the service."""
    f = tmp_path / "tokens"
    f.write_text("alice:%s\nbob:%s\n" % (ALICE, BOB))
    f.chmod(0o600)
    d = serve("--token-file", f, "--log-level", "debug")
    d.token = ALICE

    def forms(token):
        return {"base64": base64.b64encode(("x:" + token).encode()).decode(), "percent": "".join("%%%02x" % c for c in token.encode())}

    def get(path, *headers):
        c = http.client.HTTPConnection("127.0.0.1", d.port, timeout=60)
        c.putrequest("GET", path)
        for name, value in zip(headers[::2], headers[1::2]):
            c.putheader(name, value)
        c.endheaders()
        r = c.getresponse()
        body = r.read().decode()
        c.close()
        return r.status, body

    with Box(d) as box:
        s = honest(box)
        for leak in LEAKS:
            for token in (OTHER, ALICE, BOB):
                sent = [text.format(token, **forms(token)) for text in leak]
                status, body = get(s.path + "x", *sent, "X-Control", "passes")
                assert status == 200 and "passes" in body, (leak, body)
                there = [text in body.lower() for text in (token, *forms(token).values(), forms(token)["base64"].lower())]
                assert any(there) == (token == OTHER), (leak, body)
        for path in ("x?token={}", "x?access_token={}&y=1", "?q={percent}", "a/{}/b", "a/{percent}", "?b={base64}", "b/{base64}", "?b=Basic%20{base64}"):
            status, body = get(s.path + path.format(OTHER, **forms(OTHER)))
            assert status == 200 and json.loads(body)["target"] == "/" + path.format(OTHER, **forms(OTHER))
            for owner in (ALICE, BOB):
                for way in (s.path, s.own):
                    status, body = get(way + path.format(owner, **forms(owner)), "Authorization", "Bearer " + ALICE)
                    assert (status, json.loads(body)["error"]["code"]) == (400, "token_in_url"), path
                    assert owner not in body
        # Without the right to the port, the answer does not depend on the value.
        assert get(s.own + "x?token=" + ALICE)[0] == 401
        assert get(s.own[:-1] + "~" + "0" * 64 + "/x?token=" + ALICE)[0] == 404
        d.token = None
        for path in ("/" + ALICE, "/v1/sandboxes/" + BOB, "/last-one"):
            assert d.get(path).status == 401
        d.token = ALICE
        assert wait_until(lambda: "last-one" in d.log_text())
        assert ALICE not in d.log_text() and BOB not in d.log_text() and OTHER in d.log_text()


# ---- services that misbehave ---------------------------------------------------------------------------------


OK = b"HTTP/1.1 200 OK\r\n"


NO_ANSWERS = [
    (b"", {}), (b"", {"reset": True}), (b"HTTP/1.1 200 OK\r\nX: 1\r\n", {}), (b"SSH-2.0-x\r\n", {"read": False, "hold": True}),
    (b"HTTP/1.1 999 OK\r\n\r\n", {}), (b"HTTP/1.1 2x0 OK\r\n\r\n", {}), (b"HTTP/9.9 200 OK\r\n\r\n", {}),
    (OK + b"Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello", {}), (OK + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\nhello", {}),
    (OK + b"Content-Length: -5\r\n\r\nhello", {}), (OK + b"Content-Length: 99999999999999999999999\r\n\r\nhello", {}),
    (OK + b"Transfer-Encoding: gzip\r\n\r\nhello", {}), (OK + b"X: a\0b\r\n\r\n", {}), (OK + b"X: a\rb\r\n\r\n", {}),
    (OK + b"A: b\r\n" * 200 + b"\r\n", {}), (OK + b"X: ", {"more": b"aaaa", "times": 1 << 18}), (b"", {"more": b"\r\n", "times": 1000}),
    (b"", {"more": b"HTTP/1.1 100 Continue\r\n\r\n", "times": 100, "hold": True}),
    (b"HTTP/1.1 101 Switch\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n", {"hold": True}),
]


def test_answers_that_are_none(box):
    """Each of these invalid answers is refused, and the daemon keeps nothing of it. (One has a header of a gigabyte.)"""
    before = memory_kb(box.daemon.pid)
    for data, kw in NO_ANSWERS:
        s = raw(box, data, **kw)
        r = s.get("x")
        assert (r.status, r.error["code"]) == (502, "bad_answer"), (data[:80], r)
        assert wait_until(lambda: box.get("/ports/%d" % s.port).json["connections"] == 0)
        s.end()
    if SLOW == 1:
        assert memory_kb(box.daemon.pid) < before + 16 * 1024


BROKEN = [
    OK + b"Content-Length: 500\r\n\r\nhello", OK + b"Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n", OK + b"Transfer-Encoding: chunked\r\n\r\n5\r\nhelloXX0\r\n\r\n",
    OK + b"Transfer-Encoding: chunked\r\n\r\nfffffffffffffffffff\r\nhello"]


def test_answers_that_break_off(box):
    """The client sees that the answer is incomplete."""
    for data in BROKEN:
        s = raw(box, data)
        with pytest.raises((http.client.IncompleteRead, ConnectionError)):
            s.get("x")
        s.end()


def test_answers_before_they_are_asked(box):
    s = raw(box, OK + b"Content-Length: 5\r\n\r\nearlyHTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\nsmuggled", read=False, hold=True)
    for answer in box.daemon.raw(b"GET %s HTTP/1.1\r\nHost: localhost\r\n\r\n" % s.path.encode() * 2, 2):
        assert (answer.status, answer.body) == (200, b"early"), "bytes after an answer were passed on"


def test_interim_answers_are_dropped(box):
    s = raw(box, b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n" + OK + b"Content-Length: 2\r\n\r\nok")
    assert s.get("x").body == b"ok"


def test_answers_without_content(box):
    for head in (b"HTTP/1.1 204 No\r\nX: y\r\n\r\n", b"HTTP/1.1 304 Not\r\nContent-Length: 12\r\nETag: z\r\n\r\n"):
        s = raw(box, head, hold=True)
        r = s.get("x")
        assert r.status == int(head[9:12]) and r.body == b""


def test_answer_before_the_request_was_sent(service):
    """The client gets the answer, and the rest of the request is not waited for."""
    with service.box.daemon.connect() as c, c.makefile("rb") as f:
        c.sendall(b"PUT %sdeaf HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000\r\n\r\nsome" % service.path.encode())
        r = read_response(f)
        assert (r.status, r.body) == (413, b"too much") and r.headers["connection"] == "close"


def test_switch_to_something_else(box):
    s = raw(box, b"HTTP/1.1 101 Switch\r\nUpgrade: other\r\nConnection: upgrade\r\n\r\n", hold=True)
    r, = box.daemon.raw(b"GET %s HTTP/1.1\r\nHost: localhost\r\nConnection: upgrade, close\r\nUpgrade: mine\r\n\r\n" % s.path.encode(), 1)
    assert (r.status, r.error["code"]) == (502, "bad_answer")


def test_full_backlog_delays_nothing_else(box):
    """A listener that never accepts: its clients wait, pid 1 does not."""
    s = Service(box, "import socket, sys, time\nl = socket.create_server(('127.0.0.1', int(sys.argv[1])), backlog=0)\nprint('ready')\ntime.sleep(1000)",
                str(port := free_port()), port=port)
    socks = [box.daemon.connect() for _ in range(8)]
    for c in socks:
        c.sendall(b"GET %s HTTP/1.1\r\nHost: localhost\r\n\r\n" % s.path.encode())
    assert wait_until(lambda: box.get("/ports/%d" % port).json["connections"] == 8)
    assert box.shell("echo still here")["stdout"] == "still here\n"
    assert seen(honest(box).get("x"))["target"] == "/x"
    for c in socks:
        c.close()
    assert wait_until(lambda: box.get("/ports/%d" % port).json["connections"] == 0)


def test_no_process_is_needed(daemon):
    """A sandbox at its limit of processes can still be reached."""
    with Box(daemon, pids=16) as box:
        s = Service(box, "import os, socket, sys, time\nl = socket.create_server(('127.0.0.1', int(sys.argv[1])))\n"
                    "try:\n while True:\n  if os.fork() == 0: time.sleep(1000)\nexcept BlockingIOError: print('ready')\n"
                    "while True:\n c = l.accept()[0]\n c.recv(65536)\n c.sendall(b'HTTP/1.1 200 OK\\r\\n\\r\\nhere')\n c.close()\n",
                    str(port := free_port()), port=port)
        assert "pids limit" in box.exec("true")["stderr"], "the sandbox is not at its limit"
        assert s.get("x").body == b"here"


def raw_get(s, path, headers):
    head = "".join("%s: %s\r\n" % h for h in headers.items())
    return s.box.daemon.raw(("GET %s%s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n%s\r\n" % (s.path, path, head)).encode(), 1)[0]


# ---- bounds and ends ---------------------------------------------------------------------------------------


def fds(pid):
    return len(os.listdir("/proc/%d/fd" % pid))


def test_connections_are_bounded(box, daemon):
    s = raw(box, b"", hold=True)
    socks = [daemon.connect() for _ in range(64)]
    for c in socks:
        c.sendall(b"GET %s HTTP/1.1\r\nHost: localhost\r\n\r\n" % s.path.encode())
    assert wait_until(lambda: box.get("/ports/%d" % s.port).json["connections"] == 64)
    r = s.get("x")
    assert (r.status, r.error["code"]) == (503, "port_busy")
    socks.pop().close()
    assert wait_until(lambda: box.get("/ports/%d" % s.port).json["connections"] == 63)
    for c in socks:
        c.close()


@pytest.mark.parametrize("how", ["close", "remove", "stop", "kill"])
def test_the_end_of_a_port_ends_its_connections(box, daemon, how):
    s = honest(box)
    url = box.url
    with WebSocket(daemon, s.path + "ws") as w, Events(daemon, "GET", s.path + "sse") as e, daemon.connect() as c, c.makefile("rb") as f:
        c.sendall(b"GET %sslow?1000 HTTP/1.1\r\nHost: localhost\r\n\r\n" % s.path.encode())
        w.frame(w.BINARY, b"x")
        assert w.read() == (w.BINARY, b"x")
        chunks = e.chunks()
        assert next(chunks)
        assert wait_until(lambda: box.get("/ports/%d" % s.port).json["connections"] == 3)
        if how == "close":
            assert daemon.request("DELETE", s.own[:-1]).status == 204
        elif how == "remove":
            assert daemon.request("DELETE", url).status in (200, 204)
        elif how == "stop":
            assert box.post("/stop").status == 200
        else:   # the cell as a whole, from outside
            pid, = [p for p in daemon.processes() if name_of(p) == "caisson-init" and has_child_of(p, s)]
            os.kill(pid, 9)
        assert w.read() == (None, b"")
        try:    # a killed service ends its stream like one that is done: without a length, nothing is missing
            assert list(chunks) == [] and how in ("stop", "kill")
        except ConnectionError:
            pass
        r = read_response(f)
        assert r.status in ((404,) if how == "close" else (409,) if how == "remove" else (409, 502)), r
    if how == "kill":
        # The sandbox has another cell, in which nothing listens; until it is noticed, 503 and Retry-After.
        assert wait_until(lambda: s.get("x").error["code"] == "port_closed")
    elif how != "stop":
        assert s.get("x").error["code"] == "no_such_port"
    assert wait_until(lambda: daemon.metrics()["caisson_port_connections"] == 0)


def has_child_of(init, service):
    """Whether this pid 1 belongs to the cell of the service."""
    for task in os.listdir("/proc"):
        if task.isdigit():
            try:
                if b"caisson" not in open("/proc/%s/comm" % task, "rb").read() and \
                        os.readlink("/proc/%s/ns/pid" % task) == os.readlink("/proc/%d/ns/pid" % init) and \
                        str(service.port).encode() in open("/proc/%s/cmdline" % task, "rb").read().split(b"\0"):
                    return True
            except OSError:
                pass
    return False


def test_nothing_is_left(box, daemon):
    s = honest(box)

    def use():
        parallel([lambda: s.get("x")] * 10 + [lambda: raw_get(s, "deaf", {})] * 5)
        with WebSocket(daemon, s.path + "ws") as w:
            w.frame(w.BINARY, b"x")
        with daemon.connect() as c:
            c.sendall(b"GET %sslow?1 HTTP/1.1\r\nHost: localhost\r\n\r\n" % s.path.encode())
        assert wait_until(lambda: daemon.metrics()["caisson_port_connections"] == 0)

    use()   # what the service writes on its way is kept in files that stay open
    before = fds(daemon.pid)
    for _ in range(3):
        use()
    assert wait_until(lambda: fds(daemon.pid) <= before), (before, fds(daemon.pid))
    assert wait_until(lambda: daemon.metrics()["caisson_port_connections"] == 0)


# ---- the command -------------------------------------------------------------------------------------------


def test_command(box, daemon):
    cli = Cli(CAISSON_URL="http://127.0.0.1:%d" % daemon.port)
    s = honest(box)
    assert cli.ok("port", box.name, str(s.port)).out.decode() == s.url + "\n"
    assert cli.ok("port", box.name).out.decode() == "%d %s\n" % (s.port, s.url)
    assert json.loads(cli.ok("port", box.name, str(s.port), "--json").out)["token"] == s.token
    assert cli.ok("port", box.name, str(s.port), "--close").out == b""
    assert cli.ok("port", box.name).out == b""
    r = cli("port", box.name, "70000")
    assert r.code != 0 and "PORT" in r.lines()[0]
    assert cli("port", box.name, "--close").code != 0


BARE = r"""
import socket, sys, threading
l = socket.create_server(("127.0.0.1", int(sys.argv[1])))
print("ready", flush=True)
def serve(c):
    c.sendall(b"220 hello\n")   # this one speaks first
    n = 0
    while data := c.recv(65536):
        c.sendall(data); n += len(data)
    c.sendall(b"\n%d bytes" % n)
    c.close()
while True: threading.Thread(target=serve, args=(l.accept()[0],), daemon=True).start()
"""


def talk(s, data):
    """Send everything and close the direction, while reading everything."""
    with s, s.makefile("rb") as f:
        s.settimeout(60 * SLOW)
        assert f.readline() == b"220 hello\n"

        def send():
            s.sendall(data)
            s.shutdown(socket.SHUT_WR)
        sender = Later(send)
        got = f.read()
        sender.result()
    assert got == data + b"\n%d bytes" % len(data)


@pytest.mark.parametrize("over", ["tcp", "unix", "tls"])
def test_a_port_here(serve, short_dir, over):
    """Any TCP, through a port of this machine: also services that send first, and the end of each direction."""
    flags, kw = [], {}
    if over == "tls":
        cert, key = short_dir / "cert", short_dir / "key"
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj", "/CN=localhost",
                        "-addext", "subjectAltName=IP:127.0.0.1,DNS:localhost", "-keyout", key, "-out", cert], check=True, capture_output=True)
        flags, kw = ["--tls-cert", cert, "--tls-key", key], {"scheme": "https", "wait": False}
    d = serve(*flags, **{"socket": short_dir / "s", **kw})
    cli = Cli(CAISSON_SOCKET=str(short_dir / "s"))
    assert wait_until(lambda: cli("ps").code == 0, 90)
    cli.ok("create", "box")
    port = free_port()
    if over == "tcp":
        cli = Cli(CAISSON_URL="http://127.0.0.1:%d" % d.port)
    elif over == "tls":
        cli = Cli(CAISSON_URL="https://127.0.0.1:%d" % d.port, CAISSON_CA_FILE=str(cert))
    service = cli.start("exec", "--name", "box", "--", "python3", "-u", "-c", BARE, str(port))
    assert service.stdout.readline() == b"ready\n"
    here = cli.start("port", "box", str(port), "--listen", "0")
    try:
        host, _, number = here.stdout.readline().decode().strip().rpartition(":")
        assert host == "127.0.0.1"
        if over == "tls":   # TLS cannot close one direction
            with socket.create_connection((host, int(number)), 60 * SLOW) as s, s.makefile("rb") as f:
                assert f.readline() == b"220 hello\n"
                s.sendall(b"x" * 100000)
                assert f.read(100000) == b"x" * 100000
        else:
            for data in (b"", os.urandom(3 * MIB)):
                talk(socket.create_connection((host, int(number))), data)
            parallel([lambda: talk(socket.create_connection((host, int(number))), b"y" * 50000)] * 5)
    finally:
        for p in (here, service):
            p.kill()
            p.wait()
    cli.ok("rm", "box")


def test_a_port_here_of_nothing(box, daemon):
    cli = Cli(CAISSON_URL="http://127.0.0.1:%d" % daemon.port)
    here = cli.start("port", box.name, str(free_port()), "--listen", "127.0.0.1:0")
    try:
        host, _, number = here.stdout.readline().decode().strip().rpartition(":")
        with socket.create_connection((host, int(number)), 60) as s:
            assert s.recv(1) == b"", "it is closed"
        assert b"nothing listens" in here.stderr.readline()
    finally:
        here.kill()
        here.wait()
    for bad in ("x", "70000", "localhost:1", ":1"):
        r = cli("port", box.name, "80", "--listen", bad)
        assert r.code != 0 and "--listen" in r.lines()[0], r
