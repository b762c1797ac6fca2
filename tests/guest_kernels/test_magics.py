# SPDX-License-Identifier: Apache-2.0
"""test_magics.py - Notebook syntax in a Python kernel: rewritten text, unchanged text, and the effects.

The first half calls the modules; the second drives a whole kernel as the host does. Interrupts, tracebacks and the
order of output only mean something there.
"""
import asyncio
import os
import subprocess
import sys
import time

import pytest

from kernel_lib import GUEST, Kernel

sys.dont_write_bytecode = True
sys.path.insert(0, str(GUEST / "python"))

from caisson_kernel import display, magics, pip_words, shell  # noqa: E402


def short(code):
    """transform(), with our own name in its calls made short. The number of lines never changes."""
    changed = magics.transform(code)
    assert changed.count("\n") == code.count("\n")
    return changed.replace(magics.HERE, "M.")


def run(code, names=None):
    """The value of the last expression of a cell, which may await."""
    names = {} if names is None else names
    value = None
    for part in magics.compile_cell(code, "<cell>"):
        value = eval(part, names)
        if asyncio.iscoroutine(value):
            value = asyncio.run(value)
    return value


@pytest.fixture(autouse=True)
def place(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


# Rewriting


@pytest.mark.parametrize("code, expected", [
    ("!ls -l", "M.system('ls -l')"),
    ("!!ls", "M.getoutput('ls')"),
    ("x = !ls | wc", "x = M.getoutput('ls | wc')"),
    ("a, b = !ls", "a, b = M.getoutput('ls')"),
    ("d['k=v'] = !ls", "d['k=v'] = M.getoutput('ls')"),
    ("x: list = !ls", "x: list = M.getoutput('ls')"),
    ("a = b = !ls", "a = b = M.getoutput('ls')"),
    ("a = 1; b = !ls", "a = 1; b = M.getoutput('ls')"),
    ("%cd /tmp", "M.line('cd', '/tmp')"),
    ("x = %pwd", "x = M.line('pwd', '')"),
    ("%time f(x)", "M.line('time', 'f(x)')"),
    ("%time await f(x)", "await M.aline('time', 'await f(x)')"),
    ("pip install numpy", "M.line('pip', 'install numpy')"),
    ("obj.attr?", "M.pinfo('obj.attr', 0)"),
    ("obj??", "M.pinfo('obj', 1)"),
    ("?obj", "M.pinfo('obj', 0)"),
    ("%cd?", "M.pinfo('%cd', 0)"),
    ("%%bash -x\nls\n", "M.cell('bash', '-x', 'ls\\n', 1)\n\n"),
    ("\n# why\n%%bash\nls", "\n\nM.cell('bash', '', 'ls', 3)\n"),
    ("x = 1\n%%bash\nls", "x = 1\nM.misplaced('bash')\nls"),
    ("!echo \"it's\"\n!echo 'b\ny = (", "M.system('echo \"it\\'s\"')\nM.system(\"echo 'b\")\ny = ("),
])
def test_rewrites(code, expected):
    assert short(code) == expected


def test_rewrites_keep_indentation():
    code = "for f in x:\n    !cat {f}\n\tif f:\n\t\t%time g()\n    y = !ls"
    assert short(code) == ("for f in x:\n    M.system('cat {f}')\n\tif f:\n\t\tM.line('time', 'g()')\n"
                           "    y = M.getoutput('ls')")


def test_rewrites_join_continuation_lines_and_keep_line_numbers():
    code = "!echo a \\\n   b \\\n   c\nx = !echo \\\n  d\n1/0 !"
    assert short(code) == "M.system('echo a b c')\n\n\nx = M.getoutput('echo d')\n\n1/0 !"


@pytest.mark.parametrize("code", [
    "s = '''\n!ls\n%cd /\nx?\n'''",
    's = """\n%%bash\n"""',
    "s = 'a\\\n!ls'",
    "x = (10\n%y)",
    "f(a,\n!b\n)",
    "x = 10 \\\n%y",
    "d = {'a': '''\n!ls\n''', \n'b': [\n%c\n]}",
    "print(f'{x!r}', x != y, x % y)",
    "# !ls\nx = '# not a comment'  # = !ls",
    "g(x=%time)",
    "x == !y",
    "x = r'\\' = !ls'",
    "is this Python?!",
    "x = 'what?'",
    "%",
    "!",
    "x = 5 %",
    "pip = install = 3",
    "",
])
def test_leaves_alone(code):
    assert short(code) == code


def test_escapes_are_found_behind_strings_and_brackets():
    code = "s = '''it's\n\"''' + \"#'\"\nf(\n)\n!ls\n# it's\n!pwd\nt = 'not closed\n!id"
    lines = short(code).split("\n")
    assert [n for n, line in enumerate(lines, 1) if "M." in line] == [5, 7, 9]


def test_every_prefix_of_a_mixed_text_keeps_its_lines():
    text = "x = !ls\n%%time\n'''\n!a\n''' \\\n%b \\\n!c\nf([\n%d])\ny?\n%%x\n = %e\n"
    for end in range(len(text) + 1):
        short(text[:end])
        short(text[end:])


# Values in commands


@pytest.mark.parametrize("text, expected", [
    ("{x} $x {x + 1} {name!r}", "5 5 6 'data'"),
    ("$$x $$ $HOME ${x} $1 $dir", "$x $$ $HOME ${x} $1 $dir"),
    ("'$x' \"$x\" \"it's $x\" '{x}'", "'$x' \"5\" \"it's 5\" '5'"),
    ("$name.csv $obj.real $obj.real.", "data.csv 7 7."),
    ("awk '{print $1}' {name}", "awk '{print $1}' data"),
    ("awk '{{print $1}}' $name", "awk '{print $1}' data"),
    ("-d '{\"a\": {\"b\": 1}}'", "-d '{\"a\": {\"b\": 1}}'"),
    ("{1..3} {} {missing} {x", "{1..3} {} {missing} {x"),
    ("\\$x {items[1:]}", "\\$x [2]"),
])
def test_expand(text, expected):
    assert shell.expand(text, {"x": 5, "name": "data", "obj": 7, "items": [1, 2]}) == expected


def test_expand_leaves_other_languages_alone(recwarn):
    assert shell.expand("grep '{\"\\d\" is 1}'", {}) in ("grep '{\"\\d\" is 1}'", "grep 'False'")
    assert len(recwarn) == 0


@pytest.mark.parametrize("command, expected", [
    ("pip install -q a 'b>=1'", (["-q", "a", "b>=1"], "")),
    ("pip3 install a>=2 2>&1 | tail -1", (["a>=2"], "")),
    ("/usr/bin/python3 -m pip install a > /dev/null", (["a"], "")),
    ("pip install a && python3 x.py; ls", (["a"], "python3 x.py; ls")),
    ("pip list", None), ("pip --version", None), ("echo pip install a", None),
])
def test_pip_install_is_recognised(command, expected):
    assert shell.pip_install(command) == expected


# Effects of the magics


def test_shell_streams_to_the_descriptors(capfd):
    names = {"x": 3}
    run("print('a')\n!echo out $x; echo err >&2; exit 4\nprint('b')", names)
    assert capfd.readouterr() == ("a\nout 3\nb\n", "err\n")
    assert names["_exit_code"] == 4


def test_shell_sees_local_variables(capfd):
    run("def f(local):\n    !echo $local {local * 2}\nf(4)")
    assert capfd.readouterr().out == "4 8\n"


def test_assigned_output_is_a_list_of_lines():
    names = {}
    lines = run("x = !printf 'b 1\\na 2\\n'; echo e >&2\nx", names)
    assert lines == ["b 1", "a 2", "e"] and (lines.s, lines.n) == ("b 1 a 2 e", "b 1\na 2\ne")
    assert lines.grep("A") == ["a 2"] and lines.fields(1) == ["1", "2", ""] and names["_exit_code"] == 0


def test_packages_go_to_the_hook(monkeypatch, capfd):
    asked = []
    monkeypatch.setattr(magics, "packages_install", asked.append)
    run("%pip install -q a\n!pip install b && echo done\nx = !python3 -m pip install c\npip install {n}", {"n": "d"})
    assert asked == [["-q", "a"], ["b"], ["c"], ["d"]] and capfd.readouterr().out == "done\n"


def test_options_of_pip_that_can_not_be_kept_are_refused():
    for words, said in (("--index-url http://a x", "--index-url is not supported"), ("-q", "at least one package")):
        with pytest.raises(ValueError, match=said):
            run("!pip install " + words)


def test_words_of_pip(tmp_path):
    """One parser, for %pip and for the pip of a shell."""
    (tmp_path / "r.txt").write_text("a>=1  # why\n-r more.txt\nb ; python_version < '3'\nc; python_version >= '3'\n")
    (tmp_path / "more.txt").write_text("d \\\n==2\n")
    assert pip_words.requirements(["-q", "--timeout", "5", "x", "--retries=2", "-r", str(tmp_path / "r.txt")]) == (["x", "a>=1", "d  ==2", "c"], True)
    assert pip_words.requirements(["-r%s" % (tmp_path / "more.txt"), "-U"]) == (["d  ==2"], False)
    assert pip_words.upgrades(["-U", "x"]) and not pip_words.upgrades(["x"])
    for words in (["./here"], ["x.whl"], ["git+https://a/b"], ["-e", "."], ["--help"], []):
        with pytest.raises(pip_words.Local):
            pip_words.requirements(words)
    with pytest.raises(pip_words.Refused, match="--pre is not supported here"):
        pip_words.requirements(["--pre", "x"])


def test_pip_passes_other_verbs_on(capfd):
    names = {}
    run("%pip --version", names)
    said = capfd.readouterr()
    if "No module named pip" in said.err:
        pytest.skip("this interpreter has no pip")
    assert said.out.startswith("pip ") and names["_exit_code"] == 0


def test_cd_pwd(place, capsys):
    (place / "sub dir").mkdir()
    assert run("%cd 'sub dir'\n%pwd") == str(place / "sub dir")
    assert run("%cd -\n%pwd") == str(place)
    assert run("%cd -q {d}\n%pwd", {"d": place / "sub dir"}) == str(place / "sub dir")
    assert capsys.readouterr().out.splitlines() == [str(place / "sub dir"), str(place)]
    with pytest.raises(FileNotFoundError):
        run("%cd nowhere")


def test_env(monkeypatch, capsys):
    monkeypatch.setenv("CAISSON_A", "1")
    assert run("%env CAISSON_A") == "1"
    run("%env CAISSON_A=x y={v}\n%set_env CAISSON_A2 z", {"v": 2})
    assert os.environ["CAISSON_A"] == "x y=2" and os.environ.pop("CAISSON_A2") == "z"
    assert run("%env")["CAISSON_A"] == "x y=2"
    assert "env: CAISSON_A=x y=2" in capsys.readouterr().out
    with pytest.raises(magics.UsageError, match="CAISSON_NOT is not set"):
        run("%env CAISSON_NOT")


def test_ls_is_the_shells(place, capfd):
    (place / "one").touch()
    run("%ls\n%mkdir two\n%ls -d {n}", {"n": "two"})
    assert capfd.readouterr().out == "one\ntwo\n"


def test_time(capsys):
    names = {}
    assert run("y = %time 6 * 7\n%time z = y\n%time y", names) == 42 and names["z"] == 42
    out = capsys.readouterr().out
    assert out.count("CPU times: user ") == 3 and out.count("Wall time: ") == 3


def test_time_is_printed_when_the_code_fails(capsys):
    with pytest.raises(ZeroDivisionError):
        run("%%time\n1 / 0")
    assert "Wall time: " in capsys.readouterr().out


def test_time_awaits(capsys):
    code = "import asyncio\nasync def f():\n    await asyncio.sleep(0.01)\n    return 5\n"
    assert run(code + "%time await f()") == 5
    names = {}
    run(code, names)
    assert run("%%time\nx = await f()\n!true\nx + 1", names) == 6
    assert capsys.readouterr().out.count("Wall time") == 2


def test_cell_time_gives_the_last_expression():
    assert run("%%time\nx = 1\nx + 1") == 2
    assert run("%%time\nx = 1\nx + 1;") is None


def test_timeit_counts(capsys):
    names = {"calls": []}
    result = run("%timeit -n 3 -r2 -o calls.append(1)", names)
    assert len(names["calls"]) == 3 * 3 and (result.loops, result.repeat) == (3, 2)
    assert "per loop (mean \u00b1 std. dev. of 2 runs, 3 loops each)" in capsys.readouterr().out
    with pytest.raises(magics.UsageError):
        run("%timeit -n zero 1")
    with pytest.raises(magics.UsageError):
        run("%timeit -z 1")


def test_timeit_chooses_and_cells_have_a_setup(capsys, monkeypatch):
    from caisson_kernel import magic_code
    monkeypatch.setattr(magic_code, "TIMEIT_SECONDS", 0.5)
    names = {"n": [0]}
    run("%%timeit import time; m = n\ntime.sleep(0.05)\nm[0] += 1\n", names)
    assert 2 <= names["n"][0] < 60
    assert "ms \u00b1 " in capsys.readouterr().out


def test_bash_cell(capfd):
    names = {"who": "you"}
    run("%%bash -s {who} 'b c'\ncat\nif true; then\n  echo \"$1 $2\"\nfi\necho $((1 + 2)) >&2", names)
    assert capfd.readouterr() == ("you b c\n", "3\n") and names["_exit_code"] == 0


def test_bash_cell_fails_with_its_status(capfd):
    names = {}
    with pytest.raises(subprocess.CalledProcessError, match="status 3"):
        run("%%sh\nexit 3", names)
    assert names["_exit_code"] == 3
    run("%%bash --no-raise-error --out o --err e\necho o; echo e >&2; exit 3", names)
    assert (names["o"], names["e"], names["_exit_code"]) == ("o\n", "e\n", 3)


def test_bash_cell_of_any_length(capfd):
    run("%%bash -s x\n" + "true # padding\n" * 20000 + "echo end $1")
    assert capfd.readouterr().out == "end x\n"


def test_writefile(place, capsys):
    run("%%writefile {n}\n{a} $b\n  !ls\n%x", {"n": "f.py"})
    run("%%writefile -a f.py\nmore\n")
    assert (place / "f.py").read_text() == "{a} $b\n  !ls\n%x\nmore\n"
    run("%%writefile f.py\n\u00e9\n")
    assert (place / "f.py").read_bytes() == b"\xc3\xa9\n"
    assert capsys.readouterr().out == "Writing f.py\nAppending to f.py\nOverwriting f.py\n"
    with pytest.raises(magics.UsageError):
        run("%%writefile\nx")


def test_capture(capfd, monkeypatch):
    shown = []
    monkeypatch.setattr(display, "sender", lambda m, ack: shown.append(m))
    names = {"display": display.display}
    run("%%capture got\nprint('a')\n!echo b; echo c >&2\nprint('d')\ndisplay(5)\n7", names)
    got = names["got"]
    assert (got.stdout, got.stderr, str(got)) == ("a\nb\nd\n", "c\n", "a\nb\nd\n")
    assert [output.data for output in got.outputs] == [{"text/plain": "5"}]
    assert capfd.readouterr() == ("", "") and shown == []
    got.show()
    assert capfd.readouterr() == ("a\nb\nd\n", "c\n") and [m["data"] for m in shown] == [{"text/plain": "5"}]


def test_capture_puts_everything_back_when_the_code_fails(capfd):
    names, stdout, sender = {}, sys.stdout, display.sender
    with pytest.raises(ZeroDivisionError):
        run("%%capture --no-stderr got\nprint('a')\n1/0", names)
    assert sys.stdout is stdout and display.sender is sender and names["got"].stdout == "a\n"
    os.write(1, b"still here\n")
    assert capfd.readouterr().out == "still here\n"
    with pytest.raises(magics.UsageError):
        run("%%capture a b\n1")


def test_run(place, capsys):
    (place / "s.py").write_text("import sys\nx = 5\nif __name__ == '__main__':\n    print(sys.argv, __file__)\n"
                                "def f():\n    return x\n")
    names = {"y": 1}
    assert run("%run s.py a 'b c'\nf() + x + y", names) == 11
    assert capsys.readouterr().out == "['s.py', 'a', 'b c'] s.py\n"
    (place / "t.py").write_text("z = y + 1\n1/0\n")
    with pytest.raises(ZeroDivisionError):
        run("%run -i t", names)
    assert names["z"] == 2
    (place / "u.py").write_text("import sys; sys.exit(0)")
    run("%run u.py", names)
    with pytest.raises(FileNotFoundError):
        run("%run nothing.py")


def test_who_and_reset(capsys):
    names = {"a": 1, "_hidden": 2, "s": "x"}
    run("%who\n%who str\n%whos", names)
    lines = capsys.readouterr().out.splitlines()
    assert lines[:2] == ["a  s", "s"] and lines[3].split() == ["a", "int", "1"]
    with pytest.raises(magics.UsageError):
        run("%reset", names)
    run("%reset -f", names)
    assert [n for n in names if not n.startswith("__")] == []


def test_notebook_preludes(capsys):
    """Each request is fulfilled, or one line reports that it is not."""
    run("%matplotlib inline\n%config InlineBackend.figure_format = 'retina'")
    assert capsys.readouterr() == ("", "") and display.figure_formats == {"retina"}
    run("%config InlineBackend.figure_formats = ['svg', 'png']")
    assert display.figure_formats == {"svg", "png"}
    with pytest.raises(magics.UsageError, match="unknown figure format: bmp; use png, retina or svg"):
        run("%config InlineBackend.figure_format = 'bmp'")
    run("%config InlineBackend.figure_format = 'png'")
    for text in ("%load_ext autoreload", "%autoreload 2", "%xmode Verbose", "%colors NoColor", "%pprint", "%config A.b = 1"):
        run(text)
        assert capsys.readouterr() == ("", text + " has no effect here.\n")
    run("%matplotlib widget")
    assert "no effect" in capsys.readouterr().err


def test_precision():
    plain = display.formatters["text/plain"]
    assert run("%precision 3") == "%.3f"
    try:
        assert plain(3.14159) == "3.142" and plain([1.5, (2.0,), {"a": 0.12345}, "x", 7]) == "[1.500, (2.000,), {'a': 0.123}, 'x', 7]"
        loop = [1.0]
        loop.append(loop)
        assert plain(loop) == "[1.0, [...]]"
        assert run("%precision '%.1e'") == "%.1e" and plain(1234.5) == "1.2e+03"
        with pytest.raises(magics.UsageError):
            run("%precision many")
    finally:
        run("%precision")
    assert plain(3.14159) == "3.14159" and plain([1.5]) == "[1.5]"


def test_history(capsys):
    names = {"In": ["", "a = 1", "b = 2\nc = 3", "d = 4", "%history"]}
    run("%history", names)
    assert capsys.readouterr().out == "a = 1\nb = 2\nc = 3\nd = 4\n"
    run("%history -n 1 3", names)
    assert capsys.readouterr().out == "   1: a = 1\n   3: d = 4\n"
    run("%history -l 1", names)
    assert capsys.readouterr().out == "d = 4\n"
    run("%history 1-2", names)
    assert capsys.readouterr().out == "a = 1\nb = 2\nc = 3\n"
    for wrong in ("%history -x", "%history a-b"):
        with pytest.raises(magics.UsageError):
            run(wrong, names)


def test_unknown_magics_name_the_known(capsys):
    with pytest.raises(magics.UsageError) as caught:
        run("%frobnicate 3")
    assert "%frobnicate is not available" in str(caught.value) and "%timeit" in str(caught.value)
    with pytest.raises(magics.UsageError, match="%%bash.*%%writefile"):
        run("%%frobnicate\nx")
    with pytest.raises(magics.UsageError, match="first line"):
        run("%bash ls")
    with pytest.raises(magics.UsageError, match="first line"):
        run("x = 1\n%%time\nx")
    run("%lsmagic")
    assert "%pip" in capsys.readouterr().out


def test_help(capsys):
    names = {}
    run("def f(a, b=2):\n    'Does it.'\nf?\nlen??\nmissing.x?\n%time?\n", names)
    out = capsys.readouterr().out
    assert "Signature: f(a, b=2)" in out and "Does it." in out and "number of items" in out
    assert "Object `missing.x` not found." in out and "%time STATEMENT" in out


def test_magics_of_the_users_own():
    names = {}
    magics.register(lambda line: line.upper(), "line", "shout")
    magics.register(lambda line, cell=None: (line, cell), "line_cell", "both")
    try:
        assert run("x = %shout hi {1+1}\nx", names) == "HI 2"
        assert run("%both a", names) == ("a", None) and run("%%both a\nb", names) == ("a", "b")
    finally:
        for name in ("shout", "both"):
            magics.LINE.pop(name)
        magics.CELL.pop("both")


# A whole kernel


@pytest.fixture(scope="module")
def kernel(tmp_path_factory, python_argv):
    """One kernel for all tests of this file: they rely on nothing but each other's survival."""
    k = Kernel([*python_argv, GUEST / "python"], cwd=tmp_path_factory.mktemp("workspace"))
    yield k
    k.close()


def test_kernel_keeps_the_order_of_output(kernel):
    r = kernel.run("print('a')\n!echo b\nimport os; os.system('echo c')\n%time print('d')\nx = !echo e\nx[0]")
    assert r.status == "ok" and r.text == "'e'"
    assert r.stdout.startswith("a\nb\nc\nd\nCPU times")


def test_kernel_magic_values_are_results(kernel):
    assert kernel.run("%%time\n1 + 1").text == "2"
    assert kernel.run("%%time\nimport asyncio\nawait asyncio.sleep(0)\n3").text == "3"
    assert kernel.run("%pwd").text == repr(os.path.realpath(kernel.run("%pwd").text[1:-1]))
    assert kernel.run("!false").text is None and kernel.run("_exit_code").text == "1"


def test_kernel_valid_python_is_never_changed(kernel):
    r = kernel.run("y = 5\nx = '''\n!echo no\n%cd /\n'''\n10 \\\n%y")
    assert r.text == "0" and r.stdout == ""


def test_kernel_tracebacks_show_the_users_lines(kernel):
    r = kernel.run("x = 1\n!true\n%frobnicate now")
    text = "\n".join(r.error["traceback"])
    assert r.error["name"] == "UsageError" and r.status == "error" and r.exit_code == 1
    assert "line 3" in text and "%frobnicate now" in text and "caisson_kernel" not in text
    r = kernel.run("%%time\n\nx = 1\ndef f():\n    1 / 0\nf()")
    text = "\n".join(r.error["traceback"])
    assert "line 6, in <module>" in text and "line 5, in f" in text and "1 / 0" in text
    r = kernel.run("y = 1\n\n%time 1 / 0")
    assert "line 3" in "\n".join(r.error["traceback"])
    assert kernel.run("!ls\nx = (").error["name"] == "SyntaxError"


def processes_of(kernel):
    """How many processes the kernel's session has, itself included."""
    count = 0
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            count += os.getsid(int(pid)) == kernel.process.pid
        except OSError:
            pass
    return count


@pytest.mark.parametrize("code", [
    "!echo begun; sleep 30",
    "!trap '' INT; echo begun; sleep 300; sleep 300",
    "%%bash\necho begun\nsleep 30",
    "print('begun')\nx = !sleep 30",
    "%%time\nimport asyncio\nprint('begun')\nawait asyncio.sleep(30)",
    "import time\nprint('begun')\n%timeit time.sleep(1)",
])
def test_kernel_interrupts_commands(kernel, code):
    before = processes_of(kernel)
    kernel.start(code)
    kernel.wait_stdout("begun")
    time.sleep(0.1)
    kernel.interrupt()
    r = kernel.finish()
    assert (r.status, r.exit_code, r.error["name"]) == ("interrupted", 130, "KeyboardInterrupt")
    kernel.wait_for(lambda: processes_of(kernel) == before)  # the parent that inherits an orphan may need a moment to reap it
    assert kernel.run("!echo alive").stdout == "alive\n"


def test_kernel_commands_do_not_get_the_control_channel(kernel):
    r = kernel.run("!ls -l /proc/self/fd | grep -c pipe; readlink /proc/self/fd/0")
    assert r.stdout.split() == ["2", "/dev/null"]


def test_kernel_asks_the_host_to_install(kernel, tmp_path):
    (tmp_path / "brought.py").write_text("VALUE = 7\n")
    kernel.start("%pip install -q brought\nimport brought; print(brought.VALUE)")
    m = kernel.message()
    assert (m["type"], m["packages"]) == ("install_request", ["brought"])
    kernel.send({"type": "packages", "paths": [str(tmp_path)], "env": {"PYTHONPATH": str(tmp_path)}})
    kernel.send({"type": "install_response", "id": m["id"], "packages": ["brought 1.0"]})
    assert kernel.finish().stdout == "Installed brought 1.0\n7\n"
    kernel.start("%pip install evil")
    kernel.send({"type": "install_response", "id": kernel.message()["id"], "error": "it is blocked"})
    r = kernel.finish()
    assert r.error["name"] == "RuntimeError" and "it is blocked" in r.error["value"]


def test_kernel_imports_what_a_subprocess_has_installed(kernel, tmp_path):
    """The message about it arrives while the code runs."""
    (tmp_path / "brought_later.py").write_text("VALUE = 8\n")
    kernel.start("import os, time\nprint('begun')\nwhile not os.path.exists(%r): time.sleep(0.01)\n"
                 "try:\n    import no_such_module\nexcept ImportError: pass\nimport brought_later; print(brought_later.VALUE)" % str(tmp_path / "flag"))
    kernel.wait_stdout("begun")
    kernel.send({"type": "packages", "paths": [str(tmp_path)], "env": {"PYTHONPATH": str(tmp_path)}})
    (tmp_path / "flag").write_text("")
    assert kernel.finish().stdout == "begun\n8\n"
