# SPDX-License-Identifier: Apache-2.0
"""test_jupyter.py - The Jupyter wire: kernels over REST, their messages over WebSockets in both framings, and hostile input."""
import base64
import json
import os
import re
import select
import signal
import socket
import struct
import time
import uuid

import pytest
from daemon import read_response
from jupyter_lib import Kernel, pack_v1, start
from process import Later, memory_kb, unique, wait_until
from serve_lib import WebSocket

STAMP = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z")
BOTH = pytest.mark.parametrize("v1", [False, True], ids=["json", "v1"])


# Code that continues when the test calls go().
HOLD = "import os, time\nwhile not os.path.exists('/workspace/go'): time.sleep(0.01)\n"


def go(k):
    r = k.daemon.request("PUT", "/v1/sandboxes/%s/files?path=/workspace/go" % k.id, b"")
    assert r.status in (200, 201, 204), r


def text_of(messages):
    """The printed text. print() writes its parts one by one, which are as many messages on a busy machine."""
    return "".join(m["content"]["text"] for m in messages if m["msg_type"] == "stream")


def kernels(daemon):
    return {k["id"]: k for k in daemon.get("/api/kernels").json}


# ---- REST --------------------------------------------------------------------------------------------------------------

def test_what_there_is(daemon):
    assert re.fullmatch(r"\d+\.\d+\.\d+", daemon.get("/api").json["version"])
    specs = daemon.get("/api/kernelspecs").json
    assert specs["default"] == "python3" and {"python3", "bash"} <= set(specs["kernelspecs"])
    for name, s in specs["kernelspecs"].items():
        assert s["name"] == name and s["resources"] == {} and s["spec"]["display_name"] and s["spec"]["language"]
        assert daemon.get("/api/kernelspecs/" + name).json == s
    assert daemon.get("/api/kernelspecs/cobol").error["code"] == "no_such_kernelspec"
    status = daemon.get("/api/status?1700000000000").json
    assert STAMP.fullmatch(status["started"]) and STAMP.fullmatch(status["last_activity"]) and status["kernels"] >= 0


def test_life_of_a_kernel(daemon):
    k = start(daemon)
    assert uuid.UUID(k["id"]) and k["name"] == "python3" and STAMP.fullmatch(k["last_activity"]) and k["connections"] == 0
    assert daemon.get("/api/kernels/" + k["id"]).json["execution_state"] == "idle"
    assert k["id"] in kernels(daemon)
    assert daemon.get("/api/status").json["kernels"] == len(kernels(daemon))
    assert daemon.request("POST", "/api/kernels/%s/interrupt" % k["id"]).status == 204
    assert daemon.request("POST", "/api/kernels/%s/restart" % k["id"]).json["id"] == k["id"]
    assert daemon.request("DELETE", "/api/kernels/" + k["id"]).status == 204
    for method, path in (("GET", ""), ("DELETE", ""), ("POST", "/interrupt"), ("POST", "/restart"), ("GET", "/channels")):
        assert daemon.request(method, "/api/kernels/%s%s" % (k["id"], path)).error["code"] == "no_such_kernel"
    assert k["id"] not in kernels(daemon)


def test_env_chooses_limits(daemon):
    k = start(daemon, "bash", {"KERNEL_MEMORY_MIB": "100", "KERNEL_PIDS": "20", "KERNEL_USERNAME": "ann", "COLOUR": "red", "PATH": "/nowhere"})
    try:
        box = daemon.get("/v1/sandboxes/" + k["id"]).json
        assert box["spec"]["memory_mib"] == 100 and box["spec"]["pids"] == 20 and box["spec"]["labels"] == {"kernelspec": "bash"}
        assert box["spec"]["env"] == ["KERNEL_USERNAME"]
        with Kernel(daemon, k["id"]) as c:
            assert c.run("echo ${COLOUR-none} $KERNEL_USERNAME; ls / >/dev/null && echo $?").text() == "none ann\n0\n"
    finally:
        daemon.request("DELETE", "/api/kernels/" + k["id"])
    k = start(daemon, env={"KERNEL_EGRESS": "api.example.com, *.b.example", "KERNEL_LABELS": "team=red,late"})
    spec = daemon.get("/v1/sandboxes/" + k["id"]).json["spec"]
    daemon.request("DELETE", "/api/kernels/" + k["id"])
    assert set(spec["egress"]) == {"api.example.com", "*.b.example"} and spec["labels"] == {"kernelspec": "python3", "team": "red", "late": ""}
    ws = unique()
    assert daemon.post("/v1/workspaces", {"name": ws}).status == 201
    k = start(daemon, env={"KERNEL_WORKSPACE": ws + ":ro"})
    assert daemon.get("/v1/sandboxes/" + k["id"]).json["spec"]["workspace"]["name"] == ws
    daemon.request("DELETE", "/api/kernels/" + k["id"])
    for body, status, code, field in (
            ({"env": {"KERNEL_EGRESS": "a b"}}, 422, "invalid_value", "egress"), ({"env": {"KERNEL_SECRETS": "NONE_SUCH"}}, 422, "unknown_secret", "secrets"),
            ({"env": {"KERNEL_WORKSPACE": "none-such"}}, 404, "no_such_workspace", "workspace"),
            ({"env": {"KERNEL_LABELS": "kernelspec=bash"}}, 422, "invalid_value", "labels"),
            ({"name": "cobol"}, 404, "no_such_kernelspec", "name"), ({"name": 3}, 404, "no_such_kernelspec", "name"),
            ({"env": {"KERNEL_MEMORY_MIB": "lots"}}, 422, "wrong_type", "memory_mib"),
            ({"env": {"KERNEL_MEMORY_MIB": "1"}}, 422, "out_of_range", "memory_mib"),
            ({"env": {"KERNEL_IMAGE": "debian:12"}}, 422, "image_unavailable", "image"),
            ({"env": {"A": 1}}, 422, "wrong_type", "env"), ({"env": {"KERNEL_SANDBOX": "none-such"}}, 404, "no_such_sandbox", "env.KERNEL_SANDBOX"),
            ([], 422, "not_an_object", None)):
        r = daemon.request("POST", "/api/kernels", body)
        assert r.status == status and r.error["code"] == code and r.error.get("field") == field, (body, r)
    assert daemon.request("POST", "/api/kernels", b"{nonsense").error["code"] == "malformed_json"


def test_sessions(daemon):
    r = daemon.post("/api/sessions", {"path": "a/b.ipynb", "name": "b", "type": "notebook", "kernel": {"name": "python3"}})
    assert r.status == 201
    s = r.json
    try:
        assert s["path"] == "a/b.ipynb" and s["type"] == "notebook" and s["kernel"]["name"] == "python3"
        assert s in [x for x in daemon.get("/api/sessions").json if x["id"] == s["id"]] and daemon.get("/api/sessions/" + s["id"]).json == s
        r = daemon.request("PATCH", "/api/sessions/" + s["id"], {"path": "c.ipynb"})
        assert r.status == 200 and r.json["path"] == "c.ipynb" and r.json["kernel"]["id"] == s["kernel"]["id"] and r.json["name"] == "b"
        again = daemon.post("/api/sessions", {"path": "c.ipynb", "kernel": {"name": "bash"}})
        assert again.status == 201 and again.json["id"] == s["id"] and again.json["kernel"]["id"] == s["kernel"]["id"], "the notebook got a second session"
        other = start(daemon, "bash")
        r = daemon.request("PATCH", "/api/sessions/" + s["id"], {"kernel": {"id": other["id"]}})
        assert r.json["kernel"]["id"] == other["id"] and s["kernel"]["id"] not in kernels(daemon), "the old kernel still runs"
        second = daemon.post("/api/sessions", {"path": "d", "kernel": {"id": other["id"]}}).json
        assert second["kernel"]["id"] == other["id"] and second["id"] != s["id"]
        assert daemon.post("/api/sessions", {"path": "e", "kernel": {"id": str(uuid.uuid4())}}).error["code"] == "no_such_kernel"
        third = daemon.request("PATCH", "/api/sessions/" + s["id"], {"kernel": {"name": "python3"}}).json["kernel"]
        assert third["name"] == "python3" and other["id"] in kernels(daemon), "a kernel of another notebook was ended"
        assert daemon.request("DELETE", "/api/sessions/" + second["id"]).status == 204
        assert other["id"] not in kernels(daemon)
        assert daemon.request("GET", "/api/sessions/" + second["id"]).error["code"] == "no_such_session"
        fourth = daemon.request("PATCH", "/api/sessions/" + s["id"], {"kernel": {"name": "bash"}}).json["kernel"]
        assert fourth["name"] == "bash" and third["id"] not in kernels(daemon)
        daemon.request("DELETE", "/api/kernels/" + fourth["id"])
        assert daemon.request("GET", "/api/sessions/" + s["id"]).error["code"] == "no_such_session", "the session outlived its kernel"
        before = set(kernels(daemon))
        r = daemon.post("/api/sessions", {"path": "x" * 5000, "kernel": {"name": "python3"}})
        assert r.status == 422 and r.error["code"] == "out_of_range" and r.error["field"] == "path"
        assert set(kernels(daemon)) == before, "a kernel was made for a refused request"
    finally:
        daemon.request("DELETE", "/api/kernels/" + s["kernel"]["id"])


def test_two_sessions_at_once_for_one_sandbox(serve):
    """Two requests name the same notebook and the same sandbox before that sandbox has a cell: both get one session, and its kernel stays."""
    d = serve("--pool", "0")
    name, warden = unique(), d.warden()
    body = json.dumps({"path": "twice.ipynb", "kernel": {"name": "python3", "env": {"KERNEL_SANDBOX": name}}}).encode()
    os.kill(warden, signal.SIGSTOP)  # no cell is made until both requests wait for it
    try:
        made = Later(lambda: d.post("/v1/sandboxes", {"name": name}))
        assert wait_until(lambda: any(b["name"] == name for b in d.get("/v1/sandboxes").json["sandboxes"]))
        clients = [d.connect(60) for _ in range(2)]
        for c in clients:
            c.sendall(b"POST /api/sessions HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s"
                      % (d.port, len(body), body))
        for _ in range(3):  # by then the front has read both
            assert d.get("/api/kernels").status == 200
        assert not select.select(clients, [], [], 0)[0], "a session was made without a cell"
    finally:
        os.kill(warden, signal.SIGCONT)
    assert made.result().status == 201
    answers = []
    for c in clients:
        with c, c.makefile("rb") as f:
            answers.append(read_response(f))
    assert [r.status for r in answers] == [201, 201], answers
    assert answers[0].json["id"] == answers[1].json["id"] and len(d.get("/api/sessions").json) == 1
    assert answers[0].json["kernel"]["id"] == answers[1].json["kernel"]["id"] in kernels(d), "its kernel was ended"
    assert d.get("/v1/sandboxes/" + name).json["state"] == "running"
    assert d.execute("6 * 7", session_id=name)["result"]["text/plain"] == "42"


def test_a_sandbox_that_exists(daemon):
    """As a kernel, it has the requested language and its own spec; the end of the kernel does not end the sandbox."""
    name = unique()
    box = {"name": name, "memory_mib": 100, "labels": {"team": "red", "x": "1"}, "egress": ["example.com"]}
    assert daemon.post("/v1/sandboxes", box).status == 201
    try:
        def ask(spec="bash", **env):
            return daemon.post("/api/kernels", {"name": spec, "env": {"KERNEL_SANDBOX": name, "KERNEL_USERNAME": "ann", **env}})
        for env, field in (({"KERNEL_MEMORY_MIB": "200"}, "memory_mib"), ({"KERNEL_PIDS": "7"}, "pids"), ({"KERNEL_EGRESS": "a.example"}, "egress"),
                           ({"KERNEL_LABELS": "team=blue"}, "labels"), ({"KERNEL_IDLE_SECONDS": "5"}, "idle_seconds")):
            r = ask(**env)
            assert r.status == 409 and r.error["code"] == "spec_conflict" and r.error["field"] == field, (env, r)
        r = ask(KERNEL_MEMORY_MIB="100", KERNEL_LABELS="team=red", KERNEL_EGRESS="EXAMPLE.com")
        assert r.status == 201 and r.json["name"] == "bash"
        k = Kernel(daemon, r.json["id"])
        assert k.ask("kernel_info_request")["language_info"]["name"] == "bash"
        assert k.run("x=5; echo kept > /workspace/f; echo $0").reply["status"] == "ok"
        assert ask("python3").error["code"] == "spec_conflict", "the language of a kernel in use changed"
        assert daemon.request("DELETE", "/api/kernels/" + k.id).status == 204
        while k.receive() is not None:
            pass
        assert k.ws.closed == 1001 and k.id not in kernels(daemon)
        assert daemon.request("GET", "/api/kernels/" + k.id).error["code"] == "no_such_kernel"
        assert daemon.get("/v1/sandboxes/" + name).json["state"] == "running", "the sandbox ended with the kernel"
        r = ask("python3")
        assert r.status == 201 and r.json["name"] == "python3"
        with Kernel(daemon, r.json["id"]) as k:
            assert k.run("open('/workspace/f').read()").result == {"text/plain": "'kept\\n'"}
            k.run("x = 1")
            k.send("shutdown_request", {"restart": False}, "control")
            while k.receive() is not None:
                pass
        assert daemon.execute("'x' in globals()", session_id=name)["result"] == {"text/plain": "False"}
    finally:
        daemon.end_session(name)


# ---- executing ---------------------------------------------------------------------------------------------------------------

@BOTH
def test_execute(daemon, v1):
    with Kernel(daemon, v1=v1) as k:
        info = k.ask("kernel_info_request")
        assert info["status"] == "ok" and info["protocol_version"] == "5.3" and info["language_info"]["name"] == "python"
        assert info["language_info"]["version"] == k.run("import platform; print(platform.python_version())", store_history=False).text().strip()
        r = k.run("import sys\nprint('a'); print('b', file=sys.stderr)\n6 * 7")
        assert r.types[0] == "status" and r.types[1] == "execute_input" and r.types[-2:] == ["execute_reply", "status"]
        assert r.text() == "a\n" and r.text("stderr") == "b\n" and r.result == {"text/plain": "42"}
        assert r.of("execute_result")[0]["execution_count"] == 1 == r.reply["execution_count"] and r.reply["status"] == "ok"
        assert r.of("execute_input") == [{"code": "import sys\nprint('a'); print('b', file=sys.stderr)\n6 * 7", "execution_count": 1}]
        r = k.run("1/0")
        assert r.reply["status"] == "error" and r.reply["ename"] == "ZeroDivisionError" and r.reply["evalue"] == "division by zero"
        assert r.of("error")[0]["traceback"] == r.reply["traceback"] and "1/0" in "\n".join(r.reply["traceback"])
        assert not r.text("stderr"), "the error was printed too"
        r = k.run("x = 5", user_expressions={"y": "x + 1", "z": "nope"})
        y, z = r.reply["user_expressions"]["y"], r.reply["user_expressions"]["z"]
        assert y == {"status": "ok", "data": {"text/plain": "6"}, "metadata": {}} and z["status"] == "error" and z["ename"] == "NameError"
        r = k.run("x; print(1)", silent=True)
        assert r.text() == "1\n" and "execute_input" not in r.types and r.reply["execution_count"] == 3
        assert k.run("x").reply["execution_count"] == 4
        assert k.ask("complete_request", {"code": "x", "cursor_pos": 1})["matches"], "a completion failed"
        assert k.run("Out[4], _4, In[3], len(In)", store_history=False).result == {"text/plain": repr((5, 5, "x = 5", 5))}
        assert k.run("x", store_history=False).reply["execution_count"] == 4


def test_displays(daemon):
    with Kernel(daemon) as k:
        r = k.run("from IPython.display import display, HTML, clear_output\nh = display(HTML('<b>1</b>'), display_id='d')\n"
                  "h.update(HTML('<b>2</b>'))\nclear_output(wait=True)\nHTML('<i>')")
        shown, = r.of("display_data")
        assert shown["data"]["text/html"] == "<b>1</b>" and shown["transient"] == {"display_id": "d"} and shown["metadata"] == {}
        assert r.of("update_display_data")[0]["data"]["text/html"] == "<b>2</b>" and r.of("clear_output") == [{"wait": True}]
        assert r.result["text/html"] == "<i>"
        r = k.run("from IPython.display import Image\nImage(data=%r, format='png', width=7)" % base64.b64decode(
            "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="))
        assert r.result["image/png"].startswith("iVBOR") and r.of("execute_result")[0]["metadata"]["image/png"]["width"] == 7


def test_displays_without_end_and_without_bounds(daemon):
    """A notebook sees every update, and the mark of a value that was cut."""
    with Kernel(daemon) as k:
        r = k.run("h = display(0, display_id=True)\nfor i in range(1, 100): h.update(i)\nfor i in range(70): display(i)\n'x' * (2 << 20)")
        assert [m["data"]["text/plain"] for m in r.of("update_display_data")] == [str(i) for i in range(1, 100)]
        assert len(r.of("display_data")) == 71 and r.of("display_data")[-1]["metadata"] == {}
        assert r.of("execute_result")[0]["metadata"] == {"caisson": {"truncated": True}}
        r = k.run("display({'text/html': 'x' * (9 << 20)}, raw=True)")
        assert r.of("display_data")[0]["metadata"] == {"caisson": {"truncated": True}}


def test_input(daemon):
    with Kernel(daemon) as k:
        id = k.send("execute_request", {"code": "print(input('name? ') * 2)", "allow_stdin": True})
        while (m := k.receive())["msg_type"] != "input_request":
            pass
        assert m["channel"] == "stdin" and m["content"] == {"prompt": "name? ", "password": False} and m["parent_header"]["msg_id"] == id
        k.send("input_reply", {"value": "ann", "status": "ok"}, "stdin", m["header"])
        got = k.until_idle(id)
        assert text_of(got).endswith("annann\n")
        r = k.run("input()")
        assert r.reply["status"] == "error" and "nobody to ask" in r.reply["evalue"]


def test_queue_and_stop_on_error(daemon):
    with Kernel(daemon) as k:
        ids = [k.send("execute_request", {"code": c}) for c in (HOLD + "1", "1/0", "2", "3")]
        info = k.send("kernel_info_request")
        k.ask("kernel_info_request", channel="control")  # answered at once: all of them were read
        go(k)
        replies = {}
        while len(replies) < 5:
            m = k.receive()
            if m["channel"] == "shell":
                replies[m["parent_header"]["msg_id"]] = m["content"]["status"]
        assert [replies[i] for i in (*ids, info)] == ["ok", "error", "aborted", "aborted", "ok"]
        ids = [k.send("execute_request", {"code": c, "stop_on_error": False}) for c in ("1/0", "2")]
        assert [k.until_idle(i)[-2]["content"]["status"] for i in ids] == ["error", "ok"]


@pytest.mark.parametrize("how", ["rest", "message"])
def test_interrupt(daemon, how):
    with Kernel(daemon) as k:
        k.run("x = 1")
        id = k.send("execute_request", {"code": "print('go')\nwhile True: pass"})
        while k.receive()["msg_type"] != "stream":
            pass
        if how == "rest":
            assert daemon.request("POST", "/api/kernels/%s/interrupt" % k.id).status == 204
        else:
            k.send("interrupt_request", {}, "control")
        got = k.until_idle(id)
        assert got[-2]["content"]["ename"] == "KeyboardInterrupt"
        assert k.run("x").result == {"text/plain": "1"}, "variables are kept"


def test_restart(daemon):
    with Kernel(daemon) as k:
        k.run("x = 1")
        open_file = k.run("open('/workspace/f', 'w').write('kept'); 0")
        assert open_file.reply["status"] == "ok"
        assert daemon.request("POST", "/api/kernels/%s/restart" % k.id).status == 200
        assert k.run("x").reply["ename"] == "NameError"
        r = k.run("open('/workspace/f').read()")
        assert r.result == {"text/plain": "'kept'"} and r.reply["execution_count"] == 2
        id = k.send("execute_request", {"code": "print('go')\nwhile True: pass"})
        while k.receive()["msg_type"] != "stream":
            pass
        k.send("shutdown_request", {"restart": True}, "control")
        assert k.until_idle(id)[-2]["content"]["status"] == "error", "the running code got no error"
        assert k.run("1").reply["status"] == "ok"


STUBBORN = "import time\nprint('go')\nwhile True:\n    try:\n        time.sleep(60)\n    except BaseException: pass"


@pytest.mark.parametrize("how", ["rest", "message"])
def test_restart_while_busy(daemon, how):
    """It ends requests from before it and none from after it: "restart and run all" on one socket."""
    with Kernel(daemon) as k:
        old = k.send("execute_request", {"code": "x = 1\n" + STUBBORN})
        behind = k.send("execute_request", {"code": "print('never')"})
        while k.receive()["msg_type"] != "stream":
            pass
        if how == "rest":
            r = daemon.request("POST", "/api/kernels/%s/restart" % k.id)
            assert r.status == 200 and r.json["execution_state"] in ("starting", "idle")
        else:
            k.send("shutdown_request", {"restart": True}, "control")
        new = [k.send("execute_request", {"code": c}) for c in ("print('new', 'x' in globals())", "print('second')")]
        seen = {}
        while not any(m["content"].get("execution_state") == "idle" for m in seen.get(new[-1], ())):
            m = k.receive()
            seen.setdefault(m["parent_header"].get("msg_id"), []).append(m)
        reply = {id: [m["content"] for m in seen[id] if m["msg_type"] == "execute_reply"][0] for id in (old, behind, *new)}
        assert reply[old]["status"] == "error" and reply[old]["ename"] == "restarted" and "kernel was restarted" in reply[old]["evalue"]
        assert reply[behind]["status"] == "aborted"
        assert [reply[id]["status"] for id in new] == ["ok", "ok"]
        assert [text_of(seen[id]) for id in new] == ["new False\n", "second\n"]


def test_restarts_at_once(daemon):
    """A second restart is refused during the first, and later requests wait for the next interpreter."""
    with Kernel(daemon) as k:
        k.run("x = 1")
        warden = daemon.warden()
        os.kill(warden, signal.SIGSTOP)  # the warden reports how the old interpreter ended
        try:
            first = Later(lambda: daemon.request("POST", "/api/kernels/%s/restart" % k.id))
            assert wait_until(lambda: kernels(daemon)[k.id]["execution_state"] == "restarting")
            assert daemon.request("POST", "/api/kernels/%s/restart" % k.id).error["code"] == "restarting"
            id = k.send("execute_request", {"code": "print('x' in globals())"})
        finally:
            os.kill(warden, signal.SIGCONT)
        assert first.result().status == 200
        assert text_of(k.until_idle(id)) == "False\n"


def test_a_limit_of_time_is_reported(serve):
    """The limit's name, its value, and the fate of the variables; however the code handles the interrupt."""
    d = serve("--max-timeout", "1s")
    with Kernel(d) as k:
        k.run("x = 1")
        for code in ("import time; time.sleep(60)", "!sleep 60", "%%bash\nsleep 60",
                     "try:\n    time.sleep(60)\nexcept KeyboardInterrupt: pass"):
            r = k.run(code)
            error, = r.of("error")
            assert error["ename"] == "timeout" == r.reply["ename"] and r.reply["status"] == "error", code
            assert "1 s" in error["evalue"] or "1s" in error["evalue"], error
            assert "variables are kept" in error["evalue"] and "timeout: " in error["traceback"][-1], error
        assert k.run("x").result == {"text/plain": "1"}
        r = k.run(STUBBORN)
        assert r.reply["ename"] == "timeout" and "variables are gone, files are kept" in r.reply["evalue"]
        assert k.run("x").reply["ename"] == "NameError"
    with Kernel(d, name="bash") as k:
        assert k.run("sleep 60").reply["ename"] == "timeout"


def test_time_stands_still_while_a_person_is_asked(serve):
    d = serve("--max-timeout", "2s")
    with Kernel(d) as k:
        id = k.send("execute_request", {"code": "print(input() * 2)", "allow_stdin": True})
        while (m := k.receive())["msg_type"] != "input_request":
            pass
        time.sleep(2.5)
        k.send("input_reply", {"value": "ann", "status": "ok"}, "stdin", m["header"])
        got = k.until_idle(id)
        assert text_of(got).endswith("annann\n") and got[-2]["content"]["status"] == "ok"
        id = k.send("execute_request", {"code": "input()\nwhile True: pass", "allow_stdin": True})
        while (m := k.receive())["msg_type"] != "input_request":
            pass
        k.send("input_reply", {"value": "", "status": "ok"}, "stdin", m["header"])
        assert k.until_idle(id)[-2]["content"]["ename"] == "timeout", "it goes on after the answer"


def test_time_goes_on_for_code_that_computes_while_a_person_is_asked(serve):
    d = serve("--max-timeout", "2s")
    code = "import threading\ndef burn():\n    while True: pass\nthreading.Thread(target=burn, daemon=True).start()\ninput()"
    with Kernel(d) as k:
        assert k.until_idle(k.send("execute_request", {"code": code, "allow_stdin": True}))[-2]["content"]["ename"] == "timeout"


def test_an_interrupt_that_is_caught(daemon):
    with Kernel(daemon) as k:
        id = k.send("execute_request", {"code": "import time\ntry:\n    print('go'); time.sleep(60)\nexcept KeyboardInterrupt: print('caught')"})
        while k.receive()["msg_type"] != "stream":
            pass
        k.send("interrupt_request", {}, "control")
        got = k.until_idle(id)
        assert got[-2]["content"]["status"] == "ok" and "error" not in [m["msg_type"] for m in got]


def test_a_dead_kernel_is_reported(daemon):
    with Kernel(daemon) as k:
        id = k.send("execute_request", {"code": "import os; os._exit(3)"})
        seen = []
        while True:
            m = k.receive()
            seen.append((m["msg_type"], m["content"].get("execution_state")))
            if m["msg_type"] == "execute_reply":
                assert m["content"]["state"] == "reset" and m["content"]["ename"] == "exit" and "exit code 3" in m["content"]["evalue"], m
            if m["parent_header"].get("msg_id") == id and m["content"].get("execution_state") == "idle":
                break
        assert ("status", "restarting") in seen and ("error", None) in seen
        assert k.run("1 + 1").result == {"text/plain": "2"}
        r = k.run("x = bytearray(2 << 30)")
        assert r.reply["status"] == "error" and ("memory" in r.reply["ename"].lower() or "memory" in r.reply["evalue"].lower()), r.reply
        assert r.reply["state"] == ("kept" if r.reply["ename"] == "MemoryError" else "reset") and r.reply["files"] == "kept"
        r = k.run("2")
        assert r.result == {"text/plain": "2"} and r.reply["state"] == "kept", "there is a kernel again"
        daemon.request("DELETE", "/api/kernels/" + k.id)
        while (m := k.receive()) is not None:
            last = m
        assert last["content"] == {"execution_state": "dead"} and k.ws.closed == 1001


def test_other_languages(daemon):
    with Kernel(daemon, name="bash") as k:
        assert k.ask("kernel_info_request")["language_info"]["name"] == "bash"
        assert wait_until(lambda: re.fullmatch(r"\d+\.\d+\.\d+", k.ask("kernel_info_request")["language_info"]["version"]))
        assert k.run("x=5; echo $x").text() == "5\n" and k.run("echo $x").text() == "5\n"
        assert k.ask("complete_request", {"code": "ec", "cursor_pos": 2})["matches"] == []
        assert k.ask("is_complete_request", {"code": "ls"}) == {"status": "unknown"}
        for code, status in (("false", "1"), ("nosuchcommand", "127"), ("(exit 7)", "7")):
            r = k.run(code)
            assert r.reply["status"] == "error" and (r.reply["ename"], r.reply["evalue"]) == ("exit status", status), r.reply
            assert r.of("error")[0]["traceback"] == ["exit status: " + status]


def test_one_kernel_many_wires(daemon):
    name = unique()
    try:
        daemon.execute("x = 'rest'", session_id=name)
        k = Kernel(daemon, start(daemon, env={"KERNEL_SANDBOX": name})["id"])
        assert k.run("x").result == {"text/plain": "'rest'"}
        k.run("x = 'jupyter'")
        assert daemon.execute("x", session_id=name)["result"] == {"text/plain": "'jupyter'"}
        assert kernels(daemon)[k.id]["connections"] == 1
        k.close()
        assert wait_until(lambda: kernels(daemon)[k.id]["connections"] == 0), "the line is gone"
    finally:
        daemon.end_session(name)
    with Kernel(daemon) as k:
        k.run("y = 1")
        assert daemon.execute("y", session_id=k.id)["result"] == {"text/plain": "1"}, "a kernel's id is a session's name"


# ---- an editor's questions ---------------------------------------------------------------------------------------------------

def test_complete_and_inspect(daemon):
    with Kernel(daemon) as k:
        k.run("import os\nclass Car:\n    'A car.'\n    wheels = 4\n    def drive(self, far, *, fast=False):\n        'Go there.'\n"
              "car = Car()\nd = {'red': 1, 'rose': {'x': 2}}\nopen('/workspace/notes.txt', 'w').close()")

        def complete(code, cursor=None):
            r = k.ask("complete_request", {"code": code, "cursor_pos": len(code) if cursor is None else cursor})
            assert r["status"] == "ok" and r["cursor_end"] == (len(code) if cursor is None else cursor)
            return [code[:r["cursor_start"]] + m for m in r["matches"]]

        assert complete("car.wh") == ["car.wheels"] and complete("x = car.dr") == ["x = car.drive"]
        assert complete("car.wh + 1", 6) == ["car.wheels"]
        assert complete("d['r") == ["d['red']", "d['rose']"] and complete("d['rose']['") == ["d['rose']['x']"]
        assert "os.path.join" in complete("os.path.jo") and "import json" in complete("import jso")
        assert complete("from os.path import joi") == ["from os.path import join"]
        assert complete("open('/workspace/no") == ["open('/workspace/notes.txt"]
        assert complete("car.drive(fa") == ["car.drive(far=", "car.drive(fast="]
        assert complete('"abc".upp') == ['"abc".upper'] and "[1].append" in complete("[1].ap") and "x = {1: 2}.items" in complete("x = {1: 2}.it")
        assert complete("%cd /worksp") == ["%cd /workspace/"] and complete("import os.pa") == ["import os.path"]
        assert 'f"{os.getcwd' in complete('f"{os.getc') and 'f"{{os.getcwd' not in complete('f"{{os.getc') and complete("d['red'].bit_l") == ["d['red'].bit_length"]
        assert "print" in complete("prin") and "lambda" in complete("lamb") and "%timeit" in complete("%timei")
        assert complete("nothing.here.") == [] and complete("") == []
        r = k.ask("inspect_request", {"code": "car.drive(1)", "cursor_pos": 6, "detail_level": 0})
        assert r["found"] and "drive(far, *, fast=False)" in r["data"]["text/plain"] and "Go there." in r["data"]["text/plain"]
        assert "def drive" in k.ask("inspect_request", {"code": "car.drive", "cursor_pos": 9, "detail_level": 1})["data"]["text/plain"]
        assert "Go there." in k.ask("inspect_request", {"code": "car.drive(", "cursor_pos": 10})["data"]["text/plain"]
        assert k.ask("inspect_request", {"code": "nope", "cursor_pos": 2}) == {"status": "ok", "found": False, "data": {}, "metadata": {}}
        for code, status in (("1 + 1", "complete"), ("for i in x:", "incomplete"), ("print(", "incomplete"), ("1 +* 2", "invalid"), ("!ls", "complete"), ("def f(:", "invalid"), ("!ls\nprint(", "incomplete"),
                             ("await f()", "complete"), ("'''a", "incomplete"), ("if 1:\n    pass", "incomplete"), ("if 1:\n    pass\n", "complete")):
            assert k.ask("is_complete_request", {"code": code})["status"] == status, code
        assert k.ask("is_complete_request", {"code": "def f():"})["indent"] == "    "
        k.run("class Evil:\n    def __getattr__(self, n):\n        raise SystemExit\n    def __dir__(self):\n        while True: pass\nevil = Evil()")
        assert complete("evil.x") == [], "an object that fails when it is inspected affects other answers"
        assert complete("car.wh") == ["car.wheels"]


def test_history_and_comms(daemon):
    with Kernel(daemon) as k:
        for code in ("a = 1", "b = 2", "c = 3"):
            k.run(code)
        k.run("hidden", store_history=False)
        tail = k.ask("history_request", {"hist_access_type": "tail", "n": 2, "output": False, "raw": True})
        assert tail["history"] == [[1, 2, "b = 2"], [1, 3, "c = 3"]]
        assert k.ask("history_request", {"hist_access_type": "range", "start": 1, "stop": 2, "output": True})["history"] == [[1, 1, ["a = 1", None]]]
        assert k.ask("history_request", {"hist_access_type": "search", "pattern": "b*", "n": 9})["history"] == [[1, 2, "b = 2"]]
        assert k.ask("comm_info_request") == {"status": "ok", "comms": {}}
        got = k.until_idle(k.send("comm_open", {"comm_id": "c1", "target_name": "jupyter.widget", "data": {}}))
        assert ["comm_close"] == [m["msg_type"] for m in got if m["msg_type"] != "status"] and got[1]["content"]["comm_id"] == "c1"
        got = k.until_idle(k.send("no_such_request"))
        assert len(got) == 2, "busy and idle, and nothing else"


# ---- disconnected, many and slow clients -----------------------------------------------------------------------------------------

@BOTH
def test_away_and_back(daemon, v1):
    with Kernel(daemon, v1=v1) as k:
        id = k.send("execute_request", {"code": "print(1, flush=True)\n" + HOLD + "print(2)\n'end'"})
        while k.receive()["msg_type"] != "stream":
            pass
        k.close()
        assert wait_until(lambda: kernels(daemon)[k.id]["connections"] == 0)
        go(k)
        daemon.execute("1")
        assert wait_until(lambda: kernels(daemon)[k.id]["execution_state"] == "idle"), "the code goes on"
        back = Kernel(daemon, k.id, v1=not v1, session=k.session)
        got = back.until_idle(id)
        assert "execute_reply" in [m["msg_type"] for m in got] and "".join(m["content"].get("text", "") for m in got).endswith("2\n")
        back.close()
        k.ws = back.ws
        assert wait_until(lambda: kernels(daemon)[k.id]["connections"] == 0), "gone"
        other = Kernel(daemon, k.id)
        assert other.run("1").types[0] == "status"
        other.close()


@BOTH
def test_away_while_another_is_there(daemon, v1):
    """Messages are kept for each client that left, also while others stay; a client that stays gets everything once."""
    with Kernel(daemon, v1=v1) as k:
        stays = Kernel(daemon, k.id)
        id = k.send("execute_request", {"code": "print('go\\n', end='', flush=True)\n" + HOLD + "print('away\\n', end='')\n5"})
        while k.receive()["msg_type"] != "stream":
            pass
        k.close()
        assert wait_until(lambda: kernels(daemon)[k.id]["connections"] == 1)
        go(k)
        seen = stays.until_idle(id)
        assert text_of(seen).endswith("away\n") and "execute_reply" not in [m["msg_type"] for m in seen]
        back = Kernel(daemon, k.id, v1=v1, session=k.session)
        got = back.until_idle(id)
        assert [m["msg_type"] for m in got] == ["stream", "execute_result", "execute_reply", "status"] and got[0]["content"]["text"] == "away\n"
        assert back.run("1").types[0] == "status", "nothing twice"
        back.close()
        stays.close()
        k.ws = back.ws


def test_printed_between_executions(daemon):
    """Output of a thread that outlives its execution is shown below the last cell, and is in the log; excess output is counted, not kept."""
    late = ("import os, threading, time\ndef late():\n    while not os.path.exists('/workspace/go'): time.sleep(0.01)\n    %s\n"
            "threading.Thread(target=late).start()")

    def until(k, text):
        got = ""
        while text not in got:
            m = k.receive()
            if m["msg_type"] == "stream":
                got += m["content"]["text"]
        return m, got

    with Kernel(daemon) as k:
        r = k.run(late % "print('l\u00e4te'); os.system('echo child')")
        go(k)
        m, _ = until(k, "child\n")
        assert m["content"]["name"] == "stdout" and m["parent_header"] == r.messages[0]["parent_header"] and m["channel"] == "iopub"
        assert wait_until(lambda: "l\u00e4te\nchild\n" in daemon.get("/v1/sandboxes/%s/logs" % k.id).body.decode())
        assert k.run("1").types == ["status", "execute_input", "execute_result", "execute_reply", "status"]
    with Kernel(daemon) as k:
        k.run(late % "print('x' * 8000000)\n    while not os.path.exists('/workspace/end'): print('end'); time.sleep(0.05)")
        before = memory_kb(daemon.pid)
        go(k)
        _, got = until(k, "end\n")
        assert "bytes are missing" in got and len(got) < 2000000 and memory_kb(daemon.pid) - before < 50 << 10
        daemon.request("PUT", "/v1/sandboxes/%s/files?path=/workspace/end" % k.id, b"")
        assert k.run("1").reply["status"] == "ok"


def vanish(ws):
    """Like a machine that loses its power: neither FIN nor RST is sent."""
    ws.f.close()
    ws.s.setsockopt(socket.IPPROTO_TCP, 19, 1)  # TCP_REPAIR
    ws.s.close()


@pytest.mark.slow
@pytest.mark.skipif(os.geteuid() != 0, reason="to vanish without a word takes root (TCP_REPAIR)")
def test_half_open(daemon):
    """Clients that vanished are detected by the pings; their kernel, its code and its variables continue."""
    with Kernel(daemon) as gone, Kernel(daemon, gone.id) as stays, Kernel(daemon) as silent:
        id = gone.send("execute_request", {"code": "import time\nx = 0\nwhile x < 20:\n    x += 1; print(x, flush=True); time.sleep(0.1)"})
        while gone.receive()["msg_type"] != "stream":
            pass
        vanish(gone.ws)
        vanish(silent.ws)
        assert kernels(daemon)[gone.id]["connections"] == 2, "the daemon noticed too early"
        assert stays.until_idle(id)[-1]["content"]["execution_state"] == "idle"

        def noticed():
            stays.run("1")  # answers the pings of the daemon to this one, too
            return kernels(daemon)[gone.id]["connections"] == 1 and kernels(daemon)[silent.id]["connections"] == 0
        assert wait_until(noticed, 120)
        back = Kernel(daemon, gone.id, session=gone.session)
        assert back.run("x").result == {"text/plain": "20"}
        back.close()
        gone.ws = stays.ws = back.ws
        silent.ws = Kernel(daemon, silent.id).ws


def test_two_clients_see_the_same(daemon):
    with Kernel(daemon) as a:
        b = Kernel(daemon, a.id, v1=True)
        id = a.send("execute_request", {"code": "print('both'); 5"})
        mine, theirs = a.until_idle(id), b.until_idle(id)
        assert [m["msg_type"] for m in mine if m["channel"] == "iopub"] == [m["msg_type"] for m in theirs]
        assert "execute_reply" not in [m["msg_type"] for m in theirs], "another client got the reply"
        b.close()


def test_clients_that_never_read(daemon):
    """They slow down their own kernel; the daemon does not grow, and others are served."""
    with Kernel(daemon) as k:
        before = memory_kb(daemon.pid)
        id = k.send("execute_request", {"code": "for i in range(200000): print('x' * 1000)"})
        others = [daemon.execute("1") for _ in range(5)]
        assert all(o["status"] == "ok" for o in others)
        assert memory_kb(daemon.pid) - before < 100 << 10
        k.ws.hang_up()
        daemon.request("DELETE", "/api/kernels/" + k.id)
        assert id


def test_refusals(serve):
    d = serve("--max-sandboxes", "1")
    k = start(d)
    r = d.request("POST", "/api/kernels")
    assert r.status == 429 and r.headers["retry-after"], r
    r = d.request("GET", "/api/kernels/%s/channels" % k["id"])
    assert r.status == 426 and r.error["code"] == "upgrade_required" and r.headers["upgrade"] == "websocket"
    lines = [Kernel(d, k["id"]) for _ in range(32)]
    one_more = WebSocket(d, "/api/kernels/%s/channels" % k["id"])
    assert one_more.answer.status == 503
    for line in lines:
        line.ws.hang_up()


def test_many_kernels(serve):
    """200 open at once, each with a line and a variable of its own."""
    d = serve("--max-sandboxes", "220", "--memory", "64m")
    many = [Kernel(d) for _ in range(200)]
    for i, k in enumerate(many):
        k.sent = k.send("execute_request", {"code": "x = %d; x" % i})
    for i, k in enumerate(many):
        assert {"text/plain": str(i)} in [m["content"].get("data") for m in k.until_idle(k.sent)]
    assert d.get("/api/status").json == {**d.get("/api/status").json, "kernels": 200, "connections": 200}
    for k in many:
        k.ws.hang_up()


# ---- hostile input -----------------------------------------------------------------------------------------------------------------

def write_tokens(path, text):
    path.write_text(text)
    path.chmod(0o600)
    return path


def header(type="execute_request"):
    return {"msg_id": "1", "msg_type": type, "session": "s", "username": "u", "version": "5.3"}


NONSENSE_V1 = [b"", b"\1", struct.pack("<Q", 1 << 63), struct.pack("<Q", 6), struct.pack("<7Q", 6, 0, 0, 0, 0, 0, 0),
               struct.pack("<7Q", 6, 56, 56, 56, 56, 56, 1 << 62), struct.pack("<7Q", 6, 60, 56, 56, 56, 56, 56) + b"xxxx",
               pack_v1("shell", [], {}, {}, {}), pack_v1("shell", {"msg_id": 1}, {}, {}, {}),
               struct.pack("<7Q", 6, 56, 57, 58, 59, 60, 61) + b"\xff\xfe\xfd\xfc\xfb", struct.pack("<Q", 2000) + b"\0" * 16008]
NONSENSE_JSON = ["", "null", "[]", "{}", "{" * 10000, '{"header": 1}', json.dumps({"header": header(), "content": []}),
                 json.dumps({"header": {"msg_id": "1"}, "content": {}}), '{"header": {"msg_id": "a", "msg_type": "x"}, "header": 1, "content": {}}']


def test_malformed_frames(daemon):
    with Kernel(daemon) as good:
        for v1, samples in ((True, NONSENSE_V1), (False, NONSENSE_JSON)):
            for data in samples:
                w = Kernel(daemon, good.id, v1=v1)
                w.ws.frame(WebSocket.BINARY if v1 else WebSocket.TEXT, data if v1 else data.encode())
                while w.receive() is not None:
                    pass
                assert w.ws.closed == 1007, (data[:60], w.ws.closed)
                w.ws.hang_up()
        for kind, data in ((WebSocket.TEXT, b"hello"), (WebSocket.BINARY, struct.pack(">2I", 1, 1 << 31)), (WebSocket.BINARY, b"\0\0")):
            w = Kernel(daemon, good.id, v1=kind == WebSocket.TEXT)
            w.ws.frame(kind, data)
            while w.receive() is not None:
                pass
            assert w.ws.closed == 1007
            w.ws.hang_up()
        assert good.run("1").reply["status"] == "ok", "others do not notice"


def test_odd_but_well_formed(daemon):
    with Kernel(daemon) as k:
        k.ws.send({"header": header("kernel_info_request"), "content": {}})
        assert any(m["msg_type"] == "kernel_info_reply" for m in k.until_idle("1")), "without a channel it is for shell"
        data = json.dumps({"channel": "shell", "header": {**header("kernel_info_request"), "msg_id": "2"}, "parent_header": {}, "metadata": {}, "content": {}}).encode()
        k.ws.frame(WebSocket.BINARY, struct.pack(">3I", 2, 12, 12 + len(data)) + data + b"buffer")
        assert k.until_idle("2")
        k.send("execute_request", {"code": "print(1)"}, channel="iopub")
        k.send("execute_request", {"code": "print(1)"}, channel="elsewhere")
        k.send("input_reply", {"value": "nobody asked"}, channel="stdin")
        for content in ({}, {"code": 5}, {"code": None}):
            got = k.until_idle(k.send("execute_request", content))
            assert got[-2]["content"]["ename"] == "ValueError"
        forged = {**header("kernel_info_request"), "msg_id": "3", "extra": {"a": ["\u2028"]}, "session": "someone else"}
        k.ws.send({"channel": "shell", "header": forged, "content": {}})
        assert k.until_idle("3")[0]["parent_header"] == forged, "their own words, sent back to them"
        assert k.run("1").reply["status"] == "ok"


def test_too_large(daemon):
    with Kernel(daemon) as k:
        k.send("execute_request", {"code": "#" * (64 << 20)})
        with pytest.raises((AssertionError, OSError)):
            k.until_idle("none")
        assert k.ws.closed in (1009, 1006)
        assert daemon.execute("1")["status"] == "ok"


def test_flood_of_requests(daemon):
    with Kernel(daemon) as k:
        first = k.send("execute_request", {"code": HOLD})
        ids = [k.send("execute_request", {"code": str(i)}) for i in range(600)]
        status = {}
        while len(status) < 601:
            m = k.receive()
            if m["msg_type"] == "execute_reply":
                status[m["parent_header"]["msg_id"]] = m["content"]["status"]
                if m["parent_header"]["msg_id"] == ids[-1]:
                    go(k)
        assert status[first] == "ok" and set(status.values()) == {"ok", "aborted"} and status[ids[-1]] == "aborted"
        assert k.run("1").reply["status"] == "ok"


def test_tokens(serve, tmp_path):
    d = serve("--token-file", write_tokens(tmp_path / "tokens", "ann:%s\nbob:%s\n" % ("a" * 64, "b" * 64)))
    mine = d.request("POST", "/api/kernels", headers={"Authorization": "token " + "a" * 64}).json["id"]
    for path in ("/api/kernels", "/api/kernels/" + mine):
        assert d.request("GET", path + "?token=" + "a" * 64).status == 200
        assert d.request("GET", path).status == 401 and d.request("GET", path + "?token=wrong").status == 401
    assert d.request("GET", "/api/kernels/%s?token=%s" % (mine, "b" * 64)).error["code"] == "no_such_kernel"
    assert d.request("GET", "/api/kernels?token=" + "b" * 64).json == []
    assert d.request("GET", "/v1/sandboxes?token=" + "a" * 64).error["code"] == "token_in_url", "elsewhere it stays refused"
    k = Kernel(d, mine, query="&token=" + "a" * 64)
    assert k.run("1").reply["status"] == "ok"
    k.ws.hang_up()
    for query in ("", "?token=" + "b" * 64, "?token=x"):
        w = WebSocket(d, "/api/kernels/%s/channels%s" % (mine, query))
        assert w.answer.status in (401, 404)
        w.hang_up()
    w = WebSocket(d, "/api/kernels/%s/channels?token=%s" % (mine, "a" * 64), {"Origin": "https://evil.example"})
    assert w.answer.status == 403
    w.hang_up()
    assert "a" * 64 not in d.log_text()


def test_a_front_that_is_killed(serve):
    """The next one has the same kernels, under the same ids, with their variables."""
    d = serve()
    k = Kernel(d)
    k.run("x = 41")
    old = d.pid
    os.kill(old, signal.SIGKILL)
    k.ws.hang_up()
    assert wait_until(lambda: d.find_front() not in (None, old) and d.ready()), "the next front"
    again = Kernel(d, k.id)
    assert again.run("x + 1").result == {"text/plain": "42"}
    again.ws.hang_up()
