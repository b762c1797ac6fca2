# SPDX-License-Identifier: Apache-2.0
"""test_process_lifetime.py - Processes that kill, outlive, multiply, or change their user."""
import os
import resource
import secrets
import shutil
import subprocess
import time
from pathlib import Path

import pytest

import cell_lib
from guard import mounts
from lib import EXACT, Canary, at_most, cell, landed, payload, session, start, stat_of
from cell_lib import USER, Held, build, gone, host, nonce, processes_with, said, scratch, succeeded, until, user_cell
from process import status_of

BOTH = pytest.mark.parametrize("as_user", [False, True], ids=["root", "user"])


def alive(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().split(") ")[1][0] != "Z"
    except OSError:
        return False


def sleeper(uid):
    """A process of that user on the host, which any signal ends."""
    p = subprocess.Popen(["setpriv", f"--reuid={uid}", f"--regid={uid}", "--clear-groups",
                          "sleep", "100"])
    until(lambda: (stat_of(p.pid) or ("",))[0] == "sleep", 5, "a sleeper")
    return p


# ---- signals ----------------------------------------------------------------------------

@pytest.mark.quick
@BOTH
def test_kill_everything(as_user, stopped_by):
    """kill -9 -1 and every signal to pid 1: the cell goes on, its same-user neighbours outside too."""
    with Held(["wait", "all"], payload="kill_all", ready=b"waiting", as_user=as_user,
              without="cgroup" if as_user else None) as h:
        uid = int(status_of(h.pid)["Uid"].split()[0])
        assert uid == USER if as_user else uid >= 0x70000000
        canary = sleeper(uid)
        try:
            victim = host(["/bin/kill", "-9", str(canary.pid)], uid=uid, unshare=())
            landed(victim.exit == 0 and canary.wait(5) == -9, "the same uid outside can be killed")
            canary = sleeper(uid)
            h.say()
            r = h.finish()
            assert alive(canary.pid) and canary.poll() is None, "ESCAPE: a process outside was killed"
            assert r.exit == 0 and b"done" in r.stdout, r
        finally:
            canary.kill()
            canary.wait()
    stopped_by("pid namespace", "own host uid" if not as_user else "landlock signal scope")


@pytest.mark.quick
@BOTH
def test_guess_host_pids(as_user, stopped_by):
    """SIGKILL to every pid and group 2..32768 in six ways: nothing outside is signalled."""
    with Held(["wait", "scan", "2", "32768"], payload="kill_all", ready=b"waiting", as_user=as_user,
              without="cgroup" if as_user else None) as h:
        uid = int(status_of(h.pid)["Uid"].split()[0])
        with Canary(uid=uid) as k:
            first = sleeper(uid)
            c = host([payload("kill_all"), "scan", first.pid, first.pid], uid=uid, unshare=())
            landed(first.wait(5) == -9 and f"hit kill {first.pid}" in c.stdout.decode(), c)
            h.say()
            r = h.finish()
            k.check(r.stdout)
    hits = [line for line in r.text.splitlines() if line.startswith("hit")]
    assert r.exit == 0 and hits == [], r
    stopped_by("pid namespace", "own host uid" if not as_user else "landlock signal scope")


def peek_control(secret, how=""):
    """peek against a process of the same user, outside."""
    d = payload("peek")
    return host(["/bin/sh", "-c", f"{d} victim {secret} >/dev/null & sleep 0.1; {d} $! {how}; kill -9 $!"],
                uid=USER, unshare=("--pid", "--fork", "--kill-child=SIGKILL", "--mount-proc"))


# Init must not be steered from inside: a guest that ends its own pid 1 makes a run "failed".
@pytest.mark.quick
@BOTH
def test_supervisor_is_out_of_reach(as_user, stopped_by):
    """Nothing that a guest does to pid 1 works: memory, descriptors, limits, priority, scheduling."""
    c = peek_control(nonce())
    landed({"steer-prlimit-nofile", "steer-setpriority", "steer-scheduler", "process_vm_readv",
            "open-mem"} <= succeeded(c.stdout), c)
    run = user_cell if as_user else cell
    r = run(["1"], payload="peek")
    assert r.status == "ok", r
    bad = {x for x in succeeded(r.stdout) if x.startswith("steer-") and x != "steer-getrlimit"}
    assert not bad, f"a guest steers its pid 1: {sorted(bad)}"
    stopped_by("pid 1 is another user" if not as_user else "limits are set on oneself only", "pid 1 is not dumpable")


@pytest.mark.slow
def test_guest_ends_its_pid_1_by_a_limit(stopped_by):
    """As an ordinary user pid 1 has the guest's own uid: no limit that the guest sets may kill it,
    since a cell without its pid 1 is reported as a failure of ours."""
    payload("forkers")  # orphans for pid 1 to reap: its cpu time grows
    r = user_cell(code="prlimit --pid 1 --cpu=1:1 || exit 0; exec /payload/forkers 3 x", lang="bash", timeout=30,
                  mount=[f"{session().payloads}:/payload"])
    assert r.status != "failed", f"a guest made its run a failure of ours: {r}"
    stopped_by("seccomp")


# ---- living on ---------------------------------------------------------------------

@pytest.mark.quick
@BOTH
def test_daemons_after_the_end(as_user, stopped_by):
    """Daemons that shed every tie are gone at once when the main program ends."""
    n = nonce()
    c = host([payload("survive"), "20", n, "exit"], uid=65534, stdin=b"\n", unshare=(), timeout=0.7, says=b"ready 20")
    landed(c.timed_out and c.pids_peak >= 20, f"they outlive their parent, and hold its streams: {c}")
    with Held(["20", n, "exit"], payload="survive", as_user=as_user,
              without="cgroup" if as_user else None) as h:
        landed(len(processes_with(n) - {h.pid}) == 20, "all 20 daemons are there")
        names = {Path(f"/proc/{p}/comm").read_text().strip() for p in processes_with(n)}
        assert {"caisson-warden", "caisson-init", "kthreadd"} <= names
        h.say()
        r = h.finish()
        t = time.monotonic()
        assert r.exit == 0, r
    gone(n, 1.0)
    assert time.monotonic() - t < at_most(1.5)
    stopped_by("pid namespace ends with pid 1", "cgroup kill")


@pytest.mark.quick
@BOTH
def test_daemons_after_the_timeout(as_user, stopped_by):
    n = nonce()
    run = user_cell if as_user else cell
    r = run(["20", n, "hold"], payload="survive", timeout="1" if EXACT else "3")
    assert r.status == "timeout" and r["exit_code"] == 124, r
    assert b"ready 20" in r.stdout, "void: the daemons did not come up"
    assert r.seconds < at_most(2.5), f"the end took {r.seconds - 1:.2f} s: {r}"
    gone(n, 1.0)
    stopped_by("pid namespace ends with pid 1", "cgroup kill")


# Processes that ended are freed after a while (RCU): on a busy machine the dead of a storm weigh more than the living, and the storm would end by
# its memory before the deadline that is tested here.
STORM_MEMORY = "4G"


def fork_storms(times, as_user=lambda i: False):
    """So many cells ended in a storm of 500 forkers; the longest end in seconds."""
    worst = strong = 0
    for i in range(times):
        n, user = nonce(), as_user(i)
        run = user_cell if user else cell
        r = run(["500", n], payload="forkers", pids=520, timeout="500ms" if EXACT else "1s", memory=STORM_MEMORY, **({} if user else {"cpus": 2}))
        assert r.status == "timeout", r
        gone(n, 1.0)
        worst = max(worst, r.seconds - (0.5 if EXACT else 1))
        strong += user or r.usage["pids_peak"] >= 100  # a loaded machine may be too slow for a storm
    landed(strong >= times * 2 // 3, f"{strong} storms of {times}")
    return worst


@pytest.mark.quick
def test_fork_faster_than_kill(stopped_by):
    """Hundreds of chains that fork and end: the kill wins, in less than 2 s."""
    n = nonce()
    s = start(["500", n], payload="forkers", pids=520, timeout="2" if EXACT else "4", memory=STORM_MEMORY, cpus=2)

    def forkers():
        d = s.cgroup("pids" if "pids" in mounts() else "unified")
        return int((d / "pids.current").read_text()) if d else 0

    until(lambda: forkers() > 100, 5, "100 forkers at once")
    first = s.guests()
    landed(until(lambda: s.guests() - first, 3, "other pids"), "they change their pids")
    assert s.finish().status == "timeout"
    gone(n, 1.0)
    worst = fork_storms(3)
    assert worst < at_most(2), f"the end of a fork storm took {worst:.2f} s"
    stopped_by("pid namespace ends with pid 1", "cgroup kill")


@pytest.mark.slow
def test_fork_faster_than_kill_100_times():
    worst = fork_storms(100, lambda i: i % 4 == 3)
    assert worst < at_most(2), f"the end of a fork storm took {worst:.2f} s"


# ---- unusual ways to start a program ---------------------------------------------------------

def has_m32():
    try:
        build("exec32", "-m32", "-nostdlib", "-static", "-fno-pic", "-no-pie", "-fno-stack-protector")
        return True
    except subprocess.CalledProcessError:
        return False


@pytest.mark.quick
def test_every_way_to_exec(stopped_by):
    """memfd, /proc/self/fd, the loader, nested scripts: the same posture, read from outside."""
    build("exec_roads")
    n = nonce()
    m32 = has_m32()
    if m32:
        with scratch(0o777) as d:
            c = host([session().payloads / "exec32"], cwd=d, uid=USER)
            landed(c.exit == 7 and (d / "made-by-32").exists(), f"32-bit programs run here: {c}")
    else:
        print("the compiler has no 32-bit target: that road is not tried")
    with Held([n, *(["/payload/exec32"] if m32 else [])], argv=["/payload/exec_roads"],
              mount=[f"{session().payloads}:/payload"]) as h:
        main = status_of(h.pid)
        until(lambda: h.text.count("held ") >= 6, 5, f"all roads: {h.text}")
        holders = [p for p in processes_with(n) if p != h.pid and b"hold" in
                   Path(f"/proc/{p}/cmdline").read_bytes().split(b"\0")]
        for p in holders:
            st = status_of(p)
            for key in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb", "NoNewPrivs", "Seccomp",
                        "Seccomp_filters", "Uid", "Gid", "Groups"):
                assert st[key] == main[key], f"{cell_lib.cmdline(p)}: {key} {st[key]} is not {main[key]}"
        assert len(holders) == 6, [cell_lib.cmdline(p) for p in holders]
        text = h.text
        made = list(Path(f"/proc/{h.pid}/root/workspace").glob("made-by-32"))
        h.say()
    for road in ("plain", "memfd", "procfd", "loader", "root", "shebang"):
        assert f"held {road} unshare 1" in text, text
    if m32:
        assert not made and "program32 signal" in text, f"ESCAPE: a 32-bit program had its way: {text}"
    stopped_by("seccomp is inherited by every exec", "foreign ABI refused")


# ---- nested namespaces -----------------------------------------------------------------------

NAMESPACES = ("user", "mnt", "pid", "net", "ipc", "uts", "cgroup", "time")


@pytest.mark.quick
@BOTH
def test_no_nested_namespaces(as_user, stopped_by):
    """unshare and setns of every kind: refused; without seccomp the second layer refuses."""
    run = user_cell if as_user else cell
    tries = {f"unshare-{k}" for k in NAMESPACES} | {"unshare-user-mnt"} | {f"setns-{k}" for k in NAMESPACES}
    with scratch(0o777) as d:
        c = host([payload("mount_all"), d, "/usr"], uid=USER, unshare=("--mount",))
        landed("unshare-user" in succeeded(c.stdout), c)
    for without in (None, "seccomp"):
        weaker = ",".join(x for x in (without, "cgroup" if as_user else None) if x) or None
        r = run(["/tmp", "/usr"], payload="mount_all", without=weaker)
        assert r.status == "ok", r
        assert not succeeded(r.stdout) & tries, r
        assert "mnt-namespace same" in r.text
        if not without:
            assert all(said(r.stdout)[t][1] == "EPERM" for t in tries), r
    stopped_by("seccomp", "max_user_namespaces 0 and no capabilities")


@pytest.mark.quick
def test_clone_and_clone3(stopped_by):
    """clone with each namespace flag: EPERM; clone3: ENOSYS, and no process either way."""
    code = """
import ctypes, os, struct
libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long
SIGCHLD = 17
for name, flag in {'ns': 0x20000, 'cgroup': 0x2000000, 'uts': 0x4000000, 'ipc': 0x8000000,
                   'user': 0x10000000, 'pid': 0x20000000, 'net': 0x40000000}.items():
    r = libc.syscall(56, ctypes.c_ulong(flag | SIGCHLD), None, None, None, None)
    if r == 0: os._exit(0)
    print('clone', name, r, ctypes.get_errno())
    args = struct.pack('11Q', flag, 0, 0, 0, SIGCHLD, 0, 0, 0, 0, 0, 0)
    r = libc.syscall(435, args, ctypes.c_ulong(len(args)))
    if r == 0: os._exit(0)
    print('clone3', name, r, ctypes.get_errno())
r = libc.syscall(435, struct.pack('8Q', 0, 0, 0, 0, SIGCHLD, 0, 0, 0), ctypes.c_ulong(64))
if r == 0: os._exit(0)
print('clone3 plain', r, ctypes.get_errno())
"""
    c = host(["/usr/bin/python3", "-c", code], uid=USER)
    landed("clone user -1" not in c.stdout.decode() and "clone3 plain -1" not in c.stdout.decode(), c)
    r = cell(code=code)
    lines = r.text.splitlines()
    assert r.status == "ok" and len(lines) == 15, r
    for line in lines:
        assert line.endswith("-1 1" if line.startswith("clone ") else "-1 38"), line
    r = cell(code=code, without="seccomp")
    assert not [x for x in r.text.splitlines() if " -1 " not in x and x.split()[1] != "plain"], r
    stopped_by("seccomp", "max_user_namespaces 0 and no capabilities")


# ---- set-user-id -----------------------------------------------------------------------------

def plant(directory, name, mode, owner=0):
    """A copy of the payload with such bits, as an administrator might have left it."""
    path = directory / name
    shutil.copy(payload("set_id"), path)
    os.chown(path, owner, owner)
    path.chmod(mode)
    return path


@pytest.mark.quick
@BOTH
def test_setuid_binaries_give_nothing(as_user, stopped_by):
    """set-user-id, set-group-id and file-capability programs in a mount: same ids, no canary."""
    n = nonce()
    run = user_cell if as_user else cell
    with scratch() as d:
        secret = d / "secret"
        secret.write_text(n)
        secret.chmod(0o600)
        suid, sgid = plant(d, "suid", 0o4755), plant(d, "sgid", 0o2755)
        caps = plant(d, "caps", 0o755)
        subprocess.run(["setcap", "cap_setuid,cap_dac_read_search+ep", str(caps)], check=True)
        for prog in (suid, caps):
            c = host([prog, secret], uid=USER)
            landed(n in c.stdout.decode(), f"{prog.name} gives root outside: {c}")
        landed("gid 12345 0 0" in host([sgid, secret], uid=USER).stdout.decode(), "setgid works outside")
        for prog in ("suid", "sgid", "caps"):
            r = run(["/m/secret"], argv=[f"/m/{prog}"], mount=[f"{d}:/m"])
            first = r.text.splitlines()[0]
            assert r.status == "ok" and first == "start uid 1000 1000 1000 gid 1000 1000 1000", r
            assert not {"setuid-0", "setresuid-0", "setgid-0"} & succeeded(r.stdout), r
            if as_user:  # as root the caller's own files are the agent's
                assert n not in r.text, f"READ: {r}"
    stopped_by("nosuid", "no-new-privileges")


@pytest.mark.quick
def test_guest_makes_its_own_and_uses_the_images(stopped_by):
    """chmod u+s of an own file, su and others of /usr: no change of ids."""
    have = [p for p in ("/usr/bin/su", "/usr/bin/newgrp", "/usr/bin/mount", "/usr/bin/passwd",
                        "/usr/bin/newuidmap", "/usr/bin/chage") if Path(p).exists()
            and os.stat(p).st_mode & 0o6000]
    landed(have, "there are set-id programs in /usr")
    # A set-id program, stopped by its own input, is looked at from outside while it runs.
    code = "import os, subprocess, sys, shutil\n" \
           "shutil.copy('/usr/bin/cat', '/tmp/cat')\n" \
           "try: os.chmod('/tmp/cat', 0o6755)\n" \
           "except PermissionError: pass\n" \
           "p = [subprocess.Popen(['/tmp/cat'], stdin=subprocess.PIPE)]\n" \
           f"p += [subprocess.Popen([x], stdin=subprocess.PIPE) for x in {have[:2]!r}]\n" \
           "print('ready', flush=True); sys.stdin.read()\n"
    with Held(code=code) as h:
        own = status_of(h.pid)
        for p in h.guests():
            st = status_of(p)
            assert st["Uid"] == own["Uid"] and st["Gid"] == own["Gid"] and st["CapEff"].strip() == "0" * 16, \
                f"{cell_lib.cmdline(p)}: {st['Uid']} {st['CapEff']}"
    stopped_by("nosuid", "no-new-privileges")


@pytest.mark.quick
@BOTH
def test_setuid_left_on_a_writable_mount(as_user, stopped_by):
    """A guest cannot leave a set-user-id file of the caller on the host."""
    run = user_cell if as_user else cell
    n = nonce()
    owner = USER if as_user else 0
    code = """
import ctypes, os, shutil
libc = ctypes.CDLL(None, use_errno=True)
def make(name): shutil.copy('/payload/set_id', '/m/' + name); return '/m/' + name
def attempt(f, *a):
    try: f(*a)
    except OSError as e: print(e)
attempt(os.chmod, make('chmod'), 0o6755)
fd = os.open(make('fchmod'), os.O_RDONLY); attempt(os.fchmod, fd, 0o6755)
libc.syscall(268, -100, make('fchmodat').encode(), 0o6755)
libc.syscall(452, -100, make('fchmodat2').encode(), 0o6755, 0)
data = open('/payload/set_id', 'rb').read()
os.umask(0)
def fill(name, fd):
    if fd >= 0: os.write(fd, data); os.close(fd)
try: fill('open', os.open('/m/open', os.O_CREAT | os.O_WRONLY, 0o6755))
except OSError as e: print(e)
fill('creat', libc.syscall(85, b'/m/creat', 0o6755))
import struct
how = struct.pack('3Q', os.O_CREAT | os.O_WRONLY, 0o6755, 0)
fill('openat2', libc.syscall(437, -100, b'/m/openat2', how, 24))
libc.syscall(133, b'/m/mknod', 0o106755, 0)
if os.path.exists('/m/mknod'): shutil.copyfile('/payload/set_id', '/m/mknod')
libc.syscall(259, -100, b'/m/mknodat', 0o106755, 0)
attempt(os.mkdir, '/m/dir', 0o2777); attempt(os.chmod, '/m/dir', 0o2777)
attempt(os.chmod, make('group'), 0o2755)
print(sorted(os.listdir('/m')))
"""
    with scratch(0o755, owner) as d:
        secret = d.parent / f"secret-{secrets.token_hex(4)}"
        secret.write_text(n)
        secret.chmod(0o600)
        os.chown(secret, owner, owner)
        payload("set_id")
        try:
            r = run(code=code, mount=[f"{d}:/m:rw", f"{session().payloads}:/payload"])
            assert r.status == "ok", r
            made = sorted(p.name for p in d.iterdir())
            landed({"chmod", "fchmod", "fchmodat", "fchmodat2", "group"} <= set(made), f"the guest can write there: {made} {r}")
            # An empty file with such bits loses them with the first byte that a guest writes.
            bits = {p.name: oct(p.stat().st_mode & 0o6000) for p in d.iterdir()
                    if p.is_file() and p.stat().st_size and p.stat().st_mode & 0o6000}
            reached = {name: host([d / name, secret], uid=23456).stdout.decode() for name in bits}
            proof = sorted(k for k, v in reached.items() if n in v)
        finally:
            secret.unlink()
    assert not proof, f"ESCAPE: another user of the host became uid {owner} by {proof}"
    assert not bits, f"set-id files on the host: {bits}"
    # Without the filter such a file can be made in a cell: there is one layer against it.
    stopped_by("seccomp: no set-id bits")


@pytest.mark.quick
def test_user_strings():
    """--user: nothing spells the cell's root, or an id outside of its range."""
    for user in ("0", "root", "-1", "4294967295", "1:", ":0", " 0", "0x0", "00", "1000:0", "0:1000", "65536", "4294967296",
                 "", "agent\n0", "+0"):
        r = cell(argv=["/usr/bin/id"], user=user, json_result=False)
        assert b"uid=0" not in r.stdout and b"gid=0" not in r.stdout, r
        assert r.exit == 125 and r.stderr.startswith(b"caisson: ") and r.stderr.count(b"\n") == 1, f"{user!r}: {r}"


# ----  -------------------------------------------------------------------------------------

def offset():
    """The offset of the machine's clock to one that cannot be set. A reader that is delayed between the two sees too little."""
    return max(time.time() - time.monotonic() for _ in range(50))


@pytest.mark.quick
def test_clock_cannot_be_set(stopped_by):
    """The machine's clock does not move, whatever is tried."""
    c = host([payload("set_clock"), "0"])
    landed({"adjtimex", "clock_adjtime"} <= succeeded(c.stdout), c)
    for without in (None, "seccomp"):
        before = offset()
        r = cell([str(86400 * 365)], payload="set_clock", without=without)
        assert r.status == "ok" and not succeeded(r.stdout), r
        assert abs(offset() - before) < 0.5, "ESCAPE: the clock was moved"
    stopped_by("seccomp", "no CAP_SYS_TIME in the host's user namespace")


@pytest.mark.quick
@BOTH
def test_core_dumps(as_user, stopped_by):
    """A crash with a full heap, in a host directory it may write: no core there, none anywhere."""
    pattern = Path("/proc/sys/kernel/core_pattern").read_text().strip()
    run = user_cell if as_user else cell
    owner = USER if as_user else 0
    n = nonce()
    with scratch(0o777, owner) as d:
        if pattern.startswith(("|", "/")):
            print(f"core_pattern is {pattern!r}: cores do not land in the working directory; no control")
        else:
            c = host([payload("dump_core"), "8", n], uid=USER, cwd=d, limits=["--core=unlimited"])
            landed(any(p.name.startswith("core") for p in d.iterdir()), c)
            for p in d.iterdir():
                p.unlink()
        r = run(["64", n], payload="dump_core", mount=[f"{d}:/m:rw"], workdir="/m")
        assert r.status == "signal" and r["signal"] == "ABRT" and r.exit == 134, r
        assert said(r.stdout)["setrlimit-core"] == (-1, "EPERM"), r
        assert list(d.iterdir()) == [], f"WRITE: {list(d.iterdir())}"
    stopped_by("RLIMIT_CORE 0, hard")


def test_core_limit_of_every_process():
    """The hard core limit is 0 for init and command, whatever the caller's was."""
    landed(resource.getrlimit(resource.RLIMIT_CORE)[1] == resource.RLIM_INFINITY,
           "the caller may have cores")
    with Held(code="import sys; print('ready', flush=True); sys.stdin.read()",
              caller=["prlimit", "--core=unlimited", "--"]) as h:
        for pid in (h.pid, h.init, h.warden):
            line = next(x for x in Path(f"/proc/{pid}/limits").read_text().splitlines() if "core" in x)
            assert line.split()[4:6] == ["0", "0"], f"{cell_lib.cmdline(pid)}: {line}"
