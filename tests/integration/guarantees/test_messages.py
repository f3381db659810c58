"""What a spout hears of its messages: under any id, in any state of the topology, whoever says it and when."""

from __future__ import annotations

from collections import Counter

from topologies import messages, puppets
from topologies.notes import read_notes

from storm_on_spark.testing import ManualClock, run_topology, running_topology


def test_message_ids_may_be_anything_that_can_be_pickled_and_need_not_differ(nothing_left_behind, spark_session):
    captured = run_topology(messages.odd(), spark=spark_session, capture=[])

    told = [("ack", o.message_id) for o in captured.acks] + [("fail", o.message_id) for o in captured.fails]
    first = [(what, message_id) for message_id, what in messages.IDS if message_id is not None]
    # Emits from `ack` and from `fail` are messages as any other.
    second = [("fail" if what == "ack" else "ack", f"from {what} of {message_id!r}") for what, message_id in first]
    # 7, 7.0 and False are equal, but not the same.
    assert Counter(map(repr, told)) == Counter(map(repr, first + second))
    assert captured.info.emitted == len(messages.IDS) + len(second)
    assert captured.info.pending == 0


def test_a_spout_that_is_inactive_hears_acks_and_fails_and_a_tick_may_say_them(
    nothing_left_behind, spark_session, tmp_path
):
    orders, clock = puppets.Orders(tmp_path), ManualClock()
    conf = {"test.notes": str(tmp_path), "topology.message.timeout.secs": 100 * messages.TICK}

    def held() -> list[str]:
        return [order for (order,) in read_notes(tmp_path, "held")]

    with running_topology(messages.ticking(), conf=conf, spark=spark_session, capture=[], clock=clock) as running:
        orders.give("good 1", "bad 2", "good 3")
        running.wait_until(lambda _: len(held()) == 3)
        assert not running.query.drain(0)
        running.wait_until(lambda _: read_notes(tmp_path, "deactivated"))
        orders.give("good 4")
        clock.advance(messages.TICK)
        captured = running.wait_until(lambda captured: len(captured.acks) + len(captured.fails) == 3)
        assert (sorted(captured.acked()), captured.failed()) == (["good 1", "good 3"], ["bad 2"])
        # Nothing is pending any more, and what was ordered meanwhile waits.
        assert running.query.drain(60)
        assert held() == ["good 1", "bad 2", "good 3"]

        running.query.activate()
        orders.give("end")
        running.wait_until(lambda _: len(held()) == 4)
        clock.advance(messages.TICK)
        captured = running.await_completion()
    assert (sorted(captured.acked()), captured.failed()) == (["good 1", "good 3", "good 4"], ["bad 2"])
