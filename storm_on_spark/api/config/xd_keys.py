"""Keys of admins and containers of streams, which Spring XD has."""

from __future__ import annotations

from typing import Final

from storm_on_spark.api.config.names import ConfigNames as N
from storm_on_spark.api.config.types import PORT, TEXT, ConfigKey, honoured

XD_KEYS: Final[tuple[ConfigKey, ...]] = (
    honoured(
        N.ZK_CLIENT_CONNECT,
        TEXT,
        None,
        "ZooKeeper of admins and containers: `host:port`, or several with commas, which are tried in this order. "
        "Without it `storm.zookeeper.servers` counts. A key of Spring XD's.",
    ),
    honoured(
        N.ZK_EMBEDDED_SERVER_PORT,
        PORT,
        None,
        "Port of the ZooKeeper in `storm-spark xd-singlenode`; any that is free by default. A key of Spring XD's.",
    ),
)
