"""The graph of a topology: each arrow as wide as its rate, each bolt in the colour of its load."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from typing import Final

from markupsafe import Markup, escape

from storm_on_spark.api.text.graph import BOX_HEIGHT, BOX_WIDTH, Edge, Node, arrange
from storm_on_spark.api.text.html import short
from storm_on_spark.api.text.printable import one_line
from storm_on_spark.runtime.reports.observer import rate_text
from storm_on_spark.web.model import Part, Shape
from storm_on_spark.web.rates import Pace

_LEVELS: Final = ((0.3, "cool"), (0.7, "warm"), (0.9, "hot"))
SMALL: Final = 1500
"""Below this width a picture may shrink to that of the page; a larger one scrolls."""
_TITLE_CHARS: Final = 18
_NOTE_CHARS: Final = 27


def load_class(capacity: float | None) -> str:
    """Returns the class of a box by its bolt's capacity.

    Example:
        >>> [load_class(capacity) for capacity in (None, 0.0, 0.5, 0.8, 1.2)]
        ['idle', 'cool', 'warm', 'hot', 'full']
    """
    if capacity is None:
        return "idle"
    return next((name for limit, name in _LEVELS if capacity < limit), "full")


def load_word(capacity: float | None) -> str:
    """Returns the same for people who don't see colours."""
    return {"idle": "no load known", "cool": "little load", "warm": "some load", "hot": "much load"}.get(
        load_class(capacity), "overloaded"
    )


def topology_graph(shape: Shape, pace: Pace, links: Mapping[str, str]) -> Markup:
    """Returns a topology as a picture.

    Args:
        shape: its components, and what is between them.
        pace: what they do.
        links: the page of each component, by its id.
    """
    if not shape.parts:
        return Markup("")
    parts = sorted(shape.parts.values(), key=lambda part: (not part.is_spout, part.id))
    nodes = [Node(part.id, part.id, "", "spout" if part.is_spout else "bolt") for part in _in_order(parts, shape)]
    edges = [Edge(link.source, link.target, link.grouping) for link in shape.links]
    layout = arrange(nodes, edges)
    most = max(pace.components.values(), default=0.0)
    sources = Counter(target for _, target in {(link.source, link.target) for link in shape.links})
    drawn = []
    for arrow in layout.arrows:
        # What arrives is what a bolt with one input executes; of several inputs, what is emitted is known apart.
        counted = arrow.target if sources[arrow.target] == 1 else arrow.source
        rate = pace.components.get(counted, 0.0)
        width = arrow_width(rate, most)
        text = f"{arrow.source} to {arrow.target}: {arrow.label}; {rate_text(rate)} tuples a second"
        idle = ' class="idle"' if rate <= 0 else ""
        # Every text in an f-string here is escaped. `Markup.format` escapes by itself, in four times the time.
        drawn.append(
            f'<g class="arrow"><title>{escape(one_line(text))}</title>'
            f'<path d="{escape(arrow.path)}" stroke-width="{width:.1f}"{idle}/>'
            f'<text x="{arrow.x:.1f}" y="{arrow.y - width / 2:.1f}">'
            f"{escape(short(one_line(arrow.label), _TITLE_CHARS))}</text></g>"
        )
    for part in parts:
        place = layout.places[part.id]
        drawn.append(_box(part, place.x, place.y, pace, links.get(part.id, "")))
    width, height = layout.width, layout.height
    parts_of_it = Markup("".join(drawn))  # noqa: S704 # every text in it is escaped
    classes = "graph small" if width < SMALL else "graph"
    words = ", ".join(sorted(shape.parts)[:60])
    return Markup(
        '<svg class="{4}" xmlns="http://www.w3.org/2000/svg" width="{0:.0f}" height="{1:.0f}" '
        'viewBox="0 0 {0:.0f} {1:.0f}" role="group" aria-label="{2}"><defs><marker id="arrowhead" viewBox="0 0 8 8" '
        'refX="1" refY="4" markerWidth="8" markerHeight="8" markerUnits="userSpaceOnUse" orient="auto">'
        '<path d="M0,0 L8,4 L0,8 z"/></marker></defs>{3}</svg>'
    ).format(width, height, f"Graph of the topology: {one_line(words)}", parts_of_it, classes)


def _in_order(parts: list[Part], shape: Shape) -> list[Part]:
    """Returns components so that those which are fed by neighbours are neighbours: fewer arrows cross."""
    place = {part.id: float(at) for at, part in enumerate(parts)}
    feeds: dict[str, list[str]] = {}
    for link in shape.links:
        feeds.setdefault(link.target, []).append(link.source)
    for _ in range(8):
        for part in parts:
            sources = [place[name] for name in feeds.get(part.id, ()) if name in place and name != part.id]
            if sources:
                place[part.id] = sum(sources) / len(sources) + 1e-6 * place[part.id]
    return sorted(parts, key=lambda part: (place[part.id], part.id))


def arrow_width(rate: float, most: float) -> float:
    """Returns how wide an arrow is: 1 for no tuple, up to 7 for the most, in steps of magnitude."""
    if rate <= 0 or most <= 0:
        return 1.0
    return 1.5 + 5.5 * math.log1p(rate) / math.log1p(most)


def _box(part: Part, x: float, y: float, pace: Pace, link: str) -> str:
    """Returns a component as SVG, in which every text is escaped."""
    rate, capacity = pace.components.get(part.id, 0.0), pace.capacity.get(part.id)
    note = f"{rate_text(rate)}/s"
    if not part.is_spout and capacity is not None:
        note += f", {100 * capacity:.0f} % busy"
    kind = "spout" if part.is_spout else f"bolt {load_class(capacity)}"
    what = "spout" if part.is_spout else f"bolt, {load_word(capacity)}"
    tasks = f"{len(part.tasks)} task{'' if len(part.tasks) == 1 else 's'}"
    label = escape(one_line(f"{part.id}: {what}, {tasks}, {rate_text(rate)} tuples a second"))
    name = escape(short(one_line(part.id), _TITLE_CHARS))
    note = escape(short(note if len(note) > 8 else f"{note}, {tasks}", _NOTE_CHARS))
    middle = x + BOX_WIDTH / 2
    return (
        f'<a href="{escape(link)}" class="{kind}" aria-label="{label}"><title>{label}</title>'
        f'<rect x="{x:.1f}" y="{y:.1f}" width="{BOX_WIDTH}" height="{BOX_HEIGHT}" rx="6"/>'
        f'<text class="name" x="{middle:.1f}" y="{y + 19:.1f}">{name}</text>'
        f'<text x="{middle:.1f}" y="{y + 36:.1f}">{note}</text></a>'
    )
