"""What bolts hand over to the driver, and the driver writes: the driver's side of `SinkBolt`."""

from __future__ import annotations

import traceback
from collections import defaultdict
from collections.abc import Iterable

from pyspark.sql import SparkSession

from storm_on_spark.api.errors import SetupError
from storm_on_spark.api.sink import SinkBolt, SinkContext
from storm_on_spark.api.streams.fields import Fields
from storm_on_spark.plan.model import PlacedPlan
from storm_on_spark.runtime.codec import chunk
from storm_on_spark.runtime.reports.report import Failure


class WriteError(Exception):
    """A sink could not be written.

    Args:
        failure: which, and why.
    """

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.message)
        self.failure = failure


class Written:
    """The sinks of a topology.

    Args:
        plan: with the topology's components.
        storm_id: the same when the topology goes on from its checkpoint.
    """

    def __init__(self, plan: PlacedPlan, storm_id: str) -> None:
        self._storm_id = storm_id
        self._bolts: dict[str, SinkBolt] = {}
        self._component_of: dict[int, str] = {}
        self._inputs: dict[str, tuple[Fields, ...]] = {}
        components = plan.topology.components
        for name, component in plan.components.items():
            if component.sink:
                self._bolts[name] = components[name].component  # type: ignore[assignment]
                self._inputs[name] = tuple(
                    components[source.component].streams[source.stream].fields for source, _ in components[name].inputs
                )
                self._component_of.update(dict.fromkeys(component.tasks, name))

    def open(self, spark: SparkSession) -> None:
        """Asks every sink whether it can be written to.

        Raises:
            SetupError: one can't.
        """
        for name, bolt in self._bolts.items():
            try:
                bolt.open_sink(SinkContext(spark, self._writer(name), inputs=self._inputs[name]))
            except SetupError as error:
                raise SetupError(f'bolt "{name}" can\'t write: {error}') from error

    def write(self, spark: SparkSession, micro_batch: int, handed: Iterable[bytes]) -> None:
        """Writes what a micro-batch brought, sink by sink.

        Args:
            spark: the query's session.
            micro_batch: its number.
            handed: WRITTEN chunks in any order.

        Raises:
            WriteError: a sink raised.
        """
        found: dict[str, list[tuple[int, int, bytes]]] = defaultdict(list)
        for body in handed:
            header = chunk.read_header(body)
            written = chunk.read_written(body)
            found[self._component_of[header.source]].append((header.source, header.sequence, written))
        for name in sorted(found):
            context = SinkContext(spark, self._writer(name), micro_batch, self._inputs[name])
            try:
                self._bolts[name].write([written for _, _, written in sorted(found[name])], context)
            except Exception as error:
                text = f'bolt "{name}" could not write micro-batch {micro_batch}: {_short(error)}'
                raise WriteError(Failure(name, None, text, traceback.format_exc())) from error

    def _writer(self, name: str) -> str:
        return f"{self._storm_id}/{name}"


def _short(error: Exception) -> str:
    lines = [line for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {lines[0] if lines else ''}"[:500]
