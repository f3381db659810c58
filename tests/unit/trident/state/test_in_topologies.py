"""States in topologies, in one process."""

from __future__ import annotations

from collections import Counter

import pytest
from trident_run import Gathered, run

from storm_on_spark.trident import Count, FixedBatchSpout, TridentTopology
from storm_on_spark.trident.state import MapGet, MemoryMapState, SnapshotGet, StateType

WORDS = ["to", "be", "or", "not", "to", "be"] * 5


@pytest.mark.parametrize("kind", StateType)
@pytest.mark.parametrize("tasks", [1, 3])
def test_words_are_counted_in_the_checkpoint(kind: StateType, tasks: int) -> None:
    topology = TridentTopology()
    words = topology.new_stream("words", FixedBatchSpout("word", 4, [[word] for word in WORDS]))
    counts = words.group_by("word").persistent_aggregate(MemoryMapState.Factory(kind), Count(), "count")
    gathered = Gathered(counts.parallelism_hint(tasks).new_values_stream())
    run(topology)
    assert dict(gathered.rows) == Counter(WORDS)


def test_one_value_is_counted_and_asked() -> None:
    topology = TridentTopology()
    words = topology.new_stream("words", FixedBatchSpout("word", 4, [[word] for word in WORDS]))
    gathered = Gathered(words.persistent_aggregate(MemoryMapState.Factory(), Count(), "count").new_values_stream())
    run(topology)
    assert gathered.rows == [(number,) for number in (4, 8, 12, 16, 20, 24, 28, 30)]


def test_a_state_is_asked_for_its_keys() -> None:
    topology = TridentTopology()
    words = topology.new_stream("words", FixedBatchSpout("word", 30, [[word] for word in WORDS]))
    counts = words.group_by("word").persistent_aggregate(MemoryMapState.Factory(), Count(), "count")
    total = words.persistent_aggregate(MemoryMapState.Factory(), Count(), "total")
    asked = topology.new_stream("asked", FixedBatchSpout("key", 1, [["to"], ["never"]]))
    answers = Gathered(asked.partition_by("key").state_query(counts, "key", MapGet(), "count"))
    totals = Gathered(asked.global_().state_query(total, "key", SnapshotGet(), "total"))
    run(topology)
    assert [key for key, _ in answers.rows] == ["to", "never"]
    assert {key: count for key, count in answers.rows if count is not None}.get("never") is None
    assert {count for _, count in answers.rows} <= {None, 10}
    assert {count for _, count in totals.rows} <= {None, 30}
