"""`storm-spark xd-singlenode`: ZooKeeper, an admin and a container of streams in one process."""

from __future__ import annotations

import contextlib
import json as jsonlib
import logging
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from storm_on_spark.api.config import Config
from storm_on_spark.cli.client.asking import json
from storm_on_spark.cli.client.needs import has_pages, need_libraries
from storm_on_spark.cli.daemons.daemon import log_to_stderr, open_option, tell_token
from storm_on_spark.cli.daemons.dev_zookeeper import check_port
from storm_on_spark.cli.daemons.xd_admin import added_pages, port_option
from storm_on_spark.cli.shared import options
from storm_on_spark.cli.shared.echo import echo
from storm_on_spark.cli.shared.errors import reporting_errors
from storm_on_spark.launch.conf_text import merged
from storm_on_spark.runtime.processes.ending.at_once import temporary_folder
from storm_on_spark.runtime.processes.ending.signals import ended_by_signal

if TYPE_CHECKING:
    import threading

_LOOK_SECS = 0.2
_LOGIN = "login"
"""File with the password, in the folder of ZooKeeper."""


@click.command("xd-singlenode", short_help="Run ZooKeeper, an admin and a container in one process.")
@port_option
@click.option(
    "--dir",
    "folder",
    metavar="DIR",
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder for ZooKeeper's data and for messages. By default both are temporary.",
)
@options.configuration
@open_option
@json
@options.debug
def command(
    port: int,
    folder: Path | None,
    pairs: tuple[str, ...],
    files: tuple[Path, ...],
    is_open: bool,
    json: bool,
    debug: bool,
) -> None:
    """Run streams on this machine: an embedded ZooKeeper, an admin and a container. It ends on Ctrl-C or SIGTERM.

    zk.embedded.server.port is the port of ZooKeeper; by default it is any free port. With zk.client.connect, that
    ZooKeeper is used instead.
    """
    with reporting_errors(debug, json):
        need_libraries()
        from storm_on_spark.cluster.security.settings import SecuritySettings
        from storm_on_spark.cluster.security.user_token import with_own_token
        from storm_on_spark.cluster.zookeeper.settings import ZooKeeperSettings
        from storm_on_spark.xd.client import AdminClient
        from storm_on_spark.xd.tree.session import XdSettings

        # Messages below a warning would hide what the streams log.
        log_to_stderr(debug, logging.WARNING)
        conf = with_own_token(merged(files, pairs), "nimbus", is_open=is_open)
        keys = XdSettings.of(conf)
        with ended_by_signal() as ended, contextlib.ExitStack() as stack:
            place = (
                folder.absolute() if folder is not None else stack.enter_context(temporary_folder("storm-spark-xd-"))
            )
            connect = keys.connect
            if connect is None:
                if keys.embedded_port is not None:
                    check_port(keys.embedded_port)
                guarded = not is_open or (place / "zookeeper" / _LOGIN).exists()
                if guarded and ZooKeeperSettings.from_conf(conf).auth_scheme is None:
                    conf |= _login(place / "zookeeper")
                connect = _zookeeper(stack, place, keys.embedded_port or 0, ended)
            zookeeper = connect.replace("127.0.0.1", "localhost")
            if not json:
                echo(f"Zookeeper at: {zookeeper}")
            admin = _nodes(stack, {**conf, Config.ZK_CLIENT_CONNECT: connect}, port, place, ended)
            token_file = SecuritySettings.of(conf).token_file
            if json:
                echo(
                    jsonlib.dumps(
                        {"zookeeper": zookeeper, "admin": admin, "token_file": token_file, "pid": os.getpid()}
                    )
                )
            else:
                echo(f"Admin {admin} is up; Ctrl-C ends it.")
                tell_token(token_file)
                if has_pages():
                    with AdminClient(admin, conf) as client:
                        echo(f"Pages: {client.ui_link()}, for one browser.")
                    echo(f"`storm-spark ui --admin {admin}` prints further links.")
            ended.wait()


def _login(folder: Path) -> dict[str, Any]:
    """Returns the login for ZooKeeper's nodes; its password stays with the data."""
    from storm_on_spark.cluster.security.tokens import read_tokens
    from storm_on_spark.cluster.security.user_token import kept_secret

    [password] = read_tokens(kept_secret(folder / _LOGIN))
    return {
        Config.STORM_ZOOKEEPER_AUTH_SCHEME: "digest",
        Config.STORM_ZOOKEEPER_AUTH_PAYLOAD: f"storm:{password}",
    }


def _zookeeper(stack: contextlib.ExitStack, place: Path, port: int, ended: threading.Event) -> str:
    """Starts ZooKeeper; returns `host:port`."""
    import threading

    from storm_on_spark.cluster.zookeeper.server import ZooKeeperServer

    server = stack.enter_context(ZooKeeperServer(place / "zookeeper", port))

    def watch() -> None:
        while not ended.wait(_LOOK_SECS):
            if server.pid is None:
                echo(f"ZooKeeper has ended; its log was {server.log_file}", err=True)
                ended.set()

    threading.Thread(target=watch, name="zookeeper-watch", daemon=True).start()
    return server.connect_string


def _nodes(stack: contextlib.ExitStack, conf: dict[str, Any], port: int, place: Path, ended: threading.Event) -> str:
    """Starts an admin and a container; returns the URL of the admin."""
    from storm_on_spark.xd.admin.daemon import Admin
    from storm_on_spark.xd.container.daemon import Container

    admin = stack.enter_context(Admin(conf, port, ended, added_pages()))
    stack.enter_context(Container(conf, bus=place / "bus", ended=ended))
    return f"{admin.scheme}://{admin.address}"
