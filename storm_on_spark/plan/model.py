"""What the compiler produces: an immutable physical plan.

A [PhysicalPlan][storm_on_spark.plan.model.PhysicalPlan] says, for one topology, which Spark stage executes
which component, how each stream reaches its consumers, and which Spark partition each Storm task lives on. It
knows nothing of pyspark; `storm_on_spark.spark` lowers it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from enum import Enum
from types import MappingProxyType
from typing import Any

from storm_on_spark.api.grouping import Grouping
from storm_on_spark.api.topology import ComponentKind, Topology


class StageKind(Enum):
    """How a stage is lowered to Spark."""

    SOURCE = "source"
    """The Python data source: reads the spout log and executes the bolts fused with the spouts."""
    STATELESS = "stateless"
    """`mapInArrow` after an exchange: every bolt in it is stateless."""
    STATEFUL = "stateful"
    """`transformWithState` keyed by task."""
    ACKER = "acker"
    """`transformWithState` keyed by acker task; always the last stage."""


WITH_STATE = (StageKind.STATEFUL, StageKind.ACKER)
"""Those that keep state in the state store."""


class Delivery(Enum):
    """How the tuples of one edge travel."""

    LOCAL = "local"
    """Within the stage, in the same Python call: the consumer is fused with its producer."""
    EXCHANGE = "exchange"
    """As chunks through a Spark exchange to a later stage."""
    CARRIED = "carried"
    """The edge closes a cycle: the tuples reach their consumer in the next micro-batch."""


@dataclass(frozen=True)
class PlannedComponent:
    """One spout or bolt with its tasks and its place in the plan."""

    id: str
    kind: ComponentKind
    tasks: tuple[int, ...]
    executors: int
    stage: int
    fused: bool
    stateless: bool
    reason: str
    """Why the component is (not) stateless, as `explain` prints it."""


@dataclass(frozen=True)
class Edge:
    """One subscription: `target` receives `stream` of `source`."""

    source: str
    stream: str
    target: str
    grouping: Grouping
    delivery: Delivery


@dataclass(frozen=True)
class Stage:
    """One Spark stage; `components` are in the order in which they execute."""

    index: int
    kind: StageKind
    components: tuple[str, ...]


@dataclass(frozen=True, repr=False)
class PhysicalPlan:
    """The compiled topology; immutable, equal by value, can be pickled if its components can.

    `keys` maps a task id to the integer that its rows carry: Spark's hash of that integer falls on
    `placement[task]`, a partition in `range(partitions)`; where one operator executes all, it is 0. All three are empty
    until the number of partitions is known; see `storm_on_spark.plan.placement`.
    """

    topology: Topology
    conf: Mapping[str, object]
    components: Mapping[str, PlannedComponent]
    edges: tuple[Edge, ...]
    stages: tuple[Stage, ...]
    acker_tasks: tuple[int, ...]
    partitions: int | None
    placement: Mapping[int, int]
    keys: Mapping[int, int]

    def __post_init__(self) -> None:
        for name in _MAPPINGS:
            object.__setattr__(self, name, MappingProxyType(dict(getattr(self, name))))

    def component_of(self, task: int) -> str:
        """Returns the id of the component that owns `task`.

        Raises:
            KeyError: no component has that task.
        """
        for component in self.components.values():
            if task in component.tasks:
                return component.id
        raise KeyError(f"no component has task {task}")

    def has_exchange(self, stage: Stage) -> bool:
        """Returns whether rows come to `stage` through a Spark exchange; the source has nothing before it."""
        return stage.kind is not StageKind.SOURCE and not self.joined

    @property
    def joined(self) -> bool:
        """Whether one Spark operator with state executes all stages, that of the source included.

        So it is with one partition, which has nothing to exchange, unless no stage has state.
        """
        return self.partitions == 1 and any(stage.kind in WITH_STATE for stage in self.stages)

    def __repr__(self) -> str:
        stages = (" ".join((stage.kind.value, *stage.components)) for stage in self.stages)
        return f"PhysicalPlan({' | '.join(stages)})"

    def __reduce__(self) -> tuple[Any, ...]:
        # The read-only views don't pickle; the dicts behind them do.
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        values.update({name: dict(values[name]) for name in _MAPPINGS})
        return (PhysicalPlan, tuple(values.values()))


_MAPPINGS = ("conf", "components", "placement", "keys")
