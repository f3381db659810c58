"""Which supervisors are alive, and which drivers are silent, by their heartbeats.

A supervisor's node in ZooKeeper goes with its session. One that hangs may keep its session: its heartbeat stops then.
What is measured is how long a heartbeat has not changed by this Nimbus' own clock, so hosts' clocks may differ.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from storm_on_spark.cluster.records import Assignment, Ownership, SupervisorInfo, WorkerBeat


class Heartbeats:
    """What was seen of supervisors' heartbeats.

    Args:
        timeout: seconds without a new heartbeat after which a supervisor counts as dead.

    Example:
        >>> beats = Heartbeats(60)
        >>> info = SupervisorInfo(supervisor_id="a", host="localhost", slots=(6700,), started_at=0.0, version="1",
        ...                       heartbeat_at=5.0)
        >>> [list(beats.alive({"a": info}, clock)) for clock in (1000.0, 1059.9, 1060.0)]
        [['a'], ['a'], []]
    """

    def __init__(self, timeout: float) -> None:
        self._timeout = timeout
        #: By supervisor: its last heartbeat, and when that was first seen.
        self._seen: dict[str, tuple[float, float]] = {}

    def alive(self, supervisors: Mapping[str, SupervisorInfo], clock: float) -> dict[str, SupervisorInfo]:
        """Returns those supervisors that are alive.

        Args:
            supervisors: those whose sessions are.
            clock: monotonic seconds.
        """
        known = self._seen
        self._seen = {
            name: known[name] if name in known and known[name][0] == info.heartbeat_at else (info.heartbeat_at, clock)
            for name, info in supervisors.items()
        }
        return {name: info for name, info in supervisors.items() if clock - self._seen[name][1] < self._timeout}

    def forget(self) -> None:
        """Forgets everything, after a time in which no heartbeats were seen."""
        self._seen.clear()


class Drivers:
    """What was seen of drivers' heartbeats.

    As in Storm, a driver has longer until its first heartbeat, which comes when its topology runs. That goes for each
    start: also for the one by which its supervisor replaces a driver that has died.

    Args:
        launch: seconds until the first heartbeat after which a driver counts as one that can't start where it is.
        timeout: seconds without a new heartbeat after which one that ran does.

    Example:
        >>> assignment = Assignment(topology_id="t", supervisor_id="a", host="h", port=6700, launch=1, epoch=1,
        ...                         assigned_at=0.0)
        >>> drivers = Drivers(120, 30)
        >>> [drivers.silent({"t": assignment}, {}, {}, clock) for clock in (1000.0, 1119.0, 1120.0)]
        [{}, {}, {'t': 120.0}]
    """

    def __init__(self, launch: float, timeout: float) -> None:
        self._launch = launch
        self._timeout = timeout
        #: By topology: its assignment and the time in its last heartbeat, and when these were first seen.
        self._seen: dict[str, tuple[tuple[Assignment, float | None], float]] = {}

    def silent(
        self,
        assignments: Mapping[str, Assignment],
        beats: Mapping[str, WorkerBeat],
        owners: Mapping[str, Ownership],
        clock: float,
        unjudged: Collection[str] = (),
    ) -> dict[str, float]:
        """Returns for how many seconds those drivers were silent that have been so for too long.

        Args:
            assignments: of the topologies that should run.
            beats: the last heartbeats.
            owners: the drivers that own their topologies.
            clock: monotonic seconds.
            unjudged: topologies whose silence proves nothing: it is counted from zero again.
        """
        known, self._seen = self._seen, {}
        found: dict[str, float] = {}
        for topology_id, assignment in assignments.items():
            beat = beats.get(topology_id)
            if beat is not None and not _is_of(beat, assignment):
                beat = None
            sign = assignment, None if beat is None else beat.time
            same = topology_id in known and known[topology_id][0] == sign and topology_id not in unjudged
            since = known[topology_id][1] if same else clock
            self._seen[topology_id] = sign, since
            owner = owners.get(topology_id)
            runs = beat is not None and owner is not None and beat.pid == owner.pid
            if clock - since >= (self._timeout if runs else self._launch):
                found[topology_id] = clock - since
        return found

    def forget(self) -> None:
        """Forgets everything, after a time in which no heartbeats were seen."""
        self._seen.clear()


def _is_of(beat: WorkerBeat, assignment: Assignment) -> bool:
    """Whether a driver of this assignment said it."""
    said = beat.supervisor_id, beat.port, beat.launch
    return said == (assignment.supervisor_id, assignment.port, assignment.launch)
