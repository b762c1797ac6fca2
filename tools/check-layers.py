#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""check-layers.py - Check that each source layer includes only the layers below it.

The table is the architecture: a line that is not in it is a dependency nobody decided on. The
privileged programs stay small only as long as nothing pulls a parser of strangers' text into them.

usage: check-layers.py [SRC_DIR]     exit 0: clean, 1: violations (one line each), 2: wrong use
"""
import re
import sys
from pathlib import Path

# layer -> the layers whose headers it may include besides its own
ALLOWED = {
    "base": (),
    "wire": (),
    "policy": ("base",),
    "cell": ("base", "wire", "policy"),
    "warden": ("base", "wire", "cell"),
    "init": ("base", "wire", "cell"),
    "client": ("base", "wire"),
    "cli": ("base", "wire", "client"),
    "net": ("base",),
    "ledger": ("base",),
    "remote": ("base", "wire", "client", "ledger"),
    "store": ("base",),
    "front": ("base", "wire", "client", "ledger", "net", "store"),
    "zygote": ("wire",),
}

# (layer, header) -> why this one header may be included although its layer may not
EXCEPTIONS = {
    ("cli", "cell/spec.h"): "defaults and ranges of a spec: one table, pure functions over it",
    ("cli", "cell/cgroup.h"): "doctor: looks where cells may live, creates nothing",
    ("cli", "cell/landlock.h"): "doctor: asks the kernel for its version of Landlock",
    ("client", "cell/seccomp.h"): "the identity of the compiled filter, which a receipt names",
    ("front", "cell/caps.h"): "the jail: drops its own capabilities, by system call only",
    ("front", "cell/landlock.h"): "the jail: confines itself, by system call only",
    ("front", "cell/spec.h"): "defaults and ranges of a spec: one table, pure functions over it",
    ("remote", "cli/lang.h"): "the languages by name and suffix: one table, pure functions over it",
    ("remote", "init/tar.h"): "headers of tar archives: pure functions over memory",
    ("front", "cell/seccomp.h"): "the jail: puts a compiled filter on itself, one system call",
}

# Libraries that must never be linked into, and so never be included by, a layer.
FORBIDDEN_SYSTEM = re.compile(r"^(seccomp|jansson|curl/|sqlite3|openssl/)")

# Except here: what faces the network has no privileges, and brings its parsers.
ALLOWED_SYSTEM = {
    "net": re.compile(r"^openssl/"),
    "ledger": re.compile(r"^openssl/"),
    "store": re.compile(r"^sqlite3\.h"),
    "remote": re.compile(r"^(jansson|curl/|openssl/)"),
    "front": re.compile(r"^(jansson|openssl/)"),
}

# Generated headers live in the build directory and belong to the layer that asks for them.
GENERATED = {"cell_filter.h": ("cell", "zygote"), "front_filter.h": ("front",), "zygote_filter.h": ("cell",)}

INCLUDE = re.compile(r'^\s*#\s*include\s*(?:"([^"]+)"|<([^>]+)>)')


def check_file(src: Path, path: Path):
    """Yield (line number, message) for every include of @path that its layer may not have."""
    layer = path.relative_to(src).parts[0]
    if layer not in ALLOWED:
        yield 1, f"'{layer}' is no layer: add it to the table in tools/check-layers.py"
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
        for number, message in check_file(src, path):
            print(f"{path}:{number}: {message}")
            bad += 1
    if not bad:
        print(f"check-layers: {len(files)} files clean")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
