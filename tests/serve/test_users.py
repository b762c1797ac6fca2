# SPDX-License-Identifier: Apache-2.0
"""test_users.py - Without a token: the user who started the daemon and root call over loopback, and no other user of the machine does."""
import errno
import io
import json
import os
import signal
import socket
import struct
import subprocess
import time
from pathlib import Path

import pytest

from egress_lib import certificate
from filter_lib import install, needs_filters
from integ_lib import USER, as_user, needs_root
from daemon import read_response
from process import BIN, HANG, SLOW, free_port, status_of, unique, wait_until
from serve_lib import clean_env

pytestmark = needs_root  # to be several users
NOBODY = 65534

# Sends its stdin, and prints all that comes back; of an upgrade the first piece. Arguments: address, port, "tls" or "".
CLIENT = """
import socket, ssl, sys
s = socket.create_connection((sys.argv[1], int(sys.argv[2])), 30)
if sys.argv[3]:
    c = ssl.create_default_context()
    c.check_hostname, c.verify_mode = False, ssl.CERT_NONE
    s = c.wrap_socket(s)
sent = sys.stdin.buffer.read()
s.sendall(sent)
while data := s.recv(65536):
    sys.stdout.buffer.write(data)
    if b"Upgrade: " in sent:
        break
"""


def ask(d, uid, data, address="127.0.0.1", tls=""):
    """The first answer to these bytes for a program of this user."""
    p = subprocess.run([*as_user(uid), "/usr/bin/python3", "-c", CLIENT, address, str(d.port), tls], input=data, capture_output=True, timeout=HANG)
    assert p.returncode == 0, p.stderr.decode()
    return read_response(io.BytesIO(p.stdout))


def request(method, path, body=None, *headers):
    data = b"" if body is None else json.dumps(body).encode()
    lines = ["%s %s HTTP/1.1" % (method, path), "Host: localhost", *headers]
    if body is not None:
        lines += ["Content-Type: application/json", "Content-Length: %d" % len(data)]
    if not any(h.startswith("Connection") for h in headers):
        lines.append("Connection: close")
    return ("\r\n".join(lines) + "\r\n\r\n").encode() + data


EXECUTE = request("POST", "/execute", {"code": "print(6 * 7)"})
UPGRADE = ("Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Version: 13", "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==")
INITIALIZE = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": "2025-06-18", "capabilities": {},
                                                                            "clientInfo": {"name": "x", "version": "1"}}}
MCP = ("Accept: application/json, text/event-stream",)


def refused(r):
    assert r.status == 401 and r.error["code"] == "unauthorized", r
    assert "user who started" in r.error["message"] and "--token-file" in r.error["hint"], r
    assert r.headers["www-authenticate"].startswith("Bearer"), r
    return True


def test_only_root_of_a_daemon_of_root(daemon):
    """Each way in, for root and for another user: root is served, and only the user makes the difference."""
    name = unique()
    daemon.execute("secret = 'of root'", session_id=name)
    ways = {
        "execute": (EXECUTE, 200), "session": (request("POST", "/execute", {"code": "secret", "session_id": name}), 200),
        "sessions": (request("GET", "/sessions"), 200), "end": (request("DELETE", "/sessions/" + unique()), 404),
        "metrics": (request("GET", "/metrics"), 200), "sandboxes": (request("GET", "/v1/sandboxes"), 200),
        "nothing": (request("GET", "/nothing"), 404), "method": (request("PUT", "/execute"), 405),
        "websocket": (request("GET", "/execute/ws", None, *UPGRADE), 101), "mcp": (request("POST", "/mcp", INITIALIZE, *MCP), 200),
        "jupyter": (request("GET", "/api/kernels"), 200), "jupyter, token": (request("GET", "/api/kernels?token=" + "x" * 40), 200),
        "port": (request("GET", "/v1/sandboxes/%s/ports/8000/" % unique()), 404)}
    before = daemon.metrics()["caisson_auth_failures_total"]
    for what, (data, status) in ways.items():
        own = ask(daemon, 0, data)
        assert own.status == status, (what, own)
        for uid in (NOBODY, USER):
            r = ask(daemon, uid, data)
            assert refused(r) and b"of root" not in r.body, (what, r)
    assert daemon.metrics()["caisson_auth_failures_total"] == before + 2 * len(ways)
    daemon.end_session(name)


def test_what_is_open_to_all(daemon):
    """Health, the documentation and the source of tokens: they contain nothing of an owner."""
    for path in ("/health", "/docs", "/openapi.json", "/"):
        assert ask(daemon, NOBODY, request("GET", path)).status in (200, 307), path
    assert {e["owner"] for e in daemon.log("request") if e["path"] == "/docs" and e["status"] == 200} == {"anonymous"}


def test_nothing_that_is_sent_makes_a_user(daemon):
    for headers in (["Authorization: Bearer " + "x" * 40], ["X-API-Key: " + "0" * 64], ["X-Forwarded-For: 127.0.0.1", "Forwarded: for=127.0.0.1"],
                    ["X-Forwarded-User: root", "X-Owner: local"], ["Cookie: user=root"], ["Origin: http://localhost"]):
        assert refused(ask(daemon, NOBODY, request("GET", "/sessions", None, *headers))), headers
    # The rules for Host and Origin come first, as before.
    assert ask(daemon, NOBODY, request("GET", "/sessions", None, "Origin: https://evil.example")).status == 403
    assert ask(daemon, 0, request("GET", "/sessions", None, "Origin: https://evil.example")).status == 403


def test_a_connection_that_is_used_again_and_again(daemon):
    """The user is looked up once; every request of the connection is judged by it, and the next connection is looked up again."""
    one = request("GET", "/sessions", None, "Connection: keep-alive")
    for uid, status in ((0, 200), (NOBODY, 401)):
        p = subprocess.run([*as_user(uid), "/usr/bin/python3", "-c", CLIENT, "127.0.0.1", str(daemon.port), ""],
                           input=3 * one + request("GET", "/sessions"), capture_output=True, timeout=HANG)
        f = io.BytesIO(p.stdout)
        assert [read_response(f).status for _ in range(4)] == 4 * [status], p


def socket_of(uid, port):
    """A connection that this user made, in our hands."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        pid = os.fork()
        if pid == 0:
            os.setgroups([])
            os.setgid(uid)
            os.setuid(uid)
            with socket.create_connection(("127.0.0.1", port)) as s:
                socket.send_fds(theirs, [b"x"], [s.fileno()])
            os._exit(0)
        _, fds, _, _ = socket.recv_fds(ours, 1, 1)
        os.waitpid(pid, 0)
    return socket.socket(fileno=fds[0])


def test_a_peer_that_has_gone_is_unknown(daemon):
    """The Linux kernel reports a socket that no process holds as root's. A request of a client that closed at once has no effect, whenever it is read."""
    front = daemon.pid
    for how in ("close", "half", "reset"):
        name = unique("gone")
        s = socket_of(NOBODY, daemon.port)
        os.kill(front, signal.SIGSTOP)  # so that it looks after the end
        try:
            s.sendall(request("POST", "/execute", {"code": "1", "session_id": name}))
            if how == "half":
                s.shutdown(socket.SHUT_WR)
            else:
                if how == "reset":
                    s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                s.close()
        finally:
            os.kill(front, signal.SIGCONT)
        if how == "half":
            with s, s.makefile("rb") as f:
                s.settimeout(20 * SLOW)
                refused(read_response(f))
        time.sleep(0.2)
        assert daemon.get("/health").status == 200
        assert name not in daemon.sessions(), how


def test_over_ipv6_and_tls(serve, tmp_path):
    cert, key = certificate(tmp_path, "localhost")
    d = serve("--tls-cert", cert, "--tls-key", key, "--pool", "0", listen="[::1]", wait=False)
    assert wait_until(lambda: d.log("listening"))
    assert ask(d, 0, EXECUTE, "::1", "tls").json["stdout"] == "42\n"
    refused(ask(d, NOBODY, EXECUTE, "::1", "tls"))


def test_other_addresses_of_loopback_and_both_protocols(serve):
    for listen, addresses in (("127.0.0.3", ["127.0.0.3"]), ("[::ffff:127.0.0.1]", ["127.0.0.1", "::ffff:127.0.0.1"])):
        d = serve("--pool", "0", listen=listen, wait=False)
        assert wait_until(lambda: d.log("listening"))
        for address in addresses:
            assert ask(d, 0, request("GET", "/sessions"), address).status == 200, (listen, address)
            refused(ask(d, NOBODY, request("GET", "/sessions"), address))
        d.stop()


def test_the_next_front_knows_as_well(serve):
    d = serve("--pool", "0")
    first = d.pid
    os.kill(first, signal.SIGKILL)
    assert wait_until(lambda: d.find_front() not in (None, first))
    assert wait_until(lambda: ask(d, 0, EXECUTE).status == 200)
    refused(ask(d, NOBODY, EXECUTE))


def test_a_daemon_of_an_ordinary_user(users):
    """Serves that user and root, and no other user."""
    d = users()
    assert status_of(d.pid)["Uid"].split()[0] == str(USER)
    assert ask(d, USER, EXECUTE).json["stdout"] == "42\n"
    assert ask(d, 0, EXECUTE).json["stdout"] == "42\n"
    refused(ask(d, NOBODY, EXECUTE))
    refused(ask(d, USER + 1, EXECUTE))


def test_who_called_sudo_is_not_asked(serve):
    """A rule of sudo may allow only this command, which is less than a mount of / would give."""
    d = serve("--pool", "0", env={"SUDO_UID": str(USER), "SUDO_GID": str(USER), "SUDO_USER": "somebody"})
    refused(ask(d, USER, EXECUTE))
    assert d.execute("1")["success"]


def test_the_unix_socket_is_for_whom_its_file_lets(serve, short_dir):
    path = short_dir / "sock"
    d = serve("--pool", "0", socket=path)
    mode = os.stat(path).st_mode & 0o777
    assert mode == 0o660, oct(mode)
    code = "import socket\ns = socket.socket(socket.AF_UNIX)\ns.connect(%r)\ns.sendall(%r)\nprint(s.recv(65536).decode())" % (
        str(path), request("GET", "/sessions"))
    short_dir.chmod(0o755)
    p = subprocess.run([*as_user(NOBODY), "/usr/bin/python3", "-c", code], capture_output=True, timeout=HANG)
    assert b"PermissionError" in p.stderr, p
    os.chown(path, 0, NOBODY)
    p = subprocess.run([*as_user(NOBODY), "/usr/bin/python3", "-c", code], capture_output=True, timeout=HANG)
    assert p.stdout.startswith(b"HTTP/1.1 200"), p
    del d


def without_sock_diag():
    """In the child: a Linux kernel without NETLINK_SOCK_DIAG."""
    load, jump, ret = 0x20, 0x15, 0x06
    program = [(load, 0, 0, 0), (jump, 0, 5, 41), (load, 0, 0, 16), (jump, 0, 3, socket.AF_NETLINK), (load, 0, 0, 32), (jump, 0, 1, 4),
               (ret, 0, 0, 0x00050000 | errno.EPROTONOSUPPORT), (ret, 0, 0, 0x7fff0000)]
    install(program)


@needs_filters
def test_a_kernel_that_does_not_tell(serve, tmp_path):
    """If the daemon cannot identify users, it does not serve TCP without a token; with a token, or without TCP, it starts."""
    p = subprocess.run([str(BIN), "serve", "--state", str(tmp_path / "s"), "--socket", "none", "--listen", "127.0.0.1:%d" % free_port()],
                       env=clean_env(), capture_output=True, timeout=HANG, preexec_fn=without_sock_diag)
    line = p.stderr.decode()
    assert p.returncode == 125 and len(line.splitlines()) == 1 and p.stdout == b"", p
    assert all(word in line for word in ("--listen", "sock_diag", "--token-file", "--listen none", "unix socket")), line
    tokens = tmp_path / "tokens"
    tokens.write_text("me:" + "t" * 40 + "\n")
    tokens.chmod(0o600)
    d = serve("--token-file", tokens, "--pool", "0", preexec_fn=without_sock_diag, wait=False)
    d.token = "t" * 40
    d.wait_ready()
    assert d.execute("1")["success"]


def test_another_network_namespace_is_not_this_machine(serve, tmp_path):
    """Its loopback is another one, and its address is not a loopback address: refused, for every user."""
    d = serve("--pool", "0")
    r = subprocess.run(["unshare", "--net", "/usr/bin/python3", "-c",
                        "import os, socket, subprocess\nsubprocess.run(['ip', 'link', 'set', 'lo', 'up'])\n"
                        "s = socket.socket()\ns.settimeout(5)\nprint(s.connect_ex(('127.0.0.1', %d)) != 0)" % d.port], capture_output=True, timeout=HANG)
    assert r.stdout == b"True\n", r
    own = next((a for a in Path("/proc/net/fib_trie").read_text().split() if a.count(".") == 3 and not a.startswith(("127.", "0."))
                and is_ours(a)), None)
    if not own:
        pytest.skip("no address but loopback here")
    with socket.create_connection(("127.0.0.1", d.port), 20, source_address=(own, 0)) as s, s.makefile("rb") as f:
        s.sendall(request("GET", "/sessions"))
        refused(read_response(f))


def is_ours(address):
    with socket.socket() as s:
        try:
            s.bind((address, 0))
            return True
        except OSError:
            return False
