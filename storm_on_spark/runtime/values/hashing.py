"""A hash of values that is the same in every process and every run.

Fields grouping needs it: equal values must reach the same task, also from another worker, after a restart or on
another machine. Python's own `hash` of text is seeded per process, so it can't serve; for numbers it can, since it is
unseeded and equal for numbers that compare equal (`1 == 1.0 == True == Decimal(1)`).

The text hash is CRC-32 followed by the finalizer of SplitMix64 (Steele, Lea, Flood 2014), which spreads its 32 bits
over 64; what matters here is evenness modulo a small number of tasks, not resistance to collisions. A number takes
Python's `hash` and one multiplication by 2**64 over the golden ratio (Knuth 6.4), a third of the time, for where
there are very many keys they are mostly numbers.
"""

from __future__ import annotations

import dataclasses
import datetime
import enum
import numbers
import uuid
from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from types import FunctionType, NoneType
from typing import Any, Final
from zlib import crc32

import numpy as np

_NUMBERS = (numbers.Number, Decimal, np.bool_)
"""Types that compare, and so hash, as numbers. numpy registers its other numbers as such."""

_PLAIN: Final = frozenset(
    {
        *(str, bytes, bytearray, int, float, complex, bool, NoneType, Decimal, Fraction),
        *(tuple, list, set, frozenset, dict, datetime.date, datetime.time, datetime.timedelta, uuid.UUID),
    }
)
"""Classes whose values are hashed as they are. Values of others may be equal to one of these."""
_LIBRARY: Final = frozenset({"collections", "enum", "fractions", "numbers", "uuid", "_pydecimal", "_pydatetime"})
"""Modules of Python whose classes have an `__eq__` that is written in Python."""
_EXACT_UNITS: Final = frozenset({"W", "D", "h", "m", "s", "ms", "us", "ns", "ps", "fs", "as"})
"""Units of numpy's durations that are a fixed time."""

MASK = (1 << 64) - 1
GOLDEN = 0x9E3779B97F4A7C15
TEXT = 0x74657874
"""The initial value of the hash of text."""
_NONE, _NAN, _BYTES = 0x6E6F6E65, 0x6E616E, 0x62797465


def mix64(value: int) -> int:
    """Returns the SplitMix64 finalizer of `value` modulo 2**64: a bijection on 64-bit integers."""
    value &= MASK
    value = ((value ^ (value >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    value = ((value ^ (value >> 27)) * 0x94D049BB133111EB) & MASK
    return value ^ (value >> 31)


def spread(value: int) -> int:
    """Returns `value` modulo 2**64, spread: a bijection on 64-bit integers that is even modulo any number of tasks.

    A cheaper `mix64` for numbers. The halves are folded because a multiplication carries upwards only.
    """
    value &= MASK
    value = ((value ^ (value >> 32)) * GOLDEN) & MASK
    return value ^ (value >> 32)


def stable_hash(value: object) -> int:
    """Returns a hash in `range(2**64)`, equal for equal values in every process.

    Numbers, text, bytes, `None`, dates and times, UUIDs, enum members, and tuples, lists, sets, maps and frozen
    dataclasses of such values have one. A list has that of a tuple, as what went through JSON is a list.

    Values that Python has for equal, with equal hashes, have one hash here too, whatever their classes. A moment in an
    hour that is repeated has that of the first pass, as in Python; `NaT` that of `None`, which it is in Arrow.

    Raises:
        TypeError: it isn't known which values equal it, in every process.

    Example:
        >>> stable_hash(1) == stable_hash(1.0) == stable_hash(True)
        True
        >>> stable_hash(("storm", 3)) == stable_hash(["storm", 3.0])
        True
    """
    if type(value) not in _PLAIN:
        value = _as_plain(value)
    if isinstance(value, str):
        return mix64(crc32(value.encode("utf-8", "surrogatepass"), TEXT) + len(value))
    if isinstance(value, int):
        return spread(hash(value))
    if isinstance(value, _NUMBERS):
        # nan is unequal to itself and, since Python 3.10, hashes by identity: all nan count as one value here.
        is_nan = value.is_nan() if isinstance(value, Decimal) else value != value
        return spread(_NAN if is_nan else hash(value))
    if value is None:
        return mix64(_NONE)
    if isinstance(value, (bytes, bytearray)):
        return mix64(crc32(value, _BYTES) + len(value))
    if isinstance(value, (tuple, list)):
        return _combine(len(value), value)
    if isinstance(value, (frozenset, set, dict)):
        # In any order: equal sets and maps may list what they hold differently.
        items = [item for item in value.items() if not _is_zero(item[1])] if isinstance(value, dict) else value
        total = 0
        for item in items:
            total += stable_hash(item)
        return mix64(total ^ len(items))
    if isinstance(value, (datetime.datetime, datetime.time)):
        return stable_hash(_since_zero(value))
    # Not by `str`, which a subclass may have of its own.
    if isinstance(value, datetime.date):
        return stable_hash(datetime.date.isoformat(value))
    if isinstance(value, datetime.timedelta):
        return stable_hash(datetime.timedelta.__str__(value))
    if isinstance(value, uuid.UUID):
        return stable_hash(uuid.UUID.__str__(value))
    if isinstance(value, enum.Enum):
        # One without a data type that is known: it is equal to itself alone.
        return _combine(TEXT, (type(value).__qualname__, value.name))
    if dataclasses.is_dataclass(value) and not isinstance(value, type) and type(value).__hash__ is not None:
        if type(value).__eq__ is object.__eq__:
            raise TypeError(f"a {type(value).__qualname__} is equal only to itself (declared with eq=False)")
        fields = tuple(getattr(value, f.name) for f in dataclasses.fields(value) if f.compare)
        return _combine(crc32(type(value).__qualname__.encode()), fields)
    if type(value).__hash__ is None:
        raise TypeError(f"a {type(value).__qualname__} is mutable, so it has no stable hash")
    raise TypeError(
        f"a {type(value).__qualname__} has no hash that is the same in every process; "
        "use text, bytes, numbers, tuples, lists or a frozen dataclass"
    )


def _as_plain(value: object) -> object:
    """Returns the value that is hashed in the place of one of another class.

    Raises:
        TypeError: its class says itself what is equal to it.
    """
    kind: Any = type(value)
    if _has_own_equality(kind):
        raise TypeError(f"a {kind.__qualname__} defines `__eq__`, so it isn't known which values equal it")
    if isinstance(value, np.timedelta64):
        return _duration(value)
    if isinstance(value, datetime.datetime) and value != value:  # NaT alone is so
        return None
    if isinstance(value, datetime.timedelta):
        return datetime.timedelta(value.days, value.seconds, value.microseconds)
    return value


@lru_cache(4096)
def _has_own_equality(kind: Any) -> bool:
    """Returns whether a class, or one that it inherits from, has an `__eq__` that users wrote."""
    equality = kind.__eq__
    if not isinstance(equality, FunctionType) or equality.__module__ in _LIBRARY:
        return False
    # That of a dataclass is made from text: it compares fields.
    return not (dataclasses.is_dataclass(kind) and equality.__code__.co_filename == "<string>")


def _duration(value: np.timedelta64) -> datetime.timedelta | None:
    """Returns the duration that numpy's is equal to; None for none.

    Raises:
        TypeError: its unit is not a fixed time.
    """
    if np.isnat(value):
        return None
    unit = np.datetime_data(value.dtype)[0]
    if unit not in _EXACT_UNITS:
        raise TypeError(f"a timedelta64 of the unit {unit} is not a fixed time")
    return datetime.timedelta(microseconds=int(value // np.timedelta64(1, "us")))


def _is_zero(value: object) -> bool:
    """Returns whether a map's value doesn't count: a `Counter` is equal to one that lacks a key whose count is zero."""
    return isinstance(value, _NUMBERS) and not isinstance(value, np.timedelta64) and bool(value == 0)


def _since_zero(value: datetime.datetime | datetime.time) -> str:
    """Returns a time as the time since zero: in UTC if it has an offset from that, for so are such times compared."""
    if value.fold:
        # Python compares times of one zone without it, and hashes them without it.
        value = value.replace(fold=0)
    offset = value.utcoffset()
    days = value.toordinal() if isinstance(value, datetime.datetime) else 0
    since = datetime.timedelta(days, value.second, value.microsecond, 0, value.minute, value.hour)
    return str(since) if offset is None else f"{since - offset} UTC"


def _combine(seed: int, items: Sequence[object]) -> int:
    result = seed
    for item in items:
        result = mix64(result * 31 + stable_hash(item))
    return result
