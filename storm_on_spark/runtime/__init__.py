"""What happens to tuples inside a Python process. Pure state machines first, I/O in thin shells; no pyspark.

The rooms in the order in which a tuple passes them: `spouts` emit it, `emit` routes it, `codec` makes bytes of it,
`batches` bring them to `bolts`, which execute it, and `tracking` says when its message is done. `live` and `in_process`
execute the same code between Spark's micro-batches, or without Spark.
"""

from __future__ import annotations
