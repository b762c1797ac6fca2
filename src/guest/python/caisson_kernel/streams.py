# SPDX-License-Identifier: Apache-2.0
"""streams - sys.stdout and sys.stderr: straight to descriptors 1 and 2, nothing held back.

Each write is on its descriptor when it returns, so the output of Python, a subprocess and a C extension appears in the order
of printing. The text layer is the ordinary TextIOWrapper (with `.buffer`, `.fileno()`, `.reconfigure()`), in UTF-8 whatever
the locale is; characters that UTF-8 cannot encode are written as escapes. Below it is a raw file of our own, because
io.FileIO may write less than it was given (a signal, O_NONBLOCK) and the text layer would drop the rest.

User code may replace, close, detach or reconfigure the streams. restore() before the next execution repairs them;
as long as they are intact the same objects stay, since logging handlers and the like hold on to them.

Python's print() writes each value, separator and end by itself. Ours makes one write of them, if it prints to one of these
streams: a line costs one system call, is one event for the client, and lines of several threads do not mix.

The C library's stdout is made unbuffered, for extensions that printf().
"""
import builtins
import errno
import io
import os
import select
import sys

_write = os.write  # user code may replace the one in os
_python_print = builtins.print
_StringIO = io.StringIO


class Descriptor(io.RawIOBase):
    """A raw writer that writes everything it is given and never closes its descriptor."""

    def __init__(self, fd, name):
        self._fd = fd
        self.name = name
        self.mode = "wb"

    def fileno(self):
        if self.closed:
            raise ValueError("I/O operation on closed file")
        return self._fd

    def writable(self):
        return True

    def write(self, data):
        if self.closed:
            raise ValueError("I/O operation on closed file")
        view = memoryview(data).cast("B")
        size = len(view)
        while view:
            try:
                view = view[_write(self._fd, view):]
            except BlockingIOError as error:
                if error.errno != errno.EAGAIN:
                    raise
                select.select((), (self._fd,), ())
        return size


def _open(fd, name):
    stream = io.TextIOWrapper(Descriptor(fd, name), encoding="utf-8", errors="backslashreplace", write_through=True)
    stream.mode = "w"
    return stream


_ours = {}


def _intact(stream):
    try:
        if stream.closed:
            return False
        if not stream.write_through or stream.encoding != "utf-8" or stream.errors != "backslashreplace":
            stream.reconfigure(encoding="utf-8", errors="backslashreplace", write_through=True)
        return True
    except ValueError:  # detached
        return False


def restore():
    """Before an execution: make sys.stdout and sys.stderr ours, and working."""
    for fd, name in ((1, "stdout"), (2, "stderr")):
        stream = _ours.get(name)
        if stream is None or not _intact(stream):
            stream = _ours[name] = _open(fd, "<%s>" % name)
        setattr(sys, name, stream)
        setattr(sys, "__%s__" % name, stream)


def flush():
    """After an execution, before a display: flush the streams in sys.stdout and sys.stderr. Never raises an Exception: a stream
    that cannot be flushed is its owner's problem."""
    for stream in (sys.stdout, sys.stderr):
        if stream is not _ours.get("stdout") and stream is not _ours.get("stderr"):
            try:
                stream.flush()
            except Exception:
                pass


def _print(*args, sep=" ", end="\n", file=None, flush=False):
    stream = getattr(sys, "stdout", None) if file is None else file
    if stream is None or (stream is not _ours.get("stdout") and stream is not _ours.get("stderr")):
        return _python_print(*args, sep=sep, end=end, file=file, flush=flush)
    text = _StringIO()
    try:
        _python_print(*args, sep=sep, end=end, file=text)
    finally:  # if a value has no text: those before it
        stream.write(text.getvalue())
    if flush:
        stream.flush()


_print.__name__ = _print.__qualname__ = "print"
_print.__module__ = "builtins"
_print.__doc__ = _python_print.__doc__


def install():
    """Make print() ours, once: user code may replace it for good."""
    builtins.print = _print


def unbuffer_c():
    """setvbuf(stdout, NULL, _IONBF, 0), if ctypes is available."""
    try:
        import ctypes
        libc = ctypes.CDLL(None)
        libc.setvbuf(ctypes.c_void_p.in_dll(libc, "stdout"), None, 2, 0)
    except Exception:
        pass
