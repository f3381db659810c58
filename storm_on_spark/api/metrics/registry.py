"""The metrics of one task: its component registers them, and the runtime reports them once per micro-batch."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple, TypeVar

from storm_on_spark.api.errors import InvalidTopologyError
from storm_on_spark.api.metrics.classic import (
    AssignableMetric,
    CombinedMetric,
    CountMetric,
    ICombiner,
    IMetric,
    IReducer,
    MultiCountMetric,
    ReducedMetric,
)
from storm_on_spark.api.metrics.instruments import INSTRUMENTS, Counter, Gauge, Histogram, Instrument, Meter, Timer
from storm_on_spark.api.text.traces import bounded
from storm_on_spark.api.text.wording import kind_of

MOST_METRICS: Final = 500
"""The most metrics of one task. Without a limit, names made from data, such as one per user, would grow without end."""
_MOST_NAME: Final = 200
_MOST_TEXT: Final = 1000
_MOST_PARTS: Final = 100

_COUNTS: Final = (CountMetric, MultiCountMetric)

AnInstrument = TypeVar("AnInstrument", bound=Instrument)
AMetric = TypeVar("AMetric", bound=IMetric)


class Reading(NamedTuple):
    """The changes of one metric since its last report, in built-in types."""

    name: str
    kind: str
    """The `kind` of an instrument; for Storm's first metrics `count`, whose values are added up, or `metric`."""
    value: Any


class MetricRegistry:
    """The metrics of a task, by name.

    Args:
        where: names the task in messages.
        component: its component.
    """

    def __init__(self, where: str, component: str) -> None:
        self._where = where
        self._component = component
        self._instruments: dict[str, Instrument] = {}
        self._classic: dict[str, IMetric] = {}
        #: Whether `open` or `prepare` has returned; `register_metric` is then refused.
        self.prepared = False

    def __bool__(self) -> bool:
        return bool(self._instruments or self._classic)

    # --- registering ----------------------------------------------------------------------------------------

    def add(self, name: str, kind: type[AnInstrument]) -> AnInstrument:
        """Returns the instrument `name` of a kind; makes it if there is none.

        Raises:
            InvalidTopologyError: the name is invalid, belongs to a metric of another kind, or is one too many.
        """
        known = self._instruments.get(_text(name))
        if known is None:
            return self.put(name, kind(name))
        if type(known) is not kind:
            raise self._error(f"metric {name!r} is a {known.kind} already, and can't be a {kind.kind} too")
        return known

    def put(self, name: str, instrument: AnInstrument) -> AnInstrument:
        """Adds an instrument; a gauge replaces an earlier one.

        Raises:
            InvalidTopologyError: as for `add`.
        """
        known = self._instruments.get(_text(name))
        if known is None:
            self._check(name)
        elif type(known) is not type(instrument):
            raise self._error(f"metric {name!r} is a {known.kind} already, and can't be a {instrument.kind} too")
        self._instruments[name] = instrument
        return instrument

    def add_classic(self, name: str, metric: AMetric, bucket_secs: int) -> AMetric:
        """Adds one of Storm's first metrics; arguments and errors as for `TopologyContext.register_metric`."""
        if self.prepared:
            raise self._error(f"register_metric({name!r}) must be called in open or prepare")
        if not _is_metric(metric):
            raise self._error(
                f"register_metric({name!r}) takes an object with get_value_and_reset(), an ICombiner or an IReducer, "
                f"not {kind_of(metric)}"
            )
        if not _is_whole(bucket_secs) or bucket_secs < 1:
            raise self._error(f"register_metric({name!r}) takes a time bucket of 1 s or more, not {bucket_secs!r}")
        self._check(name)
        self._classic[name] = metric
        return metric

    def report(self, name: str, value: Any) -> None:
        """Takes the value that a component in another language reports: it updates the metric, or becomes its value.

        Raises:
            InvalidTopologyError: the name is invalid, or one too many.
        """
        metric = self._classic.get(name)
        if metric is None:
            self._check(name)
            metric = self._classic[name] = AssignableMetric()
        update = getattr(metric, "update_metric_from_rpc", None)
        if not callable(update):
            raise self._error(f"metric {name!r} takes no reports: {kind_of(metric)} has no update_metric_from_rpc()")
        update(value)

    def _check(self, name: str) -> None:
        if not 1 <= len(_text(name)) <= _MOST_NAME:
            raise self._error(f"the name of a metric has 1 to {_MOST_NAME} characters, given {name!r:.80}")
        if name in self._instruments or name in self._classic:
            raise self._error(f"metric {name!r} is registered already")
        if len(self._instruments) + len(self._classic) >= MOST_METRICS:
            raise self._error(f"a task has at most {MOST_METRICS} metrics, so {name!r} is refused")

    def _error(self, text: str) -> InvalidTopologyError:
        return InvalidTopologyError(f"{self._where}: {text}", component=self._component)

    # --- reading --------------------------------------------------------------------------------------------

    def classic(self, name: str) -> IMetric | None:
        """Returns a metric that was given to `register_metric`, or None."""
        return self._classic.get(name)

    def living(self, kind: str, name: str) -> Any:
        """Returns the metric that a snapshot names; None if the component no longer registers it."""
        if kind in INSTRUMENTS:
            return self.add(name, INSTRUMENTS[kind])
        return self._classic.get(name) or self._instruments.get(name)

    @property
    def given(self) -> dict[str, object]:
        """The objects of users, by name."""
        gauges = {name: known.source for name, known in self._instruments.items() if isinstance(known, Gauge)}
        return {**self._classic, **gauges}

    def readings(self, on_error: Callable[[str, Exception], None]) -> tuple[Reading, ...]:
        """Returns the changes since the last call.

        Args:
            on_error: called with the name of a metric whose own code raised, and the error.
        """
        found = []
        for name, instrument in list(self._instruments.items()):
            try:
                value = instrument.changes()
            except Exception as error:  # a gauge may raise anything
                on_error(name, error)
                continue
            if value is not None:
                found.append(Reading(name, instrument.kind, plain(value) if instrument.kind == Gauge.kind else value))
        for name, metric in list(self._classic.items()):
            counts = isinstance(metric, _COUNTS)
            try:
                value = metric.get_value_and_reset()
            except Exception as error:  # a user's metric may raise anything
                on_error(name, error)
                continue
            if value is not None:
                found.append(Reading(name, "count" if counts else "metric", plain(value)))
        return tuple(found)

    def saved(self) -> Any:
        """Returns what `back_to` needs."""
        counts = {name: known.saved() for name, known in self._classic.items() if isinstance(known, _COUNTS)}
        return {name: known.saved() for name, known in self._instruments.items()}, counts

    def back_to(self, saved: Any) -> None:
        """Forgets what was counted since `saved` was taken; values that are not counts stay as they are."""
        instruments, counts = saved
        for name, known in self._instruments.items():
            if name in instruments:
                known.back_to(instruments[name])
            elif known.kind in INSTRUMENTS:  # registered later
                known.back_to(INSTRUMENTS[known.kind](name).saved())
        for name, count in counts.items():
            self._classic[name].back_to(count)  # type: ignore[attr-defined] # it has one


def _text(name: object) -> str:
    """Returns the name of a metric; "" if it is not a text."""
    return name if isinstance(name, str) else ""


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_metric(value: object) -> bool:
    return isinstance(value, IMetric)


def plain(value: Any) -> Any:
    """Returns a value of a metric in JSON's types; long texts and collections are cut off.

    Example:
        >>> plain({"load": 0.5, 3: (1, 2)}), plain(float("nan")), plain(object) == str(object)
        ({'load': 0.5, '3': [1, 2]}, 'nan', True)
    """
    return _plain(value, 3)


def _plain(value: Any, depth: int) -> Any:
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return bounded(value, _MOST_TEXT)
    if isinstance(value, int):
        # Other readers of JSON can't read larger numbers.
        return int(value) if abs(value) < 1 << 63 else f"{value:#x}"[:_MOST_TEXT]
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else str(value)
    if depth and isinstance(value, Mapping):
        parts = list(value.items())[:_MOST_PARTS]
        return {str(key)[:_MOST_NAME]: _plain(part, depth - 1) for key, part in parts}
    if depth and isinstance(value, (list, tuple)):
        return [_plain(part, depth - 1) for part in value[:_MOST_PARTS]]
    scalar = getattr(value, "item", None)
    if depth and callable(scalar) and getattr(value, "ndim", None) == 0:  # a number of NumPy's
        return _plain(scalar(), 0)
    return bounded(str(value), _MOST_TEXT)


class MetricsContext:
    """The methods of `TopologyContext` for metrics: Storm's `IMetricsContext`.

    Once per micro-batch the process that executed the task reports changes, and the driver adds them up.
    `TopologyInfo.components[id].metrics`, `storm-spark status --json` and the REST interface show the totals.
    """

    #: The metrics of this task.
    metrics: MetricRegistry

    def register_counter(self, name: str) -> Counter:
        """Returns the counter with that name.

        Raises:
            InvalidTopologyError: the name is empty, too long, one too many, or taken by a metric of another kind.

        Example:
            >>> from storm_on_spark import BaseBasicBolt
            >>> from storm_on_spark.testing import make_context
            >>> class Split(BaseBasicBolt):
            ...     def execute(self, tup, collector): ...
            >>> context = make_context(Split())
            >>> words = context.register_counter("words")
            >>> words.inc(3)
            >>> context.register_counter("words").get_count()
            3
        """
        return self.metrics.add(name, Counter)

    def register_meter(self, name: str) -> Meter:
        """Returns the meter with that name; errors as for `register_counter`."""
        return self.metrics.add(name, Meter)

    def register_histogram(self, name: str) -> Histogram:
        """Returns the histogram with that name; errors as for `register_counter`."""
        return self.metrics.add(name, Histogram)

    def register_timer(self, name: str) -> Timer:
        """Returns the timer with that name; errors as for `register_counter`."""
        return self.metrics.add(name, Timer)

    def register_gauge(self, name: str, gauge: Any) -> Any:
        """Registers a gauge, and returns it.

        Args:
            name: the gauge's name; an earlier gauge with this name is replaced.
            gauge: a function without parameters, or an object with a method `get_value`. It is called after each
                micro-batch in which the task executes.

        Raises:
            InvalidTopologyError: as for `register_counter`.
            TypeError: `gauge` is neither.
        """
        self.metrics.put(name, Gauge(name, gauge))
        return gauge

    def register_metric_set(self, prefix: str, metrics: Mapping[str, Any]) -> None:
        """Registers gauges under `prefix.name`; errors as for `register_gauge`."""
        for name, gauge in metrics.items():
            self.register_gauge(f"{prefix}.{name}", gauge)

    def register_metric(self, name: str, metric: Any, time_bucket_size_in_secs: int = 60) -> Any:
        """Registers one of Storm's first metrics, in `open` or `prepare`.

        Args:
            name: the metric's name.
            metric: an object with a method `get_value_and_reset`, or an `ICombiner` or `IReducer`, which is wrapped in
                a `CombinedMetric` or `ReducedMetric`.
            time_bucket_size_in_secs: at least 1. It has no further effect: a bucket is a micro-batch.

        Returns:
            The metric.

        Raises:
            InvalidTopologyError: the name is taken, the bucket is too short, or `open` or `prepare` has returned.

        Example:
            >>> from storm_on_spark import BaseBasicBolt
            >>> from storm_on_spark.api.metrics.classic import CountMetric
            >>> from storm_on_spark.testing import make_context
            >>> class Split(BaseBasicBolt):
            ...     def execute(self, tup, collector): ...
            >>> count = make_context(Split()).register_metric("executed", CountMetric(), 10)
            >>> count.incr()
        """
        if isinstance(metric, ICombiner):
            metric = CombinedMetric(metric)
        elif isinstance(metric, IReducer):
            metric = ReducedMetric(metric)
        return self.metrics.add_classic(name, metric, time_bucket_size_in_secs)

    def get_registered_metric_by_name(self, name: str) -> Any:
        """Returns the metric that `register_metric` registered under a name, or None."""
        return self.metrics.classic(name)
