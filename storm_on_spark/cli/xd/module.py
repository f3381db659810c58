"""`storm-spark module`: the modules of this machine, or with --admin those of an admin and its containers."""

from __future__ import annotations

from storm_on_spark.cli.local import module as local
from storm_on_spark.cli.shared.groups import Group
from storm_on_spark.cli.xd import modules as remote
from storm_on_spark.cli.xd.asking import either

command = Group(
    "module",
    {name: either(here, remote.command.commands[name]) for name, here in local.command.commands.items()},
    short_help="Show the modules of streams, and add your own.",
    help="Show the modules that streams consist of, compose new ones, and add your own, on this machine, or with "
    "--admin URL on an admin and all of its containers.",
)
