# SPDX-License-Identifier: Apache-2.0
"""magic_commands.py - The magics that do something themselves: directories, files, the environment, scripts, help.

Theory of operation. A magic is a function of the scope that calls it and of its text, in which `{x}` and `$x` were
already replaced. Its return value is the value of the expression, so `here = %pwd` and `%pwd` at the end of a cell work.

Magics that only make sense for a terminal or for IPython's own machinery (%autoreload, %colors) are accepted,
because code that was written for notebooks begins with them, and print one line that they have no effect. Every other
unknown magic raises UsageError with the list of known ones. No magic does a part of its work in silence.

%pip install goes to magics.packages_install, which the kernel provides; other verbs of pip run in the shell. %run
gives a script a `__main__` of its own and then copies its names into the user's, also after a failure, so that its
values can be inspected.
"""
import ast
import importlib
import inspect
import os
import shlex
import subprocess
import sys
import types

from . import display, interactive, magics, shell
from .magics import CELL, LINE, UsageError, cell_magic, line_magic

HIDDEN = {"In", "Out", "exit", "quit", "get_ipython", "display"}  # in the namespace, but not the user's
SHOWN = {"html": "text/html", "HTML": "text/html", "markdown": "text/markdown", "latex": "text/latex",
         "svg": "image/svg+xml", "SVG": "image/svg+xml", "javascript": "application/javascript",
         "js": "application/javascript"}
_previous = {}  # the directory before the last %cd


def _words(args, usage):
    try:
        return shlex.split(args)
    except ValueError as exc:
        raise UsageError("%s: %s" % (usage, exc))


# Directories, environment, shell


@line_magic("cd")
def cd(scope, args):
    """%cd [-q] [DIR | -]: change the directory; without DIR, go home."""
    words = _words(args, "%cd")
    quiet, words = "-q" in words, [w for w in words if w != "-q"]
    target = " ".join(words) or "~"
    if target == "-":
        if "cwd" not in _previous:
            raise UsageError("%cd -: there is no previous directory")
        target = _previous["cwd"]
    here = os.getcwd()
    os.chdir(os.path.expanduser(target))
    _previous["cwd"] = here
    if not quiet:
        print(os.getcwd())


@line_magic("pwd")
def pwd(scope, args):
    """%pwd: the current directory."""
    return os.getcwd()


@line_magic("env", "set_env")
def env(scope, args):
    """%env [NAME | NAME=VALUE | NAME VALUE]: all variables of the environment, one, or set one."""
    if not args:
        return dict(os.environ)
    name, mark, value = args.partition("=")
    if not mark or " " in name.strip():
        name, mark, value = args.partition(" ")
    name, value = name.strip(), value.strip()
    if not mark:
        if name not in os.environ:
            raise UsageError("%%env: %s is not set" % name)
        return os.environ[name]
    os.environ[name] = value
    print("env: %s=%s" % (name, value))
    return None


def _alias(name, command):
    def run(scope, args):
        scope.system("%s %s" % (command, args))
    run.__doc__ = "%%%s [ARGUMENTS]: `%s` in the shell" % (name, command)
    line_magic(name)(run)


for _name in ("ls", "cat", "cp", "mv", "rm", "mkdir", "rmdir", "ll"):
    _alias(_name, {"ll": "ls -l"}.get(_name, _name))


@line_magic("sx", "system")
def sx(scope, args):
    """%sx COMMAND: run it in the shell; the lines of its output are the result."""
    return scope.getoutput(args)


@line_magic("pip")
def pip(scope, args):
    """%pip install PACKAGES, or any other verb of pip."""
    if args.split()[:1] == ["install"]:
        return scope.system("pip " + args)
    return scope.system("%s -m pip %s" % (shlex.quote(sys.executable or "python3"), args))


# Scripts and files


def _script(program, name):
    def run(scope, args, body):
        words, out, err, raises = _words(args, "%%" + name), None, None, True
        while words and words[0].startswith("-"):
            flag, _, value = words.pop(0).partition("=")
            if flag in ("--out", "--err") and (value or words):
                value = value or words.pop(0)
                out, err = (value, err) if flag == "--out" else (out, value)
            elif flag == "--no-raise-error":
                raises = False
            elif flag != "-s":
                raise UsageError("%%%%%s has no option %s" % (name, flag))
        pipe = subprocess.PIPE
        status, *texts = shell.script(shell.interpreter(program), body, words, pipe if out else None,
                                      pipe if err else None)
        for target, text in zip((out, err), texts):
            if target:
                scope.globals[target] = text.decode("utf-8", "replace")
        scope.globals["_exit_code"] = status
        if status and raises:
            raise subprocess.CalledProcessError(status, name)
    run.__doc__ = "%%%%%s [--out NAME] [--err NAME] [--no-raise-error] [-s ARGUMENTS]: run the cell with %s" % (
        name, program)
    cell_magic(name)(run)


_script("bash", "bash")
_script("sh", "sh")


@cell_magic("writefile", "file")
def writefile(scope, args, body):
    """%%writefile [-a] FILE: write the cell to a file, or append it."""
    words = _words(args, "%%writefile")
    append, words = any(w in ("-a", "--append") for w in words), [w for w in words if w not in ("-a", "--append")]
    if len(words) != 1:
        raise UsageError(writefile.__doc__)
    path = os.path.expanduser(words[0])
    print("%s %s" % ("Appending to" if append else "Overwriting" if os.path.exists(path) else "Writing", path))
    with open(path, "a" if append else "w", encoding="utf-8", errors="surrogateescape") as file:
        file.write(body if body.endswith("\n") else body + "\n")


def _show(name, mime):
    def run(scope, args, body):
        display.publish({mime: body, "text/plain": body})
    run.__doc__ = "%%%%%s: show the cell as %s" % (name, mime)
    cell_magic(name)(run)


for _name in SHOWN:
    _show(_name, SHOWN[_name])


@line_magic("run")
def run_file(scope, args):
    """%run [-i] FILE [ARGUMENTS]: run a Python file; you have its names afterwards. -i: it has your names, too."""
    words = _words(args, "%run")
    share = words[:1] == ["-i"]
    words = words[1:] if share else words
    if not words:
        raise UsageError(run_file.__doc__)
    path = os.path.expanduser(words[0])
    path = path + ".py" if not os.path.exists(path) and os.path.exists(path + ".py") else path
    with open(path, "rb") as file:
        source = file.read()
    module = types.ModuleType("__main__")
    if share:
        vars(module).update(scope.globals)
    vars(module).update(__name__="__main__", __file__=path, __builtins__=__builtins__)
    saved = sys.argv, list(sys.path), sys.modules.get("__main__")
    sys.argv, sys.modules["__main__"] = [path] + words[1:], module
    sys.path.insert(0, os.path.dirname(os.path.abspath(path)))
    try:
        exec(compile(_plain(source, path), path, "exec", 0, True), vars(module))
    except SystemExit as exc:
        if exc.code not in (None, 0):
            raise
    finally:
        sys.argv, sys.path[:], sys.modules["__main__"] = saved
        scope.globals.update((k, v) for k, v in vars(module).items() if not k.startswith("__"))


def _plain(source, path):
    """Source that Python compiles; files that end in .ipy may contain magics."""
    return magics.transform(source.decode("utf-8")) if path.endswith(".ipy") else source


# The namespace, and help


def _names(scope):
    return sorted(n for n in scope.globals if not n.startswith("_") and n not in HIDDEN)


@line_magic("who", "who_ls")
def who(scope, args):
    """%who [TYPES]: the names you have defined."""
    wanted = args.split()
    names = [n for n in _names(scope) if not wanted or type(scope.globals[n]).__name__ in wanted]
    print("  ".join(names) if names else "No names are defined.")


@line_magic("whos")
def whos(scope, args):
    """%whos: the names you have defined, their types and values."""
    rows = [(n, type(scope.globals[n]).__name__, display.brief(scope.globals[n], 60)) for n in _names(scope)]
    for row in [("Name", "Type", "Value")] + rows:
        print("%-16s %-16s %s" % row)


@line_magic("reset")
def reset(scope, args):
    """%reset -f: forget all names you have defined."""
    if "-f" not in args.split():
        raise UsageError("%reset cannot ask for confirmation here; use %reset -f")
    for name in [n for n in scope.globals if not n.startswith("__") and n not in HIDDEN]:
        del scope.globals[name]


@line_magic("lsmagic")
def lsmagic(scope, args):
    """%lsmagic: list the magics."""
    print("%s\n%s" % ("  ".join("%" + n for n in sorted(LINE)), "  ".join("%%" + n for n in sorted(CELL))))


@line_magic("history", "hist")
def history(scope, args):
    """%history [-n] [-l COUNT] [N | N-M ...]: the executed code of this notebook; -n: with numbers."""
    words, past = _words(args, "%history"), scope.globals.get("In")
    if not isinstance(past, list):
        raise UsageError("%history: executions are numbered, and kept, only for notebooks")
    numbers, chosen, last = False, [], range(1, max(1, len(past) - 1))  # without this one
    while words:
        word = words.pop(0)
        ends = word.split("-") if not word.startswith("-") else []
        if word == "-n":
            numbers = True
        elif word == "-l" and (words[:1] or [""])[0].isdigit():
            last = last[-int(words.pop(0)):]
        elif 1 <= len(ends) <= 2 and all(e.isdigit() for e in ends):
            chosen += range(int(ends[0]), int(ends[-1]) + 1)
        else:
            raise UsageError(history.__doc__)
    for n in chosen or last:
        if 0 < n < len(past):
            print("%4d: %s" % (n, past[n]) if numbers else past[n])


_PRECISE = (float, list, tuple, dict)


def _precise(form):
    def text(obj):
        if type(obj) is float:
            return form % obj
        if type(obj) is list:
            return "[%s]" % ", ".join(map(text, obj))
        if type(obj) is tuple:
            return "(%s%s)" % (", ".join(map(text, obj)), "," if len(obj) == 1 else "")
        if type(obj) is dict:
            return "{%s}" % ", ".join("%s: %s" % (text(k), text(v)) for k, v in obj.items())
        return repr(obj)

    def show(obj, printer, _cycle):
        try:
            printer.text(text(obj))
        except RecursionError:
            printer.text(repr(obj))
    return show


@line_magic("precision", verbatim=True)
def precision(scope, args):
    """%precision [DIGITS | FORMAT]: set how results show floating-point numbers; without an argument, as Python does."""
    plain, word = display.formatters["text/plain"], args.strip("'\"")
    numpy = sys.modules.get("numpy")
    try:
        form = "%%.%df" % int(word) if word.isdigit() else word
        form and form % 3.14
    except (TypeError, ValueError):
        raise UsageError("%%precision: %s is neither a number of digits nor a format as %%.3f" % word)
    for kind in _PRECISE:
        plain.pop(kind)
        if form:
            plain.for_type(kind, _precise(form))
    if hasattr(numpy, "set_printoptions"):
        numpy.set_printoptions(precision=int(word) if word.isdigit() else 8)
    return form or "%r"


def _no_effect(what):
    print("%s has no effect here." % what, file=sys.stderr)


@line_magic("config", verbatim=True)
def config(scope, args):
    """%config InlineBackend.figure_format = 'svg' (or png, retina), InteractiveShell.ast_node_interactivity = 'all' (or last_expr,
    last_expr_or_assign, none); other settings are not supported."""
    name, mark, value = (part.strip() for part in args.partition("="))
    if name not in ("InlineBackend.figure_format", "InlineBackend.figure_formats", "InteractiveShell.ast_node_interactivity") or not mark:
        _no_effect("%config " + args)
        return
    try:
        value = ast.literal_eval(value)
        if name.startswith("Inline"):
            display.set_figure_formats([value] if isinstance(value, str) else value)
        elif value in ("all", "last", "last_expr", "last_expr_or_assign", "none"):
            interactive.Shell.ast_node_interactivity = value
        else:
            raise ValueError("ast_node_interactivity is all, last, last_expr, last_expr_or_assign or none, not %r" % (value,))
    except (ValueError, TypeError, SyntaxError) as exc:
        raise UsageError("%%config: %s" % exc)


@line_magic("matplotlib", verbatim=True)
def matplotlib(scope, args):
    """%matplotlib inline: figures are shown where they are made, as they always are here."""
    if args.split()[:1] not in ([], ["inline"], ["agg"], ["auto"]):
        _no_effect("%%matplotlib %s: figures are pictures, and it" % args)


@line_magic("load_ext", "reload_ext", verbatim=True)
def load_ext(scope, args):
    """%load_ext MODULE: let a module add its magics, formatters and events (load_ipython_extension())."""
    name = args.strip()
    if name in ("autoreload", "storemagic", "ipython"):  # they are IPython's own
        _no_effect("%load_ext " + name)
        return
    module = importlib.import_module(name)
    if not hasattr(module, "load_ipython_extension"):
        raise UsageError("%%load_ext: the module %s is no extension: it has no load_ipython_extension()" % name)
    module.load_ipython_extension(interactive.shell)


def _ignored(name):
    def run(scope, args):
        _no_effect(("%%%s %s" % (name, args)).rstrip())
    run.__doc__ = "%%%s: accepted for code that was written for notebooks; it has no effect" % name
    line_magic(name, verbatim=True)(run)


for _name in ("unload_ext", "autoreload", "xmode", "colors", "pprint", "automagic", "pylab"):
    _ignored(_name)


def describe(scope, name, detail):
    """`name?` and `name??`: print the documentation of an object or a magic."""
    bare = name.lstrip("%")
    try:
        obj = (CELL if name.startswith("%%") else LINE)[bare] if name != bare else eval(name, scope.names())
    except Exception:
        print("Object `%s` not found." % name)
        return
    about = ["Type: %s" % type(obj).__name__]
    try:
        about.insert(0, "Signature: %s%s" % (bare, inspect.signature(obj)))
    except (TypeError, ValueError):
        about.append("Value: %s" % display.brief(obj, 200))
    about.append("Docstring:\n%s" % (inspect.getdoc(obj) or "<none>"))
    if detail:
        try:
            about.append("Source:\n%s" % inspect.getsource(obj))
        except (TypeError, OSError):
            pass
    print("\n".join(about))
