# SPDX-License-Identifier: Apache-2.0
"""_values.py - Values to text (_encode.py) and back: the table of all kinds, and the files that a sandbox needs for them."""

from __future__ import annotations

import inspect
import sys
from typing import Any, Dict, Iterable

from . import _arrays, _encode, _reader, values
from ._reader import Kind, Reader, parse
from .values import BadValue, Limits

KINDS: Dict[str, Kind] = {**_reader.KINDS, **_arrays.KINDS}
DEFAULT = Limits()


def decode(text: str, classes: Iterable[type] = (), limits: Limits = DEFAULT) -> Any:
    """The value of a text of _encode.py; raises BadValue for any other text."""
    try:
        return Reader(limits, classes, KINDS).value(parse(text, limits))
    except RecursionError:
        raise BadValue("the text is nested too deep") from None


def sources() -> Dict[str, str]:
    """The text of these files, each after the files that it needs."""
    modules = (_encode, values, _reader, _arrays, sys.modules[__name__])
    return {m.__name__.rpartition(".")[2]: inspect.getsource(m) for m in modules}
