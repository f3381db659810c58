"""Which live process executes which task: by what tasks have cost, and only where that is clearly better."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from stormtest import Source, make_worker

from storm_on_spark.api import BaseBasicBolt, TopologyBuilder
from storm_on_spark.multilang import ShellBolt
from storm_on_spark.plan.live_homes import staying
from storm_on_spark.runtime.live.processes.spreading import Spreading, better_homes, longest

Placed = tuple[int, dict[int, dict[int, float]], dict[int, int]]


class Keeper(BaseBasicBolt):
    def execute(self, tup, collector) -> None: ...


@st.composite
def placed(draw: st.DrawFn) -> Placed:
    """Tasks of some stages with what they have cost, tasks that have cost nothing, and homes of all."""
    processes = draw(st.integers(2, 5))
    sizes = draw(st.lists(st.integers(1, 8), min_size=1, max_size=4))
    costs, first = {}, 0
    for stage, size in enumerate(sizes):
        tasks = range(first, first + size)
        costs[stage] = {task: draw(st.floats(0, 100)) for task in tasks}
        first += size
    homes = {task: draw(st.integers(0, processes - 1)) for task in range(first + 3)}
    return processes, costs, homes


@given(placed(), st.floats(0.1, 500), st.sets(st.integers(0, 30)))
def test_no_task_is_lost_and_rounds_only_get_shorter(found: Placed, secs: float, fixed: set[int]) -> None:
    processes, costs, homes = found
    better = better_homes(costs, homes, processes, secs, fixed)
    if better is None:
        return
    assert better.keys() == homes.keys()
    assert set(better.values()) <= set(range(processes))
    idle = homes.keys() - {task for tasks in costs.values() for task in tasks}
    assert all(better[task] == homes[task] for task in idle | fixed & homes.keys())
    before, after = longest(costs, homes, processes), longest(costs, better, processes)
    assert after <= 0.8 * before
    assert before > 0.5 * secs
    for stage, tasks in costs.items():
        alone = {stage: tasks}
        moved = any(better[task] != homes[task] for task in tasks)
        assert not moved or longest(alone, better, processes) < longest(alone, homes, processes)


@given(placed())
def test_a_stage_that_is_moved_is_nearly_even_unless_one_task_is_most_of_it(found: Placed) -> None:
    processes, costs, homes = found
    better = better_homes(costs, homes, processes, 0.0)
    for stage, tasks in costs.items() if better else ():
        if any(better[task] != homes[task] for task in tasks):
            most = max(sum(tasks.values()) / processes, *tasks.values())
            assert longest({stage: tasks}, better, processes) <= 2 * most


def test_a_long_task_gets_a_process_for_itself_and_the_others_stay() -> None:
    homes = {1: 0, 2: 0, 3: 1, 4: 0, 5: 1}
    costs = {2: {1: 10.0, 2: 2.5, 3: 2.5, 4: 2.5, 5: 2.5}}
    assert better_homes(costs, homes, 2, 16.0) == {1: 0, 2: 1, 3: 1, 4: 1, 5: 1}
    assert better_homes(costs, homes, 2, 31.0) is None, "the longest process was idle for more than half of the time"


def test_a_task_with_a_child_process_stays_and_others_leave_it() -> None:
    homes, costs = {1: 0, 2: 0, 3: 0}, {2: {1: 6.0, 2: 8.0, 3: 1.0}}
    assert better_homes(costs, homes, 2, 16.0) == {1: 1, 2: 0, 3: 1}
    assert better_homes(costs, homes, 2, 16.0, {1}) == {1: 0, 2: 1, 3: 0}


def test_ackers_and_tasks_with_a_child_process_stay() -> None:
    builder = TopologyBuilder()
    builder.set_spout("source", Source())
    builder.set_bolt("shell", ShellBolt(["cat"]), 3).shuffle_grouping("source")
    builder.set_bolt("own", Keeper(), 3).shuffle_grouping("source")
    plan = make_worker(builder, {"topology.acker.executors": 2}, partitions=1).spec.plan
    assert staying(plan) == {*plan.components["shell"].tasks, *plan.acker_tasks}


def test_stages_come_one_after_the_other_so_each_is_spread_for_itself() -> None:
    homes = {1: 0, 2: 0, 3: 1}
    assert better_homes({1: {1: 8.0}, 2: {2: 4.0, 3: 4.0}}, homes, 2, 12.0) is None
    assert better_homes({1: {1: 1.0}, 2: {2: 4.0, 3: 4.0}}, {1: 1, 2: 0, 3: 0}, 2, 9.0) == {1: 1, 2: 0, 3: 1}


def test_a_process_has_its_time_divided_among_its_tasks_as_their_bolts_were_busy() -> None:
    spreading, homes = Spreading(2), {1: 0, 2: 0, 3: 1}
    for _ in range(3):
        spreading.note(4, 0, [1, 2], 6.0)
        spreading.note(4, 1, [3], 1.0)
        spreading.note(5, 1, [7, 8], 1.0)
    # What is fused with a task, as 9 is, was executed with it.
    assert spreading.at_barrier({1: 1.0, 2: 2.0, 9: 5.0}, 8.0, homes) is None
    assert spreading.costs() == {4: {1: 6.0, 2: 12.0, 3: 3.0}, 5: {7: 1.5, 8: 1.5}}


def test_tasks_move_at_every_third_barrier_at_most() -> None:
    spreading, homes = Spreading(2), {1: 0, 2: 0}
    moved = []
    for _ in range(7):
        spreading.note(4, 0, [1, 2], 4.0)
        moved.append(spreading.at_barrier({1: 1.0, 2: 1.0}, 5.0, homes))
    assert moved == [None, None, {1: 0, 2: 1}, None, None, {1: 0, 2: 1}, None]


def test_a_move_that_took_long_is_the_last_one_for_some_time() -> None:
    spreading, homes = Spreading(2), {1: 0, 2: 0}
    spreading.took(0.9)  # as with much state
    moved = []
    for _ in range(7):
        spreading.note(4, 0, [1, 2], 4.0)
        moved.append(spreading.at_barrier({1: 1.0, 2: 1.0}, 5.0, homes))
    assert moved == [None, None, None, {1: 0, 2: 1}, None, None, None], "18 s have passed"
