"""Ids, offsets, latencies, clocks."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from waiting import eventually

from storm_on_spark.api.errors import CheckpointError
from storm_on_spark.metrics.latency import Latencies
from storm_on_spark.runtime.batches.clock import ManualClock, SystemClock
from storm_on_spark.runtime.batches.offsets import Offset
from storm_on_spark.runtime.spouts.log import WriterEpoch
from storm_on_spark.runtime.tracking.ids import SEQUENCE_BITS, EdgeIds, root_base, spout_task_of

# --- ids -----------------------------------------------------------------------------------------------------


@given(st.lists(st.integers(0, 20), max_size=6), st.integers(0, 5))
def test_edge_ids_do_not_depend_on_how_many_are_taken_at_once(parts: list[int], seed: int) -> None:
    one, other = EdgeIds("q", seed), EdgeIds("q", seed)
    taken = [edge for part in parts for edge in one.take(part).ids().tolist()]
    assert taken == other.take(sum(parts)).ids().tolist()


def test_edge_ids_of_different_executions_differ() -> None:
    streams = [EdgeIds("q", batch, place, task) for batch in range(20) for place in range(3) for task in range(3)]
    found = np.concatenate([stream.take(500).ids() for stream in streams])
    assert len(np.unique(found)) == len(found)
    assert (found != 0).all()


def test_edge_ids_look_random() -> None:
    """The acker knows a tree by an XOR: every bit must be as often set as not, and no few ids may cancel out."""
    found = EdgeIds("q", 1).take(20_000).ids()
    for bit in range(64):
        share = ((found >> np.uint64(bit)) & np.uint64(1)).mean()
        assert abs(share - 0.5) < 0.02
    pairs = np.bitwise_xor.outer(found[:300], found[:300])[np.triu_indices(300, 1)]
    assert len(np.unique(pairs)) == len(pairs)


def test_edge_ids_are_the_same_in_every_process() -> None:
    code = (
        "from storm_on_spark.runtime.tracking.ids import EdgeIds;"
        "print(EdgeIds('q', 1, 'spout', 2).take(4).ids().tolist())"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert json.loads(done.stdout) == EdgeIds("q", 1, "spout", 2).take(4).ids().tolist()


@given(st.integers(1, 2**19 - 1), st.integers(1, 2**SEQUENCE_BITS - 1))
def test_a_root_names_its_spout_task(task: int, number: int) -> None:
    roots = np.array([root_base(task) + number], np.uint64)
    assert spout_task_of(roots).tolist() == [task]
    assert int(roots[0]) - root_base(task) == number


# --- offsets ---------------------------------------------------------------------------------------------------


@given(st.dictionaries(st.integers(0, 2**20), st.integers(0, 2**60)), st.integers(0, 2**60), st.integers(-1, 2**60))
def test_offsets_survive_json_and_are_written_in_one_way(logs: dict[int, int], clock: int, carried: int) -> None:
    offset = Offset(logs, clock, carried, {task: WriterEpoch(position % 7, 1) for task, position in logs.items()})
    text = json.dumps(offset.to_json())
    assert Offset.from_json(json.loads(text)) == offset
    backwards = Offset(dict(reversed(logs.items())), clock, carried, dict(reversed(offset.epochs.items())))
    assert json.dumps(backwards.to_json()) == text, "Spark compares offsets as text"


@pytest.mark.parametrize("version", [0, 1, 3, None, "2"])
def test_offsets_of_another_version_are_refused_with_a_sentence(version: object) -> None:
    data = {**Offset().to_json(), "version": version}
    with pytest.raises(CheckpointError, match=f"offset has format version {version}; this release reads 2"):
        Offset.from_json(data)


# --- latencies -------------------------------------------------------------------------------------------------


@given(
    st.lists(st.floats(0.01, 1e7), min_size=1, max_size=200),
    st.integers(0, 200),
    st.sampled_from([50, 90, 95, 99, 100]),
)
@example([64.4946677103762], 0, 50)
@example([163789.37069540613], 0, 100)
def test_percentiles_are_off_by_at_most_a_few_per_mille(latencies: list[float], cut: int, percent: int) -> None:
    one, other = Latencies(), Latencies()
    one.add(np.array(latencies[:cut]))
    other.add(np.array(latencies[cut:]))
    one.merge(other)
    assert one.count == len(latencies)
    exact = np.percentile(latencies, percent, method="inverted_cdf")
    assert one.percentile(percent) == pytest.approx(exact, rel=0.015)


def test_what_is_too_short_or_too_long_counts_too() -> None:
    histogram = Latencies()
    assert histogram.summary() is None
    assert np.isnan(histogram.percentile(50))
    histogram.add(np.array([0.0, -1.0, 1e300]))
    assert histogram.count == 3
    histogram.add(np.array([]))
    assert histogram.count == 3
    summary = histogram.summary()
    assert summary is not None
    assert list(summary) == ["p50", "p95", "p99"]


# --- clocks ----------------------------------------------------------------------------------------------------


def test_the_systems_clock_goes_on_from_where_it_is_started() -> None:
    clock = SystemClock()
    clock.start(5_000)
    begin = clock.now_ms()
    assert 5_000 <= begin < 5_000 + 10_000
    assert clock.started_at is not None
    eventually(lambda: clock.now_ms() != begin)


def test_a_clock_that_is_driven_by_hand_never_goes_back() -> None:
    clock = ManualClock()
    clock.advance(2.5)
    clock.start(1_000)
    assert clock.now_ms() == 2_500
    clock.start(9_000)
    assert clock.now_ms() == 9_000
    assert clock.started_at is None
