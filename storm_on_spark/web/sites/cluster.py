"""A cluster, as one of its Nimbuses sees it. What changes something goes to the leader, whoever is asked."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any, Final
from urllib.parse import quote, unquote

from storm_on_spark.api.config.secrets import hidden
from storm_on_spark.api.errors import NotAliveError, StormError
from storm_on_spark.api.info import ErrorInfo
from storm_on_spark.cluster.client.nimbus_client import NimbusClient
from storm_on_spark.cluster.errors import ClusterError, NotLeaderError
from storm_on_spark.cluster.nimbus.control import Control
from storm_on_spark.cluster.plan_summary import PlanSummary
from storm_on_spark.cluster.records import ErrorRecord, StormBase
from storm_on_spark.cluster.rest.pages.summaries import nimbus_summary
from storm_on_spark.cluster.rest.pages.topology_page import beat_errors
from storm_on_spark.cluster.rest.picture.kept import Kept
from storm_on_spark.cluster.rest.picture.limits import limits_of
from storm_on_spark.cluster.rest.picture.snapshot import Picture, driver_info
from storm_on_spark.cluster.zookeeper.settings import ZooKeeperSettings
from storm_on_spark.runtime.samples.book import SAMPLES_LOG
from storm_on_spark.runtime.samples.events import TupleEvent, decoded
from storm_on_spark.web.model import (
    ALL_ACTIONS,
    ActionName,
    Change,
    ChangedLevel,
    ClusterView,
    Daemon,
    Link,
    LogFile,
    LogPart,
    Part,
    PlacedError,
    PlannedOperator,
    RefusedError,
    Samples,
    Shape,
    TopologyView,
)
from storm_on_spark.web.settings import UiSettings
from storm_on_spark.web.sites.levels import level_told, wanted_level
from storm_on_spark.web.sites.once import Once
from storm_on_spark.web.sites.sampling import sample_told, wanted_sample

_MOST_SAID: Final = 2_000
_CLIENT_KEYS: Final = ("nimbus.auth.", "nimbus.thrift.port", "storm.tls.ca.file")

_SAMPLE_BYTES: Final = 512 << 10
"""At the end of the file of samples."""


class ClusterSite:
    """The cluster of a Nimbus.

    Args:
        control: the Nimbus.
        clock: monotonic seconds.
    """

    is_cluster = True
    title = "Cluster"

    def __init__(self, control: Control, clock: Callable[[], float] = time.monotonic) -> None:
        self._control = control
        self._once = Once(clock)
        #: By topology id; looked at more often than they change.
        self._confs, self._links, self._shapes = Kept[dict[str, Any]](), Kept[tuple[Link, ...]](), Kept[Shape]()
        #: By topology id: the launch and the plan that the last heartbeat told of.
        self._said: dict[str, tuple[int, dict[str, Any]] | None] = {}
        enabled = UiSettings.of(control.conf).actions_enabled
        self.actions: tuple[ActionName, ...] = ALL_ACTIONS if enabled else ()

    def now(self) -> float:
        """Returns seconds since the epoch."""
        return self._control.now()

    def cluster(self) -> ClusterView | None:
        """Returns the daemons."""
        return self._once.of("cluster", self._cluster)

    def topologies(self) -> list[TopologyView]:
        """Returns all topologies, by name."""
        return self._once.of("topologies", self._topologies)

    def topology(self, topology_id: str) -> TopologyView:
        """Returns one, with its errors."""
        base = self._control.topology(topology_id)
        picture = Picture.of(self._control)
        errors = self._once.of(f"errors {topology_id}", lambda: self._control.errors(topology_id))
        found = beat_errors(picture, topology_id) if errors is None else errors
        return self._view(picture, base, found)

    def samples(self, topology_id: str) -> Samples:
        """Returns the last samples, from the file that the driver keeps beside its log."""
        base = self._control.topology(topology_id)
        return Samples(base.debug, self._once.of(f"samples {topology_id}", lambda: self._events(topology_id)))

    def _events(self, topology_id: str) -> tuple[TupleEvent, ...]:
        where = self._control.snapshot().assignments.get(topology_id)
        if where is None:
            return ()
        name = f"{quote(where.supervisor_id, safe='')}/{topology_id}/{where.port}/{SAMPLES_LOG}"
        try:
            part = self.read_log(name, -_SAMPLE_BYTES, _SAMPLE_BYTES)
        except StormError:
            # Nothing was sampled there yet, or that host doesn't answer.
            return ()
        return tuple(decoded(part.text.encode()))

    def act(self, subject: str, action: ActionName, options: Mapping[str, str], who: str) -> str:
        """Changes a topology, here or at the leader."""
        base = self._control.topology(subject)
        wait = _seconds(options.get("wait", ""))
        if action == "log-level":
            return self._set_log_level(subject, options, who)
        try:
            if action == "activate":
                self._control.activate(subject, who)
            elif action == "deactivate":
                self._control.deactivate(subject, who)
            elif action == "sample":
                self._control.sample(subject, *wanted_sample(options), who)
            elif action == "kill":
                self._control.kill(subject, wait, who)
            else:
                self._control.rebalance(subject, wait, {}, {}, by=who)
        except NotLeaderError as error:
            with self._leader(error, who) as leader:
                if action in ("activate", "deactivate"):
                    getattr(leader, action)(subject)
                elif action == "sample":
                    leader.sample(subject, *wanted_sample(options))
                elif action == "kill":
                    leader.kill(subject, wait)
                else:
                    leader.rebalance(subject, wait)
        if action == "sample":
            return f"From now on: {sample_told(*wanted_sample(options))}."
        done = {"activate": "activated", "deactivate": "deactivated", "kill": "killed", "rebalance": "rebalanced"}
        return f"{base.name} is {done[action]}" + (f", {wait:g} s from now." if wait else ".")

    def _set_log_level(self, topology_id: str, options: Mapping[str, str], who: str) -> str:
        logger, level = wanted_level(options, self._control.now())
        try:
            self._control.set_log_levels(topology_id, {logger: level}, who)
        except NotLeaderError as error:
            with self._leader(error, who) as leader:
                leader.set_log_levels(topology_id, {logger: None if level is None else (level.level, level.secs)})
        return f"From now on: {level_told(logger, level)}."

    def _leader(self, error: NotLeaderError, who: str) -> NimbusClient:
        """Returns a client of the leader that an error names; raises the error if it names none."""
        if error.leader is None:
            raise error
        conf = {key: value for key, value in self._control.conf.items() if key.startswith(_CLIENT_KEYS)}
        return NimbusClient({**conf, "storm.nimbus.retry.times": 0}, seeds=[error.leader], behalf=who)

    def log_levels(self, topology_id: str) -> list[ChangedLevel]:
        """Returns the levels of loggers that were changed and still count."""
        found = self._control.log_levels(topology_id)
        return [ChangedLevel(name, level.level, level.until) for name, level in sorted(found.items())]

    def changes(self, topology_id: str = "") -> list[Change]:
        """Returns who changed what, newest first."""
        return [
            Change(each.time, each.who, each.what, each.topology_id)
            for each in self._once.of("changes", self._control.changes)
            if topology_id in ("", each.topology_id)
        ]

    def logs(self, topology_id: str) -> list[LogFile]:
        """Returns the drivers' logs on all hosts that answer."""
        return self._once.of(f"logs {topology_id}", lambda: self._logs(topology_id))

    def read_log(self, log: str, start: int, length: int) -> LogPart:
        """Returns a part of the log of a driver."""
        supervisor_id, _, file = log.partition("/")
        supervisor = self._control.snapshot().supervisors.get(unquote(supervisor_id))
        if supervisor is None or not supervisor.logs:
            raise NotAliveError(f"there is no log {log[:200]!r}")
        link = f"{self._control.scheme}://{supervisor.logs}/api/v1/log?file={quote(file, safe='')}"
        with self._client() as client:
            part = client.log(link, start, length)
        return LogPart(part.data.decode(errors="replace"), part.start, part.size)

    # How.

    def _client(self) -> NimbusClient:
        conf = {key: value for key, value in self._control.conf.items() if key.startswith(_CLIENT_KEYS)}
        return NimbusClient({**conf, "storm.nimbus.retry.times": 0}, seeds=[self._control.address])

    def _cluster(self) -> ClusterView:
        control, picture = self._control, Picture.of(self._control)
        snapshot, now = picture.snapshot, picture.now
        listed = nimbus_summary(picture, control.settings.seeds, control.settings.port).nimbuses
        nimbuses = tuple(
            Daemon(
                f"{each.host}:{each.port}",
                f"{each.host}:{each.port}",
                {"Not a Leader": "Stands by"}.get(each.status, each.status),
                None if each.status == "Offline" else float(each.nimbus_up_time_seconds),
                each.version,
                tuple(f"lacks the code of {name}" for name in each.missing_code[:5]),
            )
            for each in listed
        )
        supervisors = tuple(
            Daemon(
                each.supervisor_id,
                each.host,
                "Up",
                now - each.started_at,
                each.version,
                (),
                len(each.slots),
                picture.slots_used.get(each.supervisor_id, 0),
            )
            for each in sorted(snapshot.supervisors.values(), key=lambda each: (each.host, each.supervisor_id))
        )
        pacemakers = tuple(
            Daemon(
                each.server,
                each.server,
                "Up" if each.away_since is None else "Away",
                None,
                "",
                (each.problem or f"{each.pulses:,} heartbeats",),
            )
            for each in picture.heartbeats.pacemakers
        )
        stale = control.stale_since
        where = ZooKeeperSettings.from_conf(control.conf).hosts
        return ClusterView(
            "" if snapshot.leader is None else snapshot.leader.address,
            control.address,
            nimbuses,
            supervisors,
            pacemakers,
            Daemon("zookeeper", where, "Connected" if stale is None else "Away"),
            stale,
            picture.heartbeats.reason if picture.heartbeats.unknown_since is not None else "",
            tuple(snapshot.problems.values()),
            hidden(control.conf),
        )

    def _topologies(self) -> list[TopologyView]:
        picture = Picture.of(self._control)
        bases = sorted(picture.snapshot.storms.values(), key=lambda base: (base.name, base.topology_id))
        return [self._view(picture, base, {}) for base in bases]

    def _view(self, picture: Picture, base: StormBase, errors: Mapping[str, list[ErrorRecord]]) -> TopologyView:
        topology_id, snapshot = base.topology_id, picture.snapshot
        beat = snapshot.workerbeats.get(topology_id)
        if beat is not None and beat.launch != base.launch:
            beat = None
        assignment, code = snapshot.assignments.get(topology_id), snapshot.code.get(topology_id)
        launched = beat.started_at if beat is not None else 0.0
        placed = [
            PlacedError(_error(record), f"{record.host}:{record.port}", record.time < launched)
            for records in errors.values()
            for record in records
        ]
        return TopologyView(
            topology_id,
            base.name,
            base.status,
            picture.now - base.submitted_at,
            driver_info(beat),
            0.0 if beat is None else beat.time,
            self._shape(picture, base),
            self._confs.of(topology_id, (base.conf,), lambda: hidden(base.conf)),
            tuple(sorted(placed, key=lambda each: each.error.time)),
            owner=base.owner,
            driver="" if assignment is None else f"{assignment.host}:{assignment.port}",
            supervisor="" if assignment is None else assignment.supervisor_id,
            waits=picture.waiting.get(topology_id, ""),
            replicas=() if code is None else tuple(sorted(code.replicas)),
            replicas_wanted=_wanted(base, picture),
            heartbeats_unknown=picture.heartbeats.reason if picture.heartbeats.unknown_since is not None else "",
        )

    def _shape(self, picture: Picture, base: StormBase) -> Shape:
        """Returns the same shape again as long as the records that it is made of are the same."""
        plan, beat = picture.plan(base.topology_id), picture.snapshot.workerbeats.get(base.topology_id)
        # Each heartbeat names the plan that runs, which rarely changes.
        said = self._said.get(base.topology_id)
        runs = None if beat is None else (beat.launch, beat.plan)
        if said != runs:
            if len(self._said) > _MOST_SAID:
                self._said.clear()
            self._said[base.topology_id] = said = runs
        made_of = (base, plan, said, beat if plan is None else None)
        return self._shapes.of(base.topology_id, made_of, lambda: self._shaped(picture, base, plan))

    def _shaped(self, picture: Picture, base: StormBase, plan: PlanSummary | None) -> Shape:
        running = picture.running_plan(base.topology_id)
        stage_of: dict[str, int] = {}
        operators: tuple[PlannedOperator, ...] = ()
        if running is not None:
            stages = {stage.index: stage for stage in running.stages}
            stage_of = {name: stage.index for stage in running.stages for name in stage.components}
            operators = tuple(
                PlannedOperator(
                    each.becomes,
                    each.exchange,
                    tuple((at, stages[at].kind, stages[at].components) for at in each.stages if at in stages),
                )
                for each in running.operators
            )
        return Shape(
            {
                name: Part(
                    name,
                    kind,
                    tuple(range(tasks)) if plan is None else plan.components[name].tasks,
                    executors,
                    stage_of.get(name),
                )
                for name, (kind, tasks, executors) in picture.components(base).items()
            },
            ()
            if plan is None
            else self._links.of(base.topology_id, (plan,), lambda: tuple(Link(*_edge(edge)) for edge in plan.edges)),
            operators,
            None if running is None else running.partitions,
            0 if plan is None else len(plan.acker_tasks),
        )

    def _logs(self, topology_id: str) -> list[LogFile]:
        found = []
        with self._client() as client:
            for supervisor in self._control.snapshot().supervisors.values():
                if not supervisor.logs:
                    continue
                link = f"{self._control.scheme}://{supervisor.logs}/api/v1/logs"
                try:
                    kept = client.logs_at(link, topology_id)
                except ClusterError:
                    # That host doesn't answer; the others' logs can be read.
                    continue
                where = quote(supervisor.supervisor_id, safe="")
                found += [
                    LogFile(f"{where}/{log.file}", supervisor.host, log.size, log.modified, log.file) for log in kept
                ]
        return found


def _wanted(base: StormBase, picture: Picture) -> int:
    """Returns how many Nimbuses are to have the code of a topology: as many as configured, and all that run."""
    return max(1, limits_of(base.topology_id, base.conf).min_replicas, len(picture.snapshot.nimbuses))


def _error(record: ErrorRecord) -> ErrorInfo:
    values = {part.name: getattr(record, part.name) for part in fields(ErrorInfo) if hasattr(record, part.name)}
    return ErrorInfo(**{**values, "first_time": record.time if record.first_time is None else record.first_time})


def _edge(edge: object) -> tuple[str, str, str, str]:
    return tuple(str(getattr(edge, name)) for name in ("source", "stream", "target", "grouping"))  # type: ignore[return-value]


def _seconds(text: str) -> float | None:
    """Returns a wait in seconds; None for the topology's message timeout."""
    if not text.strip():
        return None
    if not re.fullmatch(r"\d{1,9}(\.\d{1,3})?", text.strip()):
        raise RefusedError(f"the wait must be a number of seconds, not {text[:80]!r}")
    return float(text)
