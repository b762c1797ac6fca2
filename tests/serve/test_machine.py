# SPDX-License-Identifier: Apache-2.0
"""test_machine.py - Code sees the machine of its sandbox: the limits and the use of it, in kernels and in commands.

tests/integ/test_machine.py has the details; here are kernels that were forked before the request came, and other limits than the daemon's.
"""
import json
import os
import re
import shutil
import time

import pytest

from box_lib import Box
from process import unique

HOST_CPUS = len(os.sched_getaffinity(0))
LOOK = ("import os, re, json, time\n"
        "memory = lambda: {l.split(':')[0]: int(l.split()[1]) for l in open('/proc/meminfo')}\n"
        "a = memory(); x = bytearray(80 << 20); b = memory(); del x\n"
        "print(json.dumps([os.cpu_count(), len(os.sched_getaffinity(0)), open('/proc/cpuinfo').read().count('processor\\t'), b['MemTotal'],\n"
        "                  a['MemAvailable'] - b['MemAvailable'], time.clock_gettime(time.CLOCK_BOOTTIME), float(open('/proc/uptime').read().split()[0]),\n"
        "                  os.stat('/proc/self/ns/time').st_ino, int(os.popen('nproc').read()), float(os.popen('cat /proc/uptime').read().split()[0])]))\n")


def seen(r):
    """The (processors, memory) that LOOK printed, after its other numbers were checked."""
    assert r["success"], r
    count, affinity, listed, total, fell, boot, uptime, space, nproc, later = json.loads(r["stdout"])
    assert 40 << 10 < fell < 160 << 10 and boot <= uptime + 0.1 <= later + 1, r["stdout"]
    own = tuple(map(int, re.match(r"(\d+)\.(\d+)", os.uname().release).groups())) >= (6, 3)
    assert not own or (uptime < time.clock_gettime(time.CLOCK_BOOTTIME) - 1 and space != os.stat("/proc/self/ns/time").st_ino), r["stdout"]
    assert count == affinity == listed == nproc, r["stdout"]
    return count, total


def test_kernel_of_the_pool(daemon):
    """Forked from a zygote that sees the whole machine."""
    assert seen(daemon.execute(LOOK)) == (1, 512 << 10)


@pytest.mark.parametrize("cpus, memory", [(1, 256), (2, 300)])
def test_limits_of_a_sandbox(daemon, cpus, memory):
    if cpus > HOST_CPUS:
        pytest.skip("the machine has %d processors" % HOST_CPUS)
    with Box(daemon, cpus=cpus, memory_mib=memory) as box:
        want = (cpus, memory << 10)
        assert seen(daemon.execute(LOOK, session_id=box.name)) == want
        r = box.exec("python3", "-c", LOOK)
        assert seen({"success": r["exit_code"] == 0, **r}) == want
        assert box.shell("nproc; free -m | awk '/Mem:/ {print $2}'; cat /proc/cmdline")["stdout"] == "%d\n%d\n" % (cpus, memory)


@pytest.mark.skipif(HOST_CPUS < 2, reason="the machine has one processor")
def test_sandboxes_are_spread(daemon):
    """Kernels that were made one after the other are on different processors."""
    code = "import os; print(*os.sched_getaffinity(0))"
    assert len({daemon.execute(code)["stdout"] for _ in range(8)}) > 1


@pytest.mark.skipif(not shutil.which("make"), reason="no make here (apt-get install make)")
def test_pools_have_the_size_of_the_sandbox(daemon):
    """Process pools, and make -j."""
    code = ("import concurrent.futures as f, multiprocessing as m, subprocess\n"
            "print(m.cpu_count(), f.ProcessPoolExecutor()._max_workers, m.Pool()._processes)\n"
            "print(subprocess.run('printf \"a:\\n\\t@echo \\$(MAKEFLAGS)\\n\" | make -f - -j$(nproc)', shell=True, capture_output=True, text=True).stdout)")
    name = unique()
    out = daemon.execute(code, session_id=name)["stdout"].split("\n")
    daemon.end_session(name)
    assert out[0] == "1 1 1" and ("-j" not in out[1] or "-j1" in out[1]), out
