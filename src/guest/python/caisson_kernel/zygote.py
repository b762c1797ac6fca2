# SPDX-License-Identifier: Apache-2.0
"""The zygote: a warm interpreter that forks kernels into cells and never runs a client's code.

Descriptor 3 belongs to the warden: one fixed-size request per kernel (src/wire/zygote.h), with the pidfd of the cell's
pid 1, the hello socket, the kernel's pipes, and the cgroup files to enter. Descriptor 4 is the status socket of the
client that requested this zygote: the client sends one JSON object with the modules to preload, and the zygote answers
with one when they are loaded.

A process cannot move itself into a pid namespace, only its children. So there is a child in between that joins the cell
and forks the kernel; enter.so (src/zygote/enter.c) has this child and the sealing, which do not depend on the version of
Python. Around the fork, the interpreter gets the calls that os.fork() would make.
"""
import array
import ctypes
import errno
import importlib
import json
import os
import signal
import socket
import struct
import sys

from . import kernel, reseed

WARDEN_FD = 3
STATUS_FD = 4
REQUEST_MAX = 512
FDS_MIN = 6
FDS_MAX = 24
LIBC_FORK = ctypes.cast(ctypes.CDLL(None).fork, ctypes.c_void_p)


def load_enter(directory):
    """The functions of enter.so. PyDLL: the interpreter keeps its lock around a fork."""
    lib = ctypes.PyDLL(os.path.join(directory, "enter.so"))
    lib.caisson_fork.argtypes = [ctypes.c_char_p, ctypes.POINTER(ctypes.c_int), ctypes.c_void_p, ctypes.POINTER(ctypes.c_int)]
    lib.caisson_fork.restype = ctypes.c_long
    lib.caisson_seal.argtypes = [ctypes.c_char_p, ctypes.POINTER(ctypes.c_int)]
    lib.caisson_seal.restype = None
    return lib


def receive(sock):
    """One request and its descriptors; (b"", []) when the warden has closed."""
    fds = array.array("i")
    data, ancillary, _, _ = sock.recvmsg(REQUEST_MAX, socket.CMSG_SPACE(FDS_MAX * fds.itemsize))
    for level, kind, payload in ancillary:
        if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
            fds.frombytes(payload[: len(payload) - len(payload) % fds.itemsize])
    return data, list(fds)


def become_kernel(enter, request, numbers):
    """Run in the grandchild. Never returns."""
    enter.caisson_seal(request, numbers)
    try:
        # For the zygote alone. In a cell, libraries start as many threads as it has processors.
        for name in ("MPLCONFIGDIR", "OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):
            os.environ.pop(name, None)
        reseed.after_fork()
        kernel.main()
    finally:
        os._exit(70)


def serve_one(enter, request, fds):
    """Fork one kernel. Returns (code, pid)."""
    if len(fds) < FDS_MIN:
        return -errno.EPROTO, 0
    numbers = (ctypes.c_int * len(fds))(*fds)
    pid = ctypes.c_int(0)
    python = ctypes.pythonapi
    python.PyOS_BeforeFork()
    child = enter.caisson_fork(request, numbers, LIBC_FORK, ctypes.byref(pid))
    if child == 0:
        try:
            python.PyOS_AfterFork_Child()
            become_kernel(enter, request, numbers)
        finally:
            os._exit(71)
    python.PyOS_AfterFork_Parent()
    if child < 0:
        return child, 0
    os.waitpid(child, 0)
    return (0, pid.value) if pid.value > 0 else (-errno.EIO, 0)


def main(directory):
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    warden = socket.socket(fileno=WARDEN_FD)
    status = socket.socket(fileno=STATUS_FD)
    enter = load_enter(directory)
    config = json.loads(status.recv(65536) or b"{}")
    # Modules that kernels load later: in a cell they do not see the file that has them.
    importlib.import_module(__package__ + ".codemode")
    failed = kernel.prepare([str(name) for name in config.get("preload", [])])
    status.send(
        json.dumps(
            {
                "type": "ready",
                "language": "python",
                "version": "%d.%d.%d" % sys.version_info[:3],
                "failed": [[name, str(error)[:200]] for name, error in failed][:64],
            }
        ).encode()
    )
    while True:
        request, fds = receive(warden)
        if not request:
            os._exit(0)
        code, pid = serve_one(enter, request, fds)
        for fd in fds:
            os.close(fd)
        warden.send(request[:8] + struct.pack("=ii", code, pid))
