"""`storm-spark xd-container`: a container of modules that runs until it is stopped."""

from __future__ import annotations

import json as jsonlib
import os
import re
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

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,254}")
_LONGEST = 1_000


@click.command("xd-container", short_help="Run a container of modules of streams.")
@click.option("--groups", metavar="A,B", default="", help="Its groups, for criteria of deployments.")
@click.option("--attributes", metavar="A=1,B=2", default="", help="Its attributes, for criteria of deployments.")
@options.configuration
@open_option
@json
@options.debug
def command(
    groups: str,
    attributes: str,
    pairs: tuple[str, ...],
    files: tuple[Path, ...],
    is_open: bool,
    json: bool,
    debug: bool,
) -> None:
    """Run a container: it runs the modules that the leading admin assigns to it.

    Containers share the folder that STORM_SPARK_XD_HOME names. A container ends on Ctrl-C or SIGTERM; other containers
    take over its modules.
    """
    with reporting_errors(debug, json):
        need_libraries()
        from storm_on_spark.cluster.security.user_token import with_own_token
        from storm_on_spark.xd.container.daemon import Container

        names, values = groups_of(groups), attributes_of(attributes)
        log_to_stderr(debug)
        # An admin with this configuration has the same token.
        conf = with_own_token(merged(files, pairs), "nimbus", is_open=is_open)
        with ended_by_signal() as ended, Container(conf, names, values, ended=ended) as container:
            if ended.is_set():
                return  # it was stopped while it waited for ZooKeeper
            if json:
                echo(jsonlib.dumps({"container": container.container_id, "pid": os.getpid()}))
            else:
                echo(f"Container {container.container_id} is up; Ctrl-C ends it.")
            ended.wait()


def groups_of(text: str) -> tuple[str, ...]:
    """Returns names that commas separate.

    Raises:
        click.BadParameter: one is not a valid name.
    """
    names = tuple(part.strip() for part in text.split(",") if part.strip())
    for name in names:
        if not _NAME.fullmatch(name):
            raise click.BadParameter(f"{name!r:.100} is no name", param_hint="--groups")
    return names


def attributes_of(text: str) -> dict[str, str]:
    """Returns the values of `name=value` that commas separate.

    Raises:
        click.BadParameter: a part is something else.
    """
    found: dict[str, str] = {}
    for part in (part.strip() for part in text.split(",") if part.strip()):
        name, equals, value = part.partition("=")
        if not equals or not _NAME.fullmatch(name) or name in found or len(value) > _LONGEST:
            raise click.BadParameter(
                f"{part!r:.100} is not NAME=VALUE with a name that is not given yet", param_hint="--attributes"
            )
        found[name] = value
    return found
