"""Groupings that users write."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from storm_on_spark.api.errors import InvalidTopologyError
from storm_on_spark.api.streams.grouping import Grouping
from storm_on_spark.api.text.wording import kind_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from storm_on_spark.api.streams.stream import GlobalStreamId
    from storm_on_spark.api.task.context import TopologyContext


class CustomStreamGrouping(ABC):
    """The base class of groupings that users write; pass an instance to `custom_grouping`.

    Every task that emits the stream has its own copy. The grouping must be picklable.

    Example:
        >>> from storm_on_spark.api import GlobalStreamId
        >>> class ByLength(CustomStreamGrouping):
        ...     def prepare(self, context, stream, target_tasks):
        ...         self.targets = target_tasks
        ...     def choose_tasks(self, task_id, values):
        ...         return [self.targets[len(values[0]) % len(self.targets)]]
        >>> grouping = ByLength()
        >>> grouping.prepare(None, GlobalStreamId("split"), [4, 5])
        >>> grouping.choose_tasks(1, ["storm"])
        [5]
    """

    def prepare(  # noqa: B027
        self,
        context: TopologyContext,
        stream: GlobalStreamId,
        target_tasks: list[int],
    ) -> None:
        """Called once, before the first tuple.

        Args:
            context: the context of the emitting task.
            stream: the stream to group.
            target_tasks: the tasks of the receiving bolt, in ascending order.
        """

    @abstractmethod
    def choose_tasks(self, task_id: int, values: Sequence[Any]) -> list[int]:
        """Returns the tasks that receive a tuple: some of `target_tasks`, or none.

        Args:
            task_id: the emitting task.
            values: the values of the tuple.
        """


@dataclass(frozen=True)
class CustomGrouping(Grouping):
    """A grouping in which user code chooses the tasks."""

    grouping: CustomStreamGrouping

    words = "to those of {tasks} that {chooser}.choose_tasks names"

    def __post_init__(self) -> None:
        given = self.grouping
        if isinstance(given, type) and issubclass(given, CustomStreamGrouping):
            raise InvalidTopologyError(
                f"a custom grouping must be an instance, not the class {given.__qualname__}: "
                "did you forget the parentheses?"
            )
        if not isinstance(given, CustomStreamGrouping):
            raise InvalidTopologyError(
                f"a custom grouping must be an instance of a subclass of CustomStreamGrouping, not {kind_of(given)}"
            )

    def describe(self) -> str:  # noqa: D102
        return f"custom({type(self.grouping).__qualname__})"
