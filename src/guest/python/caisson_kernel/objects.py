# SPDX-License-Identifier: Apache-2.0
"""objects.py - HTML, Image, Audio and the other small classes of IPython.display, for kernels without IPython.

Theory of operation. An object carries data, its MIME type and a method that returns both (`_repr_mimebundle_`);
display.py shows it. Data comes from memory, a file or a URL and is read when the object is made, as in IPython, so a
missing file is an error in the user's line and not later. Images and videos given by URL are not fetched unless
embed=True: the bundle has the address. Text that the user passes into markup is escaped, except for HTML, SVG, Markdown
and Javascript, which is markup by intention.

standins.py puts CLASSES into the module `IPython.display`. Options of the originals that make no difference to the data
are accepted and ignored.
"""
import base64
import html
import json
import mimetypes
import os
import sys


class DisplayObject:
    """Data with a MIME type, from memory, a file or a URL."""

    mime, binary = "text/plain", False

    def __init__(self, data=None, url=None, filename=None, metadata=None, **_options):
        data = os.fspath(data) if isinstance(data, os.PathLike) else data
        if isinstance(data, str) and url is None and filename is None:
            if data.startswith(("http://", "https://")):
                data, url = None, data
            elif self.binary:
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


def _text(name, mime, wrap=None):
    """A class for text of one MIME type."""
    def data(self, include=None, exclude=None):
        return {mime: wrap(self.data) if wrap else self.data}, {}
    return type(name, (DisplayObject,), {"mime": mime, "_repr_mimebundle_": data, "__str__": lambda self: self.data})


HTML, Markdown = _text("HTML", "text/html"), _text("Markdown", "text/markdown")
SVG, Latex = _text("SVG", "image/svg+xml"), _text("Latex", "text/latex")
Math = _text("Math", "text/latex", lambda s: "$\\displaystyle %s$" % s.strip("$"))
Javascript, Pretty = _text("Javascript", "application/javascript"), _text("Pretty", "text/plain")
Code = _text("Code", "text/plain")


class JSON(DisplayObject):
    mime = "application/json"

    def reload(self):
        super().reload()
        if isinstance(self.data, str):
            self.data = json.loads(self.data)


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
            data = self.wav(data, rate)
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
    def wav(samples, rate):
        """A WAV file of numbers, one channel, scaled to full volume as IPython does."""
        import array
        import io
        import wave
        samples = [float(s) for s in samples]
        peak = max([abs(s) for s in samples] or [0]) or 1.0
        pcm = array.array("h", [int(s / peak * 32767) for s in samples])
        if sys.byteorder == "big":
            pcm.byteswap()
        out = io.BytesIO()
        with wave.open(out, "wb") as w:
            w.setparams((1, 2, int(rate), len(pcm), "NONE", ""))
            w.writeframes(pcm.tobytes())
        return out.getvalue()

    def _repr_mimebundle_(self, include=None, exclude=None):
        source = self.url if self.by_url else "data:%s;base64,%s" % (
            self.mime, base64.b64encode(self.data or b"").decode("ascii"))
        more = " autoplay" if self.options.get("autoplay") else ""
        more += "".join(' %s="%s"' % (k, html.escape(str(self.options[k]))) for k in ("width", "height")
                        if self.options.get(k) is not None)
        return {"text/html": '<%s controls%s src="%s"></%s>' % (self.element, more, html.escape(source), self.element)}


Audio = type("Audio", (_Media,), {"element": "audio", "default": "audio/wav"})
Video = type("Video", (_Media,), {"element": "video", "default": "video/mp4"})


class IFrame(DisplayObject):
    def __init__(self, src, width, height, **_options):
        super().__init__('<iframe width="%s" height="%s" src="%s" frameborder="0" allowfullscreen></iframe>' % (
            html.escape(str(width)), html.escape(str(height)), html.escape(str(src))))

    mime = "text/html"


class FileLink(DisplayObject):
    mime = "text/html"

    def __init__(self, path, **_options):
        self.path = str(path)
        super().__init__('<a href="%s">%s</a>' % ((html.escape(self.path),) * 2))

    def __repr__(self):
        return os.path.abspath(self.path)


CLASSES = {c.__name__: c for c in (DisplayObject, HTML, Markdown, SVG, Latex, Math, Javascript, Pretty, Code, JSON,
                                   Image, Audio, Video, IFrame, FileLink)}
CLASSES["TextDisplayObject"] = DisplayObject
