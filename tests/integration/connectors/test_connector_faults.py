"""The short form of `make connector-faults`: a driver is killed between Delta's commit and Spark's, behind Kafka."""

from __future__ import annotations

import pytest
from processes import short_form


# `test_sinks.py` kills a driver between the two commits, and `test_kafka_jobs.py` goes on from Kafka to Delta.
@pytest.mark.soak
def test_from_kafka_to_delta_each_record_is_there_once_when_the_driver_is_killed_between_two_commits():
    [between] = short_form("lab.connectors", "--patience", "3", seconds=280)
    [fault] = between["injections"]
    assert "is in the table, and not committed" in fault["proof"]
    figures = between["figures"]
    assert (figures["lost"], figures["duplicates"], figures["wrong_keys"]) == (0, 0, 0)
