from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from storm_on_spark import BaseStatefulBolt, KeyValueState
from storm_on_spark.testing import BoltTester, make_tuple


class CountWords(BaseStatefulBolt):
    def prepare(self, conf: Mapping[str, Any], context: Any, collector: Any) -> None:
        self.collector = collector

    def init_state(self, state: KeyValueState) -> None:
        self.counts = state

    def execute(self, tup: Any) -> None:
        self.counts.put(tup["word"], self.counts.get(tup["word"], 0) + 1)
        self.collector.ack(tup)


def test_a_stateful_bolt_gets_its_state_and_keeps_it_over_a_restart() -> None:
    tester = BoltTester(CountWords())
    tester.execute(make_tuple(["storm"], ["word"]), make_tuple(["spark"], ["word"]))
    tester.restart()
    tester.execute(make_tuple(["storm"], ["word"]))
    assert tester.state is not None
    assert dict(tester.state) == {"storm": 2, "spark": 1}
    assert len(tester.collector.acked) == 3
