"""Bolts whose tuples the driver writes."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from storm_on_spark.api.component import BaseRichBolt
from storm_on_spark.api.streams.fields import Fields

if TYPE_CHECKING:
    import pyarrow


@dataclass(frozen=True)
class SinkContext:
    """What a sink is written with, in the driver.

    Args:
        spark: the query's SparkSession; settings that are changed in it concern this topology alone.
        writer: names topology and component; another one if the topology starts without its checkpoint.
        micro_batch: its number, the same when it is executed again; -1 when the sink is opened.
        inputs: the fields of each stream that the bolt subscribes to.
    """

    spark: Any
    writer: str
    micro_batch: int = -1
    inputs: tuple[Fields, ...] = ()


class SinkBolt(BaseRichBolt):
    """A bolt whose tuples the driver writes, those of all its tasks in a micro-batch at once.

    Tasks collect what is to be written, and `take_written` hands it over at the end of each micro-batch. The driver
    calls `write` with all of it before the micro-batch is committed, so a tuple that the task acked is acked to its
    spout only when it is written. If the driver dies between `write` and the commit, the micro-batch is executed again
    and `write` is called again with the same number: whoever keeps that number beside what is written, as Delta does,
    writes it once.

    `execute` may not raise once it has noted something of the tuple, for the tuples before are not executed again.
    """

    stateless: ClassVar[bool | None] = True

    def open_sink(self, context: SinkContext) -> None:
        """Called in the driver before spouts open, to check what can't be written to.

        Raises:
            SetupError: nothing could be written.
        """

    def take_batch(self, batch: pyarrow.RecordBatch) -> bool:
        """Takes tuples that arrived as columns, all or none; called in the task instead of `execute`.

        Args:
            batch: one row per tuple, one column per field of the stream.

        Returns:
            Whether it took them: then all are acked. If not, `execute` is called with each.
        """
        return False

    @abstractmethod
    def take_written(self) -> bytes:
        """Returns what the task has collected since the last call, empty for nothing; called in the task."""

    @abstractmethod
    def write(self, written: Sequence[bytes], context: SinkContext) -> None:
        """Writes what the tasks handed over in a micro-batch; called in the driver.

        What it raises ends the topology, and the micro-batch is not committed.

        Args:
            written: by task number, those of one task in the order of its executions.
            context: the session, and which micro-batch.
        """
