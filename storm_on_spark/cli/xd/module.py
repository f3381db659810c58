"""`storm-spark module`: the modules of this machine, or with --admin those of an admin and its containers."""

from __future__ import annotations

from typing import Any

import click

from storm_on_spark.cli.local import module as local
from storm_on_spark.cli.xd import modules as remote


def _both(here: click.Command, there: click.Command) -> click.Command:
    """Returns a command that asks an admin if --admin is given, and otherwise works on this machine."""
    own = {each.name for each in here.params}

    def callback(**given: Any) -> None:
        if given["admin"] is not None:
            there.callback(**given)  # type: ignore[misc] # each has one
            return
        if given["token_file"] or given["pairs"] or given["files"] or (given["json"] and "json" not in own):
            raise click.UsageError("--token-file, -c and --conf, and --json of delete, go with --admin URL")
        here.callback(**{name: value for name, value in given.items() if name in own})  # type: ignore[misc]

    admin = click.Option(["--admin"], metavar="URL", help="Ask the admin at URL, instead of this machine.")
    more = (each for each in there.params if each.name not in {*own, "admin"})
    params = [*here.params, admin, *more]
    return click.Command(here.name, callback=callback, params=params, help=here.help, short_help=here.short_help)


command = click.Group(
    "module",
    {name: _both(here, remote.command.commands[name]) for name, here in local.command.commands.items()},
    short_help="Show the modules of streams, and add your own.",
    help="Show the modules that streams are made of, compose new ones, and add your own: those of this machine, or "
    "with --admin URL those of an admin and all of its containers.",
)
