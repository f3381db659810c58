"""What happens to tuples inside a Python process. Pure state machines first, I/O in thin shells; no pyspark."""

from __future__ import annotations
