"""`storm-spark errors`: the last errors of a topology."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from storm_on_spark.cli.client.asking import asked, cluster_options, name, warn_if_stale
from storm_on_spark.cli.shared.echo import echo
from storm_on_spark.cli.shared.report import of_task, print_error, when

if TYPE_CHECKING:
    from rich.console import Console


@click.command("errors", short_help="Show the last errors of a topology.")
@name
@cluster_options
def command(name: str, **given: Any) -> None:
    """Show the last errors of the topology NAME, by component. Equal errors are shown once, with their number."""
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
            place = f"on {error['errorHost']}:{error['errorPort']}"
            head = f"{when(error)}  {of_task(component, error['task'])}, {place}"
            print_error(screen, head, error["error"], error.get("input", ""), error.get("trace", ""))
