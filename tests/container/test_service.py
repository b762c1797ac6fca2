# SPDX-License-Identifier: Apache-2.0
"""test_service.py - The daemon in a container serves each route, body and default of the older service that it replaces, by curl as that
service's users call it; and sessions, egress and packages work as without a container."""
import json
import os
import subprocess

import pytest

from container_lib import LEAST, Container, free_port, wait_until
from daemon import Stream, parse_metrics

# The configuration of this machine's pip and npm, and the certificates that it trusts, for the container.
INDEX = {k: v for k, v in os.environ.items() if k in ("PIP_INDEX_URL", "PIP_TRUSTED_HOST", "NPM_CONFIG_REGISTRY", "npm_config_registry", "HTTPS_PROXY")}
TRUSTED = ["-v", "/etc/ssl/certs/ca-certificates.crt:/etc/ssl/certs/ca-certificates.crt:ro"]


def curl(sandbox, path, body=None, *args):
    data = [] if body is None else ["-X", "POST", "-H", "Content-Type: application/json", "-d", body]
    r = subprocess.run(["curl", "-s", "--max-time", "120", *args, *data, "http://localhost:%d%s" % (sandbox.port, path)], stdout=subprocess.PIPE, text=True)
    return r.stdout


def test_health(sandbox):
    h = json.loads(curl(sandbox, "/health"))
    assert h["status"] == "healthy" and h["callers"] == "everyone" and {"python", "bash", "javascript"} <= set(h["languages"])
    isolation = h["isolation"]
    assert isolation["level"] == "full" and all(isolation[k] for k in ("seccomp", "landlock", "cgroup")) and all(isolation["front"].values())


def test_execute(sandbox):
    r = json.loads(curl(sandbox, "/execute", '{"code": "import math\\nprint(f\\"π = {math.pi}\\")", "timeout": 10}'))
    assert r["stdout"] == "π = 3.141592653589793\n" and r["stderr"] == "" and r["exit_code"] == 0 and r["success"] is True and r["execution_time"] > 0
    r = json.loads(curl(sandbox, "/execute", '{"code": "print(\\"Hello from sandbox!\\")"}'))
    assert r["stdout"] == "Hello from sandbox!\n"
    r = json.loads(curl(sandbox, "/execute", json.dumps({"code": "print('Hello, World!')\nresult = 2 + 2\nprint(f'2 + 2 = {result}')", "timeout": 10})))
    assert r["stdout"] == "Hello, World!\n2 + 2 = 4\n"
    r = json.loads(curl(sandbox, "/execute", '{"code": "import sys\\nsys.exit(3)"}'))
    assert r["exit_code"] == 3 and r["success"] is False
    r = json.loads(curl(sandbox, "/execute", '{"code": "import time\\ntime.sleep(60)", "timeout": 1}'))
    assert r["status"] == "timeout" and r["success"] is False


def test_defaults(sandbox):
    """30 s, at most 120; 10,000 characters; 512 MiB."""
    r = json.loads(curl(sandbox, "/execute", '{"code": "1", "timeout": 121}'))
    assert r["error"]["field"] == "timeout" and "120" in r["error"]["message"]
    r = json.loads(curl(sandbox, "/execute", '{"code": "print(\\"x\\" * 20000)"}'))
    assert len(r["stdout"]) == 10000 and r["truncated"] and r["stdout_bytes"] == 20001
    r = json.loads(curl(sandbox, "/execute", '{"code": "bytearray(600 << 20)"}'))
    assert r["status"] == "limit" and r["cause"]["kind"] == "memory" and r["cause"]["limit"] == 512 << 20


def test_documents(sandbox):
    assert "<html" in curl(sandbox, "/docs")
    paths = json.loads(curl(sandbox, "/openapi.json"))["paths"]
    assert {"/execute", "/pip_install", "/health"} <= set(paths)


def test_mcp(sandbox):
    first = curl(sandbox, "/mcp/sse", None, "--max-time", "3")
    assert first.startswith("event: endpoint\ndata: /mcp?sessionId=")
    head = {"Accept": "application/json, text/event-stream"}
    r = sandbox.request("POST", "/mcp", {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}}, head)
    session = {**head, "Mcp-Session-Id": r.headers["mcp-session-id"]}
    r = sandbox.request("POST", "/mcp", {"jsonrpc": "2.0", "id": 2, "method": "tools/list"}, session)
    assert {"execute_python", "pip_install"} <= {t["name"] for t in result_of(r)["tools"]}
    r = sandbox.request("POST", "/mcp", {"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": {
        "name": "execute_python", "arguments": {"code": "print(6 * 7)", "timeout": 10}}}, session)
    content = result_of(r)["structuredContent"]
    assert content["stdout"] == "42\n" and content["exit_code"] == 0 and content["success"] is True


def result_of(r):
    text = r.body.decode()
    if r.headers["content-type"].startswith("text/event-stream"):
        text = [line[5:] for line in text.splitlines() if line.startswith("data:") and line[5:].strip()][-1]
    return json.loads(text)["result"]


def test_metrics(sandbox):
    sandbox.execute("1")
    m = parse_metrics(curl(sandbox, "/metrics"))
    for name in ("sandbox_executions_total", "sandbox_execution_duration_seconds_count", "sandbox_package_installs_total", "sandbox_errors_total"):
        assert any(k.split("{")[0] == name for k in m), name


def test_sessions(sandbox):
    sandbox.execute("x = 41", session_id="kept")
    assert sandbox.execute("print(x + 1)", session_id="kept")["stdout"] == "42\n"
    assert "kept" in sandbox.sessions()
    with Stream(sandbox, {"code": "for i in range(3): print(i)", "session_id": "kept", "stream": True}) as s:
        events = s.open().all()
    assert "".join(d["data"] for e, d in events if e == "stdout") == "0\n1\n2\n"
    assert sandbox.execute("echo $((6 * 7)); id -u", language="bash", session_id="kept")["stdout"] == "42\n1000\n"
    assert sandbox.execute("console.log(6 * 7)", language="javascript")["stdout"] == "42\n"
    assert sandbox.end_session("kept").status == 204


def test_hosts_by_which_it_is_called(sandbox):
    """Its address, localhost, and the name by which mcpo calls it; no other, as a page in a browser could use."""
    for host in ("localhost:%d" % sandbox.port, "127.0.0.1", "sandbox:8001"):
        assert sandbox.request("GET", "/health", headers={"Host": host}).status == 200
    assert sandbox.request("GET", "/health", headers={"Host": "evil.example"}).status == 421
    assert sandbox.request("POST", "/execute", {"code": "1"}, {"Origin": "https://evil.example"}).status == 403


def test_every_caller_is_served(sandbox):
    """A caller who reaches the address needs no token, as with the older service; the log warns of it."""
    r = subprocess.run(["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "curl", "-s", "http://127.0.0.1:%d/execute" % sandbox.port, "-d",
                        '{"code": "print(6 * 7)"}'], stdout=subprocess.PIPE, text=True)
    assert json.loads(r.stdout)["stdout"] == "42\n"
    assert [e["level"] for e in sandbox.log("no_token")] == ["warning"]


def test_egress(image):
    """By name, only to listed hosts: here one that is served in the container."""
    port = free_port()
    with Container(image, *LEAST, "--add-host=site.example:127.0.0.1", env={"CAISSON_EGRESS_PRIVATE": "127.0.0.0/8"}) as c:
        c.exec("sh", "-c", "mkdir /tmp/site; echo 42 >/tmp/site/answer")
        c.engine("exec", "--detach", c.name, "python3", "-m", "http.server", "--bind", "127.0.0.1", "--directory", "/tmp/site", str(port))
        assert wait_until(lambda: c.exec("curl", "-sf", "http://site.example:%d/answer" % port, check=False).stdout == "42\n")
        fetch = "import urllib.request; print(urllib.request.urlopen('http://site.example:%d/answer').read())" % port
        assert c.request("POST", "/v1/sandboxes", {"name": "out", "egress": ["site.example:%d" % port]}).status == 201
        assert c.execute(fetch, session_id="out")["stdout"] == "b'42\\n'\n"
        refused = c.execute(fetch)
        assert refused["status"] == "error" and "egress" in refused["hint"]


def test_settings_of_the_older_service(image):
    env = {"MAX_EXECUTION_TIME": "5", "MAX_MEMORY_MB": "64", "BLOCKED_PACKAGES": "evil", "LOG_LEVEL": "DEBUG"}
    with Container(image, *LEAST, env=env) as c:
        r = c.request("POST", "/execute", {"code": "1", "timeout": 6})
        assert r.status == 422 and "5" in r.error["message"]
        assert c.execute("bytearray(100 << 20)")["cause"]["limit"] == 64 << 20
        assert c.request("POST", "/pip_install", {"package": "evil"}).error["code"] == "package_blocked"


def test_the_address_in_a_container_of_its_own(image):
    """Nothing set: it listens on every address of the container's own network, on the port that the image exposes."""
    with Container(image, *LEAST, "--network=none", network=False, wait=False) as c:
        def ask(*command):
            return subprocess.run(["nsenter", "--net=/proc/%d/ns/net" % c.inspect("State.Pid"), "curl", "-s", *command], stdout=subprocess.PIPE, text=True).stdout
        assert wait_until(lambda: ask("http://127.0.0.1:8001/health")), c.log_text()
        assert json.loads(ask("http://127.0.0.1:8001/health"))["listen"] == "0.0.0.0:8001"
        assert json.loads(ask("-d", '{"code": "print(6 * 7)"}', "-H", "Host: sandbox:8001", "http://127.0.0.1:8001/execute"))["stdout"] == "42\n"
        assert c.inspect("Config.ExposedPorts") == {"8001/tcp": {}}


# ---- packages ------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def installing(image):
    """A daemon that knows this machine's index; the tests are skipped where it does not answer."""
    with Container(image, *LEAST, *TRUSTED, env=INDEX) as c:
        r = c.request("POST", "/pip_install", {"package": "requests", "version": "2.31.0"}, timeout=300)
        if r.status != 200 and r.code in ("index_unavailable", "not_configured"):
            pytest.skip("no index of packages here: %s" % r.error["message"])
        assert r.status == 200, r
        c.first = r.json
        yield c


def test_pip_install(installing):
    assert installing.first["success"] is True and installing.first["installed_version"] == "2.31.0"
    assert installing.first["message"] and installing.first["installation_time"] > 0
    assert installing.execute("import requests; print(requests.__version__)")["stdout"] == "2.31.0\n"
    r = json.loads(curl(installing, "/pip_install", '{"package": "six", "version": "latest"}'))
    assert r["success"] is True and r["installed_version"]
    assert json.loads(curl(installing, "/pip_install", '{"package": "six"}'))["success"] is True


def test_pip_install_refuses(installing):
    for name in ("os", "subprocess", "sys", "importlib", "ctypes", "multiprocessing", "threading"):
        r = json.loads(curl(installing, "/pip_install", '{"package": "%s"}' % name))
        assert r["error"]["code"] == "package_blocked", r
    assert json.loads(curl(installing, "/pip_install", '{"package": "requsets"}'))["error"]["code"] == "package_lookalike"
    assert json.loads(curl(installing, "/pip_install", '{"package": "no-such-package-of-caisson"}'))["error"]["code"] == "package_not_found"


def test_pip_in_a_session(installing):
    r = installing.execute("pip install -q tabulate && python3 -c 'import tabulate; print(tabulate.__name__)'", language="bash", session_id="shell", timeout=120)
    assert r["stdout"].splitlines()[-1] == "tabulate", r
