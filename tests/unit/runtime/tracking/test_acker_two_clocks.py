"""The acker beside a source of Spark's own, whose micro-batches bring no clock of ours."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from storm_on_spark.runtime.tracking.acker import (
    ACKED,
    FAIL,
    FAILED,
    INIT,
    TIMED_OUT,
    UNTIMED,
    AckerState,
    Contribution,
)
from storm_on_spark.runtime.tracking.ids import is_native, native_base, root_base, spout_task_of

T = 1000


def said(root: int, xor: int, marks: int, period: int = 0) -> Contribution:
    return Contribution(np.array([root], np.uint64), np.array([xor], np.uint64), np.array([marks], np.uint8), period)


def again(state: AckerState, clock: int | None) -> AckerState:
    return AckerState.load(state.dump(clock), T)


def test_a_root_without_a_clock_is_acked_and_failed_as_any_other() -> None:
    state = AckerState()
    done = state.apply(
        [said(1, 0, INIT | UNTIMED), said(2, 7, INIT | UNTIMED | FAIL), said(3, 7, INIT | UNTIMED)], None
    )
    assert dict(zip(done.roots.tolist(), done.codes.tolist(), strict=True)) == {1: ACKED, 2: FAILED}
    assert again(state, None).apply([said(3, 7, 0)], None).codes.tolist() == [ACKED]


@given(first=st.integers(0, 50), idle=st.integers(0, 50), alone=st.integers(1, 4))
def test_age_begins_with_the_first_clock_so_no_root_times_out_early(first: int, idle: int, alone: int) -> None:
    """However long ago the last clock was, and however many micro-batches had none."""
    state = AckerState()
    state.apply([said(9, 5, INIT, first)], first)
    state = again(state, first * T)
    for _ in range(alone):
        state.apply([said(1, 5, INIT | UNTIMED)] if state.roots.tolist() == [9] else [], None)
        state = again(state, None)
    now = first + idle
    assert 1 not in state.apply([], now).roots, "its age begins here"
    state = again(state, now * T)
    assert 1 not in state.apply([], now + 1).roots
    state = again(state, (now + 1) * T)
    found = state.apply([], now + 2)
    assert dict(zip(found.roots.tolist(), found.codes.tolist(), strict=True))[1] == TIMED_OUT


def test_with_both_clocks_in_one_micro_batch_ours_counts() -> None:
    state = AckerState()
    state.apply([said(1, 5, INIT | UNTIMED)], 7)
    assert again(state, 7 * T).apply([], 8).roots.tolist() == []
    assert again(state, 7 * T).apply([], 9).codes.tolist() == [TIMED_OUT]


def test_time_stands_still_without_a_clock() -> None:
    state = AckerState()
    state.apply([said(1, 5, INIT, 3)], 3)
    for _ in range(5):
        state = again(state, 3 * T if state.clock == 0 else None)
        assert state.apply([], None).roots.tolist() == []
        assert state.clock == 3 * T


@pytest.mark.parametrize("task", [1, 2047])
def test_the_root_of_a_row_names_its_task_and_is_no_other_rows(task: int) -> None:
    roots = {
        native_base(task, batch, part) + row
        for batch in (0, 1, 2**20 - 1)
        for part in (0, 511)
        for row in (0, 2**23 - 1)
    }
    assert len(roots) == 12
    found = np.array([*roots, root_base(task) + 1], np.uint64)
    assert spout_task_of(found).tolist() == [task] * 13
    assert is_native(found).tolist() == [True] * 12 + [False]
