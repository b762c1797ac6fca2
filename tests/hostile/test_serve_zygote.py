# SPDX-License-Identifier: Apache-2.0
"""test_serve_zygote.py - One warm interpreter that forks the kernels of all owners: its rights, its shared memory, its end."""
import contextlib
import hashlib
import os
import re
import secrets
import signal
import time

import daemon_lib
import pytest
import test_posture
from daemon_lib import GUEST, PYTHON, Daemon, Watch, scan_memory
from process import Later, call_yourself, children, status_of, unique
from lib import CAISSON, Canary, Process, at_most, control, host_env, landed, session
from cell_lib import read, said, until
from snapshot import stat_of

daemon, hostile_test, whole_module = daemon_lib.daemon, daemon_lib.hostile_test, daemon_lib.whole_module
quick = pytest.mark.quick
slow = pytest.mark.slow
ZERO = "0" * 16


def kernel_of(d, name, language="python"):
    """Host pid of a session's kernel."""
    mark = unique("k")[:14]
    if language == "python":
        d.execute(call_yourself(mark), session_id=name)
        return until(lambda: d.named(mark), 10, "the kernel").pop()
    inner = d.execute("echo $$", session_id=name, language=language).stdout.decode().strip()
    cell = os.readlink(f"/proc/{kernel_of(d, name)}/ns/pid")
    for p in d.guests():
        with contextlib.suppress(OSError, KeyError):  # others' may end meanwhile
            if os.readlink(f"/proc/{p}/ns/pid") == cell and status_of(p)["NStgid"].split()[-1] == inner:
                return p
    raise AssertionError(f"no kernel {inner} in {cell}")


def is_warm(d, pid):
    """Forked from the zygote: a child of the warden, not of the cell's pid 1."""
    return pid in children(d.warden)


# ---- posture ---------------------------------------------------------------------------------------------------------

@quick
def test_zygote_posture(daemon, stopped_by):
    """No power, no network, no view of the host, nothing but its two sockets: from outside, as root."""
    z = daemon.zygote
    st = status_of(z)
    for key in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"):
        assert st[key] == ZERO, (key, st[key])
    assert st["NoNewPrivs"] == "1" and st["Seccomp"] == "2" and st["Groups"] == "", st
    uids = set(st["Uid"].split()) | set(st["Gid"].split())
    assert len(uids) == 1 and 0x70000000 <= int(uids.pop()) < 0x80000000, st["Uid"]
    cells = 0
    for cell in daemon.cells():
        with contextlib.suppress(OSError, IndexError):  # one of a call that is over may end meanwhile
            base = int(read(f"/proc/{cell}/uid_map").split()[1])
            assert not base <= int(st["Uid"].split()[0]) < base + 65536, "the zygote's user is one of a cell"
            for n in ("mnt", "net", "ipc"):
                assert os.readlink(f"/proc/{z}/ns/{n}") != os.readlink(f"/proc/{cell}/ns/{n}"), f"shares {n} with {cell}"
            cells += 1
    landed(cells, "there are cells")
    for n in ("mnt", "net", "ipc"):
        for p in (daemon.pid, daemon.warden):
            assert os.readlink(f"/proc/{z}/ns/{n}") != os.readlink(f"/proc/{p}/ns/{n}"), f"shares {n} with {p}"
    nets = [line.split(":")[0].strip() for line in read(f"/proc/{z}/net/dev").splitlines()[2:]]
    assert nets == ["lo"] and "00010000" not in read(f"/proc/{z}/net/unix"), nets
    fds = {os.readlink(f"/proc/{z}/fd/{fd}").split(":")[0] for fd in os.listdir(f"/proc/{z}/fd")}
    assert fds <= {"socket", "/dev/null"}, fds
    env = dict(x.split("=", 1) for x in read(f"/proc/{z}/environ").split("\0") if x)
    assert not any(session().nonce in v for v in env.values()) and "CAISSON_STATE" not in env, env
    landed(session().nonce in read(f"/proc/{daemon.pid}/environ"), "the front has what the zygote must not have")
    stopped_by("user, namespaces, seccomp, no capabilities")


@quick
def test_zygote_sees_nothing_of_the_host(daemon, stopped_by):
    """World-writable files of the host do not exist for it, and it cannot write the files that it has."""
    root = f"/proc/{daemon.zygote}/root"
    with Canary() as c:
        for path in c.files:
            landed(os.path.exists(path), path)
            assert not os.path.lexists(root + path), f"READ: the zygote can see {path}"
        c.check()
    for path in ("/root", "/home/agent/.ssh", "/var/lib", "/run/docker.sock", "/etc/shadow", str(daemon.state), str(session().dir)):
        assert not os.path.lexists(root + path), path
    for line in read(f"/proc/{daemon.zygote}/mountinfo").splitlines():
        left, right = line.split(" - ")
        where, flags, kind = left.split()[4], left.split()[5].split(","), right.split()[0]
        assert "ro" in flags or kind in ("tmpfs", "devpts", "devtmpfs") or where.startswith("/dev/"), line
        assert "nosuid" in flags, line
    stopped_by("mount namespace")


@quick
def test_front_and_warden_posture(daemon, stopped_by):
    """The front, which reads strangers' bytes, has no power; the warden has the same as for `caisson run`, and no more."""
    st = status_of(daemon.pid)
    for key in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"):
        assert st[key] == ZERO, (key, st[key])
    uid = int(st["Uid"].split()[0])
    assert set(st["Uid"].split()) == {str(uid)} and uid != 0 and not 0x70000000 <= uid < 0x80000000, st["Uid"]
    assert st["NoNewPrivs"] == "1" and st["Seccomp"] == "2" and st["Groups"] == "" and st["Threads"] == "1", st
    kernel = kernel_of(daemon, unique())
    landed(os.stat(f"/proc/{kernel}/mem").st_uid == int(status_of(kernel)["Uid"].split()[0]), "what can be dumped belongs to its user")
    assert os.stat(f"/proc/{daemon.pid}/mem").st_uid == 0, "the front can be traced and dumped by its own user"
    assert test_posture.limits(f"/proc/{daemon.pid}")["core file size"] == ("0", "0")
    w = status_of(daemon.warden)
    for key in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb", "NoNewPrivs"):
        assert w[key] == test_posture.WARDEN[key], (key, w[key])
    stopped_by("own user, no capabilities, seccomp, Landlock")


# Intended differences between a kernel and a command of pid 1: the actions of the driver itself, and one more filter on top of the same one.
DRIVERS = {"fds", "exe", "environ", "inner pid", "SigCgt", "SigIgn", "SigBlk", "Threads", "posix timers", "Seccomp_filters",
           "timer slack", "ids"}
KNOWN = {"cgroups", "oom_score_adj"}  # have tests of their own


def both_postures(d):
    name = unique()
    warm, cold = kernel_of(d, name), kernel_of(d, name, "bash")
    landed(is_warm(d, warm) and not is_warm(d, cold), "one is forked, the other was started by pid 1")
    caller = {"ns": {n: os.readlink(f"/proc/self/ns/{n}") for n in test_posture.ALL_NAMESPACES},
              "cgroups": test_posture.cell_lib.own_paths(d.warden)}
    return warm, cold, test_posture.posture(warm, caller), test_posture.posture(cold, caller)


@quick
def test_kernel_posture_is_a_commands(daemon, stopped_by):
    """Status, limits, namespaces, mounts, ids, priorities: a forked kernel is like a process that the cell's pid 1 starts."""
    warm, cold, a, b = both_postures(daemon)
    out = [f"{k}: {a.get(k)!r} is not {b.get(k)!r}" for k in sorted((set(a) | set(b)) - DRIVERS - KNOWN) if a.get(k) != b.get(k)]
    out += [f"ids: {a['ids']} {b['ids']}"] if a["ids"] != b["ids"] else []
    out += [f"{n} namespace" for n in test_posture.ALL_NAMESPACES
            if os.readlink(f"/proc/{warm}/ns/{n}") != os.readlink(f"/proc/{cold}/ns/{n}")]
    out += ["mounts"] if test_posture.mounts(warm) != test_posture.mounts(cold) else []
    out += ["root"] if os.stat(f"/proc/{warm}/root/").st_ino != os.stat(f"/proc/{cold}/root/").st_ino else []
    assert not out, "a forked kernel differs from a command:\n  " + "\n  ".join(out)
    assert b["Seccomp_filters"] == "1" and a["Seccomp_filters"] == "2", (a["Seccomp_filters"], b["Seccomp_filters"])
    declared = test_posture.COMMAND
    for key in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb", "NoNewPrivs", "Seccomp", "Groups", "Umask", "cwd", "root"):
        assert a[key] == declared[key], (key, a[key])
    allowed = {"PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MPLCONFIGDIR",
               "PYTHONDONTWRITEBYTECODE", "PYTHONPATH", "PIP_RETRIES", "PIP_DISABLE_PIP_VERSION_CHECK", "PIP_BREAK_SYSTEM_PACKAGES", "UV_HTTP_RETRIES",
               "NPM_CONFIG_FETCH_RETRY_MINTIMEOUT", "NPM_CONFIG_FETCH_RETRY_MAXTIMEOUT", "NPM_CONFIG_UPDATE_NOTIFIER",
               "NODE_OPTIONS"}
    assert set(a["environ"]) <= allowed, a["environ"]
    stopped_by("the whole posture")


@quick
def test_kernel_cgroups_are_the_cells(daemon, stopped_by):
    """Wherever a cgroup limits or counts, a forked kernel is in that of its cell; and it is in none that ends with the zygote."""
    warm, _, a, b = both_postures(daemon)
    landed("cell" in b["cgroups"].values(), b["cgroups"])
    wrong = {c: g for c, g in a["cgroups"].items() if b["cgroups"][c] == "cell" and g != "cell"}
    if "memory" in test_posture.hierarchies():
        wrong.pop("unified", None)       # no controllers there: a place of the daemon's own will do
    assert not wrong, wrong
    of_zygote = set(read(f"/proc/{daemon.zygote}/cgroup").splitlines()) - set(read(f"/proc/{daemon.warden}/cgroup").splitlines())
    shared = of_zygote & set(read(f"/proc/{warm}/cgroup").splitlines())
    assert not shared, f"the kernel is in the zygote's own cgroups: {shared}"
    stopped_by("cgroups")


@quick
def test_kernel_goes_first_when_memory_is_out(daemon, stopped_by):
    """When the whole machine is out of memory a kernel is preferred as a victim, like any process of a cell."""
    _, _, a, b = both_postures(daemon)
    landed(b["oom_score_adj"] == "1000", b["oom_score_adj"])
    assert a["oom_score_adj"] == b["oom_score_adj"], (a["oom_score_adj"], b["oom_score_adj"])
    stopped_by("oom_score_adj")


@quick
def test_kernel_descriptors(daemon, stopped_by):
    """A kernel that has just been forked has /dev/null, four pipes and the descriptors of its loop; none of the zygote's or the host's."""
    z = f"/proc/{daemon.zygote}/fd/"
    landed(any("socket:" in os.readlink(z + fd) for fd in os.listdir(z)), "the zygote has sockets")
    daemon_lib.refresh(daemon)
    kernels = [p for p in daemon.guests() if is_warm(daemon, p)] + [kernel_of(daemon, unique()) for _ in range(2)]
    landed(len(kernels) >= 4, kernels)
    for pid in kernels:
        try:
            links = {fd: os.readlink(f"/proc/{pid}/fd/{fd}") for fd in os.listdir(f"/proc/{pid}/fd")}
        except OSError:
            continue        # the pool let it go
        assert links.pop("0") == "/dev/null" and links["1"].startswith("pipe:") and links["2"].startswith("pipe:"), links
        pipes = [x for x in links.values() if x.startswith("pipe:")]
        rest = [x for x in links.values() if not x.startswith("pipe:")]
        assert len(set(pipes)) == len(pipes) == 4, links
        assert all(x.startswith(("anon_inode:[eventpoll]", "anon_inode:[eventfd]", "socket:")) for x in rest) and len(rest) <= 3, links
    stopped_by("close_range before the hello")


# ---- what is shared ---------------------------------------------------------------------------------------------------------

def shared_writable(pid):
    """{(device, inode): line} of mappings that another process may write too."""
    found = {}
    for line in read(f"/proc/{pid}/maps").splitlines():
        w = line.split()
        if "s" in w[1] and "w" in w[1]:
            found[(w[3], w[4])] = line
    return found


@quick
def test_no_shared_writable_memory(daemon, stopped_by):
    """As the host sees it: no two kernels, and no kernel and the zygote, have a mapping in common that can be written."""
    code = "import mmap, os, time\nm = mmap.mmap(-1, 4096)\nif not os.fork(): time.sleep(3)\ntime.sleep(1)"
    p = Process([PYTHON, "-c", code], env=host_env())
    try:
        child = until(lambda: children(p.pid), 5, "a child")[0]
        landed(set(shared_writable(p.pid)) & set(shared_writable(child)), "a shared page is seen")
    finally:
        for pid in (child, p.pid):
            os.kill(pid, signal.SIGKILL)
        p.wait(5)
    kernels = [p for p in daemon.guests() if is_warm(daemon, p)]
    landed(len(kernels) >= 2, kernels)
    maps = {p: shared_writable(p) for p in (daemon.zygote, *kernels)}
    common = [(p, q, maps[p][k]) for p in maps for q in maps if p < q for k in set(maps[p]) & set(maps[q])]
    assert not common, f"{len(common)} pairs share writable memory, as {common[0]}"
    stopped_by("fork: copy on write")


WRITE = """
import ctypes
n = 0
for line in open('/proc/self/maps'):
    if ' rw-s ' in line or ' -w-s ' in line or ' rwxs ' in line:
        at, end = (int(x, 16) for x in line.split()[0].split('-'))
        ctypes.memmove(at + 64, TEXT, len(TEXT))
        n += 1
print(n)
"""
LOOK = """
import ctypes
found = []
for line in open('/proc/self/maps'):
    if line.split()[1][3] == 's' and line.split()[1][0] == 'r':
        at, end = (int(x, 16) for x in line.split()[0].split('-'))
        data = ctypes.string_at(at, min(end - at, 1 << 20))
        found.append(TEXT in data)
print(any(found))
"""


@quick
def test_write_in_one_look_in_another(daemon, stopped_by):
    """A writes into all of its memory that is shared with another process; B, forked before, and C, forked after, do not find it."""
    a, b, c = unique("a"), unique("b"), unique("c")
    text = secrets.token_bytes(16)
    child = (WRITE + "os.write(1, b'%d ' % n)\nos._exit(0)").replace("\n", "\n ")
    code = f"TEXT = {text!r}\nimport mmap, os\nm = mmap.mmap(-1, 4096)\nif not os.fork():\n{child}\nos.wait()\n{LOOK}"
    r = control([PYTHON, "-c", code])
    landed(r.stdout.split() == [b"1", b"True"], r)
    daemon.execute("1", session_id=b)
    daemon.execute(f"TEXT = {text!r}\n{WRITE}", session_id=a)
    for name in (b, c):
        r = daemon.execute(f"TEXT = {text!r}\n{LOOK}", session_id=name)
        assert r.stdout == b"False\n", "READ: text of one sandbox is in the memory of another one"
    stopped_by("fork: copy on write")


SPOIL = """
import ctypes, time
pages = [int(x.split('-')[0], 16) for x in open('/proc/self/maps') if x.split()[1][1] == 'w' and x.split()[1][3] == 's']
end = time.monotonic() + 1.2
words = [ctypes.cast(p, ctypes.POINTER(ctypes.c_int)) for p in pages]
while time.monotonic() < end:
    for w in words:
        w[0] = VALUE
    if not words:
        time.sleep(0.05)
"""


@slow
def test_spoiling_shared_memory_hurts_nobody(stopped_by):
    """A writes nonsense over everything that is shared: others start as before, and live on. (A daemon of its own.)"""
    with Daemon() as d:
        other = unique()
        d.execute("x = 5", session_id=other)
        quiet = max(d.good() for _ in range(20))
        for value in (0x7ffffff0, -5):
            attack = Later(lambda v=value: d.execute(SPOIL.replace("VALUE", str(v)), timeout=20))
            worst = 0.0
            end = time.monotonic() + 1
            while time.monotonic() < end:
                worst = max(worst, d.good())
            attack.result()
            assert worst < at_most(quiet + 1.0), f"others waited {worst:.2f} s, {quiet:.2f} s without it"
        r = d.execute("x", session_id=other)
        assert r["result"] == {"text/plain": "5"} and r["epoch"] == 0, f"another session lost its variables: {r}"
        assert not d.log("zygote_lost"), d.log("zygote_lost")
        d.end_session(other)
        d.quiet()
    stopped_by("fork: copy on write")


@quick
def test_no_other_sandboxs_data(daemon, stopped_by):
    """A canary in A's variables, code, files, stdin and session: in no other kernel's memory, forked before or after, nor in the
    zygote's or the warden's; neither seen from outside nor by a kernel that reads itself."""
    a, b = unique("a"), unique("b")
    nonce = secrets.token_hex(16)
    first = kernel_of(daemon, b)
    mine = kernel_of(daemon, a)
    daemon.execute(f"canary = '{nonce[:16]}' + '{nonce[16:]}'\nblob = [canary + str(i) for i in range(1000)]\n"
                   f"open('/tmp/c', 'w').write(canary)\n# {nonce}\nimport os; os.environ['C'] = canary\nprint(canary)\n"
                   "try: input()\nexcept EOFError: pass", session_id=a, stdin=nonce)
    for _ in range(6):
        daemon.good()
    landed(scan_memory(mine, nonce.encode()), "the canary is found where it is")
    later = kernel_of(daemon, unique("c"))
    lasting = {first, later, daemon.zygote, daemon.warden}
    holders = []
    for p in {p for p in daemon.guests() if p != mine} | lasting:
        try:
            if scan_memory(p, nonce.encode()):
                holders.append((p, stat_of(p)))
        except (FileNotFoundError, ProcessLookupError):
            assert p not in lasting, f"{p} is gone"  # of one whose call is over the cell may just end
    assert not holders, f"READ: A's data is in the memory of {holders}"
    masked = [x ^ 0x55 for x in nonce.encode()]
    inside = f"""
n = bytes(x ^ 0x55 for x in {masked})
hits = 0
with open('/proc/self/maps') as maps, open('/proc/self/mem', 'rb', 0) as mem:
    for line in maps:
        if line.split()[1][0] != 'r' or '[v' in line:
            continue
        start, end = (int(x, 16) for x in line.split()[0].split('-'))
        try:
            mem.seek(start)
            data = mem.read(end - start)
        except (OSError, OverflowError, ValueError):
            continue
        at = data.find(n)
        hits += at >= 0 and data.count(n)
        del data
print(hits)
"""
    # It finds its own copies (the needle itself, and pieces of its reads); in A there are a thousand more.
    counts = [int(daemon.execute(inside, timeout=30, **where).stdout) for where in ({"session_id": a}, {"session_id": b}, {})]
    landed(counts[0] >= 1000, counts)
    assert max(counts[1:]) <= 8, f"READ: {counts}"
    stopped_by("the zygote never has a client's bytes; a cell for each")


RANDOM = """
import os, random, secrets, tempfile, uuid
print([random.getrandbits(64), random.SystemRandom().getrandbits(64), random.Random().getrandbits(64), uuid.uuid4().hex, uuid.uuid1().hex,
       secrets.token_hex(8), os.urandom(8).hex(), os.path.basename(tempfile.mktemp()), next(tempfile._get_candidate_names())])
"""


@quick
def test_random_streams_differ(daemon, stopped_by):
    """No two kernels, forked from the same zygote or one after another in a session, draw the same numbers."""
    code = "import os, random\nr = random.Random()\nfor _ in range(2):\n" \
        "    if not os.fork(): print(r.getrandbits(64), flush=True); os._exit(0)\n    os.wait()"
    c = control([PYTHON, "-c", code])
    landed(len(set(c.stdout.split())) == 1 and len(c.stdout.split()) == 2, c)      # objects that were made before a fork continue equally
    name = unique()
    drawn = []
    for i in range(10):
        s = {"session_id": name} if i % 3 == 0 else {}
        drawn.append(eval(daemon.execute(RANDOM, **s).stdout.decode()))
        if s:
            daemon.execute("import os; os._exit(0)", **s)
    for k in range(len(drawn[0])):
        column = [d[k] for d in drawn]
        assert len(set(column)) == len(column), f"column {k}: {column}"
    stopped_by("reseeding after the fork")


@quick
def test_guest_files_are_unchanged(daemon, stopped_by):
    """Everything through which a kernel could reach the files it was made from: none of it can be written."""
    files = [GUEST / "kernel.pyz", GUEST / "enter.so", GUEST / "driver.sh", CAISSON, CAISSON.parent / "caisson-front",
             CAISSON.parent / "caisson-warden", CAISSON.parent / "caisson-init"]
    before = {f: hashlib.sha256(f.read_bytes()).digest() for f in files}
    r = daemon.execute("""
import os, sys
paths = {x.split(None, 5)[5].strip() for x in open('/proc/self/maps') if x.count('/')}
paths |= {'/run/caisson/kernel.pyz', '/run/caisson/enter.so', '/proc/self/exe', sys.executable, sys.argv[0], *sys.path}
paths |= {getattr(m, '__file__', None) or '' for m in sys.modules.values()}
for d in ('/proc/1/map_files/', '/proc/self/map_files/'):
    if os.access(d, os.R_OK):
        paths |= {d + f for f in os.listdir(d)}
wrote = []
for p in sorted(paths):
    for flags in (os.O_WRONLY, os.O_RDWR, os.O_WRONLY | os.O_TRUNC):
        try:
            os.close(os.open(p, flags))
            wrote.append(p)
        except (OSError, ValueError):
            pass
print(len(paths), wrote)
print(os.path.exists('/run/caisson'))
""")
    found = re.match(rb"(\d+) (.*)\n(.*)\n", r.stdout)
    landed(int(found[1]) > 30, r)
    assert found[2] == b"[]" and found[3] == b"False", r
    assert {f: hashlib.sha256(f.read_bytes()).digest() for f in files} == before, "WRITE: a file of ours was changed"
    stopped_by("read-only mounts; mount namespace")


# ---- reach ------------------------------------------------------------------------------------------------------------------

@quick
def test_out_of_reach(daemon, stopped_by):
    """The zygote, the warden, the front and another sandbox's kernel, by their true pids: no signal, no look, no connection."""
    other = unique()
    victim = kernel_of(daemon, other)
    targets = [daemon.zygote, daemon.warden, daemon.pid, victim, *daemon.cells()]
    starts = {p: stat_of(p)[3] for p in targets}
    with Canary() as c:
        code = f"""
import os, signal, socket
hit = []
for pid in {targets + [c.pid]}:
    if pid == os.getpid():
        continue
    for s in (0, signal.SIGSTOP, signal.SIGKILL):
        try:
            os.kill(pid, s)
            hit.append((pid, s))
        except OSError:
            pass
    for f in ('status', 'mem', 'root', 'fd', 'maps', 'cmdline'):
        if os.path.lexists('/proc/%d/%s' % (pid, f)):
            hit.append((pid, f))
seen = sorted(int(p) for p in os.listdir('/proc') if p.isdigit())
guessed = []
for pid in range(2, 33000):
    try:
        os.kill(pid, 0)
        guessed.append(pid)
    except OSError:
        pass
def connect(family, address):
    with socket.socket(family) as s:
        s.settimeout(0.3)
        try:
            s.connect(address)
            hit.append(address)
        except OSError:
            pass
for name in {[c.abstract_name]}:
    connect(socket.AF_UNIX, '\\0' + name)
for port in ({daemon.port}, {c.tcp_port}):
    for host in ('127.0.0.1', '0.0.0.0', '10.0.0.1', '169.254.169.254'):
        connect(socket.AF_INET, (host, port))
    connect(socket.AF_INET6, ('::1', port))
connect(socket.AF_UNIX, {c.unix_path!r})
print([hit, seen, guessed == [p for p in seen if p > 1], [x.split()[7:] for x in open('/proc/net/unix').read().splitlines()[1:]]])
"""
        outside = control([PYTHON, "-c", "import socket\ns = socket.socket(socket.AF_UNIX)\n"
                           f"s.connect('\\0{c.abstract_name}')\nprint(s.recv(99))\n"
                           f"print(socket.create_connection(('127.0.0.1', {daemon.port})))"])
        landed(c.nonce.encode() in outside.stdout and b"socket.socket" in outside.stdout, outside)
        heard = c.report()["hits"]
        r = daemon.execute(code, timeout=30)
        assert r.status == "ok", r
        hit, seen, same, unix = eval(r.stdout.decode())
        assert not hit, f"ESCAPE: reached {hit}"
        assert len(seen) <= 3 and same and not [x for x in unix if x], (seen, unix)
        assert c.report()["hits"] == heard and not c.report()["signals"], c.report()
    assert {p: stat_of(p)[3] for p in targets if stat_of(p)} == {p: t for p, t in starts.items() if stat_of(p)}
    for p in (daemon.zygote, daemon.warden, daemon.pid, victim):
        st = status_of(p)
        assert stat_of(p)[1] in "SR" and int(st["ShdPnd"], 16) == 0, (p, st["State"])
    assert daemon.execute("1", session_id=other)["epoch"] == 0
    stopped_by("pid, net and mount namespace of each cell")


CALLS = """
import ctypes, errno, json, os, sys
libc = ctypes.CDLL(None, use_errno=True)
def call(name, *args):
    ctypes.set_errno(0)
    r = libc.syscall(*args)
    print(name, r if r < 0 else 0, ctypes.get_errno(), errno.errorcode.get(ctypes.get_errno(), 'OK'))
ns = [0x20000, 0x2000000, 0x4000000, 0x8000000, 0x10000000, 0x20000000, 0x40000000, 0x80]
for f in ns:
    call('unshare-%x' % f, 272, f)
    call('setns-self-%x' % f, 308, os.pidfd_open(os.getpid()), f)
    call('setns-init-%x' % f, 308, os.pidfd_open(1), f)
    call('setns-bad-%x' % f, 308, -1, f)
call('setns-all', 308, os.pidfd_open(1), 0x7e020000)
for n in ('user', 'pid', 'mnt', 'net', 'ipc', 'uts', 'cgroup'):
    try:
        fd = os.open('/proc/self/ns/' + n, os.O_RDONLY)
    except OSError:
        fd = -1
    call('setns-own-' + n, 308, fd, 0)
for name, nr, args in (
    ('mount', 165, (b'x', b'/tmp', b'tmpfs', 0, 0)), ('umount', 166, (b'/proc', 2)), ('pivot_root', 155, (b'/', b'/')),
    ('chroot', 161, (b'/tmp',)), ('ptrace-me', 101, (0, 0, 0, 0)), ('ptrace', 101, (16, 1, 0, 0)),
    ('bpf', 321, (0, 0, 0)), ('io_uring', 425, (1, 0)), ('keyctl', 250, (0, -3, 0)),
    ('add_key', 248, (b'user', b'a', b'b', 1, -3)), ('userfaultfd', 323, (0,)), ('perf', 298, (0, 0, -1, -1, 0)),
    ('clone3', 435, (0, 0)), ('clone-newuser', 56, (0x10000011, 0, 0, 0, 0)), ('open_tree', 428, (-100, b'/', 1)),
    ('move_mount', 429, (-1, b'', -1, b'', 0)), ('fsopen', 430, (b'tmpfs', 0)), ('kcmp', 312, (1, 1, 0, 0, 0)),
    ('vm_readv', 310, (1, 0, 0, 0, 0, 0)), ('pidfd_getfd', 438, (os.pidfd_open(1), 0, 0)), ('netlink', 41, (16, 3, 0)),
    ('packet', 41, (17, 3, 0)), ('vsock', 41, (40, 1, 0)), ('unix', 41, (1, 1, 0)), ('inet', 41, (2, 1, 0)),
    ('seccomp', 317, (1, 0, 0)), ('reboot', 169, (0, 0, 0, 0)), ('setuid-0', 105, (0,)), ('setgid-0', 106, (0,)),
    ('setgroups', 116, (0, 0)), ('capset', 126, (0, 0)), ('personality', 135, (0x20000,)),
    ('sethostname', 170, (b'x', 1)), ('syslog', 103, (3, 0, 0)), ('quotactl', 179, (0, 0, 0, 0)),
    ('name_to_handle', 303, (-100, b'/', 0, 0, 0)), ('open_by_handle', 304, (-100, 0, 0)), ('memfd_secret', 447, (0,)),
    ('landlock', 444, (0, 0, 1)), ('openat2', 437, (-100, b'/', 0, 24)), ('none', 999, ()), ('x32', 0x40000027, ())):
    call(name, nr, *args)
"""


@quick
def test_same_system_calls_as_a_command(daemon, stopped_by):
    """setns, unshare and the rest: a forked kernel gets the answers that a command of pid 1 gets in the same cell; the one thing
    that the zygote's filter leaves open, setns, is shut for everybody."""
    c = control([PYTHON, "-c", CALLS], uid=0)
    open_outside = {k for k, (r, _) in said(c.stdout).items() if r == 0}
    landed({"unshare-10000000", "setns-self-20000", "chroot", "netlink", "personality"} <= open_outside, sorted(open_outside))
    name = unique()
    warm = said(daemon.execute(CALLS, session_id=name).stdout)
    landed(is_warm(daemon, kernel_of(daemon, name)), "a forked kernel")
    cold = said(daemon.execute("cat >/tmp/calls <<'END'\n" + CALLS + "\nEND\n/usr/bin/python3 /tmp/calls", session_id=name,
                               language="bash").stdout)
    landed(len(warm) > 60 and len(warm) == len(cold), (len(warm), len(cold)))
    differ = {k: (warm[k], cold[k]) for k in warm if warm[k] != cold.get(k)}
    # An EPERM of the filter comes before the kernel has a look at the arguments.
    assert all(k.startswith("setns") and w[1] in ("EPERM", "ENOSYS") for k, (w, _) in differ.items()), f"(kernel, command): {differ}"
    allowed = {k for k, (r, _) in warm.items() if r == 0}
    assert allowed <= {"unix", "inet", "setgroups", "landlock", "ptrace-me"} and "setns-all" not in allowed, f"allowed: {allowed}"
    stopped_by("seccomp")


# ---- the end of a zygote ------------------------------------------------------------------------------------------------------

@slow
def test_zygote_is_killed(stopped_by):
    """Requests before, while and after zygotes die: each is answered, with a success. (A daemon of its own: its pool is cold
    for a while.)"""
    with Daemon() as d:
        landed(d.zygote, "a zygote")
        for _ in range(2):
            z = d.zygote
            before = [Later(lambda: d.execute("import time; time.sleep(0.5); print(1)")) for _ in range(3)]
            time.sleep(0.25)
            os.kill(z, signal.SIGKILL)
            calls = [Later(d.good) for _ in range(6)]
            worst = max(c.result(60) for c in calls)
            assert worst < at_most(15), f"one waited {worst:.1f} s"
            for r in (c.result(60) for c in before):
                assert r.status == "ok" and r.stdout == b"1\n", r
            until(lambda: d.zygotes() and d.zygote != z, 20, "another zygote")
        until(d.ready, 30, "a pool")
        d.good()
        d.quiet()
    stopped_by("cold kernels meanwhile; a new zygote")


@quick
def test_kernels_outlive_their_zygote(stopped_by):
    """Sessions keep their variables, and an execution that runs at that moment its result, when the zygote is killed."""
    with Daemon() as d:
        name, other = unique(), unique()
        d.execute("x = 5", session_id=name)
        landed(is_warm(d, kernel_of(d, name)), "a forked kernel")
        running = Later(lambda: d.execute("import time; time.sleep(1.5); 'whole'", session_id=other))
        time.sleep(0.5)
        os.kill(d.zygote, signal.SIGKILL)
        r = running.result()
        assert r["result"] == {"text/plain": "'whole'"} and r.status == "ok", r
        r = d.execute("x", session_id=name)
        assert r["result"] == {"text/plain": "5"} and r["epoch"] == 0, r
        for s in (name, other):
            d.end_session(s)
    stopped_by("nothing to stop: a kernel is no part of its zygote")


@quick
def test_zygote_is_stopped(stopped_by):
    """A zygote that does not answer (SIGSTOP) delays no request for long, and fails none."""
    with Daemon("--pool", 2) as d:
        z = d.zygote
        os.kill(z, signal.SIGSTOP)
        try:
            landed(until(lambda: stat_of(z)[1] == "T", 5, "a stopped zygote"), z)
            calls = [Later(d.good) for _ in range(8)]
            worst = max(c.result(60) for c in calls)
            print(f"the slowest of eight waited {worst:.2f} s")
            assert worst < at_most(12), f"one waited {worst:.1f} s"
        finally:
            if stat_of(z):
                os.kill(z, signal.SIGCONT)
        until(d.ready, 30, "a pool")
        d.quiet(20)
    stopped_by("a deadline; cold kernels; a new zygote")


@slow
def test_zygotes_without_end(stopped_by):
    """Twenty deaths of zygotes under load: no request fails, nothing adds up."""
    with Daemon() as d:
        for _ in range(20):
            calls = [Later(d.good) for _ in range(4)] + [Later(lambda: d.execute("import time; time.sleep(0.1); print(1)").stdout)]
            time.sleep(0.05)
            for z in d.zygotes():
                os.kill(z, signal.SIGKILL)
            assert [c.result(60) for c in calls][-1] == b"1\n"
        until(d.ready, 60, "a pool")
        d.quiet(20)
        assert d.descriptors() < 120, d.descriptors()
    stopped_by("cold kernels meanwhile; a back-off")


@quick
def test_preload_can_not_be_reached_by_clients(daemon, stopped_by):
    """Nothing in a request makes the zygote import or run anything: no field, no header, no environment."""
    z = daemon.zygote
    before = read(f"/proc/{z}/maps")
    for fields in ({"preload": "antigravity"}, {"env": {"PYTHONPATH": "/tmp"}}, {"without": "seccomp"}):
        r = daemon.request("POST", "/execute", {"code": "1", **fields})
        assert r.status == 422 and r.code == "unknown_field", r
    r = daemon.request("POST", "/execute", {"code": "1", "image": "dir:/"})  # the command line's way to name one
    assert r.status == 422 and r.code == "image_unavailable", r
    with Watch(daemon):
        for code in ("import antigravity", "import sys; sys.modules.clear()", "import ctypes; ctypes.memset(id(None), 0, 64)"):
            daemon.request("POST", "/execute", {"code": code, "timeout": 3})
    assert daemon.zygote == z and [x for x in read(f"/proc/{z}/maps").splitlines() if "[heap]" not in x] == \
        [x for x in before.splitlines() if "[heap]" not in x], "the zygote is another one"
    assert daemon.health()["pool"]["zygote"] is True
    stopped_by("the zygote never has a client's bytes")


# ---- counters ----------------------------------------------------------------------------------------------------------

TAKE = """
import ctypes
libc, kept = ctypes.CDLL(None, use_errno=True), []
while len(kept) < %d:
    fd = libc.%s
    if fd < 0: break
    kept.append(fd)
print(len(kept))
"""


@quick
@pytest.mark.parametrize("call", ["inotify_init()", "posix_openpt(2)"])
def test_no_kernel_takes_shared_resources(daemon, call, stopped_by):
    """Cells that one zygote enters have its account in common. One of them has its part of it, and no more; root's is another."""
    d = daemon
    cap = int(read("/proc/sys/user/max_inotify_instances")) // 8 if "inotify" in call else 32
    landed(is_warm(d, kernel_of(d, "greedy")), "it was forked from the zygote")
    got = [int(d.execute(TAKE % (500, call), session_id=name).stdout) for name in ("greedy", "next", "another")]
    assert got == [cap] * 3, got
    if "inotify" in call:
        whole = 8 * cap
        c = control(["/usr/bin/python3", "-c", TAKE % (whole - 20, call)], uid=0)
        assert c.stdout == b"%d\n" % (whole - 20), f"root is charged for cells: {c}"
    stopped_by("limits of the cell's user namespace" if "inotify" in call else "max= of each cell's devpts")
