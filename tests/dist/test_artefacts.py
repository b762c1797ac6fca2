# SPDX-License-Identifier: Apache-2.0
"""test_artefacts.py - What `make dist` made: names, checksums, the source, the Python library, the bill of materials, and the same bytes
when it is made again elsewhere."""
import json
import os
import re
import subprocess
import sys
import tarfile
import zipfile

import pytest

from dist_lib import BUILD, DIST, PLACE, ROOT, VERSION, artefact, deb, digest, field, run
from sbom_lib import check_document, related

SOURCE = "caisson-%s.tar.xz" % VERSION


def test_names():
    arch = run("dpkg", "--print-architecture").stdout.strip()
    library = "caisson_sandbox-" + VERSION  # flit before 3.9 names the source distribution with a hyphen
    assert {f.name.replace("caisson-sandbox", "caisson_sandbox") for f in DIST.iterdir()} == {
        "SHA256SUMS", SOURCE, "caisson-%s.spdx.json" % VERSION, "caisson_%s_%s.deb" % (VERSION, arch), "caisson-dbgsym_%s_%s.deb" % (VERSION, arch),
        library + "-py3-none-any.whl", library + ".tar.gz"}


def test_checksums():
    run("sha256sum", "--check", "--strict", "SHA256SUMS", cwd=DIST)
    named = {line.split()[1] for line in (DIST / "SHA256SUMS").read_text().splitlines()}
    assert named == {f.name for f in DIST.iterdir()} - {"SHA256SUMS"}


def test_source_is_the_commit():
    head = run("git", "ls-tree", "-r", "--name-only", "HEAD", cwd=ROOT).stdout.splitlines()
    with tarfile.open(DIST / SOURCE) as t:
        entries = [e for e in t if not e.isdir()]
    assert {e.name for e in entries} == {"caisson-%s/%s" % (VERSION, name) for name in head}
    assert {(e.uid, e.gid) for e in entries} == {(0, 0)}
    assert {e.mtime for e in entries} == {int(run("git", "log", "-1", "--format=%ct", cwd=ROOT).stdout)}


def test_a_tree_with_changes_is_refused(tmp_path):
    run("git", "clone", "--quiet", ROOT, tmp_path / "clone")
    (tmp_path / "clone/new.txt").write_text("not committed\n")
    r = run("tools/dist.sh", tmp_path / "out", cwd=tmp_path / "clone", check=False)
    assert r.returncode == 1 and "?? new.txt" in r.stderr and not (tmp_path / "out").exists()


def test_the_same_bytes_elsewhere(tmp_path_factory):
    """In another directory, another clone, another time zone, another language, with another mask and as one job: nothing of it shows."""
    where = tmp_path_factory.mktemp("a-longer-name-than-that-of-the-first-build")
    run("git", "clone", "--quiet", ROOT, where / "clone")
    env = {**os.environ, "TZ": "Pacific/Auckland", "LC_ALL": "C", "HOME": str(where), "DEB_BUILD_OPTIONS": "parallel=1",
           "CAISSON_SWAGGER_CACHE": os.environ.get("CAISSON_SWAGGER_CACHE", os.path.expanduser("~/.cache/caisson"))}
    run("sh", "-c", "umask 077; exec tools/dist.sh '%s'" % (where / "out"), cwd=where / "clone", env=env, timeout=3600)
    first, second = ({f.name: digest(f) for f in d.iterdir()} for d in (DIST, where / "out"))
    differ = sorted(name for name in {*first, *second} if first.get(name) != second.get(name))
    assert not differ, "%s differ; the second build is %s" % (differ, where / "out")


# ---- the Python library --------------------------------------------------------------------------------------


@pytest.mark.parametrize("pattern", ["caisson_sandbox-*.whl", "caisson?sandbox-*.tar.gz"])
def test_python_library(tmp_path, pattern):
    """pip installs it without an index, in an environment that has nothing."""
    run("/usr/bin/python3", "-m", "venv", "--without-pip", tmp_path)
    run("/usr/bin/python3", "-m", "pip", "--python", tmp_path / "bin/python", "install", "--no-index", "--no-deps", "--no-build-isolation", artefact(pattern),
        env={**os.environ, "PYTHONPATH": "/usr/lib/python3/dist-packages"})
    said = run(tmp_path / "bin/python", "-c", "import caisson; print(caisson.__version__, caisson.__file__)", cwd=tmp_path).stdout
    assert said.startswith(VERSION + " " + str(tmp_path))


def test_python_library_has_its_license():
    license_ = (ROOT / "LICENSE").read_bytes()
    with zipfile.ZipFile(artefact("caisson_sandbox-*.whl")) as wheel, tarfile.open(artefact("caisson?sandbox-*.tar.gz")) as source:
        name, = (n for n in wheel.namelist() if n.endswith("/LICENSE"))
        entry, = (e for e in source if e.name.endswith("/LICENSE"))
        assert wheel.read(name) == license_ == source.extractfile(entry).read()


# ---- the bill of materials -----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def sbom():
    return json.loads(artefact("caisson-*.spdx.json").read_text())


def test_bill_of_materials(sbom):
    check_document(sbom)
    ours = sbom["packages"][0]
    assert (ours["name"], ours["versionInfo"], ours["packageFileName"]) == ("caisson", VERSION, deb().name)
    assert ours["checksums"] == [{"algorithm": "SHA256", "checksumValue": digest(deb())}]
    paths = run("sh", "-c", "dpkg-deb --fsys-tarfile '%s' | tar t" % deb()).stdout.splitlines()
    links = run("sh", "-c", "dpkg-deb --fsys-tarfile '%s' | tar tv | sed -n 's,^l.* \\(\\./.*\\) -> .*,\\1,p'" % deb()).stdout.splitlines()
    assert related(sbom, "CONTAINS") == {p for p in paths if not p.endswith("/")} - set(links)


def test_bill_has_every_library(sbom):
    """Those of the package's own dependencies, and those that are linked into the programs."""
    depends = {re.match(r"[a-z0-9.+-]+", d.strip())[0] for d in field(deb(), "Depends").split(",")}
    assert {d for d in depends if d.startswith("lib")} == related(sbom, "DYNAMIC_LINK")
    assert {"glibc", "gcc-12" if "gcc-12" in field(deb(), "Static-Built-Using") else "glibc"} <= related(sbom, "STATIC_LINK")
    names = {p["name"] for p in sbom["packages"]}
    assert {"libssl-dev", "meson", "node-llhttp", "debhelper"} <= names


def test_bill_has_swagger_ui(sbom):
    assets = related(sbom, "GENERATED_FROM")
    if os.environ.get("CAISSON_SWAGGER") == "disabled":
        assert not assets
        return
    assert {"npm/swagger-ui-dist/swagger-ui-bundle.js", "npm/swagger-ui-dist/swagger-ui.css"} <= assets
    p, = (p for p in sbom["packages"] if p["name"] == "swagger-ui-dist")
    assert p["checksums"][0]["algorithm"] == "SHA512" and p["downloadLocation"].startswith("https://registry.npmjs.org/")


def test_bill_by_a_third_party():
    """The validator of the SPDX project, from PyPI."""
    tools = PLACE / "spdx"
    if not (tools / "bin/pyspdxtools").exists():
        PLACE.mkdir(parents=True, exist_ok=True)
        run(sys.executable, "-m", "venv", "--clear", tools)
        r = run(tools / "bin/pip", "install", "--quiet", "spdx-tools==0.8.3", check=False, timeout=600)
        if r.returncode:
            pytest.skip("spdx-tools could not be had from PyPI: %s" % (r.stderr.strip().splitlines() or ["no reason"])[-1])
    r = subprocess.run([tools / "bin/pyspdxtools", "--infile", artefact("caisson-*.spdx.json")], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert r.returncode == 0, r.stdout[-4000:]


def test_nothing_of_the_place_of_the_build(tmp_path):
    """No program or file has the path of the directory in which it was made."""
    run("dpkg-deb", "--extract", deb(), tmp_path)
    r = run("grep", "-rlF", str(BUILD), tmp_path, check=False)
    assert r.stdout == ""
