# SPDX-License-Identifier: Apache-2.0
"""outside.py - The control of the survey: a package installed and imported on this machine, without Caisson.

A package that fails in a sandbox may fail everywhere: it imports what it does not require, or needs a bundler. So it is
installed as users do it, and the same code imports it: with `pip install` in a virtual environment that has the packages of
the system, as the image `host` has, and in an empty one; with `npm install` in an empty project.

This runs code of the package, its install scripts too, with no cell around it: as the user nobody, if the survey runs as root.
"""
import json
import os
import pwd
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
PASSED = re.compile(r"LANG|PIP_(INDEX_URL|CERT|CONFIG_FILE)|(NPM_CONFIG|SSL_CERT)_.*|NODE_EXTRA_CA_CERTS|(https?|no)_proxy", re.I)
SAID = re.compile(r"^SURVEY (\{.*\})$", re.M)
NOISE = re.compile("npm error (code|path|command|errno|syscall|A complete log)|npm error *$")
SECONDS = 700


def said(text):
    """The report of imports.py or imports.js; None: it made none."""
    found = SAID.findall(text)
    return json.loads(found[-1]) if found else None


class Outside:
    """A directory for one package, and programs that run in it."""

    def __init__(self, name, hint, indexes):
        self.name = name
        self.user = pwd.getpwnam("nobody") if os.geteuid() == 0 else None
        self.directory = tempfile.TemporaryDirectory(prefix="caisson-outside-", ignore_cleanup_errors=True)
        self.path = Path(self.directory.name)
        self.env = {k: v for k, v in os.environ.items() if PASSED.fullmatch(k)}
        self.env = {"PATH": "/usr/local/bin:/usr/bin:/bin", "PIP_INDEX_URL": indexes["python"], "NPM_CONFIG_REGISTRY": indexes["javascript"],
                    "NPM_CONFIG_UPDATE_NOTIFIER": "false", **self.env, "HOME": str(self.path), "SURVEY_NAME": name, "SURVEY_HINT": hint, "NODE_PATH": str(self.path / "node_modules")}
        prefix = Path(shutil.which("node", path=self.env["PATH"]) or "/usr/bin/node").resolve().parents[1]
        if (prefix / "include/node/node.h").exists():  # as the daemon does: builds then need no download of the headers
            self.env.setdefault("npm_config_nodedir", str(prefix))
        if self.user:
            os.chown(self.path, self.user.pw_uid, self.user.pw_gid)

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.directory.cleanup()

    def run(self, *argv):
        user = {"user": self.user.pw_uid, "group": self.user.pw_gid, "extra_groups": []} if self.user else {}
        ran = subprocess.run(argv, cwd=self.path, env=self.env, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace",
                             timeout=SECONDS, check=False, **user)
        errors = [line[len("npm error "):] for line in ran.stderr.splitlines() if line.startswith("npm error ") and not NOISE.match(line)]
        self.said = " ".join(errors)[:300] or (ran.stderr or ran.stdout).strip()[-300:]
        return ran

    def python(self, *options):
        return self.run("/usr/bin/python3", "-m", "venv", *options, "venv").returncode == 0 and self.run(
            "venv/bin/python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", self.name).returncode == 0 and self.run(
            "venv/bin/python", "-c", (HERE / "imports.py").read_text())

    def beside_system(self):
        return self.python("--system-site-packages", "--without-pip")

    def empty(self):
        return self.python()

    def npm(self):
        return self.run("npm", "install", "--no-audit", "--no-fund", "--loglevel", "error", self.name).returncode == 0 and self.run(
            "node", "-e", "(async () =>\n%s\n)()" % (HERE / "imports.js").read_text())


CONTROLS = {"python": {"beside the system's packages": Outside.beside_system, "in an empty environment": Outside.empty},
            "javascript": {"npm install": Outside.npm}}


def outside(language, name, hint, indexes):
    """For each control the reason why the package does not work; "": it works."""
    reasons = {}
    for how, control in CONTROLS[language].items():
        with Outside(name, hint, indexes) as o:
            try:
                ran = control(o)
                found = ran and (said(ran.stdout) or {"error": o.said})
                reasons[how] = found.get("error", "") if ran else "install: " + o.said
            except subprocess.TimeoutExpired as e:
                reasons[how] = "%s: not done in %d s" % (e.cmd[0], SECONDS)
    return reasons


def alike(one, other):
    """Whether two reasons are the same, but for the directories that they name."""
    def plain(reason):
        return re.sub(r"\W+", " ", re.sub(r"(file://)?(/[\w.@~+-]+)+", "", reason))[:100]
    return plain(one) == plain(other)
