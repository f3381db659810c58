from __future__ import annotations

import pytest

from storm_on_spark.api import (
    BaseBasicBolt,
    BaseRichBolt,
    BaseRichSpout,
    BaseTickTupleAwareRichBolt,
    BatchBolt,
    Fields,
    IBasicBolt,
    IRichBolt,
    IRichSpout,
    OutputFieldsDeclarer,
)
from storm_on_spark.api.streams.constants import SYSTEM_COMPONENT, SYSTEM_TASK, TICK_STREAM
from storm_on_spark.api.tuple import Delivery, Tuple


class Nothing(BaseRichSpout):
    def next_tuple(self):
        pass


class Drop(BaseBasicBolt):
    def execute(self, tup, collector):
        pass


@pytest.mark.parametrize(
    ("base", "method"),
    [
        (BaseRichSpout, "next_tuple"),
        (BaseRichBolt, "execute"),
        (BaseBasicBolt, "execute"),
        (BatchBolt, "execute_batch"),
        (BaseTickTupleAwareRichBolt, "process"),
    ],
)
def test_a_component_that_lacks_its_method_can_not_be_made(base: type, method: str) -> None:
    with pytest.raises(TypeError, match=method):
        type("Half", (base,), {})()


def test_everything_else_has_a_default() -> None:
    spout, bolt = Nothing(), Drop()
    declarer = OutputFieldsDeclarer("x")
    for component in (spout, bolt):
        component.declare_output_fields(declarer)
        assert component.get_component_configuration() is None
    assert declarer.streams == {}
    assert spout.exhausted() is False
    for call in (spout.activate, spout.deactivate, spout.close, bolt.cleanup):
        call()
    spout.ack(1)
    spout.fail(1)


def test_statelessness_is_open_unless_promised() -> None:
    assert Drop.stateless is None
    assert type("Pure", (Drop,), {"stateless": True})().stateless is True


def test_storms_interfaces_are_aliases() -> None:
    assert (IRichSpout, IRichBolt, IBasicBolt) == (BaseRichSpout, BaseRichBolt, BaseBasicBolt)


class Ticking(BaseTickTupleAwareRichBolt):
    def __init__(self):
        self.seen = []

    def process(self, tup):
        self.seen.append(("tuple", tup[0]))

    def on_tick_tuple(self, tup):
        self.seen.append(("tick", tup[0]))


def test_ticks_and_tuples_go_their_ways() -> None:
    bolt = Ticking()
    bolt.execute(Tuple.of(["storm"], Delivery("split", "default", 3, Fields("word")), 0))
    tick = Delivery(SYSTEM_COMPONENT, TICK_STREAM, SYSTEM_TASK, Fields("rate_secs"))
    bolt.execute(Tuple.of([10], tick, 0))
    bolt.execute(Tuple.of(["fake"], Delivery("split", TICK_STREAM, 3, Fields("word")), 0))
    assert bolt.seen == [("tuple", "storm"), ("tick", 10), ("tuple", "fake")]


def test_ticks_are_dropped_unless_wanted() -> None:
    class Plain(BaseTickTupleAwareRichBolt):
        def process(self, tup):
            raise AssertionError("a tick is no tuple to process")

    Plain().execute(Tuple.of([10], Delivery(SYSTEM_COMPONENT, TICK_STREAM, SYSTEM_TASK, Fields("rate_secs")), 0))
