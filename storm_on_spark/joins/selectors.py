"""Fields of joined tuples, as users name them: `city`, `users:city`, `order.buyer.id`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from storm_on_spark.api.errors import InvalidTopologyError, TupleError
from storm_on_spark.api.text.wording import kind_of
from storm_on_spark.api.tuple import Tuple


@dataclass(frozen=True)
class FieldSelector:
    """A field, perhaps inside of maps, perhaps of one stream only.

    Example:
        >>> FieldSelector.parse("users:address.city")
        FieldSelector(stream='users', path=('address', 'city'), name='users:address.city')
    """

    stream: str | None
    path: tuple[str, ...]
    name: str
    """The output field that it becomes."""

    @classmethod
    def parse(cls, text: str) -> FieldSelector:
        """Returns what a text such as `stream:field.inner` means.

        Raises:
            InvalidTopologyError: it names no field.
        """
        if not isinstance(text, str):
            raise InvalidTopologyError(f"a field of a join is a text such as 'users:city', not {kind_of(text)}")
        stream, colon, field = text.strip().rpartition(":")
        path = tuple(part.strip() for part in field.split("."))
        if not all(path):
            raise InvalidTopologyError(f"a field of a join is a text such as 'users:city', not {text!r}")
        stream = stream.strip()
        return cls(stream or None, path, f"{stream}:{field.strip()}" if colon and stream else field.strip())

    def look_up(self, tup: Tuple, stream: str) -> Any:
        """Returns the value in a tuple, or None where the tuple is of another stream or has none.

        Args:
            tup: the tuple.
            stream: what the tuple's stream, or its component, is called.

        Raises:
            TupleError: the path leads through something that is not a map.
        """
        if self.stream is not None and self.stream != stream and self.stream.casefold() != stream.casefold():
            return None
        outer, *inner = self.path
        if outer not in tup.fields:
            return None
        value = tup[outer]
        for name in inner:
            if value is None:
                return None
            if not isinstance(value, Mapping):
                raise TupleError(f'"{self.name}": {name} is looked for in {kind_of(value)}, which is not a map')
            value = value.get(name)
        return value


@dataclass(frozen=True)
class Key:
    """The fields of one stream on which it is joined."""

    fields: tuple[FieldSelector, ...]

    @classmethod
    def of(cls, stream: str, fields: str | Iterable[str]) -> Key:
        """Returns the key of some fields of a stream.

        Raises:
            InvalidTopologyError: there are none, or one is not a field of the stream.
        """
        names = [fields] if isinstance(fields, str) else list(fields)
        if not names:
            raise InvalidTopologyError(f'stream "{stream}" is joined on no field')
        for name in names:
            if ":" in str(name):
                raise InvalidTopologyError(
                    f'the field {name!r} is one of stream "{stream}" already; leave out what ends in ":"'
                )
        parsed = map(FieldSelector.parse, names)
        return cls(tuple(FieldSelector(stream, field.path, field.name) for field in parsed))

    def value(self, look_up: Callable[[FieldSelector], Any]) -> Any:
        """Returns the values of the fields as one that can be a key; None if one is missing or None."""
        values = [look_up(field) for field in self.fields]
        if any(value is None for value in values):
            return None
        return hashable(values[0] if len(values) == 1 else tuple(values))


def hashable(value: Any) -> Any:
    """Returns a value that can be a key and equals others for equal values.

    Example:
        >>> hashable([1, {"a": [2]}]) == hashable((1, {"a": (2,)}))
        True
    """
    try:
        hash(value)
    except TypeError:
        pass
    else:
        return value
    if isinstance(value, Mapping):
        return frozenset((key, hashable(item)) for key, item in value.items())
    if isinstance(value, (set, frozenset)):
        return frozenset(map(hashable, value))
    if isinstance(value, (list, tuple)):
        return tuple(map(hashable, value))
    if isinstance(value, bytearray):
        return bytes(value)
    raise TupleError(f"a join can't be on {kind_of(value)}, which can't be hashed")
