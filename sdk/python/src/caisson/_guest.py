# SPDX-License-Identifier: Apache-2.0
"""_guest.py - The code that an executor loads into the interpreter of its sandbox: the files of _values.py, and a few functions.

All of it is one expression, which changes nothing when it is evaluated again. It adds only the names base64 and pickle to the user's
namespace; code that prints RESULT_PICKLE: relies on them.
"""

from __future__ import annotations

import functools
from typing import Any

from . import _values

MIME = "application/vnd.caisson.value+json"
MODULE = "_caisson_values"

_GUEST = """
import builtins, os, sys, tempfile, types

def load(name, text):
    module = types.ModuleType(__name__ + "." + name)
    module.__package__ = __name__
    sys.modules[module.__name__] = module
    exec(compile(text, "<%s>" % module.__name__, "exec"), module.__dict__)
    globals()[name] = module

class Said:
    def __init__(self, **members):
        self.members = members
    def __repr__(self):
        return "<value>"
    def _repr_mimebundle_(self, include=None, exclude=None):
        return {MIME: self.members}

def say(find, limit, inline):
    try:
        text = _encode.encode(find(), limit)
    except _encode.NotReturnable as exc:
        return Said(refused=[exc.where, exc.kind, exc.why, exc.hint])
    except Exception as exc:
        return Said(refused=["value", type(exc).__name__, str(exc)[:2000], ""])
    if len(text) <= inline:
        return Said(text=text)
    fd, path = tempfile.mkstemp(prefix=".value-", dir="/tmp")
    with os.fdopen(fd, "w") as f:
        f.write(text)
    return Said(file=path, size=len(text))

def last():
    return builtins.get_ipython().last_execution_result.result

def take(path):
    with open(path) as f:
        text = f.read()
    os.unlink(path)
    return text

def hear(text, *limits):
    return _values.decode(text, (), values.Limits(*limits))
"""


@functools.lru_cache(maxsize=1)
def install_expression() -> str:
    loads = ", ".join("m.load(%r, %r)" % pair for pair in _values.sources().items())
    return (
        "(lambda sys, ns, m: %(name)r in sys.modules or [sys.modules.__setitem__(%(name)r, m),"
        " m.__dict__.update(MIME=%(mime)r, __path__=[]), exec(%(guest)r, m.__dict__), %(loads)s,"
        " ns.setdefault('base64', __import__('base64')), ns.setdefault('pickle', __import__('pickle'))] and None)"
        "(__import__('sys'), __import__('__main__').__dict__, type(__import__('sys'))(%(name)r))"
        % {"name": MODULE, "mime": MIME, "guest": _GUEST, "loads": loads}
    )


def unknown(said: Any) -> bool:
    """Whether the interpreter, asked for a value, does not have our functions."""
    return isinstance(said, dict) and said.get("ename") == "KeyError" and MODULE in str(said.get("evalue"))
