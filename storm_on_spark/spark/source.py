"""The streaming source: positions in the spout logs as offsets, and stage 0 in its read.

Spark runs the driver's side of a Python data source in a process of its own. That process knows nothing: it asks the
coordinator over a Unix socket how far the next batch reaches. `read` runs in Python workers, takes the chunks of its
partition from the logs and executes the bolts that are fused with the spouts.

Before the first micro-batch, Spark starts four processes, one after the other, that import this module and never read.
So what only workers need, numpy and pyarrow above all, is in `storm_on_spark.spark.stage_io` and imported there.
"""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.types import StructType

from storm_on_spark.runtime.offsets import Offset

if TYPE_CHECKING:
    import pyarrow as pa

SCHEMA = "key int, body binary"
"""Every row between stages: the key of a task, and a chunk."""

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
    partitions: int
    """The plan's."""


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
        return [_Partition(index, start, end) for index in range(self._settings.partitions)]

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
        from storm_on_spark.spark.stage_io import read_source

        assert isinstance(partition, _Partition)
        start, end = Offset.from_json(partition.start), Offset.from_json(partition.end)
        yield from read_source(self._settings, start, end, partition.index)

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
