"""What bolts hand over to the driver, and the driver writes: the driver's side of `SinkBolt`."""

from __future__ import annotations

import contextlib
import traceback
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any

from storm_on_spark.api.errors import CheckpointError, SetupError
from storm_on_spark.api.sink import Plans, SinkBolt, SinkContext, WritesByNumber
from storm_on_spark.api.streams.fields import Fields
from storm_on_spark.plan.model import PlacedPlan
from storm_on_spark.runtime.codec import chunk
from storm_on_spark.runtime.reports.report import Failure
from storm_on_spark.runtime.storage.durable import Durable


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
        storm_id: the same when the topology continues from its checkpoint.
        plans: what the checkpoint has planned; None where there is no checkpoint.
        durable: forces the checkpoint to the disk; None where nothing is forced.
    """

    def __init__(self, plan: PlacedPlan, storm_id: str, plans: Plans | None, durable: Durable | None = None) -> None:
        self._storm_id = storm_id
        self._plans = plans
        self._durable = durable
        self._bolts: dict[str, SinkBolt] = {}
        #: Bolts whose tasks write outside themselves.
        self._by_number: dict[str, WritesByNumber] = {}
        #: Of the micro-batch that is executed.
        self._plan = 0
        self._component_of: dict[int, str] = {}
        self._inputs: dict[str, tuple[Fields, ...]] = {}
        components = plan.topology.components
        for name, component in plan.components.items():
            bolt = components[name].component
            if component.sink:
                self._bolts[name] = bolt  # type: ignore[assignment]
            elif component.by_number:
                self._by_number[name] = bolt  # type: ignore[assignment]
            else:
                continue
            self._inputs[name] = tuple(
                components[source.component].streams[source.stream].fields for source, _ in components[name].inputs
            )
            self._component_of.update(dict.fromkeys(component.tasks, name))

    def open(self, spark: Any) -> None:
        """Asks every sink whether it can be written to, and whether the checkpoint belongs to what it has.

        Raises:
            SetupError: one can't.
            CheckpointError: the checkpoint is older than what a sink has.
        """
        sinks: dict[str, SinkBolt | WritesByNumber] = {**self._bolts, **self._by_number}
        for name, bolt in sinks.items():
            try:
                bolt.open_sink(SinkContext(spark, self._writer(name), inputs=self._inputs[name], plans=self._plans))
            except (SetupError, CheckpointError) as error:
                raise type(error)(f'bolt "{name}" can\'t write: {error}') from error

    def begin(self, spark: Any, micro_batch: int) -> None:
        """Forces what was planned to the disk before anything of it is executed, and tells the sinks.

        So no sink ever has a micro-batch whose plan is lost.

        Args:
            spark: the query's session; None in a process without Spark.
            micro_batch: its number.

        Raises:
            WriteError: a sink raised.
            CheckpointError: Spark's log can't be read.
            OSError: the disk fails.
        """
        if not self._inputs:
            return
        if self._durable is not None:
            self._durable.force()
        self._plan = (self._plans.of(micro_batch) if self._plans is not None else None) or 0
        for name, bolt in self._by_number.items():
            with self._named(name, micro_batch):
                bolt.note_plan(self._context(spark, name, micro_batch))

    def write(self, spark: Any, micro_batch: int, handed: Iterable[bytes]) -> list[Failure]:
        """Writes what a micro-batch brought, sink by sink.

        Args:
            spark: the query's session; None in a process without Spark.
            micro_batch: its number.
            handed: WRITTEN chunks in any order.

        Returns:
            What sinks reported that does not end the topology.

        Raises:
            WriteError: a sink raised.
        """
        reported: list[Failure] = []
        found: dict[str, list[tuple[int, int, bytes]]] = defaultdict(list)
        for body in handed:
            header = chunk.read_header(body)
            written = chunk.read_written(body)
            found[self._component_of[header.source]].append((header.source, header.sequence, written))
        for name in sorted(found):
            with self._named(name, micro_batch):
                context = replace(self._context(spark, name, micro_batch), report=_reporter(name, reported))
                self._bolts[name].write([written for _, _, written in sorted(found[name])], context)
        return reported

    @contextlib.contextmanager
    def _named(self, name: str, micro_batch: int) -> Iterator[None]:
        """Names the bolt and the micro-batch in what is raised within."""
        try:
            yield
        except Exception as error:
            text = f'bolt "{name}" could not write micro-batch {micro_batch}: {_short(error)}'
            raise WriteError(Failure(name, None, text, traceback.format_exc())) from error

    def _context(self, spark: Any, name: str, micro_batch: int) -> SinkContext:
        durable = self._durable is not None
        return SinkContext(spark, self._writer(name), micro_batch, self._inputs[name], plan=self._plan, durable=durable)

    def _writer(self, name: str) -> str:
        return f"{self._storm_id}/{name}"


def _reporter(name: str, reported: list[Failure]) -> Callable[[str], None]:
    return lambda message: reported.append(Failure(name, None, f'bolt "{name}": {message}', fatal=False))


def _short(error: Exception) -> str:
    lines = [line for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {lines[0] if lines else ''}"[:1000]
