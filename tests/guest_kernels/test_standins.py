# SPDX-License-Identifier: Apache-2.0
"""test_standins.py - IPython's names and the libraries that look for them work without asking, with and without IPython.

Each test runs in a process of its own: it changes the effect of `import`.
"""
import os
import subprocess
import textwrap

import pytest

from kernel_lib import GUEST
from python_lib import ARGV, PYTHON, has, needs_matplotlib

needs_pil = pytest.mark.skipif(not has("PIL"), reason="%s has no PIL" % PYTHON)
needs_sympy = pytest.mark.skipif(not has("sympy"), reason="%s has no sympy" % PYTHON)
needs_pandas = pytest.mark.skipif(not has("pandas"), reason="%s has no pandas" % PYTHON)


both = pytest.mark.parametrize("real", [False, pytest.param(True, marks=pytest.mark.skipif(
    not has("IPython"), reason="%s has no IPython" % PYTHON))], ids=["stand-in", "real"])

HIDDEN = """
from importlib.machinery import PathFinder
def hiding(name, path=None, target=None, find=PathFinder.find_spec):
    spec = find(name, path, target)
    ours = name.partition(".")[0] in ("IPython", "matplotlib_inline")
    return None if ours and spec and "-packages" in str(spec.origin) else spec
PathFinder.find_spec = hiding
"""


@pytest.fixture
def script():
    def run(code, path=(), env=None, prepare="standins.install()", real=False, strict=True):
        """Run code with the stand-ins installed; returns its output. `sent` has the messages. The machine's IPython is hidden,
        unless `real`; a warning is an error, if `strict`."""
        head = """
            import sys
            sys.path[:0] = %r
            from caisson_kernel import display as _d, standins
            sent = []
            _d.sender = lambda message, ack: sent.append(message)
            %s
            """ % ([str(p) for p in path] + [str(GUEST / "python")], prepare)
        whole = ("" if real else HIDDEN) + textwrap.dedent(head) + textwrap.dedent(code)
        done = subprocess.run([*ARGV, *(["-W", "error"] if strict and not real else []), "-c", whole],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=60,
                              env=dict({k: v for k, v in os.environ.items() if k != "MPLBACKEND"}, **(env or {})))
        assert done.returncode == 0 and done.stderr == "", done.stderr
        return done.stdout.strip()
    return run


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


@both
def test_functions_of_the_display_module(script, real):
    script("""
        from IPython.display import display_html, display_png, display_json, publish_display_data, DisplayHandle
        from IPython.core.displaypub import publish_display_data as same
        class Both:
            def _repr_html_(self): return "<b>"
            def _repr_latex_(self): return "$x$"
        display_html(Both())
        display_html("<i>", raw=True, metadata={"isolated": True})
        display_png(Both())  # no such form: nothing to show
        assert [m["data"] for m in sent] == [{"text/html": "<b>"}, {"text/html": "<i>"}], sent
        assert sent[1]["metadata"] == {"text/html": {"isolated": True}}
        same({"text/plain": "t"}, transient={"display_id": "d"}, update=True)
        assert (sent[2]["display_id"], sent[2]["update"]) == ("d", True)
        """, real=real)


@both
def test_the_shell_that_libraries_find(script, real):
    """Values can be shown, somebody is there, and no widgets are: each library draws its own conclusion."""
    script("""
        import builtins
        from IPython import get_ipython
        from IPython.core.interactiveshell import InteractiveShell
        from IPython.terminal.interactiveshell import TerminalInteractiveShell
        ip = get_ipython()
        assert ip is builtins.get_ipython() is InteractiveShell.instance() and InteractiveShell.initialized() and __IPYTHON__
        assert "IPKernelApp" not in ip.config and ip.kernel is None and type(ip).__name__ != "ZMQInteractiveShell"
        assert not isinstance(ip, TerminalInteractiveShell)
        assert ip.display_formatter.format([1], include=["text/plain"]) == ({"text/plain": "[1]"}, {})
        ip.display_formatter.formatters["text/html"].for_type(complex, lambda c: "<c>")
        assert ip.display_formatter.format(1j)[0]["text/html"] == "<c>"
        ip.display_formatter.mimebundle_formatter.for_type(set, lambda s, include=None, exclude=None: {"text/markdown": "*s*"})
        assert ip.display_formatter.format({1})[0] == {"text/markdown": "*s*", "text/plain": "{1}"}
        assert ip.run_cell("y = 20\\ny + 1").result == 21 and ip.user_ns["y"] == 20 and sent[-1]["data"] == {"text/plain": "21"}
        ip.push({"z": 3})
        assert ip.ev("y + z") == 23
        """, real=real)


@both
def test_magics_of_a_class(script, real):
    script("""
        from IPython.core.magic import Magics, magics_class, line_magic, cell_magic, line_cell_magic
        @magics_class
        class Mine(Magics):
            @line_magic
            def shout(self, line): return line.upper()
            @cell_magic("framed")
            def frame(self, line, cell): return line + cell
            @line_cell_magic
            def either(self, line, cell=None): return (line, cell)
        ip = get_ipython()
        ip.register_magics(Mine)
        if %r:
            ip.register_magics(Mine(ip))
        assert ip.run_line_magic("shout", "a") == "A" and ip.run_cell_magic("framed", "a", "b") == "ab"
        assert ip.run_line_magic("either", "a") == ("a", None) and ip.run_cell_magic("either", "a", "b") == ("a", "b")
        """ % (not real), real=real)  # IPython's own class accepts only IPython's shell


@both
def test_output_is_captured(script, real):
    assert script("""
        from IPython.utils.capture import capture_output
        from IPython.display import display
        with capture_output() as captured:
            print("hidden")
            display(1)
        assert captured.stdout == "hidden\\n" and captured.outputs[0].data == {"text/plain": "1"} and not sent
        print("seen")
        """, real=real, strict=False) == "seen"


def test_a_real_ipython_that_comes_later_replaces_the_stand_in(script, tmp_path):
    (tmp_path / "IPython").mkdir()
    (tmp_path / "IPython" / "__init__.py").write_text("real = True\n")
    script("""
        from IPython.display import HTML
        import IPython
        sys.path.insert(0, %r)
        standins.refresh()
        standins.refresh()
        import IPython
        assert IPython.real and _d.bundle(HTML("<b>"))[0]["text/html"] == "<b>"
        """ % str(tmp_path))


def test_extensions(script, tmp_path):
    path = library(tmp_path, mine="def load_ipython_extension(ip): ip.register_magic_function(lambda line: line * 2, 'line', 'twice')", none="")
    script("""
        ip = get_ipython()
        ip.run_line_magic("load_ext", "mine")
        assert ip.run_line_magic("twice", "ab") == "abab"
        try:
            ip.run_line_magic("load_ext", "none")
        except Exception as exc:
            assert "no extension" in str(exc)
        """, path=path)


def library(tmp_path, **files):
    """A small library of these modules, a__b for a/b.py."""
    for name, text in files.items():
        path = tmp_path / (name.replace("__", "/") + ".py")
        path.parent.mkdir(parents=True, exist_ok=True)
        for parent in path.parents:
            if parent == tmp_path:
                break
            (parent / "__init__.py").touch()
        path.write_text(textwrap.dedent(text))
    return [tmp_path]


def test_libraries_that_would_look_for_a_window_or_for_widgets(script, tmp_path):
    path = library(tmp_path, PIL__ImageShow="""
            class Other: pass
            class IPythonViewer: pass
            _viewers = [Other(), IPythonViewer()]
            """, plotly__io___renderers="""
            import types
            nbformat = None
            renderers = types.SimpleNamespace(default="plotly_mimetype+notebook")
            """, tqdm__notebook="tqdm = trange = 'widgets'", tqdm__std="tqdm = trange = tqdm_class = 'text'",
                   tqdm__auto="import sys\nhas_widgets = 'IPKernelApp' in sys.modules['IPython'].get_ipython().config")
    script("""
        import IPython, PIL.ImageShow, plotly.io._renderers, tqdm.notebook, tqdm.auto
        assert type(PIL.ImageShow._viewers[0]).__name__ == "IPythonViewer"
        assert plotly.io._renderers.nbformat.__version__ > "4.2" and plotly.io._renderers.renderers.default.endswith("notebook_connected")
        assert tqdm.notebook.tqdm == tqdm.notebook.tqdm_notebook == "text" and not tqdm.auto.has_widgets
        """, path=path)


def test_a_real_ipython_is_used_and_pointed_at_the_kernel(script, tmp_path):
    core = tmp_path / "IPython" / "core"
    core.mkdir(parents=True)
    (tmp_path / "IPython" / "__init__.py").write_text("real = True\nfrom .core.getipython import get_ipython\n")
    (tmp_path / "IPython" / "display.py").write_text("from .core.display_functions import *\nclass HTML: real = True\n")
    (core / "__init__.py").touch()
    (core / "display_functions.py").write_text("def display(*a): raise SystemError\ndef other(): pass\n")
    (core / "getipython.py").write_text("def get_ipython(): return None\n")
    (core / "interactiveshell.py").write_text(
        "class InteractiveShell:\n    @classmethod\n    def instance(cls): raise SystemError\n    initialized = instance\n")
    assert script("""
        from IPython.core.interactiveshell import InteractiveShell
        from IPython.display import display, HTML, other
        import IPython, IPython.core.display_functions as m
        assert IPython.real and HTML.real and m.__file__ and not hasattr(m, "clear_output")
        assert type(m.__loader__).__name__ == type(m.__spec__.loader).__name__ == "SourceFileLoader"
        display(3)
        assert IPython.get_ipython().run_line_magic and InteractiveShell.instance() is get_ipython()
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


@needs_matplotlib
def test_formats_of_figures_by_name(script):
    script("""
        from matplotlib_inline.backend_inline import set_matplotlib_formats
        from IPython.core.pylabtools import print_figure, select_figure_formats
        from IPython.lib.latextools import latex_to_png
        import matplotlib.pyplot as plt
        set_matplotlib_formats("svg")
        plt.plot([1, 2])
        assert print_figure(plt.gcf(), "png").startswith(b"\\x89PNG") and "<svg" in print_figure(plt.gcf(), "svg")
        plt.show()
        assert "<svg" in sent[0]["data"]["image/svg+xml"]
        select_figure_formats(get_ipython(), "png")  # a real matplotlib_inline does so
        plt.plot([1, 2])
        plt.show()
        assert set(sent[1]["data"]) >= {"image/png"} and "image/svg+xml" not in sent[1]["data"]
        assert latex_to_png(r"$\\frac{1}{2}$").startswith(b"\\x89PNG") and latex_to_png(r"$\\nonsense{$") is None
        """, strict=False)


@needs_pil
def test_pictures_of_pil(script):
    script("""
        from PIL import Image
        picture = Image.new("RGB", (4, 3), "red")
        assert "image/png" in _d.bundle(picture)[0]
        picture.show()
        assert "image/png" in sent[0]["data"]
        """)


@needs_sympy
def test_formulas_of_sympy(script):
    script("""
        import sympy
        x = sympy.Symbol("x")
        assert _d.bundle(x ** 2)[0]["text/latex"] == "$\\\\displaystyle x^{2}$"
        sympy.init_printing()
        data, _ = _d.bundle(x ** 2)
        assert data["text/latex"] == "$\\\\displaystyle x^{2}$" and data["text/plain"] == " 2\\nx " and len(data) >= 2, data
        assert _d.bundle([x, "a"])[0]["text/plain"] == "[x, 'a']"
        """, strict=False)


@needs_pandas
def test_pandas_and_numpy(script):
    script("""
        import pandas, numpy
        data, _ = _d.bundle(pandas.DataFrame({"a": [1]}))
        assert set(data) == {"text/html", "text/plain"} and "<table" in data["text/html"]
        assert _d.bundle(numpy.arange(3))[0] == {"text/plain": "array([0, 1, 2])"}
        try:
            import jinja2
        except ImportError:
            jinja2 = None
        styled = jinja2 and _d.bundle(pandas.DataFrame({"a": [1]}).style.format("{:.1f}"))[0]
        assert not jinja2 or ">1.0</td>" in styled["text/html"]
        """)
