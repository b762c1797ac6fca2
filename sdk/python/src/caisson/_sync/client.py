# SPDX-License-Identifier: Apache-2.0
# Made from ../_async/client.py by tools/unasync.py. Change it there.
"""client.py - The client of a daemon."""

from __future__ import annotations

import uuid
from typing import Any, List, Mapping, Optional, Sequence, Union

from .._glue import given, sleep
from .._http import Transport
from .._local import LocalDaemon
from .._place import find_place
from .._wire import segment
from ..errors import NotServing, SandboxUnavailable
from ..records import Approval, SandboxInfo
from ..types import DEFAULT_IMAGE, ExecResult, SandboxSpec, Unchosen
from .sandbox import Sandbox
from .stream import Execution
from .workspaces import Workspaces


class Caisson:
    """A client of the daemon at url (``http://``, ``https://`` or ``unix:``) or on a unix socket.

    Without either, it uses the address in CAISSON_URL or CAISSON_SOCKET, or the default address of ``caisson serve``. token is
    the bearer token (CAISSON_TOKEN), ca_file has CA certificates for the daemon (CAISSON_CA_FILE). timeout is how long the daemon
    may send nothing, in seconds; it does not apply to code and commands, which have timeouts of their own. retries is how often a
    request is sent again, if that is safe; retry_wait is the longest Retry-After that the client obeys.

    A client is a context manager: close it, or its connections stay open.
    """

    def __init__(
        self,
        url: Optional[str] = None,
        *,
        socket: Optional[str] = None,
        token: Optional[str] = None,
        ca_file: Optional[str] = None,
        timeout: Optional[float] = 60.0,
        retries: int = 3,
        retry_wait: float = 30.0,
    ) -> None:
        place = find_place(url, socket_path=socket, token=token, ca_file=ca_file)
        self.transport = Transport(place, retries=retries, patience=retry_wait)
        self.timeout = timeout
        self.workspaces = Workspaces(self.transport)
        self._daemon: Optional[LocalDaemon] = None

    @classmethod
    def local(cls, *, fresh: bool = False, options: Sequence[str] = (), binary: Optional[str] = None, **kwargs: Any) -> Caisson:
        """A client of the daemon that runs on this machine; if none runs, of a private daemon that is started now.

        No other program can reach a private daemon. All clients of this process with the same options share it, and it ends with
        the last of them, or with the process, even if the process is killed. fresh=True always starts one. options are those of
        ``caisson serve``; binary is the path of caisson, if it is not in CAISSON_BIN, in PATH or beside a checkout.
        """
        if not fresh and not options:
            client = cls(**kwargs)
            try:
                client.health()
                return client
            except SandboxUnavailable as e:
                client.close()
                if client.transport.place.chosen or isinstance(e, NotServing):
                    raise
        daemon = LocalDaemon.start(binary, options)
        try:
            while not daemon.ready():
                sleep(0.01)
        except BaseException:
            cls._end(daemon)
            raise
        client = cls(**{**kwargs, "socket": daemon.socket, "token": None})
        client._daemon = daemon
        try:
            while client._is_starting() and not daemon.is_late():
                sleep(0.01)
        except BaseException:
            client.close()
            raise
        return client

    def close(self) -> None:
        """Close the connections. A private daemon ends when no other client of this process uses it."""
        self.transport.close()
        daemon, self._daemon = self._daemon, None
        if daemon is not None:
            self._end(daemon)

    @staticmethod
    def _end(daemon: LocalDaemon) -> None:
        daemon.release()
        while not daemon.ended():
            sleep(0.01)

    def __enter__(self) -> Caisson:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} at {self.transport.place}>"

    # -- named sandboxes --

    def create(self, spec: Union[SandboxSpec, str, None] = None, *, name: Optional[str] = None, **more: Any) -> Sandbox:
        """Make a sandbox: from a spec, or from a name and fields of SandboxSpec. Without a name, the daemon chooses one.

        The same call with the same spec returns the same sandbox; with another spec it raises SandboxExists.
        """
        if not isinstance(spec, SandboxSpec):
            spec = SandboxSpec(name=name or spec or f"sb-{uuid.uuid4().hex[:12]}", **more)
        elif more or name:
            raise TypeError(f"a spec takes no further arguments: {', '.join([*more, *(['name'] if name else [])])}")
        headers = {"Idempotency-Key": uuid.uuid4().hex}
        # An image that is named may have to be pulled first; the daemon bounds that.
        timeout = self.timeout if isinstance(spec.image, Unchosen) else None
        answer = self.transport.request("POST", "/v1/sandboxes", json=spec.to_json(), headers=headers, timeout=timeout)
        return Sandbox(self.transport, spec.name, answer.json().get("spec"))

    def get(self, name: str) -> Sandbox:
        """A handle of an existing sandbox; raises SandboxNotFound if it does not exist."""
        answer = self.transport.request("GET", "/v1/sandboxes/" + segment(name), timeout=self.timeout)
        return Sandbox(self.transport, name, answer.json().get("spec"))

    def list(self) -> List[str]:
        """The names of your sandboxes."""
        return [info.name for info in self.sandboxes()]

    def sandboxes(self, labels: Optional[Mapping[str, str]] = None) -> List[SandboxInfo]:
        """Your sandboxes; with labels, those that have all of them."""
        wanted = [f"{key}={value}" for key, value in (labels or {}).items()]
        found: List[SandboxInfo] = []
        cursor: Optional[str] = None
        while True:
            query = given(label=wanted or None, limit=1000, cursor=cursor)
            answer = (self.transport.request("GET", "/v1/sandboxes", query=query, timeout=self.timeout)).json()
            found += [SandboxInfo.from_json(s) for s in answer["sandboxes"]]
            cursor = answer.get("next_cursor")
            if cursor is None:
                return found

    def remove(self, name: str) -> None:
        """Remove a sandbox: everything in it ends, and its name can be used again."""
        self.transport.request("DELETE", "/v1/sandboxes/" + segment(name), timeout=self.timeout)

    # -- one-shot runs --

    def run_python(
        self, code: str, *, image: str = DEFAULT_IMAGE, timeout: Optional[float] = None, stdin: Optional[str] = None, **kwargs: Any
    ) -> ExecResult:
        """Run Python in a sandbox of its own, which is removed afterwards. kwargs: fields of SandboxSpec."""
        body = given(code=code, timeout=timeout, stdin=stdin)
        return self._once("/v1/run_python", body, image, kwargs)

    def run_shell(self, script: str, *, image: str = DEFAULT_IMAGE, timeout: Optional[float] = None, **kwargs: Any) -> ExecResult:
        """Run a shell script in a sandbox of its own, which is removed afterwards."""
        return self._once("/v1/run_shell", given(script=script, timeout=timeout), image, kwargs)

    def _once(self, path: str, body: Mapping[str, Any], image: str, spec: Mapping[str, Any]) -> ExecResult:
        about = SandboxSpec(name="", image=image, **spec).to_json() if spec or not isinstance(image, Unchosen) else {}
        about.pop("name", None)
        answer = self.transport.request("POST", path, json={**about, **body}, timeout=None)
        return ExecResult.from_json(answer.json())

    def execute(
        self,
        code: str,
        *,
        language: Optional[str] = None,
        session_id: Optional[str] = None,
        timeout: Optional[float] = None,
        stdin: Optional[str] = None,
        image: Optional[str] = None,
    ) -> ExecResult:
        """Run code in an interpreter that is ready: in a fresh one, or with session_id in the session's own, which keeps variables."""
        body = given(code=code, language=language, session_id=session_id, timeout=timeout, stdin=stdin, image=image)
        return ExecResult.from_json((self.transport.request("POST", "/execute", json=body, timeout=None)).json())

    def stream(
        self,
        code: str,
        *,
        language: Optional[str] = None,
        session_id: Optional[str] = None,
        timeout: Optional[float] = None,
        stdin: Optional[str] = None,
        image: Optional[str] = None,
    ) -> Execution:
        """As execute(), with output and displays during the run: iterate over its events."""
        body = given(code=code, language=language, session_id=session_id, timeout=timeout, stdin=stdin, image=image)
        return Execution(self.transport, "/execute", body, session_id)

    def install(self, package: str, *, version: Optional[str] = None) -> str:
        """Install a python package for all of your sandboxes. Returns the installed version."""
        body = given(package=package, version=version)
        answer = self.transport.request("POST", "/pip_install", json=body, timeout=None)
        return str(answer.json()["installed_version"])

    # -- tool calls that wait for a person --

    def approvals(self) -> List[Approval]:
        """Tool calls of code in your sandboxes that wait for your decision, the newest first."""
        answer = self.transport.request("GET", "/v1/approvals", timeout=self.timeout)
        return [Approval.from_json(a) for a in answer.json()["approvals"]]

    def approve(self, approval: Union[str, Approval]) -> Approval:
        """Approve the call."""
        return self._decide(approval, {"decision": "approve"})

    def deny(self, approval: Union[str, Approval], reason: Optional[str] = None) -> Approval:
        """Deny the call; the code receives the reason."""
        return self._decide(approval, given(decision="deny", reason=reason))

    def _decide(self, approval: Union[str, Approval], body: Mapping[str, Any]) -> Approval:
        which = approval if isinstance(approval, str) else approval.id
        answer = self.transport.request("POST", "/v1/approvals/" + segment(which), json=body, timeout=self.timeout)
        return Approval.from_json(answer.json())

    # -- the daemon --

    def health(self) -> Mapping[str, Any]:
        """State, version, isolation, pools, languages. Raises SandboxUnavailable if the daemon cannot serve now."""
        return self._object(self.transport.request("GET", "/health", timeout=self.timeout))

    def _is_starting(self) -> bool:
        """Whether the daemon still fills its pools."""
        try:
            self.health()
        except NotServing as e:
            return e.code == "starting"
        return False

    def policy(self) -> Mapping[str, Any]:
        """The limits of the operator's policy for you, and how much of them is in use."""
        return self._object(self.transport.request("GET", "/v1/policy", timeout=self.timeout))

    @staticmethod
    def _object(answer: Any) -> Mapping[str, Any]:
        about = answer.json()
        return about if isinstance(about, dict) else {}

