# SPDX-License-Identifier: Apache-2.0
"""doors.py - The ways to a sandbox: each door takes one step of a case in a Visit, and returns the Outcome that a user sees."""
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from box_lib import Box
from case import DISTRIBUTIONS, Outcome, of_result
from integ_lib import clean_env, run
from mcp_lib import Modern, RpcError
from process import HANG, ROOT, SLOW, wait_until

CODE_SECONDS = 100  # time enough for the first import of a large library on a busy machine
INSTALL_SECONDS = 280


class NotHere(Exception):
    """A case cannot run in this place; the text is the reason."""


class Visit:
    """One case in one fresh sandbox. Use as a context: the sandbox is removed afterwards."""

    def __init__(self, world, image, case):
        self.world, self.image, self.case, self.daemon = world, image, case, world.daemon
        self.dir = Path(tempfile.mkdtemp(prefix="everyday-"))
        self.names = {"{image}": image, "{dir}": str(self.dir), "{web}": world.web_host}
        self.box = Box(world.daemon, image=image, **self.fill(case.spec))
        self.names["{box}"] = self.box.name
        self.client = None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.box.__exit__()
        shutil.rmtree(self.dir, ignore_errors=True)

    def fill(self, value):
        """The value with the names in it that a table cannot know."""
        if isinstance(value, str):
            for name, text in self.names.items():
                value = value.replace(name, text)
        elif isinstance(value, (list, tuple)):
            value = [self.fill(v) for v in value]
        elif isinstance(value, dict):
            value = {k: self.fill(v) for k, v in value.items()}
        return value

    def prepare(self):
        """Install the packages of the case that the image lacks."""
        lacking = [DISTRIBUTIONS.get(m, m) for m in self.case.modules if m not in self.world.modules(self.image)]
        for language, packages in (("python", lacking), ("javascript", self.case.npm)):
            reason = self.world.no_index(language) if packages or language in self.case.index else None
            if reason:
                raise NotHere(reason)
            if packages:
                seen = install(self, packages, language)
                assert seen.code == 0, "installing %s failed: %s (%s)" % (" ".join(packages), seen.error, seen.hint)

    def take(self, step):
        seen = DOORS[step.door](self, step.what, **self.fill(step.fields))
        for path, expected in step.want.get("files", {}).items():
            r = self.daemon.get("%s/files?path=%s" % (self.box.url, path))
            assert r.status == 200, "no file %s: %s" % (path, r)
            assert r.body == (expected.encode() if isinstance(expected, str) else expected), "content of %s: %r" % (path, r.body[:500])
        return seen


# ---- code and commands -----------------------------------------------------------------------------------------


def post(visit, path, timeout, **body):
    r = visit.daemon.post(visit.box.url + path, {"timeout": timeout, **body}, timeout=timeout + HANG)
    assert r.status == 200, "refused: %s" % r
    return of_result(r.json)


def language(name):
    def execute(visit, code, timeout=CODE_SECONDS, **fields):
        return post(visit, "/execute", timeout, code=code, language=name, **fields)
    return execute


def shell(visit, script, timeout=CODE_SECONDS, **fields):
    return post(visit, "/shell", timeout, script=script, **fields)


def program(visit, argv, timeout=CODE_SECONDS, **fields):
    return post(visit, "/exec", timeout, cmd=argv[0], args=list(argv[1:]), **fields)


def background(visit, argv, until="", **fields):
    """A process that goes on. With `until`, wait for this text in its output; without the text, its end is a failure."""
    p = visit.box.start(*argv, **fields)
    streams = {}

    def said():
        streams.update({s: p.output(s).decode(errors="replace") for s in ("stdout", "stderr")})
        return until in streams["stdout"] or until in streams["stderr"]

    wait_until(lambda: said() or p.about()["state"] != "running", CODE_SECONDS)
    return Outcome(code=0 if said() else 1, out=streams["stdout"], err=streams["stderr"])


# ---- requests ----------------------------------------------------------------------------------------------------


def http(visit, what, body=None, headers=None):
    method, path = what
    r = visit.daemon.request(method, visit.box.url + path, body=body, headers=headers, timeout=CODE_SECONDS)
    seen = Outcome(http=r.status, bytes=r.body, out=r.body.decode(errors="replace"))
    if r.headers.get("content-type", "").startswith("application/json") and r.body:
        seen.json = r.json
        problem = r.json.get("error") if r.status >= 400 else None
        if isinstance(problem, dict):
            seen.error, seen.hint = "%s: %s" % (problem["code"], problem["message"]), problem.get("hint", "")
    return seen


def install(visit, packages, language="python"):
    r = visit.daemon.post(visit.box.url + "/packages", {"packages": list(packages), "language": language}, timeout=INSTALL_SECONDS)
    if r.status == 200:
        return Outcome(json=r.json, out=" ".join("%s==%s" % (p["name"], p["version"]) for p in r.json["packages"]))
    return Outcome(code=1, error="%s: %s" % (r.code, r.error["message"]), hint=r.error.get("hint", ""))


# ---- clients on the user's machine -------------------------------------------------------------------------------


def environment(visit):
    return {"CAISSON_URL": "http://127.0.0.1:%d" % visit.daemon.port, "CAISSON_IMAGE_STORE": str(visit.world.store),
            "CAISSON_STATE": str(visit.world.cli_state)}


def cli(visit, argv, stdin=""):
    r = run(*visit.fill(argv), input=stdin.encode(), env=environment(visit), timeout=CODE_SECONDS, cwd=visit.dir)
    return Outcome(code=r.code, out=r.out.decode(errors="replace"), err=r.err.decode(errors="replace"))


def sdk(visit, code):
    head = "BOX, IMAGE = %r, %r\n" % (visit.box.name, visit.image)
    env = clean_env(**environment(visit), PYTHONPATH=str(ROOT / "sdk/python/src"), PYTHONDONTWRITEBYTECODE="1")
    p = subprocess.run([sys.executable, "-c", head + code], env=env, cwd=visit.dir, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                       timeout=CODE_SECONDS * SLOW)
    return Outcome(code=p.returncode, out=p.stdout, err=p.stderr)


def mcp(visit, what):
    name, arguments = what
    visit.client = visit.client or Modern(visit.daemon)
    try:
        r = visit.client.call("tools/call", {"name": name, "arguments": visit.fill(arguments)})
    except RpcError as e:
        return Outcome(code=1, error="RpcError: %s" % e)
    structured = r.get("structuredContent") or {}
    images = [b["mimeType"] for b in r["content"] if b["type"] == "image"]
    return Outcome(out="\n".join(b["text"] for b in r["content"] if b["type"] == "text"), code=structured.get("exit_code", int(r["isError"])), json=structured,
                   hint=structured.get("hint", ""), cause=structured.get("cause", ""), truncated=structured.get("truncated", False),
                   mime=set(images), pictures=len(images))


DOORS = {"python": language("python"), "bash": language("bash"), "javascript": language("javascript"), "r": language("r"), "shell": shell,
         "program": program, "background": background, "http": http, "install": install, "cli": cli, "sdk": sdk, "mcp": mcp}
