# SPDX-License-Identifier: Apache-2.0
"""test_isolation.py - A kernel is as sealed as a command of `caisson run`, and nothing in it reaches the daemon.

There are two ways into a cell: init starts a command, or a zygote forks a kernel. The second must give no more than the
first. Everything here is read from the host's /proc, except facts that are only visible inside.
"""
import contextlib
import os
import re
import socket
import subprocess
from pathlib import Path

import pytest

from integ_lib import Place, clean_env, end_process, wait_running
from process import BIN, SANITIZED, call_yourself, children, name_of, space_of, status_of, unique, wait_until

from test_languages import BASH, JAVASCRIPT, R

NAMESPACES = ("user", "pid", "mnt", "net", "ipc", "uts", "cgroup")
ZERO = "0" * 16
# Properties that must be the same for every starter.
SAME = ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb", "NoNewPrivs", "Seccomp", "Groups", "Umask", "SigPnd", "ShdPnd", "SigBlk", "SigIgn", "TracerPid")
TOOLS = "/packages/tools"
ENVIRONMENT = {"PATH": TOOLS + "/bin:/usr/local/bin:/usr/bin:/bin:/home/agent/.local/bin:" + TOOLS + "/last", "HOME": "/home/agent", "USER": "agent", "LOGNAME": "agent", "SHELL": "/bin/bash", "LANG": "C.UTF-8"}
# Settings for libraries that a kernel may have in addition; none of them is about the host.
TUNING = {"PYTHONDONTWRITEBYTECODE": "1", "MPLBACKEND": "agg", "MPLCONFIGDIR": None,
          "PYTHONPATH": TOOLS + "/lib", "PIP_RETRIES": "1", "PIP_DISABLE_PIP_VERSION_CHECK": "1", "PIP_BREAK_SYSTEM_PACKAGES": "1", "UV_HTTP_RETRIES": "1",
          "NPM_CONFIG_FETCH_RETRY_MINTIMEOUT": "100", "NPM_CONFIG_FETCH_RETRY_MAXTIMEOUT": "500", "NPM_CONFIG_UPDATE_NOTIFIER": "false",
          "NODE_OPTIONS": "--require=/etc/caisson-node.js",
          "MATPLOTLIBRC": None, "PWD": "/workspace", "SHLVL": None, "_": None, "OLDPWD": None}


def limits_of(pid):
    found = {}
    for line in Path("/proc/%d/limits" % pid).read_text().splitlines()[1:]:
        m = re.match(r"Max (.+?)\s{2,}(\S+)\s+(\S+)", line)
        found[m.group(1)] = (m.group(2), m.group(3))
    return found


def environ_of(pid):
    return dict(e.split("=", 1) for e in Path("/proc/%d/environ" % pid).read_bytes().decode().split("\0") if e)


def posture(pid):
    s = status_of(pid)
    return {**{k: s[k].strip() for k in SAME}, "limits": limits_of(pid), "oom_score_adj": Path("/proc/%d/oom_score_adj" % pid).read_text().strip(),
            "personality": Path("/proc/%d/personality" % pid).read_text().strip(),
            "nice": Path("/proc/%d/stat" % pid).read_text().rpartition(")")[2].split()[16],
            "cpus": len(os.sched_getaffinity(pid)), "cwd": os.readlink("/proc/%d/cwd" % pid)}


def descriptors(pid):
    """{number: target}. The daemon's processes open and close descriptors meanwhile: closed ones are left out."""
    found = {}
    for f in os.listdir("/proc/%d/fd" % pid):
        with contextlib.suppress(FileNotFoundError):
            found[int(f)] = os.readlink("/proc/%d/fd/%s" % (pid, f))
    return found


@pytest.fixture(scope="module")
def command(tmp_path_factory):
    """A sleeping program that `caisson exec` has started: the reference."""
    state = tmp_path_factory.mktemp("run") / "state"
    p = subprocess.Popen([str(BIN), "exec", "--state", str(state), "--", "sleep", "1000"], env=clean_env(), stdin=subprocess.DEVNULL,
                         stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    try:
        _, init = wait_running(p)
        pid, = children(init)
        assert wait_until(lambda: name_of(pid) == "sleep")
        yield pid
    finally:
        p.terminate()
        p.wait(20)
        end_process(p)


def started_by_kernel(daemon, session, language="python"):
    """A program that code in a kernel has started. Returns its pid."""
    before = set(daemon.named("sleep"))
    code = {"python": "import subprocess; p = subprocess.Popen(['sleep', '1000'])", "bash": "sleep 1000 &",
            "javascript": "void require('child_process').spawn('sleep', ['1000'], {stdio: 'inherit'})", "r": "system('sleep 1000', wait = FALSE)"}[language]
    r = daemon.execute(code, session_id=session, language=language, timeout=60)
    assert r["success"], r
    new = wait_until(lambda: set(daemon.named("sleep")) - before)
    pid, = new
    return pid


@pytest.mark.parametrize("lang", [pytest.param("python", id="python"), BASH, JAVASCRIPT, R])
def test_program_in_a_kernel_has_the_posture_of_a_command(daemon, command, lang):
    pid = started_by_kernel(daemon, unique(), lang)
    want, got = posture(command), posture(pid)
    if lang in ("bash", "r"):  # a background job of a shell; R's system() ignores two more signals itself
        mine = int(got["SigIgn"], 16) & ~0x180000000
        want["SigIgn"] = got["SigIgn"] if mine & ~0x6 == 0 else want["SigIgn"]
    differs = {k: (want[k], got[k]) for k in want if want[k] != got[k]}
    assert not differs, "command against kernel: %r" % differs


@pytest.mark.parametrize("lang", [pytest.param("python", id="python"), BASH, JAVASCRIPT, R])
def test_program_in_a_kernel_has_its_three_descriptors(daemon, lang):
    pid = started_by_kernel(daemon, unique(), lang)
    if lang == "r":
        pytest.skip("base R has no way to mark descriptors close-on-exec: its children see the channel of their own sandbox")
    # A program that has just begun reads its libraries and locales.
    assert wait_until(lambda: set(descriptors(pid)) == {0, 1, 2}), descriptors(pid)
    fds = descriptors(pid)
    assert fds[0] == "/dev/null" and fds[1].startswith("pipe:") and fds[2].startswith("pipe:"), fds


@pytest.mark.parametrize("lang", [pytest.param("python", id="python"), BASH, JAVASCRIPT, R])
def test_environment_is_clean(daemon, lang):
    got = environ_of(started_by_kernel(daemon, unique(), lang))
    assert {k: got.get(k) for k in ENVIRONMENT} == ENVIRONMENT, got
    extra = {k: v for k, v in got.items() if k not in ENVIRONMENT}
    if lang == "r":  # its own start script sets some
        script = subprocess.run(["Rscript", "-e", "writeLines(names(Sys.getenv()))"], env=ENVIRONMENT, capture_output=True, text=True).stdout
        extra = {k: v for k, v in extra.items() if k not in script.split() and not k.startswith("R_")}
    assert not [k for k, v in extra.items() if k not in TUNING or TUNING[k] not in (None, v)], extra


@pytest.fixture
def kernel(daemon):
    """A forked python kernel: (session, host pid)."""
    name = unique("k")
    assert daemon.execute(call_yourself(name), session_id=name)["success"]
    pid, = daemon.named(name)
    return name, pid


def test_kernel_itself(daemon, kernel, command):
    _, pid = kernel
    s = status_of(pid)
    assert {s[k] for k in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")} == {ZERO}
    assert s["NoNewPrivs"] == "1" and s["Seccomp"] == "2" and int(s["Seccomp_filters"]) >= 1 and not s["Groups"].split()
    assert s["Threads"] == "1", "the kernel was not forked"
    assert limits_of(pid) == limits_of(command)
    assert Path("/proc/%d/oom_score_adj" % pid).read_text() == Path("/proc/%d/oom_score_adj" % command).read_text()
    for task in os.listdir("/proc/%d/task" % pid):
        assert "Seccomp:\t2" in Path("/proc/%d/task/%s/status" % (pid, task)).read_text()


def test_users(daemon, kernel):
    """uid 1000 inside; outside, as root, a range that belongs to this cell alone; not that of its init."""
    name, pid = kernel
    assert daemon.execute("import os; os.getresuid(), os.getresgid(), os.getgroups()", session_id=name)["result"]["text/plain"] == \
        "((1000, 1000, 1000), (1000, 1000, 1000), [])"
    uids = set(status_of(pid)["Uid"].split())
    assert len(uids) == 1 and "0" not in uids
    if os.geteuid() == 0:
        assert set(status_of(daemon.init_of(pid))["Uid"].split()) != uids
        assert int(uids.pop()) > 100000
        for other, space in daemon.kernels().items():
            if space != space_of(pid):
                with contextlib.suppress(OSError):  # one of the pool may have ended meanwhile
                    assert status_of(other)["Uid"] != status_of(pid)["Uid"]


def test_namespaces(daemon, kernel, command):
    """All namespaces are its own: not the host's, not another cell's, not the zygote's."""
    _, pid = kernel
    zygote = daemon.zygote()
    for ns in NAMESPACES:
        mine = os.readlink("/proc/%d/ns/%s" % (pid, ns))
        assert mine != os.readlink("/proc/self/ns/" + ns), ns
        assert mine != os.readlink("/proc/%d/ns/%s" % (command, ns)), ns
        assert mine != os.readlink("/proc/%d/ns/%s" % (zygote, ns)), ns
        assert mine != os.readlink("/proc/%d/ns/%s" % (daemon.pid, ns)), ns
    for child in ("pid_for_children",):
        assert os.readlink("/proc/%d/ns/%s" % (pid, child)) == os.readlink("/proc/%d/ns/pid" % pid)


def cgroups_of(pid):
    return dict(line.split(":", 2)[1:] for line in Path("/proc/%d/cgroup" % pid).read_text().splitlines())


def test_cgroups(daemon, kernel):
    """In the cell's own group of every hierarchy that has limits or accounts, together with its init; in no group of another cell."""
    if not Place.dirs:
        pytest.skip("no cgroups of our own on this machine")
    _, pid = kernel
    mine, its, zygote = cgroups_of(pid), cgroups_of(daemon.init_of(pid)), cgroups_of(daemon.zygote())
    for controllers, path in mine.items():
        if controllers:
            assert path == its[controllers], controllers
        else:  # beside v1 the unified tree has no group of ours
            assert path == its[controllers] or "caisson-c" not in path, path
    limited = [c for c in mine if set(c.split(",")) & {"memory", "pids", "cpu"}]
    assert limited and all(mine[c] != zygote[c] for c in limited)


def test_descriptors_of_a_kernel(kernel):
    """0 to 2, its two pipes to the daemon, and the descriptors of its event loop."""
    _, pid = kernel
    fds = descriptors(pid)
    assert fds.pop(0) == "/dev/null"
    pipes = {n: t for n, t in fds.items() if t.startswith("pipe:")}
    assert {1, 2} <= set(pipes) and len(pipes) == 4, fds
    rest = {n: t for n, t in fds.items() if n not in pipes}
    assert sorted(t.partition(":")[0] for t in rest.values()) in ([], ["anon_inode", "socket", "socket"]), fds
    for n in fds:
        flags = int(re.search(r"flags:\s+(\d+)", Path("/proc/%d/fdinfo/%d" % (pid, n)).read_text()).group(1), 8)
        assert n <= 2 or flags & os.O_CLOEXEC, "programs that the code starts would inherit descriptor %d" % n
    # The pair of sockets belongs to the event loop: both ends are here.
    inodes = {t for t in rest.values() if t.startswith("socket:")}
    unix = [line.split() for line in Path("/proc/%d/net/unix" % pid).read_text().splitlines()[1:]]
    assert inodes <= {"socket:[%s]" % u[6] for u in unix} and len(inodes) in (0, 2)


def test_pipes_are_the_cells_own(daemon, kernel):
    """The kernel holds one end of its pipes and the front the other; no other process of the daemon or of a cell holds any."""
    _, pid = kernel
    mine = {t for t in descriptors(pid).values() if t.startswith("pipe:")}

    def holders():
        found = set()
        for p in [daemon.pid, daemon.warden(), daemon.zygote(), *daemon.inits(), *daemon.kernels()]:
            try:
                if mine & set(descriptors(p).values()):
                    found.add(p)
            except OSError:
                pass
        return found

    # The warden makes the pipes, and a process that it forks meanwhile has them until that process closes all descriptors.
    assert wait_until(lambda: holders() == {pid, daemon.pid}), [(p, name_of(p)) for p in holders()]


# ---- from inside -------------------------------------------------------------------------------------------------------


def test_no_files_of_the_host(daemon, tmp_path):
    canary = unique("canary")
    places = [Path("/tmp") / canary, Path("/var/tmp") / canary, Path("/dev/shm") / canary, Path.home() / canary, tmp_path / canary, daemon.where / canary]
    made = []
    try:
        for p in places:
            try:
                p.write_text("secret of the host")
                p.chmod(0o644)
                made.append(p)
            except OSError:
                pass
        assert made
        code = ("import os\nfor p in %r:\n    print(os.path.exists(p))\nprint(sorted(os.listdir('/')))\nprint(os.listdir('/home'), os.listdir('/run'))\n"
                "print([l for l in open('/etc/passwd')])" % [str(p) for p in made])
        r = daemon.execute(code)
        assert r["stdout"].splitlines()[:len(made)] == ["False"] * len(made), r["stdout"]
        assert "['agent'] ['postgresql']" in r["stdout"], r["stdout"]
        host_users = {line.split(":")[0] for line in Path("/etc/passwd").read_text().splitlines()} - {"root", "nobody", "agent"}
        assert not [u for u in host_users if "'%s:" % u in r["stdout"]], r["stdout"]
        for gone in ("root", "boot", "mnt", "media", "srv", "opt", "work"):
            assert "'%s'" % gone not in r["stdout"].splitlines()[len(made)], r["stdout"]
    finally:
        for p in made:
            p.unlink()


def test_nothing_can_be_written_outside_its_own_layer(daemon):
    code = ("import os\nfor p in ['/usr/x', '/etc/x', '/x', '/proc/sys/kernel/hostname', '/sys/x', '/run/x', '/var/x', '/bin/x', '/dev/x', '/proc/self/oom_score_adj']:\n"
            "    try:\n        open(p, 'w').write('0'); print('WROTE', p)\n    except OSError: pass")
    assert daemon.execute(code)["stdout"] == "", daemon.execute(code)["stdout"]


@pytest.mark.parametrize("lang", [pytest.param("python", id="python"), BASH])
def test_no_cell_reaches_the_daemon(serve, short_dir, lang):
    """Neither its port on any address of the machine, nor its socket, nor an abstract one."""
    d = serve(socket=short_dir / "d.sock")
    addresses = ["127.0.0.1", "localhost", "0.0.0.0"]
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        try:
            s.connect(("192.0.2.1", 9))
            addresses.append(s.getsockname()[0])
        except OSError:
            pass
    if lang == "python":
        code = ("import socket, os\nfor a in %r:\n    try:\n        socket.create_connection((a, %d), 2).close(); print('REACHED', a)\n    except OSError as e: print(type(e).__name__)\n"
                "s = socket.socket(socket.AF_UNIX)\ntry:\n    s.connect(%r); print('REACHED socket')\nexcept OSError as e: print(type(e).__name__)\nprint(os.path.exists(%r))"
                % (addresses, d.port, str(short_dir / "d.sock"), str(short_dir)))
    else:
        code = "for a in %s; do (exec 9<>/dev/tcp/$a/%d) 2>/dev/null && echo REACHED $a; done; test -e %s && echo REACHED; echo looked" % (
            " ".join(addresses), d.port, short_dir / "d.sock")
    r = d.execute(code, language=lang, timeout=60)
    assert "REACHED" not in r["stdout"] and r["stdout"], r
    if lang == "python":
        assert r["stdout"].splitlines()[-2:] == ["FileNotFoundError", "False"] and len(r["stdout"].splitlines()) == len(addresses) + 2, r
    assert d.metrics()["caisson_http_connections_total"] < 60


def test_no_network_but_loopback(daemon):
    r = daemon.execute("import os, socket\nprint([l.split(':')[0].strip() for l in open('/proc/net/dev').readlines()[2:]])\n"
                       "s = socket.socket(); s.bind(('127.0.0.1', 0)); s.listen()\nc = socket.create_connection(s.getsockname(), 2); print('loopback')\n"
                       "try:\n    socket.create_connection(('192.0.2.1', 80), 2)\nexcept OSError as e: print(e.errno)")
    assert r["stdout"].splitlines()[0] == "['lo']" and "loopback" in r["stdout"] and r["stdout"].split()[-1] in ("101", "111", "113"), r


def test_no_process_of_another_cell_is_seen(daemon):
    a, b = unique(), unique()
    daemon.execute("import subprocess; p = subprocess.Popen(['sleep', '987'])", session_id=a)
    r = daemon.execute("import os\nprint(sorted(int(p) for p in os.listdir('/proc') if p.isdigit()))\n"
                       "print([open('/proc/%s/cmdline' % p).read() for p in os.listdir('/proc') if p.isdigit() and p != '1'])", session_id=b)
    assert "987" not in r["stdout"] and r["stdout"].startswith("[1, "), r


def test_kernel_can_not_touch_its_init(daemon):
    r = daemon.execute("import os, signal\nfor s in (9, 15, 19):\n    try:\n        os.kill(1, s); print('sent')\n    except PermissionError: print('no')\n"
                       "for f in ('mem', 'environ', 'maps', 'fd', 'root', 'cwd'):\n    try:\n"
                       "        os.listdir('/proc/1/' + f) if f in ('fd', 'root', 'cwd') else open('/proc/1/' + f).read(1)\n        print('READ', f)\n"
                       "    except OSError: pass")
    assert r["stdout"].split() == ["no"] * 3, r


def test_system_calls_that_cells_may_not_make(daemon):
    """The filter of a forked kernel is the filter of a command: a few of its refusals."""
    code = ("import ctypes, os\nlibc = ctypes.CDLL(None, use_errno=True)\n"
            "def call(*a):\n    ctypes.set_errno(0)\n    r = libc.syscall(*a)\n    return r, ctypes.get_errno()\n"
            "for name, *a in [('unshare', 272, 0x10000000), ('mount', 165, 0, 0, 0, 0, 0), ('bpf', 321, 0, 0, 0), ('ptrace', 101, 16, 1, 0, 0),\n"
            "                 ('io_uring_setup', 425, 1, 0), ('keyctl', 250, 0, 0), ('userfaultfd', 323, 0), ('perf', 298, 0, 0, 0, 0, 0), ('setns', 308, 0, 0),\n"
            "                 ('clone3', 435, 0, 0), ('init_module', 175, 0, 0, 0), ('kexec', 246, 0, 0, 0, 0)]:\n    print(name, *call(*a))")
    r = daemon.execute(code)
    lines = [line.split() for line in r["stdout"].splitlines()]
    assert len(lines) == 12 and all(x[1] == "-1" and x[2] in ("1", "38") for x in lines), r["stdout"]


# ---- kernels that send forged messages --------------------------------------------------------------------------------------

# Code that finds the descriptor on which its kernel writes to the daemon: a pipe, for writing, not 1 or 2.
CHANNEL = ("import fcntl, os\nout = next(f for f in range(3, 256) if os.path.islink('/proc/self/fd/%d' % f) and "
           "os.readlink('/proc/self/fd/%d' % f).startswith('pipe') and fcntl.fcntl(f, fcntl.F_GETFL) & 3 == os.O_WRONLY)\n")


@pytest.mark.parametrize("line", [
    "not json", "{}", "[]", "5", '{\"type\": 5}', '{\"type\": \"execution_done\", \"id\": \"0\", \"status\": \"ok\", \"exit_code\": 0}', "[" * 5000,
    '{\"type\": \"execution_done\"}', '{\"type\":\"x\",\"type\":\"y\"}', "\x00\x01"], ids=lambda s: repr(s[:30]))
def test_broken_protocol_costs_only_the_guest_its_kernel(daemon, line):
    name, other = unique(), unique()
    daemon.execute("x = 'other'", session_id=other)
    r = daemon.execute(CHANNEL + "os.write(out, %r)\nimport time; time.sleep(100)" % (line.encode() + b"\n"), session_id=name, timeout=60)
    assert not r["success"] and r["state"] == "reset" and r["cause"]["kind"] == "protocol" and r["execution_time"] < 50, r
    assert daemon.execute("x", session_id=other)["result"]["text/plain"] == "'other'"
    assert daemon.execute("1", session_id=name)["epoch"] == 1


def test_line_without_an_end_does_not_grow_the_daemon(daemon):
    """A message has at most sixteen megabytes; a guest that sends more loses its kernel."""
    r = daemon.execute(CHANNEL + "b = b'x' * 65536\nfor i in range(1000): os.write(out, b)", timeout=20)
    assert not r["success"] and r["cause"]["kind"] == "protocol", r
    assert SANITIZED or wait_until(lambda: daemon.metrics()["process_resident_memory_bytes"] < 200 << 20)  # which keeps freed memory


def test_a_kernel_that_reads_nothing(daemon):
    """Code takes away the channel on which its kernel receives code: the next execution reports this, and not a timeout."""
    code = """
import fcntl, os, stat
r, w = os.pipe()
for fd in map(int, os.listdir("/proc/self/fd")):
    try:
        if fd > 2 and fd not in (r, w) and stat.S_ISFIFO(os.fstat(fd).st_mode) and fcntl.fcntl(fd, fcntl.F_GETFL) & 3 == os.O_RDONLY:
            os.dup2(r, fd)
            print("taken")
    except OSError:
        pass
"""
    name = unique()
    r = daemon.execute(code, session_id=name)
    assert r["stdout"] == "taken\n", r
    # The kernel ends within a second: later code gets another one.
    r = daemon.execute("6 * 7", session_id=name, timeout=20)
    assert r["success"] or (r["state"] == "reset" and r["cause"]["kind"] == "protocol"), r
    r = daemon.execute("6 * 7", session_id=name)
    assert r["success"] and r["result"] == {"text/plain": "42"}, r


def test_forged_messages_are_the_guests_own_data(daemon):
    """Exit status, time and memory do not come from its messages; unknown types are ignored."""
    r = daemon.execute(CHANNEL + "for m in (b'{\"type\":\"ready\",\"pid\":1}', b'{\"type\":\"usage\",\"cpu_ns\":0}', b'{\"type\":\"unknown\"}',\n"
                       "          b'{\"type\":\"result\",\"data\":{\"text/plain\":\"forged\"}}', b'{\"type\":\"rpc_request\",\"id\":\"1\",\"payload\":{}}'): os.write(out, m + b'\\n')\n"
                       "import time\nt = time.process_time()\nwhile time.process_time() - t < 0.3: pass\nos._exit(5)")
    assert r["exit_code"] == 5 and not r["success"] and r["usage"]["cpu_ns"] > 2e8, r


def test_closed_channel(daemon):
    name = unique()
    r = daemon.execute(CHANNEL + "os.close(out)\nimport time; time.sleep(100)", session_id=name, timeout=60)
    assert not r["success"] and r["state"] == "reset" and r["execution_time"] < 50, r
    assert daemon.execute("1", session_id=name)["success"]


def test_closed_standard_streams(daemon):
    """Code that closes its descriptors loses its output, and nothing else."""
    name = unique()
    r = daemon.execute("import os\nprint('before', flush=True)\nos.close(1); os.close(2); os.close(0)\n", session_id=name)
    assert r["stdout"] == "before\n", r
    r = daemon.execute("6 * 7", session_id=name)
    assert r["result"]["text/plain"] == "42" or r["state"] == "reset", r


def test_fork_of_the_kernel_does_not_answer_twice(daemon):
    """A child that code forks, and that returns from the code, is not a second kernel."""
    name = unique()
    daemon.execute("import os\npid = os.fork()", session_id=name, timeout=10)
    for i in range(3):
        r = daemon.execute("print(%d)" % i, session_id=name, timeout=10)
        assert r["stdout"] == "%d\n" % i or r["state"] == "reset", r
