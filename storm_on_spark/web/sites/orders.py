"""What pages ask of an admin, and who asked."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from storm_on_spark.cluster.errors import UnavailableError
from storm_on_spark.xd.admin.changes import Changes

T = TypeVar("T")


class Orders:
    """Carries out orders, and writes down who gave them.

    Args:
        changes: where it is written down.
        connected: returns whether ZooKeeper can be reached.
        changed: called after each.
    """

    def __init__(self, changes: Changes, connected: Callable[[], bool], changed: Callable[[], object]) -> None:
        self._changes = changes
        self._connected = connected
        self._changed = changed

    def carry_out(self, who: str, what: str, name: str, order: Callable[[], T]) -> T:
        """Carries out an order and returns its result.

        Raises:
            UnavailableError: ZooKeeper can't be reached, or the end of the order was not seen.
        """
        if not self._connected():
            raise UnavailableError("ZooKeeper can't be reached: nothing can be changed now")
        try:
            found = order()
        except UnavailableError:
            # It may still happen, or has happened in part.
            self._changes.note(who, f"{what} (its end was not seen)", name)
            raise
        finally:
            self._changed()
        self._changes.note(who, what, name)
        return found
