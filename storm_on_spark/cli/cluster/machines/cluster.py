"""`storm-spark cluster`: a cluster's summary and its supervisors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from storm_on_spark.cli.client.asking import asked, cluster_options, since, warn_if_stale
from storm_on_spark.cli.shared.echo import echo
from storm_on_spark.plan.explain.words import counted

if TYPE_CHECKING:
    from rich.console import Console

    Json = dict[str, Any]

_SUPERVISORS = "__supervisors/"
_SHOWN = 3
"""The most topologies that are named for each Pacemaker."""


@click.command("cluster")
@cluster_options
def command(**given: Any) -> None:
    """Show a cluster's summary and its supervisors."""
    with asked(**given) as request:
        with request.client() as client:
            summary = client.page("/cluster/summary")
            supervisors = client.supervisors()
        warn_if_stale(summary)
        request.answer({**summary, "supervisorList": supervisors}, lambda screen: show(screen, summary, supervisors))


def show(screen: Console, summary: Json, supervisors: list[Json]) -> None:
    """Prints a summary, and a line for each supervisor."""
    from storm_on_spark.cli.shared.report import print_result

    leader = next((f"{n['host']}:{n['port']}" for n in summary["nimbuses"] if n["is_leader"]), None)
    echo(
        f"{counted(len(summary['nimbuses']), 'Nimbus')}, {'none leads' if leader is None else f'{leader} leads'}; "
        f"{counted(summary['topologies'], 'topology')}; {counted(summary['supervisors'], 'supervisor')} "
        f"with {counted(summary['slotsTotal'], 'slot')}, "
        f"{summary['slotsFree']} free; Storm on Spark {summary['stormVersion']}"
    )
    for problem in summary["problems"]:
        echo(f"Unreadable in ZooKeeper: {problem}", err=True)
    if summary.get("pacemakers"):
        echo()
        print_result(
            screen,
            [
                {
                    "Pacemaker": row["server"],
                    "state": f"away{since(row['awaySince'])}" if row["awaySince"] is not None else "answers",
                    "heartbeats": row["heartbeats"],
                    "kB": round(row["bytes"] / 1000),
                    "writes/s": row["writesPerSec"],
                    "read ms": round(row["readSecs"] * 1000),
                    "written last by": _writers(row["writers"]),
                }
                for row in summary["pacemakers"]
            ],
        )
    for row in supervisors:
        if row["unhealthy"]:
            echo(f"Supervisor {row['id']} on {row['host']} is not fit: {row['unhealthy']}")
    if supervisors:
        echo()
        print_result(
            screen,
            [
                {
                    "supervisor": row["id"],
                    "host": row["host"],
                    "uptime": row["uptime"],
                    "slots": row["slotsTotal"],
                    "used": f"{row['slotsUsed']}, {_why(row)}" if row["blacklisted"] else row["slotsUsed"],
                    "version": row["version"],
                }
                for row in supervisors
            ],
        )


def _why(row: Json) -> str:
    return "not fit" if row["unhealthy"] else "drained"


def _writers(names: list[str]) -> str:
    """Returns the topologies whose heartbeats came last: the first few, and the number of others."""
    supervisors = sum(name.startswith(_SUPERVISORS) for name in names)
    topologies = sorted({name.partition("/")[0] for name in names if not name.startswith(_SUPERVISORS)})
    more = len(topologies) - _SHOWN
    found = [*topologies[:_SHOWN], *([f"{more} more"] if more > 0 else [])]
    return ", ".join([*found, *([counted(supervisors, "supervisor")] if supervisors else [])])
