# SPDX-License-Identifier: Apache-2.0
"""wire - Messages as bytes: JSON objects, one per line, that any strict parser accepts.

Representations of a user's objects go into these messages, so any value may occur: NaN, lone surrogates, numpy scalars, keys
that are not strings, cycles, a gigabyte. encode() always returns valid UTF-8 JSON on one line; values that JSON cannot
represent are replaced by the nearest ones. bounded() keeps a MIME bundle within its limit.
"""
import codecs
import json
import math

LINE_MAX_BYTES = 16 << 20
BUNDLE_MAX_BYTES = 8 << 20
TEXT_MAX_CHARS = 1 << 20
_DEPTH_MAX = 64


def _replace(error):
    return b"\xef\xbf\xbd" * (error.end - error.start), error.end


codecs.register_error("caisson.replace", _replace)

_dumps = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode
_loads = json.JSONDecoder().decode


def _plain(value, depth=0):
    """The nearest value that JSON can represent."""
    if value is None or isinstance(value, (bool, str)):
        return value
    if depth > _DEPTH_MAX:
        return None
    if type(value) is int:
        return value
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    if isinstance(value, dict):
        return {str(k): _plain(v, depth + 1) for k, v in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [_plain(v, depth + 1) for v in value]
    for method in ("tolist", "item"):  # numpy's arrays and scalars
        if hasattr(value, method):
            return _plain(getattr(value, method)(), depth + 1)
    return str(value)


def encode(message):
    """One line with its newline."""
    try:
        text = _dumps(message)
    except (TypeError, ValueError, RecursionError):
        text = _dumps(_plain(message))
    return text.encode("utf-8", "caisson.replace") + b"\n"


def decode(line):
    """The object of a line, or None if the line is not a JSON object."""
    try:
        message = _loads(line.decode("utf-8"))
    except (ValueError, RecursionError):
        return None
    return message if isinstance(message, dict) else None


def cut(text, limit=TEXT_MAX_CHARS):
    """The text, or its beginning with a note of its length."""
    if len(text) <= limit:
        return text
    return "%s\n... [%d of %d characters shown]" % (text[:limit], limit, len(text))


def bounded(message):
    """encode() of a message with a MIME bundle in `data`; a note replaces a bundle that is too large."""
    line = encode(message)
    if len(line) <= BUNDLE_MAX_BYTES:
        return line
    kinds = ", ".join(sorted(str(kind) for kind in message["data"])[:8])
    note = "<%s of %s: too large: %d bytes>" % (message["type"], kinds, len(line))
    return encode(dict(message, data={"text/plain": note}, metadata={}, truncated=True))
