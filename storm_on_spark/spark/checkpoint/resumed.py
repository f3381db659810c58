"""What a checkpoint says of a topology that continues from it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from storm_on_spark.api.config import Config
from storm_on_spark.plan.compile import compile_graph
from storm_on_spark.plan.logical import LogicalGraph
from storm_on_spark.plan.settings import TaskSettings

if TYPE_CHECKING:
    from storm_on_spark.spark.checkpoint.directory import Manifest


def resumed_graph(graph: LogicalGraph, manifest: Manifest) -> LogicalGraph:
    """Returns a topology with the same number of acker tasks as at the first start, unless it is configured.

    The default number depends on `topology.workers`, which may change.
    """
    ackers = len(manifest.fingerprint.get("acker", {}).get("keys", ()))
    configured = TaskSettings.of(graph.conf).ackers is not None
    if configured or ackers in (0, len(graph.acker_tasks)):
        return graph
    return compile_graph(graph.topology, {**graph.conf, Config.TOPOLOGY_ACKER_EXECUTORS: ackers})
