# SPDX-License-Identifier: Apache-2.0
"""records.py - Objects of a daemon and of a sandbox, as the daemon reports them. Frozen; ``raw`` has the whole answer."""

from __future__ import annotations

import base64
from dataclasses import dataclass, field
from typing import Any, Mapping

from .types import ExecResult, pick

Raw = Mapping[str, Any]


def _raw() -> Any:
    return field(default_factory=dict, repr=False, compare=False)


@dataclass(frozen=True)
class SandboxInfo:
    """A sandbox. ``receipt`` has the layers in force, read from the sandbox's processes; only get() and info() request it."""

    name: str
    state: str  # running, stopped or lost
    owner: str = ""
    reason: str | None = None
    busy: bool = False
    epoch: int = 0
    executions: int = 0
    queued: int = 0
    created_at: str = ""
    expires_at: str | None = None
    age_seconds: float = 0.0
    idle_seconds: float = 0.0
    spec: Raw = field(default_factory=dict)
    usage: Raw = field(default_factory=dict)
    receipt: Raw | None = None
    raw: Raw = _raw()

    @classmethod
    def from_json(cls, obj: Raw) -> SandboxInfo:
        return pick(cls, obj, raw=obj)


@dataclass(frozen=True)
class FileInfo:
    """An entry of a sandbox's file system. In a list ``name`` is relative to the directory."""

    type: str  # file, directory, symlink, fifo, socket, device or other
    size: int = 0
    mode: str = ""
    modified_at: str = ""
    uid: int = 0
    gid: int = 0
    path: str = ""
    name: str = ""
    target: str | None = None  # the target of a link
    raw: Raw = _raw()

    @property
    def is_file(self) -> bool:
        return self.type == "file"

    @property
    def is_dir(self) -> bool:
        return self.type == "directory"

    @classmethod
    def from_json(cls, obj: Raw) -> FileInfo:
        return pick(cls, obj, raw=obj)


@dataclass(frozen=True)
class FileEvent:
    """An event of a directory: created, modified, deleted, moved; overflow when some events were lost."""

    type: str
    path: str = ""
    raw: Raw = _raw()


@dataclass(frozen=True)
class ProcessInfo:
    """A process of a sandbox. ``exit_code`` is None while it runs."""

    process_id: str
    cmd: str
    state: str  # running or exited
    args: tuple[str, ...] = ()
    cwd: str = ""
    pty: bool = False
    pid: int = 0
    exit_code: int | None = None
    status: str | None = None
    cause: str | None = None
    hint: str | None = None
    signal: str | None = None
    started_at: str = ""
    ended_at: str | None = None
    stdout_bytes: int = 0
    stderr_bytes: int = 0
    truncated: bool = False
    raw: Raw = _raw()

    @property
    def running(self) -> bool:
        return self.state == "running"

    @classmethod
    def from_json(cls, obj: Raw) -> ProcessInfo:
        return pick(cls, obj, args=tuple(obj.get("args", ())), raw=obj)


@dataclass(frozen=True)
class Output:
    """A part of an output, by offset. ``complete``: no output follows after ``end`` once that is ``total``."""

    data: bytes
    offset: int
    total: int  # bytes written so far
    kept: int  # bytes that can be read
    complete: bool

    @property
    def end(self) -> int:
        return self.offset + len(self.data)


@dataclass(frozen=True)
class ExecutionInfo:
    """An execution. ``result`` is None until the execution has ended, or when it was too large to keep."""

    execution_id: str
    kind: str
    state: str  # queued, running or done
    status: str | None = None
    started_at: str | None = None
    ended_at: str | None = None
    stdout_bytes: int = 0
    stderr_bytes: int = 0
    last_event_id: int | None = None
    result: ExecResult | None = None
    raw: Raw = _raw()

    @classmethod
    def from_json(cls, obj: Raw) -> ExecutionInfo:
        result = obj.get("result")
        return pick(cls, obj, result=ExecResult.from_json(result) if result else None, raw=obj)


@dataclass(frozen=True)
class Match:
    """A line of output that contains the searched text."""

    offset: int
    line: int
    text: str


@dataclass(frozen=True)
class Artifact:
    """A file below /workspace that an execution made or changed. Small images have ``data``. If the operator keeps copies in a
    bucket, ``link`` is a URL where anybody can read the file, for ``link_seconds``."""

    path: str
    size: int = 0
    mime: str = ""
    sha256: str | None = None
    url: str = ""
    data: bytes | None = field(default=None, repr=False)
    link: str | None = field(default=None, repr=False)
    link_seconds: int | None = None
    link_error: str | None = None

    @classmethod
    def from_json(cls, obj: Raw) -> Artifact:
        data = obj.get("data")
        return pick(cls, obj, data=base64.b64decode(data) if data else None)


@dataclass(frozen=True)
class Port:
    """An open port. Everybody who has ``url`` may use the service behind it; programs may send ``token`` as X-Caisson-Port-Token."""

    port: int
    url: str = field(repr=False)
    token: str = field(repr=False)
    connections: int = 0
    requests: int = 0
    opened_at: str = ""

    @classmethod
    def from_json(cls, obj: Raw) -> Port:
        return pick(cls, obj)


@dataclass(frozen=True)
class Package:
    """An installed package (``origin`` "installed"), or one of the image that a request uses ("image").

    ``replaces`` is the image's version that it hides. In ``packages.list()``, ``request`` led to it, and code imports
    it if it is ``active``.
    """

    name: str
    version: str
    hash: str = ""
    built: bool = False
    language: str = "python"
    origin: str = "installed"
    replaces: str = ""
    request: str = ""
    active: bool = True

    @classmethod
    def from_json(cls, obj: Raw) -> Package:
        return pick(cls, obj)


@dataclass(frozen=True)
class Installed:
    """The result of an installation."""

    packages: tuple[Package, ...]
    language: str = "python"
    cached: bool = False
    bytes: int = 0
    files: int = 0
    seconds: float = 0.0
    installer: str = ""

    @classmethod
    def from_json(cls, obj: Raw) -> Installed:
        return pick(cls, obj, packages=tuple(Package.from_json(p) for p in obj.get("packages", ())))


@dataclass(frozen=True)
class Approval:
    """A tool call that waits for a person. ``arguments`` has the first 4096 bytes of the JSON text."""

    id: str
    server: str
    tool: str
    arguments: str
    execution_id: str = ""
    sandbox: str | None = None
    truncated: bool = False
    rule: str = ""
    created_at: str = ""
    expires_at: str = ""

    @classmethod
    def from_json(cls, obj: Raw) -> Approval:
        return pick(cls, obj)


@dataclass(frozen=True)
class Connection:
    """A connection out of a sandbox."""

    host: str
    port: int
    state: str
    address: str = ""
    bytes_out: int = 0
    bytes_in: int = 0
    age_ms: int = 0


@dataclass(frozen=True)
class Net:
    """The network use of a sandbox: open connections, and numbers since its cell was made. ``names`` that were looked up and
    ``refusals`` are the last ones, the newest first."""

    connections: tuple[Connection, ...] = ()
    names: tuple[Raw, ...] = ()
    refusals: tuple[Raw, ...] = ()
    live: int = 0
    opened: int = 0
    closed: int = 0
    refused: int = 0
    failed: int = 0
    names_asked: int = 0
    names_refused: int = 0
    bytes_out: int = 0
    bytes_in: int = 0
    raw: Raw = _raw()

    @classmethod
    def from_json(cls, obj: Raw) -> Net:
        return pick(
            cls,
            obj,
            connections=tuple(pick(Connection, c) for c in obj.get("connections", ())),
            names=tuple(obj.get("names", ())),
            refusals=tuple(obj.get("refusals", ())),
            raw=obj,
        )


@dataclass(frozen=True)
class Workspace:
    """A directory that outlives sandboxes. ``sandboxes`` are those that use it, with their modes."""

    name: str
    generation: int = 0
    quota_mib: int = 0
    quota_files: int = 0
    bytes: int | None = None
    files: int | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    sandboxes: tuple[Raw, ...] = ()
    raw: Raw = _raw()

    @classmethod
    def from_json(cls, obj: Raw) -> Workspace:
        return pick(cls, obj, sandboxes=tuple(obj.get("sandboxes", ())), raw=obj)


@dataclass(frozen=True)
class Change:
    """A path that was added, modified, removed, or is of another type or mode."""

    path: str
    change: str
    type: str = ""
    size: int = 0


@dataclass(frozen=True)
class Changes:
    """The changes of a sandbox in its copy of a workspace. ``count`` is the number of all changes, also if the list was cut."""

    workspace: str
    changes: tuple[Change, ...] = ()
    generation: int = 0
    count: int = 0
    truncated: bool = False

    @classmethod
    def from_json(cls, obj: Raw) -> Changes:
        return pick(cls, obj, changes=tuple(pick(Change, c) for c in obj.get("changes", ())))
