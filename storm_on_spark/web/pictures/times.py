"""Curves and bars over time: acks a second, and where the milliseconds of micro-batches went."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from markupsafe import Markup

from storm_on_spark.runtime.reports.batch_times import BatchTimes

_WIDTH: Final = 640.0
_HEIGHT: Final = 150.0
_LEFT: Final = 64.0
_TOP: Final = 14.0
_MOST_BARS: Final = 60


def curve(values: Sequence[float], label: str) -> Markup:
    """Returns a small curve of values, oldest first; nothing for fewer than two.

    Example:
        >>> curve([1.0], "acked a second")
        Markup('')
        >>> "at most 3" in curve([1.0, 3.0, 2.0], "acked a second")
        True
    """
    if len(values) < 2:
        return Markup("")
    width, height, most = 240.0, 40.0, max(max(values), 1e-9)
    step = width / (len(values) - 1)
    points = " ".join(
        f"{at * step:.1f},{height - (height - 2) * max(0.0, v) / most:.1f}" for at, v in enumerate(values)
    )
    text = f"{label}: now {values[-1]:,.0f}, at most {max(values):,.0f}"
    return Markup(
        '<svg class="curve" width="{0:.0f}" height="{1:.0f}" viewBox="0 0 {0:.0f} {1:.0f}" role="img" aria-label="{2}">'
        '<title>{2}</title><polygon points="0,{1:.0f} {3} {0:.0f},{1:.0f}"/><polyline points="{3}"/></svg>'
    ).format(width, height, text, points)


def timeline(times: BatchTimes) -> Markup:
    """Returns a bar for each of the last micro-batches, in its parts; nothing without one."""
    batches = times.batches[-_MOST_BARS:]
    if not batches:
        return Markup("")
    most = _round_up(max(batch.whole for batch in batches))
    step = min(36.0, (_WIDTH - _LEFT) / len(batches))
    low = _TOP + _HEIGHT
    shapes = []
    for number in range(5):
        value = most * number / 4
        y = low - _HEIGHT * number / 4
        shapes.append(
            Markup(
                '<line x1="{:.0f}" x2="{:.0f}" y1="{:.1f}" y2="{:.1f}"/>'
                '<text class="axis" x="{:.0f}" y="{:.1f}">{}</text>'
            ).format(_LEFT, _WIDTH, y, y, _LEFT - 6, y + 4, _duration(value, most))
        )
    every = max(1, round(30 / step))
    for at, batch in enumerate(batches):
        x, y = _LEFT + at * step, low
        words = ", ".join(f"{name} {spent:,.0f} ms" for name, spent in batch.parts.items() if spent >= 0.5)
        bars = []
        for part, spent in enumerate(batch.parts.values()):
            tall = _HEIGHT * spent / most
            y -= tall
            if tall > 0:
                bars.append(
                    Markup('<rect class="part{}" x="{:.1f}" y="{:.1f}" width="{:.1f}" height="{:.1f}"/>').format(
                        part, x + 1, y, max(1.0, step - 2), tall
                    )
                )
        shapes.append(
            Markup("<g><title>micro-batch {}: {:,.0f} ms: {}</title>{}</g>").format(
                batch.number, batch.whole, words, Markup("").join(bars)
            )
        )
        if at % every == 0:
            shapes.append(Markup('<text x="{:.1f}" y="{:.0f}">{}</text>').format(x + step / 2, low + 14, batch.number))
    return Markup(
        '<svg class="timeline" width="{0:.0f}" height="{1:.0f}" viewBox="0 0 {0:.0f} {1:.0f}" role="img" '
        'aria-label="{2}">{3}</svg>'
    ).format(_WIDTH, low + 20, "Time of the last micro-batches, in parts", Markup("").join(shapes))


def _duration(milliseconds: float, most: float) -> str:
    """Returns a duration in the unit that suits the largest.

    Example:
        >>> _duration(5, 20), _duration(0.25, 1), _duration(20_000, 40_000)
        ('5 ms', '0.25 ms', '20 s')
    """
    if most >= 10_000:
        return f"{milliseconds / 1e3:g} s"
    return f"{milliseconds:,.0f} ms" if most >= 4 else f"{milliseconds:.2g} ms"


def _round_up(most: float) -> float:
    """Returns the next of 1, 2, 4, 8, 10, 20 ... that is at least as large.

    Example:
        >>> _round_up(0), _round_up(3), _round_up(130)
        (1.0, 4.0, 200.0)
    """
    size = 1.0
    while size < most:
        size = next((size * factor for factor in (2, 4, 8) if size * factor >= most), size * 10)
    return size
