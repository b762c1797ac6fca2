# SPDX-License-Identifier: Apache-2.0
"""traceback_ - The traceback that the user sees: the user's own lines, without those of the kernel.

The standard library does the work (chains, groups, notes, carets, folded recursion). Before that, the frames of the kernel,
and those of asyncio between the kernel and user code, are removed from every traceback in the chain. An exception is user
code: its __str__ may raise, its chain may be a circle, its stack may be a million frames deep. So each step has a limit and
the whole has a fallback, and describe() always answers.
"""
import asyncio
import os
import selectors
import traceback
import types

from . import source, wire


def _file_of(function):
    return function.__code__.co_filename


_HERE = os.path.dirname(_file_of(_file_of)) + os.sep
_ASYNCIO = os.path.dirname(_file_of(asyncio.BaseEventLoop.run_forever)) + os.sep
_SELECTORS = _file_of(selectors.DefaultSelector.select)
_FRAMES_MAX = 2000
_CHAIN_MAX = 100
_LINES_MAX = 400
_LINE_MAX_CHARS = 16384


def _cleaned(tb):
    """The traceback without the kernel's frames; both ends of a very long one."""
    frames = []
    ours = False  # the frame before was the kernel's: the asyncio frames that it called belong to it
    while tb is not None:
        name = tb.tb_frame.f_code.co_filename
        if name.startswith(_HERE):
            ours = True
        elif not (ours and (name.startswith(_ASYNCIO) or name == _SELECTORS)):
            ours = False
            frames.append(tb)
        tb = tb.tb_next
    if len(frames) > _FRAMES_MAX:
        frames = frames[:_FRAMES_MAX // 2] + frames[-_FRAMES_MAX // 2:]
    chain = None
    for tb in reversed(frames):
        chain = types.TracebackType(chain, tb.tb_frame, tb.tb_lasti, tb.tb_lineno)
    return chain


def _clean_all(exc):
    """_cleaned() for an exception and its whole chain."""
    todo, seen = [exc], set()
    while todo and len(seen) < _CHAIN_MAX:
        exc = todo.pop()
        if not isinstance(exc, BaseException) or id(exc) in seen:
            continue
        seen.add(id(exc))
        exc.__traceback__ = _cleaned(exc.__traceback__)
        todo += [exc.__context__, exc.__cause__]
        todo += getattr(exc, "exceptions", ())
    return len(seen) < _CHAIN_MAX


def _shortened(lines):
    lines = [line if len(line) <= _LINE_MAX_CHARS else line[:_LINE_MAX_CHARS] + "..." for line in lines]
    if len(lines) > _LINES_MAX:
        half = _LINES_MAX // 2
        lines[half:-half] = ["  ... [%d lines left out] ..." % (len(lines) - 2 * half)]
    return lines


def _format(exc):
    whole = _clean_all(exc)
    source.recall()
    if isinstance(exc, SyntaxError) and exc.text is None:  # found after parsing: the compiler looks for a file
        exc.text = source.line(exc.filename, exc.lineno)
    parts = traceback.format_exception(type(exc), exc, exc.__traceback__, chain=whole)
    return "".join(parts).rstrip("\n").split("\n")


def _value(exc):
    try:
        return wire.cut(str(exc))
    except Exception:
        return "<exception str() failed>"


def name_of(exc):
    return str(type.__getattribute__(type(exc), "__name__"))


def bare(exc):
    """The result of describe() as far as it needs no user code: for the case that such a call was interrupted."""
    name = name_of(exc)
    lines = ["Traceback (most recent call last):"]
    lines += "".join(traceback.format_tb(_cleaned(exc.__traceback__))).rstrip("\n").split("\n")
    return name, "", _shortened(lines + [name])


def describe(exc):
    """(name, value, traceback lines) of an exception."""
    name, value = name_of(exc), _value(exc)
    try:
        lines = _shortened(_format(exc))
    except Exception:
        lines = _shortened(["%s: %s" % (name, value)])
    return name, value, lines
