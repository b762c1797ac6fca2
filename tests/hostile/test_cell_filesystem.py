# SPDX-License-Identifier: Apache-2.0
"""test_cell_filesystem.py - Files, /proc, devices, cgroupfs and mounts, seen from inside.

With them three families of known escapes: binaries overwritten through
/proc/PID/exe, leaked descriptors, hostile images.
"""
import os
import re
import shutil
import socket
import stat
import subprocess
import time
from pathlib import Path

import pytest

import cell_lib
from lib import CAISSON, Canary, at_most, cell, host_env, landed, payload, session, start
from cell_lib import (USER, Held, binary_hashes, host, masked, nonce, read, scratch, succeeded,
                   user_cell)

from layers_lib import copy_in, libraries

BOTH = pytest.mark.parametrize("as_user", [False, True], ids=["root", "user"])
# The same without the filter, to see the second layer alone, is for the whole suite.
LAYERS = pytest.mark.parametrize("layer", [pytest.param(None, marks=pytest.mark.quick, id="all-layers"),
                                           pytest.param("seccomp", id="without-seccomp")])


def runner(as_user):
    return user_cell if as_user else cell


def weaker(layer, as_user):
    return ",".join(x for x in (layer, "cgroup" if as_user else None) if x) or None


def found(text):
    return [line for line in text.splitlines() if line.startswith("FOUND")]


# ---- secrets of the host ---------------------------------------------------------------------

PLACES = ("/", "/root", "/home", "/etc", "/etc/ssl", "/etc/cron.d", "/var", "/var/lib", "/var/log", "/var/cache",
          "/var/tmp", "/var/spool", "/tmp", "/run", "/run/lock", "/opt", "/srv", "/mnt", "/media", "/boot",
          "/dev/shm", "/var/mail", "/var/backups", "/etc/default", "/var/local", "/dev")


class Planted:
    """The nonce in 20 and more places outside: files that anybody may read, names, links, arguments,
    an environment, another cell."""

    def __init__(self, as_user=False):
        self.n, self.as_user, self.paths = nonce(), as_user, []

    def __enter__(self):
        for place in (*PLACES, session().dir, session().state, session().dir / "user-state"):
            if not os.path.isdir(place):
                continue
            path = Path(place) / f"canary-{self.n}"
            path.write_text(f"secret {self.n}\n")
            path.chmod(0o666)
            os.symlink(f"/nowhere/{self.n}", f"{path}-link")
            self.paths += [path, Path(f"{path}-link")]
        self.sleeper = subprocess.Popen(["sleep", "100"], env={"SECRET": self.n})
        self.other = start(code=f"import sys; open('/tmp/{self.n}', 'w').write('{self.n}'); "
                                f"print('up', flush=True); sys.stdin.read()", json_result=False, stdin_open=True)
        cell_lib.until(lambda: b"up" in bytes(self.other.out), 10, "the other cell")
        return self

    def __exit__(self, *exc):
        self.other.popen.stdin.close()
        self.other.wait(10)
        self.sleeper.kill()
        self.sleeper.wait()
        for p in self.paths:
            p.unlink(missing_ok=True)


@pytest.mark.quick
@BOTH
def test_secrets_of_the_host(as_user, stopped_by):
    """Canaries in more than 20 places of the host; the guest walks all of its own world for them."""
    cell_lib.user_state()
    with Planted() as c:
        dirs = {str(p.parent) for p in c.paths}
        landed(len(dirs) >= 20, f"canaries in {len(dirs)} directories")
        seen = host([payload("walk"), masked(c.n), "=/proc", "=/sys", "=/usr", "=/var/lib", "=/var/cache",
                     "=/work", "=/tmp", "=/root", "-/", "/"], timeout=20)
        landed(len(found(seen.stdout.decode())) >= 20, seen)
        secret_env = host_env()["CAISSON_HOSTILE_NONCE"]
        for n in (c.n, secret_env):
            r = runner(as_user)([masked(n), "=/usr", "/"], payload="walk")
            assert r.status == "ok" and not found(r.text), f"READ: {r}"
            m = re.search(r"names (\d+) files (\d+)", r.text)
            landed(int(m[1]) > 500 and int(m[2]) > 300, f"the walk saw its world: {m[0]}")
    stopped_by("mount namespace: nothing of the host but /usr", "own host uid" if not as_user else "")


@BOTH
def test_all_of_usr_as_well(as_user):
    """The same with every name below /usr, which the cell shares with the host."""
    with Planted() as c:
        r = runner(as_user)([masked(c.n), "-/usr", "/"], payload="walk", timeout=60)
        assert r.status == "ok" and not found(r.text), f"READ: {r}"
        assert int(re.search(r"names (\d+)", r.text)[1]) > 10000, r


@pytest.mark.quick
def test_the_root_is_as_documented():
    """The top of the tree, /etc and /var, name by name."""
    r = cell(code="import os\nfor d in ('/', '/etc', '/var', '/run', '/home', '/workspace', '/tmp', '/etc/ssl'):"
                  "\n print(d, *sorted(os.listdir(d)))", json_result=False)
    got = {line.split()[0]: set(line.split()[1:]) for line in r.stdout.decode().splitlines()}
    top = {"usr", "etc", "dev", "proc", "sys", "tmp", "var", "run", "home", "workspace", "projects"}
    top |= {x for x in ("bin", "sbin", "lib", "lib32", "lib64", "libx32") if os.path.lexists("/" + x)}
    etc = {"passwd", "group", "hosts", "hostname", "nsswitch.conf", "resolv.conf", "os-release", "mtab", "ssl", "localtime", "timezone",
           "chromium.d", "caisson-node.js"}
    there = [x for x in cell_lib.ETC if os.path.exists(x)]
    etc |= {x.split("/")[2] for x in there}
    ssl = {x[9:] for x in there if x.startswith("/etc/ssl/")}
    assert got == {"/": top, "/etc": etc, "/var": {"tmp", "run"}, "/run": {"postgresql"}, "/home": {"agent"}, "/workspace": set(),
                   "/tmp": set(), "/etc/ssl": ssl}


# ---- /proc -------------------------------------------------------------------------

@BOTH
@LAYERS
def test_proc_and_sys_cannot_be_written(as_user, layer, stopped_by):
    """Every file of /proc and /sys, opened for writing: only the masks, which are /dev/null."""
    c = host([payload("open_all"), "w", "/proc/sys/kernel", "/proc/self", "/proc/sysrq-trigger"],
             unshare=("--mount", "--pid", "--fork", "--mount-proc"))
    landed("OPEN /proc/sys/kernel/core_pattern" in c.stdout.decode(), c)
    r = runner(as_user)(["w", "/proc", "/sys"], payload="open_all", capture=200000, without=weaker(layer, as_user))
    opened = [x for x in r.text.splitlines() if x.startswith("OPEN")]
    assert r.status == "ok" and all(x.startswith("OPEN device /proc/") for x in opened), opened
    assert int(re.search(r"seen (\d+)", r.text)[1]) > 500, r
    if layer is None:
        stopped_by("read-only /proc, empty /sys", "no capabilities")


@pytest.mark.quick
@BOTH
def test_own_process_settings(as_user, stopped_by):
    """oom score, id maps, setgroups, security attributes, the machine's knobs: as before, from outside."""
    code = """
import sys
for path, text in (('oom_score_adj', '-900'), ('oom_score_adj', '0'), ('oom_adj', '-17'), ('uid_map', '0 0 1'),
                   ('gid_map', '0 0 1'), ('setgroups', 'allow'), ('attr/current', 'x'), ('attr/exec', 'x'),
                   ('comm', 'changed'), ('timerslack_ns', '1'), ('coredump_filter', '0xff'), ('autogroup', '-5'),
                   ('loginuid', '0'), ('clear_refs', '1'), ('sched', '0'), ('make-it-fail', '1')):
    for who in ('self', '1'):
        try:
            open(f'/proc/{who}/{path}', 'w').write(text); print('wrote', who, path)
        except OSError as e: pass
for path, text in (('sys/kernel/core_pattern', '|/tmp/x'), ('sys/kernel/modprobe', '/tmp/x'), ('sysrq-trigger', 'h'),
                   ('sys/kernel/hostname', 'x'), ('sys/vm/overcommit_memory', '1'), ('sys/net/ipv4/ip_forward', '1'),
                   ('sys/user/max_user_namespaces', '1000'), ('sys/kernel/ns_last_pid', '5'), ('irq/default_smp_affinity', '1'),
                   ('sys/fs/binfmt_misc/register', ':x:M::x::/x:'), ('sys/kernel/shmmax', '1')):
    try:
        open('/proc/' + path, 'w').write(text); print('wrote', path)
    except OSError as e: pass
print('ready', flush=True); sys.stdin.read()
"""
    c = host(["/usr/bin/python3", "-c", code], uid=USER)
    landed("wrote self oom_score_adj" in c.stdout.decode() or "wrote self comm" in c.stdout.decode(), c)
    knobs = [k for k in ("core_pattern", "modprobe", "hostname", "shmmax") if os.path.exists(f"/proc/sys/kernel/{k}")]
    before = {k: read(f"/proc/sys/kernel/{k}") for k in knobs}
    with Held(code=code, as_user=as_user, without=weaker(None, as_user)) as h:
        # A device in the place of a file accepts any text and does nothing: masks work that way.
        wrote = [x for x in h.text.splitlines() if x.startswith("wrote") and x != "wrote sysrq-trigger"]
        now = {k: read(f"/proc/sys/kernel/{k}") for k in knobs}
        assert [int(read(f"/proc/{pid}/oom_score_adj")) for pid in (h.pid, h.init)] == [1000, 800], "pid 1 goes last"
        assert int(read(f"/proc/{h.pid}/timerslack_ns")) == 50000
        assert read(f"/proc/{h.pid}/comm").startswith("python")
        maps = read(f"/proc/{h.pid}/uid_map").split()
        assert maps == (["1000", str(USER), "1"] if as_user else ["0", maps[1], "65536"]) and maps[1] != "0"
    assert wrote == [] and now == before, f"{wrote} {now}"
    stopped_by("read-only /proc", "no capabilities")


@pytest.mark.quick
@BOTH
def test_no_process_of_the_host(as_user, stopped_by):
    """/proc lists only the cell's own processes; a pid of the host does not exist there, through any magic link."""
    with Canary() as k:
        code = f"""
import os
print(*sorted(int(x) for x in os.listdir('/proc') if x.isdigit()))
for base in ('/proc/{k.pid}', '/proc/self/task/{k.pid}', '/proc/1/task/{k.pid}', '/proc/1/root/proc/{k.pid}'):
    for what in ('', '/root', '/cwd', '/exe', '/environ', '/mem', '/fd', '/maps', '/status'):
        if os.path.lexists(base + what): print('there', base + what)
for p in ('root', 'cwd', 'exe', 'fd/3', 'map_files', 'ns/mnt'):
    p = '/proc/WHO/' + p
    for f in (os.readlink, os.listdir, lambda p: open(p).read(1), lambda p: open(p, 'r+b')):
        try: f(p); print('reached', p)
        except OSError: pass
print(os.readlink('/proc/self/exe'), os.readlink('/proc/self/root'), os.readlink('/proc/self/cwd'))
"""
        c = host(["/usr/bin/python3", "-c", code.replace("WHO", str(k.pid))], unshare=())
        landed(f"there /proc/{k.pid}/environ" in c.stdout.decode() and
               f"reached /proc/{k.pid}/root" in c.stdout.decode(), c)
        r = runner(as_user)(code=code.replace("WHO", "1"))
        k.check(r.stdout)
    lines = r.text.splitlines()
    assert r.status == "ok" and lines[0] == "1 2", r
    assert lines[1:] == [f"{os.path.realpath('/usr/bin/python3')} / /workspace"], r
    stopped_by("pid namespace", "pid 1 is not dumpable")


@pytest.mark.quick
def test_masked_files_are_empty(stopped_by):
    """kcore, keys, kallsyms, timer_list and the rest of the usual list: absent, or empty."""
    names = ("kcore", "keys", "key-users", "kallsyms", "kmsg", "timer_list", "timer_stats", "sched_debug", "latency_stats",
             "acpi", "scsi", "asound", "interrupts", "iomem", "ioports", "modules", "config.gz", "swaps", "bus", "driver",
             "fs", "irq", "tty", "sysrq-trigger", "slabinfo", "vmallocinfo", "kpagecount", "kpageflags", "pagetypeinfo")
    code = f"""
import os
for n in {names!r}:
    p = '/proc/' + n
    try:
        data = os.listdir(p) if os.path.isdir(p) else open(p, 'rb').read(64)
    except OSError: continue
    if data: print('tells', n, data)
"""
    c = host(["/usr/bin/python3", "-c", code.replace("'kmsg', ", "")])
    landed(c.stdout.decode().count("tells") >= 8, c)
    for as_user in (False, True):
        r = runner(as_user)(code=code)
        assert r.status == "ok" and r.stdout == b"", r
    stopped_by("masked /proc")


def host_paths(text):
    """{mount point: path on the host's filesystem} of every mount that has a piece of the host's."""
    out = {}
    for line in text.splitlines():
        left, right = line.split(" - ")
        w, kind = left.split(), right.split()[0]
        # The cell's own tmpfs aside; a --mount may come from a tmpfs of the host.
        if kind not in ("proc", "tmpfs", "devpts", "overlay") or w[4] == "/data":
            out[w[4]] = w[3]
    return out


@pytest.mark.quick
@BOTH
def test_which_host_paths_mountinfo_shows(as_user):
    """Documented: /usr, the few things of /etc, device nodes, and the source of a --mount. Nothing else."""
    with scratch(0o755, USER if as_user else 0) as d:
        r = runner(as_user)(code="print(open('/proc/self/mountinfo').read(), end='')", mount=[f"{d}:/data"],
                            capture=200000)
        got = host_paths(r.text)
        seen = ["/usr", *cell_lib.ETC]
        seen += [f"/{x}" for x in ("bin", "sbin", "lib", "lib32", "lib64", "libx32") if not os.path.islink(f"/{x}")]
        seen = {p: cell_lib.cover_of(p) for p in seen if os.path.exists(p)}
        # An overlay names its lower, which is where its content is seen, and nothing of the machine besides.
        lowers = set(re.findall(r"lowerdir\+?=([^, ]*)", r.text))
        assert lowers == {f"{c}:sys" for c in seen.values() if c} | ({"lower:upper"} if as_user else set()), r
        want = {p: cell_lib.root_of(p) for p, c in seen.items() if not c}
        # A root that may make device nodes gives each cell its own, on a tmpfs.
        if as_user or not int(re.search(r"CapEff:\s*(\w+)", read("/proc/self/status"))[1], 16) >> 27 & 1:
            want |= {f"/dev/{x}": f"/{x}" for x in ("null", "zero", "full", "random", "urandom", "tty")}
        want |= {p: "/null" for p in got if p.startswith("/proc/")}
        # A mount whose ids cannot be shifted is shown through an overlay.
        want["/data"] = "/" if as_user else cell_lib.root_of(str(d))
        below_usr = {p: v for p, v in got.items() if p.startswith("/usr/")}  # mounts of the host below /usr
        assert got == want | below_usr, r
    with Canary() as k:
        landed(k.abstract_name in read("/proc/net/unix"), "the host has unix sockets")
        r = runner(as_user)(code="print(open('/proc/net/unix').read().count('\\n'), 'caisson-' in open('/etc/mtab').read())")
        assert r.stdout == b"1 False\n", f"unix sockets of others, or host paths: {r}"


# ---- cgroups ---------------------------------------------------------------------------------

@LAYERS
@pytest.mark.parametrize("mode", ["root", "user", "delegated"])
def test_cgroup_filesystems(mode, layer, stopped_by):
    """No cgroupfs to see, none to mount (v1, v2, in a user namespace): membership and limits stay."""
    with scratch() as d:
        c = host([payload("use_cgroups"), d])
    out = c.stdout.decode()
    landed("HAVE" in out and ("plain-mount-v2" in succeeded(out) or "plain-mount-v1-memory" in succeeded(out)), c)
    as_user = mode != "root"
    without = weaker(layer, mode == "user")
    code = "import subprocess, sys\nprint(subprocess.run(['/payload/use_cgroups', '/tmp'], capture_output=True, " \
           "text=True).stdout)\nprint('ready', flush=True); sys.stdin.read()"
    payload("use_cgroups")
    with Held(code=code, as_user=as_user, delegate=mode == "delegated", without=without,
              mount=[f"{session().payloads}:/payload"], memory="64M", pids=20) as h:
        text = h.text
        assert "HAVE" not in text and not succeeded(text), text
        mine, theirs = cell_lib.own_paths(h.init), cell_lib.own_paths(h.pid)
        assert mine == theirs
        if mode != "user":
            dirs = cell_lib.cell_dirs(h.pid)
            where = dirs["memory"] if "memory" in dirs else dirs["unified"]
            limit = (where / "memory.limit_in_bytes") if (where / "memory.limit_in_bytes").exists() else where / "memory.max"
            assert int(limit.read_text()) == 64 << 20
            pids = (dirs.get("pids") or dirs["unified"]) / "pids.max"
            assert int(pids.read_text()) == 21
            if (where / "notify_on_release").exists():
                assert (where / "notify_on_release").read_text().strip() == "0"
    r = runner(as_user)(code="print(open('/proc/self/cgroup').read())", **({"delegate": True} if mode == "delegated" else {}))
    assert r.status == "ok" and {line.split(":", 2)[2] for line in r.text.split()} == {"/"}, \
        f"the cgroup namespace shows paths of the host: {r}"
    if layer is None:
        stopped_by("seccomp", "no capabilities, empty /sys")


# ---- devices ---------------------------------------------------------------------------------

@pytest.mark.quick
@BOTH
def test_dev_is_exactly_the_declared_list(as_user):
    r = runner(as_user)(code="""
import os, stat
for n in sorted(os.listdir('/dev')):
    st = os.lstat('/dev/' + n)
    kind = stat.filemode(st.st_mode)[0]
    print(n, kind, f'{os.major(st.st_rdev)}:{os.minor(st.st_rdev)}' if kind in 'bc' else
          os.readlink('/dev/' + n) if kind == 'l' else oct(st.st_mode & 0o7777))
print(sorted(os.listdir('/dev/pts')), os.listdir('/dev/shm'))
""")
    assert r.text.splitlines() == [
        "fd l /proc/self/fd", "full c 1:7", "null c 1:3", "ptmx l pts/ptmx", "pts d 0o755", "random c 1:8",
        "shm d 0o1777", "stderr l /proc/self/fd/2", "stdin l /proc/self/fd/0", "stdout l /proc/self/fd/1",
        "tty c 5:0", "urandom c 1:9", "zero c 1:5", "['ptmx'] []"], r


MKNOD = """
import os, stat, sys
where = sys.argv[1]
for name, kind, dev in (('mem', stat.S_IFCHR, (1, 1)), ('kmsg', stat.S_IFCHR, (1, 11)), ('null', stat.S_IFCHR, (1, 3)),
                        ('kvm', stat.S_IFCHR, (10, 232)), ('fuse', stat.S_IFCHR, (10, 229)), ('loop', stat.S_IFBLK, (7, 0)),
                        ('disk', stat.S_IFBLK, (%d, %d)), ('tun', stat.S_IFCHR, (10, 200)), ('whiteout', stat.S_IFCHR, (0, 0))):
    path = f'{where}/{name}'
    try:
        os.mknod(path, 0o666 | kind, os.makedev(*dev)); print('made', name)
    except OSError as e: print('mknod', name, e.errno)
    try:
        os.close(os.open(path, os.O_RDONLY | os.O_NONBLOCK)); print('opened', name)
    except OSError: pass
"""


@BOTH
@LAYERS
def test_device_nodes_cannot_be_made(as_user, layer, stopped_by):
    """mknod of devices, in the layer and on a writable mount: none; nodes that exist do not open."""
    st = os.stat("/").st_dev
    code = MKNOD % (os.major(st), os.minor(st))
    with scratch() as d:
        c = host(["/usr/bin/python3", "-c", code, d])
        landed("opened null" in c.stdout.decode() and re.search("opened (disk|loop|kmsg)", c.stdout.decode()), c)
    with scratch(0o777, USER if as_user else 0) as d:
        for where in ("/tmp", "/m"):
            r = runner(as_user)([where], code=code, mount=[f"{d}:/m:rw"], without=weaker(layer, as_user))
            # Devices 0:0 are overlayfs' whiteouts: anybody may make one, it opens nothing.
            made = [x for x in re.findall(r"made (\S+)", r.text) if x != "whiteout"]
            assert r.status == "ok" and not made and "opened" not in r.text, f"ESCAPE: {r}"
        assert [p.name for p in d.iterdir() if p.name != "whiteout"] == []
        # Nodes that an administrator left in a mounted directory.
        if not as_user:
            for name, mode, dev in (("disk", stat.S_IFBLK, st), ("null", stat.S_IFCHR, os.makedev(1, 3)),
                                    ("loop", stat.S_IFBLK, os.makedev(7, 0)), ("kmsg", stat.S_IFCHR, os.makedev(1, 11))):
                os.mknod(d / name, mode | 0o666, dev)
                os.chmod(d / name, 0o666)
            r = cell(["/m"], code=code, mount=[f"{d}:/m:rw"], without=layer)
            assert "opened" not in r.text, f"ESCAPE: a device node in a mount works: {r}"
    if layer is None:
        stopped_by("seccomp", "user namespace; nodev on every mount")


# ---- the root ---------------------------------------------------------------------------

@pytest.mark.quick
def test_no_mount_propagates(stopped_by):
    """The suite's own mounts are shared: what is mounted there later appears in a careless namespace, not
    in a cell, and nothing of a cell appears there."""
    with scratch() as d, Held(code="import sys; print('ready', flush=True); sys.stdin.read()", mount=[f"{d}:/m"]) as h:
        tagged = [x for x in read(f"/proc/{h.pid}/mountinfo").splitlines() if x.split()[6] != "-"]
        assert tagged == [], f"propagation: {tagged}"
        careless = subprocess.Popen(["unshare", "--mount", "--propagation", "unchanged", "sleep", "100"])
        try:
            cell_lib.until(lambda: os.readlink(f"/proc/{careless.pid}/ns/mnt") != os.readlink("/proc/self/ns/mnt"), 5, "it")
            before = read(f"/proc/{h.pid}/mountinfo")
            subprocess.run(["mount", "-t", "tmpfs", "none", d], check=True)
            landed(f" {d} " in read(f"/proc/{careless.pid}/mountinfo"), "it propagates to whoever did not look")
            assert read(f"/proc/{h.pid}/mountinfo") == before, "a mount of the host came into the cell"
        finally:
            subprocess.run(["umount", d], check=False)
            careless.kill()
            careless.wait()
    stopped_by("private mount propagation")


@BOTH
@LAYERS
def test_no_way_out_of_the_root(as_user, layer, stopped_by):
    """.., kept descriptors, chroot in chroot, /proc links: no way up to a canary beside /usr."""
    n = nonce()
    name = f"canary-{nonce()}"
    canary = Path("/") / name
    canary.write_text(n)
    try:
        with scratch() as d:
            (d / "tmp").mkdir()
            shutil.copy(payload("leave_root"), d / "leave_root")
            c = host(["/usr/sbin/chroot", d, "/leave_root", name])
            landed(f"READ chroot-fchdir {n}" in c.stdout.decode(), c)
        r = runner(as_user)([name], payload="leave_root", without=weaker(layer, as_user))
        assert r.status == "ok" and "READ" not in r.text and n not in r.text, f"READ: {r}"
        assert not succeeded(r.stdout), r
    finally:
        canary.unlink()
    if layer is None:
        stopped_by("pivot_root: there is nothing above", "seccomp and no CAP_SYS_CHROOT")


# ---- names, links, attributes ------------------------------------------------------

@pytest.mark.quick
@BOTH
def test_links_between_read_only_and_writable(as_user, stopped_by):
    """Hard links and renames over mount borders, of host files: judged by the link counts on the host."""
    owner = USER if as_user else 0
    code = """
import os
for src in ('/ro/file', '/ro/suid', '/usr/bin/env', '/etc/ld.so.cache'):
    for dst in ('/rw/x', '/tmp/x', '/ro/x', '/usr/x', '/etc/x'):
        for f in (os.link, os.rename, os.replace):
            try: f(src, dst); print('done', f.__name__, src, dst)
            except OSError as e: pass
for p in ('/ro/file', '/usr/bin/env', '/ro'):
    for f, a in ((os.chmod, (0o777,)), (os.unlink, ()), (os.utime, ()), (os.truncate, (0,)), (os.rmdir, ())):
        try: f(p, *a); print('done', f.__name__, p)
        except OSError as e: pass
"""
    with scratch(0o755, owner) as ro, scratch(0o755, owner) as rw:
        for name in ("file", "suid"):
            (ro / name).write_text(name)
            os.chown(ro / name, owner, owner)
        os.link(ro / "file", rw / "control")
        landed((ro / "file").stat().st_nlink == 2, "the same filesystem outside")
        (rw / "control").unlink()
        env = os.stat("/usr/bin/env")
        r = runner(as_user)(code=code, mount=[f"{ro}:/ro", f"{rw}:/rw:rw"])
        assert r.status == "ok" and r.stdout == b"", r
        assert {(p.name, p.stat().st_nlink, p.read_text()) for p in ro.iterdir()} == {("file", 1, "file"), ("suid", 1, "suid")}
        assert list(rw.iterdir()) == [] and os.stat("/usr/bin/env").st_nlink == env.st_nlink
    stopped_by("read-only mounts", "EXDEV between mounts")


@pytest.mark.quick
@BOTH
def test_file_attributes(as_user, stopped_by):
    """security.*, trusted.*, immutable and append-only: refused; the cell goes away all the same."""
    owner = USER if as_user else 0
    code = """
import array, fcntl, os, struct
cap = struct.pack('<IIIII', 0x02000001, 0xffffffff, 0, 0xffffffff, 0)
for d in ('/m', '/tmp', '/workspace', '/dev/shm'):
    p = d + '/file'; open(p, 'w').close()
    for name, value in (('security.capability', cap), ('security.selinux', b'x'), ('trusted.overlay.opaque', b'y'),
                        ('system.posix_acl_access', b'x'), ('security.ima', b'x')):
        try: os.setxattr(p, name, value); print('set', d, name)
        except OSError as e: pass
    for flag, name in ((0x10, 'immutable'), (0x20, 'append')):
        fd = os.open(p, os.O_RDONLY)
        try:
            fcntl.ioctl(fd, 0x40086602, array.array('l', [flag])); print('set', d, name)
        except OSError as e: pass
        os.close(fd)
    try: os.setxattr(p, 'user.x', b'1')
    except OSError: pass
"""
    here = "'/m', '/tmp', '/workspace', '/dev/shm'"
    with scratch() as d:
        c = host(["/usr/bin/python3", "-c", code.replace(here, f"'{d}',")])
        landed(all(x in c.stdout.decode() for x in ("security.capability", "trusted.", "immutable")), c)
        subprocess.run(["chattr", "-i", "-a", d / "file"], check=False)
    with scratch(0o777) as d:  # a channel that this Linux kernel gives to every process is not counted
        anybody = host(["/usr/bin/python3", "-c", code.replace(here, f"'{d}',")], uid=USER).stdout.decode()
    with scratch(0o777, owner) as d:
        r = runner(as_user)(code=code, mount=[f"{d}:/m:rw"])
        more = {x.split()[2] for x in r.text.splitlines()} - {x.split()[2] for x in anybody.splitlines()}
        assert r.status == "ok" and not more, f"{more}: {r}"
        bad = [x for x in os.listxattr(d / "file") if x.startswith(("trusted", "security.capability", "security.ima"))]
        assert not bad, f"WRITE: {bad}"
    stopped_by("no capabilities")


@pytest.mark.quick
@BOTH
def test_odd_names_and_modes(as_user, stopped_by):
    """Names of every byte, 255 long, -rf, escapes; directories without permissions: exact, and gone."""
    owner = USER if as_user else 0
    names = [b"-rf", b"new\nline", b"\x1b[2J", b"\xff\xfe", b"a" * 255, b" ", b"...", b"$(touch x)", b"*", b"\\", b"'\"",
             bytes(x for x in range(1, 256) if x not in (0, 47))]
    code = f"""
import os
for d in (b'/workspace/', b'/m/'):
    for n in {names!r}:
        try: os.mkdir(d + n); open(d + n + b'/x', 'wb').write(b'1'); os.chmod(d + n, 0)
        except OSError as e: print(d, n, e)
    os.chmod(d, 0o700)
for i in range(300): os.makedirs('/workspace/deep/' + 'd/' * i, exist_ok=True)
os.chmod('/workspace', 0)
print(len(os.listdir(b'/m')))
"""
    with scratch(0o755, owner) as d:
        r = runner(as_user)(code=code, mount=[f"{d}:/m:rw"])
        assert r.status == "ok" and r.text == f"{len(names)}\n", r
        assert sorted(os.listdir(os.fsencode(d))) == sorted(names)
        st = os.stat(os.path.join(os.fsencode(d), b"-rf"))
        assert st.st_uid == owner and stat.S_IMODE(st.st_mode) == 0
        shutil.rmtree(d)
        assert not d.exists(), "the caller can remove it all"
    stopped_by("the layer is a tmpfs that goes with the mount namespace")


# ---- persistence -----------------------------------------------------------------------------

SPOTS = ("/tmp", "/var/tmp", "/dev/shm", "/run/lock", "/workspace", "/home/agent", "/etc/cron.d", "/var/spool/cron",
         "/home/agent/.config", "/home/agent/.cache/pip", "/home/agent/.local/lib/python3/site-packages", "/usr/local/lib",
         "/home/agent/.ssh", "/etc", "/", "/run", "/home")


@pytest.mark.quick
@BOTH
def test_nothing_persists_in_the_next_cell(as_user, stopped_by):
    """A nonce left in every spot, in shared memory and queues: the next cell finds none of it."""
    n = nonce()
    code = f"""
import ctypes, os, subprocess
n, wrote = '{n}', 0
for d in {SPOTS!r}:
    try:
        os.makedirs(d, exist_ok=True)
        for name in (n, '.bashrc', 'x.pth'):
            open(f'{{d}}/{{name}}', 'w').write(n); wrote += 1
    except OSError: pass
libc = ctypes.CDLL(None, use_errno=True)
print('shm', libc.shmget(0x7e57, 4096, 0o1666) >= 0, 'msg', libc.msgget(0x7e57, 0o1666) >= 0)
print('wrote', wrote)
print(subprocess.run(['/payload/walk', '{masked(n)}', '=/usr', '/'], capture_output=True, text=True).stdout)
"""
    payload("walk")
    run = runner(as_user)
    a = run(code=code, mount=[f"{session().payloads}:/payload"])
    landed(len(found(a.text)) >= 15 and "shm True msg True" in a.text, f"A finds its own: {a}")
    b = run([masked(n), "=/usr", "/"], payload="walk")
    assert b.status == "ok" and not found(b.text), f"READ: {b}"
    ipc = run(code="print(open('/proc/sysvipc/shm').read().count('\\n'), open('/proc/sysvipc/msg').read().count('\\n'))")
    assert ipc.stdout == b"1 1\n", ipc
    stopped_by("single-use cells: layer and ipc namespace end with it")


# ---- 1.2: families of known holes -----------------------------------------------------------------

OVERWRITE = """
import os, sys, time
end = time.monotonic() + 0.5
opened = set()
targets = [f'/proc/{p}/exe' for p in (1, 'self')] + ['/proc/1/map_files', '/proc/1/fd/3', '/proc/1/root/proc/1/exe']
while time.monotonic() < end:
    for t in targets:
        for flags in (os.O_WRONLY, os.O_RDWR, os.O_RDONLY, os.O_PATH, os.O_WRONLY | os.O_TRUNC):
            if flags == os.O_PATH and t.endswith('map_files'): continue  # the directory itself, unopened
            try:
                fd = os.open(t, flags)
                if t != '/proc/self/exe' or flags & 3: opened.add((t, flags))
                if flags & 3 == 0:
                    try: os.close(os.open(f'/proc/self/fd/{fd}', os.O_WRONLY)); opened.add((t, 'again'))
                    except OSError: pass
                os.close(fd)
            except OSError: pass
print(sorted(map(str, opened)))
"""


@pytest.mark.quick
@pytest.mark.parametrize("mode", ["root", "user", "user-owns-the-binaries"])
def test_exe_of_init_is_not_overwritten(mode, stopped_by):
    """The runc 2019-5736 family: our binaries cannot be opened for writing through /proc, or at all."""
    with scratch(0o755, USER) as d:
        # Outside: a user who may write a program opens it through /proc when it does not run.
        prog = d / "prog"
        shutil.copy("/usr/bin/sleep", prog)
        os.chown(prog, USER, USER)
        c = host(["/usr/bin/python3", "-c", f"""
import os, signal, subprocess
p = subprocess.Popen(['{prog}', '100']); import time; time.sleep(0.1)
fd = os.open(f'/proc/{{p.pid}}/exe', os.O_RDONLY)
p.kill(); p.wait()
os.write(os.open(f'/proc/self/fd/{{fd}}', os.O_WRONLY), b'overwritten')
"""], uid=USER, unshare=())
        landed(prog.read_bytes().startswith(b"overwritten"), c)
        prog.unlink()
        if mode == "user-owns-the-binaries":
            for n in ("caisson", "caisson-warden", "caisson-init"):
                shutil.copy(CAISSON.parent / n, d / n)
                os.chown(d / n, USER, USER)
        before = binary_hashes() | {p.name + "-copy": p.read_bytes() for p in d.iterdir()}
        if mode == "root":
            r = cell(code=OVERWRITE)
        elif mode == "user":
            r = user_cell(code=OVERWRITE)
        else:
            line = ["setpriv", f"--reuid={USER}", f"--regid={USER}", "--clear-groups", "--", d / "caisson", "run", "--json",
                    "--without", "cgroup", "--code", OVERWRITE]
            r = cell_lib.RunningAs(line, True, env=host_env(CAISSON_STATE=str(cell_lib.user_state()))).finish(30)
        assert r.status == "ok" and r.stdout == b"[]\n", f"WRITE: {r}"
        after = binary_hashes() | {p.name + "-copy": p.read_bytes() for p in d.iterdir()}
        assert before == after, "WRITE: our binaries were changed"
    stopped_by("pid 1 is not dumpable", "init runs from a read-only mount")


@pytest.mark.quick
@BOTH
def test_no_leaked_descriptors(as_user, stopped_by):
    """The runc 2024-21626 family: whatever the caller has open, the command has 0, 1 and 2."""
    with Canary() as k:
        held = [os.open(p, os.O_RDONLY) for p in ("/", "/root", "/etc/passwd")]
        s = socket.socket()
        for fd in (*held, s.fileno()):
            os.set_inheritable(fd, True)
        try:
            with Held(code="import os, sys; print(sorted(os.listdir('/proc/self/fd')), 'ready', flush=True); sys.stdin.read()",
                      as_user=as_user, without=weaker(None, as_user), popen={"close_fds": False}) as h:
                landed({str(x) for x in held} <= set(os.listdir(f"/proc/{h.caisson}/fd")), "caisson was given them")
                assert sorted(os.listdir(f"/proc/{h.pid}/fd")) == ["0", "1", "2"]
                links = [os.readlink(f"/proc/{h.init}/fd/{x}") for x in os.listdir(f"/proc/{h.init}/fd")]
                assert len(links) == 16, links  # test_posture.py names them
                assert not [x for x in links if x.startswith("/") and not cell_lib.INIT_FILES.fullmatch(x)], links
                assert os.readlink(f"/proc/{h.pid}/cwd") == "/workspace" and os.readlink(f"/proc/{h.init}/cwd") == "/"
                k.check(h.text)
        finally:
            for fd in held:
                os.close(fd)
            s.close()
    stopped_by("close_range before exec, twice")


@pytest.mark.quick
def test_workdir_through_proc(stopped_by):
    """--workdir at a descriptor or a link of /proc: refused, or inside the root."""
    n = nonce()
    canary = Path("/") / f"canary-{n}"
    canary.write_text(n)
    code = "import os\nfor i in range(40):\n for x in os.listdir('.'):\n  if x.startswith('canary-'): print(open(x).read())\n" \
           " os.chdir('..')\nprint('done')"
    outcomes = {}
    try:
        for w in [f"/proc/self/fd/{i}" for i in range(16)] + ["/proc/1/cwd", "/proc/1/root", "/proc/self/cwd",
                 "/proc/self/root", "/proc/thread-self/root/proc/1/root", "/dev/fd/3", "/proc/self/fd", "/proc/1/fd/3"]:
            r = cell(code=code, workdir=w, json_result=False)
            assert n.encode() not in r.stdout, f"READ: --workdir {w}: {r}"
            outcomes[w] = r.exit
            assert r.exit == 0 and r.stdout == b"done\n" or r.exit == 125 and r.stderr.startswith(b"caisson: "), r
    finally:
        canary.unlink()
    refused = {w for w, code in outcomes.items() if code == 125}
    assert {f"/proc/self/fd/{i}" for i in range(16)} | {"/proc/1/cwd", "/proc/1/root", "/dev/fd/3"} <= refused, outcomes
    for w in ("relative", "/a/../b", "/./x", "//x", "/x/", ""):
        r = cell(code="1", workdir=w, json_result=False)
        assert r.exit == 125 and r.stderr.count(b"\n") == 1, r
    stopped_by("nothing of the host is open when the directory is entered")


def make_image(d):
    """A small root: one static program, without the parts that a cell makes itself."""
    (d / "bin").mkdir(parents=True)
    shutil.copy(payload("open_all"), d / "bin/open_all")
    shutil.copy(payload("set_id"), d / "bin/set_id")
    for library in libraries(CAISSON.parent / "caisson-init"):  # which has some when it is sanitized
        copy_in(d, library)
    d.chmod(0o755)
    return d


PLANTS = {  # place in the image: what a cell puts there
    "dev": "a tmpfs", "proc": "proc", "tmp": "mode 1777", "workspace": "the agent's", "home": "a directory",
    "home/agent": "the agent's", "sys": "a directory", "dev/null": "a node", "dev/pts": "devpts", "dev/shm": "a tmpfs",
    "m": "a --mount", "m/deep": "a --mount's parent",
}


@pytest.mark.quick
@BOTH
@pytest.mark.parametrize("how", ["absolute", "relative", "file"])
def test_hostile_image_links_are_not_followed(as_user, how, stopped_by):
    """Links planted where the mount code works: none leads it outside; refused with a reason, or inside."""
    owner = USER if as_user else 0
    for place in PLANTS:
        with scratch(0o755, owner) as top:
            outside = top / "outside"
            outside.mkdir(mode=0o755)
            (outside / "kept").write_text("kept")
            image = make_image(top / "image")
            at = image / place
            at.parent.mkdir(parents=True, exist_ok=True)
            if how == "file":
                at.write_text("a file where a directory belongs")
            else:
                at.symlink_to(outside if how == "absolute" else os.path.relpath(outside, at.parent))
            subprocess.run(["chown", "-R", "-h", f"{owner}:{owner}", top], check=True)
            if how != "file" and place == "tmp":
                (at).chmod(0o777)  # outside, a naive helper follows
                landed(stat.S_IMODE(outside.stat().st_mode) == 0o777, "a link is followed by whoever does not look")
                outside.chmod(0o755)
            before = (read("/proc/self/mountinfo"), sorted(os.listdir(outside)), os.stat(outside)[:6])
            r = runner(as_user)(["r", "/tmp"], argv=["/bin/open_all"], image=f"dir:{image}", json_result=False,
                                mount=[f"{session().payloads}:/m/deep/er"] if place.startswith("m") else None,
                                workdir="/")
            after = (read("/proc/self/mountinfo"), sorted(os.listdir(outside)), os.stat(outside)[:6])
            assert before[1:] == after[1:], f"WRITE: {place} {how}: {before} {after} {r}"
            assert str(top) not in after[0]
            if r.exit == 125:
                lines = [x for x in r.stderr.decode().splitlines() if "warning" not in x]
                assert len(lines) == 1 and lines[0].startswith("caisson: "), r
            else:
                assert r.exit == 0 and b"seen" in r.stdout, f"{place} {how}: {r}"
                assert place.startswith("dev/") or how == "file" and place == "dev/null", \
                    f"{place} {how}: accepted: {r}"
    stopped_by("openat2 beneath the new root, without links")


@pytest.mark.quick
@BOTH
def test_hostile_image_content(as_user, stopped_by):
    """Device nodes, set-id programs and root's files in an image give nothing; the image is not changed."""
    owner = USER if as_user else 0
    n = nonce()
    with scratch(0o755, owner) as top:
        image = make_image(top / "image")
        (image / "bin/set_id").chmod(0o6755)
        (image / "secret").write_text(n)
        (image / "secret").chmod(0o600)
        if not as_user:
            os.mknod(image / "disk", stat.S_IFBLK | 0o666, os.stat("/").st_dev)
            os.chmod(image / "disk", 0o666)
        subprocess.run(["chown", "-R", f"{owner}:{owner}", top], check=True)
        (image / "bin/set_id").chmod(0o6755)
        landed("uid" in host([image / "bin/set_id", image / "secret"], uid=23456).stdout.decode(), "it runs outside")
        before = sorted((str(p), p.lstat().st_mtime_ns, p.lstat().st_mode) for p in image.rglob("*"))
        r = runner(as_user)(["/secret"], argv=["/bin/set_id"], image=f"dir:{image}")
        assert r.status == "ok" and r.text.startswith("start uid 1000 1000 1000 gid 1000 1000 1000"), r
        if not as_user:  # as a user the image's files are the caller's own, and so the agent's
            assert n not in r.text, f"READ: root's file in the image: {r}"
            r = cell(["r", "/disk"], argv=["/bin/open_all"], image=f"dir:{image}")
            assert "OPEN" not in r.text and "seen 1" in r.text, f"ESCAPE: the image's device node opens: {r}"
        after = sorted((str(p), p.lstat().st_mtime_ns, p.lstat().st_mode) for p in image.rglob("*"))
        assert before == after, "WRITE: the image was changed"
    stopped_by("nosuid, nodev, read-only lower layer", "shifted ids" if not as_user else "")


@pytest.mark.quick
def test_streams_can_be_opened_by_name():
    """/dev/stdout, /dev/stderr and /proc/self/fd/N work for the agent: they are its own pipes."""
    r = cell(code="echo a >/dev/stdout; echo b >/dev/stderr; echo c >/proc/self/fd/1; cat /dev/stdin", lang="bash",
             stdin=b"d\n", json_result=False)
    assert (r.stdout, r.stderr, r.exit) == (b"a\nc\nd\n", b"b\n", 0), r


@pytest.mark.quick
def test_known_time_of_the_walk():
    """A guest can make its tree costly to look at, not its end costly to us."""
    t = time.monotonic()
    r = cell(code="import os\nfor i in range(3000): os.makedirs(f'/tmp/{i}/a/b/c')\nprint('ok')", timeout=20)
    assert r.status == "ok" and r.stdout == b"ok\n", r
    assert time.monotonic() - t - r.usage["wall_ns"] / 1e9 < at_most(1.5)
