"""`storm-spark xd-admin`: an admin of streams that runs until it is stopped."""

from __future__ import annotations

import json as jsonlib
import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

from storm_on_spark.cli.client.asking import json
from storm_on_spark.cli.client.needs import has_pages, need_libraries
from storm_on_spark.cli.daemons.daemon import log_to_stderr, open_option, tell_token
from storm_on_spark.cli.shared import options
from storm_on_spark.cli.shared.echo import echo
from storm_on_spark.cli.shared.errors import reporting_errors
from storm_on_spark.launch.conf_text import merged
from storm_on_spark.runtime.processes.ending.signals import ended_by_signal

if TYPE_CHECKING:
    from storm_on_spark.xd.admin.daemon import Pages

port_option = click.option(
    "--port",
    type=options.PORT,
    default=9393,
    show_default=True,
    help="Port of the REST interface; 0 for any free port.",
)
"""Of an admin."""


@click.command("xd-admin", short_help="Run an admin of streams.")
@port_option
@options.configuration
@open_option
@json
@options.debug
def command(port: int, pairs: tuple[str, ...], files: tuple[Path, ...], is_open: bool, json: bool, debug: bool) -> None:
    """Run an admin: it accepts streams over REST, and assigns their modules to containers.

    Admins elect a leader through ZooKeeper (zk.client.connect); any of them answers requests. An admin ends on Ctrl-C
    or SIGTERM. Streams keep running.
    """
    with reporting_errors(debug, json):
        need_libraries()
        from storm_on_spark.cluster.security.settings import SecuritySettings
        from storm_on_spark.cluster.security.user_token import with_own_token
        from storm_on_spark.xd.admin.daemon import Admin

        log_to_stderr(debug)
        conf = with_own_token(merged(files, pairs), "nimbus", is_open=is_open)
        token_file = SecuritySettings.of(conf).token_file
        with ended_by_signal() as ended, Admin(conf, port, ended, added_pages()) as admin:
            if ended.is_set():
                return  # it was stopped while it waited for ZooKeeper
            if json:
                echo(
                    jsonlib.dumps(
                        {"admin": f"{admin.scheme}://{admin.address}", "token_file": token_file, "pid": os.getpid()}
                    )
                )
            else:
                echo(f"Admin {admin.scheme}://{admin.address} is up; Ctrl-C ends it.")
                tell_token(token_file)
                if has_pages():
                    echo(f"`storm-spark ui --admin {admin.scheme}://{admin.address}` prints a link to its pages.")
            ended.wait()


def added_pages() -> Pages | None:
    """Returns what adds pages to an admin, where the extra `ui` is installed; None elsewhere."""
    if not has_pages():
        return None
    from storm_on_spark.web.admin import StreamPages

    return StreamPages
