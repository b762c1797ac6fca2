# SPDX-License-Identifier: Apache-2.0
"""test_workspaces.py - Directories that outlive sandboxes: modes, changes, commits, quotas, and owners."""
import os
import signal

import pytest

from box_lib import Box
from cli_lib import Cli
from process import Later, unique, wait_until
from serve_lib import Held

MAKE = r"""
import os, socket
os.chdir('/workspace')
os.makedirs('dir/sub')
open('file', 'w').write('one')
open('big', 'wb').write(bytes(range(256)) * 4096)
open('dir/sub/deep', 'w').write('deep')
os.symlink('file', 'link')
os.symlink('/nowhere/at/all', 'dangling')
os.link('file', 'second')
os.mkfifo('pipe')
open('run.sh', 'w').write('#!/bin/sh\n')
os.chmod('run.sh', 0o750)
os.setxattr('file', 'user.note', b'kept')
open('caf\u00e9 \n name', 'w').write('odd')
"""


def make(d, **fields):
    name = unique("ws")
    r = d.post("/v1/workspaces", {"name": name, **fields})
    assert r.status == 201, r
    return name


def run(box, script):
    r = box.shell(script)
    assert r["exit_code"] == 0, r
    return r["stdout"]


def python(box, code):
    r = box.exec("python3", "-c", code)
    assert r["exit_code"] == 0, r
    return r["stdout"]


def changes(r):
    assert r.status == 200, r
    assert r.json["count"] == len(r.json["changes"])
    return {c["path"]: c["change"] for c in r.json["changes"]}


def diff(box):
    return changes(box.get("/workspace/diff"))


def commit(box):
    return changes(box.post("/workspace/commit"))


@pytest.fixture
def d(daemon):
    return daemon


def test_what_is_committed_is_there_for_the_next(d):
    ws = make(d)
    with Box(d, workspace=ws) as a:
        python(a, MAKE)
        commit(a)
    with Box(d, workspace=ws) as b:
        assert run(b, "cat file second dir/sub/deep; readlink link; readlink dangling; stat -c %a run.sh; stat -c %F pipe").split("\n") == \
            ["oneonedeepfile", "/nowhere/at/all", "750", "fifo", ""]


# ---- what changed ------------------------------------------------------------------------------------------------------------


def fill(d):
    ws = make(d)
    with Box(d, workspace=ws) as box:
        python(box, MAKE)
        commit(box)
    return ws


CHANGES = [
    ("nothing", "true", {}),
    ("read", "cat file big; ls -lR; cat dir/sub/deep", {}),
    ("touched", "touch file big; chmod 644 file", {}),
    ("rewritten as it was", "cp big x; mv x big; printf deep > dir/sub/deep", {}),
    ("added", "echo new > new; mkdir d2; ln -s x d2/l; mkfifo d2/p", {"new": "added", "d2": "added", "d2/l": "added", "d2/p": "added"}),
    ("content", "printf two > big", {"big": "modified"}),
    ("one byte in the middle", "printf X | dd of=big bs=1 seek=500000 conv=notrunc 2>/dev/null", {"big": "modified"}),
    ("one byte at the end", "printf X | dd of=big bs=1 seek=1048575 conv=notrunc 2>/dev/null", {"big": "modified"}),
    ("longer", "printf X >> big", {"big": "modified"}),
    ("mode", "chmod 600 big; chmod 700 dir; chmod 600 pipe", {"big": "mode", "dir": "mode", "pipe": "mode"}),
    ("attribute", "python3 -c \"import os; os.setxattr('big', 'user.x', b'1')\"", {"big": "mode"}),
    ("attribute gone", "python3 -c \"import os; os.removexattr('run.sh', 'user.none') if 0 else os.setxattr('dir', 'user.d', b'')\"", {"dir": "mode"}),
    ("removed", "rm big link pipe; rm -r dir", {"big": "removed", "link": "removed", "pipe": "removed", "dir": "removed",
                                                "dir/sub": "removed", "dir/sub/deep": "removed"}),
    ("moved", "mv dir moved", {"dir": "removed", "dir/sub": "removed", "dir/sub/deep": "removed", "moved": "added", "moved/sub": "added",
                               "moved/sub/deep": "added"}),
    ("link elsewhere", "ln -sfn big link", {"link": "modified"}),
    ("file to link", "rm big; ln -s file big", {"big": "type"}),
    ("file to directory", "rm big; mkdir big; touch big/x", {"big": "type", "big/x": "added"}),
    ("directory to file", "rm -r dir; echo > dir", {"dir": "type", "dir/sub": "removed", "dir/sub/deep": "removed"}),
    ("link to file", "rm link; printf one > link", {"link": "type"}),
    ("pipe to file", "rm pipe; echo > pipe", {"pipe": "type"}),
    ("third name", "ln big third", {"third": "added"}),
    ("socket", "python3 -c \"import socket; socket.socket(socket.AF_UNIX).bind('sock')\"", {}),
    ("directory made anew", "rm -r dir; mkdir -p dir/sub; printf deep > dir/sub/deep", {}),
]


def test_a_diff_tells_each_kind_of_change(d):
    """One sandbox, discarded after each: this also tests discard."""
    ws = fill(d)
    with Box(d, workspace=ws) as box:
        for what, script, expected in CHANGES:
            run(box, script)
            assert diff(box) == expected, what
            assert box.post("/workspace/discard").status == 204
            assert diff(box) == {}, what
        assert box.about()["spec"]["workspace"]["mode"] == "cow"


def test_a_commit_keeps_each_kind_of_change(d):
    ws = fill(d)
    script = "; ".join(["echo new > new", "chmod 600 big", "rm run.sh", "ln -sfn big link", "rm pipe; mkdir pipe; touch pipe/x",
                        "echo n > n1; ln n1 n2", "python3 -c \"import os; os.setxattr('dir', 'user.d', b'1')\""])
    with Box(d, workspace=ws) as box:
        run(box, script)
        before = diff(box)
        assert commit(box) == before and len(before) == 9
        assert diff(box) == {} and commit(box) == {}  # it continues from there
        run(box, "echo later > later")
        assert commit(box) == {"later": "added"}
    with Box(d, workspace=ws + ":ro") as box:
        assert run(box, "cat new later; stat -c %a big; readlink link; ls pipe; ls run.sh 2>/dev/null || echo none").split() == \
            ["new", "later", "600", "big", "x", "none"]
        assert run(box, "stat -c %i n1") == run(box, "stat -c %i n2")
        assert python(box, "import os; print(os.getxattr('/workspace/dir', 'user.d'), os.getxattr('/workspace/file', 'user.note'))") == "b'1' b'kept'\n"


def test_nothing_is_discarded_under_code_that_runs(d):
    held = Held(d)
    with Box(d, workspace=make(d)) as box:
        running = Later(lambda: box.post("/execute", {"code": held.code, "timeout": 100}))
        assert held.there()
        r = box.post("/workspace/discard")
        assert r.status == 409 and r.error["code"] == "session_busy", r
        held.let_go()
        running.result()
        assert box.post("/workspace/discard").status == 204


def test_labels_that_can_not_be_kept_are_refused(d):
    r = d.post("/v1/workspaces", {"name": unique("ws"), "labels": {"k": "v" * 70000}})
    assert r.status == 422 and (r.error["code"], r.error["field"]) == ("out_of_range", "labels"), r


def test_what_is_not_committed_is_gone(d):
    ws = make(d)
    with Box(d, workspace=ws) as box:
        run(box, "echo x > x")
    with Box(d, workspace=ws) as box:
        assert run(box, "ls -A") == ""


def test_an_unreadable_file_is_named(d):
    ws = make(d)
    with Box(d, workspace=ws) as box:
        run(box, "echo x > closed; chmod 0 closed")
        r = box.post("/workspace/commit")
        assert r.status == 422 and r.error["code"] == "workspace_unreadable" and "closed" in r.error["message"], r
        run(box, "rm closed; echo y > open")
        assert commit(box) == {"open": "added"}


# ---- several ------------------------------------------------------------------------------------------------------------------


def test_two_sandboxes_commit_different_things(d):
    ws = fill(d)
    with Box(d, workspace=ws) as a, Box(d, workspace=ws) as b:
        run(a, "echo a > a; rm link")
        run(b, "echo b > b; printf changed > dir/sub/deep")
        assert commit(a) == {"a": "added", "link": "removed"}
        assert commit(b) == {"b": "added", "dir/sub/deep": "modified"}
        # Each continues with its content, and keeps the other's changes.
        run(a, "echo again > a")
        assert commit(a) == {"a": "modified"}
    with Box(d, workspace=ws) as c:
        assert run(c, "cat a b dir/sub/deep; ls link 2>/dev/null || echo none").split() == ["again", "b", "changed" + "none"]


@pytest.mark.parametrize("mine, theirs, names", [
    ("echo a > same", "echo b > same", {"same"}),
    ("echo a > file", "rm file", {"file"}),
    ("rm file", "echo a > file", {"file"}),
    ("rm file; mkdir file", "echo b > file", {"file"}),
])
def test_the_same_path_twice_is_refused_with_its_name(d, mine, theirs, names):
    ws = fill(d)
    with Box(d, workspace=ws) as a, Box(d, workspace=ws) as b:
        run(a, theirs)
        run(b, mine + "; echo free > free")
        commit(a)
        r = b.post("/workspace/commit")
        assert r.status == 409 and r.error["code"] == "workspace_conflict", r
        assert all(n in r.error["message"] for n in names), r
        assert d.get("/v1/workspaces/" + ws).json["generation"] == 3
    with Box(d, workspace=ws) as c:
        assert run(c, "ls free 2>/dev/null || echo none") == "none\n"  # all of it, or nothing


@pytest.mark.slow
def test_what_one_has_does_not_change_under_it(d):
    ws = fill(d)
    with Box(d, workspace=ws + ":ro") as reader, Box(d, workspace=ws) as writer:
        run(writer, "echo other > file; rm big; echo n > n")
        commit(writer)
        run(writer, "echo third > file")
        commit(writer)
        assert run(reader, "cat file; ls big; ls n 2>/dev/null || echo none").split() == ["onebig", "none"]


# ---- modes --------------------------------------------------------------------------------------------------------------------


def test_read_only_is_read_only(d):
    ws = fill(d)
    with Box(d, workspace=ws + ":ro") as box:
        r = box.shell("echo x > file; rm file; mkdir y; ln file z; mv file w; chmod 777 file; touch file")
        assert r["stderr"].count("Read-only file system") == 7, r
        for r in (box.get("/workspace/diff"), box.post("/workspace/commit"), box.post("/workspace/discard")):
            assert r.status == 409 and r.error["code"] == "not_copy_on_write"


@pytest.mark.parametrize("flags", [[], ["--workspace-rw"]])
def test_writing_in_place_is_seen_by_all(serve, flags):
    d = serve("--pool", "0", *flags)
    ws = make(d)
    if not flags and d.get("/v1/workspaces/" + ws).json["quota"] != "kernel":
        pytest.skip("no loop devices here, so that nothing but --workspace-rw allows it")
    with Box(d, workspace=ws + ":rw") as a, Box(d, workspace=ws + ":rw") as b, Box(d, workspace=ws + ":ro") as c:
        run(a, "echo from a > x; mkdir -m 700 p; echo q > p/q")
        assert run(b, "cat x p/q; echo from b >> x; id -u; stat -c %u x").split() == ["from", "a", "q", "1000", "1000"]
        assert run(c, "cat x") == "from a\nfrom b\n"
        r = d.post("/v1/sandboxes", {"name": unique(), "workspace": ws})
        assert r.status == 409 and r.error["code"] == "workspace_busy" and any(x.name in r.error["message"] for x in (a, b)), r
    with Box(d, workspace=ws) as e:
        assert run(e, "cat x") == "from a\nfrom b\n"
        r = d.post("/v1/sandboxes", {"name": unique(), "workspace": ws + ":rw"})
        assert r.status == 409 and e.name in r.error["message"], r


def test_without_a_quota_there_are_no_writes_in_place(d):
    ws = make(d)
    if d.get("/v1/workspaces/" + ws).json["quota"] == "kernel":
        pytest.skip("the kernel keeps the quota here")
    r = d.post("/v1/sandboxes", {"name": unique(), "workspace": ws + ":rw"})
    assert r.status == 422 and r.error["code"] == "quota_unavailable" and r.error["field"] == "workspace", r


@pytest.mark.parametrize("mode", ["ro", "cow"])
def test_what_is_denied_is_not_there(d, mode):
    ws = make(d)
    with Box(d, workspace=ws) as box:
        run(box, "mkdir -p secrets a/secrets src/deep; touch secrets/k a/secrets/k key.pem src/deep/x.pem src/main.c README")
        commit(box)
    with Box(d, workspace={"name": ws, "mode": mode, "deny": ["/secrets", "*.pem"]}) as box:
        assert run(box, "find . | sort").split() == [".", "./README", "./a", "./a/secrets", "./a/secrets/k", "./src", "./src/deep", "./src/main.c"]
    with Box(d, workspace={"name": ws, "mode": mode, "allow": ["src/**", "README"], "deny": ["*.pem"]}) as box:
        assert run(box, "find . -type f | sort").split() == ["./README", "./src/main.c"]


def test_what_is_hidden_is_neither_lost_nor_replaced_by_a_commit(d):
    ws = make(d)
    with Box(d, workspace=ws) as box:
        run(box, "mkdir secrets; echo key > secrets/k; echo a > a")
        commit(box)
    with Box(d, workspace={"name": ws, "deny": ["secrets"]}) as box:
        run(box, "echo b > b; rm a")
        assert commit(box) == {"b": "added", "a": "removed"}
        run(box, "echo c > b")
        assert commit(box) == {"b": "modified"}
        run(box, "mkdir secrets; echo mine > secrets/k")
        r = box.post("/workspace/commit")
        assert r.status == 409 and "secrets/k" in r.error["message"], r
    with Box(d, workspace=ws) as box:
        assert run(box, "cat secrets/k b; ls a 2>/dev/null || echo none").split() == ["key", "c", "none"]


def test_only_some_directories_are_writable(d):
    ws = fill(d)
    with Box(d, workspace={"name": ws, "write": ["dir/sub", "out"]}) as box:
        assert run(box, "echo x > out/x; echo y >> dir/sub/deep; cat dir/sub/deep") == "deepy\n"
        for attempt in ("echo x > file", "mkdir q", "mv dir e", "mv out p", "rm out/x; rmdir out", "mv dir/sub dir/t", "ln file out/f", "echo z > dir/z",
                        "python3 -c \"import ctypes; l = ctypes.CDLL(None); exit(l.renameat2(-100, b'out', -100, b'dir', 2) != 0)\""):
            assert box.shell(attempt)["exit_code"] != 0, attempt
        run(box, "echo x > out/x")
        assert diff(box) == {"out": "added", "out/x": "added", "dir/sub/deep": "modified"}


# ---- limits -------------------------------------------------------------------------------------------------------------------


def test_more_than_the_quota_is_not_committed(d):
    ws = make(d, quota_mib=2, quota_files=5)
    with Box(d, workspace=ws) as box:
        run(box, "head -c 1500000 /dev/urandom > a")
        commit(box)
        run(box, "head -c 1500000 /dev/urandom > b")
        r = box.post("/workspace/commit")
        assert r.status == 413 and r.error["code"] == "workspace_full" and "2 MiB" in r.error["message"], r
        run(box, "rm b; touch 1 2 3 4 5")
        r = box.post("/workspace/commit")
        assert r.status == 413 and "5 files" in r.error["message"], r
        run(box, "rm 1")
        assert len(commit(box)) == 4
    about = d.get("/v1/workspaces/" + ws).json
    assert about["generation"] == 3 and about["bytes"] == 1500000 and about["files"] == 5


@pytest.mark.slow
def test_a_copy_is_bounded_by_the_kernel(d):
    ws = make(d)
    with Box(d, workspace=ws, disk_mib=4) as box:
        r = box.shell("for i in 1 2 3 4 5 6; do head -c 1000000 /dev/zero > $i; done; du -sk . | cut -f1")
        assert "No space left" in r["stderr"] and int(r["stdout"]) <= 4 << 10


@pytest.mark.slow
def test_who_writes_in_place_is_held_by_the_kernel(d):
    ws = make(d, quota_mib=8, quota_files=200)
    if d.get("/v1/workspaces/" + ws).json["quota"] != "kernel":
        pytest.skip("no loop devices here")
    with Box(d, workspace=ws + ":rw", disk_mib=64) as a, Box(d, workspace=ws + ":rw") as b:
        r = a.shell("for i in $(seq 40); do head -c 1000000 /dev/zero > $i || break; done; du -sk . | cut -f1")
        assert "No space left" in r["stderr"] and 8 << 10 <= int(r["stdout"]) <= 24 << 10, r
        assert "No space left" in b.shell("echo x > y; head -c 100000 /dev/zero > z")["stderr"]
        run(a, "rm -f *")
        r = b.shell("for i in $(seq 500); do touch f$i || break; done; ls | wc -l")
        assert "No space left" in r["stderr"] and 200 <= int(r["stdout"]) < 300, r
    assert d.request("DELETE", "/v1/workspaces/" + ws).status == 204


# ---- whose ---------------------------------------------------------------------------------------------------------------------


def test_workspaces_are_made_once_listed_and_removed(d):
    ws = make(d, labels={"team": "blue"}, quota_mib=7)
    again = d.post("/v1/workspaces", {"name": ws, "labels": {"team": "blue"}, "quota_mib": 7})
    assert again.status == 200 and again.json["quota_mib"] == 7
    other = d.post("/v1/workspaces", {"name": ws})
    assert other.status == 409 and other.error["code"] == "workspace_exists"
    assert [w["name"] for w in d.get("/v1/workspaces?label=team=blue").json["workspaces"]] == [ws]
    with Box(d, workspace=ws) as box:
        about = d.get("/v1/workspaces/" + ws).json
        assert about["sandboxes"] == [{"name": box.name, "mode": "cow"}]
        r = d.request("DELETE", "/v1/workspaces/" + ws)
        assert r.status == 409 and r.error["code"] == "workspace_busy" and box.name in r.error["message"]
    assert d.request("DELETE", "/v1/workspaces/" + ws).status == 204
    assert d.get("/v1/workspaces/" + ws).status == 404 and d.request("DELETE", "/v1/workspaces/" + ws).status == 404
    r = d.post("/v1/sandboxes", {"name": unique(), "workspace": ws})
    assert r.status == 404 and r.error["code"] == "no_such_workspace", r


@pytest.mark.slow
def test_another_owners_does_not_exist(serve, tmp_path):
    tokens = tmp_path / "tokens"
    tokens.write_text("ann:%s\nbob:%s\n" % ("a" * 32, "b" * 32))
    tokens.chmod(0o600)
    d = serve("--pool", "0", "--token-file", str(tokens))
    ann, bob = {"token": "a" * 32}, {"token": "b" * 32}
    assert d.post("/v1/workspaces", {"name": "w"}, **ann).status == 201
    assert d.get("/v1/workspaces/w", **bob).status == 404
    assert d.request("DELETE", "/v1/workspaces/w", **bob).status == 404
    assert d.get("/v1/workspaces", **bob).json["workspaces"] == []
    assert d.post("/v1/sandboxes", {"name": "s", "workspace": "w"}, **bob).error["code"] == "no_such_workspace"
    assert d.post("/v1/workspaces", {"name": "w"}, **bob).status == 201  # a name of his own


@pytest.mark.parametrize("value, word", [
    ("a b", "name"), ("../x", "name"), ("x:no", "mode"), ({"mode": "ro"}, "name"), ({"name": "x", "deny": ["../y"]}, "pattern"),
    ({"name": "x", "deny": "y"}, "pattern"), ({"name": "x", "mode": "rw", "deny": ["y"]}, "rw"), ({"name": "x", "write": ["/abs"]}, "write"),
    ({"name": "x", "write": ["a/../b"]}, "write"), ({"name": "x", "mode": "ro", "write": ["a"]}, "read-only"), ({"name": "x", "else": 1}, "unknown field"),
    ({"name": "x", "tree": "g1"}, "unknown field"),
])
def test_what_makes_no_sense_is_refused_by_name(d, value, word):
    r = d.post("/v1/sandboxes", {"name": unique(), "workspace": value})
    assert r.status == 422 and r.error["field"] == "workspace" and word in r.error["message"], r


# ---- ends ----------------------------------------------------------------------------------------------------------------------


def test_it_outlives_the_daemon_and_a_sandbox_outlives_the_front(serve):
    d = serve("--pool", "0")
    ws = make(d)
    with Box(d, workspace=ws) as box:
        run(box, "echo kept > kept")
        commit(box)
        run(box, "echo copied > copied")
        old = d.pid
        os.kill(old, signal.SIGKILL)
        assert wait_until(lambda: d.find_front() not in (None, old) and d.running())
        assert run(box, "cat copied") == "copied\n"
        assert commit(box) == {"copied": "added"}
        run(box, "echo lost > lost")
    d.stop()
    d.start()
    d.wait_ready()
    about = d.get("/v1/workspaces/" + ws).json
    assert about["generation"] == 3 and about["sandboxes"] == []
    with Box(d, workspace=ws) as box:
        assert run(box, "ls").split() == ["copied", "kept"]


def trees(d, ws):
    """The files on the disk of the only workspace."""
    top = os.path.join(d.state, "workspaces")
    (key,) = os.listdir(top)
    return sorted(os.listdir(os.path.join(top, key)))


@pytest.mark.slow
def test_nothing_is_left_of_old_generations(serve):
    d = serve("--pool", "0")
    ws = make(d)
    with Box(d, workspace=ws) as a, Box(d, workspace={"name": ws, "deny": ["x"]}) as b:
        for i in range(3):
            run(a, "echo %d > a" % i)
            commit(a)
        run(b, "echo b > b")
        commit(b)
        assert "g5" in trees(d, ws)
    assert wait_until(lambda: trees(d, ws) == ["g5"]), trees(d, ws)


@pytest.mark.slow
@pytest.mark.parametrize("whom", ["workspace store", "front", "keeper"])
def test_a_crash_in_the_middle_of_a_commit_leaves_the_old_or_the_new(serve, whom):
    d = serve("--pool", "0")
    ws = make(d, quota_mib=200)
    box = Box(d, workspace=ws)
    run(box, "echo 1 > mark; mkdir many; for i in $(seq 300); do echo 1 > many/$i; done")
    commit(box)
    run(box, "echo 2 > mark; for i in $(seq 300); do echo 2 > many/$i; done; head -c 60000000 /dev/zero > many/bulk")
    late = Later(lambda: box.post("/workspace/commit"))
    top = os.path.join(d.state, "workspaces")
    assert wait_until(lambda: late.done() or any(n.startswith("new.") for n in trees(d, ws)))
    victims = {"workspace store": lambda: d.named("caisson-workspace-store"), "front": lambda: [d.pid], "keeper": lambda: [d.keeper, d.pid, *d.named("caisson-workspace-store")]}
    for pid in victims[whom]():
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
    if whom == "keeper":
        d.kill()
    else:
        assert wait_until(late.done) and wait_until(lambda: d.find_front() is not None and d.ready())
        d.stop()
    d.start()
    d.wait_ready()
    assert not [n for n in trees(d, ws) if n.startswith("new.")] and os.listdir(top)
    with Box(d, workspace=ws) as box:
        seen = set(run(box, "cat mark many/[0-9]*").split())
        assert seen in ({"1"}, {"2"}), seen
        assert (run(box, "ls many/bulk 2>/dev/null || echo none") == "none\n") == (seen == {"1"})


# ---- at the command line -------------------------------------------------------------------------------------------------------


def test_the_command_line_does_all_of_it(daemon, tmp_path):
    cli = Cli(CAISSON_URL="http://127.0.0.1:%d" % daemon.port)

    def caisson(*args, code=0):
        r = cli(*args)
        assert r.code == code, r
        return (r.out if code == 0 else r.err).decode()

    ws, box = unique("ws"), unique("box")
    (tmp_path / "in" / "sub").mkdir(parents=True)
    (tmp_path / "in" / "sub" / "file").write_text("text")
    assert caisson("workspace", "create", ws, "--disk", "64M").strip() == ws
    assert ws in caisson("workspace", "ls")
    caisson("workspace", "cp", "-r", str(tmp_path / "in"), ws + ":data")
    caisson("workspace", "cp", "-r", ws + ":.", str(tmp_path / "out"))
    assert (tmp_path / "out" / "data" / "sub" / "file").read_text() == "text"
    assert daemon.get("/v1/sandboxes").json["sandboxes"] == []  # the directory that it copied through is gone
    assert caisson("create", box, "--workspace", ws).strip() == box
    daemon.post("/v1/sandboxes/%s/shell" % box, {"script": "echo x > x; rm -r data"})
    assert [line.split()[::2] for line in caisson("workspace", "diff", box).splitlines()[1:]] == \
        [["added", "x"], ["removed", "data"], ["removed", "data/sub"], ["removed", "data/sub/file"]]
    caisson("workspace", "discard", box)
    assert caisson("workspace", "diff", box) == ""
    daemon.post("/v1/sandboxes/%s/shell" % box, {"script": "echo y > y"})
    assert "y" in caisson("workspace", "commit", box)
    assert box in caisson("workspace", "rm", ws, code=6)
    daemon.request("DELETE", "/v1/sandboxes/" + box)
    assert caisson("workspace", "rm", ws).strip() == ws
    caisson("workspace", "rm", "-f", ws)
