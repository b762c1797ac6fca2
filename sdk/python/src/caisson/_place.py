# SPDX-License-Identifier: Apache-2.0
"""_place.py - The address of the daemon, and the token for it.

The rules are those of the command line: an argument decides, then CAISSON_URL, then CAISSON_SOCKET, then caisson.sock in the state
directory (CAISSON_STATE, /run/caisson for root, caisson in XDG_RUNTIME_DIR, /tmp/caisson-UID). The token comes from the argument, from
CAISSON_TOKEN, or from the file that CAISSON_TOKEN_FILE names, which no other user may be able to read. The token is sent over TLS, to
this machine, or through a unix socket, and in no other way.
"""

from __future__ import annotations

import asyncio
import ipaddress
import os
import re
import socket
import ssl
import stat
from dataclasses import dataclass, field
from typing import Mapping, Optional, Tuple
from urllib.parse import unquote, urlsplit

from .errors import Misconfigured, SandboxUnavailable

TOKEN_FILE_MAX = 65536
TOKEN = re.compile(r"[A-Za-z0-9\-._~+/=]{1,4096}")
NOT_THERE = "start one with 'caisson serve', set CAISSON_URL or CAISSON_SOCKET to its address, or use Caisson.local()"
NOT_VOUCHED = "set ca_file or CAISSON_CA_FILE to a file with the CA certificate of the daemon"


@dataclass(frozen=True)
class Place:
    """A daemon's address: a unix socket (path), or host and port."""

    path: Optional[str] = None
    host: str = "localhost"
    port: int = 0
    tls: bool = False
    prefix: str = ""  # prefix of all paths, for a daemon behind a proxy
    token: Optional[str] = field(default=None, repr=False)
    ca_file: Optional[str] = None
    chosen: bool = True  # false: this is the default address

    def __str__(self) -> str:
        if self.path is not None:
            return self.path
        return f"{'https' if self.tls else 'http'}://{self.authority}{self.prefix}"

    @property
    def authority(self) -> str:
        """The value of the Host header."""
        if self.path is not None:
            return "localhost"
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == (443 if self.tls else 80) else f"{host}:{self.port}"

    def headers(self) -> list[tuple[str, str]]:
        """The headers of every request: Host, and Authorization if there is a token."""
        mine = [("Host", self.authority)]
        if self.token is not None:
            mine.append(("Authorization", "Bearer " + self.token))
        return mine

    def unavailable(self, error: BaseException) -> SandboxUnavailable:
        """The exception for a failed attempt to connect."""
        why = getattr(error, "strerror", None) or str(error) or type(error).__name__
        if isinstance(error, ssl.SSLError):
            return SandboxUnavailable(f"no safe connection to {self}: {error}", hint=NOT_VOUCHED)
        return SandboxUnavailable(f"no daemon answers at {self}: {why}", hint=NOT_THERE)

    def context(self) -> Optional[ssl.SSLContext]:
        if not self.tls:
            return None
        try:
            return ssl.create_default_context(cafile=self.ca_file)
        except (OSError, ssl.SSLError) as e:
            raise Misconfigured(f"ca_file {self.ca_file}: {e}", field="ca_file") from e

    def connect(self, timeout: Optional[float]) -> socket.socket:
        """A connected socket. Raises SandboxUnavailable if no daemon answers."""
        try:
            if self.path is not None:
                s = socket.socket(socket.AF_UNIX)
                try:
                    s.settimeout(timeout)
                    s.connect(self.path)
                except BaseException:
                    s.close()
                    raise
                return s
            s = socket.create_connection((self.host, self.port), timeout)
            try:
                tune(s)
                context = self.context()
                return context.wrap_socket(s, server_hostname=self.host) if context else s
            except BaseException:
                s.close()
                raise
        except OSError as e:
            raise self.unavailable(e) from e

    async def connect_async(
        self, timeout: Optional[float], limit: int = 1 << 18
    ) -> Tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """The same for asyncio."""
        if self.path is not None:
            opening = asyncio.open_unix_connection(self.path, limit=limit)
        else:
            context = self.context()
            opening = asyncio.open_connection(
                self.host, self.port, limit=limit, ssl=context, server_hostname=self.host if context else None
            )
        task = asyncio.ensure_future(opening)
        try:
            done, _ = await asyncio.wait({task}, timeout=timeout)
            if not done:
                raise self.unavailable(TimeoutError("timed out"))
            reader, writer = task.result()
        except OSError as e:
            raise self.unavailable(e) from e
        except BaseException:
            # The connection may be made at the same moment: wait_for() would lose it.
            task.add_done_callback(_abandon)
            task.cancel()
            raise
        if self.path is None:
            tune(writer.get_extra_info("socket"))
        return reader, writer


def _abandon(task: asyncio.Future[Tuple[asyncio.StreamReader, asyncio.StreamWriter]]) -> None:
    """Close a connection that is no longer needed."""
    if not task.cancelled() and task.exception() is None:
        task.result()[1].transport.abort()


def tune(s: socket.socket) -> None:
    """Send small requests at once, and detect a machine that has vanished, however long an answer may take."""
    s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in (("TCP_KEEPIDLE", 30), ("TCP_KEEPINTVL", 10), ("TCP_KEEPCNT", 3)):
        if hasattr(socket, name):
            s.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)


# ---- finding the daemon --------------------------------------------------------------------------------------------------


def find_place(
    url: Optional[str] = None,
    *,
    socket_path: Optional[str] = None,
    token: Optional[str] = None,
    ca_file: Optional[str] = None,
    environ: Optional[Mapping[str, str]] = None,
) -> Place:
    """The place that arguments and environment name. Misconfigured names the invalid one."""
    env = os.environ if environ is None else environ
    if url and socket_path:
        raise Misconfigured("url and socket exclude each other: give one of them", field="url")
    ca = ca_file or env.get("CAISSON_CA_FILE") or None
    given = _token(token, env)
    if url:
        return parse_url(url, "url", given, ca)
    if socket_path:
        return Place(path=socket_path, token=given)
    if env.get("CAISSON_URL"):
        return parse_url(env["CAISSON_URL"], "CAISSON_URL", given, ca)
    if env.get("CAISSON_SOCKET"):
        if env["CAISSON_SOCKET"] == "none":
            raise Misconfigured("CAISSON_SOCKET: 'none' is not a socket: name a socket, or set CAISSON_URL")
        return Place(path=env["CAISSON_SOCKET"], token=given)
    return Place(path=os.path.join(state_dir(env), "caisson.sock"), token=given, chosen=bool(env.get("CAISSON_STATE")))


def state_dir(env: Mapping[str, str]) -> str:
    """The default directory of a daemon's socket."""
    if env.get("CAISSON_STATE"):
        return env["CAISSON_STATE"]
    if os.geteuid() == 0:
        return "/run/caisson"
    runtime = env.get("XDG_RUNTIME_DIR", "")
    return os.path.join(runtime, "caisson") if runtime.startswith("/") else f"/tmp/caisson-{os.geteuid()}"


def parse_url(url: str, name: str, token: Optional[str], ca_file: Optional[str]) -> Place:
    """Parse http://, https:// or unix: and a path. name is used in error messages."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as e:
        raise Misconfigured(f"{name}: {url!r}: {e}", field=name) from e
    if parts.scheme in ("unix", "http+unix"):
        path = unquote(parts.path if not parts.netloc else parts.netloc + parts.path)
        if not path:
            raise Misconfigured(f"{name}: {url!r} has no path of a socket, as in unix:/run/caisson/caisson.sock", field=name)
        return Place(path=path, token=token)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise Misconfigured(f"{name}: {url!r} is not an address of a daemon, as in http://127.0.0.1:8001", field=name)
    if parts.username is not None or parts.query or parts.fragment:
        raise Misconfigured(f"{name}: the address must not have a user, a query or a fragment", field=name)
    tls = parts.scheme == "https"
    if token is not None and not tls and not _is_loopback(parts.hostname):
        raise Misconfigured(
            f"{name}: the token would cross the network to {parts.hostname} in the clear: use https://", field=name
        )
    return Place(
        host=parts.hostname,
        port=port or (443 if tls else 80),
        tls=tls,
        prefix=parts.path.rstrip("/"),
        token=token,
        ca_file=ca_file,
    )


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


# ---- the token -----------------------------------------------------------------------------------------------------------


def _token(token: Optional[str], env: Mapping[str, str]) -> Optional[str]:
    if token is not None:
        return _checked(token, "token")
    if env.get("CAISSON_TOKEN_FILE"):
        return _from_file(env["CAISSON_TOKEN_FILE"])
    return _checked(env["CAISSON_TOKEN"], "CAISSON_TOKEN") if env.get("CAISSON_TOKEN") else None


def _checked(token: str, name: str) -> str:
    """Check a token. The message never contains it, because messages end up in logs."""
    if not TOKEN.fullmatch(token):
        raise Misconfigured(f"{name}: is not a valid token (letters, digits and -._~+/= in one line)", field=name)
    return token


def _from_file(path: str) -> str:
    """The first line that is not a comment; NAME:TOKEN, as in the daemon's own file, or the token alone."""
    try:
        with open(path, "rb") as f:
            mode = os.fstat(f.fileno()).st_mode
            if stat.S_ISREG(mode) and mode & 0o077:
                raise Misconfigured(f"CAISSON_TOKEN_FILE: others can read {path}: chmod 600 {path}")
            text = f.read(TOKEN_FILE_MAX).decode("utf-8", "replace")
    except OSError as e:
        raise Misconfigured(f"CAISSON_TOKEN_FILE: {path}: {e.strerror}") from e
    lines = [line.strip() for line in text.splitlines()]
    line = next((one for one in lines if one and not one.startswith("#")), "")
    return _checked(line.rpartition(":")[2], "CAISSON_TOKEN_FILE")
