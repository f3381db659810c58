"""Random programs: they give the same with any number of tasks, and over restarts."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pyarrow.compute as pc
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from topology_bench import Gather, TopologyBench

from storm_on_spark import compile_topology
from storm_on_spark.streams import Duration, PairStream, PairValueMapper, StreamBuilder, TumblingWindows
from storm_on_spark.testing import ListSpout

WINDOW = TumblingWindows.of(Duration.seconds(1))

STEPS: dict[str, Any] = {
    "map": lambda s: s.map_to_pair(lambda pair: (pair[0] + 1, pair[1])),
    "filter": lambda s: s.filter(lambda pair: pair[0] != 1),
    "filter columns": lambda s: s.filter(pc.field("key") != 1),
    "flat_map_values": lambda s: s.flat_map_values(lambda value: [value, value]),
    "count_by_key": lambda s: s.count_by_key(),
    "reduce_by_key": lambda s: s.reduce_by_key(max),
    "group_by_key": lambda s: s.group_by_key().map_values(len),
    "count": lambda s: s.count().map_to_pair(lambda count: (0, count)),
    "branch": lambda s: s.branch(lambda pair: pair[0] == 0, lambda pair: True)[1],
    "update": lambda s: s.update_state_by_key(0, lambda state, value: state + 1).to_pair_stream(),
}
PROGRAMS = st.lists(
    st.tuples(
        st.sampled_from([*STEPS, "repartition", "window", "join", "union"]), st.integers(0, 9), st.integers(0, 9)
    ),
    max_size=6,
)


def built(program: list[Any], parallelism: int) -> tuple[Any, list[Gather]]:
    """Builds a program; each step makes a stream of an earlier one, or of two."""
    builder = StreamBuilder()
    streams: list[PairStream[Any, Any]] = [
        builder.new_stream(ListSpout([], fields=["k", "v"]), PairValueMapper(0, 1), parallelism) for _ in range(2)
    ]
    windowed = [False, False]
    for name, first, second in program:
        i, j = first % len(streams), second % len(streams)
        stream, in_window = streams[i], windowed[i]
        if name in STEPS:
            streams.append(STEPS[name](stream))
        elif name == "repartition":
            # With an operation before it, as a bolt gets each stream once.
            moved = stream.map_values(lambda value: value)
            streams.append(moved.repartition(second % 3 + 1) if parallelism > 1 else moved)
        elif name == "window" and not in_window:
            streams.append(stream.window(WINDOW))
        elif i != j and in_window == windowed[j] and name in ("union", "join"):
            other = streams[j]
            streams.append(stream.union(other) if name == "union" else stream.join(other, lambda a, b: a * 10 + b))
        else:
            continue
        windowed.append((in_window or name == "window") and name != "update")
    gathers = []
    for stream in streams:
        gathers.append(Gather())
        stream.map(lambda pair: pair).to(gathers[-1])
    return builder.build(), gathers


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(
    PROGRAMS,
    st.lists(st.tuples(st.integers(0, 1), st.integers(0, 2), st.integers(0, 4)), min_size=1, max_size=10),
    st.integers(2, 3),
)
def test_a_program_gives_the_same_with_any_number_of_tasks_and_over_restarts(
    program: list[Any], rows: list[Any], parallelism: int
) -> None:
    found = []
    for tasks in (1, parallelism):
        topology, gathers = built(program, tasks)
        bench = TopologyBench(topology)
        for turn in range(2):
            for side, key, value in rows:
                bench.feed(f"spout{side + 1}", (key, value + turn))
            if tasks > 1:
                bench.restart()
            bench.advance(1)
        found.append([Counter(map(repr, gather.values)) for gather in gathers])
    assert found[0] == found[1]


@given(PROGRAMS)
def test_the_compiler_takes_every_program(program: list[Any]) -> None:
    topology, _ = built(program, 2)
    assert compile_topology(topology, {}).explain()
