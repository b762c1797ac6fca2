# SPDX-License-Identifier: Apache-2.0
"""test_docs.py - The examples of the documentation run, in the order in which they stand."""
import builtins
import re
from pathlib import Path

import caisson

ROOT = Path(__file__).resolve().parents[3]


def examples(path):
    return re.findall(r"^```python\n(.*?)^```", (ROOT / path).read_text(encoding="utf-8"), re.M | re.S)


def test_documentation(url, monkeypatch, capsys):
    monkeypatch.setenv("CAISSON_URL", url)
    monkeypatch.delenv("CAISSON_TOKEN", raising=False)
    space = {}
    for code in examples("docs/sdk.md"):
        exec(compile(code, "docs/sdk.md", "exec"), space)
    out = capsys.readouterr().out
    assert out.startswith("42\n") and "['0', '1', '4']" in out and "1\n2\n3\n0\n" in out and out.rstrip().endswith("45"), out
    with caisson.Caisson(url) as c:
        assert c.list() == []


def test_readme(url, monkeypatch, capsys):
    monkeypatch.setenv("CAISSON_URL", url)
    for code in examples("sdk/python/README.md"):
        exec(compile(code, "README.md", "exec"), {})
    assert capsys.readouterr().out.strip() == "42"


def test_documentation_names_what_there_is():
    """Classes, and methods of the parts of a sandbox."""
    text = (ROOT / "docs/sdk.md").read_text(encoding="utf-8")
    for name in re.findall(r"`([A-Z]\w+)`", text):
        assert hasattr(caisson, name) or hasattr(builtins, name) or name.startswith("CAISSON"), name
    box = caisson.Sandbox(None, "x")
    for part in ("files", "processes", "ports", "packages", "egress", "executions", "workspace"):
        methods = {n for n in dir(getattr(box, part)) if not n.startswith("_")}
        row = next(line for line in text.splitlines() if line.startswith("| `%s` |" % part))
        assert {m for m in methods if "`%s`" % m not in row} == set(), part
