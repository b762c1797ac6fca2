# SPDX-License-Identifier: Apache-2.0
"""_runtime.py - The interface between a session and the place where its code runs, and the parts that all runtimes share.

A runtime is one sandbox. Its backend makes runtimes, and has the connections that they share. _runtime_caisson.py has the sandboxes of
a daemon of Caisson, _runtime_docker.py the containers of a Docker daemon.
"""

from __future__ import annotations

import contextlib
import mimetypes
import os
import tempfile
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, Iterator, List, Optional, Union

from .errors import PackageRefused
from .session_config import SandboxConfig, canonical

LocalFile = Union[str, Path]
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
    async def upload(self, local_path: LocalFile, remote_path: str) -> None:
        """Copy a file into the sandbox."""

    @abstractmethod
    async def download(self, remote_path: str, local_path: LocalFile) -> None:
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


class Backend(ABC):
    """The runtimes of one manager, and the connections that they share."""

    @abstractmethod
    async def runtime(self, session_id: str) -> SandboxRuntime:
        """The runtime of a session, not started yet. Raises the reason if there can be none."""

    async def reap(self) -> None:  # noqa: B027 - nothing to do unless sandboxes can outlive their clients
        """Remove the sandboxes that dead clients have left."""

    @abstractmethod
    async def close(self) -> None:
        """Close the connections."""


def file_reference(name: str, path: str, kind: str, size: Optional[int] = None, url: Optional[str] = None) -> FileReference:
    """An entry of a directory; kind: file, directory, symlink, ..."""
    if kind != "file":
        return FileReference(name, path, "inode/" + kind)
    return FileReference(name, path, _TYPES.guess_type(name)[0] or "application/octet-stream", size, url)


def check_allowed(config: SandboxConfig, package: str) -> None:
    """Raise PackageRefused for a package that the configuration does not allow."""
    if config.allowed_packages is not None and canonical(package) not in config.allowed_packages:
        raise PackageRefused(f"{package} is not in COREASON_SANDBOX_ALLOWED_PACKAGES", code="package_not_allowed", field="package_name")


@contextlib.contextmanager
def replacing(local_path: LocalFile) -> Iterator[BinaryIO]:
    """A file to write, which gets its name when it is complete. Until then an old file of that name stays."""
    target = Path(local_path)
    fd, part = tempfile.mkstemp(prefix="." + target.name[:64] + ".", dir=str(target.parent))
    try:
        with os.fdopen(fd, "wb") as f:
            yield f
        os.replace(part, target)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(part)
        raise
