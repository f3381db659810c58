"""`storm-spark cluster`: a cluster in numbers, and its supervisors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from storm_on_spark.cli.cluster.asking import asked, cluster_options, told_if_stale
from storm_on_spark.plan.words import counted

if TYPE_CHECKING:
    from rich.console import Console

    Json = dict[str, Any]


@click.command("cluster")
@cluster_options
def command(**given: Any) -> None:
    """Show a cluster in numbers, and its supervisors."""
    with asked(**given) as request:
        with request.client() as client:
            summary = client.page("/cluster/summary")
            supervisors = client.supervisors()
        told_if_stale(summary)
        request.answer({**summary, "supervisorList": supervisors}, lambda screen: show(screen, summary, supervisors))


def show(screen: Console, summary: Json, supervisors: list[Json]) -> None:
    """Prints a summary, and a line for each supervisor."""
    from storm_on_spark.cli.report import print_result

    leader = next((f"{n['host']}:{n['port']}" for n in summary["nimbuses"] if n["is_leader"]), None)
    click.echo(
        f"{counted(len(summary['nimbuses']), 'Nimbus')}, {'none leads' if leader is None else f'{leader} leads'}; "
        f"{counted(summary['topologies'], 'topology')}; {counted(summary['supervisors'], 'supervisor')} "
        f"with {counted(summary['slotsTotal'], 'slot')}, "
        f"{summary['slotsFree']} free; Storm on Spark {summary['stormVersion']}"
    )
    for problem in summary["problems"]:
        click.echo(f"Unreadable in ZooKeeper: {problem}", err=True)
    if supervisors:
        click.echo()
        print_result(
            screen,
            [
                {
                    "supervisor": row["id"],
                    "host": row["host"],
                    "uptime": row["uptime"],
                    "slots": row["slotsTotal"],
                    "used": row["slotsUsed"],
                    "version": row["version"],
                }
                for row in supervisors
            ],
        )
