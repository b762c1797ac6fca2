# SPDX-License-Identifier: Apache-2.0
"""session_config.py - The configuration of a SessionManager from the environment: COREASON_SANDBOX_*, checked before anything is started.

An invalid variable, a missing variable that another one requires, and an unknown variable raise an error that names it. An empty
variable counts as unset.
"""

from __future__ import annotations

import difflib
import json
import os
from dataclasses import dataclass, field
from typing import Any, Callable, Dict, FrozenSet, Mapping, Optional, Tuple

from .errors import Misconfigured

PREFIX = "COREASON_SANDBOX_"
LOCAL, REMOTE, DOCKER = ("caisson", "local"), ("remote",), ("docker",)
NOT_HERE = {"e2b": "sandboxes of E2B"}  # refused by name
NO_BUCKET = "a daemon of Caisson puts artifacts into buckets, a Docker daemon does not: use download()"


def _runtime(text: str) -> str:
    return text.lower()  # checked together with the others


def _seconds(text: str) -> float:
    seconds = float(text)
    if not 0 < seconds <= 31536000:
        raise ValueError("is not a number of seconds between 0 and a year")
    return seconds


def _number(text: str) -> int:
    number = int(text)
    if not 0 < number < 1 << 31:
        raise ValueError("is not a positive number")
    return number


def _cpus(text: str) -> float:
    cpus = float(text)
    if not 0.01 <= cpus <= 1024:
        raise ValueError("is not a number of processors, as in 0.5")
    return cpus


def _flag(text: str) -> bool:
    words = {"1": True, "true": True, "yes": True, "on": True, "0": False, "false": False, "no": False, "off": False}
    if text.lower() not in words:
        raise ValueError("is neither true nor false")
    return words[text.lower()]


def _names(text: str) -> FrozenSet[str]:
    """A list in JSON, or names separated by commas."""
    names = json.loads(text) if text.lstrip().startswith("[") else text.split(",")
    if not isinstance(names, list) or not all(isinstance(n, str) for n in names):
        raise ValueError('is not a list of names, as in pandas,numpy or ["pandas", "numpy"]')
    return frozenset(canonical(n) for n in names if n.strip())


def canonical(package: str) -> str:
    """A package's name without version, in lower case, with - for _ and . ."""
    name = package.strip()
    for mark in "[<>=!~; @":
        name = name.partition(mark)[0]
    return name.strip().lower().replace("_", "-").replace(".", "-")


@dataclass(frozen=True)
class SandboxConfig:
    """
    runtime:           caisson or local: the daemon at CAISSON_URL, or the daemon of this machine, or one that is started for this
                       process. remote: a daemon elsewhere, by `url` and `token`. docker: containers of the Docker daemon at
                       DOCKER_HOST
    docker_image:      image of the sandboxes; None: the daemon's own, and python:3.11-slim for docker
    memory_mib, cpus, pids:
                       limits of a sandbox; None: the daemon's own, and 512, 1 and 128 for docker
    allowed_packages:  packages that install_package() accepts; None: all that the operator's rules allow
    execution_timeout: timeout of one execution, in seconds
    idle_timeout:      a session that was idle for this time is ended
    """

    runtime: str = "caisson"
    url: Optional[str] = None
    token: Optional[str] = field(default=None, repr=False)
    docker_image: Optional[str] = None
    memory_mib: Optional[int] = None
    cpus: Optional[float] = None
    pids: Optional[int] = None
    allowed_packages: Optional[FrozenSet[str]] = None
    execution_timeout: float = 60.0
    idle_timeout: float = 300.0
    reaper_interval: float = 60.0
    enable_audit_logging: bool = True
    s3_bucket: Optional[str] = None
    s3_region: Optional[str] = None
    s3_access_key: Optional[str] = field(default=None, repr=False)
    s3_secret_key: Optional[str] = field(default=None, repr=False)
    s3_endpoint_url: Optional[str] = None

    def __post_init__(self) -> None:
        self._check_runtime()
        self._check_s3()

    @classmethod
    def from_env(cls, environ: Optional[Mapping[str, str]] = None) -> SandboxConfig:
        env = os.environ if environ is None else environ
        found: Dict[str, Any] = {}
        for name, text in env.items():
            if not name.startswith(PREFIX) or not text.strip():
                continue
            key = name[len(PREFIX) :]
            _require(key != "E2B_API_KEY", key, "is refused: this library runs no sandboxes of E2B", f"unset it; a token is {PREFIX}TOKEN")
            if key not in VARIABLES:
                near = difflib.get_close_matches(key, VARIABLES, 1)
                raise Misconfigured(
                    f"{name}: unknown variable",
                    field=name,
                    hint=f"did you mean {PREFIX}{near[0]}?" if near else "unset it; there are " + ", ".join(PREFIX + v for v in VARIABLES),
                )
            member, read = VARIABLES[key]
            try:
                found[member] = read(text.strip())
            except ValueError as e:
                raise Misconfigured(f"{name}: {text.strip()[:80]!r} {_reason(e)}", field=name) from None
        return cls(**found)

    def _check_runtime(self) -> None:
        there_are = ", ".join(LOCAL + REMOTE + DOCKER)
        _require(
            self.runtime not in NOT_HERE,
            "RUNTIME",
            f"{self.runtime!r} is refused: this library runs no {NOT_HERE.get(self.runtime)}, and does not run the code elsewhere",
            f"set it to one of {there_are}, or unset it",
        )
        _require(self.runtime in LOCAL + REMOTE + DOCKER, "RUNTIME", f"{self.runtime!r} is not one of {there_are}")
        if self.runtime in REMOTE:
            _require(
                bool(self.url or os.environ.get("CAISSON_URL")),
                "URL",
                f"is required with {PREFIX}RUNTIME={self.runtime}: the address of the daemon",
            )

        if self.runtime in DOCKER:
            where = "set DOCKER_HOST to the socket of the Docker daemon"
            for member, key, hint in (("url", "URL", where), ("token", "TOKEN", where), ("s3_bucket", "S3_BUCKET", NO_BUCKET)):
                _require(not getattr(self, member), key, f"has no effect with {PREFIX}RUNTIME={self.runtime}", hint)

    def _check_s3(self) -> None:
        """The daemon has the bucket and its keys (docs/s3.md). The values here are only checked against each other."""
        _require(
            bool(self.s3_access_key) == bool(self.s3_secret_key),
            "S3_SECRET_KEY" if self.s3_access_key else "S3_ACCESS_KEY",
            "is missing: an access key and its secret key belong together",
        )
        if not self.s3_bucket:
            for member, key in (("s3_region", "S3_REGION"), ("s3_endpoint_url", "S3_ENDPOINT_URL"), ("s3_access_key", "S3_ACCESS_KEY")):
                _require(not getattr(self, member), key, f"has no effect without {PREFIX}S3_BUCKET")


def _require(holds: bool, key: str, message: str, hint: Optional[str] = None) -> None:
    if not holds:
        raise Misconfigured(f"{PREFIX}{key}: {message}", field=PREFIX + key, hint=hint)


def _reason(error: ValueError) -> str:
    said = str(error)
    return said if said.startswith("is ") else "is not a number" if "float" in said or "int()" in said else "cannot be read"


VARIABLES: Dict[str, Tuple[str, Callable[[str], Any]]] = {
    "RUNTIME": ("runtime", _runtime),
    "URL": ("url", str),
    "TOKEN": ("token", str),
    "DOCKER_IMAGE": ("docker_image", str),
    "MEMORY_MIB": ("memory_mib", _number),
    "CPUS": ("cpus", _cpus),
    "PIDS": ("pids", _number),
    "ALLOWED_PACKAGES": ("allowed_packages", _names),
    "EXECUTION_TIMEOUT": ("execution_timeout", _seconds),
    "IDLE_TIMEOUT": ("idle_timeout", _seconds),
    "REAPER_INTERVAL": ("reaper_interval", _seconds),
    "ENABLE_AUDIT_LOGGING": ("enable_audit_logging", _flag),
    "S3_BUCKET": ("s3_bucket", str),
    "S3_REGION": ("s3_region", str),
    "S3_ACCESS_KEY": ("s3_access_key", str),
    "S3_SECRET_KEY": ("s3_secret_key", str),
    "S3_ENDPOINT_URL": ("s3_endpoint_url", str),
}
