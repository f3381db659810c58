"""Groupings: which tasks of a subscribing bolt receive a tuple.

`GROUPINGS` lists them, and each says here all that the compiler, `explain` and Storm's protocols know of it. How it
chooses is in `runtime/emit/routing.py`, and the method that users call in `api/building/builder.py`.
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
    """How tuples are distributed over the tasks of the consumer; `explain` fills in {tasks}, {first} and {fields}."""
    storm_type: ClassVar[str] = "CUSTOM_SERIALIZED"
    """The field of Thrift's `Grouping` that Storm uses, as its protocol for other languages names it."""
    any_task: ClassVar[bool] = False
    """Whether any task may receive a tuple, so that one of the same partition will do."""

    @abstractmethod
    def describe(self) -> str:
        """Returns the grouping as `explain` prints it.

        Example:
            >>> FieldsGrouping(Fields("word")).describe(), ShuffleGrouping().describe()
            ('fields(word)', 'shuffle')
        """

    def to_storm(self) -> dict[str, Any]:
        """Returns the grouping as Storm's protocol for other languages has it.

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
    """Evenly over the tasks, in no particular order."""

    words = "evenly over {tasks}"
    storm_type = "SHUFFLE"
    any_task = True

    def describe(self) -> str:  # noqa: D102
        return "shuffle"


@dataclass(frozen=True)
class FieldsGrouping(KeyedGrouping):
    """Equal values of `fields` always go to the same task."""

    words = "hash of {fields} over {tasks}"
    storm_type = "FIELDS"

    def describe(self) -> str:  # noqa: D102
        return f"fields({', '.join(self.fields)})"

    def to_storm(self) -> dict[str, Any]:  # noqa: D102
        return {"type": self.storm_type, "fields": list(self.fields)}


@dataclass(frozen=True)
class AllGrouping(Grouping):
    """Every task receives every tuple."""

    words = "a copy to each of {tasks}"
    storm_type = "ALL"

    def describe(self) -> str:  # noqa: D102
        return "all"


@dataclass(frozen=True)
class GlobalGrouping(Grouping):
    """Everything goes to the task with the lowest id. In Storm it is a fields grouping by no fields."""

    words = "all to {first}"
    storm_type = "FIELDS"

    def describe(self) -> str:  # noqa: D102
        return "global"

    def to_storm(self) -> dict[str, Any]:  # noqa: D102
        return {"type": self.storm_type, "fields": []}


@dataclass(frozen=True)
class NoneGrouping(Grouping):
    """Any task may receive a tuple; as in Storm the same as a shuffle."""

    words = ShuffleGrouping.words
    storm_type = "NONE"
    any_task = True

    def describe(self) -> str:  # noqa: D102
        return "none"


@dataclass(frozen=True)
class LocalOrShuffleGrouping(Grouping):
    """A task in the same partition if there is one, otherwise as a shuffle."""

    words = ShuffleGrouping.words
    storm_type = "LOCAL_OR_SHUFFLE"
    any_task = True

    def describe(self) -> str:  # noqa: D102
        return "local_or_shuffle"


@dataclass(frozen=True)
class PartialKeyGrouping(KeyedGrouping):
    """Two candidate tasks per key; the emitting task takes the one that it has used less. For skewed keys."""

    words = "the less used of two tasks for each {fields}, out of {tasks}"

    def describe(self) -> str:  # noqa: D102
        return f"partial_key({', '.join(self.fields)})"


@dataclass(frozen=True)
class DirectGrouping(Grouping):
    """The emitting component names the task, by `emit_direct`; the stream must be declared direct."""

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
"""All but those that users write."""
