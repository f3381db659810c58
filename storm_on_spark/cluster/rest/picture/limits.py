"""The part of a topology's configuration that rules about early warnings compare with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from storm_on_spark.api.config import effective_conf
from storm_on_spark.cluster.nimbus.settings import ReplicationSettings
from storm_on_spark.cluster.rest.picture.kept import Kept
from storm_on_spark.runtime.run.settings import SpoutSettings, TrackingSettings


@dataclass(frozen=True)
class Limits:
    """What a topology is configured to bear."""

    message_timeout_secs: float | None
    """None if messages don't time out."""
    max_pending: int | None
    """Messages of each spout task; None for no limit."""
    min_replicas: int
    """Nimbuses that are to have its code at least."""


def limits_of(key: str, conf: Mapping[str, object]) -> Limits:
    """Returns the limits in a topology's configuration, worked out once for each configuration.

    Args:
        key: names the topology, and who asks where others ask with another object.
        conf: its configuration, which never changes: another one is another object.

    Example:
        >>> limits_of("t-1-1", {"topology.message.timeout.secs": 60, "topology.max.spout.pending": 5})
        Limits(message_timeout_secs=60.0, max_pending=5, min_replicas=1)
    """
    return _LIMITS.of(key, (conf,), lambda: _limits(conf))


_LIMITS: Final = Kept[Limits](2000)


def _limits(given: Mapping[str, object]) -> Limits:
    conf = effective_conf(given)
    tracking = TrackingSettings.of(conf)
    return Limits(
        float(tracking.timeout_secs) if tracking.timeouts else None,
        SpoutSettings.of(conf).max_pending,
        ReplicationSettings.of(conf).min_count,
    )
