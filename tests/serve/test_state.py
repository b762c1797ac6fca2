# SPDX-License-Identifier: Apache-2.0
"""test_state.py - The state directory: one daemon at a time, any content, and a disk that is full or read-only."""
import contextlib
import os
import signal
import sqlite3
import stat
import subprocess
import time

import pytest

from process import BIN, HANG, status_of, wait_until
from serve_lib import clean_env

from integ_lib import needs_root

DB = "store/state.db"


def fails(state, *args):
    """A start that must fail. Returns the one line with the reason."""
    p = subprocess.run([str(BIN), "serve", "--state", str(state), "--listen", "none", "--pool", "0", *map(str, args)],
                       env=clean_env(CAISSON_STATE=None), capture_output=True, timeout=HANG)
    lines = p.stderr.decode().splitlines()
    assert p.returncode == 125 and p.stdout == b"", p
    assert len(lines) == 1 and lines[0].startswith("caisson serve: "), p
    return lines[0]


def restart(d):
    d.start()
    d.wait_ready()
    assert d.execute("print(6 * 7)")["stdout"] == "42\n"


def stop(d):
    """End it, and leave the object ready for start()."""
    d.p.send_signal(signal.SIGTERM)
    assert d.end() == 0, d.log_text()[-2000:]
    assert d.settled() == []
    d.kill()


def aside(d):
    return sorted(p.name for p in (d.state / "store").iterdir() if ".corrupt-" in p.name)


@contextlib.contextmanager
def database(d):
    db = sqlite3.connect(d.state / DB)
    try:
        yield db
        db.commit()
    finally:
        db.close()


def add_sandbox(db, name, state):
    db.execute("INSERT INTO sandbox VALUES (?, 'local', ?, '{}', '{}', ?, '', '', 0, 0, 1, 1, 0)", ("id-" + name, name, state))


# ---- what is there -------------------------------------------------------------------------------------------------------


def test_layout(serve):
    d = serve()
    mine = os.geteuid()
    theirs = int(status_of(d.pid)["Uid"].split()[0])
    for name, uid in (("store", mine), ("spool", mine), ("ledger", theirs)):
        st = (d.state / name).stat()
        assert stat.S_IMODE(st.st_mode) == 0o700 and st.st_uid == uid, name
    for name in ("lock", DB, DB + "-wal"):
        st = (d.state / name).stat()
        assert stat.S_IMODE(st.st_mode) == 0o600 and st.st_uid == mine, name
    assert (d.state / "lock").read_text() == "%d\n" % d.keeper
    assert stat.S_IMODE(d.state.stat().st_mode) == 0o700


def test_other_programs_find_the_store_locked(serve):
    d = serve()
    with pytest.raises(sqlite3.OperationalError, match="locked"), database(d) as db:
        db.execute("SELECT * FROM sandbox")
    assert d.execute("1")["success"]


# ---- two daemons ---------------------------------------------------------------------------------------------------------


def test_second_daemon_refuses(serve):
    d = serve()
    line = fails(d.state, "--socket", d.where / "other.sock")
    assert "pid %d," % d.keeper in line and str(d.state) in line, line
    assert d.execute("print(1)")["stdout"] == "1\n"
    stop(d)
    restart(d)  # the lock ends with its holder


def test_stale_pid_does_not_matter(serve):
    d = serve()
    stop(d)
    (d.state / "lock").write_text("1\n")
    restart(d)
    assert (d.state / "lock").read_text() == "%d\n" % d.keeper


def test_many_starts_at_once_give_one_daemon(serve):
    d = serve()
    stop(d)
    started = [subprocess.Popen([str(BIN), "serve", "--state", str(d.state), "--socket", str(d.where / ("%d.sock" % i)), "--listen", "none",
                                 "--pool", "0"], env=clean_env(CAISSON_STATE=None), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
               for i in range(4)]
    try:
        assert wait_until(lambda: sum(p.poll() is not None for p in started) == 3), [p.poll() for p in started]
        (one,) = (i for i, p in enumerate(started) if p.poll() is None)
        for i, p in enumerate(started):
            if i != one:
                assert p.returncode == 125 and b"another caisson serve" in p.stderr.read()
        assert b"listens" in started[one].stdout.readline()
        started[one].terminate()
        assert started[one].wait(HANG) == 0
    finally:
        for p in started:
            if p.poll() is None:
                p.kill()
            p.communicate()
    assert wait_until(lambda: not d.left())


# ---- kill -9 -------------------------------------------------------------------------------------------------------------


def test_killed_and_started_again(serve):
    d = serve()
    for _ in range(3):
        d.execute("x = 1", session_id="s")
        d.p.kill()
        d.end()
        d.kill()
        restart(d)
    assert aside(d) == [] and d.log("store_quarantined") == []


def test_killed_while_it_starts(serve):
    """At many moments of a start: the next start always works."""
    d = serve()
    stop(d)
    for i in range(8):
        for p in (d.state / "store").iterdir():
            p.unlink()
        d.start()
        time.sleep(0.01 * i)  # another moment each time; any will do
        d.p.kill()
        d.end()
        d.kill()
    restart(d)
    assert all(e["why"] == "it is empty" for e in d.log("store_quarantined"))


def test_what_ran_is_lost(serve):
    d = serve()
    stop(d)
    with database(d) as db:
        for name, state in (("a", "running"), ("b", "running"), ("c", "stopped"), ("d", "removing")):
            add_sandbox(db, name, state)
    restart(d)
    assert [e["sandboxes"] for e in d.log("sandboxes_lost")] == [2]
    stop(d)
    with database(d) as db:
        rows = dict((n, (s, r)) for n, s, r in db.execute("SELECT name, state, reason FROM sandbox"))
    lost = ("lost", "the daemon was restarted")
    assert rows == {"a": lost, "b": lost, "c": ("stopped", "")}
    restart(d)
    assert len(d.log("sandboxes_lost")) == 1, "the second start finds nothing that ran"


# ---- damage --------------------------------------------------------------------------------------------------------------


def garbage(p):
    p.write_bytes(os.urandom(30000))


def emptied(p):
    p.write_bytes(b"")


def truncated(p):
    p.write_bytes(p.read_bytes()[:9000])


def zeroes(p):
    p.write_bytes(bytes(p.stat().st_size))


def flipped(p):
    data = bytearray(p.read_bytes())
    for i in range(100, len(data), 97):
        data[i] ^= 0x55
    p.write_bytes(data)


def newer(p):
    db = sqlite3.connect(p)
    db.execute("PRAGMA user_version=99")
    db.close()


def foreign(p):
    p.unlink()
    db = sqlite3.connect(p)
    db.execute("CREATE TABLE cookies (a)")
    db.commit()
    db.close()


def link(p):
    p.rename(p.with_name("elsewhere"))
    p.symlink_to("elsewhere")


def directory(p):
    p.unlink()
    p.mkdir()


@pytest.mark.parametrize("damage", [garbage, emptied, truncated, zeroes, flipped, newer, foreign, link, directory],
                         ids=lambda f: f.__name__)
def test_damaged_store_is_put_aside(serve, damage):
    d = serve("--pool", "1")
    stop(d)
    p = d.state / DB
    damage(p)
    before = None if p.is_dir() else p.read_bytes()
    restart(d)
    (event,) = d.log("store_quarantined")
    assert event["level"] == "warning" and event["why"] and event["directory"] == str(d.state), event
    kept = d.state / "store" / event["file"]
    assert event["file"] in aside(d) and event["file"].startswith("state.db.corrupt-")
    assert before is None or kept.read_bytes() == before, "what was there is still there"
    stop(d)
    restart(d)
    assert len(d.log("store_quarantined")) == 1, "the new one is good"


def test_stores_of_others_are_not_followed(serve, tmp_path):
    """A link that a taken-over front might leave: root neither reads nor writes its target."""
    d = serve("--pool", "1")
    stop(d)
    secret = tmp_path / "secret"
    secret.write_text("mine")
    (d.state / (DB + "-wal")).unlink()
    (d.state / (DB + "-wal")).symlink_to(secret)
    restart(d)
    assert secret.read_text() == "mine" and len(aside(d)) == 2


# ---- disks ---------------------------------------------------------------------------------------------------------------


@pytest.fixture
def disk(short_dir):
    """A small disk of its own: a directory, and a function that mounts it again with other options."""
    where = short_dir / "disk"
    where.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m,mode=755", "none", where], capture_output=True).returncode:
        pytest.skip("no tmpfs can be mounted here")
    try:
        yield where
    finally:
        subprocess.run(["umount", "-l", where], check=True)


def remount(where, options):
    subprocess.run(["mount", "-o", "remount," + options, where], check=True, capture_output=True)


def fill(where):
    """Fill the rest of it. Returns the filler."""
    ballast = where / "ballast"
    with open(ballast, "wb", buffering=0) as f:
        with contextlib.suppress(OSError):
            while True:
                f.write(bytes(4096))
    return ballast


@needs_root
def test_disk_full_at_the_start(serve, disk):
    ballast = fill(disk)
    line = fails(disk / "state")
    assert "--state" in line or str(disk) in line, line
    assert "No space left" in line, line
    ballast.unlink()
    d = serve("--pool", "1", state=disk / "state")
    stop(d)
    ballast = fill(disk)
    line = fails(d.state)
    assert "No space left" in line and str(d.state) in line, line
    ballast.unlink()
    restart(d)
    assert aside(d) == [], "a full disk was taken for damage"


@needs_root
def test_disk_full_while_it_serves(serve, disk):
    d = serve("--pool", "1", state=disk / "state")
    d.execute("x = 1", session_id="kept")
    ballast = fill(disk)
    for _ in range(5):
        # The ledger has the rest of its last page, and space that journals of ending cells free: sometimes it can be written.
        for r in (d.try_execute("print(1)"), d.try_execute("x", session_id="kept")):
            assert r.status == 200 or r.status == 503 and r.error, r
        assert d.health()["status"]
    ballast.unlink()
    assert wait_until(lambda: d.try_execute("print(2)").status == 200), d.log_text()[-1500:]
    assert d.execute("x", session_id="kept")["result"]["text/plain"] == "1"
    stop(d)
    restart(d)
    assert aside(d) == []


@needs_root
def test_read_only_disk(serve, disk):
    d = serve("--pool", "1", state=disk / "state")
    stop(d)
    remount(disk, "ro")
    line = fails(d.state)
    assert "Read-only file system" in line and str(d.state) in line, line
    remount(disk, "rw")
    restart(d)
    assert aside(d) == []


# ---- directories that are no good -------------------------------------------------------------------------------------------


def test_no_state_directory_no_daemon(tmp_path):
    (tmp_path / "file").write_text("")
    assert str(tmp_path / "file") in fails(tmp_path / "file")
    assert "none" in fails(tmp_path / "none" / "below")
    (tmp_path / "real").mkdir(mode=0o700)
    (tmp_path / "link").symlink_to("real")
    assert str(tmp_path / "link") in fails(tmp_path / "link")
    (tmp_path / "open").mkdir()
    (tmp_path / "open").chmod(0o777)
    assert "writable by no other user" in fails(tmp_path / "open")


@needs_root
def test_state_directory_of_another_user(tmp_path):
    (tmp_path / "theirs").mkdir(mode=0o700)
    os.chown(tmp_path / "theirs", 1234, 1234)
    assert "must belong to uid 0" in fails(tmp_path / "theirs")
