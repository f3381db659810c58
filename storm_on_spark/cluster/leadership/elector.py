"""The interface of leader election."""

from __future__ import annotations

from abc import ABC, abstractmethod

from storm_on_spark.cluster.zookeeper.changes import Fence


class LeaderElector(ABC):
    """Elects one leader among the Nimbuses; Storm's `ILeaderElector`, with a fence."""

    @abstractmethod
    def add_to_leader_lock_queue(self) -> None:
        """Asks to lead. Returns at once; leading comes later, and may come and go until the queue is left."""

    @abstractmethod
    def remove_from_leader_lock_queue(self) -> None:
        """Asks no longer; a leader steps down first."""

    @abstractmethod
    def is_leader(self) -> bool:
        """Whether this Nimbus leads, as far as can be known here.

        Only a write under `fence()` proves it: ZooKeeper refuses the write if another one leads.
        """

    @abstractmethod
    def get_leader_address(self) -> str | None:
        """Returns `host:port` of the leader; None while there is none."""

    @abstractmethod
    def get_all_nimbus_addresses(self) -> list[str]:
        """Returns `host:port` of every Nimbus that is up, sorted."""

    @abstractmethod
    def fence(self) -> Fence:
        """Returns what has to hold for every write of this leadership.

        Raises:
            NotLeaderError: this Nimbus doesn't lead.
        """

    @abstractmethod
    def close(self) -> None:
        """Leaves the queue and ends whatever runs for it."""
