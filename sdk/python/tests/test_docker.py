# SPDX-License-Identifier: Apache-2.0
"""test_docker.py - The docker runtime where it differs from the others: what it asks of a daemon, its containers, and what is left of them.

test_contract.py has what it shares with the others. Tests with a Docker daemon are slow: make sdk-docker, make sdk-full.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from docker_lib import IMAGE, Dockerd, why_not, with_image
from package_lib import sdist, wheel
from process import HANG, IS_ROOT, wait_until

from caisson import _docker_pip, _runtime_docker
from caisson._docker import check_abilities, check_socket, find_socket
from caisson._docker_files import checked_answer
from caisson._docker_look import look_python
from caisson._docker_owner import OWNER
from caisson.errors import DiskFull, ImageUnavailable, InvalidRequest, Misconfigured, PackageError, ProtocolError, SandboxUnavailable
from caisson.session_config import VARIABLES, SandboxConfig
from caisson.sessions import SessionManager

SEED = Path(__file__).with_name("seed_001.md").read_text()
DOCKER = SandboxConfig(runtime="docker", docker_image=IMAGE)


@pytest.fixture(autouse=True)
def environment(monkeypatch):
    for name in [*("COREASON_SANDBOX_" + v for v in VARIABLES), "DOCKER_HOST"]:
        monkeypatch.delenv(name, raising=False)


# ---- what it asks of a daemon ------------------------------------------------------------------------------------------------------


def refused(monkeypatch, host, kind=SandboxUnavailable):
    monkeypatch.setenv("DOCKER_HOST", host)
    with pytest.raises(kind) as e:
        SessionManager(SandboxConfig(runtime="docker"))
    assert e.value.hint
    return e.value


@pytest.mark.parametrize("host", ["tcp://127.0.0.1:2375", "ssh://box", "/var/run/docker.sock", "unix://docker.sock", "npipe:////./pipe/docker"])
def test_an_address_that_is_not_a_socket(monkeypatch, host):
    error = refused(monkeypatch, host, Misconfigured)
    assert error.field == "DOCKER_HOST" and host in str(error)


def test_the_default_socket():
    assert find_socket({}) == find_socket({"DOCKER_HOST": " "}) == "/var/run/docker.sock"
    assert find_socket({"DOCKER_HOST": "unix:///run/user/1000/docker.sock"}) == "/run/user/1000/docker.sock"


def test_no_daemon(monkeypatch, short_dir):
    """Before anything is started: the socket and the remedy are named."""
    error = refused(monkeypatch, "unix://%s/nothing" % short_dir)
    assert "%s/nothing: No such file" % short_dir in str(error) and "DOCKER_HOST" in error.hint
    with socket.socket(socket.AF_UNIX) as s:
        s.bind("%s/left" % short_dir)
    error = refused(monkeypatch, "unix://%s/left" % short_dir)
    assert "Connection refused" in str(error) and "has ended" in error.hint


@pytest.mark.skipif(not IS_ROOT, reason="root makes a socket that another user may not use")
def test_a_socket_of_others(short_dir):
    with socket.socket(socket.AF_UNIX) as s:
        s.bind("%s/closed" % short_dir)
        s.listen()
        os.chmod("%s/closed" % short_dir, 0o600)
        pid = os.fork()
        if not pid:
            os.setuid(65534)
            try:
                check_socket("%s/closed" % short_dir)
            except SandboxUnavailable as e:
                os._exit(0 if "Permission denied" in str(e) and "usermod -aG docker" in e.hint else 2)
            os._exit(1)
        assert os.waitpid(pid, 0)[1] == 0


async def test_another_server(serve, short_dir, monkeypatch):
    """The socket of a daemon of Caisson, and one that does not speak HTTP."""
    serve("--socket", short_dir / "caisson")
    monkeypatch.setenv("DOCKER_HOST", "unix://%s/caisson" % short_dir)
    async with SessionManager(DOCKER) as manager:
        with pytest.raises(SandboxUnavailable, match="is not a Docker daemon"):
            await manager.get_or_create_session("s")

    def greet(reader, writer):
        writer.write(b"220 mail\r\n\r\n")
        writer.close()

    server = await asyncio.start_unix_server(greet, "%s/mail" % short_dir)
    monkeypatch.setenv("DOCKER_HOST", "unix://%s/mail" % short_dir)
    async with SessionManager(DOCKER) as manager:
        with pytest.raises(SandboxUnavailable):
            await manager.get_or_create_session("s")
    server.close()


def refused_by(daemon, monkeypatch):
    async def first():
        monkeypatch.setenv("DOCKER_HOST", "unix://" + daemon.socket)
        async with SessionManager(DOCKER) as manager:
            with pytest.raises(SandboxUnavailable) as e:
                await manager.get_or_create_session("s")
        return e.value

    return asyncio.run(first())


@pytest.mark.slow
@pytest.mark.skipif(not Path("/sys/fs/cgroup/pids").is_dir(), reason="only a controller of cgroup v1 can be taken from one process")
def test_a_daemon_that_cannot_limit_processes(monkeypatch):
    if why_not():
        pytest.skip(why_not())
    daemon = Dockerd(before=["unshare", "--mount", "sh", "-c", 'umount /sys/fs/cgroup/pids && exec "$@"', "sh"])
    try:
        error = refused_by(daemon, monkeypatch)
        assert "cannot limit processes" in str(error) and "controller pids" in str(error) and error.hint
    finally:
        daemon.stop()


@pytest.mark.parametrize(
    "change, named",
    [
        ({}, None),
        ({"OSType": "windows"}, "windows"),
        ({"MemoryLimit": False, "PidsLimit": False}, "cannot limit memory and processes"),
        ({"CpuCfsQuota": False}, "cannot limit processor time"),
        ({"SecurityOptions": ["name=apparmor"]}, "no seccomp filter"),
        ({"SecurityOptions": ["name=seccomp,profile=unconfined"]}, "no seccomp filter"),
        ({"SecurityOptions": ["name=seccomp,profile=builtin", "name=userns"]}, "userns-remap"),
    ],
)
def test_daemons_that_lack_something(change, named):
    """By what they report of themselves."""
    info = {"OSType": "linux", "MemoryLimit": True, "CpuCfsQuota": True, "PidsLimit": True, "SecurityOptions": ["name=seccomp,profile=default"]}
    if named is None:
        check_abilities(info)
        return
    with pytest.raises(SandboxUnavailable, match=named) as e:
        check_abilities({**info, **change})
    assert e.value.hint


# ---- packages: pip of this machine gets them ---------------------------------------------------------------------------------------


@pytest.fixture
def shelf(tmp_path, monkeypatch):
    """A directory in which pip looks for packages, and nowhere else."""
    where = tmp_path / "shelf"
    where.mkdir()
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(where))
    return where


async def pip(tmp_path, *requirements):
    into = tmp_path / "tree"
    into.mkdir(exist_ok=True)
    await _docker_pip.install(requirements, look_python(""), into)
    return {f.name for f in into.glob("*.py")}


async def test_no_package_is_built_on_this_machine(shelf, tmp_path):
    """A wheel names the address of another package: one that has to be built, one that is a wheel, one in a repository."""
    ran = tmp_path / "ran"
    source = sdist(tmp_path, "builder", "open(%r, 'w').close()" % str(ran))
    other = wheel(tmp_path, "other")
    wheel(shelf, "honest")
    wheel(shelf, "top", requires=["honest>=1"])
    assert await pip(tmp_path, "top") == {"top.py", "honest.py"}
    sdist(shelf, "unbuilt")
    with pytest.raises(PackageError):
        await pip(tmp_path, "unbuilt")
    for name, address in (("a", source.as_uri()), ("b", other.as_uri()), ("c", "git+https://127.0.0.1:1/x")):
        wheel(shelf, name, requires=["%s @ %s" % ("other" if name == "b" else "builder", address)])
        with pytest.raises(PackageError, match="requires another one from an address"):
            await pip(tmp_path, name)
        assert not ran.exists(), "RAN: a build, on this machine"


def answer_of_python(**change):
    return json.dumps({"answer": {**look_python(""), **change}}).encode()


def test_a_forged_description_of_the_python():
    """Code in the container can reach the program that describes its python: the description becomes a command line."""
    own = look_python("")
    assert checked_answer("python", "", answer_of_python()) == own
    assert _docker_pip._tags(own)
    for libc in ("glibc 2.999999999", "glibc 2.x", "glibc"):
        assert len(_docker_pip._tags({**own, "libc": libc})) < 3000
    for change in ({"libc": 2}, {"libc": "x" * 1000}, {"markers": {**own["markers"], "platform_machine": "x" * 1000}},
                   {"markers": {**own["markers"], "platform_machine": "a\0b"}}, {"markers": {**own["markers"], **{"m%d" % i: "" for i in range(99)}}}):
        with pytest.raises(ProtocolError):
            checked_answer("python", "", answer_of_python(**change))


# ---- containers --------------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def shared():
    daemon = with_image()
    yield daemon
    daemon.stop()


@pytest.fixture
def dockerd(shared, monkeypatch):
    monkeypatch.setenv("DOCKER_HOST", "unix://" + shared.socket)
    yield shared
    assert wait_until(shared.empty), "%s %s" % (shared.containers(), shared.volumes())


@pytest.mark.slow
async def test_a_container_as_docker_has_it(dockerd):
    async with SessionManager(SandboxConfig(runtime="docker", docker_image=IMAGE, memory_mib=96, cpus=0.5, pids=40)) as manager:
        await manager.get_or_create_session("analysis-task-001")
        listed, = dockerd.containers()
        assert listed["Labels"]["caisson.session"] == "analysis-task-001" and '"pid": %d' % os.getpid() in listed["Labels"][OWNER]
        about = dockerd.get("/containers/%s/json" % listed["Id"])
        host = about["HostConfig"]
        wanted = {"Memory": 96 << 20, "MemorySwap": 96 << 20, "NanoCpus": 500000000, "PidsLimit": 40, "ReadonlyRootfs": True, "NetworkMode": "none",
                  "CapDrop": ["ALL"], "SecurityOpt": ["no-new-privileges"], "AutoRemove": True, "IpcMode": "private", "CgroupnsMode": "private"}
        assert {key: host[key] for key in wanted} == wanted
        assert not any(host[key] for key in ("CapAdd", "Privileged", "Binds", "PidMode", "UTSMode", "UsernsMode", "Devices", "VolumesFrom", "PortBindings"))
        assert about["Config"]["User"] == "1000:1000"
        assert sorted((m["Destination"], m["Type"]) for m in about["Mounts"]) == [
            ("/home/agent", "volume"), ("/opt/caisson", "volume"), ("/tmp", "volume"), ("/workspace", "volume")]


@pytest.mark.slow
async def test_pid_1_is_out_of_reach(dockerd):
    """Code could keep a container by holding the stdin of its pid 1, whose end is the end of the container."""
    async with SessionManager(DOCKER) as manager:
        run = (await manager.get_or_create_session("s")).runtime.execute
        result = await run("import os\nos.stat('/proc/1/status').st_uid, os.listdir('/proc/1/fd')")
        assert "PermissionError" in result.stderr
        for name in ("mem", "fd/0", "fd/1"):
            assert "PermissionError" in (await run("open('/proc/1/%s', 'wb')" % name)).stderr
        assert (await run("os.kill(1, 9), os.kill(1, 19)")).result == "(None, None)", "the Linux kernel ignores it"
        assert (await run("6 * 7")).result == "42"


@pytest.mark.slow
async def test_a_hint_after_code_that_needs_a_network(dockerd):
    async with SessionManager(DOCKER) as manager:
        run = (await manager.get_or_create_session("s")).runtime.execute
        result = await run("import urllib.request; urllib.request.urlopen('https://pypi.org')")
        assert result.status == "error" and "no network" in result.hint and "install_package" in result.hint, result
        assert (await run("1 / 0")).hint is None


@pytest.mark.slow
async def test_strange_code(dockerd):
    """Nothing of it costs the kernel."""
    async with SessionManager(DOCKER) as manager:
        run = (await manager.get_or_create_session("s")).runtime.execute
        await run("x = 1")
        for code, language, exit_code in (("'\ud800'", "python", 1), ("echo \ud800", "bash", 0), ("\0", "python", 1), ("", "python", 0), ("", "bash", 0),
                                          ("import sys; sys.stderr = None; 1 / 0", "python", 1), ("def f(", "python", 1), ("f(", "bash", 2)):
            assert (await run(code, language)).exit_code == exit_code, code
        with pytest.raises(InvalidRequest):
            await run("echo \0", "bash")
        assert (await run("import sys; sys.stderr = sys.__stderr__; x")).result == "1"


@pytest.mark.slow
async def test_the_example_of_the_description(dockerd):
    """As it stands, except for its import: the environment selects the runtime."""
    program = re.sub(r"from coreason_sandbox\.\w+ import", "from caisson.sessions import", re.findall(r"```python\n(.*?)```", SEED, re.S)[0])
    env = {**os.environ, "COREASON_SANDBOX_RUNTIME": "docker", "COREASON_SANDBOX_DOCKER_IMAGE": IMAGE}
    p = subprocess.run([sys.executable, "-W", "error", "-c", program], capture_output=True, text=True, timeout=HANG, env=env)
    assert (p.returncode, p.stdout) == (0, "Output: The factorial of 10 is 3628800\n"), p.stderr


@pytest.mark.slow
async def test_an_image_without_python(dockerd, tmp_path):
    import tarfile

    with tarfile.open(tmp_path / "empty.tar", "w") as tar:
        tar.add("/etc/hostname", "etc/hostname")
    dockerd.import_image(tmp_path / "empty.tar", "caisson/sdk-test:empty")
    async with SessionManager(SandboxConfig(runtime="docker", docker_image="caisson/sdk-test:empty")) as manager:
        with pytest.raises(ImageUnavailable, match="has no python3") as e:
            await manager.get_or_create_session("s")
        assert "COREASON_SANDBOX_DOCKER_IMAGE" in e.value.hint


@pytest.mark.slow
@pytest.mark.parametrize(
    "part, value, reason",
    [
        ("KERNEL", "raise SystemExit(3)", "it ended and printed nothing"),
        ("KERNEL", "import nothing_here", "No module named 'nothing_here'"),
        ("PYTHON", ["/nothing/here"], "/nothing/here: no such file"),
    ],
)
async def test_a_kernel_that_does_not_start(dockerd, monkeypatch, part, value, reason):
    """The error has the reason: by the program, and by the daemon where there is no program."""
    async with SessionManager(DOCKER) as manager:
        run = (await manager.get_or_create_session("s")).runtime.execute
        with monkeypatch.context() as m:
            m.setattr(_runtime_docker, part, value)
            with pytest.raises(ImageUnavailable, match=reason):
                await run("1")
        assert (await run("6 * 7")).result == "42"


@pytest.mark.slow
async def test_a_fork_bomb_ends_with_its_time(dockerd):
    """No process can be started in the container any more, and everything in it is killed nevertheless."""
    async with SessionManager(SandboxConfig(runtime="docker", docker_image=IMAGE, pids=40, execution_timeout=3)) as manager:
        run = (await manager.get_or_create_session("s")).runtime.execute
        await run("open('kept', 'w').close()")
        result = await run("import os, signal\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\nwhile True:\n    try: os.fork()\n    except OSError: pass")
        assert result.status == "timeout" and "files are kept" in result.hint
        after = await run("import glob, os\nprint(len(glob.glob('/proc/[0-9]*')), os.listdir())")
        assert after.stdout == "2 ['kept']\n", "pid 1 and the kernel"


@pytest.mark.slow
async def test_a_process_in_the_background(dockerd):
    """It stays until a timeout, and its output does not end an execution or keep one from ending."""
    async with SessionManager(SandboxConfig(runtime="docker", docker_image=IMAGE, execution_timeout=20)) as manager:
        run = (await manager.get_or_create_session("s")).runtime.execute
        assert (await run("sleep 1000 & echo $!", "bash")).status == "ok"
        assert (await run("import subprocess; p = subprocess.Popen(['sleep', '1000']); 1")).result == "1"
        assert (await run("exit 4", "bash")).exit_code == 4, "the shell ends, whatever its children do"
        assert (await run("import os; os.close(1); os.close(2)")).status == "ok"
        assert (await run("p.poll() is None")).result == "True"


FORGE = """
import os, sys, time
frame = sys._getframe()
while 'request' not in frame.f_locals:
    frame = frame.f_back
mark = b'\\0' + frame.f_locals['request']['token'].encode() + b'\\0'
"""


@pytest.mark.slow
async def test_a_forged_report(dockerd):
    """Code that writes to the descriptors of its kernel damages its own execution, and no later one."""
    async with SessionManager(DOCKER) as manager:
        run = (await manager.get_or_create_session("s")).runtime.execute
        for line in ("{}", "[]", '{"exit_code": true, "files": []}', '{"exit_code": 0, "files": [["x"]]}', "[" * 100000):
            with pytest.raises(ProtocolError, match="forged"):
                await run(FORGE + "os.write(1, mark + %r + b'\\n'); os.write(2, mark); time.sleep(1000)" % line.encode())
            assert (await run("6 * 7")).result == "42"
        result = await run(FORGE + 'os.write(2, mark); os.write(1, mark + b\'{"exit_code": 5, "files": []}\\n\'); print("later")')
        assert result.exit_code == 5
        assert (await run("6 * 7")).exit_code in (0, 5) and (await run("6 * 7")).exit_code == 0


@contextlib.contextmanager
def stopped(pid):
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


async def goes_on(task):
    return not (await asyncio.wait({task}, timeout=2))[0]


@pytest.mark.slow
async def test_no_kill_reaches_the_next_execution(dockerd, monkeypatch):
    """Pid 1, which kills, may run late on a busy machine. An execution that was killed ends after that, and the next one starts after that."""
    monkeypatch.setattr(_runtime_docker, "END_SECONDS", HANG)
    async with SessionManager(DOCKER) as manager:
        runtime = (await manager.get_or_create_session("s")).runtime
        run = runtime.execute
        assert (await run("6 * 7")).result == "42"
        listed, = dockerd.containers()
        pid_1 = dockerd.get("/containers/%s/json" % listed["Id"])["State"]["Pid"]
        with stopped(pid_1):
            forged = asyncio.ensure_future(run(FORGE + "os.write(1, mark + b'{}\\n'); os.write(2, mark); time.sleep(1000)"))
            assert await goes_on(forged), "it ended before its processes"
        with pytest.raises(ProtocolError, match="forged"):
            await forged
        assert (await run("6 * 7")).result == "42"

        given_up = asyncio.ensure_future(run("import time; open('began', 'w').close(); time.sleep(1000)"))
        while not await runtime.list_files():
            assert await goes_on(given_up)
        with stopped(pid_1):
            given_up.cancel()
            assert await goes_on(given_up), "it ended before its processes"
            given_up.cancel()
            with pytest.raises(asyncio.CancelledError):
                await given_up
            later = asyncio.ensure_future(run("6 * 7"))
            assert await goes_on(later), "it started before the kill"
        assert (await later).result == "42"


@pytest.mark.slow
async def test_an_upload_that_does_not_fit(dockerd, tmp_path):
    with open(tmp_path / "large", "wb") as f:
        f.truncate(200 << 20)
    async with SessionManager(SandboxConfig(runtime="docker", docker_image=IMAGE, memory_mib=64)) as manager:
        runtime = (await manager.get_or_create_session("s")).runtime
        with pytest.raises(DiskFull):
            await runtime.upload(tmp_path / "large", "large")
        assert (await runtime.execute("6 * 7")).result == "42"


# ---- what is left --------------------------------------------------------------------------------------------------------------------


ENDS = """
import asyncio, os, signal
from caisson import _runtime_docker as rt
from caisson.sessions import SandboxConfig, SessionManager
async def die(self):
    print("up", flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
rt.DockerRuntime._start_container = die
async def main():
    await SessionManager(SandboxConfig(runtime="docker", docker_image=%r)).get_or_create_session("s")
asyncio.run(main())
""" % IMAGE


@pytest.mark.slow
async def test_a_container_that_was_never_started(dockerd):
    """A program was killed between making its container and starting it. The next program removes it, and no container of a living one."""
    loop = asyncio.get_running_loop()
    dead = await loop.run_in_executor(None, lambda: subprocess.run([sys.executable, "-c", ENDS], capture_output=True, timeout=HANG))
    assert dead.returncode == -signal.SIGKILL and dead.stdout == b"up\n", dead
    left, = dockerd.containers()
    async with SessionManager(DOCKER) as living:
        session = await living.get_or_create_session("living")
        assert left["Id"] not in [c["Id"] for c in dockerd.containers()] and len(dockerd.containers()) == 1
        others = [SessionManager(DOCKER) for _ in range(3)]
        await asyncio.gather(*(other.get_or_create_session("other") for other in others))
        assert len(dockerd.containers()) == 4, "reaping at once, and again, is no error and takes nothing that lives"
        await asyncio.gather(*(other.shutdown() for other in others))
        assert (await session.runtime.execute("6 * 7")).result == "42"


@pytest.mark.slow
def test_a_daemon_that_ends(monkeypatch):
    """Its sessions fail with typed errors, also at the end of the manager."""
    daemon = with_image()
    monkeypatch.setenv("DOCKER_HOST", "unix://" + daemon.socket)

    async def main():
        manager = SessionManager(DOCKER)
        session = await manager.get_or_create_session("s")
        await asyncio.get_running_loop().run_in_executor(None, daemon.stop)
        for call in (session.runtime.execute("1"), session.runtime.list_files(), manager.shutdown()):
            with pytest.raises(SandboxUnavailable):
                await call

    try:
        asyncio.run(main())
    finally:
        daemon.stop()
