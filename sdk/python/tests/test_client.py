# SPDX-License-Identifier: Apache-2.0
"""test_client.py - The blocking client, against a real daemon."""
import asyncio
import base64
import io
import os
import signal
import subprocess
import tarfile
import threading
import urllib.request

import pytest
from process import call_yourself, unique, wait_until

import caisson
from caisson import _archive, errors

PNG = base64.b64decode("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==")


# ---- running -------------------------------------------------------------------------------------------------------------------


def test_code_with_a_value(client):
    r = client.execute("x = 20\nprint('hello')\nx * 2 + 2")
    assert r.ok and r.status == "ok" and r.stdout == "hello\n" and r.text == "42" and r.state == "discarded" and r.language == "python"
    assert r.usage.wall_ns > 0 and r.execution_time > 0 and len(r.execution_id) == 32


def test_variables_are_kept(client, box):
    assert box.execute("x = 41").state == "kept"
    assert box.execute("x + 1").text == "42"
    assert client.execute("y = 1", session_id=box.name).ok and box.execute("y").text == "1"


def test_exception_of_code(box):
    r = box.execute("def f():\n    raise ValueError('no')\nf()")
    assert not r.ok and r.status == "error" and r.error.name == "ValueError" and r.error.value == "no" and "f()" in str(r.error)
    with pytest.raises(caisson.ExecutionFailed, match="ValueError: no") as e:
        r.check()
    assert e.value.result is r
    assert box.execute("1").check().text == "1"


def test_languages(box):
    assert box.execute("echo $((6 * 7))", language="bash").stdout == "42\n"
    with pytest.raises(caisson.LanguageUnavailable) as e:
        box.execute("x", language="cobol")
    assert e.value.code == "unknown_language" and e.value.field == "language"


def test_displays(box):
    r = box.execute("from base64 import b64decode\ndisplay({'image/png': '%s', 'text/plain': 'dot'}, raw=True)" % base64.b64encode(PNG).decode())
    assert r.images == (PNG,) and r.displays[0].bytes("text/plain") == b"dot" and r.displays[0].bytes("image/jpeg") is None


@pytest.mark.slow
def test_limits_are_named(client):
    with client.create(memory_mib=64) as box:
        r = box.execute("x = bytearray(500 << 20)")
        assert not r.ok and r.status == "limit" and r.cause.kind == "memory" and r.cause.limit == 64 << 20 and r.cause.hint
        assert (r.state, r.files, r.epoch) == ("reset", "kept", 1)
    with client.create(memory_mib=64, oom="sandbox") as box:
        r = box.exec("python3", ["-c", "x = bytearray(500 << 20)"])
        assert (r.state, r.files, r.epoch) == ("reset", "lost", 1)
        with pytest.raises(caisson.ExecutionFailed, match="files, processes and variables are gone"):
            r.check()
    r = client.execute("import time; time.sleep(100)", timeout=0.5)
    assert r.status == "timeout" and r.exit_code == 124 and r.cause.kind == "wall" and r.cause.limit == 500


def test_missing_egress_is_a_hint(client, box):
    for r in (box.shell("curl -sS http://example.org"), client.execute("import urllib.request as u; u.urlopen('http://example.org')")):
        assert not r.ok and r.cause is None and "egress" in r.hint, r
        with pytest.raises(caisson.ExecutionFailed) as failed:
            r.check()
        assert failed.value.hint == r.hint


def test_exec(box):
    r = box.exec("cat", stdin="in", env={"A": "b"}, cwd="/tmp")
    assert r.stdout == "in" and r.ok
    assert box.shell("echo $A; pwd", env={"A": "b"}, cwd="/tmp").stdout == "b\n/tmp\n"
    r = box.exec("printf", ["a\\377"])
    assert r.stdout == "a\ufffd" and r.stdout_bytes == b"a\xff"
    assert box.exec("nowhere").exit_code == 127


def test_with_a_key_it_is_done_once(box):
    for _ in range(3):
        assert box.shell("echo x >>n; wc -l <n", idempotency_key="once").stdout.strip() == "1"
    for _ in range(3):
        assert box.execute("n = globals().get('n', 0) + 1; print(n)", idempotency_key="code").stdout == "1\n"


def test_run_once(client):
    assert client.run_python("print(input())", stdin="line\n", timeout=10).stdout == "line\n"
    r = client.run_python("import os; print(os.environ['A'])", env={"A": "b"}, memory_mib=128)
    assert r.stdout == "b\n" and client.list() == []
    assert client.run_shell("exit 3").exit_code == 3


# ---- sandboxes -----------------------------------------------------------------------------------------------------------------


def test_life(client):
    box = client.create("life", memory_mib=128, cpus=0.5, labels={"team": "red"}, timeout_seconds=600, env={"A": "secret"})
    info = box.info()
    assert info.state == "running" and info.spec["memory_mib"] == 128 and info.spec["cpus"] == 0.5 and info.spec["labels"] == {"team": "red"}
    assert info.receipt and info.expires_at and info.spec["env"] == ["A"]
    assert client.create(caisson.SandboxSpec("life", memory_mib=128, cpus=0.5, labels={"team": "red"}, timeout_seconds=600, env={"A": "secret"})).name == "life"
    with pytest.raises(caisson.SandboxExists) as e:
        client.create("life", memory_mib=256)
    assert e.value.status == 409
    assert [s.name for s in client.sandboxes({"team": "red"})] == ["life"] and client.sandboxes({"team": "blue"}) == []
    assert box.extend(1000).expires_at > info.expires_at
    box.stop(grace=0)
    assert box.info().state == "stopped"
    box.remove()
    with pytest.raises(caisson.SandboxNotFound):
        box.info()


def test_context_removes(client):
    with client.create("gone") as box:
        assert client.list() == ["gone"] and "gone" in repr(box)
    assert client.list() == []
    with client.create("gone") as box:
        box.remove()


@pytest.mark.parametrize("fields, field", [({"memory_mib": 1}, "memory_mib"), ({"image": "python:3.11-slim"}, "image"), ({"secrets": ("NONE",)}, "secrets"),
                                           ({"servers": ("none",)}, "servers"), ({"egress": ("*",)}, "egress"), ({"mounts": ("/none",)}, "mounts")])
def test_refused_specs_name_the_field(client, fields, field):
    """Also the default image, if the caller names it: nothing is accepted and ignored."""
    with pytest.raises(caisson.InvalidRequest) as e:
        client.create(**fields)
    assert e.value.field.startswith(field) and e.value.message and e.value.request_id


def test_a_text_is_not_a_list(client, box):
    """Not a list of its letters: exec("ls", "-l") ran `ls - l`."""
    for field, call in (("args", lambda: box.exec("ls", "-l")), ("args", lambda: box.stream_exec("ls", "-l").__enter__()),
                        ("args", lambda: box.processes.start("ls", "-l")), ("egress", lambda: box.egress.set("pypi.org")),
                        ("egress", lambda: client.create(egress="pypi.org")), ("mounts", lambda: client.create(mounts="/data"))):
        with pytest.raises(caisson.InvalidRequest, match="array of strings, not a string") as e:
            call()
        assert e.value.field == field


def test_no_mounts_is_not_all_mounts():
    assert caisson.SandboxSpec("x", mounts=()).to_json()["mounts"] == [] and "mounts" not in caisson.SandboxSpec("x").to_json()


def test_spec_of_a_sandbox_has_its_real_image(client):
    """The handle has what the daemon made; a spec that names no image does not claim one."""
    assert "daemon's own" in repr(caisson.SandboxSpec("x")) and caisson.SandboxSpec("x").image == "python:3.11-slim" and "image" not in caisson.SandboxSpec("x").to_json()
    with client.create() as box:
        assert box.spec["image"] == "host" and client.get(box.name).spec == box.spec


@pytest.mark.parametrize("code, status, kind, base", [
    ("image_not_found", 404, caisson.ImageNotFound, caisson.NotFound), ("image_pull_denied", 403, caisson.ImagePullDenied, caisson.Forbidden),
    ("registry_unavailable", 502, caisson.RegistryUnavailable, caisson.ImagePullFailed), ("image_pull_timeout", 504, caisson.ImagePullFailed, caisson.RequestRefused),
    ("image_pulls_busy", 429, caisson.Busy, caisson.RequestRefused)])
def test_images_that_cannot_be_had(code, status, kind, base):
    e = errors.error_from({"code": code, "message": "m", "field": "image"}, status=status)
    assert type(e) is kind and isinstance(e, base) and (code == "image_pulls_busy" or isinstance(e, caisson.ImageUnavailable))


def test_spec_and_more_is_a_mistake(client):
    with pytest.raises(TypeError, match="memory_mib"):
        client.create(caisson.SandboxSpec("x"), memory_mib=3)


def test_interrupt(box):
    t = threading.Thread(target=lambda: wait_until(lambda: box.info().busy) and box.interrupt())
    t.start()
    r = box.execute("import time; time.sleep(60)", timeout=100)
    t.join()
    assert r.status == "signal" or r.error.name == "KeyboardInterrupt", r
    with pytest.raises(caisson.NothingRuns):
        box.interrupt()


def test_health_and_policy(client):
    assert client.health()["status"] == "healthy" and client.policy()["owner"]


# ---- files ---------------------------------------------------------------------------------------------------------------------


def test_files(box):
    f = box.files
    info = f.write("a/b.txt", "grüß", parents=True, mode="640")
    assert info.is_file and info.size == 6 and info.mode == "640"
    assert f.read("a/b.txt") == "grüß".encode() and f.read_text("/workspace/a/b.txt") == "grüß"
    assert f.mkdir("a/c").is_dir and [(e.name, e.type) for e in f.list("a")] == [("b.txt", "file"), ("c", "directory")]
    assert {e.name for e in f.list(".", recursive=True)} >= {"a", "a/b.txt", "a/c"}
    f.move("a/b.txt", "a/d ü&?.txt")
    assert f.exists("a/d ü&?.txt") and not f.exists("a/b.txt") and f.stat("a/d ü&?.txt").size == 6
    box.shell("ln -s nowhere a/link")
    assert f.stat("a/link", follow=False).target == "nowhere"
    with pytest.raises(caisson.FileConflict):
        f.delete("a")
    f.delete("a", recursive=True)
    with pytest.raises(caisson.NoSuchFile) as e:
        f.read("a/b.txt")
    assert e.value.code == "no_such_file"
    with pytest.raises(caisson.FileConflict):
        f.read(".")


def test_large_files_come_in_pieces(box, tmp_path):
    data = os.urandom(1 << 20) * 5
    (tmp_path / "in").write_bytes(data)
    assert box.files.upload(tmp_path / "in", "x/in").size == len(data)
    assert box.files.download("x/in", tmp_path / "out") == len(data) and (tmp_path / "out").read_bytes() == data
    with box.files.open("x/in", offset=len(data) - 10) as body:
        assert b"".join(body) == data[-10:]
    box.files.write("y", (bytes([i]) * 1000 for i in range(200)))
    assert box.files.read("y") == b"".join(bytes([i]) * 1000 for i in range(200))
    with pytest.raises(caisson.NoSuchFile):
        box.files.download("none", tmp_path / "none")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["in", "out"]


def test_refusal_of_an_upload(client):
    """The daemon answers before it has the whole upload."""
    with client.create(disk_mib=8) as box:
        with pytest.raises(caisson.NoSuchFile):
            box.files.write("nowhere/x", (b"x" * 65536 for _ in range(300)))
        with pytest.raises(caisson.DiskFull) as e:
            box.files.write("x", (b"x" * (1 << 20) for _ in range(40)))
        assert e.value.details["limit"] == 8 << 20 and e.value.details["free"] <= 8 << 20
        assert box.files.write("x", "small").size == 5


def test_directories(box, tmp_path):
    (tmp_path / "d" / "sub").mkdir(parents=True)
    (tmp_path / "d" / "sub" / "f").write_text("inside")
    (tmp_path / "d" / "link").symlink_to("sub/f")
    assert box.files.upload_dir(tmp_path / "d", "up") == 3
    assert box.exec("cat", ["up/link"]).stdout == "inside"
    assert box.files.download_dir("up", tmp_path / "back") == ["link"] or box.files.download_dir("up", tmp_path / "back")[0].endswith("link")
    assert (tmp_path / "back" / "sub" / "f").read_text() == "inside" and not (tmp_path / "back" / "link").exists()


@pytest.mark.parametrize("name", ["../out", "/abs", "a/../../out", "a/.."])
def test_archives_do_not_climb(tmp_path, name):
    f = io.BytesIO()
    with tarfile.open(fileobj=f, mode="w") as t:
        t.addfile(tarfile.TarInfo(name), io.BytesIO())
    f.seek(0)
    with pytest.raises(caisson.ProtocolError):
        _archive.unpack(f, tmp_path / "in")
    assert [p.name for p in tmp_path.iterdir()] == ["in"] and not list((tmp_path / "in").iterdir())


def test_forged_archives(tmp_path):
    """A hole of eight exabytes is left out; other bytes are reported as an invalid archive."""
    f = io.BytesIO()
    with tarfile.open(fileobj=f, mode="w", format=tarfile.PAX_FORMAT) as t:
        hole = tarfile.TarInfo("hole")
        hole.pax_headers = {"GNU.sparse.major": "1", "GNU.sparse.minor": "0", "GNU.sparse.name": "hole", "GNU.sparse.realsize": str(1 << 63)}
        hole.size = 512
        t.addfile(hole, io.BytesIO(b"0\n" + bytes(510)))
        t.addfile(tarfile.TarInfo("plain"), io.BytesIO())
    f.seek(0)
    assert _archive.unpack(f, tmp_path / "in") == ["hole"] and [p.name for p in (tmp_path / "in").iterdir()] == ["plain"]
    for data in (b"x" * 2000, b"\x80" * 512):
        with pytest.raises(caisson.ProtocolError):
            _archive.unpack(io.BytesIO(data), tmp_path / "no")


def test_archives_do_not_follow_links(tmp_path):
    """Neither links of the archive, nor existing ones."""
    (tmp_path / "out").mkdir()
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "there").symlink_to(tmp_path / "out")
    for names in (["own", "own/x"], ["there/x"]):
        f = io.BytesIO()
        with tarfile.open(fileobj=f, mode="w") as t:
            if names[0] == "own":
                link = tarfile.TarInfo("own")
                link.type, link.linkname = tarfile.SYMTYPE, str(tmp_path / "out")
                t.addfile(link)
            t.addfile(tarfile.TarInfo(names[-1]), io.BytesIO())
        f.seek(0)
        try:
            assert _archive.unpack(f, tmp_path / "in") == ["own"]
        except caisson.ProtocolError:
            assert names == ["there/x"]
    assert not list((tmp_path / "out").iterdir())


def test_watch(box):
    box.files.mkdir("w")
    with box.files.watch("w") as news:
        box.files.write("w/new", "x")
        seen = next(iter(news))
    assert seen.type in ("created", "modified", "moved") and "new" in seen.path, seen


def test_artifacts(box):
    r = box.execute("open('plot.png', 'wb').write(%r)\nfor i in range(120): open('f%%03d.txt' %% i, 'w').write('x')" % PNG)
    found = {a.path: a for a in box.artifacts(r)}
    assert len(found) == 121 and found["plot.png"].data == PNG and found["f119.txt"].size == 1


# ---- processes -----------------------------------------------------------------------------------------------------------------


def test_process(client, box):
    p = box.processes.start("sh", ["-c", "read x; echo got $x; echo bad >&2; exit 3"], stdin=True)
    assert p.info.running and p.info.exit_code is None and [q.id for q in box.processes.list()] == [p.id]
    p.write("hello\n")
    again = client.get(box.name).processes.get(p.id)
    info = again.wait()
    assert info.exit_code == 3 and not info.running and again.output().data == b"got hello\n" and again.output("stderr").data == b"bad\n"
    with pytest.raises(caisson.ProcessEnded):
        p.write("more")
    p.remove()
    with pytest.raises(caisson.ProcessNotFound):
        p.refresh()


def test_process_follow_and_signal(box):
    p = box.processes.start("sh", ["-c", "trap 'echo bye; exit 0' TERM; echo up; while :; do sleep 0.05; done"])
    got = b""
    for piece in p.follow():
        got += piece
        if got == b"up\n":
            assert p.wait(0).running
            p.signal()
    assert got == b"up\nbye\n" and p.wait().exit_code == 0
    assert b"".join(p.follow(offset=3)) == b"bye\n"
    q = box.processes.start("sleep", ["100"])
    q.kill()
    assert q.wait(20).signal == "KILL"


def test_terminal(box):
    p = box.processes.start("sh", ["-c", "stty size; read x; echo \"<$x>\""], pty=True, rows=10, cols=33)
    p.write("typed\n")
    p.wait(20)
    assert b"10 33" in p.output().data and b"<typed>" in p.output().data


def test_attached_terminal(box):
    """Input, resizing, and its end when it is closed."""
    with box.processes.terminal("sh", ["-c", "echo up; read x; stty size; echo \"<$x>\"; exit 7"], rows=10, cols=33) as t:
        got = t.read()
        t.resize(20, 44)
        t.write("typed\n")
        got += b"".join(t)
        assert b"up" in got and b"20 44" in got and b"<typed>" in got and t.info.exit_code == 7 and not t.info.running, got
        assert t.read() == b""
    with box.processes.terminal() as t:
        t.write("echo $((6 * 7))\n")
        got = b""
        while b"42" not in got:
            got += t.read()
    with pytest.raises(caisson.ProcessNotFound):
        t.process.refresh()


def test_attach_to_a_process(client, box):
    """Leaving does not affect it; a client that returns continues where it was; bytes stay unchanged."""
    p = box.processes.start("sh", ["-c", "echo one; cat; exit 3"], stdin=True)
    with p.attach() as t:
        assert t.read() == b"one\n"
        t.write(bytes(range(256)))
        got = b""
        while len(got) < 256:
            got += t.read()
        assert got == bytes(range(256))
    assert p.refresh().running
    with client.get(box.name).processes.get(p.id).attach(offset=260) as t:
        t.write("x" * 100000)
        t.eof()
        assert len(b"".join(t)) == 100000 and t.info.exit_code == 3
    p.remove()
    with pytest.raises(caisson.ProcessNotFound):
        p.attach()


# ---- ports, egress, executions, packages -------------------------------------------------------------------------------------


def test_port(box):
    box.files.write("index.txt", "served")
    p = box.processes.start("python3", ["-m", "http.server", "8000"])
    port = box.ports.open(8000)
    assert port.token and port.token in port.url and box.ports.list() == [port] and port.token not in repr(port)

    def fetch():
        try:
            with urllib.request.urlopen(port.url + "index.txt", timeout=20) as r:
                return r.read()
        except OSError:
            return None

    assert wait_until(fetch) == b"served"
    box.ports.close(8000)
    with pytest.raises(caisson.PortNotFound):
        box.ports.get(8000)
    p.remove()


def test_egress(box):
    assert box.egress.get() == []
    assert box.egress.set(["example.com"]) == ["example.com:80", "example.com:443"] or "example.com" in box.egress.get()[0]
    assert box.egress.net().live == 0 and box.egress.set([]) == []
    assert caisson.records.Net.from_json({"names_asked": 3, "names_refused": 2}).names_asked == 3
    assert box.egress.net().names_refused == box.egress.net().raw["names_refused"] == 0
    assert caisson.records.Net.from_json({"names": [{"host": "a.test", "count": 2, "allowed": False}]}).names[0]["host"] == "a.test"
    assert box.egress.net().names == ()
    for kind in (caisson.LanguageUnavailable, caisson.NoSuchFile, caisson.SandboxStopped):
        code = next(c for c, k in caisson.errors.known_codes().items() if k is kind)
        assert caisson.errors.error_from({"error": {"code": code, "message": "no"}}).hint, kind
        assert caisson.errors.error_from({"error": {"code": code, "message": "no", "hint": "so"}}).hint == "so"
    with pytest.raises(caisson.InvalidRequest):
        box.egress.set(["not a host"])


def test_a_directory_of_more_than_one_answer(box):
    box.shell("mkdir many; cd many; seq 1000000 1010499 | xargs touch")
    assert [f.name for f in box.files.list("many")] == [str(n) for n in range(1000000, 1010500)]
    assert len(box.files.list("many", limit=10200)) == 10200 and len(box.files.list("many", limit=3)) == 3


def test_executions(box):
    r = box.shell("for i in $(seq 5000); do echo line $i; done")
    assert r.truncated and r.ok
    out = box.executions.output(r.execution_id)
    assert out.data.endswith(b"line 5000\n") and out.complete and out.end == out.total
    assert box.executions.output(r.execution_id, offset=out.total - 5).data == b"5000\n"
    assert box.executions.search(r.execution_id, "line 4999")[0].line == 4999
    assert [m.line for m in box.executions.search(r.execution_id, "line ?99", glob=True, limit=3)] == [199, 299, 399]
    assert [m.line for m in box.executions.search(r.execution_id, "line", limit=2500)] == list(range(1, 2501))
    assert box.executions.get(r.execution_id).result.ok and [e.execution_id for e in box.executions.list()] == [r.execution_id]
    with pytest.raises(caisson.ExecutionNotFound):
        box.executions.get("0" * 32)


def test_packages_that_are_not_to_be_had(client, box):
    for call in (lambda: box.packages.install("requests"), lambda: client.install("requests"), lambda: list(box.packages.stream("requests"))):
        with pytest.raises(caisson.PackagesUnavailable) as e:
            call()
        assert e.value.hint
    assert box.packages.list() == []


def test_approvals(client):
    assert client.approvals() == []
    with pytest.raises(caisson.ApprovalNotFound):
        client.approve("none")


# ---- the connection --------------------------------------------------------------------------------------------------------------


def test_token(serve, tmp_path):
    tokens = tmp_path / "tokens"
    tokens.write_text("me:%s\nyou:%s\n" % ("a" * 40, "b" * 40))
    tokens.chmod(0o600)
    d = serve("--token-file", tokens, wait=False)
    url = "http://127.0.0.1:%d" % d.port
    d.token = "a" * 40
    d.wait_ready()
    with caisson.Caisson(url) as c, pytest.raises(caisson.Unauthorized) as e:
        c.list()
    assert e.value.status == 401
    with caisson.Caisson(url, token="a" * 40) as me, caisson.Caisson(url, token="b" * 40) as you:
        me.create("mine")
        assert me.list() == ["mine"] and you.list() == []
        with pytest.raises(caisson.SandboxNotFound):
            you.get("mine")
        me.remove("mine")
    assert "aaaa" not in repr(me) + repr(e.value)


@pytest.mark.slow
def test_tls(serve, tmp_path):
    """Only a certificate of a trusted CA is accepted."""
    key, cert = tmp_path / "key", tmp_path / "cert"
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout", key, "-out", cert, "-days", "2",
                    "-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1"], check=True, capture_output=True)
    d = serve("--tls-cert", cert, "--tls-key", key, wait=False)
    url = "https://127.0.0.1:%d" % d.port

    def answer():
        try:
            with caisson.Caisson(url, ca_file=str(cert)) as c:
                return c.execute("6 * 7").text
        except caisson.SandboxUnavailable:
            return None

    assert wait_until(answer) == "42"

    async def main():
        async with caisson.AsyncCaisson(url, ca_file=str(cert)) as c:
            return (await c.execute("6 * 7")).text, await c.stream("print(1)").result()

    text, result = asyncio.run(main())
    assert text == "42" and result.stdout == "1\n"
    with caisson.Caisson(url) as c, pytest.raises(caisson.SandboxUnavailable, match="certificate") as e:
        c.list()
    assert "ca_file" in e.value.hint


def test_ctrl_c_cancels(daemon, client, box):
    """An exception in the middle of a blocking call ends the execution."""
    mark = unique("m")[:15]
    main = threading.main_thread().ident
    t = threading.Thread(target=lambda: wait_until(lambda: daemon.named(mark)) and signal.pthread_kill(main, signal.SIGINT))
    t.start()
    with pytest.raises(KeyboardInterrupt):
        box.execute(call_yourself(mark) + "import time\nwhile True: time.sleep(1)", timeout=100)
    t.join()
    assert wait_until(lambda: not box.info().busy) and box.execute("1").epoch == 0


def test_after_a_fork(client):
    """The child has connections of its own, and the parent keeps its own."""
    client.execute("1")
    r, w = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.write(w, client.execute("6 * 7").text.encode())
        finally:
            os._exit(0)
    os.close(w)
    with os.fdopen(r, "rb") as f:
        assert f.read() == b"42"
    os.waitpid(pid, 0)
    assert client.execute("7 * 6").text == "42"


def test_threads_share_a_client(client):
    with client.create("threads") as box:
        bad = []

        def work(i):
            for j in range(10):
                if box.exec("echo", ["%d %d" % (i, j)]).stdout != "%d %d\n" % (i, j):
                    bad.append((i, j))

        threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        assert not bad


def test_closed_client(url):
    c = caisson.Caisson(url)
    c.list()
    c.close()
    c.close()
    with pytest.raises(caisson.ClientClosed):
        c.list()
