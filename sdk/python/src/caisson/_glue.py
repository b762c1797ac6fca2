# SPDX-License-Identifier: Apache-2.0
"""_glue.py - The little that differs between the asynchronous client and the one that is generated from it."""

from __future__ import annotations

import asyncio
import math
import os
import time
from typing import Any, BinaryIO, Iterator, Mapping, Optional, Union

from .types import Event

PIECE = 256 << 10

sleep = time.sleep


async def asleep(seconds: float) -> None:
    await asyncio.sleep(seconds)


def whole_seconds(timeout: Optional[float]) -> Optional[int]:
    """For what the daemon counts in whole seconds: up, so that nobody gets less than was asked for."""
    return None if timeout is None else math.ceil(timeout)


def given(**members: Any) -> dict[str, Any]:
    """The members that are not None."""
    return {name: value for name, value in members.items() if value is not None}


def pieces(f: BinaryIO) -> Iterator[bytes]:
    """What is left of a file."""
    while True:
        data = f.read(PIECE)
        if not data:
            return
        yield data


def size_left(f: BinaryIO) -> int:
    """How many bytes there are from here to the end."""
    here = f.tell()
    end = f.seek(0, os.SEEK_END)
    f.seek(here)
    return end - here


def to_event(name: str, data: Mapping[str, Any], number: Optional[str]) -> Event:
    return Event(name, data, int(number) if number is not None and number.isdigit() else None)


def as_bytes(data: Union[str, bytes, bytearray, memoryview]) -> bytes:
    return data.encode() if isinstance(data, str) else bytes(data)
