"""Trident topologies in this process: what reaches the end of a stream, batch by batch."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from storm_on_spark.api.config.config import effective_conf
from storm_on_spark.api.info import TopologyInfo
from storm_on_spark.plan.compile import compile_graph
from storm_on_spark.runtime.in_process.topology import InProcessTopology
from storm_on_spark.trident import FixedBatchSpout, Stream, TridentTopology

CONF = {"topology.trident.batch.emit.interval.millis": 1, "topology.max.spout.pending": 3}

_numbers = itertools.count()
_gathered: dict[int, list[tuple[Any, ...]]] = {}


class Gathered:
    """Keeps the tuples of a stream, in this process."""

    def __init__(self, stream: Stream) -> None:
        self.number = next(_numbers)
        _gathered[self.number] = []
        stream.peek(_Gather(self.number))

    @property
    def rows(self) -> list[tuple[Any, ...]]:
        return _gathered[self.number]


class _Gather:
    def __init__(self, number: int) -> None:
        self.number = number

    def __call__(self, tup: Any) -> None:
        _gathered[self.number].append(tuple(tup))


def run(topology: TridentTopology, conf: Mapping[str, Any] | None = None) -> TopologyInfo:
    """Runs a topology until its spouts are exhausted."""
    run = InProcessTopology(compile_graph(topology.build(), effective_conf({**CONF, **(conf or {})})), "trident")
    info = run.run()
    if run.failure is not None:
        raise run.failure
    assert info.status == "COMPLETED"
    assert not any(component.errors for component in info.components.values())
    return info


def results(
    rows: Sequence[Sequence[Any]],
    program: Callable[[Stream], Stream],
    fields: Sequence[str] = ("value",),
    size: int = 3,
    conf: Mapping[str, Any] | None = None,
) -> list[tuple[Any, ...]]:
    """Returns the tuples of a program's stream, of rows in batches of `size`."""
    topology = TridentTopology()
    gathered = Gathered(program(topology.new_stream("rows", FixedBatchSpout(fields, size, rows))))
    run(topology, conf)
    return gathered.rows
