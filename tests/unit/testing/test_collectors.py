"""Collector doubles: what they write down, and that they refuse what the runtime refuses."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from storm_on_spark import BaseBasicBolt, BaseRichBolt, BaseRichSpout, BatchBolt, BatchSpout, Fields, TupleError
from storm_on_spark.testing import (
    BatchSpoutEmission,
    Emission,
    RecordingBasicCollector,
    RecordingBatchCollector,
    RecordingBatchSpoutCollector,
    RecordingCollector,
    RecordingSpoutCollector,
    make_tuple,
)


class _Streams:
    def declare_output_fields(self, declarer: Any) -> None:
        declarer.declare(Fields("word"))
        declarer.declare_stream("pairs", ["word", "count"])
        declarer.declare_stream("direct", ["word"], direct=True)


class Rich(_Streams, BaseRichBolt):
    def execute(self, tup: Any) -> None: ...


class Basic(_Streams, BaseBasicBolt):
    def execute(self, tup: Any, collector: Any) -> None: ...


class Batch(_Streams, BatchBolt):
    def execute_batch(self, batch: Any, collector: Any) -> None: ...


class Spout(_Streams, BaseRichSpout):
    def next_tuple(self) -> None: ...


class ColumnsSpout(_Streams, BatchSpout):
    def next_batch(self) -> None: ...


def test_emits_are_written_down_with_their_anchors() -> None:
    collector = RecordingCollector(Rich())
    one, other = make_tuple(["a"]), make_tuple(["b"])
    assert collector.emit(["x"]) == []
    collector.emit(["y"], anchors=one)
    collector.emit(["z", 1], anchors=iter([one, other]), stream="pairs")
    collector.emit_direct(9, ["w"], anchors=[other], stream="direct")
    assert collector.emitted == [
        Emission(("x",)),
        Emission(("y",), anchors=(one,)),
        Emission(("z", 1), "pairs", (one, other)),
        Emission(("w",), "direct", (other,), task=9),
    ]
    assert collector.values() == [("x",), ("y",)]
    assert collector.values("pairs") == [("z", 1)]


def test_what_is_written_down_does_not_change_with_the_list_that_was_emitted() -> None:
    collector = RecordingCollector()
    values = ["a"]
    collector.emit(values)
    values[0] = "b"
    assert collector.values() == [("a",)]


def test_only_the_first_ack_or_fail_of_a_tuple_counts() -> None:
    collector = RecordingCollector()
    one, other = make_tuple(["a"]), make_tuple(["b"])
    collector.ack(one)
    collector.ack(one)
    collector.fail(one)
    collector.fail(other)
    assert (collector.acked, collector.failed) == ([one], [other])


def test_errors_and_reset_timeouts_are_written_down() -> None:
    collector = RecordingCollector()
    tup, error = make_tuple(["a"]), ValueError("no")
    collector.report_error(error)
    collector.reset_timeout(tup)
    assert (collector.errors, collector.timeouts_reset) == ([error], [tup])


@pytest.mark.parametrize(
    "double",
    [RecordingCollector(Rich()), RecordingBasicCollector(Basic()), RecordingSpoutCollector(Spout())],
    ids=["rich", "basic", "spout"],
)
def test_an_emit_that_the_runtime_would_refuse_is_refused(double: Any) -> None:
    with pytest.raises(TupleError, match=r'"wrods", which it does not declare; declared: "default", "direct"'):
        double.emit(["a"], stream="wrods")
    with pytest.raises(TupleError, match=r'2 value\(s\) on stream "default", which declares 1 \(word\)'):
        double.emit(["a", 1])
    with pytest.raises(TupleError, match="emitted the text 'a'"):
        double.emit("a")
    with pytest.raises(TupleError, match='"direct", which is a direct stream; use emit_direct'):
        double.emit(["a"], stream="direct")
    with pytest.raises(TupleError, match='"default", which is not a direct stream; use emit'):
        double.emit_direct(1, ["a"])
    assert double.emitted == []


def test_a_double_that_knows_no_component_takes_everything() -> None:
    collector = RecordingCollector()
    collector.emit(["a", 1, None], stream="whatever")
    collector.emit_direct(3, ["a"])
    assert [emission.stream for emission in collector.emitted] == ["whatever", "default"]


def test_an_anchor_must_be_a_tuple() -> None:
    with pytest.raises(TupleError, match="an anchor must be a Tuple that the bolt received, not 5"):
        RecordingCollector().emit(["a"], anchors=[5])  # type: ignore[list-item]


def test_a_basic_bolts_emits_are_anchored_to_what_it_executes() -> None:
    collector = RecordingBasicCollector(Basic())
    tup = make_tuple(["a"])
    collector.emit(["x"])
    collector.current = tup
    collector.emit(["y"])
    assert [emission.anchors for emission in collector.emitted] == [(), (tup,)]


def test_batches_are_written_down_with_the_rows_that_they_are_anchored_to() -> None:
    collector = RecordingBatchCollector(Batch())
    collector.begin(pa.record_batch({"line": ["a b", "c"]}))
    collector.emit(pa.record_batch({"word": ["a", "b", "c"]}), parent=np.array([0, 0, 1]))
    collector.emit(pa.record_batch({"word": ["x", "y"]}))
    collector.emit(pa.record_batch({"word": ["z"]}))
    collector.emit(pa.record_batch({"word": ["a"], "count": [2]}), parent=[-1], stream="pairs")
    assert [emission.parents for emission in collector.emitted] == [(0, 0, 1), (0, 1), (-1,), (-1,)]
    assert collector.values() == [("a",), ("b",), ("c",), ("x",), ("y",), ("z",)]
    assert collector.values("pairs") == [("a", 2)]


def test_rows_of_several_batches_are_counted_through() -> None:
    collector = RecordingBatchCollector()
    batch = pa.record_batch({"line": ["a", "b"]})
    collector.begin(batch)
    collector.fail([1, 1])
    collector.end()
    collector.begin(batch)
    collector.end()
    assert (collector.acked, collector.failed) == ([0, 2, 3], [1])


def test_a_batch_that_the_runtime_would_refuse_is_refused() -> None:
    collector = RecordingBatchCollector(Batch())
    collector.begin(pa.record_batch({"line": ["a"]}))
    words = pa.record_batch({"word": ["a", "b"]})
    with pytest.raises(TupleError, match="parent has 1 entries for 2 rows"):
        collector.emit(words, parent=[0])
    with pytest.raises(TupleError, match="parent names row 1"):
        collector.emit(words, parent=[0, 1])
    with pytest.raises(TupleError, match=r'1 value\(s\) on stream "pairs"'):
        collector.emit(words, stream="pairs")
    with pytest.raises(TupleError, match="fail names row 3 of an input batch of 1 rows"):
        collector.fail([3])
    assert collector.emitted == []


def test_a_spouts_messages_stay_pending_until_they_are_settled() -> None:
    collector = RecordingSpoutCollector(Spout())
    collector.emit(["a"], message_id=("m", 1))
    collector.emit(["b"])
    collector.emit_direct(4, ["c"], message_id=2, stream="direct")
    assert collector.pending == [("m", 1), 2]
    assert collector.pending_count() == collector.get_pending_count() == 2
    assert collector.emitted[2] == Emission(("c",), "direct", message_id=2, task=4)


def test_batches_of_a_spout_are_written_down_with_the_message_ids_of_their_rows() -> None:
    collector = RecordingBatchSpoutCollector(ColumnsSpout())
    words, pairs = pa.record_batch({"word": ["a", "b"]}), pa.record_batch({"word": ["c"], "count": [3]})
    ids = np.array([7, 8])
    collector.emit(words, ids)
    ids[:] = 0
    collector.emit(words)
    collector.emit(pairs, [None], stream="pairs")
    collector.emit(words, pa.chunked_array([[9], [None]]))
    collector.emit(words.slice(0, 0), [])
    assert collector.emitted == [
        BatchSpoutEmission(words, (7, 8)),
        BatchSpoutEmission(words, (None, None)),
        BatchSpoutEmission(pairs, (None,), "pairs"),
        BatchSpoutEmission(words, (9, None)),
        BatchSpoutEmission(words.slice(0, 0), ()),
    ]
    assert (collector.pending, collector.pending_count(), collector.id_type) == ([7, 8, 9], 3, pa.int64())
    assert collector.values() == [("a",), ("b",)] * 3
    assert collector.values("pairs") == [("c", 3)]
    error = ValueError("no")
    collector.report_error(error)
    assert collector.errors == [error]


def test_a_batch_of_a_spout_that_the_runtime_would_refuse_is_refused() -> None:
    collector = RecordingBatchSpoutCollector(ColumnsSpout())
    words = pa.record_batch({"word": ["a", "b"]})
    with pytest.raises(TupleError, match=r'"component" \(task 1\) emitted a list; emit a pyarrow.RecordBatch'):
        collector.emit(["a"])  # type: ignore[arg-type]
    with pytest.raises(TupleError, match=r"emitted 1 message id\(s\) with a batch of 2 row\(s\)"):
        collector.emit(words, [1])
    with pytest.raises(TupleError, match="emitted message ids that can't be an Arrow array"):
        collector.emit(words, [1, "a"])
    with pytest.raises(TupleError, match='"wrods", which it does not declare'):
        collector.emit(words, [1, 2], stream="wrods")
    with pytest.raises(TupleError, match='emitted a batch of columns "w", not "word"'):
        collector.emit(words.rename_columns(["w"]), [1, 2])
    with pytest.raises(TupleError, match='"direct", which is a direct stream'):
        collector.emit(words, [1, 2], stream="direct")
    assert (collector.emitted, collector.pending) == ([], [])
    collector.emit(words, [1, None])
    with pytest.raises(TupleError, match="message ids of type string after others of type int64"):
        collector.emit(words, ["a", "b"])
    assert collector.pending == [1]


def test_a_batch_spouts_double_that_knows_no_component_takes_every_stream() -> None:
    collector = RecordingBatchSpoutCollector()
    collector.emit(pa.record_batch({"n": [1]}), stream="whatever")
    assert collector.values("whatever") == [(1,)]
    with pytest.raises(TupleError, match=r'"component" \(task 1\) emitted 0 message id'):
        collector.emit(pa.record_batch({"n": [1]}), [])
