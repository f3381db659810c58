"""A program of the Streams API with windows, joins and state, and what it must give."""

from __future__ import annotations

import operator
from collections import Counter, defaultdict
from typing import Any

from windowed import KEYS, LAG, SOURCES, Event, Gather, Shape, source

from storm_on_spark import Duration, Topology
from storm_on_spark.streams import PairValueMapper, SlidingWindows, StreamBuilder

RESULTS = ("counted", "summed", "joined", "state", "total")
"""What the program gives, each kept by a bolt of that name."""
AHEAD = 8 * KEYS
"""Tuples that move on the watermark, of each source."""


def program(events: list[Event], shape: Shape) -> Topology:
    builder = StreamBuilder()
    left, right = (
        builder.new_stream(source(events, name, len(events)), PairValueMapper(1, 0), name=name) for name in SOURCES
    )
    if not shape.fused:
        left, right = left.repartition(2), right.repartition(2)
    window = SlidingWindows.of(Duration(shape.length), Duration(shape.slide)).with_timestamp_field("time")
    window = window.with_lag(Duration(LAG)).with_watermark_interval(Duration(700))
    results: tuple[Any, ...] = (
        left.map_values(lambda number: number + 1).window(window).count_by_key(),
        right.window(window).reduce_by_key(operator.add),
        left.window(window).full_outer_join(right.window(window)),
        left.map_values(lambda number: 1).update_state_by_key(0, operator.add).to_pair_stream(),
        left.filter(lambda pair: True).count(),
    )
    for name, stream in zip(RESULTS, results, strict=True):
        stream.to(Gather(), 1, name=name)
    return builder.build()


def check(events: list[Event], shape: Shape, found: dict[str, list[Any]]) -> None:
    """Checks what the last bolts have gathered. No event may be late."""
    ends: defaultdict[int, list[Event]] = defaultdict(list)
    for event in events:
        first = -(-event.time // shape.slide) * shape.slide
        for end in range(first, event.time + shape.length, shape.slide):
            ends[end].append(event)
    expected: defaultdict[str, Counter[Any]] = defaultdict(Counter)
    for inside in ends.values():
        for key in range(KEYS):
            sides = [[event.number for event in inside if (event.source, event.key) == (name, key)] for name in SOURCES]
            if sides[0]:
                expected["counted"][key, len(sides[0])] += 1
            if sides[1]:
                expected["summed"][key, sum(sides[1])] += 1
            if any(sides):
                expected["joined"].update((key, (a, b)) for a in sides[0] or [None] for b in sides[1] or [None])
    keys = Counter(event.key for event in events if event.source == SOURCES[0])
    keys.update(at % KEYS for at in range(AHEAD))
    expected["state"].update((key, number) for key, total in keys.items() for number in range(1, total + 1))
    expected["total"].update(range(1, sum(keys.values()) + 1))
    for name in RESULTS:
        # The time of the event travels with values of which a window is made, too; it is the last one.
        given = [values[0] if name == "total" else tuple(values[:2]) for values in found.get(name, [])]
        assert Counter(given) == expected[name], name
