# SPDX-License-Identifier: Apache-2.0
"""artifacts - mcp.runtime: files, images and charts of an execution, and time.

Each execution has a folder of its own below /workspace, which is made when a file is saved in it. The execution's result lists its
files, and the host gives them out like all files there; so these functions return paths in the sandbox.
"""
import datetime
import io
import os
import re
from pathlib import Path

_BASE = "/workspace/executions"
_CHARTS = ("bar", "line", "scatter")

number = 0  # of the present execution
_charts = 0


def begin(name):
    """An execution begins; `name` is its pseudo file name, with its number."""
    global number, _charts
    found = re.search(r"\d+", name)
    number = int(found.group()) if found else number + 1
    _charts = 0


def execution_folder():
    """The folder of this execution, a Path. It exists once a file was saved in it."""
    return Path(_BASE) / ("%03d" % number)


def _target(filename, subdir):
    name = str(filename)
    if not name or name.startswith("/") or ".." in Path(name).parts or ".." in Path(subdir).parts or subdir.startswith("/"):
        raise ValueError("%r: must be a relative file name without .." % name)
    path = execution_folder() / subdir / name
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


def _write(path, data):
    new = path.with_name(".%s.new" % path.name)
    new.write_bytes(data)
    os.replace(new, path)
    return str(path)


def save_file(filename, content, *, subdir="data"):
    """Save text or bytes in the execution's folder; returns the path."""
    if isinstance(content, str):
        content = content.encode()
    elif not isinstance(content, (bytes, bytearray, memoryview)):
        raise TypeError("content must be str or bytes, not %s" % type(content).__name__)
    return _write(_target(filename, subdir), bytes(content))


def save_image(filename, figure_or_bytes, *, format=None):
    """Save a matplotlib figure, a PIL image or the bytes of one; returns the path."""
    image = figure_or_bytes
    path = _target(filename, "images")
    kind = (format or path.suffix.lstrip(".") or "png").lower()
    if not path.suffix:
        path = path.with_name("%s.%s" % (path.name, kind))
    if isinstance(image, (bytes, bytearray, memoryview)):
        return _write(path, bytes(image))
    out = io.BytesIO()
    if hasattr(image, "savefig"):
        image.savefig(out, format=kind, bbox_inches="tight")
    elif hasattr(image, "save"):
        image.save(out, format={"jpg": "JPEG"}.get(kind, kind.upper()))
    else:
        raise TypeError("save_image takes a figure, an image or bytes, not %s" % type(image).__name__)
    return _write(path, out.getvalue())


def list_execution_files():
    """Names of the files in the execution's folder: {"images": [...], "data": [...], "other": [...]}."""
    folder, found = execution_folder(), {"images": [], "data": [], "other": []}
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            parts = path.relative_to(folder).parts
            kind = parts[0] if len(parts) > 1 and parts[0] in ("images", "data") else "other"
            found[kind].append("/".join(parts[1:] if kind != "other" else parts))
    return found


def _rows(data, x, y, group):
    """[(x, y, group)] of a list of dictionaries, a dictionary of lists or a DataFrame."""
    if hasattr(data, "to_dict") and hasattr(data, "columns"):
        data = data.to_dict("records")
    elif isinstance(data, dict) and data and all(isinstance(column, (list, tuple, range)) for column in data.values()):
        if len({len(column) for column in data.values()}) > 1:
            raise ValueError("the lists must be of one length: %s" % ", ".join("%r has %d" % (k, len(v)) for k, v in data.items()))
        data = [dict(zip(data, row)) for row in zip(*data.values())]
    rows = data if isinstance(data, (list, tuple)) else None
    if rows is None or not all(isinstance(row, dict) for row in rows):
        raise TypeError("data must be a list of dictionaries, a dictionary of lists or a DataFrame, not %.80r" % (data,))
    for field in [f for f in (x, y, group) if f is not None]:
        if rows and not any(field in row for row in rows):
            raise ValueError("no row has %r; there are: %s" % (field, ", ".join(map(repr, rows[0]))))
    return [(row.get(x), row.get(y), row.get(group) if group is not None else None) for row in rows]


def _draw(axes, chart_type, rows):
    groups = list(dict.fromkeys(row[2] for row in rows))
    places = list(dict.fromkeys(row[0] for row in rows))
    for i, group in enumerate(groups):
        xs = [row[0] for row in rows if row[2] == group]
        ys = [row[1] for row in rows if row[2] == group]
        label = None if group is None else str(group)
        if chart_type == "bar":
            width = 0.8 / len(groups)
            axes.bar([places.index(v) + (i - (len(groups) - 1) / 2) * width for v in xs], ys, width, label=label)
        elif chart_type == "line":
            axes.plot(xs, ys, marker="o", label=label)
        else:
            axes.scatter(xs, ys, label=label)
    if chart_type == "bar":
        axes.set_xticks(range(len(places)))
        axes.set_xticklabels([str(v) for v in places], rotation=45 if len(places) > 8 else 0)
    if groups != [None] and groups:
        axes.legend()


def render_chart(data, chart_type, x, y, *, title=None, series=None, hue=None, filename=None, width=10, height=6):
    """Draw a chart of rows (a list of dictionaries, a dictionary of lists, or a DataFrame): chart_type "bar", "line" or "scatter", x and y
    names of fields, series (or hue) the field to group by. The chart is shown and saved; returns the path."""
    global _charts
    if chart_type not in _CHARTS:
        raise ValueError("chart_type must be one of %s, not %r" % (", ".join(_CHARTS), chart_type))
    rows = _rows(data, x, y, series if series is not None else hue)
    try:
        import matplotlib.pyplot as plt
    except ImportError:
        raise ImportError("render_chart needs matplotlib, which this image does not have") from None
    from .. import display
    figure, axes = plt.subplots(figsize=(width, height))
    try:
        _draw(axes, chart_type, rows)
        axes.set_xlabel(str(x))
        axes.set_ylabel(str(y))
        if title:
            axes.set_title(str(title))
        _charts += 1
        path = save_image(filename or "chart_%d.png" % _charts, figure)
        display.display(figure)
    finally:
        plt.close(figure)
    return path


# ---- time

def _zone(name):
    import zoneinfo  # Python 3.9
    try:
        return zoneinfo.ZoneInfo(str(name))
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        raise ValueError("unknown time zone %r; list_timezones() has their names" % (name,)) from None


def now(timezone="UTC"):
    """The present time in a zone ("Europe/Rome"), a datetime with that zone."""
    return datetime.datetime.now(datetime.timezone.utc if timezone == "UTC" else _zone(timezone))


def convert_time(dt, to_tz):
    """A datetime, or ISO text ("2026-01-31T12:00:00Z"), in another zone. Without a zone, it is taken as UTC."""
    if isinstance(dt, str):
        try:
            dt = datetime.datetime.fromisoformat(re.sub(r"[Zz]$", "+00:00", dt.strip()))
        except ValueError:
            raise ValueError("%r is not a time, as in '2026-01-31T12:00:00', with or without 'Z' or '+01:00' at the end" % dt) from None
    if not isinstance(dt, datetime.datetime):
        raise TypeError("convert_time takes a datetime or ISO text first, not %s" % type(dt).__name__)
    if dt.tzinfo is None:
        dt = dt.replace(tzinfo=datetime.timezone.utc)
    return dt.astimezone(_zone(to_tz))


def list_timezones(region=None):
    """Names of time zones; with a region ("Europe"), only those of the region."""
    import zoneinfo
    return sorted(name for name in zoneinfo.available_timezones() if not region or name.startswith(region))


NAMES = ("execution_folder", "save_image", "save_file", "list_execution_files", "render_chart", "now", "convert_time",
         "list_timezones")
