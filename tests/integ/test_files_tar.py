# SPDX-License-Identifier: Apache-2.0
"""test_files_tar.py - Archives out of a cell and into it, against python's tarfile and GNU tar."""
import io
import subprocess
import tarfile

import pytest

from files_lib import CHANGED, FilesCell, PARENTS, SKIPPED, TAR_IN, TAR_OUT, WRITE, needs_driver

pytestmark = needs_driver


@pytest.fixture
def cell():
    c = FilesCell()
    yield c
    c.close()


def entry(name, data=None, kind=None, **more):
    """One member; kind as tarfile's type byte."""
    info = tarfile.TarInfo()
    info.name = name
    info.type = kind or tarfile.REGTYPE
    info.size = len(data or b"")
    info.mode = 0o644
    for k, v in more.items():
        setattr(info, k, v)
    return info, data or b""


def archive(*entries, fmt=tarfile.PAX_FORMAT):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=fmt) as t:
        for info, data in entries:
            t.addfile(info, io.BytesIO(data))
    return out.getvalue()


# ---- out -------------------------------------------------------------------------------------


def test_out(cell, tmp_path):
    long = "d" * 120 + "/" + "f" * 130
    cell.sh("mkdir -p a/b %s; echo hi > a/b/f; chmod 750 a/b/f; touch -d @1700000000 a/b/f; ln -s b a/l;"
            "ln -s %s a/long; dd if=/dev/urandom of=a/big bs=1000 count=777 2>/dev/null; echo x > %s;"
            "mkfifo a/p; ln a/big a/hard" % ("d" * 120, "t" * 300, long))
    a = cell.ok(TAR_OUT, ".")
    assert a.flags == SKIPPED and a.bytes == len(a.data)
    with tarfile.open(fileobj=io.BytesIO(a.data)) as t:
        members = {m.name: m for m in t.getmembers()}
        assert sorted(members) == sorted(["a", "a/b", "a/b/f", "a/l", "a/long", "a/big", "a/hard", "d" * 120, long])
        f = members["a/b/f"]
        assert (f.mode, f.size, f.mtime, f.isreg()) == (0o750, 3, 1700000000, True)
        assert members["a/l"].linkname == "b" and members["a/long"].linkname == "t" * 300
        assert t.extractfile("a/big").read() == t.extractfile("a/hard").read()
    (tmp_path / "x").mkdir()
    subprocess.run(["tar", "-xf", "-", "-C", tmp_path / "x"], input=a.data, check=True)
    assert (tmp_path / "x" / long).read_text() == "x\n"


def test_out_strange_names(cell):
    names = [b"\xff" * 5, b"\xfe" * 200, "é".encode() * 100, b"new\nline"]
    for n in names:
        cell.ok(WRITE, n, data=b"")
    a = cell.ok(TAR_OUT, ".")
    with tarfile.open(fileobj=io.BytesIO(a.data), encoding="utf-8", errors="surrogateescape") as t:
        assert sorted(m.name.encode("utf-8", "surrogateescape") for m in t) == sorted(names)


def test_out_single_file_and_errors(cell):
    cell.sh("echo 1 > f; mkfifo p; mkdir -p d/shut; chmod 0 d/shut; mkdir e; echo > e/no; chmod 0 e/no")
    with tarfile.open(fileobj=io.BytesIO(cell.ok(TAR_OUT, "/workspace/f").data)) as t:
        assert t.getnames() == ["f"]
    cell.fails(TAR_OUT, "p", "ENXIO")
    cell.fails(TAR_OUT, "none", "ENOENT")
    assert cell.fails(TAR_OUT, "d", "EACCES").where == b"shut"
    assert cell.fails(TAR_OUT, "e", "EACCES").where == b"no"
    cell.sh("truncate -s 200M huge")
    cell.fails(TAR_OUT, "huge", "EFBIG", limit=1 << 20)


def test_out_of_a_file_that_shrinks(cell):
    cell.sh("mkdir d; (while :; do truncate -s 4M d/f; truncate -s 10 d/f; done) >/dev/null 2>&1 & echo $! > pid")
    for _ in range(10):
        a = cell.ok(TAR_OUT, "d")
        assert a.flags in (0, CHANGED)
        with tarfile.open(fileobj=io.BytesIO(a.data)) as t:
            for m in t:
                assert len(t.extractfile(m).read()) == m.size
    cell.sh("kill $(cat pid)")


# ---- in --------------------------------------------------------------------------------------


@pytest.mark.parametrize("fmt", [tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
def test_in(cell, fmt):
    long = "p" * 90 + "/" + "q" * 90
    data = archive(entry("./", kind=tarfile.DIRTYPE, mode=0o755), entry("./a/", kind=tarfile.DIRTYPE, mode=0o500),
                   entry("./a/f", b"hi", mode=0o4755, mtime=1700000000), entry("a//b/./c", b"deep"),
                   entry("l", kind=tarfile.SYMTYPE, linkname="a/f"), entry("h", kind=tarfile.LNKTYPE, linkname="a/f"),
                   entry(long, b"x" * 5000), entry("a/f2", b"y"), fmt=fmt)
    a = cell.ok(TAR_IN, "new/place", data=data, flags=PARENTS)
    assert a.count == 7
    assert cell.sh("cd new/place; cat a/f a/b/c l h a/f2; stat -c '%a %Y' a/f; stat -c %a a; stat -c %s " + long) == \
        "hideephihiy755 1700000000\n700\n5000\n"


def test_in_and_out_again(cell, tmp_path):
    src = tmp_path / "s"
    (src / ("n" * 200)).mkdir(parents=True)
    (src / ("n" * 200) / "f").write_bytes(b"z" * 100000)
    (src / "l").symlink_to("n" * 150)
    for fmt in ("gnu", "pax", "ustar", "v7"):
        data = subprocess.run(["tar", "--format=" + fmt, "-cf", "-", "-C", src, "."], check=fmt in ("gnu", "pax"),
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout
        cell.ok(TAR_IN, fmt, data=data, flags=PARENTS)
    with tarfile.open(fileobj=io.BytesIO(cell.ok(TAR_OUT, "gnu").data)) as t:
        assert t.extractfile("n" * 200 + "/f").read() == b"z" * 100000
        assert t.getmember("l").linkname == "n" * 150


def test_in_replaces_names_and_writes_through_none(cell):
    cell.sh("mkdir d out; echo keep > out/k; ln -s ../out/k d/f; ln out/k d/hard; ln -s ../out d/dir")
    cell.ok(TAR_IN, "d", data=archive(entry("f", b"new"), entry("hard", b"new2"), entry("f", b"twice")))
    assert cell.sh("cat out/k d/f d/hard") == "keep\ntwicenew2"
    # A link that is there already, and one that the archive brings, are not followed either.
    assert cell.fails(TAR_IN, "d", "ENOTDIR", data=archive(entry("dir/k", b"bad"))).where == b"dir/k"
    cell.fails(TAR_IN, "d", "ENOTDIR", data=archive(entry("s", kind=tarfile.SYMTYPE, linkname="/workspace/out"),
                                                    entry("s/k", b"bad")))
    cell.fails(TAR_IN, "d", "EEXIST", data=archive(entry("dir", kind=tarfile.DIRTYPE)))
    assert cell.sh("cat out/k; ls out") == "keep\nk\n"


BAD = {
    "absolute": ([entry("/workspace/x", b"1")], "EPERM"),
    "dotdot": ([entry("../x", b"1")], "EPERM"),
    "dotdot inside": ([entry("a/../../x", b"1")], "EPERM"),
    "dotdot last": ([entry("a/..", b"1")], "EPERM"),
    "device": ([entry("x", kind=tarfile.CHRTYPE, devmajor=1, devminor=5)], "EPERM"),
    "block": ([entry("x", kind=tarfile.BLKTYPE)], "EPERM"),
    "fifo": ([entry("x", kind=tarfile.FIFOTYPE)], "EPERM"),
    "sparse": ([entry("x", b"", kind=tarfile.GNUTYPE_SPARSE)], "EPERM"),
    "hard link up": ([entry("x", kind=tarfile.LNKTYPE, linkname="../secret")], "EPERM"),
    "hard link absolute": ([entry("x", kind=tarfile.LNKTYPE, linkname="/etc/passwd")], "EPERM"),
    "hard link to nothing": ([entry("x", kind=tarfile.LNKTYPE, linkname="none")], "ENOENT"),
    "long absolute": ([entry("/" + "x" * 200, b"1")], "EPERM"),
    "name too long": ([entry("x" * 256, b"1")], "ENAMETOOLONG"),
    "file over directory": ([entry("d", kind=tarfile.DIRTYPE), entry("d", b"1")], "EISDIR"),
    "file as directory": ([entry("f", b"1"), entry("f/x", b"1")], "ENOTDIR"),
    "root as file": ([entry(".", b"1")], "EISDIR"),
}


@pytest.mark.parametrize("what", BAD)
def test_in_refuses(cell, what):
    entries, error = BAD[what]
    cell.sh("mkdir in; echo 1 > secret")
    fmt = tarfile.GNU_FORMAT if "long" in what else tarfile.PAX_FORMAT
    cell.fails(TAR_IN, "in", error, data=archive(*entries, fmt=fmt))
    assert cell.sh("ls -A; ls /workspace/in/x 2>/dev/null || true") == "in\nsecret\n"


def test_in_refuses_damage(cell):
    good = archive(entry("f", b"x" * 2000))
    cell.sh("mkdir in")
    for n in (0, 100, 512, 1000, 2048):
        cell.fails(TAR_IN, "in", "EBADMSG", data=good[:n])
    cell.fails(TAR_IN, "in", "EBADMSG", data=good[:20] + b"!" + good[21:])
    cell.fails(TAR_IN, "in", "EBADMSG", data=b"\x1f\x8b" + bytes(600))
    assert cell.call(TAR_IN, "in", data="abort:" + good[:1024].hex()).error == "ECANCELED"
    assert cell.sh("ls -A in") == ""
    cell.ok(TAR_IN, "in", data=good + b"anything after the end")
    for path, error in (("none", "ENOENT"), ("in/f", "ENOTDIR")):
        cell.fails(TAR_IN, path, error, data=good)
