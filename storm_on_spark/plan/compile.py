"""The compiler's pipeline: from a topology to a physical plan."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from storm_on_spark.api.topology import Topology
from storm_on_spark.plan.logical import LogicalGraph, Pass
from storm_on_spark.plan.model import PlacedPlan
from storm_on_spark.plan.passes.acker import add_acker
from storm_on_spark.plan.passes.back_edges import mark_back_edges
from storm_on_spark.plan.passes.fuse import fuse
from storm_on_spark.plan.passes.join import join
from storm_on_spark.plan.passes.level import level
from storm_on_spark.plan.passes.operators import add_operators
from storm_on_spark.plan.passes.placement import find_keys, place_tasks
from storm_on_spark.plan.passes.statelessness import judge_statelessness
from storm_on_spark.plan.passes.tasks import assign_tasks
from storm_on_spark.plan.passes.validate import validate

PASSES: tuple[Pass, ...] = (
    validate,
    assign_tasks,
    mark_back_edges,
    judge_statelessness,
    fuse,
    level,
    add_acker,
)
"""What turns a topology into stages, in this order."""

PLACING: tuple[Pass, ...] = (add_operators, join, place_tasks, find_keys)
"""What turns stages into operators on a number of partitions, in this order."""


def compile_graph(topology: Topology, conf: Mapping[str, object] | None = None) -> LogicalGraph:
    """Returns the stages of a topology, as `place` takes them.

    The same topology and configuration give the same stages, in whatever order the components were declared.

    Args:
        topology: what `TopologyBuilder.create_topology` returns.
        conf: the topology's configuration, valid.

    Raises:
        InvalidTopologyError: the topology breaks one of Storm's rules; the message lists all that it breaks.

    Example:
        >>> from storm_on_spark.api import BaseBasicBolt, BaseRichSpout, Fields, TopologyBuilder
        >>> class Words(BaseRichSpout):
        ...     def next_tuple(self): ...
        ...     def declare_output_fields(self, declarer):
        ...         declarer.declare(Fields("word"))
        >>> class Show(BaseBasicBolt):
        ...     def execute(self, tup, collector):
        ...         print(tup["word"])
        >>> builder = TopologyBuilder()
        >>> words = builder.set_spout("words", Words())
        >>> show = builder.set_bolt("show", Show(), 2).fields_grouping("words", Fields("word"))
        >>> graph = compile_graph(builder.create_topology())
        >>> [(stage.kind.value, stage.components) for stage in graph.stages]
        [('source', ('words',)), ('stateless', ('show',)), ('acker', ())]
    """
    graph = LogicalGraph.of(topology, conf or {})
    for step in PASSES:
        graph = step(graph)
    return graph


def place(graph: LogicalGraph, partitions: int, session: str = "") -> PlacedPlan:
    """Returns the physical plan of a topology.

    Args:
        graph: what `compile_graph` returned.
        partitions: how many partitions there are; may not change over the life of a checkpoint.
        session: why tuples wait for micro-batches in the session; "" if nothing there prevents real time.

    Raises:
        ValueError: `partitions` is less than 1.

    Example:
        >>> from storm_on_spark.api import BaseRichSpout, TopologyBuilder
        >>> class Silence(BaseRichSpout):
        ...     def next_tuple(self): ...
        >>> builder = TopologyBuilder()
        >>> silence = builder.set_spout("silence", Silence())
        >>> graph = compile_graph(builder.create_topology())
        >>> place(graph, 2), place(graph, 1)
        (PlacedPlan(source silence | acker), PlacedPlan(source silence + acker))
    """
    if partitions < 1:
        raise ValueError(f"the number of partitions must be at least 1, not {partitions}")
    graph = replace(graph, partitions=partitions)
    for step in PLACING:
        graph = step(graph)
    return PlacedPlan(
        topology=graph.topology,
        conf=graph.conf,
        components=graph.components,
        edges=graph.edges,
        operators=graph.operators,
        acker_tasks=graph.acker_tasks,
        partitions=graph.partitions,
        placement=dict(sorted(graph.placement.items())),
        keys=dict(sorted(graph.keys.items())),
        session=session,
    )
