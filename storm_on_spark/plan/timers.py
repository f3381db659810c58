"""The timers that bolts declare, with the configuration that each sees."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from storm_on_spark.api.building.checks import label
from storm_on_spark.api.config import effective_conf
from storm_on_spark.api.errors import InvalidTopologyError, StormError
from storm_on_spark.api.text.wording import kind_of
from storm_on_spark.api.topology import ComponentSpec

MOST_TIMERS: Final = 16
"""Of a component: each is a bit in what a task is told."""

Timers = tuple[tuple[str, int], ...]
"""Names and periods in ms."""


def timers_of(spec: ComponentSpec, conf: Mapping[str, object]) -> Timers:
    """Returns the timers of a component.

    Args:
        spec: the component.
        conf: the topology's configuration.

    Raises:
        InvalidTopologyError: `declare_timers` raised, or returned something else than names and periods.
    """
    declare = getattr(spec.component, "declare_timers", None)
    if spec.is_spout or declare is None:
        return ()
    where = f"{label(spec.id, is_spout=False)}: "
    try:
        found = declare(effective_conf(conf, spec.conf))
    except StormError as error:
        raise InvalidTopologyError(f"{where}{error}", component=spec.id) from error
    except Exception as error:
        raise InvalidTopologyError(
            f"{where}declare_timers raised {type(error).__qualname__}: {error}", component=spec.id
        ) from error
    where += "declare_timers must return a mapping from names to periods in whole milliseconds, not "
    if not isinstance(found, Mapping):
        raise InvalidTopologyError(f"{where}{kind_of(found)}", component=spec.id)
    for name, period in found.items():
        if not isinstance(name, str) or isinstance(period, bool) or not isinstance(period, int) or period < 1:
            raise InvalidTopologyError(f"{where}{name!r}: {kind_of(period)}", component=spec.id)
    if len(found) > MOST_TIMERS:
        raise InvalidTopologyError(f"{where}{len(found)} of them; at most {MOST_TIMERS}", component=spec.id)
    return tuple(found.items())
