"""Frozen values: a receiver sees a value as it was when it was emitted, also if user code changes it later.

A value of a type that can't be changed in place travels as it is. Any other one is pickled when it is emitted, and
unpickled each time that a bolt gets it. So neither the bolt that emitted it, nor another receiver of the same tuple,
nor an execution that is tried again sees what others changed in place. The values of one tuple are pickled together:
an object that two of them share is shared by what the receiver gets, as if the whole tuple had been pickled.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, overload

import numpy as np
import pyarrow as pa

from storm_on_spark.api.immutable import IMMUTABLE_VALUES
from storm_on_spark.runtime.values import pickling
from storm_on_spark.runtime.values.rows import Columns, Row

CONSTANT: frozenset[type] = IMMUTABLE_VALUES.union(
    kind for kind in set(np.sctypeDict.values()) if not issubclass(kind, (np.object_, np.void))
)
"""Types, not their subclasses, whose values can't be changed in place."""

_WHOLE = -1


def is_constant(value: object) -> bool:
    """Returns whether neither a value nor anything in it can be changed in place.

    Example:
        >>> is_constant(("storm", (1, None))), is_constant(("storm", [1]))
        (True, False)
    """
    kind = type(value)
    if kind in CONSTANT:
        return True
    if kind is frozenset or kind is tuple or (issubclass(kind, tuple) and not kind.__dictoffset__):
        # A tuple of a class of its own, a named one say, has nothing but its items if it has no `__dict__`.
        return all(map(is_constant, value))  # type: ignore[call-overload]
    return False


class Frozen:
    """Takes the place of a changeable value in a row: pickled, alone or with others of its row.

    Args:
        data: the pickled value, or a pickled list of values.
        part: its position in that list, or `_WHOLE`.
    """

    __slots__ = ("data", "part")

    def __init__(self, data: bytes, part: int = _WHOLE) -> None:
        self.data = data
        self.part = part


def freeze(row: Row) -> Row:
    """Returns a row whose changeable values are frozen; the row itself if it has none.

    A value that can't be pickled is kept as the object itself.

    Example:
        >>> words = ["storm"]
        >>> row = freeze((words, 1))
        >>> words.clear()
        >>> thaw(row)
        (['storm'], 1)
    """
    if len(row) == 1:
        data = None if is_constant(row[0]) else _pickled(row[0])
        return row if data is None else (Frozen(data),)
    places = [place for place, value in enumerate(row) if not is_constant(value)]
    if not places:
        return row
    frozen = list(row)
    if len(places) == 1:
        (place,) = places
        data = _pickled(row[place])
        if data is None:
            return row
        frozen[place] = Frozen(data)
        return tuple(frozen)
    data = _pickled([row[place] for place in places])
    for part, place in enumerate(places):
        if data is not None:
            frozen[place] = Frozen(data, part)
        elif (own := _pickled(row[place])) is not None:
            frozen[place] = Frozen(own)
    return tuple(frozen)


def _pickled(value: object) -> bytes | None:
    try:
        return pickling.dumps(value)
    except Exception:  # whatever a value's own methods raise
        return None


def _value(value: Any) -> Any:
    """As `thaw`, for the only value of a row."""
    return pickling.loads(value.data) if value.__class__ is Frozen else value


def thaw(row: Row) -> Row:
    """Returns a row with new objects for its frozen values."""
    values: list[Any] = list(row)
    together: Any = None
    for place, value in enumerate(row):
        if value.__class__ is Frozen:
            if value.part == _WHOLE:
                values[place] = pickling.loads(value.data)
            else:
                if together is None:
                    together = pickling.loads(value.data)
                values[place] = together[value.part]
    return tuple(values)


class FrozenRows(Sequence[Row]):
    """Rows with frozen values; reading a row makes new objects each time.

    Args:
        rows: the rows as they are kept.

    Example:
        >>> rows = FrozenRows([freeze(([1],))])
        >>> rows[0][0].append(2)
        >>> list(rows)
        [([1],)]
    """

    __slots__ = ("kept",)

    def __init__(self, rows: Sequence[Row]) -> None:
        self.kept = rows

    def __len__(self) -> int:
        return len(self.kept)

    def __iter__(self) -> Iterator[Row]:
        if isinstance(self.kept, Columns) and len(self.kept.columns) == 1:
            return zip(map(_value, self.kept.columns[0]), strict=True)
        return map(thaw, self.kept)

    @overload
    def __getitem__(self, index: int) -> Row: ...
    @overload
    def __getitem__(self, index: slice) -> FrozenRows: ...
    def __getitem__(self, index: int | slice) -> Row | FrozenRows:
        if isinstance(index, slice):
            return FrozenRows(self.kept[index])
        return thaw(self.kept[index])


FrozenColumn = tuple["dict[int, int] | None", list[Any]]
"""A column with frozen values as it is pickled: their place and part (None: all are whole values), and all items."""


def pack_frozen(column: list[Any]) -> list[Any] | FrozenColumn:
    """Returns a column as built-in types; the column itself if nothing in it is frozen."""
    parts = {place: value.part for place, value in enumerate(column) if value.__class__ is Frozen}
    if not parts:
        return column
    items = [value.data if value.__class__ is Frozen else value for value in column]
    whole = len(parts) == len(column) and all(part == _WHOLE for part in parts.values())
    return None if whole else parts, items


def unpack_frozen(packed: list[Any] | FrozenColumn) -> list[Any]:
    """Returns the column that `pack_frozen` packed."""
    if isinstance(packed, list):
        return packed
    parts, items = packed
    if parts is None:
        return list(map(Frozen, items))
    return [Frozen(item, parts[place]) if place in parts else item for place, item in enumerate(items)]


class NestedRows(Sequence[Row]):
    """The rows of a record batch some of whose columns are lists or structs in Python.

    Args:
        batch: the record batch; it stays as it is, and each look at a row makes new lists and dicts.
    """

    __slots__ = ("_batch",)

    def __init__(self, batch: pa.RecordBatch) -> None:
        self._batch = batch

    def __len__(self) -> int:
        size: int = self._batch.num_rows
        return size

    def __iter__(self) -> Iterator[Row]:
        return zip(*(column.to_pylist() for column in self._batch.columns), strict=True)

    @overload
    def __getitem__(self, index: int) -> Row: ...
    @overload
    def __getitem__(self, index: slice) -> NestedRows: ...
    def __getitem__(self, index: int | slice) -> Row | NestedRows:
        if isinstance(index, slice):
            start, stop, _ = index.indices(len(self))
            return NestedRows(self._batch.slice(start, stop - start))
        return tuple([column[index].as_py() for column in self._batch.columns])


def is_nested(kind: pa.DataType) -> bool:
    """Returns whether Arrow makes a new changeable object, a list or a dict say, of each value of a type."""
    if pa.types.is_dictionary(kind):
        return is_nested(kind.value_type)
    if pa.types.is_run_end_encoded(kind):
        return is_nested(kind.value_type)
    return bool(pa.types.is_nested(kind)) or isinstance(kind, pa.BaseExtensionType)


def owned(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Returns a record batch with memory of its own: Arrow's arrays may be views of numpy's, which can be written to.

    Only the rows of the batch are copied, not what it may be a slice of.
    """
    return pa.RecordBatch.from_arrays([owned_array(column) for column in batch.columns], schema=batch.schema)


def owned_array(column: pa.Array) -> pa.Array:
    """Returns an array with memory of its own; see `owned`."""
    if isinstance(column, pa.DictionaryArray):
        parts = owned_array(column.indices), owned_array(column.dictionary)
        return pa.DictionaryArray.from_arrays(*parts, ordered=column.type.ordered)
    # Two arrays are put together in new memory, even if one of them is empty.
    return pa.concat_arrays([column, column.slice(0, 0)])


def constant_id(message_id: Any) -> Any:
    """Returns a message id that can't be changed: a copy of an id that can be changed and can't be a key.

    An id that has a hash may be a key of a dict in the spout. So it stays the same object.
    """
    try:
        hash(message_id)
    except Exception:
        data = _pickled(message_id)
        return message_id if data is None else pickling.loads(data)
    return message_id
