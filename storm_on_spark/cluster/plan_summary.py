"""The compiled plan that is submitted with a topology's code: a Nimbus reads it without importing the code."""

from __future__ import annotations

from typing import Any

import msgspec

from storm_on_spark.api.topology import ComponentSpec
from storm_on_spark.cluster.errors import RecordError
from storm_on_spark.plan.logical import LogicalGraph

MAX_BYTES = 16 << 20
MAX_TASKS = 20_000
"""A plan with more isn't kept in ZooKeeper, where a node has at most a megabyte."""


class KafkaReading(msgspec.Struct, frozen=True):
    """What a Kafka spout reads, and in the name of which group."""

    servers: str
    topics: str
    """Names, separated by commas; or a pattern."""
    group: str
    protocol: str = "PLAINTEXT"
    """Its `security.protocol`."""
    pattern: bool = False


class PlannedPart(msgspec.Struct, frozen=True, omit_defaults=True):
    """A component."""

    kind: str
    """The value of its `ComponentKind`."""
    tasks: tuple[int, ...]
    executors: int
    kafka: KafkaReading | None = None


class PlannedEdge(msgspec.Struct, frozen=True):
    """A subscription."""

    source: str
    stream: str
    target: str
    grouping: str


class PlanSummary(msgspec.Struct, frozen=True):
    """The components of a plan and what is between them, whatever the number of partitions, which a driver decides.

    Anything else in a `plan.json` is left alone.

    Example:
        >>> plan = PlanSummary.of(b'{"components": {"a": {"kind": "spout", "tasks": [1, 2], "executors": 2}},'
        ...                       b' "edges": [], "acker_tasks": [3], "stages": []}', "plan.json")
        >>> plan.total_tasks, plan.tasks()
        (3, {'a': 2})
    """

    components: dict[str, PlannedPart]
    edges: tuple[PlannedEdge, ...]
    acker_tasks: tuple[int, ...]

    @classmethod
    def of_graph(cls, graph: LogicalGraph) -> PlanSummary:
        """Returns what a topology was compiled to."""
        return cls(
            {
                name: PlannedPart(part.kind.value, part.tasks, part.executors, _kafka(graph.topology.components[name]))
                for name, part in graph.components.items()
            },
            tuple(PlannedEdge(edge.source, edge.stream, edge.target, edge.grouping.describe()) for edge in graph.edges),
            graph.acker_tasks,
        )

    @classmethod
    def of(cls, data: bytes, where: str) -> PlanSummary:
        """Returns what a `plan.json` says.

        Raises:
            RecordError: it is none.
        """
        if len(data) > MAX_BYTES:
            raise RecordError(f"{where}: {len(data):,} bytes; a plan has at most {MAX_BYTES:,}")
        try:
            return msgspec.json.decode(data, type=cls)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            raise RecordError(f"{where}: no plan of a topology: {error}") from error

    def document(self) -> dict[str, Any]:
        """Returns it in terms of JSON, as `of` reads it."""
        found: dict[str, Any] = msgspec.to_builtins(self)
        return found

    def tasks(self) -> dict[str, int]:
        """Returns component -> number of tasks."""
        return {name: len(part.tasks) for name, part in self.components.items()}

    @property
    def total_tasks(self) -> int:
        """All tasks, ackers included."""
        return sum(self.tasks().values()) + len(self.acker_tasks)


def _kafka(spec: ComponentSpec) -> KafkaReading | None:
    """Returns what a spout's own configuration says, in storm-kafka-client's keys; None where it reads no Kafka."""
    servers, topics, group = (spec.conf.get(f"config.{key}") for key in ("bootstrap.servers", "topics", "groupid"))
    if not (spec.is_spout and isinstance(servers, str) and isinstance(topics, str) and isinstance(group, str)):
        return None
    protocol = str(spec.conf.get("config.security.protocol", "PLAINTEXT"))
    return KafkaReading(servers, topics, group, protocol, spec.conf.get("config.topics.pattern") is True)
