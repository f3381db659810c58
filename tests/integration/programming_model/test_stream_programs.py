"""The Streams API through Spark."""

from __future__ import annotations

from collections import Counter

import pytest
from topologies import stream_program

from storm_on_spark.testing import crashes, run_topology


@pytest.mark.parametrize("profile", [pytest.param("latency", marks=pytest.mark.representative), "realtime"])
def test_state_totals_and_windows_are_exact_with_every_profile_over_killed_workers(spark_session, tmp_path, profile):
    topology = stream_program.program(tmp_path)
    captured = run_topology(topology, conf={"topology.profile": profile}, spark=spark_session)
    assert [crashes(tmp_path / f"crash-{at}") for at in stream_program.CRASHES] == [1, 1], "a worker did not die"
    count, ahead = stream_program.COUNT, stream_program.KEYS + 1
    assert sorted(captured.values("total")) == [(number,) for number in range(1, count + ahead + 1)]
    keys = Counter(key for key, *_ in stream_program.events(0)) + Counter(range(ahead))
    reached = Counter((key, number) for key, total in keys.items() for number in range(1, total + 1))
    assert Counter(pair for (pair,) in captured.values("counted")) == reached
    assert Counter(map(tuple, captured.values("counted-columns"))) == reached
    joined = Counter((key, tuple(values)) for key, values in captured.values("joined"))
    assert joined == stream_program.expected_joined()
    for name in ("summed", "summed-columns"):
        assert Counter(map(tuple, captured.values(name))) == stream_program.expected_sums()
    assert (len(captured.acked()), captured.failed()) == (2 * count, [])
