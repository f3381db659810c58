"""What a cache of keys keeps: all, as long as there is room; then whatever comes again."""

from __future__ import annotations

from random import Random

import pytest

from storm_on_spark.runtime import key_cache
from storm_on_spark.runtime.key_cache import KeyCache


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"LIMIT": 1000, "_REST": 8000, "_LOOK": 64, "_LOOK_EVERY": 512}.items():
        monkeypatch.setattr(key_cache, name, value)


def misses(keys: list[int]) -> int:
    """How many of the keys were not found, each being stored as it is missed."""
    cache, count = KeyCache(), 0
    for key in keys:
        if cache.get(key) != key:
            count += 1
            cache.keep(key, key)
            assert len(cache) <= 1000
    return count


def test_what_has_room_is_found() -> None:
    assert misses(list(range(1000)) * 3) == 1000


def test_keys_that_all_come_as_often_leave_a_full_cache_as_it_is() -> None:
    random = Random(7)
    keys = [random.randrange(10_000) for _ in range(50_000)]
    # A tenth of the keys is in the cache but for the time it takes to fill it.
    assert 0.88 < misses(keys) / len(keys) < 0.93


@pytest.mark.parametrize("times", [3, 10, 100])
def test_keys_that_move_on_are_found(times: int) -> None:
    """Running numbers, each a few times, nearly in order: each is missed once, but while it is looked at."""
    keys = [number + step for number in range(20_000) for step in range(times)]
    assert misses(keys) < len(set(keys)) * 1.7


def test_other_keys_become_frequent_later() -> None:
    early, late = list(range(1000)) * 5, [5000 + number % 900 for number in range(30_000)]
    assert misses(early + late) < 1000 + 8000 + 900 + 1
