"""The other jobs, part by part, without Spark."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import exclamation
import pytest
import reach
import rolling_top_words
import single_join
from hypothesis import given
from hypothesis import strategies as st

from storm_on_spark import ConfigError, compile_topology
from storm_on_spark.testing import BoltTester, SpoutTester, make_tuple, run_bolt, run_spout


def word(text: str) -> Any:
    return make_tuple([text], ["word"])


@pytest.mark.parametrize("job", [exclamation, reach, rolling_top_words, single_join])
def test_a_job_compiles(job: Any) -> None:
    assert compile_topology(job.build(job.conf), job.conf).explain()


def test_exclamation_adds_a_mark_and_anchors() -> None:
    tup = word("storm")
    result = run_bolt(exclamation.ExclamationBolt(), [tup])
    assert [(emission.values, emission.anchors) for emission in result.emitted] == [(("storm!",), (tup,))]
    assert result.acked == [tup]


def test_the_word_spout_emits_the_same_words_whatever_happens() -> None:
    expected = random.Random(1)
    words = [expected.choice(exclamation.NAMES) for _ in range(10)]
    assert [name for (name,) in run_spout(exclamation.WordSpout(10)).values()] == words
    tester = SpoutTester(exclamation.WordSpout(10))
    for _ in range(10):
        tester.next_tuple()
        tester.restart()
    assert [name for (name,) in tester.collector.values()] == words
    tester.fail(tester.collector.pending[3])
    tester.next_tuple(calls=2)
    assert tester.collector.values()[10:] == [(words[3],)]
    assert tester.spout.exhausted()


@given(st.lists(st.lists(st.sampled_from("abcd"), max_size=5), max_size=12), st.integers(1, 4))
def test_the_sliding_window_counts_the_last_slots(phases: list[list[str]], slots: int) -> None:
    counter = rolling_top_words.SlidingWindowCounter(slots)
    for number, phase in enumerate(phases):
        for key in phase:
            counter.add(key)
        window = [key for earlier in phases[max(0, number - slots + 1) : number + 1] for key in earlier]
        assert counter.advance() == Counter(window)


def test_rolling_counts_tell_once_that_a_word_is_gone() -> None:
    tester = BoltTester(rolling_top_words.RollingCount(window_secs=2, emit_secs=1))
    tester.execute(word("a"), word("b"), word("a"))
    for _ in range(2):
        tester.tick()
        tester.restart()
    tester.execute(word("b"))
    tester.tick()
    tester.tick()
    assert tester.collector.values() == [("a", 2), ("b", 1), ("a", 2), ("b", 1), ("a", 0), ("b", 1), ("b", 1)]
    assert len(tester.collector.acked) == 4


def test_rankings_are_merged_by_the_task_that_they_come_from() -> None:
    def counted(text: str, count: int) -> Any:
        return make_tuple([text, count], ["word", "count"])

    rank = BoltTester(rolling_top_words.Rank(2, 1))
    rank.execute(counted("a", 1), counted("b", 3), counted("c", 1))
    rank.tick()
    rank.tick()
    rank.execute(counted("b", 0), counted("c", 7))
    rank.tick()
    assert rank.collector.values() == [((("b", 3), ("a", 1)),), ((("c", 7), ("a", 1)),)]
    total = BoltTester(rolling_top_words.TotalRank(2, 1))
    for task, ranking in [(1, (("a", 5), ("b", 4))), (2, (("c", 9),)), (1, (("b", 3),))]:
        total.execute(make_tuple([ranking], ["ranking"], task=task))
        total.tick()
        total.restart()
    assert total.collector.values() == [
        ((("a", 5), ("b", 4)),),
        ((("c", 9), ("a", 5)),),
        ((("c", 9), ("b", 3)),),
    ]


def gender(key: int, value: str) -> Any:
    return make_tuple([key, value], ["id", "gender"], "genders")


def age(key: int, value: int) -> Any:
    return make_tuple([key, value], ["id", "age"], "ages")


def join_tester() -> BoltTester:
    join = single_join.SingleJoin("id", ("id", "gender", "age"), 10)
    return BoltTester(join, [gender(0, ""), age(0, 0)])


def test_a_joined_row_is_anchored_to_both_tuples_and_acks_both() -> None:
    tester = join_tester()
    first, other, second = gender(1, "f"), age(2, 30), age(1, 20)
    tester.execute(first, other)
    tester.restart()
    tester.execute(second)
    (joined,) = tester.collector.emitted
    assert joined.values == (1, "f", 20)
    # After the restart the held tuple is another object, of the same tree.
    assert [anchor.message_id for anchor in joined.anchors] == [first.message_id, second.message_id]
    assert [tup.message_id for tup in tester.collector.acked] == [first.message_id, second.message_id]
    assert tester.collector.failed == []


def test_a_tuple_without_a_partner_is_failed_at_the_second_tick() -> None:
    tester = join_tester()
    lonely = gender(1, "f")
    tester.execute(lonely)
    tester.tick()
    assert tester.collector.failed == []
    tester.tick()
    assert tester.collector.failed == [lonely]
    tester.execute(age(1, 20))
    assert tester.collector.emitted == []


def test_a_replay_takes_the_place_of_what_waits() -> None:
    tester = join_tester()
    lost, replay, partner = gender(1, "f"), gender(1, "f"), age(1, 20)
    tester.execute(lost, replay, partner)
    assert tester.collector.failed == [lost]
    assert tester.collector.acked == [replay, partner]


def test_people_come_in_an_order_of_their_own_and_again_when_they_fail() -> None:
    tester = SpoutTester(single_join.PersonSpout("age", [20, 21, 22], seed=2))
    tester.next_tuple(calls=2)
    tester.restart()
    tester.fail(tester.collector.pending[0])
    tester.next_tuple(calls=3)
    rows = tester.collector.values()
    assert rows[2] == rows[0]
    assert set(rows) == {(0, 20), (1, 21), (2, 22)}
    assert tester.spout.exhausted()


def test_visit_passes_on_only_what_is_nearer() -> None:
    fields = ["seed", "topic", "distance"]
    inputs = [make_tuple(["s", "a", distance], fields) for distance in (3, 3, 1, 2)]
    bolt = reach.Visit()
    assert run_bolt(bolt, inputs).values() == [("s", "a", 3), ("s", "a", 1)]
    assert bolt.distances == {("s", "a"): 1}


def test_links_are_those_of_the_help_topics() -> None:
    tup = make_tuple(["s", "TYPES", 2], ["seed", "topic", "distance"])
    values = run_bolt(reach.Links(), [tup]).values()
    assert ("s", "STRINGS", 3) in values
    assert all(reach.related(topic) is not None for _, topic, _ in values)


def test_an_unknown_topic_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"reach\.seeds names 'NONSENSE'"):
        reach.build({"reach.seeds": "CLASSES, NONSENSE"})
