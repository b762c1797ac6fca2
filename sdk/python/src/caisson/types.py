# SPDX-License-Identifier: Apache-2.0
"""types.py - Results of code, commands and streams, and the spec of a sandbox.

All of these classes are frozen, and made from the daemon's JSON by from_json(), which takes the fields that it knows: a newer
daemon may send more. Where that may matter, ``raw`` has the whole object.
"""

from __future__ import annotations

import base64
import binascii
import json
from dataclasses import dataclass, field, fields
from typing import Any, Mapping, Type, TypeVar

from .errors import ExecutionFailed, RequestRefused, error_from

T = TypeVar("T")


_seen: dict[Any, tuple[str, ...]] = {}


def _names(kind: Any) -> tuple[str, ...]:
    """The fields of a dataclass, cached: they are looked up often."""
    if kind not in _seen:
        _seen[kind] = tuple(f.name for f in fields(kind))
    return _seen[kind]


def pick(cls: Type[T], obj: Mapping[str, Any], /, **more: Any) -> T:
    """An instance of a dataclass from the members of obj that are fields of the class, and from more."""
    known = {name: obj[name] for name in _names(cls) if name in obj}
    known.update(more)
    return cls(**known)


def decoded(obj: Mapping[str, Any], name: str) -> bytes:
    """The exact bytes of a text member: from NAME_base64 if they are not UTF-8."""
    exact = obj.get(name + "_base64")
    if isinstance(exact, str):
        try:
            return base64.b64decode(exact, validate=True)
        except binascii.Error:
            pass
    return str(obj.get(name, "")).encode("utf-8", "surrogatepass")


# ---- specs -----------------------------------------------------------------------------------------------------------------


class Unchosen(str):
    """A default that the caller did not choose. It equals its text, and is not sent to the daemon, which chooses."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "<the daemon's own>"


DEFAULT_IMAGE = Unchosen("python:3.11-slim")


@dataclass(frozen=True)
class SandboxSpec:
    """The spec of a sandbox for create().

    Without an image, the sandbox has the daemon's own; ``spec`` of the sandbox tells which. If a named image is not there,
    even if it is ``python:3.11-slim``, the daemon pulls it first, where its operator allows it.
    The daemon chooses the value of every field that is None.
    """

    name: str
    image: str = DEFAULT_IMAGE
    memory_mib: int = 512
    cpus: float = 1
    workspace: str | Mapping[str, Any] | None = None  # "name", "name:ro", or an object: docs/workspaces.md
    secrets: tuple[str, ...] = ()
    egress: tuple[str, ...] = ()
    labels: dict[str, str] = field(default_factory=dict)
    # Further fields of the daemon's spec.
    pids: int | None = None
    disk_mib: int | None = None
    oom: str | None = None  # when memory is used up, the largest "process" ends (the default), or the "sandbox"
    env: Mapping[str, str] | None = None
    timeout_seconds: int | None = None  # removed after this time, whatever runs in it
    idle_seconds: int | None = None  # removed after it was idle for this time
    servers: tuple[str, ...] | None = None  # MCP servers whose tools its code may call
    tools: Mapping[str, Any] | None = None  # rules for these tools
    project: str | None = None  # the project under which its code keeps memory and functions
    mounts: tuple[str, ...] | None = None  # which of the operator's mounts it has: "/data", "/data:ro"; None: all that the caller may have

    def to_json(self) -> dict[str, Any]:
        """The body of a request. Empty lists are left out, except those of servers and mounts, which have a meaning."""
        body: dict[str, Any] = {}
        for name in _names(type(self)):
            value = getattr(self, name)
            if value is None or isinstance(value, Unchosen):
                continue
            if isinstance(value, (tuple, list)):
                if value or name in ("servers", "mounts"):
                    body[name] = list(value)
            elif isinstance(value, Mapping):
                if value:
                    body[name] = dict(value)
            else:
                body[name] = value
        return body


# ---- results -----------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Cause:
    """The limit or event that ended the execution, with numbers of the Linux kernel."""

    kind: str
    limit: int | None = None
    peak: int | None = None
    hint: str = ""


@dataclass(frozen=True)
class CodeError:
    """An exception that the code did not catch."""

    name: str
    value: str
    traceback: tuple[str, ...] = ()

    def __str__(self) -> str:
        return "\n".join(self.traceback) or f"{self.name}: {self.value}"


@dataclass(frozen=True)
class Display:
    """A value that the code displayed, in one or more forms."""

    data: Mapping[str, Any]
    metadata: Mapping[str, Any] = field(default_factory=dict)
    display_id: str | None = None
    truncated: bool = False  # a part of it was left out

    def bytes(self, mime: str) -> bytes | None:
        """One form of the value, as bytes; None if the value does not have this form."""
        return form_bytes(self.data, mime)


@dataclass(frozen=True)
class Usage:
    """Resource usage, in nanoseconds, bytes and counts."""

    wall_ns: int = 0
    cpu_ns: int = 0
    memory_peak: int = 0
    pids_peak: int = 0
    disk_used: int = 0


def form_bytes(bundle: Mapping[str, Any], mime: str) -> bytes | None:
    """One form of a value: text and JSON encoded, everything else from base64."""
    value = bundle.get(mime)
    if value is None:
        return None
    if not isinstance(value, str):
        return json.dumps(value).encode()
    if mime.startswith("text/") or mime.endswith(("+xml", "/json", "+json", "/javascript")):
        return value.encode()
    return base64.b64decode(value)


@dataclass(frozen=True)
class ExecResult:
    """How code or a command ended, and its output.

    ``status`` is ok, error, signal, timeout, limit or failed; ``cause`` names the limit, ``hint`` the remedy. Results of code also have
    ``result`` (the last expression, by media type), ``displays`` (figures and the like), ``error`` (the exception), and
    ``state``, which tells whether the variables survived: kept, reset or discarded.
    """

    stdout: str
    stderr: str = ""
    exit_code: int = 0
    truncated: bool = False
    # Further fields of the daemon's result.
    status: str = "ok"
    cause: Cause | None = None
    hint: str | None = None
    signal: str | None = None
    execution_id: str = ""
    execution_time: float = 0.0
    result: Mapping[str, Any] | None = field(default=None, hash=False)
    displays: tuple[Display, ...] = field(default=(), hash=False)
    error: CodeError | None = None
    state: str | None = None
    files: str | None = None  # kept, lost (the sandbox's cell was replaced) or discarded
    epoch: int = 0
    language: str | None = None
    usage: Usage = Usage()
    raw: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)

    @property
    def output(self) -> str:
        """stdout, then stderr."""
        return self.stdout + (self.stderr or "")

    @property
    def ok(self) -> bool:
        return self.exit_code == 0

    @property
    def text(self) -> str | None:
        """The last expression of the code as text; None if there was no expression."""
        return self.result.get("text/plain") if self.result else None

    @property
    def stdout_bytes(self) -> bytes:
        """The exact bytes of stdout, even if they are not UTF-8."""
        return decoded(self.raw, "stdout") if "stdout" in self.raw else self.stdout.encode()

    @property
    def stderr_bytes(self) -> bytes:
        return decoded(self.raw, "stderr") if "stderr" in self.raw else self.stderr.encode()

    @property
    def images(self) -> tuple[bytes, ...]:
        """All displayed PNG images, and the last expression if it is one."""
        bundles = [d.data for d in self.displays] + ([self.result] if self.result else [])
        found = (form_bytes(bundle, "image/png") for bundle in bundles)
        return tuple(image for image in found if image is not None)

    def check(self) -> ExecResult:
        """The result itself if it is ok; otherwise raise ExecutionFailed."""
        if self.ok:
            return self
        if self.error is not None:
            why = f"{self.error.name}: {self.error.value}"
        else:
            tail = self.stderr.strip().splitlines()[-1:] or [""]
            why = f"{self.status}, exit code {self.exit_code}" + (f": {tail[0]}" if tail[0] else "")
        if self.files == "lost":
            why += "; the sandbox was replaced: its files, processes and variables are gone"
        raise ExecutionFailed(why, self, code=self.cause.kind if self.cause else None, hint=self.hint)

    @classmethod
    def from_json(cls, obj: Mapping[str, Any]) -> ExecResult:
        error, usage, cause = obj.get("error"), obj.get("usage"), _cause(obj)
        return cls(
            stdout=obj.get("stdout", ""),
            stderr=obj.get("stderr", ""),
            exit_code=obj.get("exit_code", 0),
            truncated=obj.get("truncated", False),
            status=obj.get("status", "ok"),
            cause=cause,
            hint=obj.get("hint") or (cause.hint if cause else "") or None,
            signal=obj.get("signal"),
            execution_id=obj.get("execution_id", ""),
            execution_time=obj.get("execution_time", 0.0),
            result=obj.get("result"),
            displays=tuple(pick(Display, d) for d in obj["displays"]) if obj.get("displays") else (),
            error=_code_error(error) if error else None,
            state=obj.get("state"),
            files=obj.get("files"),
            epoch=obj.get("epoch", 0),
            language=obj.get("language"),
            usage=pick(Usage, usage) if usage else Usage(),
            raw=obj,
        )


def _cause(obj: Mapping[str, Any]) -> Cause | None:
    """The cause: /execute sends an object; a sandbox's executions have a word, with its numbers beside it."""
    cause = obj.get("cause")
    if not cause:
        return None
    return pick(Cause, cause) if isinstance(cause, Mapping) else pick(Cause, obj, kind=cause)


def _code_error(obj: Mapping[str, Any]) -> CodeError:
    return CodeError(obj.get("name", ""), obj.get("value", ""), tuple(obj.get("traceback", ())))


# ---- events ------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Event:
    """One event of a stream.

    ``type`` is started, stdout, stderr, display, result, error, progress or done. ``id`` is the number of the event in the stream.
    """

    type: str
    data: Mapping[str, Any]
    id: int | None = None

    @property
    def text(self) -> str:
        """The text of a stdout or stderr event; empty for all other types."""
        return str(self.data.get("data", "")) if self.type in ("stdout", "stderr") else ""

    @property
    def bytes(self) -> bytes:
        """The same as exact bytes."""
        return decoded(self.data, "data") if self.type in ("stdout", "stderr") else b""

    @property
    def refusal(self) -> RequestRefused | None:
        return error_from(self.data) if self.type == "refused" else None
