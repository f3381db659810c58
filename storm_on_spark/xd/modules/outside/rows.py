"""Rows of a sink that writes those of a micro-batch as one unit, and what becomes of their messages."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from storm_on_spark.api.errors import SetupError, TupleError
from storm_on_spark.api.task.collector import OutputCollector
from storm_on_spark.api.tuple import Tuple
from storm_on_spark.connectors.sinks.dividing import divided

_MOST_REPORTED: Final = 20
"""Rows of one micro-batch that are refused and reported one by one."""


class Rows:
    """The rows of a micro-batch, each with the message that it is made of.

    Args:
        collector: acks and fails messages.
        table: where rows go, for errors.
    """

    def __init__(self, collector: OutputCollector, table: str) -> None:
        self._collector = collector
        self._table = table
        self._rows: list[tuple[Tuple, tuple[Any, ...]]] = []

    def add(self, tup: Tuple, row: tuple[Any, ...]) -> None:
        """Takes the row of a message."""
        self._rows.append((tup, row))

    def write(self, write: Callable[[Sequence[tuple[Any, ...]]], Exception | None]) -> bool:
        """Writes the rows: acks the messages of those that are written, and fails those of refused ones.

        Args:
            write: as for `divided`. What it raises fails the messages of all rows that are not written.

        Returns:
            Whether nothing was raised.

        Raises:
            SetupError: `write` raised it: what is wrong is not over by itself.
        """
        rows, self._rows = self._rows, []
        done = refused = 0
        try:
            for part, refusal in divided(rows, lambda some: write([row for _, row in some])):
                done += len(part)
                if refusal is None:
                    for tup, _ in part:
                        self._collector.ack(tup)
                    continue
                ((tup, row),) = part
                refused += 1
                if refused <= _MOST_REPORTED:
                    kind = type(refusal).__name__
                    self._collector.report_error(
                        TupleError(f"{self._table} refuses a row: {kind}: {refusal} (given {row!r:.200})")
                    )
                self._collector.fail(tup)
        except SetupError:
            raise
        except Exception as error:
            self._collector.report_error(error)
            for tup, _ in rows[done:]:
                self._collector.fail(tup)
            return False
        return True
