"""Storm's `LocalCluster`: topologies in this process, on a local or given SparkSession."""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any

from storm_on_spark.api.config import Config
from storm_on_spark.api.errors import AlreadyAliveError, ConfigError, NotAliveError
from storm_on_spark.api.info import TopologyInfo, check_window
from storm_on_spark.api.topology import Topology
from storm_on_spark.launch.settings import CheckpointSettings
from storm_on_spark.runtime.batches.clock import Clock
from storm_on_spark.spark.compiled import JAVA_OPTIONS, CompiledTopology, compile_topology

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from storm_on_spark.spark.running.topology import TopologyQuery


class LocalCluster:
    """Runs topologies without any server.

    Args:
        spark: the session to run on. None reuses the active one, or starts one; in the end the cluster stops only a
            session that it started.
        conf: default configuration of every topology.
        clock: the source of the topologies' time, for tests.

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
        #: The arguments of each submission, and the numbers of executors that a rebalance set.
        self._submitted: dict[str, tuple[Topology, dict[str, Any], dict[str, int]]] = {}

    def __enter__(self) -> LocalCluster:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.shutdown()

    @property
    def spark(self) -> SparkSession:
        """The session that topologies run on; started on first use."""
        return self._session(None, {})

    def _session(self, checkpoint: str | os.PathLike[str] | None, conf: Mapping[str, str]) -> SparkSession:
        with self._lock:
            if self._spark is None:
                from pyspark import SparkContext

                from storm_on_spark.spark.session import local_session

                self._own_session = SparkContext._active_spark_context is None  # noqa: SLF001 # no public way to ask
                # The session must know how to reach a store, and what its first topology needs from the JVM.
                known = {key: conf[key] for key in conf if key.startswith("spark.hadoop.") or key == JAVA_OPTIONS}
                self._spark = local_session(conf=known, checkpoint=checkpoint)
            return self._spark

    def submit_topology(self, name: str, conf: Mapping[str, Any] | None, topology: Topology) -> TopologyQuery:
        """Starts a topology.

        Args:
            name: its name in the other methods.
            conf: its configuration. With `Config.TOPOLOGY_CHECKPOINT_DIR` its state is kept there. Submitted again
                with the same name and directory, it continues where it stopped.
            topology: the topology to run.

        Raises:
            AlreadyAliveError: a topology with that name runs.
            InvalidTopologyError, ConfigError, CheckpointError, ComponentError: it can't be started.
        """
        running = self._topologies.get(name)
        if running is not None and running.isActive:
            raise AlreadyAliveError(f"topology {name!r} is running already; kill it first or choose another name")
        merged = {**self._conf, **(conf or {})}
        return self._start(name, compile_topology(topology, merged), (topology, merged, {}))

    def _start(
        self,
        name: str,
        compiled: CompiledTopology,
        submitted: tuple[Topology, dict[str, Any], dict[str, int]],
        *,
        active: bool = True,
    ) -> TopologyQuery:
        conf = submitted[1]
        checkpoint = CheckpointSettings.of(conf).folder
        from storm_on_spark.spark.session import ComingSession

        wanted = compiled.session_conf()
        coming = ComingSession.local(lambda: self._session(checkpoint, wanted))
        query = compiled.start(coming, name=name, checkpoint=checkpoint, clock=self._clock, active=active)
        query.log_failure()
        self._topologies[name], self._submitted[name] = query, submitted
        return query

    def await_completion(self, name: str, timeout: float | None = None) -> bool:
        """Waits for a finite topology to end.

        Args:
            name: the topology.
            timeout: the longest wait in seconds; None for no limit.

        Returns:
            Whether it ended: all spouts exhausted and nothing pending.

        Raises:
            NotAliveError: no topology with that name was submitted.
            TopologyFailedError: it failed.
        """
        query = self._get(name)
        return bool(query.awaitTermination(timeout)) if timeout is not None else query.awaitTermination() is None

    def kill_topology(self, name: str, wait_secs: float | None = None) -> None:
        """Ends a topology: its spouts stop emitting, and it ends when all emitted tuples are processed.

        Args:
            name: the topology.
            wait_secs: the longest wait for that; None for the message timeout, as in Storm.

        Raises:
            NotAliveError: no topology with that name runs.
        """
        query = self._get(name)
        if wait_secs is None:
            wait_secs = query.message_timeout_secs
        query.drain(wait_secs)
        query.stop()

    def rebalance(
        self,
        name: str,
        wait_secs: float | None = None,
        num_workers: int | None = None,
        num_executors: Mapping[str, int] | None = None,
        conf: Mapping[str, Any] | None = None,
    ) -> TopologyQuery:
        """Restarts a topology with other settings; it continues where it stopped.

        As in Storm, its spouts first stop emitting, and emitted tuples have `wait_secs` to be processed. The numbers
        of tasks stay the same.

        Args:
            name: the topology. It needs `Config.TOPOLOGY_CHECKPOINT_DIR`, which it continues from.
            wait_secs: the longest wait; None for the message timeout, as in Storm.
            num_workers: the new `topology.workers`; None for no change.
            num_executors: new numbers of executors by component, at most one per task; others stay.
            conf: further changes of the configuration.

        Returns:
            The query of the restarted topology.

        Raises:
            NotAliveError: no topology with that name runs.
            InvalidTopologyError: there is no such component.
            ConfigError: the topology has no checkpoint, or a key or value is invalid. It then runs on unchanged.

        Example:
            >>> cluster.rebalance("words", num_executors={"split": 2})                  # doctest: +SKIP
        """
        query = self._get(name)
        if not query.isActive:
            raise NotAliveError(f"topology {name!r} does not run, so it can't be rebalanced")
        topology, known, executors = self._submitted[name]
        changed = {**known, **(conf or {})}
        if num_workers is not None:
            changed[Config.TOPOLOGY_WORKERS] = num_workers
        key, folder = Config.TOPOLOGY_CHECKPOINT_DIR, CheckpointSettings.of(known).folder
        if folder is None:
            raise ConfigError(f"topology {name!r} has no {key}, so it can't continue after a rebalance", key=key)
        if CheckpointSettings.of(changed).folder != folder:
            raise ConfigError(f"a rebalance can't change {key}", key=key)
        wanted = {**executors, **(num_executors or {})}
        for component, count in wanted.items():
            _check_executors(topology[component].id, count)
        compiled = compile_topology(topology, changed).with_executors(wanted)
        active = query.status_info().status == "ACTIVE"
        self.kill_topology(name, wait_secs)
        return self._start(name, compiled, (topology, changed, wanted), active=active)

    def activate(self, name: str) -> None:
        """Lets the spouts of a topology emit again."""
        self._get(name).activate()

    def deactivate(self, name: str) -> None:
        """Stops the spouts of a topology from emitting."""
        self._get(name).deactivate()

    def get_topology_info(self, name: str, window: str | None = None) -> TopologyInfo:
        """Returns status and counters of a topology, even after its end.

        Args:
            name: the topology.
            window: one of Storm's windows: `600`, `10800` and `86400` seconds, or `:all-time`. They continue over
                restarts with the same checkpoint. None for the counters since this start.

        Raises:
            NotAliveError: no topology with that name was submitted.
            ValueError: there is no such window.

        Example:
            >>> cluster.get_topology_info("words", window="600").components["split"].executed   # doctest: +SKIP
            7
        """
        query = self._get(name)
        if window is None:
            return query.status_info()
        check_window(window)
        return query.status_info([window]).over(window)

    def list_topologies(self) -> list[TopologyInfo]:
        """Returns status and counters of all running topologies."""
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


def _check_executors(component: str, count: object) -> None:
    if isinstance(count, bool) or not isinstance(count, int) or count < 1:
        raise ConfigError(f'component "{component}" needs at least 1 executor, not {count!r:.40}')
