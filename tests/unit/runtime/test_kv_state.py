from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from storm_on_spark.api.errors import CheckpointError
from storm_on_spark.runtime import kv_state
from storm_on_spark.runtime.kv_state import JournaledState

KEYS = st.one_of(st.integers(0, 20), st.text(max_size=2), st.none())
VALUES = st.one_of(st.none(), st.integers(), st.lists(st.integers(), max_size=3))


class StateAgainstDict(RuleBasedStateMachine):
    """The state against a dict, over batches that commit, fail and move to another worker."""

    def __init__(self) -> None:
        super().__init__()
        self.state = JournaledState()
        self.model: dict[object, object] = {}
        self.committed: dict[object, object] = {}
        self.entries: list[bytes] = []
        self.marks: list[tuple[int, dict[object, object]]] = []

    @rule(key=KEYS, value=VALUES)
    def put(self, key: object, value: object) -> None:
        self.state.put(key, value)
        self.model[key] = value

    @rule(key=KEYS)
    def delete(self, key: object) -> None:
        assert self.state.delete(key) == self.model.pop(key, None)

    @rule()
    def mark(self) -> None:
        self.marks.append((self.state.mark(), dict(self.model)))

    @rule()
    def undo(self) -> None:
        if self.marks:
            mark, self.model = self.marks.pop()
            self.state.undo(mark)

    @rule(compact=st.booleans())
    def commit(self, compact: bool) -> None:
        entry = self.state.take_changes()
        if entry is not None:
            self.entries = self.state.compact() if compact else [*self.entries, entry]
        self.marks.clear()
        self.committed = dict(self.model)

    @rule()
    def fail_and_load(self) -> None:
        self.state.load(self.entries)
        self.marks.clear()
        self.model = dict(self.committed)

    @rule()
    def move_to_another_worker(self) -> None:
        self.state = JournaledState()
        self.fail_and_load()

    @invariant()
    def same(self) -> None:
        assert dict(self.state.items()) == self.model
        assert len(self.state) == len(self.model)
        assert all(key in self.state and self.state.get(key) == value for key, value in self.model.items())


TestStateAgainstDict = StateAgainstDict.TestCase


def test_nothing_is_written_for_a_batch_that_changed_nothing() -> None:
    state = JournaledState()
    state.put("a", 1)
    assert state.take_changes() is not None
    state.get("a")
    assert state.take_changes() is None


def test_an_entry_holds_what_changed_and_not_the_rest() -> None:
    state = JournaledState()
    for key in range(100_000):
        state.put(key, key)
    state.take_changes()
    state.put(7, 8)
    changes = state.take_changes()
    assert changes is not None
    assert len(changes) < 100


def test_compaction_writes_at_most_twice_what_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kv_state, "_LEAST_BYTES", 1000)
    state = JournaledState()
    changed = written = 0
    for batch in range(2000):
        for key in range(batch, batch + 10):
            state.put(key, "value")
        entry = state.take_changes()
        assert entry is not None
        changed += len(entry)
        written += sum(map(len, state.compact())) if state.wants_compaction else len(entry)
    assert written < 3 * changed


def test_an_unknown_version_is_refused() -> None:
    with pytest.raises(CheckpointError, match="version 3"):
        JournaledState().load([b"\x02Cwhatever"])


@given(st.dictionaries(KEYS, VALUES))
def test_compaction_keeps_everything(values: dict[object, object]) -> None:
    state = JournaledState()
    for key, value in values.items():
        state.put(key, value)
    other = JournaledState()
    other.load(state.compact())
    assert dict(other) == values
