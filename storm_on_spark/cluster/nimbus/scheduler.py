"""Which slot each topology's driver gets.

A driver takes one slot. What runs is left alone: a topology gets a slot when it has none, when a rebalance asked for
a new launch, or when both its supervisor and its driver are gone. A topology whose supervisor died but whose driver
still owns it stays, and so does one whose driver is gone but whose supervisor lives, for the supervisor restarts it.
Where nothing comes of that for long, another supervisor gets it. One that came to its end by itself gives its slot
back. New slots go to whoever has the fewest in use, so that topologies spread evenly.
"""

from __future__ import annotations

import heapq
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from storm_on_spark.cluster.records import Assignment, StormBase, SupervisorInfo, WorkerBeat


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
) -> Decision:
    """Returns what is to change so that every topology that should run has a slot.

    Args:
        storms: all topologies, by id.
        assignments: all assignments, by topology id.
        supervisors: those that are alive, by id.
        owned: ids of the topologies that a driver owns at this moment.
        finished: ids of the topologies that came to their end by themselves.
        epoch: of the leader that decides.
        now: seconds since the epoch.
        silent: ids of the topologies of whose driver nothing has been heard for too long. They get a slot of another
            supervisor when those that have none are served; where there is none they stay.

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
    ended = set(finished).difference(owned)
    remove = tuple(sorted(topology for topology in assignments if topology not in storms or topology in ended))
    needy = [
        base
        for base in storms.values()
        if base.transition is None
        and base.topology_id not in finished
        and _needs_slot(base, assignments.get(base.topology_id), supervisors, owned)
    ]
    # Who gives up a slot for a new launch takes one first: it can't end up with its old slot being another's.
    needy.sort(key=lambda base: (not _holds_slot(base, assignments, supervisors), base.submitted_at, base.topology_id))
    moving = {base.topology_id for base in needy}
    staying = (a for name, a in assignments.items() if name not in moving and name not in remove)
    slots = _Slots(supervisors.values(), staying)
    given: list[tuple[StormBase, tuple[SupervisorInfo, int]]] = []
    waiting = {}
    for base in needy:
        slot = slots.take()
        if slot is None:
            waiting[base.topology_id] = _why_not(supervisors)
        else:
            given.append((base, slot))
    for topology_id in sorted(set(silent) - moving - ended):
        base, assignment = storms[topology_id], assignments[topology_id]
        slot = slots.take(but=assignment.supervisor_id) if base.transition is None else None
        if slot is not None:
            given.append((base, slot))
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
    """Returns the ids of the topologies that came to their end by themselves, in their present launch."""
    return {
        topology
        for topology, beat in beats.items()
        if beat.info.get("status") == "COMPLETED" and topology in storms and beat.launch == storms[topology].launch
    }


def _needs_slot(
    base: StormBase,
    assignment: Assignment | None,
    supervisors: Mapping[str, SupervisorInfo],
    owned: Collection[str],
) -> bool:
    if assignment is None or assignment.launch < base.launch:
        return True
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


def _why_not(supervisors: Mapping[str, SupervisorInfo]) -> str:
    slots = sum(len(supervisor.slots) for supervisor in supervisors.values())
    if not slots:
        return "no supervisor with a slot is alive"
    return f"all {slots} slots of {len(supervisors)} supervisors are taken"


class _Slots:
    """Free slots; `take` hands out one of the supervisor with the fewest in use, then of the one with the most free."""

    def __init__(self, supervisors: Iterable[SupervisorInfo], taken: Iterable[Assignment]) -> None:
        used: dict[str, set[int]] = {}
        for assignment in taken:
            used.setdefault(assignment.supervisor_id, set()).add(assignment.port)
        self._free: list[tuple[int, int, str, list[int], SupervisorInfo]] = []
        for supervisor in supervisors:
            in_use = used.get(supervisor.supervisor_id, set())
            free = sorted(set(supervisor.slots) - in_use, reverse=True)
            if free:
                self._free.append((len(in_use), -len(free), supervisor.supervisor_id, free, supervisor))
        heapq.heapify(self._free)

    def take(self, but: str | None = None) -> tuple[SupervisorInfo, int] | None:
        if not self._free:
            return None
        in_use, _, name, free, supervisor = first = heapq.heappop(self._free)
        if name == but:
            found = self.take()
            heapq.heappush(self._free, first)
            return found
        port = free.pop()
        if free:
            heapq.heappush(self._free, (in_use + 1, -len(free), name, free, supervisor))
        return supervisor, port
