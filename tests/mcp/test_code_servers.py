# SPDX-License-Identifier: Apache-2.0
"""test_code_servers.py - Code in a cell and third-party MCP servers from npm, with the whole daemon in between."""
import json
import os
import signal
import time
from pathlib import Path

import pytest

from box_lib import Box
from clients_lib import node_servers
from process import BIN, Later, wait_until
from serve_lib import Daemon
from suite_lib import NotHere

pytestmark = pytest.mark.skipif(not os.environ.get("CAISSON_SERVERS"), reason="takes half a minute: `make mcp-servers` runs it")

BIG = 25 << 20  # the file system server sends a text twice: as content, and as structured content


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    where = tmp_path_factory.mktemp("files")
    for d in (where, where.parent, where.parent.parent):
        d.chmod(0o755)
    (where / "a.txt").write_text("hello from the host\n")
    (where / "big.txt").write_text("x" * BIG)
    return where


@pytest.fixture(scope="module")
def daemon(pytestconfig, tmp_path_factory, files):
    if not (BIN.parent / "caisson-bridge").exists():
        pytest.skip("no caisson-bridge beside the daemon")
    try:
        packages = node_servers()
    except NotHere as e:
        pytest.skip("the servers could not be had from npm: %s" % e)
    run = {"everything": ["stdio"], "filesystem": [str(files)], "memory": []}
    config = {name: {"command": "node", "args": [str(packages / ("server-" + name) / "dist/index.js"), *args],
                     "env": {"MEMORY_FILE_PATH": str(tmp_path_factory.mktemp("memory") / "memory.json")},
                     "caisson": {"allow": ["*"]}} for name, args in run.items()}
    path = tmp_path_factory.mktemp("config") / "mcp.json"
    path.write_text(json.dumps({"mcpServers": config}))
    user = ("--mcp-user", "root") if os.geteuid() == 0 else ()
    d = Daemon(pytestconfig.serve_dir, "--mcp-config", path, *user, "--pool", 1)
    yield d
    d.stop()


@pytest.fixture(scope="module")
def box(daemon):
    with Box(daemon, servers=["everything", "filesystem", "memory"], memory_mib=1024) as b:
        yield b


def run(box, code, **fields):
    r = box.post("/execute", {"code": code, "timeout": 100, **fields})
    assert r.status == 200, r
    return r.json


def out(box, code, **fields):
    r = run(box, code, **fields)
    assert r["ok"], r
    return r["stdout"]


def test_list_search_and_call_from_python(box, files):
    said = out(box, """
import mcp.runtime as rt
print("echo" in dir(mcp_everything), len(rt.list_tools_sync("filesystem")) > 5, LOADED_MCP_SERVERS)
print(rt.search_tool_docs_sync("read a fiel", limit=3)[0]["tool"], rt.search_tool_docs_sync("knowlege graph")[0]["server"])
print(await mcp_everything.echo(message="hi"))
print((await mcp_filesystem.read_text_file(path=%r))["content"])
print(await mcp_memory.create_entities(entities=[{"name": "ada", "entityType": "person", "observations": ["wrote"]}]))
print((await mcp_memory.read_graph())["entities"][0]["name"])
print([getattr(part, "mime_type", None) for part in await mcp_everything.get_tiny_image()])
""" % str(files / "a.txt"))
    assert said.splitlines() == [
        "True True ('everything', 'filesystem', 'memory')", "read_file memory", "Echo: hi", "hello from the host", "",
        "{'entities': [{'name': 'ada', 'entityType': 'person', 'observations': ['wrote']}]}", "ada", "[None, 'image/png', None]"]


def test_from_javascript(box, files):
    said = out(box, """
console.log(await mcp.everything.echo({message: 'hi'}), (await mcp.filesystem.read_text_file({path: %s})).content.trim());
console.log((await mcp.runtime.search_tool_docs('directory tree', {limit: 1}))[0].tool);
""" % json.dumps(str(files / "a.txt")), language="javascript")
    assert said == "Echo: hi hello from the host\ndirectory_tree\n"


def test_errors_are_named(box, files):
    r = run(box, "await mcp_memory.create_entities(entities=[{'name': 'ada'}])")
    assert "argument 'entities'[0].entityType is required: string" in r["error"]["value"], r["error"]
    r = run(box, "await mcp_filesystem.read_text_file(path='/etc/passwd')")
    assert r["error"]["name"] == "MCPError" and "outside allowed directories" in r["error"]["value"], r["error"]
    r = run(box, "await mcp_everything.no_such_tool()")
    assert "everything has no tool 'no_such_tool'" in r["error"]["value"]


def test_ten_calls_of_a_second_take_about_a_second(box):
    seconds = float(out(box, """
import asyncio, time
begin = time.monotonic()
await asyncio.gather(*(mcp_everything.trigger_long_running_operation(duration=1, steps=1) for _ in range(10)))
print(time.monotonic() - begin)
"""))
    assert 1 <= seconds < 8, seconds  # one after the other they take ten


def test_a_result_of_50_mb(box, files):
    said = out(box, "r = await mcp.runtime.call_tool('filesystem', 'read_text_file', {'path': %r}, raw=True)\n"
                    "print(len(r['content'][0]['text']), len(r['structuredContent']['content']))" % str(files / "big.txt"))
    assert said == "%d %d\n" % (BIG, BIG)
    assert out(box, "print(await mcp_everything.echo(message='still here'))") == "Echo: still here\n"


def pids_of(daemon, server):
    """Only node has its script in its command line."""
    return [p for p in daemon.processes() if "server-%s/dist/" % server in Path("/proc/%d/cmdline" % p).read_text()]


def test_a_server_that_is_killed_in_mid_call(box, daemon):
    later = Later(lambda: run(box, "try:\n    await mcp_everything.trigger_long_running_operation(duration=60, steps=1)\n"
                                   "except MCPError as e:\n    print(e.code, e)"))
    pids = wait_until(lambda: pids_of(daemon, "everything"))
    time.sleep(0.5)  # that the call is under way cannot be seen from here
    for pid in pids:
        os.kill(pid, signal.SIGKILL)
    r = later.result()
    assert r["stdout"].startswith("unavailable everything.trigger-long-running-operation: "), r
    assert out(box, "print((await mcp_memory.read_graph())['relations'])") == "[]\n", "the others did not notice"
    wait_until(lambda: run(box, "print(await mcp_everything.echo(message='again'))")["stdout"] == "Echo: again\n")


def test_an_interrupt_goes_all_the_way(box):
    later = Later(lambda: run(box, "print('waiting', flush=True)\nawait mcp_everything.trigger_long_running_operation(duration=60, steps=60)"))
    wait_until(lambda: box.about()["busy"])
    time.sleep(0.3)
    assert box.post("/interrupt").status == 202
    r = later.result()
    assert r["error"]["name"] == "KeyboardInterrupt" and r["state"] == "kept", r
    assert out(box, "print(await mcp_everything.echo(message='again'))") == "Echo: again\n"
