# SPDX-License-Identifier: Apache-2.0
"""test_packages_npm.py - npm: its plan, its reasons when it fails, and packages that it would leave out."""
import pytest

from box_lib import Box
from package_lib import Index, tarball

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def index(tmp_path_factory):
    files = tmp_path_factory.mktemp("files")
    npm = files / "npm"
    for version in ("1.0.0", "2.0.0"):
        tarball(npm, "helper", version)
    tarball(npm, "torn", dependencies={"helper": "^9.0.0"})
    tarball(npm, "plugin", peerDependencies={"helper": "^1.0.0"})
    tarball(npm, "portable", optionalDependencies={"for-mac": "1.0.0", "for-here": "1.0.0"})
    tarball(npm, "for-mac", os=["darwin"])
    tarball(npm, "for-here", os=["!win32"], cpu=["any"])
    tarball(npm, "renamed", dependencies={"honest": "npm:evil@^1.0.0"})
    tarball(npm, "evil")
    tarball(npm, "OldName")
    tarball(npm, "modern", type="module", exports={"import": "./index.mjs"}, files={"index.mjs": "export const how = 'imported'\n"})
    i = Index(tmp_path_factory.mktemp("index"), files, "--blocked-packages", "evil", "--package-count", "2")
    yield i
    i.close()


def ask(index, *packages):
    with Box(index.daemon) as box:
        return box.post("/packages", {"packages": list(packages), "language": "javascript"})


@pytest.mark.parametrize("packages,status,code,words", [
    (["torn"], 422, "version_not_found", ["No matching version found for helper@^9.0.0"]),
    (["plugin", "helper@2.0.0"], 409, "package_conflict", ["peer helper@", "plugin@1.0.0"]),
    (["nonesuch"], 404, "package_not_found", ["nonesuch"])], ids=lambda v: v[0] if isinstance(v, list) else "")
def test_the_reason_is_that_of_npm(index, packages, status, code, words):
    """Not the end of its log, which names a file that nobody can read."""
    r = ask(index, *packages)
    assert (r.status, r.error["code"]) == (status, code), r
    assert all(w in r.error["message"] for w in words) and "complete log" not in r.error["message"], r


def test_only_packages_for_this_system_count(index):
    """The plan of npm has optional packages for every system: those that it leaves out are neither counted nor reported."""
    r = ask(index, "portable")
    assert r.status == 200 and {p["name"] for p in r.json["packages"]} == {"portable", "for-here"}, r


def test_a_package_under_another_name_is_judged_by_its_own(index):
    r = ask(index, "renamed")
    assert (r.status, r.error["code"]) == (403, "package_blocked") and "'evil'" in r.error["message"], r


def test_a_name_keeps_its_capitals(index):
    """Old packages of npm have them, and another package may have the same name in small letters."""
    with Box(index.daemon) as box:
        r = box.post("/packages", {"packages": ["OldName"], "language": "javascript"})
        assert r.status == 200 and [p["name"] for p in r.json["packages"]] == ["OldName"], r
        assert box.post("/execute", {"code": "require('OldName')", "language": "javascript"}).json["result"]["text/plain"] == "'1.0.0'"
    assert ask(index, "oldname").status == 404


def test_imported_by_code(index):
    """A package for import alone: node's own import does not look where packages are installed."""
    with Box(index.daemon) as box:
        r = box.post("/packages", {"packages": ["modern"], "language": "javascript"})
        assert r.status == 200, r
        r = box.post("/execute", {"code": "import { how } from 'modern'\nconsole.log(how)", "language": "javascript"}).json
        assert r["stdout"] == "imported\n", r
