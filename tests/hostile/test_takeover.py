# SPDX-License-Identifier: Apache-2.0
"""test_takeover.py - Each process of ours is taken over in turn, by a debugger, and made to try everything that it must not be able to do.

SECURITY.md states what an attacker who takes a process over gets; MAY below lists the same as attempts that land, and
everything else has to fail. The attempts are in takeover_lib.py, docs/adversary.md has the results in words.
"""
import contextlib
import json
import os
import platform
import struct
import subprocess
import sys
from pathlib import Path

import daemon_lib
import pytest
from daemon_lib import Daemon
from process import SANITIZED, Later, call_yourself, children, unique
from lib import CAISSON, landed, session
from cell_lib import until
from puppet import Out, Puppet, inet
from takeover_lib import ATTEMPTS, Host, attempt_all, child, descriptors, held, landed_of, opened, other_end, read_from, z

from image_lib import Layout, Misbehaving, entry, tar  # noqa: E402
from layers_lib import SMALL, Store, programs_layer  # noqa: E402

hostile_test, whole_module = daemon_lib.hostile_test, daemon_lib.whole_module
quick = pytest.mark.quick
pytestmark = [pytest.mark.skipif(SANITIZED, reason="sanitized programs have neither filter nor Landlock"),
              pytest.mark.skipif(platform.machine() != "x86_64", reason="puppet.c knows the registers of x86-64 only"),
              pytest.mark.skipif(os.geteuid() != 0, reason="taking a process over needs root")]
UPSTREAM = Path(__file__).resolve().parents[1] / "serve" / "upstream.py"
IMAGE = "docker.io/library/taken:1"


@pytest.fixture(scope="module")
def files(whole_module):
    """The files of the operator of this daemon: secrets, keys, a configuration, packages, images."""
    d = session().dir / unique("operator")
    d.mkdir(mode=0o755)
    for name, text in (("secrets", "TOP=secret-of-the-operator\n"), ("keys", "[default]\naws_access_key_id = AK\naws_secret_access_key = SK\n"),
                       ("mcp.json", json.dumps({"mcpServers": {"mine": {"command": sys.executable, "args": [str(UPSTREAM), str(d / "upstream.log")]}}}))):
        (d / name).write_text(text)
        (d / name).chmod(0o600)
    (d / "packages").mkdir()
    store = Store(d / "store")
    store.add(IMAGE, [store.layer(lambda r: programs_layer(r, *SMALL))], Env=["PATH=/usr/bin:/bin"])
    return d


@pytest.fixture(scope="module")
def daemon(files):
    with Daemon("--secrets-file", files / "secrets", "--s3-bucket", "bucket-one", "--s3-endpoint", "http://127.0.0.1:1", "--s3-credentials", files / "keys",
                "--mcp-config", files / "mcp.json", "--mcp-user", "nobody", "--package-dir", files / "packages", "--image-store", files / "store",
                "--pool", 1) as d:
        yield d


@pytest.fixture
def host():
    with Host() as h:
        yield h


# ---- which process is which -------------------------------------------------------------------------------------------

def workspace_store_of(d):
    """(mounter, store): the volume mounter is root's and the workspace store's relative; those that work, not those that watch."""
    top = child(d.pid, "caisson-workspace-store")
    mounter = child(top, "caisson-workspace-store", 0)
    watcher = until(lambda: next((p for p in children(top) if p != mounter), 0), 10, "the workspace store")
    return mounter, child(watcher, "caisson-workspace-store")


def oldest(pids):
    """A process that was just forked looks like the one that forked it."""
    began = {}
    for p in pids:
        with contextlib.suppress(OSError):
            began[p] = int(Path(f"/proc/{p}/stat").read_text().rsplit(")", 1)[1].split()[19])
    return min(began, key=began.get, default=0)


def kernel_of(d, name):
    """Host pid of the python kernel of a session."""
    mark = unique("k")[:14]
    d.execute(call_yourself(mark), session_id=name)
    return until(lambda: d.named(mark), 10, "the kernel").pop()


PROCESSES = {
    "front": lambda d: d.pid,
    "gate": lambda d: child(child(d.pid, "gate-supervisor"), "caisson-gate"),
    "workspace store": lambda d: workspace_store_of(d)[1],
    "package store": lambda d: child(child(d.pid, "caisson-package-store"), "caisson-package-store"),
    "image opener": lambda d: child(d.pid, "caisson-image-opener"),
    "bucket": lambda d: child(child(d.pid, "caisson-bucket"), "caisson-bucket"),
    "zygote": lambda d: until(lambda: oldest(d.zygotes()), 20, "a zygote"),
    "init": lambda d: until(lambda: next(iter(d.cells()), 0), 10, "a cell"),
    "kernel": lambda d: until(lambda: next(iter(d.guests()), 0), 10, "a kernel"),
}
# Processes, programs and sockets of their own: they are in namespaces where that means nothing to the host.
CELL = {"fork", "vfork", "make executable memory", "become dumpable", "listen on TCP"}
MAY = {
    "front": set(),
    "gate": {"connect over TCP", "send over UDP"},      # its purpose
    "workspace store": {"fork", "vfork"},                         # a process per request
    "package store": set(),
    "image opener": set(),
    # A job is a process; the resolver and the TLS library read /etc. Nobody takes a directory from it.
    "bucket": {"connect over TCP", "send over UDP", "fork", "vfork", "read a file in /etc", "hold a directory"},
    "zygote": CELL,
    "init": CELL | {"send over UDP"},                   # to its own loopback
    "kernel": CELL | {"send over UDP"},
}


@quick
def test_control(host, stopped_by):
    """The control: an unconfined process of root's that is taken over lands every attempt."""
    with Host() as mine:
        p = subprocess.Popen(["sleep", "1000"])
        try:
            until(lambda: (daemon_lib.stat_of(p.pid) or ("",))[0] == "sleep", 10, "a process")
            got = landed_of(p.pid, mine)
        finally:
            p.kill()
            p.wait()
    landed(got == set(ATTEMPTS), sorted(set(ATTEMPTS) - got))
    stopped_by("nothing: the control")


@quick
@pytest.mark.parametrize("name", PROCESSES)
def test_what_it_can_reach(daemon, host, name, stopped_by):
    """The attacks that SECURITY.md gives away succeed, and no other."""
    daemon_lib.refresh(daemon)  # a cell that stays
    got = landed_of(PROCESSES[name](daemon), host)
    host.check(hits=("tcp", "udp") if "connect over TCP" in MAY[name] else ())
    assert got == MAY[name], f"beyond: {sorted(got - MAY[name])}; documented as possible, and not possible: {sorted(MAY[name] - got)}"
    stopped_by("user, namespaces, Landlock, filter")


# ---- other programs, other processes of ours ---------------------------------------------------------------------------

SERVICES = ("front", "gate", "workspace store", "package store", "image opener", "bucket")


@quick
@pytest.mark.parametrize("name", SERVICES)
def test_no_program_is_started(daemon, name, stopped_by):
    """Neither one of the machine's nor one that it writes itself."""
    p = subprocess.Popen(["sleep", "1000"])
    with Puppet(p.pid) as control:
        landed(control.call("execve", z("/bin/true"), 0, 0).exec, "a process without a filter becomes another program")
    p.wait()
    with Puppet(PROCESSES[name](daemon)) as p:
        assert not p.call("execve", z("/bin/true"), 0, 0).ok and not p.over
        fd = p.call("memfd_create", z("x"), 0)
        assert not p.call("execveat", fd.ret if fd.ok else 0, z(""), 0, 0, 0x1000).ok and not p.over
        if fd.ok:
            p.call("close", fd.ret)
    stopped_by("filter")


@quick
@pytest.mark.parametrize("name", PROCESSES)
def test_no_other_process_of_ours(daemon, name, stopped_by):
    """One that was taken over neither sees, signals nor reads the others, also those with its own user."""
    daemon_lib.refresh(daemon)  # a cell that stays
    pids = {n: find(daemon) for n, find in PROCESSES.items()}
    pids |= {"keeper": daemon.keeper, "warden": daemon.warden, "supervisor": child(daemon.pid, "gate-supervisor"), "volume mounter": workspace_store_of(daemon)[0],
             "bridge": child(child(daemon.pid, "caisson-bridge"), "caisson-bridge"), "watcher of the package store": child(daemon.pid, "caisson-package-store")}
    # A cell is one; and a zygote's user owns those that were made for it.
    together = {("init", "kernel"), ("kernel", "init"), ("zygote", "init"), ("zygote", "kernel")}
    me = pids[name]
    with Puppet(me) as p:
        for other, pid in pids.items():
            if pid == me or (name, other) in together:
                continue
            stack = next(int(x.split("-")[0], 16) for x in Path(f"/proc/{pid}/maps").read_text().splitlines() if "[stack]" in x)
            assert not p.call("kill", pid, 0).ok, f"{name} may signal the {other}"
            r = p.call("process_vm_readv", pid, struct.pack("QQ", p.put(bytes(64)), 64), 1, struct.pack("QQ", stack, 64), 1, 0)
            assert not r.ok, f"{name} read the memory of the {other}"
            fd = p.call("pidfd_open", pid, 0)
            assert not fd.ok or not p.call("pidfd_getfd", fd.ret, 0, 0).ok, f"{name} took a descriptor of the {other}"
            if fd.ok:
                p.call("close", fd.ret)
    stopped_by("filter", "users, pid namespaces")


# ---- the front: what it holds, and what it can give away ----------------------------------------------------------------------

EXEC = struct.Struct("=II6I2H44x")  # struct init_msg with init_exec
INIT_EXEC = 2


def exec_in_cell(p, channel, stdin, argv):
    """Ask init, as the front, for a command with that descriptor as its stdin; returns its output."""
    blob = z("/workspace") + z("") + b"".join(z(a) for a in argv) + z("PATH=/usr/bin:/bin")
    memory = p.call("memfd_create", z("blob"), 3).ret
    p.call("write", memory, blob, len(blob))
    p.call("fcntl", memory, 1033, 0xe)
    out, their = struct.unpack("ii", p.call("pipe2", Out(8), os.O_CLOEXEC).out[0])
    p.sendmsg(channel, EXEC.pack(INIT_EXEC, 0x7ffffff0, 0, len(argv), 1, len(blob), 1000, 1000, 0, 0), (memory, stdin, their, their))
    p.call("close", their)
    got = read_from(p, out)
    for fd in (out, memory):
        p.call("close", fd)
    return got


@quick
@pytest.mark.parametrize("what", ["/packages", "/state/packages", "/ledger", "/proc/"])
def test_front_gives_a_directory_to_a_cell(daemon, host, what, stopped_by):
    """A front and code in a cell cooperate: a directory of the host as stdin would lead the code out of its cell."""
    name = unique()
    daemon.execute("1", session_id=name)
    init = daemon.cell_of(kernel_of(daemon, name))
    up = "/proc/self/fd/0/" + "../" * 12 + host.file.lstrip("/")
    with Puppet(daemon.pid) as p:
        channel = other_end(init, 3, daemon.pid)
        pipe, end = struct.unpack("ii", p.call("pipe2", Out(8), os.O_CLOEXEC).out[0])
        p.call("close", end)
        landed(exec_in_cell(p, channel, pipe, ["sh", "-c", "echo 42"]) == b"42\n", "a command with pipes runs")
        directory = next(fd for fd, link in sorted(descriptors(daemon.pid).items()) if what in link and os.path.isdir(f"/proc/{daemon.pid}/fd/{fd}"))
        said = exec_in_cell(p, channel, directory, ["sh", "-c", f"ls -d /proc/self/fd/0/..; cat {up}; echo x >>{up}"])
        p.call("close", pipe)
    assert host.canary.nonce.encode() not in said, f"READ: a file of the host, by way of {what}: {said}"
    host.check()
    assert said == b"", said
    stopped_by("init takes pipes alone")


@quick
def test_pid_1_holds_up_no_file(daemon, stopped_by):
    """Pid 1 holds a fanotify group that root made: a mark on a shared file would make everybody who reads it wait for pid 1."""
    name = unique()
    daemon.execute("1", session_id=name)
    init = daemon.cell_of(kernel_of(daemon, name))
    group = [fd for fd, name in descriptors(init).items() if "fanotify" in name]
    landed(len(group) == 1, descriptors(init))
    with Puppet(init) as p:
        for path in ("/usr/bin/true", "/proc/self/exe", "/dev/null", "/"):
            for flags in (1, 1 | 0x10, 1 | 0x100):  # ADD; of the mount, of the file system
                assert p.call("fanotify_mark", group[0], flags, 0x30000, -100, z(path)).errno == "EPERM", path
    stopped_by("filter")


@quick
def test_front_has_nothing_of_its_starter(daemon, stopped_by):
    """Descriptors of the process that started the daemon are not left to the process that reads strangers' bytes."""
    with Daemon("--pool", 0, wrapper=("bash", "-c", 'exec 77</etc/shadow 78<>/dev/tty0 2>/dev/null || exec 77</etc/shadow; exec "$@"', "sh")) as d:
        landed("/etc/shadow" in descriptors(d.keeper).values(), "the daemon was started with it")
        names = descriptors(d.pid)
    assert "/etc/shadow" not in names.values(), names
    stopped_by("closed before the jail")


@quick
def test_front_holds_no_other_file(daemon, files, stopped_by):
    """The front has its own files, the drivers, public certificates and files about the Linux kernel; only its own are writable."""
    state = str(daemon.state)
    for fd, name in descriptors(daemon.pid).items():
        if not name.startswith("/") or name.startswith(("/dev/null", "/memfd:", "/proc/meminfo", f"/proc/{daemon.pid}/")):
            continue
        flags = int(Path(f"/proc/{daemon.pid}/fdinfo/{fd}").read_text().split("flags:")[1].split()[0], 8)
        if flags & os.O_ACCMODE != os.O_RDONLY:
            assert name.startswith((state + "/store/", state + "/ledger/", state + "/spool/", state + "/lock", str(daemon.log_path))), f"{fd}: {name}"
        assert name.startswith((state + "/", str(daemon.log_path), str(files / "packages"), str(daemon_lib.GUEST), "/sys/fs/cgroup/", "/etc/ssl/", "/usr/share/")), f"{fd}: {name}"
    stopped_by("what is opened before the jail")


# ---- the gate and the bucket: they may connect, but not to the daemon --------------------------------------------------------------

@quick
@pytest.mark.parametrize("name", ["gate", "bucket"])
def test_who_may_connect_is_not_served(daemon, name, stopped_by):
    """They reach the daemon's own address, as every process of the machine does; without a token it serves its starter alone."""
    landed(daemon.request("GET", "/sessions").status == 200, "its starter is served")
    request = b"GET /sessions HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
    with Puppet(PROCESSES[name](daemon)) as p:
        s = p.call("socket", 2, 1, 0).ret
        address = inet(daemon.port)
        assert p.call("connect", s, address, len(address)).ok, "void: it may connect"
        p.call("sendto", s, request, len(request), 0, 0, 0)
        said = read_from(p, s)
        p.call("close", s)
    assert said.startswith(b"HTTP/1.1 401 "), said[:300]
    stopped_by("the peer's user")


# ---- the workspace store and the volume mounter ------------------------------------------------------------------------------------------------

PORTER = struct.Struct("=IiQQQ40s")
MAKE_FS, MOUNT_FS, REMOVE_FS = 1, 2, 3


def ask_mounter(p, fd, op, key, size=1 << 20, files=16):
    message = PORTER.pack(op, 0, 0x7fffffff00000001, size, files, key)
    assert p.sendmsg(fd, message, flags=0).ok
    for _ in range(20):
        r = p.call("read", fd, Out(PORTER.size), PORTER.size)
        if r.ok:
            return PORTER.unpack(r.out[0])[1]
    raise AssertionError("the volume mounter does not answer")


@quick
def test_workspace_store_cannot_make_the_mounter_mount_anything_else(daemon, host, stopped_by):
    """Keys that are paths, links in the place of directories, sizes without end: the volume mounter, which is root, does none of it."""
    mounter, store = workspace_store_of(daemon)
    key = os.urandom(16).hex().encode()
    before = Path("/proc/self/mountinfo").read_text(), sorted(os.listdir(daemon.state / "volumes"))
    with Puppet(store) as p:
        line = other_end(mounter, held(mounter, "socket:"), store)
        made = ask_mounter(p, line, MAKE_FS, key)
        landed(made in (0, -95), f"it makes a file system, where it can: {made}")
        for bad in (b"../../../../../tmp/x" + b"\0", host.file.encode(), b"/" * 32, b"." * 32, b"..%2f" * 6 + b"ab", key[:31], key + b"0", key.upper() + b"G", b"\xff" * 40):
            for op in (0, MAKE_FS, MOUNT_FS, REMOVE_FS, 4, 0xffffffff):
                assert ask_mounter(p, line, op, bad[:40]) < 0, (op, bad)
        assert ask_mounter(p, line, MAKE_FS, os.urandom(16).hex().encode(), 1 << 60) < 0
        assert ask_mounter(p, line, MAKE_FS, os.urandom(16).hex().encode(), 1, 1 << 40) < 0
        landed(p.call("symlinkat", z(host.canary.dir), 4, z(key.decode())).ok, "the workspace store makes links among its own")
        assert ask_mounter(p, line, MOUNT_FS, key) < 0
        p.call("unlinkat", 4, z(key.decode()), 0)
        assert ask_mounter(p, line, REMOVE_FS, key) == (0 if made == 0 else -2)
    assert (Path("/proc/self/mountinfo").read_text(), sorted(os.listdir(daemon.state / "volumes"))) == before
    host.check()
    stopped_by("keys, descriptors, O_NOFOLLOW")


# ---- the package store ------------------------------------------------------------------------------------------------------------------------

@quick
def test_package_store_cannot_replace_the_tools(daemon, stopped_by):
    """Beside the trees of packages are the daemon's programs for cells: each python of each cell has that directory first in its path."""
    store = 4  # the descriptor of its directory
    before = {p: p.read_bytes() for p in sorted((daemon.state / "packages/tools").rglob("*")) if p.is_file()}
    with Puppet(PROCESSES["package store"](daemon)) as p:
        assert p.call("mkdirat", store, z("mine"), 0o755).ok
        landed(p.call("renameat", store, z("mine"), store, z("mine.new")).ok, "it renames what is its own")
        landed(p.call("unlinkat", store, z("mine.new"), 0x200).ok, "and removes it")
        for path in ("tools", "tools/bin", "tools/lib", "tools/lib/pip", "tools/bin/pip", "tools/lib/pip_install.py"):
            assert p.call("renameat", store, z(path), store, z("gone")).errno in ("EPERM", "EACCES", "EXDEV"), path
            assert p.call("unlinkat", store, z(path), 0).errno in ("EPERM", "EACCES", "EISDIR"), path
        for name in ("tools/lib/json.py", "tools/bin/pip", "tools/.new"):
            assert not opened(p, f"/{name}", os.O_WRONLY | os.O_CREAT, 0o644), name
    assert {p: p.read_bytes() for p in sorted((daemon.state / "packages/tools").rglob("*")) if p.is_file()} == before
    stopped_by("a sticky directory of root's")


# ---- a zygote ------------------------------------------------------------------------------------------------------------------

def check_cgroups(p, files, host):
    """Files of the cell's cgroups, if it has any, move no process that is not its own; root's own descriptor would."""
    number = str(host.sleeper.pid).encode()
    before = Path(f"/proc/{host.sleeper.pid}/cgroup").read_text()
    for fd, name in files.items():
        with subprocess.Popen(["sleep", "1000"]) as victim:
            Path(name).write_text(str(victim.pid))
            landed(Path(name).parent.name in Path(f"/proc/{victim.pid}/cgroup").read_text(), "root moves a process there")
            victim.kill()
        assert not p.call("write", fd, number, len(number)).ok, f"a descriptor with more authority than a zygote's own: {name}"
    assert Path(f"/proc/{host.sleeper.pid}/cgroup").read_text() == before


@quick
def test_zygote_gets_nothing_of_the_host(daemon, host, stopped_by):
    """The descriptors that the warden hands to a zygote lead to the cell that was made for it, and nowhere else: also from inside that cell, with all that it has there."""
    daemon_lib.refresh(daemon)  # it has been asked for nothing that it has not made
    zygote = PROCESSES["zygote"](daemon)
    later = []
    try:
        with Puppet(zygote) as p:
            before = descriptors(zygote)
            for _ in range(8):  # until the pool has no kernel left
                later.append(Later(lambda: daemon.execute("print(1)", session_id=unique())))
                if p.recvmsg(3).ret > 8:
                    break
            got = {fd: name for fd, name in descriptors(zygote).items() if before.get(fd) != name}
            landed(any("pidfd" in n for n in got.values()), got)
            beyond = {n for n in got.values() if not n.startswith(("anon_inode:[pidfd]", "socket:", "pipe:", "/sys/fs/cgroup/"))}
            assert not beyond, beyond
            check_cgroups(p, {fd: n for fd, n in got.items() if n.startswith("/sys/fs/cgroup/")}, host)
            pidfd = next(fd for fd, n in got.items() if "pidfd" in n)
            landed(p.call("setns", pidfd, 0x10000000).ok and p.call("setns", pidfd, 0x20000 | 0x40000000).ok, "it enters the cell")
            reached = attempt_all(p, host)
            assert reached <= CELL | {"send over UDP", "change its root", "mount", "make a mount namespace", "raw packets"}, reached
            host.check()
    finally:
        os.kill(zygote, 9)  # it is in a cell now
        for x in later:
            x.result()
    daemon_lib.refresh(daemon)
    stopped_by("the warden gives it a cell, and nothing else")


# ---- who unpacks a layer ------------------------------------------------------------------------------------------------------

def unpacker_of(importer, step):
    """The process of that step, once its filter is on."""
    for pid in children(importer.pid):
        with contextlib.suppress(OSError, IndexError):
            if Path(f"/proc/{pid}/cmdline").read_text().split("\0")[1:2] == [step] and "Seccomp:\t2" in Path(f"/proc/{pid}/status").read_text():
                return pid
    return 0


@quick
@pytest.mark.parametrize("step", ["inflate", "hash", "files"])
def test_unpacker_has_the_layer_alone(files, host, step, stopped_by):
    """Each of the three that a layer takes, in the middle of an archive: the last one reaches the directory of that layer, and none anything else."""
    many = tar(*(entry(f"d/{i}", b"x") for i in range(3000)))
    layout = Layout(files / unique("layout"), [many], how=None)
    importer = subprocess.Popen([str(CAISSON), "image", "import", str(layout.path), "--store", str(files / unique("store")), "--name", "taken:1"],
                                stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    try:
        with Puppet(until(lambda: unpacker_of(importer, step), 1, "the unpacker")) as p:
            got = attempt_all(p, host)
            assert p.open("/", os.O_RDONLY | os.O_DIRECTORY).ok == (step == "files"), "the layer is the root of the last one"
        host.check()
        assert got == set(), got
        assert importer.wait(60) == 0, importer.stderr.read()
    finally:
        importer.kill()
        importer.communicate()
    stopped_by("namespaces, chroot, Landlock, filter")


@quick
def test_process_that_talks_to_a_registry(files, host, stopped_by):
    """In the middle of a layer: it reaches what its purpose takes, and the files of /etc that anybody may read."""
    registry = Misbehaving(Layout(files / unique("layout"), [tar(entry("x", b"1"))]))
    registry.go.clear()
    puller = subprocess.Popen([str(CAISSON), "image", "pull", registry.ref, "--store", str(files / unique("store"))],
                              stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    try:
        until(lambda: registry.asked("/blobs/"), 20, "a request for a blob")
        with Puppet(child(puller.pid, "caisson-image-fetch")) as p:
            got = attempt_all(p, host)
        host.check({"tcp", "udp"})
        assert got == {"connect over TCP", "send over UDP", "read a file in /etc", "hold a directory"}, got
        registry.go.set()
        assert puller.wait(60) == 0, puller.stderr.read()
    finally:
        registry.close()
        puller.kill()
        puller.communicate()
    stopped_by("own user, Landlock, filter")


@quick
def test_image_opener_without_a_store_reads_nothing(daemon, files, stopped_by):
    """Before the first image is pulled the image opener can still open the store, so it must not read input of strangers."""
    with Daemon("--pool", 0, "--image-store", files / unique("none")) as d:
        opener = child(d.pid, "caisson-image-opener")
        line = other_end(opener, 3, d.pid)
        landed(os.stat(f"/proc/{opener}").st_uid == 0, "it has not given up its rights")
        # Polls, and so waits without reading; a request that arrives is read by a child.
        assert Path(f"/proc/{opener}/syscall").read_text().split()[0] in ("7", "271"), "it reads"
        r = d.request("POST", "/v1/run_python", {"code": "1", "image": "nothing:1"})
        assert r.status in (404, 422), r
        assert d.request("POST", "/v1/run_python", {"code": "1", "image": "nothing:1"}).status == r.status, "void: it goes on"
        assert child(d.pid, "caisson-image-opener") == opener and line
    stopped_by("a child in the jail reads and answers")
