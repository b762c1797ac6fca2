#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""check-docs.py - Check that man pages and shell completions have exactly the existing options.

The tables in src/cli/run_options.c, src/front/support/config.c and src/remote/ are the source of truth; this compares names,
so that an option cannot be added, renamed or dropped in one place only. It also checks that links between the documents lead
to a file, and that the tests that docs/adversary.md cites exist.

usage: check-docs.py     exit 0: all agree, 1: one line per difference
"""
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
COMMON = {"--help", "--version"}  # options of every program, not in the table
OPTION = re.compile(r"(?<![\w-])(--[a-z][a-z0-9-]*)")
SHELLS = ("dist/completions/caisson.bash", "dist/completions/caisson.zsh")
REMOTE = {"src/remote/audit_verb.c": "docs/man/caisson-audit.1.scd", "src/remote/remote_options.c": "docs/man/caisson-sandbox.1.scd",
          "src/image/main.c": "docs/man/caisson-image.1.scd"}  # verbs with a page of their own
MCP = "docs/man/caisson-mcp.1.scd"  # has options of options.c, and examples with options of a daemon


def table_options(source):
    text = (ROOT / source).read_text(encoding="utf-8")
    rows = text[text.index("rows[] = {"):]
    return set(re.findall(r'^\t\{ "(--[a-z0-9-]+)"', rows[:rows.index("\n};")], re.MULTILINE))


def differences(place, known, used):
    missing, strange = known - used, used - known - COMMON
    if missing:
        yield f"{place}: lacks {' '.join(sorted(missing))}"
    if strange:
        yield f"{place}: names unknown options: {' '.join(sorted(strange))}"


def broken_links():
    pages = [p for d in (".", "docs", "docs/internals", "docs/protocol") for p in (ROOT / d).glob("*.md")]
    for path in sorted(pages):
        for target in re.findall(r"\]\(([^)#]+)[^)]*\)", path.read_text(encoding="utf-8")):
            if "://" not in target and not (path.parent / target).exists():
                yield f"{path.relative_to(ROOT)}: link to '{target}', which does not exist"


def missing_tests():
    """Check that the tests exist that docs/adversary.md cites as `hostile/test_x.py::test_name`, or as a file."""
    text = (ROOT / "docs/adversary.md").read_text(encoding="utf-8")
    cited = re.findall(r"`((?:tests/)?(?:hostile|serve|integ|fuzz|unit)/[\w/.]+?\.(?:py|c))(?:::(\w+))?`", text)
    cited += [("hostile/" + file, "") for file in re.findall(r"`(payloads/\w+\.c)`", text)]
    if len(cited) < 50:
        yield "docs/adversary.md: its citations could not be parsed"
    for file, name in cited:
        path = ROOT / "tests" / file.removeprefix("tests/")
        defined = rf"^def {name}\(|^(?:\w+_)?TEST\({name.removeprefix('test_')}[,)]"
        if not path.exists() or (name and not re.search(defined, path.read_text(encoding="utf-8"), re.M)):
            yield f"docs/adversary.md: cites {file}{'::' + name if name else ''}, which does not exist"


def main():
    known = table_options("src/cli/run_options.c")
    served = table_options("src/front/support/config.c")
    if len(known) < 10 or len(served) < 10:
        print("check-docs: a table of options could not be parsed")
        return 1
    bad = [*broken_links(), *missing_tests()]
    pages = {"docs/man/caisson.1.scd": known, "docs/man/caisson-serve.1.scd": served}
    for source, page in REMOTE.items():
        pages[page] = table_options(source)
    remote = set().union(*(pages[page] for page in REMOTE.values()))
    mcp = set(OPTION.findall((ROOT / MCP).read_text(encoding="utf-8")))
    pages["docs/man/caisson-sandbox.1.scd"] -= {"--tools", "--print-config"}
    bad += differences(MCP, {"--tools", "--print-config"}, mcp - remote - served | mcp & {"--tools", "--print-config"})
    pages.update((shell, known | remote) for shell in SHELLS)
    for page, options in pages.items():
        bad += differences(page, options, set(OPTION.findall((ROOT / page).read_text(encoding="utf-8"))))
    fish = "dist/completions/caisson.fish"
    text = (ROOT / fish).read_text(encoding="utf-8")
    bad += differences(fish, known | remote, {"--" + n for n in re.findall(r"^complete .* -l ([a-z-]+)", text, re.M)})
    for line in bad:
        print(line)
    if not bad:
        print(f"check-docs: {len(known)}, {len(served)} and {len(remote)} options, clean")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
