"""The way of one message as bars over time: when each tuple was emitted, how long it waited, and how long it took."""

from __future__ import annotations

from typing import Final

from markupsafe import Markup

from storm_on_spark.api.text.html import short
from storm_on_spark.api.text.printable import one_line
from storm_on_spark.runtime.samples.trees import Step, Tree

_LABEL: Final = 230.0
_BARS: Final = 560.0
_ROW: Final = 24.0
_TOP: Final = 26.0
_MOST_ROWS: Final = 120
_LEAST: Final = 2.0
"""Width of a bar that is shorter than can be seen."""
_MOST_DEPTH: Final = 8


def tree_picture(tree: Tree) -> Markup:
    """Returns a message's way as a picture; nothing without tuples."""
    steps = tree.steps[:_MOST_ROWS]
    if not steps:
        return Markup("")
    last = tree.ended if tree.end is None else max(tree.ended, tree.end.time)
    span = max(last - tree.began, 1e-6)

    def at(moment: float) -> float:
        return _LABEL + _BARS * min(1.0, max(0.0, (moment - tree.began) / span))

    height = _TOP + _ROW * len(steps) + 8
    drawn = [
        Markup(
            '<line x1="{0:.1f}" x2="{0:.1f}" y1="{1:.0f}" y2="{2:.0f}"/>'
            '<text class="tick" x="{0:.1f}" y="16">{3}</text>'
        ).format(_LABEL + _BARS * part, _TOP - 4, height - 6, _ms(span * part))
        for part in (0.0, 0.5, 1.0)
    ]
    for row, step in enumerate(steps):
        drawn.append(_row(step, _TOP + _ROW * row, at))
    text = f"The way of message {tree.root}: {len(steps)} tuples in {_ms(span)}, {tree.outcome}; see the table"
    return Markup(
        '<svg class="way" width="{0:.0f}" height="{1:.0f}" viewBox="0 0 {0:.0f} {1:.0f}" role="img" aria-label="{2}">'
        "<title>{2}</title>{3}</svg>"
    ).format(_LABEL + _BARS + 60, height, text, Markup("").join(drawn))


def _row(step: Step, y: float, at: object) -> Markup:
    assert callable(at)
    executed, emitted = step.execute, step.emit
    name = "nobody yet" if executed is None else executed.component
    indent = 12.0 * min(step.depth, _MOST_DEPTH)
    parts = [
        Markup('<text class="who" x="{:.1f}" y="{:.1f}">{}</text>').format(
            4 + indent, y + 15, short(one_line(name), int((_LABEL - indent - 12) / 7.5))
        )
    ]
    if emitted is not None and executed is not None:
        start, end = at(emitted.time), at(executed.time)
        parts.append(_bar("waits", start, end, y + 7, 6))
    elif emitted is not None:
        parts.append(_bar("waits", at(emitted.time), at(emitted.time), y + 7, 6))
    if executed is not None:
        kind = {"acked": "acked", "open": "open"}.get(executed.outcome, "bad")
        parts.append(_bar(kind, at(executed.time), at(executed.time + executed.secs), y + 3, 14))
    words = f"{name}: {'' if executed is None else executed.outcome}"
    return Markup("<g><title>{}</title>{}</g>").format(one_line(words), Markup("").join(parts))


def _bar(kind: str, start: float, end: float, y: float, height: float) -> Markup:
    return Markup('<rect class="{}" x="{:.1f}" y="{:.1f}" width="{:.1f}" height="{:.0f}"/>').format(
        kind, start, y, max(_LEAST, end - start), height
    )


def _ms(secs: float) -> str:
    return f"{secs:,.1f} s" if secs >= 10 else f"{1000 * secs:,.0f} ms" if secs >= 0.01 else f"{1000 * secs:.2f} ms"
