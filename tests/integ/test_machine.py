# SPDX-License-Identifier: Apache-2.0
"""test_machine.py - Code in a cell sees the machine of the cell: limits exactly, use as it is, and nothing of the host's.

tests/serve/test_machine.py has what holds in the sandboxes of a daemon of root alone: each read shows the use of that moment.
"""
import json
import os
import re
import time

import pytest

from integ_lib import needs_program, run

MIB = 1 << 20
HOST_CPUS = len(os.sched_getaffinity(0))

LOOK = r"""
import json, os, subprocess, time
def text(name): return open('/proc/' + name).read()
def memory(): return {l.split(':')[0]: int(l.split()[1]) for l in text('meminfo').splitlines()}
def out(*argv): return subprocess.run(argv, capture_output=True, text=True).stdout
before = memory()
block = bytearray(%d << 20)
after, end = memory(), time.time() + 20
while %r and after['MemAvailable'] > before['MemAvailable'] - (%d << 9) and time.time() < end:
    time.sleep(0.1); after = memory()
print(json.dumps({'count': os.cpu_count(), 'affinity': len(os.sched_getaffinity(0)), 'nproc': out('nproc'), 'before': before, 'after': after,
                  'stat': text('stat'), 'cpuinfo': text('cpuinfo'), 'loadavg': text('loadavg'), 'uptime': text('uptime'), 'cmdline': text('cmdline'),
                  'boot': time.clock_gettime(time.CLOCK_BOOTTIME), 'start': int(text('self/stat').rsplit(')')[1].split()[19])}))
"""
BLOCK = 64


def look(r):
    assert r.code == 0, r
    return json.loads(r.out)


def check_limits(seen, cpus, memory):
    """@seen: what LOOK printed; the limits of its cell."""
    host = {l.split(":")[0]: int(l.split()[1]) for l in open("/proc/meminfo")}
    n = min(cpus, HOST_CPUS)
    assert (seen["count"], seen["affinity"], int(seen["nproc"])) == (n, n, n), seen
    assert re.findall(r"^(cpu\d*) ", seen["stat"], re.M) == ["cpu", *("cpu%d" % i for i in range(n))], seen["stat"]
    assert re.findall(r"^processor\s*: (\d+)$", seen["cpuinfo"], re.M) == [str(i) for i in range(n)], seen["cpuinfo"]
    assert set(re.findall(r"^model name.*", seen["cpuinfo"], re.M)) <= set(re.findall(r"^model name.*", open("/proc/cpuinfo").read(), re.M))
    before, after = seen["before"], seen["after"]
    assert before["MemTotal"] == after["MemTotal"] == memory >> 10 != host["MemTotal"]
    assert 0 < after["MemFree"] <= after["MemAvailable"] < before["MemAvailable"] <= memory >> 10, (before, after)
    assert before["SwapTotal"] == 0 and seen["cmdline"] == ""


def check_age(seen, began):
    """The age of the cell, in every form, agrees."""
    uptime = float(seen["uptime"].split()[0])
    assert 0 <= uptime <= time.time() - began + 0.1 < float(open("/proc/uptime").read().split()[0]), seen
    assert abs(seen["boot"] - uptime) < 5 and 0 <= seen["start"] / 100 <= uptime + 0.1, seen
    assert began - 2 <= int(re.search(r"btime (\d+)", seen["stat"])[1]) <= time.time() + 1, seen


def linux_at_least(*version):
    return tuple(map(int, re.match(r"(\d+)\.(\d+)", os.uname().release).groups())) >= version


own_clock = pytest.mark.skipif(not linux_at_least(6, 3), reason="before Linux 6.3 a cell has the machine's uptime")


@pytest.mark.parametrize("cpus, seen_cpus", [("1", 1), ("2", 2), ("0.5", 1), ("1.5", 2)])
def test_limits_and_use(cpus, seen_cpus):
    """Read, allocate, and read until it shows: the texts are two seconds old at most."""
    seen = look(run("run", "--cpus", cpus, "--memory", "256M", LOOK % (BLOCK, True, BLOCK)))
    check_limits(seen, seen_cpus, 256 * MIB)
    fell = seen["before"]["MemAvailable"] - seen["after"]["MemAvailable"]
    assert BLOCK << 9 < fell < BLOCK << 11, seen
    # The cell has used a second at most, and has a handful of threads; the machine has more of both.
    used = sum(map(int, re.match(r"cpu +(\d+) 0 (\d+) ", seen["stat"]).groups()))
    assert 0 < used < 6000, seen["stat"]
    assert 1 <= int(seen["loadavg"].split("/")[1].split()[0]) <= 5, seen["loadavg"]


@own_clock
def test_age():
    began = time.time()
    check_age(look(run("run", LOOK % (1, False, 1))), began)


@own_clock
def test_processes_have_their_age():
    """`ps` subtracts the start of a process from the uptime."""
    r = run("exec", "--", "sh", "-c", "sleep 1.2; ps -o etimes= -p $$,1; uptime")
    assert r.code == 0 and [1 <= int(n) < 60 for n in r.out.split()[:2]] == [True, True], r
    assert b" up 0 min" in r.out or b" up 1 min" in r.out, r


def test_programs_that_ask():
    r = run("exec", "--memory", "300M", "--", "free", "-m")
    assert r.code == 0 and r.out.split()[r.out.split().index(b"Mem:") + 1] == b"300", r
    assert r.out.split()[r.out.split().index(b"Swap:") + 1] == b"0", r
    host = open("/proc/loadavg").read().split()[3].split("/")[1]
    assert run("exec", "--", "cat", "/proc/loadavg").out.split()[3].split(b"/")[1] != host.encode()


@needs_program("node", "nodejs")
@pytest.mark.parametrize("cpus", [1, 2])
def test_node(cpus):
    """os.totalmem() and the count of processors come from /proc in node."""
    code = "const os = require('os'); console.log(os.cpus().length, os.totalmem() / 2 ** 20, os.freemem() < os.totalmem(), os.uptime() < 60)"
    r = run("exec", "--cpus", cpus, "--memory", "400M", "--", "node", "-e", code)
    age = b"true" if linux_at_least(6, 3) else b"false"
    assert r.code == 0 and r.out.split() == [b"%d" % min(cpus, HOST_CPUS), b"400", b"true", age], r


def test_full_disk_does_not_matter():
    r = run("run", "--disk", "1M", "--memory", "256M", "try:\n  f = open('/tmp/f', 'wb', 0)\n  while True: f.write(bytes(4096))\nexcept OSError: pass\n"
            "print(open('/proc/meminfo').readline().split()[1], open('/proc/cpuinfo').read().count('processor'), open('/proc/stat').read().count('cpu'))")
    assert r.code == 0 and r.out.split() == [b"262144", b"1", b"2"], r
