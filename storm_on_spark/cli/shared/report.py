"""The tables that a run prints at its end."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from rich import box
from rich.cells import cell_len
from rich.console import Console
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from storm_on_spark.api.info import COUNTERS, ComponentInfo, TopologyInfo
from storm_on_spark.api.text.moments import occurred
from storm_on_spark.api.text.printable import one_line, printable
from storm_on_spark.api.text.wording import milliseconds
from storm_on_spark.runtime.reports.observer import rate_text

_NUMBER: Final = re.compile(r"-?[0-9]{1,20}(\.[0-9]{1,20})?|n/a")
_ANY_WIDTH: Final = 100_000
"""Wider than any table."""
_MOST_ERRORS: Final = 10
"""The most different errors shown at the end of a run."""


def print_result(console: Console, result: Any) -> None:
    """Prints what the module's `report` returned: a list of mappings as a table, anything else as it is."""
    rows = result if isinstance(result, list) else [result]
    if not rows or not all(isinstance(row, dict) for row in rows):
        for row in rows:
            console.print(printable(str(row)), markup=False, soft_wrap=True)
        return
    names = list(dict.fromkeys(name for row in rows for name in row))
    numbers = {name for name in names if all(_is_number(row.get(name)) for row in rows)}
    _print_table(
        console,
        list(map(str, names)),
        [[_text(row.get(name)) for name in names] for row in rows],
        set(map(str, numbers)),
    )


def print_summary(console: Console, info: TopologyInfo) -> None:
    """Prints the totals and a line for each component."""
    rate = info.acked / info.uptime_secs if info.uptime_secs else 0.0
    latency = info.complete_latency_ms
    console.print(
        f"{printable(info.name)}: spouts: {info.emitted:,} emitted, {info.transferred:,} transferred, "
        f"{info.acked:,} acked, {info.failed:,} failed, {info.pending:,} pending in {info.uptime_secs:.1f} s: "
        f"{rate_text(rate)} acked/s, "
        "complete latency " + (_without_latency(info) if latency is None else _percentiles(latency)),
        markup=False,
        # A terminal gets lines broken between words; a file gets one line.
        soft_wrap=not console.is_terminal,
    )
    if not info.components:
        return
    headings = ["component", "tasks", *COUNTERS, "execute ms"]
    _print_table(console, headings, [_cells(component) for component in info.components.values()], set(headings[1:]))
    metrics = {name: part.metrics_dict() for name, part in info.components.items()}
    for line in metric_lines(metrics):
        console.print(printable(line), markup=False, soft_wrap=not console.is_terminal)
    # The error that ended the run is printed separately.
    errors = [error for error in info.errors if error.message != info.error]
    if len(errors) > _MOST_ERRORS:
        console.print(f"the last {_MOST_ERRORS} of {len(errors)} errors:", markup=False)
    for error in errors[-_MOST_ERRORS:]:
        head = f"{occurred(error.count, error.first_time, error.time)}  error of {of_task(error.component, error.task)}"
        where = "" if error.location is None else f"in {error.location[0]}, line {error.location[1]}"
        print_error(console, head, error.message, error.input, where)


def of_task(component: str, task: int) -> str:
    """Returns the name of a task; a negative number stands for the component as a whole."""
    return component if task < 0 else f"{component}, task {task}"


def when(error: Mapping[str, Any]) -> str:
    """Returns how often and when equal errors happened, and whether the driver was restarted since.

    Args:
        error: an error from REST; Storm's own REST has neither number nor first time.
    """
    first = error.get("firstTime", error["errorTime"])
    restarted = ", before the last restart" if error.get("beforeRestart") else ""
    return f"{occurred(error.get('count', 1), first, error['errorTime'])}{restarted}"


def print_error(console: Console, head: str, message: str, given: str, trace: str) -> None:
    """Prints an error: a line, and below it its message, its input, and its place in user code."""
    console.print(one_line(head), markup=False, soft_wrap=True)
    shown = [*message.rstrip().splitlines(), *([f"input: {given}"] if given else []), *trace.rstrip().splitlines()]
    for line in shown:
        console.print(one_line(f"    {line}"), markup=False, soft_wrap=True)


def metric_lines(metrics: Mapping[str, Mapping[str, Mapping[str, Any]]]) -> Iterator[str]:
    """Yields a line for each component with registered metrics.

    Args:
        metrics: results of `MetricInfo.to_dict`, by component and name.

    Example:
        >>> list(metric_lines({"count": {"hits": {"type": "counter", "count": 1200}, "lag": {"type": "gauge"}}}))
        ['metrics of count: hits 1,200, lag None']
    """
    for component, known in metrics.items():
        if known:
            shown = (f"{name} {_metric(values)}" for name, values in known.items())
            yield f"metrics of {component}: {', '.join(shown)}"


def _metric(values: Mapping[str, Any]) -> str:
    if "count" not in values:
        return _text(values.get("value"))
    unit = " ms" if values["type"] == "timer" else ""
    spread = f" (mean {values['mean']:,.3g}{unit}, p99 {values['p99']:,.3g}{unit})" if "p99" in values else ""
    rate = f" ({values['m1_rate']:,.3g} a second)" if values["type"] == "meter" else ""
    return f"{_text(values['count'])}{spread}{rate}"


def _print_table(console: Console, headings: Sequence[str], rows: Sequence[Sequence[str]], numbers: set[str]) -> None:
    """Prints rows as a table, or one below the other if they are too wide, so that no word or number is cut."""
    headings, rows = list(map(one_line, headings)), [list(map(one_line, row)) for row in rows]
    numbers = set(map(one_line, numbers))
    plain = not console.is_terminal
    table = Table(box=None if plain else box.SIMPLE, pad_edge=False, collapse_padding=not plain)
    for heading in headings:
        table.add_column(Text(heading), justify="right" if heading in numbers else "left")
    for row in rows:
        # Text, because a word such as [red] would be taken for markup.
        table.add_row(*map(Text, row))
    if Measurement.get(console, console.options.update(width=_ANY_WIDTH), table).maximum <= console.width:
        console.print(table)
        return
    label = max(map(cell_len, headings))
    for row in rows:
        for heading, cell in zip(headings, row, strict=True):
            console.print(Text(f"{heading:<{label}}  {cell}".rstrip()), soft_wrap=True)
        console.print()


def _text(value: Any) -> str:
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)


def _without_latency(info: TopologyInfo) -> str:
    return "n/a (Spark's own sources don't tell it)" if info.acked else "n/a (nothing was acked)"


def _is_number(value: Any) -> bool:
    """Returns whether a value is a number, possibly as text from REST, or stands for a missing one."""
    return isinstance(value, (int, float)) or (isinstance(value, str) and _NUMBER.fullmatch(value) is not None)


def _cells(component: ComponentInfo) -> tuple[str, ...]:
    counts = (f"{count:,}" for count in (component.tasks, *component.counters))
    latency = component.execute_latency_ms
    return (component.id, *counts, "n/a" if latency is None else f"{latency:.3f}")


def _percentiles(latency: Any) -> str:
    return ", ".join(f"{name} {milliseconds(latency[name])}" for name in ("p50", "p95", "p99"))
