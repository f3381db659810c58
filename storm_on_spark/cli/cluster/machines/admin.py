"""`storm-spark admin`: finds and repairs what is left over in a cluster."""

from __future__ import annotations

from typing import Any

import click

from storm_on_spark.cli.client.asking import asked, cluster_options
from storm_on_spark.cli.shared.groups import Group


@click.group("admin", cls=Group, short_help="Find and repair what is left over in a cluster.")
def command() -> None:
    """Find and repair what is left over, or missing, in the cluster's records in ZooKeeper."""


@command.command("check")
@cluster_options
def check(**given: Any) -> None:
    """List what is wrong: records of topologies that do not exist, names that nobody has, topologies without code."""
    with asked(**given) as request, request.client() as client:
        found = client.problems()
        request.answer({"problems": found}, "\n".join(map(_line, found)) or "Nothing is wrong.")


@command.command("repair")
@click.option("--dry-run", is_flag=True, help="Say what would be repaired, and change nothing. The default.")
@click.option("--yes", is_flag=True, help="Repair it.")
@cluster_options
def repair(dry_run: bool, yes: bool, **given: Any) -> None:
    """Repair what needs no decision; with --yes only, without it say what would be repaired."""
    if dry_run and yes:
        raise click.UsageError("--dry-run changes nothing, and --yes repairs: give one of them")
    with asked(**given) as request, request.client() as client:
        found = client.repair() if yes else [each for each in client.problems() if each["repair"]]
        lines = [_line(each) for each in found]
        if found and not yes:
            lines.append("Nothing was changed; --yes repairs it.")
        request.answer({"problems": found, "repaired": yes}, "\n".join(lines) or "There is nothing to repair.")


def _line(problem: dict[str, Any]) -> str:
    repair = f" [{problem['repair']}]" if problem["repair"] else ""
    return f"{problem['kind']}: {problem['folder']}/{problem['name']}: {problem['text']}{repair}"
