"""Which supervisors are alive, by their heartbeats.

A supervisor's node in ZooKeeper goes with its session. One that hangs may keep its session: its heartbeat stops then.
What is measured is how long a heartbeat has not changed by this Nimbus' own clock, so hosts' clocks may differ.
"""

from __future__ import annotations

from collections.abc import Mapping

from storm_on_spark.cluster.records import SupervisorInfo


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
        """Starts anew, after a time in which no heartbeats were seen."""
        self._seen.clear()
