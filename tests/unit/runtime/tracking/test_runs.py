"""Outcomes as runs: nothing is lost or added, whatever ended, and what is in order is short."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from storm_on_spark.api.errors import CheckpointError
from storm_on_spark.runtime.codec.packing import pack_runs, unpack_runs
from storm_on_spark.runtime.tracking.acker import ACKED, FAILED
from storm_on_spark.runtime.tracking.ids import native_base, root_base
from storm_on_spark.runtime.tracking.runs import NONE, Runs

BASES = st.sampled_from([root_base(1), root_base(2), root_base(5), native_base(3, 7, 1)])
ROOTS = st.lists(st.tuples(BASES, st.integers(1, 40)), unique=True).map(
    lambda places: sorted(base + number for base, number in places)
)


def runs_of(roots: list[int], codes: dict[int, int]) -> Runs:
    return Runs.of(np.array(roots, np.uint64), np.array([codes[root] for root in roots], np.uint8))


@given(ROOTS, st.integers(1, 5), st.data())
def test_each_spout_task_is_told_of_its_messages_and_no_others(roots: list[int], ackers: int, data: Any) -> None:
    codes = {root: data.draw(st.sampled_from([ACKED, ACKED, ACKED, FAILED])) for root in roots}
    parts = [runs_of([root for root in roots if root % ackers == acker], codes) for acker in range(ackers)]
    for part in parts:
        total = int(part.counts.sum())
        there, rest = unpack_runs(memoryview(pack_runs(part)), len(part.firsts), total)
        assert bytes(rest) == b""
        assert [column.tolist() for column in there] == [column.tolist() for column in part]
    found: dict[int, int] = {}
    for task, ended in Runs.joined(parts).by_task():
        told = ended.roots().tolist()
        assert set(told) == {root for root in roots if task_of(root) == task}
        assert len(told) == len(set(told))
        found |= zip(told, ended.each_code().tolist(), strict=True)
    assert found == codes


def task_of(root: int) -> int:
    return next(task for task, base in BASE_OF.items() if base <= root < base + 100)


BASE_OF = {1: root_base(1), 2: root_base(2), 5: root_base(5), 3: native_base(3, 7, 1)}


@pytest.mark.parametrize("messages", [1, 2, 3, 7, 1000, 100_000])
@pytest.mark.parametrize("ackers", [1, 2, 7, 16])
def test_what_ended_in_order_is_one_run_for_each_task_however_many_messages_it_has(messages: int, ackers: int) -> None:
    roots = np.concatenate([root_base(task) + np.arange(9, 9 + messages, dtype=np.uint64) for task in (3, 4)])
    shares = [roots[roots % np.uint64(ackers) == acker] for acker in range(ackers)]
    parts = [Runs.of(share, np.zeros(len(share), np.uint8)) for share in shares]
    assert all(len(part.firsts) <= 2 for part in parts)
    told = dict(Runs.joined(parts).by_task())
    assert {task: (ended.firsts.tolist(), ended.counts.tolist()) for task, ended in told.items()} == {
        task: ([root_base(task) + 9], [messages]) for task in (3, 4)
    }


def test_a_message_that_is_still_open_is_not_taken_for_one_that_ended() -> None:
    # As many as there would be from the first to the last one, but one twice and one not at all.
    one, two = (Runs.of(np.array(roots, np.uint64), np.zeros(2, np.uint8)) for roots in ([1, 3], [1, 4]))
    ((_, ended),) = Runs.joined([one, two]).by_task()
    assert set(ended.roots().tolist()) == {1, 3, 4}


def test_nothing_is_nothing() -> None:
    assert list(Runs.joined([]).by_task()) == []
    assert NONE.roots().tolist() == NONE.each_code().tolist() == []


def test_a_damaged_count_takes_no_memory() -> None:
    runs = Runs.of(np.arange(1, 100, dtype=np.uint64), np.zeros(99, np.uint8))
    for counts in ([1 << 60], [0], [98]):
        packed = pack_runs(runs._replace(counts=np.array(counts, np.uint64)))
        with pytest.raises(CheckpointError, match=f"runs in a chunk have {counts[0]} roots, not 99"):
            unpack_runs(memoryview(packed), 1, 99)
