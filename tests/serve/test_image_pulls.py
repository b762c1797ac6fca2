# SPDX-License-Identifier: Apache-2.0
"""test_image_pulls.py - Images that a daemon pulls when a caller names them (--image-pull missing).

The registry is Debian's docker-registry, or one of the test that misbehaves (tests/integ/image_lib.py). Both are on loopback.
"""
import contextlib
import json
import os
import signal
import socket
import subprocess

import pytest

from daemon import Stream
from image_lib import Layout, Misbehaving, Registry, entry, in_tmp, tar, tar_of
from integ_lib import USER, needs_program, needs_root
from layers_lib import SMALL, programs_layer
from mcp_lib import Modern
from process import BIN, Later, free_port, status_of, unique, wait_until
from serve_lib import WebSocket

SAYS = "echo $COLOUR; cat /which"
MAKERS = {"/v1/sandboxes": lambda: {"name": unique()}, "/v1/run_python": lambda: {"code": "1"}, "/v1/run_shell": lambda: {"script": "true"},
          "/execute": lambda: {"code": SAYS, "language": "bash"}}


@pytest.fixture(scope="module")
def layout(tmp_path_factory):
    small = tar_of(lambda root: programs_layer(root, *SMALL))
    return Layout(tmp_path_factory.mktemp("layout") / "small", [small, tar(entry("which", b"pulled"))], config={"Env": ["PATH=/bin", "COLOUR=red"]})


@pytest.fixture
def registry(layout):
    r = Misbehaving(layout)
    yield r
    r.close()


@pytest.fixture
def pulls(serve, short_dir):
    """A function: a daemon that pulls from these registries into a store of its own, which is d.images."""
    def begin(*hosts, flags=(), **kw):
        d = serve("--image-store", str(short_dir / "store"), "--image-pull", "missing", *(w for h in hosts for w in ("--image-registry", h)),
                  "--pool", "1", *flags, **kw)
        d.images = short_dir / "store"
        return d
    return begin


@pytest.fixture
def d(pulls, registry):
    return pulls(registry.host)


def create(d, image, **fields):
    return d.post("/v1/sandboxes", {"name": unique(), "image": image, **fields})


def shell(d, image, script=SAYS, **fields):
    return d.post("/v1/run_shell", {"script": script, "image": image, **fields})


def refs_of(d):
    refs = d.images / "refs"
    return [line.split()[2] for line in refs.read_text().splitlines()] if refs.exists() else []


def pulling(d):
    """The processes of a pull that runs."""
    return d.named("caisson-image") + d.named("caisson-image-fetch") + d.named("caisson-unpack")


def ledger(d, event):
    lines = (json.loads(x) for f in sorted((d.state / "ledger").glob("*.jsonl")) for x in f.read_text().splitlines())
    return [x for x in lines if x["event"] == event]


class Events(Stream):
    """The events of any request, as Server-Sent Events."""

    def __init__(self, d, path, body):
        self.path = path
        super().__init__(d, body, headers={"Accept": "text/event-stream"})


# ---- on first use --------------------------------------------------------------------------------------------------


@needs_program("docker-registry")
@needs_program("skopeo")
@needs_program("htpasswd", "apache2-utils")
def test_first_use(pulls, layout, tmp_path):
    """From a real registry, with the operator's credentials; the second use asks the registry for nothing."""
    real = Registry(tmp_path / "registry", password=True)
    try:
        ref = real.push(layout, "team/small", "latest") + ":latest"
        d = pulls(real.host, flags=("--image-authfile", str(real.authfile())))
        r = create(d, ref)
        assert r.status == 201, (r, d.log_text()[-1500:])
        assert (r.json["spec"]["image"], r.json["spec"]["image_digest"]) == (ref, layout.manifest["digest"]), r
        name = r.json["name"]
        assert d.execute(SAYS, session_id=name, language="bash")["stdout"] == "red\npulled"
        mine = next(b for b in d.get("/v1/sandboxes").json["sandboxes"] if b["name"] == name)
        assert mine["spec"]["image_digest"] == layout.manifest["digest"], mine
        assert [x["image"] for x in ledger(d, "image.pull")] == [ref]
        assert [(x["outcome"], x["digest"]) for x in ledger(d, "image.pulled")] == [("pulled", layout.manifest["digest"])]
    finally:
        real.close()
    assert shell(d, ref).json["stdout"] == "red\npulled"  # the registry is gone


def test_each_way_to_name_an_image(d, registry):
    """/execute, /v1/run_shell, a WebSocket and a notebook's kernel: the first one pulls."""
    tags = ["%s/x:%d" % (registry.host, n) for n in range(4)]
    assert d.execute(SAYS, language="bash", image=tags[0])["stdout"] == "red\npulled"
    r = shell(d, tags[1], stdin="")
    assert r.status == 200 and r.json["stdout"] == "red\npulled", r
    with WebSocket(d) as ws:
        ws.execute(SAYS, language="bash", image=tags[2])
        got = ws.until("done", "refused")
        assert got[-1]["result"]["stdout"] == "red\npulled" and "progress" in [m["type"] for m in got], got
    r = d.post("/api/kernels", {"name": "bash", "env": {"KERNEL_IMAGE": tags[3]}})
    assert r.status == 201, r
    assert sorted(refs_of(d)) == tags


def test_daemons_own_image_is_shown(serve):
    d = serve()
    r = d.post("/v1/sandboxes", {"name": unique()})
    assert r.json["spec"]["image"] == "host" and "image_digest" not in r.json["spec"], r


# ---- progress -------------------------------------------------------------------------------------------------------


def test_progress_as_events(d, registry, layout):
    with Events(d, "/v1/run_shell", {"script": SAYS, "image": registry.ref, "stream": True}) as s:
        events = s.all()
        types = [t for t, _ in events]
        assert types[0] == "progress" and types[-1] == "done" and types.index("stdout") > types.index("progress"), events
        about = [e for t, e in events if t == "progress"]
        assert all(e["text"].startswith("pulling " + registry.host) for e in about), about
        total = sum(x["size"] for x in layout.layers)
        assert {"done", "total"} <= set(about[-1]) and about[-1]["done"] == about[-1]["total"] == total, about
        assert s.headers["x-execution-id"] == events[-1][1]["execution_id"], (s.headers, events[-1])


def test_progress_of_a_sandbox(d, registry, layout):
    """POST /v1/sandboxes as events: also when nothing has to be pulled, and as JSON lines."""
    name = unique()
    with Events(d, "/v1/sandboxes", {"name": name, "image": registry.ref}) as s:
        events = s.all()
    assert events[0][0] == "progress" and events[-1][0] == "done", events
    assert events[-1][1]["name"] == name and events[-1][1]["spec"]["image_digest"] == layout.manifest["digest"], events[-1]
    r = d.post("/v1/sandboxes", {"name": name, "image": registry.ref}, headers={"Accept": "application/x-ndjson"})
    lines = [json.loads(x) for x in r.body.splitlines()]
    assert r.status == 200 and [x["type"] for x in lines] == ["done"] and lines[0]["name"] == name, r
    r = d.post("/v1/sandboxes", {"name": unique(), "stream": True}, headers={"Idempotency-Key": "k"})
    assert (r.status, r.error["code"]) == (422, "unsupported_field"), r


def test_failure_as_the_last_event(d, registry):
    with Events(d, "/v1/run_shell", {"script": "true", "image": registry.host + "/x@sha256:" + "0" * 64}) as s:
        events = s.all()
    assert events[-1][0] == "refused" and events[-1][1]["error"]["code"] == "image_not_found", events


def test_progress_on_a_terminal(d, registry):
    """caisson create: a bar on stderr where that is a terminal; the name on stdout."""
    name = unique()
    words = [str(BIN), "create", name, "--image", registry.ref, "--url", "http://127.0.0.1:%d" % d.port]
    r = subprocess.run(["script", "-qec", " ".join(words), "/dev/null"], stdin=subprocess.DEVNULL, capture_output=True, timeout=60)
    assert r.returncode == 0 and b"pulling" in r.stdout and name.encode() in r.stdout, r
    r = subprocess.run([*words[:2], unique(), "--image", registry.host + "/x@sha256:" + "0" * 64, *words[-2:]], capture_output=True, text=True, timeout=60)
    assert r.returncode == 5 and "no image" in r.stderr, r


def test_progress_of_a_tool(pulls, registry, layout):
    """create_sandbox of MCP: notifications that rise; and the error of a registry is the tool's result."""
    d = pulls(registry.host, flags=("--tools", "all"))
    c = Modern(d)
    r = c.call("tools/call", {"name": "create_sandbox", "arguments": {"image": registry.ref}}, meta={"progressToken": "p"})
    assert not r["isError"] and r["structuredContent"]["sandbox"]["spec"]["image_digest"] == layout.manifest["digest"], r
    steps = [n["params"]["progress"] for n in c.notes]
    assert steps and steps == sorted(set(steps)) and all(registry.host in n["params"]["message"] for n in c.notes), c.notes
    r = c.call("tools/call", {"name": "create_sandbox", "arguments": {"image": "python:3.11-slim"}})
    assert r["isError"] and "--image-registry" in json.dumps(r), r


# ---- one pull for many ----------------------------------------------------------------------------------------------


def test_many_wait_for_one(d, registry):
    registry.go.clear()
    waits = [Later(lambda p=path: d.post(p, {**MAKERS[p](), "image": registry.ref}, timeout=120)) for path in MAKERS for _ in range(3)]
    assert wait_until(lambda: registry.asked("/blobs/"))
    assert not any(w.done() for w in waits)
    assert d.health()["status"] == "healthy" and d.execute("1")["success"]  # nothing else waits
    registry.go.set()
    got = [w.result() for w in waits]
    assert {r.status for r in got} <= {200, 201, 422}, got  # 422: it has no python
    assert len(registry.asked("/manifests/")) == 1 and len(ledger(d, "image.pull")) == 1


def test_left_by_all(d, registry):
    """When nobody waits any more the pull ends, with all of its processes; the next one begins."""
    registry.go.clear()
    with Events(d, "/v1/run_shell", {"script": SAYS, "image": registry.ref}) as s:
        assert next(iter(s))[0] == "progress" and wait_until(lambda: registry.asked("/blobs/"))
    assert wait_until(lambda: not pulling(d)) and refs_of(d) == []
    assert wait_until(lambda: ledger(d, "image.pulled"))[0]["outcome"] == "cancelled"
    registry.go.set()
    assert shell(d, registry.ref).json["stdout"] == "red\npulled"


@pytest.mark.slow
def test_left_by_one(d, registry):
    registry.go.clear()
    other = Later(lambda: shell(d, registry.ref, timeout=None))
    with Events(d, "/v1/run_shell", {"script": SAYS, "image": registry.ref}) as s:
        assert next(iter(s))[0] == "progress" and wait_until(lambda: registry.asked("/blobs/"))
    registry.go.set()
    assert other.result().json["stdout"] == "red\npulled" and len(registry.asked("/manifests/")) == 1


def test_front_is_killed_in_the_middle(d, registry):
    registry.go.clear()
    lost = Later(lambda: shell(d, registry.ref))
    assert wait_until(lambda: registry.asked("/blobs/"))
    old = d.pid
    os.kill(old, signal.SIGKILL)
    assert wait_until(lambda: d.find_front() not in (None, old)) and wait_until(lambda: not pulling(d))
    with pytest.raises(Exception):
        lost.result()
    assert refs_of(d) == []
    registry.go.set()
    assert shell(d, registry.ref).json["stdout"] == "red\npulled"
    assert in_tmp(d.images) == []


def test_daemon_is_stopped_in_the_middle(d, registry):
    """The callers are told at once; nothing of the pull is left, which stop() checks."""
    registry.go.clear()
    waits = [Later(lambda t=t: shell(d, "%s/x:%d" % (registry.host, t))) for t in (1, 2)]
    assert wait_until(lambda: registry.asked("/blobs/") and len(ledger(d, "image.pull")) == 2)
    d.p.send_signal(signal.SIGTERM)
    for r in (w.result() for w in waits):
        assert (r.status, r.error["code"]) == (503, "draining"), r
    d.stop()
    assert refs_of(d) == []


# ---- who may ---------------------------------------------------------------------------------------------------------


def every(d, image, status, code):
    """The error of each operation that takes an image, with a hint."""
    for path, fields in MAKERS.items():
        r = d.post(path, {**fields(), "image": image}, timeout=60)
        assert (r.status, r.error["code"]) == (status, code) and r.error.get("field", "image") == "image", (path, r)
    return r.error


def test_registries_that_are_not_allowed(pulls, registry):
    d = pulls("registry.example", "*.team.example:5000")
    e = every(d, registry.ref, 403, "image_pull_denied")
    assert "--image-registry" in e["hint"] and registry.host in e["message"], e
    assert every(d, "python:3.11-slim", 403, "image_pull_denied")["message"].endswith("does not pull from docker.io")
    assert registry.requests == []


def test_daemon_that_does_not_pull(serve, registry, short_dir):
    d = serve("--image-store", str(short_dir / "s"), "--image-registry", registry.host)
    assert "--image-pull" in every(d, registry.ref, 422, "image_unavailable")["hint"]
    assert registry.requests == [] and not d.named("caisson-image-puller")


def test_callers_with_tokens_need_the_operators_leave(serve, registry, short_dir):
    """Without tokens only the starter and root may call, and a daemon pulls for them. For other callers the operator decides."""
    tokens = short_dir / "tokens"
    tokens.write_text("ci:%s\nother:%s\n" % ("a" * 32, "b" * 32))
    tokens.chmod(0o600)
    where = ("--image-store", str(short_dir / "s"), "--image-registry", registry.host)
    pull = {"CAISSON_IMAGE_PULL": None}
    d = serve(*where, env=pull)
    assert d.named("caisson-image-puller")
    d = serve(*where, "--token-file", str(tokens), env=pull, token="a" * 32)
    r = shell(d, registry.ref)
    assert (r.status, r.error["code"]) == (422, "image_unavailable"), r
    policy = short_dir / "policy.toml"
    policy.write_text('[default]\nimage_pulls = []\n[owners.ci]\nimage_pulls = ["%s/x"]\n' % registry.host)
    d = serve(*where, "--token-file", str(tokens), "--policy", str(policy), "--image-pull", "missing", token="a" * 32)
    r = d.post("/v1/run_shell", {"script": SAYS, "image": registry.ref}, token="b" * 32)
    assert (r.status, r.error["code"], r.error["field"]) == (403, "policy_refused", "image") and "default.image_pulls" in r.error["message"], r
    assert shell(d, registry.ref).json["stdout"] == "red\npulled"
    r = d.post("/v1/run_shell", {"script": SAYS, "image": registry.ref}, token="b" * 32)
    assert r.status == 200, r  # it is in the store now, and `images` lets everybody use it


# ---- registries that fail --------------------------------------------------------------------------------------------


def test_image_that_the_registry_does_not_have(d, registry):
    e = every(d, registry.host + "/x@sha256:" + "0" * 64, 404, "image_not_found")
    assert "manifest unknown" in e["message"] and "name" in e["hint"], e


def test_registry_that_cannot_be_reached(pulls):
    host = "127.0.0.1:%d" % free_port()
    e = every(pulls(host), host + "/x:1", 502, "registry_unavailable")
    assert host in e["message"] and "onnect" in e["message"] and e["hint"], e


def test_garbage(d, registry):
    registry.manifest = b"<html>", "text/html"
    assert "manifest" in every(d, registry.ref, 502, "image_pull_failed")["message"]
    registry.manifest = None
    layer = registry.layout.layers[0]
    registry.swap[layer["digest"]] = b"x" * layer["size"]
    r = shell(d, registry.ref)
    assert (r.status, r.error["code"]) == (502, "image_pull_failed") and "damaged" in r.error["message"], r
    registry.swap[layer["digest"]] = b"x" * (layer["size"] + 1)
    r = shell(d, registry.ref)
    assert (r.status, r.error["code"]) == (502, "image_pull_failed"), r
    assert refs_of(d) == []


def test_connection_that_is_closed_in_the_middle(d, registry):
    """It goes on where it was cut."""
    registry.cut[registry.layout.layers[0]["digest"]] = [100_000, 200_000]
    assert shell(d, registry.ref).json["stdout"] == "red\npulled"


def test_registry_that_hangs(pulls, registry):
    d = pulls(registry.host, flags=("--image-pull-timeout", "1s"))
    registry.go.clear()
    e = every(d, registry.ref, 504, "image_pull_timeout")
    assert "--image-pull-timeout" in e["hint"], e
    assert wait_until(lambda: not pulling(d)) and refs_of(d) == []


@pytest.mark.parametrize("to", ["http://10.0.0.1", "http://169.254.169.254", "http://192.168.1.1:8080"])
def test_redirect_into_the_network_beside(d, registry, to):
    """A registry on this machine may lead to public addresses, and to others on this machine."""
    registry.redirect = to
    r = shell(d, registry.ref)
    assert (r.status, r.error["code"]) == (502, "image_pull_failed") and "redirects" in r.error["message"] and "address" in r.error["message"], r


def test_too_many_images_at_once(d, registry):
    registry.go.clear()
    waits = []
    for n in range(8):
        waits.append(Later(lambda n=n: shell(d, "%s/x:%d" % (registry.host, n), "true")))
        assert wait_until(lambda n=n: len(ledger(d, "image.pull")) == n + 1)
    every_busy = every(d, registry.host + "/x:more", 429, "image_pulls_busy")
    assert "try again" in every_busy["message"]
    registry.go.set()
    got = [w.result() for w in waits]
    assert {r.status for r in got} == {200}, got
    assert len(refs_of(d)) == 8


@pytest.mark.slow
def test_disk_that_is_full(serve, registry, tmp_path):
    if os.geteuid() != 0:
        pytest.skip("needs root: makes a small file system")
    small = tmp_path / "small"
    small.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m,mode=700", "small", small], check=True)
    try:
        with serve("--image-store", str(small / "store"), "--image-pull", "missing", "--image-registry", registry.host) as d:
            r = shell(d, registry.ref)
            assert (r.status, r.error["code"]) == (507, "image_pull_failed") and "prune" in r.error["hint"], r
            assert in_tmp(small / "store") == []
    finally:
        subprocess.run(["umount", small], check=True)


def test_puller_that_is_killed(d, registry):
    """Without it nothing is pulled, and the error says so; everything else goes on."""
    registry.go.clear()
    waits = Later(lambda: shell(d, registry.ref))
    assert wait_until(lambda: registry.asked("/blobs/"))
    for pid in d.named("caisson-image-puller"):
        os.kill(pid, signal.SIGKILL)
    r = waits.result()
    assert (r.status, r.error["code"]) == (503, "image_pull_failed"), r
    r = shell(d, registry.ref)
    assert (r.status, r.error["code"]) == (503, "image_pull_failed") and d.execute("1")["success"], r
    for pid in pulling(d):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


@needs_root
@pytest.mark.slow
def test_daemon_of_an_ordinary_user(users, registry, short_dir, tmp_path):
    auth = tmp_path / "auth.json"
    auth.write_text("{}")
    for p in (auth.parent, *auth.parents[1:3]):
        p.chmod(0o755)
    store = short_dir / "mine"
    store.mkdir(mode=0o700)
    os.chown(store, USER, USER)
    d = users("--image-pull", "missing", "--image-registry", registry.host, "--image-store", str(store), "--image-authfile", str(auth))
    r = shell(d, registry.ref)
    assert r.status == 200 and r.json["stdout"] == "red\npulled", (r, d.log_text()[-1500:])
    assert (store / "refs").stat().st_uid == USER


# ---- power -----------------------------------------------------------------------------------------------------------


@needs_root
def test_process_that_talks_to_the_registry_has_no_power(d, registry):
    registry.go.clear()
    waits = Later(lambda: shell(d, registry.ref))
    assert wait_until(lambda: registry.asked("/blobs/"))
    (pid,) = d.named("caisson-image-fetch")
    s = status_of(pid)
    assert s["CapEff"] == s["CapPrm"] == s["CapBnd"] == s["CapInh"] == "0" * 16 and s["NoNewPrivs"] == "1" and s["Seccomp"] == "2", s
    assert "0" not in s["Uid"].split() and "0" not in s["Gid"].split() and not s["Groups"].split(), s
    assert s["Uid"] != status_of(d.pid)["Uid"]
    registry.go.set()
    assert waits.result().status == 200


def test_front_alone_cannot_choose_the_registry(d, registry):
    """The puller takes references of allowed registries only, in their one form, and one at a time."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    words = [str(BIN.parent / "caisson-image-puller"), "--store=" + str(d.images), "--registry=" + registry.host]
    script = 'exec "$@" 3<&%d %d<&-' % (theirs.fileno(), theirs.fileno())
    p = subprocess.Popen(["bash", "-c", script, "bash", *words], pass_fds=(theirs.fileno(),))
    theirs.close()

    def ask(ref, seq=7):
        ours.sendall((1).to_bytes(4, "little") * 2 + seq.to_bytes(8, "little") + ref.encode().ljust(512, b"\0"))
        data, fds, _, _ = socket.recv_fds(ours, 4096, 1)
        for fd in fds:
            os.close(fd)
        return int.from_bytes(data[4:8], "little"), int.from_bytes(data[16:20], "little", signed=True), data[24:].rstrip(b"\0").decode()

    try:
        for ref, why in (("ghcr.io/x/y:1", "not allowed"), ("--help", "not"), (registry.host + "/x", "canonical"), ("python:3.11-slim", "canonical"),
                         (registry.host + "/x:1 --insecure", "tag")):
            said, status, msg = ask(ref)
            assert (said, status) == (2, -2) and why in msg, (ref, said, status, msg)
        registry.go.clear()
        assert ask(registry.ref)[:2] == (1, 0)
        said, status, msg = ask(registry.ref, 8)
        assert (said, status) == (2, -2) and "another" in msg, msg
    finally:
        ours.close()
        p.wait(30)
