# SPDX-License-Identifier: Apache-2.0
"""real_lib.py - Third-party clients and servers of Jupyter: from Debian's packages, npm and PyPI. NotHere names the missing one."""
import importlib.util
import os
import shutil
import subprocess
import sys
import venv
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "lib"), str(HERE.parent / "serve"), str(HERE.parent / "mcp"), str(HERE.parent / "integ")]

from process import BIN  # noqa: E402
from suite_lib import INSTALL_SECONDS, NotHere, brought  # noqa: E402

WHERE = BIN.parent / "jupyter-clients"
LAB = "jupyterlab==4.6.6"
NBCONVERT = ("nbconvert==7.17.2", "jupyter_server==2.21.1")


def run(argv, what, **kw):
    try:
        r = subprocess.run([str(a) for a in argv], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                           timeout=INSTALL_SECONDS, **kw)
    except (OSError, subprocess.TimeoutExpired) as e:
        raise NotHere("%s: %s" % (what, e)) from None
    if r.returncode:
        raise NotHere("%s: %s" % (what, (r.stdout.strip().splitlines() or ["exit code %d" % r.returncode])[-1]))


def debian(*modules):
    """Debian's python packages: all of these, or the reason."""
    missing = [m for m in modules if importlib.util.find_spec(m) is None]
    if missing:
        raise NotHere("Debian's python packages are not installed: %s (tools/deps.sh jupyter)" % ", ".join(missing))


def node():
    """The directory with the scripts and their packages."""
    def install(where):
        if not shutil.which("npm"):
            raise NotHere("there is no npm")
        shutil.copy(HERE / "clients/package.json", where)
        run(["npm", "install", "--no-package-lock", "--ignore-scripts", "--no-audit", "--no-fund", "--prefer-offline", "--fetch-retries=1",
             "--fetch-timeout=20000", "--loglevel=error"], "npm install", cwd=where)

    where = WHERE / "node"
    brought(where, HERE / "clients/package.json", install)
    for f in HERE.glob("clients/*.mjs"):
        shutil.copy(f, where)
    return where


def nbconvert():
    """The directory of the program `jupyter` with nbconvert and the classes of a gateway's clients."""
    def install(where):
        venv.create(where, with_pip=True, clear=False)
        run([where / "bin/pip", "install", "-q", "--disable-pip-version-check", "--retries=1", "--timeout=20", *NBCONVERT], "pip install nbconvert")

    where = WHERE / "nbconvert"
    brought(where, HERE / "real_lib.py", install)
    return where / "bin"


def lab():
    """The program `jupyter-lab` of an environment of its own."""
    def install(where):
        venv.create(where, with_pip=True, clear=False)
        run([where / "bin/pip", "install", "-q", "--disable-pip-version-check", LAB], "pip install " + LAB)

    where = WHERE / "lab"
    brought(where, HERE / "real_lib.py", install)
    return where / "bin/jupyter-lab"


def chromium():
    found = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if not found:
        raise NotHere("there is no chromium (tools/deps.sh browser)")
    return found


def environment(home, **more):
    """Nothing of this machine's own Jupyter configuration."""
    env = {k: v for k, v in os.environ.items() if not k.startswith(("JUPYTER_", "KERNEL_"))}
    return {**env, "HOME": str(home), "JUPYTER_CONFIG_DIR": str(home / "config"), "JUPYTER_DATA_DIR": str(home / "data"),
            "JUPYTER_RUNTIME_DIR": str(home / "runtime"), **more}


if __name__ == "__main__":
    for name, get in (("JupyterLab's client library and playwright", node),):
        try:
            get()
            print("%s: here" % name)
        except NotHere as e:
            print("%s: not here: %s" % (name, e))
