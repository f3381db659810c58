"""`storm-spark drpc`: a DRPC server that runs until it is stopped."""

from __future__ import annotations

import json as jsonlib
import os
from pathlib import Path

import click

from storm_on_spark.cli.client.asking import json
from storm_on_spark.cli.client.needs import need_libraries
from storm_on_spark.cli.daemons.daemon import log_to_stderr, open_option, tell_token
from storm_on_spark.cli.shared import options
from storm_on_spark.cli.shared.echo import echo
from storm_on_spark.cli.shared.errors import reporting_errors
from storm_on_spark.launch.conf_text import merged
from storm_on_spark.runtime.processes.ending.signals import ended_by_signal


@click.command("drpc", short_help="Run a DRPC server, which hands requests to topologies.")
@options.configuration
@open_option
@json
@options.debug
def command(pairs: tuple[str, ...], files: tuple[Path, ...], is_open: bool, json: bool, debug: bool) -> None:
    """Run a DRPC server: it takes requests over Thrift and HTTP, and answers with what topologies return.

    It needs no ZooKeeper. It ends on Ctrl-C or SIGTERM; requests that wait are then answered with SERVER_SHUTDOWN.
    """
    with reporting_errors(debug, json):
        need_libraries()
        from storm_on_spark.cluster.drpc.server import DRPCServer
        from storm_on_spark.cluster.security.settings import SecuritySettings
        from storm_on_spark.cluster.security.user_token import with_own_token

        log_to_stderr(debug)
        conf = with_own_token(merged(files, pairs), "drpc", is_open=is_open)
        token_file = SecuritySettings.of(conf).token_file
        with DRPCServer(conf) as server, ended_by_signal() as ended:
            if json:
                addresses = {"thrift": str(server.calls), "invocations": str(server.invocations), "http": server.url}
                echo(jsonlib.dumps({**addresses, "token_file": token_file, "pid": os.getpid()}))
            else:
                echo(
                    f"DRPC server is up: {server.url}/drpc/FUNCTION, Thrift {server.calls}, for topologies "
                    f"{server.invocations}; Ctrl-C ends it."
                )
                tell_token(token_file)
            ended.wait()
