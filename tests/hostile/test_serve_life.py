# SPDX-License-Identifier: Apache-2.0
"""test_serve_life.py - Processes that kill and outlive, behind `caisson serve`: in a kernel (/execute) and in a command (/exec) of a named sandbox."""
import contextlib
import io
import os
import signal
import subprocess
import tarfile
import time
from pathlib import Path

import daemon_lib
import pytest
from process import Later, call_yourself, status_of, unique
from guard import mounts
from lib import Canary, at_most, control, landed, payload
from cell_lib import USER, cell_dirs, gone, host, nonce, processes_with, read, said, succeeded, until
from named import Box, ours, starts
from snapshot import stat_of

daemon, hostile_test, whole_module = daemon_lib.daemon, daemon_lib.hostile_test, daemon_lib.whole_module
quick = pytest.mark.quick
slow = pytest.mark.slow


def sleeper(uid):
    p = subprocess.Popen(["setpriv", f"--reuid={uid}", f"--regid={uid}", "--clear-groups", "sleep", "100"])
    until(lambda: (stat_of(p.pid) or ("",))[0] == "sleep", 5, "a sleeper")
    return p


def check_killable(uid):
    """R1: a process of that user outside can kill its processes."""
    victim = sleeper(uid)
    host(["/bin/kill", "-9", str(victim.pid)], uid=uid, unshare=())
    landed(victim.wait(5) == -9, "the same user outside can be killed")


# ---- signals ---------------------------------------------------------------------------------------------------

KILL_ALL = """
import os, signal
if os.fork() == 0:
    for s in range(1, 65):
        try: os.kill(1, s)
        except (OSError, ValueError): pass
    os.kill(-1, 9)
    os._exit(0)
os.wait()
"""


@quick
@pytest.mark.parametrize("road", ["exec", "execute"])
def test_kill_everything_in_a_sandbox(daemon, road, stopped_by):
    """kill -9 -1, and every signal to pid 1: the sandbox loses its processes, reports this, and continues; others are not affected."""
    with Box(daemon) as box, Box(daemon) as other:
        assert other.execute("x = 5")["status"] == "ok" and box.execute("y = 1")["status"] == "ok"
        inside, n = box.find()
        init, uid = box.init(inside), box.uid(inside)
        check_killable(uid)
        canary = sleeper(uid)
        same = starts([*ours(daemon), init, canary.pid])
        try:
            if road == "exec":
                r = box.exec(box.payload("kill_all"), "all")
                assert r["exit_code"] == 0 and "kill-minus-one 0" in r["stdout"], r
            else:
                r = box.execute(KILL_ALL)
                assert r["status"] == "signal" and r["signal"] == "KILL" and r["state"] == "reset", r
            gone(n, 2.0)        # it did land, inside
            assert starts(same) == same, "ESCAPE: a process outside, or pid 1, was ended"
        finally:
            canary.kill()
            canary.wait()
        r = box.execute("'y' in globals()")
        if r["state"] == "reset":       # the code was sent to the old kernel while that died, and reports it
            r = box.execute("'y' in globals()")
        assert r["result"]["text/plain"] == "False", r
        assert box.exec("echo", "again")["stdout"] == "again\n"
        r = other.execute("x")
        assert r["result"]["text/plain"] == "5" and other.about()["epoch"] == 0, r
    stopped_by("pid namespace", "own host uid")


SCAN = """
import ctypes, os, signal
libc = ctypes.CDLL(None)
hits = []
for pid in range(2, 32769):
    if pid in (os.getpid(), os.getpgrp()):
        continue
    if libc.kill(pid, 9) == 0: hits.append(('kill', pid))
    if libc.syscall(200, pid, 9) == 0: hits.append(('tkill', pid))
    fd = libc.syscall(434, pid, 0)
    if fd >= 0:
        hits.append(('pidfd', pid)); os.close(fd)
    if libc.kill(-pid, 9) == 0: hits.append(('group', pid))
print(hits)
"""


@quick
@pytest.mark.parametrize("road", ["exec", "execute"])
def test_guess_host_pids(daemon, road, stopped_by):
    """SIGKILL to every pid there can be: front, warden, zygote, pid 1, the other sandbox and a canary of the same user live on."""
    with Box(daemon) as box, Box(daemon) as other:
        victim, _ = other.find()
        box.execute("1")
        inside, n = box.find()
        init, uid = box.init(inside), box.uid(inside)
        check_killable(uid)
        with Canary(uid=uid) as canary:
            same = starts([*ours(daemon), init, victim, other.init(victim), canary.pid])
            landed(len(same) == 7, same)
            if road == "exec":
                r = box.exec(box.payload("kill_all"), "scan", "2", "32768")
                hits = {int(line.split()[2]) for line in r["stdout"].splitlines() if line.startswith("hit")}
            else:
                r = box.execute(SCAN, timeout=60)
                hits = {pid for _, pid in eval(r["stdout"])} if r["stdout"] else set()
            assert starts(same) == same, f"ESCAPE: {set(same) - set(starts(same))} ended"
            canary.check(str(r))
        gone(n, 2.0)
        assert all(pid < 1000 for pid in hits), f"it sees numbers that no process in there has: {hits} {r}"
    stopped_by("pid namespace", "own host uid; Landlock signal scope")


# ---- living on ---------------------------------------------------------------------------------------------

def survivors(n):
    """Host pids of those that carry the nonce, whatever they call themselves."""
    return processes_with(n)


@quick
@pytest.mark.parametrize("end", ["delete", "kill", "stop"])
def test_daemons_go_with_their_sandbox(daemon, end, stopped_by):
    """Daemons without parent, session, name or signals outlive their command in a sandbox, as a daemon may; and not their sandbox."""
    n = nonce()
    c = host([payload("survive"), "20", n, "exit"], uid=USER, stdin=b"\n", unshare=(), timeout=0.7, says=b"ready 20")
    landed(c.timed_out and c.pids_peak >= 20, c)
    with Box(daemon) as box:
        box.execute("1")
        r = box.exec(box.payload("survive"), 20, n, "exit", stdin="\n")
        assert r["exit_code"] == 0 and "ready 20" in r["stdout"], r
        landed(len(survivors(n)) == 20, f"{len(survivors(n))} live on")
        names = {read(f"/proc/{p}/comm").strip() for p in survivors(n)}
        assert {"caisson-warden", "caisson-init", "kthreadd"} <= names
        t = time.monotonic()
        if end == "delete":
            assert box.remove() == 204
        else:
            r = box.request("POST", f"/{end}", {"grace_seconds": 0} if end == "stop" else {})
            assert r.status in (200, 202), r
        gone(n, 1.0)
        took = time.monotonic() - t
        assert took < at_most(1.5), f"{took:.2f} s"
    stopped_by("pid namespace ends with pid 1", "cgroup kill")


@quick
def test_daemons_of_a_session_that_timed_out(daemon, stopped_by):
    """They outlive neither the time limit of the code that made them nor a sandbox that was made for one call."""
    n = nonce()
    code = f"import os\nif os.fork() == 0:\n os.setsid()\n os.execv('/usr/bin/python3', ['python3', '-c', 'import time; time.sleep(999)', '{n}'])\n"
    wait = "import time\nwhile True:\n try: time.sleep(99)\n except BaseException: pass\n"
    r = daemon.request("POST", "/execute", {"code": code + wait, "timeout": 1}).json
    assert r["status"] == "timeout", r
    gone(n, 1.0)
    r = daemon.execute(code + f"for i in range(500):\n if any('{n}' in open('/proc/%s/cmdline' % p).read() for p in os.listdir('/proc')"
                       " if p.isdigit() and p not in ('1', str(os.getpid()))): print('up'); break\n import time; time.sleep(0.01)")
    assert r.stdout == b"up\n", r
    gone(n, 1.0)
    with Box(daemon) as box:
        r = box.execute(code + wait, timeout=1)
        assert r["status"] == "timeout" and r["state"] == "reset", r
        gone(n, 1.0)
    stopped_by("everything in the cell is killed")


COUNTER = "pids" if "pids" in mounts() else "unified"


def storms(d, times):
    """Sandboxes removed in a storm of forkers; the longest removal in seconds."""
    worst = strong = 0
    for i in range(times):
        n = nonce()
        with Box(d, pids=520, memory_mib=1024, cpus=2) as box:
            run = box.payload("forkers")
            count = Path(cell_dirs(box.init())[COUNTER]) / "pids.current"
            if i % 2:
                box.start(run, 500, n)
            else:
                Later(lambda run=run, n=n, box=box: box.request("POST", "/execute", {
                    "code": f"import subprocess; subprocess.run(['{run}', '500', '{n}'])", "timeout": 60}))
            until(lambda n=n: processes_with(n), 60, "forkers")
            with contextlib.suppress(AssertionError, OSError):  # a loaded machine may be too slow for a storm, or its cell has met its limit
                until(lambda count=count: int(count.read_text()) >= 100, 0.3)
                strong += 1
            t = time.monotonic()
            assert box.remove() == 204
            gone(n, 2.0)
            worst = max(worst, time.monotonic() - t)
    landed(strong >= times // 2, f"{strong} storms of {times}")
    return worst


@quick
def test_fork_faster_than_removal(daemon, stopped_by):
    worst = storms(daemon, 2)
    assert worst < at_most(2), f"{worst:.2f} s"
    stopped_by("pid namespace ends with pid 1", "cgroup kill")


@slow
def test_fork_faster_than_removal_100_times(daemon):
    signal.alarm(900)
    worst = storms(daemon, 100)
    assert worst < at_most(2), f"{worst:.2f} s"


STORM = """
import os, signal, time
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
while True:
    try:
        if os.fork() == 0:
            x = b'x' * (8 << 20)
            time.sleep(60)
            os._exit(0)
    except OSError:
        time.sleep(0.01)
"""


def ended_for_memory(init):
    """How many processes of a cell the Linux kernel has ended, by its own count."""
    dirs = cell_dirs(init)
    where = Path(dirs["memory"]) / "memory.oom_control" if "memory" in mounts() else Path(dirs["unified"]) / "memory.events"
    return dict(line.split() for line in where.read_text().splitlines()).get("oom_kill", "0")


@quick
def test_memory_storm(daemon, stopped_by):
    """Processes that take memory again and again: the Linux kernel ends many of them, and the daemon has nothing to do with it. Pid 1, the
    files and the other sandboxes stay."""
    c = control([payload("fill_memory"), "children", "160"], memory=300 << 20)
    landed(c.exit == 0 and c.memory_peak > 150 << 20, c)
    with Box(daemon, memory_mib=64, pids=32) as box, Box(daemon, memory_mib=64) as other:
        assert other.execute("x = 5")["status"] == "ok"
        box.put("f", b"kept")
        init = box.init()
        busy, work = daemon.cpu(), int(read(f"/proc/{daemon.warden}/schedstat").split()[0])
        n = nonce()
        box.start("python3", "-c", STORM, n)
        landed(until(lambda: int(ended_for_memory(init)) >= 30, 20, "processes that end for memory"), "a storm")
        used = daemon.cpu() - busy + (int(read(f"/proc/{daemon.warden}/schedstat").split()[0]) - work) / 1e9
        assert used < 1.5, f"front and warden worked for {used:.2f} s"
        assert other.execute("print(x)")["stdout"] == "5\n" and daemon.good() < at_most(2)
        assert stat_of(init), "pid 1 ended"
        until(lambda: box.shell("kill -9 -1") and not processes_with(n), 20, "the end of the storm")
        r = box.shell("cat f")
        assert (r["stdout"], r["files"]) == ("kept", "kept") and stat_of(init), r
    stopped_by("memory cgroup; oom_score_adj of pid 1")


@quick
def test_memory_that_no_process_holds(daemon, stopped_by):
    """Memory that stays when every process is dead: at last pid 1 is the only one left to end. Until then files are there, and no answer
    says that they are kept when they are not."""
    c = control([payload("fill_memory"), "crumbs", "64"])
    landed(c.exit == 0 and c.memory_peak > 60 << 20, c)
    ends = set()
    for _ in range(4):
        with Box(daemon, memory_mib=32) as box:
            run = box.payload("fill_memory")
            box.put("f", b"kept")
            for _ in range(8):
                r = box.exec(run, "crumbs", 64)
                assert r["cause"] == "memory" and r["exit_code"] == 137, r
                f = box.request("GET", "/files?path=f")
                ends.add((r["files"], f.status))
                if r["files"] == "lost" or f.status == 409:  # the file call was the one that told it
                    assert (f.status == 404 or f.json["error"]["files"] == "lost") and box.about()["epoch"] > 0, f
                    break
                assert f.status == 200 and f.body == b"kept" or f.status == 503 and f.json["error"]["code"] == "file_call_ended", f
    landed(("kept", 200) in ends, ends)
    stopped_by("memory cgroup; oom_score_adj of pid 1")


@quick
def test_uninterruptible(daemon, stopped_by):
    """A process in state D (held by its vfork child): a timeout, an interrupt and a removal are bounded all the same."""
    def held(n):
        return [p for p in processes_with(n) if (stat_of(p) or ("", ""))[1] == "D"]

    n = nonce()
    with Box(daemon) as box:
        run = box.payload("busy")
        late = Later(lambda: box.exec(run, "vfork", n, timeout=2))
        landed(until(lambda: held(n), 10, "a process in state D"), "it waits where no signal but SIGKILL reaches it")
        assert late.result()["status"] == "timeout"
        gone(n, 1.0)
        box.start(run, "vfork", n)
        until(lambda: held(n), 10, "a process in state D")
        t = time.monotonic()
        assert box.remove() == 204
        gone(n, 1.0)
        assert time.monotonic() - t < at_most(1.5)
    stopped_by("SIGKILL to the pid namespace")


@quick
def test_named_like_one_of_ours(daemon, stopped_by):
    """A kernel that names itself like the warden, init or the zygote is ended as a kernel; the true ones stay."""
    for comm in ("caisson-warden", "caisson-front", "kthreadd"):
        name = unique()
        code = call_yourself(comm) + "import ctypes, os, signal\nlibc = ctypes.CDLL(None)\nlibc.prctl(1, 0); libc.prctl(36, 1); libc.prctl(4, 0)\n" \
            "for s in (1, 2, 3, 13, 15): signal.signal(s, signal.SIG_IGN)\n"
        same = starts([daemon.warden, daemon.pid, daemon.zygote])
        other = daemon.named(comm)
        assert daemon.execute(code, session_id=name).status == "ok"
        kernel = until(lambda comm=comm, other=other: daemon.named(comm) - other, 5, "a kernel of that name").pop()
        assert daemon.end_session(name).status == 204
        until(lambda kernel=kernel: not stat_of(kernel), 1, "its end")
        assert starts(same) == same
    stopped_by("ended by pid namespace and cgroup, never by name")


# ---- nested namespaces --------------------------------------------------------------------------------------------

FLAGS = {"ns": 0x20000, "cgroup": 0x2000000, "uts": 0x4000000, "ipc": 0x8000000, "user": 0x10000000, "pid": 0x20000000,
         "net": 0x40000000, "time": 0x80}
NEST = f"""
import ctypes, os, struct, time
libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long
won = []
for name, flag in {FLAGS!r}.items():
    if libc.unshare(flag) == 0: won.append('unshare ' + name)
    if name != 'time':
        r = libc.syscall(56, ctypes.c_ulong(flag | 17), None, None, None, None)
        if r == 0: time.sleep(3); os._exit(0)
        if r > 0: won.append('clone ' + name)
    a = struct.pack('11Q', flag, 0, 0, 0, 17, 0, 0, 0, 0, 0, 0)
    r = libc.syscall(435, a, ctypes.c_ulong(len(a)))
    if r == 0: time.sleep(3); os._exit(0)
    if r > 0: won.append('clone3 ' + name)
    for pid in (1, os.getpid()):
        try:
            fd = os.open('/proc/%d/ns/%s' % (pid, 'mnt' if name == 'ns' else name), os.O_RDONLY)
            if libc.setns(fd, 0) == 0: won.append('setns ' + name)
        except OSError: pass
print(won, flush=True)
"""


@quick
def test_no_nested_namespaces(daemon, stopped_by):
    """unshare, setns, clone and clone3 of every kind, from a kernel and from a command: every process is in the cell's namespaces."""
    c = host(["/usr/bin/python3", "-c", NEST], uid=USER)
    landed("unshare user" in c.stdout.decode(), c)
    with Box(daemon) as box:
        pid, n = box.find()
        space, init = os.readlink(f"/proc/{pid}/ns/pid"), box.init(pid)
        r = box.execute(NEST)
        assert r["stdout"] == "[]\n", r
        p = box.start("python3", "-c", NEST + "time.sleep(100)", n)
        until(lambda: box.request("GET", f"/processes/{p}/output").body, 10, "its word")
        assert box.request("GET", f"/processes/{p}/output").body == b"[]\n"
        assert len(processes_with(n)) == 2, "something was cloned"
        for g in box.guests(space):
            for kind in ("mnt", "cgroup", "uts", "ipc", "user", "pid", "net", "time"):
                assert os.readlink(f"/proc/{g}/ns/{kind}") == os.readlink(f"/proc/{init}/ns/{kind}"), (g, kind)
        r = box.exec(box.payload("mount_all"), "/tmp", "/usr")
        assert not {x for x in succeeded(r["stdout"]) if x.startswith(("unshare", "setns", "mount"))}, r
        landed(said(r["stdout"])["unshare-user"][1] == "EPERM", r)
    stopped_by("seccomp", "max_user_namespaces 0 and no capabilities")


# ---- set-user-id ---------------------------------------------------------------------------------------------------

def tar_with_bits(name, data):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as t:
        for mode, owner in ((0o6755, 0), (0o4755, 1000)):
            info = tarfile.TarInfo(f"{name}-{mode:o}-{owner}")
            info.size, info.mode, info.uid, info.gid = len(data), mode, owner, owner
            t.addfile(info, io.BytesIO(data))
    return out.getvalue()


@quick
def test_set_id_programs(daemon, stopped_by):
    """Uploaded with such bits (refused, or the bits are gone), made inside, or the image's own: no process is another user."""
    data = payload("set_id").read_bytes()
    with Box(daemon) as box:
        for mode in ("4755", "6755", "2755", "04755"):
            r = box.request("PUT", f"/files?path=suid&mode={mode}", data)
            assert r.status == 422 and r.code, r
        assert box.request("PUT", "/files/tar?path=t&parents=true", tar_with_bits("suid", data)).status == 200
        box.put("own", data, mode="755")
        box.execute("import os\nfor m in (0o4755, 0o2755, 0o6755):\n try: os.chmod('/workspace/own', m)\n except OSError as e: print(e)")
        pid, _ = box.find()
        root = f"/proc/{pid}/root/workspace"
        bits = [p for p in [f"{root}/own", *(f"{root}/t/{f}" for f in os.listdir(f"{root}/t"))] if os.stat(p).st_mode & 0o4000]
        bits += [f for f in os.listdir(f"{root}/t") if os.stat(f"{root}/t/{f}").st_mode & 0o2000]
        assert not bits, f"set-id files in a sandbox: {bits}"
        landed(os.stat(f"{root}/own").st_mode & 0o2000, "code in a cell may set the set-group-id bit")
        landed(len(os.listdir(f"{root}/t")) == 2, "they were unpacked")
        uid = status_of(pid)["Uid"]
        for path in ("/workspace/own", *(f"/workspace/t/{f}" for f in os.listdir(f"{root}/t"))):
            r = box.exec(path, "/etc/shadow")
            assert r["stdout"].startswith("start uid 1000 1000 1000 gid 1000 1000 1000"), r
            assert not {"setuid-0", "setresuid-0", "setgid-0"} & succeeded(r["stdout"]), r
        images = [p for p in ("/usr/bin/su", "/usr/bin/newgrp", "/usr/bin/mount", "/usr/bin/passwd") if os.stat(p).st_mode & 0o6000]
        landed(images, "there are set-id programs in the image")
        space = os.readlink(f"/proc/{pid}/ns/pid")
        init = box.init(pid)
        for p in images:
            box.start(p, stdin=True)
        until(lambda: len(box.guests(space)) > 2, 5, "one of them")
        for g in box.guests(space) - {init}:
            with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # some end by themselves, at any moment
                st = status_of(g)
                assert st["Uid"] == uid and st["CapEff"].strip() == "0" * 16 and st["NoNewPrivs"].strip() == "1", (st["Name"], st["Uid"])
    stopped_by("seccomp: no set-id bits", "nosuid; no-new-privileges")
