# SPDX-License-Identifier: Apache-2.0
"""test_errors.py - Invalid requests of all kinds: a precise 4xx in the common form, and a daemon that is not affected."""
import json
import select
import socket
import time

import pytest

from daemon import check_error, read_response
from process import HANG, SLOW, Later, unique, wait_until
from serve_lib import check_schema

POST = b"POST /execute HTTP/1.1\r\nHost: localhost\r\n"


def refused(r, status, code, field=None):
    assert (r.status, r.error["code"], r.error.get("field")) == (status, code, field), r
    assert r.headers["x-content-type-options"] == "nosniff" and r.headers["cache-control"] == "no-store", r
    assert r.headers["x-request-id"], r
    return r.error


@pytest.fixture(autouse=True)
def unaffected(daemon):
    """After each of these tests the daemon works, and has not grown."""
    yield
    assert daemon.execute("6 * 7")["result"]["text/plain"] == "42"


class Silent:
    """A request that never completes, and silent connections, from the start or after a request; begun by the first test, checked by the last."""
    answer = ends = None

    @staticmethod
    def ask(daemon):
        with daemon.connect(HANG) as s, s.makefile("rb") as f:
            s.sendall(b"GET /health HTTP/1.1\r\nHost: loc")
            return read_response(f), f.read()

    @staticmethod
    def wait(daemon):
        """The seconds until the one is closed; and the answers that the other, which had sent a request, still gets after that."""
        one = b"GET /sessions HTTP/1.1\r\nHost: localhost\r\n\r\n"
        with daemon.connect(HANG) as never, daemon.connect(HANG) as used, used.makefile("rb") as f:
            begun = time.monotonic()
            used.sendall(one)
            read_response(f)
            assert never.recv(1) == b""
            seconds = time.monotonic() - begun
            used.sendall(one)
            return seconds, read_response(f)


@pytest.fixture(autouse=True)
def silent(daemon):
    if Silent.answer is None:
        Silent.answer = Later(lambda: Silent.ask(daemon))
        Silent.ends = Later(lambda: Silent.wait(daemon))
    return Silent


# ---- bodies -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("body", [
    b"", b"{", b'{"code": "1"', b"not json", b"{'code': '1'}", b'{"code": "1",}', b'{"code": "1"} {}', b'{"code": "1"}x',
    b'{"code": 1e999}', b'{"code": NaN}', b'{"code": "a\nb"}', b'{"code": "\xff"}', b"\xef\xbb\xbf{\"code\": \"1\"}", b"\x00",
    b'{"code": "\\ud800"}', b'{"code": "\\x41"}', b"[" * 100000, b'{"code":' * 50 + b"1" + b"}" * 50, b"{" + b'"a":1,' * 5 + b"}"],
    ids=lambda b: repr(b[:24]))
def test_malformed_json(daemon, body):
    r = daemon.post("/execute", body, headers={"Content-Type": "application/json"})
    assert r.status == 400 and r.error["code"] in ("malformed_json", "too_deep", "duplicate_key", "too_many_values", "out_of_range"), r


def test_duplicate_key(daemon):
    refused(daemon.post("/execute", b'{"code": "1", "code": "2"}'), 400, "duplicate_key")


def test_deep_nesting(daemon):
    refused(daemon.post("/execute", b'{"code": ' + b"[" * 40 + b"]" * 40 + b"}"), 400, "too_deep")


def test_too_many_values(daemon):
    refused(daemon.post("/execute", b'{"code": [' + b"1," * 200000 + b"1]}"), 400, "too_many_values")


@pytest.mark.parametrize("body", ["[]", '"code"', "1", "true", "null"])
def test_not_an_object(daemon, body):
    refused(daemon.post("/execute", body), 422, "not_an_object")


@pytest.mark.parametrize("field,value", [
    ("code", 1), ("code", None), ("code", ["a"]), ("code", {}), ("code", True), ("timeout", "10"),
    ("timeout", True), ("timeout", [1]), ("session_id", 5), ("session_id", {}), ("language", 7), ("language", ["python"]),
    ("stdin", 1), ("stream", "yes"), ("stream", 1)])
def test_wrong_types(daemon, field, value):
    e = refused(daemon.post("/execute", {"code": "1", **{field: value}}), 422, "wrong_type", field)
    assert field in e["message"]


@pytest.mark.parametrize("field,value", [
    ("code", ""), ("timeout", 0), ("timeout", 0.0), ("timeout", 0.0009), ("timeout", -0.5), ("timeout", 120.5), ("timeout", -1), ("timeout", 121), ("timeout", 2**53), ("timeout", 2**63 - 1), ("session_id", "x" * 65),
    ("session_id", ""), ("language", ""), ("language", "x" * 33)])
def test_out_of_range(daemon, field, value):
    refused(daemon.post("/execute", {"code": "1", **{field: value}}), 422, "out_of_range", field)


@pytest.mark.parametrize("number", ["9223372036854775808", "-9223372036854775809", "1" * 400, "1e400"])
def test_number_that_nothing_can_hold(daemon, number):
    r = daemon.post("/execute", '{"code": "1", "timeout": %s}' % number)
    assert r.status in (400, 422) and r.error["code"] == "out_of_range", r


@pytest.mark.parametrize("name", ["a b", "../x", "a/b", ".hidden", "-dash", "ü", "a\nb", "a\u0000b", " a", "a;b", "%41", "_x"])
def test_bad_session_names(daemon, name):
    e = refused(daemon.post("/execute", {"code": "1", "session_id": name}), 422, "invalid_value", "session_id")
    assert name not in e["message"] or len(name) < 3


@pytest.mark.parametrize("name", ["a", "A-b_c.d", "0", "x" * 64])
def test_good_session_names(daemon, name):
    assert daemon.execute("1", session_id=name)["session_id"] == name
    assert daemon.end_session(name).status == 204


@pytest.mark.parametrize("path", ["..%2fx", "a%20b", "%00", "x" * 65, "x" * 5000, "ü"])
def test_bad_session_names_in_paths(daemon, path):
    r = daemon.request("DELETE", "/sessions/" + path) if path.isascii() else \
        daemon.raw(b"DELETE /sessions/\xc3\xbc HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")[0]
    assert r.status in (400, 404, 414, 422) and r.error, r


def test_unknown_field(daemon):
    e = refused(daemon.post("/execute", {"code": "1", "timeouts": 5}), 422, "unknown_field", "timeouts")
    assert "timeout" in e["hint"], "the error does not name the known ones"
    e = refused(daemon.post("/execute", {"code": "1", "x" * 5000: 5}), 422, "unknown_field", daemon_cut(daemon))
    assert len(e["message"]) < 300


def daemon_cut(daemon):
    return daemon.post("/execute", {"code": "1", "x" * 5000: 5}).error["field"]


def test_unknown_field_is_escaped(daemon):
    r = daemon.post("/execute", {"code": "1", "\"<script>\u0001\u2028\n": 5})
    assert r.status == 422 and r.error["code"] == "unknown_field" and b"\n" not in r.body and b"\x01" not in r.body, r


def test_missing_fields(daemon):
    e = refused(daemon.post("/execute", {}), 422, "missing_field", "code")
    assert "code" in e["hint"]
    refused(daemon.post("/execute", {"timeout": 5}), 422, "missing_field", "code")
    refused(daemon.post("/pip_install", {"version": "1"}), 422, "missing_field", "package")


def test_optional_null_means_absent(daemon):
    r = daemon.post("/execute", {"code": "1", "timeout": None, "session_id": None, "language": None, "stdin": None, "stream": None})
    assert r.status == 200 and r.json["session_id"] is None and r.json["language"] == "python", r


def test_nul_in_code(daemon):
    """Python would stop there; so the request is refused."""
    refused(daemon.post("/execute", {"code": "print(1)\0print(2)"}), 422, "invalid_value", "code")


@pytest.mark.parametrize("body", [{"package": ""}, {"package": "x" * 129}, {"package": 1}, {"package": "a", "version": 2}, {"package": "a", "x": 1}])
def test_pip_install_fields(daemon, body):
    assert daemon.post("/pip_install", body).status == 422


def test_oversized_body(serve):
    d = serve("--max-body", "64K")
    big = json.dumps({"code": "#" * 70000}).encode()
    r = d.post("/execute", big)
    refused(r, 413, "payload_too_large")
    assert "at most 65536 bytes (--max-body)" in r.error["message"] and "/files" in r.error["hint"], r
    assert d.execute("#" * 60000)["success"]


def test_oversized_body_is_refused_before_it_is_sent(daemon):
    """A client that sends Expect gets the refusal without sending its body."""
    a, = daemon.raw(POST + b"Content-Length: 999999999999\r\nExpect: 100-continue\r\n\r\n", 1)
    refused(a, 413, "payload_too_large")


def test_oversized_chunked_body(serve):
    d = serve("--max-body", "64K")
    chunk = b"10000\r\n" + b" " * 0x10000 + b"\r\n"
    with d.connect() as s, s.makefile("rb") as f:
        try:
            s.sendall(POST + b"Transfer-Encoding: chunked\r\n\r\n" + chunk * 4)
        except (BrokenPipeError, ConnectionResetError):
            pass
        r = read_response(f)
    refused(r, 413, "payload_too_large")


def test_expect_continue(daemon):
    body = b'{"code": "print(7)"}'
    with daemon.connect() as s, s.makefile("rb") as f:
        s.sendall(POST + b"Content-Length: %d\r\nExpect: 100-continue\r\n\r\n" % len(body))
        assert f.readline() == b"HTTP/1.1 100 Continue\r\n" and f.readline() == b"\r\n"
        s.sendall(body)
        assert read_response(f).json["stdout"] == "7\n"


def test_chunked_body(daemon):
    body = b'{"code": "print(8)"}'
    data = b"".join(b"%x\r\n%s\r\n" % (1, bytes([c])) for c in body) + b"0\r\n\r\n"
    a, = daemon.raw(POST + b"Transfer-Encoding: chunked\r\n\r\n" + data, 1)
    assert a.json["stdout"] == "8\n"


@pytest.mark.parametrize("kind", ["text/plain", "multipart/form-data; boundary=x", "application/xml", "application/jsonx", "*/*", "json", ""])
def test_wrong_media_type(daemon, kind):
    e = refused(daemon.post("/execute", b'{"code": "1"}', headers={"Content-Type": kind}), 415, "unsupported_media_type")
    assert "application/json" in e["hint"]


@pytest.mark.parametrize("kind", ["application/json", "application/json; charset=utf-8", "Application/JSON", "application/x-www-form-urlencoded", None])
def test_good_media_types(daemon, kind):
    assert daemon.post("/execute", b'{"code": "1"}', headers={"Content-Type": kind}).status == 200


def test_form_from_a_browser_is_refused(daemon):
    """Requests that a page of another site can make a browser send without a preflight."""
    h = {"Content-Type": "application/x-www-form-urlencoded", "Origin": "http://127.0.0.1:%d" % daemon.port}
    refused(daemon.post("/execute", b'{"code": "1"}', headers=h), 415, "unsupported_media_type")


def test_body_where_none_belongs(daemon):
    refused(daemon.request("GET", "/health", b"x"), 400, "body_not_allowed")


# ---- methods and paths --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method,path,allow", [
    ("GET", "/execute", {"POST", "OPTIONS"}), ("PUT", "/execute", {"POST", "OPTIONS"}), ("DELETE", "/execute", {"POST", "OPTIONS"}),
    ("HEAD", "/execute", {"POST", "OPTIONS"}), ("PATCH", "/execute", {"POST", "OPTIONS"}),
    ("POST", "/health", {"GET", "HEAD", "OPTIONS"}), ("DELETE", "/metrics", {"GET", "HEAD", "OPTIONS"}),
    ("GET", "/sessions/x", {"DELETE", "OPTIONS"}), ("GET", "/sessions/x/interrupt", {"POST", "OPTIONS"}),
    ("POST", "/docs", {"GET", "HEAD", "OPTIONS"})])
def test_wrong_method_lists_the_right_ones(daemon, method, path, allow):
    r = daemon.request(method, path)
    assert r.status == 405 and {m.strip() for m in r.headers["allow"].split(",")} == allow, r
    if method != "HEAD":
        refused(r, 405, "method_not_allowed")


@pytest.mark.parametrize("path,allow", [("/execute", {"POST", "OPTIONS"}), ("/health", {"GET", "HEAD", "OPTIONS"}),
                                        ("/sessions", {"GET", "HEAD", "OPTIONS"})])
def test_options(daemon, path, allow):
    r = daemon.request("OPTIONS", path)
    assert r.status == 204 and r.body == b"", r
    assert {m.strip() for m in r.headers["allow"].split(",")} == allow
    assert not any(h.startswith("access-control-") for h in r.headers), "a cross-origin request was allowed"


def test_options_of_everything(daemon):
    a, = daemon.raw(b"OPTIONS * HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
    assert a.status == 204 and "POST" in a.headers["allow"], a


@pytest.mark.parametrize("path", ["/health", "/docs", "/openapi.json", "/metrics", "/sessions"])
def test_head_is_get_without_a_body(daemon, path):
    get, head = daemon.get(path), daemon.request("HEAD", path)
    assert head.status == get.status == 200 and head.body == b"", head
    assert head.headers["content-type"] == get.headers["content-type"]
    assert path == "/metrics" or abs(int(head.headers["content-length"]) - len(get.body)) < 64


@pytest.mark.parametrize("path", ["/nothing", "/execute/", "/execute/x", "//execute", "/EXECUTE", "/health/../execute", "/docs/nothing.js",
                                  "/docs/../../etc/passwd", "/docs/..%2f..%2fetc%2fpasswd", "/mcp/nothing", "/sessions/a/b/c", "/%65xecutf"])
def test_unknown_path(daemon, path):
    r = daemon.raw(b"GET %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n" % path.encode())[0]
    assert r.status in (400, 404, 405) and r.error["code"] in ("not_found", "bad_request", "method_not_allowed"), r
    assert b"root:" not in r.body


def test_unknown_method(daemon):
    r = daemon.raw(b"BREW /execute HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")[0]
    assert r.status in (400, 405, 501), r
    check_error(r)


def test_unknown_query(daemon):
    refused(daemon.get("/health?verbose=1"), 400, "unknown_parameter", "verbose")
    refused(daemon.post("/execute?timeout=5", {"code": "1"}), 400, "unknown_parameter", "timeout")


def test_no_websocket_handshake(daemon):
    r = daemon.get("/execute/ws")
    refused(r, 426, "upgrade_required")
    assert r.headers["upgrade"] == "websocket"


def test_root_leads_to_the_documentation(daemon):
    r = daemon.get("/")
    assert r.status == 307 and r.headers["location"] == "/docs"
    page = daemon.get("/docs")
    assert page.status == 200 and page.headers["content-type"].startswith("text/html")
    assert b"http://" not in page.body.replace(b"http://www.w3.org/", b"") and b"https://" not in page.body, "it works offline"
    assert "content-security-policy" in page.headers


# ---- HTTP itself -----------------------------------------------------------------------------------------------------

SMUGGLE = [
    (b"GET /health HTTP/1.1\r\n\r\n", 400),                                                      # no Host
    (b"GET /health HTTP/1.1\r\nHost: localhost\r\nHost: localhost\r\n\r\n", 400),
    (POST + b"Content-Length: 1\r\nContent-Length: 2\r\n\r\n{}", 400),
    (POST + b"Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400),
    (POST + b"Content-Length: -1\r\n\r\n", 400),
    (POST + b"Content-Length: +2\r\n\r\n{}", 400),
    (POST + b"Content-Length: 0x2\r\n\r\n{}", 400),
    (POST + b"Content-Length: 99999999999999999999999\r\n\r\n", (400, 413)),
    (POST + b"Transfer-Encoding: gzip\r\n\r\n", (400, 501)),
    (POST + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n", 400),
    (POST + b"Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n", 400),
    (b"GET /health HTTP/1.1\r\nHost: localhost\r\nX: a\r\n b\r\n\r\n", 400),                     # obs-fold
    (b"GET /health HTTP/1.1\nHost: localhost\n\n", 400),                                         # bare LF
    (b"GET /health HTTP/1.1\r\nHost: localhost\r\nX: a\rb\r\n\r\n", 400),
    (b"GET /health HTTP/1.1\r\nHost: localhost\r\nX: a\x00b\r\n\r\n", 400),
    (b"GET /hea\x00lth HTTP/1.1\r\nHost: localhost\r\n\r\n", 400),
    (b"GET /health HTTP/3.0\r\nHost: localhost\r\n\r\n", (400, 505)),
    (b"GET  /health HTTP/1.1\r\nHost: localhost\r\n\r\n", 400),
    (b"GET /health\r\nHost: localhost\r\n\r\n", 400),
    (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"x" * 100 + b"\r\n\r\n", 400),            # TLS to a plain port
    (b"SSH-2.0-OpenSSH_9.2\r\n\r\n", 400),
    (b"GET /" + b"a" * 9000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n", 414),
    (b"GET /health HTTP/1.1\r\nHost: localhost\r\nX: " + b"a" * 40000 + b"\r\n\r\n", 431),
    (b"GET /health HTTP/1.1\r\nHost: localhost\r\n" + b"X: a\r\n" * 10000 + b"\r\n", 431),
]


@pytest.mark.parametrize("data,status", SMUGGLE, ids=lambda v: repr(v[:60]) if isinstance(v, bytes) else "")
def test_broken_http(daemon, data, status):
    """One answer in the common form, and then the connection is closed: later bytes are not parsed."""
    follow = b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n"
    with daemon.connect(20) as s, s.makefile("rb") as f:
        try:
            s.sendall(data + follow)
        except (BrokenPipeError, ConnectionResetError):
            pass
        answers = []
        try:
            while True:
                r = read_response(f)
                if r is None:
                    break
                answers.append(r)
        except ConnectionResetError:
            pass
    assert len(answers) == 1, answers
    assert answers[0].status in (status if isinstance(status, tuple) else (status,)), answers
    check_error(answers[0])


def test_http_1_0(daemon):
    a, = daemon.raw(b"GET /health HTTP/1.0\r\nHost: localhost\r\n\r\n")
    assert a.status == 200 and "transfer-encoding" not in a.headers, a


def test_request_in_single_bytes(daemon):
    body = b'{"code": "print(9)"}'
    with daemon.connect() as s, s.makefile("rb") as f:
        for b in POST + b"Content-Length: %d\r\n\r\n" % len(body) + body:
            s.send(bytes([b]))
        assert read_response(f).json["stdout"] == "9\n"


def test_slow_client_does_not_delay_others(daemon):
    """Fifty connections that send half a line, and others are served."""
    slow = [daemon.connect() for _ in range(50)]
    try:
        for s in slow:
            s.sendall(b"POST /exec")
        assert daemon.execute("1")["success"]
        assert select.select(slow, [], [], 0)[0] == [], "other clients were served only after the slow ones"
    finally:
        for s in slow:
            s.close()


def test_request_id(daemon):
    r = daemon.get("/health", headers={"X-Request-Id": "my-id.1"})
    assert r.headers["x-request-id"] == "my-id.1"
    r = daemon.get("/health", headers={"X-Request-Id": "bad id <script>"})
    assert r.headers["x-request-id"] != "bad id <script>" and len(r.headers["x-request-id"]) == 16
    assert daemon.get("/health").headers["x-request-id"] != daemon.get("/health").headers["x-request-id"]


# ---- limits --------------------------------------------------------------------------------------------------------


def test_too_many_sandboxes_is_429(serve):
    d = serve("--max-sandboxes", "2", "--pool", "1")
    names = [unique() for _ in range(2)]
    for n in names:
        d.execute("1", session_id=n)
    for call in ({}, {"session_id": unique()}):
        r = d.try_execute("1", **call)
        assert (r.status, r.error["code"]) == (429, "busy"), r
    assert d.execute("1", session_id=names[0])["success"], "existing sessions were refused"
    d.end_session(names[0])
    assert d.execute("1")["success"]
    assert d.metrics()["caisson_rejected_busy_total"] == 2


def test_errors_are_declared_in_the_document(daemon):
    """Each status that these tests see is in the document, for its route."""
    doc = daemon.get("/openapi.json").json
    declared = set(doc["paths"]["/execute"]["post"]["responses"])
    assert {"200", "400", "401", "403", "413", "415", "421", "422", "429", "503"} <= declared, declared
    assert "409" in declared, "a session that was removed while the code waited"


def test_sessions_match_the_document(daemon):
    name = unique()
    daemon.execute("1", session_id=name)
    doc = daemon.get("/openapi.json").json
    assert check_schema(daemon.get("/sessions").json, doc["components"]["schemas"]["SessionList"], doc) == []
    assert check_schema(daemon.get("/health").json, doc["components"]["schemas"]["Health"], doc) == []


def test_two_hundred_idle_connections(daemon):
    """Many idle connections delay no client, and are closed with their clients."""
    many = []
    try:
        for _ in range(200):
            many.append(socket.create_connection(("127.0.0.1", daemon.port), 10))
        assert daemon.execute("1")["success"]
    finally:
        for s in many:
            s.close()
    assert wait_until(lambda: daemon.metrics()["process_open_fds"] < 150)


def test_silent_head_is_ended(silent):
    """An incomplete request is answered with 408 and closed, within its deadline."""
    r, rest = silent.answer.result()
    assert r.status == 408 and rest == b"", r
    check_error(r)


def test_silent_connection_is_closed(silent):
    """Ten seconds to the first byte; a client that has sent a request may be silent for longer."""
    seconds, r = silent.ends.result()
    assert 9 < seconds < 20 * SLOW, seconds
    assert r.status == 200, r


def test_large_bounds_are_written_in_full(daemon):
    r = daemon.post("/v1/sandboxes", {"name": "n", "memory_mib": 1})
    assert "must be between 16 and 1048576" in r.error["message"], r
