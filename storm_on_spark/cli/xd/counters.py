"""The commands of a shell that show counters of its admin: `counter`, `field-value-counter`, `aggregate-counter`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import click

from storm_on_spark.cli.shared.groups import Group
from storm_on_spark.cli.xd.asking import asked
from storm_on_spark.cli.xd.tables import table

_PARTS: Final = ("minute", "hour", "day", "month", "year")
KINDS: Final = ("counter", "field-value-counter", "aggregate-counter")


def group(kind: str) -> click.Group:
    """Returns the commands of a kind."""
    one, title = kind.replace("-", "_"), kind.replace("-", " ").title()
    made = Group(kind, short_help=f"{title}s of the admin.", help=f"{title}s of the admin.")

    @made.command("list", help=f"List the {kind.replace('-', ' ')}s.")
    def listed(**given: Any) -> None:
        with asked(**given) as request:
            found = list(request.client.every(f"list_{one}s"))
            request.answer({"kind": kind, "counters": [each.name for each in found]}, _names(title, found))

    @click.argument("name")
    def display(name: str, resolution: str | None = None, **given: Any) -> None:
        with asked(**given) as request:
            query = {} if resolution is None else {"resolution": resolution}
            found = request.client.ask(f"get_{one}", query=query, name=name)
            request.answer({"kind": kind, "name": name, "values": _VALUES[kind](found)}, _TEXTS[kind](found))

    if kind == "aggregate-counter":
        display = click.option("--resolution", type=click.Choice(_PARTS), help="`hour` by default.")(display)
    made.command("display", help="Show a value, summed over all sinks that name it.")(display)

    @made.command("delete", help="Remove one. A stream that still runs writes it again, with its count so far.")
    @click.argument("name")
    def delete(name: str, **given: Any) -> None:
        with asked(**given) as request:
            request.client.ask(f"delete_{one}", name=name)
            request.answer({"kind": kind, "name": name}, f"Deleted {kind.replace('-', ' ')} '{name}'")

    return made


def _names(title: str, found: list[Any]) -> str:
    return table([f"{title} Name"], [[each.name] for each in found])


def _rows(headings: list[str], values: Mapping[str, float]) -> str:
    return table(headings, [[key, f"{value:,}"] for key, value in values.items()])


_VALUES: Final[dict[str, Callable[[Any], Mapping[str, Any]]]] = {
    "counter": lambda found: {"value": found.value},
    "field-value-counter": lambda found: found.field_value_counts,
    "aggregate-counter": lambda found: {found.resolution: found.counts},
}

_TEXTS: Final[dict[str, Callable[[Any], str]]] = {
    "counter": lambda found: f"{found.value:,}",
    "field-value-counter": lambda found: _rows(
        ["Value", "Count"],
        dict(sorted(found.field_value_counts.items(), key=lambda item: (-item[1], item[0]))),
    ),
    "aggregate-counter": lambda found: _rows(["Time", "Count"], found.counts),
}
