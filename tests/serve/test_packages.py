# SPDX-License-Identifier: Apache-2.0
"""test_packages.py - Packages that a sandbox can import: installed from an index, at once, shared, and by the operator's rules.

Tests with many builds, or with hostile packages, are in tests/hostile/test_hostile_packages.py.
"""
import json
import subprocess

import pytest

from box_lib import Box, Events
from mcp_lib import Modern
from cli_lib import Cli, Terminal
from package_lib import Index, install, tarball, trees, wheel
from process import BIN, unique


@pytest.fixture(scope="module")
def index(tmp_path_factory):
    files = tmp_path_factory.mktemp("files")
    wheel(files, "alpha", "1.0")
    wheel(files, "alpha", "2.0", {"alpha.py": "import beta\nVERSION = '2.0'\n"}, requires=["beta"])
    wheel(files, "beta", "1.5")
    wheel(files, "top", requires=["middle"])
    wheel(files, "middle", requires=["evil"])
    wheel(files, "evil")
    for name in ("told", "shown"):
        wheel(files, name)
    for n in range(60):
        wheel(files, "many-versions", "1.%d" % n)
    tarball(files / "npm", "grown", "1.1.0", dependencies={"scripted": "^1.0.0"}, bin={"grow": "grow.js"},
            files={"grow.js": "#!/usr/bin/env node\nconsole.log('grown')\n"})
    tarball(files / "npm", "scripted", scripts={"postinstall": "node ran.js"},
            files={"ran.js": "require('fs').writeFileSync('ran', process.env.npm_config_nodedir || '')\n", "index.js": "module.exports = require('fs').existsSync(__dirname + '/ran')\n"})
    i = Index(tmp_path_factory.mktemp("index"), files, "--blocked-packages", "evil,os")
    yield i
    i.close()


def text(result):
    return "".join(b["text"] for b in result["content"] if b["type"] == "text")


def says(daemon, code, **fields):
    r = daemon.post("/execute", {"code": code, **fields}, timeout=60).json
    assert r["status"] == "ok", r
    return r["stdout"].strip()


def test_installed_at_once_and_for_others_without_a_network(index):
    d = index.daemon
    with Box(d) as box, Box(d) as other:
        assert "No module" in box.post("/execute", {"code": "import alpha"}).json["stderr"], "and the kernel runs"
        r = box.post("/packages", {"packages": ["alpha"]})
        assert r.status == 200 and not r.json["cached"], r
        assert {p["name"]: p["version"] for p in r.json["packages"]} == {"alpha": "2.0", "beta": "1.5"}
        assert all(p["hash"].startswith("sha256:") and not p["built"] for p in r.json["packages"])
        assert r.json["installer"].split()[0] in ("pip", "uv")
        assert box.post("/execute", {"code": "import alpha; print(alpha.VERSION)"}).json["stdout"] == "2.0\n"
        assert box.exec("python3", "-c", "import beta; print(beta.VERSION)")["stdout"] == "1.5\n"
        assert box.get("/packages").json["packages"][0]["language"] == "python"
        # The same in another sandbox.
        before = len(index.asked)
        r = other.post("/packages", {"packages": ["alpha"]})
        assert r.json["cached"] and len(index.asked) == before and len(trees(d)) == 1
        assert other.exec("python3", "-c", "import alpha; print(alpha.VERSION)")["stdout"] == "2.0\n"
        # It can neither be written nor listed, and is not in a sandbox that did not ask for it.
        assert "denied" in box.shell("ls /packages")["stderr"]
        path = box.exec("python3", "-c", "import alpha; print(alpha.__file__)")["stdout"].strip()
        assert box.shell("echo x >> " + path)["exit_code"] != 0
    assert "No module" in d.post("/execute", {"code": "import alpha"}).json["stderr"]
    lines = [json.loads(line) for line in (d.state / "ledger/ledger.jsonl").read_text().splitlines()]
    assert {"alpha", "beta"} <= {e["name"] for e in lines if e["event"] == "package" and e["digest"]}
    assert all(e["installer"].split()[0] in ("pip", "uv") for e in lines if e["event"] == "packages.end" and e["outcome"] == "installed")


def test_for_all_of_a_caller_in_the_older_words(index):
    d = index.daemon
    r = install(d, "alpha", version="latest")
    assert r.status == 200 and r.json["success"] and r.json["installed_version"] == "2.0" and r.json["installation_time"] >= 0, r
    assert says(d, "import alpha; print(alpha.VERSION)") == "2.0"
    with Box(d) as box:
        events = Events(d, "POST", box.url + "/packages", {"packages": ["alpha"], "stream": True})
        _, kind, data = list(events)[-1]
        assert kind == "done" and data["cached"]


def test_from_code(index):
    """%pip install, in a sandbox of one execution; a refusal is an error of the code."""
    r = index.daemon.post("/execute", {"code": "%pip install -q 'alpha'\nimport alpha; print(alpha.VERSION)", "timeout": 60}, timeout=90).json
    assert r["stdout"] == "Installed alpha 2.0, beta 1.5\n2.0\n" and r["status"] == "ok", r
    r = index.daemon.post("/execute", {"code": "!pip install evil"}).json
    assert r["error"]["name"] == "RuntimeError" and "package_blocked" in r["error"]["value"], r


def test_tools_of_mcp_and_the_command(index):
    d = index.daemon
    c = Modern(d)
    assert {"pip_install", "install_package"} <= {t["name"] for t in c.call("tools/list")["tools"]}, "the tool is not offered although there is an index"
    name = unique("mcp")
    r = c.tool("install_package", session_id=name, package_name="alpha")
    assert not r.get("isError") and r["structuredContent"]["installed_version"] == "2.0"
    assert r["structuredContent"]["message"] == "alpha 2.0 is installed in " + name and r["structuredContent"]["installation_time"] >= 0
    assert text(r).startswith(r["structuredContent"]["message"] + "\n") and "beta 1.5" in text(r) and "{" not in text(r)
    for tool in ("install_package", "pip_install"):
        assert set(c.tools()[tool]["outputSchema"]["required"]) == {"success", "message", "installed_version", "installation_time"}
    assert text(c.tool("execute_code", session_id=name, language="python", code="import alpha; alpha.VERSION")) == "'2.0'"
    r = c.call("tools/call", {"name": "pip_install", "arguments": {"package": "evil"}})
    assert r["isError"] and "package_blocked" in text(r)
    run = lambda *words: subprocess.run([BIN, *words, "--url", "http://127.0.0.1:%d" % d.port], capture_output=True, text=True, timeout=60)
    with Box(d) as box:
        p = run("install", box.name, "alpha")
        assert (p.returncode, p.stdout.split("\n")[0]) == (0, "alpha 2.0"), p
        p = run("install", box.name)
        assert ["alpha", "2.0", "python", "installed", "alpha"] in [line.split() for line in p.stdout.splitlines()], p
        p = run("install", box.name, "evil")
        assert p.returncode != 0 and "blocked" in p.stderr, p


def test_progress_goes_to_mcp_clients_and_to_a_terminal(index):
    """Before the end: notifications with rising numbers, and a bar that is removed at the end."""
    d = index.daemon
    c = Modern(d)
    r = c.call("tools/call", {"name": "pip_install", "arguments": {"package": "told"}}, meta={"progressToken": "p"})
    assert not r["isError"] and not r["structuredContent"]["cached"], r
    steps = [n["params"]["progress"] for n in c.notes]
    assert steps == sorted(set(steps)) and len(steps) >= 3, c.notes
    assert any("told" in n["params"]["message"] for n in c.notes)
    with Box(d) as box, Terminal(Cli(CAISSON_URL="http://127.0.0.1:%d" % d.port), "install", box.name, "shown") as t:
        t.until(rb"\[#+\.*\] +\d+% \S+")
        t.until(rb"\[#{20}\] 100% ")
        t.until(rb"\r\x1b\[Kshown 1.0")
        assert t.end() == 0


@pytest.mark.slow
def test_javascript(index):
    """From a registry, with dependencies; no script of a package is run."""
    with Box(index.daemon) as box:
        r = box.post("/packages", {"packages": ["grown"], "language": "javascript"})
        assert r.status == 200 and r.json["installer"].startswith("npm "), r
        assert {(p["name"], p["version"], p["built"]) for p in r.json["packages"]} == {("grown", "1.1.0", False), ("scripted", "1.0.0", False)}
        assert all(p["hash"].startswith("sha512-") for p in r.json["packages"])
        r = box.post("/execute", {"code": "console.log(require('grown'), require('scripted'))", "language": "javascript"}).json
        assert r["stdout"] == "1.1.0 false\n", r
        assert box.shell("grow")["stdout"] == "grown\n", "a link to a program of the package"
        r = box.post("/packages", {"packages": ["nonesuch"], "language": "javascript"})
        assert (r.status, r.error["code"]) == (404, "package_not_found"), r


@pytest.mark.slow
def test_javascript_with_scripts_where_the_operator_allows_them(index, tmp_path):
    i = Index(tmp_path, index.files, "--npm-scripts")
    try:
        with Box(i.daemon) as box:
            r = box.post("/packages", {"packages": ["scripted"], "language": "javascript"})
            assert r.status == 200 and r.json["packages"][0]["built"], r
            r = box.post("/execute", {"code": "console.log(require('scripted'))", "language": "javascript"}).json
            assert r["stdout"] == "true\n", r
            r = box.shell("echo $(dirname $(dirname $(readlink -f $(which node)))); cat $NODE_PATH/scripted/ran; echo; ls /usr/include/node/node.h")
            prefix, *headers = r["stdout"].split()
            assert headers == ([prefix, "/usr/include/node/node.h"] if r["exit_code"] == 0 else []), "where node-gyp finds the headers"
    finally:
        i.close()


@pytest.mark.parametrize("wish,status,code,word", [
    ("os", 403, "package_blocked", "blocked"), ("reqeusts", 403, "package_lookalike", "'requests'"),
    ("numpyy", 403, "package_lookalike", "'numpy'"), ("../x", 422, "invalid_requirement", "name"),
    ("git+https://a/b", 422, "invalid_requirement", "address"), ("--index-url=http://a", 422, "invalid_requirement", ""),
    ("x @ file:///etc/passwd", 422, "invalid_requirement", "address")])
def test_refused_before_anything_is_fetched(index, wish, status, code, word):
    before = len(index.asked)
    r = install(index.daemon, wish)
    assert (r.status, r.error["code"]) == (status, code) and word in r.error["message"], r
    assert len(index.asked) == before


def test_a_version_that_is_missing(index):
    """The error names the newest versions, not the first of sixty."""
    r = install(index.daemon, "many-versions", version="9")
    assert (r.status, r.error["code"]) == (422, "version_not_found") and "1.58, 1.59" in r.error["message"] and "1.0, 1.1," not in r.error["message"], r


def test_a_blocked_requirement_counts_as_blocked(index):
    """A package of the closure, which the rules see only when the fetcher has resolved the request."""
    outcomes = lambda: {k: v for k, v in index.daemon.metrics().items() if k.startswith("sandbox_package_installs_total")}
    before = outcomes()
    r = install(index.daemon, "top")
    assert (r.status, r.error["code"]) == (403, "package_blocked") and "'evil'" in r.error["message"], r
    blocked = 'sandbox_package_installs_total{outcome="blocked"}'
    assert outcomes() == {**before, blocked: before.get(blocked, 0) + 1}


def test_a_language_without_packages(index):
    with Box(index.daemon) as box:
        r = box.post("/packages", {"packages": ["x"], "language": "r"})
        assert (r.status, r.error["code"]) == (422, "unsupported_language"), r


def test_without_an_index_the_missing_option_is_named(daemon):
    r = daemon.post("/pip_install", {"package": "alpha"})
    assert (r.status, r.error["code"]) == (501, "not_configured") and "--pip-index" in r.error["hint"]
    with Box(daemon) as box:
        r = box.post("/packages", {"packages": ["left-pad"], "language": "javascript"})
        assert (r.status, r.error["code"]) == (501, "not_configured") and "--npm-registry" in r.error["hint"]


def test_ceilings_of_sandboxes_are_not_those_of_the_fetcher(tmp_path):
    """The fetcher belongs to the daemon, and is larger than callers' sandboxes may be: a policy for callers must not prevent installing."""
    files = tmp_path / "files"
    files.mkdir()
    wheel(files, "gamma")
    policy = tmp_path / "policy.toml"
    policy.write_text("[default]\nmemory_mib = 512\ncpus = 1\npids = 128\ndisk_mib = 1024\negress = []\nsandboxes = 1\nlife_seconds = 600\n"
                      "idle_seconds = 3600\nexecutions = 1\n")
    i = Index(tmp_path, files, "--policy", policy)
    try:
        with Box(i.daemon) as box:
            r = box.post("/packages", {"packages": ["gamma"]})
            assert r.status == 200 and [p["name"] for p in r.json["packages"]] == ["gamma"], r
            assert says(i.daemon, "import gamma; print(gamma.VERSION)", session_id=box.name) == "1.0"
            assert i.daemon.post("/v1/sandboxes", {"name": "another"}).status == 429, "the policy is in force"
    finally:
        i.close()


def test_a_daemon_without_cgroups(tmp_path):
    """As an ordinary user starts it: the fetcher must not ask for the end of a whole cell, which takes a cgroup."""
    files = tmp_path / "files"
    files.mkdir()
    wheel(files, "zeta")
    i = Index(tmp_path, files, "--without", "cgroup")
    try:
        with Box(i.daemon) as box:
            r = box.post("/packages", {"packages": ["zeta"]})
            assert r.status == 200 and [p["name"] for p in r.json["packages"]] == ["zeta"], r
            assert says(i.daemon, "import zeta; print(zeta.VERSION)", session_id=box.name) == "1.0"
    finally:
        i.close()


def test_the_last_wish_holds_also_for_a_version_that_was_there(tmp_path):
    """Upgrade, then downgrade: the imported version is that of the answer, and the sandbox can continue from there."""
    files = tmp_path / "files"
    files.mkdir()
    for version in ("1.0", "1.1"):
        wheel(files, "delta", version)
    wheel(files, "epsilon", requires=["delta"])
    i = Index(tmp_path, files)
    try:
        for version in ("1.0", "1.1", "1.0"):
            r = install(i.daemon, "delta", version=version)
            assert r.status == 200 and r.json["installed_version"] == version, r
            assert says(i.daemon, "import delta; print(delta.VERSION)") == version
        with Box(i.daemon) as box:
            r = box.post("/packages", {"packages": ["epsilon"]})
            assert r.status == 200 and {p["name"]: p["version"] for p in r.json["packages"]} == {"delta": "1.0", "epsilon": "1.0"}, r
    finally:
        i.close()
