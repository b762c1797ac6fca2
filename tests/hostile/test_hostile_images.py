# SPDX-License-Identifier: Apache-2.0
"""test_hostile_images.py - Hostile images: the python that an image brings is a stranger's program.

It runs in cells of its own image, sealed by their pid 1, and nowhere else: not as a zygote, not in the host's pid
namespace, with no descriptor but the kernel's. Whatever it does there, sandboxes of other images go on, none of them
waits for it, and nothing of it is left. Judged from outside: by other sandboxes' answers, by what runs, by the host's own
processes, and by the store's files.
"""
import contextlib
import hashlib
import http.client
import json
import os
import secrets
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest


from daemon_lib import Daemon, deadline_alone  # noqa: E402
from process import Later, status_of  # noqa: E402
from layers_lib import SMALL, Store, programs_layer, python_layer  # noqa: E402
from lib import at_most, landed, session  # noqa: E402
from cell_lib import until  # noqa: E402

quick = pytest.mark.quick
GOOD = "docker.io/library/good:1"
# The image's python: its arguments decide what it does. A daemon that took it for a zygote would run /zygote.py.
SWITCH = """#!/bin/sh
export PYTHONHOME=/usr
case "$*" in
*zygote*) exec /opt/python /zygote.py "$@" ;;
*) exec /opt/python /kernel.py "$@" ;;
esac
"""
HONEST = "import os, sys\nos.execv('/opt/python', ['python3', *sys.argv[1:]])"
READY = """
import json, os, sys, time
def say(**m): os.write(4, json.dumps(m).encode() + b'\\n')
say(type='ready', language='python', version='3.11.0', pid=os.getpid())
"""
# As a zygote: put a process of the host into the cgroups of a cell, which ends with the cell.
MOVES = """
import array, json, os, socket, struct
warden, status = socket.socket(fileno=3), socket.socket(fileno=4)
status.recv(65536)
status.send(json.dumps({'version': '3.11.0', 'failed': []}).encode())
while True:
    data, more, _, _ = warden.recvmsg(4096, 512)
    if not data:
        break
    fds = array.array('i')
    fds.frombytes(more[0][2])
    for fd in fds[2:]:
        try:
            os.write(fd, b'VICTIM')
        except OSError:
            pass
    warden.send(data[:8] + struct.pack('=ii', -5, 0))
"""
ATTACKS = {
    "garbage": "import os, time\nos.write(4, b'\\xff' * 4000 + b'\\n')\ntime.sleep(1000)",
    "deep": "import os, time\nos.write(4, b'[' * 60000 + b'\\n')\ntime.sleep(1000)",
    "flood": READY + "while True:\n    say(type='display', data={'text/plain': 'x' * 1000})",
    "lies": READY + "os.read(3, 65536)\nsay(type='execution_done', id='0' * 32, status='ok')\ntime.sleep(1000)",
    # Descriptors that block: the process at the other end must not.
    "blocks": "import fcntl\nfor fd in range(5):\n    fcntl.fcntl(fd, fcntl.F_SETFL, 0)\n" + READY + "os.write(1, b'half')\ntime.sleep(1000)",
    "dies": READY + "os._exit(0)",
    "memory": READY + "x = []\nwhile True:\n    x.append(bytearray(64 << 20))\n    for i in range(0, 64 << 20, 4096):\n        x[-1][i] = 1",
    "kills": READY + "import signal\nfor p in range(2, 70000):\n    try:\n        os.kill(p, signal.SIGKILL)\n    except OSError:\n        pass\ntime.sleep(1000)",
    "silence": "import time\ntime.sleep(1000)",
    # Processes without end: that stay; that die at once, as orphans.
    "forks": READY + "while True:\n    try:\n        os.fork()\n    except OSError:\n        pass",
    "orphans": READY + "while True:\n    try:\n        if os.fork() == 0:\n            os.fork() and os._exit(0)\n    except OSError:\n        pass",
}
FORKS = ("forks", "orphans")
BOMB = "import os\nwhile True:\n    try:\n        os.fork()\n    except OSError:\n        pass"


hostile_test = deadline_alone(240)


@pytest.fixture(scope="module")
def store():
    path = Path(tempfile.mkdtemp(prefix="caisson-images-"))
    s = Store(path / "store")
    base, python = s.layer(lambda r: programs_layer(r, *SMALL)), s.layer(python_layer)
    real = s.layer(lambda r: (r / "opt").mkdir(), lambda r: shutil.copy2(os.path.realpath("/usr/bin/python3"), r / "opt/python"))
    s.add(GOOD, [base, python, s.layer({"etc/which": "good"})], Env=["PATH=/usr/bin:/bin"])

    def image(name, kernel, zygote=HONEST):
        tree = {"usr/bin/python3": SWITCH, "kernel.py": kernel, "zygote.py": zygote, "etc/which": name}
        s.add("docker.io/library/%s:1" % name, [base, python, real, s.layer(tree)], Env=["PATH=/usr/bin:/bin"])

    s.image = image
    for name, code in ATTACKS.items():
        image(name, code)
    yield s
    shutil.rmtree(path, ignore_errors=True)


@pytest.fixture
def d(store):
    with Daemon("--image-store", store.path, "--pool", 1) as d:
        yield d


def run(d, image, code="print(open('/etc/which').read())", seconds=60, **fields):
    return d.request("POST", "/v1/run_python", {"code": code, "image": image, **fields}, timeout=seconds)


def image_processes():
    """{pid: status} of every process that runs the python of an image of ours, wherever it is."""
    found = {}
    for p in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError, KeyError):
            if os.readlink("/proc/%s/exe" % p) == "/opt/python" and session().guard.holds(int(p)):
                found[int(p)] = status_of(p)
    return found


def check_sealed(found):
    """Each is a process of a cell like any other: the host's pid namespace, its users and capabilities are not its own."""
    for p, st in found.items():
        assert len(st["NSpid"].split()) == 2, "the image's python runs outside of a cell: %s" % st
        assert all(st[c].strip() == "0" * 16 for c in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")), st
        assert (st["NoNewPrivs"].strip(), st["Seccomp"].strip()) == ("1", "2"), st
        assert min(int(u) for u in st["Uid"].split()) >= 0x70000000, st


def good(d):
    """The daemon's own image and another stored one, each within a time that a neighbour would accept."""
    assert d.good(at_most(10))
    r = run(d, GOOD)
    assert r.status == 200 and r.json["stdout"] == "good\n", r


@quick
def test_image_that_behaves(d, stopped_by):
    """The control: the same daemon, kernels of the image that are ready before they are asked for, and no zygote of its own."""
    good(d)
    until(lambda: d.zygotes() == [d.zygote], 20, "one zygote")
    stopped_by("nothing to stop")


@quick
def test_python_of_an_image_runs_in_cells_only(d, store, stopped_by):
    """Its arguments and its place, as it reports them itself and as the host sees it."""
    report = ("import json, os\nd = {n: os.readlink('/proc/self/fd/' + n) for n in os.listdir('/proc/self/fd') if os.path.islink('/proc/self/fd/' + n)}\n"
              "s = dict(x.split(':', 1) for x in open('/proc/self/status').read().splitlines())\n"
              "def there(p):\n    try:\n        os.kill(p, 0)\n    except ProcessLookupError:\n        return False\n    except OSError:\n        pass\n    return True\n"
              "alive = [p for p in range(1, 40000) if there(p)]\n"
              "json.dump([d, s, alive], open('/tmp/report', 'w'))\n")
    store.image("reports", report + HONEST)
    name = "reports-1"
    assert d.request("POST", "/v1/sandboxes", {"name": name, "image": "reports:1"}).status == 201
    said = d.execute("print(open('/tmp/report').read())", session_id=name)
    fds, st, alive = json.loads(said.stdout)
    seen = image_processes()
    landed(seen, "the image's python runs")
    check_sealed(seen)
    kinds = sorted(v.split(":")[0] for v in fds.values() if not v.startswith("/proc"))
    assert kinds == ["/dev/null", "pipe", "pipe", "pipe", "pipe"], fds
    assert st["CapEff"].strip() == "0" * 16 and st["Seccomp"].strip() == "2" and len(alive) < 10, (st, alive)
    d.end_session(name)
    stopped_by("no zygote of an image; pid 1 starts and seals its kernels")


@quick
def test_image_that_moves_a_host_process(store, stopped_by):
    """An unrelated process of root survives, whatever the image's python does with its descriptors."""
    victim = subprocess.Popen(["sleep", "300"])
    try:
        store.image("moves", HONEST, MOVES.replace("VICTIM", str(victim.pid)))
        before = Path("/proc/%d/cgroup" % victim.pid).read_text()
        with Daemon("--image-store", store.path, "--pool", 1) as d:
            for _ in range(3):
                r = run(d, "moves:1")
                assert r.status == 200 and r.json["stdout"] == "moves\n", r
            found = image_processes()
            d.stop()
        assert victim.poll() is None, "KILLED: a host process that the image named died with a cell"
        assert Path("/proc/%d/cgroup" % victim.pid).read_text() == before, "a host process is in a cell's cgroup"
        check_sealed(found)
    finally:
        victim.kill()
        victim.wait()
    stopped_by("no zygote of an image, and no descriptor of the warden's in its hands")


@quick
def test_two_owners_of_one_image_share_nothing(store, stopped_by):
    """No process of the image is a parent of both owners' kernels, and no memory that can be written is in both."""
    a, b = secrets.token_hex(32), secrets.token_hex(32)
    store.image("shares", HONEST)
    tokens = Path(tempfile.mkdtemp(prefix="caisson-tokens-")) / "tokens"
    tokens.write_text("a:%s\nb:%s\n" % (a, b))
    tokens.chmod(0o600)
    with Daemon("--image-store", store.path, "--pool", 2, "--token-file", tokens, token=a) as d:
        for name, token in (("of-a", a), ("of-b", b)):
            assert d.request("POST", "/v1/sandboxes", {"name": name, "image": "shares:1"}, token=token).status == 201
            r = d.execute("import os; print(os.getppid())", session_id=name, token=token)
            assert r.stdout == b"1\n", r    # its parent is pid 1 of its own cell
        check_sealed(image_processes())
        roots = {p: os.readlink("/proc/%d/ns/ipc" % p) for p in image_processes()}
        landed(len(set(roots.values())) >= 2, roots)
        shared = {}
        for p in roots:
            for line in Path("/proc/%d/maps" % p).read_text().splitlines():
                w = line.split()
                if "s" in w[1] and "w" in w[1]:
                    shared.setdefault((w[3], w[4]), set()).add(roots[p])
        assert all(len(cells) == 1 for cells in shared.values()), shared
    shutil.rmtree(tokens.parent)
    stopped_by("each kernel is started in its own cell")


@quick
@pytest.mark.parametrize("attack", ["garbage", "lies", "blocks"])
def test_hostile_python(d, attack, stopped_by):
    hostile_python(d, attack)
    stopped_by("a kernel in a cell, believed by nobody", "deadlines; limits")


@pytest.mark.slow
@pytest.mark.parametrize("attack", sorted(set(ATTACKS) - {"garbage", "lies", "blocks", *FORKS}))
def test_hostile_python_more(d, attack, stopped_by):
    hostile_python(d, attack)
    stopped_by("a kernel in a cell, believed by nobody", "deadlines; limits")


def hostile_python(d, attack):
    good(d)
    pid, warden = d.pid, d.warden
    calls = [Later(lambda: run(d, attack + ":1", seconds=150, timeout=2)) for _ in range(2)]
    good(d)
    check_sealed(image_processes())
    for _ in range(5):
        good(d)
    for name in [b["name"] for b in d.request("GET", "/v1/sandboxes").json["sandboxes"]]:
        d.end_session(name)
    for c in calls:  # its own sandboxes: nothing that it says, or an error that is told; never for ever
        r = c.result(150)
        assert r.status in (200, 503), r
    good(d)
    assert (d.pid, d.warden) == (pid, warden), "another process of the daemon died of it"
    d.stop()
    until(lambda: not image_processes(), 20, "the end of every process of the image")


# ---- processes without end -------------------------------------------------------------------------------------------


@quick
@pytest.mark.parametrize("attack", FORKS)
def test_python_that_forks_without_end(d, attack, stopped_by):
    """Its cell bounds it, and is killed whole."""
    pid, warden = d.pid, d.warden
    good(d)
    calls = [Later(lambda: run(d, attack + ":1", seconds=150, timeout=2)) for _ in range(2)]
    until(lambda: len(image_processes()) > 8, 30, "processes that it forked")
    check_sealed(image_processes())
    for _ in range(5):
        good(d)
    d.stop()
    for c in calls:
        with contextlib.suppress(OSError, http.client.HTTPException, AssertionError):
            c.result(150)
    assert (pid, warden) and not d.log("zygote_stuck") and not d.log("zygote_lost")
    until(lambda: not image_processes(), 20, "the end of every process of the image")
    assert not list((d.state / "cells").iterdir()), "the journal names a missing resource"
    stopped_by("the cell's limit on processes; its end")


@quick
def test_kernel_of_an_image_that_forks_without_end(d, stopped_by):
    """The other side: the image is honest, the code is not."""
    good(d)
    others = set(d.zygotes())
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
        d.end_session(name)
    good(d)
    assert others == set(d.zygotes()) and not d.log("zygote_stuck") and not d.log("zygote_lost")
    stopped_by("the cell's limit on processes; its end")


@quick
def test_image_layers_are_not_written_to(d, store, stopped_by):
    """Changes of a session to its image stay in the session; changes to the store's documents are detected."""
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
    """Nothing of the host is reached through an image's own tree: not through its interpreters, its users or its mount points."""
    from layers_lib import Link
    for i, tree in enumerate(({"etc": Link("/proc/1/root/etc"), "workspace": Link("/etc")}, {"tmp": Link("/"), "home": Link("../../../../etc")},
                              {"proc": Link("/etc"), "dev": Link("/dev"), "sys": Link("/sys")}, {"projects": "a file", "workspace": "a file"})):
        ref = "docker.io/library/links:%d" % i
        store.add(ref, [store.layer(lambda r: programs_layer(r, *SMALL) if i > 3 else None, tree)], Env=["PATH=/bin:/proc/1/root/bin"])
        r = d.request("POST", "/v1/run_shell", {"script": "id", "image": ref}, timeout=60)
        assert r.status in (422, 503), r
        good(d)
    stopped_by("targets are resolved below the new root, without links")
