# SPDX-License-Identifier: Apache-2.0
"""tree_dump.py - All visible properties of a tree of files, as JSON.

usage: tree_dump.py ROOT [ID_BASE]      also imported by image_lib.py
"""
import hashlib
import json
import os
import stat
import sys
from pathlib import Path


def look(path, base, inodes, rel):
    st = os.lstat(path)
    kind = stat.S_IFMT(st.st_mode)
    what = {"kind": oct(kind), "uid": st.st_uid - base, "gid": st.st_gid - base, "mtime": int(st.st_mtime)}
    if kind == stat.S_IFLNK:
        what["to"] = os.readlink(path)
        return what
    what["mode"] = oct(st.st_mode & 0o1777)
    what["xattrs"] = {x: os.getxattr(path, x).hex() for x in sorted(os.listxattr(path))
                      if x.startswith("user.") and not x.startswith("user.overlay.")}
    if kind == stat.S_IFREG:
        what["sha256"] = hashlib.sha256(Path(path).read_bytes()).hexdigest()
        if st.st_nlink > 1:
            what["same"] = inodes.setdefault((st.st_dev, st.st_ino), rel)
    return what


def dump(root, base=0):
    """{path: properties}; names of one file share the first of them, in the order of paths."""
    paths = [root]
    for at, dirs, files in os.walk(root, onerror=lambda e: sys.exit("%s" % e)):
        paths += [os.path.join(at, name) for name in dirs + files]
    inodes = {}
    return {rel: look(path, base, inodes, rel) for path, rel in sorted((p, os.path.relpath(p, root)) for p in paths)}


if __name__ == "__main__":
    print(json.dumps(dump(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 0)))
