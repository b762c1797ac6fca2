# SPDX-License-Identifier: Apache-2.0
"""clients_lib.py - Third-party clients, brought by npm and pip into the build directory, and run.

Each kind is installed once per build directory and version. If a registry does not answer, the tests that need it are
skipped, with the reason.
"""
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

from process import BIN
from suite_lib import INSTALL_SECONDS, NotHere, Suite, brought

HERE = Path(__file__).resolve().parent / "clients"
WHERE = BIN.parent / "mcp-clients"
RUN_SECONDS = 120


def reason(r):
    lines = [l for l in r.stdout.strip().splitlines() if "complete log" not in l]
    return lines[-1] if lines else "exit code %d" % r.returncode


def run(argv, what, **kw):
    try:
        r = subprocess.run([str(a) for a in argv], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                           timeout=INSTALL_SECONDS, **kw)
    except (OSError, subprocess.TimeoutExpired) as e:
        raise NotHere("%s: %s" % (what, e)) from None
    if r.returncode:
        raise NotHere("%s: %s" % (what, reason(r)))


def installed(name, source, install):
    where = WHERE / name
    brought(where, source, install)
    return where


def npm_install(package):
    """A function that installs the packages of @package (a package.json)."""
    def install(where):
        if not shutil.which("npm"):
            raise NotHere("there is no npm")
        shutil.copy(package, where)
        # Without a lock file: npm refuses one of its own making where packages for other machines are optional.
        run(["npm", "install", "--no-package-lock", "--ignore-scripts", "--no-audit", "--no-fund", "--prefer-offline", "--fetch-retries=1",
             "--fetch-timeout=20000", "--loglevel=error"], "npm install", cwd=where)

    return install


def node_servers():
    """The directory of the servers that the bridge's tests call: NAME/dist/index.js."""
    package = HERE.with_name("servers") / "package.json"
    return installed("servers", package, npm_install(package)) / "node_modules/@modelcontextprotocol"


def node_clients():
    """(node, the directory with the scripts and their packages)."""
    where = installed("node", HERE / "package.json", npm_install(HERE / "package.json"))
    for f in HERE.glob("*.mjs"):
        shutil.copy(f, where)
    return Path(Suite(BIN.parent / "mcp-suite").node), where


def python_client(version):
    """The interpreter of an environment that has this version of the SDK."""
    requirements = HERE / ("python%d.txt" % version)

    def install(where):
        # The interpreter that runs the tests may lack pip, or venv may be a separate package: then there is no client.
        run([sys.executable, "-m", "venv", where / "env"], "venv")
        run([where / "env/bin/pip", "install", "-q", "--disable-pip-version-check", "--retries=1", "--timeout=20", "-r", requirements], "pip")

    return installed("python%d" % version, requirements, install) / "env/bin/python"


def tell(argv, cwd=None, env=None):
    """Run a client through the steps of clients/story.* and return its report."""
    r = subprocess.run([str(a) for a in argv], cwd=cwd, env={**os.environ, **(env or {})}, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                       stderr=subprocess.PIPE, text=True, timeout=RUN_SECONDS)
    assert r.returncode == 0, "%s\n%s\n%s" % (argv, r.stdout[-2000:], r.stderr[-3000:])
    return json.loads(r.stdout.strip().splitlines()[-1])
