# SPDX-License-Identifier: Apache-2.0
"""_docker_files.py - Files of a container: the answers of _docker_look.py, checked, and archives with one file."""

from __future__ import annotations

import asyncio
import json
from typing import Any, AsyncIterator, BinaryIO, Callable, Dict, Optional

from .errors import (
    DiskFull,
    FileConflict,
    FilePermissionDenied,
    NoSuchFile,
    NotFound,
    ProtocolError,
    RequestRefused,
)

PIECE = 1 << 20
# The form of the answers of _docker_look.py: code in the container might reach the program that gives them.
ANSWERS: Dict[str, Callable[[Any], bool]] = {
    "find": lambda a: isinstance(a, str),
    "place": lambda a: _is_list(a, 2) and all(isinstance(part, str) for part in a),
    "list": lambda a: _is_list(a)
    and all(_is_list(e, 3) and isinstance(e[0], str) and isinstance(e[1], str) and type(e[2]) is int for e in a),
    "python": lambda a: isinstance(a, dict) and set(a) == {"libc", "markers"} and _is_short(a["libc"] or "") and _are_markers(a["markers"]),
}
FILE_ERRORS = {
    "ENOENT": (NoSuchFile, "no_such_file"),
    "EACCES": (FilePermissionDenied, "permission_denied"),
    "EPERM": (FilePermissionDenied, "permission_denied"),
    "EROFS": (FileConflict, "read_only"),
    "EISDIR": (FileConflict, "is_a_directory"),
    "ENOTDIR": (FileConflict, "not_a_directory"),
    "EINVAL": (FileConflict, "not_a_file"),
    "ENOSPC": (DiskFull, "disk_full"),
}


def checked_answer(op: str, path: str, text: bytes) -> Any:
    """The answer of a container to a question about a path. Raises the error that it has instead."""
    try:
        said = json.loads(text)
    except (ValueError, RecursionError):
        said = None
    if isinstance(said, dict) and isinstance(said.get("errno"), str):
        kind, code = FILE_ERRORS.get(said["errno"], (FileConflict, "not_a_file"))
        raise kind(f"{path}: {said.get('message')}", code=code, field="path", hint=kind.default_hint)
    if not isinstance(said, dict) or not ANSWERS[op](said.get("answer")):
        raise ProtocolError(f"the container has forged an answer: {text[:80]!r}")
    return said["answer"]


def _is_list(value: Any, length: Optional[int] = None) -> bool:
    return isinstance(value, list) and (length is None or len(value) == length)


def _are_markers(value: Any) -> bool:
    needed = {"platform_machine", "python_version", "python_full_version", "implementation_name"}
    return isinstance(value, dict) and len(value) <= 20 and needed <= set(value) and all(_is_short(text) for text in value.values())


def _is_short(value: Any) -> bool:
    """A text for a command line."""
    return isinstance(value, str) and len(value) <= 200 and value.isprintable()


def refused_file(path: str, error: RequestRefused) -> RequestRefused:
    """The exception for a file that the daemon did not take or give."""
    if "no space left" in error.message:
        return DiskFull(
            f"{path}: the volume of the container is full", code="disk_full", field="path", hint="set COREASON_SANDBOX_MEMORY_MIB"
        )
    if isinstance(error, NotFound):
        return NoSuchFile(f"{path}: Docker finds no such file", code="no_such_file", field="path", hint=NoSuchFile.default_hint)
    return error


async def archive_parts(head: bytes, f: BinaryIO, size: int, end: bytes) -> AsyncIterator[bytes]:
    """An archive around a file of this size: what it has more is left out, what it has less is an error."""
    yield head
    loop = asyncio.get_running_loop()
    while size:
        piece = await loop.run_in_executor(None, f.read, min(size, PIECE))
        if not piece:
            raise OSError("the file became shorter while it was read")
        size -= len(piece)
        yield piece
    yield end
