# SPDX-License-Identifier: Apache-2.0
"""test_packages_real.py - Packages that people use, from the indexes that they use; and uv beside pip. Run by `make packages`.

Tests whose index does not answer are skipped, with the reason; tests with an index of our own are in test_packages.py
and tests/hostile/test_hostile_packages.py.
"""
import hashlib
import os
import shutil
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from box_lib import Box
from package_lib import Index, install, trees, wheel
from process import BIN
from layers_lib import write_layer
from serve_lib import Daemon
from test_packages_images import origins, own

pytestmark = [pytest.mark.slow,
              pytest.mark.skipif(not os.environ.get("CAISSON_REAL_INDEX"), reason="asks the real indexes: make packages")]

PYPI, NPM = "https://pypi.org/simple", "https://registry.npmjs.org"
UV = BIN.parent / "package-tools" / "bin" / "uv"


def need(url):
    try:
        urllib.request.urlopen(url, timeout=15).close()
    except (OSError, urllib.error.URLError) as e:
        pytest.skip("%s does not answer: %s" % (url, e))


@pytest.fixture(scope="module")
def real(tmp_path_factory):
    with Daemon(tmp_path_factory.mktemp("real"), "--pool", "1", "--pip-index", PYPI, "--npm-registry", NPM, "--memory", "1G") as d:
        yield d


@pytest.mark.parametrize("package,code,said", [
    ("requests", "import requests; print(requests.Request('GET', 'http://a/', params={'b': 1}).prepare().url)", "http://a/?b=1\n"),
    ("numpy>=2.1", "import numpy; print(numpy.__file__.startswith('/packages/'), int(numpy.arange(5).sum()))", "True 10\n"),
    ("pandas>=2.2", "import pandas; print(pandas.__file__.startswith('/packages/'), int(pandas.DataFrame({'a': [1, 2]}).a.sum()))", "True 3\n")])
def test_from_pypi(real, package, code, said):
    need(PYPI + "/%s/" % package.partition(">")[0])
    with Box(real) as box:
        r = box.post("/packages", {"packages": [package]})
        assert r.status == 200 and not r.json["cached"], r
        assert box.post("/execute", {"code": code, "timeout": 60}).json["stdout"] == said
    with Box(real) as other:
        began = time.monotonic()
        r = other.post("/packages", {"packages": [package]})
        took = time.monotonic() - began
        assert r.json["cached"] and r.json["packages"], r
        print("%s again, in another sandbox: %.0f ms" % (package, took * 1000))


SCIENCE = """import warnings
warnings.simplefilter("error")
import %s, pandas, matplotlib.pyplot as plt
from mpl_toolkits.mplot3d import Axes3D
plt.plot(pandas.DataFrame({"a": [1, 2]}).a)
import numpy; print(numpy.__version__.split(".")[0])"""


@pytest.mark.parametrize("package,module,major,origin", [("scikit-learn", "sklearn", "1", "image"), ("numpy>=2", "numpy", "2", "installed")])
def test_beside_the_images_numpy(real, package, module, major, origin):
    """pandas and matplotlib of the image work with the installed package; those that a newer numpy would break come along."""
    need(PYPI + "/numpy/")
    told = subprocess.run(["/usr/bin/python3", "-c", "import numpy, scipy, pandas, matplotlib; print(numpy.__version__)"], capture_output=True, text=True)
    if not told.stdout.startswith("1."):
        pytest.skip("this machine's python3 has no numpy 1 with scipy, pandas and matplotlib")
    with Box(real) as box:
        assert box.post("/execute", {"code": "import sys"}).json["status"] == "ok", "the kernel runs before"
        assert box.post("/packages", {"packages": [package]}).status == 200
        r = box.post("/execute", {"code": SCIENCE % module, "timeout": 60}).json
        assert (r["status"], r["stdout"]) == ("ok", major + "\n"), r
        listed = {p["name"]: p["origin"] for p in box.get("/packages").json["packages"]}
        assert listed["numpy"] == origin and (origin == "image" or listed["pandas"] == listed["matplotlib"] == "installed"), listed


def test_from_npm(real):
    need(NPM + "/left-pad")
    with Box(real) as box:
        r = box.post("/packages", {"packages": ["left-pad"], "language": "javascript"})
        assert r.status == 200, r
        assert box.post("/execute", {"code": "console.log(require('left-pad')('7', 3, '0'))", "language": "javascript"}).json["stdout"] == "007\n"
        r = box.post("/packages", {"packages": ["lefft-pad"], "language": "javascript"})
        assert r.status in (403, 404), r


# ---- uv ---------------------------------------------------------------------------------------------------------

def get_uv():
    if not UV.exists():
        UV.parent.parent.mkdir(exist_ok=True)
        r = subprocess.run(["/usr/bin/python3", "-m", "pip", "install", "-q", "--no-deps", "--target", UV.parent.parent, "uv"],
                           capture_output=True, text=True, timeout=300)
        if r.returncode:
            pytest.skip("uv is not available from PyPI: %s" % r.stderr.strip()[-200:])
    return UV


def link(path, image):
    """A file or directory of this machine in the image, without a copy if that is possible."""
    to = image / str(path).lstrip("/")
    if to.exists() or not os.path.exists(path):
        return
    to.parent.mkdir(parents=True, exist_ok=True)
    real = os.path.realpath(path)
    if subprocess.run(["cp", "-rl", real, to], capture_output=True).returncode:
        shutil.rmtree(to, ignore_errors=True)
        subprocess.run(["cp", "-r", real, to], check=True)


def make_image(where, uv):
    """A directory with the python of this machine, pip, and uv."""
    image = where / "image"
    for d in ("usr/bin", "usr/lib", "usr/lib64", "usr/local/bin", "etc", "tmp", "proc", "dev"):
        (image / d).mkdir(parents=True)
    for d in ("bin", "lib", "lib64"):
        (image / d).symlink_to("usr/" + d)
    python = "python%d.%d" % sys.version_info[:2]
    for path in ("/usr/bin/" + python, "/usr/bin/env", "/usr/bin/dash", "/usr/lib/" + python, "/usr/lib/python3", "/usr/share/python-wheels",
                 "/etc/ssl/certs/ca-certificates.crt"):
        link(path, image)
    (image / "usr/bin/python3").symlink_to(python)
    (image / "usr/bin/sh").symlink_to("dash")
    (image / "tmp").chmod(0o1777)
    programs = [uv or "/usr/bin/env", "/usr/bin/" + python, "/usr/bin/env", "/usr/bin/dash", *Path("/usr/lib/%s/lib-dynload" % python).glob("*.so")]
    for line in subprocess.run(["ldd", *programs], capture_output=True, text=True).stdout.splitlines():
        for word in line.split():
            if word.startswith("/lib"):
                link("/usr" + word if not word.startswith("/usr") else word, image)
    if uv:
        link(uv, image)
        shutil.move(image / str(uv).lstrip("/"), image / "usr/local/bin/uv")
    return image


def tree_of(daemon):
    """Path -> hash of the installed files, without the installer's own records."""
    [top] = [daemon.state / "packages" / t for t in trees(daemon)]
    found = {}
    for path in sorted(top.rglob("*")):
        if path.name in ("INSTALLER", "RECORD", "REQUESTED", "uv_cache.json", "direct_url.json") and path.parent.name.endswith(".dist-info"):
            continue
        if path.is_file() and path.parent == top / "bin":  # launchers of entry points differ between installers
            found[str(path.relative_to(top))] = "program"
        elif path.is_file():
            found[str(path.relative_to(top))] = hashlib.sha256(path.read_bytes()).hexdigest()
    return found


def told(r):
    return sorted((p["name"], p["version"], p["hash"], p["built"]) for p in r.json["packages"])


@pytest.mark.parametrize("packages", [["requests"], ["pandas<3", "numpy<2.3"], ["markupsafe", "pyyaml", "cryptography"]], ids=lambda p: p[0])
def test_uv_and_pip_give_the_same(tmp_path, packages):
    """The same closure, the same hashes, the same files."""
    need(PYPI + "/requests/")
    uv, seen = get_uv(), {}
    for tool in ("uv", "pip"):
        where = tmp_path / tool
        where.mkdir()
        image = make_image(where, uv if tool == "uv" else None)
        with Daemon(where, "--pool", "1", "--image", "dir:%s" % image, "--pip-index", PYPI) as d:
            with Box(d) as box:
                r = box.post("/packages", {"packages": packages})
                assert r.status == 200 and r.json["installer"].startswith(tool + " "), r
                seen[tool] = told(r), tree_of(d)
    assert seen["uv"][0] == seen["pip"][0]
    assert seen["uv"][1] == seen["pip"][1]


def test_uv_beside_the_images_packages(tmp_path):
    """As with pip: used, upgraded with all that was built for them, or refused by name."""
    files = tmp_path / "files"
    files.mkdir()
    wheel(files, "learner", requires=["numlib"])
    wheel(files, "modern", requires=["numlib>=2"])
    wheel(files, "numlib", "2.0")
    wheel(files, "framelib", "2.0", requires=["numlib>=2"])
    wheel(files, "baselib", "2.0")
    image = make_image(tmp_path, get_uv())
    for package in (own("numlib", compiled=b"ELF"), own("framelib", compiled=b"\0numlib.core\0"), own("baselib"), own("lonely", ["baselib<2"])):
        write_layer(image, package)
    i = Index(tmp_path, files, "--image", "dir:%s" % image)
    try:
        with Box(i.daemon) as box, Box(i.daemon) as other:
            r = box.post("/packages", {"packages": ["numlib"]})
            assert origins(r) == {"numlib": ("1.0", "image")} and r.json["installer"].startswith("uv "), r
            assert origins(box.post("/packages", {"packages": ["learner"]})) == {"learner": ("1.0", "installed"), "numlib": ("1.0", "image")}
            r = box.post("/packages", {"packages": ["modern"]})
            assert origins(r) == {n: (v, "installed") for n, v in (("learner", "1.0"), ("modern", "1.0"), ("numlib", "2.0"), ("framelib", "2.0"))}, r
            assert origins(other.post("/packages", {"packages": ["numlib"], "upgrade": True})) == {n: ("2.0", "installed") for n in ("numlib", "framelib")}
            r = other.post("/packages", {"packages": ["baselib>=2"]})
            assert (r.status, r.error["code"]) == (409, "package_conflict") and "baselib 2.0 does not work with lonely 1.0" in r.error["message"], r
    finally:
        i.close()


def test_uv_by_the_same_rules(tmp_path):
    """Refused as with pip: a small version of the index of the hostile tests, with uv in the image."""
    files = tmp_path / "files"
    files.mkdir()
    wheel(files, "honest")
    wheel(files, "honest-top", requires=["honest-middle"])
    wheel(files, "honest-middle", requires=["evil"])
    wheel(files, "evil")
    wheel(files, "torn", requires=["honest>2"])
    wheel(files, "absolute", raw={"/tmp/owned": "x"})
    wheel(files, "climber", raw={"../../../../tmp/owned": "x"})
    (files / "truncated-1.0-py3-none-any.whl").write_bytes(b"PK\x03\x04 this is no wheel")
    image = make_image(tmp_path, get_uv())
    i = Index(tmp_path, files, "--image", "dir:%s" % image, "--blocked-packages", "evil")
    try:
        for name, status, code in (("honest-top", 403, "package_blocked"), ("nonesuch", 404, "package_not_found"), ("honest==9", 422, "version_not_found"),
                                   ("torn", 422, "version_not_found"), ("absolute", 422, "invalid_package"), ("climber", 422, "invalid_package"), ("truncated", 422, "invalid_package")):
            r = install(i.daemon, name)
            assert (r.status, r.error["code"]) == (status, code), (name, r)
        assert trees(i.daemon) == []
        r = install(i.daemon, "honest-top")
        assert "'evil', which 'honest-middle' needs" in r.error["message"], r
        r = install(i.daemon, "honest")
        assert r.status == 200 and r.json["installer"].startswith("uv "), r
    finally:
        i.close()
