"""Requests that are finished when all of their tuples are processed, by any number of tasks."""

from __future__ import annotations

from collections import Counter, defaultdict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storm_on_spark import BaseBasicBolt, BaseRichBolt, BaseRichSpout, BaseStatefulBolt, Fields, TopologyBuilder
from storm_on_spark.api.config import effective_conf
from storm_on_spark.api.errors import FailedException, InvalidTopologyError
from storm_on_spark.coordination import COORD_STREAM, BaseBatchBolt, BatchBoltExecutor, CoordinatedBolt, SourceArgs
from storm_on_spark.coordination.rules import LIVES, Coordination
from storm_on_spark.plan.compile import compile_graph
from storm_on_spark.runtime.in_process import InProcessTopology
from storm_on_spark.testing import BoltTester, ListSpout, make_tuple

results: dict[str, list[int]] = defaultdict(list)


@pytest.fixture(autouse=True)
def _no_results() -> None:
    results.clear()


class Numbers(BaseBasicBolt):
    """Emits all numbers below one."""

    def execute(self, tup, collector):
        for number in range(tup["below"]):
            collector.emit([tup["id"], number])

    def declare_output_fields(self, declarer):
        declarer.declare(Fields("id", "number"))


class Sum(BaseBatchBolt):
    def prepare(self, conf, context, collector, batch_id):
        self.collector, self.id, self.sum = collector, batch_id, 0

    def execute(self, tup):
        self.sum += tup[1]

    def finish_batch(self):
        self.collector.emit([self.id, self.sum])

    def declare_output_fields(self, declarer):
        declarer.declare(Fields("id", "sum"))


class Broken(Sum):
    def finish_batch(self):
        if self.id == "a":
            raise FailedException("no")
        super().finish_batch()


class Picky(Sum):
    def execute(self, tup):
        if tup["number"] == 3:
            raise FailedException("no 3")
        super().execute(tup)


class Result(BaseBasicBolt):
    def execute(self, tup, collector):
        results[tup["id"]].append(tup["sum"])


def run(requests, partial: BaseBatchBolt, total: BaseBatchBolt, spout: BaseRichSpout | None = None):
    builder = TopologyBuilder()
    builder.set_spout("requests", spout or ListSpout(requests, fields=["id", "below"]))
    builder.set_bolt("numbers", CoordinatedBolt(Numbers()), 2).shuffle_grouping("requests")
    sources = {"numbers": SourceArgs.one()}
    partials = builder.set_bolt("partial", CoordinatedBolt(partial, sources), 3)
    partials.fields_grouping("numbers", Fields("number")).direct_grouping("numbers", COORD_STREAM)
    sources = {"partial": SourceArgs.all()}
    totals = builder.set_bolt("total", CoordinatedBolt(total, sources), 2)
    totals.fields_grouping("partial", Fields("id")).direct_grouping("partial", COORD_STREAM)
    builder.set_bolt("result", Result()).shuffle_grouping("total")
    return InProcessTopology(compile_graph(builder.create_topology(), effective_conf({})), "test").run()


def test_each_request_is_finished_once_with_all_of_its_tuples() -> None:
    requests = [(f"r{below}", below) for below in range(40)]
    info = run(requests, Sum(), Sum())
    # As in Storm, each task of the last component finishes each request, those without tuples with nothing.
    sums = {key: sum(found) for key, found in results.items()}
    assert sums == {key: sum(range(below)) for key, below in requests}
    assert {len(found) for found in results.values()} == {2}
    assert (info.acked, info.failed, info.pending) == (40, 0, 0)


class Once(ListSpout):
    """A list spout that doesn't emit again what has failed."""

    def fail(self, message_id):
        self.ack(message_id)


@pytest.mark.parametrize(("partial", "total"), [(Broken, Sum), (Sum, Broken)])
def test_a_request_that_fails_at_its_end_fails_its_message_and_no_other(partial: type, total: type) -> None:
    info = run([], partial(), total(), Once([("a", 5), ("b", 5)], fields=["id", "below"]))
    assert {key: sum(found) for key, found in results.items() if key == "b"} == {"b": 10}
    assert results["a"] == []
    assert (info.acked, info.failed, info.pending) == (1, 1, 0)


def test_a_tuple_that_fails_fails_its_request() -> None:
    info = run([], Picky(), Sum(), Once([("a", 5), ("b", 3)], fields=["id", "below"]))
    assert sum(results["b"]) == 3
    assert (info.acked, info.failed, info.pending) == (1, 1, 0)


def coordinated(bolt, **options) -> BoltTester:
    inputs = [make_tuple(["r", 1], ["id", "number"], component="up"), report("r", 0)]
    return BoltTester(CoordinatedBolt(bolt, {"up": SourceArgs.all()}), inputs, targets={"down": 2}, **options)


def report(key: str, count: int):
    return make_tuple([key, count], ["id", "count"], component="up", stream=COORD_STREAM)


def number(key: str, value: int):
    return make_tuple([key, value], ["id", "number"], component="up")


def test_counts_and_what_bolts_know_of_requests_survive_a_restart() -> None:
    tester = coordinated(Sum())
    tester.execute(number("r", 3), number("other", 1))
    tester.restart()
    tester.execute(number("r", 4))
    tester.execute(report("r", 2))
    assert tester.collector.values("default") == [("r", 7)]
    reports = tester.collector.values(COORD_STREAM)
    assert sorted(reports) == [("r", 0), ("r", 1)]
    assert "other" in tester.bolt.requests
    assert "r" not in tester.bolt.requests


def test_a_request_that_stays_unfinished_is_given_up() -> None:
    tester = coordinated(Sum(), conf={"topology.message.timeout.secs": 10})
    tester.execute(report("r", 2), number("r", 1))
    held = len(tester.collector.failed)
    tester.advance(seconds=9.9)
    assert "r" in tester.bolt.requests
    tester.advance(seconds=5.2)
    assert "r" not in tester.bolt.requests
    assert len(tester.collector.failed) == held + 1


class Later(BaseRichBolt):
    """Acks a tuple with the next one."""

    def prepare(self, conf, context, collector):
        self.collector, self.waiting = collector, None

    def execute(self, tup):
        if self.waiting is not None:
            self.collector.ack(self.waiting)
        self.waiting = tup

    def declare_output_fields(self, declarer):
        declarer.declare(Fields("id"))


def test_a_rich_bolt_may_ack_after_the_report() -> None:
    tester = coordinated(Later())
    tester.execute(number("r", 1), report("r", 1))
    assert tester.collector.values(COORD_STREAM) == []
    tester.execute(number("s", 1))
    assert {key for key, _ in tester.collector.values(COORD_STREAM)} == {"r"}


def test_what_cannot_be_coordinated_is_refused() -> None:
    class Stateful(BaseStatefulBolt):
        def init_state(self, state):
            pass

        def execute(self, tup):
            pass

    class OwnState(Later):
        def __getstate__(self):
            return {}

    with pytest.raises(InvalidTopologyError, match="without a KeyValueState, not"):
        CoordinatedBolt(Stateful())
    with pytest.raises(InvalidTopologyError, match="__getstate__ of its own"):
        CoordinatedBolt(OwnState())
    with pytest.raises(InvalidTopologyError, match="takes an IBatchBolt"):
        BatchBoltExecutor(Later())


@given(st.lists(st.lists(st.integers(0, 3), max_size=6), min_size=1, max_size=4), st.randoms())
def test_in_any_order_a_request_is_complete_exactly_at_its_last_event(sent: list[list[int]], random) -> None:
    """`sent`: for each upstream task the tuples that it sends."""
    requests: Coordination[int] = Coordination(len(sent), announced=False)
    events = [("report", len(tuples)) for tuples in sent] + [("tuple", 0) for tuples in sent for _ in tuples]
    random.shuffle(events)
    for position, (kind, count) in enumerate(events):
        assert not requests.is_complete("r"), f"complete before event {position}"
        if kind == "report":
            requests.report("r", count)
        else:
            requests.begin("r")
            requests.acked("r")
    assert requests.is_complete("r")


def test_rules_of_single_tuples_announcements_and_failures() -> None:
    single: Coordination[int] = Coordination(0, announced=False)
    single.begin("r")
    assert single.is_complete("r")
    announced: Coordination[int] = Coordination(1, announced=True)
    announced.report("r", 0)
    assert not announced.is_complete("r")
    announced.announce("r")
    assert announced.is_complete("r")
    announced.fail("r")
    assert not announced.is_complete("r")
    announced.sent("r", [4, 5, 4])
    announced.sent("unknown", [4])
    assert Counter(announced.end("r").sent) == {4: 2, 5: 1}
    announced.begin("s")
    assert [announced.expired() for _ in range(LIVES - 1)] == [[]] * (LIVES - 1)
    assert [key for key, _ in announced.expired()] == ["s"]
    assert len(announced) == 0
