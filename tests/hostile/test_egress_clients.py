# SPDX-License-Identifier: Apache-2.0
"""test_egress_clients.py - Third-party programs, through the gate: git, pip, node, curl, and a protocol that is not HTTP.

To names that are allowed they work as they do without a sandbox; to others they fail, at once and saying so. The servers are on this
machine's loopback, which the daemon may reach here because of its options.
"""
import base64
import hashlib
import shutil
import socket
import subprocess
import zipfile

import daemon_lib
import pytest
from daemon_lib import Daemon
from lib import at_most, session
from named import Box

from egress_lib import Resolver, Server, Web, certificate  # noqa: E402

whole_module, hostile_test = daemon_lib.whole_module, daemon_lib.hostile_test
CA = "/workspace/ca.pem"


def needs(program):
    return pytest.mark.skipif(not shutil.which(program, path="/usr/bin"), reason=f"there is no /usr/bin/{program} here")


def greeting(c):
    """The server sends first, as a mail server does."""
    c.sendall(b"220 ready\r\n")
    c.sendall(b"250 " + c.recv(1024))


def make_repository(where):
    """The files that a server of plain files needs, for a clone."""
    bare, work = where / "repo.git", where / "work"
    git = ["git", "-c", "user.name=t", "-c", "user.email=t@example.com"]
    for command in (["init", "-q", "-b", "main", work], ["-C", work, "commit", "-q", "--allow-empty", "-m", "through the gate"],
                    ["clone", "-q", "--bare", work, bare], ["-C", bare, "update-server-info"]):
        subprocess.run([*git, *map(str, command)], check=True, capture_output=True, timeout=30)


def make_index(where):
    """A package of one file, in a wheel, as a simple index has it."""
    name = "gatewheel-1.0-py3-none-any.whl"
    page = where / "simple" / "gatewheel"
    page.mkdir(parents=True)
    files = {"gatewheel.py": b"answer = 42\n", "gatewheel-1.0.dist-info/METADATA": b"Metadata-Version: 2.1\nName: gatewheel\nVersion: 1.0\n",
             "gatewheel-1.0.dist-info/WHEEL": b"Wheel-Version: 1.0\nGenerator: t\nRoot-Is-Purelib: true\nTag: py3-none-any\n"}
    record = "".join("%s,sha256=%s,%d\n" % (n, base64.urlsafe_b64encode(hashlib.sha256(b).digest()).rstrip(b"=").decode(), len(b))
                     for n, b in files.items()) + "gatewheel-1.0.dist-info/RECORD,,\n"
    with zipfile.ZipFile(page / name, "w") as z:
        for n, b in {**files, "gatewheel-1.0.dist-info/RECORD": record.encode()}.items():
            z.writestr(n, b)
    (page / "index.html").write_text(f'<a href="{name}">{name}</a>')


class Outside:
    def __init__(self, where):
        make_repository(where)
        make_index(where)
        self.cert, key = certificate(where, "web.test")
        self.dns = Resolver({"web.test": ["127.0.0.1"]})
        self.tls, self.mail = Web(tls=(self.cert, key), directory=str(where)), Server(greeting)
        self.flags = "--egress-private", "127.0.0.0/8", "--egress-dns", self.dns.address

    def close(self):
        for s in (self.tls, self.mail, self.dns):
            s.close()


@pytest.fixture(scope="module")
def outside():
    where = session().dir / "outside"
    where.mkdir()
    o = Outside(where)
    yield o
    o.close()


@pytest.fixture(scope="module")
def daemon(whole_module, outside):
    with Daemon(*outside.flags, "--timeout", "60s") as d:
        yield d


@pytest.fixture
def box(daemon, outside):
    with Box(daemon, egress=[f"web.test:{outside.tls.port}", f"web.test:{outside.mail.port}"], pids=200) as b:
        r = b.shell(f"cat > {CA}", stdin=outside.cert.read_text())
        assert r["exit_code"] == 0, r
        yield b


def good(r):
    assert r["exit_code"] == 0, r
    return r["stdout"]


@needs("curl")
def test_curl(box, outside):
    url = "https://web.test:%d/simple/gatewheel/" % outside.tls.port
    assert "gatewheel-1.0" in good(box.exec("curl", "-sS", "--cacert", CA, url))
    for url in ("https://other.test/", "http://web.test:81/", "http://127.0.0.1:%d/" % outside.tls.port, "http://10.0.0.1/"):
        r = box.exec("curl", "-sS", "-o", "/dev/null", "-w", "%{time_total}", url)
        assert r["exit_code"] in (6, 7, 52, 56), (url, r)  # no such name, no connection, or one that is reset before a byte
        assert float(r["stdout"]) < at_most(0.1), (url, r)
    assert "other.test" not in outside.dns.asked


@needs("git")
def test_git_clone(box, outside):
    url = "https://web.test:%d/repo.git" % outside.tls.port
    good(box.exec("git", "clone", "-q", url, "there", env={"GIT_SSL_CAINFO": CA}))
    assert good(box.exec("git", "-C", "there", "log", "--format=%s")) == "through the gate\n"
    r = box.exec("git", "clone", "-q", "https://other.test/repo.git", "elsewhere")
    assert r["exit_code"] == 128 and "Could not resolve host" in r["stderr"], r


def test_pip_with_a_local_index(box, outside):
    pip = ["-m", "pip", "install", "-q", "--disable-pip-version-check", "--no-cache-dir", "--retries", "0", "--target", "lib"]
    r = box.exec("/usr/bin/python3", "-m", "pip", "--version")
    if r["exit_code"]:
        pytest.skip("the image has no pip")
    good(box.exec("/usr/bin/python3", *pip, "--cert", CA, "--index-url", "https://web.test:%d/simple/" % outside.tls.port, "gatewheel"))
    assert good(box.exec("/usr/bin/python3", "-c", "import gatewheel; print(gatewheel.answer)", env={"PYTHONPATH": "lib"})) == "42\n"
    r = box.exec("/usr/bin/python3", *pip, "--index-url", "https://other.test/simple/", "gatewheel")
    assert r["exit_code"] == 1 and "egress of this sandbox does not allow other.test" in r["stderr"], r


@needs("node")
def test_node_fetch(box, outside):
    code = """
        const get = url => fetch(url).then(r => r.status, e => e.cause.code);
        const begin = Date.now();
        get("https://other.test/").then(async refused => {
            const ms = Date.now() - begin;
            console.log(await get("https://web.test:%d/simple/gatewheel/"), refused, ms);
        });""" % outside.tls.port
    status, refused, ms = good(box.exec("node", "-e", code, env={"NODE_EXTRA_CA_CERTS": CA})).split()
    assert (status, refused) == ("200", "ENOTFOUND") and int(ms) < at_most(0.5) * 1000  # with the files that node loads for a first fetch


def test_a_protocol_that_is_not_http(box, outside):
    out = good(box.exec("/usr/bin/python3", "-c", """if True:
        import socket
        s = socket.create_connection(("web.test", %d))
        print(s.recv(100)); s.sendall(b"HELO there"); print(s.recv(100))""" % outside.mail.port))
    assert out == "b'220 ready\\r\\n'\nb'250 HELO there'\n"


def test_others_fail_at_once(box, outside):
    """Control: the same addresses answer from out here."""
    socket.create_connection(("127.0.0.1", outside.mail.port)).close()
    out = good(box.exec("/usr/bin/python3", "-c", """if True:
        import socket, time
        for host, port in (("other.test", 80), ("web.test", 81), ("127.0.0.1", %d), ("10.0.0.1", 80), ("8.8.8.8", 53), ("::ffff:10.0.0.1", 80)):
            begin = time.monotonic()
            try:
                s = socket.create_connection((host, port), 20)
                print("reached", host, s.recv(1))  # of the mail server there would be a word
            except OSError:
                print(time.monotonic() - begin)""" % outside.mail.port)).split("\n")[:-1]
    assert len(out) == 6 and all(float(t) < at_most(0.1) for t in out), out
