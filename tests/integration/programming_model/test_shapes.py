"""What a graph of components may look like, and what components learn about it: joins, diamonds, cycles, streams."""

from __future__ import annotations

from collections import Counter

import pytest
from topologies import shapes
from topologies.notes import read_notes
from topologies.parts import Received
from topologies.shapes import NotingHook

from storm_on_spark import Fields, LocalCluster, TopologyBuilder
from storm_on_spark.spark.state import read_bolt_state, read_pending_roots
from storm_on_spark.testing import ListSpout, ManualClock, run_topology, running_topology


@pytest.mark.representative
def test_joins_and_diamonds_complete_every_tree_of_every_spout(spark_session, complete, tmp_path):
    info = complete(shapes.joined())

    ends = [Received(*record).values[0] for record in read_notes(tmp_path, "received")]
    assert sorted(ends) == list(range(shapes.JOINED))
    assert (info.emitted, info.acked, info.failed, info.pending) == (2 * shapes.JOINED, 2 * shapes.JOINED, 0, 0)
    assert info.components["left"].acked == info.components["right"].acked == shapes.JOINED
    assert info.components["join"].executed == info.components["join"].acked == 2 * shapes.JOINED
    for bolt in ("join", "rejoin"):
        states = read_bolt_state(spark_session, tmp_path / "checkpoint", bolt)
        assert [state["waiting"] for state in states.values()] == [{}, {}]
    assert read_pending_roots(spark_session, tmp_path / "checkpoint") == []


def test_a_cycle_runs_until_its_tuples_are_used_up(spark_session, complete, tmp_path):
    info = complete(shapes.circular(), {"topology.partitions": 2})

    hops = Counter(read_notes(tmp_path, "hops"))
    assert hops == shapes.circular_hops()
    assert len(read_notes(tmp_path, "received")) == shapes.CIRCLED
    assert (info.acked, info.failed) == (shapes.CIRCLED, 0)
    assert not list((tmp_path / "checkpoint" / "storm" / "carried").iterdir())
    assert read_pending_roots(spark_session, tmp_path / "checkpoint") == []


def test_tuples_between_two_tasks_arrive_in_the_order_of_their_emits(spark_session, complete, tmp_path):
    info = complete(shapes.ordered(), {"topology.partitions": 2})

    assert read_notes(tmp_path, "disorder") == []
    doubled = sum(2 if n % 3 == 0 else 1 for n in range(shapes.ORDERED))
    states = read_bolt_state(spark_session, tmp_path / "checkpoint", "end").values()
    assert sum(state["count"] for state in states) == 2 * (shapes.ORDERED + doubled + 2 * doubled)
    assert all(len(state["last"]) == 6 for state in states), "not every task was heard"
    assert info.acked == 2 * shapes.ORDERED
    batches = [int(path.name) for path in (tmp_path / "checkpoint" / "commits").iterdir() if path.name.isdigit()]
    assert max(batches) >= 3, "an order over several micro-batches is what this is about"


def test_components_learn_who_and_where_they_are(spark_session, tmp_path):
    clock = ManualClock()
    conf = {
        "test.notes": str(tmp_path),
        "own.key": "topology",
        "shared.key": "topology",
        "topology.auto.task.hooks": [f"{NotingHook.__module__}.{NotingHook.__qualname__}"],
    }
    with running_topology(shapes.described(), conf=conf, clock=clock, spark=spark_session, capture=[]) as running:
        for _ in range(2):
            before = len(read_notes(tmp_path, "ticks"))
            clock.advance(10)
            running.wait_until(lambda _, n=before: len(read_notes(tmp_path, "ticks")) == n + 5)
        captured = running.await_completion()

    tasks = [2, 3, 4, 5, 6]
    facts = read_notes(tmp_path, "facts")
    assert {fact[0]: fact[1] for fact in facts} == dict(zip(tasks, range(5), strict=True))
    assert {str(fact[2:6]) for fact in facts} == {str(("facts", tasks, "component", "declarer"))}
    assert len({fact[6] for fact in facts}) == 1
    assert all(len(fact[7]) == 2 for fact in facts)

    tuples = read_notes(tmp_path, "tuples")
    assert {(t[1], t[2], t[3], str(t[4])) for t in tuples} == {
        ("streams", "default", 7, "['what', 'n']"),
        ("streams", "odd", 7, "['n']"),
    }
    # The same fields of two streams go to the same task for the same value.
    assert len({(t[0], t[5][-1]) for t in tuples}) == 10
    assert sorted(str(t[5]) for t in tuples) == sorted(
        [str(["plain", n]) for n in range(10)] + [str([n]) for n in range(10)]
    )
    assert Counter(task for task, _ in read_notes(tmp_path, "ticks")) == Counter(dict.fromkeys(tasks, 2))
    assert {rate for _, rate in read_notes(tmp_path, "ticks")} == {10}

    assert captured.info.components["facts"].tasks == 5
    assert sorted(captured.acked("streams")) == sorted(
        (name, n) for name in ("plain", "odd", "unheard") for n in range(10)
    )


def test_hooks_hear_what_their_task_does(spark_session, tmp_path, local_cluster: LocalCluster):
    conf = {
        "test.notes": str(tmp_path),
        "own.key": "",
        "topology.auto.task.hooks": [f"{NotingHook.__module__}.{NotingHook.__qualname__}"],
    }
    local_cluster.submit_topology("hooked", conf, shapes.described())
    assert local_cluster.await_completion("hooked", 60)

    heard = Counter((name, component, what) for name, component, what, *_ in read_notes(tmp_path, "hooks"))
    # Ticks are executed too; how many there are is a matter of time.
    ticks = len(read_notes(tmp_path, "ticks"))
    expected = Counter(
        {
            ("configured", "streams", "emit"): 30,
            ("configured", "streams", "spout_ack"): 30,
            ("configured", "facts", "emit"): 20,
            ("configured", "facts", "bolt_execute"): 20 + ticks,
            ("configured", "facts", "bolt_ack"): 20,
            ("configured", "end", "bolt_execute"): 20,
        }
    )
    expected += Counter({("added", *rest): n for (_, *rest), n in expected.items() if rest[0] == "facts"})
    assert heard == expected


def test_batch_bolts_and_tuple_bolts_feed_each_other(spark_session, complete, tmp_path):
    info = complete(shapes.columnar())

    texts = Counter(shapes.TEXTS)
    empty = texts.pop("")
    received = [Received(*record) for record in read_notes(tmp_path, "received")]
    assert Counter(tup.values for tup in received) == Counter({(text, len(text)): n for text, n in texts.items()})
    assert (info.acked, info.failed) == (len(shapes.TEXTS) - empty, empty)
    sums: Counter[int] = Counter()
    for state in read_bolt_state(spark_session, tmp_path / "checkpoint", "sums").values():
        sums.update(state["sums"])
    expected: Counter[int] = Counter()
    for text, n in texts.items():
        expected[len(text)] += n * len(text)
    assert sums == expected


def test_tuples_without_message_id_are_processed_and_not_tracked(spark_session, complete, tmp_path):
    info = complete(shapes.unreliable())

    assert (info.emitted, info.acked, info.failed, info.pending) == (1000, 0, 0, 0)
    states = read_bolt_state(spark_session, tmp_path / "checkpoint", "tally").values()
    assert sum(state["sum"] for state in states) == sum(range(1000))


def test_a_bolt_may_be_larger_than_what_spark_makes_a_broadcast_of(spark_session):
    builder = TopologyBuilder()
    builder.set_spout("lines", ListSpout(["a"], fields=["line"]))
    builder.set_bolt("sized", shapes.Sized(bytes(3_000_000))).fields_grouping("lines", Fields("line"))
    builder.set_bolt("again", shapes.Sized(bytes(2_000_000)), 2).all_grouping("sized")
    captured = run_topology(builder.create_topology(), spark=spark_session, capture=["sized", "again"])
    assert captured.values("sized") == [(3_000_000,)]
    assert captured.values("again") == [(2_000_000,)] * 2
