"""`storm-spark deactivate`: stops the spouts of a topology."""

from __future__ import annotations

from typing import Any

import click

from storm_on_spark.cli.client.asking import asked, cluster_options, name


@click.command("deactivate", short_help="Stop a topology's spouts.")
@name
@cluster_options
def command(name: str, **given: Any) -> None:
    """Stop the spouts of the topology NAME; tuples already emitted are still processed."""
    with asked(**given) as request, request.client() as client:
        client.deactivate(name)
        request.answer(
            {"topology": name, "operation": "deactivate"},
            f"{name} is inactive: its spouts emit nothing until it is activated.",
        )
