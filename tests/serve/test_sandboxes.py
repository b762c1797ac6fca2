# SPDX-License-Identifier: Apache-2.0
"""test_sandboxes.py - Sandboxes with a name: made, found, used, stopped, removed; their owners; and the next daemon."""
import hashlib
import json
import os
import signal
import subprocess

import pytest

from box_lib import Events
from process import BIN, Later, unique, wait_until
from serve_lib import Held

V1 = "/v1/sandboxes"


def create(d, name=None, token=None, status=201, **spec):
    r = d.post(V1, {"name": name or unique(), **spec}, token=token)
    assert r.status == status, r
    return r.json


@pytest.fixture
def box(daemon):
    s = create(daemon)
    yield s["name"]
    daemon.request("DELETE", "%s/%s" % (V1, s["name"]))


def execute(d, name, code, **fields):
    r = d.post("%s/%s/execute" % (V1, name), {"code": code, **fields})
    assert r.status == 200, r
    return r.json


# ---- making -----------------------------------------------------------------------------------------------------------


def test_what_a_new_one_says(daemon):
    s = create(daemon, labels={"team": "red"}, env={"SECRET": "s3cret-value"}, timeout_seconds=600, idle_seconds=120)
    assert s["state"] == "running" and s["busy"] is False and s["epoch"] == 0 and s["executions"] == 0 and s["owner"], s
    assert s["spec"] == {"image": "host", "memory_mib": 512, "cpus": 1.0, "pids": 128, "disk_mib": 1024, "oom": "process", "timeout_seconds": 600,
                         "idle_seconds": 120, "env": ["SECRET"], "secrets": [], "labels": {"team": "red"}, "egress": [], "mounts": []}, s
    assert s["created_at"] < s["expires_at"]
    one = daemon.get("%s/%s" % (V1, s["name"])).json
    assert one["receipt"]["enforced"] is True and one["receipt"]["missing"] == [], one["receipt"]
    assert one["receipt"]["namespaces"]["user"]["cell"] != one["receipt"]["namespaces"]["user"]["host"]
    assert set(one["usage"]) == {"cpu_seconds", "memory", "memory_peak", "pids_peak"}
    assert "s3cret-value" not in json.dumps(one) and "s3cret-value" not in daemon.log_text()
    assert daemon.request("DELETE", "%s/%s" % (V1, s["name"])).status == 204


def test_the_receipt_of_a_sandbox_in_which_nothing_runs(daemon, box):
    """Its kernel died: the layers are still reported, and the receipt reports that no process runs."""
    execute(daemon, box, "x = 1")
    r = daemon.get("%s/%s" % (V1, box)).json["receipt"]
    assert r["running"] is True and r["commands"]["seccomp"] == "filter" and r["enforced"] is True, r
    assert not execute(daemon, box, "import os; os._exit(3)")["ok"]
    r = daemon.get("%s/%s" % (V1, box)).json["receipt"]
    assert r["running"] is False and r["commands"] is None and r["enforced"] is True and r["missing"] == [], r
    assert r["init"]["seccomp"] == "filter" and r["cgroup"]["pids"] > 0, r
    execute(daemon, box, "x = 2")
    r = daemon.get("%s/%s" % (V1, box)).json["receipt"]
    assert r["running"] is True and r["enforced"] is True, r


def test_the_same_name_is_the_same_sandbox(daemon, box):
    execute(daemon, box, "x = 5")
    again = create(daemon, box, status=200)
    assert again["executions"] == 1
    assert execute(daemon, box, "x")["result"]["text/plain"] == "5"
    for other in ({"memory_mib": 256}, {"labels": {"a": "b"}}, {"env": {"A": "b"}}, {"cpus": 0.5}, {"oom": "sandbox"}, {"idle_seconds": 7},
                  {"egress": ["example.com"]}):
        e = daemon.post(V1, {"name": box, **other})
        field, = other
        assert e.status == 409 and e.error["code"] == "spec_conflict" and e.error["field"] == field and e.error["message"].endswith("value of " + field), e
    e = daemon.post(V1, {"name": box, "pids": 99, "labels": {"a": "b"}}).error
    assert e["field"] == "pids" and e["message"].endswith("value of pids, labels"), e


def test_limits_are_those_of_the_spec(daemon):
    s = create(daemon, memory_mib=64, pids=20, disk_mib=8, cpus=0.5)
    r = execute(daemon, s["name"], "x = bytearray(300 << 20)")
    assert r["status"] == "limit" and r["cause"] == "memory" and r["limit"] == 64 << 20, r
    r = execute(daemon, s["name"], "open('/workspace/f', 'wb').write(bytes(9 << 20))")
    assert "No space left" in r["stderr"] and r["cause"] == "disk", r
    r = execute(daemon, s["name"], "import threading, time\ntry:\n"
                "    for i in range(40): threading.Thread(target=time.sleep, args=(1,), daemon=True).start()\n"
                "except RuntimeError as e: print('refused')")
    assert "refused" in r["stdout"], r
    receipt = daemon.get("%s/%s" % (V1, s["name"])).json["receipt"]
    assert json.dumps(64 << 20) in json.dumps(receipt), receipt
    daemon.request("DELETE", "%s/%s" % (V1, s["name"]))


@pytest.mark.parametrize("field,value,status,code", [
    ("name", "-bad", 422, "invalid_value"), ("name", "", 422, None), ("name", 7, 422, "wrong_type"), ("name", "x" * 65, 422, None),
    ("memory_mib", 1, 422, "out_of_range"), ("memory_mib", "64", 422, "wrong_type"), ("memory_mib", 1 << 20, 422, "out_of_range"),
    ("cpus", 0, 422, "out_of_range"), ("cpus", 1000, 422, "out_of_range"), ("pids", 0, 422, "out_of_range"),
    ("disk_mib", 0, 422, "out_of_range"), ("env", {"A": 1}, 422, "wrong_type"), ("labels", [], 422, "wrong_type"),
    ("timeout_seconds", 0, 422, "out_of_range"), ("idle_seconds", -1, 422, "out_of_range"), ("image", "python:3.11-slim", 422, "image_unavailable"),
    ("egress", ["10.0.0.1"], 422, "invalid_value"), ("secrets", ["TOKEN"], 422, "unknown_secret"),
    ("workspace", "w1", 404, "no_such_workspace"), ("colour", "red", 422, "unknown_field"),
])
def test_a_spec_that_can_not_be(daemon, field, value, status, code):
    name = unique()
    r = daemon.post(V1, {"name": name, field: value})
    assert r.status == status and r.error["code"] == (code or r.error["code"]), r
    assert r.error.get("field", "").startswith(field), r
    assert daemon.get("%s/%s" % (V1, name)).status == 404, "nothing was made"


def test_what_is_empty_was_not_asked_for(daemon):
    s = create(daemon, egress=[], secrets=[], workspace="", labels={}, env={})
    assert s["spec"]["env"] == [] and s["spec"]["labels"] == {}
    daemon.request("DELETE", "%s/%s" % (V1, s["name"]))


def test_environment_in_every_kernel_and_after_a_reset(daemon):
    s = create(daemon, env={"COLOUR": "blau \u2603", "PATH": "/usr/bin:/bin"})["name"]
    assert execute(daemon, s, "import os; print(os.environ['COLOUR'], os.environ['PATH'])")["stdout"] == "blau \u2603 /usr/bin:/bin\n"
    assert execute(daemon, s, "echo $COLOUR", language="bash")["stdout"] == "blau \u2603\n"
    r = execute(daemon, s, "import os; os._exit(3)")
    assert r["state"] == "reset" and r["exit_code"] == 3
    assert execute(daemon, s, "import os; print(os.environ['COLOUR'])")["stdout"] == "blau \u2603\n"
    daemon.request("DELETE", "%s/%s" % (V1, s))


# ---- finding ----------------------------------------------------------------------------------------------------------


def test_lists_by_label_and_by_page(daemon):
    tag = unique("l")
    names = sorted(create(daemon, "%s-%d" % (tag, i), labels={"tag": tag, "odd": str(i % 2)})["name"] for i in range(5))
    found, cursor = [], None
    while True:
        page = daemon.get("%s?label=tag=%s&limit=2%s" % (V1, tag, "&cursor=" + cursor if cursor else "")).json
        found += [s["name"] for s in page["sandboxes"]]
        cursor = page.get("next_cursor")
        if not cursor:
            break
        assert len(page["sandboxes"]) == 2
    assert found == names
    odd = daemon.get("%s?label=tag=%s&label=odd=1" % (V1, tag)).json["sandboxes"]
    assert [s["name"] for s in odd] == names[1::2]
    assert daemon.get("%s?label=tag=nobody" % V1).json == {"sandboxes": []}
    for bad in ("limit=0", "limit=x", "limit=1001", "colour=red"):
        assert 400 <= daemon.get("%s?%s" % (V1, bad)).status < 500
    for n in names:
        daemon.request("DELETE", "%s/%s" % (V1, n))


def test_names_belong_to_owners(serve, tmp_path):
    tokens = tmp_path / "tokens"
    tokens.write_text("anna:%s\nbert:%s\n" % ("a" * 32, "b" * 32))
    tokens.chmod(0o600)
    d = serve("--token-file", str(tokens))
    anna, bert = "a" * 32, "b" * 32
    create(d, "job", token=anna)
    paths = [("GET", ""), ("DELETE", ""), ("POST", "/kill"), ("POST", "/stop"), ("POST", "/interrupt"), ("GET", "/logs"),
             ("POST", "/extend"), ("POST", "/execute"), ("POST", "/exec"), ("POST", "/shell"), ("GET", "/processes")]
    bodies = {"/extend": {"seconds": 5}, "/execute": {"code": "1"}, "/exec": {"cmd": "true"}, "/shell": {"script": "true"}}
    for method, tail in paths:
        body = bodies.get(tail, {} if method == "POST" else None)
        r = d.request(method, V1 + "/job" + tail, body, token=bert)
        nothing = d.request(method, V1 + "/nothing" + tail, body, token=bert)
        assert r.status == 404 and r.body.replace(b"'job'", b"'nothing'") == nothing.body and r.error["code"] == "no_such_sandbox", (tail, r)
    assert d.get(V1, token=bert).json == {"sandboxes": []}
    assert create(d, "job", token=bert)["executions"] == 0, "bob did not get a sandbox of his own"
    assert d.get(V1 + "/job", token=anna).json["owner"] == "anna"


# ---- time -------------------------------------------------------------------------------------------------------------


def test_deadline_and_extension(daemon):
    longer = create(daemon, timeout_seconds=3)["name"]
    r = daemon.post("%s/%s/extend" % (V1, longer), {"seconds": 600})
    assert r.status == 200 and r.json["expires_at"]
    short = create(daemon, timeout_seconds=3)["name"]  # made after it: its time ends later
    assert wait_until(lambda: daemon.get("%s/%s" % (V1, short)).status == 404), "its time was over"
    assert daemon.get("%s/%s" % (V1, longer)).status == 200
    assert daemon.post("%s/%s/extend" % (V1, longer), {"seconds": 0}).status == 422
    daemon.request("DELETE", "%s/%s" % (V1, longer))


def test_the_deadline_is_reported_to_all_that_run_in_it(daemon):
    name = create(daemon, timeout_seconds=5)["name"]
    at = daemon.get("%s/%s" % (V1, name)).json["expires_at"]
    code = Later(lambda: daemon.post("%s/%s/execute" % (V1, name), {"code": "import time; time.sleep(100)", "timeout": 110}))
    command = Later(lambda: daemon.post("%s/%s/shell" % (V1, name), {"script": "sleep 100", "timeout": 110}))
    with Events(daemon, "POST", "%s/%s/shell" % (V1, name), {"script": "sleep 100", "timeout": 110, "stream": True}) as events:
        told = str([e for e in events][-1])
    error, hint = code.result().error, command.result().json["hint"]
    assert error["code"] == "session_ended" and "deadline, " + at in error["message"] and "/extend" in error["hint"], error
    for text in (hint, told):
        assert "deadline, " + at in text and "timeout_seconds" in text and "/extend" in text, text


def test_a_label_without_a_value_is_no_filter(daemon):
    for bad in ("x", "", "=", "=x"):
        r = daemon.get("%s?label=%s" % (V1, bad))
        assert r.status == 422 and (r.error["code"], r.error["field"]) == ("invalid_value", "label"), r
    assert daemon.get(V1 + "?label=x=").status == 200


def test_bounds_are_written_as_whole_numbers(daemon):
    r = daemon.post(V1, {"name": unique(), "memory_mib": 1 << 40})
    assert r.status == 422 and "e+" not in r.error["message"], r


def test_run_shell_reads_its_stdin(daemon):
    r = daemon.post("/v1/run_shell", {"script": "read a; wc -c; echo $a $X; exit 3", "stdin": "first\n12345", "env": {"X": "y"}})
    assert r.status == 200 and (r.json["stdout"], r.json["exit_code"]) == ("5\nfirst y\n", 3), r
    with Events(daemon, "POST", "/v1/run_shell", {"script": "cat", "stdin": "streamed", "stream": True}) as events:
        assert "streamed" in str(list(events))
    assert daemon.post("/v1/run_shell", {"script": "cat", "stdin": "x", "timeout": 1 << 30}).status == 422
    assert wait_until(lambda: daemon.health()["sandboxes"]["live"] == len(daemon.get(V1).json["sandboxes"])), "a sandbox outlived its call"


def test_idle_ones_are_reaped_but_never_one_in_use(daemon):
    s = create(daemon, idle_seconds=3)["name"]
    r = execute(daemon, s, "import time; time.sleep(4.5); 'whole'")
    assert r["result"]["text/plain"] == "'whole'"
    assert wait_until(lambda: daemon.get("%s/%s" % (V1, s)).status == 404)


def test_too_many(serve):
    d = serve("--max-sandboxes", "2", "--pool", "1")
    create(d, "one")
    create(d, "two")
    r = d.post(V1, {"name": "three"})
    assert r.status == 429 and r.error["code"] == "busy" and int(r.headers["retry-after"]) >= 1
    assert d.get(V1 + "/three").status == 404
    assert d.post(V1 + "/two/kill", {}).json["state"] == "stopped"
    create(d, "three")   # a sandbox that does not run takes no place


# ---- the end ----------------------------------------------------------------------------------------------------------


def test_stop_is_graceful(daemon, box):
    execute(daemon, box, "open('/workspace/f', 'w').write('x')")
    r = daemon.post("%s/%s/stop" % (V1, box), {})
    assert r.status == 200 and r.json["state"] == "stopped" and r.json["reason"], r
    one = daemon.get("%s/%s" % (V1, box)).json
    assert one["state"] == "stopped" and one["receipt"] is None
    for path, body in (("/execute", {"code": "1"}), ("/extend", {"seconds": 5}), ("/exec", {"cmd": "true"})):
        e = daemon.post("%s/%s%s" % (V1, box, path), body)
        assert e.status == 409 and e.error["code"] == "sandbox_stopped", e
    assert daemon.try_execute("1", session_id=box).status == 409
    assert daemon.post("%s/%s/stop" % (V1, box), {}).json["state"] == "stopped", "again: the same"
    assert daemon.post(V1, {"name": box}).status == 409


def test_stop_does_not_wait_for_ever(daemon, box):
    run = Later(lambda: daemon.post("%s/%s/execute" % (V1, box), {
        "code": "import signal, time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\ntime.sleep(60)"}))
    assert wait_until(lambda: daemon.get("%s/%s" % (V1, box)).json["busy"])
    r = daemon.post("%s/%s/stop" % (V1, box), {"grace_seconds": 1})
    assert r.json["state"] == "stopped"
    assert run.result().status in (200, 409)


# In place of node: an interpreter that is not ready for a minute, or until /workspace/quick exists.
SLOW_NODE = "#!/bin/sh\n[ -e /workspace/quick ] && PATH=/usr/local/bin:/usr/bin:/bin exec node \"$@\"\ntouch /workspace/starts\nexec sleep 100\n"


@pytest.fixture
def slow(daemon):
    """A sandbox whose javascript takes long to start. A function that runs such code, and waits until its kernel is starting."""
    name = create(daemon, env={"PATH": "/workspace/bin:/usr/bin:/bin"})["name"]
    url = "%s/%s" % (V1, name)
    assert daemon.request("PUT", url + "/files?path=bin/node&parents=true&mode=755", SLOW_NODE.encode()).status in (200, 201)

    def run():
        later = Later(lambda: daemon.post(url + "/execute", {"code": "40 + 2", "language": "javascript"}))
        assert wait_until(lambda: daemon.get(url + "/files/stat?path=starts").status == 200)
        return later

    yield url, run
    daemon.request("DELETE", url)


@pytest.mark.parametrize("end", ["stop", "kill", "delete"])
def test_an_end_while_a_kernel_starts(daemon, slow, end):
    """Executions that waited for a kernel report the stop that ended it, and so do later ones; no kernel is started for them."""
    url, run = slow
    waits = [run()]
    waits += [Later(lambda c=c: daemon.post(url + "/execute", {"code": c})) for c in ("1", "2")]
    assert wait_until(lambda: daemon.get(url).json["queued"] == 3)
    ended = daemon.request("DELETE", url) if end == "delete" else daemon.post(url + "/" + end, {})
    assert ended.status == (204 if end == "delete" else 200), ended
    for r in (w.result() for w in waits):
        assert r.status == 409 and r.error["code"] == "session_ended", r


def test_a_kernel_that_was_killed_while_it_started(daemon, slow):
    """It was killed together with code of another language that did not end in time: the next execution gets another kernel."""
    url, run = slow
    first = run()
    assert daemon.post(url + "/interrupt", {}).status in (200, 202) and first.result().json["ok"] is False
    stubborn = Later(lambda: daemon.post(url + "/execute", {"code": "trap '' INT; while :; do sleep 1; done", "language": "bash", "timeout": 1}))
    assert wait_until(lambda: daemon.get(url).json["busy"])
    assert daemon.request("PUT", url + "/files?path=quick", b"").status in (200, 201)
    r = daemon.post(url + "/execute", {"code": "40 + 2", "language": "javascript"})
    assert r.status == 200 and r.json["result"]["text/plain"] == "42", r
    assert stubborn.result().json["status"] == "timeout"


def test_kill_ends_executions(daemon, box):
    run = Later(lambda: daemon.post("%s/%s/execute" % (V1, box), {"code": "import time; time.sleep(60)"}))
    assert wait_until(lambda: daemon.get("%s/%s" % (V1, box)).json["executions"] == 1)
    assert daemon.post("%s/%s/kill" % (V1, box), {}).json["state"] == "stopped"
    r = run.result()
    assert r.status == 409 and r.error["code"] == "session_ended", r


def test_removed_while_it_runs(daemon):
    s = create(daemon)["name"]
    run = Later(lambda: daemon.post("%s/%s/execute" % (V1, s), {"code": "import time; time.sleep(60)"}))
    assert wait_until(lambda: daemon.get("%s/%s" % (V1, s)).json["executions"] == 1)
    assert daemon.request("DELETE", "%s/%s" % (V1, s)).status == 204
    assert run.result().status == 409
    assert daemon.request("DELETE", "%s/%s" % (V1, s)).status == 404
    assert create(daemon, s)["executions"] == 0, "the name is free"
    daemon.request("DELETE", "%s/%s" % (V1, s))


def test_interrupt(daemon, box):
    assert daemon.post("%s/%s/interrupt" % (V1, box), {}).status == 404
    run = Later(lambda: daemon.post("%s/%s/execute" % (V1, box), {"code": "import time\nprint('go', flush=True)\ntime.sleep(60)"}))
    assert wait_until(lambda: "go" in daemon.get("%s/%s/logs" % (V1, box)).body.decode())
    assert daemon.post("%s/%s/interrupt" % (V1, box), {}).status == 202
    r = run.result().json
    assert "KeyboardInterrupt" in r["stderr"] and not r["ok"] and r["state"] == "kept", r


# ---- code -------------------------------------------------------------------------------------------------------------


def test_execute_keeps_variables_and_reports_the_outcome(daemon, box):
    r = execute(daemon, box, "import sys\nx = 41\nprint('out'); print('err', file=sys.stderr)\nx + 1")
    assert (r["stdout"], r["stderr"], r["output"], r["exit_code"], r["ok"], r["truncated"]) == ("out\n", "err\n", "out\nerr\n", 0, True, False), r
    assert r["result"]["text/plain"] == "42" and r["status"] == "ok" and r["execution_id"] and r["language"] == "python"
    assert execute(daemon, box, "x")["result"]["text/plain"] == "41"
    bad = execute(daemon, box, "1 / 0")
    assert bad["ok"] is False and bad["exit_code"] == 1 and bad["error"]["name"] == "ZeroDivisionError"
    assert daemon.execute("x", session_id=box)["result"]["text/plain"] == "41", "a session is a sandbox's name"


def test_run_python_and_run_shell_leave_nothing(daemon):
    r = daemon.post("/v1/run_python", {"code": "print(6 * 7)", "memory_mib": 128}).json
    assert r["stdout"] == r["output"] == "42\n" and r["ok"] is True
    r = daemon.post("/v1/run_shell", {"script": "echo $A; echo no >&2; exit 3", "env": {"A": "b c"}}).json
    assert (r["stdout"], r["stderr"], r["exit_code"], r["ok"]) == ("b c\n", "no\n", 3, False), r
    r = daemon.post("/v1/run_python", {"code": "input()", "stdin": "hallo\n"}).json
    assert r["result"]["text/plain"] == "'hallo'"
    for body in ({"code": "1", "egress": ["*"]}, {"code": "1", "name": "x"}, {"code": ""}, {"code": "1", "memory_mib": 1}):
        assert daemon.post("/v1/run_python", body).status == 422
    assert daemon.get(V1).json == {"sandboxes": []}


def test_logs(daemon, box):
    assert daemon.get("%s/%s/logs" % (V1, box)).body == b""
    execute(daemon, box, "for i in range(5): print('line', i)")
    assert daemon.get("%s/%s/logs?tail=2" % (V1, box)).body == b"line 3\nline 4\n"
    assert daemon.get("%s/%s/logs?tail=0" % (V1, box)).body == b""
    execute(daemon, box, "import sys; sys.stdout.buffer.write(bytes(range(256)) * 1024)")
    body = daemon.get("%s/%s/logs" % (V1, box)).body
    assert len(body) == 65536 and body == bytes(range(256)) * 256, "the last of it, as bytes"


# ---- what is written down -----------------------------------------------------------------------------------------------


def ledger(d):
    lines = (d.state / "ledger" / "ledger.jsonl").read_text().splitlines()
    return [json.loads(line) for line in lines]


def test_executions_and_owners_are_in_the_ledger(serve):
    d = serve()
    create(d, "job", labels={"a": "b"})
    code = "print('ledger-secret')"
    r = execute(d, "job", code)
    d.post("/v1/run_shell", {"script": "exit 7"})
    d.request("DELETE", V1 + "/job")
    events = ledger(d)
    made = [e for e in events if e["event"] == "sandbox.create"]
    assert [e["sandbox"] for e in made] == ["job"] and made[0]["limits"]["memory_bytes"] == 512 << 20
    begin = next(e for e in events if e["event"] == "execution.begin" and e["id"] == r["execution_id"])
    assert begin["code_sha256"] == hashlib.sha256(code.encode()).hexdigest() and begin["what"] == "python" and begin["owner"] == "local"
    end = next(e for e in events if e["event"] == "execution.end" and e["id"] == r["execution_id"])
    assert end["status"] == "ok" and end["exit_code"] == 0 and end["usage"]["stdout_bytes"] == 14
    assert [e["exit_code"] for e in events if e["event"] == "execution.end"] == [0, 7]
    assert any(e["event"] == "sandbox.remove" and e["sandbox"] == "job" for e in events)
    assert "ledger-secret" not in json.dumps(events)
    d.stop()
    out = subprocess.run([str(BIN), "audit", "verify", "--state", str(d.state)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    assert out.returncode == 0, out.stdout


def test_sandboxes_outlive_the_daemon_as_records(serve):
    d = serve()
    create(d, "named", labels={"keep": "me"}, env={"A": "secret-value"}, memory_mib=256)
    create(d, "stopped")
    d.post(V1 + "/stopped/stop", {})
    d.execute("x = 1", session_id="session")
    d.p.send_signal(signal.SIGKILL)
    d.p.wait(20)
    assert wait_until(lambda: d.settled() == []), "its cells died with it"
    again = serve(state=d.state)
    named = again.get(V1 + "/named").json
    assert named["state"] == "lost" and "daemon" in named["reason"] and named["receipt"] is None, named
    assert named["spec"]["memory_mib"] == 256 and named["spec"]["labels"] == {"keep": "me"} and named["spec"]["env"] == ["A"]
    assert b"secret-value" not in b"".join(f.read_bytes() for f in (d.state / "store").iterdir())
    assert again.get(V1 + "/stopped").json["state"] == "stopped"
    e = again.post(V1 + "/named/execute", {"code": "1"})
    assert e.status == 409 and e.error["code"] == "sandbox_stopped", e
    r = again.execute("'x' in globals()", session_id="session")
    assert r["result"]["text/plain"] == "False" and r["epoch"] == 1, "the session did not report that its state is lost"
    assert again.request("DELETE", V1 + "/named").status == 204
    assert create(again, "named")["executions"] == 0
    again.stop()
    third = serve(state=d.state)
    assert {s["name"]: s["state"] for s in third.get(V1).json["sandboxes"]} == {"named": "lost", "stopped": "stopped", "session": "lost"}


def test_what_can_not_be_written_down_does_not_run(serve, tmp_path):
    """The ledger's disk is full: nothing runs, and everything works again when there is room."""
    if os.geteuid() != 0:
        pytest.skip("needs a file system of its own: root")
    where = tmp_path / "small"
    where.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m,mode=0755", "none", str(where)], check=True)
    try:
        d = serve(state=where / "state")
        create(d, "job")
        filler = where / "filler"
        fd = os.open(filler, os.O_WRONLY | os.O_CREAT)
        try:
            while True:
                os.write(fd, bytes(4096))
        except OSError:
            os.close(fd)
        r = None
        for _ in range(200):   # the rest of the last page of the ledger
            r = d.post(V1 + "/job/execute", {"code": "open('/workspace/ran', 'a').write('x')"})
            if r.status != 200:
                break
        assert r.status == 503 and r.error["code"] == "not_recorded", r
        assert d.post(V1, {"name": "other"}).status == 503
        assert d.get(V1 + "/other").status == 404
        filler.unlink()
        ran = len(execute(d, "job", "print(open('/workspace/ran').read(), end='') if __import__('os').path.exists('/workspace/ran') else None")["stdout"])
        ends = [e for e in ledger(d) if e["event"] == "execution.begin"]
        assert ran < len(ends) + 1
        # A cell that the pool asked for while the disk was full may fail for this request: 503, with Retry-After.
        assert wait_until(lambda: d.post(V1, {"name": "other"}).status == 201)
        d.stop()
    finally:
        subprocess.run(["umount", "-l", str(where)], check=True)


# ---- Idempotency-Key ----------------------------------------------------------------------------------------------------


def test_a_request_that_is_sent_again_is_not_done_again(daemon, box):
    key = {"Idempotency-Key": unique("key")}
    body = {"cmd": "sh", "args": ["-c", "echo x >> /workspace/count; wc -l < /workspace/count"]}
    first = daemon.post("%s/%s/exec" % (V1, box), body, headers=key)
    again = daemon.post("%s/%s/exec" % (V1, box), body, headers=key)
    assert first.status == again.status == 200 and first.body == again.body and first.json["stdout"].strip() == "1", (first, again)
    assert again.headers["idempotency-replayed"] == "true" and "idempotency-replayed" not in first.headers
    other = daemon.post("%s/%s/exec" % (V1, box), {"cmd": "true"}, headers=key)
    assert other.status == 422 and other.error["code"] == "key_reused", other
    assert daemon.post("%s/%s/exec" % (V1, box), body).json["stdout"].strip() == "2", "without a key it is a new one"
    assert daemon.post("%s/%s/exec" % (V1, box), {**body, "stream": True}, headers={"Idempotency-Key": unique()}).status == 422
    for bad in ("", "x" * 256, "a b"):
        assert daemon.post("%s/%s/exec" % (V1, box), body, headers={"Idempotency-Key": bad}).status == 400


def test_the_second_of_two_at_once_is_refused_as_in_progress(daemon, box):
    key = {"Idempotency-Key": unique("key")}
    body = {"cmd": "sh", "args": ["-c", "echo x >> /workspace/count; until test -e /workspace/go; do sleep 0.05; done; wc -l < /workspace/count"]}
    first = Later(lambda: daemon.post("%s/%s/exec" % (V1, box), body, headers=key))
    assert wait_until(lambda: daemon.get("%s/%s" % (V1, box)).json["busy"])
    second = daemon.post("%s/%s/exec" % (V1, box), body, headers=key)
    assert second.status == 409 and second.error["code"] == "in_progress" and second.headers["retry-after"], second
    assert daemon.request("PUT", "%s/%s/files?path=go" % (V1, box), b"").status in (200, 201)
    r = first.result()
    assert r.status == 200 and daemon.post("%s/%s/exec" % (V1, box), body, headers=key).body == r.body


def test_an_unread_answer_is_kept(daemon, box):
    body = json.dumps({"cmd": "sh", "args": ["-c", "until test -e /workspace/go; do sleep 0.05; done; echo x >> /workspace/count; wc -l < /workspace/count"]})
    key = unique("key")
    with daemon.connect() as s:
        s.sendall(("POST %s/%s/exec HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nIdempotency-Key: %s\r\n"
                   "Content-Length: %d\r\n\r\n%s" % (V1, box, key, len(body), body)).encode())
        assert wait_until(lambda: daemon.get("%s/%s" % (V1, box)).json["busy"])
    assert daemon.request("PUT", "%s/%s/files?path=go" % (V1, box), b"").status in (200, 201)
    answers = []

    def answered():
        answers.append(daemon.post("%s/%s/exec" % (V1, box), body, headers={"Idempotency-Key": key, "Content-Type": "application/json"}))
        return answers[-1].status != 409
    assert wait_until(answered)
    assert answers[-1].json["stdout"].strip() == "1" and answers[-1].headers["idempotency-replayed"] == "true", answers[-1]


@pytest.mark.parametrize("path, body, output", [
    ("/v1/sandboxes/%s/execute", {"code": "print(open('/workspace/count', 'a+').write('x'), end='')\nimport os; os.urandom(8).hex()"}, "1"),
    ("/v1/run_python", {"code": "import os; print(os.urandom(8).hex())"}, None), ("/v1/run_shell", {"script": "echo $RANDOM$RANDOM$RANDOM"}, None),
    ("/execute", {"code": "import os; print(os.urandom(8).hex())"}, None)])
def test_code_with_a_key_runs_once(daemon, box, path, body, output):
    url, key = path % box if "%" in path else path, {"Idempotency-Key": unique("key")}
    first, again = (daemon.post(url, body, headers=key) for _ in range(2))
    assert first.status == again.status == 200 and first.body == again.body and first.json["stdout"], (first, again)
    assert again.headers["idempotency-replayed"] == "true"
    assert daemon.post(url, {**body, "timeout": 9}, headers=key).error["code"] == "key_reused"
    assert daemon.post(url, body).body != first.body


def test_a_process_with_a_key_is_started_once(daemon, box):
    url, body, key = "%s/%s/processes" % (V1, box), {"cmd": "sleep", "args": ["1000"]}, {"Idempotency-Key": unique("key")}
    first, again = (daemon.post(url, body, headers=key) for _ in range(2))
    assert first.status == again.status == 201 and first.json["process_id"] == again.json["process_id"]
    assert len(daemon.get(url).json["processes"]) == 1


@pytest.mark.parametrize("path", ["/v1/sandboxes/%s/execute", "/v1/run_python", "/execute"])
def test_code_with_a_key_goes_on_without_its_client(daemon, box, path):
    url, key, held = path % box if "%" in path else path, unique("key"), Held(daemon, "print('heard')")
    body = json.dumps({"code": held.code, "timeout": 100})
    with daemon.connect() as s:
        s.sendall(("POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nIdempotency-Key: %s\r\n"
                   "Content-Length: %d\r\n\r\n%s" % (url, key, len(body), body)).encode())
        assert held.there()
    held.let_go()
    answers = []

    def answered():
        answers.append(daemon.post(url, body, headers={"Idempotency-Key": key, "Content-Type": "application/json"}))
        return answers[-1].status != 409
    assert wait_until(answered)
    assert answers[-1].json["stdout"] == "heard\n" and answers[-1].headers["idempotency-replayed"] == "true", answers[-1]


def test_create_with_a_key(daemon):
    name, key = unique(), {"Idempotency-Key": unique("key")}
    first = daemon.post(V1, {"name": name}, headers=key)
    assert first.status == 201 and daemon.post(V1, {"name": name}, headers=key).body == first.body
    daemon.request("DELETE", "%s/%s" % (V1, name))
    again = daemon.post(V1, {"name": name}, headers=key)
    assert again.status == 201 and again.body == first.body, "it was made again"
    assert daemon.get("%s/%s" % (V1, name)).status == 404
