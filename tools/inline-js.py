#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""inline-js.py - Put the modules that a script requires into the script itself: functions, run at their first require.

usage: inline-js.py -o OUT SCRIPT MODULE...     each require('./MODULE') in SCRIPT and in the modules becomes a call of beside()
"""
import argparse
import os
import re
import sys

REQUIRE = re.compile(r"\brequire\('\./([^']*)'\)")

# A module is run once, however many scripts require it, as node does with files.
HEAD = """\
'use strict';
const beside = ((bodies, had) => (name) => {
	if (!had[name]) bodies[name]((had[name] = { exports: {} }));
	return had[name].exports;
})({
%s}, {});
"""
BODY = "'%s': (module) => {\n%s},\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-o", dest="out", required=True)
    parser.add_argument("script")
    parser.add_argument("modules", nargs="*")
    args = parser.parse_args()
    names = [os.path.basename(m) for m in args.modules]
    required = set()

    def read(path):
        with open(path, encoding="utf-8") as f:
            text = f.read()
        required.update(REQUIRE.findall(text))
        return REQUIRE.sub(r"beside('\1')", text)

    bodies = "".join(BODY % (name, read(module)) for name, module in zip(names, args.modules))
    text = HEAD % bodies + read(args.script)
    for name in sorted(required ^ set(names)):
        sys.exit("%s: %s is %s" % (args.script, name, "not among the modules" if name in required else "not required"))
    with open(args.out, "w", encoding="utf-8") as f:
        f.write(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
