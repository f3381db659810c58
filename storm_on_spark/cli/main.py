"""The group of commands."""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping
from typing import Any, Final

import click

from storm_on_spark import __version__
from storm_on_spark.cli.shared.pipes import output_may_be_cut
from storm_on_spark.cli.shared.usage import readable_usage

SECTIONS: Final[Mapping[str, Mapping[str, str]]] = {
    "Here": {
        "run": "local.run",
        "flux": "local.flux",
        "stream": "xd.stream",
        "module": "xd.module",
        "counter": "xd.counter",
        "compile": "local.compiling",
        "explain": "local.explain",
        "validate": "local.validate",
        "jars": "local.jars",
        "config": "reference.config",
        "new": "projects.new",
        "migrate": "projects.migrate",
    },
    "On a cluster": {
        "submit": "cluster.submit",
        "list": "cluster.list",
        "status": "cluster.status",
        "logs": "cluster.logs",
        "errors": "cluster.errors",
        "lag": "cluster.lag",
        "activate": "cluster.activate",
        "deactivate": "cluster.deactivate",
        "rebalance": "cluster.rebalance",
        "kill": "cluster.kill",
        "cluster": "cluster.cluster",
        "nimbuses": "cluster.nimbuses",
        "heartbeats": "cluster.heartbeats",
    },
    "Streams on containers": {
        "xd-shell": "xd.shell.command",
        "runtime": "xd.runtime",
        "job": "xd.job",
    },
    "A cluster's daemons": {
        "dev": "dev.dev",
        "nimbus": "daemons.nimbus",
        "pacemaker": "daemons.pacemaker",
        "supervisor": "daemons.supervisor",
        "xd-admin": "daemons.xd_admin",
        "xd-container": "daemons.xd_container",
        "xd-singlenode": "daemons.xd_singlenode",
        "dev-zookeeper": "daemons.dev_zookeeper",
        "dev-kafka": "daemons.dev_kafka",
    },
    "About these commands": {
        "schema": "reference.schema",
        "completion": "reference.completion",
        "man": "reference.man",
    },
}
"""Command -> its module below `storm_on_spark.cli`, by what it is for."""


_MODULES: Final = {name: module for section in SECTIONS.values() for name, module in section.items()}


class _Lazy(Mapping[str, click.Command]):
    """The commands; each one's module is imported when it is looked at."""

    def __getitem__(self, name: str) -> click.Command:
        found = importlib.import_module(f"storm_on_spark.cli.{_MODULES[name]}").command
        assert isinstance(found, click.Command)
        return found

    def __iter__(self) -> Iterator[str]:
        return iter(_MODULES)

    def __len__(self) -> int:
        return len(_MODULES)

    def __contains__(self, name: object) -> bool:
        return name in _MODULES


class _Commands(click.Group):
    """Shows the commands by what they are for."""

    def make_context(self, *args: Any, **kwargs: Any) -> click.Context:
        """Reads the command line; help and version are printed here."""
        with output_may_be_cut(), readable_usage():
            return super().make_context(*args, **kwargs)

    def invoke(self, context: click.Context) -> Any:
        """Runs a command."""
        with output_may_be_cut(), readable_usage():
            return super().invoke(context)

    def format_commands(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        width = max(map(len, _MODULES))
        for title, section in SECTIONS.items():
            rows = [
                (name.ljust(width), self.commands[name].get_short_help_str(formatter.width - width - 4))
                for name in section
            ]
            with formatter.section(title):
                formatter.write_dl(rows)


@click.command(
    cls=_Commands,
    commands=_Lazy(),
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Exit codes: 0 done; 1 the topology failed, or the cluster could not do it; 2 bad usage or an invalid "
    "topology; 130 stopped at once by Ctrl-C.",
)
@click.version_option(__version__, prog_name="storm-spark")
def main() -> None:
    """Storm topologies in Python, run by Spark Structured Streaming."""
