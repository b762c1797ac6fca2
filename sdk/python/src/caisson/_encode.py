# SPDX-License-Identifier: Apache-2.0
"""_encode.py - Python values as JSON text, with tags for values that JSON cannot represent.

Theory of operation. Values that JSON can represent are written as JSON. Every other value is an object with the key "$", the name of its
kind, and only the kinds below exist: a text cannot name a class, a module or a function that the reader would look up (_reader.py). A
dictionary that has a key "$" of its own, or a key that is not a string, is a list of pairs under the kind "dict".

    int  float  complex  decimal  fraction  bytes  bytearray  tuple  set  frozenset  dict  range  datetime  date  time  timedelta
    uuid  path  enum  record (dataclasses, named tuples)  ndarray  series  frame  nat

Subclasses of int, float, str, list, dict and set are sent as those (Counter, defaultdict, numpy.float64). A value without a kind is an
error that names its place in the value and the remedy; so are cycles, and depth and size beyond the bounds. The encoder never imports
numpy and pandas: their values cannot exist unless the code imported them.

Runs on both sides: this file's text is sent into the sandbox, which has Python 3.8 or later. So it has only the standard library.
"""

from __future__ import annotations

import base64
import dataclasses
import datetime
import decimal
import enum
import fractions
import json
import math
import pathlib
import sys
import uuid
from typing import Any, Callable, Dict, List, Optional, Tuple

TAG = "$"
DEPTH_MAX = 64
INT_SAFE = 1 << 53
INT_BITS_MAX = 1 << 20
EXTENSIONS = (
    "boolean",
    "string",
    "category",
    "Int8",
    "Int16",
    "Int32",
    "Int64",
    "UInt8",
    "UInt16",
    "UInt32",
    "UInt64",
    "Float32",
    "Float64",
)
HINTS = {
    "generator": "wrap it in list()",
    "map": "wrap it in list()",
    "filter": "wrap it in list()",
    "zip": "wrap it in list()",
    "dict_keys": "wrap it in list()",
    "dict_values": "wrap it in list()",
    "dict_items": "wrap it in list()",
    "deque": "wrap it in list()",
    "Figure": "figures come as displays",
    "MaskedArray": "use its filled()",
    "Image": "save it to a file and read that",
    "coroutine": "await it",
    "Tensor": "use its numpy()",
}


class NotReturnable(Exception):
    """A value, or a part of it, that cannot be written as JSON."""

    def __init__(self, where: str, kind: str, why: str, hint: str = "") -> None:
        super().__init__("%s (%s): %s%s" % (where, kind, why, "; " + hint if hint else ""))
        self.where, self.kind, self.why, self.hint = where, kind, why, hint


def _name(cls: type) -> str:
    module = getattr(cls, "__module__", "")
    name = getattr(cls, "__qualname__", cls.__name__)
    return name if module in ("builtins", "", None) else "%s.%s" % (module, name)


class Encoder:
    """Encodes one value. limit: bytes of text at most, roughly; a much larger value is refused before its text is built."""

    def __init__(self, limit: int, what: str = "value") -> None:
        self._limit, self._left = limit, limit
        self._path: List[Any] = [what]  # places as they are: they become text only for an error message
        self._open: Dict[int, bool] = {}

    def text(self, value: Any) -> str:
        try:
            text = json.dumps(self.node(value), separators=(",", ":"), allow_nan=False)
        except RecursionError:
            raise self._refuse(value, "it is too deep for the remaining stack") from None
        if len(text) > self._limit:
            self._left = -1
            self._spend(value, 0)
        return text

    # -- bounds --

    def _refuse(self, value: Any, why: str, hint: str = "") -> NotReturnable:
        where = "".join(p if isinstance(p, str) else "[%.60r]" % (p[0] if isinstance(p, tuple) else p,) for p in self._path)
        return NotReturnable(where, _name(type(value)), why, hint)

    def _spend(self, value: Any, size: int) -> None:
        self._left -= size
        if self._left < 0:
            raise self._refuse(value, "it is larger than %d bytes as JSON" % self._limit, "return less, or write a file and download it")

    def _inside(self, value: Any, build: Callable[[], Any]) -> Any:
        """The text of a container by build(); refuses a container that contains itself."""
        if id(value) in self._open:
            raise self._refuse(value, "it contains itself")
        if len(self._open) >= DEPTH_MAX:
            raise self._refuse(value, "it is more than %d levels deep" % DEPTH_MAX)
        self._open[id(value)] = True
        try:
            return build()
        finally:
            del self._open[id(value)]

    def _at(self, place: Any, value: Any) -> Any:
        """place: text, an index, or a key in a tuple."""
        self._path.append(place)
        node = self.node(value)
        self._path.pop()
        return node

    def _items(self, values: Any) -> List[Any]:
        """The items of a list. Long lists mostly have small numbers, which are encoded in one step."""
        nodes = []
        for i, v in enumerate(values):
            kind = type(v)
            if (kind is int and -INT_SAFE < v < INT_SAFE) or (kind is float and -math.inf < v < math.inf):
                self._left -= 4
                nodes.append(v)
            else:
                nodes.append(self._at(i, v))
        self._spend(values, 0)
        return nodes

    # -- kinds --

    def node(self, value: Any) -> Any:
        self._spend(value, 4)
        if value is None or value is True or value is False:
            return value
        if isinstance(value, enum.Enum):
            return self._enum(value)
        for kinds, say in _PLAIN:
            if isinstance(value, kinds):
                return say(self, value)
        for module, look in (("numpy", _numpy), ("pandas", _pandas)):
            if module in sys.modules:
                node = look(self, value, sys.modules[module])
                if node is not None:
                    return node
        for kinds, say in _OTHER:
            if isinstance(value, kinds):
                return say(self, value)
        if dataclasses.is_dataclass(value) and not isinstance(value, type):
            names = [f.name for f in dataclasses.fields(value)]
            return self._record(value, "dataclass", names)
        raise self._refuse(value, "values of this type cannot be returned", self._hint(value))

    @staticmethod
    def _hint(value: Any) -> str:
        for cls in type(value).__mro__:
            if cls.__name__ in HINTS:
                return HINTS[cls.__name__]
        for method in ("model_dump", "to_dict", "to_pandas", "tolist", "as_dict"):
            if callable(getattr(type(value), method, None)):
                return "use its %s()" % method
        return "return numbers, text, lists, dictionaries, dataclasses, arrays or data frames"

    def _enum(self, value: Any) -> Any:
        return self._inside(
            value, lambda: {TAG: "enum", "class": _name(type(value)), "name": str(value.name), "v": self._at(".value", value.value)}
        )

    def _int(self, value: Any) -> Any:
        number = int(value)
        if -INT_SAFE < number < INT_SAFE:
            return number
        if number.bit_length() > INT_BITS_MAX:
            raise self._refuse(value, "it has %d bits" % number.bit_length(), "numbers have at most %d" % INT_BITS_MAX)
        text = hex(number)
        self._spend(value, len(text))
        return {TAG: "int", "v": text}

    def _float(self, value: Any) -> Any:
        number = float(value)
        return number if math.isfinite(number) else {TAG: "float", "v": repr(number)}

    def _str(self, value: Any) -> Any:
        self._spend(value, len(value))
        return str.__str__(value)

    def _bytes(self, value: Any) -> Any:
        self._spend(value, len(value) * 4 // 3)
        return {TAG: "bytearray" if isinstance(value, bytearray) else "bytes", "v": base64.b64encode(value).decode()}

    def _list(self, value: Any) -> Any:
        return self._inside(value, lambda: self._items(value))

    def _tuple(self, value: Any) -> Any:
        names = getattr(type(value), "_fields", None)
        if isinstance(names, tuple) and len(names) == len(value) and all(isinstance(n, str) for n in names):
            return self._record(value, "namedtuple", list(names))
        return self._inside(value, lambda: {TAG: "tuple", "v": self._items(value)})

    def _set(self, value: Any) -> Any:
        kind = "frozenset" if isinstance(value, frozenset) else "set"
        return self._inside(value, lambda: {TAG: kind, "v": self._items(value)})

    def _dict(self, value: Any) -> Any:
        def build() -> Any:
            if TAG not in value and all(isinstance(k, str) for k in value):
                self._spend(value, sum(map(len, value)))
                return {str.__str__(k): self._at((k,), v) for k, v in value.items()}
            return {TAG: "dict", "v": [[self._at(".keys()", k), self._at((k,), v)] for k, v in value.items()]}

        return self._inside(value, build)

    def _record(self, value: Any, kind: str, names: List[str]) -> Any:
        return self._inside(
            value,
            lambda: {
                TAG: "record",
                "kind": kind,
                "class": _name(type(value)),
                "v": [[n, self._at("." + n, getattr(value, n))] for n in names],
            },
        )

    def _complex(self, value: Any) -> Any:
        return {TAG: "complex", "v": [self._float(value.real), self._float(value.imag)]}

    def _datetime(self, value: Any) -> Any:
        """A time zone becomes its offset from UTC: a name would make the reader open files."""
        return {TAG: "datetime", "v": datetime.datetime.isoformat(value), "fold": value.fold}

    def _time(self, value: Any) -> Any:
        return {TAG: "time", "v": value.isoformat(), "fold": value.fold}

    def _timedelta(self, value: Any) -> Any:
        return {TAG: "timedelta", "v": [value.days, value.seconds, value.microseconds]}

    def _said(self, kind: str, text: str) -> Any:
        self._spend(text, len(text))
        return {TAG: kind, "v": text}


Plain = List[Tuple[Any, Callable[[Encoder, Any], Any]]]

_PLAIN: Plain = [
    (int, Encoder._int),
    (float, Encoder._float),
    (str, Encoder._str),
    (list, Encoder._list),
    (dict, Encoder._dict),
    (tuple, Encoder._tuple),
    ((bytes, bytearray), Encoder._bytes),
    ((set, frozenset), Encoder._set),
]
_OTHER: Plain = [  # after pandas, whose times are subclasses of these
    (complex, Encoder._complex),
    (datetime.datetime, Encoder._datetime),
    (datetime.date, lambda e, v: e._said("date", v.isoformat())),
    (datetime.time, Encoder._time),
    (datetime.timedelta, Encoder._timedelta),
    (decimal.Decimal, lambda e, v: e._said("decimal", str(v))),
    (fractions.Fraction, lambda e, v: {TAG: "fraction", "v": [e._int(v.numerator), e._int(v.denominator)]}),
    (uuid.UUID, lambda e, v: e._said("uuid", str(v))),
    (pathlib.PurePath, lambda e, v: e._said("path", v.as_posix())),
    (range, lambda e, v: {TAG: "range", "v": [e._int(v.start), e._int(v.stop), e._int(v.step)]}),
    (memoryview, lambda e, v: e._bytes(v.tobytes())),
]

# ---- numpy and pandas -------------------------------------------------------------------------------------------------


def _numpy(e: Encoder, value: Any, np: Any) -> Any:
    if not hasattr(np, "ndarray"):
        return None  # another module with this name
    if isinstance(value, np.ma.MaskedArray):
        raise e._refuse(value, "masked arrays cannot be returned", "use its filled()")
    if isinstance(value, np.ndarray):
        return e._inside(value, lambda: _array(e, value, np))
    if isinstance(value, np.generic):
        if value.dtype.kind in "mM":
            return {**_array(e, np.asarray(value), np), "scalar": True}
        if value.dtype.kind in "fc" and value.dtype.itemsize > (8 if value.dtype.kind == "f" else 16):
            return e.node(float(value) if value.dtype.kind == "f" else complex(value))
        if value.dtype.kind in "biufcSU":
            return e.node(value.item())
    return None


def _array(e: Encoder, a: Any, np: Any) -> Dict[str, Any]:
    kind, size = a.dtype.kind, a.dtype.itemsize
    shape = [int(n) for n in a.shape]
    if kind in "OUS":
        return {
            TAG: "ndarray",
            "dtype": {"O": "object", "U": "str", "S": "bytes"}[kind],
            "shape": shape,
            "items": e._items(a.ravel().tolist()),
        }
    if kind not in "biufcmM" or size > (16 if kind == "c" else 8) or str(a.dtype) in ("datetime64", "timedelta64"):
        raise e._refuse(a, "arrays of %s cannot be returned" % (a.dtype,), "use astype() first, or return its columns")
    e._spend(a, a.nbytes * 4 // 3)
    plain = a.astype(a.dtype.newbyteorder("<"), copy=False)
    return {
        TAG: "ndarray",
        "dtype": plain.dtype.newbyteorder("<").str.replace("=", "<"),
        "shape": shape,
        "v": base64.b64encode(plain.tobytes()).decode(),
    }


def _pandas(e: Encoder, value: Any, pd: Any) -> Any:
    if not hasattr(pd, "DataFrame"):
        return None
    if isinstance(value, pd.DataFrame):
        return e._inside(value, lambda: _frame(e, value, pd))
    if isinstance(value, pd.Series):
        return e._inside(
            value, lambda: {TAG: "series", "name": e.node(value.name), "index": _index(e, value.index, pd), "v": _column(e, value, pd)}
        )
    if isinstance(value, pd.Index):
        return e.node(pd.Series(value, name=value.name))
    if value is pd.NaT or value is getattr(pd, "NA", value):
        return {TAG: "nat"}
    if isinstance(value, pd.Timestamp):
        return e._datetime(value.to_pydatetime(warn=False))
    if isinstance(value, pd.Timedelta):
        return e._timedelta(value.to_pytimedelta())
    return None


def _frame(e: Encoder, f: Any, pd: Any) -> Dict[str, Any]:
    columns = [e._at(".columns", tuple(c) if isinstance(c, tuple) else c) for c in f.columns]
    data = []
    for i, c in enumerate(f.columns):
        e._path.append((c,))
        data.append(_column(e, f.iloc[:, i], pd))
        e._path.pop()
    names = [e.node(n) for n in f.columns.names]
    return {TAG: "frame", "columns": columns, "names": names, "index": _index(e, f.index, pd), "v": data}


def _index(e: Encoder, index: Any, pd: Any) -> Dict[str, Any]:
    names = [e.node(n) for n in index.names]
    if isinstance(index, pd.RangeIndex):
        return {"range": [int(index.start), int(index.stop), int(index.step)], "names": names}
    if isinstance(index, pd.MultiIndex):
        return {"tuples": e._items(index.tolist()), "names": names}
    return {"v": _column(e, pd.Series(index), pd), "names": names}


def _column(e: Encoder, s: Any, pd: Any) -> Dict[str, Any]:
    """{"as": how to make it again, ...}"""
    name = str(s.dtype)
    if name.startswith("datetime64[") and "," in name:
        return {"as": "utc", "v": _array(e, s.dt.tz_convert("UTC").dt.tz_localize(None).to_numpy(), sys.modules["numpy"])}
    if getattr(s.dtype, "kind", "") in tuple("biufcmM") and type(s.dtype).__module__.startswith("numpy"):
        return {"as": "array", "v": _array(e, s.to_numpy(), sys.modules["numpy"])}
    known = next((n for n in EXTENSIONS if name == n or name.startswith(n + "[")), "text" if name == "str" else "object")
    missing: List[bool] = [bool(m) for m in s.isna()]
    values = s.astype(object).tolist()
    keep: Callable[[Any, bool], Optional[Any]] = (lambda v, m: v) if known == "object" else (lambda v, m: None if m else v)
    return {"as": known, "items": e._items([keep(v, m) for v, m in zip(values, missing)])}


def encode(value: Any, limit: int = 64 << 20, what: str = "value") -> str:
    """The text of a value; raises NotReturnable if it has none."""
    return Encoder(limit, what).text(value)
