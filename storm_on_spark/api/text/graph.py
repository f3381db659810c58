"""A graph as inline SVG for notebooks: boxes from left to right, arrows between them, and labels beside the arrows.

An arrow to a later column bends only near its two ends; between them it is level, with its label above. If several
arrows leave one box, each is level with its target; if several reach one box, with its source. An arrow past other
columns goes between their boxes, and an arrow to an earlier column goes below all boxes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from storm_on_spark.api.text.html import FONT, escape, short

BOX_WIDTH: Final = 168
BOX_HEIGHT: Final = 46
_GAP_X: Final = 168
_GAP_Y: Final = 26
_BEND: Final = 30
"""Width of a bend of an arrow; a gap has two bends, with the label between them."""
_HEAD: Final = 8
_LANE: Final = 22
"""Height of a line below the boxes, with its label."""
MARGIN: Final = 14
_MOST_CHARS: Final = 19
"""Most characters of a label; a tooltip shows a longer one in full."""
_COLOURS: Final[Mapping[str, str]] = {"spout": "#dbeafe", "bolt": "#dcfce7", "acker": "#f3f4f6"}


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


@dataclass(frozen=True)
class Place:
    """Where a box is."""

    column: int
    x: float
    y: float

    @property
    def right(self) -> float:
        """Its right side."""
        return self.x + BOX_WIDTH

    @property
    def bottom(self) -> float:
        """Its lower side."""
        return self.y + BOX_HEIGHT

    @property
    def middle(self) -> float:
        """Half of its height."""
        return self.y + BOX_HEIGHT / 2


@dataclass(frozen=True)
class Arrow:
    """Where an arrow is, with all edges between the same two boxes."""

    source: str
    target: str
    label: str
    path: str
    """The `d` of an SVG path, from the source's box to where the arrow head begins."""
    x: float
    """Middle of its label."""
    y: float
    """Base line of its label."""


@dataclass(frozen=True)
class Layout:
    """Where the boxes and arrows of a graph are; what draws them chooses colours and texts.

    Example:
        >>> found = arrange([Node("a", "a", "", "spout"), Node("b", "b", "", "bolt")], [Edge("a", "b", "shuffle")])
        >>> found.places["a"].column, found.places["b"].column, found.arrows[0].label
        (0, 1, 'shuffle')
    """

    places: Mapping[str, Place]
    arrows: tuple[Arrow, ...]
    bottom: float
    """Below everything that is drawn."""

    @property
    def width(self) -> float:
        """Of the picture."""
        return max((place.right for place in self.places.values()), default=0.0) + MARGIN + _BEND

    @property
    def height(self) -> float:
        """Of the picture."""
        return self.bottom + MARGIN


def arrange(nodes: Sequence[Node], edges: Sequence[Edge], last: Node | None = None) -> Layout:
    """Returns where boxes and arrows are.

    Args:
        nodes: the boxes.
        edges: the arrows; several between the same two are one.
        last: a box to the right of all others.
    """
    columns = _columns(nodes, edges)
    if last is not None:
        columns[last.id] = 1 + max(columns.values(), default=-1)
    places = _places([*nodes, *([last] if last else [])], columns)
    labels: dict[tuple[str, str], list[str]] = {}
    for edge in edges:
        labels.setdefault((edge.source, edge.target), []).append(edge.label)
    leave, reach = Counter(source for source, _ in labels), Counter(target for _, target in labels)
    bottom = max((place.bottom for place in places.values()), default=0.0) + 8
    arrows = []
    for (source, target), found in labels.items():
        start, end = places[source], places[target]
        if end.column > start.column:
            level = end.middle if reach[target] <= leave[source] else start.middle
            path, x, y = _forward(start, end, level, places.values())
        else:
            bottom += _LANE
            path, x, y = _back(start, end, bottom)
        arrows.append(Arrow(source, target, ", ".join(found), path, x, y))
    return Layout(places, tuple(arrows), bottom)


def graph(nodes: Sequence[Node], edges: Sequence[Edge], last: Node | None = None, label: str = "") -> str:
    """Returns boxes and arrows as SVG, from left to right.

    Args:
        nodes: the boxes.
        edges: the arrows; several between the same two are drawn as one.
        last: a box to the right of all others, which all of them send to.
        label: the label of the arrow to it.
    """
    layout = arrange(nodes, edges, last)
    places, bottom = layout.places, layout.bottom
    shapes = [_line(arrow.path) + _label(arrow.x, arrow.y, arrow.label) for arrow in layout.arrows]
    if last is not None and nodes:
        bottom += _LANE
        x, tip = places[last.id].x + BOX_WIDTH / 2, places[last.id].bottom + _HEAD
        path = f"M{MARGIN},{bottom:.1f} L{x - 8:.1f},{bottom:.1f} Q{x:.1f},{bottom:.1f} {x:.1f},{bottom - 8:.1f}"
        shapes.append(_line(f"{path} L{x:.1f},{tip:.1f}", dashed=True))
        shapes.append(_label((MARGIN + x) / 2, bottom - 4, label, 80))
    shapes += [_box(node, places[node.id]) for node in [*nodes, *([last] if last else [])]]
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{layout.width:.0f}" height="{bottom + MARGIN:.0f}" role="img" '
        f'style="{FONT};background:#fff"><defs><marker id="storm-arrow" viewBox="0 0 8 8" refX="0" refY="4" '
        f'markerWidth="{_HEAD}" markerHeight="{_HEAD}" orient="auto"><path d="M0,0 L8,4 L0,8 z" fill="#6b7280"/>'
        f"</marker></defs>{''.join(shapes)}</svg>"
    )


def _places(nodes: Sequence[Node], columns: Mapping[str, int]) -> dict[str, Place]:
    rows: dict[int, list[Node]] = {}
    for node in nodes:
        rows.setdefault(columns[node.id], []).append(node)
    step = BOX_HEIGHT + _GAP_Y
    height = max((len(column) for column in rows.values()), default=0) * step - _GAP_Y
    places = {}
    for number, column in rows.items():
        above = MARGIN + _LANE / 2 + (height - len(column) * step + _GAP_Y) / 2
        for index, node in enumerate(column):
            x = MARGIN + _BEND + number * (BOX_WIDTH + _GAP_X)
            places[node.id] = Place(number, x, above + index * step)
    return places


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


def _forward(start: Place, end: Place, level: float, places: Iterable[Place]) -> tuple[str, float, float]:
    """Returns the path of an arrow to a later column, level in the middle, and the place of its label."""
    x1, x2 = start.right, end.x - _HEAD
    left, right = x1 + _BEND, x2 - _BEND
    between = [place for place in places if start.column < place.column < end.column]
    if between:
        level = _free(level, between)
    path = f"M{x1:.1f},{start.middle:.1f}{_bent(x1, start.middle, level)}"
    path += f" L{right:.1f},{level:.1f}{_bent(right, level, end.middle)}"
    middle = (left + right) / 2 if not between else between[0].x + BOX_WIDTH / 2
    return path, middle, level - 4


def _free(level: float, between: Sequence[Place]) -> float:
    """Returns the height next to `level` at which a line passes between boxes, with room for its label."""
    edges = [place.y - 6 for place in between] + [place.bottom + _GAP_Y - 6 for place in between]
    free = [y for y in [level, *edges] if not any(place.y - 5 < y < place.bottom + 16 for place in between)]
    return min(free, key=lambda y: abs(y - level))


def _back(start: Place, end: Place, low: float) -> tuple[str, float, float]:
    """Returns the same of an arrow to the same or an earlier column, which passes below all boxes."""
    x1, x2 = start.right, end.x - _HEAD
    right, left = x1 + _BEND / 2, x2 - _BEND / 2
    y1, y2 = start.middle + 12, end.middle + 12
    path = (
        f"M{x1:.1f},{y1:.1f} L{right - 8:.1f},{y1:.1f} Q{right:.1f},{y1:.1f} {right:.1f},{y1 + 8:.1f} "
        f"L{right:.1f},{low - 8:.1f} Q{right:.1f},{low:.1f} {right - 8:.1f},{low:.1f} "
        f"L{left + 8:.1f},{low:.1f} Q{left:.1f},{low:.1f} {left:.1f},{low - 8:.1f} "
        f"L{left:.1f},{y2 + 8:.1f} Q{left:.1f},{y2:.1f} {left + 8:.1f},{y2:.1f} L{x2:.1f},{y2:.1f}"
    )
    return path, (left + right) / 2, low - 4


def _bent(x: float, y: float, to: float) -> str:
    """Returns the part of a path from (x, y) to the height `to`, one bend further right."""
    if y == to:
        return f" L{x + _BEND:.1f},{to:.1f}"
    half = x + _BEND / 2
    return f" C{half:.1f},{y:.1f} {half:.1f},{to:.1f} {x + _BEND:.1f},{to:.1f}"


def _line(path: str, *, dashed: bool = False) -> str:
    dashes = ' stroke-dasharray="4 3"' if dashed else ""
    return f'<path d="{path}" fill="none" stroke="#6b7280"{dashes} marker-end="url(#storm-arrow)"/>'


def _label(x: float, y: float, text: str, most: int = _MOST_CHARS) -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="middle" font-size="10" fill="#374151">'
        f"<title>{escape(text)}</title>{escape(short(text, most))}</text>"
    )


def _box(node: Node, place: Place) -> str:
    x, y = place.x, place.y
    return (
        f'<g><title>{escape(node.title)}: {escape(node.note)}</title><rect x="{x}" y="{y:.1f}" width="{BOX_WIDTH}" '
        f'height="{BOX_HEIGHT}" rx="6" fill="{_COLOURS.get(node.kind, "#fff")}" stroke="#9ca3af"/>'
        f'<text x="{x + BOX_WIDTH / 2}" y="{y + 19:.1f}" text-anchor="middle" font-weight="600" fill="#111">'
        f"{escape(short(node.title, 23))}</text>"
        f'<text x="{x + BOX_WIDTH / 2}" y="{y + 36:.1f}" text-anchor="middle" font-size="10.5" fill="#4b5563">'
        f"{escape(short(node.note, 31))}</text></g>"
    )
