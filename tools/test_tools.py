# SPDX-License-Identifier: Apache-2.0
"""test_tools.py - The checkers must find their violations, and steps.sh must run its targets (run by `make lint`)."""
import os
import subprocess
from pathlib import Path

import pytest

TOOLS = Path(__file__).resolve().parent


def layers(tmp_path, files):
    for name, text in files.items():
        path = tmp_path / "src" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return subprocess.run(["/usr/bin/python3", TOOLS / "check-layers.py", tmp_path / "src"],
                          capture_output=True, text=True, check=False)


def test_layers_accepts_what_the_table_allows(tmp_path):
    r = layers(tmp_path, {"base/err.h": "#include <stdint.h>\n",
                          "base/err.c": '#include "base/err.h"\n',
                          "wire/warden.h": "",
                          "warden/main.c": '#include "base/err.h"\n#include "wire/warden.h"\n',
                          "cell/seccomp.c": '#include "cell_filter.h"\n'})
    assert (r.returncode, r.stderr) == (0, "") and "5 files clean" in r.stdout


@pytest.mark.parametrize("name,text", [
    ("base/a.c", '#include "cell/x.h"\n'),          # upwards
    ("warden/a.c", '#include "client/x.h"\n'),      # sideways into a privileged program
    ("cli/a.c", '#include "cell/x.h"\n'),           # past the client
    ("client/a.c", '#  include "cell/x.h"\n'),      # spaces do not hide it
    ("cell/a.c", '#include "x.h"\n'),               # not written from src/
    ("cell/a.c", '#include "cell/missing.h"\n'),    # no such file
    ("cell/a.c", "#include <seccomp.h>\n"),         # a build-time library in the product
    ("init/a.c", '#include "cell_filter.h"\n'),     # generated for another layer
    ("extra/a.c", "\n"),                            # a layer that is not in the table
])
def test_layers_rejects(tmp_path, name, text):
    r = layers(tmp_path, {"cell/x.h": "", "client/x.h": "", name: text})
    assert r.returncode == 1
    assert f"src/{name}:1:" in r.stdout


def test_layers_of_the_front_go_up_only(tmp_path):
    r = layers(tmp_path, {"front/cell/cell.h": "", "front/sandbox/sandbox.h": '#include "front/cell/cell.h"\n'})
    assert r.returncode == 0, r.stdout
    r = layers(tmp_path, {"front/cell/cell.c": '#include "front/sandbox/sandbox.h"\n', "front/closet/x.c": ""})
    assert r.returncode == 1 and "it comes later in FRONT" in r.stdout and "'front/closet' is not a layer" in r.stdout


@pytest.mark.parametrize("name,text,clean", [
    ("front/main/a.c", "static struct parts all;\n", True),
    ("front/api/a.c", "static struct frontier f;\nint partsof;\n", True),
    ("front/api/a.c", "void f(struct parts *p);\n", False),
    ("front/sandbox/a.h", "struct front;\n", False),
    ("front/main/a.c", "void f(const struct front *f);\n", False),
])
def test_layers_keep_the_whole_of_the_front_in_main(tmp_path, name, text, clean):
    r = layers(tmp_path, {name: text})
    assert (r.returncode == 0) == clean, r.stdout
    assert clean or f"src/{name}:1:" in r.stdout and "take the part that is needed" in r.stdout


def style(tmp_path, name, text):
    path = tmp_path / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return subprocess.run([TOOLS / "check-style.sh", path], capture_output=True, text=True,
                          check=False, env={**os.environ, "LC_ALL": "C"})


SPDX = "/* SPDX-License-Identifier: Apache-2.0 */\n"


def test_style_accepts_a_plain_file(tmp_path):
    r = style(tmp_path, "a.c", SPDX + "/* a.c - Nothing. */\nint x; /* not strcpy_s() */\n")
    assert r.returncode == 0, r.stdout + r.stderr


@pytest.mark.parametrize("text,what", [
    ("int x;\n", "SPDX"),
    (SPDX + "void f(void) { strcpy(a, b); }\n", "strcpy"),
    (SPDX + "void f(void) { x = atoi(s); }\n", "atoi"),
    (SPDX + "void f(void) { p = alloca(n); }\n", "alloca"),
    (SPDX + "int x; \n", "trailing"),
    (SPDX + "// a line\n", "comment"),
    (SPDX + "int x;\n" * 800, "800"),
    (SPDX + "int x;", "newline"),
])
def test_style_rejects(tmp_path, text, what):
    r = style(tmp_path, "a.c", text)
    assert r.returncode == 1
    assert what in r.stdout


def test_deps_names_an_unknown_group():
    r = subprocess.run([TOOLS / "deps.sh", "nonsense"], capture_output=True, text=True, check=False)
    assert r.returncode == 2 and "nonsense" in r.stderr


MAKEFILE = """
.PHONY: build slow-build one two bad meet-a meet-b a-fetch
build:
	@echo built >>builds
slow-build:
	@while ! test -e fetched; do sleep 0.01; done; touch built
a-fetch: slow-build
	@touch fetched
one two: build
	@echo this is $@
bad: build
	@echo the reason; exit 3
meet-a meet-b: build
	@touch $@.here; while ! test -e meet-a.here || ! test -e meet-b.here; do sleep 0.01; done
"""


def steps(tmp_path, *args):
    (tmp_path / "tools").mkdir()
    (tmp_path / "tools" / "steps.sh").write_bytes((TOOLS / "steps.sh").read_bytes())
    (tmp_path / "Makefile").write_text(MAKEFILE)
    env = {k: v for k, v in os.environ.items() if not k.startswith("MAKE")}
    return subprocess.run(["/bin/bash", tmp_path / "tools" / "steps.sh", *args], capture_output=True, text=True, check=False,
                          timeout=60, env=env)


def test_steps_run_lanes_side_by_side_and_build_once(tmp_path):
    r = steps(tmp_path, "build", "--", "meet-a one", "meet-b", "--", "two")
    assert r.returncode == 0 and "all of 5 steps passed" in r.stdout, r
    assert (tmp_path / "builds").read_text() == "built\n"
    assert r.stdout.index("this is one") < r.stdout.index("==== two ====") < r.stdout.index("this is two")


def test_steps_go_on_after_a_failure_and_tell(tmp_path):
    r = steps(tmp_path, "build", "--", "bad one", "two", "--", "bad")
    assert r.returncode == 1 and "FAILED, after" in r.stdout, r
    assert r.stdout.count("the reason") == 2 and "this is one" in r.stdout and "this is two" in r.stdout
    assert [line.split()[:2] for line in r.stdout.splitlines() if line.startswith("bad ")] == [["bad", "FAIL"]] * 2


@pytest.mark.parametrize("lanes", [("bad", "--", "one"), ("bad one", "two")])
def test_steps_need_their_build(tmp_path, lanes):
    r = steps(tmp_path, *lanes)
    assert r.returncode == 1 and "this is" not in r.stdout, r


def test_steps_fetch_beside_the_build_and_others_wait_for_it(tmp_path):
    r = steps(tmp_path, "slow-build", "a-fetch one", "two")
    assert r.returncode == 0 and "all of 4 steps passed" in r.stdout, r
    assert r.stdout.index("==== slow-build: ok") < min(r.stdout.index("this is one"), r.stdout.index("this is two"))


def inline(tmp_path, files):
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    return subprocess.run(["/usr/bin/python3", TOOLS / "inline-js.py", "-o", tmp_path / "out", *(tmp_path / name for name in files)],
                          capture_output=True, text=True, check=False)


def test_inline_js_takes_every_module_that_is_required(tmp_path):
    r = inline(tmp_path, {"s.js": "require('./a.js'); require('./b.js'); require('fs');\n",
                          "a.js": "module.exports = require('./b.js');\n", "b.js": "module.exports = 1;\n"})
    assert (r.returncode, r.stderr) == (0, "")
    text = (tmp_path / "out").read_text()
    assert "require('./" not in text and "require('fs')" in text and text.count("module.exports = 1;") == 1


@pytest.mark.parametrize("files,why", [
    ({"s.js": "require('./a.js');\n"}, "a.js is not among the modules"),
    ({"s.js": "\n", "a.js": "\n"}, "a.js is not required"),
])
def test_inline_js_rejects(tmp_path, files, why):
    r = inline(tmp_path, files)
    assert r.returncode == 1 and why in r.stderr and not (tmp_path / "out").exists()


def test_inline_py_takes_the_module_that_is_imported(tmp_path):
    (tmp_path / "a.py").write_text("ONE = 1\n")
    for text, status in (("from a import ONE\nprint(ONE)\n", 0), ("print(1)\n", 1)):
        (tmp_path / "s.py").write_text(text)
        r = subprocess.run(["/usr/bin/python3", TOOLS / "inline-py.py", "-o", tmp_path / "out", tmp_path / "s.py", tmp_path / "a.py"],
                           capture_output=True, text=True, check=False)
        assert r.returncode == status and ("must import a once" in r.stderr) == bool(status), r
    assert (tmp_path / "out").read_text() == "ONE = 1\nprint(ONE)\n"


# ---- check-replies.py --------------------------------------------------------------------------------------------------------

ANSWERS = """static void answer(struct http_exchange *x)
{
	http_reply(x, 200, NULL, "x", 1);
}

"""


def replies(tmp_path, body):
    (tmp_path / "src").mkdir()
    text = ANSWERS + "void handle(struct services *f, struct http_exchange *x)\n{\n" + "".join("\t%s\n" % line for line in body) + "}\n"
    (tmp_path / "src" / "a.c").write_text(text)
    return subprocess.run(["/usr/bin/python3", TOOLS / "check-replies.py", tmp_path / "src"], capture_output=True, text=True)


@pytest.mark.parametrize("body", [
    ["answer(x);", "look(visit_of(x));"],
    ["if (f)", "\tanswer(x);", "look(x);"],
    ["if (f) {", "\tanswer(x);", "\tfree(f);", "}", "look(x);"],
    ["answer(x); /* it is over */", "", "if (f)", "\tlook(x);"],
    ["answer(x);", "return look(x);"],
])
def test_a_look_after_the_reply(tmp_path, body):
    p = replies(tmp_path, body)
    assert p.returncode == 1 and "'x' is used after it was answered" in p.stdout, p


@pytest.mark.parametrize("body", [
    ["look(x);", "answer(x);", "free(f);"],
    ["if (f) {", "\tanswer(x);", "\treturn;", "}", "look(x);"],
    ["if (f)", "\tanswer(x);", "else", "\tlook(x);"],
    ["if (f) {", "\tanswer(x);", "} else if (x) {", "\tlook(x);", "}"],
    ["answer(x);", 'say("x is gone"); /* x */'],
])
def test_no_look_after_the_reply(tmp_path, body):
    p = replies(tmp_path, body)
    assert p.returncode == 0 and "clean" in p.stdout, p
