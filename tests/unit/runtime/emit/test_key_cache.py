"""What a cache of keys keeps: all, as long as there is room; then whatever comes again."""

from __future__ import annotations

import dataclasses
from decimal import Decimal
from random import Random
from typing import Any

import pytest

from storm_on_spark.runtime.emit import key_cache
from storm_on_spark.runtime.emit.key_cache import KeyCache


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"LIMIT": 1000, "REST": 8000, "LOOK": 64, "LOOK_EVERY": 512}.items():
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


@dataclasses.dataclass(frozen=True)
class Place:
    street: str
    number: int


@pytest.mark.parametrize(
    ("key", "kept"),
    [
        ("x" * 256, True),
        ("x" * 257, False),
        (("x" * 200, 7), True),
        (("x" * 200, "y" * 200), False),
        (("x", ("y", ("z" * 300,))), False),
        ((b"x" * 300, 1), False),
        (frozenset({"x" * 300}), False),
        (tuple(range(300)), False),
        (1 << 100, True),
        (1 << 10_000, False),
        ((1 << 10_000, "x"), False),
        (Place("x", 7), True),
        (Place("x" * 300, 7), False),
        (Decimal("1.5"), True),
        (Decimal("1" * 1000), False),
        (None, True),
        (2.5, True),
    ],
)
def test_large_keys_are_not_kept_whatever_they_are_made_of(key: Any, kept: bool) -> None:
    cache = KeyCache()
    cache.keep(key, "value")
    assert (key in cache) is kept
    for number in range(1000):
        cache[number] = number
    for _ in range(100):
        cache.keep(key, "value")
    assert (key in cache) is kept
