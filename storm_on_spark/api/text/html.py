"""HTML for notebooks: lines and tables. No network, no script, and every text is escaped."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape as _escape
from typing import Final

from storm_on_spark.api.text.printable import printable

FONT: Final = "font-family:system-ui,sans-serif;font-size:12px"
_MOST_ROWS: Final = 200


def escape(text: str) -> str:
    """Returns a text escaped for HTML, including characters that change the direction of text."""
    return _escape(printable(text))


def block(*parts: str) -> str:
    """Returns parts below one another."""
    return f'<div style="{FONT};color:#111;background:#fff;padding:4px;overflow-x:auto">{"".join(parts)}</div>'


def line(text: str, *, strong: bool = False) -> str:
    """Returns a line of text.

    Example:
        >>> line("a < b")
        '<div style="margin:3px 0">a &lt; b</div>'
    """
    shown = escape(text)
    return f'<div style="margin:3px 0">{f"<b>{shown}</b>" if strong else shown}</div>'


def preformatted(text: str) -> str:
    """Returns lines of text unchanged, such as a traceback."""
    return (
        '<pre style="margin:3px 0;padding:6px;background:#fef2f2;color:#111;overflow-x:auto;font-size:11px">'
        f"{escape(text)}</pre>"
    )


class Whole(str):
    """A text that a table shows in full; long ones scroll."""

    __slots__ = ()


def table(headings: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Returns a table; numbers are right-aligned, with thousands separators.

    Example:
        >>> "<td" in table(["word", "count"], [["<storm>", 1200]]), "1,200" in table(["n"], [[1200]])
        (True, True)
    """
    cell = "padding:2px 9px;border-bottom:1px solid #e5e7eb;vertical-align:top"
    head = "".join(f'<th style="{cell};text-align:left;background:#f9fafb">{escape(text)}</th>' for text in headings)
    found = list(rows)
    lines = []
    for row in found[:_MOST_ROWS]:
        cells = []
        for value in row:
            side = "right" if isinstance(value, (int, float)) and not isinstance(value, bool) else "left"
            shown = escape(value if isinstance(value, Whole) else _text(value))
            if isinstance(value, Whole):
                shown = f'<div style="max-height:12em;overflow:auto;overflow-wrap:anywhere">{shown}</div>'
            cells.append(f'<td style="{cell};text-align:{side}">{shown}</td>')
        lines.append(f"<tr>{''.join(cells)}</tr>")
    more = line(f"and {len(found) - _MOST_ROWS:,} more") if len(found) > _MOST_ROWS else ""
    return (
        f'<table style="border-collapse:collapse;margin:6px 0;color:#111;{FONT}"><thead><tr>{head}</tr></thead>'
        f"<tbody>{''.join(lines)}</tbody></table>{more}"
    )


def counted(number: int, what: str) -> str:
    """Returns a number with its noun.

    Example:
        >>> counted(1, "task"), counted(2, "task")
        ('1 task', '2 tasks')
    """
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def short(text: str, most: int) -> str:
    """Returns a text, cut if it is longer than `most` characters."""
    return text if len(text) <= most else f"{text[: most - 1]}…"


def _text(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return short(str(value), 300)
    return f"{value:,}" if isinstance(value, int) else f"{value:,.3f}"
