# SPDX-License-Identifier: Apache-2.0
"""_docker_look.py - One question to a container: about its files, as its user, or about its python. `python3 -c` runs this text.

usage: OP PATH    the answer is a line of JSON: answer, or errno and message
"""

from __future__ import annotations

import errno
import json
import os
import stat
import sys
from typing import Any, Callable, Dict, List, Tuple

WORKSPACE = "/workspace"
KINDS = (
    (stat.S_ISREG, "file"),
    (stat.S_ISDIR, "directory"),
    (stat.S_ISLNK, "symlink"),
    (stat.S_ISFIFO, "fifo"),
    (stat.S_ISSOCK, "socket"),
)


def kind_of(mode: int) -> str:
    return next((name for test, name in KINDS if test(mode)), "device")


def look_list(path: str) -> List[Tuple[str, str, int]]:
    """The entries of a directory: name, kind, size."""
    with os.scandir(path) as entries:
        found = [(e.name, e.stat(follow_symlinks=False)) for e in entries]
    return sorted((name, kind_of(about.st_mode), about.st_size) for name, about in found)


def look_find(path: str) -> str:
    """The real path of a file that can be read."""
    real = os.path.realpath(path)
    kind = kind_of(os.stat(real).st_mode)
    if kind != "file":
        raise OSError(errno.EISDIR if kind == "directory" else errno.EINVAL, "not a file")
    os.close(os.open(real, os.O_RDONLY))
    return real


def look_place(path: str) -> Tuple[str, str]:
    """The real directory, which is made, and the name for a file that will be written."""
    if os.path.isdir(path) or path.endswith("/"):
        raise OSError(errno.EISDIR, "is a directory")
    directory, name = os.path.split(os.path.realpath(path))
    os.makedirs(directory, exist_ok=True)
    if not os.access(directory, os.W_OK):
        raise OSError(errno.EACCES, "the directory cannot be written")
    return directory, name


def look_python(_: str) -> Dict[str, Any]:
    """The facts that an installer of packages needs of this python: its version, its platform, the variables of PEP 508."""
    import platform  # these take longer than the answers to the other questions
    import sysconfig

    version = "%d.%d.%d" % sys.version_info[:3]
    return {
        "libc": None if "musl" in (sysconfig.get_config_var("SOABI") or "") else os.confstr("CS_GNU_LIBC_VERSION"),
        "markers": {
            "implementation_name": sys.implementation.name,
            "implementation_version": version,
            "os_name": os.name,
            "platform_machine": platform.machine(),
            "platform_python_implementation": platform.python_implementation(),
            "platform_release": platform.release(),
            "platform_system": platform.system(),
            "platform_version": platform.version(),
            "python_full_version": version,
            "python_version": "%d.%d" % sys.version_info[:2],
            "sys_platform": sys.platform,
        },
    }


def look(op: str, path: str) -> None:
    ops: Dict[str, Callable[[str], Any]] = {"list": look_list, "find": look_find, "place": look_place, "python": look_python}
    try:
        answer: Dict[str, Any] = {"answer": ops[op](os.path.join(WORKSPACE, path))}
    except OSError as e:
        answer = {"errno": errno.errorcode.get(e.errno or 0, "EIO"), "message": e.strerror}
    print(json.dumps(answer))


if __name__ == "__main__":
    look(*sys.argv[1:])
