# SPDX-License-Identifier: Apache-2.0
"""_lease.py - The process between a program and the daemon that it started. A program of its own: python3 -IS _lease.py DIR CMD...

It starts the daemon and waits for the end of its own stdin, whose other end the program holds. stdin ends with close(), with the end
of the program, and also when the program is killed and can run no code any more. Then the lease ends the daemon, by force after
a while, and removes its directory. The program reads the daemon's first line on stdout.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import select
import shutil
import signal
import sys
import time

END_SECONDS = 20
PR_SET_PDEATHSIG = 1


def start(argv: list[str]) -> int:
    pid = os.fork()
    if pid == 0:
        try:
            null = os.open("/dev/null", os.O_RDONLY)
            os.dup2(null, 0)
            with contextlib.suppress(OSError, AttributeError):
                ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, int(signal.SIGTERM))  # in case this process is killed
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
                signal.signal(number, signal.SIG_DFL)
            os.execv(argv[0], argv)
        except OSError as e:
            os.write(2, f"{argv[0]}: {e.strerror}\n".encode())
        finally:
            os._exit(125)
    return pid


def ended(pid: int) -> bool:
    return os.waitpid(pid, os.WNOHANG)[0] == pid


def wait(pid: int) -> bool:
    """Wait until the lease or the daemon is over: returns whether it was the daemon. No pidfd: Python may lack it."""
    while True:
        if select.select([0], [], [], 0.25)[0] and not os.read(0, 1):
            return False
        if ended(pid):
            return True


def main() -> None:
    directory, argv = sys.argv[1], sys.argv[2:]
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    pid = start(argv)
    null = os.open("/dev/null", os.O_WRONLY)
    os.dup2(null, 1)  # only the daemon writes to its stdout
    if not wait(pid):
        os.kill(pid, signal.SIGTERM)
        until = time.monotonic() + END_SECONDS
        while not ended(pid):
            if time.monotonic() > until:
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)
                break
            time.sleep(0.01)
        shutil.rmtree(directory, ignore_errors=True)
    else:
        select.select([0], [], [], 30)  # the daemon's messages are in the directory: a caller that waits reads them
        shutil.rmtree(directory, ignore_errors=True)


if __name__ == "__main__":
    main()
