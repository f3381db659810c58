"""The spout log: what a spout task emitted, in the order in which micro-batches read it.

A micro-batch must be repeatable, so what a spout emits is written here before Spark hears of it, and a batch is a
range of positions. The log of a task is a folder of segments; each has a writer, and only that writer writes it.

    record.py    the format of a record: pure
    lineage.py   which segments count, by their names alone: pure
    writer.py    one task's log, open for writing
    stored.py    the same in a store, which can't append
    reader.py    reading a range of it
    ahead.py     reading segments of a store before they are asked for

Nothing keeps two processes from writing at the same time: one that froze wakes up after it was replaced. So nothing
depends on that. What a writer appends goes to files of its own, a micro-batch's offset names the writer that it was
planned from, and a reader follows that writer's files and those of its ancestors, each up to its continuation.
"""

from __future__ import annotations

from storm_on_spark.runtime.spouts.log.lineage import NOBODY, Mark, Segment, WriterEpoch, goes_on_from
from storm_on_spark.runtime.spouts.log.reader import iter_cuts, list_segments, read_entries
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
    "StoredSpoutLog",
    "WriterEpoch",
    "goes_on_from",
    "iter_cuts",
    "list_segments",
    "open_log",
    "read_entries",
]
