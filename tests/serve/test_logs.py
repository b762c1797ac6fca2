# SPDX-License-Identifier: Apache-2.0
"""test_logs.py - One line per request, whatever it contained; and no secret in it."""
import json
import os
import re
import subprocess

import pytest

from process import unique, wait_until
from serve_lib import Daemon

REQUEST = {"time", "level", "event", "id", "peer", "owner", "method", "path", "status", "code", "ms", "bytes_in", "bytes_out"}


def request_lines(daemon, id):
    return [e for e in daemon.log("request") if e["id"] == id]


def one_line(daemon, id):
    assert wait_until(lambda: request_lines(daemon, id)), "no line for %s" % id
    lines = request_lines(daemon, id)
    assert len(lines) == 1, lines
    return lines[0]


def test_one_line_per_request(daemon):
    id = unique("req")
    r = daemon.request("POST", "/execute", {"code": "print(1)"}, headers={"X-Request-Id": id})
    line = one_line(daemon, id)
    assert set(line) == REQUEST, set(line) ^ REQUEST
    assert (line["level"], line["method"], line["path"], line["status"], line["owner"]) == ("info", "POST", "/execute", 200, "local")
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", line["time"])
    assert line["peer"].startswith("127.0.0.1:") and line["ms"] > 0 and line["bytes_in"] == len('{"code": "print(1)"}') and line["bytes_out"] >= len(r.body)


@pytest.mark.parametrize("method,path,body,status", [
    ("GET", "/nothing", None, 404), ("GET", "/execute", None, 405), ("POST", "/execute", b"{", 400), ("POST", "/execute", {"code": 1}, 422),
    ("GET", "/health", None, 200), ("OPTIONS", "/health", None, 204)])
def test_errors_have_a_line_too(daemon, method, path, body, status):
    id = unique("req")
    daemon.request(method, path, body, headers={"X-Request-Id": id})
    line = one_line(daemon, id)
    assert (line["method"], line["path"], line["status"]) == (method, path, status)


def test_broken_requests_have_a_line(daemon):
    def broken():  # lines of earlier requests may come late: the client gets its answer first
        return [e["id"] for e in daemon.log("request") if e["status"] == 400 and not e["path"]]
    before = len(broken())
    daemon.raw(b"\x00\x01\x02 \xff\xfe\r\n\r\n")
    assert wait_until(lambda: len(broken()) > before)
    assert len(broken()) == before + 1


def test_client_that_left_has_a_line(daemon):
    id = unique("req")
    body = b'{"code": "import time; time.sleep(50)", "timeout": 60}'
    with daemon.connect() as s:
        s.sendall(b"POST /execute HTTP/1.1\r\nHost: localhost\r\nX-Request-Id: %s\r\nContent-Length: %d\r\n\r\n" % (id.encode(), len(body)) + body)
        assert wait_until(lambda: daemon.health()["sandboxes"]["busy"] == 1)
    line = one_line(daemon, id)
    assert line["status"] in (0, 499), line


def test_what_clients_send_is_escaped(daemon):
    """Bytes that would break a line, end a string or colour a terminal are escaped."""
    path = "/%0a%22%7d%1b[31m%00%e2%80%a8%c3%28" + "x" * 400
    daemon.raw(b"GET %s HTTP/1.1\r\nHost: localhost\r\nUser-Agent: \x1b]0;title\x07 \xff\r\nConnection: close\r\n\r\n" % path.encode())
    raw = daemon.log_path.read_bytes()
    assert not re.search(rb"[\x00-\x09\x0b-\x1f\x7f]", raw), "no control byte but the end of a line"
    raw.decode("utf-8")
    daemon.log()


def test_output_of_guests_is_not_in_it(daemon):
    marker = unique("guestword")
    name = unique()
    daemon.execute("print(%r)\nimport sys\nprint(%r, file=sys.stderr)\nraise ValueError(%r)" % (marker, marker, marker), session_id=name)
    daemon.execute("x = '%s'; input(x)" % marker, session_id=name, stdin=marker)
    daemon.post("/execute", {"code": "1", "language": marker})
    with daemon.stream("print('%s')" % marker) as s:
        s.all()
    with daemon.websocket() as w:
        w.run("print('%s')" % marker)
    text = daemon.log_text()
    # Not even at level debug, except for a short prefix of the code.
    for line in text.splitlines():
        if marker in line:
            assert json.loads(line)["level"] == "debug", line
    assert "ValueError" not in text


def test_executions_have_a_line(daemon):
    name = unique()
    daemon.execute("print('12345')", session_id=name)
    line, = wait_until(lambda: [e for e in daemon.log("execution") if e["session"] == name])
    assert line["status"] == "ok" and line["language"] == "python" and line["stdout_bytes"] == 6 and line["exit_code"] == 0 and line["state"] == "kept"


def test_forged_lines_of_a_kernel_are_not_lines_of_the_log(daemon):
    """Text that a guest writes to its control channel reaches the daemon, and does not become a line of the log."""
    daemon.execute("import os\nfor fd in range(3, 256):\n    try: os.write(fd, b'{\"type\":\"x\",\"event\":\"FORGED\"}\\n')\n    except OSError: pass")
    assert "FORGED" not in daemon.log_text()


# ---- settings --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("level,request_line", [("DEBUG", True), ("INFO", True), ("WARNING", False), ("ERROR", False), ("warning", False)])
def test_log_level_variable(serve, level, request_line):
    d = serve(env={"LOG_LEVEL": level})
    id = unique("req")
    d.get("/nothing", headers={"X-Request-Id": id})
    d.execute("1")
    if request_line:
        one_line(d, id)
    else:
        assert d.log("request") == [] and d.log("execution") == []
    for event in ("sandbox_create", "cell_ready", "execution_begin", "cell_end"):
        assert wait_until(lambda: d.log(event)) if level == "DEBUG" else not d.log(event), event


def test_bad_log_level(serve):
    d = serve(env={"LOG_LEVEL": "loud"}, wait=False)
    assert d.end() == 125 and "LOG_LEVEL" in d.log_text() and len(d.log_text().splitlines()) == 1


def test_text_format(serve):
    d = serve(log_format="text")
    id = unique("req")
    d.get("/no thing".replace(" ", "%20"), headers={"X-Request-Id": id})
    assert wait_until(lambda: id in d.log_text())
    line = next(x for x in d.log_text().splitlines() if id in x)
    assert re.match(r"\d\d:\d\d:\d\d\.\d{3} info request ", line) and 'path="/no thing"' in line and "status=404" in line, line
    assert all(re.match(r"\d\d:\d\d:\d\d\.\d{3} (debug|info|warning|error) \w+", x) for x in d.log_text().splitlines())


def test_json_is_the_format_without_a_terminal(serve):
    d = serve(log_format=None)
    assert d.log("listening")


def test_unread_log_blocks_nothing(pytestconfig):
    """The pipe of the log is full: lines are dropped, requests are served."""
    r, w = os.pipe()
    try:
        d = Daemon(pytestconfig.serve_dir, "--log-level", "debug", stderr=w)
        with d:
            for _ in range(40):
                assert d.get("/health", headers={"X-Request-Id": "i" * 64}).status == 200
            assert d.execute("1")["success"]
            for _ in range(400):
                d.get("/" + "x" * 200)
            assert d.execute("1")["success"]
            os.close(w)
            w = None
            os.close(r)
            r = None
            assert d.execute("1")["success"], "a broken pipe blocked the daemon"
    finally:
        for fd in (r, w):
            if fd is not None:
                os.close(fd)


def test_start_and_end_have_lines(serve):
    d = serve()
    d.stop()
    events = [e["event"] for e in d.log()]
    assert events[:3] == ["package_index", "package_index", "listening"], events
    assert "zygote_ready" in events and "drain" in events, events


def test_banner_has_lines_that_work(serve):
    """The command that is printed at the start works unchanged."""
    d = serve()
    text = d.out_path.read_text()
    assert "http://127.0.0.1:%d" % d.port in text
    line = re.search(r"(  curl \S+/execute.*?)\n  curl", text, re.S).group(1)
    r = subprocess.run(["bash", "-c", line], capture_output=True, timeout=60)
    assert json.loads(r.stdout)["stdout"] == "42\n", (line, r)
