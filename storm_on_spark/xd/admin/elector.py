"""Election of the leading admin: the rules and the fence of Nimbuses, in the nodes that the document names."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import ClassVar

import storm_on_spark
from storm_on_spark.cluster.leadership import rules
from storm_on_spark.cluster.leadership.zookeeper_elector import ZooKeeperLeaderElector
from storm_on_spark.cluster.records import NimbusSummary
from storm_on_spark.xd.tree import nodes
from storm_on_spark.xd.tree.nodes import AdminNode, Leadership, encode
from storm_on_spark.xd.tree.session import XdSession

_ADMINS = "admins"


class AdminElector(ZooKeeperLeaderElector):
    """Elects one admin among those whose nodes are below `/xd/admins`.

    Args:
        session: a session that has been started.
        host: of this admin.
        port: of its REST interface.
        on_change: called when it gains or loses leadership; returns at once.
    """

    lock: ClassVar[str] = _ADMINS
    info: ClassVar[str] = _ADMINS
    title: ClassVar[str] = "Admin"

    def __init__(self, session: XdSession, host: str, port: int, on_change: Callable[[], None]) -> None:
        self._xd = session
        summary = NimbusSummary(host=host, port=port, started_at=time.time(), version=storm_on_spark.__version__)
        super().__init__(
            session,
            summary,
            # Definitions are in ZooKeeper: an admin lacks nothing that it would need as the leader.
            gate=lambda: (),
            on_gained=lambda fence: on_change(),
            on_lost=lambda reason: on_change(),
            fetch=lambda missing: None,
        )

    def _register(self) -> None:
        """Does nothing: who queues is there."""

    def _queue_value(self) -> bytes:
        return encode(AdminNode(address=self._summary.address))

    def _info_value(self, node: rules.QueueNode) -> bytes:
        leadership = Leadership(leader=self._summary.address, epoch=node.epoch)
        return self._xd.sealed(leadership, nodes.ADMINS, self._xd.keyring.stamp(node.epoch))
