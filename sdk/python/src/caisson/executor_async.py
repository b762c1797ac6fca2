# SPDX-License-Identifier: Apache-2.0
"""executor_async.py - SandboxExecutor for asyncio: the same methods, as coroutines.

Each executor has one thread of its own, in which the blocking executor does all of its work, one call after another. Cancelling a task
interrupts its code; the cancellation completes when the code has ended. Code that does not end loses its interpreter.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import functools
from typing import Any, Callable, List, Mapping, Optional, Sequence, TypeVar

from ._jupyter import GRACE_SECONDS
from .errors import CaissonError
from .executor import Run, SandboxExecutor

T = TypeVar("T")


class AsyncSandboxExecutor:
    """A context: `async with AsyncSandboxExecutor(...) as executor`. Takes the arguments of SandboxExecutor."""

    def __init__(self, packages: Sequence[str] = (), **options: Any) -> None:
        self._make = functools.partial(SandboxExecutor, packages, **options)
        self._pool = concurrent.futures.ThreadPoolExecutor(1, "caisson-executor")
        self._executor: Optional[SandboxExecutor] = None

    async def __aenter__(self) -> AsyncSandboxExecutor:
        work = self._pool.submit(self._make)
        try:
            made = await asyncio.shield(asyncio.wrap_future(work))
        except BaseException:
            work.add_done_callback(_clean_up)  # the task was cancelled in the meantime
            self._pool.shutdown(wait=False)
            raise
        self._executor = made
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.cleanup()

    @property
    def sync(self) -> SandboxExecutor:
        """The executor itself: its name, its limits, installed_packages."""
        if self._executor is None:
            raise CaissonError("this executor is only usable inside its `async with`", code="client_closed")
        return self._executor

    async def _call(self, function: Callable[..., T], *args: Any, **options: Any) -> T:
        work = self._pool.submit(functools.partial(function, *args, **options))
        future = asyncio.wrap_future(work)
        try:
            return await asyncio.shield(future)
        except asyncio.CancelledError:
            if not work.cancel():  # it runs already
                await self._stop(future)
            raise

    async def _stop(self, future: asyncio.Future[T]) -> None:
        loop = asyncio.get_running_loop()
        for measure in (self.sync.interrupt, self.sync.restart):
            await asyncio.wait([loop.run_in_executor(None, measure)])
            if (await asyncio.wait([future], timeout=GRACE_SECONDS))[0]:
                break
        if future.done() and not future.cancelled():
            future.exception()  # read it, so that asyncio does not report it: no task waits for it any more

    async def run(self, code: str, **options: Any) -> Run:
        return await self._call(self.sync.run, code, **options)

    async def __call__(self, code: str, **options: Any) -> Any:
        return await self._call(self.sync, code, **options)

    async def get(self, name: str, **options: Any) -> Any:
        return await self._call(self.sync.get, name, **options)

    async def send_variables(self, variables: Mapping[str, Any]) -> None:
        await self._call(self.sync.send_variables, variables)

    async def install_packages(self, packages: Sequence[str]) -> List[str]:
        return await self._call(self.sync.install_packages, packages)

    async def upload(self, path: str, content: bytes) -> None:
        await self._call(self.sync.upload, path, content)

    async def download(self, path: str) -> bytes:
        return await self._call(self.sync.download, path)

    async def tail_server_logs(self, lines: int = 100) -> str:
        return await self._call(self.sync.tail_server_logs, lines)

    async def restart(self) -> None:
        await self._call(self.sync.restart)

    async def reconnect(self) -> None:
        await self._call(self.sync.reconnect)

    async def interrupt(self) -> None:
        """Interrupt the code while another task waits for run()."""
        await asyncio.get_running_loop().run_in_executor(None, self.sync.interrupt)

    async def cleanup(self) -> None:
        """May be called several times."""
        executor, self._executor = self._executor, None
        if executor is not None:
            work = self._pool.submit(executor.cleanup)
            self._pool.shutdown(wait=False)
            await asyncio.shield(asyncio.wrap_future(work))


def _clean_up(work: concurrent.futures.Future[SandboxExecutor]) -> None:
    if not work.cancelled() and work.exception() is None:
        work.result().cleanup()
