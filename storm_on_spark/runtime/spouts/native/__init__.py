"""Native spouts: rows that Spark reads itself become chunks; what is not acked at once is kept by a spout's task."""

from __future__ import annotations

from typing import Final

PARTITION: Final = "__partition"
"""The last column of the rows: the partition in which Spark read them."""
