"""Windows through Spark."""

from __future__ import annotations

from itertools import groupby

import pytest
from topologies import windows

from storm_on_spark.testing import crashes, run_topology


@pytest.mark.parametrize("profile", [pytest.param("latency", marks=pytest.mark.representative), "realtime"])
def test_windows_are_exact_with_every_profile_over_killed_workers(spark_session, tmp_path, profile):
    conf = {"topology.profile": profile, "test.notes": str(tmp_path)}
    captured = run_topology(windows.windows(), conf=conf, spark=spark_session)
    assert [crashes(tmp_path / f"crash-{end}") for end in windows.CRASHES] == [1, 1], "a worker did not die"
    found, expected = sorted(captured.values("sums")), sorted(windows.expected())
    if profile == "realtime":
        # Rounds since the last checkpoint are executed again after a crash, and what captures them writes them again.
        found = [window for window, _ in groupby(found)]
    assert found == expected
    assert sorted(captured.acked()) == list(range(windows.COUNT))
    assert not captured.failed()
