# SPDX-License-Identifier: Apache-2.0
"""test_file_calls.py - Code in a cell against the calls that open files there on the host's behalf.

A file call is a process of the cell, so a name can lead it nowhere that the code could not go itself. Nothing
of the host is read, written, made or removed, whatever names do meanwhile; the control is a daemon that would open
files of a cell by their path from outside.
"""
import io
import os
import secrets
import signal
import stat
import tarfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from lib import at_most, landed, session
from cell_lib import until
from process import children
from snapshot import OWN_PREFIX


from files_lib import (CHANGED, DELETE, FROM_END, HASH, LIST, MKDIR, MOVE, OVERWRITE, PARENTS, READ, RECURSIVE, STAT, TAR_IN,  # noqa: E402
                       TAR_OUT, TO_END, WATCH, WRITE, FilesCell, needs_driver)

pytestmark = needs_driver
quick = pytest.mark.quick
# How often a name is exchanged while it is looked up: in make test, in make hostile, and in make soak (CAISSON_SWAPS=100000).
FEW, MANY = 700, int(os.environ.get("CAISSON_SWAPS", "5000"))


class HostDir:
    """A directory of the host that a way out would touch: readable and writable for all."""

    def __init__(self):
        self.nonce = secrets.token_hex(16)
        self.path = Path("/tmp") / (OWN_PREFIX + "files-" + secrets.token_hex(6))
        self.path.mkdir()
        self.path.chmod(0o777)
        (self.path / "secret").write_text(self.nonce)
        (self.path / "secret").chmod(0o666)
        (self.path / "sub").mkdir()
        (self.path / "sub" / "deep").write_text(self.nonce)
        os.sync()
        self.before = self.look()
        st = self.path.stat()
        self.times = (st.st_atime_ns, st.st_mtime_ns)

    def look(self):
        seen = []
        for where, dirs, files in sorted(os.walk(self.path)):
            for name in (".", *sorted(dirs), *sorted(files)):
                st = os.lstat(os.path.join(where, name))
                body = Path(where, name).read_bytes() if stat.S_ISREG(st.st_mode) else b""
                seen.append((where, name, st.st_ino, st.st_mode, st.st_uid, st.st_gid, st.st_nlink, st.st_mtime_ns, body))
        return seen

    def check(self):
        now = self.look()
        assert now == self.before, "WRITE: the host's directory was changed: %r" % (set(now) ^ set(self.before),)

    def remove(self):
        for where, dirs, files in os.walk(self.path, topdown=False):
            for name in files:
                os.unlink(os.path.join(where, name))
            for name in dirs:
                os.rmdir(os.path.join(where, name))
        self.path.rmdir()


@pytest.fixture
def host():
    h = HostDir()
    yield h
    h.remove()


@pytest.fixture
def cell(host):
    c = FilesCell(state=session().dir / "files-state", pids=64)
    c.ask("needle " + host.nonce.encode().hex())
    yield c
    c.close()


def root_of(cell):
    """The cell's root directory as the host sees it."""
    warden = until(lambda: next(iter(children(cell.process.pid)), 0), 5, "a warden")
    init = until(lambda: next(iter(children(warden)), 0), 5, "an init")
    return Path("/proc/%d/root" % init)


# ---- names that change while they are looked up --------------------------------------------------------------------

# Exchanges a directory with a link to the host's, or a file with one, as fast as it can.
FLIPPER = """
import ctypes, os, sys
libc = ctypes.CDLL(None)
os.chdir("/workspace")
while True:
    libc.renameat2(-100, b"d", -100, b"l", 2)
"""

SETUP = """
mkdir -p d/sub keep; echo real > d/secret; echo real > d/sub/deep; ln -s %s l
cat > /tmp/flip.py <<'END'
%s
END
setsid python3 /tmp/flip.py >/dev/null 2>&1 &
"""


def archive(*names):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as t:
        for name in names:
            info = tarfile.TarInfo(name)
            info.size = 4
            t.addfile(info, io.BytesIO(b"evil"))
    return out.getvalue()


CALLS = {
    "read": (READ, "d/secret", {}),
    "write": (WRITE, "d/secret", {"data": b"evil"}),
    "write_new": (WRITE, "d/new/file", {"data": b"evil", "flags": PARENTS}),
    "stat": (STAT, "d/secret", {}),
    "list": (LIST, "d", {"flags": RECURSIVE}),
    "list_above": (LIST, ".", {"flags": RECURSIVE}),
    "move": (MOVE, "keep", {"to": "d/keep", "flags": OVERWRITE}),
    "move_out": (MOVE, "d/secret", {"to": "d/secret2", "flags": OVERWRITE}),
    "delete": (DELETE, "d/secret", {}),
    "delete_tree": (DELETE, "d/sub", {"flags": RECURSIVE}),
    "mkdir": (MKDIR, "d/made", {}),
    "hash": (HASH, "d/secret", {}),
    "tar_out": (TAR_OUT, "d", {}),
    "tar_out_above": (TAR_OUT, ".", {}),
    "tar_in": (TAR_IN, "d", {"data": archive("secret", "sub/deep")}),
    "tar_in_above": (TAR_IN, ".", {"data": archive("d/secret", "d/sub/deep")}),
    "watch": (WATCH, "d", {"flags": RECURSIVE, "offset": 1}),
}
# These calls change files, so that the next one may find nothing: they only must not touch anything outside.
USED_UP = ("move", "move_out", "delete", "delete_tree", "mkdir", "list_above", "tar_out_above", "write_new")


def race(cell, host, what, times):
    op, path, more = CALLS[what]
    signal.alarm(3600 if times == MANY else 300)
    cell.sh(SETUP % (host.path, FLIPPER))
    errors, found = cell.repeat(times, op, path, **more)
    host.check()
    assert found == 0, "READ: content of the host's directory came out"
    assert sum(errors.values()) == times
    if what not in USED_UP:  # it was raced: the name led to both
        landed(len(errors) > 1 or what == "tar_in_above", errors)
    return errors


@quick
@pytest.mark.parametrize("what", CALLS)
def test_swapped_names_quick(cell, host, what, stopped_by):
    race(cell, host, what, FEW)
    stopped_by("the call is a process of the cell", "O_NOFOLLOW by descriptor, where it must not follow")


@pytest.mark.parametrize("what", CALLS)
def test_swapped_names(cell, host, what):
    race(cell, host, what, MANY)


@pytest.mark.parametrize("watches", [pytest.param(5, marks=quick), 100])
def test_watch_reports_nothing_of_the_host(cell, host, watches, stopped_by):
    """Each watch lives until it has reported a buffer of events, a thousand exchanges; the host's directory changes all the time."""
    busy, over = host.path / host.nonce, threading.Event()
    made = 0
    cell.sh(SETUP % (host.path, FLIPPER))

    def churn():
        nonlocal made
        while not over.is_set():
            busy.touch()
            busy.unlink()
            made += 1
    with ThreadPoolExecutor() as pool:
        later = pool.submit(churn)
        errors, found = cell.repeat(watches, WATCH, ".", flags=RECURSIVE)
        over.set()
        later.result()
    os.utime(host.path, ns=host.times)
    landed(errors == {"": watches} and made > 100, (errors, made))
    assert found == 0, "READ: events of the host's directory came out"
    host.check()
    stopped_by("the call is a process of the cell")


@quick
def test_swapped_names_control(cell, host):
    """The file that a daemon would get if it opened the cell's files by path: its own."""
    cell.sh("ln -s %s l; mkdir d; echo real > d/secret" % host.path)
    root = root_of(cell)
    landed((root / "workspace" / "l" / "secret").read_text() == host.nonce, "the link was not followed to the host")
    cell.sh("cat > /tmp/flip.py <<'END'\n%s\nEND\nsetsid python3 /tmp/flip.py >/dev/null 2>&1 &" % FLIPPER)
    seen, end = set(), time.monotonic() + 60
    while time.monotonic() < end and len(seen) < 2:
        try:
            seen.add((root / "workspace" / "d" / "secret").read_text())
        except OSError:
            pass
    landed(seen == {"real\n", host.nonce}, seen)
    assert cell.fails(READ, "keep", "ENOENT")


# ---- links ------------------------------------------------------------------------------------------------------


@quick
def test_links_lead_nowhere_but_the_cell(cell, host, stopped_by):
    cell.sh("ln -s %s abs; ln -s ../../../../../..%s rel; ln -s abs chain0; ln -s loop loop; ln -s nowhere dangling;"
            "for i in $(seq 0 45); do ln -s chain$i chain$((i+1)); done" % (host.path, host.path))
    for name in ("abs", "rel", "chain1", "chain5"):
        for op, path, more in ((READ, "/secret", {}), (STAT, "/secret", {}), (LIST, "/.", {}), (HASH, "/secret", {}),
                               (WRITE, "/new", {"data": b"x"}), (DELETE, "/secret", {}), (TAR_OUT, "/.", {}), (MKDIR, "/new", {}),
                               (DELETE, "/sub", {"flags": RECURSIVE}), (TAR_IN, "/.", {"data": archive("secret")})):
            assert cell.call(op, name + path, **more).error == "ENOENT", (name, op)
    for op in (READ, STAT, LIST, HASH, TAR_OUT):
        assert cell.call(op, "loop").error == "ELOOP" and cell.call(op, "chain46").error == "ELOOP"
        assert cell.call(op, "dangling").error == "ENOENT"
    # Calls on a link concern the link: its target stays.
    cell.sh("mkdir own; echo mine > own/f; ln -s own o")
    cell.ok(DELETE, "o", flags=RECURSIVE)
    assert cell.sh("cat own/f") == "mine\n"
    host.check()
    stopped_by("the cell's own mount namespace")


@quick
def test_magic_links(cell, host, stopped_by):
    """Through /proc a call reaches itself and its like, never pid 1 or the host."""
    for top in ("/proc/self/root", "/proc/self/cwd/../..", "/proc/thread-self/root"):
        assert cell.call(READ, top + str(host.path) + "/secret").error == "ENOENT"
        assert cell.ok(STAT, top + "/workspace").stats[0].type == "dir"
    for path in ("/proc/1/root/etc/passwd", "/proc/1/cwd", "/proc/1/fd/3", "/proc/1/environ", "/proc/1/mem", "/proc/1/maps"):
        assert cell.call(READ, path).error in ("EACCES", "EPERM", "ENOENT"), path
    a = cell.call(READ, "/proc/self/mem", length=100)
    assert a.error and a.status == 0
    for path in ("/proc/self/fd/0", "/proc/self/fd/1"):
        assert cell.call(READ, path).error == "ENXIO", path
    for op, path in ((WRITE, "/proc/self/x"), (WRITE, "/proc/sys/kernel/hostname"), (WRITE, "/sys/x"), (MKDIR, "/proc/x"),
                     (DELETE, "/proc/1"), (DELETE, "/dev/null"), (WRITE, "/dev/zero/x"), (WRITE, "/usr/bin/sh")):
        assert cell.call(op, path, data=b"x").error, path
    cell.sh("ln -s /proc/self/fd/1 out; ln -s /proc p")
    assert cell.call(READ, "out").error == "ENXIO"
    assert cell.ok(LIST, "/", flags=RECURSIVE, limit=3000).status == 0
    host.check()
    stopped_by("pid 1 is another user and not dumpable")


# ---- what is no file ---------------------------------------------------------------------------------------------


@quick
def test_special_files_answer_at_once(cell, stopped_by):
    cell.sh("mkfifo p; python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind(\"s\")'; ln -s p l; mkdir d; mkfifo d/p")
    for path in ("p", "s", "l", "/dev/zero", "/dev/full", "/dev/random", "/dev/tty", "/dev/ptmx", "/proc/self/fd/0"):
        for op in (READ, HASH, TAR_OUT):
            begin = time.monotonic()
            assert cell.call(op, path).error in ("ENXIO", "EACCES", "EIO"), (op, path)
            assert time.monotonic() - begin < at_most(5)
    assert cell.ok(TAR_OUT, "d").data == bytes(1024)
    stopped_by("O_NONBLOCK and fstat")


@quick
def test_lies_about_sizes(cell):
    """Files that change under the worker's hands: never more than was there, and a clean end."""
    cell.sh("(while :; do truncate -s 9M f; echo > f; dd if=/dev/zero of=f bs=64k count=20 2>/dev/null; done) >/dev/null 2>&1 &")
    cell.sh("until test -e f; do :; done")
    for _ in range(20):
        a = cell.ok(READ, "f")
        assert len(a.data) <= max(a.stats[0].size, 0) or a.stats[0].size == 0
        assert cell.call(TAR_OUT, "f").error == "" and cell.call(HASH, "f").error == ""


@quick
def test_largest_possible_file(cell):
    """A file without content and a size of 8 EiB. Code cannot make one; if there is one, as in a directory of the operator, the
    requested part arrives, limits hold, and no process reads all of it."""
    most = (1 << 63) - 1
    cell.sh("mkdir d; : > d/f; ! truncate -s %d d/f 2>/dev/null; ! truncate -s 1T d/f 2>/dev/null; echo small > d/small" % most)
    assert cell.ok(STAT, "d/f").stats[0].size == 0
    os.truncate(root_of(cell) / "workspace/d/f", most)
    assert cell.ok(STAT, "d/f").stats[0].size == most
    assert [s.size for s in cell.ok(LIST, "d").stats if s.name == b"f"] == [most]
    for more, want in ((dict(length=5), 5), (dict(offset=most - 3), 3), (dict(offset=7, flags=FROM_END), 7), (dict(offset=most - 1, length=100), 1),
                       (dict(offset=most), 0), (dict(offset=most + 1), 0), (dict(offset=TO_END), 0), (dict(limit=100000), 100000)):
        a = cell.ok(READ, "d/f", **more)
        assert a.data == bytes(want) and a.stats[0].size == most and not a.flags & CHANGED, more
    for op, path in ((HASH, "d/f"), (TAR_OUT, "d/f"), (TAR_OUT, "d")):
        a = cell.fails(op, path, "EFBIG", limit=1 << 20)
        assert len(a.data) <= 1 << 20
    cell.sh("echo small > d/f")  # the control: it was the size
    assert cell.ok(HASH, "d/f", limit=1 << 20).bytes == 6 and cell.ok(TAR_OUT, "d", limit=1 << 20).count == 2


# ---- what is written ---------------------------------------------------------------------------------------------


@quick
def test_upload_targets_that_change(cell):
    """The directory goes, the name becomes a directory, a link, a pipe: an error or the whole file, never a half one."""
    cell.sh("""cat > /tmp/fight.sh <<'END'
cd /workspace
while :; do
  mkdir -p d; rm -rf d/f; mkdir d/f; rm -rf d; mkdir -p d; ln -s /tmp/x d/f; rm -rf d/f; mkfifo d/f; rm -rf d
done
END
sh /tmp/fight.sh >/dev/null 2>&1 &""")
    errors, _ = cell.repeat(FEW, WRITE, "d/f", data=b"x" * 100, flags=PARENTS)
    assert set(errors) <= {"", "ENOENT", "EISDIR", "ENOTDIR", "EEXIST", "EPERM"}, errors
    cell.sh("while pkill -f '[f]ight.sh'; do :; done; rm -rf d; test ! -e /tmp/x")
    assert "caisson" not in cell.sh("find / -xdev -name '.caisson-*' 2>/dev/null || true")


def one(name, kind=tarfile.REGTYPE, link="", body=b"evil", **more):
    info = tarfile.TarInfo()
    info.name, info.type, info.linkname = name, kind, link
    info.size = len(body) if kind == tarfile.REGTYPE else 0
    for k, v in more.items():
        setattr(info, k, v)
    return info, body


def pack(*entries, fmt=tarfile.PAX_FORMAT):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=fmt) as t:
        for info, body in entries:
            t.addfile(info, io.BytesIO(body))
    return out.getvalue()


@quick
def test_archives_that_climb(cell, host, stopped_by):
    link, hard = tarfile.SYMTYPE, tarfile.LNKTYPE
    up = "../" * 10
    target = str(host.path) + "/secret"
    climbers = [
        [one("../x")], [one("a/../../x")], [one("./../x")], [one("/x")], [one(target)], [one("//x")], [one(up + target)],
        [one("..")], [one("a/..")], [one("../")], [one("x" * 120 + "/../../../x")], [one("/" + "y" * 200)],
        [one("l", link, str(host.path)), one("l/secret")], [one("l", link, ".."), one("l/x")],
        [one("l", link, "/"), one("l/workspace/outside/x")], [one("l", link, "../outside"), one("l/x")],
        [one("l", link, "../outside"), one("l", tarfile.DIRTYPE)], [one("d", tarfile.DIRTYPE), one("d/l", link, "../../outside"), one("d/l/x")],
        [one("l", link, "m"), one("m", link, "../outside"), one("l/x")],
        [one("h", hard, target)], [one("h", hard, "../outside/keep")], [one("h", hard, "/workspace/outside/keep")],
        [one("l", link, "../outside"), one("h", hard, "l/keep")],
        [one("dev", tarfile.CHRTYPE, devmajor=1, devminor=5)], [one("dev", tarfile.BLKTYPE, devmajor=8)], [one("p", tarfile.FIFOTYPE)],
        [one("s", tarfile.GNUTYPE_SPARSE)],
    ]
    cell.sh("mkdir in outside; echo keep > outside/keep")
    before = cell.sh("find outside -exec ls -ldi {} +; cat outside/keep")
    for entries in climbers:
        for fmt in (tarfile.PAX_FORMAT, tarfile.GNU_FORMAT):
            a = cell.call(TAR_IN, "in", data=pack(*entries, fmt=fmt))
            assert a.error in ("EPERM", "ENOTDIR", "ELOOP", "EEXIST", "ENOENT"), (entries, a)
            assert a.status == 0
            cell.sh("rm -rf in; mkdir in")
            assert cell.sh("find outside -exec ls -ldi {} +; cat outside/keep") == before, entries
            assert cell.sh("ls -A /workspace") == "in\noutside\n"
    # A link that is only a link may be there; so may a bit that is then dropped.
    cell.ok(TAR_IN, "in", data=pack(one("l", link, target), one("suid", mode=0o6755)))
    assert cell.sh("stat -c %a in/suid; readlink in/l").split() == ["755", target]
    host.check()
    stopped_by("each component by its own descriptor", "the cell's own mount namespace")


def files_below(top):
    """{name: content, target or None for a directory}, as the host sees them: by bytes."""
    found = {}
    for where, dirs, files in os.walk(os.fsencode(top)):
        for name in dirs + files:
            path = os.path.join(where, name)
            st = os.lstat(path)
            found[os.path.relpath(path, os.fsencode(top)).decode()] = (
                "-> " + os.readlink(path).decode() if stat.S_ISLNK(st.st_mode) else Path(path.decode()).read_bytes().decode() if stat.S_ISREG(st.st_mode) else None)
    return found


@quick
def test_archive_names_that_collide(cell, host, stopped_by):
    """The same name twice, as anything, and names that only some file systems distinguish: the last one counts, never through an existing link."""
    where = root_of(cell) / "workspace" / "in"
    link, hard, directory = tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.DIRTYPE
    out = str(host.path)
    taken = [
        ([one("f", body=b"1"), one("f", body=b"22")], {"f": "22"}),
        ([one("f", body=b"1"), one("./f", body=b"22"), one("x//./f")], {"f": "22", "x": None, "x/f": "evil"}),
        ([one("l", link, out + "/secret"), one("l")], {"l": "evil"}),
        ([one("f"), one("f", link, out + "/secret"), one("f", body=b"mine")], {"f": "mine"}),
        ([one("f", body=b"keep"), one("h", hard, "f"), one("h", body=b"new")], {"f": "keep", "h": "new"}),
        ([one("f", body=b"keep"), one("f", hard, "f")], {"f": "keep"}),
        ([one("f", body=b"keep"), one("h", hard, "f"), one("h", hard, "f"), one("f", hard, "h")], {"f": "keep", "h": "keep"}),
        ([one("d", directory), one("d", directory), one("d/f")], {"d": None, "d/f": "evil"}),
        ([one("README", body=b"1"), one("readme", body=b"2"), one("ReadMe", body=b"3")], {"README": "1", "readme": "2", "ReadMe": "3"}),
        ([one("\u00e9", body=b"1"), one("e\u0301", body=b"2"), one("\ufb01", body=b"3"), one("fi", body=b"4")], {"\u00e9": "1", "e\u0301": "2", "\ufb01": "3", "fi": "4"}),
        ([one("D", link, out), one("d/secret")], {"D": "-> " + out, "d": None, "d/secret": "evil"}),
    ]
    for entries, want in taken:
        cell.sh("rm -rf in; mkdir in")
        cell.ok(TAR_IN, "in", data=pack(*entries))
        assert files_below(where) == want, entries
    for entries, want in (([one("d", directory), one("d/f"), one("d")], {"d": None, "d/f": "evil"}), ([one("f"), one("f", directory)], {"f": "evil"}),
                          ([one("f"), one("f/g")], {"f": "evil"}), ([one("D", link, out), one("D", directory), one("D/secret")], {"D": "-> " + out})):
        cell.sh("rm -rf in; mkdir in")
        assert cell.call(TAR_IN, "in", data=pack(*entries)).error in ("EISDIR", "EEXIST", "ENOTDIR"), entries
        assert files_below(where) == want, entries
    host.check()
    stopped_by("what is in the way is unlinked, never followed")


@quick
def test_archive_attributes_are_not_taken(cell, stopped_by):
    """Extended attributes and owners of an archive: none of them, by whatever name a writer of archives has for them."""
    names = ("security.capability", "security.selinux", "system.posix_acl_access", "trusted.overlay.opaque", "trusted.overlay.redirect", "user.overlay.opaque", "user.mine")
    records = {head + n: "\x01\x00\x00\x02" if "capability" in n else "y" for n in names for head in ("SCHILY.xattr.", "LIBARCHIVE.xattr.")}
    records.update({"SCHILY.acl.access": "user::rwx,user:0:rwx", "RHT.security.selinux": "x", "uid": "0", "gid": "0", "uname": "root"})
    cell.sh("mkdir in")
    cell.ok(TAR_IN, "in", data=pack(one("f", pax_headers=records, mode=0o4755), one("d", tarfile.DIRTYPE, pax_headers=records, mode=0o2755)))
    cell.sh("touch made")
    where = root_of(cell) / "workspace"
    own = os.stat(where / "made")
    for name in ("in/f", "in/d"):
        st = os.stat(where / name)
        assert not os.listxattr(where / name) and (st.st_uid, st.st_gid, st.st_mode & 0o7777) == (own.st_uid, own.st_gid, 0o755), name
    stopped_by("only names, modes, times and content are read")


@quick
def test_archive_headers_that_lie(cell):
    """Sizes of exabytes, invalid numbers, headers that end early: refused, and nothing is kept of them."""
    good = archive("f")

    def patched(at, data):
        block = bytearray(good[:512])
        block[at:at + len(data)] = data
        block[148:156] = b" " * 8
        block[148:156] = b"%06o\0 " % sum(block)
        return bytes(block) + good[512:]

    cell.sh("mkdir in")
    for data in (patched(124, b"77777777777\0"), patched(124, b"\x80" + b"\xff" * 11), patched(124, b"\xff" * 12),
                 patched(124, b"-0000000001\0"), patched(124, b"0x1000"), patched(0, b"\0" * 100), good[:700], good[:512],
                 patched(124, b"\x80\0\0\0\x7f" + b"\xff" * 7)):
        a = cell.call(TAR_IN, "in", data=data)
        assert a.error in ("EBADMSG", "EISDIR", "EFBIG", "ENOSPC"), a
        assert cell.sh("ls -A in") == ""


@quick
def test_hard_links_are_not_written_through(cell):
    cell.sh("mkdir a b; echo keep > a/f; chmod 600 a/f; ln a/f b/f; ln a/f b/g")
    cell.ok(WRITE, "b/f", data=b"new", mode=0o777)
    cell.ok(TAR_IN, "b", data=archive("g"))
    assert cell.sh("cat a/f; stat -c '%a %h' a/f") == "keep\n600 1\n"
