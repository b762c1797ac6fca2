# SPDX-License-Identifier: Apache-2.0
"""imports.py - Runs in a sandbox of the survey: import the modules of an installed package, and print how that went.

The sandbox has SURVEY_NAME and SURVEY_HINT in its environment. The modules come from the list of the package's files: the module
that has the package's name, or else those at the top. A package without any (stubs, a list of dependencies) has its metadata.
"""
import importlib
import importlib.metadata
import json
import os
import re

NAME, HINT = os.environ["SURVEY_NAME"], os.environ["SURVEY_HINT"]
SUFFIX = re.compile(r"(\.cpython-[^/]*|\.abi3)?\.(py|so)$")
ASIDE = {"test", "tests", "testing", "docs", "doc", "examples", "example", "benchmarks", "scripts", "setup", "conftest", "bin"}
MOST = 5


def modules(distribution):
    files = [str(f) for f in distribution.files or () if SUFFIX.search(str(f)) and not str(f).startswith("..")]
    names = [SUFFIX.sub("", f) for f in files if re.fullmatch(r"[A-Za-z_]\w*(/[A-Za-z_]\w*)*", SUFFIX.sub("", f))]
    packages = {n[:-len("/__init__")] for n in names if n.endswith("/__init__")}
    top = [p for p in packages if not any(p.startswith(q + "/") for q in packages)]
    found = sorted({*top, *(n for n in names if "/" not in n)}) or sorted(names)[:1]
    if not found:
        found = [m for m in (distribution.read_text("top_level.txt") or "").split() if m.isidentifier()]  # not NAME-stubs
    plain = re.sub(r"\W|_", "", NAME).lower()
    public = [m for m in found if not re.search("(^|/)_", m) and m.split("/")[0] not in ASIDE]
    own = [m for m in public if re.sub(r"\W|_", "", m).lower() == plain]
    return [m.replace("/", ".") for m in (own or public or found)[:MOST]]


def survey():
    distribution = importlib.metadata.distribution(NAME)
    result = {"version": distribution.version, "modules": [] if HINT == "metadata" else [HINT] if HINT else modules(distribution)}
    for module in result["modules"]:
        try:
            importlib.import_module(module)
        except BaseException as e:  # a module may end the process
            result["error"] = "import %s: %s: %s" % (module, type(e).__name__, e)
            break
    result["how"] = "import" if result["modules"] else "metadata"
    return result


print("\nSURVEY " + json.dumps(survey()))
