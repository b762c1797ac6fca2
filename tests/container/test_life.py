# SPDX-License-Identifier: Apache-2.0
"""test_life.py - The container's life: stop and restart with a volume, logs, the health check, zombies, tokens, images."""
import json
import os
import threading

import pytest

from container_lib import BUILT, LEAST, Container, wait_until

GRACE = 10  # seconds that `docker stop` waits before it kills: Docker's default


def names_in(c):
    """(pid, parent, state, name) of all processes in the container."""
    lines = c.exec("ps", "-eo", "pid=,ppid=,stat=,comm=").stdout.splitlines()
    return [(int(a), int(b), s, n) for a, b, s, n in (line.split(None, 3) for line in lines)]


@pytest.fixture
def state(image):
    return image.volume()


def start(image, state, *options, **how):
    return Container(image, *LEAST, "-v", "%s:/var/lib/caisson" % state, *options, **how)


def test_stop_and_start_again(image, state):
    """Workspaces and the audit log are there after a stop, in the same container and in a new one on the same volume."""
    with start(image, state) as c:
        assert c.request("POST", "/v1/workspaces", {"name": "notes"}).status == 201
        assert c.request("POST", "/v1/sandboxes", {"name": "box", "workspace": "notes"}).status == 201
        assert c.execute("open('/workspace/a', 'w').write('kept')", session_id="box")["status"] == "ok"
        assert c.request("POST", "/v1/sandboxes/box/workspace/commit", {}).status == 200
        assert c.request("DELETE", "/v1/sandboxes/box").status in (200, 204)
        c.engine("stop", c.name)
        assert c.inspect("State.ExitCode") == 0, c.log_text()[-2000:]
        c.engine("start", c.name)
        c.wait_ready()
        check_kept(c, "box2")
    with start(image, state) as c:
        check_kept(c, "box3")
        lines = c.exec("caisson", "audit", "verify").stdout
        assert lines.startswith("whole: "), lines


def check_kept(c, name):
    assert c.request("POST", "/v1/sandboxes", {"name": name, "workspace": "notes"}).status == 201
    assert c.execute("print(open('/workspace/a').read())", session_id=name)["stdout"] == "kept\n"
    assert c.request("DELETE", "/v1/sandboxes/" + name).status in (200, 204)


def test_stop_ends_within_its_grace(image):
    """Also while code runs that would go on: it has half of the grace to end, and is told why it was cut."""
    with Container(image, *LEAST) as c:
        got = []
        client = threading.Thread(target=lambda: got.append(c.request("POST", "/execute", {"code": "import time\nprint('begun')\ntime.sleep(100)", "timeout": 100})))
        client.start()
        assert wait_until(lambda: c.health()["sandboxes"]["busy"] == 1)
        c.engine("stop", c.name)
        client.join()
        assert c.inspect("State.ExitCode") == 0, "killed after the %d s of its grace: %s" % (GRACE, c.log_text()[-2000:])
        assert got[0].status == 503 and got[0].code == "draining"


def test_kill_leaves_nothing(image, state):
    """Whatever was there when the engine killed it: the next start on the same volume finds no leftover of a cell."""
    with start(image, state) as c:
        c.execute("x = 1", session_id="left")
        c.engine("kill", c.name)
        assert wait_until(lambda: not c.running())
        c.engine("start", c.name)
        c.wait_ready()
        assert c.request("GET", "/v1/sandboxes/left").json["state"] == "lost"
        h = c.health()
        cells = sum(name == "caisson-init" for _, _, _, name in names_in(c))
        assert cells == h["pool"]["kernels_ready"] + h["pool"]["cells_ready"]


def test_pid_1_reaps(image):
    """Processes whose parent ended become children of the daemon's first process, which collects them."""
    with Container(image, *LEAST) as c:
        assert [n for p, _, _, n in names_in(c) if p == 1] == ["caisson-keeper"]
        for _ in range(5):
            c.exec("sh", "-c", "(sleep 0.3 & sleep 0.1 &) ; exit 0")
        # The shell is gone, so pid 1 is their parent until they end.
        assert wait_until(lambda: not [n for _, parent, _, n in names_in(c) if parent == 1 and n == "sleep"])
        assert not [line for line in names_in(c) if line[2].startswith("Z")]


def test_front_is_replaced(image):
    """A front that is killed is started again by pid 1, and named sandboxes go on."""
    with Container(image, *LEAST) as c:
        c.execute("x = 42", session_id="kept")
        front = next(p for p, parent, _, n in names_in(c) if n.startswith("caisson-front"))
        c.exec("kill", "-9", str(front))
        assert wait_until(lambda: (h := c.ready()) and h["sandboxes"]["live"] == 1)
        assert c.execute("print(x)", session_id="kept")["stdout"] == "42\n"


def test_logs(sandbox):
    """One JSON line per event, by `docker logs`; no code in it."""
    sandbox.execute("print('secret-%s')" % os.getpid())
    assert sandbox.log("listening")[0]["jail_user"] is True and sandbox.log("execution")
    assert "secret-%s" % os.getpid() not in sandbox.log_text()
    assert "/execute" in sandbox.log_text() and "caisson listens on" in sandbox.log_text()


def test_health_check(image):
    """The image's own check: healthy while it serves, on whatever address; unhealthy when it does not answer."""
    with Container(image, *LEAST, "--health-interval=1s", "--health-retries=1", "--health-timeout=3s") as c:
        assert wait_until(lambda: c.inspect("State.Health.Status") == "healthy"), c.inspect("State.Health")
        c.exec("kill", "-STOP", str(next(p for p, _, _, n in names_in(c) if n.startswith("caisson-front"))))
        assert wait_until(lambda: c.inspect("State.Health.Status") == "unhealthy"), c.inspect("State.Health")


def test_doctor_beside_the_daemon(sandbox):
    r = json.loads(sandbox.exec("caisson", "doctor", "--json").stdout)
    assert r["healthy"] and r["receipt"]["enforced"]
    assert "print(6*7)" not in sandbox.exec("caisson", "ps").stdout
    assert sandbox.exec("caisson", "run", "print(6*7)").stdout == "42\n"


def test_tokens(image, tmp_path):
    token = "0123456789abcdef" * 2
    (tmp_path / "tokens").write_text("me:%s\n" % token)
    (tmp_path / "tokens").chmod(0o600)
    with Container(image, *LEAST, "-v", "%s:/run/tokens:ro" % (tmp_path / "tokens"), command=["serve", "--token-file", "/run/tokens"]) as c:
        assert c.health()["callers"] == "tokens" and not c.log("no_token")
        assert c.request("POST", "/execute", {"code": "1"}).status == 401
        assert c.request("POST", "/execute", {"code": "1"}, token=token).status == 200
        assert c.exec("caisson", "ps").returncode == 0, "the unix socket needs none"


def test_an_open_address_is_a_choice(image):
    """Without a token and without --no-token, it does not start on an address that others reach."""
    code, out, err = image.once("serve", options=LEAST)
    assert code == 125 and "--listen 0.0.0.0:8001" in err and "--token-file" in err and "--no-token" in err


def test_images_in_it(image, state):
    """The image as an OCI layout, by Caisson's own checks and unpacker; and cells of it, in the container."""
    if not (BUILT / "oci/index.json").exists():
        pytest.skip("there is no OCI layout: make container")
    with start(image, state, "-v", "%s:/oci:ro" % (BUILT / "oci")) as c:
        c.exec("caisson", "image", "import", "/oci")
        assert "sandbox:latest" in c.exec("caisson", "image", "ls").stdout
        c.exec("caisson", "image", "verify")
        r = c.execute("import os; print(os.getuid(), os.path.exists('/usr/libexec/caisson/caisson-front'))", image="sandbox")
        assert r["stdout"] == "1000 True\n"
        run = json.loads(c.exec("caisson", "run", "--json", "--receipt", "--image", "sandbox", "print(6 * 7)").stdout)
        assert run["stdout"] == "42\n" and run["receipt"]["enforced"]
        config = json.loads(c.exec("caisson", "image", "inspect", "sandbox").stdout)
        assert config_words(config) >= {"CAISSON_LISTEN=0.0.0.0:8001", "caisson", "--no-token"}, config


def config_words(value):
    """All strings in it."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        return {w for v in value for w in config_words(v)}
    return {value} if isinstance(value, str) else set()
