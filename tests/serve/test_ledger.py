# SPDX-License-Identifier: Apache-2.0
"""test_ledger.py - Files and processes in the audit log: owner, operation and file, written before the operation or not at all."""
import contextlib
import hashlib
import io
import json
import os
import pathlib
import re
import subprocess
import tarfile
from urllib.parse import quote

import pytest

from box_lib import Box
from process import BIN, wait_until

from integ_lib import needs_root


def ledger(d, box=None):
    lines = (d.state / "ledger" / "ledger.jsonl").read_text().splitlines()
    return [e for e in map(json.loads, lines) if box is None or e["sandbox"] == box.name]


def calls(d, box):
    """Every file call: {(op, path): (begin, end)}. Their ends are written after the answers were sent."""
    def events(kind):
        return [e for e in ledger(d, box) if e["event"] == "file." + kind]

    assert wait_until(lambda: len(events("begin")) == len(events("end")))
    begun = {e["id"]: e for e in ledger(d, box) if e["event"] == "file.begin"}
    return {(e["op"], begun[e["id"]]["path"]): (begun[e["id"]], e) for e in ledger(d, box) if e["event"] == "file.end"}


def runs(d, box, event):
    return [e for e in ledger(d, box) if e["event"] == "execution." + event]


def archive(**files):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        for name, text in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(text)
            tar.addfile(info, io.BytesIO(text))
    return out.getvalue()


# ---- files -----------------------------------------------------------------------------------------------------------------


def test_owners_operations_and_files_are_recorded(daemon):
    content, tar = b"#!/bin/sh\necho file-secret\n", archive(a=b"1", b=b"22")
    with Box(daemon) as box:
        files = box.url + "/files"
        assert daemon.request("PUT", files + "?path=run.sh&mode=755", content).status == 201
        assert daemon.get(files + "?path=run.sh").body == content
        assert box.post("/files/mkdir", {"path": "d"}).status == 201
        assert box.post("/files/move", {"from": "run.sh", "to": "d/run.sh"}).status == 204
        assert daemon.request("PUT", files + "/tar?path=d", tar).status == 200
        packed = daemon.get(files + "/tar?path=d").body
        assert daemon.request("DELETE", files + "?path=d&recursive=true").status == 204
        assert daemon.request("DELETE", files + "?path=none").status == 404
        done = calls(daemon, box)
        begin, end = done["write", "run.sh"]
        assert begin["seq"] < end["seq"] and begin["owner"] == "local" and begin["to"] is None
        assert (end["outcome"], end["bytes"], end["content_sha256"]) == ("done", len(content), hashlib.sha256(content).hexdigest())
        assert done["move", "run.sh"][0]["to"] == "d/run.sh"
        assert done["unpack", "d"][1]["content_sha256"] == hashlib.sha256(tar).hexdigest()
        sizes = {op: done[op, path][1]["bytes"] for op, path in (("read", "run.sh"), ("pack", "d"), ("mkdir", "d"), ("delete", "d"))}
        assert sizes == {"read": len(content), "pack": len(packed), "mkdir": 0, "delete": 0}
        assert done["read", "run.sh"][1]["content_sha256"] is None
        assert done["delete", "none"][1]["outcome"] == "no_such_file"
        assert "file-secret" not in json.dumps(ledger(daemon)), "names, never content"


def test_asking_about_names_is_not_recorded(daemon):
    with Box(daemon) as box:
        for path in ("/files/stat?path=.", "/files/list"):
            assert box.get(path).status == 200
        assert not [e for e in ledger(daemon, box) if e["event"].startswith("file.")]


def test_a_long_path_hides_nothing(daemon):
    path = "./" * 1000 + "secret-plan"
    with Box(daemon) as box:
        assert daemon.request("PUT", "%s/files?path=%s" % (box.url, quote(path)), b"x").status == 201
        assert ("write", path) in calls(daemon, box)


def test_an_upload_that_is_broken_off_is_recorded_as_that(daemon):
    with Box(daemon) as box:
        with daemon.connect() as s:
            s.sendall(b"PUT %s/files?path=half HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000\r\n\r\nhalf" % box.url.encode())
            assert wait_until(lambda: any(e["event"] == "file.begin" for e in ledger(daemon, box)))
        assert wait_until(lambda: ("write", "half") in calls(daemon, box))
        assert calls(daemon, box)["write", "half"][1]["outcome"] == "abandoned"
        assert box.get("/files/stat?path=half").status == 404


def test_304_and_416_are_calls_that_were_done(daemon):
    with Box(daemon) as box:
        url = box.url + "/files?path=f"
        daemon.request("PUT", url, b"abc")
        etag = daemon.get(url).headers["etag"]
        assert daemon.get(url, headers={"If-None-Match": etag}).status == 304
        assert daemon.get(url, headers={"Range": "bytes=10-"}).status == 416
        calls(daemon, box)
        reads = [e for e in ledger(daemon, box) if e["event"] == "file.end" and e["op"] == "read"]
        assert [(e["outcome"], e["bytes"]) for e in reads] == [("done", 3), ("done", 0), ("done", 0)]


# ---- processes ---------------------------------------------------------------------------------------------------------------


def test_processes_and_terminals_begin_and_end(daemon):
    with Box(daemon) as box:
        p = box.start("sh", "-c", "printf abc; exit 3")
        p.wait()
        t = box.start("sh", pty=True)
        t.post("/stdin", {"data": "exit 4\n"})
        t.wait()
        begin, end = runs(daemon, box, "begin"), runs(daemon, box, "end")
        assert [(e["id"], e["what"]) for e in begin] == [(p.id, "process"), (t.id, "terminal")]
        assert [(e["id"], e["what"], e["exit_code"]) for e in end] == [(p.id, "process", 3), (t.id, "terminal", 4)]
        assert end[0]["usage"]["stdout_bytes"] == 3
        words = b"".join(w + b"\0" for w in (b"sh", b"-c", b"printf abc; exit 3"))
        assert begin[0]["code_sha256"] == hashlib.sha256(words).hexdigest()


def test_every_process_that_began_has_an_end(daemon):
    """A process that was removed, one that was killed with its sandbox, and one whose program does not exist."""
    with Box(daemon) as box:
        box.post("/processes", {"cmd": "no-such-program"})
        removed, left = box.start("sleep", "600"), box.start("sleep", "600")
        assert daemon.request("DELETE", removed.url).status == 204
        box.post("/kill")
        ends = wait_until(lambda: len(runs(daemon, box, "end")) == 3 and runs(daemon, box, "end"))
        by_id = {e["id"]: e for e in ends}
        assert {e["id"] for e in runs(daemon, box, "begin")} == set(by_id)
        assert by_id[removed.id]["status"] == "removed" and by_id[left.id]["status"] in ("signal", "failed", "refused"), by_id


# ---- details of a run ------------------------------------------------------------------------------------------------------------


def test_a_run_without_a_name_records_its_sandbox(daemon):
    spec = {"memory_mib": 77, "cpus": 0.5, "egress": ["one.example.com:443"], "labels": {"team": "red-%d" % os.getpid()}}
    runs_of = (("/v1/run_python", {"code": "print(77)"}), ("/v1/run_shell", {"script": "echo 77"}))
    for path, body in runs_of:
        assert daemon.post(path, {**body, **spec}).json["stdout"] == "77\n"
    begun = [e for e in ledger(daemon) if e["event"] == "execution.begin" and json.loads(e.get("labels", "{}")) == spec["labels"]]
    assert len(begun) == 2
    for e in begun:
        assert (e["limits"]["memory_bytes"], e["limits"]["cpu_milli"], json.loads(e["egress"])) == (77 << 20, 500, spec["egress"]), e
        assert e["image"] and "image_digest" in e and "cut" not in e
    with Box(daemon, **spec) as box:
        create, = [e for e in ledger(daemon, box) if e["event"] == "sandbox.create"]
        assert json.loads(create["labels"]) == spec["labels"] and create["limits"]["memory_bytes"] == 77 << 20


def test_long_lists_are_recorded_as_a_whole(daemon):
    egress = ["host-%02d.example.com:443" % i for i in range(30)]
    with Box(daemon, egress=egress) as box:
        create, = [e for e in ledger(daemon, box) if e["event"] == "sandbox.create"]
        assert sorted(json.loads(create["egress"])) == egress


def test_every_event_is_in_the_document():
    root = pathlib.Path(__file__).parents[2]
    source = "".join(p.read_text() for p in (root / "src" / "front").rglob("*.c"))
    events = set(re.findall(r'(?:ledger_record|record_spec)\([^"]*?"([a-z.]+)"', source)) | set(re.findall(r'= "((?:egress|secret)\.[a-z]+)"', source))
    assert len(events) > 25 and {"sandbox.adopt", "execution.end", "secret.use"} <= events
    text = (root / "docs" / "protocol" / "ledger.md").read_text()
    assert not {e for e in events if "`%s`" % e not in text}


# ---- a full disk -------------------------------------------------------------------------------------------------------------------


@pytest.fixture
def full(serve, short_dir):
    """A daemon whose ledger cannot grow, a sandbox that was made before, and a function that makes room."""
    where = short_dir / "disk"
    where.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m,mode=755", "none", where], capture_output=True).returncode:
        pytest.skip("no tmpfs can be mounted here")
    try:
        d = serve("--pool", "1", state=where / "state")
        box = Box(d, "job")
        d.request("PUT", box.url + "/files?path=old", b"old")
        ballast = where / "ballast"
        with open(ballast, "wb", buffering=0) as f, contextlib.suppress(OSError):
            while True:
                f.write(bytes(4096))
        while box.post("/exec", {"cmd": "true"}).status == 200:  # the rest of the ledger's last page
            pass
        yield d, box, ballast
        d.kill()
    finally:
        subprocess.run(["umount", "-l", where], check=True)


@needs_root
def test_what_can_not_be_recorded_does_not_happen(full):
    d, box, ballast = full
    files = box.url + "/files"
    tries = [
        lambda: d.request("PUT", files + "?path=new", b"x"),
        lambda: d.request("PUT", files + "?path=old", b"other"),
        lambda: d.request("PUT", files + "/tar", archive(new=b"x")),
        lambda: d.request("DELETE", files + "?path=old"),
        lambda: box.post("/files/move", {"from": "old", "to": "new"}),
        lambda: box.post("/files/mkdir", {"path": "new"}),
        lambda: d.get(files + "?path=old"),
        lambda: d.get(files + "/tar"),
        lambda: box.post("/processes", {"cmd": "touch", "args": ["new"]}),
        lambda: box.post("/processes", {"cmd": "sh", "pty": True}),
    ]
    for i, attempt in enumerate(tries):
        r = attempt()
        assert (r.status, r.error["code"]) == (503, "not_recorded"), (i, r)
    assert box.processes() == {}
    assert [(e["name"], e["size"]) for e in box.get("/files/list").json["entries"]] == [("old", 3)], "reading was refused"
    ballast.unlink()
    assert d.get(files + "?path=old").body == b"old"
    assert d.request("PUT", files + "?path=new", b"x").status == 201
    p = box.start("true")
    assert p.wait()["exit_code"] == 0
    d.stop()
    out = subprocess.run([str(BIN), "audit", "verify", "--state", str(d.state)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    assert out.returncode == 0 and os.path.exists(d.state / "ledger"), out.stdout
