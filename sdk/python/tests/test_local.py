# SPDX-License-Identifier: Apache-2.0
"""test_local.py - A daemon that is started on demand, and never left behind; and the content of the package."""
import asyncio
import importlib.metadata
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from process import BIN, alive, wait_until

import caisson
from caisson._local import LocalDaemon, find_binary

THREE_LINES = """
from caisson import Caisson
with Caisson.local() as c:
    print(c.run_python("print(6 * 7)").stdout, end="")
"""


@pytest.fixture
def nowhere(monkeypatch, short_dir):
    """No daemon runs here, and caisson is the tested one."""
    for name in ("CAISSON_URL", "CAISSON_SOCKET", "CAISSON_TOKEN", "CAISSON_TOKEN_FILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(caisson._place, "state_dir", lambda env: str(short_dir / "nothing"))
    monkeypatch.setenv("CAISSON_BIN", str(BIN))
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(short_dir))
    return short_dir


def family(pid):
    """All processes below it."""
    found = []
    for p in Path("/proc").glob("[0-9]*"):
        try:
            if p.joinpath("stat").read_text().rpartition(")")[2].split()[1] == str(pid):
                found += [int(p.name), *family(int(p.name))]
        except OSError:
            pass
    return found


def gone(pids):
    return not [p for p in pids if alive(p)]


def test_local(nowhere):
    with caisson.Caisson.local() as c, caisson.Caisson.local() as same:
        assert c.health()["status"] == "healthy", "local() returned before its daemon served"
        assert c.execute("6 * 7").text == "42"
        where = Path(c.transport.place.path).parent
        assert where.stat().st_mode & 0o777 == 0o700 and where.parent == nowhere
        assert same.transport.place.path == c.transport.place.path, "the daemon is not shared in one process"
        c.create("x")
        assert same.list() == ["x"]
        pids = family(c._daemon._lease.pid)
        assert len(pids) > 3
        c.close()
        assert same.list() == ["x"], "the daemon ended while a client used it"
    assert gone(pids) and not where.exists() and not LocalDaemon._all


@pytest.mark.slow
def test_local_async(nowhere):

    async def main():
        async with await caisson.AsyncCaisson.local() as c:
            return (await c.run_python("print(6 * 7)")).stdout, family(c._daemon._lease.pid)

    out, pids = asyncio.run(main())
    assert out == "42\n" and gone(pids) and not list(nowhere.glob("caisson-sdk-*"))


def test_one_that_runs_is_used(nowhere, daemon, monkeypatch):
    monkeypatch.setenv("CAISSON_URL", "http://127.0.0.1:%d" % daemon.port)
    with caisson.Caisson.local() as c:
        assert c.transport.place.port == daemon.port and c.health()["status"] == "healthy"
    monkeypatch.setenv("CAISSON_URL", "http://127.0.0.1:1")
    with pytest.raises(caisson.SandboxUnavailable):
        caisson.Caisson.local()
    assert not LocalDaemon._all, "a daemon was started although an address was given"


def environment(nowhere):
    return {"PATH": "/usr/bin:/bin", "CAISSON_BIN": str(BIN), "CAISSON_STATE": "", "XDG_RUNTIME_DIR": str(nowhere), "HOME": str(nowhere)}


@pytest.mark.slow
def test_three_lines(nowhere):
    r = subprocess.run([sys.executable, "-W", "error::ResourceWarning", "-c", THREE_LINES.replace("local()", "local(fresh=True)")],
                       env=environment(nowhere), capture_output=True, text=True, timeout=200)
    assert (r.returncode, r.stdout, r.stderr) == (0, "42\n", ""), r
    assert not list(nowhere.glob("caisson-sdk-*"))


@pytest.mark.parametrize("how", ["kill", *(pytest.param(h, marks=pytest.mark.slow) for h in ("kill between", "exit", "exception"))])
def test_nothing_is_left(nowhere, how):
    """However the program ends, without a message to the daemon."""
    code = "import os, sys\nfrom caisson import Caisson\nc = Caisson.local(fresh=True)\nc.create('x').processes.start('sleep', ['1000'])\nprint('up', flush=True)\n" \
           "sys.stdin.readline()\n" + {"exit": "", "kill": "os.kill(os.getpid(), 9)", "kill between": "os.kill(c._daemon._lease.pid, 9); c._daemon._lease.wait()", "exception": "raise KeyError"}[how]
    p = subprocess.Popen([sys.executable, "-c", code], env=environment(nowhere), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    try:
        assert p.stdout.readline() == b"up\n"
        pids = family(p.pid)
        assert len(pids) > 3 and list(nowhere.glob("caisson-sdk-*"))
        p.stdin.write(b"\n")
        p.stdin.close()
        p.wait(60)
        assert (p.returncode == -signal.SIGKILL) == (how == "kill")
        assert wait_until(lambda: gone(pids)), [p for p in pids if alive(p)]
        assert how == "kill between" or wait_until(lambda: not list(nowhere.glob("caisson-sdk-*")))
    finally:
        p.stdout.close()
        if p.poll() is None:
            p.kill()
            p.wait()


def test_daemon_that_does_not_start(nowhere):
    with pytest.raises(caisson.SandboxUnavailable, match="did not start: .*--nonsense") as e:
        caisson.Caisson.local(options=["--nonsense"])
    assert "doctor" in e.value.hint
    assert wait_until(lambda: not list(nowhere.glob("caisson-sdk-*"))) and not LocalDaemon._all


def test_binary(nowhere, tmp_path):
    assert find_binary(environ={"CAISSON_BIN": str(BIN), "PATH": ""}) == str(BIN)
    assert find_binary(environ={"PATH": str(BIN.parent)}) == str(BIN)
    with pytest.raises(caisson.SandboxUnavailable, match="CAISSON_BIN: .*nothing"):
        find_binary(environ={"CAISSON_BIN": str(tmp_path / "nothing"), "PATH": ""})


# ---- the package -----------------------------------------------------------------------------------------------------------------


def test_it_is_the_installed_one():
    where = Path(caisson.__file__)
    assert "site-packages" in where.parts and where.with_name("py.typed").exists()


def test_the_name_of_the_distribution():
    """The module is caisson; the name caisson on PyPI belongs to another project."""
    assert importlib.metadata.version("caisson-sandbox") == caisson.__version__
    with pytest.raises(importlib.metadata.PackageNotFoundError):
        importlib.metadata.version("caisson")


def test_an_installation_leaves_no_file_in_the_tree(tmp_path):
    source = tmp_path / "python"
    shutil.copytree(Path(__file__).resolve().parents[1], source, ignore=shutil.ignore_patterns("__pycache__"))
    before = sorted(source.rglob("*"))
    r = subprocess.run(["/usr/bin/python3", "-m", "pip", "install", "-q", "--no-deps", "--no-index", "--no-build-isolation", "--target", tmp_path / "there", source],
                       capture_output=True, text=True, timeout=120)
    assert r.returncode == 0 and (tmp_path / "there" / "caisson" / "py.typed").exists(), r
    assert sorted(source.rglob("*")) == before


def test_nothing_but_the_standard_library():
    """Not even packages in the environment of the tests."""
    code = "import sys\nsys.path = [p for p in sys.path if 'dist-packages' not in p]\nimport caisson\n" \
           "print([n for n, m in sys.modules.items() if '-packages' in (getattr(m, '__file__', None) or '') and n.split('.')[0] != 'caisson'])"
    r = subprocess.run([sys.executable, "-I", "-c", code], capture_output=True, text=True, timeout=60)
    assert r.stdout.strip() == "[]", r


def test_public_names():
    assert len(set(caisson.__all__)) == len(caisson.__all__)
    assert all(hasattr(caisson, name) for name in caisson.__all__)
    twins = [(caisson.AsyncCaisson, caisson.Caisson), (caisson.AsyncSandbox, caisson.Sandbox), (caisson.AsyncFiles, caisson.Files),
             (caisson.AsyncProcess, caisson.Process), (caisson.AsyncExecution, caisson.Execution)]
    for a, b in twins:
        public = {n for n in dir(a) if not n.startswith("_")} - {"aclose"}
        assert public <= {n for n in dir(b) if not n.startswith("_")}, a

