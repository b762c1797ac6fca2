# SPDX-License-Identifier: Apache-2.0
"""test_cli_daemon.py - How the command finds its daemon and authenticates: socket, URL, token, certificate."""
import json
import os
import re
import signal
import socket
import subprocess
import threading
from pathlib import Path

from cli_lib import ALL_BYTES, Cli, Terminal, one_line
from integ_lib import as_user, copy_tree, end_process, needs_program, needs_root
from process import HANG, wait_until


def test_unix_socket(serve, short_dir):
    d = serve(socket=short_dir / "s")
    by_socket = Cli(CAISSON_SOCKET=str(short_dir / "s"))
    by_socket.ok("create", "one")
    assert by_socket.ok("run", "--name", "one", "6*7").out == b"42\n"
    assert by_socket.ok("exec", "--name", "one", "-i", "--", "cat", input=b"x").out == b"x"
    with Terminal(by_socket, "shell", "one") as t:
        t.until(rb"\$ ")
        t.type(b"exit 2\n")
        assert t.end() == 2
    assert Cli().ok("ps", "--socket", str(short_dir / "s"), "--json").json["sandboxes"][0]["owner"] == "local"
    # An address in the options takes precedence over the environment.
    assert Cli(CAISSON_URL="http://127.0.0.1:9").ok("ps", "--socket", str(short_dir / "s")).code == 0
    assert Cli(CAISSON_SOCKET="/nonexistent").ok("ps", "--url", "http://127.0.0.1:%d" % d.port).code == 0
    by_socket.ok("rm", "one")


def test_default_socket(serve, short_dir):
    serve(state=short_dir / "st", socket=short_dir / "st" / "caisson.sock")
    assert Cli(CAISSON_STATE=str(short_dir / "st")).ok("ps").out.startswith(b"NAME")
    assert Cli().ok("ps", "--state", str(short_dir / "st")).out.startswith(b"NAME")


def test_no_daemon(short_dir):
    for env, part in (({"CAISSON_SOCKET": str(short_dir / "none")}, "No such file"), ({"CAISSON_URL": "http://127.0.0.1:1"}, "refused")):
        r = Cli(**env)("ps")
        assert r.code == 3
        one_line(r, "no daemon answers", "caisson serve", part)
        r = Cli(**env)("run", "--name", "x", "1")
        assert r.code == 125
        one_line(r, "no daemon answers")
        r = Cli(**env)("ps", "--json")
        d = json.loads(r.out)
        assert d["error"]["code"] == "no_daemon" and d["exit_code"] == 3 and r.err == b""


def test_tokens(serve, tmp_path):
    secret = "0123456789abcdef0123456789abcdef-secret"
    tokens = tmp_path / "tokens"
    tokens.write_text("ci:%s\nother:%s\n" % (secret, secret[::-1]))
    tokens.chmod(0o600)
    d = serve("--token-file", tokens)
    d.token = secret
    url = {"CAISSON_URL": "http://127.0.0.1:%d" % d.port}
    r = Cli(**url)("ps")
    assert r.code == 4
    one_line(r, "token", "--token-file")
    r = Cli(CAISSON_TOKEN="wrong-" + secret, **url)("ps")
    assert r.code == 4 and secret.encode() not in r.err
    mine = Cli(CAISSON_TOKEN=secret, **url)
    mine.ok("create", "t1")
    assert mine.ok("ps", "--json").json["sandboxes"][0]["owner"] == "ci"
    assert mine.ok("exec", "--name", "t1", "-i", "--", "cat", input=b"ws too").out == b"ws too"
    by_file = Cli(CAISSON_TOKEN_FILE=str(tokens), **url)
    assert by_file.ok("ps", "--json").json["sandboxes"][0]["name"] == "t1"
    other = tmp_path / "other"
    other.write_text(secret[::-1] + "\n")
    other.chmod(0o600)
    r = Cli(**url)("rm", "t1", "--token-file", str(other))
    assert r.code == 5, "another owner's name does not exist"
    other.chmod(0o644)
    r = Cli(**url)("ps", "--token-file", str(other))
    assert r.code == 125
    one_line(r, "chmod 600")
    # The list of processes does not show it to other users.
    with mine.start("exec", "--name", "t1", "--", "sh", "-c", "echo go; exec sleep 65") as p:
        try:
            assert p.stdout.readline() == b"go\n"
            assert secret.encode() not in Path("/proc/%d/cmdline" % p.pid).read_bytes()
            p.send_signal(signal.SIGINT)
            p.wait(HANG)
        finally:
            end_process(p)
    mine.ok("rm", "t1")


@needs_program("openssl")
def test_tls(serve, tmp_path):
    cert, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out", cert, "-days", "2",
                    "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"], check=True, capture_output=True)
    key.chmod(0o600)
    d = serve("--tls-cert", cert, "--tls-key", key, scheme="https", wait=False)
    url = "https://127.0.0.1:%d" % d.port
    cli = Cli(CAISSON_URL=url, CAISSON_CA_FILE=str(cert))
    assert wait_until(lambda: cli("ps").code == 0), cli("ps")
    cli.ok("create", "tls")
    assert cli.ok("run", "--name", "tls", "6*7").out == b"42\n"
    assert cli.ok("exec", "--name", "tls", "-i", "--", "cat", input=ALL_BYTES).out == ALL_BYTES
    with Terminal(cli, "shell", "tls") as t:
        t.until(rb"\$ ")
        t.type(b"exit 3\n")
        assert t.end() == 3
    r = Cli(CAISSON_URL=url)("ps")
    assert r.code == 3
    one_line(r, "no safe connection", "--ca-file")
    cli.ok("rm", "tls")
    # http:// to a port with TLS, and the reverse
    r = Cli(CAISSON_URL="http://127.0.0.1:%d" % d.port)("ps")
    assert r.code == 7
    one_line(r, "this port speaks HTTPS", "https://")
    a = d.request("POST", "/execute", {"code": "#" * 100000})
    assert a.status == 400 and a.error["code"] == "https_required", a
    plain = serve()
    r = Cli(CAISSON_URL="https://127.0.0.1:%d" % plain.port)("ps")
    assert r.code == 3
    one_line(r, "no safe connection", "http://")


@needs_root
def test_socket_of_others(serve, short_dir):
    serve(socket=short_dir / "s")
    os.chmod(short_dir / "s", 0o600)
    r = Cli(CAISSON_SOCKET=str(short_dir / "s"))("ps", prefix=as_user(), binary=copy_tree(short_dir / "bin", also=["caisson-remote"]))
    assert r.code == 3
    one_line(r, "Permission denied")


def test_daemon_that_goes_away(serve):
    """The daemon dies in the middle of a program: the command reports this soon."""
    d = serve()
    cli = Cli(CAISSON_URL="http://127.0.0.1:%d" % d.port)
    cli.ok("create", "x")
    with cli.start("exec", "--name", "x", "--", "sh", "-c", "echo go; exec sleep 66") as p:
        try:
            assert p.stdout.readline() == b"go\n"
            d.kill()
            assert p.wait(HANG) == 125
            assert b"no daemon answers" in p.stderr.read()
        finally:
            end_process(p)


class Cutter:
    """Between client and daemon: passes bytes on, and cuts the connection after a number of bytes of an answer, a few times."""

    def __init__(self, port, after, times):
        self.port, self.after, self.times, self.cuts = port, after, times, 0
        self.s = socket.create_server(("127.0.0.1", 0))
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                a = self.s.accept()[0]
            except OSError:
                return
            b = socket.create_connection(("127.0.0.1", self.port))
            threading.Thread(target=self.copy, args=(a, b, False), daemon=True).start()
            threading.Thread(target=self.copy, args=(b, a, True), daemon=True).start()

    def copy(self, a, b, answer):
        n = 0
        try:
            while data := a.recv(4096):
                n += len(data)
                if answer and n > self.after and self.cuts < self.times:
                    self.cuts += 1
                    break
                b.sendall(data)
        except OSError:
            pass
        for s in (a, b):
            try:
                s.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def close(self):
        self.s.close()


def test_connection_that_breaks(daemon):
    """The connection breaks three times in the middle of a stream: no output is lost or repeated."""
    direct = Cli(CAISSON_URL="http://127.0.0.1:%d" % daemon.port)
    direct.ok("create", "cut")
    cutter = Cutter(daemon.port, 30000, 3)
    try:
        cli = Cli(CAISSON_URL="http://127.0.0.1:%d" % cutter.s.getsockname()[1])
        r = cli("exec", "--name", "cut", "--", "python3", "-c", "for i in range(20000): print('line', i)")
        assert cutter.cuts == 3, r
        assert r.code == 0 and r.out == b"".join(b"line %d\n" % i for i in range(20000)), (r.code, len(r.out), r.err)
        cutter.cuts = 0
        r = cli("run", "--name", "cut", "for i in range(20000): print('line', i)\nimport sys; sys.exit(4)")
        assert cutter.cuts == 3, r
        assert r.code == 4 and r.out == b"".join(b"line %d\n" % i for i in range(20000)), (r.code, len(r.out), r.err)
    finally:
        cutter.close()
        direct("rm", "-f", "cut")


def test_shell_continues_after_a_cut_connection(daemon):
    """The connection is cut in the middle of the output: the terminal shows all of it, once, and the same shell takes input."""
    direct = Cli(CAISSON_URL="http://127.0.0.1:%d" % daemon.port)
    direct.ok("create", "cutshell")
    cutter = Cutter(daemon.port, 6000, 1)
    try:
        with Terminal(Cli(CAISSON_URL="http://127.0.0.1:%d" % cutter.s.getsockname()[1]), "shell", "cutshell") as t:
            t.until(rb"\$ ")
            t.type(b"mark=$$; seq -f 'line %.0f' 4000; echo do''ne\n")
            shown = t.until(rb"done\r\n")
            assert cutter.cuts == 1, "the connection was not cut: %r" % shown[-200:]
            assert re.findall(rb"line (\d+)\r\n", shown) == [b"%d" % i for i in range(1, 4001)]
            t.type(b"test $mark = $$ && exit 7\n")
            assert t.end() == 7 and t.restored
    finally:
        cutter.close()
        direct("rm", "-f", "cutshell")


def test_busy(serve):
    """429: the message names the time to wait."""
    d = serve("--max-sandboxes", "1")
    cli = Cli(CAISSON_URL="http://127.0.0.1:%d" % d.port)
    cli.ok("create", "x")
    r = cli("create", "y")
    assert r.code == 8, r
    one_line(r, "try again in")
    assert json.loads(cli("create", "y", "--json").out)["error"]["retry_after"] >= 1
    cli.ok("rm", "x")
