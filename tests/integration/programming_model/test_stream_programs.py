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
    keys = Counter(key for key, *_ in stream_program.events(0)) + Counter(range(ahead))
    reached = Counter((key, number) for key, total in keys.items() for number in range(1, total + 1))
    expected = {
        "total": Counter((number,) for number in range(1, count + ahead + 1)),
        "counted": Counter((pair,) for pair in reached),
        "counted-columns": reached,
        "joined": stream_program.expected_joined(),
        "summed": stream_program.expected_sums(),
        "summed-columns": stream_program.expected_sums(),
    }
    for name, rows in expected.items():
        found = Counter(map(hashable, captured.values(name)))
        if profile == "realtime":
            # Rounds since the last checkpoint are executed again after a crash, and so captured again.
            assert found >= rows, name
            found = Counter({row: rows[row] or times for row, times in found.items()})
        assert found == rows, name
    assert (len(captured.acked()), captured.failed()) == (2 * count, [])


def hashable(value):
    return tuple(map(hashable, value)) if isinstance(value, (list, tuple)) else value
