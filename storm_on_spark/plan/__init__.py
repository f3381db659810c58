"""The compiler's front and middle: from a topology to an immutable physical plan. Knows nothing of Spark."""

from __future__ import annotations
