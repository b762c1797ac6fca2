# SPDX-License-Identifier: Apache-2.0
"""standins.py - `from IPython.display import display, HTML` works without IPython, and libraries find a place to show things.

Theory of operation. install() puts one finder at the front of sys.meta_path. It handles names of IPython and
matplotlib_inline, and the few modules of PATCHES, and costs other imports two comparisons. For a name that it handles:

- If the real module is installed, the real one is loaded. The functions in it that talk to IPython's own shell (display,
  clear_output, get_ipython, ...) are then replaced by functions of this kernel: there is no such shell here, and without
  this they would print the names of objects. All its classes and submodules are the real ones.
- Otherwise, a small module of our own is made, from STANDINS. Submodules that are not in STANDINS do not
  exist, so code that needs the real thing gets the usual ImportError. If the real one is installed later, the next import
  loads it (refresh()).

So get_ipython(), display() and their effects do not depend on whether IPython is installed (interactive.py).

Modules are built at their first import. The classes are in objects.py. PATCHES also has libraries which would look for a
window, a browser or widgets, and have another way to show themselves.

The backend of matplotlib is chosen in this process, not by MPLBACKEND: programs that the user's code starts inherit the
environment and cannot import this package, so the variable has plain "agg".
"""
import builtins
import contextlib
import importlib
import importlib.machinery
import os
import sys
import types

from . import display, formatters, interactive
from .interactive import get_ipython

BACKEND = "module://caisson_kernel.backend"


def select_backend(matplotlib=None):
    """Make backend.py the backend: now if matplotlib is loaded, otherwise when it is loaded. The user's own choice stays."""
    if os.environ.get("MPLBACKEND", BACKEND).lower() not in (BACKEND, "agg"):
        return
    os.environ["MPLBACKEND"] = "agg"
    matplotlib = matplotlib or sys.modules.get("matplotlib")
    pyplot = sys.modules.get("matplotlib.pyplot")
    if dict.get(getattr(matplotlib, "rcParams", {}), "backend") == BACKEND:  # reading rcParams itself would choose one
        return
    if hasattr(pyplot, "switch_backend"):
        pyplot.switch_backend(BACKEND)
    elif hasattr(matplotlib, "rcParams"):
        matplotlib.rcParams["backend"] = BACKEND


def _shower(mime):
    """display_html() and its like: show one form of the values, or with raw=True values that have this form already."""
    def show(*objs, raw=False, metadata=None):
        display.display(*([{mime: obj} for obj in objs] if raw else objs), raw=raw, include=[mime],
                        metadata={mime: metadata} if metadata else None)
    return show


SHOWERS = {"display_" + name: _shower(mime) for name, mime in (
    ("pretty", "text/plain"), ("html", "text/html"), ("markdown", "text/markdown"), ("svg", "image/svg+xml"),
    ("png", "image/png"), ("jpeg", "image/jpeg"), ("latex", "text/latex"), ("json", "application/json"),
    ("javascript", "application/javascript"), ("pdf", "application/pdf"))}
FUNCTIONS = {"display": display.display, "update_display": display.update_display,
             "clear_output": display.clear_output, "publish_display_data": display.publish,
             "DisplayHandle": display.DisplayHandle}


def _set_close(close=True):
    if not close:
        print("set_matplotlib_close(False) has no effect here: figures are closed when they are shown.", file=sys.stderr)


FIGURES = {"set_matplotlib_formats": lambda *names, **_: display.set_figure_formats(names), "set_matplotlib_close": _set_close}


def _display_module():
    from .objects import CLASSES
    return {**CLASSES, **SHOWERS, **FUNCTIONS, **FIGURES}


def _capture_module():
    from .magic_code import capture_output
    return {"capture_output": capture_output}


def _pylabtools():
    from .objects import print_figure

    def select_figure_formats(_shell, formats, **_options):
        display.set_figure_formats([formats] if isinstance(formats, str) else list(formats))
    return {"backend2gui": {}, "print_figure": print_figure, "select_figure_formats": select_figure_formats}


def _latextools():
    from .objects import latex_to_png
    return {"latex_to_png": latex_to_png}


def _error_module():
    from .magics import UsageError
    return {"UsageError": UsageError}


def _magic_module():
    kinds = ("line", "cell", "line_cell")
    same = {name: lambda thing: thing for name in ("magics_class", "no_var_expand")}
    return {**{"register_%s_magic" % k: interactive.registering(k) for k in kinds},
            **{"%s_magic" % k: interactive.marking(k) for k in kinds}, **same, "Magics": interactive.Magics}


STANDINS = {
    "IPython": lambda: {"get_ipython": get_ipython, "version_info": (9, 0, 0, ""), "__version__": "9.0.0",
                        "InteractiveShell": interactive.Shell},
    "IPython.display": _display_module,
    "IPython.core": dict,
    "IPython.core.display": _display_module,
    "IPython.core.display_functions": lambda: dict(FUNCTIONS),
    "IPython.core.displaypub": lambda: {"publish_display_data": display.publish},
    "IPython.core.error": _error_module,
    "IPython.core.formatters": lambda: {"BaseFormatter": formatters.Formatter, "format_display_data": display.bundle},
    "IPython.core.getipython": lambda: {"get_ipython": get_ipython},
    "IPython.core.interactiveshell": lambda: {"InteractiveShell": interactive.Shell},
    "IPython.core.magic": _magic_module,
    "IPython.core.pylabtools": _pylabtools,
    "IPython.lib": dict,
    "IPython.lib.display": _display_module,
    "IPython.lib.latextools": _latextools,
    "IPython.lib.pretty": lambda: {"pretty": formatters.pretty, "PrettyPrinter": formatters.Printer,
                                   "RepresentationPrinter": formatters.Printer, "for_type": formatters.plain.for_type,
                                   "for_type_by_name": formatters.plain.for_type_by_name},
    "IPython.terminal": dict,
    "IPython.terminal.interactiveshell": lambda: {"TerminalInteractiveShell": type("TerminalInteractiveShell", (), {})},
    "IPython.utils": dict,
    "IPython.utils.capture": _capture_module,
    "IPython.utils.io": _capture_module,
    "matplotlib_inline": dict,
    "matplotlib_inline.backend_inline": lambda: {**FIGURES, "flush_figures": display.flush_figures},
}
ROOTS = ("IPython", "matplotlib_inline")
PACKAGES = ("IPython", "IPython.core", "IPython.lib", "IPython.terminal", "IPython.utils", "matplotlib_inline")


def _with(names):
    """A patch that replaces the names that the module has."""
    def patch(module):
        for name, value in names.items():
            # Not hasattr(): a deprecated name of the module would warn here.
            if name in vars(module) or "__getattr__" in vars(module):
                setattr(module, name, value)
    return patch


def _find_our_shell(module):
    shell = vars(module).get("InteractiveShell")
    if shell is not None:
        shell.instance, shell.initialized = interactive.Shell.instance, interactive.Shell.initialized


def _show_pictures_here(module):
    """Image.show() of PIL displays the picture; another viewer would need a screen."""
    getattr(module, "_viewers", []).sort(key=lambda viewer: type(viewer).__name__ != "IPythonViewer")


def _show_plots_here(module):
    """plotly needs of nbformat its version only. Its own choice for notebooks begins with a display of 4 MB, the library for
    pages; the page loads that library itself."""
    if vars(module).get("nbformat") is None:
        module.nbformat = types.SimpleNamespace(__version__="5.10.4")
    with contextlib.suppress(AttributeError, ValueError):  # another version keeps its own choice
        if module.renderers.default == "plotly_mimetype+notebook":
            module.renderers.default = "plotly_mimetype+notebook_connected"


def _text_bars(module):
    """tqdm.notebook: widgets are not shown here, so its bars are those of a terminal."""
    std = importlib.import_module("tqdm.std")
    module.tqdm = module.tqdm_notebook = std.tqdm
    module.trange = module.tnrange = std.trange


# Modules that are changed after they were loaded, if they are the real ones.
PATCHES = {
    "IPython.core.display_functions": _with(FUNCTIONS),
    "IPython.core.display": _with({**FUNCTIONS, **FIGURES}),
    "IPython.core.getipython": _with({"get_ipython": get_ipython}),
    "IPython.core.interactiveshell": _find_our_shell,
    "IPython.utils.capture": lambda module: _with(_capture_module())(module),
    "matplotlib_inline.backend_inline": _with(FIGURES),
    "matplotlib": lambda module: select_backend(module),
    "PIL.ImageShow": _show_pictures_here,
    "plotly.io._renderers": _show_plots_here,
    "tqdm.notebook": _text_bars,
}


class _Loader:
    """Makes a stand-in."""

    def create_module(self, spec):
        return None

    def exec_module(self, module):
        vars(module).update(STANDINS[module.__name__]())
        if module.__name__ == "IPython":
            for name in STANDINS:  # `import IPython` is enough for IPython.display.HTML
                if name.startswith("IPython."):
                    importlib.import_module(name)


class _Patched:
    """The real loader; after it has run, the module is patched."""

    def __init__(self, loader):
        self.loader = loader

    def __getattr__(self, name):
        return getattr(self.loader, name)

    def create_module(self, spec):
        return self.loader.create_module(spec)

    def exec_module(self, module):
        module.__loader__ = module.__spec__.loader = self.loader
        self.loader.exec_module(module)
        PATCHES[module.__name__](module)


class Finder:
    """First on sys.meta_path: see the theory of operation."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        root = name.partition(".")[0]
        if name not in PATCHES and root not in ROOTS:
            return None
        for finder in sys.meta_path:
            find = getattr(finder, "find_spec", None)
            spec = find(name, path, target) if find and finder is not Finder else None
            if spec is not None:
                if spec.loader is not None and name in PATCHES:
                    spec.loader = _Patched(spec.loader)
                return spec
        if name in STANDINS and (name == root or isinstance(_loader_of(root), _Loader)):
            return importlib.machinery.ModuleSpec(name, _Loader(), origin="caisson", is_package=name in PACKAGES)
        return None


def _loader_of(name):
    return getattr(getattr(sys.modules.get(name), "__spec__", None), "loader", None)


def refresh():
    """Packages were installed: if a real module is among them, the next import finds it and not the stand-in."""
    for root in ROOTS:
        if isinstance(_loader_of(root), _Loader) and importlib.machinery.PathFinder.find_spec(root) is not None:
            for name in STANDINS:
                if name.partition(".")[0] == root:
                    sys.modules.pop(name, None)


def install():
    """Make the stand-ins available. May be repeated; modules that are already loaded are patched."""
    if Finder not in sys.meta_path:
        sys.meta_path.insert(0, Finder)
    for name, patch in PATCHES.items():
        if name in sys.modules and not isinstance(_loader_of(name), _Loader):
            patch(sys.modules[name])
    if "matplotlib" not in sys.modules:
        select_backend()
    for name, value in (("get_ipython", get_ipython), ("display", display.display), ("__IPYTHON__", True)):
        if not hasattr(builtins, name):
            setattr(builtins, name, value)
