# SPDX-License-Identifier: Apache-2.0
"""suite_lib.py - The protocol's conformance suite: brought here by npm, run, and its findings read.

Nothing is vendored: package-lock.json pins every package by its hash, and npm installs them into the build directory.
The suite needs Node 22 or later; a machine without it gets one with the suite.
"""
import hashlib
import json
import re
import shutil
import subprocess
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
INSTALL_SECONDS = 420
RUN_SECONDS = 200
REMEMBERED_SECONDS = 1800
NODE_AT_LEAST = 22


class NotHere(Exception):
    """The reason why there is no suite."""


def brought(where, source, install):
    """Fill @where by @install, unless it already has the versions of @source (a file). A failure is remembered for a while, so that
    no test waits for the same timeout twice."""
    stamp, reason = where / "stamp", where.with_name(where.name + ".reason")
    digest = hashlib.sha256(source.read_bytes()).hexdigest()
    if stamp.exists() and stamp.read_text() == digest:
        return
    if reason.exists() and time.time() - reason.stat().st_mtime < REMEMBERED_SECONDS:
        raise NotHere(reason.read_text())
    shutil.rmtree(where, ignore_errors=True)
    where.mkdir(parents=True)
    try:
        install(where)
    except NotHere as e:
        reason.write_text(str(e))
        raise
    stamp.write_text(digest)


class Suite:
    def __init__(self, where):
        self.where = where
        self.index = where / "node_modules/@modelcontextprotocol/conformance/dist/index.js"
        brought(where, HERE / "package-lock.json", self.install)
        self.node = self.find_node()

    def install(self, _):
        npm = shutil.which("npm")
        if not npm:
            raise NotHere("there is no npm")
        for name in ("package.json", "package-lock.json"):
            shutil.copy(HERE / name, self.where)
        argv = [npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--prefer-offline", "--fetch-retries=1",
                "--fetch-timeout=20000", "--loglevel=error"]
        try:
            r = subprocess.run(argv, cwd=self.where, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                               stderr=subprocess.STDOUT, text=True, timeout=INSTALL_SECONDS)
        except subprocess.TimeoutExpired:
            raise NotHere("npm ci took more than %d s" % INSTALL_SECONDS) from None
        if r.returncode:
            said = [line for line in r.stdout.splitlines() if line.strip() not in ("", "npm error") and "complete log" not in line]
            raise NotHere("npm ci: %s" % "; ".join(said[:2] or ["exit code %d" % r.returncode]))

    def find_node(self):
        brought = sorted(self.where.glob("node_modules/node-linux-*/bin/node"))
        for node in filter(None, [shutil.which("node"), *map(str, brought)]):
            r = subprocess.run([node, "--version"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
            version = re.match(r"v(\d+)\.", r.stdout)
            if version and int(version[1]) >= NODE_AT_LEAST:
                return node
        raise NotHere("there is no Node %d or later" % NODE_AT_LEAST)

    def run(self, url, out, *args):
        """Returns (exit code, {scenario: [check, ...]}, output)."""
        r = subprocess.run([self.node, str(self.index), "server", "--url", url, "-o", str(out), *args],
                           stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                           timeout=RUN_SECONDS)
        found = {}
        for path in sorted(Path(out).glob("*/checks.json")):
            name = re.match(r"server-(.*)-\d{4}-\d\d-\d\dT", path.parent.name)[1]
            found[name] = json.loads(path.read_text())
        return r.returncode, found, r.stdout
