# SPDX-License-Identifier: Apache-2.0
"""test_mcp_raw.py - The protocol beyond its tools: tasks, subscriptions, questions, skills, headers."""
import base64
import hashlib
import json
import os
import re
import secrets
import signal

import pytest

from mcp_client import LEGACY, META, TASKS, Answer, Client, events, raw_events
from process import unique, wait_until
from serve_lib import Daemon, Held, with_fixtures

ALICE, BOB = secrets.token_hex(32), secrets.token_hex(32)
TASK_CAPABLE = {"extensions": {TASKS: {}}}
FORMS = {"elicitation": {}}
INVALID_PARAMS, NO_METHOD, BAD_HEADER, NO_CAPABILITY = -32602, -32601, -32020, -32021


@pytest.fixture(scope="module")
def conforming(pytestconfig):
    where = pytestconfig.serve_dir / "craft-tokens"
    where.touch(0o600)
    where.write_text("alice:%s\nbob:%s\n" % (ALICE, BOB))
    d = Daemon(pytestconfig.serve_dir, "--token-file", where, binary=with_fixtures(pytestconfig.serve_dir))
    d.token = ALICE
    try:
        yield d
        d.stop()
    finally:
        d.kill()


@pytest.fixture
def alice(conforming):
    return Client(conforming, ALICE)


@pytest.fixture
def bob(conforming):
    return Client(conforming, BOB)


# ---- what is for the conformance suite stays there ------------------------------------------------------------------


def test_no_fixture_in_the_installed_daemon(daemon):
    c = Client(daemon)
    names = {t["name"] for t in c.modern("tools/list").result["tools"]}
    assert "execute_code" in names
    fixtures = {"greet", "slow_compute", "failing_job", "protocol_error_job", "confirm_delete", "multi_input",
                "json_schema_2020_12_tool", "test_simple_text"}
    assert not [n for n in names if n in fixtures or n.startswith("test_")]
    for name in sorted(fixtures):
        assert c.tool(name).error["code"] == INVALID_PARAMS
    for method in ("prompts/list", "prompts/get"):
        a = c.modern(method, {"name": "test_simple_prompt"} if method == "prompts/get" else None)
        assert a.status == 404 and a.error["code"] == NO_METHOD
    assert not [r for r in c.modern("resources/list").result["resources"] if r["uri"].startswith("test:")]
    assert not [r for r in c.modern("resources/templates/list").result["resourceTemplates"] if r["uriTemplate"].startswith("test:")]
    for uri in ("test://static-text", "test://template/1/data"):
        error = c.modern("resources/read", {"uri": uri}).error
        assert error["code"] == INVALID_PARAMS and error["data"]["uri"] == uri
    caps = c.modern("server/discover").result["capabilities"]
    assert "prompts" not in caps and "listChanged" not in caps["tools"]
    c.initialize()
    assert c.legacy("prompts/list").error["code"] == NO_METHOD
    assert c.legacy("resources/read", {"uri": "test://static-text"}).error["code"] == -32002


def test_capabilities_are_true(daemon):
    """Every advertised capability works."""
    c = Client(daemon)
    caps = c.modern("server/discover").result["capabilities"]
    assert set(caps["extensions"]) == {TASKS, META + "skills"} and "tasks" not in caps
    assert c.modern("resources/list").result["resources"] and caps["resources"] == {"listChanged": True, "subscribe": True}
    assert c.modern("skills/list").result["skills"]
    assert c.modern("completion/complete", {"ref": {"type": "ref/prompt", "name": "none"},
                                            "argument": {"name": "a", "value": ""}}).error["code"] == INVALID_PARAMS
    legacy = c.initialize().result["capabilities"]
    assert "extensions" not in legacy and "logging" in legacy


# ---- pages ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["tools/list", "resources/list", "resources/templates/list", "skills/list"])
def test_cursors(daemon, method):
    c = Client(daemon)
    assert "nextCursor" not in c.modern(method, {"cursor": ""}).result
    for cursor in ("x", "p", "p0x1", "p01", "p-1", "pffffffffffffffffffff", 7):
        error = c.modern(method, {"cursor": cursor}).error
        assert error["code"] == INVALID_PARAMS and "cursor" in error["message"], cursor


# ---- skills ---------------------------------------------------------------------------------------------------------


def test_skill_matches_its_list(daemon):
    c = Client(daemon)
    skill, = c.modern("skills/list").result["skills"]
    assert c.modern("skills/get", {"uri": skill["uri"]}).result["skill"] == skill
    for r in skill["resources"]:
        content, = c.modern("resources/read", {"uri": r["uri"]}).result["contents"]
        raw = content["text"].encode()
        assert content["mimeType"] == "text/markdown" and len(raw) == r["size"]
        assert r["digest"] == "sha256:" + hashlib.sha256(raw).hexdigest()
        if r["uri"] == skill["uri"]:
            head = re.match(r"---\n(.*?)\n---\n", content["text"], re.S)[1]
            assert dict(line.split(": ", 1) for line in head.splitlines()) == skill["frontmatter"]
            for link in re.findall(r"\]\(([^)]+)\)", content["text"]):
                assert any(o["uri"].endswith("/" + link) for o in skill["resources"]), link
    assert skill["uri"].endswith("/%s/SKILL.md" % skill["frontmatter"]["name"])


def test_skill_as_a_directory(daemon):
    c = Client(daemon)
    skill, = c.modern("skills/list").result["skills"]
    root = skill["uri"].rsplit("/", 1)[0]
    seen, todo = set(), [root]
    while todo:
        for child in c.modern("resources/directory/read", {"uri": todo.pop()}).result["resources"]:
            if child["mimeType"] == "inode/directory":
                todo.append(child["uri"])
            else:
                seen.add(child["uri"])
    assert seen == {r["uri"] for r in skill["resources"]}
    for uri in (skill["uri"], root + "/nothing", "skill://other", "", root + "/refer", None):
        assert c.modern("resources/directory/read", {"uri": uri}).error["code"] == INVALID_PARAMS, uri


# ---- tasks ----------------------------------------------------------------------------------------------------------


def busy(d):
    return d.health()["sandboxes"]["busy"]


def status(c, task):
    return c.modern("tasks/get", {"taskId": task}).result["status"]


def test_long_code_becomes_a_task(daemon):
    """The code continues without a connection, and the task's result is that of the call. Other clients wait."""
    c = Client(daemon, capabilities=TASK_CAPABLE)
    patient = Client(daemon)
    late, later = Held(daemon, "print('late')"), Held(daemon, "print('late'); 6*7")
    m = patient.modern_message("tools/call", {"name": "execute_python", "arguments": {
        "code": late.code, "timeout": 100}})
    h = patient.connection()
    h.request("POST", "/mcp", json.dumps(m), patient.headers(patient.modern_headers(m)))
    a = c.tool("execute_python", {"code": later.code, "timeout": 100})
    task = a.result
    assert task["resultType"] == "task" and task["status"] == "working" and "content" not in task
    assert late.there() and busy(daemon) == 2
    late.let_go()
    later.let_go()
    assert wait_until(lambda: status(c, task["taskId"]) != "working")
    done = c.modern("tasks/get", {"taskId": task["taskId"]}).result
    assert done["status"] == "completed" and done["result"]["structuredContent"]["stdout"] == "late\n"
    assert done["result"]["structuredContent"]["result"] == "42" and done["resultType"] == "complete"
    # A task that has ended stays ended.
    assert c.modern("tasks/cancel", {"taskId": task["taskId"]}).result["resultType"] == "complete"
    assert status(c, task["taskId"]) == "completed"
    waited = Answer(h.getresponse())
    assert waited.result["resultType"] == "complete" and "late" in waited.text


def test_quick_code_does_not(daemon):
    c = Client(daemon, capabilities=TASK_CAPABLE)
    assert c.tool("execute_python", {"code": "print(1)"}).result["resultType"] == "complete"


def test_cancelled_task_stops_its_code(daemon):
    c = Client(daemon, capabilities=TASK_CAPABLE)
    task = c.tool("execute_python", {"code": "while True: pass", "timeout": 100}).result["taskId"]
    assert busy(daemon) == 1
    assert set(c.modern("tasks/cancel", {"taskId": task}).result) <= {"resultType", "_meta"}
    assert status(c, task) == "cancelled"
    assert wait_until(lambda: busy(daemon) == 0)


def test_tasks_are_their_owners(alice, bob):
    alice.capabilities = bob.capabilities = TASK_CAPABLE
    task = alice.tool("slow_compute", {"seconds": 60}).result["taskId"]
    for method, more in (("tasks/get", {}), ("tasks/cancel", {}), ("tasks/update", {"inputResponses": {}})):
        assert bob.modern(method, {"taskId": task, **more}).error["code"] == INVALID_PARAMS
    _, heard, r = bob.listen(taskIds=[task])
    assert "taskIds" not in next(heard)["params"]["notifications"]
    r.keep.close()
    assert status(alice, task) == "working"
    alice.modern("tasks/cancel", {"taskId": task})


def test_tasks_need_the_extension(alice):
    a = alice.modern("tasks/get", {"taskId": "x"})
    assert a.status == 400 and a.error["code"] == NO_CAPABILITY
    assert a.error["data"]["requiredCapabilities"] == TASK_CAPABLE
    assert alice.tool("failing_job").error["code"] == NO_CAPABILITY


def test_task_asks_and_goes_on(alice):
    alice.capabilities = {**TASK_CAPABLE, **FORMS}
    task = alice.tool("multi_input").result["taskId"]
    assert set(alice.modern("tasks/get", {"taskId": task}).result["inputRequests"]) == {"name", "confirm"}
    answer = {"action": "accept", "content": {"name": "x", "confirm": True}}
    # Answers without a question, and invalid answers, change nothing.
    alice.modern("tasks/update", {"taskId": task, "inputResponses": {"other": answer, "name": 7}})
    assert set(alice.modern("tasks/get", {"taskId": task}).result["inputRequests"]) == {"name", "confirm"}
    alice.modern("tasks/update", {"taskId": task, "inputResponses": {"name": answer}})
    assert set(alice.modern("tasks/get", {"taskId": task}).result["inputRequests"]) == {"confirm"}
    alice.modern("tasks/update", {"taskId": task, "inputResponses": {"confirm": answer}})
    assert status(alice, task) == "completed"


def test_there_are_only_so_many_tasks(alice):
    """Beyond the limit, a tool that can answer without a task does so."""
    alice.capabilities = TASK_CAPABLE
    tasks = []
    while len(tasks) < 200:
        a = alice.tool("confirm_delete", {"filename": "x"})
        if "error" in a.last:
            break
        tasks.append(a.result["taskId"])
    assert len(tasks) < 100
    assert alice.tool("slow_compute", {"seconds": 0.01}).result["resultType"] == "complete"
    for task in tasks:
        alice.modern("tasks/cancel", {"taskId": task})


# ---- subscriptions --------------------------------------------------------------------------------------------------


def test_listen_sends_only_the_kinds_that_it_confirmed(alice):
    number, heard, r = alice.listen(toolsListChanged=True, resourceSubscriptions=["test://watched-resource"], nonsense=True)
    ack = next(heard)
    assert ack["method"] == "notifications/subscriptions/acknowledged"
    assert ack["params"]["notifications"] == {"toolsListChanged": True, "resourceSubscriptions": ["test://watched-resource"]}
    alice.tool("test_trigger_prompt_change")
    alice.tool("test_trigger_resource_change", {"uri": "test://static-text"})
    alice.tool("test_trigger_resource_change", {"uri": "test://watched-resource"})
    alice.tool("test_trigger_tool_change")
    updated, changed = next(heard), next(heard)
    assert updated["method"] == "notifications/resources/updated" and updated["params"]["uri"] == "test://watched-resource"
    assert changed["method"] == "notifications/tools/list_changed"
    for m in (ack, updated, changed):
        assert m["params"]["_meta"][META + "subscriptionId"] == number
    r.keep.close()


def test_listen_reports_nothing_of_others(alice, bob):
    _, heard, r = alice.listen(resourceSubscriptions=["test://watched-resource"], toolsListChanged=True)
    next(heard)
    bob.tool("test_trigger_resource_change", {"uri": "test://watched-resource"})
    alice.tool("test_trigger_tool_change")
    assert next(heard)["method"] == "notifications/tools/list_changed"
    r.keep.close()


def test_listen_to_a_task(alice):
    alice.capabilities = TASK_CAPABLE
    task = alice.tool("slow_compute", {"seconds": 60}).result["taskId"]
    number, heard, r = alice.listen(taskIds=[task, "unknown"])
    assert next(heard)["params"]["notifications"] == {"taskIds": [task]}
    alice.modern("tasks/cancel", {"taskId": task})
    told = next(heard)
    assert told["method"] == "notifications/tasks" and told["params"]["status"] == "cancelled" and told["params"]["taskId"] == task
    assert told["params"]["_meta"][META + "subscriptionId"] == number
    r.keep.close()


def test_listen_is_bounded_and_freed(alice):
    streams = []
    while len(streams) < 200:
        _, heard, r = alice.listen(toolsListChanged=True)
        if "method" not in next(heard, {}):
            r.keep.close()
            break
        streams.append(r)
    assert len(streams) < 100
    for r in streams:
        r.keep.close()

    def again():
        _, heard, r = alice.listen(toolsListChanged=True)
        m = next(heard, {})
        r.keep.close()
        return "method" in m
    assert wait_until(again)


@pytest.mark.parametrize("params", [{}, {"notifications": []}, {"notifications": {"resourceSubscriptions": "x"}},
                                    {"notifications": {"taskIds": [1]}}, {"notifications": {"taskIds": ["x"] * 300}}])
def test_listen_to_nonsense(alice, params):
    assert alice.modern("subscriptions/listen", params).error["code"] == INVALID_PARAMS


def test_listen_needs_a_stream(alice):
    m = alice.modern_message("subscriptions/listen", {"notifications": {}})
    assert alice.send(m, alice.modern_headers(m, {"Accept": "application/json"})).status == 406


def test_stop_ends_subscriptions_with_an_answer(serve):
    d = serve()
    c = Client(d)
    number, heard, _ = c.listen(resourceSubscriptions=["skill://caisson-sandbox/SKILL.md"])
    next(heard)
    d.stop()
    end = next(heard)
    assert end["id"] == number and end["result"]["_meta"][META + "subscriptionId"] == number
    assert next(heard, None) is None


def test_legacy_subscription(alice):
    alice.initialize()
    c = alice.connection()
    c.request("GET", "/mcp", headers=alice.headers({"Mcp-Session-Id": alice.session, "Accept": "text/event-stream"}))
    heard = events(c.getresponse())
    uri = "test://watched-resource"
    assert alice.legacy("resources/subscribe", {"uri": uri}).result == {}
    alice.legacy("tools/call", {"name": "test_trigger_resource_change", "arguments": {"uri": uri}})
    assert next(heard) == {"jsonrpc": "2.0", "method": "notifications/resources/updated", "params": {"uri": uri}}
    assert alice.legacy("resources/unsubscribe", {"uri": uri}).result == {}
    alice.legacy("tools/call", {"name": "test_trigger_resource_change", "arguments": {"uri": uri}})
    alice.legacy("tools/call", {"name": "test_trigger_tool_change", "arguments": {}})
    assert next(heard)["method"] == "notifications/tools/list_changed"
    c.close()
    assert alice.legacy("resources/subscribe", {"uri": "test://none"}).error["code"] == -32002


def stream_of(c):
    """The messages of a legacy session that belong to no request."""
    h = c.connection()
    h.request("GET", "/mcp", headers=c.headers({"Mcp-Session-Id": c.session, "Accept": "text/event-stream"}))
    r = h.getresponse()
    r.keep = h
    return events(r), r


def ready(c):
    c.initialize()
    assert c.send({"jsonrpc": "2.0", "method": "notifications/initialized"}, {"Mcp-Session-Id": c.session, "MCP-Protocol-Version": LEGACY}).status == 202


def test_sandboxes_that_come_and_go_are_other_resources(alice, bob):
    # messages of both eras, and of no other owner
    _, heard, r = alice.listen(resourcesListChanged=True)
    assert next(heard)["params"]["notifications"] == {"resourcesListChanged": True}
    _, others, o = bob.listen(resourcesListChanged=True, toolsListChanged=True)
    next(others)
    ready(alice)
    told, s = stream_of(alice)
    name = unique("list")
    uri = "sandbox://%s/files/" % name
    for arguments in ({"code": "1"}, None):
        if arguments:
            assert not alice.tool("execute_code", {"session_id": name, "language": "python", **arguments}).result["isError"]
        else:
            assert alice.daemon.request("DELETE", "/v1/sandboxes/" + name, headers={"Authorization": "Bearer " + alice.token}).status in (200, 204)
        for stream in (heard, told):
            assert next(stream)["method"] == "notifications/resources/list_changed"
        assert (uri in [x["uri"] for x in alice.modern("resources/list").result["resources"]]) == bool(arguments)
    bob.tool("test_trigger_tool_change")
    assert next(others)["method"] == "notifications/tools/list_changed"
    for x in (r, o, s):
        x.keep.close()


def test_a_policy_that_changes_tools_is_reported(serve, tmp_path):
    policy, tokens = tmp_path / "policy.toml", tmp_path / "tokens"
    policy.write_text("[default]\n")
    tokens.write_text("alice:%s\nbob:%s\n" % ("a" * 40, "b" * 40))
    for f in (policy, tokens):
        f.chmod(0o600)
    d = serve("--policy", policy, "--token-file", tokens)
    alice, bob = Client(d, "a" * 40), Client(d, "b" * 40)
    assert alice.modern("server/discover").result["capabilities"]["tools"] == {"listChanged": True}
    _, heard, r = alice.listen(toolsListChanged=True, promptsListChanged=True)
    assert next(heard)["params"]["notifications"] == {"toolsListChanged": True}
    _, others, o = bob.listen(toolsListChanged=True, resourcesListChanged=True)
    next(others)
    ready(alice)
    told, s = stream_of(alice)
    policy.write_text('[default]\n[owners.alice]\ntools = ["execute_python"]\n')
    os.kill(d.keeper, signal.SIGHUP)
    for stream in (heard, told):
        assert next(stream)["method"] == "notifications/tools/list_changed"
    assert [t["name"] for t in alice.modern("tools/list").result["tools"]] == ["execute_python"]
    bob.tool("execute_code", {"session_id": "s", "language": "python", "code": "1"})
    assert next(others)["method"] == "notifications/resources/list_changed"  # bob's tools are unchanged
    for x in (r, o, s):
        x.keep.close()


# ---- streams that are resumed -----------------------------------------------------------------------------------------


def begin_counting(c):
    """A call that reports progress and then waits for a file: (its stream, event by event)."""
    c.initialize()
    code = ("import os, time\nprint('first', flush=True)\nwhile not os.path.exists('/workspace/go'): time.sleep(0.05)\n"
            "time.sleep(0.5); print('second', flush=True); 6*7")
    m = {"jsonrpc": "2.0", "id": 77, "method": "tools/call", "params": {
        "name": "execute_code", "arguments": {"session_id": "resume", "language": "python", "code": code, "timeout": 60},
        "_meta": {"progressToken": "p"}}}
    r = c.send(m, {"Mcp-Session-Id": c.session, "MCP-Protocol-Version": LEGACY})
    return r, raw_events(r)


def let_go(daemon):
    r = daemon.request("PUT", "/v1/sandboxes/resume/files?path=go", body=b"x", headers={"Content-Type": "application/octet-stream"})
    assert r.status in (200, 201, 204), r


def resume(c, last):
    h = c.connection()
    h.request("GET", "/mcp", headers=c.headers({"Mcp-Session-Id": c.session, "Accept": "text/event-stream", "Last-Event-ID": last}))
    return h.getresponse()


def test_lost_stream_is_resumed(daemon):
    """No event is missing or repeated, whether the call still runs or has ended."""
    c = Client(daemon)
    r, heard = begin_counting(c)
    first, told = next(heard), next(heard)
    assert first["data"] == "" and "retry" in first and told["data"]["params"]["message"] == "first"
    r.keep.close()
    again = raw_events(resume(c, first["id"]))
    assert next(again) == told
    let_go(daemon)
    rest = list(again)
    assert [e["data"]["params"]["message"] for e in rest[:-1]] == ["second"]
    assert rest[-1]["data"]["id"] == 77 and rest[-1]["data"]["result"]["structuredContent"]["result"] == "42"
    assert list(raw_events(resume(c, told["id"]))) == rest
    assert list(raw_events(resume(c, rest[-1]["id"]))) == []
    for bad in ("1-99", "9-0", "x", "1", "1-1x", "-1-0", ""):
        assert resume(c, bad).status == 400, bad
    other = Client(daemon)
    other.initialize()
    assert resume(other, told["id"]).status == 400, "another session's stream"


def test_stream_is_taken_over(daemon):
    """The old connection, which may be dead unnoticed, ends."""
    c = Client(daemon)
    _, heard = begin_counting(c)
    told = [next(heard), next(heard)][1]
    again = raw_events(resume(c, told["id"]))
    let_go(daemon)
    assert list(again)[-1]["data"]["id"] == 77
    assert not list(heard)


def test_older_clients_get_no_empty_event(daemon):
    c = Client(daemon)
    c.initialize("2025-06-18")
    a = c.send({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {
        "name": "execute_python", "arguments": {"code": "print(1)"}, "_meta": {"progressToken": 1}}}, {"Mcp-Session-Id": c.session})
    assert all("id" not in e and e["data"] for e in raw_events(a))


# ---- questions ------------------------------------------------------------------------------------------------------

STATEFUL = "test_input_required_result_request_state"
CONFIRMED = {"confirm": {"action": "accept", "content": {"ok": True}}}


def ask(c, tool=STATEFUL, **more):
    return c.tool(tool, more=more, capabilities=FORMS)


def test_state_comes_back(alice):
    first = ask(alice).result
    assert first["resultType"] == "input_required" and set(first["inputRequests"]) == {"confirm"}
    again = ask(alice, requestState=first["requestState"], inputResponses=CONFIRMED)
    assert again.result["resultType"] == "complete" and again.text == "state-ok"
    # Without the answer the question is repeated; without the state the answer is not enough.
    assert ask(alice, requestState=first["requestState"]).result["resultType"] == "input_required"
    assert ask(alice, inputResponses=CONFIRMED).result["resultType"] == "input_required"


def flip(text, at):
    return text[:at] + ("A" if text[at] != "A" else "B") + text[at + 1:]


def test_state_is_sealed(alice, bob):
    """It is valid for its owner, method and parameters, unchanged, and for nothing else."""
    state = ask(alice).result["requestState"]
    payload, mac = state.split(".")
    longer = base64.b64encode(base64.b64decode(payload).replace(b'"e":', b'"e":9')).decode()
    for bad in (state + "x", state[:-4], "", ".", payload, payload + ".", "." + mac, flip(state, 2), flip(state, len(payload) + 3),
                longer + "." + mac, 7, {}, "x" * 100000):
        a = ask(alice, requestState=bad, inputResponses=CONFIRMED)
        assert a.status == 200 and a.error["code"] == INVALID_PARAMS and "requestState" in a.error["message"], bad
    assert ask(bob, requestState=state, inputResponses=CONFIRMED).error["code"] == INVALID_PARAMS
    other = ask(alice, "test_input_required_result_tampered_state", requestState=state, inputResponses=CONFIRMED)
    assert other.error["code"] == INVALID_PARAMS
    a = alice.modern("tools/call", {"name": STATEFUL, "arguments": {"x": 1}, "requestState": state, "inputResponses": CONFIRMED},
                     capabilities=FORMS)
    assert a.error["code"] == INVALID_PARAMS
    assert ask(alice, requestState=state, inputResponses=CONFIRMED).text == "state-ok"


def test_state_is_not_another_daemons(serve, alice, pytestconfig):
    state = ask(alice).result["requestState"]
    other = Client(serve(binary=with_fixtures(pytestconfig.serve_dir)))
    assert ask(other, requestState=state, inputResponses=CONFIRMED).error["code"] == INVALID_PARAMS


def test_the_client_is_asked_only_for_its_capabilities(alice):
    a = alice.tool("test_input_required_result_multiple_inputs", capabilities={"roots": {}})
    assert set(a.result["inputRequests"]) == {"client_roots"}
    a = alice.tool(STATEFUL, capabilities={})
    assert a.status == 400 and a.error["code"] == NO_CAPABILITY and a.error["data"]["requiredCapabilities"] == FORMS


@pytest.mark.parametrize("answers", [7, None, [], "x", {"confirm": 7}, {"confirm": None}])
def test_answers_that_are_none(alice, answers):
    assert ask(alice, inputResponses=answers).error["code"] == INVALID_PARAMS


def test_legacy_client_is_not_asked_in_the_modern_way(alice):
    alice.initialize()
    assert "error" in alice.legacy("tools/call", {"name": STATEFUL, "arguments": {}}).last


# ---- arguments as headers -------------------------------------------------------------------------------------------

REGION = "Mcp-Param-Region"
EUROPE = "=?base64?%s?=" % base64.b64encode("Süden".encode()).decode()


@pytest.mark.parametrize("arguments, headers, good", [
    ({}, {}, True),
    ({"region": None}, {}, True),
    ({"region": "eu"}, {REGION: "eu"}, True),
    ({"region": "eu"}, {REGION.lower(): "eu"}, True),
    ({"region": "Süden"}, {REGION: EUROPE}, True),
    ({"region": "=?base64?eA"}, {REGION: "=?base64?eA"}, True),
    ({"priority": 7}, {"Mcp-Param-Priority": "7"}, True),
    ({"priority": 7}, {"Mcp-Param-Priority": "07"}, True),
    ({"dry": True}, {"Mcp-Param-Dry": "true"}, True),
    ({"region": "eu"}, {}, False),
    ({}, {REGION: "eu"}, False),
    ({"region": None}, {REGION: ""}, False),
    ({"region": "eu"}, {REGION: "EU"}, False),
    ({"region": "eu"}, {REGION: "=?base64?ZXU?="}, False),
    ({"region": "eu"}, {REGION: "=?base64?Z!U=?="}, False),
    ({"priority": 7}, {"Mcp-Param-Priority": "7x"}, False),
    ({"priority": 7}, {"Mcp-Param-Priority": "8"}, False),
    ({"priority": 7}, {"Mcp-Param-Priority": "99999999999999999999"}, False),
    ({"dry": True}, {"Mcp-Param-Dry": "True"}, False),
])
def test_mirrored_arguments(alice, arguments, headers, good):
    a = alice.tool("test_x_mcp_header", arguments, headers)
    if good:
        assert a.status == 200 and a.result["resultType"] == "complete"
    else:
        assert a.status == 400 and a.error["code"] == BAD_HEADER and a.last["id"]


def test_legacy_clients_mirror_nothing(alice):
    alice.initialize()
    a = alice.legacy("tools/call", {"name": "test_x_mcp_header", "arguments": {"region": "eu"}})
    assert a.result["content"][0]["text"] == "region eu"


# ---- completion -----------------------------------------------------------------------------------------------------


def test_completion(alice):
    ref = {"type": "ref/prompt", "name": "test_prompt_with_arguments"}
    done = alice.modern("completion/complete", {"ref": ref, "argument": {"name": "arg1", "value": "par"}}).result["completion"]
    assert done["values"] == ["paris", "park", "party"] and done["total"] == 3 and done["hasMore"] is False
    for params in ({}, {"ref": ref}, {"argument": {"name": "a", "value": "b"}}, {"ref": {"type": "x"}, "argument": {"name": "a", "value": "b"}},
                   {"ref": {"type": "ref/resource", "uri": "x://{y}"}, "argument": {"name": "a", "value": "b"}}):
        assert alice.modern("completion/complete", params).error["code"] == INVALID_PARAMS
