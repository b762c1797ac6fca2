#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""check-replies.py - Check that nobody looks at a request that was answered.

The reply ends an exchange and frees it, in the middle of the function that called it. So behind a call that may answer there is
a return, or nothing that names the exchange. What may answer is found, not listed: whoever is void, takes an exchange, and hands
it to one who does. Functions that say whether they did (bool) are their callers' to ask.

The order of lines stands for the flow: a branch is left by its return, an else belongs to the other case. That is enough for
code as it is written here, and what it does not see is left to the sanitizers.

usage: check-replies.py [SRC_DIR]     exit 0: clean, 1: violations (one line each)
"""
import re
import sys
from pathlib import Path

ENDS = {"http_reply", "http_stream_end", "http_stream_abort"}
EXCHANGE = re.compile(r"struct http_exchange \*(\w+)")


class Function:
    def __init__(self, path, line, signature, body):
        self.path, self.line, self.body = path, line, body
        self.name = re.search(r"(\w+)\(", signature)[1]
        self.is_void = bool(re.match(r"(static )?void ", signature))
        self.params = EXCHANGE.findall(signature)
        self.exchanges = set(self.params + EXCHANGE.findall("\n".join(body)))

    def calls(self, names, exchange):
        """Statements of their own that hand it over: (line, indentation)."""
        for i, text in enumerate(self.body):
            m = re.match(r"(\t+)(\w+)\((.*)", text)
            if m and m[2] in names and named(exchange, " ".join(self.body[i:self.end_of(i) + 1])):
                yield i, len(m[1])

    def end_of(self, i):
        while not re.sub(r"/\*.*", "", self.body[i]).rstrip().endswith(";"):
            i += 1
        return i

    def next_look(self, i, depth, exchange):
        """The first line behind a statement that is reached from it and names the exchange; None: there is none."""
        i = self.end_of(i) + 1
        while i < len(self.body):
            text, at = self.body[i].strip(), indentation(self.body[i])
            if text and re.match(r"(\} )?else\b", text):
                i += 1
                while i < len(self.body) and (not self.body[i].strip() or indentation(self.body[i]) > at):
                    i += 1
                continue
            if named(exchange, text) and not text.startswith(("/*", "*", exchange + " = ")):
                return i
            if text and (at <= depth and re.match(r"(return|goto|break|continue)\b", text) or re.match(r"(case|default)\b", text)):
                return None
            if text and text != "}":
                depth = min(depth, at)
            i += 1
        return None


def named(exchange, text):
    return re.search(r"(?<![\w>.])%s\b" % exchange, re.sub(r'"(\\.|[^"\\])*"|/\*.*?\*/', "", text))


def indentation(text):
    return len(text) - len(text.lstrip("\t"))


def functions(path):
    lines = path.read_text().split("\n")
    for i, line in enumerate(lines):
        if line == "{":
            begin = i
            while begin > 0 and lines[begin - 1].strip() and not lines[begin - 1].startswith(("}", "#", "/*", " *")):
                begin -= 1
            signature = " ".join(x.strip() for x in lines[begin:i])
            if re.search(r"\w\(", signature):
                yield Function(path, i + 1, signature, lines[i:lines.index("}", i)])


def main():
    src = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).resolve().parent.parent / "src"
    every = [f for path in sorted(src.rglob("*.c")) for f in functions(path)]
    ends = set(ENDS)
    while True:
        more = {f.name for f in every if f.is_void and any(True for x in f.params for _ in f.calls(ends, x))} - ends
        if not more:
            break
        ends |= more
    bad = 0
    for f in every:
        for x in sorted(f.exchanges):
            for i, depth in f.calls(ends, x):
                at = f.next_look(i, depth, x)
                if at is not None:
                    print("%s:%d: '%s' was answered in line %d, and is gone" % (f.path, f.line + at, x, f.line + i))
                    bad += 1
    print("check-replies: %d functions answer, %s" % (len(ends), "%d look at it after that" % bad if bad else "clean"))
    return bad > 0


sys.exit(main())
