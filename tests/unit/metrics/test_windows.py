"""Windows against a naive sum over all that was ever counted, with restarts, and their file."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from storm_on_spark.api.info import WINDOWS
from storm_on_spark.metrics.amounts import Key
from storm_on_spark.metrics.history import Saved, dump, load
from storm_on_spark.metrics.windows import BUCKETS, Timeline, Windows

KEYS: list[Key] = [
    ("split", 1, "emitted", "default", ""),
    ("split", 2, "emitted", "default", ""),
    ("split", 2, "execute_bin", 17, ""),
    ('of "quotes"\nand lines', 3, "executed", "lines", "default"),
]
#: Seconds until the next step: within a slot, over some, over a bucket of each window, over a whole day.
STEPS = st.one_of(st.floats(0, 40), st.floats(0, 700), st.floats(0, 12_000), st.floats(0, 200_000))


@dataclass
class Naive:
    """All amounts with their times."""

    counted: list[tuple[float, Key, int]]

    def sums(self, window: str, now: float) -> dict[Key, int]:
        secs = WINDOWS[window]
        begins = float("-inf") if secs is None else (now // (secs // BUCKETS) - BUCKETS) * (secs // BUCKETS)
        found: dict[Key, int] = {}
        for time, key, amount in self.counted:
            if time >= begins:
                found[key] = found.get(key, 0) + amount
        return {key: amount for key, amount in found.items() if amount}


@settings(max_examples=150, deadline=None)
@given(
    st.floats(0, 2e9),
    st.lists(
        st.tuples(STEPS, st.dictionaries(st.sampled_from(KEYS), st.integers(-5, 1000), max_size=4), st.booleans()),
        max_size=25,
    ),
)
def test_windows_are_naive_sums_also_over_restarts(
    began: float, steps: list[tuple[float, dict[Key, int], bool]]
) -> None:
    windows, naive, now = Windows(began), Naive([]), began
    for secs, amounts, restarts in steps:
        now += secs
        windows.add(amounts, now)
        naive.counted += [(now, key, amount) for key, amount in amounts.items()]
        if restarts:
            windows = load(dump(Saved(windows, 3))).windows
        for window in WINDOWS:
            found = {key: amount for key, amount in windows.sums(window, now).items() if amount}
            assert found == naive.sums(window, now)


@given(st.floats(0, 2e9), st.floats(0, 200_000))
def test_a_window_covers_what_its_name_says_and_a_twentieth_more_at_most(began: float, secs: float) -> None:
    windows = Windows(began)
    for window, length in WINDOWS.items():
        covered = windows.covered(window, began + secs)
        assert covered <= secs + 1e-3
        if length is not None:
            assert min(secs, length) - 1e-3 <= covered <= length * (1 + 1 / BUCKETS)


def test_what_comes_too_late_counts_as_of_now() -> None:
    windows = Windows(1000.0)
    windows.add({KEYS[0]: 1}, 5000.0)
    windows.add({KEYS[0]: 1}, 1000.0)
    assert windows.sums("600", 5000.0) == {KEYS[0]: 2}


@pytest.mark.parametrize("wall", [500.0, 1000.0, 9000.0])
def test_a_clock_that_was_set_back_neither_stops_the_timeline_nor_turns_it_back(wall: float) -> None:
    seconds = iter([0.0, 10.0])
    assert Timeline(wall, lambda: next(seconds), before=1000.0).now() == max(wall, 1000.0) + 10


def test_a_damaged_file_is_refused() -> None:
    windows = Windows(0.0)
    windows.add({KEYS[0]: 7}, 100.0)
    data = dump(Saved(windows))
    for wrong in (
        b"",
        b"\0" * 100,
        data[:-3],
        data[: len(data) // 2],
        data[:-1] + b"x",
        b"storm-metrics []\n",
        data[:14],
    ):
        with pytest.raises(ValueError, match="it is"):
            load(wrong)
    with pytest.raises(ValueError, match="version 2"):
        load(data.replace(b'"version": 1', b'"version": 2'))


def test_the_memory_of_windows_is_bounded() -> None:
    windows = Windows(0.0)
    for slot in range(10_000):
        windows.add(dict.fromkeys(KEYS, 1), 30.0 * slot)
    assert sum(len(ring.closed) for ring in windows.rings.values()) <= 3 * (BUCKETS + 1)
    assert len(dump(Saved(windows))) < 20_000
