# SPDX-License-Identifier: Apache-2.0
"""workspaces.py - Directories that outlive sandboxes, and what a sandbox has changed in its copy of one."""

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
        """Make one. Asked for again it is the same one."""
        body = given(name=name, quota_mib=quota_mib, quota_files=quota_files, labels=dict(labels) if labels else None)
        return Workspace.from_json((await self._transport.request("POST", BASE, json=body)).json())

    async def get(self, name: str) -> Workspace:
        """With how much is in it."""
        return Workspace.from_json((await self._transport.request("GET", f"{BASE}/{segment(name)}")).json())

    async def list(self, labels: Optional[Mapping[str, str]] = None) -> List[Workspace]:
        """Yours, by name; with labels those that have all of them."""
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
        """With everything in it. Not while sandboxes use it."""
        await self._transport.request("DELETE", f"{BASE}/{segment(name)}")


class AsyncWorkspaceCopy:
    """``sandbox.workspace``: of a sandbox that works on a copy of its workspace, which is the default."""

    def __init__(self, transport: AsyncTransport, base: str) -> None:
        self._transport, self._base = transport, base + "/workspace"

    async def diff(self) -> Changes:
        """What it has changed so far."""
        return Changes.from_json((await self._transport.request("GET", self._base + "/diff", timeout=None)).json())

    async def commit(self) -> Changes:
        """The workspace gets all of it or nothing. WorkspaceConflict where others have changed the same paths meanwhile."""
        return Changes.from_json((await self._transport.request("POST", self._base + "/commit", json={}, timeout=None)).json())

    async def discard(self) -> None:
        """It begins anew, with the workspace as that is now; what runs in it ends."""
        await self._transport.request("POST", self._base + "/discard", json={}, timeout=None)
