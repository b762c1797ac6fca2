# SPDX-License-Identifier: Apache-2.0
# Made from ../_async/parts.py by tools/unasync.py. Change it there.
"""parts.py - Ports, packages, egress and executions: the smaller parts of a sandbox."""

from __future__ import annotations

from typing import Iterable, List, Optional, Sequence

from .._glue import given, listed
from .._http import Transport
from .._wire import segment
from ..records import ExecutionInfo, Installed, Match, Net, Output, Package, Port
from .processes import to_output
from .stream import Execution, Installation

PAGE = 1000  # lines of one answer


class Ports:
    """``sandbox.ports``: services in the sandbox that clients reach through the daemon."""

    def __init__(self, transport: Transport, base: str) -> None:
        self._transport, self._base = transport, base + "/ports"

    def open(self, port: int) -> Port:
        """Open the port. The url in the answer has a token of its own: everybody who has it may use this service, and nothing else."""
        return Port.from_json((self._transport.request("POST", f"{self._base}/{port}", json={})).json())

    def get(self, port: int) -> Port:
        return Port.from_json((self._transport.request("GET", f"{self._base}/{port}")).json())

    def list(self) -> List[Port]:
        return [Port.from_json(p) for p in (self._transport.request("GET", self._base)).json()["ports"]]

    def close(self, port: int) -> None:
        """Close the port: its connections are closed, and its token becomes invalid."""
        self._transport.request("DELETE", f"{self._base}/{port}")


class Packages:
    """``sandbox.packages``: the daemon installs them, if the operator allows it."""

    def __init__(self, transport: Transport, base: str) -> None:
        self._transport, self._base = transport, base + "/packages"

    def install(self, *packages: str, language: str = "python", upgrade: bool = False) -> Installed:
        """Install packages of the index, with or without versions: ``install("numpy>=1.26", "pandas")``.

        ``upgrade``: the newest version, also if the image has one that would do.
        """
        body = {"packages": list(packages), "language": language, **({"upgrade": True} if upgrade else {})}
        return Installed.from_json((self._transport.request("POST", self._base, json=body, timeout=None)).json())

    def stream(self, *packages: str, language: str = "python") -> Installation:
        """As install(), with events of the progress: iterate over it."""
        return Installation(self._transport, self._base, {"packages": list(packages), "language": language})

    def list(self) -> List[Package]:
        return [Package.from_json(p) for p in (self._transport.request("GET", self._base)).json()["packages"]]


class Egress:
    """``sandbox.egress``: the hosts that the sandbox may reach, by name, and its connections."""

    def __init__(self, transport: Transport, base: str) -> None:
        self._transport, self._base = transport, base

    def get(self) -> List[str]:
        return list_of(self._transport_json("/egress"))

    def set(self, hosts: Iterable[str]) -> List[str]:
        """Allow these hosts and no others from now on. Connections that the list does not allow are closed."""
        answer = self._transport.request("PUT", self._base + "/egress", json={"egress": listed(hosts)})
        return list_of(answer.json())

    def net(self) -> Net:
        """Open connections, and numbers of bytes and of refusals."""
        return Net.from_json(self._transport_json("/net"))  # type: ignore[arg-type]

    def _transport_json(self, path: str) -> object:
        return (self._transport.request("GET", self._base + path)).json()


def list_of(answer: object) -> List[str]:
    return [str(host) for host in answer["egress"]]  # type: ignore[index]


class Executions:
    """``sandbox.executions``: executions that run, and those that ended a short while ago."""

    def __init__(self, transport: Transport, base: str, name: str) -> None:
        self._transport, self._base, self._name = transport, base + "/executions", name

    def list(self) -> List[ExecutionInfo]:
        """All executions, the oldest first."""
        answer = self._transport.request("GET", self._base)
        return [ExecutionInfo.from_json(e) for e in answer.json()["executions"]]

    def get(self, execution_id: str) -> ExecutionInfo:
        return ExecutionInfo.from_json((self._transport.request("GET", self._at(execution_id))).json())

    def attach(self, execution_id: str, *, cursor: int = 0) -> Execution:
        """The events of a streamed execution, from after a cursor on. Leaving the stream before its end interrupts the execution."""
        return Execution(self._transport, self._base, {}, self._name, execution_id, cursor)

    def interrupt(self, execution_id: str) -> None:
        """Interrupt the execution, as Ctrl-C does. Raises NothingRuns if it has ended."""
        self._transport.request("POST", self._at(execution_id) + "/interrupt", json={})

    def output(self, execution_id: str, stream: str = "stdout", *, offset: int = 0, limit: int = 4 << 20) -> Output:
        """The output by offset, including the part that was too long for the result."""
        query = {"stream": stream, "offset": offset, "limit": limit}
        return to_output(self._transport.request("GET", self._at(execution_id) + "/output", query=query), offset)

    def search(
        self, execution_id: str, pattern: str, *, glob: bool = False, stream: str = "stdout", limit: int = 100
    ) -> List[Match]:
        """The first lines of the output that contain a text; with glob, a pattern with `*` and `?`."""
        found: List[Match] = []
        offset: Optional[int] = 0
        while offset is not None and len(found) < limit:
            query = given(pattern=pattern, glob=glob or None, stream=stream, limit=min(limit - len(found), PAGE), offset=offset)
            answer = (self._transport.request("GET", self._at(execution_id) + "/search", query=query)).json()
            found += [Match(m["offset"], m["line"], m["text"]) for m in answer["matches"]]
            offset = answer.get("next_offset")
        return found

    def _at(self, execution_id: str) -> str:
        return f"{self._base}/{segment(execution_id)}"


__all__: Sequence[str] = ["Egress", "Executions", "Packages", "Ports"]
