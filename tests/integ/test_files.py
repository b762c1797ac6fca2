# SPDX-License-Identifier: Apache-2.0
"""test_files.py - File calls in a real cell: each of them, and each way it can fail."""
import hashlib
import struct

import pytest

from files_lib import (CHANGED, CUT, DELETE, FROM_END, FilesCell, HASH, LIST, MADE, MKDIR, MOVE,
                       NOFOLLOW, OVERWRITE, PARENTS, READ, RECURSIVE, STAT, WATCH, WRITE,
                       needs_driver)
from process import wait_until

pytestmark = needs_driver


@pytest.fixture
def cell():
    c = FilesCell()
    yield c
    c.close()


# ---- reading ---------------------------------------------------------------------------------


def test_read_whole_part_and_tail(cell):
    body = bytes(range(256)) * 1000
    cell.ok(WRITE, "f", data=body)
    a = cell.ok(READ, "f")
    assert a.data == body and a.bytes == len(body)
    assert a.stats[0].size == len(body) and a.stats[0].type == "file"
    assert cell.ok(READ, "f", offset=1000, length=300).data == body[1000:1300]
    assert cell.ok(READ, "f", offset=255990).data == body[255990:]
    assert cell.ok(READ, "f", offset=300000).data == b""
    assert cell.ok(READ, "f", offset=10, flags=FROM_END).data == body[-10:]
    assert cell.ok(READ, "f", offset=10**9, flags=FROM_END).data == body
    assert cell.ok(READ, "f", limit=7).data == body[:7]
    assert cell.ok(READ, "/workspace/f").data == body
    assert cell.ok(READ, "/workspace/../workspace//./f").data == body


def test_read_of_other_than_files(cell):
    cell.sh("mkdir d; mkfifo p; ln -s p lp; ln -s loop loop; ln -s nowhere dangling;"
            "python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind(\"s\")'")
    for path, error in [("d", "EISDIR"), ("p", "ENXIO"), ("lp", "ENXIO"), ("s", "ENXIO"),
                        ("/dev/zero", "ENXIO"), ("/dev/null", "ENXIO"), ("loop", "ELOOP"),
                        ("dangling", "ENOENT"), ("", "ENOENT"), ("missing", "ENOENT"),
                        ("f/x", "ENOENT"), ("/etc/shadow", None), ("x" * 256, "ENAMETOOLONG")]:
        a = cell.call(READ, path)
        assert a.status == 0 and a.data == b"", (path, a)
        if error:
            assert a.error == error, (path, a)
        else:
            assert a.error in ("ENOENT", "EACCES"), (path, a)


def test_read_follows_links_inside_the_cell(cell):
    cell.sh("echo in > t; ln -s /workspace/t abs; ln -s ../workspace/t rel; ln -s /etc/passwd etc")
    assert cell.ok(READ, "abs").data == b"in\n"
    assert cell.ok(READ, "rel").data == b"in\n"
    # The cell's own file, which has the cell's user and no user of the host.
    assert b"agent" in cell.ok(READ, "etc").data


def test_read_a_file_without_a_size(cell):
    a = cell.ok(READ, "/proc/self/status")
    assert a.stats[0].size == 0 and a.data.startswith(b"Name:\tcaisson-files\n")
    fields = dict(line.split(b":\t") for line in a.data.splitlines() if b":\t" in line)
    # The worker is a command of the cell: its user, no capability, filtered, nothing to gain.
    assert fields[b"Uid"].split() == [b"1000"] * 4 and fields[b"Gid"].split() == [b"1000"] * 4
    assert fields[b"Groups"].strip() == b""
    for caps in (b"CapInh", b"CapPrm", b"CapEff", b"CapBnd", b"CapAmb"):
        assert int(fields[caps], 16) == 0
    assert fields[b"Seccomp"] == b"2" and fields[b"NoNewPrivs"] == b"1"
    assert fields[b"NSsid"] == fields[b"NSpid"]


def test_worker_has_two_pipes_and_nothing_else(cell):
    a = cell.ok(LIST, "/proc/self/fd")
    kinds = {s.name: s.target.split(b":")[0] for s in a.stats}
    assert kinds.pop(b"0") == b"pipe" and kinds.pop(b"1") == b"pipe"
    assert kinds.pop(b"2") == b"/dev/null"
    assert list(kinds.values()) == [b"/proc/%d/fd" % int(kinds.popitem()[1].split(b"/")[2])] or not kinds


def test_read_sparse_and_shrinking(cell):
    cell.sh("truncate -s 256M huge; ! truncate -s 257M huge")  # no file is larger than the disk
    a = cell.ok(READ, "huge", offset=200 << 20, length=100000)
    assert a.data == bytes(100000) and a.stats[0].size == 256 << 20
    a = cell.ok(READ, "huge", offset=(1 << 64) - 2, length=100000)
    assert a.data == b""
    cell.sh("truncate -s 200M f; (while :; do truncate -s 200M f; truncate -s 100 f; done) >/dev/null 2>&1 &")
    seen = set()
    for _ in range(20):
        a = cell.ok(READ, "f", limit=4 << 20)
        assert len(a.data) <= min(4 << 20, a.stats[0].size)
        want = min(4 << 20, a.stats[0].size)
        assert (len(a.data) == want) != bool(a.flags & CHANGED)
        seen.add(a.flags)
    assert seen <= {0, CHANGED}


def test_hash(cell):
    for n in (0, 1, 55, 56, 63, 64, 65, 119, 120, 1000000):
        body = bytes(i * 7 % 251 for i in range(n))
        cell.ok(WRITE, "f", data=body)
        a = cell.ok(HASH, "f")
        assert a.data == hashlib.sha256(body).digest() and a.bytes == n
    cell.fails(HASH, "f", "EFBIG", limit=999999)
    cell.fails(HASH, "/dev/zero", "ENXIO")


def test_stat(cell):
    cell.sh("mkdir d; echo x > f; ln f g; ln -s f l; mkfifo p; chmod 640 f; touch -d @1700000000.5 f")
    st = cell.ok(STAT, "f").stats[0]
    assert (st.type, st.mode, st.size, st.nlink, st.uid) == ("file", 0o640, 2, 2, 1000)
    assert st.mtime_ns == 1700000000500000000
    assert cell.ok(STAT, "l").stats[0].ino == st.ino
    st = cell.ok(STAT, "l", flags=NOFOLLOW).stats[0]
    assert st.type == "link" and st.target == b"f"
    assert cell.ok(STAT, "d").stats[0].type == "dir"
    assert cell.ok(STAT, "p").stats[0].type == "fifo"
    assert cell.ok(STAT, "/dev/null").stats[0].type == "device"
    cell.fails(STAT, "none", "ENOENT")
    cell.fails(STAT, "f/below", "ENOTDIR")


# ---- writing ---------------------------------------------------------------------------------


def test_write_new_and_replace(cell):
    a = cell.ok(WRITE, "f", data=b"one")
    assert a.flags & MADE and a.stats[0].mode == 0o644 and a.stats[0].size == 3
    cell.sh("chmod 750 f; ln f other")
    a = cell.ok(WRITE, "f", data=b"two!")
    assert not a.flags & MADE and a.stats[0].mode == 0o750
    # The name was replaced: the file that it named is as it was.
    assert cell.sh("cat f; echo; cat other; ls -A") == "two!\nonef\nother\n"
    assert cell.ok(WRITE, "f", data=b"", mode=0o600).stats[0].mode == 0o600
    assert cell.sh("stat -c %s f").strip() == "0"


def test_write_large(cell):
    cell.ok(WRITE, "big", data="zeros:%d" % (50 << 20))
    assert cell.sh("stat -c %s big").strip() == str(50 << 20)


def test_write_replaces_a_link_not_its_target(cell):
    cell.sh("echo keep > target; ln -s target l; ln -s nowhere dangling")
    cell.ok(WRITE, "l", data=b"new")
    cell.ok(WRITE, "dangling", data=b"new")
    assert cell.sh("cat target; test -L l || cat l; test -e nowhere || echo none") == "keep\nnewnone\n"


def test_write_fails_and_leaves_nothing(cell):
    cell.sh("mkdir d ro; echo x > f; chmod 555 ro; mkfifo p")
    before = cell.sh("find . | sort")
    for path, error in [("d", "EISDIR"), ("d/", "EISDIR"), ("new/", "EISDIR"), ("", "EINVAL"), ("..", "EINVAL"),
                        ("/", "EINVAL"), ("no/such/dir", "ENOENT"), ("f/x", "ENOTDIR"),
                        ("ro/x", "EACCES"), ("/usr/x", "EROFS"), ("x" * 256, "ENAMETOOLONG"),
                        ("/proc/x", None), ("/sys/x", None)]:
        a = cell.call(WRITE, path, data=b"content")
        assert a.error == error or (error is None and a.error), (path, a)
        assert a.status == 0
    # The host closes before the end, or sends bytes that are not a frame.
    assert cell.call(WRITE, "f", data="abort:" + b"half".hex()).error == "ECANCELED"
    assert cell.call(WRITE, "f", data="raw:").error == "ECANCELED"
    assert cell.call(WRITE, "f", data="raw:" + struct.pack("II", 2, 1 << 20).hex()).error == "EPROTO"
    assert cell.call(WRITE, "f", data="raw:" + struct.pack("II", 9, 1).hex()).error == "EPROTO"
    assert cell.sh("find . | sort") == before and cell.sh("cat f") == "x\n"
    cell.ok(WRITE, "p", data=b"replaced")  # a pipe is only a name here
    assert cell.sh("cat p") == "replaced"


def test_write_makes_parents(cell):
    cell.ok(WRITE, "a/b//c/f", data=b"1", flags=PARENTS)
    cell.ok(WRITE, "/workspace/a/./b/../z/g", data=b"2", flags=PARENTS)
    assert cell.sh("cat a/b/c/f a/z/g") == "12"
    cell.fails(WRITE, "a/b/c/f/under", "ENOTDIR", data=b"", flags=PARENTS)
    cell.fails(WRITE, "/nowhere/f", "EACCES", data=b"", flags=PARENTS)


def test_write_into_a_full_disk():
    cell = FilesCell(memory_mib=128, disk_mib=16)
    try:
        cell.ok(WRITE, "f", data=b"old")
        a = cell.call(WRITE, "f", data="zeros:%d" % (64 << 20))
        assert a.error in ("ENOSPC", "EFBIG"), a
        assert cell.sh("cat f; ls -A") == "oldf\n"
        cell.ok(WRITE, "g", data="zeros:%d" % (8 << 20))
    finally:
        cell.close()


GREEDY = """
import os, time
while True:
    try:
        if os.fork() == 0:
            time.sleep(1000)
    except OSError:
        time.sleep(0.001)
"""


def test_no_process_is_left_for_a_call():
    cell = FilesCell(pids=8)
    try:
        cell.sh("python3 -c '%s' >/dev/null 2>&1 &" % GREEDY)
        a = wait_until(lambda: cell.call(STAT, ".").failed)
        assert a and a[1] == "EAGAIN"
    finally:
        cell.close()


def test_mkdir(cell):
    a = cell.ok(MKDIR, "d")
    assert a.flags & MADE and a.stats[0].mode == 0o755
    cell.fails(MKDIR, "d", "EEXIST")
    assert not cell.ok(MKDIR, "d", flags=PARENTS).flags & MADE
    assert cell.ok(MKDIR, "x/y/z/", flags=PARENTS, mode=0o700).stats[0].mode == 0o700
    cell.fails(MKDIR, "q/r", "ENOENT")
    cell.sh("echo > f")
    cell.fails(MKDIR, "f", "EEXIST", flags=PARENTS)
    cell.fails(MKDIR, "/x", "EACCES")
    cell.fails(MKDIR, "/", "EINVAL")


def test_move(cell):
    cell.sh("echo 1 > a; echo 2 > b; mkdir d full; echo > full/x; ln -s a l")
    assert cell.fails(MOVE, "a", "EEXIST", to="b").where == b"b"
    cell.ok(MOVE, "a", to="c")
    cell.ok(MOVE, "c", to="b", flags=OVERWRITE)
    assert cell.sh("cat b; ls") == "1\nb\nd\nfull\nl\n"
    cell.fails(MOVE, "a", "ENOENT", to="z")
    cell.fails(MOVE, "b", "EISDIR", to="d", flags=OVERWRITE)
    cell.fails(MOVE, "d", "ENOTEMPTY", to="full", flags=OVERWRITE)
    cell.fails(MOVE, "d", "EINVAL", to="d/e")
    cell.fails(MOVE, "b", "ENOENT", to="no/where")
    cell.ok(MOVE, "b", to="no/where", flags=PARENTS)
    cell.ok(MOVE, "l", to="m")
    assert cell.sh("readlink m; cat no/where") == "a\n1\n"


# ---- trees -----------------------------------------------------------------------------------


def test_list(cell):
    cell.sh("mkdir -p a/b/c; echo 1 > a/f; echo 22 > a/b/g; ln -s /etc a/link; echo > .hidden")
    assert cell.ok(LIST, ".").names == [b".hidden", b"a"]
    a = cell.ok(LIST, ".", flags=RECURSIVE)
    assert a.names == [b".hidden", b"a", b"a/b", b"a/b/c", b"a/b/g", b"a/f", b"a/link"]
    assert a.count == 7 and not a.flags
    link = next(s for s in a.stats if s.name == b"a/link")
    assert link.type == "link" and link.target == b"/etc"
    a = cell.ok(LIST, ".", flags=RECURSIVE, depth=1)
    assert b"a/b" in a.names and b"a/b/g" not in a.names and a.flags & CUT
    a = cell.ok(LIST, ".", flags=RECURSIVE, limit=3)
    assert a.count == 3 and a.flags & CUT
    assert not cell.ok(LIST, ".", limit=2).flags
    assert cell.ok(LIST, "a/f").names == [b""]
    assert cell.ok(LIST, "a/link").names  # the path itself may be a link
    cell.fails(LIST, "none", "ENOENT")
    cell.fails(LIST, "a/f/x", "ENOTDIR")
    cell.sh("mkdir shut; chmod 0 shut")
    cell.fails(LIST, "shut", "EACCES")
    assert cell.ok(LIST, ".", flags=RECURSIVE).flags & CUT


def test_list_strange_names(cell):
    names = [b"\xff\xfe", b"new\nline", b"-rf", b"a" * 255, b"sp ace", b"\x01", "é".encode()]
    for n in names:
        cell.ok(WRITE, n, data=b"x")
    assert cell.ok(LIST, ".").names == sorted(names)


DEEP = """
import os
for i in range(%d):
    os.mkdir("d" * 200)
    os.chdir("d" * 200)
open("bottom", "w").close()
"""


def test_trees_deeper_than_a_path(cell):
    cell.sh("mkdir t; cd t; python3 -c '%s'" % DEEP % 100)
    a = cell.ok(LIST, "t", flags=RECURSIVE)
    assert a.count == 101 and not a.flags
    assert max(map(len, a.names)) == 100 * 201 + 6
    a = cell.ok(DELETE, "t", flags=RECURSIVE)
    assert a.count == 102
    cell.sh("mkdir t; cd t; python3 -c '%s'" % DEEP % 3000)
    assert cell.ok(LIST, "t", flags=RECURSIVE).flags & CUT
    assert cell.ok(DELETE, "t", flags=RECURSIVE).count == 3002
    assert cell.sh("ls -A") == ""


def test_wide_directory(cell):
    cell.sh("mkdir w; cd w; seq 20000 | sed 's/^/f/' | xargs touch")
    a = cell.ok(LIST, "w")
    assert a.count == 20000 and len(set(a.names)) == 20000
    assert cell.ok(LIST, "w", limit=100).count == 100
    assert cell.ok(DELETE, "w", flags=RECURSIVE).count == 20001


def test_delete(cell):
    cell.sh("mkdir -p keep d/e/f empty; echo 1 > keep/x; echo 2 > f; ln -s keep l; ln -s ../keep d/out;"
            "ln -s ../../keep/x d/e/x")
    cell.ok(DELETE, "f")
    cell.fails(DELETE, "f", "ENOENT")
    cell.fails(DELETE, "d", "ENOTEMPTY")
    cell.ok(DELETE, "empty")
    cell.fails(DELETE, "l/", "ENOTDIR")
    cell.ok(DELETE, "l", flags=RECURSIVE)
    a = cell.ok(DELETE, "d", flags=RECURSIVE)
    assert a.count == 5
    assert cell.sh("find . | sort; cat keep/x") == ".\n./keep\n./keep/x\n1\n"
    for path, error in [("/", "EINVAL"), ("..", "EINVAL"), (".", "EINVAL"), ("keep/..", "EINVAL"), ("", "EINVAL")]:
        cell.fails(DELETE, path, error, flags=RECURSIVE)
    # Its own name cannot go: then nothing goes.
    cell.fails(DELETE, "/workspace", "EACCES", flags=RECURSIVE)
    cell.fails(DELETE, "/usr", "EACCES", flags=RECURSIVE)
    assert cell.sh("cat keep/x") == "1\n"
    cell.sh("mkdir -p p/shut/x; chmod 500 p/shut")
    assert cell.fails(DELETE, "p", "EACCES", flags=RECURSIVE).where == b"x"


def test_paths_that_do_not_fit(cell):
    assert cell.call(STAT, "x/" * 2047).error in ("ENOENT", "ENAMETOOLONG")
    assert cell.call(STAT, "y" * 4095).error == "ENAMETOOLONG"
    assert cell.call(STAT, "y" * 4096).failed == (-1, "ENAMETOOLONG")


# ---- watching --------------------------------------------------------------------------------


def gather(cell, until):
    """Events up to this one. The watched path may be gone with it: then the answer that has the event is the last one."""
    got = []
    while until not in got:
        a = cell.ask("next")
        got += a.events
        assert a.error is None or until in got, a
    cell.over = a.error
    return got


def test_watch(cell):
    cell.sh("mkdir -p d/sub; echo 1 > d/f")
    a = cell.open(WATCH, "d", flags=RECURSIVE)
    assert a.failed is None
    assert cell.ask("next").stats[0].type == "dir"
    cell.sh("echo 2 > d/new")
    assert gather(cell, ("created", "new", "")) == [("created", "new", "")]
    cell.sh("echo 3 >> d/f; echo 4 >> d/f; echo 5 >> d/sub/g; mv d/f d/sub/h; rm d/new")
    got = gather(cell, ("deleted", "new", ""))
    assert ("modified", "f", "") in got and ("created", "sub/g", "") in got
    assert ("moved", "sub/h", "f") in got
    assert got.count(("modified", "f", "")) == 1
    cell.sh("mkdir -p d/x/y/z; echo > d/x/y/z/deep")
    gather(cell, ("created", "x/y/z/deep", ""))
    cell.sh("mv d/x d/moved")
    gather(cell, ("moved", "moved", "x"))
    cell.sh("echo >> d/moved/y/z/deep")
    gather(cell, ("modified", "moved/y/z/deep", ""))
    cell.sh("mv d/moved/y/z/deep outside; mv outside d/back")
    got = gather(cell, ("created", "back", ""))
    assert ("deleted", "moved/y/z/deep", "") in got
    assert cell.ask("hangup").status == 0x100
    assert "caisson-files" not in cell.sh("cat /proc/[0-9]*/comm")


def test_watch_sees_atomic_writes_as_such(cell):
    cell.ok(WRITE, "f", data=b"1")
    cell.open(WATCH, ".")
    cell.ask("next")
    cell.ok(WRITE, "g", data=b"1")
    assert gather(cell, ("created", "g", "")) == [("created", "g", "")]
    cell.ok(WRITE, "f", data=b"2")
    assert gather(cell, ("modified", "f", "")) == [("modified", "f", "")]
    cell.ask("hangup")


def test_watch_a_file_a_flood_and_the_end(cell):
    cell.sh("echo > f; mkdir d")
    cell.open(WATCH, "f")
    assert cell.ask("next").stats[0].type == "file"
    cell.sh("echo >> f")
    gather(cell, ("modified", "", ""))
    cell.sh("rm f")
    gather(cell, ("deleted", "", ""))
    assert (cell.ask("next").error if cell.over is None else cell.over) == ""
    assert cell.ask("hangup").status == 0
    cell.sh("mkdir gone; ln -s gone link")
    cell.open(WATCH, "link")
    assert cell.ask("next").stats[0].type == "dir"
    cell.sh("rmdir gone")
    assert gather(cell, ("deleted", "", "")) == [("deleted", "", "")]
    cell.ask("hangup")
    cell.open(WATCH, "d")
    cell.ask("next")
    # More than the Linux kernel queues without a reader.
    cell.sh("cd d; for i in 1 2 3; do seq 20000 | sed 's/^/a-rather-long-name-for-a-file-/' | xargs touch;"
            "seq 20000 | sed 's/^/a-rather-long-name-for-a-file-/' | xargs rm; done")
    gather(cell, ("overflow", "", ""))
    cell.ask("hangup")


def test_watch_of_a_missing_path(cell):
    cell.open(WATCH, "none")
    assert cell.ask("next").error == "ENOENT"
    cell.ask("hangup")
