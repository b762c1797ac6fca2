# SPDX-License-Identifier: Apache-2.0
"""test_images.py - Sandboxes of stored images: any image of the store, by its name; their interpreters run only in their cells."""
import fcntl
import json
import os
import shutil
import signal
import tempfile
from pathlib import Path

import pytest

from layers_lib import SMALL, Store, programs_layer, python_layer
from process import unique, wait_until
from serve_lib import WebSocket

PY = "docker.io/library/py:1"
BASH = "docker.io/library/small:1"
WHICH = "import os; print(open('/etc/which').read(), os.environ.get('COLOUR'), os.path.exists('/usr/bin/bash'))"


def make_store(path):
    s = Store(path)
    base = s.layer(lambda r: programs_layer(r, *SMALL))
    python = s.layer(python_layer)
    s.py_layers = [base, python]
    s.py = s.add(PY, [base, python, s.layer({"etc/which": "first"})], Env=["PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "COLOUR=blue"])
    s.small = s.add(BASH, [base], Env=["PATH=/bin", "COLOUR=red", "NODE_OPTIONS=--no-warnings"])
    return s


@pytest.fixture(scope="module")
def store():
    path = Path(tempfile.mkdtemp(prefix="caisson-images-"))
    yield make_store(path / "store")
    shutil.rmtree(path, ignore_errors=True)


@pytest.fixture
def d(serve, store):
    return serve("--image-store", str(store.path), "--pool", "1")


def create(d, image, **fields):
    name = unique()
    r = d.post("/v1/sandboxes", {"name": name, "image": image, **fields})
    return name, r


def run_python(d, code, **fields):
    r = d.post("/v1/run_python", {"code": code, **fields})
    assert r.status == 200, r
    return r.json


def zygotes_of(d):
    """Children of the warden that are neither cells nor kernels, which are in pid namespaces of their own."""
    found = []
    for pid in d.processes():
        try:
            if b"zygote" in Path("/proc/%d/cmdline" % pid).read_bytes().split(b"\0") and os.readlink("/proc/%d/ns/pid" % pid) == os.readlink("/proc/self/ns/pid"):
                found.append(pid)
        except OSError:
            pass
    return found


def is_locked(store, digest):
    fd = os.open(store.path / "leases" / digest[7:], os.O_RDONLY)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return False
    except BlockingIOError:
        return True
    finally:
        os.close(fd)


# ---- by name -------------------------------------------------------------------------------------------------------


def test_sandbox_of_an_image(d, store):
    name, r = create(d, "py:1")
    assert r.status == 201 and (r.json["spec"]["image"], r.json["spec"]["image_digest"]) == (PY, store.py), r
    assert d.execute(WHICH, session_id=name)["stdout"] == "first blue False\n"
    assert d.execute("x = 6 * 7", session_id=name)["success"] and d.execute("x", session_id=name)["result"]["text/plain"] == "42"
    assert d.execute("echo $COLOUR; cat /etc/which", session_id=name, language="bash")["stdout"] == "blue\nfirst"
    again = d.post("/v1/sandboxes", {"name": name, "image": "docker.io/library/py:1"})
    assert again.status == 200, again
    assert d.post("/v1/sandboxes", {"name": name}).status == 409
    # the daemon's own image still works beside it
    own = d.execute("import os; print(os.path.exists('/etc/which'))")
    assert own["stdout"] == "False\n", own


def test_localhost_has_an_address(d):
    """Also in an image that lacks /etc/hosts, as most do."""
    assert run_python(d, "import socket; print(socket.gethostbyname('localhost'), socket.gethostbyname(socket.gethostname()))", image="py:1")["stdout"] == "127.0.0.1 127.0.0.1\n"


def test_one_run(d):
    assert run_python(d, WHICH, image="py:1")["stdout"] == "first blue False\n"
    r = d.post("/v1/run_shell", {"script": "echo $COLOUR", "image": "small:1"})
    assert r.status == 200 and r.json["stdout"] == "red\n", r


def test_execute(d, store):
    """In a sandbox of an image, once and in a session; a session keeps its image."""
    assert d.execute(WHICH, image="py:1")["stdout"] == "first blue False\n"
    name = unique()
    assert d.execute("x = 6 * 7", session_id=name, image="py:1")["success"]
    assert d.get("/v1/sandboxes/" + name).json["spec"]["image_digest"] == store.py
    # by any name of the same image, and without a name
    assert d.execute("x", session_id=name, image=PY)["result"]["text/plain"] == "42"
    assert d.execute("x + 1", session_id=name)["result"]["text/plain"] == "43"
    for other in ("small:1", "host"):
        r = d.try_execute("x", session_id=name, image=other)
        assert (r.status, r.error["code"], r.error["field"]) == (409, "spec_conflict", "image"), r
        assert PY in r.error["message"] and "session_id" in r.error["hint"], r
    # a session of the daemon's own image accepts that image's name
    own = unique()
    assert d.execute("y = 1", session_id=own)["success"] and d.execute("y", session_id=own, image="host")["success"]
    r = d.try_execute("y", session_id=own, image="py:1")
    assert (r.status, r.error["code"]) == (409, "spec_conflict") and d.execute("y", session_id=own)["success"], r


def test_execute_of_an_image_that_is_refused(serve, store, short_dir):
    """No sandbox is made for it, and no name is taken."""
    policy = short_dir / "policy.toml"
    policy.write_text('[default]\nimages = ["host"]\n')
    d = serve("--image-store", str(store.path), "--policy", str(policy), "--pool", "1")
    name = unique()
    for image, status, code in (("py:1", 403, "policy_refused"), ("UPPER", 422, "image_unavailable")):
        for fields in ({}, {"session_id": name}):
            r = d.try_execute("1", image=image, **fields)
            assert (r.status, r.error["code"], r.error["field"]) == (status, code, "image"), r
    assert d.get("/v1/sandboxes/" + name).status == 404


def test_execute_over_a_websocket(d):
    name = unique()
    with WebSocket(d) as ws:
        assert ws.run(WHICH, session_id=name, image="py:1")["stdout"] == "first blue False\n"
        for image, fields, code in (("small:1", {"session_id": name}, "spec_conflict"), ("UPPER", {}, "image_unavailable")):
            ws.execute("1", image=image, **fields)
            last = ws.until("done", "refused")[-1]
            assert last["type"] == "refused" and (last["error"]["code"], last["error"]["field"]) == (code, "image"), last


def test_commands_have_the_environment_of_the_image(d):
    name, _ = create(d, "small:1", env={"MINE": "1"})
    r = d.post("/v1/sandboxes/%s/exec" % name, {"cmd": "env"})
    assert r.status == 200, r
    lines = set(r.json["stdout"].splitlines())
    path = "PATH=/packages/tools/bin:/bin:/home/agent/.local/bin:/packages/tools/last"
    assert {path, "COLOUR=red", "MINE=1", "HOME=/home/agent", "NODE_OPTIONS=--require=/etc/caisson-node.js --no-warnings"} <= lines, lines
    r = d.post("/v1/sandboxes/%s/exec" % name, {"cmd": "bash", "args": ["-c", "read -r line </etc/caisson-node.js && echo $line"]})
    assert r.json["stdout"].startswith("// SPDX"), r


def test_image_that_is_not_there(d):
    _, r = create(d, "python:0.0-never")
    assert (r.status, r.error["code"], r.error["field"]) == (422, "image_unavailable", "image"), r
    assert "caisson image pull python:0.0-never" in r.error["message"], r
    for bad in ("dir:/", "UPPER", "a b", "host/../x"):
        _, r = create(d, bad)
        assert (r.status, r.error["code"]) == (422, "image_unavailable"), r


def test_language_that_the_image_lacks(d):
    name, r = create(d, "small:1")
    assert r.status == 201, r
    r = d.try_execute("print(1)", session_id=name)
    assert (r.status, r.error["code"], r.error["field"]) == (422, "language_unavailable", "language"), r
    assert r.error["message"].endswith("there are: bash"), r
    assert d.execute("echo $COLOUR", session_id=name, language="bash")["stdout"] == "red\n"


def test_image_pulled_while_the_daemon_runs(serve, short_dir):
    """Also into a store that did not exist when the daemon started."""
    d = serve("--image-store", str(short_dir / "store"), "--pool", "1")
    _, r = create(d, "small:1")
    assert (r.status, r.error["code"]) == (422, "image_unavailable") and "caisson image pull" in r.error["message"], r
    s = Store(short_dir / "store")
    s.add(BASH, [s.layer(lambda r: programs_layer(r, *SMALL), {"n": "1"})], Env=["PATH=/bin"])
    name, r = create(d, "small:1")
    assert r.status == 201, r
    assert d.execute("cat /n", session_id=name, language="bash")["stdout"] == "1"


def test_default_image(serve, store):
    with serve("--image-store", str(store.path), "--image", "py:1", "--pool", "1") as d:
        assert d.execute(WHICH)["stdout"] == "first blue False\n"
        assert d.health()["languages"] == ["python", "bash"] and d.health()["pool"]["zygote"] is False
        name, r = create(d, "py:1")
        assert (r.json["spec"]["image"], r.json["spec"]["image_digest"]) == (PY, store.py), r


def test_default_image_that_is_not_there(serve, store):
    d = serve("--image-store", str(store.path), "--image", "python:0.0-never", wait=False)
    assert d.end() == 125 and "caisson image pull python:0.0-never" in d.log_text(), d.log_text()


def test_name_that_stands_for_another_image_by_now(d, store):
    """A sandbox of the old image keeps it; its digest still finds it; new sandboxes get the new one."""
    ref = "docker.io/library/moving:1"
    store.add(ref, [*store.py_layers, store.layer({"etc/which": "old"})], Env=["PATH=/usr/bin:/bin"])
    first, _ = create(d, "moving:1")
    assert d.execute("open('/etc/which').read()", session_id=first)["result"]["text/plain"] == "'old'"
    store.add(ref, [*store.py_layers, store.layer({"etc/which": "new"})], Env=["PATH=/usr/bin:/bin"])
    assert wait_until(lambda: run_python(d, "print(open('/etc/which').read())", image="moving:1")["stdout"] == "new\n")
    assert d.execute("open('/etc/which').read()", session_id=first)["result"]["text/plain"] == "'old'"


# ---- records ----------------------------------------------------------------------------------------------------


def test_ledger_has_the_digest(d, store):
    name, _ = create(d, "py:1")
    lines = [json.loads(x) for f in sorted((d.state / "ledger").glob("*")) for x in f.read_text(errors="replace").splitlines() if '"sandbox.create"' in x]
    mine = [x for x in lines if name in json.dumps(x)]
    assert store.py in json.dumps(mine) and PY in json.dumps(mine), mine


def test_policy_judges_the_image_of_the_sandbox(serve, store, short_dir):
    policy = short_dir / "policy.toml"
    policy.write_text('[default]\nimages = ["host", "%s"]\n' % PY)
    d = serve("--image-store", str(store.path), "--policy", str(policy), "--pool", "1")
    assert create(d, "py:1")[1].status == 201
    _, r = create(d, "small:1")
    assert r.status == 403 and r.error["field"] == "image", r


# ---- the interpreter -----------------------------------------------------------------------------------------------


def test_no_zygote_of_an_image(d):
    """A zygote forks kernels of the machine's own python; pid 1 of a cell starts those of an image, before they are needed."""
    own = wait_until(lambda: zygotes_of(d))
    name, _ = create(d, "py:1")
    assert d.execute("import os\nos.getppid()", session_id=name)["result"]["text/plain"] == "1"
    assert d.execute("import os\nos.getppid()")["result"]["text/plain"] == "0"
    assert zygotes_of(d) == own, zygotes_of(d)
    assert run_python(d, WHICH, image="py:1")["stdout"] == "first blue False\n"


def test_path_that_leads_to_another_python(d, store):
    """A warm and a cold start use the same interpreter: the first python3 in the image's PATH."""
    mine = store.layer({"opt/bin/python3": "#!/usr/bin/python3\nimport os, sys\nos.environ['WHO'] = 'opt'\nos.execv('/usr/bin/python3', ['python3', *sys.argv[1:]])\n", "etc/which": "opt"})
    store.add("docker.io/library/opt:1", [*store.py_layers, mine], Env=["PATH=/opt/bin:/usr/bin:/bin"])
    assert run_python(d, "import os; print(os.environ['WHO'])", image="opt:1")["stdout"] == "opt\n"


# ---- the lease -----------------------------------------------------------------------------------------------------


def kill_front(d):
    old = d.pid
    os.kill(old, signal.SIGKILL)
    assert wait_until(lambda: d.find_front() not in (None, old)) and d.running()


def test_image_is_in_use_as_long_as_its_sandboxes(serve, short_dir):
    """Also while no front runs, and for the next front."""
    s = Store(short_dir / "store")
    digest = s.add(BASH, [s.layer(lambda r: programs_layer(r, *SMALL))], Env=["PATH=/bin"])
    d = serve("--image-store", str(s.path), "--pool", "1")
    assert not is_locked(s, digest)
    name, _ = create(d, "small:1")
    assert d.execute("x=5", session_id=name, language="bash")["success"] and is_locked(s, digest)
    kill_front(d)
    assert is_locked(s, digest)
    # Its name stands for another image by now: an adopted sandbox keeps its own.
    s.add(BASH, [s.layer(lambda r: programs_layer(r, *SMALL), {"n": "2"})], Env=["PATH=/bin"])
    with open(s.path / "refs", "a") as f:
        f.write("%s 1 docker.io/library/kept:1\n" % digest)
    r = d.execute("echo $x; ls /n", session_id=name, language="bash")
    assert r["stdout"] == "5\n" and is_locked(s, digest), r
    d.end_session(name)


def test_ends_with_the_daemon(serve, store):
    with serve("--image-store", str(store.path), "--pool", "1") as d:
        create(d, "py:1")
        assert run_python(d, "print(1)", image="py:1")["stdout"] == "1\n" and is_locked(store, store.py)
    assert wait_until(lambda: not is_locked(store, store.py))


def test_jupyter_kernel_of_an_image(d):
    r = d.post("/api/kernels", {"name": "python3", "env": {"KERNEL_IMAGE": "py:1"}})
    assert r.status == 201, r
    boxes = d.get("/v1/sandboxes").json["sandboxes"]
    assert PY in [b["spec"]["image"] for b in boxes], boxes
