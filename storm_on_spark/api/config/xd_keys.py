"""Keys of admins and containers of streams, which Spring XD has."""

from __future__ import annotations

from typing import Final

from storm_on_spark.api.config.names import ConfigNames as N
from storm_on_spark.api.config.types import PORT, TEXT, ConfigKey, choice, honoured, integer

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
    honoured(
        N.XD_MESSAGEBUS_DELTA_LOCATION,
        TEXT,
        None,
        "Where the bus `delta` has its tables: an absolute path of a folder that all containers share, or a URI such "
        "as `s3://bucket/bus`; access to it is configured by the environment, as `deltalake` reads it. One "
        "installation has it for itself.",
    ),
    honoured(
        N.XD_MESSAGEBUS_DELTA_RETENTION_MB,
        integer(1, 1 << 20),
        256,
        "Megabytes that an instance of a module keeps on the bus `delta`: for those that have not read them yet, as "
        "`xd.messagebus.local.retention.mb` does on the local bus, and for queries.",
    ),
    honoured(
        N.XD_MESSAGEBUS_DELTA_RETENTION_SECS,
        integer(0, 1 << 31),
        600,
        "Seconds that a row of the bus `delta` stays in its table for queries, also when all modules have read it, "
        "unless there are more than `xd.messagebus.delta.retention.mb`.",
    ),
    honoured(
        N.XD_MESSAGEBUS_LOCAL_RETENTION_MB,
        integer(1, 1 << 20),
        256,
        "Megabytes that an instance of a module keeps on the local bus for those that have not read them yet. Where "
        "the next module or a queue is further behind, the instance waits. Taps and readers of a topic miss the "
        "oldest messages.",
    ),
    honoured(
        N.XD_TRANSPORT,
        choice("local", "delta"),
        "local",
        "The message bus between the modules of streams: `local` is a folder that all containers share, and `delta` "
        "are Delta tables at `xd.messagebus.delta.location`. All containers have the same. A key of Spring XD's.",
    ),
)
