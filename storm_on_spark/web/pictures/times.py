"""Curves and bars over time: acks a second, and where the milliseconds of micro-batches and rounds went."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from markupsafe import Markup

from storm_on_spark.api.times import WAITS, BatchTime, RoundTime

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


@dataclass(frozen=True)
class Bar:
    """A bar of a timeline."""

    label: str
    """Below it."""
    words: str
    """All that is to be said of it."""
    parts: Mapping[str, float]
    """Milliseconds, from the bottom."""


def bars_of_batches(batches: Sequence[BatchTime]) -> list[Bar]:
    """Returns a bar for each micro-batch."""
    return [
        Bar(str(each.number), f"micro-batch {each.number}: {each.whole:,.0f} ms: {_in_words(each.parts)}", each.parts)
        for each in batches
    ]


def bars_of_rounds(rounds: Sequence[RoundTime]) -> list[Bar]:
    """Returns a bar for each second of rounds: the work in it, without the wait for tuples.

    Example:
        >>> second = RoundTime(0.0, 2.0, 400, 1000, {"bolts and ackers": 300.0, WAITS: 1600.0})
        >>> bars_of_rounds([second])[0].parts
        {'bolts and ackers': 150.0}
    """
    found = []
    for each in rounds:
        at = f"{datetime.fromtimestamp(each.time).astimezone():%H:%M:%S}"
        counts = f"{each.rounds:,} rounds, {each.tuples:,} tuples in {each.secs:.1f} s"
        parts = {name: spent / max(1e-9, each.secs) for name, spent in each.parts.items() if name != WAITS}
        found.append(Bar(at, f"{at}: {counts}: {_in_words(each.parts)}", parts))
    return found


def _in_words(parts: Mapping[str, float]) -> str:
    return ", ".join(f"{name} {spent:,.0f} ms" for name, spent in parts.items() if spent >= 0.5)


def timeline(bars: Sequence[Bar], about: str) -> Markup:
    """Returns a picture of the last bars, in their parts; nothing without one.

    Args:
        bars: oldest first.
        about: says what the picture shows.
    """
    bars = bars[-_MOST_BARS:]
    if not bars:
        return Markup("")
    most = _round_up(max(sum(bar.parts.values()) for bar in bars))
    step = min(36.0, (_WIDTH - _LEFT) / len(bars))
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
    every = max(1, math.ceil((8 + 7 * max(len(bar.label) for bar in bars)) / step))
    for at, bar in enumerate(bars):
        x, y = _LEFT + at * step, low
        pieces = []
        for part, spent in enumerate(bar.parts.values()):
            tall = _HEIGHT * spent / most
            y -= tall
            if tall > 0:
                pieces.append(
                    Markup('<rect class="part{}" x="{:.1f}" y="{:.1f}" width="{:.1f}" height="{:.1f}"/>').format(
                        part, x + 1, y, max(1.0, step - 2), tall
                    )
                )
        shapes.append(Markup("<g><title>{}</title>{}</g>").format(bar.words, Markup("").join(pieces)))
        if at % every == 0:
            shapes.append(Markup('<text x="{:.1f}" y="{:.0f}">{}</text>').format(x + step / 2, low + 14, bar.label))
    return Markup(
        '<svg class="timeline" width="{0:.0f}" height="{1:.0f}" viewBox="0 0 {0:.0f} {1:.0f}" role="img" '
        'aria-label="{2}">{3}</svg>'
    ).format(_WIDTH, low + 20, about, Markup("").join(shapes))


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
