"""Compiling a topology and starting it."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import sys
import time
import uuid
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from storm_on_spark.api.config import Config, effective_conf, validate_conf
from storm_on_spark.api.topology import Topology
from storm_on_spark.plan.compile import compile_plan
from storm_on_spark.plan.explain import explain_dict, explain_mermaid, explain_text
from storm_on_spark.plan.model import PhysicalPlan
from storm_on_spark.plan.placement import with_partitions
from storm_on_spark.runtime.clock import Clock, SystemClock
from storm_on_spark.runtime.coordinator import Coordinator
from storm_on_spark.runtime.offsets import Offset
from storm_on_spark.runtime.spec import make_spec
from storm_on_spark.runtime.stall import clear_notes, read_notes

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from storm_on_spark.spark.checkpoint import Checkpoint, Manifest
    from storm_on_spark.spark.owner import OwnerFence
    from storm_on_spark.spark.query import TopologyQuery

ExplainFormat = Literal["text", "json", "mermaid", "spark"]


def compile_topology(topology: Topology, conf: Mapping[str, Any] | None = None) -> CompiledTopology:
    """Compiles a topology; no Spark is needed yet.

    Args:
        topology: what `TopologyBuilder.create_topology` returned.
        conf: the topology's configuration; keys as in `Config`.

    Raises:
        InvalidTopologyError: the topology can't run as it is drawn.
        ConfigError: a key or value of the configuration makes no sense.

    Example:
        >>> from storm_on_spark.testing import ListSpout, CaptureBolt
        >>> from storm_on_spark import TopologyBuilder
        >>> builder = TopologyBuilder()
        >>> _ = builder.set_spout("words", ListSpout(["storm", "spark"], fields=["word"]))
        >>> _ = builder.set_bolt("show", CaptureBolt()).shuffle_grouping("words")
        >>> compiled = compile_topology(builder.create_topology())
        >>> [stage.kind.value for stage in compiled.plan.stages]
        ['source', 'acker']
    """
    validate_conf(conf or {}, "the topology")
    return CompiledTopology(compile_plan(topology, effective_conf(conf or {})))


class CompiledTopology:
    """A topology that is ready to start.

    Args:
        plan: the physical plan, without partitions.
    """

    def __init__(self, plan: PhysicalPlan) -> None:
        self.plan = plan

    def explain(self, format: ExplainFormat = "text", spark: SparkSession | None = None) -> str:  # noqa: A002 # what it is
        """Returns a description of the plan.

        Args:
            format: `text` for people, `json`, `mermaid` for a diagram, or `spark` for Spark's own plan.
            spark: needed for `spark`; a local session is started for None.
        """
        if format == "json":
            return json.dumps(explain_dict(self.plan), indent=2)
        if format == "mermaid":
            return explain_mermaid(self.plan)
        if format == "spark":
            return self._explain_spark(spark)
        return explain_text(self.plan)

    def start(
        self,
        spark: SparkSession | None = None,
        name: str = "topology",
        checkpoint: str | os.PathLike[str] | None = None,
        clock: Clock | None = None,
        active: bool = True,
        fence: OwnerFence | None = None,
    ) -> TopologyQuery:
        """Starts the topology as one streaming query.

        Args:
            spark: the session to run on; a local one is started or reused for None.
            name: the topology's name.
            checkpoint: directory to keep state in and go on from; a temporary one for None.
            clock: where the topology's time comes from; the machine's monotonic clock for None.
            active: whether spouts emit from the start.
            fence: of a checkpoint that drivers on several hosts may take over: once it is lost, no further batch is
                planned and the topology ends.

        Raises:
            CheckpointError: the checkpoint can't be used for this topology.
            ComponentError: a component can't be pickled, or a spout raised in `open`.
            SetupError: Spark can't be started, or can't call this process.
        """
        from storm_on_spark.spark.checkpoint import Checkpoint
        from storm_on_spark.spark.failures import told_at_once
        from storm_on_spark.spark.lowering import lower
        from storm_on_spark.spark.offset_server import OffsetServer
        from storm_on_spark.spark.query import TopologyQuery
        from storm_on_spark.spark.session import local_session, settings_applied
        from storm_on_spark.spark.sink import Sink, open_callbacks
        from storm_on_spark.spark.source import SourceSettings
        from storm_on_spark.spark.state_stores import close_state_stores

        start_id = uuid.uuid4().hex
        early: list[tuple[str, str]] = []
        running: list[TopologyQuery] = []

        def on_failure(reason: str, trace: str) -> None:
            early.append((reason, trace))
            if running:
                running[0].fail(reason, trace)

        with contextlib.ExitStack() as stack:
            # Before Spark, so that what can't be shipped or resumed costs no start of a JVM.
            make_spec(self.plan, name, "", start_id, ())
            store = Checkpoint(checkpoint)
            stack.callback(store.close)
            manifest = store.manifest()
            spark = spark or local_session()
            open_callbacks(spark)
            partitions = manifest.partitions if manifest else self._partitions(spark)
            plan = with_partitions(self.plan if manifest is None else resumed_plan(self.plan, manifest), partitions)
            manifest = store.claim(name, plan)
            _tidy(store, fence)
            # Also at the end, for an executor may have been killed and not the driver.
            stack.callback(_tidy, store, fence)
            named = {**plan.conf, Config.TOPOLOGY_NAME: name, Config.STORM_ID: manifest.storm_id}
            plan = dataclasses.replace(plan, conf=named)
            spec = make_spec(plan, name, manifest.storm_id, start_id, _user_path(), str(store.folder))
            clear_notes(store.folder)
            coordinator = Coordinator(spec, store.folder, clock or SystemClock(), active, on_failure)
            stack.callback(coordinator.stop)
            # Spouts open, and emit, from here on; Spark prepares the query meanwhile.
            started = time.monotonic()
            coordinator.launch(store.planned())
            poll = coordinator.poll if fence is None else _fenced(coordinator.poll, fence, on_failure)
            server = OffsetServer(poll, on_failure)
            stack.callback(server.close)
            settings = SourceSettings(start_id, spec.dumps(), str(store.folder), server.path, partitions)
            wanted = {"spark.sql.shuffle.partitions": str(partitions)}
            with settings_applied(spark, wanted):
                frame = lower(spark, spec, settings)
            coordinator.wait_until_open()
            if early:
                raise _failed(name, *early[0])
            with settings_applied(spark, wanted), told_at_once(name):
                query = (
                    frame.writeStream.foreachBatch(Sink(coordinator, on_failure, store.folder))
                    # No URI: Hadoop takes a path as it is and would not decode a %20.
                    .option("checkpointLocation", f"file:{store.path}")
                    .queryName(name)
                    .start()
                )
            stack.callback(close_state_stores, spark, store.path, query.runId)
            timeout = float(plan.conf["topology.message.timeout.secs"])  # type: ignore[arg-type]
            topology = TopologyQuery(
                query,
                name,
                started,
                timeout,
                coordinator,
                lambda: [stall.sentence for stall in read_notes(store.folder)],
                stack.pop_all(),
                fence,
            )
            running.append(topology)
            for reason, trace in early:
                topology.fail(reason, trace)
            topology.watch()
            return topology

    def _partitions(self, spark: SparkSession) -> int:
        """Returns the number of partitions: what the configuration says, else one a core, but no more than tasks."""
        asked = self.plan.conf.get("topology.partitions")
        if asked is not None:
            return int(asked)  # type: ignore[call-overload, no-any-return]
        widest = max(
            len(self.plan.acker_tasks),
            *(
                sum(len(self.plan.components[component].tasks) for component in stage.components)
                for stage in self.plan.stages
            ),
        )
        return max(1, min(spark.sparkContext.defaultParallelism, widest))

    def _explain_spark(self, spark: SparkSession | None) -> str:
        from storm_on_spark.spark.lowering import lower
        from storm_on_spark.spark.session import local_session, settings_applied
        from storm_on_spark.spark.source import SourceSettings

        spark = spark or local_session()
        partitions = self._partitions(spark)
        spec = make_spec(with_partitions(self.plan, partitions), "explain", "explain", uuid.uuid4().hex, ())
        with settings_applied(spark, {"spark.sql.shuffle.partitions": str(partitions)}):
            frame = lower(spark, spec, SourceSettings(spec.start_id, spec.dumps(), "", "", partitions))
            return str(frame._jdf.queryExecution().logical().toString())  # noqa: SLF001 # no public way


def resumed_plan(plan: PhysicalPlan, manifest: Manifest) -> PhysicalPlan:
    """Returns a plan with as many acker tasks as at the first start, unless their number is configured.

    By default it depends on `topology.workers`, which may change.
    """
    ackers = len(manifest.fingerprint.get("acker", {}).get("keys", ()))
    configured = plan.conf.get(Config.TOPOLOGY_ACKER_EXECUTORS) is not None
    if configured or ackers in (0, len(plan.acker_tasks)):
        return plan
    return compile_plan(plan.topology, {**plan.conf, Config.TOPOLOGY_ACKER_EXECUTORS: ackers})


def _fenced(
    poll: Callable[[Offset], Offset], fence: OwnerFence, on_failure: Callable[[str, str], None]
) -> Callable[[Offset], Offset]:
    """Returns `poll`, which touches the checkpoint, for an owner only."""

    def owned() -> bool:
        reason = fence.lost()
        if reason is not None:
            on_failure(reason, "")
        return reason is None

    def fenced(start: Offset) -> Offset:
        if not owned():
            return start
        end = poll(start)
        return end if end == start or owned() else start

    return fenced


def _tidy(store: Checkpoint, fence: OwnerFence | None) -> None:
    # What another owner is writing just now is not ours to remove.
    if fence is None or fence.lost() is None:
        # Never a reason not to start or to end; the disk may be broken.
        with contextlib.suppress(OSError):
            store.remove_half_written()


def _failed(name: str, reason: str, trace: str) -> Exception:
    from storm_on_spark.api.errors import TopologyFailedError

    return TopologyFailedError(name, reason)


def _user_path() -> tuple[str, ...]:
    """Returns the folders that workers on this machine need to import what the driver could import."""
    return tuple(dict.fromkeys(str(Path(entry or ".").absolute()) for entry in sys.path if not entry.endswith(".zip")))
