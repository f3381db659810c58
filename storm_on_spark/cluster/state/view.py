"""A watched copy of the cluster's state, which can be read while ZooKeeper is away.

One thread reads. Watches and changes of the connection only tell it what to look at again, so that a change costs one
read, and many at once are read together. kazoo forgets all watches when the connection breaks: then everything is read
again, and until that is done the copy is `stale`.
"""

from __future__ import annotations

import logging
import queue
import threading
import time
from collections.abc import Callable, Collection, Mapping
from typing import Any, Final

from kazoo.exceptions import KazooException, NoNodeError
from kazoo.protocol.states import EventType

from storm_on_spark.cluster.errors import UnavailableError
from storm_on_spark.cluster.paths import CODE, LEADER_INFO
from storm_on_spark.cluster.records import WorkerBeat
from storm_on_spark.cluster.state.contents import WATCHED, Contents, Node, Parts
from storm_on_spark.cluster.state.snapshot import ClusterSnapshot
from storm_on_spark.cluster.zookeeper.session import SessionState, ZooKeeperSession
from storm_on_spark.runtime.processes.closing import Service

logger = logging.getLogger(__name__)

_RETRY_SECS: Final = 1.0
"""Until everything is read again after a read failed though the connection holds."""
_PROBLEM_SECS: Final = 5.0
"""Between two looks at what could not be read, or was refused: a file with a new secret may come after the record."""

OnChange = Callable[[frozenset[str]], None]


class _Dirty:
    """The paths that have to be read."""

    def __init__(self) -> None:
        self.everything = False
        self.stop = False
        self.children: set[Parts] = set()
        self.nodes: set[Parts] = set()
        self.beats: Mapping[str, WorkerBeat] | None = None
        self.refreshed: list[threading.Event] = []
        """To be set when everything has been read."""

    def __bool__(self) -> bool:
        return bool(self.everything or self.children or self.nodes)


class ClusterView(Service):
    """A copy of what is in ZooKeeper, kept up to date by watches.

    Args:
        session: a session that has been started.
        now: seconds since the epoch.
        folders: what is read; the rest stays empty. With heartbeats, every one of them wakes the view.

    Example:
        >>> with ClusterView(session) as view:                                  # doctest: +SKIP
        ...     view.wait_for(lambda cluster: cluster.leader is not None, timeout=10).leader.address
        'localhost:6627'
    """

    def __init__(
        self, session: ZooKeeperSession, now: Callable[[], float] = time.time, folders: Collection[str] = WATCHED
    ) -> None:
        self._folders = frozenset(folders)
        self._session = session
        self._now = now
        self._contents = Contents(session.settings.root, session.keyring)
        self._items: queue.SimpleQueue[Callable[[_Dirty], None]] = queue.SimpleQueue()
        self._condition = threading.Condition()
        #: Both change only while `_condition` is held.
        self._snapshot = ClusterSnapshot()
        self._stale: float | None = now()
        self._callbacks: list[OnChange] = []
        self._losses = 0
        """How often the connection has broken: it shows a reader of everything a break in between."""
        self._thread: threading.Thread | None = None
        self._remove_listener: Callable[[], None] = lambda: None

    @property
    def stale(self) -> float | None:
        """Since when (seconds since the epoch) the copy may be out of date; None while it is kept up to date."""
        return self._stale

    @property
    def losses(self) -> int:
        """How often the connection has broken."""
        return self._losses

    def snapshot(self) -> ClusterSnapshot:
        """Returns the copy; it never changes, later calls return another."""
        return self._snapshot

    def start(self, timeout: float | None = None) -> None:
        """Reads everything once, then keeps reading.

        Args:
            timeout: how long the first time may take; the connection timeout if it is None.

        Raises:
            UnavailableError: it took longer.
        """
        self._remove_listener = self._session.add_listener(self._on_state)
        self._thread = threading.Thread(target=self._run, name="cluster-view", daemon=True)
        self._thread.start()
        try:
            self.refresh(timeout)
        except UnavailableError:
            self.close()
            raise

    def refresh(self, timeout: float | None = None) -> None:
        """Returns when everything that was written before this call has been read.

        Raises:
            UnavailableError: that took longer than `timeout`, or than the connection timeout if that is None.
        """
        seconds = self._session.settings.connection_timeout_secs if timeout is None else timeout
        done = threading.Event()

        def everything(dirty: _Dirty) -> None:
            dirty.everything = True
            dirty.refreshed.append(done)

        self._items.put(everything)
        if not done.wait(seconds):
            raise UnavailableError(
                f"the cluster's state below {self._session.settings.root} could not be read within {seconds:g} s; "
                f"the connection to ZooKeeper is {self._session.state}"
            )

    def set_beats(self, beats: Mapping[str, WorkerBeat]) -> None:
        """Adds drivers' heartbeats that are kept elsewhere, by topology id; the later of two counts."""
        self._items.put(lambda dirty: setattr(dirty, "beats", beats))

    def close(self) -> None:
        """Stops reading; the last snapshot stays."""
        self._remove_listener()
        if self._thread is not None:
            self._items.put(lambda dirty: setattr(dirty, "stop", True))
            self._thread.join()
            self._thread = None

    def on_change(self, callback: OnChange) -> Callable[[], None]:
        """Calls `callback` with the names of folders that have changed, after `snapshot()` shows the change.

        It is called on the thread that reads: nothing is read before it returns. `leader-info` stands for who leads.

        Returns:
            What removes it again.
        """
        with self._condition:
            self._callbacks.append(callback)

        def remove() -> None:
            with self._condition:
                if callback in self._callbacks:
                    self._callbacks.remove(callback)

        return remove

    def wait_for(self, predicate: Callable[[ClusterSnapshot], object], timeout: float) -> ClusterSnapshot | None:
        """Returns the first snapshot for which `predicate` is true; None if there is none within `timeout` seconds."""
        deadline = time.monotonic() + timeout
        with self._condition:
            while True:
                snapshot = self._snapshot
                if predicate(snapshot):
                    return snapshot
                remaining = deadline - time.monotonic()
                if remaining <= 0 or not self._condition.wait(remaining):
                    return self._snapshot if predicate(self._snapshot) else None

    # Called by others' threads: only leave a note.

    def _on_state(self, state: SessionState) -> None:
        if state == "CONNECTED":
            self._items.put(lambda dirty: setattr(dirty, "everything", True))
            return
        with self._condition:
            self._losses += 1
            if self._stale is None:
                self._stale = self._now()

    def _on_event(self, event: Any) -> None:
        """Called by kazoo with the one event of a watch; on a lost connection, with one that has no path."""
        if event.path is None:
            return
        parts = tuple(event.path.removeprefix(self._session.settings.root).strip("/").split("/"))
        if event.type == EventType.CHILD:
            self._items.put(lambda dirty: dirty.children.add(parts))
        else:
            self._items.put(lambda dirty: dirty.nodes.add(parts))

    # The thread that reads.

    def _run(self) -> None:
        dirty = _Dirty()
        retry_at: float | None = None
        while True:
            timeout = None if retry_at is None else max(0.0, retry_at - time.monotonic())
            if timeout is None and self._contents.problems():
                timeout = _PROBLEM_SECS
            try:
                self._items.get(timeout=timeout)(dirty)
                while True:
                    self._items.get_nowait()(dirty)
            except queue.Empty:
                if retry_at is None and not dirty:
                    dirty.nodes |= self._contents.damaged()
            if dirty.stop:
                return
            if dirty.beats is not None:
                self._contents.set_beats(dirty.beats)
                dirty.beats = None
                self._show(*self._contents.snapshot())
            if not dirty or self._session.state != "CONNECTED":
                # After the next CONNECTED everything is read.
                retry_at = None if not dirty or self._session.state != "CONNECTED" else retry_at
                continue
            losses = self._losses
            try:
                self._read(dirty)
            except (UnavailableError, KazooException) as error:
                logger.warning("The cluster's state could not be read: %r", error)
                dirty.everything = True
                retry_at = time.monotonic() + _RETRY_SECS
                continue
            retry_at = None
            self._publish(dirty, losses)
            dirty = _Dirty()

    def _read(self, dirty: _Dirty) -> None:
        client, path = self._session.client, self._session.paths.of
        if dirty.everything:
            self._session.wait(client.sync_async(self._session.settings.root))
            self._session.ensure_folders()
        folders = set(self._folders) if dirty.everything else {parts[0] for parts in dirty.children if len(parts) == 1}
        nodes: set[Parts] = {(LEADER_INFO,)} if dirty.everything else set(dirty.nodes)
        replicas = {parts for parts in dirty.children if len(parts) == 2}
        lists = {folder: client.get_children_async(path(folder), watch=self._on_event) for folder in folders}
        for folder, result in lists.items():
            names = self._wait(result) or []
            new = self._contents.set_names(folder, names)
            for name in names if dirty.everything else new:
                nodes.add((folder, name))
                if folder == CODE:
                    replicas.add((folder, name))
        reads = {parts: client.get_async(path(*parts), watch=self._on_event) for parts in nodes}
        counts = {parts: client.get_children_async(path(*parts), watch=self._on_event) for parts in replicas}
        for parts, result in reads.items():
            found = self._wait(result)
            node = None if found is None else Node(found[0], found[1].version, found[1].czxid)
            before = self._contents.problems().get(path(*parts))
            self._contents.set_node(parts, node)
            problem = self._contents.problems().get(path(*parts))
            if problem is not None and problem != before:
                logger.error("Left out: %s", problem)
        for parts, result in counts.items():
            self._contents.set_replicas(parts[1], self._wait(result) or [])

    def _wait(self, result: Any) -> Any:
        try:
            return self._session.wait(result)
        except NoNodeError:
            return None

    def _publish(self, dirty: _Dirty, losses: int) -> None:
        snapshot, changed = self._contents.snapshot()
        self._show(snapshot, changed, dirty.everything and losses == self._losses, tuple(dirty.refreshed))

    def _show(
        self,
        snapshot: ClusterSnapshot,
        changed: frozenset[str],
        fresh: bool = False,
        refreshed: tuple[threading.Event, ...] = (),
    ) -> None:
        with self._condition:
            self._snapshot = snapshot
            if fresh:
                self._stale = None
            callbacks = list(self._callbacks)
            self._condition.notify_all()
        for done in refreshed:
            done.set()
        if not changed:
            return
        for callback in callbacks:
            try:
                callback(changed)
            except Exception:
                logger.exception("A callback after changes of %s failed", ", ".join(sorted(changed)))
