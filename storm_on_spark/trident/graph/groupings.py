"""Groupings that know batches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from storm_on_spark.api.custom_grouping import CustomGrouping, CustomStreamGrouping
from storm_on_spark.api.errors import InvalidTopologyError

if TYPE_CHECKING:
    from storm_on_spark.api.streams.stream import GlobalStreamId
    from storm_on_spark.api.task.context import TopologyContext


class BatchGlobalGrouping(CustomStreamGrouping):
    """Sends all tuples of a batch to one task, and batches to all tasks in turn."""

    def prepare(self, context: TopologyContext, stream: GlobalStreamId, target_tasks: list[int]) -> None:  # noqa: D102
        self._targets = target_tasks

    def choose_tasks(self, task_id: int, values: Sequence[Any]) -> list[int]:  # noqa: D102
        return [self._targets[values[0].txid % len(self._targets)]]


class IdentityGrouping(CustomStreamGrouping):
    """Sends the tuples of a task to the task with the same number."""

    def prepare(self, context: TopologyContext, stream: GlobalStreamId, target_tasks: list[int]) -> None:  # noqa: D102
        tasks = context.component_tasks(stream.component)
        if len(tasks) != len(target_tasks):
            raise InvalidTopologyError(
                f'identity_partition: "{stream.component}" has {len(tasks)} tasks, and the bolt after it '
                f"{len(target_tasks)}; give both the same parallelism_hint",
                component=stream.component,
            )
        self._targets = dict(zip(tasks, target_tasks, strict=True))

    def choose_tasks(self, task_id: int, values: Sequence[Any]) -> list[int]:  # noqa: D102
        return [self._targets[task_id]]


BATCH_GLOBAL: Final = CustomGrouping(BatchGlobalGrouping())
IDENTITY: Final = CustomGrouping(IdentityGrouping())
