# SPDX-License-Identifier: Apache-2.0
"""files_lib.py - A cell whose file calls are made by hand, through tests/integ/files_driver.c."""
import errno
import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from types import SimpleNamespace

import pytest

from integ_lib import Place, clean_env, copy_tree
from process import BIN

READ, WRITE, STAT, LIST, MOVE, DELETE, MKDIR, TAR_OUT, TAR_IN, WATCH, HASH = range(1, 12)
PARENTS, RECURSIVE, OVERWRITE, NOFOLLOW, HAS_MODE, FROM_END = (1 << i for i in range(6))
CUT, CHANGED, SKIPPED, MADE = (1 << i for i in range(4))
TYPES = ["other", "file", "dir", "link", "fifo", "socket", "device"]
KINDS = [None, "created", "modified", "deleted", "moved", "overflow"]
TO_END = (1 << 64) - 1


def hexed(b):
    return (b.encode() if isinstance(b, str) else bytes(b)).hex() or "-"


def unhexed(s):
    return b"" if s == "-" else bytes.fromhex(s)


class Answer:
    """The result of one call: stats, data, events; error is an errno name, "" for success."""

    def __init__(self, lines):
        self.stats, self.events, self.data = [], [], b""
        self.error = self.flags = self.bytes = self.count = self.where = self.failed = None
        self.status = None
        for line in lines:
            word, *rest = line.split(" ")
            getattr(self, "on_" + word)(*rest)

    def on_stat(self, kind, *rest):
        names = ("mode", "size", "mtime_ns", "ino", "nlink", "uid", "gid")
        st = SimpleNamespace(type=TYPES[int(kind)], name=unhexed(rest[7]), target=unhexed(rest[8]),
                             **{k: int(v) for k, v in zip(names, rest)})
        self.stats.append(st)

    def on_data(self, digits):
        self.data += unhexed(digits)

    on_out = on_data

    def on_event(self, kind, is_dir, name, before):
        self.events.append((KINDS[int(kind)], unhexed(name).decode(), unhexed(before).decode()))

    def on_end(self, error, flags, size, count, where):
        assert self.error is None, "two ends"
        self.error = errno.errorcode[int(error)] if int(error) else ""
        self.flags, self.bytes, self.count = int(flags), int(size), int(count)
        self.where = unhexed(where)

    def on_failed(self, stage, error):
        self.failed = (int(stage), errno.errorcode[int(error)])

    def on_refused(self, error):
        self.failed = (-1, errno.errorcode[int(error)])

    def on_exited(self, status):
        self.status = int(status)

    def on_errors(self, *pairs):
        numbers = dict(p.split(":") for p in pairs)
        self.found = int(numbers.pop("found"))
        self.errors = {errno.errorcode.get(int(k), ""): int(v) for k, v in numbers.items()}

    @property
    def names(self):
        return sorted(s.name for s in self.stats)

    def __repr__(self):
        return "<%s>" % ", ".join("%s %r" % kv for kv in vars(self).items())[:800]


class FilesCell:
    """One cell. Every call waits for its answer."""

    def __init__(self, memory_mib=512, disk_mib=256, pids=64, state=None):
        self.dir = Path(tempfile.mkdtemp(prefix="caisson-files-"))
        self.dir.chmod(0o755)
        copy_tree(self.dir)
        shutil.copy(BIN.parent / "tests" / "files-driver", self.dir)
        self.process = subprocess.Popen(
            [self.dir / "files-driver", state or Place.state, str(memory_mib), str(disk_mib), str(pids)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=clean_env(), text=True)
        assert self.process.stdout.readline() == "ready\n"

    def ask(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        lines = []
        for got in self.process.stdout:
            if got == ".\n":
                return Answer(lines)
            lines.append(got.rstrip("\n"))
        raise AssertionError("the driver ended: %r" % lines[-3:])

    @staticmethod
    def words(op, path, to=b"", data="-", flags=0, mode=None, depth=128, offset=0, length=TO_END,
              limit=0):
        if mode is not None:
            flags |= HAS_MODE
        if isinstance(data, bytes):
            data = hexed(data)
        return "%d %d %o %d %d %d %d %s %s %s" % (op, flags, mode or 0, depth, offset, length, limit,
                                                  hexed(path), hexed(to), data)

    def call(self, op, path, **more):
        return self.ask("call " + self.words(op, path, **more))

    def open(self, op, path, **more):
        return self.ask("open " + self.words(op, path, **more))

    def repeat(self, n, op, path, **more):
        """How often each error came ("" is success), and in how many pieces the needle was."""
        a = self.ask("repeat %d %s" % (n, self.words(op, path, **more)))
        return a.errors, a.found

    def sh(self, script):
        """Run a script in the cell; it has to succeed. Its output as text."""
        a = self.ask("sh " + hexed(script))
        assert a.status == 0, a
        return a.data.decode(errors="surrogateescape")

    def ok(self, op, path, **more):
        a = self.call(op, path, **more)
        assert a.error == "" and a.status == 0, a
        return a

    def fails(self, op, path, error, **more):
        a = self.call(op, path, **more)
        assert a.error == error and a.status == 0, a
        return a

    def close(self):
        self.process.stdin.close()
        try:
            self.process.wait(20)
        finally:
            self.process.kill()
            self.process.wait()
            self.process.stdout.close()
            shutil.rmtree(self.dir, ignore_errors=True)


def driver_missing():
    return not os.path.exists(BIN.parent / "tests" / "files-driver")


needs_driver = pytest.mark.skipif(driver_missing(), reason="built without tests")
