# SPDX-License-Identifier: Apache-2.0
"""test_python_process.py - The Python kernel as a process: forks, interrupts, the warm process, speed."""
import os
import signal
import statistics
import subprocess
import sys
import time

import pytest
from kernel_lib import GUEST
from python_lib import PYTHON, code, ok, trace


# --- forks

def test_forked_processes_have_no_channel(kernel):
    r = ok(kernel.run(code("""
        import os, sys
        pid = os.fork()
        if pid == 0:
            display("from the child"); print("child")
            try: input()
            except EOFError: print("no input")
            sys.exit(7)
        os.WEXITSTATUS(os.waitpid(pid, 0)[1])
    """)))
    assert r.text == "7" and r.stdout == "child\nno input\n" and r.displays == []


def test_fork_that_falls_off_the_end_is_not_a_second_kernel(kernel):
    r = ok(kernel.run("import os\npid = os.fork()\nif pid: os.waitpid(pid, 0)\nelse: print('child')\n'value'"))
    assert r.text == "'value'" and r.stdout == "child\n"
    r = ok(kernel.run("pid = os.fork()\nif pid: os.waitpid(pid, 0)\nelse: 1/0"))
    assert "ZeroDivisionError" in r.stderr and "caisson" not in r.stderr
    r = ok(kernel.run("import asyncio\nawait asyncio.sleep(0)\npid = os.fork()\nif pid: os.waitpid(pid, 0)\n'async'"))
    assert r.text == "'async'"
    assert ok(kernel.run("1")).text == "1"


def test_subprocess_keeps_default_sigint(shared_kernel):
    r = ok(shared_kernel.run(code("""
        import subprocess, signal
        p = subprocess.Popen(["sleep", "10"]); p.send_signal(signal.SIGINT); p.wait()
    """)))
    assert r.text == "-2"


# --- interrupts

@pytest.mark.parametrize("text", [
    "import time; print('go')\ntime.sleep(30)",
    "print('go')\nwhile True: pass",
    "import asyncio; print('go')\nawait asyncio.sleep(30)",
    "import asyncio; print('go')\nawait asyncio.sleep(0)\nwhile True: pass",
    "import asyncio; print('go')\nasyncio.run(asyncio.sleep(30))",
    "import asyncio; await asyncio.sleep(0); print('go')\nasyncio.run(asyncio.sleep(30))",
    "import asyncio; print('go')\nasyncio.get_event_loop().run_until_complete(asyncio.sleep(30))",
    "import subprocess; print('go')\nsubprocess.run(['sleep', '30'])",
    "import threading; print('go')\nthreading.Event().wait()",
    "import queue; print('go')\nqueue.Queue().get()",
    "class S:\n    def __repr__(self):\n        print('go')\n        while True: pass\nS()",
    "class E(Exception):\n    def __str__(self):\n        print('go')\n        while True: pass\nraise E",
], ids=["sleep", "busy", "await", "busy-await", "asyncio.run", "nested-run", "run_until_complete", "subprocess", "event",
        "queue", "repr", "str"])
def test_interrupt(shared_kernel, text):
    ok(shared_kernel.run("x = 5"))
    shared_kernel.start(text)
    shared_kernel.wait_stdout("go")
    time.sleep(0.02)
    shared_kernel.interrupt()
    r = shared_kernel.finish()
    if "__str__" in text:  # the execution had failed already
        assert (r.status, r.error["name"]) == ("error", "E")
    else:
        assert (r.status, r.exit_code, r.error["name"]) == ("interrupted", 130, "KeyboardInterrupt")
        assert "caisson" not in trace(r) and "<execution-%d>" % shared_kernel.count in trace(r)
    assert ok(shared_kernel.run("x")).text == "5"


def test_interrupt_of_input_and_late_answer(shared_kernel):
    shared_kernel.start("input('?')")
    m = shared_kernel.message()
    shared_kernel.interrupt()
    assert shared_kernel.finish().status == "interrupted"
    shared_kernel.send({"type": "input_response", "id": m["id"], "value": "late"})
    assert ok(shared_kernel.run("input('again')", ["right"])).text == "'right'"


def test_interrupt_of_a_display_that_is_not_acknowledged(kernel):
    kernel.start("display(1)")
    assert kernel.message()["type"] == "display"
    kernel.interrupt()
    assert kernel.finish().status == "interrupted"
    kernel.send({"type": "ack"})  # late: belongs to the first display
    kernel.start("display(2)\nprint('after')")
    assert kernel.message()["type"] == "display"
    time.sleep(0.05)
    kernel._pump(0)
    assert not kernel.queue and not kernel.fds[kernel.out], "the late ack was taken for this display"
    kernel.send({"type": "ack"})
    assert ok(kernel.finish()).stdout == "after\n"


def test_interrupt_runs_finally_of_coroutines(shared_kernel):
    shared_kernel.start(code("""
        import asyncio
        try:
            print("go")
            await asyncio.sleep(30)
        finally:
            await asyncio.sleep(0.001)
            print("cleaned up")
    """))
    shared_kernel.wait_stdout("go")
    time.sleep(0.02)
    shared_kernel.interrupt()
    r = shared_kernel.finish()
    assert r.status == "interrupted" and "cleaned up" in r.stdout


def test_interrupt_that_is_caught(shared_kernel):
    shared_kernel.start(code("""
        import time
        try:
            print("go")
            time.sleep(30)
        except KeyboardInterrupt:
            print("caught")
        "on"
    """))
    shared_kernel.wait_stdout("go")
    shared_kernel.interrupt()
    r = ok(shared_kernel.finish())
    assert r.text == "'on'" and "caught" in r.stdout


def test_interrupt_while_idle_is_ignored(kernel):
    for _ in range(20):
        kernel.interrupt()
    assert ok(kernel.run("1 + 1")).text == "2"
    ok(kernel.run(code("""
        import asyncio
        async def tick():
            while True: await asyncio.sleep(0.0001)
        t = asyncio.create_task(tick())
    """)))
    for _ in range(50):
        kernel.interrupt()
        time.sleep(0.0005)
    assert ok(kernel.run("t.done()")).text == "False"


def test_interrupt_after_user_code_took_the_signal(kernel):
    ok(kernel.run("import signal; old = signal.signal(signal.SIGINT, signal.SIG_IGN)"))
    kernel.start("import time; print('go')\ntime.sleep(30)")
    kernel.wait_stdout("go")
    kernel.interrupt()
    assert kernel.finish().status == "interrupted"
    ok(kernel.run("signal.signal(signal.SIGINT, signal.default_int_handler)"))
    kernel.interrupt()
    assert ok(kernel.run("1")).text == "1"


def test_storm_of_interrupts_around_short_executions(kernel):
    """At every moment of an execution: one outcome each, no kernel lost, and nothing left for the next one."""
    statuses = set()
    for i in range(300):
        kernel.start("import asyncio\nawait asyncio.sleep(0)\ndisplay(1)\n%d" % i if i % 2 else "x = %d\nx" % i)
        time.sleep((i % 30) * 0.00001)
        kernel.interrupt()
        r = kernel.finish()
        statuses.add(r.status)
        assert (r.status == "ok") == (r.error is None)
        if i % 10 == 0:
            assert ok(kernel.run("'calm'")).text == "'calm'"
    assert statuses <= {"ok", "interrupted"} and "ok" in statuses
    assert ok(kernel.run("1 + 1")).text == "2"


def test_interrupt_while_the_loop_is_made(kernel):
    """The first `await` makes the event loop, in which the kernel then waits for the next message: the kernel must receive it."""
    ok(kernel.run(code("""
        import asyncio, os, signal
        make = asyncio.new_event_loop
        def interrupted():
            loop = make()
            add = loop.add_reader
            def add_reader(*args):
                os.kill(os.getpid(), signal.SIGINT)
                return add(*args)
            loop.add_reader = add_reader
            return loop
        asyncio.new_event_loop = interrupted
    """)))
    assert kernel.run("await asyncio.sleep(0)").status == "interrupted"
    assert ok(kernel.run("await asyncio.sleep(0, 7)")).text == "7"


def test_signal_handlers_of_the_users_own_between_executions(kernel):
    ok(kernel.run(code("""
        import signal
        def late(*_): raise TimeoutError("late")
        signal.signal(signal.SIGALRM, late)
        signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
    """)))
    time.sleep(0.05)
    r = None
    for _ in range(20):
        r = kernel.run("signal.setitimer(signal.ITIMER_REAL, 0)")
    assert ok(r) and ok(kernel.run("1 + 1")).text == "2"


# --- the warm process

def test_prepare_and_fork(start_python):
    """As the zygote does it: prepare once, fork, main() in the child."""
    program = code("""
        import os, sys
        sys.path.insert(0, %r)
        from caisson_kernel import kernel, reseed
        failed = kernel.prepare(["json", "no_such_module_here"], warm=True)
        assert [name for name, _ in failed] == ["no_such_module_here"], failed
        assert "ModuleNotFoundError" in failed[0][1]
        before = set(sys.modules)
        pid = os.fork()
        if pid == 0:
            reseed.after_fork()
            sys._before = before
            kernel.main()
        os.close(3); os.close(4)
        os.waitpid(pid, 0)
    """) % str(GUEST / "python")
    k = start_python(["-c", program])
    assert ok(k.run("1 + 1")).text == "2"
    assert ok(k.run("import sys; sorted(set(sys.modules) - sys._before)")).text == "[]"
    assert "caisson" not in trace(k.run("1/0"))
    k.start("import time; print('go')\ntime.sleep(30)")
    k.wait_stdout("go")
    os.kill(k.ready["pid"], signal.SIGINT)
    assert k.finish().status == "interrupted"


SERVE = """
import ctypes, os, sys
sys.path[:0] = %r
from caisson_kernel import zygote
libc = ctypes.PyDLL(None)
class Enter:  # enter.so without cells
    def caisson_serve(self, warden, fork):
        for _ in range(2):
            pid = libc.fork()
            if pid == 0:
                return
            os.waitpid(pid, 0)
        os._exit(0)
ctypes.PyDLL = lambda path: Enter()
assert zygote.prepare(["hooked"]) == []
zygote.serve("")
import hooked, logging, threading
assert threading.active_count() == 1 and threading.current_thread() is threading.main_thread()
thread = threading.Thread(target=hooked.seen.append, args=("thread",))
thread.start()
thread.join()
logging.getLogger().addHandler(logging.NullHandler())
if os.fork() == 0:
    hooked.seen.append("fork of the kernel")
    print(hooked.seen)
    sys.exit()
os.wait()
print(hooked.seen)
"""


@pytest.mark.parametrize("hooked, before", [
    ("", []),
    ("os.register_at_fork(after_in_child=lambda: seen.append('after'))", ["after"]),
    ("os.register_at_fork(after_in_child=lambda: seen.append('after'))\nos.register_at_fork(before=lambda: seen.append('before'))",
     ["before", "after"]),
    ("import threading, time\nthreading.Thread(target=time.sleep, args=(99,), daemon=True).start()", []),
], ids=["nothing", "after", "before", "thread"])
def test_modules_of_the_warm_process_know_that_it_forks(tmp_path, hooked, before):
    """Functions of os.register_at_fork() run in each kernel, threads are gone, and all of it holds for forks by user code."""
    (tmp_path / "hooked.py").write_text("import os\nseen = []\n" + hooked)
    r = subprocess.run([PYTHON, "-I", "-B", "-c", SERVE % [str(GUEST / "python"), str(tmp_path)]], stdout=subprocess.PIPE,
                       stderr=subprocess.PIPE, text=True, timeout=60)
    kernel = [*before, "thread"]
    forked = [*kernel, *before, "fork of the kernel"]
    parent = kernel + [b for b in before if b == "before"]
    assert (r.stderr, r.stdout) == ("", "%r\n%r\n" % (forked, parent) * 2)


DRAWS = """
import random, uuid, tempfile, secrets, os, sys, multiprocessing, ssl
try:
    import numpy
except ImportError:
    numpy = None
uuid.uuid1(); random.random(); next(tempfile._get_candidate_names()); ssl.RAND_bytes(8)
sys.path.insert(0, %r)
from caisson_kernel import reseed
def draw():
    out = [random.random(), random.getrandbits(64), uuid.uuid1().node, uuid.uuid4().hex, next(tempfile._get_candidate_names()),
           secrets.token_hex(8), multiprocessing.current_process().authkey.hex(), ssl.RAND_bytes(16).hex(),
           random.Random().random()]
    if numpy is not None:
        out += [numpy.random.rand(), int(numpy.random.randint(1 << 60)), numpy.random.default_rng().random()]
    return out
for i in range(4):
    if os.fork() == 0:
        os.getpid = lambda: 7  # as in pid namespaces of their own
        failed = reseed.after_fork()
        assert not failed, failed
        os.write(1, (repr(draw()) + "\\n").encode())
        os._exit(0)
for i in range(4): os.wait()
os.write(1, (repr(draw()) + "\\n").encode())
"""


def test_no_two_forks_share_a_random_stream():
    r = subprocess.run([PYTHON, "-I", "-c", DRAWS % str(GUEST / "python")], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                       text=True)
    assert r.stderr == "" and r.returncode == 0
    rows = [eval(line) for line in r.stdout.splitlines()]
    assert len(rows) == 5
    for values in zip(*rows):
        assert len(set(values)) == 5, values


# --- speed

def test_warm_round_trip(kernel, capsys):
    line = b'{"type":"execute","id":"%032x","code":"1+1","name":"<execution>"}\n'
    os.set_blocking(kernel.to, True)
    os.set_blocking(kernel.control, True)
    times = []
    with os.fdopen(os.dup(kernel.control), "rb") as answers:
        for i in range(1000):
            begin = time.perf_counter()
            os.write(kernel.to, line % i)
            assert b'"2"' in answers.readline() and b'"ok"' in answers.readline()
            times.append(time.perf_counter() - begin)
    os.set_blocking(kernel.control, False)
    median_us = statistics.median(times) * 1e6
    with capsys.disabled():
        print("\nwarm 1+1: median %.0f us, best %.0f us" % (median_us, min(times) * 1e6), file=sys.stderr)
    # For readers. A wait for a timer, or a poll, would make all of them slow: that is a failure.
    assert min(times) * 1e6 < 5000
