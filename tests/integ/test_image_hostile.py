# SPDX-License-Identifier: Apache-2.0
"""test_image_hostile.py - Layers that were made to do harm.

Each is refused with a reason, and nothing is left of it; or it is harmless, which is judged from outside: files beside the
store must stay unchanged, and the layer may contain only files that a program in a cell could have made, and whiteouts.
"""
import gzip
import os
import signal
import stat
import subprocess
import tarfile
import threading
from pathlib import Path

import pytest

from image_lib import Layout, directory, entry, hardlink, image, layer_dirs, nothing_in, sha256, symlink, tar
from integ_lib import copy_tree, needs_program, start
from process import IS_ROOT, SANITIZED, children, wait_until

pytestmark = needs_program("zstd")

MEDIA_NONE = ""


def header(name, size, type=b"0", size_field=None):
    """A header that tarfile would not write."""
    block = bytearray(tarfile.TarInfo(name).tobuf(tarfile.USTAR_FORMAT)[:512])
    block[124:136] = size_field if size_field is not None else b"%011o\0" % size
    block[156:157] = type
    return checked(block)


def checked(block):
    block[148:156] = b" " * 8
    block[148:156] = b"%06o\0 " % sum(block)
    return bytes(block)


def zeros(command, megabytes):
    """So many zeros, compressed as far as it goes."""
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as p:
        def feed():
            head = header("bomb", megabytes << 20)
            p.stdin.write(head)
            for _ in range(megabytes):
                p.stdin.write(b"\0" * (1 << 20))
            p.stdin.close()

        t = threading.Thread(target=feed)
        t.start()
        out = p.stdout.read()
        t.join()
    return out


def pax(records):
    body = b""
    for key, value in records:
        n = len(key) + len(value) + 3
        while n != len(b"%d %s=%s\n" % (n, key, value)):
            n = len(b"%d %s=%s\n" % (n, key, value))
        body += b"%d %s=%s\n" % (n, key, value)
    return header("pax", len(body), b"x") + body + b"\0" * (-len(body) % 512)


END = b"\0" * 1024
REFUSED = {
    "parent": (tar(entry("../x", b"1")), b"leaves the layer"),
    "parent-inside": (tar(entry("a/../../x", b"1")), b"leaves the layer"),
    "only-parent": (tar(directory("..")), b"leaves the layer"),
    "deep": (tar(entry("d/" * 300 + "x", b"1")), b"too deep"),
    "long-name": (tar(entry("n" * 300, b"1")), b"too long"),
    "whiteout-of-parent": (tar(entry(".wh...")), b"leaves the layer"),
    "hard-link-parent": (tar(hardlink("h", "../outside/secret")), b"hard link"),
    "hard-link-absolute": (tar(hardlink("h", "/etc/passwd")), b"hard link"),
    "hard-link-through-link": (tar(symlink("l", "/etc"), hardlink("h", "l/passwd")), b"hard link"),
    "hard-link-to-directory": (tar(directory("d"), hardlink("h", "d")), b"hard link"),
    "hard-link-to-later": (tar(hardlink("h", "f"), entry("f", b"1")), b"hard link"),
    "through-dangling-link": (tar(symlink("l", "/nowhere"), entry("l/x", b"1")), b"unpack 'l/x'"),
    "through-loop": (tar(symlink("a", "b"), symlink("b", "a"), entry("a/x", b"1")), b"unpack 'a/x'"),
    "file-for-directory": (tar(directory("d"), entry("d/x", b"1"), entry("d", b"1")), b"unpack 'd'"),
    "below-a-file": (tar(entry("f", b"1"), entry("f/x", b"1")), b"unpack 'f/x'"),
    "root-is-a-link": (tar(symlink("./", "/etc")), b"unpack"),
    "empty-link": (pax([(b"linkpath", b"")]) + header("l", 0, b"2") + END, b"unpack 'l'"),
    "truncated": (tar(entry("f", b"1" * 5000))[:2000], b"Truncated"),
    "no-archive": (b"this is text" * 100, b"layer"),
    "zero-bytes": (b"", b"layer"),
    "bad-checksum": (b"x" + tar(entry("f", b"1"))[1:], b"layer"),
    "size-of-exabytes": (header("f", 0, size_field=b"\x80\0\0\0\x7f" + b"\xff" * 7) + b"1" * 512, b""),
    "negative-size": (header("f", 0, size_field=b"\xff" * 12) + END, b""),
    "sparse-terabyte": (pax([(b"GNU.sparse.major", b"1"), (b"GNU.sparse.minor", b"0"), (b"GNU.sparse.name", b"s"),
                             (b"GNU.sparse.realsize", b"1099511627776")]) + header("s", 512) + b"1\n0\n0\n".ljust(512, b"\0") + END, b"more than"),
    "pax-of-gigabytes": (header("p", 3 << 30, b"x") + b"1" * 512, b""),
    "gnu-name-of-gigabytes": (header("././@LongLink", 3 << 30, b"L") + b"1" * 512, b""),
}
# Compressed: the stored size, not the unpacked one.
BOMBS = {
    "gzip-bomb": lambda: (zeros(["gzip", "-9"], 300), b"too much for its size"),
    "zstd-bomb": lambda: (zeros(["zstd", "-q", "-c"], 300), b"too much for its size"),
    "gzip-cut": lambda: (gzip.compress(tar(entry("f", os.urandom(90000))))[:60000], b""),
    "gzip-damaged": lambda: (lambda d: (d[:500] + bytes([d[500] ^ 255]) + d[501:], b""))(gzip.compress(tar(entry("f", os.urandom(9000))))),
    "gzip-in-gzip": lambda: (gzip.compress(gzip.compress(tar(entry("f", b"1")))), b"layer"),
}


def see_layer(d):
    """Only files, directories, links and whiteouts, with modes and attributes that any user could set."""
    names = {}
    for at, dirs, files in os.walk(d):
        for name in dirs + files:
            path = os.path.join(at, name)
            st = os.lstat(path)
            names.setdefault((st.st_dev, st.st_ino), [st, []])[1].append(path)
            kind = stat.S_IFMT(st.st_mode)
            assert kind in (stat.S_IFREG, stat.S_IFDIR, stat.S_IFLNK) or (kind == stat.S_IFCHR and st.st_rdev == 0), path
            assert not st.st_mode & 0o6000, path
            if kind in (stat.S_IFREG, stat.S_IFDIR):
                for x in os.listxattr(path):
                    assert x.startswith("user."), (path, x)
                    assert not x.startswith("user.overlay.") or (x, os.getxattr(path, x)) == ("user.overlay.opaque", b"y"), (path, x)
    for st, paths in names.values():
        if not stat.S_ISDIR(st.st_mode):
            assert st.st_nlink == len(paths), paths  # no other name of it is anywhere else


@pytest.fixture
def outside(tmp_path):
    """Files beside the store, and whether they are as they were."""
    there = tmp_path / "outside"
    there.mkdir()
    (there / "secret").write_text("canary")

    def look():
        return [(p.name, p.lstat().st_ino, p.lstat().st_nlink, p.lstat().st_mode, p.lstat().st_mtime_ns, p.is_file() and p.read_text())
                for p in sorted([*there.rglob("*"), there])] + sorted(os.listdir(tmp_path)) + sorted(os.listdir("/")) + sorted(os.listdir("/etc"))

    (tmp_path / "store").mkdir(mode=0o700)
    (tmp_path / "img").mkdir()
    before = look()
    yield
    assert look() == before


def refuse(tmp_path, name, stored, diff, kind, says):
    layout = Layout(tmp_path / "img" / name, [(stored, diff, kind)], tag="x:1")
    r = image("import", layout.path, store=tmp_path / "store")
    assert r.code in (1, 5, 7), r
    assert says in r.err and len(r.err) < 1000, r
    assert nothing_in(tmp_path / "store"), name


def test_refused(tmp_path, outside):
    """The control is in test_harmless: such an image as these are is taken when its layer is sound."""
    for name, (layer, says) in REFUSED.items():
        refuse(tmp_path, name, layer, sha256(layer), MEDIA_NONE, says)


def test_damaged_compression(tmp_path, outside):
    for name in ("gzip-cut", "gzip-damaged", "gzip-in-gzip"):
        stored, says = BOMBS[name]()
        refuse(tmp_path, name, stored, sha256(b""), "+gzip", says)


@pytest.mark.slow
def test_bombs(tmp_path, outside):
    for name in ("gzip-bomb", "zstd-bomb"):
        stored, says = BOMBS[name]()
        refuse(tmp_path, name, stored, sha256(b""), "+" + name[:4], says)


C = tarfile.CHRTYPE
HARMLESS = {
    "plain": tar(directory("d"), entry("d/f", b"1")),
    "absolute": tar(entry("/etc/absolute", b"1"), directory("/")),
    "through-parents": tar(symlink("l", "../../../../.."), entry("l/inside", b"1")),
    "through-absolute": tar(directory("d"), symlink("l", "/d"), entry("l/inside", b"1")),
    "links-that-point-out": tar(symlink("a", "/etc/passwd"), symlink("b", "../../../../etc/passwd")),
    "written-over-a-link": tar(symlink("f", "/etc/hostname"), entry("f", b"mine")),
    "hard-link-overwritten": tar(entry("a", b"first"), hardlink("b", "a"), entry("b", b"second")),
    "hard-link-of-a-link": tar(symlink("s", "/etc/passwd"), hardlink("h", "s")),
    "devices": tar(entry("null", type=C, dev=(1, 3)), entry("disk", type=tarfile.BLKTYPE, dev=(8, 0)), entry("pipe", type=tarfile.FIFOTYPE)),
    "forged-whiteout": tar(entry("w", type=C, dev=(0, 0))),
    "set-id": tar(entry("s", b"1", mode=0o6755), directory("sd", mode=0o2775)),
    "attributes": tar(entry("x", b"1", SCHILY__xattr__security__capability="\x01", SCHILY__xattr__trusted__overlay__opaque="y",
                            SCHILY__xattr__system__posix_acl_access="x", LIBARCHIVE__xattr__security__capability="AQ==",
                            SCHILY__xattr__user__overlay__redirect="/etc", SCHILY__xattr__user__overlay__metacopy="", SCHILY__xattr__user__mine="1")),
    "attribute-on-directory": tar(directory("x", SCHILY__xattr__user__overlay__opaque="x", SCHILY__xattr__user__overlay__origin="1")),
    "twice": tar(entry("f", b"1"), entry("f", b"2"), directory("d"), directory("d", mode=0o700), symlink("l", "a"), symlink("l", "b")),
    "twice-as-others": tar(symlink("d", "/etc"), directory("d"), entry("d/x", b"1"), entry("f", b"1"), symlink("f", "/etc/passwd"), entry("f", b"mine"),
                           entry("a", b"keep"), hardlink("a", "a"), hardlink("b", "a"), hardlink("b", "a")),
    "case": tar(entry("README", b"1"), entry("readme", b"2"), symlink("D", "/etc"), entry("d/hostname", b"3"), entry("\u00e9", b"4"), entry("e\u0301", b"5"),
                entry("\ufb01", b"6"), entry("fi", b"7")),
    "names": tar(entry("a\nb", b"1"), entry("\x1b[31m", b"2"), entry("-rf", b"3"), entry("...", b"4"), entry(" ", b"5")),
    "not-utf8": tar(entry("\udcff\udcfe", b"1"), format=tarfile.GNU_FORMAT),
    "owners": tar(entry("o", b"1", uid=4_000_000_000, gid=70000)),
    "times": tar(entry("old", b"1", mtime=-5), entry("new", b"1", mtime=2**40)),
    "whiteouts": tar(entry(".wh.a"), directory("a"), directory("b"), entry(".wh.b"), entry("c", b"1"), entry(".wh.c"), entry(".wh.d"),
                     entry("d/e", b"1"), entry(".wh..wh..opq")),
    "sparse": pax([(b"GNU.sparse.major", b"1"), (b"GNU.sparse.minor", b"0"), (b"GNU.sparse.name", b"holes"), (b"GNU.sparse.realsize", b"1048576")])
    + header("s", 1024) + b"1\n1044480\n512\n".ljust(512, b"\0") + b"x" * 512 + END,
    "more-after-the-end": tar(entry("f", b"1")) + tar(entry("hidden", b"1")),
    "pax-lies-of-its-length": header("p", 512, b"x") + b"999999999 path=a\n".ljust(512, b"\0") + header("f", 0) + END,
    "no-end": header("f", 3) + b"abc",
    "long-link": tar(symlink("l", "x" * 4000)),
    "many-directories": tar(entry("/".join("d%d" % i for i in range(200)) + "/f", b"1")),
}


def test_harmless(tmp_path, outside):
    """All of them are layers of one image."""
    store = tmp_path / "store"
    layout = Layout(tmp_path / "img/all", [(data, sha256(data), MEDIA_NONE) for data in HARMLESS.values()], tag="x:1")
    r = image("import", layout.path, store=store)
    assert r.code == 0, r
    assert b"3 devices" in r.err.replace(b"4 devices", b"3 devices") and b"set-id" in r.err and b"attributes" in r.err and b"owners" in r.err, r
    at = dict(zip(HARMLESS, layer_dirs(store, "x:1")))
    for d in at.values():
        see_layer(d)
    assert (at["absolute"] / "etc/absolute").read_text() == "1"
    assert (at["through-parents"] / "inside").exists() and (at["through-absolute"] / "d/inside").exists()
    assert (at["written-over-a-link"] / "f").read_text() == "mine"
    assert (at["hard-link-overwritten"] / "a").read_text() == "first"
    assert sorted(os.listdir(at["devices"])) == [] and os.listdir(at["forged-whiteout"]) == []
    assert os.listxattr(at["attributes"] / "x") == ["user.mine"] and os.listxattr(at["attribute-on-directory"] / "x") == []
    assert (at["twice"] / "f").read_text() == "2" and os.readlink(at["twice"] / "l") == "b"
    odd = at["twice-as-others"]
    assert odd.joinpath("f").read_text() == "mine" and odd.joinpath("a").read_text() == "keep" and odd.joinpath("b").samefile(odd / "a")
    apart = {"README": "1", "readme": "2", "d/hostname": "3", "\u00e9": "5", "\ufb01": "6", "fi": "7"}  # a decomposed name is taken composed: docs/images.md
    assert {n: (at["case"] / n).read_text() for n in apart} == apart and os.readlink(at["case"] / "D") == "/etc"
    assert os.listdir(os.fsencode(at["not-utf8"])) == [b"\xff\xfe"]
    assert (at["sparse"] / "holes").stat().st_size == 1048576 and (at["sparse"] / "holes").read_bytes()[1044480] == ord("x")
    assert not (at["more-after-the-end"] / "hidden").exists()
    w = at["whiteouts"]
    assert {n for n in "abcd" if (w / n).is_dir()} == set("abd") and (w / "c").is_file()
    assert all(os.getxattr(w / n, "user.overlay.opaque") == b"y" for n in ("a", "b", "d")) and os.getxattr(w, "user.overlay.opaque") == b"y"
    assert image("rm", "x:1", store=store).code == 0
    assert nothing_in(store)


@pytest.mark.parametrize("step", ["inflate", "hash", "files"])
def test_unpacker_can_do_nothing_else(tmp_path, step):
    """Its permissions, read from the Linux kernel while it is stopped in the middle of its work. Of the three processes of a layer
    only the last has a directory, and capabilities for its content."""
    layout = Layout(tmp_path / "img", [tar(*[entry("f%d" % i, os.urandom(1000)) for i in range(1500)])], "", tag="x:1")
    p = start("image", "import", layout.path, "--store", tmp_path / "store")

    def unpacker():
        for pid in children(p.pid):
            d = Path("/proc/%d" % pid)
            try:
                if "Seccomp:\t2" in (d / "status").read_text() and (d / "cmdline").read_text().split("\0")[1:2] == [step]:
                    os.kill(pid, signal.SIGSTOP)
                    return d
            except OSError:
                pass
        return None

    d = wait_until(unpacker) if not SANITIZED else None
    if not d:
        p.communicate()
        pytest.skip("sanitizers need more than the jail gives" if SANITIZED else "the unpacker was too quick to be looked at")
    status = dict(line.split(":\t", 1) for line in (d / "status").read_text().splitlines() if ":\t" in line)
    try:
        assert status["NoNewPrivs"] == "1" and status["Seccomp"] == "2"
        assert int(status["CapEff"], 16) == int(status["CapBnd"], 16) == (0b1011 if step == "files" else 0)
        if IS_ROOT:
            assert status["Uid"].split() == [str(0x6ffe0000)] * 4 and status["Groups"].strip() == ""
        for ns in ("user", "mnt", "pid", "net", "ipc", "uts", "cgroup"):
            assert os.readlink(d / "ns" / ns) != os.readlink("/proc/self/ns/" + ns), ns
        root = os.readlink(d / "root")
        assert os.path.realpath(root).startswith(str(tmp_path / "store/tmp")) and root.endswith(" (deleted)") == (step != "files"), root
        assert len(os.listdir(d / "fd")) <= 8, [os.readlink(f) for f in (d / "fd").iterdir()]
    finally:
        os.kill(int(d.name), signal.SIGCONT)
    assert p.communicate()[0].startswith(b"docker.io/library/x:1") and p.returncode == 0


# ---- an unpacker that was taken over ---------------------------------------------------------------------------

# In the place of caisson-unpack: the processes that read untrusted bytes do, and report, what the attacker wants.
TAKEN_OVER = r"""
#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct report { int32_t code; char msg[300]; char diff_id[72], seal[72]; uint64_t numbers[6]; };

int main(int argc, char **argv)
{
	struct report r = { 0 };
	char data[4096];
	ssize_t n;

	if (argc == 5 && !strcmp(argv[1], "hash")) /* parses nothing: nobody can take it over */
		return execv(REAL, argv);
	strcpy(r.diff_id, VICTIM);
	strcpy(r.seal, VICTIM);
	while ((n = read(0, data, sizeof(data))) > 0)
		(void)!write(1, data, (size_t)n);
	int fd = openat(4, "evil", O_WRONLY | O_CREAT, 0644);
	(void)!write(fd, "evil", 4);
	return write(3, &r, sizeof(r)) != sizeof(r);
}
"""


@needs_program("gcc")
def test_a_taken_over_unpacker_cannot_replace_the_layer_of_another_image(tmp_path, shared_dir):
    """All images that name the same diff_id share a layer. An archive that takes the unpacker over reports another layer's diff_id: it
    must not get that name, and under its own it may contain anything."""
    store, good = tmp_path / "store", tar(entry("good", b"good"))
    caisson = copy_tree(shared_dir / "bin", also=["caisson-image", "caisson-unpack"])
    real = (shared_dir / "bin" / "caisson-unpack").rename(shared_dir / "bin" / "real")
    (tmp_path / "fake.c").write_text(TAKEN_OVER)
    subprocess.run(["gcc", "-O1", "-o", shared_dir / "bin" / "caisson-unpack", f'-DREAL="{real}"', f'-DVICTIM="{sha256(good)}"', tmp_path / "fake.c"],
                   check=True)
    victim = tmp_path / "store" / "layers" / sha256(good)[7:]

    r = image("import", Layout(tmp_path / "evil", [(b"took it over", sha256(good), MEDIA_NONE)]).path, "--name", "evil:1", store=store, binary=caisson)
    assert not victim.exists(), "another image's layer was replaced"
    assert r.code != 0 and b"and not to" in r.err, r

    # The control: under its own name it can have any content.
    own = Layout(tmp_path / "own", [(b"took it over", sha256(b"took it over"), MEDIA_NONE)])
    r = image("import", own.path, "--name", "own:1", store=store, binary=caisson)
    assert r.code == 0, r
    assert [p.name for p in layer_dirs(store, "own:1")[0].iterdir()] == ["evil"]

    assert image("import", Layout(tmp_path / "good", [good]).path, "--name", "good:1", store=store).code == 0
    assert [(p.name, p.read_bytes()) for p in victim.iterdir()] == [("good", b"good")]
