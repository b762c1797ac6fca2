# SPDX-License-Identifier: Apache-2.0
"""test_mounts.py - --mount of the daemon: read-only, writable, and protected names in it.

Every attack runs twice: where the names are protected, nothing of it is visible from outside; where the operator has given the
protection up, it succeeds.
"""
import json
import os
import socket

import pytest

from box_lib import Box
from cli_lib import Cli, one_line

EVIL = "echo evil"
# The content that code tries to put under a trusted name. In /p, from a directory with `.git` (a hook in it), `.bashrc` and nothing else.
TRICKS = {
    "write": "echo evil > .bashrc",
    "append": "echo evil >> .bashrc",
    "truncate and write": "python3 -c \"open('.bashrc', 'r+').write('echo evil')\"",
    "make a missing one": "echo evil > .zshrc",
    "make a missing directory's": "mkdir -p .vscode; echo evil > .vscode/tasks.json",
    "a hook": "echo evil > .git/hooks/pre-commit",
    "the configuration": "echo evil >> .git/config",
    "hooks elsewhere": "mkdir -p new/hooks; echo evil > new/hooks/pre-commit; echo ../new > .git/commondir; echo evil > .git/commondir.evil",
    "remove and make": "rm -f .bashrc; echo evil > .bashrc",
    "rename over": "echo evil > x; mv -f x .bashrc",
    "rename over a missing one": "echo evil > x; mv -f x .profile",
    "rename away": "mv .bashrc y; echo evil > .bashrc",
    "rename the directory away": "mv .git g2; mkdir -p .git/hooks; echo evil > .git/hooks/pre-commit",
    "exchange": "echo evil > x; python3 -c \"import ctypes; ctypes.CDLL(None).renameat2(-100, b'x', -100, b'.bashrc', 2)\"",
    "exchange directories": "mkdir -p d/hooks; echo evil > d/hooks/pre-commit; python3 -c \"import ctypes; ctypes.CDLL(None).renameat2(-100, b'd', -100, b'.git', 2)\"",
    "hard link from it": "ln .bashrc z; echo evil >> z",
    "hard link to it": "rm -f .npmrc; echo evil > x; ln x .npmrc",
    "symbolic link in its place": "rm -f .envrc; echo evil > x; ln -s x .envrc",
    "symbolic link to it": "ln -s .bashrc s; echo evil >> s",
    "through another path": "echo evil >> sub/../.bashrc; echo evil >> /proc/self/cwd/.bashrc",
    "an open directory": "python3 -c \"import os; fd = os.open('.', os.O_RDONLY); os.write(os.open('.bashrc', os.O_WRONLY | os.O_APPEND, dir_fd=fd), b'echo evil')\"",
    "mode and write": "chmod 777 .bashrc .git .git/hooks; echo evil >> .bashrc",
}


def project(tmp_path):
    top = tmp_path / "project"
    (top / ".git" / "hooks").mkdir(parents=True)
    (top / ".git" / "config").write_text("[core]\n")
    (top / ".bashrc").write_text("true\n")
    (top / "sub").mkdir()
    top.chmod(0o777)
    return top


BELIEVED = [".git", ".bashrc", ".zshrc", ".profile", ".npmrc", ".envrc", ".vscode", ".mcp.json", ".ssh", "CLAUDE.md"]


def believed(top):
    """Whether one of the names has the attacker's content, as a person who works there would see it."""
    found = []
    for name in BELIEVED:
        path = top / name
        files = [path] if not path.is_dir() else [p for p in path.rglob("*") if p.is_file() or p.is_symlink()]
        found += [str(p.relative_to(top)) for p in files if p.exists() and "evil" in p.read_text()]
    return found


def play(serve, top, mode):
    """The attacks that succeed, each in a sandbox and a project of its own."""
    landed = set()
    d = serve("--pool", "0", "--mount", "%s:/p:%s" % (top, mode))
    with Box(d) as box:
        for trick, script in TRICKS.items():
            box.shell("cd /p; " + script)
            if believed(top):
                landed.add(trick)
                yield trick
    assert box.name


@pytest.mark.slow
def test_protected_names_can_not_be_had(serve, tmp_path):
    top = project(tmp_path)
    assert list(play(serve, top, "rw")) == []
    assert (top / ".git/hooks").is_dir() and (top / ".git/config").read_text() == "[core]\n" and (top / ".bashrc").read_text() == "true\n"
    assert (top / "x").exists()  # it can be written in other ways


@pytest.mark.slow
@pytest.mark.parametrize("trick", list(TRICKS))
def test_without_protection_each_of_them_lands(serve, tmp_path, trick):
    top = project(tmp_path)
    d = serve("--pool", "0", "--mount", "%s:/p:rw-unprotected" % top)
    with Box(d) as box:
        box.shell("cd /p; " + TRICKS[trick])
    assert believed(top), os.listdir(top)


def test_a_few_tricks_and_their_controls(serve, tmp_path):
    """The part of the two tests above that `make test` runs: one daemon, two mounts."""
    one, two = project(tmp_path), tmp_path / "two"
    os.rename(one, tmp_path / "one")
    one = tmp_path / "one"
    project(tmp_path).rename(two)
    d = serve("--pool", "0", "--mount", "%s:/one:rw" % one, "--mount", "%s:/two:rw-unprotected" % two, "--mount", "%s:/three" % two)
    with Box(d) as box:
        for trick in ("write", "make a missing one", "rename the directory away", "exchange", "hard link to it"):
            script = TRICKS[trick]
            box.shell("cd /one; " + script)
            box.shell("cd /two; " + script)
            assert believed(one) == [] and believed(two), trick
        assert box.shell("echo fine > /one/fine")["exit_code"] == 0 and (one / "fine").read_text() == "fine\n"
        r = box.shell("echo x > /three/x")
        assert r["exit_code"] != 0 and "Read-only" in r["stderr"]
        # The interpreter, which a zygote forked, and a program of pid 1: no set-id bit reaches the machine.
        code = "import os\nopen('/two/tool', 'w')\nfor mode in (0o2755, 0o4755, 0o755):\n    try: os.chmod('/two/tool', mode); print(oct(mode))\n" \
               "    except PermissionError: print('refused')"
        assert box.post("/execute", {"code": code}).json["stdout"] == "refused\nrefused\n0o755\n"
        assert box.shell("chmod g+s /two/tool")["exit_code"] == 1 and (two / "tool").stat().st_mode & 0o7777 == 0o755


def test_where_the_protection_ends(serve, tmp_path):
    """As docs/workspaces.md describes: directories below the mounted one, and the recommendations for repositories there."""
    top = project(tmp_path)
    for name in ("inner", "apart"):
        (top / name / ".git" / "hooks").mkdir(parents=True)
        (top / name).chmod(0o777)
    (top / "sub").chmod(0o777)
    d = serve("--pool", "0", "--mount", "%s:/p:rw" % top, "--mount", "%s:/p/apart:rw" % (top / "apart"))
    with Box(d) as box:
        box.shell("cd /p; mkdir sub/.git; echo evil > sub/.git/config; echo evil > sub/.envrc; echo evil > inner/.git/hooks/pre-commit; "
                  "echo evil > apart/.git/hooks/pre-commit; echo evil > .git/config; mv apart away; mkdir -p apart/.git/hooks; "
                  "echo evil > apart/.git/hooks/pre-commit; echo fine > apart/fine")
    assert [(top / p).exists() for p in ("sub/.git/config", "sub/.envrc", "inner/.git/hooks/pre-commit")] == [True] * 3
    assert believed(top) == [] and believed(top / "apart") == []
    assert (top / "apart/fine").exists() and not (top / "away").exists()


def test_what_can_not_be_protected_is_refused_at_the_start(serve, tmp_path):
    top = project(tmp_path)
    os.remove(top / ".bashrc")
    os.symlink("elsewhere", top / ".bashrc")
    d = serve("--mount", "%s:/p:rw" % top, wait=False)
    assert d.end() == 125 and ".bashrc" in d.log_text() and "symbolic link" in d.log_text() and ":rw-unprotected" in d.log_text()


def test_which_of_them_a_sandbox_has(serve, tmp_path):
    """All mounts by default; otherwise the named ones, each of which is there or refused."""
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name).chmod(0o777)
        (tmp_path / name / "here").write_text(name)
    d = serve("--pool", "1", "--mount", "%s:/one:rw" % (tmp_path / "one"), "--mount", "%s:/two" % (tmp_path / "two"))
    look = "cat /one/here /two/here 2>/dev/null; true"
    for asked, has, sees in ((None, ["/one:rw", "/two:ro"], "onetwo"), (["/two"], ["/two:ro"], "two"), (["/two", "/one"], ["/one:rw", "/two:ro"], "onetwo"),
                             (["/one:ro"], ["/one:ro"], "one"), ([], [], "")):
        spec = {} if asked is None else {"mounts": asked}
        with Box(d, **spec) as box:
            assert box.about()["spec"]["mounts"] == has and box.shell(look)["stdout"] == sees, asked
            assert (box.shell("echo x > /one/x")["exit_code"] == 0) == ("/one:rw" in has)
            assert d.post("/v1/sandboxes", {"name": box.name, **spec}).status == 200
            assert d.post("/v1/sandboxes", {"name": box.name, "mounts": ["/one", "/two:ro"]}).status == (200 if len(has) == 2 else 409)
        assert d.post("/v1/run_shell", {"script": look, **spec}).json["stdout"] == sees
    made = [json.loads(line) for line in (d.state / "ledger/ledger.jsonl").read_text().splitlines() if '"sandbox.create"' in line]
    assert [json.loads(e["mounts"]) for e in made] == [["/one:rw", "/two:ro"], ["/two:ro"], ["/one:rw", "/two:ro"], ["/one:ro"], []]
    for asked, says in ((["/three"], "'/three' is not among your mounts (/one:rw, /two:ro)"), (["/two:rw"], "'/two:rw' is not among"),
                        (["one"], "invalid place"), (["/one:/two"], "invalid place"), (["/one/"], "invalid place"), (["/one:rx"], "invalid place"),
                        (["/one", "/one:ro"], "twice"), (["/" + "x" * 300], "invalid place")):
        r = d.post("/v1/sandboxes", {"name": "x", "mounts": asked})
        assert (r.status, r.error["code"], r.error["field"]) == (422, "invalid_value", "mounts") and says in r.error["message"], r
    assert d.post("/v1/sandboxes", {"name": "x", "mounts": "/one"}).error["code"] == "wrong_type"


def test_the_command_asks_for_some_or_none(serve, tmp_path):
    d = serve("--pool", "0", "--mount", "%s:/one:rw" % tmp_path, "--mount", "%s:/two" % tmp_path)
    cli = Cli(CAISSON_URL="http://127.0.0.1:%d" % d.port)
    for name, flags, has in (("all", (), ["/one:rw", "/two:ro"]), ("none", ("--mount-only", "none"), []),
                             ("some", ("--mount-only", "/two", "--mount-only", "/one:ro"), ["/one:ro", "/two:ro"])):
        cli.ok("create", name, *flags)
        assert d.get("/v1/sandboxes/" + name).json["spec"]["mounts"] == has
    one_line(cli("create", "x", "--mount-only", "%s:/three" % tmp_path), "--mount-only", "no path of this machine")
    r = cli("create", "x", "--mount-only", "/three")
    assert r.code != 0 and "/one:rw, /two:ro" in "\n".join(r.lines()), r


def test_a_session_whose_mount_is_gone_is_not_continued_without_it(serve, tmp_path):
    (tmp_path / "one").mkdir()
    d = serve("--mount", "%s:/one" % (tmp_path / "one"))
    d.execute("x = 1", session_id="s")
    d.stop()
    again = serve(state=d.state)
    r = again.post("/execute", {"code": "x", "session_id": "s"})
    assert (r.status, r.error["code"]) == (422, "invalid_value") and "'/one:ro'" in r.error["message"] and "you have no mounts" in r.error["message"], r
    assert again.get("/v1/sandboxes/s").json["spec"]["mounts"] == ["/one:ro"]


@pytest.mark.parametrize("value", ["relative:/p", "/tmp", "/tmp:p", "/tmp:/proc/x", "/tmp:/a/../b", "/nowhere/at/all:/p"])
def test_what_is_no_mount_is_refused_at_the_start(serve, value):
    d = serve("--mount", value, wait=False)
    assert d.end() == 125 and "--mount" in d.log_text(), d.log_text()


def test_a_socket_of_the_host_in_a_mount(serve, tmp_path):
    """A socket in a read-only mount is out of reach, and its other files are readable; in a writable one it can be used."""
    tmp_path.chmod(0o755)
    (tmp_path / "file").write_text("content")
    ask = "import socket; print(open('%s/file').read(), socket.socket(socket.AF_UNIX).connect_ex('%s/sock'))"
    d = serve("--pool", "0", "--mount", "%s:/read" % tmp_path, "--mount", "%s:/write:rw-unprotected" % tmp_path)
    with socket.socket(socket.AF_UNIX) as s, Box(d) as box:
        s.bind(str(tmp_path / "sock"))
        s.listen(5)
        s.settimeout(0)
        said = box.shell("python3 -c \"%s\"" % ask.replace("%s", "/read"))["stdout"].split()
        assert said[0] == "content" and said[1] in ("13", "111"), said
        try:
            s.accept()
            raise AssertionError("the host's socket was reached through a read-only mount")
        except BlockingIOError:
            pass
        assert box.shell("python3 -c \"%s\"" % ask.replace("%s", "/write"))["stdout"] == "content 0\n"
        s.accept()[0].close()
