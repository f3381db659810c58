"""`storm-spark nimbus`: a Nimbus, until it is told to end."""

from __future__ import annotations

import json as jsonlib
import os
from pathlib import Path

import click

from storm_on_spark.cli import options
from storm_on_spark.cli.cluster.asking import json, told
from storm_on_spark.cli.cluster.daemon import ended_by_signal, log_to_stderr
from storm_on_spark.cli.cluster.needs import need_libraries
from storm_on_spark.spark.conf_text import merged


@click.command("nimbus", short_help="Run a Nimbus.")
@options.configuration
@json
@options.debug
def command(pairs: tuple[str, ...], files: tuple[Path, ...], json: bool, debug: bool) -> None:
    """Run a Nimbus: it takes topologies in, gives them to supervisors, and answers what is asked about them.

    Several of them stand by for each other; ZooKeeper (storm.zookeeper.servers) knows who leads. It ends on Ctrl-C or
    SIGTERM, and no topology is touched by that.
    """
    with told(json, debug):
        need_libraries()
        from storm_on_spark.cluster.nimbus.daemon import Nimbus

        log_to_stderr(debug)
        with ended_by_signal() as ended, Nimbus(merged(files, pairs)) as nimbus:
            if json:
                click.echo(jsonlib.dumps({"nimbus": nimbus.address, "pid": os.getpid()}))
            else:
                click.echo(f"Nimbus {nimbus.address} is up; Ctrl-C ends it.")
            ended.wait()
