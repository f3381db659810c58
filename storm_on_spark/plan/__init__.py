"""The compiler up to the physical plan: from a topology to an immutable plan. It does not depend on Spark."""

from __future__ import annotations
