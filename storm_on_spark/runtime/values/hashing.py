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
from zlib import crc32

import numpy as np

_NUMBERS = (numbers.Number, Decimal, np.bool_)
"""Types that compare, and so hash, as numbers. numpy registers its other numbers as such."""

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

    Raises:
        TypeError: it isn't known which values equal it, in every process.

    Example:
        >>> stable_hash(1) == stable_hash(1.0) == stable_hash(True)
        True
        >>> stable_hash(("storm", 3)) == stable_hash(["storm", 3.0])
        True
    """
    if isinstance(value, str):
        return mix64(crc32(value.encode("utf-8", "surrogatepass"), TEXT) + len(value))
    if isinstance(value, int):
        return spread(hash(value))
    if isinstance(value, enum.Enum) and not isinstance(value, numbers.Number):
        return _combine(TEXT, (type(value).__qualname__, value.name))
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
        total = 0
        for item in value.items() if isinstance(value, dict) else value:
            total += stable_hash(item)
        return mix64(total ^ len(value))
    if isinstance(value, (datetime.datetime, datetime.time)):
        return stable_hash(_since_zero(value))
    if isinstance(value, (datetime.date, datetime.timedelta, uuid.UUID)):
        return stable_hash(str(value))
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


def _since_zero(value: datetime.datetime | datetime.time) -> str:
    """Returns a time as the time since zero: in UTC if it has an offset from that, for so are such times compared."""
    offset = value.utcoffset()
    days = value.toordinal() if isinstance(value, datetime.datetime) else 0
    since = datetime.timedelta(days, value.second, value.microsecond, 0, value.minute, value.hour)
    return str(since) if offset is None else f"{since - offset} UTC"


def _combine(seed: int, items: Sequence[object]) -> int:
    result = seed
    for item in items:
        result = mix64(result * 31 + stable_hash(item))
    return result
