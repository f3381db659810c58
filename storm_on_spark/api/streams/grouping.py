"""Groupings: which tasks of a subscribing bolt receive a tuple."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING

from storm_on_spark.api.errors import InvalidTopologyError
from storm_on_spark.api.streams.fields import Fields

if TYPE_CHECKING:
    pass


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
    """Any task may receive a tuple; as in Storm the same as a shuffle."""

    def describe(self) -> str:  # noqa: D102
        return "none"


@dataclass(frozen=True)
class LocalOrShuffleGrouping(Grouping):
    """A task in the same partition if there is one, otherwise as a shuffle."""

    def describe(self) -> str:  # noqa: D102
        return "local_or_shuffle"


@dataclass(frozen=True)
class PartialKeyGrouping(_KeyedGrouping):
    """Two candidate tasks per key; the emitting task takes the one that it has used less. For skewed keys."""

    def describe(self) -> str:  # noqa: D102
        return f"partial_key({', '.join(self.fields)})"


@dataclass(frozen=True)
class DirectGrouping(Grouping):
    """The emitting component names the task, by `emit_direct`; the stream must be declared direct."""

    def describe(self) -> str:  # noqa: D102
        return "direct"
