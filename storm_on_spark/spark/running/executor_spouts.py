"""Spouts on the executors' machines: each spout host is kept by a Spark job of its own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from storm_on_spark.runtime.processes.lines.line import Line
from storm_on_spark.runtime.processes.lines.listener import Hello, LineListener
from storm_on_spark.runtime.spouts.host_process import HostProcess
from storm_on_spark.runtime.spouts.messages import Message, Setup
from storm_on_spark.runtime.spouts.remote.host import RemoteHost
from storm_on_spark.spark.running.executor_jobs import ExecutorJobs, Kind

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_KIND = Kind(
    "spouts",
    "spout host",
    "spout hosts",
    "storm_on_spark.runtime.spouts.remote.process",
    "topology.spouts.placement: executors",
    "set topology.workers to fewer hosts",
    "set topology.spouts.placement to driver",
)


class ExecutorSpouts:
    """Makes the spout hosts of one run, on executors.

    Args:
        spark: the session.
        name: the topology's.
        start_id: unique for this start.
        hosts: how many there will be.

    Raises:
        SetupError: the session's connections are encrypted, or its driver's address is not one of this machine.
    """

    def __init__(self, spark: SparkSession, name: str, start_id: str, hosts: int) -> None:
        self._jobs = ExecutorJobs(spark, name, start_id, _KIND, hosts)
        self._hosts: list[RemoteHost] = []
        self._listener = LineListener(self._jobs.listener, self._jobs.secret, self._on_host)

    def host(
        self,
        tasks: Sequence[int],
        setup: Callable[[], Setup],
        on_message: Callable[[Message], None],
        on_gone: Callable[[HostProcess, str], float | None],
    ) -> HostProcess:
        """Returns a host for these tasks; see `HostProcess`."""
        host = RemoteHost(self._jobs.job(len(self._hosts)), tasks, setup, on_message, on_gone)
        self._hosts.append(host)
        return host

    @property
    def hosts(self) -> Sequence[RemoteHost]:
        """The hosts that there are."""
        return tuple(self._hosts)

    def close(self) -> None:
        """Takes no more calls; the hosts must have been stopped."""
        self._listener.close()

    def _on_host(self, line: Line, hello: Hello) -> None:
        if hello.number < len(self._hosts):
            self._hosts[hello.number].answer(line, hello)
        else:
            line.close()
