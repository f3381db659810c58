"""The spout that emits what a test gives it."""

from __future__ import annotations

import os
import signal
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from children import forked

from storm_on_spark import InvalidTopologyError
from storm_on_spark.testing import (
    CRASH,
    EOF,
    GATE,
    PAUSE,
    ListSpout,
    On,
    SpoutTester,
    crash,
    crashes,
    open_gate,
    run_spout,
)


def drain(tester: SpoutTester, most: int = 1000) -> list[Any]:
    before = len(tester.collector.emitted)
    for _ in range(most):
        if tester.spout.exhausted():
            break
        tester.next_tuple()
    return [emission.values for emission in tester.collector.emitted[before:]]


def test_items_are_emitted_in_order_with_their_positions_as_ids() -> None:
    emitted = run_spout(ListSpout(["a", ("b",), ["c"]], fields="word")).emitted
    assert [(emission.values, emission.message_id) for emission in emitted] == [(("a",), 0), (("b",), 1), (("c",), 2)]


def test_message_ids_can_be_chosen_or_left_out() -> None:
    chosen = run_spout(ListSpout(["a", "b"], message_ids=lambda position: f"m{position}"))
    assert [emission.message_id for emission in chosen.emitted] == ["m0", "m1"]
    without = run_spout(ListSpout(["a", "b"], message_ids=False))
    assert [emission.message_id for emission in without.emitted] == [None, None]


def test_items_may_go_to_other_streams() -> None:
    spout = ListSpout(["a", On("pairs", ["b", 1])], fields="word", streams={"pairs": ["word", "count"]})
    collector = run_spout(spout)
    assert (collector.values(), collector.values("pairs")) == ([("a",)], [("b", 1)])


@pytest.mark.parametrize(
    ("items", "message"),
    [
        (["a", ["b", "c"]], r"item 1 of a ListSpout has 2 value\(s\), .*\['value'\]: \['b', 'c'\]"),
        ([On("x", ["a"])], r"item 0 of a ListSpout is on stream 'x'; there are: \['default'\]"),
    ],
)
def test_an_item_that_does_not_fit_is_refused_at_once(items: list[Any], message: str) -> None:
    with pytest.raises(InvalidTopologyError, match=message):
        ListSpout(items)


@pytest.mark.parametrize("message_ids", [True, lambda position: f"m{position}"], ids=["positions", "chosen"])
def test_a_failed_item_is_emitted_again_up_to_max_fails_times(message_ids: Any) -> None:
    tester = SpoutTester(ListSpout(["a", "b"], message_ids=message_ids, max_fails=2))
    assert drain(tester) == [("a",), ("b",)]
    first, second = tester.collector.pending
    tester.ack(second)
    for _ in range(2):
        tester.fail(first)
        assert not tester.spout.exhausted()
        assert drain(tester) == [("a",)]
    tester.fail(first)
    assert tester.spout.exhausted()
    assert (tester.spout.given_up, tester.spout.acked) == ([0], 1)


def test_a_success_forgets_earlier_failures() -> None:
    tester = SpoutTester(ListSpout(["a"], max_fails=1))
    drain(tester)
    tester.fail(0)
    drain(tester)
    tester.ack(0)
    assert (tester.spout.fails, tester.spout.given_up, tester.spout.acked) == ({}, [], 1)


@pytest.mark.parametrize("message_ids", [True, lambda position: (position,)], ids=["positions", "chosen"])
def test_a_restart_anywhere_neither_loses_nor_repeats_an_item(message_ids: Any) -> None:
    items = list("abcdef")
    for crash_at in range(len(items) + 1):
        tester = SpoutTester(ListSpout(items, message_ids=message_ids))
        tester.next_tuple(crash_at)
        if crash_at > 2:
            tester.fail(tester.collector.pending[1])
        tester.restart()
        drain(tester)
        expected = [(item,) for item in items]
        if crash_at > 2:
            expected.insert(crash_at, ("b",))
        assert tester.collector.values() == expected
        for message_id in list(tester.collector.pending):
            tester.ack(message_id)
        assert tester.spout.acked == len(items)


def test_what_is_saved_of_an_open_spout_does_not_grow_with_its_items() -> None:
    tester = SpoutTester(ListSpout(range(10_000)))
    tester.next_tuple(5000)
    assert len(repr(tester.spout.__getstate__())) < 200


def test_tasks_share_the_items_and_meet_every_sentinel() -> None:
    items = [0, 1, EOF(), 2, 3, 4]
    seen = []
    for index in range(2):
        tester = SpoutTester(ListSpout(items), tasks=2, task_index=index)
        shares = [drain(tester)]
        tester.restart()
        shares.append(drain(tester))
        seen.append(shares)
    assert seen == [[[(0,)], [(2,), (4,)]], [[(1,)], [(3,)]]]


def test_a_pause_emits_nothing_for_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr("storm_on_spark.testing.running.sources.time.monotonic", lambda: now[0])
    tester = SpoutTester(ListSpout(["a", PAUSE(5), "b"]))
    tester.next_tuple(10)
    assert tester.collector.values() == [("a",)]
    assert not tester.spout.exhausted()
    now[0] += 5
    tester.next_tuple(2)
    assert tester.collector.values() == [("a",), ("b",)]
    assert tester.spout.exhausted()


def test_a_gate_holds_until_it_is_opened(tmp_path: Path) -> None:
    tester = SpoutTester(ListSpout(["a", GATE("second"), "b"], markers=tmp_path))
    tester.next_tuple(5)
    open_gate(tmp_path, "other")
    tester.fail(0)
    tester.next_tuple(5)
    assert tester.collector.values() == [("a",), ("a",)]
    assert not tester.spout.exhausted()
    open_gate(tmp_path, "second")
    assert drain(tester) == [("b",)]


def test_an_eof_ends_the_run_and_the_next_one_goes_on_behind_it() -> None:
    tester = SpoutTester(ListSpout(["a", EOF(), "b", EOF(), EOF()]))
    assert drain(tester) == [("a",)]
    tester.fail(0)
    assert drain(tester) == [("a",)]
    tester.restart()
    assert drain(tester) == [("b",)]
    tester.restart()
    assert tester.next_tuple() == []
    assert tester.spout.exhausted()


def test_a_crash_kills_the_process_as_often_as_it_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    killed = []

    class Killed(BaseException):
        pass

    def kill(pid: int, number: int) -> None:
        killed.append((pid, number))
        raise Killed

    monkeypatch.setattr("storm_on_spark.testing.running.sources.os.kill", kill)
    tester = SpoutTester(ListSpout(["a", CRASH(times=2), "b"], markers=tmp_path))
    tester.next_tuple()
    for _ in range(2):
        with pytest.raises(Killed):
            tester.next_tuple()
        tester.restart()
    assert drain(tester) == [("b",)]
    assert killed == [(os.getpid(), signal.SIGKILL)] * 2
    assert [crashes(marker) for marker in tmp_path.iterdir()] == [2]


@pytest.mark.parametrize("sentinel", [CRASH(), GATE("g")])
def test_a_crash_and_a_gate_need_a_place_outside_the_process(sentinel: Any) -> None:
    tester = SpoutTester(ListSpout([sentinel]))
    with pytest.raises(InvalidTopologyError, match=f"with {type(sentinel).__name__} .* needs markers=FOLDER"):
        tester.next_tuple()


def test_crash_spares_the_process_once_it_was_killed_often_enough(tmp_path: Path) -> None:
    marker = tmp_path / "marker"
    assert crashes(marker) == 0
    pid = forked(lambda: crash(marker))
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == -signal.SIGKILL
    assert crashes(marker) == 1
    assert crash(marker) is False


@pytest.mark.parametrize("rounds", [5, pytest.param(50, marks=pytest.mark.slow)])
def test_of_several_processes_that_crash_at_the_same_moment_only_as_many_die_as_it_says(
    tmp_path: Path, rounds: int
) -> None:
    def crash_with_others(marker: Path, gate: int, opener: int) -> None:
        os.close(opener)
        os.read(gate, 1)
        crash(marker)

    for number in range(rounds):
        marker = tmp_path / f"marker-{number}"
        gate, opener = os.pipe()
        children = [forked(partial(crash_with_others, marker, gate, opener)) for _ in range(4)]
        os.close(opener)
        ends = sorted(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in children)
        os.close(gate)
        assert ends == [-signal.SIGKILL, 0, 0, 0]
