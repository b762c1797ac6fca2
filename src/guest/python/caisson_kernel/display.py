# SPDX-License-Identifier: Apache-2.0
"""display.py - Values become MIME bundles, and bundles become messages.

Theory of operation. bundle() asks a value for its representations, in the way notebooks made common:
`_repr_mimebundle_`, then one `_repr_*_` method or registered function per MIME type, and repr() for text/plain. User
code computes all of these, and may fail, so:

- A representation that raises, or has the wrong type, is left out and one line on stderr reports it;
  a failing repr() becomes a note in text/plain. Nothing but an interrupt or an exit leaves
  bundle() as an exception.
- The result is plain JSON: bytes are base64, text holds no lone surrogates, NaN is refused.
- Sizes are bounded here, before anything is sent: text/plain is cut after TEXT_MAX bytes, a bundle
  whose JSON is over BUNDLE_MAX bytes is replaced by a line of text.

An object with `_ipython_display_` shows itself; its bundle is empty, which means "nothing to send".

The module does not know the control channel: the kernel sets `sender`. A display is sent with
ack=True, which asks the sender to wait until the host has drained the text printed before it.

Figures of matplotlib that are still open at the end of an execution are shown by flush_figures().
matplotlib is never imported here: a figure cannot exist unless the user imported it.
"""
import binascii
import io
import json
import os
import struct
import sys
import weakref

TEXT_MAX = 1 << 20
BUNDLE_MAX = 8 << 20
WIDGET = "application/vnd.jupyter.widget-view+json"
CANARY = "_caisson_canary_method_that_no_class_has_"

sender = None  # the kernel's function (message: dict, ack: bool) -> None


def send(message, ack):
    """Hand one message to the kernel, after all text that was printed before it."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except Exception:
            pass  # closed, replaced or gone: nothing of the kernel's is lost
    if sender is not None:
        sender(message, ack)


def explain(exc):
    """One line for an exception, even if its own str() fails."""
    try:
        return ("%s: %s" % (type(exc).__name__, exc)).rstrip(": ")
    except Exception:
        return type(exc).__name__


def brief(obj, most):
    """One line for a value, of at most so many characters."""
    try:
        return " ".join(repr(obj).split())[:most]
    except Exception as exc:
        return "<repr() failed: %s>" % explain(exc)


def _complain(obj, what, problem):
    try:
        sys.stderr.write("%s of %s failed: %s\n" % (what, type(obj).__name__, problem))
    except Exception:
        pass


def _method(obj, name):
    """A method that the object really has. Classes show as themselves, and objects that have every attribute (mocks, remote
    proxies) have no representations of their own."""
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
    """The representation of values as one MIME type: registered functions first, then the method."""

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

    def __call__(self, obj):
        func = self.lookup(obj)
        if func is not None:
            return func(obj)
        method = _method(obj, self.method) if self.method else None
        return method() if method else None


class PlainFormatter(Formatter):
    """text/plain: repr(), or a registered function that writes to a pretty printer as IPython's do."""

    class Printer(list):
        text = list.append

        def pretty(self, obj):
            self.append(repr(obj))

    def __call__(self, obj):
        func = self.lookup(obj)
        if func is None:
            return repr(obj)
        printer = self.Printer()
        func(obj, printer, False)
        return "".join(printer)


formatters = {mime: Formatter(mime, method) for mime, method in (
    ("text/html", "_repr_html_"), ("text/markdown", "_repr_markdown_"), ("image/svg+xml", "_repr_svg_"),
    ("image/png", "_repr_png_"), ("image/jpeg", "_repr_jpeg_"), ("application/pdf", "_repr_pdf_"),
    ("text/latex", "_repr_latex_"), ("application/json", "_repr_json_"),
    ("application/javascript", "_repr_javascript_"))}
formatters["text/plain"] = PlainFormatter("text/plain")


def clean(text):
    """Text that UTF-8 can carry: a lone surrogate becomes its escape."""
    try:
        text.encode("utf-8")
        return text
    except UnicodeEncodeError:
        return text.encode("utf-8", "backslashreplace").decode("utf-8")


def cut(text):
    data = text.encode("utf-8") if len(text) > TEXT_MAX // 4 else b""
    if len(data) <= TEXT_MAX:
        return text
    return "%s\n<... cut here: %d bytes in all>" % (data[:TEXT_MAX].decode("utf-8", "ignore"), len(data))


def encode(mime, value):
    """The value as the message carries it; raises TypeError or ValueError if it has no such form."""
    if isinstance(value, (bytes, bytearray, memoryview)):
        return binascii.b2a_base64(bytes(value), newline=False).decode("ascii")
    if mime == "application/json" or mime.endswith("+json"):
        if mime == "application/json" and isinstance(value, str):
            value = json.loads(value)
        return json.loads(json.dumps(value, allow_nan=False))
    if not isinstance(value, str):
        raise TypeError("%s must be text or bytes, not %s" % (mime, type(value).__name__))
    return clean(value)


def _without_widgets(data):
    """Widgets need messages between page and kernel, which do not exist here: the page would show an error. Keep the text, with
    the reason."""
    if WIDGET in data:
        del data[WIDGET]
        data["text/plain"] = "%s\n(widgets are not shown: this kernel has no comms)" % data.get("text/plain", "")


def limit(data, metadata):
    """The pair, or a line of text in its place when its JSON is too large."""
    _without_widgets(data)
    rough = sum(len(v) if isinstance(v, str) else BUNDLE_MAX for v in data.values())
    if rough * 12 < BUNDLE_MAX and not metadata:  # one character is at most 12 bytes of JSON
        return data, metadata
    size = len(json.dumps([data, metadata]))
    if size <= BUNDLE_MAX:
        return data, metadata
    return {"text/plain": "<%s too large: %d bytes>" % (", ".join(sorted(data))[:200], size)}, {}


def _add(obj, data, metadata, mime, value):
    """Put one answer of the user's code into the bundle, if it is valid."""
    if isinstance(value, tuple) and len(value) == 2 and isinstance(value[1], dict):
        value, extra = value
        if extra:
            metadata[mime] = json.loads(json.dumps(extra, allow_nan=False))
    if value is not None:
        data[mime] = encode(mime, value)


def _collect(obj, data, metadata):
    """The answer of `_repr_mimebundle_`, which takes precedence over the single representations."""
    method = _method(obj, "_repr_mimebundle_")
    if method is None:
        return
    answer = method(include=None, exclude=None)
    found, extra = answer if isinstance(answer, tuple) else (answer, {})
    for mime, value in (found or {}).items():
        _add(obj, data, metadata, str(mime), value)
    metadata.update(json.loads(json.dumps(extra or {}, allow_nan=False)))


def bundle(obj):
    """(data, metadata) of a value; both empty if the object has shown itself."""
    data, metadata = {}, {}
    shows_itself = _method(obj, "_ipython_display_")
    try:
        if shows_itself:
            shows_itself()
            return data, metadata
        _collect(obj, data, metadata)
    except Exception as exc:
        _complain(obj, "_ipython_display_" if shows_itself else "_repr_mimebundle_", explain(exc))
    for mime, formatter in list(formatters.items()):
        if mime in data:
            continue
        try:
            _add(obj, data, metadata, mime, formatter(obj))
        except Exception as exc:
            if mime == "text/plain":
                data[mime] = clean("<%s: repr() failed: %s>" % (type(obj).__name__, explain(exc)))
            else:
                _complain(obj, getattr(formatter, "method", mime), explain(exc))
    if isinstance(data.get("text/plain"), str):
        data["text/plain"] = cut(data["text/plain"])
    return limit(data, metadata)


class DisplayHandle:
    """A display that can be replaced later, by its id."""

    def __init__(self, display_id=None):
        self.display_id = display_id or os.urandom(16).hex()

    def __repr__(self):
        return "<DisplayHandle display_id=%s>" % self.display_id

    def display(self, obj, **options):
        display(obj, display_id=self.display_id, **options)

    def update(self, obj, **options):
        update_display(obj, display_id=self.display_id, **options)


def publish(data, metadata=None, display_id=None, update=False):
    """Send a finished bundle as a display."""
    data, metadata = limit({str(m): encode(str(m), v) for m, v in data.items()},
                           json.loads(json.dumps(metadata or {}, allow_nan=False)))
    send({"type": "display", "data": data, "metadata": metadata, "display_id": display_id,
          "update": bool(update)}, True)


def display(*objs, display_id=None, update=False, raw=False, metadata=None, clear=False, **_options):
    """Show values; with display_id (True picks one) the result is a handle that can update them."""
    if update and not display_id:
        raise TypeError("display_id is required to update a display")
    handle = DisplayHandle(None if display_id is True else str(display_id)) if display_id else None
    if clear:
        clear_output(wait=True)
    for obj in objs:
        if raw and not isinstance(obj, dict):
            raise TypeError("display(raw=True) takes dicts of MIME type to data, not %s" % type(obj).__name__)
        data, found = (obj, {}) if raw else bundle(obj)
        if data:
            publish(data, {**found, **(metadata or {})}, handle and handle.display_id, update)
    return handle


def update_display(obj, *, display_id, **options):
    """Replace the values that were shown under display_id."""
    return display(obj, display_id=display_id, update=True, **options)


def clear_output(wait=False):
    """Clear the displays of this execution; with wait, only when the next output comes."""
    send({"type": "clear_output", "wait": bool(wait)}, False)


_shown = weakref.WeakSet()  # figures that were shown and not changed since


figure_formats = {"png"}  # of png, retina, svg: the forms of a figure


def set_figure_formats(names):
    """Set the forms of figures from now on; raises ValueError for an unknown form."""
    names = {"retina" if n == "png2x" else str(n) for n in names}
    if not names or not names <= {"png", "retina", "svg"}:
        raise ValueError("unknown figure format: %s; use png, retina or svg" % (", ".join(sorted(names)) or "nothing"))
    figure_formats.clear()
    figure_formats.update(names)


def _saved(figure, form, dpi):
    """The bytes of a figure, or None for an empty one."""
    if not (figure.axes or figure.lines or figure.patches or figure.texts or figure.images):
        return None
    buffer = io.BytesIO()
    figure.savefig(buffer, format=form, bbox_inches="tight", dpi=dpi, facecolor=figure.get_facecolor(),
                   edgecolor=figure.get_edgecolor())
    figure.stale = False  # savefig() itself touches it; from now on only a change by the user does
    _shown.add(figure)
    return buffer.getvalue()


def figure_png(figure):
    if "retina" in figure_formats:
        data = _saved(figure, "png", figure.dpi * 2)
        if data is None:
            return None
        width, height = struct.unpack_from(">2I", data, 16)  # of IHDR, which is always first
        return data, {"width": width // 2, "height": height // 2}
    return _saved(figure, "png", figure.dpi) if "png" in figure_formats else None


def figure_svg(figure):
    data = _saved(figure, "svg", figure.dpi) if "svg" in figure_formats else None
    return None if data is None else data.decode("utf-8")


formatters["image/png"].for_type_by_name("matplotlib.figure", "Figure", figure_png)
formatters["image/svg+xml"].for_type_by_name("matplotlib.figure", "Figure", figure_svg)


def flush_figures():
    """Show every open figure of pyplot and close it. A figure that was shown and has not changed is not shown again."""
    helpers = sys.modules.get("matplotlib._pylab_helpers")
    pyplot = sys.modules.get("matplotlib.pyplot")
    if helpers is None or not hasattr(pyplot, "close"):
        return
    try:
        for manager in helpers.Gcf.get_all_fig_managers():
            figure = manager.canvas.figure
            if not (figure in _shown and not figure.stale):
                data, metadata = bundle(figure)
                if len(data) > 1 or "too large" in data["text/plain"]:
                    publish(data, metadata)
    finally:
        pyplot.close("all")
