"""The stable hash: equal values have equal hashes in every process, and hashes are even."""

from __future__ import annotations

import dataclasses
import datetime
import enum
import os
import pickle
import subprocess
import sys
import uuid
import zoneinfo
from collections import Counter, namedtuple
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from storm_on_spark.runtime.values.hashing import mix64, spread, stable_hash


class Color(enum.Enum):
    RED = 1
    ROUGE = 1  # noqa: PIE796
    BLUE = "blue"


class Word(str, enum.Enum):
    STORM = "storm"


class Level(enum.IntEnum):
    HIGH = 3


@dataclasses.dataclass(frozen=True)
class Point:
    x: Any
    y: Any = 0
    note: str = dataclasses.field(default="", compare=False)


numbers = (
    st.integers()
    | st.booleans()
    | st.floats()
    | st.decimals(allow_nan=True).filter(lambda d: not d.is_snan())
    | st.fractions()
    | st.complex_numbers()
)
zones = st.sampled_from(
    [
        datetime.timezone.utc,
        datetime.timezone(datetime.timedelta(hours=5, minutes=30)),
        datetime.timezone(datetime.timedelta(hours=-14)),
        zoneinfo.ZoneInfo("Europe/Berlin"),
    ]
)
values = st.recursive(
    numbers
    | st.text()
    | st.binary()
    | st.none()
    | st.uuids()
    | st.dates()
    | st.datetimes(timezones=st.none() | zones)
    | st.times(timezones=st.none() | zones)
    | st.timedeltas()
    | st.sampled_from([Color.RED, Color.BLUE, Word.STORM, Level.HIGH]),
    lambda inner: (
        st.tuples(inner, inner)
        | st.lists(inner, max_size=3).map(tuple)
        | st.frozensets(inner, max_size=3)
        | st.builds(Point, inner, inner, st.text())
    ),
    max_leaves=5,
) | st.recursive(
    numbers | st.text() | st.none(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner, max_size=3),
    max_leaves=5,
)


@given(values)
def test_every_groupable_value_has_a_hash_that_pickling_keeps(value: Any) -> None:
    found = stable_hash(value)
    assert 0 <= found < 2**64
    assert stable_hash(pickle.loads(pickle.dumps(value))) == found


@given(values, values)
def test_equal_values_have_equal_hashes(one: Any, other: Any) -> None:
    if one == other:
        assert stable_hash(one) == stable_hash(other)


moments = st.integers(-(10**9), 10**10).map(lambda s: datetime.datetime.fromtimestamp(s, datetime.timezone.utc))


@given(moments, zones, zones)
def test_one_moment_in_two_zones_has_one_hash(moment: datetime.datetime, here: Any, there: Any) -> None:
    one = moment.astimezone(here)
    other = one.astimezone(there)
    assert stable_hash(one) == stable_hash(other) == stable_hash(pd.Timestamp(one))


@given(st.integers(0, 23), st.integers(-12, 12))
def test_one_time_of_day_in_two_zones_has_one_hash(hour: int, offset: int) -> None:
    zone = datetime.timezone(datetime.timedelta(hours=offset))
    one, other = datetime.time(hour, 30, tzinfo=zone), datetime.time(12, 30, tzinfo=datetime.timezone.utc)
    assert (one == other) == (stable_hash(one) == stable_hash(other))


EQUAL = [
    (1, 1.0, True, Decimal(1), Fraction(1), 1 + 0j, np.int8(1), np.float32(1), np.True_, np.uint64(1)),
    (0, 0.0, -0.0, False, Decimal("-0.0"), np.False_),
    (0.5, Decimal("0.50"), Fraction(1, 2), np.float16(0.5)),
    (3, Level.HIGH),
    (10**30, Decimal(10) ** 30),
    ("storm", Word.STORM, np.str_("storm")),
    (b"x", np.bytes_(b"x"), bytearray(b"x")),
    (Color.RED, Color.ROUGE),
    (("a", 1), ("a", 1.0), namedtuple("Pair", "a b")("a", 1), ["a", 1]),
    (frozenset({1, "a"}), frozenset({"a", 1.0}), {"a", 1}),
    ({"a": 1, "b": [2]}, {"b": [2.0], "a": True}),
    (Point(1, "a", "this"), Point(1.0, "a", "that")),
    (float("nan"), Decimal("nan"), np.float64("nan"), float("-nan")),
    (float("inf"), Decimal("inf")),
    (datetime.datetime(2020, 1, 2, 3), pd.Timestamp(2020, 1, 2, 3)),  # noqa: DTZ001
    (datetime.datetime.min.replace(tzinfo=datetime.timezone(datetime.timedelta(hours=14))),),
    (datetime.datetime.max.replace(tzinfo=datetime.timezone(datetime.timedelta(hours=-14))),),
]


# Not `repr`: a set's differs from process to process, and tests that run in parallel must have one name.
@pytest.mark.parametrize("group", EQUAL, ids=lambda group: type(group[0]).__name__)
def test_values_that_are_equal_across_types(group: tuple[Any, ...]) -> None:
    assert len({stable_hash(value) for value in group}) == 1


def test_values_that_differ_differ() -> None:
    different = [group[0] for group in EQUAL]
    different += ["", "1", b"1", b"", None, ((),), frozenset([1]), ("",), (None,), "None", "nan", "storm ", "Storm"]
    different += [uuid.UUID(int=1), datetime.date(2020, 1, 1), datetime.time(1), datetime.timedelta(1), Color.BLUE]
    different += [("a", ("b",)), (("a", "b"),), ("b", "a"), Point("b", "a"), 2**64, -1, 2**63]
    assert len({stable_hash(value) for value in different}) == len(different)


SCRIPT = """
import datetime, decimal, enum, uuid
from storm_on_spark.runtime.values.hashing import stable_hash
class Color(enum.Enum):
    RED = 1
print([stable_hash(v) for v in (
    "storm", "żółw", "", b"bytes", 17, -1, 2**70, 0.1, True, None, ("a", 1, None), frozenset("spark"),
    decimal.Decimal("1.1"), uuid.UUID(int=7), datetime.datetime(2020, 5, 17), Color.RED,
)])
"""


def test_the_same_in_every_process() -> None:
    outputs = {
        subprocess.run(
            [sys.executable, "-c", SCRIPT],
            env={**os.environ, "PYTHONHASHSEED": seed},
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        for seed in ("0", "1", "4242")
    }
    assert len(outputs) == 1


PINNED: dict[Any, int] = {
    "storm": 0x13F57E18CDE5A19B,
    17: 0x81AF1551F25D2834,
    0.1: 0x04878CC71AF231A8,
    None: 0x4EF22321AA6446B3,
    b"x": 0x3958357B26ACCDC4,
    ("a", 1): 0x844368CB762B5ED2,
}


def test_the_same_in_every_release() -> None:
    """The state of a task belongs to the keys that these hashes sent to it."""
    assert {value: stable_hash(value) for value in PINNED} == PINNED


class Identity:
    pass


@dataclasses.dataclass(frozen=True, eq=False)
class NoEq:
    x: int


@dataclasses.dataclass
class Mutable:
    x: int


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ([Identity()], "a Identity has no hash"),
        ({"a": np.zeros(2)}, "a ndarray is mutable"),
        (np.zeros(2), "a ndarray is mutable"),
        (Mutable(1), "a Mutable is mutable"),
        (Identity(), "a Identity has no hash that is the same in every process; use text, bytes, numbers, tuples"),
        (NoEq(1), r"a NoEq is equal only to itself \(declared with eq=False\)"),
        (Point, "a type has no hash"),
        (len, "has no hash"),
        (("a", [len]), "has no hash"),
        (Point([Mutable(1)]), "a Mutable is mutable"),
    ],
)
def test_what_has_no_stable_hash_is_refused(value: Any, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        stable_hash(value)


@given(st.sets(st.integers(0, 2**64 - 1), min_size=2))
def test_mix64_and_spread_are_bijections(inputs: set[int]) -> None:
    for spreading in (mix64, spread):
        found = {spreading(value) for value in inputs}
        assert len(found) == len(inputs)
        assert all(0 <= value < 2**64 for value in found)


@given(st.sets(st.integers(-(2**60), 2**60), min_size=2))
def test_integers_whose_hashes_differ_differ(inputs: set[int]) -> None:
    assert len({stable_hash(value) for value in inputs}) == len({hash(value) for value in inputs})


@pytest.mark.parametrize("tasks", [2, 3, 4, 7, 16])
@pytest.mark.parametrize(
    "make",
    [
        int,
        lambda i: -i,
        lambda i: i * 16,
        lambda i: i * 1_000_003,
        lambda i: i << 22,
        lambda i: i << 40,
        lambda i: i << 70,
        lambda i: (i << 32) + i % 5,
        str,
        lambda i: f"user-{i}",
        lambda i: (i % 100, str(i)),
        float,
        lambda i: i / 8,
        lambda i: i * 0.1,
        lambda i: b"%d" % i,
    ],
)
def test_keys_spread_evenly_over_tasks(make: Any, tasks: int) -> None:
    count = 20_000
    shares = Counter(stable_hash(make(i)) % tasks for i in range(count))
    mean = count / tasks
    assert all(abs(shares[task] - mean) < 5 * mean**0.5 for task in range(tasks))
