# SPDX-License-Identifier: Apache-2.0
"""workspace - Whether files have changed, so that the host can skip looking.

The answer only saves the host a look into the cell: the host never takes the list of files from the kernel.
"""
from os import scandir

ROOT = "/workspace"
_ENTRIES = 200


def snapshot(root=ROOT):
    """The present state of the directory, for a later comparison. None: too many entries, or an error."""
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
    """Whether the directory differs from an earlier snapshot. In doubt, yes."""
    now = snapshot(root)
    return before is None or now is None or sorted(before) != sorted(now)
