# SPDX-License-Identifier: Apache-2.0
"""layers_lib.py - Images for the tests, of this machine's own programs, in a store of their own.

An image is given as layers, each a dict from a path to its content: bytes or text (a file, mode 0755), Link(target), GONE (a name
that this layer removes), a Path of the machine (copied with the libraries that it needs), or None (a directory). The store is
written as in src/image/image_store.h.
"""
import hashlib
import json
import os
import re
import shutil
import stat
import subprocess
import sysconfig
from pathlib import Path

import pytest

from process import BIN

ID_BASE = 0x6FFE0000  # src/image/open.h
GONE = object()
SMALL = ("bash", "sh", "cat", "ls", "id", "env", "mktemp", "mkfifo", "rm", "head", "od", "tr", "sleep", "touch")


class Link:
    def __init__(self, target):
        self.target = target


def libraries(*programs):
    text = subprocess.run(["ldd", *programs], capture_output=True, text=True).stdout
    return set(re.findall(r"(?:=> )?(/\S+) \(0x", text))


def copy_in(root, path, to=None):
    target = root / str(to or path).lstrip("/")
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy2(os.path.realpath(path), target)
    target.chmod(0o755)


def programs_layer(root, *names):
    """Programs in /bin, and the libraries they need where they look for them."""
    for sub in ("bin", "dev", "proc", "sys", "usr/bin", "var", "run", "etc", "tmp"):
        (root / sub).mkdir(parents=True, exist_ok=True)
    found = [shutil.which(n) for n in names]
    if None in found:
        pytest.skip("no %s here to make an image of" % names[found.index(None)])
    for name, path in zip(names, found):
        copy_in(root, path, "/bin/" + name)
    # A sanitized init is not static: its libraries have to be there, too.
    for lib in libraries(*found, BIN.parent / "caisson-init"):
        copy_in(root, lib)
    (root / "tmp").chmod(0o1777)


def python_layer(root):
    """This machine's python3 and its library."""
    library = sysconfig.get_paths(vars={"base": "/usr", "installed_base": "/usr"})["stdlib"]
    if not os.path.isfile(library + "/os.py") or not os.path.exists("/usr/bin/python3"):
        pytest.skip("no python3 of the distribution here to make an image of")
    copy_in(root, "/usr/bin/python3")
    target = root / library.lstrip("/")
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copytree(library, target, symlinks=True, ignore=shutil.ignore_patterns("test", "idlelib", "ensurepip", "turtledemo", "config-*", "tkinter", "lib2to3"))
    for lib in libraries("/usr/bin/python3", *map(str, Path(library).glob("lib-dynload/_ctypes*.so")), *map(str, Path(library).glob("lib-dynload/_hashlib*.so")), *map(str, Path(library).glob("lib-dynload/_ssl*.so"))):
        copy_in(root, lib)


def write_layer(root, content):
    for path, what in content.items():
        target = root / path.lstrip("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        if what is None:
            target.mkdir(exist_ok=True)
        elif what is GONE:
            os.mknod(target, stat.S_IFCHR | 0o600, os.makedev(0, 0))
        elif isinstance(what, Link):
            target.symlink_to(what.target)
        else:
            target.write_bytes(what if isinstance(what, bytes) else what.encode())
            target.chmod(0o755)


def sha256(data):
    return hashlib.sha256(data).hexdigest()


class Store:
    """A store of images, written by hand."""

    def __init__(self, path):
        self.path = Path(path)
        for d in ("blobs/sha256", "layers", "leases", "tmp"):
            (self.path / d).mkdir(parents=True, mode=0o700, exist_ok=True)
        self.path.chmod(0o700)
        self.layers = 0

    def layer(self, *contents):
        """A layer of functions that fill a directory, and dicts. Its diff_id."""
        diff_id = sha256(b"%s %d" % (os.fsencode(self.path), self.layers))
        self.layers += 1
        root = self.path / "layers" / diff_id
        root.mkdir(mode=0o755)
        for c in contents:
            c(root) if callable(c) else write_layer(root, c)
        if os.geteuid() == 0:
            for d, _, files in os.walk(root):
                for p in [d] + [os.path.join(d, f) for f in files]:
                    os.chown(p, ID_BASE, ID_BASE, follow_symlinks=False)
        return diff_id

    def blob(self, value):
        data = json.dumps(value).encode()
        (self.path / "blobs/sha256" / sha256(data)).write_bytes(data)
        return {"digest": "sha256:" + sha256(data), "size": len(data)}

    def add(self, ref, layers, **config):
        """An image of these layers, the lowest first. Its digest."""
        document = {"architecture": "amd64", "os": "linux", "config": config, "rootfs": {"type": "layers", "diff_ids": ["sha256:" + d for d in layers]}}
        manifest = {
            "schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json",
            "config": {"mediaType": "application/vnd.oci.image.config.v1+json", **self.blob(document)},
            "layers": [{"mediaType": "application/vnd.oci.image.layer.v1.tar", "digest": "sha256:" + d, "size": 1} for d in layers]}
        digest = self.blob(manifest)["digest"]
        (self.path / "leases" / digest[7:]).touch(mode=0o600)
        refs = self.path / "refs"
        lines = [x for x in (refs.read_text() if refs.exists() else "").splitlines() if not x.endswith(" " + ref)]
        new = self.path / "tmp/refs"
        new.write_text("".join(x + "\n" for x in [*lines, "%s 1 %s" % (digest, ref)]))
        new.rename(refs)
        return digest
