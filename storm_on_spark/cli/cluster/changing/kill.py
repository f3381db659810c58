"""`storm-spark kill`: ends a topology."""

from __future__ import annotations

from typing import Any

import click

from storm_on_spark.cli.client.asking import asked, cluster_options, name
from storm_on_spark.cli.shared import options


@click.command("kill", short_help="End a topology.")
@name
@click.option(
    "-w",
    "--wait",
    "wait",
    metavar="SECONDS",
    type=options.SECONDS,
    help="Process emitted tuples for at most this long. Default: the topology's message timeout.",
)
@cluster_options
def command(name: str, wait: float | None, **given: Any) -> None:
    """End the topology NAME.

    Its spouts stop at once. The tuples that they have emitted get some time to be processed. Then the driver ends, and
    the cluster removes the topology and its code. The checkpoint stays. The logs stay for a week:
    `storm-spark logs NAME`.
    """
    with asked(**given) as request, request.client() as client:
        client.kill(name, wait)
        when = "after its message timeout" if wait is None else f"after {wait:g} s"
        request.answer(
            {"topology": name, "operation": "kill", "wait_secs": wait},
            f"{name} is being killed: its spouts have stopped, and it ends {when}.",
        )
