# SPDX-License-Identifier: Apache-2.0
"""test_j_images.py - K129 and hostile images: an image's own python is its zygote, and may do what it likes with that.

Whatever it does, sandboxes of other images go on, none of them waits for it, and nothing of it is left. Judged from
outside: by other sandboxes' answers, by what runs, and by the store's files.
"""
import contextlib
import hashlib
import http.client
import os
import shutil
import signal
import sys
import tempfile
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "serve"))
sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "integ"))

from daemon_lib import Daemon, Later  # noqa: E402
from layers_lib import SMALL, Store, programs_layer, python_layer  # noqa: E402
from lib import at_most, landed, session  # noqa: E402
from lib_e import children, status, until  # noqa: E402
from snapshot import stat_of  # noqa: E402

quick = pytest.mark.quick
GOOD = "docker.io/library/good:1"
TEST_SECONDS = 240
SWITCH = """#!/bin/sh
export PYTHONHOME=/usr
case "$*" in
*zygote*) exec /opt/python /evil.py ;;
*) exec /opt/python "$@" ;;
esac
"""
PRELUDE = """
import json, os, socket, struct, sys, time
warden, status = socket.socket(fileno=3), socket.socket(fileno=4)
def ready(): status.recv(65536); status.send(json.dumps({"version": "3.11.0", "failed": []}).encode())
"""
ATTACKS = {
    "garbage": "status.send(b'\\xff' * 4000)\ntime.sleep(1000)",
    "flood": "ready()\nwhile True:\n    status.send(b'{}' * 1000)",
    "silence": "time.sleep(1000)",
    "hangs": "ready()\ntime.sleep(1000)",
    "deep": "status.send(b'[' * 60000)\ntime.sleep(1000)",
    # Other processes as kernels: pid 1, the warden, itself, nobody, every number.
    "lies": "ready()\nn = 0\nwhile True:\n    seq = struct.unpack('Q', warden.recv(4096)[:8])[0]\n    n += 1\n"
            "    warden.send(struct.pack('Qii', seq, 0, [1, os.getppid(), os.getpid(), 0, -1, 2 ** 31 - 1][n % 6]))",
    "others": "ready()\nwhile True:\n    seq = struct.unpack('Q', warden.recv(4096)[:8])[0]\n    for other in range(seq - 4096 * 2, seq + 4096 * 2, 4096):\n"
              "        warden.send(struct.pack('Qii', other, 0, os.getpid()))",
    "short": "ready()\nwhile True:\n    warden.recv(4096)\n    warden.send(b'x')",
    "memory": "ready()\nx = []\nwhile True:\n    x.append(bytearray(64 << 20))\n    for i in range(0, 64 << 20, 4096):\n        x[-1][i] = 1",
    "dies": "ready()\nwarden.recv(4096)\nos._exit(0)",
    # Processes without end: that stay; that die at once, as orphans of the warden's; that go into the cgroups of the cells.
    "forks": "ready()\nwhile True:\n    try:\n        os.fork()\n    except OSError:\n        pass",
    "orphans": "ready()\ndef twice():\n    while True:\n        try:\n            if os.fork() == 0:\n                os.fork() and os._exit(0)\n        except OSError:\n"
               "            pass\ntwice()",
    "settles": "ready()\nimport array\nwhile True:\n    data, more, _, _ = warden.recvmsg(4096, 512)\n    fds = array.array('i')\n    fds.frombytes(more[0][2])\n    for n in range(2, len(fds)):\n"
               "        if os.fork() == 0:\n            os.write(fds[n], b'0')\n            while True:\n                try:\n                    os.fork()\n                except OSError:\n                    pass",
    "kills": "ready()\nimport signal\nfor p in range(2, 70000):\n    try:\n        os.kill(p, signal.SIGKILL)\n    except OSError:\n        pass\ntime.sleep(1000)",
}
FORKS = ("forks", "orphans", "settles")
BOMB = "import os\nwhile True:\n    try:\n        os.fork()\n    except OSError:\n        pass"


@pytest.fixture(autouse=True)
def hostile_test(request):
    """In the place of conftest's: the daemons here are the tests' own, and have cells of their pools beside what is tested."""
    def late(*_):
        pytest.fail("%s took more than %d s" % (request.node.name, TEST_SECONDS))

    old = signal.signal(signal.SIGALRM, late)
    signal.alarm(TEST_SECONDS)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, old)


@pytest.fixture(scope="module")
def store():
    path = Path(tempfile.mkdtemp(prefix="caisson-images-"))
    s = Store(path / "store")
    base, python = s.layer(lambda r: programs_layer(r, *SMALL)), s.layer(python_layer)
    real = s.layer(lambda r: (r / "opt").mkdir(), lambda r: shutil.copy2(os.path.realpath("/usr/bin/python3"), r / "opt/python"))
    s.add(GOOD, [base, python, s.layer({"etc/which": "good"})], Env=["PATH=/usr/bin:/bin"])
    for name, code in ATTACKS.items():
        s.add("docker.io/library/%s:1" % name, [base, python, real, s.layer({"usr/bin/python3": SWITCH, "evil.py": PRELUDE + code, "etc/which": name})], Env=["PATH=/usr/bin:/bin"])
    yield s
    shutil.rmtree(path, ignore_errors=True)


@pytest.fixture
def d(store):
    with Daemon("--image-store", store.path, "--pool", 1) as d:
        yield d


def run(d, image, code="print(open('/etc/which').read())", seconds=60):
    return d.request("POST", "/v1/run_python", {"code": code, "image": image}, timeout=seconds)


def evil_zygotes(d):
    """Children of the warden that run the image's evil.py."""
    found = []
    for p in children(d.warden):
        try:
            if b"/evil.py" in Path("/proc/%d/cmdline" % p).read_bytes():
                found.append(p)
        except OSError:
            pass
    return found


def good(d):
    """The daemon's own image and another stored one, each within a time that a neighbour would accept."""
    assert d.good(at_most(10))
    r = run(d, GOOD)
    assert r.status == 200 and r.json["stdout"] == "good\n", r


@quick
def test_image_that_behaves(d, stopped_by):
    """The control: the same daemon, a warm interpreter of its own."""
    good(d)
    until(lambda: len(d.zygotes()) == 2, 20, "two zygotes")
    stopped_by("nothing to stop")


@quick
@pytest.mark.parametrize("attack", ["garbage", "lies", "hangs"])
def test_hostile_zygote(d, attack, stopped_by):
    hostile_zygote(d, attack)
    stopped_by("a zygote of its own, believed by nobody", "deadlines; limits; cold kernels")


@pytest.mark.slow
@pytest.mark.parametrize("attack", sorted(set(ATTACKS) - {"garbage", "lies", "hangs", *FORKS}))
def test_hostile_zygote_more(d, attack, stopped_by):
    hostile_zygote(d, attack)
    stopped_by("a zygote of its own, believed by nobody", "deadlines; limits; cold kernels")


def hostile_zygote(d, attack):
    good(d)
    pid, warden = d.pid, d.warden
    calls = [Later(lambda: run(d, attack + ":1", seconds=120)) for _ in range(3)]
    evil = until(lambda: evil_zygotes(d), 20, "the hostile zygote")
    landed(True, evil)
    for p in evil:
        st = {}
        try:
            st = status(p)
        except OSError:
            continue  # it was ended meanwhile
        assert int(st["Uid"].split()[0]) >= 0x70000000 and st["CapEff"].strip() == "0" * 16, st
    for _ in range(5):
        good(d)
    for c in calls:  # its own sandboxes: a cold kernel, or an error that is told; never for ever
        r = c.result(120)
        assert r.status in (200, 503), r
        assert r.status != 200 or r.json["stdout"] == attack + "\n", r
    good(d)
    assert (d.pid, d.warden) == (pid, warden), "another process of the daemon died of it"


# ---- processes without end -------------------------------------------------------------------------------------------


def evil_processes():
    """What zygotes of hostile images forked, and these themselves: {pid: its cgroup directories}. Their own command lines are not
    read: who forks while its cgroup is out of processor time holds up whoever looks at its memory."""
    found = {}
    for p in filter(str.isdigit, os.listdir("/proc")):
        try:
            if os.readlink("/proc/%s/exe" % p) == "/opt/python" and len(status(p)["NSpid"].split()) == 1 and session().guard.holds(int(p)):
                found[int(p)] = cgroups_of(p)
        except (OSError, KeyError):
            pass
    return found


def cgroups_of(p):
    """The cells' and zygotes' own directories that a process is in."""
    lines = [x.split(":", 2) for x in Path("/proc/%s/cgroup" % p).read_text().splitlines()]
    dirs = [Path("/sys/fs/cgroup") / ("unified" if not names and Path("/sys/fs/cgroup/unified").exists() else names.removeprefix("name=")) / where.lstrip("/")
            for _, names, where in lines]
    return {x for x in dirs if x.name.startswith("caisson-") or x.parent.name == "caisson"}


def nothing_left(d, dirs):
    until(lambda: not evil_processes(), 20, "the end of every process of the image")
    until(lambda: not [x for x in dirs if x.exists()], 20, "the end of its cgroups")
    assert not list((d.state / "cells").iterdir()), "the journal names what is not there"
    mounts = Path("/proc/self/mountinfo").read_text()
    assert "caisson-images-" not in mounts and str(d.state) not in mounts, mounts


def bombed(d, attack):
    """Under attack: the others' zygotes before, and the directories in which the attack's processes are."""
    good(d)
    others = set(until(lambda: len(z := d.zygotes()) == 2 and z, 20, "two zygotes"))
    calls = [Later(lambda: run(d, attack + ":1", seconds=120)) for _ in range(3)]
    evil = until(lambda: len(e := evil_processes()) > 8 and e, 30, "processes that the zygote forked")
    dirs = set().union(*evil.values())
    landed(dirs, evil)
    return others, calls, dirs


@quick
@pytest.mark.parametrize("attack", FORKS)
def test_zygote_that_forks_without_end(d, attack, stopped_by):
    """Its cgroup bounds it, is killed whole, and nobody waits for that: nobody else's zygote is taken for stuck."""
    pid, warden = d.pid, d.warden
    others, calls, dirs = bombed(d, attack)
    for _ in range(10):
        good(d)
        dirs |= set().union(*evil_processes().values())
    for c in calls:
        r = c.result(120)
        assert r.status in (200, 503), r
        assert r.status != 200 or r.json["stdout"] == attack + "\n", r
    good(d)
    assert others <= set(d.zygotes()), "another image's zygote was ended for it"
    for event in ("zygote_stuck", "zygote_lost"):
        assert not [e for e in d.events(event) if attack not in e["image"]], d.events(event)
    assert (d.pid, d.warden) == (pid, warden)
    d.stop()
    nothing_left(d, dirs)
    stopped_by("a cgroup of its own: processes, memory, processors", "pids.max 0 and SIGKILL to all of it, tried again by the loop")


@quick
def test_warden_killed_while_a_zygote_forks(d, stopped_by):
    """kill -9: what it forked has lost its parent, and nobody told it to die. The next start does."""
    _, calls, dirs = bombed(d, "forks")
    front = d.pid
    for p in (d.warden, d.keeper):  # the keeper would wait a while for whoever is left
        os.kill(p, signal.SIGKILL)
    for c in calls:
        with contextlib.suppress(OSError, http.client.HTTPException):
            c.result(120)
    d.p.wait(60)
    until(lambda: not stat_of(front), 60, "the end of the front")
    landed(evil_processes(), "processes that outlived the warden")
    d.start()
    good(d)
    until(lambda: not evil_processes(), 20, "the end of every process of the image")
    assert not [x for x in dirs if x.exists()]
    d.stop()
    nothing_left(d, dirs)
    stopped_by("the journal; pids.max 0 first, then SIGKILL to all of it")


@quick
def test_kernel_of_an_image_that_forks_without_end(d, stopped_by):
    """The other side: the image is honest, the code is not."""
    good(d)
    others = set(until(lambda: len(z := d.zygotes()) == 2 and z, 20, "two zygotes"))
    names = ["bomb-1", "bomb-2"]
    for name in names:
        assert d.request("POST", "/v1/sandboxes", {"name": name, "image": GOOD}).status == 201
    calls = [Later(lambda name=name: d.execute(BOMB, session_id=name, timeout=5)) for name in names]
    for _ in range(5):
        good(d)
    results = [c.result(120) for c in calls]
    assert {r.status for r in results} <= {"timeout", "limit"}, results
    landed(all("pids" in r["limits_hit"] for r in results), results)
    for name in names:
        d.end(name)
    good(d)
    assert others == set(d.zygotes()) and not d.events("zygote_stuck") and not d.events("zygote_lost")
    stopped_by("the cell's limit on processes; its end")


@quick
def test_K129_layers_are_not_written_to(d, store, stopped_by):
    """What a session does to its image stays in the session; what is done to the store's documents is found out."""
    def state():
        h = hashlib.sha256()
        for p in sorted((store.path / "layers").rglob("*")):
            st = p.lstat()
            h.update(repr((str(p), st.st_mode, st.st_uid, st.st_size, st.st_mtime_ns)).encode())
        return h.digest()

    before = state()
    code = ("import os, shutil\nfor top in ('/etc', '/usr', '/bin', '/opt', '/tmp'):\n    for r, ds, fs in os.walk(top):\n        for f in fs[:50]:\n            try:\n"
            "                open(os.path.join(r, f), 'w').write('owned')\n            except OSError:\n                pass\n"
            "shutil.rmtree('/usr', ignore_errors=True)\nprint('tried')")
    r = run(d, GOOD, code)
    assert r.status == 200, r
    good(d)
    assert state() == before, "a layer changed"
    digest = store.add("docker.io/library/flipped:1", [store.layer({"x": "y"})])
    blob = store.path / "blobs/sha256" / digest[7:]
    data = bytearray(blob.read_bytes())
    data[20] ^= 1
    blob.write_bytes(data)
    r = run(d, "flipped:1")
    assert r.status == 422 and r.code == "image_unavailable", r
    good(d)
    stopped_by("read-only lowers of an overlay", "digests of manifest and configuration")


@quick
def test_image_whose_files_are_links_out(d, store, stopped_by):
    """Nothing of the host is reached through an image's own tree: not its interpreters, not its users, not its mount points."""
    from layers_lib import Link
    for i, tree in enumerate(({"etc": Link("/proc/1/root/etc"), "workspace": Link("/etc")}, {"tmp": Link("/"), "home": Link("../../../../etc")},
                              {"proc": Link("/etc"), "dev": Link("/dev"), "sys": Link("/sys")}, {"projects": "a file", "workspace": "a file"})):
        ref = "docker.io/library/links:%d" % i
        store.add(ref, [store.layer(lambda r: programs_layer(r, *SMALL) if i > 3 else None, tree)], Env=["PATH=/bin:/proc/1/root/bin"])
        r = d.request("POST", "/v1/run_shell", {"script": "id", "image": ref}, timeout=60)
        assert r.status in (422, 503), r
        good(d)
    stopped_by("targets are resolved below the new root, without links")
