"""Storm's rules of the guarantees, each with a test through Spark that bears its name.

One topology runs through all of it, with a clock that is driven by hand; each test looks at what its rule is about.
What other files test already, through Spark unless it says otherwise:

| Rule | Test |
|---|---|
| a tree ends in one ack or one fail, at the task that emitted it | `test_reliability.py::test_outcomes_reach_…` |
| ack, fail, anchors and none, within a micro-batch | `test_reliability.py::test_acks_and_fails_count_once_…` |
| to fail one of two held tuples is not to fail the other | the same |
| a tuple that is held is not acked, whatever dies | `test_reliability.py::test_no_tree_is_acked_while_a_bolt_holds_…` |
| a timeout comes between T and 2T; a late ack changes nothing | `test_reliability.py::test_a_message_times_out_…` |
| timeouts can be switched off | `test_reliability.py::test_timeouts_can_be_disabled` |
| `topology.acker.executors: 0` acks at emit, whatever bolts do | `test_reliability.py::test_without_ackers_…` |
| `topology.max.spout.pending` is per task | `test_reliability.py::test_max_spout_pending_holds_for_every_task` |
| a tuple that raises fails alone | `test_reliability.py::test_a_tuple_that_raises_fails_alone_…` |
| joins, diamonds and cycles complete | `test_shapes.py` |
| acks and inits in any order, also before init (no Spark) | `tests/unit/runtime/tracking/test_acker.py` |

Acks before init have no order of their own in Spark: the acker gets a micro-batch's contributions together. What is
left of that rule is a root that the acker doesn't know, or no longer.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from topologies import storm_rules
from topologies.puppets import Orders

from storm_on_spark.runtime.tracking.acker import INIT, AckerState
from storm_on_spark.spark.state import read_bolt_state, state_values
from storm_on_spark.testing import ManualClock, RunningTopology, kill_python_worker, running_topology
from storm_on_spark.testing.faults.leaks import no_leaks

T = 10
"""The message timeout in seconds."""

HELD = ("slow", "left", "right", "lost", "dup1", "dup2", "r1", "r2", "r3", "other", "twice", "late", "gone")
"""The messages that are open from the start; each is about one rule."""


@dataclass
class Moment:
    """What was known at one moment."""

    acked: list[str]
    """Of `HELD`, sorted; one that was told twice is there twice."""
    failed: list[str]
    known: int
    """Roots in the state of the ackers that a spout emitted."""
    unknown: int
    """Records of other roots there."""


@dataclass
class Story:
    """What was seen from the start to the end, by name of the moment."""

    moments: dict[str, Moment] = field(default_factory=dict)
    kept: list[int] = field(default_factory=list)
    """What the bolt behind the spout without message ids has, acked or not."""
    plain_acks: list[object] = field(default_factory=list)

    def __getitem__(self, moment: str) -> Moment:
        return self.moments[moment]

    def told(self, name: str) -> tuple[int, int]:
        """Returns how often the spout was told in all that a message is acked, and that it failed."""
        return self["end"].acked.count(name), self["end"].failed.count(name)


def acker_records(spark: SparkSession, checkpoint: Path) -> tuple[int, int]:
    """Returns how many records with and without INIT the ackers have, as Spark's `statestore` reads them."""
    states = [AckerState.load(value, 1000 * T) for *_, value in state_values(spark, checkpoint, "pending")]
    known = sum(int(((state.marks & INIT) != 0).sum()) for state in states)
    return known, sum(map(len, states)) - known


class Teller:
    """Has the topology live through the story."""

    def __init__(self, spark: SparkSession, orders: Orders, clock: ManualClock, running: RunningTopology) -> None:
        self.spark, self.orders, self.clock, self.running = spark, orders, clock, running
        self.story = Story()

    def do(self, *orders: str) -> None:
        """Returns when all that the orders cause is committed, and the spout has heard of it."""
        self.orders.give(*orders)
        # The outcomes of one micro-batch are told in no order; those of the next one come behind all of them.
        self.orders.round_trip(self.running)
        self.orders.round_trip(self.running)

    def at(self, seconds: float, *orders: str) -> None:
        """Moves the clock, and has orders carried out at that time."""
        self.clock.advance(seconds - self.clock.now_ms() / 1000)
        self.do()  # spouts hear of the time with the next micro-batch
        self.do(*orders)

    def note(self, moment: str) -> None:
        captured = self.running.captured()
        known, unknown = acker_records(self.spark, self.running.checkpoint)
        acked, failed = (
            sorted(order.split()[1] for order in orders if order.startswith("hold "))
            for orders in (captured.acked("told"), captured.failed("told"))
        )
        self.story.moments[moment] = Moment(acked, failed, known, unknown)

    def tell(self) -> Story:
        self.do(
            *(f"hold {name}" for name in HELD),
            *("below slow hold slow-leaf", "ack slow"),
            *("below left,right hold joint", "ack left right"),
            *("below dup1,dup1 hold dup1-leaf", "ack dup1"),
            *("below dup2,dup2,dup2 hold dup2-leaf", "ack dup2"),
            *("below r1,r2,r3 hold shared", "ack r1"),
            *("below twice hold twice-leaf", "ack twice"),
            *("below late hold late-leaf", "ack late"),
            "below gone hold gone-leaf",
            "below - hold free",
        )
        self.note("start")

        # What a bolt has settled it knows also in another process.
        kill_python_worker()
        self.do("ack twice", "fail late")
        self.note("settled again")

        self.do("fail r3")
        self.note("one failed")
        self.do("below - fail shared")
        self.note("shared failed")

        self.do("below - fail gone-leaf")
        self.note("gone failed")
        self.do("ack gone")
        self.note("gone acked")

        self.do("below - ack dup1-leaf", "below - fail dup2-leaf", "below - ack twice-leaf", "below - ack late-leaf")
        self.note("leaves settled")

        self.at(T - 0.1, "below - reset slow-leaf", "below - reset joint")
        self.at(2 * T - 0.1, "below - reset slow-leaf", "below - reset joint")
        self.note("before two timeouts")
        self.at(2 * T)
        self.note("two timeouts")
        self.at(3 * T - 0.1, "below - reset slow-leaf", "below - reset joint")
        self.at(4 * T - 0.1)
        self.note("almost four timeouts")
        self.do("below - ack slow-leaf", "below - ack joint")
        self.note("reset ones acked")

        self.orders.give("end")
        captured = self.running.await_completion()
        self.note("end")
        self.story.plain_acks = [*captured.acked("plain"), *captured.failed("plain")]
        for state in read_bolt_state(self.spark, self.running.checkpoint, "keeper").values():
            self.story.kept += state["kept"]
        return self.story


@pytest.fixture(scope="module")
def story(spark_session: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Story:
    folder = tmp_path_factory.mktemp("rules")
    orders, clock = Orders(folder), ManualClock()
    conf = {"test.notes": str(folder), "topology.message.timeout.secs": T, "topology.profile": "latency"}
    topology = storm_rules.two_layers()
    with (
        no_leaks(spark_session),
        running_topology(topology, conf=conf, clock=clock, spark=spark_session, capture=[]) as running,
    ):
        return Teller(spark_session, orders, clock, running).tell()


def test_to_ack_a_tuple_twice_is_to_ack_it_once(story: Story) -> None:
    # A second ack that counted would leave the tree open for ever, or end it before its leaf is acked.
    assert (story["settled again"].acked, story["settled again"].known) == ([], len(HELD))
    assert "twice" in story["leaves settled"].acked
    assert story.told("twice") == (1, 0)


def test_to_fail_a_tuple_after_its_ack_changes_nothing(story: Story) -> None:
    assert story["settled again"].failed == []
    assert "late" in story["leaves settled"].acked
    assert story.told("late") == (1, 0)


def test_to_fail_a_tuple_of_one_root_fails_that_root_alone(story: Story) -> None:
    assert story["one failed"].failed == ["r3"]
    assert story["one failed"].known == len(HELD) - 1


def test_to_fail_a_tuple_of_several_roots_fails_all_of_them_each_once(story: Story) -> None:
    # r1 is acked where it came from, r2 is still held, and r3 has failed before.
    assert story["shared failed"].failed == ["r1", "r2", "r3"]
    assert [story.told(name) for name in ("r1", "r2", "r3")] == [(0, 1)] * 3


def test_a_tuple_that_is_twice_among_the_anchors_is_acked_and_failed_once(story: Story) -> None:
    assert story["gone acked"].acked == [], "a tree ended before its leaf was acked"
    assert "dup1" in story["leaves settled"].acked
    assert "dup2" in story["leaves settled"].failed
    assert (story.told("dup1"), story.told("dup2")) == ((1, 0), (0, 1))


def test_an_ack_of_a_root_that_the_acker_does_not_know_tells_nobody_and_expires(story: Story) -> None:
    assert "gone" in story["gone failed"].failed
    assert story["gone acked"].unknown == story["gone failed"].unknown + 1, "the ack did not come too late"
    assert story["before two timeouts"].unknown > 0
    assert story["two timeouts"].unknown == 0
    assert story.told("gone") == (0, 1)


def test_reset_timeout_keeps_a_slow_tree_alive_and_every_root_of_the_tuple(story: Story) -> None:
    assert not {"lost", "other"} & set(story["before two timeouts"].failed)
    # Emitted at the same time, and not reset.
    assert {"lost", "other"} <= set(story["two timeouts"].failed)
    assert story["almost four timeouts"].failed == story["two timeouts"].failed
    assert story["almost four timeouts"].known == 3
    assert {"slow", "left", "right"} <= set(story["reset ones acked"].acked)
    assert [story.told(name) for name in ("slow", "left", "right")] == [(1, 0)] * 3
    assert [story.told(name) for name in ("lost", "other")] == [(0, 1)] * 2


def test_tuples_without_message_id_and_unanchored_ones_cost_the_acker_nothing(story: Story) -> None:
    # All of them were in a bolt that never acks, and one unanchored tuple in another, beside the tuples that count.
    assert sorted(story.kept) == list(range(storm_rules.UNTRACKED))
    assert (story["start"].known, story["start"].unknown) == (len(HELD), 0)
    assert story.plain_acks == []


def test_every_message_ends_once_and_the_acker_has_no_state_after_a_drain(story: Story) -> None:
    assert sorted(story["end"].acked + story["end"].failed) == sorted(HELD)
    assert (story["end"].known, story["end"].unknown) == (0, 0)
