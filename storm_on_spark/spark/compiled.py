"""Compiling a topology and starting it."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import logging
import os
import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

from storm_on_spark.api.config import (
    Config,
    effective_conf,
    validate_conf,
)
from storm_on_spark.api.errors import ComponentError, InvalidTopologyError
from storm_on_spark.api.info import TopologyInfo
from storm_on_spark.api.topology import ComponentKind, Topology
from storm_on_spark.api.worker import NO_PORT
from storm_on_spark.launch.settings import PlaceSettings
from storm_on_spark.plan.advice import warning_about
from storm_on_spark.plan.compile import compile_graph, place
from storm_on_spark.plan.explain.document import explain_dict
from storm_on_spark.plan.explain.mermaid import explain_mermaid
from storm_on_spark.plan.explain.picture import plan_html
from storm_on_spark.plan.explain.text import explain_text
from storm_on_spark.plan.live_homes import processes_of, why_not_live
from storm_on_spark.plan.logical import LogicalGraph
from storm_on_spark.plan.model import PlacedPlan
from storm_on_spark.plan.passes.placement import partitions_of
from storm_on_spark.plan.settings import LiveSettings
from storm_on_spark.runtime.batches.clock import Clock, SystemClock
from storm_on_spark.runtime.batches.coordinator import Coordinator
from storm_on_spark.runtime.bolts.watching.at_work import clear_work
from storm_on_spark.runtime.bolts.watching.stall import clear_notes, read_notes
from storm_on_spark.runtime.processes.run_folder import new_start_id, owned_run_folder
from storm_on_spark.runtime.reports.report import Failure
from storm_on_spark.runtime.run.settings import ReportSettings, TrackingSettings
from storm_on_spark.runtime.run.spec import make_spec, pickled, user_path
from storm_on_spark.runtime.spouts.host_process import spout_groups
from storm_on_spark.runtime.storage import Storage, inside
from storm_on_spark.spark.checkpoint.resumed import resumed_graph

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from storm_on_spark.spark.checkpoint.directory import Manifest
    from storm_on_spark.spark.checkpoint.owner import Fence
    from storm_on_spark.spark.running.topology import TopologyQuery
    from storm_on_spark.spark.session import ComingSession
    from storm_on_spark.spark.session.interrupts import InterruptsWait

log = logging.getLogger(__name__)

JAVA_OPTIONS = "spark.driver.extraJavaOptions"
_COMPILED_FOR_ROWS = (
    "-XX:TieredStopAtLevel=4 -XX:Tier4InvocationThreshold=50000 -XX:Tier4MinInvocationThreshold=6000 "
    "-XX:Tier4CompileThreshold=150000 -XX:Tier4BackEdgeThreshold=400000"
)
"""The JVM's second compiler, at ten times the usual counts: code that runs for each row soon reaches them, and code
that runs once per micro-batch doesn't. See docs/decisions/0011-start-of-the-jvm.md."""

ExplainFormat = Literal["text", "json", "mermaid", "spark"]


def compile_topology(topology: Topology, conf: Mapping[str, Any] | None = None) -> CompiledTopology:
    """Compiles a topology. This does not need Spark.

    Args:
        topology: the result of `TopologyBuilder.create_topology`.
        conf: the topology's configuration; keys as in `Config`.

    Raises:
        InvalidTopologyError: the topology is invalid.
        ConfigError: a key or value of the configuration is invalid.

    Example:
        >>> from storm_on_spark.testing import ListSpout, CaptureBolt
        >>> from storm_on_spark import TopologyBuilder
        >>> builder = TopologyBuilder()
        >>> _ = builder.set_spout("words", ListSpout(["storm", "spark"], fields=["word"]))
        >>> _ = builder.set_bolt("show", CaptureBolt()).shuffle_grouping("words")
        >>> compiled = compile_topology(builder.create_topology())
        >>> [stage.kind.value for stage in compiled.graph.stages]
        ['source', 'acker']
    """
    validate_conf(conf or {}, "the topology")
    return CompiledTopology(compile_graph(topology, effective_conf(conf or {})), warning_about(topology, conf or {}))


class CompiledTopology:
    """A topology that is ready to start.

    Args:
        graph: its stages; `placed` decides where they run.
        warning: about settings that have no effect, and those that a component lacks; empty if there are none.
    """

    def __init__(self, graph: LogicalGraph, warning: str = "") -> None:
        self.graph = graph
        self.warning = warning

    def check(self) -> None:
        """Makes the checks that `start` makes before it starts Spark.

        Raises:
            InvalidTopologyError: a component can't be pickled.
        """
        try:
            pickled(self.graph.topology)
        except ComponentError as error:
            raise InvalidTopologyError(str(error)) from error

    def session_conf(self) -> dict[str, str]:
        """Returns Spark's settings for the topology's session: its own, and those that its spouts need from the JVM.

        If the JVM reads the rows, and throughput matters more than latency, the JVM's second compiler is worth its
        start-up cost for the code that runs for each row.

        Example:
            >>> from storm_on_spark import TopologyBuilder
            >>> from storm_on_spark.connectors.sources import RateSpout
            >>> builder = TopologyBuilder()
            >>> _ = builder.set_spout("numbers", RateSpout(100))
            >>> topology = builder.create_topology()
            >>> conf = compile_topology(topology, {"topology.profile": "throughput"}).session_conf()
            >>> conf["spark.driver.extraJavaOptions"].split()[0]
            '-XX:TieredStopAtLevel=4'
            >>> compile_topology(topology, {"topology.profile": "latency"}).session_conf()
            {}
        """
        from storm_on_spark.launch.conf_text import spark_conf

        conf = spark_conf(self.graph.conf)
        native = any(part.kind is ComponentKind.NATIVE_SPOUT for part in self.graph.topology.components.values())
        if native and LiveSettings.of(self.graph.conf).profile == "throughput":
            conf[JAVA_OPTIONS] = f"{_COMPILED_FOR_ROWS} {conf.get(JAVA_OPTIONS, '')}".strip()
        return conf

    def with_executors(self, executors: Mapping[str, int]) -> CompiledTopology:
        """Returns the topology with the numbers of executors that a rebalance requests, at most one per task."""
        graph = self.graph
        wanted = {
            name: max(1, min(executors.get(name, count), len(graph.tasks[name])))
            for name, count in graph.executors.items()
        }
        return CompiledTopology(dataclasses.replace(graph, executors=wanted), self.warning)

    def _repr_html_(self) -> str:
        return plan_html(self.expected())

    def explain(
        self,
        format: ExplainFormat = "text",  # noqa: A002 # the clearest name
        spark: SparkSession | None = None,
        width: int | None = None,
        master: str | None = None,
        checkpoint: str | os.PathLike[str] | None = None,
    ) -> str:
        """Returns a description of the plan that `start` would run.

        Args:
            format: `text` for people, `json`, `mermaid` for a diagram, or `spark` for Spark's own plan.
            spark: the session that it would run on. None for a local one, which is started only for `spark`.
            width: the maximum length of the lines of `text`; None for no limit.
            master: the master of that local session; None for all cores of this machine.
            checkpoint: the directory that it would continue from.

        Raises:
            CheckpointError: the checkpoint can't be read.
            SetupError: Spark can't be started, or the session is not a classic one.
        """
        if format == "spark":
            from storm_on_spark.spark.query.explained import spark_plan
            from storm_on_spark.spark.session import local_session

            spark = spark or local_session(master, self.session_conf(), checkpoint)
            return spark_plan(self.expected(spark, checkpoint=checkpoint), spark)
        plan = self.expected(spark, master, checkpoint)
        if format == "json":
            return json.dumps(explain_dict(plan), indent=2)
        if format == "mermaid":
            return explain_mermaid(plan)
        return explain_text(plan, width)

    def expected(
        self,
        spark: SparkSession | None = None,
        master: str | None = None,
        checkpoint: str | os.PathLike[str] | None = None,
    ) -> PlacedPlan:
        """Returns the plan that `start` would run; the arguments are those of `explain`.

        Without a session two things are unknown: the number of a cluster's cores, for which this machine's number is
        used, and the contents of a checkpoint in a store, which is treated as new.

        Raises:
            CheckpointError: the checkpoint can't be read.
            SetupError: the session is not a classic one.
        """
        from storm_on_spark.launch.conf_text import spark_conf
        from storm_on_spark.spark.checkpoint.directory import manifest_in
        from storm_on_spark.spark.checkpoint.location import location_of, place_of
        from storm_on_spark.spark.session import cores, expected_master, expected_parallelism
        from storm_on_spark.spark.session.settings.classic import require_classic
        from storm_on_spark.spark.session.settings.real_time import why_batches_here

        if spark is not None:
            require_classic(spark)
        manifest = None
        location = None if checkpoint is None else location_of(checkpoint)
        if location is not None and (spark is not None or location.path is not None):
            manifest = manifest_in(place_of(location, spark).open())
        conf, in_store = spark_conf(self.graph.conf), location is not None and location.path is None
        if spark is not None:
            parallelism, master = spark.sparkContext.defaultParallelism, str(spark.sparkContext.master)
        else:
            parallelism, master = expected_parallelism(master, conf) or cores(), expected_master(master, conf)
        return self.placed(parallelism, manifest, why_batches_here(self.graph.conf, master, in_store=in_store))

    def placed(self, parallelism: int, manifest: Manifest | None = None, session: str = "") -> PlacedPlan:
        """Returns the plan, with the number of partitions that the topology gets.

        Args:
            parallelism: the number of Spark's cores.
            manifest: the manifest of the checkpoint that the topology continues from; None for a first start.
            session: why tuples wait for micro-batches in the session; "" if nothing there prevents real time.
        """
        if manifest is None:
            return place(self.graph, partitions_of(self.graph, parallelism, session), session)
        return place(resumed_graph(self.graph, manifest), manifest.partitions, session)

    def start(
        self,
        spark: SparkSession | ComingSession | None = None,
        name: str = "topology",
        checkpoint: str | os.PathLike[str] | None = None,
        clock: Clock | None = None,
        active: bool = True,
        fence: Fence | None = None,
        port: int = NO_PORT,
        began: Callable[[Callable[[], TopologyInfo]], object] | None = None,
    ) -> TopologyQuery:
        """Starts the topology as one streaming query.

        In real time a new topology executes tuples before Spark does: while the session and the query start.

        Args:
            spark: the session to run on, or one that is started when it is needed; None starts or reuses a local one.
            name: the topology's name.
            checkpoint: directory to keep state in and continue from; None for a temporary one.
            clock: the source of the topology's time; None for the machine's monotonic clock.
            active: whether spouts emit from the start.
            fence: the fence of a checkpoint that drivers on several hosts may take over. Once it is lost, no further
                batch is planned and the topology ends.
            port: the port of the supervisor's slot that this process runs in, if any.
            began: called with what returns status and counters, once spouts are being opened and Spark may still start.

        Raises:
            CheckpointError: the checkpoint can't be used for this topology.
            ComponentError: a component can't be pickled, or a spout raised in `open`.
            SetupError: Spark can't be started or can't call this process, or the session is not a classic one.
            KeyboardInterrupt: an interrupt has come; nothing runs, and nothing is left.
        """
        from storm_on_spark.spark.session.interrupts import InterruptsWait

        with InterruptsWait() as interrupts:
            topology = self._start(interrupts, spark, name, checkpoint, clock, active, fence, port, began)
        if interrupts.have_come:
            topology.stop()
            interrupts.check()
        return topology

    def _start(
        self,
        interrupts: InterruptsWait,
        spark: SparkSession | ComingSession | None,
        name: str,
        checkpoint: str | os.PathLike[str] | None,
        clock: Clock | None,
        active: bool,
        fence: Fence | None,
        port: int,
        began: Callable[[Callable[[], TopologyInfo]], object] | None,
    ) -> TopologyQuery:
        from storm_on_spark.runtime.batches.metrics.recorder import Recorder
        from storm_on_spark.runtime.batches.written import Written
        from storm_on_spark.runtime.live.client import LiveClient, no_socket
        from storm_on_spark.runtime.live.execution.rounds import begin_rounds
        from storm_on_spark.runtime.live.processes.early import EarlyTasks
        from storm_on_spark.runtime.live.processes.watch import LiveWatch
        from storm_on_spark.spark.checkpoint.location import location_of
        from storm_on_spark.spark.checkpoint.readers import Readers
        from storm_on_spark.spark.checkpoint.stored import open_checkpoint
        from storm_on_spark.spark.checkpoint.temporary import check_temporary
        from storm_on_spark.spark.query.durability import MachineDurability, drop_torn, durability_of
        from storm_on_spark.spark.query.lowering import lower
        from storm_on_spark.spark.query.offset_log import OffsetLog
        from storm_on_spark.spark.query.reading.offset_server import OffsetServer
        from storm_on_spark.spark.query.reading.positions import SourceSettings
        from storm_on_spark.spark.query.reading.valves import Valves
        from storm_on_spark.spark.query.sink import Sink, open_callbacks
        from storm_on_spark.spark.running.executor_spouts import ExecutorSpouts
        from storm_on_spark.spark.running.failures import reporting_failure, topology_failed
        from storm_on_spark.spark.running.fenced import fenced_poll, tidy
        from storm_on_spark.spark.running.interrupts import interruptible
        from storm_on_spark.spark.running.live_elsewhere import LiveElsewhere, why_batches_elsewhere
        from storm_on_spark.spark.running.outlets import Outlets
        from storm_on_spark.spark.running.state_stores import close_state_stores
        from storm_on_spark.spark.running.topology import TopologyQuery
        from storm_on_spark.spark.session import ComingSession, local_session, settings_applied
        from storm_on_spark.spark.session.settings.classic import require_classic
        from storm_on_spark.spark.session.settings.real_time import is_here, why_batches_here

        if spark is not None and not isinstance(spark, ComingSession):
            require_classic(spark)
            spark = ComingSession.of(spark)
        start_id = new_start_id()
        early: list[Failure] = []
        running: list[TopologyQuery] = []

        def on_failure(failure: Failure) -> None:
            early.append(failure)
            if running:
                running[0].fail(failure)

        with contextlib.ExitStack() as stack:
            stack.enter_context(owned_run_folder(start_id))
            # Before Spark, so that a topology that can't be shipped or resumed costs no start of a JVM.
            pickled(self.graph.topology)
            if checkpoint is None:
                check_temporary(self.graph)
            if self.warning:
                log.warning("%s", self.warning)
            location = None if checkpoint is None else location_of(checkpoint)
            conf = self.session_conf()
            coming = spark or ComingSession.local(partial(local_session, None, conf, checkpoint), None, conf)

            def session_of() -> SparkSession:
                with interrupts.let_through() if coming.session is None else contextlib.nullcontext():
                    return coming.get()

            if location is not None and location.path is None:
                # Only a session knows how to reach a store.
                session_of()
            store = open_checkpoint(location, coming.session, fence)
            stack.callback(store.close)
            on_cluster = fence is not None
            fence = fence or store.fence
            manifest = store.manifest()
            resumed = store.committed() if manifest is not None and store.committed() >= 0 else None
            in_store = store.location.path is None
            here = why_batches_here(self.graph.conf, coming.master, in_store=in_store, by_hand=clock is not None)
            if not here and not is_here(coming.master):
                here = why_batches_elsewhere(session_of())
            plan = self.placed(coming.parallelism, manifest, here)
            # What has state waits for Spark, which keeps it; so does what needs executors elsewhere.
            at_once = manifest is None and not (why_not_live(plan) or no_socket(start_id)) and is_here(coming.master)
            if not at_once:
                open_callbacks(session_of())
            manifest = store.claim(name, plan)
            tidy(store, fence)
            # Also at the end, because an executor may have been killed without the driver.
            stack.callback(tidy, store, fence)
            place = PlaceSettings.of(plan.conf)
            remote = place.spouts == "executors"
            durability = durability_of(place, coming.master, on_cluster)
            named = {
                **plan.conf,
                Config.TOPOLOGY_NAME: name,
                Config.STORM_ID: manifest.storm_id,
                Config.TOPOLOGY_DURABILITY: durability,
            }
            plan = dataclasses.replace(plan, conf=named)
            at = ("", store.place) if isinstance(store.own, Storage) else (str(store.own), None)
            spec = make_spec(plan, name, manifest.storm_id, start_id, user_path(), at[0], at[1], port, store.owner)
            clear_notes(store.own, at_start=True)
            clear_work(store.own)
            durable = None
            if store.location.path is not None:
                drop_torn(store.location.path)
                if durability == "machine":
                    durable = MachineDurability(store.location.path)
            readers = Readers(store.root, plan)
            elsewhere = None
            if spec.realtime and not is_here(coming.master):
                elsewhere = LiveElsewhere(session_of(), name, start_id, processes_of(plan))
                stack.callback(elsewhere.close)
            address = None if elsewhere is None else elsewhere.address
            spec = dataclasses.replace(spec, readers=readers.begin(by_task=spec.realtime), address=address)
            written = Written(plan, manifest.storm_id, OffsetLog(store.root), durable)
            if not at_once:  # nothing that is live writes there
                written.open(session_of())
            make_host = None
            if remote:
                spouts = ExecutorSpouts(session_of(), name, start_id, len(spout_groups(plan)))
                stack.callback(spouts.close)
                make_host = spouts.host
            live = LiveClient(start_id, ReportSettings.of(plan.conf).stall_secs) if spec.realtime else None
            valves = Valves(set(plan.native_spouts) - spec.read_by_spark)
            outlets, recorder = Outlets(plan.conf), Recorder(inside(store.own, "metrics"))
            coordinator = Coordinator(
                spec,
                store.own,
                clock or SystemClock(),
                active and not at_once,
                on_failure,
                durable,
                make_host,
                live,
                valves.hold,
                recorder,
            )
            stack.callback(coordinator.stop)
            interrupts.check()
            # From here on spouts open and emit, while Spark prepares the query.
            started = time.monotonic()
            planned = store.planned()
            executed_ms = begin_rounds(store.own, store.owner, planned) if live else None
            coordinator.launch(planned, store.committed(), executed_ms)
            early_tasks = None
            if at_once and live is not None:
                settled = partial(coordinator.set_active, active)
                early_tasks = EarlyTasks(live, spec, coordinator.look_at_live, settled)
                stack.callback(early_tasks.close)
                early_tasks.start()
            if live is not None:
                if elsewhere is not None:
                    elsewhere.open(live, coordinator.metrics.add_reports)
                stack.enter_context(LiveWatch(start_id, coordinator.look_at_live, coordinator.metrics.add_reports))

            def info() -> TopologyInfo:
                return coordinator.metrics.info(name, "ACTIVE", time.monotonic() - started, None)

            if began is not None:
                began(info)
            if early_tasks is not None and coming.session is None:
                with interrupts.let_through(), interruptible():
                    early_tasks.go_first(lambda: info().acked > 0)
            session = session_of()
            open_callbacks(session)
            poll = coordinator.poll if fence is None else fenced_poll(coordinator.poll, fence, on_failure)
            server = OffsetServer(poll, on_failure)
            stack.callback(server.close)
            settings = SourceSettings(start_id, spec.dumps(), server.path, plan.partitions)
            wanted = {"spark.sql.shuffle.partitions": str(plan.partitions)}
            with settings_applied(session, wanted):
                frame, places = lower(session, spec, settings)
            with interrupts.let_through(), interruptible():
                coordinator.wait_until_open()
            # If a spout opens and fails immediately, the topology has failed.
            if early and not coordinator.has_opened(early[0].task):
                raise topology_failed(name, early[0])
            readers.settle(coordinator.reached)
            if early_tasks is not None:
                with interrupts.let_through(), interruptible():
                    early_tasks.hand_over()

            def start_query() -> StreamingQuery:
                with settings_applied(session, wanted), reporting_failure(name, fence):
                    query = (
                        frame.writeStream.foreachBatch(Sink(coordinator, on_failure, store.own, written))
                        .option("checkpointLocation", store.location.url)
                        .queryName(name)
                        .start()
                    )
                (running[0].at_end if running else stack.callback)(
                    partial(close_state_stores, session, store.root, store.location, query.runId)
                )
                valves.attach(query, session, places)
                return query

            query = start_query()
            timeout = TrackingSettings.of(plan.conf).timeout_secs
            topology = TopologyQuery(
                query,
                name,
                started,
                timeout,
                coordinator,
                lambda: [stall.sentence for stall in read_notes(store.own)],
                stack.pop_all(),
                fence,
                {name: text for spout in plan.native_spouts for name, text in spec.instance(spout).advice.items()},
                start_query,
            )
            topology.resumed_batch, topology.plan, topology.spark = resumed, plan, session
            running.append(topology)
            outlets.open(topology, name, recorder, port)
            # A reference cycle would keep an ended topology and its components until the next garbage collection.
            topology.at_end(running.clear)
            for failure in early:
                topology.fail(failure)
            topology.watch()
            return topology
