# SPDX-License-Identifier: Apache-2.0
"""stdin_ - input(), getpass() and sys.stdin, answered by the host.

Descriptor 0 is /dev/null. sys.stdin is an ordinary text stream over a raw file whose every read is one input_request; so
readline(), iteration, read() and `.buffer` do what they always do. An answer is a line (a newline is added); an answer of
several lines is read line by line before the host is asked again. input() sends its prompt with the request instead of
printing it. When user code has put a stream of its own in sys.stdin, input() is Python's.

The host may give a reason why it cannot answer: that is an EOFError with the reason, because it means the end of input.
"""
import builtins
import getpass
import io
import sys

from . import control, streams

_python_input = builtins.input
_python_getpass = getpass.getpass
_prompt = ""
_stdin = None


def _ask(prompt, password=False):
    """A line without its newline, or None at the end of input."""
    streams.flush()
    answer = control.channel.ask(prompt, password)
    if answer.get("error"):
        raise EOFError(str(answer["error"]))
    if answer.get("eof"):
        return None
    return str(answer.get("value") or "")


class _Host(io.RawIOBase):
    """Each read asks the host for a line."""
    name = "<stdin>"
    mode = "rb"

    def __init__(self):
        self._rest = b""

    def readable(self):
        return True

    def fileno(self):
        return 0

    def readinto(self, target):
        if not self._rest:
            line = _ask(_prompt)
            if line is None:
                return 0
            if not line.endswith("\n"):
                line += "\n"
            self._rest = line.encode("utf-8", "surrogateescape")
        count = min(len(target), len(self._rest))
        target[:count] = self._rest[:count]
        self._rest = self._rest[count:]
        return count


def _input(prompt="", /):
    """Forwards to the client that runs this code; its answer is returned without the newline."""
    global _prompt
    if sys.stdin is not _stdin:
        return _python_input(prompt)
    _prompt = str(prompt)
    try:
        line = sys.stdin.readline()
    finally:
        _prompt = ""
    if not line:
        raise EOFError("EOF when reading a line")
    return line[:-1] if line.endswith("\n") else line


def _getpass(prompt="Password: ", stream=None, **options):
    """Asks the client for a secret."""
    if sys.stdin is not _stdin:
        return _python_getpass(prompt, stream)
    line = _ask(str(prompt), password=True)
    if line is None:
        raise EOFError("EOF when reading a line")
    return line.rstrip("\n")


_input.__name__ = _input.__qualname__ = "input"
_getpass.__name__ = _getpass.__qualname__ = "getpass"


def restore():
    """Before an execution: make sys.stdin ours and open, and input() ours."""
    global _stdin
    try:
        intact = _stdin is not None and not _stdin.closed and _stdin.encoding == "utf-8"
    except ValueError:  # detached
        intact = False
    if not intact:
        buffer = io.BufferedReader(_Host())
        _stdin = io.TextIOWrapper(buffer, encoding="utf-8", errors="surrogateescape")
        _stdin.mode = "r"
    sys.stdin = sys.__stdin__ = _stdin
    builtins.input = _input
    getpass.getpass = _getpass
