# SPDX-License-Identifier: Apache-2.0
"""standins.py - `from IPython.display import display, HTML` works without IPython.

Theory of operation. install() puts one finder at the front of sys.meta_path. It handles only names of IPython and
`matplotlib`, and costs other imports one comparison. For a name that it handles:

- If the real module is installed, the real one is loaded. The few functions in it that talk to IPython's own shell
  (display, clear_output, get_ipython, ...) are then replaced by functions of this kernel: there is no such shell here,
  and without this they would print the names of objects. matplotlib gets our backend.
- Otherwise, a small module of our own is made, from STANDINS. Submodules that are not in STANDINS do not
  exist, so code that needs the real thing gets the usual ImportError.

Modules are built at their first import. The classes are in objects.py.

The backend is chosen in this process, not by MPLBACKEND: programs that the user's code starts inherit the environment and
cannot import this package, so the variable has plain "agg".

get_ipython() returns an object with the few methods that scripts call and the few attributes that libraries read
(matplotlib: events; sympy and rich: display_formatter; clients that need the value itself: last_execution_result). Its
class is not one of IPython's: libraries that look for a notebook with widgets must not find one.
"""
import builtins
import importlib
import importlib.machinery
import os
import sys
import types

from . import display


class Shell:
    """The object that get_ipython() returns."""

    def __init__(self):
        self.events = types.SimpleNamespace(register=lambda *_: None, unregister=lambda *_: None)
        self.display_formatter = types.SimpleNamespace(formatters=display.formatters, format=display.bundle)
        self.display_pub = types.SimpleNamespace(publish=display.publish, clear_output=display.clear_output)
        self.config, self.kernel, self.colors = {}, None, "NoColor"
        self.last_execution_result = None

    @property
    def user_ns(self):
        return sys.modules["__main__"].__dict__

    def run_line_magic(self, name, line="", _stack_depth=1):
        from . import magics
        return magics.line(name, line, sys._getframe(_stack_depth))

    def run_cell_magic(self, name, line, cell):
        from . import magics
        return magics.cell(name, line, cell, None, sys._getframe(1))

    def magic(self, text):
        name, _, line = text.lstrip("%").partition(" ")
        return self.run_line_magic(name, line, 2)

    def system(self, command):
        from . import magics
        return magics.system(command, sys._getframe(1))

    def getoutput(self, command):
        from . import magics
        return magics.getoutput(command, sys._getframe(1))

    def register_magic_function(self, func, magic_kind="line", magic_name=None):
        from . import magics
        magics.register(func, magic_kind, magic_name or func.__name__)

    def enable_gui(self, gui=None):
        return None

    def enable_matplotlib(self, gui=None):
        return None, BACKEND


_shell = Shell()


def get_ipython():
    return _shell


def remember(value, success):
    """The value of the last execution, until the next one. `_` may differ, because the user may assign that name."""
    _shell.last_execution_result = types.SimpleNamespace(result=value, success=success)


def _registrar(kind):
    def decorate(func_or_name):
        if isinstance(func_or_name, str):
            return lambda func: (_shell.register_magic_function(func, kind, func_or_name), func)[1]
        _shell.register_magic_function(func_or_name, kind)
        return func_or_name
    return decorate


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


FUNCTIONS = {"display": display.display, "update_display": display.update_display,
             "clear_output": display.clear_output, "publish_display_data": display.publish,
             "DisplayHandle": display.DisplayHandle}


def _display_module():
    from .objects import CLASSES
    return {**CLASSES, **FUNCTIONS, "set_matplotlib_formats": lambda *names, **_: display.set_figure_formats(names)}


STANDINS = {
    "IPython": lambda: {"get_ipython": get_ipython, "version_info": (9, 0, 0, ""), "__version__": "9.0.0"},
    "IPython.display": _display_module,
    "IPython.core": dict,
    "IPython.core.display": _display_module,
    "IPython.core.display_functions": _display_module,
    "IPython.core.getipython": lambda: {"get_ipython": get_ipython},
    "IPython.core.formatters": lambda: {"BaseFormatter": display.Formatter},
    "IPython.core.magic": lambda: {"register_%s_magic" % k: _registrar(k) for k in ("line", "cell", "line_cell")},
    "IPython.core.pylabtools": lambda: {"backend2gui": {}},
    "IPython.lib": dict,
    "IPython.lib.pretty": lambda: {"pretty": repr},
}

# Functions of the real modules that are replaced after the modules were loaded.
PATCHES = {
    "IPython.core.display_functions": FUNCTIONS,
    "IPython.core.display": FUNCTIONS,
    "IPython.core.getipython": {"get_ipython": get_ipython},
}


class _Loader:
    """Makes a stand-in."""

    def create_module(self, spec):
        return None

    def exec_module(self, module):
        vars(module).update(STANDINS[module.__name__]())
        if module.__name__ == "IPython":
            for name in STANDINS:  # `import IPython` is enough for IPython.display.HTML
                importlib.import_module(name)


def _patch(module):
    if module.__name__ == "matplotlib":
        select_backend(module)
    for name, func in PATCHES.get(module.__name__, {}).items():
        # Not hasattr(): a deprecated name of the module would warn here.
        if name in vars(module) or "__getattr__" in vars(module):
            setattr(module, name, func)


class _Patched:
    """The real loader; after it has run, some functions of the module are replaced by ours."""

    def __init__(self, loader):
        self.loader = loader

    def __getattr__(self, name):
        return getattr(self.loader, name)

    def create_module(self, spec):
        return self.loader.create_module(spec)

    def exec_module(self, module):
        module.__loader__ = module.__spec__.loader = self.loader
        self.loader.exec_module(module)
        _patch(module)


class Finder:
    """First on sys.meta_path: see the theory of operation."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        if name != "matplotlib" and name.partition(".")[0] != "IPython":
            return None
        for finder in sys.meta_path:
            find = getattr(finder, "find_spec", None)
            spec = find(name, path, target) if find and finder is not Finder else None
            if spec is not None:
                if spec.loader is not None and (name in PATCHES or name == "matplotlib"):
                    spec.loader = _Patched(spec.loader)
                return spec
        if name in STANDINS and (name == "IPython" or isinstance(_loader_of("IPython"), _Loader)):
            return importlib.machinery.ModuleSpec(name, _Loader(), origin="caisson", is_package=name in PACKAGES)
        return None


PACKAGES = ("IPython", "IPython.core", "IPython.lib")


def _loader_of(name):
    return getattr(getattr(sys.modules.get(name), "__spec__", None), "loader", None)


def install():
    """Make the stand-ins available. May be repeated; modules that are already loaded are patched."""
    if Finder not in sys.meta_path:
        sys.meta_path.insert(0, Finder)
    for name in (*PATCHES, "matplotlib"):
        if name in sys.modules:
            _patch(sys.modules[name])
    if "matplotlib" not in sys.modules:
        select_backend()
    for name, func in (("get_ipython", get_ipython), ("display", display.display)):
        if not hasattr(builtins, name):
            setattr(builtins, name, func)
