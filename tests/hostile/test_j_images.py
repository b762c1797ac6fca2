# SPDX-License-Identifier: Apache-2.0
"""test_j_images.py - K129 and hostile images: an image's own python is its zygote, and may do what it likes with that.

Whatever it does, sandboxes of other images go on, none of them waits for it, and nothing of it is left. Judged from
outside: by other sandboxes' answers, by what runs, and by the store's files.
"""
import hashlib
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
from lib import at_most, landed  # noqa: E402
from lib_e import children, status, until  # noqa: E402

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
    "kills": "ready()\nimport signal\nfor p in range(2, 70000):\n    try:\n        os.kill(p, signal.SIGKILL)\n    except OSError:\n        pass\ntime.sleep(1000)",
}


@pytest.fixture(autouse=True)
def hostile_test(request):
    """In the place of conftest's: the daemons here are the tests' own, and have cells of their pools beside what is tested."""
    def late(*_):
        raise TimeoutError("%s took more than %d s" % (request.node.name, TEST_SECONDS))

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
@pytest.mark.parametrize("attack", sorted(set(ATTACKS) - {"garbage", "lies", "hangs"}))
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
