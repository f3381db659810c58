"""The file of the windows: over restarts, of two drivers, damaged, and older or newer than the checkpoint."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest
from waiting import eventually

from storm_on_spark.metrics.amounts import EMITTED, Name
from storm_on_spark.runtime.batches.metrics.recorder import Recorder

TASKS = {"split": [3, 4]}
ONE: dict[Name, int] = {(EMITTED, "default", ""): 1}


def emitted(recorder: Recorder, window: str = "600") -> int:
    components = recorder.info([window])[window].components
    return components["split"].emitted if "split" in components else 0


def started(folder: Path, owner: int, committed: int | None = None, **tasks: list[int]) -> Recorder:
    recorder = Recorder(folder)
    recorder.open(owner, committed, tasks or TASKS)
    return recorder


def ran(folder: Path, owner: int, batch: int = 0) -> None:
    """Counts one tuple, in a process of its own, so to speak."""
    recorder = started(folder, owner)
    if recorder.begin_batch(batch):
        recorder.count("split", 3, ONE)
    recorder.close()


def test_windows_go_on_over_restarts_and_one_file_is_left(tmp_path: Path) -> None:
    for owner in (1, 2, 3):
        ran(tmp_path, owner, owner)
    assert emitted(started(tmp_path, 4)) == 3
    assert len(list(tmp_path.iterdir())) == 1


def test_a_driver_that_is_killed_loses_only_what_was_counted_since_the_last_file(tmp_path: Path) -> None:
    killed = started(tmp_path, 1)
    killed.count("split", 3, ONE)
    killed.save_if_due()
    eventually(lambda: any(tmp_path.glob("*.metrics")), "a whole file")
    killed.count("split", 3, ONE)  # and then it is gone, without `close`
    assert emitted(started(tmp_path, 2)) == 1


def test_a_file_is_written_again_only_when_time_has_passed_and_something_was_counted(tmp_path: Path) -> None:
    now = [100.0]
    recorder = Recorder(tmp_path, lambda: now[0])
    recorder.open(1, None, TASKS)

    def written_by(secs: float) -> set[str]:
        now[0] += secs
        recorder.save_if_due()
        eventually(lambda: not recorder._saving, "the end of a write")  # noqa: SLF001
        return {path.name for path in tmp_path.iterdir()}

    assert written_by(10.0) == set()
    recorder.count("split", 3, ONE)
    first = written_by(10.0)
    assert len(first) == 1
    assert written_by(10.0) == first
    recorder.count("split", 3, ONE)
    second = written_by(0.0)
    assert second != first
    recorder.count("split", 3, ONE)
    assert written_by(0.0) == second
    assert written_by(1000.0) != second


def test_a_micro_batch_that_runs_again_counts_once(tmp_path: Path) -> None:
    ran(tmp_path, 1, batch=7)
    ran(tmp_path, 2, batch=7)
    assert emitted(started(tmp_path, 3)) == 1


def test_after_a_checkpoint_that_is_older_than_the_file_what_runs_again_counts(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    ran(tmp_path, 1, batch=900)
    recorder = started(tmp_path, 2, committed=500)
    assert not recorder.begin_batch(500)
    assert recorder.begin_batch(501)
    assert "the checkpoint is older" in caplog.text


def test_a_driver_that_lost_the_topology_changes_nothing(tmp_path: Path) -> None:
    old = started(tmp_path, 1)
    new = started(tmp_path, 2)
    new.count("split", 3, ONE)
    new.close()
    for _ in range(5):
        old.count("split", 3, ONE)
    old.close()
    assert emitted(started(tmp_path, 3)) == 1


@pytest.mark.parametrize("damage", [b"", b"nonsense", None])
def test_a_damaged_file_is_said_once_and_counting_goes_on(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, damage: bytes | None
) -> None:
    ran(tmp_path, 1)
    (file,) = tmp_path.iterdir()
    file.write_bytes(file.read_bytes()[:-1] if damage is None else damage)
    recorder = started(tmp_path, 2)
    recorder.count("split", 3, ONE)
    recorder.close()
    assert [record.levelno for record in caplog.records] == [logging.WARNING]
    assert "can't be read" in caplog.text
    assert emitted(started(tmp_path, 3)) == 1


def test_a_folder_that_can_not_be_written_is_said_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    folder = tmp_path / "metrics"
    folder.write_text("a file in its place")
    recorder = started(folder, 1)
    recorder.count("split", 3, ONE)
    recorder.close()
    assert len(caplog.records) == 1
    assert emitted(recorder) == 1


def test_tasks_that_a_rebalance_took_away_still_count_for_their_component(tmp_path: Path) -> None:
    ran(tmp_path, 1)
    recorder = started(tmp_path, 2, split=[7])
    recorder.count("split", 7, ONE)
    counted = recorder.info(["600"])["600"].components["split"]
    assert {task: part.emitted for task, part in counted.tasks.items()} == {-1: 1, 7: 1}
    assert counted.emitted == 2


def test_what_no_plan_has_any_more_is_gone(tmp_path: Path) -> None:
    ran(tmp_path, 1)
    assert emitted(started(tmp_path, 2, other=[1]), ":all-time") == 0
