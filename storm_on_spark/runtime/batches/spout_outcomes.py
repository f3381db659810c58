"""The outcomes of micro-batches, from the sink that reports them to the snapshots of the spouts.

An outcome passes three stages. Spark has run the micro-batch, but may run it again: the outcome is *delivered*. Spark
has committed it: the spouts are told, but may die before they save what they heard: the outcome is *unsaved*. Every
spout has saved it: its file goes. A restarted driver finds the files, and begins with the first stage.
"""

from __future__ import annotations

import threading
from collections.abc import Collection, Container, Iterator, Mapping, Sequence

from storm_on_spark.runtime.batches.files import BatchFiles
from storm_on_spark.runtime.batches.outcomes import Reported
from storm_on_spark.runtime.spouts.messages import Settle
from storm_on_spark.runtime.tracking.runs import NONE, Runs


class SpoutOutcomes:
    """Keeps outcomes until all spouts have saved them.

    Args:
        files: where they are kept; nothing else writes there.
        tasks: the spout tasks of the topology. Others may have been part of it when the micro-batch ran.
    """

    def __init__(self, files: BatchFiles, tasks: Container[int]) -> None:
        self._files = files
        self._tasks = tasks
        #: Batch -> outcomes that spouts hear of once it is committed.
        self._delivered: dict[int, Reported] = {}
        #: Held for `_unsaved`, which is read and changed on the threads of all hosts.
        self._lock = threading.Lock()
        #: Batch -> tasks that may still need to be told of its outcome after a crash.
        self._unsaved: dict[int, set[int]] = {}

    def load(self, committed: int | None = None) -> None:
        """Reads the outcomes that an earlier driver left; the spouts are told of them again.

        Args:
            committed: the last micro-batch that Spark has committed; what later ones left is deleted. None if all did
                that left anything.

        Raises:
            CheckpointError: a file is damaged.
        """
        if committed is not None:
            self._files.delete_after(committed)
        self._delivered = {batch: self._read(batch) for batch in self._files.batches()}

    def write(self, batch: int, chunks: Sequence[bytes]) -> None:
        """Writes the OUTCOME, LEFT and READ chunks of a micro-batch, in place of those of an earlier attempt.

        Raises:
            OSError: they can't be written.
        """
        self._files.write(batch, chunks)

    def deliver(self, batch: int, chunks: Sequence[bytes]) -> Mapping[int, int]:
        """Notes the outcomes of a micro-batch that are written, in place of those of an earlier attempt.

        Returns:
            Task of a native spout -> its rows that the micro-batch did not ack.
        """
        self._delivered.pop(batch, None)
        if not chunks:
            return {}
        reported = self._delivered[batch] = Reported.of(chunks)
        return reported.rows_left

    def committed(self) -> Iterator[tuple[int, dict[int, Settle]]]:
        """Yields (batch, what each spout task is told) of all that was delivered: it is committed now.

        A batch without outcomes for any task is dropped, not yielded.
        """
        delivered, self._delivered = self._delivered, {}
        for batch, reported in sorted(delivered.items()):
            settles = {task: settle for task, settle in _settles(batch, reported).items() if task in self._tasks}
            if settles:
                yield batch, settles
            else:
                # Their spout is no longer part of the topology.
                self._files.delete(batch)

    def tell(self, batch: int, tasks: Collection[int]) -> None:
        """Notes that tasks are told of a batch; from now on they may die before they save what they heard."""
        with self._lock:
            self._unsaved[batch] = set(tasks)

    def unsaved(self, task: int) -> Iterator[Settle]:
        """Yields the outcomes that may not be in a task's snapshot, the oldest first.

        Raises:
            CheckpointError: a file is damaged.
        """
        with self._lock:
            batches = sorted(batch for batch, tasks in self._unsaved.items() if task in tasks)
        for batch in batches:
            yield _settles(batch, self._read(batch))[task]

    def saved(self, task: int, last: int) -> None:
        """Notes that a task has saved the outcomes of all batches up to `last`; files that all have saved go."""
        done = []
        with self._lock:
            for batch, tasks in list(self._unsaved.items()):
                if batch <= last:
                    tasks.discard(task)
                if not tasks:
                    del self._unsaved[batch]
                    done.append(batch)
        for batch in done:
            self._files.delete(batch)

    def _read(self, batch: int) -> Reported:
        return Reported.of(self._files.read(batch))


def _settles(batch: int, reported: Reported) -> dict[int, Settle]:
    """Returns what each spout task is told."""
    ended = dict(Runs.joined(reported.outcomes).by_task())
    left: dict[int, list[bytes]] = {}
    for task, body in reported.left:
        left.setdefault(task, []).append(body)
    return {
        task: Settle(task, batch, ended.get(task, NONE), tuple(left.get(task, ())))
        for task in sorted(ended.keys() | left.keys())
    }
