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
        choice("local", "delta", "kafka"),
        "local",
        "The message bus between the modules of streams: `local` is a folder that all containers share, `delta` are "
        "Delta tables at `xd.messagebus.delta.location`, and `kafka` are topics at `xd.messagebus.kafka.brokers`. All "
        "containers have the same. A key of Spring XD's.",
    ),
)
