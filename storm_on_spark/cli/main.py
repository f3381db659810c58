"""The group of commands."""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping
from typing import Any, Final

import click
from click.shell_completion import CompletionItem

from storm_on_spark import __version__
from storm_on_spark.cli.shared.pipes import output_may_be_cut
from storm_on_spark.cli.shared.usage import readable_usage

SECTIONS: Final[Mapping[str, Mapping[str, tuple[str, str]]]] = {
    "Here": {
        "run": ("local.run", "Run a topology here."),
        "flux": ("local.flux", "Run, submit or show a topology in a Flux file."),
        "stream": ("xd.stream", "Run a stream described by one line of text, or deploy it on containers."),
        "module": ("xd.module", "Show the modules of streams, and add your own."),
        "counter": ("xd.counter", "Show what streams have counted."),
        "compile": ("local.compiling", "Write a topology as a job for spark-submit."),
        "explain": ("local.explain", "Show what a topology compiles to."),
        "validate": ("local.validate", "Check a topology and its configuration."),
        "jars": ("local.jars", "Show or fetch the jars that some features need."),
        "config": ("reference.config", "List the configuration keys."),
        "new": ("projects.new", "Make a small project."),
        "migrate": ("projects.migrate", "Show which parts of a streamparse project run here."),
    },
    "On a cluster": {
        "submit": ("cluster.changing.submit", "Submit a topology to a cluster."),
        "list": ("cluster.watching.list", "List the topologies of a cluster."),
        "status": ("cluster.watching.status", "Show one topology."),
        "logs": ("cluster.watching.logs", "Show the output of a topology's driver."),
        "errors": ("cluster.watching.errors", "Show the last errors of a topology."),
        "lag": ("cluster.watching.lag", "Show how far Kafka spouts are behind."),
        "activate": ("cluster.changing.activate", "Let a topology's spouts emit again."),
        "deactivate": ("cluster.changing.deactivate", "Stop a topology's spouts."),
        "set-log-level": ("cluster.changing.set_log_level", "Change log levels of a running topology."),
        "upload-credentials": ("cluster.changing.upload_credentials", "Give a running topology new credentials."),
        "rebalance": ("cluster.changing.rebalance", "Restart a topology in a free slot, optionally changed."),
        "kill": ("cluster.changing.kill", "End a topology."),
        "cluster": ("cluster.machines.cluster", "Show a cluster's summary and its supervisors."),
        "drain": ("cluster.machines.drain", "Take topologies away from a supervisor."),
        "admin": ("cluster.machines.admin", "Find and repair what is left over in a cluster."),
        "ui": ("cluster.machines.ui", "Print a link to the pages of a cluster, or with --admin to those of streams."),
        "nimbuses": ("cluster.machines.nimbuses", "List the Nimbuses of a cluster, the leader first."),
        "heartbeats": ("cluster.machines.heartbeats", "Look at drivers' heartbeats where they are kept."),
        "drpc-client": ("cluster.drpc_client", "Ask a topology something, through a DRPC server."),
    },
    "Streams on containers": {
        "xd-shell": ("xd.shell.command", "Start a shell for the streams of an admin."),
        "runtime": ("xd.runtime", "Show the containers of an admin, and their modules."),
        "job": ("xd.job", "Launch and manage jobs on the containers of an admin."),
    },
    "A cluster's daemons": {
        "dev": ("dev.dev", "Run a whole cluster in this terminal."),
        "nimbus": ("daemons.nimbus", "Run a Nimbus."),
        "pacemaker": ("daemons.pacemaker", "Run a Pacemaker, which keeps heartbeats in memory."),
        "supervisor": ("daemons.supervisor", "Run a supervisor."),
        "drpc": ("daemons.drpc", "Run a DRPC server, which hands requests to topologies."),
        "node-health-check": ("daemons.node_health_check", "Run this machine's health checks."),
        "xd-admin": ("daemons.xd_admin", "Run an admin of streams."),
        "xd-container": ("daemons.xd_container", "Run a container of modules of streams."),
        "xd-singlenode": ("daemons.xd_singlenode", "Run ZooKeeper, an admin and a container in one process."),
        "dev-zookeeper": ("daemons.dev_zookeeper", "Run a ZooKeeper for development."),
        "dev-kafka": ("daemons.dev_kafka", "Run a Kafka broker for development."),
    },
    "About these commands": {
        "schema": ("reference.schema", "Show the JSON Schema of --json output."),
        "completion": ("reference.completion", "Complete commands in the shell."),
        "man": ("reference.man", "Show or install the manual page."),
    },
}
"""Command -> its module below `storm_on_spark.cli` and its short help, grouped by purpose.

The short help is repeated here, because asking the commands for it would import them all.
"""


_MODULES: Final = {name: module for section in SECTIONS.values() for name, (module, _) in section.items()}


class _Lazy(Mapping[str, click.Command]):
    """The commands; a command's module is imported on first access."""

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
    """Shows the commands grouped by purpose."""

    def make_context(self, *args: Any, **kwargs: Any) -> click.Context:
        """Reads the command line, and prints help and version."""
        with output_may_be_cut(), readable_usage():
            return super().make_context(*args, **kwargs)

    def invoke(self, context: click.Context) -> Any:
        """Runs a command."""
        with output_may_be_cut(), readable_usage():
            return super().invoke(context)

    def format_commands(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        width = max(map(len, _MODULES))
        for title, section in SECTIONS.items():
            with formatter.section(title):
                formatter.write_dl([(name.ljust(width), short) for name, (_, short) in section.items()])

    def shell_complete(self, context: click.Context, incomplete: str) -> list[CompletionItem]:
        """Returns the commands that begin with `incomplete`, without importing any."""
        found = [
            CompletionItem(name, help=short)
            for section in SECTIONS.values()
            for name, (_, short) in section.items()
            if name.startswith(incomplete)
        ]
        return found + super(click.Group, self).shell_complete(context, incomplete)


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
