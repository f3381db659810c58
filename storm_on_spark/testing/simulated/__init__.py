"""A topology without Spark: its compiled plan runs on a simulated Spark in the test's own process.

Real are the coordinator, spouts, log, chunks, operators, ackers and state; only processes and Spark are not.
"""

from __future__ import annotations

from storm_on_spark.testing.simulated.host import SimulatedHost
from storm_on_spark.testing.simulated.spark import DriverKilled, SimulatedSpark

__all__ = ["DriverKilled", "SimulatedHost", "SimulatedSpark"]
