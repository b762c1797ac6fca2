# SPDX-License-Identifier: Apache-2.0
"""_runtime_docker.py - Containers of a Docker daemon as runtimes of sessions.

Theory of operation. A session is a container without a network, with a read-only root, without capabilities, with the default filter,
as an ordinary user, and with limits of memory, processors and processes. /workspace, /tmp and the home directory are volumes in memory,
so their size is limited, and Docker's archive calls reach them. Packages are in another volume, which only root can write.

The pid 1 of a container is a program of ours (INIT), which ends when its stdin ends, and this process holds the other end: when this
process dies, however it dies, the container ends, and Docker removes it with its volumes. reap() removes what that leaves: a container
that was made and never started. All executions of a session run in one kernel (_docker_guest.py), one after another. An execution that
takes too long, or whose caller gives up, is killed with everything else in the container, by pid 1, which needs no new process for it.
The variables are then lost, and files are kept. The request is a byte on the stdin of pid 1, which writes it back when nothing else is
left. Until then no kernel starts: pid 1 may run late on a busy machine, and it would kill the new kernel with the old one.

Everything that comes out of a container is data of the code in it. The exit of a kernel and the end of memory are reported by the daemon.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import posixpath
import secrets
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any, Awaitable, Dict, List, Optional, Tuple, TypeVar

from . import _docker_pip
from ._archive import file_end, file_head, pack, unpack_file
from ._docker import Attachment, Docker, check_socket, find_socket
from ._docker_files import archive_parts, checked_answer, refused_file
from ._docker_kernel import Execution
from ._docker_owner import OWNER, is_abandoned, owner
from ._runtime import Backend, ExecutionResult, FileReference, LocalFile, SandboxRuntime, check_allowed, file_reference, replacing
from .errors import (
    CaissonError,
    ImageUnavailable,
    InvalidRequest,
    LanguageUnavailable,
    RequestRefused,
    SandboxNotFound,
    SandboxStopped,
    ServerFault,
)
from .session_config import SandboxConfig, canonical

T = TypeVar("T")
log = logging.getLogger("caisson.sessions")
IMAGE, MEMORY_MIB, CPUS, PIDS = "python:3.11-slim", 512, 1.0, 128
USER = 1000
WORKSPACE, HOME, PACKAGES = "/workspace", "/home/agent", "/opt/caisson"
START_SECONDS = 60.0
END_SECONDS = 30.0
OOM_SECONDS = 2.0

PYTHON = ["python3", "-I", "-X", "utf8"]
KERNEL, LOOK = (Path(__file__).with_name(f"_docker_{name}.py").read_text(encoding="utf-8") for name in ("guest", "look"))
# The code in the container is of the same user: it must not open the stdin of pid 1, or trace it.
# A kill that has not succeeded after 30 s is not answered, so that the end of stdin is noticed again.
INIT = """
import ctypes, os, signal, time
ctypes.CDLL(None).prctl(4, 0)

def kill_all():
    for _ in range(3000):
        try:
            os.kill(-1, signal.SIGKILL)
        except ProcessLookupError:
            return True
        time.sleep(0.01)

signal.signal(signal.SIGCHLD, signal.SIG_IGN)
os.write(1, b"ready")
while True:
    request = os.read(0, 4096)
    if not request:
        break
    if kill_all():
        os.write(1, request)
"""
LANGUAGES = ("python", "bash")
NO_NETWORK = "a container has no network: upload() brings files, and install_package() packages"
NETWORK_WORDS = ("Temporary failure in name resolution", "Name or service not known", "Network is unreachable")
START_AGAIN = "get_or_create_session() makes a new one"


async def in_time(step: Awaitable[T]) -> T:
    """A step of a start."""
    try:
        return await asyncio.wait_for(step, START_SECONDS)
    except asyncio.TimeoutError:
        raise ServerFault(f"the container did not start within {START_SECONDS:g} s", code="sandbox_failed") from None


class DockerBackend(Backend):
    """The Docker daemon at DOCKER_HOST."""

    def __init__(self, config: SandboxConfig) -> None:
        self._config = config
        self._path = find_socket()
        check_socket(self._path)  # reports now that nothing answers there
        self._docker: Optional[Docker] = None

    async def runtime(self, session_id: str) -> SandboxRuntime:
        if self._docker is None:
            docker = Docker(self._path)
            await docker.connect()
            self._docker = docker
            await self.reap()
        return DockerRuntime(session_id, self._config, self._docker)

    async def reap(self) -> None:
        if self._docker is not None:
            for container in await self._docker.labelled(OWNER):
                if is_abandoned(container):
                    try:
                        await self._docker.remove(container["Id"])
                    except CaissonError as e:
                        log.warning("the container %s of a dead program could not be removed: %s", container["Id"][:12], e)

    async def close(self) -> None:
        if self._docker is not None:
            await self._docker.close()


class DockerRuntime(SandboxRuntime):
    """A container."""

    def __init__(self, session_id: str, config: SandboxConfig, docker: Docker) -> None:
        self._session_id, self._config, self._docker = session_id, config, docker
        self._name: Optional[str] = None
        self._lease: Optional[Attachment] = None
        self._kills = 0  # requests that pid 1 has not answered
        self._kernel: Optional[Attachment] = None
        self._turn = asyncio.Lock()
        self._requirements: List[str] = []
        self._packages: Optional[str] = None
        self._installations = 0

    # -- life --

    async def start(self) -> None:
        if self._name is not None and await self._docker.is_running(self._name):
            return
        await self.terminate()
        self._name = "caisson-" + secrets.token_hex(8)  # known before the container exists, so that it can be removed in any case
        try:
            await self._docker.create(self._name, self._spec())
            self._lease = await self._docker.attach(f"/containers/{self._name}/attach", stream=True, stdin=True, stdout=True)
            await self._start_container()
            if await in_time(self._lease.read()) is None:
                raise self._wrong_image("has a python3 that does not run")
        except BaseException:
            await self.terminate()
            raise

    async def _start_container(self) -> None:
        try:
            await self._docker.call("POST", f"/containers/{self._name}/start")
        except RequestRefused as e:
            if "python3" not in e.message:
                raise
            raise self._wrong_image("has no python3") from e

    def _wrong_image(self, why: str) -> ImageUnavailable:
        hint = f"set COREASON_SANDBOX_DOCKER_IMAGE to an image that has python 3.8 or later, as {IMAGE}"
        return ImageUnavailable(f"the image {self._image} {why}", code="image_unavailable", field="image", hint=hint)

    @property
    def _image(self) -> str:
        return self._config.docker_image or IMAGE

    def _spec(self) -> Dict[str, Any]:
        memory = (self._config.memory_mib or MEMORY_MIB) << 20
        # Files are in the memory of the container: seven eighths of it, as in a cell.
        options = f"size={memory // 8 * 7},nr_inodes={memory >> 12},uid={USER},gid={USER},nosuid,nodev"
        volumes = [
            {
                "Type": "volume",
                "Target": target,
                "VolumeOptions": {
                    "DriverConfig": {"Name": "local", "Options": {"type": "tmpfs", "device": "tmpfs", "o": f"{options},mode={mode}"}}
                },
            }
            for target, mode in ((WORKSPACE, "0755"), (HOME, "0755"), ("/tmp", "1777"))
        ]
        return {
            "Image": self._image,
            "Entrypoint": [*PYTHON, "-S", "-c", INIT],
            "Cmd": [],
            "User": f"{USER}:{USER}",
            "WorkingDir": WORKSPACE,
            "Env": [f"HOME={HOME}", "USER=agent"],
            "Labels": {OWNER: owner(), "caisson.session": self._session_id},
            "OpenStdin": True,
            "StdinOnce": True,
            "StopSignal": "SIGKILL",
            "Healthcheck": {"Test": ["NONE"]},
            "HostConfig": {
                "NetworkMode": "none",
                "ReadonlyRootfs": True,
                "CapDrop": ["ALL"],
                "SecurityOpt": ["no-new-privileges"],
                "Memory": memory,
                "MemorySwap": memory,
                "NanoCpus": int((self._config.cpus or CPUS) * 1e9),
                "PidsLimit": self._config.pids or PIDS,
                "Ulimits": [{"Name": "core", "Soft": 0, "Hard": 0}],
                "CgroupnsMode": "private",
                "IpcMode": "private",
                "LogConfig": {"Type": "none"},
                "AutoRemove": True,
                "Mounts": [*volumes, {"Type": "volume", "Target": PACKAGES}],
            },
        }

    async def terminate(self) -> None:
        name, self._name = self._name, None
        self._drop_kernel()
        if self._lease:
            self._lease.close()
        self._lease, self._kills, self._requirements, self._packages = None, 0, [], None
        if name is not None:
            await self._docker.remove(name)

    @property
    def _container(self) -> str:
        if self._name is None:
            raise SandboxNotFound(f"the sandbox of {self._session_id!r} has ended", code="no_such_sandbox")
        return self._name

    # -- code --

    async def execute(self, code: str, language: str = "python") -> ExecutionResult:
        language = language.lower()
        if language not in LANGUAGES:
            raise LanguageUnavailable(
                f"{language!r} does not run in containers", code="unknown_language", hint="languages are python and bash"
            )
        if language == "bash" and "\0" in code:
            raise InvalidRequest("code of bash cannot contain a NUL", code="invalid_value", field="code")
        async with self._turn:
            name = self._container
            note = await self._ready(name)
            assert self._kernel is not None
            run = Execution(self._kernel)
            began, since = time.monotonic(), time.time()
            late = await self._follow(run, code, language)
            seconds = time.monotonic() - began
            if late:
                return run.result(seconds, 124, "timeout", self._late_hint())
            if run.report is None:
                return run.result(seconds, *await self._end_of(run.kernel, name, since))
            if "missing" in run.report:
                raise LanguageUnavailable(f"the image {self._image} has no {language}", code="language_unavailable", field="language")
            exit_code = run.report["exit_code"]
            result = run.result(seconds, exit_code, "error" if exit_code else "ok", note)
            unreachable = exit_code and not note and any(words in result.stderr for words in NETWORK_WORDS)
            return replace(result, hint=NO_NETWORK) if unreachable else result

    async def _follow(self, run: Execution, code: str, language: str) -> bool:
        """Run the code to its end, or to the end of its time: then true, and everything that runs was killed."""
        reading = asyncio.ensure_future(run.follow(code, language, self._packages))
        late = False
        try:
            await asyncio.wait({reading}, timeout=self._config.execution_timeout)
            if not reading.done():
                late = True
                await self._kill_all()
                await asyncio.wait({reading}, timeout=END_SECONDS)
            if reading.done():
                reading.result()
            else:
                await self.terminate()
        except BaseException:  # also a caller that gives up
            await self._kill_all()
            raise
        finally:
            reading.cancel()
            if late or run.report is None:
                self._drop_kernel()
        return late

    async def _ready(self, name: str) -> Optional[str]:
        """Make sure that there is a kernel. Returns a hint if one has ended since the last execution."""
        note = None
        await self._wait_for_kills()
        try:
            if self._kernel and await self._docker.exit_code(self._kernel) is not None:
                note = "the interpreter was ended after the last execution: its variables are lost, files are kept"
                self._drop_kernel()
            if not self._kernel:
                self._kernel = await self._start_kernel(name)
        except RequestRefused as e:
            await self._check_running(name, e)
            raise
        return note

    async def _start_kernel(self, name: str) -> Attachment:
        """A kernel that has run nothing yet: its start is no part of the time of an execution."""
        kernel = await self._docker.start(name, [*PYTHON, "-c", KERNEL], stdin=True)
        first = Execution(kernel)
        try:
            await in_time(first.follow("", "python", None))
            if first.report is None:
                said = first.result(0, 1, "failed", None)  # the daemon writes to stdout why it could not start a program
                why = (said.stderr.strip() or said.stdout.strip()).rpartition("\n")[2] or "it ended and printed nothing"
                raise self._wrong_image(f"has a python3 that does not run the kernel: {why}")
        except BaseException:
            kernel.close()
            raise
        return kernel

    async def _check_running(self, name: str, error: CaissonError) -> None:
        """Raise SandboxStopped if the container is the reason of an error."""
        if not await self._docker.is_running(name):
            raise SandboxStopped(f"the container of {self._session_id!r} has ended", code="sandbox_stopped", hint=START_AGAIN) from error

    def _drop_kernel(self) -> None:
        kernel, self._kernel = self._kernel, None
        if kernel:
            kernel.close()

    async def _kill_all(self) -> None:
        """Kill everything in the container except its pid 1, which does it. Nothing of it is left after this."""
        if self._lease:
            self._kills += 1
            with contextlib.suppress(CaissonError):  # the container has ended
                await self._lease.write(b"k")
            await self._wait_for_kills()

    async def _wait_for_kills(self) -> None:
        """Also for those whose caller gave up a second time. A container that still has other processes is removed."""
        try:
            await asyncio.wait_for(self._read_answers(), END_SECONDS)
        except asyncio.TimeoutError:
            await self.terminate()

    async def _read_answers(self) -> None:
        with contextlib.suppress(CaissonError):
            while self._kills and self._lease:
                frame = await self._lease.read()
                if frame is None:
                    break
                self._kills -= len(frame[1])

    def _late_hint(self) -> str:
        killed = "everything in the container was killed: variables are lost, files are kept"
        ended = f"the container was removed: variables and files are lost, and {START_AGAIN}"
        remedy = "do less at once, or raise COREASON_SANDBOX_EXECUTION_TIMEOUT"
        return f"after {self._config.execution_timeout:g} s {killed if self._name else ended}; {remedy}"

    async def _end_of(self, kernel: Attachment, name: str, since: float) -> Tuple[int, str, str]:
        """The exit code, the status and the hint for code whose kernel ended before it: by the daemon's word."""
        code = None
        with contextlib.suppress(RequestRefused):
            for _ in range(100):
                code = await self._docker.exit_code(kernel)
                if code is not None:
                    break
                await asyncio.sleep(0.02)
        if code == 137 and await self._was_out_of_memory(name, since):
            limit = self._config.memory_mib or MEMORY_MIB
            return (
                code,
                "limit",
                f"the memory of the container ({limit} MiB, files included) was used up: variables are lost; use less at once",
            )
        if code is None or code > 128:
            signal = f" by signal {code - 128}" if code else ""
            return code or 137, "signal", f"the interpreter was ended{signal}: variables are lost, files are kept"
        return code, "error" if code else "ok", "the code ended its interpreter: variables are lost, files are kept"

    async def _was_out_of_memory(self, name: str, since: float) -> bool:
        """The daemon hears of it a moment later than of the end of the process."""
        until = time.monotonic() + OOM_SECONDS
        while not await self._docker.ran_out_of_memory(name, since, time.time()):
            if time.monotonic() > until:
                return False
            await asyncio.sleep(0.1)
        return True

    # -- files --

    async def _look(self, op: str, path: str = "") -> Any:
        """The answer of the container to a question, as its user. Raises what the path leads to."""
        if "\0" in path:
            raise InvalidRequest("a path cannot contain a NUL", code="bad_path", field="path")
        name = self._container
        try:
            said = await self._docker.run(name, [*PYTHON, "-S", "-c", LOOK, op, path])
        except RequestRefused as e:
            await self._check_running(name, e)
            raise
        return checked_answer(op, path, said)

    async def upload(self, local_path: LocalFile, remote_path: str) -> None:
        with open(local_path, "rb") as f:
            size = os.fstat(f.fileno()).st_size
            directory, name = await self._look("place", remote_path)
            head, end = file_head(name, size, USER), file_end(size)
            try:
                await self._docker.put(self._container, directory, archive_parts(head, f, size, end), len(head) + size + len(end))
            except RequestRefused as e:
                raise refused_file(remote_path, e) from e

    async def download(self, remote_path: str, local_path: LocalFile) -> None:
        """Download a file. An old file at local_path stays until the new content is complete."""
        path = await self._look("find", remote_path)
        loop = asyncio.get_running_loop()
        with replacing(local_path) as out, tempfile.TemporaryFile() as archive:
            try:
                async with await self._docker.get(self._container, path) as body:
                    async for piece in body:
                        await loop.run_in_executor(None, archive.write, piece)
            except RequestRefused as e:
                raise refused_file(remote_path, e) from e
            archive.seek(0)
            await loop.run_in_executor(None, unpack_file, archive, out)

    async def list_files(self, path: str = ".") -> List[FileReference]:
        entries = await self._look("list", path)
        return [file_reference(name, posixpath.normpath(posixpath.join(path, name)), kind, size) for name, kind, size in entries]

    # -- packages --

    async def install_package(self, package_name: str) -> None:
        check_allowed(self._config, package_name)
        wanted = _docker_pip.check_requirement(package_name)
        others = [r for r in self._requirements if canonical(r) != canonical(wanted)]
        target = await self._look("python")
        with tempfile.TemporaryDirectory(prefix="caisson-packages-") as work:
            number = str(self._installations + 1)
            tree = Path(work, "tree")
            (tree / number).mkdir(parents=True)
            await _docker_pip.install([*others, wanted], target, tree / number)
            with tempfile.TemporaryFile() as archive:
                await asyncio.get_running_loop().run_in_executor(None, pack, tree, archive)
                size = archive.seek(0, os.SEEK_END)
                archive.seek(0)
                await self._docker.put(self._container, PACKAGES, archive_parts(b"", archive, size, b""), size)
        self._installations += 1
        self._requirements, self._packages = [*others, wanted], f"{PACKAGES}/{number}"
