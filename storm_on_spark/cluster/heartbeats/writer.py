"""Writing heartbeats, to ZooKeeper or to Pacemaker; drivers and supervisors don't know which.

Only the latest heartbeat counts. Those that couldn't be written for a while are dropped, and no caller waits for them.
"""

from __future__ import annotations

import logging
import random
import threading
import time
from abc import abstractmethod
from collections.abc import Callable
from functools import partial

from storm_on_spark.cluster.errors import PacemakerError, RecordError
from storm_on_spark.cluster.heartbeats.connection import Connection, Login
from storm_on_spark.cluster.heartbeats.login import writer_login
from storm_on_spark.cluster.heartbeats.settings import HeartbeatSettings, PacemakerSettings
from storm_on_spark.cluster.heartbeats.sticky import Sticky
from storm_on_spark.cluster.heartbeats.values import SupervisorPulse, pack, supervisor_path, worker_path
from storm_on_spark.cluster.pacemaker.access import SUPERVISORS_ID
from storm_on_spark.cluster.pacemaker.messages import MessageType, Pulse
from storm_on_spark.cluster.records import WorkerBeat
from storm_on_spark.runtime.processes.closing import Closing

log = logging.getLogger(__name__)


class BeatWriter(Closing):
    """Writes a driver's heartbeats to their store."""

    @abstractmethod
    def put(self, beat: WorkerBeat) -> None:
        """Queues a heartbeat, in place of one that is waiting. Never blocks."""


class ZooKeeperWriter(BeatWriter):
    """Writes heartbeats to ZooKeeper, on the thread that talks to it.

    Args:
        soon: queues a call on that thread.
        write: writes a heartbeat, on that thread.
    """

    def __init__(self, soon: Callable[[Callable[[], None]], None], write: Callable[[WorkerBeat], None]) -> None:
        self._soon = soon
        self._write = write
        self._beat: WorkerBeat | None = None

    def put(self, beat: WorkerBeat) -> None:
        """Queues a heartbeat, in place of one that is waiting."""
        waiting, self._beat = self._beat is not None, beat
        if not waiting:
            self._soon(self._take)

    def close(self) -> None:
        """Stops writing."""
        self._beat = None

    def _take(self) -> None:
        beat, self._beat = self._beat, None
        if beat is not None:
            self._write(beat)


class _Latest(Closing):
    """Runs the latest call that was queued, on its own thread."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._changed = threading.Condition()
        #: These change only while `_changed` is held.
        self._latest: Callable[[], None] | None = None
        self._thread: threading.Thread | None = None
        self.closed = False

    def soon(self, work: Callable[[], None]) -> None:
        """Queues a call, in place of one that is waiting."""
        with self._changed:
            self._latest = work
            if self._thread is None and not self.closed:
                self._thread = threading.Thread(target=self._run, name=self._name, daemon=True)
                self._thread.start()
            self._changed.notify()

    def is_late(self, pause: float) -> bool:
        """Waits until a newer call is queued or the time is over; returns whether one is, or this was closed."""
        with self._changed:
            return self._changed.wait_for(lambda: self.closed or self._latest is not None, pause)

    def close(self) -> None:
        """Ends the thread; a call that waits is dropped."""
        with self._changed:
            self.closed = True
            self._changed.notify()
        if self._thread is not None:
            self._thread.join()

    def _run(self) -> None:
        while (work := self._next()) is not None:
            try:
                work()
            except Exception:
                log.exception("no heartbeat")

    def _next(self) -> Callable[[], None] | None:
        with self._changed:
            self._changed.wait_for(lambda: self.closed or self._latest is not None)
            work, self._latest = self._latest, None
            return None if self.closed else work


class PacemakerWriter(BeatWriter):
    """Writes heartbeats to the first Pacemaker that takes them, and stays with it.

    Args:
        settings: which Pacemakers.
        login: returns what to do on a new connection to a server.
        chance: for the order of servers and the length of pauses.
        clock: monotonic seconds.
    """

    def __init__(
        self,
        settings: PacemakerSettings,
        login: Callable[[str], Login | None] = lambda server: None,
        chance: random.Random | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._settings = settings
        self._login = login
        self._clock = clock
        self._sticky = Sticky(settings.servers, random.Random() if chance is None else chance)
        self._work = _Latest("heartbeats")
        self._connection: Connection | None = None
        self._trouble = False

    def put(self, beat: WorkerBeat) -> None:
        """Queues a heartbeat, in place of one that is waiting."""
        self._work.soon(partial(self._write, beat))

    def close(self) -> None:
        """Ends the writer's thread and hangs up."""
        self._work.close()
        if self._connection is not None:
            self._connection.close()

    def _write(self, beat: WorkerBeat) -> None:
        """Writes a heartbeat, or drops it when no server may be tried yet and a newer one is waiting."""
        try:
            pulse = Pulse(worker_path(beat), pack(beat))
        except RecordError as error:
            log.warning("no heartbeat: %s", error)
            return
        while not self._work.closed:
            server = self._sticky.choose(self._clock())
            if server is None:
                if self._work.is_late(max(0.0, self._sticky.due() - self._clock())):
                    return
            elif self._sent(server, pulse):
                return

    def _sent(self, server: str, pulse: Pulse) -> bool:
        try:
            self._to(server).ask([(MessageType.SEND_PULSE, pulse)])
        except PacemakerError as error:
            self._sticky.failed(server, self._clock())
            if not self._trouble:
                log.warning("heartbeats: %s", error)
            self._trouble = True
            return False
        self._sticky.worked(server)
        if self._trouble:
            log.info("heartbeats are written to Pacemaker %s", server)
        self._trouble = False
        return True

    def _to(self, server: str) -> Connection:
        if self._connection is None or self._connection.server != server:
            if self._connection is not None:
                self._connection.close()
            self._connection = Connection(server, self._settings, self._login(server))
        return self._connection


class SupervisorPulses(Closing):
    """Beats for a supervisor at every Pacemaker, and says which of them it reaches.

    Args:
        settings: which Pacemakers.
        path: of the supervisor's pulse.
        login: returns what to do on a new connection to a server.
        now: seconds since the epoch.
    """

    def __init__(
        self,
        settings: PacemakerSettings,
        path: str,
        login: Callable[[str], Login | None] = lambda server: None,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._path = path
        self._now = now
        self._connections = [Connection(server, settings, login(server)) for server in settings.servers]
        self._reached: frozenset[str] = frozenset()
        self._work = _Latest("supervisor-pulses")

    def put(self) -> None:
        """Queues a heartbeat. Never blocks."""
        self._work.soon(self._say)

    def close(self) -> None:
        """Ends the thread and hangs up."""
        self._work.close()
        for connection in self._connections:
            connection.close()

    def _say(self) -> None:
        reached = self._round()
        if reached != self._reached:
            # What was said just now is what was known before.
            log.info("this supervisor reaches %s", ", ".join(sorted(reached)) or "no Pacemaker")
            self._reached = reached
            self._round()

    def _round(self) -> frozenset[str]:
        pulse = Pulse(self._path, SupervisorPulse(self._now(), tuple(sorted(self._reached))).to_bytes())
        reached = set()
        for connection in self._connections:
            if self._work.closed:
                break
            try:
                connection.ask([(MessageType.SEND_PULSE, pulse)])
            except PacemakerError as error:
                if connection.server in self._reached:
                    log.warning("%s", error)
            else:
                reached.add(connection.server)
        return frozenset(reached)


def driver_writer(settings: HeartbeatSettings, zookeeper: Callable[[], BeatWriter], topology_id: str) -> BeatWriter:
    """Returns the writer of a driver's heartbeats for the configured store.

    Args:
        settings: the cluster's.
        zookeeper: makes the writer to ZooKeeper.
        topology_id: whose they are.

    Raises:
        SetupError: the settings have no credentials.
    """
    if settings.pacemakers is None:
        return zookeeper()
    return PacemakerWriter(settings.pacemakers, writer_login(settings, topology_id))


def supervisor_pulses(settings: HeartbeatSettings, supervisor_id: str) -> SupervisorPulses | None:
    """Returns the writer of a supervisor's heartbeats; None where no Pacemaker keeps heartbeats.

    Raises:
        SetupError: the settings have no credentials.
    """
    if settings.pacemakers is None:
        return None
    login = writer_login(settings, SUPERVISORS_ID)
    return SupervisorPulses(settings.pacemakers, supervisor_path(supervisor_id), login)
