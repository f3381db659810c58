"""Which micro-batch is in hand, as the coordinator and the sink see it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from storm_on_spark.api.info import ComponentAtWork, MicroBatchInfo, RepetitionInfo
from storm_on_spark.runtime.batches.metrics.current_batch import BatchAtHand


@pytest.mark.parametrize("others", [False, True], ids=["our source alone", "beside sources of Spark's own"])
def test_from_the_start_to_the_end_of_a_micro_batch(tmp_path: Path, others: bool) -> None:
    now = [10.0]
    at_hand = BatchAtHand(tmp_path, others=others, now=lambda: now[0])
    now[0] += 2
    assert at_hand.info() == MicroBatchInfo(2.0, None, is_first=True)
    at_hand.nothing_new()
    # The others are asked after ours, and may take their time.
    assert (at_hand.info() is not None) == others
    at_hand.nothing_new()
    assert at_hand.info() is None
    at_hand.planned()
    now[0] += 3
    assert at_hand.info() == MicroBatchInfo(3.0, None, is_first=True)
    at_hand.began(4)
    (tmp_path / "at-work").mkdir()
    note = tmp_path / "at-work" / "3"
    note.write_text('["count", 3, 4, 10, 20]')
    now[0] += 5
    assert at_hand.info() == MicroBatchInfo(5.0, 4, is_first=True)
    assert at_hand.at_work(live=False) == (ComponentAtWork("count", 10, 20),)
    at_hand.ended()
    assert at_hand.info() is None
    assert not note.exists()
    at_hand.began(5)
    assert at_hand.info() == MicroBatchInfo(0.0, 5)


def test_between_micro_batches_what_is_executed_now_is_told_in_real_time(tmp_path: Path) -> None:
    at_hand = BatchAtHand(tmp_path, others=False)
    at_hand.nothing_new()
    (tmp_path / "at-work").mkdir()
    note, over, old = (tmp_path / "at-work" / task for task in "345")
    note.write_text('["count", 3, 77, 10, 20]')
    over.write_text('["split", 4, 77, 10, 10]')
    old.write_text('["count", 5, 76, 10, 20]')
    os.utime(old, (0, 0))
    assert at_hand.at_work(live=True) == (ComponentAtWork("count", 10, 20),)
    assert at_hand.at_work(live=False) == ()


def test_what_is_executed_again_is_told_while_a_micro_batch_takes_long_and_somebody_notes_it(tmp_path: Path) -> None:
    now = [10.0]
    at_hand = BatchAtHand(tmp_path, others=False, now=lambda: now[0])
    (tmp_path / "at-work").mkdir()
    note = tmp_path / "at-work" / "repetition"
    note.write_text("[120, 4000]")
    assert at_hand.repetition() is None
    at_hand.began(4)
    assert at_hand.repetition() is None
    now[0] += 1
    assert at_hand.repetition() == RepetitionInfo(120, 4000)
    assert at_hand.at_work(live=False) == ()
    note.write_text("[12")
    assert at_hand.repetition() is None
    note.write_text("[120, 4000]")
    os.utime(note, (0, 0))
    assert at_hand.repetition() is None, "the worker has ended since"
    note.touch()
    assert at_hand.repetition() is not None
    at_hand.ended()
    assert not note.exists()
