# SPDX-License-Identifier: Apache-2.0
"""test_image_store_full.py - A pull without room reports this, leaves nothing, and blocks no other command.

The store is a small disk of its own, and a daemon has sandboxes of an image in it. Pulls find that disk full at each place where it
can be: at their first file, while a layer is loaded, while one is unpacked, without inodes.
"""
import contextlib
import io
import os
import subprocess
import tarfile
import tempfile
from pathlib import Path

import pytest


from daemon_lib import Daemon  # noqa: E402
from image_lib import Layout, Misbehaving, entry, tar  # noqa: E402
from layers_lib import SMALL, Store, programs_layer  # noqa: E402
from lib import CAISSON, landed, session  # noqa: E402
from scarce_lib import disk, fill, fill_inodes, free  # noqa: E402

quick = pytest.mark.quick
GOOD = "docker.io/library/good:1"
MIB = 1 << 20
FULL = "No space left on device. The image store's disk is full: free space, for example with 'caisson image prune'"


def programs():
    """The files that a cell of an image needs, as a layer."""
    out = io.BytesIO()
    with tempfile.TemporaryDirectory() as top, tarfile.open(fileobj=out, mode="w") as t:
        programs_layer(Path(top), *SMALL)
        t.add(top, "/")
    return out.getvalue()


def names_in(store):
    return sorted(str(p.relative_to(store)) for p in store.rglob("*") if "ballast" not in p.parts and p.name != "ballast")


def leave(where, room):
    """All of its bytes but so many."""
    st = os.statvfs(where)
    with open(where / "ballast", "xb") as f:
        os.posix_fallocate(f.fileno(), 0, st.f_bavail * st.f_frsize - room)


def which(d, image):
    r = d.request("POST", "/v1/run_shell", {"script": "cat /etc/which", "image": image})
    return r.status, r.json.get("stdout")


def caisson_image(verb, store, *args):
    return subprocess.run([str(CAISSON), "image", verb, "--store", str(store), *args], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=300)


# Which part of the disk is full, and what an image then lacks.
PLACES = {
    "unpacking": (lambda where: leave(where, 12 * MIB), lambda: bytes(40 * MIB)),
    "loading": (lambda where: leave(where, 2 * MIB), lambda: os.urandom(4 * MIB)),
    "all": (fill, lambda: b"1"),
    "inodes": (fill_inodes, lambda: b"1"),
}


@pytest.mark.parametrize("place", [pytest.param(p, marks=quick if p == "unpacking" else ()) for p in PLACES])
def test_image_store_full(place, stopped_by):
    fill_it, content = PLACES[place]
    with tempfile.TemporaryDirectory(prefix="l-", dir=session().dir) as top, contextlib.ExitStack() as stack:
        store = stack.enter_context(disk(Path(top) / "store", "size=128m,nr_inodes=4k"))
        s = Store(store)
        s.add(GOOD, [s.layer(lambda r: programs_layer(r, *SMALL), {"etc/which": "good"})], Env=["PATH=/bin"])
        assert caisson_image("prune", store).returncode == 0  # which makes the same files as any change
        registry = Misbehaving(Layout(Path(top) / "image", [programs(), tar(entry("etc/which", b"new"), entry("f", content()))]))
        stack.callback(registry.close)
        d = stack.enter_context(Daemon("--image-store", store, "--pool", 1))
        front, before = d.pid, names_in(store)

        fill_it(store)
        r = caisson_image("pull", store, "--quiet", registry.ref)
        landed(r.returncode == 1 and not r.stdout, r)
        assert r.stderr.endswith(FULL + "\n") and r.stderr.count("\n") == 1, r
        assert names_in(store) == before, "something is left of it"
        assert which(d, GOOD) == (200, "good") and d.request("POST", "/v1/run_shell", {"script": "true", "image": registry.ref}).code == "image_unavailable"

        free(store)
        assert caisson_image("pull", store, "--quiet", registry.ref).returncode == 0
        fill(store)  # removing images makes room on a full disk
        assert caisson_image("rm", store, registry.ref).returncode == 0
        free(store)
        assert caisson_image("prune", store).returncode == 0 and names_in(store) == before, "rm left something"
        assert caisson_image("pull", store, "--quiet", registry.ref).returncode == 0
        assert which(d, registry.ref) == (200, "new") and which(d, GOOD) == (200, "good")
        assert d.pid == front and d.p.poll() is None
    stopped_by("parts and trees are removed; a reserve for what removes")
