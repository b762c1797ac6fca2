# SPDX-License-Identifier: Apache-2.0
"""puppet.py - A process that was taken over: it makes the system calls that the test chooses, with its own rights.

    with Puppet(pid) as p:
        r = p.call("openat", AT_FDCWD, b"/etc/shadow\\0", os.O_RDONLY)
        assert r.errno == "EACCES", r
        r = p.call("read", 5, Out(100), 100)
        print(r.ret, r.out[0])

payloads/puppet.c does the work. An argument is a number, bytes (placed into the process's memory, the call gets the address) or
Out(n) (room for n bytes that are read back). Build structures with pointers with put(). The process continues where it was when
the context ends. A call that the filter answers by killing the process gives r.dead, and the puppet is over.
"""
import errno
import json
import os
import re
import socket
import struct
import subprocess
from pathlib import Path

from lib import payload

AT_FDCWD = -100
HEADER = "/usr/include/x86_64-linux-gnu/asm/unistd_64.h"
NUMBERS = {m[1]: int(m[2]) for m in re.finditer(r"#define __NR_(\w+) (\d+)", Path(HEADER).read_text(encoding="ascii"))} \
    if os.path.exists(HEADER) else {}


class Out:
    """Room for @size bytes, which begin with @data."""

    def __init__(self, size, data=b""):
        self.size, self.data = size, data


class Outcome:
    """ret: what the call returned, or -1; errno: its name, or None; out: the bytes of each Out; dead: a wait status or None."""

    def __init__(self, name, answer, out=()):
        self.name, self.out = name, out
        ret = answer.get("ret", -1)
        self.errno = errno.errorcode.get(-ret, str(-ret)) if -4096 < ret < 0 else None
        self.ret = -1 if self.errno else ret
        self.blocked, self.child, self.exec = answer.get("blocked", False), answer.get("child", 0), answer.get("exec", False)
        self.dead = answer.get("dead")

    @property
    def ok(self):
        return self.dead is None and not self.errno

    def __repr__(self):
        what = f"dead {self.dead}" if self.dead is not None else self.errno or f"= {self.ret}"
        return f"<{self.name} {what}{' blocked' if self.blocked else ''}{' exec' if self.exec else ''}{f' child {self.child}' if self.child else ''}>"


class Puppet:
    def __init__(self, pid):
        self.pid, self.free, self.over = pid, 0, False
        self.p = subprocess.Popen([str(payload("puppet")), str(pid)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1)
        first = self._answer()
        self.base, self.size = first["base"], first["size"]

    def _answer(self):
        line = self.p.stdout.readline()
        answer = json.loads(line) if line else {"error": "it ended"}
        assert "error" not in answer, f"puppet of {self.pid}: {answer['error']}"
        return answer

    def _ask(self, text):
        self.p.stdin.write(text + "\n")
        return self._answer()

    # -- its memory --

    def put(self, data, size=0):
        """Place bytes into its memory, until the next call is over; their address."""
        at, n = self.free, max(size, len(data))
        assert at + n <= self.size, "too much for the scratch memory"
        self.free = (at + n + 15) & ~15
        data += bytes(n - len(data))
        for i in range(0, n, 16384):
            self._ask(f"poke {at + i} {data[i:i + 16384].hex()}")
        return self.base + at

    def get(self, address, size):
        return b"".join(bytes.fromhex(self._ask(f"peek {address - self.base + i} {min(size - i, 16384)}")["data"]) for i in range(0, size, 16384))

    # -- calls --

    def call(self, name, *args):
        assert not self.over, f"the process {self.pid} is no longer ours"
        values, outs = [], []
        for a in args:
            if isinstance(a, Out):
                outs.append((self.put(a.data, a.size), a.size))
                values.append(outs[-1][0])
            else:
                values.append(self.put(a) if isinstance(a, bytes) else int(a))
        values += [0] * (6 - len(values))
        number = NUMBERS[name] if isinstance(name, str) else name
        answer = self._ask("call " + " ".join(str(v & (1 << 64) - 1) for v in (number, *values)))
        self.over = "dead" in answer or answer.get("exec", False)
        r = Outcome(name, answer, [] if self.over else [self.get(at, n) for at, n in outs])
        self.free = 0
        return r

    def sendmsg(self, fd, data, fds=(), flags=socket.MSG_DONTWAIT | socket.MSG_NOSIGNAL):
        """Send one message with descriptors of its own."""
        iov = self.put(struct.pack("QQ", self.put(data), len(data)))
        rights = struct.pack("Qii", 16 + 4 * len(fds), socket.SOL_SOCKET, socket.SCM_RIGHTS) + struct.pack(f"{len(fds)}i", *fds)
        control = self.put(rights + bytes(-len(rights) % 8)) if fds else 0
        header = struct.pack("QIxxxxQQQQixxxx", 0, 0, iov, 1, control, len(rights) + -len(rights) % 8 if fds else 0, 0)
        return self.call("sendmsg", fd, header, flags)

    def recvmsg(self, fd, size=512, flags=0):
        """Receive one message; the process then owns the descriptors that came with it."""
        iov = self.put(struct.pack("QQ", self.put(bytes(size)), size))
        return self.call("recvmsg", fd, struct.pack("QIxxxxQQQQixxxx", 0, 0, iov, 1, self.put(bytes(512)), 512, 0), flags)

    def open(self, path, flags=os.O_RDONLY, mode=0):
        return self.call("openat", AT_FDCWD, path.encode() + b"\0", flags, mode)

    def connect(self, family, kind, address):
        """socket() and connect() to an address as bytes; the outcome of the call that failed, or of connect."""
        s = self.call("socket", family, kind, 0)
        if not s.ok:
            return s
        r = self.call("connect", s.ret, address, len(address))
        self.call("close", s.ret)
        return r

    def close(self):
        if not self.over and self.p.poll() is None:
            self._ask("end")
        self.p.stdin.close()
        self.p.wait(10)
        self.p.stdout.close()
        self.over = True

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


# ---- addresses as the kernel takes them ----------------------------------------------------------------------

def inet(port, host="127.0.0.1"):
    return struct.pack("=H", socket.AF_INET) + struct.pack(">H", port) + socket.inet_aton(host) + bytes(8)


def unix(path):
    """@path: a file's, or with a leading NUL an abstract name."""
    return struct.pack("=H", socket.AF_UNIX) + path.encode() + (b"" if path.startswith("\0") else b"\0")
