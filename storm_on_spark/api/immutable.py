"""Types whose objects can't be changed in place. This holds for the exact types: a subclass may have attributes."""

from __future__ import annotations

import datetime
import decimal
import fractions
import logging
import re
import uuid
from typing import Final

IMMUTABLE_VALUES: Final[frozenset[type]] = frozenset(
    {
        *(int, float, complex, bool, str, bytes, type(None), decimal.Decimal, fractions.Fraction, uuid.UUID),
        *(datetime.date, datetime.datetime, datetime.time, datetime.timedelta, datetime.timezone),
    }
)
"""Types of values that tuples carry."""

# A logger is mutable, but tuples don't depend on what it holds.
IMMUTABLE_OBJECTS: Final = IMMUTABLE_VALUES | {range, type(...), re.Pattern, logging.Logger}
"""The types above, and types of objects that code refers to but can't keep state in."""
