"""What Spark keeps of a query that has ended."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from topologies.kit import word_count

from storm_on_spark import Config
from storm_on_spark.spark.state import read_bolt_state
from storm_on_spark.testing import run_topology

pytestmark = pytest.mark.usefixtures("nothing_left_behind")


def test_no_state_store_of_an_ended_topology_stays_open(spark_session: Any, tmp_path: Path) -> None:
    """Else Spark's maintenance would write to the checkpoint again, also after it was removed."""
    conf = {Config.TOPOLOGY_CHECKPOINT_DIR: str(tmp_path / "a check#point, 100%20")}
    run_topology(word_count(["a b", "c"]), conf=conf, spark=spark_session)
    states = read_bolt_state(spark_session, conf[Config.TOPOLOGY_CHECKPOINT_DIR], "count").values()
    assert sorted(word for state in states for word in state["counts"]) == ["a", "b", "c"]
    package = "org.apache.spark.sql.execution.streaming.state"
    stores = getattr(getattr(spark_session._jvm, f"{package}.StateStore$"), "MODULE$")
    field = stores.getClass().getDeclaredField("loadedProviders")
    field.setAccessible(True)
    loaded = field.get(stores).toString()
    assert list((tmp_path / "a check#point, 100%20" / "state").glob("*/*")) != []
    assert str(tmp_path) not in loaded
