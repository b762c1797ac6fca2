# SPDX-License-Identifier: Apache-2.0
"""_docker_pip.py - Packages for a container without a network: a pip of this machine gets them, for the container's python.

The names come from an agent, so they are names with versions and nothing else: no option, no address, no path. Only wheels are
installed, which pip unpacks without running any code of a package. A wheel may require another package from an address, which pip
would fetch from there, and build on this machine if it is no wheel: such a requirement is an error. The index, its credentials and a
proxy are those of pip's own configuration on this machine.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any, Dict, List, Mapping, Sequence

from .errors import PackageConflict, PackageError, PackageNotFound, PackagesUnavailable

SECONDS = 600
OPTIONS = "install --no-input --no-color --progress-bar off --quiet --no-user --disable-pip-version-check --only-binary :all: --no-compile"
_PART = r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?"
_VERSION = r"(?:===?|~=|!=|<=?|>=?)\s*[A-Za-z0-9.*+!_-]+"
REQUIREMENT = re.compile(rf"{_PART}(?:\[{_PART}(?:\s*,\s*{_PART})*\])?(?:\s*{_VERSION}(?:\s*,\s*{_VERSION})*)?")

# pip judges the conditions of dependencies (PEP 508) by the python that runs it: give it the variables of the other one. And its
# --only-binary is for files of the index: refuse "NAME @ ADDRESS" where pip parses requirements.
RUN = """
import json, sys
from pip._internal.exceptions import InstallationError
from pip._vendor.packaging import markers
from pip._vendor.packaging.requirements import Requirement
own, other = markers.default_environment, json.loads(sys.argv.pop(1))
markers.default_environment = lambda: {**own(), **other}
parse = Requirement.__init__
def refuse_address(self, text):
    parse(self, text)
    if self.url:
        raise InstallationError("a package requires another one from an address, and only the index is asked: %s" % text)
Requirement.__init__ = refuse_address
from pip._internal.cli.main import main
sys.exit(main())
"""

MEANINGS = (
    (
        r"Retrying \(|timed out|Max retries|Failed to establish|SSLError|ProxyError|[45]\d\d (?:Client|Server) Error",
        PackagesUnavailable,
        "index_unavailable",
    ),
    (r"ResolutionImpossible|conflicting dependencies", PackageConflict, "package_conflict"),
    (r"from versions: none", PackageNotFound, "package_not_found"),
    (r"No matching distribution|Could not find a version", PackageNotFound, "version_not_found"),
)
ONLY_WHEELS = "the docker runtime installs wheels only; build others into an image, and set COREASON_SANDBOX_DOCKER_IMAGE to it"


def check_requirement(text: str) -> str:
    if not REQUIREMENT.fullmatch(text.strip()):
        raise PackageError(
            f"{text[:80]!r} is not a name of a package",
            code="invalid_requirement",
            field="package_name",
            hint="write it as pandas, or pandas==2.2.3",
        )
    return text.strip()


async def install(requirements: Sequence[str], target: Mapping[str, Any], into: Path) -> None:
    """Unpack these packages, and those that they need, in a directory. target: the answer of _docker_look.look_python()."""
    python = await _python_with_pip()
    markers: Dict[str, str] = target["markers"]
    argv = [python, "-I", "-c", RUN, json.dumps(markers), *OPTIONS.split(), "--target", str(into), *_tags(target), "--", *requirements]
    with tempfile.TemporaryFile() as log:
        env = {**os.environ, "PIP_REQUIRE_VIRTUALENV": "0"}
        program = await asyncio.create_subprocess_exec(
            *argv, stdin=asyncio.subprocess.DEVNULL, stdout=log, stderr=log, cwd=into.parent, env=env
        )
        try:
            status = await asyncio.wait_for(program.wait(), SECONDS)
        except asyncio.TimeoutError:
            raise PackagesUnavailable(f"pip did not end within {SECONDS} s", code="index_timeout") from None
        finally:
            if program.returncode is None:
                program.kill()
                await program.wait()
        log.seek(0)
        if status:
            raise failed(log.read().decode(errors="replace"))
    _adopt_scripts(into / "bin", python)


def failed(log: str) -> PackageError:
    lines = [line.partition("ERROR: ")[2].strip() for line in log.splitlines() if line.startswith("ERROR: ")]
    why = lines[0] if lines else log.strip()[-300:] or "no reason given"
    for pattern, kind, code in MEANINGS:
        if re.search(pattern, log):
            return kind(f"pip: {why}", code=code, hint=ONLY_WHEELS if kind is PackageNotFound else None)
    return PackageError(f"pip: {why}", code="install_failed")


async def _python_with_pip() -> str:
    for python in (sys.executable, shutil.which("python3")):
        if python:
            looking = await asyncio.create_subprocess_exec(
                python, "-I", "-c", "import pip", stdin=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.DEVNULL
            )
            if await looking.wait() == 0:
                return python
    raise PackagesUnavailable(
        "this machine has no pip, and containers have no network", code="no_installer", hint="install pip (Debian: package python3-pip)"
    )


def _tags(target: Mapping[str, Any]) -> List[str]:
    """pip's options for wheels of that python: its version, and the platforms that its C library has."""
    markers: Dict[str, str] = target["markers"]
    machine, version = markers["platform_machine"], markers["python_version"].replace(".", "")
    glibc = re.match(r"glibc 2\.(\d{1,3})\b", target["libc"] or "")
    if glibc:
        platforms = [f"manylinux_2_{n}_{machine}" for n in range(int(glibc[1]), 4, -1)]
        platforms += [f"{name}_{machine}" for name in ("manylinux2014", "manylinux2010", "manylinux1")]
    else:
        platforms = [f"musllinux_1_{n}_{machine}" for n in (2, 1)]
    short = {"cpython": "cp", "pypy": "pp"}.get(markers["implementation_name"], "py")
    tags = ["--python-version", markers["python_full_version"], "--implementation", short]
    for platform in [*platforms, f"linux_{machine}"]:
        tags += ["--platform", platform]
    return tags + [word for abi in (f"{short}{version}", "abi3", "none") for word in ("--abi", abi)]


def _adopt_scripts(directory: Path, python: str) -> None:
    """pip has written the path of its own python into the programs of the packages."""
    ours = b"#!" + os.fsencode(python) + b"\n"
    for script in directory.glob("*"):
        text = script.read_bytes() if script.is_file() and not script.is_symlink() else b""
        if text.startswith(ours):
            script.write_bytes(b"#!/usr/bin/env python3\n" + text[len(ours) :])
