# SPDX-License-Identifier: Apache-2.0
"""test_run_image.py - `caisson run --image REF`: cells from layers of the store, and the image's own configuration."""
import os
import shutil
import tempfile
from pathlib import Path

import pytest

from image_lib import Layout, Misbehaving, tar_of
from layers_lib import GONE, SMALL, Link, Store, programs_layer, python_layer
from integ_lib import needs_root, run
from process import IS_ROOT

REF = "docker.io/library/small:1"


@pytest.fixture(scope="module")
def store():
    path = Path(tempfile.mkdtemp(prefix="caisson-images-"))
    s = Store(path / "store")
    s.base = s.layer(lambda r: programs_layer(r, *SMALL), {"etc/passwd": "root:x:0:0::/root:/bin/sh\nweb:x:33:44::/:/bin/sh\n", "etc/group": "root:x:0:\nstaff:x:55:\n"})
    s.add(REF, [s.base], Env=["PATH=/bin", "GREETING=hello", "HOME=/root"], Cmd=["sh", "-c", "echo $GREETING from the image"])
    yield s
    shutil.rmtree(path, ignore_errors=True)


def image(store, ref, *args, verb="run", **kw):
    return run(verb, "--image", ref, "--image-store", str(store.path), *args, **kw)


def shell(store, ref, script, *options, **kw):
    return image(store, ref, *options, "--lang", "bash", "-c", script, **kw)


def test_code_runs_with_the_programs_of_the_image(store):
    r = shell(store, REF, "ls /; echo; cat /etc/passwd; command -v python3 || echo no python")
    assert r.code == 0, r
    assert b"web:x:33" in r.out and b"no python" in r.out, r
    assert b"lib64" not in r.out or (store.path / "layers" / store.base / "lib64").exists(), r


def test_short_name_and_tag(store):
    assert shell(store, "small:1", "echo in").out == b"in\n"
    r = shell(store, "small", "echo in", "--image-pull", "never")
    assert r.code == 125 and b"caisson image pull small" in r.err, r


def test_pulled_if_it_is_not_there(tmp_path):
    """Unless --image-pull never; silently, unless stderr is a terminal; and an error of the registry is seen."""
    small = tar_of(lambda root: programs_layer(root, *SMALL))
    registry = Misbehaving(Layout(tmp_path / "layout", [small], config={"Env": ["PATH=/bin"]}))
    words = ("--image-store", str(tmp_path / "store"), "--lang", "bash", "-c", "echo in")
    try:
        r = run("run", "--image", registry.ref, "--image-pull", "never", *words)
        assert r.code == 125 and b"caisson image pull" in r.err and registry.requests == [], r
        r = run("run", "--image", registry.ref, *words, env={"CAISSON_IMAGE_PULL": "never"})
        assert r.code == 125 and registry.requests == [], r
        r = run("run", "--image", registry.ref, *words)
        assert (r.code, r.out, r.err) == (0, b"in\n", b""), r
        asked = len(registry.requests)
        assert run("run", "--image", registry.ref, *words).code == 0 and len(registry.requests) == asked
        r = run("run", "--image", registry.host + "/x@sha256:" + "0" * 64, *words)
        assert r.code == 125 and b"manifest unknown" in r.err, r
        r = run("doctor", "--image", registry.host + "/x:2", "--image-store", str(tmp_path / "store"))
        assert b"/x:2" in r.out + r.err and len(registry.asked("/manifests/")) == 2, r
    finally:
        registry.close()


def test_nothing_to_run_runs_the_command_of_the_image(store):
    assert image(store, REF).out == b"hello from the image\n"
    assert image(store, REF, verb="exec").out == b"hello from the image\n"
    store.add("docker.io/library/entry:1", [store.base], Env=["PATH=/bin"], Entrypoint=["sh", "-c", "echo entry $0 $1"], Cmd=["a", "b"])
    assert image(store, "entry:1").out == b"entry a b\n"
    store.add("docker.io/library/mute:1", [store.base])
    r = image(store, "mute:1")
    assert r.code == 125 and b"no command of its own" in r.err, r


def test_environment(store):
    """The image's variables override the cell's, and the caller's override them; the variables about the user stay the cell's."""
    out = shell(store, REF, "echo $PATH $GREETING $HOME").out
    assert out == b"/bin hello /home/agent\n", out
    assert shell(store, REF, "echo $GREETING", "--env", "GREETING=mine").out == b"mine\n"


def test_workdir(store):
    store.add("docker.io/library/place:1", [store.base, store.layer({"srv/app/here": "x"})], Env=["PATH=/bin"], WorkingDir="/srv/app")
    assert shell(store, "place:1", "pwd; ls").out == b"/srv/app\nhere\n"
    assert shell(store, "place:1", "pwd", "--workdir", "/tmp").out == b"/tmp\n"
    assert shell(store, REF, "pwd").out == b"/workspace\n"


@needs_root
@pytest.mark.parametrize("user, ids", [("33", "33 33"), ("33:44", "33 44"), ("web", "33 44"), ("web:staff", "33 55"), ("0", "1000 1000"), ("root", "1000 1000"), ("", "1000 1000")])
def test_user(store, user, ids):
    """The image's user, but never root."""
    store.add("docker.io/library/user:1", [store.base], Env=["PATH=/bin"], User=user)
    assert shell(store, "user:1", "echo $(id -u) $(id -g)").out.decode() == ids + "\n"
    assert shell(store, "user:1", "id -u", "--user", "77").out == b"77\n"


def test_user_that_the_image_does_not_have(store):
    store.add("docker.io/library/user:2", [store.base], Env=["PATH=/bin"], User="nobody-here")
    r = shell(store, "user:2", "id")
    assert r.code == 125 and b"nobody-here" in r.err, r


@needs_root
def test_files_belong_to_whom_the_image_says(store):
    extra = store.layer({"a": "x", "b": "x"})
    os.chown(store.path / "layers" / extra / "b", 0x6FFE0000 + 33, 0x6FFE0000 + 44)
    store.add("docker.io/library/owner:1", [store.base, extra], Env=["PATH=/bin"])
    out = shell(store, "owner:1", "ls -ln /a /b").out.decode().split("\n")
    assert out[0].split()[2:4] == ["0", "0"] and out[1].split()[2:4] == ["33", "44"], out


def test_upper_layers_cover_lower_ones(store):
    """Files replaced, names taken away, directories begun anew; and the cell writes over all of it, once."""
    low = store.layer({"d/one": "1\n", "d/two": "2\n", "new/old": "x", "f": "low\n"})
    high = store.layer({"d/one": GONE, "f": "high\n", "new/fresh": "y"})
    os.setxattr(store.path / "layers" / high / "new", "user.overlay.opaque", b"y")
    store.add("docker.io/library/layers:1", [store.base, low, high], Env=["PATH=/bin"])
    script = "ls /d /new; cat /f; echo written > /tmp/x && cat /tmp/x"
    for _ in range(2):
        assert shell(store, "layers:1", script).out == b"/d:\ntwo\n\n/new:\nfresh\nhigh\nwritten\n"
    if IS_ROOT:  # nothing of a cell reaches the store
        assert sorted(p.name for p in (store.path / "layers" / high).iterdir()) == ["d", "f", "new"]


def test_as_many_layers_as_an_image_may_have(store):
    layers = [store.base] + [store.layer({"n/%02d" % i: "%d\n" % i, "last": "%d\n" % i}) for i in range(63)]
    store.add("docker.io/library/many:64", layers, Env=["PATH=/bin"])
    assert shell(store, "many:64", "set -- /n/*; echo $#; cat /last").out == b"63\n62\n"


def test_links_of_an_image_lead_nowhere_else(store):
    """Programs and users are looked up inside of the layers, wherever their links point."""
    evil = store.layer({"etc": Link("/etc"), "bin": Link("/proc/self/cwd"), "home": Link("/tmp"), "workspace": Link("/etc"), "dev": Link("/")})
    store.add("docker.io/library/evil:1", [evil], User="root", WorkingDir="/etc")
    r = image(store, "evil:1", "--json", "-c", "1")
    assert r.code != 0 and r.json["status"] != "ok", r


def test_receipt_and_result_name_the_image(store):
    r = shell(store, REF, "true", "--json", "--receipt")
    assert r.json["image"] == REF and r.json["image_digest"].startswith("sha256:"), r.json


def test_damage_is_an_error(store):
    digest = store.add("docker.io/library/damaged:1", [store.base])
    blob = store.path / "blobs/sha256" / digest[7:]
    blob.write_bytes(blob.read_bytes().replace(b"linux", b"linuX") + b" ")
    r = shell(store, "damaged:1", "true")
    assert r.code == 125 and b"damaged" in r.err or digest[7:20].encode() in r.err, r


def test_no_store(tmp_path):
    r = run("run", "--image", "small:1", "--image-store", str(tmp_path / "none"), "1")
    assert r.code == 125 and b"caisson image pull" in r.err, r


def test_what_is_no_reference(store):
    r = shell(store, "Not An Image", "true")
    assert r.code == 125 and b"--image" in r.err, r


def test_python_of_the_image(store):
    py = store.layer(python_layer)
    store.add("docker.io/library/py:1", [store.base, py], Env=["PATH=/usr/local/bin:/usr/bin:/bin"], Cmd=["python3"])
    r = image(store, "py:1", "import os, sys; print(sys.executable, os.path.exists('/usr/bin/bash'))")
    assert r.out == b"/usr/bin/python3 False\n", r
    assert image(store, "py:1", input=b"print(6 * 7)\n").out == b"42\n"
