"""What writes batches outside of the checkpoint executes in micro-batches."""

from __future__ import annotations

from typing import Any

import pytest

from storm_on_spark import compile_topology
from storm_on_spark.connectors.states import DeltaMapState
from storm_on_spark.trident import Count, FixedBatchSpout, TridentTopology
from storm_on_spark.trident.state import MapGet, MemoryMapState, StateFactory


class Own(StateFactory):
    def make_state(self, conf: Any, metrics: Any, partition_index: int, num_partitions: int) -> Any:
        raise AssertionError("not made here")


class Attributes(Own):
    writes_elsewhere = False


OUTSIDE = "writes batches to a state outside of the checkpoint"


@pytest.mark.parametrize(
    ("factory", "waits"),
    [
        (MemoryMapState.Factory(), False),
        (Attributes(), False),
        (Own(), True),
        (DeltaMapState("/data/s", "words"), True),
    ],
)
@pytest.mark.parametrize("conf", [{}, {"topology.profile": "realtime"}])
def test_a_state_outside_of_the_checkpoint_waits_for_micro_batches(factory: Any, waits: bool, conf: Any) -> None:
    topology = TridentTopology()
    words = topology.new_stream("words", FixedBatchSpout("word", 3, [["to"], ["be"]]))
    words.group_by("word").persistent_aggregate(factory, Count(), "count")
    assert (OUTSIDE in compile_topology(topology.build(), conf).explain()) is waits


def test_a_state_that_is_only_asked_waits_for_nothing() -> None:
    topology = TridentTopology()
    words = topology.new_stream("words", FixedBatchSpout("word", 3, [["to"], ["be"]]))
    words.state_query(topology.new_static_state(DeltaMapState("/data/s", "words")), "word", MapGet(), "count")
    assert OUTSIDE not in compile_topology(topology.build(), {}).explain()
