"""Columns of integers as bytes."""

from __future__ import annotations

import enum
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from storm_on_spark.api.errors import CheckpointError
from storm_on_spark.runtime.codec.integers import PackedInts, pack_ints, unpack_ints
from storm_on_spark.runtime.state.keyvalue.journal import pack_values, unpack_values


class Level(enum.IntEnum):
    LOW = 1


INT64 = st.integers(-(2**63), 2**63 - 1)
INTEGERS = st.one_of(st.integers(-3, 300), st.integers(0, 1 << 33), INT64, st.sampled_from([-(2**63), 2**63 - 1]))
COLUMNS = st.one_of(
    st.lists(INTEGERS, min_size=1, max_size=6).map(lambda values: values * 1024),
    st.tuples(INTEGERS, st.integers(-(2**52), 2**52)).map(
        lambda pair: [n for n in (pair[0] + pair[1] * i for i in range(2000)) if -(2**63) <= n < 2**63]
    ),
    st.tuples(st.integers(-(2**62), 2**62), st.integers(0, 70_000), st.integers(0, 2**32)).map(
        lambda given: [given[0] + given[1] * (i + given[2] % (i + 1)) for i in range(2000)]
    ),
)


@given(COLUMNS)
def test_what_is_unpacked_is_what_was_packed(column: list[int]) -> None:
    packed = pack_ints(column)
    assert (packed is None) == (len(column) < 1024)
    if packed is not None:
        read = unpack_ints(packed, len(column))
        assert read == column
        assert set(map(type, read)) == {int}


@given(
    st.lists(
        st.one_of(INTEGERS, st.sampled_from([True, Level.LOW, np.int64(7), 1.0, 2**63, -(2**70), None, "1"])),
        min_size=1,
        max_size=6,
    )
)
def test_a_column_keeps_its_types(values: list[Any]) -> None:
    column = values * 1024
    read = unpack_values(pack_values(column), len(column))
    assert read == column
    assert list(map(type, read)) == list(map(type, column))


@pytest.mark.parametrize(
    ("column", "size"),
    [
        ([7] * 10_000, 0),
        (list(range(10_000)), 0),
        (list(range(0, -20_000, -2)), 0),
        ([1 << 40, 5 + (1 << 40)] * 5000, 10_000),
        ([number * number % 1000 + 70_000 for number in range(10_000)], 20_000),
        ([1_000_000 + 3 * number + number % 2 for number in range(10_000)], 9999),
        ([-(2**63), 2**63 - 1] * 5000, 80_000),
    ],
)
def test_bytes_are_as_few_as_the_range_or_the_steps_allow(column: list[int], size: int) -> None:
    packed = pack_ints(column)
    assert packed is not None
    assert len(packed[3]) == size
    assert unpack_ints(packed, len(column)) == column


@pytest.mark.parametrize(
    "packed", [(1, 0, 0, b"\0\0"), (2, 0, 0, b"\0\0\0"), (-1, 0, 0, b"\0"), (0, 0, 0, b"\0"), (3, 0, 0, bytes(9))]
)
def test_damage_is_noticed(packed: PackedInts) -> None:
    with pytest.raises(CheckpointError, match="a column of 3 integers in form"):
        unpack_values(packed, 3)
