"""`storm-spark errors`: the last errors of a topology."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any

import click

from storm_on_spark.api.text.printable import one_line
from storm_on_spark.cli.client.asking import asked, cluster_options, name, warn_if_stale
from storm_on_spark.cli.shared.echo import echo

if TYPE_CHECKING:
    from rich.console import Console


@click.command("errors", short_help="Show the last errors of a topology.")
@name
@cluster_options
def command(name: str, **given: Any) -> None:
    """Show the last errors of the topology NAME, oldest first, by component."""
    with asked(**given) as request:
        with request.client() as client:
            page = client.page(f"/topology/{client.topology_id(name)}/errors")
        warn_if_stale(page)
        request.answer(page, lambda screen: show(screen, page["errors"]))


def show(screen: Console, errors: dict[str, list[dict[str, Any]]]) -> None:
    """Prints the errors of all components."""
    if not any(errors.values()):
        echo("No errors.")
    for component, found in sorted(errors.items()):
        for error in found:
            when = datetime.fromtimestamp(error["errorTime"]).astimezone()
            task = "" if error["task"] < 0 else f", task {error['task']}"
            screen.print(
                one_line(f"{when:%Y-%m-%d %H:%M:%S}  {component}{task}, on {error['errorHost']}:{error['errorPort']}"),
                markup=False,
                soft_wrap=True,
            )
            for line in [*error["error"].rstrip().splitlines(), *error.get("trace", "").rstrip().splitlines()]:
                screen.print(one_line(f"    {line}"), markup=False, soft_wrap=True)
