"""Keys of admins and containers of streams, which Spring XD has."""

from __future__ import annotations

from typing import Final

from storm_on_spark.api.config.names import ConfigNames as N
from storm_on_spark.api.config.types import MAPPING, PORT, TEXT, ConfigKey, choice, honoured, integer

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
        N.XD_MESSAGEBUS_KAFKA_BROKERS,
        TEXT,
        "localhost:9092",
        "Kafka of the bus `kafka`: `host:port`, or several with commas. A key of Spring XD's.",
    ),
    honoured(
        N.XD_MESSAGEBUS_KAFKA_DEFAULT_MIN_PARTITION_COUNT,
        integer(1, 1_000),
        8,
        "Partitions of the topic of a named channel that the bus `kafka` makes. So many instances can read a queue at "
        "the same time. A key of Spring XD's.",
    ),
    honoured(
        N.XD_MESSAGEBUS_KAFKA_DEFAULT_REPLICATION_FACTOR,
        integer(1, 100),
        1,
        "On how many brokers a topic stands that the bus `kafka` makes. A key of Spring XD's.",
    ),
    honoured(
        N.XD_MESSAGEBUS_KAFKA_PROPERTIES,
        MAPPING,
        {},
        "Settings of kafka-python that all clients of the bus `kafka` have, such as `security.protocol`, `ssl.cafile`, "
        "`sasl.mechanism`, `sasl.plain.username` and `sasl.plain.password`.",
    ),
    honoured(
        N.XD_MESSAGEBUS_KAFKA_RETENTION_MB,
        integer(1, 1 << 20),
        256,
        "Megabytes that an instance of a module, or a queue, may have on the bus `kafka` for those that have not read "
        "them yet; then the instance waits. As many are kept of what was read, for taps, and in each partition of a "
        "channel `topic:`.",
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
        choice("local", "kafka"),
        "local",
        "The message bus between the modules of streams: `local` is a folder that all containers share, and `kafka` "
        "are topics at `xd.messagebus.kafka.brokers`. All containers have the same. A key of Spring XD's.",
    ),
)
