from __future__ import annotations

import pytest

from storm_on_spark.cluster.records import NimbusSummary, SupervisorInfo, decode, encode


@pytest.mark.parametrize(
    "record",
    [
        NimbusSummary(host="localhost", port=1, started_at=2.0, version="0.1.0"),
        SupervisorInfo(
            supervisor_id="s", host="localhost", slots=(6700,), started_at=2.0, version="0.1.0", heartbeat_at=3.0
        ),
    ],
)
def test_a_records_own_version_and_that_of_its_format_are_two(record: NimbusSummary | SupervisorInfo) -> None:
    assert decode(type(record), encode(record), "here") == record
