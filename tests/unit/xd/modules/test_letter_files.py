"""Dead letters in files: none is lost, and what is executed again is not written again."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storm_on_spark import Config
from storm_on_spark.api import Tuple
from storm_on_spark.testing import BoltTester, make_tuple
from storm_on_spark.xd.modules.messages.letter_files import LetterFiles
from storm_on_spark.xd.modules.messages.message import FIELDS


class Task:
    """A task that starts again with the state that was saved."""

    def __init__(self, folder: Path, most_bytes: int = 1 << 20) -> None:
        conf = {Config.TOPOLOGY_DURABILITY: "machine"}
        self.tester = BoltTester(LetterFiles(folder, most_bytes), [letter("a")], conf=conf)
        self.save()

    def save(self) -> None:
        self.saved = {name: getattr(self.tester.bolt, name) for name in ("_number", "_size")}

    def restart(self) -> None:
        self.tester.restart()
        vars(self.tester.bolt).update(self.saved)

    def write(self, payloads: Sequence[object]) -> None:
        self.tester.execute(*map(letter, payloads))


def letter(payload: object) -> Tuple:
    return make_tuple([payload, {}], list(FIELDS))


def letters(folder: Path) -> list[object]:
    return [json.loads(line)["payload"] for file in sorted(folder.iterdir()) for line in file.read_text().splitlines()]


def test_what_is_executed_again_is_there_once(tmp_path: Path) -> None:
    task = Task(tmp_path)
    task.write(["a"])
    task.save()
    task.write(["b", "c"])
    task.restart()
    task.write(["b", "c", "d"])
    assert letters(tmp_path) == ["a", "b", "c", "d"]
    assert len(list(tmp_path.iterdir())) == 1


def test_what_a_lost_execution_wrote_stays_beside_what_comes_instead(tmp_path: Path) -> None:
    task = Task(tmp_path)
    task.write(["a"])
    task.save()
    task.write(["lost", "b"])
    for _ in range(2):
        task.restart()
        task.write(["b", "c"])
    assert letters(tmp_path) == ["a", "lost", "b", "b", "c"]
    assert len(list(tmp_path.iterdir())) == 2


def test_a_line_that_was_left_half_written_is_completed(tmp_path: Path) -> None:
    task = Task(tmp_path)
    task.write(["a", "b"])
    [file] = tmp_path.iterdir()
    file.write_bytes(file.read_bytes()[:-5])
    task.restart()
    task.write(["a", "b", "c"])
    assert letters(tmp_path) == ["a", "b", "c"]


def test_a_file_that_is_shorter_than_the_state_says_is_left_alone(tmp_path: Path) -> None:
    task = Task(tmp_path)
    task.write(["a", "b"])
    [file] = tmp_path.iterdir()
    file.write_bytes(b"")
    task.write(["c"])
    assert letters(tmp_path) == ["c"]


def test_a_full_file_is_followed_by_another(tmp_path: Path) -> None:
    task = Task(tmp_path, most_bytes=110)
    task.write(["x" * 20, "y" * 20, "z" * 200])
    assert letters(tmp_path) == ["x" * 20, "y" * 20, "z" * 200]
    assert [file.stat().st_size <= 110 for file in sorted(tmp_path.iterdir())] == [True, False]


@pytest.mark.parametrize("value", [float("nan"), {1, 2}, "\ud800"])
def test_a_value_that_is_not_in_json_fails_alone(tmp_path: Path, value: object) -> None:
    task = Task(tmp_path)
    with pytest.raises(ValueError, match=r"can't be written as JSON|surrogates not allowed"):
        task.write([value])
    task.write(["b"])
    assert letters(tmp_path) == ["b"]


@given(st.lists(st.tuples(st.integers(0, 4), st.booleans(), st.booleans()), max_size=12))
def test_no_letter_of_a_saved_state_is_lost_or_doubled(rounds: list[tuple[int, bool, bool]]) -> None:
    """Each round writes some letters; then its state is saved, or it is executed again, the same or another one."""
    with TemporaryDirectory() as folder:
        task, expected, count = Task(Path(folder), most_bytes=200), [], 0
        for size, crash, same in rounds:
            first = list(range(count, count + size))
            count += size
            task.write(first)
            if crash:
                task.restart()
                if not same:
                    first = list(range(count, count + size))
                    count += size
                task.write(first)
            task.save()
            expected += first
        found = letters(Path(folder))
        assert [payload for payload in found if payload in set(expected)] == expected
        assert len(set(found)) == len(found)
