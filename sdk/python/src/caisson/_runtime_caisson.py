# SPDX-License-Identifier: Apache-2.0
"""_runtime_caisson.py - Sandboxes of a daemon of Caisson as runtimes of sessions."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import logging
import math
import os
import re
from typing import Any, AsyncIterator, Dict, List, Optional
from urllib.parse import quote

from ._async.client import AsyncCaisson
from ._glue import given
from ._http_async import AsyncTransport
from ._place import find_place
from ._runtime import Backend, ExecutionResult, FileReference, LocalFile, SandboxRuntime, check_allowed, file_reference, replacing
from ._wire import segment
from .errors import CaissonError, NotFound
from .session_config import REMOTE, SandboxConfig

log = logging.getLogger("caisson.sessions")
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
PIECE = 1 << 20


def sandbox_name(session_id: str) -> str:
    """The id itself if it is a valid name of a sandbox; otherwise a name that only this id has."""
    if NAME.fullmatch(session_id):
        return session_id
    return "session-" + hashlib.sha256(session_id.encode("utf-8", "surrogatepass")).hexdigest()[:40]


class CaissonBackend(Backend):
    """A daemon: of this machine, started for this process, or elsewhere."""

    def __init__(self, config: SandboxConfig) -> None:
        find_place(config.url, token=config.token)  # reports a wrong address or token now
        self._config = config
        self._client: Optional[AsyncCaisson] = None

    async def runtime(self, session_id: str) -> SandboxRuntime:
        if self._client is None:
            place: Dict[str, Any] = {"url": self._config.url, "token": self._config.token}
            self._client = AsyncCaisson(**place) if self._config.runtime in REMOTE else await AsyncCaisson.local(**place)
        return CaissonRuntime(sandbox_name(session_id), self._config, self._client.transport)

    async def close(self) -> None:
        if self._client is not None:
            await self._client.aclose()


class CaissonRuntime(SandboxRuntime):
    """A sandbox of a daemon."""

    def __init__(self, name: str, config: SandboxConfig, transport: AsyncTransport) -> None:
        self.name, self._config, self._transport = name, config, transport
        self._told_of_s3 = False

    def _path(self, more: str = "") -> str:
        return "/v1/sandboxes/" + segment(self.name) + more

    async def start(self) -> None:
        spec = given(
            name=self.name,
            idle_seconds=math.ceil(self._config.idle_timeout + self._config.reaper_interval),
            labels={"made-by": "caisson.sessions"},
            image=self._config.docker_image,
            memory_mib=self._config.memory_mib,
            cpus=self._config.cpus,
            pids=self._config.pids,
        )
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

    async def upload(self, local_path: LocalFile, remote_path: str) -> None:
        size = os.stat(local_path).st_size
        query = {"path": remote_path, "parents": True}
        await self._transport.request("PUT", self._path("/files"), query=query, content=_pieces(local_path), length=size, timeout=300)

    async def download(self, remote_path: str, local_path: LocalFile) -> None:
        """Download a file. An old file at local_path stays until the new content is complete."""
        with replacing(local_path) as f:
            async with await self._transport.open("GET", self._path("/files"), query={"path": remote_path}, timeout=300) as body:
                async for piece in body:
                    await asyncio.get_running_loop().run_in_executor(None, f.write, piece)

    async def install_package(self, package_name: str) -> None:
        check_allowed(self._config, package_name)
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
        where = os.path.normpath(os.path.join(directory, entry["name"]))
        return file_reference(entry["name"], where, entry["type"], entry.get("size"), self._path("/files") + "?path=" + quote(where))

    async def terminate(self) -> None:
        with contextlib.suppress(NotFound):
            await self._transport.request("DELETE", self._path(), timeout=60)


async def _pieces(path: LocalFile) -> AsyncIterator[bytes]:
    loop = asyncio.get_running_loop()
    with open(path, "rb") as f:
        while True:
            piece = await loop.run_in_executor(None, f.read, PIECE)
            if not piece:
                return
            yield piece
