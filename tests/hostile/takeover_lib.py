# SPDX-License-Identifier: Apache-2.0
"""takeover_lib.py - Attacks of a process that was taken over, and a host that shows whether they succeeded.

An attempt is a few system calls that the process is made to do (puppet.py). Each attempt succeeds when an unconfined process of
root makes it: test_control() of test_takeover.py checks this, or the attempt proves nothing. The answer of the Linux kernel
decides whether it landed; Host.check() judges the state of the host from outside.
"""
import contextlib
import os
import secrets
import signal
import socket
import struct
import subprocess
import time
from pathlib import Path

from lib import Canary, session
from cell_lib import read, until
from process import children
from puppet import AT_FDCWD, Out, Puppet, inet, unix
from snapshot import stat_of

AF_UNIX, AF_INET, AF_NETLINK, AF_PACKET = 1, 2, 16, 17
STREAM, DGRAM, RAW = 1, 2, 3
MAKE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC  # the one form that the front's filter knows


class Host:
    """Canaries, and objects that only this suite watches: a datagram socket, a world-writable directory, a sleeping process."""

    def __init__(self, uid=0):
        self.canary = Canary()
        self.uid = uid

    def __enter__(self):
        c = self.canary.__enter__()
        self.file = next(f for f in c.files if f.startswith("/tmp/"))
        self.etc = next(f for f in c.files if f.startswith("/etc/"))
        self.open_dir = Path(c.dir)
        self.new = f"{c.dir}/made-{secrets.token_hex(4)}"
        self.heard = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.heard.bind(f"{c.dir}/datagrams")
        os.chmod(f"{c.dir}/datagrams", 0o777)
        self.heard.setblocking(False)
        self.secret = f"{session().dir}/private-{secrets.token_hex(4)}"
        Path(self.secret).write_text(c.nonce)
        os.chmod(self.secret, 0o600)
        self.sleeper = subprocess.Popen(["sleep", "1000"], env={"SECRET": c.nonce, "PATH": "/usr/bin:/bin"})
        until(lambda: (stat_of(self.sleeper.pid) or ("",))[0] == "sleep", 10, "a process to attack")
        self.stack = next(int(x.split("-")[0], 16) for x in read(f"/proc/{self.sleeper.pid}/maps").splitlines() if "[stack]" in x)
        self.names = sorted(os.listdir(c.dir))
        return self

    def check(self, hits=()):
        """Nothing was changed, made, reached or ended. @hits: listeners that may be reached."""
        with contextlib.suppress(BlockingIOError):
            raise AssertionError(f"ESCAPE: a datagram socket of the host heard {self.heard.recv(100)!r}")
        assert sorted(os.listdir(self.canary.dir)) == self.names, f"WRITE: {set(os.listdir(self.canary.dir)) ^ set(self.names)}"
        assert self.sleeper.poll() is None, f"a process of the host was ended: {self.sleeper.returncode}"
        assert read(f"/proc/{self.sleeper.pid}/status").split("TracerPid:")[1].split()[0] == "0", "a process of the host is traced"
        report = self.canary.report()
        assert set(report["hits"]) <= set(hits), f"ESCAPE: listeners were reached: {report['hits']}"
        if not report["hits"]:
            self.canary.check()

    def __exit__(self, *exc):
        self.sleeper.kill()
        self.sleeper.wait()
        self.heard.close()
        os.unlink(self.secret)
        self.canary.__exit__(*exc)


# ---- attempts ----------------------------------------------------------------------------------------------------
# Each takes a puppet and a host, and returns whether it landed. It undoes its changes.

def opened(p, path, flags=os.O_RDONLY, mode=0):
    r = p.open(path, flags, mode)
    if r.ok:
        p.call("close", r.ret)
    return r.ok


def listed(p, path):
    r = p.open(path, os.O_RDONLY | os.O_DIRECTORY)
    if not r.ok:
        return False
    n = p.call("getdents64", r.ret, Out(4096), 4096)
    p.call("close", r.ret)
    return n.ok


def made(p, undo, name, *args):
    r = p.call(name, *args)
    if r.ok:
        p.call(*undo)
    return r.ok


def z(text):
    return text.encode() + b"\0"


def iovec(p, size=64):
    return struct.pack("QQ", p.put(bytes(size)), size)


def datagram(p, address):
    """A socket of a pair can send to another address if it is a datagram socket."""
    r = p.call("socketpair", AF_UNIX, DGRAM, 0, Out(8))
    if not r.ok:
        return False
    a, b = struct.unpack("ii", r.out[0])
    sent = p.call("sendto", a, b"x", 1, 0x40, address, len(address))
    p.call("close", a), p.call("close", b)
    return sent.ok


def by_socket(p, family, kind, protocol=0, then=None):
    s = p.call("socket", family, kind, protocol)
    if not s.ok:
        return False
    r = p.call(then[0], s.ret, *then[1:]) if then else s
    p.call("close", s.ret)
    return r.ok


def listening(p, _):
    s = p.call("socket", AF_INET, STREAM, 0)
    if not s.ok:
        return False
    address = inet(0)
    ok = p.call("bind", s.ret, address, len(address)).ok and p.call("listen", s.ret, 1).ok
    p.call("close", s.ret)
    return ok


def by_pidfd(p, pid, then):
    fd = p.call("pidfd_open", pid, 0)
    if not fd.ok:
        return False
    r = p.call(then[0], fd.ret, *then[1:])
    p.call("close", fd.ret)
    return r.ok


def traced(p, h):
    if not p.call("ptrace", 0x4206, h.sleeper.pid, 0, 0).ok:  # PTRACE_SEIZE
        return False
    p.call("ptrace", 0x4207, h.sleeper.pid, 0, 0)  # PTRACE_INTERRUPT: who is stopped can be let go
    for _ in range(100):
        if p.call("ptrace", 17, h.sleeper.pid, 0, 0).ok:
            return True
        time.sleep(0.005)
    return True


def executable(p, _):
    r = p.call("mmap", 0, 4096, 5, 0x22, -1, 0)  # PROT_READ | PROT_EXEC
    if r.ok:
        p.call("munmap", r.ret, 4096)
    return r.ok


def keeps(p, fd):
    """A call that gives a descriptor, which is closed again."""
    if fd.ok:
        p.call("close", fd.ret)
    return fd.ok


def forked(p, flags=17):
    r = p.call("clone", flags, 0, 0, 0, 0)
    if r.ok:
        p.call("wait4", r.ret, 0, 0, 0)
    return r.ok


FILES = {
    "read a file": lambda p, h: opened(p, h.file),
    "read a file in /etc": lambda p, h: opened(p, h.etc),
    "read a private file": lambda p, h: opened(p, h.secret),
    "read /etc/shadow": lambda p, h: opened(p, "/etc/shadow"),
    "read another's environment": lambda p, h: opened(p, f"/proc/{h.sleeper.pid}/environ"),
    "write a file": lambda p, h: opened(p, h.file, os.O_WRONLY),
    "append to a file": lambda p, h: opened(p, h.file, os.O_WRONLY | os.O_APPEND),
    "list a directory": lambda p, h: listed(p, str(h.open_dir)),
    "hold a directory": lambda p, h: opened(p, str(h.open_dir), os.O_PATH | os.O_DIRECTORY),
    "make a file": lambda p, h: made(p, ("unlinkat", AT_FDCWD, z(h.new), 0), "openat", AT_FDCWD, z(h.new), MAKE, 0o600),
    "make a directory": lambda p, h: made(p, ("unlinkat", AT_FDCWD, z(h.new), 0x200), "mkdirat", AT_FDCWD, z(h.new), 0o700),
    "make a link": lambda p, h: made(p, ("unlinkat", AT_FDCWD, z(h.new), 0), "linkat", AT_FDCWD, z(h.file), AT_FDCWD, z(h.new), 0),
    "make a symbolic link": lambda p, h: made(p, ("unlinkat", AT_FDCWD, z(h.new), 0), "symlinkat", z("/etc"), AT_FDCWD, z(h.new)),
    "make a pipe with a name": lambda p, h: made(p, ("unlinkat", AT_FDCWD, z(h.new), 0), "mknodat", AT_FDCWD, z(h.new), 0o10600, 0),
    "rename": lambda p, h: made(p, ("renameat", AT_FDCWD, z(h.new), AT_FDCWD, z(h.canary.dir + "/datagrams")),
                                "renameat", AT_FDCWD, z(h.canary.dir + "/datagrams"), AT_FDCWD, z(h.new)),
    "rename without replacing": lambda p, h: made(p, ("renameat", AT_FDCWD, z(h.new), AT_FDCWD, z(h.canary.dir + "/datagrams")),
                                                  "renameat2", AT_FDCWD, z(h.canary.dir + "/datagrams"), AT_FDCWD, z(h.new), 1),
    "change a mode": lambda p, h: p.call("fchmodat", AT_FDCWD, z(h.file), 0o666).ok,
    "change an owner": lambda p, h: p.call("fchownat", AT_FDCWD, z(h.file), 0, 0, 0).ok,
    "cut a file": lambda p, h: p.call("truncate", z(h.file), os.path.getsize(h.file)).ok,
    "change its root": lambda p, h: p.call("chroot", z("/")).ok,
    "open by handle": lambda p, h: by_handle(p, h),
}
PROCESSES = {
    "see a process": lambda p, h: p.call("kill", h.sleeper.pid, 0).ok,
    "signal a process": lambda p, h: p.call("kill", h.sleeper.pid, signal.SIGURG).ok,
    "signal a thread": lambda p, h: p.call("tgkill", h.sleeper.pid, h.sleeper.pid, signal.SIGURG).ok,
    "signal by pidfd": lambda p, h: by_pidfd(p, h.sleeper.pid, ("pidfd_send_signal", signal.SIGURG, 0, 0)),
    "take a descriptor": lambda p, h: by_pidfd(p, h.sleeper.pid, ("pidfd_getfd", 0, 0)),
    "trace a process": traced,
    "read its memory": lambda p, h: p.call("process_vm_readv", h.sleeper.pid, iovec(p), 1, struct.pack("QQ", h.stack, 64), 1, 0).ok,
    "write its memory": lambda p, h: p.call("process_vm_writev", h.sleeper.pid, iovec(p, 8), 1, struct.pack("QQ", h.stack, 8), 1, 0).ok,
    "change its limits": lambda p, h: p.call("prlimit64", h.sleeper.pid, 4, 0, Out(16)).ok,
    "move it to another processor": lambda p, h: p.call("sched_setaffinity", h.sleeper.pid, 8, struct.pack("Q", 3)).ok,
}
SOCKETS = {
    "connect over TCP": lambda p, h: p.connect(AF_INET, STREAM, inet(h.canary.tcp_port)).ok,
    "connect by Fast Open": lambda p, h: by_socket(p, AF_INET, STREAM, 0, ("sendto", b"x", 1, 0x20000000, inet(h.canary.tcp_port), 16)),
    "send over UDP": lambda p, h: by_socket(p, AF_INET, DGRAM, 0, ("sendto", b"x", 1, 0x40, inet(h.canary.udp_port), 16)),
    "listen on TCP": listening,
    "connect to a unix socket": lambda p, h: p.connect(AF_UNIX, STREAM, unix(h.canary.unix_path)).ok,
    "connect to an abstract socket": lambda p, h: p.connect(AF_UNIX, STREAM, unix("\0" + h.canary.abstract_name)).ok,
    "send to a unix socket": lambda p, h: datagram(p, unix(h.canary.dir + "/datagrams")),
    "netlink": lambda p, h: by_socket(p, AF_NETLINK, RAW),
    "raw packets": lambda p, h: by_socket(p, AF_INET, RAW, 255) or by_socket(p, AF_PACKET, RAW),
}
PROGRAMS = {
    "fork": lambda p, h: forked(p),
    "vfork": lambda p, h: forked(p, 0x4111),
    "make executable memory": executable,
    "become dumpable": lambda p, h: p.call("prctl", 4, 1, 0, 0, 0).ok,
}
PRIVILEGE = {
    "become root": lambda p, h: p.call("setresuid", 0, 0, 0).ok and p.call("geteuid").ret == 0 and not in_user_namespace(p),
    "have CAP_SYS_ADMIN on the host": lambda p, h: capable(p) and not in_user_namespace(p),
    "make a user namespace": lambda p, h: forked(p, 0x10000011),
    "make a mount namespace": lambda p, h: forked(p, 0x20011),
    "enter a process's namespaces": lambda p, h: by_pidfd(p, h.sleeper.pid, ("setns", 0x04000000)),  # CLONE_NEWUTS
    "mount": lambda p, h: made(p, ("umount2", z(h.canary.dir), 2), "mount", z("none"), z(h.canary.dir), z("tmpfs"), 0, 0),
    "open a mount tree": lambda p, h: keeps(p, p.call("open_tree", AT_FDCWD, z("/"), 1)),
}
KERNEL = {
    "bpf": lambda p, h: keeps(p, p.call("bpf", 0, struct.pack("IIIII", 2, 4, 8, 1, 0) + bytes(100), 72)),
    "perf": lambda p, h: keeps(p, p.call("perf_event_open", struct.pack("IIQ", 1, 128, 0) + bytes(112), 0, -1, -1, 0)),
    "userfaultfd": lambda p, h: keeps(p, p.call("userfaultfd", 1)),
    "io_uring": lambda p, h: keeps(p, p.call("io_uring_setup", 1, Out(120))),
    "keys": lambda p, h: p.call("add_key", z("user"), z("x"), b"v", 1, -2).ok,
    "fanotify": lambda p, h: keeps(p, p.call("fanotify_init", 0, 0)),
}
ATTEMPTS = {**FILES, **PROCESSES, **SOCKETS, **PROGRAMS, **PRIVILEGE, **KERNEL}


def by_handle(p, h):
    r = p.call("name_to_handle_at", AT_FDCWD, z(h.file), Out(136, struct.pack("Ii", 128, 0)), Out(4), 0)
    if not r.ok:
        return False
    d = p.open(str(h.open_dir))
    fd = p.call("open_by_handle_at", d.ret, r.out[0], os.O_RDONLY)
    p.call("close", d.ret)
    return keeps(p, fd)


def capable(p, bit=1 << 21):
    """Add CAP_SYS_ADMIN to its capabilities."""
    header = struct.pack("Ii", 0x20080522, 0)
    r = p.call("capget", header, Out(24))
    have = list(struct.unpack("6I", r.out[0])) if r.ok else [0] * 6
    have[0] |= bit
    have[1] |= bit
    return p.call("capset", header, struct.pack("6I", *have)).ok


def in_user_namespace(p):
    return os.readlink(f"/proc/{p.pid}/ns/user") != os.readlink("/proc/self/ns/user")


def attempt_all(p, host):
    """Names of the attempts that landed."""
    found = set()
    for name, attempt in ATTEMPTS.items():
        if attempt(p, host):
            found.add(name)
        assert not p.over, f"{name} ended process {p.pid}"
    return found


def landed_of(pid, host):
    with Puppet(pid) as p:
        return attempt_all(p, host)


def child(pid, comm, uid=None, seconds=20):
    """The child of that name, and of that user where it matters."""
    def look():
        for c in children(pid):
            with contextlib.suppress(OSError, IndexError):
                s = stat_of(c)
                if s and s[0] == comm[:15] and s[1] != "Z" and uid in (None, os.stat(f"/proc/{c}").st_uid if uid is not None else None):
                    return c
        return 0
    return until(look, seconds, f"{comm}, a child of {pid}")


# ---- what a process holds, and who is at the other end ------------------------------------------------------------------

def descriptors(pid):
    """{number: what /proc says it is}"""
    found = {}
    for fd in os.listdir(f"/proc/{pid}/fd"):
        with contextlib.suppress(OSError):
            found[int(fd)] = os.readlink(f"/proc/{pid}/fd/{fd}")
    return found


def held(pid, part):
    """The number of the descriptor of @pid that has @part in its name."""
    return next(fd for fd, name in sorted(descriptors(pid).items()) if part in name)


def other_end(pid, fd, of):
    """The descriptor of the process @of that is the other end of the unix socket @fd of @pid."""
    inode = descriptors(pid)[fd].removeprefix("socket:[").removesuffix("]")
    for line in subprocess.run(["ss", "-xaH"], capture_output=True, text=True, check=True).stdout.splitlines():
        words = line.split()
        if words[5] == inode:
            return held(of, f"socket:[{words[7]}]")
    raise AssertionError(f"nobody is at the other end of {inode}")


def read_from(p, fd, size=4096, seconds=5.0):
    """The bytes that the process itself reads, to the end or until nothing comes for a while."""
    got, end = b"", time.monotonic() + seconds
    while time.monotonic() < end:
        r = p.call("read", fd, Out(size), size)
        if r.ok and r.ret == 0:
            break
        got += r.out[0][:max(r.ret, 0)] if r.ok else b""
    return got
