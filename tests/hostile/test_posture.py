# SPDX-License-Identifier: Apache-2.0
"""test_posture.py - The whole posture of every process, compared with a declaration.

Everything is read from outside, from the host's /proc. The declaration is the literals below;
anything extra, missing or different is a failure, and all differences are shown at once.

    "=caller"   the value of the caller of caisson; a cell may get no more than that
    "=program"  the value that the program itself sets: equal to the same program run outside
"""
import ctypes
import os
import re
import resource
import subprocess
import threading
import time
import warnings

import pytest

import cell_lib
from guard import mounts as hierarchies
from lib import CAISSON, cell, host_env, landed
from process import SANITIZED, children, status_of
from cell_lib import USER, Held, read, scratch, user_cell

NAMESPACES = ("user", "pid", "mnt", "net", "ipc", "uts", "cgroup")
ALL_NAMESPACES = (*NAMESPACES, "time")
ZERO = "0" * 16
UNLIMITED = ("unlimited", "unlimited")

# ---- the declaration ------------------------------------------------------------------------------

# As many processors as the quota fills (--cpus 1). It is information, which code may change; the quota is the limit.
ONE_CPU = "1 of the caller's" if len(os.sched_getaffinity(0)) > 1 else "=caller"
# Since Linux 6.3: the uptime is that of the cell.
TIME = "own" if tuple(map(int, os.uname().release.split(".")[:2])) >= (6, 3) else "host"
OUR_SIGNALS = "00000000000004c0" if SANITIZED else ZERO  # BUS FPE SEGV: the sanitizer's

COMMAND = {
    "CapInh": ZERO, "CapPrm": ZERO, "CapEff": ZERO, "CapBnd": ZERO, "CapAmb": ZERO,
    "NoNewPrivs": "1", "Seccomp": "2", "Seccomp_filters": "1",
    "Groups": "", "Umask": "0022", "TracerPid": "0", "Threads": "1",
    "SigPnd": ZERO, "ShdPnd": ZERO, "SigBlk": ZERO, "SigIgn": ZERO, "SigCgt": ZERO,
    "inner pid": "2", "session": "own", "group": "own", "terminal": "0",
    "policy": "0", "rt priority": "0", "nice": "=caller", "io priority": "0", "cpus": ONE_CPU,
    "personality": "00000000", "posix timers": "", "timer slack": "=caller",
    "oom_score_adj": "1000", "coredump_filter": "=caller",
    "cwd": "/workspace", "root": "/", "exe": "/usr/bin/cat",
    "fds": {"0": "pipe r", "1": "pipe w", "2": "pipe w"},
    "environ": {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": "/home/agent", "USER": "agent", "LOGNAME": "agent",
                "SHELL": "/bin/bash", "LANG": "C.UTF-8"},
    "namespaces": {**{n: "own" for n in NAMESPACES}, "time": TIME},
    "setgroups": "allow",
    "limits": {
        "cpu time": "=caller", "file size": (str(1 << 30),) * 2, "data size": "=caller", "stack size": "=caller",
        "core file size": ("0", "0"), "resident set": "=caller", "processes": ("144", "144"),
        "open files": ("1024", "1024"), "locked memory": ("65536", "65536"), "address space": UNLIMITED,
        "file locks": "=caller", "pending signals": ("1024", "1024"), "msgqueue size": ("204800", "204800"),
        "nice priority": ("0", "0"), "realtime priority": ("0", "0"), "realtime timeout": "=caller",
    },
    "cgroups": {"memory": "cell", "pids": "cell", "cpu": "cell", "cpuacct": "cell", "unified": "cell", "*": "=caller"},
}

# The warden raises its own soft limit of descriptors to the hard one, and init begins with that.
MANY_FILES = ("open files", (lambda h: (str(h), str(h)))(resource.getrlimit(resource.RLIMIT_NOFILE)[1]))

# In this order. Only sandboxes of a daemon of root have /proc/uptime and a fanotify group, which asks before each read.
OWN_FILES = ["meminfo", "stat", "loadavg", "cpuinfo"]
GAUGES = ["memory/memory.usage_in_bytes", "memory/memory.stat", "cpuacct/cpuacct.stat"] if "cpuacct" in hierarchies() else \
    ["v2/memory.current", "v2/memory.stat", "v2/cpu.stat"]

INIT = {
    **COMMAND,
    # SETUID, SETGID, SETPCAP, KILL: to start commands as another user without rights, and to end them.
    "CapPrm": "00000000000001e0", "CapEff": "00000000000001e0", "CapBnd": "00000000000001e0",
    "SigBlk": "0000000000010000",            # SIGCHLD comes through a signalfd
    "SigIgn": "0000000000001007",            # HUP INT QUIT PIPE, as the warden has it
    "SigCgt": OUR_SIGNALS,
    "inner pid": "1", "cwd": "/", "exe": "/",  # its own file is a mount that is nowhere
    # Its streams, the channel, the files over /proc, the covered one, the gauges.
    "fds": {"0": "/dev/null rw", "1": "/dev/null rw", "2": "/dev/null rw", "3": "socket", **{str(4 + i): f"/{n} (deleted) rw" for i, n in enumerate(OWN_FILES)},
            "8": "/dev/null rw", "9": "/proc/cpuinfo r", "10": "/dev/null rw", **{str(11 + i): f"cgroup {n}" for i, n in enumerate(GAUGES)}, "14": "its own score", "15": "signalfd"},
    "oom_score_adj": "800",                  # the last of its cell
    "environ": {},
    "limits": {**{k: "=caller" for k in COMMAND["limits"]}, "core file size": ("0", "0"), MANY_FILES[0]: MANY_FILES[1]},
}

WARDEN = {
    **COMMAND,
    # DAC_OVERRIDE DAC_READ_SEARCH KILL SETGID SETUID SETPCAP SYS_PTRACE SYS_ADMIN MKNOD: see src/warden/warden.c
    "CapPrm": "00000000082801e6", "CapEff": "00000000082801e6", "CapBnd": "00000000082801e6",
    "Seccomp": "0", "Seccomp_filters": "0", "Groups": "=caller", "Umask": "=caller",
    "SigIgn": "0000000000001007", "SigCgt": OUR_SIGNALS, "inner pid": "none", "session": "=caller", "group": "=caller", "terminal": "=caller",
    "oom_score_adj": "=caller", "cwd": "=caller", "exe": str(CAISSON.parent / "caisson-warden"), "personality": "=caller",
    "policy": "=caller", "io priority": "=caller",
    # Its client's streams, the client, the host ids that are taken, the journal, the cell.
    "fds": ["caller 0", "caller 1", "caller 2", "socket", "eventpoll", "host ids", "init's mount", "journal", "record", "pidfd",
            "cgroup memory", "cgroup pids", "cgroup cpu", "cgroup unified", *(["cgroup cpuacct"] if "cpuacct" in hierarchies() else [])],
    "environ": {},
    "namespaces": {n: "host" for n in ALL_NAMESPACES},
    "limits": {**{k: "=caller" for k in COMMAND["limits"]}, "core file size": ("0", "0"), MANY_FILES[0]: MANY_FILES[1]},
    "cgroups": {"*": "=caller"},
    "cpus": "=caller",
}

CAISSON_ITSELF = {
    **WARDEN,
    **{k: "=caller" for k in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb", "NoNewPrivs")},
    "SigBlk": "0000000008004007",            # HUP INT QUIT TERM WINCH come through a signalfd
    "SigIgn": "0000000000001000",            # PIPE
    "exe": str(CAISSON),
    # Its own streams, the one it reads from once more, the warden, the cell's channel, signals, the command's pipes.
    "fds": ["caller 0", "caller 1", "caller 2", "caller 0", "caller 1", "caller 2", "socket", "socket", "signalfd", "pipe w", "pipe r", "pipe r"],
    "environ": "=caller",
    "limits": {k: "=caller" for k in COMMAND["limits"]},
}

# As an ordinary user: one id, nothing to map but itself, and no way to drop the caller's groups.
USER_CHANGES = {"setgroups": "deny"}
USER_WARDEN = {"CapPrm": ZERO, "CapEff": ZERO, "CapBnd": "=caller", "fds": [x for x in WARDEN["fds"] if x not in ("host ids", "init's mount")]}
NO_GAUGES = {str(11 + i): "/dev/null rw" for i in range(len(GAUGES))}
NO_CGROUP = {"cgroups": {"*": "=caller"}}
# Each process may write to as much as the memory limit, and reserve 4 GiB of addresses more.
NO_CGROUP_LIMITS = {"processes": ("128", "128"), "data size": (str(512 << 20),) * 2, "address space": (str((512 << 20) + (4 << 30)),) * 2}

if "memory" not in hierarchies():  # a pure v2 machine: one tree
    for declared in (COMMAND, INIT):
        declared["cgroups"] = {"unified": "cell", "*": "=caller"}
    WARDEN["fds"] = [x for x in WARDEN["fds"] if not x.startswith("cgroup")] + ["cgroup v2"]

RO, RW, NODEV, NOEXEC = "ro", "rw", "nodev", "noexec"
MOUNTS = [  # (place, type, path in that filesystem, flags besides nosuid and relatime)
    ("/", "tmpfs", "/", {RW, NODEV}),
    ("/proc", "proc", "/", {RO, NODEV, NOEXEC}),
    ("/dev/pts", "devpts", "/", {RW, NOEXEC}),
    *[(f"/dev/{n}", "=dev", f"/{n}", {RW, NOEXEC}) for n in ("null", "zero", "full", "random", "urandom", "tty")],
]
MOUNTS_OF_HOST = ["/usr", *cell_lib.ETC]
MOUNTS_IF_UNMERGED = ["/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"]
MASKED_FILES = ["kcore", "keys", "key-users", "kallsyms", "kmsg", "sysrq-trigger", "timer_list", "sched_debug", "latency_stats", "interrupts", "softirqs",
                "iomem", "ioports", "modules", "config.gz", "swaps", "locks", "cgroups", "buddyinfo", "zoneinfo", "vmstat", "diskstats", "partitions",
                "cmdline", "crypto", "schedstat", "mdstat", "bootconfig", *(f"sys/fs/{n}" for n in ("file-nr", "inode-nr", "inode-state", "dentry-state", "aio-nr")), "sys/kernel/pty/nr"]
MASKED_DIRS = ["acpi", "asound", "bus", "driver", "fs", "irq", "pressure", "scsi", "sys/fs/quota", "tty"]

# Numbers that are not posture. Every other undeclared field of /proc/PID/status is reported.
STATUS_NUMBERS = re.compile(r"Vm.*|Rss.*|Hugetlb.*|Huge.*|FDSize|.*_ctxt_switches|SigQ|Name|State|Tgid|Ngid|Pid|PPid|NS.*|"
                            r"Kthread|CoreDumping|THP_enabled|untag_mask|Mems_allowed.*|Cpus_allowed|x86_.*")


# ---- what is found --------------------------------------------------------------------------------

IOPRIO_GET = 252
V1 = "memory" in hierarchies()
libc = ctypes.CDLL(None, use_errno=True)


def fd_name(pid, fd, streams):
    link = os.readlink(f"/proc/{pid}/fd/{fd}")
    flags = int(re.search(r"flags:\s*(\d+)", read(f"/proc/{pid}/fdinfo/{fd}"))[1], 8)
    mode = ("r", "w", "rw")[flags & 3]
    if link in streams:
        return f"caller {streams.index(link)}"
    if link.startswith("pipe:"):
        return f"pipe {mode}"
    if link.startswith("socket:"):
        return "socket"
    if link.startswith("anon_inode:"):
        return link.split("[")[1].rstrip("]")
    if link.endswith("/cells"):
        return "journal"
    if link.endswith(f"/{pid}/oom_score_adj"):
        return "its own score"
    if link == "/" and flags & os.O_PATH:
        return "init's mount"
    if link == "/run/caisson-ids/taken":
        return "host ids"
    if re.search(r"/cells/\d{4}$", link):
        return "record"
    m = re.match(r"/sys/fs/cgroup/(?:(\w+)/)?.*caisson[-/]c\d+-[0-9a-f]+(/[\w.]+)?$", link)
    if m and V1:
        return f"cgroup {m[1]}{m[2] or ''}"
    if m:
        return f"cgroup v2{m[2] or ''}"
    return f"{link} {mode}"


def mounts(pid):
    found = []
    for line in read(f"/proc/{pid}/mountinfo").splitlines():
        left, right = line.split(" - ")
        w, kind = left.split(), right.split()[0]
        flags = set(w[5].split(",")) - {"relatime", "noatime", "lazytime"}
        found.append((w[4], kind, w[3], frozenset(flags | set(w[6:]))))
    return found


def posture(pid, caller, streams=(), tid=None):
    """Everything about one process (or one of its threads), in the words of the declaration."""
    at = f"/proc/{pid}/task/{tid}" if tid else f"/proc/{pid}"
    st = status_of(pid, tid)
    stat = read(f"{at}/stat").rsplit(")", 1)[1].split()
    p = {k: v for k, v in st.items() if not STATUS_NUMBERS.fullmatch(k)}
    p.pop("Uid"), p.pop("Gid"), p.pop("Cpus_allowed_list", None)
    for k in [k for k in p if k.startswith("Speculation")]:
        p.pop(k)  # of the machine
    inner = st["NStgid"].split()
    p["ids"] = (tuple(st["Uid"].split()), tuple(st["Gid"].split()))
    p["inner pid"] = inner[1] if len(inner) > 1 else "none"
    p["session"] = "own" if stat[3] == str(pid) else stat[3]
    p["group"] = "own" if stat[2] == str(pid) else stat[2]
    p["terminal"], p["nice"], p["rt priority"], p["policy"] = stat[4], stat[16], stat[37], stat[38]
    mine, all_of_them = os.sched_getaffinity(int(tid or pid)), os.sched_getaffinity(0)
    p["cpus"] = "=caller" if mine == all_of_them else f"{len(mine)} of the caller's" if mine < all_of_them else st["Cpus_allowed_list"]
    p["io priority"] = str(libc.syscall(IOPRIO_GET, 1, tid or pid))
    p["personality"] = read(f"{at}/personality").strip()
    p["oom_score_adj"] = read(f"{at}/oom_score_adj").strip()
    p["cwd"], p["root"], p["exe"] = (os.readlink(f"{at}/{x}") for x in ("cwd", "root", "exe"))
    p["limits"] = limits(at)
    p["namespaces"] = {n: "host" if os.readlink(f"{at}/ns/{n}") == caller["ns"][n] else "own" for n in ALL_NAMESPACES}
    if not tid:
        p["posix timers"] = read(f"/proc/{pid}/timers").strip()
        p["timer slack"] = read(f"/proc/{pid}/timerslack_ns").strip()
        p["coredump_filter"] = read(f"/proc/{pid}/coredump_filter").strip()
        p["setgroups"] = read(f"/proc/{pid}/setgroups").strip()
        p["environ"] = dict(x.split("=", 1) for x in read(f"/proc/{pid}/environ").split("\0") if x)
        p["fds"] = {fd: fd_name(pid, fd, streams) for fd in os.listdir(f"/proc/{pid}/fd")}
    groups = cell_lib.own_paths(pid)
    mine = caller["cgroups"]
    p["cgroups"] = {c: "cell" if is_cell(g, mine[c]) else "=caller" if g == mine[c] else g for c, g in groups.items()}
    return p


def is_cell(path, callers):
    """A cell's own cgroup, at the caller's (v1), or beside the leaf in which the caller lives (v2)."""
    m = re.fullmatch(r"(.*)/(?:caisson-c|caisson/c)\d+-[0-9a-f]{16}", path)
    return bool(m) and m[1] in (callers.rstrip("/"), os.path.dirname(callers).rstrip("/"))


def limits(at):
    rows = {}
    for line in read(f"{at}/limits").splitlines()[1:]:
        m = re.match(r"Max (.*?)\s{2,}(\S+)\s+(\S+)", line)
        rows[m[1]] = (m[2], m[3])
    return rows


def caller_of(h):
    """The state of the caller: read from a process that was started the same way and did nothing."""
    return {"ns": {n: os.readlink(f"/proc/self/ns/{n}") for n in ALL_NAMESPACES},
            "cgroups": cell_lib.own_paths(h.caisson)}


def differences(declared, found, caller, name):
    """Sentences about everything that is not as declared."""
    out = []

    def compare(key, want, have, base):
        if isinstance(want, dict):
            have = have if isinstance(have, dict) else {}
            rest = {k: v for k, v in want.items() if k != "*"}
            for k in sorted(set(rest) | set(have)):
                w = rest.get(k, want.get("*"))
                if k == "unified" and w == "cell" and k not in have:
                    continue  # a machine without a v2 tree
                compare(f"{key}.{k}", w, have.get(k), (base or {}).get(k) if isinstance(base, dict) else None)
        elif isinstance(want, list):
            if sorted(want) != sorted(have.values()):
                out.append(f"{name}: {key}: {sorted(have.values())}, declared {sorted(want)}")
        elif want == "=caller":
            if have != "=caller" and have != base:
                out.append(f"{name}: {key}: {have!r}, the caller's is {base!r}")
        elif want is None:
            out.append(f"{name}: {key}: extra: {have!r}")
        elif have is None:
            out.append(f"{name}: {key}: missing, declared {want!r}")
        elif want != have:
            out.append(f"{name}: {key}: {have!r}, declared {want!r}")

    for key in sorted(set(declared) | set(found)):
        if key in found and key not in declared and key != "ids":
            warnings.warn(f"/proc/PID/status has a field that nobody declared: {key}")
        elif key != "ids":
            compare(key, declared[key], found.get(key), caller.get(key))
    return out


def expected_mounts(dev_type, as_root):
    """The whole list on this machine: directories that the host lacks are left out."""
    want = [(p, dev_type if t == "=dev" else t, r, f) for p, t, r, f in MOUNTS]
    of = {line.split()[4]: line.split(" - ")[1].split()[0] for line in read("/proc/self/mountinfo").splitlines()}

    def host_type(path):
        while path not in of:
            path = os.path.dirname(path)
        return of[path]

    for p in MOUNTS_OF_HOST + [p for p in MOUNTS_IF_UNMERGED if not os.path.islink(p)]:
        if os.path.exists(p):
            cover = cell_lib.cover_of(p)
            want.append((p, "overlay", os.path.join("/", os.path.relpath(p, cover)) if p != cover else "/", {RO, NODEV}) if cover
                        else (p, host_type(p), cell_lib.root_of(p), {RO, NODEV}))
            want += [(m, t, None, {RO, NODEV}) for m, t in of.items() if m.startswith(p + "/")]
    want += [(f"/proc/{n}", dev_type, "/null", {RO, NOEXEC}) for n in MASKED_FILES if os.path.exists(f"/proc/{n}")]
    want += [(f"/proc/{n}", "tmpfs", f"/{n}//deleted", {RO, NODEV, NOEXEC}) for n in OWN_FILES]
    want += [(f"/proc/{n}", "tmpfs", "/sys", {RO, NODEV, NOEXEC}) for n in MASKED_DIRS if os.path.isdir(f"/proc/{n}")]
    return sorted((p, t, r, sorted(f | {"nosuid"})) for p, t, r, f in want)


def check_mounts(pid):
    """@pid: in a cell. Its device nodes are its own if its warden is root, else the host's."""
    own = len({line.split()[2] for line in read(f"/proc/{pid}/uid_map").splitlines()} - {"1"}) > 0
    dev = "tmpfs" if own else next(line.split(" - ")[1].split()[0] for line in reversed(read("/proc/self/mountinfo").splitlines())
                                   if line.split()[4] in ("/dev", "/dev/null"))
    have = sorted((p, t, r, sorted(f)) for p, t, r, f in mounts(pid))
    want = expected_mounts(dev, own)
    return [f"mount extra or different: {x}" for x in have if x not in want] + \
           [f"mount missing: {x}" for x in want if x not in have]


def without_32_33(p):
    """posix_spawn of the C library (ours, or make's for us) ignores its two internal signals: harmless
    in our own processes. A command has to have none of it."""
    p["SigIgn"] = f"{int(p['SigIgn'], 16) & ~(3 << 31):016x}"
    return p


def init_of(as_user, cgroup):
    """The declaration of init in a mode."""
    return {**INIT, **(USER_CHANGES if as_user else {}), **({} if cgroup else NO_CGROUP),
            "fds": {**INIT["fds"], **({} if cgroup else NO_GAUGES)}}


def whole(h, as_user=False, cgroup=True, command_changes=None, caller_changes=None):
    """All differences of a held cell: command and its threads, init, warden, caisson."""
    caller = {**caller_of(h), **(caller_changes or {})}
    streams = [os.readlink(f"/proc/{h.caisson}/fd/{i}") for i in range(3)]
    base = without_32_33(posture(h.caisson, caller, streams))
    user = USER_CHANGES if as_user else {}
    none = {} if cgroup else NO_CGROUP
    want = {**COMMAND, **user, **none, **(command_changes or {})}
    if not cgroup:
        want["limits"] = {**want["limits"], **NO_CGROUP_LIMITS}
    out = []
    found = {"command": posture(h.pid, caller, streams), "init": without_32_33(posture(h.init, caller, streams)),
             "warden": without_32_33(posture(h.warden, caller, streams)), "caisson": base}
    warden = {**WARDEN, **(USER_WARDEN if as_user else {})}
    if not cgroup:
        warden["fds"] = [x for x in warden["fds"] if not x.startswith("cgroup")]
    itself = CAISSON_ITSELF
    out += differences(want, found["command"], base, "command")
    out += differences(init_of(as_user, cgroup), found["init"], base, "init")
    out += differences(warden, found["warden"], base, "warden")
    out += differences(itself, found["caisson"], {**base, **(caller_changes or {})}, "caisson")
    # Namespaces: one cell, not several.
    for n in ALL_NAMESPACES:
        if os.readlink(f"/proc/{h.pid}/ns/{n}") != os.readlink(f"/proc/{h.init}/ns/{n}"):
            out.append(f"command and init have different {n} namespaces")
    out += check_mounts(h.pid)
    if mounts(h.pid) != mounts(h.init):
        out.append("command and init have different mounts")
    out += check_ids(h, found, as_user)
    if children(h.warden) != [h.init] or children(h.caisson) != [h.warden]:
        out.append(f"processes nobody declared: {children(h.warden)} {children(h.caisson)}")
    return out


def check_ids(h, found, as_user):
    out = []
    maps = read(f"/proc/{h.init}/uid_map").split(), read(f"/proc/{h.init}/gid_map").split()
    if as_user:
        want = {"command": USER, "init": USER, "warden": USER, "caisson": USER}
        if maps != (["1000", str(USER), "1"],) * 2:
            out.append(f"id maps: {maps}")
    else:
        base = int(maps[0][1])
        want = {"command": base + 1000, "init": base, "warden": 0, "caisson": 0}
        if maps[0] != maps[1] or maps[0] != ["0", str(base), "65536"]:
            out.append(f"id maps: {maps}")
        if not 0x70000000 <= base < 0x80000000 or base % 65536:
            out.append(f"host ids begin at {base:#x}")
    for name, uid in want.items():
        if found[name]["ids"] != ((str(uid),) * 4,) * 2:
            out.append(f"{name}: ids {found[name]['ids']}, declared {uid}")
    return out


def no_differences(out):
    assert not out, "the posture is not the declared one:\n  " + "\n  ".join(out)


# ---- the tests ------------------------------------------------------------------------------------

MODES = pytest.mark.parametrize("mode", ["root", "user", "delegated"])


def how(mode):
    """Options of Held for a mode."""
    return {"as_user": mode != "root", "delegate": mode == "delegated", "without": "cgroup" if mode == "user" else None}


@pytest.mark.quick
@MODES
def test_posture_of_every_process(mode, stopped_by):
    """A plain program (cat): command, init, warden and caisson have exactly the declared posture."""
    with Held(argv=["/usr/bin/cat"], ready=b"", **how(mode)) as h:
        no_differences(whole(h, mode != "root", mode != "user"))
    stopped_by("the whole posture")


def waits_for_input(pid):
    """It sleeps in read(0, ...): its start is over."""
    words = read(f"/proc/{pid}/syscall").split()
    return len(words) > 1 and words[0] in ("0", "63") and words[1] == "0x0"


def program_outside(argv):
    """SigIgn and SigCgt that a program sets up for itself, from a run of it on the host."""
    p = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, env={"PATH": "/usr/bin"},
                         restore_signals=True)
    try:
        cell_lib.until(lambda: waits_for_input(p.pid), 10, f"{argv[0]} that reads")
        st = status_of(p.pid)
        own = {k: st[k].strip() for k in ("SigIgn", "SigCgt", "SigBlk")}
        own["SigIgn"] = f"{int(own['SigIgn'], 16) & ~(3 << 31):016x}"  # 32 and 33 are our starter's
        return own
    finally:
        p.kill()
        p.communicate()


@pytest.mark.quick
@pytest.mark.parametrize("lang", ["python", "bash"])
@MODES
def test_posture_of_interpreters(mode, lang):
    """bash and python: the same, but for the handlers that they set up themselves."""
    code = {"python": "import sys; sys.stdin.read()", "bash": "read line"}[lang]
    prog = {"python": ["/usr/bin/python3", "-c", code], "bash": ["/usr/bin/bash", "-c", code]}[lang]
    with Held(code=code, lang=lang, ready=b"", **how(mode)) as h:
        own = {**program_outside(prog), "exe": os.path.realpath(prog[0])}
        no_differences(whole(h, mode != "root", mode != "user", command_changes=own))


@pytest.mark.quick
@MODES
def test_posture_of_threads_and_children(mode):
    """Threads and grandchildren of a python program: every one as the first."""
    code = "import subprocess, sys, threading, time\n" \
           "for _ in range(3): threading.Thread(target=time.sleep, args=(60,), daemon=True).start()\n" \
           "p = subprocess.Popen(['/usr/bin/cat'], stdin=subprocess.PIPE)\n" \
           "q = subprocess.Popen(['/bin/bash', '-c', 'sleep 60 & wait'], start_new_session=True)\n" \
           "time.sleep(0.2); print('ready', flush=True); sys.stdin.read()"
    with Held(code=code, **how(mode)) as h:
        caller = caller_of(h)
        keys = [k for k in COMMAND if k.startswith("Cap")] + ["NoNewPrivs", "Seccomp", "Seccomp_filters", "Groups",
                                                              "Umask", "namespaces", "limits", "terminal", "policy",
                                                              "root", "cgroups", "ids", "personality", "oom_score_adj"]
        first = posture(h.pid, caller)
        out, seen = [], 0
        for pid in h.guests():
            for tid in os.listdir(f"/proc/{pid}/task"):
                p = posture(pid, caller, tid=tid)
                seen += 1
                out += [f"{pid}/{tid} {cell_lib.cmdline(pid)}: {k}: {p[k]} is not {first[k]}" for k in keys if p[k] != first[k]]
        landed(seen >= 7, f"{seen} threads")
        base = posture(h.caisson, caller)
        declared = {**COMMAND, **(USER_CHANGES if mode != "root" else {}), **(NO_CGROUP if mode == "user" else {})}
        if mode == "user":
            declared["limits"] = {**declared["limits"], **NO_CGROUP_LIMITS}
        out += differences({k: declared[k] for k in keys if k != "ids"}, {k: first[k] for k in keys}, base, "python")
        no_differences(out)


# The inheritance of a strange caller must not get in. It execs caisson afterwards.
STRANGE = """
import array, ctypes, fcntl, os, resource, signal, socket, sys
libc = ctypes.CDLL(None, use_errno=True)
class Action(ctypes.Structure):
    _fields_ = [('handler', ctypes.c_void_p), ('flags', ctypes.c_ulong), ('restorer', ctypes.c_void_p), ('mask', ctypes.c_ulong)]
for sig in range(1, 65):                                   # past the C library, which keeps 32 and 33
    libc.syscall(13, sig, ctypes.byref(Action(1, 0, None, 0)), None, 8)
mask = ctypes.c_ulong(2**64 - 1)
libc.syscall(14, 0, ctypes.byref(mask), None, 8)           # block all
os.umask(0)
os.nice(3)
signal.setitimer(signal.ITIMER_VIRTUAL, 500)
libc.personality(0x0040000 | 0x0400000 | 0x0100000)        # NO_RANDOMIZE, READ_IMPLIES_EXEC, MMAP_PAGE_ZERO
libc.prctl(36, 1, 0, 0, 0)                                 # subreaper
if sys.argv[2] != 'setpriv':                               # root: it stays so
    os.setgroups([0, 4, 27, 999])
    class Header(ctypes.Structure): _fields_ = [('version', ctypes.c_uint), ('pid', ctypes.c_int)]
    data = (ctypes.c_uint * 6)()
    h = Header(0x20080522, 0)
    libc.capget(ctypes.byref(h), data)
    data[2], data[5] = data[1], data[4]                    # inheritable = permitted
    libc.capset(ctypes.byref(h), data)
    for cap in range(41): libc.prctl(47, 2, cap, 0, 0)     # ambient
    libc.prctl(28, 1 << 2, 0, 0, 0)                        # no setuid fixup
resource.setrlimit(resource.RLIMIT_CORE, (resource.RLIM_INFINITY,) * 2)
libc.syscall(251, 1, 0, 2 << 13 | 0)                       # best effort, highest
here = os.getcwd()
os.makedirs(sys.argv[1] + '/gone'); os.chdir(sys.argv[1] + '/gone'); os.rmdir(sys.argv[1] + '/gone')
for path in ('/', '/root', '/etc/passwd', '/dev/null', '/proc/self'):
    try: fd = os.open(path, os.O_RDONLY); os.set_inheritable(fd, True)
    except OSError: pass
a, b = socket.socketpair(); a.set_inheritable(True); b.set_inheritable(True)
os.dup2(a.fileno(), 50); os.dup2(b.fileno(), 1000)
env = dict(os.environ, LD_PRELOAD='/tmp/x.so', BASH_ENV='/tmp/x', PYTHONPATH='/tmp/x', PYTHONSTARTUP='/tmp/x', ENV='/tmp/x',
           SSH_AUTH_SOCK='/tmp/x', AWS_SECRET_ACCESS_KEY='secret', HTTP_PROXY='http://x', LD_LIBRARY_PATH='/tmp', TZ='X')
os.execvpe(sys.argv[2], sys.argv[2:], env)
"""


@pytest.mark.quick
@MODES
def test_posture_whatever_the_caller_is(mode):
    """A caller with ignored and blocked signals, ambient capabilities, odd personality, open descriptors, a working
    directory that is gone, poisoned environment: the cell is the same."""
    with scratch(0o777) as d:
        options = how(mode)
        with Held(argv=["/usr/bin/cat"], ready=b"", caller=["/usr/bin/python3", "-c", STRANGE, d], timeout=3,
                  **options) as h:
            st = status_of(h.caisson)
            landed(st["Umask"].strip() == "0000" and len(os.listdir(f"/proc/{h.caisson}/fd")) > 14 and
                   "deleted" in os.readlink(f"/proc/{h.caisson}/cwd"), "the caller is strange")
            base = caller_of(h)
            out = differences({**COMMAND, **(USER_CHANGES if mode != "root" else {}), **(NO_CGROUP if mode == "user" else {}),
                               **({"limits": {**COMMAND["limits"], **NO_CGROUP_LIMITS}} if mode == "user" else {})},
                              posture(h.pid, base), posture(h.caisson, base), "command")
            init = without_32_33(posture(h.init, base))
            want = init_of(mode != "root", mode != "user")
            # Best-effort I/O priority is not a privilege: the caller's or none.
            out = [x for x in out if "io priority: '16384'" not in x]
            # Its own signals do not matter: it has no handlers, and pid 1 gets no signal without one.
            for k in ("SigIgn", "SigBlk", "io priority"):
                want.pop(k), init.pop(k)
            out += differences(want, init, posture(h.caisson, base), "init")
            warden = posture(h.warden, base)
            for k in ("CapInh", "CapPrm", "CapEff", "CapAmb"):
                if warden[k] != {**WARDEN, **(USER_WARDEN if mode != "root" else {})}[k]:
                    out.append(f"warden: {k} {warden[k]}")
            extra = [x for fd, x in warden["fds"].items() if int(fd) > 2 and
                     not re.match("socket|event|host ids|init's mount|journal|record|pidfd|cgroup", x)]
            if extra or sum(x == "socket" for x in warden["fds"].values()) != 1:
                out.append(f"warden: descriptors of the caller: {warden['fds']}")
            out += check_mounts(h.pid)
            r = h.finish()
        out += [f"the end of the program was not noticed: {r}"] if r.exit else []
    no_differences(out)


@pytest.mark.quick
@pytest.mark.parametrize("mode", ["root", "user"])
def test_caller_that_ignores_sigchld(mode):
    """Ignoring SIGCHLD is inherited through exec, and takes the children's end from the parent that waits for it."""
    env = host_env(**({"CAISSON_STATE": str(cell_lib.user_state())} if mode == "user" else {}))
    line = cell_lib.command(code="import sys; sys.exit(7)", timeout=3, without="cgroup" if mode == "user" else None)
    drop = ["setpriv", f"--reuid={USER}", f"--regid={USER}", "--clear-groups", "--"] if mode == "user" else []
    r = cell_lib.RunningAs([*drop, "/usr/bin/env", "--ignore-signal=CHLD", *line], True, env=env).finish(30)
    assert r.status == "error" and r.exit == 7, r


@pytest.mark.quick
def test_posture_under_a_real_time_caller():
    """A cell never has real-time priority, for processors or disks, which no quota bounds: refused, or ordinary."""
    chrt = ["chrt", "-f", "1"]
    if subprocess.run([*chrt, "true"], check=False, capture_output=True).returncode:
        print("the kernel gives no real-time to a cgroup without a share of it: not tried")
    else:
        try:
            with Held(argv=["/usr/bin/cat"], ready=b"", caller=chrt, without="cgroup") as h:
                p = posture(h.pid, caller_of(h))
                assert p["policy"] == "0" and p["rt priority"] == "0", \
                    f"the command runs with policy {p['policy']}, real-time priority {p['rt priority']}"
        except AssertionError as e:
            assert "caisson: " in str(e) and "policy" not in str(e), e
    with Held(argv=["/usr/bin/cat"], ready=b"", caller=["ionice", "-c1", "-n0"]) as h:
        io = int(posture(h.pid, caller_of(h))["io priority"])
        assert io >> 13 != 1, f"the command has a real-time io priority ({io:#x})"


@pytest.mark.quick
def test_posture_without_standard_streams():
    """Started without some of 0, 1, 2: none of our own descriptors takes their place."""
    for closed in ("0", "1", "2", "012"):
        shell = " ".join(f"{c}{'<' if c == '0' else '>'}&-" for c in closed)
        with Held(argv=["/usr/bin/sleep", "20"], ready=b"", caller=["/bin/sh", "-c", f'exec "$@" {shell}', "sh"]) as h:
            p = posture(h.pid, caller_of(h))
            assert p["fds"] == {"0": "pipe r", "1": "pipe w", "2": "pipe w"}
            w = posture(h.warden, caller_of(h))
            assert sum(x == "socket" for x in w["fds"].values()) == 1, w["fds"]
            for c in closed:
                assert w["fds"][c].startswith("/dev/null"), w["fds"]
            h.run.signal(15)


@pytest.mark.quick
@pytest.mark.parametrize("tty", [False, True], ids=["pipes", "tty"])
def test_posture_on_a_terminal(tty):
    """caisson on a terminal: the command has none, or one of the cell's own; never the caller's."""
    from test_linux_interfaces import on_a_terminal
    code = "import os, sys\nst = open('/proc/self/stat').read().rsplit(')', 1)[1].split()\n" \
           "print('tty_nr', st[4], 'sid', st[3], [os.readlink(f'/proc/self/fd/{i}') for i in range(3)])\n" \
           "import time; print('hold', flush=True); time.sleep(1.5)"
    seen = {}

    def look():
        end = time.monotonic() + 30
        while time.monotonic() < end and "cell" not in seen:
            for pid in cell_lib.below(os.getpid()):
                try:
                    if len(status_of(pid)["NStgid"].split()) == 2 and "python" in read(f"/proc/{pid}/comm"):
                        stat = read(f"/proc/{pid}/stat").rsplit(")", 1)[1].split()
                        seen["links"] = [os.readlink(f"/proc/{pid}/fd/{i}") for i in range(3)]
                        seen["ns"] = os.readlink(f"/proc/{pid}/ns/mnt") != os.readlink("/proc/self/ns/mnt")
                        seen["cell"] = stat[4], stat[3] == str(pid)
                        warden = int(read(f"/proc/{pid}/stat").rsplit(")", 1)[1].split()[1])
                        seen["init"] = read(f"/proc/{warden}/stat").rsplit(")", 1)[1].split()[4]
                except (OSError, IndexError, KeyError):
                    pass
            time.sleep(0.01)

    t = threading.Thread(target=look)
    t.start()
    line = [str(x) for x in cell_lib.command(code=code, json_result=False, **({"tty": True} if tty else {}))]
    out, _ = on_a_terminal(line, host_env())
    t.join()
    assert seen.get("ns") and seen["cell"][1], f"{seen} {out}"
    assert seen["init"] == "0", f"init has a controlling terminal: {seen}"
    if tty:
        assert seen["cell"][0] != "0" and set(seen["links"]) == {"/dev/pts/0"}, seen
        assert "/dev/pts/0" in out, out
    else:
        assert seen["cell"][0] == "0" and all(x.startswith("pipe:") for x in seen["links"]), seen


@pytest.mark.quick
def test_posture_of_two_cells_is_disjoint():
    """Two cells at once share no namespace, no id, no cgroup, no writable mount."""
    with Held(argv=["/usr/bin/cat"], ready=b"") as a, Held(argv=["/usr/bin/cat"], ready=b"") as b:
        for n in NAMESPACES:
            assert os.readlink(f"/proc/{a.pid}/ns/{n}") != os.readlink(f"/proc/{b.pid}/ns/{n}"), n
        assert read(f"/proc/{a.pid}/uid_map") != read(f"/proc/{b.pid}/uid_map")
        for c, path in cell_lib.own_paths(a.pid).items():
            if "caisson" in path:
                assert cell_lib.own_paths(b.pid)[c] != path, c

        def writable(pid):
            return {line.split()[2] + line.split()[3] for line in read(f"/proc/{pid}/mountinfo").splitlines()
                    if line.split()[5].startswith("rw")}
        shared = writable(a.pid) & writable(b.pid)
        assert not shared, shared


# ---- limits and receipt ---------------------------------------------------------------------------

@pytest.mark.quick
@pytest.mark.parametrize("mode", ["root", "delegated"])
def test_cgroup_limits_are_the_asked_ones(mode):
    """memory, pids, cpu as asked, in the kernel's own files; and as the defaults are documented."""
    for ask, memory, pids, cpu in (({}, 512 << 20, 129, 1000),
                                   ({"memory": "100M", "pids": 7, "cpus": "0.5"}, 100 << 20, 8, 500)):
        with Held(argv=["/usr/bin/cat"], ready=b"", **how(mode), **ask) as h:
            d = cell_lib.cell_dirs(h.pid)
            if "memory" in d:
                assert int((d["memory"] / "memory.limit_in_bytes").read_text()) == memory
                assert int((d["pids"] / "pids.max").read_text()) == pids
                quota = int((d["cpu"] / "cpu.cfs_quota_us").read_text())
                assert quota * 1000 // int((d["cpu"] / "cpu.cfs_period_us").read_text()) == cpu
                swap = d["memory"] / "memory.memsw.limit_in_bytes"
                assert not swap.exists() or int(swap.read_text()) == memory
            else:
                assert int((d["unified"] / "memory.max").read_text()) == memory
                assert int((d["unified"] / "pids.max").read_text()) == pids
                quota, period = (d["unified"] / "cpu.max").read_text().split()
                assert int(quota) * 1000 // int(period) == cpu


@pytest.mark.quick
@MODES
def test_receipt_matches_the_cell(mode):
    """The receipt agrees, item by item, with the values that the test reads from the held cell."""
    run = cell if mode == "root" else user_cell
    r = run(argv=["/usr/bin/sleep", "0.3"], receipt=True, **({"delegate": True} if mode == "delegated" else {}))
    assert r.status == "ok", r
    receipt = r["receipt"]
    # An ordinary user's warden cannot list the descriptors of a pid 1 that is not dumpable, and reports this.
    assert receipt["unreadable"] == ([] if mode == "root" else ["fd: Permission denied"]), receipt["unreadable"]
    assert receipt["enforced"] is True and receipt["missing"] == [], receipt
    assert receipt["weakened"] == (["cgroup"] if mode == "user" else [])
    zero = {k: ZERO for k in ("inheritable", "permitted", "effective", "bounding", "ambient")}
    own = {"threads": 1, "no_new_privs": True, "seccomp": "filter", "seccomp_filters": 1}
    assert receipt["commands"] == {**own, "capabilities": zero}
    caps = INIT["CapPrm"]
    assert receipt["init"] == {**own, "capabilities": {**zero, "permitted": caps, "effective": caps, "bounding": caps}}
    for n in NAMESPACES:
        host = int(re.search(r"\[(\d+)\]", os.readlink(f"/proc/self/ns/{n}"))[1])
        assert receipt["namespaces"][n]["host"] == host != receipt["namespaces"][n]["cell"]
    assert len({v["cell"] for v in receipt["namespaces"].values()}) == 7
    assert receipt["cgroup"] == (None if mode == "user" else {"memory": 512 << 20, "pids": 129, "cpu_milli": 1000})
    assert [x.split()[0] for x in receipt["descriptors"]] == ["0", "1", "2"]
    assert all("pipe:" in x for x in receipt["descriptors"])
    assert receipt["nested_user_namespaces_max"] == 0 and receipt["landlock"]["scoped"] is True
    with Held(argv=["/usr/bin/cat"], ready=b"", **how(mode)) as h:
        mine = sorted(re.sub(r"^\d+ \d+ \d+:\d+ ", "", re.sub(r"[ug]id=\d+,?", "", x))
                      for x in read(f"/proc/{h.pid}/mountinfo").splitlines())
        theirs = sorted(re.sub(r"^\d+ \d+ \d+:\d+ ", "", re.sub(r"[ug]id=\d+,?", "", x)) for x in receipt["mounts"])
        assert strip_devices(mine) == strip_devices(theirs)
        assert [x.rstrip() for x in receipt["rlimits"]] == [x.rstrip() for x in read(f"/proc/{h.pid}/limits").splitlines()]


@pytest.mark.quick
def test_receipt_of_a_short_program():
    """A program that ends at once is vouched for like any other: never a receipt over nothing."""
    bad = []
    for _ in range(12):
        r = cell(argv=["/usr/bin/true"], receipt=True)
        if r.status != "ok":
            bad.append(f"refused: {r['error']['message']}")
            continue
        receipt = r["receipt"]
        seen = (receipt["commands"]["threads"], receipt["commands"]["seccomp"], len(receipt["descriptors"]),
                len(receipt["rlimits"]))
        if seen != (1, "filter", 3, 17):
            bad.append(f"enforced {receipt['enforced']} over (threads, seccomp, descriptors, limits) {seen}")
    assert not bad, f"{len(bad)} of 12 receipts: " + "; ".join(sorted(set(bad)))


def strip_devices(lines):
    return [re.sub(r"\d+:\d+ ", "", x) for x in lines]


@pytest.mark.quick
@pytest.mark.parametrize("layer", ["seccomp", "landlock", "cgroup"])
def test_a_weaker_level_is_visible(layer):
    """--without: named in the receipt, warned about on stderr, and really and only that layer is off."""
    r = cell(argv=["/usr/bin/sleep", "0.3"], receipt=True, without=layer)
    receipt = r["receipt"]
    assert r.status == "ok" and receipt["weakened"] == [layer] and receipt["enforced"] is True, receipt
    assert receipt["commands"]["seccomp"] == ("none" if layer == "seccomp" else "filter")
    assert receipt["landlock"]["scoped"] is (layer != "landlock")
    assert (receipt["cgroup"] is None) is (layer == "cgroup")
    assert receipt["commands"]["no_new_privs"] and set(receipt["commands"]["capabilities"].values()) == {ZERO}
    quiet = cell(argv=["/usr/bin/true"], without=layer, json_result=False)
    assert quiet.exit == 0 and b"warning" in quiet.stderr and quiet.stderr.count(b"\n") == 1, quiet
    with Held(argv=["/usr/bin/cat"], ready=b"", without=layer) as h:
        p = posture(h.pid, caller_of(h))
        assert p["Seccomp"] == ("0" if layer == "seccomp" else "2") and p["CapBnd"] == ZERO and p["NoNewPrivs"] == "1"


@pytest.mark.quick
def test_supplementary_groups_of_a_user():
    """As root a cell has no groups of the caller. An ordinary user cannot drop its own: documented, and
    they open nothing but what the caller itself mounts in."""
    groups = ["setpriv", f"--reuid={USER}", f"--regid={USER}", "--groups=7777", "--"]
    env = host_env(CAISSON_STATE=str(cell_lib.user_state()))
    with scratch(0o750) as d:
        os.chown(d, 0, 7777)
        (d / "secret").write_text("of group 7777")
        (d / "secret").chmod(0o640)
        os.chown(d / "secret", 0, 7777)
        code = "import os\nprint(os.getgroups())\ntry: print(open('/m/secret').read())\nexcept OSError as e: print(e.errno)"
        line = cell_lib.command(code=code, mount=[f"{d}:/m"], without="cgroup")
        r = cell_lib.RunningAs([*groups, *line], True, env=env).finish(30)
        assert r.status == "ok", r
        assert "[65534]" in r.text or "[]" in r.text, r
        r = cell(code=code, mount=[f"{d}:/m"])
        assert r.text.startswith("[]\n"), r
    with Held(argv=["/usr/bin/cat"], ready=b"", caller=["setpriv", "--groups=4,27,7777", "--"]) as h:
        for pid in (h.pid, h.init):
            assert status_of(pid)["Groups"].split() == [], status_of(pid)["Groups"]


def test_posture_many_times():
    """Nothing in the posture depends on luck: 20 cells, the same each time."""
    for _ in range(20):
        with Held(argv=["/usr/bin/cat"], ready=b"") as h:
            no_differences(whole(h))
