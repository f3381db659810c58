"""What one live process executes: its share of the tasks, and their state."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from storm_on_spark.api.errors import ComponentError
from storm_on_spark.plan.model import Stage
from storm_on_spark.runtime.bolts.operator import Waiting, execute_stage
from storm_on_spark.runtime.bolts.saved import SavedTask
from storm_on_spark.runtime.bolts.stage import BatchInfo, Passed
from storm_on_spark.runtime.bolts.worker import Worker
from storm_on_spark.runtime.live.messages import Key
from storm_on_spark.runtime.live.state import LiveState
from storm_on_spark.runtime.reports.report import Failure, TaskMetrics


class Share:
    """The tasks of one process.

    Args:
        worker: this process's instances, of this run; nothing else executes them.
        values: their state.
    """

    def __init__(self, worker: Worker, values: Mapping[Key, bytes]) -> None:
        self.worker = worker
        self._state = LiveState(values)

    def executions(self, stage: Stage, by_task: Waiting, info: BatchInfo) -> Iterator[Iterable[Passed]]:
        """Yields what each execution of a stage emits.

        Raises:
            UnsavedError: a bolt raised.
            StormError: a state is damaged.
        """
        yield from execute_stage(self.worker, stage, by_task, info, self._state.of)

    def save(self, number: int) -> list[TaskMetrics | Failure]:
        """Saves the state of all tasks; returns what they report.

        Args:
            number: for bolts that know of transactions.

        Raises:
            StormError: a state can't be saved.
        """
        worker = self.worker
        reports: list[TaskMetrics | Failure] = []
        for task, cached in list(worker.tasks.items()):
            errors: list[ComponentError] = []
            registered = cached.bolt.readings(errors)
            if registered:
                component = worker.wiring.component_of[task]
                reports.append(TaskMetrics(component, task, 0, 0, 0, 0, 0, 0.0, registered))
            reports += [Failure.of(error, fatal=False) for error in errors]
            if cached.unsaved:
                SavedTask(worker, task, self._state.of(task)).save_later(number)
        return reports

    def take_changes(self) -> dict[Key, bytes | None]:
        """Returns what was saved since this was called last, and None for what was removed."""
        return self._state.take_changes()

    def go_back(self) -> None:
        """Makes state and tasks as they were when `take_changes` was called last."""
        for cached in self.worker.tasks.values():
            if cached.unsaved:
                cached.unsaved, cached.version = False, None
        self._state.undo_changes()
