# SPDX-License-Identifier: Apache-2.0
"""test_executor_async.py - AsyncSandboxExecutor: the same from asyncio, and tasks that are cancelled."""

from __future__ import annotations

import asyncio
import inspect
import time

import pytest
from process import wait_until

from caisson.errors import CaissonError, SandboxUnavailable
from caisson.executor import CodeFailed, SandboxExecutor
from caisson.executor_async import AsyncSandboxExecutor


def names(daemon):
    return [s["name"] for s in daemon.get("/v1/sandboxes").json["sandboxes"]]


async def test_the_same(url, daemon):
    async with AsyncSandboxExecutor(url=url) as a, AsyncSandboxExecutor(url=url) as b:
        await asyncio.gather(a.send_variables({"x": 1}), b.send_variables({"x": 2}))
        assert await asyncio.gather(a("x + 1"), b("x + 1"), a("x + 2")) == [2, 3, 3]
        run = await a.run("print('hi'); 1 / 0")
        assert run.stdout == "hi\n" and run.error.name == "ZeroDivisionError"
        with pytest.raises(CodeFailed):
            await a("1 / 0")
        await a.upload("f", b"x")
        assert await a.download("f") == b"x" and await a.get("x") == 1 and "hi" in await a.tail_server_logs()
        await a.reconnect()
        assert await a("x") == 1
        await a.restart()
        with pytest.raises(CodeFailed, match="NameError"):
            await a("x")
        assert len(names(daemon)) == 2
    assert names(daemon) == []
    with pytest.raises(CaissonError, match="async with"):
        await a("1")
    await a.cleanup()


async def test_a_task_that_is_cancelled_interrupts_its_code(url, daemon):
    async with AsyncSandboxExecutor(url=url) as e:
        await e("kept = 1")
        task = asyncio.ensure_future(e("import time\nprint('begun', flush=True)\ntime.sleep(60)"))
        assert await asyncio.get_running_loop().run_in_executor(None, wait_until, lambda: "begun" in e.sync.tail_server_logs())
        waits = asyncio.ensure_future(e("never = 1"))
        await asyncio.sleep(0)
        waits.cancel()
        task.cancel()
        began = time.monotonic()
        results = await asyncio.gather(task, waits, return_exceptions=True)
        assert [type(r) for r in results] == [asyncio.CancelledError] * 2 and time.monotonic() - began < 30
        assert await e("[kept, 'never' in globals()]") == [1, False]
    assert names(daemon) == []


async def test_nothing_is_left_of_a_cancelled_start(url, daemon):
    with pytest.raises(SandboxUnavailable):
        async with AsyncSandboxExecutor(url="http://127.0.0.1:9"):
            pass
    task = asyncio.ensure_future(AsyncSandboxExecutor(url=url).__aenter__())
    await asyncio.sleep(0)  # its first step is done, and the loop cannot have seen the answer yet
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await asyncio.get_running_loop().run_in_executor(None, wait_until, lambda: names(daemon) == [])


def test_it_has_all_methods():
    def public(cls):
        return {n for n, v in vars(cls).items() if inspect.isfunction(v) and not n.startswith("_")} - {"close"}

    assert public(AsyncSandboxExecutor) == public(SandboxExecutor)
