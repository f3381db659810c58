"""The tables: on the terminal, as JSON, and in the documentation."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

from rich.console import Console

from lab.failover.figures import FIGURES, SESSION_SECS, median
from lab.failover.harness import Result
from lab.failover.scenarios import SCENARIOS
from lab.suite import tables
from lab.suite.pages import put_between, rows_between
from lab.suite.scenario import passed, verdict
from lab.suite.tables import Table, cores, show_problems

BEGIN, END = "<!-- failover: begin -->", "<!-- failover: end -->"

_COLUMNS = ("fault", "injected", "leaders", "writes under a fence", "refused", "topologies", "")
_SCALE = ("topologies", "supervisors", "times", "median", "worst")
_FIGURES = ("figure", "times", "median", "worst", "limit")


def as_json(results: Sequence[Result]) -> str:
    """Returns all results."""
    document = {
        "session_timeout_secs": SESSION_SECS,
        "cores": cores(),
        "passed": passed(results),
        "scenarios": [result.to_dict() for result in results],
    }
    return json.dumps(document, indent=1)


def from_json(text: str) -> list[Result]:
    """Returns the results that `as_json` made a document of."""
    fields = {field.name for field in dataclasses.fields(Result)}
    titles = {scenario.name: scenario.title for scenario in SCENARIOS}
    results = [
        Result(**{name: value for name, value in each.items() if name in fields})
        for each in json.loads(text)["scenarios"]
    ]
    return [dataclasses.replace(result, title=titles.get(result.scenario, result.title)) for result in results]


def show(results: Sequence[Result], console: Console) -> None:
    """Prints the tables, and the problems below them."""
    for table in (Table("Faults", _COLUMNS, _faults(results)), Table("Figures", _FIGURES, _figures(results))):
        table.show(console)
    for line in _scale(results):
        console.print(line, markup=False)
    show_problems(results, console)


def write_docs(results: Sequence[Result], page: Path, titles: Sequence[str]) -> list[str]:
    """Puts the tables between the markers of a page. Rows of other scenarios stay unchanged.

    Args:
        results: what was played.
        page: with tables of an earlier run.
        titles: of all scenarios, in their order.

    Returns:
        The titles of scenarios that are in neither: nothing was written then.

    Raises:
        ValueError: the page has no markers.
    """
    before = rows_between(page.read_text("utf-8"), BEGIN, END)
    missing = [title for title in titles if title not in before and title not in {each.title for each in results}]
    if not missing:
        put_between(page, BEGIN, END, markdown(results, before, titles))
    return missing


def markdown(
    results: Sequence[Result], before: Mapping[str, list[str]] = MappingProxyType({}), titles: Sequence[str] = ()
) -> str:
    """Returns the tables in Markdown.

    Args:
        results: what was played.
        before: rows by their first cell, for what was not.
        titles: of all scenarios, in their order; those of the results for none.
    """
    note = (
        f"{cores()} cores, three ZooKeeper servers, three Nimbuses, all on one machine; "
        f"`storm.zookeeper.session.timeout` {SESSION_SECS:.0f} s. Seconds."
    )
    lines = ["<!-- Written by `make failover FAILOVER_ARGS=--docs`. Don't edit. -->", "", note, ""]
    lines += [*Table("Figures", _FIGURES, _figures(results, before)).markdown(), ""]
    scale = _scale_rows(results) or [row for first, row in before.items() if first.replace(",", "").isdecimal()]
    if scale:
        lines += [*Table("Scale", _SCALE, scale).markdown(), ""]
    played = {row[0]: row for row in _faults(results)}
    faults = [row for title in titles or played if (row := played.get(title) or before.get(title)) is not None]
    lines += [*Table("Faults", _COLUMNS, faults).markdown(), ""]
    wrong = [f"- {result.title}: {problem}" for result in results for problem in result.problems]
    if wrong:
        lines += ["What was not as it must be:", "", *wrong, ""]
    return "\n".join(lines) + "\n"


def _faults(results: Sequence[Result]) -> list[list[str]]:
    return [
        [
            result.title,
            str(len(result.injections)),
            str(result.leaderships),
            f"{result.fenced_writes:,}",
            str(result.refused_writes),
            str(result.topologies),
            verdict([result]),
        ]
        for result in results
    ]


def _figures(results: Sequence[Result], before: Mapping[str, list[str]] = MappingProxyType({})) -> list[list[str]]:
    rows = []
    for name, figure in FIGURES.items():
        times = [secs for result in results for secs in result.times.get(name, ())]
        if times:
            limit = "" if figure.limit is None else f"{figure.limit:.0f}"
            rows.append([figure.title, f"{len(times):,}", _secs(median(times)), _secs(max(times)), limit])
        elif figure.title in before:
            rows.append(before[figure.title])
    return rows


def _secs(secs: float) -> str:
    return f"{secs:.3f}" if secs < 0.1 else f"{secs:.2f}"


def _scale_rows(results: Sequence[Result]) -> list[list[str]]:
    rows = [row for result in results for row in result.rows if "secs" in row]
    return [
        [
            f"{row['topologies']:,}",
            str(row["supervisors"]),
            str(len(row["secs"])),
            f"{median(row['secs']):.2f}",
            f"{max(row['secs']):.2f}",
        ]
        for row in rows
    ]


def _scale(results: Sequence[Result]) -> list[str]:
    return [
        f"{topologies} topologies on {supervisors} supervisors: median {half} s, worst {worst} s of {times}"
        for topologies, supervisors, times, half, worst in _scale_rows(results)
    ]


def summary(result: Result) -> str:
    """Returns one line about a scenario that is over."""
    times = "; ".join(
        f"{FIGURES[name].title}: median {median(secs):.2f}, worst {max(secs):.2f} of {len(secs)}"
        for name, secs in result.times.items()
        if secs
    )
    [row] = _faults([result])
    return tables.summary(result, _COLUMNS, row, times)
