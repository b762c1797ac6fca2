# SPDX-License-Identifier: Apache-2.0
"""cli_lib.py - The command as a client of a daemon: run it, or put it on a terminal and type into it."""
import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import termios
import threading
import time

from integ_lib import clean_env, run
from process import BIN, HANG

ALL_BYTES = bytes(range(256)) * 4 + "déjà vu ☃\n".encode()


class Cli:
    """caisson with one daemon in its environment."""

    def __init__(self, **env):
        self.env = env

    def __call__(self, *args, **kw):
        return run(*args, env=self.env, **kw)

    def ok(self, *args, **kw):
        r = self(*args, **kw)
        assert r.code == 0, r
        return r

    def start(self, *args, **popen):
        return subprocess.Popen([str(BIN), *args], env=clean_env(**self.env),
                                **{"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **popen})


def one_line(r, *parts):
    """Check that an error is one line that names the program."""
    lines = r.lines()
    assert len(lines) == 1 and lines[0].startswith("caisson: "), r
    for part in parts:
        assert part in lines[0], r


class Terminal:
    """A program on a terminal of ours, which has a size and keeps the program's output."""

    def __init__(self, cli, *args, rows=33, cols=101):
        self.master, self.slave = pty.openpty()
        self.resize(rows, cols)
        self.before = termios.tcgetattr(self.slave)
        self.data = b""
        self.p = subprocess.Popen([str(BIN), *args], stdin=self.slave, stdout=self.slave, stderr=self.slave,
                                  env=clean_env(**{"TERM": "xterm", "NO_COLOR": None, **cli.env}), start_new_session=True,
                                  preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0))

    def resize(self, rows, cols):
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, cols, 0, 0))

    def type(self, text):
        os.write(self.master, text)

    def until(self, pattern):
        """The output up to and including the first match."""
        end = time.monotonic() + HANG
        while not (m := re.search(pattern, self.data)):
            assert time.monotonic() < end, (pattern, self.data[-2000:])
            if select.select([self.master], [], [], 0.2)[0]:
                self.data += os.read(self.master, 65536)
        got, self.data = self.data[:m.end()], self.data[m.end():]
        return got

    def end(self):
        """Its exit code; self.data has its whole output until then."""
        done = threading.Event()

        def drain():
            last = False
            while not last:
                last = done.is_set()  # read once more: the program writes no more, but some of its output may be unread
                while select.select([self.master], [], [], 0 if last else 0.05)[0]:
                    self.data += os.read(self.master, 65536)

        t = threading.Thread(target=drain)
        t.start()
        try:
            return self.p.wait(HANG)
        finally:
            done.set()
            t.join()

    @property
    def restored(self):
        return termios.tcgetattr(self.slave) == self.before

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.p.poll() is None:
            self.p.kill()
        self.p.wait()
        os.close(self.master)
        os.close(self.slave)
