"""One Spark session for all tests here, and a look at what every one of them leaves behind."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from lengths import PATIENCE_SECS

from storm_on_spark import LocalCluster, Topology
from storm_on_spark.api.info import TopologyInfo
from storm_on_spark.testing.plugin import local_cluster, nothing_left_behind, spark_session

__all__ = ["local_cluster", "nothing_left_behind", "spark_session"]

# Workers import the topologies by name, as they would a user's module beside the script.
sys.path.insert(0, str(Path(__file__).parent))

Complete = Callable[..., TopologyInfo]


@pytest.fixture
def notes_conf(tmp_path: Path) -> dict[str, Any]:
    """Configuration that tells the components of `topologies` where to write their notes."""
    return {"test.notes": str(tmp_path)}


@pytest.fixture
def complete(local_cluster: LocalCluster, tmp_path: Path) -> Complete:
    """Runs a finite topology to its end; its checkpoint is `tmp_path / "checkpoint"`."""

    def run(topology: Topology, conf: Mapping[str, Any] | None = None, timeout: float = PATIENCE_SECS) -> TopologyInfo:
        defaults = {"test.notes": str(tmp_path), "topology.checkpoint.dir": str(tmp_path / "checkpoint")}
        local_cluster.submit_topology("test", {**defaults, **(conf or {})}, topology)
        ended = local_cluster.await_completion("test", timeout)
        info = local_cluster.get_topology_info("test")
        assert ended, f"not complete within {timeout} s: {info}"
        assert info.status == "COMPLETED"
        return info

    return run
