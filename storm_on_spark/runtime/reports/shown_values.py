"""The input of a component when it failed: a short text without secrets."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import pyarrow as pa

from storm_on_spark.api.config.secrets import HIDDEN, is_secret, scrubbed
from storm_on_spark.api.text.printable import one_line
from storm_on_spark.api.tuple import Tuple

MOST_CHARS: Final = 200
_MOST_SEARCHED: Final = 40_000
"""Characters of one value that are searched for secrets: a secret that is cut is not known as one, and none is half as
long."""
_MESSAGE: Final = "payload"
"""The field of a whole message, as in streams by description. Among settings, `payload` is a secret of Storm's."""
_BRACKETS: Final[dict[type, str]] = {list: "[]", tuple: "()", set: "{}", frozenset: "{}", dict: "{}"}


def values_text(values: Iterable[Any], fields: Iterable[str]) -> str:
    """Returns values as `repr` shows them, in one line of at most 200 characters.

    Hides values of fields with the name of a secret, and secrets within other values.

    Args:
        values: of a tuple or row.
        fields: their names.

    Example:
        >>> values_text(["ann", "hush", {"url": "http://ann:hush@db"}], ["user", "password", "conf"])
        "('ann', *****, {'url': 'http://ann:*****@db'})"
    """
    parts = (
        HIDDEN if name != _MESSAGE and is_secret(name) else _text(value, MOST_CHARS)
        for name, value in zip(fields, values, strict=False)
    )
    text = one_line(_joined(parts, "()", MOST_CHARS))
    return text if len(text) <= MOST_CHARS else f"{text[: MOST_CHARS - 3]}..."


def input_text(item: Any) -> str:
    """Returns a bolt's input, a tuple or a record batch, in one line of at most 200 characters.

    Example:
        >>> from storm_on_spark.testing import make_tuple
        >>> input_text(make_tuple(["storm", 3], fields=["word", "count"]))
        "('storm', 3)"
    """
    if isinstance(item, Tuple):
        return values_text(item._values, item.fields)
    rows = f"{item.num_rows:,} row{'' if item.num_rows == 1 else 's'}"
    return one_line(f"a batch of {rows}: {', '.join(item.schema.names)}")[:MOST_CHARS]


def ids_text(ids: Any) -> str:
    """Returns message ids, one or an Arrow array, in one line of at most 200 characters.

    Example:
        >>> ids_text("http://ann:hush@host/7")
        "message id 'http://ann:*****@host/7'"
    """
    if isinstance(ids, pa.Array):
        shown = _text(ids[:MOST_CHARS].to_pylist(), MOST_CHARS)
        text = one_line(f"{len(ids):,} message id{'' if len(ids) == 1 else 's'}: {shown}")
    else:
        text = one_line(f"message id {_text(ids, MOST_CHARS)}")
    return text if len(text) <= MOST_CHARS else f"{text[: MOST_CHARS - 3]}..."


def _text(value: Any, room: int) -> str:
    """Returns the `repr`, cutting long strings and containers to little more than the limit."""
    kind = type(value)
    if kind is str:
        return repr(scrubbed(value[:_MOST_SEARCHED])[:room])
    if kind is bytes:
        value = value[:_MOST_SEARCHED]
    brackets = _BRACKETS.get(kind)
    if brackets is None or not value or room <= 0:
        try:
            return scrubbed(("..." if brackets and value else repr(value))[:_MOST_SEARCHED])
        except Exception:  # whatever the value's own methods raise
            return f"<{kind.__name__}>"
    if kind is dict:
        return _joined((_entry(key, item, room) for key, item in value.items()), brackets, room)
    return _joined((_text(item, room - 2) for item in value), brackets, room)


def _entry(key: Any, value: Any, room: int) -> str:
    name = _text(key, room)
    secret = isinstance(key, str) and is_secret(key[:MOST_CHARS])
    return f"{name}: {HIDDEN if secret else _text(value, room - len(name) - 4)}"


def _joined(parts: Iterable[str], brackets: str, room: int) -> str:
    found, size = [], 0
    for part in parts:
        found.append(part)
        size += len(part) + 2
        if size > room:
            break
    comma = "," if brackets == "()" and len(found) == 1 else ""
    return f"{brackets[0]}{', '.join(found)}{comma}{brackets[1]}"
