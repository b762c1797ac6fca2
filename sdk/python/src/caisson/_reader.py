# SPDX-License-Identifier: Apache-2.0
"""_reader.py - Reads the text of _encode.py from an untrusted source: every text gives plain data or BadValue, and none runs code.

Theory of operation. The text comes from a sandbox, so untrusted code may have written it. Three rules hold:

- Kinds are looked up in one table of functions (_values.py). No text names a class, a module, an attribute or a function that would be
  looked up. A dataclass or an enum of the caller is made only if the caller has passed that class; otherwise a Record or an
  EnumValue stands for it (values.py).
- Everything is checked before it is used: types, shapes against sizes, number types against a list, field names. A Record never has
  a name that begins with two underscores: libraries ask objects for such names, and trust the answer. numpy reads memory at the address
  in `__array_interface__`.
- Work is bounded before it is done: bytes, values, depth, digits, and keys that were chosen to have one hash.

This file is sent into the sandbox as well, together with the files that it needs; there it reads text of the host. So all of them use
only the standard library.
"""

from __future__ import annotations

import base64
import binascii
import collections
import dataclasses
import datetime
import decimal
import enum
import fractions
import json
import pathlib
import re
import uuid
from typing import Any, Callable, Dict, Iterable, List, Mapping, Optional

from .values import BadValue, EnumValue, Limits, Record

TAG = "$"
COLLISIONS_MAX = 32
EXPONENT_MAX = 999999
DIGITS_MAX = 10000
_INT = re.compile(r"-?0x[0-9a-f]{1,262145}")
_DECIMAL = re.compile(r"-?(?:\d+(?:\.\d*)?|\.\d+)(?:[Ee]([+-]?\d{1,7}))?|-?(?:s?NaN\d{0,9}|Inf(?:inity)?)", re.ASCII)
_FIELD = re.compile(r"(?!__)[^\W\d]\w*")


def _short_int(text: str) -> int:
    if len(text) > 20:
        raise BadValue("a number has too many digits")
    return int(text)


def _no_constant(text: str) -> Any:
    raise BadValue("%s is not JSON" % text)


def parse(text: str, limits: Limits) -> Any:
    """Parse JSON within bounds that are checked first: each value needs one of these characters before it, or is the first."""
    if len(text) > limits.bytes:
        raise BadValue("the text is larger than %d bytes" % limits.bytes)
    if text.count(",") + text.count("[") + text.count("{") + text.count(":") > limits.values:
        raise BadValue("the text has more than %d values" % limits.values)
    try:
        return json.loads(text, parse_int=_short_int, parse_constant=_no_constant)
    except BadValue:
        raise
    except RecursionError:
        raise BadValue("the text is nested too deep") from None
    except ValueError as exc:
        raise BadValue("the text is not JSON: %s" % exc) from None


class Reader:
    """Reads one text. classes: the caller's dataclasses and enums that may be made, by name. kinds: the table."""

    def __init__(self, limits: Limits, classes: Iterable[type], kinds: Mapping[str, Kind]) -> None:
        self.limits, self.kinds = limits, kinds
        self.classes: Dict[str, type] = {}
        for cls in classes:
            if not (isinstance(cls, type) and (dataclasses.is_dataclass(cls) or issubclass(cls, enum.Enum))):
                raise TypeError("classes: %r is neither a dataclass nor an enum" % (cls,))
            self.classes[cls.__name__] = cls
        self.level = 0
        self._left = limits.values

    def charge(self, values: int) -> None:
        """Count work or memory that exceeds the size of the text."""
        self._left -= values
        if self._left < 0:
            raise BadValue("the value would have more than %d parts" % self.limits.values)

    def value(self, node: Any) -> Any:
        if not isinstance(node, (list, dict)):
            return node
        self.level += 1
        if self.level > self.limits.depth:
            raise BadValue("the value is more than %d levels deep" % self.limits.depth)
        if isinstance(node, list):
            made: Any = [self.value(v) for v in node]
        elif TAG in node:
            made = self._tagged(node)
        else:
            made = {k: self.value(v) for k, v in node.items()}
        self.level -= 1
        return made

    def _tagged(self, node: Dict[str, Any]) -> Any:
        kind = node[TAG]
        make = self.kinds.get(kind) if isinstance(kind, str) else None
        if make is None:
            raise BadValue("unknown kind %.40r" % (kind,))
        return make(self, node)

    def made_of(self, class_name: str) -> Optional[type]:
        return self.classes.get(class_name.rpartition(".")[2])


def get(node: Any, key: str, *kinds: type) -> Any:
    """A member, of one of these types exactly: True is not an int here."""
    value = node.get(key) if isinstance(node, dict) else None
    if type(value) not in kinds:
        raise BadValue("%s of %.40r is missing or of a wrong type" % (key, node.get(TAG, "a part") if isinstance(node, dict) else "a part"))
    return value


def _numbers(node: Dict[str, Any], n: int) -> List[int]:
    values = get(node, "v", list)
    if len(values) != n or any(type(v) is not int for v in values):
        raise BadValue("%s must have %d whole numbers" % (node[TAG], n))
    return list(values)


def _matched(pattern: Any, node: Dict[str, Any]) -> str:
    text: str = get(node, "v", str)
    if not pattern.fullmatch(text):
        raise BadValue("%.60r is not a valid %s" % (text, node[TAG]))
    return text


def _int(r: Reader, node: Dict[str, Any]) -> int:
    return int(_matched(_INT, node), 16)


def _whole(r: Reader, node: Any) -> int:
    """A number as the encoder writes it, small or large."""
    value = r.value(node)
    if type(value) is not int:
        raise BadValue("a whole number is missing")
    return value


def _float(r: Reader, node: Dict[str, Any]) -> float:
    text = get(node, "v", str)
    if text not in ("nan", "inf", "-inf"):
        raise BadValue("%.40r is not a float" % text)
    return float(text)


def _complex(r: Reader, node: Dict[str, Any]) -> complex:
    parts = [r.value(p) for p in get(node, "v", list)]
    if len(parts) != 2 or any(type(p) not in (int, float) for p in parts):
        raise BadValue("a complex number must have two numbers")
    try:
        return complex(*parts)
    except OverflowError:
        raise BadValue("a complex number has a number that is too large") from None


def _decimal(r: Reader, node: Dict[str, Any]) -> decimal.Decimal:
    text: str = get(node, "v", str)
    match = _DECIMAL.fullmatch(text) if len(text) <= DIGITS_MAX else None
    if not match or abs(int(match.group(1) or 0)) > EXPONENT_MAX:
        raise BadValue("%.40r is not a decimal number, or is too large" % text)
    return decimal.Decimal(text)


def _fraction(r: Reader, node: Dict[str, Any]) -> fractions.Fraction:
    parts = get(node, "v", list)
    if len(parts) != 2:
        raise BadValue("a fraction must have two numbers")
    above, below = (_whole(r, p) for p in parts)
    if max(above.bit_length(), below.bit_length()) > 4 * DIGITS_MAX or not below:
        raise BadValue("a fraction is too large, or divides by zero")
    return fractions.Fraction(above, below)


def read_bytes(r: Reader, node: Dict[str, Any]) -> bytes:
    try:
        return base64.b64decode(get(node, "v", str), validate=True)
    except (binascii.Error, ValueError):
        raise BadValue("%s is not base64" % node[TAG]) from None


def _listed(r: Reader, node: Dict[str, Any]) -> List[Any]:
    return [r.value(v) for v in get(node, "v", list)]


def hashed(values: List[Any]) -> List[Any]:
    """Check values that become keys. Numbers can be chosen to have one hash, and a table of these takes the square of its size."""
    try:
        counts = collections.Counter(map(hash, values))
    except (TypeError, RecursionError):
        raise BadValue("a key, or an element of a set, is not hashable") from None
    if counts and max(counts.values()) > COLLISIONS_MAX:
        raise BadValue("too many keys have the same hash")
    return values


def _dict(r: Reader, node: Dict[str, Any]) -> Dict[Any, Any]:
    pairs = get(node, "v", list)
    if any(type(p) is not list or len(p) != 2 for p in pairs):
        raise BadValue("a dictionary must have pairs")
    keys = hashed([r.value(k) for k, _ in pairs])
    return dict(zip(keys, (r.value(v) for _, v in pairs)))


def _iso(cls: Any) -> Callable[[Reader, Dict[str, Any]], Any]:
    def read(r: Reader, node: Dict[str, Any]) -> Any:
        text = get(node, "v", str)
        try:
            value = cls.fromisoformat(text[:64])
            return value.replace(fold=1) if node.get("fold") == 1 and cls is not datetime.date else value
        except ValueError:
            raise BadValue("%.60r is not a valid %s" % (text, node[TAG])) from None

    return read


def _timedelta(r: Reader, node: Dict[str, Any]) -> datetime.timedelta:
    days, seconds, micro = _numbers(node, 3)
    try:
        return datetime.timedelta(days, seconds, micro)
    except OverflowError:
        raise BadValue("a timedelta is too long") from None


def _range(r: Reader, node: Dict[str, Any]) -> range:
    parts = get(node, "v", list)
    if len(parts) != 3:
        raise BadValue("a range must have three numbers")
    start, stop, step = (_whole(r, p) for p in parts)
    if not step:
        raise BadValue("a range must have a step other than 0")
    return range(start, stop, step)


def _uuid(r: Reader, node: Dict[str, Any]) -> uuid.UUID:
    return uuid.UUID(_matched(re.compile("[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"), node))


def _path(r: Reader, node: Dict[str, Any]) -> pathlib.PurePosixPath:
    """A pure path: it names a file of the sandbox, not of this machine."""
    return pathlib.PurePosixPath(get(node, "v", str))


def _enum(r: Reader, node: Dict[str, Any]) -> Any:
    class_name, name, value = get(node, "class", str), get(node, "name", str), r.value(node.get("v"))
    cls = r.made_of(class_name)
    if cls is None or not issubclass(cls, enum.Enum):
        return EnumValue(class_name, name, value)
    if name not in cls.__members__:
        raise BadValue("%s has no member %.60r" % (cls.__name__, name))
    return cls.__members__[name]


def _record(r: Reader, node: Dict[str, Any]) -> Any:
    pairs, class_name = get(node, "v", list), get(node, "class", str)
    fields: Dict[str, Any] = {}
    for pair in pairs:
        if type(pair) is not list or len(pair) != 2 or type(pair[0]) is not str or not _FIELD.fullmatch(pair[0]) or pair[0] in fields:
            raise BadValue("a field of %.60r has an invalid name" % class_name)
        fields[pair[0]] = r.value(pair[1])
    cls: Any = r.made_of(class_name)
    if cls is None or not dataclasses.is_dataclass(cls):
        return Record(class_name, fields)
    known = {f.name: f.init for f in dataclasses.fields(cls)}
    if set(fields) != set(known):
        raise BadValue("%s has the fields %s, not %.200s" % (cls.__name__, sorted(known), sorted(fields)))
    try:
        return cls(**{n: v for n, v in fields.items() if known[n]})
    except Exception as exc:
        raise BadValue("%s did not accept its fields: %.200s" % (cls.__name__, exc)) from exc


Kind = Callable[[Reader, Dict[str, Any]], Any]

KINDS: Dict[str, Kind] = {
    "int": _int,
    "float": _float,
    "complex": _complex,
    "decimal": _decimal,
    "fraction": _fraction,
    "bytes": read_bytes,
    "bytearray": lambda r, n: bytearray(read_bytes(r, n)),
    "tuple": lambda r, n: tuple(_listed(r, n)),
    "set": lambda r, n: set(hashed(_listed(r, n))),
    "frozenset": lambda r, n: frozenset(hashed(_listed(r, n))),
    "dict": _dict,
    "range": _range,
    "datetime": _iso(datetime.datetime),
    "date": _iso(datetime.date),
    "time": _iso(datetime.time),
    "timedelta": _timedelta,
    "uuid": _uuid,
    "path": _path,
    "enum": _enum,
    "record": _record,
}
