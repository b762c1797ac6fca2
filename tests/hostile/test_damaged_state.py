# SPDX-License-Identifier: Apache-2.0
"""test_damaged_state.py - The state on the disk when a daemon dies, when it is damaged, and when the disk is full.

Other tests cover: every step of a start and a cell (tests/integ/test_crash.py), the store damaged in every way, two daemons, a
read-only disk (tests/serve/test_state.py), kill -9 of each process and the drain (tests/serve/test_life.py), every prefix of journal, log
and ledger (tests/unit: test_record.c, test_store_prefix.c, test_ledger.c).
"""
import contextlib
import os
import signal

import pytest
from daemon_lib import Daemon
from process import unique
from lib import at_most, landed
from cell_lib import until
from scarce_lib import bystanders, disk, fill, fill_inodes, free, recovers, refuses_to_start, settled, state_dir, try_run
from snapshot import stat_of

quick = pytest.mark.quick


def kill_all(d):
    """Kill the daemon with all its processes at once, so that none cleans up. Their pids."""
    pids = [d.keeper, d.pid, d.warden, *d.cells()]
    for pid in pids[:2]:
        os.kill(pid, signal.SIGSTOP)
    for pid in (d.warden, d.pid, d.keeper):
        os.kill(pid, signal.SIGKILL)
    d.p.wait()
    until(lambda: not any(map(stat_of, pids)), 20, "the end of the daemon")
    return pids


# ---- the processes behind a sandbox -----------------------------------------------------------------------------------

@pytest.mark.parametrize("victim", ["init", "zygote"])
def test_killed_process_of_a_sandbox(victim):
    """The result reports the true cause, nothing of it is left, and the daemon continues."""
    with Daemon("--pool", "2") as d:
        name = unique()
        r = d.request("POST", "/v1/sandboxes", {"name": name})
        assert r.status == 201, r
        old, front = d.zygote, d.pid
        r = d.request("POST", f"/v1/sandboxes/{name}/execute", {"code": "x = 1"})
        assert r.status == 200, r
        if victim == "init":
            cells = d.cells()
            for pid in cells:  # one of them is the sandbox's
                os.kill(pid, signal.SIGKILL)
            until(lambda: not any(map(stat_of, cells)), at_most(2), "the end of the cells")
            until(lambda: d.request("GET", f"/v1/sandboxes/{name}").json["epoch"] >= 1, 30, "a sandbox that knows")
        else:
            os.kill(old, signal.SIGKILL)
            until(lambda: d.zygotes() and d.zygotes() != [old], 30, "another zygote")
        box = d.request("GET", f"/v1/sandboxes/{name}").json
        r = d.request("POST", f"/v1/sandboxes/{name}/execute", {"code": "'x' in globals()"})
        assert r.status == 200, r
        want = "False" if box["epoch"] else "True"
        assert r.json["result"]["text/plain"] == want, (victim, box, r)
        assert victim == "init" or box["epoch"] == 0, "a zygote's death is nothing to a kernel that it has forked"
        assert d.pid == front and d.p.poll() is None
        assert d.request("DELETE", f"/v1/sandboxes/{name}").status == 204
        d.quiet(30)


@quick
def test_killed_warden(stopped_by):
    """The daemon cannot continue: it reports this and ends, and the next one has every name."""
    with Daemon("--pool", "1") as d:
        name = unique()
        assert d.request("POST", "/v1/sandboxes", {"name": name}).status == 201
        old = [d.pid, d.warden, *d.cells()]
        os.kill(d.warden, signal.SIGKILL)
        until(lambda: d.p.poll() is not None or d.warden not in old, 20, "its end")
        if d.p.poll() is not None:
            assert d.p.returncode == 125 and d.log("warden_gone"), d.log_text()[-1000:]
            until(lambda: not any(map(stat_of, old)), 20, "the end of the cells")
            d.start()
        box = d.request("GET", f"/v1/sandboxes/{name}")
        assert box.status == 200 and box.json["state"] in ("running", "lost"), box
        d.good()
    stopped_by("parent-death signal", "the journal, at the next start")


# ---- numbers that are somebody else's by now ----------------------------------------------------------------------------

@quick
def test_recycled_pids(stopped_by):
    """The numbers of a dead front, warden and cell belong to others when the next daemon cleans up: it touches none of them."""
    with Daemon("--pool", "1") as d:
        d.good()
        old = kill_all(d)
        left = [p for p in (d.state / "cells").iterdir()]
        landed(left, "nothing was left for the next start to sweep")
        with bystanders(old) as alive:
            assert alive() == set(old)
            (d.state / "lock").write_text(f"{old[1]}\n")
            d.start()
            d.good()
            assert alive() == set(old), "a process that only has the number of a dead one was killed"
            d.stop()
            assert alive() == set(old)
        d.start()
    stopped_by("locks, not numbers")


# ---- damage ---------------------------------------------------------------------------------------------------------------

def truncated(p):
    p.write_bytes(p.read_bytes()[:-7])


def zeroes(p):
    p.write_bytes(bytes(p.stat().st_size))


def flipped_first(p):
    data = bytearray(p.read_bytes())
    data[len(data) // 7] ^= 4
    p.write_bytes(data)


def flipped_last(p):
    data = bytearray(p.read_bytes())
    data[-3] ^= 1
    p.write_bytes(data)


def unreadable(p):
    p.rename(p.with_name("kept"))
    p.mkdir()


DAMAGES = [truncated, zeroes, flipped_first, flipped_last, unreadable]


def bytes_below(top):
    return {p: p.read_bytes() for p in top.rglob("*") if p.is_file()}


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda f: f.__name__)
def test_changed_ledger_stops_the_start(damage):
    """The start stops at a modified audit log, names it and the remedy, and changes nothing."""
    with Daemon("--pool", "1") as d:
        d.good()
        d.stop()
        p = d.state / "ledger" / "ledger.jsonl"
        damage(p)
        before = bytes_below(d.state / "ledger")
        if damage in (truncated, zeroes):  # as a crash can leave it: an incomplete last line is moved aside
            d.start()
            d.good()
            kept = [x for x in (d.state / "ledger").iterdir() if x.name.startswith("ledger.torn-")]
            assert len(kept) == 1 and before[p].endswith(kept[0].read_bytes())
            return
        line = refuses_to_start(d.state)
        assert "ledger" in line and str(d.state) in line or "ledger.jsonl" in line, line
        assert bytes_below(d.state / "ledger") == before, "it was changed"
        p.rename(p.with_name("old"))  # the way out that the message names
        d.start()
        d.good()


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda f: f.__name__)
def test_damaged_store_log(damage):
    """The store's write-ahead log, as kill -9 leaves it, and then damaged: the daemon starts, and moves an invalid log aside."""
    with Daemon("--pool", "1") as d:
        name = unique()
        assert d.request("POST", "/v1/sandboxes", {"name": name}).status == 201
        kill_all(d)
        p = d.state / "store" / "state.db-wal"
        landed(p.stat().st_size > 4096, "the log is empty")
        damage(p)
        d.start()
        d.good()
        r = d.request("GET", f"/v1/sandboxes/{name}")
        assert r.status in (200, 404), r
        if damage in (truncated, flipped_last):
            assert not d.log("store_quarantined"), "the last transaction alone is gone"
        d.stop()
        d.start()
        d.good()


@pytest.mark.parametrize("part", ["store", "ledger", "spool", "cells", "lock", "all"])
def test_missing_state_is_made_again(part):
    """Every removed part of the state is made again."""
    with Daemon("--pool", "1") as d:
        kill_all(d) if part == "lock" else d.stop()
        for p in [d.state / part] if part != "all" else list(d.state.iterdir()):
            if p.is_dir():
                p.rename(d.where / ("kept-" + p.name))
            else:
                p.unlink()
        d.start()
        d.good()
        d.stop()
        d.start()


def test_noise_in_the_journal_is_quarantined(stopped_by):
    """A record of the journal that is noise: put aside whole, and the daemon serves."""
    with Daemon("--pool", "1") as d:
        d.stop()
        noise = os.urandom(3000)
        (d.state / "cells" / "0042").write_bytes(noise)
        d.start()
        d.good()
        kept = list((d.state / "quarantine").iterdir())
        assert [p.read_bytes() for p in kept] == [noise]
        kept[0].unlink()
    stopped_by("checksum of the record")


# ---- no room -----------------------------------------------------------------------------------------------------------

BIG = "print('x' * 3000000)"


def use(d, n=12):
    """Requests that need the disk: names, runs, output over the cap. Returns the statuses that came."""
    seen = set()
    for i in range(n):
        status, r = try_run(d, BIG if i % 3 == 0 else "print(1)")
        seen.add(status)
        if status == 200:
            assert r["success"] and r["stdout"].startswith(("1\n", "x")), r
        r = d.request("POST", "/v1/sandboxes", {"name": unique("disk")})
        seen.add(r.status)
        assert r.status == 201 or r.code and r.status in (429, 503), r
        assert d.health()["status"]
    return seen


@pytest.mark.parametrize("part,how", [pytest.param("ledger", "bytes", marks=quick), ("store", "bytes"), ("spool", "bytes"), ("cells", "bytes"),
                                      ("tmp", "bytes"), *((p, "inodes") for p in ("store", "ledger", "spool", "cells", "tmp"))])
def test_disk_full(part, how):
    """One part of the state at a time has no room left, then has again: clear errors meanwhile, and the same process goes on."""
    options = "size=400k" if how == "bytes" else "size=8m,nr_inodes=24"
    with state_dir() as state, contextlib.ExitStack() as stack:
        state.mkdir(mode=0o700)
        where = stack.enter_context(disk(state / part if part != "tmp" else state.parent / "tmp", options))
        if part == "tmp":
            where.chmod(0o1777)
        with Daemon("--pool", "1", "--max-output", "100", state=state, env={"TMPDIR": str(where)}) as d:
            assert use(d, 2) <= {200, 201}
            front = d.pid
            (fill if how == "bytes" else fill_inodes)(where)
            seen = use(d)
            if how == "bytes" and part in ("store", "ledger"):
                landed(503 in seen, f"nothing needed the disk: {seen}")
            if part == "tmp" or how == "inodes" and part != "cells":
                assert seen <= {200, 201}, seen
            free(where)
            recovers(d)
            assert use(d, 3) <= {200, 201}, "it does not recover"
            assert d.pid == front and d.p.poll() is None
            settled(d)
