# SPDX-License-Identifier: Apache-2.0
"""test_hostile_packages.py - Packages that want more than to be imported, and indexes that fail. Packages that
somebody changed in the store are in tests/serve/test_packages_life.py.

Each is a clear error, or what it did stayed in the fetcher's cell; and afterwards there is nothing left of it. All of
it is judged from outside: by what the index and a bystander's server were asked, and by what is in the state directory.
"""
import contextlib
import os
import threading
import time
from pathlib import Path

import pytest
from daemon_lib import deadline_alone

from box_lib import Box  # noqa: E402
from egress_lib import Server  # noqa: E402
from cell_lib import until  # noqa: E402
from lib import at_most, landed  # noqa: E402
from package_lib import INDEX, Index, install, sdist, tarball, trees, wheel  # noqa: E402
from process import status_of  # noqa: E402


hostile_test = deadline_alone(180)

# A build takes the place of pip's report, and of the pip that would install what the report names.
SWOLLEN = """
    import json, sys
    report, home = "/tmp/fetch/report.json", "/tmp/fetch/.local/lib/python%d.%d/site-packages" % sys.version_info[:2]
    os.makedirs(home)
    with open(home + "/swollen.pth", "w") as f:
        f.write("import os; '--require-hashes' in open('/proc/self/cmdline').read() and (open('/tmp/site/swollen.py', 'w').close(), os._exit(0))")
    os.mkfifo(report)
    if os.fork() == 0:
        os.setsid()
        null = os.open("/dev/null", os.O_RDWR)
        for n in range(3):
            os.dup2(null, n)
        with open(report) as f:
            said = json.load(f)
        for i in range(4999):
            said["install"].append({"download_info": {"url": "https://x/p.whl", "archive_info": {"hashes": {"sha256": "0" * 64}}},
                                    "metadata": {"name": "swollen-%d" % i, "version": "1"}})
        with open(report, "w") as f:
            json.dump(said, f)
        os._exit(0)
"""

# A build writes to the channel of the fetcher: a long line, without end.
CHATTY = """
    import glob, time
    for path in glob.glob("/proc/[0-9]*/cmdline"):
        with open(path, "rb") as f:
            if b"Resolve, download and build packages" in f.read():
                fetcher = path.split("/")[2]
    line = b'{"event":"progress","x":[' + b'[],' * (1 << 20) + b'0]}\\n'
    end = time.monotonic() + 50
    with open("/proc/%s/fd/1" % fetcher, "wb", 0) as out:
        while time.monotonic() < end:
            out.write(line)
"""


def cpu(daemon):
    """Seconds of processor time of the front."""
    words = Path("/proc/%d/stat" % daemon.pid).read_text().rsplit(")", 1)[1].split()
    return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")


@pytest.fixture(scope="module")
def shop(tmp_path_factory):
    """One index with all packages, a bystander's server that must not be reached, and the daemon."""
    files = tmp_path_factory.mktemp("files")
    bystander = Server(lambda c: c.recv(1))
    wheel(files, "honest")
    wheel(files, "honest-top", requires=["honest-middle"])
    wheel(files, "honest-middle", requires=["evil"])
    wheel(files, "evil")
    wheel(files, "steered")
    wheel(files, "steered", "2.0")
    wheel(files, "steers", requires=["steered"])
    wheel(files, "absolute", raw={"/tmp/owned": "x"})
    wheel(files, "climber", raw={"../../../../tmp/owned": "x"})
    wheel(files, "bomb", raw={"zeros.bin": "\0" * (200 << 20)})
    wheel(files, "many", raw={"d/%d.py" % i: "" for i in range(30000)})
    wheel(files, "elsewhere", requires=["stranger @ http://bystander.test:%d/stranger-1.0-py3-none-any.whl" % bystander.port])
    sdist(files, "chain", """
        os.makedirs("/tmp/site/chain", exist_ok=True)
        for i in range(20000):
            if not os.path.lexists("/tmp/site/chain/%d" % i):
                os.symlink("%d" % ((i + 1) % 20000), "/tmp/site/chain/%d" % i)
    """)
    sdist(files, "million", """
        os.makedirs("/tmp/site/million", exist_ok=True)
        for i in range(210000):
            os.close(os.open("/tmp/site/million/%d" % i, os.O_CREAT))
    """)
    tarball(files / "npm", "grabber", scripts={"postinstall": "node grab.js"}, files={"index.js": "module.exports = require('fs').readFileSync(__dirname + '/said', 'utf8')", "grab.js": """
        const fs = require('fs'), net = require('net')
        let said = ''
        const attempt = (what, f) => { try { f(); said += what + ' ' } catch (e) {} }
        attempt('packages', () => fs.writeFileSync('/packages/x', ''))
        attempt('usr', () => fs.writeFileSync('/usr/lib/owned', ''))
        const end = (what) => { said += what; fs.writeFileSync('said', said); process.exit(0) }
        const s = net.connect(%d, 'bystander.test', () => end('connected'))
        s.on('error', () => end('ran'))
        s.setTimeout(5000, () => end('ran'))
    """ % bystander.port})
    wheel(files, "shadow", files={"shadow.py": "", "shadow-1.0.data/scripts/ls": "#!/bin/sh\necho owned\n",
                                  "shadow.pth": "import os; os.environ['OWNED'] = '1'\n"})
    sdist(files, "attacker", """
        import socket, subprocess
        def attempt(what, f):
            nonlocal said
            try:
                f()
                said += what + " "
            except Exception as e:
                pass
        attempt("connected", lambda: socket.create_connection(("bystander.test", %d), timeout=5))
        attempt("address", lambda: socket.create_connection(("127.0.0.1", %d), timeout=5))
        attempt("packages", lambda: open("/packages/x", "w"))
        attempt("usr", lambda: open("/usr/lib/python3/owned", "w"))
        attempt("etc", lambda: open("/etc/passwd", "a"))
        said += "ran"
    """ % (bystander.port, bystander.port))
    sdist(files, "pointer-out", """
        os.makedirs("/tmp/site", exist_ok=True)
        if not os.path.lexists("/tmp/site/secret"):
            os.symlink("/etc/passwd", "/tmp/site/secret")
    """)
    sdist(files, "swollen", SWOLLEN)
    sdist(files, "chatty", CHATTY)
    sdist(files, "broken", "raise SystemExit('this compiler is broken')")
    sdist(files, "endless", "import time; time.sleep(600)")
    (files / "truncated-1.0-py3-none-any.whl").write_bytes(b"PK\x03\x04 this is no wheel")
    # No rule on addresses is in the way of the bystander: that it is another host has to be enough.
    shop = Index(tmp_path_factory.mktemp("shop"), files, "--egress-private", "127.0.0.0/8", "--blocked-packages", "evil", "--package-size", "100M",
                 "--package-timeout", "60s", "--package-rate", "1000", "--package-count", "5000", "--npm-scripts")
    shop.dns.zone["bystander.test"] = ["127.0.0.1"]
    shop.bystander = bystander
    yield shop
    shop.close()
    bystander.close()


@contextlib.contextmanager
def nothing_left(shop):
    before = trees(shop.daemon)
    yield
    assert trees(shop.daemon) == before
    assert shop.daemon.health()["sandboxes"]["live"] == 0
    assert not Path("/tmp/owned").exists()


def test_positive_control(shop):
    """An honest package can be installed and used, so that the other tests mean something."""
    r = install(shop.daemon, "honest", session_id="control")
    assert r.status == 200, r
    assert shop.daemon.post("/execute", {"code": "import honest; print(honest.VERSION)", "session_id": "control"}).json["stdout"] == "1.0\n"
    shop.daemon.end_session("control")


@pytest.mark.parametrize("name,status,code,words", [
    ("honest-top", 403, "package_blocked", "'evil', which 'honest-middle' needs"),
    ("nonesuch", 404, "package_not_found", "nonesuch"),
    ("honest==9", 422, "version_not_found", "honest"),
    ("absolute", 422, "invalid_package", "absolute"),
    ("climber", 422, "invalid_package", "climber"),
    ("bomb", 413, "package_too_big", ""),
    ("truncated", 422, "invalid_package", "truncated"),
    ("broken", 422, "build_failed", "this compiler is broken"),
    ("pointer-out", 422, "invalid_package", "out of the tree"),
    ("elsewhere", 502, "index_unavailable", "elsewhere"),
])
def test_hostile_package_is_refused(shop, name, status, code, words):
    with nothing_left(shop):
        r = install(shop.daemon, name)
        assert (r.status, r.error["code"]) == (status, code) and words in r.error["message"], r


def test_package_of_too_many_files(shop):
    """More than two hundred thousand: refused by their number, or for the time that it takes to get so far."""
    with nothing_left(shop):
        r = install(shop.daemon, "million")
        assert (r.status, r.error["code"]) in ((413, "package_too_big"), (504, "index_timeout")), r


def test_package_build_is_contained(shop):
    """A build runs, and reaches neither a bystander, by name or address, nor anything that outlives its cell."""
    r = install(shop.daemon, "attacker", session_id="a")
    assert r.status == 200 and r.json["packages"][0]["built"], r
    said = shop.daemon.post("/execute", {"code": "import attacker; print(attacker.SAID)", "session_id": "a"}).json
    assert said["stdout"] == "ran\n", said
    assert shop.bystander.peers == [] and "bystander.test" not in shop.dns.asked
    assert not Path("/usr/lib/python3/owned").exists()
    shop.daemon.end_session("a")


def test_package_scripts_and_pth_replace_nothing(shop):
    with Box(shop.daemon) as box:
        assert box.post("/packages", {"packages": ["shadow"]}).status == 200
        assert box.shell("ls /workspace; command -v ls")["stdout"] == "/usr/bin/ls\n"
        r = box.post("/execute", {"code": "import os, shadow; print(os.environ.get('OWNED'))"}).json
        assert r["stdout"] == "None\n", r


def test_dependency_confusion(shop):
    """Dependency confusion: there is one index, and no other host is asked, whatever a package's metadata names."""
    with nothing_left(shop):
        assert install(shop.daemon, "elsewhere").status == 502
        assert install(shop.daemon, "stranger").status == 404
    assert shop.bystander.peers == []


def test_packages_of_a_sandbox_decide_for_no_other(shop):
    """The packages of a sandbox constrain its next ones: a tree that was made so is for sandboxes that have requested the same before."""
    def got(box, *wanted):
        r = box.post("/packages", {"packages": list(wanted)})
        assert r.status == 200, r
        return r.json["cached"], {p["name"]: p["version"] for p in r.json["packages"]}.get("steered")

    with Box(shop.daemon) as steering, Box(shop.daemon) as honest, Box(shop.daemon) as again, Box(shop.daemon) as alike:
        assert got(steering, "steered==1.0") == (False, "1.0")
        cached, version = got(steering, "steers")
        landed(version == "1.0", "the packages of a sandbox constrain the next ones")
        assert got(honest, "steers") == (False, "2.0")
        assert got(again, "steers") == (True, "2.0")
        assert got(alike, "steered==1.0") == (True, "1.0") and got(alike, "steers") == (True, "1.0")
        assert got(steering, "steers") == (True, "1.0"), "its own"


def test_a_long_list_of_packages_takes_no_time_of_others(shop):
    """A build names 5000 packages. The front compares them with each later request, also with one that needs no network and has no rate."""
    ask = "import json, socket\nfor _ in range(5):\n s = socket.create_connection(('198.18.0.1', 61052))\n s.sendall(json.dumps({'language': 'python'," \
          " 'packages': ['swollen']}).encode() + b'\\n')\n print(len(json.loads(s.makefile().readline())['packages']))"
    with Box(shop.daemon) as box:
        r = box.post("/packages", {"packages": ["swollen"]})
        assert r.status == 200, r
        landed(len(r.json["packages"]) == 5000, "the build has forged the report")
        before = cpu(shop.daemon)
        assert box.post("/execute", {"code": ask}).json["stdout"].split() == ["5000"] * 5
        assert len(box.get("/packages").json["packages"]) == 5000
        used = cpu(shop.daemon) - before
        assert used < 2, "the front computed for %.1f s" % used


def test_requests_for_what_is_there_leave_no_lines(shop):
    """The ledger is kept for ever, and such requests have no rate: only the first is recorded."""
    def lines(sandbox):
        text = (shop.daemon.state / "ledger/ledger.jsonl").read_text()
        return sum('"packages.end"' in line and '"%s"' % sandbox in line for line in text.splitlines())

    with Box(shop.daemon) as box:
        for name in ("honest", "steered"):
            assert box.post("/packages", {"packages": [name]}).status == 200
        landed(lines(box.name) == 2, "each of both is recorded")
        r = box.post("/execute", {"code": "for i in range(20): get_ipython().run_line_magic('pip', 'install ' + ('honest', 'steered')[i % 2])"}).json
        assert r["status"] == "ok", r
        assert lines(box.name) == 2
        assert box.post("/execute", {"code": "import steered, honest"}).json["status"] == "ok"


def test_a_flood_of_lines_of_a_build_slows_its_own_installation(shop):
    """Lines of a million values. As tests/hostile/test_serve_kernel.py has it for lines of an interpreter: the front's memory is bounded, and after
    a burst most of its time is left for others."""
    asking = threading.Thread(target=install, args=(shop.daemon, "chatty"), daemon=True)
    before = cpu(shop.daemon)
    asking.start()
    until(lambda: cpu(shop.daemon) > before + 1, 40, "work that the flood makes")
    time.sleep(30)
    before, began = cpu(shop.daemon), time.monotonic()
    time.sleep(8)
    used, passed = cpu(shop.daemon) - before, time.monotonic() - began
    landed(asking.is_alive(), "the flood goes on")
    assert used < passed / 5, "%.1f of %.1f s of the front's time for one installation" % (used, passed)
    most = int(status_of(shop.daemon.pid)["VmHWM"].split()[0])
    assert most < 96 << 10, "%d KiB of the front's memory" % most
    asking.join(90)


def test_npm_script_is_contained(shop):
    with Box(shop.daemon) as box:
        r = box.post("/packages", {"packages": ["grabber"], "language": "javascript"})
        assert r.status == 200 and r.json["packages"][0]["built"], r
        r = box.post("/execute", {"code": "console.log(require('grabber'))", "language": "javascript"}).json
        assert r["stdout"] == "ran\n", r
    assert shop.bystander.peers == [] and not Path("/usr/lib/owned").exists()


def test_no_package_code_runs_on_the_host(shop):
    """While it is fetched: all that the daemon started and that is not the daemon's own is in a cell."""
    d = shop.daemon
    with shop.hold("/simple/honest-middle/") as hold:
        asking = threading.Thread(target=install, args=(d, "honest-top"), daemon=True)
        asking.start()
        hold.wait()
        pips = [p for p in d.processes() if b"pip" in Path("/proc/%d/cmdline" % p).read_bytes().split(b"\0")]
        landed(pips, "pip runs")
        for pid in pips:
            assert len(status_of(pid)["NSpid"].split()) > 1, "pip runs on the host"
    asking.join(60)


def test_package_of_many_files(shop):
    """Thirty thousand files are a package; a chain of links that lead to each other is, too, and leads nowhere else."""
    r = install(shop.daemon, "many", session_id="m")
    assert r.status == 200 and r.json["files"] > 30000, r
    r = install(shop.daemon, "chain", session_id="m")
    assert r.status == 200 and r.json["files"] > 20000, r
    for key in trees(shop.daemon):
        top = shop.daemon.state / "packages" / key
        for link in (top / "chain").glob("*") if (top / "chain").is_dir() else ():
            assert "/" not in os.readlink(link)
    shop.daemon.end_session("m")


def test_the_same_again_takes_no_network_and_no_second(shop):
    """The promise of docs/packages.md, with a tree of thirty thousand files."""
    with Box(shop.daemon) as one, Box(shop.daemon) as two:
        assert one.post("/packages", {"packages": ["many"]}).status == 200
        asked, began = len(shop.asked), time.monotonic()
        r = two.post("/packages", {"packages": ["many"]})
        took = time.monotonic() - began
        assert r.status == 200 and r.json["cached"] and len(shop.asked) == asked, r
        assert took < at_most(1), "%.2f s" % took
        assert two.exec("python3", "-c", "import d; print(d.__path__)")["exit_code"] == 0


def test_slow_build_has_a_deadline(tmp_path, shop):
    i = Index(tmp_path, shop.files, "--package-timeout", "8s")
    try:
        r = install(i.daemon, "endless")
        assert (r.status, r.error["code"]) == (504, "index_timeout"), r
        assert trees(i.daemon) == [] and i.daemon.health()["sandboxes"]["live"] == 0
    finally:
        i.close()


def endless(c):
    """A page that never ends."""
    c.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n")
    line = b"".join(b'<a href="../../anything-0.%d-py3-none-any.whl">anything-0.%d-py3-none-any.whl</a>\n' % (i, i) for i in range(5000))
    while True:
        c.sendall(line)


@pytest.mark.parametrize("kind", ["silent", "garbage", "refusing", "endless"])
def test_index_that_fails(tmp_path, kind):
    """An index that answers nothing, nonsense, or without end, or is not there: an error that names the option, in bounded time."""
    stop = threading.Event()
    handlers = {"endless": endless, "silent": lambda c: stop.wait(60), "garbage": lambda c: c.sendall(b"\0" * 5000), "refusing": lambda c: None}
    server = Server(handlers[kind])
    files = tmp_path / "files"
    files.mkdir()
    i = Index(tmp_path, files, "--package-timeout", "20s", "--pip-index", "http://%s:%d/simple" % (INDEX, server.port))
    if kind == "refusing":
        server.close()
    try:
        r = install(i.daemon, "anything")
        assert (r.status, r.error["code"]) in ((502, "index_unavailable"), (504, "index_timeout"), (413, "package_too_big")), r
        assert r.error["code"] != "package_too_big" or kind == "endless"
        assert any(option in r.error["hint"] for option in ("--pip-index", "--package-timeout", "--package-size"))
        assert trees(i.daemon) == []
    finally:
        stop.set()
        i.close()
        server.close()
