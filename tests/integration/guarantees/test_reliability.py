"""Storm's promise, rule by rule, through Spark: every tuple tree ends in one ack or one fail."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from topologies import puppets, reliable
from topologies.notes import read_notes
from topologies.parts import Received

from storm_on_spark.runtime.tracking.acker import AckerState
from storm_on_spark.spark.state import read_bolt_state, read_pending_roots
from storm_on_spark.testing import ManualClock, kill_python_worker, run_topology, running_topology

T = 10
"""The message timeout in seconds where a clock is driven by hand."""


@pytest.fixture
def orders(tmp_path: Path) -> puppets.Orders:
    return puppets.Orders(tmp_path)


def puppet_conf(tmp_path: Path, **more: object) -> dict[str, object]:
    return {"test.notes": str(tmp_path), "topology.message.timeout.secs": T, **more}


@pytest.mark.representative
def test_outcomes_reach_the_task_that_emitted_with_its_message_id_and_once(
    nothing_left_behind, spark_session, tmp_path
):
    conf = {"test.notes": str(tmp_path), "topology.acker.executors": 3}
    captured = run_topology(reliable.judged(), conf=conf, spark=spark_session, capture=[])

    expected = {n: "fail" if n % 3 == 0 else "ack" for n in range(reliable.JUDGED)}
    outcomes = [("ack", o) for o in captured.acks] + [("fail", o) for o in captured.fails]
    assert len({outcome.task for _, outcome in outcomes}) == 3
    for what, outcome in outcomes:
        name, task, rest = outcome.message_id
        assert (name, task) == ("letter", outcome.task)
        assert expected[rest["n"]] == what
        assert outcome.latency_ms > 0
    told = Counter((outcome.task, outcome.message_id[2]["n"]) for _, outcome in outcomes)
    assert len(told) == 3 * reliable.JUDGED
    assert set(told.values()) == {1}


@pytest.mark.representative
def test_acks_and_fails_count_once_and_anchors_decide_what_they_reach(
    nothing_left_behind, spark_session, tmp_path, orders
):
    expected = {
        "alone ack ack": "ack",
        "alone ack fail": "ack",
        "alone fail ack": "fail",
        "alone fail fail": "fail",
        "unanchored ack": "ack",
        "unanchored fail": "ack",
        "unanchored ignore": "ack",
        "hold child": "ack",
        "hold orphan": "fail",
        "hold twice": "ack",
        "hold both": "fail",
        "hold left": "ack",
        "hold right": "ack",
        "hold red": "fail",
        "hold blue": "fail",
        "hold one": "fail",
        "hold other": "ack",
    }
    orders.give(
        *expected,
        *("child child ack", "ack child"),
        *("child orphan fail", "ack orphan"),
        *("twice twice ack", "ack twice"),
        *("child both ack", "child both fail", "ack both"),
        # A join of two trees: the child counts for both, and fails both, once.
        *("join left right ack", "ack left", "ack right"),
        *("join red blue fail", "ack red", "ack blue", "fail red blue"),
        # To fail one of two tuples is not to fail the other.
        *("fail one", "ack other"),
        "end",
    )
    captured = run_topology(puppets.puppets(), conf=puppet_conf(tmp_path), spark=spark_session, capture=[])

    outcomes = [(o.message_id, "ack") for o in captured.acks] + [(o.message_id, "fail") for o in captured.fails]
    named = sorted(outcome for outcome in outcomes if outcome[0] in expected)
    assert named == sorted(expected.items())
    assert len(outcomes) == len(set(outcomes)) == captured.info.emitted


def test_no_tree_is_acked_while_a_bolt_holds_a_tuple_of_it_over_micro_batches_and_workers(
    nothing_left_behind, spark_session, tmp_path, orders
):
    held = [f"hold {n}" for n in range(300)]
    conf = puppet_conf(tmp_path, **{"topology.acker.executors": 3})
    with running_topology(
        puppets.puppets(), conf=conf, spark=spark_session, capture=[], clock=ManualClock()
    ) as running:
        orders.give(*held)
        orders.round_trip(running)
        pids = {kill_python_worker() for _ in range(2)}
        assert len(pids) == 2, "the fault did not happen twice"
        captured = orders.round_trip(running)
        assert not set(held) & set(captured.acked())
        assert captured.info.pending >= len(held)

        # The acker's state is what Spark's own reader says, and its roots are spread evenly over three ackers.
        states = acker_states(spark_session, running.checkpoint)
        assert sum(map(len, states)) >= len(held)
        assert min(map(len, states)) >= len(held) // 3 - 2
        assert len(states) == 3

        orders.give(*(f"ack {n}" for n in range(299)), "fail 299", "end")
        captured = running.await_completion()
        assert Counter(captured.acked()) == Counter(
            [*held[:-1], *(f"ack {n}" for n in range(299)), "fail 299", "ping 1", "ping 2"]
        )
        assert captured.failed() == ["hold 299"]
        assert read_pending_roots(spark_session, running.checkpoint) == []


def acker_states(spark: SparkSession, checkpoint: Path) -> list[AckerState]:
    operators = spark.read.format("state-metadata").load(str(checkpoint)).collect()
    # Operators are numbered from the sink on.
    ackers = spark.read.format("statestore").option("operatorId", min(row["operatorId"] for row in operators))
    rows = ackers.option("stateVarName", "state").load(str(checkpoint)).collect()
    assert {row["user_map_key"]["name"] for row in rows} == {"pending"}
    return [AckerState.load(bytes(row["user_map_value"]["value"]), 1000 * T) for row in rows]


def test_a_message_times_out_between_one_and_two_timeouts_after_its_emit(
    nothing_left_behind, spark_session, tmp_path, orders
):
    clock = ManualClock()

    def at(seconds: float, *then: str) -> object:
        clock.advance(seconds - clock.now_ms() / 1000)
        orders.round_trip(running)  # spouts hear of the time with the next micro-batch
        orders.give(*then)
        return orders.round_trip(running)

    with running_topology(
        puppets.puppets(), conf=puppet_conf(tmp_path), spark=spark_session, capture=[], clock=clock
    ) as running:
        at(0, "hold first", "hold again", "hold lost")
        at(T - 1, "hold second")
        assert at(T, "hold third", "hold fourth").failed() == []
        assert at(2 * T - 0.1, "reset again", "child lost ignore", "ack lost").failed() == []
        clock.advance(0.1)
        early = {"hold first", "hold second", "hold lost"}
        running.wait_until(lambda captured: set(captured.failed()) == early)
        # An ack that comes too late changes nothing.
        assert set(at(3 * T - 0.1, "ack first", "ack fourth").failed()) == early
        assert "hold fourth" in running.captured().acked()
        clock.advance(0.1)
        late = {"hold third", "hold again"}
        captured = running.wait_until(lambda captured: set(captured.failed()) == early | late)
        orders.give("end")
        captured = running.await_completion()
    assert len(captured.failed()) == 5
    assert not (early | late) & set(captured.acked())
    assert captured.info.failed == 5


def test_timeouts_can_be_disabled(nothing_left_behind, spark_session, tmp_path, orders):
    clock = ManualClock()
    conf = puppet_conf(tmp_path, **{"topology.enable.message.timeouts": False})
    with running_topology(puppets.puppets(), conf=conf, spark=spark_session, capture=[], clock=clock) as running:
        orders.give("hold me")
        for _ in range(3):
            clock.advance(5 * T)
            captured = orders.round_trip(running)
        assert captured.failed() == []
        # Counts follow the outcomes a moment later.
        running.wait_until(lambda captured: captured.info.pending == 1)
        orders.give("ack me", "end")
        captured = running.await_completion()
    assert "hold me" in captured.acked()
    assert captured.failed() == []


def test_without_ackers_a_message_is_acked_when_it_is_emitted(nothing_left_behind, spark_session):
    conf = {"topology.acker.executors": 0}
    captured = run_topology(reliable.failing(), conf=conf, spark=spark_session, capture=[])

    assert Counter(captured.acked()) == Counter(range(200))
    assert captured.failed() == []
    assert captured.info.components["fail"].failed == 200
    assert {ack.latency_ms for ack in captured.acks} == {None}


def test_max_spout_pending_holds_for_every_task(complete, tmp_path):
    info = complete(reliable.limited())

    assert info.acked == 84
    most = dict(read_notes(tmp_path, "most"))
    assert sorted(most.values()) == [7, 7]


def test_replay_sees_every_message_through_however_often_it_fails_at_random(complete, tmp_path):
    seed = random.randrange(1 << 30)
    info = complete(reliable.replayed(), {"test.seed": seed})

    times = {number: reliable.fails_of(seed, number) for number in range(reliable.REPLAYED)}
    fails = sum(times.values())
    assert set(times.values()) == {0, 1, 2, 3}, seed
    assert (info.acked, info.failed, info.pending) == (reliable.REPLAYED, fails, 0)
    assert info.emitted == reliable.REPLAYED + fails
    received = [Received(*record).values for record in read_notes(tmp_path, "received")]
    assert sorted(n for n, through in received if through) == list(range(reliable.REPLAYED))
    assert Counter(n for n, through in received if not through) == +Counter(times), seed


def test_a_tuple_that_raises_fails_alone_and_leaves_no_trace_in_state_or_output_and_reports_are_throttled(
    spark_session, complete, tmp_path
):
    most = 3
    info = complete(
        reliable.poisoned(),
        {"topology.max.error.report.per.interval": most, "topology.error.throttle.interval.secs": 3600},
    )

    numbers = range(reliable.POISONED)
    fates = {n: reliable.fate(n) for n in numbers}
    raised = [n for n in numbers if fates[n] == "raise"]
    assert info.failed == sum(what != "pass" for what in fates.values())
    assert info.acked == sum(what == "pass" for what in fates.values())

    basic = read_bolt_state(spark_session, tmp_path / "checkpoint", "basic").values()
    assert sorted(n for state in basic for n in state["seen"]) == [n for n in numbers if n not in raised]
    assert sum(state["sum"] for state in basic) == sum(numbers) - sum(raised)
    rich = read_bolt_state(spark_session, tmp_path / "checkpoint", "rich").values()
    assert sum(state["sum"] for state in rich) == sum(numbers) - sum(raised)
    received = sorted(Received(*record).values[0] for record in read_notes(tmp_path, "received"))
    assert received == [n for n in numbers if n not in raised]

    errors = {error.message for error in info.components["basic"].errors}
    assert any("ValueError" in message and "is poison" in message for message in errors)
    assert not any("is failed" in message for message in errors)
    assert Counter(error.task for error in info.components["basic"].errors).most_common(1)[0][1] == most
    assert info.components["basic"].failed == info.failed
    assert info.components["rich"].failed == len(raised)


def test_a_small_micro_batch_limit_splits_the_input_and_drops_nothing(complete, tmp_path):
    info = complete(reliable.slow_feed(), {"topology.profile": "latency", "topology.batch.max.tuples": 200})

    assert info.acked == 2000
    received = sorted(Received(*record).values[0] for record in read_notes(tmp_path, "received"))
    assert received == list(range(2000))
    commits = [path for path in (tmp_path / "checkpoint" / "commits").iterdir() if path.name.isdigit()]
    assert len(commits) >= 5
