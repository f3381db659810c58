"""`storm-spark xd-shell`: a shell for streams, like Spring XD's."""

from __future__ import annotations

import contextlib
import importlib.util
import sys
from pathlib import Path

import click

from storm_on_spark.api.errors import SetupError
from storm_on_spark.api.text.extras import needs_extra
from storm_on_spark.cli.client import asking as cluster
from storm_on_spark.cli.shared import options
from storm_on_spark.cli.shared.echo import echo
from storm_on_spark.cli.shared.errors import reporting_errors


@click.command("xd-shell", short_help="Start a shell for the streams of an admin.")
@click.option("--admin", metavar="URL", help="The admin; by default http://localhost:9393.")
@cluster.token_file
@click.option(
    "--cmdfile",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Execute the lines of FILE until one fails, then end.",
)
@options.configuration
@options.debug
def command(
    admin: str | None,
    token_file: Path | None,
    cmdfile: Path | None,
    pairs: tuple[str, ...],
    files: tuple[Path, ...],
    debug: bool,
) -> None:
    """Create, deploy and watch streams with commands, TAB completion and a history.

    Without a terminal it executes the lines of standard input as they arrive. The exit code is that of the first line
    that failed.
    """
    with reporting_errors(debug):
        from storm_on_spark.cli.xd.asking import connected
        from storm_on_spark.cli.xd.shell.commands import Shell

        client = connected(admin, token_file, pairs, files)
        with contextlib.closing(Shell(client, client.conf)) as shell:
            if cmdfile is not None:
                sys.exit(shell.script(cmdfile))
            if not sys.stdin.isatty():
                sys.exit(shell.lines(sys.stdin, "standard input"))
            if importlib.util.find_spec("prompt_toolkit") is None:
                raise SetupError(needs_extra("the shell", "shell", "prompt-toolkit"))
            from storm_on_spark.cli.xd.shell.terminal import read_lines
            from storm_on_spark.xd.modules.declaration import home

            echo(shell.banner())
            if not (reached := shell.reach()).startswith("Successfully"):
                echo(reached, err=True)
            read_lines(shell, home() / "shell-history")
