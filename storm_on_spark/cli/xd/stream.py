"""`storm-spark stream`: streams in this process or on Spark, and on the containers of an admin."""

from __future__ import annotations

from storm_on_spark.cli.local import stream as local
from storm_on_spark.cli.shared.groups import Group
from storm_on_spark.cli.xd.lifecycle import commands

command = Group(
    "stream",
    commands={**local.command.commands, **commands("stream")},
    short_help="Run a stream described by one line of text, or deploy it on containers.",
    help='Streams of modules, such as "time --fixedDelay=1 | log". `run` and `validate` work on this machine; all '
    "other commands ask an admin (--admin URL). A definition is one argument, so it needs quotes. `storm-spark module "
    "list` shows the modules.",
)
