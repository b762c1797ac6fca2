# SPDX-License-Identifier: Apache-2.0
"""test_tree.py - The parts of a release that agree before anything is built. They are quick, and part of make test."""
import json
import re
import shutil
import subprocess

import pytest

from dist_lib import ROOT, VERSION
from sbom_lib import check_document, related

pytestmark = pytest.mark.quick
needs_dpkg = pytest.mark.skipif(not shutil.which("dpkg-deb"), reason="no dpkg-deb here")


def text(name):
    return (ROOT / name).read_text()


def test_one_version():
    """meson.build has it; the package and the library have the same."""
    assert re.match(r"caisson \((.+)\) ", text("debian/changelog"))[1] == VERSION
    assert re.search(r'^__version__ = "(.+)"$', text("sdk/python/src/caisson/__init__.py"), re.M)[1] == VERSION


def test_build_dependencies_are_those_of_the_build():
    """tools/deps.sh names the same libraries as debian/control."""
    script = text("tools/deps.sh")
    names = set(re.search(r"\n\tbuild\) echo (.*?) ;;", script, re.S)[1].replace("\\\n", " ").split())
    declared = set(re.findall(r"^ ([a-z][a-z0-9.+-]+)", text("debian/control").split("Build-Depends:")[1].split("Standards-Version")[0], re.M))
    libraries = {n for n in names if n.endswith("-dev")} - {"libc6-dev", "libcmocka-dev"}  # of every build on Debian; of the units
    assert libraries == {n for n in declared if n.endswith("-dev")}
    assert {"meson", "scdoc", "node-llhttp"} <= names & declared


def test_settings_of_the_default_file():
    """Each variable is one of an option of the daemon, and none is set."""
    rows = set(re.findall(r'^\t\{ "--([a-z0-9-]+)"', text("src/front/support/config.c"), re.M))
    lines = text("debian/caisson.default").splitlines()
    settings = [line for line in lines if re.match(r"#?CAISSON_", line)]
    assert settings and all(line.startswith("#") for line in settings)
    assert {re.match("#CAISSON_([A-Z_]+)=", s)[1].lower().replace("_", "-") for s in settings} <= rows


def test_the_socket_and_its_group():
    """The unit names the group that sysusers makes, and gives others nothing."""
    group, = re.findall(r"^g (\S+)", text("dist/sysusers/caisson.conf"), re.M)
    unit = dict(re.findall(r"^(Socket\w+|ListenStream)=(.*)$", text("dist/systemd/caisson.socket"), re.M))
    assert unit == {"ListenStream": "/run/caisson/caisson.sock", "SocketGroup": group, "SocketMode": "0660"}


@needs_dpkg
def test_bill_of_materials(tmp_path):
    """Of a package with one program and one script."""
    tree, build = tmp_path / "tree", tmp_path / "build"
    (tree / "DEBIAN").mkdir(parents=True)
    (tree / "usr/bin").mkdir(parents=True)
    shutil.copy("/bin/true", tree / "usr/bin/a+b")
    (tree / "usr/bin/a-b").write_text("#!/bin/sh\n")
    (tree / "DEBIAN/control").write_text("Package: caisson\nVersion: 1.0\nArchitecture: amd64\nMaintainer: x <x@example.org>\nDescription: x\n"
                                         "Static-Built-Using: glibc (= 2.36-9), gcc-12 (= 12.2.0-14), \n")
    subprocess.run(["dpkg-deb", "--root-owner-group", "--build", tree, tmp_path / "x.deb"], check=True, stdout=subprocess.DEVNULL)
    version = subprocess.run(["dpkg-query", "-W", "-f", "${Version}", "dpkg"], check=True, stdout=subprocess.PIPE, text=True).stdout
    (tmp_path / "x.buildinfo").write_text("Architecture: amd64\nInstalled-Build-Depends:\n dpkg (= %s)\n" % version)
    (tmp_path / "meson.build").write_text("project('x')\n")
    subprocess.run(["meson", "setup", build, tmp_path], check=True, stdout=subprocess.DEVNULL)

    def sbom():
        return subprocess.run([ROOT / "tools/sbom.py", "--build", build, "--buildinfo", tmp_path / "x.buildinfo", tmp_path / "x.deb"],
                              env={"PATH": "/usr/bin:/bin", "SOURCE_DATE_EPOCH": "1000000000"}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    r = sbom()
    assert r.returncode == 0, r.stderr
    d = json.loads(r.stdout)
    check_document(d)
    assert d["creationInfo"]["created"] == "2001-09-09T01:46:40Z" and sbom().stdout == r.stdout
    assert related(d, "CONTAINS") == {"./usr/bin/a+b", "./usr/bin/a-b"}
    assert related(d, "DYNAMIC_LINK") == {"libc6"} and related(d, "STATIC_LINK") == {"glibc", "gcc-12"}
    (tmp_path / "x.buildinfo").write_text("Installed-Build-Depends:\n dpkg (= 0.1)\n")
    assert "dpkg of the build was 0.1" in sbom().stderr

