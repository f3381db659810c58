"""A topology whose bolts are driven one tuple at a time, in milliseconds: no process, no clock, no Spark."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import cloudpickle

from storm_on_spark import BaseBasicBolt, Topology
from storm_on_spark.api.streams.grouping import AllGrouping, FieldsGrouping, GlobalGrouping, Grouping
from storm_on_spark.testing import BoltTester, Emission, make_tuple, run_spout

_numbers = itertools.count()
_gathered: dict[int, list[Any]] = {}


class Gather(BaseBasicBolt):
    """Keeps what reaches it in this process: a tuple's values, or its only value."""

    stateless = True

    def __init__(self) -> None:
        self.number = next(_numbers)
        _gathered[self.number] = []

    @property
    def values(self) -> list[Any]:
        return _gathered[self.number]

    def execute(self, tup, collector) -> None:
        _gathered[self.number].append(tuple(tup) if len(tup) > 1 else tup[0])


class TopologyBench:
    """Feeds the bolts of a topology in place of its spouts. What a tuple leads to happens before the next one."""

    def __init__(self, topology: Topology, conf: Mapping[str, Any] | None = None) -> None:
        self._topology, self._conf = topology, conf
        self.testers = {
            (name, index): BoltTester(
                cloudpickle.loads(cloudpickle.dumps(spec.component)),  # each task has an object of its own
                self._samples(spec.inputs),
                name=name,
                conf={**(conf or {}), **spec.conf},
                tasks=spec.parallelism,
                task_index=index,
            )
            for name, spec in topology.bolts.items()
            for index in range(spec.parallelism)
        }
        self._told = dict.fromkeys(self.testers, 0)
        self._turn = itertools.count()

    def feed(self, spout: str, *rows: Sequence[Any]) -> None:
        """Emits tuples of a spout."""
        for row in rows:
            self._deliver(spout, "default", tuple(row))

    def restart(self) -> None:
        """Affects all bolts like a crash between two micro-batches."""
        for tester in self.testers.values():
            tester.restart()

    def advance(self, seconds: float) -> None:
        """Moves the time on."""
        for task, tester in self.testers.items():
            tester.advance(seconds)
            self._pass_on(task)

    def acked(self, bolt: str) -> int:
        return sum(len(tester.collector.acked) for (name, _), tester in self.testers.items() if name == bolt)

    def _samples(self, inputs: Iterable[Any]) -> list[Any]:
        return [
            make_tuple([None] * len(self._fields(source)), self._fields(source), source.component, source.stream)
            for source, _ in inputs
        ]

    def _fields(self, source: Any) -> Any:
        return self._topology[source.component].streams[source.stream].fields

    def _deliver(self, component: str, stream: str, values: tuple[Any, ...]) -> None:
        for name, spec in self._topology.bolts.items():
            for source, grouping in spec.inputs:
                if (source.component, source.stream) == (component, stream):
                    fields = self._fields(source)
                    for index in self._tasks(grouping, dict(zip(fields, values, strict=True)), spec.parallelism):
                        self.testers[name, index].execute(make_tuple(values, fields, component, stream))
                        self._pass_on((name, index))

    def _tasks(self, grouping: Grouping, row: Mapping[str, Any], tasks: int) -> Iterable[int]:
        if isinstance(grouping, AllGrouping):
            return range(tasks)
        if isinstance(grouping, GlobalGrouping):
            return [0]
        if isinstance(grouping, FieldsGrouping):
            return [hash(tuple(row[name] for name in grouping.fields)) % tasks]
        return [next(self._turn) % tasks]

    def _pass_on(self, task: tuple[str, int]) -> None:
        emitted = self.testers[task].collector.emitted
        while self._told[task] < len(emitted):
            self._told[task] += 1
            emission = emitted[self._told[task] - 1]
            rows = [emission.values] if isinstance(emission, Emission) else emission.batch.to_pylist()
            for row in rows:
                self._deliver(task[0], emission.stream, tuple(row.values() if isinstance(row, dict) else row))

    def play(self, seconds: float = 0) -> None:
        """Emits all that the spouts have, a tuple of each in turn, and then moves the time on."""
        emitted = {
            name: run_spout(cloudpickle.loads(cloudpickle.dumps(spec.component)), conf=self._conf).values()
            for name, spec in self._topology.spouts.items()
        }
        for turn in itertools.zip_longest(*emitted.values()):
            for name, row in zip(emitted, turn, strict=True):
                if row is not None:
                    self.feed(name, row)
        self.advance(seconds)
