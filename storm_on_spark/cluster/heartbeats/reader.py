"""A Nimbus' readers of heartbeats, which also say since when heartbeats are unknown."""

from __future__ import annotations

import logging
import threading
import time
import zlib
from abc import abstractmethod
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Final

from storm_on_spark.cluster.errors import FormatError, PacemakerError, RecordError
from storm_on_spark.cluster.heartbeats.knowledge import Knowledge, PacemakerState
from storm_on_spark.cluster.heartbeats.pulses import PulseReader
from storm_on_spark.cluster.heartbeats.rules import Hearing, Look, Verdict
from storm_on_spark.cluster.heartbeats.settings import BEAT_SECS, PacemakerSettings
from storm_on_spark.cluster.heartbeats.values import (
    SUPERVISORS,
    WORKERS,
    SupervisorPulse,
    supervisor_name,
    unpack,
    worker_name,
)
from storm_on_spark.cluster.records import Assignment, WorkerBeat
from storm_on_spark.cluster.state.newest import Newest
from storm_on_spark.runtime.processes.closing import Service

log = logging.getLogger(__name__)

_MOST_SECS: Final = 10.0
"""Between two looks, as in Storm."""
_MOST_WARNED: Final = 1000
_SHARE: Final = 0.1
"""Part of the thread's time that reading may take; beyond it, looks become rarer."""


@dataclass(frozen=True)
class Beaters:
    """The writers whose heartbeats are expected."""

    topologies: frozenset[str] = frozenset()
    drivers: frozenset[str] = frozenset()
    """As `worker_name` calls them."""
    supervisors: frozenset[str] = frozenset()
    """Ids."""


class HeartbeatReader(Service):
    """A Nimbus' view of heartbeats, the same for each store."""

    @abstractmethod
    def knowledge(self) -> Knowledge:
        """Returns what is known of heartbeats as a whole."""

    @abstractmethod
    def unjudged(self, assignments: Mapping[str, Assignment]) -> Collection[str]:
        """Returns the topologies whose drivers' silence proves nothing at the moment."""

    @abstractmethod
    def mute(self) -> Collection[str]:
        """Returns the supervisors that can't be heard though others can: drivers avoid them if there is a choice."""

    @abstractmethod
    def forget(self, topology_id: str) -> None:
        """Arranges that the heartbeats of a removed topology are deleted soon."""


class ZooKeeperReader(HeartbeatReader):
    """Heartbeats are in ZooKeeper with everything else: a Nimbus that can read ZooKeeper knows them."""

    def start(self) -> None:
        """Does nothing: the watched copy of ZooKeeper has them."""

    def close(self) -> None:
        """Does nothing."""

    def knowledge(self) -> Knowledge:
        """Returns that heartbeats are known."""
        return Knowledge()

    def unjudged(self, assignments: Mapping[str, Assignment]) -> Collection[str]:
        """Returns none."""
        return ()

    def mute(self) -> Collection[str]:
        """Returns none."""
        return ()

    def forget(self, topology_id: str) -> None:
        """Does nothing: they go with the topology's other nodes."""


@dataclass
class _Server:
    """The last reading of one server."""

    reader: PulseReader
    state: PacemakerState
    signs: dict[str, Hashable] = field(default_factory=dict)
    reached: dict[str, frozenset[str]] = field(default_factory=dict)
    #: Path -> checksum of a value, and the heartbeat in it: most values are the same as with the look before only while
    #: a driver hangs, but those of another server never change again.
    decoded: dict[str, tuple[int, WorkerBeat | None]] = field(default_factory=dict)


class PacemakerReader(HeartbeatReader):
    """Reads all Pacemakers periodically.

    Args:
        settings: which Pacemakers.
        make: makes what reads one of them.
        beaters: returns who should beat.
        publish: is given the newest heartbeat of each topology that there is.
        window: as for `Hearing`.
        clock: monotonic seconds.
        now: seconds since the epoch.
    """

    def __init__(
        self,
        settings: PacemakerSettings,
        make: Callable[[str], PulseReader],
        beaters: Callable[[], Beaters],
        publish: Callable[[Mapping[str, WorkerBeat]], None],
        window: float,
        clock: Callable[[], float] = time.monotonic,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._servers = {name: _Server(make(name), PacemakerState(name)) for name in settings.servers}
        self._beaters = beaters
        self._publish = publish
        self._window = window
        self._clock = clock
        self._now = now
        self._newest = Newest()
        self._pool = ThreadPoolExecutor(settings.threads, thread_name_prefix="pacemaker-reader")
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="heartbeats", daemon=True)
        self._lock = threading.Lock()
        #: These change only while `_lock` is held.
        self._hearing = Hearing(window)
        #: Drivers that were unknown at some look since the leader asked last.
        self._doubted: set[str] = set()
        self._looked: float | None = None
        #: Supervisor -> the first of the latest looks in a row that heard others and not it.
        self._quiet: dict[str, float] = {}
        self._started = clock()
        self._gone: set[str] = set()
        #: Server -> topologies whose heartbeats it has not been asked to delete yet.
        self._to_delete: dict[str, set[str]] = {name: set() for name in settings.servers}
        self._knowledge = Knowledge("pacemaker", pacemakers=tuple(each.state for each in self._servers.values()))
        self._logged: tuple[str, ...] = ()
        self._warned: set[str] = set()

    def start(self) -> None:
        """Looks once, then periodically on its own thread; Pacemakers may be away."""
        self.look()
        self._thread.start()

    def close(self) -> None:
        """Ends the thread and hangs up."""
        self._stopped.set()
        if self._thread.ident is not None:
            self._thread.join()
        self._pool.shutdown()
        for server in self._servers.values():
            server.reader.close()

    def knowledge(self) -> Knowledge:
        """Returns what is known of heartbeats as a whole."""
        return self._knowledge

    def unjudged(self, assignments: Mapping[str, Assignment]) -> Collection[str]:
        """Returns the topologies whose drivers' silence proves nothing at the moment.

        Included are those that were unknown at any look since the last question: a leader asks less often than
        heartbeats are read, and time without knowledge counts against no driver.
        """
        with self._lock:
            if self._is_old():
                return set(assignments)
            doubted, self._doubted = self._doubted, set()
            names = {name: worker_name(name, at.supervisor_id, at.port) for name, at in assignments.items()}
            return {
                topology_id
                for topology_id, driver in names.items()
                if driver in doubted or self._verdict(driver) is not Verdict.SILENT
            }

    def mute(self) -> Collection[str]:
        """Returns the supervisors that could not be heard for the window, though others could.

        One that has just joined, or whose heartbeat came after the last look, is not among them.
        """
        with self._lock:
            if self._looked is None or self._is_old():
                return ()
            return {name for name, since in self._quiet.items() if self._looked - since >= self._window}

    def forget(self, topology_id: str) -> None:
        """Arranges that a topology's heartbeats are deleted with the next look, or when a server answers."""
        with self._lock:
            for waiting in self._to_delete.values():
                waiting.add(topology_id)

    def _is_old(self) -> bool:
        """Whether the last look was too long ago to conclude anything from it."""
        return self._looked is None or self._clock() - self._looked > self._window

    def _verdict(self, writer: str) -> Verdict:
        return self._hearing.judge(writer).verdict

    def _run(self) -> None:
        # At least two looks within the window: otherwise silence would be counted from zero at each.
        least = pause = min(BEAT_SECS, self._window / 2)
        while not self._stopped.wait(pause):
            began = self._clock()
            try:
                self.look()
            except Exception:
                log.exception("heartbeats can't be read")
            pause = min(_MOST_SECS, max(least, (self._clock() - began) / _SHARE))

    def look(self) -> None:
        """Reads all Pacemakers once, on the calling thread.

        `start` does it over and over. Without `start`, the caller decides when to look; the connections to Pacemakers
        are for one thread at a time, so callers must not do both.
        """
        beaters = self._beaters()
        results = list(self._pool.map(self._read, self._servers.values()))
        found = {name: signs for name, signs in zip(self._servers, results, strict=True) if signs is not None}
        beats = (
            (server.state.server, beat)
            for server in self._servers.values()
            for _, beat in server.decoded.values()
            if beat is not None and beat.topology_id in beaters.topologies
        )
        newest = self._newest.look(beats)
        self._newest.keep(beaters.topologies)
        drivers = {name for signs in found.values() for name in signs}
        with self._lock:
            self._looked = self._clock()
            expected = bool(beaters.drivers or beaters.supervisors)
            reached = {name: self._servers[name].reached for name in found}
            self._hearing.look(Look(self._looked, frozenset(self._servers), found, expected, reached))
            self._hearing.keep({*drivers, *beaters.drivers, *map(supervisor_name, beaters.supervisors)})
            unknown = {name for name in beaters.drivers if self._verdict(name) is Verdict.UNKNOWN}
            self._doubted = (self._doubted & beaters.drivers) | unknown
            quiet = [n for n in beaters.supervisors if self._verdict(supervisor_name(n)) is Verdict.SILENT]
            self._quiet = {name: self._quiet.get(name, self._looked) for name in quiet}
            self._knowledge = self._known(drivers)
        self._tell()
        self._publish({name: beat for name, beat in newest.items() if name in beaters.topologies})

    def _read(self, server: _Server) -> dict[str, Hashable] | None:
        """Reads one server; returns the signs of the writers there, None if it can't be read."""
        with self._lock:
            gone = list(self._to_delete[server.state.server])
        began = self._clock()
        try:
            for topology_id in gone:
                server.reader.delete(f"{WORKERS}/{topology_id}")
                with self._lock:
                    self._to_delete[server.state.server].discard(topology_id)
            values = server.reader.read_tree(WORKERS)
        except PacemakerError as error:
            away = server.state.away_since
            server.state = replace(server.state, away_since=self._now() if away is None else away, problem=str(error))
            return None
        signs: dict[str, Hashable] = {}
        decoded: dict[str, tuple[int, WorkerBeat | None]] = {}
        reached: dict[str, frozenset[str]] = {}
        new = 0
        for path, value in values.items():
            name = path.removeprefix(f"{WORKERS}/")
            check = zlib.crc32(value)
            signs[name] = check
            new += server.signs.get(name) != check
            if not path.startswith(f"{SUPERVISORS}/"):
                before = server.decoded.get(path)
                same = before is not None and before[0] == check
                decoded[path] = before if before and same else (check, self._unpack(value, path))
            else:
                reached[name] = self._reached(value, path)
        elapsed = self._clock() - (self._started if self._looked is None else self._looked)
        server.signs, server.decoded, server.reached = signs, decoded, reached
        server.state = PacemakerState(
            server.state.server,
            pulses=len(values),
            bytes=sum(map(len, values.values())),
            writes_per_sec=new / elapsed if self._looked is not None and elapsed > 0 else 0.0,
            read_secs=self._clock() - began,
        )
        return signs

    def _reached(self, value: bytes, path: str) -> frozenset[str]:
        """Returns the Pacemakers that a supervisor says it reaches; all of them if that can't be read."""
        try:
            return frozenset(SupervisorPulse.from_bytes(value, path).reaches)
        except RecordError as error:
            self._leave_out(path, error)
            return frozenset(self._servers)

    def _leave_out(self, path: str, error: RecordError) -> None:
        if path not in self._warned and len(self._warned) < _MOST_WARNED:
            self._warned.add(path)
            level = logging.INFO if isinstance(error, FormatError) else logging.WARNING
            log.log(level, "a heartbeat is left out: %s", error)

    def _unpack(self, value: bytes, path: str) -> WorkerBeat | None:
        try:
            return unpack(value, path)
        except RecordError as error:
            self._leave_out(path, error)
            return None

    def _known(self, drivers: Iterable[str]) -> Knowledge:
        unknown = self._hearing.unknown()
        writers: dict[str, list[str]] = {}
        for writer in sorted(drivers):
            where = self._hearing.where(writer)
            if where is not None:
                writers.setdefault(where, []).append(writer)
        states = []
        for name, server in self._servers.items():
            if server.state.away_since is None:
                server.state = replace(server.state, writers=tuple(writers.get(name, ())))
            states.append(server.state)
        since = None if unknown is None else self._now() - (self._clock() - unknown[0])
        return Knowledge("pacemaker", since, "" if unknown is None else unknown[1], tuple(states))

    def _tell(self) -> None:
        """Logs changes of what is known."""
        known = self._knowledge
        problems = [f"Pacemaker {each.server} is away: {each.problem}" for each in known.pacemakers if each.problem]
        if known.unknown_since is not None:
            problems.append(
                f"Heartbeats are unknown: {known.reason}. Topologies run on; none is moved because of its silence"
            )
        for problem in problems:
            if problem not in self._logged:
                log.warning("%s", problem)
        if self._logged and not problems:
            log.info("Heartbeats are known, and all Pacemakers answer")
        self._logged = tuple(problems)
