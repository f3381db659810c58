"""Metrics as Prometheus reads them, made by its own client library.

`FAMILIES` is the one table of names, units and meanings; `docs/metrics.md` shows it. Counters count since the topology
was first started, and restarts don't reset them; Prometheus computes windows itself. Latencies are those of the last
ten minutes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from storm_on_spark.api.info import ALL_TIME, ComponentInfo, ComponentWindow, LatencyInfo, LoadInfo, TopologyInfo

if TYPE_CHECKING:
    from prometheus_client.core import Metric

_LATENCY_WINDOW: Final = "600"
_QUANTILES: Final = {"0.5": "p50", "0.95": "p95", "0.99": "p99"}


@dataclass(frozen=True)
class Family:
    """One name."""

    name: str
    kind: str
    """`counter` or `gauge`; a counter's samples have `_total` after the name."""
    labels: tuple[str, ...]
    meaning: str


_TABLE: Final = """
storm_topology_up | gauge | topology | 1 while the topology is ACTIVE or INACTIVE, else 0
storm_topology_uptime_seconds | gauge | topology | Since its driver was started
storm_topology_pending_messages | gauge | topology | Messages that are neither acked nor failed
storm_topology_backlog_tuples | gauge | topology | Tuples in spouts' logs that no micro-batch has taken
storm_topology_batch_seconds | gauge | topology part | Median time of a part of the last micro-batches
storm_topology_state_rows | gauge | topology | Entries of its state stores
storm_topology_state_bytes | gauge | topology | Memory of its state stores
storm_topology_memory_bytes | gauge | topology | Resident memory of its driver's processes
storm_topology_cpu_seconds | gauge | topology | Processor time of those that live
storm_topology_warning | gauge | topology rule component | 1 for each early warning that holds
storm_topology_complete_latency_seconds | gauge | topology quantile | From emit to ack, of the last 10 minutes
storm_component_emitted_tuples | counter | topology component | Tuples, each once however many tasks received it
storm_component_transferred_tuples | counter | topology component | The same, once for each task that received it
storm_component_executed_tuples | counter | topology component | Tuples that a bolt executed
storm_component_acked_tuples | counter | topology component | Tuples that a bolt acked; messages that are complete
storm_component_failed_tuples | counter | topology component | Tuples that a bolt failed; messages that failed
storm_component_busy_seconds | counter | topology component | Time that all its tasks together executed
storm_component_execute_latency_seconds | gauge | topology component quantile | In execute, of the last 10 minutes
storm_component_process_latency_seconds | gauge | topology component quantile | Arrival to ack, of the last 10 minutes
storm_component_capacity | gauge | topology component | Share of the last 10 minutes in which a task was busy
storm_component_errors | counter | topology component | Errors among the last different ones, of this driver
storm_component_metric | counter | topology component metric | What a metric of the user's counted
storm_supervisor_slots | gauge | supervisor | Slots of a supervisor
storm_supervisor_slots_used | gauge | supervisor | Those that have a topology
storm_nimbus_leader | gauge | | 1 if this Nimbus leads, else 0
storm_cluster_topologies | gauge | | Topologies that there are
storm_xd_containers | gauge | | Containers of streams and jobs that an admin knows
storm_xd_deployments | gauge | kind state | Deployed streams and jobs
storm_xd_modules | gauge | | Instances of modules that run on containers
storm_xd_container_modules | gauge | container host | Instances of modules that run on a container
storm_xd_container_received_messages | counter | container host | Messages that its modules took; fused ones don't count
storm_xd_container_emitted_messages | counter | container host | Messages that these modules emitted
storm_xd_container_memory_bytes | gauge | container host | Resident memory of its process, without Spark's JVM
storm_xd_container_cores | gauge | container host | Seconds of processor time per second
"""


def _family(line: str) -> Family:
    name, kind, labels, meaning = (part.strip() for part in line.split("|"))
    return Family(name, kind, tuple(labels.split()), meaning)


FAMILIES: Final = {family.name: family for family in map(_family, _TABLE.strip().splitlines())}
"""By name."""


class Samples:
    """Samples, collected by family.

    Example:
        >>> samples = Samples()
        >>> samples.add("storm_component_executed_tuples", ("words", "split"), 7)
        >>> print(samples.text().decode().splitlines()[2])
        storm_component_executed_tuples_total{component="split",topology="words"} 7.0
    """

    def __init__(self) -> None:
        self._found: dict[str, list[tuple[tuple[str, ...], float]]] = {}

    def add(self, name: str, labels: tuple[str, ...], value: float | None) -> None:
        """Adds a sample; does nothing for None."""
        if value is not None:
            self._found.setdefault(name, []).append((labels, float(value)))

    def add_topology(self, name: str, info: TopologyInfo) -> None:
        """Adds what is known of a topology.

        Args:
            name: its id in a cluster, else its name.
            info: with windows and load.
        """
        self.add("storm_topology_up", (name,), float(info.status in ("ACTIVE", "INACTIVE")))
        self.add("storm_topology_uptime_seconds", (name,), info.uptime_secs)
        self.add("storm_topology_pending_messages", (name,), info.pending)
        if info.load is not None:
            self._add_load(name, info.load)
        ever, lately = info.windows.get(ALL_TIME), info.windows.get(_LATENCY_WINDOW)
        for component, counted in {} if ever is None else ever.components.items():
            self._add_counters((name, component), counted)
        for component, counted in {} if lately is None else lately.components.items():
            place = name, component
            self._add_latency("storm_component_execute_latency_seconds", place, counted.execute)
            self._add_latency("storm_component_process_latency_seconds", place, counted.process)
            if lately is not None:
                self.add("storm_component_capacity", place, counted.capacity_over(lately.secs, len(counted.tasks)))
        if lately is not None:
            self._add_latency("storm_topology_complete_latency_seconds", (name,), lately.complete)
        for component, part in info.components.items():
            self.add("storm_component_errors", (name, component), _errors(part))

    def _add_load(self, name: str, load: LoadInfo) -> None:
        self.add("storm_topology_backlog_tuples", (name,), sum(load.backlog.values()))
        for part, milliseconds in load.batch_ms.items():
            self.add("storm_topology_batch_seconds", (name, part), milliseconds / 1e3)
        self.add("storm_topology_state_rows", (name,), load.state_rows)
        self.add("storm_topology_state_bytes", (name,), load.state_bytes)
        if load.worker is not None:
            self.add("storm_topology_memory_bytes", (name,), load.worker.memory_bytes)
            self.add("storm_topology_cpu_seconds", (name,), load.worker.cpu_secs)

    def _add_counters(self, place: tuple[str, str], counted: ComponentWindow) -> None:
        for counter in ("emitted", "transferred", "executed", "acked", "failed"):
            self.add(f"storm_component_{counter}_tuples", place, getattr(counted, counter))
        self.add("storm_component_busy_seconds", place, counted.busy_secs)
        for metric, values in counted.metrics.items():
            self.add("storm_component_metric", (*place, metric), values["count"])

    def _add_latency(self, name: str, labels: tuple[str, ...], latency: LatencyInfo | None) -> None:
        for quantile, field in {} if latency is None else _QUANTILES.items():
            self.add(name, (*labels, quantile), getattr(latency, field) / 1e3)

    def families(self) -> Iterator[tuple[Family, list[tuple[tuple[str, ...], float]]]]:
        """Yields each family that has samples, with these: values of the labels, and a number."""
        for name, samples in self._found.items():
            yield FAMILIES[name], samples

    def collect(self) -> Iterator[Metric]:
        """Yields the families, as a collector of `prometheus_client` does."""
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

        kinds: Mapping[str, Callable[..., Metric]] = {"counter": CounterMetricFamily, "gauge": GaugeMetricFamily}
        for family, samples in self.families():
            made = kinds[family.kind](family.name, family.meaning, labels=family.labels)
            for labels, value in samples:
                made.add_metric(labels, value)  # type: ignore[attr-defined]
            yield made

    def text(self) -> bytes:
        """Returns Prometheus' text format, version 0.0.4."""
        from prometheus_client import generate_latest
        from prometheus_client.registry import CollectorRegistry

        registry = CollectorRegistry(auto_describe=False)
        registry.register(self)
        return generate_latest(registry)


def _errors(part: ComponentInfo) -> int:
    return sum(error.count for error in part.errors)


def process_text(samples: Iterable[Samples]) -> bytes:
    """Returns samples, and those of this process that `prometheus_client` knows: memory, processor time, open files."""
    from prometheus_client import GC_COLLECTOR, PLATFORM_COLLECTOR, PROCESS_COLLECTOR, generate_latest
    from prometheus_client.registry import CollectorRegistry

    registry = CollectorRegistry(auto_describe=False)
    for each in (*samples, PROCESS_COLLECTOR, PLATFORM_COLLECTOR, GC_COLLECTOR):
        registry.register(each)
    return generate_latest(registry)
