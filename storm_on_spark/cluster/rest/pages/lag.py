"""Storm UI's page of the lag: how far the Kafka spouts of a topology are behind."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from storm_on_spark.api.errors import ConfigError, StormError
from storm_on_spark.cluster.plan_summary import KafkaReading, PlanSummary
from storm_on_spark.cluster.rest.schemas import PartitionLag, SpoutLag

if TYPE_CHECKING:
    from storm_on_spark.connectors.kafka.lag import Reading

_LONGEST: Final = 500
_REPETITIONS: Final = 2
_CHOICES: Final = 4
_ONE: Final = r"(?:[A-Za-z0-9_-]|\\[dws._-]|\.|\[\^?(?:[A-Za-z0-9._-]|\\[dw])+\])"
_SIMPLE: Final = re.compile(rf"\^?(?:{_ONE}[*+?]?|[|(]|\)(?![*+?{{]))*\$?")


def lag_page(plan: PlanSummary | None) -> dict[str, SpoutLag]:
    """Returns `topology/:id/lag`, asking Kafka: a few seconds for each spout where no broker answers."""
    parts = {} if plan is None else plan.components
    return {name: _of(name, part.kafka) for name, part in sorted(parts.items()) if part.kafka is not None}


def _of(name: str, reading: KafkaReading) -> SpoutLag:
    # Imported here: a Nimbus needs Kafka's client for this page alone.
    from storm_on_spark.connectors.kafka.config import checked_servers
    from storm_on_spark.connectors.kafka.lag import Reading

    if reading.protocol != "PLAINTEXT":
        why = f"the spout speaks {reading.protocol} to Kafka, and its login is in the topology's code alone"
        return SpoutLag(spout_id=name, error_info=f"{why}: ask by storm-spark lag FILE")
    topics = () if reading.pattern else tuple(reading.topics.split(","))
    try:
        pattern = compiled_pattern(reading.topics) if reading.pattern else None
        asked = Reading(checked_servers(reading.servers), topics, pattern, reading.group)
    except (ConfigError, re.error) as error:
        return SpoutLag(spout_id=name, error_info=str(error))
    return told(name, asked)


def compiled_pattern(text: str) -> re.Pattern[str]:
    """Compiles a pattern of topics, which comes from the topology.

    Python's matching is exponential for some patterns, and would stop the whole Nimbus. What is compiled here takes at
    most quadratic time, for names of at most 249 characters: few repetitions, none of a group, and few alternatives.

    Raises:
        ConfigError: the pattern isn't as simple as that.
    """
    repetitions = sum(map(text.count, "*+?"))
    few = repetitions <= _REPETITIONS and repetitions + text.count("|") <= _CHOICES
    if len(text) > _LONGEST or not few or not _SIMPLE.fullmatch(text):
        raise ConfigError(f"Nimbus matches simple patterns only, not {text!r:.100}: ask by storm-spark lag FILE")
    return re.compile(text)


def told(name: str, reading: Reading) -> SpoutLag:
    """Returns what Kafka reports of a spout."""
    from storm_on_spark.connectors.kafka.lag import lags

    try:
        found = lags(reading)
    except StormError as error:
        return SpoutLag(spout_id=name, error_info=str(error))
    result: dict[str, dict[str, PartitionLag]] = {}
    for (topic, number), lag in found.items():
        committed = -1 if lag.committed is None else lag.committed
        entry = PartitionLag(consumer_committed_offset=committed, log_head_offset=lag.end, lag=lag.behind)
        result.setdefault(topic, {})[str(number)] = entry
    return SpoutLag(spout_id=name, spout_lag_result=result)
