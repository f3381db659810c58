"""`storm-spark drain`: takes topologies away from a supervisor."""

from __future__ import annotations

from typing import Any

import click

from storm_on_spark.cli.client.asking import asked, cluster_options


@click.command("drain", short_help="Take topologies away from a supervisor.")
@click.argument("supervisor", metavar="SUPERVISOR")
@click.option("--undo", is_flag=True, help="Give it topologies again; those that moved stay where they are.")
@click.option("--dry-run", is_flag=True, help="Say what would move, and change nothing.")
@cluster_options
def command(supervisor: str, undo: bool, dry_run: bool, **given: Any) -> None:
    """Move the topologies of SUPERVISOR, its id or its host, to others, and give it no new ones.

    Each topology ends in order and continues elsewhere. One that finds no other slot stays until there is one. A drain
    lasts until --undo, also when the supervisor or a Nimbus starts again; `storm-spark cluster` shows it.
    """
    if undo and dry_run:
        raise click.UsageError("--dry-run says what a drain would move; --undo moves nothing")
    with asked(**given) as request, request.client() as client:
        page = client.drain(supervisor, undo=undo, dry_run=dry_run)
        where = f"{page['supervisorId']} on {page['host'] or 'a host that is away'}"
        if undo:
            lines = [f"Supervisor {where} gets topologies again."]
        else:
            lines = [f"Supervisor {where} {'would get' if dry_run else 'gets'} no topologies."]
            lines += [_told(move, dry_run) for move in page["moves"]]
        request.answer(page, "\n".join(lines))


def _told(move: dict[str, Any], dry_run: bool) -> str:
    if not move["to_supervisor"]:
        return f"{move['name']} stays until another slot is free."
    warning = f" Warning: {move['warning']}." if move["warning"] else ""
    return f"{move['name']} {'would move' if dry_run else 'moves'} to {move['to_host']}:{move['to_port']}.{warning}"
