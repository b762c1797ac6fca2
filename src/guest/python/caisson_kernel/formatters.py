# SPDX-License-Identifier: Apache-2.0
"""formatters.py - How values become text, HTML, pictures: registered functions first, then methods of the value.

Theory of operation. There is one Formatter per MIME type, and two that come before all of them: `shows_itself`
(`_ipython_display_`) and `mimebundle` (`_repr_mimebundle_`). Libraries register functions for their types with for_type(),
as IPython's formatters let them do. text/plain has a printer, because registered functions and `_repr_pretty_` write to one;
it does not break lines. A value without either is its repr().

Classes show as themselves, and objects that have every attribute (mocks, remote proxies) have no representations.
"""
import contextlib
import io

CANARY = "_caisson_canary_method_that_no_class_has_"


def method_of(obj, name):
    """A method that the object really has, or None."""
    if isinstance(obj, type):
        return None
    try:
        if getattr(obj, CANARY, None) is not None:
            return None
        method = getattr(obj, name, None)
    except Exception:
        return None
    return method if callable(method) else None


class Formatter:
    """The representation of values as one MIME type."""

    enabled = True  # code may switch it off

    def __init__(self, mime=None, method=None):
        self.mime, self.method = mime, method
        self.type_printers, self.deferred_printers = {}, {}

    def for_type(self, cls, func=None):
        """Register func for a class, or for its dotted name; return what was registered before."""
        if isinstance(cls, str):
            return self.for_type_by_name(*cls.rpartition(".")[::2], func)
        old = self.type_printers.get(cls)
        if func is not None:
            self.type_printers[cls] = func
        return old

    def for_type_by_name(self, module, name, func=None):
        old = self.deferred_printers.get((module, name))
        if func is not None:
            self.deferred_printers[(module, name)] = func
        return old

    def pop(self, cls, default=None):
        return self.type_printers.pop(cls, default)

    def lookup(self, obj):
        for cls in type(obj).__mro__:
            named = (getattr(cls, "__module__", None), cls.__name__)
            func = self.type_printers.get(cls) or self.deferred_printers.get(named)
            if func is not None:
                return func
        return None

    def finds(self, obj):
        """A function without arguments but those of the method, or None."""
        func = self.lookup(obj) if self.enabled else None
        if func is not None:
            return lambda **options: func(obj, **options)
        return method_of(obj, self.method) if self.enabled and self.method else None

    def __call__(self, obj):
        found = self.finds(obj)
        return found() if found else None


class Printer:
    """The printer that `_repr_pretty_(printer, cycle)` writes to. Lines are as long as they get."""

    registered = None  # the Formatter whose functions it uses

    def __init__(self, output=None, *_options, **_more):
        self.output, self.indentation, self.stack = output if output is not None else io.StringIO(), 0, []

    def text(self, text):
        self.output.write(text)

    def breakable(self, sep=" "):
        self.text(sep)

    def break_(self):
        self.text("\n" + " " * self.indentation)

    def begin_group(self, indent=0, open=""):
        self.text(open)
        self.indentation += indent

    def end_group(self, dedent=0, close=""):
        self.indentation -= dedent
        self.text(close)

    @contextlib.contextmanager
    def indent(self, indent):
        self.indentation += indent
        try:
            yield
        finally:
            self.indentation -= indent

    @contextlib.contextmanager
    def group(self, indent=0, open="", close=""):
        self.begin_group(indent, open)
        try:
            yield
        finally:
            self.end_group(indent, close)

    def flush(self):
        pass

    def pretty(self, obj):
        cycle = any(obj is other for other in self.stack)
        func = self.registered.lookup(obj) if self.registered else None
        func = func or _pretty_method(type(obj))
        self.stack.append(obj)
        try:
            if func:
                func(obj, self, cycle)
            else:
                self.text(repr(obj))
        finally:
            self.stack.pop()


def _pretty_method(cls):
    """`_repr_pretty_` of a class, unless a class that is derived from its owner has a `__repr__` of its own."""
    for owner in cls.__mro__:
        method = vars(owner).get("_repr_pretty_")
        if callable(method):
            return method
        if "__repr__" in vars(owner):
            return None
    return None


class PlainFormatter(Formatter):
    """text/plain."""

    def __call__(self, obj):
        return pretty(obj, registered=self)


def pretty(obj, *_options, registered=None, **_more):
    """The text of a value. IPython.lib.pretty.pretty() knows no registered functions: those call it."""
    printer = Printer()
    printer.registered = registered
    printer.pretty(obj)
    return printer.output.getvalue()


formatters = {mime: Formatter(mime, method) for mime, method in (
    ("text/html", "_repr_html_"), ("text/markdown", "_repr_markdown_"), ("image/svg+xml", "_repr_svg_"),
    ("image/png", "_repr_png_"), ("image/jpeg", "_repr_jpeg_"), ("application/pdf", "_repr_pdf_"),
    ("text/latex", "_repr_latex_"), ("application/json", "_repr_json_"),
    ("application/javascript", "_repr_javascript_"))}
formatters["text/plain"] = plain = PlainFormatter("text/plain")
shows_itself = Formatter(method="_ipython_display_")
mimebundle = Formatter(method="_repr_mimebundle_")
