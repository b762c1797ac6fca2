# SPDX-License-Identifier: Apache-2.0
# Made from ../_async/sandbox.py by tools/unasync.py. Change it there.
"""sandbox.py - A named sandbox and all operations on it.

The handle has only the name, and the spec as it was when the handle was made: any number of clients may have a handle of the same
sandbox, and the sandbox continues without them. As a context manager, the handle removes the sandbox at the end.
"""

from __future__ import annotations

import contextlib
from typing import Any, List, Mapping, Optional, Sequence, Union

from .._glue import given, listed, whole_seconds
from .._http import Transport
from .._wire import segment
from ..errors import NotFound
from ..records import Artifact, SandboxInfo
from ..types import ExecResult
from .files import Files
from .parts import Egress, Executions, Packages, Ports
from .processes import Processes
from .stream import Execution
from .workspaces import WorkspaceCopy


class Sandbox:
    """A handle of one sandbox: ``files``, ``processes``, ``ports``, ``packages``, ``egress``, ``executions``,
    ``workspace``, and these methods. ``spec`` is what the daemon made, with every default filled in: ``image`` and
    ``image_digest`` are those of the image that it really has."""

    def __init__(self, transport: Transport, name: str, spec: Optional[Mapping[str, Any]] = None) -> None:
        self.name = name
        self.spec: Mapping[str, Any] = dict(spec or {})
        self._transport = transport
        self._base = base = "/v1/sandboxes/" + segment(name)
        self.files = Files(transport, base)
        self.processes = Processes(transport, base)
        self.ports = Ports(transport, base)
        self.packages = Packages(transport, base)
        self.egress = Egress(transport, base)
        self.executions = Executions(transport, base, name)
        self.workspace = WorkspaceCopy(transport, base)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name!r} at {self._transport.place}>"

    def __enter__(self) -> Sandbox:
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(NotFound):
            self.remove()

    # -- executions --

    def exec(
        self,
        cmd: str,
        args: Optional[Sequence[str]] = None,
        *,
        timeout: Optional[float] = None,
        env: Optional[Mapping[str, str]] = None,
        cwd: Optional[str] = None,
        stdin: Optional[str] = None,
        idempotency_key: Optional[str] = None,
    ) -> ExecResult:
        """Run a program; no shell reads its arguments. timeout is in seconds, rounded up.

        If the caller cancels the call, the program is ended, unless the call has an idempotency_key: then the program continues,
        and the same call with the same key returns its result.
        """
        return self._run("/exec", self._exec_body(cmd, args, timeout, env, cwd, stdin), idempotency_key)

    def shell(
        self,
        script: str,
        *,
        timeout: Optional[float] = None,
        env: Optional[Mapping[str, str]] = None,
        cwd: Optional[str] = None,
        stdin: Optional[str] = None,
        idempotency_key: Optional[str] = None,
    ) -> ExecResult:
        """Run a script in a new bash. As exec()."""
        return self._run("/shell", self._shell_body(script, timeout, env, cwd, stdin), idempotency_key)

    def execute(
        self,
        code: str,
        *,
        language: Optional[str] = None,
        timeout: Optional[float] = None,
        stdin: Optional[str] = None,
        idempotency_key: Optional[str] = None,
    ) -> ExecResult:
        """Run code in the sandbox's interpreter of that language (python), which keeps its variables. idempotency_key: as exec()."""
        return self._run("/execute", self._code_body(code, language, timeout, stdin), idempotency_key)

    def stream_exec(
        self,
        cmd: str,
        args: Optional[Sequence[str]] = None,
        *,
        timeout: Optional[float] = None,
        env: Optional[Mapping[str, str]] = None,
        cwd: Optional[str] = None,
        stdin: Optional[str] = None,
    ) -> Execution:
        """As exec(), with output during the run: iterate over its events."""
        return self._stream("/exec", self._exec_body(cmd, args, timeout, env, cwd, stdin))

    def stream_shell(
        self,
        script: str,
        *,
        timeout: Optional[float] = None,
        env: Optional[Mapping[str, str]] = None,
        cwd: Optional[str] = None,
        stdin: Optional[str] = None,
    ) -> Execution:
        """As shell(), with output during the run."""
        return self._stream("/shell", self._shell_body(script, timeout, env, cwd, stdin))

    def stream(
        self, code: str, *, language: Optional[str] = None, timeout: Optional[float] = None, stdin: Optional[str] = None
    ) -> Execution:
        """As execute(), with output and displays during the run."""
        return self._stream("/execute", self._code_body(code, language, timeout, stdin))

    def interrupt(self) -> None:
        """Raise a KeyboardInterrupt, or its equivalent in the language, in the running code. Raises NothingRuns if no code runs."""
        self._transport.request("POST", self._base + "/interrupt", json={})

    # -- life --

    def info(self) -> SandboxInfo:
        """State, spec, usage, and the receipt: the layers in force, as read from the sandbox's processes."""
        return SandboxInfo.from_json((self._transport.request("GET", self._base)).json())

    def extend(self, seconds: int) -> SandboxInfo:
        """Set the end of the sandbox to this number of seconds from now."""
        return self._life("/extend", {"seconds": seconds})

    def stop(self, *, grace: Optional[float] = None) -> None:
        """Send SIGTERM to everything in the sandbox, and end it when all has ended, or after the grace period (5 s). The name stays."""
        self._life("/stop", given(grace_seconds=whole_seconds(grace)))

    def kill(self) -> None:
        """End the sandbox at once. The name stays."""
        self._life("/kill", {})

    def remove(self) -> None:
        """End the sandbox and free its name."""
        self._transport.request("DELETE", self._base)

    def logs(self, *, tail: Optional[int] = None) -> str:
        """The last 64 KiB of output of code and commands; with tail, only that number of lines."""
        answer = self._transport.request("GET", self._base + "/logs", query=given(tail=tail))
        return answer.body.decode("utf-8", "replace")

    def artifacts(self, execution: Union[str, ExecResult], *, inline: bool = True) -> List[Artifact]:
        """Files below /workspace that were made or changed during the execution."""
        execution_id = execution if isinstance(execution, str) else execution.execution_id
        found: List[Artifact] = []
        path: Optional[str] = self._base + "/artifacts"
        query: Optional[Mapping[str, Any]] = given(execution_id=execution_id, inline=None if inline else False)
        while path:
            answer = (self._transport.request("GET", path, query=query)).json()
            found += [Artifact.from_json(a) for a in answer["artifacts"]]
            path, query = answer.get("next"), None
        return found

    # -- requests --

    def _run(self, route: str, body: Mapping[str, Any], key: Optional[str] = None) -> ExecResult:
        headers = {"Idempotency-Key": key} if key is not None else None
        answer = self._transport.request("POST", self._base + route, json=body, headers=headers, timeout=None)
        return ExecResult.from_json(answer.json())

    def _stream(self, route: str, body: Mapping[str, Any]) -> Execution:
        return Execution(self._transport, self._base + route, body, self.name)

    def _life(self, route: str, body: Mapping[str, Any]) -> SandboxInfo:
        answer = self._transport.request("POST", self._base + route, json=body, timeout=360.0)
        return SandboxInfo.from_json(answer.json())

    @staticmethod
    def _exec_body(
        cmd: str,
        args: Optional[Sequence[str]],
        timeout: Optional[float],
        env: Optional[Mapping[str, str]],
        cwd: Optional[str],
        stdin: Optional[str],
    ) -> Mapping[str, Any]:
        words = listed(args) if args is not None else None
        return given(cmd=cmd, args=words, timeout=timeout, env=dict(env) if env else None, cwd=cwd, stdin=stdin)

    @staticmethod
    def _shell_body(
        script: str, timeout: Optional[float], env: Optional[Mapping[str, str]], cwd: Optional[str], stdin: Optional[str]
    ) -> Mapping[str, Any]:
        return given(script=script, timeout=timeout, env=dict(env) if env else None, cwd=cwd, stdin=stdin)

    @staticmethod
    def _code_body(code: str, language: Optional[str], timeout: Optional[float], stdin: Optional[str]) -> Mapping[str, Any]:
        return given(code=code, language=language, timeout=timeout, stdin=stdin)
