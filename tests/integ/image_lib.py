# SPDX-License-Identifier: Apache-2.0
"""image_lib.py - Images made by hand, registries to pull them from, and functions that inspect the results.

The real registry is Debian's docker-registry, filled by skopeo. The other one is a few lines of Python that serve a
layout and misbehave as a test says; it writes down every request, with its headers.
"""
import base64
import gzip
import hashlib
import http.server
import io
import json
import os
import socket
import subprocess
import sys
import tarfile
import tempfile
import threading
import time
import urllib.parse
from pathlib import Path

import tree_dump
from integ_lib import run
from process import HANG, free_port

ID_BASE = 0x6ffe0000
OCI = "application/vnd.oci.image."
USER, PASSWORD = "me", "secret"


# ---- making ----------------------------------------------------------------------------------------------

def entry(name, data=b"", type=tarfile.REGTYPE, link="", mode=None, uid=0, gid=0, mtime=1_600_000_000, dev=(0, 0), **pax):
    info = tarfile.TarInfo(name)
    info.type, info.linkname, info.size = type, link, len(data)
    info.mode = mode if mode is not None else 0o755 if type == tarfile.DIRTYPE else 0o644
    info.uid, info.gid, info.mtime = uid, gid, mtime
    info.devmajor, info.devminor = dev
    info.pax_headers = {k.replace("__", "."): v for k, v in pax.items()}
    return info, data


def directory(name, **kw):
    return entry(name, type=tarfile.DIRTYPE, **kw)


def symlink(name, to, **kw):
    return entry(name, type=tarfile.SYMTYPE, link=to, mode=0o777, **kw)


def hardlink(name, to, **kw):
    return entry(name, type=tarfile.LNKTYPE, link=to, **kw)


def tar(*entries, format=tarfile.PAX_FORMAT):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=format) as t:
        for info, data in entries:
            t.addfile(info, io.BytesIO(data))
    return out.getvalue()


def sha256(data):
    return "sha256:" + hashlib.sha256(data).hexdigest()


def compress(data, how):
    if how == "gzip":
        return gzip.compress(data, 6, mtime=0)
    if how == "zstd":
        return subprocess.run(["zstd", "-q", "-c"], input=data, stdout=subprocess.PIPE, check=True).stdout
    return data


def tar_of(fill):
    """The archive of a directory that @fill fills."""
    out = io.BytesIO()
    with tempfile.TemporaryDirectory() as root, tarfile.open(fileobj=out, mode="w") as t:
        fill(Path(root))
        for path in sorted(Path(root).rglob("*")):
            info = t.gettarinfo(path, str(path.relative_to(root)))
            info.uid = info.gid = 0
            with open(path, "rb") if info.isreg() else io.BytesIO() as f:
                t.addfile(info, f)
    return out.getvalue()


class Layout:
    """An OCI layout. Layers are tar archives, or (stored bytes, diff_id, media type) to lie."""

    def __init__(self, path, layers, how="gzip", tag="latest", config=None, arch="amd64", index_of=()):
        self.path = Path(path)
        self.blobs = self.path / "blobs/sha256"
        self.blobs.mkdir(parents=True)
        (self.path / "oci-layout").write_text('{"imageLayoutVersion":"1.0.0"}')
        described, diffs = [], []
        for layer in layers:
            if isinstance(layer, tuple):
                data, diff, kind = layer
            else:
                data, diff, kind = compress(layer, how), sha256(layer), "+" + how if how else ""
            described.append(self.put(data, OCI + "layer.v1.tar" + kind))
            diffs.append(diff)
        body = {"architecture": arch, "os": "linux", "config": config or {}, "rootfs": {"type": "layers", "diff_ids": diffs}}
        self.layers = described
        self.diffs = diffs
        self.config = self.put(json.dumps(body).encode(), OCI + "config.v1+json")
        manifest = {"schemaVersion": 2, "mediaType": OCI + "manifest.v1+json", "config": self.config, "layers": described}
        self.manifest = self.put(json.dumps(manifest).encode(), manifest["mediaType"])
        top = dict(self.manifest, annotations={"org.opencontainers.image.ref.name": tag})
        (self.path / "index.json").write_text(json.dumps({"schemaVersion": 2, "manifests": [top]}))

    def put(self, data, media):
        (self.blobs / sha256(data)[7:]).write_bytes(data)
        return {"mediaType": media, "digest": sha256(data), "size": len(data)}

    def blob(self, digest):
        return self.blobs / digest[7:]


# ---- registries --------------------------------------------------------------------------------------------

class Registry:
    """docker-registry on loopback, with a password when asked."""

    def __init__(self, dir, password=False):
        self.dir = Path(dir)
        self.dir.mkdir()
        self.data = self.dir / "data"
        self.password = password
        self.log = self.dir / "log"
        for _ in range(10):
            if self._start():
                return
        raise AssertionError("no docker-registry: " + self.log.read_text()[-800:])

    def _start(self):
        self.port = free_port()
        self.host = "127.0.0.1:%d" % self.port
        lines = ["version: 0.1", "log: {level: info}", "http: {addr: '%s', secret: x}" % self.host,
                 "storage: {filesystem: {rootdirectory: '%s'}}" % self.data]
        if self.password:
            made = subprocess.run(["htpasswd", "-Bbn", "-C", "4", USER, PASSWORD], stdout=subprocess.PIPE, check=True)
            (self.dir / "htpasswd").write_bytes(made.stdout)
            lines.append("auth: {htpasswd: {realm: here, path: '%s'}}" % (self.dir / "htpasswd"))
        (self.dir / "config.yml").write_text("\n".join(lines) + "\n")
        self.process = subprocess.Popen(["docker-registry", "serve", str(self.dir / "config.yml")],
                                        stdout=self.log.open("wb"), stderr=subprocess.STDOUT)
        end = time.monotonic() + HANG
        while self.process.poll() is None and time.monotonic() < end:
            with socket.socket() as s:
                if s.connect_ex(("127.0.0.1", self.port)) == 0:
                    return True
            time.sleep(0.01)
        return False

    def push(self, layout, name, tag="latest"):
        policy = self.dir / "policy.json"
        policy.write_text('{"default":[{"type":"insecureAcceptAnything"}]}')
        creds = ["--dest-creds", USER + ":" + PASSWORD] if self.password else []
        subprocess.run(["skopeo", "--policy", str(policy), "copy", "-q", "--preserve-digests", "--dest-tls-verify=false", *creds,
                        "oci:%s:%s" % (layout.path, tag), "docker://%s/%s" % (self.host, name)], check=True,
                       stdout=subprocess.DEVNULL, timeout=HANG)
        return "%s/%s" % (self.host, name)

    def stored(self, digest):
        return self.data / "docker/registry/v2/blobs/sha256" / digest[7:9] / digest[7:] / "data"

    def authfile(self, user=USER, password=PASSWORD):
        path = self.dir / ("auth-%s.json" % password)
        auth = base64.b64encode(("%s:%s" % (user, password)).encode()).decode()
        path.write_text(json.dumps({"auths": {self.host: {"auth": auth}}}))
        return path

    def close(self):
        self.process.terminate()
        self.process.wait()


class Misbehaving:
    """Serves a layout under /v2/x/. Attributes choose how it misbehaves; `requests` has its requests."""

    def __init__(self, layout, ssl_context=None):
        self.layout = layout
        self.requests = []
        self.token = None          # a Bearer token that it wants, and gives at /token
        self.redirect = None       # base address that blobs are redirected to
        self.cut = {}              # digest -> list of bytes after which an answer is cut, one per answer
        self.stall = {}            # digest -> bytes after which nothing more comes
        self.errors = []           # status codes to answer with first
        self.retry_after = None
        self.ranges = True
        self.manifest = None       # (bytes, type) instead of the layout's
        self.swap = {}             # digest -> other bytes
        self.go = threading.Event()  # answers of blobs wait for it
        self.go.set()
        self.ended = threading.Event()
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self):
                outer.requests.append((self.path, dict(self.headers)))
                try:
                    outer.answer(self)
                except (BrokenPipeError, ConnectionResetError):
                    pass

            def log_message(self, *args):
                pass

        class Server(http.server.ThreadingHTTPServer):
            daemon_threads = True

            def handle_error(self, request, client_address):
                pass

        self.server = Server(("127.0.0.1", 0), Handler)
        if ssl_context:
            self.server.socket = ssl_context.wrap_socket(self.server.socket, server_side=True)
        self.host = "127.0.0.1:%d" % self.server.server_address[1]
        self.ref = self.host + "/x:latest"
        threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True).start()

    def asked(self, part):
        return [headers for path, headers in self.requests if part in path]

    def reply(self, h, status, body=b"", **headers):
        h.send_response(status)
        for k, v in headers.items():
            h.send_header(k.replace("_", "-"), v)
        h.send_header("Content-Length", str(len(body)))
        h.end_headers()
        h.wfile.write(body)

    def answer(self, h):
        path = urllib.parse.urlparse(h.path).path
        if path == "/token":
            return self.reply(h, 200, json.dumps({"token": self.token}).encode())
        if self.token and h.headers.get("Authorization") != "Bearer " + self.token:
            return self.reply(h, 401, WWW_Authenticate='Bearer realm="http://%s/token",service="here",scope="repository:x:pull"' % self.host)
        if self.errors and "/blobs/" in path:
            extra = {"Retry_After": self.retry_after} if self.retry_after else {}
            return self.reply(h, self.errors.pop(0), **extra)
        if "/manifests/" in path:
            return self.manifests(h, path.rpartition("/")[2])
        return self.blobs(h, path.rpartition("/")[2])

    def manifests(self, h, what):
        if self.manifest and not what.startswith("sha256:"):
            return self.reply(h, 200, self.manifest[0], Content_Type=self.manifest[1])
        digest = what if what.startswith("sha256:") else self.layout.manifest["digest"]
        try:
            return self.reply(h, 200, self.layout.blob(digest).read_bytes(), Content_Type=OCI + "manifest.v1+json")
        except OSError:
            return self.reply(h, 404, b'{"errors":[{"code":"MANIFEST_UNKNOWN","message":"manifest unknown"}]}')

    def blobs(self, h, digest):
        if self.redirect:
            return self.reply(h, 307, Location=self.redirect + h.path)
        self.go.wait(HANG)
        data = self.swap.get(digest) or self.layout.blob(digest).read_bytes()
        begin, wish = 0, h.headers.get("Range")
        if wish and self.ranges:
            begin = int(wish.partition("=")[2].rstrip("-"))
        end = len(data)
        cuts = self.cut.get(digest, [])
        if cuts:
            end = min(end, begin + cuts.pop(0))
        stall = digest in self.stall
        if stall:
            end = self.stall.pop(digest)
        h.send_response(206 if begin else 200)
        if begin:
            h.send_header("Content-Range", "bytes %d-%d/%d" % (begin, len(data) - 1, len(data)))
        h.send_header("Content-Length", str(len(data) - begin))
        h.end_headers()
        h.wfile.write(data[begin:end])
        h.wfile.flush()
        if stall:
            self.ended.wait(HANG)
        if end < len(data):
            h.close_connection = True
            h.connection.shutdown(socket.SHUT_RDWR)

    def close(self):
        self.ended.set()
        self.go.set()
        self.server.shutdown()
        self.server.server_close()


# ---- looking -----------------------------------------------------------------------------------------------

def image(*args, store, **kw):
    return run("image", args[0], "--store", store, *args[1:], **kw)


def images(store):
    return json.loads(image("ls", "--json", store=store).out)


def inspect(store, ref):
    return json.loads(image("inspect", ref, store=store).out)


def layer_dirs(store, ref):
    """The layers of an image, the lowest first."""
    return [Path(store) / "layers" / layer["diff_id"][7:] for layer in inspect(store, ref)["layers"]]


def layers_in(store):
    return sorted(p for p in (Path(store) / "layers").iterdir() if p.is_dir())


def in_tmp(store):
    return sorted(p.name for p in (Path(store) / "tmp").iterdir())


def nothing_in(store):
    """No image, no layer, no blob, nothing that was begun."""
    store = Path(store)
    refs = store / "refs"
    return not any(any((store / d).iterdir()) for d in ("layers", "blobs/sha256", "leases", "tmp")) and not (refs.exists() and refs.read_bytes())


def merged(store, ref, base=ID_BASE):
    """The view of a cell: the layers as an overlay, dumped."""
    lower = ":".join(str(d) for d in reversed(layer_dirs(store, ref)))
    # A single lower layer makes no overlay: an empty one below makes two.
    out = subprocess.run(["unshare", "-m", "sh", "-ec",
                          'e=$(mktemp -d); mount -t overlay overlay -o "ro,userxattr,lowerdir=$1:$e" /mnt; "$2" "$3" /mnt "$4"; rmdir "$e"',
                          "sh", lower, sys.executable, tree_dump.__file__, str(base)], stdout=subprocess.PIPE, check=True)
    return json.loads(out.stdout)


def unpacked_by_umoci(layout, tag, to):
    subprocess.run(["umoci", "unpack", "--image", "%s:%s" % (layout.path, tag), str(to)], check=True,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return tree_dump.dump(os.path.join(to, "rootfs"))
