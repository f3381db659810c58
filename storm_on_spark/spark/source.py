"""The streaming source: positions in the spout logs as offsets, and stage 0 in its read.

Spark runs the driver's side of a Python data source in a process of its own. That process knows nothing: it asks the
coordinator over a Unix socket how far the next batch reaches. `read` runs in Python workers, takes the chunks of its
partition from the logs and executes the bolts that are fused with the spouts.
"""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.types import StructType

from storm_on_spark.runtime.batch_input import chunks_between
from storm_on_spark.runtime.offsets import Offset
from storm_on_spark.runtime.stage import BatchInfo, Row, execute_stage
from storm_on_spark.runtime.worker import worker_for

SCHEMA = "key int, body binary"
"""Every row between stages: the key of a task, and a chunk."""

ARROW_SCHEMA = pa.schema([("key", pa.int32()), ("body", pa.binary())])

_BATCH_ROWS = 256
_BATCH_BYTES = 32 << 20
_MAX_ANSWER = 1 << 20


@dataclass(frozen=True)
class SourceSettings:
    """What the source needs to know of its run."""

    start_id: str
    spec: bytes
    folder: str
    """The topology's own folder in the checkpoint."""
    socket: str
    """Where the coordinator listens."""


class _Partition(InputPartition):
    def __init__(self, index: int, start: dict[str, Any], end: dict[str, Any]) -> None:
        super().__init__(index)
        self.index = index
        self.start = start
        self.end = end


class TopologyReader(DataSourceStreamReader):
    """Reads the spout logs of one run.

    Args:
        settings: the run.
    """

    def __init__(self, settings: SourceSettings) -> None:
        self._settings = settings
        self._line: Any = None

    # --- in the driver's process ---------------------------------------------------------------

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802
        """Returns the beginning of all logs."""
        return Offset().to_json()

    def latestOffset(self, start: dict[str, Any], limit: Any) -> dict[str, Any]:  # noqa: N802
        """Returns how far the next micro-batch reaches, as the coordinator says."""
        if self._line is None:
            connection = socket.socket(socket.AF_UNIX)
            connection.connect(self._settings.socket)
            self._line = connection.makefile("rwb")
        self._line.write(json.dumps(start).encode() + b"\n")
        self._line.flush()
        answer = self._line.readline(_MAX_ANSWER)
        if not answer:
            # The topology is stopping; there is nothing more to do.
            self._line = None
            return start
        end: dict[str, Any] = json.loads(answer)
        return end

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """Returns one partition for each partition of the plan."""
        plan = worker_for(self._settings.start_id, self._settings.spec).spec.plan
        assert plan.partitions is not None
        return [_Partition(index, start, end) for index in range(plan.partitions)]

    def commit(self, end: dict[str, Any]) -> None:
        """Does nothing: the coordinator learns of commits from the next `latestOffset`."""

    def stop(self) -> None:
        """Hangs up."""
        if self._line is not None:
            self._line.close()
            self._line = None

    # --- in the workers ---------------------------------------------------------------

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yields the rows of stage 0."""
        assert isinstance(partition, _Partition)
        worker = worker_for(self._settings.start_id, self._settings.spec)
        start, end = Offset.from_json(partition.start), Offset.from_json(partition.end)
        bodies = chunks_between(worker.wiring, Path(self._settings.folder), start, end, partition.index)
        stage = worker.spec.plan.stages[0]
        yield from to_batches(execute_stage(worker, stage, bodies, batch_info(), None))

    def __getstate__(self) -> dict[str, Any]:
        return {"_settings": self._settings, "_line": None}


def source_class(name: str, settings: SourceSettings) -> type[DataSource]:
    """Returns a data source for one run; Spark knows data sources by name and makes them itself."""

    class TopologySource(DataSource):
        @classmethod
        def name(cls) -> str:
            return name

        def schema(self) -> str:
            return SCHEMA

        def streamReader(self, schema: StructType) -> TopologyReader:  # noqa: N802
            return TopologyReader(settings)

    return TopologySource


def batch_info() -> BatchInfo:
    """Returns which batch and partition the current Spark task executes."""
    context = TaskContext.get()
    assert context is not None
    batch = context.getLocalProperty("streaming.sql.batchId")
    assert batch is not None, "Spark set no batch id"
    return BatchInfo(int(batch), context.partitionId())


def to_batches(rows: Iterator[Row]) -> Iterator[pa.RecordBatch]:
    """Yields rows as record batches of a bounded size."""
    keys: list[int] = []
    bodies: list[bytes] = []
    size = 0
    for key, body in rows:
        keys.append(key)
        bodies.append(body)
        size += len(body)
        if len(keys) >= _BATCH_ROWS or size >= _BATCH_BYTES:
            yield _record_batch(keys, bodies)
            keys, bodies, size = [], [], 0
    if keys:
        yield _record_batch(keys, bodies)


def _record_batch(keys: list[int], bodies: list[bytes]) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.array(keys, pa.int32()), pa.array(bodies, pa.binary())], schema=ARROW_SCHEMA)
