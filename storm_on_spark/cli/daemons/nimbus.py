"""`storm-spark nimbus`: a Nimbus that runs until it is stopped."""

from __future__ import annotations

import gc
import json as jsonlib
import os
from pathlib import Path

import click

from storm_on_spark.cli.client.asking import json
from storm_on_spark.cli.client.needs import has_pages, need_libraries
from storm_on_spark.cli.daemons.daemon import log_to_stderr, open_option, tell_token
from storm_on_spark.cli.shared import options
from storm_on_spark.cli.shared.echo import echo
from storm_on_spark.cli.shared.errors import reporting_errors
from storm_on_spark.launch.conf_text import merged
from storm_on_spark.runtime.processes.ending.signals import ended_by_signal


@click.command("nimbus", short_help="Run a Nimbus.")
@options.configuration
@open_option
@json
@options.debug
def command(pairs: tuple[str, ...], files: tuple[Path, ...], is_open: bool, json: bool, debug: bool) -> None:
    """Run a Nimbus: it accepts topologies, assigns them to supervisors, and answers questions about them.

    Nimbuses elect a leader through ZooKeeper (storm.zookeeper.servers); the others stand by. A Nimbus ends on Ctrl-C
    or SIGTERM. Topologies keep running.
    """
    with reporting_errors(debug, json):
        need_libraries()
        from storm_on_spark.cluster.daemons.nimbus import Nimbus
        from storm_on_spark.cluster.security.settings import SecuritySettings
        from storm_on_spark.cluster.security.user_token import with_own_token

        log_to_stderr(debug)
        conf = with_own_token(merged(files, pairs), "nimbus", is_open=is_open)
        token_file = SecuritySettings.of(conf).token_file
        pages = None
        if has_pages():
            from storm_on_spark.web.nimbus import NimbusPages

            pages = NimbusPages
        with Nimbus(conf, pages=pages) as nimbus, ended_by_signal() as ended:
            if json:
                echo(jsonlib.dumps({"nimbus": nimbus.address, "token_file": token_file, "pid": os.getpid()}))
            else:
                echo(f"Nimbus {nimbus.address} is up; Ctrl-C ends it.")
                tell_token(token_file)
                if pages is not None:
                    echo("`storm-spark ui` prints a link to its pages.")
            # Collections pass over what is there for good. Else they stop all threads for 0.3 s with 200 topologies.
            gc.collect()
            gc.freeze()
            ended.wait()
