# SPDX-License-Identifier: Apache-2.0
"""workspaces.py - Directories that outlive sandboxes, and the changes of a sandbox in its copy of one."""

from __future__ import annotations

from typing import List, Mapping, Optional

from .._glue import given
from .._http_async import AsyncTransport
from .._wire import segment
from ..records import Changes, Workspace

BASE = "/v1/workspaces"


class AsyncWorkspaces:
    """``client.workspaces``."""

    def __init__(self, transport: AsyncTransport) -> None:
        self._transport = transport

    async def create(
        self,
        name: str,
        *,
        quota_mib: Optional[int] = None,
        quota_files: Optional[int] = None,
        labels: Optional[Mapping[str, str]] = None,
    ) -> Workspace:
        """Make a workspace. The same call again returns the same workspace."""
        body = given(name=name, quota_mib=quota_mib, quota_files=quota_files, labels=dict(labels) if labels else None)
        return Workspace.from_json((await self._transport.request("POST", BASE, json=body)).json())

    async def get(self, name: str) -> Workspace:
        """A workspace, with its number of bytes and files."""
        return Workspace.from_json((await self._transport.request("GET", f"{BASE}/{segment(name)}")).json())

    async def list(self, labels: Optional[Mapping[str, str]] = None) -> List[Workspace]:
        """Your workspaces, by name; with labels, those that have all of them."""
        wanted = [f"{key}={value}" for key, value in (labels or {}).items()]
        found: List[Workspace] = []
        cursor: Optional[str] = None
        while True:
            query = given(label=wanted or None, cursor=cursor)
            answer = (await self._transport.request("GET", BASE, query=query)).json()
            found += [Workspace.from_json(w) for w in answer["workspaces"]]
            cursor = answer.get("next_cursor")
            if cursor is None:
                return found

    async def remove(self, name: str) -> None:
        """Remove a workspace with everything in it. Refused while sandboxes use it."""
        await self._transport.request("DELETE", f"{BASE}/{segment(name)}")


class AsyncWorkspaceCopy:
    """``sandbox.workspace``: for a sandbox that has a copy of its workspace, which is the default."""

    def __init__(self, transport: AsyncTransport, base: str) -> None:
        self._transport, self._base = transport, base + "/workspace"

    async def diff(self) -> Changes:
        """The changes so far."""
        return Changes.from_json((await self._transport.request("GET", self._base + "/diff", timeout=None)).json())

    async def commit(self) -> Changes:
        """Write all changes to the workspace, or none. Raises WorkspaceConflict if others have changed the same paths in the meantime."""
        return Changes.from_json((await self._transport.request("POST", self._base + "/commit", json={}, timeout=None)).json())

    async def discard(self) -> None:
        """Replace the copy with the present workspace; everything that runs in the sandbox ends."""
        await self._transport.request("POST", self._base + "/discard", json={}, timeout=None)
