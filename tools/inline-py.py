#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""inline-py.py - Put the modules that a script imports into the script itself, for `python3 -c`.

usage: inline-py.py -o OUT SCRIPT MODULE...     the line `from MODULE import ...` in SCRIPT becomes the text of MODULE
"""
import argparse
import re
import sys
from pathlib import Path


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-o", dest="out", required=True)
    parser.add_argument("script", type=Path)
    parser.add_argument("modules", nargs="*", type=Path)
    args = parser.parse_args()
    text = args.script.read_text(encoding="utf-8")
    for module in args.modules:
        parts = re.split(r"(?m)^from %s import .*\n" % re.escape(module.stem), text)
        if len(parts) != 2:
            sys.exit("%s: it must import %s once, in one line" % (args.script, module.stem))
        text = module.read_text(encoding="utf-8").join(parts)
    Path(args.out).write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
