# SPDX-License-Identifier: Apache-2.0
"""test_sessions.py - SessionManager: the examples of its description unchanged, its configuration, its end."""

from __future__ import annotations

import asyncio
import logging
import re
import subprocess
import sys
from pathlib import Path

import pytest
from extras_lib import run_with
from process import BIN, wait_until

from caisson.errors import CaissonError, ClientClosed, Misconfigured, NoSuchFile, PackageRefused
from caisson.session_config import VARIABLES, SandboxConfig
from caisson.sessions import CaissonRuntime, ExecutionResult, FileReference, SandboxMCP, SandboxRuntime, SessionManager, sandbox_name

SEED = Path(__file__).with_name("seed_001.md").read_text()
RIGHT = "right" * 8
SNIPPETS = re.findall(r"```python\n(.*?)```", SEED, re.S)


@pytest.fixture(autouse=True)
def environment(monkeypatch, request):
    for name in [*("COREASON_SANDBOX_" + v for v in VARIABLES), "CAISSON_TOKEN", "CAISSON_SOCKET"]:
        monkeypatch.delenv(name, raising=False)
    if "url" in request.fixturenames:
        monkeypatch.setenv("CAISSON_URL", request.getfixturevalue("url"))


def names(daemon):
    return [s["name"] for s in daemon.get("/v1/sandboxes").json["sandboxes"]]


def ours(snippet):
    """The one change: the module of the import."""
    return re.sub(r"from coreason_sandbox\.\w+ import", "from caisson.sessions import", snippet)


# ---- the examples ----------------------------------------------------------------------------------------------------


def test_the_first_example_as_it_stands(url, daemon):
    p = subprocess.run([sys.executable, "-W", "error", "-c", ours(SNIPPETS[0])], capture_output=True, text=True, timeout=60)
    assert (p.returncode, p.stdout) == (0, "Output: The factorial of 10 is 3628800\n"), p.stderr
    assert names(daemon) == []


@pytest.mark.slow
def test_the_second_example_unchanged(url, daemon):
    """The example defines a server; the lines after it call that server, as its transport would."""
    more = """
import asyncio

async def ask():
    print([t.name for t in await mcp.list_tools()])
    said = await mcp.call_tool("execute_code", {"session_id": "s", "language": "python", "code": "print(6 * 7)"})
    print("42" in str(said))
    await sandbox.shutdown()

asyncio.run(ask())
"""
    p = run_with("mcp.server.fastmcp", "-W", "error::ResourceWarning", "-c", ours(SNIPPETS[1]) + more)
    assert (p.returncode, p.stdout) == (0, "['execute_code']\nTrue\n"), p.stderr
    assert names(daemon) == []


@pytest.mark.slow
async def test_without_a_daemon_one_is_started(monkeypatch, tmp_path):
    for name, value in (("CAISSON_BIN", str(BIN)), ("CAISSON_URL", ""), ("XDG_RUNTIME_DIR", str(tmp_path))):
        monkeypatch.setenv(name, value)
    monkeypatch.setattr("caisson._place.state_dir", lambda env: str(tmp_path / "nothing"))
    async with SessionManager() as manager:
        session = await manager.get_or_create_session("x")
        assert (await session.runtime.execute("6 * 7")).result == "42"
    assert list(tmp_path.iterdir()) == [], "no file of the daemon stays"


async def test_the_tools_without_a_server(url, daemon):
    sandbox = SandboxMCP()
    async with sandbox.lifespan():
        said = await sandbox.execute_code("a", "python", "open('x.txt', 'w').write('hello'); print('hi')")
        assert said["stdout"] == "hi\n" and said["exit_code"] == 0 and said["artifacts"][0]["filename"] == "x.txt"
        assert [f["path"] for f in await sandbox.list_files("a")] == ["x.txt"]
    assert names(daemon) == []


# ---- sessions --------------------------------------------------------------------------------------------------------


async def test_a_session(url, daemon, tmp_path):
    async with SessionManager() as manager:
        session = await manager.get_or_create_session("work")
        run = session.runtime.execute
        assert (await run("x = 41")).exit_code == 0
        result = await run("print(x + 1)\nx + 2", language="python")
        assert (result.stdout, result.result, result.status) == ("42\n", "43", "ok") and result.execution_duration > 0
        assert (await run("echo $((6 * 7))", language="bash")).stdout == "42\n"
        failed = await run("1 / 0")
        assert failed.exit_code == 1 and "ZeroDivisionError" in failed.stderr and failed.status == "error"
        (tmp_path / "in.bin").write_bytes(bytes(range(256)) * 10000)
        await session.runtime.upload(tmp_path / "in.bin", "data/in.bin")
        made = await run("d = open('data/in.bin', 'rb').read(); n = open('out.bin', 'wb').write(d[::-1])")
        assert [(a.filename, a.path, a.size_bytes) for a in made.artifacts if a.path[:5] != "data/"] == [("out.bin", "out.bin", 2560000)]
        await session.runtime.download("out.bin", tmp_path / "out.bin")
        assert (tmp_path / "out.bin").read_bytes() == (bytes(range(256)) * 10000)[::-1]
        assert [f.path for f in await session.runtime.list_files("data")] == ["data/in.bin"]
        await run("import os; os.mkdir('data/sub'); os.symlink('in.bin', 'data/way'); open('data/t.csv', 'w').close()")
        listed = {f.path: (f.content_type, f.size_bytes, f.url is None) for f in await session.runtime.list_files("data")}
        assert listed == {
            "data/in.bin": ("application/octet-stream", 2560000, False),
            "data/sub": ("inode/directory", None, True),
            "data/t.csv": ("text/csv", 0, False),
            "data/way": ("inode/symlink", None, True),
        }
        with pytest.raises(NoSuchFile) as e:
            await session.runtime.download("nothing", tmp_path / "nothing")
        assert "/workspace" in e.value.hint
        assert sorted(p.name for p in tmp_path.iterdir()) == ["in.bin", "out.bin"], "nothing half written is left"
        assert await manager.get_or_create_session("work") is session
        assert names(daemon) == ["work"]
        await session.runtime.terminate()
        await session.runtime.terminate()
        assert names(daemon) == []
        again = await manager.get_or_create_session("work")
        assert "NameError" in (await again.runtime.execute("x")).stderr, "a new one"
    assert names(daemon) == []
    with pytest.raises(ClientClosed):
        await manager.get_or_create_session("work")
    await manager.shutdown()


async def test_many_tasks_one_session(url, daemon):
    async with SessionManager() as manager:
        sessions = await asyncio.gather(*(manager.get_or_create_session("same") for _ in range(10)), manager.get_or_create_session("other"))
        assert len({id(s) for s in sessions[:10]}) == 1 and sorted(names(daemon)) == ["other", "same"]
        results = await asyncio.gather(*(s.runtime.execute("n = globals().get('n', 0) + 1\nn") for s in sessions[:10]))
        assert sorted(int(r.result) for r in results) == list(range(1, 11))


async def test_any_text_is_an_id(url, daemon):
    assert sandbox_name("analysis-task-001") == "analysis-task-001"
    strange = ["../../etc", "ü", "a" * 65, "a b", "-x", "\ud800"]
    assert len({sandbox_name(s) for s in strange}) == len(strange)
    async with SessionManager() as manager:
        for s in strange:
            assert (await (await manager.get_or_create_session(s)).runtime.execute("1")).result == "1"
        with pytest.raises(ValueError):
            await manager.get_or_create_session("")


@pytest.mark.slow
async def test_idle_sessions_are_ended(url, daemon):
    async with SessionManager(SandboxConfig(idle_timeout=0.3, reaper_interval=0.1)) as manager:
        session = await manager.get_or_create_session("brief")
        busy = await manager.get_or_create_session("busy")
        work = asyncio.ensure_future(busy.runtime.execute("import time; time.sleep(1.5); 7"))

        assert await asyncio.get_running_loop().run_in_executor(None, wait_until, lambda: names(daemon) == ["busy"])
        assert (await work).result == "7", "a session that works is not idle"
        assert (await manager.get_or_create_session("brief")) is not session


@pytest.mark.slow
async def test_time_and_limits_are_reported(url):
    async with SessionManager(SandboxConfig(execution_timeout=1)) as manager:
        session = await manager.get_or_create_session("slow")
        result = await session.runtime.execute("import time; time.sleep(30)")
        assert result.status == "timeout" and result.exit_code == 124 and result.hint


@pytest.mark.slow
async def test_code_that_ends_its_sandbox_is_reported(url, daemon):
    async with SessionManager() as manager:
        session = await manager.get_or_create_session("greedy")
        result = await session.runtime.execute("x = bytearray(b'x') * (900 << 20)")
        assert result.status in ("limit", "error") and result.exit_code != 0, result
        assert (await session.runtime.execute("1 + 1")).result == "2"


async def test_packages_that_are_not_allowed(url):
    async with SessionManager(SandboxConfig.from_env({"COREASON_SANDBOX_ALLOWED_PACKAGES": "pandas, Foo_Bar"})) as manager:
        session = await manager.get_or_create_session("p")
        with pytest.raises(PackageRefused, match="COREASON_SANDBOX_ALLOWED_PACKAGES"):
            await session.runtime.install_package("requests")
        for name in ("pandas", "foo-bar>=1", "foo.bar[x]==2"):
            with pytest.raises(CaissonError) as e:  # this daemon has no index: the request was not refused before
                await session.runtime.install_package(name)
            assert e.value.code == "not_configured"


async def test_what_happens_is_logged(url, caplog):
    caplog.set_level(logging.INFO, "caisson.sessions")
    async with SessionManager() as manager:
        await (await manager.get_or_create_session("l")).runtime.execute("1")
    said = [r.caisson for r in caplog.records if hasattr(r, "caisson")]
    assert [s["event"] for s in said] == ["start", "execute", "terminate"] and all(s["session_id"] == "l" for s in said)
    assert said[1]["exit_code"] == 0 and len(said[1]["code_sha256"]) == 64
    caplog.clear()
    async with SessionManager(SandboxConfig(enable_audit_logging=False)) as manager:
        await manager.get_or_create_session("l")
    assert not caplog.records


async def test_a_bucket_that_the_daemon_does_not_have(url, caplog):
    async with SessionManager(SandboxConfig(s3_bucket="b")) as manager:
        session = await manager.get_or_create_session("s3")
        for n in range(2):
            made = await session.runtime.execute("open('f%d.txt', 'w').write('x')" % n)
            assert any(a.url for a in made.artifacts)
    assert [r.message.partition(" ")[0] for r in caplog.records if r.levelname == "WARNING"] == ["COREASON_SANDBOX_S3_BUCKET"]


async def test_another_runtime():
    """The manager works with any runtime."""

    class Fake(SandboxRuntime):
        ended = 0

        async def start(self):
            pass

        async def execute(self, code, language="python"):
            return ExecutionResult(code.upper(), "", 0)

        async def upload(self, local_path, remote_path):
            pass

        async def download(self, remote_path, local_path):
            pass

        async def install_package(self, package_name):
            pass

        async def list_files(self, path="."):
            return [FileReference("a", "a")]

        async def terminate(self):
            Fake.ended += 1

    async with SessionManager(runtime_factory=lambda session_id, config: Fake()) as manager:
        session = await manager.get_or_create_session("x")
        assert (await session.runtime.execute("abc")).stdout == "ABC"
    assert Fake.ended == 1


async def test_an_id_has_one_session_while_another_of_it_ends():
    """A task that waited for the end, and a task that comes after it, get the same session."""
    ending, may_end, starting = asyncio.Event(), asyncio.Event(), []

    class Slow(CaissonRuntime):
        def __init__(self):
            pass

        async def start(self):
            starting.append(self)
            for _ in range(20):
                await asyncio.sleep(0)
            assert starting == [self] * len(starting), "two at once"

        async def terminate(self):
            starting.clear()
            ending.set()
            await may_end.wait()

    async with SessionManager(runtime_factory=lambda session_id, config: Slow()) as manager:
        await manager.get_or_create_session("x")
        end = asyncio.ensure_future(manager.end_session("x"))
        await ending.wait()
        waited = asyncio.ensure_future(manager.get_or_create_session("x"))
        await asyncio.sleep(0)
        may_end.set()
        await end
        after = await manager.get_or_create_session("x")
        assert await waited is after
        assert not manager._turns, "the manager forgets an unused lock"


# ---- configuration ---------------------------------------------------------------------------------------------------


def config(**variables):
    return SandboxConfig.from_env({"COREASON_SANDBOX_" + k: v for k, v in variables.items()})


@pytest.mark.parametrize(
    "variables, said",
    [
        ({"RUNTIME": "dockr"}, "'dockr' is not one of caisson, local, remote, docker"),
        ({"EXECUTION_TIMEOUT": "0"}, "'0' is not a number of seconds"),
        ({"ENABLE_AUDIT_LOGGING": "perhaps"}, "'perhaps' is neither true nor false"),
        ({"ALLOWED_PACKAGES": "[1]"}, "'[1]' is not a list of names"),
    ],
)
def test_messages_about_invalid_variables(variables, said):
    with pytest.raises(Misconfigured) as e:
        config(**variables)
    assert said in str(e.value)


@pytest.mark.parametrize(
    "variables, named",
    [
        ({"RUNTIME": "podman"}, "RUNTIME"),
        ({"RUNTIME": "remote"}, "URL"),
        ({"RUNTIME": "e2b", "URL": "https://x"}, "RUNTIME"),
        ({"RUNTIME": "Docker", "URL": "https://x"}, "URL"),
        ({"RUNTIME": "docker", "TOKEN": "t"}, "TOKEN"),
        ({"RUNTIME": "docker", "S3_BUCKET": "b"}, "S3_BUCKET"),
        ({"MEMORY_MIB": "0"}, "MEMORY_MIB"),
        ({"MEMORY_MIB": "512M"}, "MEMORY_MIB"),
        ({"CPUS": "nan"}, "CPUS"),
        ({"PIDS": "1.5"}, "PIDS"),
        ({"E2B_API_KEY": "k"}, "E2B_API_KEY"),
        ({"EXECUTION_TIMEOUT": "soon"}, "EXECUTION_TIMEOUT"),
        ({"EXECUTION_TIMEOUT": "0"}, "EXECUTION_TIMEOUT"),
        ({"EXECUTION_TIMEOUT": "nan"}, "EXECUTION_TIMEOUT"),
        ({"IDLE_TIMEOUT": "-1"}, "IDLE_TIMEOUT"),
        ({"REAPER_INTERVAL": "inf"}, "REAPER_INTERVAL"),
        ({"ENABLE_AUDIT_LOGGING": "perhaps"}, "ENABLE_AUDIT_LOGGING"),
        ({"ALLOWED_PACKAGES": "[1]"}, "ALLOWED_PACKAGES"),
        ({"ALLOWED_PACKAGES": '["a"'}, "ALLOWED_PACKAGES"),
        ({"S3_BUCKET": "b", "S3_ACCESS_KEY": "k"}, "S3_SECRET_KEY"),
        ({"S3_BUCKET": "b", "S3_SECRET_KEY": "k"}, "S3_ACCESS_KEY"),
        ({"S3_REGION": "r"}, "S3_REGION"),
        ({"EXECUTION_TIMOUT": "5"}, "EXECUTION_TIMOUT"),
        ({"WHATEVER_ELSE": "5"}, "WHATEVER_ELSE"),
    ],
)
def test_misconfigured(variables, named, monkeypatch):
    with pytest.raises(Misconfigured) as e:
        config(**variables)
    assert str(e.value).startswith("COREASON_SANDBOX_%s: " % named) and e.value.field == "COREASON_SANDBOX_" + named
    for k, v in variables.items():
        monkeypatch.setenv("COREASON_SANDBOX_" + k, v)
    with pytest.raises(Misconfigured):
        SessionManager()


def test_a_typing_mistake_is_recognised():
    with pytest.raises(Misconfigured, match="did you mean COREASON_SANDBOX_EXECUTION_TIMEOUT"):
        config(EXECUTION_TIMOUT="5")


def test_a_runtime_that_is_not_here_is_refused_by_name():
    """A runtime that would not be what its name means is refused: with the value, the reason and the remedy."""
    for make in (lambda: config(RUNTIME="e2b", URL="https://x"), lambda: SandboxConfig(runtime="e2b", url="https://x")):
        with pytest.raises(Misconfigured) as e:
            make()
        assert "'e2b' is refused: this library runs no sandboxes of E2B" in str(e.value)
        assert "caisson, local, remote, docker" in e.value.hint and e.value.field == "COREASON_SANDBOX_RUNTIME"


def test_configured():
    c = config(
        RUNTIME="Local",
        EXECUTION_TIMEOUT="2.5",
        IDLE_TIMEOUT="10",
        REAPER_INTERVAL="1",
        ALLOWED_PACKAGES='["pandas","NumPy"]',
        DOCKER_IMAGE="python:3.12-slim",
        ENABLE_AUDIT_LOGGING="no",
        S3_BUCKET="b",
        S3_REGION="r",
        S3_ACCESS_KEY="a",
        S3_SECRET_KEY="s",
        S3_ENDPOINT_URL="http://m",
        MEMORY_MIB="64",
        CPUS="0.5",
        PIDS="20",
    )
    assert (c.memory_mib, c.cpus, c.pids) == (64, 0.5, 20) and config(RUNTIME="Docker").runtime == "docker"
    assert (c.runtime, c.execution_timeout, c.allowed_packages, c.docker_image, c.enable_audit_logging) == (
        "local",
        2.5,
        {"pandas", "numpy"},
        "python:3.12-slim",
        False,
    )
    assert config(RUNTIME="remote", URL="https://x", TOKEN="k").token == "k" and config(IDLE_TIMEOUT=" ").idle_timeout == 300
    assert "secret" not in repr(config(RUNTIME="remote", URL="https://x", TOKEN="secret"))


def test_every_variable_is_a_field():
    assert {member for member, _ in VARIABLES.values()} == set(SandboxConfig.__dataclass_fields__)


@pytest.mark.slow
async def test_a_wrong_token_is_the_daemons_word(serve, tmp_path, monkeypatch):
    (tmp_path / "tokens").write_text("me:%s\n" % RIGHT)
    (tmp_path / "tokens").chmod(0o600)
    d = serve("--token-file", tmp_path / "tokens", wait=False)
    monkeypatch.setenv("CAISSON_URL", "http://127.0.0.1:%d" % d.port)
    d.token = RIGHT
    d.wait_ready()
    manager = SessionManager(SandboxConfig(token="wrong" * 8))
    with pytest.raises(CaissonError) as e:
        await manager.get_or_create_session("x")
    assert e.value.code == "unauthorized"
    await manager.shutdown()
    async with SessionManager(SandboxConfig(token=RIGHT)) as manager:
        assert (await (await manager.get_or_create_session("x")).runtime.execute("1")).result == "1"
