"""Laws of placing modules, and the state of a stream."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storm_on_spark.xd.admin.placement import EVERY, Instance, Request, place, place_together, state_of

CONTAINERS = st.sets(st.sampled_from("abcde"))
COUNTS = st.lists(st.integers(0, 4), min_size=1, max_size=4)


def requests_of(counts: list[int], allowed: set[str]) -> list[Request]:
    return [Request(f"m{number}", count, lambda name: name in allowed) for number, count in enumerate(counts)]


@given(COUNTS, CONTAINERS, CONTAINERS, CONTAINERS)
def test_instances_stay_while_their_container_is_there(
    counts: list[int], allowed: set[str], before: set[str], after: set[str]
) -> None:
    requests = requests_of(counts, allowed)
    first = place(requests, before, {}, {})
    second = place(requests, after, first.allocated, {})
    for instance, container in first.allocated.items():
        if container in after:
            assert second.allocated[instance] == container
    assert set(second.allocated.values()) <= after & allowed
    assert place(requests, after, second.allocated, {}) == second


@given(COUNTS, CONTAINERS, CONTAINERS)
def test_every_instance_has_a_place_or_is_named(counts: list[int], allowed: set[str], there: set[str]) -> None:
    found = place(requests_of(counts, allowed), there, {}, {})
    fit = allowed & there
    for number, count in enumerate(counts):
        mine = [container for instance, container in found.allocated.items() if instance.label == f"m{number}"]
        missing = [instance for instance in found.unplaced if instance.label == f"m{number}"]
        if count == EVERY:
            assert sorted(mine) == sorted(fit)
        else:
            assert len(mine) + len(missing) == count
            assert not missing or not fit


@given(st.integers(1, 12), CONTAINERS.filter(bool), st.dictionaries(st.sampled_from("abcde"), st.integers(0, 9)))
def test_a_stream_is_spread_evenly(count: int, there: set[str], load: dict[str, int]) -> None:
    placed = list(place([Request("m", count)], there, {}, load).allocated.values())
    numbers = [placed.count(name) for name in there]
    assert max(numbers) - min(numbers) <= 1


def test_source_and_sink_are_apart_and_come_together_after_a_departure() -> None:
    requests = [Request("time"), Request("log")]
    first = place(requests, "ab", {}, {})
    assert set(first.allocated.values()) == {"a", "b"}
    second = place(requests, "b", first.allocated, {})
    assert set(second.allocated.values()) == {"b"}
    none = place(requests, "", second.allocated, {})
    assert none.unplaced == (Instance("time", 1), Instance("log", 1))


def test_a_container_that_comes_later_gets_what_runs_everywhere() -> None:
    requests = [Request("log", EVERY)]
    first = place(requests, "b", {}, {})
    assert place(requests, "ab", first.allocated, {}).allocated == {Instance("log", 1): "b", Instance("log", 2): "a"}


def test_instances_above_the_count_end_and_do_not_weigh() -> None:
    many = place([Request("time"), Request("log", 3)], "ab", {}, {})
    fewer = place([Request("time"), Request("log", 1)], "ab", many.allocated, {})
    assert fewer.allocated == {Instance("time", 1): "a", Instance("log", 1): "b"}


def test_the_state_of_a_stream() -> None:
    assert state_of(False, ["deployed"], complete=True) == "undeployed"
    assert state_of(True, ["deployed", "failed", "deploying"], complete=True) == "failed"
    assert state_of(True, ["deployed", "deployed"], complete=True) == "deployed"
    assert state_of(True, ["deployed"], complete=False) == "incomplete"
    assert state_of(True, ["deployed", "unknown"], complete=True) == "unknown"


def test_a_count_below_zero_is_refused() -> None:
    with pytest.raises(ValueError, match="module log, got -1"):
        Request("log", -1)


def test_a_fused_stream_is_in_one_container_and_stays_there() -> None:
    requests = [Request("time", 2), Request("log", matches=lambda name: name != "a")]
    first = place_together(requests, ["a", "b", "c"], {}, {"b": 5})
    assert first.allocated == {Instance("time", 1): "c", Instance("time", 2): "c", Instance("log", 1): "c"}
    assert place_together(requests, ["a", "b", "c"], first.allocated, {"c": 9}) == first
    assert set(place_together(requests, ["a", "b"], first.allocated, {}).allocated.values()) == {"b"}


def test_a_fused_stream_without_a_container_that_all_modules_match_waits_as_a_whole() -> None:
    requests = [Request("time", matches=lambda name: name == "a"), Request("log", matches=lambda name: name == "b")]
    found = place_together(requests, ["a", "b"], {}, {})
    assert (found.allocated, found.unplaced) == ({}, (Instance("time", 1), Instance("log", 1)))
