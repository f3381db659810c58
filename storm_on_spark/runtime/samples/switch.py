"""Which share of the tuples of which component is sampled: written by the driver, read by all processes of a run.

With it stand levels of loggers that are changed, for processes on other machines than the driver's.

It is an object in the topology's own folder in the checkpoint, as every process has that, on whatever machine. A
process looks once a second where the folder is a directory, which takes some microseconds, and every five seconds where
it is in a store.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Final

from storm_on_spark.runtime.processes.diagnostics.log_levels import checked_levels
from storm_on_spark.runtime.storage import Folder, as_storage, inside

ALL: Final = "*"
"""Stands for every component that has no share of its own."""
SAMPLING_PCT: Final = 10.0
"""Storm's share where none is said."""
FOLDER: Final = "samples"
RATES: Final = "rates"
_MOST_BYTES: Final = 1 << 20
_VERSION: Final = 1

Rates = Mapping[str, float]
"""Percentages by component, or `ALL`."""


def changed(rates: Rates, component: str, percent: float) -> dict[str, float]:
    """Returns the percentages after one was set; 0 for all components switches everything off.

    Example:
        >>> rates = changed({}, "", 10.0)
        >>> changed(rates, "count", 50.0), changed(rates, "count", 0.0), changed({"count": 5.0}, "", 0.0)
        ({'*': 10.0, 'count': 50.0}, {'*': 10.0, 'count': 0.0}, {})
    """
    if not component:
        return {ALL: percent} if percent else {}
    found = {**rates, component: percent}
    return {name: share for name, share in found.items() if share or ALL in found}


def checked_percent(percent: float) -> float:
    """Returns a percentage.

    Raises:
        ValueError: it is none.

    Example:
        >>> checked_percent(101)
        Traceback (most recent call last):
        ...
        ValueError: the share of tuples to sample is 101 %, and must be a number from 0 to 100
    """
    if not (math.isfinite(percent) and 0 <= percent <= 100):
        raise ValueError(f"the share of tuples to sample is {percent:g} %, and must be a number from 0 to 100")
    return float(percent)


def write_rates(folder: Folder, rates: Rates, levels: Mapping[str, str] | None = None) -> None:
    """Tells all processes of a run.

    Args:
        folder: the topology's own in the checkpoint.
        rates: what is sampled.
        levels: logger -> level, where levels are changed.

    Raises:
        OSError: the folder can't be written.
    """
    text = json.dumps({"version": _VERSION, "rates": dict(rates), "levels": dict(levels or {})})
    as_storage(inside(folder, FOLDER)).put(RATES, text.encode())


def read_switch(folder: Folder) -> tuple[dict[str, float], dict[str, str]]:
    """Returns what was written last, rates and levels; nothing where that is not there or can't be read."""
    try:
        found = json.loads(as_storage(inside(folder, FOLDER)).read(RATES, 0, _MOST_BYTES))
        if found["version"] != _VERSION:
            return {}, {}
        rates = {str(name): checked_percent(share) for name, share in found["rates"].items()}
        return rates, checked_levels(found["levels"])
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return {}, {}
