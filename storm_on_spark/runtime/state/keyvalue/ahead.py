"""Which keys of key-value state a micro-batch will ask for: the values by which its tuples are grouped."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from storm_on_spark.runtime.state.keyvalue.state import StoredState
from storm_on_spark.runtime.values.rows import Columns

GroupedBy = Mapping[tuple[str, str], tuple[int, ...]]
"""Places of the fields by which tuples are grouped, by source and stream."""
Part = tuple[Any, int, Any]
"""Delivery, first position, and rows."""


def looking_ahead(state: StoredState, grouped_by: GroupedBy, parts: Sequence[Part]) -> Iterator[Part]:
    """Yields the parts of a micro-batch, after the entries that they will ask for have been brought into memory."""
    seen = 0
    for number, part in enumerate(parts):
        if number == seen:
            keys, seen = _keys_from(grouped_by, parts, number, state.most_ahead)
            state.look_ahead(keys)
        yield part


def _keys_from(grouped_by: GroupedBy, parts: Sequence[Part], first: int, most: int) -> tuple[set[Any], int]:
    """Returns the keys in the next parts, `most` unless one part has more, and the number of the part after."""
    keys: set[Any] = set()
    for number in range(first, len(parts)):
        delivery, _, values = parts[number]
        if number > first and len(keys) + len(values) > most:
            return keys, number
        places = grouped_by.get((delivery.component, delivery.stream), ())
        if places and len(values):
            columns = [Columns.of(values).columns[place] for place in places]
            # What can't be a key is left to the bolt, which uses another.
            with contextlib.suppress(TypeError):
                keys.update(columns[0] if len(columns) == 1 else zip(*columns, strict=True))
    return keys, len(parts)
