# SPDX-License-Identifier: Apache-2.0
"""_arrays.py - Arrays and data frames out of text that may be forged: numbers by a list of types, shapes that match their bytes.

numpy and pandas are used where they are installed; values.py has the classes that replace their objects elsewhere. numpy never gets a
type that holds anything but numbers, and pandas never gets a type that is not in its list.
"""

from __future__ import annotations

import math
import re
from typing import Any, Dict, List, Tuple

from ._reader import TAG, Kind, Reader, get, hashed, read_bytes
from .values import Array, BadValue, Frame, Series, nest, plain_list

EMPTY_MAX = 1_000_000
FRAME_COST = 200  # the number of values that take as long to make
_DTYPE = re.compile(r"\|(?:b1|[iu]1)|<(?:[iu][248]|f[248]|c8|c16|[mM]8\[(?:Y|M|W|D|h|m|s|ms|us|ns)\])")
_EXTENSIONS = frozenset(
    ("boolean", "string", "category", "Int8", "Int16", "Int32", "Int64", "UInt8", "UInt16", "UInt32", "UInt64", "Float32", "Float64")
)


def _module(name: str) -> Any:
    """numpy or pandas, or None. Only called with these two names."""
    try:
        return __import__(name)
    except ImportError:
        return None


def _shape(node: Dict[str, Any]) -> Tuple[int, ...]:
    shape = get(node, "shape", list)
    if len(shape) > 32 or any(type(n) is not int or not 0 <= n < 1 << 40 for n in shape):
        raise BadValue("an array must have at most 32 dimensions, each with a size")
    if 0 in shape and math.prod(n for n in shape if n) > EMPTY_MAX:  # printing it would take that many empty lists
        raise BadValue("an empty array has too large a shape")
    return tuple(shape)


def _ndarray(r: Reader, node: Dict[str, Any]) -> Any:
    dtype, shape = get(node, "dtype", str), _shape(node)
    count = math.prod(shape)
    np = _module("numpy")
    if dtype in ("object", "str", "bytes"):
        items = [r.value(v) for v in get(node, "items", list)]
        if len(items) != count or (dtype != "object" and any(type(v) is not {"str": str, "bytes": bytes}[dtype] for v in items)):
            raise BadValue("an array of %s has items of another type" % dtype)
        return _items_array(np, items, shape, dtype)
    if not _DTYPE.fullmatch(dtype):
        raise BadValue("unknown array type %.40r" % dtype)
    data = read_bytes(r, node)
    if count * int(re.sub(r"\[.*", "", dtype[2:])) != len(data) or (dtype == "|b1" and data.translate(None, b"\0\1")):
        raise BadValue("the size of an array does not match its shape and type")
    if np is None:
        array = Array(dtype, shape, data)
        return array if node.get("scalar") is not True else array.flat()[0]
    try:
        made = np.frombuffer(bytearray(data), dtype=np.dtype(dtype)).reshape(shape)
    except (ValueError, TypeError, OverflowError, MemoryError) as exc:
        raise BadValue("no array: %s" % exc) from None
    return made[()] if node.get("scalar") is True and not shape else made


def _items_array(np: Any, items: List[Any], shape: Tuple[int, ...], dtype: str) -> Any:
    if np is None:
        return nest(iter(items), shape) if math.prod(shape) else []
    if dtype != "object" and sum(map(len, items)) * 8 + 1024 < len(items) * max(map(len, items), default=0):
        dtype = "object"  # numpy stores every text in the size of the longest one
    made = np.empty(len(items), dtype=object)
    made[:] = items
    try:
        return (made if dtype == "object" else made.astype(dtype)).reshape(shape)
    except (ValueError, TypeError, OverflowError, MemoryError) as exc:
        raise BadValue("no array: %s" % exc) from None


def _column(r: Reader, node: Any, pd: Any) -> Any:
    kind = get(node, "as", str)
    if kind in ("array", "utc"):
        inner = get(node, "v", dict)
        if inner.get(TAG) != "ndarray" or len(_shape(inner)) != 1:
            raise BadValue("a column must be an array of one dimension")
        made = r.value(inner)
        return pd.Series(made).dt.tz_localize("UTC") if pd is not None and kind == "utc" else made
    if kind not in ("object", "text") and kind not in _EXTENSIONS:
        raise BadValue("unknown column type %.40r" % kind)
    items = [r.value(v) for v in get(node, "items", list)]
    if pd is None:
        return items
    if kind == "category":
        hashed(items)
        return pd.Categorical(items)
    if kind == "text":  # this pandas's default type for text
        return pd.Series(items, dtype=pd.Series(["text"]).dtype)
    return pd.Series(items, dtype=object if kind == "object" else kind)


def _index(r: Reader, node: Any, pd: Any) -> Any:
    names = [_label(r, n) for n in get(node, "names", list)]
    if "range" in node:
        parts = get(node, "range", list)
        if len(parts) != 3 or any(type(n) is not int for n in parts) or not parts[2]:
            raise BadValue("an index must have a start, a stop and a step")
        r.charge(len(range(*parts)) if abs(parts[0]) + abs(parts[1]) < 1 << 62 else 1 << 62)
        return list(range(*parts)) if pd is None else pd.RangeIndex(*parts, name=names[0] if names else None)
    if "tuples" in node:
        tuples = _labels(r, get(node, "tuples", list))
        if not all(type(t) is tuple and len(t) == len(names) for t in tuples) or not names:
            raise BadValue("an index of tuples must have one name for each part")
        return tuples if pd is None else pd.MultiIndex.from_tuples(tuples, names=names)
    column = _column(r, node.get("v"), pd)
    return plain_list(column) if pd is None else pd.Index(column, name=names[0] if names else None)


def _label(r: Reader, node: Any) -> Any:
    return _labels(r, [node])[0]


def _labels(r: Reader, nodes: List[Any]) -> List[Any]:
    return hashed([r.value(n) for n in nodes])


def _careful(make: Kind) -> Kind:
    """Turn the many exceptions by which pandas reports invalid values into BadValue."""

    def read(r: Reader, node: Dict[str, Any]) -> Any:
        r.charge(FRAME_COST)
        try:
            return make(r, node)
        except BadValue:
            raise
        except Exception as exc:
            raise BadValue("no %s: %.200s" % (node[TAG], exc)) from None

    return read


def _frame(r: Reader, node: Dict[str, Any]) -> Any:
    pd = _module("pandas")
    columns, names = _labels(r, get(node, "columns", list)), [_label(r, n) for n in get(node, "names", list)]
    index, data = _index(r, node.get("index"), pd), [_column(r, c, pd) for c in get(node, "v", list)]
    if len(columns) != len(data) or any(len(c) != len(index) for c in data):
        raise BadValue("the columns of a frame are not as long as its index")
    if pd is None:
        return Frame(columns, index, data)
    made = pd.DataFrame({i: getattr(c, "array", c) for i, c in enumerate(data)}, index=index)
    if len(names) > 1 and all(type(c) is tuple and len(c) == len(names) for c in columns):
        made.columns = pd.MultiIndex.from_tuples(columns, names=names)
    else:
        made.columns = pd.Index(columns, name=names[0] if names else None, tupleize_cols=False)
    return made


def _series(r: Reader, node: Dict[str, Any]) -> Any:
    pd = _module("pandas")
    name, index, data = _label(r, node.get("name")), _index(r, node.get("index"), pd), _column(r, node.get("v"), pd)
    if len(index) != len(data):
        raise BadValue("a series is not as long as its index")
    if pd is None:
        return Series(name, index, data)
    return pd.Series(getattr(data, "array", data), index=index, name=name)


def _nat(r: Reader, node: Dict[str, Any]) -> Any:
    pd = _module("pandas")
    return None if pd is None else pd.NaT


KINDS: Dict[str, Kind] = {"ndarray": _ndarray, "series": _careful(_series), "frame": _careful(_frame), "nat": _nat}
