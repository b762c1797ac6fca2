# SPDX-License-Identifier: Apache-2.0
"""test_packages_index.py - The default index of packages, its address, and the processes that know its credentials.

The indexes are on loopback, and no daemon here has --egress-private: only an index is exempt from the rule for private addresses.
"""
import base64
import contextlib
import hashlib
import json
import os
import signal
import subprocess

import pytest

from box_lib import Box
from egress_lib import Resolver, Web, certificate
from mcp_lib import Modern
from package_lib import install, pages, registry, tarball, wheel
from process import BIN, wait_until
from serve_lib import Daemon, clean_env

HOST, OTHER, FILES = "index.test", "other.test", "files.other.test"
USER, PASSWORD, TOKEN = "buyer", "pa:ss@wo/rd", "npm_0123456789abcdefghijklmnopqrstuv"
BASIC = "Basic " + base64.b64encode(("%s:%s" % (USER, PASSWORD)).encode()).decode()
QUOTED = "%s:%s" % (USER, PASSWORD.replace(":", "%3A").replace("@", "%40").replace("/", "%2F"))
# The configuration of the machine that runs the tests, and variables that hide its files from the daemon.
CLEAN = {**{k: None for k in os.environ if k.upper().startswith(("PIP_", "NPM_CONFIG_"))}, "CAISSON_PIP_INDEX": None, "CAISSON_NPM_REGISTRY": None}


class World:
    """The same packages on a plain server, and on one with TLS that requires credentials; a resolver that leads to both."""

    def __init__(self, where):
        files = where / "files"
        files.mkdir()
        for name in ("alpha", "beta", "gamma", "delta"):
            wheel(files, name)
        pages(files)
        self.cert = certificate(where, HOST, "127.0.0.1", "localhost")
        self.plain = Web(directory=files)
        for name, host in (("far", FILES), ("bare", "127.0.0.1")):  # the index keeps these on another server
            digest = hashlib.sha256(wheel(files, name).read_bytes()).hexdigest()
            (files / "simple" / name).mkdir()
            (files / "simple" / name / "index.html").write_text(
                '<a href="http://%s:%d/%s-1.0-py3-none-any.whl#sha256=%s">%s-1.0-py3-none-any.whl</a>\n' % (host, self.plain.port, name, digest, name))
        self.secret = Web(directory=files, tls=self.cert, auth=(BASIC, "Bearer " + TOKEN))
        tarball(files / "npm", "grown")
        registry(files / "npm", "https://%s:%d/npm" % (HOST, self.secret.port))
        self.dns = Resolver({HOST: ["127.0.0.1"], OTHER: ["127.0.0.1"], FILES: ["127.0.0.1"]})
        self.home = where / "home"
        self.home.mkdir()

    def close(self):
        for server in (self.plain, self.secret, self.dns):
            server.close()


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    w = World(tmp_path_factory.mktemp("world"))
    yield w
    w.close()


@contextlib.contextmanager
def serve(where, world, *flags, **env):
    env = {**CLEAN, "HOME": str(world.home), "PIP_CONFIG_FILE": "/dev/null", "NPM_CONFIG_GLOBALCONFIG": "/dev/null", **env}
    with Daemon(where, "--pool", "1", "--egress-dns", world.dns.address, "--egress-ca", world.cert[0], *flags, env=env) as d:
        yield d


def config(where, *lines):
    """A configuration file that pip would read."""
    path = where / "pip.conf"
    path.write_text("[global]\n" + "".join(line + "\n" for line in lines))
    return str(path)


def test_public_ones_where_nothing_is_configured(tmp_path, world):
    with serve(tmp_path, world) as d:
        assert d.health()["packages"] == {"python": {"index": "https://pypi.org/simple", "from": "the public index"},
                                          "javascript": {"index": "https://registry.npmjs.org", "from": "the public registry"}}
        assert {"pip_install", "install_package"} <= set(Modern(d).tools())


def test_index_of_the_machines_pip(tmp_path, world):
    """Its configuration names a mirror at a private address: only the fetcher of packages reaches that host and port."""
    url = "http://%s:%d/simple" % (HOST, world.plain.port)
    conf = config(tmp_path, "index-url =", "    " + url, "trusted-host = " + HOST, "extra-index-url = https://extra.test/simple")
    with serve(tmp_path, world, PIP_CONFIG_FILE=conf) as d:
        about = d.health()["packages"]
        assert (about["python"]["index"], about["python"]["from"]) == (url, conf) and "extra-index-url" in about["python"]["note"], about
        assert about["javascript"]["index"] == "https://registry.npmjs.org"
        said = [json.loads(line) for line in d.log_text().splitlines()]
        assert [e["from"] for e in said if e["event"] == "package_index" and e["index"] == url] == [conf]
        r = install(d, "alpha", session_id="s")
        assert r.status == 200 and r.json["packages"][0]["name"] == "alpha", r
        # An ordinary sandbox that may reach the same name is refused there, as everywhere on this network.
        with Box(d, egress=["%s:%d" % (HOST, world.plain.port)]) as box:
            r = box.shell("curl -sS -m 5 %s/alpha/" % url)
            assert "egress to %s" % HOST in r["stdout"] and "loopback address" in r["stdout"] and "alpha-1.0" not in r["stdout"], r
    doctor = subprocess.run([BIN, "doctor"], env=clean_env(**CLEAN | {"PIP_CONFIG_FILE": conf}), capture_output=True, text=True, timeout=60)
    assert "%s (%s)" % (url, conf) in doctor.stdout, doctor.stdout


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_index_without_a_name(tmp_path, world, host):
    """pip accepts plain HTTP from this machine; the index has no name, and the fetcher's cell reaches it anyway."""
    url = "http://%s:%d/simple" % (host, world.plain.port)
    with serve(tmp_path, world, PIP_INDEX_URL=url) as d:
        assert d.health()["packages"]["python"] == {"index": url, "from": "PIP_INDEX_URL"}
        r = install(d, "beta", session_id="s")
        assert r.status == 200, r
        assert d.post("/execute", {"code": "import beta; print(beta.VERSION)", "session_id": "s"}).json["stdout"] == "1.0\n"


def test_files_of_the_index_at_another_host(tmp_path, world):
    """The error names the host, and the option that helps; with it, the host may be at a private address as well."""
    url = "http://%s:%d/simple" % (HOST, world.plain.port)
    with serve(tmp_path, world, "--pip-index", url) as d:
        for name, words in (("far", FILES + ", a host that the fetcher may not reach"), ("bare", "leads to 127.0.0.1")):
            r = install(d, name, session_id="s")
            assert (r.status, r.error["code"]) == (502, "index_unavailable"), r
            assert words in r.error["message"] and "--package-host" in r.error["hint"], r
    with serve(tmp_path, world, "--pip-index", url, "--package-host", "%s:%d" % (FILES, world.plain.port)) as d:
        assert install(d, "far", session_id="s").status == 200


@pytest.mark.parametrize("host,names", [(HOST, 1), ("127.0.0.1", 0)])
def test_credentials_are_the_gates(tmp_path, world, host, names):
    """The index gets them; no process of the daemon has them in its arguments or environment, and the front not in its memory."""
    url = "https://%s:%d/simple" % (host, world.secret.port)
    secret = url.replace("://", "://%s@" % QUOTED)
    before = len(world.secret.heads)
    with serve(tmp_path, world, "--pip-index", secret, PIP_EXTRA_INDEX_URL=secret) as d:
        assert d.health()["packages"]["python"] == {"index": url, "from": "--pip-index"}
        r = install(d, "gamma", session_id="s")
        assert r.status == 200, r
        assert proved(world.secret.heads[before:]) == {BASIC}
        for pid in d.processes():
            for name in ("cmdline", "environ"):
                with contextlib.suppress(OSError), open("/proc/%d/%s" % (pid, name), "rb") as f:
                    text = f.read()
                    assert QUOTED.encode() not in text and PASSWORD.encode() not in text, (pid, name)
        assert in_memory(d.pid, "index.test" if names else "caisson.internal") > 0, "void: the search does not find credentials that are there"
        assert in_memory(d.pid, PASSWORD) + in_memory(d.pid, QUOTED) == 0
        text = d.log_text() + (d.state / "ledger/ledger.jsonl").read_text()
        assert PASSWORD not in text and QUOTED not in text
        # Only a fetcher can have them bound, whatever hosts a sandbox may reach.
        r = d.post("/v1/sandboxes", {"name": "thief", "egress": ["%s:%d" % (HOST, world.secret.port)], "secrets": ["CAISSON_PIP_PASSWORD@" + HOST]})
        assert (r.status, r.error["code"]) == (422, "unknown_secret"), r
        if names:  # the next front does not have them either, and the next gate does
            old = d.pid
            os.kill(old, signal.SIGKILL)
            assert wait_until(lambda: d.find_front() not in (None, old)) and d.wait_ready()
            assert install(d, "delta", session_id="s").status == 200


def proved(heads):
    """The credentials of the requests."""
    return {value for _, head in heads for name, value in head.items() if name.lower() == "authorization"}


def in_memory(pid, text):
    hits = 0
    with open("/proc/%d/maps" % pid) as maps, open("/proc/%d/mem" % pid, "rb") as mem:
        for line in maps:
            begin, end = (int(x, 16) for x in line.split()[0].split("-"))
            if "r" in line.split()[1] and "[v" not in line:
                with contextlib.suppress(OSError, ValueError):
                    mem.seek(begin)
                    hits += mem.read(end - begin).count(text.encode())
    return hits


@pytest.mark.slow
@pytest.mark.parametrize("line,sent", [
    (":_authToken=${NPM_CANARY}", "Bearer " + TOKEN),
    (":_auth=" + BASIC.split()[1], BASIC),
    (":username=%s\n%%s:_password=%s" % (USER, base64.b64encode(PASSWORD.encode()).decode()), BASIC)], ids=["token", "basic", "password"])
def test_credentials_of_npm(tmp_path, world, line, sent):
    """As in a .npmrc; the variable that contained the token is removed."""
    place = "//%s:%d/npm/" % (HOST, world.secret.port)
    rc = tmp_path / "npmrc"
    rc.write_text("registry=https:%s\n%s%s\n" % (place, place, line % place if "%s" in line else line))
    before = len(world.secret.heads)
    with serve(tmp_path, world, NPM_CONFIG_USERCONFIG=str(rc), NPM_CANARY=TOKEN) as d:
        assert d.health()["packages"]["javascript"] == {"index": "https:" + place, "from": str(rc)}
        with Box(d) as box:
            r = box.post("/packages", {"packages": ["grown"], "language": "javascript"})
            assert r.status == 200, r
        assert proved(world.secret.heads[before:]) == {sent}
        assert "_authToken" not in line or TOKEN.encode() not in open("/proc/%d/environ" % d.pid, "rb").read()


def fails(where, *flags, **env):
    d = Daemon(where, *flags, wait=False, env={**CLEAN, **env})
    try:
        assert d.p.wait(30) == 125, d.log_text()
    finally:
        d.kill()
    return d.log_text()


def test_credentials_need_encryption(tmp_path, world):
    """An option with credentials and plain HTTP stops the start; a configuration of the machine leaves packages off, with the reason."""
    url = "http://%s@%s/simple" % (QUOTED, HOST)
    said = fails(tmp_path, "--pip-index", url)
    assert "--pip-index" in said and "not encrypted" in said and "use https" in said and USER not in said, said
    said = fails(tmp_path, CAISSON_NPM_REGISTRY=url)
    assert "CAISSON_NPM_REGISTRY" in said and "not encrypted" in said and USER not in said, said
    assert "not the address of an index" in fails(tmp_path, "--pip-index", "pypi.org")
    assert "as in https://pypi.org/simple; without it, the index of this machine's pip is used" in fails(tmp_path, "--pip-index", "pypi")
    assert "as in https://registry.npmjs.org; without it, the index of this machine's npm is used" in fails(tmp_path, "--npm-registry", "npm")
    with serve(tmp_path, world, PIP_INDEX_URL=url) as d:
        r = install(d, "alpha")
        assert (r.status, r.error["code"]) == (501, "not_configured"), r
        assert "PIP_INDEX_URL" in r.error["message"] and "not encrypted" in r.error["message"] and USER not in r.error["message"], r
        assert d.health()["packages"]["python"]["index"] == "none"


def test_off(tmp_path, world):
    """By `none`; and where pip itself would refuse: plain HTTP of a host that is not trusted, or no index at all."""
    with serve(tmp_path, world, "--pip-index", "none", "--npm-registry", "none") as d:
        r = install(d, "alpha")
        assert (r.status, r.error["code"]) == (501, "not_configured") and "--pip-index" in r.error["hint"], r
        with Box(d) as box:
            r = box.post("/packages", {"packages": ["grown"], "language": "javascript"})
            assert (r.status, r.error["code"]) == (501, "not_configured") and "--npm-registry" in r.error["hint"], r
    for variables, words in (({"PIP_INDEX_URL": "http://%s/simple" % HOST}, "trusted-host"), ({"PIP_NO_INDEX": "1"}, "no-index")):
        with serve(tmp_path, world, "--npm-registry", "none", **variables) as d:
            r = install(d, "alpha")
            assert r.status == 501 and words in r.error["message"], r
