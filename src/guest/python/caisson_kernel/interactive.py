# SPDX-License-Identifier: Apache-2.0
"""interactive.py - The object that get_ipython() returns, from every door the same one.

Theory of operation. Libraries look for IPython's shell to learn three things: whether values can be shown (they can), whether
somebody works interactively (yes), and whether a page with widgets listens (no). So the shell has the formatters, the
publisher, the events and the magics, and they work. But it has a class of its own and no `kernel`, and its `config` has no
IPKernelApp: these stand for widgets. Progress bars and rich then write text, which every client can read.

The shell of a real IPython is never made: where IPython is installed, standins.py makes its own functions find this one.

Callbacks of events run around each execution. An exception in one is printed, and is not one of the execution.
"""
import inspect
import sys
import traceback
import types

from . import display, formatters


class Events:
    """Functions that run before and after each execution."""

    def __init__(self):
        names = ("pre_execute", "pre_run_cell", "post_execute", "post_run_cell", "shell_initialized")
        self.callbacks = {name: [] for name in names}

    def register(self, event, function):
        if not callable(function):
            raise TypeError("a function is needed, not %s" % type(function).__name__)
        if function not in self.callbacks[event]:
            self.callbacks[event].append(function)

    def unregister(self, event, function):
        self.callbacks[event].remove(function)

    def trigger(self, event, *args):
        for function in list(self.callbacks[event]):
            try:
                function(*(args if _takes(function, args) else ()))
            except Exception:
                print("The function %r of the event %s failed:" % (function, event), file=sys.stderr)
                traceback.print_exc()


def _takes(function, args):
    try:
        inspect.signature(function).bind(*args)
    except TypeError:
        return False
    except ValueError:  # no signature is known
        pass
    return True


class Result(types.SimpleNamespace):
    """How an execution ended, for callbacks and for clients that need the value itself."""

    def __init__(self, code="", result=None, error=None):
        super().__init__(info=types.SimpleNamespace(raw_cell=code, cell_id=None, silent=False, store_history=True), result=result,
                         error_before_exec=None, error_in_exec=error, success=error is None)

    def raise_error(self):
        if self.error_in_exec is not None:
            raise self.error_in_exec


class Shell:
    """The shell of the code in a cell."""

    ast_node_interactivity = "last_expr"

    def __init__(self):
        self.events = Events()
        self.display_formatter = types.SimpleNamespace(
            formatters=formatters.formatters, mimebundle_formatter=formatters.mimebundle,
            ipython_display_formatter=formatters.shows_itself, format=display.bundle)
        self.display_pub = types.SimpleNamespace(publish=display.publish, clear_output=display.clear_output)
        self.config, self.kernel, self.colors = {}, None, "NoColor"
        self.last_execution_result = None

    @classmethod
    def instance(cls, *_args, **_options):
        return shell

    @classmethod
    def initialized(cls):
        return True

    @property
    def user_ns(self):
        return sys.modules["__main__"].__dict__

    user_global_ns = user_ns

    @property
    def execution_count(self):
        return max(1, len(self.user_ns.get("In") or ()))

    # Code

    def run_cell(self, raw_cell, store_history=False, silent=False, **_options):
        from . import magics
        result = Result(raw_cell)
        try:
            result.result = magics.run(raw_cell, self.user_ns)
        except Exception as exc:
            result.error_in_exec, result.success = exc, False
            self.showtraceback()
        if result.result is not None and not silent:
            display.display(result.result)
        return result

    def ex(self, code):
        exec(code, self.user_ns)

    def ev(self, expression):
        return eval(expression, self.user_ns)

    def push(self, variables, interactive=True):
        names = [variables] if isinstance(variables, str) else variables
        if not isinstance(names, dict):
            caller = sys._getframe(1)
            names = {name: eval(name, caller.f_globals, caller.f_locals) for name in names}
        self.user_ns.update(names)

    def showtraceback(self, exc_tuple=None, *_args, **_options):
        from . import traceback_
        exc = (exc_tuple or sys.exc_info())[1]
        if exc is not None:
            print("\n".join(traceback_.describe(exc)[2]), file=sys.stderr)

    def system(self, command):
        from . import magics
        return magics.system(command, sys._getframe(1))

    def getoutput(self, command, *_args, **_options):
        from . import magics
        return magics.getoutput(command, sys._getframe(1))

    # Magics

    def run_line_magic(self, name, line="", _stack_depth=1):
        from . import magics
        return magics.line(name, line, sys._getframe(_stack_depth))

    def run_cell_magic(self, name, line, cell):
        from . import magics
        return magics.cell(name, line, cell, None, sys._getframe(1))

    def magic(self, text):
        name, _, line = text.lstrip("%").partition(" ")
        return self.run_line_magic(name, line, 2)

    def register_magic_function(self, func, magic_kind="line", magic_name=None):
        from . import magics
        magics.register(func, magic_kind, magic_name or func.__name__)

    def register_magics(self, *groups):
        for group in groups:
            if isinstance(group, type):
                group = group(None)
                group.shell = self
            for kind, table in group.magics.items():
                for name, func in table.items():
                    self.register_magic_function(func, kind, name)

    # Figures: there is no other place for them than the output.

    def enable_gui(self, gui=None):
        return None

    def enable_matplotlib(self, gui=None):
        from .standins import BACKEND
        return None, BACKEND


shell = Shell()


def get_ipython():
    return shell


# The kernel's part


def begin(code):
    """An execution begins."""
    callbacks = shell.events.callbacks
    if callbacks["pre_execute"] or callbacks["pre_run_cell"]:
        shell.events.trigger("pre_execute")
        shell.events.trigger("pre_run_cell", Result(code).info)


def remember(code, value, error):
    """The value of the last execution, until the next one. `_` may differ, because the user may assign that name."""
    if code.strip():
        shell.last_execution_result = Result(code, value, error)


def end():
    """An execution ends."""
    callbacks, result = shell.events.callbacks, shell.last_execution_result
    if callbacks["post_execute"] or callbacks["post_run_cell"]:
        shell.events.trigger("post_execute")
        shell.events.trigger("post_run_cell", result)
    if result is not None:
        result.error_in_exec = None  # it would keep all variables of its frames


def interactivity():
    """Which expressions of a cell are shown: last_expr, all, none, ... The class may be that of a real IPython."""
    module = sys.modules.get("IPython.core.interactiveshell")
    for owner in (shell, getattr(module, "InteractiveShell", None)):
        value = getattr(owner, "ast_node_interactivity", None)
        if isinstance(value, str) and value != "last_expr":
            return value
    return "last_expr"


# Magics as classes and decorators


def registering(kind):
    """A decorator for magics that are functions: @register_line_magic, or with a name."""
    def decorate(func_or_name):
        if isinstance(func_or_name, str):
            return lambda func: (shell.register_magic_function(func, kind, func_or_name), func)[1]
        shell.register_magic_function(func_or_name, kind)
        return func_or_name
    return decorate


def marking(kind):
    """A decorator for magics that are methods of a class: @line_magic, or with a name."""
    def decorate(func_or_name):
        def mark(func, name):
            func.magic = (kind, name)
            return func
        if isinstance(func_or_name, str):
            return lambda func: mark(func, func_or_name)
        return mark(func_or_name, func_or_name.__name__)
    return decorate


class Magics:
    """The base of classes with magics."""

    def __init__(self, shell=None, **_options):
        self.shell, self.magics = shell, {}
        for name in dir(type(self)):
            mark = getattr(getattr(type(self), name), "magic", None)
            if isinstance(mark, tuple):
                self.magics.setdefault(mark[0], {})[mark[1]] = getattr(self, name)
