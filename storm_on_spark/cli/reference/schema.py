"""`storm-spark schema`: the JSON Schema of the commands' output with `--json`."""

from __future__ import annotations

import json
from importlib.resources import files
from typing import Any

import click

from storm_on_spark.cli.shared import options
from storm_on_spark.cli.shared.echo import echo
from storm_on_spark.cli.shared.errors import reporting_errors
from storm_on_spark.launch.loader import LoadError


@click.command("schema", short_help="Show the JSON Schema of --json output.")
@click.argument("name", metavar="[COMMAND]", required=False)
@options.debug
def command(name: str | None, debug: bool) -> None:
    """Show the JSON Schema of the output of COMMAND with --json; without COMMAND, of all commands."""
    with reporting_errors(debug):
        echo(json.dumps(schema() if name is None else schema_of(name), indent=1))


def schema() -> dict[str, Any]:
    """Returns the schemas of all commands in `commands`, and their shared definitions in `$defs`."""
    found: dict[str, Any] = json.loads((files("storm_on_spark.cli") / "output.schema.json").read_text("utf-8"))
    return found


def schema_of(name: str) -> dict[str, Any]:
    """Returns the schema of one command's documents.

    Raises:
        LoadError: there is no such command, or it prints no document.
    """
    found = schema()
    commands = found.pop("commands")
    if name not in commands:
        raise LoadError(f"no command {name[:80]!r} prints JSON; those that do: {', '.join(commands)}")
    return {**found, "title": f"What storm-spark {name} prints with --json", **commands[name]}
