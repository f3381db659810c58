"""Word count from end to end, in one process."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from trident_run import Gathered, run

from storm_on_spark.trident import Count, FixedBatchSpout, TridentTopology
from storm_on_spark.trident.state import MemoryMapState

LINES = [["to be or not to be"], ["that is the question"], ["to die"], ["to sleep no more"], ["and by a sleep"]] * 4
WORDS = Counter(word for [line] in LINES for word in line.split())


@pytest.mark.parametrize("tasks", [1, 3])
@pytest.mark.parametrize("pending", [1, 5])
def test_the_last_count_of_each_word_is_the_number_of_its_occurrences(tasks: int, pending: int) -> None:
    topology = TridentTopology()
    lines = topology.new_stream("lines", FixedBatchSpout("line", 3, LINES))
    words = lines.flat_map(lambda tup: tup["line"].split(), "word")
    counts = (
        words.group_by("word").persistent_aggregate(MemoryMapState.Factory(), Count(), "count").parallelism_hint(tasks)
    )
    gathered = Gathered(counts.new_values_stream())
    run(topology, {"topology.max.spout.pending": pending})
    assert dict(gathered.rows) == WORDS


def test_batches_are_committed_in_order() -> None:
    topology = TridentTopology()
    numbers = topology.new_stream("numbers", FixedBatchSpout("number", 2, [[number] for number in range(20)]))
    state = numbers.partition_persist(LogFactory(), "number", LogUpdater(), ["txid", "number"])
    gathered = Gathered(state.new_values_stream())
    run(topology, {"topology.max.spout.pending": 4})
    assert gathered.rows == [(number // 2 + 1, number) for number in range(20)]


class Log:
    txid = 0

    def begin_commit(self, txid: int) -> None:
        assert txid == self.txid + 1
        self.txid = txid

    def commit(self, txid: int) -> None: ...


class LogFactory:
    def make_state(self, conf: Any, metrics: Any, partition_index: int, num_partitions: int) -> Log:
        return Log()


class LogUpdater:
    def update_state(self, state: Log, tuples: list[Any], collector: Any) -> None:
        for tup in tuples:
            collector.emit([state.txid, tup[0]])
