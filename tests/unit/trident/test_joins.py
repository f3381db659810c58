"""Joins and multi-reduction of streams, within a batch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from trident_run import Gathered, run

from storm_on_spark import InvalidTopologyError
from storm_on_spark.trident import FixedBatchSpout, JoinOutFieldsMode, JoinType, MultiReducer, TridentTopology

AGES = [["ann", 30], ["bob", 40], ["bob", 41]]
CITIES = [["bob", "Rome"], ["cid", "Oslo"]]


def joined(types: Any, mode: JoinOutFieldsMode = JoinOutFieldsMode.COMPACT, fields: Sequence[str] = ()) -> list[Any]:
    topology = TridentTopology()
    ages = topology.new_stream("ages", FixedBatchSpout(["name", "age"], 10, AGES))
    cities = topology.new_stream("cities", FixedBatchSpout(["who", "city"], 10, CITIES))
    named = fields or ["name", "age", "city"]
    gathered = Gathered(topology.join([ages, cities], ["name", "who"], named, types, mode))
    run(topology)
    return sorted(gathered.rows, key=str)


def test_an_inner_join_has_groups_that_are_in_all_streams() -> None:
    assert joined(JoinType.INNER) == [("bob", 40, "Rome"), ("bob", 41, "Rome")]


def test_an_outer_join_has_none_for_a_stream_without_a_tuple() -> None:
    every = [("ann", 30, None), ("bob", 40, "Rome"), ("bob", 41, "Rome"), ("cid", None, "Oslo")]
    assert joined(JoinType.OUTER) == every
    assert joined(JoinType.mixed(JoinType.INNER, JoinType.OUTER)) == every[:3]
    assert joined(JoinType.mixed(JoinType.OUTER, JoinType.INNER)) == every[1:]


def test_a_join_can_preserve_the_fields_of_each_stream() -> None:
    found = joined(JoinType.INNER, JoinOutFieldsMode.PRESERVE, ["name", "age", "who", "city"])
    assert found == [("bob", 40, "bob", "Rome"), ("bob", 41, "bob", "Rome")]


def test_a_join_of_other_numbers_says_which() -> None:
    with pytest.raises(
        InvalidTopologyError, match=r"join \(test_joins.py:\d+\): the results have 3 values, but 2 fields"
    ):
        joined(JoinType.INNER, fields=["name", "age"])


@settings(suppress_health_check=[HealthCheck.too_slow], max_examples=10, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 9)), min_size=1, max_size=9),
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 9)), min_size=1, max_size=9),
    st.integers(1, 4),
)
def test_joins_of_random_batches_are_those_of_plain_python(left: list[Any], right: list[Any], size: int) -> None:
    topology = TridentTopology()
    streams = [
        topology.new_stream(name, FixedBatchSpout(["k", name], size, rows)).shuffle().map(tuple).parallelism_hint(2)
        for name, rows in (("left", left), ("right", right))
    ]
    gathered = Gathered(topology.join(streams, ["k", "k"], ["k", "left", "right"]).parallelism_hint(2))
    run(topology)
    expected = [
        (key, one, other)
        for at in range(0, max(len(left), len(right)), size)
        for key, one in left[at : at + size]
        for again, other in right[at : at + size]
        if key == again
    ]
    assert sorted(gathered.rows) == sorted(expected)


class Differences(MultiReducer):
    """The difference of the sums of two streams."""

    def init(self, collector: Any) -> list[int]:
        return [0, 0]

    def execute(self, accumulator: list[int], stream: int, tup: Any, collector: Any) -> None:
        accumulator[stream] += tup["n"]

    def complete(self, accumulator: list[int], collector: Any) -> None:
        collector.emit([accumulator[0] - accumulator[1]])


def test_multi_reduce_of_streams_and_of_groups() -> None:
    topology = TridentTopology()
    first = topology.new_stream("first", FixedBatchSpout(["k", "n"], 2, [["a", 1], ["b", 2], ["a", 3]]))
    second = topology.new_stream("second", FixedBatchSpout(["k", "n"], 2, [["a", 10], ["c", 20], ["c", 30]]))
    whole = Gathered(topology.multi_reduce([first, second], Differences(), "d", ["n", "n"]))
    groups = Gathered(
        topology.multi_reduce([first.group_by("k"), second.group_by("k")], Differences(), "d").parallelism_hint(2)
    )
    run(topology)
    assert whole.rows == [(-27,), (-27,)]
    assert sorted(groups.rows[:3]) == [("a", -9), ("b", 2), ("c", -20)]
    assert sorted(groups.rows[3:]) == [("a", 3), ("c", -30)]
