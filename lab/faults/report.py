"""The table: on the terminal, as JSON, and in the documentation."""

from __future__ import annotations

import json
import statistics
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from lab.faults.harness import Result
from lab.load.topology import Load
from lab.suite import tables
from lab.suite.pages import put_between, rows_between
from lab.suite.scenario import passed, verdict
from lab.suite.tables import Table, cores, show_problems

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
    """Returns all results."""
    return json.dumps(
        {
            "seed": seed,
            "messages": load.messages,
            "emitted_within_secs": load.seconds,
            "cores": cores(),
            "passed": passed(results),
            "scenarios": [result.to_dict() for result in results],
        },
        indent=1,
    )


def show(results: Sequence[Result], console: Console) -> None:
    """Prints the table, and the problems below it."""
    Table("Faults", _COLUMNS, _rows(results)).show(console)
    console.print(_NOTE)
    show_problems(results, console)


def write_docs(results: Sequence[Result], load: Load, page: Path, where: Sequence[str], titles: Sequence[str]) -> None:
    """Puts the table between the markers of a page. Rows of other scenarios, and of those not run, stay unchanged.

    Args:
        results: what was played.
        load: of each run.
        page: with the table of an earlier run, or none.
        where: options that say on what the scenarios were played: each such page part has its own markers.
        titles: of all scenarios, in their order.

    Raises:
        ValueError: the page has no markers, or rows of another load.
    """
    begin, end = _markers(where)
    played = [result for result in results if result.skipped is None]
    rows = rows_before(load, page, where) | {row[0]: row for row in _rows(played)}
    table = Table("Faults", _COLUMNS, [rows[title] for title in titles if title in rows])
    size = [] if load == Load() else ["--messages", str(load.messages), "--seconds", f"{load.seconds:g}"]
    options = " ".join(["--docs", *where, *size])
    quoted = json.dumps(options) if " " in options else options
    lines = [
        f"<!-- Written by `make faults FAULTS_ARGS={quoted}`. Don't edit. -->",
        "",
        f"{_load(load)} {_NOTE}",
        "",
        *table.markdown(),
        "",
    ]
    put_between(page, begin, end, "\n".join(lines) + "\n")


def rows_before(load: Load, page: Path, where: Sequence[str]) -> dict[str, list[str]]:
    """Returns the rows of an earlier run, by their titles; arguments as for `write_docs`.

    Raises:
        ValueError: the page has no markers, or rows of another load.
    """
    text = page.read_text("utf-8")
    before, note = rows_between(text, *_markers(where)), _load(load)
    if before and note not in text:
        raise ValueError(f"{page} has rows of another load than these: {note}")
    return before


def _markers(where: Sequence[str]) -> tuple[str, str]:
    begin, end = (mark.replace("faults", "-".join(["faults", *where[1::2]])) for mark in (BEGIN, END))
    return begin, end


def _load(load: Load) -> str:
    return f"{load.messages:,} unique messages a run, {load.rate:,.0f} a second, {cores()} cores."


def _rows(results: Sequence[Result]) -> list[list[str]]:
    names = dict.fromkeys(result.scenario for result in results)
    return [_row([result for result in results if result.scenario == name]) for name in names]


def _row(results: Sequence[Result]) -> list[str]:
    """Returns the cells for one scenario, over all its rounds."""
    title = results[0].title
    if results[0].skipped is not None:
        return [title, *[""] * (len(_COLUMNS) - 2), verdict(results)]
    injections = [injection for result in results for injection in result.injections]
    times = [injection.recovery_secs for injection in injections if injection.recovery_secs is not None]
    figures = [result.figures for result in results if result.figures is not None]

    late = next((result.late for result in results if result.late is not None), None)

    def total(name: str) -> str:
        return f"{sum(getattr(part, name) for part in figures):,}"

    names = ("messages", "lost", "wrong_outcomes", "state_errors", "duplicates", "replayed")
    return [
        title,
        str(len(injections)),
        *map(total, names),
        f"{statistics.median(times):.1f}" if times else "",
        f"{max(times):.1f}" if times else "",
        verdict(results) + (f", later than {late:.0f} s" if late is not None and passed(results) else ""),
    ]


def summary(result: Result) -> str:
    """Returns one line about a scenario that is over."""
    return tables.summary(result, _COLUMNS, _row([result]))
