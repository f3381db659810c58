"""What the golden plans don't show."""

from __future__ import annotations

import json
import re

import pytest

from storm_on_spark.api import BaseBasicBolt, BaseRichSpout, BatchSpout, TopologyBuilder
from storm_on_spark.api.config import effective_conf
from storm_on_spark.plan.compile import compile_graph, place
from storm_on_spark.plan.explain.document import explain_dict
from storm_on_spark.plan.explain.mermaid import explain_mermaid
from storm_on_spark.plan.explain.text import explain_text


def test_the_picture_is_a_box_without_ragged_edges(build):
    plan = place(compile_graph(build({"s": [], "a!": ["fields s"], "b": ["a"], "c": ["b", "a"]})), 3)
    lines = explain_text(plan).splitlines()
    edges = [line for line in lines if line[:1] in "┌│└" and line.strip()]
    assert len({len(line) for line in edges}) == 1
    assert all(line == line.rstrip() for line in lines)


def test_a_declared_bolt_is_called_stateless(build):
    assert "stateless: declared" in explain_text(place(compile_graph(build({"s": [], "a": ["s"]})), 1))


def test_many_tasks_are_wrapped(build):
    plan = place(compile_graph(build({"s": [], "a!": ["fields s"]}, {"a": 100})), 40)
    text = explain_text(plan)
    placement = text[text.index("tasks on 40 partitions") :]
    assert max(map(len, placement.splitlines())) <= 102
    assert "tasks 1 to 100" in text


def test_the_document_is_json_and_the_same_every_time(build):
    plan = place(compile_graph(build({"s": [], "a!": ["fields s"], "b": ["a", "b"]})), 2)
    document = explain_dict(plan)
    assert json.loads(json.dumps(document)) == document
    assert list(document) == [
        "operators",
        "stages",
        "partitions",
        "exchanges",
        "components",
        "edges",
        "acker_tasks",
        "live",
        "placement",
        "keys",
    ]
    assert document["edges"][-1] == {
        "source": "b",
        "stream": "default",
        "target": "b",
        "grouping": "shuffle",
        "kind": "carried",
        "becomes": "carried over to the next micro-batch, evenly over task 2",
    }


@pytest.mark.parametrize(
    ("conf", "partitions", "live"),
    [
        ({"topology.profile": "latency"}, 1, None),
        (
            {"topology.profile": "realtime"},
            1,
            "all tasks of bolts and acker, in one process on one core (topology.workers allows up to 2); a micro-batch "
            "each 5000 ms is a checkpoint",
        ),
        (
            {"topology.profile": "realtime", "topology.workers": 3},
            1,
            "all tasks of bolts and acker, in 2 processes; a micro-batch each 5000 ms is a checkpoint",
        ),
        (
            {"topology.profile": "realtime"},
            2,
            "nothing: tasks on 2 partitions execute in micro-batches; topology.partitions must be 1, and "
            "topology.workers says how many live processes there are",
        ),
        (
            {"topology.profile": "realtime", "topology.spouts.placement": "executors"},
            1,
            "nothing: spouts on executors are not heard between micro-batches",
        ),
    ],
)
def test_what_is_live_is_said_and_why_nothing_is(build, conf, partitions, live):
    topology = build({"s": [], "a!": ["fields s"]}, {"a": 2})
    plan = place(compile_graph(topology, effective_conf(conf)), partitions)
    assert explain_dict(plan)["live"] == live
    assert ("live, in a process beside Spark" in explain_text(plan)) == (live is not None)


def test_a_batch_spout_is_a_spout_by_that_name():
    class Columns(BatchSpout):
        def next_batch(self): ...

        def declare_output_fields(self, declarer):
            declarer.declare("n")

    class Bolt(BaseBasicBolt):
        def execute(self, tup, collector): ...

    builder = TopologyBuilder()
    builder.set_spout("columns", Columns(), 2)
    builder.set_bolt("bolt", Bolt()).shuffle_grouping("columns")
    plan = place(compile_graph(builder.create_topology()), 1)
    text = explain_text(plan)
    assert text.startswith("1 spout, 1 bolt")
    assert re.search(r"columns +batch spout +tasks 2, 3 +stateful: a spout", text), text
    assert 'c1(["columns<br/>batch spout, tasks 2, 3"])' in explain_mermaid(plan)
    columns = explain_dict(plan)["components"]["columns"]
    assert (columns["kind"], columns["stateless"]) == ("batch_spout", False)


def test_a_flowchart_survives_odd_names():
    class Spout(BaseRichSpout):
        def next_tuple(self): ...

        def declare_output_fields(self, declarer):
            declarer.declare(['a "b"', "<c>"])

    class Bolt(BaseBasicBolt):
        def execute(self, tup, collector): ...

    odd = 'end "x" <b>|`é`; -->'
    builder = TopologyBuilder()
    builder.set_spout(odd, Spout())
    builder.set_bolt("graph [(]", Bolt()).fields_grouping(odd, ['a "b"', "<c>"])
    text = explain_mermaid(place(compile_graph(builder.create_topology()), 2))
    assert 'c0(["end #34;x#34; #60;b#62;#124;#96;é#96;#59; --#62;<br/>spout, task 1"])' in text
    assert 'c1["graph #91;(#93;<br/>basic bolt, task 2"]' in text
    assert 'c0 ==>|"fields(a #34;b#34;, #60;c#62;)"| c1' in text


def test_a_long_chain_is_drawn(build):
    names = [f"b{at:05}" for at in range(1500)]
    drawing = {"s": [], names[0]: ["s"]}
    drawing.update(zip(names[1:], ([name] for name in names), strict=False))
    assert f"└─ {names[-1]}" in explain_text(place(compile_graph(build(drawing)), 1))
