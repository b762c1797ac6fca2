# SPDX-License-Identifier: Apache-2.0
"""test_serve_files.py - File calls of `caisson serve`: paths that lead elsewhere."""
import bz2
import gzip
import io
import json
import lzma
import os
import tarfile
from urllib.parse import quote, unquote

import daemon_lib
import pytest
from canary import Canary
from process import unique
from lib import landed

daemon, hostile_test, whole_module = daemon_lib.daemon, daemon_lib.hostile_test, daemon_lib.whole_module
quick = pytest.mark.quick


@pytest.fixture
def box(daemon):
    name = unique("files")
    r = daemon.request("POST", "/v1/sandboxes", {"name": name})
    assert r.status == 201, r
    yield f"/v1/sandboxes/{name}"
    daemon.request("DELETE", f"/v1/sandboxes/{name}")


UP = "../" * 12
# As they are in the query, encoded here. %s is the path of a file of the host.
PATHS = [
    UP + "%s", "/" + UP + "%s", "..%%2f..%%2f..%%2f..%%2f..%%2f%s", "%%2e%%2e%%2f%%2e%%2e%%2f%%2e%%2e%%2f%%2e%%2e%%2f%s",
    "%%252e%%252e%%252f%%252e%%252e%%252f%s", "..%%5c..%%5c..%%5c..%%5c%s", "..\\..\\..\\%s", "....//....//....//%s", "..;/..;/%s",
    "%%c0%%ae%%c0%%ae/%s", "%%c0%%af..%%c0%%af%s", "%%e0%%80%%ae%%e0%%80%%ae/%s", "%%u002e%%u002e/%s", "..%%00/%s", "%s%%00", "%s%%00.txt",
    "%%00%s", "%s", "//%s", "///%s", "/./%s", "/proc/self/root%s", "/proc/1/root%s", "/proc/self/cwd/../..%s", "/proc/thread-self/root%s",
    "/dev/fd/../../..%s", "/workspace/../%s", "/workspace/..%s", "~%s", "file://%s", "file:%s", "/workspace%s", "$HOME/..%s", "`cat %s`",
    "$(cat %s)", "%s/", "%s/.", "%s//", "%%2f%s", "%%252f%s", "/etc/../%s", "/usr/../%s", "/tmp/../%s", "/home/agent/../..%s", "C:%s", "\\\\?\\%s",
    "host:%s", "@%s", "-%s", "--%s", "%%0a%s", "%s%%0a", "%%09%s", "%s%%20", "%%ef%%bc%%8e%%ef%%bc%%8e/%s", "%%e2%%80%%a5/%s",
    "..%%ef%%bc%%8f..%%ef%%bc%%8f%s", ".%%e2%%80%%8b./%s", "?path=%s", "%%23%s", "x/../../../../../..%s", "." + "/." * 500 + "/" + UP + "%s",
    "a/" * 1000 + UP + "%s", "A" * 5000 + "/../" + UP + "%s",
]


def encoded(path):
    """Encode bytes that cannot stand in a request line; encoded ones stay unchanged."""
    return quote(path, safe="%/\\.;:@$()~-?")


ENDPOINTS = [
    ("GET", "/files", None), ("HEAD", "/files", None), ("PUT", "/files", b"evil"), ("DELETE", "/files", None), ("GET", "/files/list", None),
    ("GET", "/files/stat", None), ("GET", "/files/tar", None),
]


@quick
@pytest.mark.parametrize("method,what,body", ENDPOINTS)
def test_path_spellings(daemon, box, method, what, body, stopped_by):
    """A table of spellings against each call: an answer in the one shape, and nothing of the host in it or behind it."""
    with Canary() as canary:
        outputs = []
        for path in PATHS:
            for file in list(canary.files)[:2]:
                r = daemon.request(method, f"{box}{what}?path={encoded(path % file)}", body)
                assert r.status in (200, 201, 204, 400, 403, 404, 409, 414, 422), (path, r)
                if r.status >= 400 and method != "HEAD":
                    assert r.code, r
                outputs.append(r.body)
        canary.check(*outputs)
    stopped_by("the call is a process of the cell")


@quick
def test_path_spellings_control(tmp_path):
    """A server that joins names to a directory of the host gives it away, by several of them."""
    with Canary() as canary:
        file = next(iter(canary.files))
        got = 0
        for path in PATHS:
            try:
                with open(os.path.join(tmp_path, unquote(path % file))) as f:
                    got += canary.nonce in f.read()
            except (OSError, ValueError):
                pass
        landed(got >= 5, f"{got} of {len(PATHS)}")


def long_names(n):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as t:
        for i in range(n):
            info = tarfile.TarInfo(("%06d" % i).ljust(250, "x"))
            t.addfile(info)
    return out.getvalue()


@quick
def test_large_list_does_not_grow_the_daemon(daemon, box):
    """Names of the greatest length, more than a list shows: bounded, and marked as truncated."""
    assert daemon.request("PUT", f"{box}/files/tar?path=m&parents=true", long_names(20000)).json["entries"] == 20000
    before = daemon.rss()
    for _ in range(5):
        r = daemon.request("GET", f"{box}/files/list?path=m&limit=10000")
        assert r.status == 200 and r.json["truncated"] and len(r.json["entries"]) == 10000
    assert daemon.rss() - before < daemon_lib.CEILING


def bombs():
    """Archives that are small here and 64 MiB elsewhere: {name: (bytes, program that unpacks them)}."""
    plain = io.BytesIO()
    with tarfile.open(fileobj=plain, mode="w") as t:
        member = tarfile.TarInfo("zeros")
        member.size = 64 << 20
        t.addfile(member, io.BytesIO(bytes(member.size)))
    data = plain.getvalue()
    inner = gzip.compress(data, 9)
    return {"gzip": (inner, gzip.decompress), "gzip in gzip": (gzip.compress(inner, 9), gzip.decompress), "bzip2": (bz2.compress(data), bz2.decompress),
            "xz": (lzma.compress(data), lzma.decompress)}, data


@quick
def test_compressed_archives_are_refused(daemon, box, stopped_by):
    """A compressed archive is refused, whatever its type in the head; the sandbox's disk bounds an uncompressed one."""
    packed, data = bombs()
    landed(all(len(undo(body)) > 10 * len(body) for body, undo in packed.values()), "they grow where somebody takes them apart")
    before = daemon.rss()
    for what, (body, _) in packed.items():
        for head in ({}, {"Content-Encoding": what.split()[0]}, {"Content-Type": "application/gzip"}, {"Transfer-Encoding": "gzip, chunked"}):
            r = daemon.request("PUT", f"{box}/files/tar?path=squeezed&parents=true", body, head)
            assert 400 <= r.status < 500, (what, head, r)
    r = daemon.request("GET", f"{box}/files/list?path=squeezed&recursive=true")
    assert r.status == 404 or r.json["entries"] == [], r
    assert daemon.rss() - before < daemon_lib.CEILING
    name = unique("small")
    assert daemon.request("POST", "/v1/sandboxes", {"name": name, "disk_mib": 16}).status == 201
    r = daemon.request("PUT", f"/v1/sandboxes/{name}/files/tar?path=.", data)
    assert r.status == 507 and r.code, r
    daemon.request("DELETE", f"/v1/sandboxes/{name}")
    stopped_by("nothing decompresses", "the limit on the disk")


@quick
def test_content_is_served_as_a_download(daemon, box):
    page = b"<html><script>fetch('/v1/sandboxes')</script></html>"
    for name in ("x.html", "x.svg", "index.htm", 'a"b.html', "a\r\nSet-Cookie: x=1"):
        path = quote(name, safe="")
        assert daemon.request("PUT", f"{box}/files?path={path}", page).status == 201
        r = daemon.request("GET", f"{box}/files?path={path}")
        assert r.body == page and r.headers["content-type"] == "application/octet-stream"
        assert r.headers["content-disposition"].startswith("attachment;") and r.headers["x-content-type-options"] == "nosniff"
        assert r.headers["content-security-policy"] == "sandbox" and "set-cookie" not in r.headers


@quick
def test_names_in_answers_are_text(daemon, box):
    """Whatever a name is made of, the answer is JSON, and the name can be had as bytes."""
    code = "import os\nfor n in (b'\\xff\\xfe', b'\"}', b'a\\nb', b'\\x1b[31m', b'<script>', b'\\xed\\xa0\\x80'): open(b'/workspace/' + n, 'w')"
    assert daemon.request("POST", f"{box}/exec", {"cmd": "python3", "args": ["-c", code]}).json["exit_code"] == 0
    r = daemon.request("GET", f"{box}/files/list?recursive=true")
    entries = json.loads(r.body.decode("utf-8", "strict"))["entries"]
    assert len(entries) == 6 and sum("name_base64" in e for e in entries) == 2
