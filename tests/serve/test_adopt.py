# SPDX-License-Identifier: Apache-2.0
"""test_adopt.py - kill -9 of the front: named sandboxes continue, and everything that no client can use any more is ended."""
import http.client
import json
import os
import random
import signal
import threading
import time

import pytest

from box_lib import Box
from process import HANG, SLOW, Later, alive, call_yourself, name_of, unique, wait_until
from serve_lib import Held, total

GONE = (OSError, http.client.HTTPException)  # errors that a client of a killed front may see
VALUE = {"python": ("x = 41", "print(x + 1)"), "bash": ("x=42", "echo $x"), "javascript": ("x = 42", "console.log(x)"),
         "r": ("x <- 42", "cat(x, '\\n', sep='')")}


def kill_front(d):
    """Kill the front; return when the next one serves."""
    old = d.pid
    os.kill(old, signal.SIGKILL)
    assert wait_until(lambda: d.find_front() not in (None, old)), "no other front was started"
    assert d.running()


def value(r):
    assert r["success"], r
    return r["stdout"].strip() or r["result"]["text/plain"]


def cells_are(d, n):
    """From outside, there are as many cells as sandboxes and ready cells; nothing else is below the daemon's cgroups."""
    def right():
        h = d.health()
        return h["pool"]["making"] == 0 and d.filled(h) and len(d.inits()) == n + h["pool"]["cells_ready"] + h["pool"]["kernels_ready"]
    return wait_until(right)


def is_busy(d, name):
    r = d.get("/v1/sandboxes/" + name)
    return r.status == 200 and r.json["busy"]


@pytest.fixture
def d(serve):
    return serve("--pool", "1")


# ---- idle kernels ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("language", list(VALUE))
def test_variables_are_still_there(d, language):
    if language not in d.health()["languages"]:
        pytest.skip("%s is not installed" % language)
    name, (put, get) = unique(), VALUE[language]
    assert d.execute(put, session_id=name, language=language)["epoch"] == 0
    kernels = set(d.kernels())
    for _ in range(2):
        kill_front(d)
        r = d.execute(get, session_id=name, language=language)
        assert (value(r), r["epoch"], r["state"]) == ("42", 0, "kept"), r
    assert kernels & set(d.kernels()), "the interpreter was replaced"
    assert cells_are(d, 1), (d.inits(), d.health())


def test_two_kernels_of_one_sandbox(d):
    name = unique()
    d.execute("x = 41", session_id=name)
    d.execute("x=7", session_id=name, language="bash")
    kill_front(d)
    assert value(d.execute("echo $x", session_id=name, language="bash")) == "7"
    assert value(d.execute("print(x + 1)", session_id=name)) == "42"


def test_what_a_sandbox_is_stays(d):
    with Box(d, env={"SECRET": "s3cret-%d" % os.getpid()}, labels={"team": "red"}, memory_mib=300, timeout_seconds=500) as box:
        box.shell("echo kept > file")
        assert box.exec("true")["exit_code"] == 0
        before = box.about()
        kill_front(d)
        after = box.about()
        for key in ("state", "epoch", "owner", "name", "spec", "created_at", "expires_at"):
            assert after[key] == before[key], key
        assert box.shell("cat file; echo $SECRET")["stdout"] == "kept\ns3cret-%d\n" % os.getpid()
        assert d.post("/v1/sandboxes", {"name": box.name, "env": {"SECRET": "s3cret-%d" % os.getpid()}, "labels": {"team": "red"}, "memory_mib": 300,
                                        "timeout_seconds": 500}).status == 200, "the spec differs"


def test_a_sandbox_without_a_cell_yet(d):
    """The sandbox was made and not used: there is nothing to lose."""
    name = unique()
    assert d.post("/v1/sandboxes", {"name": name}).status == 201
    kill_front(d)
    r = d.execute("print(1)", session_id=name)
    assert (r["stdout"], r["epoch"]) == ("1\n", 0), r


def test_it_is_written_down(d):
    name = unique()
    d.execute("x = 1", session_id=name)
    kill_front(d)
    d.execute("x", session_id=name)
    adopted, = d.log("adopted")
    assert (adopted["sandboxes"], adopted["kernels"], adopted["ended_by"], adopted["restarts"]) == (1, 1, "KILL", 1), adopted
    m = d.metrics()
    assert total(m, "caisson_front_restarts_total") == 1 and total(m, "caisson_sandboxes_adopted_total") == 1
    ledger = b"".join(p.read_bytes() for p in (d.state / "ledger").iterdir())
    lines = [json.loads(line) for line in ledger.splitlines()]
    assert [x for x in lines if x.get("event", x.get("type")) == "sandbox.adopt" or "sandbox.adopt" in x.values()], lines


def test_the_ledger_records_losses(d):
    """Everything that had begun has an end, once."""
    with Box(d) as box:
        held = Held(d)
        run = d.begin(held.code, session_id=box.name, timeout=100)
        once = Later(lambda: d.try_execute("import time; time.sleep(1000)", timeout=110))
        assert held.there() and wait_until(lambda: d.health()["sandboxes"]["busy"] == 2)
        p = box.start("sleep", "1000")
        assert box.exec("true")["ok"]
        for _ in range(2):
            kill_front(d)
        for r in (run, once):
            with pytest.raises(GONE):
                r.result()
        assert box.about()["state"] == "running"  # it answers, so its lines are written
        lines = [json.loads(x) for x in (d.state / "ledger" / "ledger.jsonl").read_text().splitlines()]
        begun = {e["id"]: e for e in lines if e["event"] == "execution.begin"}
        ends = [e for e in lines if e["event"] == "execution.end"]
        assert len(begun) == len(ends) == 4 and {e["id"] for e in ends} == set(begun)
        lost = [e for e in ends if e["status"] == "lost"]
        assert len(lost) == 3 and p.id in {e["id"] for e in lost} and {e["cause"] for e in lost} == {"front_died"}, ends
        assert {(e["owner"], e["sandbox"], e["what"]) for e in lost} == {("local", box.name, "python"), ("local", box.name, "process"), ("local", "", "python")}


# ---- kernels that run code ---------------------------------------------------------------------------------------------------


def test_during_an_execution(d):
    """The client's connection is gone, so its code is interrupted; variables are kept."""
    name = unique()
    d.execute("x = 41", session_id=name)
    held = Held(d)
    run = d.begin(held.code, session_id=name, timeout=100)
    assert held.there()
    kill_front(d)
    with pytest.raises(GONE):
        run.result()
    r = d.execute("print(x + 1)", session_id=name)
    assert (r["stdout"], r["epoch"], r["state"]) == ("42\n", 0, "kept"), r


@pytest.mark.parametrize("language, code", [("bash", "while :; do sleep 0.01; done"), ("javascript", "for (;;) {}")])
def test_during_an_execution_in_another_language(d, language, code):
    if language not in d.health()["languages"]:
        pytest.skip("%s is not installed" % language)
    name = unique()
    d.execute(VALUE[language][0], session_id=name, language=language)
    run = d.begin(code, session_id=name, language=language, timeout=100)
    assert wait_until(lambda: is_busy(d, name))
    kill_front(d)
    with pytest.raises(GONE):
        run.result()
    r = d.execute(VALUE[language][1], session_id=name, language=language)
    assert (value(r), r["epoch"]) == ("42", 0), r


def test_code_that_does_not_let_itself_be_interrupted(d):
    name, mark = unique(), "deaf-kernel"
    run = d.begin("import signal, time\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\n" + call_yourself(mark) + "while True: time.sleep(1)",
                  session_id=name, timeout=100)
    assert wait_until(lambda: d.named(mark))
    old, = d.named(mark)
    kill_front(d)
    with pytest.raises(GONE):
        run.result()
    r = d.execute("print('x' in globals())", session_id=name)
    assert (r["stdout"], r["epoch"]) == ("False\n", 1), r
    assert not alive(old)


def test_while_it_shows_and_prints(d):
    """With output and displays in the pipes, some of it half read: the kernel continues, and its displays arrive."""
    name = unique()
    d.execute("x = 42", session_id=name)
    for i in range(6):
        run = d.begin("while True:\n    print('y' * 5000)\n    display('shown')", session_id=name, timeout=100)
        assert wait_until(lambda: is_busy(d, name))
        time.sleep(0.02 * i)  # any moment
        kill_front(d)
        with pytest.raises(GONE):
            run.result()
        r = d.execute("display('again')\nprint(x)", session_id=name)
        assert (r["stdout"], r["epoch"], len(r["displays"])) == ("42\n", 0, 1), r


def test_half_a_message_in_its_pipe(d):
    """A kernel that got only a part of its code cannot be used any more."""
    name, mark = unique(), "slow-reader"
    d.execute(call_yourself(mark) + "x = 1", session_id=name)
    old, = d.named(mark)
    os.kill(old, signal.SIGSTOP)
    try:
        run = d.begin("y = '%s'" % ("z" * 1000000), session_id=name, timeout=100)
        assert wait_until(lambda: is_busy(d, name))
        kill_front(d)
    finally:
        os.kill(old, signal.SIGCONT)
    with pytest.raises(GONE):
        run.result()
    r = d.execute("print('x' in globals())", session_id=name)
    assert (r["stdout"], r["epoch"]) == ("False\n", 1), r
    assert not alive(old)


# ---- other processes in a sandbox --------------------------------------------------------------------------------------------


def argument(pid):
    """The first argument of a process; None if it is ending or has ended."""
    try:
        with open("/proc/%d/cmdline" % pid) as f:
            return f.read().split("\0")[1]
    except (OSError, IndexError):
        return None


def test_commands_end_and_processes_of_the_code_go_on(d):
    with Box(d) as box:
        d.execute("import subprocess\np = subprocess.Popen(['sleep', '1000'], start_new_session=True)", session_id=box.name)
        p = box.start("sh", "-c", "exec sleep 1001")
        run = Later(lambda: box.shell("sleep 1002"))
        sleeps = lambda: sorted(filter(None, map(argument, d.named("sleep"))))  # noqa: E731
        assert wait_until(lambda: sleeps() == ["1000", "1001", "1002"])
        kill_front(d)
        with pytest.raises(GONE):
            run.result()
        assert wait_until(lambda: sleeps() == ["1000"]), sleeps()
        assert box.get(p.path).status == 404 and not box.processes()
        assert value(d.execute("print(p.poll())", session_id=box.name)) == "None"
        assert box.shell("echo works")["stdout"] == "works\n"


def test_losses_are_reported(d):
    """Processes, ports and records are lost with the front: requests for them get an error with this reason; the sandbox keeps its age."""
    with Box(d) as box:
        done, p = box.exec("true"), box.start("sleep", "1000")
        assert box.post("/ports/8000").status in (200, 201)
        before = box.about()
        assert "adopted_at" not in before
        kill_front(d)
        after = box.about()
        assert after["age_seconds"] >= before["age_seconds"] and after["adopted_at"] > before["created_at"]
        for r in (box.get(p.path), box.get("/ports/8000"), box.get("/executions/" + done["execution_id"]),
                  box.get("/artifacts?execution_id=" + done["execution_id"])):
            assert r.status == 404 and "restarted at " + after["adopted_at"] in r.error["hint"], r
    with Box(d) as box:
        assert "restarted" not in box.get("/ports/8000").error["hint"], "a process that was made later is not reported as lost"


def test_during_a_stream(d):
    with Box(d) as box:
        with box.stream("echo begun; sleep 1003") as events:
            assert "begun" in str(next(e for e in events if "begun" in str(e)))
            kill_front(d)
        assert wait_until(lambda: not d.named("sleep"))
        assert box.shell("echo works")["stdout"] == "works\n"


def test_during_an_upload(d):
    with Box(d) as box:
        box.shell("echo old > file")
        with d.connect() as s:
            s.sendall(("PUT %s/files/content?path=file HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000\r\n\r\n" % box.url).encode() + b"x" * 500000)
            time.sleep(0.1)  # some of it is on its way
            kill_front(d)
            try:
                assert not s.recv(100).startswith(b"HTTP/1.1 2")
            except OSError:
                pass
        assert box.shell("ls -A | wc -l; cat file")["stdout"].split() in (["1", "old"], ["2", "old"]), "the file is incomplete"


def test_while_sandboxes_are_made_and_removed(d):
    """At any moment, each sandbox exists, is reported as lost, or was removed. Nothing of it stays."""
    odd = []
    for i in range(4):
        names = [unique() for _ in range(6)]
        made = [Later(lambda n=n: d.post("/v1/sandboxes", {"name": n, "memory_mib": 200})) for n in names]
        time.sleep(0.02 * i)
        if i % 2:
            wait_until(lambda: all(m.done() for m in made))
            gone = [Later(lambda n=n: d.request("DELETE", "/v1/sandboxes/" + n)) for n in names]
            time.sleep(0.003 * i)
        kill_front(d)
        wait_until(lambda: all(m.done() for m in made))
        for n, m in zip(names, made):
            r = d.get("/v1/sandboxes/" + n)
            if not (r.status == 200 and r.json["state"] in ("running", "lost")) and (m.problem is None and not i % 2 or r.status != 404):
                odd.append((i, n, m.problem, m.value, r))
            if r.status == 200 and r.json["state"] == "running":
                assert d.execute("print(1)", session_id=n)["stdout"] == "1\n"
            assert d.request("DELETE", "/v1/sandboxes/" + n).status in (204, 404)
        if i % 2:
            wait_until(lambda: all(g.done() for g in gone))
    assert not odd, odd
    assert cells_are(d, 0), (d.inits(), d.health())


# ---- the end of things -------------------------------------------------------------------------------------------------------------


def while_there_is_no_front(d, what):
    """Stop the keeper, so that it starts no front until @what is done."""
    os.kill(d.keeper, signal.SIGSTOP)
    try:
        os.kill(d.pid, signal.SIGKILL)
        what()
    finally:
        os.kill(d.keeper, signal.SIGCONT)


def test_a_cell_that_died_meanwhile(d):
    name, other = unique(), unique()
    d.execute(call_yourself("dies-meanwhile") + "x = 1", session_id=name)
    d.execute("x = 42", session_id=other)
    kernel, = d.named("dies-meanwhile")
    init = d.init_of(kernel)
    while_there_is_no_front(d, lambda: os.kill(init, signal.SIGKILL))
    r = d.execute("print('x' in globals())", session_id=name)
    assert (r["stdout"], r["epoch"]) == ("False\n", 1), r
    r = d.execute("print(x)", session_id=other)
    assert (r["stdout"], r["epoch"]) == ("42\n", 0), r


TOO_MUCH = "b = bytearray(700 << 20)"


def test_a_cell_that_ran_out_of_memory_before(d):
    """The end of the first cell does not affect the record of the second."""
    name, used = unique(), unique()
    for n in (name, used):
        assert d.post("/v1/sandboxes", {"name": n, "oom": "sandbox"}).status == 201
        d.execute("x = 1", session_id=n)
        assert d.execute(TOO_MUCH, session_id=n)["cause"]["kind"] == "memory"
    d.execute("v = 5", session_id=used)
    kill_front(d)
    for n in (name, used):
        r = d.get("/v1/sandboxes/" + n).json
        assert (r["state"], r["epoch"]) == ("running", 1), r
    r = d.execute("print(v)", session_id=used)
    assert (r["stdout"], r["epoch"], r["state"]) == ("5\n", 1, "kept"), r
    assert d.execute("print('x' in globals())", session_id=name)["stdout"] == "False\n"
    assert not d.log("slot_damaged")


def test_a_cell_that_ran_out_of_memory_with_somebody_behind_it(d):
    name, held = unique(), Held(d, TOO_MUCH)
    assert d.post("/v1/sandboxes", {"name": name, "oom": "sandbox"}).status == 201
    first = d.begin(held.code, session_id=name, timeout=100)
    assert held.there()
    second = d.begin("v = 5", session_id=name, timeout=100)
    assert wait_until(lambda: total(d.metrics(), "caisson_executions_queued") == 1)
    held.let_go()
    assert first.result().json["cause"]["kind"] == "memory" and second.result().json["success"]
    kill_front(d)
    r = d.execute("print(v)", session_id=name)
    assert (r["stdout"], r["epoch"], r["state"]) == ("5\n", 1, "kept"), r


def test_a_kernel_that_died_meanwhile(d):
    name = unique()
    d.execute(call_yourself("dies-meanwhile") + "x = 1", session_id=name)
    d.execute("x=7", session_id=name, language="bash")
    kernel, = d.named("dies-meanwhile")
    while_there_is_no_front(d, lambda: os.kill(kernel, signal.SIGKILL))
    r = d.execute("print('x' in globals())", session_id=name)
    assert (r["stdout"], r["epoch"]) == ("False\n", 1), r
    assert value(d.execute("echo $x", session_id=name, language="bash")) == "7"


def test_a_warden_that_died_meanwhile(d):
    d.execute("x = 1", session_id=unique())
    warden = d.warden()
    while_there_is_no_front(d, lambda: os.kill(warden, signal.SIGKILL))
    assert d.end() == 125
    assert wait_until(lambda: not d.processes()), [(p, name_of(p)) for p in d.processes()]


def test_connections_during_a_restart_wait(d):
    name = unique()
    d.execute("x = 42", session_id=name)
    run = []
    while_there_is_no_front(d, lambda: run.append(d.begin("print(x)", session_id=name)))
    assert run[0].result().json["stdout"] == "42\n"


def test_the_end_of_one_that_was_adopted_is_as_clean(d):
    """A second front is ended: it drains, and nothing is left (stop() checks this)."""
    name = unique()
    d.execute("x = 1", session_id=name)
    kill_front(d)
    held = Held(d, "print('finished')")
    run = d.begin(held.code, session_id=name, timeout=100)
    assert held.there()
    d.p.send_signal(signal.SIGTERM)
    assert wait_until(lambda: d.log("drain"))
    held.let_go()
    assert run.result().json["stdout"] == "finished\n"
    assert d.end() == 0 and d.settled() == []


def test_fronts_that_die_at_once_are_not_started_for_ever(d):
    """The kept state may be the cause of their death: the keeper drops it, and then gives up."""
    name = unique()
    d.execute("x = 1", session_id=name)
    killed = set()

    def all_dead():
        front = d.find_front()
        if front and front not in killed:
            os.kill(front, signal.SIGTRAP)  # a crash, and not one that a sanitizer catches
            killed.add(front)
        return not d.running()

    assert wait_until(all_dead, HANG)
    assert d.end() == 125 and len(killed) < 20
    assert "giving up" in d.log_path.read_bytes().splitlines()[-1].decode()
    assert d.settled() == []
    d.log_path.write_bytes(b"")
    d.start()
    d.wait_ready()
    assert d.get("/v1/sandboxes/" + name).json["state"] == "lost"


def test_a_second_signal_still_ends_it_at_once(d):
    """A signal to the keeper that it passes on counts once; Ctrl-C reaches both processes."""
    held = Held(d)
    run = d.begin(held.code, session_id=unique(), timeout=100)
    assert held.there()
    for pid in (d.pid, d.keeper):
        os.kill(pid, signal.SIGINT)
    assert wait_until(lambda: d.log("drain"))
    assert not wait_until(lambda: not d.running(), 0.5), "the first signal did not drain"
    os.kill(d.keeper, signal.SIGINT)
    assert d.end() == 0
    with pytest.raises((AssertionError, *GONE)):
        assert run.result().status == 200


# ---- many times ----------------------------------------------------------------------------------------------------------------------


def test_storm(d):
    """Clients retry while the front is killed again and again: the counter of every session continues."""
    kills = int(os.environ.get("CAISSON_ADOPT_KILLS", "5"))
    names = [unique("storm") for _ in range(4)]
    over, odd, counted = threading.Event(), [], {}
    rng = random.Random(int(os.environ.get("CAISSON_CHAOS_SEED", "0")) or None)

    def client(name):
        """Each call adds one; a call whose answer was lost may have added one too."""
        at, unsure, epoch = 0, 0, 0
        while not over.is_set():
            try:
                r = d.try_execute("n = globals().get('n', 0) + 1\nprint(n)", session_id=name, timeout=30)
            except GONE:
                unsure += 1
                continue
            if r.status in (429, 503):
                continue
            j = r.json
            if r.status != 200 or not j["success"] or j["epoch"] != epoch or not at < int(j["stdout"]) <= at + unsure + 1:
                odd.append((name, at, unsure, r))
                return
            at, unsure = int(j["stdout"]), 0
        counted[name] = at

    threads = [threading.Thread(target=client, args=(n,), daemon=True) for n in names]
    for t in threads:
        t.start()
    assert wait_until(lambda: odd or set(d.sessions()) == set(names))
    for n in range(kills):
        time.sleep(0.2 + rng.random())  # any moment
        kill_front(d)
        assert wait_until(lambda: odd or len(d.log("adopted")) == n + 1), d.log_text()[-2000:]
        if odd:
            break
    over.set()
    for t in threads:
        t.join(60 * SLOW)
    assert not odd, odd
    assert set(counted) == set(names) and all(counted.values()), counted
    assert set(d.sessions()) == set(names)
    for name in names:
        assert d.end_session(name).status == 204
    assert cells_are(d, 0), (d.inits(), d.health())
