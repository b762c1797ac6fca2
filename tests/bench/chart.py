# SPDX-License-Identifier: Apache-2.0
"""chart.py - A bar chart as SVG text, and measurements put between two marks of a document."""
import math
import sys
import textwrap
from xml.sax.saxutils import escape

WIDTH, LEFT, RIGHT, ROW, TOP = 720, 190, 90, 30, 44
COLUMNS = 120  # of a line of prose in a document


def bars(title, rows):
    """@rows: (label, value, ours). Logarithmic: one decade is one width."""
    values = [v for _, v, _ in rows]
    low = math.floor(math.log10(min(values)))
    high = math.ceil(math.log10(max(values)))
    scale = (WIDTH - LEFT - RIGHT) / max(1, high - low)
    height = TOP + ROW * len(rows) + 30
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" font-family="sans-serif" font-size="13">',
           f'<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>',
           f'<text x="12" y="24" font-size="15" fill="#1a2530">{escape(title)}</text>']
    for decade in range(low, high + 1):
        x = LEFT + (decade - low) * scale
        out.append(f'<line x1="{x:.1f}" y1="{TOP - 8}" x2="{x:.1f}" y2="{height - 26}" stroke="#dde3e8"/>')
        out.append(f'<text x="{x:.1f}" y="{height - 10}" text-anchor="middle" fill="#5b6b78">{10 ** decade:g} ms</text>')
    for i, (label, value, ours) in enumerate(rows):
        y = TOP + i * ROW
        length = max(2.0, (math.log10(value) - low) * scale)
        colour = "#0b7285" if ours else "#9aa8b3"
        out.append(f'<text x="{LEFT - 8}" y="{y + 15}" text-anchor="end" fill="#1a2530">{escape(label)}</text>')
        out.append(f'<rect x="{LEFT}" y="{y}" width="{length:.1f}" height="20" rx="2" fill="{colour}"/>')
        out.append(f'<text x="{LEFT + length + 6:.1f}" y="{y + 15}" fill="#1a2530">{value:.3g}</text>')
    return "\n".join(out) + "\n</svg>\n"


def met(kept):
    """The name of a goal's outcome in a document: a missed goal is named as missed."""
    return "met" if kept else "not met"


def fold(line):
    """Wrap prose; leave tables and commands, which are wrapped already, as they are."""
    if line.startswith(("|", " ")):
        return line
    return textwrap.fill(line, COLUMNS, break_long_words=False, break_on_hyphens=False) if line else line


def publish(path, mark, lines):
    """Print the lines and, if @path is given, replace the text between the marks of that document."""
    text = "\n".join(map(fold, lines))
    print(text)
    if not path:
        return
    begin, end = f"<!-- {mark}: begin -->", f"<!-- {mark}: end -->"
    document = path.read_text(encoding="utf-8")
    if begin not in document or end not in document:
        sys.exit(f"bench: {path} was not changed: the marks '{begin}' and '{end}' are missing; put them back")
    document = document[:document.index(begin) + len(begin)] + "\n" + text + "\n" + document[document.index(end):]
    path.write_text(document, encoding="utf-8")
