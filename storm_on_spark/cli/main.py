"""The group of commands."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Final

import click

from storm_on_spark import __version__

_SECTIONS: Final[Mapping[str, Mapping[str, str]]] = {
    "Here": {
        "run": "run",
        "explain": "explain",
        "validate": "validate",
        "config": "config",
        "new": "new",
    },
    "On a cluster": {
        "submit": "cluster.submit",
        "list": "cluster.list",
        "status": "cluster.status",
        "logs": "cluster.logs",
        "errors": "cluster.errors",
        "activate": "cluster.activate",
        "deactivate": "cluster.deactivate",
        "rebalance": "cluster.rebalance",
        "kill": "cluster.kill",
        "cluster": "cluster.cluster",
        "nimbuses": "cluster.nimbuses",
    },
    "A cluster's daemons": {
        "dev": "dev.dev",
        "nimbus": "cluster.nimbus",
        "supervisor": "cluster.supervisor",
        "dev-zookeeper": "cluster.dev_zookeeper",
    },
}
"""Command -> its module below `storm_on_spark.cli`, by what it is for."""


class _Commands(click.Group):
    """Imports a command's module when it is called, and all of them for the help."""

    def list_commands(self, context: click.Context) -> list[str]:
        return [name for section in _SECTIONS.values() for name in section]

    def get_command(self, context: click.Context, name: str) -> click.Command | None:
        for section in _SECTIONS.values():
            if name in section:
                found = importlib.import_module(f"storm_on_spark.cli.{section[name]}").command
                assert isinstance(found, click.Command)
                return found
        return None

    def format_commands(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        width = max(map(len, self.list_commands(context)))
        for title, section in _SECTIONS.items():
            rows = []
            for name in section:
                command = self.get_command(context, name)
                assert command is not None
                rows.append((name.ljust(width), command.get_short_help_str(formatter.width - width - 6)))
            with formatter.section(title):
                formatter.write_dl(rows)


@click.command(
    cls=_Commands,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Exit codes: 0 done; 1 the topology failed, or the cluster could not do it; 2 bad usage or an invalid "
    "topology; 130 stopped at once.",
)
@click.version_option(__version__, prog_name="storm-spark")
def main() -> None:
    """Storm topologies in Python, run by Spark Structured Streaming."""
