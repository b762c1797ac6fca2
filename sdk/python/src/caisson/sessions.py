# SPDX-License-Identifier: Apache-2.0
"""sessions.py - Warm sessions by name: SessionManager().get_or_create_session(id), and the operations of a session.

Theory of operation. A session is a sandbox whose name comes from the session's id, and a runtime that talks to it. The manager has one
runtime per id, however many tasks ask for it at once. Each request for a session makes sure that the sandbox exists: one that ended in
the meantime is made anew. A background task, the reaper, ends sessions that were idle for `idle_timeout`; the daemon does the same a
little later, for a manager that died before it could. shutdown() ends all sessions.

SandboxRuntime is the interface that a session needs. CaissonRuntime implements it with a daemon. The manager accepts another
implementation, and nothing else changes.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import logging
import math
import mimetypes
import os
import re
import tempfile
import time
import warnings
from abc import ABC, abstractmethod
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, AsyncIterator, Callable, Dict, List, Optional, Union
from urllib.parse import quote

from ._async.client import AsyncCaisson
from ._http_async import AsyncTransport
from ._place import find_place
from ._wire import segment
from .errors import CaissonError, ClientClosed, NotFound, PackageRefused
from .session_config import REMOTE, SandboxConfig, canonical

log = logging.getLogger("caisson.sessions")
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
PIECE = 1 << 20
_TYPES = mimetypes.MimeTypes()  # Python's built-in types only, without the files of this machine
for _type, _suffix in (
    ("application/vnd.apache.parquet", ".parquet"),
    ("text/markdown", ".md"),
    ("text/plain", ".log"),
    ("image/webp", ".webp"),
):
    _TYPES.add_type(_type, _suffix)


@dataclass(frozen=True)
class FileReference:
    """A file of a sandbox. url: the daemon's address of the file; a link for everybody if the daemon puts artifacts into a bucket.
    content_type: by the suffix of the name; entries other than files have `inode/directory` and the like, without size and url."""

    filename: str
    path: str
    content_type: Optional[str] = None
    size_bytes: Optional[int] = None
    url: Optional[str] = None


@dataclass(frozen=True)
class ExecutionResult:
    """How code ended, and the files that it made. status: ok, error, signal, timeout, limit or failed; hint: the remedy."""

    stdout: str
    stderr: str
    exit_code: int
    artifacts: List[FileReference] = field(default_factory=list)
    execution_duration: float = 0.0
    status: str = "ok"
    hint: Optional[str] = None
    result: Optional[str] = None  # the last expression, as text
    truncated: bool = False


class SandboxRuntime(ABC):
    """The interface between a session and the place where its code runs."""

    @abstractmethod
    async def start(self) -> None:
        """Make sure that the sandbox exists. May be called several times."""

    @abstractmethod
    async def execute(self, code: str, language: str = "python") -> ExecutionResult:
        """Run code; variables are kept."""

    @abstractmethod
    async def upload(self, local_path: Union[str, Path], remote_path: str) -> None:
        """Copy a file into the sandbox."""

    @abstractmethod
    async def download(self, remote_path: str, local_path: Union[str, Path]) -> None:
        """Copy a file out of the sandbox."""

    @abstractmethod
    async def install_package(self, package_name: str) -> None:
        """Install one package, for the code of this session."""

    @abstractmethod
    async def list_files(self, path: str = ".") -> List[FileReference]:
        """The entries of a directory: files, and directories (content_type `inode/directory`)."""

    @abstractmethod
    async def terminate(self) -> None:
        """End the sandbox, with everything in it. May be called several times."""


class CaissonRuntime(SandboxRuntime):
    """A sandbox of a daemon."""

    def __init__(self, name: str, config: SandboxConfig, transport: AsyncTransport) -> None:
        self.name, self._config, self._transport = name, config, transport
        self._told_of_s3 = False

    def _path(self, more: str = "") -> str:
        return "/v1/sandboxes/" + segment(self.name) + more

    async def start(self) -> None:
        spec: Dict[str, Any] = {
            "name": self.name,
            "idle_seconds": math.ceil(self._config.idle_timeout + self._config.reaper_interval),
            "labels": {"made-by": "caisson.sessions"},
        }
        if self._config.docker_image:
            spec["image"] = self._config.docker_image
        for _ in range(2):
            answer = (await self._transport.request("POST", "/v1/sandboxes", json=spec, timeout=120)).json()
            if answer.get("state") == "running":
                return
            await self.terminate()  # the name of an ended sandbox is still taken
        raise CaissonError(f"the sandbox {self.name} does not start: {answer.get('reason')}", code="sandbox_stopped")

    async def execute(self, code: str, language: str = "python") -> ExecutionResult:
        seconds = max(1, math.ceil(self._config.execution_timeout))
        body = {"code": code, "language": language.lower(), "timeout": seconds}
        said = (await self._transport.request("POST", self._path("/execute"), json=body, timeout=None)).json()
        text = (said.get("result") or {}).get("text/plain")
        error = said.get("error") or {}
        return ExecutionResult(
            stdout=said["stdout"],
            stderr=said["stderr"] + "".join(line + "\n" for line in error.get("traceback", ())),
            exit_code=said["exit_code"],
            artifacts=await self._artifacts(said["execution_id"]),
            execution_duration=said["execution_time"],
            status=said["status"],
            hint=said.get("hint"),
            result=text if isinstance(text, str) else None,
            truncated=said["truncated"],
        )

    async def _artifacts(self, execution: str) -> List[FileReference]:
        """Files that the execution made; none if the code has brought the sandbox down: how it ended matters more than its files."""
        query = {"execution_id": execution, "inline": False}
        try:
            said = (await self._transport.request("GET", self._path("/artifacts"), query=query)).json()
        except CaissonError as e:
            log.warning("the files of an execution in %s cannot be listed: %s", self.name, e)
            return []
        found = [
            FileReference(os.path.basename(a["path"]), a["path"], a.get("mime"), a.get("size"), a.get("link") or a.get("url"))
            for a in said["artifacts"]
        ]
        self._look_at_links(said["artifacts"])
        return found

    def _look_at_links(self, artifacts: List[Dict[str, Any]]) -> None:
        """Warn about files without links if a bucket is expected."""
        for a in artifacts:
            if a.get("link_error"):
                log.warning("%s of %s is not in the bucket: %s", a["path"], self.name, a["link_error"])
            elif self._config.s3_bucket and not a.get("link") and not self._told_of_s3:
                self._told_of_s3 = True
                log.warning("COREASON_SANDBOX_S3_BUCKET is set here, but the daemon has no bucket: configure the daemon")

    async def upload(self, local_path: Union[str, Path], remote_path: str) -> None:
        size = os.stat(local_path).st_size
        query = {"path": remote_path, "parents": True}
        await self._transport.request("PUT", self._path("/files"), query=query, content=_pieces(local_path), length=size, timeout=300)

    async def download(self, remote_path: str, local_path: Union[str, Path]) -> None:
        """Download a file. An old file at local_path stays until the new content is complete."""
        target = Path(local_path)
        fd, part = tempfile.mkstemp(prefix="." + target.name[:64] + ".", dir=str(target.parent))
        try:
            with os.fdopen(fd, "wb") as f:
                async with await self._transport.open("GET", self._path("/files"), query={"path": remote_path}, timeout=300) as body:
                    async for piece in body:
                        await asyncio.get_running_loop().run_in_executor(None, f.write, piece)
            os.replace(part, target)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(part)
            raise

    async def install_package(self, package_name: str) -> None:
        allowed = self._config.allowed_packages
        if allowed is not None and canonical(package_name) not in allowed:
            raise PackageRefused(
                f"{package_name} is not in COREASON_SANDBOX_ALLOWED_PACKAGES", code="package_not_allowed", field="package_name"
            )
        await self._transport.request("POST", self._path("/packages"), json={"packages": [package_name]}, timeout=None)

    async def list_files(self, path: str = ".") -> List[FileReference]:
        found: List[FileReference] = []
        where: Optional[str] = self._path("/files/list")
        query: Optional[Dict[str, Any]] = {"path": path, "limit": 10000}
        while where:
            said = (await self._transport.request("GET", where, query=query)).json()
            found += [self._reference(path, e) for e in said["entries"]]
            where, query = said.get("next"), None
        return found

    def _reference(self, directory: str, entry: Dict[str, Any]) -> FileReference:
        name = entry["name"]
        where = os.path.normpath(os.path.join(directory, name))
        if entry["type"] != "file":
            return FileReference(name, where, "inode/" + entry["type"])
        kind = _TYPES.guess_type(name)[0] or "application/octet-stream"
        return FileReference(name, where, kind, entry["size"], self._path("/files") + "?path=" + quote(where))

    async def terminate(self) -> None:
        with contextlib.suppress(NotFound):
            await self._transport.request("DELETE", self._path(), timeout=60)


async def _pieces(path: Union[str, Path]) -> AsyncIterator[bytes]:
    loop = asyncio.get_running_loop()
    with open(path, "rb") as f:
        while True:
            piece = await loop.run_in_executor(None, f.read, PIECE)
            if not piece:
                return
            yield piece


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

    async def upload(self, local_path: Union[str, Path], remote_path: str) -> None:
        async with self._use("upload", path=remote_path):
            await self._inner.upload(local_path, remote_path)

    async def download(self, remote_path: str, local_path: Union[str, Path]) -> None:
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


def sandbox_name(session_id: str) -> str:
    """The id itself if it is a valid name of a sandbox; otherwise a name that only this id has."""
    if NAME.fullmatch(session_id):
        return session_id
    return "session-" + hashlib.sha256(session_id.encode("utf-8", "surrogatepass")).hexdigest()[:40]


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
        find_place(self.config.url, token=self.config.token)  # reports a wrong address or token now
        self._client: Optional[AsyncCaisson] = None
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
            if self._client is None:
                place: Dict[str, Any] = {"url": self.config.url, "token": self.config.token}
                remote = self.config.runtime in REMOTE
                self._client = AsyncCaisson(**place) if remote else await AsyncCaisson.local(**place)
            return CaissonRuntime(sandbox_name(session_id), self.config, self._client.transport)

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
            if self._client is not None:
                await self._client.aclose()
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
