"""`Values` is a list that is made of its arguments."""

from __future__ import annotations

import copy
import pickle

from storm_on_spark.api import BaseBasicBolt, Fields, Values
from storm_on_spark.testing import BoltTester, make_tuple


class Count(BaseBasicBolt):
    def execute(self, tup, collector):
        collector.emit(Values(tup["word"], len(tup["word"])))

    def declare_output_fields(self, declarer):
        declarer.declare(Fields("word", "length"))


def test_a_bolt_emits_values() -> None:
    tester = BoltTester(Count())
    tester.execute(make_tuple(["storm"], fields=["word"]))
    assert tester.collector.values() == [("storm", 5)]


def test_one_argument_is_one_value() -> None:
    assert Values("storm") == ["storm"]
    assert Values([1, 2]) == [[1, 2]]
    assert Values() == []


def test_copies_are_equal_and_of_the_same_type() -> None:
    values = Values("storm", [1])
    for twin in (pickle.loads(pickle.dumps(values)), copy.copy(values), copy.deepcopy(values)):
        assert twin == values
        assert type(twin) is Values
