"""A run as the harness sees it."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from lab.faults.run import Run, last_share, pending
from lab.load.topology import Load


@pytest.mark.parametrize(("commits", "committed"), [([], False), ([3], False), ([3, 4], True), ([3, 5], True)])
def test_a_micro_batch_is_committed_once_it_or_a_later_one_has_a_commit(
    tmp_path: Path, commits: list[int], committed: bool
) -> None:
    run = Run(tmp_path, Load(100, 1.0), random.Random(1))
    (run.checkpoint / "commits").mkdir()
    for batch in commits:
        (run.checkpoint / "commits" / str(batch)).touch()
    assert run.has_committed(4) is committed


@pytest.mark.parametrize(("messages", "seconds"), [(30_000, 30.0), (100_000, 40.0), (30_000, 300.0)])
def test_after_the_last_fault_enough_messages_are_left_to_show_the_recovery(messages: int, seconds: float) -> None:
    load = Load(messages, seconds)
    left = (1 - last_share(load)) * messages
    # One that is pending when the fault comes, one that a kill behind the sink waits for, and one that is new.
    assert left >= 3 * 2 * pending(load)


def test_a_fault_that_lasts_begins_earlier() -> None:
    assert last_share(Load(), 10.0) < last_share(Load())
