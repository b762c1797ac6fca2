# SPDX-License-Identifier: Apache-2.0
"""test_files.py - Files of a sandbox over HTTP: content both ways, names, lists, archives, changes."""
import base64
import hashlib
import http.client
import io
import json
import os
import shutil
import socket
import tarfile
import tempfile
import threading
from pathlib import Path
from urllib.parse import quote

import pytest

from box_lib import Box
from process import IS_ROOT, SLOW, wait_until
from serve_lib import check_schema

MIB = 1 << 20


@pytest.fixture
def box(daemon):
    with Box(daemon) as b:
        yield b


def url(box, path, what="", **more):
    query = "&".join("%s=%s" % (k, quote(str(v).lower() if isinstance(v, bool) else v, safe="")) for k, v in more.items())
    return "%s/files%s?path=%s%s" % (box.url, what, quote(path, safe=""), "&" + query if query else "")


def get(box, path, what="", headers=None, method="GET", **more):
    return box.daemon.request(method, url(box, path, what, **more), headers=headers)


def put(box, path, body, what="", headers=None, **more):
    return box.daemon.request("PUT", url(box, path, what, **more), body=body, headers=headers)


def delete(box, path, **more):
    return box.daemon.request("DELETE", url(box, path, **more))


def stat(box, path, **more):
    r = get(box, path, "/stat", **more)
    assert r.status == 200, r
    return r.json


def names(box, path=".", **more):
    r = get(box, path, "/list", **more)
    assert r.status == 200, r
    return [e["name"] for e in r.json["entries"]]


def error(r):
    return r.status, r.error["code"], r.error.get("field")


def is_schema(box, name, value):
    document = box.daemon.get("/openapi.json").json
    assert not check_schema(value, {"$ref": "#/components/schemas/" + name}, document)


# ---- content -----------------------------------------------------------------------------------------------


def test_write_and_read(box):
    body = bytes(range(256)) * 5000
    r = put(box, "a.bin", body)
    assert r.status == 201 and r.json["size"] == len(body) and r.json["type"] == "file" and r.json["path"] == "a.bin"
    is_schema(box, "File", r.json)
    r = get(box, "a.bin")
    assert r.status == 200 and r.body == body
    assert r.headers["content-length"] == str(len(body)) and r.headers["content-type"] == "application/octet-stream"
    assert r.headers["accept-ranges"] == "bytes" and "GMT" in r.headers["last-modified"]
    # The code sees the same file, as its own.
    assert box.exec("sha256sum", "a.bin")["stdout"].split()[0] == hashlib.sha256(body).hexdigest()
    assert box.exec("stat", "-c", "%U %a", "a.bin")["stdout"] == "agent 644\n"
    assert put(box, "a.bin", b"short").status == 200
    assert get(box, "/workspace/a.bin").body == b"short"
    assert put(box, "empty", b"").status == 201
    r = get(box, "empty")
    assert r.status == 200 and r.body == b"" and r.headers["content-length"] == "0"


def test_download_is_never_a_page_of_this_server(box):
    put(box, "x \"ä.html", b"<script>alert(1)</script>")
    r = get(box, "x \"ä.html")
    assert r.headers["content-disposition"] == "attachment; filename*=UTF-8''x%20%22%C3%A4.html"
    assert r.headers["x-content-type-options"] == "nosniff" and r.headers["content-security-policy"] == "sandbox"


def test_head(box):
    put(box, "f", b"12345")
    r = get(box, "f", method="HEAD")
    assert r.status == 200 and r.body == b"" and r.headers["content-length"] == "5" and "etag" in r.headers
    assert get(box, "none", method="HEAD").status == 404


RANGES = [
    ("bytes=0-0", 206, 0, 1), ("bytes=2-4", 206, 2, 5), ("bytes=5-", 206, 5, 10), ("bytes=-3", 206, 7, 10),
    ("bytes=8-100", 206, 8, 10), ("bytes=-100", 206, 0, 10), ("bytes=9-9", 206, 9, 10),
    ("bytes=10-", 416, 0, 0), ("bytes=100-200", 416, 0, 0), ("bytes=-0", 416, 0, 0),
    # Anything but one range of bytes is ignored.
    ("bytes=3-1", 200, 0, 10), ("bytes=0-1,4-5", 200, 0, 10), ("lines=1-2", 200, 0, 10), ("bytes=", 200, 0, 10),
    ("bytes=a-b", 200, 0, 10), ("bytes=0-99999999999999999999999", 200, 0, 10),
]


def test_ranges(box):
    body = b"0123456789"
    put(box, "f", body)
    for text, status, first, end in RANGES:
        r = get(box, "f", headers={"Range": text})
        assert r.status == status, (text, r)
        if status == 416:
            assert r.headers["content-range"] == "bytes */10" and r.body == b""
            continue
        assert r.body == body[first:end], (text, r)
        assert r.headers.get("content-range") == ("bytes %d-%d/10" % (first, end - 1) if status == 206 else None)
    put(box, "empty", b"")
    assert get(box, "empty", headers={"Range": "bytes=0-"}).status == 416


def test_etag(box):
    put(box, "f", b"one")
    tag = get(box, "f").headers["etag"]
    r = get(box, "f", headers={"If-None-Match": tag})
    assert r.status == 304 and r.body == b"" and r.headers["etag"] == tag
    assert get(box, "f", headers={"If-None-Match": '"x", %s' % tag}).status == 304
    put(box, "f", b"two")
    r = get(box, "f", headers={"If-None-Match": tag})
    assert r.status == 200 and r.body == b"two" and r.headers["etag"] != tag


def test_modes_and_parents(box):
    for r in (put(box, "d/e/f", b"x"), put(box, "d/e", archive({"f": b"x"}), "/tar"), box.post("/files/mkdir", {"path": "d/e"})):
        assert error(r) == (404, "no_such_file", "path") and "parents=true" in r.error["hint"], r
    assert "hint" not in get(box, "d/e/f").error, "nothing is made by reading"
    r = put(box, "d/e/f", b"x", parents=True, mode="750")
    assert r.status == 201 and r.json["mode"] == "750"
    put(box, "d/e/f", b"y")
    assert stat(box, "d/e/f")["mode"] == "750"
    for mode in ("9", "4755", "0644", "rwx", ""):
        assert put(box, "d/e/f", b"z", mode=mode).status == 422
    assert get(box, "d/e/f").body == b"y"


def test_read_only_file_stays(box):
    put(box, "f", b"old", mode="444")
    assert error(put(box, "f", b"new")) == (409, "read_only", "path")
    assert get(box, "f").body == b"old" and stat(box, "f")["mode"] == "444"
    assert put(box, "f", b"new", mode="444").status == 200
    assert get(box, "f").body == b"new" and stat(box, "f")["mode"] == "444"
    box.shell("chmod u+w f")
    assert put(box, "f", b"newer").status == 200


def test_file_without_a_size(box):
    r = get(box, "/proc/self/status")
    assert r.status == 200 and r.body.startswith(b"Name:\tcaisson-files\n") and "content-length" not in r.headers


@pytest.mark.parametrize("chunked", [False, True])
def test_upload_larger_than_any_buffer(box, chunked):
    """Larger than the largest body that is kept, without growth of the daemon's memory."""
    size, piece = 200 * MIB, bytes(MIB)
    front = box.daemon.pid

    def peak():
        text = Path("/proc/%d/status" % front).read_text()
        return int(text.split("VmHWM:")[1].split()[0]) << 10

    before = peak()
    c = http.client.HTTPConnection("127.0.0.1", box.daemon.port, timeout=100 * SLOW)
    pieces = (piece for _ in range(size // MIB))
    headers = {} if chunked else {"Content-Length": str(size)}
    c.request("PUT", url(box, "big"), body=pieces, headers=headers, encode_chunked=chunked)
    r = c.getresponse()
    assert r.status == 201, r.read()
    assert json.loads(r.read())["size"] == size
    # The same connection is used again.
    c.request("GET", url(box, "big"), headers={"Range": "bytes=-5"})
    r = c.getresponse()
    assert r.status == 206 and r.read() == bytes(5)
    got = 0
    c.request("GET", url(box, "big"))
    r = c.getresponse()
    while data := r.read(MIB):
        got += len(data)
    c.close()
    assert got == size
    if SLOW == 1:
        assert peak() - before < 32 * MIB, "%d MiB more" % ((peak() - before) // MIB)


def test_expect_continue_is_answered_before_the_body(box):
    for path, want in (("f", b"100"), ("no/such/dir/f", b"100"), ("x" * 5000, b"422")):
        with box.daemon.connect() as s:
            s.sendall(b"PUT %s HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n"
                      % (url(box, path).encode(), box.daemon.port))
            assert s.recv(4096).split()[1] == want


def test_upload_that_breaks_off_changes_nothing(box):
    put(box, "f", b"old")
    for head in (b"Content-Length: 1000000", b"Transfer-Encoding: chunked"):
        with box.daemon.connect() as s:
            s.sendall(b"PUT %s HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n%s\r\n\r\n" % (url(box, "f").encode(), box.daemon.port, head))
            s.sendall(b"5\r\nhello\r\n" if b"chunked" in head else b"x" * 5000)
    assert wait_until(lambda: "caisson-files" not in box.shell("cat /proc/[0-9]*/comm")["stdout"])
    assert get(box, "f").body == b"old" and names(box) == ["f"]
    assert box.shell("ls -A")["stdout"] == "f\n"
    # Not a body at all: an error, and nothing is written.
    with box.daemon.connect() as s:
        s.sendall(b"PUT %s HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n" % (url(box, "f").encode(), box.daemon.port))
        assert s.recv(4096).split()[1] == b"400"
    assert get(box, "f").body == b"old"


def test_full_disk(daemon):
    with Box(daemon, disk_mib=16, memory_mib=128) as box:
        put(box, "f", b"old")
        r = put(box, "f", bytes(40 * MIB))
        assert error(r) == (507, "disk_full", "path") and "disk_mib" in r.error["hint"]
        assert get(box, "f").body == b"old" and box.shell("ls -A")["stdout"] == "f\n"


class Chunks:
    """Content whose length the client does not announce."""

    def __init__(self, size):
        self.size = size

    def __iter__(self):
        return (bytes(MIB) for _ in range(self.size // MIB))


def send(box, path, size, what="", chunked=False):
    """An upload; the daemon may answer before it has read all of it."""
    c = http.client.HTTPConnection("127.0.0.1", box.daemon.port, timeout=SLOW)
    try:
        c.putrequest("PUT", url(box, path, what))
        c.putheader(*(("Transfer-Encoding", "chunked") if chunked else ("Content-Length", str(size))))
        c.endheaders()
        try:
            for piece in Chunks(size) if chunked else ():
                c.send(b"%x\r\n%s\r\n" % (len(piece), piece))
            if chunked:
                c.send(b"0\r\n\r\n")
        except OSError:
            pass
        r = c.getresponse()
        return r.status, json.loads(r.read())["error"]
    finally:
        c.close()


def test_upload_that_does_not_fit(daemon):
    """Refused with the numbers before any of it was sent; variables and files stay."""
    with Box(daemon, memory_mib=96) as box:
        put(box, "f", b"old")
        assert box.post("/execute", {"code": "v = b'x' * (40 << 20)"}).json["ok"]
        for what, path in (("", "f"), ("/tar", ".")):
            status, e = send(box, path, 700 * MIB, what)
            assert (status, e["code"], e["needed"], e["limit"]) == (507, "disk_full", 700 * MIB, 84 * MIB), e
            assert 80 * MIB < e["free"] < 84 * MIB and "memory_mib" in e["hint"] and "700 MiB" in e["message"], e
        # It would fit on the disk, and not into the memory beside the variables.
        status, e = send(box, "f", 60 * MIB)
        assert (status, e["code"], e["needed"], e["limit"]) == (507, "memory_full", 60 * MIB, 96 * MIB), e
        assert 16 * MIB < e["free"] < 56 * MIB, e
        status, e = send(box, "f", 80 * MIB, chunked=True)
        assert (status, e["code"], e["limit"]) == (507, "memory_full", 96 * MIB) and "needed" not in e, e
        assert wait_until(lambda: box.shell("ls -A")["stdout"] == "f\n") and get(box, "f").body == b"old"
        r = box.post("/execute", {"code": "print(len(v))"}).json
        assert (r["stdout"], r["epoch"]) == ("41943040\n", 0), r
        assert put(box, "g", bytes(8 * MIB)).status == 201


def test_memory_full_of_files(daemon):
    """They leave an eighth: commands and file calls still work, and free it."""
    with Box(daemon, memory_mib=64) as box:
        r = box.shell("dd if=/dev/zero of=big bs=1M")
        assert (r["cause"], r["limit"], r["files"], r["epoch"]) == ("disk", 56 * MIB, "kept", 0) and "memory_mib" in r["hint"], r
        status, e = send(box, "more", 9 * MIB)
        assert (status, e["code"]) == (507, "disk_full"), e
        assert names(box) == ["big"] and box.shell("echo works")["stdout"] == "works\n"
        assert delete(box, "big").status == 204 and put(box, "more", bytes(9 * MIB)).status == 201
        assert box.about()["epoch"] == 0


def test_upload_into_a_sandbox_that_runs_out_of_memory(daemon):
    """Its cell ends as a whole: the error says what was lost."""
    with Box(daemon, memory_mib=64, oom="sandbox") as box:
        box.start("sh", "-c", "until test -e go; do sleep 0.01; done; exec python3 -c 'x = bytearray(200 << 20)'")
        with daemon.connect() as s:
            s.sendall(b"PUT %s HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nContent-Length: 1000000\r\n\r\n%s" % (url(box, "f").encode(), daemon.port, bytes(1000)))
            assert wait_until(lambda: "caisson-files" in box.shell("cat /proc/[0-9]*/comm")["stdout"])
            box.shell("touch go")
            r = http.client.HTTPResponse(s)
            r.begin()
            e = json.loads(r.read())["error"]
        assert (r.status, e["code"], e["cause"], e["state"], e["files"], e["epoch"]) == (409, "sandbox_ended", "memory", "reset", "lost", 1), e
        assert "files" in e["message"] and "memory_mib" in e["hint"], e


def test_client_that_stops_reading_stops_the_worker(box):
    box.shell("truncate -s 300M big")
    with box.daemon.connect() as s:
        s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
        s.sendall(b"GET %s HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n\r\n" % (url(box, "big").encode(), box.daemon.port))
        assert s.recv(1000)
        assert wait_until(lambda: "caisson-files" in box.shell("cat /proc/[0-9]*/comm")["stdout"])
    assert wait_until(lambda: "caisson-files" not in box.shell("cat /proc/[0-9]*/comm")["stdout"])


def test_file_that_shrinks_breaks_the_answer_off(box):
    box.shell("truncate -s 300M big")
    with box.daemon.connect() as s:
        s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
        s.sendall(b"GET %s HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n\r\n" % (url(box, "big").encode(), box.daemon.port))
        got = len(s.recv(1000))
        box.shell("truncate -s 10 big")
        try:
            while data := s.recv(MIB):
                got += len(data)
        except ConnectionResetError:
            pass
        assert got < 300 * MIB


def most_of_a_file(where):
    """A file in @where of the largest size of its file system, without content. Its path and size."""
    for size in ((1 << 63) - 1, (16 << 40) - 4096, 8 << 40, 1 << 40):
        try:
            (where / "huge").touch()
            os.truncate(where / "huge", size)
            return where / "huge", size
        except OSError:
            pass
    pytest.skip("no file system here has files of a terabyte")


def test_file_of_exabytes(serve):
    """In a directory of the operator; code cannot make such a file. The requested range arrives, and the daemon reads no more than the client does."""
    top = Path(tempfile.mkdtemp(prefix="caisson-huge-", dir="/dev/shm" if os.path.isdir("/dev/shm") else None))
    try:
        top.chmod(0o755)
        _, most = most_of_a_file(top)
        d = serve("--pool", "0", "--mount", "%s:/data" % top)
        with Box(d) as box:
            huge_file_is_only_large(box, most)
    finally:
        shutil.rmtree(top)


def huge_file_is_only_large(box, most):
    def workers():
        return box.shell("cat /proc/[0-9]*/comm")["stdout"].count("caisson-files")

    assert stat(box, "/data/huge")["size"] == most
    r = get(box, "/data/huge", method="HEAD")
    assert (r.status, r.headers["content-length"]) == (200, str(most))
    for wish, first, n in (("-10", most - 10, 10), ("%d-" % (most - 3), most - 3, 3), ("0-9", 0, 10), ("%d-%d" % (most - 1, most), most - 1, 1)):
        r = get(box, "/data/huge", headers={"Range": "bytes=" + wish})
        assert (r.status, r.body, r.headers["content-range"]) == (206, bytes(n), "bytes %d-%d/%d" % (first, first + n - 1, most)), (wish, r)
    assert get(box, "/data/huge", headers={"Range": "bytes=%d-" % most}).status == 416
    for what in ("", "/tar"):
        with box.daemon.connect() as s:
            s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
            s.sendall(b"GET %s HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n\r\n" % (url(box, "/data/huge", what).encode(), box.daemon.port))
            got = b""
            while len(got) < MIB:
                got += s.recv(MIB)
            assert got.startswith(b"HTTP/1.1 200 ") and str(most).encode() in got[:4096]
            assert workers() == 1 and box.exec("echo", "here")["stdout"] == "here\n"
        assert wait_until(lambda: workers() == 0), "the file is still read without a client"
    assert box.shell("truncate -s %d mine" % most)["exit_code"] != 0, "code made such a file"


# ---- refusals --------------------------------------------------------------------------------------------------


def test_errors_name_the_cause(box):
    box.shell("mkdir d full ro; touch full/x f; chmod 555 ro; mkfifo p; ln -s loop loop; ln -s nowhere dangling")
    for path, want in [("none", (404, "no_such_file")), ("dangling", (404, "no_such_file")), ("d", (409, "is_a_directory")),
                       ("f/x", (409, "not_a_directory")), ("p", (409, "not_a_file")), ("/dev/zero", (409, "not_a_file")),
                       ("loop", (409, "too_many_links")), ("x" * 256, (422, "bad_path")), ("x" * 4096, (422, None)),
                       ("a\0b", (400, None))]:
        r = get(box, path)
        assert r.status == want[0], (path, r)
        assert want[1] is None or (r.error["code"], r.error["field"]) == (want[1], "path"), (path, r)
    for path, want in [("d", (409, "is_a_directory")), ("ro/x", (403, "permission_denied")), ("/usr/x", (403, "permission_denied")),
                       ("..", (422, "bad_path")), ("f/x", (409, "not_a_directory"))]:
        assert error(put(box, path, b"x")) == (*want, "path"), path
    assert error(delete(box, "full")) == (409, "directory_not_empty", "path")
    if IS_ROOT:  # otherwise code has one user for everything in its cell, and may remove its own directory
        assert error(delete(box, "/workspace", recursive=True)) == (403, "permission_denied", "path")
    assert error(delete(box, "none")) == (404, "no_such_file", "path")
    assert box.get("/files").status == 422 and box.get("/files?path=").status == 422
    assert error(box.get("/files?path=f&mode=1")) == (400, "unknown_parameter", "mode")


def test_foreign_and_missing_sandboxes(daemon):
    for method, what in (("GET", "/files?path=f"), ("PUT", "/files?path=f"), ("DELETE", "/files?path=f"), ("GET", "/files/list"),
                         ("GET", "/files/tar"), ("PUT", "/files/tar"), ("GET", "/files/watch")):
        r = daemon.request(method, "/v1/sandboxes/nobody-has-this" + what, body=b"x" if method == "PUT" else None)
        assert error(r)[:2] == (404, "no_such_sandbox"), (method, what, r)


def test_no_process_left(daemon):
    with Box(daemon, pids=12) as box:
        script = "while True:\n try:\n  os.fork() or time.sleep(1000)\n except OSError: time.sleep(.001)"
        box.start("python3", "-c", "import os, time\n" + script)
        assert wait_until(lambda: get(box, ".", "/stat").status == 503)
        assert get(box, ".", "/stat").error["code"] == "process_limit"


def test_code_that_kills_or_stops_the_worker(box):
    """Code can only disturb its own calls: they end with an error, and the daemon continues."""
    box.shell("truncate -s 200M big")
    p = box.start("sh", "-c", "while :; do pkill -9 caisson-files; done")
    seen = set()
    for _ in range(30):
        r = get(box, "big", "/stat")
        assert r.status in (200, 503), r
        seen.add(r.status)
    p.box.daemon.request("DELETE", p.url)
    assert wait_until(lambda: get(box, "big", "/stat").status == 200)


# ---- names ---------------------------------------------------------------------------------------------------


def test_stat(box):
    box.shell("mkdir d; echo hello > f; chmod 640 f; touch -d '2024-02-03 04:05:06.789Z' f; ln -s f l")
    st = stat(box, "f")
    assert (st["type"], st["size"], st["mode"], st["uid"]) == ("file", 6, "640", 1000)
    assert st["modified_at"] == "2024-02-03T04:05:06.789Z"
    is_schema(box, "File", st)
    assert stat(box, "l")["type"] == "file"
    st = stat(box, "l", follow=False)
    assert (st["type"], st["target"]) == ("symlink", "f")
    assert stat(box, "d")["type"] == "directory"


def test_list(box):
    box.shell("mkdir -p b/c; touch z a b/x b/c/y; ln -s a l; touch $'bad\\xff'")
    r = get(box, ".", "/list")
    is_schema(box, "FileList", r.json)
    entries = {e["name"]: e for e in r.json["entries"]}
    assert list(entries) == ["a", "b", "bad\ufffd", "l", "z"] and not r.json["truncated"]
    assert entries["l"]["target"] == "a" and base64.b64decode(entries["bad\ufffd"]["name_base64"]) == b"bad\xff"
    assert names(box, ".", recursive=True) == ["a", "b", "b/c", "b/c/y", "b/x", "bad\ufffd", "l", "z"]
    r = get(box, ".", "/list", recursive=True, depth="2")
    assert "b/c" in [e["name"] for e in r.json["entries"]] and r.json["truncated"]
    assert "b/c/y" not in [e["name"] for e in r.json["entries"]]
    r = get(box, ".", "/list", limit="2")
    assert len(r.json["entries"]) == 2 and r.json["truncated"]
    assert box.get("/files/list").json["path"] == "."
    assert error(get(box, "none", "/list")) == (404, "no_such_file", "path")
    for bad in ("limit=0", "limit=10001", "depth=0", "recursive=yes"):
        assert box.get("/files/list?" + bad).status == 422


def test_list_many(box):
    box.shell("mkdir m; cd m; seq 12000 | sed 's/^/%0200d/' | xargs touch")
    r = get(box, "m", "/list", limit="10000")
    assert len(r.json["entries"]) == 10000 and r.json["truncated"]


def test_list_page_by_page(box):
    """In the order of their bytes, each once, also names that are not UTF-8."""
    box.shell("mkdir m m/sub; cd m; seq 1000 1249 | xargs touch; touch $'\\xff\\xfe' $'a b&c' sub/x sub/y")
    for query, limit, more in (("", 100, []), ("&recursive=true", 17, ["sub/x", "sub/y"])):
        page, seen = box.get("/files/list?path=m&limit=%d%s" % (limit, query)).json, []
        while True:
            is_schema(box, "FileList", page)
            seen += [base64.b64decode(e["name_base64"]) if "name_base64" in e else e["name"].encode() for e in page["entries"]]
            assert page["truncated"] == ("next" in page) and len(page["entries"]) <= limit
            if "next" not in page:
                break
            page = box.daemon.get(page["next"]).json
        assert seen == sorted([b"%d" % i for i in range(1000, 1250)] + [b"\xff\xfe", b"a b&c", b"sub"] + [m.encode() for m in more])


def test_artifacts_beyond_ten_thousand_names(box):
    box.shell("mkdir z; cd z; seq -f 'old-%.0f' 11000 | xargs touch; sleep 0.1")  # times of files are those of the last tick
    r = box.shell("echo new > z/zz-new")
    found = artifacts(box, r)
    assert [a["path"] for a in found["artifacts"]] == ["z/zz-new"] and not found["truncated"]


def test_move_and_mkdir_and_delete(box):
    r = box.post("/files/mkdir", {"path": "a/b", "parents": True, "mode": "700"})
    assert r.status == 201 and r.json["mode"] == "700" and r.json["type"] == "directory"
    assert box.post("/files/mkdir", {"path": "a/b", "parents": True}).status == 200
    assert error(box.post("/files/mkdir", {"path": "a/b"})) == (409, "file_exists", "path")
    put(box, "x", b"1")
    put(box, "y", b"2")
    assert error(box.post("/files/move", {"from": "x", "to": "y"})) == (409, "file_exists", "to")
    assert box.post("/files/move", {"from": "x", "to": "y", "overwrite": True}).status == 204
    assert get(box, "y").body == b"1" and names(box) == ["a", "y"]
    assert error(box.post("/files/move", {"from": "x", "to": "z"})) == (404, "no_such_file", "from")
    assert error(box.post("/files/move", {"from": "y", "to": "q/z"})) == (404, "no_such_file", "to")
    assert box.post("/files/move", {"from": "y", "to": "q/z", "parents": True}).status == 204
    assert error(box.post("/files/move", {"from": "a", "to": "a/b/c"}))[:2] == (422, "bad_path")
    assert delete(box, "q/z").status == 204 and delete(box, "q").status == 204
    assert error(delete(box, "a")) == (409, "directory_not_empty", "path")
    assert delete(box, "a", recursive=True).status == 204 and names(box) == []


# ---- archives --------------------------------------------------------------------------------------------------


def archive(files):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as t:
        for name, data in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            t.addfile(info, io.BytesIO(data))
    return out.getvalue()


def test_tar_in_and_out(box):
    files = {"a": b"1", "d/b": b"22", "d/" + "n" * 150: b"x" * 100000}
    r = put(box, "in", archive(files), "/tar", parents=True)
    assert r.status == 200 and r.json == {"path": "in", "entries": 3}
    is_schema(box, "Unpacked", r.json)
    r = get(box, "in", "/tar")
    assert r.status == 200 and r.headers["content-type"] == "application/x-tar" and "in.tar" in r.headers["content-disposition"]
    with tarfile.open(fileobj=io.BytesIO(r.body)) as t:
        assert {m.name: t.extractfile(m).read() for m in t if m.isreg()} == files
    assert error(put(box, "in", b"no archive" * 100, "/tar")) == (422, "bad_archive", "path")
    assert error(put(box, "in", archive(files)[:1000], "/tar")) == (422, "bad_archive", "path")
    assert error(put(box, "in", archive({"../out": b"1"}), "/tar")) == (403, "permission_denied", "path")
    assert "'../out'" in put(box, "in", archive({"../out": b"1"}), "/tar").error["message"]
    assert error(get(box, "none", "/tar")) == (404, "no_such_file", "path")
    box.shell("mkdir -p s/shut; chmod 0 s/shut")
    assert names(box) == ["in", "s"]


# ---- artifacts -------------------------------------------------------------------------------------------------


def test_artifacts_are_the_files_of_an_execution(box):
    put(box, "before.txt", b"old")
    box.shell("sleep 0.1")  # the clock of files is coarse
    r = box.shell("mkdir -p out __pycache__; echo 1,2 > out/table.csv; printf '\\x89PNG' > 'a b.png'; touch .hidden __pycache__/x.pyc;"
                  "touch -d 2001-01-01 old-looking; cat before.txt; ln -s before.txt link")
    found = box.get("/artifacts?execution_id=" + r["execution_id"])
    is_schema(box, "ArtifactList", found.json)
    files = {a["path"]: a for a in found.json["artifacts"]}
    assert list(files) == ["a b.png", "old-looking", "out/table.csv"] and not found.json["truncated"]
    a = files["out/table.csv"]
    assert (a["size"], a["mime"], a["sha256"]) == (4, "text/csv", hashlib.sha256(b"1,2\n").hexdigest())
    assert box.daemon.get(files["a b.png"]["url"]).body == b"\x89PNG" and files["a b.png"]["mime"] == "image/png"
    # Another execution has its own files, and those of the first stay the same.
    box.shell("sleep 0.1")
    other = box.shell("echo more > later.txt")
    assert [a["path"] for a in box.get("/artifacts?execution_id=" + other["execution_id"]).json["artifacts"]] == ["later.txt"]
    assert len(box.get("/artifacts?execution_id=" + r["execution_id"]).json["artifacts"]) == 3
    assert error(box.get("/artifacts?execution_id=" + "0" * 32)) == (404, "no_such_execution", "execution_id")
    assert box.get("/artifacts").status == 422 and box.get("/artifacts?execution_id=x").status == 422


def artifacts(box, execution, query=""):
    r = box.get("/artifacts?execution_id=%s%s" % (execution["execution_id"], query))
    assert r.status == 200, r
    is_schema(box, "ArtifactList", r.json)
    return r.json


def test_images_come_with_the_list(box):
    """Up to 1 MiB each and 4 MiB in all; the others can still be read."""
    r = box.shell("mkdir d; printf '\\x89PNG' > d/a.png; printf GIF > b.gif; head -c 1048576 /dev/zero > c1.jpg; head -c 1048577 /dev/zero > c2.jpg;"
                  "for i in 3 4 5 6; do head -c 1000000 /dev/zero > c$i.jpg; done; echo x > t.txt; chmod 0 b.gif")
    found = {a["path"]: a for a in artifacts(box, r)["artifacts"]}
    assert base64.b64decode(found["d/a.png"]["data"]) == b"\x89PNG" and found["d/a.png"]["mime"] == "image/png"
    assert found["d/a.png"]["sha256"] == hashlib.sha256(b"\x89PNG").hexdigest() and found["d/a.png"]["size"] == 4
    assert [p for p, a in found.items() if "data" in a] == ["c1.jpg", "c3.jpg", "c4.jpg", "c5.jpg", "d/a.png"], "the list has too many or too large images"
    assert found["c2.jpg"]["sha256"] == hashlib.sha256(bytes(1048577)).hexdigest() and "sha256" not in found["b.gif"]
    assert len(box.daemon.get(found["c6.jpg"]["url"]).body) == 1000000
    assert not any("data" in a for a in artifacts(box, r, "&inline=false")["artifacts"])


def test_artifacts_page_by_page(box):
    r = box.shell("mkdir z; for i in $(seq 1000 1229); do echo $i > $((i % 7))-$i; done; echo > z/last")
    page, paths = artifacts(box, r, "&inline=false"), []
    while True:
        paths += [a["path"] for a in page["artifacts"]]
        assert page["truncated"] == ("next" in page) and len(page["artifacts"]) <= 100
        if "next" not in page:
            break
        page = box.daemon.get(page["next"]).json
    assert paths == sorted(["%d-%d" % (i % 7, i) for i in range(1000, 1230)] + ["z/last"])


def test_names_that_are_not_utf8_have_an_address(box):
    r = box.shell("printf one > $'caf\\xe9.txt'; printf two > $'\\xff\\xfe.png'")
    found = artifacts(box, r)["artifacts"]
    assert [base64.b64decode(a["path_base64"]) for a in found] == [b"caf\xe9.txt", b"\xff\xfe.png"]
    assert [box.daemon.get(a["url"]).body for a in found] == [b"one", b"two"] and base64.b64decode(found[1]["data"]) == b"two"
    assert box.daemon.request("DELETE", found[0]["url"]).status == 204 and box.daemon.get(found[0]["url"]).status == 404


# ---- changes -----------------------------------------------------------------------------------------------------


class Watch:
    """Events of a directory: (type, data)."""

    def __init__(self, box, path, **more):
        self.s = box.daemon.connect()
        self.s.sendall(b"GET %s HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n\r\n" % (url(box, path, "/watch", **more).encode(), box.daemon.port))
        self.f = self.s.makefile("rb")
        self.status = int(self.f.readline().split()[1])
        while self.f.readline() not in (b"\r\n", b""):
            pass
        self.event, self.got = None, []

    def next(self):
        for line in self.f:
            if line == b"0\r\n":
                return None  # the last chunk
            if line.startswith(b"event: "):
                self.event = line[7:].strip().decode()
            elif line.startswith(b"data: "):
                return self.event, json.loads(line[6:])
        return None

    def until(self, event, path):
        got = []
        while e := self.next():
            got.append(e)
            if e[0] == event and e[1].get("path") == path:
                return got
        raise AssertionError("ended before %s %s: %r" % (event, path, got))

    def close(self):
        self.f.close()
        self.s.close()


def test_watch(box):
    box.shell("mkdir -p d/sub")
    w = Watch(box, "d", recursive=True)
    assert w.status == 200
    put(box, "d/new", b"1")
    assert w.until("created", "new") == [("created", {"path": "new", "is_dir": False})]
    put(box, "d/new", b"2")
    assert w.until("modified", "new") == [("modified", {"path": "new", "is_dir": False})]
    box.shell("mv d/new d/sub/old; rm d/sub/old; mkdir d/x")
    got = w.until("created", "x")
    assert got == [("moved", {"path": "sub/old", "is_dir": False, "from": "new"}),
                   ("deleted", {"path": "sub/old", "is_dir": False}), ("created", {"path": "x", "is_dir": True})]
    w.close()
    assert wait_until(lambda: "caisson-files" not in box.shell("cat /proc/[0-9]*/comm")["stdout"])
    assert Watch(box, "none").status == 404


def test_watch_ends_with_its_directory(box):
    box.shell("mkdir d e")
    w = Watch(box, "d")
    box.shell("rmdir d")
    assert w.next() == ("deleted", {"path": "", "is_dir": True}) and w.next() is None
    w.close()
    w = Watch(box, "e")
    box.daemon.request("DELETE", box.url)
    assert w.next()[0] == "error" and w.next() is None
    w.close()


def test_many_calls_at_once_and_an_end_in_the_middle(daemon):
    with Box(daemon, pids=128) as box:
        put(box, "f", bytes(3 * MIB))
        stop = threading.Event()
        seen = []

        def work(i):
            while not stop.is_set():
                try:
                    seen.append((get(box, "f") if i % 2 else put(box, "f", bytes(3 * MIB))).status)
                except (http.client.HTTPException, OSError) as e:
                    seen.append(type(e).__name__)

        threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
        for t in threads:
            t.start()
        assert wait_until(lambda: len(seen) > 60)
        before = len(seen)
        daemon.request("DELETE", box.url)
        assert wait_until(lambda: 404 in seen[before:])
        stop.set()
        for t in threads:
            t.join()
        assert set(seen[:before]) <= {200, 201}, set(seen)
        assert set(seen[before:]) <= {200, 201, 404, 409, "IncompleteRead", "ConnectionResetError", "BrokenPipeError",
                                      "RemoteDisconnected"}, set(seen)
