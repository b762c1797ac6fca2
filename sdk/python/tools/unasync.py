#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""unasync.py - Make the blocking client from the asynchronous one.

The client is written once, in src/caisson/_async. This script makes the blocking client in src/caisson/_sync from it, by replacing
words. Code that cannot be written in both ways is in _glue.py and _http*.py. The output is committed, so that people and tools can
read it; --check reports whether it is up to date.

usage: unasync.py [--check]
"""
import re
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent.parent / "src" / "caisson"
MARK = "# Made from ../_async/%s by tools/unasync.py. Change it there.\n"
WORDS = [
    (r"\basync (def|with|for)\b", r"\1"),
    (r"\bawait ", ""),
    (r"\(SandboxHandle\):", ":"),
    (r"\(SandboxClient\):", ":"),
    (r"^from \.\.abstract import .*\n", ""),
    (r"\b__a(enter|exit|iter|next)__\b", r"__\1__"),
    (r"\bStopAsyncIteration\b", "StopIteration"),
    (r"\baclose\b", "close"),
    (r"\basleep\b", "sleep"),
    (r"\b_http_async\b", "_http"),
    (r"\bAsync(?=[A-Z])", ""),
    (r"The client\. This is the source; .*", 'The blocking client. It is made from ../_async by tools/unasync.py."""'),
]


def unasync(text: str, name: str) -> str:
    for pattern, to in WORDS:
        text = re.sub(pattern, to, text, flags=re.M)
    first, rest = text.split("\n", 1)
    return first + "\n" + MARK % name + sort_imports(rest)


def sort_imports(text: str) -> str:
    """Names within one line of imports, which the replacement may have put out of order."""
    def line(m: "re.Match[str]") -> str:
        names = sorted((n.strip() for n in m.group(2).split(",")), key=lambda n: (not n.isupper(), n.islower(), n))
        return m.group(1) + ", ".join(names)

    return re.sub(r"^(from \S+ import )([\w, ]+)$", line, text, flags=re.M)


def main() -> int:
    check = "--check" in sys.argv[1:]
    bad = 0
    for source in sorted((HERE / "_async").glob("*.py")):
        text = unasync(source.read_text(encoding="utf-8"), source.name)
        twin = HERE / "_sync" / source.name
        if check:
            if not twin.exists() or twin.read_text(encoding="utf-8") != text:
                print(f"unasync: {twin} is not what {source} makes: run tools/unasync.py")
                bad = 1
        else:
            twin.parent.mkdir(exist_ok=True)
            twin.write_text(text, encoding="utf-8")
    return bad


if __name__ == "__main__":
    sys.exit(main())
