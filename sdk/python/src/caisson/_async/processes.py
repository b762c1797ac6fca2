# SPDX-License-Identifier: Apache-2.0
"""processes.py - Processes of a sandbox that run in the background.

They belong to the sandbox, not to the client that started them: another client finds them by id, with their output, also for a few
minutes after their end. Output is read by offset; follow() repeats its request, so that a broken connection loses nothing.
"""

from __future__ import annotations

import base64
from typing import AsyncIterator, List, Mapping, Optional, Sequence, Union

from .._glue import as_bytes, asleep, given, listed
from .._http_async import AsyncTransport, Response
from .._wire import segment
from ..records import Output, ProcessInfo
from .terminal import AsyncTerminal, attach

STDIN_PIECE = 256 << 10
WAIT_PIECE = 60
OUTPUT_PIECE = 4 << 20


def to_output(answer: Response, offset: int) -> Output:
    """The Output in the headers and the body of an answer."""
    h = answer.headers
    total = int(h.get("x-output-bytes", 0))
    return Output(answer.body, offset, total, int(h.get("x-output-kept", total)), h.get("x-output-complete") == "true")


class AsyncProcess:
    """One process. info is its last known state."""

    def __init__(self, transport: AsyncTransport, base: str, info: ProcessInfo) -> None:
        self._transport = transport
        self._base = f"{base}/{segment(info.process_id)}"
        self.info = info

    @property
    def id(self) -> str:
        return self.info.process_id

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.id} {self.info.cmd!r} {self.info.state}>"

    async def refresh(self) -> ProcessInfo:
        """Request the present state of the process."""
        return self._updated(await self._transport.request("GET", self._base))

    async def wait(self, timeout: Optional[float] = None) -> ProcessInfo:
        """Wait until the process ends, or until the timeout is over: then info.running is true."""
        left = timeout
        while True:
            now = WAIT_PIECE if left is None else min(left, WAIT_PIECE)
            body = {"timeout": max(now, 0.001)}
            info = self._updated(await self._transport.request("POST", self._base + "/wait", json=body, timeout=now + 60))
            if left is not None:
                left -= now
            if not info.running or (left is not None and left <= 0):
                return info

    async def signal(self, name: Union[str, int] = "TERM") -> ProcessInfo:
        """Send a signal to the process group."""
        return self._updated(await self._transport.request("POST", self._base + "/signal", json={"signal": str(name)}))

    async def kill(self) -> ProcessInfo:
        return await self.signal("KILL")

    async def write(self, data: Union[str, bytes], *, close: bool = False) -> ProcessInfo:
        """Write to stdin. Raises Busy if the process does not read fast enough: try again later."""
        raw = as_bytes(data)
        for at in range(0, len(raw), STDIN_PIECE):
            body = {"data_base64": base64.b64encode(raw[at : at + STDIN_PIECE]).decode()}
            self._updated(await self._transport.request("POST", self._base + "/stdin", json=body))
        return await self.close_stdin() if close else self.info

    async def close_stdin(self) -> ProcessInfo:
        """Close stdin; on a terminal, send Ctrl-D."""
        return self._updated(await self._transport.request("POST", self._base + "/stdin", json={"close": True}))

    async def output(self, stream: str = "stdout", *, offset: int = 0, limit: int = OUTPUT_PIECE) -> Output:
        """The output from an offset on."""
        query = {"stream": stream, "offset": offset, "limit": limit}
        return to_output(await self._transport.request("GET", self._base + "/output", query=query), offset)

    async def follow(self, stream: str = "stdout", *, offset: int = 0) -> AsyncIterator[bytes]:
        """The output while the process runs, until it has ended."""
        pause = 0.01
        while True:
            part = await self.output(stream, offset=offset)
            offset = part.end
            if part.data:
                pause = 0.01
                yield part.data
            elif part.complete or offset < part.total:  # the end, or the rest is not kept
                return
            else:
                await asleep(pause)
                pause = min(pause * 1.5, 0.5)

    async def attach(self, *, offset: Optional[int] = None, stream: Optional[str] = None) -> AsyncTerminal:
        """Live output and input over a WebSocket. Without an offset: all output, or on a terminal the output from now on."""
        return await attach(self._transport, self, self._base + "/attach", offset, stream, own=False)

    async def remove(self) -> None:
        """Kill the process and remove it, with its output."""
        await self._transport.request("DELETE", self._base)

    def _updated(self, answer: Response) -> ProcessInfo:
        self.info = ProcessInfo.from_json(answer.json())
        return self.info


class AsyncProcesses:
    """``sandbox.processes``."""

    def __init__(self, transport: AsyncTransport, base: str) -> None:
        self._transport, self._base = transport, base + "/processes"

    async def start(
        self,
        cmd: str,
        args: Sequence[str] = (),
        *,
        env: Optional[Mapping[str, str]] = None,
        cwd: Optional[str] = None,
        stdin: bool = False,
        pty: bool = False,
        rows: Optional[int] = None,
        cols: Optional[int] = None,
        timeout: Optional[float] = None,
    ) -> AsyncProcess:
        """Start a program. stdin=True keeps its input open for write(); pty=True runs it on a terminal."""
        body = given(
            cmd=cmd,
            args=listed(args),
            env=dict(env) if env else None,
            cwd=cwd,
            stdin=stdin or None,
            pty=pty or None,
            rows=rows,
            cols=cols,
            timeout=timeout,
        )
        return self._one((await self._transport.request("POST", self._base, json=body)).json())

    async def terminal(
        self,
        cmd: str = "bash",
        args: Sequence[str] = (),
        *,
        rows: int = 24,
        cols: int = 80,
        env: Optional[Mapping[str, str]] = None,
        cwd: Optional[str] = None,
    ) -> AsyncTerminal:
        """Start a program on a terminal of its own. The program ends when the terminal is closed."""
        process = await self.start(cmd, args, env={"TERM": "xterm-256color", **(env or {})}, cwd=cwd, pty=True, rows=rows, cols=cols)
        return await attach(self._transport, process, f"{self._base}/{segment(process.id)}/attach", 0, None, own=True)

    async def get(self, process_id: str) -> AsyncProcess:
        """A process that runs, or that ended a short while ago."""
        return self._one((await self._transport.request("GET", f"{self._base}/{segment(process_id)}")).json())

    async def list(self) -> List[AsyncProcess]:
        """All processes, in the order in which they were started."""
        return [self._one(p) for p in (await self._transport.request("GET", self._base)).json()["processes"]]

    def _one(self, obj: Mapping[str, object]) -> AsyncProcess:
        return AsyncProcess(self._transport, self._base, ProcessInfo.from_json(obj))
