"""Entries in columns, sorted by hash: what a page holds, while it is made or merged with others.

A column has one kind: integers, floats, texts, or anything, pickled one by one. The first three are merged without a
Python object for each value.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from storm_on_spark.runtime.state.keyvalue.hashes import Hashes, hashed
from storm_on_spark.runtime.values import pickling

GONE: Any = enum.Enum("_Gone", "GONE").GONE  # type: ignore[attr-defined]
"""Stands for the value of a key that has been deleted."""


class Kind(enum.IntEnum):
    """What the values of a column are."""

    INT = 1
    FLOAT = 2
    TEXT = 3
    PICKLED = 4


@dataclass(frozen=True, eq=False)
class Column:
    """Values of one kind, as an Arrow array: int64, float64, or binary for texts and what is pickled."""

    kind: Kind
    data: pa.Array

    @classmethod
    def of(cls, values: Sequence[Any]) -> Column:
        """Returns values as a column."""
        types = set(map(type, values))
        try:
            if types == {int}:
                return cls(Kind.INT, pa.array(values, pa.int64()))
            if types == {float}:
                return cls(Kind.FLOAT, pa.array(values, pa.float64(), from_pandas=False))
            if types == {str}:
                return cls(Kind.TEXT, pa.array(values, pa.string()).view(pa.binary()))
        except (pa.ArrowInvalid, OverflowError, UnicodeEncodeError):
            pass  # beyond int64, or half of a pair of surrogates
        return cls(Kind.PICKLED, pa.array(map(pickling.dumps, values), pa.binary(), size=len(values)))

    def take(self, places: NDArray[np.int64]) -> Column:
        """Returns the values at some places."""
        return Column(self.kind, self.data.take(pa.array(places)))

    def slice(self, start: int, end: int) -> Column:
        """Returns the values from `start` to before `end`."""
        return Column(self.kind, self.data.slice(start, end - start))

    def values(self) -> list[Any]:
        """Returns them as Python objects."""
        if self.kind is Kind.TEXT:
            texts: list[Any] = self.data.view(pa.string()).to_pylist()
            return texts
        values: list[Any] = self.data.to_pylist()
        return list(map(pickling.loads, values)) if self.kind is Kind.PICKLED else values

    def same(self, left: NDArray[np.int64], right: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Returns whether the values at some places equal those at others, as a dict compares keys."""
        if self.kind is Kind.PICKLED:
            pairs = zip(self.take(left).values(), self.take(right).values(), strict=True)
            return np.array([a == b for a, b in pairs], bool)
        return np.asarray(pc.equal(self.data.take(pa.array(left)), self.data.take(pa.array(right))))

    def pickled(self) -> Column:
        """Returns the same as a column of kind `PICKLED`."""
        if self.kind is Kind.PICKLED:
            return self
        values = self.values()
        return Column(Kind.PICKLED, pa.array(map(pickling.dumps, values), pa.binary(), size=len(values)))


@dataclass(frozen=True, eq=False)
class Rows:
    """Entries, sorted by hash; of the deleted ones (`gone`) the value means nothing."""

    hashes: Hashes
    keys: Column
    values: Column
    gone: NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.hashes)

    @classmethod
    def of(cls, keys: Sequence[Any], values: Sequence[Any]) -> Rows:
        """Returns entries in columns.

        Args:
            keys: all different.
            values: `GONE` for those that are deleted.
        """
        hashes, numbers = hashed(keys)
        order = np.argsort(hashes, kind="stable")
        gone = np.zeros(len(values), bool)
        if type(GONE) in set(map(type, values)):
            gone[:] = [value is GONE for value in values]
            # A value of the kind of the others, so that these need not be pickled for the sake of it.
            filler = next((value for value in values if value is not GONE), None)
            values = [filler if value is GONE else value for value in values]
        column = Column.of(keys) if numbers is None else Column(Kind.INT, pa.array(numbers))
        return cls(hashes[order], column.take(order), Column.of(values).take(order), gone[order])

    def slice(self, start: int, end: int) -> Rows:
        """Returns the entries from `start` to before `end`."""
        return Rows(
            self.hashes[start:end], self.keys.slice(start, end), self.values.slice(start, end), self.gone[start:end]
        )

    def take(self, places: NDArray[np.int64]) -> Rows:
        """Returns the entries at ascending places."""
        return Rows(self.hashes[places], self.keys.take(places), self.values.take(places), self.gone[places])

    def items(self) -> list[tuple[Any, Any]]:
        """Returns (key, value); a value is `GONE` where the entry is deleted."""
        values = self.values.values()
        for place in np.flatnonzero(self.gone).tolist():
            values[place] = GONE
        return list(zip(self.keys.values(), values, strict=True))


def merged(newest_first: Sequence[Rows], *, whole: bool) -> Rows:
    """Returns the entries of several in one; of a key that more than one has, the newest.

    Args:
        newest_first: what to merge.
        whole: whether there is nothing older below, so that what is deleted can be left out.
    """
    rows = newest_first[0] if len(newest_first) == 1 else _distinct(_concatenated(newest_first))
    if whole and rows.gone.any():
        rows = rows.take(np.flatnonzero(~rows.gone))
    return rows


def _concatenated(parts: Sequence[Rows]) -> Rows:
    hashes = np.concatenate([part.hashes for part in parts])
    # Stable, so that of equal hashes those of the newest come first.
    order = np.argsort(hashes, kind="stable")
    return Rows(
        hashes[order],
        _concatenated_columns([part.keys for part in parts]).take(order),
        _concatenated_columns([part.values for part in parts]).take(order),
        np.concatenate([part.gone for part in parts])[order],
    )


def _concatenated_columns(columns: Sequence[Column]) -> Column:
    if len({column.kind for column in columns}) > 1:
        columns = [column.pickled() for column in columns]
    return Column(columns[0].kind, pa.concat_arrays([column.data for column in columns]))


def _distinct(rows: Rows) -> Rows:
    """Drops all but the first of entries with one key."""
    hashes = rows.hashes
    again = np.flatnonzero(hashes[1:] == hashes[:-1]) + 1
    if not len(again):
        return rows
    keep = np.ones(len(hashes), bool)
    same = rows.keys.same(again - 1, again)
    keep[again[same]] = False
    if not same.all():
        # Two keys have one hash. Where more than two entries have it, equal keys need not be side by side.
        several = np.unique(hashes[again[~same]])
        crowded = again[np.isin(hashes[again], several)]
        keep[crowded] = True
        _drop_of_many(rows, crowded, keep)
    return rows.take(np.flatnonzero(keep))


def _drop_of_many(rows: Rows, places: NDArray[np.int64], keep: NDArray[np.bool_]) -> None:
    """Does it for places of hashes that several keys have, each given but the first of its hash."""
    wanted = np.union1d(places, places - 1)
    keys = dict(zip(wanted.tolist(), rows.keys.take(wanted).values(), strict=True))
    for place in places.tolist():
        before = place - 1
        while before >= 0 and rows.hashes[before] == rows.hashes[place]:
            if keep[before] and keys[before] == keys[place]:
                keep[place] = False
                break
            before -= 1
