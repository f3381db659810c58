"""From a stream program to bolts: what shares one, how they are connected, and what a checkpoint depends on."""

from __future__ import annotations

import operator
from typing import Any

import pytest
from topology_bench import Gather

from storm_on_spark import InvalidTopologyError, Topology, compile_topology
from storm_on_spark.api.config import effective_conf
from storm_on_spark.plan.compile import compile_graph, place
from storm_on_spark.plan.fingerprint import compare, fingerprint
from storm_on_spark.runtime.in_process import InProcessTopology
from storm_on_spark.streams import PairStream, Stream, StreamBuilder, ValueMapper
from storm_on_spark.testing import ListSpout


def words(builder: StreamBuilder, parallelism: int = 1) -> Stream[str]:
    return builder.new_stream(ListSpout(["to be", "or not to be"]), ValueMapper(0), parallelism).flat_map(str.split)


def pairs(builder: StreamBuilder, parallelism: int = 1) -> PairStream[str, int]:
    return words(builder, parallelism).map_to_pair(lambda word: (word, 1))


def titles(topology: Topology) -> dict[str, str]:
    return {name: spec.component.title for name, spec in topology.bolts.items()}


def test_operations_on_single_values_share_a_stateless_bolt() -> None:
    builder = StreamBuilder()
    words(builder).filter(str.isalpha).map(len).print()
    topology = builder.build()
    assert titles(topology) == {"bolt1": "map → flat_map → filter → map → print"}
    # The whole program runs where the spout's tuples are read.
    assert "fused: shuffle from spout1  stateless: map → flat_map" in compile_topology(topology, {}).explain()


def test_with_several_tasks_pairs_are_grouped_by_key_once() -> None:
    builder = StreamBuilder()
    pairs(builder, 3).count_by_key().map_values(str).group_by_key().print()
    topology = builder.build()
    assert titles(topology) == {
        "bolt1": "map → flat_map → map_to_pair",
        "bolt2": "count_by_key → map_values → group_by_key → print",
    }
    ((source, grouping),) = topology["bolt2"].inputs
    assert (source.component, grouping.describe(), topology["bolt2"].parallelism) == ("bolt1", "fields(key)", 3)


def test_pairs_of_two_bolts_are_grouped_by_key_where_they_meet() -> None:
    builder = StreamBuilder()
    pairs(builder, 2).count_by_key().join(pairs(builder, 2).count_by_key()).print()
    topology = builder.build()
    assert [grouping.describe() for _, grouping in topology["bolt5"].inputs] == ["fields(key)"] * 2


def test_a_total_is_made_in_one_task() -> None:
    builder = StreamBuilder()
    words(builder, 4).count().print()
    topology = builder.build()
    assert topology["bolt2"].parallelism == 1
    assert topology["bolt2"].inputs[0][1].describe() == "global"


def test_repartition_begins_a_bolt_with_other_tasks() -> None:
    builder = StreamBuilder()
    words(builder).repartition(1).repartition(5).map(len).print()
    topology = builder.build()
    assert [(spec.parallelism, spec.component.title) for spec in topology.bolts.values()] == [
        (1, "map → flat_map"),
        (5, "map → print"),
    ]


def test_a_join_of_one_stream_with_itself_is_one_bolt() -> None:
    builder = StreamBuilder()
    stream = pairs(builder)
    stream.join(stream.map_values(operator.neg)).print()
    assert list(titles(builder.build())) == ["bolt1"]


def test_two_operations_on_a_spouts_tuples_share_a_bolt() -> None:
    builder = StreamBuilder()
    tuples = builder.new_stream(ListSpout([[1]]))
    tuples.map(len).print()
    tuples.filter(len).print()
    assert titles(builder.build()) == {"bolt1": "map → print → filter → print"}


def test_users_name_components() -> None:
    builder = StreamBuilder()
    builder.new_stream(ListSpout([[1]]), name="numbers").map(len).to(Gather(), 2, name="kept")
    topology = builder.build()
    assert list(topology) == ["numbers", "bolt1", "kept"]
    assert topology["kept"].parallelism == 2


def test_bolts_get_storms_fields() -> None:
    builder = StreamBuilder()
    stream = words(builder)
    stream.to(Gather())
    stream.map_to_pair(lambda word: (word, 1)).to(Gather())
    declared = [spec.fields.to_list() for spec in builder.build()["bolt1"].streams.values()]
    assert declared == [["value"], ["key", "value"]]


def test_a_program_shows_itself_as_a_graph() -> None:
    builder = StreamBuilder()
    counts = pairs(builder, 2).count_by_key()
    shown = counts._repr_html_()
    assert shown == builder._repr_html_()
    assert all(text in shown for text in ("<svg", "ListSpout", "flat_map", "count_by_key", "fields(key)"))
    assert "count_by_key" in builder.build()._repr_html_()


def test_a_changed_program_over_an_old_checkpoint_is_refused() -> None:
    def printed(program: Any) -> dict[str, Any]:
        builder = StreamBuilder()
        program(pairs(builder)).print()
        return fingerprint(place(compile_graph(builder.build()), 1))

    before = printed(lambda s: s.count_by_key())
    assert compare(before, printed(lambda s: s.filter(lambda pair: pair[0] != "to").count_by_key())) == []
    (why,) = compare(before, printed(lambda s: s.reduce_by_key(operator.add)))
    assert why == 'bolt "bolt1" kept the state of count_by_key and now of reduce_by_key'
    (why,) = compare(before, printed(lambda s: s))
    assert why == 'bolt "bolt1" has become stateless, but the checkpoint holds its state'


def test_a_state_query_needs_keys() -> None:
    builder = StreamBuilder()
    state = pairs(builder).update_state_by_key(0, operator.add)
    with pytest.raises(InvalidTopologyError, match="takes a stream of keys"):
        pairs(builder).state_query(state)


@pytest.mark.parametrize("parallelism", [1, 2])
def test_a_program_in_the_engine(parallelism: int) -> None:
    gather, builder = Gather(), StreamBuilder()
    pairs(builder, parallelism).count_by_key().to(gather)
    info = InProcessTopology(compile_graph(builder.build(), effective_conf({})), "test").run()
    assert (info.status, info.acked, info.failed) == ("COMPLETED", 2, 0)
    assert dict(sorted(gather.values)) == {"to": 2, "be": 2, "or": 1, "not": 1}


def test_state_is_exact_where_a_later_operation_raises() -> None:
    def check(pair: Any) -> Any:
        if pair[1][-1] == "poison":
            raise ValueError(pair)
        return pair

    gather, builder = Gather(), StreamBuilder()
    values = builder.new_stream(ListSpout([1, "poison", 2], max_fails=1), ValueMapper(0))
    values.map_to_pair(lambda value: ("all", value)).group_by_key().map(check).to(gather)
    info = InProcessTopology(compile_graph(builder.build(), effective_conf({})), "test").run()
    assert (info.status, info.acked, info.failed) == ("COMPLETED", 2, 2)
    assert gather.values[-1] == ("all", [1, 2])
