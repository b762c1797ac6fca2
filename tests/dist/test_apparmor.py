# SPDX-License-Identifier: Apache-2.0
"""test_apparmor.py - The package on Ubuntu, whose Linux kernel restricts user namespaces to programs with an AppArmor profile: in a QEMU
guest of Ubuntu 24.04, from Ubuntu's archive. apparmor.sh has the cases."""
import json
import os
import re
import urllib.request
from pathlib import Path

import pytest

from dist_lib import PLACE, NotHere, boot, digest, make_root, run

ARCHIVE = os.environ.get("CAISSON_UBUNTU_ARCHIVE", "http://archive.ubuntu.com/ubuntu")
KEYS = "usr/share/keyrings/ubuntu-archive-keyring.gpg"
# The package with the keys of the archive, which Debian does not have; one of them is F6EC B376 2474 EDA9 D21B 7022 8719 20D1 991B C93C.
KEYRING = "pool/main/u/ubuntu-keyring/ubuntu-keyring_2023.11.28.1_all.deb"
KEYRING_SHA256 = "36de43b15853ccae0028e9a767613770c704833f82586f28eb262f0311adb8a8"
SERVER = ["apt", "systemd-sysv", "dbus", "udev", "apparmor", "curl", "kmod", "initramfs-tools", "linux-image-virtual"]
# One: with more, a Linux kernel of that age can panic in QEMU 7.2, in the emulation of cmpxchg16b.
PROCESSORS = 1


def keyring():
    """The keys of Ubuntu's archive: this machine's, or those of the archive, by the hash above."""
    if Path("/", KEYS).exists():
        return Path("/", KEYS)
    PLACE.mkdir(parents=True, exist_ok=True)
    package = PLACE / "ubuntu-keyring.deb"
    if not package.exists() or digest(package) != KEYRING_SHA256:
        try:
            with urllib.request.urlopen("%s/%s" % (ARCHIVE, KEYRING), timeout=30) as r:
                package.write_bytes(r.read())
        except OSError as e:
            raise NotHere("Ubuntu's archive does not answer: %s" % e) from None
        if digest(package) != KEYRING_SHA256:
            raise NotHere("the keys of Ubuntu's archive have another hash than the one here")
    run("dpkg-deb", "--extract", package, PLACE / "ubuntu-keyring")
    return PLACE / "ubuntu-keyring" / KEYS


@pytest.fixture(scope="module")
def guest(package, tmp_path_factory):
    install = "--customize-hook=cp '%s' \"$1/caisson.deb\" && chroot \"$1\" apt-get install -q -y --no-install-recommends /caisson.deb && rm \"$1/caisson.deb\""
    try:
        root = make_root("ubuntu", "noble", SERVER, "--components=main,universe", "--keyring=%s" % keyring(), install % package, source=ARCHIVE,
                         key=digest(package))
        cases = boot("qemu", root, tmp_path_factory.mktemp("added"), "apparmor.sh", PLACE / "out-ubuntu", 1500, PROCESSORS)
    except NotHere as why:
        pytest.skip("no guest of Ubuntu here: %s" % why)
    assert "profile-gone" in cases, list(cases)
    return cases


def userns(case):
    checks = json.loads(next(line for line in case[1].splitlines() if line.startswith("{")))["checks"]
    return next(c for c in checks if c["name"] == "user namespaces")


def test_the_restriction_is_in_force(guest):
    """Or else the others would prove nothing: programs without a profile are refused, this one too."""
    assert guest["restricted"] == (0, "1\n")
    assert guest["others"][0] != 0 and re.search("not permitted|denied", guest["others"][1]), guest["others"]
    assert guest["run-without"][0] == 125 and "caisson: AppArmor restricts user namespaces: load a profile" in guest["run-without"][1], guest["run-without"]
    assert userns(guest["doctor-without"])["status"] == "missing"


def test_an_ordinary_user_makes_cells(guest):
    assert guest["loaded"] == (0, "caisson (unconfined)\n")
    assert guest["run"][0] == 0 and guest["run"][1].splitlines()[-1] == "42", guest["run"]
    assert userns(guest["doctor"])["status"] == "ok"


def test_code_in_cells_makes_no_user_namespace(guest):
    """Although it has the label of the profile."""
    status, said = guest["nested"]
    assert status == 0 and "Operation not permitted" in said and said.splitlines()[-1] == "1", said


def test_root_makes_cells(guest):
    """The service; and without a profile, too."""
    assert guest["service"][0] == 0 and json.loads(guest["service"][1])["stdout"] == "42\n", guest["service"]
    assert guest["root-without"] == (0, "42\n")


def test_apparmor_loads_it_at_its_start(guest):
    assert guest["unload"][0] == 0 and guest["boot"] == (0, "caisson (unconfined)\n")


def test_purge_unloads_it(guest):
    assert guest["purge"][0] == 0 and guest["profile-gone"][0] == 2 and "caisson (" not in guest["profile-gone"][1], guest["profile-gone"]
