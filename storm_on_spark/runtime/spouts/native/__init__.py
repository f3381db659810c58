"""Native spouts: rows that Spark reads directly become chunks; a spout's task keeps rows that are not acked at once."""

from __future__ import annotations

from typing import Final

PARTITION: Final = "__partition"
"""The last column of the rows: the partition in which Spark read each row."""
