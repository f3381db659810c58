"""Sessions of Spark: starting one that suits topologies, and checking one that exists."""

from __future__ import annotations

from storm_on_spark.spark.session.local import (
    check_session,
    cores,
    expected_parallelism,
    local_session,
    log_file,
    settings_applied,
    stop_session,
)

__all__ = [
    "check_session",
    "cores",
    "expected_parallelism",
    "local_session",
    "log_file",
    "settings_applied",
    "stop_session",
]
