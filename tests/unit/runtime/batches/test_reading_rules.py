"""Which native spouts may read on: what counts, and when it counts no more."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from storm_on_spark.runtime.batches.rules.reading import MOST_KEPT, ReadingRules


def test_rows_count_from_the_micro_batch_that_left_them_until_the_task_says_how_many_there_are() -> None:
    rules = ReadingRules({3: 100, 5: None})
    rules.left(0, {3: 99})
    assert not rules.held(active=True)
    rules.left(1, {3: 1})
    assert rules.held(active=True) == {3}
    rules.reported(3, 0, pending=98, again=98)
    assert not rules.held(active=True), "it has not heard of micro-batch 1: 98 and 1"
    rules.reported(3, 0, pending=99, again=0)
    assert rules.held(active=True) == {3}
    rules.reported(3, 1, pending=99, again=0)
    assert not rules.held(active=True)


def test_without_a_limit_only_rows_that_failed_count_for_a_bolt_may_hold_the_others_as_long_as_it_likes() -> None:
    rules = ReadingRules({5: None})
    rules.left(0, {5: MOST_KEPT})
    assert rules.held(active=True) == {5}, "until it is known what became of them"
    rules.reported(5, 0, pending=10 * MOST_KEPT, again=MOST_KEPT - 1)
    assert not rules.held(active=True)
    rules.reported(5, 0, pending=10 * MOST_KEPT, again=MOST_KEPT)
    assert rules.held(active=True) == {5}


def test_a_micro_batch_that_runs_again_leaves_other_rows_and_inactive_spouts_read_nothing() -> None:
    rules = ReadingRules({3: 100})
    rules.left(7, {3: 100})
    rules.left(7, {})
    assert not rules.held(active=True)
    assert rules.held(active=False) == {3}
    rules.reported(4, 7, pending=10**6, again=10**6)
    assert not rules.held(active=True), "a spout of ours"


@given(st.lists(st.integers(0, 50), min_size=1), st.data())
def test_however_late_a_task_says_what_it_has_no_row_is_counted_twice_or_not_at_all(
    rows: list[int], data: st.DataObject
) -> None:
    rules, heard = ReadingRules({3: 1}), -1
    for batch, count in enumerate(rows):
        rules.left(batch, {3: count})
        heard = data.draw(st.integers(heard, batch))
        rules.reported(3, heard, pending=sum(rows[: heard + 1]), again=0)
        assert bool(rules.held(active=True)) == (sum(rows[: batch + 1]) > 0)
        rules.reported(3, heard, pending=0, again=0)
        assert bool(rules.held(active=True)) == (sum(rows[heard + 1 : batch + 1]) > 0)
