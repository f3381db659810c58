"""Bar charts as SVG, drawn by hand: the documentation needs no library for a few rectangles."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape

_WIDTH, _LABELS, _ROW, _BAR, _TOP = 760, 260, 26, 16, 44
_END = 130
"""Right of the bars, for the figures."""
_COLORS = {"ours": "#2f6f9f", "native": "#c98a2b", "storm": "#8a8a8a", "command": "#2f6f9f", "bytewax": "#6f9f2f"}
_PALETTE = ("#4e79a7", "#a0cbe8", "#59a14f", "#f28e2b", "#e15759", "#b07aa1", "#9c755f", "#edc948", "#bab0ac")


@dataclass(frozen=True)
class Bar:
    """One bar.

    Args:
        label: beside it.
        value: its length.
        least: where its whisker begins.
        most: where that ends.
        kind: which contender; decides the colour.
    """

    label: str
    value: float
    least: float
    most: float
    kind: str


def bars(title: str, unit: str, rows: Sequence[Bar], *, logarithmic: bool = False) -> str:
    """Returns a horizontal bar chart as an SVG document.

    Args:
        title: above it.
        unit: behind each figure.
        rows: from top to bottom; values are above 0.
        logarithmic: whether each factor of ten is as wide as the next one; the scale begins at a power of ten.
    """
    most = max(row.most for row in rows)
    floor = 10 ** math.floor(math.log10(min(row.least for row in rows))) / 2 if logarithmic else 0.0

    def position(value: float) -> float:
        if logarithmic:
            share = (math.log10(value) - math.log10(floor)) / (math.log10(most) - math.log10(floor))
        else:
            share = value / most
        return _LABELS + max(0.0, share) * (_WIDTH - _LABELS - _END)

    height = _TOP + _ROW * len(rows) + 8
    scale = ", logarithmic scale" if logarithmic else ""
    lines = _begin(title, unit + scale, height)
    for number, row in enumerate(rows):
        top = _TOP + _ROW * number
        middle, end = top + _BAR / 2, position(row.value)
        low, high = position(max(row.least, floor)), position(row.most)
        lines += [
            f'<text x="{_LABELS - 8}" y="{middle + 4.5:.1f}" text-anchor="end" fill="#222222">'
            f"{escape(row.label)}</text>",
            f'<rect x="{_LABELS}" y="{top}" width="{end - _LABELS:.1f}" height="{_BAR}" fill="{_COLORS[row.kind]}"/>',
            f'<path d="M{low:.1f} {middle:.1f}H{high:.1f}M{low:.1f} {middle - 4:.1f}v8M{high:.1f} {middle - 4:.1f}v8" '
            'stroke="#222222" fill="none"/>',
            f'<text x="{high + 6:.1f}" y="{middle + 4.5:.1f}" fill="#222222">{_figure(row.value)}</text>',
        ]
    return "\n".join([*lines, "</svg>"]) + "\n"


def stacked(title: str, unit: str, parts: Mapping[str, float]) -> str:
    """Returns one bar of parts, with a legend below, as an SVG document.

    Args:
        title: above it.
        unit: behind each figure.
        parts: by name, from left to right; values are not below 0.
    """
    total = sum(parts.values())
    height = _TOP + 40 + 22 * len(parts) + 8
    lines = _begin(title, f"{total:.0f} {unit}", height)
    left = 8.0
    for number, (name, value) in enumerate(parts.items()):
        color, top = _PALETTE[number % len(_PALETTE)], _TOP + 50 + 22 * number
        width = (_WIDTH - 16) * value / total
        lines += [
            f'<rect x="{left:.1f}" y="{_TOP}" width="{width:.1f}" height="28" fill="{color}"/>',
            f'<rect x="8" y="{top - 10}" width="12" height="12" fill="{color}"/>',
            f'<text x="28" y="{top}" fill="#222222">{escape(name)}: {value:.1f} {escape(unit)}, '
            f"{100 * value / total:.0f} %</text>",
        ]
        left += width
    return "\n".join([*lines, "</svg>"]) + "\n"


def over_time(
    title: str,
    unit: str,
    seconds: float,
    medians: Sequence[tuple[float, float]],
    most: Sequence[tuple[float, float]],
    spans: Sequence[tuple[float, float]],
) -> str:
    """Returns medians as a line and the slowest as dots over time, on a logarithmic scale, as an SVG document.

    Args:
        title: above it.
        unit: of values.
        seconds: how long.
        medians: seconds and values.
        most: the same of the slowest.
        spans: beginnings and ends of what is marked as checkpoints.
    """
    left, right, top, bottom = 48, _WIDTH - 12, _TOP + 10, 300
    values = [value for _, value in (*medians, *most)] or [1.0]
    low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)) + 1e-9)

    def x(second: float) -> float:
        return left + (right - left) * min(max(second / seconds, 0.0), 1.0)

    def y(value: float) -> float:
        return bottom - (bottom - top) * (math.log10(value) - low) / max(1, high - low)

    lines = _begin(title, f"{unit}, logarithmic scale", bottom + 56)
    lines.append(
        f'<text x="{left}" y="{bottom + 42}" font-size="12" fill="#666666">'
        "Over seconds. Line: median of 0.1 s. Dots: slowest message of 0.1 s. "
        "Bars: micro-batches, which save state.</text>"
    )
    lines += [
        f'<rect x="{x(start):.1f}" y="{top}" width="{max(1.0, x(end) - x(start)):.1f}" height="{bottom - top}" '
        'fill="#e4e4e4"/>'
        for start, end in spans
    ]
    for power in range(low, high + 1):
        height = y(10.0**power)
        lines += [
            f'<path d="M{left} {height:.1f}H{right}" stroke="#bbbbbb" stroke-width="0.5"/>',
            f'<text x="{left - 6}" y="{height + 4.5:.1f}" text-anchor="end" fill="#222222">{10.0**power:g}</text>',
        ]
    step = max(1, round(seconds / 12))
    lines += [
        f'<text x="{x(second):.1f}" y="{bottom + 18}" text-anchor="middle" fill="#222222">{second}</text>'
        for second in range(0, int(seconds) + 1, step)
    ]
    lines += [f'<circle cx="{x(at):.1f}" cy="{y(value):.1f}" r="1.6" fill="#c98a2b"/>' for at, value in most]
    path = "L".join(f"{x(at):.1f} {y(value):.1f}" for at, value in medians)
    return "\n".join([*lines, f'<path d="M{path}" stroke="#2f6f9f" fill="none"/>', "</svg>"]) + "\n"


def _begin(title: str, remark: str, height: int) -> list[str]:
    return [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{height}" '
        f'viewBox="0 0 {_WIDTH} {height}" font-family="sans-serif" font-size="13" role="img">',
        f"<title>{escape(title)}</title>",
        # Readable on dark pages too.
        f'<rect width="{_WIDTH}" height="{height}" fill="#ffffff"/>',
        f'<text x="8" y="24" font-size="15" font-weight="bold" fill="#222222">{escape(title)}'
        f'<tspan font-size="12" font-weight="normal" fill="#666666">  {escape(remark)}</tspan></text>',
    ]


def _figure(value: float) -> str:
    return f"{value:,.0f}" if value >= 10 else f"{value:.1f}"
