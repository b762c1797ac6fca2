# SPDX-License-Identifier: Apache-2.0
"""abstract.py - The interfaces that an agent's code depends on: a client of sandboxes, and a handle of one sandbox.

Code that is written against these classes runs unchanged with :class:`~caisson.AsyncCaisson`, with a fake in a test, or with
another runtime. run_python() and run_shell() are written in terms of the other methods; a client that can do better overrides them.
"""

from __future__ import annotations

import contextlib
import uuid
from abc import ABC, abstractmethod
from typing import Any, List, Sequence

from .types import DEFAULT_IMAGE, ExecResult, SandboxSpec


class SandboxHandle(ABC):
    """A running sandbox."""

    name: str

    @abstractmethod
    async def exec(self, cmd: str, args: Sequence[str] | None = None, *, timeout: float | None = None) -> ExecResult:
        """Run a program with these arguments; no shell reads them."""

    @abstractmethod
    async def shell(self, script: str, *, timeout: float | None = None) -> ExecResult:
        """Run a shell script."""

    @abstractmethod
    async def stop(self) -> None:
        """End the sandbox, gracefully. Its name stays until the sandbox is removed."""

    @abstractmethod
    async def kill(self) -> None:
        """End the sandbox at once."""

    @abstractmethod
    async def logs(self, *, tail: int | None = None) -> str:
        """The recent output of the sandbox."""


class SandboxClient(ABC):
    """Makes sandboxes and finds them."""

    @abstractmethod
    async def create(self, spec: SandboxSpec) -> SandboxHandle: ...

    @abstractmethod
    async def get(self, name: str) -> SandboxHandle: ...

    @abstractmethod
    async def list(self) -> List[str]: ...

    @abstractmethod
    async def remove(self, name: str) -> None: ...

    async def run_python(self, code: str, *, image: str = DEFAULT_IMAGE, **kwargs: Any) -> ExecResult:
        """Run Python in a sandbox that is made for this call and removed after it. kwargs: fields of SandboxSpec."""
        spec = SandboxSpec(name=f"py-{uuid.uuid4().hex[:8]}", image=image, **kwargs)
        handle = await self.create(spec)
        try:
            return await handle.exec("python", ["-c", code])
        finally:
            await self._discard(handle)

    async def run_shell(self, script: str, *, image: str = DEFAULT_IMAGE, **kwargs: Any) -> ExecResult:
        """Run a shell script in a sandbox that is made for this call and removed after it."""
        spec = SandboxSpec(name=f"sh-{uuid.uuid4().hex[:8]}", image=image, **kwargs)
        handle = await self.create(spec)
        try:
            return await handle.shell(script)
        finally:
            await self._discard(handle)

    async def _discard(self, handle: SandboxHandle) -> None:
        """Stop the sandbox, and ignore errors: the result of the run matters more than a failed removal."""
        with contextlib.suppress(Exception):
            await handle.stop()
        with contextlib.suppress(Exception):
            await self.remove(handle.name)
