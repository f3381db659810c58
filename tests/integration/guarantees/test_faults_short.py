"""The short form of `make faults`: a worker, a spout host and a driver are killed once each in one run."""

from __future__ import annotations

import pytest
from processes import short_form


# Each of these kills, and what is left exactly: `test_recovery.py`.
@pytest.mark.soak
@pytest.mark.timeout(600)
def test_nothing_is_lost_or_counted_twice_when_a_worker_a_spout_host_and_the_driver_are_killed():
    # Other tests may have left the machine busy: how quickly progress resumes is measured by `make faults`.
    [mixed] = short_form("lab.faults", "--patience", "5", seconds=500)
    faults = [injection["what"] for injection in mixed["injections"]]
    assert len(faults) == 3
    for victim in ("Python worker", "spout host", "driver"):
        assert any(f"SIGKILL of {victim}" in fault for fault in faults), faults
    assert all(injection["recovery_secs"] is not None for injection in mixed["injections"])
    assert (mixed["figures"]["lost"], mixed["figures"]["state_errors"]) == (0, 0)


# Both without Spark: `test_power_loss.py`, and `test_what_a_writer_appends_after_it_was_replaced_is_never_read`.
@pytest.mark.soak
@pytest.mark.timeout(600)
def test_nothing_that_was_acked_is_lost_with_the_machine_and_a_writer_that_was_replaced_is_not_read():
    only = ("--only", "power", "--only", "two-writers")
    for scenario in short_form("lab.faults", "--patience", "5", *only, seconds=500):
        if scenario["skipped"] is None:
            assert len(scenario["injections"]) == 1
            assert (scenario["figures"]["lost"], scenario["figures"]["state_errors"]) == (0, 0)


# `test_realtime.py` kills live processes, and `test_real_time_elsewhere.py` cuts machines off.
@pytest.mark.soak
@pytest.mark.timeout(600)
def test_nothing_is_lost_when_a_connection_of_live_processes_breaks_or_a_spout_blocks():
    only = ("--only", "live-cut", "--only", "live-blocked")
    for scenario in short_form("lab.faults", "--patience", "5", *only, seconds=500):
        if scenario["skipped"] is None:
            assert len(scenario["injections"]) == 1
            assert (scenario["figures"]["lost"], scenario["figures"]["state_errors"]) == (0, 0)
