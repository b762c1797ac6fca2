# SPDX-License-Identifier: Apache-2.0
"""test_packages_life.py - Packages after a kill at any moment, old packages, and modified packages.

After a kill -9 in any phase, the unfinished installation has left nothing, or it is finished and recorded; and the next request
is installed. Judged by the state directory, and by imports of code.
"""
import os
import random
import signal
import threading
import time

import pytest

from box_lib import Box, Events
from package_lib import Index, install, pages, package_store, sdist, trees, wheel
from process import HANG, wait_until

pytestmark = pytest.mark.slow

LARGE = 24 << 20  # enough to catch it while it is unpacked


@pytest.fixture
def index(tmp_path):
    files = tmp_path / "files"
    files.mkdir()
    noise = random.Random(1).randbytes
    wheel(files, "known")
    wheel(files, "slow")
    wheel(files, "large", files={"large.py": "VERSION = '1.0'\n", **{"data/%d.bin" % i: noise(LARGE // 64) for i in range(64)}})
    i = Index(tmp_path, files, "--package-timeout", "60s")
    sdist(files, "homemade", "import urllib.request\nurllib.request.urlopen(%r).read()" % (i.url + "/robots.txt"))
    pages(files)
    (files / "robots.txt").write_text("")
    yield i
    i.close()


class Asking(threading.Thread):
    """A client that asks for a package and may never get an answer."""

    def __init__(self, daemon, package):
        super().__init__(daemon=True)
        self.of, self.package, self.answer = daemon, package, None
        self.start()

    def run(self):
        try:
            self.answer = install(self.of, self.package)
        except OSError:
            pass

    def end(self):
        self.join(HANG)
        assert not self.is_alive(), "it waits for ever"
        return self.answer


def kill(daemon, victim, stopped=None):
    """kill -9, and wait for the restart. stopped: a process that continues when the victim is dead."""
    if victim == "package store":
        os.kill(package_store(daemon), signal.SIGKILL)
        return
    if victim == "daemon":
        daemon.p.send_signal(signal.SIGSTOP)  # otherwise it would start another front
    os.kill(daemon.find_front(), signal.SIGKILL)
    if victim == "daemon":
        daemon.p.kill()
        daemon.p.wait()
    if stopped:
        os.kill(stopped, signal.SIGCONT)
    if victim == "daemon":
        assert not daemon.settled(), daemon.left()
        daemon.remove_cgroups()
        daemon.start()


def whole(index, before, package):
    """All kept trees have names, and the interrupted package can be installed."""
    d = index.daemon
    d.wait_ready()
    assert wait_until(lambda: not [t for t in trees(d) if t.endswith(".new")]), trees(d)
    assert wait_until(lambda: d.health()["sandboxes"]["live"] == 0), "the fetcher's cell is left"
    assert set(before) <= set(trees(d)), "an earlier package is lost"
    r = install(d, package)
    assert r.status == 200, r
    name = package.partition("=")[0]
    said = d.post("/execute", {"code": "import known, %s; print(known.VERSION)" % name}).json
    assert said["stdout"] == "1.0\n", said
    assert len(trees(d)) == len(before) + 1, "one for each of them"


VICTIMS = ["package store", "front", "daemon"]


@pytest.mark.parametrize("victim", VICTIMS)
@pytest.mark.parametrize("package,path,nth", [("slow", "/simple/slow/", 1), ("homemade", "/robots.txt", 2)], ids=["resolving", "building"])
def test_killed_while_it_is_fetched(index, victim, package, path, nth):
    """The second build is the one after the closure was judged. The death of the package store does not end an installation that does not use it yet."""
    d = index.daemon
    assert install(d, "known").status == 200
    before = trees(d)
    with index.hold(path, nth) as hold:
        asking = Asking(d, package)
        hold.wait()
        kill(d, victim)
        if victim != "package store":
            assert asking.end() is None, "cut off"
            assert trees(d) == before
    if victim == "package store":
        assert asking.end().status == 200
    whole(index, before, package)


@pytest.mark.parametrize("victim", VICTIMS)
def test_killed_while_it_is_stored(index, victim):
    d = index.daemon
    assert install(d, "known").status == 200
    before = trees(d)
    worker = package_store(d)
    asking = Asking(d, "large")
    end = time.monotonic() + HANG
    while not [t for t in trees(d) if t.endswith(".new")]:  # without a pause: it is quick
        assert time.monotonic() < end, "never began"
    os.kill(worker, signal.SIGSTOP)
    assert [t for t in trees(d) if t.endswith(".new")], "it was too quick for this test"
    kill(d, victim, stopped=worker)
    answer = asking.end()
    if victim == "package store":
        assert (answer.status, answer.error["code"]) == (503, "install_failed"), answer
    d.wait_ready()
    assert wait_until(lambda: not [t for t in trees(d) if t.endswith(".new")]), trees(d)
    assert install(d, "large").status == 200
    assert len(trees(d)) == len(before) + 1


@pytest.mark.parametrize("victim", VICTIMS)
def test_finished_is_known_after_any_kill(index, victim):
    """Also without the index: the package is there, for sandboxes that had it and for others."""
    d = index.daemon
    assert install(d, "known").status == 200
    assert install(d, "slow").status == 200
    before, asked = trees(d), len(index.asked)
    kill(d, victim)
    d.wait_ready()
    said = d.post("/execute", {"code": "import known, slow; print(known.VERSION, slow.VERSION)"}).json
    assert said["stdout"] == "1.0 1.0\n", said
    with Box(d) as box:
        r = box.post("/packages", {"packages": ["slow"]})
        assert r.status == 200 and r.json["cached"], r
    assert trees(d) == before and len(index.asked) == asked


# ---- garbage ------------------------------------------------------------------------------------------------------

def test_kept_as_long_as_it_is_used_and_then_for_so_long(tmp_path):
    """--package-keep counts from the last use: a tree in use may be older, and stays; others are removed meanwhile."""
    files = tmp_path / "files"
    files.mkdir()
    for name in ("used", "left"):
        wheel(files, name)
    i = Index(tmp_path, files, "--package-keep", "2s")
    try:
        with Box(i.daemon) as box:
            assert box.post("/packages", {"packages": ["used"]}).status == 200
            used = trees(i.daemon)
            for _ in range(2):
                with Box(i.daemon) as other:
                    assert other.post("/packages", {"packages": ["left"]}).status == 200
                    assert len(trees(i.daemon)) == 2
                assert wait_until(lambda: trees(i.daemon) == used, HANG), trees(i.daemon)
            assert box.exec("python3", "-c", "import used; print(used.VERSION)")["stdout"] == "1.0\n"
        assert wait_until(lambda: trees(i.daemon) == [], HANG), trees(i.daemon)
        assert install(i.daemon, "used").json["cached"] is False
    finally:
        i.close()


def test_no_more_than_the_store_may_have_unless_it_is_used(tmp_path):
    files = tmp_path / "files"
    files.mkdir()
    for name in ("one", "two", "three"):
        wheel(files, name, files={name + ".py": "VERSION = '1.0'\n", name + ".bin": random.Random(name).randbytes(700 << 10)})
    i = Index(tmp_path, files, "--package-store", "1M")
    d = i.daemon
    try:
        with Box(d) as one, Box(d) as two:
            assert one.post("/packages", {"packages": ["one"]}).status == 200
            assert two.post("/packages", {"packages": ["two"]}).status == 200
            with Box(d) as three:
                assert three.post("/packages", {"packages": ["three"]}).status == 200
                assert len(trees(d)) == 3, "a tree in use was removed"
            assert wait_until(lambda: len(trees(d)) == 2, HANG), "an unused tree was kept"
            for box, name in ((one, "one"), (two, "two")):
                assert box.exec("python3", "-c", "import %s as m; print(m.VERSION)" % name)["stdout"] == "1.0\n"
        assert wait_until(lambda: len(trees(d)) == 1, HANG), "until it fits"
    finally:
        i.close()


# ---- changed behind our back ----------------------------------------------------------------------------------------

def content_of(daemon, name):
    return next((daemon.state / "packages").rglob(name))


@pytest.mark.parametrize("how", ["byte", "added", "replaced"])
def test_changed_packages_are_refused_at_the_start(index, how):
    """One byte of one file, with the same size and time; the next request fetches the packages again."""
    d = index.daemon
    assert install(d, "known").status == 200
    assert install(d, "slow").status == 200
    good = {content_of(d, "slow.py").parent.name}
    d.stop()
    path = content_of(d, "known.py")
    before = path.stat()
    if how == "byte":
        with open(path, "r+b") as f:
            f.seek(-3, os.SEEK_END)
            f.write(b"9")
    elif how == "added":
        (path.parent / "json.py").write_text("print('mine')\n")
    else:
        path.rename(path.with_suffix(".old"))
        path.write_text("VERSION = '6.6'\n")
        path.with_suffix(".old").unlink()
    if path.exists():
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    d.start()
    d.wait_ready()
    assert set(trees(d)) == good, "the wrong tree was removed"
    assert [e["request"] for e in d.log("packages_changed")] == ["known"]
    assert "packages.changed" in (d.state / "ledger/ledger.jsonl").read_text()
    assert "No module" in d.post("/execute", {"code": "import known"}).json["stderr"]
    assert d.post("/execute", {"code": "import slow; print(slow.VERSION)"}).json["stdout"] == "1.0\n"
    assert install(d, "known").json["cached"] is False
    assert d.post("/execute", {"code": "import known; print(known.VERSION)"}).json["stdout"] == "1.0\n"


def test_a_copy_of_the_state_is_as_good(index):
    """Other times, the same content: it is read and accepted."""
    d = index.daemon
    assert install(d, "known").status == 200
    d.stop()
    path = content_of(d, "known.py")
    path.write_bytes(path.read_bytes())
    before, asked = trees(d), len(index.asked)
    d.start()
    d.wait_ready()
    assert trees(d) == before and not d.log("packages_changed")
    assert install(d, "known").json["cached"] and len(index.asked) == asked


# ---- what goes on -----------------------------------------------------------------------------------------------------

def test_progress_is_reported_meanwhile(index):
    """Events come before the end, and report the progress."""
    with index.hold("/simple/slow/") as hold, Box(index.daemon) as box:
        events = Events(index.daemon, "POST", box.url + "/packages", {"packages": ["slow"], "stream": True})
        hold.wait()
        seen = iter(events)
        first = next(seen)
        assert first[1] == "progress" and "slow" in first[2]["text"], "while the index has not answered"
        hold.release()
        rest = list(seen)
        assert rest[-1][1] == "done" and not rest[-1][2]["cached"]
        steps = [(data["done"], data["total"]) for _, kind, data in rest if kind == "progress" and "total" in data]
        assert steps == sorted(steps) and steps[-1][0] == steps[-1][1] == 3, steps
