"""What can be asked of a Nimbus: to show the cluster, and, of the leader, to change a topology."""

from __future__ import annotations

import contextlib
import functools
import getpass
import logging
import random
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, TypeVar

import msgspec

import storm_on_spark
from storm_on_spark.api.config.secrets import without_secrets
from storm_on_spark.api.errors import ConfigError, NotAliveError
from storm_on_spark.cluster.code.distributor import CodeDistributor
from storm_on_spark.cluster.code.distributors.local import LocalFileSystemCodeDistributor
from storm_on_spark.cluster.credentials import checked_credentials
from storm_on_spark.cluster.errors import (
    ClusterError,
    CodeError,
    ConflictError,
    FormatError,
    NotLeaderError,
    RecordError,
    UnavailableError,
)
from storm_on_spark.cluster.heartbeats.knowledge import Knowledge
from storm_on_spark.cluster.heartbeats.reader import HeartbeatReader, ZooKeeperReader
from storm_on_spark.cluster.leadership import LeaderElector
from storm_on_spark.cluster.log_config import changed, in_words, shown_levels
from storm_on_spark.cluster.nimbus import lifecycle
from storm_on_spark.cluster.nimbus.accepting.inbox import Inbox
from storm_on_spark.cluster.nimbus.accepting.submission import Submissions, SubmissionState, SubmitRequest, state_of
from storm_on_spark.cluster.nimbus.credentials import store_credentials
from storm_on_spark.cluster.nimbus.repairs import LISTED, Problem, problems
from storm_on_spark.cluster.nimbus.scheduling.draining import DrainPage, drain_page, supervisor_named
from storm_on_spark.cluster.nimbus.settings import NimbusSettings
from storm_on_spark.cluster.paths import CHECKPOINTS, CODE, DRAINS, LOGCONFIGS, NAMES, STORMS
from storm_on_spark.cluster.records import (
    ChangeRecord,
    CheckpointInfo,
    Drain,
    ErrorRecord,
    LogConfig,
    LogLevel,
    NameClaim,
    StormBase,
)
from storm_on_spark.cluster.security.permissions import Permissions, Right, Who
from storm_on_spark.cluster.security.tls import Scheme
from storm_on_spark.cluster.state import (
    Change,
    Check,
    ClusterSnapshot,
    ClusterState,
    ClusterView,
    Create,
    Delete,
    Fence,
    Put,
)

logger = logging.getLogger(__name__)

_ATTEMPTS: Final = 10
_PAUSE_SECS: Final = 0.02

_T = TypeVar("_T")


class Control:
    """A Nimbus as its REST interface sees it. Any thread may call it.

    Reads are answered from the watched copy, also while ZooKeeper is away. What changes anything is the leader's.

    Args:
        conf: configuration of this Nimbus, to be shown.
        settings: the part of it that Nimbus uses.
        address: its `host:port`.
        state: ZooKeeper.
        view: the watched copy of it.
        elector: who leads.
        distributor: where topologies' code is.
        submissions: what accepts topologies.
        inbox: where artifacts wait for their submission.
        now: seconds since the epoch.
        scheme: of URLs in this cluster.
        reader: what is known of heartbeats; None if they are in ZooKeeper.
    """

    def __init__(
        self,
        conf: Mapping[str, Any],
        settings: NimbusSettings,
        address: str,
        state: ClusterState,
        view: ClusterView,
        elector: LeaderElector,
        distributor: CodeDistributor,
        submissions: Submissions,
        inbox: Inbox,
        now: Callable[[], float] = time.time,
        scheme: Scheme = "http",
        reader: HeartbeatReader | None = None,
    ) -> None:
        self.conf = dict(conf)
        self.settings = settings
        self.scheme: Scheme = scheme
        self.address = address
        self.inbox = inbox
        self.now = now
        self.user = getpass.getuser()
        self.permissions = Permissions.of(conf)
        self.version = storm_on_spark.__version__
        self._state = state
        self._view = view
        self._elector = elector
        self._distributor = distributor
        self._submissions = submissions
        self._reader = ZooKeeperReader() if reader is None else reader

    # Reading.

    def snapshot(self) -> ClusterSnapshot:
        """Returns the cluster as it is known here."""
        return self._view.snapshot()

    @property
    def leads(self) -> bool:
        """Whether this Nimbus leads, as far as it knows."""
        return self._elector.is_leader()

    @property
    def stale_since(self) -> float | None:
        """Since when the snapshot may be out of date; None while it is kept up to date."""
        return self._view.stale

    def heartbeats(self) -> Knowledge:
        """Returns what is known of heartbeats as a whole."""
        return self._reader.knowledge()

    def topology(self, topology_id: str) -> StormBase:
        """Returns a topology.

        Raises:
            NotAliveError: there is none of that id.
        """
        base = self.snapshot().storms.get(topology_id)
        if base is None:
            problem = self.snapshot().unread(STORMS).get(topology_id)
            if problem is not None:
                raise FormatError(f"topology {topology_id} exists, but its record can't be read: {problem.reason}")
            raise NotAliveError(f"there is no topology with the id {topology_id[:220]!r}")
        return base

    def check(self, right: Right, who: Who, topology_id: str = "", what: str = "that") -> None:
        """Refuses a user who may not do this; see `Permissions`.

        Raises:
            ForbiddenError: it is refused.
        """
        self.permissions.check(right, who, self.snapshot().storms.get(topology_id), what)

    def errors(self, topology_id: str) -> dict[str, list[ErrorRecord]] | None:
        """Returns the last errors by component, oldest first; None if they can't be read at the moment."""
        if self._view.stale is not None:
            return None
        try:
            return self._state.errors(topology_id)
        except UnavailableError:
            return None

    def submission(self, key: str) -> SubmissionState | None:
        """Returns the progress of a submission; None if there is none with that key."""
        return state_of(self.snapshot(), key, self.now())

    def artifact(self, topology_id: str, name: str) -> Path:
        """Returns where an artifact of a topology is on this host.

        Raises:
            CodeError: it isn't here.
        """
        if not isinstance(self._distributor, LocalFileSystemCodeDistributor):
            raise CodeError(f"code of this cluster is in {self._distributor.name}, and Nimbuses do not serve it")
        return self._distributor.path_of(topology_id, name)

    # The leader's.

    def fence(self) -> Fence:
        """Returns the fence of this Nimbus' leadership.

        Raises:
            NotLeaderError: it doesn't lead; the error names who does.
            UnavailableError: no leader is known at the moment.
        """
        try:
            return self._elector.fence()
        except NotLeaderError:
            leader = self.snapshot().leader
            if self._view.stale is not None or leader is None or leader.address == self.address:
                raise UnavailableError(
                    f"Nimbus {self.address} doesn't lead, and there is no other leader that it knows of"
                ) from None
            raise NotLeaderError(
                f"Nimbus {self.address} isn't the leader; {leader.address} is", leader.address
            ) from None

    def changes(self) -> list[ChangeRecord]:
        """Returns who changed which topology, newest first; nothing while ZooKeeper is away."""
        if self._view.stale is not None:
            return []
        try:
            return self._state.changes()
        except UnavailableError:
            return []

    def submit(self, request: SubmitRequest, by: str = "") -> str:
        """Takes a topology in; see `Submissions.accept`.

        Args:
            request: the submission.
            by: who asks, as the list of changes shows it; also below.

        Returns:
            Its id. It runs when `submission` says `submitted`.
        """
        fence = self.fence()
        with self.inbox.using(request.key) as folder:
            topology_id = self._submissions.accept(fence, request, folder)
        self.inbox.remove(request.key)
        # What was done is done, also where that can't be written.
        try:
            self._state.add_change(self._told(topology_id, "submit", by or request.owner))
        except ClusterError as error:
            logger.warning("submit of %s by %s can't be noted: %s", topology_id, by or request.owner, error)
        return topology_id

    def log_levels(self, topology_id: str) -> dict[str, LogLevel]:
        """Returns the levels of a topology's loggers that were changed and count, by logger.

        Raises:
            NotAliveError: there is no such topology.
        """
        self.topology(topology_id)
        return shown_levels(self.snapshot().logconfigs.get(topology_id), self.now())

    def set_log_levels(self, topology_id: str, changes: Mapping[str, LogLevel | None], by: str = "") -> LogConfig:
        """Changes levels of a topology's loggers while it runs.

        Args:
            topology_id: which.
            changes: logger -> level, of `log_level`; None takes a change back.
            by: who asks.

        Raises:
            NotAliveError: there is no such topology.
            TransitionError: it would be too many loggers.
        """
        fence = self.fence()

        def write() -> LogConfig:
            if self._state.get(StormBase, STORMS, topology_id) is None:
                raise NotAliveError(f"there is no topology with the id {topology_id[:220]!r}")
            found = self._state.get(LogConfig, LOGCONFIGS, topology_id)
            before = LogConfig(topology_id=topology_id, levels={}) if found is None else found[0]
            after = changed(before, changes, self.now())
            place = (LOGCONFIGS, topology_id)
            change: Change = Create(place, after) if found is None else Put(place, after, found[1])
            told = self._told(topology_id, in_words(changes), by)
            self._state.commit_recorded(told, fence, Check((STORMS, topology_id)), change)
            return after

        return _until_alone(write, f"log levels of {topology_id}")

    def set_credentials(self, topology_id: str, given: object, by: str = "") -> None:
        """Gives a topology that runs new credentials, in place of those that it has.

        Raises:
            TransitionError: they are not a mapping of names to texts, or too large.
            NotAliveError: there is no such topology.
            SetupError: the cluster has no secret to encrypt them with.
        """
        fence, credentials = self.fence(), checked_credentials(given)
        told = self._told(topology_id, f"credentials, {len(credentials)} of them", by)
        _until_alone(
            lambda: store_credentials(self._state, fence, topology_id, credentials, told),
            f"the credentials of {topology_id}",
        )

    def drain_page(self, supervisor: str) -> DrainPage:
        """Returns what a drain of a supervisor moves, or would move.

        Args:
            supervisor: its id, or its host if that has but one.

        Raises:
            NotAliveError: there is no such supervisor.
        """
        snapshot = self.snapshot()
        return drain_page(snapshot, supervisor_named(snapshot, supervisor), self.now())

    def drain(self, supervisor: str, by: str = "", *, undo: bool = False) -> DrainPage:
        """Takes topologies away from a supervisor, and gives it no others; or gives it some again.

        Args:
            supervisor: its id, or its host if that has but one.
            by: who asks.
            undo: whether it is to get topologies again. Those that moved stay where they are.

        Raises:
            NotAliveError: there is no such supervisor.
        """
        fence = self.fence()
        page = self.drain_page(supervisor)
        place = (DRAINS, page.supervisor_id)
        found = self._state.stat(*place)
        if undo is (found is None):
            return page
        drain = Drain(supervisor_id=page.supervisor_id, who=by[:200], time=self.now())
        change: Change = Create(place, drain) if found is None else Delete(place, found.version)
        what = f"{'end the drain of' if undo else 'drain'} supervisor {page.supervisor_id} on {page.host}"
        self._state.commit_recorded(self._told("", what, by), fence, change)
        return msgspec.structs.replace(page, drained=not undo)

    def problems(self) -> tuple[Problem, ...]:
        """Returns nodes of ZooKeeper that nothing uses, and ones that are missing.

        Raises:
            UnavailableError: ZooKeeper is away.
        """
        self._view.refresh()
        snapshot = self.snapshot()
        names = {folder: frozenset(self._state.children(folder)) for folder in LISTED}
        claims = self._state.read_all(NameClaim, NAMES)
        found = problems(snapshot, names, {name: claim.topology_id for name, claim in claims.items()})
        # Replicas of code in Delta or HDFS are not counted.
        shared = self._distributor.shared
        return tuple(each for each in found if not (shared and each.kind == "no code" and each.name in snapshot.code))

    def repair(self, by: str = "") -> tuple[Problem, ...]:
        """Repairs what can be repaired without a decision.

        Args:
            by: who asks.

        Returns:
            What was repaired.

        Raises:
            UnavailableError: ZooKeeper is away.
        """
        fence = self.fence()
        done = []
        for problem in self.problems():
            topology_id = problem.name
            if not problem.repair or (problem.kind == "orphan" and self._state.stat(STORMS, topology_id) is not None):
                continue
            told = self._told("", f"repair: {problem.kind} {problem.folder}/{problem.name}", by)
            last = functools.partial(self._state.commit_recorded, told)
            self._state.delete_tree(fence, problem.folder, problem.name, last=last)
            if problem.kind == "orphan" and problem.folder == CODE:
                self._distributor.cleanup(topology_id)
            done.append(problem)
        return tuple(done)

    def activate(self, topology_id: str, by: str = "") -> StormBase:
        """Lets a topology's spouts emit."""
        return self._change(topology_id, lifecycle.activate, "activate", by)

    def deactivate(self, topology_id: str, by: str = "") -> StormBase:
        """Stops a topology's spouts from emitting."""
        return self._change(topology_id, lifecycle.deactivate, "deactivate", by)

    def sample(self, topology_id: str, component: str, percent: float, by: str = "") -> StormBase:
        """Samples a share of the tuples of a component, or of all for an empty name; see `lifecycle.sample`.

        Raises:
            NotAliveError: the topology has no such component.
        """
        known = self._tasks(topology_id)
        if component and known and component not in known:
            raise NotAliveError(f"topology {topology_id} has no component {component[:200]!r}")
        what = f"sample {percent:g} % of the tuples" + (f" of {component}" if component else "")
        return self._change(topology_id, lambda base: lifecycle.sample(base, component, percent), what, by)

    def kill(self, topology_id: str, wait_secs: float | None, by: str = "") -> StormBase:
        """Ends a topology; see `lifecycle.kill`."""
        what = "kill" if wait_secs is None else f"kill, wait {wait_secs:g} s"
        return self._change(topology_id, lambda base: lifecycle.kill(base, self.now(), wait_secs), what, by)

    def rebalance(
        self,
        topology_id: str,
        wait_secs: float | None,
        conf: Mapping[str, Any],
        executors: Mapping[str, int],
        from_scratch: bool = False,
        by: str = "",
    ) -> StormBase:
        """Restarts a topology; see `lifecycle.rebalance`.

        Args:
            topology_id: which.
            wait_secs: how long what was emitted may take.
            conf: configuration to change.
            executors: component -> executors.
            from_scratch: whether it is to forget its state.
            by: who asks.
        """
        secret = sorted(
            key for key, value in conf.items() if value is not None and without_secrets({key: value}) != {key: value}
        )
        if secret:
            raise ConfigError(
                f"{', '.join(secret)} would be readable in ZooKeeper, so a rebalance can't set secrets; "
                "submit the topology again",
                key=secret[0],
            )
        tasks = self._tasks(topology_id) if executors else {}
        return self._change(
            topology_id,
            lambda base: lifecycle.rebalance(base, self.now(), wait_secs, conf, executors, tasks),
            _rebalance_told(conf, executors, from_scratch=from_scratch),
            by,
            self._forget_state if from_scratch else lambda base: (),
        )

    def _forget_state(self, base: StormBase) -> tuple[Change, ...]:
        """Returns the change by which a topology's next launch starts from scratch."""
        folder = (CHECKPOINTS, base.topology_id)
        launch = base.launch + 1
        found = self._state.get_bytes(*folder)
        known = None
        with contextlib.suppress(RecordError):
            entry = self._state.get(CheckpointInfo, *folder)
            known = None if entry is None else entry[0]
        info = CheckpointInfo(
            topology_id=base.topology_id, location="", identity="", launch=base.launch, host="", from_scratch=launch
        )
        if known is not None:
            info = msgspec.structs.replace(known, from_scratch=launch)
        return (Create(folder, info),) if found is None else (Put(folder, info, found[1]),)

    def _tasks(self, topology_id: str) -> dict[str, int]:
        code = self.snapshot().code.get(topology_id)
        return {} if code is None or code.manifest.plan is None else code.manifest.plan.tasks()

    def _change(
        self,
        topology_id: str,
        change: Callable[[StormBase], StormBase],
        what: str,
        by: str,
        more: Callable[[StormBase], tuple[Change, ...]] = lambda base: (),
    ) -> StormBase:
        fence = self.fence()

        def write() -> StormBase:
            try:
                found = self._state.get(StormBase, STORMS, topology_id)
            except RecordError as error:
                raise FormatError(f"topology {topology_id} can't be changed here: {error}") from error
            if found is None:
                raise NotAliveError(f"there is no topology with the id {topology_id[:220]!r}")
            base, version = found
            after = change(base)
            if after != base:
                told = self._told(topology_id, what, by)
                self._state.commit_recorded(told, fence, Put((STORMS, topology_id), after, version), *more(base))
            return after

        return _until_alone(write, f"topology {topology_id}")

    def _told(self, topology_id: str, what: str, by: str) -> ChangeRecord:
        return ChangeRecord(topology_id=topology_id, what=what[:500], who=by[:200], time=self.now())


def _until_alone(write: Callable[[], _T], what: str) -> _T:
    """Returns what `write` does; it reads and writes again if somebody else wrote between the two."""
    for attempt in range(_ATTEMPTS):
        with contextlib.suppress(ConflictError):
            return write()
        time.sleep(random.uniform(0, _PAUSE_SECS * attempt))
    raise ConflictError(f"{what} can't be changed: other writers keep changing it; try again")


def _rebalance_told(conf: Mapping[str, Any], executors: Mapping[str, int], *, from_scratch: bool) -> str:
    """Returns a rebalance in words, without the values of its configuration."""
    parts = ["rebalance", *(f"{name}: {count} executors" for name, count in sorted(executors.items())), *sorted(conf)]
    return ", ".join([*parts, "from scratch"] if from_scratch else parts)
