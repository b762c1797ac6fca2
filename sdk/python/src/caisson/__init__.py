# SPDX-License-Identifier: Apache-2.0
"""Run untrusted code in sealed sandboxes.

    from caisson import Caisson

    with Caisson.local() as c:
        print(c.run_python("print(6 * 7)").stdout)

:class:`Caisson` blocks and may be used by threads; :class:`AsyncCaisson` is the same for asyncio. docs/sdk.md has the rest.
"""

from __future__ import annotations

from ._async.client import AsyncCaisson
from ._async.files import AsyncFiles, AsyncWatch
from ._async.processes import AsyncProcess
from ._async.sandbox import AsyncSandbox
from ._async.stream import AsyncExecution, AsyncInstallation
from ._async.terminal import AsyncTerminal
from ._sync.client import Caisson
from ._sync.files import Files, Watch
from ._sync.processes import Process
from ._sync.sandbox import Sandbox
from ._sync.stream import Execution, Installation
from ._sync.terminal import Terminal
from .abstract import SandboxClient, SandboxHandle
from .errors import (
    AnswerTimeout,
    ApprovalNotFound,
    Busy,
    CaissonError,
    ClientClosed,
    Conflict,
    ConnectionLost,
    DiskFull,
    ExecutionFailed,
    ExecutionNotFound,
    FileConflict,
    FilePermissionDenied,
    Forbidden,
    ImageUnavailable,
    InvalidRequest,
    LanguageUnavailable,
    Misconfigured,
    NoSuchFile,
    NotFound,
    NothingRuns,
    NotServing,
    PackageConflict,
    PackageError,
    PackageNotFound,
    PackageRefused,
    PackagesUnavailable,
    PolicyRefused,
    PortNotFound,
    ProcessEnded,
    ProcessNotFound,
    ProtocolError,
    RequestRefused,
    SandboxExists,
    SandboxNotFound,
    SandboxStopped,
    SandboxUnavailable,
    ServerFault,
    StreamGone,
    Unauthorized,
    WorkspaceConflict,
    WorkspaceNotFound,
)
from .records import (
    Approval,
    Artifact,
    Change,
    Changes,
    ExecutionInfo,
    FileEvent,
    FileInfo,
    Installed,
    Match,
    Net,
    Output,
    Package,
    Port,
    ProcessInfo,
    SandboxInfo,
    Workspace,
)
from .types import Cause, CodeError, Display, Event, ExecResult, SandboxSpec, Usage

__version__ = "0.1.0"
__all__ = [
    "AnswerTimeout",
    "Approval",
    "ApprovalNotFound",
    "Artifact",
    "AsyncCaisson",
    "AsyncExecution",
    "AsyncFiles",
    "AsyncInstallation",
    "AsyncProcess",
    "AsyncSandbox",
    "AsyncTerminal",
    "AsyncWatch",
    "Busy",
    "Caisson",
    "CaissonError",
    "Cause",
    "Change",
    "Changes",
    "ClientClosed",
    "CodeError",
    "Conflict",
    "ConnectionLost",
    "DiskFull",
    "Display",
    "Event",
    "ExecResult",
    "Execution",
    "ExecutionFailed",
    "ExecutionInfo",
    "ExecutionNotFound",
    "FileConflict",
    "FileEvent",
    "FileInfo",
    "FilePermissionDenied",
    "Files",
    "Forbidden",
    "ImageUnavailable",
    "Installation",
    "Installed",
    "InvalidRequest",
    "LanguageUnavailable",
    "Match",
    "Misconfigured",
    "Net",
    "NoSuchFile",
    "NotFound",
    "NotServing",
    "NothingRuns",
    "Output",
    "Package",
    "PackageConflict",
    "PackageError",
    "PackageNotFound",
    "PackageRefused",
    "PackagesUnavailable",
    "PolicyRefused",
    "Port",
    "PortNotFound",
    "Process",
    "ProcessEnded",
    "ProcessInfo",
    "ProcessNotFound",
    "ProtocolError",
    "RequestRefused",
    "Sandbox",
    "SandboxClient",
    "SandboxExists",
    "SandboxHandle",
    "SandboxInfo",
    "SandboxNotFound",
    "SandboxSpec",
    "SandboxStopped",
    "SandboxUnavailable",
    "ServerFault",
    "StreamGone",
    "Terminal",
    "Unauthorized",
    "Usage",
    "Watch",
    "Workspace",
    "WorkspaceConflict",
    "WorkspaceNotFound",
    "__version__",
]
