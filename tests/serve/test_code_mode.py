# SPDX-License-Identifier: Apache-2.0
"""test_code_mode.py - Code mode through the whole daemon: the memory and functions that code saves, and their owners."""
import os
import signal

import pytest

from box_lib import Box
from process import unique, wait_until


def run(box, code, **fields):
    r = box.post("/execute", {"code": code, **fields})
    assert r.status == 200, r
    return r.json


def out(box, code, **fields):
    r = run(box, code, **fields)
    assert r["ok"], r
    return r["stdout"]


@pytest.fixture
def project():
    return unique("project")


def test_memory_and_functions_outlive_the_sandbox(daemon, project):
    with Box(daemon, servers=[], project=project) as box:
        assert box.about()["spec"]["servers"] == [] and box.about()["spec"]["project"] == project
        assert out(box, "print(save_memory('the plan', {'steps': [1, 2]}, metadata={'by': 'me'}))") == "Memory 'the plan' saved.\n"
        assert out(box, "import math\ndef area(r):\n    return round(math.pi * r * r, 2)\nprint(save_tool(area))").startswith("Tool 'area' saved.")
        assert "def area" in box.shell("cat /projects/user_tools.py")["stdout"], "what was saved here is seen here"
        out(box, "@save_tool\ndef brief(n): return n")
        assert out(box, "print(brief(7), delete_tool('brief'))") == "7 Tool 'brief' deleted.\n"
        assert "brief" not in box.shell("cat /projects/user_tools.py")["stdout"]
        created = out(box, "print(get_memory_info('the plan')['created_at'])")
        assert '"steps"' in box.shell("cat /projects/memory/the_plan.json")["stdout"]
    with Box(daemon, servers=[], project=project) as box:
        assert out(box, "print(area(1), load_memory('the plan'), [m['metadata'] for m in list_memories()])") == \
            "3.14 {'steps': [1, 2]} [{'by': 'me'}]\n"
        assert out(box, "save_memory('the plan', 3); print(get_memory_info('the plan')['created_at'])") == created
        assert "def area" in box.shell("cat /projects/user_tools.py")["stdout"]
        assert out(box, "import mcp.runtime as rt\nprint(rt.delete_tool('area'), rt.delete_memory('the plan'), rt.list_memories())") == \
            "Tool 'area' deleted. Memory 'the plan' deleted. []\n"
    with Box(daemon, servers=[], project=project) as box:
        assert run(box, "area")["error"]["name"] == "NameError"


def test_a_saved_function_that_does_not_load_is_reported_and_costs_nothing_else(daemon, project):
    with Box(daemon, servers=[], project=project) as box:
        out(box, "def good(): return 'here'\nsave_tool(good)\n"
                 "from caisson_kernel.codemode import rpc\nrpc.ask('tool.save', name='bad', source='def bad(:')")
    with Box(daemon, servers=[], project=project) as box:
        r = run(box, "print(good())")
        assert r["ok"] and r["stdout"] == "here\n" and "saved tool 'bad' was not loaded: SyntaxError" in r["stderr"], r
        out(box, "mcp.runtime.delete_tool('bad'), mcp.runtime.delete_tool('good')")


def test_projects_are_apart(daemon, project):
    with Box(daemon, servers=[], project=project) as one, Box(daemon, servers=[]) as other:
        out(one, "save_memory('k', 1)")
        assert out(other, "print(load_memory('k'), 'k' in [m['key'] for m in list_memories()])") == "None False\n"
        out(one, "delete_memory('k')")


@pytest.mark.slow
def test_who_keeps_too_much_has_to_wait(daemon, project):
    """Requests that the library would not send. A written megabyte counts as four; 8 per second, 32 at once."""
    flood = """
from caisson_kernel.codemode import rpc
import time
kept, begin = 0, time.monotonic()
for i in range(20):
    try:
        rpc.ask('memory.save', key='k', value='"' + 'x' * 1000000 + '"', metadata='{}')
        kept += 1
    except rpc.MCPError as e:
        assert e.code == 'rate', e
print(kept, time.monotonic() - begin)
save_memory('k', 'patient')
print(load_memory('k'), delete_memory('k'))
"""
    with Box(daemon, servers=[], project=project) as box:
        first, second = out(box, flood).splitlines()
        kept, seconds = map(float, first.split())
        assert 1 <= kept <= 9 + 2.2 * (seconds + 1), first
        assert second == "patient Memory 'k' deleted."


def test_javascript_has_the_same_memory(daemon, project):
    with Box(daemon, servers=[], project=project) as box:
        out(box, "save_memory('k', {'a': 1})")
        assert out(box, "console.log((await mcp.runtime.load_memory('k')).a); await mcp.runtime.save_memory('k', [2])",
                   language="javascript") == "1\n"
        assert out(box, "print(load_memory('k'), delete_memory('k'))") == "[2] Memory 'k' deleted.\n"


def test_javascript_has_the_same_files_and_saved_functions(daemon, project):
    with Box(daemon, servers=[], project=project) as box:
        said = out(box, """
            const f = mcp.runtime;
            const at = [await f.save_file('a.txt', 'x'), await f.save_image('dot', Buffer.from([1, 2])), await f.save_image('b.png', 'data:image/png;base64,AQID'),
                await f.save_image('c.jpg', {toBuffer: async (kind) => Buffer.from(kind)})];
            console.log(at.map((p) => p.slice(f.execution_folder().length + 1)).join());
            console.log(JSON.stringify(await f.list_execution_files()));
            console.log(at.slice(1).map((p) => require('fs').readFileSync(p, 'hex')).join());
            function twice(n) { return 2 * n }
            console.log((await f.save_tool(twice)).slice(0, 19));
        """, language="javascript").splitlines()
        assert said == ["data/a.txt,images/dot.png,images/b.png,images/c.jpg", '{"images":["b.png","c.jpg","dot.png"],"data":["a.txt"],"other":[]}',
                        "0102,010203,%s" % b"image/jpeg".hex(), "Tool 'twice' saved."]
        out(box, "def half(n): return n // 2\nsave_tool(half)")
    with Box(daemon, servers=[], project=project) as box:
        assert out(box, "console.log(twice(21), typeof half)", language="javascript") == "42 undefined\n"
        r = run(box, "print(half(42), 'twice' in globals(), [(t['name'], t['language']) for t in list_saved_tools()])")
        assert (r["stdout"], r["stderr"]) == ("21 False [('twice', 'javascript'), ('half', 'python')]\n", ""), r
        out(box, "mcp.runtime.delete_tool('twice'), mcp.runtime.delete_tool('half')")


def test_a_sandbox_without_servers_has_none_of_it(daemon):
    with Box(daemon) as box:
        r = run(box, "from caisson_kernel.codemode import rpc\ntry:\n    rpc.ask('memory.list')\nexcept rpc.MCPError as e:\n    print(e)\n"
                     "print('mcp' in globals(), 'save_memory' in globals())")
        assert "made without servers" in r["stdout"] and r["stdout"].endswith("False False\n"), r


@pytest.mark.parametrize("spec, said", [
    ({"servers": [], "project": "a b"}, "'project' must have"), ({"project": "a"}, "needs 'servers'"),
    ({"servers": [], "project": ""}, "project")])
def test_a_wrong_project_is_refused(daemon, spec, said):
    r = daemon.post("/v1/sandboxes", {"name": unique(), **spec})
    assert r.status == 422 and said in r.error["message"], r


def test_what_is_kept_outlives_the_daemon_and_is_its_owners_alone(serve, tmp_path):
    tokens = tmp_path / "tokens"
    anna, bob = "anna:" + "a" * 32, "bob:" + "b" * 32
    tokens.write_text("%s\n%s\n" % (anna, bob))
    tokens.chmod(0o600)
    anna, bob = anna.split(":")[1], bob.split(":")[1]

    def code(d, token, text):
        name = unique()
        assert d.post("/v1/sandboxes", {"name": name, "servers": []}, token=token).status == 201
        r = d.post("/v1/sandboxes/%s/execute" % name, {"code": text}, token=token)
        assert r.status == 200 and r.json["ok"], r
        d.request("DELETE", "/v1/sandboxes/" + name, token=token)
        return r.json["stdout"]

    d = serve("--token-file", str(tokens), "--pool", "1", state=tmp_path / "state")
    code(d, anna, "save_memory('k', 'anna was here')\ndef f(): pass\nsave_tool(f)")
    look = "print(load_memory('k'), len(list_memories()), 'f' in globals(), delete_memory('k'))"
    assert code(d, bob, look) == "None 0 False Memory 'k' not found.\n"
    d.stop()
    d = serve("--token-file", str(tokens), "--pool", "1", state=tmp_path / "state")
    assert code(d, bob, look) == "None 0 False Memory 'k' not found.\n"
    assert code(d, anna, look) == "anna was here 1 True Memory 'k' deleted.\n"


@pytest.mark.slow
def test_a_kernel_that_no_zygote_forked_has_it_too(serve):
    """Such a kernel loads the modules from its own driver, at their first use."""
    d = serve("--pool", "0")
    z = wait_until(d.zygote)
    os.kill(z, signal.SIGSTOP)
    try:
        with Box(d, servers=[]) as box:
            assert "kernel-" in out(box, "import sys; print(sys.argv, sys.modules['caisson_kernel'].__file__)")
            assert out(box, "print(save_memory('k', 1), load_memory('k'))") == "Memory 'k' saved. 1\n"
    finally:
        try:
            os.kill(z, signal.SIGCONT)
        except ProcessLookupError:
            pass
