"""What each pass turns into what, on small drawings."""

from __future__ import annotations

import itertools
import pickle

import pytest

from storm_on_spark.api import Config
from storm_on_spark.plan.compile import PASSES, PLACING, compile_graph, place
from storm_on_spark.plan.model import EdgeKind, Source, StageKind
from storm_on_spark.plan.passes.graph import find_cycle, topological_order


def stages(plan):
    return [(stage.kind.value, *stage.components) for stage in plan.stages]


def edges_of(plan, kind):
    return [(edge.source, edge.target) for edge in plan.edges if edge.kind is kind]


# --- tasks --------------------------------------------------------------------------------------------------


def test_tasks_count_from_one_by_component_id_and_the_acker_comes_last(build):
    plan = compile_graph(build({"z": [], "b": ["z"], "a": ["z"]}, {"z": 2, "b": 3}))
    assert {name: component.tasks for name, component in plan.components.items()} == {
        "a": (1,),
        "b": (2, 3, 4),
        "z": (5, 6),
    }
    assert plan.acker_tasks == (7,)
    placed = place(plan, 1)
    assert placed.component_of(4) == "b"
    with pytest.raises(KeyError, match="no component has task 7"):
        placed.component_of(7)


@pytest.mark.parametrize(
    ("conf", "ackers"),
    [
        ({}, 1),
        ({Config.TOPOLOGY_WORKERS: 3}, 3),
        ({Config.TOPOLOGY_WORKERS: 3, Config.TOPOLOGY_ACKER_EXECUTORS: 2}, 2),
        ({Config.TOPOLOGY_ACKER_EXECUTORS: None}, 1),
        ({Config.TOPOLOGY_WORKERS: 3, Config.TOPOLOGY_ACKER_EXECUTORS: 0}, 0),
    ],
)
def test_number_of_acker_tasks(build, conf, ackers):
    plan = compile_graph(build({"s": []}), conf)
    assert plan.acker_tasks == tuple(range(2, 2 + ackers))
    assert (plan.stages[-1].kind is StageKind.ACKER) == (ackers > 0)


@pytest.mark.parametrize(
    ("own", "conf", "tasks", "executors"),
    [
        ({}, {}, 4, 4),
        ({Config.TOPOLOGY_TASKS: 6}, {}, 6, 4),
        ({Config.TOPOLOGY_TASKS: 3}, {}, 3, 3),
        ({}, {Config.TOPOLOGY_TASKS: 5}, 5, 4),
        ({}, {Config.TOPOLOGY_MAX_TASK_PARALLELISM: 2}, 2, 2),
        ({Config.TOPOLOGY_MAX_TASK_PARALLELISM: 3}, {Config.TOPOLOGY_MAX_TASK_PARALLELISM: 2}, 3, 3),
        ({Config.TOPOLOGY_MAX_TASK_PARALLELISM: 9}, {}, 4, 4),
    ],
)
def test_number_of_tasks(own, conf, tasks, executors):
    from storm_on_spark.api import BaseRichSpout, TopologyBuilder

    class Spout(BaseRichSpout):
        def next_tuple(self): ...

    builder = TopologyBuilder()
    builder.set_spout("s", Spout(), 4).add_configurations(own)
    component = compile_graph(builder.create_topology(), conf).components["s"]
    assert (len(component.tasks), component.executors) == (tasks, executors)


# --- back edges ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("drawing", "carried"),
    [
        ({"s": [], "a": ["s"]}, []),
        ({"s": [], "a": ["s", "a"]}, [("a", "a")]),
        ({"s": [], "a": ["s", "b"], "b": ["a"]}, [("b", "a")]),
        # The direction away from the spout wins, whatever the names are.
        ({"s": [], "z": ["s", "a"], "a": ["z"]}, [("a", "z")]),
        ({"s": [], "a": ["s", "c"], "b": ["a"], "c": ["b"]}, [("c", "a")]),
        # Both are as near to the spout: the alphabet decides.
        ({"s": [], "b": ["s", "a"], "a": ["s", "b"]}, [("b", "a")]),
        # Two cycles through one edge need one cut.
        ({"s": [], "a": ["s", "d"], "b": ["a"], "c": ["a"], "d": ["b", "c"]}, [("d", "a")]),
        # A diamond has no cycle.
        ({"s": [], "a": ["s"], "b": ["s"], "c": ["a", "b"]}, []),
        # A cycle behind two spouts.
        ({"s": [], "t": [], "a": ["s", "b"], "b": ["t", "a"]}, [("b", "a")]),
    ],
)
def test_back_edges(build, drawing, carried):
    assert edges_of(compile_graph(build(drawing)), EdgeKind.CARRIED) == carried


def test_a_chain_longer_than_pythons_recursion_limit(build):
    names = [f"b{at:05}" for at in range(3000)]
    drawing = {"s": [], names[0]: ["s", f"fields {names[-1]}"]}
    drawing.update({name: [before] for before, name in itertools.pairwise(names)})
    plan = compile_graph(build(drawing))
    assert edges_of(plan, EdgeKind.CARRIED) == [(names[-1], names[0])]


# --- fuse and level -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("grouping", ["shuffle", "local_or_shuffle", "none"])
def test_a_stateless_bolt_fed_by_any_task_will_do_is_fused(build, grouping):
    plan = compile_graph(build({"s": [], "a": [f"{grouping} s"], "b": [f"{grouping} a"]}))
    assert stages(plan) == [("source", "s", "a", "b"), ("acker",)]
    assert [plan.components[name].fused for name in "sab"] == [False, True, True]
    assert edges_of(plan, EdgeKind.LOCAL) == [("s", "a"), ("a", "b")]


@pytest.mark.parametrize("grouping", ["fields", "all", "global", "partial_key", "direct", "custom"])
def test_other_groupings_are_exchanges(build, grouping):
    plan = compile_graph(build({"s": [], "a": [f"{grouping} s"]}))
    assert stages(plan) == [("source", "s"), ("stateless", "a"), ("acker",)]
    assert edges_of(plan, EdgeKind.EXCHANGE) == [("s", "a")]


def test_a_stateful_bolt_is_not_fused(build):
    plan = compile_graph(build({"s": [], "a!": ["s"]}))
    assert stages(plan) == [("source", "s"), ("stateful", "a"), ("acker",)]


def test_a_stateless_bolt_is_fused_with_a_stateful_one(build):
    plan = compile_graph(build({"s": [], "a!": ["fields s"], "b": ["a"], "c!": ["fields b"]}))
    assert stages(plan) == [("source", "s"), ("stateful", "a", "b"), ("stateful", "c"), ("acker",)]


def test_a_bolt_fed_twice_from_one_stage_is_fused(build):
    plan = compile_graph(build({"s": [], "t": [], "a": ["s", "t"]}))
    assert stages(plan) == [("source", "s", "t", "a"), ("acker",)]
    plan = compile_graph(build({"s": [], "a!": ["fields s"], "b!": ["fields s"], "c": ["a", "b"]}))
    assert stages(plan) == [("source", "s"), ("stateful", "a", "b", "c"), ("acker",)]


def test_a_bolt_fed_from_two_stages_comes_after_both(build):
    plan = compile_graph(build({"s": [], "a!": ["fields s"], "b": ["a", "s"]}))
    assert stages(plan) == [("source", "s"), ("stateful", "a"), ("stateless", "b"), ("acker",)]


def test_one_other_grouping_keeps_a_bolt_from_being_fused(build):
    plan = compile_graph(build({"s": [], "t": [], "a": ["s", "fields t"]}))
    assert edges_of(plan, EdgeKind.EXCHANGE) == [("s", "a"), ("t", "a")]


def test_a_bolt_that_a_back_edge_leads_to_is_not_fused(build):
    plan = compile_graph(build({"s": [], "a": ["s", "b"], "b": ["a"]}))
    assert stages(plan) == [("source", "s"), ("stateless", "a", "b"), ("acker",)]
    assert edges_of(plan, EdgeKind.LOCAL) == [("a", "b")]


def test_a_stage_is_stateful_if_one_of_its_components_is(build):
    plan = compile_graph(build({"s": [], "a": ["fields s"], "b!": ["fields s"]}))
    assert stages(plan) == [("source", "s"), ("stateful", "a", "b"), ("acker",)]


def test_the_longest_path_decides(build):
    plan = compile_graph(
        build(
            {
                "s": [],
                "a!": ["fields s"],
                "b!": ["fields a"],
                "c!": ["fields s", "fields b"],
                "d!": ["fields s"],
            }
        )
    )
    assert stages(plan) == [
        ("source", "s"),
        ("stateful", "a", "d"),
        ("stateful", "b"),
        ("stateful", "c"),
        ("acker",),
    ]


def test_components_execute_in_topological_order(build):
    plan = compile_graph(build({"s": [], "a": ["b"], "b": ["c"], "c": ["s"]}))
    assert stages(plan) == [("source", "s", "c", "b", "a"), ("acker",)]


# --- operators ----------------------------------------------------------------------------------------------


def operators(plan):
    return [
        ([stage.kind.value for stage in operator.stages], operator.exchange, operator.state, operator.source)
        for operator in plan.operators
    ]


def test_each_stage_is_an_operator_and_all_but_the_first_get_their_rows_by_an_exchange(build):
    plan = place(compile_graph(build({"s": [], "a": ["fields s"], "b!": ["fields a"]})), 3)
    assert operators(plan) == [
        (["source"], False, False, Source.SPOUT_LOGS),
        (["stateless"], True, False, None),
        (["stateful"], True, True, None),
        (["acker"], True, True, None),
    ]
    assert plan.operator_of == (0, 1, 2, 3)


def test_with_one_partition_one_operator_executes_all_stages(build):
    plan = place(compile_graph(build({"s": [], "a": ["fields s"], "b!": ["fields a"]})), 1)
    assert operators(plan) == [(["source", "stateless", "stateful", "acker"], False, True, Source.SPOUT_LOGS)]
    assert plan.operator_of == (0, 0, 0, 0)


def test_where_nothing_has_state_nothing_is_joined(build):
    graph = compile_graph(build({"s": [], "a": ["fields s"]}), {Config.TOPOLOGY_ACKER_EXECUTORS: 0})
    assert operators(place(graph, 1)) == [
        (["source"], False, False, Source.SPOUT_LOGS),
        (["stateless"], True, False, None),
    ]


# --- the plan -----------------------------------------------------------------------------------------------


def test_the_order_of_declarations_does_not_matter(build):
    drawing = {"s": [], "t": [], "a": ["s", "c"], "b!": ["fields a", "t"], "c": ["b"]}
    plan = compile_graph(build(drawing))
    other = compile_graph(build(dict(reversed(drawing.items()))))
    assert (plan.components, plan.stages) == (other.components, other.stages)
    assert [(e.source, e.target, e.kind) for e in plan.edges] == [(e.source, e.target, e.kind) for e in other.edges]


def test_a_plan_is_immutable_and_can_be_pickled(build):
    plan = place(compile_graph(build({"s": [], "a": ["s"]}), {"my.key": 1}), 2)
    with pytest.raises(TypeError):
        plan.components["b"] = plan.components["a"]
    copy = pickle.loads(pickle.dumps(plan))
    assert (copy.components, copy.operators, copy.edges) == (plan.components, plan.operators, plan.edges)
    assert (copy.stages, copy.keys, copy.placement) == (plan.stages, plan.keys, plan.placement)
    assert dict(copy.conf) == {"my.key": 1}
    assert repr(plan) == "PlacedPlan(source s a | acker)"


def test_every_pass_says_what_it_does():
    assert all(step.__doc__ for step in (*PASSES, *PLACING))
    assert [step.__name__ for step in (*PASSES, *PLACING)] == [
        "validate",
        "assign_tasks",
        "mark_back_edges",
        "judge_statelessness",
        "fuse",
        "level",
        "add_acker",
        "add_operators",
        "join",
        "place_tasks",
        "find_keys",
    ]


# --- graphs -------------------------------------------------------------------------------------------------


def test_a_topological_order_of_a_cycle_is_refused():
    with pytest.raises(ValueError, match=r"there is a cycle among \['a', 'b'\]"):
        topological_order("abc", [("a", "b"), ("b", "a"), ("c", "a")])


def test_no_cycle_is_found_where_there_is_none():
    assert find_cycle("abc", {"a": ["b"], "b": ["c"], "c": []}) == []
