# SPDX-License-Identifier: Apache-2.0
"""test_shell_habits.py - The commands that people type: pip, npm, uv, apt-get, from a shell, a subprocess, a Makefile.

Each installs from the daemon's index, or answers in one line; a name that cannot be resolved costs no minute, and the result
tells that egress is denied.
"""
import json
import os
import subprocess
import time

import pytest

from box_lib import Box
from jupyter_lib import Kernel
from mcp_lib import Modern
from package_lib import Index, tarball, wheel
from process import BIN
from serve_lib import Stream, WebSocket
from test_adopt import kill_front

QUICK = 15  # seconds: less than any installer's retries, which take a minute and more
FETCH = {"timeout": 100}


@pytest.fixture(scope="module")
def index(tmp_path_factory):
    files = tmp_path_factory.mktemp("files")
    wheel(files, "habit", files={"habit.py": "VALUE = 7\ndef main():\n    print('habit runs')\n",
                                 "habit-1.0.dist-info/entry_points.txt": "[console_scripts]\nhabit = habit:main\n"})
    wheel(files, "evil")
    tarball(files / "npm", "grown", "1.1.0", bin={"grow": "grow.js"}, files={"grow.js": "#!/usr/bin/env node\nconsole.log('grown', ...process.argv.slice(2))\n"})
    i = Index(tmp_path_factory.mktemp("index"), files, "--blocked-packages", "evil")
    yield i
    i.close()


def text(result):
    return "".join(b["text"] for b in result["content"] if b["type"] == "text")


def begun(index):
    """How many installations the ledger has."""
    return sum(json.loads(line)["event"] == "packages.begin" for line in (index.daemon.state / "ledger/ledger.jsonl").read_text().splitlines())


# ---- installing -----------------------------------------------------------------------------------------------------


MAKEFILE = """printf 'all:\\n\\tpip install -q habit\\n\\thabit\\n\\tpython -c "import habit; print(habit.VALUE)"\\n' > Makefile && make -s"""
SUBPROCESS = """import subprocess, sys
subprocess.run([sys.executable, "-m", "pip", "install", "-q", "habit"], check=True)
subprocess.run("habit", check=True)
import habit
print(habit.VALUE)
"""
WAYS = {
    "shell": ("shell", "pip install -q habit && habit && python3 -c 'import habit; print(habit.VALUE)'"),
    "bash": ("bash", "pip3 install -q habit; habit; python -c 'import habit; print(habit.VALUE)'"),
    "module": ("bash", "echo habit > r.txt; python3 -m pip install -q -r r.txt && habit && python3 -c 'import habit; print(habit.VALUE)'"),
    "uv": ("bash", "uv pip install -q --system habit && habit && python -c 'import habit; print(habit.VALUE)'"),
    "venv": ("bash", "python3 -m venv --without-pip v && v/bin/python -m pip install -q habit && v/bin/habit && v/bin/python -c 'import habit; print(habit.VALUE)'"),
    "makefile": ("bash", MAKEFILE),
    "subprocess": ("python", SUBPROCESS),
    "bang": ("python", "!true; pip install -q habit && habit\nimport habit\nprint(habit.VALUE)"),
}


@pytest.mark.parametrize("way", WAYS)
def test_pip_from_everywhere(index, way):
    """The process that waited for the packages can run and import them at once."""
    language, code = WAYS[way]
    with Box(index.daemon) as box:
        if language == "shell":
            r = box.shell(code, **FETCH)
        else:
            r = box.post("/execute", {"code": code, "language": language, **FETCH}).json
        assert (r["exit_code"], r["stdout"]) == (0, "habit runs\n7\n"), r
        assert [p["name"] for p in box.get("/packages").json["packages"]] == ["habit"]


def test_in_a_sandbox_of_one_execution(index):
    r = index.daemon.post("/execute", {"code": SUBPROCESS, **FETCH}, timeout=150).json
    assert (r["status"], r["stdout"]) == ("ok", "habit runs\n7\n"), r


def test_after_the_front_was_killed(index):
    with Box(index.daemon) as box:
        assert box.shell("pip install -q habit", **FETCH)["exit_code"] == 0
        kill_front(index.daemon)
        r = box.shell("pip install -q habit && habit")
        assert r["stdout"] == "habit runs\n", r


def test_the_words_of_pip_and_the_operators_rules(index):
    with Box(index.daemon) as box:
        assert box.shell("pip install habit", **FETCH)["stdout"] == "Successfully installed habit-1.0\n"
        r = box.shell("python3 -m pip install evil")
        assert r["exit_code"] == 1 and "package_blocked" in r["stderr"] and len(r["stderr"].splitlines()) == 1, r
        r = box.exec("pip", "install", "--target", "/tmp/x", "habit")
        assert r["exit_code"] == 1 and "--target" in r["stderr"] and len(r["stderr"].splitlines()) == 1, r


def test_npm_and_npx(index):
    with Box(index.daemon) as box:
        r = box.shell("echo '{\"scripts\": {\"go\": \"grow wild\"}}' > package.json && npm install grown && npx grow up && node -p 'require(\"grown\")' && cat package.json", **FETCH)
        assert r["exit_code"] == 0 and r["stdout"].startswith("added 1 package\ngrown up\n1.1.0\n"), r
        assert '"grown": "^1.1.0"' in r["stdout"], r
        # Static imports, and what npm itself runs.
        r = box.shell("echo 'import v from \"grown\"; console.log(v)' > a.mjs && node a.mjs && npm run -s go")
        assert r["stdout"] == "1.1.0\ngrown wild\n", r
        assert box.shell("cd /tmp && npx -y grown far")["stdout"] == "grown far\n"
    with Box(index.daemon) as box:  # in the javascript kernel, in one execution
        code = "require('child_process').execSync('npm install grown', {stdio: 'pipe'}); require('grown')"
        r = box.post("/execute", {"code": code, "language": "javascript"}).json
        assert r["result"]["text/plain"] == "'1.1.0'", r


def test_running_interpreters_see_what_was_installed_from_outside(index):
    with Box(index.daemon) as box:
        run = lambda language, code: box.post("/execute", {"code": code, "language": language}).json
        assert run("bash", "export PATH=/opt/mine:$PATH PYTHONPATH=/opt/lib; python3 -c 'import habit'")["exit_code"] != 0
        assert run("javascript", "1 + 1")["status"] == "ok"
        assert box.post("/packages", {"packages": ["habit"]}).status == 200
        assert box.post("/packages", {"packages": ["grown"], "language": "javascript"}).status == 200
        r = run("bash", "habit; grow; python3 -c 'import habit; print(habit.VALUE)'; echo ${PATH%%:*} ${PYTHONPATH%%:*}")
        assert r["stdout"] == "habit runs\ngrown\n7\n/opt/mine /opt/lib\n", r
        r = run("javascript", "const a = require('grown'); const { default: b } = await import('grown'); [a, b]")
        assert r["result"]["text/plain"] == "[ '1.1.0', '1.1.0' ]", r


def test_the_programs_of_the_image_still_run(index):
    with Box(index.daemon) as box:
        r = box.shell("pip --version; python -m pip --version; pip list 2>/dev/null | head -1; python -c 'import sys; print(sys.version_info[0])'; python3 -c 'import pip; print(pip.__file__)'")
        lines = r["stdout"].splitlines()
        assert lines[0] == lines[1] and lines[0].startswith("pip ") and lines[2].startswith("Package") and lines[3] == "3", r
        assert not lines[4].startswith("/packages"), r


def test_pip_lists_what_is_installed_and_what_the_image_has(index):
    """GET .../packages has those of the image that requests use; the whole list is pip's own."""
    with Box(index.daemon) as box:
        assert box.post("/packages", {"packages": ["habit"]}).status == 200
        assert {p["name"] for p in box.get("/packages").json["packages"]} == {"habit"}
        listed = {p["name"] for p in json.loads(box.shell("pip list --format json 2>/dev/null")["stdout"])}
        assert {"habit", "pip"} <= listed, listed


# ---- answers in one line --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("command, words", [
    ("apt-get update", "an image that has"),
    ("apt install -y jq", "an image that has"),
    ("apt-get -y remove jq", "an image that has"),
    ("apt purge jq", "an image that has"),
    ("uv add requests", "uv pip install"),
    ("npm view left-pad", "npm install"),
    ("npm ci", "npm install"),
    ("pip download requests", "pip install"),
])
def test_what_cannot_work_says_what_does(index, command, words):
    with Box(index.daemon) as box:
        began = time.monotonic()
        r = box.shell(command)
        assert r["exit_code"] == 1 and words in r["stderr"] and len(r["stderr"].splitlines()) == 1, r
        assert time.monotonic() - began < QUICK


@pytest.mark.skipif(os.path.exists("/usr/bin/uv"), reason="this machine has uv")
def test_an_image_without_uv_can_get_it(index):
    """`uv pip install` works there, so the refusal of the others has to tell the difference."""
    with Box(index.daemon) as box:
        r = box.shell("uv venv")
        assert r["exit_code"] == 127 and r["stderr"] == "uv: this image has no uv; 'pip install uv' installs it\n", r


def test_nothing_waits_for_a_name_that_cannot_be_resolved(index):
    """The image's own programs, by their paths."""
    with Box(index.daemon) as box:
        for script in ("npm=$(ls /usr/local/bin/npm /usr/bin/npm 2>/dev/null | head -1); $npm install left-pad", "python3 -I -m pip install caisson-absent",
                       "curl -sS https://example.org/", "python3 -c 'import urllib.request as u; u.urlopen(\"http://example.org\")'",
                       "node -e 'require(\"https\").get(\"https://example.org\")'"):
            began = time.monotonic()
            r = box.shell(script)
            assert r["exit_code"] != 0 and time.monotonic() - began < QUICK, (script, r)
            assert "egress" in r["hint"] and "PUT /v1/sandboxes/NAME/egress" in r["hint"], (script, r)


def test_with_egress_the_programs_of_the_image_do_it(index):
    with Box(index.daemon, egress=["pypi.org", "registry.npmjs.org"]) as box:
        before, began = begun(index), time.monotonic()
        r = box.shell("pip install habit; npm install left-pad; uvx x")
        assert "Successfully" not in r["stdout"] and "Retrying" in r["stderr"] and "npm error" in r["stderr"].replace("ERR!", "error"), r
        assert begun(index) == before and time.monotonic() - began < 2 * QUICK
    with Box(index.daemon, egress=["other.test"]) as box:
        assert box.shell("pip install -q habit && habit", **FETCH)["stdout"] == "habit runs\n"


# ---- hints ----------------------------------------------------------------------------------------------------------


CODE = "import urllib.request\nurllib.request.urlopen('http://example.org')"


def test_every_wire_has_the_hint(index):
    d = index.daemon
    r = d.post("/execute", {"code": CODE}).json
    assert r["status"] == "error" and r["cause"] is None and "this looks like a connection that egress denies" in r["hint"], r
    hint = r["hint"]
    assert len(hint) < 255 and "\n" not in hint and "--" not in hint
    assert d.post("/v1/run_python", {"code": CODE}).json["hint"] == hint
    with Stream(d, {"code": CODE, "stream": True}) as stream:
        assert stream.all()[-1][1]["hint"] == hint
    with WebSocket(d) as ws:
        assert ws.run(CODE)["hint"] == hint
    with Box(d) as box:
        assert box.post("/execute", {"code": CODE}).json["hint"] == hint
        assert box.exec("curl", "-sS", "http://example.org")["hint"] == hint
        p = box.start("curl", "-sS", "http://example.org")
        assert p.wait()["hint"] == hint
        # Code that goes on after a command that failed.
        r = box.post("/execute", {"code": "!curl -sS http://example.org"}).json
        assert r["status"] == "ok" and r["hint"] == hint, r
        r = Modern(d).tool("execute_code", session_id=box.name, language="python", code=CODE)
        assert r["structuredContent"]["hint"] == hint and hint in text(r), r
        p = subprocess.run([BIN, "run", "--url", "http://127.0.0.1:%d" % d.port, "--name", box.name, CODE], capture_output=True, text=True, timeout=60)
        assert p.returncode == 1 and "caisson: " + hint.split(" (")[0] in p.stderr and "caisson net NAME --egress HOST" in p.stderr, p
        with Kernel(d, env={"KERNEL_SANDBOX": box.name}) as k:
            assert k.run(CODE).of("error")[0]["traceback"][-1] == hint
            r = k.run("!curl -sS http://example.org")
            assert r.reply["status"] == "ok" and "caisson: %s\n" % hint in r.text("stderr"), r.messages
        for code in ("1 / 0", "print('no such thing')", "import sys; sys.exit(3)"):
            assert "hint" not in box.post("/execute", {"code": code}).json
    with Box(d, egress=["other.test"]) as box:
        r = box.post("/execute", {"code": CODE}).json
        assert r["hint"] == "egress to example.org is not allowed; add it to egress", r
        r = box.post("/execute", {"code": "import socket; socket.create_connection(('192.0.2.1', 80))"}).json
        assert "the host's name" in r["hint"], r
