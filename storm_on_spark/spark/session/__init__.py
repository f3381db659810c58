"""Sessions of Spark: starting one that suits topologies, and checking one that exists."""

from __future__ import annotations

from storm_on_spark.spark.session.local import local_session, log_file, stop_session
from storm_on_spark.spark.session.settings.expected import ComingSession, expected_master, expected_parallelism
from storm_on_spark.spark.session.settings.required import check_session, settings_applied
from storm_on_spark.spark.session.settings.started import cores

__all__ = [
    "ComingSession",
    "check_session",
    "cores",
    "expected_master",
    "expected_parallelism",
    "local_session",
    "log_file",
    "settings_applied",
    "stop_session",
]
