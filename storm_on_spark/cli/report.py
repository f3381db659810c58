"""What a run says at its end: tables for people, one document for programs."""

from __future__ import annotations

from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from storm_on_spark.api.info import ComponentInfo, TopologyInfo

_COMPONENT_KEYS = ("executed", "emitted", "acked", "failed", "execute_latency_ms")


def document(name: str | None, info: TopologyInfo | None, error: str | None, result: Any = None) -> dict[str, Any]:
    """Returns what `run --json` prints; `info` is None for a topology that never ran."""
    data = (info or TopologyInfo(name or "", "FAILED", 0.0)).to_dict()
    found = {
        "topology": name,
        "emitted": data["emitted"],
        "acked": data["acked"],
        "failed": data["failed"],
        "pending": data["pending"],
        "seconds": round(data["uptime_secs"], 3),
        "complete_latency_ms": data["complete_latency_ms"],
        "components": {
            component: {key: numbers[key] for key in _COMPONENT_KEYS}
            for component, numbers in data["components"].items()
        },
        "error": error,
    }
    return found if result is None else {**found, "result": result}


def print_result(console: Console, result: Any) -> None:
    """Prints what the module's `report` returned: a list of mappings as a table, anything else as it is."""
    rows = result if isinstance(result, list) else [result]
    if not rows or not all(isinstance(row, dict) for row in rows):
        for row in rows:
            console.print(str(row), markup=False, soft_wrap=True)
        return
    names = list(dict.fromkeys(name for row in rows for name in row))
    table = _table(console)
    for name in names:
        number = all(isinstance(row.get(name), (int, float)) for row in rows)
        table.add_column(str(name), justify="right" if number else "left")
    for row in rows:
        table.add_row(*(_text(row.get(name)) for name in names))
    console.print(table)


def print_summary(console: Console, info: TopologyInfo) -> None:
    """Prints the totals and a line for each component."""
    rate = info.acked / info.uptime_secs if info.uptime_secs else 0.0
    latency = info.complete_latency_ms
    console.print(
        f"{info.name}: {info.emitted:,} emitted, {info.acked:,} acked, {info.failed:,} failed, "
        f"{info.pending:,} pending in {info.uptime_secs:.1f} s: {rate:,.0f} acked/s, complete latency "
        + ("n/a (nothing was acked)" if latency is None else _percentiles(latency)),
        markup=False,
        soft_wrap=True,
    )
    if not info.components:
        return
    table = _table(console)
    table.add_column("component")
    for heading in ("tasks", "executed", "emitted", "acked", "failed", "execute ms"):
        table.add_column(heading, justify="right")
    for component in info.components.values():
        table.add_row(*_cells(component))
    console.print(table)


def _table(console: Console) -> Table:
    return Table(box=box.SIMPLE if console.is_terminal else None, pad_edge=False)


def _text(value: Any) -> Text:
    # Text, since a word such as [red] would be taken for markup.
    return Text(f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value))


def _cells(component: ComponentInfo) -> tuple[str, ...]:
    counts = (component.tasks, component.executed, component.emitted, component.acked, component.failed)
    latency = component.execute_latency_ms
    return (component.id, *(f"{count:,}" for count in counts), "n/a" if latency is None else f"{latency:.3f}")


def _percentiles(latency: Any) -> str:
    return ", ".join(f"{name} {latency[name]:,.0f} ms" for name in ("p50", "p95", "p99"))
