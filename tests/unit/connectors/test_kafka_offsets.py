"""Offsets of a Kafka spout: never committed past one that is not done, and none forgotten."""

from __future__ import annotations

import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storm_on_spark.connectors.kafka.assignment import assigned, task_of
from storm_on_spark.connectors.kafka.offsets import Failure, Offsets, PartitionOffsets


class Model:
    """The same, with sets: slow and obvious."""

    def __init__(self, start: int) -> None:
        self.start = self.position = start
        self.pending: set[int] = set()

    @property
    def low(self) -> int:
        return min(self.pending, default=self.position)


_steps = st.lists(
    st.tuples(st.sampled_from(["emit", "skip", "pass", "ack", "fail", "again", "save"]), st.integers(0, 40))
)


@given(start=st.integers(0, 5), steps=_steps)
def test_nothing_is_committed_past_a_pending_offset_and_none_is_lost(start: int, steps: list[tuple[str, int]]) -> None:
    offsets, model = PartitionOffsets(start), Model(start)
    for step, number in steps:
        if step in ("emit", "skip"):
            # Gaps as of compaction and transactions.
            offset = model.position + number % 3
            model.position = offset + 1
            if step == "emit":
                model.pending.add(offset)
            (offsets.emit if step == "emit" else offsets.skip)(offset)
        elif step == "pass":
            offsets.pass_to(number)
            model.position = max(model.position, number)
        elif step == "ack":
            model.pending.discard(number)
            offsets.ack(number)
        elif step == "fail":
            offsets.fail(number, due_ms=number)
            assert (number in offsets.due(number)) == (number in model.pending)
        elif step == "again":
            for due in offsets.due(100):
                assert due in model.pending
                offsets.emit_again(due)
            assert offsets.due(100) == []
        else:
            offsets = pickle.loads(pickle.dumps(offsets))
        assert offsets.position == model.position
        assert offsets.low == model.low
        assert {at for at in range(200) if offsets.is_pending(at)} == model.pending
        assert set(offsets.failures) <= model.pending
    for offset in sorted(model.pending, key=lambda at: at * 7 % 11):
        offsets.ack(offset)
    assert offsets.low == offsets.position
    assert offsets.failures == {}


def test_an_offset_that_was_emitted_is_not_emitted_as_new() -> None:
    offsets = PartitionOffsets(3)
    offsets.emit(3)
    with pytest.raises(ValueError, match="offset 3 was emitted before: the position is 4"):
        offsets.emit(3)


def test_failures_are_counted_and_keep_their_reason() -> None:
    offsets = PartitionOffsets(0)
    offsets.emit(0)
    offsets.fail(0, 10)
    assert offsets.emit_again(0) == Failure(1, None)
    offsets.fail(0, 20, "too often")
    assert offsets.due(19) == []
    assert offsets.due(20) == [0]
    offsets.emit_again(0)
    offsets.fail(0, 30)
    assert offsets.failures[0] == Failure(3, 30, "too often")


def test_what_was_before_a_new_beginning_is_forgotten() -> None:
    offsets = PartitionOffsets(0)
    offsets.emit(0)
    offsets.emit(1)
    offsets.ack(1)
    offsets.begin_again(50)
    offsets.ack(0)
    assert (offsets.low, offsets.position, offsets.is_pending(0), offsets.turn) == (50, 50, False, 1)


def test_what_is_passed_has_no_tuple_and_what_is_pending_stays_so() -> None:
    offsets = PartitionOffsets(0)
    offsets.emit(0)
    offsets.pass_to(9)
    offsets.pass_to(4)
    assert (offsets.low, offsets.position, offsets.pending) == (0, 9, 1)
    offsets.ack(0)
    assert (offsets.low, offsets.pending) == (9, 0)


def test_a_state_of_a_version_without_turns_is_taken() -> None:
    offsets = PartitionOffsets(3)
    offsets.emit(3)
    _, slots = offsets.__reduce_ex__(2)[2]
    del slots["turn"]
    restored = PartitionOffsets.__new__(PartitionOffsets)
    restored.__setstate__((None, slots))
    assert (restored.low, restored.position, restored.turn, restored.is_pending(3)) == (3, 4, 0, True)


def test_state_does_not_grow_with_what_is_acked_in_order() -> None:
    def size(count: int) -> int:
        offsets = Offsets()
        offsets.begin(("t", 0), 0)
        for offset in range(count):
            offsets.partitions["t", 0].emit(offset)
            offsets.partitions["t", 0].ack(offset)
        return len(pickle.dumps(offsets))

    assert size(10_000) <= size(1_000) + 8


def test_a_partition_is_begun_once() -> None:
    offsets = Offsets()
    assert offsets.begin(("t", 0), 5)
    assert not offsets.begin(("t", 0), 0)
    assert offsets.committable() == {("t", 0): 5}


@given(
    partitions=st.sets(st.tuples(st.sampled_from(["a", "b", "clicks"]), st.integers(0, 20))), tasks=st.integers(1, 5)
)
def test_every_partition_has_one_task(partitions: set[tuple[str, int]], tasks: int) -> None:
    shares = [assigned(partitions, index, tasks) for index in range(tasks)]
    assert sorted(partition for share in shares for partition in share) == sorted(partitions)


def test_partitions_of_a_topic_are_dealt_out_evenly() -> None:
    shares = [task_of(("lines", number), 3) for number in range(9)]
    assert {shares.count(index) for index in range(3)} == {3}
