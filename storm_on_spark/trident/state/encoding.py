"""Keys and values as text for other systems: JSON, which other programs read, and which can do no harm when it is read.

A value is stored as itself, a transactional one as `[txid, value]`, an opaque one as `[txid, value, value before]`:
the formats of Storm's JSON serializers.
"""

from __future__ import annotations

import json
from typing import Any

from storm_on_spark.api.errors import StormError
from storm_on_spark.trident.state.interfaces import Key
from storm_on_spark.trident.state.values import OpaqueValue, StateType, TransactionalValue


class EncodingError(StormError, ValueError):
    """A key or a value can't be written as JSON, or what is stored is not what the kind of state writes."""


def key_to_text(key: Key) -> str:
    """Returns a key as text.

    Raises:
        EncodingError: a part of it would be another when it is read.

    Example:
        >>> key_to_text(["storm", 1])
        '["storm",1]'
    """
    return _to_json(list(key), "a key")


def value_to_text(kind: StateType, stored: Any) -> str:
    """Returns what is stored for a key as text.

    Raises:
        EncodingError: a part of it would be another when it is read.

    Example:
        >>> value_to_text(StateType.OPAQUE, OpaqueValue(2, 7, 3))
        '[2,7,3]'
        >>> value_to_text(StateType.NON_TRANSACTIONAL, (1, 2))
        Traceback (most recent call last):
        ...
        storm_on_spark.trident.state.encoding.EncodingError: a value must come back from JSON as it was, so no tuples, \
bytes, NaN, or keys that are no strings (given (1, 2))
    """
    if isinstance(stored, OpaqueValue):
        stored = [stored.curr_txid, stored.curr, stored.prev]
    elif isinstance(stored, TransactionalValue):
        stored = [stored.txid, stored.value]
    return _to_json(stored, "a value")


def value_from_text(kind: StateType, text: str) -> Any:
    """Returns what is stored, of the kind.

    Raises:
        EncodingError: another kind of state has written it, or something else has.

    Example:
        >>> value_from_text(StateType.TRANSACTIONAL, "[2,7]")
        TransactionalValue(txid=2, value=7)
    """
    found = _from_json(text, "a value")
    if kind is StateType.NON_TRANSACTIONAL:
        return found
    parts = 3 if kind is StateType.OPAQUE else 2
    if not isinstance(found, list) or len(found) != parts or not (found[0] is None or type(found[0]) is int):
        raise EncodingError(
            f"expected the {parts} parts of {'an' if parts == 3 else 'a'} {kind.value} value in JSON "
            f"(found {text!r:.100}): a state of another kind has written it, or another program"
        )
    return OpaqueValue(*found) if parts == 3 else TransactionalValue(*found)


def _to_json(value: Any, what: str) -> str:
    try:
        text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
        same = _same(json.loads(text), value)
    except (TypeError, ValueError, RecursionError):
        same = False
    if not same:
        raise EncodingError(
            f"{what} must come back from JSON as it was, so no tuples, bytes, NaN, or keys that are no strings "
            f"(given {value!r:.100})"
        )
    return text


def _same(one: Any, other: Any) -> bool:
    """Returns whether two values are equal and of the same types: True equals 1 otherwise."""
    if type(one) is not type(other):
        return False
    if isinstance(one, list):
        return len(one) == len(other) and all(map(_same, one, other))
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(_same(one[key], other[key]) for key in one)
    return bool(one == other)


def _from_json(text: str, what: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise EncodingError(f"expected {what} in JSON (found {text!r:.100})") from error
