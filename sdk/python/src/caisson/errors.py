# SPDX-License-Identifier: Apache-2.0
"""errors.py - Everything that can go wrong, as a tree of exceptions.

The daemon says every error in one shape, ``{"error": {"code", "message", "field"?, "hint"?}}``. The code decides the
class; one that is newer than this library falls back to the class of its HTTP status, so that ``except NotFound`` goes
on working. What could not be asked at all, because nobody answers, is :class:`SandboxUnavailable`.

That code failed is no error of this library: it is an :class:`~caisson.ExecResult` whose ``ok`` is false. Who wants an
exception calls its ``check()``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Mapping

if TYPE_CHECKING:
    from .types import ExecResult


class CaissonError(RuntimeError):
    """Base of all exceptions of this library.

    code:       for programs, stable: the daemon's word, or one of ours
    message:    for people: what is wrong
    field:      the member of the request that is meant, or None
    hint:       what to do about it, or None
    status:     of HTTP; None where there was no answer, or it came in the middle of a stream
    request_id: under which the daemon's log has it, or None
    """

    default_code = "error"
    default_hint: str | None = None  # where the daemon has none

    def __init__(
        self,
        message: str,
        *,
        code: str | None = None,
        field: str | None = None,
        hint: str | None = None,
        status: int | None = None,
        request_id: str | None = None,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.code = code or self.default_code
        self.field = field
        self.hint = hint
        self.status = status
        self.request_id = request_id
        self.retry_after = retry_after

    def __str__(self) -> str:
        where = f"{self.field}: " if self.field and not self.message.startswith(self.field) else ""
        return where + self.message + (f" ({self.hint})" if self.hint else "")

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.code!r}, {str(self)!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (type(self), self.message, {k: v for k, v in self.__dict__.items() if k != "message"})


def _rebuild(kind: type[CaissonError], message: str, rest: dict[str, Any]) -> CaissonError:
    error = kind.__new__(kind)
    RuntimeError.__init__(error, message)
    error.message = message
    error.__dict__.update(rest)
    return error


# ---- nobody answers ----------------------------------------------------------------------------------------------------


class SandboxUnavailable(CaissonError):
    """There is no daemon where it was looked for, or it can not serve now."""

    default_code = "unavailable"


class ConnectionLost(SandboxUnavailable):
    """The connection broke after the request was sent. Whether it was done is not known."""

    default_code = "connection_lost"


class AnswerTimeout(SandboxUnavailable):
    """The daemon was silent for longer than the client's timeout."""

    default_code = "answer_timeout"


class ProtocolError(SandboxUnavailable):
    """What answered does not speak HTTP as a daemon of Caisson does."""

    default_code = "protocol_error"


class Misconfigured(CaissonError):
    """An argument or a variable of the environment makes no sense; the message names it."""

    default_code = "misconfigured"


class ClientClosed(CaissonError):
    """The client was closed before this call."""

    default_code = "client_closed"


# ---- the daemon says no ------------------------------------------------------------------------------------------------


class RequestRefused(CaissonError):
    """The daemon answered with an error. The classes below say which kind."""


class InvalidRequest(RequestRefused):
    """The request makes no sense; ``field`` says which part of it."""


class ImageUnavailable(InvalidRequest):
    """The daemon does not have this image."""


class LanguageUnavailable(InvalidRequest):
    """The image has no interpreter of this language, or nobody knows the language."""

    default_hint = "languages are python, bash, javascript and r, as far as the sandbox's image has them"


class Unauthorized(RequestRefused):
    """A token is missing or wrong."""


class Forbidden(RequestRefused):
    """Not for this caller."""


class PolicyRefused(Forbidden):
    """The operator's policy forbids it; ``message`` names the rule."""


class FilePermissionDenied(Forbidden):
    """The sandbox's own file permissions forbid it."""


class NotFound(RequestRefused):
    """There is no such thing of yours."""


class SandboxNotFound(NotFound):
    """There is no sandbox of that name of yours."""


class ExecutionNotFound(NotFound):
    """There is no such execution, or it is not kept any more."""


class ProcessNotFound(NotFound):
    """There is no such process in the sandbox."""


class NoSuchFile(NotFound):
    """There is no such file in the sandbox."""

    default_hint = "a relative path is below /workspace; list the directory to see what is there"


class PortNotFound(NotFound):
    """The port is not open."""


class ApprovalNotFound(NotFound):
    """Nothing of that id waits for a word (any more)."""


class WorkspaceNotFound(NotFound):
    """There is no workspace of that name of yours."""


class NothingRuns(NotFound):
    """There is nothing to interrupt."""


class Conflict(RequestRefused):
    """What is there does not allow it."""


class SandboxExists(Conflict):
    """A sandbox of that name exists with another spec."""


class SandboxStopped(Conflict):
    """The sandbox does not run (any more)."""

    default_hint = "it does not come back: remove it and create another"


class FileConflict(Conflict):
    """Something else has that name: a directory for a file, a file for a directory, an entry that exists."""


class ProcessEnded(Conflict):
    """The process has ended, or its stdin has."""


class WorkspaceConflict(Conflict):
    """Others have committed changes of the same paths meanwhile; ``message`` names them."""


class StreamGone(RequestRefused):
    """Events or output that were asked for are not kept any more."""


class Busy(RequestRefused):
    """Too much at once; ``retry_after`` says in how many seconds to come back."""


class DiskFull(RequestRefused):
    """The sandbox's file system is full."""


class PackageError(RequestRefused):
    """A package could not be installed."""


class PackageNotFound(PackageError, NotFound):
    """The index has no such package, or not in that version."""


class PackageRefused(PackageError, Forbidden):
    """The operator's rules forbid this package."""


class PackageConflict(PackageError, Conflict):
    """It contradicts what is installed already."""


class PackagesUnavailable(PackageError):
    """This daemon installs no packages, or its index does not answer."""


class ServerFault(RequestRefused):
    """A fault of the daemon or of its machine; its log has it under ``request_id``."""


class NotServing(ServerFault, SandboxUnavailable):
    """The daemon is there, and can not serve now: it starts, or is about to end."""


# ---- the code failed -----------------------------------------------------------------------------------------------------


class ExecutionFailed(CaissonError):
    """Raised by ``ExecResult.check()``: what ran did not end well. ``result`` is how it ended."""

    default_code = "execution_failed"

    def __init__(self, message: str, result: ExecResult, **about: Any) -> None:
        super().__init__(message, **about)
        self.result = result


# ---- from the daemon's words -----------------------------------------------------------------------------------------------

_BY_CODE: dict[str, type[RequestRefused]] = {}


def _know(kind: type[RequestRefused], codes: str) -> None:
    _BY_CODE.update(dict.fromkeys(codes.split(), kind))


_know(
    InvalidRequest,
    "bad_request body_not_allowed duplicate_key invalid_query invalid_value malformed_json out_of_range token_in_url "
    "too_deep too_many_values unknown_parameter payload_too_large unsupported_media_type forbidden_host bad_archive "
    "bad_path cannot_start invalid_cwd key_reused missing_field not_an_object not_supported unknown_field "
    "unknown_secret unknown_server unsupported_field wrong_type upgrade_required method_not_allowed",
)
_know(ImageUnavailable, "image_unavailable")
_know(LanguageUnavailable, "language_unavailable unknown_language")
_know(InvalidRequest, "workspace_unreadable quota_unavailable")
_know(Unauthorized, "unauthorized")
_know(Forbidden, "forbidden_origin")
_know(PolicyRefused, "policy_refused")
_know(FilePermissionDenied, "permission_denied")
_know(NotFound, "not_found")
_know(SandboxNotFound, "no_such_sandbox no_such_session")
_know(ExecutionNotFound, "no_such_execution")
_know(ProcessNotFound, "no_such_process")
_know(NoSuchFile, "no_such_file")
_know(PortNotFound, "no_such_port")
_know(ApprovalNotFound, "no_such_approval")
_know(WorkspaceNotFound, "no_such_workspace")
_know(NothingRuns, "nothing_runs")
_know(Conflict, "in_progress not_streamed port_in_use too_many_ports other_filesystem too_many_links")
_know(Conflict, "workspace_exists workspace_busy workspace_changing not_copy_on_write")
_know(WorkspaceConflict, "workspace_conflict")
_know(SandboxExists, "spec_conflict")
_know(SandboxStopped, "sandbox_stopped sandbox_ended session_ended")
_know(FileConflict, "directory_not_empty file_exists is_a_directory not_a_directory not_a_file")
_know(ProcessEnded, "not_running stdin_closed")
_know(StreamGone, "cursor_gone execution_gone")
_know(Busy, "busy policy_busy rate_limited session_busy stdin_full too_many_processes too_many_workspaces")
_know(DiskFull, "disk_full workspace_full")
_know(
    PackageError,
    "build_failed hash_mismatch install_failed invalid_package invalid_requirement unsupported_language "
    "package_too_big package_rate packages_busy too_many_packages",
)
_know(PackageNotFound, "package_not_found version_not_found")
_know(PackageRefused, "package_blocked package_lookalike package_not_allowed package_not_pinned")
_know(PackageConflict, "package_conflict")
_know(PackagesUnavailable, "no_installer not_configured index_unavailable index_timeout")
_know(
    ServerFault,
    "not_recorded file_call_ended workspace_failed process_limit out_of_memory sandbox_failed kernel_failed internal_error",
)
_know(NotServing, "draining")

_BY_STATUS: dict[int, type[RequestRefused]] = {
    401: Unauthorized,
    403: Forbidden,
    404: NotFound,
    409: Conflict,
    410: StreamGone,
    429: Busy,
    503: NotServing,
    507: DiskFull,
}


def known_codes() -> Mapping[str, type[RequestRefused]]:
    """The daemon's codes and their classes."""
    return dict(_BY_CODE)


def error_from(
    body: Any, status: int | None = None, headers: Mapping[str, str] | None = None
) -> RequestRefused:
    """The exception for an error object of the daemon, ``{"error": {...}}`` or its inside; from whatever came, if need be."""
    about = body.get("error", body) if isinstance(body, dict) else {}
    about = about if isinstance(about, dict) else {}
    headers = headers or {}

    def text(key: str) -> str | None:
        value = about.get(key)
        return value if isinstance(value, str) and value else None

    code = text("code")
    kind = _BY_CODE.get(code or "")
    if kind is None and status is not None:
        kind = _BY_STATUS.get(status) or (ServerFault if status >= 500 else InvalidRequest)
    wait = headers.get("retry-after", "")
    return (kind or RequestRefused)(
        text("message") or (f"the daemon answered {status}" if status else "the daemon refused"),
        code=code or (f"http_{status}" if status else None),
        field=text("field"),
        hint=text("hint") or (kind or RequestRefused).default_hint,
        status=status,
        request_id=headers.get("x-request-id"),
        retry_after=float(wait) if wait.isdigit() else None,
    )
