#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""oci-layout.py - Write what `docker build` would build as an OCI layout, for podman, skopeo and `caisson image import`.

The Dockerfile is the one place in which the image is described. It may have FROM scratch, ADD of archives to /, ENV, VOLUME, EXPOSE,
STOPSIGNAL, HEALTHCHECK, ENTRYPOINT and CMD; another instruction is an error, so that none is left out unnoticed. Everything is derived
from these files and from SOURCE_DATE_EPOCH: the same input makes the same layout.

usage: oci-layout.py DOCKERFILE NAME DIR
"""
import gzip
import hashlib
import json
import os
import platform
import re
import shlex
import shutil
import sys
import time
from pathlib import Path

OCI = "application/vnd.oci.image."
ARCH = {"x86_64": "amd64", "aarch64": "arm64"}
NANOSECONDS = {"s": 10**9, "m": 60 * 10**9, "h": 3600 * 10**9}


def instructions(text):
    """(name, argument) of each instruction."""
    lines = "".join(line for line in text.splitlines(keepends=True) if not line.lstrip().startswith("#"))
    for line in lines.replace("\\\n", " ").splitlines():
        if line.strip():
            name, _, argument = line.strip().partition(" ")
            yield name, argument.strip()


def healthcheck(argument):
    flags, _, command = argument.partition("CMD")
    check = {"Test": ["CMD", *json.loads(command)]}
    for name, number, unit in re.findall(r"--([a-z-]+)=(\d+)([smh])", flags):
        check[name.title().replace("-", "")] = int(number) * NANOSECONDS[unit]
    return check


def read_dockerfile(text):
    """(archives, configuration)"""
    archives, config = [], {}
    for name, argument in instructions(text):
        if name == "ADD" and argument.endswith(" /"):
            archives.append(argument[:-2])
        elif name == "ENV":
            config.setdefault("Env", []).extend(shlex.split(argument))
        elif name == "VOLUME":
            config["Volumes"] = {path: {} for path in argument.split()}
        elif name == "EXPOSE":
            config["ExposedPorts"] = {port: {} for port in argument.split()}
        elif name == "STOPSIGNAL":
            config["StopSignal"] = argument
        elif name == "HEALTHCHECK":
            config["Healthcheck"] = healthcheck(argument)
        elif name in ("ENTRYPOINT", "CMD"):
            config[name.title()] = json.loads(argument)
        elif (name, argument) != ("FROM", "scratch"):
            raise SystemExit(f"oci-layout.py: the layout would lack '{name} {argument}' of the Dockerfile")
    return archives, config


class Layout:
    def __init__(self, path):
        self.path, self.blobs = path, path / "blobs/sha256"
        shutil.rmtree(path, ignore_errors=True)
        self.blobs.mkdir(parents=True)

    def put(self, data, kind):
        digest = hashlib.sha256(data).hexdigest()
        (self.blobs / digest).write_bytes(data)
        return {"mediaType": OCI + kind, "digest": "sha256:" + digest, "size": len(data)}

    def put_json(self, value, kind):
        return self.put(json.dumps(value, separators=(",", ":"), sort_keys=True).encode(), kind)

    def put_layer(self, tar):
        """Compressed. Returns its description, and the digest of the archive itself."""
        plain, packed, where = hashlib.sha256(), hashlib.sha256(), self.path / "layer"
        with open(tar, "rb") as source, open(where, "wb") as out:
            with gzip.GzipFile(filename="", mode="wb", compresslevel=6, fileobj=out, mtime=0) as z:
                while chunk := source.read(1 << 20):
                    plain.update(chunk)
                    z.write(chunk)
        with open(where, "rb") as f:
            while chunk := f.read(1 << 20):
                packed.update(chunk)
        size = where.stat().st_size
        where.rename(self.blobs / packed.hexdigest())
        return {"mediaType": OCI + "layer.v1.tar+gzip", "digest": "sha256:" + packed.hexdigest(), "size": size}, "sha256:" + plain.hexdigest()


def main(dockerfile, name, where):
    layout = Layout(Path(where))
    archives, run = read_dockerfile(Path(dockerfile).read_text(encoding="utf-8"))
    layers, diff_ids = zip(*(layout.put_layer(Path(dockerfile).parent / a) for a in archives))
    made = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(int(os.environ.get("SOURCE_DATE_EPOCH", time.time()))))
    config = layout.put_json({
        "created": made, "architecture": ARCH.get(platform.machine(), platform.machine()), "os": "linux",
        "config": run, "rootfs": {"type": "layers", "diff_ids": diff_ids},
        "history": [{"created": made, "created_by": "ADD " + a} for a in archives]}, "config.v1+json")
    manifest = layout.put_json({"schemaVersion": 2, "mediaType": OCI + "manifest.v1+json", "config": config, "layers": layers}, "manifest.v1+json")
    manifest["annotations"] = {"org.opencontainers.image.ref.name": name}
    (layout.path / "index.json").write_text(json.dumps({"schemaVersion": 2, "mediaType": OCI + "index.v1+json", "manifests": [manifest]}) + "\n")
    (layout.path / "oci-layout").write_text('{"imageLayoutVersion":"1.0.0"}\n')


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    main(*sys.argv[1:])
