"""Shared code of commands that run until they are stopped."""

from __future__ import annotations

import logging

import click

from storm_on_spark.cli.shared.echo import echo

open_option = click.option(
    "--open",
    "is_open",
    is_flag=True,
    help="Require no token; every user of this host can then run code as you. Without this option and without "
    "nimbus.auth.token.file, the daemon creates a token that your own commands find.",
)


def log_to_stderr(debug: bool, least: int = logging.INFO) -> None:
    """Sends a daemon's log to standard error.

    Args:
        debug: log everything.
        least: otherwise, the lowest level to log.
    """
    from storm_on_spark.cluster.security.logs import log_safely

    log_safely("%(asctime)s %(levelname)s %(name)s: %(message)s", logging.INFO if debug else least)
    logging.getLogger("storm_on_spark").setLevel(logging.DEBUG if debug else least)
    logging.getLogger("storm_on_spark.cluster.zookeeper.kazoo").setLevel(logging.INFO if debug else least)
    for name in ("httpx", "kazoo", "py4j"):
        logging.getLogger(name).setLevel(logging.WARNING)


def tell_token(file: str | None) -> None:
    """Prints where the token is, if there is one: for `curl`, or for a client of another user."""
    if file is not None:
        echo(f"Its token is in {file}")
