"""A table on the terminal and in Markdown."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass

import rich.table
from rich.console import Console

from lab.suite.scenario import Result

_BAD = ("FAILED", "not met")


@dataclass(frozen=True)
class Table:
    """A table: its first column names the row; a last one without a name is a verdict; the rest are figures.

    Args:
        title: for the terminal.
        columns: their names.
        rows: the cells.

    Example:
        >>> Table("Faults", ("fault", "lost", ""), [["none", "0", "passed"]]).markdown()
        ['| fault | lost | result |', '|---|--:|---|', '| none | 0 | passed |']
    """

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]

    def show(self, console: Console) -> None:
        """Prints it, bad rows in red."""
        table = rich.table.Table(title=self.title)
        for number, column in enumerate(self.columns):
            table.add_column(column, justify="left" if self._is_text(number) else "right")
        for row in self.rows:
            table.add_row(*row, style="red" if row[-1] in _BAD else None)
        console.print(table)

    def markdown(self) -> list[str]:
        """Returns its lines."""
        rule = ("---" if self._is_text(number) else "--:" for number in range(len(self.columns)))
        lines = ["| " + " | ".join(row) + " |" for row in ([name or "result" for name in self.columns], *self.rows)]
        return [lines[0], f"|{'|'.join(rule)}|", *lines[1:]]

    def _is_text(self, number: int) -> bool:
        return number == 0 or not self.columns[number]


def show_problems(results: Sequence[Result], console: Console) -> None:
    """Prints the problems."""
    for result in results:
        for problem in result.problems:
            console.print(f"{result.label}: {problem}", style="red", markup=False)


def summary(result: Result, columns: Sequence[str], row: Sequence[str], more: str = "") -> str:
    """Returns one line about a scenario that is over.

    Args:
        result: of it.
        columns: of the table of faults.
        row: its row there.
        more: further text.
    """
    details = ", ".join(f"{name} {cell}" for name, cell in zip(columns[1:-1], row[1:-1], strict=True) if cell)
    return f"{result.scenario}: {row[-1]} in {result.seconds:.0f} s; {details}{'; ' + more if more else ''}"


def cores() -> int:
    """Returns the number of cores for this process."""
    return len(os.sched_getaffinity(0))
