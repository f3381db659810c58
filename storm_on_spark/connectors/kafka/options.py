"""Translates a Kafka spout's configuration for Spark's Kafka source: pure functions."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Final

from storm_on_spark.api.errors import ConfigError
from storm_on_spark.connectors.kafka.config import FirstPollOffsetStrategy, KafkaSpoutConfig, ProcessingGuarantee
from storm_on_spark.connectors.kafka.offsets import Partition

_OURS: Final[Mapping[str, str]] = {
    "subscribe": "topics are those of the KafkaSpoutConfig",
    "subscribepattern": "topics are those of the KafkaSpoutConfig",
    "assign": "partitions are read by whichever task of Spark's is free",
    "startingoffsets": "use set_first_poll_offset_strategy",
    "startingtimestamp": "use set_start_timestamp",
    "startingoffsetsbytimestamp": "use set_start_timestamp",
    "startingoffsetsbytimestampstrategy": "use set_start_timestamp",
    "endingoffsets": "a topology has no end",
    "failondataloss": 'use set_prop("auto.offset.reset", "earliest")',
    "maxoffsetspertrigger": "it is max_offsets_per_batch",
    "includeheaders": "records always have them",
    "kafka.bootstrap.servers": "they are the first argument of builder()",
    "kafka.group.id": "Spark reads with its own group; offsets are committed to that of set_group_id",
}
_BY_DEFAULT: Final[Mapping[str, tuple[int, str]]] = {
    "max_uncommitted_offsets": (
        10_000_000,
        "Spark reads on; max_offsets_per_batch bounds a micro-batch",
    ),
    "max_poll_records": (500, "max_offsets_per_batch bounds what a micro-batch reads"),
    "partition_refresh_period_ms": (2_000, "Spark looks for new partitions in each micro-batch"),
}
POLLING: Final[Mapping[str, str]] = {"kafka.max.poll.records": "10000"}
"""How many records Spark takes from its consumer at a time, where nothing else is said.

After each poll Spark asks Kafka where the partition begins and ends. With 500 records a poll, Kafka's default, four
million records of 40 bytes took 8.2 and 9.5 s, and with 10,000 they took 4.5 and 4.6 s (two cores).
"""
_JAAS: Final[Mapping[str, str]] = {
    "PLAIN": "org.apache.kafka.common.security.plain.PlainLoginModule",
    "SCRAM-SHA-256": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "SCRAM-SHA-512": "org.apache.kafka.common.security.scram.ScramLoginModule",
}
_ASK: Final = "say it in Kafka's own words, in options of KafkaSpout as kafka.…, too"
_UNTRANSLATED: Final[Mapping[str, str]] = {
    "ssl_certfile": _ASK,
    "ssl_keyfile": _ASK,
    "ssl_password": _ASK,
    "ssl_context": _ASK,
    "ssl_crlfile": _ASK,
    "ssl_ciphers": _ASK,
    "sasl_oauth_token_provider": _ASK,
    "sasl_kerberos_name": _ASK,
    "sasl_kerberos_domain_name": _ASK,
}
"""Settings of kafka-python's that Kafka's own client has in another form."""


LEAST: Final = "minoffsetspertrigger"
"""The option for the least records of a micro-batch, in small letters."""
_OF_BATCHES: Final = frozenset(
    {
        LEAST,
        "maxtriggerdelay",
        "minpartitions",
        "maxrecordsperpartition",
        "kafkaconsumer.polltimeoutms",
        "fetchoffset.numretries",
        "fetchoffset.retryintervalms",
        "groupidprefix",
        "kafka.max.poll.records",
    }
)
"""Options that say how Spark divides and fetches records, and not which."""
_LOGIN: Final = ("kafka.ssl.", "kafka.sasl.", "kafka.security.")
"""How Spark's client logs in. kafka-python, by which offsets are committed, is told by the configuration."""


def only_for_spark(config: KafkaSpoutConfig, options: Mapping[str, str]) -> str:
    """Returns which options of Spark's source the task's reader doesn't have, as a clause; "" if there are none.

    Example:
        >>> config = KafkaSpoutConfig.builder("127.0.0.1:9092", "lines").set_group_id("count").build()
        >>> only_for_spark(config, {"minPartitions": "8", "kafka.isolation.level": "read_committed"})
        "only Spark's source has the option kafka.isolation.level; set_prop tells both readers"
    """
    told = {f"kafka.{name}": value for name, value in kafka_properties(config.properties).items()}
    only = [
        name
        for name, value in options.items()
        if name.lower() not in _OF_BATCHES and not name.startswith(_LOGIN) and told.get(name) != value
    ]
    if not only:
        return ""
    several = "s" if len(only) > 1 else ""
    return f"only Spark's source has the option{several} {', '.join(sorted(only))}; set_prop tells both readers"


def checked_for_spark(config: KafkaSpoutConfig, options: Mapping[str, str]) -> None:
    """Does nothing where Spark's source can do what is configured.

    Raises:
        ConfigError: it can't; the message says what to do instead.
    """
    if config.processing_guarantee is ProcessingGuarantee.AT_MOST_ONCE:
        raise ConfigError(
            "KafkaSpout has no AT_MOST_ONCE: Spark executes a micro-batch again that a crash has interrupted; "
            "take NO_GUARANTEE, or PlainKafkaSpout",
            key="processing_guarantee",
        )
    if config.auto_offset_reset == "latest":
        raise ConfigError(
            'auto.offset.reset of KafkaSpout is "none" or "earliest": Spark continues at the first record there',
            key="auto.offset.reset",
        )
    for name, (default, instead) in _BY_DEFAULT.items():
        if getattr(config, name) != default:
            raise ConfigError(f"{name} has no effect with KafkaSpout: {instead}", key=name)
    if config.pattern is not None and config.pattern.flags & ~(re.IGNORECASE | re.UNICODE):
        raise ConfigError(f"the pattern of topics may ignore case and no more (given {config.pattern!r})", key="topics")
    for name in options:
        if (reason := _OURS.get(name.lower())) is not None:
            raise ConfigError(f"{name} can't be set here: {reason}", key=name)
    given = {name.lower() for name in options}
    for name in config.properties:
        if (ask := _UNTRANSLATED.get(name)) is not None and not any(each.startswith("kafka.s") for each in given):
            raise ConfigError(f"{name} is a setting of kafka-python's: {ask}", key=name)


def source_options(
    config: KafkaSpoutConfig,
    committed: Mapping[Partition, int | None] | None,
    most: int,
    options: Mapping[str, str],
    *,
    headers: bool = True,
) -> dict[str, str]:
    """Returns the options of Spark's source.

    Args:
        config: of the spout.
        committed: the group's offsets of all partitions there are; None where the strategy doesn't ask for them.
        most: the records of a micro-batch.
        options: more of the source's, which win.
        headers: whether anybody sees those of a record.
    """
    if config.pattern is None:
        topics = {"subscribe": ",".join(config.topics)}
    else:
        case = "(?i)" if config.pattern.flags & re.IGNORECASE else ""
        topics = {"subscribePattern": f"{case}{config.pattern.pattern}"}
    return {
        "kafka.bootstrap.servers": ",".join(config.bootstrap_servers),
        **topics,
        **_starting(config, committed),
        "failOnDataLoss": str(config.auto_offset_reset == "none").lower(),
        "maxOffsetsPerTrigger": str(most),
        "includeHeaders": str(headers).lower(),
        **POLLING,
        **{f"kafka.{name}": value for name, value in kafka_properties(config.properties).items()},
        **options,
    }


def _starting(config: KafkaSpoutConfig, committed: Mapping[Partition, int | None] | None) -> dict[str, str]:
    strategy = config.first_poll_offset_strategy
    if strategy is FirstPollOffsetStrategy.TIMESTAMP:
        return {
            "startingTimestamp": str(config.start_timestamp_ms),
            "startingOffsetsByTimestampStrategy": "latest",
        }
    end = "latest" if strategy.name.endswith("LATEST") else "earliest"
    if not committed:
        return {"startingOffsets": end}
    otherwise = -1 if end == "latest" else -2
    offsets: dict[str, dict[str, int]] = {}
    for (topic, number), offset in committed.items():
        offsets.setdefault(topic, {})[str(number)] = otherwise if offset is None else offset
    return {"startingOffsets": json.dumps(offsets)}


def kafka_properties(properties: Mapping[str, Any]) -> dict[str, str]:
    """Returns settings of kafka-python's in the words of Kafka's own client.

    Example:
        >>> kafka_properties({"security_protocol": "SSL", "ssl_cafile": "/ca.pem", "fetch_max_bytes": 1000})
        {'security.protocol': 'SSL', 'ssl.truststore.location': '/ca.pem', 'ssl.truststore.type': 'PEM', \
'fetch.max.bytes': '1000'}
    """
    found: dict[str, str] = {}
    for name, value in properties.items():
        if name == "ssl_cafile":
            found |= {"ssl.truststore.location": str(value), "ssl.truststore.type": "PEM"}
        elif name == "ssl_check_hostname":
            found["ssl.endpoint.identification.algorithm"] = "https" if value else ""
        elif name == "sasl_plain_username":
            found["sasl.jaas.config"] = _jaas(properties)
        elif name != "sasl_plain_password" and name not in _UNTRANSLATED:
            found[name.replace("_", ".")] = str(value).lower() if isinstance(value, bool) else str(value)
    return found


def _jaas(properties: Mapping[str, Any]) -> str:
    mechanism = properties.get("sasl_mechanism", "PLAIN")
    module = _JAAS.get(mechanism)
    if module is None:
        raise ConfigError(
            f"a user name belongs to the SASL mechanisms {', '.join(_JAAS)} (given {mechanism!r:.100})",
            key="sasl_mechanism",
        )
    user, password = (
        str(properties.get(f"sasl_plain_{name}", "")).replace("\\", "\\\\").replace('"', '\\"')
        for name in ("username", "password")
    )
    return f'{module} required username="{user}" password="{password}";'
