# SPDX-License-Identifier: Apache-2.0
"""test_bridge_servers.py - caisson-bridge and third-party servers: over stdio, Streamable HTTP and the older SSE."""
import base64
import json
import os
import shutil
import signal
import socket
import subprocess
import time

import pytest

from bridge_lib import Bridge, CallError
from clients_lib import node_servers
from process import alive, free_port, wait_until
from suite_lib import NotHere

FULL = pytest.mark.skipif(not os.environ.get("CAISSON_BRIDGE_FULL"), reason="takes its time: make bridge-full")
BIG = 25 << 20  # the server repeats it as structuredContent: a result of 50 MiB


@pytest.fixture(scope="module")
def servers():
    try:
        return node_servers()
    except NotHere as e:
        pytest.skip("the servers from npm are not here: %s" % e)


def answers(port):
    with socket.socket() as s:
        return s.connect_ex(("127.0.0.1", port)) == 0


def start_everything(servers, mode, port):
    p = subprocess.Popen([shutil.which("node"), str(servers / "server-everything/dist/index.js"), mode], env=dict(os.environ, PORT=str(port)),
                         stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    wait_until(lambda: answers(port))
    return p


@pytest.fixture(scope="module")
def bridge(servers, tmp_path_factory):
    where = tmp_path_factory.mktemp("real")
    (where / "big.txt").write_bytes(b"z" * BIG)
    (where / "small.txt").write_text("hello")

    def node(name, *args, **more):
        return {"command": "node", "args": [str(servers / name / "dist/index.js"), *args], **more}

    config = where / "mcp.json"
    config.write_text(json.dumps({"mcpServers": {
        "everything": node("server-everything", "stdio"), "fs": node("server-filesystem", str(where)),
        "memory": node("server-memory", env={"MEMORY_FILE_PATH": str(where / "memory.json")})}}))
    with Bridge(config) as b:
        b.where = where
        yield b


def use(b, name):
    """The checks of every way to server-everything."""
    assert {"echo", "get-sum", "get-tiny-image"} <= {t["name"] for t in b.tools(name)}
    assert b.call(name, "echo", {"message": "ä"})["content"][0]["text"] == "Echo: ä"
    assert b.call(name, "get-structured-content", {"location": "New York"})["structuredContent"]["conditions"]
    images = [c for c in b.call(name, "get-tiny-image")["content"] if c["type"] == "image"]
    assert base64.b64decode(images[0]["data"]).startswith(b"\x89PNG")
    began = time.monotonic()
    futures = [b.begin(name, "trigger-long-running-operation", {"duration": 3, "steps": 2}, progress=True) for _ in range(10)]
    for f in futures:
        f.result(60)
    assert time.monotonic() - began < 25  # one after the other they take thirty
    assert [p["progress"] for p in b.progress[futures[0].id]][-1:] == [2]
    with pytest.raises(CallError) as e:
        b.call(name, "trigger-long-running-operation", {"duration": 30, "steps": 2}, timeout_ms=300)
    assert e.value.code == "timeout"


def test_everything_over_stdio(bridge):
    use(bridge, "everything")


@FULL
def test_filesystem_and_a_large_result(bridge):
    assert bridge.call("fs", "read_text_file", {"path": str(bridge.where / "small.txt")})["content"][0]["text"] == "hello"
    f = bridge.begin("fs", "read_text_file", {"path": "/etc/hostname"})
    f.result(60)
    assert f.is_error
    f = bridge.begin("fs", "read_text_file", {"path": str(bridge.where / "big.txt")}, timeout_ms=120000)
    text = f.result(150)
    assert len(text) > 50 << 20 and len(json.loads(text)["content"][0]["text"]) == BIG


@FULL
def test_memory(bridge):
    entity = {"name": "caisson", "entityType": "project", "observations": ["runs unread code"]}
    bridge.call("memory", "create_entities", {"entities": [entity]})
    assert bridge.call("memory", "read_graph")["structuredContent"]["entities"] == [entity]


@FULL
def test_killed_in_mid_call(bridge):
    f = bridge.begin("everything", "trigger-long-running-operation", {"duration": 30, "steps": 2})
    bridge.call("everything", "echo", {"message": "under way"})
    worker = open("/proc/%d/task/%d/children" % (bridge.proc.pid, bridge.proc.pid)).read().split()[0]
    pids = open("/proc/%s/task/%s/children" % (worker, worker)).read().split()
    pid = next(int(p) for p in pids if b"server-everything" in open("/proc/%s/cmdline" % p, "rb").read())
    os.kill(pid, signal.SIGKILL)
    with pytest.raises(CallError) as e:
        f.result(60)
    assert e.value.code == "unavailable" and "SIGKILL" in e.value.message
    wait_until(lambda: not alive(pid))

    def again():
        try:
            return bridge.call("everything", "echo", {"message": "again"}, timeout_ms=60000)
        except CallError:
            return None
    wait_until(again)


@FULL
@pytest.mark.parametrize("mode,path,entry", [("streamableHttp", "/mcp", {}), ("sse", "/sse", {"type": "sse"}), ("sse", "/sse", {})])
def test_everything_over_http(servers, tmp_path, mode, path, entry):
    port = free_port()
    server = start_everything(servers, mode, port)
    try:
        (tmp_path / "mcp.json").write_text(json.dumps({"mcpServers": {"far": {"url": "http://127.0.0.1:%d%s" % (port, path), **entry}}}))
        with Bridge(tmp_path / "mcp.json") as b:
            use(b, "far")
            # A server that is started anew has forgotten the session, and is called as before.
            server.kill()
            server.wait()
            server = start_everything(servers, mode, port)

            def again():
                try:
                    return b.call("far", "echo", {"message": "again"})
                except CallError as e:
                    assert e.code == "unavailable", e
                    return None
            wait_until(again)
    finally:
        server.kill()
        server.wait()
