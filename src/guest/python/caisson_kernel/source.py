# SPDX-License-Identifier: Apache-2.0
"""source - The text of an execution as code objects, and its lines for tracebacks.

Plain Python is compiled unchanged. Only text that does not compile goes through magics.transform(), which handles `!cmd`,
`%pip` and the like, and is compiled again; so a valid program never changes its meaning. Top-level `await` is allowed.
When the last statement is an expression it becomes a code object of its own, whose value is the result of the execution,
unless a `;` follows it. `from __future__` imports hold for later executions, as at a prompt.

Every execution has a pseudo file name. Its text stays in linecache, where traceback, warnings, inspect.getsource() and
pdb look for it, and in a store of our own, which restores lines that user code removed from linecache.
"""
import __future__
import ast
import collections
import linecache

try:
    from . import magics
except ImportError:
    magics = None

CO_COROUTINE = 0x80
_STORE_MAX_CHARS = 32 << 20
_FUTURE_MASK = 0
for _name in __future__.all_feature_names:
    _FUTURE_MASK |= getattr(__future__, _name).compiler_flag

_AWAIT = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
_futures = 0
_store = collections.OrderedDict()  # name -> linecache's entry
_stored_chars = 0


class Cell:
    """The code to run, in order; the value of the last one is the result if `has_value`, and those of `shown` are displayed."""
    __slots__ = ("codes", "has_value", "is_async", "shown")

    def __init__(self, codes, has_value, shown=()):
        self.codes = codes
        self.has_value = has_value
        self.shown = shown
        self.is_async = any(code.co_flags & CO_COROUTINE for code in codes)


def _lines(text):
    """The lines as the compiler counts them (str.splitlines() has more line ends), each with its newline."""
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    return [line + "\n" for line in lines]


def remember(name, text):
    """Register the lines of `name`. If there are very many texts, the oldest are dropped."""
    global _stored_chars
    old = _store.pop(name, None)
    if old is not None:
        _stored_chars -= old[0]
    entry = (len(text), None, _lines(text), name)
    _store[name] = linecache.cache[name] = entry
    _stored_chars += len(text)
    while _stored_chars > _STORE_MAX_CHARS and len(_store) > 1:
        forgotten, entry = _store.popitem(last=False)
        _stored_chars -= entry[0]
        linecache.cache.pop(forgotten, None)


def recall():
    """Restore lines that user code removed from linecache, before lines are shown."""
    for name, entry in _store.items():
        if linecache.cache.get(name) is not entry:
            linecache.cache[name] = entry


def line(name, number):
    """A line of an execution, or None."""
    entry = _store.get(name)
    if entry is None or number is None or not 0 < number <= len(entry[2]):
        return None
    return entry[2][number - 1]


def forget():
    """Drop all texts."""
    global _futures, _stored_chars
    for name in _store:
        linecache.cache.pop(name, None)
    _store.clear()
    _futures = _stored_chars = 0


def _silenced(text, last):
    """Whether a `;` follows the last expression. Columns of the syntax tree count bytes of UTF-8."""
    if ";" not in text:
        return False
    rest = _lines(text)[last.end_lineno - 1].encode("utf-8")[last.end_col_offset:]
    return rest.lstrip().startswith(b";")


def _add_assigned(body):
    """After an assignment to a name, its value is an expression."""
    last = body[-1] if body else None
    target = last.targets[0] if isinstance(last, ast.Assign) and len(last.targets) == 1 else getattr(last, "target", None)
    if isinstance(last, (ast.Assign, ast.AnnAssign, ast.AugAssign)) and isinstance(target, ast.Name):
        value = ast.copy_location(ast.Name(target.id, ast.Load()), last)
        body.append(ast.copy_location(ast.Expr(value), last))


def _split(body, shows):
    """The statements in groups: the expressions whose values are wanted stand alone."""
    groups = [[]]
    for i, node in enumerate(body):
        alone = isinstance(node, ast.Expr) and (shows == "all" or shows != "none" and i == len(body) - 1)
        if alone:
            groups += [node, []]
        else:
            groups[-1].append(node)
    return [g for g in groups if g != []]


def _compile(text, name, shows="last_expr"):
    global _futures
    flags = _AWAIT | _futures
    tree = compile(text, name, "exec", flags | ast.PyCF_ONLY_AST, True)
    if shows == "last_expr_or_assign":
        _add_assigned(tree.body)
    codes, shown, has_value = [], set(), False
    for group in _split(tree.body, shows):
        has_value = isinstance(group, ast.Expr) and not _silenced(text, group)
        if has_value:
            shown.add(len(codes))
        if isinstance(group, ast.Expr):
            codes.append(compile(ast.Expression(group.value), name, "eval", flags, True))
        else:
            tree.body = group
            codes.append(compile(tree, name, "exec", flags, True))
            flags |= codes[-1].co_flags & _FUTURE_MASK
    _futures = flags & _FUTURE_MASK
    return Cell(codes, has_value, shown - {len(codes) - 1})


def _flush_left(text):
    """The text without the indentation of its first line, as pasted from the middle of a program."""
    lines = text.split("\n")
    first = next((line for line in lines if line.strip() and not line.lstrip().startswith("#")), "")
    blank = first[:len(first) - len(first.lstrip())]
    if not blank:
        return text
    return "\n".join(line[len(blank):] if line.startswith(blank) else line for line in lines)


def compile_cell(text, name, shows="last_expr"):
    """The Cell of a text; raises the exceptions of compile() (SyntaxError, ValueError, RecursionError, ...). shows: which
    expressions have values (last_expr, all, none, last_expr_or_assign), in IPython's words."""
    remember(name, text)
    try:
        return _compile(text, name, shows)
    except SyntaxError:
        left = _flush_left(text)
        changed = left if magics is None else magics.transform(left)
        if changed == text:
            raise
    if left != text:
        text = left
        remember(name, text)
    # The user's own lines are shown if they are at the same places.
    if changed.count("\n") != text.count("\n"):
        remember(name, changed)
    return _compile(changed, name, shows)
