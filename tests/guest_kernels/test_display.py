# SPDX-License-Identifier: Apache-2.0
"""test_display.py - Values become MIME bundles within their limits; IPython's names and matplotlib work without asking.

Tests of the stand-ins and of figures run in processes of their own: they change the effect of `import`.
"""
import base64
import json
import math
import os
import subprocess
import sys
import textwrap

import pytest

from kernel_lib import GUEST, Kernel, interpreter

sys.dont_write_bytecode = True
sys.path.insert(0, str(GUEST / "python"))

from caisson_kernel import display, objects  # noqa: E402

PYTHON = interpreter("python3", "/usr/bin/python3")
ARGV = [PYTHON, "-I", "-B"]  # no bytecode into the source tree, but that of matplotlib is used
PNG = b"\x89PNG\r\n\x1a\n"


def has(module):
    """Whether the kernels' interpreter can import it; it need not be the one that runs these tests."""
    code = "import importlib.util, sys; sys.exit(importlib.util.find_spec(%r) is None)" % module
    return subprocess.run([PYTHON, "-c", code]).returncode == 0


needs_matplotlib = pytest.mark.skipif(not has("matplotlib"), reason="%s has no matplotlib" % PYTHON)
needs_pandas = pytest.mark.skipif(not has("pandas"), reason="%s has no pandas" % PYTHON)
without_ipython = pytest.mark.skipif(has("IPython"), reason="%s has a real IPython" % PYTHON)


@pytest.fixture
def sent(monkeypatch):
    messages = []
    monkeypatch.setattr(display, "sender", lambda message, ack: messages.append((message, ack)))
    return messages


def obj(**methods):
    """An object whose methods return, or raise, the given values."""
    def answer(value):
        def method(self, *args, **kwargs):
            if isinstance(value, BaseException):
                raise value
            return value
        return method
    return type("Thing", (), {"__repr__": lambda self: "thing", **{k: answer(v) for k, v in methods.items()}})()


# Bundles


@pytest.mark.parametrize("method, value, mime, expected", [
    ("_repr_html_", "<b>", "text/html", "<b>"),
    ("_repr_markdown_", "# x", "text/markdown", "# x"),
    ("_repr_svg_", "<svg/>", "image/svg+xml", "<svg/>"),
    ("_repr_latex_", "$x$", "text/latex", "$x$"),
    ("_repr_png_", b"\x89PNG", "image/png", base64.b64encode(b"\x89PNG").decode()),
    ("_repr_jpeg_", b"\xff\xd8", "image/jpeg", base64.b64encode(b"\xff\xd8").decode()),
    ("_repr_json_", {"a": [1, None]}, "application/json", {"a": [1, None]}),
    ("_repr_json_", '{"a": 1}', "application/json", {"a": 1}),
])
def test_bundle_of_each_method(method, value, mime, expected):
    data, metadata = display.bundle(obj(**{method: value}))
    assert data == {mime: expected, "text/plain": "thing"} and metadata == {}


def test_bundle_of_plain_values():
    assert display.bundle(5) == ({"text/plain": "5"}, {})
    assert display.bundle("it's") == ({"text/plain": '"it\'s"'}, {})
    assert display.bundle(dict) == ({"text/plain": "<class 'dict'>"}, {})


def test_bundle_with_metadata():
    data, metadata = display.bundle(obj(_repr_png_=(b"x", {"width": 3})))
    assert data["image/png"] == "eA==" and metadata == {"image/png": {"width": 3}}


def test_mimebundle_wins_over_the_single_methods():
    thing = obj(_repr_mimebundle_=({"text/html": "<i>", "image/png": b"x", "application/x+json": {"a": 1}}, {"k": 1}),
                _repr_html_="<b>", _repr_latex_="$x$")
    data, metadata = display.bundle(thing)
    assert data == {"text/html": "<i>", "image/png": "eA==", "application/x+json": {"a": 1}, "text/latex": "$x$",
                    "text/plain": "thing"}
    assert metadata == {"k": 1}


def test_none_means_no_such_representation():
    assert display.bundle(obj(_repr_html_=None, _repr_mimebundle_=None))[0] == {"text/plain": "thing"}


def test_failing_repr_becomes_a_note():
    data, _ = display.bundle(obj(__repr__=ValueError("no\nway")))
    assert data == {"text/plain": "<Thing: repr() failed: ValueError: no\nway>"}
    assert "repr() failed: TypeError" in display.bundle(obj(__repr__=5))[0]["text/plain"]

    class Worse(Exception):
        def __str__(self):
            raise KeyError("worse")
    assert "repr() failed: Worse" in display.bundle(obj(__repr__=Worse()))[0]["text/plain"]


@pytest.mark.parametrize("methods", [
    {"_repr_html_": ValueError("x")}, {"_repr_html_": 5}, {"_repr_json_": object()}, {"_repr_json_": math.nan},
    {"_repr_mimebundle_": ValueError("x")}, {"_repr_mimebundle_": 7}, {"_repr_mimebundle_": {"text/html": 3}},
    {"_repr_html_": RecursionError()}, {"_ipython_display_": ValueError("x")},
])
def test_failing_representations_are_left_out_with_a_word(methods, capsys):
    data, metadata = display.bundle(obj(**methods))
    assert data == {"text/plain": "thing"} and metadata == {}
    assert capsys.readouterr().err.startswith("%s of Thing failed: " % list(methods)[0])


def test_interrupts_and_exits_are_not_swallowed():
    for exc in (KeyboardInterrupt(), SystemExit(3)):
        with pytest.raises(type(exc)):
            display.bundle(obj(__repr__=exc))


def test_objects_that_answer_to_every_name():
    from unittest.mock import MagicMock
    assert list(display.bundle(MagicMock())[0]) == ["text/plain"]

    class Proxy:
        def __getattr__(self, name):
            raise RuntimeError("not connected")
    assert list(display.bundle(Proxy())[0]) == ["text/plain"]


def test_long_repr_is_cut_with_a_note():
    text = display.bundle("\u00e9" * (1 << 20))[0]["text/plain"]
    assert len(text.encode()) < display.TEXT_MAX + 100
    assert text.endswith("<... cut here: %d bytes in all>" % ((2 << 20) + 2))
    exact = obj(__repr__="x" * display.TEXT_MAX)
    assert len(display.bundle(exact)[0]["text/plain"]) == display.TEXT_MAX


def test_large_bundle_is_replaced():
    data, metadata = display.bundle(obj(_repr_html_=("x" * (9 << 20), {"a": 1})))
    assert list(data) == ["text/plain"] and metadata == {}
    assert "text/html" in data["text/plain"] and "too large: " in data["text/plain"] and len(data["text/plain"]) < 300
    data, _ = display.bundle(obj(_repr_png_=b"x" * (5 << 20)))
    assert "image/png" in data
    assert "too large" in display.bundle(obj(_repr_json_=["\U0001f600" * 100] * 8000))[0]["text/plain"]


def test_lone_surrogates_become_escapes():
    data, _ = display.bundle(obj(__repr__="a\udc80b", _repr_html_="\ud800"))
    assert data == {"text/plain": "a\\udc80b", "text/html": "\\ud800"}
    json.dumps(data, ensure_ascii=False).encode("utf-8")


def test_registered_functions(monkeypatch):
    class Thing:
        pass

    class Child(Thing):
        pass
    html = display.formatters["text/html"]
    assert html.for_type(Thing, lambda t: "<u>") is None
    assert display.bundle(Child())[0]["text/html"] == "<u>"
    html.pop(Thing)
    assert list(display.bundle(Child())[0]) == ["text/plain"]
    plain = display.formatters["text/plain"]
    plain.for_type(Thing, lambda t, printer, cycle: printer.text("pretty"))
    assert display.bundle(Child())[0] == {"text/plain": "pretty"}
    plain.pop(Thing)


# Messages


def test_display_sends_one_message_per_object(sent):
    assert display.display(1, "x") is None
    assert sent == [({"type": "display", "data": {"text/plain": text}, "metadata": {}, "display_id": None,
                      "update": False}, True) for text in ("1", "'x'")]


def test_display_handles_update(sent):
    handle = display.display(1, display_id=True)
    handle.update(2)
    display.update_display(3, display_id=handle.display_id)
    handle.display(4)
    seen = [(m["data"]["text/plain"], m["display_id"], m["update"]) for m, _ in sent]
    name = handle.display_id
    assert seen == [("1", name, False), ("2", name, True), ("3", name, True), ("4", name, False)]
    assert display.display(1, display_id="mine").display_id == "mine"
    assert display.display(1, display_id=True).display_id != name
    with pytest.raises(TypeError):
        display.display(1, update=True)


def test_display_raw_and_metadata(sent):
    display.display({"text/html": "<b>", "image/png": b"x"}, raw=True, metadata={"k": 1})
    assert sent[0][0]["data"] == {"text/html": "<b>", "image/png": "eA=="} and sent[0][0]["metadata"] == {"k": 1}
    with pytest.raises(TypeError):
        display.display("text", raw=True)


def test_objects_may_show_themselves(sent):
    class Self:
        def _ipython_display_(self):
            display.display("me")
    assert display.bundle(Self()) == ({}, {})
    display.display(Self())
    assert [m["data"]["text/plain"] for m, _ in sent] == ["'me'"] * 2


def test_clear_output(sent):
    display.clear_output()
    display.clear_output(wait=True)
    assert sent == [({"type": "clear_output", "wait": False}, False), ({"type": "clear_output", "wait": True}, False)]


def test_nothing_happens_without_a_kernel(monkeypatch):
    monkeypatch.setattr(display, "sender", None)
    display.display(1)
    display.clear_output()
    display.flush_figures()


# The classes of IPython.display


@pytest.mark.parametrize("thing, mime, expected", [
    (objects.HTML("<b>"), "text/html", "<b>"),
    (objects.Markdown("#"), "text/markdown", "#"),
    (objects.Math("x^2"), "text/latex", "$\\displaystyle x^2$"),
    (objects.JSON('{"a": 1}'), "application/json", {"a": 1}),
    (objects.JSON([1]), "application/json", [1]),
    (objects.Javascript("1"), "application/javascript", "1"),
    (objects.Image(b"\xff\xd8\xff"), "image/jpeg", "/9j/"),
    (objects.Image(b"GIF8", format="png"), "image/gif", "R0lGOA=="),
    (objects.Image(url="http://h/a.png?a&b", width=3), "text/html", '<img src="http://h/a.png?a&amp;b" width="3"/>'),
    (objects.Video("https://h/v.mp4"), "text/html", '<video controls src="https://h/v.mp4"></video>'),
    (objects.IFrame("http://h/", 3, 4), "text/html",
     '<iframe width="3" height="4" src="http://h/" frameborder="0" allowfullscreen></iframe>'),
])
def test_display_classes(thing, mime, expected):
    data, _ = display.bundle(thing)
    assert data[mime] == expected and "text/plain" in data


def test_display_classes_read_files(tmp_path):
    (tmp_path / "i.png").write_bytes(PNG)
    (tmp_path / "s.svg").write_text("<svg/>")
    (tmp_path / "a.mp3").write_bytes(b"ID3")
    image = objects.Image(str(tmp_path / "i.png"), width=20)
    assert display.bundle(image) == (
        {"image/png": base64.b64encode(PNG).decode(), "text/plain": repr(image)}, {"image/png": {"width": 20}})
    assert display.bundle(objects.Image(tmp_path / "i.png"))[0]["image/png"]
    assert display.bundle(objects.SVG(filename=str(tmp_path / "s.svg")))[0]["image/svg+xml"] == "<svg/>"
    assert 'src="data:audio/mpeg;base64,SUQz"' in display.bundle(objects.Audio(str(tmp_path / "a.mp3")))[0]["text/html"]
    assert "data:audio/wav;base64,UklGR" in display.bundle(objects.Audio([0, 1, -1], rate=8000))[0]["text/html"]
    with pytest.raises(FileNotFoundError):
        objects.Image(str(tmp_path / "nothing.png"))


# The stand-ins, in an interpreter of their own


@pytest.fixture
def script():
    def run(code, path=(), env=None, prepare="standins.install()"):
        """Run code with the stand-ins installed; returns its output. `sent` has the messages."""
        head = """
            import sys
            sys.path[:0] = %r
            from caisson_kernel import display as _d, standins
            sent = []
            _d.sender = lambda message, ack: sent.append(message)
            %s
            """ % ([str(p) for p in path] + [str(GUEST / "python")], prepare)
        done = subprocess.run([*ARGV, "-W", "error", "-c", textwrap.dedent(head) + textwrap.dedent(code)],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=60,
                              env=dict({k: v for k, v in os.environ.items() if k != "MPLBACKEND"}, **(env or {})))
        assert done.returncode == 0 and done.stderr == "", done.stderr
        return done.stdout.strip()
    return run


@without_ipython
def test_stand_ins(script):
    assert script("""
        assert "IPython" not in sys.modules
        from IPython.display import (display, HTML, Image, Markdown, JSON, SVG, Latex, Javascript, clear_output,
                                     update_display, Audio, Video)
        from IPython.core.display import display as display2, HTML as HTML2
        from IPython import get_ipython, display as module
        import IPython
        assert IPython.version_info >= (8,) and IPython.lib.pretty.pretty([1]) == "[1]"
        assert IPython.display.HTML is HTML is HTML2 is module.HTML and display is display2
        display(HTML("<b>"))
        clear_output()
        print([m.get("data", {}).get("text/html") for m in sent])
        try:
            import IPython.nbextensions
        except ImportError as exc:
            print(exc)
        """) == "['<b>', None]\nNo module named 'IPython.nbextensions'"


@without_ipython
def test_stand_in_shell(script):
    assert script("""
        get_ipython().system("echo hi")
        x = 4
        assert get_ipython().getoutput("echo {x}") == ["4"]
        assert get_ipython().run_line_magic("time", "x + 1") == 5
        get_ipython().run_line_magic("matplotlib", "inline")
        get_ipython().magic("time x = 6")
        assert x == 6
        assert get_ipython().run_cell_magic("time", "", "x") == 6
        from IPython.core.magic import register_line_magic, register_cell_magic
        @register_line_magic
        def twice(line): return line * 2
        @register_cell_magic("other")
        def f(line, cell): return cell
        assert get_ipython().run_line_magic("twice", "ab") == "abab"
        assert get_ipython().run_cell_magic("other", "", "c") == "c"
        """).splitlines()[0] == "hi"


def test_a_real_ipython_is_used_and_pointed_at_the_kernel(script, tmp_path):
    core = tmp_path / "IPython" / "core"
    core.mkdir(parents=True)
    (tmp_path / "IPython" / "__init__.py").write_text("real = True\nfrom .core.getipython import get_ipython\n")
    (tmp_path / "IPython" / "display.py").write_text("from .core.display_functions import *\nclass HTML: real = True\n")
    (core / "__init__.py").touch()
    (core / "display_functions.py").write_text("def display(*a): raise SystemError\ndef other(): pass\n")
    (core / "getipython.py").write_text("def get_ipython(): return None\n")
    assert script("""
        from IPython.display import display, HTML, other
        import IPython, IPython.core.display_functions as m
        assert IPython.real and HTML.real and m.__file__ and not hasattr(m, "clear_output")
        assert type(m.__loader__).__name__ == type(m.__spec__.loader).__name__ == "SourceFileLoader"
        display(3)
        assert IPython.get_ipython().run_line_magic
        try:
            import IPython.lib.pretty
        except ImportError:
            print("no stand-in", len(sent))
        """, path=[tmp_path]) == "no stand-in 1"


def test_modules_loaded_before_are_patched(script, tmp_path):
    core = tmp_path / "IPython" / "core"
    core.mkdir(parents=True)
    for name in ("", "core/"):
        (tmp_path / "IPython" / (name + "__init__.py")).touch()
    (core / "display_functions.py").write_text("def display(*a): raise SystemError\n")
    script("""
        import IPython.core.display_functions as m
        standins.install()
        standins.install()
        m.display(3)
        assert len(sent) == 1 and sys.meta_path.count(standins.Finder) == 1
        """, path=[tmp_path], prepare="")


# Figures


@needs_matplotlib
def test_figures_without_any_call(script):
    assert script("""
        import base64, contextlib, io, matplotlib.pyplot as plt
        plt.plot([1, 2])
        plt.figure()
        plt.plot([3])
        plt.figure()  # empty: nothing to show
        _d.flush_figures()
        assert all(base64.b64decode(m["data"]["image/png"]).startswith(b"\\x89PNG") for m in sent)
        print(len(sent), plt.get_fignums(), sent[0]["data"]["text/plain"])
        _d.flush_figures()
        assert len(sent) == 2
        figure, axes = plt.subplots()
        axes.text(1e7, 1e7, "far away", clip_on=False)  # cannot be drawn: says so, and is closed
        with contextlib.redirect_stderr(io.StringIO()) as said:
            _d.flush_figures()
        assert len(sent) == 2 and plt.get_fignums() == [] and "Figure failed: " in said.getvalue()
        """) == "2 [] <Figure size 640x480 with 1 Axes>"


@needs_matplotlib
def test_formats_of_figures(script):
    assert script("""
        import base64, struct, matplotlib.pyplot as plt
        def shown(*formats):
            _d.set_figure_formats(formats)
            del sent[:]
            plt.plot([1, 2])
            plt.show()
            return sent[0]["data"], sent[0]["metadata"]
        data, _ = shown("svg")
        assert "<svg" in data["image/svg+xml"] and "image/png" not in data
        data, _ = shown("png")
        size = struct.unpack_from(">2I", base64.b64decode(data["image/png"]), 16)
        data, metadata = shown("retina")
        twice = struct.unpack_from(">2I", base64.b64decode(data["image/png"]), 16)
        assert "image/svg+xml" not in data and abs(twice[0] - 2 * size[0]) < 8
        assert metadata["image/png"] == {"width": twice[0] // 2, "height": twice[1] // 2}
        print("ok")
        """) == "ok"


@needs_matplotlib
def test_show_displays_and_closes(script):
    assert script("""
        import matplotlib, matplotlib.pyplot as plt
        assert matplotlib.get_backend() == "module://caisson_kernel.backend"
        plt.plot([1])
        plt.show()
        assert len(sent) == 1 and plt.get_fignums() == []
        figure, axes = plt.subplots()
        axes.plot([1])
        figure.show()
        plt.show(block=False)
        assert len(sent) == 2  # the same picture only once
        figure, axes = plt.subplots()
        axes.plot([1])
        _d.display(figure)
        axes.set_title("changed")
        _d.flush_figures()
        assert len(sent) == 4
        matplotlib.use("agg")
        plt.plot([1])
        _d.flush_figures()
        print(len(sent))
        """) == "5"


@needs_matplotlib
def test_backend_and_the_environment_of_other_programs(script):
    assert script("""
        import os, subprocess
        from IPython import get_ipython
        import matplotlib, matplotlib.pyplot as plt
        subprocess.run([sys.executable, "-c", "import matplotlib.pyplot as p; p.plot([1])"], check=True)
        print(matplotlib.get_backend(), os.environ["MPLBACKEND"])
        """, env={"MPLBACKEND": "module://caisson_kernel.backend"}) == "module://caisson_kernel.backend agg"


@needs_matplotlib
def test_backend_chosen_by_the_user_stays(script):
    assert script("import matplotlib\nprint(matplotlib.get_backend().lower())", env={"MPLBACKEND": "svg"}) == "svg"


@needs_matplotlib
def test_backend_by_its_name_alone_from_inside_a_zip(script, tmp_path):
    import zipfile
    with zipfile.ZipFile(tmp_path / "kernel.pyz", "w") as z:
        for path in sorted((GUEST / "python" / "caisson_kernel").glob("*.py")):
            z.write(path, "caisson_kernel/" + path.name)
    assert script("""
        import caisson_kernel, matplotlib.pyplot as plt
        plt.plot([1])
        plt.show()
        print(len(sent), "kernel.pyz" in caisson_kernel.__file__)
        """, path=[tmp_path / "kernel.pyz"], env={"MPLBACKEND": "module://caisson_kernel.backend"}, prepare="") == "1 True"


@needs_matplotlib
def test_a_preloaded_pyplot_gets_the_backend(script):
    assert script("""
        import matplotlib, matplotlib.pyplot as plt
        standins.install()
        plt.switch_backend = None  # a forked kernel does it again, and that must cost nothing
        standins.install()
        plt.plot([1])
        plt.show()
        print(len(sent), matplotlib.get_backend())
        """, prepare="") == "1 module://caisson_kernel.backend"


@needs_pandas
def test_pandas_and_numpy(script):
    script("""
        import pandas, numpy
        data, _ = _d.bundle(pandas.DataFrame({"a": [1]}))
        assert set(data) == {"text/html", "text/plain"} and "<table" in data["text/html"]
        assert _d.bundle(numpy.arange(3))[0] == {"text/plain": "array([0, 1, 2])"}
        """)


# A whole kernel


@pytest.fixture(scope="module")
def kernel(tmp_path_factory):
    """One for all tests of this file."""
    k = Kernel([*ARGV, GUEST / "python"], cwd=tmp_path_factory.mktemp("workspace"))
    yield k
    k.close()


def test_kernel_displays_stay_in_order(kernel):
    r = kernel.run("print('a'); display(1); print('b'); h = display(2, display_id='x'); h.update(3); 4")
    assert [(m["data"]["text/plain"], m["display_id"], m["update"], m["stdout_before"]) for m in r.displays] == [
        ("1", None, False, "a\n"), ("2", "x", False, "a\nb\n"), ("3", "x", True, "a\nb\n")]
    assert r.text == "4"


def test_kernel_results(kernel):
    assert kernel.run("class T:\n    def _repr_html_(self): return '<b>'\nT()").result["data"]["text/html"] == "<b>"
    r = kernel.run("class S:\n    def _ipython_display_(self): display('me')\nS()")
    assert r.result is None and r.displays[0]["data"] == {"text/plain": "'me'"}
    r = kernel.run("class B:\n    def __repr__(self): raise ValueError('x')\nB()")
    assert r.status == "ok" and "repr() failed: ValueError: x" in r.text
    assert "too large" in kernel.run("class L:\n    def _repr_html_(self): return 'x' * (9 << 20)\nL()").text
    assert len(kernel.run("'x' * (3 << 20)").text) < (1 << 20) + 100


@without_ipython
def test_kernel_ipython_imports(kernel):
    r = kernel.run("from IPython.display import HTML, clear_output\nclear_output()\nHTML('<i>')")
    assert r.result["data"]["text/html"] == "<i>" and r.messages[0] == {"type": "clear_output", "wait": False}


@needs_matplotlib
def test_kernel_figures(kernel):
    r = kernel.run("%matplotlib inline\nimport matplotlib.pyplot as plt\nprint('a')\nplt.plot([1, 2])")
    assert [sorted(m["data"]) for m in r.displays] == [["image/png", "text/plain"]] and r.stderr == ""
    assert base64.b64decode(r.displays[0]["data"]["image/png"]).startswith(PNG) and "Line2D" in r.text
    r = kernel.run("for i in range(2):\n    plt.plot([i]); plt.show(); print(i)")
    assert [m["stdout_before"] for m in r.displays] == ["", "0\n"]
    r = kernel.run("fig, ax = plt.subplots(); ax.plot([1]); fig")
    assert "image/png" in r.result["data"] and r.displays == []
    r = kernel.run("plt.plot([1]); 1/0")
    assert r.status == "error" and len(r.displays) == 1
