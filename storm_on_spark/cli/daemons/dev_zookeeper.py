"""`storm-spark dev-zookeeper`: a ZooKeeper for development."""

from __future__ import annotations

import errno
import json as jsonlib
import socket
from pathlib import Path

import click

from storm_on_spark.cli.client.asking import json
from storm_on_spark.cli.client.needs import need_libraries
from storm_on_spark.cli.shared import options
from storm_on_spark.cli.shared.echo import echo
from storm_on_spark.cli.shared.errors import reporting_errors
from storm_on_spark.runtime.processes.ending.signals import ended_by_signal

_LOOK_SECS = 0.2


@click.command("dev-zookeeper", short_help="Run a ZooKeeper for development.")
@options.server_port(2181)
@options.data_folder
@json
@options.debug
def command(port: int, folder: Path | None, json: bool, debug: bool) -> None:
    """Run one ZooKeeper server from pyspark's jars until Ctrl-C.

    This is for development: it is a single server, and everybody on this host may read and write it.
    """
    with reporting_errors(debug, json):
        need_libraries()
        from storm_on_spark.api.errors import SetupError
        from storm_on_spark.cluster.zookeeper.server import ZooKeeperServer

        if port:
            check_port(port)
        with ZooKeeperServer(None if folder is None else folder.absolute(), port) as server, ended_by_signal() as ended:
            if json:
                echo(jsonlib.dumps({"zookeeper": server.connect_string, "pid": server.pid}))
            else:
                where = "temporary" if folder is None else f"in {folder}"
                echo(f"ZooKeeper is up on {server.connect_string}, data {where}; Ctrl-C ends it.")
            tell_open()
            while not ended.wait(_LOOK_SECS):
                if server.pid is None:
                    raise SetupError(f"ZooKeeper has ended; its log was {server.log_file}")


def tell_open() -> None:
    """Warns on standard error that a server for development has no authentication."""
    echo("Every user of this host may read and write it.", err=True)


def check_port(port: int) -> None:
    """Checks a port first, because a server's own error would be a page of log.

    Raises:
        SetupError: this process can't listen on the port.
    """
    from storm_on_spark.api.errors import SetupError

    try:
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(("127.0.0.1", port))
            probe.listen()
    except OSError as error:
        reason = (
            "is in use by another process" if error.errno == errno.EADDRINUSE else f"can't be used: {error.strerror}"
        )
        raise SetupError(
            f"port {port} of this host {reason}; --port names another, and --port 0 any free one"
        ) from error
