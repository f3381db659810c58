"""Native spouts: rows that Spark reads directly become chunks; a spout's task keeps rows that are not acked at once.

Record batches of Spark's sources come in; chunks for the first operator go out, and kept rows go through the spout log
again. Begin with `rows.py`; `task.py` keeps and repeats.
"""

from __future__ import annotations

from typing import Final

PARTITION: Final = "__partition"
"""The last column of the rows: the partition in which Spark read each row."""
