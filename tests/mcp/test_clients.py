# SPDX-License-Identifier: Apache-2.0
"""test_clients.py - Real clients, of every wire and both eras, from the first line to the last: code runs, state is kept,
files come back, errors are told. `caisson mcp` attaches to the daemon of the test.
"""
import json
import subprocess
import urllib.request

import pytest

from clients_lib import node_clients, python_client, tell
from process import BIN, free_port, wait_until
from serve_lib import Daemon
from suite_lib import NotHere


@pytest.fixture(scope="module")
def daemon(pytestconfig):
    d = Daemon(pytestconfig.serve_dir)
    try:
        yield d
        d.stop()
    finally:
        d.kill()


def had(what, *args):
    try:
        return what(*args)
    except NotHere as e:
        pytest.skip("not here: %s" % e)


@pytest.fixture(scope="session")
def node():
    return had(node_clients)


def wire(daemon, kind):
    """The arguments that name the server to a client."""
    at = "http://127.0.0.1:%d/mcp" % daemon.port
    return {"http": ["http", at], "sse": ["sse", at + "/sse"], "stdio": ["stdio", BIN, "mcp", "--state", daemon.state]}[kind]


def check(seen):
    assert seen["tools"][0] == "execute_code" and "list_files" in seen["tools"]
    assert seen["text"] == "from a cell\n42" and seen["structured"]["result"] == "42" and seen["structured"]["state"] == "kept"
    assert seen["file"] == "1,2" and seen["wrong"] is True
    assert seen["raised"][0] is False and "ZeroDivisionError" in seen["raised"][1], seen


@pytest.mark.parametrize("kind", ["http", "sse", "stdio"])
def test_typescript_1(daemon, node, kind):
    check(tell([node[0], "ts1.mjs", *wire(daemon, kind)], cwd=node[1]))


@pytest.mark.parametrize("kind, era", [("http", "legacy"), ("http", "auto"), ("http", "modern"), ("sse", "legacy"), ("stdio", "auto"), ("stdio", "legacy")])
def test_typescript_2(daemon, node, kind, era):
    check(tell([node[0], "ts2.mjs", era, *wire(daemon, kind)], cwd=node[1]))


@pytest.mark.parametrize("kind", ["http", "sse", "stdio"])
def test_python_1(daemon, kind):
    check(tell([had(python_client, 1), node_story(), "1", *wire(daemon, kind)]))


@pytest.mark.parametrize("kind", ["http", "stdio"])
def test_python_2(daemon, kind):
    check(tell([had(python_client, 2), node_story(), "2", *wire(daemon, kind)]))


def node_story():
    from clients_lib import HERE
    return HERE / "story.py"


# ---- Inspector -------------------------------------------------------------------------------------------------------


def inspect(node, tmp_path, *args):
    env = {"MCP_CATALOG_PATH": str(tmp_path / "catalog.json"), "PATH": "%s:/usr/bin:/bin" % node[0].parent}
    launcher = node[1] / "node_modules/@modelcontextprotocol/inspector/clients/launcher/build/index.js"
    return tell([node[0], launcher, "--cli", *args, "--format", "json"], cwd=node[1], env=env)


CALL = ["--method", "tools/call", "--tool-name", "execute_python", "--tool-args-json", '{"code": "6 * 7"}']


@pytest.mark.parametrize("kind, era", [("http", "legacy"), ("http", "modern"), ("sse", "legacy")])
def test_inspector(daemon, node, tmp_path, kind, era):
    transport, at = wire(daemon, kind)
    r = inspect(node, tmp_path, at, "--transport", transport, "--protocol-era", era, *CALL)
    assert r["result"]["content"] == [{"type": "text", "text": "42"}]


def test_inspector_on_stdio_alone(node, tmp_path):
    """Without a daemon: the program brings its own, and takes it away again."""
    r = inspect(node, tmp_path, BIN, "mcp", "--state", str(tmp_path / "none"), *CALL)
    assert r["result"]["structuredContent"]["result"] == "42"


def test_inspector_finds_nothing_to_warn_of(daemon, node, tmp_path):
    at = wire(daemon, "http")[1]
    r = inspect(node, tmp_path, at, "--transport", "http", "--method", "tools/list", "--strict")
    assert r["result"]["tools"] and '"warning"' not in json.dumps(r)


# ---- mcpo ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["sse", "http"])
def test_mcpo_makes_openapi_of_it(daemon, tmp_path, kind):
    python, port = had(python_client, 1), free_port()
    config = tmp_path / "mcpo.json"
    config.write_text(json.dumps({"mcpServers": {"caisson": {"type": {"sse": "sse", "http": "streamable-http"}[kind], "url": wire(daemon, kind)[1]}}}))
    with open(tmp_path / "log", "w+") as log:
        p = subprocess.Popen([python.parent / "mcpo", "--host", "127.0.0.1", "--port", str(port), "--config", config], stdout=log, stderr=log)
        try:
            document = wait_until(lambda: fetch(port, "/caisson/openapi.json"))
            assert document and "/execute_python" in document["paths"], (tmp_path / "log").read_text()[-3000:]
            assert fetch(port, "/caisson/execute_python", {"code": "print(6 * 7)"}) in (42, "42\n", "42"), (tmp_path / "log").read_text()[-3000:]
            # A model behind it sees the exception of a program as a result, and not an error of the server.
            raised = fetch(port, "/caisson/execute_code", {"session_id": "raises", "code": "def f():\n    return 1 / 0\nprint('before')\nf()"})
            assert raised and raised.startswith("before\n") and "line 2, in f" in raised and "ZeroDivisionError: division by zero" in raised, raised
        finally:
            p.terminate()
            p.wait(30)


def fetch(port, path, body=None):
    data = json.dumps(body).encode() if body else None
    request = urllib.request.Request("http://127.0.0.1:%d%s" % (port, path), data, {"Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=30) as r:
            return json.load(r)
    except OSError:
        return None
