"""`storm-spark validate`: checks a topology and its configuration without running anything."""

from __future__ import annotations

import json as jsonlib
import sys
from pathlib import Path

import click

from storm_on_spark.api.errors import StormError
from storm_on_spark.cli.shared import options
from storm_on_spark.cli.shared.echo import echo
from storm_on_spark.cli.shared.errors import exit_code, reporting_errors
from storm_on_spark.launch.loader import load


@click.command("validate")
@options.target
@options.name_or_n
@options.configuration
@click.option("--json", is_flag=True, help="Print one JSON document.")
@options.debug
def command(
    target: str | None,
    name: str | None,
    pairs: tuple[str, ...],
    files: tuple[Path, ...],
    json: bool,
    debug: bool,
) -> None:
    """Check a topology and its configuration. Exit code 2 and one sentence each if something is wrong."""
    from storm_on_spark.spark.compiled import compile_topology

    with reporting_errors(debug):
        try:
            loaded = load(options.target_of(target, name))
            conf = options.conf_of(loaded, files, pairs)
            topology = loaded.topology(conf)
            compiled = compile_topology(topology, conf)
            compiled.check()
        except StormError as error:
            if json:
                echo(jsonlib.dumps({"valid": False, "problems": str(error).splitlines(), "warnings": []}))
                sys.exit(exit_code(error))
            raise
        warnings = [compiled.warning] if compiled.warning else []
        counts = {"spouts": len(topology.spouts), "bolts": len(topology.bolts)}
        if json:
            echo(jsonlib.dumps({"valid": True, "problems": [], "warnings": warnings, **counts}))
        else:
            parts = (f"{count} {name[:-1] if count == 1 else name}" for name, count in counts.items())
            echo(f"{loaded.where} is valid: {', '.join(parts)}")
            for warning in warnings:
                echo(warning, err=True)
