"""Operations on columns: expressions and functions of Arrow record batches."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from topology_bench import Gather, TopologyBench

from storm_on_spark import Topology
from storm_on_spark.api.config import effective_conf
from storm_on_spark.api.errors import OperationError
from storm_on_spark.plan.compile import compile_graph
from storm_on_spark.runtime.in_process import InProcessTopology
from storm_on_spark.streams import Count, Duration, Stream, StreamBuilder, TumblingWindows
from storm_on_spark.testing import BoltTester, ListSpout, make_tuple

ROWS = [("to", 2, 10), ("be", 5, 20), ("or", 7, 30), ("not", 4, 40)]


def tuples(builder: StreamBuilder, parallelism: int = 1) -> Stream[Any]:
    return builder.new_stream(ListSpout(ROWS, fields=["word", "n", "ts"]), None, parallelism)


def results(program: Any) -> list[Any]:
    builder, gather = StreamBuilder(), Gather()
    program(tuples(builder)).to(gather)
    TopologyBench(builder.build()).feed("spout1", *ROWS)
    return gather.values


def titles(topology: Topology) -> list[str]:
    return [spec.component.title for spec in topology.bolts.values() if hasattr(spec.component, "title")]


def test_filter_map_and_map_to_pair_take_expressions() -> None:
    word, n = pc.field("word"), pc.field("n")
    assert results(lambda s: s.filter(n > 4)) == [("be", 5, 20), ("or", 7, 30)]
    assert results(lambda s: s.filter(n > 4).map(pc.utf8_upper(word))) == ["BE", "OR"]
    assert results(lambda s: s.map_to_pair(word, n * 2)) == [("to", 4), ("be", 10), ("or", 14), ("not", 8)]


def test_values_and_pairs_are_columns_too() -> None:
    def program(s: Any) -> Any:
        pairs = s.map(lambda tup: tup["n"]).filter(pc.field("value") > 2).map_to_pair(lambda n: (n % 2, n))
        return pairs.filter(pc.field("key") == 1).map_values(lambda n: -n)

    assert results(program) == [(1, -5), (1, -7)]


def test_map_batches_may_give_fewer_or_more_rows() -> None:
    def twice(batch: pa.RecordBatch) -> Any:
        rows = [row for row in range(batch.num_rows) for _ in range(2)]
        return pa.record_batch([batch["word"].take(pa.array(rows))], names=["copy"]), rows

    assert results(lambda s: s.map_batches(twice, "copy").map(lambda tup: tup["copy"]))[:4] == ["to", "to", "be", "be"]
    assert results(lambda s: s.map_batches(lambda batch: batch.select(["n"]), ["n"]).filter(pc.field("n") > 4)) == [
        5,
        7,
    ]


def test_operations_on_columns_share_a_stateless_bolt_and_results_are_anchored_to_their_rows() -> None:
    builder = StreamBuilder()
    filtered = tuples(builder).filter(pc.field("n") > 4)
    filtered.map(pc.field("n")).to(Gather())
    filtered.map_to_pair(pc.field("word"), pc.scalar(1)).reduce_by_key(max).print()
    topology = builder.build()
    assert titles(topology) == ["filter → map → map_to_pair, on columns", "reduce_by_key → print"]
    tester = BoltTester(topology["bolt1"].component)
    tester.execute(*(make_tuple(row, ["word", "n", "ts"]) for row in ROWS))
    assert {tuple(emission.parents) for emission in tester.collector.emitted} == {(1, 2)}


def test_columns_in_windows_and_their_time() -> None:
    def counted(window: Any) -> list[Any]:
        return results(lambda s: s.window(window).filter(pc.field("n") > 2).map(lambda tup: tup["word"]).count())

    assert counted(TumblingWindows.of(Count(2))) == [2]  # what comes out of the filter is gathered
    builder, gather = StreamBuilder(), Gather()
    window = TumblingWindows.of(Duration(20)).with_timestamp_field("ts")
    tuples(builder).map(pc.field("n")).window(window).reduce(max).to(gather)
    bench = TopologyBench(builder.build())
    bench.feed("spout1", *ROWS)
    bench.advance(1)
    assert gather.values == [5, 7]


def test_errors_name_operation_and_line() -> None:
    with pytest.raises(OperationError, match=r"map \(test_columns.py:\d+\): .*wrod"):
        results(lambda s: s.map(pc.field("wrod")))
    with pytest.raises(OperationError, match=r"map_batches .* must have the columns"):
        results(lambda s: s.map_batches(lambda batch: batch, "word"))
    with pytest.raises(OperationError, match="0 rows came out of 1"):
        results(lambda s: s.map_batches(lambda batch: batch.slice(1), ["word", "n", "ts"]))


def test_columns_in_the_engine() -> None:
    builder, gather = StreamBuilder(), Gather()
    pairs = tuples(builder, 2).filter(pc.field("n") > 2).map_to_pair(pc.field("word"), pc.field("n"))
    pairs.reduce_by_key(max).to(gather)
    info = InProcessTopology(compile_graph(builder.build(), effective_conf({})), "test").run()
    assert (info.status, info.acked, info.failed) == ("COMPLETED", 4, 0)
    assert sorted(gather.values) == [("be", 5), ("not", 4), ("or", 7)]
