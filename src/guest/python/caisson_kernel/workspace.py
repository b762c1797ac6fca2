# SPDX-License-Identifier: Apache-2.0
"""workspace - Whether files changed, for a host that wants to know before it looks itself.

The answer saves the host a look into the cell, no more: which files there are it never takes from us.
"""
from os import scandir

ROOT = "/workspace"
_ENTRIES = 200


def snapshot(root=ROOT):
    """What is there, to be compared with what is there later. None: too much, or it could not be told."""
    found = []
    todo = [root]
    try:
        while todo:
            with scandir(todo.pop()) as entries:
                for entry in entries:
                    if len(found) == _ENTRIES:
                        return None
                    status = entry.stat(follow_symlinks=False)
                    found.append((entry.path, status.st_ctime_ns, status.st_size))
                    if entry.is_dir(follow_symlinks=False):
                        todo.append(entry.path)
    except OSError:
        return None
    return found


def changed(before, root=ROOT):
    """Whether it differs from an earlier snapshot. When in doubt, yes."""
    now = snapshot(root)
    return before is None or now is None or sorted(before) != sorted(now)
