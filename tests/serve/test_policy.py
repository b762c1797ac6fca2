# SPDX-License-Identifier: Apache-2.0
"""test_policy.py - The operator's policy: what it refuses, to which caller, with the rule's name; and how it is replaced.

Most tests share one daemon and its file; each writes the file that it needs and reloads it.
"""
import hashlib
import json
import os
import secrets
import signal
import subprocess
import tomllib

import pytest

from box_lib import Box
from egress_lib import Resolver, Server, echo
from jupyter_lib import Kernel
from mcp_lib import Legacy, Modern
from process import BIN, children, name_of, unique, wait_until
from serve_lib import Daemon

TOKENS = {name: secrets.token_hex(16) for name in ("alice", "bob")}

GENEROUS = """
[default]
memory_mib = 4096
"""


def check(path, *flags, json_=True):
    r = subprocess.run([str(BIN), "policy", "check", *(["--json"] if json_ else []), str(path), *flags],
                       capture_output=True, text=True, timeout=60, env={"PATH": os.environ["PATH"]})
    return r.returncode, json.loads(r.stdout) if json_ and r.stdout else r.stdout + r.stderr


class Held:
    """A daemon with a policy, the file, and two callers."""

    def __init__(self, where):
        self.file = where / "policy.toml"
        self.file.write_text(GENEROUS)
        self.file.chmod(0o644)
        vault = where / "secrets"
        vault.write_text("ONE=%s\nTWO=%s\n" % (secrets.token_hex(8), secrets.token_hex(8)))
        vault.chmod(0o600)
        tokens = where / "tokens"
        tokens.write_text("".join("%s:%s\n" % t for t in TOKENS.items()))
        tokens.chmod(0o600)
        for name in ("data", "models"):
            (where / name).mkdir()
            (where / name).chmod(0o777)
            (where / name / "secret").write_text(name)
        self.dns = Resolver({"one.test": ["127.0.0.1"], "two.test": ["127.0.0.1"]})
        self.d = Daemon(where, "--policy", self.file, "--token-file", tokens, "--memory", "256M", "--pool", "1", "--tools", "all",
                        "--secrets-file", vault, "--egress-private", "127.0.0.0/8", "--egress-dns", self.dns.address,
                        "--mount", "%s:/data:rw-unprotected" % (where / "data"), "--mount", "%s:/models/m" % (where / "models"))
        self.d.token = TOKENS["bob"]

    def ask(self, who, method, path, body=None):
        return self.d.request(method, path, body, token=TOKENS[who])

    def reload(self, text=None):
        """As an editor does it: a new file in the place of the old one. Waits until it was judged."""
        n = self.d.metrics()["caisson_policy_reloads_total"]
        if text is not None:
            new = self.file.with_suffix(".new")
            new.write_text(text)
            new.rename(self.file)
        os.kill(self.d.keeper, signal.SIGHUP)
        assert wait_until(lambda: self.d.metrics()["caisson_policy_reloads_total"] == n + 1)

    def use(self, text):
        self.reload(text)
        assert self.d.health()["policy"] == {"sha256": hashlib.sha256(text.encode()).hexdigest(), "stale": False,
                                             "loaded_at": self.d.health()["policy"]["loaded_at"]}

    def ledger(self, event):
        lines = [json.loads(line) for line in (self.d.state / "ledger/ledger.jsonl").read_text().splitlines()]
        return [e for e in lines if e["event"] == event]


@pytest.fixture(scope="module")
def the_daemon(tmp_path_factory):
    held = Held(tmp_path_factory.mktemp("policy"))
    yield held
    try:
        held.d.stop()
    finally:
        held.d.kill()
        held.dns.close()


@pytest.fixture
def held(the_daemon):
    yield the_daemon
    for who, token in TOKENS.items():
        for name in the_daemon.d.sessions(token=token):
            the_daemon.d.end_session(name, token=token)


def refused(r, rule, *words, status=403):
    """Check that it was refused by the rule of this name, and that the answer names the rule."""
    assert (r.status, r.error["code"]) == (status, "policy_busy" if status == 429 else "policy_refused"), r
    assert r.error["message"].startswith("policy rule %s: " % rule), r
    assert all(w in r.error["message"] for w in words), r


# ---- the file -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("text, line, column, says", [
    ("[default]\nmemroy_mib = 1024\n", 2, 1, "did you mean 'memory_mib'?"),
    ("[default]\nflavour = 1\n", 2, 1, "unknown key 'flavour'"),
    ("[default]\nmemory_mib = \"1G\"\n", 2, 14, "a whole number, not a string"),
    ("[default]\nmemory_mib = 4\n", 2, 14, "between 16 and 1048576"),
    ("[default]\n  pids = -1\n", 2, 10, "between 1 and 32768"),
    ("[default]\ncpus = [\"a\"]\n", 2, 8, "must be a number"),
    ("[default]\ntools = \"execute_code\"\n", 2, 9, "must be a list"),
    ("[default]\ntools = [\n  'execute_code',\n  'execute code',\n]\n", 4, 3, "'execute code' is not the name of a tool"),
    ("[default]\ntools = ['execute_cod']\n", 2, 1, "there is no tool 'execute_cod'"),
    ("[default]\nimages = ['dir:/nowhere']\n", 2, 1, "is not in the list"),
    ("[default]\nsecrets = ['A@b.example']\n", 2, 12, "without a host"),
    ("[default]\negress = ['a.example', 'https://b.example']\n", 2, 24, "is not a host name"),
    ("[default]\nmounts = ['/data', 'data']\n", 2, 20, "is not a place in sandboxes"),
    ("[daemon]\nmemory_mib = 64\n", 2, 1, "is not for [daemon]"),
    ("[default]\npids = 128\npids = 129\n", 3, 1, "in line 2 already"),
    ("[default]\n[owners.a]\n[default]\n", 3, 1, "begun in line 1 already"),
    ("[owners.a.b]\n", 1, 11, "[owners.\"a.b\"]"),
    ("[owner.a]\n", 1, 2, "unknown table 'owner'"),
    ("pids = 1\n", 1, 1, "before the first table"),
    ("[default]\npids = 5 6\n", 2, 10, "the line should end here"),
    ("[default]\ntools = ['é', x]\n", 2, 15, "a string in quotes"),
    ("[default]\ntools = ['a'\n", 2, 9, "has no end"),
    ("[default]\npids = 1d\n", 2, 8, "invalid value"),
    ("[default]\n# \x01\n", 2, 3, "control character"),
    ("[default]\npids = 100\n", 2, 1, "--pids"),
])
def test_what_is_wrong_and_where(tmp_path, text, line, column, says):
    path = tmp_path / "p.toml"
    path.write_text(text)
    code, report = check(path)
    assert code == 1 and report["status"] == "refused" and report["sha256"] is None
    assert (report["errors"][0]["line"], report["errors"][0]["column"]) == (line, column), report
    assert says in report["errors"][0]["message"], report
    code, words = check(path, json_=False)
    assert code == 1 and words.startswith("%s:%d:%d: " % (path, line, column))


def test_all_that_is_wrong_at_once(tmp_path):
    path = tmp_path / "p.toml"
    path.write_text("[default]\nfoo = 1\npids = 0\n[owners.x]\nbar = 2\n")
    code, report = check(path)
    assert code == 1 and [e["line"] for e in report["errors"]] == [2, 3, 5]


def test_check_is_for_the_daemon_that_will_have_it(tmp_path):
    path = tmp_path / "p.toml"
    path.write_text("[default]\nmemory_mib = 600\n")
    assert check(path)[0] == 0
    assert check(path, "--", "--memory", "1G")[0] == 1
    path.chmod(0o666)
    code, words = check(path, json_=False)
    assert code == 125 and "chmod go-w" in words
    code, words = check(tmp_path / "none", json_=False)
    assert code == 125 and "No such file" in words


def test_a_daemon_does_not_start_with_a_broken_one(tmp_path, pytestconfig):
    path = tmp_path / "p.toml"
    path.write_text("[default]\nmemory_mib = 64\n")
    d = Daemon(pytestconfig.serve_dir, "--policy", path, wait=False)
    assert d.end() == 125
    assert "--policy: %s:2:1: memory_mib: is below" % path in d.log_text() and "--memory" in d.log_text()
    d.kill()


# ---- what it refuses ----------------------------------------------------------------------------------

CEILINGS = """
[daemon]
sandboxes = 4

[default]                        # bob
memory_mib = 512
cpus = 1.5
pids = 200
disk_mib = 2048
execution_seconds = 60
life_seconds = 3600
idle_seconds = 600
sandboxes = 2
tools = ["create_sandbox", "execute_code", "pip_install"]
packages = ["requests", "Left_Pad"]

[owners.alice]
memory_mib = 128                 # below what the daemon gives by itself
sandboxes = 3
packages_blocked = ["requests"]
"""


def test_every_limit_by_name(held):
    held.use(CEILINGS)
    for field, most, more in (("memory_mib", 512, 513), ("cpus", 1.5, 1.6), ("pids", 200, 201), ("disk_mib", 2048, 2049),
                              ("timeout_seconds", 3600, 3601), ("idle_seconds", 600, 601)):
        rule = "default." + {"timeout_seconds": "life_seconds"}.get(field, field)
        r = held.ask("bob", "POST", "/v1/sandboxes", {"name": "over", field: more})
        refused(r, rule, "at most %s" % most, str(more))
        assert r.error["field"] == field
        refused(held.ask("bob", "POST", "/v1/run_python", {"code": "1", field: more}), rule)
        refused(held.ask("bob", "POST", "/v1/run_shell", {"script": ":", field: more}), rule)
    with Box(held.d, memory_mib=512, cpus=1.5, pids=200, disk_mib=2048, timeout_seconds=3600, idle_seconds=600) as b:
        assert b.about()["spec"]["policy"] == hashlib.sha256(CEILINGS.encode()).hexdigest()
        refused(b.post("/extend", {"seconds": 3601}), "default.life_seconds", "from its beginning")
        assert b.post("/extend", {"seconds": 60}).status == 200
        for path, body in (("/execute", {"code": "1"}), ("/exec", {"cmd": "true"}), ("/shell", {"script": ":"})):
            refused(b.post(path, {**body, "timeout": 61}), "default.execution_seconds", "at most 60")
            refused(b.post(path, {**body, "timeout": 60.5}), "default.execution_seconds", "this is 60.5")
            assert b.post(path, {**body, "timeout": 60}).status == 200
    refused(held.ask("bob", "POST", "/execute", {"code": "1", "timeout": 61}), "default.execution_seconds")
    assert {e["rule"] for e in held.ledger("policy.refuse")} >= {"default.memory_mib", "default.execution_seconds", "default.life_seconds"}
    assert {e["owner"] for e in held.ledger("policy.refuse")} == {"bob"}


def test_an_owner_has_a_table_of_their_own(held):
    held.use(CEILINGS)
    refused(held.ask("alice", "POST", "/v1/sandboxes", {"name": "a", "memory_mib": 129}), "owners.alice.memory_mib", "at most 128")
    refused(held.ask("alice", "POST", "/v1/sandboxes", {"name": "a", "pids": 201}), "default.pids")
    # A request without a limit gets the owner's ceiling, which is below the daemon's default for others.
    assert held.ask("alice", "POST", "/v1/sandboxes", {"name": "a"}).json["spec"]["memory_mib"] == 128
    r = held.ask("alice", "POST", "/execute", {"code": "x = bytearray(200 << 20)", "session_id": "b"}).json
    assert r["status"] == "limit" and r["cause"]["kind"] == "memory", r
    assert held.ask("bob", "POST", "/v1/sandboxes", {"name": "a"}).json["spec"]["memory_mib"] == 256
    # A life without an end would exceed the ceiling.
    assert held.ask("bob", "GET", "/v1/sandboxes/a").json["spec"]["timeout_seconds"] == 3600


def test_callers_see_their_own_ceilings_alone(held):
    held.use(CEILINGS)
    mine = held.ask("alice", "GET", "/v1/policy").json
    assert mine["owner"] == "alice" and mine["sha256"] == hashlib.sha256(CEILINGS.encode()).hexdigest()
    assert mine["ceilings"]["memory_mib"] == {"rule": "owners.alice.memory_mib", "value": 128}
    assert mine["ceilings"]["packages"] == {"rule": "default.packages", "value": ["requests", "left-pad"]}
    theirs = held.ask("bob", "GET", "/v1/policy")
    assert b"alice" not in theirs.body and "packages_blocked" not in theirs.json["ceilings"]
    # The file is TOML, and every TOML parser reads it in the same way.
    said = {k: v["value"] for k, v in theirs.json["ceilings"].items()}
    meant = tomllib.loads(CEILINGS)["default"]
    assert said == {**meant, "packages": ["requests", "left-pad"]}


def test_sandboxes_at_once(held):
    held.use(CEILINGS)
    for name in ("a", "b"):
        assert held.ask("bob", "POST", "/v1/sandboxes", {"name": name}).status == 201
    for body, path in (({"name": "c"}, "/v1/sandboxes"), ({"code": "1"}, "/execute"), ({"code": "1", "session_id": "c"}, "/execute"),
                       ({"code": "1"}, "/v1/run_python"), ({"script": ":"}, "/v1/run_shell")):
        refused(held.ask("bob", "POST", path, body), "default.sandboxes", "at most 2", status=429)
    assert held.ask("bob", "GET", "/v1/policy").json["use"] == {"sandboxes": 2, "executions": 0}
    assert held.ask("bob", "POST", "/execute", {"code": "1", "session_id": "a"}).status == 200
    for name in ("a", "b"):
        assert held.ask("alice", "POST", "/v1/sandboxes", {"name": name}).status == 201
    refused(held.ask("alice", "POST", "/v1/sandboxes", {"name": "c"}), "daemon.sandboxes", "at most 4", status=429)
    held.ask("bob", "DELETE", "/v1/sandboxes/a")
    assert held.ask("bob", "POST", "/v1/sandboxes", {"name": "c"}).status == 201


def test_executions_at_once(held):
    held.use("[default]\nexecutions = 2\n")
    with Box(held.d) as b:
        p = b.start("sleep", "600")
        b.start("sleep", "600")
        for path, body in (("/execute", {"code": "1"}), ("/exec", {"cmd": "true"}), ("/shell", {"script": ":"}),
                           ("/processes", {"cmd": "true"})):
            refused(b.post(path, body), "default.executions", "at most 2", status=429)
        for path, body in (("/execute", {"code": "1"}), ("/v1/run_python", {"code": "1"}), ("/v1/run_shell", {"script": ":"})):
            refused(held.ask("bob", "POST", path, body), "default.executions", status=429)
        assert held.ask("alice", "POST", "/execute", {"code": "1"}).status == 200
        held.d.request("DELETE", "%s/processes/%s" % (b.url, p.id))
        assert wait_until(lambda: held.ask("bob", "GET", "/v1/policy").json["use"]["executions"] == 1)
        assert b.post("/execute", {"code": "1"}).status == 200
        held.use("[default]\nexecutions = 0\n")
        for path, body in (("/execute", {"code": "1"}), ("/exec", {"cmd": "true"}), ("/processes", {"cmd": "true"})):
            refused(b.post(path, body), "default.executions")


def test_tools_that_are_not_listed_are_neither_seen_nor_called(held):
    held.use(CEILINGS)
    for client in (Legacy, Modern):
        c = client(held.d, Authorization="Bearer " + TOKENS["bob"])
        assert set(c.tools()) == {"create_sandbox", "execute_code", "pip_install"}
        r = c.call("tools/call", {"name": "list_sandboxes", "arguments": {}})
        assert r["isError"] and "policy rule default.tools: " in r["content"][0]["text"], r
        r = c.tool("create_sandbox", memory_mib=1024)
        assert r["isError"] and "policy rule default.memory_mib: at most 512" in r["content"][0]["text"], r
        r = c.tool("execute_code", code="1", language="python", session_id="m", timeout=100)
        assert r["isError"] and "policy rule default.execution_seconds" in r["content"][0]["text"], r
        assert not c.tool("execute_code", code="1", language="python", session_id="m")["isError"]
    assert Modern(held.d).call("tools/list")["cacheScope"] == "private"


def test_kernels_of_jupyter(held):
    held.use("[default]\nsandboxes = 1\nexecution_seconds = 30\n")
    with Kernel(held.d) as k:
        r = held.ask("bob", "POST", "/api/kernels")
        assert r.status == 429 and b"policy rule default.sandboxes: " in r.body, r
        # A request without a time gets the longest allowed one, which is the policy's.
        held.use("[default]\nexecution_seconds = 31\n[owners.bob]\nexecution_seconds = 1\n")
        assert k.run("import time; time.sleep(60)").reply["status"] == "error"
        held.use("[default]\nexecutions = 0\n")
        r = k.run("print(6 * 7)")
        assert r.text() == "" and r.reply["status"] == "error" and "policy rule default.executions" in json.dumps(r.reply), r.reply


def test_packages(held):
    held.use(CEILINGS)
    refused(held.ask("bob", "POST", "/pip_install", {"package": "numpy"}), "default.packages", "'numpy'")
    refused(held.ask("alice", "POST", "/pip_install", {"package": "Requests"}), "owners.alice.packages_blocked", "'requests'")
    assert held.ask("bob", "POST", "/pip_install", {"package": "left.pad"}).status != 403
    r = Modern(held.d).tool("pip_install", package="numpy")
    assert r["isError"] and "policy rule default.packages" in r["content"][0]["text"]


def test_secrets(held):
    held.use("[default]\nsecrets = ['ONE']\n[owners.alice]\nsecrets = []\n")
    refused(held.ask("bob", "POST", "/v1/sandboxes", {"name": "s", "secrets": ["ONE", "TWO"]}), "default.secrets", "'TWO'")
    refused(held.ask("bob", "POST", "/v1/run_shell", {"script": "env", "secrets": ["TWO@example.com"]}), "default.secrets")
    refused(held.ask("alice", "POST", "/v1/sandboxes", {"name": "s", "secrets": ["ONE"]}), "owners.alice.secrets", "'ONE'")
    with Box(held.d, secrets=["ONE"]) as b:
        assert len(b.exec("printenv", "ONE")["stdout"].strip()) == 16


REACH = """
[default]
egress = ["*.example.org", "api.example.com", "git.example.net:22", "any.example.net:*"]
egress_denied = ["secret.example.org"]

[owners.alice]
egress = ["*"]
"""


def test_egress_is_within_the_patterns(held):
    held.use(REACH)
    for entry in ("api.example.com", "API.example.com.:443", "a.example.org", "*.b.example.org", "git.example.net:22", "any.example.net:9999"):
        with Box(held.d, egress=[entry]):
            pass
    for entry in ("example.org", "example.com", "xapi.example.com", "api.example.com:8443", "git.example.net", "*.example.com"):
        refused(held.ask("bob", "POST", "/v1/sandboxes", {"name": "e", "egress": ["a.example.org", entry]}), "default.egress", entry)
    # Also a pattern that covers it among others.
    for entry in ("secret.example.org", "secret.example.org:22", "*.example.org"):
        refused(held.ask("bob", "POST", "/v1/sandboxes", {"name": "e", "egress": [entry]}), "default.egress_denied", "secret.example.org")
    refused(held.ask("alice", "POST", "/v1/run_python", {"code": "1", "egress": ["x.example:22"]}), "owners.alice.egress")
    with Box(held.d) as b:
        refused(held.ask("bob", "PUT", b.url + "/egress", {"egress": ["example.com"]}), "default.egress")
        assert held.ask("bob", "PUT", b.url + "/egress", {"egress": ["api.example.com"]}).status == 200


LOOK = "import os; print(sorted(p for p in ('/data/secret', '/models/m/secret') if os.path.exists(p)))"
BOTH, DATA, NONE = "['/data/secret', '/models/m/secret']", "['/data/secret']", "[]"


def seen(held, who):
    """The mounts that code sees without asking for any, through every interface."""
    def ask(path, body):
        return held.ask(who, "POST", path, body).json["stdout"].strip()

    found = {
        "execute": ask("/execute", {"code": LOOK}),
        "bash": str(ask("/execute", {"code": "ls -d /data/secret /models/m/secret 2>/dev/null; true", "language": "bash"}).split()),
        "session": ask("/execute", {"code": LOOK, "session_id": unique()}),
        "run_python": ask("/v1/run_python", {"code": LOOK}),
        "run_shell": ask("/v1/run_shell", {"script": "python3 -c \"%s\"" % LOOK}),
        "limits": ask("/v1/run_python", {"code": LOOK, "memory_mib": 128}),
    }
    c = Modern(held.d, Authorization="Bearer " + TOKENS[who])
    found["mcp"] = c.tool("execute_code", code=LOOK, language="python", session_id=unique())["structuredContent"]["stdout"].strip()
    before, held.d.token = held.d.token, TOKENS[who]
    try:
        with Kernel(held.d) as k:
            found["jupyter"] = k.run(LOOK).text().strip()
    finally:
        held.d.token = before
    return found


def test_mounts_of_the_operator_are_had_as_far_as_the_rule_goes(held):
    held.use(GENEROUS)
    assert set(seen(held, "bob").values()) == {BOTH}  # and ready cells have both
    held.use("[default]\nmounts = ['/data']\n[owners.alice]\nmounts = []\n")
    assert set(seen(held, "alice").values()) == {NONE}
    assert set(seen(held, "bob").values()) == {DATA}
    held.use("[default]\nmounts = []\n[owners.alice]\nmounts = ['/models/*', '/data:ro']\n")
    assert set(seen(held, "bob").values()) == {NONE}
    assert set(seen(held, "alice").values()) == {BOTH}
    r = held.ask("alice", "POST", "/v1/run_shell", {"script": "echo x > /data/x"}).json
    assert r["exit_code"] != 0 and "Read-only" in r["stderr"], r
    held.use(GENEROUS)
    assert held.ask("alice", "POST", "/v1/run_shell", {"script": "echo x > /data/x"}).json["exit_code"] == 0


def hit(held):
    """Whether a new sandbox came from the pool."""
    before = held.d.metrics()["caisson_pool_hits_total"]
    assert held.ask("bob", "POST", "/execute", {"code": LOOK}).json["stdout"].strip() == NONE
    return held.d.metrics()["caisson_pool_hits_total"] == before + 1


def test_ready_cells_are_not_given_to_owners_who_may_not_have_their_mounts(held):
    """The first request after a new policy; the pool had a cell with both mounts, made under the old one."""
    for _ in range(3):
        held.use(GENEROUS)
        assert wait_until(lambda: held.d.filled(held.d.health()))
        assert held.ask("bob", "POST", "/execute", {"code": LOOK}).json["stdout"].strip() == BOTH
        assert wait_until(lambda: held.d.filled(held.d.health()))
        held.use("[default]\nmounts = []\n")
        assert held.ask("bob", "POST", "/execute", {"code": LOOK}).json["stdout"].strip() == NONE
        # The pool then makes cells with the mounts that every caller has.
        assert wait_until(lambda: hit(held))


def test_mounts_that_are_asked_for(held):
    held.use("[default]\nmounts = ['/data:ro', '/also/*']\n[owners.alice]\nmounts = ['/*']\n")
    for path, body in (("/v1/sandboxes", {"name": "m"}), ("/v1/run_python", {"code": "1"}), ("/v1/run_shell", {"script": ":"})):
        r = held.ask("bob", "POST", path, {**body, "mounts": ["/models/m"]})
        refused(r, "default.mounts", "'/models/m' is not among your mounts")
        assert r.error["field"] == "mounts"
        refused(held.ask("bob", "POST", path, {**body, "mounts": ["/data:rw"]}), "default.mounts", "'/data' is for you to read only")
        # A missing image is refused like one of another owner: the answer reveals nothing about those.
        refused(held.ask("bob", "POST", path, {**body, "mounts": ["/nowhere"]}), "default.mounts", "'/nowhere' is not among your mounts")
        r = held.ask("bob", "POST", path, {**body, "mounts": ["/also/nowhere"]})
        assert (r.status, r.error["code"], r.error["field"]) == (422, "invalid_value", "mounts"), r
        assert "'/also/nowhere'" in r.error["message"] and "/data:ro" in r.error["message"] and "models" not in r.error["message"], r
    r = Modern(held.d, Authorization="Bearer " + TOKENS["bob"]).tool("create_sandbox", mounts=["/models/m"])
    assert r["isError"] and "policy rule default.mounts: " in r["content"][0]["text"], r
    assert {e["rule"] for e in held.ledger("policy.refuse")} >= {"default.mounts"}
    with Box(held.d, mounts=["/data"]) as b:
        assert b.about()["spec"]["mounts"] == ["/data:ro"] and b.shell("echo x > /data/y")["exit_code"] != 0
    made = held.ask("alice", "POST", "/v1/sandboxes", {"name": "a", "mounts": ["/data"]}).json
    assert made["spec"]["mounts"] == ["/data:rw"]
    assert held.ask("alice", "POST", "/v1/sandboxes", {"name": "a", "mounts": ["/data:rw"]}).status == 200  # the same
    assert held.ask("alice", "POST", "/v1/sandboxes", {"name": "a"}).status == 409


def test_sandboxes_that_exist_keep_their_mounts(held):
    """Also with another front, which reads the record, and in a cell that replaces a lost one."""
    held.use(GENEROUS)
    with Box(held.d) as b, Box(held.d, mounts=[]) as bare, Box(held.d, mounts=["/data:ro"]) as some:
        def look(*of):
            return [x.post("/execute", {"code": LOOK}).json["stdout"].strip() for x in of]
        assert look(b, bare, some) == [BOTH, NONE, DATA]
        held.use("[default]\nmounts = ['/models/*']\n")
        os.kill(held.d.pid, signal.SIGKILL)
        held.d.wait_ready()
        assert [x.about()["spec"]["mounts"] for x in (b, bare, some)] == [["/data:rw", "/models/m:ro"], [], ["/data:ro"]]
        assert look(b, bare, some) == [BOTH, NONE, DATA]
        for x in (b, bare, some):
            assert not x.post("/execute", {"code": "x = bytearray(1 << 30)"}).json["ok"]
        assert look(b, bare, some) == [BOTH, NONE, DATA] and some.about()["epoch"] == 1
    held.use(GENEROUS)


TALK = """
import socket
def talk(s):
    try:
        s.sendall(b"x"); return s.recv(1)
    except OSError as e:
        return type(e).__name__
one, two = (socket.create_connection((n, %d)) for n in ("one.test", "two.test"))
"""


def test_what_may_be_reached_is_narrowed_at_once(held):
    held.use(GENEROUS)
    server = Server(echo)
    entries = ["one.test:%d" % server.port, "two.test:%d" % server.port]
    with Box(held.d, egress=entries) as b:
        assert b.post("/execute", {"code": TALK % server.port + "print(talk(one), talk(two))"}).json["stdout"] == "b'x' b'x'\n"
        held.use("[default]\negress = ['*:*']\negress_denied = ['two.test']\n")
        assert wait_until(lambda: b.get("/net").json["live"] == 1)
        said = b.post("/execute", {"code": "print(talk(one), talk(two))"}).json["stdout"].split()
        assert said[0] == "b'x'" and said[1] != "b'x'", said
        assert b.about()["spec"]["egress"] == entries[:1]
        held.use(GENEROUS)
        assert b.about()["spec"]["egress"] == entries[:1], "a withdrawn permission came back"
        # A front that takes over finds another policy.
        held.file.write_text("[default]\negress = []\n")
        os.kill(held.d.pid, signal.SIGKILL)
        held.d.wait_ready()
        assert wait_until(lambda: b.about()["spec"]["egress"] == [])
        assert "gaierror" in b.post("/execute", {"code": "socket.getaddrinfo('one.test', 80)"}).json["stderr"]
    server.close()
    held.use(GENEROUS)


class Slow:
    """A sandbox whose pid 1 is stopped, so that a change of its egress stays on its way."""
    seconds = 1234  # of the program by which it is found; the cell of the one before may still be ending

    def __init__(self, held, box):
        self.held = held
        Slow.seconds += 1
        command = ["sleep", str(Slow.seconds)]
        box.post("/processes", {"cmd": command[0], "args": command[1:]})
        self.pid, = [p for p in held.d.processes() if name_of(p) == "caisson-init" and [c for c in children(p) if command_of(c) == command]]

    def __enter__(self):
        os.kill(self.pid, signal.SIGSTOP)
        return self

    def __exit__(self, *_):
        os.kill(self.pid, signal.SIGCONT)

    def put(self, box, entries):
        """The request, whose client goes away at once."""
        body = json.dumps({"egress": entries}).encode()
        with self.held.d.connect() as c:
            c.sendall(b"PUT %s/egress HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\n"
                      b"Content-Length: %d\r\n\r\n%s" % (box.url.encode(), TOKENS["bob"].encode(), len(body), body))
            assert wait_until(lambda: [e for e in self.held.ledger("egress.change") if entries == json.loads(e["egress"])])


def command_of(pid):
    with open("/proc/%d/cmdline" % pid) as f:
        return f.read().split("\0")[:-1]


def test_a_change_on_its_way_is_judged_by_the_new_policy(held):
    """The client of the change has left: the daemon judges and records it all the same."""
    held.use(GENEROUS)
    server = Server(echo)
    one, two = ("%s.test:%d" % (n, server.port) for n in ("one", "two"))
    reach = "import socket\nfor n in ('one.test', 'two.test'):\n try: print(bool(socket.create_connection((n, %d))))\n except OSError: print(None)" % server.port
    for denied, left in ((False, [one, two]), (True, [one])):   # the first is the control
        held.use(GENEROUS)
        with Box(held.d, egress=[]) as b:
            with Slow(held, b) as slow:
                slow.put(b, [one, two])
                if denied:
                    held.use("[default]\negress = ['*:*']\negress_denied = ['two.test']\n")
                assert b.about()["spec"]["egress"] == [], "pid 1 was not slow"
            assert wait_until(lambda: b.about()["spec"]["egress"] == left), b.about()["spec"]
            assert b.post("/execute", {"code": reach}).json["stdout"].split() == ["True", "None" if denied else "True"]
            assert json.loads(held.ledger("egress.change")[-1]["egress"]) == left
    server.close()
    held.use(GENEROUS)


def test_a_change_without_its_client_is_made_and_kept(held):
    held.use(GENEROUS)
    with Box(held.d, egress=["one.test:80", "two.test:80"]) as b:
        with Slow(held, b) as slow:
            slow.put(b, ["one.test:80", "one.test:81"])
            slow.put(b, ["one.test:82"])
        assert wait_until(lambda: b.about()["spec"]["egress"] == ["one.test:82"]), b.about()["spec"]
        os.kill(held.d.pid, signal.SIGKILL)
        held.d.wait_ready()
        assert b.about()["spec"]["egress"] == ["one.test:82"], "a withdrawn rule came back"


# ---- another one in its place -----------------------------------------------------------------------------


def test_what_exists_goes_on_under_a_new_policy(held):
    held.use(GENEROUS)
    with Box(held.d, memory_mib=1024) as b:
        made_under = b.about()["spec"]["policy"]
        held.use("[default]\nmemory_mib = 512\n")
        assert b.exec("true")["exit_code"] == 0 and b.about()["spec"]["memory_mib"] == 1024
        assert b.about()["spec"]["policy"] == made_under != held.d.health()["policy"]["sha256"]
        refused(held.ask("bob", "POST", "/v1/sandboxes", {"name": "new", "memory_mib": 1024}), "default.memory_mib")
    assert [e["sha256"] for e in held.ledger("policy.load")][-1] == held.d.health()["policy"]["sha256"]


@pytest.mark.parametrize("spoil, line", [
    (lambda f: f.write_text("[default]\nmemory_mib = 512\npids = 'x'\n"), 3),
    (lambda f: f.write_text("[default]\nmemory_mib = 64\n"), 2),
    (lambda f: f.chmod(0o666), 0),
    (lambda f: f.unlink(), 0),
    (lambda f: (f.unlink(), f.mkdir()), 0),
])
def test_a_broken_file_changes_nothing(held, spoil, line):
    held.use("[default]\nmemory_mib = 600\n")
    sum_ = held.d.health()["policy"]["sha256"]
    spoil(held.file)
    try:
        held.reload()
        h = held.d.health()
        assert h["status"] == "healthy" and h["policy"]["sha256"] == sum_ and h["policy"]["stale"]
        assert h["policy"]["line"] == line
        assert held.d.metrics()["caisson_policy_stale"] == 1
        said = held.d.log("policy_refused")[-1]
        assert said["line"] == line and str(held.file) in said["why"]
        assert held.ledger("policy.reject")[-1]["in_force"] == sum_
        refused(held.ask("bob", "POST", "/v1/sandboxes", {"name": "n", "memory_mib": 601}), "default.memory_mib", "at most 600")
    finally:
        if held.file.is_dir():
            held.file.rmdir()
    held.use(GENEROUS)
    assert held.d.metrics()["caisson_policy_stale"] == 0


def test_a_front_that_is_killed_is_followed_by_one_under_the_same_policy(held):
    held.use("[default]\nmemory_mib = 600\n")
    with Box(held.d) as b:
        made_under = b.about()["spec"]["policy"]
        held.file.write_text("broken")
        os.kill(held.d.pid, signal.SIGKILL)
        held.d.wait_ready()
        h = held.d.health()["policy"]
        assert h["sha256"] == made_under and h["stale"] and h["line"] == 1
        assert b.about()["state"] == "running" and b.about()["spec"]["policy"] == made_under
        refused(held.ask("bob", "POST", "/v1/sandboxes", {"name": "n", "memory_mib": 601}), "default.memory_mib")
    held.use(GENEROUS)


def test_an_impossible_owner_is_reported(held):
    name = unique("nobody")
    held.use("[owners.%s]\npids = 200\n[owners.alice]\npids = 200\n" % name)
    assert [e["owner"] for e in held.d.log("policy_owner")] == [name]


def test_without_a_policy_there_are_no_ceilings(daemon):
    r = daemon.get("/v1/policy").json
    assert r["ceilings"] == {} and r["sha256"] is None
    os.kill(daemon.keeper, signal.SIGHUP)
    assert daemon.execute("1")["status"] == "ok" and "policy" not in daemon.health()
