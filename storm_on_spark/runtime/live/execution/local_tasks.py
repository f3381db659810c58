"""The tasks that one live process executes, and their state."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Final

from storm_on_spark.api.errors import ComponentError
from storm_on_spark.plan.model import Stage
from storm_on_spark.runtime.bolts.operator import Waiting, execute_stage
from storm_on_spark.runtime.bolts.saved import SavedTask
from storm_on_spark.runtime.bolts.stage import BatchInfo, Passed
from storm_on_spark.runtime.bolts.worker import CachedTask, Worker
from storm_on_spark.runtime.live.execution import copied
from storm_on_spark.runtime.live.execution.copied import Copy
from storm_on_spark.runtime.live.execution.small_round import SmallRounds
from storm_on_spark.runtime.live.execution.state import LateChanges, LiveState
from storm_on_spark.runtime.live.messages import Key
from storm_on_spark.runtime.reports.report import Failure, TaskMetrics

log = logging.getLogger(__name__)

_SMALL: Final = 64 << 10
"""Bytes of pickled attributes in a process: some 0.1 ms of a round."""


class LocalTasks:
    """The tasks of one process.

    Args:
        worker: this process's instances for this run, which no other code executes.
        values: their state.
    """

    def __init__(self, worker: Worker, values: Mapping[Key, bytes]) -> None:
        self.worker = worker
        #: The state of these tasks.
        self.state = LiveState(values)
        self.small = SmallRounds(worker, worker.spec.plan.operators[0], self.state.of)
        #: The copy that takes the last barrier's snapshots, and their tasks.
        self._copy: Copy | None = None
        self._copied: list[tuple[int, CachedTask]] = []

    def executions(self, stage: Stage, by_task: Waiting, info: BatchInfo) -> Iterator[Iterable[Passed]]:
        """Yields what each execution of a stage emits.

        Raises:
            UnsavedError: a bolt raised.
            StormError: a state is damaged.
        """
        return execute_stage(self.worker, stage, by_task, info, self.state.of)

    def save(self, number: int, *, later: bool = False) -> list[TaskMetrics | Failure]:
        """Saves the state of all tasks and returns their reports.

        Args:
            number: the transaction id, for transactional bolts.
            later: whether large snapshots may be taken by a copy of this process; see `late_changes`.

        Raises:
            StormError: a state can't be saved.
        """
        worker = self.worker
        reports: list[TaskMetrics | Failure] = []
        large: list[tuple[int, CachedTask]] = []
        for task, cached in list(worker.tasks.items()):
            errors: list[ComponentError] = []
            registered = cached.bolt.readings(errors)
            if registered:
                component = worker.wiring.component_of[task]
                reports.append(TaskMetrics(component, task, 0, 0, 0, 0, 0, 0.0, registered))
            reports += [Failure.of(error, fatal=False) for error in errors]
            if cached.unsaved and later and copied.is_large(cached):
                large.append((task, cached))
            elif cached.unsaved:
                SavedTask(worker, task, self.state.of(task)).save_later(number)
        if large:
            self._copy_takes(large, number)
        return reports

    def _copy_takes(self, large: list[tuple[int, CachedTask]], number: int) -> None:
        try:
            self._copy = Copy([cached for _, cached in large])
        except OSError as error:
            log.warning("this process can't be copied, so messages wait for its snapshots: %s", error)
            for task, _ in large:
                SavedTask(self.worker, task, self.state.of(task)).save_later(number)
            return
        self._copied = large
        for _, cached in large:
            cached.unsaved = False

    @property
    def is_small(self) -> bool:
        """Whether the attributes of all tasks, as they were last saved, are few enough to be saved with each round."""
        return sum(len(cached.bolt.saved or b"") for cached in self.worker.tasks.values()) <= _SMALL

    @property
    def owes(self) -> bool:
        """Whether the changes taken last are incomplete."""
        return self._copy is not None

    def late_changes(self, *, wait: bool = True) -> dict[Key, bytes | None] | None:
        """Returns the missing part of the changes taken last, or None if it isn't ready.

        Args:
            wait: whether to wait for it.

        Raises:
            StormError: it could not be saved.
        """
        copy = self._copy
        if copy is None:
            return {}
        if not wait and not copy.over():
            return None
        self._copy = None
        changes: dict[Key, bytes | None] = {}
        for (task, cached), taken in zip(self._copied, copy.taken(), strict=True):
            if taken is None:
                continue
            late, unsaved, delta = LateChanges(self.state, task), cached.unsaved, taken.delta
            if cached.bolt.snapshots is not None:
                cached.bolt.snapshots.transient |= taken.transient
            cached.bolt.took(taken.snapshot)
            SavedTask(self.worker, task, late).save(cached, lambda *_, delta=delta: delta)
            cached.unsaved = unsaved  # since the barrier
            changes.update(late.changes)
        self.state.set_late(changes)
        return changes

    def close(self) -> None:
        """Ends the forked copy of this process, if there is one."""
        if self._copy is not None:
            self._copy.close()
            self._copy = None

    def take_changes(self) -> dict[Key, bytes | None]:
        """Returns the values saved since the last call, with None for removed keys."""
        return self.state.take_changes()

    def give(self, tasks: Collection[int]) -> dict[Key, bytes]:
        """Removes tasks from this process, and returns their state.

        All changes must have been taken, the late ones, too.
        """
        for task in tasks:
            self.worker.tasks.pop(task, None)
        return self.state.take_out(tasks)

    def receive(self, values: Mapping[Key, bytes]) -> None:
        """Adds tasks to this process, with the state that `give` returned in another one."""
        self.state.put_in(values)

    def go_back(self) -> None:
        """Restores state and tasks as of the last call of `take_changes`.

        All late changes must have been asked for.
        """
        for cached in self.worker.tasks.values():
            if cached.unsaved:
                cached.unsaved, cached.version = False, None
        self.state.undo_changes()
