# SPDX-License-Identifier: Apache-2.0
"""bucket_lib.py - S3 servers for the tests, and requests to caisson-bucket as the front sends them.

The server is a third-party one: MinIO, or s3rver, as `make s3-fetch` brought it to BUILD/s3. The tests look at objects with a client of
their own, which signs with the standard library, so that the code under test does not judge itself.
"""
import datetime
import hashlib
import hmac
import http.server
import io
import os
import socket
import ssl
import struct
import subprocess
import tarfile
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
import xml.etree.ElementTree as ET
from pathlib import Path

from process import BIN, children, free_port, wait_until

S3_DIR = Path(os.environ.get("CAISSON_S3", BIN.parent / "s3"))
ACCESS, SECRET, REGION = "caisson-test", "caisson-test-secret", "us-east-1"


def why_not():
    """None, or the reason why there is no server here."""
    if minio() or s3rver():
        return None
    return "no S3 server in %s: make s3-fetch brings one" % S3_DIR


def minio():
    p = S3_DIR / "minio"
    return p if p.exists() else None


def s3rver():
    p = S3_DIR / "node_modules" / "s3rver" / "bin" / "s3rver.js"
    return p if p.exists() else None


class Server:
    """An S3 server on loopback; its data survives stop() and start()."""

    def __init__(self, directory):
        self.data = Path(directory)
        self.data.mkdir(parents=True, exist_ok=True)
        self.port = free_port()
        self.url = "http://127.0.0.1:%d" % self.port
        self.is_minio = bool(minio())
        self.process = None
        self.start()

    def command(self):
        if self.is_minio:
            return [str(minio()), "server", "--quiet", "--address", "127.0.0.1:%d" % self.port, "--console-address", "127.0.0.1:%d" % free_port(), str(self.data)]
        return ["node", str(s3rver()), "-d", str(self.data), "-a", "127.0.0.1", "-p", str(self.port), "--silent"]

    def keys(self):
        return (ACCESS, SECRET) if self.is_minio else ("S3RVER", "S3RVER")

    def start(self):
        env = dict(os.environ, MINIO_ROOT_USER=ACCESS, MINIO_ROOT_PASSWORD=SECRET, MINIO_BROWSER="off", GOMEMLIMIT="300MiB")
        with open(self.data.parent / "server.log", "ab") as log:
            self.process = subprocess.Popen(self.command(), env=env, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            try:
                self.ask("GET", "/")
                return
            except (OSError, urllib.error.URLError):
                assert self.process.poll() is None, "the S3 server ended"
                time.sleep(0.1)
        raise AssertionError("the S3 server does not answer")

    def stop(self):
        if self.process:
            self.process.kill()
            self.process.wait()
            self.process = None

    # ---- an independent client ----

    def ask(self, method, path, query="", body=b"", ok=True):
        """(status, headers, body) of a signed request."""
        access, secret = self.keys()
        now = datetime.datetime.now(datetime.timezone.utc)
        stamp, date = now.strftime("%Y%m%dT%H%M%SZ"), now.strftime("%Y%m%d")
        sha = hashlib.sha256(body).hexdigest()
        host = "127.0.0.1:%d" % self.port
        path = urllib.parse.quote(path, safe="/-._~")
        canonical = "\n".join([method, path, query, "host:" + host, "x-amz-content-sha256:" + sha, "x-amz-date:" + stamp, "", "host;x-amz-content-sha256;x-amz-date", sha])
        scope = "%s/%s/s3/aws4_request" % (date, REGION)
        text = "\n".join(["AWS4-HMAC-SHA256", stamp, scope, hashlib.sha256(canonical.encode()).hexdigest()])
        key = b"AWS4" + secret.encode()
        for part in (date, REGION, "s3", "aws4_request"):
            key = hmac.new(key, part.encode(), hashlib.sha256).digest()
        signature = hmac.new(key, text.encode(), hashlib.sha256).hexdigest()
        headers = {"x-amz-date": stamp, "x-amz-content-sha256": sha,
                   "Authorization": "AWS4-HMAC-SHA256 Credential=%s/%s,SignedHeaders=host;x-amz-content-sha256;x-amz-date,Signature=%s" % (access, scope, signature)}
        request = urllib.request.Request(self.url + path + ("?" + query if query else ""), data=body if method in ("PUT", "POST") else None, method=method, headers=headers)
        try:
            with urllib.request.urlopen(request, timeout=60) as r:
                return r.status, dict(r.headers), r.read()
        except urllib.error.HTTPError as e:
            if ok and e.code not in (403, 404, 409):
                raise
            return e.code, dict(e.headers), e.read()

    def make(self, bucket):
        status, _, body = self.ask("PUT", "/" + bucket)
        assert status in (200, 409), body

    def put(self, bucket, key, data):
        status, _, body = self.ask("PUT", "/%s/%s" % (bucket, key), body=data)
        assert status == 200, body

    def get(self, bucket, key):
        status, _, body = self.ask("GET", "/%s/%s" % (bucket, key))
        return body if status == 200 else None

    def delete(self, bucket, key):
        self.ask("DELETE", "/%s/%s" % (bucket, key))

    def keys_of(self, bucket, prefix=""):
        status, _, body = self.ask("GET", "/" + bucket, query="list-type=2&prefix=" + urllib.parse.quote(prefix, safe="-._~"))
        assert status == 200, body
        return sorted(e.text for e in ET.fromstring(body).iter() if e.tag.endswith("}Key") or e.tag == "Key")

    def uploads(self, bucket):
        """Multipart uploads that were begun and not completed."""
        _, _, body = self.ask("GET", "/" + bucket, query="uploads=")
        return body.count(b"<Upload>")


def certificate(where, name):
    """(certificate, key): files; for localhost."""
    cert, key = where / (name + ".pem"), where / (name + ".key")
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout", key, "-out", cert, "-days", "2",
                    "-subj", "/CN=" + name, "-addext", "subjectAltName=DNS:localhost"], check=True, capture_output=True)
    return cert, key


class TlsRelay:
    """TLS in front of a server without it; bytes are passed on unchanged."""

    def __init__(self, cert, port):
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.load_cert_chain(*cert)
        self.upstream = port
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.run, daemon=True).start()

    def run(self):
        while True:
            try:
                plain, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self.serve, args=(plain,), daemon=True).start()

    def serve(self, plain):
        try:
            with self.context.wrap_socket(plain, server_side=True) as client, socket.create_connection(("127.0.0.1", self.upstream)) as server:
                threading.Thread(target=self.pump, args=(server, client), daemon=True).start()
                self.pump(client, server)
        except OSError:
            plain.close()

    @staticmethod
    def pump(source, sink):
        try:
            while data := source.recv(65536):
                sink.sendall(data)
            sink.shutdown(socket.SHUT_WR)
        except OSError:
            pass

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.listener.close()


class OddServer:
    """An S3 server that gives the answers that a test prepared for its one bucket, and counts requests."""

    def __init__(self, objects=(), listing=None, behave=None, put=None):
        odd = self
        self.asked = []

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def do_GET(self):
                odd.asked.append((self.path, dict(self.headers)))
                if "list-type=2" in self.path:
                    return self.say(200, listing or odd.list(objects))
                return (behave or odd.give)(self, dict(objects))

            def do_PUT(self):
                put(self)

            def say(self, status, body, headers=(), length=None):
                self.send_response(status)
                self.send_header("Content-Length", str(len(body) if length is None else length))
                for h in headers:
                    self.send_header(*h)
                self.end_headers()
                self.wfile.write(body)
                if length is not None and length != len(body):
                    self.close_connection = True

        self.http = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = "http://127.0.0.1:%d" % self.http.server_port
        threading.Thread(target=self.http.serve_forever, daemon=True).start()

    @staticmethod
    def list(objects):
        items = "".join("<Contents><Key>%s</Key><Size>%d</Size><ETag>&quot;e-%d&quot;</ETag></Contents>" % (urllib.parse.quote(k, safe=""), len(d), len(d)) for k, d in objects)
        return ("<ListBucketResult><IsTruncated>false</IsTruncated>%s</ListBucketResult>" % items).encode()

    @staticmethod
    def give(handler, objects):
        handler.say(200, objects[urllib.parse.unquote(handler.path.split("/", 2)[2])])

    def keys(self):
        return "access", "secret"

    def close(self):
        self.http.shutdown()
        self.http.server_close()


# ---- caisson-bucket, with requests as the front sends them ----------------------------------------------------------------

PUT, LOOK, PULL, KEEP, PUSH, FORGET = range(1, 7)
REQUEST = struct.Struct("=4I3Q65s33s1025s128s5x")
REPLY = struct.Struct("=IIiI4Q3000s480s")
READY, MOVED, DONE = 1, 2, 3
WORK = "0123456789abcdef" * 2


class Reply:
    def __init__(self, raw):
        self.version, self.say, self.code, self.changed, self.bytes, self.total_bytes, self.files, self.total_files, link, msg = REPLY.unpack(raw)
        self.link, self.msg = (t.split(b"\0")[0].decode() for t in (link, msg))


class Job:
    """One request; answers arrive on a pipe."""

    def __init__(self, bucket, op, *fds, place="", key="", work=WORK, size=0, max_bytes=0, max_files=0, expires=0, kind=""):
        self.answers, theirs = os.pipe()
        self.moved = []
        request = REQUEST.pack(1, op, expires, 0, size, max_bytes, max_files, place.encode(), work.encode(), key.encode(), kind.encode())
        socket.send_fds(bucket.socket, [request], [theirs, *fds])
        for fd in (theirs, *fds):
            os.close(fd)

    def read(self):
        raw = b""
        while len(raw) < REPLY.size:
            part = os.read(self.answers, REPLY.size - len(raw))
            if not part:
                return None
            raw += part
        return Reply(raw)

    def wait(self):
        """The last answer; None if the job died."""
        while True:
            r = self.read()
            if not r or r.say == DONE:
                os.close(self.answers)
                return r
            self.moved.append(r)


class Bucket:
    def __init__(self, server, directory, *words, endpoint=None, keys=None):
        access, secret = keys or server.keys()
        self.socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        directory.mkdir(exist_ok=True)
        secrets, self.stderr = os.memfd_create("keys"), b""
        os.write(secrets, b"aws_access_key_id=%s\naws_secret_access_key=%s\n" % (access.encode(), secret.encode()))
        holder = os.open(directory, os.O_RDONLY)
        # Numbers that wire/bucket.h names, by a shell that executes it.
        script = 'exec "$0" --endpoint=%s --keys=5 "$@" 3<&%d 4<&%d 5<&%d' % (endpoint or server.url, theirs.fileno(), holder, secrets)
        self.process = subprocess.Popen(["bash", "-c", script, str(BIN.parent / "caisson-bucket"), *words], stderr=subprocess.PIPE, pass_fds=(theirs.fileno(), holder, secrets))
        theirs.close()
        os.close(holder)
        os.close(secrets)
        raw = self.socket.recv(REPLY.size)
        assert raw, self.process.stderr.read().decode()
        assert Reply(raw).say == READY

    def put(self, data, **how):
        """Put bytes as the artifact `key`."""
        read, write = os.pipe()
        job = Job(self, PUT, read, place="box", size=how.pop("size", len(data)), **how)
        feed(write, data)
        return job.wait()

    def pull(self, place="box", **how):
        """(last answer, tar as bytes). Both are read at once: a slow pull could fill the pipe of the answers and then wait for it."""
        read, write = os.pipe()
        job = Job(self, PULL, write, place=place, **how)
        tar = []

        def take():
            with os.fdopen(read, "rb") as f:
                tar.append(f.read())

        taker = threading.Thread(target=take)
        taker.start()
        last = job.wait()
        taker.join()
        return last, tar[0]

    def keep(self, place="box"):
        r = Job(self, KEEP, place=place).wait()
        assert r.code == 0, r.msg

    def look(self, place="box"):
        return Job(self, LOOK, place=place).wait()

    def push(self, tar, place="box"):
        (first, one), (second, two) = os.pipe(), os.pipe()
        job = Job(self, PUSH, first, second, place=place)
        feed(one, tar)
        feed(two, tar)
        return job.wait()

    @property
    def worker(self):
        """The worker: the process that was started only makes it."""
        return wait_until(lambda: next(iter(children(self.process.pid)), None))

    def close(self):
        self.socket.close()
        assert self.process.wait(20) == 0, self.process.stderr.read()
        self.process.stderr.close()


def feed(fd, data):
    """Write from a thread: the job may end before it has read everything."""
    def run():
        try:
            with os.fdopen(fd, "wb") as f:
                for part in data if not isinstance(data, bytes) else [data]:
                    f.write(part)
        except BrokenPipeError:
            pass
    threading.Thread(target=run, daemon=True).start()


def tar_of(files):
    """{path: bytes, or None for a directory, or ("link", target)}"""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as t:
        for path, data in files.items():
            info = tarfile.TarInfo(path)
            if data is None:
                info.type = tarfile.DIRTYPE
            elif isinstance(data, tuple):
                info.type, info.linkname = tarfile.SYMTYPE, data[1]
            else:
                info.size = len(data)
            t.addfile(info, io.BytesIO(data) if isinstance(data, bytes) else None)
    return out.getvalue()


def files_of(tar):
    """The content of an archive: {path: bytes, None for a directory}."""
    with tarfile.open(fileobj=io.BytesIO(tar)) as t:
        return {m.name: None if m.isdir() else t.extractfile(m).read() for m in t}
