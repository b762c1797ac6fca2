#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""check-layers.py - Check that each source layer includes only the layers below it.

The table is the architecture: a dependency that is not in it was not decided on. The privileged programs stay small only as
long as nothing pulls a parser of strangers' text into them.

usage: check-layers.py [SRC_DIR]     exit 0: clean, 1: violations (one line each), 2: wrong use
"""
import re
import sys
from pathlib import Path

# layer -> the layers whose headers it may include besides its own
ALLOWED = {
    "base": (),
    "wire": (),
    "archive": ("base",),
    "seccomp": ("base",),
    "cell": ("base", "wire", "seccomp"),
    "warden": ("base", "wire", "cell"),
    "init": ("archive", "base", "wire", "cell"),
    "client": ("base", "wire"),
    "cli": ("base", "wire", "client", "vault"),
    "net": ("base",),
    "hash": (),
    "http_client": ("base",),
    "ledger": ("base", "hash"),
    "remote": ("archive", "base", "wire", "client", "ledger", "http_client"),
    "store": ("base",),
    "mcp": ("base",),
    "jupyter": ("base",),
    "front": ("base", "wire", "client", "jupyter", "ledger", "mcp", "net", "store", "vault", "hash"),
    "vault": ("base",),
    "bridge": ("base", "wire", "client", "mcp", "net", "http_client"),
    "keeper": ("base", "wire", "client"),
    "tree_store": ("archive", "base", "client"),
    "package_store": ("archive", "base", "wire", "tree_store"),
    "workspace_store": ("archive", "base", "wire", "tree_store"),
    "image_opener": ("base", "wire", "image"),
    "image_puller": ("base", "wire", "client"),
    "gate": ("base", "wire", "net", "vault"),
    "image": ("base", "wire", "client", "http_client", "hash"),
    "s3": ("base", "http_client", "hash"),
    "bucket": ("archive", "base", "wire", "s3", "hash"),
    "zygote": ("wire",),
}

# The directories of the front, from the ground up: each may include those before it and no other, so there is no circle.
FRONT = ("support", "output", "policy", "gate", "cell", "spec", "images", "sandbox", "files", "ports", "http", "secrets", "egress", "packages",
         "workspaces", "buckets", "tool_calls", "operations", "api", "jupyter", "mcp", "main")

# The struct that holds all parts of the front is known in the last directory only: every other function gets its own part.
# `struct front` was such a struct for all directories, and must not come back.
FRONT_WHOLE = re.compile(r"\bstruct (front|parts)\b")

# (directory of the front, header) -> why this one may be included although its directory comes later
FRONT_EXCEPTIONS = {
}

# (layer, header) -> why this one header may be included although its layer may not
EXCEPTIONS = {
    ("cli", "cell/spec.h"): "defaults and ranges of a spec: one table, pure functions over it",
    ("cli", "cell/cgroup.h"): "doctor: looks where cells may live, creates nothing",
    ("cli", "cell/container.h"): "in a container: names what its engine withholds; a mount namespace of the caller's own",
    ("cli", "cell/landlock.h"): "doctor: asks the Linux kernel for its version of Landlock",
    ("client", "cell/seccomp.h"): "the identity of the compiled filter, which a receipt names",
    ("front", "cell/power.h"): "its jail: gives up its own power, by system call only",
    ("front", "cell/landlock.h"): "the jail: confines itself, by system call only",
    ("front", "cell/spec.h"): "defaults and ranges of a spec: one table, pure functions over it",
    ("front", "s3/site.h"): "places in buckets as the operator writes them: pure functions over text",
    ("gate", "cell/power.h"): "its jail: gives up its own power, by system call only",
    ("gate", "cell/landlock.h"): "the jail: confines itself, by system call only",
    ("gate", "cell/seccomp.h"): "the jail: puts a compiled filter on itself, one system call",
    ("remote", "cli/lang.h"): "the languages by name and suffix, and how the code of a run is found: as `caisson run` does",
    ("remote", "cli/prepare.h"): "a daemon of its own is started as `caisson serve` starts one",
    ("image", "cell/caps.h"): "the unpacker's jail: drops its own capabilities, by system call only",
    ("image", "cell/idmap.h"): "whether there is a range of users to be had: reads a file of /proc",
    ("image", "cell/power.h"): "its jail: gives up its own power, by system call only",
    ("image", "cell/landlock.h"): "the unpacker's jail: confines itself, by system call only",
    ("image", "gate/address.h"): "which addresses are private: tables, pure functions over them",
    ("image", "remote/table.h"): "rows of text in columns: pure functions over memory",
    ("image", "remote/tty.h"): "how wide a terminal is",
    ("cli", "image/ref.h"): "names of images: pure functions over text",
    ("front", "image/ref.h"): "names of images: pure functions over text",
    ("image_puller", "image/ref.h"): "names of images: pure functions over text",
    ("image_opener", "cell/caps.h"): "its jail: drops its own capabilities, by system call only",
    ("image_opener", "cell/power.h"): "its jail: gives up its own power, by system call only",
    ("image_opener", "cell/landlock.h"): "its jail: confines itself, by system call only",
    ("bucket", "cell/power.h"): "its jail: gives up its own power, by system call only",
    ("bucket", "cell/landlock.h"): "its jail: confines itself, by system call only",
    ("tree_store", "cell/power.h"): "the jail of a store: gives up its own power, by system call only",
    ("tree_store", "cell/landlock.h"): "the jail of a store: confines itself, by system call only",
    ("package_store", "cell/landlock.h"): "the rights that its jail leaves it: constants",
    ("workspace_store", "cell/caps.h"): "its volume mounter: keeps one capability, drops the others, by system call only",
    ("workspace_store", "cell/landlock.h"): "the rights that its jail leaves it: constants",
    ("front", "workspace_store/pattern.h"): "what a pattern is: pure functions over text",
    ("front", "cell/protect.h"): "names in mounted directories: made before the jail",
    ("front", "cell/seccomp.h"): "the jail: puts a compiled filter on itself, one system call",
}

# Libraries that must never be linked into, and so never be included by, a layer.
FORBIDDEN_SYSTEM = re.compile(r"^(seccomp|jansson|curl/|sqlite3|openssl/)")

# Except here: network-facing programs have no privileges, and need their parsers.
ALLOWED_SYSTEM = {
    "hash": re.compile(r"^openssl/"),
    "http_client": re.compile(r"^curl/"),
    "net": re.compile(r"^openssl/"),
    "gate": re.compile(r"^openssl/"),
    "store": re.compile(r"^sqlite3\.h"),
    "remote": re.compile(r"^(jansson|openssl/)"),
    "front": re.compile(r"^(jansson|openssl/)"),
    "mcp": re.compile(r"^jansson"),
    "image_opener": re.compile(r"^jansson"),
    "image": re.compile(r"^(jansson|openssl/)"),
    "bridge": re.compile(r"^jansson"),
    "s3": re.compile(r"^openssl/"),
}

# Generated headers live in the build directory and belong to the layer that asks for them.
GENERATED = {"bucket_filter.h": ("bucket",), "cell_filter.h": ("cell", "zygote"), "cell_writable_filter.h": ("cell", "zygote"), "front_filter.h": ("front",), "gate_filter.h": ("gate",), "image_fetch_filter.h": ("image",), "image_opener_filter.h": ("image_opener",), "package_store_filter.h": ("package_store",), "unpack_filter.h": ("image",), "workspace_store_filter.h": ("workspace_store",), "zygote_filter.h": ("cell",)}

INCLUDE = re.compile(r'^\s*#\s*include\s*(?:"([^"]+)"|<([^>]+)>)')


def check_file(src: Path, path: Path):
    """Yield (line number, message) for every include of @path that its layer may not have."""
    layer = path.relative_to(src).parts[0]
    if layer not in ALLOWED:
        yield 1, f"'{layer}' is not a layer: add it to the table in tools/check-layers.py"
        return
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        match = INCLUDE.match(line)
        if not match:
            continue
        quoted, system = match.groups()
        if system:
            allowed = ALLOWED_SYSTEM.get(layer)
            if FORBIDDEN_SYSTEM.match(system) and not (allowed and allowed.match(system)):
                yield number, f"{layer} must not include <{system}>"
            continue
        if quoted in GENERATED:
            if layer not in GENERATED[quoted]:
                yield number, f'{layer} must not include generated "{quoted}"'
            continue
        other = quoted.split("/")[0]
        if "/" not in quoted or not (src / quoted).is_file():
            yield number, f'"{quoted}" is not a path from {src.name}/'
        elif other != layer and other not in ALLOWED[layer] and (layer, quoted) not in EXCEPTIONS:
            yield number, f'{layer} must not include "{quoted}" ({allowed_text(layer)})'


def check_front(src: Path, path: Path):
    """Yield (line number, message) for every include of a front's file that leads up or to no directory of the list, and
    for every use of a struct that holds all parts."""
    own = path.relative_to(src).parts[1]
    if own not in FRONT:
        yield 1, f"'front/{own}' is not a layer of the front: add it to FRONT in tools/check-layers.py"
        return
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        whole = FRONT_WHOLE.search(line)
        if whole and (own != FRONT[-1] or whole[1] == "front"):
            yield number, f"front/{own} must not use 'struct {whole[1]}': take the part that is needed"
        match = INCLUDE.match(line)
        if not match or not match[1] or not match[1].startswith("front/"):
            continue
        other = match[1].split("/")[1]
        if other not in FRONT or (FRONT.index(other) > FRONT.index(own) and (own, match[1]) not in FRONT_EXCEPTIONS):
            yield number, f'front/{own} must not include "{match[1]}": it comes later in FRONT'


def allowed_text(layer: str) -> str:
    return f"it may include {', '.join(ALLOWED[layer])}" if ALLOWED[layer] else "libc only"


def main(argv) -> int:
    if len(argv) > 2:
        print(__doc__.strip(), file=sys.stderr)
        return 2
    src = Path(argv[1]) if len(argv) == 2 else Path(__file__).resolve().parent.parent / "src"
    files = sorted(p for p in src.rglob("*") if p.suffix in (".c", ".h"))
    if not files:
        print(f"check-layers: no sources below {src}", file=sys.stderr)
        return 2
    bad = 0
    for path in files:
        in_front = path.relative_to(src).parts[0] == "front" and len(path.relative_to(src).parts) > 2
        for number, message in [*check_file(src, path), *(check_front(src, path) if in_front else ())]:
            print(f"{path}:{number}: {message}")
            bad += 1
    if not bad:
        print(f"check-layers: {len(files)} files clean")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
