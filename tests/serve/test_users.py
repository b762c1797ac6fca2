# SPDX-License-Identifier: Apache-2.0
"""test_users.py - Without a token: the user who started the daemon and root call over loopback, and no other user of the machine does."""
import errno
import io
import json
import os
import shutil
import signal
import socket
import struct
import subprocess
import tempfile
import time
from pathlib import Path

import pytest

from box_lib import Box
from egress_lib import certificate
from filter_lib import install, needs_filters
from integ_lib import USER, as_user, needs_root
from daemon import read_response
from jupyter_lib import Kernel
from process import BIN, HANG, SLOW, free_port, status_of, unique, wait_until
from serve_lib import Daemon, clean_env
from wire_lib import Pipes, code

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
        "jupyter": (request("GET", "/api/kernels"), 200), "jupyter, empty token": (request("GET", "/api/kernels?token="), 200),
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


# ---- an ordinary user without cgroups ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def without(pytestconfig):
    """A daemon of an ordinary user, below cgroups that are root's."""
    if subprocess.run([*as_user(), "test", "-x", BIN]).returncode:
        pytest.skip("an ordinary user cannot reach %s" % BIN)
    state = Path(tempfile.mkdtemp(prefix="cs-"))
    os.chown(state, USER, USER)
    d = Daemon(pytestconfig.serve_dir, "--without", "cgroup", "--pool", "1", "--timeout", "3s", "--max-timeout", "3s", wrapper=as_user(), state=state)
    yield d
    d.stop()
    shutil.rmtree(state, ignore_errors=True)


def test_a_daemon_without_cgroup_says_what_is_missing(without):
    h = without.health()["isolation"]
    assert h["level"] == "reduced" and h["cgroup"] is False and h["seccomp"] and h["landlock"], h
    weaker, = without.log("weaker")
    assert weaker["level"] == "warning" and weaker["without"] == "cgroup" and "per process" in weaker["missing"], weaker
    with Box(without) as box:
        box.post("/execute", {"code": "1"})
        receipt = box.about()["receipt"]
        assert receipt["weakened"] == ["cgroup"] and receipt["cgroup"] is None and receipt["commands"]["seccomp"] == "filter", receipt
    for field, value in (("cpus", 1), ("oom", "sandbox")):
        e = without.post("/v1/sandboxes", {"name": "x", field: value}).error
        assert (e["code"], e["field"]) == ("not_supported", field) and "without cgroup" in e["message"], e


def test_a_daemon_without_cgroup_works_with_rlimits(without):
    for language, text in (("python", "1 + 1"), ("bash", "echo 2"), ("javascript", "1 + 1"), ("r", "1 + 1")):
        if language in without.health()["languages"]:
            r = without.execute(text, language=language)
            assert r["success"] and "2" in json.dumps([r["stdout"], r["result"]]), r
    with Box(without, memory_mib=64, pids=20, disk_mib=8) as box:
        r = box.post("/execute", {"code": "x = bytearray(200 << 20)"}).json
        assert r["error"]["name"] == "MemoryError" and r["state"] == "kept", r
        r = box.post("/execute", {"code": "import os, time\nfor i in range(60):\n    if os.fork() == 0: time.sleep(60)"}).json
        assert r["error"]["name"] == "BlockingIOError", r
    with Box(without, memory_mib=64, disk_mib=8) as box:
        assert "No space left" in box.shell("head -c 20M /dev/zero >/workspace/f")["stderr"]
        r = box.exec("/usr/bin/python3", "-c", "x = bytearray(20 << 20)")
        assert r["ok"] and r["usage"]["memory_peak"] > 20 << 20 and r["usage"]["cpu_ns"] > 0, "the numbers of wait(2)"
    assert without.try_execute("while True: pass").json["status"] == "timeout"


def test_time_does_not_stand_still_without_cgroup(without):
    """Nobody counts the processor time of code that waits for a person, so the code may compute meanwhile."""
    with Kernel(without) as k:
        assert k.run("input()", allow_stdin=True).of("error")[0]["ename"] == "timeout"


def test_what_cannot_go_without(tmp_path):
    for flags, says in ((["--without", "seccomp"], "only be without cgroup"), (["--without", "walls"], "is not a layer"),
                        (["--without", "cgroup", "--cpus", "1"], "--cpus: cannot be enforced with --without cgroup")):
        r = subprocess.run([BIN, "serve", "--state", tmp_path / "s", "--listen", "none", *flags], env=clean_env(), capture_output=True, text=True, timeout=HANG)
        assert r.returncode == 125 and says in r.stderr and len(r.stderr.splitlines()) == 1, r
    (tmp_path / "p").write_text("[default]\ncpus = 2\n")
    r = subprocess.run([BIN, "policy", "check", tmp_path / "p", "--", "--without", "cgroup"], env=clean_env(), capture_output=True, text=True, timeout=HANG)
    assert r.returncode == 1 and "p:2:" in r.stderr and "--without cgroup" in r.stderr, r


def of_user(short_dir):
    """The environment of an ordinary user, and how a process becomes that user."""
    run = short_dir / "run"
    run.mkdir(mode=0o700)
    os.chown(run, USER, USER)
    return {"env": {"XDG_RUNTIME_DIR": str(run), "CAISSON_STATE": None, "CAISSON_PIP_INDEX": "none", "CAISSON_NPM_REGISTRY": "none"},
            "user": USER, "group": USER, "extra_groups": ()}


def test_mcp_without_cgroup(short_dir):
    if subprocess.run([*as_user(), "test", "-x", BIN]).returncode:
        pytest.skip("an ordinary user cannot reach %s" % BIN)
    user = of_user(short_dir)
    with Pipes("--", "--pool", "0", **user) as p:
        p.p.stdin.close()
        assert p.p.wait(HANG) == 3 and wait_until(lambda: b"caisson mcp -- --without cgroup" in p.said), p.said
        assert b"cgroup" in p.said.splitlines()[0], "the daemon's own words"
    with Pipes("--", "--without", "cgroup", "--pool", "0", **user) as p:
        p.hello()
        assert p.call(code("6 * 7", unique()))["result"]["structuredContent"]["result"] == "42"
        assert wait_until(lambda: b"per process" in p.said), p.said
        assert p.end() == 0
    assert wait_until(lambda: not [f for f in (short_dir / "run").iterdir() if f.name.startswith("caisson-mcp")])


def test_mcp_finds_the_daemon_of_root(serve, short_dir, tmp_path):
    """An ordinary user without a daemon: that of the machine, if its socket lets the user in; the user's own comes first."""
    d = serve(socket=short_dir / "caisson.sock")
    user = of_user(short_dir)
    # In a mount namespace of the test, so that /run of this machine stays as it is.
    inside = 'mount -t tmpfs none /run && mkdir /run/caisson && mount --bind "$1" /run/caisson && shift && exec "$@"'
    before = ["unshare", "-m", "sh", "-c", inside, "sh", short_dir, *as_user()]
    for name in ("run", "user", "group", "extra_groups"):
        user.pop(name, None)
    os.chmod(d.argv[d.argv.index("--socket") + 1], 0o666)
    name = unique()
    with Pipes(before=before, **user) as p:
        p.hello()
        assert p.call(code("x = 41", name))["result"]["isError"] is False
        assert d.execute("x + 1", session_id=name)["result"]["text/plain"] == "42"
        assert p.end() == 0 and p.said == b"", p.said
    r = subprocess.run([*before, BIN, "ps"], env=clean_env(**user["env"]), capture_output=True, text=True, timeout=HANG)
    assert r.returncode == 0 and name in r.stdout, r
    os.chmod(d.argv[d.argv.index("--socket") + 1], 0o600)
    r = subprocess.run([*before, BIN, "ps"], env=clean_env(**user["env"]), capture_output=True, text=True, timeout=HANG)
    assert r.returncode == 3 and "no daemon answers on %s/run/caisson/caisson.sock" % short_dir in r.stderr, r
