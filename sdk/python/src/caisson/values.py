# SPDX-License-Identifier: Apache-2.0
"""values.py - Classes for values of a sandbox that have no type of their own on this side.

A Record stands for an object of a class that exists only in the sandbox, an EnumValue for a member of such an enum; Array, Series and
Frame are used where numpy and pandas are not installed. All of them are data: none of their methods looks up a name that the sandbox sent.
"""

from __future__ import annotations

import dataclasses
import re
import struct
from typing import Any, Dict, Iterator, List, Tuple


class BadValue(ValueError):
    """The text is not a valid value: forged, cut, or beyond the limits."""


@dataclasses.dataclass(frozen=True)
class Limits:
    """Limits of one value. bytes: size of its text; values: parts in all; depth: levels."""

    bytes: int = 64 << 20
    values: int = 4_000_000
    depth: int = 64


class Record:
    """An object of a class that exists only in the sandbox: its fields as attributes, its class as a name."""

    __slots__ = ("_class", "_fields")
    _class: str
    _fields: Dict[str, Any]

    def __init__(self, class_name: str, fields: Dict[str, Any]) -> None:
        object.__setattr__(self, "_class", class_name)
        object.__setattr__(self, "_fields", fields)

    def __getattr__(self, name: str) -> Any:
        try:
            if name[:2] != "__":
                return object.__getattribute__(self, "_fields")[name]
        except KeyError:
            pass
        raise AttributeError("%s has no field %s" % (object.__getattribute__(self, "_class"), name))

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError("a Record is read-only")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Record) and (record_class(self), record_fields(self)) == (record_class(other), record_fields(other))

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return "<%s %s>" % (record_class(self), " ".join("%s=%r" % pair for pair in record_fields(self).items()))

    def __reduce__(self) -> Tuple[Any, ...]:
        return Record, (record_class(self), record_fields(self))


def record_class(record: Record) -> str:
    """The name of the record's class in the sandbox. This is a function because every attribute may be a field."""
    return str(object.__getattribute__(record, "_class"))


def record_fields(record: Record) -> Dict[str, Any]:
    """All fields of the record."""
    return dict(object.__getattribute__(record, "_fields"))


@dataclasses.dataclass(frozen=True)
class EnumValue:
    """A member of an enum that exists only in the sandbox."""

    class_name: str
    name: str
    value: Any


@dataclasses.dataclass(frozen=True)
class Array:
    """An array of numbers, where numpy is not installed."""

    dtype: str
    shape: Tuple[int, ...]
    data: bytes = dataclasses.field(repr=False)

    def flat(self) -> List[Any]:
        """All numbers in order; times are counts of their unit."""
        kind, size = self.dtype[1], int(re.sub(r"\[.*", "", self.dtype[2:]))
        if kind == "c":
            parts = [n for (n,) in struct.iter_unpack("<f" if size == 8 else "<d", self.data)]
            return [complex(*pair) for pair in zip(parts[::2], parts[1::2])]
        code = {"b": "?", "i": " bh i   q"[size], "u": " BH I   Q"[size], "f": "  e f   d"[size], "m": "q", "M": "q"}[kind]
        return [n for (n,) in struct.iter_unpack("<" + code, self.data)]

    def tolist(self) -> Any:
        return nest(iter(self.flat()), self.shape)

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("an array without dimensions has no length")
        return self.shape[0]


@dataclasses.dataclass(frozen=True)
class Frame:
    """A data frame, where pandas is not installed. data: one list or Array for each column."""

    columns: List[Any]
    index: List[Any]
    data: List[Any]

    def column(self, name: Any) -> List[Any]:
        return plain_list(self.data[self.columns.index(name)])

    def records(self) -> List[Dict[Any, Any]]:
        """One dictionary for each row."""
        return [dict(zip(self.columns, row)) for row in zip(*map(plain_list, self.data))]

    def __len__(self) -> int:
        return len(self.index)


@dataclasses.dataclass(frozen=True)
class Series:
    """A column with an index, where pandas is not installed."""

    name: Any
    index: List[Any]
    data: Any

    def tolist(self) -> List[Any]:
        return plain_list(self.data)

    def __len__(self) -> int:
        return len(self.index)


def plain_list(column: Any) -> List[Any]:
    return list(column.tolist() if hasattr(column, "tolist") else column)


def nest(values: Iterator[Any], shape: Tuple[int, ...]) -> Any:
    if not shape:
        return next(values)
    return [nest(values, shape[1:]) for _ in range(shape[0])]
