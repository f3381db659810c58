"""A topology without Spark: its compiled plan runs on a simulated Spark in the test's own process.

The coordinator, spouts, log, chunks, operators, ackers and state are real; only processes and Spark are simulated.
"""

from __future__ import annotations

from storm_on_spark.testing.simulated.host import SimulatedHost
from storm_on_spark.testing.simulated.spark import DriverKilled, SimulatedSpark

__all__ = ["DriverKilled", "SimulatedHost", "SimulatedSpark"]
