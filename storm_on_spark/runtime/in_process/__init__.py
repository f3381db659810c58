"""A topology in one process, without Spark: for debuggers, tests of topologies, and measurements.

A compiled graph comes in, and counters go out; everything except Spark and its processes is real. Begin with
`micro_batch.py`, which executes the operators of a plan as Spark would; `host.py` has the spouts, and `topology.py`
runs both to the end.
"""

from __future__ import annotations

from storm_on_spark.runtime.in_process.topology import InProcessTopology

__all__ = ["InProcessTopology"]
