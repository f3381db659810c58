"""How the tuples of a stream are shared out among the tasks of a bolt that subscribes to it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from storm_on_spark.api._text import kind_of
from storm_on_spark.api.errors import InvalidTopologyError
from storm_on_spark.api.fields import Fields

if TYPE_CHECKING:
    from collections.abc import Sequence

    from storm_on_spark.api.context import TopologyContext
    from storm_on_spark.api.streams import GlobalStreamId


class CustomStreamGrouping(ABC):
    """A grouping in user code; pass an instance to `custom_grouping`.

    One copy lives in every task that emits the stream. It must be picklable.

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
            context: of the emitting task.
            stream: the stream that is grouped.
            target_tasks: the tasks of the receiving bolt, ascending.
        """

    @abstractmethod
    def choose_tasks(self, task_id: int, values: Sequence[Any]) -> list[int]:
        """Returns the tasks that receive a tuple: some of `target_tasks`, or none.

        Args:
            task_id: the emitting task.
            values: the values of the tuple.
        """


@dataclass(frozen=True)
class Grouping(ABC):
    """Base of all groupings; equal by value."""

    @abstractmethod
    def describe(self) -> str:
        """Returns the grouping as `explain` prints it.

        Example:
            >>> FieldsGrouping(Fields("word")).describe(), ShuffleGrouping().describe()
            ('fields(word)', 'shuffle')
        """


@dataclass(frozen=True)
class _KeyedGrouping(Grouping):
    """A grouping by the values of some fields."""

    fields: Fields

    def __post_init__(self) -> None:
        object.__setattr__(self, "fields", Fields.of(self.fields))  # a name or a list of names will do
        if not len(self.fields):
            raise InvalidTopologyError(
                f"{type(self).__name__} needs at least one field; use a global grouping to send everything to one task"
            )


@dataclass(frozen=True)
class ShuffleGrouping(Grouping):
    """Evenly over the tasks, in no particular order."""

    def describe(self) -> str:  # noqa: D102
        return "shuffle"


@dataclass(frozen=True)
class FieldsGrouping(_KeyedGrouping):
    """Equal values of `fields` always go to the same task."""

    def describe(self) -> str:  # noqa: D102
        return f"fields({', '.join(self.fields)})"


@dataclass(frozen=True)
class AllGrouping(Grouping):
    """Every task receives every tuple."""

    def describe(self) -> str:  # noqa: D102
        return "all"


@dataclass(frozen=True)
class GlobalGrouping(Grouping):
    """Everything goes to the task with the lowest id."""

    def describe(self) -> str:  # noqa: D102
        return "global"


@dataclass(frozen=True)
class NoneGrouping(Grouping):
    """The emitter doesn't care; as in Storm the same as a shuffle."""

    def describe(self) -> str:  # noqa: D102
        return "none"


@dataclass(frozen=True)
class LocalOrShuffleGrouping(Grouping):
    """A task in the same place if there is one, otherwise as a shuffle."""

    def describe(self) -> str:  # noqa: D102
        return "local_or_shuffle"


@dataclass(frozen=True)
class PartialKeyGrouping(_KeyedGrouping):
    """Two candidate tasks per key, of which the emitter takes the one it has used less (for skewed keys)."""

    def describe(self) -> str:  # noqa: D102
        return f"partial_key({', '.join(self.fields)})"


@dataclass(frozen=True)
class DirectGrouping(Grouping):
    """The emitter names the task, by `emit_direct`; the stream must be declared direct."""

    def describe(self) -> str:  # noqa: D102
        return "direct"


@dataclass(frozen=True)
class CustomGrouping(Grouping):
    """User code chooses the tasks."""

    grouping: CustomStreamGrouping

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
