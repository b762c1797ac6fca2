# SPDX-License-Identifier: Apache-2.0
"""test_workspaces_user.py - Workspaces of a daemon that an ordinary user started: as docs/workspaces.md describes it, without root."""
import os

import pytest

from box_lib import Box
from integ_lib import USER, needs_root
from process import unique, wait_until
from test_workspaces import CHANGES, changes, commit, diff, fill, make, run

pytestmark = needs_root  # to become another user, and to delegate cgroups to that user


def test_copies_commits_and_quotas(users):
    """Everything works, except that the commit enforces the quota instead of the Linux kernel, and no sandbox writes in place."""
    d = users()
    assert os.stat("/proc/%d" % d.keeper).st_uid == USER
    ws = fill(d)
    about = d.get("/v1/workspaces/" + ws).json
    assert about["quota"] == "commit" and about["generation"] == 2
    with Box(d, workspace=ws) as a, Box(d, workspace=ws + ":ro") as b:
        for what, script, expected in [c for c in CHANGES if c[0] in ("mode", "moved", "file to directory", "attribute")]:
            run(a, script)
            assert diff(a) == expected, what
            assert a.post("/workspace/discard").status == 204 and diff(a) == {}, what
        assert run(a, "stat -c '%u %g %a' file run.sh").split() == ["1000", "1000", "644", "1000", "1000", "750"]
        run(a, "echo new > new; rm big")
        assert commit(a) == {"new": "added", "big": "removed"}
        assert "Read-only file system" in b.shell("echo x > file")["stderr"] and run(b, "ls big") == "big\n"
    small = make(d, quota_mib=1)
    with Box(d, workspace=small) as box:
        run(box, "head -c 1500000 /dev/zero > a")
        r = box.post("/workspace/commit")
        assert (r.status, r.error["code"]) == (413, "workspace_full"), r
    r = d.post("/v1/sandboxes", {"name": unique(), "workspace": ws + ":rw"})
    assert (r.status, r.error["code"], r.error["field"]) == (422, "quota_unavailable", "workspace") and "--workspace-rw" in r.error["message"] + r.error.get("hint", ""), r
    with Box(d, workspace={"name": ws, "deny": ["*.sh"], "write": ["dir"]}) as box:
        assert run(box, "ls run.sh 2>/dev/null || echo none; echo x > dir/x; touch y 2>/dev/null || echo kept") == "none\nkept\n"
        assert changes(box.get("/workspace/diff")) == {"dir/x": "added"}
    d.stop()


@pytest.mark.slow
def test_writing_in_place_is_the_operators_to_allow(users):
    d = users("--workspace-rw")
    ws = fill(d)
    with Box(d, workspace=ws + ":rw") as a, Box(d, workspace=ws + ":rw") as b:
        run(a, "echo from a > x; rm big")
        assert run(b, "cat x; ls big 2>/dev/null || echo none; stat -c %u x") == "from a\nnone\n1000\n"
    with Box(d, workspace=ws) as c:
        assert run(c, "cat x") == "from a\n" and diff(c) == {}
    assert wait_until(lambda: d.request("DELETE", "/v1/workspaces/" + ws).status == 204)
    d.stop()
