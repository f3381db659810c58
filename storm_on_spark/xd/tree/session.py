"""A session of an admin or a container: servers are tried in the order given, for as long as it takes."""

from __future__ import annotations

import contextlib
import logging
import threading
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any, Final, TypeVar

from kazoo.exceptions import KazooException, NodeExistsError

from storm_on_spark.api.config import Config
from storm_on_spark.api.config.settings import Settings
from storm_on_spark.cluster.errors import SignatureError, UnavailableError
from storm_on_spark.cluster.security.keyring import NO_STAMP, Keyring, Stamp, Stamps
from storm_on_spark.cluster.zookeeper.session import ZooKeeperSession
from storm_on_spark.cluster.zookeeper.settings import ZooKeeperSettings
from storm_on_spark.xd.tree import nodes

logger = logging.getLogger(__name__)

_RETRY_SECS: Final = 1.0
_MOST_REFUSED: Final = 10_000

N = TypeVar("N", bound=nodes.Node)


@dataclass(frozen=True)
class XdSettings(Settings):
    """Which ZooKeeper admins and containers use."""

    connect: Annotated[str | None, Config.ZK_CLIENT_CONNECT]
    """`host:port`, or several with commas; None for that of the other keys."""
    embedded_port: Annotated[int | None, Config.ZK_EMBEDDED_SERVER_PORT]
    """Of the ZooKeeper that a single node starts; None for any that is free."""


def zookeeper_settings(conf: Mapping[str, Any]) -> ZooKeeperSettings:
    """Returns where ZooKeeper is: `zk.client.connect`, or else the keys of Storm's; the root is `/xd`.

    Example:
        >>> zookeeper_settings({"zk.client.connect": "zk1:2181,zk2:2182"}).hosts
        'zk1:2181,zk2:2182'
    """
    connect = XdSettings.of(conf).connect
    given = dict(conf)
    if connect is not None:
        given[Config.STORM_ZOOKEEPER_SERVERS] = [host.strip() for host in connect.split(",") if host.strip()]
    return replace(ZooKeeperSettings.from_conf(given), root=nodes.ROOT)


class XdSession(ZooKeeperSession):
    """A session that makes the nodes of an XD cluster, and prefers the servers that were named first."""

    def __init__(self, settings: ZooKeeperSettings, keyring: Keyring | None = None) -> None:
        super().__init__(settings, keyring=keyring)
        self.client.randomize_hosts = False
        self._stamps = Stamps()
        self.refused = Refused()

    def sealed(self, node: nodes.Node, path: str, stamp: Stamp = NO_STAMP) -> bytes:
        """Returns what ZooKeeper gets for a value."""
        return self.keyring.seal(type(node).__name__, nodes.encode(node), path, stamp)

    def opened(self, data: bytes, kind: type[N], path: str, stamps: Stamps | None = None) -> N | None:
        """Returns a value; None for what is none, or is not signed as it has to be: it counts as if it was not there.

        Args:
            data: what ZooKeeper gave.
            kind: of the value.
            path: of the node.
            stamps: the newest ones that were seen by this reader; those of the session for None.
        """
        try:
            payload = self.payload(data, kind.__name__, path, stamps)
        except SignatureError:
            return None
        return nodes.decode(payload, kind, path)

    def payload(self, data: bytes, kind: str, path: str, stamps: Stamps | None = None) -> bytes:
        """Returns a value as JSON; see `opened`. What is wrong with a node is logged once.

        Raises:
            SignatureError: it is not signed as it has to be, or older than one that stood there before.
        """
        try:
            payload, stamp, _ = self.keyring.unseal(kind, data, path)
            if self.keyring.signs:
                (self._stamps if stamps is None else stamps).check(path, kind, stamp)
        except SignatureError as error:
            self.refused.note(path, str(error))
            raise
        self.refused.forget(path)
        return payload

    def next_stamp(self, folder: str) -> tuple[Stamp, int]:
        """Returns the stamp of a node that is about to be made in a folder, and how many were made there.

        The stamp is ZooKeeper's number of the last change there, so it is above that of every node that stood there
        before, whichever admin made it.
        """
        stat = self.wait(self.client.get_async(folder))[1]
        # What a client gets as `cversion` counts nodes made and removed.
        return self.keyring.stamp(stat.pzxid), (stat.cversion + stat.numChildren) // 2

    def ensure_folders(self) -> None:
        """Makes the nodes that are always there.

        Raises:
            UnavailableError: ZooKeeper can't be reached.
        """
        try:
            for path in nodes.FOLDERS:
                parts = path.strip("/").split("/")
                for length in range(1, len(parts) + 1):
                    self._make("/" + "/".join(parts[:length]))
        except KazooException as error:
            raise UnavailableError(f"the nodes below {nodes.ROOT} can't be made: {error!r}") from error

    def _make(self, path: str) -> None:
        with contextlib.suppress(NodeExistsError):
            self.wait(self.client.create_async(path, nodes.EMPTY, acl=self.acl))


class Refused:
    """Nodes whose records are not signed as they have to be; each is logged once. Any thread may call it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        #: Path -> why; changes under the lock.
        self._reasons: dict[str, str] = {}

    def note(self, path: str, reason: str) -> None:
        """Notes a node, and logs it if that is new."""
        with self._lock:
            if self._reasons.get(path) == reason or len(self._reasons) >= _MOST_REFUSED:
                return
            self._reasons[path] = reason
        logger.error("%s", reason)

    def forget(self, path: str) -> None:
        """Forgets a node, whose record is right by now."""
        if path in self._reasons:
            with self._lock:
                self._reasons.pop(path, None)


def connected(settings: ZooKeeperSettings, ended: threading.Event, keyring: Keyring | None = None) -> XdSession | None:
    """Returns a session that is connected, with the nodes made, however long that takes.

    Args:
        settings: which ZooKeeper.
        ended: set when nobody waits any longer; then None is returned.
        keyring: signs what is written, and says what counts of what is read.
    """
    while not ended.is_set():
        session = XdSession(settings, keyring)
        try:
            session.start(ended)
            session.ensure_folders()
        except UnavailableError as error:
            session.close()
            if not ended.is_set():
                logger.warning("%s; trying again", error)
            ended.wait(_RETRY_SECS)
            continue
        return session
    return None
