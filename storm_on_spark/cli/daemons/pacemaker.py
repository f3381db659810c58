"""`storm-spark pacemaker`: a Pacemaker that runs until it is stopped."""

from __future__ import annotations

import json as jsonlib
import os
from pathlib import Path

import click

from storm_on_spark.cli.client.asking import json
from storm_on_spark.cli.client.needs import need_libraries
from storm_on_spark.cli.daemons.daemon import log_to_stderr
from storm_on_spark.cli.shared import options
from storm_on_spark.cli.shared.echo import echo
from storm_on_spark.cli.shared.errors import reporting_errors
from storm_on_spark.launch.conf_text import merged
from storm_on_spark.runtime.processes.ending.signals import ended_by_signal


@click.command("pacemaker", short_help="Run a Pacemaker, which keeps heartbeats in memory.")
@options.configuration
@json
@options.debug
def command(pairs: tuple[str, ...], files: tuple[Path, ...], json: bool, debug: bool) -> None:
    """Run a Pacemaker: it keeps heartbeats in memory, for clients of Storm and of Storm on Spark.

    It ends on Ctrl-C or SIGTERM. Its heartbeats are then lost; clients write them again.
    """
    with reporting_errors(debug, json):
        need_libraries()
        from storm_on_spark.api.config import validate_conf
        from storm_on_spark.cluster.pacemaker.login.identities import LoginSettings
        from storm_on_spark.cluster.pacemaker.server import PacemakerServer
        from storm_on_spark.cluster.security.user_token import with_own_token

        log_to_stderr(debug)
        conf = merged(files, pairs)
        if LoginSettings.of(conf).method != "NONE":
            # Logins of topologies are derived from it.
            conf = with_own_token(conf, "pacemaker")
        validate_conf(conf, "pacemaker")
        with PacemakerServer(conf) as server, ended_by_signal() as ended:
            if json:
                echo(jsonlib.dumps({"address": server.address, "pid": os.getpid()}))
            else:
                echo(f"Pacemaker is up at {server.address}; Ctrl-C ends it.")
            ended.wait()
