# SPDX-License-Identifier: Apache-2.0
"""test_compose.py - dist/container/compose.yaml: its sandbox as it is written there, the real mcpo (from PyPI) with its arguments and its
configuration, and the requests that Open WebUI sends according to its settings there.

Without a bridge there are no networks of containers: here the names `sandbox` and `mcpo` are loopback, and the ports are those of the file.
"""
import json
import os
import subprocess
import urllib.request

import pytest

from clients_lib import python_client
from container_lib import ROOT, Container, NotHere, wait_until

yaml = pytest.importorskip("yaml", reason="there is no python3-yaml (tools/deps.sh container-test)")

PLACE = ROOT / "dist/container"
KEY = "a-key-of-the-test"


@pytest.fixture(scope="module")
def services():
    text = (PLACE / "compose.yaml").read_text().replace("${MCPO_API_KEY:?choose a key}", KEY).replace("${MCPO_API_KEY}", KEY)
    return yaml.safe_load(text)["services"]


@pytest.fixture(scope="module")
def names(tmp_path_factory):
    """A command prefix: the names of the services, as the network of the compose file has them."""
    hosts = tmp_path_factory.mktemp("names") / "hosts"
    hosts.write_text("127.0.0.1 localhost sandbox mcpo\n")
    return ["unshare", "--mount", "sh", "-c", 'mount --bind "$0" /etc/hosts && exec "$@"', str(hosts)]


@pytest.fixture(scope="module")
def sandbox(image, services):
    s = services["sandbox"]
    assert s["image"] == "sandbox:latest" and "command" not in s
    options = ["--cap-drop=" + c for c in s["cap_drop"]] + ["--cap-add=" + c for c in s["cap_add"]]
    options += ["--security-opt=" + o.replace("./", str(PLACE) + "/") for o in s["security_opt"]]
    # The port of the file, as other containers reach it.
    with Container(image, *options, "-v", "%s:/var/lib/caisson" % image.volume(), "--network=host", "-e", "CAISSON_LISTEN=127.0.0.1:8001",
                   network=False, wait=False) as c:
        c.port = 8001
        c.wait_ready()
        yield c


@pytest.fixture(scope="module")
def mcpo(sandbox, services, names, tmp_path_factory):
    try:
        program = python_client(1).parent / "mcpo"
    except NotHere as e:
        pytest.skip("mcpo: %s" % e)
    command, (mounted,) = services["mcpo"]["command"], services["mcpo"]["volumes"]
    source, target, _ = mounted.split(":")
    arguments = [str(PLACE / source) if a == target else a for a in command]
    log = tmp_path_factory.mktemp("mcpo") / "log"
    with open(log, "w") as f:
        p = subprocess.Popen([*names, program, "--host", "127.0.0.1", *arguments], stdout=f, stderr=f)
    try:
        assert wait_until(lambda: ask("http://127.0.0.1:8000/sandbox/openapi.json")), log.read_text()[-3000:]
        yield log
    finally:
        p.terminate()
        p.wait()


def ask(url, body=None, key=None):
    head = {"Content-Type": "application/json", **({"Authorization": "Bearer " + key} if key else {})}
    try:
        with urllib.request.urlopen(urllib.request.Request(url, None if body is None else json.dumps(body).encode(), head), timeout=60) as r:
            return json.load(r)
    except urllib.error.HTTPError as e:
        return e.code
    except OSError:
        return None


def test_sandbox(sandbox):
    assert sandbox.health()["isolation"]["level"] == "full"
    assert sandbox.execute("print(6 * 7)")["stdout"] == "42\n"


def test_mcpo_and_the_tools_of_open_webui(sandbox, mcpo, services):
    """Open WebUI reads the document at url + path, and posts to the operations that it finds there, with the key."""
    (server,) = json.loads(services["open-webui"]["environment"]["TOOL_SERVER_CONNECTIONS"])
    assert server["type"] == "openapi" and server["auth_type"] == "bearer" and server["config"]["enable"]
    url = server["url"].replace("//mcpo:", "//127.0.0.1:")
    document = ask("%s/%s" % (url, server["path"]), key=server["key"])
    assert {"/execute_python", "/execute_code", "/pip_install"} <= set(document["paths"]), mcpo.read_text()[-2000:]
    got = ask(url + "/execute_python", {"code": "print(6 * 7)"}, server["key"])
    assert "42" in json.dumps(got), got
    assert ask(url + "/execute_python", {"code": "1"}) in (401, 403), "mcpo needs its key"


def test_code_interpreter_of_open_webui(sandbox, services):
    """The Jupyter interface, at the address of its settings, without a token."""
    env = services["open-webui"]["environment"]
    for kind in ("CODE_EXECUTION", "CODE_INTERPRETER"):
        assert env["ENABLE_" + kind] == "true" and env[kind + "_ENGINE"] == "jupyter" and env[kind + "_JUPYTER_URL"] == "http://sandbox:8001"
    assert sandbox.request("GET", "/api/kernelspecs", headers={"Host": "sandbox:8001"}).status == 200
    r = sandbox.request("POST", "/api/kernels", headers={"Host": "sandbox:8001"})
    assert r.status == 201, r
    assert sandbox.request("DELETE", "/api/kernels/" + r.json["id"]).status == 204


def test_docker_compose_accepts_it(services):
    """The file by Docker's own tool, where there is one."""
    for tool in (["docker", "compose"], ["docker-compose"]):
        try:
            r = subprocess.run([*tool, "config", "--quiet"], cwd=PLACE, env={**os.environ, "MCPO_API_KEY": KEY}, stdout=subprocess.PIPE,
                               stderr=subprocess.STDOUT, text=True)
        except OSError:
            continue
        if r.returncode == 0:
            return
        if "is not a docker command" not in r.stdout and "unknown" not in r.stdout:
            raise AssertionError(r.stdout)
    pytest.skip("there is no docker compose")
