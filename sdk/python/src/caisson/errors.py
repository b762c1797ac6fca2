# SPDX-License-Identifier: Apache-2.0
"""errors.py - All errors of the library, as a tree of exceptions.

The daemon reports every error in one form, ``{"error": {"code", "message", "field"?, "hint"?}}``. The code determines the
class. A code that is newer than this library falls back to the class of its HTTP status, so that ``except NotFound`` goes
on working. A request that no daemon answers raises :class:`SandboxUnavailable`.

Failing code is not an error of this library: it is an :class:`~caisson.ExecResult` whose ``ok`` is false. Its ``check()``
raises an exception.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Mapping

if TYPE_CHECKING:
    from .types import ExecResult


class CaissonError(RuntimeError):
    """Base of all exceptions of this library.

    code:       for programs, stable: the daemon's code, or one of this library
    message:    for people: what failed
    field:      the field of the request that is wrong, or None
    hint:       the remedy, or None
    status:     the HTTP status; None if there was no answer, or if the error came in the middle of a stream
    request_id: the id of the request in the daemon's log, or None
    details:    further members of the daemon's error: needed, free and limit of content that does not fit;
                cause, state, files and epoch if the sandbox's cell ended
    """

    default_code = "error"
    default_hint: str | None = None  # used if the daemon sends none

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
        details: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.code = code or self.default_code
        self.field = field
        self.hint = hint
        self.status = status
        self.request_id = request_id
        self.retry_after = retry_after
        self.details = dict(details or {})

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


# ---- no answer ---------------------------------------------------------------------------------------------------------


class SandboxUnavailable(CaissonError):
    """No daemon answers at the address, or the daemon cannot serve now."""

    default_code = "unavailable"


class ConnectionLost(SandboxUnavailable):
    """The connection broke after the request was sent. It is unknown whether the daemon processed the request."""

    default_code = "connection_lost"


class AnswerTimeout(SandboxUnavailable):
    """The daemon sent nothing for longer than the client's timeout."""

    default_code = "answer_timeout"


class ProtocolError(SandboxUnavailable):
    """The server at this address does not answer as a daemon of Caisson does."""

    default_code = "protocol_error"


class Misconfigured(CaissonError):
    """An argument or an environment variable is invalid; the message names it."""

    default_code = "misconfigured"


class ClientClosed(CaissonError):
    """The client was closed before this call."""

    default_code = "client_closed"


# ---- the daemon refuses ------------------------------------------------------------------------------------------------


class RequestRefused(CaissonError):
    """The daemon answered with an error. The subclasses tell the kinds apart."""


class InvalidRequest(RequestRefused):
    """The request is invalid; ``field`` names the wrong part."""


class ImageUnavailable(InvalidRequest):
    """The daemon does not have this image. The subclasses tell why it could not be pulled."""


class LanguageUnavailable(InvalidRequest):
    """The image has no interpreter of this language, or the language is unknown."""

    default_hint = "languages are python, bash, javascript and r, as far as the sandbox's image has them"


class ImagePullFailed(ImageUnavailable):
    """The image could not be pulled: it is damaged, too large or of another platform, or there is no room for it."""

    default_hint = "the daemon's log has the reason"


class RegistryUnavailable(ImagePullFailed):
    """The registry of the image cannot be reached; ``message`` has the reason."""

    default_hint = "try again later"


class Unauthorized(RequestRefused):
    """A token is missing or wrong."""


class Forbidden(RequestRefused):
    """This caller may not do this."""


class PolicyRefused(Forbidden):
    """The operator's policy forbids the request; ``message`` names the rule."""


class FilePermissionDenied(Forbidden):
    """The sandbox's own file permissions forbid the access."""


class ImagePullDenied(ImageUnavailable, Forbidden):
    """This daemon does not pull from the registry of the image; ``hint`` names the operator's option."""


class NotFound(RequestRefused):
    """The caller has no object of this kind and name."""


class ImageNotFound(ImageUnavailable, NotFound):
    """The registry has no such image, or shows it to nobody without the right credentials."""

    default_hint = "check its name and its tag"


class SandboxNotFound(NotFound):
    """The caller has no sandbox of that name."""


class ExecutionNotFound(NotFound):
    """There is no such execution, or the daemon no longer keeps it."""


class ProcessNotFound(NotFound):
    """There is no such process in the sandbox."""


class NoSuchFile(NotFound):
    """There is no such file in the sandbox."""

    default_hint = "a relative path is below /workspace; list the directory to see what is there"


class PortNotFound(NotFound):
    """The port is not open."""


class ApprovalNotFound(NotFound):
    """No tool call with this id waits for a decision (any more)."""


class WorkspaceNotFound(NotFound):
    """The caller has no workspace of that name."""


class NothingRuns(NotFound):
    """There is nothing to interrupt."""


class Conflict(RequestRefused):
    """The present state of the sandbox or the file system does not allow the request."""


class SandboxExists(Conflict):
    """A sandbox of that name exists with another spec."""


class SandboxStopped(Conflict):
    """The sandbox does not run (any more)."""

    default_hint = "a stopped sandbox does not start again: remove it and create another"


class FileConflict(Conflict):
    """Something else has that name: a directory for a file, a file for a directory, an entry that exists."""


class ProcessEnded(Conflict):
    """The process has ended, or its stdin has."""


class WorkspaceConflict(Conflict):
    """Others have committed changes of the same paths in the meantime; ``message`` names the paths."""


class StreamGone(RequestRefused):
    """The daemon no longer keeps the requested events or output."""


class Busy(RequestRefused):
    """Too many requests at once; ``retry_after`` is the number of seconds to wait."""


class DiskFull(RequestRefused):
    """The sandbox's file system is full."""


class PackageError(RequestRefused):
    """A package could not be installed."""


class PackageNotFound(PackageError, NotFound):
    """The index has no such package, or not in that version."""


class PackageRefused(PackageError, Forbidden):
    """The operator's rules forbid this package."""


class PackageConflict(PackageError, Conflict):
    """The package contradicts packages that are installed already."""


class PackagesUnavailable(PackageError):
    """This daemon installs no packages, or its index does not answer."""


class ServerFault(RequestRefused):
    """A fault of the daemon or of its machine; the daemon's log has it under ``request_id``."""


class NotServing(ServerFault, SandboxUnavailable):
    """The daemon runs but cannot serve now: it is starting, or about to end."""


# ---- the code failed -----------------------------------------------------------------------------------------------------


class ExecutionFailed(CaissonError):
    """Raised by ``ExecResult.check()``: the execution did not end well. ``result`` describes how it ended."""

    default_code = "execution_failed"

    def __init__(self, message: str, result: ExecResult, **about: Any) -> None:
        super().__init__(message, **about)
        self.result = result


# ---- from the daemon's error objects ---------------------------------------------------------------------------------------

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
_know(ImagePullDenied, "image_pull_denied")
_know(ImageNotFound, "image_not_found")
_know(RegistryUnavailable, "registry_unavailable")
_know(ImagePullFailed, "image_pull_failed image_pull_timeout")
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
_know(FileConflict, "directory_not_empty file_exists is_a_directory not_a_directory not_a_file read_only")
_know(ProcessEnded, "not_running stdin_closed")
_know(StreamGone, "cursor_gone execution_gone")
_know(Busy, "busy policy_busy rate_limited image_pulls_busy session_busy stdin_full too_many_processes too_many_readers "
            "too_many_workspaces")
_know(DiskFull, "disk_full memory_full workspace_full")
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
    """The exception for an error object of the daemon, ``{"error": {...}}`` or its inside. Any other object gives an exception too."""
    about = body.get("error", body) if isinstance(body, dict) else {}
    about = about if isinstance(about, dict) else {}
    headers = headers or {}

    def text(key: str) -> str | None:
        value = about.get(key)
        return value if isinstance(value, str) and value else None

    code = text("code") or (text("status") if status == 503 else None)  # /health has a status
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
        details={k: v for k, v in about.items() if k not in ("code", "message", "field", "hint")},
    )
