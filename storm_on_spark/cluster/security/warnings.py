"""Warnings of a daemon at its start about insecure settings."""

from __future__ import annotations

import logging

from storm_on_spark.api.config import Config
from storm_on_spark.cluster.security.addresses import is_loopback
from storm_on_spark.cluster.security.tls import Tls

logger = logging.getLogger(__name__)


def warn_if_open(zookeeper: str, guarded: bool, bind: str, tls: Tls) -> None:
    """Warns, once a start, of what anybody could use.

    Args:
        zookeeper: the addresses of its servers.
        guarded: whether records are signed, or ZooKeeper asks who writes.
        bind: address that the daemon listens on.
        tls: of the daemon.
    """
    if not guarded:
        logger.warning(
            "Everybody who can write to ZooKeeper (%s) can run code here: records are not signed and its nodes are "
            "open. Set %s, %s, or both",
            zookeeper,
            Config.NIMBUS_AUTH_TOKEN_FILE,
            Config.STORM_ZOOKEEPER_AUTH_SCHEME,
        )
    if tls.server is None and not is_loopback(bind):
        logger.warning(
            "Other hosts can reach %s without TLS: code and configuration can be read on the network. Set %s",
            bind,
            Config.STORM_TLS_CERTIFICATE_FILE,
        )
