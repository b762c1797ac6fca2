# SPDX-License-Identifier: Apache-2.0
"""test_systemd.py - As a service: inherited sockets, notifications to the service manager, and a unit with few permissions."""
import errno
import os
import queue
import re
import shutil
import signal
import socket
import subprocess
import threading
from pathlib import Path

import pytest

from filter_lib import install, needs_filters
from daemon import read_response
from process import BIN, HANG, SLOW, free_port, wait_until

from integ_lib import needs_root

ROOT = Path(__file__).resolve().parents[2]
UNIT = BIN.parent / "dist" / "caisson.service"
needs_analyze = pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="no systemd-analyze here (apt-get install systemd)")
needs_activate = pytest.mark.skipif(not shutil.which("systemd-socket-activate"), reason="no systemd-socket-activate here (apt-get install systemd)")
needs_setpriv = pytest.mark.skipif(not shutil.which("setpriv"), reason="no setpriv here (apt-get install util-linux)")


class Manager:
    """A listener on NOTIFY_SOCKET, always: such a socket holds only ten unread messages."""

    def __init__(self, path):
        self.path = str(path)
        self.s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.s.bind(self.path)
        os.chmod(self.path, 0o777)
        self.said = queue.Queue()
        threading.Thread(target=self.listen, daemon=True).start()

    def listen(self):
        while True:
            self.said.put(self.s.recv(4096).decode())

    def hear(self):
        return dict(line.split("=", 1) for line in self.said.get(timeout=HANG).splitlines())


def test_manager_is_notified_of_start_watchdog_and_end(serve, short_dir):
    m = Manager(short_dir / "notify")
    d = serve(env={"NOTIFY_SOCKET": m.path, "WATCHDOG_USEC": "400000"})
    assert m.hear()["READY"] == "1"
    assert [m.hear() for _ in range(3)] == [{"WATCHDOG": "1"}] * 3
    assert d.execute("import os; print('NOTIFY_SOCKET' in os.environ)")["stdout"] == "False\n"
    d.p.send_signal(signal.SIGTERM)
    said = m.hear()
    while "WATCHDOG" in said:
        said = m.hear()
    assert said["STOPPING"] == "1"
    assert d.end() == 0


@pytest.mark.parametrize("path", ["/nowhere/at/all", "relative", "@", "/" + "x" * 200])
def test_manager_that_is_not_there_is_no_reason_to_fail(serve, path):
    serve(env={"NOTIFY_SOCKET": path})


def asks(family, where):
    """Whether a daemon answers there."""
    with socket.socket(family) as s:
        s.settimeout(30 * SLOW)
        try:
            s.connect(where)
            s.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            return s.recv(65536).startswith(b"HTTP/1.1 200")
        except OSError:
            return False


@pytest.fixture
def activate(tmp_path):
    """A daemon that starts with the first connection to the sockets that it gets."""
    started = []

    def start(given, *flags):
        sockets = [w for s in given for w in ("-l", str(s))]
        started.append(subprocess.Popen(["systemd-socket-activate", *sockets, str(BIN), "serve", "--state", str(tmp_path / "state"), "--log-format", "json", *flags],
                                        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE))
        return started[-1]
    yield start
    for p in started:
        if p.poll() is None:
            p.kill()
            p.wait()


@needs_activate
def test_sockets_that_were_there_before(short_dir, activate):
    """Each takes the place of the option for its kind."""
    port, path = free_port(), short_dir / "sock"
    p = activate(["127.0.0.1:%d" % port, path], "--listen", "127.0.0.1:1", "--socket", str(short_dir / "other"))
    assert wait_until(lambda: asks(socket.AF_INET, ("127.0.0.1", port))), "starts with the first connection"
    assert asks(socket.AF_UNIX, str(path)) and not (short_dir / "other").exists()
    p.send_signal(signal.SIGTERM)
    assert p.wait(HANG) == 0, p.stderr.read()


@needs_activate
@pytest.mark.parametrize("kind", ["unix", "tcp"])
def test_a_socket_of_one_kind_leaves_the_other_option(short_dir, activate, kind):
    """As caisson.socket gives the unix socket, and CAISSON_LISTEN an address."""
    port, path = free_port(), short_dir / "sock"
    given, flags = ([path], ["--listen", "127.0.0.1:%d" % port]) if kind == "unix" else (["127.0.0.1:%d" % port], ["--socket", str(path)])
    p = activate(given, *flags)
    both = [(socket.AF_UNIX, str(path)), (socket.AF_INET, ("127.0.0.1", port))]
    first, second = both if kind == "unix" else reversed(both)
    assert wait_until(lambda: asks(*first)) and asks(*second)
    p.send_signal(signal.SIGTERM)
    assert p.wait(HANG) == 0, p.stderr.read()


def start_with(fds, tmp_path, *flags, count=None):
    """A daemon with these sockets as descriptors 3 and up. Returns its exit code and its messages."""
    script = "import os, sys\n" \
             "fds = [int(x) for x in sys.argv[1].split(',') if x]\n" \
             "high = [os.dup(fd) for fd in fds]\n" \
             "high = [h if h > 20 else os.dup2(h, 40 + i) for i, h in enumerate(high)]\n" \
             "for i, h in enumerate(high): os.dup2(h, 3 + i)\n" \
             "os.environ.update(LISTEN_PID=str(os.getpid()), LISTEN_FDS=sys.argv[2])\n" \
             "os.execv(sys.argv[3], sys.argv[3:])\n"
    p = subprocess.run(["/usr/bin/python3", "-c", script, ",".join(map(str, fds)), str(len(fds) if count is None else count), str(BIN),
                        "serve", "--state", str(tmp_path / "state"), "--socket", "none", *flags],
                       pass_fds=fds, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=60 * SLOW)
    return p.returncode, p.stdout.decode()


def test_sockets_that_can_not_be_served(tmp_path):
    with socket.socket() as idle, socket.socket(type=socket.SOCK_DGRAM) as udp, socket.create_server(("127.0.0.1", 0)) as a, \
            socket.create_server(("127.0.0.1", 0)) as b, open(os.devnull, "rb") as null:
        for fds, what in (([idle.fileno()], "listening"), ([udp.fileno()], "listening"), ([null.fileno()], "listening"),
                          ([a.fileno(), b.fileno()], "too many")):
            code, said = start_with(fds, tmp_path)
            assert code == 1 or code == 125, said
            assert "LISTEN_FDS" in said and what in said and len(said.splitlines()) == 1, said
        code, said = start_with([a.fileno()], tmp_path, count="x")
        assert code in (1, 125) and "LISTEN_FDS" in said, said


def test_a_socket_beyond_loopback_needs_a_token_all_the_same(tmp_path):
    with socket.create_server(("0.0.0.0", 0)) as s:
        code, said = start_with([s.fileno()], tmp_path)
    assert code in (1, 125) and "token" in said, said


@needs_analyze
def test_unit_is_valid_and_gives_away_little(tmp_path):
    unit = tmp_path / "caisson.service"
    unit.write_text(re.sub(r"Documentation=.*\n", "", re.sub(r"ExecStart=\S+", "ExecStart=/bin/true", UNIT.read_text())))
    r = subprocess.run(["systemd-analyze", "verify", str(unit)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    assert r.returncode == 0 and b"caisson.service" not in r.stdout, r.stdout
    r = subprocess.run(["systemd-analyze", "security", "--offline=true", "--no-pager", "--threshold=53", str(unit)],
                       stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    assert r.returncode == 0, r.stdout.decode()[-300:]


def test_the_unit_permits_egress_of_sandboxes():
    """Egress, packages, registries and buckets are connections of the service: the unit must not cut them off."""
    settings = dict(line.split("=", 1) for line in UNIT.read_text().splitlines() if re.match(r"[A-Z]\w+=", line))
    assert not {"IPAddressDeny", "PrivateNetwork", "RestrictNetworkInterfaces"} & set(settings)
    assert {"AF_UNIX", "AF_INET", "AF_INET6"} <= set(settings["RestrictAddressFamilies"].split())


def test_the_unit_permits_openat2():
    """systemd refuses it for RestrictSUIDSGID, and then no cell can be made. make dist-test starts the unit by systemd."""
    assert "RestrictSUIDSGID=yes" not in UNIT.read_text()


def test_the_units_serve_the_unix_socket_alone():
    """Over TCP a service of root serves root, or clients with a token: so TCP is off until the operator configures a token."""
    sockets = re.findall(r"^Listen\w*=(.*)$", (ROOT / "dist/systemd/caisson.socket").read_text(), re.M)
    assert sockets == ["/run/caisson/caisson.sock"]
    assert re.findall(r"^Environment=(.*)$", UNIT.read_text(), re.M) == ["CAISSON_LISTEN=none"], "which `systemctl edit` can change"
    start, = re.findall(r"^ExecStart=(.*)$", UNIT.read_text(), re.M)
    assert "--listen" not in start and "--socket /run/caisson/caisson.sock" in start


def only_families(families):
    """A preexec_fn: only sockets of these families, as systemd filters them."""
    load, jump, ret = 0x20, 0x15, 0x06
    program = [(load, 0, 0, 0), (jump, 0, len(families) + 2, 41), (load, 0, 0, 16)]
    program += [(jump, len(families) - i, 0, f) for i, f in enumerate(families)]
    program += [(ret, 0, 0, 0x00050000 | errno.EAFNOSUPPORT), (ret, 0, 0, 0x7fff0000)]
    return lambda: install(program)


@needs_root
@needs_filters
def test_address_families_of_the_unit_are_enough(short_dir, serve):
    """As the unit starts it: sandboxes are made, and called over the socket."""
    names = re.search(r"^RestrictAddressFamilies=(.*)$", UNIT.read_text(), re.M).group(1).split()
    path = short_dir / "sock"
    d = serve("--pool", "0", listen="none", socket=path, env={"CAISSON_LISTEN": "none"}, wait=False,
              preexec_fn=only_families([getattr(socket, n) for n in names]))
    assert wait_until(lambda: d.log("listening") or not d.running()) and d.running(), d.log_text()
    body = b'{"code": "print(6 * 7)"}'
    with socket.socket(socket.AF_UNIX) as s:
        s.settimeout(30 * SLOW)
        s.connect(str(path))
        s.sendall(b"POST /execute HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: %d\r\nConnection: close\r\n\r\n" % len(body) + body)
        assert read_response(s.makefile("rb")).json["stdout"] == "42\n"


@needs_root
@needs_setpriv
def test_capabilities_of_the_unit_are_enough(tmp_path, serve):
    """With its bounding set, and no way to gain more, sandboxes are made, used, limited and removed."""
    keep = re.search(r"^CapabilityBoundingSet=(.*)$", UNIT.read_text(), re.M).group(1).lower().replace("cap_", "").split()
    wrapper = tmp_path / "wrapper"
    wrapper.write_text("#!/bin/sh\nexec setpriv --no-new-privs --bounding-set=-all,%s %s \"$@\"\n" % (",".join("+" + c for c in keep), BIN))
    wrapper.chmod(0o755)
    d = serve(binary=wrapper)
    assert d.execute("print(6 * 7)")["stdout"] == "42\n"
    r = d.post("/v1/sandboxes", {"name": "x", "memory_mib": 64})
    assert r.status == 201, r
    one = d.get("/v1/sandboxes/x").json
    assert one["receipt"]["enforced"] is True, one["receipt"]
    r = d.post("/v1/sandboxes/x/execute", {"code": "x = bytearray(300 << 20)"}).json
    assert r["cause"] == "memory", r
    assert d.post("/v1/sandboxes/x/exec", {"cmd": "id", "args": ["-u"]}).json["stdout"] == "1000\n"
    assert d.request("DELETE", "/v1/sandboxes/x").status == 204
