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


live = pytest.mark.skipif(os.geteuid() != 0, reason="only root's daemon answers each read; an ordinary user's texts are two seconds old at most")


@live
def test_load_is_that_of_the_sandbox(daemon):
    """Two seconds of work are a load of 0.03 in the first minute; the host's load does not matter."""
    r = daemon.execute("import time\nend = time.process_time() + 2\nwhile time.process_time() < end: pass\n"
                       "print(open('/proc/loadavg').read(), open('/proc/stat').readline())")
    one, five, fifteen = map(float, r["stdout"].split()[:3])
    assert r["success"] and 0.01 <= one <= 0.9 and fifteen <= five <= one, r
    assert 180 <= sum(int(n) for n in re.search(r"cpu +(\d+) 0 (\d+)", r["stdout"]).groups()) < 600, r


@live
def test_an_open_file_shows_what_is_new(daemon):
    """top and its like keep the file open and read it again."""
    r = daemon.execute("import os\nf = os.open('/proc/meminfo', os.O_RDONLY)\n"
                       "def free(): return int(os.pread(f, 4096, 0).split(b'MemFree:')[1].split()[0])\n"
                       "a = free(); x = bytearray(100 << 20); print(a - free())")
    assert r["success"] and 50 << 10 < int(r["stdout"]) < 150 << 10, r


SEALED = r"""
import os, ctypes
libc = ctypes.CDLL(None, use_errno=True)
def tried(what, f):
    try: r = f()
    except OSError as e: return
    if r != -1: print(what)
for name in ('meminfo', 'stat', 'loadavg', 'cpuinfo', 'uptime'):
    p = '/proc/' + name
    for flags in (os.O_WRONLY, os.O_RDWR, os.O_WRONLY | os.O_TRUNC): tried('open ' + p, lambda: os.open(p, flags))
    tried('chmod ' + p, lambda: os.chmod(p, 0o666))
    tried('unlink ' + p, lambda: os.unlink(p))
    tried('truncate ' + p, lambda: os.truncate(p, 0))
    tried('umount ' + p, lambda: libc.umount2(p.encode(), 2))
    tried('execute ' + p, lambda: os.execv(p, [p]))
    tried('again ' + p, lambda: os.open('/proc/self/fd/%d' % os.open(p, os.O_RDONLY), os.O_RDWR))
tried('descriptors of init', lambda: os.listdir('/proc/1/fd'))
for n in range(20): tried('descriptor of init', lambda: os.open('/proc/1/fd/%d' % n, os.O_RDONLY))
print([f for f in os.listdir('/') if f in ('meminfo', 'stat', 'cpuinfo')])
"""


def test_files_are_sealed(daemon):
    r = daemon.execute(SEALED)
    assert r["success"] and r["stdout"] == "[]\n", r


@live
def test_many_readers_at_once(daemon):
    """Readers wait for pid 1, which goes on serving; a cell that ends meanwhile ends."""
    flood = ("import threading\ndef f():\n  while True: open('/proc/stat').read()\n"
             "for _ in range(60): threading.Thread(target=f, daemon=True).start()\n")
    r = daemon.execute(flood + "import time, subprocess; time.sleep(0.5)\n"
                       "for _ in range(3): subprocess.run(['cat', '/proc/meminfo'], capture_output=True, check=True)\nprint('served')")
    assert r["success"] and r["stdout"] == "served\n", r
    r = daemon.execute(flood + "import time; time.sleep(100)", timeout=1)
    assert r["status"] == "timeout" and r["usage"]["wall_ns"] < 20e9, r


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


# Without netlink: IPv4 by ioctl SIOCGIFCONF, IPv6 by /proc.
ADDRESSES = """
import array, fcntl, ipaddress, socket, struct
room = array.array("B", bytes(4096))
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
    used, _ = struct.unpack("iL", fcntl.ioctl(s, 0x8912, struct.pack("iL", len(room), room.buffer_info()[0])))
rows = [bytes(room[i:i + 40]) for i in range(0, used, 40)]
found = [r[:16].rstrip(b"\\0").decode() + " " + socket.inet_ntoa(r[20:24]) for r in rows]
try:
    found += ["%s %s" % (line.split()[5], ipaddress.ip_address(bytes.fromhex(line.split()[0]))) for line in open("/proc/net/if_inet6")]
except FileNotFoundError:
    pass
print(*sorted(found), sep="\\n")
"""
NODE = "const all = Object.entries(os.networkInterfaces()); console.log(all.flatMap(([n, a]) => a.map((x) => n + ' ' + x.address)).sort().join('\\n'))"


@pytest.mark.skipif(not shutil.which("node"), reason="no node here")
def test_node_lists_the_addresses_of_the_cell(daemon):
    """As the Linux kernel does: in a kernel, in commands of each kind, in modules, and in a thread."""
    with Box(daemon) as box:
        want = daemon.execute(ADDRESSES, session_id=box.name)["stdout"]
        assert "lo 127.0.0.1" in want.splitlines(), want
        assert daemon.execute("const os = require('os'); " + NODE, session_id=box.name, language="javascript")["stdout"] == want
        assert daemon.execute("import subprocess\nprint(subprocess.run(['node', '-e', %r], stdout=subprocess.PIPE, text=True).stdout, end='')" % NODE,
                              session_id=box.name)["stdout"] == want
        assert box.exec("node", "--input-type=module", "-e", "import os from 'node:os'; " + NODE)["stdout"] == want
        named = "import { networkInterfaces as f } from 'os'; const os = { networkInterfaces: f }; "
        assert box.exec("node", "--input-type=module", "-e", named + NODE)["stdout"] == want
        thread = "new (require('worker_threads').Worker)(%s, { eval: true })" % json.dumps("const os = require('os'); " + NODE)
        assert box.exec("node", "-e", thread)["stdout"] == want
