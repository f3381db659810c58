"""`storm-spark list`: the topologies of a cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from storm_on_spark.cli.client.asking import asked, cluster_options, warn_if_stale
from storm_on_spark.cli.client.watching import watch_option, watched
from storm_on_spark.cli.shared.echo import echo

if TYPE_CHECKING:
    from rich.console import Console


@click.command("list")
@watch_option
@cluster_options
def command(watch: bool, **given: Any) -> None:
    """List the topologies of a cluster."""
    with asked(**given) as request, request.client() as client:
        if watch:
            watched(
                request, lambda: client.page("/topology/summary"), lambda screen, page: show(screen, page["topologies"])
            )
            return
        page = client.page("/topology/summary")
        warn_if_stale(page)
        for topology_id, reason in page.get("unreadable", {}).items():
            echo(f"Warning: {topology_id} exists, but its record can't be read: {reason}.", err=True)
        request.answer(page, lambda screen: show(screen, page["topologies"]))


def show(screen: Console, topologies: list[dict[str, Any]]) -> None:
    """Prints a line for each topology."""
    from storm_on_spark.cli.shared.report import print_result

    if not topologies:
        screen.print("No topologies.")
        return
    print_result(
        screen,
        [
            {
                "name": row["name"],
                "status": row["status"],
                "driver": row["driverStatus"] or ("starting" if row["workersTotal"] else "none"),
                "uptime": row["uptime"],
                "tasks": row["tasksTotal"],
                "executors": row["executorsTotal"],
                "replicas": row["replicationCount"],
                "owner": row["owner"],
                "note": row["schedulerInfo"] or "",
            }
            for row in topologies
        ],
    )
