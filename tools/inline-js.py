#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""inline-js.py - Put what a script requires from beside it into the script itself: a function, run when it is required.

usage: inline-js.py -o OUT SCRIPT MODULE...     each require('./MODULE') in SCRIPT, exactly one, becomes the text of it
"""
import argparse
import os
import sys


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-o", dest="out", required=True)
    parser.add_argument("script")
    parser.add_argument("modules", nargs="*")
    args = parser.parse_args()
    with open(args.script, encoding="utf-8") as f:
        text = f.read()
    for module in args.modules:
        call = "require('./%s')" % os.path.basename(module)
        if text.count(call) != 1:
            sys.exit("%s: %s is there %d times, not once" % (args.script, call, text.count(call)))
        with open(module, encoding="utf-8") as f:
            body = f.read()
        text = text.replace(call, "((module) => {\n%s\nreturn module.exports;\n})({ exports: {} })" % body)
    with open(args.out, "w", encoding="utf-8") as f:
        f.write(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
