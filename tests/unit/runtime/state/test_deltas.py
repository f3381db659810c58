"""Deltas of snapshots: exact whatever changed, small where little did, and no damage goes unnoticed."""

from __future__ import annotations

import pickle
from collections import Counter
from collections.abc import Callable
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lengths import examples

from storm_on_spark.api.errors import CheckpointError, StormError
from storm_on_spark.runtime.state.deltas import applied, delta_of


def taken(value: Any) -> bytes:
    return pickle.dumps((1, {"value": value}, []), 5)


EDITS = st.lists(
    st.tuples(st.floats(0, 1), st.integers(0, 200), st.binary(max_size=60), st.integers(1, 40), st.integers(1, 300)),
    max_size=8,
)
BASES = st.sampled_from(
    [
        Random(1).randbytes(40_000),
        taken(list(range(20_000))),
        taken(Counter({f"word{n}": n for n in range(5000)})),
        bytes(50_000),
        b"".join(b"%d," % (n % 17) for n in range(20_000)),
    ]
)


@given(BASES, EDITS)
@settings(max_examples=examples(150), deadline=None)
def test_a_delta_is_exact(before: bytes, edits: list[tuple[float, int, bytes, int, int]]) -> None:
    after = before
    for where, gone, put, times, stride in edits:
        for number in range(times):
            at = int(where * len(after)) + number * stride
            after = after[:at] + put + after[at + (gone if number == 0 else len(put)) :]
    delta = delta_of(before, after)
    if delta is not None:
        assert applied(before, delta) == after
        assert len(delta) <= len(after) / 8
    if sum(gone + len(put) * times for _, gone, put, times, _ in edits) < 100:
        assert delta is not None


@given(st.binary(max_size=300), st.binary(max_size=300))
def test_what_is_short_or_resembles_nothing_has_no_delta(one: bytes, other: bytes) -> None:
    assert delta_of(one, other) is None
    long = Random(1).randbytes(50_000)
    assert delta_of(one, long) is delta_of(long, one) is delta_of(long, Random(2).randbytes(50_000)) is None


KEYS = 50_000


def some_more(counts: Counter[int]) -> None:
    for key in Random(5).sample(range(KEYS), KEYS // 20):
        counts[key] += 1


def longer(counts: Counter[int]) -> None:
    for key in range(5, KEYS, KEYS // 20):
        counts[key] = 70_000


def new_keys(counts: Counter[int]) -> None:
    counts.update(range(KEYS, KEYS + 300))


def fewer_keys(counts: Counter[int]) -> None:
    for key in range(20_000, 20_300):
        del counts[key]


@pytest.mark.parametrize(
    ("change", "most"),
    [
        (lambda counts: None, 60),
        (lambda counts: counts.update([3, 4, 5]), 80),
        (some_more, 3 * KEYS // 20 + 100),
        (longer, 8000),
        (new_keys, 6000),
        (fewer_keys, 3000),
    ],
)
def test_a_delta_is_as_small_as_what_changed(change: Callable[[Counter[int]], None], most: int) -> None:
    counts = Counter(dict.fromkeys(range(KEYS), 3))
    before = taken(counts)
    change(counts)
    delta = delta_of(before, taken(counts))
    assert delta is not None
    assert len(delta) < most
    assert pickle.loads(applied(before, delta)) == (1, {"value": counts}, [])


BEFORE = taken(Counter(range(10_000)))
AFTER = taken(Counter([*range(10_000), *range(50, 1000), 7, *range(20_000, 20_100)]))


@given(st.data())
@settings(max_examples=examples(300))
def test_damage_is_noticed(data: st.DataObject) -> None:
    delta = delta_of(BEFORE, AFTER)
    assert delta is not None
    place = data.draw(st.integers(0, len(delta) - 1) | st.integers(0, 80))
    cut = data.draw(st.booleans())
    value = data.draw(st.integers(0, 255))
    damaged = delta[:place] if cut else delta[:place] + bytes([value]) + delta[place + 1 :]
    if damaged != delta:
        with pytest.raises(CheckpointError, match=r"delta|chunk"):
            applied(BEFORE, damaged)


def test_another_snapshot_or_version_is_refused() -> None:
    delta = delta_of(BEFORE, AFTER)
    assert delta is not None
    for before, given_delta, message in [
        (
            BEFORE[1:],
            delta,
            f"a delta for a snapshot of {len(BEFORE)} bytes can't be applied to one of {len(BEFORE) - 1} bytes",
        ),
        (b"?" + BEFORE[1:], delta, "of another snapshot"),
        (BEFORE, b"\x09" + delta[1:], "format version 9; this release reads 1"),
        (BEFORE, b"", "shorter than its header"),
        (BEFORE, delta[:50], "cut short"),
    ]:
        with pytest.raises(StormError, match=message):
            applied(before, given_delta)
