"""`storm-spark rebalance`: starts a topology anew, with other executors or configuration."""

from __future__ import annotations

from typing import Any

import click

from storm_on_spark.cli.cluster.asking import asked, cluster_options, name


@click.command("rebalance", short_help="Start a topology anew, changed or elsewhere.")
@name
@click.option(
    "-w",
    "--wait",
    "wait",
    metavar="SECONDS",
    type=click.FloatRange(min=0),
    help="How long what was emitted has to get done first; by default the topology's message timeout.",
)
@click.option("-n", "--workers", metavar="N", type=click.IntRange(min=1), help="topology.workers from now on.")
@click.option(
    "-e",
    "--executors",
    metavar="COMPONENT=N",
    multiple=True,
    help="Executors of a component, at most as many as it has tasks. May be repeated.",
)
@cluster_options
def command(name: str, wait: float | None, workers: int | None, executors: tuple[str, ...], **given: Any) -> None:
    """Start the topology NAME anew, in a free slot, where it left off.

    What -c and --conf say of topologies becomes part of its configuration; the value null is the default again.
    """
    with asked(**given) as request:
        from storm_on_spark.cli.cluster.where import topologys

        changes, counts = topologys(request.conf), dict(_count(text) for text in executors)
        with request.client() as client:
            client.rebalance(name, wait, workers=workers, executors=counts, conf=changes)
        when = "when its message timeout is over" if wait is None else f"in {wait:g} s"
        request.answer(
            {
                "topology": name,
                "operation": "rebalance",
                "wait_secs": wait,
                "workers": workers,
                "executors": counts,
                "conf": changes,
            },
            f"{name} is rebalancing: it starts anew {when}.",
        )


def _count(text: str) -> tuple[str, int]:
    component, equals, number = text.rpartition("=")
    if not component or not equals or not number.isdecimal() or not 0 < int(number) < 1_000_000:
        raise click.UsageError(f"--executors takes COMPONENT=N, such as split=4, not {text!r}")
    return component, int(number)
