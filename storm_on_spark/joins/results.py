"""What both joins have in common: how they are called, and their results."""

from __future__ import annotations

from typing import Any, TypeVar

from storm_on_spark.api.errors import InvalidTopologyError
from storm_on_spark.api.streams.stream import DEFAULT_STREAM
from storm_on_spark.api.text.wording import kind_of, name_fault
from storm_on_spark.joins.rules import Selector, parse_fields
from storm_on_spark.joins.selectors import FieldSelector

R = TypeVar("R", bound="Results")


class NoAttributes:
    """Saved in place of a bolt's attributes."""


class Results:
    """The results of a join: their fields and their stream."""

    _select: tuple[FieldSelector, ...] = ()
    _stream = DEFAULT_STREAM

    def select(self: R, fields: str) -> R:
        """Sets the output fields.

        Args:
            fields: names separated by commas. `city` is the first stream's that has one; `users:city` is that of stream
                `users`, and its output field is called so too.
        """
        if not isinstance(fields, str):
            raise InvalidTopologyError(f"select takes names separated by commas, in one text, not {kind_of(fields)}")
        self._select = parse_fields(fields)
        return self

    def with_output_stream(self: R, stream: str) -> R:
        """Sets the stream of the results, instead of `default`."""
        if fault := name_fault(stream):
            raise InvalidTopologyError(f"the output stream {fault}")
        self._stream = stream
        return self

    @property
    def state_holder(self) -> NoAttributes:
        """The object whose attributes are saved: what there is to save is in the window or the key-value state."""
        return NoAttributes()


def first_stream(args: tuple[Any, ...], example: str) -> tuple[Selector, Any, Any]:
    """Returns the selector, the first stream and the fields on which it is joined.

    Raises:
        InvalidTopologyError: there are more arguments, or fewer; `example` shows a right call.
    """
    selected = bool(args) and isinstance(args[0], Selector)
    given = args[1:] if selected else args
    if len(given) != 2:
        name = example.partition("(")[0]
        raise InvalidTopologyError(
            f"{name} takes a stream and the field to join on, as in {example}, not {args!r:.100}"
        )
    return (args[0] if selected else Selector.SOURCE), *given
