"""Snapshots of instances: what is in them, what is not, and how they come back."""

from __future__ import annotations

import logging
import threading
from collections import Counter, deque
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storm_on_spark.api import BaseBasicBolt, BaseRichBolt
from storm_on_spark.api.errors import CheckpointError
from storm_on_spark.api.task.collector import OutputCollector
from storm_on_spark.runtime.state.snapshot import Snapshots, read_snapshot
from storm_on_spark.runtime.values import pickling


class Collector(OutputCollector):
    """Stands in for what `prepare` is given."""

    def emit(self, values, anchors=None, stream="default"):
        return []

    def emit_direct(self, task, values, anchors=None, stream="default"):
        pass

    def ack(self, tup):
        pass

    def fail(self, tup):
        pass

    def reset_timeout(self, tup):
        pass

    def report_error(self, error):
        pass

    def __reduce__(self):
        raise TypeError("a collector can't be pickled")


class Plain(BaseRichBolt):
    def prepare(self, conf, context, collector):
        self.conf, self.collector = conf, collector
        self.count = 0

    def execute(self, tup):
        pass


def prepared(cls: type, conf: dict[str, Any] | None = None) -> tuple[Any, Snapshots]:
    """An instance as a worker prepares it, and its snapshots."""
    instance, collector = cls(), Collector()
    conf = {"key": 1} if conf is None else conf
    instance.prepare(conf, None, collector)
    return instance, Snapshots(instance, "bolt 'b' (task 3)", (collector, conf))


def reborn(snapshots: Snapshots, cls: type) -> Any:
    """What another worker makes of the last snapshot."""
    data = snapshots.take()
    instance, others = prepared(cls)
    others.restore(data)
    return instance


def test_attributes_come_back_and_services_stay() -> None:
    bolt, snapshots = prepared(Plain)
    bolt.count, bolt.words = 3, Counter(a=2)
    data = snapshots.take()
    assert read_snapshot(data) == {"count": 3, "words": Counter(a=2)}
    other, others = prepared(Plain, {"key": "changed"})
    own = other.collector
    others.restore(data)
    assert (other.count, other.words) == (3, Counter(a=2))
    assert other.collector is own
    assert other.conf == {"key": "changed"}, "configuration is what the topology was started with, not state"


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text() | st.binary() | st.floats(allow_nan=False),
    lambda inner: (
        st.lists(inner)
        | st.dictionaries(st.text(), inner)
        | st.tuples(inner, inner)
        | st.builds(deque, st.lists(inner))
        | st.frozensets(st.integers())
    ),
    max_leaves=8,
)


@given(st.dictionaries(st.sampled_from(["a", "b", "c", "count"]), values))
def test_any_picklable_attributes_come_back(attributes: dict[str, Any]) -> None:
    bolt, snapshots = prepared(Plain)
    bolt.__dict__.update(attributes)
    other = reborn(snapshots, Plain)
    assert {n: v for n, v in vars(other).items() if n not in ("collector", "conf")} == {"count": 0, **attributes}


def test_two_attributes_may_be_one_object() -> None:
    bolt, snapshots = prepared(Plain)
    bolt.all = {"a": [1]}
    bolt.last = bolt.all["a"]
    other = reborn(snapshots, Plain)
    other.last.append(2)
    assert other.all == {"a": [1, 2]}


# --- what can't be pickled ----------------------------------------------------------------------------------


class Connected(Plain):
    def prepare(self, conf, context, collector):
        super().prepare(conf, context, collector)
        self.lock = threading.Lock()
        self.late = None


def test_transient_attributes_are_as_prepare_made_them(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        bolt, snapshots = prepared(Connected)
    assert [r.getMessage()[:42] for r in caplog.records] == [
        "attribute 'lock' of bolt 'b' (task 3) can't be pickled"[:42]
    ]
    bolt.count = 7
    caplog.clear()
    other = reborn(snapshots, Connected)
    assert other.count == 7
    assert other.lock is not bolt.lock
    assert other.lock.acquire(blocking=False)


def test_an_attribute_that_becomes_unpicklable_falls_back_to_what_prepare_makes() -> None:
    bolt, snapshots = prepared(Connected)
    bolt.late = "state"
    assert reborn(snapshots, Connected).late == "state"
    bolt.late, bolt.count = threading.Lock(), 5
    other = reborn(snapshots, Connected)
    assert (other.late, other.count) == (None, 5)


def test_an_unpicklable_attribute_that_prepare_does_not_make_is_absent_elsewhere_and_stays_here() -> None:
    bolt, snapshots = prepared(Plain)
    before = snapshots.take()
    bolt.connection = threading.Lock()
    after = snapshots.take()
    assert not hasattr(reborn(snapshots, Plain), "connection")
    lock = bolt.connection
    for data in (after, before):
        snapshots.restore(data)
        assert bolt.connection is lock


class Odd:
    def __reduce__(self):
        raise ZeroDivisionError("whatever a class does here")


def test_any_error_of_pickling_makes_an_attribute_transient() -> None:
    bolt, snapshots = prepared(Plain)
    bolt.odd, bolt.function, bolt.count = Odd(), lambda: 1, 2
    assert reborn(snapshots, Plain).count == 2
    assert snapshots.transient == {"odd", "function"}


def test_each_transient_attribute_is_warned_about_once(caplog: pytest.LogCaptureFixture) -> None:
    bolt, snapshots = prepared(Plain)
    bolt.odd = Odd()
    for _ in range(3):
        snapshots.take()
    assert len(caplog.records) == 1


# --- deleted, new, slots ------------------------------------------------------------------------------------


def test_a_deleted_attribute_stays_deleted() -> None:
    bolt, snapshots = prepared(Plain)
    del bolt.count
    assert not hasattr(reborn(snapshots, Plain), "count")


def test_going_back_removes_what_came_since() -> None:
    bolt, snapshots = prepared(Plain)
    data = snapshots.take()
    bolt.count, bolt.more = 9, [1]
    snapshots.restore(data)
    assert bolt.count == 0
    assert not hasattr(bolt, "more")


def test_an_attribute_that_new_code_adds_keeps_what_prepare_made() -> None:
    class Newer(Plain):
        def prepare(self, conf, context, collector):
            super().prepare(conf, context, collector)
            self.cache = {}

    _, old = prepared(Plain)
    data = old.take()
    bolt, snapshots = prepared(Newer)
    snapshots.restore(data)
    assert bolt.cache == {}
    bolt.cache["a"] = 1
    snapshots.restore(data)
    assert bolt.cache == {}, "also when the batch is tried again"
    bolt.cache["a"] = 1
    assert reborn(snapshots, Newer).cache == {"a": 1}


class Slotted(BaseBasicBolt):
    __slots__ = ("__secret", "count", "unset")

    def prepare(self, conf, context, collector=None):
        self.count, self.__secret, self.plain = 0, 0, 0

    def execute(self, tup, collector):
        self.count += 1
        self.__secret += 2
        self.plain += 3

    def content(self):
        return self.count, self.__secret, self.plain


class SlottedMore(Slotted):
    __slots__ = "more"

    def execute(self, tup, collector):
        super().execute(tup, collector)
        self.more = 4


@pytest.mark.parametrize("cls", [Slotted, SlottedMore])
def test_slots_are_state_too(cls: type) -> None:
    bolt, snapshots = prepared(cls)
    start = snapshots.take()
    bolt.execute(None, None)
    bolt.execute(None, None)
    other = reborn(snapshots, cls)
    assert other.content() == (2, 4, 6)
    assert getattr(other, "more", None) == getattr(bolt, "more", None)
    snapshots.restore(start)
    assert bolt.content() == (0, 0, 0)
    assert not hasattr(bolt, "more")
    del bolt.count
    assert not hasattr(reborn(snapshots, cls), "count")


# --- references to the bolt itself and to what it was given ----------------------------------------------------


class Helper:
    def __init__(self, bolt, collector):
        self.bolt, self.collector, self.seen = bolt, collector, 0


class Selfish(Plain):
    def prepare(self, conf, context, collector):
        super().prepare(conf, context, collector)
        self.handlers = {"count": self.on_count}
        self.helper = Helper(self, collector)
        self.me = self

    def on_count(self):
        self.count += 1


def test_references_to_the_bolt_and_its_collector_lead_to_the_living_ones() -> None:
    bolt, snapshots = prepared(Selfish)
    bolt.handlers["count"]()
    bolt.helper.seen = 5
    assert not snapshots.transient
    other = reborn(snapshots, Selfish)
    other.handlers["count"]()
    assert other.count == 2
    assert other.helper.bolt is other
    assert other.me is other
    assert other.helper.collector is other.collector
    assert other.helper.seen == 5


def test_reading_a_snapshot_elsewhere_shows_references_as_such() -> None:
    _, snapshots = prepared(Selfish)
    state = read_snapshot(snapshots.take())
    assert state["count"] == 0
    assert repr(state["helper"].bolt) == repr(state["handlers"]["count"]) == "<not part of the state>"


def test_another_bolt_of_the_same_class_is_state_like_any_object() -> None:
    bolt, snapshots = prepared(Plain)
    bolt.other = Plain()
    bolt.other.count = 8
    assert reborn(snapshots, Plain).other.count == 8


# --- __getstate__ and __setstate__ -------------------------------------------------------------------------------


class OwnState(Plain):
    def prepare(self, conf, context, collector):
        super().prepare(conf, context, collector)
        self.lock, self.big = threading.Lock(), list(range(100))

    def __getstate__(self):
        return {"n": self.count}

    def __setstate__(self, state):
        self.count = state["n"]


class OnlyGetState(Plain):
    def prepare(self, conf, context, collector):
        super().prepare(conf, context, collector)
        self.lock = threading.Lock()

    def __getstate__(self):
        state = self.__dict__.copy()
        del state["lock"]
        return state


class Replaces(OnlyGetState):
    def __getstate__(self):
        return {"count": self.count}

    def __setstate__(self, state):
        self.__dict__ = dict(state)


class TupleState(Plain):
    def __getstate__(self):
        return (self.count,)

    def __setstate__(self, state):
        (self.count,) = state


@pytest.mark.parametrize("cls", [OwnState, OnlyGetState, Replaces, TupleState])
def test_own_state_methods_are_honoured(cls: type) -> None:
    bolt, snapshots = prepared(cls)
    bolt.count = 4
    other = reborn(snapshots, cls)
    assert other.count == 4
    assert isinstance(other.collector, Collector)
    assert other.collector is not bolt.collector
    if cls in (OwnState, OnlyGetState):
        assert other.lock.acquire(blocking=False)


def test_a_state_that_can_not_be_put_back_is_refused_at_once() -> None:
    class Wrong(Plain):
        def __getstate__(self):
            return [self.count]

    with pytest.raises(TypeError, match=r"__getstate__ of bolt 'b' \(task 3\) returns list, not a dict"):
        prepared(Wrong)


# --- bytes -----------------------------------------------------------------------------------------------------


def test_equal_bytes_while_nothing_changes() -> None:
    bolt, snapshots = prepared(Selfish)
    bolt.words = Counter("abracadabra")
    assert snapshots.take() == snapshots.take()
    bolt.words["a"] += 1
    first = snapshots.take()
    bolt.words["a"] += 1
    assert snapshots.take() != first


def test_an_unknown_version_is_refused_with_a_sentence() -> None:
    bolt, snapshots = prepared(Plain)
    data = pickling.dumps((7, {"count": 1}, []))
    with pytest.raises(CheckpointError, match="a snapshot has format version 7; this release reads 1"):
        snapshots.restore(data)
    with pytest.raises(CheckpointError, match="format version 7"):
        read_snapshot(data)
    assert bolt.count == 0


@pytest.mark.parametrize("own", [False, True], ids=["a class that is gone", "__setstate__ raises"])
def test_a_state_that_the_code_can_not_read_any_more_is_refused_with_a_sentence(
    own: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Holder:
        """Holds an object of a class that comes to be missing."""

        def __init__(self) -> None:
            self.thing = Gone()

    class Picky(Holder):
        """Wants another state today."""

        def __setstate__(self, state: object) -> None:
            raise KeyError("new")

    snapshots = Snapshots(Picky() if own else Holder(), 'bolt "count" (task 3)')
    if not own:
        monkeypatch.delattr(f"{__name__}.Gone")
    with pytest.raises(
        CheckpointError, match=r'the code of bolt "count" \(task 3\) can\'t read its saved state \('
    ) as caught:
        snapshots.restore(snapshots.prepared)
    assert ("KeyError: 'new'" if own else "Gone") in str(caught.value)


class Gone:
    """A class of an earlier edition of the code."""


def test_two_threads_restore_each_their_own() -> None:
    """Spout executors of one host restore at the same time."""
    found: list[bool] = []

    def run() -> None:
        bolt, snapshots = prepared(Selfish)
        for _ in range(50):
            snapshots.restore(snapshots.take())
            found.append(bolt.helper.bolt is bolt and bolt.helper.collector is bolt.collector)

    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [True] * 200
