"""The list of changes: who deployed, undeployed, created or destroyed what, and when."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import Final, Protocol

from storm_on_spark.cluster.errors import ClusterError, UnavailableError
from storm_on_spark.cluster.zookeeper.tree import Tree
from storm_on_spark.xd.tree.nodes import CHANGES, ChangeNode

logger = logging.getLogger(__name__)

KEPT: Final = 300
"""The last changes, of all streams and jobs."""


class Changes(Protocol):
    """Records changes. Any thread may call it; no method raises."""

    def note(self, who: str, what: str, name: str) -> None:
        """Records a change."""

    def all(self) -> list[ChangeNode]:
        """Returns the last changes, newest first."""


class ZooKeeperChanges:
    """The list in ZooKeeper, the same for every admin.

    If ZooKeeper can't be reached, the change stays in force and its record goes to the log only.

    Args:
        tree: in ZooKeeper, whose folder exists.
        now: seconds since 1970.
    """

    def __init__(self, tree: Tree, now: Callable[[], float] = time.time) -> None:
        self._tree = tree
        self._now = now
        #: The result of the last successful read.
        self._known: list[ChangeNode] = []

    def note(self, who: str, what: str, name: str) -> None:
        """See `Changes`."""
        change = ChangeNode(time=self._now(), who=who[:200], what=what[:500], name=name[:300])
        logger.info("%s: %s %s", change.who or "somebody", change.what, change.name)
        try:
            self._check()
            self._tree.add(change, CHANGES, lambda number: f"c-{number:010}")
            for old in self._tree.children(CHANGES)[:-KEPT]:
                self._tree.delete(f"{CHANGES}/{old}")
        except ClusterError as error:
            logger.warning("%s %s by %s can't be written down: %s", what, name, who or "somebody", error)

    def all(self) -> list[ChangeNode]:
        """See `Changes`. While ZooKeeper can't be reached, returns the result of the last successful read."""
        try:
            self._check()
            found = self._tree.read_all(ChangeNode, CHANGES)
        except ClusterError:
            return self._known
        self._known = [found[name] for name in sorted(found, reverse=True)]
        return self._known

    def _check(self) -> None:
        """Raises at once if ZooKeeper can't be reached, instead of waiting for it."""
        if self._tree.session.state != "CONNECTED":
            raise UnavailableError("ZooKeeper can't be reached")
