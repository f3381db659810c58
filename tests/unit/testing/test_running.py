"""What the kit says of a topology that doesn't do what a test waits for."""

from __future__ import annotations

from storm_on_spark.api.info import ComponentInfo, ErrorInfo, TopologyInfo
from storm_on_spark.testing.running.topologies import Captured, _summary


def test_errors_of_components_move_no_cursor() -> None:
    errors = (ErrorInfo("count", 3, "no such order: \x1b[2J", 0.0),)
    part = ComponentInfo("count", "bolt", 1, 2, 0, 0, 0, 2, 0.0, errors=errors)
    captured = Captured(TopologyInfo("words", "RUNNING", 1.0, failed=2, components={"count": part}), (), (), ())
    assert _summary(captured).endswith(r"failed 2, pending 0; count executed 2; count: no such order: \x1b[2J")
