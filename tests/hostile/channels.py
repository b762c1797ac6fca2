# SPDX-License-Identifier: Apache-2.0
"""channels.py - Ways in which two programs on one machine can find each other. Code for guests.

A channel is (prep, put, get): B prepares, A leaves the nonce N or acts, B looks. The argument of B's found(x) is judged: the
nonce, or True if the channel carries one bit. KEY is a number and TAG a word of this run that both know. Each piece keeps its
objects alive in K.
"""

COMMON = """
import ctypes, fcntl, mmap, os, socket, struct, threading, time
libc = ctypes.CDLL(None, use_errno=True)
libc.shmat.restype = ctypes.c_void_p
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
K = globals().setdefault('K', [])
SHARED = '/usr/bin/env'     # the same file of the host for all

class Time(ctypes.Structure):
    _fields_ = [('s', ctypes.c_long), ('n', ctypes.c_long)]

def word():
    f = os.open(SHARED, os.O_RDONLY)
    K.append(f)
    at = libc.mmap(None, 4096, 1, 1, f, 0)
    return at, ctypes.c_int.from_address(at).value

def serve(s):
    def loop():
        while True:
            try:
                c, _ = s.accept()
                c.sendall(N.encode()); c.close()
            except OSError:
                return
    K.append(s)
    s.listen(4)
    threading.Thread(target=loop, daemon=True).start()

def ask(s, address):
    s.settimeout(10)
    s.connect(address)
    return s.recv(100).decode()

def bound(kind, family, address):
    s = socket.socket(family, kind)
    s.bind(address)
    return s
"""

FORGET = """
import os
for k in globals().get('K', []):
    if isinstance(k, int): os.close(k)
    elif hasattr(k, 'close'): k.close()
K = []
"""

CHANNELS = {
    "sysv shm": ("", """
i = libc.shmget(KEY, 4096, 0o1666)
at = libc.shmat(i, None, 0)
ctypes.memmove(at, N.encode(), len(N))
""", """
i = libc.shmget(KEY, 0, 0)
if i >= 0: found(ctypes.string_at(libc.shmat(i, None, 0), len(N)).decode())
"""),
    "sysv sem": ("", "i = libc.semget(KEY, 1, 0o1666); libc.semctl(i, 0, 16, 77)",
                 "i = libc.semget(KEY, 0, 0)\nif i >= 0: found(libc.semctl(i, 0, 12) == 77)"),
    "sysv msg": ("", "i = libc.msgget(KEY, 0o1666); libc.msgsnd(i, struct.pack('l', 1) + N.encode(), len(N), 0o4000)", """
i = libc.msgget(KEY, 0)
b = ctypes.create_string_buffer(200)
if i >= 0 and libc.msgrcv(i, b, 190, 0, 0o4000) > 0: found(b.raw[8:8 + len(N)].decode())
"""),
    "posix shm": ("", "open('/dev/shm/' + TAG, 'w').write(N)", "found(open('/dev/shm/' + TAG).read())"),
    "posix mq": ("", """
q = libc.mq_open(b'/' + TAG.encode(), 0o102, 0o666, struct.pack('8l', 0, 5, 100, 0, 0, 0, 0, 0))
libc.mq_send(q, N.encode(), len(N), 1)
""", """
q = libc.mq_open(b'/' + TAG.encode(), 0o4000)
b = ctypes.create_string_buffer(200)
if q >= 0 and libc.mq_receive(q, b, 200, None) > 0: found(b.value.decode())
"""),
    "files": ("", """
for d in ('/tmp', '/var/tmp', '/dev/shm', '/run', '/home/agent', '/workspace', '/dev/mqueue', '/var/lib', '/opt', '/mnt'):
    try: open(d + '/f-' + TAG, 'w').write(N)
    except OSError: pass
""", """
for d in ('/tmp', '/var/tmp', '/dev/shm', '/run', '/home/agent', '/workspace', '/dev/mqueue', '/var/lib', '/opt', '/mnt'):
    if os.path.exists(d + '/f-' + TAG): found(open(d + '/f-' + TAG).read())
"""),
    "abstract stream": ("", "serve(bound(socket.SOCK_STREAM, socket.AF_UNIX, '\\0' + TAG))",
                        "found(ask(socket.socket(socket.AF_UNIX), '\\0' + TAG))"),
    "abstract dgram": ("K.append(bound(socket.SOCK_DGRAM, socket.AF_UNIX, '\\0d' + TAG)); D = K[-1]; D.settimeout(0.3)",
                       "socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM).sendto(N.encode(), '\\0d' + TAG)",
                       "found(D.recv(100).decode())"),
    "unix socket": ("", "serve(bound(socket.SOCK_STREAM, socket.AF_UNIX, '/tmp/s-' + TAG))",
                    "found(ask(socket.socket(socket.AF_UNIX), '/tmp/s-' + TAG))"),
    "tcp": ("", "serve(bound(socket.SOCK_STREAM, socket.AF_INET, ('0.0.0.0', PORT)))",
            "found(ask(socket.socket(), ('127.0.0.1', PORT)))"),
    "udp": ("K.append(bound(socket.SOCK_DGRAM, socket.AF_INET, ('0.0.0.0', PORT))); U = K[-1]; U.settimeout(0.3)",
            "socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(N.encode(), ('127.0.0.1', PORT))",
            "found(U.recv(100).decode())"),
    "keyring": ("", "libc.syscall(248, b'user', TAG.encode(), N.encode(), len(N), -4)", """
b = ctypes.create_string_buffer(200)
i = libc.syscall(249, b'user', TAG.encode(), None, -4)
if i > 0 and libc.syscall(250, 11, i, b, 200) > 0: found(b.value.decode())
"""),
    "proc net": ("", "K.append(bound(socket.SOCK_STREAM, socket.AF_UNIX, '\\0n' + N))",
                 "found(N in open('/proc/net/unix').read())"),
    "proc": ("", """
import subprocess
K.append(subprocess.Popen(['/usr/bin/sleep', '60'], env={'N': N}))
""", """
for p in os.listdir('/proc'):
    try: found(N in open('/proc/%s/environ' % p).read())
    except OSError: pass
"""),
    "terminal": ("B = set(os.listdir('/dev/pts'))", "K.append(os.openpty())", "found(bool(set(os.listdir('/dev/pts')) - B))"),
    "lease": ("", "f = os.open(SHARED, os.O_RDONLY); K.append(f); fcntl.fcntl(f, 1024, 0)", "found('LEASE' in open('/proc/locks').read())"),
    "access time": ("T = os.stat('/usr/bin/tac').st_atime_ns", "open('/usr/bin/tac', 'rb').read()", "found(os.stat('/usr/bin/tac').st_atime_ns != T)"),
    "flock": ("", "f = open(SHARED, 'rb'); K.append(f); fcntl.flock(f, fcntl.LOCK_EX | fcntl.LOCK_NB)", """
try: fcntl.flock(open(SHARED, 'rb'), fcntl.LOCK_EX | fcntl.LOCK_NB)
except BlockingIOError: found(True)
"""),
    "record lock": ("", "f = open('/usr/bin/head', 'rb'); K.append(f); fcntl.lockf(f, fcntl.LOCK_SH | fcntl.LOCK_NB, 8, 4096)", """
l = fcntl.fcntl(open('/usr/bin/head', 'rb'), fcntl.F_GETLK, struct.pack('hhlli', fcntl.F_WRLCK, 0, 4096, 8, 0))
found(struct.unpack('hhlli', l)[0] != fcntl.F_UNLCK)
"""),
    "inotify": ("I = libc.inotify_init1(0o4000); libc.inotify_add_watch(I, b'/usr/bin/tail', 0x20)", "open('/usr/bin/tail', 'rb').read(1)",
                "found(len(os.read(I, 4096)) > 0)"),
    "dnotify": ("import signal; H = []; signal.signal(34, lambda *_: H.append(1)); J = os.open('/usr/lib/python3', os.O_RDONLY); "
                "fcntl.fcntl(J, 10, 34); fcntl.fcntl(J, 1026, 0x80000001)",
                "os.listdir('/usr/lib/python3'); fcntl.fcntl(os.open('/usr/lib/python3', os.O_RDONLY), 3)", "time.sleep(0.05); found(bool(H))"),
    # Watches before locks: a search for a lock opens the file, and would notice itself.
    "device watch": ("W = libc.inotify_init1(0o4000); libc.inotify_add_watch(W, b'/dev/full', 0x20)", "open('/dev/full', 'rb').close()",
                     "found(len(os.read(W, 4096)) > 0)"),
    "device lock": ("", "f = open('/dev/full', 'rb'); K.append(f); fcntl.flock(f, fcntl.LOCK_EX | fcntl.LOCK_NB)", """
try: fcntl.flock(open('/dev/full', 'rb'), fcntl.LOCK_EX | fcntl.LOCK_NB)
except BlockingIOError: found(True)
"""),
    # The program file of a kernel is the zygote's, whatever the cell has at its path.
    "program watch": ("X = libc.inotify_init1(0o4000); libc.inotify_add_watch(X, b'/proc/self/exe', 0x20)",
                      "open('/proc/self/exe', 'rb').close()", "found(len(os.read(X, 4096)) > 0)"),
    "program lock": ("", "f = open('/proc/self/exe', 'rb'); K.append(f); fcntl.flock(f, fcntl.LOCK_EX | fcntl.LOCK_NB)", """
try: fcntl.flock(open('/proc/self/exe', 'rb'), fcntl.LOCK_EX | fcntl.LOCK_NB)
except BlockingIOError: found(True)
"""),
    "index lock": ("", "f = open('/etc/ld.so.cache', 'rb'); K.append(f); fcntl.flock(f, fcntl.LOCK_EX | fcntl.LOCK_NB)", """
try: fcntl.flock(open('/etc/ld.so.cache', 'rb'), fcntl.LOCK_EX | fcntl.LOCK_NB)
except BlockingIOError: found(True)
"""),
    "directory lock": ("", "f = os.open('/etc/alternatives', os.O_RDONLY); K.append(f); fcntl.flock(f, fcntl.LOCK_EX | fcntl.LOCK_NB)", """
try: fcntl.flock(os.open('/etc/alternatives', os.O_RDONLY), fcntl.LOCK_EX | fcntl.LOCK_NB)
except BlockingIOError: found(True)
"""),
    "futex": ("", """
def wait():
    at, value = word()
    libc.syscall(202, ctypes.c_void_p(at), 0, value, ctypes.byref(Time(8, 0)), None, 0)
threading.Thread(target=wait, daemon=True).start()
time.sleep(0.1)
""", "at, value = word(); found(libc.syscall(202, ctypes.c_void_p(at), 1, 100, None, None, 0) > 0)"),
}


def indented(code):
    return "\n".join("        " + x for x in code.strip().splitlines() or ["pass"])


def phase(which, names):
    """One piece of code that does this phase (0, 1, 2) of all channels; get prints what was found."""
    code = COMMON + "\nresult = {}\n"
    for name in names:
        piece = CHANNELS[name][which] or "pass"
        code += f"def one():\n    def found(x): result[{name!r}] = result.get({name!r}) or x\n    global I, J, H, T, B, D, U, W, X\n    try:\n{indented(piece)}\n" \
                "    except Exception: pass\none()\n"
    return code + ("print(repr(result))\n" if which == 2 else "")


# Both sides as plain processes of one user: B is a child of A, and they take turns.
CONTROL = """
import os
turn, back = os.pipe(), os.pipe()
if os.fork() == 0:
    exec(PREP); os.write(back[1], b'x'); os.read(turn[0], 1)
    exec(GET)
    print(end='', flush=True)
    os._exit(0)
os.read(back[0], 1)
exec(PUT); os.write(turn[1], b'x'); os.wait()
for d in ('/tmp', '/var/tmp', '/dev/shm', '/run', '/opt', '/mnt', '/var/lib'):
    for f in ('f-' + TAG, 's-' + TAG, TAG):
        try: os.unlink(d + '/' + f)
        except OSError: pass
"""


def control_code(names, values):
    pieces = {k: values + phase(i, names) for i, k in enumerate(("PREP", "PUT", "GET"))}
    return "".join(f"{k} = {v!r}\n" for k, v in pieces.items()) + CONTROL
