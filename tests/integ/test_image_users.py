# SPDX-License-Identifier: Apache-2.0
"""test_image_users.py - The cell's user has a name in every image, whatever the image has as /etc/passwd and /etc/group."""
import os
import shutil
import stat
import tempfile
from pathlib import Path

import pytest

from integ_lib import USER, as_user, copy_programs, copy_tree, needs_root, run
from test_mount import snapshot

ROOT = "root:x:0:0:root:/root:/usr/sbin/nologin\n"
AGENT = "agent:x:1000:1000:agent:/home/agent:/bin/sh\n"
GROUP = "root:x:0:\nagent:x:1000:\n"
HOST_SECRET = "of the host\n"
LOOK = "cat /etc/passwd; echo; echo --; cat /etc/group; echo --; ls /etc"


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    return copy_programs(tmp_path_factory.mktemp("base"), "sh", "cat", "id", "ls", "stat", "readlink")


@pytest.fixture
def image(base, tmp_path):
    root = tmp_path / "image"
    shutil.copytree(base, root, symlinks=True)
    root.chmod(0o755)
    return root


def shell(image, script, *options, **kw):
    return run("exec", "--image", "dir:%s" % image, *options, "--", "/bin/sh", "-c", script, **kw)


def look(image, *options, **kw):
    """The texts of passwd and group that code reads, and the names in /etc. The image stays as it was."""
    before = snapshot(image)
    r = shell(image, LOOK, *options, **kw)
    assert snapshot(image) == before
    passwd, group, names = r.out.decode().split("--\n")
    return passwd[:-1], group, set(names.split()), r


def put(image, passwd=None, group=None):
    for name, text in (("passwd", passwd), ("group", group)):
        if text is not None:
            (image / "etc" / name).write_bytes(text if isinstance(text, bytes) else text.encode())


@pytest.mark.parametrize("has, gets", [
    (None, ROOT + AGENT),
    ("", ROOT + AGENT),
    ("root:x:0:0::/root:/bin/sh\nweb:x:33:33::/:\n", "root:x:0:0::/root:/bin/sh\nweb:x:33:33::/:\n" + AGENT),
    ("web:x:33:33::/:/bin/false", "web:x:33:33::/:/bin/false\n" + ROOT + AGENT),
    ("node:x:1000:1000::/home/node:/bin/sh\n", "node:x:1000:1000::/home/node:/bin/sh\n" + ROOT),
    # The name is another user's: the number decides.
    (ROOT + "agent:x:500:500::/:/bin/sh\n", ROOT + "agent:x:500:500::/:/bin/sh\n" + AGENT),
    # Not the number: in another field, as a part, as the end of a larger one, in a remark.
    (ROOT + "a:1000:7:1000:1000:/1000:1000\n", ROOT + "a:1000:7:1000:1000:/1000:1000\n" + AGENT),
    (ROOT + "a:x:10000:1::/:\nb:x:1000x:1::/:\nc:x:4294968296:1::/:\n#d:x:1000:1::/:\n",
     ROOT + "a:x:10000:1::/:\nb:x:1000x:1::/:\nc:x:4294968296:1::/:\n#d:x:1000:1::/:\n" + AGENT),
    ("\0\xff:::\n" * 3 + "x" * 9000, "\0\xff:::\n" * 3 + "x" * 9000 + "\n" + ROOT + AGENT),
], ids=["none", "empty", "others", "no end of line", "other name", "taken name", "other fields", "other numbers", "garbage"])
def test_lines_that_an_image_lacks(image, has, gets):
    put(image, has)
    passwd, group, names, r = look(image)
    assert passwd == gets and group == GROUP, r
    assert not [n for n in names if ".caisson" in n], names


def test_programs_find_their_user(image):
    put(image, "root:x:0:0::/root:/bin/sh\n", "staff:x:50:\n")
    r = shell(image, "id -un; id -gn; stat -c '%A %U %G' /etc/passwd; cd ~agent && pwd")
    assert (r.code, r.out) == (0, b"agent\nagent\n-rw-r--r-- root root\n/home/agent\n"), r


@pytest.mark.parametrize("passwd, group", [
    (ROOT + "node:x:1000:1000::/home/node:/bin/sh", "root:x:0:\nnode:x:1000:\n"), (ROOT + "node:x:01000:7::/:\n", "root:x:0:\nnode:x:1000"),
])
def test_an_image_that_names_the_number_keeps_its_files(image, passwd, group):
    put(image, passwd, group)
    assert look(image)[:2] == (passwd, group)
    assert shell(image, "id -un").out == b"node\n"


def test_shell_of_the_entry_is_in_the_image(image):
    shutil.copy(image / "bin/sh", image / "bin/bash")
    assert look(image)[0] == ROOT + AGENT.replace("/bin/sh", "/bin/bash")
    (image / "bin/bash").unlink()
    os.rename(image / "bin/sh", image / "bin/ash")
    r = run("exec", "--image", "dir:%s" % image, "--", "/bin/cat", "/etc/passwd")
    assert r.out.decode() == ROOT + AGENT.replace("/bin/sh", "/usr/sbin/nologin"), r


# ---- hostile images --------------------------------------------------------------------------------------------


def test_a_link_leads_to_a_file_of_the_image(image):
    """Tools that build images from a store of packages make such links. The file that it leads to stays as it is."""
    (image / "store").mkdir()
    (image / "store/passwd").write_text(ROOT)
    (image / "etc/passwd").symlink_to("/store/passwd")
    assert look(image)[0] == ROOT + AGENT
    assert shell(image, "cat /store/passwd; readlink /etc/passwd || echo a file").out.decode() == ROOT + "a file\n"


def test_a_link_leads_to_nothing_of_the_host(image, tmp_path):
    secret = tmp_path / "secret"
    secret.write_text(HOST_SECRET)
    up = "../" * 30
    for target in (str(secret), up + str(secret), "/proc/1/root%s" % secret):
        for name in ("passwd", "group"):
            (image / "etc" / name).unlink(missing_ok=True)
            (image / "etc" / name).symlink_to(target)
        r = shell(image, LOOK + "; id -u")
        assert HOST_SECRET.encode() not in r.out and r.out.endswith(b"1000\n"), r
    assert secret.read_text() == HOST_SECRET and set(os.listdir(tmp_path)) == {"image", "secret"}


@pytest.mark.parametrize("target", ["/proc/self/maps", "/proc/self/status", "/proc/1/maps", "/proc/meminfo", "/dev/zero", "/dev/tty", "passwd", "/etc"])
def test_a_link_to_what_is_no_file_of_the_image_stays(image, target):
    """Init's worker would show how init's memory is laid out."""
    (image / "etc/passwd").symlink_to(target)
    r = shell(image, "readlink /etc/passwd; cat /etc/group; ls /etc")
    assert r.code == 0 and r.out.decode().startswith(target + "\n" + GROUP) and b".caisson" not in r.out, r


@pytest.mark.parametrize("target", ["/nothing/here", "/proc/self/fd/0", "/proc/self/fd/1", "/proc/self/fd/3"])
def test_a_link_to_nothing_is_replaced(image, target):
    """Also one to a descriptor of the worker: it has its drafts, which are empty, and none of init's."""
    (image / "etc/passwd").symlink_to(target)
    passwd, group, _, r = look(image)
    assert (passwd, group) == (ROOT + AGENT, GROUP), r


def test_what_is_no_file_stays(image):
    (image / "etc/passwd").mkdir()
    (image / "etc/passwd/inside").write_text("x")
    os.mkfifo(image / "etc/group")
    r = shell(image, "ls /etc/passwd; stat -c %F /etc/group; id -u; ls /etc")
    assert r.code == 0 and r.out.startswith(b"inside\nfifo\n1000\n") and b".caisson" not in r.out, r


@needs_root
def test_a_device_stays(image):
    os.mknod(image / "etc/passwd", 0o666 | stat.S_IFCHR, os.makedev(1, 5))
    r = shell(image, "stat -c %F /etc/passwd; cat /etc/group")
    assert (r.code, r.out.decode()) == (0, "character special file\n" + GROUP), r


def test_a_large_file_stays(image):
    line = "u:x:7:7::/:\n"
    just = line * (65536 // len(line))
    put(image, just + "#" * (65536 - len(just)), just + "#" * (65537 - len(just)))
    passwd, group, names, r = look(image)
    assert passwd == just + "#" * (65536 - len(just)) + "\n" + ROOT + AGENT and len(group) == 65537, r
    assert not [n for n in names if ".caisson" in n], names


@needs_root
def test_a_file_that_the_agent_cannot_read_stays_unread(image):
    put(image, "root:x:0:0:hidden:/root:/bin/sh\n", "hidden:x:9:\n")
    (image / "etc/passwd").chmod(0o600)
    (image / "behind").mkdir(mode=0o700)
    shutil.move(image / "etc/group", image / "behind/group")
    (image / "etc/group").symlink_to("/behind/group")
    r = shell(image, "cat /etc/passwd /etc/group; id -u")
    assert b"hidden" not in r.out and r.out == b"1000\n" and r.err.count(b"Permission denied") == 2, r


def test_an_image_that_has_the_name_of_a_draft(image, tmp_path):
    """Nothing of the image is written through, replaced or removed."""
    for name, what in (("passwd.caisson", Path("/etc/motd")), ("group.caisson", None)):
        (image / "etc/motd").write_text("kept\n")
        draft = image / "etc" / name
        draft.symlink_to(what) if what else draft.write_text("mine\n")
        r = shell(image, "cat /etc/motd; ls /etc; id -u")
        assert r.code == 0 and r.out.startswith(b"kept\n") and name.encode() in r.out and r.out.endswith(b"1000\n"), r
        assert {"passwd.caisson", "group.caisson"} & set(r.out.decode().split()) == {name}, r
        draft.unlink()


def test_etc_that_is_no_directory(image):
    shutil.rmtree(image / "etc")
    (image / "etc").symlink_to("/home")
    passwd, group, _, r = look(image)
    assert (passwd, group) == (ROOT + AGENT, GROUP), r


@needs_root
def test_what_a_client_mounts_there_stays(image, tmp_path):
    put(image, "web:x:33:33::/:\n")
    own = tmp_path / "own"
    own.write_text("mine:x:1:1::/:\n")
    assert shell(image, "cat /etc/passwd", "--mount", "%s:/etc/passwd:rw" % own).out == b"mine:x:1:1::/:\n"
    assert own.read_text() == "mine:x:1:1::/:\n"
    etc = tmp_path / "etc"
    etc.mkdir()
    (etc / "passwd").write_text("mine:x:1:1::/:\n")
    for mode in ("ro", "rw"):
        before = snapshot(tmp_path / "etc")
        r = shell(image, "cat /etc/passwd; ls /etc", "--mount", "%s:/etc:%s" % (etc, mode))
        assert r.out == b"mine:x:1:1::/:\npasswd\n", (mode, r)
        assert snapshot(tmp_path / "etc") == before


@needs_root
def test_an_ordinary_users_cell(base):
    """There init and code are one user."""
    home = Path(tempfile.mkdtemp(prefix="caisson-user-"))
    try:
        home.chmod(0o755)
        shutil.copytree(base, home / "image", symlinks=True)
        put(home / "image", "web:x:33:33::/:\n")
        for where, dirs, files in os.walk(home):
            for name in [".", *dirs, *files]:
                os.chown(os.path.join(where, name), USER, USER, follow_symlinks=False)
        copy_tree(home / "bin")
        r = shell("image", LOOK + "; id -un", "--without", "cgroup", binary=home / "bin/caisson", prefix=as_user(), cwd=home,
                  env={"HOME": str(home), "XDG_RUNTIME_DIR": str(home), "CAISSON_STATE": None})
        assert r.code == 0 and r.out.decode().startswith("web:x:33:33::/:\n" + ROOT + AGENT) and r.out.endswith(b"agent\n"), r
        assert b".caisson" not in r.out
    finally:
        shutil.rmtree(home)
