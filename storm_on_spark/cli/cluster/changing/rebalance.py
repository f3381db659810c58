"""`storm-spark rebalance`: restarts a topology, optionally with other executors or configuration."""

from __future__ import annotations

from typing import Any

import click

from storm_on_spark.cli.client.asking import asked, cluster_options, name
from storm_on_spark.cli.shared import options


@click.command("rebalance", short_help="Restart a topology in a free slot, optionally changed.")
@name
@click.option(
    "-w",
    "--wait",
    "wait",
    metavar="SECONDS",
    type=options.SECONDS,
    help="First process emitted tuples for at most this long. Default: the topology's message timeout.",
)
@click.option(
    "-n", "--workers", metavar="N", type=options.whole("a number of workers", 1), help="New value of topology.workers."
)
@click.option(
    "-e",
    "--executors",
    metavar="COMPONENT=N",
    multiple=True,
    help="Executors of a component, at most as many as it has tasks. May be repeated.",
)
@click.option("--from-scratch", is_flag=True, help="Remove its state, so that it starts as if it had never run.")
@cluster_options
def command(
    name: str, wait: float | None, workers: int | None, executors: tuple[str, ...], from_scratch: bool, **given: Any
) -> None:
    """Restart the topology NAME in a free slot; it continues where it stopped.

    -c and --conf change the topology's configuration; the value null restores a default.
    """
    with asked(**given) as request:
        from storm_on_spark.cli.client.which_cluster import topologys

        changes, counts = topologys(request.conf), dict(_count(text) for text in executors)
        with request.client() as client:
            client.rebalance(name, wait, workers=workers, executors=counts, conf=changes, from_scratch=from_scratch)
        when = "when its message timeout is over" if wait is None else f"in {wait:g} s"
        request.answer(
            {
                "topology": name,
                "operation": "rebalance",
                "wait_secs": wait,
                "workers": workers,
                "executors": counts,
                "conf": changes,
                "from_scratch": from_scratch,
            },
            f"{name} is rebalancing: it starts {'from scratch' if from_scratch else 'again'} {when}.",
        )


def _count(text: str) -> tuple[str, int]:
    component, equals, number = text.rpartition("=")
    if not component or not equals or not number.isdecimal() or not 0 < int(number) < 1_000_000:
        raise click.UsageError(f"--executors takes COMPONENT=N, such as split=4, not {text!r}")
    return component, int(number)
