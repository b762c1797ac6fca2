# SPDX-License-Identifier: Apache-2.0
"""test_workspaces_life.py - The workspace store is killed: requests in progress fail and can be repeated, everything else continues, in
the same front.

Judged by the files that sandboxes see, and by those on the disk.
"""
import contextlib
import os
import signal

import pytest

from box_lib import Box
from process import Later, children, name_of, unique, wait_until

MANY = "echo %d > mark; mkdir -p many; for i in $(seq 200); do echo %d > many/$i; done; head -c 40000000 /dev/zero > many/bulk%d"


@pytest.fixture
def d(serve):
    return serve("--pool", "0")


def make(d, **fields):
    name = unique("ws")
    r = d.post("/v1/workspaces", {"name": name, **fields})
    assert r.status == 201, r
    return name


def run(box, script):
    r = box.shell("cd /workspace && " + script)
    assert r["exit_code"] == 0, r
    return r["stdout"]


def asked(ask, path):
    """Repeat the request until it is not refused because of the workspace store."""
    def once():
        r = ask(path)
        assert r.status in (200, 503), r
        return r if r.status == 200 else None
    return {c["path"]: c["change"] for c in wait_until(once).json["changes"]}


def commit(box):
    return asked(box.post, "/workspace/commit")


def changed(box):
    return asked(box.get, "/workspace/diff")


def below(pid):
    """The children of that name, those of root first."""
    found = []
    for p in children(pid):
        if name_of(p) == "caisson-workspace-store":
            with contextlib.suppress(OSError):  # a job that has just ended
                found.append((os.stat("/proc/%d" % p).st_uid, p))
    return [p for _, p in sorted(found)]


def find(d, whom):
    """The worker. As root the first process makes the volume mounters and the process that makes workspace stores."""
    def look():
        at = below(d.pid)
        if os.geteuid() == 0 and at:
            at = below(at[0])
            if len(at) < 2:
                return None
            at = at[:1] if whom == "volume mounter" else at[1:]
        return (at or [None])[0] if whom == "volume mounter" else next(iter(below(at[0])), None) if at else None
    return wait_until(look)


def store(d):
    return find(d, "workspace store")


def kill(d, whom="workspace store"):
    old, front = find(d, whom), d.pid
    os.kill(old, signal.SIGKILL)
    assert wait_until(lambda: find(d, whom) != old), "the worker was not replaced"
    assert d.pid == front and (whom == "volume mounter" or wait_until(lambda: d.log("workspace_store_killed")))


def on_disk(d):
    """Workspace -> its trees."""
    top = d.state / "workspaces"
    return {key: sorted(os.listdir(top / key)) for key in os.listdir(top)}


def begun(d):
    return [t for trees in on_disk(d).values() for t in trees if t.startswith("new.")]


def test_killed_while_idle_without_effect(d):
    """Sandboxes with a tree keep it, views too; later requests work as before; the front is the same process."""
    ws = make(d)
    with Box(d, workspace=ws) as box:
        run(box, "echo 1 > a; echo s > secret")
        commit(box)
        with Box(d, workspace={"name": ws, "deny": ["secret"]}) as view:
            assert run(view, "ls") == "a\n"
            before = on_disk(d)
            kill(d)
            run(box, "echo 2 > a; echo b > b")
            assert changed(box) == {"a": "modified", "b": "added"}
            assert on_disk(d) == before, "the trees on disk changed"
            run(view, "echo v > v")
            assert changed(view) == {"v": "added"} and run(view, "ls").split() == ["a", "v"]
            commit(box)
            commit(view)
    with Box(d, workspace=ws) as box:
        assert run(box, "cat a b v secret") == "2\nb\nv\ns\n"
    assert d.get("/v1/workspaces/" + ws).json["generation"] == 4
    assert wait_until(lambda: [len(t) for t in on_disk(d).values()] == [1]), on_disk(d)
    other = make(d)
    with Box(d, workspace=other) as box:
        assert run(box, "ls") == ""


@pytest.mark.parametrize("whom", ["workspace store", "volume mounter"])
def test_a_quota_of_the_kernel_stays_one(d, whom):
    """Its file system stays mounted, for sandboxes that have it and for new ones."""
    ws = make(d, quota_mib=16)
    if d.get("/v1/workspaces/" + ws).json["quota"] != "kernel":
        pytest.skip("no loop devices or mke2fs here: quotas are kept by commits")
    with Box(d, workspace=ws + ":rw") as box:
        run(box, "echo before > before")
        kill(d, whom)
        run(box, "echo after > after")
        with Box(d, workspace=ws + ":rw") as other:
            assert run(other, "ls").split() == ["after", "before"]
            assert "No space left" in other.shell("head -c 40000000 /dev/zero > /workspace/big")["stderr"]
    ws = make(d)
    assert d.get("/v1/workspaces/" + ws).json["quota"] == "kernel", "the volume mounter serves the next one too"


@pytest.mark.slow
@pytest.mark.parametrize("moment", ["begun", "stopped", "named"])
def test_killed_in_the_middle_of_a_commit(d, moment):
    """The commit fails so that it can be repeated, or it has happened and the answer reports it; then all of it is there, and nothing else.

    "named": when the new generation has its name, or is just about to have it.
    """
    ws = make(d, quota_mib=200)
    with Box(d, workspace=ws) as box:
        run(box, MANY % (1, 1, 1))
        commit(box)
        for turn in range(2, 5):
            run(box, MANY % (turn, turn, turn % 2))
            worker, name = store(d), "g%d" % (turn + 1)
            late = Later(lambda: box.post("/workspace/commit"))
            if moment == "named":
                assert wait_until(lambda: late.done() or any(name in t for t in on_disk(d).values()))
            else:
                assert wait_until(lambda: late.done() or begun(d))
            if moment == "stopped":  # its jobs continue without it
                os.kill(worker, signal.SIGSTOP)
            os.kill(worker, signal.SIGKILL)
            r = late.result()
            assert r.status == 200 or (r.status, r.error["code"]) == (503, "workspace_failed"), r
            assert wait_until(lambda: store(d) != worker)
            if r.status != 200:
                assert "mark" in changed(box), "the workspace changed"
                commit(box)
            assert changed(box) == {}
            assert wait_until(lambda: begun(d) == []), "something half-done: %s" % on_disk(d)
            assert d.get("/v1/workspaces/" + ws).json["generation"] == turn + 1
            with Box(d, workspace=ws) as other:
                assert set(run(other, "cat mark many/[0-9]*").split()) == {str(turn)}
    assert wait_until(lambda: [t for t in on_disk(d).values()] == [["g5"]]), on_disk(d)


@pytest.mark.slow
@pytest.mark.parametrize("whom", ["workspace store", "volume mounter"])
def test_killed_while_workspaces_are_made(d, whom):
    """Each workspace whose creation was answered exists, and the others do not block their names."""
    if whom == "volume mounter" and os.geteuid() != 0:
        pytest.skip("only the daemon of root has one")
    made, volumes = [], d.state / "volumes"
    for _ in range(4):
        names = [unique("ws") for _ in range(4)]
        late = [Later(lambda n=n: d.post("/v1/workspaces", {"name": n})) for n in names]
        kill(d, whom)
        for name, one in zip(names, late):
            r = one.result()
            assert r.status == 201 or (r.status, r.error["code"]) == (503, "workspace_failed"), r
            if r.status == 503:
                assert wait_until(lambda: d.post("/v1/workspaces", {"name": name}).status in (200, 201))
            made.append(name)
    for name in made:
        with Box(d, workspace=name) as box:
            run(box, "echo 1 > a")
            commit(box)
    assert len(on_disk(d)) == len(made), on_disk(d)
    if volumes.exists():
        assert sorted(os.listdir(volumes)) == sorted(k for k in on_disk(d) if (volumes / k).exists())
    for name in made:
        assert d.request("DELETE", "/v1/workspaces/" + name).status == 204
    assert wait_until(lambda: on_disk(d) == {})
    assert not volumes.exists() or os.listdir(volumes) == []
