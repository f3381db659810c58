"""Newest wins: which of several heartbeats of a topology counts. No I/O, no clock.

Each server has its own, and those it was given before a writer turned to another server stay there. Clocks of hosts
differ and jump, so the newest is the one that changed last as it was seen from here; only among those that changed
between the same two looks does the time in them decide.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from storm_on_spark.cluster.records import WorkerBeat


class Newest:
    """The heartbeats that count, and when each changed last.

    Example:
        >>> from storm_on_spark.cluster.records import WorkerBeat
        >>> def beat(time: float) -> WorkerBeat:
        ...     return WorkerBeat(topology_id="t", supervisor_id="a", host="h", port=6700, pid=1, launch=1, time=time,
        ...                       started_at=0.0, info={})
        >>> newest = Newest()
        >>> newest.look([("p1", beat(9.0))])["t"].time
        9.0
        >>> newest.look([("p1", beat(9.0)), ("p2", beat(5.0))])["t"].time       # the clock was set back
        5.0
    """

    def __init__(self) -> None:
        self._looks = 0
        #: (server, topology, supervisor, port) -> the heartbeat there, and with which look it changed last.
        self._seen: dict[tuple[str, str, str, int], tuple[WorkerBeat, int]] = {}
        #: Topology -> the one that counts; it stays when no server has it any more: restarted servers are empty.
        self._newest: dict[str, tuple[WorkerBeat, int]] = {}

    def look(self, found: Iterable[tuple[str, WorkerBeat]]) -> Mapping[str, WorkerBeat]:
        """Takes in what was read, and returns the newest heartbeat of each topology.

        Args:
            found: servers and the heartbeats that they have.
        """
        self._looks += 1
        for server, beat in found:
            key = server, beat.topology_id, beat.supervisor_id, beat.port
            before = self._seen.get(key)
            if before is not None and before[0] == beat:
                continue
            self._seen[key] = beat, self._looks
            counts = self._newest.get(beat.topology_id)
            if counts is None or _rank(beat, self._looks) > _rank(*counts):
                self._newest[beat.topology_id] = beat, self._looks
        return {topology_id: beat for topology_id, (beat, _) in self._newest.items()}

    def keep(self, topologies: Iterable[str]) -> None:
        """Forgets all topologies but these, so that what is remembered stays bounded."""
        wanted = set(topologies)
        self._newest = {name: seen for name, seen in self._newest.items() if name in wanted}
        self._seen = {key: seen for key, seen in self._seen.items() if key[1] in wanted}


def newer(one: WorkerBeat, other: WorkerBeat) -> WorkerBeat:
    """Returns which of two heartbeats of a topology counts: of the last launch, final words, or the later."""
    return max(one, other, key=lambda beat: (beat.launch, beat.info.get("status") == "COMPLETED", beat.time))


def counting(last: WorkerBeat, beat: WorkerBeat, *, since: bool) -> WorkerBeat:
    """Returns which counts of a driver's last words, in ZooKeeper, and a heartbeat in Pacemaker.

    Args:
        last: the last words.
        beat: the heartbeat, of that driver or of another.
        since: whether it has changed since the last words were read. Then it counts, whatever the clock of its host
            says, unless the topology is complete.
    """
    if _driver(last) == _driver(beat):
        return last
    if since and last.launch == beat.launch and last.info.get("status") != "COMPLETED":
        return beat
    return newer(last, beat)


def _driver(beat: WorkerBeat) -> tuple[str, int, int, float]:
    return beat.supervisor_id, beat.port, beat.pid, beat.started_at


def _rank(beat: WorkerBeat, look: int) -> tuple[int, int, float]:
    return beat.launch, look, beat.time
