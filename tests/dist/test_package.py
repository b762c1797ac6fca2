# SPDX-License-Identifier: Apache-2.0
"""test_package.py - The Debian package by itself: lintian, its dependencies, AppArmor of different ages, and its installation where no
systemd runs."""
import re
import shutil
from fnmatch import fnmatch

import pytest

from dist_lib import NEWER, NotHere, field, make_root, run


def test_lintian(package):
    """No error; warnings are printed."""
    if not shutil.which("lintian"):
        pytest.skip("there is no lintian (tools/deps.sh dist-test)")
    r = run("lintian", "--allow-root", "--display-level=>=warning", "--fail-on=error", package, check=False)
    print(r.stdout)
    assert r.returncode == 0 and not re.search("^E:", r.stdout, re.M), r.stdout + r.stderr


def test_fields(package):
    depends = field(package, "Depends")
    for name in ("libc6", "libssl3", "libcurl4", "libsqlite3-0", "libjansson4", "libarchive13", "python3"):
        assert re.search(r"(^|, )%s(t64)?\b" % name, depends), depends
    assert "glibc (= " in field(package, "Static-Built-Using") and field(package, "Maintainer")


def test_nothing_is_set_id(package):
    """As SECURITY.md states; and everything belongs to root."""
    for line in run("dpkg-deb", "--contents", package).stdout.splitlines():
        mode, owner = line.split()[:2]
        assert owner == "root/root" and "s" not in mode.lower()[1:] and (mode[0] == "l" or mode[8] == "-"), line


def in_chroot(root, where, script):
    """Run a shell line in an overlay of @root, in a mount namespace of its own."""
    for name in ("upper", "work", "root"):
        (where / name).mkdir(parents=True)
    outer = 'mount -t overlay -o lowerdir="$1",upperdir="$2/upper",workdir="$2/work" overlay "$2/root" && mount -t proc proc "$2/root/proc" && ' \
            'mount --bind /dev "$2/root/dev" && cd "$2/root" && cp "$4" tmp/caisson.deb && exec chroot . sh -c "$3"'
    package, = where.glob("*.deb")
    r = run("unshare", "--mount", "--pid", "--fork", "--propagation", "private", "sh", "-c", outer, "sh", root, where, script, package, check=False, timeout=600)
    return r.returncode, r.stdout + r.stderr


def test_without_systemd(package, server, tmp_path):
    """As in a container image, or while a system is installed: nothing is started, and purge leaves nothing."""
    shutil.copy(package, tmp_path)
    look = "find / -xdev ! -path '/var/lib/dpkg*' ! -path '/var/cache*' ! -path '/var/log*' ! -path '/var/lib/apt*' ! -path '/tmp*' ! -path '/repo*' " \
           "! -path '/etc/*-' -type f -printf '%m %U %G %s %p\\n' | sort"
    script = "export DEBIAN_FRONTEND=noninteractive; echo 'deb [trusted=yes] file:/repo/1 ./' >/etc/apt/sources.list; rm -f /etc/apt/sources.list.d/*; set -e; " \
             "apt-get -q update >/tmp/log; apt-get satisfy -qy --no-install-recommends \"$(dpkg-deb -f /tmp/caisson.deb Depends)\" >>/tmp/log; %s >/tmp/before; " \
             "dpkg -i /tmp/caisson.deb; caisson --version; systemctl is-enabled caisson.socket; getent group caisson; ls -l /etc/apparmor.d/caisson || :; " \
             "dpkg --purge caisson; %s >/tmp/after; diff /tmp/before /tmp/after && ! getent group caisson && echo nothing is left" % (look, look)
    status, said = in_chroot(server, tmp_path, script)
    assert status == 0 and "nothing is left" in said, said
    assert "caisson 0" in said and "enabled" in said and re.search(r"^caisson:x:\d+:$", said, re.M), said


# ---- AppArmor ------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def newer():
    try:
        return make_root("newer", NEWER, ["apparmor", "python3-minimal"])
    except NotHere as why:
        pytest.skip("no root of %s here: %s" % (NEWER, why))


def test_profile_is_valid(package, newer, tmp_path):
    """By a parser that knows abi 4.0: for the programs that make cells, with the one rule."""
    shutil.copy(package, tmp_path)
    script = "dpkg-deb -x /tmp/caisson.deb /tmp/x && cp /tmp/x/usr/share/caisson/apparmor-profile /etc/apparmor.d/caisson && cd /etc/apparmor.d && " \
             "apparmor_parser --skip-kernel-load --skip-cache --names caisson && apparmor_parser --skip-kernel-load --skip-cache --debug caisson"
    status, said = in_chroot(newer, tmp_path, script)
    assert status == 0 and re.search(r"^caisson$", said, re.M) and re.search(r"^userns,$", said, re.M) and "Mode: unconfined" in said, said


def test_profile_is_for_every_program(package, tmp_path):
    run("dpkg-deb", "--extract", package, tmp_path)
    profile = (tmp_path / "usr/share/caisson/apparmor-profile").read_text()
    assert "profile caisson @{caisson_programs} flags=(unconfined) {" in profile
    patterns = re.search(r"^@{caisson_programs} = (.*)$", profile, re.M)[1].split()
    programs = [p for d in ("usr/bin", "usr/libexec/caisson") for p in (tmp_path / d).iterdir() if p.is_file()]
    assert len(programs) > 10 and all(any(fnmatch("/%s" % p.relative_to(tmp_path), pattern) for pattern in patterns) for p in programs)


@pytest.fixture(scope="module")
def older(server):
    try:
        return make_root("older", "bookworm", ["apparmor"])
    except NotHere as why:
        pytest.skip("no root of bookworm here: %s" % why)


def after_postinst(root, package, where):
    """The profile after the package's postinst, in a root that lacks all that the package depends on."""
    where.mkdir()
    shutil.copy(package, where)
    script = "dpkg-deb --fsys-tarfile /tmp/caisson.deb | tar -xC / ./usr/share && dpkg-deb -e /tmp/caisson.deb /tmp/c && sh /tmp/c/postinst triggered; " \
             "echo status $?; cat /etc/apparmor.d/caisson"
    return in_chroot(root, where, script)[1]


def test_profile_only_where_it_can_be_parsed(package, newer, older, tmp_path):
    """An AppArmor without abi 4.0 would fail at it at every start of the machine."""
    said = after_postinst(newer, package, tmp_path / "newer")
    assert "status 0" in said and "profile caisson " in said, said
    said = after_postinst(older, package, tmp_path / "older")
    assert "status 0" in said and "profile caisson " not in said, said
