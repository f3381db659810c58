"""The stable hash: equal values have equal hashes in every process, and hashes are even."""

from __future__ import annotations

import dataclasses
import datetime
import enum
import itertools
import math
import os
import pickle
import subprocess
import sys
import uuid
import zoneinfo
from collections import Counter, OrderedDict, defaultdict, namedtuple
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
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
    assert stable_hash(one) == stable_hash(pd.Timestamp(one))
    # Of an hour that is repeated, Python has no moment for equal to one of another zone.
    assert (one == other) == (stable_hash(one) == stable_hash(other)) or one.fold or other.fold


rome = zoneinfo.ZoneInfo("Europe/Rome")


class Days(datetime.timedelta, enum.Enum):
    THREE = 3


class Packed(bytes, enum.Enum):
    A = b"a"


class Pairs(tuple[int, int], enum.Enum):
    ONE = (1, 2)


class Feast(datetime.date, enum.Enum):
    NEW_YEAR = (2024, 1, 1)


class Text(str):
    __slots__ = ()


class Lapse(datetime.timedelta):
    def __str__(self) -> str:
        return "of its own"


def classes_of(value: Any) -> list[Any]:
    """Returns values of other classes that may be equal to one."""
    found = [value]
    if isinstance(value, bool | int) and abs(value) < 2**62:
        found += [float(value), Decimal(value), Fraction(value), complex(value), np.int64(value), np.longdouble(value)]
        found += [np.timedelta64(value, "s"), datetime.timedelta(microseconds=value) if abs(value) < 2**50 else 0]
    elif isinstance(value, float):
        found += [Decimal(value), Fraction(value) if math.isfinite(value) else 0, complex(value), np.float64(value)]
    elif isinstance(value, str):
        found += [Text(value), np.str_(value)]
    elif isinstance(value, bytes):
        found += [bytearray(value), np.bytes_(value)]
    elif isinstance(value, datetime.timedelta):
        found += [Lapse(value.days, value.seconds, value.microseconds), np.timedelta64(value)]
        found += [pd.Timedelta(value)] if abs(value.days) < 100_000 else []
    elif isinstance(value, datetime.datetime):
        found += [value.replace(fold=1), value.date()]
        found += [pd.Timestamp(value)] if 1700 < value.year < 2200 else []
        found += [value.astimezone(rome)] if value.tzinfo and 1 < value.year < 9999 else []
    elif isinstance(value, datetime.time):
        found += [value.replace(fold=1)]
    elif isinstance(value, tuple):
        found += [list(value), namedtuple("Pair", [f"f{n}" for n in range(len(value))])(*value)]
    elif isinstance(value, list):
        found += [tuple(value)]
    elif isinstance(value, set | frozenset):
        found += [set(value), frozenset(value)]
    elif isinstance(value, dict):
        found += [OrderedDict(reversed(value.items())), Counter(value), defaultdict(int, value)]
    return found


def alike(one: Any, other: Any) -> bool:
    """Returns whether two values are equal, and hash alike if they have a hash."""
    try:
        if not isinstance(same := one == other, bool | np.bool_) or not same:
            return False
    except (TypeError, ValueError, OverflowError):
        return False  # numpy compares with what it can make an array of
    try:
        # numpy has a float32 and a duration for equal to numbers that Python hashes otherwise.
        return hash(one) == hash(other)
    except TypeError:
        return True


@given(values | moments.flatmap(lambda moment: zones.map(moment.astimezone)), values)
def test_values_that_are_equal_and_hash_alike_have_one_hash_whatever_their_classes(value: Any, other: Any) -> None:
    given = [*classes_of(value), *classes_of(other)]
    for one, two in itertools.combinations(given, 2):
        if alike(one, two):
            assert stable_hash(one) == stable_hash(two), (one, two)


@given(st.timedeltas(datetime.timedelta(-9999), datetime.timedelta(9999)), st.sampled_from(["s", "us", "ns"]))
def test_a_duration_has_one_hash_as_a_python_value_and_in_an_arrow_column(key: Any, unit: str) -> None:
    key -= datetime.timedelta(microseconds=key.microseconds if unit == "s" else 0)
    (read,) = pa.array([key], pa.duration(unit)).to_pylist()
    assert stable_hash(read) == stable_hash(key)


def test_counts_of_zero_do_not_count() -> None:
    assert Counter(a=1, b=0) == Counter(a=1)
    assert stable_hash(Counter(a=1, b=0)) == stable_hash(Counter(a=1)) == stable_hash({"a": 1.0, "b": False})


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
    (datetime.timedelta(3), pd.Timedelta(3, "D"), Days.THREE, Lapse(3), np.timedelta64(3, "D")),
    (datetime.timedelta(5), np.timedelta64(120, "h")),
    (datetime.timedelta(0, 0, -1), pd.Timedelta(-1, "us"), np.timedelta64(-1, "us")),
    (b"a", Packed.A, np.bytes_(b"a")),
    ((1, 2), Pairs.ONE, [1, 2]),
    (datetime.date(2024, 1, 1), Feast.NEW_YEAR),
    tuple(datetime.datetime(2024, 10, 27, 2, 30, tzinfo=rome, fold=fold) for fold in (0, 1)),
    (None, pd.NaT, np.timedelta64("NaT")),
    (datetime.datetime.min.replace(tzinfo=datetime.timezone(datetime.timedelta(hours=14))),),
    (datetime.datetime.max.replace(tzinfo=datetime.timezone(datetime.timedelta(hours=-14))),),
]


# Not `repr`: a set's differs from process to process, and tests that run in parallel must have one name.
@pytest.mark.parametrize("group", EQUAL, ids=lambda group: type(group[0]).__name__)
def test_values_that_are_equal_across_types(group: tuple[Any, ...]) -> None:
    assert len({stable_hash(value) for value in group}) == 1


def test_values_that_differ_differ() -> None:
    different = [group[0] for group in EQUAL]
    different += ["", "1", b"1", b"", ((),), frozenset([1]), ("",), (None,), "None", "nan", "storm ", "Storm"]
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


class AnyCase(str):
    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return self.lower() == str(other).lower()

    def __hash__(self) -> int:
        return hash(self.lower())


@dataclasses.dataclass(frozen=True)
class Close:
    x: float

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Close) and abs(self.x - other.x) < 1


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (AnyCase("A"), "a AnyCase defines `__eq__`, so it isn't known which values equal it"),
        (("a", Close(1.0)), "a Close defines `__eq__`"),
        (np.timedelta64(1, "M"), "a timedelta64 of the unit M is not a fixed time"),
        (pd.NA, "a NAType has no hash"),
        (np.datetime64("2024-01-01"), "a datetime64 has no hash"),
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
