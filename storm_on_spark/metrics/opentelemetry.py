"""Metrics as OpenTelemetry's SDK has them: the families of `prometheus`, under the same names.

A counter is a cumulative sum that begins when its topology first started: it continues over restarts. OpenTelemetry
adds `_total` itself where it writes for Prometheus, so names are without it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from storm_on_spark.api.info import ALL_TIME, TopologyInfo
from storm_on_spark.metrics.prometheus import Family, Samples

if TYPE_CHECKING:
    from opentelemetry.sdk.metrics.export import Metric, MetricsData

SCOPE: Final = "storm_on_spark"
_UNITS: Final = {"seconds": "s", "bytes": "By", "tuples": "{tuple}", "messages": "{message}"}
"""Last word of a name -> unit by UCUM."""
_OF_THE_DRIVER: Final = frozenset({"storm_component_errors"})
"""Counters that start at zero in each driver."""


def unit_of(family: Family) -> str:
    """Returns the unit of a family, by UCUM.

    Example:
        >>> from storm_on_spark.metrics.prometheus import FAMILIES
        >>> unit_of(FAMILIES["storm_component_executed_tuples"]), unit_of(FAMILIES["storm_component_capacity"])
        ('{tuple}', '1')
    """
    return _UNITS.get(family.name.rpartition("_")[2], "1")


def topology_data(name: str, info: TopologyInfo, now_ns: int) -> MetricsData:
    """Returns what is known of a topology, for an exporter.

    Args:
        name: its id in a cluster, else its name.
        info: with windows and load.
        now_ns: nanoseconds since the epoch.
    """
    from opentelemetry.sdk.metrics.export import MetricsData, ResourceMetrics, ScopeMetrics
    from opentelemetry.sdk.resources import OTELResourceDetector, Resource
    from opentelemetry.sdk.util.instrumentation import InstrumentationScope

    samples = Samples()
    samples.add_topology(name, info)
    ever = info.windows.get(ALL_TIME)
    driver_ns = now_ns - int(info.uptime_secs * 1e9)
    began_ns = driver_ns if ever is None else now_ns - int(ever.secs * 1e9)
    metrics = [
        _metric(family, found, driver_ns if family.name in _OF_THE_DRIVER else began_ns, now_ns)
        for family, found in samples.families()
    ]
    own = Resource({"service.name": "storm-on-spark", "service.instance.id": name})
    # What OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES say comes first.
    resource = own.merge(OTELResourceDetector().detect())
    return MetricsData([ResourceMetrics(resource, [ScopeMetrics(InstrumentationScope(SCOPE), metrics, "")], "")])


def _metric(family: Family, found: list[tuple[tuple[str, ...], float]], began_ns: int, now_ns: int) -> Metric:
    from opentelemetry.sdk.metrics.export import AggregationTemporality, Gauge, Metric, NumberDataPoint, Sum

    is_sum = family.kind == "counter"
    points = [
        NumberDataPoint(dict(zip(family.labels, labels, strict=True)), began_ns if is_sum else 0, now_ns, value)
        for labels, value in found
    ]
    data = Sum(points, AggregationTemporality.CUMULATIVE, is_monotonic=True) if is_sum else Gauge(points)
    return Metric(family.name, family.meaning, unit_of(family), data)
