"""The values of `topology.profile`: what each sets where nothing else is said."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from storm_on_spark.api.config.names import ConfigNames as N

PROFILES: Final[Mapping[str, Mapping[str, object]]] = MappingProxyType(
    {
        # One partition: one call of Python executes a micro-batch, and a task's state is always found in the memory of
        # the same process. Small batches: what comes next waits less.
        "latency": {
            N.TOPOLOGY_PARTITIONS: 1,
            N.TOPOLOGY_BATCH_MAX_TUPLES: 20_000,
            N.TOPOLOGY_BATCH_MIN_INTERVAL_MS: 0,
        },
        # The same, and tuples don't wait for micro-batches, which are checkpoints only.
        "realtime": {
            N.TOPOLOGY_PARTITIONS: 1,
            N.TOPOLOGY_BATCH_MAX_TUPLES: 20_000,
            N.TOPOLOGY_BATCH_MIN_INTERVAL_MS: 0,
        },
        # A micro-batch costs some 100 ms of processor time, whatever is in it: fewer and larger ones share that.
        "throughput": {
            N.TOPOLOGY_BATCH_MAX_TUPLES: 400_000,
            N.TOPOLOGY_BATCH_MIN_INTERVAL_MS: 500,
        },
    }
)
"""Profile -> key -> value. A key that is set anywhere else wins."""
