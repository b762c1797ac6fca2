#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""jupyter.py - A warm execution over Jupyter's protocol: by the daemon, and by a real ipykernel behind Jupyter's own server, with the same client.

One kernel of each, made before. Executions take turns, in an order shuffled per round; the time is from the request to its reply and `idle`. Then how
long a kernel takes to be made and to answer its first execution. Writes its part of docs/benchmarks.md.
"""
import argparse
import json
import os
import platform
import random
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

import chart
from serve import ROOT, Daemon, log

sys.path[:0] = [str(ROOT / "tests/lib"), str(ROOT / "tests/serve"), str(ROOT / "tests/integ")]
from jupyter_lib import Kernel  # noqa: E402

TOKEN = "bench"


class Caisson:
    token = None

    def __init__(self, build, directory):
        self.daemon = Daemon(build, directory)
        self.port = self.daemon.port

    def ask(self, method, path, body=None):
        r = urllib.request.Request(f"http://127.0.0.1:{self.port}{path}", json.dumps(body).encode() if body is not None else None,
                                   {"Content-Type": "application/json", "Authorization": f"token {self.token}"}, method=method)
        with urllib.request.urlopen(r, timeout=60) as answer:
            return json.loads(answer.read() or b"null")

    def connect(self, timeout=60):
        return socket.create_connection(("127.0.0.1", self.port), timeout)

    def kernel(self):
        id = self.ask("POST", "/api/kernels", {"name": "python3"})["id"]
        return Kernel(self, id, query=f"&token={self.token}" if self.token else "")

    def end(self, kernel):
        kernel.ws.hang_up()
        self.ask("DELETE", f"/api/kernels/{kernel.id}")

    def stop(self):
        self.daemon.stop()


class Jupyter(Caisson):
    """Debian's jupyter-server with its ipykernel: no isolation at all."""
    token = TOKEN

    def __init__(self, directory):  # pylint: disable=super-init-not-called
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            self.port = s.getsockname()[1]
        home = Path(directory, "jupyter")
        home.mkdir()
        env = {**{k: v for k, v in os.environ.items() if not k.startswith("JUPYTER_")}, "HOME": str(home), "JUPYTER_CONFIG_DIR": str(home)}
        self.process = subprocess.Popen([sys.executable, "-m", "jupyter_server", "--allow-root", "--no-browser", "--ip", "127.0.0.1", "--port", str(self.port),
                                         "--ServerApp.token=" + TOKEN, "--log-level=ERROR"], env=env, cwd=home, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for _ in range(600):
            try:
                self.ask("GET", "/api/kernelspecs")
                return
            except OSError:
                time.sleep(0.1)
        raise RuntimeError("jupyter-server did not start")

    def stop(self):
        self.process.terminate()
        self.process.wait(30)


def one(kernel):
    """Wait until `idle` and the reply have arrived; Jupyter's own server sends them in either order."""
    begin = time.perf_counter()
    id = kernel.send("execute_request", {"code": "1 + 1", "silent": False, "store_history": True, "allow_stdin": False})
    result = reply = idle = None
    while not (reply and idle):
        m = kernel.receive()
        if m["parent_header"].get("msg_id") != id:
            continue
        kind, content = m["msg_type"], m["content"]
        reply = content if kind == "execute_reply" else reply
        result = content if kind == "execute_result" else result
        idle = idle or kind == "status" and content["execution_state"] == "idle"
    took = time.perf_counter() - begin
    if reply["status"] != "ok" or result["data"]["text/plain"] != "2":
        raise RuntimeError((reply, result))
    return took


def fresh(server):
    begin = time.perf_counter()
    kernel = server.kernel()
    one(kernel)
    took = time.perf_counter() - begin
    server.end(kernel)
    return took


def measure(args, servers):
    rng = random.Random(args.seed)
    kernels = {k: s.kernel() for k, s in servers.items()}
    warm, first = {k: [] for k in servers}, {k: [] for k in servers}
    for k in kernels.values():
        for _ in range(20):
            one(k)
    for _ in range(args.rounds):
        for kind in rng.sample(list(kernels), len(kernels)):
            warm[kind].append(one(kernels[kind]))
    for i in range(args.fresh):
        for kind in rng.sample(list(servers), len(servers)):
            first[kind].append(fresh(servers[kind]))
        log(f"fresh {i + 1} of {args.fresh}")
    return warm, first


GOAL = 0.3  # of the median of ipykernel


def write_document(args, warm, first):
    out = [f"{os.cpu_count()} processors, Linux {platform.release()}, {time.strftime('%Y-%m-%d')}; {args.rounds} executions and {args.fresh} kernels of each, interleaved.",
           "", "| | warm execute, ms | × ipykernel | new kernel and first execute, ms |", "|---|---:|---:|---:|"]
    base = statistics.median(warm["jupyter"]) if "jupyter" in warm else None
    for kind, text in (("jupyter", "ipykernel behind jupyter-server, no isolation"), ("caisson", "**caisson**")):
        if kind in warm:
            middle = statistics.median(warm[kind])
            out.append(f"| {text} | {middle * 1e3:.2f} | {f'{middle / base:.2f}' if base else 'not here'} | {statistics.median(first[kind]) * 1e3:.0f} |")
    goal = f"Goal: a warm execute in at most {GOAL} of ipykernel's time: {chart.met(statistics.median(warm['caisson']) <= GOAL * base)}. " if base else ""
    out += ["", goal + "Command: `tests/bench/jupyter.py`."]
    chart.publish(args.output, "jupyter", out)


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    p.add_argument("--build", type=Path, default=ROOT / "build")
    p.add_argument("--rounds", type=int, default=500)
    p.add_argument("--fresh", type=int, default=10)
    p.add_argument("--output", type=Path)
    p.add_argument("--seed", type=int, default=int(time.time()))
    args = p.parse_args()
    servers = {}
    with tempfile.TemporaryDirectory(prefix="caisson-bench-") as directory:
        try:
            servers["caisson"] = Caisson(args.build.resolve(), directory)
            try:
                servers["jupyter"] = Jupyter(directory)
            except RuntimeError as e:
                log(f"{e}: tools/deps.sh jupyter installs it")
            result = measure(args, servers)
        finally:
            for s in servers.values():
                s.stop()
    write_document(args, *result)
    return 0


if __name__ == "__main__":
    sys.exit(main())
