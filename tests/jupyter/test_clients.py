# SPDX-License-Identifier: Apache-2.0
"""test_clients.py - Real clients of Jupyter against the daemon: JupyterLab's library, jupyter-server, nbclient, Jupyter's kernel tests."""
import json
import os
import re
import subprocess
import sys
import threading
import urllib.request

import pytest

from jupyter_lib import Kernel
from real_lib import HERE, NotHere, debian, environment, nbconvert, node
from process import HANG, free_port, wait_until
from serve_lib import WebSocket

TOKEN = "t" * 64


@pytest.fixture
def need():
    """A function that gets the requirements of a test, or skips it with the reason."""
    def get(what, *args):
        try:
            return what(*args)
        except NotHere as e:
            pytest.skip("not here: %s" % e)
    return get


def call(argv, env, text=None, seconds=120):
    r = subprocess.run([str(a) for a in argv], env=env, input=text, capture_output=True, text=True, timeout=seconds)
    assert r.returncode == 0, r.stdout[-3000:] + r.stderr[-3000:]
    return r


@pytest.mark.parametrize("framing", ["v1", "json"])
def test_jupyterlab_services(serve, need, tmp_path, framing):
    where = need(node)
    (tmp_path / "tokens").write_text("me:%s\n" % TOKEN)
    (tmp_path / "tokens").chmod(0o600)
    d = serve("--token-file", tmp_path / "tokens")
    r = call(["node", where / "services.mjs", "http://127.0.0.1:%d/" % d.port, TOKEN, framing], {"PATH": "/usr/local/bin:/usr/bin:/bin"})
    seen = json.loads(r.stdout.strip().splitlines()[-1])
    assert seen["protocols"] == ["v1.kernel.websocket.jupyter.org" if framing == "v1" else ""]
    assert {"python3", "bash"} <= set(seen["specs"]) and seen["info"] == "python"
    assert seen["print"]["text"] == "hi\n" and seen["print"]["data"] == {"text/plain": "42"} and seen["print"]["reply"]["status"] == "ok"
    assert seen["error"] == "ZeroDivisionError" and seen["input"] == {"text/plain": "'from node'"}
    assert "getcwd" in seen["complete"] and seen["inspect"] and seen["history"] == 1
    assert seen["interrupted"] == "KeyboardInterrupt" and seen["restarted"] == "NameError" and seen["listed"] and seen["gone"]


def test_kernel_test(daemon, need, tmp_path):
    """The checks that Jupyter publishes for authors of kernels."""
    need(debian, "jupyter_kernel_test", "zmq")
    for spec in ("python3", "bash"):
        where = tmp_path / "kernels" / ("caisson-" + spec)
        where.mkdir(parents=True)
        (where / "kernel.json").write_text(json.dumps({"argv": [sys.executable, str(HERE / "adapter.py"), "{connection_file}"], "display_name": spec,
                                                       "language": spec, "env": {"CAISSON_TEST_SPEC": spec}}))
    env = environment(tmp_path, JUPYTER_PATH=str(tmp_path), CAISSON_TEST_URL="http://127.0.0.1:%d" % daemon.port,
                      PYTHONPATH=os.pathsep.join(p for p in sys.path if "/tests/" in p))
    r = call([sys.executable, HERE / "kernel_checks.py", "-v"], env)
    ran, = re.findall(r"^Ran (\d+) tests", r.stderr, re.M)
    assert int(ran) >= 20 and re.search(r"^OK", r.stderr, re.M), r.stderr


CELLS = ["x = 2\nprint('one')", "import sys; print('two', file=sys.stderr); x * 21", "1 / 0", "from IPython.display import HTML\nHTML('<b>%d</b>' % x)"]


def test_nbclient_through_the_gateway_classes(daemon, need, tmp_path):
    need(debian, "nbclient", "jupyter_server")
    r = call([sys.executable, HERE / "notebook.py", "http://127.0.0.1:%d" % daemon.port], environment(tmp_path), json.dumps(CELLS))
    one, two, error, html = json.loads(r.stdout)
    assert one == [{"output_type": "stream", "name": "stdout", "text": "one\n"}]
    assert [o["output_type"] for o in two] == ["stream", "execute_result"] and two[1]["data"] == {"text/plain": "42"}
    assert error[0]["ename"] == "ZeroDivisionError" and html[0]["data"]["text/html"] == "<b>2</b>"
    assert daemon.get("/api/kernels").json == [], "it was shut down"


def test_pandas_and_matplotlib_look_as_in_jupyter(daemon, need, tmp_path):
    need(debian, "nbclient", "jupyter_server", "pandas", "matplotlib")
    cells = ["import pandas as pd, matplotlib.pyplot as plt", "pd.DataFrame({'a': [1, 2]})", "plt.plot([1, 4, 2]);", "%timeit -n1 -r1 1"]
    r = call([sys.executable, HERE / "notebook.py", "http://127.0.0.1:%d" % daemon.port], environment(tmp_path), json.dumps(cells))
    _, frame, plot, timed = json.loads(r.stdout)
    assert "<table" in frame[0]["data"]["text/html"] and frame[0]["output_type"] == "execute_result"
    assert plot[-1]["output_type"] == "display_data" and plot[-1]["data"]["image/png"].startswith("iVBOR")
    assert "per loop" in timed[0]["text"]


@pytest.fixture
def jupyter_server(daemon, need, tmp_path):
    """Debian's jupyter-server with the daemon as its gateway; its port."""
    need(debian, "jupyter_server")
    port = free_port()
    log = open(tmp_path / "log", "wb")
    p = subprocess.Popen([sys.executable, "-m", "jupyter_server", "--allow-root", "--no-browser", "--port", str(port), "--ip", "127.0.0.1",
                          "--ServerApp.token=" + TOKEN, "--gateway-url", "http://127.0.0.1:%d" % daemon.port, "--ServerApp.root_dir", str(tmp_path)],
                         env=environment(tmp_path), stdout=log, stderr=subprocess.STDOUT, cwd=tmp_path)
    try:
        def answers():
            assert p.poll() is None, (tmp_path / "log").read_text()[-3000:]
            try:
                return urllib.request.urlopen("http://127.0.0.1:%d/api?token=%s" % (port, TOKEN), timeout=5).status == 200
            except OSError:
                return False
        assert wait_until(answers, HANG), (tmp_path / "log").read_text()[-3000:]
        yield port
    finally:
        p.terminate()
        p.wait(30)
        log.close()


def test_jupyter_server_with_us_as_gateway(daemon, jupyter_server):
    """The messages of a browser to jupyter-server, which passes them on."""
    class Server:
        """The part of a Daemon that a Kernel needs."""
        port, token = jupyter_server, TOKEN

        def connect(self, timeout=60):
            import socket
            return socket.create_connection(("127.0.0.1", self.port), timeout)

    def ask(method, path, body=None):
        r = urllib.request.Request("http://127.0.0.1:%d%s" % (jupyter_server, path), json.dumps(body).encode() if body is not None else None,
                                   {"Authorization": "token " + TOKEN}, method=method)
        with urllib.request.urlopen(r, timeout=60) as a:
            return json.loads(a.read() or b"null")

    def connect(id):
        """jupyter-server drops messages that arrive before it has reached the kernel: repeat until there is an answer, as its clients do."""
        k, over = Kernel(Server(), id, query="&token=" + TOKEN), threading.Event()

        def go_on():
            while not over.wait(0.2):
                k.send("kernel_info_request")

        asking = threading.Thread(target=go_on)
        asking.start()
        try:
            while k.receive()["msg_type"] != "kernel_info_reply":
                pass
        finally:
            over.set()
            asking.join()
        return k

    assert {"python3", "bash"} <= set(ask("GET", "/api/kernelspecs")["kernelspecs"])
    s = ask("POST", "/api/sessions", {"path": "a.ipynb", "name": "a", "type": "notebook", "kernel": {"name": "python3"}})
    id = s["kernel"]["id"]
    assert id in [k["id"] for k in daemon.get("/api/kernels").json]
    k = connect(id)
    r = k.run("print('through')\n6 * 7")
    assert r.text() == "through\n" and r.result == {"text/plain": "42"} and r.reply["status"] == "ok"
    ask("POST", "/api/kernels/%s/interrupt" % id, {})
    assert ask("POST", "/api/kernels/%s/restart" % id, {})["id"] == id
    k.ws.hang_up()
    k = connect(id)
    assert k.run("2 + 2").result == {"text/plain": "4"}
    k.ws.hang_up()
    ask("DELETE", "/api/sessions/" + s["id"])
    assert wait_until(lambda: daemon.get("/api/kernels").json == [])


def documented(first, last):
    """Lines of docs/jupyter.md, from one that begins so to the next one that begins so."""
    lines = (HERE.parents[1] / "docs/jupyter.md").read_text().splitlines()
    at = next(i for i, line in enumerate(lines) if line.startswith(first))
    return lines[at:at + next(i for i, line in enumerate(lines[at:]) if line.startswith(last)) + 1]


def test_the_documented_nbconvert_line(serve, need, tmp_path):
    """As printed, with the programs of PyPI; only the port is another one."""
    bin, d = need(nbconvert), serve()
    cells = [{"cell_type": "code", "id": "a", "metadata": {}, "outputs": [], "execution_count": None, "source": "import os\nprint(os.getcwd(), 6 * 7)"}]
    (tmp_path / "a.ipynb").write_text(json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}))
    script = "\n".join(documented("JUPYTER_GATEWAY_URL=", "  --ExecutePreprocessor")).replace(":8001", ":%d" % d.port)
    call(["sh", "-ec", "cd %s\n%s" % (tmp_path, script)], environment(tmp_path, PATH="%s:/usr/bin:/bin" % bin))
    done, = json.loads((tmp_path / "a.nbconvert.ipynb").read_text())["cells"]
    assert done["outputs"] == [{"name": "stdout", "output_type": "stream", "text": ["/workspace 42\n"]}]
    assert d.get("/api/kernels").json == [], "it was shut down"


def test_the_documented_lines_for_open_webui(serve, tmp_path):
    """The daemon as printed; then what Open WebUI asks with its variables, by the name of the URL."""
    token = "w" * 40
    (tmp_path / "tokens").write_text("webui:%s\n" % token)
    (tmp_path / "tokens").chmod(0o600)
    lines = documented("CODE_EXECUTION_ENGINE=", "caisson serve")
    variables = dict(line.split("=", 1) for line in lines if line.startswith("CODE_"))
    assert variables["CODE_EXECUTION_ENGINE"] == "jupyter" and variables["CODE_EXECUTION_JUPYTER_AUTH"] == "token"
    flags = lines[-1].split()[2:]
    assert flags.pop(0) == "--listen" and flags.pop(0) == "0.0.0.0:8001" and "tokens" in flags
    d = serve(*[str(tmp_path / "tokens") if f == "tokens" else f for f in flags], listen="0.0.0.0", token=token)
    host = variables["CODE_EXECUTION_JUPYTER_URL"].removeprefix("http://")
    query = "?token=" + variables["CODE_EXECUTION_JUPYTER_AUTH_TOKEN"].replace("$TOKEN", token)
    nobody = {"Authorization": None, "Host": host}
    r = d.request("POST", "/api/kernels" + query, headers=nobody)
    assert r.status == 201, r
    with WebSocket(d, "/api/kernels/%s/channels%s" % (r.json["id"], query), nobody) as ws:
        assert ws.answer.status == 101, ws.answer
    assert d.request("DELETE", "/api/kernels/%s%s" % (r.json["id"], query), headers=nobody).status == 204
    r = d.request("POST", "/api/kernels" + query, headers={**nobody, "Host": "webui.example:8001"})
    assert r.status == 421 and "--allow-host" in r.error["hint"], r


def test_what_open_webui_does(daemon):
    """POST without a body, one execute_request, read to idle, DELETE: its code execution engine, step by step."""
    r = daemon.request("POST", "/api/kernels?token=")
    assert r.status == 201
    id = r.json["id"]
    with Kernel(daemon, id) as k:
        msg_id = k.send("execute_request", {"code": "import base64\nprint('out')\n7", "silent": False, "store_history": True, "user_expressions": {},
                                            "allow_stdin": False, "stop_on_error": True})
        out, result = "", None
        while True:
            m = k.receive()
            if m.get("parent_header", {}).get("msg_id") != msg_id:
                continue
            if m["msg_type"] == "stream":
                out += m["content"]["text"]
            elif m["msg_type"] == "execute_result":
                result = m["content"]["data"]["text/plain"]
            elif m["msg_type"] == "status" and m["content"]["execution_state"] == "idle":
                break
        assert out == "out\n" and result == "7"
    assert daemon.request("DELETE", "/api/kernels/%s?token=" % id).status == 404, "already deleted by the one above"
