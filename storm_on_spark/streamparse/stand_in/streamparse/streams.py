"""Streams and groupings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, Final

from storm_on_spark.streamparse.stand_in.streamparse.structs import JavaObject, NullStruct, java_argument


class Stream:
    """An output stream.

    Args:
        fields: the names of its values.
        name: its id.
        direct: whether the emitting component names the receiving task.

    Raises:
        TypeError: an argument is not what it should be.
    """

    def __init__(self, fields: Sequence[str] | None = None, name: str = "default", direct: bool = False) -> None:
        if not isinstance(fields, (list, tuple, type(None))):
            raise TypeError(f"Stream fields must be a list, tuple, or None; given: {fields!r}")
        for field in fields or ():
            if not isinstance(field, str):
                raise TypeError(f"All field names must be strings; given: {field!r}")
        if not isinstance(name, str):
            raise TypeError(f"Stream name must be a string; given: {name!r}")
        if not isinstance(direct, bool):
            raise TypeError(f'"direct" must be either True or False; given: {direct!r}')
        self.fields = list(fields or ())
        self.name = name
        self.direct = direct


@dataclass(frozen=True, repr=False)
class GroupingValue:
    """One grouping; exactly one attribute is set."""

    fields: tuple[str, ...] | None = None
    shuffle: NullStruct | None = None
    all: NullStruct | None = None
    none: NullStruct | None = None
    direct: NullStruct | None = None
    local_or_shuffle: NullStruct | None = None
    custom_object: JavaObject | None = None
    custom_serialized: bytes | None = None

    def __repr__(self) -> str:
        for field in fields(self):
            value = getattr(self, field.name)
            if isinstance(value, NullStruct):
                return field.name.upper()
            if value is not None:
                return f"{field.name}({value!r})"
        return "no grouping"


class Grouping:
    """How tuples of a stream are distributed to the tasks of a bolt."""

    SHUFFLE: Final = GroupingValue(shuffle=NullStruct())
    GLOBAL: Final = GroupingValue(fields=())
    DIRECT: Final = GroupingValue(direct=NullStruct())
    ALL: Final = GroupingValue(all=NullStruct())
    NONE: Final = GroupingValue(none=NullStruct())
    LOCAL_OR_SHUFFLE: Final = GroupingValue(local_or_shuffle=NullStruct())

    @classmethod
    def fields(cls, *fields: Any) -> GroupingValue:
        """Tuples with equal values of these fields go to the same task.

        Raises:
            ValueError: no field is named.
        """
        names = fields[0] if len(fields) == 1 and isinstance(fields[0], list) else fields
        if not names:
            raise ValueError("List cannot be empty for fields grouping")
        return GroupingValue(fields=tuple(names))

    @classmethod
    def custom_object(cls, java_class_name: str, arg_list: Sequence[Any]) -> GroupingValue:
        """A Java class decides; such a topology is refused when it is run."""
        return GroupingValue(custom_object=JavaObject(java_class_name, [java_argument(value) for value in arg_list]))

    @classmethod
    def custom_serialized(cls, java_serialized: bytes) -> GroupingValue:
        """A Java object decides; such a topology is refused when it is run.

        Raises:
            TypeError: it is not given as bytes.
        """
        if not isinstance(java_serialized, bytes):
            raise TypeError(f"a serialized Java object must be given as bytes. Given: {java_serialized!r}")
        return GroupingValue(custom_serialized=java_serialized)
