"""`storm-spark explain`: what a topology compiles to."""

from __future__ import annotations

from pathlib import Path

import click

from storm_on_spark.cli import options
from storm_on_spark.cli.errors import told
from storm_on_spark.spark.conf_text import spark_conf
from storm_on_spark.spark.loader import load


@click.command("explain", short_help="Show what a topology compiles to.")
@options.target
@options.configuration
@click.option("--json", "form", flag_value="json", help="As a JSON document.")
@click.option("--mermaid", "form", flag_value="mermaid", help="As a Mermaid diagram.")
@click.option("--spark", "form", flag_value="spark", help="As Spark's own plan; starts Spark.")
@options.master
@options.debug
def command(
    target: str,
    pairs: tuple[str, ...],
    files: tuple[Path, ...],
    form: str | None,
    master: str | None,
    debug: bool,
) -> None:
    """Show the stages of a topology, what is in each and why, and what each grouping became."""
    from storm_on_spark.spark.compiled import compile_topology

    with told(debug):
        loaded = load(target)
        conf = options.conf_of(loaded, files, pairs)
        compiled = compile_topology(loaded.topology(conf), conf)
        if form != "spark":
            click.echo(compiled.explain("json" if form == "json" else "mermaid" if form == "mermaid" else "text"))
            return
        from storm_on_spark.spark.session import local_session, stop_session

        spark = local_session(master, spark_conf(conf))
        try:
            click.echo(compiled.explain("spark", spark))
        finally:
            stop_session(spark)
