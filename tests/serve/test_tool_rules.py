# SPDX-License-Identifier: Apache-2.0
"""test_tool_rules.py - Tools of other servers, called from code in a sandbox: permitted tools, budgets, and approval.

The server's own records (upstream.py) show the calls; the tests do not trust the code.
"""
import hashlib
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from jupyter_lib import Kernel, start
from mcp_lib import Legacy, Modern, events
from process import BIN, Later, unique, wait_until
from serve_lib import Daemon, WebSocket, clean_env

pytestmark = pytest.mark.skipif(not (BIN.parent / "caisson-bridge").exists(), reason="no caisson-bridge beside the daemon")

slow = pytest.mark.slow

UPSTREAM = Path(__file__).resolve().parent / "upstream.py"
CALL = """
from mcp.runtime import MCPError
try:
    print(%s)
except MCPError as e:
    print("MCPError:", e)
"""


class Tools:
    """A daemon with servers, and the calls that they received."""

    def __init__(self, where, *flags, **rules):
        self.where = where
        config = {name: {"command": sys.executable, "args": [str(UPSTREAM), str(self.log(name))], **({"caisson": r} if r is not None else {})}
                  for name, r in rules.items()}
        config["mute"] = {"command": sys.executable, "args": [str(FAKE), "mute"]}
        path = where / "mcp.json"
        path.write_text(json.dumps({"mcpServers": config}))
        self.daemon = Daemon(where, "--mcp-config", path, "--tools", "all", "--pool", 1, *flags, *(("--mcp-user", "root") if os.geteuid() == 0 else ()))

    def log(self, name):
        return self.where / (name + ".log")

    def calls(self, name, what="call"):
        try:
            return [json.loads(line) for line in self.log(name).read_text().splitlines() if what in json.loads(line)]
        except FileNotFoundError:
            return []

    def box(self, **spec):
        name = unique()
        r = self.daemon.post("/v1/sandboxes", {"name": name, "servers": ["plain"], **spec})
        assert r.status == 201, r
        return name

    def begin(self, box, code, **fields):
        return Later(lambda: self.daemon.post("/v1/sandboxes/%s/execute" % box, {"code": code, **fields}).json)

    def run(self, box, code, **fields):
        return self.begin(box, code, **fields).result()

    def said(self, box, expression):
        """The result of a call, or the error that it raised."""
        r = self.run(box, CALL % expression)
        assert r["status"] == "ok", r
        return r["stdout"].strip()

    def waits(self, n=1):
        """The waiting approvals, when there are n of them."""
        return wait_until(lambda: (lambda a: a if len(a) == n else None)(self.daemon.get("/v1/approvals").json["approvals"]))

    def ledger(self, event, **fields):
        lines = [json.loads(line) for line in (self.daemon.state / "ledger" / "ledger.jsonl").read_text().splitlines()]
        return [e for e in lines if e["event"] == event and all(e.get(k) == v for k, v in fields.items())]


FAKE = UPSTREAM.with_name("fake_mcp.py")


@pytest.fixture(scope="module")
def tools(tmp_path_factory):
    t = Tools(tmp_path_factory.mktemp("tools"),
              plain=None,
              strict={"default": "none", "allow": ["echo"], "deny": ["destroy"]},
              asks={"allow": ["write", "destroy"], "approve": ["write", "destroy"], "approve_seconds": 30},
              hasty={"allow": ["write"], "approve": ["write"], "approve_seconds": 1},
              small={"max_argument_bytes": 100, "max_result_bytes": 1000})
    yield t
    t.daemon.stop()


# ---- which servers --------------------------------------------------------------------------------------


def test_servers_of_a_spec(tools):
    d = tools.daemon
    e = d.post("/v1/sandboxes", {"name": "x", "servers": ["plain", "nope"]}).error
    assert e["code"] == "unknown_server" and e["field"] == "servers" and "'nope'" in e["message"] and "plain, strict" in e["message"]
    for path, code in (("/v1/run_python", {"code": "1"}), ("/v1/run_shell", {"script": "true"})):
        assert d.post(path, {**code, "servers": ["nope"]}).error["code"] == "unknown_server"
    e = d.post("/v1/sandboxes", {"name": "x", "servers": ["plain"], "tools": {"permit": []}}).error
    assert e["field"] == "tools" and "tools.permit: unknown key" in e["message"]
    assert d.post("/v1/sandboxes", {"name": "x", "tools": {"budget": 1}}).error["field"] == "tools"
    assert {"plain", "strict", "mute"} <= {s["name"] for s in d.get("/v1/servers").json["servers"]}
    box = tools.box(servers=["strict", "plain"], tools={"budget": 3})
    spec = d.get("/v1/sandboxes/" + box).json["spec"]
    assert spec["servers"] == ["strict", "plain"] and spec["tools"] == {"budget": 3}
    again = {"name": box, "servers": ["strict", "plain"], "tools": {"budget": 3}}
    assert d.post("/v1/sandboxes", again).status == 200
    assert d.post("/v1/sandboxes", {**again, "tools": {"budget": 4}}).error["code"] == "spec_conflict"


@slow
def test_tools_that_the_rules_leave_out(tools):
    """The list of a server's tools, the log, GET /v1/servers and doctor: each says what is missing, and by which rule."""
    d, rule = tools.daemon, "(rule: mcpServers.plain.caisson.default read-only); the operator permits tools in mcpServers.plain.caisson.allow"
    r = tools.run(tools.box(), "names = [t['name'] for t in mcp.runtime.list_tools_sync('plain')]; print(names)")
    note, = r["stderr"].splitlines()
    assert "may not be called: " in note and note.endswith(rule) and "write" in note and "'write'" not in r["stdout"] and "'echo'" in r["stdout"], r
    server, = [s for s in d.get("/v1/servers").json["servers"] if s["name"] == "plain"]
    assert server["note"] == note and 0 < server["refused"] < server["tools"] and server["state"] == "ready", server
    logged, = [e for e in d.log("mcp_tools_refused") if e["server"] == "plain"]
    assert (logged["refused"], logged["tools"]) == (server["refused"], server["tools"]) and note.startswith(logged["why"][:100]), logged
    checks = json.loads(subprocess.run([BIN, "doctor", "--json"], env=clean_env(CAISSON_URL="http://127.0.0.1:%d" % d.port), stdout=subprocess.PIPE, timeout=60).stdout)["checks"]
    found = {c["name"]: c for c in checks}
    assert found["daemon"]["status"] == "ok" and str(d.port) in found["daemon"]["found"], checks
    assert found["mcp plain"]["status"] == "weak" and found["mcp plain"]["fix"] == note, checks
    assert "code may call %d of %d tools" % (server["tools"] - server["refused"], server["tools"]) in found["mcp plain"]["found"]
    # A server that is used under rules that permit all of it is no matter to mention.
    assert "note" not in next(s for s in d.get("/v1/servers").json["servers"] if s["name"] == "mute")


def test_servers_of_execute(tools):
    d, name = tools.daemon, unique()
    code = "print((await mcp_plain.echo(text='hi')), LOADED_MCP_SERVERS)"
    r = d.post("/execute", {"code": code, "servers": ["plain"]}).json
    assert r["success"] and "'hi'" in r["stdout"] and "('plain',)" in r["stdout"], r
    r = d.post("/execute", {"code": code, "servers": ["plain"], "session_id": name}).json
    assert r["success"] and d.get("/v1/sandboxes/" + name).json["spec"]["servers"] == ["plain"], r
    assert d.post("/execute", {"code": code, "session_id": name}).json["success"], "it has them"
    e = d.post("/execute", {"code": "1", "servers": ["strict"], "session_id": name})
    assert (e.status, e.error["code"], e.error["field"]) == (409, "spec_conflict", "servers") and "other servers" in e.error["message"], e
    plain = unique()
    assert d.post("/execute", {"code": "1", "session_id": plain}).json["success"]
    e = d.post("/execute", {"code": "1", "servers": [], "session_id": plain})
    assert (e.status, e.error["field"]) == (409, "servers") and "without servers" in e.error["message"], e
    assert d.post("/execute", {"code": "1", "servers": ["nope"]}).error["code"] == "unknown_server"
    with WebSocket(d) as ws:
        assert ws.run(code, servers=["plain"])["success"]


def test_without_servers_there_is_nothing(tools, daemon):
    box = unique()
    assert tools.daemon.post("/v1/sandboxes", {"name": box}).status == 201
    r = tools.run(box, "print([n for n in dir() if n.startswith('mcp')])\nimport mcp.runtime")
    assert r["stdout"].strip() == "[]" and "ModuleNotFoundError" in r["stderr"]
    e = daemon.post("/v1/sandboxes", {"name": "x", "servers": ["plain"]}).error
    assert e["code"] == "not_supported" and "--mcp-config" in e["hint"]


@slow
def test_a_silent_server_costs_an_error_and_not_the_execution(tools):
    """The code gets the error before its own time is over, also if that is shorter than the server's time to start."""
    box = tools.box(servers=["mute", "plain"])
    r = tools.run(box, CALL % "await mcp_mute.anything()", timeout=3)
    assert r["status"] == "ok" and "MCPError: mute: no answer in" in r["stdout"] and "still starting" in r["stdout"], r
    r = tools.run(box, "console.log(await mcp.mute.anything().catch((e) => e.name + e.message), mcp.mute)", language="javascript", timeout=3)
    assert r["status"] == "ok" and "MCPErrormute" in r["stdout"], r
    assert tools.said(box, "await mcp_plain.echo(text='x')")


def test_another_server_than_the_sandbox_has(tools):
    box = tools.box()
    said = tools.said(box, "await __import__('mcp').runtime.call_tool('strict', 'echo', {'text': 'x'})")
    assert "strict" in said and "plain" in said and not tools.calls("strict"), said


@slow
def test_parallel_calls_and_big_results(tools):
    box = tools.box()
    r = tools.run(box, "import asyncio, time\nt = time.monotonic()\n"
                       "await asyncio.gather(*(mcp_plain.slow(seconds=1) for _ in range(10)))\nprint(time.monotonic() - t)\n"
                       "print(len(await mcp_plain.big(bytes=5_000_000)))", timeout=30)
    took, size = r["stdout"].split()
    assert float(took) < 5 and size == "5000000", r


# ---- rules ----------------------------------------------------------------------------------------------


def test_refused_tool_names_its_rule(tools):
    box = tools.box(servers=["plain", "strict"])
    call = "await __import__('mcp').runtime.call_tool(%r, %r, {'text': 'x'})"
    assert "read-only" in tools.said(box, call % ("plain", "write"))
    assert "mcpServers.strict.caisson.default none" in tools.said(box, call % ("strict", "slow"))
    assert "mcpServers.strict.caisson.deny destroy" in tools.said(box, call % ("strict", "destroy"))
    assert tools.said(box, call % ("strict", "echo")) == "{'tool': 'echo', 'arguments': {'text': 'x'}}"
    assert not tools.calls("plain", "write") and [c["call"] for c in tools.calls("strict")] == ["echo"]
    refused = tools.ledger("tool.refused", sandbox=box)
    assert [(e["server"], e["tool"]) for e in refused] == [("plain", "write"), ("strict", "slow"), ("strict", "destroy")]
    assert refused[2]["rule"] == "mcpServers.strict.caisson.deny destroy" and refused[2]["code"] == "refused"


@pytest.mark.parametrize("call", ["mcp_plain.write(text='x')", "mcp_plain.write('x')", "mcp_plain.write({'text': 'x'})", "mcp_servers['plain'].write(1, 2, z=3)"])
def test_refused_tool_by_its_proxy(tools, call):
    """The cell does not know its parameters; with any arguments, the answer is that a rule forbids the call."""
    box = tools.box(servers=["plain"])
    assert "read-only" in tools.said(box, "await " + call)
    assert [e["tool"] for e in tools.ledger("tool.refused", sandbox=box)] == ["write"] and not tools.calls("plain", "write")


@slow
def test_a_sandbox_takes_away_and_gives_nothing(tools):
    box = tools.box(tools={"allow": ["plain.echo", "plain.write"]})
    call = "await __import__('mcp').runtime.call_tool('plain', %r, {'text': 'x'})"
    assert tools.said(box, call % "echo").startswith("{'tool'")
    assert "tools.allow" in tools.said(box, call % "fail")
    assert "mcpServers.plain.caisson.default" in tools.said(box, call % "write")


@slow
def test_budget_is_spent_and_survives_a_killed_front(tools):
    box = tools.box(tools={"budget": {"plain.echo": 2, "*": 3}})
    assert "tool" in tools.said(box, "await mcp_plain.echo(text='a')")
    assert "tool" in tools.said(box, "await mcp_plain.echo(text='b')")
    said = tools.said(box, "await mcp_plain.echo(text='c')")
    assert "tools.budget plain.echo" in said and "2 calls" in said
    pid = tools.daemon.pid
    os.kill(pid, signal.SIGKILL)
    wait_until(lambda: tools.daemon.find_front() not in (None, pid))
    tools.daemon.wait_ready()
    assert tools.daemon.get("/v1/sandboxes/" + box).json["spec"]["servers"] == ["plain"]
    assert "tools.budget plain.echo" in tools.said(box, "await mcp_plain.echo(text='d')")
    # One call of three is left.
    assert "x" in tools.said(box, "await mcp_plain.big(bytes=1)")
    assert "tools.budget *" in tools.said(box, "await mcp_plain.big(bytes=1)")


@slow
def test_rate_and_sizes(tools):
    box = tools.box(tools={"rate": 2})
    assert [("rate" in tools.said(box, "await mcp_plain.echo(text='a')")) for _ in range(3)] == [False, False, True]
    box = tools.box(servers=["small"])
    assert "max_argument_bytes" in tools.said(box, "await mcp_small.echo(text='a' * 100)")
    assert "larger than the 1000" in tools.said(box, "await mcp_small.big(bytes=1001)")
    assert len(tools.said(box, "await mcp_small.big(bytes=500)")) == 500


def test_ledger_has_hashes_before_and_after(tools):
    box = tools.box()
    tools.said(box, "await mcp_plain.echo(text='secret word')")
    tools.said(box, "await mcp_plain.fail()")
    begin, fail = tools.ledger("tool.begin", sandbox=box)
    end, failed = tools.ledger("tool.end", sandbox=box)
    arguments = json.dumps(tools.calls("plain")[-2]["arguments"], separators=(",", ":"))
    assert begin["arguments_sha256"] == hashlib.sha256(arguments.encode()).hexdigest() and begin["argument_bytes"] == len(arguments)
    assert begin["id"] == end["id"] and begin["seq"] < end["seq"] and end["outcome"] == "ok" and len(end["result_sha256"]) == 64
    assert end["result_bytes"] > 0 and end["took_ns"] > 0 and begin["verdict"] == "allow"
    assert failed["outcome"] == "tool_error" and fail["tool"] == "fail"
    assert begin["execution"] == tools.ledger("execution.begin", sandbox=box)[0]["id"]
    assert "secret word" not in (tools.daemon.state / "ledger" / "ledger.jsonl").read_text()


# ---- approval -------------------------------------------------------------------------------------------


def test_approval_over_rest(tools):
    d = tools.daemon
    box = tools.box(servers=["asks"])
    for decision, reason in (("approve", None), ("deny", "not on a Friday")):
        n = len(tools.calls("asks"))
        later = tools.begin(box, CALL % "await mcp_asks.write(text='ü')", timeout=4)
        a, = tools.waits()
        assert (a["sandbox"], a["server"], a["tool"], a["arguments"]) == (box, "asks", "write", '{"text":"ü"}'), a
        assert a["rule"] == "mcpServers.asks.caisson.approve write" and not a["truncated"]
        assert len(tools.calls("asks")) == n, "it was called without approval"
        later.thread.join(4.2 if decision == "approve" else 0)  # longer than the execution may take: its time is paused
        assert not later.done(), later.result()
        body = {"decision": decision, **({"reason": reason} if reason else {})}
        assert d.post("/v1/approvals/" + a["id"], body).json["id"] == a["id"]
        r = later.result()
        if decision == "approve":
            assert r["status"] == "ok" and "'tool': 'write'" in r["stdout"] and len(tools.calls("asks")) == n + 1, r
        else:
            assert "not approved: not on a Friday" in r["stdout"] and len(tools.calls("asks")) == n, r
        assert d.post("/v1/approvals/" + a["id"], body).error["code"] == "no_such_approval"
    assert [e["outcome"] for e in tools.ledger("approval.end")][-2:] == ["approved", "denied"]
    assert d.post("/v1/approvals/x", {"decision": "perhaps"}).error["field"] == "decision"


@slow
def test_nobody_answers(tools):
    box = tools.box(servers=["hasty"])
    assert "no decision in 1 s" in tools.said(box, "await mcp_hasty.write(text='x')")
    assert not tools.calls("hasty") and tools.ledger("approval.end", sandbox=box)[0]["outcome"] == "late"


@slow
def test_approvals_are_their_owners(pytestconfig, tmp_path):
    tokens = tmp_path / "tokens"
    tokens.write_text("alice:%s\nbob:%s\n" % ("a" * 40, "b" * 40))
    tokens.chmod(0o600)
    t = Tools(tmp_path, "--token-file", tokens, plain={"allow": ["write"], "approve": ["write"]})
    with t.daemon as d:
        later = Later(lambda: d.post("/v1/run_python", {"code": CALL % "await mcp_plain.write(text='x')", "servers": ["plain"]}, token="a" * 40))
        a = wait_until(lambda: d.get("/v1/approvals", token="a" * 40).json["approvals"])[0]
        assert d.get("/v1/approvals", token="b" * 40).json["approvals"] == []
        assert d.post("/v1/approvals/" + a["id"], {"decision": "approve"}, token="b" * 40).status == 404
        assert not t.calls("plain")
        assert d.post("/v1/approvals/" + a["id"], {"decision": "approve"}, token="a" * 40).status == 200
        assert later.result().status == 200 and len(t.calls("plain")) == 1


@pytest.mark.parametrize("answer, called", [({"action": "accept", "content": {"approve": True}}, 1),
                                            pytest.param({"action": "accept", "content": {"approve": False, "reason": "no"}}, 0, marks=slow),
                                            pytest.param({"action": "accept", "content": {}}, 0, marks=slow),
                                            pytest.param({"action": "decline"}, 0, marks=slow)])
def test_modern_client_is_asked(tools, answer, called):
    c = Modern(tools.daemon, capabilities={"elicitation": {}})
    params = {"name": "run_python", "arguments": {"code": CALL % "await mcp_asks.write(text='x')", "servers": ["asks"]}}
    n = len(tools.calls("asks"))
    r = c.call("tools/call", params)
    assert r["resultType"] == "input_required", r
    (key, question), = r["inputRequests"].items()
    assert question["method"] == "elicitation/create" and '{"text":"x"}' in question["params"]["message"]
    r = c.call("tools/call", {**params, "inputResponses": {key: answer}, "requestState": r["requestState"]})
    assert r["resultType"] == "complete" and r["structuredContent"]["status"] == "success", r
    assert len(tools.calls("asks")) == n + called
    assert ("MCPError" in r["structuredContent"]["stdout"][0]) == (not called)


@slow
def test_modern_client_is_asked_twice_and_goes_away(tools):
    c = Modern(tools.daemon, capabilities={"elicitation": {}})
    code = "await mcp_asks.write(text='1')\nawait mcp_asks.write(text='2')\nprint('both')"
    params = {"name": "run_python", "arguments": {"code": code, "servers": ["asks"]}}
    yes = {"action": "accept", "content": {"approve": True}}
    r = c.call("tools/call", params)
    for _ in range(2):
        state, key = r["requestState"], next(iter(r["inputRequests"]))
        r = c.call("tools/call", {**params, "inputResponses": {key: yes}, "requestState": state})
    assert r["structuredContent"]["stdout"] == ["both"], r
    with pytest.raises(Exception, match="is over"):
        c.call("tools/call", {**params, "inputResponses": {key: yes}, "requestState": state})
    # The state of another owner, or for other code, is invalid.
    other = {**params, "arguments": {"code": "print(1)", "servers": ["asks"]}}
    with pytest.raises(Exception, match="requestState"):
        c.call("tools/call", {**other, "inputResponses": {key: yes}, "requestState": state})


@slow
def test_task_asks(tools):
    """Code that became a task asks through the task's status."""
    c = Modern(tools.daemon, capabilities={"elicitation": {}, "extensions": {"io.modelcontextprotocol/tasks": {}}})
    code = "import asyncio\nawait asyncio.sleep(6)\n" + CALL % "await mcp_asks.write(text='late')"
    task = c.call("tools/call", {"name": "run_python", "arguments": {"code": code, "servers": ["asks"], "timeout": 20}})
    assert task["resultType"] == "task", task

    def is_at(status):
        t = c.call("tasks/get", {"taskId": task["taskId"]})
        return t if t["status"] == status else None

    (key, question), = wait_until(lambda: is_at("input_required"))["inputRequests"].items()
    assert "late" in question["params"]["message"]
    c.call("tasks/update", {"taskId": task["taskId"], "inputResponses": {key: {"action": "accept", "content": {"approve": True}}}})
    result = wait_until(lambda: is_at("completed"))["result"]
    assert "'text': 'late'" in result["structuredContent"]["stdout"][0] and tools.calls("asks")[-1]["arguments"] == {"text": "late"}


@slow
def test_modern_client_that_never_comes_back(tools):
    """Its code gets the error that nobody decided, and ends; it also ends when the client disconnects while it waits."""
    c = Modern(tools.daemon, capabilities={"elicitation": {}})
    n = len(tools.calls("hasty"))
    params = {"name": "run_python", "arguments": {"code": CALL % "await mcp_hasty.write(text='x')", "servers": ["hasty"]}}
    r = c.call("tools/call", params)
    assert r["resultType"] == "input_required"
    assert wait_until(lambda: not tools.daemon.get("/v1/approvals").json["approvals"])
    assert wait_until(lambda: tools.daemon.health()["sandboxes"]["busy"] == 0)
    # Later than all that: the result is still available.
    r = c.call("tools/call", {**params, "inputResponses": {}, "requestState": r["requestState"]})
    assert "no decision in 1 s" in r["structuredContent"]["stdout"][0] and len(tools.calls("hasty")) == n


def test_legacy_client_is_asked(tools):
    c = Legacy(tools.daemon, capabilities={"elicitation": {}})
    n = len(tools.calls("asks"))
    params = {"name": "run_python", "arguments": {"code": CALL % "await mcp_asks.destroy(text='x')", "servers": ["asks"]}}
    body = json.dumps({"jsonrpc": "2.0", "id": 77, "method": "tools/call", "params": params}).encode()
    headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream", **c.headers}
    later = Later(lambda: tools.daemon.request("POST", "/mcp", body=body, headers=headers))
    tools.waits()
    # The stream of the call has the question; its number is the first of this session.
    assert c.post({"jsonrpc": "2.0", "id": 1, "result": {"action": "accept", "content": {"approve": True}}}).status == 202
    messages = list(events(later.result().body))
    assert [m["method"] for m in messages if "method" in m] == ["elicitation/create"], messages
    assert messages[-1]["id"] == 77 and "destroy" in messages[-1]["result"]["structuredContent"]["stdout"][0]
    assert len(tools.calls("asks")) == n + 1


# ---- the end of an execution ----------------------------------------------------------------------------


@slow
@pytest.mark.parametrize("how", ["timeout", "interrupt", "kill"])
def test_end_of_an_execution_cancels_upstream(tools, how):
    box = tools.box()
    n = len(tools.calls("plain", "cancelled"))
    began = len(tools.calls("plain"))
    later = tools.begin(box, "await mcp_plain.slow(seconds=60)", timeout=1 if how == "timeout" else 30)
    wait_until(lambda: len(tools.calls("plain")) > began)
    if how == "interrupt":
        assert tools.daemon.post("/v1/sandboxes/%s/interrupt" % box, {}).status == 202
    elif how == "kill":
        assert tools.daemon.post("/v1/sandboxes/%s/kill" % box, {}).status == 200
    later.result()
    assert wait_until(lambda: len(tools.calls("plain", "cancelled")) == n + 1)
    # A call gets its timeout a moment before its execution does.
    assert tools.ledger("tool.end", sandbox=box)[0]["outcome"] == ("timeout" if how == "timeout" else "cancelled")
    assert not tools.daemon.get("/v1/approvals").json["approvals"]


@slow
def test_call_that_waits_for_a_person_ends_with_its_execution(tools):
    box = tools.box(servers=["asks"])
    later = tools.begin(box, "await mcp_asks.write(text='x')")
    tools.waits()
    assert tools.daemon.request("DELETE", "/v1/sandboxes/" + box).status == 204
    later.result()
    assert not tools.daemon.get("/v1/approvals").json["approvals"]
    assert tools.ledger("approval.end", sandbox=box)[0]["outcome"] == "dropped"


# ---- run_python -----------------------------------------------------------------------------------------


def test_run_python_as_agents_know_it(tools):
    c = Modern(tools.daemon)

    def run(code, **more):
        r = c.tool("run_python", code=code, **more)
        assert r["isError"] == (r["structuredContent"]["status"] != "success"), r
        return r["structuredContent"]

    assert run("print(1)\nprint(await mcp_plain.echo(text='a'))", servers=["plain"]) == {
        "status": "success", "summary": "Success", "exitCode": 0,
        "stdout": ["1", "{'tool': 'echo', 'arguments': {'text': 'a'}}"], "servers": ["plain"]}
    r = run("import sys\nprint('x', file=sys.stderr)\n1/0")
    assert (r["status"], r["exitCode"], r["error"]) == ("error", 1, "ZeroDivisionError: division by zero") and r["stderr"][0] == "x"
    assert run("raise SystemExit(7)")["exitCode"] == 7
    r = run("print('before', flush=True)\nwhile True: pass", timeout=3)
    assert (r["status"], r["stdout"], r["timeoutSeconds"]) == ("timeout", ["before"], 3) and r["exitCode"] != 0
    assert run("pass") == {"status": "success", "summary": "Success, without output", "exitCode": 0}
    r = run("1", servers=["nope"])
    assert r["status"] == "validation_error" and "nope" in r["summary"] and "plain" in r["summary"]


def test_run_python_is_offered_where_there_are_servers(tmp_path, daemon):
    with_none = Modern(daemon)
    assert "run_python" not in with_none.tools() and "run_python" not in with_none.call("server/discover")["instructions"]
    there = Tools(tmp_path, "--tools", "default", plain=None)
    try:
        for c in (Modern(there.daemon), Legacy(there.daemon)):
            said = c.hello["instructions"] if isinstance(c, Legacy) else c.call("server/discover")["instructions"]
            assert "servers" in c.tools()["run_python"]["inputSchema"]["properties"] and "create_sandbox" not in c.tools()
            assert "run_python(code, servers)" in said and "Servers: plain" in said
        r = c.tool("run_python", code="print((await mcp_plain.echo(text='a'))['tool'])", servers=["plain"])
        assert r["structuredContent"]["stdout"] == ["echo"]
    finally:
        there.daemon.stop()


@slow
def test_an_editor_knows_the_tools(tools):
    """Completion and inspection of proxies over Jupyter: names, arguments and the tool's own documentation."""
    box = tools.box(servers=["plain"])
    with Kernel(tools.daemon, start(tools.daemon, env={"KERNEL_SANDBOX": box})["id"]) as k:
        def complete(code):
            r = k.ask("complete_request", {"code": code, "cursor_pos": len(code)})
            return [code[:r["cursor_start"]] + m for m in r["matches"]]

        def inspect(code, cursor, level=0):
            r = k.ask("inspect_request", {"code": code, "cursor_pos": cursor, "detail_level": level})
            return r["data"]["text/plain"] if r["found"] else None

        assert k.run("1").result == {"text/plain": "1"}
        assert complete("mcp_pl") == ["mcp_plain"] and complete("await mcp_plain.ec") == ["await mcp_plain.echo"]
        assert {"mcp_plain.echo", "mcp_plain.slow", "mcp_plain.big"} <= set(complete("mcp_plain."))
        assert "mcp_plain.echo(text=" in complete("mcp_plain.echo(te")
        assert "from mcp.servers.plain import echo" in complete("from mcp.servers.plain import ec")
        text = inspect("await mcp_plain.echo(text='x')", 20)
        assert "Says it again." in text and "text: str" in text, text
        assert "Takes its time." in inspect("mcp_plain.slow(", 15)
        assert inspect("mcp_plain.nothing", 17) is None
        assert k.run("(await mcp_plain.echo(text='x'))['tool']").result == {"text/plain": "'echo'"}
    assert [c["call"] for c in tools.calls("plain") if c["arguments"] == {"text": "x"}], "the editor's request was sent to the server"


def test_create_sandbox_over_mcp(tools):
    c = Modern(tools.daemon)
    box = c.tool("create_sandbox", servers=["plain"], tools={"budget": 1})["structuredContent"]["session_id"]
    r = c.tool("execute_code", session_id=box, language="python", code="print(await mcp_plain.echo(text='q'))")
    assert "'q'" in r["structuredContent"]["stdout"]
    r = c.call("tools/call", {"name": "execute_code", "arguments": {"session_id": box, "language": "python", "code": "await mcp_plain.echo(text='q')"}})
    assert not r["isError"] and r["structuredContent"]["status"] == "error" and "tools.budget" in r["structuredContent"]["stderr"]


# ---- the command ----------------------------------------------------------------------------------------


@slow
def test_approve_on_the_command_line(tools):
    def caisson(*args):
        r = subprocess.run([str(BIN), *args], env=clean_env(CAISSON_URL="http://127.0.0.1:%d" % tools.daemon.port), capture_output=True, text=True, timeout=60)
        return r.returncode, r.stdout + r.stderr

    box = unique()
    assert caisson("create", box, "--server", "asks", "--tool-rules", '{"budget": 9}') == (0, box + "\n")
    assert caisson("approve")[1].split() == ["ID", "SANDBOX", "TOOL", "UNTIL", "ARGUMENTS"]
    for options, word in (((), "approved"), (("--deny", "--reason", "no way"), "denied")):
        later = tools.begin(box, CALL % "await mcp_asks.write(text='\\x1b[2J')")
        a, = tools.waits()
        code, text = caisson("approve", "ls")
        assert code == 0 and a["id"][:12] in text and "asks.write" in text and box in text and "\x1b" not in text
        assert caisson("approve", a["id"][:8], *options) == (0, "%s asks.write\n" % word)
        assert ("no way" in later.result()["stdout"]) == (word == "denied")
    assert caisson("approve", "0123")[0] == 5
    assert caisson("approve", "--deny")[0] == 125
    assert caisson("create", unique(), "--tool-rules", "{")[0] == 125
