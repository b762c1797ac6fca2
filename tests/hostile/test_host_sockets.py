# SPDX-License-Identifier: Apache-2.0
"""test_host_sockets.py - Sockets and pipes of the host in directories that are mounted into cells.

A process that may write to the inode of a socket can connect to it, and a read-only mount does not prevent that. So the host
decides: a process listens in the directory, and knows whether it was connected to.
"""
import contextlib
import fcntl
import os
import signal
import socket

import pytest

from lib import cell, landed
from cell_lib import USER, Held, scratch, user_cell

quick = pytest.mark.quick
BOTH = pytest.mark.parametrize("as_user", [False, True], ids=["root", "user"])

TRY = """
import os, socket
for path, kind in (('/data/stream', 1), ('/data/sub/open', 1), ('/data/packets', 5), ('/data/datagrams', 2)):
    s = socket.socket(socket.AF_UNIX, kind)
    try: s.connect(path); s.send(b'from a cell'); print('reached', path)
    except OSError as e: print('refused', e.strerror)
    s = socket.socket(socket.AF_UNIX, 2)
    try: s.sendto(b'from a cell', path); print('reached', path)
    except OSError as e: pass
try: os.write(os.open('/data/pipe', os.O_WRONLY | os.O_NONBLOCK), b'from a cell')
except OSError as e: print('refused', e.strerror)
print(open('/data/file').read())
"""


class Ears:
    """A directory with a file, sockets of every kind and a pipe, on which the host listens."""

    def __init__(self, owner):
        self.owner = owner

    def __enter__(self):
        self.stack = contextlib.ExitStack()
        self.dir = self.stack.enter_context(scratch(0o755, self.owner))
        (self.dir / "sub").mkdir()
        (self.dir / "file").write_text("content")
        self.sockets = []
        for name, kind, mode in (("stream", 1, 0o600), ("sub/open", 1, 0o777), ("packets", 5, 0o600), ("datagrams", 2, 0o600)):
            s = self.stack.enter_context(socket.socket(socket.AF_UNIX, kind))
            s.bind(str(self.dir / name))
            os.chmod(self.dir / name, mode)
            if kind != 2:
                s.listen(5)
            s.setblocking(False)
            self.sockets.append(s)
        os.mkfifo(self.dir / "pipe", 0o600)
        for name in ("file", "sub", "stream", "sub/open", "packets", "datagrams", "pipe"):
            os.chown(self.dir / name, self.owner, self.owner)
        self.pipe = os.open(self.dir / "pipe", os.O_RDWR | os.O_NONBLOCK)
        return self

    def __exit__(self, *exc):
        os.close(self.pipe)
        self.stack.close()

    def heard(self):
        """The number of the five that were reached since the last time."""
        def listen(one):
            if isinstance(one, int):
                return os.read(one, 100)
            return one.recv(100) if one.type == socket.SOCK_DGRAM else one.accept()[0].close() is None

        count = 0
        for one in (*self.sockets, self.pipe):
            with contextlib.suppress(BlockingIOError):
                came = False
                while listen(one):
                    count, came = count + (not came), True
        return count


def visit(ears, mode, as_user):
    how = dict(code=TRY, mount=[f"{ears.dir}:/data:{mode}"])
    r = user_cell(**how) if as_user else cell(**how)
    assert r.status == "ok" and r.text.endswith("content\n"), r
    return r, ears.heard()


@quick
@BOTH
def test_sockets_and_pipes_of_a_read_only_mount(as_user, stopped_by):
    """The file can be read, and no listener on the host is reached. With :rw, which hands them over, all of them are."""
    with Ears(USER if as_user else 0) as ears:
        landed(visit(ears, "rw", as_user)[1] == 5, "they are reached by who may write")
        r, heard = visit(ears, "ro", as_user)
        assert heard == 0 and "reached" not in r.text and r.text.count("refused ") == 5, r
    stopped_by("an overlay's inodes" if as_user else "a mount without groups: no inode of it may be written to")


@quick
def test_sockets_of_others_in_a_writable_mount(stopped_by):
    """The cell may write only to files of the caller: a socket of another user stays out of reach."""
    with Ears(USER) as ears:
        r, heard = visit(ears, "rw", False)
        assert heard == 0 and "reached" not in r.text, r
    stopped_by("ids of others are not mapped")


@quick
def test_what_cannot_be_shifted_is_an_overlay(stopped_by):
    """A file system whose ids cannot be shifted, as root: out of reach as well."""
    with scratch() as d, contextlib.ExitStack() as stack:
        for n in ("lower", "upper", "work", "at"):
            (d / n).mkdir()
        r = os.system(f"mount -t overlay none -o lowerdir={d}/lower,upperdir={d}/upper,workdir={d}/work {d}/at")
        landed(r == 0, "an overlay, whose ids cannot be shifted")
        stack.callback(os.system, f"umount -l {d}/at")
        (d / "at/file").write_text("content")
        with socket.socket(socket.AF_UNIX) as s:
            s.bind(str(d / "at/sock"))
            os.chmod(d / "at/sock", 0o777)
            s.listen(5)
            s.setblocking(False)
            code = "import socket\nprint(open('/data/file').read(), socket.socket(socket.AF_UNIX).connect_ex('/data/sock'))"
            r = cell(code=code, mount=[f"{d}/at:/data"])
            assert r.status == "ok" and r.text == "content 111\n", r
            with pytest.raises(BlockingIOError):
                s.accept()
    stopped_by("an overlay's inodes")


@quick
def test_a_mount_below_one_that_cannot_be_shown_is_refused(stopped_by):
    """As an ordinary user: an overlay would not show it, so it is refused instead of left out."""
    with scratch(0o755, USER) as d, contextlib.ExitStack() as stack:
        (d / "inner").mkdir()
        landed(os.system(f"mount -t tmpfs none {d}/inner") == 0, "something is mounted below")
        stack.callback(os.system, f"umount -l {d}/inner")
        r = user_cell(code="print(1)", mount=[f"{d}:/data"], json_result=False)
        assert r.exit == 125 and b"mounted below" in r.stderr and b"/data" in r.stderr and b"one by one" in r.stderr, r
    stopped_by("refused")


@quick
def test_changes_of_the_host_are_seen():
    """A read-only mount of root is the directory itself: files that the host replaces, makes and removes are seen at once."""
    code = """
import os, sys
look = lambda: print(sorted(os.listdir('/data')), open('/data/a').read(), os.path.exists('/data/new'), flush=True)
look(); print('ready', flush=True); sys.stdin.readline(); look()
"""
    with scratch() as d:
        (d / "a").write_text("one")
        (d / "gone").write_text("")
        with Held(code=code, mount=[f"{d}:/data"]) as h:
            (d / "tmp").write_text("two")
            (d / "tmp").rename(d / "a")
            (d / "new").write_text("")
            (d / "gone").unlink()
            h.say()
            text = h.finish().stdout.decode()
    assert text.splitlines() == ["['a', 'gone'] one False", "ready", "['a', 'new'] two True"], text


LEASE = """
import fcntl, os, sys
held = []
for kind in (fcntl.F_RDLCK, fcntl.F_WRLCK):
    f = os.open('%s/file', os.O_RDONLY)
    try: fcntl.fcntl(f, fcntl.F_SETLEASE, kind); print('leased'); held.append(f); break
    except OSError as e: print('refused', e.strerror)
print('ready', flush=True)
sys.stdin.read()
"""


@quick
@pytest.mark.parametrize("mode", ["ro", "rw"])
def test_no_lease_on_a_file_of_the_host(mode, stopped_by):
    """A process that opens a leased file waits for the holder, for up to 45 seconds: also root, on the host."""
    with scratch(0o755, 0) as d:
        (d / "file").write_text("content")
        # Control: a process of the host gets one, and another that opens the file to write does not come through at once.
        old = signal.signal(signal.SIGIO, signal.SIG_IGN)  # the holder is told so
        f = os.open(d / "file", os.O_RDONLY)
        fcntl.fcntl(f, fcntl.F_SETLEASE, fcntl.F_RDLCK)
        with pytest.raises(BlockingIOError):
            os.open(d / "file", os.O_WRONLY | os.O_NONBLOCK)
        os.close(f)
        signal.signal(signal.SIGIO, old)
        landed(True, "a lease holds up")
        with Held(code=LEASE % "/data", mount=[f"{d}:/data:{mode}"]) as h:
            assert "leased" not in h.text, h.text
            os.close(os.open(d / "file", os.O_RDWR | os.O_NONBLOCK))
    stopped_by("seccomp: F_SETLEASE")
