"""What a Nimbus may conclude from silence: the table, and random histories against what really happened."""

from __future__ import annotations

import itertools
import pickle
import random
from dataclasses import dataclass, field

import pytest
from cluster_records import assignment, beat, ownership
from hypothesis import given, settings
from hypothesis import strategies as st
from lengths import examples

from storm_on_spark.cluster.heartbeats.rules import RULES, Facts, Hearing, Look, Verdict, judge
from storm_on_spark.cluster.heartbeats.sticky import Sticky
from storm_on_spark.cluster.nimbus.scheduling.liveness import Drivers
from storm_on_spark.cluster.records import WorkerBeat

WINDOW, TIMEOUT, LAUNCH, BEAT = 15.0, 30.0, 120.0, 3.0
ALL_FACTS = [Facts(*flags) for flags in itertools.product([False, True], repeat=4)]


@pytest.mark.parametrize("facts", ALL_FACTS, ids=str)
def test_every_combination_of_facts_has_its_verdict(facts):
    if facts.heard:
        expected = Verdict.BEATS
    elif facts.answers and facts.witness and not facts.hidden:
        expected = Verdict.SILENT
    else:
        expected = Verdict.UNKNOWN
    assert judge(facts).verdict is expected


def test_every_rule_is_needed():
    assert {judge(facts).reason for facts in ALL_FACTS} == {rule.reason for rule in RULES}
    assert len({rule.reason for rule in RULES}) == len(RULES)


def look(hearing, at, servers, reached=frozenset(), **found):
    """`reached` is what the supervisor "s" says wherever it is heard."""
    said = {server: {"s": frozenset(reached)} for server, writers in found.items() if "s" in writers}
    hearing.look(Look(at, frozenset(servers), found, reached=said))


def test_one_that_may_write_to_a_server_that_only_nimbus_misses_is_unknown():
    hearing = Hearing(WINDOW)
    for second in range(0, 99, 3):
        look(hearing, second, ["p", "q"], "pq", **({"p": {"a": second}} if second < 9 else {}), q={"s": second})
        expected = Verdict.BEATS if second < 9 else Verdict.UNKNOWN
        assert hearing.judge("a").verdict is expected
        assert hearing.unknown() is None
    assert hearing.judge("a").reason == "it may use a Pacemaker that doesn't answer this Nimbus"
    assert hearing.away() == {"p": 9}


def test_one_that_stays_silent_though_no_supervisor_reaches_another_server_is_silent():
    hearing = Hearing(WINDOW)
    look(hearing, 0, ["p", "q"], "pq", p={"a": 0, "s": 0}, q={"s": 0})
    look(hearing, 3, ["p", "q"], "pq", q={"s": 3})
    assert hearing.judge("a").verdict is Verdict.UNKNOWN
    look(hearing, 6, ["p", "q"], "q", q={"s": 6})
    assert hearing.judge("a").verdict is Verdict.SILENT
    assert hearing.judge("new").verdict is Verdict.SILENT
    # It is there again for supervisors, and not for this Nimbus.
    look(hearing, 9, ["p", "q"], "pq", q={"s": 9})
    assert hearing.judge("a").verdict is Verdict.UNKNOWN


def test_what_a_supervisor_said_long_ago_does_not_count():
    hearing = Hearing(WINDOW)
    look(hearing, 0, ["p", "q"], "q", q={"s": 0})
    for second in range(3, 15, 3):
        look(hearing, second, ["p", "q"], "q", q={"s": 0, "b": second})
        assert hearing.judge("a").verdict is Verdict.SILENT
    look(hearing, 18, ["p", "q"], "q", q={"s": 0, "b": 18})
    assert hearing.judge("a").verdict is Verdict.UNKNOWN


def test_what_a_supervisor_left_at_a_server_that_it_no_longer_reaches_does_not_count():
    hearing = Hearing(WINDOW)
    said = {"p": {"s": frozenset("pqr")}, "q": {"s": frozenset("q")}}
    look(hearing, 0, ["p", "q", "r"], "pqr", p={"s": 0}, q={"s": 0})
    for server in ("pq", "qp"):
        found = {each: {"s": 0 if each == "p" else 3} for each in server}
        hearing.look(Look(3, frozenset("pqr"), found, reached=said))
        assert hearing.judge("a").verdict is Verdict.SILENT


def test_since_when_heartbeats_are_unknown():
    hearing = Hearing(WINDOW)
    look(hearing, 0, ["p"], p={"a": 0})
    for second in range(3, 16, 3):
        look(hearing, second, ["p"], p={"a": 0})
        assert hearing.unknown() is None
    look(hearing, 18, ["p"], p={"a": 0})
    assert hearing.unknown() == (0, "nobody's heartbeats arrive")
    look(hearing, 21, ["p"])
    assert hearing.unknown() == (0, "no Pacemaker answers")
    look(hearing, 24, ["p"], p={})  # started again, empty
    assert hearing.unknown() == (0, "nobody's heartbeats arrive")
    look(hearing, 27, ["p"], p={"a": 27})
    assert hearing.unknown() is None


def test_nothing_is_unknown_where_nobody_should_beat():
    hearing = Hearing(WINDOW)
    hearing.look(Look(0.0, frozenset({"p"}), {}, expected=False))
    assert hearing.unknown() is None


def test_what_is_remembered_stays_bounded():
    def size_after(looks: int) -> int:
        hearing = Hearing(WINDOW)
        for number in range(1000, 1000 + looks):
            server, writer = f"p{number}", f"t{number}"
            found = {server: {writer: number}}
            reached = {server: {writer: frozenset({server})}}
            hearing.look(Look(number, frozenset({server, "away"}), found, True, reached))
            hearing.keep([writer])
        return len(pickle.dumps(hearing))

    assert size_after(1000) == size_after(100)


# A cluster in which anything may be cut off from anything.


@dataclass
class World:
    """Servers, supervisors' hosts with one driver each, and a Nimbus that reads; a second at a time."""

    chance: random.Random
    servers: list[str]
    hosts: list[str]
    now: float = 0.0
    up: dict[str, bool] = field(default_factory=dict)
    cut: set[tuple[str, str]] = field(default_factory=set)
    """(host or `nimbus`, server) that don't reach each other."""
    hung: set[str] = field(default_factory=set)
    """Drivers that don't beat, on hosts that do."""
    offset: dict[str, float] = field(default_factory=dict)
    """Of hosts' clocks."""
    memory: dict[str, dict[str, float]] = field(default_factory=dict)
    said: dict[str, dict[str, frozenset[str]]] = field(default_factory=dict)
    """Server -> supervisor -> the servers that it said there it reaches."""

    def __post_init__(self):
        self.up = dict.fromkeys(self.servers, True)
        self.memory = {server: {} for server in self.servers}
        self.said = {server: {} for server in self.servers}
        self.sticky = {host: Sticky(self.servers, random.Random(self.chance.random())) for host in self.hosts}
        self.hearing = Hearing(WINDOW)
        self.drivers = Drivers(LAUNCH, TIMEOUT)
        self.assignments = {host: assignment(host, supervisor_id=host) for host in self.hosts}
        self.owners = {host: ownership(host, supervisor_id=host) for host in self.hosts}
        self.beats: dict[str, WorkerBeat] = {}

    def reads(self, server):
        return self.up[server] and ("nimbus", server) not in self.cut

    def second(self):
        self.now += 1.0
        if self.now % BEAT == 0:
            self.beat()
            self.look()
        return self.drivers.silent(self.assignments, self.beats, self.owners, self.now, self.unjudged())

    def unjudged(self):
        return {host for host in self.hosts if self.hearing.judge(host).verdict is not Verdict.SILENT}

    def reaches(self, host, server):
        return self.up[server] and (host, server) not in self.cut

    def beat(self):
        for host in self.hosts:
            sign = self.now + self.offset.get(host, 0.0)
            reached = frozenset(server for server in self.servers if self.reaches(host, server))
            for server in reached:
                self.memory[server][f"supervisor-{host}"] = sign
                self.said[server][f"supervisor-{host}"] = reached
            for _ in self.servers if host not in self.hung else ():
                server = self.sticky[host].choose(self.now)
                if server is None:
                    break
                if server in reached:
                    self.sticky[host].worked(server)
                    self.memory[server][host] = sign
                    break
                self.sticky[host].failed(server, self.now)

    def look(self):
        found = {server: dict(self.memory[server]) for server in self.servers if self.reads(server)}
        self.hearing.look(Look(self.now, frozenset(self.servers), found, reached=self.said))
        for host in self.hosts:
            signs = [signs[host] for signs in found.values() if host in signs]
            if self.hearing.judge(host).verdict is Verdict.BEATS:
                self.beats[host] = beat(host, self.now + sum(signs), supervisor_id=host)


CHANGES = st.sampled_from(
    ["server down", "server up", "all down", "all empty", "cut nimbus", "cut hosts", "heal", "clock", "hang", "quiet"]
)


def apply(world, change, number):
    server = world.servers[number % len(world.servers)]
    host = world.hosts[number % len(world.hosts)]
    if change == "server down":
        world.up[server], world.memory[server] = False, {}
    elif change == "server up":
        world.up[server] = True
    elif change == "all down":
        world.up = dict.fromkeys(world.servers, False)
        world.memory = {each: {} for each in world.servers}
    elif change == "all empty":
        world.up = dict.fromkeys(world.servers, True)
        world.memory = {each: {} for each in world.servers}
    elif change == "cut nimbus":
        world.cut.add(("nimbus", server))
    elif change == "cut hosts":
        world.cut |= {(each, server) for each in world.hosts}
    elif change == "heal":
        world.cut.clear()
    elif change == "clock":
        world.offset[host] = world.offset.get(host, 0.0) + (number - 50) * 1000.0


@settings(max_examples=examples(60), deadline=None)
@given(
    st.integers(0, 1 << 30),
    st.integers(1, 3),
    st.integers(1, 5),
    st.lists(st.tuples(CHANGES, st.integers(0, 100), st.integers(1, 90)), max_size=12),
)
def test_what_happens_to_pacemakers_moves_no_topology(seed, servers, hosts, history):
    """Nobody hangs, and whatever is cut is cut for all hosts: then no silence is any driver's own."""
    names = [f"p{number}" for number in range(servers)]
    world = World(random.Random(seed), names, [f"h{number}" for number in range(hosts)])
    for change, number, seconds in [("quiet", 0, 10), *history, ("heal", 0, 100)]:
        apply(world, change, number)
        for _ in range(seconds):
            assert not world.second(), f"{change} at {world.now}"


@settings(max_examples=examples(60), deadline=None)
@given(
    st.integers(0, 1 << 30),
    st.integers(1, 3),
    st.integers(2, 6),
    st.integers(1, 5),
    st.lists(st.tuples(CHANGES, st.integers(0, 100), st.integers(1, 90)), max_size=6),
)
def test_of_two_sides_of_a_partition_those_that_cannot_beat_are_moved_and_only_those(
    seed, servers, hosts, lost, history
):
    names = [f"p{number}" for number in range(servers)]
    world = World(random.Random(seed), names, [f"h{number}" for number in range(hosts)])
    for change, number, seconds in [("quiet", 0, 10), *history, ("all empty", 0, 1), ("heal", 0, 40)]:
        apply(world, change, number)
        for _ in range(seconds):
            assert not world.second()
    far = set(world.hosts[: min(lost, hosts - 1)])
    world.cut |= {(host, server) for host in far for server in names}
    for second in range(120):
        silent = set(world.second())
        assert silent <= far
        assert second < TIMEOUT + 2 * BEAT or silent == far
        assert second > TIMEOUT - 2 * BEAT or not silent


@settings(max_examples=examples(40), deadline=None)
@given(st.integers(0, 1 << 30), st.integers(1, 3), st.integers(1, 4))
def test_a_driver_that_hangs_is_found_also_where_it_is_the_only_one(seed, servers, hosts):
    names = [f"p{number}" for number in range(servers)]
    world = World(random.Random(seed), names, [f"h{number}" for number in range(hosts)])
    for _ in range(30):
        assert not world.second()
    world.hung.add("h0")
    found = [set(world.second()) for _ in range(int(TIMEOUT + 2 * BEAT))]
    assert found[-1] == {"h0"}
    assert all(each <= {"h0"} for each in found)


@settings(max_examples=examples(40), deadline=None)
@given(st.integers(0, 1 << 30), st.integers(2, 4), st.data())
def test_a_driver_that_hangs_is_found_while_one_server_is_left(seed, servers, data):
    names = [f"p{number}" for number in range(servers)]
    world = World(random.Random(seed), names, [f"h{number}" for number in range(6)])
    for _ in range(30):
        assert not world.second()
    left = data.draw(st.sampled_from(names))
    for server in names:
        if server != left:
            world.up[server], world.memory[server] = False, {}
    for _ in range(60):
        assert not world.second()
    world.hung.add("h0")
    found = [set(world.second()) for _ in range(int(TIMEOUT + 2 * BEAT))]
    assert found[-1] == {"h0"}


@given(
    st.integers(0, 1 << 30), st.integers(1, 5), st.lists(st.tuples(st.booleans(), st.floats(0.0, 20.0)), max_size=60)
)
def test_a_writer_stays_with_a_server_that_works_and_comes_back_to_its_first(seed, servers, history):
    sticky = Sticky([f"p{number}" for number in range(servers)], random.Random(seed))
    first, now = sticky.choose(0.0), 0.0
    for works, pause in history:
        now += pause
        server = sticky.choose(now)
        if server is None:
            assert now < sticky.due() <= now + 5.0
            continue
        if works:
            sticky.worked(server)
            assert sticky.choose(now) == server
        else:
            sticky.failed(server, now)
            assert sticky.choose(now) != server
    assert sticky.choose(now + 6.0) == first
