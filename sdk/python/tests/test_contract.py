# SPDX-License-Identifier: Apache-2.0
"""test_contract.py - One contract for all runtimes of sessions: the same tests against `caisson`, `remote` and `docker`.

A row of the table in docs/sdk-executor.md is one test, or several; `row` has its text, and the runtimes whose cell is not "yes". A test
asserts what the cell of its runtime says. The docker part is slow: make sdk-docker, make sdk-full.
"""

from __future__ import annotations

import asyncio
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from docker_lib import IMAGE, with_image
from package_lib import Index, sdist, wheel
from process import HANG, wait_until

from caisson.errors import (
    FileConflict,
    FilePermissionDenied,
    ImageUnavailable,
    LanguageUnavailable,
    NoSuchFile,
    PackageConflict,
    PackageError,
    PackageNotFound,
    PackageRefused,
    SandboxNotFound,
)
from caisson.session_config import VARIABLES, SandboxConfig
from caisson.sessions import SessionManager

RUNTIMES = ("caisson", "remote", "docker")
ROWS: dict[str, dict[str, str]] = {}
DOCUMENT = Path(__file__).resolve().parents[3] / "docs" / "sdk-executor.md"


def row(text, **cells):
    """A row of the table."""
    table = {runtime: cells.get(runtime, "yes") for runtime in RUNTIMES}
    assert ROWS.setdefault(text, table) == table, "two rows of one text"

    def mark(test):
        test.row = text
        return test

    return mark


class Place:
    """Where sessions of one runtime run. cell: what the table says of the row of this test."""

    def __init__(self, runtime, monkeypatch, about, empty, cell):
        self.runtime, self.about, self.empty, self.cell = runtime, about, empty, cell
        self.monkeypatch = monkeypatch

    def manager(self, **config):
        return SessionManager(SandboxConfig(runtime=self.runtime, **{**self.about, **config}))


@pytest.fixture(scope="session")
def dockerd():
    daemon = with_image()
    yield daemon
    daemon.stop()


@pytest.fixture(params=["caisson", "remote", pytest.param("docker", marks=pytest.mark.slow)])
def place(request, monkeypatch):
    for name in [*("COREASON_SANDBOX_" + v for v in VARIABLES), "CAISSON_TOKEN", "CAISSON_SOCKET", "CAISSON_URL", "DOCKER_HOST"]:
        monkeypatch.delenv(name, raising=False)
    runtime, cell = request.param, ROWS[request.function.row][request.param]
    if runtime == "docker":
        daemon = request.getfixturevalue("dockerd")
        monkeypatch.setenv("DOCKER_HOST", "unix://" + daemon.socket)
        p = Place(runtime, monkeypatch, {"docker_image": IMAGE}, daemon.empty, cell)
    else:
        daemon = request.getfixturevalue("daemon")
        url = "http://127.0.0.1:%d" % daemon.port
        if runtime == "caisson":
            monkeypatch.setenv("CAISSON_URL", url)
        p = Place(runtime, monkeypatch, {"url": url} if runtime == "remote" else {}, lambda: daemon.get("/v1/sandboxes").json["sandboxes"] == [], cell)
    yield p
    assert wait_until(p.empty), "sandboxes are left"


# ---- code ------------------------------------------------------------------------------------------------------------------------


@row("variables, imports and files stay between executions")
async def test_variables(place):
    async with place.manager() as manager:
        run = (await manager.get_or_create_session("s")).runtime.execute
        made = await run("import math\nx = 41\nopen('a.txt', 'w').write('hi')\n")
        assert (made.exit_code, made.stdout, made.stderr, made.status, made.hint, made.truncated) == (0, "", "", "ok", None, False)
        result = await run("print(x + 1, math.floor(1.5), open('a.txt').read())", language="Python")
        assert (result.stdout, result.result) == ("42 1 hi\n", None) and result.execution_duration > 0
        assert (await run("import os; os.getcwd(), os.environ['HOME']")).result == "('/workspace', '/home/agent')"


@row("the value of the last expression is `result`; `await` at the top level")
async def test_values(place):
    async with place.manager() as manager:
        run = (await manager.get_or_create_session("s")).runtime.execute
        assert (await run("x = [1, 'é']\nx")).result == "[1, 'é']"
        assert (await run("import asyncio\nawait asyncio.sleep(0, 'late')")).result == "'late'"


@row("bash, with variables of its own")
async def test_bash(place):
    async with place.manager() as manager:
        run = (await manager.get_or_create_session("s")).runtime.execute
        assert (await run("x=41; cd /tmp; f() { echo \"$((x + 1)) $PWD\"; }", language="bash")).exit_code == 0
        result = await run("f; echo wrong >&2; (exit 3)", language="bash")
        assert (result.stdout, result.stderr, result.exit_code, result.status) == ("42 /tmp\n", "wrong\n", 3, "error")
        assert (await run("import subprocess; subprocess.run(['echo', 'child'])\nprint('self')")).stdout == "child\nself\n"


@row("javascript and R", caisson="if the image has them", remote="if the image has them", docker="refused")
async def test_other_languages(place):
    async with place.manager() as manager:
        run = (await manager.get_or_create_session("s")).runtime.execute
        if place.cell == "refused":
            with pytest.raises(LanguageUnavailable, match="javascript"):
                await run("1 + 1", language="javascript")
        else:
            assert (await run("6 * 7", language="javascript")).result == "42"
        with pytest.raises(LanguageUnavailable):
            await run("1", language="cobol")


@row("an exception is a result, with a traceback of the user's lines; so is the code's own exit code")
async def test_failing_code(place):
    async with place.manager() as manager:
        run = (await manager.get_or_create_session("s")).runtime.execute
        failed = await run("def f():\n    return 1 / 0  # here\nprint('before')\nf()")
        assert (failed.exit_code, failed.status, failed.stdout) == (1, "error", "before\n")
        assert "ZeroDivisionError" in failed.stderr and "return 1 / 0  # here" in failed.stderr and len(failed.stderr.splitlines()) < 15
        assert "SyntaxError" in (await run("1 +")).stderr
        left = await run("import sys; sys.exit(3)")
        assert (left.exit_code, left.status) == (3, "error")
        assert (await run("f.__name__")).result == "'f'", "neither has cost the variables"


@row("executions of one session run one after another")
async def test_turns(place):
    async with place.manager() as manager:
        sessions = await asyncio.gather(*(manager.get_or_create_session("s") for _ in range(5)))
        assert len({id(s) for s in sessions}) == 1
        results = await asyncio.gather(*(s.runtime.execute("n = globals().get('n', 0) + 1\nn") for s in sessions))
        assert sorted(int(r.result) for r in results) == [1, 2, 3, 4, 5]


@row("stdout and stderr have up to 10,000 characters each, and `truncated`")
async def test_long_output(place):
    async with place.manager() as manager:
        run = (await manager.get_or_create_session("s")).runtime.execute
        result = await run("import sys\nprint('x' * 3000000)\nprint('e', file=sys.stderr)")
        assert result.truncated and result.stdout.startswith("xxx") and len(result.stdout) <= 10000 and result.stderr == "e\n"
        assert (await run("print('é' * 9999)")).stdout == "é" * 9999 + "\n"


# ---- the ends of code --------------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@row("a timeout: `status` timeout, exit code 124, a hint; what was printed is there")
async def test_timeout(place):
    async with place.manager(execution_timeout=2) as manager:
        run = (await manager.get_or_create_session("s")).runtime.execute
        for code, language in (("print('begun')\nwhile True: pass", "python"), ("echo begun; sleep 1000", "bash")):
            result = await run(code, language)
            assert (result.status, result.exit_code, result.stdout) == ("timeout", 124, "begun\n") and result.hint
        assert (await run("6 * 7")).result == "42"


@pytest.mark.slow
@row("variables after a timeout", caisson="kept, if the code can be interrupted", remote="kept, if the code can be interrupted", docker="lost; files are kept")
async def test_after_a_timeout(place):
    async with place.manager(execution_timeout=2) as manager:
        run = (await manager.get_or_create_session("s")).runtime.execute
        await run("x = 1\nopen('kept', 'w').close()")
        late = await run("import time\ntime.sleep(1000)")
        assert late.status == "timeout"
        after = await run("import os\nprint(os.path.exists('kept'))\nx")
        assert after.stdout == "True\n"
        if place.cell.startswith("kept"):
            assert after.result == "1"
        else:
            assert "NameError" in after.stderr and "variables are lost" in late.hint


@pytest.mark.slow
@row("a task that is cancelled ends its code")
async def test_cancelled(place):
    async with place.manager() as manager:
        runtime = (await manager.get_or_create_session("s")).runtime
        task = asyncio.ensure_future(runtime.execute("import time\nopen('begun', 'w').close()\ntime.sleep(1000)"))
        while [f.path for f in await runtime.list_files()] != ["begun"]:
            await asyncio.sleep(0.05)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        after = await asyncio.wait_for(runtime.execute("6 * 7"), HANG)
        assert after.result == "42", "it does not wait for the other code"


@pytest.mark.slow
@row("memory is limited: `status` limit with a hint, and files stay")
async def test_memory(place):
    async with place.manager(memory_mib=128) as manager:
        run = (await manager.get_or_create_session("s")).runtime.execute
        await run("open('kept', 'w').close()")
        result = await run("x = bytearray(b'x') * (400 << 20)")
        assert result.status == "limit" and result.exit_code == 137 and "memory" in result.hint, result
        assert (await run("import os\nos.listdir()")).result == "['kept']"


@pytest.mark.slow
@row("processes are limited")
async def test_processes(place):
    async with place.manager(pids=24) as manager:
        run = (await manager.get_or_create_session("s")).runtime.execute
        await run("import os, subprocess, sys\nps = []")
        await run("for _ in range(40): ps.append(subprocess.Popen(['sleep', '1000']))")
        assert 4 < int((await run("len(ps)")).result) < 24
        await run("for p in ps: p.kill(); p.wait()")


@pytest.mark.slow
@row("processor time is limited")
async def test_processors(place):
    async with place.manager(cpus=0.25) as manager:
        run = (await manager.get_or_create_session("s")).runtime.execute
        result = await run("import time\nbegan, used = time.monotonic(), time.process_time()\nwhile time.process_time() < used + 0.5: pass\ntime.monotonic() - began")
        assert float(result.result) > 1, "half a second of a quarter of a processor"


@pytest.mark.slow
@row("files are limited: they are in the sandbox's memory")
async def test_disk(place):
    async with place.manager(memory_mib=128) as manager:
        run = (await manager.get_or_create_session("s")).runtime.execute
        result = await run("with open('big', 'wb') as f:\n    for _ in range(200): f.write(bytes(1 << 20))")
        assert result.exit_code != 0 and ("No space left" in result.stderr or result.status == "limit"), result
        await run("import os\nos.unlink('big')")
        assert (await run("6 * 7")).result == "42"


@row("code that ends its interpreter is reported; the session goes on")
async def test_interpreter_that_ends(place):
    async with place.manager() as manager:
        run = (await manager.get_or_create_session("s")).runtime.execute
        await run("x = 1\nopen('kept', 'w').close()")
        result = await run("import os; print('before', flush=True); os._exit(7)")
        assert result.exit_code == 7 and result.stdout == "before\n" and result.status == "error", result
        killed = await run("import os; os.kill(os.getpid(), 9)")
        assert (killed.exit_code, killed.status) == (137, "signal")
        after = await run("import os; print(os.listdir())\nx")
        assert after.stdout == "['kept']\n" and "NameError" in after.stderr


# ---- isolation -----------------------------------------------------------------------------------------------------------------


@row("an ordinary user, no capabilities, no new privileges, a filter, a read-only system")
async def test_posture(place):
    code = """
import os
status = {line.partition(':')[0]: line.partition(':')[2].strip() for line in open('/proc/self/status')}
print(os.getuid(), os.getgid(), [int(status[c], 16) for c in ('CapEff', 'CapPrm', 'CapInh', 'CapBnd', 'CapAmb')], status['NoNewPrivs'], status['Seccomp'])
for path in ('/usr/x', '/etc/x', '/x', '/opt/caisson/x'):
    try:
        open(path, 'w')
        print(path)
    except OSError:
        pass
"""
    async with place.manager() as manager:
        run = (await manager.get_or_create_session("s")).runtime.execute
        assert (await run(code)).stdout == "1000 1000 [0, 0, 0, 0, 0] 1 2\n"


@row("no network")
async def test_network(place):
    code = """
import os, socket
print(sorted(os.listdir('/sys/class/net')) if os.path.isdir('/sys/class/net') else ['lo'])
for address in ('10.0.0.1', '192.0.2.1', '169.254.169.254'):
    try:
        socket.create_connection((address, 80), 5)
        print(address)
    except OSError:
        pass
"""
    async with place.manager() as manager:
        run = (await manager.get_or_create_session("s")).runtime.execute
        assert (await run(code)).stdout == "['lo']\n"


# ---- files ---------------------------------------------------------------------------------------------------------------------


@row("`upload`, `download`, `list_files`")
async def test_files(place, tmp_path):
    data = bytes(range(256)) * 10001
    (tmp_path / "in.bin").write_bytes(data)
    async with place.manager() as manager:
        runtime = (await manager.get_or_create_session("s")).runtime
        await runtime.upload(tmp_path / "in.bin", "data/sub/in.bin")
        result = await runtime.execute("d = open('data/sub/in.bin', 'rb').read(); open('data/out.bin', 'wb').write(d[::-1]); open('data/sub/own', 'w').close()")
        assert result.exit_code == 0, "the directories belong to the code: " + result.stderr
        await runtime.download("data/out.bin", tmp_path / "out.bin")
        assert (tmp_path / "out.bin").read_bytes() == data[::-1]
        (tmp_path / "in.bin").write_bytes(b"second")
        await runtime.upload(tmp_path / "in.bin", "/workspace/data/out.bin")
        await runtime.upload(tmp_path / "in.bin", "/tmp/elsewhere")
        await runtime.execute("import os; os.symlink('out.bin', 'data/way'); os.mkfifo('data/pipe'); open('data/t.csv', 'w').close()")
        for path in ("data/way", "/tmp/elsewhere"):
            await runtime.download(path, tmp_path / "out.bin")
            assert (tmp_path / "out.bin").read_bytes() == b"second"
        listed = {f.path: (f.filename, f.content_type, f.size_bytes) for f in await runtime.list_files("data")}
        assert listed == {
            "data/out.bin": ("out.bin", "application/octet-stream", 6),
            "data/pipe": ("pipe", "inode/fifo", None),
            "data/sub": ("sub", "inode/directory", None),
            "data/t.csv": ("t.csv", "text/csv", 0),
            "data/way": ("way", "inode/symlink", None),
        }
        assert [f.path for f in await runtime.list_files()] == ["data"]


@row("files that lead nowhere are typed errors: `NoSuchFile`, `FileConflict`, `FilePermissionDenied`")
async def test_files_that_are_not_there(place, tmp_path):
    (tmp_path / "f").write_text("old")
    async with place.manager() as manager:
        runtime = (await manager.get_or_create_session("s")).runtime
        await runtime.execute("import os; os.mkdir('d'); os.mkdir('closed'); open('closed/x', 'w').close(); os.chmod('closed', 0)")
        for call, kind in (
            (runtime.download("nothing", tmp_path / "f"), NoSuchFile),
            (runtime.list_files("nothing"), NoSuchFile),
            (runtime.download("d", tmp_path / "f"), FileConflict),
            (runtime.upload(tmp_path / "f", "d"), FileConflict),
            (runtime.download("closed/x", tmp_path / "f"), FilePermissionDenied),
            (runtime.list_files("closed"), FilePermissionDenied),
            (runtime.upload(tmp_path / "nothing", "x"), FileNotFoundError),
        ):
            with pytest.raises(kind):
                await call
        assert [p.name for p in tmp_path.iterdir()] == ["f"] and (tmp_path / "f").read_text() == "old", "nothing half written, nothing lost"


@row("artifacts: the files that an execution made or changed")
async def test_artifacts(place):
    async with place.manager() as manager:
        run = (await manager.get_or_create_session("s")).runtime.execute
        await run("open('before', 'w').close()\nimport time; time.sleep(0.1)")
        made = (await run("import os; os.mkdir('d'); open('d/chart.png', 'w').write('x' * 5); open('t.csv', 'w').write('a')")).artifacts
        assert sorted((a.filename, a.path, a.content_type, a.size_bytes) for a in made) == [
            ("chart.png", "d/chart.png", "image/png", 5),
            ("t.csv", "t.csv", "text/csv", 1),
        ]
        await asyncio.sleep(0.05)  # the clock of files has ticks: within one, a file is of both executions
        assert [a.path for a in (await run("echo x >shell.txt", language="bash")).artifacts] == ["shell.txt"]
        await asyncio.sleep(0.05)
        assert (await run("1")).artifacts == []


@row("`url` of an artifact", docker="no: use `download`")
async def test_urls(place):
    async with place.manager() as manager:
        made = (await (await manager.get_or_create_session("s")).runtime.execute("open('f.txt', 'w').write('x')")).artifacts
        assert [bool(a.url) for a in made] == [place.cell == "yes"]


# ---- packages ------------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def index(tmp_path_factory):
    files = tmp_path_factory.mktemp("files")
    wheel(files, "alpha", "1.0")
    wheel(files, "alpha", "2.0", {"alpha.py": "import beta\nVERSION = '2.0'\n"}, requires=["beta>=1", 'gamma; python_version < "3"'])
    wheel(files, "beta", "1.5")
    wheel(files, "beta", "1.4")
    wheel(files, "needs-other", requires=["beta==1.4"])
    sdist(files, "source", "open('/tmp/built', 'w').close()")
    i = Index(tmp_path_factory.mktemp("index"), files)
    yield i
    i.close()


@pytest.fixture
def shop(place, index):
    """The place, with an index."""
    if place.runtime == "docker":
        place.monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:%d/simple" % index.web.port)
        place.monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    else:
        url = "http://127.0.0.1:%d" % index.daemon.port
        place.monkeypatch.setenv("CAISSON_URL", url)
        place.about = {"url": url} if place.runtime == "remote" else {}
    return place


@pytest.mark.slow
@row("`install_package`, with what the package needs, for python code and programs")
async def test_packages(shop):
    async with shop.manager() as manager:
        runtime = (await manager.get_or_create_session("s")).runtime
        assert "ModuleNotFoundError" in (await runtime.execute("import alpha")).stderr
        await runtime.execute("true", language="bash")
        await runtime.install_package("alpha")
        assert (await runtime.execute("import alpha; alpha.VERSION, alpha.beta.VERSION")).result == "('2.0', '1.5')"
        assert (await runtime.execute("python3 -c 'import alpha; print(alpha.VERSION)'", language="bash")).stdout == "2.0\n"
        await runtime.install_package("beta==1.5")
        with pytest.raises(PackageConflict):
            await runtime.install_package("needs-other")
        with pytest.raises(PackageNotFound):
            await runtime.install_package("no-such-package")
        with pytest.raises(PackageNotFound):
            await runtime.install_package("beta==9")
        for name in ("--index-url=http://127.0.0.1", "-r/etc/passwd", "./alpha", "alpha @ http://127.0.0.1/a.whl", ""):
            with pytest.raises(PackageError):
                await runtime.install_package(name)
        assert (await runtime.execute("alpha.VERSION")).result == "'2.0'"


@pytest.mark.slow
@row("packages that must be built", docker="no: wheels only")
async def test_packages_to_build(shop):
    async with shop.manager() as manager:
        runtime = (await manager.get_or_create_session("s")).runtime
        if shop.cell == "yes":
            await runtime.install_package("source")
            assert (await runtime.execute("import source")).exit_code == 0
        else:
            with pytest.raises(PackageNotFound) as e:
                await runtime.install_package("source")
            assert "wheels only" in e.value.hint
    assert not Path("/tmp/built").exists(), "code of a package ran on this machine"


@row("`COREASON_SANDBOX_ALLOWED_PACKAGES`")
async def test_packages_that_are_not_allowed(place):
    async with place.manager(allowed_packages=frozenset(("pandas",))) as manager:
        with pytest.raises(PackageRefused, match="COREASON_SANDBOX_ALLOWED_PACKAGES"):
            await (await manager.get_or_create_session("s")).runtime.install_package("requests")


# ---- life ----------------------------------------------------------------------------------------------------------------------


@row("`terminate` ends everything, and may be called again; the next session is new")
async def test_terminate(place):
    async with place.manager() as manager:
        session = await manager.get_or_create_session("s")
        await session.runtime.execute("x = 1\nopen('f', 'w').close()")
        await session.runtime.terminate()
        await session.runtime.terminate()
        assert wait_until(place.empty)
        for call in (session.runtime.execute("1"), session.runtime.list_files(), session.runtime.install_package("x")):
            with pytest.raises(SandboxNotFound):
                await call
        again = await manager.get_or_create_session("s")
        assert "NameError" in (await again.runtime.execute("x")).stderr and await again.runtime.list_files() == []


@row("sessions share nothing")
async def test_two_sessions(place):
    async with place.manager() as manager:
        a, b = [await manager.get_or_create_session(name) for name in ("a", "b/../ü")]
        await a.runtime.execute("x = 1\nopen('f', 'w').close()\nopen('/tmp/f', 'w').close()")
        await a.runtime.execute("import subprocess; p = subprocess.Popen(['sleep', '997'])")
        seen = await b.runtime.execute("import glob, os\nprint(os.listdir(), os.path.exists('/tmp/f'))\n"
                                       "print([f for f in glob.glob('/proc/[0-9]*/cmdline') if b'997' in open(f, 'rb').read()])\nx")
        assert seen.stdout == "[] False\n[]\n" and "NameError" in seen.stderr


@row("an image that is not there: `ImageUnavailable`")
async def test_image(place):
    async with place.manager(docker_image="127.0.0.1:1/no/such:image") as manager:
        with pytest.raises(ImageUnavailable) as e:
            await manager.get_or_create_session("s")
        assert e.value.hint


@row("a second program continues the session of the same id", docker="no: it has its own")
async def test_two_programs(place):
    async with place.manager() as first, place.manager() as second:
        await (await first.get_or_create_session("s")).runtime.execute("x = 1")
        result = await (await second.get_or_create_session("s")).runtime.execute("x")
        assert (result.result == "1") == (place.cell == "yes")


PROGRAM = """
import asyncio, sys
from caisson.sessions import SandboxConfig, SessionManager
async def main():
    session = await SessionManager(SandboxConfig(**%r)).get_or_create_session("s")
    await session.runtime.execute("1")
    print("up", flush=True)
    sys.stdin.read()
asyncio.run(main())
"""


@pytest.mark.slow
@row("the end of a sandbox whose program was killed", caisson="when it was idle", remote="when it was idle", docker="at once")
def test_killed(place):
    config = {"runtime": place.runtime, **place.about, "idle_timeout": 2, "reaper_interval": 1}
    program = subprocess.Popen([sys.executable, "-c", PROGRAM % config], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    with program:
        assert program.stdout.readline() == b"up\n"
        assert not place.empty()
        program.send_signal(signal.SIGKILL)
    assert wait_until(place.empty, HANG)


# ---- the table -----------------------------------------------------------------------------------------------------------------


def test_the_table_of_the_documentation():
    """The table has what the tests assert, in the order of the tests."""
    head = "| | %s |\n|---|%s\n" % (" | ".join("`%s`" % r for r in RUNTIMES), "---|" * len(RUNTIMES))
    table = head + "".join("| %s | %s |\n" % (text, " | ".join(cells[r] for r in RUNTIMES)) for text, cells in ROWS.items())
    found = re.search(re.escape(head) + r"(\|.*\n)*", DOCUMENT.read_text(encoding="utf-8"))
    assert found and found.group() == table, "docs/sdk-executor.md should have:\n" + table
    tests = [f for name, f in globals().items() if name.startswith("test_") and hasattr(f, "row")]
    assert {f.row for f in tests} == set(ROWS)
