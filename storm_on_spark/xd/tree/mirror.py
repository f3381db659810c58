"""A copy of the tree in memory that follows ZooKeeper's, made by kazoo's `TreeCache`.

`ClusterView` of Nimbuses has its own reader: see docs/decisions/0042-two-mirrors.md.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import Any, Final, TypeVar

from kazoo.recipe.cache import TreeCache, TreeEvent

from storm_on_spark.cluster.errors import UnavailableError
from storm_on_spark.cluster.security.keyring import Stamps
from storm_on_spark.cluster.zookeeper.tree import Tree
from storm_on_spark.runtime.processes.closing import Closing
from storm_on_spark.xd.tree import nodes

logger = logging.getLogger(__name__)

_SECS: Final = 30.0

N = TypeVar("N", bound=nodes.Node)


class Mirror(Closing):
    """Follows a part of the tree. It may show an older state than ZooKeeper has, but shows changes in their order.

    Args:
        tree: in ZooKeeper, over a session that is connected.
        root: the node whose tree is followed.
        on_change: called on its own thread after every change; must not block.

    Raises:
        UnavailableError: the tree could not be read in time.
    """

    def __init__(self, tree: Tree, root: str = nodes.ROOT, on_change: Callable[[], None] = lambda: None) -> None:
        self._ready = threading.Event()
        self._on_change = on_change
        self._tree = tree
        # A separate `Known`: the mirror may be older than values that were read directly.
        self._stamps = Stamps()
        self._cache = TreeCache(tree.session.client, root)
        #: Path -> what ZooKeeper gave and the value it stands for, so each is decoded once.
        self._values: dict[str, tuple[Any, nodes.Node | None]] = {}
        self._cache.listen(self._on_event)
        self._cache.listen_fault(self._on_fault)
        self._cache.start()
        if not self._ready.wait(_SECS):
            self._cache.close()
            raise UnavailableError(f"ZooKeeper's tree below {root} could not be read within {_SECS:g} s")

    def close(self) -> None:
        """Ends it."""
        self._cache.close()

    def children(self, path: str) -> list[str]:
        """Returns the sorted names of a node's children; none for a node that does not exist.

        ZooKeeper names a child before it sends its value. Until then the child is not shown: a request without a value
        would look like an unreadable one.
        """
        return sorted(name for name in self._cache.get_children(path, ()) if self._cache.get_data(f"{path}/{name}"))

    def value(self, path: str, kind: type[N]) -> N | None:
        """Returns a node's value; None if it does not exist, or is something else."""
        found = self._cache.get_data(path)
        if found is None:
            return None
        known = self._values.get(path)
        if known is None or known[0] is not found:
            known = self._values[path] = found, self._tree.believed(kind, found.data, path, self._stamps)
        return known[1] if isinstance(known[1], kind) else None

    def stat(self, path: str) -> Any | None:
        """Returns ZooKeeper's data about a node, such as its version; None if it does not exist."""
        found = self._cache.get_data(path)
        return None if found is None else found.stat

    def _on_event(self, event: Any) -> None:
        if event.event_type == TreeEvent.INITIALIZED:
            self._ready.set()
        elif event.event_type == TreeEvent.NODE_REMOVED:
            self._values.pop(event.event_data.path, None)
        elif event.event_type == TreeEvent.NODE_UPDATED and event.event_data.path.startswith(f"{nodes.CONTAINERS}/"):
            # Only the metrics have changed, so the leader has nothing to do.
            return
        self._on_change()

    def _on_fault(self, error: BaseException) -> None:
        logger.warning("A change in ZooKeeper could not be followed: %r", error)
