"""A spout's output, without a spout: what tests of groupings emit into."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
from stormtest import Nothing, make_worker

from storm_on_spark.api import BaseRichSpout, Fields, TopologyBuilder
from storm_on_spark.runtime.emit.output import TaskOutput
from storm_on_spark.runtime.tracking.ids import EdgeIds


class Emitter(BaseRichSpout):
    def __init__(self, streams: dict[str, list[str]], direct: tuple[str, ...] = ()):
        self.streams, self.direct = streams, direct

    def next_tuple(self):
        pass

    def declare_output_fields(self, declarer):
        for stream, fields in self.streams.items():
            declarer.declare_stream(stream, Fields(*fields), direct=stream in self.direct)


def output_for(
    group: Callable[[Any], Any], tasks: int = 3, fields: tuple[str, ...] = ("word", "count"), **streams: Any
) -> TaskOutput:
    """The output of a spout, whose default stream one bolt reads by the grouping that `group` declares."""
    builder = TopologyBuilder()
    direct = streams.pop("direct", ())
    builder.set_spout("spout", Emitter({"default": list(fields), **streams}, direct))
    group(builder.set_bolt("bolt", Nothing(), tasks))
    worker = make_worker(builder)
    task = worker.wiring.plan.components["spout"].tasks[0]
    return TaskOutput(worker.wiring, worker.context(task))


def targets(output: TaskOutput) -> dict[int, list[tuple[Any, ...]]]:
    """What each task received; empties the output."""
    found: dict[int, list[tuple[Any, ...]]] = {}
    for sealed in output.seal(lambda: np.zeros(1, np.uint64), EdgeIds("x")):
        values = sealed.values
        if isinstance(values, pa.RecordBatch):
            values = [tuple(row.values()) for row in values.to_pylist()]
        found.setdefault(sealed.box.target, []).extend(values)
    return found
