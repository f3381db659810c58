"""A spout of given batches, for tests and examples."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from storm_on_spark.api.streams.fields import Fields
from storm_on_spark.trident.spouts.interfaces import Collects, IBatchSpout


class FixedBatchSpout(IBatchSpout):
    """Emits given rows, a number of them in each batch; Storm's `FixedBatchSpout`.

    Args:
        fields: of the tuples.
        max_batch_size: how many rows are in a batch.
        rows: the values of each tuple.
        cycle: whether to begin again at the end.

    Example:
        >>> spout = FixedBatchSpout("word", 2, [["to"], ["be"], ["or"]])
        >>> spout.exhausted(2), spout.exhausted(3)
        (False, True)
    """

    def __init__(
        self,
        fields: Fields | str | Iterable[str],
        max_batch_size: int,
        rows: Sequence[Sequence[Any]],
        cycle: bool = False,
    ) -> None:
        self._fields = Fields.of(fields)
        self._size = max_batch_size
        self._rows = [list(row) for row in rows]
        self.cycle = cycle

    def set_cycle(self, cycle: bool) -> None:
        """Says whether to begin again at the end."""
        self.cycle = cycle

    def emit_batch(self, batch_id: int, collector: Collects) -> None:  # noqa: D102
        start = (batch_id - 1) * self._size
        for position in range(start, start + self._size):
            if self.cycle and self._rows:
                collector.emit(self._rows[position % len(self._rows)])
            elif position < len(self._rows):
                collector.emit(self._rows[position])

    def exhausted(self, batch_id: int) -> bool:  # noqa: D102
        return not self.cycle and (batch_id - 1) * self._size >= len(self._rows)

    def get_output_fields(self) -> Fields:  # noqa: D102
        return self._fields
