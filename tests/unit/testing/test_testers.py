"""Driving one component by hand."""

from __future__ import annotations

import threading
import time
from collections import Counter
from typing import Any

import pyarrow as pa
import pytest

from storm_on_spark import (
    BaseBasicBolt,
    BaseRichBolt,
    BaseRichSpout,
    BatchBolt,
    BatchSpout,
    ComponentError,
    Config,
    FailedException,
    Fields,
    InvalidTopologyError,
    ReportedFailedException,
    StormError,
    TupleError,
)
from storm_on_spark.testing import (
    BatchSpoutEmission,
    BoltTester,
    Emission,
    ListSpout,
    SpoutTester,
    make_context,
    make_tuple,
    run_bolt,
    run_spout,
)


class Split(BaseBasicBolt):
    def execute(self, tup: Any, collector: Any) -> None:
        if not tup["sentence"]:
            raise ReportedFailedException("nothing to split")
        for word in tup["sentence"].split():
            collector.emit([word])

    def declare_output_fields(self, declarer: Any) -> None:
        declarer.declare(Fields("word"))


class Count(BaseBasicBolt):
    def prepare(self, conf: Any, context: Any) -> None:
        self.counts: Counter[str] = Counter()

    def execute(self, tup: Any, collector: Any) -> None:
        self.counts[tup["word"]] += 1
        collector.emit([tup["word"], self.counts[tup["word"]]])

    def declare_output_fields(self, declarer: Any) -> None:
        declarer.declare(Fields("word", "count"))


class Pairs(BaseRichBolt):
    """Holds every first tuple until the second comes, and anchors to both."""

    def prepare(self, conf: Any, context: Any, collector: Any) -> None:
        self.collector, self.lock = collector, threading.Lock()
        self.held: list[Any] = []
        self.prepared_with = conf.get("my.key")
        self.closed = False

    def execute(self, tup: Any) -> None:
        self.held.append(tup)
        if len(self.held) == 2:
            self.collector.emit([[held[0] for held in self.held]], anchors=self.held)
            for held in self.held:
                self.collector.ack(held)
            self.held = []

    def cleanup(self) -> None:
        self.closed = True

    def declare_output_fields(self, declarer: Any) -> None:
        declarer.declare(Fields("pair"))


class Upper(BatchBolt):
    stateless = True

    def execute_batch(self, batch: Any, collector: Any) -> None:
        if "bad" in batch["word"].to_pylist():
            raise FailedException("bad")
        collector.emit(pa.record_batch({"word": [word.as_py().upper() for word in batch["word"]]}))

    def declare_output_fields(self, declarer: Any) -> None:
        declarer.declare(Fields("word"))


class Numbers(BaseRichSpout):
    def __init__(self, end: int) -> None:
        self.end = end

    def open(self, conf: Any, context: Any, collector: Any) -> None:
        self.collector, self.lock = collector, threading.Lock()
        self.next, self.said = 0, []

    def next_tuple(self) -> None:
        self.collector.emit([self.next], message_id=self.next)
        self.next += 1

    def ack(self, message_id: Any) -> None:
        self.said.append(("ack", message_id))

    def fail(self, message_id: Any) -> None:
        self.said.append(("fail", message_id))

    def exhausted(self) -> bool:
        return self.next >= self.end

    def declare_output_fields(self, declarer: Any) -> None:
        declarer.declare("number")


class Columns(BatchSpout):
    """Emits numbers in batches of three, every fourth without an id; an id is a text."""

    def __init__(self, end: int) -> None:
        self.end = end

    def open(self, conf: Any, context: Any, collector: Any) -> None:
        self.collector, self.lock, self.context = collector, threading.Lock(), context
        self.next, self.said, self.closed = 0, [], False

    def next_batch(self) -> None:
        numbers = range(self.next, self.next + 3)
        ids = pa.array([None if number % 4 == 3 else f"m{number}" for number in numbers], pa.large_string())
        self.collector.emit(pa.record_batch({"number": list(numbers)}), ids)
        self.next += 3

    def ack_batch(self, message_ids: Any) -> None:
        assert isinstance(message_ids, pa.LargeStringArray)
        self.said.append(("ack", *message_ids.to_pylist()))

    def fail_batch(self, message_ids: Any) -> None:
        assert isinstance(message_ids, pa.LargeStringArray)
        self.said.append(("fail", *message_ids.to_pylist()))

    def exhausted(self) -> bool:
        return self.next >= self.end

    def close(self) -> None:
        self.closed = True

    def declare_output_fields(self, declarer: Any) -> None:
        declarer.declare("number")


def sentence(text: str) -> Any:
    return make_tuple([text], ["sentence"])


def test_a_basic_bolt_is_run_acked_and_failed_as_by_the_runtime() -> None:
    inputs = [sentence("to be"), sentence(""), sentence("or")]
    result = run_bolt(Split(), inputs)
    assert result.values() == [("to",), ("be",), ("or",)]
    assert result.emitted[1] == Emission(("be",), anchors=(inputs[0],))
    assert (result.acked, result.failed) == ([inputs[0], inputs[2]], [inputs[1]])
    assert [str(error) for error in result.errors] == ["nothing to split"]


def test_a_rich_bolt_acks_and_anchors_by_itself() -> None:
    bolt = Pairs()
    inputs = [make_tuple([number]) for number in range(3)]
    result = run_bolt(bolt, inputs, {"my.key": 7})
    assert result.emitted == [Emission(([0, 1],), anchors=(inputs[0], inputs[1]))]
    assert (result.acked, result.failed) == (inputs[:2], [])
    assert bolt.prepared_with == 7
    assert bolt.closed


def test_a_batch_bolt_takes_record_batches_and_tuples() -> None:
    words = [make_tuple([word], ["word"]) for word in ("a", "b")]
    result = run_bolt(Upper(), [*words, pa.record_batch({"word": ["c"]}), make_tuple(["bad"], ["word"])])
    assert result.values() == [("A",), ("B",), ("C",)]
    assert [emission.batch.num_rows for emission in result.emitted] == [2, 1]
    assert (result.acked, result.failed) == ([0, 1, 2], [3])


def test_what_a_bolt_raises_reaches_the_test() -> None:
    with pytest.raises(KeyError, match="sentence"):
        run_bolt(Split(), [make_tuple(["a"], ["sentense"])])
    with pytest.raises(TupleError, match="Split executes tuples, not 'a'; make tuples with make_tuple"):
        run_bolt(Split(), ["a"])  # type: ignore[list-item]
    with pytest.raises(InvalidTopologyError, match="needs an instance, not the class Split"):
        run_bolt(Split, [])  # type: ignore[arg-type]


def test_a_restart_keeps_the_attributes_that_can_be_pickled() -> None:
    tester = BoltTester(Pairs())
    first, second = make_tuple([1]), make_tuple([2])
    tester.execute(first)
    before = tester.bolt
    tester.restart()
    assert tester.bolt is not before
    assert isinstance(tester.bolt.lock, type(threading.Lock()))
    assert tester.bolt.collector is tester.collector
    tester.execute(second)
    assert tester.collector.values() == [([1, 2],)]


def test_a_restart_shows_that_a_wrong_promise_of_statelessness_loses_state() -> None:
    class Forgetful(Count):
        stateless = True

    kept, lost = BoltTester(Count()), BoltTester(Forgetful())
    for tester in (kept, lost):
        tester.execute(make_tuple(["a"], ["word"]))
        tester.restart()
        tester.execute(make_tuple(["a"], ["word"]))
    assert kept.collector.values() == [("a", 1), ("a", 2)]
    assert lost.collector.values() == [("a", 1), ("a", 1)]


def test_a_bolt_that_can_not_be_pickled_can_be_tested_but_not_restarted() -> None:
    bolt = Pairs()
    bolt.client = threading.Lock()  # type: ignore[attr-defined]
    tester = BoltTester(bolt)
    tester.execute(make_tuple([1]))
    with pytest.raises(ComponentError, match=r"client \(.*lock\): create them in prepare or open"):
        tester.restart()


def test_a_tick_comes_with_the_configured_rate() -> None:
    class Ticks(BaseRichBolt):
        def prepare(self, conf: Any, context: Any, collector: Any) -> None:
            self.rates: list[float] = []

        def execute(self, tup: Any) -> None:
            self.rates.append(tup["rate_secs"] if tup.is_tick else -1)

    tester = BoltTester(Ticks(), conf={Config.TOPOLOGY_TICK_TUPLE_FREQ_SECS: 5})
    tester.tick()
    assert tester.bolt.rates == [5]


def test_the_context_knows_sources_targets_and_tasks() -> None:
    class Asks(Count):
        def prepare(self, conf: Any, context: Any) -> None:
            super().prepare(conf, context)
            self.context = context

    tester = BoltTester(
        Asks(),
        [make_tuple(["a"], ["word"], component="split"), make_tuple([1, 2], ["x", "y"], "other", "side")],
        name="count",
        targets={"report": 3},
        tasks=2,
        task_index=1,
    )
    context = tester.bolt.context
    assert (context.this_component_id, context.this_task_id, context.this_task_index) == ("count", 2, 1)
    assert sorted(map(str, context.this_sources())) == ["other:side", "split"]
    assert context.component_output_fields("other", "side") == Fields("x", "y")
    assert len(context.component_tasks("report")) == 3
    tester.execute(make_tuple(["a"], ["word"], component="split"))
    assert tester.collector.emitted[0].values == ("a", 1)


def test_emits_return_the_tasks_of_the_receivers_that_the_test_names() -> None:
    class Direct(BaseRichBolt):
        def prepare(self, conf: Any, context: Any, collector: Any) -> None:
            self.collector, self.got = collector, []

        def execute(self, tup: Any) -> None:
            self.got.append(self.collector.emit(["a"]))
            self.collector.emit_direct(tup[0], ["b"], stream="direct")

        def declare_output_fields(self, declarer: Any) -> None:
            declarer.declare("word")
            declarer.declare_stream("direct", "word", direct=True)

    tester = BoltTester(Direct(), targets={"work": 1})
    (work,) = make_context(Direct(), "bolt", targets={"work": 1}).component_tasks("work")
    tester.execute(make_tuple([work]))
    assert tester.bolt.got == [[work]]
    with pytest.raises(TupleError, match=f"that task does not subscribe to it; subscribed tasks: {work}"):
        tester.execute(make_tuple([99]))
    anywhere = BoltTester(Direct())
    anywhere.execute(make_tuple([99]))
    assert anywhere.collector.emitted[1].task == 99


def test_a_bolt_may_receive_from_where_it_sends_to() -> None:
    tester = BoltTester(Count(), [make_tuple(["a"], ["word"], component="loop")], name="count", targets={"loop": 1})
    tester.execute(make_tuple(["a"], ["word"], component="loop"))
    own = BoltTester(Count(), [make_tuple(["a", 1], ["word", "count"], component="count")], name="count")
    own.execute(make_tuple(["a", 1], ["word", "count"], component="count"))
    assert own.bolt.counts == {"a": 1}


def test_a_spout_is_driven_call_by_call() -> None:
    tester = SpoutTester(Numbers(3))
    assert tester.next_tuple(calls=2) == [Emission((0,), message_id=0), Emission((1,), message_id=1)]
    tester.ack(1)
    tester.fail(0)
    assert tester.spout.said == [("ack", 1), ("fail", 0)]
    assert (tester.collector.acked, tester.collector.failed, tester.collector.pending) == ([1], [0], [])
    with pytest.raises(StormError, match=r"no message 1 is pending; pending: \[\]"):
        tester.ack(1)


def test_a_restarted_spout_goes_on_where_it_was() -> None:
    tester = SpoutTester(Numbers(3))
    tester.next_tuple()
    tester.restart()
    tester.next_tuple()
    tester.ack(0)
    assert tester.collector.values() == [(0,), (1,)]
    assert tester.spout.said == [("ack", 0)]


def test_a_batch_spout_is_driven_call_by_call() -> None:
    tester = SpoutTester(Columns(9), targets={"work": 2})
    assert len(tester.spout.context.component_tasks("work")) == 2
    first, second = tester.next_batch(calls=2)
    assert first == BatchSpoutEmission(pa.record_batch({"number": [0, 1, 2]}), ("m0", "m1", "m2"))
    assert second.message_ids == (None, "m4", "m5")
    tester.ack(["m5", "m0"])
    tester.fail(pa.array(["m2"]))
    tester.ack(iter(()))
    # In the order of the emits, as the runtime tells them; and no call for nothing.
    assert tester.spout.said == [("ack", "m0", "m5"), ("fail", "m2")]
    assert (tester.collector.acked, tester.collector.failed) == (["m0", "m5"], ["m2"])
    assert tester.collector.pending == ["m1", "m4"]


def test_only_pending_messages_of_a_batch_spout_end() -> None:
    tester = SpoutTester(Columns(9))
    tester.next_batch()
    for wrong in (["m0", "m9"], ["m9", "m0"]):
        with pytest.raises(StormError, match=r"no message 'm9' is pending; pending: \['m0', 'm1', 'm2'\]"):
            tester.ack(wrong)
    with pytest.raises(StormError, match="no message 'm0' is pending"):
        tester.fail(["m0", "m0"])
    with pytest.raises(StormError, match="no message None is pending"):
        tester.ack(["m0", None])
    with pytest.raises(StormError, match="Columns: ack with message ids that can't be an Arrow array"):
        tester.ack(["m0", 1])
    for single, shown in (("m0", "'m0' .str."), (0, "0 .int.")):
        with pytest.raises(StormError, match=f"call fail with an iterable of message ids, not {shown}"):
            tester.fail(single)
    assert (tester.spout.said, tester.collector.pending) == ([], ["m0", "m1", "m2"])


def test_ids_of_a_batch_spout_may_repeat_and_may_be_structures() -> None:
    class Structures(Columns):
        def next_batch(self) -> None:
            ids = [{"file": 1, "rows": [row]} for row in (1, 2, 1)]
            self.collector.emit(pa.record_batch({"number": [1, 2, 3]}), ids)

        def ack_batch(self, message_ids: Any) -> None:
            self.said.append(message_ids.to_pylist())

    tester = SpoutTester(Structures(9))
    tester.next_batch()
    tester.ack([{"file": 1, "rows": [1]}])
    assert tester.collector.pending == [{"file": 1, "rows": [2]}, {"file": 1, "rows": [1]}]
    assert tester.spout.said == [[{"file": 1, "rows": [1]}]]


def test_a_restarted_batch_spout_goes_on_where_it_was() -> None:
    tester = SpoutTester(Columns(9))
    tester.next_batch()
    before = tester.spout
    tester.restart()
    assert tester.spout is not before
    tester.next_batch()
    tester.ack(["m1", "m4"])
    assert tester.collector.values() == [(number,) for number in range(6)]
    assert tester.spout.said == [("ack", "m1", "m4")]


def test_spouts_of_both_kinds_say_how_they_are_asked() -> None:
    with pytest.raises(StormError, match=r"^Columns is a BatchSpout; call next_batch instead of next_tuple$"):
        SpoutTester(Columns(3)).next_tuple()
    with pytest.raises(StormError, match=r"^Numbers is not a BatchSpout; call next_tuple instead of next_batch$"):
        SpoutTester(Numbers(3)).next_batch()


def test_run_spout_acks_what_a_call_of_a_batch_spout_emitted_at_once() -> None:
    spout = Columns(6)
    result = run_spout(spout)
    assert result.values() == [(number,) for number in range(6)]
    assert spout.said == [("ack", "m0", "m1", "m2"), ("ack", "m4", "m5")]
    assert (result.acked, result.pending, spout.closed) == (["m0", "m1", "m2", "m4", "m5"], [], True)
    assert run_spout(Columns(6), calls=1, ack=False).pending == ["m0", "m1", "m2"]


def test_run_spout_calls_until_the_spout_is_exhausted() -> None:
    spout = Numbers(5)
    assert run_spout(spout).values() == [(number,) for number in range(5)]
    assert len(spout.said) == 5
    assert run_spout(Numbers(5), calls=2, ack=False).pending == [0, 1]


def test_run_spout_does_not_run_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("storm_on_spark.testing.components.spout_tester.MOST_CALLS", 100)
    with pytest.raises(StormError, match="Numbers was not exhausted after 100 calls; say how many calls to make"):
        run_spout(Numbers(10**9), ack=False)


def test_a_unit_test_takes_milliseconds() -> None:
    run_bolt(Split(), [sentence("warm up")])
    # The process's own time: other work on the machine doesn't count.
    started = time.process_time()
    for _ in range(10):
        run_bolt(Count(), [make_tuple(["a"], ["word"])])
        run_spout(ListSpout(["a"]))
    assert (time.process_time() - started) / 20 < 0.05


def test_a_connection_that_is_opened_late_is_there_again_after_a_restart() -> None:
    class Late(BaseRichBolt):
        def prepare(self, conf: Any, context: Any, collector: Any) -> None:
            self.connection: Any = None
            self.seen = 0

        def execute(self, tup: Any) -> None:
            self.connection = self.connection or threading.Lock()
            self.seen += 1

    tester = BoltTester(Late())
    tester.execute(make_tuple([1]))
    tester.restart()
    assert (tester.bolt.connection, tester.bolt.seen) == (None, 1)


def test_what_would_be_saved_grows_with_the_attributes_and_is_nothing_for_a_stateless_bolt() -> None:
    class Stateless(Count):
        stateless = True

    sizes = {}
    for kind in (Count, Stateless):
        with BoltTester(kind()) as tester:
            before = tester.saved_bytes()
            tester.execute(*(make_tuple([f"word {number}"], ["word"]) for number in range(1000)))
            sizes[kind] = before, tester.saved_bytes()
    assert 0 < sizes[Count][0] < 1000 < sizes[Count][1]
    assert sizes[Stateless] == (0, 0)
