# SPDX-License-Identifier: Apache-2.0
"""test_tty.py - Terminals: --tty driven from a pty as a terminal emulator would, and Ctrl-C without it."""
import fcntl
import os
import pty
import select
import signal
import struct
import subprocess
import termios
import time

import pytest

from integ_lib import clean_env, leftovers, run, wait_running
from process import BIN, HANG


class Terminal:
    """caisson in the foreground of a terminal of rows x cols."""

    def __init__(self, *args, rows=33, cols=101):
        self.fd, slave = pty.openpty()
        self.resize(rows, cols)
        self.modes = termios.tcgetattr(slave)
        self.slave = slave
        self.seen = b""
        self.p = subprocess.Popen([str(BIN), *args], stdin=slave, stdout=slave, stderr=slave, env=clean_env(TERM="vt220"),
                                  start_new_session=True,
                                  preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0))
        self.pid = self.p.pid

    def resize(self, rows, cols):
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, cols, 0, 0))

    def type(self, data):
        os.write(self.fd, data)

    def read_until(self, text):
        end = time.monotonic() + HANG
        while text not in self.seen:
            left = end - time.monotonic()
            assert left > 0, "no %r in %r" % (text, self.seen)
            if select.select([self.fd], [], [], left)[0]:
                self.seen += os.read(self.fd, 4096)
        before, _, self.seen = self.seen.partition(text)
        return before

    def close(self):
        if self.p.poll() is None:
            self.p.kill()
        self.p.wait()
        os.close(self.fd)
        os.close(self.slave)


@pytest.fixture
def terminal():
    made = []

    def make(*args, **kw):
        made.append(Terminal(*args, **kw))
        return made[-1]

    yield make
    for t in made:
        t.close()


def test_program_has_a_terminal_of_its_own(terminal):
    t = terminal("run", "--tty", "import os\n"
                 "print([os.isatty(i) for i in (0, 1, 2)], os.ttyname(0), os.getsid(0) == os.getpid(), os.environ['TERM'])\n"
                 "print(open('/dev/tty').fileno() > 2, 'end')")
    assert t.read_until(b"\r\n") == b"[True, True, True] /dev/pts/0 True vt220"
    assert t.read_until(b"end\r\n") == b"True "
    assert t.p.wait(HANG) == 0


def test_window_size_and_resize(terminal):
    t = terminal("run", "--tty", "import os, signal\n"
                 "size = lambda *a: print('size', *os.get_terminal_size())\n"
                 "signal.signal(signal.SIGWINCH, size)\n"
                 "size(); print('ready')\n"
                 "while True: signal.pause()")
    assert t.read_until(b"ready\r\n") == b"size 101 33\r\n"
    for rows, cols in ((44, 111), (10, 20)):
        t.resize(rows, cols)
        assert t.read_until(b"size %d %d\r\n" % (cols, rows)) == b""


def test_typing_echo_and_line_editing_happen_in_the_cell(terminal):
    t = terminal("run", "--tty", "print('got', input('? '))")
    t.read_until(b"? ")
    t.type(b"helly\x7fo\r")
    assert t.read_until(b"got hello\r\n") == b"helly\b \bo\r\n"
    assert t.p.wait(HANG) == 0


def test_ctrl_c_reaches_the_program_and_not_caisson(terminal):
    t = terminal("run", "--tty", "import time\n"
                 "try:\n  print('ready'); time.sleep(60)\n"
                 "except KeyboardInterrupt:\n  print('caught'); raise SystemExit(7)")
    t.read_until(b"ready\r\n")
    t.type(b"\x03")
    t.read_until(b"caught\r\n")
    assert t.p.wait(HANG) == 7


def test_ctrl_d_is_end_of_file(terminal):
    t = terminal("exec", "--tty", "--", "cat")
    t.type(b"x\r")
    t.read_until(b"x\r\nx\r\n")
    t.type(b"\x04")
    assert t.p.wait(HANG) == 0


@pytest.mark.parametrize("how", ["exit", "timeout", "signal", "start fails"])
def test_our_terminal_is_as_before_however_it_ends(terminal, how):
    if how == "start fails":
        t = terminal("exec", "--tty", "--", "no-such-program")
        assert t.p.wait(HANG) == 127
    elif how == "timeout":
        t = terminal("exec", "--tty", "--timeout", "300ms", "--", "sleep", "60")
        assert t.p.wait(HANG) == 124
        assert t.read_until(b"\n").startswith(b"caisson: still running after 300 ms")
    else:
        t = terminal("exec", "--tty", "--", "sh", "-c", "stty raw; echo ready; sleep %d" % (60 if how == "signal" else 0))
        t.read_until(b"ready")
        assert how == "exit" or termios.tcgetattr(t.slave) != t.modes  # raw while it runs
        if how == "signal":
            t.p.send_signal(signal.SIGTERM)
        assert t.p.wait(HANG) == (143 if how == "signal" else 0)
    assert termios.tcgetattr(t.slave) == t.modes


def test_program_can_not_type_into_our_terminal(terminal):
    """TIOCSTI into its own pty is refused, and our terminal is not within its reach."""
    t = terminal("run", "import fcntl, os, termios\n"
                 "print(os.isatty(0), os.isatty(1))\n"
                 "try: open('/dev/tty')\n"
                 "except OSError as e: print(e.strerror)\n"
                 "print('end')")
    assert t.read_until(b"end\r\n") == b"False False\r\nNo such device or address\r\n"
    assert t.p.wait(HANG) == 0


def test_ctrl_c_without_tty_ends_the_cell(terminal):
    t = terminal("run", "print('ready'); import time; time.sleep(60)")
    t.read_until(b"ready\r\n")
    wait_running(t)
    t.type(b"\x03")
    assert t.p.wait(HANG) == 130
    assert leftovers() == []


def test_tty_when_we_have_none():
    """stdin and stdout are pipes: the program has a terminal all the same."""
    r = run("run", "--tty", "import os; print(os.isatty(0), input())", input=b"typed\n")
    assert r.code == 0 and r.out.splitlines()[-1] == b"True typed"


def test_large_output_through_a_terminal():
    r = run("run", "--tty", "for i in range(3000): print(i)")
    assert r.code == 0 and r.out == b"".join(b"%d\r\n" % i for i in range(3000))
