# SPDX-License-Identifier: Apache-2.0
"""test_prose.py - check-prose.py must find its patterns, accept plain text, and never let a baseline rise (run by `make lint`)."""
import subprocess
from pathlib import Path

import pytest

TOOLS = Path(__file__).resolve().parent
BASELINE = "tools/prose-baseline.txt"


def prose(*args):
    return subprocess.run(["/usr/bin/python3", TOOLS / "check-prose.py", *args], capture_output=True, text=True, check=False)


def write(root, files):
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


FOUND = [
    ("a.md", "The gate can not connect.\n", 1, "write 'cannot'"),
    ("a.md", "one\n\nThe gate can\nnot connect.\n", 3, "write 'cannot'"),                 # a line break does not hide it
    ("a.md", "- Whoever takes it over wins.\n", 1, "name the actor"),
    ("a.md", "| a |\n|---|\n| for whomever asks |\n", 3, "name the actor"),               # in a cell of a table
    ("a.md", "The name is none.\n", 1, "say what is missing"),
    ("a.md", "They are none of ours.\n", 1, "say what is missing"),
    ("a.h", "/* f() - By name; NULL when there is none. */\n", 1, "say what is missing"),
    ("a.h", "/*\n * f() - By name. NULL: there\n * are none.\n */\n", 2, "say what is missing"),
    ("a.py", 'def f():\n    """Raises if there is none."""\n', 2, "say what is missing"),
    ("a.md", "Other keys? There are none.\n", 1, "say what is missing"),
    ("a.md", "A field that nobody knows is ignored.\n", 1, "write 'unknown'"),
    ("a.md", "It works. What is left is removed.\n", 1, "name the subject"),
    ("a.md", "**Why.** Who asks gets it.\n", 1, "name the subject"),
    ("a.md", "**What it does** is here.\n", 1, "name the subject"),
    ("a.md", "x" + " x" * 70 + "\n", 1, "141 columns"),
    ("man/a.1.scd", "# NAME\n\nIt can not be set.\n", 3, "write 'cannot'"),
    ("a.c", "int a;\n/* What it holds. */\n", 2, "name the subject"),
    ("a.c", "/*\n * a.c - What it holds.\n */\n", 2, "name the subject"),
    ("a.h", "/* f() - Who asks; NULL: no one. */\n", 1, "name the subject"),
    ("a.c", "int a; // it can not be\n", 1, "write 'cannot'"),
    ("a.c", "/*\n * It can\n * not be.\n */\n", 2, "write 'cannot'"),
    ("a.c", 'f("a", 1,\n  "it can "\n  "not be");\n', 2, "write 'cannot'"),                # adjacent literals are one text
    ("a.c", 'f("the token\\nis none");\n', 1, "say what is missing"),
    ("a.c", "\tint a; /* " + "x" * 90 + " */\n", 1, "comment of 111 columns"),
    ("a.py", "x = 1  # it can not be\n", 1, "write 'cannot'"),
    ("a.py", "# It can\n# not be.\n", 1, "write 'cannot'"),
    ("a.py", 'def f():\n    """What it does."""\n', 2, "name the subject"),
    ("a.sh", "#!/bin/sh\n# whoever calls\n", 2, "name the actor"),
    ("a.sh", "true # it can not be\n", 1, "write 'cannot'"),
    ("policy/a.policy", "# What is left: nothing.\n", 1, "name the subject"),
]


@pytest.mark.parametrize("name,text,line,why", FOUND)
def test_finds(tmp_path, name, text, line, why):
    write(tmp_path, {name: text})
    r = prose(tmp_path / name)
    assert r.returncode == 1 and r.stderr == "" and len(r.stdout.splitlines()) == 1, r
    assert r.stdout.startswith(f"{tmp_path / name}:{line}: ") and why in r.stdout, r


@pytest.mark.parametrize("name,text", [
    ("a.md", "The gate cannot connect. It can not only read but write. There is no key; none of the keys fits.\n"),
    ("a.md", "# What is protected\n\n## Who is who\n\nWhat is it? A cell.\n"),               # titles, and questions
    ("a.md", "Write `cannot`, not `can not`; say `who`, not ``whoever``.\n"),                # code
    ("a.md", "```\nWhoever can not is none.\n```\n\n    " + "x " * 40 + "\n"),
    ("a.md", "| What it is | " + "x" * 200 + " |\n|---|---|\n| a | " + "y " * 100 + "|\n"),   # the head of a table; tables may be wide
    ("a.md", "- [a link](https://example.com/" + "x" * 200 + ").\n\n[b]: https://example.com/" + "y" * 200 + "\n"),
    ("a.md", "See [the page](docs/can not.md).\n"),                                          # a link's target
    ("a.c", '#include "whoever.h"\nint a = \'"\'; /* The gate. */ char *s = "%s: " "cannot";\n'),
    ("a.c", "\tf(" + "x" * 100 + ");\n"),                                                    # code has another checker
    ("a.c", 'f("a can ", x, "not b");\n'),                                                   # two arguments are two texts
    ("a.py", 'x = "whoever"\nif x is None: pass  # where x is None\n'),
    ("a.sh", "echo \"a # whoever\"\n"),
    ("a.js", "// whoever\n"),                                                                # not read at all
])
def test_accepts(tmp_path, name, text):
    write(tmp_path, {name: text})
    r = prose(tmp_path / name)
    assert (r.returncode, r.stdout, r.stderr) == (0, "", ""), r


BAD = "It can not be.\n"


def rows(root):
    return [line for line in (root / BASELINE).read_text().splitlines() if not line.startswith("#")]


def test_a_tree_without_a_baseline_may_have_no_finding(tmp_path):
    write(tmp_path, {"docs/a.md": "Good.\n"})
    assert prose(tmp_path).returncode == 0
    write(tmp_path, {"docs/a.md": BAD, "build/b.md": BAD, ".git/c.md": BAD})
    r = prose(tmp_path)
    assert r.returncode == 1 and "docs/a.md:1: " in r.stdout and "build" not in r.stdout and ".git" not in r.stdout, r


def test_a_baseline_only_falls(tmp_path):
    write(tmp_path, {"a.md": BAD + "\n" + BAD, "b.md": BAD, "tools/x.sh": "true\n"})
    assert prose("--update", tmp_path).returncode == 0
    assert rows(tmp_path) == ["2 a.md", "1 b.md"]
    assert prose(tmp_path).returncode == 0

    write(tmp_path, {"a.md": BAD, "b.md": BAD + "\n" + BAD})  # a total that stays is no excuse
    r = prose(tmp_path)
    assert r.returncode == 1 and "b.md:3: " in r.stdout and "b.md: 2 findings, and its baseline allows 1" in r.stdout and "a.md:" not in r.stdout, r
    assert prose("--update", tmp_path).returncode == 1, "an update raised a count"
    assert rows(tmp_path) == ["1 a.md", "1 b.md"]

    write(tmp_path, {"a.md": "Good.\n", "b.md": BAD, "new.md": BAD})
    r = prose(tmp_path)
    assert r.returncode == 1 and "new.md: 1 findings, and its baseline allows 0" in r.stdout and "--update" in r.stdout, r
    assert prose("--update", tmp_path).returncode == 1, "an update took a new file"
    assert rows(tmp_path) == ["1 b.md"]


def test_modes(tmp_path):
    write(tmp_path, {"src/a.md": BAD, "docs/b.md": BAD + "\n" + BAD, "c.md": BAD})
    assert prose("--update", tmp_path).returncode == 0
    r = prose("--all", tmp_path)
    assert r.returncode == 1 and len(r.stdout.splitlines()) == 4, r
    r = prose("--count", tmp_path)
    assert r.returncode == 0 and [line.split() for line in r.stdout.splitlines()] == [["1", "."], ["2", "docs"], ["1", "src"], ["4", "in", "all"]], r


def test_wrong_use(tmp_path):
    write(tmp_path, {"a.md": BAD, "d/b.md": BAD, "empty/x.bin": ""})
    for args in (["--nonsense"], [tmp_path / "missing"], [tmp_path / "d", tmp_path / "a.md"], ["--update", tmp_path / "a.md"], [tmp_path / "empty"]):
        r = prose(*args)
        assert r.returncode == 2 and r.stderr and not r.stdout, (args, r)
    write(tmp_path, {BASELINE: "one a.md\n"})
    r = prose(tmp_path)
    assert r.returncode == 2 and f"{BASELINE}:1: " in r.stderr, r
