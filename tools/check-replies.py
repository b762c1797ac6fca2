#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""check-replies.py - Check that no function uses a request that was answered.

The reply ends an exchange and frees it, in the middle of the function that called it. So a call that may answer is followed by
a return, or by code that does not name the exchange. Functions that may answer are found, not listed: a function that is void,
takes an exchange, and hands it to another such function. Callers must check functions that return whether they answered (bool).

The order of lines stands for the control flow: a return leaves a branch, an else belongs to the other case. That is enough for
the code of this tree; the sanitizers find the rest.

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
        """Statements of their own that hand the exchange over: (line, indentation)."""
        for i, text in enumerate(self.body):
            m = re.match(r"(\t+)(\w+)\((.*)", text)
            if m and m[2] in names and named(exchange, " ".join(self.body[i:self.end_of(i) + 1])):
                yield i, len(m[1])

    def end_of(self, i):
        while not re.sub(r"/\*.*", "", self.body[i]).rstrip().endswith(";"):
            i += 1
        return i

    def next_look(self, i, depth, exchange):
        """The first line that is reached after a statement and names the exchange, or None."""
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
                    print("%s:%d: '%s' is used after it was answered in line %d" % (f.path, f.line + at, x, f.line + i))
                    bad += 1
    print("check-replies: %d functions answer, %s" % (len(ends), "%d use the exchange after that" % bad if bad else "clean"))
    return bad > 0


sys.exit(main())
