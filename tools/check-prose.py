#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""check-prose.py - Find the worst patterns of unclear English in documents, comments and messages.

CONTRIBUTING.md has the rule for prose; this script finds the violations that a pattern can find. It reads
Markdown, the man pages (docs/man/*.scd), comments and string literals of C, comments and docstrings of Python,
and the comments of shell scripts, Makefiles, meson.build and *.policy files. Text in backticks is code and is
skipped; so are code blocks, headings and link targets.

The baseline, tools/prose-baseline.txt, has one line "COUNT PATH" for each file that had findings when the
check was introduced. A file fails when it has more findings than its line allows, and a file without a line
may have none. --update lowers the counts to the present ones and never raises one, so the total only falls.
When a file is renamed, rename it in the baseline too.

usage: check-prose.py [--update | --all | --count] [ROOT | FILE...]

    ROOT      check the tree below this directory (default: the project) against its baseline
    FILE...   print all findings of these files, without a baseline
    --update  write the baseline; without one, the first
    --all     print all findings of the tree, without the baseline
    --count   print the number of findings per top directory; never fails

exit 0: no finding beyond the baseline, 1: findings (one line each), 2: wrong use
"""
import ast
import io
import os
import re
import sys
import tokenize
from pathlib import Path

C_COLUMNS, TEXT_COLUMNS, TAB = 100, 120, 8
BASELINE = "tools/prose-baseline.txt"
PRUNED = re.compile(r"^(\.git|build.*|__pycache__|node_modules|\.pytest_cache|\.venv|venv|corpus)$")

# (pattern, suggestion). Text is matched with single spaces, so a line break does not hide a pattern.
PHRASES = (
    (re.compile(r"\bcan not\b(?! only)", re.I), "write 'cannot'"),
    (re.compile(r"\bwho(?:m|se|so)?ever\b", re.I), "name the actor: 'an attacker who ...', 'the caller'"),
    (re.compile(r"\b(?:[Tt]here )?(?:is|are) none\b"), "say what is missing or invalid: 'invalid name', 'has no ...'"),
    (re.compile(r"\bnobody knows\b", re.I), "write 'unknown'"),
)

# The start of a paragraph or of a sentence; a summary line, "name.c - ", counts as the start of a paragraph.
SUMMARY = re.compile(r"^[\w./*()-]+(?:, [\w./*()-]+)* - ")
HEADLESS = re.compile(r"(?:^|(?<=[.!?]) |(?<=[.!?][\"')*_]) |(?<=[.!?]\*\*) )[\"'(\[*_]*((?:What|Who) [\w'-]+)")
SENTENCE_END = re.compile(r"[.!?](?=[\"')\]*_]*(?: |$))")


class Text:
    """A paragraph of prose that was put together from lines, and the line of each of its characters."""

    def __init__(self):
        self.parts, self.lines = [], []

    def add(self, text, number):
        text = re.sub(r"\s+", " ", text.strip())
        if text:
            self.parts.append(text)
            self.lines.append(number)

    def findings(self):
        """Yield (line number, message)."""
        # Code keeps its length, so that positions stay those of the lines.
        text = re.sub(r"(`+)(.+?)\1", lambda m: re.sub(r"[^`]", "x", m[0]), " ".join(self.parts))
        for pattern, advice in PHRASES:
            for m in pattern.finditer(text):
                yield self.line_of(m.start()), f"'{m[0]}': {advice}"
        begin = (m := SUMMARY.match(text)) and m.end() or 0
        for m in HEADLESS.finditer(text[begin:]):
            rest = text[begin + m.end():]
            end = SENTENCE_END.search(rest)
            if (rest[end.start()] if end else rest[-1:]) != "?":
                yield self.line_of(begin + m.start(1)), f"a sentence that begins with '{m[1]}': name the subject first"

    def line_of(self, at):
        for part, number in zip(self.parts, self.lines):
            if at <= len(part):
                return number
            at -= len(part) + 1
        return self.lines[-1]


def of_lines(rows):
    """Yield the findings of (line number, text) rows of plain prose: blank lines and list items end a paragraph."""
    text = Text()
    for number, row in rows:
        item = re.match(r"\s*(?:[-*+]|\d+[.)])\s+", row)
        if item or not row.strip():
            yield from text.findings()
            text = Text()
        text.add(row[item.end():] if item else row, number)
    yield from text.findings()


# ---- Markdown and man pages ------------------------------------------------------------------------------------

LINK_ALONE = re.compile(r"^\s*(?:[-*+>]\s+|\d+\.\s+)?(?:\S*\[[^\]]*\]\([^)]*\)\S*|\[[^\]]*\]:\s.*|\S+)$")


def without_targets(row):
    """A link's text without its target; an image or comment is no prose."""
    row = re.sub(r"<!--.*?-->|!\[[^\]]*\]\([^)]*\)", "", row)
    return re.sub(r"\]\([^)]*\)", "]", row)


def markdown_rows(content):
    """Yield (line number, kind, row); kind is code, head (of a table), cells, title or text."""
    fence, table = "", False
    for number, row in enumerate(content.splitlines(), 1):
        mark = re.match(r"\s*(```+|~~~+)", row)
        if fence or mark:
            kind = "code"
            if not fence:
                fence = mark[1]
            elif row.strip() == fence:
                fence = ""
        elif row.lstrip().startswith("|"):
            kind = "cells" if table else "head"
        else:
            kind = "title" if re.match(r"#+ |<", row) else "text"
        table = kind in ("head", "cells")
        yield number, kind, row


def check_cells(number, row):
    for cell in re.split(r"(?<!\\)\|", row.strip().strip("|")):
        text = Text()
        text.add(without_targets(cell), number)
        yield from text.findings()


def check_markdown(content):
    """Yield (line number, message) for Markdown and scdoc, which agree on everything that matters here."""
    rows = []
    for number, kind, row in markdown_rows(content):
        if kind == "cells":
            yield from check_cells(number, row)
        rows.append((number, without_targets(re.sub(r"^\s*>\s?", "", row)) if kind == "text" else ""))
    yield from of_lines(rows)


def check_markdown_width(content):
    for number, kind, row in markdown_rows(content):
        columns = len(row.expandtabs(TAB))
        if kind == "text" and columns > TEXT_COLUMNS and not LINK_ALONE.match(row):
            yield number, f"{columns} columns: wrap text at {TEXT_COLUMNS}"


# ---- C -----------------------------------------------------------------------------------------------------------

C_TOKEN = re.compile(r"""
    (?P<block>/\*.*?(?:\*/|\Z)) | (?P<line>//[^\n]*) | (?P<string>"(?:\\.|[^"\\\n])*") | (?P<char>'(?:\\.|[^'\\\n])*')
    | (?P<include>^[ \t]*\#[ \t]*include[^\n]*) | (?P<newline>\n) | (?P<space>[ \t]+) | (?P<other>[^/"'\#\s]+|.)
""", re.S | re.M | re.X)
ESCAPES = re.compile(r"\\(?:n|t|r)")


def check_c(content):
    """Yield (line number, message) for comments and string literals; adjacent literals are one text."""
    number, strings, wide = 1, Text(), set()
    rows = content.splitlines()
    for m in C_TOKEN.finditer(content):
        kind, token = m.lastgroup, m[0]
        if kind in ("other", "include", "char"):
            if strings.parts:
                yield from strings.findings()
                strings = Text()
        elif kind == "string":
            strings.add(ESCAPES.sub(" ", token[1:-1]), number)
        elif kind in ("block", "line"):
            body = re.sub(r"^/[*/]+|\*+/$", "", token)
            lines = [re.sub(r"^\s*\*(?!\*) ?", "", row) if i else row for i, row in enumerate(body.splitlines())]
            yield from of_lines([(number + i, row) for i, row in enumerate(lines)])
            wide |= set(range(number, number + len(lines)))
        number += token.count("\n")
    yield from strings.findings()
    for at in sorted(wide):
        columns = len(rows[at - 1].expandtabs(TAB)) if at <= len(rows) else 0
        if columns > C_COLUMNS:
            yield at, f"comment of {columns} columns: wrap at {C_COLUMNS}"


# ---- comments with # -----------------------------------------------------------------------------------------------

def together(comments):
    """Yield the findings of (line number, is the whole line, text); whole lines that follow each other are one text."""
    rows, last = [], None
    for number, whole, text in comments:
        if rows and not (whole and last == number - 1):
            yield from of_lines(rows)
            rows = []
        rows.append((number, text))
        last = number if whole else None
    yield from of_lines(rows)


def check_python(content):
    try:
        tokens = list(tokenize.generate_tokens(io.StringIO(content).readline))
        tree = ast.parse(content)
    except (SyntaxError, tokenize.TokenError):
        return  # another checker reports it
    yield from together((t.start[0], not t.line[:t.start[1]].strip(), t.string.lstrip("#")) for t in tokens
                        if t.type == tokenize.COMMENT and not t.string.startswith("#!"))
    for node in ast.walk(tree):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)) and ast.get_docstring(node, False):
            first = node.body[0].value
            lines = ast.get_docstring(node, False).split("\n")
            # A backslash at the end of a line joins lines: the numbers are then near, not exact.
            yield from of_lines([(min(first.lineno + i, first.end_lineno), row) for i, row in enumerate(lines)])


def hash_comments(content):
    for number, row in enumerate(content.splitlines(), 1):
        if m := re.match(r"\s*#(?!!)(.*)", row):
            yield number, True, m[1].lstrip("#")
        elif (m := re.search(r"\s#\s(.*)", row)) and not any(row[:m.start()].count(q) % 2 for q in "\"'"):
            yield number, False, m[1]


def check_hash(content):
    yield from together(hash_comments(content))


# ---- files -----------------------------------------------------------------------------------------------------------

def checkers(path):
    """The functions that read a file with this name."""
    name = path.name
    if name.endswith(".md"):
        return (check_markdown, check_markdown_width)
    if name.endswith(".scd"):
        return (check_markdown,)
    if name.endswith((".c", ".h")):
        return (check_c,)
    if name.endswith(".py"):
        return (check_python,)
    if name.endswith((".sh", ".bash", ".policy")) or name in ("Makefile", "meson.build", "meson_options.txt") or path.parts[-2:] == (".ci", "run"):
        return (check_hash,)
    return ()


def findings_of(path):
    content = path.read_text(encoding="utf-8", errors="replace")
    return sorted(found for check in checkers(path) for found in check(content))


def findings_below(root):
    """{path from the root: its findings} for all files that have some, and how many files were read."""
    found, read = {}, 0
    for directory, names, files in os.walk(root):
        names[:] = sorted(n for n in names if not PRUNED.match(n))
        for name in sorted(files):
            path = Path(directory) / name
            if path.is_symlink() or not checkers(path):
                continue
            read += 1
            if rows := findings_of(path):
                found[path.relative_to(root).as_posix()] = rows
    return found, read


# ---- the baseline ------------------------------------------------------------------------------------------------------

HEADER = """\
# Findings of tools/check-prose.py that each file may still have. A count may only fall:
# tools/check-prose.py --update writes the present counts and refuses to raise one.
"""


def read_baseline(path):
    allowed = {}
    for number, row in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if row.strip() and not row.startswith("#"):
            m = re.fullmatch(r"(\d+) (\S.*)", row)
            if not m or m[2] in allowed:
                raise ValueError(f"{path}:{number}: expected 'COUNT PATH', each path once")
            allowed[m[2]] = int(m[1])
    return allowed


def write_baseline(path, counts):
    rows = "".join(f"{counts[name]} {name}\n" for name in sorted(counts) if counts[name])
    path.write_text(HEADER + rows, encoding="utf-8")


def show(found, names):
    for name in names:
        for number, message in found[name]:
            print(f"{name}:{number}: {message}")


def count(found):
    tops = {}
    for name, rows in found.items():
        top = name.split("/")[0] if "/" in name else "."
        tops[top] = tops.get(top, 0) + len(rows)
    for top in sorted(tops):
        print(f"{tops[top]:6} {top}")
    print(f"{sum(tops.values()):6} in all")
    return 0


def check_tree(root, mode):
    found, read = findings_below(root)
    if not read:
        print(f"check-prose: no files to read below {root}", file=sys.stderr)
        return 2
    if mode == "--count":
        return count(found)
    if mode == "--all":
        show(found, found)
        return 1 if found else 0
    path = root / BASELINE
    counts = {name: len(rows) for name, rows in found.items()}
    try:
        allowed = read_baseline(path) if path.exists() else None
    except ValueError as e:
        print(f"check-prose: {e}", file=sys.stderr)
        return 2
    if mode == "--update" and allowed is None:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_baseline(path, counts)
        print(f"check-prose: wrote {path} with {sum(counts.values())} findings in {len(counts)} files")
        return 0
    allowed = allowed or {}
    over = [name for name in found if counts[name] > allowed.get(name, 0)]
    show(found, over)
    for name in over:
        print(f"{name}: {counts[name]} findings, and its baseline allows {allowed.get(name, 0)}")
    less = [name for name in allowed if counts.get(name, 0) < allowed[name]]
    if mode == "--update":
        write_baseline(path, {name: min(allowed[name], counts.get(name, 0)) for name in allowed})
        print(f"check-prose: lowered the baseline of {len(less)} files")
    elif less:
        print(f"check-prose: {len(less)} files have fewer findings than their baseline: lower it with tools/check-prose.py --update")
    if not over:
        print(f"check-prose: {read} files, {sum(counts.values())} findings, all within the baseline")
    return 1 if over else 0


def main(argv):
    args = argv[1:]
    mode = args.pop(0) if args and args[0] in ("--update", "--all", "--count") else ""
    paths = [Path(a) for a in args]
    if any(a.startswith("-") for a in args) or not all(p.exists() for p in paths) or len(paths) > 1 and any(p.is_dir() for p in paths):
        print(__doc__[__doc__.index("usage:"):].split("\n\n")[0], file=sys.stderr)
        return 2
    if not paths or paths[0].is_dir():
        return check_tree(paths[0] if paths else Path(__file__).resolve().parent.parent, mode)
    if mode:
        print(f"check-prose: {mode} takes a directory, not files", file=sys.stderr)
        return 2
    found = {str(p): rows for p in paths if (rows := findings_of(p))}
    show(found, found)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
