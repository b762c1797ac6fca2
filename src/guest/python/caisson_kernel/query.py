# SPDX-License-Identifier: Apache-2.0
"""query - Questions of a notebook's editor: completion, inspection, completeness of code, values beside a result.

Theory of operation. A query is an execution whose code is a question (docs/protocol/kernel.md), so everything here may be
interrupted and may run the user's code: attributes are looked up, objects are asked for their attributes. The kernel calls nothing
that the user did not write, except the methods that looking at an object calls by itself. Each answer is a dictionary in the terms
of Jupyter's messages; a question without an answer gets an empty one, never an error.

Positions. Jupyter counts characters as code points, as Python does.

Completion looks at the text before the cursor for one of four things: a string (inside a subscript: keys; elsewhere:
paths), a chain of names (attributes of its value), a name (of the namespace, builtins, keywords, and parameters of the call around it), a
magic. The chain is evaluated only if it is made of names, attributes and constant subscripts.
"""
import ast
import builtins
import codeop
import glob
import inspect
import keyword
import os
import re
import types
import warnings

from . import magics, source, wire

MATCHES_MAX = 2000
DOC_MAX = 20000
_NAME = re.compile(r"[^\W\d]\w*\Z")
_CHAIN = re.compile(r"((?:[^\W\d]\w*)(?:\s*\.\s*[^\W\d]\w*|\[[^\[\]\n]*\])*)\s*\.\s*([^\W\d]\w*)?\Z")
_SUBSCRIPT = re.compile(r"((?:[^\W\d]\w*)(?:\s*\.\s*[^\W\d]\w*|\[[^\[\]\n]*\])*)\[\s*([uUbBrR]{0,2})(['\"])([^'\"\n]*)\Z")
_MODULE = re.compile(r"(?:^|\n|;)\s*(?:import|from)\s+([\w.]*)\Z")
_FROM = re.compile(r"(?:^|\n|;)\s*from\s+([\w.]+)\s+import\s+(?:\(?\s*)(?:[\w\s,]*,\s*)?([^\W\d]\w*)?\Z")
_MAGIC = re.compile(r"(?:^|\n)\s*(%{1,2})(\w*)\Z")
_SHELL = re.compile(r"(?:^|\n)\s*(?:!|%{1,2}(?:cd|run|ls|ll|cat|cp|mv|rm|mkdir|rmdir|writefile|file)\s).*?(\S*)\Z")
_LITERAL = re.compile(r"([bB]?[rR]?|[rRuU])('[^'\n]*'|\"[^\"\n]*\"|[\])}])\s*\.\s*([^\W\d]\w*)?\Z")
_missing = object()


def answer(question, namespace):
    """The dictionary for any question."""
    ask = {"complete": _complete, "inspect": _inspect, "is_complete": _is_complete,
           "expressions": _expressions}.get(question.get("op"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ask(question, namespace) if ask else {}


# ---- values without calling anything --------------------------------------------------------------------------------

def _value(text, namespace):
    """The object that a chain of names stands for, or _missing."""
    try:
        tree = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return _missing
    return _walk(tree, namespace)


def _walk(node, namespace):
    if isinstance(node, ast.Name):
        return namespace.get(node.id, getattr(builtins, node.id, _missing))
    if isinstance(node, ast.Attribute):
        owner = _walk(node.value, namespace)
        return _missing if owner is _missing else _attribute(owner, node.attr)
    if isinstance(node, ast.Subscript):
        owner, key = _walk(node.value, namespace), _constant(node.slice)
        if owner is _missing or key is _missing or not isinstance(owner, (dict, list, tuple, str)) \
                and not hasattr(owner, "_ipython_key_completions_") and not hasattr(owner, "keys"):
            return _missing
        try:
            return owner[key]
        except Exception:
            return _missing
    return _missing


def _constant(node):
    node = getattr(node, "value", node) if type(node).__name__ == "Index" else node  # Python 3.8
    try:
        return ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError):
        return _missing


def _attribute(owner, name):
    try:
        return getattr(owner, name)
    except Exception:
        return _missing


# ---- completion -------------------------------------------------------------------------------------------------------

def _complete(question, namespace):
    code = str(question.get("code") or "")
    cursor = question.get("cursor_pos")
    cursor = len(code) if not isinstance(cursor, int) or not 0 <= cursor <= len(code) else cursor
    start, found = _candidates(code[:cursor], namespace)
    matches = list(dict.fromkeys(text for text, _ in found))[:MATCHES_MAX]
    kinds = dict(found)
    return {"status": "ok", "matches": matches, "cursor_start": start, "cursor_end": cursor,
            "metadata": {"_jupyter_types_experimental": [
                {"start": start, "end": cursor, "text": text, "type": kinds[text]} for text in matches]}}


def _candidates(before, namespace):
    """(position where the word begins, [(text, kind)])"""
    for look in (_magic_names, _from_import, _module_names, _in_fstring, _keys, _paths, _attributes, _literals):
        result = look(before, namespace)
        if result is not None:
            return result
    return _names(before, namespace)


def _magic_names(before, _namespace):
    match = _MAGIC.search(before)
    if not match:
        return None
    mark, word = match.groups()
    magics.load()
    names = magics.CELL if len(mark) == 2 else magics.LINE
    return match.start(1), [(mark + n, "magic") for n in sorted(names) if n.startswith(word)]


def _module_names(before, _namespace):
    match = _MODULE.search(before)
    if not match:
        return None
    package, _, word = match.group(1).rpartition(".")
    return match.start(1), [((package + "." if package else "") + n, "module")
                            for n in _modules(package) if n.startswith(word)]


def _modules(package):
    import pkgutil
    import sys
    if not package:
        names = set(sys.builtin_module_names) | {m.name for m in pkgutil.iter_modules()}
    else:
        module = sys.modules.get(package)
        if module is None:
            try:
                module = __import__(package, fromlist=["x"])
            except BaseException:
                return []
        names = {m.name for m in pkgutil.iter_modules(getattr(module, "__path__", []))}
        inner = [m[len(package) + 1:] for m in list(sys.modules) if m.startswith(package + ".")]
        names |= {m for m in inner if "." not in m}  # os.path is not a file of a package
    return sorted(n for n in names if not n.startswith("_"))


def _from_import(before, _namespace):
    match = _FROM.search(before)
    if not match:
        return None
    word = match.group(2) or ""
    try:
        module = __import__(match.group(1), fromlist=["x"])
    except BaseException:
        return len(before) - len(word), []
    names = set(_dir(module)) | set(_modules(match.group(1)))
    return len(before) - len(word), _public(names, word, lambda n: _kind(_attribute(module, n)))


def _keys(before, namespace):
    match = _SUBSCRIPT.search(before)
    if not match:
        return None
    owner = _value(match.group(1), namespace)
    if owner is _missing:
        return None
    quote, word = match.group(3), match.group(4)
    try:
        ask = getattr(owner, "_ipython_key_completions_", None)
        keys = ask() if ask is not None else owner.keys() if hasattr(owner, "keys") else \
            owner.dtype.names or () if hasattr(owner, "dtype") else ()
        keys = [k for k, _ in zip(keys, range(MATCHES_MAX * 4)) if isinstance(k, str)]
    except Exception:
        return None
    if not keys:
        return None
    return match.start(4), [(k + quote + "]", "property") for k in keys if k.startswith(word) and quote not in k and "\n" not in k]


def _open_string(before):
    """The text of the string around the cursor, or None."""
    line = before.rpartition("\n")[2]
    quote = None
    start = 0
    i = 0
    while i < len(line):
        c = line[i]
        if quote:
            if c == "\\":
                i += 1
            elif c == quote:
                quote = None
        elif c in "'\"":
            quote, start = c, i + 1
        elif c == "#":
            return None
        i += 1
    return line[start:] if quote else None


def _paths(before, _namespace):
    shell = _SHELL.search(before)
    word = _open_string(before) if not shell else shell.group(1)
    if word is None:
        return None
    home = os.path.expanduser(word)
    found = []
    for path in sorted(glob.glob(glob.escape(home) + "*"))[:MATCHES_MAX]:
        text = word + path[len(home):] + ("/" if os.path.isdir(path) else "")
        found.append((text, "path"))
    return len(before) - len(word), found


def _attributes(before, namespace):
    match = _CHAIN.search(before)
    if not match or _is_number(match.group(1)):
        return None
    owner = _value(match.group(1), namespace)
    word = match.group(2) or ""
    if owner is _missing:
        return len(before) - len(word), []
    return len(before) - len(word), _public(_dir(owner), word, lambda n: _kind_of_attribute(owner, n))


def _literals(before, _namespace):
    """Attributes of a string, list, tuple, set or dictionary literal."""
    match = _LITERAL.search(before)
    if not match:
        return None
    end = match.end(2)
    start = match.start() if before[end - 1] in "'\"" else _opening(before, end - 1)
    if start is None or before[end - 1] == "]" and before[:start].rstrip()[-1:] not in tuple("=([{,:+;\n") + ("",):
        return None
    try:
        owner = ast.literal_eval(before[start:end])
    except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
        return None
    word = match.group(3) or ""
    return len(before) - len(word), _public(_dir(owner), word, lambda n: _kind_of_attribute(owner, n))


def _opening(before, end):
    """The position of the bracket that the one at `end` closes, or None."""
    depth = 0
    for i in range(end, max(-1, end - 4000), -1):
        depth += (before[i] in ")]}") - (before[i] in "([{")
        if depth == 0:
            return i
    return None


def _in_fstring(before, namespace):
    """The cursor is in a replacement field, whose content is Python."""
    text = _open_string(before)
    if text is None:
        return None
    prefix = re.search(r"[A-Za-z]*\Z", before[:len(before) - len(text) - 1]).group().lower()
    field = text.replace("{{", "  ").rpartition("{")[2]
    if "f" not in prefix or "{" not in text.replace("{{", "  ") or "}" in field:
        return None
    start, found = _candidates(field, namespace)
    return len(before) - len(field) + start, found


def _is_number(text):
    return text[:1].isdigit()


def _dir(owner):
    try:
        names = dir(owner)
    except Exception:
        names = []
    return [n for n in names if isinstance(n, str) and (n.isidentifier() or _NAME.match(n))]


def _kind_of_attribute(owner, name):
    """Look up an attribute without running a property."""
    try:
        static = inspect.getattr_static(owner, name)
    except Exception:
        return "instance"
    return "property" if isinstance(static, property) else _kind(static)


def _kind(value):
    if isinstance(value, type):
        return "class"
    if isinstance(value, types.ModuleType):
        return "module"
    return "function" if callable(value) or isinstance(value, (staticmethod, classmethod)) else "instance"


def _public(names, word, kind):
    """The names that fit; those with underscores only if the text begins with one."""
    chosen = sorted((n for n in set(names) if n.startswith(word) and (word.startswith("_") or not n.startswith("_"))),
                    key=lambda n: (n.startswith("__"), n.startswith("_"), n))
    return [(n, kind(n)) for n in chosen[:MATCHES_MAX]]


def _names(before, namespace):
    match = re.search(r"[^\W\d]\w*\Z", before)
    word = match.group() if match else ""
    found = []
    if word or before.rstrip().endswith(("(", ",")):
        found += [(n + "=", "param") for n in _parameters(before[:len(before) - len(word)], namespace) if n.startswith(word)]
    if word:
        found += _public(namespace, word, lambda n: _kind(namespace.get(n)))
        found += _public(dir(builtins), word, lambda n: _kind(getattr(builtins, n)))
        found += [(k, "keyword") for k in keyword.kwlist if k.startswith(word)]
        found += [("%" + n, "magic") for n in sorted(magics.LINE) if n.startswith(word) and before == word]
    return len(before) - len(word), found


def _around(before):
    """The text of the called expression, if the cursor is among its arguments."""
    depth = 0
    for i in range(len(before) - 1, max(-1, len(before) - 4000), -1):
        c = before[i]
        if c in ")]}":
            depth += 1
        elif c in "([{":
            if depth == 0:
                return before[:i] if c == "(" else None
            depth -= 1
    return None


def _callee(before, namespace):
    head = _around(before)
    match = head and re.search(r"((?:[^\W\d]\w*)(?:\.[^\W\d]\w*)*)\s*\Z", head)
    return _value(match.group(1), namespace) if match else _missing


def _parameters(before, namespace):
    function = _callee(before, namespace)
    if function is _missing or not callable(function):
        return []
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return []
    return [p.name for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)]


# ---- inspection ---------------------------------------------------------------------------------------------------------

def _word_at(code, cursor):
    """The chain of names around the cursor."""
    end = cursor
    while end < len(code) and (code[end].isalnum() or code[end] == "_"):
        end += 1
    match = re.search(r"(?:[^\W\d]\w*)(?:\s*\.\s*[^\W\d]\w*)*\Z", code[:end])
    return match.group() if match else ""


def _inspect(question, namespace):
    code = str(question.get("code") or "")
    cursor = question.get("cursor_pos")
    cursor = len(code) if not isinstance(cursor, int) or not 0 <= cursor <= len(code) else cursor
    word = _word_at(code, cursor)
    value = _value(word, namespace) if word and not keyword.iskeyword(word) else _missing
    if value is _missing:
        value = _callee(code[:cursor], namespace)
        word = ""
    if value is _missing:
        return {"status": "ok", "found": False, "data": {}, "metadata": {}}
    text = wire.cut(describe(value, word, question.get("detail_level") == 1), DOC_MAX)
    return {"status": "ok", "found": True, "data": {"text/plain": text}, "metadata": {}}


def _try(function, *args):
    try:
        return function(*args)
    except Exception:
        return None


def describe(value, name="", source_too=False):
    """The description of an object for a person, in IPython's order."""
    lines = []
    signature = _try(inspect.signature, value) if callable(value) else None
    if signature is not None:
        lines.append("Signature: %s%s" % (name or getattr(value, "__name__", ""), signature))
    lines.append("Type:      %s" % type(value).__name__)
    if not callable(value) and not isinstance(value, types.ModuleType):
        text = _try(repr, value)
        if text is not None:
            lines.append("String form: %s" % wire.cut(text, 400))
        length = _try(len, value)
        if length is not None:
            lines.append("Length:    %d" % length)
    file = _try(inspect.getfile, value) if inspect.isclass(value) or inspect.isroutine(value) or inspect.ismodule(value) else None
    if file and not file.startswith("<"):
        lines.append("File:      %s" % file)
    text = _try(inspect.getsource, value) if source_too else None
    if text:
        lines.append("Source:\n%s" % text)
    else:
        doc = _try(inspect.getdoc, value)
        lines.append("Docstring:\n%s" % doc if doc else "Docstring: <no docstring>")
    return "\n".join(lines)


# ---- completeness of code ------------------------------------------------------------------------------------------------

def _is_complete(question, _namespace):
    code = str(question.get("code") or "")
    try:
        source.compile_cell(code, "<query>")  # top-level await and magics are code here
    except (SyntaxError, OverflowError, ValueError):
        pass
    except Exception:
        return {"status": "unknown"}
    else:
        return {"status": "incomplete", "indent": _indent(code)} if _block_is_open(code) else {"status": "complete"}
    try:
        more = codeop.compile_command(magics.transform(code), "<query>", "exec") is None
    except (SyntaxError, OverflowError, ValueError):
        more = False
    return {"status": "incomplete", "indent": _indent(code)} if more else {"status": "invalid"}


def _block_is_open(code):
    """A block whose last line is indented continues until an empty line."""
    last = code.rpartition("\n")[2]
    return last[:1] in (" ", "\t") and bool(last.strip())


def _indent(code):
    last = code.rstrip("\n").rpartition("\n")[2]
    blank = last[:len(last) - len(last.lstrip())]
    return blank + "    " if last.rstrip().endswith(":") else blank


# ---- values beside a result -------------------------------------------------------------------------------------------------

def _expressions(question, namespace):
    from . import display, traceback_
    values = {}
    for name, text in (question.get("expressions") or {}).items():
        try:
            data, metadata = display.bundle(eval(compile(str(text), "<expression>", "eval"), namespace))
            values[str(name)] = {"status": "ok", "data": data, "metadata": metadata}
        except Exception as exc:
            kind, value, lines = traceback_.describe(exc)
            values[str(name)] = {"status": "error", "ename": kind, "evalue": value, "traceback": lines}
    return values
