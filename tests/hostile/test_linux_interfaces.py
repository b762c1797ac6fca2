# SPDX-License-Identifier: Apache-2.0
"""test_linux_interfaces.py - The Linux kernel's interfaces, as real attempts.

test_syscall_matrix.py checks that every system call number answers as in the policy. Here
are attempts that have an effect when they succeed, each with a control that has it.
"""
import contextlib
import fcntl
import os
import pty
import re
import select
import signal
import subprocess
import termios
import time
from pathlib import Path

import pytest

import cell_lib
from daemon_lib import PYTHON, Daemon
from lib import cell, command, host_env, landed, payload, start
from cell_lib import USER, Held, host, nonce, said, scratch, succeeded, user_cell
from process import Later, below, status_of

BOTH = pytest.mark.parametrize("as_user", [False, True], ids=["root", "user"])
# The same without the filter, to see the second layer alone, is for the whole suite.
LAYERS = pytest.mark.parametrize("layer", [pytest.param(None, marks=pytest.mark.quick, id="all-layers"),
                                           pytest.param("seccomp", id="without-seccomp")])


def weaker(layer, as_user):
    return ",".join(x for x in (layer, "cgroup" if as_user else None) if x) or None


def runner(as_user):
    return user_cell if as_user else cell


# ---- other entries ------------------------------------------------------------------------

@pytest.mark.quick
@BOTH
def test_files_made_through_other_system_call_entries(as_user, stopped_by):
    """int 0x80, the x32 bit, io_uring: a file made that way would be on the host for all to see."""
    owner = USER if as_user else 0
    with scratch(0o755, owner) as d, scratch(0o777) as e:
        c = host([payload("foreign_abi"), e])
        there = {p.name for p in e.iterdir()}
        landed({"plain", "int80"} <= there, f"int 0x80 works outside: {there} {c}")
        tried = {"int80"}
        for name, why in (("x32", "this kernel has no x32"), ("uring", "io_uring is off here")):
            if name in there:
                tried.add(name)
            else:
                print(f"{name}: {why}: no control for it")
        r = runner(as_user)(["/m"], payload="foreign_abi", mount=[f"{d}:/m:rw"])
        assert {p.name for p in d.iterdir()} == {"plain"}, f"ESCAPE: made in spite of the filter: {r}"
        assert said(r.stdout)["int80-open"] == (-1, "ENOSYS") == said(r.stdout)["x32-open"], r
        assert said(r.stdout)["io_uring_setup"] == (-1, "ENOSYS"), r
        (d / "plain").unlink()
        if not as_user:  # only the filter stops it
            cell(["/m"], payload="foreign_abi", mount=[f"{d}:/m:rw"], without="seccomp")
            landed(tried <= {p.name for p in d.iterdir()}, "without the filter it lands")
    stopped_by("seccomp", "none: other doors lead to the same house")


# ---- supervisors of system calls -----------------------------------------------------------------

# A filter that allows everything, with a listener for calls that a filter hands to a supervisor.
LISTEN = """
import ctypes, errno, os, struct, sys, time
libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long
libc.prctl(38, 1, 0, 0, 0)                                          # PR_SET_NO_NEW_PRIVS
allow = ctypes.create_string_buffer(struct.pack("HBBI", 6, 0, 0, 0x7fff0000))
program = ctypes.create_string_buffer(struct.pack("@HP", 1, ctypes.addressof(allow)))
number = {"x86_64": 317, "aarch64": 277}[os.uname().machine]
fd = libc.syscall(number, 1, 8, program)                            # SET_MODE_FILTER, NEW_LISTENER
print("listener", fd if fd < 0 else 0, *((ctypes.get_errno(), errno.errorcode[ctypes.get_errno()]) if fd < 0 else (0, "none")), flush=True)
time.sleep(float(sys.argv[1]))
"""


def supervisors(pids):
    """Those of the processes that hold the listener of a filter, by the names of their descriptors."""
    found = set()
    for pid in pids:
        with contextlib.suppress(OSError):
            for fd in os.listdir(f"/proc/{pid}/fd"):
                with contextlib.suppress(OSError):
                    if "seccomp" in os.readlink(f"/proc/{pid}/fd/{fd}"):
                        found.add(pid)
    return found


@pytest.mark.quick
def test_no_supervisor_of_system_calls(stopped_by):
    """A supervisor that decides by the memory of a process can be raced. No process of a daemon or of `caisson run` supervises
    system calls, and code in a cell cannot begin to."""
    p = subprocess.Popen([PYTHON, "-c", LISTEN, "60"], stdout=subprocess.PIPE, env=host_env())
    try:
        landed(succeeded(p.stdout.readline().strip()) == {"listener"} and supervisors([p.pid]) == {p.pid}, "a listener outside of a cell is found")
    finally:
        p.kill()
        p.wait()
        p.stdout.close()
    landed(succeeded(cell(["0"], code=LISTEN, without="seccomp").stdout) == {"listener"}, "without the filter a cell gets one")
    run, seen = start(["1"], code=LISTEN), set()
    while not run.wait(0.05):
        seen |= supervisors([run.pid, *below(run.pid)])
    r = run.finish()
    assert not seen and said(r.stdout)["listener"] == (-1, "EINVAL"), (seen, r)
    with Daemon("--pool", "1") as d:
        d.execute("x = 1", session_id="supervised")
        ours = {d.keeper, *below(d.keeper)}
        landed(d.cells() and d.cells() <= ours and d.pid in ours, "the processes of the daemon are found")
        assert not supervisors(ours), "a process of the daemon supervises system calls"
        d.request("DELETE", "/sessions/supervised")
    stopped_by("seccomp")


# ---- other processes -------------------------------------------------------------------------

@BOTH
@LAYERS
def test_pid_1_cannot_be_inspected(as_user, layer, stopped_by):
    """ptrace, process_vm_readv, /proc/1/*, pidfd_getfd: nothing of init, also without the filter."""
    secret = nonce()
    d = payload("peek")
    c = host(["/bin/sh", "-c", f"{d} victim {secret} >/dev/null & sleep 0.1; {d} $! look; kill -9 $!"],
             uid=USER, unshare=("--pid", "--fork", "--kill-child=SIGKILL", "--mount-proc"))
    landed(c.stdout.decode().count(f"READ process_vm_readv {secret}") == 1 and
           f"READ mem {secret}" in c.stdout.decode() and
           {"ptrace-attach", "pidfd_getfd", "open-environ", "open-fd", "readlink-exe", "open-maps",
            "kcmp", "readlink-root"} <= succeeded(c.stdout), c)
    r = runner(as_user)(["1", "look"], payload="peek", without=weaker(layer, as_user))
    assert r.status == "ok" and "READ" not in r.text, r
    # Every process that may see /proc/1 may open a directory of it, which shows only that threads exist.
    # A file may open and be empty: only its content counts (n > 0).
    yielded = {n for n, (v, _) in said(r.stdout).items() if v > 0}
    allowed = {"open-task", "pidfd_open", "open-fdinfo"}
    assert yielded <= allowed, f"pid 1 gives {sorted(yielded - allowed)}: {r}"
    assert not {n for n in succeeded(r.stdout) if n.startswith(("write-", "readlink-", "ptrace", "process_vm",
                "pidfd_getfd", "setns", "kcmp", "perf"))}, r
    if layer is None:
        stopped_by("seccomp", "pid 1 is not dumpable" + ("" if as_user else ", another user"))


@pytest.mark.quick
@BOTH
def test_only_children_are_traced(as_user, stopped_by):
    """A child that asks for it, and no other process. A tracer passes no filter, also in the name of its tracee."""
    c = host([payload("trace")])
    outside = said(c.stdout)
    landed({"traceme", "setregs", "attach-child", "suspend-by-option", "suspend-by-seize"} <= succeeded(c.stdout) and
           outside["changed-call"][1] != "ENOSYS", c)
    r = runner(as_user)(payload="trace", without=weaker(None, as_user))
    inside = said(r.stdout)
    assert r.status == "ok" and {"traceme", "setregs"} <= succeeded(r.stdout), r
    assert inside["changed-call"] == (-1, "ENOSYS"), f"ESCAPE: past the filter: {r}"
    assert {inside[n] for n in ("suspend-by-option", "suspend-by-seize", "attach-child")} == {(-1, "EPERM")}, r
    for layer in (None, "seccomp"):
        r = runner(as_user)(["1"], payload="trace", without=weaker(layer, as_user))
        assert r.status == "ok" and set(said(r.stdout).values()) == {(-1, "EPERM")}, f"pid 1 can be traced: {r}"
    stopped_by("seccomp", "the Linux kernel: seccomp after ptrace, pid 1 is not dumpable")


@pytest.mark.quick
@BOTH
def test_tracers_end_with_their_cell(as_user, stopped_by):
    """A chain of tracers that are each held on their way out. (Two that trace each other would never end: a process of a cell
    cannot attach. There is no control for that, because no signal would end it either.)"""
    r = runner(as_user)(["chain", "5"], payload="trace", without=weaker(None, as_user), timeout=2)
    landed(said(r.stdout) == {"chain": (0, "-")}, f"a chain of tracers: {r}")
    assert r.status == "timeout", r
    stopped_by("seccomp: no attach")


# A command that makes its parent, which is pid 1, its tracer, and stops.
TRACED = """
import ctypes, os, signal, threading
libc = ctypes.CDLL(None)
def ask(): libc.ptrace(0, 0, 0, 0)
for t in [threading.Thread(target=ask) for _ in range(20)]: t.start(); t.join()
print('before', flush=True)
if %r:
    ask()
    os.kill(os.getpid(), signal.SIGUSR1)
print('after', flush=True)
os._exit(7)
"""


@pytest.mark.quick
@BOTH
def test_pid_1_as_a_tracer(as_user, stopped_by):
    """A stop of a command that made pid 1 its tracer is not its end, and its exit status is the true one."""
    r = runner(as_user)(code=TRACED % True, without=weaker(None, as_user), timeout=2)
    assert r.status == "timeout" and r.stdout == b"before\n", f"a stop was taken for an end: {r}"
    r = runner(as_user)(code=TRACED % False, without=weaker(None, as_user), timeout=10)
    assert r.exit == 7 and r.stdout == b"before\nafter\n", r
    stopped_by("wait statuses of ends only")


@pytest.mark.quick
def test_the_warden_as_a_tracer(stopped_by):
    """The same with an interpreter of the daemon, whose parent is the warden."""
    with Daemon("--pool", "1") as d:
        r = d.execute(TRACED % False, session_id="traced")
        assert r["exit_code"] == 7 and r.stdout == b"before\nafter\n", r
        assert d.execute("1 + 1", session_id="traced")["result"] == {"text/plain": "2"}
        killer = "import os, time\nif os.fork() == 0:\n    time.sleep(3); os.kill(os.getppid(), 9); os._exit(0)\n"
        stopped = Later(lambda: d.execute(killer + TRACED % True, session_id="traced", timeout=20))
        time.sleep(1)
        os.kill(d.zygote, signal.SIGKILL)  # the warden then collects every child that died
        d.good()
        r = stopped.result(40)
        assert r["exit_code"] == 137 and r.status != "timeout" and r.stdout == b"before\n", f"a stop was taken for an end: {r}"
        assert d.execute("2 + 2", session_id="traced")["result"] == {"text/plain": "4"}
        d.request("DELETE", "/sessions/traced")
        d.good()
        d.quiet()
    stopped_by("wait statuses of ends only")


# ---- keys ------------------------------------------------------------------------------------

@BOTH
@LAYERS
def test_keys_of_the_caller(as_user, layer, stopped_by):
    """A key in the caller's session keyring, which every child inherits and possesses."""
    name, secret, left = "caisson-" + nonce(), nonce(), "left-" + nonce()
    keys = payload("keys")
    c = host([keys, "wrap", name, secret, keys, name, left], uid=USER, unshare=())
    landed(f"read-session {secret}" in c.stdout.decode(), c)
    line = command([name, left], argv=["/payload/keys"], payload_name="keys",
                   without=weaker(layer, as_user))
    env = host_env(**({"CAISSON_STATE": str(cell_lib.user_state())} if as_user else {}))
    caller = ["setpriv", f"--reuid={USER}", f"--regid={USER}", "--clear-groups", "--"] if as_user else []
    p = cell_lib.RunningAs([*caller, keys, "wrap", name, secret, *[str(x) for x in line]], False, env=env)
    r = p.finish(30)
    out = r.raw_out.decode()
    landed(said(out)["add"][0] > 0, f"the caller has the key: {out}")
    assert '"status":"ok"' in out, out
    assert secret not in out.split("\n", 2)[2], f"READ: the cell has the caller's key: {out}"
    assert not [x for x in re.findall(r"(search-\S+|request_key) (\d+)", out)], out
    if layer is None:
        inside = out.split("\n", 2)[2]
        assert inside.count("EPERM") == 11, inside
        stopped_by("seccomp", "a session keyring of the cell's own")


@pytest.mark.quick
def test_proc_keys_is_masked(stopped_by):
    landed(Path("/proc/key-users").exists(), "the kernel has keys")
    r = cell(code="print(repr(open('/proc/keys').read()), repr(open('/proc/key-users').read()))")
    assert r.stdout == b"'' ''\n", r
    stopped_by("masked /proc")


# ---- the administrator's calls ---------------------------------------------------------------

@BOTH
@LAYERS
def test_administrator_calls(as_user, layer, stopped_by):
    """modules, kexec, reboot, swap, acct, syslog, ports, segments: refused twice."""
    before = {f: cell_lib.read(f) for f in ("/proc/sys/kernel/ctrl-alt-del", "/proc/swaps", "/proc/modules",
                                         "/proc/sys/kernel/hostname", "/proc/sys/kernel/acct")
              if os.path.exists(f)}
    with scratch() as d:
        c = host([payload("admin_calls"), d], unshare=("--mount", "--uts", "--pid", "--fork", "--kill-child=SIGKILL"))
    outside = said(c.stdout)
    may = {n for n, (v, e) in outside.items() if v >= 0 or e not in ("EPERM", "ENOSYS")}
    landed({"syslog-size", "sethostname", "quotactl", "reboot", "modify_ldt", "personality",
            "setpriority"} <= may, f"root may outside: {sorted(may)}")
    print("no control here for", sorted(set(outside) - may))
    r = runner(as_user)(["/tmp"], payload="admin_calls", without=weaker(layer, as_user))
    assert r.status == "ok", r
    inside = said(r.stdout)
    # Without the filter the Linux kernel lets a process change itself; no other effect is left.
    # (Every process may call Q_SYNC of all quotas, like sync.)
    own = {"modify_ldt", "personality", "quotactl"} if layer else set()
    assert succeeded(r.stdout) <= own, r
    for n in may - own - {"nice-rlimit", "swapoff", "finit_module"}:
        assert inside[n][1] in ("EPERM", "EACCES"), f"{n}: {inside[n]}, outside {outside[n]}"
    assert before == {f: cell_lib.read(f) for f in before}, "ESCAPE: the machine was changed"
    if layer is None:
        stopped_by("seccomp", "no capabilities in the host's user namespace")


# ---- mounts -----------------------------------------------------------------------------

@BOTH
@LAYERS
def test_mount_calls(as_user, layer, stopped_by):
    """Every mount interface: no change of the cell's mounts, none of the host's, no namespace."""
    owner = USER if as_user else 0
    with scratch(0o755, owner) as target, scratch() as d:
        (target / "probe").touch()
        shell = f"mount --bind {target} {target} && mount -o remount,ro,bind {target} && exec " \
                f"{payload('mount_all')} {d} {target}"
        c = host(["/bin/sh", "-c", shell])
        landed({"mount-tmpfs", "mount-bind", "remount-rw", "fsmount", "open_tree", "mount_setattr",
                "move_mount", "chroot", "unshare-mnt", "write-target", "setns-net"} <= succeeded(c.stdout), c)
        (target / "mount_all-was-here").unlink(missing_ok=True)
        host_mounts = cell_lib.read("/proc/self/mountinfo")
        with Held(["/tmp", "/m"], payload="mount_all", ready=b"done", as_user=as_user,
                  without=weaker(layer, as_user), mount=[f"{target}:/m"]) as h:
            # Init did nothing; its view and the attacker's must still be one.
            assert cell_lib.read(f"/proc/{h.pid}/mountinfo") == cell_lib.read(f"/proc/{h.init}/mountinfo")
            for ns in ("mnt", "user", "net", "pid", "ipc", "uts", "cgroup"):
                assert os.readlink(f"/proc/{h.pid}/ns/{ns}") == os.readlink(f"/proc/{h.init}/ns/{ns}"), ns
            assert os.readlink(f"/proc/{h.pid}/root") == "/"
            flags = next(x for x in cell_lib.read(f"/proc/{h.pid}/mountinfo").splitlines() if " /m " in x)
            assert {"ro", "nosuid", "nodev"} <= set(flags.split()[5].split(",")), flags
            text = h.text
            h.say()
        assert not succeeded(text), f"let pass: {succeeded(text)}"
        assert "mnt-namespace same" in text
        assert not (target / "mount_all-was-here").exists(), "WRITE: the read-only mount was written"
        assert host_mounts == cell_lib.read("/proc/self/mountinfo") or \
            "mount_all" not in cell_lib.read("/proc/self/mountinfo")
    if layer is None:
        stopped_by("seccomp", "no capabilities")


# ---- file handles ----------------------------------------------------------------------------

@BOTH
@LAYERS
def test_open_by_file_handle(as_user, layer, stopped_by):
    """The real handle of a canary beside /usr on the same filesystem, opened from the cell's /usr."""
    n = nonce()
    prog = payload("file_handle")
    path = Path(f"/root/canary-{nonce()}")
    if os.stat("/usr").st_dev != os.stat("/root").st_dev:
        path = Path("/usr").parent / path.name
    path.write_text(n)
    path.chmod(0o600)
    try:
        made = host([prog, "make", path]).stdout.decode().splitlines()[-1].split()
        c = host([prog, "/usr", *made])
        landed(n in c.stdout.decode(), c)
        r = runner(as_user)(["/usr", *made], payload="file_handle", without=weaker(layer, as_user))
        assert r.status == "ok" and n not in r.text, f"READ: {r}"
        assert said(r.stdout)["open_by_handle_at"] == (-1, "EPERM"), r
        if layer is None:
            assert said(r.stdout)["name_to_handle_at"] == (-1, "EPERM"), r
            stopped_by("seccomp", "no CAP_DAC_READ_SEARCH")
    finally:
        path.unlink()


# ---- terminals -------------------------------------------------------------------------------

def lead_session(slave, line, env, report):
    """In a child: a session with that terminal, @line in its foreground, then the unread input."""
    os.setsid()
    fcntl.ioctl(slave, termios.TIOCSCTTY, 0)
    pid = os.fork()
    if pid == 0:
        for fd in (0, 1, 2):
            os.dup2(slave, fd)
        os.closerange(3, 256)
        os.execve(line[0], line, env)
    os.waitpid(pid, 0)
    attrs = termios.tcgetattr(slave)
    attrs[3] &= ~termios.ICANON
    attrs[6][termios.VMIN] = attrs[6][termios.VTIME] = 0
    termios.tcsetattr(slave, termios.TCSANOW, attrs)
    os.write(report, b"input:" + os.read(slave, 65536))
    os._exit(0)


def on_a_terminal(line, env, deadline=15):
    """Run @line on a terminal of its own. (output, typed and unread input)."""
    master, slave = pty.openpty()
    r, w = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            lead_session(slave, [str(x) for x in line], env, w)
        finally:
            os._exit(1)
    os.close(w)
    out, left, end = b"", b"", time.monotonic() + deadline
    try:
        while not left.startswith(b"input:") and time.monotonic() < end:
            ready = select.select([master, r], [], [], 0.1)[0]
            if master in ready:
                out += os.read(master, 65536)
            if r in ready:
                left = os.read(r, 65536) or b"input:?"
    finally:
        if not left:
            os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        for fd in (master, slave, r):
            os.close(fd)
    assert left.startswith(b"input:") and left != b"input:?", f"no end: {out!r}"
    return out.decode(errors="replace"), left[6:].decode(errors="replace")


@pytest.mark.quick
@pytest.mark.parametrize("tty", [False, True], ids=["pipes", "tty"])
def test_typing_into_the_callers_terminal(tty, stopped_by):
    """TIOCSTI and friends, with caisson on a real terminal: nothing is typed there."""
    n = nonce()
    sysctl = Path("/proc/sys/dev/tty/legacy_tiocsti")
    out, left = on_a_terminal(["/usr/bin/setpriv", f"--reuid={USER}", f"--regid={USER}", "--clear-groups",
                               payload("type_into_tty"), n], host_env())
    if sysctl.exists() and sysctl.read_text().strip() == "0":
        print("dev.tty.legacy_tiocsti is 0: the kernel itself refuses; no control")
    else:
        landed(n in left, f"TIOCSTI lands outside: {out!r} {left!r}")
    for layer in (None, "seccomp"):
        n = nonce()
        line = command([n], argv=["/payload/type_into_tty"], payload_name="type_into_tty", json_result=False,
                       without=layer, **({"tty": True} if tty else {}))
        out, left = on_a_terminal(line, host_env())
        assert "done" in out, out
        assert n not in left, f"WRITE: typed into the caller's terminal ({layer}): {left!r}"
        assert ("tty0 1" in out) is tty, out
        if layer is None:
            what = said(out.replace("\r", ""))
            expected = "EPERM"
            for name in ("TIOCSTI", "TIOCSTI-high", "TIOCLINUX", "TIOCSETD"):
                assert what[name] == (-1, expected), f"{name}: {what[name]}"
            assert what["open-dev-console"][1] == "ENOENT", what
            assert (what["open-dev-tty"][0] >= 0) is tty, what
            if tty:
                assert what["TIOCSTI-dev-tty"] == (-1, "EPERM"), what
    stopped_by("seccomp", "the cell has a terminal of its own, or none")


@pytest.mark.quick
def test_device_controls(stopped_by):
    """KVM, loop, tun, fuse, block devices: they do not exist."""
    code = """
import os
for p in ('/dev/kvm', '/dev/loop-control', '/dev/loop0', '/dev/net/tun', '/dev/fuse', '/dev/mem',
          '/dev/vda', '/dev/sda', '/dev/console', '/dev/tty0', '/dev/ptmx0', '/dev/userfaultfd', '/dev/mapper/control',
          '/dev/rtc0', '/dev/hpet', '/dev/cpu_dma_latency', '/dev/vhost-net', '/dev/vsock', '/dev/snapshot'):
    try:
        os.close(os.open(p, os.O_RDWR | os.O_NONBLOCK)); print('opened', p)
    except OSError as e:
        if e.errno != 2: print(p, e)
"""
    c = host(["/usr/bin/python3", "-c", code])
    landed("opened" in c.stdout.decode(), c)
    for layer in (None, "seccomp"):
        r = cell(code=code, without=layer)
        assert r.status == "ok" and r.stdout == b"", r
    stopped_by("minimal /dev", "nodev and no mknod")


# ---- weakening oneself ------------------------------------------------------------------

POSTURE = ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb", "NoNewPrivs", "Seccomp", "Uid", "Gid", "Groups")


@pytest.mark.quick
@BOTH
def test_dropped_rights_do_not_come_back(as_user, stopped_by):
    """capset, securebits, own filters, rlimits upwards: the status read from outside is the same."""
    c = host([payload("weaken")], stdin=b"\n")
    landed({"capset-admin", "securebits", "keepcaps", "unshare-after", "setgroups"} <= succeeded(c.stdout), c)
    with Held(payload="weaken", as_user=as_user, without=weaker(None, as_user)) as h:
        st = status_of(h.pid)
        text = h.text
        assert {k: st[k].split() for k in POSTURE if k[:3] == "Cap"} == \
            {k: ["0" * 16] for k in POSTURE if k[:3] == "Cap"}
        assert st["NoNewPrivs"].strip() == "1" and st["Seccomp"].strip() == "2", st
        assert int(st["Seccomp_filters"]) == 3, "the two of its own, on top of ours"
        uid = st["Uid"].split()
        assert len(set(uid)) == 1 and int(uid[0]) == (USER if as_user else int(uid[0])) and int(uid[0]) >= 1000
        assert st["Groups"].split() == [], st["Groups"]
        h.say()
    ok = succeeded(text)
    # Harmless on oneself: the keep-caps bit without any caps, more filters, own Landlock rules.
    assert ok == {"keepcaps", "seccomp-allow-all", "prctl-allow-all", "landlock-create",
                  "landlock-restrict"}, f"{sorted(ok)}: {text}"
    what = said(text)
    assert what["nnp-off"][1] == "EINVAL" and what["unshare-after"][1] == "EPERM"
    assert what["set-mm-exe"][1] == "EINVAL" and what["memfd_secret"][1] == "ENOSYS"
    assert what["write-after-landlock"][1] == "EACCES", "own Landlock rules bind"
    assert what["seccomp-listener"][1] == "EINVAL"
    stopped_by("the kernel: what is dropped is dropped", "seccomp")


# ----  ------------------------------------------------------------------------------------------

@pytest.mark.quick
def test_side_channel_files(stopped_by):
    """Documented: time stamp counter and /proc/cpuinfo are visible. Interrupts, /sys and perf are not."""
    code = """
import os
for p in ('/proc/interrupts', '/proc/timer_list', '/proc/kallsyms', '/proc/sched_debug', '/proc/iomem',
          '/proc/latency_stats', '/sys/devices/system/cpu/cpu0/cache/index0/size', '/sys/kernel/debug/sched'):
    try:
        data = open(p).read(100)
        if data: print('readable', p)
    except OSError: pass
print(os.listdir('/sys'))
"""
    c = host(["/usr/bin/python3", "-c", code])
    landed(c.stdout.decode().count("readable") >= 3, c)
    r = cell(code=code)
    assert r.status == "ok" and r.stdout == b"[]\n", r
    stopped_by("masked /proc and an empty /sys")
