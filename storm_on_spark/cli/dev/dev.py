"""`storm-spark dev`: a whole cluster in one terminal."""

from __future__ import annotations

import json as jsonlib
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

import click

from storm_on_spark.cli.client.asking import json
from storm_on_spark.cli.client.needs import has_pages, need_libraries
from storm_on_spark.cli.shared import options
from storm_on_spark.cli.shared.echo import echo
from storm_on_spark.cli.shared.errors import STOPPED, reporting_errors
from storm_on_spark.launch.conf_text import merged
from storm_on_spark.runtime.processes.ending.signals import put_back

if TYPE_CHECKING:
    from storm_on_spark.cli.dev.cluster import DevCluster

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class _Stopped(BaseException):
    """Raised by a second signal: end at once."""


@click.command("dev", short_help="Run a whole cluster in this terminal.")
@options.configuration
@json
@options.debug
@click.option(
    "--pacemakers",
    type=click.IntRange(0, 9),
    default=0,
    metavar="N",
    help="The number of Pacemakers that keep heartbeats; without any, ZooKeeper does.",
)
@click.option(
    "--spark-workers",
    type=click.IntRange(0, 9),
    default=0,
    metavar="N",
    help="Run topologies on a standalone Spark cluster with N workers; to Spark each is a machine.",
)
@click.option(
    "--xd-containers",
    type=click.IntRange(0, 9),
    default=0,
    metavar="N",
    help="Also run streams: an admin and N containers of modules.",
)
def command(
    pairs: tuple[str, ...],
    files: tuple[Path, ...],
    json: bool,
    debug: bool,
    pacemakers: int,
    spark_workers: int,
    xd_containers: int,
) -> None:
    """Run a whole cluster in this terminal: a ZooKeeper, two Nimbuses, two supervisors.

    The other commands find it automatically. Ctrl-C ends it with everything that runs on it, and removes its files. -c
    and --conf configure all its daemons.
    """
    with reporting_errors(debug, json):
        need_libraries()
        from storm_on_spark.cli.dev.cluster import DevCluster

        with _signals() as seen:
            cluster = DevCluster(
                merged(files, pairs), _say, lambda: bool(seen), pacemakers, spark_workers, xd_containers
            )
            try:
                with cluster:
                    seconds = cluster.wait_ready()
                    if not seen:
                        _show(cluster, seconds, json)
                        cluster.watch()
                    _say("Ending the cluster and everything that runs on it; Ctrl-C kills it ...")
                _say("It has ended; no processes or files are left.")
            except _Stopped:
                sys.exit(STOPPED)


@contextmanager
def _signals() -> Iterator[list[int]]:
    """Yields a list that grows with every signal to end; the second signal raises."""
    seen: list[int] = []

    def on_signal(number: int, frame: FrameType | None) -> None:
        seen.append(number)
        if len(seen) == 2:
            raise _Stopped

    before = {number: signal.signal(number, on_signal) for number in _SIGNALS}
    try:
        yield seen
    finally:
        put_back(before)


def _say(text: str) -> None:
    echo(text, err=True)


def _show(cluster: DevCluster, seconds: float, json: bool) -> None:
    leader, record = cluster.leader(), cluster.record
    if json:
        document = {
            "pid": record.pid,
            "ready_secs": round(seconds, 3),
            "nimbuses": list(record.seeds),
            "leader": leader,
            "zookeeper": record.zookeeper,
            "token_file": record.token_file,
            "folder": record.folder,
            "processes": {
                **{d.name: None if d.process is None else d.process.pid for d in cluster.daemons},
                **({} if cluster.spark is None else cluster.spark.processes),
            },
            "spark_master": None if cluster.spark is None else cluster.spark.master,
            "spark_conf_file": cluster.spark_conf_file,
            "admin": cluster.admin,
        }
        echo(jsonlib.dumps({**document, "zookeeper_pid": cluster.zookeeper.pid}))
        return
    nimbuses = ", ".join(f"{seed} (leads)" if seed == leader else seed for seed in record.seeds)
    echo(f"""\
Ready after {seconds:.1f} s: {cluster.parts}.

  Nimbuses   {nimbuses}
  ZooKeeper  {record.zookeeper}{_spark(cluster)}{_streams(cluster)}
  {_pages(cluster)}files      {record.folder}, with logs and the token; removed when this ends
  REST       curl -H "Authorization: Bearer $(cat {record.token_file})" http://{record.seeds[0]}/api/v1/cluster/summary

Type in another terminal:

  storm-spark new demo --example word-count
  storm-spark submit demo/word_count.py --wait
  storm-spark list
  storm-spark status word-count
  storm-spark logs word-count -f
  storm-spark kill word-count

Ctrl-C ends the cluster and everything that runs on it.""")
    sys.stdout.flush()


def _pages(cluster: DevCluster) -> str:
    """Returns the line with a link to the pages, if there are any."""
    if not has_pages():
        return ""
    from storm_on_spark.cluster.errors import ClusterError

    try:
        with cluster.client() as client:
            return f"pages      {client.ui_link()}, for one browser; `storm-spark ui` prints further links\n  "
    except ClusterError:
        return ""


def _spark(cluster: DevCluster) -> str:
    if cluster.spark is None:
        return ""
    own = f"spark-submit --master {cluster.spark.master} --properties-file {cluster.spark_conf_file}"
    return f"\n  Spark      {cluster.spark.master}, where topologies run; for others, {own} ..."


def _streams(cluster: DevCluster) -> str:
    return (
        "" if cluster.admin is None else f"\n  streams    {cluster.admin}, which storm-spark xd-shell and stream find"
    )
