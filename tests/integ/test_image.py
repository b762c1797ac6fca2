# SPDX-License-Identifier: Apache-2.0
"""test_image.py - `caisson image` against a real registry, and against one that misbehaves."""
import fcntl
import json
import os
import shutil
import signal
import ssl
import subprocess
import tarfile
import time
from pathlib import Path

import pytest

from image_lib import (ID_BASE, OCI, PASSWORD, Layout, Misbehaving, Registry, compress, directory, entry, hardlink, image, images,
                       in_tmp, inspect, layer_dirs, layers_in, merged, nothing_in, sha256, symlink, tar, unpacked_by_umoci)
from integ_lib import USER, as_user, copy_tree, needs_program, needs_root, start
from process import HANG, wait_until

pytestmark = [needs_program("docker-registry"), needs_program("skopeo"), needs_program("umoci"), needs_program("htpasswd", "apache2-utils"),
              needs_program("zstd")]

BOTTOM = tar(directory("etc"), entry("etc/gone", b"1"), entry("etc/stays", b"2", SCHILY__xattr__user__color="blue"),
             directory("var"), directory("var/old", uid=33, gid=33), entry("var/old/a", b"3"), entry("var/old/b", b"4"),
             directory("bin"), entry("bin/tool", b"5" * 5000, mode=0o755), hardlink("bin/other", "bin/tool", mode=0o755),
             symlink("bin/sh", "tool"), directory("tmp", mode=0o1777), entry("bin/kept", b"", uid=1000, gid=1000, mode=0o640),
             directory("dir"), entry("dir/x", b"6"), entry("was-file", b"7"), entry("n\u00e4me \u2603", b"8"),
             entry("p/" + "long" * 60, b"9"))
TOP = tar(directory("etc"), entry("etc/.wh.gone"), directory("var"), directory("var/old", uid=34), entry("var/old/.wh..wh..opq"),
          entry("var/old/new", b"n"), entry(".wh.dir"), directory("was-file"), entry("was-file/y", b"y"),
          entry("bin/sh", b"#!", mode=0o755), directory("bin", mode=0o711))


@pytest.fixture
def store(tmp_path):
    return tmp_path / "store"


@pytest.fixture
def registry(tmp_path):
    r = Registry(tmp_path / "registry", password=True)
    yield r
    r.close()


@pytest.fixture
def bad(tmp_path):
    made = []

    def make(layout, **kw):
        made.append(Misbehaving(layout, **kw))
        return made[-1]

    yield make
    for m in made:
        m.close()


# ---- a real registry -----------------------------------------------------------------------------------------

@needs_root
@pytest.mark.parametrize("how", ["gzip", "zstd"])
def test_pull_agrees_with_umoci(tmp_path, store, registry, how):
    layout = Layout(tmp_path / "img", [BOTTOM, TOP], how, config={"Env": ["A=b"], "Cmd": ["/bin/sh"], "WorkingDir": "/tmp", "User": "1000"})
    ref = registry.push(layout, "a/b:1")
    r = image("pull", ref, "--authfile", registry.authfile(), store=store)
    assert r.code == 0, r
    assert r.out.split() == [ref.encode(), layout.manifest["digest"].encode()]
    assert inspect(store, ref)["env"] == ["A=b"]
    # umoci does not know zstd: it gets the same archives with gzip.
    same = layout if how == "gzip" else Layout(tmp_path / "gzip", [BOTTOM, TOP])
    ours, theirs = merged(store, ref), unpacked_by_umoci(same, "latest", tmp_path / "umoci")
    # A directory that no archive names has the time at which it was made.
    for tree in (ours, theirs):
        for name in (".", "p"):
            tree[name].pop("mtime")
    assert ours == theirs
    assert "etc/gone" not in ours and "dir" not in ours and sorted(n for n in ours if n.startswith("var/old")) == ["var/old", "var/old/new"]
    assert in_tmp(store) == []


def test_wrong_password(tmp_path, store, registry):
    ref = registry.push(Layout(tmp_path / "img", [BOTTOM]), "a")
    r = image("pull", ref, "--authfile", registry.authfile(password="wrong"), store=store)
    assert r.code == 4 and b"credentials" in r.err, r
    r = image("pull", ref, store=store, env={"HOME": str(tmp_path)})
    assert r.code == 4 and b"login" in r.err, r
    assert nothing_in(store)
    assert PASSWORD.encode() not in r.err
    r = image("pull", ref.rpartition("/")[0] + "/nobody", "--authfile", registry.authfile(), store=store)
    assert r.code == 5 and b"nobody" in r.err, r


def test_corrupted_blob(tmp_path, store, registry):
    """One byte of a layer differs: an error with this reason, and nothing is left."""
    layout = Layout(tmp_path / "img", [BOTTOM, TOP])
    ref = registry.push(layout, "a")
    blob = registry.stored(layout.layers[0]["digest"])
    data = bytearray(blob.read_bytes())
    data[len(data) // 2] ^= 1
    blob.write_bytes(data)
    r = image("pull", ref, "--authfile", registry.authfile(), store=store)
    assert r.code == 7 and layout.layers[0]["digest"].encode() in r.err, r
    assert not images(store) and not layers_in(store)
    assert [n for n in in_tmp(store) if layout.layers[0]["digest"][7:] in n] == []
    data[len(data) // 2] ^= 1
    blob.write_bytes(data)
    assert image("pull", ref, "--authfile", registry.authfile(), store=store).code == 0


def test_layers_are_shared_and_collected(tmp_path, store, registry):
    one = registry.push(Layout(tmp_path / "one", [BOTTOM]), "one")
    two = registry.push(Layout(tmp_path / "two", [BOTTOM, TOP]), "two")
    auth = registry.authfile()
    assert image("pull", one, "--authfile", auth, store=store).code == 0
    r = image("pull", two, "--authfile", auth, "--json", store=store)
    assert json.loads(r.out.splitlines()[-1])["loaded"] == 1, r
    assert len(layers_in(store)) == 2
    assert {i["ref"] for i in images(store)} == {one + ":latest", two + ":latest"}

    with (store / "leases" / inspect(store, two)["digest"][7:]).open() as lease:
        fcntl.flock(lease, fcntl.LOCK_SH)
        r = image("rm", two, store=store)
        assert r.code == 6 and b"in use" in r.err, r
        assert image("prune", "--all", store=store).code == 0
        assert [i["ref"] for i in images(store)] == [two + ":latest"]
        assert len(layers_in(store)) == 2
    assert image("rm", two, store=store).code == 0
    assert nothing_in(store)
    assert image("rm", two, store=store).code == 5


# ---- a registry that misbehaves -------------------------------------------------------------------------------

def test_interrupted_is_resumed(tmp_path, store, bad):
    """After a kill in the middle of a layer, the next pull asks only for the rest; and so does a pull whose connections are cut."""
    big = tar(entry("big", os.urandom(3 << 20)))
    layout = Layout(tmp_path / "img", [big], "zstd")
    digest, size = layout.layers[0]["digest"], layout.layers[0]["size"]
    server = bad(layout)
    server.stall[digest] = 1 << 20
    p = start("image", "pull", server.ref, "--store", store)
    part = store / "tmp" / ("part-" + digest[7:])
    assert wait_until(lambda: part.exists() and part.stat().st_size == 1 << 20, HANG)
    p.send_signal(signal.SIGKILL)
    p.communicate()
    assert not images(store)

    server.cut[digest] = [500_000, 700_000]
    r = image("pull", server.ref, "--json", store=store)
    assert r.code == 0, r
    asked = [h.get("Range") for h in server.asked("/blobs/" + digest)]
    assert asked == [None, "bytes=%d-" % (1 << 20), "bytes=%d-" % ((1 << 20) + 500_000), "bytes=%d-" % ((1 << 20) + 1_200_000)]
    assert json.loads(r.out.splitlines()[-1])["bytes"] == size - (1 << 20)
    assert (layer_dirs(store, server.ref)[0] / "big").stat().st_size == 3 << 20


@pytest.mark.slow
def test_what_can_not_be_resumed_begins_anew(tmp_path, store, bad):
    layout = Layout(tmp_path / "img", [tar(entry("big", os.urandom(200_000)))], "")
    digest = layout.layers[0]["digest"]
    server = bad(layout)
    server.ranges = False
    server.cut[digest] = [50_000]
    assert image("pull", server.ref, store=store).code == 0
    image("rm", server.ref, store=store)

    # The existing part may be wrong.
    server.ranges = True
    (store / "tmp" / ("part-" + digest[7:])).write_bytes(b"\0" * 1000)
    assert image("pull", server.ref, store=store).code == 0


@pytest.mark.slow
def test_try_again_later(tmp_path, store, bad):
    server = bad(Layout(tmp_path / "img", [BOTTOM]))
    server.errors, server.retry_after = [503, 429], "1"
    r = image("pull", server.ref, store=store)
    assert r.code == 0, r
    assert len(server.asked("/blobs/")) == 4  # two for the configuration that failed, and two that did not
    assert r.seconds >= 2


def test_redirects_carry_no_credentials(tmp_path, store, bad):
    layout = Layout(tmp_path / "img", [BOTTOM])
    server, elsewhere = bad(layout), bad(layout)
    server.token = "T0ken"
    server.redirect = "http://" + elsewhere.host
    assert image("pull", server.ref, store=store).code == 0
    assert elsewhere.asked("/blobs/") and not any("Authorization" in h for _, h in elsewhere.requests)
    shown = [h.get("Authorization") for h in server.asked("/blobs/")]
    assert shown and set(shown) == {"Bearer T0ken"}
    # The control: without the redirect it would have been refused.
    assert [h.get("Authorization") for h in server.asked("/manifests/")] == [None, "Bearer T0ken"]
    assert ["scope=repository%3Ax%3Apull" in p for p, _ in server.requests if p.startswith("/token")] == [True]


def test_redirects_that_are_not_followed(tmp_path, store, bad):
    server = bad(Layout(tmp_path / "img", [BOTTOM]))
    for to in ("file:///etc", "http://" + server.host):  # the second one leads to itself
        server.redirect = to
        r = image("pull", server.ref, store=store)
        assert r.code == 1 and b"redirects" in r.err, r
    assert not images(store)


def test_index_and_its_platforms(tmp_path, store, bad):
    layout = Layout(tmp_path / "img", [BOTTOM])
    server = bad(layout)

    def index(*platforms):
        rows = [dict(layout.manifest, platform={"os": o, "architecture": a}) for o, a in platforms]
        return json.dumps({"schemaVersion": 2, "mediaType": OCI + "index.v1+json", "manifests": rows}).encode(), OCI + "index.v1+json"

    server.manifest = index(("linux", "s390x"), ("unknown", "unknown"))
    r = image("pull", server.ref, store=store)
    assert r.code == 5 and b"linux/s390x" in r.err, r
    server.manifest = index(("linux", "s390x"), ("linux", "amd64"))
    assert image("pull", server.ref, store=store).code == 0
    assert inspect(store, server.ref)["digest"] == layout.manifest["digest"]


@pytest.mark.parametrize("manifest,type,says", [
    ({"schemaVersion": 1, "fsLayers": []}, "application/vnd.docker.distribution.manifest.v1+prettyjws", b"schema 1"),
    ({"schemaVersion": 2, "layers": [], "manifests": []}, OCI + "index.v1+json", b"both"),
    ({"schemaVersion": 2}, "text/html", b"neither"),
    ("<html>", "text/html", b"manifest"),
])
def test_manifests_that_are_refused(tmp_path, store, bad, manifest, type, says):
    server = bad(Layout(tmp_path / "img", [BOTTOM]))
    server.manifest = (manifest if isinstance(manifest, str) else json.dumps(manifest)).encode(), type
    r = image("pull", server.ref, store=store)
    assert r.code == 7 and says in r.err, r
    assert nothing_in(store)


@pytest.mark.slow
def test_by_digest(tmp_path, store, bad):
    layout = Layout(tmp_path / "img", [BOTTOM])
    server = bad(layout)
    digest = layout.manifest["digest"]
    assert image("pull", "%s/x@%s" % (server.host, digest), store=store).code == 0
    assert images(store)[0]["ref"] == "%s/x@%s" % (server.host, digest)
    other = sha256(b"{}")
    (layout.blobs / other[7:]).write_bytes(layout.blob(digest).read_bytes())
    r = image("pull", "%s/x@%s" % (server.host, other), store=store)
    assert r.code == 7 and other.encode() in r.err, r


@pytest.mark.slow
def test_certificates(tmp_path, store, bad):
    cert, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj", "/CN=x",
                    "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", key, "-out", cert], check=True, stderr=subprocess.DEVNULL)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(cert, key)
    server = bad(Layout(tmp_path / "img", [BOTTOM]), ssl_context=context)
    r = image("pull", server.ref, store=store)
    assert r.code == 8 and b"--ca" in r.err, r
    assert server.requests == []
    assert image("pull", server.ref, "--ca", cert, store=store).code == 0
    assert image("pull", server.ref, "--insecure", store=store).code == 0


def test_allowed(tmp_path, store, bad):
    server = bad(Layout(tmp_path / "img", [BOTTOM]))
    r = image("pull", server.ref, "--allow", "python,docker.io/*", store=store)
    assert r.code == 4 and b"not allowed" in r.err and server.requests == [], r
    assert image("pull", server.ref, "--allow", "python,%s/*" % server.host, store=store).code == 0


# ---- archives -----------------------------------------------------------------------------------------------------

def test_import(tmp_path, store):
    """A layout as a directory and as an archive, and an archive of docker save: the same layers."""
    layout = Layout(tmp_path / "img", [BOTTOM, TOP], tag="r.io/x/y:1")
    assert image("import", layout.path, store=store).out.split()[0] == b"r.io/x/y:1"
    packed = tmp_path / "img.tar"
    with tarfile.open(packed, "w") as t:
        t.add(layout.path, ".")
    r = image("import", packed, "--name", "packed", "--json", store=store)
    assert json.loads(r.out.splitlines()[-1])["ref"] == "docker.io/library/packed:latest", r
    saved = tmp_path / "saved.tar"
    subprocess.run(["skopeo", "--insecure-policy", "copy", "-q", "oci:%s:r.io/x/y:1" % layout.path, "docker-archive:%s:saved:2" % saved],
                   check=True, stdout=subprocess.DEVNULL)
    assert image("import", saved, store=store).out.split()[0] == b"docker.io/library/saved:2"
    assert len({tuple(layer_dirs(store, ref)) for ref in ("r.io/x/y:1", "packed", "saved:2")}) == 1
    assert in_tmp(store) == []
    for i in images(store):
        assert image("rm", i["ref"], store=store).code == 0
    assert nothing_in(store)


def test_import_of_other_than_images(tmp_path, store):
    (tmp_path / "empty").mkdir()
    nothing = tmp_path / "nothing.tar"
    nothing.write_bytes(tar(entry("a", b"1")))
    text = tmp_path / "text"
    text.write_text("no archive")
    layout = Layout(tmp_path / "img", [BOTTOM])
    for path, code, says in ((tmp_path / "empty", 7, b"oci-layout"), (nothing, 7, b"oci-layout"), (text, 7, b""), (tmp_path / "no", 5, b"open"),
                             (layout.path, 125, b"--name")):
        r = image("import", path, store=store)
        assert r.code == code and says in r.err, r
    blob = layout.blob(layout.layers[0]["digest"])
    blob.write_bytes(blob.read_bytes()[:-1] + b"x")
    r = image("import", layout.path, "--name", "x", store=store)
    assert r.code == 7 and b"damaged" in r.err, r
    assert nothing_in(store)


def test_a_layer_that_unpacks_to_something_else(tmp_path, store):
    """Its compressed bytes match the manifest; the unpacked ones do not match the configuration."""
    data = compress(BOTTOM, "gzip")
    layout = Layout(tmp_path / "img", [(data, sha256(TOP), "+gzip")], tag="x:1")
    r = image("import", layout.path, store=store)
    assert r.code == 7 and sha256(BOTTOM).encode() in r.err, r
    assert nothing_in(store)


@needs_root
def test_changed_layers_are_refused(tmp_path, store):
    """A byte, a mode, a name, a link, a whiteout: each is found, and named."""
    layout = Layout(tmp_path / "img", [BOTTOM, TOP], tag="x:1")
    assert image("import", layout.path, store=store).code == 0
    bottom, top = layer_dirs(store, "x:1")
    assert image("verify", store=store).out == b"docker.io/library/x:1 whole\n"

    def flip(path):
        times = path.stat()
        data = bytearray(path.read_bytes())
        data[0] ^= 1
        path.write_bytes(data)
        os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))

    stays, opaque = bottom / "etc/stays", top / "var/old"
    for change, back in ((lambda: flip(stays), lambda: flip(stays)), (lambda: stays.chmod(0o600), lambda: stays.chmod(0o644)),
                         (lambda: os.chown(stays, 0, 0), lambda: os.chown(stays, ID_BASE, ID_BASE)),
                         (lambda: os.removexattr(opaque, "user.overlay.opaque"), lambda: os.setxattr(opaque, "user.overlay.opaque", b"y"))):
        change()
        r = image("verify", "x:1", store=store)
        assert r.code == 7 and b"not what was unpacked" in r.err, r
        back()
        assert image("verify", "x:1", store=store).code == 0
    (top / "etc/gone").unlink()
    r = image("verify", store=store)
    assert r.code == 7 and top.name.encode() in r.err, r
    assert image("verify", "y", store=store).code == 5


# ---- other users, other moments -------------------------------------------------------------------------------------

@needs_root
def test_owners_are_of_a_range_that_owns_nothing_else(tmp_path, store):
    image("import", Layout(tmp_path / "img", [BOTTOM], tag="x:1").path, store=store)
    top = layer_dirs(store, "x:1")[0]
    assert (top / "etc").stat().st_uid == ID_BASE and (top / "var/old").stat().st_uid == ID_BASE + 33
    assert store.stat().st_mode & 0o777 == 0o700


@needs_root
def test_ordinary_user(shared_dir):
    """Without root everything is the user's, and goes again although modes forbid it."""
    home = shared_dir / "home"
    home.mkdir()
    os.chown(home, USER, USER)
    closed = tar(directory("closed", mode=0o500, uid=7), entry("closed/x", b"1", mode=0o000), directory("d", mode=0o000))
    layout = Layout(shared_dir / "img", [BOTTOM, TOP, closed], tag="x:1")
    user = dict(prefix=as_user(), env={"HOME": str(home), "XDG_DATA_HOME": None}, binary=copy_tree(shared_dir / "bin", also=["caisson-image", "caisson-image-fetch", "caisson-unpack"]))
    store = home / ".local/share/caisson/images"
    r = image("import", layout.path, store=store, **user)
    assert r.code == 0, r
    layers = layers_in(store)
    assert len(layers) == 3
    assert {p.lstat().st_uid for d in layers for p in d.rglob("*")} == {USER}
    assert image("rm", "x:1", store=store, **user).code == 0
    assert not list((store / "layers").iterdir()) and in_tmp(store) == []


def test_two_at_once(tmp_path, store, bad):
    """The second waits for the first, reports this, and has nothing left to load."""
    layout = Layout(tmp_path / "img", [tar(entry("big", os.urandom(100_000)))], "")
    server = bad(layout)
    digest = layout.layers[0]["digest"]
    server.stall[digest] = 1000
    first = start("image", "pull", server.ref, "--store", store)
    part = store / "tmp" / ("part-" + digest[7:])
    assert wait_until(lambda: part.exists() and part.stat().st_size == 1000, HANG)
    second = start("image", "pull", server.ref, "--store", store)
    assert b"waiting" in second.stderr.readline()
    server.ended.set()
    assert first.wait(HANG) == 0 and second.wait(HANG) == 0
    first.communicate()
    assert b"already here" in second.communicate()[1]


@pytest.mark.slow
def test_killed_at_any_moment(tmp_path, store, bad):
    """After each kill the store has the whole image or none, and the next pull works."""
    files = [entry("f%d" % i, os.urandom(2000)) for i in range(300)]
    layout = Layout(tmp_path / "img", [BOTTOM, tar(*files), TOP])
    server = bad(layout)
    whole = 0
    for i in range(40):
        p = start("image", "pull", server.ref, "--store", store)
        time.sleep(0.004 * i)  # not a wait for something: a moment like any other
        p.send_signal(signal.SIGKILL)
        p.communicate()
        if not (store / "refs").exists():
            assert image("ls", store=store).code in (0, 5)
            continue
        if images(store):
            whole += 1
            assert len(list((layer_dirs(store, server.ref)[1]).iterdir())) == 300
            assert image("rm", server.ref, store=store).code == 0
            assert not list((store / "layers").iterdir())
    assert image("pull", server.ref, store=store).code == 0
    assert in_tmp(store) == [] and not images(store)[0]["damaged"]
    shutil.rmtree(store)
    assert Path(layout.path).exists() and whole >= 0
