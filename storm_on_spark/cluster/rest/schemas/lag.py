"""How far Kafka spouts are behind."""

from __future__ import annotations

from storm_on_spark.cluster.http.views import View


class PartitionLag(View, frozen=True, kw_only=True):
    """A partition of a topic, as storm-kafka-monitor reports it."""

    consumer_committed_offset: int
    """-1 where the group has committed nothing."""
    log_head_offset: int
    lag: int


class SpoutLag(View, frozen=True, kw_only=True):
    """How far a spout is behind: `spoutLagResult` by topic and partition, or `errorInfo`."""

    spout_id: str
    spout_type: str = "KAFKA"
    spout_lag_result: dict[str, dict[str, PartitionLag]] | None = None
    error_info: str | None = None
