"""The rules of a DRPC server: what becomes of requests, without a server."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storm_on_spark.cluster.drpc.rules import MOST_FETCHED_CHARACTERS, MOST_NAME, Requests
from storm_on_spark.drpc import DRPCExceptionType, DRPCExecutionException


def requests(timeout: float = 10.0, waiting: int = 4) -> Requests:
    numbers = itertools.count(1)
    return Requests(timeout, waiting, lambda: f"r{next(numbers)}")


def test_requests_are_fetched_in_order_by_function_and_once() -> None:
    rules = requests()
    for function, arguments in [("f", "1"), ("g", "2"), ("f", "3"), ("f", "4")]:
        rules.submit(function, arguments, 0.0)
    assert [each.arguments for each in rules.fetch("f", 2)] == ["1", "3"]
    assert [each.arguments for each in rules.fetch("f", 2)] == ["4"]
    assert rules.fetch("f", 2) == rules.fetch("unknown", 1) == []
    assert [each.arguments for each in rules.fetch("g", 9)] == ["2"]


def test_an_answer_to_a_topology_holds_no_more_than_it_takes_but_a_single_request_of_any_size() -> None:
    rules = requests()
    for size in (MOST_FETCHED_CHARACTERS + 1, 3, MOST_FETCHED_CHARACTERS - 3, 1):
        rules.submit("f", "x" * size, 0.0)
    assert [len(rules.fetch("f", 9)) for _ in range(4)] == [1, 2, 1, 0]


def test_the_same_request_twice_is_two_requests() -> None:
    rules = requests()
    keys = [rules.submit("f", "same", 0.0) for _ in range(2)]
    assert len(set(keys)) == 2
    assert [rules.result(key, key).result for key in keys] == keys


def test_a_request_ends_once_and_what_comes_later_is_for_an_unknown_id() -> None:
    rules = requests()
    key = rules.submit("f", "x", 0.0)
    rules.fetch("f", 1)
    outcome = rules.fail(key)
    assert (outcome.result, outcome.error.type) == (None, DRPCExceptionType.FAILED_REQUEST)
    assert rules.result(key, "late") is rules.fail(key) is rules.result("never", "x") is None


def test_a_topology_may_say_why_a_request_failed() -> None:
    rules = requests()
    error = DRPCExecutionException("no such word", DRPCExceptionType.INTERNAL_ERROR)
    assert rules.fail(rules.submit("f", "x", 0.0), error).error is error


def test_requests_time_out_whether_they_were_fetched_or_not() -> None:
    rules = requests(timeout=10)
    rules.submit("f", "fetched", 0.0)
    rules.fetch("f", 1)
    rules.submit("f", "waits", 5.0)
    assert rules.next_deadline() == 10.0
    assert rules.expire(9.9) == []
    (first,) = rules.expire(10.0)
    assert (first.id, first.error.type) == ("r1", DRPCExceptionType.SERVER_TIMEOUT)
    assert "'f' has not answered within 10 s (drpc.request.timeout.secs)" in str(first.error)
    assert [each.id for each in rules.expire(99.0)] == ["r2"]
    assert rules.fetch("f", 1) == []
    assert rules.next_deadline() is None


def test_a_full_queue_refuses_at_once_and_has_room_after_a_fetch() -> None:
    rules = requests(waiting=2)
    for _ in range(2):
        rules.submit("f", "x", 0.0)
    with pytest.raises(DRPCExecutionException, match=r"2 requests for 'f' wait .* \(drpc.queue.size\)") as refused:
        rules.submit("f", "x", 0.0)
    assert refused.value.type is DRPCExceptionType.INTERNAL_ERROR
    rules.submit("g", "x", 0.0)
    rules.fetch("f", 1)
    rules.submit("f", "x", 0.0)


@pytest.mark.parametrize("name", ["", "n" * (MOST_NAME + 1)])
def test_a_name_is_bounded(name: str) -> None:
    with pytest.raises(DRPCExecutionException, match="the name of a function has 1 to 200 characters"):
        requests().submit(name, "x", 0.0)


def test_a_shutdown_ends_all_and_takes_no_more() -> None:
    rules = requests()
    keys = [rules.submit("f", "x", 0.0), rules.submit("g", "x", 0.0)]
    rules.fetch("g", 1)
    outcomes = rules.shutdown()
    assert [each.id for each in outcomes] == keys
    assert {each.error.type for each in outcomes} == {DRPCExceptionType.SERVER_SHUTDOWN}
    with pytest.raises(DRPCExecutionException, match="the DRPC server ends"):
        rules.submit("f", "x", 0.0)


@given(
    st.lists(
        st.tuples(st.sampled_from(["submit", "fetch", "result", "fail", "expire", "give up"]), st.integers(0, 5)),
        max_size=60,
    )
)
def test_every_request_ends_exactly_once(steps: list[tuple[str, int]]) -> None:
    rules, now = requests(timeout=3, waiting=3), 0.0
    known: list[str] = []
    ended: list[str] = []
    for step, number in steps:
        key = known[number % len(known)] if known else "none"
        if step == "submit":
            try:
                known.append(rules.submit(f"f{number % 2}", "x", now))
            except DRPCExecutionException:
                assert len(rules.fetch(f"f{number % 2}", 9)) == 3
        elif step == "fetch":
            fetched = [each.id for each in rules.fetch(f"f{number % 2}", number)]
            assert not set(fetched) & set(ended)
        elif step == "expire":
            now += number
            ended += [each.id for each in rules.expire(now)]
        elif step == "give up":
            before = len(rules)
            rules.give_up(key)
            ended += [key] * (before - len(rules))
        else:
            outcome = rules.result(key, "x") if step == "result" else rules.fail(key)
            ended += [] if outcome is None else [outcome.id]
    ended += [each.id for each in rules.shutdown()]
    assert sorted(ended) == sorted(known)
