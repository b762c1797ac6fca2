# SPDX-License-Identifier: Apache-2.0
"""package_lib.py - Wheels and sdists made by hand, and an index of them on loopback.

An sdist brings its own build backend, so that building it needs nothing from an index: the test writes the text of the
backend.
"""
import base64
import contextlib
import hashlib
import io
import json
import re
import tarfile
import textwrap
import threading
import time
import zipfile

from egress_lib import Resolver, Web, certificate
from process import children, name_of, wait_until
from serve_lib import Daemon

INDEX = "index.test"


def wheel(where, name, version="1.0", files=None, requires=(), raw=None):
    """A wheel with these files (name -> text); without files, one module that prints its version. raw: keep the names as they are,
    also if a wheel may not have them."""
    stem = re.sub("[-.]+", "_", name)
    info = "%s-%s.dist-info/" % (stem, version)
    files = files if files is not None else {stem + ".py": "VERSION = %r\n" % version}
    path = where / ("%s-%s-py3-none-any.whl" % (stem, version))
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as z:
        for f, text in {**files, **(raw or {})}.items():
            z.writestr(f, text)
        z.writestr(info + "METADATA", "Metadata-Version: 2.1\nName: %s\nVersion: %s\n%s" % (
            name, version, "".join("Requires-Dist: %s\n" % r for r in requires)))
        z.writestr(info + "WHEEL", "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        record = "".join("%s,,\n" % f for f in [*files, *(raw or {}), info + "METADATA", info + "WHEEL", info + "RECORD"])
        z.writestr(info + "RECORD", record)
    return path


BACKEND = '''
import os, zipfile
def build_wheel(directory, config_settings=None, metadata_directory=None):
    said = ""
{body}
    name = "{stem}-{version}-py3-none-any.whl"
    info = "{stem}-{version}.dist-info/"
    with zipfile.ZipFile(os.path.join(directory, name), "w") as z:
        z.writestr("{stem}.py", "SAID = %r\\n" % said)
        z.writestr(info + "METADATA", "Metadata-Version: 2.1\\nName: {name}\\nVersion: {version}\\n")
        z.writestr(info + "WHEEL", "Wheel-Version: 1.0\\nGenerator: t\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")
        z.writestr(info + "RECORD", "")
    return name
'''


def sdist(where, name, body="pass", version="1.0"):
    """A package that must be built, by running `body`; the built module has the value that `body` leaves in `said` as SAID."""
    stem = re.sub("[-.]+", "_", name)
    texts = {"pyproject.toml": '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n',
             "PKG-INFO": "Metadata-Version: 2.1\nName: %s\nVersion: %s\n" % (name, version),
             "backend.py": BACKEND.format(body=textwrap.indent(textwrap.dedent(body), "    "), stem=stem, version=version,
                                          name=name)}
    path = where / ("%s-%s.tar.gz" % (stem, version))
    with tarfile.open(path, "w:gz") as t:
        for f, text in texts.items():
            entry = tarfile.TarInfo("%s-%s/%s" % (stem, version, f))
            entry.size = len(text.encode())
            entry.mtime = int(time.time())
            t.addfile(entry, io.BytesIO(text.encode()))
    return path


def pages(where):
    """The pages of an index (PEP 503) of the files in `where`."""
    projects = {}
    for f in sorted(where.iterdir()):
        if f.is_file():
            projects.setdefault(re.split(r"-\d", f.name)[0].replace("_", "-").lower(), []).append(f)
    for name, files in projects.items():
        d = where / "simple" / name
        d.mkdir(parents=True, exist_ok=True)
        (d / "index.html").write_text("".join('<a href="../../%s#sha256=%s">%s</a>\n' % (
            f.name, hashlib.sha256(f.read_bytes()).hexdigest(), f.name) for f in files))


class Hold:
    """Requests with this text in their path wait, from the nth on, until release()."""

    def __init__(self, text, nth):
        self.text, self.left = text, nth
        self.reached, self.free = threading.Event(), threading.Event()

    def meet(self, path):
        if self.text not in path:
            return
        self.left -= 1
        if self.left <= 0:
            self.reached.set()
            self.free.wait(120)

    def wait(self):
        assert self.reached.wait(60), "no request for %s" % self.text

    def release(self):
        self.free.set()


class Index:
    """The files of a directory as an index, and a daemon that installs from it. Below npm/ it is a registry. user: "name:password",
    which it then requires; then it has TLS. tls: (certificate, key), without credentials. how: for the daemon."""

    def __init__(self, where, files, *flags, user=None, tls=None, **how):
        self.files, self.dns, self.holds = files, Resolver({INDEX: ["127.0.0.1"]}), []
        tls = certificate(where, INDEX) if user else tls
        self.web = Web(directory=files, before=self.meet, tls=tls, auth=("Basic " + base64.b64encode(user.encode()).decode(),) if user else None)
        self.url = "%s://%s:%d" % ("https" if tls else "http", INDEX, self.web.port)
        if user:
            flags = ("--egress-ca", tls[0], *flags)
        pages(files)
        if (files / "npm").exists():
            registry(files / "npm", self.url + "/npm")
            flags = ("--npm-registry", self.url + "/npm", *flags)
        self.daemon = Daemon(where, "--pool", "1", "--pip-index", self.url.replace("://", "://%s@" % user if user else "://") + "/simple",
                             "--egress-dns", self.dns.address, *flags, **how)

    @property
    def asked(self):
        return [path for path, _ in self.web.heads]

    def meet(self, path):
        for hold in list(self.holds):
            hold.meet(path)

    @contextlib.contextmanager
    def hold(self, text, nth=1):
        hold = Hold(text, nth)
        self.holds.append(hold)
        try:
            yield hold
        finally:
            hold.release()
            self.holds.remove(hold)

    def close(self):
        self.daemon.stop()
        self.web.close()
        self.dns.close()


def tarball(where, name, version="1.0.0", files=None, **manifest):
    """A package of npm, for registry()."""
    where.mkdir(exist_ok=True)
    texts = {"package.json": json.dumps({"name": name, "version": version, "main": "index.js", **manifest}),
             "index.js": "module.exports = %s\n" % json.dumps(version), **(files or {})}
    path = where / ("%s-%s.tgz" % (name, version))
    with tarfile.open(path, "w:gz") as t:
        for f, text in texts.items():
            entry = tarfile.TarInfo("package/" + f)
            entry.size, entry.mode = len(text.encode()), 0o755
            t.addfile(entry, io.BytesIO(text.encode()))
    return path


def registry(where, url):
    """The documents of a registry of the tarballs in `where`."""
    for path in sorted(where.glob("*.tgz")):
        with tarfile.open(path) as t:
            manifest = json.loads(t.extractfile("package/package.json").read())
        name, version = manifest["name"], manifest["version"]
        digest = base64.b64encode(hashlib.sha512(path.read_bytes()).digest()).decode()
        manifest["dist"] = {"tarball": "%s/%s" % (url, path.name), "integrity": "sha512-" + digest}
        if "install" in manifest.get("scripts", {}) or "postinstall" in manifest.get("scripts", {}):
            manifest["hasInstallScript"] = True
        about = where / name
        document = json.loads(about.read_text()) if about.exists() else {"name": name, "versions": {}}
        document["versions"][version] = manifest
        document["dist-tags"] = {"latest": version}
        about.write_text(json.dumps(document))


def trees(daemon):
    """The packages that the daemon keeps."""
    return sorted(p.name for p in (daemon.state / "packages").iterdir() if p.name != "tools")


def package_store(daemon):
    """The worker of the package store: the child of the process that the front started."""
    def find():
        first = next((p for p in children(daemon.pid) if name_of(p) == "caisson-package-store"), 0)
        return next((p for p in children(first) if name_of(p) == "caisson-package-store"), None)
    return wait_until(find)


def install(daemon, package, **fields):
    return daemon.post("/pip_install", {"package": package, **fields}, timeout=150)
