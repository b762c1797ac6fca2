# SPDX-License-Identifier: Apache-2.0
"""memory - mcp.runtime: values by key, and functions, that outlive the owner's sandboxes.

The host keeps them, per owner and project, and stores each change as a whole or not at all; a cell cannot reach another owner's. In a
key, every character except letters, digits, "_" and "-" becomes "_": "my plan" and "my_plan" are the same entry. If the key as it was
last written differs, it is kept beside the metadata. Files under /projects are a view for other programs in the cell: they are written
when something is saved or loaded here, and never read back.
"""
import ast
import builtins
import datetime
import inspect
import json
import os
import re
import sys
import textwrap
import time
import types

from ..source import remember
from . import rpc
from .rpc import MCPError

PROJECTS = "/projects"
_KEY_MAX = 100
_WRITTEN = ".key"  # the member of the metadata with the key as it was written
_WRITTEN_MAX = 300
_ATTEMPTS = 20
_PATIENCE_SECONDS = 30


def _ask(op, **fields):
    """Wait: the host limits how much a sandbox saves and reads per second."""
    end = time.monotonic() + _PATIENCE_SECONDS
    while True:
        try:
            return rpc.ask(op, **dict(fields))
        except MCPError as exc:
            if exc.code != "rate" or time.monotonic() > end:
                raise
        time.sleep(0.1)


def _key(key):
    key = re.sub(r"[^A-Za-z0-9_-]", "_", str(key).strip())[:_KEY_MAX]
    if not key:
        raise ValueError("a memory key cannot be empty")
    return key


def _time(milliseconds):
    if not isinstance(milliseconds, (int, float)):
        return None
    return datetime.datetime.fromtimestamp(milliseconds / 1000, datetime.timezone.utc).isoformat(timespec="milliseconds")


def _parse(text, otherwise):
    try:
        return json.loads(text)
    except (TypeError, ValueError):
        return otherwise


def _metadata(entry):
    """The user's metadata, and the key as it was written."""
    metadata, key = _parse(entry.get("metadata"), {}), entry.get("key")
    written = metadata.get(_WRITTEN) if isinstance(metadata, dict) else None
    if isinstance(written, str) and _key(written or "_") == key:
        key = written
        del metadata[_WRITTEN]
    return metadata, key


def _info(key, entry):
    metadata, written = _metadata(entry)
    return {"key": written or key, "metadata": metadata,
            "created_at": _time(entry.get("created_at")), "updated_at": _time(entry.get("updated_at"))}


def _view(path, text):
    """Write or remove a file below /projects. Best effort: an image without the directory has no view."""
    path = os.path.join(PROJECTS, path)
    try:
        if text is None:
            os.unlink(path)
            return
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path + ".new", "w", encoding="utf-8", errors="replace") as f:
            f.write(text)
        os.replace(path + ".new", path)
    except OSError:
        pass


def _view_memory(key, info):
    _view("memory/%s.json" % key, None if info is None else json.dumps(info, indent=2, ensure_ascii=False))


def _save(key, value, metadata, **more):
    what = "memory %r" % key
    if metadata is not None and not isinstance(metadata, dict):
        raise TypeError("metadata must be a dictionary, not %s" % type(metadata).__name__)
    written, key = str(key), _key(key)
    kept = dict(metadata or {})
    if written != key and len(written) <= _WRITTEN_MAX:
        kept[_WRITTEN] = written
    entry = _ask("memory.save", key=key, value=rpc.text(value, what), metadata=rpc.text(kept, what + ": metadata"), **more)
    _view_memory(key, dict(_info(key, entry), key=written, value=value, metadata=metadata or {}))


def save_memory(key, value, *, metadata=None):
    """Save a value (any JSON value) under a key, for every later sandbox of yours in this project."""
    _save(key, value, metadata)
    return "Memory %r saved." % str(key)


def _load(key):
    entry = _ask("memory.load", key=_key(key)) or {}
    return entry if entry.get("found", True) else None


def load_memory(key, *, default=None):
    """The saved value, or the default."""
    entry = _load(key)
    if entry is None:
        return default
    value = _parse(entry.get("value"), default)
    _view_memory(_key(key), dict(_info(_key(key), entry), value=value))
    return value


def delete_memory(key):
    """Delete an entry."""
    gone = (_ask("memory.delete", key=_key(key)) or {}).get("deleted")
    _view_memory(_key(key), None)
    return "Memory %r %s." % (str(key), "deleted" if gone else "not found")


def list_memories():
    """All entries: dictionaries with key, metadata, created_at and updated_at."""
    return [_info(None, entry) for entry in (_ask("memory.list") or {}).get("memories") or ()]


def update_memory(key, updater):
    """Replace a value by updater(value), or updater(None) if it is missing; returns the new value. If another sandbox has changed the
    value in the meantime, the updater is called again with the present value."""
    for _ in range(_ATTEMPTS):
        entry = _load(key)
        value = updater(_parse(entry.get("value"), None) if entry else None)
        try:
            _save(key, value, _metadata(entry)[0] if entry else None,
                  revision=entry.get("revision", 0) if entry else 0)
            return value
        except MCPError as exc:
            if exc.code != "conflict":
                raise
    raise MCPError("other sandboxes change the memory %r too often" % str(key), code="conflict")


def memory_exists(key):
    """Whether there is an entry with this key."""
    return _load(key) is not None


def get_memory_info(key):
    """Value, metadata, created_at and updated_at; None if there is no such key."""
    entry = _load(key)
    return dict(_info(_key(key), entry), value=_parse(entry.get("value"), None)) if entry else None


# ---- functions

namespace = {}  # of the kernel; codemode.enter() sets it


def _is_ours(decorator):
    return getattr(decorator, "id", getattr(decorator, "attr", None)) == "save_tool"


def _source(func):
    """The source without @save_tool, and whether it had that."""
    if not inspect.isfunction(func) or func.__name__ == "<lambda>":
        raise ValueError("save_tool requires a function that was defined with def")
    try:
        source = textwrap.dedent(inspect.getsource(func))
    except (OSError, TypeError):
        raise ValueError("save_tool: the source of %s is not known here" % func.__name__) from None
    tree = ast.parse(source).body[0]
    lines = source.split("\n")
    ours = [decorator for decorator in tree.decorator_list if _is_ours(decorator)]
    for decorator in ours:  # loading the function must not save it again
        lines[decorator.lineno - 1:decorator.end_lineno] = [""] * (decorator.end_lineno - decorator.lineno + 1)
    return "\n".join(lines).strip("\n") + "\n", bool(ours)


def _define(name, source):
    """A function that fails is reported."""
    file = "%s/tools/%s.py" % (PROJECTS, name)
    try:
        code = compile(source, file, "exec")
        remember(file, source)
        exec(code, namespace)
    except Exception as exc:
        print("saved tool %r was not loaded: %s: %s" % (name, type(exc).__name__, exc), file=sys.stderr)


def _view_tools(tools):
    _view("user_tools.py", "\n\n".join(str(tool["source"]) for tool in tools if tool["language"] == "python"))


def save_tool(func):
    """Save a function: it is defined here, and in every later sandbox of yours in this project. The modules that it uses are imported
    there too. As a decorator, @save_tool leaves the function as it is."""
    source, decorates = _source(func)
    used = inspect.getclosurevars(func)
    if used.nonlocals:
        raise ValueError("save_tool: %s uses variables of the function around it: %s" % (
            func.__name__, ", ".join(sorted(used.nonlocals))))
    imports = ["import %s as %s\n" % (value.__name__, name) for name, value in sorted(used.globals.items())
               if isinstance(value, types.ModuleType) and value.__name__ != "mcp"]
    outside = sorted(name for name, value in used.globals.items() if name != func.__name__ and not isinstance(value, types.ModuleType)
                     and not name.startswith("mcp_") and name not in NAMES and not hasattr(builtins, name))
    source = "".join(imports) + source
    _ask("tool.save", name=func.__name__, source=source)
    if func.__name__ not in namespace:  # it was defined in a function or a module
        _define(func.__name__, source)
    _view_tools(list_saved_tools())
    note = " It uses %s from outside of the function, which must exist there too." % ", ".join(outside) if outside else ""
    said = "Tool %r saved. It is available in this sandbox and in future ones.%s" % (func.__name__, note)
    if decorates:
        print(said)
    return func if decorates else said


def delete_tool(name):
    """Delete a saved function."""
    gone = (_ask("tool.delete", name=getattr(name, "__name__", None) or str(name)) or {}).get("deleted")
    _view_tools(list_saved_tools())
    return "Tool %r %s." % (str(name), "deleted" if gone else "not found")


def _language(tool):
    """Functions of javascript are kept in the same place; their first line shows it (src/guest/javascript/runtime.js)."""
    return "javascript" if str(tool.get("source")).startswith("// javascript\n") else "python"


def list_saved_tools():
    """The saved functions: dictionaries with name, language, source, created_at and updated_at."""
    return [{"name": t.get("name"), "language": _language(t), "source": t.get("source"), "created_at": _time(t.get("created_at")),
             "updated_at": _time(t.get("updated_at"))} for t in (_ask("tool.list") or {}).get("tools") or ()]


def load_tools():
    """Define the saved functions. If one fails, the others are still defined."""
    try:
        tools = [tool for tool in list_saved_tools() if tool["language"] == "python"]
    except MCPError as exc:
        print("saved tools could not be loaded: %s" % exc, file=sys.stderr)
        return
    for tool in tools:
        _define(str(tool["name"]), str(tool["source"]))
    _view_tools(tools)


NAMES = ("save_memory", "load_memory", "delete_memory", "list_memories", "update_memory", "memory_exists", "get_memory_info",
         "save_tool", "delete_tool", "list_saved_tools")
