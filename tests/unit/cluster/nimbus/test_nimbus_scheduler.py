from __future__ import annotations

import time
from collections import Counter

import cluster_records
from cluster_records import assignment, storm
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from storm_on_spark.cluster.nimbus.scheduling.scheduler import Decision, schedule
from storm_on_spark.cluster.records import Assignment, StormBase, SupervisorInfo, Transition


def supervisor(name: str, slots: int = 2) -> SupervisorInfo:
    return cluster_records.supervisor(name, host=f"host-{name}", slots=tuple(range(6700, 6700 + slots)))


def world(supervisors: dict[str, int], topologies: int):
    return (
        {f"t{i:03}": storm(f"t{i:03}", submitted_at=float(i)) for i in range(topologies)},
        {name: supervisor(name, slots) for name, slots in supervisors.items()},
    )


def decide(storms, assignments, supervisors, owned=(), finished=(), epoch=1, now=0.0, silent=()) -> Decision:
    return schedule(storms, assignments, supervisors, owned, finished, epoch, now, silent)


def applied(assignments: dict[str, Assignment], decision: Decision) -> dict[str, Assignment]:
    kept = {name: assignment for name, assignment in assignments.items() if name not in decision.remove}
    return {**kept, **{assignment.topology_id: assignment for assignment in decision.assign}}


def test_an_even_spread() -> None:
    storms, supervisors = world({"a": 4, "b": 4, "c": 4}, 7)
    placed = applied({}, decide(storms, {}, supervisors))
    assert sorted(Counter(a.supervisor_id for a in placed.values()).values()) == [2, 2, 3]
    assert len({(a.supervisor_id, a.port) for a in placed.values()}) == 7


def test_of_equals_the_one_with_the_most_free_slots() -> None:
    storms, supervisors = world({"a": 1, "b": 5}, 1)
    assert decide(storms, {}, supervisors).assign[0].supervisor_id == "b"


def test_what_runs_is_left_alone() -> None:
    storms, supervisors = world({"a": 4, "b": 4}, 4)
    placed = applied({}, decide(storms, {}, {"a": supervisors["a"]}))
    assert {a.supervisor_id for a in placed.values()} == {"a"}
    assert decide(storms, placed, supervisors, owned=set(storms), epoch=2) == Decision()
    assert decide(storms, placed, supervisors, owned=(), epoch=2) == Decision(), "the supervisor restarts its drivers"


def test_a_dead_supervisors_topologies_move_once_their_drivers_are_gone_too() -> None:
    storms, supervisors = world({"a": 2, "b": 2}, 3)
    placed = applied({}, decide(storms, {}, supervisors))
    on_a = sorted(name for name, a in placed.items() if a.supervisor_id == "a")
    left = {"b": supervisors["b"]}
    assert decide(storms, placed, left, owned=on_a) == Decision()
    decision = decide(storms, placed, left, owned=on_a[:1], epoch=9, now=5.0)
    assert [(a.topology_id, a.supervisor_id, a.epoch, a.assigned_at) for a in decision.assign] == [
        (on_a[1], "b", 9, 5.0)
    ]


def test_without_room_it_waits_and_the_reason_is_said() -> None:
    storms, supervisors = world({"a": 2}, 3)
    decision = decide(storms, {}, supervisors)
    assert [a.topology_id for a in decision.assign] == ["t000", "t001"], "who came first is served first"
    assert decision.waiting == {"t002": "all 2 slots of 1 supervisors are taken"}
    assert decide(storms, {}, {}).waiting["t000"] == "no supervisor with a slot is alive"


def test_a_new_launch_gets_a_slot_and_may_take_its_own() -> None:
    storms, supervisors = world({"a": 1}, 1)
    placed = applied({}, decide(storms, {}, supervisors))
    again = {"t000": replace(storms["t000"], launch=2)}
    (assignment,) = decide(again, placed, supervisors, owned=["t000"]).assign
    assert (assignment.supervisor_id, assignment.port, assignment.launch) == ("a", 6700, 2)


def test_what_is_killed_or_rebalanced_keeps_its_slot_and_gets_no_new_one() -> None:
    transition = Transition(kind="kill", due_at=9.0, previous="ACTIVE")
    storms = {"t": storm("t", status="KILLED", transition=transition)}
    assert decide(storms, {}, {"a": supervisor("a")}) == Decision()
    taken = assignment()
    storms["u"] = storm("u")
    assert decide(storms, {"t": taken}, {"a": supervisor("a", 1)}).assign == ()


def test_what_came_to_its_end_is_not_started_again() -> None:
    storms, supervisors = world({"a": 1}, 1)
    assert decide(storms, {}, supervisors, finished=["t000"]) == Decision()
    placed = applied({}, decide(storms, {}, supervisors))
    assert decide(storms, placed, supervisors, owned=["t000"], finished=["t000"]) == Decision()
    storms["next"] = storm("next", submitted_at=9.0)
    decision = decide(storms, placed, supervisors, finished=["t000"])
    assert decision.remove == ("t000",), "its slot is free"
    assert [a.topology_id for a in decision.assign] == ["next"]


def test_assignments_of_nothing_are_removed_and_their_slots_free_at_once() -> None:
    orphan = assignment("old")
    decision = decide({"t": storm("t")}, {"old": orphan}, {"a": supervisor("a", 1)})
    assert decision.remove == ("old",)
    assert [(a.topology_id, a.port) for a in decision.assign] == [("t", 6700)]


names = st.sampled_from("abcdef")
steps = st.lists(
    st.one_of(
        st.tuples(st.just("join"), names, st.integers(0, 4)),
        st.tuples(st.just("die"), names, st.booleans()),
        st.tuples(st.just("submit"), st.integers(0, 19), st.none()),
        st.tuples(st.just("gone"), st.integers(0, 19), st.none()),
        st.tuples(st.just("relaunch"), st.integers(0, 19), st.none()),
    ),
    max_size=30,
)


@given(steps)
def test_laws_of_any_history(history) -> None:
    storms: dict[str, StormBase] = {}
    supervisors: dict[str, SupervisorInfo] = {}
    placed: dict[str, Assignment] = {}
    owned: set[str] = set()
    for epoch, (what, which, detail) in enumerate(history):
        name = f"t{which}"
        if what == "join":
            if which not in supervisors:
                supervisors[which] = supervisor(which, detail)
        elif what == "die":
            supervisors.pop(which, None)
            if detail:
                owned -= {topology for topology, a in placed.items() if a.supervisor_id == which}
        elif what == "submit":
            storms.setdefault(name, storm(name, submitted_at=float(epoch)))
        elif what == "gone":
            storms.pop(name, None)
            owned.discard(name)
        elif name in storms:
            storms[name] = replace(storms[name], launch=storms[name].launch + 1)
        healthy = {
            topology: a
            for topology, a in placed.items()
            if topology in storms
            and a.launch == storms[topology].launch
            and (a.supervisor_id in supervisors or topology in owned)
            and (topology in owned or a.port in supervisors[a.supervisor_id].slots)
        }
        decision = decide(storms, placed, supervisors, owned, epoch=epoch)
        after = applied(placed, decision)
        assert healthy.items() <= after.items(), "what is healthy doesn't move"
        assert set(after) <= set(storms)
        for new in decision.assign:
            assert new.supervisor_id in supervisors
            assert new.port in supervisors[new.supervisor_id].slots
        slots = Counter((a.supervisor_id, a.port) for a in after.values() if a.supervisor_id in supervisors)
        assert max(slots.values(), default=1) == 1, "no slot has two topologies"
        free = {(name, port) for name, s in supervisors.items() for port in s.slots} - set(slots)
        assert not decision.waiting or not free, "nobody waits while a slot is free"
        assert decide(storms, after, supervisors, owned, epoch=epoch).assign == (), "decided once, it stays"
        placed = after
        owned |= {a.topology_id for a in decision.assign}


@given(st.dictionaries(names, st.integers(1, 6), min_size=1), st.integers(0, 40))
def test_a_spread_from_nothing_is_as_even_as_slots_allow(sizes: dict[str, int], topologies: int) -> None:
    storms, supervisors = world(sizes, topologies)
    load = Counter(a.supervisor_id for a in decide(storms, {}, supervisors).assign)
    for one in sizes:
        for other in sizes:
            assert load[one] <= load[other] + 1 or load[other] == sizes[other]


def test_two_hundred_topologies_on_fifty_supervisors_take_milliseconds() -> None:
    storms, supervisors = world({f"s{i:02}": 4 for i in range(50)}, 200)
    started = time.process_time()
    placed = applied({}, decide(storms, {}, supervisors))
    assert time.process_time() - started < 0.5
    assert set(Counter(a.supervisor_id for a in placed.values()).values()) == {4}
    dead = {name: s for name, s in supervisors.items() if name != "s00"}
    assert len(decide(storms, placed, dead).waiting) == 4


def test_what_is_silent_is_moved_to_another_supervisor() -> None:
    storms, supervisors = world({"a": 4, "b": 1}, 1)
    placed = applied({}, decide(storms, {}, supervisors))
    assert placed["t000"].supervisor_id == "a"
    moved = decide(storms, placed, supervisors, silent=["t000"])
    assert [(a.supervisor_id, a.launch) for a in moved.assign] == [("b", 1)]
    assert not moved.remove
    back = decide(storms, applied(placed, moved), supervisors, silent=["t000"])
    assert [a.supervisor_id for a in back.assign] == ["a"]


def test_what_is_silent_stays_where_no_other_has_a_slot() -> None:
    storms, supervisors = world({"a": 4, "b": 1}, 3)
    placed = applied({}, decide(storms, {}, supervisors))
    on_a = [name for name, a in placed.items() if a.supervisor_id == "a"]
    assert decide(storms, placed, supervisors, silent=on_a) == Decision()


def test_who_has_no_slot_comes_before_who_is_silent() -> None:
    storms, supervisors = world({"a": 4}, 1)
    placed = applied({}, decide(storms, {}, supervisors))
    storms, supervisors = world({"a": 1, "b": 1}, 2)
    decision = decide(storms, placed, supervisors, silent=["t000"])
    assert [(a.topology_id, a.supervisor_id) for a in decision.assign] == [("t001", "b")]


def test_what_is_to_be_moved_anyway_is_moved_once() -> None:
    storms, supervisors = world({"a": 2, "b": 2}, 1)
    placed = applied({}, decide(storms, {}, supervisors))
    storms["t000"] = replace(storms["t000"], launch=2)
    assert [a.launch for a in decide(storms, placed, supervisors, silent=["t000"]).assign] == [2]
    storms["t000"] = replace(
        storms["t000"], launch=1, transition=Transition(kind="kill", due_at=9.0, previous="ACTIVE")
    )
    assert decide(storms, placed, supervisors, silent=["t000"]) == Decision()


def test_a_drained_supervisor_gets_nothing_and_loses_what_finds_a_slot() -> None:
    supervisors = {name: supervisor(name) for name in ("a", "b")}
    storms = {name: storm(name) for name in ("t1", "t2", "t3", "t4")}
    placed = {
        "t1": assignment("t1", supervisor_id="a", port=6700),
        "t2": assignment("t2", supervisor_id="a", port=6701),
        "t3": assignment("t3", supervisor_id="b", port=6700),
    }
    del storms["t4"]
    decision = schedule(storms, placed, supervisors, ["t1", "t2", "t3"], (), 7, 0.0, drained=["a"])
    assert [(a.topology_id, a.supervisor_id, a.port) for a in decision.assign] == [("t1", "b", 6701)]
    storms["t4"] = storm("t4")
    decision = schedule(storms, placed, supervisors, ["t1", "t2", "t3"], (), 7, 0.0, drained=["a"])
    assert [a.topology_id for a in decision.assign] == ["t4"], "who has no slot comes first"
    decision = schedule(storms, {}, supervisors, (), (), 7, 0.0, drained=["a", "b"])
    assert not decision.assign
    assert all("drained" in reason for reason in decision.waiting.values())
