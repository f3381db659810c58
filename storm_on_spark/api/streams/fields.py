"""The names of a stream's values."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NoReturn, TypeVar, final

from storm_on_spark.api.errors import ConfigError, InvalidTopologyError, UnknownFieldError
from storm_on_spark.api.streams.types import check_type
from storm_on_spark.api.text.wording import did_you_mean, kind_of, name_fault, quoted

T = TypeVar("T")


@final
class Fields:
    """An immutable list of field names, each with an optional type.

    Types describe a stream for others, such as a DataFrame; the values of tuples are not checked against them.
    Comparisons of fields ignore types.

    Args:
        names: the names, or one iterable of them. A single string is one name. A dict gives each name a type of Spark
            SQL, such as `string`, `long` or `array<double>`, or None.

    Raises:
        InvalidTopologyError: a name is not a string, is empty, or occurs twice; or a type is unknown.

    Example:
        >>> fields = Fields("word", "count")
        >>> fields.index("count"), "word" in fields, len(fields), list(fields)
        (1, True, 2, ['word', 'count'])
        >>> Fields({"word": "string", "count": "long"})
        Fields({'word': 'string', 'count': 'long'})
        >>> fields == Fields(["word", "count"])
        True
        >>> fields.index("day")
        Traceback (most recent call last):
        ...
        storm_on_spark.api.errors.UnknownFieldError: no field "day"; there are: "word", "count".
    """

    __slots__ = ("_names", "_positions", "_types")

    _names: tuple[str, ...]
    _positions: dict[str, int]
    _types: dict[str, str]

    def __init__(self, *names: str | Iterable[str] | Mapping[str, str | None]) -> None:
        types: dict[str, str] = {}
        if len(names) == 1 and isinstance(names[0], Mapping):
            types = {name: kind for name, kind in names[0].items() if kind is not None}
        if len(names) == 1 and not isinstance(names[0], str):
            only = names[0]
            if not isinstance(only, Iterable):
                raise InvalidTopologyError(f"a field name must be a string, not {kind_of(only)}")
            names = tuple(only)
        checked: list[str] = []
        positions: dict[str, int] = {}
        for position, name in enumerate(names):
            if not isinstance(name, str) or name_fault(name):
                raise InvalidTopologyError(f"field {position} {name_fault(name)}")
            if name in positions:
                raise InvalidTopologyError(f'field "{name}" occurs twice in {quoted(names)}; names must differ')
            positions[name] = position
            checked.append(name)
        try:
            for name, kind in types.items():
                check_type(name, kind)
        except ConfigError as error:
            raise InvalidTopologyError(str(error)) from None
        object.__setattr__(self, "_types", types)
        object.__setattr__(self, "_names", tuple(checked))
        object.__setattr__(self, "_positions", positions)

    @classmethod
    def of(cls, fields: Fields | str | Iterable[str]) -> Fields:
        """Returns `fields` as `Fields`: unchanged, or made from one name or several.

        Example:
            >>> Fields.of("word"), Fields.of(["word", "count"])
            (Fields('word'), Fields('word', 'count'))
        """
        return fields if isinstance(fields, Fields) else cls(fields)

    def index(self, name: str) -> int:
        """Returns the position of `name`.

        Raises:
            UnknownFieldError: there is no such field; the message lists the existing fields.
        """
        try:
            return self._positions[name]
        except (KeyError, TypeError):
            self._unknown(name)

    @property
    def positions(self) -> Mapping[str, int]:
        """The position of each name."""
        return self._positions

    @property
    def types(self) -> Mapping[str, str]:
        """The types of those fields that have one, by name."""
        return MappingProxyType(self._types)

    def contains(self, name: str) -> bool:
        """Returns whether there is a field `name`; the same as `name in fields`."""
        return name in self._positions

    def select(self, selector: Fields, values: Sequence[T]) -> list[T]:
        """Returns the values of the fields that `selector` names, in its order; `values` has one value per field.

        Raises:
            UnknownFieldError: `selector` names a field that is missing here.

        Example:
            >>> Fields("word", "count", "day").select(Fields("day", "word"), ["storm", 3, "Monday"])
            ['Monday', 'storm']
        """
        return [values[self.index(name)] for name in selector._names]

    def to_list(self) -> list[str]:
        """Returns the names as a new list."""
        return list(self._names)

    # Storm's spellings, for ported code.

    def size(self) -> int:
        """Returns the number of fields."""
        return len(self._names)

    def get(self, position: int) -> str:
        """Returns the name at `position`, counted from 0."""
        return self._names[position]

    def field_index(self, name: str) -> int:
        """Returns the position of `name`; see `index`."""
        return self.index(name)

    def __contains__(self, name: object) -> bool:
        # Compared, not hashed, so that "in" works for any object.
        return name in self._names

    def __getitem__(self, position: int) -> str:
        return self._names[position]

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def __eq__(self, other: object) -> bool:
        return self._names == other._names if isinstance(other, Fields) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._names)

    def __repr__(self) -> str:
        if self._types:
            return f"Fields({self._by_name()!r})"
        return f"Fields({', '.join(map(repr, self._names))})"

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"Fields are immutable; can't set {name!r}")

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"Fields are immutable; can't delete {name!r}")

    def __reduce__(self) -> tuple[Any, ...]:
        return (Fields, (self._by_name() if self._types else self._names,))

    def _by_name(self) -> dict[str, str | None]:
        return {name: self._types.get(name) for name in self._names}

    def _unknown(self, name: object) -> NoReturn:
        raise UnknownFieldError(
            f'no field "{name}"; there are: {quoted(self._names)}.{did_you_mean(name, self._names)}'
        ) from None
