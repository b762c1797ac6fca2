#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""image_pull.py - How long an image takes from a registry to the disk, against podman in the same run.

The image is made of this machine's own files: python's library, its headers and locales, node or perl, as available, a layer each. The
registry is Debian's docker-registry on loopback. In each round both pull it into an empty store, in a shuffled order. The time of the
command counts, from start to end; for both, the store is then synced to the disk, outside of the time. Caisson's own pull syncs inside.
The goal is at most podman's time. Writes its part of docs/benchmarks.md.
"""
import argparse
import os
import platform
import random
import shutil
import statistics
import subprocess
import sys
import tarfile
import tempfile
import time
from pathlib import Path

import chart
from serve import ROOT, log

sys.path[:0] = [str(ROOT / "tests/lib"), str(ROOT / "tests/integ")]
from image_lib import Layout, Registry  # noqa: E402

SOURCES = ["/usr/lib/python3.11", "/usr/lib/python3", "/usr/share/perl", "/usr/include", "/usr/lib/git-core", "/usr/share/nodejs"]
MOST = 24 << 20  # of one layer


def layer(source, work):
    """A directory of this machine as an archive, cut at MOST bytes of files."""
    path, left = work / "layer.tar", MOST
    with tarfile.open(path, "w") as t:
        for at, _, files in os.walk(source):
            for name in sorted(files):
                file = os.path.join(at, name)
                size = os.lstat(file).st_size
                if size <= left and (os.path.isfile(file) or os.path.islink(file)):
                    t.add(file, recursive=False)
                    left -= size
    data = path.read_bytes()
    path.unlink()
    return data


def caisson(args, ref, work):
    store = work / "caisson"
    return [str(args.build / "caisson"), "image", "pull", "--quiet", "--store", str(store), ref], store


def podman(_args, ref, work):
    store = work / "podman"
    return ["podman", "--root", str(store), "--runroot", str(work / "run"), "pull", "-q", "--tls-verify=false", ref], store


def once(command, store, env):
    os.sync()
    begin = time.monotonic()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=env)
    took = time.monotonic() - begin
    os.sync()
    for mount in reversed([line.split()[1] for line in Path("/proc/mounts").read_text().splitlines()]):
        if mount.startswith(str(store) + "/"):
            subprocess.run(["umount", mount], check=False)
    shutil.rmtree(store, ignore_errors=True)
    return took


def measure(args, ref, work):
    ways = {"caisson": caisson, "podman": podman}
    times = {name: [] for name in ways}
    env = {k: v for k, v in os.environ.items() if not k.startswith("CAISSON_")}
    shuffle = random.Random(args.seed)
    for i in range(args.rounds + 1):
        for name in shuffle.sample(sorted(ways), len(ways)):
            command, store = ways[name](args, ref, work)
            took = once(command, store, env)
            if i:  # the first round warms both and the registry
                times[name].append(took)
            log("round %d: %s %.2f s" % (i, name, took))
    return times


def write_document(args, times, layout, files):
    ours, theirs = (statistics.median(times[n]) for n in ("caisson", "podman"))
    size = sum(layer["size"] for layer in layout.layers) / 2**20
    version = subprocess.run(["podman", "--version"], stdout=subprocess.PIPE, text=True, check=True).stdout.split()[-1]
    out = [f"{os.cpu_count()} processors, Linux {platform.release()}, {time.strftime('%Y-%m-%d')}; {args.rounds} rounds, interleaved; an image of {len(layout.layers)} layers, "
           f"{size:.0f} MiB ({args.how}), {files} files, from a registry on loopback; load {os.getloadavg()[0]:.0f} when it ended.", "",
           "| a pull into an empty store | median, s | × podman |", "|---|---:|---:|",
           f"| podman {version} | {theirs:.2f} | 1.00 |", f"| **caisson**, on the disk when it ends | {ours:.2f} | {ours / theirs:.2f} |",
           "", f"Goal: at most podman's time: {chart.met(ours <= theirs)}. Command: `tests/bench/image_pull.py`."]
    chart.publish(args.output, "image-pull", out)


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    p.add_argument("--build", type=Path, default=ROOT / "build")
    p.add_argument("--rounds", type=int, default=5)
    p.add_argument("--layers", type=int, default=len(SOURCES))
    p.add_argument("--how", choices=["gzip", "zstd"], default="gzip")
    p.add_argument("--output", type=Path)
    p.add_argument("--seed", type=int, default=int(time.time()))
    args = p.parse_args()
    args.build = args.build.resolve()
    for program in ("podman", "docker-registry", "skopeo"):
        if not shutil.which(program):
            log("no %s here: no pull is compared" % program)
            return 0
    with tempfile.TemporaryDirectory(prefix="caisson-bench-") as directory:
        work = Path(directory)
        layers = [layer(s, work) for s in SOURCES[:args.layers] if os.path.isdir(s)]
        files = sum(tar.count(b"ustar") for tar in layers)
        layout = Layout(work / "img", layers, args.how)
        del layers
        registry = Registry(work / "registry")
        try:
            times = measure(args, registry.push(layout, "bench:1"), work)
        finally:
            registry.close()
    write_document(args, times, layout, files)
    return 0


if __name__ == "__main__":
    sys.exit(main())
