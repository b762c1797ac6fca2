# SPDX-License-Identifier: Apache-2.0
"""The zygote: a warm interpreter that forks kernels into cells and never runs a client's code.

Descriptor 3 belongs to the warden: one fixed-size request per kernel (src/wire/zygote.h), with the pidfd of the cell's
pid 1, the hello socket, the kernel's pipes, and the cgroup files to enter. Descriptor 4 is the status socket of the
client that requested this zygote: the client sends one JSON object with the modules to preload, and the zygote answers
with one when they are loaded.

Then enter.so (src/zygote/serve.c) takes the requests: no Python runs until it returns, in a kernel that is sealed.

os.fork() calls the interpreter before and after a fork: it renews locks, which another thread may hold, and runs the functions
of os.register_at_fork(). A zygote mostly has one thread and holds no lock when it forks. Then there is nothing to renew, and
a kernel runs only the functions of preloaded modules; those of our own modules renew locks, or are in reseed.py. If a preloaded
module has started a thread, or has functions that run before a fork too, each kernel pays for the calls of os.fork().
"""
import contextlib
import ctypes
import importlib
import json
import os
import signal
import socket
import sys

from . import kernel, reseed

WARDEN_FD = 3
STATUS_FD = 4


_registered = []  # what preloaded modules gave to os.register_at_fork(), in this order


def prepare(preload):
    """kernel.prepare(), and watch os.register_at_fork()."""
    register = os.register_at_fork

    def watched(**functions):
        _registered.append(functions)
        register(**functions)

    os.register_at_fork = watched
    try:
        return kernel.prepare(preload, warm=True)
    finally:
        os.register_at_fork = register


def serve(directory):
    """Fork a kernel for each request of the warden, without end. Returns in the kernels, which are sealed."""
    simple = len(sys._current_frames()) == 1 and all(set(functions) == {"after_in_child"} for functions in _registered)
    python = ctypes.pythonapi
    enter = ctypes.PyDLL(os.path.join(directory, "enter.so"))  # the interpreter keeps its lock around a fork
    fork = ctypes.cast(ctypes.CDLL(None).fork, ctypes.c_void_p)
    if not simple:
        python.PyOS_BeforeFork()
    enter.caisson_serve(WARDEN_FD, fork)
    if not simple:
        python.PyOS_AfterFork_Child()
        return
    for functions in _registered:
        with contextlib.suppress(Exception):  # as after os.fork()
            functions["after_in_child"]()


def main(directory):
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    status = socket.socket(fileno=STATUS_FD)
    config = json.loads(status.recv(65536) or b"{}")
    # Modules that kernels load later: in a cell they do not see the file that has them.
    importlib.import_module(__package__ + ".codemode")
    failed = prepare([str(name) for name in config.get("preload", [])])
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
    # For the zygote alone. In a cell, libraries start as many threads as it has processors.
    for name in ("MPLCONFIGDIR", "OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):
        os.environ.pop(name, None)
    serve(directory)
    try:
        reseed.after_fork()
        kernel.main()
    finally:
        os._exit(70)
