# SPDX-License-Identifier: Apache-2.0
"""_docker.py - A Docker daemon, over the unix socket of its Engine API.

The transport is the one for daemons of Caisson: HTTP/1.1 over asyncio, without other libraries. connect() agrees on a version of the
API, and refuses a daemon that cannot enforce what the docker runtime promises: limits of memory, processors and processes, and a
seccomp filter. No limit is silently left out.

The attachment of a program (attach(), run()) is a connection that is no longer HTTP: the client writes the program's stdin to it, and
reads frames, each with a header of 8 bytes: 1 for stdout or 2 for stderr, three zeros, and the length.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import json
import os
import socket
from typing import Any, AsyncIterable, Dict, List, Mapping, Optional, Sequence, Tuple

from ._http_async import AsyncBody, AsyncConnection, AsyncTransport
from ._place import Place
from ._wire import Lines, segment
from .errors import (
    CaissonError,
    Conflict,
    ImageUnavailable,
    Misconfigured,
    NotFound,
    ProtocolError,
    RequestRefused,
    SandboxUnavailable,
    ServerFault,
)

SOCKET = "/var/run/docker.sock"
API_OLDEST, API_NEWEST = (1, 41), (1, 47)  # Docker 20.10
FRAME_MAX = 16 << 20
OUTPUT_MAX = 64 << 20  # of run()
PULL_SILENCE = 300.0

# What /info reports, the name for people, and the controller of cgroups.
LIMITS = (("MemoryLimit", "memory", "memory"), ("CpuCfsQuota", "processor time", "cpu"), ("PidsLimit", "processes", "pids"))
REMEDIES = {
    errno.ENOENT: "start Docker, or set DOCKER_HOST to its socket, as in unix:///run/user/1000/docker.sock",
    errno.ECONNREFUSED: "the socket is that of a daemon that has ended: start Docker, or set DOCKER_HOST to the socket of one that runs",
    errno.EACCES: "add this user to the group of the socket (usermod -aG docker USER), or use the socket of a rootless Docker",
}


def find_socket(environ: Optional[Mapping[str, str]] = None) -> str:
    """The path in DOCKER_HOST, or the default one."""
    host = (os.environ if environ is None else environ).get("DOCKER_HOST", "").strip()
    if not host:
        return SOCKET
    scheme, _, path = host.partition("://")
    if scheme != "unix" or not path.startswith("/"):
        raise Misconfigured(
            f"DOCKER_HOST: {host!r} is not a unix socket, as in unix://{SOCKET}",
            field="DOCKER_HOST",
            hint="for a daemon elsewhere, forward its socket: ssh -nNT -L /tmp/docker.sock:/var/run/docker.sock HOST",
        )
    return path


def check_socket(path: str) -> None:
    """Raise SandboxUnavailable unless something serves there, for this user."""
    try:
        with socket.socket(socket.AF_UNIX) as s:
            s.settimeout(10)
            s.connect(path)
    except OSError as e:
        raise unavailable(path, e) from e


def unavailable(path: str, error: OSError) -> SandboxUnavailable:
    why = error.strerror or str(error) or type(error).__name__
    return SandboxUnavailable(f"no Docker daemon answers at {path}: {why}", hint=REMEDIES.get(error.errno or 0))


class Attachment:
    """The connection to a program in a container: its stdin, and the frames of its output."""

    def __init__(self, connection: AsyncConnection, rest: bytes, exec_id: str) -> None:
        self._connection, self._buffer, self.exec_id = connection, bytearray(rest), exec_id

    async def write(self, data: bytes) -> None:
        await self._connection.write(data)

    async def read(self) -> Optional[Tuple[int, bytes]]:
        """The stream (1 or 2) and some of its output; None when the program has ended."""
        while True:
            if len(self._buffer) >= 8:
                end = 8 + int.from_bytes(self._buffer[4:8], "big")
                if self._buffer[0] not in (1, 2) or end > FRAME_MAX:
                    raise ProtocolError(f"not a frame of an output: {bytes(self._buffer[:8])!r}")
                if len(self._buffer) >= end:
                    frame = self._buffer[0], bytes(self._buffer[8:end])
                    del self._buffer[:end]
                    return frame
            data = await self._connection.read(None)
            if not data:
                return None
            self._buffer += data

    def close(self) -> None:
        self._connection.close()


class Docker:
    """A Docker daemon, for the tasks of one event loop."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._transport: Optional[AsyncTransport] = None
        self._pulling = asyncio.Lock()

    # -- the daemon --

    async def connect(self) -> None:
        """Make sure that the daemon answers, and is one that can be used. Raises SandboxUnavailable with the reason."""
        if self._transport is not None:
            return
        check_socket(self.path)
        first = AsyncTransport(Place(path=self.path))
        try:
            said = (await first.request("GET", "/version")).json()
            theirs, oldest = (_version(said[key]) for key in ("ApiVersion", "MinAPIVersion"))
        except (RequestRefused, KeyError, TypeError, ValueError) as e:
            raise SandboxUnavailable(f"the server at {self.path} is not a Docker daemon", hint=REMEDIES[errno.ENOENT]) from e
        finally:
            await first.close()
        if theirs < API_OLDEST or oldest > API_NEWEST:
            raise SandboxUnavailable(
                f"the Docker daemon at {self.path} serves versions {_dotted(oldest)} to {_dotted(theirs)} of its API, and this library "
                f"uses {_dotted(API_OLDEST)} to {_dotted(API_NEWEST)}",
                hint="upgrade Docker to 20.10 or later" if theirs < API_OLDEST else "upgrade this library",
            )
        transport = AsyncTransport(Place(path=self.path, prefix="/v" + _dotted(min(theirs, API_NEWEST))))
        try:
            check_abilities((await transport.request("GET", "/info")).json())
        except BaseException:
            await transport.close()
            raise
        self._transport = transport

    async def close(self) -> None:
        if self._transport is not None:
            await self._transport.close()

    @property
    def transport(self) -> AsyncTransport:
        assert self._transport is not None, "connect() comes first"
        return self._transport

    async def call(self, method: str, path: str, json: Any = None, timeout: float = 60.0, **query: Any) -> Any:
        """A request; the answer from JSON."""
        answer = await self.transport.request(method, path, query=query, json=json, timeout=timeout)
        return answer.json() if answer.body else None

    # -- containers --

    async def create(self, name: str, spec: Mapping[str, Any]) -> None:
        """Make a container; its image is pulled if it is not here."""
        for final in (False, True):
            try:
                await self.call("POST", "/containers/create", dict(spec), name=name)
                return
            except NotFound:
                if final:
                    raise
                await self.pull(spec["Image"])

    async def inspect(self, name: str) -> Dict[str, Any]:
        found = await self.call("GET", f"/containers/{name}/json")
        assert isinstance(found, dict)
        return found

    async def is_running(self, name: str) -> bool:
        try:
            return bool((await self.inspect(name))["State"]["Running"])
        except NotFound:
            return False

    async def remove(self, name: str) -> None:
        """Remove a container and its volumes. One that is not there, or is about to go, is no error."""
        with contextlib.suppress(NotFound, Conflict):
            await self.call("DELETE", f"/containers/{name}", force=True, v=True)

    async def labelled(self, label: str) -> List[Dict[str, Any]]:
        """The containers with a label, those too that do not run."""
        found = await self.call("GET", "/containers/json", all=True, filters=json.dumps({"label": [label]}))
        assert isinstance(found, list)
        return found

    async def ran_out_of_memory(self, name: str, since: float, until: float) -> bool:
        """Whether the daemon saw this in that time."""
        filters = json.dumps({"container": [name], "event": ["oom"]})
        answer = await self.transport.request(
            "GET", "/events", query={"since": f"{since:.9f}", "until": f"{until:.9f}", "filters": filters}
        )
        return bool(answer.body.strip())

    # -- files --

    async def put(self, name: str, directory: str, archive: AsyncIterable[bytes], length: int) -> None:
        """Unpack an archive in a container."""
        query = {"path": directory, "noOverwriteDirNonDir": True}
        headers = {"Content-Type": "application/x-tar"}
        where = f"/containers/{name}/archive"
        await self.transport.request("PUT", where, query=query, content=archive, length=length, headers=headers, timeout=300)

    async def get(self, name: str, path: str) -> AsyncBody:
        """An archive of a file or directory."""
        return await self.transport.open("GET", f"/containers/{name}/archive", query={"path": path}, timeout=300)

    # -- programs --

    async def attach(self, path: str, spec: Any = None, **query: Any) -> Attachment:
        """A connection to the stdin and the output of a program."""
        upgrade = {"Connection": "Upgrade", "Upgrade": "tcp"}
        connection, _, rest = await self.transport.switch(path, query=query, headers=upgrade, method="POST", json=spec, timeout=60)
        return Attachment(connection, rest, path.split("/")[2])

    async def start(self, name: str, argv: Sequence[str], stdin: bool = False) -> Attachment:
        """Start a program in a container."""
        spec = {"AttachStdin": stdin, "AttachStdout": True, "AttachStderr": True, "Cmd": list(argv)}
        made = await self.call("POST", f"/containers/{name}/exec", spec)
        return await self.attach(f"/exec/{made['Id']}/start", {"Detach": False, "Tty": False})

    async def exit_code(self, program: Attachment) -> Optional[int]:
        """The exit code of a program; None if it has not ended."""
        said = await self.call("GET", f"/exec/{program.exec_id}/json")
        code = said["ExitCode"]
        return None if said["Running"] or code is None else int(code)

    async def run(self, name: str, argv: Sequence[str]) -> bytes:
        """The stdout of a program that does not wait for anything."""
        program = await self.start(name, argv)
        output = {1: b"", 2: b""}
        try:
            while True:
                frame = await asyncio.wait_for(program.read(), 60)
                if frame is None:
                    break
                output[frame[0]] += frame[1]
                if len(output[1]) + len(output[2]) > OUTPUT_MAX:
                    raise ProtocolError(f"the output of a program in {name} is longer than {OUTPUT_MAX} bytes")
        except asyncio.TimeoutError:
            raise ServerFault(f"a program in the container {name} does not end", code="sandbox_failed") from None
        finally:
            program.close()
        if not output[1]:
            raise ServerFault(
                f"a program in the container {name} failed: {output[2].decode(errors='replace')[-500:]}", code="sandbox_failed"
            )
        return output[1]

    # -- images --

    async def pull(self, image: str) -> None:
        """Get an image, once for all who wait for it. Raises ImageUnavailable with the reason."""
        async with self._pulling:
            with contextlib.suppress(NotFound):
                await self.call("GET", f"/images/{segment(image)}/json")
                return
            try:
                await self._pull(image)
            except CaissonError as e:
                raise ImageUnavailable(
                    f"the image {image} is not here, and cannot be pulled: {e.message.strip()}",
                    code="image_unavailable",
                    field="image",
                    hint="docker pull, docker load and docker import bring it; COREASON_SANDBOX_DOCKER_IMAGE selects another one",
                ) from e

    async def _pull(self, image: str) -> None:
        name, digest, tag = image.partition("@")
        if not digest:
            name, colon, tag = image.rpartition(":")
            if not colon or "/" in tag:
                name, tag = image, "latest"
        lines = Lines()
        query = {"fromImage": name, "tag": tag}
        async with await self.transport.open("POST", "/images/create", query=query, timeout=PULL_SILENCE) as body:
            async for piece in body:
                for line in lines.feed(piece):
                    said = json.loads(line) if line else {}
                    if said.get("error"):
                        raise ImageUnavailable(said["error"])


def check_abilities(info: Mapping[str, Any]) -> None:
    """Raise SandboxUnavailable, by its description of itself, if the daemon cannot enforce the limits, or has no filter."""
    if info.get("OSType") != "linux":
        raise SandboxUnavailable(f"the Docker daemon runs containers of {info.get('OSType')}", hint="use one that runs Linux containers")
    missing = [limit for limit in LIMITS if not info.get(limit[0])]
    if missing:
        names, controllers = (" and ".join(limit[n] for limit in missing) for n in (1, 2))
        raise SandboxUnavailable(
            f"the Docker daemon cannot limit {names}: it has no cgroup controller {controllers}",
            hint="enable the controller (docker info lists what is missing): on cgroup v1 boot with cgroup_enable=memory; for a rootless "
            "Docker delegate it to the user, in systemd by Delegate=cpu memory pids of user@.service",
        )
    options = info.get("SecurityOptions") or ()
    if any(option.startswith("name=userns") for option in options):
        raise SandboxUnavailable(
            "the Docker daemon maps the users of containers to others (userns-remap): the volumes of a session would not be its own",
            hint="use a daemon without userns-remap, as a rootless one",
        )
    filters = [option for option in options if option.startswith("name=seccomp")]
    if not filters or "profile=unconfined" in filters[0]:
        raise SandboxUnavailable(
            "the Docker daemon has no seccomp filter",
            hint="run dockerd without --seccomp-profile=unconfined, on a Linux kernel with seccomp",
        )


def _version(text: str) -> Tuple[int, int]:
    major, _, minor = text.partition(".")
    return int(major), int(minor)


def _dotted(version: Tuple[int, int]) -> str:
    return "%d.%d" % version
