#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""image_start.py - A fresh sandbox of a stored image against one of the machine's own: over HTTP, print(1), torn down.

The image is made of this machine's own programs and its own python, in some layers, imported into an empty store by `caisson image
import`: the interpreter is the same in both. The differences are the source of the files, and that a zygote forks the machine's own
python while an image's python is started in its cell.
One daemon serves both. Two measurements, both interleaved:

- the answer: each waits until every pool is full, then one call of one kind, in an order shuffled per round;
- back to back: calls of one kind without a pause, slices of both kinds taking turns. Each call also pays for the end of the previous
  sandbox and for making the next one: this is the cost of a start when the pool does not keep up.

The goal is an answer from a full pool in at most 1.2 times the time of the machine's own image. Writes its part of docs/benchmarks.md.
"""
import argparse
import io
import os
import platform
import random
import statistics
import subprocess
import sys
import tarfile
import tempfile
import time
from pathlib import Path

import chart
from serve import ROOT, Daemon, log

sys.path[:0] = [str(ROOT / "tests/lib"), str(ROOT / "tests/integ")]
from image_lib import Layout  # noqa: E402
from layers_lib import SMALL, programs_layer, python_layer  # noqa: E402

REF = "docker.io/library/bench:1"
MORE = ["/usr/lib/python3", "/usr/share/perl", "/usr/share/zoneinfo", "/usr/lib/git-core", "/usr/share/misc", "/etc/ssl"]
KINDS = {"host": {}, "image": {"image": REF}}
MOST = 4 << 20  # of each further layer


def archive(fill):
    """The files that @fill puts into a directory, as a layer."""
    with tempfile.TemporaryDirectory(prefix="caisson-bench-") as directory:
        root = Path(directory, "root")
        root.mkdir()
        fill(root)
        out = io.BytesIO()
        with tarfile.open(fileobj=out, mode="w") as t:
            for entry in sorted(root.iterdir()):
                t.add(entry, entry.name, filter=owned_by_root)
        return out.getvalue()


def owned_by_root(info):
    info.uid = info.gid = 0
    info.uname = info.gname = "root"
    return info


def files_of(source):
    """Some of a directory of this machine as a layer of its own."""
    left, out = MOST, io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as t:
        for at, _, files in os.walk(source):
            for name in sorted(files):
                path = os.path.join(at, name)
                if os.path.isfile(path) and not os.path.islink(path) and os.path.getsize(path) <= left:
                    t.add(path, recursive=False, filter=owned_by_root)
                    left -= os.path.getsize(path)
    return out.getvalue()


def make_store(args, work):
    layers = [archive(lambda r: programs_layer(r, *SMALL)), archive(python_layer)]
    layers += [files_of(s) for s in MORE[:max(0, args.layers - 2)] if os.path.isdir(s)]
    layout = Layout(work / "layout", layers, config={"Env": ["PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"]}, arch=machine())
    store = work / "store"
    subprocess.run([args.build / "caisson", "image", "import", "--quiet", "--store", store, "--name", REF, layout.path], check=True, stdout=subprocess.DEVNULL)
    return store, len(layers)


def machine():
    return {"x86_64": "amd64", "aarch64": "arm64"}.get(platform.machine(), platform.machine())


def interpreters_ready(daemon):
    daemon.connection.request("GET", "/metrics")
    text = daemon.connection.getresponse().read().decode()
    return next(int(float(x.split()[-1])) for x in text.splitlines() if x.startswith("caisson_pool_kernels "))


def settle(daemon, full):
    """Wait until the pools are full, so that each call is measured by itself."""
    for _ in range(400):
        if interpreters_ready(daemon) >= full:
            break
        time.sleep(0.005)
    time.sleep(0.02)


def until_warm(daemon):
    """The image's pool is filled after its first use: the number of ready interpreters of both."""
    for kind in KINDS:
        daemon.execute("print(1)", "1\n", **KINDS[kind])
    last = seen = 0
    while seen < 20:
        time.sleep(0.1)
        now = interpreters_ready(daemon)
        seen, last = (seen + 1, now) if now == last and now > 1 else (0, now)
    return last


def check_same(daemon):
    """Both are the same python."""
    versions = {}
    for kind, fields in KINDS.items():
        daemon.connection.request("POST", "/execute", '{"code": "import sys; print(sys.version)", "image": "%s"}' % fields.get("image", "host"),
                                  {"Content-Type": "application/json"})
        versions[kind] = daemon.connection.getresponse().read().decode().split('"stdout":', 1)[1].split('"', 2)[1]
    if versions["host"] != versions["image"]:
        raise RuntimeError(f"not the same: {versions}")


def measure_answer(args, daemon, full):
    rng, times = random.Random(args.seed), {k: [] for k in KINDS}
    for i in range(-3, args.rounds):
        for kind in rng.sample(sorted(KINDS), len(KINDS)):
            settle(daemon, full)
            took = daemon.execute("print(1)", "1\n", **KINDS[kind])
            if i >= 0:
                times[kind].append(took)
    return times


def measure_back_to_back(args, daemon):
    rng, times = random.Random(args.seed), {k: [] for k in KINDS}
    for _ in range(args.slices):
        for kind in rng.sample(sorted(KINDS), len(KINDS)):
            end = time.perf_counter() + args.slice_seconds
            n, begin = 0, time.perf_counter()
            while time.perf_counter() < end:
                daemon.execute("print(1)", "1\n", **KINDS[kind])
                n += 1
            times[kind].append((time.perf_counter() - begin) / n)
            time.sleep(0.3)
    return times


GOAL = 1.2  # times `host`


def write_document(args, answer, cycle, n_layers):
    def row(text, times):
        host, image = (statistics.median(times[k]) for k in ("host", "image"))
        pairs = statistics.median(i / h for h, i in zip(times["host"], times["image"]))
        return f"| {text} | {host * 1e3:.2f} | {image * 1e3:.2f} | {image / host:.2f} | {pairs:.2f} |"

    ratio = statistics.median(answer["image"]) / statistics.median(answer["host"])
    out = [f"{os.cpu_count()} processors, Linux {platform.release()}, {time.strftime('%Y-%m-%d')}; {args.rounds} rounds, {args.slices} slices of {args.slice_seconds:g} s, interleaved; "
           f"an image of {n_layers} layers with this machine's python {platform.python_version()}; load {os.getloadavg()[0]:.0f} when it ended.", "",
           "| fresh sandbox, `print(1)` | `host`, ms | image, ms | × `host` | median ratio of pairs |", "|---|---:|---:|---:|---:|",
           row("the answer, from a full pool", answer), row("back to back: made, used, torn down", cycle),
           "", f"Goal: from a full pool at most {GOAL} times `host`: {chart.met(ratio <= GOAL)}. Command: `tests/bench/image_start.py`."]
    chart.publish(args.output, "image-start", out)


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    p.add_argument("--build", type=Path, default=ROOT / "build")
    p.add_argument("--rounds", type=int, default=200)
    p.add_argument("--slices", type=int, default=12)
    p.add_argument("--slice-seconds", type=float, default=1.0)
    p.add_argument("--layers", type=int, default=2 + len(MORE))
    p.add_argument("--output", type=Path)
    p.add_argument("--seed", type=int, default=int(time.time()))
    args = p.parse_args()
    args.build = args.build.resolve()
    with tempfile.TemporaryDirectory(prefix="caisson-bench-") as directory:
        store, n_layers = make_store(args, Path(directory))
        daemon = Daemon(args.build, directory, "--image-store", str(store))
        try:
            full = until_warm(daemon)
            check_same(daemon)
            log(f"{full} interpreters are ready")
            answer = measure_answer(args, daemon, full)
            cycle = measure_back_to_back(args, daemon)
        finally:
            daemon.stop()
    write_document(args, answer, cycle, n_layers)
    return 0


if __name__ == "__main__":
    sys.exit(main())
