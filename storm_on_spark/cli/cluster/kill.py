"""`storm-spark kill`: ends a topology."""

from __future__ import annotations

from typing import Any

import click

from storm_on_spark.cli.cluster.asking import asked, cluster_options, name


@click.command("kill", short_help="End a topology.")
@name
@click.option(
    "-w",
    "--wait",
    "wait",
    metavar="SECONDS",
    type=click.FloatRange(min=0),
    help="How long what was emitted has to get done; by default the topology's message timeout.",
)
@cluster_options
def command(name: str, wait: float | None, **given: Any) -> None:
    """End the topology NAME.

    Its spouts stop at once. What they have emitted has some time to get done; then the driver ends, and the topology,
    its code and its state are gone from the cluster. Its checkpoint stays.
    """
    with asked(**given) as request, request.client() as client:
        client.kill(name, wait)
        when = "when its message timeout is over" if wait is None else f"in {wait:g} s"
        request.answer(
            {"topology": name, "operation": "kill", "wait_secs": wait}, f"{name} is killed, and gone {when}."
        )
