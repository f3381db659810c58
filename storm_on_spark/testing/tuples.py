"""Tuples for unit tests."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import count
from typing import Any

from storm_on_spark.api.errors import TupleError
from storm_on_spark.api.streams.constants import SYSTEM_COMPONENT, SYSTEM_TASK, TICK_STREAM, TIMER_STREAM
from storm_on_spark.api.streams.fields import Fields
from storm_on_spark.api.streams.stream import DEFAULT_STREAM
from storm_on_spark.api.tuple import Delivery, KnownLineage, Tuple

_TICK_FIELDS = Fields("rate_secs")
_TIMER_FIELDS = Fields("name", "time_ms")

_ids = count(1)
#: Root and edge ids of made tuples; a number is used only once in a process.


def make_tuple(
    values: Sequence[Any],
    fields: Fields | str | Iterable[str] | None = None,
    component: str = "source",
    stream: str = DEFAULT_STREAM,
    task: int = 1,
    *,
    roots: Iterable[int] | None = None,
) -> Tuple:
    """Returns a tuple as a bolt would receive it.

    Args:
        values: the values, in the order of the fields.
        fields: their names; for None `value` if there is one, else `value0`, `value1` and so on.
        component: the component that emitted it.
        stream: the stream on which it came.
        task: the task that emitted it.
        roots: the ids of the trees that it belongs to; None for one new tree, `()` for an unanchored tuple.

    Raises:
        TupleError: there are more or fewer values than fields.

    Example:
        >>> tup = make_tuple(["storm", 3], ["word", "count"], component="split")
        >>> tup["word"], tup.source_component, len(tup.message_id)
        ('storm', 'split', 1)
    """
    if isinstance(values, str):
        raise TupleError(f"make_tuple takes a list of values, not the text {values!r}; give [{values!r}]")
    names = default_fields(len(values)) if fields is None else Fields.of(fields)
    if len(names) != len(values):
        raise TupleError(
            f"make_tuple got {len(values)} value(s) for {len(names)} field(s) ({', '.join(names)}): "
            f"{list(values)!r:.200}"
        )
    anchors = (next(_ids),) if roots is None else tuple(roots)
    lineage = KnownLineage([anchors], [next(_ids)]) if anchors else None
    delivery = Delivery(component, stream, task, names, lineage)
    return Tuple.of(tuple(values), delivery)


def make_tick_tuple(rate_secs: float = 1) -> Tuple:
    """Returns a tick tuple like those sent for `topology.tick.tuple.freq.secs`.

    Args:
        rate_secs: the frequency that it carries.

    Example:
        >>> make_tick_tuple(5).is_tick
        True
    """
    delivery = Delivery(SYSTEM_COMPONENT, TICK_STREAM, SYSTEM_TASK, _TICK_FIELDS)
    return Tuple.of((rate_secs,), delivery)


def make_timer_tuple(name: str, time_ms: int) -> Tuple:
    """Returns a timer tuple like those for a bolt that declares timers.

    Args:
        name: of the timer.
        time_ms: the topology's time.

    Example:
        >>> make_timer_tuple("flush", 250).is_timer
        True
    """
    delivery = Delivery(SYSTEM_COMPONENT, TIMER_STREAM, SYSTEM_TASK, _TIMER_FIELDS)
    return Tuple.of((name, time_ms), delivery)


def default_fields(count: int) -> Fields:
    """Returns names for unnamed values.

    Example:
        >>> default_fields(1), default_fields(2)
        (Fields('value'), Fields('value0', 'value1'))
    """
    return Fields("value") if count == 1 else Fields(f"value{position}" for position in range(count))
