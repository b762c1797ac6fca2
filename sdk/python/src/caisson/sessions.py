# SPDX-License-Identifier: Apache-2.0
"""sessions.py - Warm sessions by name: SessionManager().get_or_create_session(id), and the operations of a session.

Theory of operation. A session is a sandbox, and a runtime that talks to it. The manager has one runtime per id, however many tasks ask
for it at once. Each request for a session makes sure that the sandbox exists: one that ended in the meantime is made anew. A background
task, the reaper, ends sessions that were idle for `idle_timeout`. Sandboxes end too if a manager dies before it could end them: a daemon
of Caisson ends idle ones a little later, and _runtime_docker.py describes the end of containers. shutdown() ends all sessions.

SandboxRuntime is the interface that a session needs (_runtime.py); the configuration selects one of its implementations. The manager
accepts another one, and nothing else changes.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import logging
import time
import warnings
from dataclasses import asdict, dataclass, field
from typing import Any, AsyncIterator, Callable, Dict, List, Optional

from ._runtime import Backend, ExecutionResult, FileReference, LocalFile, SandboxRuntime
from ._runtime_caisson import CaissonBackend, CaissonRuntime, sandbox_name
from ._runtime_docker import DockerBackend, DockerRuntime
from .errors import CaissonError, ClientClosed
from .session_config import DOCKER, SandboxConfig

__all__ = [
    "CaissonRuntime",
    "DockerRuntime",
    "ExecutionResult",
    "FileReference",
    "SandboxConfig",
    "SandboxMCP",
    "SandboxRuntime",
    "Session",
    "SessionManager",
    "sandbox_name",
]

log = logging.getLogger("caisson.sessions")


class _Noted(SandboxRuntime):
    """A runtime that records its use: the time, whether a call is in progress, and a line in the log."""

    def __init__(self, inner: SandboxRuntime, session_id: str, audit: bool) -> None:
        self._inner, self._id, self._audit = inner, session_id, audit
        self.last_used = time.monotonic()
        self.busy = 0

    @contextlib.asynccontextmanager
    async def _use(self, event: str, **about: Any) -> AsyncIterator[Dict[str, Any]]:
        began = time.monotonic()
        self.busy += 1
        try:
            yield about
        except BaseException as e:
            about["failed"] = type(e).__name__
            raise
        finally:
            self.busy -= 1
            self.last_used = time.monotonic()
            if self._audit:
                about.update(session_id=self._id, seconds=round(self.last_used - began, 6))
                log.info("%s %s", event, " ".join("%s=%s" % pair for pair in about.items()), extra={"caisson": {"event": event, **about}})

    async def start(self) -> None:
        async with self._use("start"):
            await self._inner.start()

    async def execute(self, code: str, language: str = "python") -> ExecutionResult:
        async with self._use(
            "execute", language=language, code_sha256=hashlib.sha256(code.encode("utf-8", "surrogatepass")).hexdigest()
        ) as about:
            result = await self._inner.execute(code, language)
            about["exit_code"] = result.exit_code
            return result

    async def upload(self, local_path: LocalFile, remote_path: str) -> None:
        async with self._use("upload", path=remote_path):
            await self._inner.upload(local_path, remote_path)

    async def download(self, remote_path: str, local_path: LocalFile) -> None:
        async with self._use("download", path=remote_path):
            await self._inner.download(remote_path, local_path)

    async def install_package(self, package_name: str) -> None:
        async with self._use("install_package", package=package_name):
            await self._inner.install_package(package_name)

    async def list_files(self, path: str = ".") -> List[FileReference]:
        async with self._use("list_files", path=path):
            return await self._inner.list_files(path)

    async def terminate(self) -> None:
        async with self._use("terminate"):
            await self._inner.terminate()


@dataclass
class Session:
    """One session. Its code runs in `runtime`."""

    session_id: str
    runtime: SandboxRuntime
    created_at: float = field(default_factory=time.time)


class _Turn:
    """A lock, and the number of tasks that hold it or wait for it: the manager forgets it when the number is 0."""

    def __init__(self) -> None:
        self.lock = asyncio.Lock()
        self.users = 0


RuntimeFactory = Callable[[str, SandboxConfig], SandboxRuntime]


class SessionManager:
    """Sessions by id, for the tasks of one event loop."""

    def __init__(self, config: Optional[SandboxConfig] = None, *, runtime_factory: Optional[RuntimeFactory] = None) -> None:
        """Raises Misconfigured, with the variable's name, if the environment is invalid. Starts nothing."""
        self.config = SandboxConfig.from_env() if config is None else config
        self._backend: Backend = DockerBackend(self.config) if self.config.runtime in DOCKER else CaissonBackend(self.config)
        self._connecting: Optional[asyncio.Lock] = None  # a lock belongs to a loop, and no loop may run yet
        self._factory = runtime_factory
        self._sessions: Dict[str, Session] = {}
        self._turns: Dict[str, _Turn] = {}
        self._reaper: Optional[asyncio.Task[None]] = None
        self._closed = False

    async def _runtime(self, session_id: str) -> SandboxRuntime:
        if self._factory is not None:
            return self._factory(session_id, self.config)
        self._connecting = self._connecting or asyncio.Lock()
        async with self._connecting:
            return await self._backend.runtime(session_id)

    @contextlib.asynccontextmanager
    async def _turn(self, session_id: str) -> AsyncIterator[None]:
        """Run the operations on one id one after another."""
        turn = self._turns.setdefault(session_id, _Turn())
        turn.users += 1
        try:
            async with turn.lock:
                yield
        finally:
            turn.users -= 1
            if not turn.users:
                del self._turns[session_id]

    async def get_or_create_session(self, session_id: str) -> Session:
        """The running session of this id. A new one is made if the id is unknown, or if the old session has ended."""
        if not session_id:
            raise ValueError("session_id is empty")
        async with self._turn(session_id):
            if self._closed:
                raise ClientClosed("this session manager was shut down")
            if self._reaper is None:
                self._reaper = asyncio.get_running_loop().create_task(self._reap())
            session = self._sessions.get(session_id)
            if session is None:
                session = Session(session_id, _Noted(await self._runtime(session_id), session_id, self.config.enable_audit_logging))
            await session.runtime.start()
            self._sessions[session_id] = session
            return session

    async def end_session(self, session_id: str) -> None:
        """End one session, if there is one."""
        async with self._turn(session_id):
            session = self._sessions.pop(session_id, None)
            if session:
                await session.runtime.terminate()

    async def _reap(self) -> None:
        while True:
            await asyncio.sleep(self.config.reaper_interval)
            for session_id, session in list(self._sessions.items()):
                noted = session.runtime
                idle = isinstance(noted, _Noted) and not noted.busy and time.monotonic() - noted.last_used > self.config.idle_timeout
                if idle:
                    try:
                        await self.end_session(session_id)
                    except CaissonError as e:
                        log.warning("the idle session %s could not be ended: %s", session_id, e)
            try:
                await self._backend.reap()
            except CaissonError as e:
                log.warning("sandboxes of dead programs could not be removed: %s", e)

    async def shutdown(self) -> None:
        """End all sessions. Tries all of them, then raises the first error. May be called several times."""
        self._closed = True
        if self._reaper is not None:
            self._reaper.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._reaper
            self._reaper = None
        try:
            ended = await asyncio.gather(*map(self.end_session, list(self._sessions)), return_exceptions=True)
        finally:
            await self._backend.close()
        for error in ended:
            if isinstance(error, BaseException):
                raise error

    async def __aenter__(self) -> SessionManager:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.shutdown()

    def __del__(self, _warn: Callable[..., None] = warnings.warn) -> None:
        if getattr(self, "_sessions", None):
            _warn("a SessionManager with %d sessions was not shut down" % len(self._sessions), ResourceWarning, source=self)


class SandboxMCP:
    """Sessions as the tools of an MCP server: tools return plain data."""

    def __init__(self, manager: Optional[SessionManager] = None) -> None:
        self.manager = manager or SessionManager()

    async def execute_code(self, session_id: str, language: str, code: str) -> Dict[str, Any]:
        session = await self.manager.get_or_create_session(session_id)
        return asdict(await session.runtime.execute(code, language))

    async def install_package(self, session_id: str, package_name: str) -> Dict[str, Any]:
        session = await self.manager.get_or_create_session(session_id)
        await session.runtime.install_package(package_name)
        return {"installed": package_name}

    async def list_files(self, session_id: str, path: str = ".") -> List[Dict[str, Any]]:
        session = await self.manager.get_or_create_session(session_id)
        return [asdict(f) for f in await session.runtime.list_files(path)]

    async def shutdown(self) -> None:
        await self.manager.shutdown()

    @contextlib.asynccontextmanager
    async def lifespan(self, server: Any = None) -> AsyncIterator[Dict[str, Any]]:
        """For FastMCP(lifespan=...): sessions end with the server."""
        try:
            yield {}
        finally:
            await self.shutdown()
