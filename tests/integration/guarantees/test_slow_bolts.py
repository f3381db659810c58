"""Bolts that hang, and bolts that spouts are too fast for."""

from __future__ import annotations

import pytest
from topologies import hanging
from topologies.notes import read_notes

from storm_on_spark.api.errors import TopologyFailedError
from storm_on_spark.spark.state import read_bolt_state
from storm_on_spark.testing import run_topology

_HUNG = (
    'component "hang" (task 1) has been executing one tuple for * s (topology.task.stall.secs = 1): '
    f"({hanging.HANG_AT},) from numbers"
)


def test_a_bolt_that_hangs_is_named_and_its_worker_is_killed_and_the_batch_goes_on_in_another(
    spark_session, complete, tmp_path, capfd
):
    info = complete(hanging.hanging(1), {"topology.task.stall.secs": 1})

    assert (tmp_path / "hung").stat().st_size == 1, "it did not hang"
    assert (info.acked, info.failed) == (40, 0)
    (state,) = read_bolt_state(spark_session, tmp_path / "checkpoint", "hang").values()
    assert state["seen"] == list(range(40))
    before, after = _HUNG.split("*")
    told = [error.message for error in info.components["hang"].errors]
    assert any(message.startswith(before) and after in message for message in told), told
    assert all(message.endswith("its worker was ended, and another went on") for message in told)
    assert "its worker is ended and the micro-batch tried again" in capfd.readouterr().err
    # What was overcome is not the reason of what may come.
    assert not list((tmp_path / "checkpoint" / "storm" / "stalls").iterdir())


def test_native_code_that_holds_the_interpreter_is_named_and_its_worker_is_ended(spark_session, complete, tmp_path):
    info = complete(hanging.hanging(1, hanging.Holding), {"topology.profile": "latency", "topology.task.stall.secs": 1})

    assert (tmp_path / "hung").stat().st_size == 1, "it did not hang"
    assert (info.acked, info.failed) == (40, 0)
    (state,) = read_bolt_state(spark_session, tmp_path / "checkpoint", "hang").values()
    assert state["seen"] == list(range(40))
    (told,) = [error.message for error in info.components["hang"].errors]
    assert told.startswith('component "hang" (task 1), or what it calls, has held the Python interpreter for 0:00:01')
    assert 'hanging.py", line ' in told, "where in the code"
    assert told.endswith("in hang; its worker was ended, and another went on")


# As below, by what `test_native_code_that_holds_the_interpreter_is_named_and_its_worker_is_ended` sees.
@pytest.mark.soak
def test_native_code_that_holds_the_interpreter_again_and_again_fails_the_topology_with_that_reason(
    nothing_left_behind, spark_session, tmp_path
):
    conf = {"test.notes": str(tmp_path), "topology.task.stall.secs": 1}
    with pytest.raises(TopologyFailedError, match="has held the Python interpreter for 0:00:01"):
        run_topology(hanging.hanging(99, hanging.Holding), conf=conf, spark=spark_session, capture=[])


def test_a_bolt_that_hangs_again_and_again_fails_the_topology_with_that_reason(
    nothing_left_behind, spark_session, tmp_path
):
    conf = {"test.notes": str(tmp_path), "topology.task.stall.secs": 1}
    with pytest.raises(TopologyFailedError) as caught:
        run_topology(hanging.hanging(99), conf=conf, spark=spark_session, capture=[])
    assert (tmp_path / "hung").stat().st_size >= 2, "it was not tried again"
    before, after = _HUNG.split("*")
    assert caught.value.reason.startswith(before)
    assert after in caught.value.reason


def test_a_spout_that_is_too_fast_waits_so_that_its_log_stays_small_and_nothing_is_dropped(
    spark_session, complete, tmp_path
):
    limit = 1 << 20
    info = complete(hanging.flooded(tmp_path / "checkpoint"), {"topology.spout.log.max.bytes": limit})

    assert info.emitted == hanging.FLOOD
    (state,) = read_bolt_state(spark_session, tmp_path / "checkpoint", "gauge").values()
    assert (state["next"], state["gaps"]) == (hanging.FLOOD, 0)
    sizes = [size for (size,) in read_notes(tmp_path, "disk")]
    # What waits, a part of a segment that is consumed already, and one cut.
    assert max(sizes) < 2 * limit < hanging.FLOOD * hanging.FLOOD_BYTES / 5
