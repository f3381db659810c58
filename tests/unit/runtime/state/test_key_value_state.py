"""Key-value state: a mapping, whatever is in memory, in pages, undone, evicted, or on another worker."""

from __future__ import annotations

import copy
import dataclasses
import datetime
import itertools
from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from lengths import examples

from storm_on_spark.api import Fields
from storm_on_spark.api.errors import CheckpointError, StormError
from storm_on_spark.api.tuple import Delivery
from storm_on_spark.runtime.state.keyvalue import unmerged
from storm_on_spark.runtime.state.keyvalue.ahead import looking_ahead
from storm_on_spark.runtime.state.keyvalue.pages import Pages
from storm_on_spark.runtime.state.keyvalue.rows import Rows
from storm_on_spark.runtime.state.keyvalue.state import REST_BATCHES, StoredState, Written
from storm_on_spark.runtime.state.keyvalue.store import MemoryStore, Store
from storm_on_spark.testing.simulated.spark import Values

SMALL = 20_000
"""Bytes of memory for about fifty entries."""


@dataclasses.dataclass(frozen=True)
class Point:
    x: int
    y: int


class Odd:
    """Hashable, but by no hash that is the same in every process."""

    def __init__(self, number: int) -> None:
        self.number = number

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Odd) and other.number == self.number

    def __hash__(self) -> int:
        return hash(self.number)


KEYS = st.one_of(
    st.integers(-300, 300),
    st.integers(1 << 70, (1 << 70) + 20),
    st.text(alphabet="ab\0\ud800é", max_size=4),
    st.none(),
    st.booleans(),
    st.floats(-3, 3, width=16, allow_nan=False),
    st.binary(max_size=2),
    st.tuples(st.integers(0, 5), st.text("xy", max_size=1)),
    st.builds(Point, st.integers(0, 3), st.integers(0, 3)),
    st.builds(Odd, st.integers(0, 9)),
    st.dates(datetime.date(2026, 1, 1), datetime.date(2026, 1, 9)),
)
VALUES = st.one_of(
    st.none(),
    st.integers(-(1 << 65), 1 << 65),
    st.text(max_size=8),
    st.floats(allow_nan=False),
    st.lists(st.integers(), max_size=3),
)


class StateAgainstDict(RuleBasedStateMachine):
    """Two workers with one state against a dict, over batches that commit, fail and move."""

    memory = SMALL
    page_bytes = 600

    def __init__(self) -> None:
        super().__init__()
        self.values: Values = {}
        self.entries = 0
        #: What an attempt writes; thrown away if it fails.
        self.attempt = MemoryStore(self.values)
        self.model: dict[Any, Any] = {}
        self.committed: dict[Any, Any] = {}
        self.marks: list[tuple[int, dict[Any, Any]]] = []
        #: Whether a tuple of this attempt has raised.
        self.poisoned = False
        self.workers: list[tuple[StoredState, tuple[int, int] | None]] = []
        #: How often the journal was rewritten, and how many entries it has.
        self.version = (0, 0)
        self.workers = [(self.new(), None), (self.new(), None)]
        self.state = self.workers[0][0]
        self.present = 0
        self.take_over(0)

    def new(self) -> StoredState:
        return StoredState(self.memory, self.page_bytes)

    def take_over(self, worker: int) -> None:
        """Begins an attempt on a worker, as a stage does: with what that has, if it is of a version that is known."""
        state, held = self.workers[worker]
        self.attempt = MemoryStore(copy.deepcopy(self.values))
        state.attach(self.attempt)
        generation, entries = self.version
        if held is None:
            state.load(self.attempt, entries)
        elif held != self.version:
            state.catch_up(self.attempt, held[1] if held[0] == generation else None, entries)
        self.workers[worker] = state, None
        self.present, self.state = worker, state
        self.model = copy.deepcopy(self.committed)
        self.marks.clear()
        self.poisoned = False

    @rule(keys=st.lists(KEYS, min_size=1, max_size=30), value=VALUES)
    def put(self, keys: list[Any], value: Any) -> None:
        for key in keys:
            self.state.put(key, value)
            self.model[key] = value

    @rule(first=st.integers(0, 5000), count=st.integers(1, 200), value=VALUES)
    def put_many(self, first: int, count: int, value: Any) -> None:
        for key in range(first, first + count):
            self.state.put(key, value)
            self.model[key] = value

    @rule(first=st.integers(0, 5000), count=st.integers(1, 100))
    def put_texts(self, first: int, count: int) -> None:
        for number in range(first, first + count):
            self.state.put(f"key {number}", number)
            self.model[f"key {number}"] = number

    @rule(first=st.integers(0, 5000), count=st.integers(1, 300))
    def delete_many(self, first: int, count: int) -> None:
        for key in range(first, first + count):
            assert self.state.delete(key) == self.model.pop(key, None)

    @rule(keys=st.lists(KEYS, min_size=1, max_size=10))
    def delete(self, keys: list[Any]) -> None:
        for key in keys:
            assert self.state.delete(key) == self.model.pop(key, None)

    @rule(keys=st.lists(KEYS, max_size=30))
    def get(self, keys: list[Any]) -> None:
        for key in keys:
            assert self.state.get(key, "none") == self.model.get(key, "none")
            assert (key in self.state) == (key in self.model)

    @rule(keys=st.sets(KEYS, max_size=30), first=st.integers(0, 5000))
    def look_ahead(self, keys: set[Any], first: int) -> None:
        if self.state.looks_ahead:
            self.state.look_ahead(keys | set(range(first, first + 50)))

    @precondition(lambda self: self.poisoned)
    @rule()
    def mark(self) -> None:
        self.marks.append((self.state.mark(), dict(self.model)))

    @rule()
    def undo(self) -> None:
        if self.marks:
            mark, self.model = self.marks.pop()
            self.state.undo(mark)

    @initialize()
    def begin(self) -> None:
        """There is something that can be deleted."""
        self.put_many(0, 10, [])
        self.commit(0)

    @precondition(lambda self: self.poisoned)
    @rule(steps=st.lists(st.tuples(st.sampled_from(["get", "put", "delete"]), st.integers(0, 9)), max_size=12))
    def take_back(self, steps: list[tuple[str, int]]) -> None:
        """A few keys are used again and again before a tuple raises."""
        mark, after = self.state.mark(), dict(self.model)
        for what, key in steps:
            if what == "get":
                assert self.state.get(key, "none") == after.get(key, "none")
            elif what == "put":
                self.state.put(key, [what])
                after[key] = [what]
            else:
                assert self.state.delete(key) == after.pop(key, None)
        self.state.undo(mark)

    @rule(worker=st.integers(0, 1))
    def commit(self, worker: int) -> None:
        """A batch is committed; the next is executed by either worker."""
        written = self.state.commit(self.attempt, self.version[1])
        if written is not None:
            self.version = self.version[0] + written.rewritten, written.entries
        assert self.read_anew(self.attempt) == list(self.state.items()), "workers iterate in different orders"
        self.state.attach(None)
        self.values = self.attempt.values
        self.committed = copy.deepcopy(self.model)
        self.workers[self.present] = self.state, self.version
        self.take_over(worker)

    @rule(worker=st.integers(0, 1), dies=st.booleans())
    def fail(self, worker: int, dies: bool) -> None:
        """What the attempt wrote is thrown away, and what the worker holds, or the worker itself."""
        self.state.commit(self.attempt, self.version[1])
        if dies:
            self.workers[self.present] = self.new(), None
        self.take_over(worker)

    @rule()
    def poison(self) -> None:
        """A tuple raised: the batch is executed again, from its beginning."""
        self.state.start_again(self.attempt, self.version[1])
        self.model = copy.deepcopy(self.committed)
        self.marks.clear()
        self.poisoned = True

    @rule()
    def iterate(self) -> None:
        assert {repr(key): value for key, value in self.state.items()} == {
            repr(key): value for key, value in self.model.items()
        } or dict(self.state.items()) == self.model
        assert dict(self.read_anew(MemoryStore(copy.deepcopy(self.values)))) == self.committed

    def read_anew(self, store: MemoryStore) -> list[tuple[Any, Any]]:
        """Returns the entries as a worker has them that has just started."""
        other = self.new()
        other.attach(store)
        other.load(store, self.version[1])
        return list(other.items())

    @invariant()
    def same_size(self) -> None:
        assert len(self.state) == len(self.model)

    @invariant()
    def what_pages_do_not_say_is_in_memory(self) -> None:
        self.state.check()


class InPages(StateAgainstDict):
    """The same where little fits in memory."""

    @rule(first=st.integers(0, 5000), value=VALUES)
    def another_rewrites_the_journal(self, first: int, value: Any) -> None:
        """What this worker holds in memory is changed by the other, in batches of its own, and comes back to it."""
        mine, keys = self.present, range(first, first + 15)
        self.get(list(keys))
        self.commit(1 - mine)
        rewritten, many = self.version[0], itertools.count()
        while self.version[0] == rewritten:
            self.put(list(keys), [value, next(many)])
            self.put_many(6000, 100, next(many))
            self.commit(1 - mine)
        self.commit(mine)
        self.get(list(keys))


class InMemory(StateAgainstDict):
    """The same where all fits in memory."""

    memory = 1 << 30


TestInPages = InPages.TestCase
TestInPages.settings = settings(max_examples=examples(80), stateful_step_count=40, deadline=None)
TestInMemory = InMemory.TestCase
TestInMemory.settings = settings(max_examples=examples(30), stateful_step_count=30, deadline=None)


class Task:
    """A state and its store."""

    def __init__(self, memory: int = SMALL, page_bytes: int = 600) -> None:
        self.memory, self.page_bytes = memory, page_bytes
        self.store = Counting({})
        self.entries = 0
        self.open()

    def open(self) -> StoredState:
        self.state = StoredState(self.memory, self.page_bytes)
        self.state.attach(self.store)
        self.state.load(self.store, self.entries)
        return self.state

    def commit(self) -> Written | None:
        written = self.state.commit(self.store, self.entries)
        if written is not None:
            self.entries = written.entries
        return written

    def fill(self, count: int) -> None:
        for key in range(count):
            self.state.put(key, key)
            if key % 500 == 499:
                self.commit()
        self.commit()


class Counting(MemoryStore):
    """A store that counts what is read and written."""

    def __init__(self, values: Values) -> None:
        super().__init__(values)
        self.read: list[str] = []
        self.written = 0

    def get(self, name: str, index: int = 0) -> bytes | None:
        self.read.append(name)
        return super().get(name, index)

    def put(self, name: str, value: bytes, index: int = 0) -> None:
        self.written += len(value)
        super().put(name, value, index)


def test_a_large_micro_batch_is_merged_in_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unmerged, "_AT_ONCE", 300)
    steps: list[int] = []
    merge = Pages.merge

    def noted(pages: Pages, rows: Rows, store: Store) -> None:
        steps.append(len(rows))
        merge(pages, rows, store)

    monkeypatch.setattr(Pages, "merge", noted)
    task = Task(memory=200_000, page_bytes=4096)
    for turn in range(3):
        for key in range(5000):
            task.state.put(key, key + turn)
        task.state.delete(turn)
        task.commit()
    assert len(steps) > 20
    assert max(steps) < 700, "a step has more than a part beyond what is handled at a time"
    task.state.check()
    assert dict(task.open().items()) == {key: key + 2 for key in range(5000) if key != 2}


def test_what_is_taken_back_leaves_the_same_order_on_every_worker() -> None:
    task = Task(memory=1 << 20)
    task.fill(2)
    task.state.put(2, [2])
    task.commit()
    state = task.state
    state.start_again(task.store, task.entries)
    mark = state.mark()
    state.delete(0)
    state.put(0, "anew")
    state.put(1, "changed")
    state.delete(1)
    assert state.get(2) == [2]
    state.delete(2)
    state.put(3, "new")
    state.undo(mark)
    assert dict(state.items()) == {0: 0, 1: 1, 2: [2]}
    task.commit()
    order = list(state.items())
    assert list(task.open().items()) == order


def test_workers_in_turn_know_what_the_other_has_merged_and_what_it_has_not() -> None:
    task = Task(memory=200_000, page_bytes=4096)
    task.fill(5000)
    expected = {key: key for key in range(5000)}
    states, held = [task.state, task.open()], [task.entries, task.entries]
    merges = spared = 0
    for turn in range(120):
        # Two micro-batches each: the other catches up with both at once.
        mine = turn // 2 % 2
        state = states[mine]
        state.attach(task.store)
        before = state.usage().unmerged
        state.catch_up(task.store, held[mine], task.entries)
        spared += state.usage().unmerged < before
        # Other entries push out all that may be forgotten.
        state.look_ahead(set(range(10_000 + 700 * turn, 10_700 + 700 * turn)))
        for key in range(turn * 37 % 5000, turn * 37 % 5000 + 40):
            assert state.get(key) == expected.get(key)
            state.put(key, turn)
            expected[key] = turn
        before = state.usage().unmerged
        written = state.commit(task.store, task.entries)
        assert written is not None
        merges += state.usage().unmerged < before
        if written.rewritten:
            states[1 - mine].attach(task.store)
            states[1 - mine].load(task.store, written.entries)
            held[1 - mine] = written.entries
        task.entries = held[mine] = written.entries
    assert merges > 1
    assert spared, "each has merged again what the other had merged"
    for state, entries in zip(states, held, strict=True):
        state.attach(task.store)
        state.catch_up(task.store, entries, task.entries)
        state.look_ahead(set(range(200_000, 200_700)))
        assert dict(state.items()) == expected
        assert all(state.get(key) == value for key, value in expected.items())


def test_a_worker_keeps_what_it_has_in_memory_when_another_has_rewritten_the_journal() -> None:
    task = Task(memory=400_000, page_bytes=4096)
    task.fill(20_000)
    other = task.state
    other.look_ahead(set(range(0, 20_000, 50)))
    # Another changes keys, and has parts merged, until the journal is rewritten.
    task.open()
    expected = {key: key for key in range(20_000)}
    for turn in itertools.count():
        for key in range(turn * 100 % 20_000, turn * 100 % 20_000 + 100):
            task.state.put(key, -turn)
            expected[key] = -turn
        written = task.commit()
        assert written is not None
        if written.rewritten:
            break
    other.attach(task.store)
    other.catch_up(task.store, None, task.entries)
    task.store.read.clear()
    assert [other.get(key) for key in range(0, 20_000, 50)] == [expected[key] for key in range(0, 20_000, 50)]
    assert task.store.read.count("pages") < 20_000 // 50 // 2
    assert dict(other.items()) == expected


def test_nothing_is_written_for_a_batch_that_changed_nothing() -> None:
    task = Task()
    task.state.put("a", 1)
    assert task.commit() is not None
    task.state.get("a")
    assert task.commit() is None


@pytest.mark.parametrize("memory", [SMALL, 1 << 30])
def test_what_is_written_is_what_changed_and_not_the_rest(memory: int) -> None:
    task = Task(memory, page_bytes=4096)
    task.fill(20_000)
    task.store.written = 0
    task.state.put(7, 8)
    task.commit()
    assert task.store.written < 1000


def test_a_start_reads_no_pages() -> None:
    task = Task()
    task.fill(20_000)
    task.store.read.clear()
    task.open()
    assert "pages" not in task.store.read
    assert len(task.state) == 20_000


def test_memory_is_bounded_however_many_keys_there_are() -> None:
    task = Task(memory=200_000)
    task.fill(20_000)
    for key in range(0, 20_000, 3):
        assert task.state.get(key) == key
    task.commit()
    usage = task.state.usage()
    assert 0 < usage.keys < 1000
    assert 0 < usage.page_bytes <= 200_000 * 3 // 8


def test_what_was_wanted_last_and_what_came_last_is_not_forgotten() -> None:
    task = Task(memory=400_000, page_bytes=4096)
    task.fill(20_000)
    most = 4 * task.state.most_ahead
    wanted, came = range(200), range(10_000, 10_000 + most)
    task.state.look_ahead(set(wanted))
    for key in came:
        assert task.state.get(key) == key
    task.state.put(15_000, "changed")
    task.commit()
    kept = task.state.usage().keys
    assert kept < most
    for key in [*wanted, *came[-most // 5 :]]:
        assert task.state.get(key) == key
    assert task.state.usage().keys == kept
    assert task.state.get(came[0]) == came[0]
    assert task.state.usage().keys == kept + 1


def test_a_start_brings_no_more_into_memory_than_fits_however_few_bytes_the_journal_has() -> None:
    task = Task(memory=400_000, page_bytes=4096)
    # Keys in ranges are packed into a few bytes.
    for first in range(0, 40_000, 2000):
        for key in range(first, first + 2000):
            task.state.put(key, 1)
        task.commit()
    task.open()
    assert len(task.state) == 40_000
    assert task.state.usage().keys < 2 * 400_000 / 150 + 2000
    assert all(task.state.get(key) == 1 for key in range(0, 40_000, 97))


def test_a_look_ahead_reads_each_page_once() -> None:
    task = Task(memory=400_000)
    task.fill(20_000)
    pages = sum(name == "pages" for name, _ in task.store.values)
    task.open()
    task.store.read.clear()
    task.state.look_ahead(set(range(0, 20_000, 50)))
    assert 0 < task.store.read.count("pages") <= pages
    task.store.read.clear()
    assert [task.state.get(key) for key in range(0, 20_000, 50)] == list(range(0, 20_000, 50))
    assert not task.store.read


def test_who_changes_many_entries_reads_each_page_once_however_little_memory_there_is() -> None:
    task = Task(memory=50_000)
    task.fill(5_000)
    pages = sum(name == "pages" for name, _ in task.store.values)
    most = task.state.most_ahead
    task.open()
    keys = [*range(4_999, -1, -1), "other"]
    task.store.read.clear()
    seen = []
    for key in task.state.ahead(keys):
        assert task.state.get(key) == (None if key == "other" else key)
        task.state.put(key, 7)
        seen.append(key)
    assert set(seen) == set(keys)
    assert len(seen) == len(keys)
    # A page that is at the end of one part of the keys, and at the beginning of the next, is read for both.
    assert 0 < task.store.read.count("pages") <= pages + len(keys) // most + 1
    task.commit()
    task.open()
    assert set(dict(task.state.items()).values()) == {7}
    assert len(task.state) == len(keys)


def test_entries_in_memory_are_changed_in_the_order_that_was_asked_for() -> None:
    state = StoredState()
    keys = ["storm", 3, ("spark", 1)]
    for key in keys:
        state.put(key, key)
    assert list(state.ahead(reversed(keys))) == keys[::-1]


def test_a_micro_batch_is_looked_ahead_of_in_as_few_parts_as_there_is_memory_for() -> None:
    task = Task(memory=400_000)
    task.fill(20_000)
    most = task.state.most_ahead
    assert 0 < most < 20_000
    asked: list[set[int]] = []
    look, task.state.look_ahead = task.state.look_ahead, asked.append  # type: ignore[method-assign]
    delivery = Delivery("source", "default", 1, Fields("key"))
    grouped = {("source", "default"): (0,)}

    def parts(keys: Iterable[int], size: int) -> list[Any]:
        rows = [(key,) for key in keys]
        return [(delivery, first, rows[first : first + size]) for first in range(0, len(rows), size)]

    # A few keys, over and over: one look, however many tuples there are.
    few = parts(itertools.islice(itertools.cycle(range(10)), 200_000), most // 2)
    assert list(looking_ahead(task.state, grouped, few)) == few
    assert asked == [set(range(10))]
    # Many keys: as many looks as it takes, none with more than there is room for.
    asked.clear()
    many = parts(range(20_000), most // 3)
    assert list(looking_ahead(task.state, grouped, many)) == many
    assert set().union(*asked) == set(range(20_000))
    assert max(map(len, asked)) <= most
    assert len(asked) <= 2 * 20_000 // most + 1
    task.state.look_ahead = look  # type: ignore[method-assign]


def test_a_look_ahead_that_never_helps_is_given_up() -> None:
    task = Task()
    task.fill(5000)
    assert task.state.looks_ahead
    task.state.look_ahead({"other"})
    for key in range(100):
        task.state.get(key)
    task.commit()
    assert not task.state.looks_ahead
    for _ in range(REST_BATCHES):
        task.commit()
    assert task.state.looks_ahead


def test_entries_are_rewritten_a_few_times_as_the_state_grows() -> None:
    task = Task(memory=200_000, page_bytes=4096)
    task.fill(40_000)
    size = sum(len(value) for (name, _), value in task.store.values.items() if name == "pages")
    assert task.store.written < 12 * size


def test_a_deleted_state_leaves_no_pages() -> None:
    task = Task()
    task.fill(5000)
    assert any(name == "pages" for name, _ in task.store.values)
    for key in range(5000):
        assert task.state.delete(key) == key
    task.commit()
    for number in range(2000):  # until all that was deleted has been merged
        task.state.put(f"other {number}", number)
        task.state.delete(f"other {number}")
        if number % 100 == 0:
            task.commit()
    assert len(task.state) == 0
    assert list(task.state.items()) == []


def test_the_order_of_items_does_not_depend_on_the_worker() -> None:
    task = Task()
    task.fill(3000)
    for key in range(0, 3000, 7):
        task.state.delete(key)
    task.commit()
    live = list(task.state.items())
    assert list(task.open().items()) == live


def test_the_order_of_a_small_state_is_that_of_a_dict() -> None:
    task = Task(memory=1 << 30)
    model: dict[str, int] = {}
    for key in "abc":
        task.state.put(key, 1)
        model[key] = 1
    task.commit()
    task.state.delete("a")
    del model["a"]
    for key in "da":
        task.state.put(key, 2)
        model[key] = 2
    task.commit()
    assert list(task.state.items()) == list(model.items())
    assert list(task.open().items()) == list(model.items())


def test_pages_can_only_be_read_while_the_bolt_executes() -> None:
    task = Task()
    task.fill(5000)
    task.open().attach(None)
    with pytest.raises(StormError, match="only be read while its bolt executes"):
        task.state.get(4321)


@pytest.mark.parametrize(
    ("name", "index", "record", "message"),
    [
        ("entries", 0, b"\x02Cwhatever", "has format version 2; this release reads 4"),
        ("header", 0, b"\x09" + bytes(20), "has format version 9; this release reads 1"),
        ("directory", None, b"\x09\0\0\0\0", "has format version 9; this release reads 1"),
        ("directory", None, None, "part .* of the directory of key-value state is missing"),
        ("pages", None, None, "page .* of key-value state has nothing"),
        ("pages", None, b"short", "has 5, not"),
    ],
)
def test_a_record_of_another_version_or_missing_is_refused(
    name: str, index: int | None, record: bytes | None, message: str
) -> None:
    task = Task()
    task.fill(5000)
    for known in [key for key in task.store.values if key[0] == name and index in (None, key[1])]:
        if record is None:
            task.store.remove(*known)
        else:
            task.store.put(known[0], record, known[1])
    with pytest.raises(CheckpointError, match=message):
        for _ in task.open().items():
            pass


@given(st.dictionaries(KEYS, VALUES))
def test_a_journal_written_anew_keeps_everything(values: dict[Any, Any]) -> None:
    task = Task(memory=1 << 20)
    for key, value in values.items():
        task.state.put(key, value)
    # The journal is rewritten when this has been changed so often that most of it is out of date.
    for _ in range(1000):
        task.state.put("often changed", bytes(1000))
        written = task.commit()
        assert written is not None
        if written.rewritten:
            break
    else:
        pytest.fail("the journal was never rewritten")
    found = dict(task.open().items())
    del found["often changed"]
    assert found.keys() == values.keys()
    assert all(repr(found[key]) == repr(values[key]) for key in values)


def test_a_read_that_failed_is_not_committed_whatever_the_bolt_makes_of_it() -> None:
    task = Task()
    task.fill(5000)
    task.open()
    task.store.read.clear()
    missing = next(key for key in range(5000) if task.state.get(key) == key and "pages" in task.store.read)
    # The same again, as it was before that was read.
    task.open()
    task.state.put("there", 0)

    class Broken(Counting):
        def get(self, name: str, index: int = 0) -> bytes | None:
            raise OSError("the socket is closed")

    task.state.attach(Broken({}))
    with pytest.raises(OSError, match="socket is closed"):
        task.state.get(missing)
    task.state.put("there", 1)
    with pytest.raises(OSError, match="socket is closed"):
        task.commit()
