"""The counters of an execution."""

from __future__ import annotations

from itertools import count

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storm_on_spark.api import Fields
from storm_on_spark.api.tuple import Delivery
from storm_on_spark.runtime.bolts.collectors import Ledger
from storm_on_spark.runtime.bolts.durations import Durations
from storm_on_spark.runtime.bolts.inputs import Input, taken_in


def delivery() -> Delivery:
    return Delivery("words", "default", 3, Fields("word"))


@given(st.integers(1, 40), st.integers(0, 40), st.booleans(), st.sampled_from([0.0, 1e-9, 3e-6, 0.5]))
def test_one_delivery_counts_as_it_does_among_others(size: int, acked: int, all_acked: bool, secs: float) -> None:
    rows = [("storm",)] * size
    found = []
    for others in ([], [Input(delivery(), [], 0)]):  # an empty one adds nothing, and is a second one
        inputs, ledger, durations = [Input(delivery(), rows, size), *others], Ledger(), Durations()
        taken_in(inputs, ledger)
        ledger.acked += range(min(acked, size))
        clock = count()
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("storm_on_spark.runtime.bolts.durations.perf_counter", lambda clock=clock: secs * next(clock))
            list(durations.timed([(inputs[0].delivery, 0, rows)]))
        found.append(durations.amounts(inputs, ledger, all_acked=all_acked))
    assert found[0] == found[1]
