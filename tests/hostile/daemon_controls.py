# SPDX-License-Identifier: Apache-2.0
"""daemon_controls.py - Control runs for `caisson serve`: the same attacks on a kernel without a cell and on credulous servers."""
import contextlib
import functools
import io
import itertools
import json
import os
import select
import socket
import subprocess
import tempfile
import threading
import time
from pathlib import Path

from daemon_lib import GUEST, MIB, PYTHON
from lib import session

numbers = itertools.count(1)


class Bare:
    """A kernel without a cell and without a host: the driver as a plain process of an ordinary user, for control runs.

    Its channel is closed after the one `execute`, so it ends with it. .lines has its messages after `ready`, in the first 2 MiB (the
    last one is the text after the last newline); .bytes is the length of its output, .exit how it ended (as a shell's number), .lives
    that it did not end.
    """

    def __init__(self, code, seconds=3.0, most=40 * MIB, env=None):
        r_in, w_in = os.pipe()
        r_out, w_out = os.pipe()
        argv = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--no-new-privs", "--",
                "/bin/bash", "-c", f'exec 3<&{r_in} 4>&{w_out} {r_in}<&- {w_out}>&-; exec "$@"', "sh", PYTHON, "-I",
                str(GUEST / "kernel.pyz")]
        group = session().guard.sub(f"bare-{next(numbers)}", 100, 700 * MIB)

        def join():
            for f in group.procs_files():
                Path(f).write_text("0")

        with tempfile.TemporaryFile(dir=session().dir) as out:
            p = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT, cwd="/", preexec_fn=join,
                                 pass_fds=(r_in, w_out), env={"PATH": "/usr/bin:/bin", **(env or {})}, start_new_session=True)
            os.close(r_in)
            os.close(w_out)
            try:
                with os.fdopen(w_in, "wb") as f:
                    f.write(json.dumps({"type": "execute", "id": "the-id", "name": "<x>", "code": code}).encode() + b"\n")
                self._listen(r_out, time.monotonic() + seconds, most)
                with contextlib.suppress(subprocess.TimeoutExpired):
                    p.wait(0.2)
            finally:
                self.lives = p.poll() is None
                self.exit = None if self.lives else p.returncode if p.returncode >= 0 else 128 - p.returncode
                group.kill()
                p.wait(5)
                group.remove()
                os.close(r_out)
            out.seek(0)
            self.stdout = out.read(MIB)

    def _listen(self, fd, end, most):
        got, self.bytes = [], 0
        poll = select.poll()
        poll.register(fd, select.POLLIN)
        while (left := end - time.monotonic()) > 0 and self.bytes < most and poll.poll(left * 1000):
            data = os.read(fd, MIB)
            if not data:
                break
            if self.bytes < 2 * MIB:
                got.append(data)
            self.bytes += len(data)
        self.lines = b"".join(got).split(b"\n")[1:]

    def __repr__(self):
        return f"<bare kernel: exit {self.exit}, {self.bytes} bytes: {[x[:200] for x in self.lines[:5]]} {self.stdout[:300]!r}>"


@functools.cache
def bare(code):
    """One control run for all tests of a table."""
    return Bare(code)


# ---- servers that believe everything, for control runs ----------------------------------------------

def gullible(f, reading="length", last=False):
    """A naive reader of HTTP: any line end, the first (or last) header wins, no limits, no Host, no Origin, no token. Yields
    (method, target, headers, body) as long as @f has some.

    reading: "length" ignores Transfer-Encoding, "chunked" accepts every header that contains the word.
    """
    while (first := f.readline().split()):
        headers, body = {}, b""
        while (line := f.readline().strip(b"\r\n")):
            k, _, v = line.partition(b":")
            k = k.strip().strip(b"\0\x0b").lower()
            if last or k not in headers:
                headers[k] = v.strip()
        if reading == "chunked" and b"chunked" in headers.get(b"transfer-encoding", b"").lower():
            while (n := int(f.readline().partition(b";")[0], 16)) > 0:
                body += f.read(n)
                f.readline()
            f.readline()
        else:
            n = int(headers.get(b"content-length", b"0").split(b",")[0] or 0)
            body = f.read(n & 0xffffffff) if 0 <= n & 0xffffffff < 1 << 24 else b""
        yield first[0], first[1] if len(first) > 1 else b"", headers, body


def would_execute(data, word, reading=("length", "chunked")):
    """Whether a naive server takes @data for a POST to /execute whose body contains @word."""
    for how in reading:
        for last in (False, True):
            with contextlib.suppress(ValueError, IndexError):
                for method, target, _, body in gullible(io.BytesIO(data), how, last):
                    if (method, target) == (b"POST", b"/execute") and word in body:
                        return True
    return False


class OneThread:
    """A server of one thread, without a deadline, that serves a whole request with "ok"."""

    def __init__(self):
        self.s = socket.create_server(("127.0.0.1", 0), backlog=16)
        self.port = self.s.getsockname()[1]
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self):
        with contextlib.suppress(OSError):
            while True:
                c, _ = self.s.accept()
                with c, c.makefile("rb") as f:
                    for _ in gullible(f):
                        c.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.s.shutdown(socket.SHUT_RDWR)
        self.s.close()
