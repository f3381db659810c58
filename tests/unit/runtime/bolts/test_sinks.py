"""Tuples that reach a sink as columns: taken as a whole or one by one, and acked either way."""

from __future__ import annotations

import pyarrow as pa
import pytest
from stormtest import batch_input, ids, rows, solo

from storm_on_spark.api.task.base_hook import BaseTaskHook
from storm_on_spark.connectors.frames import ForeachBatchBolt

FIELDS = ["more", "count", "word"]


class Sink(ForeachBatchBolt):
    def __init__(self):
        super().__init__({"word": "string", "count": "long"}, print)
        self.taken = []

    def take_batch(self, batch):
        self.taken.append(super().take_batch(batch))
        return self.taken[-1]


class Watched(Sink):
    def prepare(self, conf, context, collector):
        super().prepare(conf, context, collector)
        self.seen = seen = []

        class Hook(BaseTaskHook):
            def bolt_execute(self, info):
                seen.append(info.tuple["count"])

        context.add_task_hook(Hook())


class Positive(Sink):
    """Looks at each tuple."""

    def execute(self, tup):
        if tup["count"] > 0:
            super().execute(tup)
        else:
            self._collector.fail(tup)


def columns(*counts, kind=None):
    words = pa.array(["a"] * len(counts), pa.string())
    batch = pa.record_batch([words, pa.array(counts, kind or pa.int64()), words], FIELDS)
    return batch_input(batch, list(range(1, len(counts) + 1)), list(range(11, len(counts) + 11)))


def execute(bolt, *inputs):
    task = solo(bolt, FIELDS, stateless=True)
    execution = task.execute(inputs, ids(), 1)
    table = pa.ipc.open_stream(execution.written).read_all().to_pylist() if execution.written else []
    assert all(list(row) == ["word", "count"] for row in table)
    return task.instance, execution, [row["count"] for row in table]


def test_columns_of_the_table_are_taken_whole_between_tuples_in_their_order():
    sink, execution, written = execute(
        Sink(), rows([("", 1, "a")], fields=FIELDS), columns(2, 3), rows([("", 4, "a")], fields=FIELDS), columns(5)
    )
    assert sink.taken == [True, True]
    assert written == [1, 2, 3, 4, 5]
    assert (execution.executed, execution.acked, execution.failed) == (5, 5, 0)


@pytest.mark.parametrize("kind", [pa.string(), pa.float64()])
def test_of_columns_with_another_type_each_tuple_is_looked_at(kind):
    given = columns("1", "2", kind=kind) if kind == pa.string() else columns(1.5, 2.5, kind=kind)
    sink, execution, written = execute(Sink(), given, columns(3))
    assert sink.taken == [False, True]
    assert written == [3]
    assert (execution.acked, execution.failed) == (1, 2)


def test_a_hook_sees_each_tuple():
    sink, execution, written = execute(Watched(), columns(1, 2))
    assert (sink.taken, sink.seen, written, execution.acked) == ([], [1, 2], [1, 2], 2)


def test_a_bolt_that_looks_at_each_tuple_gets_each():
    sink, execution, written = execute(Positive(), columns(1, 0, 2))
    assert (sink.taken, written) == ([False], [1, 2])
    assert (execution.acked, execution.failed) == (2, 1)


def test_columns_without_rows_write_nothing():
    _, execution, written = execute(Sink(), columns())
    assert (execution.written, written, execution.acked) == (b"", [], 0)
