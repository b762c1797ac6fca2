# SPDX-License-Identifier: Apache-2.0
"""test_packages_images.py - Packages in sandboxes of stored images: made with that image, and only for it.

A package reports which image made it: its build reads a file that only that image has.
"""
import contextlib
import os
import shutil
import signal
import sqlite3
import subprocess
import tempfile
from pathlib import Path

import pytest

from box_lib import Box
from egress_lib import certificate
from integ_lib import needs_root
from layers_lib import SMALL, Store, copy_in, libraries, programs_layer, python_layer
from package_lib import INDEX, Index, install, sdist, tarball, trees, wheel
from process import HANG, wait_until

PATH = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
WHICH = "import os\nsaid = open('/etc/which').read() if os.path.exists('/etc/which') else 'host'"
NPM = "/usr/lib/node_modules/npm"
DIST = "usr/lib/python3/dist-packages/"


def pip_layer(root):
    """The pip of this machine's python3."""
    said = subprocess.run(["/usr/bin/python3", "-c", "import pip; print(pip.__path__[0])"], capture_output=True, text=True)
    if said.returncode:
        pytest.skip("no pip of the distribution here to make an image of")
    shutil.copytree(said.stdout.strip(), root / "usr/lib/python3/dist-packages/pip")
    if os.path.isdir("/usr/share/python-wheels"):
        shutil.copytree("/usr/share/python-wheels", root / "usr/share/python-wheels")


def own(name, requires=(), compiled=None):
    """A package of the image, with metadata as Debian writes it. compiled: the content of its compiled module, which nobody loads."""
    info = DIST + name + "-1.0.egg-info/"
    files = {DIST + name + "/__init__.py": "VERSION = '1.0'\n", info + "PKG-INFO": "Metadata-Version: 2.1\nName: %s\nVersion: 1.0\n" % name,
             info + "requires.txt": "".join(r + "\n" for r in requires), info + "top_level.txt": name + "\n"}
    return files if compiled is None else {**files, DIST + name + "/_c.so": compiled}


def node_layer(root):
    """This machine's node, and its npm if that is complete."""
    if not os.path.isfile("/usr/bin/node") or not os.path.isfile(NPM + "/bin/npm-cli.js"):
        pytest.skip("no node with an npm in %s here to make an image of" % NPM)
    copy_in(root, "/usr/bin/node")
    copy_in(root, "/usr/bin/env")
    for lib in libraries("/usr/bin/node", "/usr/bin/env"):
        copy_in(root, lib)


@pytest.fixture(scope="module")
def store():
    path = Path(tempfile.mkdtemp(prefix="caisson-images-"))
    s = Store(path / "store")
    s.base = s.layer(lambda r: programs_layer(r, *SMALL))
    s.python, s.pip = s.layer(python_layer), s.layer(pip_layer)
    for name in ("one", "two"):
        s.add("docker.io/library/%s:1" % name, [s.base, s.python, s.pip, s.layer({"etc/which": name})], Env=[PATH, "PIP_INDEX_URL=http://127.0.0.1:9/"])
    s.add("docker.io/library/nopip:1", [s.base, s.python], Env=[PATH])
    s.add("docker.io/library/oldpip:1", [s.base, s.python, s.layer({"usr/lib/python3/dist-packages/pip/__init__.py": "__version__ = '20.3.4'\n"})], Env=[PATH])
    s.add("docker.io/library/nothing:1", [s.base], Env=["PATH=/bin"])
    numlib = own("numlib", compiled=b"\x7fELF")
    s.add("docker.io/library/science:1", [s.base, s.python, s.pip, s.layer(
        numlib, own("framelib", compiled=b"\x7fELF\0numlib.core\0"), own("plotlib", ["numlib<2"]), own("reader", ["numlib"], b"\x7fELF\0xnumlib\0"))], Env=[PATH])
    s.add("docker.io/library/arrows:1", [s.base, s.python, s.pip, s.layer(own("numpy"), own("pandas", ["numpy<2"]))], Env=[PATH])
    s.add("docker.io/library/stuck:1", [s.base, s.python, s.pip, s.layer(numlib, own("lonely", compiled=b"\x7fELF\0numlib\0"))], Env=[PATH])
    yield s
    shutil.rmtree(path, ignore_errors=True)


@pytest.fixture(scope="module")
def index(store, tmp_path_factory):
    files = tmp_path_factory.mktemp("files")
    sdist(files, "homemade", WHICH)
    wheel(files, "plain")
    wheel(files, "learner", requires=["numlib", "framelib>=1"])
    wheel(files, "modern", requires=["numlib>=2"])
    wheel(files, "numlib", "2.0")
    for name in ("framelib", "plotlib"):
        wheel(files, name, "2.0", requires=["numlib>=2"])
    for name, version in (("pyarrow", "25.0.1"), ("pyarrow", "26.0.0"), ("numpy", "2.4"), ("pandas", "3.0")):
        wheel(files, name, version)
    tarball(files / "npm", "grown", "1.1.0", bin={"grow": "grow.js"}, files={"grow.js": "#!/usr/bin/env node\nconsole.log('grown')\n"})
    tarball(files / "npm", "app", dependencies={"helper": "^2.0.0"}, files={"index.js": "module.exports = 'app with ' + require('helper')\n"})
    tarball(files / "npm", "helper", "2.0.0")
    i = Index(tmp_path_factory.mktemp("index"), files, "--image-store", str(store.path))
    yield i
    i.close()


def add(box, *packages, **fields):
    r = box.post("/packages", {"packages": list(packages), **fields})
    assert r.status == 200, r
    return r.json["cached"]


def said(box):
    r = box.post("/execute", {"code": "import homemade; print(homemade.SAID)"}).json
    return r["stdout"].strip() or r["stderr"]


def retag(store, name, which):
    """Let the name stand for another image."""
    return store.add("docker.io/library/%s:1" % name, [store.base, store.python, store.pip, store.layer({"etc/which": which})], Env=[PATH])


def test_made_with_the_image_and_shared_with_none_but_it(index, store):
    """Nor with an image that gets the same name later. The image's own configuration of an index is ignored."""
    d = index.daemon
    with Box(d) as host, Box(d, image="one:1") as one, Box(d, image="two:1") as two:
        assert not add(host, "homemade") and said(host) == "host"
        assert not add(one, "homemade") and said(one) == "one", "a tree of another image was used"
        assert not add(two, "homemade") and said(two) == "two"
        assert len(trees(d)) == 3
        before = len(index.asked)
        with Box(d, image="one:1") as other:
            assert "No module" in said(other), "another sandbox's"
            assert add(other, "homemade") and said(other) == "one"
            assert other.exec("python3", "-c", "import homemade; print(homemade.SAID)")["stdout"] == "one\n"
        assert len(index.asked) == before, "without the index"
        retag(store, "one", "later")

        def is_later():
            r = d.post("/v1/run_python", {"code": "print(open('/etc/which').read())", "image": "one:1"})
            assert r.status == 200, r
            return r.json["stdout"] == "later\n"
        assert wait_until(is_later)
        with Box(d, image="one:1") as later:
            assert not add(later, "homemade")
            assert said(later) == "later" and said(one) == "one"
        assert not add(one, "plain"), "a sandbox of the old image, which has no name any more, lost its packages"
        assert one.post("/execute", {"code": "import plain; print(plain.VERSION)"}).json["stdout"] == "1.0\n"


def test_for_all_of_a_callers_sandboxes_of_the_daemons_own_image(index):
    assert install(index.daemon, "homemade").status == 200
    with Box(index.daemon) as own, Box(index.daemon, image="two:1") as two:
        assert said(own) == "host"
        assert "No module" in said(two) and two.get("/packages").json["packages"] == []


@pytest.mark.parametrize("image,language,words", [
    ("nopip:1", "python", ["nopip", "neither uv", "nor pip"]), ("oldpip:1", "python", ["20.3.4", "too old"]),
    ("nothing:1", "python", ["nothing", "has no python3"]), ("nothing:1", "javascript", ["has no node"])])
def test_image_that_can_not_install(index, image, language, words):
    """The error names what is missing, and the remedy; nothing is left of the attempt."""
    before = trees(index.daemon)
    with Box(index.daemon, image=image) as box:
        r = box.post("/packages", {"packages": ["grown" if language == "javascript" else "plain"], "language": language})
        assert (r.status, r.error["code"]) == (501, "no_installer"), r
        assert all(w in r.error["message"] for w in words), r
        assert ("npm" if language == "javascript" else "pip (22.2") in r.error["hint"], r
        assert box.shell("echo well")["stdout"] == "well\n"
    assert trees(index.daemon) == before
    assert wait_until(lambda: index.daemon.health()["sandboxes"]["live"] == 0)


# ---- beside the packages of the image ---------------------------------------------------------------------------------

def origins(r):
    assert r.status == 200, r
    return {p["name"]: (p["version"], p["origin"]) for p in r.json["packages"]}


def versions(box, *names):
    r = box.post("/execute", {"code": "import %s; print(%s)" % (", ".join(names), ", ".join(n + ".VERSION" for n in names))}).json
    return r["stdout"].split() or r["stderr"]


def test_packages_of_the_image_are_used(index):
    """The index has only a newer version of them. A request that they satisfy fetches nothing."""
    with Box(index.daemon, image="science:1") as box:
        before = len(index.asked)
        r = box.post("/packages", {"packages": ["numlib"]})
        assert origins(r) == {"numlib": ("1.0", "image")} and r.json["files"] == 0 and len(index.asked) == before, r
        r = box.post("/execute", {"code": "%pip install numlib"}).json
        assert r["stdout"] == "Already in the image: numlib 1.0\n", r
        r = box.post("/packages", {"packages": ["learner"]})
        assert origins(r) == {"learner": ("1.0", "installed"), "numlib": ("1.0", "image"), "framelib": ("1.0", "image")}, r
        assert versions(box, "learner", "numlib", "framelib") == ["1.0", "1.0", "1.0"]
        listed = {p["name"]: p for p in box.get("/packages").json["packages"]}
        assert set(listed) == {"learner", "numlib", "framelib"} and all(p["active"] and p["request"] == "learner" for p in listed.values()), listed
        r = box.post("/packages", {"packages": ["numlib>=2"]})
        assert {n: v for n, (v, _) in origins(r).items()} == {"numlib": "2.0", "framelib": "2.0", "plotlib": "2.0", "learner": "1.0"}, "with all that uses it"
        assert {p["version"] for p in box.get("/packages").json["packages"] if p["name"] == "numlib" and p["active"]} == {"2.0"}
        r = box.post("/packages", {"packages": ["numlib<2", "modern"]})
        assert (r.status, r.error["code"]) == (409, "package_conflict") and "modern 1.0 depends on numlib>=2" in r.error["message"], r


def test_packages_of_the_image_that_would_break_come_along(index):
    """framelib is built for the old numlib, which its metadata does not tell; plotlib requires it. reader works with any."""
    new = {"numlib": ("2.0", "installed"), "framelib": ("2.0", "installed"), "plotlib": ("2.0", "installed")}
    with Box(index.daemon, image="science:1") as box, Box(index.daemon, image="science:1") as other:
        r = box.post("/packages", {"packages": ["modern"]})
        assert origins(r) == {"modern": ("1.0", "installed"), **new}, r
        assert versions(box, "modern", "numlib", "framelib", "plotlib", "reader") == ["1.0", "2.0", "2.0", "2.0", "1.0"]
        assert {p["name"]: p.get("replaces") for p in box.get("/packages").json["packages"]} == {"modern": None, **dict.fromkeys(new, "1.0")}
        assert versions(other, "numlib") == ["1.0"]
        r = other.post("/execute", {"code": "%pip install -U numlib"}).json
        assert all(n + " 2.0" in r["stdout"] for n in new) and "numlib was imported before" in r["stdout"], r
        assert other.exec("python3", "-c", "import numlib, plotlib; print(numlib.VERSION, plotlib.VERSION)")["stdout"] == "2.0 2.0\n"


def test_what_the_metadata_does_not_tell(index):
    """pyarrow does not require numpy, and since version 26 does not load beside one before 2.0."""
    with Box(index.daemon, image="arrows:1") as box:
        assert origins(box.post("/packages", {"packages": ["pyarrow==25.0.1"]})) == {"pyarrow": ("25.0.1", "installed")}
    with Box(index.daemon, image="arrows:1") as box:
        r = box.post("/packages", {"packages": ["pyarrow"]})
        assert origins(r) == {"pyarrow": ("26.0.0", "installed"), "numpy": ("2.4", "installed"), "pandas": ("3.0", "installed")}, r


def test_package_of_the_image_that_no_version_can_follow(index):
    before = trees(index.daemon)
    with Box(index.daemon, image="stuck:1") as box:
        r = box.post("/packages", {"packages": ["modern"]})
        assert (r.status, r.error["code"]) == (409, "package_conflict"), r
        assert all(w in r.error["message"] for w in ("numlib 2.0", "lonely 1.0", "built for numlib 1.0")), r
    assert trees(index.daemon) == before
@pytest.fixture(scope="module")
def node(store):
    """Layers with node, and with npm."""
    return store.layer(node_layer), store.layer(lambda r: shutil.copytree(NPM, r / NPM[1:], symlinks=True), {
        "usr/bin/npm": '#!/bin/sh\nexec /usr/bin/node %s/bin/npm-cli.js "$@"\n' % NPM})


@pytest.mark.slow
def test_javascript_without_a_python(index, store, node):
    """node installs its own packages; an image without npm reports this."""
    store.add("docker.io/library/bare:1", [store.base, node[0]], Env=[PATH])
    store.add("docker.io/library/node:1", [store.base, *node], Env=[PATH])
    with Box(index.daemon, image="node:1") as box, Box(index.daemon, image="bare:1") as bare:
        assert "not found" in box.shell("python3 -c 1")["stderr"]
        assert not add(box, "grown", language="javascript")
        r = box.post("/execute", {"code": "console.log(require('grown'))", "language": "javascript"}).json
        assert r["stdout"] == "1.1.0\n", r
        assert box.shell("grow")["stdout"] == "grown\n"
        r = bare.post("/packages", {"packages": ["grown"], "language": "javascript"})
        assert (r.status, r.error["code"]) == (501, "no_installer") and "no npm" in r.error["message"], r


@pytest.mark.slow
def test_javascript_modules_of_the_image_keep_their_own(index, store, node):
    """Modules in NODE_PATH find each other along it, as those of Debian's packages do. A package brings its own version of a
    dependency, and the image's module still finds the image's, until somebody asks for another version by name."""
    store.add("docker.io/library/modules:1", [store.base, *node, store.layer({
        "opt/modules/tool/index.js": "module.exports = 'tool with ' + require('helper')\n", "opt/modules/tool/package.json": '{"name": "tool", "version": "1.0.0"}',
        "opt/modules/helper/index.js": "module.exports = '1.0.0'\n", "opt/modules/helper/package.json": '{"name": "helper", "version": "1.0.0"}'})],
        Env=[PATH, "NODE_PATH=/opt/modules"])
    code = {"code": "console.log(require('app'), '/', require('tool'), '/', require('helper'), '/', (await import('app')).default)", "language": "javascript"}
    with Box(index.daemon, image="modules:1") as box:
        assert not add(box, "app", language="javascript")
        assert {p["name"] for p in box.get("/packages").json["packages"]} == {"app", "helper"}
        assert box.post("/execute", code).json["stdout"] == "app with 2.0.0 / tool with 1.0.0 / 1.0.0 / app with 2.0.0\n"
        assert box.exec("node", "-p", "require('app') + ' / ' + require('tool')")["stdout"] == "app with 2.0.0 / tool with 1.0.0\n"
        assert not add(box, "helper", language="javascript")
        assert box.exec("node", "-p", "require('helper')")["stdout"] == "2.0.0\n"


@pytest.mark.slow
def test_outlives_the_front_and_goes_when_unused(store, tmp_path):
    files = tmp_path / "files"
    files.mkdir()
    sdist(files, "homemade", WHICH)
    i = Index(tmp_path, files, "--image-store", str(store.path), "--package-keep", "2s")
    d = i.daemon
    try:
        with Box(d, image="two:1") as box:
            assert not add(box, "homemade") and len(trees(d)) == 1
            old = d.pid
            os.kill(old, signal.SIGKILL)
            assert wait_until(lambda: d.find_front() not in (None, old)) and d.wait_ready()
            assert said(box) == "two"
            with Box(d, image="two:1") as other, Box(d) as host:
                assert add(other, "homemade"), "known to the next front"
                assert not add(host, "homemade") and said(host) == "host"
            assert wait_until(lambda: len(trees(d)) == 1, HANG), "one is in use"
            assert said(box) == "two"
        assert wait_until(lambda: trees(d) == [], HANG), trees(d)
    finally:
        i.close()


@pytest.mark.slow
def test_credentials_of_the_index_are_for_no_image(store, tmp_path):
    """A third-party image fetches from an index that requires credentials, and trusts the gate although it has no certificates."""
    files = tmp_path / "files"
    files.mkdir()
    sdist(files, "nosy", """
        import glob
        for path in glob.glob("/proc/[0-9]*/cmdline"):
            said += repr(open(path, "rb").read())
    """)
    i = Index(tmp_path, files, "--image-store", str(store.path), user="me:secret-word")
    try:
        with Box(i.daemon, image="two:1") as two:
            assert not add(two, "nosy")
            found = two.exec("python3", "-c", "import nosy; print([w in nosy.SAID for w in ('caisson-secret-', 'secret-word')])")["stdout"]
            assert found == "[True, False]\n", "the build did not find the placeholder"
    finally:
        i.close()


@pytest.mark.slow
def test_a_store_that_did_not_note_images(store, tmp_path):
    """Its trees were made with the daemon's own image: they are found for that image, and for no other."""
    files = tmp_path / "files"
    files.mkdir()
    sdist(files, "homemade", WHICH)
    i = Index(tmp_path, files, "--image-store", str(store.path))
    d = i.daemon
    try:
        assert install(d, "homemade").status == 200
        d.stop()
        with contextlib.closing(sqlite3.connect(d.state / "store/state.db")) as db:
            assert db.execute("UPDATE tree SET image=''").rowcount == 1
            db.commit()
        d.start()
        d.wait_ready()
        with Box(d) as host, Box(d, image="two:1") as two:
            assert add(host, "homemade") and not add(two, "homemade")
            assert (said(host), said(two)) == ("host", "two")
    finally:
        i.close()


# ---- certificates ---------------------------------------------------------------------------------------------------

BUNDLE = "/etc/ssl/certs/ca-certificates.crt"
TRUSTS = 'mount --bind "$0" %s && exec "$@"' % BUNDLE  # in a mount namespace of the daemon's own


@needs_root
@pytest.mark.skipif(not os.path.exists(BUNDLE), reason="the certificates of this machine are not in " + BUNDLE)
@pytest.mark.parametrize("trusted_by", ["machine", "image", "nobody"])
def test_certificates_of_the_machine_and_of_the_image_are_trusted(store, tmp_path, trusted_by):
    """The index has a certificate that is not public, as behind a proxy that inspects TLS. The image two:1 has no certificates."""
    files, good, bad = tmp_path / "files", tmp_path / "good", tmp_path / "bad"
    for d in (files, good, bad):
        d.mkdir()
    wheel(files, "plain")
    tarball(files / "npm", "grown")
    authority, strange = certificate(good, "authority.test"), certificate(bad, "authority.test")
    tls = certificate(tmp_path, INDEX, by=authority)
    images = [("two:1", "python", "plain")]
    if trusted_by == "image":
        store.add("docker.io/library/wary:1", [store.base, store.python, store.pip, store.layer({BUNDLE: authority[0].read_text()})], Env=[PATH])
        images = [("wary:1", "python", "plain")]
    images += [("host", "python", "plain"), ("host", "javascript", "grown")] if trusted_by == "machine" else []
    wrapper = ("unshare", "-m", "sh", "-c", TRUSTS, (authority if trusted_by == "machine" else strange)[0])
    i = Index(tmp_path, files, "--image-store", str(store.path), tls=tls, wrapper=wrapper)
    try:
        for image, language, package in images:
            with Box(i.daemon, **({} if image == "host" else {"image": image})) as box:
                r = box.post("/packages", {"packages": [package], "language": language})
                if trusted_by == "nobody":
                    assert r.code == "index_unavailable" and "certificate" in r.error["message"], r
                else:
                    assert r.status == 200, (image, language, r.body)
    finally:
        i.close()
