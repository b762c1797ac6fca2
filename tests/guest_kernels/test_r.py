# SPDX-License-Identifier: Apache-2.0
"""test_r.py - The R kernel: the console's ways, with base R alone. One kernel for all tests that leave it in order."""
import base64

import pytest

from drivers import DRIVERS

DRIVER = DRIVERS["r"]
pytestmark = DRIVER.mark


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    kernel = DRIVER.start(tmp_path_factory.mktemp("r"))
    yield kernel
    assert kernel.close() == 0


@pytest.fixture
def k(shared):
    yield shared
    assert shared.alive(), "the kernel did not survive the test"
    r = shared.run("options(warn = 0); rm(list = ls()); graphics.off()")
    assert (r.status, r.stdout, r.stderr) == ("ok", "", ""), r


@pytest.mark.parametrize("code, stdout, text", [
    ("1 + 1", "", "[1] 2"),
    ("x <- 5", "", None),
    ("1\n'a'\nc(a = 1, b = 2)", '[1] 1\n[1] "a"\n', "a b \n1 2 "),
    ("1; invisible(2)", "[1] 1\n", None),
    ("(invisible(5))", "", "[1] 5"),
    ("NULL", "", "NULL"),
    ("data.frame(a = 1:2, b = letters[1:2])", "", "  a b\n1 1 a\n2 2 b"),
    ("function(x) {\n  x+1  # kept\n}", "", "function(x) {\n  x+1  # kept\n}"),
    ("print(1)", "[1] 1\n", None),
    ("if (FALSE) 1", "", None),
    ("for (i in 1:2) i", "", None),
    ("# only a comment", "", None),
    ("", "", None),
    ("setClass('P', representation(n = 'numeric')); setMethod('show', 'P', function(object) cat('<P>\\n')); new('P', n = 1)", "", "<P>"),
])
def test_values(k, code, stdout, text):
    r = k.run(code)
    assert r.status == "ok", r
    assert (r.stdout, r.text) == (stdout, text)


def test_state_is_kept(k):
    k.run("x <- 1:3; f <- function(a) a * 2; library(stats4)")
    r = k.run("cat(f(x), exists('mle'), '\\n'); .Last.value; ls()")
    assert r.stdout.startswith("2 4 6 TRUE") and r.text == '[1] "f" "x"'


def test_output_order(k):
    r = k.run("cat('a\\n'); system('echo b'); print('c'); invisible(system2('echo', 'd')); message('e'); write('f', stderr())")
    assert r.stdout == 'a\nb\n[1] "c"\nd\n' and r.stderr == "e\nf\n"


def test_errors(k):
    r = k.run("f <- function(v) {\n  g(v)\n}\ng <- function(v) stop('boom: ', v)\nf(3)")
    assert (r.status, r.exit_code) == ("error", 1)
    assert (r.error["name"], r.error["value"]) == ("simpleError", "boom: 3")
    assert r.error["traceback"][0] == "Error in g(v) : boom: 3"
    assert r.error["traceback"][-1] == "1: f(3)"
    assert any("g(v) at <execution" in line and "#2" in line for line in r.error["traceback"])
    assert not any("caisson" in line or "tryCatch" in line for line in r.error["traceback"])
    assert r.stderr == ""
    r = k.run("stop('top')")
    assert r.error["traceback"][0] == "Error: top"
    assert k.run("library(nopackage)").error["name"] == "packageNotFoundError"
    r = k.run("stop(structure(class = c('mine', 'error', 'condition'), list(message = 'm', call = NULL)))")
    assert (r.error["name"], r.error["value"]) == ("mine", "m")


def test_parse_errors_run_nothing(k):
    r = k.run("cat('no')\nx y")
    assert r.status == "error" and r.error["name"] == "parseError" and "unexpected symbol" in r.error["value"]
    assert r.stdout == "" and ":2:3:" in r.error["value"]


def test_odd_control_flow(k):
    assert k.run("break").status == "error"
    assert k.run("return(5)").text == "[1] 5"
    assert k.run("r <- function() r(); r()").status == "error"
    assert k.run("1").text == "[1] 1"


def test_warnings(k):
    r = k.run("warning('top'); f <- function() { warning('in f'); 7 }; f()")
    assert r.stderr == "Warning message:\ntop\nWarning message:\nIn f() : in f\n" and r.text == "[1] 7"
    assert k.run("for (i in 1:3) warning(i)").stderr == "Warning messages:\n1: 1\n2: 2\n3: 3\n"
    assert "12 warnings" in k.run("for (i in 1:12) warning(i)").stderr
    assert "Warning messages" in k.run("warnings()").text
    assert k.run("suppressWarnings(as.numeric('x'))").stderr == ""
    assert k.run("tryCatch(warning('w'), warning = function(w) 'caught')").text == '[1] "caught"'
    assert k.run("options(warn = 1); as.numeric('x')").stderr.startswith("Warning")
    r = k.run("options(warn = 2); as.numeric('x')")
    assert r.status == "error" and "converted from warning" in r.error["value"]


def test_plots(k):
    r = k.run("plot(1:10); lines(10:1)\ninvisible(hist(c(1, 2, 2, 3)))")
    if not k.run("stopifnot(capabilities('cairo'))").status == "ok":
        pytest.skip("this R has no cairo")
    assert len(r.displays) == 2, r
    for d in r.displays:
        png = base64.b64decode(d["data"]["image/png"], validate=True)
        assert png.startswith(b"\x89PNG") and png.rstrip(b"\0").endswith(b"IEND\xaeB`\x82")
    assert k.run("1 + 1").displays == []
    r = k.run("png('own.png'); plot(1); invisible(dev.off()); file.exists('own.png')")
    assert r.displays == [] and r.text == "[1] TRUE"
    r = k.run("plot(1); stop('after the plot')")
    assert len(r.displays) == 1 and r.status == "error"
    assert k.run("par(mfrow = c(1, 2)); invisible()").displays == []


def test_input(k):
    r = k.run("n <- readline('name? '); paste('hi', n)", inputs=["böb \"q\""])
    assert r.text == '[1] "hi böb \\"q\\""'
    assert [m["prompt"] for m in r.messages if m["type"] == "input_request"] == ["name? "]
    assert "no input" in k.run("readline()").error["value"]
    assert k.run("readLines(stdin(), 2)", inputs=["a", "b"]).text == '[1] "a" "b"'
    assert k.run("readLines(stdin())", inputs=["a", {"eof": True}]).text == '[1] "a"'
    assert k.run("con <- file('stdin'); x <- readLines(con); close(con); x").text == "character(0)"
    assert k.run("tf <- tempfile(); writeLines('file', tf); readLines(tf)").text == '[1] "file"'


def test_strings_of_all_kinds(k):
    text = "\\\\ ' \t \u0001\u007f é € 漢字 \U0001f600 / |"
    r = k.run('x <- "%s"; cat(x, "\\n"); nchar(x)' % text)
    assert r.stdout == text.replace("\\\\", "\\") + " \n"
    assert r.text == "[1] %d" % (len(text) - 1)
    k.start(None, raw=lambda i: (
        ' {"nested": {"code": "no", "l": [1, "id", {"type": "x"}]}, "type" : "execute", "id":"%s",'
        '"code":"cat(\\"\\u00e9\\ud83d\\ude00\\/\\ud800x\\")", "n": null}' % i).encode())
    assert k.finish().stdout == "é\U0001f600/\ufffdx"
    assert k.run("'a\\nb\\\\'").text == r'[1] "a\nb\\"'
    r = k.run("x <- '%s'; nchar(x)" % ("é\" \\\\ 漢😀 abc " * 6000))
    assert r.text == "[1] %d" % (12 * 6000), r


def test_limits(k):
    r = k.run("structure(1, class = 'big')\nprint.big <- function(x, ...) cat(strrep('z', 3e6))\nstructure(1, class = 'big')")
    assert len(r.text) < (1 << 20) + 100 and "cut" in r.text[-100:] and r.result["truncated"] is True
    assert "truncated" not in k.run("1").result
    assert len(k.run("cat(strrep('b', 3e6))").stdout) == 3000000


def test_control_descriptors_are_closed(k):
    r = k.run("system('{ echo x >&4; } 2>/dev/null || echo closed')")
    assert r.stdout == "closed\n"


def test_c_locale(tmp_path):
    kernel = DRIVER.start(tmp_path, env={"PATH": "/usr/bin:/bin", "LC_ALL": "C", "HOME": str(tmp_path)})
    r = kernel.run("x <- 'é漢'; cat(x, '\\n'); x")
    assert r.stdout == "é漢 \n" and r.text == '[1] "é漢"'
    assert kernel.close() == 0
