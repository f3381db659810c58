"""Which slot each topology's driver gets.

A driver takes one slot. What runs is left alone: a topology gets a slot when it has none, when a rebalance asked for
a new launch, or when both its supervisor and its driver are gone. A topology whose supervisor died but whose driver
still owns it stays, and so does one whose driver is gone but whose supervisor lives, for the supervisor restarts it.
If it stays silent, another supervisor gets it. A topology that is complete gives its slot back. New slots come from the
supervisor with the fewest in use: topologies spread evenly.

A record that can't be read here, because another release wrote it or because it is damaged, does not count as missing:
its topology or supervisor stays as it is.
"""

from __future__ import annotations

import heapq
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from storm_on_spark.cluster.paths import ASSIGNMENTS, OWNERS, STORMS, SUPERVISORS, WORKERBEATS
from storm_on_spark.cluster.records import Assignment, StormBase, SupervisorInfo, WorkerBeat
from storm_on_spark.cluster.state.snapshot import ClusterSnapshot


@dataclass(frozen=True)
class Unknown:
    """The ids of topologies and supervisors whose records can't be read."""

    storms: frozenset[str] = frozenset()
    assignments: frozenset[str] = frozenset()
    supervisors: frozenset[str] = frozenset()
    owners: frozenset[str] = frozenset()
    beats: frozenset[str] = frozenset()
    held: tuple[tuple[str, int], ...] = ()
    """Slots (supervisor id, port) of assignments that can't be read."""

    @classmethod
    def of(cls, snapshot: ClusterSnapshot) -> Unknown:
        """Returns what a snapshot leaves out."""
        folders = (STORMS, ASSIGNMENTS, SUPERVISORS, OWNERS, WORKERBEATS)
        storms, assignments, supervisors, owners, beats = (frozenset(snapshot.unread(folder)) for folder in folders)
        run = (snapshot.owners.get(topology_id) for topology_id in sorted(assignments))
        held = tuple((owner.supervisor_id, owner.port) for owner in run if owner is not None)
        return cls(storms, assignments, supervisors, owners, beats, held)


NOTHING_UNKNOWN: Final = Unknown()


@dataclass(frozen=True)
class Decision:
    """What is to change.

    `assign` are new assignments, `remove` the ids of those to delete, `waiting` says why topologies that need a slot
    have none.
    """

    assign: tuple[Assignment, ...] = ()
    remove: tuple[str, ...] = ()
    waiting: Mapping[str, str] = field(default_factory=dict)


def schedule(
    storms: Mapping[str, StormBase],
    assignments: Mapping[str, Assignment],
    supervisors: Mapping[str, SupervisorInfo],
    owned: Collection[str],
    finished: Collection[str],
    epoch: int,
    now: float,
    silent: Collection[str] = (),
    unknown: Unknown = NOTHING_UNKNOWN,
    mute: Collection[str] = (),
    drained: Collection[str] = (),
) -> Decision:
    """Returns what is to change so that every topology that should run has a slot.

    Args:
        storms: all topologies, by id.
        assignments: all assignments, by topology id.
        supervisors: those that are alive, by id.
        owned: ids of the topologies that a driver owns at this moment.
        finished: ids of the topologies that are complete.
        epoch: of the leader that decides.
        now: seconds since the epoch.
        silent: ids of the topologies whose driver has been silent for too long. They get a slot of another
            supervisor after those without a slot; where none is free they stay.
        unknown: ids whose records can't be read.
        mute: supervisors whose drivers can't be heard. They get a topology when there is no other slot, and none
            because its driver was silent.
        drained: supervisors that get no topology. Those that they have move when there is another slot.

    Example:
        >>> from storm_on_spark.cluster.records import StormBase, SupervisorInfo
        >>> supervisors = {
        ...     name: SupervisorInfo(supervisor_id=name, host="localhost", slots=(6700, 6701), started_at=0.0,
        ...                          version="1", heartbeat_at=0.0)
        ...     for name in "ab"
        ... }
        >>> storms = {
        ...     name: StormBase(topology_id=name, name=name, owner="me", status="ACTIVE", submitted_at=0.0, launch=1,
        ...                     conf={})
        ...     for name in ("t1", "t2", "t3")
        ... }
        >>> decision = schedule(storms, {}, supervisors, owned=(), finished=(), epoch=7, now=0.0)
        >>> [(a.topology_id, a.supervisor_id, a.port) for a in decision.assign]
        [('t1', 'a', 6700), ('t2', 'b', 6700), ('t3', 'a', 6701)]
    """
    owned = {*owned, *unknown.owners}
    ended = set(finished).difference(owned)
    gone = assignments.keys() - storms.keys() - unknown.storms
    remove = tuple(sorted(topology for topology in assignments if topology in gone or topology in ended))
    waiting = _left_alone(storms, assignments, unknown)
    needy = [
        base
        for base in storms.values()
        if base.transition is None
        and base.topology_id not in finished
        and base.topology_id not in waiting
        and _needs_slot(base, assignments.get(base.topology_id), supervisors, owned, unknown)
    ]
    # A topology that gives up a slot for a new launch chooses first: no other can take its old slot before it.
    needy.sort(key=lambda base: (not _holds_slot(base, assignments, supervisors), base.submitted_at, base.topology_id))
    moving = {base.topology_id for base in needy}
    staying = (a for name, a in assignments.items() if name not in moving and name not in remove)
    usable = [supervisor for name, supervisor in supervisors.items() if name not in drained]
    slots = _Slots(usable, [*((a.supervisor_id, a.port) for a in staying), *unknown.held], mute)
    given: list[tuple[StormBase, tuple[SupervisorInfo, int]]] = []
    for base in needy:
        slot = slots.take()
        if slot is None:
            waiting[base.topology_id] = _why_not(usable, len(supervisors) - len(usable))
        else:
            given.append((base, slot))
    for topology_id in sorted(set(silent) - moving - ended - waiting.keys()):
        base, assignment = storms[topology_id], assignments[topology_id]
        slot = slots.take({assignment.supervisor_id, *mute}) if base.transition is None else None
        if slot is not None:
            given.append((base, slot))
    given_up = {*moving, *(base.topology_id for base, _ in given)}
    for topology_id, assignment in sorted(assignments.items()):
        base_of = storms.get(topology_id)
        if assignment.supervisor_id not in drained or base_of is None or topology_id in {*given_up, *ended, *waiting}:
            continue
        slot = slots.take() if base_of.transition is None and topology_id not in finished else None
        if slot is not None:
            # The same launch: its driver sees that the slot is no longer its own, and ends in order.
            given.append((base_of, slot))
    assign = (
        Assignment(
            topology_id=base.topology_id,
            supervisor_id=supervisor.supervisor_id,
            host=supervisor.host,
            port=port,
            launch=base.launch,
            epoch=epoch,
            assigned_at=now,
        )
        for base, (supervisor, port) in given
    )
    return Decision(tuple(assign), remove, waiting)


def finished(storms: Mapping[str, StormBase], beats: Mapping[str, WorkerBeat]) -> set[str]:
    """Returns the ids of the topologies that are complete, in their present launch."""
    return {
        topology
        for topology, beat in beats.items()
        if beat.info.get("status") == "COMPLETED" and topology in storms and beat.launch == storms[topology].launch
    }


def _left_alone(
    storms: Mapping[str, StormBase], assignments: Mapping[str, Assignment], unknown: Unknown
) -> dict[str, str]:
    """Returns why nothing can be decided about some topologies."""
    found = {}
    for topology_id in storms:
        if topology_id in unknown.assignments:
            found[topology_id] = "its assignment can't be read by this release; it is left as it is"
        elif topology_id in unknown.beats and topology_id not in assignments:
            # It may be complete: then its driver's last heartbeat says so.
            found[topology_id] = "what its driver said last can't be read by this release; it is left as it is"
    return found


def _needs_slot(
    base: StormBase,
    assignment: Assignment | None,
    supervisors: Mapping[str, SupervisorInfo],
    owned: Collection[str],
    unknown: Unknown,
) -> bool:
    if assignment is None or assignment.launch < base.launch:
        return True
    if assignment.supervisor_id in unknown.supervisors:
        return False
    return not _has_slot(assignment, supervisors) and base.topology_id not in owned


def _holds_slot(
    base: StormBase, assignments: Mapping[str, Assignment], supervisors: Mapping[str, SupervisorInfo]
) -> bool:
    assignment = assignments.get(base.topology_id)
    return assignment is not None and _has_slot(assignment, supervisors)


def _has_slot(assignment: Assignment, supervisors: Mapping[str, SupervisorInfo]) -> bool:
    """Whether the supervisor is alive, and still has that slot after a change of its configuration."""
    supervisor = supervisors.get(assignment.supervisor_id)
    return supervisor is not None and assignment.port in supervisor.slots


def _why_not(supervisors: Collection[SupervisorInfo], drained: int) -> str:
    slots = sum(len(supervisor.slots) for supervisor in supervisors)
    if not slots:
        return "no supervisor with a slot is alive" + (f", or it is drained: {drained} are" if drained else "")
    return f"all {slots} slots of {len(supervisors)} supervisors are taken"


class _Slots:
    """Free slots; `take` hands out one of the supervisor with the fewest in use, then of the one with the most free.

    Those of the mute are the last.
    """

    def __init__(
        self, supervisors: Iterable[SupervisorInfo], taken: Iterable[tuple[str, int]], mute: Collection[str]
    ) -> None:
        used: dict[str, set[int]] = {}
        for supervisor_id, port in taken:
            used.setdefault(supervisor_id, set()).add(port)
        self._free: list[tuple[bool, int, int, str, list[int], SupervisorInfo]] = []
        for supervisor in supervisors:
            name = supervisor.supervisor_id
            in_use = used.get(name, set())
            free = sorted(set(supervisor.slots) - in_use, reverse=True)
            if free:
                self._free.append((name in mute, len(in_use), -len(free), name, free, supervisor))
        heapq.heapify(self._free)

    def take(self, but: Collection[str] = ()) -> tuple[SupervisorInfo, int] | None:
        passed = []
        found = None
        while self._free and found is None:
            first = heapq.heappop(self._free)
            if first[3] in but:
                passed.append(first)
            else:
                found = first
        for each in passed:
            heapq.heappush(self._free, each)
        if found is None:
            return None
        mute, in_use, _, name, free, supervisor = found
        port = free.pop()
        if free:
            heapq.heappush(self._free, (mute, in_use + 1, -len(free), name, free, supervisor))
        return supervisor, port
