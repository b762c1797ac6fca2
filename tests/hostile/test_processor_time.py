# SPDX-License-Identifier: Apache-2.0
"""test_processor_time.py - Processor time, endings that are refused, and rarer nuisances."""
import os
import re
import resource
import time
from pathlib import Path

import pytest
from lib import (Neighbour, SLACK, at_most, cell, check_limit, check_wall, control, landed, payload, session,
                 start)

MIB = 1 << 20
TICK = os.sysconf("SC_CLK_TCK")
quick = pytest.mark.quick
slow = pytest.mark.slow


# ---- processors -----------------------------------------------------------------------------

def cpu_seconds(pids):
    """User and system time of processes, as the host's /proc has it."""
    total = 0.0
    for pid in pids:
        try:
            words = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
        except OSError:
            continue
        total += (int(words[11]) + int(words[12])) / TICK
    return total


@pytest.mark.parametrize("cpus", [pytest.param(0.2, marks=quick), pytest.param(0.5, marks=slow)])
def test_cpu_quota(cpus, stopped_by):
    """Four busy threads get the share of the quota, by the host's own clocks."""
    for _ in range(5):  # a machine that others keep busy may not have that much to give at once
        c = control([payload("busy"), "spin", "4"], timeout=0.6)
        if c.cpu_ns / 1e9 > 1.3 * cpus * c.seconds:
            break
    landed(c.timed_out and c.cpu_ns / 1e9 > 1.3 * cpus * c.seconds, c)

    run = start(["spin", "4"], payload="busy", cpus=cpus, timeout="1.6s")
    guests = run.until_running()
    t0, c0 = time.monotonic(), cpu_seconds(guests)
    time.sleep(1.2)
    t1, c1 = time.monotonic(), cpu_seconds(guests)
    r = run.finish()
    used = (c1 - c0) / (t1 - t0)
    # 5 per cent, one period's quota at the edge of the window, and the ticks of /proc
    assert used <= cpus * 1.05 + 0.1 * cpus / 1.2 + 2 / TICK, f"used {used:.3f} of {cpus} processors"
    wall = r.usage["wall_ns"] / 1e9
    assert r.usage["cpu_ns"] / 1e9 <= cpus * (wall + 0.1) * 1.05 + 0.05, r
    assert r.usage["throttled_ns"] > 0, r
    check_wall(r, 1.6)
    stopped_by("cpu cgroup quota")


@quick
def test_spinning_beside_neighbours(stopped_by):
    """A cell that spins on every processor it can get leaves the others theirs."""
    landed(control([payload("busy"), "spin", "4"], timeout=0.5, begun=lambda p, g: g.cpu_ns() > 0.1e9).cpu_ns > 0.1e9, "spin")
    n = Neighbour()
    run = start(["spin", "8"], payload="busy", timeout=30)
    run.until_running()
    time.sleep(1)
    r = n.beside(run)
    # The quota is for periods of 100 ms, and its first and its last one may not be whole.
    assert r.exit == 128 + 15 and r.usage["cpu_ns"] <= 1.1 * r.usage["wall_ns"] + 2e8, r
    stopped_by("cpu cgroup quota")


@pytest.mark.parametrize("threads", [pytest.param(1, marks=slow), pytest.param(4, marks=quick)])
def test_cpu_time_limit(threads, stopped_by):
    """--cpu-time counts all threads of all processes and ends the cell when it is used up."""
    landed(control([payload("busy"), "spin", "4"], timeout=0.7, begun=lambda p, g: g.cpu_ns() > 0.2e9).cpu_ns > 0.2e9, "spin")
    r = cell(["spin", str(threads)], payload="busy", cpu_time="400ms", cpus=2, timeout=10)
    hint = check_limit(r, "limit", "cpu", 124, limit=400, peak=(400, 400 + 1000 * at_most(SLACK)))
    assert "--cpu-time" in hint, r
    assert r.usage["wall_ns"] < 1e9 * at_most(5), r
    stopped_by("cpu accounting of the cell's cgroup, checked by the warden")


@quick
def test_scheduler_requests(stopped_by):
    """Real-time, deadline and negative nice are refused; giving up priority is fine."""
    c = control([payload("busy"), "sched"], uid=0)
    allowed = {line.split()[0] for line in c.stdout.decode().splitlines() if line.endswith(" OK")}
    landed("nice" in allowed, f"root itself may not: {c}")
    for name in {"fifo", "rr", "deadline"} - allowed:
        print(f"no positive control for {name}: this kernel or cgroup refuses it to root as well")

    r = cell(["sched"], payload="busy")
    got = dict(line.split() for line in r.text.splitlines())
    for name in ("fifo", "rr", "deadline", "nice"):
        assert got[name] in ("EPERM", "EACCES"), f"{name}: {got}"
    assert got["idle"] == "OK", got
    stopped_by("no CAP_SYS_NICE in the host's user namespace", second="RLIMIT_RTPRIO and RLIMIT_NICE 0")


@quick
def test_priority_from_outside(stopped_by):
    """The host sees the guest under an ordinary policy and nice value, whatever it asked for."""
    code = """
import os, time
for policy in (os.SCHED_FIFO, os.SCHED_RR):
    try:
        os.sched_setscheduler(0, policy, os.sched_param(1))
    except OSError:
        pass
for f in (lambda: os.nice(-20), lambda: os.setpriority(os.PRIO_USER, 0, -20)):
    try:
        f()
    except OSError:
        pass
time.sleep(20)
"""
    c = control(["/usr/bin/python3", "-c", "import os; os.nice(-20)"], uid=0)
    landed(c.exit == 0, c)
    run = start(code=code)
    guests = run.until_running()
    time.sleep(0.3)
    for pid in guests:
        assert os.sched_getscheduler(pid) == os.SCHED_OTHER
        assert os.getpriority(os.PRIO_PROCESS, pid) >= 0
    run.signal(15)
    run.finish()
    stopped_by("no CAP_SYS_NICE", second="RLIMIT_RTPRIO and RLIMIT_NICE 0")


# ---- timers and signals ---------------------------------------------------------------------

@quick
def test_queued_signals(stopped_by):
    c = control([payload("busy"), "sigqueue"])
    landed(int(c.stdout.split()[0]) > 4096, c)
    r = cell(["sigqueue"], payload="busy")
    n, why = r.text.split()
    assert r.status == "ok" and why == "EAGAIN" and int(n) <= 1024, r
    stopped_by("RLIMIT_SIGPENDING")


@slow
def test_timer_storm(stopped_by):
    c = control([payload("busy"), "timers"], timeout=2.0)
    landed(c.stdout and int(c.stdout.split()[0]) > 4096, c)
    n = Neighbour()
    run = start(["timers"], payload="busy", timeout=30)
    run.until_running()
    r = n.beside(run, factor=2.5)
    made, why = r.text.split()
    assert why == "EAGAIN" and int(made) <= 1024, r
    check_wall(cell(["timers"], payload="busy", timeout="500ms"), 0.5, load=1.0)
    stopped_by("RLIMIT_SIGPENDING, which counts timers; cpu cgroup")


# ---- not ending -----------------------------------------------------------------------

@quick
@pytest.mark.parametrize("mode", ["sleep", "stop", "vfork"])
def test_sleeps_for_ever(mode, stopped_by):
    c = control([payload("busy"), mode], timeout=0.7)
    landed(c.timed_out, c)
    r = cell([mode], payload="busy", timeout="400ms")
    check_wall(r, 0.4)
    stopped_by("wall clock; SIGKILL to pid 1 ends the pid namespace")


@quick
@pytest.mark.parametrize("mode", ["deaf", "handlers"])
def test_ignores_every_signal(mode, stopped_by):
    c = control([payload("busy"), mode], timeout=0.7)
    landed(c.timed_out, c)
    r = cell([mode], payload="busy", timeout="400ms")
    check_wall(r, 0.4)
    stopped_by("wall clock; SIGKILL cannot be caught")


@slow
def test_ignores_the_end_of_cpu_time(stopped_by):
    code = """
import signal
for s in (signal.SIGXCPU, signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGALRM, signal.SIGPROF):
    signal.signal(s, signal.SIG_IGN)
signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
while True:
    pass
"""
    # SIGXCPU from a soft RLIMIT_CPU does not end it on the host.
    c = control(["/bin/bash", "-c", 'ulimit -St 1; exec /usr/bin/python3 -c "$1"', "x", code], timeout=1.8)
    landed(c.timed_out, c)
    r = cell(code=code, cpu_time="300ms", timeout=10)
    check_limit(r, "limit", "cpu", 124, limit=300, peak=(300, 300 + 1000 * at_most(SLACK)))
    stopped_by("cpu accounting of the cgroup; SIGKILL")


@quick
def test_timeout_is_exact(stopped_by):
    """Ten runs with a busy machine around them: the deadline is met each time."""
    landed(control([payload("busy"), "sleep"], timeout=0.5).timed_out, "sleep")
    late = []
    runs = [start(["spin", "2"], payload="busy", cpus=0.2, timeout="700ms") for _ in range(10)]
    for run in runs:
        r = run.finish()
        check_limit(r, "timeout", "wall", 124, limit=700)
        late.append(r.usage["wall_ns"] / 1e9 - 0.7)
    assert min(late) >= 0 and max(late) <= at_most(2 * SLACK), f"late by {max(late) * 1000:.0f} ms"
    stopped_by("wall clock")


# ----  ---------------------------------------------------------------------------------

@quick
def test_large_arguments(stopped_by):
    """Up to the limit of the Linux kernel, every byte arrives; nothing is cut."""
    pieces = [chr(97 + i) * 65536 for i in range(14)]
    c = control([payload("odd_requests"), "args", *pieces])
    landed(c.exit == 0 and c.stdout.split()[2] == b"65536", c)
    r = cell(["args", *pieces], payload="odd_requests")
    n, size, longest = map(int, r.stdout.split())
    assert r.status == "ok" and longest == 65536 and size > 14 * 65537 and n >= 16, r
    r = cell(["args", "x" * 131071], payload="odd_requests")   # MAX_ARG_STRLEN with its NUL
    assert r.status == "ok" and int(r.stdout.split()[2]) == 131071, r
    r = cell(["args"], payload="odd_requests", env={f"K{i}": "v" * 65536 for i in range(8)})
    assert r.status == "ok" and int(r.stdout.split()[1]) > 8 * 65536, r
    stopped_by("nothing to stop: all of it arrives")


@quick
def test_too_large_arguments_are_refused(stopped_by):
    """More than the command may have: one clear failure, no truncated run."""
    code = "import os, sys\nos.execv('/bin/true', ['true'] + ['x' * 65536] * 40)"
    c = control(["/usr/bin/python3", "-c", code])
    landed(c.exit != 0 and b"Argument list too long" in c.stderr, c)
    r = cell(code=code)
    assert r.status == "error" and b"Argument list too long" in r.stderr, r
    # The outer exec takes it, and with the cell's own environment it is too much for the inner one.
    args = ["x" * 100000] * 20 + ["y" * 60000]
    limit = resource.getrlimit(resource.RLIMIT_STACK)[0] // 4
    room = limit - sum(len(a) + 9 for a in args) - 4096
    r = cell(["args", *args, "z" * max(0, min(room, 131071))], payload="odd_requests")
    if r.status == "ok":
        assert int(r.stdout.split()[1]) >= sum(len(a) + 1 for a in args), f"arguments were cut: {r}"
    else:
        assert r.status == "failed" and r.exit in (125, 126) and r["error"]["message"], r
    stopped_by("the kernel's own limit, reported")


@quick
def test_script_of_a_megabyte(stopped_by):
    """Code longer than one argument can be travels as a file, whole."""
    code = "x = '''" + "a" * (1 << 20) + "'''\nprint(len(x))\n"
    c = control(["/usr/bin/python3", "-"], stdin=code.encode())
    landed(c.stdout == b"1048576\n", c)
    from lib import CAISSON, Running
    r = Running([CAISSON, "run", "--json", "-"], True, stdin=code.encode()).finish()
    assert r.status == "ok" and r.stdout == b"1048576\n", r
    stopped_by("nothing to stop: all of it arrives")


@quick
def test_stack_overflow(stopped_by, tmp_path):
    """SIGSEGV, reported as such; no core file, not even in a writable mount of the host."""
    pattern = Path("/proc/sys/kernel/core_pattern").read_text().strip()
    where = session().dir / "core-test"
    where.mkdir()
    where.chmod(0o777)
    try:
        c = control(["/bin/bash", "-c", 'ulimit -c unlimited; exec "$1" stack', "x", str(payload("odd_requests"))],
                    cwd=where)
        landed(c.exit == 128 + 11 or c.exit == -11, c)
        if pattern == "core":
            landed(list(where.glob("core*")), f"no core on the host: {c}")
        else:
            print(f"no positive control for the core file: core_pattern is {pattern!r}")
        for f in where.glob("core*"):
            f.unlink()
        r = cell(["stack"], payload="odd_requests", mount=[f"{where}:/data:rw"], workdir="/data")
        assert r.status == "signal" and r.kind == "signal" and r["signal"] == "SEGV", r
        assert r.exit == 139, r
        assert "recursion" in r.cause["hint"], r
        assert list(where.iterdir()) == [], "a core file was left"
    finally:
        for f in where.iterdir():
            f.unlink()
        where.rmdir()
    stopped_by("RLIMIT_CORE 0")


@quick
def test_exit_code_and_signal(stopped_by):
    """exit_code is caisson's own exit code; signal names the signal that ended the program, if one did."""
    code = "import os, sys\nif len(sys.argv) > 1: os.kill(os.getpid(), 9)\nsys.exit(137)"
    landed(control(["/usr/bin/python3", "-c", code, "x"]).exit == 137, code)
    r = cell(code=code)   # looks the same to a shell, and is not
    assert (r.status, r["signal"], r["exit_code"], r.exit, r.kind) == ("error", None, 137, 137, None), r
    r = cell(["x"], code=code)
    assert (r.status, r["signal"], r["exit_code"], r.exit, r.kind) == ("signal", "KILL", 137, 137, "signal"), r
    stopped_by("nothing to stop: wait() tells them apart")


@quick
def test_locked_and_huge_memory(stopped_by):
    c = control([payload("odd_requests"), "mlock"], uid=0)
    landed(b"mlock OK" in c.stdout and b"locked-map OK" in c.stdout, c)
    r = cell(["mlock"], payload="odd_requests")
    got = dict(line.split() for line in r.text.splitlines())
    assert got["mlock"] in ("ENOMEM", "EPERM") and got["locked-map"] in ("EAGAIN", "ENOMEM"), got
    assert got["mlockall"] in ("ENOMEM", "EPERM"), got

    c = cell(["huge"], payload="odd_requests", without="seccomp")
    landed("memfd OK" in c.text, c)
    r = cell(["huge"], payload="odd_requests")
    assert dict(line.split() for line in r.text.splitlines()) == {"mmap": "ENOMEM", "memfd": "EINVAL", "shmget": "ENOMEM"}, r
    stopped_by("RLIMIT_MEMLOCK", second="seccomp for huge pages")


@quick
def test_entropy(stopped_by):
    """Reading randomness neither blocks nor costs the host anything."""
    c = control([payload("odd_requests"), "random"])
    landed(int(c.stdout) > 4 * MIB, c)
    r = cell(["random"], payload="odd_requests", timeout=10)
    assert r.status == "ok" and int(r.stdout) > 4 * MIB, r
    avail = int(re.sub(r"\D", "", Path("/proc/sys/kernel/random/entropy_avail").read_text()))
    assert avail >= 128, f"entropy_avail {avail}"
    stopped_by("nothing to stop: the kernel's generator does not run dry")
