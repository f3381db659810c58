"""What the compiler produces: an immutable physical plan, a chain of operators.

A [PlacedPlan][storm_on_spark.plan.model.PlacedPlan] says, for one topology, which operator of Spark executes which
stages, which stage executes which component, how each stream reaches its consumers, and which Spark partition each
Storm task lives on. It knows nothing of pyspark; `storm_on_spark.spark` lowers it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from enum import Enum
from functools import cached_property
from types import MappingProxyType
from typing import Any

from storm_on_spark.api.reading import ReadsItself
from storm_on_spark.api.streams.grouping import Grouping
from storm_on_spark.api.topology import ComponentKind, ComponentSpec, Topology


class StageKind(Enum):
    """What a stage executes."""

    SOURCE = "source"
    """The spouts, and the bolts that are fused with them; always the first stage."""
    STATELESS = "stateless"
    """Bolts, all of them stateless."""
    STATEFUL = "stateful"
    """Bolts, at least one of them with state."""
    ACKER = "acker"
    """The acker; always the last stage."""


WITH_STATE = (StageKind.STATEFUL, StageKind.ACKER)
"""Those that keep state in the state store."""


class EdgeKind(Enum):
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
    turn_secs: int | None = None
    """How often its tasks take part in a micro-batch without a tuple; see `BaseRichBolt.turn_secs`."""
    timers: tuple[tuple[str, int], ...] = ()
    """Names and periods (ms) of its timers; see `BaseRichBolt.declare_timers`."""
    sink: bool = False
    """Whether the driver writes its tuples; see `SinkBolt`."""
    by_number: bool = False
    """Whether its tasks write outside, by numbers of their state; see `WritesByNumber`."""

    waits: str = ""
    """Why its tuples have to wait for micro-batches, in words after its name; see `BaseRichBolt.waits_because`."""
    only_spark: str | None = None
    """Why only Spark can read its rows, as a clause, which may be empty; None if its task can, or if it is none of
    Spark's; see `ReadsItself`."""

    @property
    def planned_first(self) -> bool:
        """Whether it writes a micro-batch under its plan, so nothing may be executed before there is one."""
        return self.sink or self.by_number


def only_spark(spec: ComponentSpec) -> str | None:
    """Returns why only Spark can read the rows of a component; see `PlannedComponent.only_spark`."""
    if spec.kind is not ComponentKind.NATIVE_SPOUT:
        return None
    if isinstance(spec.component, ReadsItself):
        return spec.component.only_spark_because or None
    return ""


@dataclass(frozen=True)
class Edge:
    """One subscription: `target` receives `stream` of `source`."""

    source: str
    stream: str
    target: str
    grouping: Grouping
    kind: EdgeKind


@dataclass(frozen=True)
class Stage:
    """What is executed together; `components` are in the order in which they execute."""

    index: int
    kind: StageKind
    components: tuple[str, ...]


class Source(Enum):
    """What an operator reads for itself, beside what the operator before it sends."""

    SPOUT_LOGS = "spout logs"
    """The chunks of spout hosts, carried tuples and the clock, between the two offsets of the micro-batch."""


@dataclass(frozen=True)
class Operator:
    """What Spark executes as one: a stage, or several in their order."""

    stages: tuple[Stage, ...]
    exchange: bool
    """Whether a Spark exchange brings the rows of the operator before it, each to the partition of its key."""
    source: Source | None = None
    """What it reads itself: the first operator of a plan has a source, the others have none."""

    @property
    def state(self) -> bool:
        """Whether it keeps state in the state store: then it is a `transformWithState`."""
        return any(stage.kind in WITH_STATE for stage in self.stages)


@dataclass(frozen=True, repr=False)
class PlacedPlan:
    """The compiled topology on a number of partitions; immutable, equal by value, can be pickled if its components can.

    The operators form a chain: the rows of each are what the next one gets. `placement` has for each task its
    partition, in `range(partitions)`. `keys` has for each task the integer that its rows carry. Where there are
    exchanges, Spark's hash of the key is the task's partition; else there is only one key, 0.
    """

    topology: Topology
    conf: Mapping[str, object]
    components: Mapping[str, PlannedComponent]
    edges: tuple[Edge, ...]
    operators: tuple[Operator, ...]
    acker_tasks: tuple[int, ...]
    partitions: int
    placement: Mapping[int, int]
    keys: Mapping[int, int]
    session: str = ""
    """Why tuples wait for micro-batches in the session that it runs in, if there is a reason. No checkpoint depends on
    it."""

    def __post_init__(self) -> None:
        for name in _MAPPINGS:
            object.__setattr__(self, name, MappingProxyType(dict(getattr(self, name))))

    @cached_property
    def stages(self) -> tuple[Stage, ...]:
        """The stages of all operators, in their order; a stage's index is its place in here."""
        return tuple(stage for operator in self.operators for stage in operator.stages)

    @cached_property
    def operator_of(self) -> tuple[int, ...]:
        """For each stage, by its index, the place of its operator in `operators`."""
        return tuple(at for at, operator in enumerate(self.operators) for _ in operator.stages)

    @cached_property
    def native_spouts(self) -> tuple[str, ...]:
        """The spouts whose rows Spark reads itself, by name: the sources of the query beside ours, in this order."""
        return tuple(
            component.id for component in self.components.values() if component.kind is ComponentKind.NATIVE_SPOUT
        )

    def component_of(self, task: int) -> str:
        """Returns the id of the component that owns `task`.

        Raises:
            KeyError: no component has that task.
        """
        for component in self.components.values():
            if task in component.tasks:
                return component.id
        raise KeyError(f"no component has task {task}")

    def __repr__(self) -> str:
        operators = (
            " + ".join(" ".join((stage.kind.value, *stage.components)) for stage in operator.stages)
            for operator in self.operators
        )
        return f"PlacedPlan({' | '.join(operators)})"

    def __reduce__(self) -> tuple[Any, ...]:
        # The read-only views don't pickle; the dicts behind them do.
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        values.update({name: dict(values[name]) for name in _MAPPINGS})
        return (PlacedPlan, tuple(values.values()))


_MAPPINGS = ("conf", "components", "placement", "keys")
