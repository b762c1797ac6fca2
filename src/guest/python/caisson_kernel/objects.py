# SPDX-License-Identifier: Apache-2.0
"""objects.py - HTML, Image, Audio and the other small classes of IPython.display, for kernels without IPython.

Theory of operation. An object carries data and its MIME type, and a method that display.py finds. Data comes from memory,
a file or a URL and is read when the object is made, as in IPython, so a missing file is an error in the user's line and not
later. Text that is the path of a file stands for the file. Images and videos given by URL are not fetched unless embed=True:
the bundle has the address. Text that the user passes into markup is escaped, except for HTML, SVG, Markdown and
Javascript, which is markup by intention.

standins.py puts CLASSES into the module `IPython.display`. Options of the originals that make no difference to the data
are accepted and ignored. At the end are two functions of other modules of IPython that draw.
"""
import base64
import html
import io
import json
import mimetypes
import os
import sys
from urllib.parse import urlencode

from . import display


def _is_file(text):
    try:
        return os.path.isfile(text)
    except ValueError:  # a NUL in it
        return False


class DisplayObject:
    """Data with a MIME type, from memory, a file or a URL."""

    mime, binary = "text/plain", False

    def __init__(self, data=None, url=None, filename=None, metadata=None, **_options):
        data = os.fspath(data) if isinstance(data, os.PathLike) else data
        if isinstance(data, str) and url is None and filename is None:
            if data.startswith(("http://", "https://")):
                data, url = None, data
            elif self.binary or _is_file(data):
                data, filename = None, data
        self.data, self.url, self.filename, self.metadata = data, url, filename, metadata or {}
        self.reload()

    def reload(self):
        if self.filename is not None:
            with open(self.filename, "rb") as f:
                raw = f.read()
            self.data = raw if self.binary else raw.decode("utf-8")
        elif self.url is not None and self.data is None:
            from urllib.request import urlopen
            with urlopen(self.url, timeout=30) as response:
                raw = response.read()
            self.data = raw if self.binary else raw.decode("utf-8", "replace")

    def __repr__(self):
        return "<IPython.core.display.%s object>" % type(self).__name__

    def _repr_mimebundle_(self, include=None, exclude=None):
        return {self.mime: self.data}, {self.mime: self.metadata} if self.metadata else {}


class TextDisplayObject(DisplayObject):
    _repr_mimebundle_ = None  # each has a method for its one form

    def __str__(self):
        return self.data


def _text(name, method, wrap=None, **more):
    """A class for text of one MIME type."""
    def form(self):
        data = wrap(self.data) if wrap else self.data
        return (data, self.metadata) if self.metadata else data
    return type(name, (TextDisplayObject,), {method: form, **more})


HTML = _text("HTML", "_repr_html_", __html__=lambda self: self.data)
Markdown, SVG, Latex = (_text(n, m) for n, m in (("Markdown", "_repr_markdown_"), ("SVG", "_repr_svg_"), ("Latex", "_repr_latex_")))
Math = _text("Math", "_repr_latex_", lambda s: "$\\displaystyle %s$" % s.strip("$"))
Pretty = type("Pretty", (TextDisplayObject,), {"_repr_pretty_": lambda self, printer, cycle: printer.text(self.data)})
Code = _text("Code", "_repr_html_", lambda s: "<pre><code>%s</code></pre>" % html.escape(s), __repr__=lambda self: self.data)


class Javascript(TextDisplayObject):
    """Code for the page; after the style sheets `css` and the scripts `lib` were loaded, if there are any."""

    def __init__(self, data=None, url=None, filename=None, lib=None, css=None, **_options):
        self.lib, self.css = ([v] if isinstance(v, str) else list(v or ()) for v in (lib, css))
        super().__init__(data, url, filename)

    def _repr_javascript_(self):
        if not self.lib and not self.css:
            return self.data
        return """(async () => {
  const load = (tag, properties) => new Promise((loaded, failed) => document.head.append(
    Object.assign(document.createElement(tag), properties, { onload: loaded, onerror: failed })));
  for (const href of %s) load("link", { rel: "stylesheet", href });
  for (const src of %s) await load("script", { src });
  %s
})();""" % (json.dumps(self.css), json.dumps(self.lib), self.data)


class JSON(DisplayObject):
    mime = "application/json"

    def __init__(self, data=None, url=None, filename=None, expanded=False, metadata=None, root="root", **more):
        super().__init__(data, url, filename, {"expanded": expanded, "root": root, **(metadata or {}), **more})

    def reload(self):
        super().reload()
        if isinstance(self.data, str):
            self.data = json.loads(self.data)


GeoJSON = type("GeoJSON", (JSON,), {"mime": "application/geo+json"})


class ProgressBar(DisplayObject):
    """A bar that replaces itself while it is iterated over, or when `progress` is set."""

    def __init__(self, total):
        self.total, self._progress, self._id, self.html_width, self.text_width = total, 0, os.urandom(16).hex(), "60ex", 60

    def __repr__(self):
        done = int(self.text_width * self._progress / self.total) if self.total else self.text_width
        return "[%s%s] %d/%d" % ("=" * done, " " * (self.text_width - done), self._progress, self.total)

    def _repr_html_(self):
        return '<progress style="width:%s" max="%s" value="%s"></progress>' % (
            html.escape(str(self.html_width)), self.total, self._progress)

    _repr_mimebundle_ = None

    def display(self):
        display.display(self, display_id=self._id)

    def update(self):
        display.display(self, display_id=self._id, update=True)

    @property
    def progress(self):
        return self._progress

    @progress.setter
    def progress(self, value):
        self._progress = value
        self.update()

    def __iter__(self):
        self.display()
        self._progress = -1
        return self

    def __next__(self):
        self.progress += 1
        if self.progress < self.total:
            return self.progress
        raise StopIteration


class Image(DisplayObject):
    binary = True
    SIGNATURES = ((b"\x89PNG", "image/png"), (b"\xff\xd8", "image/jpeg"), (b"GIF8", "image/gif"),
                  (b"RIFF", "image/webp"))

    def __init__(self, data=None, url=None, filename=None, format=None, embed=None, width=None, height=None,
                 metadata=None, **_options):
        self.by_url = bool(not embed and (url or str(data or "").startswith(("http://", "https://"))))
        size = {k: v for k, v in (("width", width), ("height", height)) if v is not None}
        super().__init__(data, url, filename, {**size, **(metadata or {})})
        named = "image/%s" % format.lower().replace("jpg", "jpeg") if format else "image/png"
        start = bytes(self.data[:4]) if isinstance(self.data, (bytes, bytearray)) else b""
        self.mime = next((mime for magic, mime in self.SIGNATURES if start.startswith(magic)), named)

    def reload(self):
        if not self.by_url:
            super().reload()

    def _repr_mimebundle_(self, include=None, exclude=None):
        if not self.by_url:
            return super()._repr_mimebundle_()
        size = "".join(' %s="%s"' % (k, html.escape(str(v))) for k, v in self.metadata.items())
        return {"text/html": '<img src="%s"%s/>' % (html.escape(self.url), size)}


class _Media(DisplayObject):
    """Sound and moving pictures: an HTML element that holds the data itself, or its address."""

    binary, element, default = True, "", ""

    def __init__(self, data=None, filename=None, url=None, embed=None, mimetype=None, rate=None, **options):
        if rate is not None and not isinstance(data, (str, bytes, bytearray, os.PathLike, type(None))):
            data = self.wav(data, rate, options.get("normalize", True))
        self.options, self.by_url = options, False
        if url or str(data if isinstance(data, str) else "").startswith(("http://", "https://")):
            self.by_url = not embed
        super().__init__(data, url, filename)
        name = self.filename or self.url or ""
        self.mime = mimetype or mimetypes.guess_type(str(name))[0] or self.default

    def reload(self):
        if not self.by_url:
            super().reload()

    @staticmethod
    def wav(samples, rate, normalize):
        """A WAV file of numbers, or of one list of numbers per channel, scaled to full volume as IPython does."""
        import array
        import wave
        samples = list(samples)
        several = samples and hasattr(samples[0], "__len__")
        channels = [list(map(float, channel)) for channel in (samples if several else [samples])]
        peak = max([abs(s) for c in channels for s in c] or [0]) or 1.0
        if not normalize and peak > 1:
            raise ValueError("Audio(normalize=False) takes samples between -1 and 1")
        peak = peak if normalize else 1.0
        pcm = array.array("h", [int(s / peak * 32767) for frame in zip(*channels) for s in frame])
        if sys.byteorder == "big":
            pcm.byteswap()
        out = io.BytesIO()
        with wave.open(out, "wb") as w:
            w.setparams((len(channels), 2, int(rate), len(channels[0]), "NONE", ""))
            w.writeframes(pcm.tobytes())
        return out.getvalue()

    def _repr_mimebundle_(self, include=None, exclude=None):
        source = self.url if self.by_url else "data:%s;base64,%s" % (
            self.mime, base64_text(self.data or b""))
        more = " autoplay" if self.options.get("autoplay") else ""
        more += "".join(' %s="%s"' % (k, html.escape(str(self.options[k]))) for k in ("width", "height")
                        if self.options.get(k) is not None)
        more = str(self.options.get("html_attributes", "controls")) + more
        return {"text/html": '<%s %s src="%s"></%s>' % (self.element, more, html.escape(source), self.element)}


Audio = type("Audio", (_Media,), {"element": "audio", "default": "audio/wav"})
Video = type("Video", (_Media,), {"element": "video", "default": "video/mp4"})


class IFrame(DisplayObject):
    mime = "text/html"

    def __init__(self, src, width, height, extras=None, **params):
        self.src, self.width, self.height, self.params = src, width, height, params
        address = str(src) + ("&" if "?" in str(src) else "?") * bool(params) + urlencode(params)
        more = "".join(" " + e for e in extras or ())
        super().__init__('<iframe width="%s" height="%s" src="%s" frameborder="0" allowfullscreen%s></iframe>' % (
            html.escape(str(width)), html.escape(str(height)), html.escape(address), more))


def _embedded(name, address):
    """A class for the player of one site."""
    def init(self, id, width=400, height=300, allow_autoplay=False, **params):
        autoplay = {"autoplay": 1} if allow_autoplay else {}
        IFrame.__init__(self, address % id, width, height, ['allow="autoplay"'] if allow_autoplay else None, **autoplay, **params)
        self.id = id
    return type(name, (IFrame,), {"__init__": init})


YouTubeVideo = _embedded("YouTubeVideo", "https://www.youtube.com/embed/%s")
VimeoVideo = _embedded("VimeoVideo", "https://player.vimeo.com/video/%s")
ScribdDocument = _embedded("ScribdDocument", "https://www.scribd.com/embeds/%s/content")


def _link(path, prefix=""):
    return '<a href="%s" target="_blank">%s</a>' % (html.escape(prefix + path), html.escape(path))


class FileLink(DisplayObject):
    mime = "text/html"

    def __init__(self, path, url_prefix="", **_options):
        self.path = str(path)
        there = os.path.exists(self.path)
        super().__init__(_link(self.path, url_prefix) if there else "There is no file <code>%s</code>." % html.escape(self.path))

    def __repr__(self):
        return os.path.abspath(self.path)


class FileLinks(FileLink):
    """Links to all files below a directory."""

    LISTED_MAX = 1000

    def __init__(self, path, url_prefix="", included_suffixes=None, recursive=True, **_options):
        super().__init__(path)
        files = []
        for root, names, found in os.walk(self.path):
            names[:] = sorted(names) if recursive else []
            files += [os.path.join(root, f) for f in sorted(found) if not included_suffixes or f.endswith(tuple(included_suffixes))]
        self.files = files
        if os.path.isdir(self.path):
            left = ["... and %d more" % (len(files) - self.LISTED_MAX)] * (len(files) > self.LISTED_MAX)
            self.data = "<br>\n".join([_link(f, url_prefix) for f in files[:self.LISTED_MAX]] + left)

    def __repr__(self):
        return "\n".join(self.files[:self.LISTED_MAX])


CLASSES = {c.__name__: c for c in (
    DisplayObject, TextDisplayObject, HTML, Markdown, SVG, Latex, Math, Javascript, Pretty, Code, JSON, GeoJSON, ProgressBar, Image,
    Audio, Video, IFrame, YouTubeVideo, VimeoVideo, ScribdDocument, FileLink, FileLinks)}


# IPython.core.pylabtools, IPython.lib.latextools


def print_figure(fig, fmt="png", bbox_inches="tight", base64=False, **options):
    """A figure of matplotlib as bytes, SVG as text; None for an empty one."""
    if not fig.axes and not fig.lines:
        return None
    out = io.BytesIO()
    fig.savefig(out, format={"retina": "png", "png2x": "png"}.get(fmt, fmt), bbox_inches=bbox_inches,
                **{"dpi": fig.dpi * (2 if fmt in ("retina", "png2x") else 1), **options})
    if fmt == "svg":
        return out.getvalue().decode("utf-8")
    return base64_text(out.getvalue()) if base64 else out.getvalue()


def base64_text(data):
    return base64.b64encode(data).decode("ascii")


def latex_to_png(s, backend=None, encode=False, wrap=False, color="black", scale=1.0, **_options):
    """A formula as PNG, drawn by matplotlib; None if that is not here, or cannot draw it."""
    try:
        from matplotlib import mathtext
    except ImportError:
        return None
    out = io.BytesIO()
    try:
        text = "$%s$" % s if wrap else s.replace("$$", "$")
        mathtext.math_to_image(text, out, dpi=120 * scale, format="png", color=color.lower())
    except Exception:  # mathtext knows a part of LaTeX
        return None
    return base64_text(out.getvalue()) if encode else out.getvalue()
