"""Ephemeral nodes that come back after their session has expired."""

from __future__ import annotations

import logging
import queue
import threading
import time
from typing import Final

from storm_on_spark.cluster.errors import ClusterError
from storm_on_spark.cluster.zookeeper.changes import Value
from storm_on_spark.cluster.zookeeper.session import SessionState
from storm_on_spark.cluster.zookeeper.tree import Tree
from storm_on_spark.runtime.processes.closing import Closing

logger = logging.getLogger(__name__)

_RETRY_SECS: Final = 1.0

Parts = tuple[str, ...]


class KeptNodes(Closing):
    """Keeps ephemeral nodes alive: what is registered stays so until it is dropped, over expired sessions too.

    A separate thread does it. Closing drops all of them, as far as there is a connection.

    Args:
        tree: over a session that has been started.

    Example:
        >>> with KeptNodes(tree) as kept:                                      # doctest: +SKIP
        ...     kept.keep(summary, "nimbuses", summary.address)
    """

    def __init__(self, tree: Tree) -> None:
        self._tree = tree
        self._lock = threading.Lock()
        #: Both change only while `_lock` is held.
        self._wanted: dict[Parts, Value] = {}
        self._to_do: set[Parts] = set()
        self._session: int | None = None
        self._wake: queue.SimpleQueue[bool] = queue.SimpleQueue()
        self._remove_listener = tree.session.add_listener(self._on_state)
        self._thread = threading.Thread(target=self._run, name="kept-nodes", daemon=True)
        self._thread.start()

    def keep(self, value: Value, *parts: str) -> None:
        """Makes a node soon, or gives it a new value, and makes it again whenever its session has expired."""
        with self._lock:
            self._wanted[parts] = value
            self._to_do.add(parts)
        self._wake.put(True)

    def drop(self, *parts: str) -> None:
        """Deletes a node soon, and does not make it again."""
        with self._lock:
            if self._wanted.pop(parts, None) is not None:
                self._to_do.add(parts)
        self._wake.put(True)

    def close(self) -> None:
        """Drops all and ends the thread."""
        self._remove_listener()
        with self._lock:
            self._to_do |= self._wanted.keys()
            self._wanted.clear()
        self._wake.put(False)
        self._thread.join()

    def _on_state(self, state: SessionState) -> None:
        if state == "CONNECTED":
            self._wake.put(True)

    def _run(self) -> None:
        running, retry_at = True, None
        while running:
            try:
                running = self._wake.get(timeout=None if retry_at is None else max(0.0, retry_at - time.monotonic()))
                while running:
                    running = self._wake.get_nowait()
            except queue.Empty:
                pass
            retry_at = None if self._work() else time.monotonic() + _RETRY_SECS

    def _work(self) -> bool:
        """Does what there is to do.

        Returns:
            Whether there is nothing left that a later attempt could do better; the next connection is one, too.
        """
        session = self._tree.session.session_id
        if session is None:
            return True
        with self._lock:
            if session != self._session:
                self._session = session
                self._to_do |= self._wanted.keys()
            to_do = [(parts, self._wanted.get(parts)) for parts in sorted(self._to_do)]
        done = True
        for parts, value in to_do:
            try:
                if value is None:
                    self._tree.delete_ephemeral(*parts)
                else:
                    self._tree.create_ephemeral(value, *parts)
            except ClusterError as error:
                logger.warning("%s can't be registered now: %s", "/".join(parts), error)
                done = False
                continue
            with self._lock:
                if self._wanted.get(parts) is value:
                    self._to_do.discard(parts)
        return done
