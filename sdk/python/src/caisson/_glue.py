# SPDX-License-Identifier: Apache-2.0
"""_glue.py - The few functions that differ between the asynchronous client and the generated blocking one."""

from __future__ import annotations

import asyncio
import math
import os
import time
from typing import Any, BinaryIO, Iterable, Iterator, Mapping, Optional, Union

from .types import Event

PIECE = 256 << 10

sleep = time.sleep


async def asleep(seconds: float) -> None:
    await asyncio.sleep(seconds)


def whole_seconds(timeout: Optional[float]) -> Optional[int]:
    """Whole seconds, as the daemon counts them: rounded up, so that no caller gets less than requested."""
    return None if timeout is None else math.ceil(timeout)


def given(**members: Any) -> dict[str, Any]:
    """The members that are not None."""
    return {name: value for name, value in members.items() if value is not None}


def listed(values: Iterable[str]) -> Any:
    """The values as a list. A single text stays one, which the daemon refuses by name; as a list it would be its letters."""
    return values if isinstance(values, str) else list(values)


def pieces(f: BinaryIO) -> Iterator[bytes]:
    """The rest of a file, in pieces."""
    while True:
        data = f.read(PIECE)
        if not data:
            return
        yield data


def size_left(f: BinaryIO) -> int:
    """The number of bytes from here to the end."""
    here = f.tell()
    end = f.seek(0, os.SEEK_END)
    f.seek(here)
    return end - here


def to_event(name: str, data: Mapping[str, Any], number: Optional[str]) -> Event:
    return Event(name, data, int(number) if number is not None and number.isdigit() else None)


def as_bytes(data: Union[str, bytes, bytearray, memoryview]) -> bytes:
    return data.encode() if isinstance(data, str) else bytes(data)
