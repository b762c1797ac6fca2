# SPDX-License-Identifier: Apache-2.0
"""files.py - Files of a sandbox. Paths are relative to /workspace unless they are absolute."""

from __future__ import annotations

import json
import os
import tempfile
import uuid
from pathlib import Path
from typing import Any, AsyncIterator, BinaryIO, List, Mapping, Optional, Union

from .._archive import pack, unpack
from .._glue import as_bytes, given, pieces, size_left, to_event
from .._http_async import AsyncBody, AsyncContent, AsyncTransport
from .._wire import EventDecoder
from ..errors import NoSuchFile
from ..records import FileEvent, FileInfo

PAGE = 10000  # entries of one answer
LocalPath = Union[str, "os.PathLike[str]"]


class AsyncFiles:
    """``sandbox.files``."""

    def __init__(self, transport: AsyncTransport, base: str) -> None:
        self._transport, self._base = transport, base + "/files"

    # -- content --

    async def read(self, path: str) -> bytes:
        """The whole content of a file."""
        return (await self._transport.request("GET", self._base, query={"path": path}, timeout=None)).body

    async def read_text(self, path: str, encoding: str = "utf-8") -> str:
        return (await self.read(path)).decode(encoding)

    async def open(self, path: str, *, offset: int = 0) -> AsyncBody:
        """A file as pieces of bytes, from an offset on: iterate over it. Use it as a context manager, or close() it."""
        headers = {"Range": f"bytes={offset}-"} if offset else None
        return await self._transport.open("GET", self._base, query={"path": path}, headers=headers)

    async def write(
        self,
        path: str,
        data: Union[str, AsyncContent],
        *,
        mode: Optional[str] = None,
        parents: bool = False,
        length: Optional[int] = None,
    ) -> FileInfo:
        """Make or replace a file, in one step. data is text, bytes, or pieces of bytes; mode is octal, as in "755"."""
        if isinstance(data, (str, bytes, bytearray, memoryview)):
            data = as_bytes(data)
        query = given(path=path, mode=mode, parents=parents or None)
        answer = await self._transport.request("PUT", self._base, query=query, content=data, length=length, timeout=None)
        return FileInfo.from_json(answer.json())

    async def upload(self, local: LocalPath, path: str, *, mode: Optional[str] = None, parents: bool = True) -> FileInfo:
        """Copy a file of this machine into the sandbox."""
        with open(local, "rb") as f:
            return await self.write(path, pieces(f), mode=mode, parents=parents, length=size_left(f))

    async def download(self, path: str, local: LocalPath) -> int:
        """Copy a file of the sandbox to this machine: whole, or not at all. Returns its size."""
        where = Path(local)
        async with await self.open(path) as body:
            part = where.with_name(f".caisson-{uuid.uuid4().hex}")
            try:
                with open(part, "xb") as f:
                    async for piece in body:
                        f.write(piece)
                    size = f.tell()
                os.replace(part, where)
            except BaseException:
                part.unlink()
                raise
        return size

    # -- names --

    async def list(
        self, path: str = ".", *, recursive: bool = False, depth: Optional[int] = None, limit: Optional[int] = None
    ) -> List[FileInfo]:
        """The entries of a directory, by name: all of them, or the first `limit`."""
        found: List[FileInfo] = []
        where: Optional[str] = self._base + "/list"
        most = PAGE if limit is None else min(limit, PAGE)
        query: Optional[Mapping[str, Any]] = given(path=path, recursive=recursive or None, depth=depth, limit=most)
        while where and (limit is None or len(found) < limit):
            answer = (await self._transport.request("GET", where, query=query)).json()
            found += [FileInfo.from_json(entry) for entry in answer["entries"]]
            where, query = answer.get("next"), None
        return found[:limit]

    async def stat(self, path: str, *, follow: bool = True) -> FileInfo:
        """The properties of a name; with follow=False, those of a link itself."""
        query = given(path=path, follow=None if follow else False)
        return FileInfo.from_json((await self._transport.request("GET", self._base + "/stat", query=query)).json())

    async def exists(self, path: str) -> bool:
        try:
            await self.stat(path)
        except NoSuchFile:
            return False
        return True

    async def move(self, source: str, to: str, *, overwrite: bool = False, parents: bool = False) -> None:
        """Rename a file or directory, in one step or not at all. ``to`` is the new name, never a directory to move it into."""
        body = {"from": source, "to": to, "overwrite": overwrite, "parents": parents}
        await self._transport.request("POST", self._base + "/move", json=body)

    async def delete(self, path: str, *, recursive: bool = False) -> None:
        """Delete a file, a link itself, or an empty directory; with recursive, a directory with everything in it."""
        query = given(path=path, recursive=recursive or None)
        await self._transport.request("DELETE", self._base, query=query)

    async def mkdir(self, path: str, *, parents: bool = False, mode: Optional[str] = None) -> FileInfo:
        body = given(path=path, parents=parents or None, mode=mode)
        return FileInfo.from_json((await self._transport.request("POST", self._base + "/mkdir", json=body)).json())

    # -- whole directories --

    async def tar(self, path: str = ".") -> AsyncBody:
        """A directory as a tar archive, as pieces of bytes. Use it as a context manager, or close() it."""
        return await self._transport.open("GET", self._base + "/tar", query={"path": path})

    async def untar(self, data: AsyncContent, path: str = ".", *, parents: bool = True, length: Optional[int] = None) -> int:
        """Unpack an uncompressed tar archive into a directory. Returns the number of its entries."""
        query = given(path=path, parents=parents or None)
        headers = {"Content-Type": "application/x-tar"}
        answer = await self._transport.request(
            "PUT", self._base + "/tar", query=query, content=data, length=length, headers=headers, timeout=None
        )
        return int(answer.json()["entries"])

    async def upload_dir(self, local: LocalPath, path: str = ".", *, parents: bool = True) -> int:
        """Copy a directory of this machine with everything in it. Returns the number of its entries."""
        with tempfile.TemporaryFile() as f:
            pack(local, f)
            f.seek(0)
            return await self.untar(pieces(f), path, parents=parents, length=size_left(f))

    async def download_dir(self, path: str, local: LocalPath) -> List[str]:
        """Copy a directory of the sandbox into a directory of this machine, which is made. Only files and directories: returns
        the names that were left out. Writes nothing outside of that directory, whatever the archive contains."""
        with tempfile.TemporaryFile() as f:
            await self._fetch(path, f)
            f.seek(0)
            return unpack(f, local)

    async def _fetch(self, path: str, f: BinaryIO) -> None:
        async with await self.tar(path) as body:
            async for piece in body:
                f.write(piece)

    # -- events --

    async def watch(self, path: str = ".", *, recursive: bool = False) -> AsyncWatch:
        """Events of a directory from now on: iterate over them. The watch is a context manager, and ends when it is left."""
        query = given(path=path, recursive=recursive or None)
        return AsyncWatch(await self._transport.open("GET", self._base + "/watch", query=query, timeout=45.0))


class AsyncWatch:
    """Events of a directory, until the watch is closed or the directory is removed."""

    def __init__(self, body: AsyncBody) -> None:
        self._body = body
        self._decoder = EventDecoder()
        self._ready: List[FileEvent] = []

    def __aiter__(self) -> AsyncIterator[FileEvent]:
        return self

    async def __anext__(self) -> FileEvent:
        while not self._ready:
            for one in self._decoder.feed(await self._body.__anext__()):
                event = to_event(one.event, json.loads(one.data), one.id)
                self._ready.append(FileEvent(event.type, str(event.data.get("path", "")), event.data))
        return self._ready.pop(0)

    async def aclose(self) -> None:
        self._body.close()

    async def __aenter__(self) -> AsyncWatch:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()
