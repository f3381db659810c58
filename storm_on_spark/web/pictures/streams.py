"""The picture of a stream: its modules in the order of the flow, each arrow as wide as its rate."""

from __future__ import annotations

from typing import Final

from markupsafe import Markup, escape

from storm_on_spark.api.text.graph import BOX_HEIGHT, BOX_WIDTH, Edge, Node, arrange
from storm_on_spark.api.text.html import short
from storm_on_spark.api.text.printable import one_line
from storm_on_spark.runtime.reports.observer import rate_text
from storm_on_spark.web.pictures.topology import SMALL, arrow_width
from storm_on_spark.web.sites.streams import Step, StreamView

_TITLE_CHARS: Final = 18


def stream_graph(view: StreamView) -> Markup:
    """Returns a stream as a picture; nothing for one whose definition can't be read."""
    if not view.steps:
        return Markup("")
    # A label is unique among modules, and channels have a colon.
    nodes = [Node(step.label, step.label, "", "spout" if step.type == "source" else "bolt") for step in view.steps]
    pairs = list(zip(view.steps, view.steps[1:], strict=False))
    layout = arrange(nodes, [Edge(first.label, second.label, "") for first, second in pairs])
    rates = {(first.label, second.label): _between(first, second) for first, second in pairs}
    most = max((rate or 0.0 for rate in rates.values()), default=0.0)
    drawn = []
    for arrow in layout.arrows:
        rate = rates[arrow.source, arrow.target]
        words = "rate not known" if rate is None else f"{rate_text(rate)} messages a second"
        text = one_line(f"{arrow.source} to {arrow.target}: {words}")
        idle = "" if rate else ' class="idle"'
        drawn.append(
            f'<g class="arrow"><title>{escape(text)}</title>'
            f'<path d="{escape(arrow.path)}" stroke-width="{arrow_width(rate or 0.0, most):.1f}"{idle}/></g>'
        )
    for step in view.steps:
        place = layout.places[step.label]
        drawn.append(_box(step, place.x, place.y))
    inside = Markup("".join(drawn))  # noqa: S704 # every text in it is escaped
    return Markup(
        '<svg class="{4}" xmlns="http://www.w3.org/2000/svg" width="{0:.0f}" height="{1:.0f}" '
        'viewBox="0 0 {0:.0f} {1:.0f}" role="group" aria-label="{2}"><defs><marker id="arrowhead" viewBox="0 0 8 8" '
        'refX="1" refY="4" markerWidth="8" markerHeight="8" markerUnits="userSpaceOnUse" orient="auto">'
        '<path d="M0,0 L8,4 L0,8 z"/></marker></defs>{3}</svg>'
    ).format(
        layout.width,
        layout.height,
        "Stream: " + one_line(", ".join(step.label for step in view.steps[:60])),
        inside,
        "graph small" if layout.width < SMALL else "graph",
    )


def _between(first: Step, second: Step) -> float | None:
    """Returns what goes from one module to the next: what that takes, where it is known."""
    return second.taken if second.instances and second.taken is not None else first.emitted


def _box(step: Step, x: float, y: float) -> str:
    """Returns a module as SVG, in which every text is escaped."""
    bad = [each for each in step.instances if each.state == "failed"]
    count = len(step.instances)
    if step.type in ("tap", "channel"):
        note, kind = step.type, "idle"
    elif not count:
        note, kind = f"{step.type}, does not run", "idle"
    else:
        runs = sum(each.state == "deployed" for each in step.instances)
        note = (
            f"{step.type}, {runs} of {count} run" if runs < count else f"{step.type}, {count} run{'s' * (count == 1)}"
        )
        kind = "spout" if step.type == "source" else "bolt idle"
        kind = "bolt full" if bad else "bolt warm" if runs < count else kind
    label = escape(one_line(f"{step.label}: {note}"))
    name, middle = escape(short(one_line(step.label), _TITLE_CHARS)), x + BOX_WIDTH / 2
    return (
        f'<g class="{kind}"><title>{label}</title>'
        f'<rect x="{x:.1f}" y="{y:.1f}" width="{BOX_WIDTH}" height="{BOX_HEIGHT}" rx="6"/>'
        f'<text class="name" x="{middle:.1f}" y="{y + 19:.1f}">{name}</text>'
        f'<text x="{middle:.1f}" y="{y + 36:.1f}">{escape(note)}</text></g>'
    )
