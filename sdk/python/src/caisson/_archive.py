# SPDX-License-Identifier: Apache-2.0
"""_archive.py - Directories of this machine as tar archives, and back.

Untrusted code wrote the content of a sandbox. So unpack() makes directories and plain files and nothing else: no link (through
which a later entry could leave the directory), no device, no owner, no set-id bit. A name that is absolute or climbs is an error.
"""

from __future__ import annotations

import os
import shutil
import tarfile
import time
from pathlib import Path
from typing import BinaryIO, List, Union

from .errors import ProtocolError

LocalPath = Union[str, "os.PathLike[str]"]


def pack(local: LocalPath, out: BinaryIO) -> None:
    """Write the content of a directory as an archive; links as links. Raises NotADirectoryError if local is not a directory."""
    where = Path(local)
    if not where.is_dir():
        raise NotADirectoryError(f"{where} is not a directory")
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for entry in sorted(where.iterdir()):
            archive.add(entry, arcname=entry.name, filter=_anonymous)


def _anonymous(member: tarfile.TarInfo) -> tarfile.TarInfo | None:
    """Drop owners, which mean nothing in the sandbox, and leave out devices, pipes and sockets."""
    member.uid = member.gid = 0
    member.uname = member.gname = ""
    return member if member.isfile() or member.isdir() or member.issym() or member.islnk() else None


def unpack(f: BinaryIO, local: LocalPath) -> List[str]:
    """Unpack into a directory, which is made. Returns the names that were left out."""
    root = Path(local)
    root.mkdir(parents=True, exist_ok=True)
    left_out: List[str] = []
    try:
        with tarfile.open(fileobj=f, mode="r:") as archive:
            for member in archive:
                if not _entry(archive, member, root):
                    left_out.append(member.name)
    except tarfile.TarError as e:
        raise ProtocolError(f"invalid archive: {e}") from e
    return left_out


def _entry(archive: tarfile.TarFile, member: tarfile.TarInfo, root: Path) -> bool:
    """Unpack one entry; false if its kind is left out. So are files with holes: they may be larger than any disk."""
    parts = [part for part in member.name.split("/") if part not in ("", ".")]
    if member.name.startswith("/") or ".." in parts or "\0" in member.name:
        raise ProtocolError(f"the archive has an entry outside of its directory: {member.name!r}")
    if member.isdir():
        _directory(root, parts)
        return True
    if member.isfile() and not member.issparse() and parts:
        _file(archive, member, _directory(root, parts[:-1]) / parts[-1])
        return True
    return False


def _directory(root: Path, parts: List[str]) -> Path:
    """A directory below root, without following a link that existed before."""
    where = root
    for part in parts:
        where = where / part
        if where.is_symlink():
            raise ProtocolError(f"{where} is a symbolic link: the archive is not unpacked through it")
        where.mkdir(exist_ok=True)
    return where


def _file(archive: tarfile.TarFile, member: tarfile.TarInfo, where: Path) -> None:
    source = archive.extractfile(member)
    assert source is not None
    if where.is_symlink() or where.is_file():
        where.unlink()
    with source, open(os.open(where, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, member.mode & 0o755 | 0o600), "wb") as out:
        shutil.copyfileobj(source, out, 256 << 10)


def file_head(name: str, size: int, owner: int) -> bytes:
    """The beginning of an archive with one file, which belongs to a user of the sandbox. Its content and file_end() follow."""
    member = tarfile.TarInfo(name)
    member.size, member.uid, member.gid, member.mtime = size, owner, owner, time.time()
    return member.tobuf(tarfile.PAX_FORMAT)


def file_end(size: int) -> bytes:
    """The end of such an archive."""
    return bytes(-size % tarfile.BLOCKSIZE + 2 * tarfile.BLOCKSIZE)


def unpack_file(f: BinaryIO, out: BinaryIO) -> None:
    """The content of an archive that has one plain file."""
    try:
        with tarfile.open(fileobj=f, mode="r:") as archive:
            member = archive.next()
            source = archive.extractfile(member) if member and member.isfile() and not member.issparse() else None
            if source is None:
                raise ProtocolError("the archive does not have a plain file")
            with source:
                shutil.copyfileobj(source, out, 256 << 10)
    except tarfile.TarError as e:
        raise ProtocolError(f"invalid archive: {e}") from e
