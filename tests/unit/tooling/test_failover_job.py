"""The topology that `make failover` submits is loaded from its own file, far from anything that checks types."""

from __future__ import annotations

from pathlib import Path

from lab.failover.job import build
from storm_on_spark.api.config import Config


def test_it_is_built_by_the_keys_that_the_scenarios_set(tmp_path: Path) -> None:
    conf = {
        "failover.ledger": str(tmp_path),
        "failover.messages": 10,
        "failover.seconds": 1.0,
        Config.TOPOLOGY_CHECKPOINT_DIR: str(tmp_path / "checkpoint"),
    }
    assert build(conf).spouts
