"""Dividing of batches: exactly the refused rows stand alone, whatever rows they are."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, log2

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storm_on_spark.connectors.sinks.dividing import divided

BATCHES = st.integers(0, 300).flatmap(
    lambda count: st.tuples(st.just(range(count)), st.frozensets(st.integers(0, max(0, count - 1)), max_size=20))
)


class Table:
    """Takes rows in units, and refuses a unit that has a bad row."""

    def __init__(self, bad: frozenset[int], gone_after: int | None = None) -> None:
        self.bad, self.gone_after = bad, gone_after
        self.rows: list[int] = []
        self.tried = 0

    def write(self, part: Sequence[int]) -> Exception | None:
        self.tried += 1
        if self.gone_after is not None and self.tried > self.gone_after:
            raise ConnectionError("gone")
        assert part
        if self.bad.intersection(part):
            return ValueError(f"refused: {len(part)}")
        self.rows += part
        return None


@given(BATCHES)
def test_exactly_the_bad_rows_are_refused_and_the_others_are_written_once_in_their_order(
    batch: tuple[range, frozenset[int]],
) -> None:
    rows, bad = batch
    bad = bad.intersection(rows)
    table = Table(bad)
    found = list(divided(rows, table.write))
    assert [row for part, _ in found for row in part] == list(rows)
    assert [part[0] for part, refusal in found if refusal is not None] == sorted(bad)
    assert all(str(refusal) == "refused: 1" for _, refusal in found if refusal is not None)
    assert table.rows == [row for row in rows if row not in bad]
    assert table.tried <= min(len(rows), 1) + 2 * len(bad) * ceil(log2(max(len(rows), 1)))


@given(BATCHES, st.integers(0, 30))
def test_what_was_written_before_the_system_failed_is_known(batch: tuple[range, frozenset[int]], calls: int) -> None:
    rows, bad = batch
    table = Table(bad.intersection(rows), gone_after=calls)
    done: list[int] = []
    try:
        for part, refusal in divided(rows, table.write):
            done += part if refusal is None else []
    except ConnectionError:
        assert table.tried == calls + 1
    assert done == table.rows


def test_nothing_is_written_of_no_rows() -> None:
    assert list(divided([], lambda part: pytest.fail("called"))) == []
