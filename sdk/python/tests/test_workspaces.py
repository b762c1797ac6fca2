# SPDX-License-Identifier: Apache-2.0
"""test_workspaces.py - Workspaces, with daemons that have them."""
import pytest

import caisson


@pytest.fixture
def store(daemon, client):
    if "/v1/workspaces" not in daemon.get("/openapi.json").json["paths"]:
        pytest.skip("this daemon has no workspaces")
    yield client.workspaces
    for name in client.list():
        client.remove(name)
    for w in client.workspaces.list():
        client.workspaces.remove(w.name)


def test_workspace(client, store):
    assert store.create("notes", quota_mib=64, labels={"a": "b"}).quota_mib == 64
    assert [w.name for w in store.list({"a": "b"})] == ["notes"] and store.list({"a": "c"}) == []
    with client.create(workspace="notes") as box, client.create(workspace="notes") as other:
        box.files.write("f", "one")
        assert [(c.path, c.change) for c in box.workspace.diff().changes] == [("f", "added")]
        other.files.write("f", "two")
        assert box.workspace.commit().count == 1
        with pytest.raises(caisson.WorkspaceConflict):
            other.workspace.commit()
        other.workspace.discard()
        assert other.files.read("f") == b"one"
        with pytest.raises(caisson.Conflict):
            store.remove("notes")
    assert store.get("notes").files == 1
    with client.create(workspace={"name": "notes", "mode": "ro"}) as box:
        assert box.shell("cat f; echo x >f").stdout == "one" and not box.shell("echo x >f").ok
    with pytest.raises(caisson.WorkspaceNotFound):
        store.get("none")
