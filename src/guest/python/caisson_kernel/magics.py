# SPDX-License-Identifier: Apache-2.0
"""magics.py - `!ls`, `%time f()`, `%%bash`, `x = !cmd`, `obj?`: the additions of notebooks to Python, as calls.

Theory of operation. transform() is called only for code that does not compile as Python, so valid Python is never
changed. It scans the lines with a small scanner for strings, comments, brackets and continuation lines. It looks for an
escape only where a statement can begin, or right behind the `=` of an assignment: there none of `!`, `%`, `?` can begin
Python. Inside a string or a bracket nothing is rewritten.

- An escape becomes one call of this module on the same line, with its text as a string literal. Continuation lines are
  joined into it and replaced by empty lines. So line numbers stay correct, and a traceback can show the user's own text.
- A `%%name` on the first line that is not empty or a comment takes the rest of the cell as text.
- The calls find the user's variables through the frame they are called from: no state is kept here.
- Where the code of a %time or %%capture uses `await`, the call is awaited too.

Code of cell magics is compiled under the file name of the cell, with its own line numbers. The magics themselves
are in magic_code.py and magic_commands.py, loaded by the first use; they register themselves in LINE and CELL.
"""
import ast
import importlib
import inspect
import re
import sys
import warnings

from . import shell

HERE = "__import__('caisson_kernel.magics').magics."
LINE, CELL = {}, {}  # name -> function(scope, args) and function(scope, args, body)
RUNS_CODE = ("time", "capture")  # magics whose text may `await`

CELL_START = re.compile(r"(?:[ \t]*(?:#[^\n]*)?\n)*%%([A-Za-z_]\w*)[ \t]*([^\n]*)(?:\n|\Z)")
MAGIC = re.compile(r"%{1,2}([A-Za-z_]\w*)[ \t]*(.*)", re.S)
HELP = re.compile(r"(%{0,2}[A-Za-z_]\w*(?:\.[A-Za-z_]\w*|\[[^\[\]]*\])*)\s*(\?\??)\s*")
HELP_BEFORE = re.compile(r"(\?\??)\s*(%{0,2}[A-Za-z_][\w.]*)\s*")
ASSIGNED = re.compile(r"=[ \t]*(?=!|%[A-Za-z_])")
AUTOMAGIC = re.compile(r"pip3?[ \t]+(?:install|uninstall|list|show|freeze|check)\b(?![ \t]*[=(.,])")


class UsageError(Exception):
    """A magic that does not exist, or that was called in a wrong way."""

    __module__ = "builtins"  # tracebacks show the bare name


def packages_install(args):
    """Install packages, by the words after `pip install`."""
    from . import packages
    packages.install(args)


class Scanner:
    """The state at a place of the source: in brackets, in a string, on a continued line."""

    def __init__(self):
        self.depth, self.quote, self.continued = 0, "", False

    def at_statement(self):
        return not (self.depth or self.quote or self.continued)

    def feed(self, line):
        """Scan a line; stop after the `=` of an assignment of an escape and return that position, or None."""
        i, self.continued = 0, False
        while i < len(line):
            c = line[i]
            if c == "\\":
                self.continued = i + 1 == len(line)
                i += 2
            elif self.quote:
                inside = not line.startswith(self.quote, i)
                i += 1 if inside else len(self.quote)
                self.quote = self.quote if inside else ""
            elif c in "'\"":
                self.quote = c * 3 if line.startswith(c * 3, i) else c
                i += len(self.quote)
            elif c == "#":
                break
            else:
                self.depth = max(0, self.depth + (c in "([{") - (c in ")]}"))
                match = ASSIGNED.match(line, i) if c == "=" and not self.depth else None
                if match and line[i - 1:i] not in tuple("=!<>:+-*/%&|^@~") and line[:i].strip():
                    return match.end()
                i += 1
        if len(self.quote) == 1 and not self.continued:
            self.quote = ""  # a string that is not closed: Python will report it
        return None


def _awaits(code):
    """Whether the code, including its magics, awaits at its top level."""
    try:
        with warnings.catch_warnings():  # they come when the code is compiled to be run
            warnings.simplefilter("ignore")
            parts = compile_cell(code, "<magic>")
        return any(part.co_flags & inspect.CO_COROUTINE for part in parts)
    except Exception:  # not Python, or too deep or too large for the compiler: the run will report it
        return False


def _call(name, *args, code=None):
    prefix = "await %sa" % HERE if code is not None and _awaits(code) else HERE
    return "%s%s(%s)" % (prefix, name, ", ".join(map(repr, args)))


def _escape(text, assigned=False):
    """The call for one escape (`!...` or `%...`), None for any other text."""
    if text.startswith("!"):
        command = text.lstrip("!").strip()
        captured = assigned or text.startswith("!!")
        return _call("getoutput" if captured else "system", command) if command else None
    match = MAGIC.fullmatch(text)
    if not match:
        return None
    name, args = match.group(1), match.group(2).rstrip()
    if text.startswith("%%"):
        return _call("misplaced", name)
    return _call("line", name, args, code=args if name in RUNS_CODE else None)


def _statement(text):
    """The call for a statement that is an escape as a whole, None for any other."""
    help_after, help_before = HELP.fullmatch(text), HELP_BEFORE.fullmatch(text)
    if help_after:
        return _call("pinfo", help_after.group(1), len(help_after.group(2)) - 1)
    if help_before:
        return _call("pinfo", help_before.group(2), len(help_before.group(1)) - 1)
    if AUTOMAGIC.match(text):
        text = "%" + text.replace("pip3", "pip", 1)
    return _escape(text) if text[:1] in ("!", "%") else None


def _joined(lines, i, first):
    """(text, next line) of an escape, which backslashes may continue."""
    parts = [first.rstrip()]
    while parts[-1].endswith("\\") and i + 1 < len(lines):
        i += 1
        parts[-1] = parts[-1][:-1].rstrip()
        parts.append(lines[i].strip())
    return " ".join(parts), i + 1


def transform(code):
    """The code with its escapes as calls; the same text if it has none."""
    cell_match = CELL_START.match(code)
    if cell_match:
        name, args, body = cell_match.group(1), cell_match.group(2).rstrip(), code[cell_match.end():]
        before = code.count("\n", 0, cell_match.start(1))
        call = _call("cell", name, args, body, before + 1, code=body if name in RUNS_CODE else None)
        return "\n" * before + call + "\n" * (code.count("\n") - before)
    lines, out, scanner, i = code.split("\n"), [], Scanner(), 0
    while i < len(lines):
        line, end, call = lines[i], i + 1, None
        head = line[:len(line) - len(line.lstrip())]
        if scanner.at_statement():
            text, end = _joined(lines, i, line.strip())
            call = _statement(text)
        if call is None:
            place = scanner.feed(line.rstrip("\r"))
            end = i + 1
            if place is not None:
                head = line[:place]
                text, end = _joined(lines, i, line[place:])
                call = _escape(text, True)
                end = end if call else i + 1
        out.append(line if call is None else head + call)
        out.extend([""] * (end - i - 1))
        i = end
    return "\n".join(out)


def compile_cell(source, filename, first=0):
    """Code objects of a text: the statements, and the last expression as a value if there is one. `first` is the number of
    lines before it in the cell."""
    flags = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT | ast.PyCF_ONLY_AST
    try:
        tree = compile("\n" * first + source, filename, "exec", flags, True)
    except SyntaxError:
        changed = transform(source)
        if changed == source:
            raise
        tree = compile("\n" * first + changed, filename, "exec", flags, True)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    parts = [compile(tree, filename, "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, True)]
    if last is not None:
        parts.append(compile(ast.Expression(last.value), filename, "eval", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, True))
    return parts


def _installed(command):
    """The rest of a command after the packages that it asks for were installed."""
    wanted = shell.pip_install(command)
    if wanted is None:
        return command
    packages_install(wanted[0])
    return wanted[1] or "true"


class Scope:
    """The caller of a magic: its variables, and the file name under which its code is compiled."""

    def __init__(self, frame, first=None):
        self.first = frame.f_lineno - 1 if first is None else first  # lines before the code of the magic
        self.globals, self.filename = frame.f_globals, frame.f_code.co_filename
        self.locals = None if frame.f_locals is frame.f_globals else dict(frame.f_locals)

    def names(self):
        return {**self.globals, **(self.locals or {})}

    def expand(self, text):
        return shell.expand(text, self.names())

    async def run(self, source):
        """Run code of the user; return the value of its last expression."""
        value, parts = None, compile_cell(source, self.filename, self.first)
        for part in parts:
            value = eval(part, self.globals, self.locals)
            if part.co_flags & inspect.CO_COROUTINE:
                value = await value
        return value if len(parts) == 2 and not source.rstrip().endswith(";") else None

    def system(self, command):
        """Run a command; its exit status is in `_exit_code`."""
        self.globals["_exit_code"] = shell.run(_installed(command))

    def getoutput(self, command):
        self.globals["_exit_code"], lines = shell.output(_installed(command))
        return lines


def _registering(table, names, verbatim):
    def decorate(func):
        func.verbatim = verbatim
        table.update(dict.fromkeys(names, func))
        return func
    return decorate


def line_magic(*names, verbatim=False):
    """@line_magic("name"): func(scope, args). verbatim: `{x}` and `$x` in the arguments stay as they are."""
    return _registering(LINE, names, verbatim)


def cell_magic(*names, verbatim=False):
    """@cell_magic("name"): func(scope, args, body)"""
    return _registering(CELL, names, verbatim)


def load():
    """Fill the tables. The first magic does this; a warm process may do it before."""
    for module in ("magic_code", "magic_commands"):
        importlib.import_module("." + module, __package__)  # they register themselves


def register(func, kind, name):
    """Add a magic of the user's: func(line), func(line, cell), or func(line, cell=None) for line_cell."""
    load()
    if "line" in kind:
        LINE[name] = lambda scope, args: func(args)
    if "cell" in kind:
        CELL[name] = lambda scope, args, body: func(args, body)


def known(table, name, sign):
    """The function of a magic."""
    load()
    if name not in table:
        hint = " inside the code; it goes on the first line, as %%%%%s" % name if sign == "%" and name in CELL else ""
        raise UsageError("%s%s is not available%s. There are: %s" % (
            sign, name, hint, ", ".join(sign + n for n in sorted(table))))
    return table[name]


def _begin(table, name, sign, scope, args, *body):
    func = known(table, name, sign)
    return func(scope, args if getattr(func, "verbatim", False) else scope.expand(args), *body)


async def _awaited(result):
    return await result if inspect.iscoroutine(result) else result


def _driven(result):
    """The value of a magic whose code does not await: its coroutine ends in its first step."""
    if not inspect.iscoroutine(result):
        return result
    try:
        result.send(None)
    except StopIteration as done:
        return done.value
    result.close()
    raise UsageError("this magic cannot await here")


def line(name, args, frame=None):
    return _driven(_begin(LINE, name, "%", Scope(frame or sys._getframe(1)), args))


def aline(name, args):
    return _awaited(_begin(LINE, name, "%", Scope(sys._getframe(1)), args))


def cell(name, args, body, first=None, frame=None):
    scope = Scope(frame or sys._getframe(1), first)
    return _driven(_begin(CELL, name, "%%", scope, args, body))


def acell(name, args, body, first=None):
    return _awaited(_begin(CELL, name, "%%", Scope(sys._getframe(1), first), args, body))


def system(command, frame=None):
    scope = Scope(frame or sys._getframe(1))
    scope.system(scope.expand(command))


def getoutput(command, frame=None):
    scope = Scope(frame or sys._getframe(1))
    return scope.getoutput(scope.expand(command))


def run(code, namespace):
    """Run code that came as text; return the value of its last expression."""
    value, parts = None, compile_cell(code, "<cell>")
    for part in parts:
        value = _driven(eval(part, namespace))
    return value if len(parts) == 2 and not code.rstrip().endswith(";") else None


def misplaced(name):
    raise UsageError("%%%%%s must be on the first line of the code" % name)


def pinfo(name, detail=0):
    from .magic_commands import describe
    describe(Scope(sys._getframe(1)), name, detail)
