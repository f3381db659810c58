"""A warning names the attribute that makes a bolt's state large, and the way out."""

from __future__ import annotations

import logging

import pytest
from stormtest import anchored, ids, solo

from storm_on_spark.api import BaseBasicBolt
from storm_on_spark.runtime.state import snapshot


class Hoarder(BaseBasicBolt):
    """Keeps as many bytes as it is told to."""

    def prepare(self, conf, context):
        self.small, self.heap = [1], b""

    def execute(self, tup, collector):
        self.heap = bytes(tup[0])


@pytest.fixture(autouse=True)
def _forget(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(snapshot, "warned_of_size", set())


def test_a_large_attribute_is_named_once_with_its_size_and_the_way_out(caplog: pytest.LogCaptureFixture) -> None:
    task = solo(Hoarder(), ["size"])
    with caplog.at_level(logging.WARNING):
        for batch in range(3):
            task.execute([anchored([20 << 20])], ids(batch), batch)
    (record,) = [record for record in caplog.records if "micro-batch" in record.getMessage()]
    text = record.getMessage()
    for part in (f'"{task.component}"', f"task {task.task}", "'heap'", "20.0 MB", "KeyValueState", "warn.mb is 16"):
        assert part in text


def test_attributes_below_the_limit_are_not_mentioned(caplog: pytest.LogCaptureFixture) -> None:
    task = solo(Hoarder(), ["size"])
    with caplog.at_level(logging.WARNING):
        task.execute([anchored([15 << 20])], ids(0), 0)
    assert not caplog.records
