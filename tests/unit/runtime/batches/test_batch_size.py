"""How many tuples a micro-batch may hold."""

from __future__ import annotations

from storm_on_spark.runtime.batches.rules.size import BatchSize


class Topology:
    """Micro-batches that take some time, and so much for each tuple; the spout has always enough."""

    def __init__(self, most: int = 100_000, seconds: float = 5) -> None:
        self.clock = 0.0
        self.size = BatchSize(most, seconds)

    def run(self, fixed: float, each: float, tuples: int | None = None) -> float:
        """Runs a micro-batch; returns how long it took."""
        tuples = self.size.limit if tuples is None else tuples
        self.size.began(tuples, self.clock)
        took = fixed + each * tuples
        self.clock += took
        self.size.ended(self.clock)
        return took


def test_quick_tuples_are_not_limited() -> None:
    topology = Topology()
    limits = [topology.size.limit]
    for _ in range(4):
        topology.run(0.3, 1e-5)
        limits.append(topology.size.limit)
    assert limits == [10_000, 40_000, 100_000, 100_000, 100_000]
    assert topology.size.for_each(7) == 100_000


def test_slow_tuples_come_in_smaller_micro_batches_that_take_their_time_and_no_more() -> None:
    topology = Topology()
    assert topology.run(6, 1e-3) > 10
    for _ in range(20):
        assert 2 < topology.run(0.3, 1e-3) < 5.5
    assert topology.size.for_each(4) == topology.size.limit // 4


def test_a_tuple_that_takes_longer_than_a_micro_batch_may_comes_alone() -> None:
    topology = Topology()
    topology.run(6, 7, tuples=3)
    for _ in range(5):
        topology.run(0.3, 7)
    assert (topology.size.limit, topology.size.share(3), topology.size.for_each(3)) == (1, 1, 1)


def test_the_limit_comes_back_soon_when_tuples_are_quick_again() -> None:
    topology = Topology()
    for _ in range(3):
        topology.run(0.3, 1e-2)
    assert topology.size.limit < 1000
    batches = 0
    while topology.size.limit < 100_000:
        topology.run(0.3, 1e-5)
        batches += 1
    assert batches <= 5


def test_a_slow_start_does_not_hold_a_topology_back() -> None:
    topology = Topology()
    topology.run(12, 1e-5, tuples=1)
    assert topology.size.limit == 100
    spent = sum(topology.run(0.3, 1e-5) for _ in range(5))
    assert topology.size.limit == 100_000
    assert spent < 5


def test_a_trickle_says_nothing_of_large_micro_batches() -> None:
    topology = Topology()
    topology.run(0.3, 1e-3)
    limit = topology.size.limit
    for _ in range(10):
        topology.run(0.3, 1e-3, tuples=10)
    assert topology.size.limit == limit
    topology.run(60, 0, tuples=0)
    assert topology.size.limit == limit, "a tick that took long is no tuple"
