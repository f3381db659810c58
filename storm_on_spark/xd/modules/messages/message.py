"""Messages between modules: a tuple with a payload and headers."""

from __future__ import annotations

import json
from typing import Any, Final

from storm_on_spark.xd.expressions.evaluating import as_text

FIELDS: Final = ("payload", "headers")
"""The fields of every tuple between modules."""
DEAD_LETTERS: Final = "dead_letters"
"""The stream of messages that a source has given up."""


def written(value: Any) -> str:
    """Returns a value in the form that other systems get: a text unchanged, and a list or a map as JSON.

    Raises:
        ValueError: JSON can't represent it.

    Example:
        >>> written("a"), written({"a": [1, None]}), written(True)
        ('a', '{"a": [1, null]}', 'true')
    """
    if isinstance(value, bytes):
        raise ValueError(f"expected a text, a number, a list or a map, got {len(value)} bytes")
    if not isinstance(value, dict | list):
        return as_text(value)
    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise ValueError(f"expected a value that fits in JSON, got {value!r:.100}: {error}") from error
