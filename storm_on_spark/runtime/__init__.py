"""The processing of tuples inside a Python process: pure state machines, and I/O in thin shells; no pyspark.

A tuple passes the rooms in this order: `spouts` emit it, `emit` routes it, `codec` encodes it, `batches` bring it to
`bolts`, which execute it, and `tracking` decides when its message is complete. `live` and `in_process` execute the same
code between Spark's micro-batches or without Spark.
"""

from __future__ import annotations
