# SPDX-License-Identifier: Apache-2.0
"""test_mcp_wires.py - How messages of the Model Context Protocol travel: HTTP of both eras, the SSE pair, batches."""
import json
import re
import threading

import pytest

from process import unique, wait_until
from serve_lib import Held
from wire_lib import META, MODERN, Http, Pair, Posted, code, idle, initialize, modern, modern_headers, note, post, request

LIST = modern("tools/list")
CALL = modern("tools/call", {"name": "execute_python", "arguments": {"code": "1"}})


def without(message, *keys):
    m = json.loads(json.dumps(message))
    for key in keys:
        del m["params"]["_meta"][META + key]
    return m


def claiming(version):
    m = json.loads(json.dumps(LIST))
    m["params"]["_meta"][META + "protocolVersion"] = version
    return m


HEADERS = modern_headers(LIST)
CALL_HEADERS = modern_headers(CALL)

# The posted message and its headers -> status and code of the error. The order is that of the protocol.
LADDER = [
    ("not JSON", "{", {}, 400, -32700),
    ("nothing", "", {}, 400, -32700),
    ("not UTF-8", b'{"jsonrpc":"2.0","id":1,"method":"\xff"}', {}, 400, -32700),
    ("a key twice", '{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}', {}, 400, -32700),
    ("deep", "[" * 5000 + "]" * 5000, {}, 400, -32700),
    ("a string", '"ping"', {}, 400, -32600),
    ("no version of JSON-RPC", {"id": 1, "method": "ping"}, {}, 400, -32600),
    ("another version of JSON-RPC", {"jsonrpc": "1.0", "id": 1, "method": "ping"}, {}, 400, -32600),
    ("id null", {"jsonrpc": "2.0", "id": None, "method": "ping"}, {}, 400, -32600),
    ("id a fraction", {"jsonrpc": "2.0", "id": 1.5, "method": "ping"}, {}, 400, -32600),
    ("id an object", {"jsonrpc": "2.0", "id": {}, "method": "ping"}, {}, 400, -32600),
    ("method a number", {"jsonrpc": "2.0", "id": 1, "method": 1}, {}, 400, -32600),
    ("params a list", {"jsonrpc": "2.0", "id": 1, "method": "ping", "params": []}, {}, 400, -32600),
    ("result and error", {"jsonrpc": "2.0", "id": 1, "result": {}, "error": {}}, {}, 400, -32600),
    ("a batch of modern messages", [LIST, LIST], HEADERS, 400, -32600),
    ("a batch without a session", [request("ping")], {}, 400, -32600),
    ("a batch in a session that is none", [request("ping")], {"Mcp-Session-Id": "0" * 32}, 404, -32001),
    ("legacy without a session", request("tools/list"), {}, 400, -32000),
    ("legacy with one that is none", request("tools/list"), {"Mcp-Session-Id": "0" * 32}, 404, -32001),
    ("a version of no era", request("tools/list"), {"MCP-Protocol-Version": "1999-01-01"}, 400, -32000),
    ("header modern, body not", request("tools/list", {}), {"MCP-Protocol-Version": MODERN}, 400, -32602),
    ("header of another version", LIST, {**HEADERS, "MCP-Protocol-Version": "2025-11-25"}, 400, -32020),
    ("an unknown version", claiming("2027-01-01"), {**HEADERS, "MCP-Protocol-Version": "2027-01-01"}, 400, -32022),
    ("a version that is no string", claiming(7), HEADERS, 400, -32602),
    ("no capabilities", without(LIST, "clientCapabilities"), HEADERS, 400, -32602),
    ("no header of the version", LIST, {"Mcp-Method": "tools/list"}, 400, -32020),
    ("no header of the method", LIST, {"MCP-Protocol-Version": MODERN}, 400, -32020),
    ("header of another method", LIST, {**HEADERS, "Mcp-Method": "tools/call"}, 400, -32020),
    ("header of a method in another case", LIST, {**HEADERS, "Mcp-Method": "Tools/List"}, 400, -32020),
    ("no header of the name", CALL, {k: v for k, v in CALL_HEADERS.items() if k != "Mcp-Name"}, 400, -32020),
    ("header of another name", CALL, {**CALL_HEADERS, "Mcp-Name": "execute_code"}, 400, -32020),
    ("a name in broken base64", CALL, {**CALL_HEADERS, "Mcp-Name": "=?base64?!!!!?="}, 400, -32020),
    ("no such method", modern("no/such"), modern_headers(modern("no/such")), 404, -32601),
    ("initialize, modern", modern("initialize"), modern_headers(modern("initialize")), 404, -32601),
    ("ping, modern", modern("ping"), modern_headers(modern("ping")), 404, -32601),
    ("no such tool", modern("tools/call", {"name": "nope", "arguments": {}}), {**CALL_HEADERS, "Mcp-Name": "nope"}, 200, -32602),
]


@pytest.mark.parametrize("message,headers,status,number", [r[1:] for r in LADDER], ids=[r[0].replace(" ", "-") for r in LADDER])
def test_ladder(daemon, message, headers, status, number):
    r = post(daemon, message, headers)
    assert (r.status, r.json["error"]["code"]) == (status, number), r
    if isinstance(message, dict) and isinstance(message.get("id"), (int, str)):
        assert r.json["id"] == message["id"], r
    if number == -32022:
        assert r.json["error"]["data"] == {"supported": [MODERN], "requested": "2027-01-01"}


def test_ids_and_names_come_back_as_they_were(daemon):
    for id in (0, -7, 1 << 53, "", "ü☃", "1"):
        r = post(daemon, modern("server/discover", id=id), {**HEADERS, "Mcp-Method": "server/discover"})
        assert r.status == 200 and r.json["id"] == id and type(r.json["id"]) is type(id), r
    # base64 of the same name is the same name
    assert post(daemon, CALL, {**CALL_HEADERS, "Mcp-Name": "=?base64?ZXhlY3V0ZV9weXRob24=?="}).status == 200


def test_head_of_a_post(daemon):
    s = Http(daemon)
    ping = request("ping")
    assert s.post(ping, {"Content-Type": "text/plain"}).status == 415
    assert s.post(ping, {"Accept": "text/html"}).status == 406
    assert s.post(ping, {"Accept": "*/*"}).json["result"] == {}
    assert s.post(ping, {"Content-Type": "application/json; charset=utf-8"}).json["result"] == {}
    assert post(daemon, "[" + " " * (9 << 20) + "]", s.headers()).status == 413
    s.end()


def test_origin_of_another_site(daemon):
    r = post(daemon, initialize(), {"Origin": "http://evil.example.com", "Host": "evil.example.com"})
    assert r.status in (403, 421), r
    here = "localhost:%d" % daemon.port
    assert post(daemon, initialize(), {"Origin": "http://" + here, "Host": here}).status == 200


# ---- sessions -------------------------------------------------------------------------------------------


def test_a_session_from_its_first_to_its_last_message(daemon):
    s = Http(daemon)
    assert re.fullmatch("[!-~]{32,}", s.id)
    assert s.post(request("ping", id="a")).json == {"jsonrpc": "2.0", "id": "a", "result": {}}
    assert s.post({"jsonrpc": "2.0", "id": 99, "result": {}}).status == 202  # an answer without a request is accepted and ignored
    assert daemon.request("GET", "/mcp").status == 405
    assert daemon.request("GET", "/mcp", headers={"Mcp-Session-Id": "nope", "Accept": "text/event-stream"}).status == 404
    assert daemon.request("GET", "/mcp", headers={"Mcp-Session-Id": s.id, "Accept": "text/html"}).status == 406
    with Listening(daemon, s) as first:
        assert first.open().status == 200
        assert daemon.request("GET", "/mcp", headers={"Mcp-Session-Id": s.id, "Accept": "text/event-stream"}).status == 409
        assert s.end().status == 204
        assert first.all() == []  # and it ends
    assert s.post(request("ping")).status == 404
    assert s.end().status == 404
    assert daemon.request("DELETE", "/mcp").status == 405


class Listening(Posted):
    method = "GET"

    def __init__(self, daemon, session):
        super().__init__(daemon, None, {"Mcp-Session-Id": session.id, "Accept": "text/event-stream"})


def test_versions_are_agreed_on(daemon):
    for version in ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"):
        s = Http(daemon, version)
        assert s.hello["protocolVersion"] == version
        s.end()
    s = Http(daemon, "2099-01-01")
    assert s.hello["protocolVersion"] == "2025-11-25"
    s.end()
    r = post(daemon, request("initialize", {"capabilities": {}}))
    assert r.json["error"]["code"] == -32602 and "mcp-session-id" not in r.headers


def test_another_ones_session_is_not_there(serve, tmp_path):
    tokens = tmp_path / "tokens"
    tokens.write_text("ann:%s\nbob:%s\n" % ("a" * 32, "b" * 32))
    tokens.chmod(0o600)
    d = serve("--token-file", tokens, wait=False)
    d.token = "a" * 32
    d.wait_ready()
    s = Http(d)
    other = {"token": "b" * 32}
    assert post(d, request("ping"), s.headers(), **other).status == 404
    assert d.request("DELETE", "/mcp", headers={"Mcp-Session-Id": s.id}, **other).status == 404
    assert post(d, request("ping"), s.headers(), token="wrong").status == 401
    with Pair(d, {"Authorization": "Bearer " + "a" * 32}) as pair:
        assert post(d, initialize(), path=pair.endpoint, **other).status == 404
        assert pair.call(initialize())["result"]
    assert s.post(request("ping")).status == 200


def test_two_hundred_sessions_at_once(daemon):
    sessions, problems = [], []

    def one(n):
        try:
            s = Http(daemon)
            assert s.post(request("ping", id=n)).json["id"] == n
            sessions.append(s)
        except BaseException as e:
            problems.append(e)

    threads = [threading.Thread(target=one, args=(n,)) for n in range(200)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not problems, problems[0]
    assert len({s.id for s in sessions}) == 200
    for s in sessions:
        assert s.end().status == 204


# ---- progress and cancellation ----------------------------------------------------------------------------


def test_progress_rises_and_comes_before_the_answer(daemon):
    s = Http(daemon)
    held = Held(daemon)
    text = held.code.replace("while not go: ", "while not go:\n  print('line', flush=True); ")
    with Posted(daemon, code(text, unique(), 5, meta={"progressToken": "tok"}), s.headers()) as p:
        it = iter(p)
        notes = [next(it)[1] for _ in range(3)]
        held.let_go()
        *more, last = [m for _, m in it]
    assert last["id"] == 5 and last["result"]["structuredContent"]["stdout"].startswith("line\nline\n")
    notes += more
    assert all(n["method"] == "notifications/progress" and n["params"]["progressToken"] == "tok" for n in notes)
    steps = [n["params"]["progress"] for n in notes]
    assert steps == sorted(set(steps))
    s.end()


FOREVER = "import time\nwhile True: time.sleep(.05)"


def busy(daemon):
    return wait_until(lambda: daemon.health()["sandboxes"]["busy"] == 1)


def test_cancelled_by_a_legacy_client(daemon):
    s = Http(daemon)
    name = unique()
    s.post(code("x = 1", name))
    with Posted(daemon, code(FOREVER, name, 7, timeout=100), s.headers()) as p:
        assert busy(daemon)
        assert s.post(note("notifications/cancelled", {"requestId": "7"})).status == 202  # another id
        assert s.post(note("notifications/cancelled", {"requestId": 7, "reason": "enough"})).status == 202
        assert p.messages() == []  # there is no answer
    assert idle(daemon)
    assert s.post(code("x", name, 8)).json["result"]["structuredContent"]["result"] == "1"
    s.end()


def test_a_modern_client_that_goes_away_cancels(daemon):
    m = modern("tools/call", {"name": "execute_python", "arguments": {"code": FOREVER, "timeout": 100}})
    with Posted(daemon, m, modern_headers(m)):
        assert busy(daemon)
    assert idle(daemon)


def test_a_legacy_client_that_goes_away_does_not(daemon):
    s = Http(daemon)
    name = unique()
    held = Held(daemon, "done = 'all of it'")
    with Posted(daemon, code(held.code, name, 3), s.headers()):
        assert held.there()
    held.let_go()
    assert s.post(code("done", name, 4)).json["result"]["structuredContent"]["result"] == "'all of it'"
    s.end()


def test_the_end_of_a_session_ends_its_executions(daemon):
    s = Http(daemon)
    with Posted(daemon, code(FOREVER, unique(), 7, timeout=100), s.headers()) as p:
        assert busy(daemon)
        assert s.end().status == 204
        assert p.messages() == []
    assert idle(daemon)


# ---- the old pair -----------------------------------------------------------------------------------------


def test_pair(daemon):
    with Pair(daemon) as pair:
        m = re.fullmatch(r"/mcp\?sessionId=([0-9a-f]{32})", pair.endpoint)
        assert m, pair.endpoint
        assert pair.call(initialize("2024-11-05"))["result"]["protocolVersion"] == "2024-11-05"
        assert pair.post(note("notifications/initialized")).status == 202
        # answers arrive in the order in which they are ready, each on the stream
        name = unique()
        held = Held(daemon, "'slow'")
        assert pair.post(code(held.code, name, "slow")).status == 202
        assert pair.call(request("ping", id="fast"))["id"] == "fast"
        held.let_go()
        slow = pair.receive()
        assert slow["id"] == "slow" and slow["result"]["structuredContent"]["result"] == "'slow'"
        # an invalid message is refused in the answer to its POST
        assert pair.post("{").json["error"]["code"] == -32700
        assert pair.post({"jsonrpc": "2.0", "id": 3}).status == 400
        # the other spelling
        assert post(daemon, request("ping", id=9), path="/mcp?session_id=" + m.group(1)).status == 202
        assert pair.receive()["id"] == 9
        # it is not a session of the newer transport
        assert post(daemon, request("ping"), {"Mcp-Session-Id": m.group(1)}).status == 404
        endpoint = pair.endpoint
    assert wait_until(lambda: post(daemon, request("ping"), path=endpoint).status == 404)
    assert post(daemon, request("ping"), path="/mcp?sessionId=" + "0" * 32).json["error"]["code"] == -32001
    assert daemon.request("GET", "/mcp/sse", headers={"Accept": "text/html"}).status == 406
    assert daemon.request("HEAD", "/mcp/sse").status == 200


def test_the_end_of_a_pair_ends_its_executions(daemon):
    with Pair(daemon) as pair:
        pair.call(initialize())
        assert pair.post(code(FOREVER, unique(), 2, timeout=100)).status == 202
        assert busy(daemon)
    assert idle(daemon)


def test_pair_before_its_handshake(daemon):
    with Pair(daemon) as pair:
        assert pair.call(request("ping"))["result"] == {}
        assert pair.call(request("tools/list"))["error"]["code"] == -32600
        assert pair.call(initialize())["result"]
        assert pair.call(request("tools/list"))["result"]["tools"]


def test_a_client_that_never_reads_is_dropped(serve):
    d = serve("--max-output", "1500000")
    with Pair(d, receive_buffer=4096) as pair:
        pair.call(initialize())
        for n in range(60):
            if post(d, code("print('x' * 1499999)", "s", n), path=pair.endpoint).status == 404:
                break
            assert idle(d)
        else:
            raise AssertionError("it was never dropped")
    assert d.health()["status"] == "healthy"
    with Pair(d) as pair:
        assert pair.call(initialize())["result"]


def test_a_daemon_that_stops_does_not_wait_for_listeners(serve):
    d = serve()
    s = Http(d)
    with Pair(d) as pair, Listening(d, s) as listening:
        pair.call(initialize())
        listening.open()
        d.stop(seconds=20)


# ---- batches ----------------------------------------------------------------------------------------------


def by_id(answers):
    return {json.dumps(a["id"]): a for a in answers}


@pytest.mark.parametrize("version", ["2024-11-05", "2025-03-26"])
def test_batch(daemon, version):
    s = Http(daemon, version)
    name = unique()
    r = s.post([request("ping", id=1), note("notifications/cancelled", {"requestId": "none"}), {"jsonrpc": "2.0", "id": 50, "result": {}},
                code("x = 6 * 7", name, "c"), request("no/such", id=2), {"jsonrpc": "2.0", "id": 3}, 7, initialize(id=4),
                modern("tools/list", id=5)])
    assert r.status == 200, r
    got = by_id(r.json)
    assert len(r.json) == 7 and set(got) == {"1", '"c"', "2", "3", "null", "4", "5"}
    assert got["1"]["result"] == {} and got['"c"']["result"]["structuredContent"]["status"] == "ok"
    assert [got[k]["error"]["code"] for k in ("2", "3", "null", "4", "5")] == [-32601, -32600, -32600, -32600, -32600]
    assert s.post([note("notifications/initialized"), {"jsonrpc": "2.0", "id": 50, "result": {}}]).status == 202
    # the same id twice: one of them is refused
    twice = s.post([code("import time; time.sleep(.3)", name, 9), request("ping", id=9)]).json
    assert sorted("error" in a for a in twice) == [False, True]
    for bad in ([], [request("ping", id=n) for n in range(65)]):
        r = s.post(bad)
        assert (r.status, r.json["error"]["code"]) == (400, -32600), r
    assert len(s.post([request("ping", id=n) for n in range(64)]).json) == 64
    s.end()


def test_batch_with_progress(daemon):
    s = Http(daemon, "2025-03-26")
    slow = code("import time\nfor i in range(3):\n  print(i, flush=True); time.sleep(.25)", unique(), 1, meta={"progressToken": 1})
    with Posted(daemon, [slow, request("ping", id=2)], s.headers()) as p:
        *notes, last = p.messages()
    assert notes and all(n["method"] == "notifications/progress" for n in notes)
    assert set(by_id(last)) == {"1", "2"}
    s.end()


def test_batch_of_which_one_is_cancelled(daemon):
    s = Http(daemon, "2025-03-26")
    with Posted(daemon, [code(FOREVER, unique(), 1, timeout=100), request("ping", id=2)], s.headers()) as p:
        assert busy(daemon)
        assert s.post(note("notifications/cancelled", {"requestId": 1})).status == 202
        p.open()
        answers = json.loads(p.f.read(int(p.headers["content-length"])))
    assert set(by_id(answers)) == {"2"} and idle(daemon)
    s.end()


@pytest.mark.parametrize("version", ["2025-06-18", "2025-11-25"])
def test_batch_where_there_are_none(daemon, version):
    s = Http(daemon, version)
    r = s.post([request("ping")])
    assert (r.status, r.json["error"]["code"]) == (400, -32600) and "2025-03-26" in r.json["error"]["message"], r
    s.end()


def test_batch_on_the_pair(daemon):
    with Pair(daemon) as pair:
        assert pair.call([request("ping")])["error"]["code"] == -32600  # before the handshake there is no agreed version
        pair.call(initialize("2024-11-05"))
        assert set(by_id(pair.call([request("ping", id=1), note("x"), request("tools/list", id=2)]))) == {"1", "2"}
        assert pair.post([note("x"), note("y")]).status == 202
        assert pair.call(request("ping", id=3))["id"] == 3


# ---- where tokens come from ---------------------------------------------------------------------------------

WELL_KNOWN = "/.well-known/oauth-protected-resource"


@pytest.fixture
def tokens(tmp_path):
    f = tmp_path / "tokens"
    f.write_text("ann:%s\n" % ("a" * 32))
    f.chmod(0o600)
    return "--token-file", f


def with_token(d):
    d.token = "a" * 32
    d.wait_ready()
    return d


def test_no_authorization_server_is_named(serve, tokens):
    d = with_token(serve(*tokens, wait=False))
    for path in (WELL_KNOWN, WELL_KNOWN + "/mcp"):
        r = d.get(path, headers={"Authorization": None}, token="wrong")
        assert r.status == 404 and r.error["code"] == "not_found", r
    r = post(d, initialize(), {"Authorization": "Bearer nope"})
    assert r.status == 401 and r.headers["www-authenticate"] == 'Bearer realm="caisson"', r


def test_an_authorization_server_is_named(serve, tokens):
    d = with_token(serve(*tokens, "--mcp-auth-server", "https://auth.example/realm", wait=False))
    here = "http://127.0.0.1:%d" % d.port
    for path in ("/mcp", "/mcp/sse"):
        r = d.request("GET", path, headers={"Authorization": "Bearer nope"})
        assert r.status == 401, r
        assert r.headers["www-authenticate"] == 'Bearer realm="caisson", resource_metadata="%s%s/mcp"' % (here, WELL_KNOWN)
    assert "resource_metadata" not in d.get("/sessions", headers={"Authorization": "Bearer nope"}).headers["www-authenticate"]
    for path in (WELL_KNOWN, WELL_KNOWN + "/mcp"):
        r = d.get(path, headers={"Authorization": "Bearer nope"})  # open: a client without a token needs this
        assert r.status == 200 and r.json == {"resource": here + "/mcp", "authorization_servers": ["https://auth.example/realm"],
                                              "bearer_methods_supported": ["header"], "resource_name": "Caisson"}
    assert post(d, initialize()).status == 200  # the rules for tokens are unchanged


def test_an_authorization_server_behind_a_proxy(serve, tokens):
    d = with_token(serve(*tokens, "--mcp-auth-server", "https://auth.example", "--mcp-url", "https://box.example/a/mcp", wait=False))
    assert d.get(WELL_KNOWN).json["resource"] == "https://box.example/a/mcp"
    r = post(d, initialize(), {"Authorization": "Bearer nope"})
    assert 'resource_metadata="https://box.example%s/mcp"' % WELL_KNOWN in r.headers["www-authenticate"]
