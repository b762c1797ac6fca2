# SPDX-License-Identifier: Apache-2.0
"""test_tools_port.py - Code in a cell misuses the port on which programs request packages: bad lines, floods, silence.

The front serves everybody in one thread. Each attack is followed by an honest request of the same sandbox, which shows that the
attack reached the port; a neighbour is served all the while.
"""
import daemon_lib
import pytest
from daemon_lib import Watch
from process import unique

daemon, hostile_test, whole_module = daemon_lib.daemon, daemon_lib.hostile_test, daemon_lib.whole_module
quick = pytest.mark.quick

PRELUDE = """
import json, socket, time
def connect():
    for _ in range(200):
        try:
            return socket.create_connection(("198.18.0.1", 61052), timeout=30)
        except ConnectionRefusedError:
            time.sleep(0.02)
    raise SystemExit("no port")
def ask(data):
    with connect() as s:
        try:
            s.sendall(data)
            return s.makefile("rb").readline().decode()
        except OSError as e:
            return type(e).__name__
def honest(package="os"):
    return json.loads(ask(json.dumps({"language": "python", "packages": [package]}).encode() + b"\\n"))["code"]
"""

ATTACKS = {
    "not JSON": "print(ask(b'x' * 100 + b'\\n'))",
    "no end": "print(ask(b'[' * 200000))",
    "deep": "print(ask(b'[' * 5000 + b']' * 5000 + b'\\n'))",
    "many values": "print(ask(b'[' + b'1,' * 20000 + b'1]\\n'))",
    "other types": "[print(ask(json.dumps(m).encode() + b'\\n')) for m in (1, [], {}, {'language': 'c', 'packages': []}, {'language': 'python', 'packages': 'os'},"
                   " {'language': 'python', 'packages': [['os']]}, {'language': 'python', 'packages': {'a': 'os'}, 'index': [1]})]",
    "options": "[print(ask(json.dumps({'language': 'python', 'packages': [p]}).encode() + b'\\n')) for p in ('--index-url=http://x/', '../../etc', '/packages', 'a @ http://x/', 'a\\x00b')]",
    "silence": "s = connect(); print(repr(s.recv(1)))",
    "many connections": "all = [connect() for _ in range(100)]\nfor s in all: s.close()\nprint('closed')",
    "half": "s = connect(); s.sendall(b'{\"language\": \"python\",'); s.shutdown(socket.SHUT_WR); print(repr(s.recv(1)))",
}


@quick
@pytest.mark.parametrize("attack", ATTACKS)
def test_misuse(daemon, stopped_by, attack):
    name = unique("tools")
    with Watch(daemon, neighbour=True) as w:
        r = daemon.execute(PRELUDE + ATTACKS[attack] + "\nprint(honest())", session_id=name, timeout=60)
        assert r.status == "ok" and r["stdout"].endswith("package_blocked\n"), r
        assert '"tree"' not in r["stdout"], r
    w.check()
    stopped_by("bounded lines, one connection at a time, a deadline")


@quick
def test_a_flood_of_connections_takes_no_time_of_others(daemon, stopped_by):
    """Connections that end at once, for as long as they come: the front takes 20 a second."""
    flood = PRELUDE + """
honest()
end, n = time.monotonic() + 3, 0
while time.monotonic() < end:
    s = socket.socket(); s.setblocking(False); s.connect_ex(("198.18.0.1", 61052)); s.close(); n += 1
print(n)
"""
    with Watch(daemon, neighbour=True) as w:
        r = daemon.execute(flood, session_id=unique("tools"), timeout=60)
    assert r.status == "ok" and int(r["stdout"]) > 100, r
    w.check()
    stopped_by("a pause after each connection")
