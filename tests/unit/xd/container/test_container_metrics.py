"""What a container tells of itself, and when."""

from __future__ import annotations

import msgspec

from storm_on_spark.cluster.records import decode, encode
from storm_on_spark.xd.container.metrics import PERIOD_SECS, Counts, Meter
from storm_on_spark.xd.tree.nodes import ContainerMetrics, ContainerNode, MessageRate


class _Process:
    """A process whose time, processor time and memory the test sets."""

    def __init__(self) -> None:
        self.now, self.processor, self.memory = 0.0, 0.0, 1_000_000
        self.meter = Meter(lambda: self.now, lambda: self.processor, lambda: self.memory, started=5.0)
        self.meter.first()

    def later(self, counts: Counts) -> ContainerMetrics | None:
        """Returns what is told one period later."""
        self.now += PERIOD_SECS
        return self.meter.next(counts)


def test_totals_and_rates_of_modules() -> None:
    process = _Process()
    process.processor = 5.0
    found = process.later({"s.source.time.1": (0, 100), "s.sink.log.1": (90, 0), "t.sink.log.1": (0, 0)})
    assert found is not None
    assert (found.started, found.modules, found.messages_in, found.messages_out) == (5000, 3, 90, 100)
    assert found.rates == {"s.source.time.1": MessageRate(output=10.0), "s.sink.log.1": MessageRate(input=9.0)}
    assert (found.memory, found.cores) == (1_000_000, 0.5)


def test_nothing_is_told_too_early_or_of_an_idle_container() -> None:
    process = _Process()
    process.now = PERIOD_SECS - 0.1
    assert process.meter.next({"s.sink.log.1": (5, 0)}) is None
    process.now = PERIOD_SECS
    assert process.meter.next({"s.sink.log.1": (5, 0)}) is not None
    # Its rate is 0 again: that is told once.
    assert process.later({"s.sink.log.1": (5, 0)}) is not None
    process.memory += 1_000
    assert process.later({"s.sink.log.1": (5, 0)}) is None
    process.memory *= 2
    assert process.later({"s.sink.log.1": (5, 0)}) is not None


def test_messages_of_modules_that_ended_stay_in_the_totals() -> None:
    process = _Process()
    process.later({"s.sink.log.1": (5, 0)})
    process.meter.ended("s.sink.log.1", 7, 0)
    found = process.later({"s.sink.log.1": (2, 0)})
    assert found is not None
    assert (found.messages_in, found.rates) == (9, {"s.sink.log.1": MessageRate(input=0.2)})


def test_the_node_stays_small() -> None:
    found = _Process().later({f"stream.processor.transform.{number}": (number, number) for number in range(1000)})
    assert found is not None
    assert len(found.rates) == 20
    assert "stream.processor.transform.999" in found.rates
    assert len(msgspec.json.encode(found)) < 3_000


def test_a_node_of_a_later_release_is_read() -> None:
    later = decode(ContainerNode, b'{"host":"h","ip":"1","pid":1,"metrics":{"started":1,"colour":"red"}}', "node")
    assert later == ContainerNode(host="h", ip="1", pid=1, metrics=ContainerMetrics(started=1))
    assert b'"metrics":{"started":1,' in encode(later)
