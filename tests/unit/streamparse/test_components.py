"""Components of pystorm under the test kit: anchoring, acks, batches, ticks, state, exceptions."""

from __future__ import annotations

import threading
from collections import Counter
from typing import Any

import pytest

from storm_on_spark.api.building.builder import TopologyBuilder
from storm_on_spark.api.errors import InvalidTopologyError, TupleError
from storm_on_spark.api.streams.fields import Fields
from storm_on_spark.api.streams.stream import StreamSpec
from storm_on_spark.spark.compiled import compile_topology
from storm_on_spark.streamparse import adapt
from storm_on_spark.streamparse.components.adapter import PystormBolt, PystormSpout
from storm_on_spark.streamparse.components.bridge import ReportedError
from storm_on_spark.streamparse.stand_in.streamparse import (
    BatchingBolt,
    Bolt,
    ReliableSpout,
    Spout,
    TicklessBatchingBolt,
)
from storm_on_spark.testing import BoltTester, ListSpout, SpoutTester, make_tuple

TICKS = "topology.tick.tuple.freq.secs"
WORD = {"default": StreamSpec(Fields("word")), "errors": StreamSpec(Fields("reason"))}


def bolt(cls: type, **kwargs: Any) -> BoltTester:
    sources = [make_tuple(["a", 1], ["word", "count"])]
    return BoltTester(PystormBolt(cls, WORD), sources, **kwargs)


def word(value: str, count: int = 1) -> Any:
    return make_tuple([value, count], ["word", "count"])


class Shout(Bolt):
    def process(self, tup: Any) -> None:
        self.emit([tup.values.word.upper()])


def test_a_bolt_anchors_and_acks_by_itself() -> None:
    tester = bolt(Shout)
    tup = word("storm")
    tester.execute(tup)
    (emit,) = tester.collector.emitted
    assert (list(emit.values), list(emit.anchors)) == (["STORM"], [tup])
    assert tester.collector.acked == [tup]


def test_flags_turn_anchors_and_acks_off() -> None:
    class Quiet(Shout):
        auto_anchor = False
        auto_ack = False

    tester = bolt(Quiet)
    tester.execute(word("storm"))
    assert [list(emit.anchors) for emit in tester.collector.emitted] == [[]]
    assert tester.collector.acked == []


def test_a_tuple_that_is_kept_is_acked_later_and_survives_a_restart() -> None:
    class Later(Bolt):
        auto_ack = False

        def initialize(self, conf: Any, ctx: Any) -> None:
            self.kept: list[Any] = []
            self.lock = threading.Lock()

        def process(self, tup: Any) -> None:
            self.kept.append(tup)
            if len(self.kept) == 2:
                first, second = self.kept
                self.emit([f"{first.values.word}{second.values.word}"], anchors=[first.id, second])
                self.ack(first)
                self.fail(second.id)

    tester = bolt(Later)
    tester.execute(word("a"))
    tester.restart()
    tester.execute(word("b"))
    (emit,) = tester.collector.emitted
    assert list(emit.values) == ["ab"]
    assert [tup["word"] for tup in emit.anchors] == ["a", "b"]
    assert [tup["word"] for tup in tester.collector.acked] == ["a"]
    assert [tup["word"] for tup in tester.collector.failed] == ["b"]


def test_an_anchor_that_is_acked_is_refused_by_name() -> None:
    class Wrong(Bolt):
        def process(self, tup: Any) -> None:
            self.ack(tup)
            self.emit(["x"], anchors=[tup])

    with pytest.raises(TupleError, match=r'bolt "bolt" anchors to the tuple \'10000\''):
        bolt(Wrong).execute(word("a"))


def test_attributes_are_state() -> None:
    class Count(Bolt):
        def initialize(self, conf: Any, ctx: Any) -> None:
            self.counts: Counter[str] = Counter()
            self.bound = self.count

        def count(self, word: str) -> int:
            self.counts[word] += 1
            return self.counts[word]

        def process(self, tup: Any) -> None:
            self.emit([str(self.bound(tup.values[0]))])

    tester = bolt(Count)
    tester.execute(word("a"), word("a"))
    old = tester.bolt.component
    tester.restart()
    tester.execute(word("a"))
    assert tester.bolt.component is not old
    assert [emit.values[0] for emit in tester.collector.emitted] == ["1", "2", "3"]
    assert old.counts == {"a": 2}


def test_what_the_context_says() -> None:
    seen: dict[str, Any] = {}

    class Look(Bolt):
        def initialize(self, conf: Any, ctx: Any) -> None:
            seen.update(ctx)
            assert (self.storm_conf, self.context) == (conf, ctx)
            assert self.component_name == "bolt"
            assert self.task_id == ctx["taskid"]

        def process(self, tup: Any) -> None: ...

    bolt(Look, targets={"sink": 2})
    assert seen["componentid"] == "bolt"
    assert seen["stream->outputfields"] == {"default": ["word"], "errors": ["reason"]}
    assert seen["source->stream->fields"] == {"source": {"default": ["word", "count"]}}
    assert seen["task->component"][str(seen["taskid"])] == "bolt"


def test_streams_task_ids_and_reports() -> None:
    seen: list[Any] = []

    class Many(Bolt):
        def process(self, tup: Any) -> None:
            seen.append(self.emit(["x"], need_task_ids=True))
            assert self.emit(["why"], stream="errors") is None
            self.log("hello", level="warn")
            self.report_metric("seen", 1)
            try:
                raise KeyError("no such word")
            except KeyError as error:
                self.raise_exception(error, tup)

    tester = bolt(Many, targets={"sink": 2})
    tester.execute(word("a"))
    assert [len(tasks) for tasks in seen] == [1]
    assert tester.collector.values("errors") == [("why",)]
    (error,) = tester.collector.errors
    assert isinstance(error, ReportedError)
    assert "KeyError: 'no such word'" in str(error)
    assert "word='a'" in str(error)
    (reading,) = tester.context.metrics.readings(lambda name, error: None)
    assert reading == ("seen", "metric", 1)


class Overriding(Bolt):
    """Overrides what the bridge takes the place of elsewhere."""

    def initialize(self, conf: Any, ctx: Any) -> None:
        self.calls: list[str] = []

    def process(self, tup: Any) -> None:
        if tup.values.word == "poison":
            raise ValueError("poison")
        self.emit([tup.values.word])

    def emit(self, tup: Any, **kwargs: Any) -> Any:
        self.calls.append("emit")
        return super().emit([f"<{tup[0]}>"], **kwargs)

    def ack(self, tup: Any) -> None:
        self.calls.append("ack")
        super().ack(tup)

    def fail(self, tup: Any) -> None:
        self.calls.append("fail")
        super().fail(tup)

    def process_tick(self, tup: Any) -> None:
        self.calls.append("tick")


class WithLoop(Overriding):
    exit_on_exception = False

    def _run(self) -> None:
        self.calls.append("run")
        super()._run()

    def is_tick(self, tup: Any) -> bool:  # type: ignore[override]
        return bool(Overriding.is_tick(tup)) or tup.values[0] == "tick"


def test_methods_that_a_class_overrides_are_called() -> None:
    tester = bolt(Overriding)
    tup = word("a")
    tester.execute(tup)
    assert tester.bolt.component.calls == ["emit", "ack"]
    (emit,) = tester.collector.emitted
    assert (list(emit.values), list(emit.anchors), tester.collector.acked) == (["<a>"], [tup], [tup])


def test_a_loop_body_that_a_class_overrides_is_called() -> None:
    tester = bolt(WithLoop)
    tester.execute(word("a"), word("poison"), word("tick"))
    calls = tester.bolt.component.calls
    assert calls == ["run", "emit", "ack", "run", "fail", "run", "tick", "ack"]
    assert [tup["word"] for tup in tester.collector.acked] == ["a", "tick"]
    assert [tup["word"] for tup in tester.collector.failed] == ["poison"]
    assert tester.bolt.component.__dict__["_storm_on_spark_pending"] == {}


def test_an_emit_anchors_to_what_current_tups_says() -> None:
    class Pairs(Bolt):
        auto_ack = False

        def initialize(self, conf: Any, ctx: Any) -> None:
            self.first: Any = None
            self.say = self.emit
            self.by_name = {"say": self.emit}

        def process(self, tup: Any) -> None:
            if self.first is None:
                self.first = tup
                return
            self._current_tups = [self.first, tup]
            self.say(["both"])
            self.by_name["say"](["none"], anchors=[])
            for each in self._current_tups:
                self.ack(each)

    tester = bolt(Pairs)
    tester.execute(word("a"))
    tester.restart()
    tester.execute(word("b"))
    assert [[tup["word"] for tup in emit.anchors] for emit in tester.collector.emitted] == [["a", "b"], []]
    assert [tup["word"] for tup in tester.collector.acked] == ["a", "b"]


def test_ids_are_texts_of_their_own_for_as_long_as_a_tuple_is_held_and_longer() -> None:
    class Hold(Bolt):
        auto_ack = False

        def initialize(self, conf: Any, ctx: Any) -> None:
            self.ids: list[str] = []

        def process(self, tup: Any) -> None:
            self.ids.append(tup.id)

    tester = bolt(Hold)
    tester.execute(*(word(str(number)) for number in range(3)))
    tester.restart()
    tester.execute(*(word(str(number)) for number in range(3)))
    ids = tester.bolt.component.ids
    assert all(isinstance(name, str) for name in ids)
    assert len(set(ids)) == 6


def test_task_ids_of_a_direct_emit_and_what_is_no_tuple() -> None:
    seen: list[Any] = []

    class Direct(Bolt):
        def process(self, tup: Any) -> None:
            seen.append(self.emit(["x"], stream="direct", direct_task=3, need_task_ids=True))
            with pytest.raises(TypeError, match="must be either lists or tuples"):
                self.emit("text")

    streams = {"direct": StreamSpec(Fields("word"), direct=True)}
    tester = BoltTester(PystormBolt(Direct, streams), [word("a")])
    tester.execute(word("a"))
    (emit,) = tester.collector.emitted
    assert (seen, emit.stream, emit.task) == ([[3]], "direct", 3)


def test_what_can_not_be_adapted() -> None:
    class Wrong(Bolt):
        outputs = ("word", 3)

    with pytest.raises(InvalidTopologyError, match=r"test_components\.py:\d+: class .*Wrong: outputs has 3, neither"):
        adapt(Wrong)
    with pytest.raises(InvalidTopologyError, match="neither a bolt nor a spout"):
        adapt(int)


class ByWord(BatchingBolt):
    def group_key(self, tup: Any) -> str:
        return str(tup.values.word)

    def process_batch(self, key: str, tups: list[Any]) -> None:
        if key == "poison":
            raise ValueError(key)
        self.emit([f"{key}{len(tups)}"])


def test_batches_wait_for_the_second_tick_across_a_restart() -> None:
    tester = bolt(ByWord)
    tester.execute(word("a"), word("b"))
    tester.tick()
    tester.restart()
    tester.execute(word("a", 2))
    assert tester.collector.emitted == []
    tester.tick()
    assert [emit.values[0] for emit in tester.collector.emitted] == ["a2", "b1"]
    assert [len(emit.anchors) for emit in tester.collector.emitted] == [2, 1]
    assert sorted(tup["word"] for tup in tester.collector.acked if not tup.is_tick) == ["a", "a", "b"]


class WithoutTicks(ByWord):
    def process(self, tup: Any) -> None:
        super().process(tup)
        self.process_batches()


@pytest.mark.parametrize(
    ("kind", "own", "conf", "warned"),
    [
        (ByWord, {}, {}, True),
        (ByWord, {TICKS: 5}, {}, False),
        (ByWord, {}, {TICKS: 5}, False),
        (WithoutTicks, {}, {}, False),
        (TicklessBatchingBolt, {}, {}, False),
        (Bolt, {}, {}, False),
    ],
)
def test_a_batching_bolt_that_gets_no_ticks_is_named_at_the_start(
    kind: type, own: dict[str, int], conf: dict[str, int], warned: bool
) -> None:
    builder = TopologyBuilder()
    builder.set_spout("words", ListSpout(["a"], fields=["word"]))
    builder.set_bolt("count", adapt(kind)).shuffle_grouping("words").add_configurations(own)
    warning = compile_topology(builder.create_topology(), conf).warning
    if warned:
        assert warning.startswith('bolt "count": ByWord is a BatchingBolt')
        assert f"set {TICKS} in its config" in warning
    else:
        assert warning == ""


def test_a_group_that_raises_fails_what_is_not_acked_and_the_bolt_goes_on() -> None:
    tester = bolt(ByWord)
    tester.execute(word("a"), word("poison"), word("c"))
    tester.tick()
    tester.tick()
    assert [tup["word"] for tup in tester.collector.acked if not tup.is_tick] == ["a"]
    assert sorted(tup["word"] for tup in tester.collector.failed) == ["c", "poison"]
    assert ["ValueError: poison" in str(error) for error in tester.collector.errors] == [True]
    tester.execute(word("d"))
    tester.tick()
    tester.tick()
    assert [emit.values[0] for emit in tester.collector.emitted] == ["a1", "d1"]


def test_only_the_group_fails_where_exceptions_do_not_end_the_bolt() -> None:
    class GoesOn(ByWord):
        exit_on_exception = False

    tester = bolt(GoesOn)
    tester.execute(word("poison"), word("c"))
    tester.tick()
    tester.tick()
    assert [tup["word"] for tup in tester.collector.failed] == ["poison"]
    tester.tick()
    tester.tick()
    assert [emit.values[0] for emit in tester.collector.emitted] == ["c1"]


def test_fail_fast_ends_a_batching_bolt() -> None:
    tester = bolt(ByWord, conf={"topology.fail.fast": True})
    tester.execute(word("poison"))
    tester.tick()
    with pytest.raises(ValueError, match="poison"):
        tester.tick()


def test_without_ticks_of_its_own_a_batching_bolt_gets_one_as_its_clock() -> None:
    class Timed(TicklessBatchingBolt):
        secs_between_batches = 2.5

        def process_batch(self, key: Any, tups: list[Any]) -> None:
            self.emit([str(len(tups))])

    before = threading.active_count()
    tester = bolt(Timed)
    assert threading.active_count() == before
    assert PystormBolt(Timed, WORD).get_component_configuration() == {"topology.tick.tuple.freq.secs": 3}
    tester.execute(word("a"), word("b"))
    tester.tick()
    assert [emit.values[0] for emit in tester.collector.emitted] == ["2"]
    assert len([tup for tup in tester.collector.acked if not tup.is_tick]) == 2


def test_a_plain_bolt_that_handles_its_exceptions_fails_the_tuple_and_goes_on() -> None:
    class GoesOn(Bolt):
        exit_on_exception = False

        def process(self, tup: Any) -> None:
            if tup.values.word == "poison":
                raise ValueError("poison")

    tester = bolt(GoesOn)
    tester.execute(word("poison"), word("b"))
    assert [tup["word"] for tup in tester.collector.failed] == ["poison"]
    assert [tup["word"] for tup in tester.collector.acked] == ["b"]
    with pytest.raises(ValueError, match="poison"):
        bolt(type("Ends", (GoesOn,), {"exit_on_exception": True})).execute(word("poison"))


class Numbers(Spout):
    outputs = ("word",)

    def initialize(self, conf: Any, ctx: Any) -> None:
        self.next = 0
        self.heard: list[Any] = []

    def next_tuple(self) -> None:
        self.emit([str(self.next)], tup_id=("id", self.next))
        self.next += 1

    def ack(self, tup_id: Any) -> None:
        self.heard.append(("ack", tup_id))

    def fail(self, tup_id: Any) -> None:
        self.heard.append(("fail", tup_id))


def test_a_spout_emits_hears_and_goes_on_where_it_was() -> None:
    tester = SpoutTester(PystormSpout(Numbers, WORD))
    tester.next_tuple()
    tester.next_tuple()
    first, second = (emit.message_id for emit in tester.collector.emitted)
    tester.ack(first)
    tester.fail(second)
    assert tester.spout.component.heard == [("ack", ("id", 0)), ("fail", ("id", 1))]
    tester.restart()
    tester.next_tuple()
    assert [list(emit.values) for emit in tester.collector.emitted] == [["0"], ["1"], ["2"]]


def test_a_spout_that_overrides_its_loop_or_its_emit() -> None:
    class Own(Numbers):
        exit_on_exception = False

        def _run(self) -> None:
            self.heard.append("run")
            super()._run()

        def emit(self, tup: Any, **kwargs: Any) -> Any:
            return super().emit([f"<{tup[0]}>"], **kwargs)

        def fail(self, tup_id: Any) -> None:
            raise ValueError("handled")

    tester = SpoutTester(PystormSpout(Own, WORD))
    tester.next_tuple()
    tester.next_tuple()
    first, second = (emit.message_id for emit in tester.collector.emitted)
    tester.ack(first)
    tester.fail(second)
    assert [list(emit.values) for emit in tester.collector.emitted] == [["<0>"], ["<1>"]]
    # The first is told that the topology is active.
    assert tester.spout.component.heard == ["run", "run", "run", "run", ("ack", ("id", 0)), "run"]
    assert ["ValueError: handled" in str(error) for error in tester.collector.errors] == [True]


def test_a_reliable_spout_emits_again_until_it_gives_up() -> None:
    class Once(ReliableSpout):
        max_fails = 2

        def next_tuple(self) -> None:
            self.emit(["x"], tup_id=1)

    tester = SpoutTester(PystormSpout(Once, WORD))
    tester.next_tuple()
    for _ in range(3):
        tester.fail(1)
    assert len(tester.collector.emitted) == 3
    assert tester.spout.component.unacked_tuples == {}
    with pytest.raises(ValueError, match="with an id"):
        tester.spout.component.emit(["x"])
