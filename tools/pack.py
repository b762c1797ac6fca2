#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""pack.py - Zip Python sources into one file that an interpreter can run, the same bytes each time.

usage: pack.py -o OUT.pyz ROOT FILE...     names in the archive are relative to ROOT
"""
import argparse
import os
import sys
import zipfile

EPOCH = (1980, 1, 1, 0, 0, 0)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-o", dest="out", required=True)
    parser.add_argument("root")
    parser.add_argument("files", nargs="+")
    args = parser.parse_args()
    with open(args.out, "wb") as raw:
        raw.write(b"#!/usr/bin/env python3\n")
        with zipfile.ZipFile(raw, "w", zipfile.ZIP_DEFLATED) as archive:
            for name in sorted(args.files):
                info = zipfile.ZipInfo(os.path.relpath(name, args.root), EPOCH)
                info.compress_type = zipfile.ZIP_DEFLATED
                info.external_attr = 0o644 << 16
                with open(name, "rb") as f:
                    archive.writestr(info, f.read())
    return 0


if __name__ == "__main__":
    sys.exit(main())
