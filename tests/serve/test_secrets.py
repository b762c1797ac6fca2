# SPDX-License-Identifier: Apache-2.0
"""test_secrets.py - Secrets by name: their sources, their owners, and the places where they must not appear."""
import contextlib
import json
import os
import secrets
import signal
import stat

import pytest

from box_lib import Box
from process import unique, wait_until
from serve_lib import Daemon

ALICE, BOB = secrets.token_hex(32), secrets.token_hex(32)


def canary(kind):
    return "canary-%s-%s" % (kind, secrets.token_hex(16))


@pytest.fixture(scope="module")
def where(tmp_path_factory):
    d = tmp_path_factory.mktemp("secrets")
    d.chmod(0o755)
    return d


def private(path, text, mode=0o600):
    path.write_text(text)
    path.chmod(mode)
    return path


def starts(where, *flags, **kw):
    """A daemon that must refuse to start: its message."""
    d = Daemon(where, *flags, wait=False, **kw)
    try:
        assert d.p.wait(30) == 125, d.log_text()
    finally:
        d.kill()
    return d.log_text()


class World:
    """One daemon with a secret of each kind."""

    def __init__(self, where):
        self.plain, self.hidden, self.alices, self.variable, self.said = (canary(k) for k in ("plain", "hidden", "alice", "variable", "said"))
        file = private(where / "secrets", "# for sandboxes\n\nPLAIN_KEY=%s\nHIDDEN_KEY@api.example.com,b.example.com=%s\nalice:ALICE_KEY=%s\n"
                       % (self.plain, self.hidden, self.alices))
        script = private(where / "say", "#!/bin/sh\n[ $# = 2 ] && printf 'SAID_KEY=%%s\\n' '%s'\n" % self.said, 0o700)
        tokens = private(where / "tokens", "alice:%s\nbob:%s\n" % (ALICE, BOB))
        self.daemon = Daemon(where, "--secrets-file", file, "--secrets-env", "OUR_SECRET_", "--secrets-command", "%s one  two" % script,
                             "--token-file", tokens, env={"OUR_SECRET_VARIABLE_KEY": self.variable})
        self.daemon.token = ALICE

    @property
    def all(self):
        return [self.plain, self.hidden, self.alices, self.variable, self.said]


@pytest.fixture(scope="module")
def world(where):
    w = World(where)
    yield w
    w.daemon.stop()


# ---- giving them ----------------------------------------------------------------------------------------


def test_plain_secrets_are_variables_of_everything_in_the_sandbox(world):
    want = {"PLAIN_KEY": world.plain, "ALICE_KEY": world.alices, "VARIABLE_KEY": world.variable, "SAID_KEY": world.said}
    with Box(world.daemon, secrets=list(want), env={"MODE": "test"}) as box:
        script = "import os, json; print(json.dumps({k: os.environ.get(k) for k in %r}))" % (list(want) + ["MODE"])
        r = box.post("/execute", {"code": script})
        assert json.loads(r.json["stdout"]) == {**want, "MODE": "test"}, r
        assert json.loads(box.exec("python3", "-c", script)["stdout"]) == {**want, "MODE": "test"}
        r = box.post("/execute", {"language": "bash", "code": "echo $PLAIN_KEY"})
        assert r.json["stdout"].strip() == world.plain
        assert box.about()["spec"]["secrets"] == list(want)
    with Box(world.daemon) as other:
        assert "canary" not in other.exec("env")["stdout"]


@pytest.mark.parametrize("asked, code, words", [
    (["NO_SUCH_KEY"], "unknown_secret", "NO_SUCH_KEY"),
    (["1BAD"], "invalid_value", "1BAD"),
    (["PLAIN_KEY@"], "invalid_value", "PLAIN_KEY@"),
    (["PLAIN_KEY@*.example.com"], "invalid_value", "*.example.com"),
    (["HIDDEN_KEY"], "invalid_value", "HIDDEN_KEY"),
    (["HIDDEN_KEY@evil.example.net"], "invalid_value", "not for that host"),
    (["PLAIN_KEY", "PLAIN_KEY@api.example.com"], "invalid_value", "both"),
])
def test_what_can_not_be_had_is_refused_by_name(world, asked, code, words):
    r = world.daemon.post("/v1/sandboxes", {"name": unique("box"), "secrets": asked})
    assert r.status == 422 and r.error["code"] == code and r.error["field"] == "secrets" and words in r.error["message"], r
    assert not any(n in r.body.decode() for n in ("SAID_KEY", "VARIABLE_KEY", "canary")), "another owner learns the names of secrets"


def test_a_secret_of_another_owner_is_as_one_that_does_not_exist(world):
    answers = [world.daemon.post("/v1/sandboxes", {"name": unique("box"), "secrets": [name]}, token=BOB) for name in ("ALICE_KEY", "NOBODY_KEY")]
    assert [r.status for r in answers] == [422, 422]
    assert answers[0].body.replace(b"ALICE", b"NOBODY") == answers[1].body


def test_a_name_is_a_variable_once(world):
    r = world.daemon.post("/v1/sandboxes", {"name": unique("box"), "secrets": ["PLAIN_KEY"], "env": {"PLAIN_KEY": "x"}})
    assert r.status == 422 and "'env'" in r.error["message"], r


# ---- sources ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("text, mode, words", [
    ("A=1\n", 0o644, "chmod 600"),
    ("A=1\nB\n", 0o600, "line 2: no '='"),
    ("A='x y'\n", 0o600, "quotes"),
    ("A= x\n", 0o600, "space"),
    ("A=x\r\n", 0o600, "control byte"),
    ("A=1\nA=2\n", 0o600, "line 2: A occurs twice"),
    ("A@Example.com=1\n", 0o600, "lower case"),
    ("A=\n", 0o600, "A has no value"),
])
def test_a_file_that_is_not_right_stops_the_start(where, text, mode, words):
    said = starts(where, "--secrets-file", private(where / unique("file"), text, mode))
    assert "--secrets-file" in said and words in said, said


def test_sources_that_can_not_be_read_stop_the_start(where):
    assert "No such file" in starts(where, "--secrets-file", where / "none")
    assert "plain file" in starts(where, "--secrets-file", where)
    assert "status 3" in starts(where, "--secrets-command", private(where / "three", "#!/bin/sh\nexit 3\n", 0o700))
    assert "start /no/such" in starts(where, "--secrets-command", "/no/such program")
    assert "end with '_'" in starts(where, "--secrets-env", "OURS")
    said = starts(where, "--secrets-env", "OUR_SECRET_", env={"OUR_SECRET_A": "canary-1\ncanary-2"})
    assert "several lines" in said and "canary" not in said


# ---- where they never appear ---------------------------------------------------------------------------------


def processes_of(pid):
    """The process and all its descendants."""
    out, todo = [], [pid]
    while todo:
        p = todo.pop()
        out.append(p)
        try:
            for t in os.listdir("/proc/%d/task" % p):
                todo += map(int, open("/proc/%d/task/%s/children" % (p, t)).read().split())
        except OSError:
            pass
    return out


def in_cell(pid):
    try:
        return os.readlink("/proc/%d/ns/user" % pid) != os.readlink("/proc/self/ns/user")
    except OSError:
        return True


def files_below(*roots):
    for root in roots:
        for d, _, names in os.walk(root):
            for n in names:
                path = os.path.join(d, n)
                with contextlib.suppress(FileNotFoundError):  # records of a live daemon appear and disappear
                    if stat.S_ISREG(os.lstat(path).st_mode):
                        yield path


def found(words, paths):
    hits = []
    for path in paths:
        try:
            with open(path, "rb") as f:
                data = f.read()
        except OSError:
            continue
        hits += [path for w in words if w.encode() in data]
    return hits


def test_values_are_nowhere_outside_of_the_sandbox(world, where):
    daemon = world.daemon
    words = world.all
    with Box(daemon, secrets=["PLAIN_KEY", "VARIABLE_KEY", "SAID_KEY"], labels={"a": "b"}) as box:
        box.post("/execute", {"code": "import os; x = len(os.environ['PLAIN_KEY'])"})
        daemon.post("/v1/sandboxes", {"name": unique("box"), "secrets": ["HIDDEN_KEY"]})
        sleeper = box.start("sleep", "1000")
        answers = [box.get().body, daemon.get("/v1/sandboxes").body, daemon.get("/metrics").body, daemon.get("/health").body,
                   daemon.get("/openapi.json").body]
        assert not [w for w in words for a in answers if w.encode() in a]
        pids = processes_of(daemon.keeper)
        outside = [p for p in pids if not in_cell(p)]
        assert len(outside) >= 3, "keeper, front, warden"
        proc = ["/proc/%d/%s" % (p, n) for p in outside for n in ("environ", "cmdline", "maps", "status", "comm")]
        assert found(words, proc) == []
        # The same search finds them in the sandbox, and in the file that they came from.
        assert found(words, ["/proc/%d/environ" % p for p in pids if in_cell(p)])
        sources = {str(where / "secrets"), str(where / "say")}
        assert set(found(words, files_below(where))) == sources
        assert sleeper.about()
        # No core: a process that is made to crash leaves none, and its own user cannot read its memory.
        limits = open("/proc/%d/limits" % daemon.pid).read()
        assert "Max core file size        0 " in limits
    assert set(found(words, files_below(where))) == sources


def test_the_environment_of_the_daemon_does_not_go_into_cells(world):
    """The same with secrets that are often in a daemon's environment."""
    with Box(world.daemon) as box:
        names = {line.partition("=")[0] for line in box.exec("env")["stdout"].splitlines()}
        assert not {n for n in names if n.startswith(("OUR_SECRET_", "CAISSON_", "AWS_", "SSH_"))} and "PATH" in names


# ---- a front that is killed -------------------------------------------------------------------------------------


def test_a_front_that_is_killed_costs_no_secret(world):
    daemon = world.daemon
    with Box(daemon, secrets=["PLAIN_KEY", "VARIABLE_KEY"]) as box:
        code = "import os; print(os.environ['PLAIN_KEY'], os.environ['VARIABLE_KEY'])"
        assert box.post("/execute", {"code": code}).json["stdout"].split() == [world.plain, world.variable]
        front = daemon.pid
        os.kill(front, signal.SIGKILL)
        wait_until(lambda: daemon.find_front() not in (None, front))
        daemon.wait_ready()
        assert box.post("/execute", {"code": code}).json["stdout"].split() == [world.plain, world.variable]
        assert box.shell("echo $PLAIN_KEY")["stdout"].strip() == world.plain
    with Box(daemon, secrets=["VARIABLE_KEY"]) as box:
        assert box.shell("echo $VARIABLE_KEY")["stdout"].strip() == world.variable
