"""The table: on the terminal, as JSON, and in the documentation."""

from __future__ import annotations

import json
import os
import statistics
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table

from lab.faults.harness import Result
from lab.faults.pages import put_between
from lab.faults.topology import Load

BEGIN, END = "<!-- faults: begin -->", "<!-- faults: end -->"

_COLUMNS = (
    "fault",
    "injected",
    "messages",
    "lost",
    "wrong outcomes",
    "state errors",
    "sink duplicates",
    "replayed",
    "recovery p50",
    "max",
    "",
)
_NOTE = (
    "Times are seconds from the fault (where it lasts, from its end; where somebody has to start the driver again, "
    "including that) until messages of both spout tasks that were emitted afterwards are acked."
)


def as_json(results: Sequence[Result], load: Load, seed: str) -> str:
    """Returns all there is to know."""
    return json.dumps(
        {
            "seed": seed,
            "messages": load.messages,
            "emitted_within_secs": load.seconds,
            "cores": _cores(),
            "passed": passed(results),
            "scenarios": [result.to_dict() for result in results],
        },
        indent=1,
    )


def passed(results: Sequence[Result]) -> bool:
    """Whether no oracle found anything; scenarios that can't run here don't count."""
    return not any(result.problems for result in results)


def show(results: Sequence[Result], console: Console) -> None:
    """Prints the table, and below it what is wrong."""
    table = Table(title="Faults")
    for number, column in enumerate(_COLUMNS):
        table.add_column(column, justify="left" if number in (0, len(_COLUMNS) - 1) else "right")
    for name in dict.fromkeys(result.scenario for result in results):
        row = _row([result for result in results if result.scenario == name])
        table.add_row(*row, style="red" if row[-1] == "FAILED" else None)
    console.print(table)
    console.print(_NOTE)
    for result in results:
        for problem in result.problems:
            console.print(f"{result.scenario} (seed {result.seed}): {problem}", style="red", markup=False)


def write_docs(results: Sequence[Result], load: Load, page: Path, storage: str = "local") -> None:
    """Puts the table between the markers of a page.

    Raises:
        ValueError: the page has no markers.
    """
    begin, end = (mark if storage == "local" else mark.replace("faults", f"faults-{storage}") for mark in (BEGIN, END))
    put_between(page, begin, end, markdown(results, load, storage))


def markdown(results: Sequence[Result], load: Load, storage: str = "local") -> str:
    """Returns the table in Markdown."""
    names = list(dict.fromkeys(result.scenario for result in results))
    rounds = max(sum(result.scenario == name for result in results) for name in names)
    options = "--docs" if storage == "local" else f'"--docs --storage {storage}"'
    lines = [
        f"<!-- Written by `make faults FAULTS_ARGS={options}`. Don't edit. -->",
        "",
        f"{load.messages:,} unique messages a run, {load.rate:,.0f} a second, {rounds} run(s) a fault, "
        f"{_cores()} cores. {_NOTE}",
        "",
        "| " + " | ".join(column or "result" for column in _COLUMNS) + " |",
        "|" + "|".join("---" if number in (0, len(_COLUMNS) - 1) else "--:" for number in range(len(_COLUMNS))) + "|",
    ]
    for name in names:
        lines.append("| " + " | ".join(_row([result for result in results if result.scenario == name])) + " |")
    return "\n".join(lines) + "\n\n"


def _row(results: Sequence[Result]) -> list[str]:
    """Returns the cells for one scenario, over all its rounds."""
    title = results[0].title
    if results[0].skipped is not None:
        return [title, *[""] * (len(_COLUMNS) - 2), f"not run: {results[0].skipped}"]
    injections = [injection for result in results for injection in result.injections]
    times = [injection.recovery_secs for injection in injections if injection.recovery_secs is not None]
    figures = [result.figures for result in results if result.figures is not None]

    def total(name: str) -> str:
        return f"{sum(getattr(part, name) for part in figures):,}"

    names = ("messages", "lost", "wrong_outcomes", "state_errors", "duplicates", "replayed")
    return [
        title,
        str(len(injections)),
        *map(total, names),
        f"{statistics.median(times):.1f}" if times else "",
        f"{max(times):.1f}" if times else "",
        "FAILED" if any(result.problems for result in results) else "passed",
    ]


def summary(result: Result) -> str:
    """Returns one line about a scenario that is over."""
    *_, verdict = cells = _row([result])
    details = [f"{name} {cell}" for name, cell in zip(_COLUMNS[1:-1], cells[1:-1], strict=True) if cell]
    return f"{result.scenario}: {verdict} in {result.seconds:.0f} s; {', '.join(details)}"


def _cores() -> int:
    return len(os.sched_getaffinity(0))
