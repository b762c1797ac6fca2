# SPDX-License-Identifier: Apache-2.0
"""test_wire.py - The protocol as bytes: any cut, and bytes that no daemon sends."""
import pickle
import random

import pytest

from caisson import ConnectionLost, ProtocolError, errors
from caisson._place import find_place
from caisson._wire import CHUNK_LINE_MAX, HEAD_MAX, EventDecoder, Lines, ResponseParser, chunk, request_head, target

OK = b"HTTP/1.1 200 OK\r\n"
ANSWERS = {
    "length": (OK + b"Content-Length: 5\r\nX-A: b\r\n\r\nhello", b"hello"),
    "empty": (OK + b"content-length:0\r\n\r\n", b""),
    "chunked": (OK + b"Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n6;x=y\r\n world\r\n0\r\nTrailer: 1\r\n\r\n", b"hello world"),
    "no content": (b"HTTP/1.1 204 No Content\r\n\r\n", b""),
    "interim": (b"HTTP/1.1 100 Continue\r\n\r\n" + OK + b"Content-Length: 2\r\n\r\nok", b"ok"),
}


def read(data, cuts=(), method="GET"):
    p, body = ResponseParser(method), b""
    at = 0
    for cut in (*cuts, len(data)):
        p.feed(data[at:cut])
        body += p.take()
        at = cut
    return p, body


@pytest.mark.parametrize("name", ANSWERS)
def test_answers_in_any_cut(name):
    data, body = ANSWERS[name]
    for cuts in [(), range(1, len(data)), *((n,) for n in range(len(data)))]:
        p, got = read(data, cuts)
        assert p.done and p.reusable and got == body
    for n in range(len(data)):
        p, _ = read(data[:n])
        assert not p.done
        with pytest.raises(ConnectionLost):
            p.eof()


def test_answer_until_the_end():
    p, body = read(OK + b"\r\nall that comes")
    assert body == b"all that comes" and not p.done
    p.eof()
    assert p.done and not p.reusable


def test_head_has_no_body():
    p, body = read(OK + b"Content-Length: 100\r\n\r\n", method="HEAD")
    assert p.done and body == b"" and p.reusable


def test_switch_leaves_the_rest():
    p, body = read(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\r\n\x81\x00")
    assert p.done and body == b"" and p.rest == b"\x81\x00"


@pytest.mark.parametrize("data", [OK + b"Content-Length: 2\r\nConnection: close\r\n\r\nok", b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok",
                                  OK + b"Content-Length: 2\r\n\r\nokHTTP/1.1 200 OK\r\n"])
def test_connections_that_are_not_used_again(data):
    p, body = read(data)
    assert p.done and body == b"ok" and not p.reusable


@pytest.mark.parametrize("data", [
    b"SSH-2.0-OpenSSH\r\n\r\n", b"HTTP/2 200\r\n\r\n", b"HTTP/1.1 abc\r\n\r\n", b"HTTP/1.1 \xb2\xb2\xb2 x\r\n\r\n", OK + b"no colon\r\n\r\n",
    OK + b" folded: 1\r\n\r\n", OK + b"a : 1\r\n\r\n", OK + b"Content-Length: -1\r\n\r\n", OK + b"Content-Length: 1_0\r\n\r\n",
    OK + b"Content-Length: \xb2\r\n\r\n", OK + b"Content-Length: 1\r\nContent-Length: 1\r\n\r\n", OK + b"Transfer-Encoding: gzip\r\n\r\n",
    OK + b"Transfer-Encoding: chunked\r\nContent-Length: 1\r\n\r\n", OK + b"Transfer-Encoding: chunked\r\n\r\nxyz\r\n",
    OK + b"Transfer-Encoding: chunked\r\n\r\n-5\r\n", OK + b"Transfer-Encoding: chunked\r\n\r\n1\r\nab\r\n",
    OK + b"Transfer-Encoding: chunked\r\n\r\n" + b"f" * 16 + b"\r\n", OK + b"Transfer-Encoding: chunked\r\n\r\n" + b"0" * (CHUNK_LINE_MAX + 1),
    b"x" * (HEAD_MAX + 1)])
def test_what_no_daemon_says(data):
    with pytest.raises(ProtocolError):
        read(data)


def test_noise_ends_or_is_refused():
    """Any bytes, with any cuts: an answer, a refusal, or a wait for more. The seed is in the message."""
    seed = random.randrange(1 << 32)
    r = random.Random(seed)
    for _ in range(2000):
        data = bytearray(r.choice(list(ANSWERS.values()))[0])
        for _ in range(r.randrange(6)):
            at = r.randrange(len(data))
            data[at:at + r.randrange(3)] = bytes(r.randrange(256) for _ in range(r.randrange(3)))
        try:
            a = read(bytes(data))
        except ProtocolError:
            a = None
        try:
            b = read(bytes(data), sorted(r.randrange(len(data) + 1) for _ in range(5)))
        except ProtocolError:
            b = None
        if a and b:
            assert (a[0].done, a[1]) == (b[0].done, b[1]), (seed, bytes(data))


# ---- requests --------------------------------------------------------------------------------------------------------------


def test_request_head():
    assert request_head("GET", "/x", [("Host", "h"), ("A", "b")]) == b"GET /x HTTP/1.1\r\nHost: h\r\nA: b\r\n\r\n"
    assert chunk(b"hello") == b"5\r\nhello\r\n" and chunk(b"") == b""


@pytest.mark.parametrize("where, headers", [("/x HTTP/1.1\r\nEvil: 1\r\n", []), ("/", [("A", "b\r\nEvil: 1")]), ("/", [("A\n", "b")]), ("/", [("A", "\0")])])
def test_line_breaks_are_refused(where, headers):
    with pytest.raises(ValueError):
        request_head("GET", where, headers)


def test_target():
    assert target("/f", {"path": "a b/ü&?", "n": 3, "yes": True, "no": False, "none": None, "many": ["a", "b"]}) == \
        "/f?path=a%20b%2F%C3%BC%26%3F&n=3&yes=true&no=false&many=a&many=b"
    assert target("/f", {"none": None}) == "/f"


# ---- events ----------------------------------------------------------------------------------------------------------------

STREAM = ": hello\n\nid: 1\nevent: started\ndata: {\"a\": 1}\n\nid: 2\r\nevent: stdout\r\ndata: {\"data\": \"\\u00fc ü\"}\r\n\r\ndata: a\ndata: b\n\n: ping\n\n".encode()


def test_events_in_any_cut():
    whole = EventDecoder().feed(STREAM)
    assert [(e.id, e.event, e.data) for e in whole] == [("1", "started", '{"a": 1}'), ("2", "stdout", '{"data": "\\u00fc ü"}'), ("2", "message", "a\nb")]
    for size in (1, 2, 3, 7, 50):
        d = EventDecoder()
        assert [e for at in range(0, len(STREAM), size) for e in d.feed(STREAM[at:at + size])] == whole


def test_event_without_end_is_dropped():
    assert EventDecoder().feed(b"event: done\ndata: {}\n") == []


def test_lines():
    x = Lines(limit=10)
    assert x.feed(b'{"a":') == [] and x.feed(b"1}\n{}\r\n{") == [b'{"a":1}', b"{}"] and x.end() == [b"{"] and x.end() == []
    with pytest.raises(ProtocolError):
        x.feed(b"x" * 11)


# ---- errors and places -----------------------------------------------------------------------------------------------------


def test_every_code_of_the_daemon_has_a_class(daemon):
    """As its own document lists them."""
    document = daemon.get("/openapi.json").json
    codes = {code for path in document["paths"].values() for op in path.values() for listed in op.get("x-errors", {}).values() for code in listed}
    assert len(codes) > 80
    assert codes - set(errors.known_codes()) == set()


def test_error_from_whatever_came():
    e = errors.error_from({"error": {"code": "no_such_file", "message": "m", "field": "path", "hint": "h"}}, 404, {"x-request-id": "r"})
    assert type(e) is errors.NoSuchFile and (e.code, e.field, e.hint, e.status, e.request_id) == ("no_such_file", "path", "h", 404, "r")
    assert str(e) == "path: m (h)" and isinstance(e, errors.NotFound) and isinstance(e, RuntimeError)
    assert type(errors.error_from({"error": {"code": "not_known_yet", "message": "m"}}, 409)) is errors.Conflict
    for body in (None, [], "x", {"error": 3}, {"error": {"code": 3, "message": []}}):
        assert type(errors.error_from(body, 502)) is errors.ServerFault
    again = pickle.loads(pickle.dumps(e))
    assert type(again) is type(e) and vars(again) == vars(e) and str(again) == str(e)


@pytest.mark.parametrize("env, text", [
    ({"CAISSON_URL": "http://h:1/p/"}, "http://h:1/p"), ({"CAISSON_URL": "https://h"}, "https://h"), ({"CAISSON_URL": "http://[::1]:80"}, "http://[::1]"),
    ({"CAISSON_URL": "unix:/a/b"}, "/a/b"), ({"CAISSON_SOCKET": "/s", "CAISSON_STATE": "/t"}, "/s"), ({"CAISSON_STATE": "/t"}, "/t/caisson.sock")])
def test_places(env, text):
    assert str(find_place(environ=env)) == text


@pytest.mark.parametrize("env, name", [
    ({"CAISSON_URL": "h:1"}, "CAISSON_URL"), ({"CAISSON_URL": "http://h:x"}, "CAISSON_URL"), ({"CAISSON_URL": "http://u@h"}, "CAISSON_URL"),
    ({"CAISSON_SOCKET": "none"}, "CAISSON_SOCKET"), ({"CAISSON_TOKEN": "a b"}, "CAISSON_TOKEN"), ({"CAISSON_TOKEN_FILE": "/nowhere"}, "CAISSON_TOKEN_FILE"),
    ({"CAISSON_URL": "http://192.0.2.1", "CAISSON_TOKEN": "t"}, "CAISSON_URL")])
def test_places_that_make_no_sense(env, name):
    with pytest.raises(errors.Misconfigured) as e:
        find_place(environ=env)
    assert name in str(e.value) and "a b" not in str(e.value)


def test_token_of_a_file(tmp_path):
    f = tmp_path / "tokens"
    f.write_text("# ours\n\nname:abc-123\nother:x\n")
    f.chmod(0o644)
    with pytest.raises(errors.Misconfigured, match="chmod 600"):
        find_place(environ={"CAISSON_TOKEN_FILE": str(f)})
    f.chmod(0o600)
    place = find_place(environ={"CAISSON_TOKEN_FILE": str(f)})
    assert place.token == "abc-123" and "abc" not in repr(place)
    assert find_place(token="direct", environ={"CAISSON_TOKEN_FILE": str(f)}).token == "direct"
