# SPDX-License-Identifier: Apache-2.0
"""shell.py - Shell commands of a cell: their text, their process, their output.

Theory of operation. A command runs under bash (or sh, if there is no bash) with the descriptors of the kernel: its output
appears at once and in order with that of Python, because Python's own buffers are flushed before it starts. Standard input
is the kernel's, which is empty.

The child stays in the kernel's process group, so an interrupt reaches it and everything it started at the
same moment as it reaches the kernel. The kernel then waits a little for it to end, ends it and its descendants if it
does not, and only then lets KeyboardInterrupt go on. Background processes stay, as with any shell.

expand() puts Python values into a command, `{expression}` and `$name` as in IPython, with three
differences where IPython's rule (one failure anywhere and nothing is replaced) surprises people:
  - an expression that cannot be evaluated stays unchanged, alone: `echo {x} $HOME` needs no escapes;
  - `$name` never means a builtin of Python (`$dir`, `$id`), a number (`$1`) or a `${...}`: those are the shell's;
  - `$name.ext` falls back to `$name` when there is no such attribute.
`$$` before a name keeps a dollar sign for the shell, `{{` and `}}` are literal braces, and inside '...'
a `$` is never touched.
"""
import contextlib
import os
import re
import shlex
import signal
import subprocess
import sys
import warnings

GRACE_SECONDS = 1.0
ARGUMENT_MAX = 100000  # Linux refuses one argument of 128 KiB or more

DOLLAR = re.compile(r"\$(\$?)([A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*)")
PIP = re.compile(r"(?:sudo\s+)?(?:\S*\bpython[\d.]*\s+-m\s+|uv\s+)?(?:\S*/)?pip[\d.]*\s+install\b(.*)", re.S)


class LineList(list):
    """Lines of output: a list, with .s (joined by blanks), .n (by newlines), .l, .grep() and .fields()."""

    l = property(list)
    s = spstr = property(" ".join)
    n = nlstr = property("\n".join)

    def grep(self, pattern, prune=False):
        match = pattern if callable(pattern) else re.compile(pattern, re.I).search
        return LineList(line for line in self if bool(match(line)) != prune)

    def fields(self, *numbers):
        rows = [line.split() for line in self]
        if not numbers:
            return rows
        return LineList(" ".join(row[i] for i in numbers if -len(row) <= i < len(row)) for row in rows)


def _braces(text):
    """{index of an opening brace: index of the one that closes it}"""
    pairs, opened = {}, []
    for match in re.finditer("[{}]", text):
        if match.group() == "{":
            opened.append(match.start())
        elif opened:
            pairs[opened.pop()] = match.start()
    return pairs


def _value(source, names):
    """(True, text) of an expression, (False, None) of other text."""
    source, conversion = (source[:-2], source[-1]) if source[-2:] in ("!r", "!s", "!a") else (source, "s")
    try:
        with warnings.catch_warnings():  # most text in braces is not meant to be Python
            warnings.simplefilter("ignore")
            code = compile(source.strip(), "<shell command>", "eval", 0, True)
        value = eval(code, dict(names))
        return True, {"r": repr, "a": ascii}.get(conversion, str)(value)
    except Exception:
        return False, None


def _dollar(match, names):
    """The replacement of one `$name`."""
    dotted = match.group(2)
    if match.group(1):
        return "$" + dotted
    if dotted.split(".")[0] in names:
        for parts in range(dotted.count(".") + 1, 0, -1):
            source = ".".join(dotted.split(".")[:parts])
            found, text = _value(source, names)
            if found:
                return text + dotted[len(source):]
    return match.group()


def expand(text, names):
    """The command with values of Python inserted."""
    out, i, quote, pairs = [], 0, "", _braces(text)
    while i < len(text):
        c = text[i]
        match = DOLLAR.match(text, i) if c == "$" and quote != "'" else None
        if c == "\\" and quote != "'" and i + 1 < len(text):
            out.append(text[i:i + 2])
            i += 2
        elif match:
            out.append(_dollar(match, names))
            i = match.end()
        elif text[i:i + 2] in ("{{", "}}"):
            out.append(c)
            i += 2
        elif c == "{" and text[i - 1:i] != "$" and i in pairs:
            piece = text[i:pairs[i] + 1]
            found, value = _value(piece[1:-1], names)
            out.append(value if found else piece)
            i = pairs[i] + 1
        else:
            if c in "'\"":
                quote = "" if quote == c else quote or c
            out.append(c)
            i += 1
    return "".join(out)


def pip_install(command):
    """(arguments, rest) of a command that begins with `pip install`, None for any other command.

    rest is the command after && or ;, which is still to be run; pipes and redirections are dropped."""
    match = PIP.fullmatch(command.strip())
    if not match:
        return None
    lexer = shlex.shlex(match.group(1), posix=True, punctuation_chars="();|&")
    lexer.whitespace_split, lexer.commenters = True, ""
    args, line = [], match.group(1)
    try:
        tokens = list(lexer)
    except ValueError as exc:
        raise ValueError("pip install: %s" % exc)
    for position, token in enumerate(tokens):
        if token in ("&&", ";"):
            return args, line[line.index(token) + len(token):].strip()
        if token and set(token) <= set("();|&"):
            break
        redirection = re.match(r"\d?>", token)
        if redirection and position + 1 < len(tokens) and token == redirection.group():
            tokens[position + 1] = "2>"
        if not redirection:
            args.append(token)
    return args, ""


def _flush():
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except Exception:
            pass


def _family(pid):
    """A process and all its descendants, according to /proc."""
    pids = [pid]
    for parent in pids:
        try:
            with open("/proc/%d/task/%d/children" % (parent, parent)) as f:
                pids.extend(map(int, f.read().split()))
        except OSError:
            pass
    return pids


def _finish(process, wait):
    """wait(); if it is interrupted, end the process before the interrupt goes on."""
    try:
        return wait()
    except BaseException:
        for number in (0, signal.SIGTERM, signal.SIGKILL):
            for pid in _family(process.pid) if number and process.poll() is None else ():
                with contextlib.suppress(OSError):
                    os.kill(pid, number)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(GRACE_SECONDS)
        raise


def interpreter(name="bash"):
    """The path of a program; /bin/sh if there is no bash."""
    for directory in os.get_exec_path():
        path = os.path.join(directory, name)
        if os.access(path, os.X_OK) and os.path.isfile(path):
            return path
    return "/bin/sh" if name == "bash" else name


def run(command):
    """Run a command line with the kernel's output. Returns the exit status."""
    _flush()
    process = subprocess.Popen([interpreter(), "-c", command])
    return _finish(process, process.wait)


def output(command):
    """(exit status, LineList) of a command; both its streams are in the lines, as in IPython."""
    _flush()
    process = subprocess.Popen([interpreter(), "-c", command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    data = _finish(process, process.communicate)[0]
    return process.returncode, LineList(data.decode("utf-8", "replace").splitlines())


def script(program, text, args=(), stdout=None, stderr=None):
    """Run a script of any length with arguments; (exit status, output, errors), None for a stream that is not piped."""
    _flush()
    if len(os.fsencode(text)) < ARGUMENT_MAX:
        argv = [program, "-c", text, os.path.basename(program), *args]
        process = subprocess.Popen(argv, stdout=stdout, stderr=stderr)
        text = None
    else:
        process = subprocess.Popen([program, "-s", *args], stdin=subprocess.PIPE, stdout=stdout, stderr=stderr)
    out, err = _finish(process, lambda: process.communicate(None if text is None else os.fsencode(text)))
    return process.returncode, out, err
