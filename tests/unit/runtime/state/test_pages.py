"""Pages of key-value state: what was encoded is found again, in few bytes."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from storm_on_spark.api.errors import CheckpointError
from storm_on_spark.runtime.state.keyvalue.hashes import hash_of, hashes_of, hashes_of_ints, small_ints
from storm_on_spark.runtime.state.keyvalue.page import MISSING, Page, encode
from storm_on_spark.runtime.state.keyvalue.rows import GONE, Rows, merged

INTS = st.one_of(
    st.integers(-300, 300),
    st.integers(-(1 << 33), 1 << 33),
    st.integers(-(1 << 60), 1 << 60),
    st.integers(-(1 << 63), (1 << 63) - 1),
    st.sampled_from([sign * (1 << bits) + by for sign in (1, -1) for bits in (7, 15, 31, 32, 60) for by in (-1, 0, 1)]),
)
VALUES = st.one_of(INTS, st.just(GONE), st.floats(allow_nan=False), st.text("ab", max_size=2))

# Two integers of one hash, found by trying random ones.
ALIKE = 5_991_235_327_573, 28_923_262_995_517


def page_of(entries: dict[Any, Any]) -> Page:
    return Page(encode(Rows.of(list(entries), list(entries.values()))))


@given(st.dictionaries(INTS, INTS, min_size=1), st.lists(INTS))
@example(dict.fromkeys(range(200), 1) | {7: 1 << 40, 8: -128, 9: -1}, [])
def test_integers_are_found_one_by_one_and_all_at_once(entries: dict[int, int], others: list[int]) -> None:
    page = page_of(entries)
    assert dict(page.rows().items()) == entries
    assert page.hashes().tolist() == sorted(map(hash_of, entries))
    wanted = list(entries.keys() | set(others))
    for key in wanted:
        assert page.find(key, hash_of(key)) == entries.get(key, MISSING)
    found: dict[Any, Any] = {}
    missing = page.find_all(wanted, hashes_of(wanted), found)
    assert found == entries
    assert {wanted[index] for index in missing} == set(wanted) - set(entries)


@given(st.dictionaries(st.one_of(INTS, st.text("ab", max_size=3)), VALUES, min_size=1))
def test_any_page_says_what_it_was_made_of(entries: dict[Any, Any]) -> None:
    assert dict(page_of(entries).rows().items()) == entries


@given(st.dictionaries(INTS, INTS, min_size=1), st.sets(INTS, min_size=1))
def test_integers_as_an_array_are_found_as_one_by_one(entries: dict[int, int], wanted: set[int]) -> None:
    keys = list(wanted)
    numbers = small_ints(keys)
    if numbers is None:
        assert any(abs(key) >= 1 << 60 for key in keys)
        return
    ints = page_of(entries).find_ints(numbers, hashes_of_ints(numbers))
    if ints is None:  # two keys of one hash
        hashes = list(map(hash_of, entries.keys() | wanted))
        assert len(set(hashes)) < len(hashes)
        return
    hits, values, others = ints
    assert dict(zip(numbers[hits].tolist(), values.tolist(), strict=True)) == {
        key: entries[key] for key in wanted & entries.keys()
    }
    assert set(numbers[others].tolist()) == wanted - entries.keys()


def test_small_counts_take_five_bytes_each_though_some_are_large() -> None:
    keys = np.random.default_rng(1).permutation(10_000_000)[:100_000].tolist()
    counts = [1 << 40 if number % 1000 == 0 else 3 for number in range(len(keys))]
    data = encode(Rows.of(keys, counts))
    assert len(data) < 5.2 * len(keys)


def test_of_keys_with_one_hash_each_keeps_its_newest_value() -> None:
    first, second = ALIKE
    assert first != second
    assert hash_of(first) == hash_of(second)
    newest_first = [{second: 1}, {first: 2, 5: 2}, {first: 3, second: 3}, {5: 4, second: 4}]
    rows = merged([Rows.of(list(each), list(each.values())) for each in newest_first], whole=True)
    assert dict(rows.items()) == {second: 1, first: 2, 5: 2}
    page = Page(encode(rows))
    assert (page.find(first, hash_of(first)), page.find(second, hash_of(second))) == (2, 1)
    found: dict[Any, Any] = {}
    assert page.find_all([first, second, 6], hashes_of([first, second, 6]), found) == [2]
    assert found == {first: 2, second: 1}


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"\x01" + bytes(7), "has format version 1; this release reads 2"),
        (b"\x03" + bytes(7), "has format version 3; this release reads 2"),
        (struct.pack("<BBBBI", 2, 3, 1, 2, 1), "no hashes for keys of kind 3"),
        (struct.pack("<BBBBIQQ", 2, 1, 1, 2, 1, 3, 0), "integers of 3 bytes"),
        (struct.pack("<BBBBIQQ", 2, 1, 1, 2, 9, 8, 0), "has 24 bytes, not 96"),
    ],
)
def test_a_page_that_cannot_be_read_is_refused(data: bytes, message: str) -> None:
    with pytest.raises(CheckpointError, match=message):
        Page(data)
