# SPDX-License-Identifier: Apache-2.0
"""executor.py - SandboxExecutor: code runs in a sandbox, and its value is returned as a Python object, without unpickling anything.

Theory of operation. An executor has a sandbox and a kernel in it (_jupyter.py). It loads the text of _values.py and of the files beside
it into the interpreter once. After code has run, an expression that is part of the request asks the interpreter for the value: the value
of `_result` if the code assigned one, otherwise of the last expression. The interpreter answers with JSON (_encode.py): in the reply itself
if the text is small, and as a file of the sandbox if it is large. The host treats the text as untrusted input (_reader.py).

A line `RESULT_PICKLE:` that code prints is kept apart, as bytes. Loading a pickle runs whatever its author wanted, with the rights of
this process; so only a call with run_code_from_the_sandbox_on_this_host=True loads it.

A sandbox that the executor made ends with the executor: by cleanup(), by `with`, when the object is garbage collected, when the process
ends. preserve_on_exit keeps the sandbox, for another executor with the same name.
"""

from __future__ import annotations

import base64
import binascii
import contextlib
import dataclasses
import pickle
import re
import uuid
import warnings
import weakref
from typing import Any, Callable, Dict, Iterable, List, Mapping, Optional, Sequence, Tuple

from . import _encode, _values
from ._encode import NotReturnable
from ._guest import MIME, MODULE, install_expression, unknown
from ._jupyter import Link, OnOutput, Outcome
from ._sync.client import Caisson
from ._wire import segment
from .errors import CaissonError, NotFound
from .types import CodeError, Display
from .values import BadValue, Limits

INLINE_MAX = 2 << 20  # larger values are files of the sandbox
VARIABLES_MAX = 1 << 20  # size of the code; larger variables are files
PICKLE = "RESULT_PICKLE:"
_ASSIGNS = re.compile(r"^[ \t]*_result[ \t]*(?::[^=\n]*)?=(?!=)", re.M)


class CodeFailed(CaissonError):
    """The code raised an exception, or a limit ended it. ``run`` is the incomplete Run."""

    default_code = "execution_failed"

    def __init__(self, message: str, run: Run, **about: Any) -> None:
        super().__init__(message, **about)
        self.run = run


class ValueUnavailable(CaissonError):
    """The code ran, but its value is not available: it cannot be written as JSON, or the sandbox sent an invalid value."""

    default_code = "value_unavailable"


@dataclasses.dataclass
class Run:
    """How one piece of code ended. Reading value raises the reason why there is no value, for instance that the code failed."""

    stdout: str = ""
    stderr: str = ""
    displays: Tuple[Display, ...] = ()
    error: Optional[CodeError] = None
    text: Optional[str] = None  # text of the last expression, for people
    pickle: Optional[bytes] = dataclasses.field(default=None, repr=False)  # bytes of a RESULT_PICKLE line; never loaded without a request
    truncated: bool = False
    timed_out: bool = False
    state: str = "kept"  # or reset: the interpreter is a new one, without the variables
    _value: Any = dataclasses.field(default=None, repr=False)
    _problem: Optional[CaissonError] = dataclasses.field(default=None, repr=False)

    @property
    def ok(self) -> bool:
        return self.error is None and not self.timed_out

    @property
    def value(self) -> Any:
        self.check()
        if self._problem is not None:
            raise self._problem
        return self._value

    @property
    def output(self) -> str:
        """stdout, then stderr."""
        return self.stdout + self.stderr

    def check(self) -> Run:
        """The run itself if it is ok; otherwise raise CodeFailed."""
        if self.ok:
            return self
        if self.timed_out:
            after = "" if self.state == "kept" else "; its variables are lost"
            raise CodeFailed("the code took too long and was interrupted" + after, self, code="timeout", hint="give it a longer timeout")
        error = self.error or CodeError("error", "")
        raise CodeFailed("%s: %s" % (error.name, error.value) if error.value else error.name, self)


def _remove(client: Caisson, ours: bool, path: Optional[str]) -> None:
    """The end of an executor, also without cleanup(). ours: the client is ours; path: of a sandbox that ends with the executor."""
    try:
        if path:
            with contextlib.suppress(CaissonError):  # it is gone already, or no daemon answers
                client.transport.request("DELETE", path, timeout=10)
    finally:
        if ours:
            client.close()


class SandboxExecutor:
    """A sandbox that runs Python and returns Python. For one thread at a time."""

    def __init__(
        self,
        packages: Sequence[str] = (),
        *,
        client: Optional[Caisson] = None,
        url: Optional[str] = None,
        token: Optional[str] = None,
        name: Optional[str] = None,
        preserve_on_exit: Optional[bool] = None,
        timeout: Optional[float] = 60.0,
        classes: Iterable[type] = (),
        limits: Limits = _values.DEFAULT,
        on_output: Optional[OnOutput] = None,
        **spec: Any,
    ) -> None:
        """
        packages:         packages to install first
        client:           a client of the daemon, for instance Caisson.local(). The caller closes it
        url, token:       address and token of the daemon, if there is no client; by default those in CAISSON_URL and CAISSON_TOKEN
        name:             name of the sandbox. A sandbox that runs already is used, and left running
        preserve_on_exit: whether the sandbox stays when this object ends
        timeout:          timeout of a run, in seconds; None: the daemon's own limit
        classes:          the caller's dataclasses and enums that values may be made of
        on_output:        called with "stdout" or "stderr" and text, while the code runs
        spec:             fields of a sandbox: memory_mib, cpus, env, egress, secrets, image, idle_seconds, labels, ...
        """
        self._ours = client is None
        self._client = Caisson(url, token=token) if client is None else client
        self._transport = self._client.transport
        self._over = weakref.finalize(self, _remove, self._client, self._ours, None)
        self._link: Optional[Link] = None
        self.timeout, self.limits = timeout, limits
        self._classes, self._on_output = tuple(classes), on_output
        self._epoch = -1
        self.installed_packages: List[str] = []
        try:
            existed = self._find(name, spec)
            self._set_end(existed if preserve_on_exit is None else preserve_on_exit)
            self._link = Link(self._transport, self._kernel())
            self.install_packages(packages)
        except BaseException:
            self.cleanup()
            raise

    # -- the sandbox --

    def _find(self, name: Optional[str], spec: Mapping[str, Any]) -> bool:
        """Find or make the sandbox; return whether it existed before."""
        self.name = name or "executor-" + uuid.uuid4().hex[:12]
        if name and not spec:
            try:
                found = self._transport.request("GET", self._path()).json()
                if found.get("state") == "running":
                    return True
            except NotFound:
                pass
        answer = self._transport.request("POST", "/v1/sandboxes", json={"name": self.name, **spec}, timeout=120)
        return answer.status == 200

    def _path(self, more: str = "") -> str:
        return "/v1/sandboxes/" + segment(self.name) + more

    def _kernel(self) -> str:
        body = {"name": "python3", "env": {"KERNEL_SANDBOX": self.name}}
        return str(self._transport.request("POST", "/api/kernels", json=body, timeout=120).json()["id"])

    def _set_end(self, preserve: bool) -> None:
        self.preserve_on_exit = preserve
        self._over.detach()
        self._over = weakref.finalize(self, _remove, self._client, self._ours, None if preserve else self._path())

    @property
    def kernel_id(self) -> str:
        return self._connected().kernel_id

    def _connected(self) -> Link:
        if self._link is None or not self._over.alive:
            raise CaissonError("this executor was cleaned up", code="client_closed")
        return self._link

    # -- code --

    def run(
        self,
        code: str,
        *,
        timeout: Optional[float] = None,
        classes: Optional[Iterable[type]] = None,
        on_output: Optional[OnOutput] = None,
        run_code_from_the_sandbox_on_this_host: bool = False,
    ) -> Run:
        """Run code. The Run has its exception, and its value: of `_result` if the code assigns that, otherwise of its last expression.

        run_code_from_the_sandbox_on_this_host: load the pickle that the code printed after RESULT_PICKLE:. This runs any code that the
        sandbox chooses, on this machine, with your rights: the sandbox then protects nothing.
        """
        link = self._prepared()
        find = "lambda: __import__('__main__')._result" if _ASSIGNS.search(code) else "%s.last" % self._module()
        seconds = self.timeout if timeout is None else timeout
        outcome = link.execute(code, expressions={"value": self._ask(find)}, timeout=seconds, on_output=on_output or self._on_output)
        run = self._made(outcome)
        if run.ok and unknown(outcome.expressions.get("value")):  # the interpreter was already a new one when the code arrived
            outcome = self._install(link, {"value": self._ask(find)})
        if run.ok and run.pickle is not None and run_code_from_the_sandbox_on_this_host:
            run._value, run._problem = pickle.loads(run.pickle), None
        elif run.ok:
            self._evaluate(run, outcome, self._classes if classes is None else classes)
        return run

    def __call__(self, code: str, **options: Any) -> Any:
        """Run code and return its value; raise CodeFailed if the code raised an exception."""
        return self.run(code, **options).value

    def get(self, name: str, classes: Optional[Iterable[type]] = None) -> Any:
        """The value of a variable, or of any expression."""
        outcome = self._install(self._prepared(), {"value": self._ask("lambda: (%s)" % name)})
        run = self._made(outcome).check()
        self._evaluate(run, outcome, self._classes if classes is None else classes)
        return run.value

    def send_variables(self, variables: Mapping[str, Any]) -> None:
        """Set variables of the code to values of this side. Values that are not data are refused here."""
        bad = [n for n in variables if not (isinstance(n, str) and n.isidentifier())]
        if bad:
            raise ValueError("%r is not a valid variable name" % bad[0])
        try:
            text = _encode.encode(dict(variables), self.limits.bytes, "variables")
        except NotReturnable as exc:
            raise ValueUnavailable("variables cannot be sent: %s" % exc, code="not_sendable") from None
        link = self._prepared()
        said = repr(text)
        if len(text) > VARIABLES_MAX:
            path = "/tmp/.variables-" + uuid.uuid4().hex
            self._transport.request("PUT", self._path("/files"), query={"path": path}, content=text.encode())
            said = "%s.take(%r)" % (self._module(), path)
        code = "globals().update(%s.hear(%s, %d, %d))" % (self._module(), said, self.limits.bytes, self.limits.values)
        self._made(link.execute(code, silent=True, timeout=self.timeout)).check()

    def interrupt(self) -> None:
        """Interrupt the running code; call it from another thread."""
        self._connected().interrupt()

    def restart(self) -> None:
        """Start a new interpreter: files and packages stay, variables do not."""
        self._connected().restart()

    def reconnect(self) -> None:
        """Connect anew, now. After a broken connection the next call does this too. Output of the code in the meantime is not lost."""
        self._connected().close()
        self._connected().refresh()

    # -- values --

    @staticmethod
    def _module() -> str:
        return "__import__('sys').modules[%r]" % MODULE

    def _ask(self, find: str) -> str:
        return "%s.say(%s, %d, %d)" % (self._module(), find, self.limits.bytes, INLINE_MAX)

    def _prepared(self) -> Link:
        """The link to an interpreter that has our functions, as far as this side knows."""
        link = self._connected()
        link.refresh()
        if self._epoch != link.epoch:
            self._install(link, {})
        return link

    def _install(self, link: Link, expressions: Mapping[str, str]) -> Outcome:
        """Load our functions into the interpreter if it lacks them, and request values. No user code runs: the last value is kept."""
        epoch = link.epoch
        outcome = link.execute("", silent=True, expressions={"install": install_expression(), **expressions}, timeout=60)
        self._made(outcome).check()
        self._epoch = epoch
        return outcome

    @staticmethod
    def _made(outcome: Outcome) -> Run:
        stdout, pickled = _split_pickle(outcome.stdout)
        text = (outcome.result or {}).get("text/plain")
        return Run(
            stdout,
            outcome.stderr,
            tuple(outcome.displays),
            outcome.error,
            text if isinstance(text, str) else None,
            pickled,
            outcome.truncated,
            outcome.timed_out,
            "reset" if outcome.restarted else "kept",
        )

    def _evaluate(self, run: Run, outcome: Outcome, classes: Iterable[type]) -> None:
        try:
            run._value = _values.decode(self._text(outcome.expressions.get("value")), classes, self.limits)
        except BadValue as exc:
            run._problem = ValueUnavailable("the sandbox sent an invalid value: %s" % exc, code="bad_value")
        except CaissonError as exc:
            run._problem = exc

    def _text(self, said: Any) -> str:
        """The text of a value, from the reply or from a file."""
        data = said.get("data") if isinstance(said, dict) else None
        members = data.get(MIME) if isinstance(data, dict) else None
        if not isinstance(members, dict):
            why = said.get("evalue") if isinstance(said, dict) else None
            raise ValueUnavailable(
                "the interpreter did not send the value" + (": %.500s" % why if why else ""),
                hint="the interpreter may have restarted, or the value may be too large to encode",
            )
        if isinstance(members.get("text"), str):
            return str(members["text"])
        if isinstance(members.get("file"), str):
            return self._fetch(members["file"])
        refused = members.get("refused")
        where, kind, why, hint = (
            (str(x) for x in refused) if isinstance(refused, list) and len(refused) == 4 else ("value", "?", "refused", "")
        )
        raise ValueUnavailable("%s (%s): %s" % (where, kind, why), code="not_returnable", hint=hint or None)

    def _fetch(self, path: str) -> str:
        """Read a file of the sandbox, up to the limit, and remove it."""
        files, query = self._path("/files"), {"path": path}
        data = bytearray()
        with self._transport.open("GET", files, query=query) as body:
            for piece in body:
                data += piece
                if len(data) > self.limits.bytes:
                    hint = "write it to a file and use download()"
                    raise ValueUnavailable("the value is larger than %d bytes" % self.limits.bytes, hint=hint)
        with contextlib.suppress(CaissonError):
            self._transport.request("DELETE", files, query=query)
        try:
            return data.decode("ascii")
        except UnicodeDecodeError:
            raise BadValue("the text is not ASCII") from None

    # -- packages, files, logs --

    def install_packages(self, packages: Sequence[str]) -> List[str]:
        """Install Python packages, all or none; return all installed packages, with versions."""
        if isinstance(packages, str):
            raise TypeError("packages is a list of names")
        if packages:
            body = {"packages": list(packages)}
            answer = self._transport.request("POST", self._path("/packages"), json=body, timeout=None).json()
            self.installed_packages += _package_names(answer)
        return self.installed_packages

    def upload(self, path: str, content: bytes) -> None:
        """Write a file; a relative path is below /workspace."""
        self._transport.request("PUT", self._path("/files"), query={"path": path, "parents": True}, content=content)

    def download(self, path: str) -> bytes:
        return self._transport.request("GET", self._path("/files"), query={"path": path}).body

    def tail_server_logs(self, lines: int = 100) -> str:
        """The last lines of the output of code and commands in the sandbox."""
        return self._transport.request("GET", self._path("/logs"), query={"tail": lines}).body.decode("utf-8", "replace")

    # -- the end --

    def cleanup(self) -> None:
        """Close the connection and remove the sandbox, unless it is preserved. May be called several times."""
        if self._link is not None:
            self._link.close()
        self._over()

    close = cleanup

    def __enter__(self) -> SandboxExecutor:
        return self

    def __exit__(self, *_: object) -> None:
        self.cleanup()

    def __del__(self, _warn: Callable[..., None] = warnings.warn) -> None:
        over = getattr(self, "_over", None)
        if over is not None and over.alive:
            _warn("%r was not cleaned up" % self, ResourceWarning, source=self)
            self.cleanup()

    def __repr__(self) -> str:
        return "<SandboxExecutor %s>" % getattr(self, "name", "?")


def _split_pickle(stdout: str) -> Tuple[str, Optional[bytes]]:
    """The output without its last RESULT_PICKLE line, and that line's bytes."""
    at = stdout.rfind(PICKLE)
    if at < 0 or (at > 0 and stdout[at - 1] != "\n"):
        return stdout, None
    line, _, rest = stdout[at + len(PICKLE) :].partition("\n")
    try:
        return stdout[:at] + rest, base64.b64decode(line.strip(), validate=True)
    except (binascii.Error, ValueError):
        return stdout, None


def _package_names(answer: Mapping[str, Any]) -> List[str]:
    found: List[str] = []
    for one in answer.get("packages", answer.get("installed", ())):
        fields: Dict[str, Any] = one if isinstance(one, dict) else {"name": one}
        found.append("%s==%s" % (fields.get("name"), fields["version"]) if fields.get("version") else str(fields.get("name")))
    return found
