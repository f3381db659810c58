"""Laws that hold for every topology, tried on random ones."""

from __future__ import annotations

from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st

from storm_on_spark.api import Config
from storm_on_spark.plan.compile import compile_graph, place
from storm_on_spark.plan.model import EdgeKind, Source, StageKind
from storm_on_spark.plan.passes.graph import topological_order
from storm_on_spark.plan.passes.placement import partition_of

GROUPINGS = ["shuffle", "fields", "all", "global", "none", "local_or_shuffle", "partial_key", "custom"]


@st.composite
def drawings(draw):
    """Spouts s0, s1, ... and bolts b00, b01, ...; each bolt is fed from before it and from anywhere."""
    spouts = [f"s{at}" for at in range(draw(st.integers(1, 3)))]
    bolts = [f"b{at:02}" for at in range(draw(st.integers(0, 8)))]
    # Names say nothing about the order in which data flows.
    order = draw(st.permutations(bolts))
    drawing = {spout: [] for spout in spouts}
    for at, bolt in enumerate(order):
        sources = {draw(st.sampled_from([*spouts, *order[:at]]))}
        sources |= draw(st.sets(st.sampled_from([*spouts, *order]), max_size=3))
        inputs = [f"{draw(st.sampled_from(GROUPINGS))} {source}" for source in sorted(sources)]
        drawing[bolt + draw(st.sampled_from(["", "!"]))] = inputs
    return drawing


numbers_of_tasks = st.dictionaries(st.sampled_from([f"b{at:02}" for at in range(8)] + ["s0"]), st.integers(1, 7))


@given(drawing=drawings())
@settings(deadline=None)
def test_every_plan_is_a_chain_of_stages(build, drawing):
    plan = compile_graph(build(drawing))
    components = plan.components
    for edge in plan.edges:
        source, target = components[edge.source], components[edge.target]
        if edge.kind is EdgeKind.EXCHANGE:
            assert source.stage < target.stage
        if edge.kind is EdgeKind.LOCAL:
            assert source.stage == target.stage
            names = plan.stages[source.stage].components
            assert names.index(edge.source) < names.index(edge.target)

    forward = [(edge.source, edge.target) for edge in plan.edges if edge.kind is not EdgeKind.CARRIED]
    topological_order(components, forward)  # raises on a cycle
    fed = {edge.target for edge in plan.edges if edge.kind is not EdgeKind.CARRIED}
    assert all(name in fed for name, spec in plan.topology.components.items() if not spec.is_spout)

    assert [stage.index for stage in plan.stages] == list(range(len(plan.stages)))
    assert plan.stages[0].kind is StageKind.SOURCE
    assert plan.stages[-1].kind is StageKind.ACKER
    assert sorted(name for stage in plan.stages for name in stage.components) == sorted(components)
    for stage in plan.stages[:-1]:
        assert stage.components
        assert all(components[name].stage == stage.index for name in stage.components)
    for stage in plan.stages[1:-1]:
        stateless = all(components[name].stateless for name in stage.components)
        assert stage.kind is (StageKind.STATELESS if stateless else StageKind.STATEFUL)


@given(drawing=drawings())
@settings(deadline=None)
def test_what_is_fused_may_be_and_what_may_be_is(build, drawing):
    plan = compile_graph(build(drawing))
    for name, component in plan.components.items():
        inputs = [edge for edge in plan.edges if edge.target == name]
        any_task_will_do = all(edge.grouping.describe() in ("shuffle", "none", "local_or_shuffle") for edge in inputs)
        one_stage = len({plan.components[edge.source].stage for edge in inputs}) == 1
        same_batch = all(edge.kind is not EdgeKind.CARRIED for edge in inputs)
        assert component.fused == (component.stateless and any_task_will_do and one_stage and same_batch)
        assert all((edge.kind is EdgeKind.LOCAL) == component.fused for edge in inputs)


@given(drawing=drawings())
@settings(deadline=None)
def test_no_back_edge_without_a_cycle(build, drawing):
    """Each carried edge is on a cycle of the topology."""
    plan = compile_graph(build(drawing))
    following = {name: {edge.target for edge in plan.edges if edge.source == name} for name in plan.components}
    for edge in plan.edges:
        if edge.kind is EdgeKind.CARRIED:
            reached, front = set(), {edge.target}
            while front:
                reached |= front
                front = set().union(*(following[name] for name in front)) - reached
            assert edge.source in reached


@given(drawing=drawings(), tasks=numbers_of_tasks, partitions=st.integers(1, 9), ackers=st.integers(0, 4))
@settings(deadline=None)
def test_every_task_has_a_key_that_hashes_to_its_partition(build, drawing, tasks, partitions, ackers):
    conf = {Config.TOPOLOGY_ACKER_EXECUTORS: ackers}
    plan = place(compile_graph(build(drawing, tasks), conf), partitions)
    all_tasks = [task for component in plan.components.values() for task in component.tasks]
    all_tasks += plan.acker_tasks
    assert sorted(all_tasks) == list(range(1, len(all_tasks) + 1))
    assert set(plan.placement) == set(plan.keys) == set(all_tasks)
    exchanged = any(operator.exchange for operator in plan.operators)
    assert len(set(plan.keys.values())) == (len(all_tasks) if exchanged else 1)
    if exchanged:
        assert all(partition_of(plan.keys[task], partitions) == plan.placement[task] for task in all_tasks)


@given(drawing=drawings(), partitions=st.integers(1, 3), ackers=st.integers(0, 1))
@settings(deadline=None)
def test_every_plan_is_a_chain_of_operators(build, drawing, partitions, ackers):
    graph = compile_graph(build(drawing), {Config.TOPOLOGY_ACKER_EXECUTORS: ackers})
    plan = place(graph, partitions)
    assert plan.stages == graph.stages
    assert [plan.operators[plan.operator_of[stage.index]].stages.count(stage) for stage in plan.stages] == [
        1 for _ in plan.stages
    ]
    first, *others = plan.operators
    assert (first.exchange, first.source) == (False, Source.SPOUT_LOGS)
    assert all((operator.exchange, operator.source) == (True, None) for operator in others)
    keeps_state = [stage.kind in (StageKind.STATEFUL, StageKind.ACKER) for stage in plan.stages]
    assert len(plan.operators) == (1 if partitions == 1 and any(keeps_state) else len(plan.stages))


@given(drawing=drawings(), tasks=numbers_of_tasks, partitions=st.integers(1, 9))
@settings(deadline=None)
def test_tasks_are_spread_evenly(build, drawing, tasks, partitions):
    plan = place(compile_graph(build(drawing, tasks)), partitions)

    def spread(tasks):
        counts = Counter(plan.placement[task] for task in tasks)
        return max(counts[at] for at in range(partitions)) - min(counts[at] for at in range(partitions))

    for component in plan.components.values():
        assert spread(component.tasks) <= 1
    for stage in plan.stages:
        names = stage.components
        assert spread([task for name in names for task in plan.components[name].tasks]) <= 1
        if stage.index:
            own = [name for name in names if not plan.components[name].fused]
            assert spread([task for name in own for task in plan.components[name].tasks]) <= 1
    assert spread(plan.acker_tasks) <= 1
