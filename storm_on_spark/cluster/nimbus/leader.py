"""The rounds of a leader: complete submissions, finish transitions, schedule, clean up.

Each round starts from what is in ZooKeeper and nothing else, so the next leader continues where this one ended. Every
change is conditional on the versions that it was decided on: a round that started from an older state changes nothing,
and the next one starts from the newer.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Mapping
from typing import Final

from storm_on_spark.cluster.code.distributor import CodeDistributor
from storm_on_spark.cluster.errors import CodeError, ConflictError
from storm_on_spark.cluster.heartbeats.reader import HeartbeatReader, ZooKeeperReader
from storm_on_spark.cluster.nimbus import lifecycle
from storm_on_spark.cluster.nimbus.accepting.submission import OnStep, Submissions, name_of
from storm_on_spark.cluster.nimbus.scheduling.draining import drained_of
from storm_on_spark.cluster.nimbus.scheduling.liveness import Drivers, Heartbeats
from storm_on_spark.cluster.nimbus.scheduling.scheduler import Decision, Unknown, finished, schedule
from storm_on_spark.cluster.paths import (
    ASSIGNMENTS,
    CHECKPOINTS,
    CODE,
    CREDENTIALS,
    ERRORS,
    LOGCONFIGS,
    OWNERS,
    STORMS,
    SUBMISSIONS,
    WORKERBEATS,
)
from storm_on_spark.cluster.state import (
    Change,
    Check,
    ClusterSnapshot,
    ClusterState,
    Create,
    Delete,
    Fence,
    Put,
)

logger = logging.getLogger(__name__)

_AT_ONCE: Final = 200
"""Assignments in one transaction; each takes less than a kilobyte of the megabyte that there is."""


class Leader:
    """The rounds of a leader. One thread calls it.

    Args:
        state: ZooKeeper.
        distributor: where topologies' code is.
        submissions: what accepts topologies.
        heartbeats: which supervisors are alive.
        drivers: which drivers are silent.
        on_step: as for `Submissions`.
        now: seconds since the epoch.
        clock: monotonic seconds.
        reader: what is known of drivers' heartbeats; None if they are in ZooKeeper.
    """

    def __init__(
        self,
        state: ClusterState,
        distributor: CodeDistributor,
        submissions: Submissions,
        heartbeats: Heartbeats,
        drivers: Drivers,
        on_step: OnStep = lambda step, topology_id: None,
        now: Callable[[], float] = time.time,
        clock: Callable[[], float] = time.monotonic,
        reader: HeartbeatReader | None = None,
    ) -> None:
        self._state = state
        self._distributor = distributor
        self._submissions = submissions
        self._heartbeats = heartbeats
        self.drivers = drivers
        self._on_step = on_step
        self._now = now
        self._clock = clock
        self._reader = ZooKeeperReader() if reader is None else reader
        self._waiting: dict[str, str] = {}
        #: Silent topologies that were logged already.
        self._logged: set[str] = set()

    def forget(self) -> None:
        """Forgets everything, for a new leadership, or after a time without contact to the cluster."""
        self._heartbeats.forget()
        self.drivers.forget()
        self._waiting.clear()

    def round(self, fence: Fence, snapshot: ClusterSnapshot) -> float | None:
        """Does what is to be done.

        Returns:
            When the next thing is due at the latest, in seconds since the epoch; None if nothing is.

        Raises:
            FencedError: this Nimbus leads no longer.
            UnavailableError: ZooKeeper is away.
        """
        self._submissions.advance(fence, snapshot)
        self._finish(fence, snapshot)
        self._schedule(fence, snapshot)
        self._clean(fence, snapshot)
        due = [base.transition.due_at for base in snapshot.storms.values() if base.transition is not None]
        deadline = self._submissions.next_deadline(snapshot)
        return min([*due, *([] if deadline is None else [deadline])], default=None)

    def _finish(self, fence: Fence, snapshot: ClusterSnapshot) -> None:
        now = self._now()
        for topology_id, base in snapshot.storms.items():
            after = lifecycle.finish(base, now)
            if after is base:
                continue
            version = snapshot.versions[STORMS][topology_id]
            changes: list[Change] = []
            if after is not None:
                changes.append(Put((STORMS, topology_id), after, version))
            else:
                changes.append(Delete((STORMS, topology_id), version))
                changes.extend(self._submissions.release(base.name, topology_id))
                # That it was to end is known, whatever its assignment says.
                if topology_id in snapshot.assignments or topology_id in snapshot.unread(ASSIGNMENTS):
                    changes.append(Delete((ASSIGNMENTS, topology_id)))
            try:
                self._state.commit(fence, *changes)
            except ConflictError as error:
                logger.info("%s of %s waits for the next round: %s", base.status, topology_id, error)
                continue
            logger.info("Topology %s is %s", topology_id, "removed" if after is None else f"{after.status} again")

    def _schedule(self, fence: Fence, snapshot: ClusterSnapshot) -> None:
        alive = self._heartbeats.alive(snapshot.supervisors, self._clock())
        over = finished(snapshot.storms, snapshot.workerbeats)
        silent = self._silent(snapshot, alive, over)
        decision = schedule(
            snapshot.storms,
            snapshot.assignments,
            alive,
            snapshot.owners,
            over,
            fence.epoch,
            self._now(),
            silent,
            Unknown.of(snapshot),
            self._reader.mute(),
            drained_of(snapshot),
        )
        self._tell(silent, decision)
        for topology_id, reason in decision.waiting.items():
            if self._waiting.get(topology_id) != reason:
                logger.warning("Topology %s waits for a slot: %s", topology_id, reason)
        self._waiting = dict(decision.waiting)
        changes = list(_changes(decision, snapshot))
        for start in range(0, len(changes), _AT_ONCE):
            part = changes[start : start + _AT_ONCE]
            try:
                self._state.commit(fence, *(change for group in part for change in group))
            except ConflictError as error:
                logger.info("Scheduling waits for the next round: %s", error)
                return
        for assignment in decision.assign:
            logger.info(
                "Topology %s is assigned to %s:%d (%s), launch %d",
                assignment.topology_id,
                assignment.host,
                assignment.port,
                assignment.supervisor_id,
                assignment.launch,
            )
            self._on_step("assigned", assignment.topology_id)

    def _silent(self, snapshot: ClusterSnapshot, alive: Collection[str], finished: Collection[str]) -> dict[str, float]:
        should_run = {
            topology_id: assignment
            for topology_id, assignment in snapshot.assignments.items()
            if topology_id in snapshot.storms
            and snapshot.storms[topology_id].transition is None
            and topology_id not in finished
            and assignment.supervisor_id in alive
            # A driver whose heartbeat is of another format is not silent.
            and topology_id not in snapshot.unread(WORKERBEATS)
            and topology_id not in snapshot.unread(OWNERS)
        }
        unjudged = self._reader.unjudged(should_run)
        return self.drivers.silent(should_run, snapshot.workerbeats, snapshot.owners, self._clock(), unjudged)

    def _tell(self, silent: Mapping[str, float], decision: Decision) -> None:
        """Logs each silence once."""
        moving = {assignment.topology_id for assignment in decision.assign}
        for topology_id in silent.keys() - self._logged:
            what = "it is moved to another supervisor" if topology_id in moving else "no other supervisor has a slot"
            logger.warning(
                "Topology %s: no heartbeat of its driver for %.0f s; %s", topology_id, silent[topology_id], what
            )
        self._logged = silent.keys() - moving

    def _clean(self, fence: Fence, snapshot: ClusterSnapshot) -> None:
        """Removes what topologies that are gone have left."""
        if snapshot.unread(SUBMISSIONS):
            # Whose code that is can't be told.
            return
        coming = {submission.topology_id for submission in snapshot.submissions.values()}
        known = snapshot.storms.keys() | snapshot.unread(STORMS).keys() | coming
        owned = snapshot.owners.keys() | snapshot.unread(OWNERS).keys()
        for topology_id in (snapshot.code.keys() | snapshot.workerbeats.keys()) - known - owned:
            try:
                if self._submissions.is_busy(topology_id) or not self._submissions.is_gone(topology_id):
                    continue
                self._distributor.cleanup(topology_id)
                # Of one that was given up by hand, the name is still taken.
                self._state.commit(fence, *self._submissions.release(name_of(topology_id), topology_id))
                self._reader.forget(topology_id)
                # The record by which it is found goes last: this leader may die in between.
                for folder in (ERRORS, CHECKPOINTS, CREDENTIALS, LOGCONFIGS, CODE, WORKERBEATS):
                    self._state.delete_tree(fence, folder, topology_id)
            except (ConflictError, CodeError) as error:
                logger.warning("The remains of %s can't be removed now: %s", topology_id, error)
                continue
            logger.info("Removed the remains of %s", topology_id)

    def sweep(self, fence: Fence, snapshot: ClusterSnapshot, least_age: float) -> None:
        """Removes code without a record in ZooKeeper from the storage that all Nimbuses share.

        A leader left it behind by dying after it stored code, or before it removed it.

        Args:
            fence: the leadership.
            snapshot: what ZooKeeper knows.
            least_age: seconds that code is left alone, as another process may just be storing it.

        Raises:
            FencedError: this Nimbus leads no longer.
            UnavailableError: ZooKeeper is away.
        """
        if not self._distributor.shared:
            return
        known = {*snapshot.code, *snapshot.unread(CODE), *snapshot.storms, *snapshot.unread(STORMS)}
        try:
            for topology_id, at in self._distributor.stored().items():
                if topology_id in known or self._now() - at < least_age or self._submissions.is_busy(topology_id):
                    continue
                if self._state.get_bytes(CODE, topology_id) is None and self._submissions.is_gone(topology_id):
                    # A check without a write tells whether this Nimbus still leads.
                    self._state.commit(fence)
                    self._distributor.cleanup(topology_id)
                    logger.info("Removed the code of %s, which ZooKeeper has no record of", topology_id)
        except CodeError as error:
            logger.warning("Code without a record in ZooKeeper can't be removed now: %s", error)


def _changes(decision: Decision, snapshot: ClusterSnapshot) -> list[tuple[Change, ...]]:
    """Returns the changes in ZooKeeper that carry out a decision; each tuple is one transaction."""
    versions = snapshot.versions.get(ASSIGNMENTS, {})
    groups: list[tuple[Change, ...]] = [
        (Delete((ASSIGNMENTS, topology_id), versions[topology_id]),) for topology_id in decision.remove
    ]
    for assignment in decision.assign:
        parts = (ASSIGNMENTS, assignment.topology_id)
        write: Change = Create(parts, assignment)
        if assignment.topology_id in snapshot.assignments:
            write = Put(parts, assignment, versions[assignment.topology_id])
        storm = (STORMS, assignment.topology_id)
        groups.append((Check(storm, snapshot.versions[STORMS][assignment.topology_id]), write))
    return groups
