# SPDX-License-Identifier: Apache-2.0
"""executor.py - SandboxExecutor: code runs in a sandbox, and its value comes back as a Python object, without unpickling anything.

Theory of operation. An executor has a sandbox and a kernel in it (_jupyter.py). The text of _values.py and the files beside it is put
into the interpreter once. After code has run, the interpreter is asked for its value by an expression that comes with the request: what
the code assigned to `_result`, or else its last expression. It answers with JSON (_encode.py), in the reply itself when that is small and
as a file of the sandbox when it is large. The host reads it as what it is, the word of a stranger (_reader.py).

A line `RESULT_PICKLE:` that code prints is kept apart, as bytes. Loading a pickle runs whatever its author wanted, with the rights of
this process; so that happens only in a call that says run_code_from_the_sandbox_on_this_host=True.

A sandbox that the executor has made ends with it: by cleanup(), by `with`, when the object is lost, when the process ends.
preserve_on_exit keeps it, for another executor with the same name.
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

INLINE_MAX = 2 << 20  # a larger value is a file of the sandbox
VARIABLES_MAX = 1 << 20  # as code; larger ones are a file
PICKLE = "RESULT_PICKLE:"
_ASSIGNS = re.compile(r"^[ \t]*_result[ \t]*(?::[^=\n]*)?=(?!=)", re.M)


class CodeFailed(CaissonError):
    """The code raised, or a limit ended it. ``run`` is what there is of it."""

    default_code = "execution_failed"

    def __init__(self, message: str, run: Run, **about: Any) -> None:
        super().__init__(message, **about)
        self.run = run


class ValueUnavailable(CaissonError):
    """The code ran, but its value can not be had: there is no JSON for it, or what came is none."""

    default_code = "value_unavailable"


@dataclasses.dataclass
class Run:
    """How one piece of code ended. value raises what stands in its way, also that the code failed, and only when it is asked for."""

    stdout: str = ""
    stderr: str = ""
    displays: Tuple[Display, ...] = ()
    error: Optional[CodeError] = None
    text: Optional[str] = None  # of the last expression, for people
    pickle: Optional[bytes] = dataclasses.field(default=None, repr=False)  # of a RESULT_PICKLE line; never loaded by itself
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
        """Itself when it went well, otherwise CodeFailed."""
        if self.ok:
            return self
        if self.timed_out:
            after = "" if self.state == "kept" else "; its variables are lost"
            raise CodeFailed("the code took too long, and was interrupted" + after, self, code="timeout", hint="give it a longer timeout")
        error = self.error or CodeError("error", "")
        raise CodeFailed("%s: %s" % (error.name, error.value) if error.value else error.name, self)


def _remove(client: Caisson, ours: bool, path: Optional[str]) -> None:
    """The end of an executor, also when nobody called cleanup(). ours: the client; path: of a sandbox that ends with it."""
    try:
        if path:
            with contextlib.suppress(CaissonError):  # gone already, or nobody there to remove it
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
        packages:         installed first
        client:           of the daemon; Caisson.local() for instance. It is yours to close
        url, token:       of the daemon, without a client; otherwise as CAISSON_URL and CAISSON_TOKEN say
        name:             of the sandbox. One that runs already is used, and left as it was found
        preserve_on_exit: whether the sandbox stays when this object ends
        timeout:          of a run, in seconds; None: the daemon's own limit
        classes:          your own dataclasses and enums that values may be made of
        on_output:        called with "stdout" or "stderr" and text, as it comes
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
        """Find or make the sandbox; whether it was there before."""
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
        """Run code. Its exception is in the Run; so is its value: of `_result` if the code assigns that, otherwise of its last expression.

        run_code_from_the_sandbox_on_this_host: load the pickle that the code printed behind RESULT_PICKLE:. That runs whatever the code in
        the sandbox wants, here, with your rights. The sandbox is then none.
        """
        link = self._prepared()
        find = "lambda: __import__('__main__')._result" if _ASSIGNS.search(code) else "%s.last" % self._module()
        seconds = self.timeout if timeout is None else timeout
        outcome = link.execute(code, expressions={"value": self._ask(find)}, timeout=seconds, on_output=on_output or self._on_output)
        run = self._made(outcome)
        if run.ok and unknown(outcome.expressions.get("value")):  # the interpreter was a new one already when the code came
            outcome = self._install(link, {"value": self._ask(find)})
        if run.ok and run.pickle is not None and run_code_from_the_sandbox_on_this_host:
            run._value, run._problem = pickle.loads(run.pickle), None
        elif run.ok:
            self._evaluate(run, outcome, self._classes if classes is None else classes)
        return run

    def __call__(self, code: str, **options: Any) -> Any:
        """Run code and return its value; CodeFailed when it raised."""
        return self.run(code, **options).value

    def get(self, name: str, classes: Optional[Iterable[type]] = None) -> Any:
        """The value of a variable, or of any expression."""
        outcome = self._install(self._prepared(), {"value": self._ask("lambda: (%s)" % name)})
        run = self._made(outcome).check()
        self._evaluate(run, outcome, self._classes if classes is None else classes)
        return run.value

    def send_variables(self, variables: Mapping[str, Any]) -> None:
        """Set variables of the code to values of this side. What is no data is refused, here."""
        bad = [n for n in variables if not (isinstance(n, str) and n.isidentifier())]
        if bad:
            raise ValueError("%r is no name of a variable" % bad[0])
        try:
            text = _encode.encode(dict(variables), self.limits.bytes, "variables")
        except NotReturnable as exc:
            raise ValueUnavailable("variables can not be sent: %s" % exc, code="not_sendable") from None
        link = self._prepared()
        said = repr(text)
        if len(text) > VARIABLES_MAX:
            path = "/tmp/.variables-" + uuid.uuid4().hex
            self._transport.request("PUT", self._path("/files"), query={"path": path}, content=text.encode())
            said = "%s.take(%r)" % (self._module(), path)
        code = "globals().update(%s.hear(%s, %d, %d))" % (self._module(), said, self.limits.bytes, self.limits.values)
        self._made(link.execute(code, silent=True, timeout=self.timeout)).check()

    def interrupt(self) -> None:
        """Interrupt what runs; for another thread."""
        self._connected().interrupt()

    def restart(self) -> None:
        """A new interpreter: files and packages stay, variables do not."""
        self._connected().restart()

    def reconnect(self) -> None:
        """Connect anew, now. The next call would, too, if the connection is broken. What the code said meanwhile is not lost."""
        self._connected().close()
        self._connected().refresh()

    # -- values --

    @staticmethod
    def _module() -> str:
        return "__import__('sys').modules[%r]" % MODULE

    def _ask(self, find: str) -> str:
        return "%s.say(%s, %d, %d)" % (self._module(), find, self.limits.bytes, INLINE_MAX)

    def _prepared(self) -> Link:
        """The link, to an interpreter that knows how to say a value, as far as one knows."""
        link = self._connected()
        link.refresh()
        if self._epoch != link.epoch:
            self._install(link, {})
        return link

    def _install(self, link: Link, expressions: Mapping[str, str]) -> Outcome:
        """Teach the interpreter, if it does not know yet, and ask it. No code runs: the value of what ran last stays what it was."""
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
            run._problem = ValueUnavailable("what the sandbox sent is no value: %s" % exc, code="bad_value")
        except CaissonError as exc:
            run._problem = exc

    def _text(self, said: Any) -> str:
        """The text of a value, wherever it is."""
        data = said.get("data") if isinstance(said, dict) else None
        members = data.get(MIME) if isinstance(data, dict) else None
        if not isinstance(members, dict):
            why = said.get("evalue") if isinstance(said, dict) else None
            raise ValueUnavailable(
                "the interpreter did not say what the value is" + (": %.500s" % why if why else ""),
                hint="was it restarted, or is the value too large to look at?",
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
        """A file of the sandbox, up to the limit, and away with it."""
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
        """Install Python packages, all or none; what is installed now, with versions."""
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
        """The end of what code and commands of the sandbox wrote."""
        return self._transport.request("GET", self._path("/logs"), query={"tail": lines}).body.decode("utf-8", "replace")

    # -- the end --

    def cleanup(self) -> None:
        """Close the connection and remove the sandbox, unless it is to be preserved. As often as you like."""
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
    """What was printed without its last RESULT_PICKLE line, and that line's bytes."""
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
