"""What may change between two starts from one checkpoint, and what may not."""

from __future__ import annotations

import json

import pytest

from storm_on_spark.api import BaseBasicBolt, BaseRichSpout, Config, TopologyBuilder
from storm_on_spark.plan.compile import compile_graph, place
from storm_on_spark.plan.fingerprint import compare, fingerprint

WORDS = {"s": [], "split": ["s"], "count!": ["fields split"]}
TASKS = {"count": 2, "split": 2}


@pytest.fixture
def printed(build):
    def printed(drawing=WORDS, tasks=TASKS, partitions=2, conf=None):
        plan = compile_graph(build(drawing, tasks), conf)
        # As it comes back from the checkpoint.
        return json.loads(json.dumps(fingerprint(place(plan, partitions))))

    return printed


def test_the_same_topology_may_go_on(printed):
    assert compare(printed(), printed()) == []


@pytest.mark.parametrize(
    ("drawing", "tasks", "conf"),
    [
        pytest.param({**WORDS, "z": ["split"]}, TASKS, {}, id="a stateless bolt more"),
        pytest.param({**WORDS, "z": ["fields count"]}, {**TASKS, "z": 7}, {}, id="a stateless stage more"),
        pytest.param({**WORDS, "split": ["fields s"]}, TASKS, {}, id="another grouping"),
        pytest.param(WORDS, {"count": 2, "split": 2}, {"topology.debug": True}, id="configuration"),
    ],
)
def test_what_has_no_state_may_change(printed, drawing, tasks, conf):
    assert compare(printed(), printed(drawing, tasks, conf=conf)) == []


def test_the_number_of_executors_may_change():
    class Spout(BaseRichSpout):
        def next_tuple(self): ...

        def declare_output_fields(self, declarer):
            declarer.declare("key")

    class Count(BaseBasicBolt):
        stateless = False

        def execute(self, tup, collector): ...

    def printed(executors):
        builder = TopologyBuilder()
        builder.set_spout("s", Spout())
        builder.set_bolt("count", Count(), executors).set_num_tasks(4).fields_grouping("s", "key")
        return fingerprint(place(compile_graph(builder.create_topology()), 2))

    assert compare(printed(4), printed(1)) == []


def test_partitions(printed):
    assert compare(printed(), printed(partitions=3))[0] == (
        "the checkpoint was written with 2 partitions, which can't become 3"
    )


def test_number_of_acker_tasks(printed):
    assert compare(printed(), printed(conf={Config.TOPOLOGY_ACKER_EXECUTORS: 2})) == [
        "there were 1 acker tasks and now there are 2, but each holds pending tuple trees: "
        "set topology.acker.executors to 1"
    ]
    assert compare(printed(), printed(conf={Config.TOPOLOGY_ACKER_EXECUTORS: 0})) == [
        "there were 1 acker tasks and now there are 0, but each holds pending tuple trees: "
        "set topology.acker.executors to 1",
        "the query had the stateful stages stateful, acker and now has stateful, which mixes up their state",
    ]


def test_tasks_of_a_stateful_component(printed):
    problems = compare(printed(), printed(tasks={**TASKS, "count": 3}))
    assert problems[0] == ('bolt "count" had tasks 1, 2 and now has tasks 1, 2, 3; the number of tasks is fixed')
    assert problems[1] == (
        'spout "s" had task 3 and now has task 4, because components that come before it in the alphabet '
        "were added, removed or given other tasks"
    )


def test_a_component_before_stateful_ones_shifts_their_tasks(printed):
    problems = compare(printed(), printed({**WORDS, "a": ["fields s"]}))
    assert [problem.partition(",")[0] for problem in problems] == [
        'bolt "count" had tasks 1',
        'spout "s" had task 3 and now has task 4',
    ]


def test_a_component_with_state_is_gone(printed):
    old = printed({**WORDS, "total!": ["fields split"]})
    assert compare(old, printed()) == ['bolt "total" is gone, but the checkpoint holds its state']


def test_a_stateful_component_has_become_stateless(printed):
    old = printed({**WORDS, "total!": ["fields split"]})
    new = printed({**WORDS, "total": ["fields split"]})
    assert compare(old, new) == ['bolt "total" has become stateless, but the checkpoint holds its state']


def test_a_spout_has_become_a_bolt(printed):
    old = printed({"s": [], "t": [], "count!": ["fields s"]}, {})
    new = printed({"s": [], "t!": ["fields s"], "count!": ["fields s"]}, {})
    assert compare(old, new) == ['spout "t" has become a bolt, but the checkpoint holds its state']


def test_a_stateful_stage_more(printed):
    new = printed({**WORDS, "total!": ["fields count"]})
    assert compare(printed(), new) == [
        "the query had the stateful stages stateful, acker and now has stateful, stateful, acker, "
        "which mixes up their state"
    ]


def test_a_stateful_component_in_another_stage(printed):
    old = printed({"s": [], "a!": ["fields s"], "b!": ["fields a"], "c!": ["fields s"]}, {})
    new = printed({"s": [], "a!": ["fields s"], "b!": ["fields a"], "c!": ["fields a"]}, {})
    assert compare(old, new) == ['bolt "c" has moved to another stateful stage, where its state is not found']


def test_a_stateful_component_on_other_partitions(printed):
    old = printed({"s": [], "a!": ["fields s"]}, {})
    new = printed({"s": [], "a!": ["fields s"]}, {})
    new["components"]["a"]["keys"] = [99]
    assert compare(old, new) == ['bolt "a" moves to other partitions, because bolts with state were added']


def test_state_that_pushes_the_acker_away(printed):
    new = printed({**WORDS, "z!": ["fields split"]})
    assert compare(printed(), new) == ["the acker moves to other partitions, because bolts with state were added"]


def test_fields_of_a_spout(printed):
    new = printed()
    new["components"]["s"]["streams"]["default"] = ["key"]
    del new["components"]["s"]["streams"]["side"]
    assert compare(printed(), new) == [
        'spout "s" had a stream "default" with the fields key, value and now has key, but the spout log may hold '
        "tuples of it",
        'spout "s" had a stream "side" with the fields key and now has none, but the spout log may hold tuples of it',
    ]


def test_a_back_edge_is_gone(printed):
    old = printed({"s": [], "a": ["s", "b"], "b": ["a"]}, {})
    assert compare(old, printed({"s": [], "a": ["s"], "b": ["a"]}, {})) == [
        'the back edge from stream "default" of "b" to "a" is gone, but the checkpoint may hold tuples on their '
        "way over it"
    ]


def test_tasks_that_a_back_edge_leads_to(printed):
    old = printed({"s": [], "t": ["s", "u"], "u": ["t"]}, {})
    new = printed({"s": [], "t": ["s", "u"], "u": ["t"]}, {"t": 2})
    assert compare(old, new) == [
        'bolt "t", to which the back edge from stream "default" of "u" to "t" leads, had task 2 and now has '
        "tasks 2, 3; the number of tasks is fixed"
    ]


def test_an_unknown_version(printed):
    assert compare({**printed(), "version": 1}, printed()) == [
        "the checkpoint's plan has format version 1; this release reads 2: start the topology with the release that "
        "wrote it, or with another checkpoint directory"
    ]
    [refused] = compare({}, printed())
    assert refused.startswith("the checkpoint's plan has format version None; this release reads 2")
