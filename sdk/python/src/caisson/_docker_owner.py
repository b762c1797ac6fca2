# SPDX-License-Identifier: Apache-2.0
"""_docker_owner.py - Whose container is this: the label that names the process that made it, and whether that process is dead.

A process is named by its pid, the time of its start, its pid namespace and the boot of its machine. Clients on other machines, in other
containers or after a restart of the machine cannot be judged from here. Their containers end by themselves once they run
(_runtime_docker.py), so only one that has not run for a while is abandoned.
"""

from __future__ import annotations

import json
import os
import time
from typing import Any, Dict, Mapping

OWNER = "caisson.owner"
NOT_STARTED_SECONDS = 900  # the longest time between making a container and starting it


def _here() -> Dict[str, str]:
    """The boot and the pid namespace."""
    try:
        with open("/proc/sys/kernel/random/boot_id") as f:
            return {"boot": f.read().strip(), "pids": os.readlink("/proc/self/ns/pid")}
    except OSError:
        return {}


def _started(pid: int) -> str:
    """When a process was started; empty if it has ended."""
    try:
        with open(f"/proc/{pid}/stat") as f:
            fields = f.read().rpartition(")")[2].split()
    except OSError:
        return ""
    return "" if fields[0] in "ZX" else fields[19]


def owner() -> str:
    """The label of this process."""
    return json.dumps({**_here(), "pid": os.getpid(), "started": _started(os.getpid())})


def is_abandoned(container: Mapping[str, Any]) -> bool:
    """Whether the client of a container, as the daemon lists it, is gone."""
    try:
        said = json.loads(container["Labels"][OWNER])
        here = _here()
        if here and all(said.get(key) == value for key, value in here.items()):
            return bool(_started(int(said["pid"])) != said["started"])
    except (KeyError, TypeError, ValueError):
        return False  # not a label of this library
    return bool(container["State"] != "running" and time.time() - container["Created"] > NOT_STARTED_SECONDS)
