"""A driver's link to the cluster: what is wanted of it, and whether it still owns its topology.

ZooKeeper may hang for seconds while the topology runs on. So a separate thread talks to it; the driver's main loop
only reads what that has found out, and leaves notes of what is to be written.
"""

from __future__ import annotations

import contextlib
import logging
import os
import queue
import threading
import time
from collections.abc import Callable
from functools import partial
from typing import Any

from kazoo.exceptions import KazooException

from storm_on_spark.api.errors import CheckpointError, SetupError
from storm_on_spark.cluster.credentials import opened
from storm_on_spark.cluster.errors import ClusterError, OwnershipLostError, RecordError, UnavailableError
from storm_on_spark.cluster.heartbeats.writer import BeatWriter, ZooKeeperWriter
from storm_on_spark.cluster.paths import ASSIGNMENTS, CHECKPOINTS, CREDENTIALS, LOGCONFIGS, OWNERS, STORMS
from storm_on_spark.cluster.records import (
    Assignment,
    CheckpointInfo,
    ErrorRecord,
    LogConfig,
    Ownership,
    StoredCredentials,
    StormBase,
    WorkerBeat,
)
from storm_on_spark.cluster.security.keyring import Keyring, Stamps
from storm_on_spark.cluster.state import ClusterState
from storm_on_spark.cluster.zookeeper.session import SessionState, ZooKeeperSession
from storm_on_spark.cluster.zookeeper.settings import ZooKeeperSettings

log = logging.getLogger(__name__)

_LOOK_SECS = 10.0
"""Between two looks at everything; watches tell of changes at once."""
_RETRY_SECS = 0.25
_FINISH_SECS = 600.0
"""How long a driver that has ended waits for ZooKeeper to say so."""


class ClusterLink:
    """Takes and keeps the ownership of a topology.

    Args:
        settings: which ZooKeeper.
        assignment: the permission to run.
        version: ZooKeeper's, of the assignment's node.
        keyring: says which records count.
    """

    def __init__(
        self, settings: ZooKeeperSettings, assignment: Assignment, version: int, keyring: Keyring | None = None
    ) -> None:
        self._settings = settings
        self._keyring = keyring
        self._assignment = assignment
        self._version = version
        self._id = assignment.topology_id
        self._session: ZooKeeperSession | None = None
        self._thread: threading.Thread | None = None
        self._notes: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._owned_in: int | None = None
        #: A record that is older than one that was read before has been written again by others.
        self._stamps = Stamps()
        self._stopping = threading.Event()
        self._renew: Callable[[int], None] = lambda epoch: None
        self.problem = ""
        self._saying: CheckpointInfo | None = None
        self.base: StormBase | None = None
        """The topology as it was last seen; None if there is no such topology."""
        self.log_levels: LogConfig | None = None
        """The levels of loggers that were changed."""
        self.credentials: dict[str, str] = {}
        """The credentials that were pushed to the topology; never to be logged."""
        #: Which record they are of, and what was wrong with the last one.
        self._stored: StoredCredentials | None = None
        self._unreadable = ""
        self.released: str | None = None
        """Why the driver has to end in order: its assignment is gone."""
        self.lost: str | None = None
        """Why the driver has to end at once: another owns the topology."""

    # Called by the driver's main thread.

    def connect(self, give_up: Callable[[], bool]) -> None:
        """Connects, however long that takes.

        Raises:
            UnavailableError: `give_up` became true.
        """
        while True:
            session = ZooKeeperSession(self._settings, keyring=self._keyring)
            try:
                session.start()
            except UnavailableError:
                log.warning("ZooKeeper (%s) can't be reached; trying again", self._settings.hosts)
                if give_up():
                    raise
                continue
            self._session = session
            return

    def own(self, give_up: Callable[[], bool]) -> int:
        """Takes the topology as soon as no other driver owns it.

        Returns:
            The epoch of this ownership; it grows with every one.

        Raises:
            OwnershipLostError: the assignment has changed.
            UnavailableError: `give_up` became true.
        """
        waited_for: int | None = None
        while True:
            try:
                epoch = self._take()
                self._look()
                return epoch
            except OwnershipLostError as error:
                if error.owner is None:
                    raise
                if waited_for != error.owner.pid:
                    waited_for = error.owner.pid
                    log.info("waiting: %s", error)
            except UnavailableError as error:
                log.warning("%s", error)
            if give_up():
                raise UnavailableError(f"the driver was told to end before it owned {self._id}")
            time.sleep(_RETRY_SECS)

    def watch(self, renew: Callable[[int], None]) -> None:
        """Begins to watch what is wanted, and to keep the ownership.

        Args:
            renew: called with the new epoch when the ownership had to be taken again; raises if that is too late.
        """
        assert self._session is not None
        self._renew = renew
        self._thread = threading.Thread(target=self._run, name="driver-link", daemon=True)
        self._session.add_listener(self._on_state)
        self._thread.start()

    def state_known(self) -> CheckpointInfo | None:
        """Returns which state the topology has; None if it never committed anything.

        Raises:
            RecordError: that can't be read by this release.
            UnavailableError: ZooKeeper is away.
        """
        found = self._state.get(CheckpointInfo, CHECKPOINTS, self._id)
        return None if found is None else found[0]

    def say_state(self, info: CheckpointInfo) -> None:
        """Queues a record of the topology's state; it is written as soon as possible."""
        self._saying = info
        self._notes.put(self._write_state)

    def forget_state(self, info: CheckpointInfo, give_up: Callable[[], bool]) -> None:
        """Writes, before it returns, that the topology has none.

        Raises:
            OwnershipLostError: it is another driver's by now.
            UnavailableError: `give_up` became true.
        """
        while True:
            try:
                self._state.put_checkpoint(info, self._version)
                return
            except UnavailableError as error:
                log.warning("%s", error)
                if give_up():
                    raise
            time.sleep(_RETRY_SECS)

    def beat_writer(self) -> BeatWriter:
        """Returns what writes heartbeats to ZooKeeper, on the link's own thread."""
        return ZooKeeperWriter(self._notes.put, lambda beat: self._state.put_beat(beat))

    def report(self, error: ErrorRecord) -> None:
        """Queues an error for the place where users of the topology find it."""
        self._notes.put(lambda: self._state.add_error(self._id, error))

    def close(self, last: WorkerBeat | None = None, errors: tuple[ErrorRecord, ...] = ()) -> None:
        """Writes its last words, releases the topology and disconnects. Waits for ZooKeeper if there are last words."""
        if self._session is None:
            return
        self._stopping.set()
        self._notes.put(None)
        if self._thread is not None:
            self._thread.join()
        deadline = time.monotonic() + (_FINISH_SECS if last is not None else 0.0)
        todo: list[Callable[[], object]] = [partial(self._state.add_error, self._id, error) for error in errors]
        if self._saying is not None:
            todo.append(partial(self._state.put_checkpoint, self._saying, self._version))
        if last is not None:
            todo.append(partial(self._state.put_beat, last))
        while todo:
            try:
                todo[0]()
                todo.pop(0)
            except (ClusterError, KazooException) as error:
                log.warning("%s", error)
                if not isinstance(error, UnavailableError):
                    todo.pop(0)
                elif time.monotonic() > deadline:
                    break
        # With the session the ownership goes.
        self._session.close()

    # The link's own thread.

    def _run(self) -> None:
        look_at = time.monotonic() + _LOOK_SECS
        self._notes.put(self._look)
        while not self._stopping.is_set():
            try:
                note = self._notes.get(timeout=max(0.0, look_at - time.monotonic()))
            except queue.Empty:
                note = self._look
                look_at = time.monotonic() + _LOOK_SECS
            if note is None:
                return
            try:
                note()
            except UnavailableError as error:
                # After the next CONNECTED everything is looked at; beats are repeated anyway.
                log.warning("%s", error)
            except OwnershipLostError as error:
                self._give_up(error)
            except (ClusterError, KazooException) as error:
                log.warning("ZooKeeper: %r", error)

    def _look(self) -> None:
        """Reads what is wanted, and sees to the ownership."""
        assert self._session is not None
        client, path = self._session.client, self._session.paths.of
        for folder in (STORMS, ASSIGNMENTS, OWNERS, LOGCONFIGS, CREDENTIALS):
            # Sets a watch, whether or not the node is there; `get` of the state reads it as a record.
            self._session.wait(client.exists_async(path(folder, self._id), watch=self._on_event))
        problem = ""
        with contextlib.suppress(RecordError):
            levels = self._state.get(LogConfig, LOGCONFIGS, self._id)
            self.log_levels = None if levels is None else levels[0]
        self._read_credentials()
        try:
            found = self._state.get(StormBase, STORMS, self._id)
            self.base = None if found is None else found[0]
        except RecordError as error:
            # Another release wrote it, or it is damaged: no reason to end what runs.
            problem = str(error)
        assigned: tuple[Assignment, int] | None = self._assignment, self._version
        readable = True
        try:
            assigned = self._state.get(Assignment, ASSIGNMENTS, self._id)
        except RecordError as error:
            problem, readable = str(error), False
        self._tell(problem)
        if assigned is None or assigned[0] != self._assignment:
            self.released = "its assignment is gone" if assigned is None else "its assignment has changed"
            return
        # A leader that signs it again changes only its version.
        self._version = assigned[1]
        stat = self._state.stat(OWNERS, self._id)
        if stat is None or stat.ephemeralOwner != self._session.session_id:
            if self._owned_in is not None:
                log.warning("the ownership of %s was lost; taking it again", self._id)
            try:
                self._renew(self._take())
            except CheckpointError as error:
                self.lost = str(error)
                return
        if readable:
            self._write_state()

    def _read_credentials(self) -> None:
        unreadable = ""
        try:
            found = self._state.get(StoredCredentials, CREDENTIALS, self._id)
            record = None if found is None else found[0]
            if record != self._stored:
                assert self._session is not None
                path, keyring = self._session.paths.of(CREDENTIALS, self._id), self._session.keyring
                self.credentials = {} if record is None else opened(record, path, keyring)
                self._stored = record
        except (RecordError, SetupError) as error:
            unreadable = str(error)
            if unreadable != self._unreadable:
                log.error("the topology's credentials can't be read, and stay as they are: %s", error)
        self._unreadable = unreadable

    def _write_state(self) -> None:
        info = self._saying
        if info is not None and self._owned_in == self._connected_session():
            self._state.put_checkpoint(info, self._version)
            self._saying = None

    def _connected_session(self) -> int | None:
        assert self._session is not None
        return self._session.session_id

    def _tell(self, problem: str) -> None:
        """Logs once what keeps the driver from knowing what is wanted of it."""
        if problem and problem != self.problem:
            log.warning("the topology continues as it is: %s", problem)
        self.problem = problem

    def _take(self) -> int:
        assert self._session is not None
        mine = self._assignment
        assigned = self._state.get(Assignment, ASSIGNMENTS, self._id)
        if assigned is None or assigned[0] != mine:
            # Compare the content, not the version: a node that was deleted and created again has the same version.
            raise OwnershipLostError(f"{self._id} isn't assigned to this driver any more")
        self._version = assigned[1]
        ownership = Ownership(
            topology_id=self._id,
            supervisor_id=mine.supervisor_id,
            host=mine.host,
            port=mine.port,
            pid=os.getpid(),
            launch=mine.launch,
            epoch=mine.epoch,
        )
        self._state.take_ownership(ownership, self._version)
        stat = self._state.stat(OWNERS, self._id)
        if stat is None or stat.ephemeralOwner != self._session.session_id:
            raise UnavailableError(f"the ownership of {self._id} was lost again immediately")
        self._owned_in = self._session.session_id
        return int(stat.czxid)

    def _give_up(self, error: OwnershipLostError) -> None:
        mine = os.getpid(), self._assignment.host
        if error.owner is None or (error.owner.pid, error.owner.host) == mine:
            # The assignment has another version: a look tells whether it says something else, or can't be read.
            # Or the owner is of our own last session, which ZooKeeper has not yet given up.
            self._notes.put(self._look_again)
        else:
            self.lost = str(error)

    def _look_again(self) -> None:
        if not self._stopping.wait(_RETRY_SECS):
            self._look()

    @property
    def _state(self) -> ClusterState:
        assert self._session is not None
        return ClusterState(self._session, self._stamps)

    # Called by kazoo and by the session: only leave a note.

    def _on_event(self, event: Any) -> None:
        self._notes.put(self._look)

    def _on_state(self, state: SessionState) -> None:
        if state == "CONNECTED":
            self._notes.put(self._look)
