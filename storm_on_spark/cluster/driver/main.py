"""A driver's life: load, own, start, watch, end.

What takes long is done at the same time: the JVM starts while the code is loaded, the topology is owned and the former
owner is waited for.
"""

from __future__ import annotations

import logging
import os
import shutil
import signal
import sys
import threading
import time
import uuid
from concurrent.futures import Future
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from storm_on_spark.api.errors import CheckpointError, StormError
from storm_on_spark.api.info import WINDOWS
from storm_on_spark.api.text.traces import summary, trace_of
from storm_on_spark.cluster.driver.files import DriverSpec, LocalBeat, ProcessFile, RunFolder
from storm_on_spark.cluster.driver.link import ClusterLink
from storm_on_spark.cluster.driver.reports import Reports
from storm_on_spark.cluster.driver.state_rule import FROM_SCRATCH, GO_ON, Verdict, judge, starts_from_scratch
from storm_on_spark.cluster.driver.topology import load_topology, set_paths
from storm_on_spark.cluster.errors import ClusterError, RecordError
from storm_on_spark.cluster.heartbeats.settings import BEAT_SECS, HeartbeatSettings
from storm_on_spark.cluster.heartbeats.writer import driver_writer
from storm_on_spark.cluster.log_config import effective_levels
from storm_on_spark.cluster.records import CheckpointInfo, ErrorRecord, WorkerBeat
from storm_on_spark.cluster.security.keyring import Keyring
from storm_on_spark.cluster.security.logs import log_safely
from storm_on_spark.cluster.zookeeper.settings import ZooKeeperSettings
from storm_on_spark.launch.conf_text import spark_conf
from storm_on_spark.runtime.processes import credentials
from storm_on_spark.runtime.processes.diagnostics import log_levels, prints
from storm_on_spark.runtime.processes.ending.signals import setting
from storm_on_spark.runtime.processes.sessions import session_members
from storm_on_spark.runtime.samples.book import SAMPLES_LOG
from storm_on_spark.spark.checkpoint.directory import clear_checkpoint, found_in
from storm_on_spark.spark.checkpoint.owner import Owner
from storm_on_spark.spark.checkpoint.stored import CheckpointFence, is_in_a_store, take_over

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from storm_on_spark.spark.compiled import CompiledTopology
    from storm_on_spark.spark.running.topology import TopologyQuery

log = logging.getLogger("storm_on_spark.driver")

_LOOP_SECS = 0.1
_LOCAL_BEAT_SECS = 1.0
_GRACE_SECS = 3.0
"""How long an owner on another machine has to notice that it is none: it looks many times a second."""
_PATIENCE_SECS = 60.0
"""How long to wait for the end of an owner on this machine."""
_LOG_BYTES = 32 << 20

DONE, FAILED, FENCED = 0, 1, 3
"""Exit codes; a supervisor goes by the last heartbeat."""


@dataclass
class Heart:
    """The heartbeat for the supervisor. While the topology starts a thread beats, then the main loop does."""

    folder: RunFolder
    number: int = 0
    step: Any = "starting"
    status: str = ""
    message: str = ""
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def beat(self) -> None:
        """Beats once."""
        with self._lock:
            self.number += 1
            try:
                self.folder.write(
                    LocalBeat(number=self.number, step=self.step, status=self.status, message=self.message)
                )
            except OSError as error:
                log.warning("no heartbeat: %s", error)

    def say(self, message: str) -> None:
        """Beats with word of what is being done."""
        log.info("%s", message)
        self.message = message
        self.beat()

    def beat_while_starting(self) -> None:
        """Beats until the topology runs or has ended."""
        while self.step == "starting":
            self.beat()
            time.sleep(_LOCAL_BEAT_SECS)


class Driver:
    """Runs one topology.

    Args:
        folder: shared with the supervisor.
        spec: what to run.
        process: the process that runs it.
        session: to run it on; one is started for None.
    """

    def __init__(
        self, folder: RunFolder, spec: DriverSpec, process: ProcessFile, session: SparkSession | None = None
    ) -> None:
        self._session = session
        self._spec = spec
        self._process = process
        self._heart = Heart(folder)
        self._reports = Reports(spec)
        heartbeats = HeartbeatSettings.from_conf(spec.cluster)
        self._link = ClusterLink(
            ZooKeeperSettings.from_conf(spec.cluster),
            spec.assignment,
            spec.assignment_version,
            Keyring.of(heartbeats.security),
        )
        self._beats = driver_writer(heartbeats, self._link.beat_writer, spec.assignment.topology_id)
        self._stop = threading.Event()
        # A spare has told its JVM another place.
        path = os.environ.setdefault(log_levels.VARIABLE, str(folder.log_levels))
        self._levels = log_levels.Published(Path(path))
        #: Whether the log has said that the checkpoint does not take them.
        self._levels_fail = False
        path = os.environ.setdefault(credentials.VARIABLE, str(folder.credentials))
        self._credentials = credentials.Published(Path(path))
        #: What ZooKeeper says of the topology's state, and whether there is no more to say about that.
        self._known: CheckpointInfo | None = None
        self._noted = False
        #: The session, where the checkpoint is in a store: nothing else knows how that is reached.
        self._store: SparkSession | None = None

    def run(self) -> NoReturn:
        """Runs the topology to its end, and ends the process."""
        log_safely("%(asctime)s %(levelname)s %(name)s: %(message)s")
        # What the user's code prints here: the topology's module, and what sinks write with.
        sys.stdout = prints.labelled(sys.stdout)
        logging.getLogger("kazoo").setLevel(logging.ERROR)
        logging.getLogger("py4j").setLevel(logging.WARNING)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, setting(self._stop))
        threading.Thread(target=self._heart.beat_while_starting, name="driver-heart", daemon=True).start()
        set_paths(self._spec)
        spark: Future[SparkSession] = Future()
        threading.Thread(target=self._start_spark, args=(spark,), name="driver-spark", daemon=True).start()
        try:
            query, fence = self._start(spark)
        except ClusterError as error:
            # Another driver has the topology, or this one was stopped before it began.
            self._die(DONE if self._stop.is_set() else FENCED, str(error))
        except Exception as error:
            trace = trace_of(error)
            log.error("the topology can't be started", exc_info=not (trace or isinstance(error, StormError)))
            reason = str(error) if isinstance(error, StormError) else summary(error)
            if trace:
                log.error("%s", trace.rstrip())
            self._end_link(self._reports.failed(reason), self._reports.error(reason, trace))
            self._die(FAILED, reason)
        self._watch(query, fence)
        self._end(query, fence)

    # Starting.

    def _start_spark(self, result: Future[SparkSession]) -> None:
        from storm_on_spark.spark.session import local_session, log_file

        if self._session is not None:
            log.info("Spark runs already; its log is %s", log_file())
            result.set_result(self._session)
            return
        conf = spark_conf({**self._spec.cluster, **self._spec.conf})
        try:
            session = local_session(conf.pop("spark.master", None), conf, self._spec.checkpoint)
        except BaseException as error:
            result.set_exception(error)
        else:
            log.info("Spark runs; its log is %s", log_file())
            result.set_result(session)

    def _start(self, spark: Future[SparkSession]) -> tuple[TopologyQuery, CheckpointFence]:
        self._heart.say("connecting to ZooKeeper")
        self._link.connect(self._stop.is_set)
        self._heart.say("loading the topology")
        compiled = self._load()
        self._heart.say("taking ownership")
        epoch = self._link.own(self._stop.is_set)
        # Before anything is opened or prepared.
        self._set_credentials()
        if is_in_a_store(self._spec.checkpoint):
            # Only a session knows how a store is reached.
            self._heart.say("waiting for Spark")
            self._store = spark.result()
        verdict = self._judge()
        scope = self._spec.assignment.topology_id
        process = self._process
        owner = Owner(scope, epoch, uuid.uuid4().hex, process.kernel, process.pid, process.started)
        fence = take_over(self._spec.checkpoint, owner, self._store)
        self._link.watch(fence.renew)
        if fence.former is not None:
            self._heart.say("waiting for the former owner of the checkpoint to end")
        fence.await_former(_GRACE_SECS, _PATIENCE_SECS)
        if verdict.do == "start from scratch":
            self._heart.say("removing the topology's state, as it was asked to")
            clear_checkpoint(self._spec.checkpoint, self._spec.name, self._store)
            self._known = self._state_info("")
            self._link.forget_state(self._known, self._stop.is_set)
        self._heart.say("waiting for Spark")
        session = spark.result()
        self._heart.say("starting the topology")
        if self._stop.is_set():
            raise ClusterError("told to end before the topology was started")
        query = self._start_query(compiled, session, fence)
        log.info("the topology runs")
        return query, fence

    def _judge(self) -> Verdict:
        """Returns whether the topology may start on what is in its checkpoint.

        Raises:
            CheckpointError: it may not; that is for a person to decide.
        """
        assignment = self._spec.assignment
        problem: RecordError | None = None
        try:
            self._known = self._link.state_known()
        except RecordError as error:
            problem = error
        if self._known is not None and starts_from_scratch(self._known, assignment.launch):
            return FROM_SCRATCH
        found = found_in(self._spec.checkpoint, self._store)
        if problem is not None:
            if found.committed:
                log.warning("%s; continuing from the checkpoint", problem)
                return GO_ON
            raise CheckpointError(
                f"topology {self._spec.name!r} may have state, and there is none at {self._spec.checkpoint}: {problem}"
            )
        location, name = self._spec.checkpoint, self._spec.name
        verdict = judge(self._known, assignment.launch, found, location, assignment.host, name)
        if verdict.do == "refuse":
            raise CheckpointError(verdict.reason)
        return verdict

    def _state_info(self, identity: str) -> CheckpointInfo:
        assignment = self._spec.assignment
        return CheckpointInfo(
            topology_id=assignment.topology_id,
            location=self._spec.checkpoint,
            identity=identity,
            launch=assignment.launch,
            host=assignment.host,
        )

    def _note_state(self) -> None:
        """Records the topology's state in ZooKeeper, from its first commit on."""
        try:
            found = found_in(self._spec.checkpoint, self._store)
        except (CheckpointError, OSError):
            return  # the query fails by itself
        if self._noted or not found.committed:
            return
        self._noted = True
        known = self._known
        if known is None or (known.identity, known.location) != (found.identity, self._spec.checkpoint):
            self._link.say_state(self._state_info(found.identity))

    def _load(self) -> CompiledTopology:
        return load_topology(self._spec)

    def _start_query(self, compiled: CompiledTopology, session: SparkSession, fence: CheckpointFence) -> TopologyQuery:
        return compiled.start(
            session,
            name=self._spec.name,
            checkpoint=self._spec.checkpoint,
            active=self._active(),
            fence=fence,
            port=self._spec.assignment.port,
        )

    def _active(self) -> bool:
        base = self._link.base
        return base is not None and base.status == "ACTIVE"

    # Watching.

    def _watch(self, query: TopologyQuery, fence: CheckpointFence) -> None:
        active = self._active()
        self._heart.step = "running"
        local_at = beat_at = 0.0
        while query.isActive:
            reason = fence.lost() or self._link.lost
            if reason is not None:
                self._die(FENCED, reason)
            if self._stop.is_set() or self._link.released is not None:
                break
            if self._active() != active:
                active = not active
                log.info("the topology is %s", "activated" if active else "deactivated")
                query.activate() if active else query.deactivate()
                local_at = beat_at = 0.0
            self._set_log_levels(query)
            self._set_credentials()
            self._sample(query)
            now = time.monotonic()
            if not self._noted:
                self._note_state()
            if now >= local_at:
                local_at = now + _LOCAL_BEAT_SECS
                self._heart.status = "ACTIVE" if active else "INACTIVE"
                self._heart.message = ""
                self._heart.beat()
                self._bound_log()
                query.samples.gather()
            if now >= beat_at:
                beat_at = now + BEAT_SECS
                self._publish(query)
            self._stop.wait(_LOOP_SECS)

    def _sample(self, query: TopologyQuery) -> None:
        """Samples what is wanted."""
        base, samples = self._link.base, query.samples
        if base is None or base.debug == samples.rates:
            return
        samples.file = samples.file or Path(self._spec.log).with_name(SAMPLES_LOG)
        try:
            samples.set_all(base.debug)
            log.info("tuples are sampled: %s", base.debug or "none")
        except OSError as error:
            log.warning("what is to be sampled can't be written to the checkpoint: %s", error)

    def _publish(self, query: TopologyQuery) -> None:
        info = query.status_info(WINDOWS)
        self._beats.put(self._reports.beat(info, query.plan))
        for error in self._reports.new_errors(info):
            self._link.report(error)

    def _set_log_levels(self, query: TopologyQuery) -> None:
        wanted = effective_levels(self._link.log_levels, time.time())
        try:
            if self._levels.set(wanted):
                log.warning("log levels: %s", ", ".join(f"{k}={v}" for k, v in sorted(wanted.items())) or "as before")
        except OSError as error:
            log.warning("log levels can't be changed: %s", error)
        try:
            query.samples.set_levels(wanted)
            self._levels_fail = False
        except OSError as error:
            if not self._levels_fail:
                log.warning("log levels can't be written to the checkpoint, for other machines: %s", error)
            self._levels_fail = True

    def _set_credentials(self) -> None:
        wanted = self._link.credentials
        try:
            if self._credentials.set(wanted):
                log.info("the topology has %d credentials now", len(wanted))
                master = str({**self._spec.cluster, **self._spec.conf}.get("spark.master", "local"))
                if wanted and not master.startswith("local"):
                    log.warning("processes on other machines than this one are given no credentials")
        except OSError as error:
            log.error("credentials can't be handed to the topology's processes: %s", error.strerror)

    def _bound_log(self) -> None:
        path = Path(self._spec.log)
        try:
            if path.stat().st_size > _LOG_BYTES:
                shutil.copyfile(path, path.with_name(path.name + ".1"))
                os.truncate(path, 0)  # it is open for appending: writing continues at its new end
        except OSError as error:
            log.warning("%s: %s", path, error)

    # Ending.

    def _end(self, query: TopologyQuery, fence: CheckpointFence) -> NoReturn:
        asked_to_end = self._stop.is_set() or self._link.released is not None
        if asked_to_end:
            log.info("ending: %s", self._link.released or "the supervisor says so")
        query.stop()
        reason = fence.lost() or self._link.lost
        if reason is not None:
            self._die(FENCED, reason)
        info = query.status_info(WINDOWS)
        self._note_state()
        # What has ended writes no more: the next owner need not wait.
        fence.release()
        log.info("the topology has ended: %s%s", info.status, f", {info.error}" if info.error else "")
        if info.error_trace:
            log.error("%s", info.error_trace.rstrip())
        self._end_spark()
        for error in self._reports.new_errors(info):
            self._link.report(error)
        # First, since the link may have to wait for ZooKeeper: what is complete is not to be started again meanwhile.
        self._heart.step, self._heart.status, self._heart.message = "ended", info.status, info.error or ""
        self._heart.beat()
        failed = info.error and self._reports.error(info.error, info.error_trace, info.error_input)
        self._end_link(self._reports.beat(info, query.plan), failed or None)
        self._credentials.remove()
        logging.shutdown()
        os._exit(FAILED if info.status == "FAILED" else DONE)

    def _end_spark(self) -> None:
        from pyspark.sql import SparkSession

        from storm_on_spark.spark.session import stop_session

        session = SparkSession.getActiveSession()
        if session is not None and not (session.sparkContext.master or "").startswith("local"):
            stop_session(session)  # a cluster manager is told that its executors can go
        # A separate JVM has nothing left to do, and ending it in order takes a second.
        self._kill_others()

    def _end_link(self, last: WorkerBeat, error: ErrorRecord | None) -> None:
        # Last words go to ZooKeeper, wherever heartbeats go: they have to last.
        self._beats.close()
        self._link.close(last, () if error is None else (error,))

    def _die(self, code: int, reason: str) -> NoReturn:
        """Ends everything at once, without touching the checkpoint any more."""
        log.error("the driver ends: %s", reason)
        self._heart.step, self._heart.message = "ended", reason[:2000]
        self._heart.status = "FAILED" if code == FAILED else "KILLED"
        self._kill_others()
        self._credentials.remove()
        self._heart.beat()
        logging.shutdown()
        os._exit(code)

    def _kill_others(self) -> None:
        for _ in range(100):
            others = [pid for pid in session_members(os.getpid()) if pid != os.getpid()]
            if not others:
                return
            for pid in others:
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    continue
            time.sleep(0.01)
