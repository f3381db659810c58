"""A program of the Streams API with all that keeps something; workers are killed amid it."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow.compute as pc

from storm_on_spark import BaseBasicBolt, Duration, Fields, Topology
from storm_on_spark.streams import LongSum, PairValueMapper, SlidingWindows, StreamBuilder, TumblingWindows
from storm_on_spark.testing import ListSpout, crash

COUNT, KEYS, WINDOW = 300, 5, 500
BASE = 1_700_000_000_000
END = BASE + 10_000_000
CRASHES = (100, 200)


def events(side: int) -> list[tuple[int, int, int]]:
    """Key, number and time; the keys of both sides differ in part."""
    return [((number * 7 + side) % KEYS + side, number, BASE + number * 20) for number in range(COUNT)]


class Pass(BaseBasicBolt):
    """Emits what it gets, for the test to see."""

    def __init__(self, fields: int) -> None:
        self.fields = [f"f{number}" for number in range(fields)]

    def execute(self, tup, collector):
        collector.emit(list(tup))

    def declare_output_fields(self, declarer):
        declarer.declare(Fields(self.fields))


def program(folder: Path) -> Topology:
    """Two spouts; tuples far ahead, which are not tracked, move on the watermark of each task."""
    builder = StreamBuilder()
    left, right = (
        builder.new_stream(
            ListSpout(
                [*events(side), *((key, COUNT, END) for key in range(KEYS + 1))],
                ["key", "number", "ts"],
                message_ids=lambda position: position if position < COUNT else None,
            ),
            PairValueMapper(0, 1),
            name=name,
        ).repartition(2)
        for side, name in enumerate(("left", "right"))
    )
    path = str(folder)

    def kill_once(pair: Any) -> Any:
        if pair[1] in CRASHES:
            crash(Path(path) / f"crash-{pair[1]}")
        return pair

    state = left.map_values(lambda number: 1).update_state_by_key(0, lambda count, value: count + value)
    state.to_pair_stream().map(lambda pair: pair).through(Pass(1), name="counted")
    left.map(kill_once).count().through(Pass(1), name="total")
    window = TumblingWindows.of(Duration(WINDOW)).with_timestamp_field("ts").with_watermark_interval(Duration(50))
    joined = left.window(window).full_outer_join(right.window(window))
    joined.filter(lambda pair: COUNT not in pair[1]).map_to_pair(lambda pair: pair).through(Pass(2), name="joined")
    # A window of this kind keeps partial results, and no values.
    sliding = SlidingWindows.of(Duration(2 * WINDOW), Duration(WINDOW)).with_timestamp_field("ts")
    sliding = sliding.with_watermark_interval(Duration(50))
    left.window(sliding).aggregate_by_key(LongSum()).through(Pass(2), name="summed")
    columns = left.filter(pc.field("value") >= 0)
    columns.count_by_key().through(Pass(2), name="counted-columns")
    columns.window(sliding).aggregate_by_key(LongSum()).through(Pass(2), name="summed-columns")
    return builder.build()


def expected_sums() -> Counter[Any]:
    """What the sums of each sliding window are, and those of what comes far ahead."""
    found: Counter[Any] = Counter((key, COUNT) for key in range(KEYS + 1))
    for end in range(0, COUNT * 20 + 2 * WINDOW, WINDOW):
        sums: Counter[int] = Counter()
        within = [event for event in events(0) if end - 2 * WINDOW < event[2] - BASE <= end]
        for key, number, _ in within:
            sums[key] += number
        found.update((key, sums[key]) for key in {key for key, _, _ in within})
    return found


def expected_joined() -> Counter[Any]:
    """What a full join of each window gives."""
    found: Counter[Any] = Counter()
    for start in range(-WINDOW, COUNT * 20, WINDOW):
        # A window has the time at which it ends, and not that at which it begins.
        sides = [
            [(key, number) for key, number, time in events(side) if start < time - BASE <= start + WINDOW]
            for side in (0, 1)
        ]
        for key in {key for side in sides for key, _ in side}:
            firsts, seconds = ([number for found, number in side if found == key] for side in sides)
            found.update((key, (a, b)) for a in firsts or [None] for b in seconds or [None])
    return found
