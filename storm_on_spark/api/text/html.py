"""HTML for notebooks: tables, a graph and a sparkline. No network, no script, and every text is escaped."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape as _escape
from typing import Final

from storm_on_spark.api.text.printable import printable

_FONT: Final = "font-family:system-ui,sans-serif;font-size:12px"
_BOX_WIDTH: Final = 168
_BOX_HEIGHT: Final = 46
_GAP_X: Final = 112
_GAP_Y: Final = 22
_MARGIN: Final = 14
_MOST_ROWS: Final = 200
_PARTS: Final = ("#93c5fd", "#fcd34d", "#d1d5db", "#34d399", "#c4b5fd", "#f3f4f6")
"""Colours of the parts of a bar."""
_COLOURS: Final[Mapping[str, str]] = {"spout": "#dbeafe", "bolt": "#dcfce7", "acker": "#f3f4f6"}


def escape(text: str) -> str:
    """Returns a text for HTML: what turns the direction of a text around would do so there, too."""
    return _escape(printable(text))


@dataclass(frozen=True)
class Node:
    """A box of a graph."""

    id: str
    title: str
    note: str
    kind: str
    """`spout`, `bolt` or `acker`: its colour."""


@dataclass(frozen=True)
class Edge:
    """An arrow of a graph."""

    source: str
    target: str
    label: str


def block(*parts: str) -> str:
    """Returns parts below one another."""
    return f'<div style="{_FONT};color:#111;background:#fff;padding:4px;overflow-x:auto">{"".join(parts)}</div>'


def line(text: str, *, strong: bool = False) -> str:
    """Returns a line of text.

    Example:
        >>> line("a < b")
        '<div style="margin:3px 0">a &lt; b</div>'
    """
    shown = escape(text)
    return f'<div style="margin:3px 0">{f"<b>{shown}</b>" if strong else shown}</div>'


def preformatted(text: str) -> str:
    """Returns lines of text as they are, such as a traceback."""
    return (
        '<pre style="margin:3px 0;padding:6px;background:#fef2f2;color:#111;overflow-x:auto;font-size:11px">'
        f"{escape(text)}</pre>"
    )


def table(headings: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Returns a table; numbers are on the right, with thousands apart.

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
            cells.append(f'<td style="{cell};text-align:{side}">{escape(_text(value))}</td>')
        lines.append(f"<tr>{''.join(cells)}</tr>")
    more = line(f"and {len(found) - _MOST_ROWS:,} more") if len(found) > _MOST_ROWS else ""
    return (
        f'<table style="border-collapse:collapse;margin:6px 0;color:#111;{_FONT}"><thead><tr>{head}</tr></thead>'
        f"<tbody>{''.join(lines)}</tbody></table>{more}"
    )


def counted(number: int, what: str) -> str:
    """Returns a number with its noun.

    Example:
        >>> counted(1, "task"), counted(2, "task")
        ('1 task', '2 tasks')
    """
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def sparkline(values: Sequence[float], label: str) -> str:
    """Returns a small chart of values, oldest first, as inline SVG.

    Example:
        >>> sparkline([], "acked/s")
        ''
    """
    if len(values) < 2:
        return ""
    width, height, most = 320, 44, max(*values, 1e-9)
    step = width / (len(values) - 1)
    points = [
        f"{number * step:.1f},{height - 3 - (height - 8) * max(0.0, value) / most:.1f}"
        for number, value in enumerate(values)
    ]
    area = f"0,{height} {' '.join(points)} {width},{height}"
    return (
        f'<div style="margin:3px 0">{escape(label)}: {values[-1]:,.0f}, at most {max(values):,.0f}</div>'
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" role="img">'
        f"<title>{escape(label)}</title>"
        f'<polygon points="{area}" fill="#dbeafe"/>'
        f'<polyline points="{" ".join(points)}" fill="none" stroke="#2563eb" stroke-width="1.5"/></svg>'
    )


def graph(nodes: Sequence[Node], edges: Sequence[Edge], last: str | None = None) -> str:
    """Returns a picture of boxes and arrows, from left to right, as inline SVG.

    Args:
        nodes: the boxes.
        edges: the arrows; several between the same two are drawn as one.
        last: a box that is drawn to the right of all others.
    """
    where = _columns(nodes, edges)
    if last is not None:
        where[last] = 1 + max(where.values())
    rows: dict[int, list[Node]] = {}
    for node in nodes:
        rows.setdefault(where[node.id], []).append(node)
    tallest = max((len(column) for column in rows.values()), default=0)
    height = 2 * _MARGIN + tallest * (_BOX_HEIGHT + _GAP_Y) + _GAP_Y
    width = 2 * _MARGIN + (max(rows, default=0) + 1) * (_BOX_WIDTH + _GAP_X) - _GAP_X
    places: dict[str, tuple[float, float]] = {}
    for number, column in rows.items():
        above = (height - len(column) * (_BOX_HEIGHT + _GAP_Y) + _GAP_Y) / 2
        for index, node in enumerate(column):
            places[node.id] = (_MARGIN + number * (_BOX_WIDTH + _GAP_X), above + index * (_BOX_HEIGHT + _GAP_Y))
    labels: dict[tuple[str, str], list[str]] = {}
    for edge in edges:
        labels.setdefault((edge.source, edge.target), []).append(edge.label)
    arrows = "".join(_arrow(places[a], places[b], ", ".join(found)) for (a, b), found in labels.items())
    boxes = "".join(_box(node, *places[node.id]) for node in nodes)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height:.0f}" role="img" '
        f'style="{_FONT};background:#fff"><defs><marker id="storm-arrow" viewBox="0 0 8 8" refX="8" refY="4" '
        'markerWidth="8" markerHeight="8" orient="auto"><path d="M0,0 L8,4 L0,8 z" fill="#6b7280"/></marker></defs>'
        f"{arrows}{boxes}</svg>"
    )


def _columns(nodes: Sequence[Node], edges: Sequence[Edge]) -> dict[str, int]:
    """Returns the column of each box: one to the right of the last box that feeds it. Back edges don't count."""
    forward: list[Edge] = []
    order: dict[str, int] = {}
    targets: dict[str, list[Edge]] = {}
    for edge in edges:
        targets.setdefault(edge.source, []).append(edge)
    for start in [node.id for node in nodes if node.kind == "spout"] + [node.id for node in nodes]:
        if start in order:
            continue
        open_now = {start}
        order[start] = len(order)
        todo = [(start, iter(targets.get(start, ())))]
        while todo:
            here, following = todo[-1]
            arrow = next(following, None)
            if arrow is None:
                open_now.discard(here)
                todo.pop()
            elif arrow.target not in open_now:
                forward.append(arrow)
                if arrow.target not in order:
                    order[arrow.target] = len(order)
                    open_now.add(arrow.target)
                    todo.append((arrow.target, iter(targets.get(arrow.target, ()))))
    found = {node.id: 0 for node in nodes}
    for _ in nodes:
        changed = False
        for edge in forward:
            if found[edge.target] <= found[edge.source]:
                found[edge.target] = found[edge.source] + 1
                changed = True
        if not changed:
            break
    return found


def _box(node: Node, x: float, y: float) -> str:
    return (
        f'<g><title>{escape(node.title)}: {escape(node.note)}</title><rect x="{x}" y="{y:.1f}" width="{_BOX_WIDTH}" '
        f'height="{_BOX_HEIGHT}" rx="6" fill="{_COLOURS.get(node.kind, "#fff")}" stroke="#9ca3af"/>'
        f'<text x="{x + _BOX_WIDTH / 2}" y="{y + 19:.1f}" text-anchor="middle" font-weight="600" fill="#111">'
        f"{escape(_short(node.title, 23))}</text>"
        f'<text x="{x + _BOX_WIDTH / 2}" y="{y + 36:.1f}" text-anchor="middle" font-size="10.5" fill="#4b5563">'
        f"{escape(_short(node.note, 31))}</text></g>"
    )


def _arrow(start: tuple[float, float], end: tuple[float, float], label: str) -> str:
    (x1, y1), (x2, y2) = start, end
    if x2 > x1:
        x1, y1, y2 = x1 + _BOX_WIDTH, y1 + _BOX_HEIGHT / 2, y2 + _BOX_HEIGHT / 2
        bend = (x2 - x1) / 2
        path = f"M{x1},{y1:.1f} C{x1 + bend},{y1:.1f} {x2 - bend},{y2:.1f} {x2},{y2:.1f}"
        x, y = x2 - _GAP_X / 2, y2 - 5 if y1 == y2 else (y1 + 3 * y2) / 4 - 5
    else:
        # Back: below the boxes.
        x1, x2 = x1 + _BOX_WIDTH / 2, x2 + _BOX_WIDTH / 2 - (12 if start == end else 0)
        y1, y2 = y1 + _BOX_HEIGHT, y2 + _BOX_HEIGHT
        low = max(y1, y2) + 26
        path = f"M{x1},{y1:.1f} C{x1},{low:.1f} {x2},{low:.1f} {x2},{y2:.1f}"
        x, y = (x1 + x2) / 2, low - 3
    return (
        f'<path d="{path}" fill="none" stroke="#6b7280" marker-end="url(#storm-arrow)"/>'
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="middle" font-size="10" fill="#374151">'
        f"<title>{escape(label)}</title>{escape(_short(label, 20))}</text>"
    )


def _short(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"


def _text(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return _short(str(value), 300)
    return f"{value:,}" if isinstance(value, int) else f"{value:,.3f}"


def stacked_bars(bars: Sequence[Sequence[float]], labels: Sequence[str], names: Sequence[str], unit: str) -> str:
    """Returns a chart of bars, each of parts on one another, as inline SVG with a legend.

    Args:
        bars: for each bar the sizes of its parts, from the bottom.
        labels: below the bars; some are left out where there are many.
        names: of the parts.
        unit: of the sizes.

    Example:
        >>> stacked_bars([], [], [], "ms")
        ''
        >>> stacked_bars([[1, 2], [0, 4]], ["0", "1"], ["plans", "executes"], "ms").count("<rect")
        5
    """
    if not bars:
        return ""
    left, height, chart = 60, 190, 150
    most = max(sum(bar) for bar in bars) or 1.0
    step = max(8.0, min(36.0, 560 / len(bars)))
    width = left + step * len(bars) + 190
    every = max(1, round(26 / step))
    shapes = []
    for share in (0.0, 0.5, 1.0):
        y = 10 + chart * (1 - share)
        shapes.append(
            f'<line x1="{left}" x2="{left + step * len(bars):.1f}" y1="{y:.1f}" y2="{y:.1f}" stroke="#e5e7eb"/>'
            f'<text x="{left - 4}" y="{y + 4:.1f}" text-anchor="end" font-size="10" fill="#374151">'
            f"{most * share:,.0f}{f' {escape(unit)}' if share == 1 else ''}</text>"
        )
    for number, (bar, label) in enumerate(zip(bars, labels, strict=True)):
        x, y = left + number * step, 10.0 + chart
        for part, size in enumerate(bar):
            tall = chart * size / most
            y -= tall
            if tall > 0:
                what = f"{label}: {names[part]}; here {size:,.0f} {unit}"
                shapes.append(
                    f'<rect x="{x + 1:.1f}" y="{y:.1f}" width="{step - 2:.1f}" height="{tall:.1f}" '
                    f'fill="{_PARTS[part % len(_PARTS)]}"><title>{escape(what)}</title></rect>'
                )
        if number % every == 0:
            shapes.append(
                f'<text x="{x + step / 2:.1f}" y="{chart + 24}" text-anchor="middle" font-size="10" fill="#374151">'
                f"{escape(label)}</text>"
            )
    for part, name in enumerate(names):
        x, y = left + step * len(bars) + 14, 16 + part * 18
        shapes.append(
            f'<rect x="{x:.1f}" y="{y}" width="10" height="10" fill="{_PARTS[part % len(_PARTS)]}"/>'
            f'<text x="{x + 15:.1f}" y="{y + 9}" font-size="11" fill="#111">{escape(name)}</text>'
        )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height}" role="img" '
        f'style="{_FONT};background:#fff">{"".join(shapes)}</svg>'
    )
