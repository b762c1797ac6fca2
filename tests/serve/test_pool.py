# SPDX-License-Identifier: Apache-2.0
"""test_pool.py - Kernels that are ready before a request, each used once; and the zygote that forks them."""
import contextlib
import os
import signal
import threading
import time
from pathlib import Path

import pytest

from process import HANG, SLOW, Later, alive, call_yourself, children, memory_kb, name_of, unique, wait_until
from serve_lib import Daemon, Held, parallel

from test_execute import has_module

needs_numpy = pytest.mark.skipif(not has_module("numpy"), reason="no numpy here (apt-get install python3-numpy)")


def full(d, n):
    return wait_until(lambda: d.health()["pool"]["kernels_ready"] >= n and d.health()["pool"]["making"] == 0)


def test_pool_is_filled_and_refilled(serve):
    d = serve("--pool", "3")
    assert full(d, 3)
    before = set(d.kernels())
    assert len(before) == 3
    d.execute("1")
    assert full(d, 3), d.health()
    assert d.metrics()["caisson_pool_hits_total"] == 1 and d.metrics()["caisson_pool_misses_total"] == 0


def test_pool_of_none(serve):
    d = serve("--pool", "0")
    assert d.health()["pool"]["kernels_ready"] == 0
    assert d.execute("print(1)")["stdout"] == "1\n"


def test_pool_grows_with_the_load_and_shrinks_again(serve):
    d = serve("--pool", "1")
    parallel([lambda: d.execute("1") for _ in range(12)])
    assert d.health()["pool"]["target"] >= 1
    assert wait_until(lambda: d.health()["pool"]["kernels_ready"] <= 3 and d.health()["pool"]["target"] == 1), d.health()


def test_every_kernel_is_used_once(serve):
    """The process, the cell and the host ids of one call are never those of another."""
    d = serve("--pool", "2")
    seen, spaces, machines = [], [], []
    for i in range(6):
        mark = "once-%d" % i
        name = unique()
        r = d.execute(call_yourself(mark) + "open('/proc/sys/kernel/hostname').read()", session_id=name)
        pid, = d.named(mark)
        seen.append((pid, os.stat("/proc/%d" % pid).st_uid))
        spaces.append(os.readlink("/proc/%d/ns/mnt" % pid))
        machines.append(r["state"])
        assert d.end_session(name).status == 204
        assert wait_until(lambda: not alive(pid)), "the kernel outlived its sandbox"
    assert len(set(seen)) == 6 and machines == ["kept"] * 6, (seen, spaces)


def test_kernel_in_the_pool_that_is_killed_is_replaced(serve):
    d = serve("--pool", "2")
    assert full(d, 2)
    old = set(d.kernels())
    for pid in old:
        os.kill(pid, signal.SIGKILL)
    assert wait_until(lambda: len(d.kernels()) >= 2 and not old & set(d.kernels())), d.health()
    assert full(d, 2)
    assert d.execute("print('served')")["stdout"] == "served\n"


def test_cell_in_the_pool_that_is_killed_is_replaced(serve):
    d = serve("--pool", "2")
    assert full(d, 2)
    old = set(d.inits())
    for pid in old:
        os.kill(pid, signal.SIGKILL)
    assert wait_until(lambda: len(d.inits()) >= 3 and not old & set(d.inits())), d.health()
    assert full(d, 2)
    assert d.execute("print('served')")["stdout"] == "served\n"
    assert d.execute("echo served", language="bash")["stdout"] == "served\n"


def test_cells_that_die_while_they_are_made(serve):
    """Each failure releases everything that it used: the pool continues."""
    d = serve("--pool", "2")
    z = d.zygote()
    os.kill(z, signal.SIGSTOP)  # cells are made, and wait for their kernel
    for _ in range(6):
        old = set(d.inits())
        for pid in old:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        wait_until(lambda: len(set(d.inits()) - old) >= 2, 2)
    os.kill(z, signal.SIGCONT)
    run = d.begin("print('served')")
    r = run.result()
    assert r.status == 200 and r.json["stdout"] == "served\n", r
    assert full(d, 2), d.health()


def is_dead(pid):
    """Ended, or a zombie that waits for its parent."""
    try:
        with open("/proc/%d/stat" % pid) as f:
            return f.read().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


def test_kernel_that_just_died_is_not_given_away(serve):
    """The daemon may not know of its death yet when it hands the kernel out: then another kernel must run the code."""
    d = serve("--pool", "1")
    for _ in range(5):
        assert full(d, 1)
        for pid in d.kernels():
            with contextlib.suppress(ProcessLookupError):  # of the previous round, whose sandbox just ended
                os.kill(pid, signal.SIGKILL)
            assert wait_until(lambda: is_dead(pid))
        r = d.execute("print('served')")
        assert r["stdout"] == "served\n", r


# ---- the zygote --------------------------------------------------------------------------------------------------------


def test_killed_zygote_is_replaced_and_no_request_fails(serve):
    d = serve("--pool", "2")
    old = d.zygote()
    assert old
    answers, over = [], threading.Event()

    def load():
        while not over.is_set():
            answers.append(d.try_execute("print('ok')"))
    load_a, load_b = Later(load), Later(load)
    assert wait_until(lambda: len(answers) > 3)
    os.kill(old, signal.SIGKILL)
    before = len(answers)
    assert wait_until(lambda: len(answers) > before + 20 or load_a.done() or load_b.done())
    over.set()
    load_a.result(), load_b.result()
    bad = [r for r in answers if r.status != 200 or r.json["stdout"] != "ok\n"]
    assert not bad, (len(bad), len(answers), bad[:2])
    assert wait_until(lambda: d.health()["pool"]["zygote"] and d.zygote() not in (None, old)), d.health()
    assert d.metrics()["caisson_zygote_restarts_total"] == 1
    assert d.health()["status"] == "healthy"


def cmdline(pid):
    try:
        return Path("/proc/%d/cmdline" % pid).read_bytes()
    except OSError:
        return b""


@pytest.mark.slow
def test_a_first_one_that_hangs(tmp_path):
    """No request waits for it for longer than some seconds: kernels start cold. When it wakes up it is used."""
    d = Daemon(tmp_path, "--preload", "asyncio,http.server,unittest,xml.dom.minidom,email,ctypes,multiprocessing", wait=False)
    try:
        z, end = None, time.monotonic() + HANG
        while z is None:  # without a pause: it is quick
            assert time.monotonic() < end
            wardens = [w for front in children(d.p.pid) for w in children(front) if name_of(w) == "caisson-warden"]
            z = next((p for w in wardens for p in children(w) if b"zygote" in cmdline(p)), None)
        os.kill(z, signal.SIGSTOP)
        assert not d.log("zygote_ready"), "it was stopped too late for this test"
        assert wait_until(lambda: d.log("listening"))
        assert d.execute("print(6 * 7)")["stdout"] == "42\n"
        assert d.log("zygote_slow") and not d.health()["pool"]["zygote"]
        os.kill(z, signal.SIGCONT)
        assert wait_until(lambda: d.health()["pool"]["zygote"]) and d.zygote() == z
        assert d.metrics()["caisson_zygote_restarts_total"] == 0
    finally:
        d.kill()


def test_killed_zygote_takes_no_session_along(serve):
    """Kernels that it forked live on."""
    d = serve()
    name = unique()
    d.execute(call_yourself("survivor") + "x = 'still here'", session_id=name)
    pid, = d.named("survivor")
    held = Held(d, call_yourself("survivor") + "'done'")
    run = d.begin(held.code, session_id=name, timeout=100)
    assert held.there()
    old = d.zygote()
    os.kill(old, signal.SIGKILL)
    assert wait_until(lambda: d.zygote() not in (None, old))
    held.let_go()
    r = run.result().json
    assert r["status"] == "ok" and r["result"]["text/plain"] == "'done'", r
    d_next = d.execute("x", session_id=name)
    assert d_next["epoch"] == 0 and d_next["result"]["text/plain"] == "'still here'" and d.named("survivor") == [pid], d_next


def test_zygote_that_dies_again_and_again(serve):
    """Kernels start cold meanwhile: slower, never failing."""
    d = serve("--pool", "1")
    for _ in range(3):
        z = wait_until(d.zygote)
        if z:
            os.kill(z, signal.SIGKILL)
        r = d.execute("print('ok')", timeout=30)
        assert r["stdout"] == "ok\n", r
    assert wait_until(lambda: d.health()["pool"]["zygote"]), d.health()


def test_zygote_that_hangs_delays_nothing(serve):
    """A stopped zygote does not answer: requests are served cold within their time."""
    d = serve("--pool", "1")
    z = d.zygote()
    os.kill(z, signal.SIGSTOP)
    try:
        began = time.monotonic()
        for _ in range(3):
            r = d.try_execute("print('ok')")
            assert r.status == 200 and r.json["stdout"] == "ok\n", r
        assert time.monotonic() - began < HANG
    finally:
        try:
            os.kill(z, signal.SIGCONT)
        except ProcessLookupError:
            pass


def test_zygote_that_hangs_while_it_loads_delays_nothing(serve):
    """The previous zygote was killed, and the next one does not finish loading: kernels start cold."""
    d = serve("--pool", "1")
    old = d.zygote()
    os.kill(old, signal.SIGKILL)
    new = wait_until(lambda: (z := d.zygote()) not in (None, old) and z)
    os.kill(new, signal.SIGSTOP)
    for i in range(3):
        assert d.execute("print(%d)" % i)["stdout"] == "%d\n" % i
    os.kill(new, signal.SIGCONT)
    assert wait_until(lambda: d.health()["pool"]["zygote"]), d.health()


def test_zygote_is_not_reachable_from_a_cell(serve):
    d = serve()
    r = d.execute("import subprocess\nprint(subprocess.getoutput('ps -e -o comm= || ls /proc'))")
    assert "caisson-warden" not in r["stdout"] and name_of(d.zygote()), r


# ---- preload --------------------------------------------------------------------------------------------------------------


@needs_numpy
def test_preload_is_there_before_the_import(serve, daemon):
    d = serve("--preload", "numpy")
    r = d.execute("import sys\nprint('numpy' in sys.modules)\nimport numpy\nfloat(numpy.arange(10).sum())")
    assert r["stdout"] == "True\n", r["stdout"]
    assert r["result"]["text/plain"] == "45.0"
    assert daemon.execute("import sys; 'numpy' in sys.modules")["result"]["text/plain"] == "False", "a module is loaded without a request"
    assert "numpy" not in d.execute("sorted(globals())")["result"]["text/plain"], "a preloaded module is a name in the namespace"


def test_preload_of_a_missing_module_is_reported_and_not_fatal(serve):
    d = serve("--preload", "json,no_such_module,csv")
    assert "no_such_module" in d.health()["pool"]["preload_failed"], d.health()
    assert d.health()["status"] == "healthy" and d.health()["pool"]["zygote"]
    assert [e["module"] for e in d.log("preload_failed")] == ["no_such_module"]
    assert d.execute("import sys; 'csv' in sys.modules, 'json' in sys.modules")["result"]["text/plain"] == "(True, True)"


@pytest.mark.parametrize("value", ["os;import x", "a b", "../x", "1x", "-c"])
def test_preload_of_invalid_names(serve, value):
    d = serve("--preload", value, wait=False)
    assert d.end() == 125 and "--preload" in d.log_text() and len(d.log_text().splitlines()) == 1, d.log_text()


def test_preload_that_fails_in_odd_ways(serve, short_dir):
    """Modules of the standard library that print, warn or ask at their import."""
    d = serve("--preload", "this,antigravity,idlelib.idle,turtle")
    assert d.health()["status"] == "healthy"
    r = d.execute("print('mine')")
    assert r["stdout"] == "mine\n" and r["stderr"] == "", "the output of a preload is in a result"


# ---- all at once ----------------------------------------------------------------------------------------------------------


def test_a_hundred_first_calls_at_once(serve):
    d = serve("--pool", "4")
    answers = parallel([(lambda i=i: d.try_execute("print(%d)" % i, timeout=60)) for i in range(100)])
    for i, r in enumerate(answers):
        if r.status == 200:
            assert r.json["stdout"] == "%d\n" % i, r
        else:
            assert r.status == 429 and int(r.headers["retry-after"]) >= 1, r
    assert sum(r.status == 200 for r in answers) >= 50
    assert wait_until(lambda: d.health()["sandboxes"]["live"] == 0)


def test_a_hundred_first_calls_at_once_before_the_first_kernel(serve):
    """Also at a moment when nothing is ready yet."""
    d = serve("--pool", "0", wait=False)
    assert wait_until(lambda: reachable(d))
    answers = parallel([(lambda i=i: d.try_execute("print(%d)" % i, timeout=60)) for i in range(100)])
    assert {r.status for r in answers} <= {200, 429}, [r for r in answers if r.status not in (200, 429)][:3]
    assert all(r.json["stdout"] == "%d\n" % i for i, r in enumerate(answers) if r.status == 200)


def reachable(d):
    assert d.running(), d.log_text()
    try:
        return d.get("/openapi.json").status == 200
    except OSError:
        return False


def test_a_hundred_clients_that_leave_at_once(serve):
    """No client waits for the answers: nothing of them may be left."""
    d = serve("--pool", "2")
    body = b'{"code": "import time; time.sleep(30)", "timeout": 60}'
    request = b"POST /execute HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n" % len(body) + body
    sockets = [d.connect() for _ in range(100)]
    for s in sockets:
        s.sendall(request)
    assert wait_until(lambda: d.health()["sandboxes"]["busy"] >= 5)
    for s in sockets:
        s.close()
    assert wait_until(lambda: d.health()["sandboxes"]["live"] == 0), d.health()
    assert full(d, 1)
    assert wait_until(lambda: len(d.cgroups()) <= 8 * max(1, len(d.dirs)))


def test_memory_and_descriptors_are_steady(serve):
    """After many sandboxes both processes have the same memory and descriptors as before."""
    d = serve("--pool", "1")

    def quiet():
        assert wait_until(lambda: d.health()["pool"]["kernels_ready"] <= 2 and d.health()["pool"]["making"] == 0), d.health()
        return [n for p in (d.pid, d.warden()) for n in (memory_kb(p), len(os.listdir("/proc/%d/fd" % p)))]

    def use(n):
        for _ in range(n):
            assert d.execute("print(1)")["success"]
            time.sleep(0.1)  # not so fast that the pool grows
    use(10)
    before = quiet()
    use(25)
    after = quiet()
    grown = [b - a for a, b in zip(before, after)]
    assert grown[0] < 1024 * SLOW and grown[1] < 20 and grown[2] < 1024 * SLOW and grown[3] < 20, (before, after)
