"""Rows, or their partial results, by pane, in the bolt's key-value state."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from storm_on_spark.api.state import KeyValueState
from storm_on_spark.windowing.aggregates.numbers import PaneNumbers
from storm_on_spark.windowing.columnar.reduction import Reduction
from storm_on_spark.windowing.content.queue import OWN

_LEAST = 1024
"""Fewer rows than this are written with the manager, until more have come."""


class ColumnPanes:
    """The rows of one task.

    Call `attach` before anything else, also after unpickling.
    """

    def __init__(self) -> None:
        #: For each pane with rows: how many tables are written, and the tables that are not written yet.
        self._written: dict[int, int] = {}
        self._open: dict[int, pa.Table] = {}
        #: The keys of `_written`.
        self._panes = PaneNumbers()
        #: The pane after the last window.
        self._end = -(1 << 62)

    def attach(self, state: KeyValueState, reduction: Reduction | None) -> None:
        """Connects the state with the tables, and the reduction of rows; None to keep all rows."""
        self._state, self._reduction = state, reduction
        self._panes = PaneNumbers(self._written)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name not in ("_state", "_reduction", "_panes")}

    def add(self, pane: int, rows: pa.Table) -> None:
        """Adds rows."""
        kept = rows if self._reduction is None else self._reduction.partial(rows)
        if pane not in self._written:
            self._written[pane] = 0
            self._panes.add(pane)
        before = self._open.get(pane)
        self._open[pane] = kept if before is None else _joined([before, kept])

    def settle(self) -> None:
        """Prepares for being written, at the end of a micro-batch."""
        for pane, table in list(self._open.items()):
            if self._reduction is not None and table.column(0).num_chunks > 1:
                table = self._open[pane] = self._reduction.merged(table)
            if table.num_rows >= _LEAST:
                number = self._written[pane]
                self._state.put((OWN, "rows", pane, number), _to_bytes(table))
                self._written[pane] = number + 1
                del self._open[pane]

    def earliest(self, start: int, end: int) -> int | None:
        """Returns the first pane with rows from `start` to before `end`, or None."""
        return self._panes.earliest(start, end)

    def __len__(self) -> int:
        return len(self._written)

    def advance(self, start: int, end: int) -> tuple[int, int, int]:
        """Moves the window to the panes from `start` to before `end`.

        Returns: `start`, the first new pane, and `end`.
        """
        for pane in self._panes.drop_before(start):
            for number in range(self._written.pop(pane)):
                self._state.delete((OWN, "rows", pane, number))
            self._open.pop(pane, None)
        new, self._end = max(start, self._end), end
        return start, new, end

    def carry_over(self, changed: tuple[int, int, int]) -> None:
        """Keeps nothing: an empty window has nothing new."""

    def table(self, start: int, end: int) -> pa.Table:
        """Returns the rows, or results, of the panes from `start` to before `end`."""
        parts = []
        for pane in self._panes.between(start, end):
            for number in range(self._written[pane]):
                parts.append(pa.ipc.open_stream(self._state.get((OWN, "rows", pane, number))).read_all())
            if pane in self._open:
                parts.append(self._open[pane])
        if not parts:
            return pa.table({})
        joined = _joined(parts)
        return joined if self._reduction is None else self._reduction.result(self._reduction.merged(joined))


def _joined(tables: list[pa.Table]) -> pa.Table:
    """Concatenates tables. Types are inferred batch by batch; of nulls, integers and floats, the widest is used."""
    return pa.concat_tables(tables, promote_options="permissive")


def _to_bytes(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table.combine_chunks())
    found: bytes = sink.getvalue().to_pybytes()
    return found
