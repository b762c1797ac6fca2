# SPDX-License-Identifier: Apache-2.0
"""_local.py - A private daemon: no other program can reach it, and it ends with this process.

It serves on a socket in a directory that only this user may enter. The directory is also its state directory, and is removed at the end.
Clients of one process that need the same daemon share it; the last one ends it. _lease.py ends the daemon if this process is killed.
"""

from __future__ import annotations

import atexit
import os
import select
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Dict, List, Mapping, Optional, Sequence, Tuple

from .errors import SandboxUnavailable

START_SECONDS = 90
END_SECONDS = 30
LEASE = Path(__file__).with_name("_lease.py")
FIRST = ("--log-level", "warning", "--drain-timeout", "2s")
# Settings for a daemon that others reach; they do not apply to a private one.
FOREIGN = frozenset((
    "CAISSON_LISTEN",
    "CAISSON_LOG_FORMAT",
    "CAISSON_SOCKET",
    "CAISSON_STATE",
    "CAISSON_TLS_CERT",
    "CAISSON_TLS_KEY",
    "CAISSON_TOKEN",
    "CAISSON_TOKEN_FILE",
    "LISTEN_FDS",
    "LISTEN_PID",
    "NOTIFY_SOCKET",
))


def find_binary(given: Optional[str] = None, environ: Optional[Mapping[str, str]] = None) -> str:
    """The path of caisson: as given, from CAISSON_BIN, in PATH, or in the build directory of the checkout that has this file."""
    env = os.environ if environ is None else environ
    for name, value in (("binary", given), ("CAISSON_BIN", env.get("CAISSON_BIN"))):
        if value:
            if not os.access(value, os.X_OK):
                raise SandboxUnavailable(f"{name}: {value} is not an executable program")
            return os.path.abspath(value)
    found = shutil.which("caisson", path=env.get("PATH"))
    if found:
        return os.path.abspath(found)
    for above in Path(__file__).resolve().parents:
        for place in (above / "build" / "caisson", above / "caisson"):
            if place.is_file() and os.access(place, os.X_OK):
                return str(place)
    raise SandboxUnavailable(
        "no daemon runs, and the program caisson, which starts one, was not found",
        hint="install Caisson, or set CAISSON_BIN to its path, or CAISSON_URL to the address of a daemon",
    )


class LocalDaemon:
    """A daemon that this process has started. start() and release() count its users."""

    _all: Dict[Tuple[str, ...], LocalDaemon] = {}
    _lock = threading.Lock()

    def __init__(self, key: Tuple[str, ...]) -> None:
        self._key = key
        self._users = 0
        self._owner = os.getpid()
        self._is_ready = False
        self._begun = time.monotonic()
        runtime = os.environ.get("XDG_RUNTIME_DIR", "")
        base = runtime if runtime.startswith("/") and len(runtime) < 60 and os.path.isdir(runtime) else "/tmp"
        self.dir = tempfile.mkdtemp(prefix="caisson-sdk-", dir=base)
        self.socket = os.path.join(self.dir, "sock")
        self._log = os.path.join(self.dir, "log")
        try:
            self._lease = self._spawn()
        except BaseException:
            shutil.rmtree(self.dir, ignore_errors=True)
            raise

    def _spawn(self) -> subprocess.Popen[bytes]:
        binary, *options = self._key
        private = ["--listen", "none", "--socket", self.socket, "--state", os.path.join(self.dir, "state")]
        argv = [sys.executable, "-IS", str(LEASE), self.dir, binary, "serve", *FIRST, *options, *private]
        env = {name: value for name, value in os.environ.items() if name not in FOREIGN}
        with open(self._log, "wb") as log:
            return subprocess.Popen(
                argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, env=env, start_new_session=True, cwd="/"
            )

    @classmethod
    def start(cls, binary: Optional[str] = None, options: Sequence[str] = ()) -> LocalDaemon:
        """A daemon with these options: the one of this process, or a new one. Call ready() until it returns true."""
        key = (find_binary(binary), *options)
        with cls._lock:
            daemon = cls._all.get(key)
            if daemon is None or daemon._owner != os.getpid() or daemon._lease.poll() is not None:
                daemon = cls._all[key] = LocalDaemon(key)
            daemon._users += 1
            return daemon

    def ready(self) -> bool:
        """Whether the daemon serves, by its first line. Raises SandboxUnavailable, with its messages, if it ended instead."""
        with self._lock:
            if self._is_ready:
                return True
            assert self._lease.stdout is not None
            if select.select([self._lease.stdout], [], [], 0)[0]:
                if not self._lease.stdout.readline():
                    raise SandboxUnavailable(
                        "the private daemon did not start: " + self._last_words(), hint="'caisson doctor' lists what this machine lacks"
                    )
                self._is_ready = True
            elif self.is_late():
                raise SandboxUnavailable(f"the private daemon is not ready after {START_SECONDS} s: " + self._last_words())
            return self._is_ready

    def is_late(self) -> bool:
        """Whether the time for its start is over."""
        return time.monotonic() - self._begun > START_SECONDS

    def release(self) -> None:
        """Count one user less. The last one ends the daemon; ended() reports when it has ended."""
        with self._lock:
            if self._owner != os.getpid():
                return  # a child process: the daemon belongs to its parent
            self._users -= 1
            if self._users <= 0:
                if self._all.get(self._key) is self:
                    del self._all[self._key]
                self._let_go()

    def ended(self) -> bool:
        """Whether the daemon has ended, after the last release(), or need not end."""
        if self._users > 0 or self._owner != os.getpid():
            return True
        if self._lease.poll() is None:
            return False
        shutil.rmtree(self.dir, ignore_errors=True)  # it is gone already, unless the lease was killed
        return True

    def _let_go(self) -> None:
        for pipe in (self._lease.stdin, self._lease.stdout):
            assert pipe is not None
            pipe.close()

    def _last_words(self) -> str:
        try:
            lines = Path(self._log).read_text(errors="replace").strip().splitlines()
        except OSError:
            lines = []
        return lines[-1] if lines else "it said nothing"

    @classmethod
    def end_all(cls) -> None:
        """At the end of the process: end the daemons that were not released. Without this they would end a moment later."""
        left: List[LocalDaemon] = [d for d in cls._all.values() if d._owner == os.getpid()]
        cls._all.clear()
        for daemon in left:
            daemon._let_go()
        for daemon in left:
            try:
                daemon._lease.wait(END_SECONDS)
            except subprocess.TimeoutExpired:
                daemon._lease.kill()
                daemon._lease.wait()
            shutil.rmtree(daemon.dir, ignore_errors=True)


atexit.register(LocalDaemon.end_all)
