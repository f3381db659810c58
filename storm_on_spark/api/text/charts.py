"""Charts as inline SVG for notebooks, with axes: a curve over time, and bars of parts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from storm_on_spark.api.text.html import FONT, escape

_PARTS: Final = ("#93c5fd", "#fcd34d", "#d1d5db", "#34d399", "#c4b5fd", "#f3f4f6")
"""Colours of the parts of a bar."""
_LEFT: Final = 60
"""Room for the numbers of the axis."""
_TOP: Final = 18
"""Room for its unit."""


def sparkline(values: Sequence[float], label: str, every_secs: float = 1.0) -> str:
    """Returns a small chart of values over the last seconds.

    Args:
        values: oldest first.
        label: the meaning of the values.
        every_secs: the time between two values.

    Example:
        >>> sparkline([], "acked/s")
        ''
    """
    if len(values) < 2:
        return ""
    width, height = 320.0, 60.0
    steps, most = _scale(max(values))
    step = width / (len(values) - 1)
    points = [
        f"{_LEFT + number * step:.1f},{_TOP + height * (1 - max(0.0, value) / most):.1f}"
        for number, value in enumerate(values)
    ]
    low = _TOP + height
    area = f"{_LEFT},{low} {' '.join(points)} {_LEFT + width},{low}"
    ago = every_secs * (len(values) - 1)
    return (
        f'<div style="margin:3px 0">{escape(label)}: {values[-1]:,.0f}, at most {max(values):,.0f}</div>'
        f"{_head(_LEFT + width + 30, low + 22)}<title>{escape(label)}</title>"
        f'<polygon points="{area}" fill="#dbeafe"/>'
        f'<polyline points="{" ".join(points)}" fill="none" stroke="#2563eb" stroke-width="1.5"/>'
        f"{_axes(width, height, steps, most, label)}"
        f"{_text(_LEFT, low + 14, f'{ago:,.0f} s ago')}{_text(_LEFT + width, low + 14, 'now')}</svg>"
    )


def stacked_bars(
    bars: Sequence[Sequence[float]], labels: Sequence[str], names: Sequence[str], unit: str, below: str = ""
) -> str:
    """Returns a chart of stacked bars, with a legend.

    Args:
        bars: for each bar the sizes of its parts, from the bottom.
        labels: labels below the bars; if there are many, some are left out.
        names: names of the parts.
        unit: unit of the sizes.
        below: the meaning of the labels.

    Example:
        >>> stacked_bars([], [], [], "ms")
        ''
        >>> stacked_bars([[1, 2], [0, 4]], ["0", "1"], ["plans", "executes"], "ms").count("<rect")
        5
    """
    if not bars:
        return ""
    chart = 150.0
    steps, most = _scale(max(sum(bar) for bar in bars))
    step = max(8.0, min(36.0, 560 / len(bars)))
    long = step * len(bars)
    every = max(1, round(26 / step))
    low = _TOP + chart
    shapes = []
    for number, (bar, label) in enumerate(zip(bars, labels, strict=True)):
        x, y = _LEFT + number * step, low
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
            shapes.append(_text(x + step / 2, low + 14, label))
    for part, name in enumerate(names):
        x, y = _LEFT + long + 14, _TOP + 6 + part * 18
        shapes.append(
            f'<rect x="{x:.1f}" y="{y}" width="10" height="10" fill="{_PARTS[part % len(_PARTS)]}"/>'
            f'<text x="{x + 15:.1f}" y="{y + 9}" font-size="11" fill="#111">{escape(name)}</text>'
        )
    shapes.append(_text(_LEFT + long / 2, low + 29, below))
    return f"{_head(_LEFT + long + 190, low + 36)}{_axes(long, chart, steps, most, unit)}{''.join(shapes)}</svg>"


def _scale(most: float) -> tuple[list[float], float]:
    """Returns round numbers for an axis from 0, and the last of them, which is at least `most`.

    Example:
        >>> _scale(1250), _scale(0)
        (([0.0, 500.0, 1000.0, 1500.0], 1500.0), ([0.0, 1.0], 1.0))
    """
    if most <= 0:
        return [0.0, 1.0], 1.0
    power = 10.0 ** math.floor(math.log10(most / 3))
    step = next(power * factor for factor in (1, 2, 5, 10) if power * factor * 3 >= most)
    count = max(1, math.ceil(most / step - 1e-9))
    return [step * number for number in range(count + 1)], step * count


def _axes(width: float, height: float, steps: Sequence[float], most: float, unit: str) -> str:
    """Returns both axes, with numbers, grid lines and the unit on the vertical one."""
    low = _TOP + height
    shapes = [_text(_LEFT - 5, 10, unit, anchor="start" if len(unit) > 8 else "end")]
    for value in steps:
        y = low - height * value / most
        shapes.append(_stroke(_LEFT, y, _LEFT + width, y, "#e5e7eb"))
        shapes.append(_text(_LEFT - 5, y + 4, f"{value:,.0f}" if most >= 1 else f"{value:g}", anchor="end"))
    shapes += [_stroke(_LEFT, _TOP, _LEFT, low), _stroke(_LEFT, low, _LEFT + width, low)]
    return "".join(shapes)


def _stroke(x1: float, y1: float, x2: float, y2: float, colour: str = "#6b7280") -> str:
    return f'<line x1="{x1:.1f}" x2="{x2:.1f}" y1="{y1:.1f}" y2="{y2:.1f}" stroke="{colour}"/>'


def _text(x: float, y: float, text: str, *, anchor: str = "middle") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="10" fill="#374151">{escape(text)}</text>'


def _head(width: float, height: float) -> str:
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" role="img" '
        f'style="{FONT};background:#fff">'
    )
