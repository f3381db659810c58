"""`storm-spark heartbeats list|get`: the stored heartbeats, shown like Storm's command does."""

from __future__ import annotations

import json as jsonlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from storm_on_spark.cli.client.asking import json
from storm_on_spark.cli.client.needs import need_libraries
from storm_on_spark.cli.shared import options
from storm_on_spark.cli.shared.echo import echo
from storm_on_spark.cli.shared.errors import reporting_errors
from storm_on_spark.cli.shared.groups import Group
from storm_on_spark.launch.conf_text import merged

if TYPE_CHECKING:
    from storm_on_spark.cluster.heartbeats.browser import Browser

_path = click.argument("path", metavar="PATH")


@click.group("heartbeats", cls=Group, short_help="Look at drivers' heartbeats where they are kept.")
def command() -> None:
    """Look at drivers' heartbeats where they are kept: in ZooKeeper, or in all Pacemakers.

    This needs the configuration of a Nimbus of the cluster, because only Nimbuses may read heartbeats. /workerbeats
    contains topologies' ids. With Pacemaker, each of these contains its driver, as SUPERVISOR-PORT.
    """


@command.command("list")
@_path
@options.configuration
@json
@options.debug
def listed(path: str, pairs: tuple[str, ...], files: tuple[Path, ...], json: bool, debug: bool) -> None:
    """List the children of PATH, such as /workerbeats."""
    with reporting_errors(debug, json), _browser(pairs, files) as browser:
        names = browser.names(path)
        if json:
            echo(jsonlib.dumps({"path": path, "names": names}))
            return
        echo(f"{path}:")
        for name in names:
            echo(f"  {name}")


@command.command("get")
@_path
@options.configuration
@json
@options.debug
def got(path: str, pairs: tuple[str, ...], files: tuple[Path, ...], json: bool, debug: bool) -> None:
    """Show the heartbeat at PATH as JSON; if several Pacemakers have one, the newest."""
    with reporting_errors(debug, json), _browser(pairs, files) as browser:
        document: dict[str, Any] = {"path": path, "heartbeat": browser.get(path)}
        if json:
            echo(jsonlib.dumps(document))
        elif document["heartbeat"] is None:
            echo(f"There is no heartbeat at {path}.")
        else:
            echo(jsonlib.dumps(document["heartbeat"], indent=2))


def _browser(pairs: tuple[str, ...], files: tuple[Path, ...]) -> Browser:
    need_libraries()
    from storm_on_spark.api.config import validate_conf
    from storm_on_spark.cluster.heartbeats.browser import browser

    conf = merged(files, pairs)
    validate_conf(conf)
    return browser(conf)
