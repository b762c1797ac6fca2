# SPDX-License-Identifier: Apache-2.0
"""test_starved_daemon.py - A daemon that may have few files, little memory or few processes, and a machine without memory.

Inodes are in test_damaged_state.py, with the other ways in which a disk has no room.
"""
import os
import re
import subprocess

import pytest
from daemon_lib import MIB, Daemon
from process import unique
from lib import TRACED, ROOT, landed
from cell_lib import read
from scarce_lib import group, in_group, recovers, state_dir, try_run, up_or_over
from snapshot import stat_of

quick = pytest.mark.quick
ADJ = "/proc/{}/oom_score_adj"


def name_some(d, n, prefix):
    """Sandboxes with a variable in each, until one is refused or there are n. (names, the refusal or None)"""
    names = []
    for i in range(n):
        name = f"{prefix}-{i}"
        status, r = try_run(d, f"x = {i}", session_id=name)
        if status != 200:
            return names, r["error"]
        assert r["success"], r
        names.append(name)
    return names, None


def check_kept(d, names):
    """Those that were there before the limit was met are as they were."""
    for i, name in enumerate(names):
        r = d.execute("x", session_id=name)
        assert r["result"] == {"text/plain": str(i)} and r["epoch"] == 0, r


def end_all(d):
    for name in d.sessions():
        assert d.end_session(name).status == 204


# ---- open files -------------------------------------------------------------------------------------------------------------

def few_files(n):
    return ["prlimit", f"--nofile={n}:{n}"]


@pytest.mark.parametrize("n", [pytest.param(128, marks=quick), 192, 256])
def test_few_open_files(n, stopped_by):
    """Sandboxes up to the limit: one too many is refused at once, with the reason; the others are not affected, and their end makes room."""
    with Daemon("--pool", "1", wrapper=few_files(n)) as d:
        names, refused = name_some(d, 60, "files")
        landed(refused, f"{n} open files were enough for {len(names)} sandboxes")
        assert names and "open files" in refused["message"] and f"limit {n}" in refused["message"], refused
        check_kept(d, names)
        assert d.descriptors() <= n
        end_all(d)
        recovers(d)
        again, _ = name_some(d, len(names), "again")
        assert len(again) >= len(names) - 1, "descriptors were lost"
        end_all(d)
    stopped_by("a reserve of open files", "EMFILE of the one request")


@pytest.mark.parametrize("n", [8, 12, 16, 24, 32, 48, pytest.param(64, marks=quick)])
def test_hardly_any_open_files(n):
    """It starts and serves, or reports in one line that it lacks open files."""
    with state_dir() as state:
        d = Daemon("--pool", "0", state=state, wrapper=few_files(n), wait=False, env={"ASAN_OPTIONS": TRACED})
        try:
            if up_or_over(d):
                r = d.request("POST", "/execute", {"code": "1"}, timeout=60)
                assert r.status == 200 or "open files" in r.json["error"]["message"], r
                d.p.terminate()
                assert d.p.wait(30) == 0, d.log_text()[-500:]
            else:
                assert d.p.returncode in (125, 127), (d.p.returncode, d.log_text()[-500:])
                assert re.search("open files|shared libraries", d.log_text()), d.log_text()[-500:]
        finally:
            d.kill()


# ---- processes ----------------------------------------------------------------------------------------------------------------

def test_no_more_processes():
    """The cgroup that all of it is in has no room for another process: that request alone is refused, and it recovers."""
    with group("l10-pids", pids=40) as g, Daemon("--pool", "1", "--pids", "16", wrapper=in_group(g)) as d:
        names, refused = name_some(d, 40, "pids")
        landed(refused, f"{len(names)} sandboxes fit into 40 processes")
        assert names and refused["code"] and refused["message"], refused
        check_kept(d, names)
        end_all(d)
        recovers(d)


# ---- memory -----------------------------------------------------------------------------------------------------------------------

def limit_memory(d, more):
    """The front's address space may grow by so much; None: by as much as it likes. As its own user: root may not."""
    uid = re.search(r"^Uid:\t(\d+)", read(f"/proc/{d.pid}/status"), re.M)[1]
    now = int(read(f"/proc/{d.pid}/statm").split()[0]) * os.sysconf("SC_PAGE_SIZE")
    value = "unlimited" if more is None else str(now + more)
    p = subprocess.run(["setpriv", f"--reuid={uid}", f"--regid={uid}", "--clear-groups", "--", "prlimit", f"--pid={d.pid}", f"--as={value}:unlimited"],
                       capture_output=True)
    if p.returncode:
        pytest.skip(f"the limit of another process cannot be set here: {p.stderr.decode().strip()}")


@pytest.mark.parametrize("more", [0, 256 << 10, pytest.param(2 * MIB, marks=quick)])
def test_no_memory_for_the_front(more):
    """Without memory for a request, the client gets an error and the daemon continues; with memory everything works."""
    with Daemon("--pool", "1", "--max-output", "20000000") as d:
        d.execute("x = 'kept'", session_id="kept")
        limit_memory(d, more)
        seen = set()
        for _ in range(3):
            for code in ("print('x' * 12000000)", "x = 1", "#" * 4000000):
                try:
                    r = d.request("POST", "/execute", {"code": code})
                    seen.add(r.status)
                    assert r.status == 200 or r.code, r
                except (OSError, ValueError):
                    seen.add(0)
                except Exception as e:  # of http.client: cut in the middle of a head
                    assert "http.client" in type(e).__module__, e
                    seen.add(0)
        print(f"with {more >> 10} KiB: {seen}")
        assert d.p.poll() is None, d.log_text()[-1000:]
        limit_memory(d, None)
        recovers(d)
        assert d.execute("x", session_id="kept")["result"] == {"text/plain": "'kept'"}
        assert d.execute("print('x' * 12000000)").json["stdout_bytes"] == 12000001


HOG = "x = bytearray(400 << 20)\nfor i in range(0, len(x), 4096): x[i] = 1\nprint('had it all')"


@quick
def test_guests_die_first_without_memory(stopped_by):
    """Memory ends outside of any cell's limit: what dies is a guest, and neither front nor warden. Seen on the host: a process of root's
    own in the same place dies as well (the control), so the pressure is real."""
    with group("l19", memory=220 * MIB) as g:
        p = subprocess.run(in_group(g, "/usr/bin/python3", "-c", HOG), capture_output=True, timeout=60)
        landed(p.returncode == -9 and g.oom_kills() > 0, f"220 MiB do not end a process that wants 400: {p}")
        ends = set()
        with Daemon("--pool", "1", "--memory", "1G", wrapper=in_group(g)) as d:
            mine, warden = d.pid, d.warden
            for pid in (mine, warden):
                assert int(read(ADJ.format(pid))) <= int(read(ADJ.format("self"))), "its oom score is not above its starter's"
            assert all(int(read(ADJ.format(p))) >= 800 for p in (*d.cells(), *d.guests(), d.zygote))
            for _ in range(3):
                r = d.request("POST", "/execute", {"code": HOG, "timeout": 60})
                assert r.status == 503 and r.code or r.status == 200 and not r.json["success"] and "had it all" not in r.json["stdout"], r
                ends.add("refused" if r.status == 503 else f"{r.json['status']} {r.json['signal']}")
            print(f"they ended as {ends}; the group had {g.memory_peak() >> 20} MiB")
            assert ends - {"refused", "error None"}, f"nothing was killed for want of memory: {ends}"
            assert (d.pid, d.warden) == (mine, warden) and d.p.poll() is None and stat_of(warden), d.log_text()[-1000:]
            recovers(d)
    stopped_by("oom_score_adj of guests", "memory limit of the cell")


@quick
def test_unit_protects_the_daemon():
    """The service as installed puts the daemon far below everything else; a cell then raises itself."""
    unit = next((p for p in (ROOT / "dist" / "systemd").glob("caisson.service*")), None)
    assert unit and re.search(r"^OOMScoreAdjust=-9\d\d$", unit.read_text(), re.M), unit


def test_64_mib_for_the_whole_daemon():
    """64 MiB for all of it together: it serves requests that fit, and refuses the rest with a message."""
    with group("l10-memory", memory=64 * MIB) as g, Daemon("--pool", "0", "--memory", "32M", wrapper=in_group(g)) as d:
        mine, warden = d.pid, d.warden
        seen = [try_run(d, "x = bytearray(20 << 20)\nprint(len(x))", session_id=unique())[0] for _ in range(6)]
        landed(g.memory_peak() > 48 * MIB, f"nothing pressed: {g.memory_peak() >> 20} MiB")
        assert 200 in seen and d.p.poll() is None and (d.pid, d.warden) == (mine, warden), (seen, d.log_text()[-500:])
        end_all(d)
        recovers(d)
