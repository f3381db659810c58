"""Storm's `LocalCluster`: topologies in this process, on a local or given SparkSession."""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any

from storm_on_spark.api.errors import AlreadyAliveError, NotAliveError
from storm_on_spark.api.info import TopologyInfo
from storm_on_spark.api.topology import Topology
from storm_on_spark.launch.settings import CheckpointSettings
from storm_on_spark.runtime.batches.clock import Clock
from storm_on_spark.spark.compiled import compile_topology

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from storm_on_spark.spark.running.topology import TopologyQuery


class LocalCluster:
    """Runs topologies without any server.

    Args:
        spark: the session to run on. For None one is reused if there is one, else started; the cluster stops at the
            end only what it started.
        conf: configuration that goes under that of every topology.
        clock: where the topologies' time comes from, for tests.

    Example:
        >>> from storm_on_spark import LocalCluster
        >>> with LocalCluster() as cluster:                                     # doctest: +SKIP
        ...     cluster.submit_topology("word-count", {}, topology)
        ...     cluster.await_completion("word-count", timeout=60)
        True
    """

    def __init__(
        self,
        spark: SparkSession | None = None,
        conf: Mapping[str, Any] | None = None,
        clock: Clock | None = None,
    ) -> None:
        self._spark = spark
        self._own_session = False
        self._conf = dict(conf or {})
        self._clock = clock
        self._lock = threading.Lock()
        self._topologies: dict[str, TopologyQuery] = {}

    def __enter__(self) -> LocalCluster:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.shutdown()

    @property
    def spark(self) -> SparkSession:
        """The session that topologies run on; started when first asked for."""
        return self._session(None, {})

    def _session(self, checkpoint: str | os.PathLike[str] | None, conf: Mapping[str, Any]) -> SparkSession:
        with self._lock:
            if self._spark is None:
                from pyspark import SparkContext

                from storm_on_spark.launch.conf_text import spark_conf
                from storm_on_spark.spark.session import local_session

                self._own_session = SparkContext._active_spark_context is None  # noqa: SLF001 # no public way to ask
                # How a store is reached is for the session to know.
                hadoop = {key: value for key, value in spark_conf(conf).items() if key.startswith("spark.hadoop.")}
                self._spark = local_session(conf=hadoop, checkpoint=checkpoint)
            return self._spark

    def submit_topology(self, name: str, conf: Mapping[str, Any] | None, topology: Topology) -> TopologyQuery:
        """Starts a topology.

        Args:
            name: under which the other methods know it.
            conf: its configuration. With `Config.TOPOLOGY_CHECKPOINT_DIR` its state is kept there, and submitted
                again with the same name and directory it goes on where it was.
            topology: what to run.

        Raises:
            AlreadyAliveError: a topology of that name runs.
            InvalidTopologyError, ConfigError, CheckpointError, ComponentError: it can't be started.
        """
        running = self._topologies.get(name)
        if running is not None and running.isActive:
            raise AlreadyAliveError(f"topology {name!r} is running already; kill it first or choose another name")
        merged = {**self._conf, **(conf or {})}
        compiled = compile_topology(topology, merged)
        checkpoint = CheckpointSettings.of(merged).folder
        query = compiled.start(self._session(checkpoint, merged), name=name, checkpoint=checkpoint, clock=self._clock)
        self._topologies[name] = query
        return query

    def await_completion(self, name: str, timeout: float | None = None) -> bool:
        """Waits for a finite topology to end.

        Args:
            name: the topology.
            timeout: the longest wait in seconds; None for no limit.

        Returns:
            Whether it ended: all spouts exhausted and nothing pending.

        Raises:
            NotAliveError: no topology of that name was submitted.
            TopologyFailedError: it failed.
        """
        query = self._get(name)
        return bool(query.awaitTermination(timeout)) if timeout is not None else query.awaitTermination() is None

    def kill_topology(self, name: str, wait_secs: float | None = None) -> None:
        """Ends a topology: its spouts stop emitting, and it ends when all they emitted is done.

        Args:
            name: the topology.
            wait_secs: the longest wait for that; the message timeout for None, as in Storm.

        Raises:
            NotAliveError: no topology of that name runs.
        """
        query = self._get(name)
        if wait_secs is None:
            wait_secs = query.message_timeout_secs
        query.drain(wait_secs)
        query.stop()

    def activate(self, name: str) -> None:
        """Lets the spouts of a topology emit again."""
        self._get(name).activate()

    def deactivate(self, name: str) -> None:
        """Stops the spouts of a topology from emitting."""
        self._get(name).deactivate()

    def get_topology_info(self, name: str) -> TopologyInfo:
        """Returns status and counters of a topology, also after its end."""
        return self._get(name).status_info()

    def list_topologies(self) -> list[TopologyInfo]:
        """Returns status and counters of all topologies that run."""
        return [query.status_info() for query in self._topologies.values() if query.isActive]

    def shutdown(self) -> None:
        """Ends all topologies, and the session if the cluster started it."""
        for query in self._topologies.values():
            query.stop()
        with self._lock:
            if self._own_session and self._spark is not None:
                from storm_on_spark.spark.session import stop_session

                stop_session(self._spark)
                self._spark = None

    def _get(self, name: str) -> TopologyQuery:
        query = self._topologies.get(name)
        if query is None:
            known = ", ".join(sorted(self._topologies)) or "none"
            raise NotAliveError(f"no topology {name!r} was submitted; submitted: {known}")
        return query
