# SPDX-License-Identifier: Apache-2.0
"""canary.py - Objects of the host that an attack would read, change, reach or kill.

Every content is random per run. A canary is judged from outside: its files must be unchanged, its
listeners must have received nothing, its process must live and have got no signal, and its nonces must
be in no output of a cell.

Run as a program it is the canary process: it listens, counts, and reports on stdin's request.
"""
import json
import os
import secrets
import selectors
import signal
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

from snapshot import OWN_PREFIX

PLACES = ("/root", "/home", "/etc", "/var/tmp", "/tmp", "/run", "/opt", "/srv", "/dev/shm", "/var/lib")


class Canary:
    """with Canary() as c: attack; c.check(output bytes...)"""

    def __init__(self, uid=0):
        self.uid = uid
        self.nonce = secrets.token_hex(16)
        self.files = {}
        self.proc = None
        self.info = {}

    def __enter__(self):
        for place in PLACES:
            if os.path.isdir(place) and os.access(place, os.W_OK):
                path = f"{place}/{OWN_PREFIX}canary-{secrets.token_hex(6)}"
                text = f"{self.nonce}-{secrets.token_hex(8)}\n"
                Path(path).write_text(text)
                os.chmod(path, 0o666)  # only isolation may protect it, not permissions
                self.files[path] = text
        # World-writable sockets: the attacker must be kept off by isolation alone.
        self.dir = tempfile.mkdtemp(prefix=OWN_PREFIX, dir="/tmp")
        os.chmod(self.dir, 0o777)
        self.proc = subprocess.Popen(
            [sys.executable, __file__, self.dir, self.nonce],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            env={**os.environ, "CANARY_SECRET": self.nonce},
            **({"user": self.uid, "group": self.uid, "extra_groups": []} if self.uid else {}))
        self.info = json.loads(self.proc.stdout.readline())
        return self

    @property
    def pid(self):
        return self.proc.pid

    @property
    def tcp_port(self):
        return self.info["tcp"]

    @property
    def udp_port(self):
        return self.info["udp"]

    @property
    def abstract_name(self):
        """Without the leading NUL."""
        return self.info["abstract"]

    @property
    def unix_path(self):
        return self.info["unix"]

    def report(self):
        """{"hits": [...], "signals": [...]} since the start."""
        self.proc.stdin.write(b"report\n")
        self.proc.stdin.flush()
        return json.loads(self.proc.stdout.readline())

    def check(self, *outputs):
        """Unchanged, not connected to, alive, and its secret in none of @outputs (bytes or str)."""
        for path, text in self.files.items():
            assert os.path.lexists(path), f"WRITE: canary {path} was removed"
            assert not os.path.islink(path) and Path(path).read_text() == text, \
                f"WRITE: canary {path} was changed"
        assert self.proc.poll() is None, f"the canary process was ended: {self.proc.returncode}"
        heard = self.report()
        assert heard["hits"] == [], f"ESCAPE: canary listeners were reached: {heard['hits']}"
        assert heard["signals"] == [], f"ESCAPE: the canary process got signals {heard['signals']}"
        for out in outputs:
            data = out.encode(errors="replace") if isinstance(out, str) else out
            assert self.nonce.encode() not in data, "READ: a canary's content is in the output"

    def __exit__(self, *exc):
        self.proc.kill()
        self.proc.communicate()
        for path in self.files:
            try:
                os.unlink(path)
            except OSError:
                pass
        for name in os.listdir(self.dir):
            os.unlink(f"{self.dir}/{name}")
        os.rmdir(self.dir)


def serve(directory, nonce):
    """The canary process: answers every client with the nonce, and records the connection."""
    hits, signals = [], []
    for s in set(signal.valid_signals()) - {signal.SIGKILL, signal.SIGSTOP, signal.SIGCHLD}:
        try:
            signal.signal(s, lambda n, _: signals.append(n))
        except (OSError, ValueError):
            pass
    sel = selectors.DefaultSelector()

    def listen(family, kind, address, name):
        sock = socket.socket(family, kind)
        sock.bind(address)
        if kind == socket.SOCK_STREAM:
            sock.listen(16)
        sock.setblocking(False)
        sel.register(sock, selectors.EVENT_READ, name)
        return sock.getsockname()

    os.umask(0)
    info = {
        "tcp": listen(socket.AF_INET, socket.SOCK_STREAM, ("0.0.0.0", 0), "tcp")[1],
        "udp": listen(socket.AF_INET, socket.SOCK_DGRAM, ("0.0.0.0", 0), "udp")[1],
        "unix": listen(socket.AF_UNIX, socket.SOCK_STREAM, f"{directory}/sock", "unix"),
        "abstract": "canary-" + secrets.token_hex(8),
    }
    listen(socket.AF_UNIX, socket.SOCK_STREAM, "\0" + info["abstract"], "abstract")
    sel.register(sys.stdin.fileno(), selectors.EVENT_READ, "stdin")
    print(json.dumps(info), flush=True)
    while True:
        for key, _ in sel.select():
            if key.data == "stdin":
                if not os.read(0, 100):
                    return
                print(json.dumps({"hits": hits, "signals": signals}), flush=True)
                continue
            hits.append(key.data)
            try:
                if key.data == "udp":
                    _, peer = key.fileobj.recvfrom(2048)
                    key.fileobj.sendto(nonce.encode(), peer)
                else:
                    conn, _ = key.fileobj.accept()
                    conn.sendall(nonce.encode())
                    conn.close()
            except OSError:
                pass


if __name__ == "__main__":
    serve(sys.argv[1], sys.argv[2])
