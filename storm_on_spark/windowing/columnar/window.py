"""The window that a columnar bolt evaluates."""

from __future__ import annotations

from functools import cached_property

import pyarrow as pa

from storm_on_spark.windowing.columnar.panes import ColumnPanes


class BatchWindow:
    """The rows of a window, or its results. It is valid while the bolt evaluates it.

    Args:
        panes: with the rows.
        bounds: the first pane, the first new one, and the one after the last.
        start: the time after which the window begins.
        end: the time up to which it lasts.
    """

    def __init__(self, panes: ColumnPanes, bounds: tuple[int, int, int], start: int | None, end: int | None) -> None:
        self._panes, self._bounds = panes, bounds
        self.start = start
        self.end = end

    @cached_property
    def table(self) -> pa.Table:
        """All rows of the window, by the time of their slides; with aggregations, keys and results."""
        first, _, after = self._bounds
        return self._panes.table(first, after)

    @cached_property
    def new(self) -> pa.Table:
        """The same for the rows that are new since the previous window, those of its last slide."""
        _, new, after = self._bounds
        return self._panes.table(new, after)

    def __len__(self) -> int:
        return int(self.table.num_rows)
