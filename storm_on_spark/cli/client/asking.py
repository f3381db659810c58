"""Shared code of the commands that ask a cluster: options, answers and errors."""

from __future__ import annotations

import contextlib
import json as jsonlib
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from storm_on_spark.api.config import validate_conf
from storm_on_spark.cli.client.needs import need_libraries
from storm_on_spark.cli.shared import options
from storm_on_spark.cli.shared.echo import echo
from storm_on_spark.cli.shared.errors import reporting_errors
from storm_on_spark.launch.conf_text import merged

if TYPE_CHECKING:
    from rich.console import Console

    from storm_on_spark.cluster.client.nimbus_client import NimbusClient

_Function = TypeVar("_Function", bound=Callable[..., Any])

name = click.argument("name", metavar="NAME")
json = click.option("--json", is_flag=True, help="Print one JSON document.")
token_file = click.option(
    "--token-file",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="File with the cluster's token; nimbus.auth.token.file in the configuration.",
)


def cluster_options(function: _Function) -> _Function:
    """Adds the options that `asked` needs."""
    for option in (
        options.debug,
        json,
        token_file,
        click.option(
            "--nimbus",
            "nimbuses",
            metavar="HOST:PORT",
            multiple=True,
            help="A Nimbus of the cluster. May be repeated. Default: nimbus.seeds of the configuration, or the "
            "`storm-spark dev` that runs on this host.",
        ),
        options.configuration,
    ):
        function = option(function)
    return function


@dataclass
class Given:
    """The cluster's settings on the command line."""

    conf: dict[str, Any]
    nimbuses: tuple[str, ...] = ()
    token_file: Path | None = None
    json: bool = False
    debug: bool = False
    files: tuple[Path, ...] = ()
    pairs: tuple[str, ...] = ()

    @contextlib.contextmanager
    def client(self) -> Iterator[NimbusClient]:
        """Yields a client of the cluster."""
        from storm_on_spark.cli.client.which_cluster import connect, find_cluster

        with connect(find_cluster(self.conf, self.nimbuses, self.token_file)) as client:
            yield client

    def answer(self, document: Any, show: Callable[[Console], None] | str) -> None:
        """Prints the answer: `document` as JSON, or as `show` prints it."""
        if self.json:
            echo(jsonlib.dumps(document, default=str))
        elif isinstance(show, str):
            echo(show)
        else:
            from storm_on_spark.cli.shared.terminal import console

            show(console(sys.stdout))


@contextlib.contextmanager
def asked(
    pairs: tuple[str, ...],
    files: tuple[Path, ...],
    nimbuses: tuple[str, ...],
    token_file: Path | None,
    json: bool,
    debug: bool,
) -> Iterator[Given]:
    """Yields the command line's settings; an error inside the block ends the command.

    With `--json`, standard output gets a document even then.
    """
    with reporting_errors(debug, json):
        need_libraries()
        conf = merged(files, pairs)
        validate_conf(conf)
        yield Given(conf, nimbuses, token_file, json, debug, files, pairs)


def warn_if_stale(page: dict[str, Any]) -> None:
    """Warns on standard error if the answer may be out of date or lacks heartbeats."""
    if page.get("stale"):
        when = since(page.get("staleSince"))
        echo(f"ZooKeeper is out of reach{when}: this is what was known before.", err=True)
    if page.get("heartbeatsUnknownSince") is not None:
        when = since(page["heartbeatsUnknownSince"])
        echo(
            f"Heartbeats are unknown{when}: {page['heartbeatsUnknown']}. Topologies run on; their counters are old.",
            err=True,
        )


def since(moment: float | None) -> str:
    """Returns ` since 12:34:56` in local time; empty if it is unknown."""
    return "" if moment is None else f" since {datetime.fromtimestamp(moment).astimezone():%H:%M:%S}"
