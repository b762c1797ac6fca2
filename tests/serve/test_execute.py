# SPDX-License-Identifier: Apache-2.0
"""test_execute.py - POST /execute: results, state, limits, and separation."""
import base64
import json
import os
import shutil
import signal
import subprocess
import time

import pytest

from process import HANG, SLOW, call_yourself, status_of, unique, wait_until
from serve_lib import check_schema, parallel
from wire_lib import started_with

KEYS = {"status", "exit_code", "signal", "cause", "limits_hit", "usage", "ok", "success", "stdout", "stderr", "truncated",
        "stdout_bytes", "stderr_bytes", "execution_time", "result", "displays", "error", "state", "files", "epoch", "session_id",
        "language", "execution_id"}
USAGE = {"wall_ns", "cpu_ns", "memory_peak", "pids_peak", "disk_used", "stdout_bytes", "stderr_bytes", "throttled_ns"}
MIB = 1 << 20


# ---- as documented ------------------------------------------------------------------------------------------

# Lines that users of the service have in their scripts. They must keep working unchanged.
EXECUTE = r'''curl -X POST "http://localhost:8001/execute" \
  -H "Content-Type: application/json" \
  -d '{
    "code": "import math\nprint(f\"π = {math.pi}\")",
    "timeout": 10
  }'
'''
HELLO = r'''curl -X POST http://localhost:8001/execute \
  -H "Content-Type: application/json" \
  -d '{"code": "print(\"Hello from sandbox!\")"}'
'''
EXAMPLE = {"code": "print('Hello, World!')\nresult = 2 + 2\nprint(f'2 + 2 = {result}')", "timeout": 10}
PIP = r'''curl -X POST "http://localhost:8001/pip_install" \
  -H "Content-Type: application/json" \
  -d '{
    "package": "requests",
    "version": "latest"
  }'
'''
PIP_BARE = r'''curl -X POST http://localhost:8001/pip_install \
  -d '{"package": "suspicious-package"}'
'''
HEALTH = "curl http://localhost:8001/health\n"

needs_curl = pytest.mark.skipif(not shutil.which("curl"), reason="no curl here (apt-get install curl)")


def shell(line, daemon):
    """Run a documented line with only the port changed. Returns the output of curl."""
    assert "localhost:8001" in line
    r = subprocess.run(["bash", "-c", line.replace("localhost:8001", "localhost:%d" % daemon.port)],
                       capture_output=True, timeout=60 * SLOW)
    assert r.returncode == 0, r
    return json.loads(r.stdout)


@needs_curl
def test_documented_lines_run_as_written(daemon):
    d = shell(EXECUTE, daemon)
    assert (d["stdout"], d["stderr"], d["exit_code"], d["success"]) == ("π = 3.141592653589793\n", "", 0, True), d
    assert 0 < d["execution_time"] < 10
    assert shell(HELLO, daemon)["stdout"] == "Hello from sandbox!\n"
    assert shell(HEALTH, daemon)["status"] == "healthy"


@needs_curl
def test_documented_pip_lines_name_the_missing_option(daemon):
    """If the operator turned packages off; with an index they install (test_packages.py)."""
    for line in (PIP, PIP_BARE):
        e = shell(line, daemon)["error"]
        assert e["code"] == "not_configured" and "--pip-index" in e["hint"], e


def test_documented_example(daemon):
    d = daemon.post("/execute", EXAMPLE).json
    assert d["stdout"] == "Hello, World!\n2 + 2 = 4\n" and d["success"] is True and d["exit_code"] == 0


def test_blocked_package(daemon, serve):
    r = daemon.post("/pip_install", {"package": "SubProcess"})
    assert (r.status, r.error["code"], r.error["field"]) == (403, "package_blocked", "package"), r
    other = serve(env={"BLOCKED_PACKAGES": "evil,Some_Thing"})
    assert other.post("/pip_install", {"package": "some.thing"}).status == 403
    assert other.post("/pip_install", {"package": "subprocess"}).status == 501


# ---- the result object ------------------------------------------------------------------------------------------


def document(daemon):
    return daemon.get("/openapi.json").json


def whole(daemon, d):
    """Every result has every field, of the type that the API declares."""
    assert KEYS <= set(d) <= KEYS | {"stdout_base64", "stderr_base64", "displays_dropped"}, set(d) ^ KEYS
    assert set(d["usage"]) == USAGE
    doc = document(daemon)
    assert check_schema(d, doc["components"]["schemas"]["ExecuteResult"], doc) == []
    assert d["ok"] == d["success"] == (d["status"] == "ok") == (d["exit_code"] == 0)
    assert d["usage"]["stdout_bytes"] == d["stdout_bytes"] and d["usage"]["stderr_bytes"] == d["stderr_bytes"]
    assert abs(d["usage"]["wall_ns"] / 1e9 - d["execution_time"]) < 0.001
    return d


def test_result_of_success(daemon):
    d = whole(daemon, daemon.execute("import sys\nprint('out')\nprint('err', file=sys.stderr)\n{'a': 6 * 7}"))
    assert d["status"] == "ok" and d["success"] and d["exit_code"] == 0 and d["signal"] is None and d["cause"] is None
    assert d["stdout"] == "out\n" and d["stderr"] == "err\n" and not d["truncated"]
    assert d["stdout_bytes"] == d["stderr_bytes"] == 4
    assert d["result"]["text/plain"] == "{'a': 42}" and d["displays"] == [] and d["error"] is None
    assert d["state"] == "discarded" and d["epoch"] == 0 and d["session_id"] is None and d["language"] == "python"
    assert d["limits_hit"] == []
    assert 0 < d["usage"]["memory_peak"] < 512 * MIB and d["usage"]["pids_peak"] >= 1 and d["usage"]["cpu_ns"] > 0


def test_result_of_exception(daemon):
    d = whole(daemon, daemon.execute("def f(x):\n    return 1 / x\n\nprint('before')\nf(0)\nprint('never')"))
    assert (d["status"], d["exit_code"], d["success"], d["cause"]) == ("error", 1, False, None)
    assert d["error"]["name"] == "ZeroDivisionError" and d["error"]["value"] == "division by zero"
    text = "\n".join(d["error"]["traceback"])
    assert "return 1 / x" in text and "f(0)" in text, "the user's lines are missing"
    assert "caisson" not in text and "kernel" not in text, "lines of the kernel are shown"
    assert d["stdout"] == "before\n" and "ZeroDivisionError: division by zero" in d["stderr"]


def test_result_of_syntax_error(daemon):
    d = whole(daemon, daemon.execute("x = 1\ny = = 2\n"))
    assert (d["status"], d["exit_code"], d["error"]["name"]) == ("error", 1, "SyntaxError")
    assert "y = = 2" in "\n".join(d["error"]["traceback"])


@pytest.mark.parametrize("code,exit_code,status", [
    ("raise SystemExit", 0, "ok"), ("import sys; sys.exit(0)", 0, "ok"), ("import sys; sys.exit(3)", 3, "error"),
    ("import sys; sys.exit('no')", 1, "error")])
def test_sys_exit(daemon, code, exit_code, status):
    name = unique()
    assert daemon.execute("kept = 1", session_id=name)["state"] == "kept"
    d = whole(daemon, daemon.execute(code, session_id=name))
    assert (d["exit_code"], d["status"], d["state"]) == (exit_code, status, "kept"), d
    assert daemon.execute("kept", session_id=name)["result"]["text/plain"] == "1"


def test_last_expression_only(daemon):
    for code, want in [("1\n2", "2"), ("None", None), ("x = 5", None), ("x = 5; x", "5"), ("7;", None), ("'a'", "'a'")]:
        d = daemon.execute(code)
        assert (d["result"] and d["result"]["text/plain"]) == want, (code, d)


def test_top_level_await(daemon):
    d = daemon.execute("import asyncio\nawait asyncio.sleep(0.01)\nawait asyncio.gather(asyncio.sleep(0, 1), asyncio.sleep(0, 2))")
    assert d["result"]["text/plain"] == "[1, 2]", d


def test_unicode_survives(daemon):
    d = daemon.execute("print('π ≈ 3 🎉 \\x00 \\x7f \\u2028')\n'𝒳'")
    assert d["stdout"] == "π ≈ 3 🎉 \x00 \x7f \u2028\n" and d["result"]["text/plain"] == "'𝒳'"


def test_huge_values_are_cut_and_marked(daemon):
    d = daemon.execute("'x' * 20_000_000")
    assert d["success"] and len(d["result"]["text/plain"]) < 2 * MIB, len(d["result"]["text/plain"])
    d = daemon.execute("display({'text/plain': 'x' * 9_000_000}, raw=True)")
    assert d["success"] and "too large" in d["displays"][0]["data"]["text/plain"]


def test_a_large_result_costs_no_variables(daemon):
    """The whole result arrives with the end of the execution, so no part of it is left unread."""
    name = unique()
    d = daemon.execute("kept = 1\n'x' * 3_000_000", session_id=name)
    assert d["success"] and d["state"] == "kept" and len(d["result"]["text/plain"]) > 1 << 20
    assert daemon.execute("kept", session_id=name)["result"]["text/plain"] == "1"


def test_huge_exception_keeps_its_name(daemon):
    d = daemon.execute("raise KeyError('x' * 5_000_000)")
    assert d["error"]["name"] == "KeyError" and len(d["error"]["value"]) < 2 * MIB and d["error"]["traceback"], (d["error"]["name"], d["error"]["value"][:99])


def test_tracebacks_name_their_execution(daemon):
    """A function of an earlier call that fails in a later one is shown with its own lines."""
    name = unique()
    daemon.execute("def broken():\n    raise KeyError('earlier')\n", session_id=name)
    d = daemon.execute("broken()", session_id=name)
    assert "raise KeyError('earlier')" in d["stderr"], d


# ---- output -------------------------------------------------------------------------------------------------------


def test_order_of_subprocess_output(daemon):
    code = ("import os, subprocess, sys\n"
            "print('a')\nos.system('echo b')\nprint('c')\nsubprocess.run(['echo', 'd'])\nos.write(1, b'e\\n')\n"
            "sys.stdout.write('f\\n')\nsubprocess.run('echo g; echo g2 >&2', shell=True)\nprint('h')\n"
            "import ctypes\nctypes.CDLL(None).puts(b'i')\nctypes.CDLL(None).fflush(None)\nprint('j')")
    d = daemon.execute(code)
    assert d["stdout"].split() == list("abcdefghij") and d["stderr"] == "g2\n", d


def test_stdio_of_c_is_flushed(daemon):
    """Text in the buffer of the C library at the end of an execution belongs to that execution."""
    name = unique()
    d = daemon.execute("import ctypes\nctypes.CDLL(None).printf(b'from C')\nNone", session_id=name)
    assert d["stdout"] == "from C", d


def test_output_cap_counts_and_flags(daemon):
    d = whole(daemon, daemon.execute("print('x' * 50000)\nimport sys; print('e', file=sys.stderr)"))
    assert d["status"] == "ok" and d["truncated"] is True
    assert d["stdout"] == "x" * 10000 and d["stdout_bytes"] == 50001
    assert d["stderr"] == "e\n" and d["stderr_bytes"] == 2


def test_output_cap_is_in_characters(daemon):
    d = daemon.execute("print('π' * 9999)")
    assert d["stdout"] == "π" * 9999 + "\n" and d["stdout_bytes"] == 19999 and not d["truncated"]
    d = daemon.execute("print('🎉' * 10001)")
    assert d["stdout"] == "🎉" * 10000 and d["truncated"] and d["stdout_bytes"] == 4 * 10001 + 1


def test_exactly_the_cap_is_not_truncated(daemon):
    d = daemon.execute("print('x' * 9999)")
    assert len(d["stdout"]) == 10000 and not d["truncated"]


def test_max_output_is_a_setting(serve):
    d = serve("--max-output", "10").execute("print('123456789')\nprint('more')")
    assert d["stdout"] == "123456789\n" and d["truncated"]


def test_invalid_utf8(daemon):
    d = whole(daemon, daemon.execute("import os\nos.write(1, b'good \\xff\\xfe bad\\n')"))
    assert d["stdout"].startswith("good \ufffd") and d["stdout"].endswith(" bad\n") and d["stdout_bytes"] == 12
    assert base64.b64decode(d["stdout_base64"]) == b"good \xff\xfe bad\n"
    assert "stdout_base64" not in daemon.execute("print('fine')")


def test_output_flood_does_not_grow_the_daemon(daemon):
    """100 MiB on both streams: counted to the byte, 10,000 characters of each returned."""
    before = int(status_of(daemon.pid)["VmHWM"].split()[0])
    d = daemon.execute("import os\nb = b'x' * 65536\nfor i in range(800):\n    os.write(1, b); os.write(2, b)", timeout=60)
    assert d["stdout_bytes"] == d["stderr_bytes"] == 800 * 65536 and d["truncated"], d
    assert len(d["stdout"]) == len(d["stderr"]) == 10000
    assert int(status_of(daemon.pid)["VmHWM"].split()[0]) - before < 30 * 1024 * SLOW


def test_output_of_background_process_does_not_reach_the_next_owner(daemon):
    """Later output of a process that was left behind belongs to its session alone."""
    name = unique()
    daemon.execute("import subprocess\nsubprocess.Popen(['sh', '-c', 'while :; do echo LEFT; sleep 0.02; done'])\nNone", session_id=name)
    for _ in range(5):
        assert "LEFT" not in daemon.execute("print('mine')")["stdout"]


# ---- displays and input -----------------------------------------------------------------------------------------------


def test_displays_in_order(daemon):
    code = ("class Rich:\n    def _repr_html_(self): return '<b>rich</b>'\n"
            "print('one')\ndisplay(Rich())\nprint('two')\ndisplay({'text/plain': 'raw'}, raw=True)\nRich()")
    d = whole(daemon, daemon.execute(code))
    assert d["stdout"] == "one\ntwo\n", d
    assert [x["data"].get("text/html", x["data"]["text/plain"]) for x in d["displays"]] == ["<b>rich</b>", "raw"]
    assert d["result"]["text/html"] == "<b>rich</b>"


def has_module(name):
    return subprocess.run(["/usr/bin/python3", "-c", "import " + name], capture_output=True).returncode == 0


@pytest.mark.skipif(not has_module("matplotlib"), reason="no matplotlib here (apt-get install python3-matplotlib)")
def test_figures_are_displayed_without_any_call(daemon):
    d = daemon.execute("import matplotlib.pyplot as plt\nplt.plot([1, 2, 3])\nNone", timeout=60)
    pngs = [x["data"]["image/png"] for x in d["displays"] if "image/png" in x["data"]]
    assert d["success"] and len(pngs) == 1 and base64.b64decode(pngs[0]).startswith(b"\x89PNG"), d


def test_a_result_that_is_cut_tells_so(daemon):
    for code in ("'x' * (2 << 20)", "class A:\n    def _repr_html_(self): return 'x' * (9 << 20)\nA()", "display('x' * (2 << 20))"):
        d = whole(daemon, daemon.execute(code))
        assert d["success"] and d["truncated"] is True and len(json.dumps(d)) < 2 << 20, code
    assert "truncated" not in (d["result"] or {}) and d["displays"][0]["truncated"] is True
    assert daemon.execute("'x' * 1000")["truncated"] is False


def test_displays_are_those_that_a_notebook_shows_at_the_end(daemon):
    """A loop that shows its progress ends with its last picture, however long it is."""
    d = whole(daemon, daemon.execute("h = display('begin', display_id=True)\ndisplay('other')\nfor i in range(100): h.update(i)"))
    assert [(x["data"]["text/plain"], x["update"]) for x in d["displays"]] == [("99", False), ("'other'", False)] and not d["truncated"]
    d = whole(daemon, daemon.execute("from IPython.display import clear_output\nfor i in range(100):\n    clear_output(wait=True)\n    display(i)"))
    assert [x["data"]["text/plain"] for x in d["displays"]] == ["99"] and not d["truncated"]


def test_too_many_displays_are_dropped_and_counted(daemon):
    d = whole(daemon, daemon.execute("for i in range(100): display({'text/plain': str(i)}, raw=True)"))
    assert d["success"] and d["truncated"] and len(d["displays"]) + d["displays_dropped"] == 100, d


def test_input_from_stdin_field(daemon):
    d = daemon.execute("a = input('name? ')\nb = input()\nprint(repr((a, b)))", stdin="first line\nsecond\n")
    assert d["success"] and "('first line', 'second')" in d["stdout"], d


def test_input_beyond_stdin_is_eof(daemon):
    d = daemon.execute("input(); input()", stdin="one\n")
    assert d["error"]["name"] == "EOFError", d


def test_input_without_a_person_is_a_clear_error(daemon):
    d = daemon.execute("input('your name: ')", timeout=100)
    assert d["status"] == "error" and "stdin" in d["error"]["value"], d
    assert d["execution_time"] < HANG, "it waited for the timeout"


def test_stdin_of_subprocesses_is_empty(daemon):
    assert daemon.execute("import subprocess\nsubprocess.run(['cat'], capture_output=True).stdout")["result"]["text/plain"] == "b''"


def test_stdin_with_sys_stdin(daemon):
    """Programs read the `stdin` of the request from standard input."""
    d = daemon.execute("import sys\nsys.stdin.readline(), sys.stdin.read()", stdin="a\nb\nc\n")
    assert d["success"] and d["result"]["text/plain"] == "('a\\n', 'b\\nc\\n')", d


def test_stdin_with_nul(daemon):
    """It cannot be passed on whole, so it is refused rather than cut."""
    r = daemon.try_execute("input()", stdin="a\0b\nc")
    assert (r.status, r.error["code"], r.error["field"]) == (422, "invalid_value", "stdin"), r


# ---- sessions --------------------------------------------------------------------------------------------------------


def test_session_keeps_state(daemon):
    name = unique()
    d = whole(daemon, daemon.execute("import os\nx = [1]\nopen('file', 'w').write('on disk')\nos.chdir('/tmp')", session_id=name))
    assert (d["state"], d["epoch"], d["session_id"]) == ("kept", 0, name)
    d = daemon.execute("x.append(2)\nprint(x, os.getcwd(), open('/workspace/file').read())", session_id=name)
    assert (d["stdout"], d["state"], d["epoch"]) == ("[1, 2] /tmp on disk\n", "kept", 0)
    assert daemon.sessions()[name]["executions"] == 2


def test_sessions_do_not_see_each_other(daemon):
    a, b = unique(), unique()
    daemon.execute("secret = 'of a'\nopen('/workspace/a', 'w').write('a')\nopen('/tmp/a', 'w').write('a')\n"
                   "import os; os.environ['OF_A'] = '1'\nopen('/dev/shm/a', 'w').write('a')", session_id=a)
    look = ("import os\nprint('secret' in globals(), os.listdir('/workspace'), [f for f in os.listdir('/tmp') if f[0] != '.'], "
            "'OF_A' in os.environ, os.listdir('/dev/shm'))")
    for name in (b, None):
        d = daemon.execute(look, **({"session_id": name} if name else {}))
        assert d["stdout"] == "False [] [] False []\n", d
    assert daemon.execute("secret", session_id=a)["result"]["text/plain"] == "'of a'"


def test_two_sessions_have_two_kernels(daemon):
    names = ["two-%d-%d" % (os.getpid() % 1000, i) for i in range(2)]
    for n in names:
        assert daemon.execute(call_yourself(n), session_id=n)["success"]
    pids = [daemon.named(n) for n in names]
    assert all(len(p) == 1 for p in pids), pids
    a, b = pids[0][0], pids[1][0]
    for ns in ("pid", "mnt", "net", "ipc", "uts", "user", "cgroup"):
        assert os.readlink("/proc/%d/ns/%s" % (a, ns)) != os.readlink("/proc/%d/ns/%s" % (b, ns)), ns
    assert status_of(a)["Uid"] != status_of(b)["Uid"], "as root, every cell has host ids of its own"


def test_calls_without_session_are_fresh(daemon):
    for _ in range(3):
        d = daemon.execute("import os\nprint('left' in globals(), os.path.exists('/tmp/left'), os.path.exists('left'))\n"
                           "left = 1\nopen('/tmp/left', 'w'); open('left', 'w')")
        assert d["stdout"] == "False False False\n"


def test_ended_session_is_gone(daemon):
    name = unique()
    daemon.execute("x = 1\n" + call_yourself(name[:15]), session_id=name)
    pid, = daemon.named(name[:15])
    assert daemon.end_session(name).status == 204
    assert daemon.end_session(name).status == 404
    assert name not in daemon.sessions()
    assert wait_until(lambda: not os.path.exists("/proc/%d" % pid)), "its processes go with it"
    d = daemon.execute("'x' in globals()", session_id=name)
    assert d["result"]["text/plain"] == "False" and d["epoch"] == 0


def test_session_ended_while_it_runs(daemon):
    name = unique()
    first = daemon.begin("import time; time.sleep(60)", session_id=name, timeout=100)
    assert wait_until(lambda: daemon.sessions().get(name, {}).get("state") == "busy")
    second = daemon.begin("1", session_id=name)
    assert wait_until(lambda: daemon.sessions().get(name, {}).get("queued") == 2)
    assert daemon.end_session(name).status == 204
    for r in (first.result(), second.result()):
        assert r.status == 409 and r.error["code"] == "session_ended", r


def test_queue_of_one_session_is_in_order(daemon):
    name = unique()
    daemon.execute("seen = []", session_id=name)
    gate = daemon.begin("import time; time.sleep(60)", session_id=name, timeout=100)
    assert wait_until(lambda: daemon.sessions()[name]["state"] == "busy")
    calls = []
    for i in range(10):
        calls.append(daemon.begin("seen.append(%d)" % i, session_id=name))
        assert wait_until(lambda: daemon.sessions()[name]["queued"] == i + 2), "it is queued before the next is sent"
    assert daemon.request("POST", "/sessions/%s/interrupt" % name).status == 202
    assert gate.result().json["exit_code"] == 130
    assert all(c.result().status == 200 for c in calls)
    assert daemon.execute("seen", session_id=name)["result"]["text/plain"] == str(list(range(10)))


def test_full_queue_of_a_session_is_429(daemon):
    name = unique()
    gate = daemon.begin("import time; time.sleep(30)", session_id=name, timeout=60)
    assert wait_until(lambda: daemon.sessions().get(name, {}).get("state") == "busy")
    calls = [daemon.begin("1", session_id=name) for _ in range(40)]
    assert wait_until(lambda: sum(c.done() for c in calls) >= 9)
    refused = [c.result() for c in calls if c.done()]
    assert len(refused) == 9 and all(r.status == 429 and r.error["code"] == "session_busy" for r in refused), refused
    assert daemon.execute("2")["success"], "others are served"
    daemon.end_session(name)
    gate.result(), [c.result() for c in calls]


def test_two_sessions_run_in_parallel(daemon):
    """Both report that they have begun before either ends: neither waits for the other."""
    a, b = unique(), unique()
    code = "import time\nprint('begun', flush=True)\ntime.sleep(100)"
    with daemon.stream(code, session_id=a, timeout=110) as one, daemon.stream(code, session_id=b, timeout=110) as two:
        events = [iter(one), iter(two)]
        assert [(next(e)[0], next(e)[0]) for e in events] == [("started", "stdout")] * 2
        assert daemon.health()["sandboxes"]["busy"] == 2
        for n in (a, b):
            assert daemon.request("POST", "/sessions/%s/interrupt" % n).status == 202
        for e in events:
            r = list(e)[-1][1]
            assert r["state"] == "kept" and r["exit_code"] == 130, r


def test_interrupt(daemon):
    name = unique()
    daemon.execute("x = 'still here'", session_id=name)
    with daemon.stream("import time\nprint('begun', flush=True)\ntime.sleep(100)", session_id=name, timeout=110) as s:
        events = iter(s)
        assert [next(events)[0], next(events)[0]] == ["started", "stdout"]
        assert daemon.request("POST", "/sessions/%s/interrupt" % name).status == 202
        d = whole(daemon, list(events)[-1][1])
    assert d["state"] == "kept" and d["exit_code"] == 130 and d["cause"]["kind"] == "interrupt" and not d["success"], d
    assert daemon.execute("x", session_id=name)["result"]["text/plain"] == "'still here'"
    r = daemon.request("POST", "/sessions/%s/interrupt" % name)
    assert (r.status, r.error["code"]) == (404, "nothing_runs")
    r = daemon.request("POST", "/sessions/no-such-session/interrupt")
    assert (r.status, r.error["code"]) == (404, "no_such_session")


def test_interrupt_at_once_is_not_lost(daemon):
    """An interrupt at the same moment as the code: it may arrive before the code begins, and still ends it."""
    name = unique()
    with daemon.websocket() as w:
        w.run("x = 1", session_id=name)
        for _ in range(40):
            w.execute("import time; time.sleep(30)", session_id=name, timeout=40)
            w.send({"type": "interrupt"})
            r = w.until("done")[-1]["result"]
            assert r["exit_code"] == 130 and r["state"] == "kept", r
    assert daemon.execute("x", session_id=name)["result"]["text/plain"] == "1"


def check_never_ran(daemon, d, state):
    d = whole(daemon, d)
    assert d["status"] == "signal" and d["exit_code"] == 130 and d["cause"]["kind"] == "interrupt" and d["state"] == state, d
    assert not d["success"] and d["execution_time"] == 0 and d["stdout"] == d["stderr"] == "", d


def test_interrupt_of_code_that_is_queued(daemon):
    """Over its own socket: the interrupt is answered at once, and affects neither earlier nor later code in the queue."""
    name = unique()
    daemon.execute("seen = []", session_id=name)
    mark = unique("gate")[:15]
    gate = daemon.begin("import ctypes, time\ntry:\n    ctypes.CDLL(None).prctl(15, %r, 0, 0, 0)\n    time.sleep(60)\n"
                        "except KeyboardInterrupt: seen.append('gate')" % mark.encode(), session_id=name, timeout=100)
    assert wait_until(lambda: daemon.named(mark)), "the code is not in its handler"
    with daemon.websocket() as w:
        w.execute("seen.append('never')", session_id=name)
        assert wait_until(lambda: daemon.sessions()[name]["queued"] == 2)
        last = daemon.begin("seen.append('last')", session_id=name)
        assert wait_until(lambda: daemon.sessions()[name]["queued"] == 3)
        w.send({"type": "interrupt"})
        check_never_ran(daemon, w.until("done")[-1]["result"], "kept")
        assert daemon.sessions()[name]["queued"] == 2 and not gate.done() and not last.done()
        assert w.run("6 * 7")["success"], "the socket was closed"
    assert daemon.request("POST", "/sessions/%s/interrupt" % name).status == 202
    assert gate.result().status == 200 and last.result().json["success"]
    r = daemon.execute("seen", session_id=name)
    assert r["result"]["text/plain"] == "['gate', 'last']" and r["epoch"] == 0, r


def test_interrupt_of_code_that_waits_for_its_sandbox(serve):
    """No cell is available for a while: code that waits for one can be interrupted, and the session then serves the next code."""
    d = serve("--pool", "0")
    name = unique()
    os.kill(d.warden(), signal.SIGSTOP)
    try:
        first = d.begin("1", session_id=name)
        assert wait_until(lambda: d.sessions().get(name, {}).get("queued") == 1)
        second = d.begin("echo second", session_id=name, language="bash")
        assert wait_until(lambda: d.sessions()[name]["queued"] == 2)
        assert d.request("POST", "/sessions/%s/interrupt" % name).status == 202
        check_never_ran(d, first.result().json, "kept")
        with d.websocket() as w:
            w.execute("1")
            w.send({"type": "interrupt"})
            check_never_ran(d, w.until("done")[-1]["result"], "discarded")
        assert not second.done()
    finally:
        os.kill(d.warden(), signal.SIGCONT)
    assert second.result().json["stdout"] == "second\n"
    assert d.execute("6 * 7", session_id=name)["result"]["text/plain"] == "42"
    r = d.request("POST", "/sessions/%s/interrupt" % name)
    assert (r.status, r.error["code"]) == (404, "nothing_runs")


# ---- time -------------------------------------------------------------------------------------------------------------


def test_timeout_interrupts_and_keeps(daemon):
    name = unique()
    daemon.execute("x = 5", session_id=name)
    d = whole(daemon, daemon.execute("import time\nprint('begun')\ntime.sleep(300)", session_id=name, timeout=3))
    assert (d["status"], d["exit_code"], d["state"], d["epoch"]) == ("timeout", 124, "kept", 0), d
    assert d["cause"]["kind"] == "wall" and d["cause"]["limit"] == 3000 and d["cause"]["peak"] >= 3000 and d["cause"]["hint"]
    assert d["stdout"] == "begun\n" and 3 <= d["execution_time"] < HANG
    assert daemon.execute("x", session_id=name)["result"]["text/plain"] == "5"


@pytest.mark.parametrize("how", ["ignores", "catches", "in C"])
def test_timeout_escalates_to_a_reset(daemon, how):
    code = {"ignores": "import signal, time\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\nwhile True: time.sleep(1)",
            "catches": "import time\nwhile True:\n    try: time.sleep(60)\n    except BaseException: pass",
            "in C": "import re\nre.match('(a|a)*b', 'a' * 60)"}[how]
    name = unique()
    daemon.execute("x = 5\nopen('file', 'w').write('f')", session_id=name)
    d = whole(daemon, daemon.execute(code, session_id=name, timeout=1))
    assert (d["status"], d["exit_code"]) == ("timeout", 124), d
    if how == "in C" and d["state"] == "kept":
        return  # an interpreter whose regular expressions look at signals
    assert (d["state"], d["epoch"]) == ("reset", 1), d
    assert d["execution_time"] < HANG, "the steps of the timeout took another time"
    d = daemon.execute("'x' in globals(), open('/workspace/file').read()", session_id=name)
    assert d["result"]["text/plain"] == "(False, 'f')" and d["epoch"] == 1 and d["state"] == "kept", "files outlive a reset"


def test_timeout_takes_subprocesses_along(daemon):
    name = unique()
    mark = "77%06d" % (os.getpid() % 1000000)
    d = daemon.execute("import subprocess\nsubprocess.run(['sleep', '%s'])" % mark, session_id=name, timeout=1)
    assert d["status"] == "timeout", d

    def there():
        return set(daemon.processes()) & set(started_with(mark))
    assert wait_until(lambda: not there()), there()


def test_timeout_default_and_maximum(serve):
    d = serve("--timeout", "1s", "--max-timeout", "3s")
    assert d.execute("import time; time.sleep(60)")["cause"]["limit"] == 1000
    assert d.execute("import time; time.sleep(60)", timeout=2)["cause"]["limit"] == 2000
    r = d.try_execute("1", timeout=4)
    assert (r.status, r.error["code"], r.error["field"]) == (422, "out_of_range", "timeout") and "3" in r.error["message"]
    assert "--max-timeout" in r.error["hint"]


def test_no_interrupt_reaches_the_next_execution(daemon):
    """An execution that ends just at its timeout leaves nothing that interrupts the next one."""
    name = unique()
    daemon.execute("import time", session_id=name)
    for seconds in (0.995, 1.0):
        late = daemon.execute("time.sleep(%f)" % seconds, session_id=name, timeout=1)
        assert late["status"] in ("ok", "timeout")
        d = daemon.execute("time.sleep(0.05); 'fine'", session_id=name)
        assert d["status"] == "ok" and d["state"] == "kept", (late, d)


# ---- ends ---------------------------------------------------------------------------------------------------------------


def test_os_exit_ends_the_kernel_not_the_session(daemon):
    name = unique()
    daemon.execute("x = 1\nopen('f', 'w').write('kept')", session_id=name)
    d = whole(daemon, daemon.execute("import os\nprint('last words', flush=True)\nos._exit(7)", session_id=name))
    assert (d["exit_code"], d["state"], d["epoch"], d["status"]) == (7, "reset", 1, "error"), d
    assert d["stdout"] == "last words\n"
    d = daemon.execute("'x' in globals(), open('f').read()", session_id=name)
    assert d["result"]["text/plain"] == "(False, 'kept')" and d["epoch"] == 1, d


def test_os_exit_zero_is_not_success_of_a_session(daemon):
    """The code ended the interpreter: the result reports this, whatever exit code it chose."""
    name = unique()
    d = daemon.execute("import os; os._exit(0)", session_id=name)
    assert (d["state"], d["epoch"], d["exit_code"]) == ("reset", 1, 0), d


@pytest.mark.parametrize("signo", ["SEGV", "ABRT", "KILL", "TERM"])
def test_signals(daemon, signo):
    d = whole(daemon, daemon.execute("import os, signal\nprint('x', flush=True)\nos.kill(os.getpid(), signal.SIG%s)\nimport time; time.sleep(20)" % signo))
    n = int(getattr(signal, "SIG" + signo))
    assert (d["status"], d["signal"], d["exit_code"]) == ("signal", signo, 128 + n), d
    assert d["cause"]["kind"] == "signal" and d["cause"]["hint"] and d["stdout"] == "x\n"


def test_kernel_that_stops_itself(daemon):
    """A stopped kernel does not react to the interrupt, so it is killed."""
    name = unique()
    r = daemon.execute("import os, signal; os.kill(os.getpid(), signal.SIGSTOP)", session_id=name, timeout=1)
    assert (r["status"], r["state"], r["epoch"]) == ("timeout", "reset", 1), r
    assert daemon.execute("1", session_id=name)["success"]


def test_real_crash(daemon):
    d = daemon.execute("import ctypes\nctypes.string_at(0)")
    assert (d["status"], d["signal"], d["exit_code"]) == ("signal", "SEGV", 139), d


def test_memory_limit(serve):
    d = serve("--memory", "64M")
    name = unique()
    d.execute("x = 1; open('f', 'w').write('kept')", session_id=name)
    r = whole(d, d.execute("b = bytearray(500 << 20)\nprint('never')", session_id=name))
    assert (r["status"], r["exit_code"], r["cause"]["kind"], r["state"], r["epoch"]) == ("limit", 137, "memory", "reset", 1), r
    assert r["files"] == "kept" and d.execute("open('f').read()", session_id=name)["result"]["text/plain"] == "'kept'"
    assert r["cause"]["limit"] == 64 * MIB and r["cause"]["peak"] >= 60 * MIB and "64M" in r["cause"]["hint"].replace(" ", "")
    assert "memory" in r["limits_hit"] and r["stdout"] == ""
    assert d.execute("'x' in globals()", session_id=name)["result"]["text/plain"] == "False"
    assert d.execute("b = bytearray(10 << 20)")["success"], "another session was affected"


def test_memory_error_that_is_caught_is_no_event(serve):
    """numpy asks for more than the address space: an exception, not an end."""
    d = serve("--memory", "64M")
    r = d.execute("try:\n    bytearray(1 << 60)\nexcept MemoryError:\n    print('caught')")
    assert r["success"] and r["stdout"] == "caught\n", r


def test_max_memory_variable(serve):
    d = serve(env={"MAX_MEMORY_MB": "48"})
    assert d.execute("bytearray(200 << 20)")["cause"]["limit"] == 48 * MIB


def test_pids_limit(serve):
    d = serve("--pids", "20")
    name = unique()
    r = whole(d, d.execute("import os\nkids = []\nwhile True:\n    p = os.fork()\n    if not p:\n        import time; time.sleep(60)\n    kids.append(p)", session_id=name))
    assert (r["status"], r["cause"]["kind"], r["cause"]["limit"]) == ("limit", "pids", 20), r
    assert "pids" in r["limits_hit"] and r["error"]["name"] in ("BlockingIOError", "OSError"), r
    d.end_session(name)
    assert d.execute("1")["success"]


def test_disk_full(serve):
    d = serve("--disk", "8M", "--memory", "256M")
    name = unique()
    r = whole(d, d.execute("open('big', 'wb').write(b'x' * (20 << 20))", session_id=name))
    assert (r["status"], r["cause"]["kind"], r["cause"]["limit"]) == ("limit", "disk", 8 * MIB), r
    assert r["state"] == "kept" and r["error"]["name"] == "OSError" and r["usage"]["disk_used"] > 7 * MIB
    r = d.execute("import os; os.remove('big'); open('small', 'w').write('ok')", session_id=name)
    assert r["success"], r


def test_cpu_share_is_bounded(serve):
    """A tenth of a processor, which even a busy machine can give: ten times as long on the clock as on the processor."""
    d = serve("--cpus", "0.1")
    r = d.execute("import time\nt = time.process_time()\nwhile time.process_time() - t < 0.15: pass", timeout=60)
    assert r["success"] and r["execution_time"] > 0.8, r
    assert r["usage"]["throttled_ns"] > 0 or r["execution_time"] > 1.5, r  # or the machine could not give a tenth


def test_numbers_are_per_execution(daemon):
    name = unique()
    a = daemon.execute("import time\nwhile time.process_time() < 0.5: pass", session_id=name)
    b = daemon.execute("1", session_id=name)
    assert a["usage"]["cpu_ns"] > 4e8 and b["usage"]["cpu_ns"] < 2e8, (a["usage"], b["usage"])


# ---- random -------------------------------------------------------------------------------------------------------------

RANDOM = ("import random, uuid, tempfile, os, secrets, json\n"
          "r = [random.random(), random.Random().random(), str(uuid.uuid4()), str(uuid.uuid1()), tempfile.mktemp(), secrets.token_hex(8),\n"
          "     os.urandom(8).hex(), next(tempfile._get_candidate_names())]\n")
NUMPY = "import numpy\nr += [numpy.random.random(), numpy.random.default_rng().random(), int(numpy.random.randint(1 << 62))]\n"


@pytest.mark.parametrize("preload", ["", "random,uuid,tempfile,secrets", "numpy"])
def test_random_streams_differ_in_fresh_sandboxes(serve, daemon, preload):
    """Twenty forks of one warm interpreter: no two share a random stream."""
    if preload == "numpy" and not has_module("numpy"):
        pytest.skip("no numpy here (apt-get install python3-numpy)")
    d = serve("--preload", preload) if preload else daemon
    code = RANDOM + (NUMPY if preload == "numpy" else "") + "print(json.dumps(r))"
    rows = [json.loads(d.execute(code, timeout=60)["stdout"]) for _ in range(20)]
    for column in zip(*rows):
        assert len(set(column)) == 20, column


def test_random_streams_differ_in_subsequent_executions_of_one_session(daemon):
    name = unique()
    values = [daemon.execute("import random; random.random()", session_id=name)["result"]["text/plain"] for _ in range(5)]
    assert len(set(values)) == 5, "the generator was seeded again within a session"
    daemon.execute("random.seed(1)", session_id=name)
    import random
    assert daemon.execute("random.random()", session_id=name)["result"]["text/plain"] == repr(random.Random(1).random()), "a seed is obeyed"


def test_clock(daemon):
    """The clock advances in a kernel that waited in the pool."""
    d = daemon.execute("import time; time.time()")
    assert abs(float(d["result"]["text/plain"]) - time.time()) < 60


# ---- many ---------------------------------------------------------------------------------------------------------------


def test_many_at_once_each_get_their_own(daemon):
    rs = parallel([(lambda i=i: daemon.execute("print(%d)" % i)) for i in range(30)])
    assert [r["stdout"] for r in rs] == ["%d\n" % i for i in range(30)]


def test_client_that_goes_away_takes_its_code_along(daemon):
    mark = "gone-%d" % (os.getpid() % 100000)
    s = daemon.connect()
    body = json.dumps({"code": call_yourself(mark) + "import time; time.sleep(100)", "timeout": 110}).encode()
    s.sendall(b"POST /execute HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
    assert wait_until(lambda: daemon.named(mark))
    s.close()
    assert wait_until(lambda: not daemon.named(mark)), "the execution still runs without its client"


def test_client_that_goes_away_from_a_session_interrupts_and_keeps_it(daemon):
    name = unique()
    mark = unique("away")
    daemon.execute("x = 1", session_id=name)
    s = daemon.connect()
    body = json.dumps({"code": call_yourself(mark) + "import time; time.sleep(100)", "timeout": 110, "session_id": name}).encode()
    s.sendall(b"POST /execute HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
    assert wait_until(lambda: daemon.named(mark))
    s.close()
    assert wait_until(lambda: daemon.sessions()[name]["state"] == "idle")
    assert daemon.execute("x", session_id=name)["result"]["text/plain"] == "1"


def test_keep_alive_and_pipelining(daemon):
    """Three requests in one packet: three answers, in order."""
    def one(i):
        body = json.dumps({"code": "print(%d)" % i}).encode()
        return b"POST /execute HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n" % len(body) + body
    answers = daemon.raw(one(1) + one(2) + one(3), 3)
    assert [a.json["stdout"] for a in answers] == ["1\n", "2\n", "3\n"], answers


def test_largest_code(daemon):
    code = "x = '''" + "y" * (1048576 - 20) + "'''\nlen(x)"
    d = daemon.execute(code[:1048576])
    assert d["success"], d["stderr"][:500]
    r = daemon.try_execute("#" * 1048577)
    assert (r.status, r.error["code"], r.error["field"]) == (422, "out_of_range", "code")


def test_unknown_flags_of_memfd_are_unknown(daemon):
    """Chromium asks with all flags at once, and gives up at any other error."""
    code = "import errno, os\nfor flags in (0xffffffff, 4):\n    try: os.memfd_create('x', flags)\n    except OSError as e: print(errno.errorcode[e.errno])\nos.write(os.memfd_create('x'), b'x')"
    assert daemon.execute(code)["stdout"] == "EINVAL\nEINVAL\n"
