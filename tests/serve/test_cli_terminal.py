# SPDX-License-Identifier: Apache-2.0
"""test_cli_terminal.py - `caisson shell` and `caisson top` on a terminal, which is always restored."""
import signal

import pytest

from cli_lib import Cli, Terminal, one_line
from process import unique, wait_until


@pytest.fixture
def cli(daemon):
    return Cli(CAISSON_URL="http://127.0.0.1:%d" % daemon.port)


@pytest.fixture
def box(cli):
    name = unique("cli")
    cli.ok("create", name)
    yield name
    cli("rm", "-f", name)


def test_shell(cli, box, daemon):
    with Terminal(cli, "shell", box) as t:
        t.until(rb"\$ ")
        assert not t.restored, "the terminal is not raw"
        t.type(b"stty size; echo TERM=$TERM\n")
        t.until(rb"33 101\r\n")
        t.until(rb"TERM=xterm")
        t.resize(40, 120)
        t.type(b"while [ \"$(stty size)\" != '40 120' ]; do :; done; echo resi''zed\n")
        t.until(rb"resized")
        t.type(b"echo read''y; sleep 64\n")
        t.until(rb"ready")
        wait_until(lambda: daemon.named("sleep"))
        t.type(b"\x03")
        t.type(b"echo aft''er\n")
        t.until(rb"after")
        t.type(b"exit 9\n")
        assert t.end() == 9 and t.restored
    assert wait_until(lambda: not daemon.named("sleep") and not daemon.named("bash"))


def test_shell_prompt(cli, box):
    """The sandbox and the directory, also where the image has a prompt with its host name; another prompt stays."""
    name = box.encode()
    with Terminal(cli, "shell", box) as t:
        t.until(name + rb":/workspace\$ ")
        t.type(b"cd /tmp\n")
        t.until(name + rb":/tmp\$ ")
        t.type(b"bash -i\n")  # a shell in the shell
        t.until(name + rb":/tmp\$ ")
        t.type(b"printf '%s\\n' 'PS1=\"\\u@\\h:\\w\\$ \"' >~/.bashrc; exit\n")
        t.until(name + rb":/tmp\$ ")
        t.type(b"exit\n")
        assert t.end() == 0
    with Terminal(cli, "shell", box) as t:
        t.until(name + rb":/workspace\$ ")
        t.type(b"echo \"PS1='mine> '\" >~/.bashrc; exit\n")
        assert t.end() == 0
    with Terminal(cli, "shell", box) as t:
        t.until(rb"mine> ")
    with Terminal(cli, "shell", box, "-e", "PS1=given> ", "--", "bash", "--norc") as t:
        t.until(rb"given> ")


@pytest.mark.parametrize("sig", [signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGSEGV])
def test_terminal_is_restored(cli, box, daemon, sig):
    with Terminal(cli, "shell", box) as t:
        t.until(rb"\$ ")
        t.p.send_signal(sig)
        code = t.end()
        assert code in (128 + sig, -sig) and t.restored
    if sig != signal.SIGSEGV:
        assert wait_until(lambda: not daemon.named("bash")), "the shell still runs"


def test_shell_and_a_sandbox_that_goes(cli, box):
    with Terminal(cli, "shell", box) as t:
        t.until(rb"\$ ")
        cli.ok("rm", box)
        code = t.end()
        assert code != 0 and t.restored
        assert b"caisson: " in t.data or code == 137, t.data


def test_shell_program_and_pipe(cli, box):
    r = cli("shell", box, "-w", "/tmp", "-e", "A=b", "--", "sh", "-c", "pwd; echo $A; tty; exit 5")
    assert r.code == 5 and r.out == b"/tmp\nb\nnot a tty\n"
    r = cli("shell", box, input=b"echo from a pi''pe\nexit 6\n")
    assert r.code == 6 and r.out == b"from a pipe\n", r
    for _ in range(10):  # the end of the input is never lost
        assert cli("shell", box, input=b"").code == 0
    r = cli("shell", box, "--", "nosuchprogram")
    assert r.code == 127
    one_line(r)


def test_top_live(cli, box):
    with Terminal(cli, "top") as t:
        t.until(box.encode())
        assert not t.restored
        t.until(box.encode())  # and again
        t.type(b"q")
        assert t.end() == 0 and t.restored and b"\033[?1049l" in t.data


def test_colours_are_for_terminals(cli, box):
    with Terminal(cli, "ps") as t:
        assert t.end() == 0
        assert b"\033[32mrunning\033[0m" in t.data
    with Terminal(Cli(NO_COLOR="1", **cli.env), "ps") as t:
        assert t.end() == 0
        assert b"running" in t.data and b"\033" not in t.data
