"""`storm-spark explain`: what a topology compiles to."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import click

from storm_on_spark.cli.shared import options
from storm_on_spark.cli.shared.echo import echo
from storm_on_spark.cli.shared.errors import reporting_errors
from storm_on_spark.cli.shared.terminal import width
from storm_on_spark.launch.conf_text import spark_conf
from storm_on_spark.launch.loader import load
from storm_on_spark.launch.settings import CheckpointSettings
from storm_on_spark.plan.settings import TaskSettings


@click.command("explain", short_help="Show what a topology compiles to.")
@options.target
@options.name_or_n
@options.configuration
@click.option("--json", "form", flag_value="json", help="As a JSON document.")
@click.option("--mermaid", "form", flag_value="mermaid", help="As a Mermaid diagram.")
@click.option("--spark", "form", flag_value="spark", help="As Spark's own plan; starts Spark.")
@options.master
@options.debug
def command(
    target: str | None,
    name: str | None,
    pairs: tuple[str, ...],
    files: tuple[Path, ...],
    form: str | None,
    master: str | None,
    debug: bool,
) -> None:
    """Show which parts of a topology run where in Spark and why, and how each grouping is executed.

    This is what `run` would start with the same configuration and master, with the same number of partitions.
    """
    from storm_on_spark.spark.compiled import ExplainFormat, compile_topology
    from storm_on_spark.spark.session import cores, expected_parallelism, local_session, stop_session

    with reporting_errors(debug, form == "json"):
        loaded = load(options.target_of(target, name))
        conf = options.conf_of(loaded, files, pairs)
        compiled = compile_topology(loaded.topology(conf), conf)
        checkpoint = CheckpointSettings.of(conf).folder
        if form != "spark":
            kind: ExplainFormat = "json" if form == "json" else "mermaid" if form == "mermaid" else "text"
            if (
                TaskSettings.of(compiled.graph.conf).partitions is None
                and expected_parallelism(master, spark_conf(conf)) is None
            ):
                echo(
                    f"The number of cores of {master} is known once Spark has started; this is the plan for {cores()}. "
                    "-c topology.partitions=N shows it for N.",
                    err=True,
                )
            # A terminal has a width; a pipe has none unless COLUMNS is set.
            narrow = sys.stdout.isatty() or "COLUMNS" in os.environ
            text = compiled.explain(kind, width=width() if narrow else None, master=master, checkpoint=checkpoint)
            echo(text)
            return
        spark = local_session(master, compiled.session_conf(), checkpoint)
        try:
            echo(compiled.explain("spark", spark, checkpoint=checkpoint))
        finally:
            stop_session(spark)
