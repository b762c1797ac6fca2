# SPDX-License-Identifier: Apache-2.0
"""_docker_kernel.py - One execution in a kernel of a container: its output, and the report at its end (_docker_guest.py writes them)."""

from __future__ import annotations

import json
import posixpath
import secrets
from typing import Any, Dict, Optional

from ._docker import Attachment
from ._runtime import ExecutionResult, file_reference
from .errors import ProtocolError

OUTPUT_MAX = 10000  # characters of stdout and of stderr, as those of a daemon of Caisson
REPORT_MAX = 16 << 20


class Output:
    """One of the streams of an execution, up to its marker. The rest of a long output is counted and dropped."""

    def __init__(self, marker: bytes) -> None:
        self._marker, self._tail, self._kept = marker, b"", b""
        self.ended = self.cut = False

    def feed(self, data: bytes) -> bytes:
        """Take more of the stream. Returns the part of it behind the marker."""
        if self.ended:
            return data
        self._tail += data
        at = self._tail.find(self._marker)
        self.ended = at >= 0
        safe = at if self.ended else max(0, len(self._tail) - len(self._marker) + 1)
        self._keep(self._tail[:safe])
        self._tail, rest = (b"", self._tail[at + len(self._marker) :]) if self.ended else (self._tail[safe:], b"")
        return rest

    def _keep(self, data: bytes) -> None:
        room = 4 * OUTPUT_MAX - len(self._kept)
        self._kept += data[:room]
        self.cut = self.cut or len(data) > room

    def text(self) -> str:
        self._keep(self._tail)
        self._tail = b""
        text = self._kept.decode("utf-8", "replace")
        self.cut = self.cut or len(text) > OUTPUT_MAX
        return text[:OUTPUT_MAX]


class Execution:
    """One execution in a kernel: its output, and the report at its end."""

    def __init__(self, kernel: Attachment) -> None:
        self.kernel, self.token = kernel, secrets.token_hex(16)
        self.report: Optional[Dict[str, Any]] = None
        marker = b"\0" + self.token.encode() + b"\0"
        self._streams = {1: Output(marker), 2: Output(marker)}
        self._line = b""

    async def follow(self, code: str, language: str, packages: Optional[str]) -> None:
        """Send the code, and read until the report and the end of both streams, or the end of the kernel."""
        request = {"token": self.token, "code": code, "language": language, "packages": packages}
        await self.kernel.write(json.dumps(request).encode() + b"\n")
        while self.report is None or not self._streams[2].ended:
            frame = await self.kernel.read()
            if frame is None:
                return
            rest = self._streams[frame[0]].feed(frame[1])
            if frame[0] == 1 and rest and self.report is None:
                self._line += rest
                if len(self._line) > REPORT_MAX:
                    raise ProtocolError("the report of an execution is too long")
                if b"\n" in self._line:
                    self.report = checked_report(self._line)

    def result(self, seconds: float, exit_code: int, status: str, hint: Optional[str]) -> ExecutionResult:
        report = self.report or {}
        stdout, stderr = (self._streams[n].text() for n in (1, 2))
        cut = any(stream.cut for stream in self._streams.values())
        return ExecutionResult(
            stdout=stdout,
            stderr=stderr,
            exit_code=exit_code,
            artifacts=[file_reference(posixpath.basename(path), path, "file", size) for path, size in report.get("files", ())],
            execution_duration=seconds,
            status=status,
            hint=hint,
            result=report.get("result"),
            truncated=cut or bool(report.get("cut")),
        )


def checked_report(line: bytes) -> Dict[str, Any]:
    """The report of a kernel, whose code may have forged it. Raises ProtocolError if it is not one."""
    try:
        said = json.loads(line.partition(b"\n")[0])
        if isinstance(said, dict) and "missing" in said:
            return {"missing": True}
        code, text, files = said["exit_code"], said.get("result"), [(path, size) for path, size in said["files"]]
        valid = type(code) is int and 0 <= code < 256 and (text is None or isinstance(text, str))
        if valid and all(isinstance(path, str) and type(size) is int for path, size in files):
            return {"exit_code": code, "result": text, "cut": bool(said.get("cut")), "files": files}
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError):
        pass
    raise ProtocolError(f"the code has forged the report of its execution: {line[:80]!r}")
