"""`storm-spark stream`: streams described by one line of text."""

from __future__ import annotations

import json as jsonlib
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from storm_on_spark.api.errors import StormError
from storm_on_spark.cli.local.request import Request
from storm_on_spark.cli.shared import options
from storm_on_spark.cli.shared.echo import echo
from storm_on_spark.cli.shared.errors import exit_code, reporting_errors
from storm_on_spark.cli.shared.groups import Group

if TYPE_CHECKING:
    from storm_on_spark.xd.modules.messages.dead_letters import DeadLetters

_definition = click.argument("definition", metavar="DEFINITION")


@click.group("stream", cls=Group, short_help="Run a stream described by one line of text.")
def command() -> None:
    """Run or check a stream of modules, such as "time --fixedDelay=1 | log".

    The definition is one argument, so it needs quotes. `storm-spark module list` shows the modules.
    """


@command.command("run")
@_definition
@options.configuration
@options.master
@click.option("--checkpoint", metavar="DIR", help="Keep state in DIR, and continue from it.")
@click.option("--reset-checkpoint", is_flag=True, help="First remove the state in the checkpoint.")
@options.name
@click.option("-t", "--seconds", type=options.POSITIVE_SECONDS, help="Drain and end after this many seconds.")
@click.option("--in-process", is_flag=True, help="Run in this process, without Spark.")
@click.option("--dead-letters", metavar="DIR", help="Write messages that failed too often to files in DIR.")
@click.option("--attempts", type=click.IntRange(1), help="The number of times that a message may fail; 3 by default.")
@click.option("--json", is_flag=True, help="Print one JSON document on standard output.")
@click.option("--quiet", is_flag=True, help="Show no progress and no summary.")
@options.debug
def run(definition: str, in_process: bool, dead_letters: str | None, attempts: int | None, **given: Any) -> None:
    """Run a stream as one topology, until its source ends, it fails, or Ctrl-C.

    The first message that a module can't process ends the run. With --dead-letters such a message is retried with
    growing delays, and then written to DIR.
    """
    from storm_on_spark.cli.local.run import run as running
    from storm_on_spark.spark.session.answer import answer_only
    from storm_on_spark.xd.fused import load_stream

    if attempts is not None and dead_letters is None:
        raise click.UsageError("--attempts goes with --dead-letters")
    with reporting_errors(given["debug"], given["json"]):
        target = load_stream(definition, dead_letters=_dead_letters(dead_letters, attempts))
    request = Request(definition, loaded=target, debugger=in_process, **given)
    if in_process:
        if request.json:
            raise click.UsageError("--json can't be given with --in-process: it is for a run on Spark")
        from storm_on_spark.cli.local.debugger import run_under_debugger

        sys.exit(run_under_debugger(request))
    with answer_only(request.json) as answer:
        code = running(request, answer)
    sys.exit(code)


def _dead_letters(folder: str | None, attempts: int | None) -> DeadLetters | None:
    from storm_on_spark.xd.modules.messages.dead_letters import DeadLetters

    if folder is None:
        return None
    return DeadLetters(folder) if attempts is None else DeadLetters(folder, attempts)


@command.command("validate")
@_definition
@options.name
@options.configuration
@click.option("--json", is_flag=True, help="Print one JSON document.")
@options.debug
def validate(
    definition: str, name: str | None, pairs: tuple[str, ...], files: tuple[Path, ...], json: bool, debug: bool
) -> None:
    """Check a stream. Exit code 2 and a message with code and caret if something is wrong."""
    from storm_on_spark.spark.compiled import compile_topology
    from storm_on_spark.xd.fused import load_stream

    with reporting_errors(debug):
        try:
            target = load_stream(definition, name)
            conf = options.conf_of(target, files, pairs)
            topology = target.topology(conf)
            compile_topology(topology, conf).check()
        except StormError as error:
            if json:
                echo(jsonlib.dumps({"valid": False, "problems": [str(error)], "warnings": []}))
                sys.exit(exit_code(error))
            raise
        if json:
            counts = {"spouts": len(topology.spouts), "bolts": len(topology.bolts)}
            echo(jsonlib.dumps({"valid": True, "problems": [], "warnings": [], **counts}))
        else:
            echo(f"{target.name} is valid: {' | '.join(module.label for module in target.stream.modules)}")
