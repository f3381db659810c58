"""The group of commands."""

from __future__ import annotations

import click

from storm_on_spark import __version__
from storm_on_spark.cli import config, explain, new, run, validate


@click.group(
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Exit codes: 0 done; 1 the topology failed; 2 bad usage or an invalid topology; 130 stopped at once.",
)
@click.version_option(__version__, prog_name="storm-spark")
def main() -> None:
    """Storm topologies in Python, run by Spark Structured Streaming."""


for module in (run, explain, validate, config, new):
    main.add_command(module.command)
