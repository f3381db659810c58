"""Folds against a dict, for parts that are in order, and for any others."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from storm_on_spark.runtime.tracking.acker import FAIL, INIT, RESET
from storm_on_spark.runtime.tracking.fold import Fold, fold

U64 = st.integers(0, 2**64 - 1)
FAR = 3 << 60
ROOTS = st.one_of(st.integers(1, 6), st.integers(FAR, FAR + 300), st.integers(1, 2**64 - 1))
ENTRIES = st.lists(st.tuples(ROOTS, U64, st.sampled_from([0, 0, INIT, FAIL, RESET])), max_size=40)
Entry = tuple[int, int, int]


def part_of(entries: list[Entry], *, in_order: bool) -> Fold:
    columns = zip(*sorted(entries, key=lambda entry: entry[0]) if in_order else entries, strict=True)
    roots, xors, marks = columns if entries else ((), (), ())
    return Fold(np.array(roots, np.uint64), np.array(xors, np.uint64), np.array(marks, np.uint8))


def folded(parts: list[Fold]) -> dict[int, tuple[int, int]]:
    before = [[column.copy() for column in part] for part in parts]
    roots, xors, marks = fold(parts)
    assert (roots.dtype, xors.dtype, marks.dtype) == (np.uint64, np.uint64, np.uint8)
    assert roots.tolist() == sorted(set(roots.tolist()))
    for part, columns in zip(parts, before, strict=True):
        assert all(np.array_equal(*pair) for pair in zip(part, columns, strict=True)), "a part was changed"
    return {root: (xor, mark) for root, xor, mark in zip(roots.tolist(), xors.tolist(), marks.tolist(), strict=True)}


@pytest.mark.parametrize("in_order", [True, False])
@given(parts=st.lists(ENTRIES, max_size=4))
def test_fold_is_xor_and_or_by_root(parts: list[list[Entry]], in_order: bool) -> None:
    expected: dict[int, tuple[int, int]] = {}
    for root, xor, mark in [entry for part in parts for entry in part]:
        known = expected.get(root, (0, 0))
        expected[root] = (known[0] ^ xor, known[1] | mark)
    assert folded([part_of(part, in_order=in_order) for part in parts]) == expected


@given(ENTRIES, st.integers(0, 40))
def test_folds_can_be_folded(entries: list[Entry], cut: int) -> None:
    halves = [fold([part_of(half, in_order=False)]) for half in (entries[:cut], entries[cut:])]
    assert folded(halves) == folded([part_of(entries, in_order=False)])
