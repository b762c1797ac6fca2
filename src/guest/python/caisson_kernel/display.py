# SPDX-License-Identifier: Apache-2.0
"""display.py - Values become MIME bundles, and bundles become messages.

Theory of operation. bundle() asks a value for its representations, in the way notebooks made common:
`_repr_mimebundle_`, then one `_repr_*_` method or registered function per MIME type (formatters.py). User code computes all
of these, and may fail, so:

- A representation that raises, or has the wrong type, is left out and one line on stderr reports it;
  a failing repr() becomes a note in text/plain. Nothing but an interrupt or an exit leaves
  bundle() as an exception.
- The result is plain JSON: bytes are base64, text holds no lone surrogates, NaN is refused.
- Sizes are bounded here, before anything is sent: text/plain is cut after TEXT_MAX bytes, a bundle
  whose JSON is over BUNDLE_MAX bytes is replaced by a line of text. The message then has `truncated`.

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

from .formatters import formatters, mimebundle, shows_itself

TEXT_MAX = 1 << 20
BUNDLE_MAX = 8 << 20
WIDGET = "application/vnd.jupyter.widget-view+json"

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


def _nearest(value):
    """For json.dumps: numbers and arrays of numpy."""
    if hasattr(value, "tolist"):
        return value.tolist()
    raise TypeError("%s has no form in JSON" % type(value).__name__)


def plain_json(value):
    """A copy of a value that is plain JSON; raises TypeError or ValueError if it has no such form."""
    return json.loads(json.dumps(value, allow_nan=False, default=_nearest))


def encode(mime, value):
    """The value as the message carries it; raises TypeError or ValueError if it has no such form."""
    if isinstance(value, (bytes, bytearray, memoryview)):
        return binascii.b2a_base64(bytes(value), newline=False).decode("ascii")
    if mime.endswith("json") or mime.startswith("application/") and not isinstance(value, str):
        if mime == "application/json" and isinstance(value, str):
            value = json.loads(value)
        return plain_json(value)
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
            metadata[mime] = plain_json(extra)
    if value is not None:
        data[mime] = encode(mime, value)


def _collect(obj, data, metadata, include, exclude):
    """The answer of `_repr_mimebundle_`, which takes precedence over the single representations."""
    method = mimebundle.finds(obj)
    if method is None:
        return
    answer = method(include=include, exclude=exclude)
    found, extra = answer if isinstance(answer, tuple) else (answer, {})
    for mime, value in (found or {}).items():
        if _wanted(mime, include, exclude):
            _add(obj, data, metadata, str(mime), value)
    metadata.update(plain_json(extra or {}))


def _wanted(mime, include, exclude):
    return not (include and mime not in include or exclude and mime in exclude)


def measured(obj, include=None, exclude=None):
    """(data, metadata, whether something was left out) of a value; empty if the object has shown itself. include, exclude:
    MIME types."""
    data, metadata = {}, {}
    show = shows_itself.finds(obj)
    try:
        if show:
            show()
            return data, metadata, False
        _collect(obj, data, metadata, include, exclude)
    except Exception as exc:
        _complain(obj, "_ipython_display_" if show else "_repr_mimebundle_", explain(exc))
    for mime, formatter in list(formatters.items()):
        if mime in data or not _wanted(mime, include, exclude):
            continue
        try:
            _add(obj, data, metadata, mime, formatter(obj))
        except Exception as exc:
            if mime == "text/plain":
                data[mime] = clean("<%s: repr() failed: %s>" % (type(obj).__name__, explain(exc)))
            else:
                _complain(obj, getattr(formatter, "method", mime), explain(exc))
    text = short = data.get("text/plain")
    if isinstance(text, str):
        data["text/plain"] = short = cut(text)
    kept, metadata = limit(data, metadata)
    return kept, metadata, kept is not data or short is not text


def bundle(obj, include=None, exclude=None):
    """(data, metadata) of a value; both empty if the object has shown itself."""
    return measured(obj, include, exclude)[:2]


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


def publish(data, metadata=None, source=None, *, transient=None, update=False, truncated=False, **_options):
    """Send a finished bundle as a display. source is ignored, as in IPython; of transient, display_id counts."""
    given = {str(m): encode(str(m), v) for m, v in data.items()}
    data, metadata = limit(given, plain_json(metadata or {}))
    display_id = (transient or {}).get("display_id")
    message = {"type": "display", "data": data, "metadata": metadata,
               "display_id": None if display_id is None else str(display_id), "update": bool(update)}
    if truncated or data is not given:
        message["truncated"] = True
    send(message, True)


def _merged(first, second):
    """Both dictionaries in one; where both have a key, the second counts, and dictionaries are merged."""
    out = dict(first)
    for key, value in second.items():
        both = isinstance(out.get(key), dict) and isinstance(value, dict)
        out[key] = _merged(out[key], value) if both else value
    return out


def display(*objs, include=None, exclude=None, metadata=None, transient=None, display_id=None, raw=False, clear=False,
            update=False, **_options):
    """Show values; with display_id (True picks one) the result is a handle that can update them."""
    handle = DisplayHandle(None if display_id is True else str(display_id)) if display_id else None
    transient = dict(transient or {}, **({"display_id": handle.display_id} if handle else {}))
    if update and not transient.get("display_id"):
        raise TypeError("display_id is required to update a display")
    if clear:
        clear_output(wait=True)
    if handle and not objs:  # an empty place, for updates
        objs, raw = ({},), True
    for obj in objs:
        if raw and not isinstance(obj, dict):
            raise TypeError("display(raw=True) takes dicts of MIME type to data, not %s" % type(obj).__name__)
        data, found, short = (obj, {}, False) if raw else measured(obj, include, exclude)
        if data or raw:
            publish(data, _merged(found, metadata or {}), transient=transient, update=update, truncated=short)
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
                data, metadata, short = measured(figure)
                if len(data) > 1 or short:
                    publish(data, metadata, truncated=short)
    finally:
        pyplot.close("all")
