# SPDX-License-Identifier: Apache-2.0
"""conftest.py - The daemons of tests/serve, and clients for them.

The library is the one that is installed where the tests run, never the source beside them. A socket, a task or a process that is
not cleaned up is a failure: ResourceWarning is an error, also where it comes out of a destructor.
"""
import asyncio
import gc
import importlib.util
import inspect
import sys
from pathlib import Path

import pytest

SERVE = Path(__file__).resolve().parents[3] / "tests" / "serve"
sys.path[:0] = [str(SERVE.parent / "lib"), str(SERVE), str(SERVE.parent / "integ")]


def _load(name, path):
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


_serve = _load("serve_conftest", SERVE / "conftest.py")
globals().update({k: v for k, v in vars(_serve).items() if k.startswith("pytest_") or k in ("deadline", "shared_daemon", "daemon", "serve", "short_dir")})

import caisson  # noqa: E402


def pytest_configure(config):
    config.pluginmanager.register(_load("suites_conftest", SERVE.parent / "conftest.py"))
    for what in ("ResourceWarning", "pytest.PytestUnraisableExceptionWarning"):
        config.addinivalue_line("filterwarnings", "error::" + what)


def pytest_collection_finish():
    """Freeze the objects that exist by now: they cannot leak, and the search for leaks after each test then costs a tenth."""
    gc.collect()
    gc.freeze()


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem):
    """Run a test that is a coroutine in an event loop of its own."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    args = {name: pyfuncitem.funcargs[name] for name in pyfuncitem._fixtureinfo.argnames}
    asyncio.run(pyfuncitem.obj(**args))
    return True


@pytest.fixture(autouse=True)
def nothing_leaks():
    """Collect garbage while the test still runs, so that unreferenced resources warn there."""
    yield
    gc.collect()


@pytest.fixture
def url(daemon):
    return "http://127.0.0.1:%d" % daemon.port


@pytest.fixture
def client(url):
    with caisson.Caisson(url) as c:
        yield c
        for name in c.list():
            c.remove(name)


@pytest.fixture
def box(client):
    with client.create() as sandbox:
        yield sandbox
