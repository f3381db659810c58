"""Groupings: which tasks of a subscribing bolt receive a tuple.

`GROUPINGS` lists them. Each class has everything that the compiler, `explain` and Storm's protocols need to know.
`runtime/emit/routing.py` has the code that chooses tasks, and `api/building/builder.py` the method that users call.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from storm_on_spark.api.errors import InvalidTopologyError
from storm_on_spark.api.streams.fields import Fields


@dataclass(frozen=True)
class Grouping(ABC):
    """Base of all groupings; equal by value."""

    words: ClassVar[str]
    """Describes how tuples reach the consumer's tasks; `explain` fills in {tasks}, {first} and {fields}."""
    storm_type: ClassVar[str] = "CUSTOM_SERIALIZED"
    """The matching field of Thrift's `Grouping`, as named in Storm's protocol for other languages."""
    any_task: ClassVar[bool] = False
    """Whether any task may receive a tuple, so that a task of the same partition can."""

    @abstractmethod
    def describe(self) -> str:
        """Returns the grouping as `explain` prints it.

        Example:
            >>> FieldsGrouping(Fields("word")).describe(), ShuffleGrouping().describe()
            ('fields(word)', 'shuffle')
        """

    def to_storm(self) -> dict[str, Any]:
        """Returns the grouping as in Storm's protocol for other languages.

        Example:
            >>> FieldsGrouping(Fields("word")).to_storm(), GlobalGrouping().to_storm()
            ({'type': 'FIELDS', 'fields': ['word']}, {'type': 'FIELDS', 'fields': []})
        """
        return {"type": self.storm_type}


@dataclass(frozen=True)
class KeyedGrouping(Grouping):
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
    """Spreads tuples evenly over the tasks, in no particular order."""

    words = "evenly over {tasks}"
    storm_type = "SHUFFLE"
    any_task = True

    def describe(self) -> str:  # noqa: D102
        return "shuffle"


@dataclass(frozen=True)
class FieldsGrouping(KeyedGrouping):
    """Sends tuples with equal values of `fields` to the same task."""

    words = "hash of {fields} over {tasks}"
    storm_type = "FIELDS"

    def describe(self) -> str:  # noqa: D102
        return f"fields({', '.join(self.fields)})"

    def to_storm(self) -> dict[str, Any]:  # noqa: D102
        return {"type": self.storm_type, "fields": list(self.fields)}


@dataclass(frozen=True)
class AllGrouping(Grouping):
    """Sends every tuple to every task."""

    words = "a copy to each of {tasks}"
    storm_type = "ALL"

    def describe(self) -> str:  # noqa: D102
        return "all"


@dataclass(frozen=True)
class GlobalGrouping(Grouping):
    """Sends all tuples to the task with the lowest id. In Storm this is a fields grouping without fields."""

    words = "all to {first}"
    storm_type = "FIELDS"

    def describe(self) -> str:  # noqa: D102
        return "global"

    def to_storm(self) -> dict[str, Any]:  # noqa: D102
        return {"type": self.storm_type, "fields": []}


@dataclass(frozen=True)
class NoneGrouping(Grouping):
    """Lets any task receive a tuple; as in Storm, the same as a shuffle grouping."""

    words = ShuffleGrouping.words
    storm_type = "NONE"
    any_task = True

    def describe(self) -> str:  # noqa: D102
        return "none"


@dataclass(frozen=True)
class LocalOrShuffleGrouping(Grouping):
    """Chooses a task in the same partition if there is one, and otherwise works like a shuffle grouping."""

    words = ShuffleGrouping.words
    storm_type = "LOCAL_OR_SHUFFLE"
    any_task = True

    def describe(self) -> str:  # noqa: D102
        return "local_or_shuffle"


@dataclass(frozen=True)
class PartialKeyGrouping(KeyedGrouping):
    """Has two candidate tasks per key; the emitting task takes the one that it has used less. For skewed keys."""

    words = "the less used of two tasks for each {fields}, out of {tasks}"

    def describe(self) -> str:  # noqa: D102
        return f"partial_key({', '.join(self.fields)})"


@dataclass(frozen=True)
class DirectGrouping(Grouping):
    """Lets the emitting component choose the task with `emit_direct`; the stream must be declared direct."""

    words = "to the one of {tasks} that emit_direct names"
    storm_type = "DIRECT"

    def describe(self) -> str:  # noqa: D102
        return "direct"


GROUPINGS: Final = (
    ShuffleGrouping,
    FieldsGrouping,
    AllGrouping,
    GlobalGrouping,
    NoneGrouping,
    LocalOrShuffleGrouping,
    PartialKeyGrouping,
    DirectGrouping,
)
"""All groupings except those that users write."""
