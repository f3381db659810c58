"""Rows of values, kept as columns.

Tuples of one delivery are stored and sent by column: pickle takes less for a list of texts than for a list of rows of
texts. A row is made when it is read.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import repeat
from typing import Any, overload

Row = tuple[Any, ...]


class Columns(Sequence[Row]):
    """A sequence of rows of the same length.

    Args:
        columns: a list of values for each field, all of one length.
        size: how many rows there are.

    Example:
        >>> rows = Columns([["storm", "spark"], [1, 2]], 2)
        >>> list(rows), rows[1], len(rows[1:])
        ([('storm', 1), ('spark', 2)], ('spark', 2), 1)
    """

    __slots__ = ("columns", "size")

    def __init__(self, columns: list[list[Any]], size: int) -> None:
        self.columns = columns
        self.size = size

    @classmethod
    def of(cls, rows: Sequence[Sequence[Any]]) -> Columns:
        """Returns rows as columns."""
        if isinstance(rows, Columns):
            return rows
        return cls([list(column) for column in zip(*rows, strict=True)], len(rows))

    def __len__(self) -> int:
        return self.size

    def __iter__(self) -> Iterator[Row]:
        return zip(*self.columns, strict=True) if self.columns else repeat((), self.size)

    @overload
    def __getitem__(self, index: int) -> Row: ...
    @overload
    def __getitem__(self, index: slice) -> Columns: ...
    def __getitem__(self, index: int | slice) -> Row | Columns:
        if isinstance(index, slice):
            return Columns([column[index] for column in self.columns], len(range(self.size)[index]))
        _ = range(self.size)[index]  # also where there are no columns
        return tuple([column[index] for column in self.columns])

    def __eq__(self, other: object) -> bool:
        return list(self) == list(other) if isinstance(other, Sequence) else NotImplemented

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Columns({self.columns!r:.200}, {self.size})"
