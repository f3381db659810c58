"""The streaming source: positions in the spout logs as offsets, and a first operator without state in its read.

Spark runs the driver's side of a Python data source in its own process. That process knows nothing: it asks the
coordinator over a Unix socket how far the next batch reaches. `read` runs in Python workers, takes the chunks of its
partition from the logs and executes the bolts that are fused with the spouts.

A first operator with state can't be executed here. For it, the source only says where the micro-batch begins and ends,
and the operator reads the logs. Spark takes that one row from the process that was asked, and needs no worker for it.

Before the first micro-batch, Spark starts four processes, one after the other, that import this module and never read.
So what only workers need, numpy and pyarrow above all, is in `operator_io` and imported there.
"""

from __future__ import annotations

import contextlib
import json
import socket
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import (
    DataSource,
    DataSourceStreamReader,
    InputPartition,
    SimpleDataSourceStreamReader,
)
from pyspark.sql.types import StructType

from storm_on_spark.runtime.batches.offsets import Offset
from storm_on_spark.spark.query.reading.positions import SourceSettings

if TYPE_CHECKING:
    import pyarrow as pa

SCHEMA = "key int, body binary"
"""Every row between stages: the key of a task, and a chunk."""

_MAX_ANSWER = 1 << 20


class _Line:
    """A line to the coordinator, from the process in which Spark plans micro-batches."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._file: Any = None
        #: Whether the coordinator has hung up once: its socket may be gone.
        self._over = False

    def end_after(self, start: dict[str, Any]) -> dict[str, Any]:
        """Returns how far the next micro-batch reaches, as the coordinator says; `start` if there is none."""
        if self._file is None:
            with socket.socket(socket.AF_UNIX) as connection:
                try:
                    connection.connect(self._path)
                except (FileNotFoundError, ConnectionRefusedError):
                    if self._over:
                        return start
                    raise  # before anything was said: the topology would stand still
                self._file = connection.makefile("rwb")
        try:
            self._file.write(json.dumps(start).encode() + b"\n")
            self._file.flush()
            answer = self._file.readline(_MAX_ANSWER)
        except ConnectionError:
            answer = b""
        if not answer:
            # The topology is stopping; there is nothing more to do.
            self._over = True
            self.hang_up()
            return start
        end: dict[str, Any] = json.loads(answer)
        return end

    def hang_up(self) -> None:
        """Closes the line; the next question opens another."""
        if self._file is not None:
            with contextlib.suppress(ConnectionError):  # what was written and not sent
                self._file.close()
            self._file = None

    def __reduce__(self) -> tuple[type[_Line], tuple[str]]:
        return _Line, (self._path,)


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
        self._line = _Line(settings.socket)

    # --- in the driver's process ---------------------------------------------------------------

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802
        """Returns the beginning of all logs."""
        return Offset().to_json()

    def latestOffset(self, start: dict[str, Any], limit: Any) -> dict[str, Any]:  # noqa: N802
        """Returns how far the next micro-batch reaches."""
        return self._line.end_after(start)

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """Returns one partition for each partition of the plan."""
        return [_Partition(index, start, end) for index in range(self._settings.partitions)]

    def commit(self, end: dict[str, Any]) -> None:
        """Does nothing: the coordinator learns of commits from the next `latestOffset`."""

    def stop(self) -> None:
        """Hangs up."""
        self._line.hang_up()

    # --- in the workers ---------------------------------------------------------------

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yields the rows of the first operator."""
        from storm_on_spark.spark.query.operator_io import read_source

        assert isinstance(partition, _Partition)
        start, end = Offset.from_json(partition.start), Offset.from_json(partition.end)
        yield from read_source(self._settings, start, end, partition.index)


class OffsetsReader(SimpleDataSourceStreamReader):
    """Gives one row a micro-batch, of what `offsets_of` reads.

    Args:
        settings: the run.
    """

    def __init__(self, settings: SourceSettings) -> None:
        self._line = _Line(settings.socket)

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802
        """Returns the beginning of all logs."""
        return Offset().to_json()

    def read(self, start: dict[str, Any]) -> tuple[Iterator[tuple[int, bytes]], dict[str, Any]]:
        """Returns the row of the next micro-batch, and how far it reaches."""
        end = self._line.end_after(start)
        return self.readBetweenOffsets(start, end), end

    def readBetweenOffsets(self, start: dict[str, Any], end: dict[str, Any]) -> Iterator[tuple[int, bytes]]:  # noqa: N802
        """Returns the row of a micro-batch, which Spark may have planned before a restart; none if it is empty."""
        return iter([] if start == end else [(0, json.dumps([start, end]).encode())])


def source_class(name: str, settings: SourceSettings, read_later: bool) -> type[DataSource]:
    """Returns a data source for one run; Spark knows data sources by name and makes them itself.

    Args:
        name: of the source.
        settings: the run.
        read_later: whether the first operator reads the logs, and the source says only from where to where.
    """

    class TopologySource(DataSource):
        @classmethod
        def name(cls) -> str:
            return name

        def schema(self) -> str:
            return SCHEMA

        # Spark takes the one that is defined.
        if read_later:

            def simpleStreamReader(self, schema: StructType) -> OffsetsReader:  # noqa: N802
                return OffsetsReader(settings)

        else:

            def streamReader(self, schema: StructType) -> TopologyReader:  # noqa: N802
                return TopologyReader(settings)

    return TopologySource
