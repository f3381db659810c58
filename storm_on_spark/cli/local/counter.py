"""`storm-spark counter`: the values of counters."""

from __future__ import annotations

import json as jsonlib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from storm_on_spark.api.text.printable import one_line
from storm_on_spark.cli.shared import options
from storm_on_spark.cli.shared.echo import echo
from storm_on_spark.cli.shared.errors import reporting_errors
from storm_on_spark.cli.shared.groups import Group
from storm_on_spark.launch.loader import LoadError

if TYPE_CHECKING:
    from storm_on_spark.xd.modules.counters import Counter, Kind

_KINDS: Final = ("counter", "field-value-counter", "aggregate-counter")
_PARTS: Final = ("minute", "hour", "day", "month", "year")

_json = click.option("--json", is_flag=True, help="Print one JSON document.")
_kind = click.option("--kind", type=click.Choice(_KINDS), default="counter", show_default=True, help="The sink.")
_folder = click.option(
    "--dir", "folder", type=click.Path(path_type=Path), help="The folder of the sink's --dir, by default the same."
)


@click.group("counter", cls=Group, short_help="Show what streams have counted.")
def command() -> None:
    """Show the values of the sinks `counter`, `field-value-counter` and `aggregate-counter`."""


@command.command("list")
@_kind
@_folder
@_json
@options.debug
def listed(kind: Kind, folder: Path | None, json: bool, debug: bool) -> None:
    """List the counters of a kind."""
    from storm_on_spark.xd.modules.counters import list_counters

    with reporting_errors(debug, json):
        names = list_counters(_where(folder), kind)
        echo(jsonlib.dumps({"kind": kind, "counters": names}) if json else "\n".join(names), nl=json or bool(names))


@command.command("display")
@click.argument("name")
@_kind
@click.option("--resolution", type=click.Choice(_PARTS), help="Of an aggregate counter; `hour` by default.")
@_folder
@_json
@options.debug
def display(name: str, kind: Kind, resolution: str | None, folder: Path | None, json: bool, debug: bool) -> None:
    """Show the value of a counter as of the last written micro-batch."""
    from storm_on_spark.xd.modules.counters import read_counter

    if resolution is not None and kind != "aggregate-counter":
        raise click.UsageError("--resolution goes with --kind aggregate-counter")
    with reporting_errors(debug, json):
        _check(name)
        found = read_counter(_where(folder), kind, name)
        if json:
            echo(jsonlib.dumps({"kind": kind, "name": name, "values": found.values}))
            return
        for line in _lines(found, resolution or "hour"):
            echo(line)


@command.command("delete")
@click.argument("name")
@_kind
@_folder
@options.debug
def delete(name: str, kind: Kind, folder: Path | None, debug: bool) -> None:
    """Remove a counter. A stream that still runs writes it again, with its count so far."""
    from storm_on_spark.xd.modules.counters import delete_counter

    with reporting_errors(debug):
        _check(name)
        delete_counter(_where(folder), kind, name)
        echo(f"Deleted {kind} '{name}'")


def _where(folder: Path | None) -> Path:
    from storm_on_spark.xd.modules.declaration import home

    return home() / "counters" if folder is None else folder


def _check(name: str) -> None:
    from storm_on_spark.xd.modules.counters.values import checked_name

    try:
        checked_name(name)
    except ValueError as error:
        raise LoadError(str(error)) from error


def _lines(counter: Counter, resolution: str) -> Iterator[str]:
    if counter.kind == "counter":
        yield str(counter.values.get("value"))
        return
    values: dict[str, Any] = counter.values if counter.kind == "field-value-counter" else counter.values[resolution]
    ordered = values.items()
    if counter.kind == "field-value-counter":
        ordered = dict(sorted(values.items(), key=lambda item: (-item[1], item[0]))).items()
    for value, count in ordered:
        yield f"{one_line(value)}  {count}"
