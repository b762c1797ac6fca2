# SPDX-License-Identifier: Apache-2.0
# Made from ../_async/workspaces.py by tools/unasync.py. Change it there.
"""workspaces.py - Directories that outlive sandboxes, and the changes of a sandbox in its copy of one."""

from __future__ import annotations

from typing import List, Mapping, Optional

from .._glue import given
from .._http import Transport
from .._wire import segment
from ..records import Changes, Workspace

BASE = "/v1/workspaces"


class Workspaces:
    """``client.workspaces``."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def create(
        self,
        name: str,
        *,
        quota_mib: Optional[int] = None,
        quota_files: Optional[int] = None,
        labels: Optional[Mapping[str, str]] = None,
    ) -> Workspace:
        """Make a workspace. The same call again returns the same workspace."""
        body = given(name=name, quota_mib=quota_mib, quota_files=quota_files, labels=dict(labels) if labels else None)
        return Workspace.from_json((self._transport.request("POST", BASE, json=body)).json())

    def get(self, name: str) -> Workspace:
        """A workspace, with its number of bytes and files."""
        return Workspace.from_json((self._transport.request("GET", f"{BASE}/{segment(name)}")).json())

    def list(self, labels: Optional[Mapping[str, str]] = None) -> List[Workspace]:
        """Your workspaces, by name; with labels, those that have all of them."""
        wanted = [f"{key}={value}" for key, value in (labels or {}).items()]
        found: List[Workspace] = []
        cursor: Optional[str] = None
        while True:
            query = given(label=wanted or None, cursor=cursor)
            answer = (self._transport.request("GET", BASE, query=query)).json()
            found += [Workspace.from_json(w) for w in answer["workspaces"]]
            cursor = answer.get("next_cursor")
            if cursor is None:
                return found

    def remove(self, name: str) -> None:
        """Remove a workspace with everything in it. Refused while sandboxes use it."""
        self._transport.request("DELETE", f"{BASE}/{segment(name)}")


class WorkspaceCopy:
    """``sandbox.workspace``: for a sandbox that has a copy of its workspace, which is the default."""

    def __init__(self, transport: Transport, base: str) -> None:
        self._transport, self._base = transport, base + "/workspace"

    def diff(self) -> Changes:
        """The changes so far."""
        return Changes.from_json((self._transport.request("GET", self._base + "/diff", timeout=None)).json())

    def commit(self) -> Changes:
        """Write all changes to the workspace, or none. Raises WorkspaceConflict if others have changed the same paths in the meantime."""
        return Changes.from_json((self._transport.request("POST", self._base + "/commit", json={}, timeout=None)).json())

    def discard(self) -> None:
        """Replace the copy with the present workspace; everything that runs in the sandbox ends."""
        self._transport.request("POST", self._base + "/discard", json={}, timeout=None)
