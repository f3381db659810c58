from __future__ import annotations

import re

import pytest
from cluster_records import storm
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from storm_on_spark.api.errors import ConfigError, InvalidTopologyError
from storm_on_spark.cluster.errors import TransitionError
from storm_on_spark.cluster.nimbus import lifecycle
from storm_on_spark.cluster.records import StormBase, Transition, decode, encode

WAITING = Transition(kind="rebalance", due_at=50.0, previous="INACTIVE")
DYING = Transition(kind="kill", due_at=50.0, previous="ACTIVE")


def base(status="ACTIVE", transition=None, **fields) -> StormBase:
    return storm("words-1-7", name="words", submitted_at=7.0, status=status, transition=transition, **fields)


def test_activate_and_deactivate() -> None:
    assert lifecycle.deactivate(base()) == base("INACTIVE")
    assert lifecycle.deactivate(base("INACTIVE")) == base("INACTIVE")
    assert lifecycle.activate(base("INACTIVE")) == base()
    assert lifecycle.activate(base()) == base()


def test_samples_are_switched_by_component_and_off_as_a_whole() -> None:
    on = lifecycle.sample(lifecycle.sample(base(), "", 10.0), "count", 0.0)
    assert (on.status, on.debug) == ("ACTIVE", {"*": 10.0, "count": 0.0})
    assert lifecycle.sample(on, "", 0.0) == base()
    with pytest.raises(TransitionError, match="101 %, and must be a number from 0 to 100"):
        lifecycle.sample(base(), "count", 101.0)


@pytest.mark.parametrize("action", ["activate", "deactivate", "rebalance"])
@pytest.mark.parametrize("given_base", [base("KILLED", DYING), base("REBALANCING", WAITING)])
def test_what_is_on_its_way_can_only_be_killed(action: str, given_base: StormBase) -> None:
    arguments = (0.0,) if action == "rebalance" else ()
    expected = f'can\'t {action} topology "words": it is {given_base.status}, not ACTIVE or INACTIVE'
    with pytest.raises(TransitionError, match=f"^{re.escape(expected)}$"):
        getattr(lifecycle, action)(given_base, *arguments)


def test_kill_waits_for_the_message_timeout() -> None:
    killed = lifecycle.kill(base(), 100.0)
    assert killed == base("KILLED", Transition(kind="kill", due_at=130.0, previous="ACTIVE"))
    assert lifecycle.kill(base(conf={"topology.message.timeout.secs": 5}), 100.0).transition.due_at == 105.0
    assert lifecycle.finish(killed, 129.9) is killed
    assert lifecycle.finish(killed, 130.0) is None


def test_killed_again_it_waits_anew() -> None:
    again = lifecycle.kill(lifecycle.kill(base("INACTIVE"), 0.0, 1000), 10.0, 0)
    assert again.transition == Transition(kind="kill", due_at=10.0, previous="INACTIVE")
    assert lifecycle.finish(again, 10.0) is None


def test_a_topology_that_is_rebalanced_can_be_killed() -> None:
    killed = lifecycle.kill(base("REBALANCING", WAITING), 40.0, 3)
    assert killed.transition == Transition(kind="kill", due_at=43.0, previous="INACTIVE")


@pytest.mark.parametrize("wait", [-1, float("nan"), float("inf"), 1e12])
def test_waits_that_make_no_sense(wait: float) -> None:
    for action in (lifecycle.kill, lifecycle.rebalance):
        with pytest.raises(TransitionError, match=r'^topology "words": can\'t wait .* s, only 0 to '):
            action(base(), 0.0, wait)


def test_rebalance_asks_for_a_new_launch_with_the_changes() -> None:
    before = base("INACTIVE", conf={"topology.debug": True, "my.key": 1, "gone": 2}, executors={"split": 1})
    changes = {"my.key": 3, "topology.debug": None, "gone": None, "topology.workers": 2}
    waiting = lifecycle.rebalance(before, 10.0, 5, changes, {"count": 2}, {"count": 2, "split": 2})
    assert (waiting.status, waiting.launch, waiting.conf) == ("REBALANCING", 1, before.conf)
    assert lifecycle.finish(waiting, 14.9) is waiting
    after = lifecycle.finish(waiting, 15.0)
    assert after == base(
        "INACTIVE", launch=2, conf={"my.key": 3, "topology.workers": 2}, executors={"split": 1, "count": 2}
    )


def test_a_rebalance_that_can_not_be() -> None:
    with pytest.raises(ConfigError, match=r'^rebalance of topology "words": unknown key "topology.debugg"'):
        lifecycle.rebalance(base(), 0.0, conf={"topology.debugg": True})
    with pytest.raises(ConfigError, match=r"topology\.checkpoint\.dir can't change while it lives"):
        lifecycle.rebalance(base(conf={"topology.checkpoint.dir": "/a"}), 0.0, conf={"topology.checkpoint.dir": "/b"})
    same = lifecycle.rebalance(
        base(conf={"topology.checkpoint.dir": "/a"}), 0.0, 0, conf={"topology.checkpoint.dir": "/a"}
    )
    assert same.status == "REBALANCING"
    with pytest.raises(
        InvalidTopologyError, match=r'^topology "words" has no component "x"; its components: "a", "b"$'
    ):
        lifecycle.rebalance(base(), 0.0, executors={"x": 1}, tasks={"b": 1, "a": 1})
    for count in (0, 3):
        with pytest.raises(InvalidTopologyError, match=r'^component "a" of topology "words" can have 1 to 2 executors'):
            lifecycle.rebalance(base(), 0.0, executors={"a": count}, tasks={"a": 2})


class Life(RuleBasedStateMachine):
    """Whatever is asked in whatever order: what holds of a topology, and that it survives its codec."""

    def __init__(self) -> None:
        super().__init__()
        self.base: StormBase | None = base()
        self.now = 0.0
        self.launches = 1

    @rule(action=st.sampled_from(["activate", "deactivate"]))
    def switch(self, action: str) -> None:
        if self.base is None:
            return
        if self.base.transition is None:
            self.base = getattr(lifecycle, action)(self.base)
        else:
            with pytest.raises(TransitionError):
                getattr(lifecycle, action)(self.base)

    @rule(action=st.sampled_from(["kill", "rebalance"]), wait=st.floats(0, 100) | st.none())
    def leave(self, action: str, wait: float | None) -> None:
        if self.base is None or (action == "rebalance" and self.base.transition is not None):
            return
        self.base = getattr(lifecycle, action)(self.base, self.now, wait)

    @rule(seconds=st.floats(0, 60))
    def time_passes(self, seconds: float) -> None:
        self.now += seconds
        if self.base is None:
            return
        before = self.base
        self.base = lifecycle.finish(before, self.now)
        if before.transition is None or before.transition.due_at > self.now:
            assert self.base is before
        elif before.transition.kind == "kill":
            assert self.base is None
        else:
            assert self.base is not None
            assert self.base.status == before.transition.previous
            self.launches += 1

    @invariant()
    def holds(self) -> None:
        if self.base is None:
            return
        assert (self.base.transition is not None) == (self.base.status in ("KILLED", "REBALANCING"))
        assert self.base.transition is None or self.base.transition.previous in ("ACTIVE", "INACTIVE")
        assert self.base.launch == self.launches
        assert decode(StormBase, encode(self.base), "here") == self.base


test_life = Life.TestCase


@given(st.floats(0, 1e9), st.floats(0, 1e6))
def test_finishing_twice_is_finishing_once(now: float, wait: float) -> None:
    waiting = lifecycle.rebalance(base(), now, wait)
    after = lifecycle.finish(waiting, now + wait)
    assert after is not None
    assert lifecycle.finish(after, now + 2 * wait) is after
