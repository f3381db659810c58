"""What the faults of connectors are judged by finds what is wrong in tables."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from lab.connectors.oracles import FOREIGN_KEY, check
from lab.connectors.pipeline import KEYS

MESSAGES = 2 * KEYS + 1


def write(folder: Path, numbers: list[int], counted: list[int]) -> None:
    rows = [(number % KEYS, number) for number in numbers] + [(FOREIGN_KEY, FOREIGN_KEY)]
    write_deltalake(folder / "rows", table(rows, ["key", "number"]))
    counts: dict[int, list[int]] = {}
    for number in counted:
        found = counts.setdefault(number % KEYS, [0, 0])
        found[0] += 1
        found[1] += number
    keys = [(key, *found) for key, found in counts.items()] + [(FOREIGN_KEY,) * 3]
    write_deltalake(folder / "keys", table(keys, ["key", "count", "sum"]))


def table(rows: list[tuple[int, ...]], names: list[str]) -> pa.Table:
    return pa.table([pa.array(column, pa.int64()) for column in zip(*rows, strict=True)], names)


def test_what_is_there_once_is_right_beside_the_rows_of_another_writer(tmp_path: Path) -> None:
    write(tmp_path, list(range(MESSAGES)), list(range(MESSAGES)))
    figures, problems = check(tmp_path, MESSAGES, set(), None)
    assert problems == []
    assert (figures.messages, figures.lost, figures.duplicates, figures.wrong_keys) == (MESSAGES, 0, 0, 0)


@pytest.mark.parametrize(
    ("numbers", "counted", "gone", "problem"),
    [
        (range(1, MESSAGES), range(MESSAGES), set(), "1 numbers are not in the table, such as 0"),
        ([*range(MESSAGES), 7], range(MESSAGES), set(), "1 rows are in the table twice"),
        (range(MESSAGES), [*range(MESSAGES), 7], set(), "2 keys have a wrong count or sum"),
        (range(MESSAGES), range(1, MESSAGES), {0}, "1 numbers are in the table that were deleted, such as 0"),
    ],
)
def test_what_is_wrong_is_found(
    numbers: list[int], counted: list[int], gone: set[int], problem: str, tmp_path: Path
) -> None:
    write(tmp_path, list(numbers), list(counted))
    _, problems = check(tmp_path, MESSAGES, gone, None)
    assert problems == [problem]


def test_a_key_that_is_there_twice_is_wrong(tmp_path: Path) -> None:
    write(tmp_path, list(range(MESSAGES)), list(range(MESSAGES)))
    write_deltalake(tmp_path / "keys", table([(3, 2, 2 * 3 + KEYS)], ["key", "count", "sum"]), mode="append")
    _, problems = check(tmp_path, MESSAGES, set(), None)
    assert problems == ["1 keys have a wrong count or sum"]
