# SPDX-License-Identifier: Apache-2.0
"""test_s3.py - Buckets: caisson-bucket against a real server."""
import contextlib
import hashlib
import os
import shutil
import signal
import subprocess
import threading
import time
import urllib.error
import urllib.request
from pathlib import Path

import integ_lib
import pytest

from box_lib import Box
from bucket_lib import FORGET, MOVED, PULL, PUT, Bucket, Job, OddServer, Server, TlsRelay, certificate, feed, files_of, tar_of, why_not
from mcp_lib import Modern
from process import HANG, SANITIZED, children, name_of, wait_until
from serve_lib import Daemon



@pytest.fixture(scope="module")
def server(tmp_path_factory):
    if why_not():
        pytest.skip(why_not())
    s = Server(tmp_path_factory.mktemp("s3") / "data")
    yield s
    s.stop()


@pytest.fixture
def box(server, request):
    """A bucket of the test's own."""
    name = "t-" + hashlib.sha256(request.node.name.encode()).hexdigest()[:12]
    server.make(name)
    return name


@pytest.fixture
def bucket(server, box, tmp_path):
    b = Bucket(server, tmp_path / "manifests", "--place=box=s3://%s/pre/fix" % box)
    yield b
    b.close()


def get(url):
    with urllib.request.urlopen(url, timeout=30) as r:
        return r.read()


# ---- one object ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["ünïcode/with blank & plus+.txt", pytest.param("a=b?c#d%41", marks=pytest.mark.slow), pytest.param("plain", marks=pytest.mark.slow)])
def test_put_and_link(server, box, bucket, name):
    r = bucket.put(b"hello " * 1000, key=name, expires=60, kind="text/plain")
    assert r.code == 0, r.msg
    assert server.get(box, "pre/fix/" + name) == b"hello " * 1000
    assert get(r.link) == b"hello " * 1000
    if not server.is_minio:
        return  # that server does not check signatures of links
    # The link is for this object, and cannot be changed.
    with pytest.raises(urllib.error.HTTPError) as e:
        get(r.link.replace("X-Amz-Expires=60", "X-Amz-Expires=6000"))
    assert e.value.code == 403


@pytest.mark.slow
def test_put_nothing(server, box, bucket):
    r = bucket.put(b"", key="empty")
    assert r.code == 0, r.msg
    assert r.link == ""
    assert server.get(box, "pre/fix/empty") == b""


@pytest.mark.slow
@pytest.mark.parametrize("name", ["../up", "a/../b", "/abs", "a//b", ".", ""])
def test_names_that_go_elsewhere_are_refused(server, box, bucket, name):
    r = bucket.put(b"x", key=name)
    assert r.code != 0 and "name" in r.msg
    assert server.keys_of(box) == []


@pytest.mark.slow
def test_put_in_parts_and_get_again(server, box, bucket):
    data = os.urandom(1 << 20) * 40
    r = bucket.put(data, key="large.bin", expires=60)
    assert r.code == 0, r.msg
    assert hashlib.sha256(get(r.link)).digest() == hashlib.sha256(data).digest()
    last, tar = bucket.pull()
    assert last.code == 0, last.msg
    assert files_of(tar)["large.bin"] == data


@pytest.mark.slow
def test_file_that_ends_early_is_not_put(server, box, bucket):
    r = bucket.put(b"x" * 1000, key="short", size=2000)
    assert r.code != 0
    assert server.get(box, "pre/fix/short") is None
    r = bucket.put([b"x" * (1 << 20)] * 20, key="short-parts", size=40 << 20)
    assert r.code != 0
    assert server.get(box, "pre/fix/short-parts") is None
    if server.is_minio:  # the other server does not list uploads
        assert server.uploads(box) == 0


@pytest.mark.slow
def test_unknown_place_and_wrong_keys(server, box, bucket, tmp_path):
    last, _ = bucket.pull(place="other")
    assert last.code != 0 and "configured" in last.msg
    if not server.is_minio:
        return  # the other server does not check keys
    wrong = Bucket(server, tmp_path / "wrong", "--place=box=s3://" + box, keys=(server.keys()[0], "wrong"))
    last, tar = wrong.pull()
    assert last.code != 0 and "403" in last.msg and "wrong" not in last.msg.replace("SignatureDoesNotMatch", "")
    assert tar == b""
    wrong.close()


@pytest.mark.slow
def test_bucket_that_is_not_there(server, tmp_path):
    b = Bucket(server, tmp_path / "m", "--place=box=s3://no-such-bucket")
    last, _ = b.pull()
    assert last.code != 0 and "no-such-bucket" in last.msg and "404" in last.msg
    b.close()


# ---- a place as a tree -------------------------------------------------------------------------------------------------


def fill(server, box, files):
    for path, data in files.items():
        server.put(box, "pre/fix/" + path, data)


def test_pull_brings_everything_below_the_prefix(server, box, bucket):
    files = {"a.txt": b"a", "d/e/f.bin": bytes(range(256)) * 5000, "d/e.txt": b"", "d-x": b"-", "x" * 120 + "/" + "y" * 120: b"long"}
    fill(server, box, files)
    server.put(box, "pre/other", b"not ours")
    last, tar = bucket.pull()
    assert last.code == 0, last.msg
    got = files_of(tar)
    assert {p: d for p, d in got.items() if d is not None} == files
    assert {p for p, d in got.items() if d is None} == {"d", "d/e", "x" * 120}
    assert (last.files, last.total_files, last.bytes) == (5, 5, sum(map(len, files.values())))


@pytest.mark.slow
def test_pull_many(server, box, bucket):
    """More than one page of the list would take minutes here; several batches at once do not."""
    files = {"n/%03d" % i: b"%d" % i for i in range(60)}
    fill(server, box, files)
    last, tar = bucket.pull()
    assert last.code == 0, last.msg
    assert {p: d for p, d in files_of(tar).items() if d is not None} == files


@pytest.mark.slow
@pytest.mark.parametrize("limit", [{"max_files": 2}, {"max_bytes": 10}])
def test_pull_has_limits(server, box, bucket, limit):
    fill(server, box, {"a": b"12345", "b": b"12345", "c": b"12345"})
    last, tar = bucket.pull(**limit)
    assert last.code != 0 and "more than" in last.msg
    assert tar == b""


@pytest.mark.slow
def test_look_lists_changes(server, box, bucket):
    fill(server, box, {"a": b"1", "b": b"2"})
    bucket.pull()
    bucket.keep()
    assert bucket.look().changed == 0
    server.put(box, "pre/fix/b", b"3")
    assert bucket.look().changed == 1
    server.put(box, "pre/fix/b", b"2")
    assert bucket.look().changed == 0
    server.delete(box, "pre/fix/a")
    assert bucket.look().changed == 1


def test_push_puts_and_removes(server, box, bucket):
    fill(server, box, {"keep": b"k", "change": b"old", "same-size": b"abc", "gone": b"g", "d/gone": b"g", "marked/": b""})
    bucket.pull()
    bucket.keep()
    tree = {"keep": b"k", "change": b"new!", "same-size": b"abd", "n": None, "n/added": b"added", "link": ("l", "keep")}
    r = bucket.push(tar_of(tree))
    assert r.code == 0, r.msg
    assert "'link'" in r.msg  # things that a bucket cannot hold are reported
    assert (r.files, r.total_files) == (6, 6)  # three put, three removed
    assert server.keys_of(box) == ["pre/fix/change", "pre/fix/keep", "pre/fix/n/added", "pre/fix/same-size"]
    assert server.get(box, "pre/fix/change") == b"new!" and server.get(box, "pre/fix/same-size") == b"abd"
    assert bucket.look().changed == 0
    r = bucket.push(tar_of(tree))
    assert r.code == 0 and r.changed == 0 and r.files == 0


def test_push_finds_conflicts(server, box, bucket):
    fill(server, box, {"a": b"1", "b": b"1", "c": b"1"})
    bucket.pull()
    bucket.keep()
    server.put(box, "pre/fix/b", b"somebody else's")
    r = bucket.push(tar_of({"a": b"ours", "b": b"ours", "c": b"1"}))
    assert r.code != 0 and "conflict" in r.msg and "'b'" in r.msg and "'a'" not in r.msg
    assert server.get(box, "pre/fix/a") == b"1"
    assert server.get(box, "pre/fix/b") == b"somebody else's"
    r = bucket.push(tar_of({"a": b"1", "c": b"1"}))  # removed here, changed there
    assert r.code != 0 and "'b'" in r.msg and server.get(box, "pre/fix/b")
    server.put(box, "pre/fix/b", b"1")
    server.put(box, "pre/fix/new", b"theirs")
    r = bucket.push(tar_of({"a": b"1", "b": b"1", "c": b"1", "new": b"ours"}))
    assert r.code != 0 and "'new'" in r.msg
    assert server.get(box, "pre/fix/new") == b"theirs"
    r = bucket.push(tar_of({"a": b"ours", "b": b"1", "c": b"1"}))  # others may write objects that we do not
    assert r.code == 0, r.msg
    assert server.get(box, "pre/fix/a") == b"ours" and server.get(box, "pre/fix/new") == b"theirs"


@pytest.mark.slow
def test_forget(server, box, bucket, tmp_path):
    fill(server, box, {"a": b"1"})
    bucket.pull()
    bucket.keep()
    assert os.listdir(tmp_path / "manifests")
    assert Job(bucket, FORGET, place="box").wait().code == 0
    assert os.listdir(tmp_path / "manifests") == []
    assert bucket.look().code != 0


# ---- servers that are odd, or worse --------------------------------------------------------------------------------------


@pytest.fixture
def odd(tmp_path):
    """A function: an odd server, and caisson-bucket for it."""
    made = []

    def make(*args, prefix="", **kw):
        s = OddServer(*args, **kw)
        b = Bucket(s, tmp_path / "odd", "--place=box=s3://box" + prefix)
        made.append((s, b))
        return s, b

    yield make
    for s, b in made:
        b.close()
        s.close()


@pytest.mark.parametrize("key", ["../../etc/passwd", *(pytest.param(k, marks=pytest.mark.slow) for k in
                                                       ("a/../../b", "/etc/passwd", "a//b", "./a", "a/.", "n\0ul", "x" * 256, "a\n/../b", "k" * 1025, ".."))])
def test_keys_that_are_no_paths_are_refused_by_name(odd, key):
    s, b = odd([("fine", b"1"), (key, b"2")])
    last, tar = b.pull()
    assert last.code != 0 and "1 keys" in last.msg and "'fine'" not in last.msg, last.msg
    assert key[:10].replace("\0", "?").replace("\n", "?") in last.msg
    assert tar == b"" and len(s.asked) == 1  # no object was requested


@pytest.mark.slow
def test_file_and_directory_of_one_name(odd):
    _, b = odd([("a", b"1"), ("a!", b"1"), ("a/b", b"1")])
    last, tar = b.pull()
    assert last.code != 0 and "'a/b'" in last.msg and tar == b""


@pytest.mark.slow
@pytest.mark.parametrize("text", [b"<html>hello</html>", b"", b"<ListBucketResult><Contents>", b"<ListBucketResult><IsTruncated>true</IsTruncated></ListBucketResult>",
                                  b'<!DOCTYPE l [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;">]><ListBucketResult><Name>&b;</Name></ListBucketResult>',
                                  b"<ListBucketResult><Contents><Key>elsewhere/x</Key><Size>1</Size></Contents></ListBucketResult>"])
def test_lists_that_are_none(odd, text):
    _, b = odd(listing=text or b" ", prefix="/here")
    last, tar = b.pull()
    assert last.code != 0 and tar == b"", last.msg


def test_a_download_that_breaks_goes_on(odd):
    data = os.urandom(3 << 20)
    broken = []

    def behave(h, objects):
        first = int(h.headers.get("Range", "bytes=0-")[6:-1])
        if first:
            assert h.headers["If-Match"] == '"e-%d"' % len(data)  # of the same version
        if len(broken) < 3:
            broken.append(first)
            return h.say(206 if first else 200, data[first:first + (1 << 20) - 77], length=len(data) - first)
        return h.say(206 if first else 200, data[first:])

    _, b = odd([("big", data)], behave=behave)
    last, tar = b.pull()
    assert last.code == 0, last.msg
    assert files_of(tar) == {"big": data} and broken[1] > 0


@pytest.mark.slow
def test_a_busy_server_is_asked_again(odd):
    busy = [503, 429, 500]
    _, b = odd([("a", b"1")], behave=lambda h, o: h.say(busy.pop(), b"<Error><Code>SlowDown</Code></Error>") if busy else h.say(200, b"1"))
    last, tar = b.pull()
    assert last.code == 0 and files_of(tar) == {"a": b"1"}, last.msg


@pytest.mark.slow
@pytest.mark.parametrize("status,body", [(200, b"longer than it said"), (200, b""), (404, b""), (412, b"")])
def test_an_object_that_changed_meanwhile(odd, status, body):
    _, b = odd([("a", b"12345")], behave=lambda h, o: h.say(status, body))
    last, tar = b.pull()
    assert last.code != 0 and "'a'" in last.msg and "changed" in last.msg, last.msg
    assert not tar.endswith(bytes(1024))  # it cannot be mistaken for a whole archive


# ---- trouble ---------------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_bucket_that_goes_away_and_comes_back(tmp_path):
    if why_not():
        pytest.skip(why_not())
    s = Server(tmp_path / "own" / "data")
    try:
        s.make("box")
        s.put("box", "a", b"1")
        b = Bucket(s, tmp_path / "m", "--place=box=s3://box")
        b.pull()
        b.keep()
        s.stop()
        began = time.monotonic()
        last, _ = b.pull()
        assert last.code != 0 and "cannot be reached" in last.msg
        r = b.push(tar_of({"a": b"2"}))
        assert r.code != 0 and "cannot be reached" in r.msg
        assert time.monotonic() - began < 120  # a hang, not a measurement
        s.start()
        r = b.push(tar_of({"a": b"2"}))
        assert r.code == 0, r.msg
        assert s.get("box", "a") == b"2"
        b.close()
    finally:
        s.stop()


@pytest.mark.slow
def test_nobody_waits(server, box, bucket):
    """A client that closes the pipe of answers ends the job, and its process."""
    fill(server, box, {"a": b"x" * 5000000})
    read, write = os.pipe()
    job = Job(bucket, PULL, write, place="box")
    os.read(read, 1000)  # the job runs, and the pipe is full
    os.close(job.answers)
    os.close(read)
    assert wait_until(lambda: not children(bucket.worker))


@pytest.mark.slow
def test_tls_is_verified(server, box, tmp_path):
    """By name, through the resolver that it may still use; by the operator's certificate, and by no other."""
    cert, other = certificate(tmp_path, "ours"), certificate(tmp_path, "other")
    with TlsRelay(cert, server.port) as relay:
        url = "https://localhost:%d" % relay.port
        good = Bucket(server, tmp_path / "good", "--place=box=s3://" + box, "--ca=%s" % cert[0], endpoint=url)
        r = good.put(b"over TLS", key="tls.txt")
        assert r.code == 0, r.msg
        assert server.get(box, "tls.txt") == b"over TLS"
        good.close()
        for words in (["--ca=%s" % other[0]], []):
            bad = Bucket(server, tmp_path / "bad", "--place=box=s3://" + box, *words, endpoint=url)
            r = bad.put(b"never", key="never")
            assert r.code != 0 and "certificate" in r.msg, r.msg
            bad.close()
    assert server.get(box, "never") is None


@pytest.mark.slow
def test_mounted_by_rclone(server, box, tmp_path):
    """FUSE, as in docs/s3.md: the operator mounts, sandboxes read."""
    if os.geteuid() != 0 or not shutil.which("rclone") or not os.path.exists("/dev/fuse"):
        pytest.skip("needs root, /dev/fuse and rclone (apt-get install rclone fuse3)")
    server.put(box, "team/a.txt", b"from the bucket")
    access, secret = server.keys()
    config = private(tmp_path / "rclone.conf", "[box]\ntype = s3\nprovider = Other\naccess_key_id = %s\nsecret_access_key = %s\nendpoint = %s\nregion = us-east-1\n"
                     % (access, secret, server.url))
    where = tmp_path / "mounted"
    where.mkdir()
    env = {k: v for k, v in os.environ.items() if k != "AWS_CA_BUNDLE"}
    p = subprocess.Popen(["rclone", "--config", str(config), "mount", "box:%s/team" % box, str(where), "--allow-other"], env=env)
    try:
        assert wait_until(lambda: p.poll() is not None or os.path.ismount(where))
        if p.poll() is not None:
            pytest.skip("rclone cannot mount here: it ended with %d" % p.returncode)
        r = integ_lib.run("run", "--mount", "%s:/data:ro" % where, "--lang", "bash", "cat /data/a.txt; echo x > /data/b || true")
        assert r.code == 0 and r.out.startswith(b"from the bucket"), r
        r = integ_lib.run("run", "--mount", "%s:/data:rw" % where, "true")
        assert r.code != 0 and b"id-mapped" in r.err  # with the reason
    finally:
        subprocess.run(["umount", "-l", str(where)], check=False)
        p.kill()
        p.wait()


GIB = 1 << 30
BLOCK = bytes(range(256)) * 4096  # 1 MiB
FULL = pytest.mark.skipif(os.environ.get("CAISSON_S3_FULL") != "1", reason="a gigabyte: make s3 runs it")


def peak_kib(pid):
    """The peak memory of each process below @pid."""
    most = 0
    for child in Path("/proc/%d/task/%d/children" % (pid, pid)).read_text().split():
        try:
            status = Path("/proc/%s/status" % child).read_text()
        except OSError:
            continue
        if "VmHWM:" in status:  # a process that has just ended has none
            most = max(most, int(status.split("VmHWM:")[1].split()[0]))
    return most


@FULL
@pytest.mark.slow
def test_a_gigabyte_in_flat_memory(server, box, bucket):
    blocks = (BLOCK[i % 256:] + BLOCK[:i % 256] for i in range(1024))
    wanted = hashlib.sha256()
    for i in range(1024):
        wanted.update(BLOCK[i % 256:] + BLOCK[:i % 256])
    read, write = os.pipe()
    job = Job(bucket, PUT, read, place="box", key="big", size=GIB)
    feed(write, blocks)
    most = 0
    while (r := job.read()).say == MOVED:
        most = max(most, peak_kib(bucket.worker))
    assert r.code == 0, r.msg
    assert 0 < most < 64 << 10, most  # a part of 16 MiB, the library, and its buffers
    read, write = os.pipe()
    job = Job(bucket, PULL, write, place="box")
    most, got, left = 0, hashlib.sha256(), GIB
    with os.fdopen(read, "rb") as f:
        assert f.read(512)[:3] == b"big"
        while left:
            part = f.read(min(left, 1 << 20))
            assert part
            got.update(part)
            left -= len(part)
            if left % (64 << 20) == 0:
                most = max(most, peak_kib(bucket.worker))
        assert job.wait().code == 0  # first: it cannot end before this is read
        f.read()
    assert got.digest() == wanted.digest()
    assert 0 < most < 64 << 10, most


@FULL
@pytest.mark.slow
def test_a_gigabyte_in_a_workspace(serve, server, box):
    d = start(serve, server, box)
    assert d.post("/v1/workspaces", {"name": "data", "quota_mib": 3000}).status == 201
    with Box(d, workspace="data", disk_mib=2000, memory_mib=2500) as b:
        sh(b, "head -c 1073741824 /dev/zero | tr '\\0' x > /workspace/big")
        commit(b)
        settled(d)
    assert d.request("DELETE", "/v1/workspaces/data").status == 204
    assert d.post("/v1/workspaces", {"name": "data", "quota_mib": 3000}).status == 201
    with Box(d, workspace="data:ro") as b:
        assert sh(b, "sha256sum < /workspace/big").split()[0] == hashlib.sha256(b"x" * GIB).hexdigest()


@pytest.mark.parametrize("whose", ["maker", "worker"])
def test_it_has_no_power(server, bucket, whose):
    pid = bucket.worker if whose == "worker" else bucket.process.pid
    status = Path("/proc/%d/status" % pid).read_text()
    fields = dict(line.split(":\t", 1) for line in status.splitlines() if ":\t" in line)
    assert int(fields["CapEff"], 16) == int(fields["CapBnd"], 16) == 0 or os.geteuid() != 0
    assert fields["NoNewPrivs"] == "1"
    if not SANITIZED and fields.get("Seccomp") is not None:
        assert fields["Seccomp"] == "2"
    if os.geteuid() == 0:
        assert all(int(u) != 0 for u in fields["Uid"].split())
    # Others cannot read the keys either.
    assert b"secret" not in Path("/proc/%d/environ" % pid).read_bytes()
    assert b"secret" not in Path("/proc/%d/cmdline" % pid).read_bytes()


# ---- what executions leave, through a daemon -------------------------------------------------------------------------------


def seed_env(server, box):
    """The variables of the service that this one replaces."""
    access, secret = server.keys()
    return {"COREASON_SANDBOX_S3_BUCKET": box, "COREASON_SANDBOX_S3_REGION": "us-east-1", "COREASON_SANDBOX_S3_ENDPOINT_URL": server.url,
            "COREASON_SANDBOX_S3_ACCESS_KEY": access, "COREASON_SANDBOX_S3_SECRET_KEY": secret}


def private(path, text, mode=0o600):
    path.write_text(text)
    path.chmod(mode)
    return path


MAKE = "import os; os.makedirs('out', exist_ok=True); open('out/report.csv', 'w').write('a,b\\n' * 1000); open('big.bin', 'wb').write(bytes(range(256)) * 80000)"


def memory_files(pid):
    """The content of every memfd that the process has open."""
    for link in Path("/proc/%d/fd" % pid).iterdir():
        with contextlib.suppress(OSError):
            if os.readlink(link).startswith("/memfd:"):
                yield link.read_bytes()


def test_artifacts_have_links(serve, server, box):
    d = serve(env=seed_env(server, box))
    b = Box(d, "arty")
    r = b.post("/execute", {"code": MAKE}).json
    found = {a["path"]: a for a in b.get("/artifacts?execution_id=" + r["execution_id"]).json["artifacts"]}
    assert sorted(found) == ["big.bin", "out/report.csv"]
    for path, a in found.items():
        assert a["link_seconds"] == 3600 and "link_error" not in a, a
        data = get(a["link"])
        assert len(data) == a["size"] and hashlib.sha256(data).hexdigest() == a["sha256"]
    assert server.keys_of(box) == ["artifacts/local/arty/%s" % p for p in sorted(found)]
    # A secret of one process is in no other.
    secret = server.keys()[1].encode()
    for pid in (d.keeper, d.pid):
        assert secret not in Path("/proc/%d/environ" % pid).read_bytes()
    assert any(secret in text for text in memory_files(d.keeper)), "the next front's bucket needs them"
    assert not any(secret in text for text in memory_files(d.pid)), "the front can read the keys"
    assert secret.decode() not in d.log_text()


@pytest.mark.slow
def test_mcp_answers_with_links(serve, server, box, tmp_path):
    access, secret = server.keys()
    keys = private(tmp_path / "credentials", "[default]\naws_access_key_id = no\naws_secret_access_key = no\n\n[box]\naws_access_key_id = %s\naws_secret_access_key = %s\n" % (access, secret))
    d = serve("--s3-bucket", "s3://%s/deep" % box, "--s3-endpoint", server.url, "--s3-credentials", keys, "--s3-profile", "box", "--s3-link-time", "90s")
    answer = Modern(d).tool("execute_code", session_id="mine", language="python", code="open('x.txt', 'w').write('hello')")
    link = next(f["link"] for f in answer["structuredContent"]["files"] if f["path"] == "x.txt")
    assert "X-Amz-Expires=90&" in link and get(link) == b"hello"
    assert link in [c.get("uri") for c in answer["content"]]
    assert server.keys_of(box) == ["deep/artifacts/local/mine/x.txt"]


@pytest.mark.slow
def test_artifacts_without_the_bucket(serve, server, box):
    """Files without a link can still be read."""
    d = serve("--s3-endpoint", "http://127.0.0.1:9", env={**seed_env(server, box)})
    b = Box(d, "arty")
    r = b.post("/execute", {"code": "open('f.txt', 'w').write('here')"}).json
    (a,) = b.get("/artifacts?execution_id=" + r["execution_id"]).json["artifacts"]
    assert "link" not in a and "cannot be reached" in a["link_error"]
    assert d.get(a["url"]).body == b"here"


@pytest.mark.slow
def test_errors_of_the_configuration_are_named(server, box, tmp_path, pytestconfig):
    def refused(*flags, env=None):
        d = Daemon(pytestconfig.serve_dir, *flags, env=env, wait=False)
        try:
            assert d.p.wait(30) == 125, d.log_text()
        finally:
            d.kill()
        return d.log_text()

    assert "--s3-credentials" in refused("--s3-bucket", box)
    open_file = private(tmp_path / "open", "aws_access_key_id=a\naws_secret_access_key=b\n", 0o644)
    assert "--s3-credentials" in refused("--s3-bucket", box, "--s3-credentials", open_file)
    assert "Bad_Bucket" in refused("--s3-bucket", "Bad_Bucket")
    assert "--workspace-bucket" in refused("--workspace-bucket", "data=s3:/box")
    assert "--s3-style" in refused("--s3-bucket", box, "--s3-style", "odd")


# ---- workspaces in a bucket, through a daemon ----------------------------------------------------------------------------


def start(serve, server, box, *flags):
    access, secret = server.keys()
    return serve("--s3-endpoint", server.url, "--workspace-bucket", "data=s3://%s/team" % box, *flags, env={"AWS_ACCESS_KEY_ID": access, "AWS_SECRET_ACCESS_KEY": secret})


def state(d):
    return d.get("/v1/workspaces/data").json["bucket"]


def settled(d, wanted="synced"):
    assert wait_until(lambda: state(d)["state"] == wanted), state(d)


def sh(b, script):
    r = b.shell(script)
    assert r["exit_code"] == 0, r
    return r["stdout"]


def commit(b):
    r = b.post("/workspace/commit")
    assert r.status == 200, r


def workspace(d):
    r = d.post("/v1/workspaces", {"name": "data"})
    assert r.status == 201, r


def worker(d):
    """The worker of caisson-bucket: the child of the process that was started."""
    def find():
        first = next((p for p in children(d.pid) if name_of(p) == "caisson-bucket"), 0)
        return next((p for p in children(first) if name_of(p) == "caisson-bucket"), None)
    return wait_until(find)


def kill_worker(d):
    old = worker(d)
    os.kill(old, signal.SIGKILL)
    assert wait_until(lambda: worker(d) not in (None, old)), "the worker was not replaced"


@pytest.mark.slow
def test_killed_it_is_replaced(serve, server, box):
    """Idle, and in the middle of a push: all of it is in the bucket in the end, and the front is the same process."""
    server.put(box, "team/first", b"1")
    d = start(serve, server, box)
    front = d.pid
    kill_worker(d)
    workspace(d)
    with Box(d, workspace="data") as b:
        assert sh(b, "cat /workspace/first") == "1"
        sh(b, "cd /workspace && echo 2 > first && head -c 60000000 /dev/urandom > bulk && sha256sum < bulk > sum")
        commit(b)
        assert wait_until(lambda: children(worker(d)) or state(d)["state"] == "synced"), "no transfer begins"
        kill_worker(d)
        settled(d)
        assert server.get(box, "team/first") == b"2\n"
        assert hashlib.sha256(server.get(box, "team/bulk")).hexdigest() == server.get(box, "team/sum").decode().split()[0]
    d.request("DELETE", "/v1/workspaces/data")
    workspace(d)
    with Box(d, workspace="data") as b:
        assert sh(b, "cd /workspace && sha256sum < bulk | cmp - sum && cat first") == "2\n"
    assert d.pid == front


def test_workspace_comes_from_a_bucket_and_goes_back(serve, server, box):
    for path, data in {"a.txt": b"alpha", "d/b.txt": b"beta", "gone": b"x"}.items():
        server.put(box, "team/" + path, data)
    server.put(box, "other", b"not ours")
    d = start(serve, server, box)
    workspace(d)
    with Box(d, workspace="data") as b:
        assert sh(b, "cd /workspace && cat a.txt d/b.txt && ls") == "alphabetaa.txt\nd\ngone\n"
        sh(b, "cd /workspace && printf new > a.txt && rm gone && mkdir -p e/f && printf added > e/f/c.txt")
        assert server.get(box, "team/a.txt") == b"alpha"  # a copy, until it is committed
        commit(b)
        settled(d)
        assert server.keys_of(box) == ["other", "team/a.txt", "team/d/b.txt", "team/e/f/c.txt"]
        assert server.get(box, "team/a.txt") == b"new" and server.get(box, "team/e/f/c.txt") == b"added"
    # Files that others put there meanwhile are in the next sandbox.
    server.put(box, "team/d/b.txt", b"from elsewhere")
    with Box(d, workspace="data:ro") as b:
        assert sh(b, "cat /workspace/d/b.txt") == "from elsewhere"
    assert d.request("DELETE", "/v1/workspaces/data").status == 204
    assert len(server.keys_of(box)) == 4  # the bucket keeps its content
    assert wait_until(lambda: os.listdir(d.state / "buckets") == [])


@pytest.mark.slow
def test_conflicts_are_reported_and_lose_nothing(serve, server, box):
    server.put(box, "team/a", b"1")
    d = start(serve, server, box)
    workspace(d)
    with Box(d, workspace="data") as b:
        sh(b, "printf ours > /workspace/a")
        server.put(box, "team/a", b"theirs")
        commit(b)
        settled(d, "conflict")
        assert "'a'" in state(d)["error"]
        assert server.get(box, "team/a") == b"theirs"
    assert d.request("DELETE", "/v1/workspaces/data").status == 409
    with Box(d, workspace="data:ro") as b:
        assert sh(b, "cat /workspace/a") == "ours"


@pytest.mark.slow
def test_bucket_that_is_away_is_waited_for(serve, tmp_path):
    if why_not():
        pytest.skip(why_not())
    s = Server(tmp_path / "own" / "data")
    try:
        s.make("box")
        s.put("box", "team/a", b"1")
        d = start(serve, s, "box")
        workspace(d)
        s.stop()
        r = d.post("/v1/sandboxes", {"name": "early", "workspace": "data"})
        r = d.post("/v1/sandboxes/early/exec", {"cmd": "true"}, timeout=100) if r.status == 201 else r
        assert r.status == 503 and "cannot be reached" in r.json["error"]["message"], r
        d.request("DELETE", "/v1/sandboxes/early")
        s.start()
        with Box(d, workspace="data") as b:
            assert sh(b, "cat /workspace/a") == "1"
            s.stop()
            sh(b, "printf 2 > /workspace/a")
            commit(b)
            assert wait_until(lambda: "error" in state(d))
            assert state(d)["state"] in ("changed", "pushing")
        with Box(d, workspace="data:ro") as b:  # nothing is lost, and the workspace can be used
            assert sh(b, "cat /workspace/a") == "2"
        d.stop()  # and the upload is still pending
        s.start()
        d.start()
        d.wait_ready()
        settled(d)
        assert s.get("box", "team/a") == b"2"
    finally:
        s.stop()


def test_a_bucket_that_hangs_delays_nothing_else(serve):
    """While it takes a commit and does not end: the workspace can be read, opened and committed to."""
    held, go = threading.Event(), threading.Event()

    def put(handler):
        held.set()
        go.wait(HANG)
        handler.close_connection = True

    s = OddServer(put=put)
    try:
        d = start(serve, s, "box")
        workspace(d)
        with Box(d, workspace="data") as a:
            sh(a, "head -c 3000000 /dev/urandom > /workspace/first")
            commit(a)
            assert held.wait(HANG), "nothing is put"
            for _ in range(10):  # more than the workspace store does at once
                assert state(d)["state"] in ("pushing", "changed")
            with Box(d, workspace="data") as b:
                assert sh(b, "wc -c < /workspace/first; echo 2 > /workspace/second") == "3000000\n"
                commit(b)
            assert d.get("/v1/workspaces/data").json["generation"] == 3
        go.set()
        d.stop()
    finally:
        go.set()
        s.close()


@pytest.mark.slow
def test_writes_in_place_are_put_at_the_end(serve, server, box):
    server.put(box, "team/a", b"1")
    d = start(serve, server, box, "--workspace-rw")
    workspace(d)
    with Box(d, workspace="data:rw") as b:
        sh(b, "printf in-place > /workspace/a; printf x > /workspace/new")
    settled(d)
    assert server.get(box, "team/a") == b"in-place" and server.get(box, "team/new") == b"x"


@pytest.mark.slow
def test_only_mapped_buckets(serve, server, box):
    server.put(box, "team/a", b"1")
    d = start(serve, server, box)
    for name in ("s3://%s/team" % box, "s3://other"):
        assert d.post("/v1/sandboxes", {"name": "x", "workspace": name}).status == 422
    assert d.post("/v1/workspaces", {"name": "mine"}).status == 201
    with Box(d, workspace="mine") as b:
        assert sh(b, "ls /workspace") == ""
    assert "bucket" not in d.get("/v1/workspaces/mine").json
