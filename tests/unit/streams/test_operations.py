"""Each operation of the Streams API, run without Spark."""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from topology_bench import Gather, TopologyBench

from storm_on_spark import BaseBasicBolt, FailedException, Fields, InvalidTopologyError
from storm_on_spark.api.errors import OperationError
from storm_on_spark.streams import (
    CombinerAggregator,
    PairStream,
    PairValueMapper,
    Stream,
    StreamBuilder,
    Sum,
    TupleValueMappers,
    ValueMapper,
    ValuesMapper,
)
from storm_on_spark.testing import ListSpout

PEEKED: list[Any] = []


def results(values: list[Any], program: Callable[[Stream[Any]], Stream[Any]], parallelism: int = 1) -> list[Any]:
    """Returns the results of a program for the values of a stream."""
    builder, gather = StreamBuilder(), Gather()
    program(builder.new_stream(ListSpout([]), ValueMapper(0), parallelism)).to(gather)
    TopologyBench(builder.build()).feed("spout1", *([value] for value in values))
    return gather.values


def two(
    left: list[Any], right: list[Any], program: Callable[[PairStream[Any, Any], PairStream[Any, Any]], Stream[Any]]
) -> list[Any]:
    builder, gather = StreamBuilder(), Gather()
    streams = [builder.new_stream(ListSpout([], fields=["k", "v"]), PairValueMapper(0, 1)) for _ in (left, right)]
    program(*streams).to(gather)
    bench = TopologyBench(builder.build())
    bench.feed("spout1", *left)
    bench.feed("spout2", *right)
    return gather.values


def test_map() -> None:
    assert results([1, 2, 3], lambda s: s.map(lambda n: n * n)) == [1, 4, 9]


def test_flat_map_of_a_list_and_of_a_generator() -> None:
    def twice(word: str) -> Any:
        yield word
        yield word.upper()

    assert results(["a b", "c"], lambda s: s.flat_map(str.split).flat_map(twice)) == ["a", "A", "b", "B", "c", "C"]


def test_map_to_pair_and_flat_map_to_pair() -> None:
    assert results(["ab"], lambda s: s.map_to_pair(lambda w: (w, len(w)))) == [("ab", 2)]
    assert results(["ab"], lambda s: s.flat_map_to_pair(lambda w: [(c, 1) for c in w])) == [("a", 1), ("b", 1)]


def test_map_values_and_flat_map_values_leave_keys() -> None:
    def program(s: Stream[Any]) -> Stream[Any]:
        return s.map_to_pair(lambda n: (n, [n, n])).map_values(sum).flat_map_values(range)

    assert results([1, 2], program) == [(1, 0), (1, 1), (2, 0), (2, 1), (2, 2), (2, 3)]


def test_filter() -> None:
    assert results([1, 2, 3, 4], lambda s: s.filter(lambda n: n % 2 == 0)) == [2, 4]


def test_peek_sees_values_on_their_way() -> None:
    PEEKED.clear()
    assert results([1, 2], lambda s: s.peek(peeking).map(lambda n: -n)) == [-1, -2]
    assert PEEKED == [1, 2]


def peeking(value: Any) -> None:
    _keep(value)


def _keep(value: Any) -> None:
    # In a function of its own: a function that visibly changes what is outside of it is refused.
    PEEKED.append(value)


def test_for_each_and_print_end_a_stream(capsys: pytest.CaptureFixture[str]) -> None:
    PEEKED.clear()
    builder = StreamBuilder()
    numbers = builder.new_stream(ListSpout([]), ValueMapper(0))
    assert numbers.for_each(peeking) is None
    assert numbers.print() is None
    TopologyBench(builder.build()).feed("spout1", [1], [2])
    assert (PEEKED, capsys.readouterr().out.split()) == ([1, 2], ["1", "2"])


def test_branch_gives_a_value_to_the_first_that_takes_it() -> None:
    builder, gathers = StreamBuilder(), [Gather(), Gather()]
    numbers = builder.new_stream(ListSpout([]), ValueMapper(0))
    for stream, gather in zip(numbers.branch(lambda n: n < 5, lambda n: n % 2 == 0), gathers, strict=True):
        stream.to(gather)
    TopologyBench(builder.build()).feed("spout1", *([n] for n in range(10)))
    assert [gather.values for gather in gathers] == [[0, 1, 2, 3, 4], [6, 8]]
    assert numbers.branch() == []


def test_branches_of_pairs_are_streams_of_pairs() -> None:
    def program(s: Stream[Any]) -> Stream[Any]:
        (low,) = s.map_to_pair(lambda n: (n, n)).branch(lambda pair: pair[0] < 2)
        return low.map_values(lambda n: n + 1)

    assert results([1, 2], program) == [(1, 2)]


def test_union_has_the_values_of_all() -> None:
    assert Counter(two([(1, 2)], [(3, 4), (5, 6)], lambda a, b: a.union(b))) == Counter([(1, 2), (3, 4), (5, 6)])
    assert Counter(results([1, 2], lambda s: s.merge(s.map(operator.neg)))) == Counter([1, -1, 2, -2])


@pytest.mark.parametrize("parallelism", [1, 3])
def test_a_running_aggregate_of_all_tasks(parallelism: int) -> None:
    numbers = list(range(1, 8))
    totals = results(numbers, lambda s: s.repartition(parallelism).aggregate(0, operator.add, operator.add))
    assert (len(totals), max(totals)) == (7, 28)
    assert results(numbers, lambda s: s.repartition(parallelism).count()) == numbers
    assert results(numbers, lambda s: s.repartition(parallelism).reduce(max))[-1] == 7
    assert results(numbers, lambda s: s.repartition(parallelism).aggregate(Sum()))[-1] == 28


@pytest.mark.parametrize("parallelism", [1, 3])
def test_running_aggregates_of_each_key(parallelism: int) -> None:
    words = ["to", "be", "or", "not", "to", "be"]

    def last(program: Callable[[PairStream[Any, Any]], Stream[Any]]) -> dict[str, Any]:
        # Of one task's results the later come later.
        return dict(results(words, lambda s: program(s.repartition(parallelism).map_to_pair(lambda w: (w, len(w))))))

    assert last(lambda s: s.count_by_key()) == Counter(words)
    assert last(lambda s: s.reduce_by_key(operator.add)) == {"to": 4, "be": 4, "or": 2, "not": 3}
    assert last(lambda s: s.aggregate_by_key(list, lambda all_, n: [*all_, n])) == last(lambda s: s.group_by_key())
    assert last(lambda s: s.group_by_key()) == {"to": [2, 2], "be": [2, 2], "or": [2], "not": [3]}


def test_each_key_has_an_initial_value_of_its_own() -> None:
    def add(found: list[int], value: int) -> list[int]:
        found.append(value)
        return found

    def program(s: Stream[Any]) -> Stream[Any]:
        return s.map_to_pair(lambda n: (n % 2, n)).aggregate_by_key([], add)

    assert dict(results([1, 2, 3], program)) == {1: [1, 3], 0: [2]}


def test_an_aggregator_of_ones_own() -> None:
    class Mean(CombinerAggregator):
        def init(self) -> Any:
            return 0, 0

        def apply(self, accumulator: Any, value: Any) -> Any:
            return accumulator[0] + value, accumulator[1] + 1

        def result(self, accumulator: Any) -> float:
            return accumulator[0] / accumulator[1]

    assert results([1, 2, 6], lambda s: s.aggregate(Mean())) == [1, 1.5, 3]


def test_a_reduction_may_give_none() -> None:
    assert results([1, 2, 3], lambda s: s.reduce(lambda a, b: None)) == [1, None, None]


LEFT, RIGHT = [(1, "a"), (1, "b"), (2, "c")], [(1, "x"), (3, "y")]


def test_a_join_outside_of_windows_meets_what_came_before() -> None:
    assert two(LEFT, RIGHT, lambda a, b: a.join(b)) == [(1, ("a", "x")), (1, ("b", "x"))]
    assert two(LEFT, RIGHT, lambda a, b: a.join(b, operator.add)) == [(1, "ax"), (1, "bx")]


def test_outer_joins_outside_of_windows_give_what_is_alone_when_it_comes() -> None:
    both, early = [(1, ("a", "x")), (1, ("b", "x"))], [(1, ("a", None)), (1, ("b", None)), (2, ("c", None))]
    assert two(LEFT, RIGHT, lambda a, b: a.right_outer_join(b)) == [*both, (3, (None, "y"))]
    assert two(LEFT, RIGHT, lambda a, b: a.left_outer_join(b)) == [*early, *both]
    assert two(LEFT, RIGHT, lambda a, b: a.full_outer_join(b)) == [*early, *both, (3, (None, "y"))]


def test_co_group_by_key() -> None:
    grouped = dict(two(LEFT, RIGHT, lambda a, b: a.co_group_by_key(b)))
    assert grouped == {1: (["a", "b"], ["x"]), 2: (["c"], []), 3: ([], ["y"])}


@pytest.mark.parametrize("parallelism", [1, 2])
def test_update_state_by_key_and_its_query(parallelism: int) -> None:
    builder, changes, answers = StreamBuilder(), Gather(), Gather()
    words = builder.new_stream(ListSpout([]), ValueMapper(0)).repartition(parallelism)
    state = words.map_to_pair(lambda w: (w, 1)).update_state_by_key(0, operator.add)
    state.to_pair_stream().to(changes)
    builder.new_stream(ListSpout([]), ValueMapper(0)).state_query(state).to(answers)
    bench = TopologyBench(builder.build())
    bench.feed("spout1", ["to"], ["be"])
    bench.feed("spout2", ["to"], ["or"])
    bench.restart()
    bench.feed("spout1", ["to"])
    bench.feed("spout2", ["to"])
    assert changes.values == [("to", 1), ("be", 1), ("to", 2)]
    assert answers.values == [("to", 1), ("or", None), ("to", 2)]


def test_a_function_may_use_one_that_is_defined_later() -> None:
    builder, gather = StreamBuilder(), Gather()
    builder.new_stream(ListSpout([]), ValueMapper(0)).map(lambda n: later(n)).to(gather)

    def later(number: int) -> int:
        return number + 1

    TopologyBench(builder.build()).feed("spout1", [1])
    assert gather.values == [2]


def test_an_updater_of_ones_own() -> None:
    class Largest:
        def init(self) -> int:
            return 5

        def apply(self, state: int, value: int) -> int:
            return max(state, value)

    def program(s: Stream[Any]) -> Stream[Any]:
        return s.map_to_pair(lambda n: ("all", n)).update_state_by_key(Largest()).to_pair_stream()

    assert results([1, 9, 7], program) == [("all", 5), ("all", 9), ("all", 9)]


def test_through_a_bolt() -> None:
    class Double(BaseBasicBolt):
        def execute(self, tup: Any, collector: Any) -> None:
            collector.emit([tup["value"] * 2])

        def declare_output_fields(self, declarer: Any) -> None:
            declarer.declare(Fields("doubled"))

    assert results([1, 2], lambda s: s.through(Double()).map(lambda tup: tup["doubled"])) == [2, 4]


def test_mappers_of_tuples() -> None:
    def mapped(mapper: Any) -> Any:
        builder, gather = StreamBuilder(), Gather()
        builder.new_stream(ListSpout([], fields=["x", "y", "z"]), mapper).to(gather)
        TopologyBench(builder.build()).feed("spout1", ("a", 1, 2.5))
        return gather.values[0]

    assert mapped(ValueMapper("y")) == 1
    assert mapped(ValuesMapper(0, 2)) == ["a", 2.5]
    assert mapped(TupleValueMappers.of(2, 1, 0)) == (2.5, 1, "a")
    assert mapped(PairValueMapper.of("z", "x")) == (2.5, "a")


def test_a_stream_of_tuples_can_be_sent_to_other_tasks() -> None:
    builder, gather = StreamBuilder(), Gather()
    tuples = builder.new_stream(ListSpout([], fields=["x", "y"])).filter(lambda tup: tup["y"] == 1)
    tuples.repartition(2).map(lambda tup: tup["x"]).to(gather)
    TopologyBench(builder.build()).feed("spout1", ("a", 1))
    assert gather.values == ["a"]


def test_a_failed_exception_fails_the_tuple_and_an_exception_names_the_operation() -> None:
    def program(error: type[Exception]) -> TopologyBench:
        def check(count: Any) -> Any:
            if count == 2:
                raise error("two")
            return count

        builder = StreamBuilder()
        builder.new_stream(ListSpout([]), ValueMapper(0)).count().map(check).to(Gather())
        return TopologyBench(builder.build())

    bench = program(FailedException)
    bench.feed("spout1", ["a"], ["b"], ["c"])
    collector = bench.testers["bolt1", 0].collector
    assert ([tup[0] for tup in collector.acked], [tup[0] for tup in collector.failed]) == (["a", "c"], ["b"])
    with pytest.raises(OperationError, match=r"map \(test_operations.py:\d+\): ValueError: two"):
        program(ValueError).feed("spout1", ["a"], ["b"])


CHANGED: list[int] = []


@pytest.mark.parametrize(
    ("add", "message"),
    [
        (lambda s: s.map(3), r"map \(test_operations.py:\d+\) takes a function, not 3"),
        (lambda s: s.map(lambda: 1), "called with one argument, but takes ()"),
        (lambda s: s.reduce(lambda a: 1), "called with 2 arguments"),
        (lambda s: s.for_each([].append), r"changes \[\]"),
        (lambda s: s.for_each(lambda v: CHANGED.append(v)), "changes .* outside of it"),
        (lambda s: s.repartition(0), "parallelism must be an int of at least 1, not 0"),
        (lambda s: s.window(3), "takes SlidingWindows"),
        (lambda s: s.union(3), "takes a stream"),
        (lambda s: s.aggregate(3), "takes a CombinerAggregator"),
        (lambda s: s.aggregate(Sum), "takes a CombinerAggregator"),
        (lambda s: s.map_to_pair(lambda v: (v, v)).join(s), "takes a stream of pairs"),
        (lambda s: s.union(StreamBuilder().new_stream(ListSpout([[1]]))), "another StreamBuilder"),
        (lambda s: s.state_query(s), "takes what update_state_by_key returns"),
    ],
)
def test_what_makes_no_sense_is_refused_with_the_line(add: Callable[[Any], Any], message: str) -> None:
    with pytest.raises(InvalidTopologyError, match=message):
        add(StreamBuilder().new_stream(ListSpout([[1]]), ValueMapper(0)))


def test_a_result_that_is_no_pair_is_named() -> None:
    with pytest.raises(OperationError, match=r"map_to_pair \(.*\): TypeError: a pair is a tuple \(key, value\)"):
        results([1], lambda s: s.map_to_pair(lambda n: n))
