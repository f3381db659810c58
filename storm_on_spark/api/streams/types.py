"""Types of fields, with their names in Spark SQL."""

from __future__ import annotations

import re
from typing import Any, Final

from storm_on_spark.api.errors import ConfigError

PLAIN_TYPES: Final = (
    "string",
    "binary",
    "boolean",
    "byte",
    "short",
    "int",
    "long",
    "float",
    "double",
    "date",
)
"""Types without arguments, except `timestamp`."""
DECIMAL: Final = re.compile(r"decimal\((\d{1,2}),\s*(\d{1,2})\)")
_MOST_DIGITS: Final = 38


def check_type(name: str, kind: Any) -> None:
    """Checks a type: one of `PLAIN_TYPES`, timestamp, `decimal(P,S)`, or `array<…>` of one of them.

    Args:
        name: the field's name, for the message.
        kind: the type.

    Raises:
        ConfigError: it is none of these.

    Example:
        >>> check_type("price", "decimal(10,2)")
        >>> check_type("words", "array<string>")
    """
    inner = kind[6:-1] if isinstance(kind, str) and kind.startswith("array<") and kind.endswith(">") else kind
    if inner in PLAIN_TYPES or inner == "timestamp":
        return
    decimal = DECIMAL.fullmatch(inner) if isinstance(inner, str) else None
    if decimal is not None and 1 <= int(decimal[1]) <= _MOST_DIGITS and int(decimal[2]) <= int(decimal[1]):
        return
    given = f'"{kind}"' if isinstance(kind, str) else f"{kind!r:.100}"
    allowed = ", ".join([*PLAIN_TYPES, "timestamp", "decimal(P,S)"])
    raise ConfigError(f'column "{name}": {given} is not a type; one is {allowed} or array<TYPE>', key="columns")
