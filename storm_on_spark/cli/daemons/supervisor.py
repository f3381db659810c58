"""`storm-spark supervisor`: a supervisor that runs until it is stopped."""

from __future__ import annotations

import json as jsonlib
import os
from pathlib import Path

import click

from storm_on_spark.cli.client.asking import json
from storm_on_spark.cli.client.needs import need_libraries
from storm_on_spark.cli.daemons.daemon import log_to_stderr, open_option
from storm_on_spark.cli.shared import options
from storm_on_spark.cli.shared.echo import echo
from storm_on_spark.cli.shared.errors import reporting_errors
from storm_on_spark.launch.conf_text import merged
from storm_on_spark.runtime.processes.ending.signals import ended_by_signal


@click.command("supervisor", short_help="Run a supervisor.")
@options.configuration
@click.option("--stop-drivers", is_flag=True, help="Also end its drivers when it ends.")
@open_option
@json
@options.debug
def command(
    pairs: tuple[str, ...], files: tuple[Path, ...], stop_drivers: bool, is_open: bool, json: bool, debug: bool
) -> None:
    """Run a supervisor: it runs a driver for each topology that is assigned to it, at most one per slot.

    It ends on Ctrl-C or SIGTERM. As in Storm, its drivers keep running, and the next supervisor with the same
    storm.local.dir finds them.
    """
    with reporting_errors(debug, json):
        need_libraries()
        from storm_on_spark.api.config import validate_conf
        from storm_on_spark.cluster.daemons.supervisor import Supervisor
        from storm_on_spark.cluster.security.user_token import with_own_token

        log_to_stderr(debug)
        conf = with_own_token(merged(files, pairs), "supervisor", is_open=is_open)
        validate_conf(conf, "supervisor")
        supervisor = Supervisor(conf)
        supervisor.start()
        try:
            with ended_by_signal() as ended:
                said = {"supervisor": supervisor.supervisor_id, "host": supervisor.host, "slots": supervisor.ports}
                if json:
                    echo(jsonlib.dumps({**said, "pid": os.getpid()}))
                else:
                    slots = ", ".join(map(str, supervisor.ports)) or "none"
                    echo(f"Supervisor {supervisor.supervisor_id} is up, slots: {slots}; Ctrl-C ends it.")
                ended.wait()
        finally:
            supervisor.stop(drivers=stop_drivers)
