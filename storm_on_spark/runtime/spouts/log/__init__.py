"""The spout log: the emitted tuples of a spout task, in the order in which micro-batches read them.

A micro-batch must be repeatable. Therefore emitted tuples are written here before Spark learns of them, and a batch is
a range of positions. The log of a task is a folder of segments; each has one writer. Cuts come in; entries between two
positions go out. Begin with `record.py`.

    record.py    the format of a record: pure
    lineage.py   which segments count, judged by their names alone: pure
    writer.py    one task's log, open for writing
    stored.py    the same in a store, which can't append
    reader.py    reading a range of it
    ahead.py     reading segments of a store in advance

Two processes may write at the same time: a frozen one may wake up after it was replaced. The log is safe even then.
Each writer appends to its own files, a micro-batch's offset names the writer that it was planned from, and a reader
follows that writer's files and those of its ancestors, each up to its continuation.
"""

from __future__ import annotations

from storm_on_spark.runtime.spouts.log.lineage import NOBODY, Mark, Segment, WriterEpoch
from storm_on_spark.runtime.spouts.log.reader import Steps, iter_cuts, list_segments, read_entries
from storm_on_spark.runtime.spouts.log.record import ACKER, MESSAGE_IDS, SNAPSHOT, Cut, Entry
from storm_on_spark.runtime.spouts.log.stored import StoredSpoutLog, open_log
from storm_on_spark.runtime.spouts.log.writer import SEGMENT_BYTES, SpoutLog

__all__ = [
    "ACKER",
    "MESSAGE_IDS",
    "NOBODY",
    "SEGMENT_BYTES",
    "SNAPSHOT",
    "Cut",
    "Entry",
    "Mark",
    "Segment",
    "SpoutLog",
    "Steps",
    "StoredSpoutLog",
    "WriterEpoch",
    "iter_cuts",
    "list_segments",
    "open_log",
    "read_entries",
]
