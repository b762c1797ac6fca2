# SPDX-License-Identifier: Apache-2.0
"""docker_lib.py - A Docker daemon of the tests: Debian's dockerd with directories and a socket of its own, without a bridge and without
firewall rules, and one image, which tools/docker-image.sh has made from Debian packages in the build directory.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import shutil
import socket
import subprocess
import tempfile
from pathlib import Path
from urllib.parse import urlencode

import pytest
from process import HANG, IS_ROOT, ROOT, wait_until

BUILD = Path(os.environ.get("CAISSON_BUILD", ROOT / "build")).resolve()
ROOTFS = BUILD / "sdk" / "docker-rootfs.tar"
IMAGE = "caisson/sdk-test:1"


def why_not():
    """The reason why no daemon can be tested here, or None."""
    if not IS_ROOT:
        return "dockerd needs root"
    if not shutil.which("dockerd"):
        return "no dockerd here (make sdk-docker installs Debian's docker.io)"
    return None if ROOTFS.exists() else "no %s (make sdk-docker makes it, where Debian's mirrors answer)" % ROOTFS


class UnixConnection(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("localhost", timeout=HANG)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(HANG)
        self.sock.connect(self.path)


class Dockerd:
    """before: a command that becomes the daemon; flags: more options of it. Without an image."""

    def __init__(self, *flags, before=()):
        self.where = Path(tempfile.mkdtemp(prefix="cs-docker-"))
        self.socket = str(self.where / "sock")
        argv = [*before, "dockerd", "--data-root", self.where / "data", "--exec-root", self.where / "exec", "--pidfile", self.where / "pid"]
        argv += ["-H", "unix://" + self.socket, "--bridge=none", "--iptables=false", "--ip6tables=false", "--ip-masq=false", *flags]
        with open(self.where / "log", "wb") as log:
            self.process = subprocess.Popen([str(a) for a in argv], stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        try:
            if not wait_until(self.answers, HANG):
                pytest.skip("dockerd does not run here: " + self.last_words())
        except BaseException:
            self.stop()
            raise

    def answers(self):
        if self.process.poll() is not None:
            pytest.skip("dockerd does not run here: " + self.last_words())
        try:
            return self.ask("GET", "/_ping")
        except OSError:
            return None

    def last_words(self):
        lines = (self.where / "log").read_text(errors="replace").strip().splitlines()
        return lines[-1][:400] if lines else "no message"

    def ask(self, method, path, body=None, kind="application/json", **query):
        connection = UnixConnection(self.socket)
        try:
            connection.request(method, path + ("?" + urlencode(query) if query else ""), body, {"Content-Type": kind})
            answer = connection.getresponse()
            said = answer.read()
            assert answer.status < 400, said
            return said
        finally:
            connection.close()

    def get(self, path, **query):
        return json.loads(self.ask("GET", path, **query))

    def import_image(self, tar, name):
        repo, _, tag = name.rpartition(":")
        with open(tar, "rb") as f:
            said = self.ask("POST", "/images/create", f, "application/x-tar", fromSrc="-", repo=repo, tag=tag)
        assert b'"error"' not in said, said

    def containers(self):
        return self.get("/containers/json", all="1")

    def volumes(self):
        return self.get("/volumes")["Volumes"] or []

    def empty(self):
        return not self.containers() and not self.volumes()

    def stop(self):
        """End it by its pid; it ends its containerd. Containers of a test that failed are removed before."""
        if self.process.poll() is None:
            with contextlib.suppress(OSError, AssertionError):  # it has not started, or does not answer any more
                for c in self.containers():
                    self.ask("DELETE", "/containers/" + c["Id"], force="1", v="1")
            self.process.terminate()
        try:
            self.process.wait(HANG)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        for mount in self._mounts():  # it mounts its own directory, and leaves that
            subprocess.run(["umount", "-l", mount], check=False)
        shutil.rmtree(self.where, ignore_errors=True)

    def _mounts(self):
        places = [line.split()[4] for line in Path("/proc/self/mountinfo").read_text().splitlines()]
        return sorted((p for p in places if p.startswith(str(self.where) + "/")), reverse=True)


def with_image():
    """A daemon with the image; it is skipped where none can run."""
    reason = why_not()
    if reason:
        pytest.skip(reason)
    daemon = Dockerd()
    try:
        daemon.import_image(ROOTFS, IMAGE)
    except BaseException:
        daemon.stop()
        raise
    return daemon
