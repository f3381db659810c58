"""`storm-spark counter`: the counters of a folder, or with --admin the sums from an admin."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from storm_on_spark.cli.local import counter as local
from storm_on_spark.cli.shared.groups import Group
from storm_on_spark.cli.xd import counters as remote
from storm_on_spark.cli.xd.asking import admin_options, either


def _there(name: str) -> click.Command:
    """Returns the command of a shell, with the kind as an option."""

    @click.command(name)
    @admin_options
    def command(kind: str, folder: Path | None, **given: Any) -> None:
        if folder is not None:
            raise click.UsageError("--dir can't be given with --admin: admins know where counters are")
        if given.get("resolution") is not None and kind != "aggregate-counter":
            raise click.UsageError("--resolution goes with --kind aggregate-counter")
        remote.group(kind).commands[name].callback(**given)  # type: ignore[misc] # each has one

    return command


command = Group(
    "counter",
    {name: either(here, _there(name)) for name, here in local.command.commands.items()},
    short_help="Show what streams have counted.",
    help="Show the values of the sinks `counter`, `field-value-counter` and `aggregate-counter`: those of a folder, or "
    "with --admin URL the sums over all containers.",
)
