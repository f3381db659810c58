"""`storm-spark activate`: lets the spouts of a topology emit."""

from __future__ import annotations

from typing import Any

import click

from storm_on_spark.cli.client.asking import asked, cluster_options, name


@click.command("activate", short_help="Let a topology's spouts emit again.")
@name
@cluster_options
def command(name: str, **given: Any) -> None:
    """Let the spouts of the topology NAME emit again."""
    with asked(**given) as request, request.client() as client:
        client.activate(name)
        request.answer({"topology": name, "operation": "activate"}, f"{name} is active.")
